//! Hook entries in an agent's JSON settings: put in as the file is written already (its line
//! ends, its indentation, one line or many), taken out to the byte.

use checkrein_adapters::settings::HookHandlerAction;

use super::fresh::quoted;
use super::parsed::{Node, Parsed};
use super::{Edited, Fresh, Trouble, insert, without};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// An event's name and the group to be added to its list.
pub(crate) type Entry = (&'static str, Fresh);

/// Puts a group into each event's list, at its end.
pub(crate) fn install(text: &str, entries: &[Entry]) -> Result<Edited, Trouble> {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let offset = text.len() - body.len();
    let style = Style::of(body);
    if body.trim().is_empty() {
        let written = style.document(entries);
        let end = if body.is_empty() { style.newline } else { "" };
        return Ok(insert(text, vec![(offset, format!("{written}{end}"))]));
    }
    let parsed = Parsed::of(body)?;
    let splices = places(body, &parsed, &style, entries)?;
    let splices = splices.into_iter().map(|(at, piece)| (at + offset, piece));
    Ok(insert(text, splices.collect()))
}

/// Takes our entries out: the very text that was put in if it is still there, else the entries
/// and what only held them.
pub(crate) fn remove(text: &str, inserted: &[String]) -> Result<String, Trouble> {
    if let Some(kept) = without(text, inserted)
        && !holds_ours(&kept)
        && (is_whole(&kept) || !is_whole(text))
    {
        return Ok(kept);
    }
    let mut text = text.to_owned();
    // Each turn takes one handler out; a file has fewer of them than bytes.
    for _ in 0..text.len() {
        let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
        let offset = text.len() - body.len();
        if body.trim().is_empty() {
            break;
        }
        let parsed = Parsed::of(body)?;
        let Some(cuts) = first_of_ours(body, &parsed, inserted) else {
            break;
        };
        for (from, to) in cuts.into_iter().rev() {
            text.replace_range(from + offset..to + offset, "");
        }
    }
    Ok(text)
}

/// Whether any handler in it is ours.
pub(crate) fn holds_ours(text: &str) -> bool {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    Parsed::of(body).is_ok_and(|parsed| first_of_ours(body, &parsed, &[]).is_some())
}

/// Whether it is blank, or JSON to its end.
fn is_whole(text: &str) -> bool {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    body.trim().is_empty() || Parsed::of(body).is_ok()
}

/// Whether nothing is left of a file but its braces.
pub(crate) fn is_bare(text: &str) -> bool {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let blank = |c: &char| !c.is_whitespace();
    matches!(
        body.chars().filter(blank).collect::<String>().as_str(),
        "" | "{}"
    )
}

/// How a file is written.
struct Style {
    newline: &'static str,
    unit: String,
    /// All of it is on one line.
    tight: bool,
}

impl Style {
    fn of(body: &str) -> Self {
        let newline = if body.contains("\r\n") { "\r\n" } else { "\n" };
        let trimmed = body.trim();
        let mut indents = body.lines().skip(1).filter_map(|line| {
            let rest = line.trim_start_matches([' ', '\t']);
            let indent = line.strip_suffix(rest)?;
            (rest.starts_with('"') && !indent.is_empty()).then(|| indent.to_owned())
        });
        Self {
            newline,
            unit: indents.next().unwrap_or_else(|| "  ".to_owned()),
            tight: !trimmed.contains('\n') && !is_bare(trimmed) && !trimmed.is_empty(),
        }
    }

    /// A new file's text, without a last line end.
    fn document(&self, entries: &[Entry]) -> String {
        let hooks = self.member("hooks", entries, &self.unit);
        format!("{{{0}{1}{hooks}{0}}}", self.newline, self.unit)
    }

    /// `"hooks": { events }`, the first line's indentation left to the caller.
    fn member(&self, key: &str, entries: &[Entry], indent: &str) -> String {
        let key = quoted(key);
        if self.tight {
            let events: Vec<String> = entries.iter().map(|entry| self.event(entry, "")).collect();
            return format!("{key}:{{{}}}", events.join(","));
        }
        let inner = format!("{indent}{}", self.unit);
        let events: Vec<String> = entries
            .iter()
            .map(|entry| format!("{inner}{}", self.event(entry, &inner)))
            .collect();
        let between = format!(",{}", self.newline);
        format!(
            "{key}: {{{0}{1}{0}{indent}}}",
            self.newline,
            events.join(&between)
        )
    }

    /// `"Stop": [ group ]`
    fn event(&self, (event, group): &Entry, indent: &str) -> String {
        let key = quoted(event);
        let group = group.line(!self.tight);
        if self.tight {
            return format!("{key}:[{group}]");
        }
        format!(
            "{key}: [{0}{indent}{1}{group}{0}{indent}]",
            self.newline, self.unit
        )
    }
}

/// What to put where.
fn places(
    body: &str,
    parsed: &Parsed,
    style: &Style,
    entries: &[Entry],
) -> Result<Vec<(usize, String)>, Trouble> {
    let shape = |place: &str, wanted: &str| Trouble {
        place: place.to_owned(),
        what: format!("this is not {wanted}, so nothing can be added to it"),
    };
    let root = &parsed.root;
    if !root.is_object() {
        return Err(shape("line 1, column 1", "an object"));
    }
    let Some(hooks) = root.get("hooks") else {
        let end = End::of(body, parsed, style, root);
        return Ok(vec![
            end.splice(style, |indent| style.member("hooks", entries, indent)),
        ]);
    };
    if !hooks.is_object() {
        return Err(shape("hooks", "an object"));
    }
    let mut splices = Vec::new();
    let mut missing: Vec<&Entry> = Vec::new();
    for entry in entries {
        match hooks.get(entry.0) {
            None => missing.push(entry),
            Some(list) if list.is_list() => {
                let end = End::of(body, parsed, style, list);
                splices.push(end.splice(style, |_| entry.1.line(!style.tight)));
            }
            Some(_) => return Err(shape(&format!("hooks.{}", entry.0), "a list")),
        }
    }
    if !missing.is_empty() {
        let end = End::of(body, parsed, style, hooks);
        splices.push(end.splice(style, |indent| {
            let events: Vec<String> = missing
                .iter()
                .map(|entry| style.event(entry, indent))
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

/// The end of a list or an object, where something is added.
struct End {
    at: usize,
    /// Goes before what is added: a comma, if one is needed.
    comma: &'static str,
    /// Each child is on a line of its own, at this indentation.
    lines: bool,
    indent: String,
    /// Goes after what is added.
    close: String,
}

impl End {
    fn of(body: &str, parsed: &Parsed, style: &Style, holder: &Node) -> Self {
        let inside = holder.end.saturating_sub(1);
        let children = holder.children();
        let outer = line_indent(body, holder.start);
        match (children.first(), children.last()) {
            (Some(first), Some(last)) => {
                let trailing = parsed.between(last.1, inside).find(|mark| mark.comma);
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
                let comment = parsed.between(holder.start + 1, inside).last();
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

    /// `added` is told the indentation of its first line.
    fn splice(&self, style: &Style, added: impl FnOnce(&str) -> String) -> (usize, String) {
        let gap = match (self.lines, style.tight) {
            (true, _) => format!("{}{}", style.newline, self.indent),
            (false, true) => String::new(),
            (false, false) => " ".to_owned(),
        };
        let piece = added(&self.indent);
        (self.at, format!("{}{gap}{piece}{}", self.comma, self.close))
    }
}

/// Blanks at the beginning of the line that holds this place.
fn line_indent(body: &str, at: usize) -> String {
    let before = body.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .collect()
}

/// What to cut for the first handler of ours, from top to bottom.
fn first_of_ours(body: &str, parsed: &Parsed, inserted: &[String]) -> Option<Vec<(usize, usize)>> {
    let root = &parsed.root;
    for (hooks_at, hooks) in members_named(root, "hooks") {
        for (event_at, event) in hooks.members().iter().enumerate() {
            for (group_at, group) in event.value.items().iter().enumerate() {
                let Some(handlers) = group.get("hooks") else {
                    continue;
                };
                let ours = handlers.items().iter().position(is_ours);
                let Some(handler_at) = ours else { continue };
                // What holds nothing but this goes with it, if we made it.
                let made = |name: &str| inserted.is_empty() || was_made(inserted, name);
                return Some(if handlers.items().len() > 1 {
                    cut(body, parsed, handlers, handler_at)
                } else if event.value.items().len() > 1 || !made(&event.key) {
                    cut(body, parsed, &event.value, group_at)
                } else if hooks.members().len() > 1 || !made("hooks") {
                    cut(body, parsed, hooks, event_at)
                } else {
                    cut(body, parsed, root, hooks_at)
                });
            }
        }
    }
    None
}

fn members_named<'a>(node: &'a Node, key: &'a str) -> impl Iterator<Item = (usize, &'a Node)> {
    let named = node.members().iter().enumerate();
    named
        .filter(move |(_, member)| member.key == key)
        .map(|(at, member)| (at, &member.value))
}

/// Whether what was put in brought this key with it.
fn was_made(inserted: &[String], name: &str) -> bool {
    let key = quoted(name);
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

fn is_ours(handler: &Node) -> bool {
    let Some(command) = handler.get("command").and_then(Node::text) else {
        return false;
    };
    let args = handler
        .get("args")
        .filter(|args| args.is_list())
        .map(|args| {
            let texts = args.items().iter().filter_map(Node::text);
            texts.map(str::to_owned).collect()
        });
    HookHandlerAction::Command {
        command: command.to_owned(),
        args,
    }
    .is_checkrein_hook()
}

/// The ranges to cut for one child of a list or an object: with the comma that it no longer
/// needs and the blanks before it; comments stay.
fn cut(body: &str, parsed: &Parsed, holder: &Node, at: usize) -> Vec<(usize, usize)> {
    let children = holder.children();
    let Some(&(start, end)) = children.get(at) else {
        return Vec::new();
    };
    let inside = holder.end.saturating_sub(1);
    let next = children.get(at + 1);
    let before = at.checked_sub(1).and_then(|at| children.get(at));
    let comma_after = parsed
        .between(end, next.map_or(inside, |next| next.0))
        .find(|mark| mark.comma);
    match (before, next) {
        (_, Some(_)) => {
            let after = comma_after.map_or(end, |mark| mark.end);
            let to = parsed.next(after).map_or(after, |mark| mark.start);
            vec![(start, to)]
        }
        (Some(before), None) => match comma_after {
            // The one before keeps its comma as the file's trailing one.
            Some(trailing) => vec![(blanks_before(body, parsed, start), trailing.end)],
            None => {
                let comma = parsed.between(before.1, start).find(|mark| mark.comma);
                let from = blanks_before(body, parsed, start);
                match comma {
                    Some(comma) if comma.end == from => vec![(comma.start, end)],
                    Some(comma) => vec![(comma.start, comma.end), (from, end)],
                    None => vec![(from, end)],
                }
            }
        },
        (None, None) => {
            let to = comma_after.map_or(end, |mark| mark.end);
            let rest = body.get(to..inside).unwrap_or_default();
            let from = blanks_before(body, parsed, start);
            let empty = from == holder.start + 1 && rest.trim().is_empty();
            vec![(from, if empty { inside } else { to })]
        }
    }
}

/// Where the blanks before a place begin; the end of a comment's line is no blank.
fn blanks_before(body: &str, parsed: &Parsed, at: usize) -> usize {
    let before = body.get(..at).unwrap_or_default();
    let from = before.trim_end_matches([' ', '\t', '\r', '\n']).len();
    let comment = parsed.ending(from).is_some_and(|mark| mark.to_line_end);
    let blanks = before.get(from..).unwrap_or_default();
    match blanks.find('\n') {
        Some(end) if comment => from + end + 1,
        _ => from,
    }
}
