//! Standard input that redirects give, and heredocs that the shell may end elsewhere.

use tree_sitter::Node;

use super::Walk;
use crate::shell::feed::Feed;
use crate::shell::prints;
use crate::shell::word;
use crate::shell::{quote, sums};

impl<'t> Walk<'t, '_> {
    /// The standard input a `<` gives; `None` for any other redirect.
    pub(super) fn file_feed(&self, node: Node<'t>) -> Option<Feed> {
        let source = self.source(node).trim_start_matches('0');
        if source.starts_with("<&") {
            return Some(Feed::Unknown);
        }
        if !source.starts_with('<') {
            return None;
        }
        let target = self.source(node.child_by_field_name("destination")?);
        match target {
            "/dev/stdin" | "/dev/fd/0" => None,
            _ if target.starts_with("<(") => Some(match self.fetches(node) {
                true => Feed::Fetched,
                false => prints::of(target).unwrap_or(Feed::Unknown),
            }),
            _ => Some(Feed::Nothing),
        }
    }

    pub(super) fn herestring(&self, node: Node<'t>) -> Option<Feed> {
        let mut cursor = node.walk();
        let target = node
            .named_children(&mut cursor)
            .filter(|c| c.kind() != "file_descriptor")
            .last()?;
        Some(word::read(target, self.text).map_or(Feed::Unknown, |word| Feed::herestring(&word)))
    }

    /// The body of a heredoc as standard input.
    pub(super) fn heredoc(&self, node: Node<'t>) -> Feed {
        let Some((body, expands)) = heredoc_body(node, self.text) else {
            return Feed::Unknown;
        };
        let text = self.source(body);
        let stripped: Option<String> = self.source(node).contains("<<-").then(|| {
            let lines = text.split_inclusive('\n');
            lines.map(|line| line.trim_start_matches('\t')).collect()
        });
        let text = stripped.as_deref().unwrap_or(text);
        Feed::heredoc(text, expands, !has_expansion(body))
    }

    /// Doubtful: a heredoc that the shell would end before the grammar does, and one with
    /// a substitution that the grammar took for text.
    pub(super) fn check_heredoc(&mut self, node: Node<'t>) {
        let Some((body, expands)) = heredoc_body(node, self.text) else {
            return;
        };
        let mut cursor = node.walk();
        let start = node
            .children(&mut cursor)
            .find(|child| child.kind() == "heredoc_start");
        let end: String = start
            .map_or("", |start| self.source(start))
            .chars()
            .filter(|c| !matches!(c, '\'' | '"' | '\\'))
            .collect();
        let tabs = self.source(node).contains("<<-");
        // In a body that expands, a line can go on over its end.
        let whole = match expands {
            true => self.source(body).replace("\\\n", ""),
            false => self.source(body).to_owned(),
        };
        let odd = start.is_some_and(|start| {
            let between = self.text.get(start.end_byte()..body.start_byte());
            let name = self.source(start);
            let unclosed = |quote: char| name.matches(quote).count() % 2 == 1;
            name.contains(['$', ';', '&', '|', '<', '>', '(', ')', '\n'])
                || unclosed('\'')
                || unclosed('"')
                || expands && between.is_some_and(|text| text.contains("\\\n"))
        });
        if sums::is_trap(&whole) {
            self.script.traps.push(whole.clone());
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
        let mut at = body.start_byte();
        let mut hidden = false;
        let mut cursor = body.walk();
        for child in body
            .named_children(&mut cursor)
            .filter(|c| c.kind() != "heredoc_content")
        {
            let gap = self.text.get(at..child.start_byte()).unwrap_or("");
            hidden |= quote::hides_substitution(gap);
            at = child.end_byte();
        }
        hidden |= quote::hides_substitution(self.text.get(at..body.end_byte()).unwrap_or(""));
        if early || (expands && hidden) {
            self.doubt(node);
        }
    }

    /// `exec < FILE`: from here on all commands read that.
    pub(super) fn refeeds(&mut self, redirect: Node<'t>) {
        let reads = self
            .source(redirect)
            .trim_start_matches('0')
            .starts_with('<');
        let around = redirect.parent().map_or("", |node| self.source(node));
        self.fed_anew |= reads && around.starts_with("exec");
    }
}

fn has_expansion(body: Node<'_>) -> bool {
    let mut cursor = body.walk();
    body.named_children(&mut cursor)
        .any(|child| child.kind() != "heredoc_content")
}

/// The body of a heredoc and whether it expands.
fn heredoc_body<'t>(node: Node<'t>, text: &str) -> Option<(Node<'t>, bool)> {
    let mut cursor = node.walk();
    let mut expands = true;
    let mut body = None;
    for child in node.children(&mut cursor) {
        match child.kind() {
            "heredoc_start" => {
                let start = text.get(child.byte_range()).unwrap_or("");
                expands = !start.contains(['\'', '"', '\\']);
            }
            "heredoc_body" => body = Some(child),
            _ => {}
        }
    }
    body.map(|body| (body, expands))
}
