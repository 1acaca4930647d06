//! Works out the texts that a shell word can expand to: variables that the script sets,
//! placeholders of `xargs` and `find`, and well-known command substitutions. What is known only at
//! run time stays open, as [`UNKNOWN`] or [`PIECE`]. All work is bounded: a script can ask for any
//! amount.

use std::cell::Cell;
use std::collections::HashMap;

use super::glob::is_glob;
use super::paths::{PIECE, ROOT, UNKNOWN};
use super::programs;
use crate::shell::{CommandWord, WordKnowledge};

/// Maximum number of expansions of one word that are told apart.
const MOST: usize = 16;
/// The name under which arguments of scripts and functions are kept, `$1` as well as `$@`.
pub(crate) const POSITIONAL_ARGS: &str = "@";
/// Maximum bytes of all expansions of one word together.
const LONGEST: usize = 16 << 10;
/// Bytes produced plus locations resolved, per request.
const VALUE_BUDGET: usize = 4 << 20;
/// Maximum depth of variables in values of variables.
const DEEPEST: usize = 6;

/// The values that variables can have where a command stands.
#[derive(Debug, Clone)]
pub(crate) struct KnownShellVariables {
    /// What is left of [`VALUE_BUDGET`].
    budget: Cell<usize>,
    /// The values of each variable; `None` stands for a value that is not known.
    variables: HashMap<String, Vec<Option<CommandWord>>>,
}

/// A placeholder in the words of one command, with what it stands for.
pub(crate) type WordPlaceholderAndValues = (String, Vec<CommandWord>);

impl Default for KnownShellVariables {
    fn default() -> Self {
        Self {
            budget: Cell::new(VALUE_BUDGET),
            variables: HashMap::new(),
        }
    }
}

impl KnownShellVariables {
    /// Takes this amount from the budget. Returns `false` if nothing is left.
    pub(crate) fn consume_expansion_budget(&self, amount: usize) -> bool {
        let left = self.budget.get().saturating_sub(amount);
        self.budget.set(left);
        left > 0
    }

    /// Whether the budget is used up.
    pub(crate) fn is_expansion_budget_spent(&self) -> bool {
        self.budget.get() == 0
    }

    /// Records a value that the script sets somewhere. Values accumulate: order is not tracked.
    pub(crate) fn record_shell_variable_value(&mut self, name: &str, value: Option<CommandWord>) {
        // Arguments that a function passes on (`g "$@"`) were recorded at the outer call. Recorded
        // again, they would refer to themselves and end as unknown.
        let handed_on = |word: &CommandWord| {
            ["$@", "$*", "${@", "$1", "${1"]
                .iter()
                .any(|own| word.text.contains(own))
        };
        if name == POSITIONAL_ARGS && value.as_ref().is_some_and(handed_on) {
            return;
        }
        let values = self.variables.entry(name.to_owned()).or_default();
        if values.len() < MOST {
            values.push(value);
        } else {
            // Too many values count as one unknown value; none is dropped silently.
            values.push(None);
            values.truncate(MOST + 1);
        }
    }

    /// Whether a variable is set.
    pub(crate) fn is_variable_set(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// Returns the paths that a word can be. Unknown text in them is [`UNKNOWN`].
    pub(crate) fn possible_paths_of_word(
        &self,
        word: &CommandWord,
        hole: Option<&WordPlaceholderAndValues>,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for filled in fill_word_placeholder(word, hole) {
            if !self.consume_expansion_budget(filled.text.len() + 1) {
                break;
            }
            // An empty unbounded word is what `xargs` appends. Read as an empty path it would mean
            // the working folder.
            match filled.text.is_empty() && filled.knowledge == WordKnowledge::Unbounded {
                true => found.push(UNKNOWN.to_string()),
                false => self.collect_possible_word_values(&filled, 0, &mut found),
            }
        }
        // Callers rely on at least one path: an empty list would mean that nothing is touched.
        let open = found.len() > MOST || found.is_empty();
        found.truncate(MOST);
        if open {
            found.push(UNKNOWN.to_string());
        }
        found
    }

    /// Returns the words that this one expands to if they are certain; else `None`.
    pub(crate) fn expand_to_literal_words(
        &self,
        word: &CommandWord,
        hole: Option<&WordPlaceholderAndValues>,
    ) -> Option<Vec<CommandWord>> {
        if word.knowledge == WordKnowledge::Literal {
            return None;
        }
        let filled = fill_word_placeholder(word, hole);
        // Several values make several commands, not several words of one.
        let [word] = filled.as_slice() else {
            return None;
        };
        let sure = |text: &String| !text.contains([UNKNOWN, ROOT]) && !text.contains(PIECE);
        if word.knowledge == WordKnowledge::Literal {
            return Some(vec![word.clone()]);
        }
        let fixed = |texts: Vec<String>| -> Option<Vec<CommandWord>> {
            let all = texts.iter().all(sure);
            all.then(|| {
                texts
                    .into_iter()
                    .map(CommandWord::new_literal_word)
                    .collect()
            })
        };
        if !word.text.contains(['$', '`']) {
            let only_braces = word.text.contains('{') && !is_glob(&word.text);
            return only_braces
                .then(|| fixed(expand_braces(&word.text)))
                .flatten();
        }
        let mut found = Vec::new();
        self.collect_possible_word_values(
            &CommandWord::word_from_unresolved_text(&word.text, WordKnowledge::SingleWord),
            0,
            &mut found,
        );
        // With two possible values, either may be the real one, so neither is literal.
        let [text] = found.as_slice() else {
            return None;
        };
        let known = match is_array_expansion(&word.text) {
            true => WordKnowledge::Unbounded,
            false => word.knowledge,
        };
        match known {
            // Unquoted, the shell also expands a glob in the value.
            WordKnowledge::Unbounded if is_glob(text) => None,
            WordKnowledge::Unbounded => fixed(text.split_whitespace().map(str::to_owned).collect()),
            WordKnowledge::SingleWord | WordKnowledge::Literal => fixed(vec![text.clone()]),
        }
    }

    /// Returns the texts that a word can expand to, as far as they are wholly known.
    pub(crate) fn known_texts_of_word(&self, word: &CommandWord) -> Vec<String> {
        let open = |text: &String| text.contains([UNKNOWN, ROOT]) || text.contains(PIECE);
        // `[*]` joins an array into one text: its words are one command.
        let text = match is_array_expansion(&word.text) {
            true => word.text.replace("[@]", "[*]"),
            false => word.text.clone(),
        };
        let mut found = Vec::new();
        self.collect_possible_word_values(
            &CommandWord::word_from_unresolved_text(text, WordKnowledge::SingleWord),
            0,
            &mut found,
        );
        found.retain(|text| !text.is_empty() && !open(text));
        found.truncate(MOST);
        found
    }

    /// Fills the placeholder in a word; `None` stands for a value that is not known.
    pub(crate) fn fill_word_placeholder(
        &self,
        word: &CommandWord,
        hole: Option<&WordPlaceholderAndValues>,
    ) -> Vec<Option<CommandWord>> {
        let known = |word: CommandWord| {
            (!word.text.is_empty() || word.knowledge != WordKnowledge::Unbounded).then_some(word)
        };
        fill_word_placeholder(word, hole)
            .into_iter()
            .map(known)
            .collect()
    }

    /// Whether a word could be an option to the program that gets it.
    pub(crate) fn may_be_option(
        &self,
        word: &CommandWord,
        hole: Option<&WordPlaceholderAndValues>,
    ) -> bool {
        // `xargs` appends words of its input, and one of them may begin with a dash.
        if word.text.is_empty() && word.knowledge == WordKnowledge::Unbounded && hole.is_none() {
            return true;
        }
        // A quoted variable of the environment is taken for no option: the script did not set it,
        // so no part of the script can have put a dash there.
        if word.knowledge == WordKnowledge::SingleWord
            && self.begins_with_inherited_variable(&word.text)
        {
            return false;
        }
        let begins = |path: &String| path.starts_with(['-', UNKNOWN]);
        self.possible_paths_of_word(word, hole).iter().any(begins)
    }

    /// Whether a text holds a value that the script computed. A variable that is the whole text
    /// counts only if it holds the output of a command; else it may just be the address.
    pub(crate) fn holds_script_computed_value(&self, text: &str) -> bool {
        let named =
            |name: &str| text.contains(&format!("${name}")) || text.contains(&format!("${{{name}"));
        let printed = |word: &CommandWord| word.text.contains(['`']) || word.text.contains("$(");
        let letter = |c: char| c.is_ascii_alphanumeric() || "_{}".contains(c);
        let alone = text.starts_with('$') && text.chars().skip(1).all(letter);
        self.variables
            .iter()
            .any(|(name, values)| named(name) && (!alone || values.iter().flatten().any(printed)))
    }

    /// Whether a text begins with a variable of which some value satisfies `is_like`.
    pub(crate) fn leading_variable_may_satisfy(
        &self,
        text: &str,
        is_like: impl Fn(&CommandWord) -> bool,
    ) -> bool {
        let values = leading_variable(text).and_then(|name| self.variables.get(name));
        values.is_some_and(|values| values.iter().flatten().any(is_like))
    }

    /// Whether a text begins with a variable that the script does not set.
    fn begins_with_inherited_variable(&self, text: &str) -> bool {
        let Some(name) = leading_variable(text) else {
            return false;
        };
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && !self.variables.contains_key(name)
    }

    fn collect_possible_word_values(
        &self,
        word: &CommandWord,
        depth: usize,
        found: &mut Vec<String>,
    ) {
        if word.knowledge == WordKnowledge::Literal {
            found.push(word.text.clone());
            return;
        }
        if depth > DEEPEST || !self.consume_expansion_budget(word.text.len() + 1) {
            found.push(UNKNOWN.to_string());
            return;
        }
        // Unquoted, the shell splits a value into words; an array expansion splits in quotes, too.
        let alone = word.knowledge == WordKnowledge::Unbounded || is_array_expansion(&word.text);
        let mut texts = vec![String::new()];
        let mut rest = word.text.as_str();
        // Each expansion multiplies the texts so far with its own values. The bounds keep that
        // product small; past them the word is unknown.
        while let Some(at) = rest.find(['$', '`']) {
            let made: usize = texts.iter().map(String::len).sum();
            if made > LONGEST || !self.consume_expansion_budget(made + 1) {
                found.push(UNKNOWN.to_string());
                return;
            }
            let (before, after) = rest.split_at(at);
            for text in &mut texts {
                text.push_str(before);
            }
            let (values, left) = self.leading_expansion_values(after, depth);
            let mut next = Vec::new();
            for text in &texts {
                for value in &values {
                    next.push(format!("{text}{value}"));
                }
            }
            next.truncate(MOST + 1);
            texts = next;
            rest = left;
        }
        for text in &mut texts {
            text.push_str(rest);
        }
        for text in texts {
            for text in expand_braces(&text) {
                if alone && text.contains(char::is_whitespace) {
                    found.extend(text.split_whitespace().map(str::to_owned));
                } else if text.contains(['(', ')', '|']) && alone {
                    found.push(UNKNOWN.to_string());
                } else {
                    found.push(text);
                }
            }
        }
    }

    /// Returns the values of the expansion that a text begins with, and what follows it.
    fn leading_expansion_values<'t>(&self, text: &'t str, depth: usize) -> (Vec<String>, &'t str) {
        let open = || vec![UNKNOWN.to_string()];
        if let Some(inner) = text.strip_prefix("$((") {
            // The result of arithmetic is a number, and a number has no slash.
            let end = inner.find("))").map_or(inner.len(), |at| at + 2);
            return (vec![PIECE.to_owned()], inner.get(end..).unwrap_or(""));
        }
        if let Some(inner) = text.strip_prefix("$(") {
            let (command, rest) = split_at_closing_bracket(inner, '(', ')');
            return (command_substitution_outputs(self, command, depth), rest);
        }
        if let Some(inner) = text.strip_prefix('`') {
            let (command, rest) = inner.split_once('`').unwrap_or((inner, ""));
            return (command_substitution_outputs(self, command, depth), rest);
        }
        if let Some(inner) = text.strip_prefix("${") {
            let (inner, rest) = split_at_closing_bracket(inner, '{', '}');
            return (self.expand_braced_variable(inner, depth), rest);
        }
        let after = text.get(1..).unwrap_or("");
        let end = match after.chars().next() {
            Some(c) if c.is_ascii_alphabetic() || c == '_' => after
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .unwrap_or(after.len()),
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => 1,
            // `$"..."`, or a dollar of its own.
            _ => return (vec!["$".to_owned()], after),
        };
        let (name, rest) = after.split_at(end);
        let values = self.variable_values(name, depth);
        (if values.is_empty() { open() } else { values }, rest)
    }

    fn variable_values(&self, name: &str, depth: usize) -> Vec<String> {
        // All arguments share one entry: which of them is `$1` is not tracked.
        let given = name == "*" || name.chars().all(|c| c.is_ascii_digit()) && !name.is_empty();
        let name = if given { POSITIONAL_ARGS } else { name };
        let known = self.variables.get(name);
        // The shell or the login sets these. `TMPDIR` is taken for `/tmp`, the usual value, because
        // scratch files are ordinary work.
        let own = match name {
            "HOME" => Some("~"),
            "PWD" | "CWD" => Some("."),
            "TMPDIR" => Some("/tmp/?*"),
            "RANDOM" | "$" | "?" | "#" | "!" | "UID" | "EUID" | "PPID" | "SECONDS"
            | "EPOCHSECONDS" | "LINENO" | "BASHPID" | "SRANDOM" | "HOSTNAME" | "USER"
            | "LOGNAME" | "OSTYPE" | "HOSTTYPE" | "MACHTYPE" | "BASH_VERSION" | "SHLVL" => {
                Some(PIECE)
            }
            _ => None,
        };
        match (known, own) {
            (Some(values), _) => {
                let mut found = Vec::new();
                for value in values {
                    match value {
                        Some(word) => {
                            self.collect_possible_word_values(word, depth + 1, &mut found)
                        }
                        None => found.push(UNKNOWN.to_string()),
                    }
                    // Cutting the list would lose values, so that a dangerous one could be missed.
                    if found.len() > MOST {
                        return vec![UNKNOWN.to_string()];
                    }
                }
                found
            }
            (None, Some(text)) => vec![text.to_owned()],
            (None, None) => vec![UNKNOWN.to_string()],
        }
    }

    /// Returns the values of `${...}`, given what stands between the braces.
    fn expand_braced_variable(&self, inner: &str, depth: usize) -> Vec<String> {
        // `${#x}` is a length.
        if inner.starts_with('#') && inner.len() > 1 {
            return vec![PIECE.to_owned()];
        }
        let end = inner
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(inner.len());
        let (name, action) = inner.split_at(end);
        let values = self.variable_values(name, depth);
        // All elements of an array, which is kept as one text of its words.
        if matches!(action, "[@]" | "[*]") {
            return values;
        }
        let Some(sign) = action.chars().next() else {
            return values;
        };
        let rest = action.get(1..).unwrap_or("");
        match sign {
            '%' | '#' => {
                let pattern = rest.trim_start_matches(sign);
                values
                    .iter()
                    .map(|value| trim_by_pattern(value, sign, pattern))
                    .collect()
            }
            ':' | '-' | '=' | '+' | '?' => {
                let default = match action.strip_prefix(':').unwrap_or(action) {
                    text if text.starts_with(['-', '=', '+']) => text.get(1..).unwrap_or(""),
                    // `${x:?message}` ends the script if `x` is unset, so that only its values are
                    // left.
                    text if text.starts_with('?') => return values,
                    // A piece of it: `${x:0:7}`.
                    _ => {
                        return values
                            .iter()
                            .map(|value| unknown_substring_marker(value))
                            .collect();
                    }
                };
                let mut all = match self.variables.contains_key(name) {
                    true => values,
                    // The environment may set it to anything, but the default shows what is meant.
                    false => Vec::new(),
                };
                let default = default.trim_matches(['"', '\'']);
                let word =
                    CommandWord::word_from_unresolved_text(default, WordKnowledge::SingleWord);
                self.collect_possible_word_values(&word, depth + 1, &mut all);
                all
            }
            '^' | ',' | '@' => values
                .iter()
                .map(|value| unknown_substring_marker(value))
                .collect(),
            _ => vec![UNKNOWN.to_string()],
        }
    }
}

/// Whether a text is an array expansion with a word for each element: `${a[@]}`.
fn is_array_expansion(text: &str) -> bool {
    let name = text
        .strip_prefix("${")
        .and_then(|text| text.strip_suffix("[@]}"));
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// Returns the name of the variable that a text begins with.
fn leading_variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?.trim_start_matches('{');
    let end = name
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(name.len());
    name.get(..end)
}

/// Trims a value as `%` and `#` do. Its folder stays known if only the file name was cut.
fn trim_by_pattern(value: &str, sign: char, pattern: &str) -> String {
    let within = !pattern.contains(['/', '*', '$', '?']);
    match (sign, value.rsplit_once('/')) {
        _ if value.contains(UNKNOWN) && !within => UNKNOWN.to_string(),
        ('%', Some((folder, _))) if within => format!("{folder}/{PIECE}"),
        // `${x##*/}`
        ('#', _) if pattern == "*/" => PIECE.to_owned(),
        // `${x%.*}`
        ('%', Some((folder, _))) if pattern == ".*" => format!("{folder}/{PIECE}"),
        (_, None) => unknown_substring_marker(value),
        _ => UNKNOWN.to_string(),
    }
}

/// Marks an unknown part of a value. A value without a slash has no part with one.
fn unknown_substring_marker(value: &str) -> String {
    if value.contains(['/', '~', UNKNOWN]) {
        UNKNOWN.to_string()
    } else {
        PIECE.to_owned()
    }
}

/// Splits at the bracket that closes, counting nested pairs.
fn split_at_closing_bracket(text: &str, open: char, close: char) -> (&str, &str) {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            if depth == 0 {
                return (
                    text.get(..at).unwrap_or(""),
                    text.get(at + 1..).unwrap_or(""),
                );
            }
            depth -= 1;
        }
    }
    (text, "")
}

/// Returns what a command in a substitution prints, if that is a known path or has no slash.
fn command_substitution_outputs(
    names: &KnownShellVariables,
    command: &str,
    depth: usize,
) -> Vec<String> {
    let open = vec![UNKNOWN.to_string()];
    // Only the first command of a pipe is looked up; what filters its output is checked per case.
    let first = command.split('|').next().unwrap_or(command);
    let Some(words) = shlex::split(first.trim()) else {
        return open;
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let plain = words
        .iter()
        .all(|word| !word.contains(['$', '`', ';', '&', '<', '>', '(']));
    match words.as_slice() {
        ["pwd", ..] => vec![".".to_owned()],
        ["git", "rev-parse", "--show-toplevel"] => vec![ROOT.to_string()],
        // `-p FOLDER` and `--tmpdir=FOLDER` make the file in another folder.
        ["mktemp", rest @ ..]
            if rest.iter().all(|word| {
                word.starts_with('-') && !matches!(*word, "-p") && !word.contains('=')
            }) =>
        {
            vec![format!("/tmp/{PIECE}")]
        }
        [
            "date" | "nproc" | "whoami" | "hostname" | "uname" | "arch" | "seq" | "basename" | "id"
            | "expr" | "wc" | "uuidgen",
            ..,
        ]
        | [
            "git",
            "rev-parse" | "describe" | "merge-base" | "branch" | "symbolic-ref",
            ..,
        ]
        | [
            "node" | "python" | "python3" | "cargo" | "rustc" | "go" | "ruby",
            "--version" | "-v" | "-V" | "version",
        ] => {
            vec![PIECE.to_owned()]
        }
        ["dirname", path] if !path.contains(['`', '(']) => {
            let mut found = Vec::new();
            names.collect_possible_word_values(
                &CommandWord::word_from_unresolved_text(*path, WordKnowledge::SingleWord),
                depth + 1,
                &mut found,
            );
            found
                .iter()
                .map(|path| match path.rsplit_once('/') {
                    Some(("", _)) => "/".to_owned(),
                    Some((folder, _)) => folder.to_owned(),
                    None if path.contains(UNKNOWN) => UNKNOWN.to_string(),
                    None => ".".to_owned(),
                })
                .collect()
        }
        ["echo", path] if !path.contains(['`', '(']) => {
            let mut found = Vec::new();
            names.collect_possible_word_values(
                &CommandWord::word_from_unresolved_text(*path, WordKnowledge::SingleWord),
                depth + 1,
                &mut found,
            );
            // What a filter leaves of the text is not known, but it adds no slash.
            let cut = command.contains('|');
            if cut {
                found
                    .iter()
                    .map(|value| unknown_substring_marker(value))
                    .collect()
            } else {
                found
            }
        }
        // `for f in $(find ...)`: the command names files, one a line.
        _ if plain && pipeline_only_filters_or_sorts_lines(command) => {
            let words: Vec<CommandWord> = words
                .iter()
                .map(|word| CommandWord::new_literal_word(*word))
                .collect();
            match programs::printed_file_names(&words) {
                Some(found) => found.into_iter().map(|word| word.text).collect(),
                None => open,
            }
        }
        _ => open,
    }
}

/// Whether the rest of a pipeline only selects or sorts lines, and changes none.
fn pipeline_only_filters_or_sorts_lines(command: &str) -> bool {
    command.split('|').skip(1).all(|part| {
        matches!(
            part.split_whitespace().next(),
            Some("sort" | "head" | "tail" | "uniq" | "grep" | "shuf")
        ) && !part.contains("-o")
    })
}

/// Returns the words that a placeholder in this one makes of it.
fn fill_word_placeholder(
    word: &CommandWord,
    hole: Option<&WordPlaceholderAndValues>,
) -> Vec<CommandWord> {
    let Some((placeholder, values)) = hole.filter(|_| word.knowledge != WordKnowledge::Literal)
    else {
        return vec![word.clone()];
    };
    // An empty placeholder is `xargs` without `-I`: it appends its words at the end.
    if placeholder.is_empty() {
        return match word.text.is_empty() {
            true => values.clone(),
            false => vec![word.clone()],
        };
    }
    let Some(at) = word.text.find(placeholder.as_str()) else {
        return vec![word.clone()];
    };
    values
        .iter()
        .map(|value| {
            // Text around it makes another name: `{}.bak`.
            let mut text = word.text.clone();
            text.replace_range(at..at + placeholder.len(), &value.text);
            match value.knowledge {
                WordKnowledge::Literal | WordKnowledge::Unbounded if !text.contains(['$', '`']) => {
                    CommandWord::new_literal_word(text)
                }
                _ => CommandWord::word_from_unresolved_text(text, WordKnowledge::SingleWord),
            }
        })
        .collect()
}

/// Expands braces as the shell does (`a{b,c}d`); a range such as `{1..3}` becomes a [`PIECE`].
fn expand_braces(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    let mut rounds = 0;
    while let Some(text) = open.pop() {
        rounds += 1;
        // Nested braces grow exponentially.
        if rounds > 64 {
            done.push(UNKNOWN.to_string());
            break;
        }
        let Some(end) = text.find('}') else {
            done.push(text);
            continue;
        };
        let Some(start) = text.get(..end).and_then(|before| before.rfind('{')) else {
            done.push(text);
            continue;
        };
        let (before, inner, after) = (
            text.get(..start).unwrap_or(""),
            text.get(start + 1..end).unwrap_or(""),
            text.get(end + 1..).unwrap_or(""),
        );
        // The innermost pair comes first: from the first `}` back to the nearest `{`.
        if inner.contains(',') {
            open.extend(
                inner
                    .rsplit(',')
                    .map(|part| format!("{before}{part}{after}")),
            );
        } else if inner.contains("..") {
            open.push(format!("{before}{PIECE}{after}"));
        } else {
            // `{}` without a comma stays as it is in the shell, and is a placeholder of `find` or
            // `xargs` that was not filled.
            open.push(format!("{before}{UNKNOWN}{after}"));
        }
    }
    done
}
