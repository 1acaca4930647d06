//! Builds the model of a shell script from its syntax tree.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use tree_sitter::Node;

use super::compound::syntax_node_has_token;
use super::expansion::{
    ShellWordPieces, parse_word_pieces, split_shell_words_keeping_quotes, word_text_if_no_expansion,
};
use super::script_model::{
    LoopIterations, ParsedShellScript, ScriptNode, ShellFunction, SimpleCommand, VariableAssignment,
};
use super::status_tracer::{is_shell_statement_node_kind, shell_list_statements};

/// How deep statements may be nested; what is deeper may end in any way.
const MAX_DEPTH: usize = 60;

/// Reads the tree of `text`, with the places of its commands.
pub(super) fn read_script_with_positions(root: Node<'_>, text: &str) -> ParsedShellScript {
    build_script_from_syntax_tree(root, text, true)
}

/// Reads a text that is not part of the script itself, so that its places do not count.
pub(super) fn read_script_without_positions(root: Node<'_>, text: &str) -> ParsedShellScript {
    build_script_from_syntax_tree(root, text, false)
}

fn build_script_from_syntax_tree(
    root: Node<'_>,
    text: &str,
    has_places: bool,
) -> ParsedShellScript {
    let mut reading = ScriptSyntaxReader {
        text,
        has_places,
        functions: HashMap::new(),
        size: 0,
        depth: 0,
    };
    let code = match root.kind() {
        "program" => reading.read_statement_sequence(root),
        _ => reading.read_script_node_within_depth(root),
    };
    ParsedShellScript {
        code,
        functions: reading.functions,
        size: reading.size,
        // A part of a script uses the names that the whole one reads.
        reads: match root.kind() {
            "program" => names_read_in_shell_text(text),
            _ => BTreeSet::new(),
        },
    }
}

struct ScriptSyntaxReader<'s> {
    text: &'s str,
    has_places: bool,
    functions: HashMap<String, ShellFunction>,
    size: usize,
    depth: usize,
}

impl<'s> ScriptSyntaxReader<'s> {
    fn node_text(&self, node: Node<'_>) -> &'s str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    fn node_byte_offset(&self, node: Node<'_>) -> usize {
        match self.has_places {
            true => node.start_byte(),
            false => usize::MAX,
        }
    }

    fn read_statement_sequence(&mut self, node: Node<'_>) -> ScriptNode {
        let statements = shell_list_statements(node);
        let read = statements.into_iter().map(|(node, background)| {
            let code = self.read_script_node_within_depth(node);
            match background {
                true => ScriptNode::Background(Box::new(code)),
                false => code,
            }
        });
        ScriptNode::Sequence(read.collect())
    }

    fn read_script_node_within_depth(&mut self, node: Node<'_>) -> ScriptNode {
        // The model is walked recursively, so its depth is bounded here.
        if self.depth >= MAX_DEPTH {
            return ScriptNode::Unknown;
        }
        self.depth += 1;
        let code = self.script_node_from_syntax_node(node);
        self.depth -= 1;
        code
    }

    fn script_node_from_syntax_node(&mut self, node: Node<'_>) -> ScriptNode {
        match node.kind() {
            "command" => self.script_node_from_command_node(node),
            "list" => {
                let last = u32::try_from(node.named_child_count()).unwrap_or(0);
                let right = last.checked_sub(1).and_then(|last| node.named_child(last));
                let (Some(left), Some(right)) = (node.named_child(0), right) else {
                    return ScriptNode::Unknown;
                };
                let (left, right) = (
                    Box::new(self.read_script_node_within_depth(left)),
                    Box::new(self.read_script_node_within_depth(right)),
                );
                match syntax_node_has_token(node, "||") {
                    true => ScriptNode::Or(left, right),
                    false => ScriptNode::And(left, right),
                }
            }
            "pipeline" => {
                let members = self.read_pipeline_members(node);
                build_shell_pipeline(members)
            }
            "redirected_statement" => self.read_redirected_statement(node),
            "negated_command" => {
                let inner = node.named_child(0).map_or(ScriptNode::Unknown, |child| {
                    self.read_script_node_within_depth(child)
                });
                ScriptNode::Not(Box::new(inner))
            }
            "if_statement" => self.read_if_statement(node),
            "while_statement" => self.read_while_loop(node),
            "for_statement" | "c_style_for_statement" => self.read_for_loop(node),
            "case_statement" => self.read_case_statement(node),
            "subshell" => ScriptNode::Subshell(Box::new(self.read_statement_sequence(node))),
            "compound_statement" if self.node_text(node).starts_with("((") => {
                let source = self.node_text(node);
                let inner = source.trim_start_matches('(').trim_end_matches(')');
                ScriptNode::Arithmetic(inner.trim().to_owned())
            }
            "compound_statement" | "do_group" | "else_clause" => {
                let code = self.read_statement_sequence(node);
                match is_negated_compound_command(self.text, node) {
                    true => ScriptNode::Not(Box::new(code)),
                    false => code,
                }
            }
            // The body is kept by its name; it is simulated where it is called.
            "function_definition" => {
                let name = node
                    .child_by_field_name("name")
                    .map(|name| self.node_text(name));
                let body = node.child_by_field_name("body");
                if let (Some(name), Some(body)) = (name, body) {
                    let code = self.read_script_node_within_depth(body);
                    let mut own = BTreeSet::new();
                    self.collect_local_variables(body, &mut own);
                    let function = ShellFunction {
                        body: Rc::new(code),
                        local_variables: Rc::new(own),
                    };
                    self.functions.insert(name.to_owned(), function);
                }
                ScriptNode::Function
            }
            "variable_assignment" => ScriptNode::Assign {
                in_bash: syntax_node_has_token(node, "+="),
                assignments: vec![self.read_assignment(node)],
                declares: false,
            },
            "variable_assignments" | "declaration_command" => {
                let mut cursor = node.walk();
                let nodes: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
                let assigned = nodes
                    .iter()
                    .filter(|node| node.kind() == "variable_assignment");
                ScriptNode::Assign {
                    assignments: assigned.map(|node| self.read_assignment(*node)).collect(),
                    declares: node.kind() == "declaration_command",
                    // `declare` and `typeset` are known to bash and its like only.
                    in_bash: self.node_text(node).starts_with(['d', 't']),
                }
            }
            // The grammar takes some `((...))` for tests.
            "test_command" => {
                let source = self.node_text(node);
                match source.strip_prefix("((") {
                    Some(inner) => {
                        ScriptNode::Arithmetic(inner.trim_end_matches(')').trim().to_owned())
                    }
                    None => {
                        let words = words_in_test_brackets(source);
                        ScriptNode::Test {
                            in_bash: source.starts_with("[[") || uses_bash_only_equality(&words),
                            words,
                        }
                    }
                }
            }
            "unset_command" => ScriptNode::Command(SimpleCommand {
                at: self.node_byte_offset(node),
                words: split_shell_words_keeping_quotes(self.node_text(node))
                    .into_iter()
                    .map(parse_word_pieces)
                    .collect(),
                substitutions: Vec::new(),
            }),
            _ => ScriptNode::Unknown,
        }
    }

    fn read_pipeline_members(&mut self, node: Node<'_>) -> Vec<ScriptNode> {
        let mut cursor = node.walk();
        let members: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let members = members
            .into_iter()
            .filter(|child| child.kind() != "comment");
        members
            .map(|child| self.read_script_node_within_depth(child))
            .collect()
    }

    fn script_node_from_command_node(&mut self, node: Node<'_>) -> ScriptNode {
        self.size += 1;
        let mut words = Vec::new();
        let mut assignments = Vec::new();
        let mut inner = Vec::new();
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" | "comment" => {
                    self.collect_command_substitutions(child, &mut inner);
                }
                "variable_assignment" => assignments.push(self.read_assignment(child)),
                _ => {
                    words.push(parse_word_pieces(self.node_text(child)));
                    self.collect_command_substitutions(child, &mut inner);
                }
            }
        }
        if words.is_empty() {
            return ScriptNode::Assign {
                assignments,
                declares: false,
                in_bash: false,
            };
        }
        // In `a=$(b) c` the substitution runs, and the status is that of `c`.
        for assignment in assignments {
            inner.extend(assignment.substitutions);
        }
        ScriptNode::Command(SimpleCommand {
            at: self.node_byte_offset(node),
            words,
            substitutions: inner,
        })
    }

    fn read_assignment(&mut self, node: Node<'_>) -> VariableAssignment {
        let name = node
            .child_by_field_name("name")
            .map_or("", |name| self.node_text(name));
        let value = node.child_by_field_name("value");
        let mut inner = Vec::new();
        if let Some(value) = value {
            self.collect_command_substitutions(value, &mut inner);
        }
        let source = value.map_or("", |value| self.node_text(value));
        // Arrays and their elements are not followed.
        let is_list = source.starts_with('(') || name.contains('[');
        VariableAssignment {
            name: name.split('[').next().unwrap_or(name).to_owned(),
            value: match is_list {
                true => ShellWordPieces::unknown_expansion(),
                false => parse_word_pieces(source),
            },
            appends: syntax_node_has_token(node, "+="),
            substitutions: inner,
        }
    }

    /// Collects the scripts whose output becomes words.
    fn collect_command_substitutions(&mut self, node: Node<'_>, found: &mut Vec<ScriptNode>) {
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            if matches!(node.kind(), "command_substitution" | "process_substitution") {
                if self.depth >= MAX_DEPTH {
                    found.push(ScriptNode::Unknown);
                    continue;
                }
                self.depth += 1;
                let code = self.read_statement_sequence(node);
                self.depth -= 1;
                found.push(ScriptNode::Subshell(Box::new(code)));
                continue;
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
    }

    fn read_redirected_statement(&mut self, node: Node<'_>) -> ScriptNode {
        let body = node.child_by_field_name("body");
        let mut code = body.map_or(ScriptNode::Sequence(Vec::new()), |body| {
            self.read_script_node_within_depth(body)
        });
        let mut cursor = node.walk();
        let redirects: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let redirects = redirects
            .into_iter()
            .filter(|child| Some(child.id()) != body.map(|body| body.id()));
        for redirect in redirects {
            if redirect.kind() != "heredoc_redirect" {
                if self.node_text(redirect).starts_with("&>") {
                    code = ScriptNode::BothOutputs(Box::new(code));
                }
                let mut inner = Vec::new();
                self.collect_command_substitutions(redirect, &mut inner);
                inner.push(code);
                // Substitutions in a redirect run before the command.
                code = ScriptNode::Sequence(inner);
                continue;
            }
            // `a <<END | b`, `a <<END || b`: the grammar puts the rest here.
            let mut cursor = redirect.walk();
            let parts: Vec<Node<'_>> = redirect.named_children(&mut cursor).collect();
            for part in parts.into_iter().filter(|part| part.kind() == "pipeline") {
                let mut members = vec![code];
                members.extend(self.read_pipeline_members(part));
                code = build_shell_pipeline(members);
            }
            if let Some(right) = redirect.child_by_field_name("right") {
                let right = Box::new(self.read_script_node_within_depth(right));
                code = match syntax_node_has_token(redirect, "||") {
                    true => ScriptNode::Or(Box::new(code), right),
                    false => ScriptNode::And(Box::new(code), right),
                };
            }
        }
        code
    }

    fn read_if_statement(&mut self, node: Node<'_>) -> ScriptNode {
        let mut arms = Vec::new();
        let mut otherwise = None;
        arms.extend(self.read_if_arm(node));
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "elif_clause" => arms.extend(self.read_if_arm(child)),
                "else_clause" => otherwise = Some(Box::new(self.read_statement_sequence(child))),
                _ => {}
            }
        }
        ScriptNode::If { arms, otherwise }
    }

    /// Reads what stands before `then`, and what stands after it.
    fn read_if_arm(&mut self, node: Node<'_>) -> Option<(ScriptNode, ScriptNode)> {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        let then = children.iter().position(|child| child.kind() == "then")?;
        let (asked, body) = children.split_at(then);
        let mut read = |nodes: &[Node<'_>]| {
            let nodes = nodes
                .iter()
                .filter(|node| node.is_named() && is_shell_statement_node_kind(node.kind()));
            ScriptNode::Sequence(
                nodes
                    .map(|node| self.read_script_node_within_depth(*node))
                    .collect(),
            )
        };
        Some((read(asked), read(body)))
    }

    fn read_while_loop(&mut self, node: Node<'_>) -> ScriptNode {
        let Some(body) = node.child_by_field_name("body") else {
            return ScriptNode::Unknown;
        };
        // The body is a child of the node just as the statements of the condition are.
        let asked = shell_list_statements(node)
            .into_iter()
            .filter(|(child, _)| child.id() != body.id());
        let condition: Vec<ScriptNode> = asked
            .map(|(node, _)| self.read_script_node_within_depth(node))
            .collect();
        ScriptNode::While {
            until: syntax_node_has_token(node, "until"),
            condition: Box::new(ScriptNode::Sequence(condition)),
            body: Box::new(self.read_script_node_within_depth(body)),
        }
    }

    fn read_for_loop(&mut self, node: Node<'_>) -> ScriptNode {
        let Some(body) = node.child_by_field_name("body") else {
            return ScriptNode::Unknown;
        };
        let variable = node.child_by_field_name("variable");
        let variable = variable.map_or("", |name| self.node_text(name)).to_owned();
        let mut cursor = node.walk();
        let values: Vec<Node<'_>> = node.children_by_field_name("value", &mut cursor).collect();
        let words: Option<Vec<String>> = values
            .iter()
            .map(|value| word_text_if_no_expansion(self.node_text(*value)))
            .collect();
        // A pattern that matches no file stands for itself, so its loop runs at least once.
        let pattern = |word: &String| word.contains(['*', '?', '[', '{']);
        let rounds = match words {
            // Such a loop may not run at all.
            Some(words) if node.kind() == "c_style_for_statement" || words.is_empty() => {
                LoopIterations::Any
            }
            Some(words) if words.iter().any(pattern) => LoopIterations::Some,
            Some(words) => LoopIterations::Words(words),
            None => LoopIterations::Any,
        };
        ScriptNode::For {
            variable,
            rounds,
            body: Box::new(self.read_script_node_within_depth(body)),
        }
    }

    fn read_case_statement(&mut self, node: Node<'_>) -> ScriptNode {
        let word = node.child_by_field_name("value");
        let word = word.map_or(ShellWordPieces::unknown_expansion(), |word| {
            parse_word_pieces(self.node_text(word))
        });
        let mut arms = Vec::new();
        let mut cursor = node.walk();
        let items: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for item in items.into_iter().filter(|item| item.kind() == "case_item") {
            let mut cursor = item.walk();
            let values: Vec<Node<'_>> = item.children_by_field_name("value", &mut cursor).collect();
            let mut statements = shell_list_statements(item);
            // The patterns are children of the item as well, and are no statements.
            statements.retain(|(node, _)| !values.iter().any(|value| value.id() == node.id()));
            let patterns = values
                .iter()
                .map(|value| self.node_text(*value).to_owned())
                .collect();
            let code = statements
                .into_iter()
                .map(|(node, _)| self.read_script_node_within_depth(node))
                .collect();
            arms.push((patterns, ScriptNode::Sequence(code)));
        }
        ScriptNode::Case { word, arms }
    }

    fn collect_local_variables(&self, node: Node<'_>, found: &mut BTreeSet<String>) {
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            // `export` sets a global variable even in a function.
            if node.kind() == "declaration_command" && !self.node_text(node).starts_with("export") {
                let words = self.node_text(node).split_whitespace().skip(1);
                let names = words.map(|word| word.split('=').next().unwrap_or(word));
                found.extend(names.map(str::to_owned));
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
    }
}

/// Builds a pipeline. A `!` on its first member negates the whole: `! a | b`.
fn build_shell_pipeline(mut members: Vec<ScriptNode>) -> ScriptNode {
    if !matches!(members.first(), Some(ScriptNode::Not(_))) {
        return ScriptNode::Pipe(members);
    }
    if let ScriptNode::Not(inner) = members.remove(0) {
        members.insert(0, *inner);
    }
    ScriptNode::Not(Box::new(ScriptNode::Pipe(members)))
}

/// Returns whether a test uses `==`, which is an error to some shells: `[ a == b ]`.
pub(super) fn uses_bash_only_equality(words: &[ShellWordPieces]) -> bool {
    words
        .iter()
        .any(|word| word.literal_text().as_deref() == Some("=="))
}

/// Returns the words between the brackets of a test.
pub(super) fn words_in_test_brackets(source: &str) -> Vec<ShellWordPieces> {
    let inner = source.trim_start_matches('[').trim_end_matches(']');
    split_shell_words_keeping_quotes(inner)
        .into_iter()
        .map(parse_word_pieces)
        .collect()
}

/// Returns whether `!` stands before a compound command, which the grammar does not see.
pub(super) fn is_negated_compound_command(text: &str, node: Node<'_>) -> bool {
    let before = text
        .get(..node.start_byte())
        .unwrap_or("")
        .trim_end_matches([' ', '\t']);
    let rest = before.strip_suffix('!');
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.ends_with([' ', '\t', '\n', ';', '&', '|', '('])
    })
}

/// Returns all names in a text except those that only begin an assignment: `a=b`.
fn names_read_in_shell_text(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    let (mut rest, mut before) = (text, ' ');
    while let Some(begins) = rest.find(is_part) {
        before = rest
            .get(..begins)
            .and_then(|text| text.chars().last())
            .unwrap_or(before);
        let name_on = rest.get(begins..).unwrap_or("");
        let end = name_on.find(|c: char| !is_part(c)).unwrap_or(name_on.len());
        let (name, after) = name_on.split_at(end);
        let assigned =
            after.starts_with("+=") || after.starts_with('=') && !after.starts_with("==");
        if !assigned || !matches!(before, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | '{') {
            found.insert(name.to_owned());
        }
        (rest, before) = (after, 'a');
    }
    found
}
