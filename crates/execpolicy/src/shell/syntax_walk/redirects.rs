//! Determines the standard input that redirects give, and finds heredocs that the shell may end
//! elsewhere than the grammar.

use tree_sitter::Node;

use super::ShellSyntaxWalker;
use crate::shell::stdin::StdinSource;
use crate::shell::substitution_output;
use crate::shell::word;
use crate::shell::{arithmetic, quoting};

impl<'t> ShellSyntaxWalker<'t, '_> {
    /// Returns the standard input that a `<` gives; `None` for any other redirect.
    pub(super) fn stdin_from_redirect(&self, node: Node<'t>) -> Option<StdinSource> {
        // Descriptor 0 is the default of `<`, so `0<` means the same.
        let source = self.node_text(node).trim_start_matches('0');
        // A duplicated descriptor may lead anywhere.
        if source.starts_with("<&") {
            return Some(StdinSource::CommandOutput);
        }
        if !source.starts_with('<') {
            return None;
        }
        let target = self.node_text(node.child_by_field_name("destination")?);
        match target {
            // This is the input that the command has anyway.
            "/dev/stdin" | "/dev/fd/0" => None,
            _ if target.starts_with("<(") => Some(match self.contains_download(node) {
                true => StdinSource::Downloaded,
                false => substitution_output::shell_substitution_output(target)
                    .unwrap_or(StdinSource::CommandOutput),
            }),
            _ => Some(StdinSource::PlainFile),
        }
    }

    pub(super) fn herestring_stdin(&self, node: Node<'t>) -> Option<StdinSource> {
        let mut cursor = node.walk();
        let target = node
            .named_children(&mut cursor)
            .filter(|c| c.kind() != "file_descriptor")
            .last()?;
        Some(
            word::command_word_from_syntax_node(target, self.text)
                .map_or(StdinSource::CommandOutput, |word| {
                    StdinSource::stdin_from_herestring(&word)
                }),
        )
    }

    /// Returns the body of a heredoc as standard input.
    pub(super) fn heredoc_stdin(&self, node: Node<'t>) -> StdinSource {
        let Some((body, expands)) = heredoc_body(node, self.text) else {
            return StdinSource::CommandOutput;
        };
        let text = self.node_text(body);
        // `<<-` strips leading tabs from every line.
        let stripped: Option<String> = self.node_text(node).contains("<<-").then(|| {
            let lines = text.split_inclusive('\n');
            lines.map(|line| line.trim_start_matches('\t')).collect()
        });
        let text = stripped.as_deref().unwrap_or(text);
        StdinSource::stdin_from_heredoc(text, expands, !heredoc_has_expansion(body))
    }

    /// Reports a heredoc as doubtful if the shell would end it before the grammar does, or if it
    /// holds a substitution that the grammar took for text.
    pub(super) fn mark_misread_heredoc(&mut self, node: Node<'t>) {
        let Some((body, expands)) = heredoc_body(node, self.text) else {
            return;
        };
        let mut cursor = node.walk();
        let start = node
            .children(&mut cursor)
            .find(|child| child.kind() == "heredoc_start");
        let end: String = start
            .map_or("", |start| self.node_text(start))
            .chars()
            .filter(|c| !matches!(c, '\'' | '"' | '\\'))
            .collect();
        let tabs = self.node_text(node).contains("<<-");
        // In a body that expands, a line can go on over its end.
        let whole = match expands {
            true => self.node_text(body).replace("\\\n", ""),
            false => self.node_text(body).to_owned(),
        };
        // Grammar and shell read such an end word differently.
        let odd = start.is_some_and(|start| {
            let between = self.text.get(start.end_byte()..body.start_byte());
            let name = self.node_text(start);
            let unclosed = |quote: char| name.matches(quote).count() % 2 == 1;
            name.contains(['$', ';', '&', '|', '<', '>', '(', ')', '\n'])
                || unclosed('\'')
                || unclosed('"')
                || expands && between.is_some_and(|text| text.contains("\\\n"))
        });
        if arithmetic::is_arithmetic_injection(&whole) {
            self.script.arithmetic_injections.push(whole.clone());
        }
        let early = odd
            || whole.lines().any(|line| {
                let line = if tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                line == end
            });
        // A substitution between the nodes that the grammar recognised was missed by it.
        let mut at = body.start_byte();
        let mut hidden = false;
        let mut cursor = body.walk();
        for child in body
            .named_children(&mut cursor)
            .filter(|c| c.kind() != "heredoc_content")
        {
            let gap = self.text.get(at..child.start_byte()).unwrap_or("");
            hidden |= quoting::has_unescaped_substitution(gap);
            at = child.end_byte();
        }
        hidden |=
            quoting::has_unescaped_substitution(self.text.get(at..body.end_byte()).unwrap_or(""));
        if early || (expands && hidden) {
            self.mark_shell_node_doubtful(node);
        }
    }

    /// Notes `exec < FILE`: from there on all commands read that file.
    pub(super) fn note_exec_stdin_redirect(&mut self, redirect: Node<'t>) {
        let reads = self
            .node_text(redirect)
            .trim_start_matches('0')
            .starts_with('<');
        let around = redirect.parent().map_or("", |node| self.node_text(node));
        self.stdin_replaced |= reads && around.starts_with("exec");
    }
}

fn heredoc_has_expansion(body: Node<'_>) -> bool {
    let mut cursor = body.walk();
    body.named_children(&mut cursor)
        .any(|child| child.kind() != "heredoc_content")
}

/// Returns the body of a heredoc and whether it expands.
fn heredoc_body<'t>(node: Node<'t>, text: &str) -> Option<(Node<'t>, bool)> {
    let mut cursor = node.walk();
    let mut expands = true;
    let mut body = None;
    for child in node.children(&mut cursor) {
        match child.kind() {
            "heredoc_start" => {
                // Any quoting of the end word switches expansion off.
                let start = text.get(child.byte_range()).unwrap_or("");
                expands = !start.contains(['\'', '"', '\\']);
            }
            "heredoc_body" => body = Some(child),
            _ => {}
        }
    }
    body.map(|body| (body, expands))
}
