//! Records what a script sets variables to, and handles commands that change how the rest of it is
//! read.

use tree_sitter::Node;

use super::ShellSyntaxWalker;
use crate::shell::arithmetic;
use crate::shell::stdin::{StdinSource, predicted_command_output};
use crate::shell::word::{self, CommandWord};

impl<'t> ShellSyntaxWalker<'t, '_> {
    /// Applies commands that change how the rest of the script is read.
    pub(super) fn apply_shell_state_builtin(&mut self, words: &[CommandWord], feed: &StdinSource) {
        let rest = words.get(1..).unwrap_or(&[]);
        match words.first().and_then(CommandWord::as_literal) {
            Some("set") => {
                let on = |word: &CommandWord| {
                    let cluster = word.text.strip_prefix('-').unwrap_or("");
                    cluster.contains('e') && !cluster.starts_with('-') || word.text == "errexit"
                };
                self.errexit |= rest.iter().any(on);
                // History expansion gives `!` another meaning from here on.
                let history = |word: &&CommandWord| {
                    word.text == "histexpand"
                        || word.text.starts_with('-') && word.text.contains('H')
                };
                let history = rest.iter().find(history);
                self.script
                    .doubtful
                    .extend(history.map(|word| format!("set {}", word.text)));
            }
            Some("read") => {
                let named = |word: &&CommandWord| is_variable_name(&word.text);
                let names: Vec<&CommandWord> = rest.iter().filter(named).collect();
                match (names.as_slice(), feed) {
                    // In a loop, `read` sets the name to one file after the other.
                    ([name], StdinSource::Paths(paths)) => {
                        let values = paths
                            .iter()
                            .map(|path| (name.text.clone(), Some(path.clone())));
                        self.script.assigned.extend(values);
                    }
                    // `read` takes a single line, so only a text of one line is certain.
                    ([name], StdinSource::Text { text, sure: true })
                        if text.lines().count() < 2 =>
                    {
                        let value = CommandWord::new_literal_word(text.trim_end());
                        self.script.assigned.push((name.text.clone(), Some(value)));
                    }
                    _ => self.mark_variables_unknown(rest),
                }
            }
            // `printf -v NAME` stores what it would print.
            Some("printf") if rest.first().is_some_and(|word| word.text == "-v") => {
                let name = rest.get(1).map_or("", |word| word.text.as_str());
                let mut words = vec![CommandWord::new_literal_word("printf")];
                words.extend(rest.iter().skip(2).cloned());
                let value = match predicted_command_output(&words, &StdinSource::PlainFile) {
                    StdinSource::Text { text, sure: true } => {
                        Some(CommandWord::new_literal_word(&*text))
                    }
                    StdinSource::Text { text, sure: false } => {
                        Some(CommandWord::word_from_unresolved_text(
                            &*text,
                            word::WordKnowledge::SingleWord,
                        ))
                    }
                    _ => None,
                };
                self.script.assigned.push((name.to_owned(), value));
            }
            Some("mapfile" | "readarray" | "getopts" | "printf" | "select" | "vared" | "unset") => {
                self.mark_variables_unknown(rest);
            }
            _ => {}
        }
    }

    /// Marks these variables as known only to the run.
    pub(super) fn mark_variables_unknown(&mut self, names: &[CommandWord]) {
        let names = names.iter().map(|word| (word.text.clone(), None));
        self.script.assigned.extend(names);
    }

    pub(super) fn visit_shell_assignment(&mut self, node: Node<'t>) {
        let name = node
            .child_by_field_name("name")
            .map(|name| self.node_text(name));
        let value = node.child_by_field_name("value");
        let Some(name) = name else { return };
        // An element of an array counts as the whole array.
        let plain = name.split('[').next().unwrap_or(name).to_owned();
        let adds = self
            .node_text(node)
            .get(name.len()..)
            .is_some_and(|rest| rest.starts_with("+="));
        let text = value.map_or("", |value| self.node_text(value));
        let fixed = value.and_then(|value| word::command_word_from_syntax_node(value, self.text));
        // Such a value runs nothing by itself; it counts only if something evaluates arithmetic.
        let trap = match fixed.as_ref().and_then(CommandWord::as_literal) {
            Some(text) => arithmetic::may_become_arithmetic_injection(text),
            None => {
                text.contains("\\$")
                    || text.contains("\\`")
                    || arithmetic::is_arithmetic_injection(text)
            }
        };
        if trap {
            self.script.arithmetic_injections.push(text.to_owned());
        }
        // An appended text or a single element is only a part of the value.
        let value = match value {
            Some(value) if value.kind() == "array" && !adds => self.array_as_one_word(value),
            Some(value) => word::command_word_from_syntax_node(value, self.text)
                .filter(|_| !adds && plain == name),
            None => Some(CommandWord::new_literal_word("")),
        };
        self.script.assigned.push((plain, value));
    }

    /// Returns `(a b c)` as a text that splits into its words, if they are known and hold no
    /// blanks.
    fn array_as_one_word(&self, node: Node<'t>) -> Option<CommandWord> {
        let mut cursor = node.walk();
        let mut texts = Vec::new();
        for child in node.named_children(&mut cursor) {
            let word = word::command_word_from_syntax_node(child, self.text)?;
            let splits = word.text.is_empty() || word.text.contains(char::is_whitespace);
            if splits && word.knowledge == word::WordKnowledge::Literal {
                return None;
            }
            texts.push(word.text);
        }
        let text = texts.join(" ");
        Some(match text.contains(['$', '`', '~', '*', '?', '{', '[']) {
            true => CommandWord::word_from_unresolved_text(text, word::WordKnowledge::Unbounded),
            false => CommandWord::new_literal_word(text),
        })
    }

    /// Records the values of the variable in `for NAME in WORDS`.
    pub(super) fn add_loop_variable(&mut self, node: Node<'t>) {
        let Some(name) = node.child_by_field_name("variable") else {
            return;
        };
        let name = self.node_text(name).to_owned();
        let mut cursor = node.walk();
        let values: Vec<Node<'t>> = node.children_by_field_name("value", &mut cursor).collect();
        for value in &values {
            let word = word::command_word_from_syntax_node(*value, self.text);
            let text = self.node_text(*value);
            if arithmetic::is_arithmetic_injection(text) {
                self.script.arithmetic_injections.push(text.to_owned());
            }
            self.script.assigned.push((name.clone(), word));
        }
        // Without a list the loop runs over the arguments of the script or function.
        if values.is_empty() {
            let given =
                CommandWord::word_from_unresolved_text("$@", word::WordKnowledge::Unbounded);
            self.script.assigned.push((name, Some(given)));
        }
    }
}

fn is_variable_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
