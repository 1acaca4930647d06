//! What a script sets variables to, and commands that change how the rest of it is read.

use tree_sitter::Node;

use super::Walk;
use crate::shell::feed::{Feed, printed};
use crate::shell::sums;
use crate::shell::word::{self, Word};

impl<'t> Walk<'t, '_> {
    /// Commands that change how the rest is read.
    pub(super) fn changed(&mut self, words: &[Word], feed: &Feed) {
        let rest = words.get(1..).unwrap_or(&[]);
        match words.first().and_then(Word::as_fixed) {
            Some("set") => {
                let on = |word: &Word| {
                    let cluster = word.text.strip_prefix('-').unwrap_or("");
                    cluster.contains('e') && !cluster.starts_with('-') || word.text == "errexit"
                };
                self.ends_on_error |= rest.iter().any(on);
                // `!` is read otherwise from here on.
                let history = |word: &&Word| {
                    word.text == "histexpand"
                        || word.text.starts_with('-') && word.text.contains('H')
                };
                let history = rest.iter().find(history);
                self.script
                    .doubtful
                    .extend(history.map(|word| format!("set {}", word.text)));
            }
            Some("read") => {
                let named = |word: &&Word| is_name(&word.text);
                let names: Vec<&Word> = rest.iter().filter(named).collect();
                match (names.as_slice(), feed) {
                    // One name of a file after the other.
                    ([name], Feed::Paths(paths)) => {
                        let values = paths
                            .iter()
                            .map(|path| (name.text.clone(), Some(path.clone())));
                        self.script.assigned.extend(values);
                    }
                    ([name], Feed::Text { text, sure: true }) if text.lines().count() < 2 => {
                        let value = Word::fixed(text.trim_end());
                        self.script.assigned.push((name.text.clone(), Some(value)));
                    }
                    _ => self.forget(rest),
                }
            }
            Some("printf") if rest.first().is_some_and(|word| word.text == "-v") => {
                let name = rest.get(1).map_or("", |word| word.text.as_str());
                let mut words = vec![Word::fixed("printf")];
                words.extend(rest.iter().skip(2).cloned());
                let value = match printed(&words, &Feed::Nothing) {
                    Feed::Text { text, sure: true } => Some(Word::fixed(&*text)),
                    Feed::Text { text, sure: false } => Some(Word::open(&*text, word::Known::One)),
                    _ => None,
                };
                self.script.assigned.push((name.to_owned(), value));
            }
            Some("mapfile" | "readarray" | "getopts" | "printf" | "select" | "vared" | "unset") => {
                self.forget(rest);
            }
            _ => {}
        }
    }

    /// Only the run knows what these are from here on.
    pub(super) fn forget(&mut self, names: &[Word]) {
        let names = names.iter().map(|word| (word.text.clone(), None));
        self.script.assigned.extend(names);
    }

    pub(super) fn assigned(&mut self, node: Node<'t>) {
        let name = node
            .child_by_field_name("name")
            .map(|name| self.source(name));
        let value = node.child_by_field_name("value");
        let Some(name) = name else { return };
        let plain = name.split('[').next().unwrap_or(name).to_owned();
        let adds = self
            .source(node)
            .get(name.len()..)
            .is_some_and(|rest| rest.starts_with("+="));
        let text = value.map_or("", |value| self.source(value));
        let fixed = value.and_then(|value| word::read(value, self.text));
        let trap = match fixed.as_ref().and_then(Word::as_fixed) {
            Some(text) => sums::may_trap(text),
            None => text.contains("\\$") || text.contains("\\`") || sums::is_trap(text),
        };
        if trap {
            self.script.traps.push(text.to_owned());
        }
        let value = match value {
            Some(value) if value.kind() == "array" && !adds => self.list(value),
            Some(value) => word::read(value, self.text).filter(|_| !adds && plain == name),
            None => Some(Word::fixed("")),
        };
        self.script.assigned.push((plain, value));
    }

    /// `(a b c)` as the text that splits into its words, if they are known and do.
    fn list(&self, node: Node<'t>) -> Option<Word> {
        let mut cursor = node.walk();
        let mut texts = Vec::new();
        for child in node.named_children(&mut cursor) {
            let word = word::read(child, self.text)?;
            let splits = word.text.is_empty() || word.text.contains(char::is_whitespace);
            if splits && word.known == word::Known::Fixed {
                return None;
            }
            texts.push(word.text);
        }
        let text = texts.join(" ");
        Some(match text.contains(['$', '`', '~', '*', '?', '{', '[']) {
            true => Word::open(text, word::Known::Many),
            false => Word::fixed(text),
        })
    }

    /// `for NAME in WORDS`.
    pub(super) fn looped(&mut self, node: Node<'t>) {
        let Some(name) = node.child_by_field_name("variable") else {
            return;
        };
        let name = self.source(name).to_owned();
        let mut cursor = node.walk();
        let values: Vec<Node<'t>> = node.children_by_field_name("value", &mut cursor).collect();
        for value in &values {
            let word = word::read(*value, self.text);
            let text = self.source(*value);
            if sums::is_trap(text) {
                self.script.traps.push(text.to_owned());
            }
            self.script.assigned.push((name.clone(), word));
        }
        // What the script or the function was given.
        if values.is_empty() {
            let given = Word::open("$@", word::Known::Many);
            self.script.assigned.push((name, Some(given)));
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
