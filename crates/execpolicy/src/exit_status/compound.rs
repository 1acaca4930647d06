//! Follows exit statuses through lists, pipes, conditions and loops.

use checkrein_core::exit_status::ExitStatusMaskKind;
use tree_sitter::Node;

use super::status_tracer::{
    ExitStatusTracer, StatementWithBackgroundFlag, is_shell_statement_node_kind,
};
use super::{CommandStatusContext, ExitStatusMaskResult};
use crate::shell::command_word_from_syntax_node;

impl<'t> ExitStatusTracer<'_, '_, 't> {
    pub(super) fn visit_and_or_list(&mut self, node: Node<'t>, position: &CommandStatusContext) {
        let count = u32::try_from(node.named_child_count()).unwrap_or(0);
        let (Some(left), Some(right)) = (
            node.named_child(0),
            count.checked_sub(1).and_then(|last| node.named_child(last)),
        ) else {
            return;
        };
        let either = syntax_node_has_token(node, "||");
        // A failure to the left of `&&` or `||` does not trigger `set -e`.
        let mut first = CommandStatusContext {
            errexit_applies: false,
            errexit: false,
            ..position.clone()
        };
        if either {
            first.own_reach = self.failure_propagation_in_or_list(right, position);
        }
        self.trace_statuses_below_node(left, &first);
        // Programs that were asked for are not recorded as missing on the right side.
        let guards = self.presence_tested_programs(left, either);
        let from = self.guarded.len();
        self.guarded.extend(guards);
        self.trace_statuses_below_node(right, position);
        self.guarded.truncate(from);
    }

    /// Returns what becomes of the failure of `a` in `a || right`.
    fn failure_propagation_in_or_list(
        &mut self,
        right: Node<'t>,
        position: &CommandStatusContext,
    ) -> ExitStatusMaskResult {
        // `a || { echo failed; exit 1; }` still fails, so it hides nothing.
        if self.ends_badly_after_failure(right) {
            return position.own_reach.clone();
        }
        let (from, to) = (right.start_byte(), right.end_byte());
        Err(self.build_exit_status_mask(ExitStatusMaskKind::Alternative, "|| ", from, to))
    }

    /// Returns the programs that `command -v x` asks for, if what follows runs only if they exist.
    fn presence_tested_programs(&self, node: Node<'_>, either: bool) -> Vec<String> {
        let source = self.node_text(node);
        let mut words = source
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'', '&', '>']));
        let asks = match words.next() {
            Some("command") => matches!(words.next(), Some("-v" | "-V")),
            Some("which" | "type" | "hash") => true,
            _ => false,
        };
        let names = words.filter(|word| !word.starts_with('-') && !word.contains('/'));
        // What stands after `||` runs if the program is missing.
        match asks && !either {
            true => names.map(str::to_owned).collect(),
            false => Vec::new(),
        }
    }

    pub(super) fn trace_pipeline_exit_statuses(
        &mut self,
        node: Node<'t>,
        position: &CommandStatusContext,
    ) {
        let mut cursor = node.walk();
        let members: Vec<Node<'t>> = node
            .named_children(&mut cursor)
            .filter(|child| child.kind() != "comment")
            .collect();
        for (at, member) in members.iter().enumerate() {
            let mut here = position.clone();
            // Without `pipefail` only the status of the last member counts.
            if let Some(next) = members.get(at + 1)
                && !self.shell.pipefail
            {
                here.errexit_applies = false;
                here.errexit = false;
                here.own_reach = Err(self.build_exit_status_mask(
                    ExitStatusMaskKind::Pipe,
                    "| ",
                    next.start_byte(),
                    node.end_byte(),
                ));
                // If something around the pipe hides the status already, that stays the reason to
                // name.
                if let (Err(_), Err(outer)) = (&here.own_reach, &position.failure_reaches_check()) {
                    here.own_reach = Err(outer.clone());
                }
            }
            // Each member runs in a subshell, so its `cd` and `set` end with it.
            let saved = self.shell.clone();
            let within = here.child_process_exit_status_context(here.errexit);
            let before = at.checked_sub(1).and_then(|before| members.get(before));
            self.stdin_file = before.and_then(|before| self.file_shown_by_cat(*before));
            self.trace_statuses_below_node(*member, &within);
            self.stdin_file = None;
            self.shell = saved;
        }
    }

    /// Returns the file that `cat FILE` shows.
    fn file_shown_by_cat(&self, node: Node<'_>) -> Option<String> {
        let words = shlex::split(self.node_text(node))?;
        match words.as_slice() {
            [program, file] if program == "cat" && !file.starts_with(['-', '<']) => {
                Some(file.clone())
            }
            _ => None,
        }
    }

    pub(super) fn trace_redirected_statement(
        &mut self,
        node: Node<'t>,
        position: &CommandStatusContext,
    ) {
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
                        "heredoc_body" => self.stdin_text = Some(self.node_text(*part).to_owned()),
                        // `command <<END | cat`: the grammar puts the rest here.
                        "pipeline" => {
                            if !self.shell.pipefail {
                                here.own_reach = Err(self.build_exit_status_mask(
                                    ExitStatusMaskKind::Pipe,
                                    "| ",
                                    part.start_byte(),
                                    part.end_byte(),
                                ));
                            }
                            self.trace_statuses_in_child_nodes(*part, position);
                        }
                        _ => {}
                    }
                }
                // `command <<END || b`: the grammar puts the right side into the redirect.
                if let Some(right) = redirect.child_by_field_name("right")
                    && syntax_node_has_token(redirect, "||")
                {
                    here.own_reach = self.failure_propagation_in_or_list(right, position);
                    here.errexit_applies = false;
                    here.errexit = false;
                }
            } else {
                here.prints_elsewhere |= self.redirect_hides_output(redirect);
                let input = self.node_text(redirect).strip_prefix('<');
                if let Some(file) = input.filter(|file| !file.starts_with(['<', '(', '&', '>'])) {
                    self.stdin_file = shlex::split(file).and_then(|words| words.into_iter().next());
                }
                // Shells other than bash read `a &> b` as `a &`, followed by a redirect.
                if self.node_text(redirect).starts_with("&>") && !position.bash {
                    let (from, to) = (redirect.start_byte(), redirect.end_byte());
                    here = here.with_status_hidden_by(self.build_exit_status_mask(
                        ExitStatusMaskKind::Background,
                        "",
                        from,
                        to,
                    ));
                    (here.errexit_applies, here.errexit) = (false, false);
                }
                self.trace_command_substitutions(redirect, position);
            }
        }
        if let Some(body) = body {
            self.trace_statuses_below_node(body, &here);
        }
        self.stdin_text = None;
        self.stdin_file = None;
    }

    /// Returns whether the redirect sends the output to a file that the script does not print.
    fn redirect_hides_output(&self, redirect: Node<'_>) -> bool {
        let source = self.node_text(redirect);
        let output = source.strip_prefix('1').unwrap_or(source);
        let output = output.strip_prefix('&').unwrap_or(output);
        let Some(file) = output
            .strip_prefix('>')
            .filter(|rest| !rest.starts_with('&'))
        else {
            return false;
        };
        // Printing a file that is appended to also shows older lines, so it proves nothing.
        let Some(file) = Some(file).filter(|rest| !rest.starts_with('>')) else {
            return true;
        };
        let file = file.trim_start_matches('|').trim();
        let shown = matches!(file, "/dev/stdout" | "/dev/stderr" | "/dev/tty");
        !shown && !self.any_command_prints_file(file)
    }

    pub(super) fn visit_if(&mut self, node: Node<'t>, position: &CommandStatusContext) {
        let (mut condition, mut body): (
            Vec<StatementWithBackgroundFlag<'t>>,
            Vec<StatementWithBackgroundFlag<'t>>,
        ) = Default::default();
        let (mut elifs, mut otherwise) = (Vec::new(), None);
        let mut then = false;
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "then" => then = true,
                "elif_clause" => elifs.push(child),
                "else_clause" => otherwise = Some(child),
                kind if child.is_named() && is_shell_statement_node_kind(kind) => match then {
                    true => body.push((child, false)),
                    false => condition.push((child, false)),
                },
                _ => {}
            }
        }
        // Only the last statement of a condition decides; the statuses before it are lost.
        let Some((asked, _)) = condition.pop() else {
            return;
        };
        self.trace_statement_exit_statuses(
            &condition,
            &position.with_status_hidden_by(self.build_exit_status_mask(
                ExitStatusMaskKind::Condition,
                "if",
                0,
                0,
            )),
        );
        let here = CommandStatusContext {
            own_reach: position.own_reach.clone().and_then(|()| {
                let (from, to) = (asked.start_byte(), asked.end_byte());
                Err(self.build_exit_status_mask(ExitStatusMaskKind::Condition, "if ", from, to))
            }),
            errexit_applies: false,
            errexit: false,
            ..position.clone()
        };
        self.trace_condition_exit_status(asked, &here);
        let from = self.guarded.len();
        let guards = self.presence_tested_programs(asked, false);
        self.guarded.extend(guards);
        self.trace_statement_exit_statuses(&body, position);
        self.guarded.truncate(from);
        for clause in elifs.into_iter().chain(otherwise) {
            self.trace_statuses_below_node(clause, position);
        }
    }

    /// Traces a condition. For `! a` the condition is the reason to name, not the negation.
    fn trace_condition_exit_status(&mut self, asked: Node<'t>, position: &CommandStatusContext) {
        match commands_if_all_negated(asked) {
            Some(leaves) => leaves
                .into_iter()
                .for_each(|leaf| self.trace_statuses_in_child_nodes(leaf, position)),
            None => self.trace_statuses_below_node(asked, position),
        }
    }

    pub(super) fn visit_while(&mut self, node: Node<'t>, position: &CommandStatusContext) {
        let body = node.child_by_field_name("body");
        let condition = node.child_by_field_name("condition");
        if let Some(condition) = condition {
            let (from, to) = (condition.start_byte(), condition.end_byte());
            let here = CommandStatusContext {
                errexit_applies: false,
                errexit: false,
                ..position.with_status_hidden_by(self.build_exit_status_mask(
                    ExitStatusMaskKind::Condition,
                    "while ",
                    from,
                    to,
                ))
            };
            self.trace_condition_exit_status(condition, &here);
        }
        if let Some(body) = body {
            let here = position.with_status_hidden_by(self.build_exit_status_mask(
                ExitStatusMaskKind::Loop,
                "",
                node.start_byte(),
                body.start_byte(),
            ));
            self.trace_statuses_below_node(body, &here);
        }
    }

    pub(super) fn visit_shell_for_loop(&mut self, node: Node<'t>, position: &CommandStatusContext) {
        let Some(body) = node.child_by_field_name("body") else {
            return;
        };
        let mut cursor = node.walk();
        let values: Vec<Node<'t>> = node.children_by_field_name("value", &mut cursor).collect();
        // Only a list of literal words has a known number of rounds.
        let literal = values.iter().all(|value| {
            command_word_from_syntax_node(*value, self.text)
                .is_some_and(|word| word.as_literal().is_some())
        });
        for value in &values {
            self.trace_command_substitutions(*value, position);
        }
        // A loop over one word runs exactly once, so it hides nothing.
        if literal && values.len() == 1 {
            return self.trace_statuses_below_node(body, position);
        }
        let mut here = position.with_status_hidden_by(self.build_exit_status_mask(
            ExitStatusMaskKind::Loop,
            "",
            node.start_byte(),
            body.start_byte(),
        ));
        if literal {
            let rounds = u32::try_from(values.len()).unwrap_or(u32::MAX).max(1);
            here.run_count = here.run_count.saturating_mul(rounds);
        }
        self.trace_statuses_below_node(body, &here);
    }
}

pub(super) fn syntax_node_has_token(node: Node<'_>, token: &str) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor)
        .any(|child| child.kind() == token)
}

/// Returns the commands of `! a` or `! a || ! b`: if one of them fails, the whole succeeds.
fn commands_if_all_negated(node: Node<'_>) -> Option<Vec<Node<'_>>> {
    match node.kind() {
        "negated_command" => Some(vec![node]),
        "list" if syntax_node_has_token(node, "||") => {
            let mut cursor = node.walk();
            let mut leaves = Vec::new();
            for child in node.named_children(&mut cursor) {
                leaves.extend(commands_if_all_negated(child)?);
            }
            Some(leaves)
        }
        _ => None,
    }
}
