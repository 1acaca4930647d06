//! Walks the syntax tree of a script the way a shell does, and says of each command
//! whether its failure becomes the script's.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use checkrein_core::exit_status::{ExitStatusMask, ExitStatusMaskKind};
use tree_sitter::Node;

use super::called::joined;
use super::makefile::flags_pass_over;
use super::script::Script;
use super::script_reader::{is_negated, read_code};
use super::simulation::Answer;
use super::{Position, ProjectEntry, Reader, shortened};
use crate::shell::Word;

/// Statements inside one another, of all scripts. What goes deeper is not read further.
const MAX_NESTING: usize = 80;
/// Brackets of one kind in a script that is read at all; the parser takes memory for each.
const MAX_BRACKETS: usize = 2_000;
/// Brackets of all kinds that are open at once. What is read is walked recursively.
const MAX_OPEN: i32 = 200;
/// Bytes of a script that is read.
const MAX_SCRIPT: usize = 128 * 1024;

/// Whether a text of this size is read.
pub(super) fn parsed_size(text: &str) -> bool {
    text.len() <= MAX_SCRIPT
        && !text.contains('\0')
        && text.matches('(').count() <= MAX_BRACKETS
        && most_open(text) <= MAX_OPEN
}

/// The most brackets that are open at once, quoted ones included. One that closes without having been
/// opened (`a)` of a `case`) makes no room for others.
fn most_open(text: &str) -> i32 {
    let (mut open, mut most) = (0_i32, 0_i32);
    for byte in text.bytes() {
        match byte {
            b'(' | b'{' | b'[' => open += 1,
            b')' | b'}' | b']' => open = (open - 1).max(0),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// Reads `text` as a script whose own status stands at `position`.
pub(super) fn read_script(reader: &mut Reader<'_>, text: &str, position: &Position) {
    if !parsed_size(text) {
        reader.unread = Some("it is too long, or nested too deeply");
        return;
    }
    let Some(tree) = reader.scripts.tree(text) else {
        reader.unread = Some("it could not be parsed");
        return;
    };
    let root = tree.root_node();
    if root.has_error() {
        // What stands there may be anything: `((a); b)` is two subshells.
        reader.unread = Some("a part of it could not be parsed");
    }
    let mut script = read_code(root, text);
    reader.add_sourced(&mut script, &position.folder);
    let mut flow = Flow {
        reader,
        text,
        root,
        constants: script.constants(),
        script,
        position,
        functions: HashMap::new(),
        hides: HashMap::new(),
        honest: None,
        noted: Vec::new(),
        shell: ShellState {
            ends_on_error: false,
            fails_in_pipes: false,
            folder: position.folder.clone(),
        },
        background: Vec::new(),
        guarded: Vec::new(),
        calling: Vec::new(),
        arguments: Vec::new(),
        aliases: HashMap::new(),
        make_flags: None,
        read_first: None,
        fed: None,
        fed_file: None,
    };
    flow.find_functions();
    let position = Position {
        heeds_errors: true,
        ..position.clone()
    };
    flow.statements(&statements_of(root), &position);
    flow.find_skipped();
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
    pub(super) root: Node<'t>,
    pub(super) script: Script,
    pub(super) constants: HashMap<String, String>,
    /// Where the whole script stands.
    pub(super) position: &'a Position,
    pub(super) functions: HashMap<String, Node<'t>>,
    /// Whether the script hides the failure of the command at a place.
    pub(super) hides: HashMap<usize, Answer>,
    /// Commands that are known to hide nothing, once that was asked.
    pub(super) honest: Option<BTreeSet<usize>>,
    /// Commands by their places, with what was noted of each.
    pub(super) noted: Vec<(usize, Range<usize>)>,
    pub(super) shell: ShellState,
    /// Places in the reading of commands that run in the background.
    pub(super) background: Vec<usize>,
    /// Programs that run only if they are there: `command -v x && x`.
    pub(super) guarded: Vec<String>,
    pub(super) calling: Vec<String>,
    /// What each of these functions was given.
    pub(super) arguments: Vec<Vec<Word>>,
    /// Other names of commands, each with its definition.
    pub(super) aliases: HashMap<String, String>,
    /// What `MAKEFLAGS` lets make pass over.
    pub(super) make_flags: Option<&'static str>,
    /// What every shell that is called reads first: `BASH_ENV=file`.
    pub(super) read_first: Option<String>,
    /// A heredoc that the next command reads.
    pub(super) fed: Option<String>,
    /// A file that it reads: `sh < FILE`, `cat FILE | sh`.
    pub(super) fed_file: Option<String>,
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
        form: ExitStatusMaskKind,
        mark: &str,
        from: usize,
        to: usize,
    ) -> ExitStatusMask {
        let rest = self.text.get(from..to).unwrap_or("").trim();
        ExitStatusMask {
            form,
            text: shortened(&format!("{mark}{rest}")),
        }
    }

    fn find_functions(&mut self) {
        let mut pending = vec![self.root];
        while let Some(node) = pending.pop() {
            let name = node.child_by_field_name("name");
            let body = node.child_by_field_name("body");
            if let ("function_definition", Some(name), Some(body)) = (node.kind(), name, body) {
                self.functions.insert(self.source(name).to_owned(), body);
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
    }

    /// The words that a word with a constant stands for: `$T`, `"${T}"`.
    pub(super) fn constant_words(&self, source: &str) -> Option<Vec<Word>> {
        let quoted = source
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        let name = quoted.unwrap_or(source).strip_prefix('$')?;
        let braced = name
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'));
        let name = braced.unwrap_or(name);
        if matches!(name, "@" | "*") {
            return self.given();
        }
        let value = self.constants.get(name)?;
        Some(match quoted {
            Some(_) => vec![Word::fixed(value.as_str())],
            None => value.split_whitespace().map(Word::fixed).collect(),
        })
    }

    /// What the function that is being read was given, if it keeps that as it is.
    fn given(&self) -> Option<Vec<Word>> {
        let name = self.calling.last()?;
        let body = self.functions.get(name)?;
        let moves = ["shift", "set "]
            .iter()
            .any(|word| self.source(*body).contains(word));
        self.arguments.last().filter(|_| !moves).cloned()
    }

    /// Statements one after the other.
    pub(super) fn statements(&mut self, statements: &[Statement<'t>], position: &Position) {
        for (at, (node, background)) in statements.iter().enumerate() {
            let next = statements.get(at + 1).map(|(next, _)| *next);
            let mut here = Position {
                folder: self.shell.folder.clone(),
                ends_on_error: self.shell.ends_on_error && position.heeds_errors,
                ..position.clone()
            };
            if *background {
                here = here.hidden(self.hider(ExitStatusMaskKind::Background, "&", 0, 0));
                here.heeds_errors = false;
                here.ends_on_error = false;
            } else if let Some(next) = next {
                // What hides all of them is what there is to say.
                here.value = position.value.clone().and_then(|()| {
                    let (from, to) = (next.start_byte(), next.end_byte());
                    Err(self.hider(ExitStatusMaskKind::Sequence, "; ", from, to))
                });
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
            self.reader.unread = Some("it is nested too deeply");
            return;
        }
        self.reader.visits = self.reader.visits.saturating_sub(1);
        if self.reader.visits == 0 {
            self.reader.unread = Some("it is too long");
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
                let mut hidden = position.hidden(ExitStatusMask {
                    form: ExitStatusMaskKind::Negation,
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
                let hidden = is_negated(self.text, node).then(|| {
                    position.hidden(ExitStatusMask {
                        form: ExitStatusMaskKind::Negation,
                        text: "!".to_owned(),
                    })
                });
                self.statements(&statements_of(node), hidden.as_ref().unwrap_or(position));
            }
            // Read where it is called.
            "function_definition" => {}
            "variable_assignment" | "variable_assignments" => {
                self.sets_path(node);
                self.sets_read_first(self.source(node));
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
                self.sets_make_flags(node);
                self.sets_read_first(self.source(node));
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

    pub(super) fn sets_path(&mut self, node: Node<'_>) {
        let source = self.source(node);
        self.reader.reading.changes_path |=
            source.starts_with("PATH=") || source.contains(" PATH=");
    }

    /// `MAKEFLAGS=i make test`, `export MAKEFLAGS=-n`.
    pub(super) fn sets_make_flags(&mut self, node: Node<'_>) {
        let source = self.source(node);
        let source = source.strip_prefix("export ").unwrap_or(source);
        let value = source
            .strip_prefix("MAKEFLAGS=")
            .or_else(|| source.strip_prefix("GNUMAKEFLAGS="));
        if let Some(value) = value {
            self.make_flags = flags_pass_over(value.trim_matches(['"', '\'']));
        }
    }

    /// `export BASH_ENV=file`: what shells read first, or are told to do.
    pub(super) fn sets_read_first(&mut self, source: &str) {
        let Some((name, value)) = source.split_once('=') else {
            return;
        };
        let name = name.split_whitespace().last().unwrap_or("");
        let value = value.trim_matches(['"', '\'']);
        let is_file = || {
            let path = joined(&self.shell.folder, value);
            let entry = path.and_then(|path| (self.reader.project.entry)(&path));
            matches!(entry, Some(ProjectEntry::File { .. }))
        };
        let matters = match name {
            "BASH_ENV" | "SHELLOPTS" => !value.is_empty(),
            // Everybody's name for something else.
            "ENV" => is_file(),
            _ => false,
        };
        if matters {
            self.read_first = Some(shortened(source));
        }
    }

    /// Commands whose output becomes words: nothing looks at their status.
    pub(super) fn substitutions(&mut self, node: Node<'t>, position: &Position) {
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            if matches!(node.kind(), "command_substitution" | "process_substitution") {
                let source = shortened(self.source(node));
                let mut hidden = position.hidden(ExitStatusMask {
                    form: ExitStatusMaskKind::Substitution,
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
