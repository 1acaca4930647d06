//! From the syntax tree of a shell script to what matters of it.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use tree_sitter::Node;

use super::compound::has_token;
use super::expansion::{Expansion, literal, read_expansion, split_words};
use super::flow::{is_statement, statements_of};
use super::script::{Assignment, Code, Command, Function, Rounds, Script};

/// Statements inside one another; what is deeper may end in any way.
const MAX_DEPTH: usize = 60;

/// Reads the tree of `text`.
pub(super) fn read_code(root: Node<'_>, text: &str) -> Script {
    read(root, text, true)
}

/// Reads a text that is not part of the script: its places are not those of the script.
pub(super) fn read_code_apart(root: Node<'_>, text: &str) -> Script {
    read(root, text, false)
}

fn read(root: Node<'_>, text: &str, has_places: bool) -> Script {
    let mut reading = Reading {
        text,
        has_places,
        functions: HashMap::new(),
        size: 0,
        depth: 0,
    };
    let code = match root.kind() {
        "program" => reading.sequence(root),
        _ => reading.code(root),
    };
    Script {
        code,
        functions: reading.functions,
        size: reading.size,
        // Of a part, those of the whole count.
        reads: match root.kind() {
            "program" => names_read(text),
            _ => BTreeSet::new(),
        },
    }
}

struct Reading<'s> {
    text: &'s str,
    has_places: bool,
    functions: HashMap<String, Function>,
    size: usize,
    depth: usize,
}

impl<'s> Reading<'s> {
    fn source(&self, node: Node<'_>) -> &'s str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    fn place(&self, node: Node<'_>) -> usize {
        match self.has_places {
            true => node.start_byte(),
            false => usize::MAX,
        }
    }

    fn sequence(&mut self, node: Node<'_>) -> Code {
        let statements = statements_of(node);
        let read = statements.into_iter().map(|(node, background)| {
            let code = self.code(node);
            match background {
                true => Code::Background(Box::new(code)),
                false => code,
            }
        });
        Code::Sequence(read.collect())
    }

    fn code(&mut self, node: Node<'_>) -> Code {
        if self.depth >= MAX_DEPTH {
            return Code::Unknown;
        }
        self.depth += 1;
        let code = self.code_of(node);
        self.depth -= 1;
        code
    }

    fn code_of(&mut self, node: Node<'_>) -> Code {
        match node.kind() {
            "command" => self.command(node),
            "list" => {
                let last = u32::try_from(node.named_child_count()).unwrap_or(0);
                let right = last.checked_sub(1).and_then(|last| node.named_child(last));
                let (Some(left), Some(right)) = (node.named_child(0), right) else {
                    return Code::Unknown;
                };
                let (left, right) = (Box::new(self.code(left)), Box::new(self.code(right)));
                match has_token(node, "||") {
                    true => Code::Or(left, right),
                    false => Code::And(left, right),
                }
            }
            "pipeline" => {
                let members = self.members(node);
                pipe(members)
            }
            "redirected_statement" => self.redirected(node),
            "negated_command" => {
                let inner = node
                    .named_child(0)
                    .map_or(Code::Unknown, |child| self.code(child));
                Code::Not(Box::new(inner))
            }
            "if_statement" => self.condition(node),
            "while_statement" => self.while_loop(node),
            "for_statement" | "c_style_for_statement" => self.for_loop(node),
            "case_statement" => self.case(node),
            "subshell" => Code::Subshell(Box::new(self.sequence(node))),
            "compound_statement" if self.source(node).starts_with("((") => {
                let source = self.source(node);
                let inner = source.trim_start_matches('(').trim_end_matches(')');
                Code::Arithmetic(inner.trim().to_owned())
            }
            "compound_statement" | "do_group" | "else_clause" => {
                let code = self.sequence(node);
                match is_negated(self.text, node) {
                    true => Code::Not(Box::new(code)),
                    false => code,
                }
            }
            "function_definition" => {
                let name = node
                    .child_by_field_name("name")
                    .map(|name| self.source(name));
                let body = node.child_by_field_name("body");
                if let (Some(name), Some(body)) = (name, body) {
                    let code = self.code(body);
                    let mut own = BTreeSet::new();
                    self.own_variables(body, &mut own);
                    let function = Function {
                        body: Rc::new(code),
                        own: Rc::new(own),
                    };
                    self.functions.insert(name.to_owned(), function);
                }
                Code::Function
            }
            "variable_assignment" => Code::Assign {
                in_bash: has_token(node, "+="),
                assignments: vec![self.assignment(node)],
                declares: false,
            },
            "variable_assignments" | "declaration_command" => {
                let mut cursor = node.walk();
                let nodes: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
                let assigned = nodes
                    .iter()
                    .filter(|node| node.kind() == "variable_assignment");
                Code::Assign {
                    assignments: assigned.map(|node| self.assignment(*node)).collect(),
                    declares: node.kind() == "declaration_command",
                    in_bash: self.source(node).starts_with(['d', 't']),
                }
            }
            "test_command" => {
                let source = self.source(node);
                match source.strip_prefix("((") {
                    Some(inner) => Code::Arithmetic(inner.trim_end_matches(')').trim().to_owned()),
                    None => {
                        let words = test_words(source);
                        Code::Test {
                            in_bash: source.starts_with("[[") || compares_as_bash(&words),
                            words,
                        }
                    }
                }
            }
            "unset_command" => Code::Command(Command {
                at: self.place(node),
                words: split_words(self.source(node))
                    .into_iter()
                    .map(read_expansion)
                    .collect(),
                inner: Vec::new(),
            }),
            _ => Code::Unknown,
        }
    }

    fn members(&mut self, node: Node<'_>) -> Vec<Code> {
        let mut cursor = node.walk();
        let members: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let members = members
            .into_iter()
            .filter(|child| child.kind() != "comment");
        members.map(|child| self.code(child)).collect()
    }

    fn command(&mut self, node: Node<'_>) -> Code {
        self.size += 1;
        let mut words = Vec::new();
        let mut assignments = Vec::new();
        let mut inner = Vec::new();
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" | "comment" => {
                    self.substitutions(child, &mut inner);
                }
                "variable_assignment" => assignments.push(self.assignment(child)),
                _ => {
                    words.push(read_expansion(self.source(child)));
                    self.substitutions(child, &mut inner);
                }
            }
        }
        if words.is_empty() {
            return Code::Assign {
                assignments,
                declares: false,
                in_bash: false,
            };
        }
        for assignment in assignments {
            inner.extend(assignment.inner);
        }
        Code::Command(Command {
            at: self.place(node),
            words,
            inner,
        })
    }

    fn assignment(&mut self, node: Node<'_>) -> Assignment {
        let name = node
            .child_by_field_name("name")
            .map_or("", |name| self.source(name));
        let value = node.child_by_field_name("value");
        let mut inner = Vec::new();
        if let Some(value) = value {
            self.substitutions(value, &mut inner);
        }
        let source = value.map_or("", |value| self.source(value));
        let is_list = source.starts_with('(') || name.contains('[');
        Assignment {
            name: name.split('[').next().unwrap_or(name).to_owned(),
            value: match is_list {
                true => Expansion::unknown(),
                false => read_expansion(source),
            },
            appends: has_token(node, "+="),
            inner,
        }
    }

    /// Scripts whose output becomes words.
    fn substitutions(&mut self, node: Node<'_>, found: &mut Vec<Code>) {
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            if matches!(node.kind(), "command_substitution" | "process_substitution") {
                if self.depth >= MAX_DEPTH {
                    found.push(Code::Unknown);
                    continue;
                }
                self.depth += 1;
                let code = self.sequence(node);
                self.depth -= 1;
                found.push(Code::Subshell(Box::new(code)));
                continue;
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
    }

    fn redirected(&mut self, node: Node<'_>) -> Code {
        let body = node.child_by_field_name("body");
        let mut code = body.map_or(Code::Sequence(Vec::new()), |body| self.code(body));
        let mut cursor = node.walk();
        let redirects: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let redirects = redirects
            .into_iter()
            .filter(|child| Some(child.id()) != body.map(|body| body.id()));
        for redirect in redirects {
            if redirect.kind() != "heredoc_redirect" {
                if self.source(redirect).starts_with("&>") {
                    code = Code::BothOutputs(Box::new(code));
                }
                let mut inner = Vec::new();
                self.substitutions(redirect, &mut inner);
                inner.push(code);
                code = Code::Sequence(inner);
                continue;
            }
            // `a <<END | b`, `a <<END || b`: the grammar puts the rest here.
            let mut cursor = redirect.walk();
            let parts: Vec<Node<'_>> = redirect.named_children(&mut cursor).collect();
            for part in parts.into_iter().filter(|part| part.kind() == "pipeline") {
                let mut members = vec![code];
                members.extend(self.members(part));
                code = pipe(members);
            }
            if let Some(right) = redirect.child_by_field_name("right") {
                let right = Box::new(self.code(right));
                code = match has_token(redirect, "||") {
                    true => Code::Or(Box::new(code), right),
                    false => Code::And(Box::new(code), right),
                };
            }
        }
        code
    }

    fn condition(&mut self, node: Node<'_>) -> Code {
        let mut arms = Vec::new();
        let mut otherwise = None;
        arms.extend(self.arm(node));
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "elif_clause" => arms.extend(self.arm(child)),
                "else_clause" => otherwise = Some(Box::new(self.sequence(child))),
                _ => {}
            }
        }
        Code::If { arms, otherwise }
    }

    /// What stands before `then`, and after it.
    fn arm(&mut self, node: Node<'_>) -> Option<(Code, Code)> {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        let then = children.iter().position(|child| child.kind() == "then")?;
        let (asked, body) = children.split_at(then);
        let mut read = |nodes: &[Node<'_>]| {
            let nodes = nodes
                .iter()
                .filter(|node| node.is_named() && is_statement(node.kind()));
            Code::Sequence(nodes.map(|node| self.code(*node)).collect())
        };
        Some((read(asked), read(body)))
    }

    fn while_loop(&mut self, node: Node<'_>) -> Code {
        let Some(body) = node.child_by_field_name("body") else {
            return Code::Unknown;
        };
        let asked = statements_of(node)
            .into_iter()
            .filter(|(child, _)| child.id() != body.id());
        let condition: Vec<Code> = asked.map(|(node, _)| self.code(node)).collect();
        Code::While {
            until: has_token(node, "until"),
            condition: Box::new(Code::Sequence(condition)),
            body: Box::new(self.code(body)),
        }
    }

    fn for_loop(&mut self, node: Node<'_>) -> Code {
        let Some(body) = node.child_by_field_name("body") else {
            return Code::Unknown;
        };
        let variable = node.child_by_field_name("variable");
        let variable = variable.map_or("", |name| self.source(name)).to_owned();
        let mut cursor = node.walk();
        let values: Vec<Node<'_>> = node.children_by_field_name("value", &mut cursor).collect();
        let words: Option<Vec<String>> = values
            .iter()
            .map(|value| literal(self.source(*value)))
            .collect();
        let pattern = |word: &String| word.contains(['*', '?', '[', '{']);
        let rounds = match words {
            Some(words) if node.kind() == "c_style_for_statement" || words.is_empty() => {
                Rounds::Any
            }
            Some(words) if words.iter().any(pattern) => Rounds::Some,
            Some(words) => Rounds::Words(words),
            None => Rounds::Any,
        };
        Code::For {
            variable,
            rounds,
            body: Box::new(self.code(body)),
        }
    }

    fn case(&mut self, node: Node<'_>) -> Code {
        let word = node.child_by_field_name("value");
        let word = word.map_or(Expansion::unknown(), |word| {
            read_expansion(self.source(word))
        });
        let mut arms = Vec::new();
        let mut cursor = node.walk();
        let items: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for item in items.into_iter().filter(|item| item.kind() == "case_item") {
            let mut cursor = item.walk();
            let values: Vec<Node<'_>> = item.children_by_field_name("value", &mut cursor).collect();
            let mut statements = statements_of(item);
            statements.retain(|(node, _)| !values.iter().any(|value| value.id() == node.id()));
            let patterns = values
                .iter()
                .map(|value| self.source(*value).to_owned())
                .collect();
            let code = statements
                .into_iter()
                .map(|(node, _)| self.code(node))
                .collect();
            arms.push((patterns, Code::Sequence(code)));
        }
        Code::Case { word, arms }
    }

    fn own_variables(&self, node: Node<'_>, found: &mut BTreeSet<String>) {
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            if node.kind() == "declaration_command" && !self.source(node).starts_with("export") {
                let words = self.source(node).split_whitespace().skip(1);
                let names = words.map(|word| word.split('=').next().unwrap_or(word));
                found.extend(names.map(str::to_owned));
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
    }
}

/// `! a | b` negates the whole.
fn pipe(mut members: Vec<Code>) -> Code {
    if !matches!(members.first(), Some(Code::Not(_))) {
        return Code::Pipe(members);
    }
    if let Code::Not(inner) = members.remove(0) {
        members.insert(0, *inner);
    }
    Code::Not(Box::new(Code::Pipe(members)))
}

/// `[ a == b ]`: an error to some.
pub(super) fn compares_as_bash(words: &[Expansion]) -> bool {
    words
        .iter()
        .any(|word| word.literal().as_deref() == Some("=="))
}

/// The words between the brackets of a test.
pub(super) fn test_words(source: &str) -> Vec<Expansion> {
    let inner = source.trim_start_matches('[').trim_end_matches(']');
    split_words(inner).into_iter().map(read_expansion).collect()
}

/// A compound command with `!` before it: the grammar does not see that.
pub(super) fn is_negated(text: &str, node: Node<'_>) -> bool {
    let before = text
        .get(..node.start_byte())
        .unwrap_or("")
        .trim_end_matches([' ', '\t']);
    let rest = before.strip_suffix('!');
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.ends_with([' ', '\t', '\n', ';', '&', '|', '('])
    })
}

/// All names in a text but those that only begin an assignment: `a=b`.
fn names_read(text: &str) -> BTreeSet<String> {
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
