//! Walks the syntax tree of a script in the way a shell does, and determines for each command
//! whether its failure becomes the script's.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use checkrein_core::exit_status::{ExitStatusMask, ExitStatusMaskKind};
use tree_sitter::Node;

use super::called_scripts::join_path_within_root;
use super::makefile::make_flag_ignoring_failures;
use super::script_model::ParsedShellScript;
use super::script_reader::{is_negated_compound_command, read_script_with_positions};
use super::simulation::ScriptQuestionYesOrNo;
use super::{CommandStatusContext, ExitStatusAnalyzer, FileFolderOrNothing, shorten_to_first_line};
use crate::shell::CommandWord;

/// How deep statements may be nested, over all scripts; what is deeper is not read.
const MAX_NESTING: usize = 80;
/// Brackets of one kind in a script that is read at all; the parser takes memory for each.
const MAX_BRACKETS: usize = 2_000;
/// Brackets of all kinds that are open at once; the tree is walked recursively.
const MAX_OPEN: i32 = 200;
/// Bytes of a script that is read.
const MAX_SCRIPT: usize = 128 * 1024;

/// Returns whether a text of this size is read.
pub(super) fn is_short_enough_to_parse(text: &str) -> bool {
    text.len() <= MAX_SCRIPT
        && !text.contains('\0')
        && text.matches('(').count() <= MAX_BRACKETS
        && max_open_brackets(text) <= MAX_OPEN
}

/// Returns the most brackets that are open at once, quoted ones included. A bracket that closes
/// without having been opened (`a)` of a `case`) does not offset others.
fn max_open_brackets(text: &str) -> i32 {
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
pub(super) fn trace_script_exit_statuses(
    reader: &mut ExitStatusAnalyzer<'_>,
    text: &str,
    position: &CommandStatusContext,
) {
    if !is_short_enough_to_parse(text) {
        reader.unread = Some("it is too long, or nested too deeply");
        return;
    }
    let Some(tree) = reader.scripts.shell_syntax_tree(text) else {
        reader.unread = Some("it could not be parsed");
        return;
    };
    let root = tree.root_node();
    if root.has_error() {
        // Such a part may mean anything: `((a); b)` is two subshells.
        reader.unread = Some("a part of it could not be parsed");
    }
    let mut script = read_script_with_positions(root, text);
    reader.add_sourced_functions(&mut script, &position.folder);
    let mut flow = ExitStatusTracer {
        reader,
        text,
        root,
        constants: script.constant_variables(),
        script,
        position,
        functions: HashMap::new(),
        hides: HashMap::new(),
        unhidden: None,
        command_ranges: Vec::new(),
        shell: ShellOptionsAndFolder {
            errexit: false,
            pipefail: false,
            folder: position.folder.clone(),
        },
        background: Vec::new(),
        guarded: Vec::new(),
        call_stack: Vec::new(),
        arguments: Vec::new(),
        aliases: HashMap::new(),
        make_flags: None,
        startup_file: None,
        stdin_text: None,
        stdin_file: None,
    };
    // Functions are collected first: a body may call one that is defined below it.
    flow.collect_shell_functions();
    let position = CommandStatusContext {
        errexit_applies: true,
        ..position.clone()
    };
    flow.trace_statement_exit_statuses(&shell_list_statements(root), &position);
    flow.mark_checks_script_may_skip();
}

/// The state of the shell so far.
#[derive(Debug, Clone)]
pub(super) struct ShellOptionsAndFolder {
    /// `set -e`.
    pub(super) errexit: bool,
    /// `set -o pipefail`.
    pub(super) pipefail: bool,
    /// Where it is, relative to the root.
    pub(super) folder: String,
}

/// A statement, and whether it runs in the background.
pub(super) type StatementWithBackgroundFlag<'t> = (Node<'t>, bool);

pub(super) struct ExitStatusTracer<'a, 'f, 't> {
    pub(super) reader: &'a mut ExitStatusAnalyzer<'f>,
    pub(super) text: &'a str,
    pub(super) root: Node<'t>,
    pub(super) script: ParsedShellScript,
    pub(super) constants: HashMap<String, String>,
    /// Where the whole script stands.
    pub(super) position: &'a CommandStatusContext,
    pub(super) functions: HashMap<String, Node<'t>>,
    /// Whether the script hides the failure of the command at a place.
    pub(super) hides: HashMap<usize, ScriptQuestionYesOrNo>,
    /// Commands that are known to hide nothing, once that was asked.
    pub(super) unhidden: Option<BTreeSet<usize>>,
    /// Commands by their places, with what was noted of each.
    pub(super) command_ranges: Vec<(usize, Range<usize>)>,
    pub(super) shell: ShellOptionsAndFolder,
    /// Places in the reading of commands that run in the background.
    pub(super) background: Vec<usize>,
    /// Programs that run only if they are there: `command -v x && x`.
    pub(super) guarded: Vec<String>,
    pub(super) call_stack: Vec<String>,
    /// What each of these functions was given.
    pub(super) arguments: Vec<Vec<CommandWord>>,
    /// Other names of commands, each with its definition.
    pub(super) aliases: HashMap<String, String>,
    /// What `MAKEFLAGS` lets make pass over.
    pub(super) make_flags: Option<&'static str>,
    /// What every shell that is called reads first: `BASH_ENV=file`.
    pub(super) startup_file: Option<String>,
    /// A heredoc that the next command reads.
    pub(super) stdin_text: Option<String>,
    /// A file that it reads: `sh < FILE`, `cat FILE | sh`.
    pub(super) stdin_file: Option<String>,
}

/// Returns the statements of a list, in order.
pub(super) fn shell_list_statements(node: Node<'_>) -> Vec<StatementWithBackgroundFlag<'_>> {
    let mut found: Vec<StatementWithBackgroundFlag<'_>> = Vec::new();
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        if child.kind() == "&" {
            if let Some(last) = found.last_mut() {
                last.1 = true;
            }
        } else if child.is_named() && is_shell_statement_node_kind(child.kind()) {
            found.push((child, false));
        }
    }
    found
}

pub(super) fn is_shell_statement_node_kind(kind: &str) -> bool {
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

impl<'a, 't> ExitStatusTracer<'a, '_, 't> {
    pub(super) fn node_text(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    pub(super) fn build_exit_status_mask(
        &self,
        form: ExitStatusMaskKind,
        mark: &str,
        from: usize,
        to: usize,
    ) -> ExitStatusMask {
        let rest = self.text.get(from..to).unwrap_or("").trim();
        ExitStatusMask {
            form,
            text: shorten_to_first_line(&format!("{mark}{rest}")),
        }
    }

    fn collect_shell_functions(&mut self) {
        let mut pending = vec![self.root];
        while let Some(node) = pending.pop() {
            let name = node.child_by_field_name("name");
            let body = node.child_by_field_name("body");
            if let ("function_definition", Some(name), Some(body)) = (node.kind(), name, body) {
                self.functions.insert(self.node_text(name).to_owned(), body);
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
    }

    /// Returns the words that a word with a constant expands to: `$T`, `"${T}"`.
    pub(super) fn expand_constant_shell_variable(&self, source: &str) -> Option<Vec<CommandWord>> {
        let quoted = source
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        let name = quoted.unwrap_or(source).strip_prefix('$')?;
        let braced = name
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'));
        let name = braced.unwrap_or(name);
        // In a function these stand for the arguments of the call that is being read.
        if matches!(name, "@" | "*") {
            return self.current_function_arguments();
        }
        let value = self.constants.get(name)?;
        Some(match quoted {
            Some(_) => vec![CommandWord::new_literal_word(value.as_str())],
            None => value
                .split_whitespace()
                .map(CommandWord::new_literal_word)
                .collect(),
        })
    }

    /// Returns the arguments of the function that is being read, if it does not change them.
    fn current_function_arguments(&self) -> Option<Vec<CommandWord>> {
        let name = self.call_stack.last()?;
        let body = self.functions.get(name)?;
        // `shift` and `set` change what `$@` stands for.
        let moves = ["shift", "set "]
            .iter()
            .any(|word| self.node_text(*body).contains(word));
        self.arguments.last().filter(|_| !moves).cloned()
    }

    /// Traces statements one after the other.
    pub(super) fn trace_statement_exit_statuses(
        &mut self,
        statements: &[StatementWithBackgroundFlag<'t>],
        position: &CommandStatusContext,
    ) {
        for (at, (node, background)) in statements.iter().enumerate() {
            let next = statements.get(at + 1).map(|(next, _)| *next);
            let mut here = CommandStatusContext {
                folder: self.shell.folder.clone(),
                errexit: self.shell.errexit && position.errexit_applies,
                ..position.clone()
            };
            if *background {
                here = here.with_status_hidden_by(self.build_exit_status_mask(
                    ExitStatusMaskKind::Background,
                    "&",
                    0,
                    0,
                ));
                here.errexit_applies = false;
                here.errexit = false;
            } else if let Some(next) = next {
                // If something around the list hides the status, that is the reason to name.
                here.own_reach = position.own_reach.clone().and_then(|()| {
                    let (from, to) = (next.start_byte(), next.end_byte());
                    Err(self.build_exit_status_mask(ExitStatusMaskKind::Sequence, "; ", from, to))
                });
            }
            let from = self.reader.reading.commands.len();
            // A background job is a subshell, so its `cd` and `set` end with it.
            let saved = background.then(|| self.shell.clone());
            self.trace_statuses_below_node(*node, &here);
            if let Some(saved) = saved {
                self.shell = saved;
                self.background
                    .extend(from..self.reader.reading.commands.len());
            }
        }
    }

    pub(super) fn trace_statuses_below_node(
        &mut self,
        node: Node<'t>,
        position: &CommandStatusContext,
    ) {
        // The walk is recursive, so its depth is bounded. That something was not read is reported.
        if self.reader.nesting >= MAX_NESTING {
            self.reader.unread = Some("it is nested too deeply");
            return;
        }
        // A function is visited at each call, so visits are counted and not nodes.
        self.reader.visits = self.reader.visits.saturating_sub(1);
        if self.reader.visits == 0 {
            self.reader.unread = Some("it is too long");
            return;
        }
        self.reader.nesting += 1;
        self.trace_shell_node_by_kind(node, position);
        self.reader.nesting -= 1;
    }

    fn trace_shell_node_by_kind(&mut self, node: Node<'t>, position: &CommandStatusContext) {
        match node.kind() {
            "command" => self.follow_exit_status_of_command(node, position),
            "list" => self.visit_and_or_list(node, position),
            "pipeline" => self.trace_pipeline_exit_statuses(node, position),
            "redirected_statement" => self.trace_redirected_statement(node, position),
            // `!` turns a failure into a success, and `set -e` ignores what it negates.
            "negated_command" => {
                let mut hidden = position.with_status_hidden_by(ExitStatusMask {
                    form: ExitStatusMaskKind::Negation,
                    text: "!".to_owned(),
                });
                hidden.errexit_applies = false;
                hidden.errexit = false;
                self.trace_statuses_in_child_nodes(node, &hidden);
            }
            "if_statement" | "elif_clause" => self.visit_if(node, position),
            "while_statement" => self.visit_while(node, position),
            "for_statement" | "c_style_for_statement" => self.visit_shell_for_loop(node, position),
            // Only one arm runs, so no arm hides the status of another.
            "case_statement" => {
                let mut cursor = node.walk();
                let items: Vec<Node<'t>> = node.named_children(&mut cursor).collect();
                for item in items {
                    match item.kind() {
                        "case_item" => {
                            let mut statements = shell_list_statements(item);
                            let mut cursor = item.walk();
                            let values: Vec<usize> = item
                                .children_by_field_name("value", &mut cursor)
                                .map(|value| value.id())
                                .collect();
                            // The patterns are children of the item as well, and are no
                            // statements.
                            statements.retain(|(node, _)| !values.contains(&node.id()));
                            self.trace_statement_exit_statuses(&statements, position);
                        }
                        _ => self.trace_command_substitutions(item, position),
                    }
                }
            }
            // A subshell has the status of its last command, and its `cd` and `set` end with it.
            "subshell" => {
                let saved = self.shell.clone();
                let within = position.child_process_exit_status_context(position.errexit);
                self.trace_statement_exit_statuses(&shell_list_statements(node), &within);
                self.shell = saved;
            }
            // The grammar does not see a `!` before a compound command.
            "compound_statement" | "do_group" | "else_clause" => {
                let hidden = is_negated_compound_command(self.text, node).then(|| {
                    position.with_status_hidden_by(ExitStatusMask {
                        form: ExitStatusMaskKind::Negation,
                        text: "!".to_owned(),
                    })
                });
                self.trace_statement_exit_statuses(
                    &shell_list_statements(node),
                    hidden.as_ref().unwrap_or(position),
                );
            }
            // Read where it is called.
            "function_definition" => {}
            "variable_assignment" | "variable_assignments" => {
                self.note_path_variable_change(node);
                self.note_bash_env_startup_file(self.node_text(node));
                // The status of `x=$(command)` is that of the command.
                let inner = whole_value_substitution(node);
                match inner {
                    Some(inner) => {
                        let within = position.child_process_exit_status_context(position.errexit);
                        self.trace_statement_exit_statuses(&shell_list_statements(inner), &within);
                    }
                    None => self.trace_command_substitutions(node, position),
                }
            }
            // `local x=$(a)` has the status of `local`, so that of `a` is lost.
            "declaration_command" => {
                self.note_path_variable_change(node);
                self.note_makeflags_assignment(node);
                self.note_bash_env_startup_file(self.node_text(node));
                self.trace_command_substitutions(node, position);
            }
            _ => self.trace_command_substitutions(node, position),
        }
    }

    pub(super) fn trace_statuses_in_child_nodes(
        &mut self,
        node: Node<'t>,
        position: &CommandStatusContext,
    ) {
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.named_children(&mut cursor).collect();
        for child in children {
            self.trace_statuses_below_node(child, position);
        }
    }

    pub(super) fn note_path_variable_change(&mut self, node: Node<'_>) {
        let source = self.node_text(node);
        self.reader.reading.changes_path |=
            source.starts_with("PATH=") || source.contains(" PATH=");
    }

    /// `MAKEFLAGS=i make test`, `export MAKEFLAGS=-n`.
    pub(super) fn note_makeflags_assignment(&mut self, node: Node<'_>) {
        let source = self.node_text(node);
        let source = source.strip_prefix("export ").unwrap_or(source);
        let value = source
            .strip_prefix("MAKEFLAGS=")
            .or_else(|| source.strip_prefix("GNUMAKEFLAGS="));
        if let Some(value) = value {
            self.make_flags = make_flag_ignoring_failures(value.trim_matches(['"', '\'']));
        }
    }

    /// Notes `export BASH_ENV=file`: a file that shells read first, or options that they get.
    pub(super) fn note_bash_env_startup_file(&mut self, source: &str) {
        let Some((name, value)) = source.split_once('=') else {
            return;
        };
        let name = name.split_whitespace().last().unwrap_or("");
        let value = value.trim_matches(['"', '\'']);
        let is_file = || {
            let path = join_path_within_root(&self.shell.folder, value);
            let entry = path.and_then(|path| (self.reader.project.entry)(&path));
            matches!(entry, Some(FileFolderOrNothing::File { .. }))
        };
        let matters = match name {
            "BASH_ENV" | "SHELLOPTS" => !value.is_empty(),
            // Many programs use this name for something else, so it counts only if it names a
            // file.
            "ENV" => is_file(),
            _ => false,
        };
        if matters {
            self.startup_file = Some(shorten_to_first_line(source));
        }
    }

    /// Traces commands whose output becomes words; nothing looks at their status.
    pub(super) fn trace_command_substitutions(
        &mut self,
        node: Node<'t>,
        position: &CommandStatusContext,
    ) {
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            if matches!(node.kind(), "command_substitution" | "process_substitution") {
                let source = shorten_to_first_line(self.node_text(node));
                let mut hidden = position.with_status_hidden_by(ExitStatusMask {
                    form: ExitStatusMaskKind::Substitution,
                    text: source,
                });
                hidden.errexit_applies = false;
                hidden.errexit = false;
                let saved = self.shell.clone();
                self.trace_statement_exit_statuses(
                    &shell_list_statements(node),
                    &hidden.child_process_exit_status_context(false),
                );
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

/// Returns the substitution that is the whole value of an assignment: `x=$(a)`, `x="$(a)"`.
fn whole_value_substitution(node: Node<'_>) -> Option<Node<'_>> {
    let mut node = node.child_by_field_name("value")?;
    while node.kind() != "command_substitution" {
        if node.named_child_count() != 1 {
            return None;
        }
        node = node.named_child(0)?;
    }
    Some(node)
}
