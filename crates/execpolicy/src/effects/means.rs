//! What a word can mean as a path: variables of the script, placeholders, well-known
//! substitutions. What only the run knows stays open.

use std::cell::Cell;
use std::collections::HashMap;

use super::glob::wild;
use super::place::{PIECE, ROOT, UNKNOWN};
use super::table;
use crate::shell::{Known, Word};

/// Meanings of one word that are told apart.
const MOST: usize = 16;
/// Stands for what a script or a function is given, `$1` as well as `$@`.
pub(crate) const GIVEN: &str = "@";
/// Bytes of all the meanings of one word.
const LONGEST: usize = 16 << 10;
/// Bytes that are made, and places that are worked out, for one request.
const FUEL: usize = 4 << 20;
/// Variables in values of variables.
const DEEPEST: usize = 6;

/// What names stand for where a command stands.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// What may still be worked out: a script can ask for any amount.
    fuel: Cell<usize>,
    /// Variables; `None` among the values if one is not known.
    variables: HashMap<String, Vec<Option<Word>>>,
}

/// A placeholder in the words of one command, with what it stands for.
pub(crate) type Hole = (String, Vec<Word>);

impl Default for Names {
    fn default() -> Self {
        Self {
            fuel: Cell::new(FUEL),
            variables: HashMap::new(),
        }
    }
}

impl Names {
    /// Takes so much of what may be worked out; `false` if there is no more.
    pub(crate) fn burn(&self, amount: usize) -> bool {
        let left = self.fuel.get().saturating_sub(amount);
        self.fuel.set(left);
        left > 0
    }

    /// Whether all of it has been used.
    pub(crate) fn is_spent(&self) -> bool {
        self.fuel.get() == 0
    }

    /// A variable is set, somewhere.
    pub(crate) fn set(&mut self, name: &str, value: Option<Word>) {
        // What functions hand on to one another was set before.
        let handed_on = |word: &Word| {
            ["$@", "$*", "${@", "$1", "${1"]
                .iter()
                .any(|own| word.text.contains(own))
        };
        if name == GIVEN && value.as_ref().is_some_and(handed_on) {
            return;
        }
        let values = self.variables.entry(name.to_owned()).or_default();
        if values.len() < MOST {
            values.push(value);
        } else {
            values.push(None);
            values.truncate(MOST + 1);
        }
    }

    /// Whether a variable is set.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// The paths that a word can be. What is not known of them holds [`UNKNOWN`].
    pub(crate) fn paths(&self, word: &Word, hole: Option<&Hole>) -> Vec<String> {
        let mut found = Vec::new();
        for filled in fill(word, hole) {
            if !self.burn(filled.text.len() + 1) {
                break;
            }
            // What `xargs` adds, of which nothing is known: not the folder that it runs in.
            match filled.text.is_empty() && filled.known == Known::Many {
                true => found.push(UNKNOWN.to_string()),
                false => self.expand(&filled, 0, &mut found),
            }
        }
        let open = found.len() > MOST || found.is_empty();
        found.truncate(MOST);
        if open {
            found.push(UNKNOWN.to_string());
        }
        found
    }

    /// The words that this one becomes, if that can be told; `None` if it is as it stands.
    pub(crate) fn settled(&self, word: &Word, hole: Option<&Hole>) -> Option<Vec<Word>> {
        if word.known == Known::Fixed {
            return None;
        }
        let filled = fill(word, hole);
        let [word] = filled.as_slice() else {
            return None;
        };
        let sure = |text: &String| !text.contains([UNKNOWN, ROOT]) && !text.contains(PIECE);
        if word.known == Known::Fixed {
            return Some(vec![word.clone()]);
        }
        let fixed = |texts: Vec<String>| -> Option<Vec<Word>> {
            let all = texts.iter().all(sure);
            all.then(|| texts.into_iter().map(Word::fixed).collect())
        };
        if !word.text.contains(['$', '`']) {
            let only_braces = word.text.contains('{') && !wild(&word.text);
            return only_braces.then(|| fixed(braces(&word.text))).flatten();
        }
        let mut found = Vec::new();
        self.expand(&Word::open(&word.text, Known::One), 0, &mut found);
        let [text] = found.as_slice() else {
            return None;
        };
        let known = match is_list(&word.text) {
            true => Known::Many,
            false => word.known,
        };
        match known {
            Known::Many if wild(text) => None,
            Known::Many => fixed(text.split_whitespace().map(str::to_owned).collect()),
            Known::One | Known::Fixed => fixed(vec![text.clone()]),
        }
    }

    /// The texts that a word can become, as far as they are wholly known.
    pub(crate) fn constants(&self, word: &Word) -> Vec<String> {
        let open = |text: &String| text.contains([UNKNOWN, ROOT]) || text.contains(PIECE);
        // A list as one text: its words are one command.
        let text = match is_list(&word.text) {
            true => word.text.replace("[@]", "[*]"),
            false => word.text.clone(),
        };
        let mut found = Vec::new();
        self.expand(&Word::open(text, Known::One), 0, &mut found);
        found.retain(|text| !text.is_empty() && !open(text));
        found.truncate(MOST);
        found
    }

    /// A word with its placeholder filled; `None` for what is not known.
    pub(crate) fn filled(&self, word: &Word, hole: Option<&Hole>) -> Vec<Option<Word>> {
        let known =
            |word: Word| (!word.text.is_empty() || word.known != Known::Many).then_some(word);
        fill(word, hole).into_iter().map(known).collect()
    }

    /// Whether a word could be an option to the program that gets it.
    pub(crate) fn may_be_option(&self, word: &Word, hole: Option<&Hole>) -> bool {
        // What `xargs` adds.
        if word.text.is_empty() && word.known == Known::Many && hole.is_none() {
            return true;
        }
        // Between quotes, what the environment holds is none; nothing of this script set it.
        if word.known == Known::One && self.is_inherited(&word.text) {
            return false;
        }
        let begins = |path: &String| path.starts_with(['-', UNKNOWN]);
        self.paths(word, hole).iter().any(begins)
    }

    /// Whether a text holds something that the script worked out: a variable alone may be where it
    /// goes, but not what a command printed.
    pub(crate) fn is_partly_set(&self, text: &str) -> bool {
        let named =
            |name: &str| text.contains(&format!("${name}")) || text.contains(&format!("${{{name}"));
        let printed = |word: &Word| word.text.contains(['`']) || word.text.contains("$(");
        let letter = |c: char| c.is_ascii_alphanumeric() || "_{}".contains(c);
        let alone = text.starts_with('$') && text.chars().skip(1).all(letter);
        self.variables
            .iter()
            .any(|(name, values)| named(name) && (!alone || values.iter().flatten().any(printed)))
    }

    /// Whether the variable that a text begins with is set to something like this.
    pub(crate) fn sets(&self, text: &str, is_like: impl Fn(&Word) -> bool) -> bool {
        let values = first_name(text).and_then(|name| self.variables.get(name));
        values.is_some_and(|values| values.iter().flatten().any(is_like))
    }

    /// Whether a text begins with a variable that the script does not set.
    fn is_inherited(&self, text: &str) -> bool {
        let Some(name) = first_name(text) else {
            return false;
        };
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && !self.variables.contains_key(name)
    }

    fn expand(&self, word: &Word, depth: usize, found: &mut Vec<String>) {
        if word.known == Known::Fixed {
            found.push(word.text.clone());
            return;
        }
        if depth > DEEPEST || !self.burn(word.text.len() + 1) {
            found.push(UNKNOWN.to_string());
            return;
        }
        // Bare, a value can become many words; between other text only the edges are more.
        let alone = word.known == Known::Many || is_list(&word.text);
        let mut texts = vec![String::new()];
        let mut rest = word.text.as_str();
        while let Some(at) = rest.find(['$', '`']) {
            let made: usize = texts.iter().map(String::len).sum();
            if made > LONGEST || !self.burn(made + 1) {
                found.push(UNKNOWN.to_string());
                return;
            }
            let (before, after) = rest.split_at(at);
            for text in &mut texts {
                text.push_str(before);
            }
            let (values, left) = self.expansion(after, depth);
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
            for text in braces(&text) {
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

    /// What an expansion at the start of a text can be, and what follows it.
    fn expansion<'t>(&self, text: &'t str, depth: usize) -> (Vec<String>, &'t str) {
        let open = || vec![UNKNOWN.to_string()];
        if let Some(inner) = text.strip_prefix("$((") {
            let end = inner.find("))").map_or(inner.len(), |at| at + 2);
            return (vec![PIECE.to_owned()], inner.get(end..).unwrap_or(""));
        }
        if let Some(inner) = text.strip_prefix("$(") {
            let (command, rest) = closed(inner, '(', ')');
            return (substituted(self, command, depth), rest);
        }
        if let Some(inner) = text.strip_prefix('`') {
            let (command, rest) = inner.split_once('`').unwrap_or((inner, ""));
            return (substituted(self, command, depth), rest);
        }
        if let Some(inner) = text.strip_prefix("${") {
            let (inner, rest) = closed(inner, '{', '}');
            return (self.braced(inner, depth), rest);
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
        let values = self.value(name, depth);
        (if values.is_empty() { open() } else { values }, rest)
    }

    fn value(&self, name: &str, depth: usize) -> Vec<String> {
        let given = name == "*" || name.chars().all(|c| c.is_ascii_digit()) && !name.is_empty();
        let name = if given { GIVEN } else { name };
        let known = self.variables.get(name);
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
                        Some(word) => self.expand(word, depth + 1, &mut found),
                        None => found.push(UNKNOWN.to_string()),
                    }
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

    /// The inside of `${...}`.
    fn braced(&self, inner: &str, depth: usize) -> Vec<String> {
        if inner.starts_with('#') && inner.len() > 1 {
            return vec![PIECE.to_owned()];
        }
        let end = inner
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(inner.len());
        let (name, action) = inner.split_at(end);
        let values = self.value(name, depth);
        // All of a list, which is kept as its words.
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
                    .map(|value| cut(value, sign, pattern))
                    .collect()
            }
            ':' | '-' | '=' | '+' | '?' => {
                let default = match action.strip_prefix(':').unwrap_or(action) {
                    text if text.starts_with(['-', '=', '+']) => text.get(1..).unwrap_or(""),
                    text if text.starts_with('?') => return values,
                    // A piece of it: `${x:0:7}`.
                    _ => return values.iter().map(|value| piece(value)).collect(),
                };
                let mut all = match self.variables.contains_key(name) {
                    true => values,
                    // What the environment holds is not known, but the default says what is meant.
                    false => Vec::new(),
                };
                let default = default.trim_matches(['"', '\'']);
                let word = Word::open(default, Known::One);
                self.expand(&word, depth + 1, &mut all);
                all
            }
            '^' | ',' | '@' => values.iter().map(|value| piece(value)).collect(),
            _ => vec![UNKNOWN.to_string()],
        }
    }
}

/// Whether a text is all of a list, a word for each of its own: `${a[@]}`.
fn is_list(text: &str) -> bool {
    let name = text
        .strip_prefix("${")
        .and_then(|text| text.strip_suffix("[@]}"));
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// The name of the variable that a text begins with.
fn first_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?.trim_start_matches('{');
    let end = name
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(name.len());
    name.get(..end)
}

/// A value of which some has been cut: its folder stays if only the name was.
fn cut(value: &str, sign: char, pattern: &str) -> String {
    let within = !pattern.contains(['/', '*', '$', '?']);
    match (sign, value.rsplit_once('/')) {
        _ if value.contains(UNKNOWN) && !within => UNKNOWN.to_string(),
        ('%', Some((folder, _))) if within => format!("{folder}/{PIECE}"),
        // `${x##*/}`
        ('#', _) if pattern == "*/" => PIECE.to_owned(),
        // `${x%.*}`
        ('%', Some((folder, _))) if pattern == ".*" => format!("{folder}/{PIECE}"),
        (_, None) => piece(value),
        _ => UNKNOWN.to_string(),
    }
}

/// Some of a value: no slash comes in if there was none.
fn piece(value: &str) -> String {
    if value.contains(['/', '~', UNKNOWN]) {
        UNKNOWN.to_string()
    } else {
        PIECE.to_owned()
    }
}

/// What stands before the bracket that closes, and what follows it.
fn closed(text: &str, open: char, close: char) -> (&str, &str) {
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

/// What a command in a substitution prints, as far as it is a path or holds no slash.
fn substituted(names: &Names, command: &str, depth: usize) -> Vec<String> {
    let open = vec![UNKNOWN.to_string()];
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
            names.expand(&Word::open(*path, Known::One), depth + 1, &mut found);
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
            names.expand(&Word::open(*path, Known::One), depth + 1, &mut found);
            let cut = command.contains('|');
            if cut {
                found.iter().map(|value| piece(value)).collect()
            } else {
                found
            }
        }
        _ if plain && filtered(command) => {
            let words: Vec<Word> = words.iter().map(|word| Word::fixed(*word)).collect();
            match table::names_printed(&words) {
                Some(found) => found.into_iter().map(|word| word.text).collect(),
                None => open,
            }
        }
        _ => open,
    }
}

/// Whether the rest of a pipe leaves the lines as they are.
fn filtered(command: &str) -> bool {
    command.split('|').skip(1).all(|part| {
        matches!(
            part.split_whitespace().next(),
            Some("sort" | "head" | "tail" | "uniq" | "grep" | "shuf")
        ) && !part.contains("-o")
    })
}

/// A word with a placeholder filled.
fn fill(word: &Word, hole: Option<&Hole>) -> Vec<Word> {
    let Some((placeholder, values)) = hole.filter(|_| word.known != Known::Fixed) else {
        return vec![word.clone()];
    };
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
            match value.known {
                Known::Fixed | Known::Many if !text.contains(['$', '`']) => Word::fixed(text),
                _ => Word::open(text, Known::One),
            }
        })
        .collect()
}

/// `a{b,c}d` as the shell makes words of it; `{1..3}` is some piece.
fn braces(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    let mut rounds = 0;
    while let Some(text) = open.pop() {
        rounds += 1;
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
        if inner.contains(',') {
            open.extend(
                inner
                    .rsplit(',')
                    .map(|part| format!("{before}{part}{after}")),
            );
        } else if inner.contains("..") {
            open.push(format!("{before}{PIECE}{after}"));
        } else {
            // A literal pair, such as a placeholder.
            open.push(format!("{before}{UNKNOWN}{after}"));
        }
    }
    done
}
