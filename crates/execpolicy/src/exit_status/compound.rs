//! Lists, pipes, conditions and loops: what becomes of the statuses inside them.

use checkrein_core::exit_status::ExitStatusMaskKind;
use tree_sitter::Node;

use super::flow::{Flow, Statement, is_statement};
use super::{Position, Reach};
use crate::shell::read_word;

impl<'t> Flow<'_, '_, 't> {
    pub(super) fn list(&mut self, node: Node<'t>, position: &Position) {
        let count = u32::try_from(node.named_child_count()).unwrap_or(0);
        let (Some(left), Some(right)) = (
            node.named_child(0),
            count.checked_sub(1).and_then(|last| node.named_child(last)),
        ) else {
            return;
        };
        let either = has_token(node, "||");
        let mut first = Position {
            heeds_errors: false,
            ends_on_error: false,
            ..position.clone()
        };
        if either {
            first.value = self.alternative(right, position);
        }
        self.visit(left, &first);
        let guards = self.guards(left, either);
        let from = self.guarded.len();
        self.guarded.extend(guards);
        self.visit(right, position);
        self.guarded.truncate(from);
    }

    /// What becomes of the failure of `a` in `a || right`.
    fn alternative(&mut self, right: Node<'t>, position: &Position) -> Reach {
        if self.ends_badly(right) {
            return position.value.clone();
        }
        let (from, to) = (right.start_byte(), right.end_byte());
        Err(self.hider(ExitStatusMaskKind::Alternative, "|| ", from, to))
    }

    /// The programs that `command -v x` asks for, where what follows runs only if they are there.
    fn guards(&self, node: Node<'_>, either: bool) -> Vec<String> {
        let source = self.source(node);
        let mut words = source
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'', '&', '>']));
        let asks = match words.next() {
            Some("command") => matches!(words.next(), Some("-v" | "-V")),
            Some("which" | "type" | "hash") => true,
            _ => false,
        };
        let names = words.filter(|word| !word.starts_with('-') && !word.contains('/'));
        match asks && !either {
            true => names.map(str::to_owned).collect(),
            false => Vec::new(),
        }
    }

    pub(super) fn pipeline(&mut self, node: Node<'t>, position: &Position) {
        let mut cursor = node.walk();
        let members: Vec<Node<'t>> = node
            .named_children(&mut cursor)
            .filter(|child| child.kind() != "comment")
            .collect();
        for (at, member) in members.iter().enumerate() {
            let mut here = position.clone();
            if let Some(next) = members.get(at + 1)
                && !self.shell.fails_in_pipes
            {
                here.heeds_errors = false;
                here.ends_on_error = false;
                here.value = Err(self.hider(
                    ExitStatusMaskKind::Pipe,
                    "| ",
                    next.start_byte(),
                    node.end_byte(),
                ));
                // What hid it already hides it still.
                if let (Err(_), Err(outer)) = (&here.value, &position.reach()) {
                    here.value = Err(outer.clone());
                }
            }
            let saved = self.shell.clone();
            let within = here.within(here.ends_on_error);
            let before = at.checked_sub(1).and_then(|before| members.get(before));
            self.fed_file = before.and_then(|before| self.shown_file(*before));
            self.visit(*member, &within);
            self.fed_file = None;
            self.shell = saved;
        }
    }

    /// The file that `cat FILE` shows.
    fn shown_file(&self, node: Node<'_>) -> Option<String> {
        let words = shlex::split(self.source(node))?;
        match words.as_slice() {
            [program, file] if program == "cat" && !file.starts_with(['-', '<']) => {
                Some(file.clone())
            }
            _ => None,
        }
    }

    pub(super) fn redirected(&mut self, node: Node<'t>, position: &Position) {
        let body = node.child_by_field_name("body");
        let mut here = position.clone();
        let mut cursor = node.walk();
        let redirects: Vec<Node<'t>> = node.named_children(&mut cursor).collect();
        for redirect in redirects
            .into_iter()
            .filter(|child| Some(child.id()) != body.map(|body| body.id()))
        {
            if redirect.kind() == "heredoc_redirect" {
                let mut cursor = redirect.walk();
                let parts: Vec<Node<'t>> = redirect.children(&mut cursor).collect();
                for part in &parts {
                    match part.kind() {
                        "heredoc_body" => self.fed = Some(self.source(*part).to_owned()),
                        // `command <<END | cat`: the grammar puts the rest here.
                        "pipeline" => {
                            if !self.shell.fails_in_pipes {
                                here.value = Err(self.hider(
                                    ExitStatusMaskKind::Pipe,
                                    "| ",
                                    part.start_byte(),
                                    part.end_byte(),
                                ));
                            }
                            self.children(*part, position);
                        }
                        _ => {}
                    }
                }
                if let Some(right) = redirect.child_by_field_name("right")
                    && has_token(redirect, "||")
                {
                    here.value = self.alternative(right, position);
                    here.heeds_errors = false;
                    here.ends_on_error = false;
                }
            } else {
                here.prints_elsewhere |= self.is_kept_away(redirect);
                let input = self.source(redirect).strip_prefix('<');
                if let Some(file) = input.filter(|file| !file.starts_with(['<', '(', '&', '>'])) {
                    self.fed_file = shlex::split(file).and_then(|words| words.into_iter().next());
                }
                if self.source(redirect).starts_with("&>") && !position.bash {
                    let (from, to) = (redirect.start_byte(), redirect.end_byte());
                    here = here.hidden(self.hider(ExitStatusMaskKind::Background, "", from, to));
                    (here.heeds_errors, here.ends_on_error) = (false, false);
                }
                self.substitutions(redirect, position);
            }
        }
        if let Some(body) = body {
            self.visit(body, &here);
        }
        self.fed = None;
        self.fed_file = None;
    }

    /// Whether it sends the output to a file that the script does not print.
    fn is_kept_away(&self, redirect: Node<'_>) -> bool {
        let source = self.source(redirect);
        let output = source.strip_prefix('1').unwrap_or(source);
        let output = output.strip_prefix('&').unwrap_or(output);
        let Some(file) = output
            .strip_prefix('>')
            .filter(|rest| !rest.starts_with('&'))
        else {
            return false;
        };
        // Of a file that goes on, the older lines are shown as well.
        let Some(file) = Some(file).filter(|rest| !rest.starts_with('>')) else {
            return true;
        };
        let file = file.trim_start_matches('|').trim();
        let shown = matches!(file, "/dev/stdout" | "/dev/stderr" | "/dev/tty");
        !shown && !self.shows_file(file)
    }

    pub(super) fn condition(&mut self, node: Node<'t>, position: &Position) {
        let (mut condition, mut body): (Vec<Statement<'t>>, Vec<Statement<'t>>) =
            Default::default();
        let (mut elifs, mut otherwise) = (Vec::new(), None);
        let mut then = false;
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "then" => then = true,
                "elif_clause" => elifs.push(child),
                "else_clause" => otherwise = Some(child),
                kind if child.is_named() && is_statement(kind) => match then {
                    true => body.push((child, false)),
                    false => condition.push((child, false)),
                },
                _ => {}
            }
        }
        let Some((asked, _)) = condition.pop() else {
            return;
        };
        self.statements(
            &condition,
            &position.hidden(self.hider(ExitStatusMaskKind::Condition, "if", 0, 0)),
        );
        let here = Position {
            value: position.value.clone().and_then(|()| {
                let (from, to) = (asked.start_byte(), asked.end_byte());
                Err(self.hider(ExitStatusMaskKind::Condition, "if ", from, to))
            }),
            heeds_errors: false,
            ends_on_error: false,
            ..position.clone()
        };
        self.visit_condition(asked, &here);
        let from = self.guarded.len();
        let guards = self.guards(asked, false);
        self.guarded.extend(guards);
        self.statements(&body, position);
        self.guarded.truncate(from);
        for clause in elifs.into_iter().chain(otherwise) {
            self.visit(clause, position);
        }
    }

    /// Of `! a` in a condition there is more to say than that it is negated.
    fn visit_condition(&mut self, asked: Node<'t>, position: &Position) {
        match negated_leaves(asked) {
            Some(leaves) => leaves
                .into_iter()
                .for_each(|leaf| self.children(leaf, position)),
            None => self.visit(asked, position),
        }
    }

    pub(super) fn while_loop(&mut self, node: Node<'t>, position: &Position) {
        let body = node.child_by_field_name("body");
        let condition = node.child_by_field_name("condition");
        if let Some(condition) = condition {
            let (from, to) = (condition.start_byte(), condition.end_byte());
            let here = Position {
                heeds_errors: false,
                ends_on_error: false,
                ..position.hidden(self.hider(ExitStatusMaskKind::Condition, "while ", from, to))
            };
            self.visit_condition(condition, &here);
        }
        if let Some(body) = body {
            let here = position.hidden(self.hider(
                ExitStatusMaskKind::Loop,
                "",
                node.start_byte(),
                body.start_byte(),
            ));
            self.visit(body, &here);
        }
    }

    pub(super) fn for_loop(&mut self, node: Node<'t>, position: &Position) {
        let Some(body) = node.child_by_field_name("body") else {
            return;
        };
        let mut cursor = node.walk();
        let values: Vec<Node<'t>> = node.children_by_field_name("value", &mut cursor).collect();
        let literal = values.iter().all(|value| {
            read_word(*value, self.text).is_some_and(|word| word.as_fixed().is_some())
        });
        for value in &values {
            self.substitutions(*value, position);
        }
        if literal && values.len() == 1 {
            return self.visit(body, position);
        }
        let mut here = position.hidden(self.hider(
            ExitStatusMaskKind::Loop,
            "",
            node.start_byte(),
            body.start_byte(),
        ));
        if literal {
            let rounds = u32::try_from(values.len()).unwrap_or(u32::MAX).max(1);
            here.times = here.times.saturating_mul(rounds);
        }
        self.visit(body, &here);
    }
}

pub(super) fn has_token(node: Node<'_>, token: &str) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor)
        .any(|child| child.kind() == token)
}

/// `! a` or `! a || ! b`: the commands of which one failing makes the whole succeed.
fn negated_leaves(node: Node<'_>) -> Option<Vec<Node<'_>>> {
    match node.kind() {
        "negated_command" => Some(vec![node]),
        "list" if has_token(node, "||") => {
            let mut cursor = node.walk();
            let mut leaves = Vec::new();
            for child in node.named_children(&mut cursor) {
                leaves.extend(negated_leaves(child)?);
            }
            Some(leaves)
        }
        _ => None,
    }
}
