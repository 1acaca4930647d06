//! Inserts hook entries into an agent's JSON settings in the way the file is written already (line
//! ends, indentation, one line or many), and removes them to the byte.

use checkrein_adapters::settings::HookHandlerInvocation;

use super::json_tree::{JsonValueWithSpan, JsonWithPositions};
use super::new_json::quote_as_json_string;
use super::{
    EditedSettingsText, OrderedJson, SettingsEditError, remove_inserted_settings_texts,
    splice_texts_into_settings,
};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// An event's name and the group to be added to its list.
pub(crate) type HookEventEntry = (&'static str, OrderedJson);

/// Appends a group to each event's list.
pub(crate) fn add_hook_entries_to_settings_json(
    text: &str,
    entries: &[HookEventEntry],
) -> Result<EditedSettingsText, SettingsEditError> {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let offset = text.len() - body.len();
    let style = JsonStyle::detect_json_style(body);
    // A blank file keeps its blanks and gets a new object behind its byte order mark.
    if body.trim().is_empty() {
        let written = style.render_new_settings_json(entries);
        let end = if body.is_empty() { style.newline } else { "" };
        return Ok(splice_texts_into_settings(
            text,
            vec![(offset, format!("{written}{end}"))],
        ));
    }
    let parsed = JsonWithPositions::parse_commented_json(body)?;
    let splices = plan_hook_insertions(body, &parsed, &style, entries)?;
    let splices = splices.into_iter().map(|(at, piece)| (at + offset, piece));
    Ok(splice_texts_into_settings(text, splices.collect()))
}

/// Removes our entries: the very text that was inserted if it is still there, else the entries and
/// what only held them.
pub(crate) fn remove_hook_entries(
    text: &str,
    inserted: &[String],
) -> Result<String, SettingsEditError> {
    // The exact way is taken only if it leaves valid JSON without an entry of ours: a person may
    // have moved or copied parts of the text, which then matches elsewhere.
    if let Some(kept) = remove_inserted_settings_texts(text, inserted)
        && !has_checkrein_entries(&kept)
        && (is_complete_json(&kept) || !is_complete_json(text))
    {
        return Ok(kept);
    }
    // The structural way: cut one handler, parse again, until none is left. Places shift with each
    // cut.
    let mut text = text.to_owned();
    // Each turn takes one handler out; a file has fewer of them than bytes.
    for _ in 0..text.len() {
        let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
        let offset = text.len() - body.len();
        if body.trim().is_empty() {
            break;
        }
        let parsed = JsonWithPositions::parse_commented_json(body)?;
        let Some(cuts) = checkrein_handler_removal_ranges(body, &parsed, inserted) else {
            break;
        };
        // From the end, so that the earlier ranges stay right.
        for (from, to) in cuts.into_iter().rev() {
            text.replace_range(from + offset..to + offset, "");
        }
    }
    Ok(text)
}

/// Returns whether any handler in it is ours.
pub(crate) fn has_checkrein_entries(text: &str) -> bool {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    JsonWithPositions::parse_commented_json(body)
        .is_ok_and(|parsed| checkrein_handler_removal_ranges(body, &parsed, &[]).is_some())
}

/// Returns whether a text is blank, or JSON to its end.
fn is_complete_json(text: &str) -> bool {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    body.trim().is_empty() || JsonWithPositions::parse_commented_json(body).is_ok()
}

/// Returns whether nothing is left of a file but its braces.
pub(crate) fn is_blank_or_empty_json(text: &str) -> bool {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let blank = |c: &char| !c.is_whitespace();
    matches!(
        body.chars().filter(blank).collect::<String>().as_str(),
        "" | "{}"
    )
}

/// How a file is written.
struct JsonStyle {
    newline: &'static str,
    unit: String,
    /// All of it is on one line.
    tight: bool,
}

impl JsonStyle {
    fn detect_json_style(body: &str) -> Self {
        let newline = if body.contains("\r\n") { "\r\n" } else { "\n" };
        let trimmed = body.trim();
        // The first indented key shows the unit. The first line is skipped, since it holds the
        // opening brace.
        let mut indents = body.lines().skip(1).filter_map(|line| {
            let rest = line.trim_start_matches([' ', '\t']);
            let indent = line.strip_suffix(rest)?;
            (rest.starts_with('"') && !indent.is_empty()).then(|| indent.to_owned())
        });
        Self {
            newline,
            unit: indents.next().unwrap_or_else(|| "  ".to_owned()),
            tight: !trimmed.contains('\n')
                && !is_blank_or_empty_json(trimmed)
                && !trimmed.is_empty(),
        }
    }

    /// Returns a new file's text, without a last line end.
    fn render_new_settings_json(&self, entries: &[HookEventEntry]) -> String {
        let hooks = self.render_hooks_member("hooks", entries, &self.unit);
        format!("{{{0}{1}{hooks}{0}}}", self.newline, self.unit)
    }

    /// `"hooks": { events }`, the first line's indentation left to the caller.
    fn render_hooks_member(&self, key: &str, entries: &[HookEventEntry], indent: &str) -> String {
        let key = quote_as_json_string(key);
        if self.tight {
            let events: Vec<String> = entries
                .iter()
                .map(|entry| self.render_hook_event_member(entry, ""))
                .collect();
            return format!("{key}:{{{}}}", events.join(","));
        }
        let inner = format!("{indent}{}", self.unit);
        let events: Vec<String> = entries
            .iter()
            .map(|entry| format!("{inner}{}", self.render_hook_event_member(entry, &inner)))
            .collect();
        let between = format!(",{}", self.newline);
        format!(
            "{key}: {{{0}{1}{0}{indent}}}",
            self.newline,
            events.join(&between)
        )
    }

    /// `"Stop": [ group ]`
    fn render_hook_event_member(&self, (event, group): &HookEventEntry, indent: &str) -> String {
        let key = quote_as_json_string(event);
        let group = group.render_json_on_one_line(!self.tight);
        if self.tight {
            return format!("{key}:[{group}]");
        }
        format!(
            "{key}: [{0}{indent}{1}{group}{0}{indent}]",
            self.newline, self.unit
        )
    }
}

/// Plans the insertions: each is a place in `body` and the text that goes there.
fn plan_hook_insertions(
    body: &str,
    parsed: &JsonWithPositions,
    style: &JsonStyle,
    entries: &[HookEventEntry],
) -> Result<Vec<(usize, String)>, SettingsEditError> {
    let shape = |place: &str, wanted: &str| SettingsEditError {
        place: place.to_owned(),
        what: format!("this is not {wanted}, so nothing can be added to it"),
    };
    // Settings of another shape are left alone: replacing a value would lose what a person wrote.
    let root = &parsed.root;
    if !root.is_json_object() {
        return Err(shape("line 1, column 1", "an object"));
    }
    let Some(hooks) = root.json_value_of_key("hooks") else {
        let end = JsonInsertionPoint::locate_json_insertion_point(body, parsed, style, root);
        return Ok(vec![end.build_json_insertion(style, |indent| {
            style.render_hooks_member("hooks", entries, indent)
        })]);
    };
    if !hooks.is_json_object() {
        return Err(shape("hooks", "an object"));
    }
    let mut splices = Vec::new();
    // Events whose list is there get one insertion each; all missing events share one, since they
    // go to the same place.
    let mut missing: Vec<&HookEventEntry> = Vec::new();
    for entry in entries {
        match hooks.json_value_of_key(entry.0) {
            None => missing.push(entry),
            Some(list) if list.is_json_array() => {
                let end =
                    JsonInsertionPoint::locate_json_insertion_point(body, parsed, style, list);
                splices.push(end.build_json_insertion(style, |_| {
                    entry.1.render_json_on_one_line(!style.tight)
                }));
            }
            Some(_) => return Err(shape(&format!("hooks.{}", entry.0), "a list")),
        }
    }
    if !missing.is_empty() {
        let end = JsonInsertionPoint::locate_json_insertion_point(body, parsed, style, hooks);
        splices.push(end.build_json_insertion(style, |indent| {
            let events: Vec<String> = missing
                .iter()
                .map(|entry| style.render_hook_event_member(entry, indent))
                .collect();
            let between = match end.lines {
                true => format!(",{}{indent}", style.newline),
                false if style.tight => ",".to_owned(),
                false => ", ".to_owned(),
            };
            events.join(&between)
        }));
    }
    Ok(splices)
}

/// The end of a list or an object, where a child is added.
struct JsonInsertionPoint {
    at: usize,
    /// Goes before what is added: a comma, if one is needed.
    comma: &'static str,
    /// Each child is on a line of its own, at this indentation.
    lines: bool,
    indent: String,
    /// Goes after what is added.
    close: String,
}

impl JsonInsertionPoint {
    fn locate_json_insertion_point(
        body: &str,
        parsed: &JsonWithPositions,
        style: &JsonStyle,
        holder: &JsonValueWithSpan,
    ) -> Self {
        // The place before the closing bracket.
        let inside = holder.end.saturating_sub(1);
        let children = holder.child_ranges();
        let outer = line_indent(body, holder.start);
        match (children.first(), children.last()) {
            (Some(first), Some(last)) => {
                // After a trailing comma nothing else is needed, and the file's own comma stays the
                // last byte before ours.
                let trailing = parsed
                    .json_tokens_between(last.1, inside)
                    .find(|mark| mark.comma);
                // Children are on lines of their own if the first one is not on the bracket's line.
                let gap = body.get(holder.start + 1..first.0).unwrap_or_default();
                let lines = gap.contains('\n');
                Self {
                    at: trailing.map_or(last.1, |mark| mark.end),
                    comma: if trailing.is_some() { "" } else { "," },
                    lines,
                    indent: line_indent(body, first.0),
                    close: String::new(),
                }
            }
            _ => {
                // An empty list or object may hold comments: the entry goes behind the last one.
                let comment = parsed.json_tokens_between(holder.start + 1, inside).last();
                let at = comment.map_or(holder.start + 1, |mark| mark.end);
                let rest = body.get(at..inside).unwrap_or_default();
                let close = match rest.contains('\n') || style.tight {
                    true => String::new(),
                    false => format!("{}{outer}", style.newline),
                };
                Self {
                    at,
                    comma: "",
                    lines: !style.tight,
                    indent: format!("{outer}{}", style.unit),
                    close,
                }
            }
        }
    }

    /// Builds the insertion. `added` gets the indentation of its first line.
    fn build_json_insertion(
        &self,
        style: &JsonStyle,
        added: impl FnOnce(&str) -> String,
    ) -> (usize, String) {
        let gap = match (self.lines, style.tight) {
            (true, _) => format!("{}{}", style.newline, self.indent),
            (false, true) => String::new(),
            (false, false) => " ".to_owned(),
        };
        let piece = added(&self.indent);
        (self.at, format!("{}{gap}{piece}{}", self.comma, self.close))
    }
}

/// Returns the blanks at the beginning of the line that holds this place.
fn line_indent(body: &str, at: usize) -> String {
    let before = body.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .collect()
}

/// Returns the ranges to cut for the first handler of ours, from top to bottom. `None` if there is
/// none.
fn checkrein_handler_removal_ranges(
    body: &str,
    parsed: &JsonWithPositions,
    inserted: &[String],
) -> Option<Vec<(usize, usize)>> {
    let root = &parsed.root;
    for (hooks_at, hooks) in json_members_named(root, "hooks") {
        for (event_at, event) in hooks.members_if_object_node().iter().enumerate() {
            for (group_at, group) in event.value.items_if_json_list().iter().enumerate() {
                let Some(handlers) = group.json_value_of_key("hooks") else {
                    continue;
                };
                let ours = handlers
                    .items_if_json_list()
                    .iter()
                    .position(is_checkrein_handler);
                let Some(handler_at) = ours else { continue };
                // What holds nothing but this handler goes with it, but only if we made it: an
                // empty list that was there before stays. Without a record (`inserted` is empty)
                // everything empty is taken for ours.
                let made = |name: &str| inserted.is_empty() || is_inserted_key(inserted, name);
                return Some(if handlers.items_if_json_list().len() > 1 {
                    ranges_to_cut_one_child(body, parsed, handlers, handler_at)
                } else if event.value.items_if_json_list().len() > 1 || !made(&event.key) {
                    ranges_to_cut_one_child(body, parsed, &event.value, group_at)
                } else if hooks.members_if_object_node().len() > 1 || !made("hooks") {
                    ranges_to_cut_one_child(body, parsed, hooks, event_at)
                } else {
                    ranges_to_cut_one_child(body, parsed, root, hooks_at)
                });
            }
        }
    }
    None
}

fn json_members_named<'a>(
    node: &'a JsonValueWithSpan,
    key: &'a str,
) -> impl Iterator<Item = (usize, &'a JsonValueWithSpan)> {
    let named = node.members_if_object_node().iter().enumerate();
    named
        .filter(move |(_, member)| member.key == key)
        .map(|(at, member)| (at, &member.value))
}

/// Returns whether the inserted texts brought this key with them.
fn is_inserted_key(inserted: &[String], name: &str) -> bool {
    let key = quote_as_json_string(name);
    inserted.iter().any(|piece| {
        let piece = piece.trim_start_matches([',', ' ', '\t', '\r', '\n']);
        match name {
            // Every group has a key of this name as well.
            "hooks" => {
                let top = piece.trim_start_matches(['{', ' ', '\t', '\r', '\n']);
                top.starts_with(&key)
                    && !top.starts_with(&format!("{key}: ["))
                    && !top.starts_with(&format!("{key}:["))
            }
            _ => piece.contains(&format!("{key}:")),
        }
    })
}

fn is_checkrein_handler(handler: &JsonValueWithSpan) -> bool {
    let Some(command) = handler
        .json_value_of_key("command")
        .and_then(JsonValueWithSpan::json_string_value)
    else {
        return false;
    };
    let args = handler
        .json_value_of_key("args")
        .filter(|args| args.is_json_array())
        .map(|args| {
            let texts = args
                .items_if_json_list()
                .iter()
                .filter_map(JsonValueWithSpan::json_string_value);
            texts.map(str::to_owned).collect()
        });
    HookHandlerInvocation::Command {
        command: command.to_owned(),
        args,
    }
    .is_checkrein_hook()
}

/// Returns the ranges to cut for one child of a list or an object: with the comma that is no longer
/// needed and the blanks before it. Comments stay.
fn ranges_to_cut_one_child(
    body: &str,
    parsed: &JsonWithPositions,
    holder: &JsonValueWithSpan,
    at: usize,
) -> Vec<(usize, usize)> {
    let children = holder.child_ranges();
    let Some(&(start, end)) = children.get(at) else {
        return Vec::new();
    };
    let inside = holder.end.saturating_sub(1);
    let next = children.get(at + 1);
    let before = at.checked_sub(1).and_then(|at| children.get(at));
    // The cases below are: a child with one after it, the last of several, and the only one.
    let comma_after = parsed
        .json_tokens_between(end, next.map_or(inside, |next| next.0))
        .find(|mark| mark.comma);
    match (before, next) {
        (_, Some(_)) => {
            let after = comma_after.map_or(end, |mark| mark.end);
            // Up to the next token, which may be a comment that belongs to the next child.
            let to = parsed
                .next_json_token_from(after)
                .map_or(after, |mark| mark.start);
            vec![(start, to)]
        }
        (Some(before), None) => match comma_after {
            // The child before keeps its comma, as the file's trailing one.
            Some(trailing) => vec![(whitespace_start_before(body, parsed, start), trailing.end)],
            None => {
                let comma = parsed
                    .json_tokens_between(before.1, start)
                    .find(|mark| mark.comma);
                let from = whitespace_start_before(body, parsed, start);
                match comma {
                    Some(comma) if comma.end == from => vec![(comma.start, end)],
                    // A comment stands between the comma and the child: both are cut around it.
                    Some(comma) => vec![(comma.start, comma.end), (from, end)],
                    None => vec![(from, end)],
                }
            }
        },
        (None, None) => {
            let to = comma_after.map_or(end, |mark| mark.end);
            let rest = body.get(to..inside).unwrap_or_default();
            let from = whitespace_start_before(body, parsed, start);
            // With nothing but blanks left, the brackets close up, as in `[]`.
            let empty = from == holder.start + 1 && rest.trim().is_empty();
            vec![(from, if empty { inside } else { to })]
        }
    }
}

/// Returns where the blanks before a place begin. The line end after a line comment is no blank.
fn whitespace_start_before(body: &str, parsed: &JsonWithPositions, at: usize) -> usize {
    let before = body.get(..at).unwrap_or_default();
    let from = before.trim_end_matches([' ', '\t', '\r', '\n']).len();
    let comment = parsed
        .token_ending_at(from)
        .is_some_and(|mark| mark.to_line_end);
    let blanks = before.get(from..).unwrap_or_default();
    match blanks.find('\n') {
        Some(end) if comment => from + end + 1,
        _ => from,
    }
}
