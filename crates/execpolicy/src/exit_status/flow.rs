//! Walks the syntax tree of a script the way a shell does, and says of each command
//! whether its failure becomes the script's.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use checkrein_core::exit_status::{CommandKind, HidingForm, StatusHider};
use tree_sitter::Node;

use super::called::{is_shell, joined, with_options};
use super::recipes::RecipeLanguage;
use super::recognise::{Recognised, recognise};
use super::{Position, Reach, Reader, shortened};
use crate::rules::basename;
use crate::shell::{Feed, Inner, Word, read_word, unfold};

/// Statements inside one another, of all scripts. What goes deeper is not read further.
const MAX_NESTING: usize = 80;
/// Brackets of a script that is read at all; the parser takes memory for each.
const MAX_BRACKETS: usize = 2_000;
/// Bytes of a script that is read.
const MAX_SCRIPT: usize = 128 * 1024;

/// Reads `text` as a script whose own status stands at `position`.
pub(super) fn read_script(reader: &mut Reader<'_>, text: &str, position: &Position) {
    if text.len() > MAX_SCRIPT || text.contains('\0') || text.matches('(').count() > MAX_BRACKETS {
        return;
    }
    let Some(tree) = reader.scripts.tree(text) else {
        return;
    };
    let root = tree.root_node();
    let mut flow = Flow {
        reader,
        text,
        functions: HashMap::new(),
        consulted: HashSet::new(),
        shell: ShellState {
            ends_on_error: false,
            fails_in_pipes: false,
            folder: position.folder.clone(),
        },
        background: Vec::new(),
        guarded: Vec::new(),
        calling: Vec::new(),
        fed: None,
        looking: Cell::new((0, 0)),
    };
    flow.survey(root);
    let mut position = Position {
        heeds_errors: true,
        ..position.clone()
    };
    if let Some(trap) = flow.forgiving_trap(root) {
        let hider = StatusHider {
            form: HidingForm::Trap,
            text: trap,
        };
        position.value = position.value.and_then(|()| Err(hider.clone()));
        position.exits = position.exits.and_then(|()| Err(hider.clone()));
        position.returns = position.returns.and(Err(hider));
    }
    flow.statements(&statements_of(root), &position);
}

/// What the shell has been told so far.
#[derive(Debug, Clone)]
pub(super) struct ShellState {
    /// `set -e`.
    pub(super) ends_on_error: bool,
    /// `set -o pipefail`.
    pub(super) fails_in_pipes: bool,
    /// Where it is, relative to the root.
    pub(super) folder: String,
}

/// A statement, and whether it runs in the background.
pub(super) type Statement<'t> = (Node<'t>, bool);

pub(super) struct Flow<'a, 'f, 't> {
    pub(super) reader: &'a mut Reader<'f>,
    pub(super) text: &'a str,
    pub(super) functions: HashMap<String, Node<'t>>,
    /// Variables that an `exit`, a `return` or a test looks at.
    pub(super) consulted: HashSet<String>,
    pub(super) shell: ShellState,
    /// Places in the reading of commands that run in the background.
    pub(super) background: Vec<usize>,
    /// Programs that run only if they are there: `command -v x && x`.
    pub(super) guarded: Vec<String>,
    pub(super) calling: Vec<String>,
    /// A heredoc that the next command reads.
    pub(super) fed: Option<String>,
    /// How deep it looks for an end, and how often it looked.
    pub(super) looking: Cell<(usize, usize)>,
}

/// The statements of a list, in order.
pub(super) fn statements_of(node: Node<'_>) -> Vec<Statement<'_>> {
    let mut found: Vec<Statement<'_>> = Vec::new();
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        if child.kind() == "&" {
            if let Some(last) = found.last_mut() {
                last.1 = true;
            }
        } else if child.is_named() && is_statement(child.kind()) {
            found.push((child, false));
        }
    }
    found
}

pub(super) fn is_statement(kind: &str) -> bool {
    !matches!(
        kind,
        "comment"
            | "word"
            | "variable_name"
            | "elif_clause"
            | "else_clause"
            | "heredoc_body"
            | "string"
            | "number"
            | "concatenation"
            | "simple_expansion"
            | "extglob_pattern"
    )
}

impl<'a, 't> Flow<'a, '_, 't> {
    pub(super) fn source(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    pub(super) fn hider(
        &self,
        form: HidingForm,
        mark: &str,
        from: usize,
        to: usize,
    ) -> StatusHider {
        let rest = self.text.get(from..to).unwrap_or("").trim();
        StatusHider {
            form,
            text: shortened(&format!("{mark}{rest}")),
        }
    }

    /// Statements one after the other.
    pub(super) fn statements(&mut self, statements: &[Statement<'t>], position: &Position) {
        for (at, (node, background)) in statements.iter().enumerate() {
            let next = statements.get(at + 1).map(|(next, _)| *next);
            let mut here = Position {
                folder: self.shell.folder.clone(),
                ends_on_error: self.shell.ends_on_error && position.heeds_errors,
                pipe_statuses: None,
                ..position.clone()
            };
            if *background {
                here = here.hidden(self.hider(HidingForm::Background, "&", 0, 0));
                here.heeds_errors = false;
                here.ends_on_error = false;
            } else if let Some(next) = next {
                let is_last = at + 2 == statements.len();
                here.value = match self.captured(next, is_last, position) {
                    Some(reach) => {
                        if self.source(next).contains("PIPESTATUS") {
                            here.pipe_statuses = Some(reach.clone());
                        }
                        reach
                    }
                    // What hides all of them is what there is to say.
                    None => position.value.clone().and_then(|()| {
                        Err(self.hider(
                            HidingForm::Sequence,
                            "; ",
                            next.start_byte(),
                            next.end_byte(),
                        ))
                    }),
                };
            }
            let from = self.reader.reading.commands.len();
            let saved = background.then(|| self.shell.clone());
            self.visit(*node, &here);
            if let Some(saved) = saved {
                self.shell = saved;
                self.background
                    .extend(from..self.reader.reading.commands.len());
            }
        }
    }

    pub(super) fn visit(&mut self, node: Node<'t>, position: &Position) {
        if self.reader.nesting >= MAX_NESTING {
            return;
        }
        self.reader.nesting += 1;
        self.visit_one(node, position);
        self.reader.nesting -= 1;
    }

    fn visit_one(&mut self, node: Node<'t>, position: &Position) {
        match node.kind() {
            "command" => self.command(node, position),
            "list" => self.list(node, position),
            "pipeline" => self.pipeline(node, position),
            "redirected_statement" => self.redirected(node, position),
            "negated_command" => {
                let mut hidden = position.hidden(StatusHider {
                    form: HidingForm::Negation,
                    text: "!".to_owned(),
                });
                hidden.heeds_errors = false;
                hidden.ends_on_error = false;
                self.children(node, &hidden);
            }
            "if_statement" | "elif_clause" => self.condition(node, position),
            "while_statement" => self.while_loop(node, position),
            "for_statement" | "c_style_for_statement" => self.for_loop(node, position),
            "case_statement" => {
                let mut cursor = node.walk();
                let items: Vec<Node<'t>> = node.named_children(&mut cursor).collect();
                for item in items {
                    match item.kind() {
                        "case_item" => {
                            let mut statements = statements_of(item);
                            let mut cursor = item.walk();
                            let values: Vec<usize> = item
                                .children_by_field_name("value", &mut cursor)
                                .map(|value| value.id())
                                .collect();
                            statements.retain(|(node, _)| !values.contains(&node.id()));
                            self.statements(&statements, position);
                        }
                        _ => self.substitutions(item, position),
                    }
                }
            }
            "subshell" => {
                let saved = self.shell.clone();
                let within = position.within(position.ends_on_error);
                self.statements(&statements_of(node), &within);
                self.shell = saved;
            }
            "compound_statement" | "do_group" | "else_clause" => {
                let hidden = self.is_negated(node).then(|| {
                    position.hidden(StatusHider {
                        form: HidingForm::Negation,
                        text: "!".to_owned(),
                    })
                });
                self.statements(&statements_of(node), hidden.as_ref().unwrap_or(position));
            }
            // Read where it is called.
            "function_definition" => {}
            "variable_assignment" | "variable_assignments" => {
                self.sets_path(node);
                // The status of `x=$(command)` is that of the command.
                let inner = first_substitution(node);
                match inner {
                    Some(inner) => {
                        let within = position.within(position.ends_on_error);
                        self.statements(&statements_of(inner), &within);
                    }
                    None => self.substitutions(node, position),
                }
            }
            "declaration_command" => {
                self.sets_path(node);
                self.substitutions(node, position);
            }
            _ => self.substitutions(node, position),
        }
    }

    pub(super) fn children(&mut self, node: Node<'t>, position: &Position) {
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.named_children(&mut cursor).collect();
        for child in children {
            self.visit(child, position);
        }
    }

    /// A compound command with `!` before it: the grammar does not see that.
    fn is_negated(&self, node: Node<'_>) -> bool {
        let before = self
            .text
            .get(..node.start_byte())
            .unwrap_or("")
            .trim_end_matches([' ', '\t']);
        let rest = before.strip_suffix('!');
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.ends_with([' ', '\t', '\n', ';', '&', '|', '('])
        })
    }

    pub(super) fn sets_path(&mut self, node: Node<'_>) {
        let source = self.source(node);
        self.reader.reading.changes_path |=
            source.starts_with("PATH=") || source.contains(" PATH=");
    }

    /// Commands whose output becomes words: nothing looks at their status.
    pub(super) fn substitutions(&mut self, node: Node<'t>, position: &Position) {
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            if matches!(node.kind(), "command_substitution" | "process_substitution") {
                let source = shortened(self.source(node));
                let mut hidden = position.hidden(StatusHider {
                    form: HidingForm::Substitution,
                    text: source,
                });
                hidden.heeds_errors = false;
                hidden.ends_on_error = false;
                let saved = self.shell.clone();
                self.statements(&statements_of(node), &hidden.within(false));
                self.shell = saved;
                continue;
            }
            let mut cursor = node.walk();
            pending.extend(
                node.named_children(&mut cursor)
                    .filter(|child| child.child_count() > 0),
            );
        }
    }
}

/// The substitution that is the whole of an assignment's value: `x=$(a)`, `x="$(a)"`.
fn first_substitution(node: Node<'_>) -> Option<Node<'_>> {
    let mut node = node.child_by_field_name("value")?;
    while node.kind() != "command_substitution" {
        if node.named_child_count() != 1 {
            return None;
        }
        node = node.named_child(0)?;
    }
    Some(node)
}
