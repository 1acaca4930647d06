//! Whether something ends in failure for certain, and what looks at a status later:
//! `|| exit 1`, `|| { echo; exit 1; }`, `rc=$?; ...; exit $rc`.

use tree_sitter::Node;

use super::flow::{Flow, Statement, statements_of};
use super::{Position, Reach, shortened};

/// Functions and groups inside one another that are looked into for how they end.
const MAX_LOOKING: usize = 25;
/// Looks at how something ends, for one script.
const MAX_LOOKS: usize = 5_000;

impl<'t> Flow<'_, '_, 't> {
    /// Notes functions, and the variables that decide how the script ends.
    pub(super) fn survey(&mut self, root: Node<'t>) {
        let mut pending = vec![root];
        let (mut tested, mut ends) = (Vec::new(), false);
        while let Some(node) = pending.pop() {
            match node.kind() {
                "function_definition" => {
                    let name = node.child_by_field_name("name");
                    let body = node.child_by_field_name("body");
                    if let (Some(name), Some(body)) = (name, body) {
                        self.functions.insert(self.source(name).to_owned(), body);
                    }
                }
                "command" => match self.program(node) {
                    "exit" | "return" => {
                        ends |= self.argument(node) != Some("0");
                        self.consulted.extend(variables(self.source(node)));
                    }
                    "test" | "[" => tested.extend(variables(self.source(node))),
                    _ => {}
                },
                "test_command"
                | "arithmetic_expansion"
                | "compound_statement"
                | "case_statement"
                    if node.kind() != "compound_statement"
                        || self.source(node).starts_with("((") =>
                {
                    let head = self.source(node).split(" in").next().unwrap_or("");
                    tested.extend(variables(head));
                }
                _ => {}
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
        let last = statements_of(root).last().map(|(node, _)| *node);
        let tests_last = last.is_some_and(|last| {
            let source = self.source(last);
            source.starts_with(['[', '(']) || source.starts_with("test ")
        });
        if ends || tests_last {
            self.consulted.extend(tested);
        }
    }

    /// A trap that makes every end a success.
    pub(super) fn forgiving_trap(&self, root: Node<'t>) -> Option<String> {
        let mut pending = vec![root];
        while let Some(node) = pending.pop() {
            if node.kind() == "command" && self.program(node) == "trap" {
                let source = self.source(node);
                let words: Vec<&str> = source
                    .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';'))
                    .filter(|word| !word.is_empty())
                    .collect();
                let forgives = words.windows(2).any(|pair| pair == ["exit", "0"]);
                let meant = words
                    .last()
                    .is_some_and(|last| matches!(*last, "EXIT" | "ERR" | "0"));
                if forgives && meant {
                    return Some(shortened(source));
                }
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
        None
    }

    /// What becomes of a status at which the next statement looks; `None` if it does not.
    pub(super) fn captured(
        &self,
        next: Node<'t>,
        is_last: bool,
        position: &Position,
    ) -> Option<Reach> {
        if let Some(reach) = self.failure_of(next, position) {
            return Some(reach);
        }
        let source = self.source(next);
        if !["$?", "${?}", "PIPESTATUS", "pipestatus"]
            .iter()
            .any(|name| source.contains(name))
        {
            return None;
        }
        let kind = next.kind();
        let is_test = kind == "test_command" || matches!(self.program(next), "test" | "[");
        if is_test {
            let heeded = is_last || position.heeds_errors && self.shell.ends_on_error;
            return heeded.then(|| match position.value {
                Ok(()) => Ok(()),
                Err(_) => position.reach(),
            });
        }
        // `if [ $? -ne 0 ]; then exit 1; fi`
        let decides = matches!(
            kind,
            "if_statement" | "list" | "case_statement" | "redirected_statement"
        );
        (decides && self.has_failing_end(next)).then(|| position.exits.clone())
    }

    /// What becomes of a failure after which these statements run; `None` if they can succeed.
    pub(super) fn failure_of_all(
        &self,
        statements: &[Statement<'t>],
        position: &Position,
    ) -> Option<Reach> {
        let (last, before) = statements.split_last()?;
        for (node, _) in before {
            let program = self.program(*node);
            if matches!(program, "exit" | "return") || self.sets_consulted(*node) {
                return self.failure_of(*node, position);
            }
            if self.functions.contains_key(program)
                && let Some(reach) = self.failure_of(*node, position)
            {
                return Some(reach);
            }
        }
        self.failure_of(last.0, position)
    }

    /// The same of one statement.
    pub(super) fn failure_of(&self, node: Node<'t>, position: &Position) -> Option<Reach> {
        // Functions may call one another without end.
        let (depth, looks) = self.looking.get();
        if depth >= MAX_LOOKING || looks >= MAX_LOOKS {
            return None;
        }
        self.looking.set((depth + 1, looks + 1));
        let found = self.failure_of_one(node, position);
        self.looking.set((depth, self.looking.get().1));
        found
    }

    fn failure_of_one(&self, node: Node<'t>, position: &Position) -> Option<Reach> {
        match node.kind() {
            "command" => {
                let program = self.program(node);
                let fails = self.argument(node) != Some("0");
                match program {
                    "exit" => fails.then(|| position.exits.clone()),
                    "return" => fails.then(|| position.returns.clone()),
                    "false" => Some(position.reach()),
                    "continue" | "break" => None,
                    name => {
                        let body = self.functions.get(name).copied();
                        let body =
                            body.filter(|_| !self.calling.iter().any(|known| known == name))?;
                        let position = Position {
                            returns: position.reach(),
                            ..position.clone()
                        };
                        let statements = statements_of(body);
                        // A function that calls itself has no end that could be read here.
                        let calls_itself = self.source(body).contains(name);
                        (!calls_itself).then(|| self.failure_of_all(&statements, &position))?
                    }
                }
            }
            "variable_assignment" | "variable_assignments" | "declaration_command" => {
                self.sets_consulted(node).then(|| position.exits.clone())
            }
            "compound_statement" if self.source(node).starts_with("((") => {
                self.sets_consulted(node).then(|| position.exits.clone())
            }
            "compound_statement" => self.failure_of_all(&statements_of(node), position),
            "subshell" => {
                let within = position.within(position.ends_on_error);
                self.failure_of_all(&statements_of(node), &within)
            }
            "redirected_statement" => {
                let body = node.child_by_field_name("body")?;
                self.failure_of(body, position)
            }
            // `echo failed && exit 1`
            "list" => {
                let (left, right) = (node.named_child(0)?, node.named_child(1)?);
                let says = matches!(self.program(left), "echo" | "printf" | "cat");
                self.failure_of(right, position).filter(|_| says)
            }
            _ => None,
        }
    }

    /// Whether it sets a variable that decides how the script ends, and not to success.
    fn sets_consulted(&self, node: Node<'_>) -> bool {
        if !matches!(
            node.kind(),
            "variable_assignment"
                | "variable_assignments"
                | "declaration_command"
                | "compound_statement"
        ) {
            return false;
        }
        let source = self.source(node);
        let source = ["local ", "export ", "declare ", "((", "readonly "]
            .iter()
            .fold(source, |source, word| {
                source.strip_prefix(word).unwrap_or(source)
            });
        let end = source
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(source.len());
        let (name, rest) = source.split_at_checked(end).unwrap_or((source, ""));
        let value = rest
            .trim_start_matches(['+', '='])
            .trim_matches(['"', '\'']);
        let resets = matches!(value, "0" | "" | "false" | "no");
        self.consulted.contains(name) && !resets
    }

    fn has_failing_end(&self, node: Node<'t>) -> bool {
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            let ends = matches!(self.program(node), "exit" | "return");
            if ends && self.argument(node) != Some("0") || self.sets_consulted(node) {
                return true;
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
        false
    }

    /// The program of a command, as it is written; empty if it is none.
    fn program(&self, node: Node<'_>) -> &str {
        let name = match node.kind() {
            "command" => node.child_by_field_name("name"),
            _ => None,
        };
        name.map_or("", |name| self.source(name))
    }

    /// Its first argument.
    fn argument(&self, node: Node<'_>) -> Option<&str> {
        let argument = node.child_by_field_name("argument")?;
        Some(self.source(argument).trim_matches(['"', '\'']))
    }
}

/// Names of the variables that stand in a text.
fn variables(text: &str) -> Vec<String> {
    let names = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let names = names.filter(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    names.map(str::to_owned).collect()
}
