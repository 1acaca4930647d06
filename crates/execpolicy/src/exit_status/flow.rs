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
    background: Vec<usize>,
    /// Programs that run only if they are there: `command -v x && x`.
    guarded: Vec<String>,
    pub(super) calling: Vec<String>,
    /// A heredoc that the next command reads.
    fed: Option<String>,
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

fn is_statement(kind: &str) -> bool {
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

    fn hider(&self, form: HidingForm, mark: &str, from: usize, to: usize) -> StatusHider {
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

    fn visit(&mut self, node: Node<'t>, position: &Position) {
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

    fn children(&mut self, node: Node<'t>, position: &Position) {
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

    fn sets_path(&mut self, node: Node<'_>) {
        let source = self.source(node);
        self.reader.reading.changes_path |=
            source.starts_with("PATH=") || source.contains(" PATH=");
    }

    /// Commands whose output becomes words: nothing looks at their status.
    fn substitutions(&mut self, node: Node<'t>, position: &Position) {
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

    fn list(&mut self, node: Node<'t>, position: &Position) {
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
    fn alternative(&self, right: Node<'t>, position: &Position) -> Reach {
        self.failure_of(right, position).unwrap_or_else(|| {
            Err(self.hider(
                HidingForm::Alternative,
                "|| ",
                right.start_byte(),
                right.end_byte(),
            ))
        })
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

    fn pipeline(&mut self, node: Node<'t>, position: &Position) {
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
                here.value = match &position.pipe_statuses {
                    Some(reach) => reach.clone(),
                    None => {
                        Err(self.hider(HidingForm::Pipe, "| ", next.start_byte(), node.end_byte()))
                    }
                };
                // What hid it already hides it still.
                if let (Err(_), Err(outer)) = (&here.value, &position.reach()) {
                    here.value = Err(outer.clone());
                }
            }
            let saved = self.shell.clone();
            let within = here.within(here.ends_on_error);
            self.visit(*member, &within);
            self.shell = saved;
        }
    }

    fn redirected(&mut self, node: Node<'t>, position: &Position) {
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
                                    HidingForm::Pipe,
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
                self.substitutions(redirect, position);
            }
        }
        if let Some(body) = body {
            self.visit(body, &here);
        }
        self.fed = None;
    }

    fn condition(&mut self, node: Node<'t>, position: &Position) {
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
            &position.hidden(self.hider(HidingForm::Condition, "if", 0, 0)),
        );
        let leaves = negated_leaves(asked);
        let branch = match (&leaves, &otherwise) {
            (Some(_), _) => Some(body.clone()),
            (None, Some(otherwise)) if elifs.is_empty() => Some(statements_of(*otherwise)),
            (None, _) => None,
        };
        let reach = branch.and_then(|branch| self.failure_of_all(&branch, position));
        let here = Position {
            value: reach.unwrap_or_else(|| {
                Err(self.hider(
                    HidingForm::Condition,
                    "if ",
                    asked.start_byte(),
                    asked.end_byte(),
                ))
            }),
            heeds_errors: false,
            ends_on_error: false,
            ..position.clone()
        };
        match leaves {
            Some(leaves) => leaves
                .into_iter()
                .for_each(|leaf| self.children(leaf, &here)),
            None => self.visit(asked, &here),
        }
        let from = self.guarded.len();
        let guards = self.guards(asked, false);
        self.guarded.extend(guards);
        self.statements(&body, position);
        self.guarded.truncate(from);
        for clause in elifs.into_iter().chain(otherwise) {
            self.visit(clause, position);
        }
    }

    fn while_loop(&mut self, node: Node<'t>, position: &Position) {
        let body = node.child_by_field_name("body");
        let condition = node.child_by_field_name("condition");
        let leaves = condition.and_then(negated_leaves);
        // It goes on until it succeeds.
        let insists = (has_token(node, "until") || leaves.is_some())
            && body.is_none_or(|body| {
                let words: Vec<&str> = self
                    .source(body)
                    .split(|c: char| !c.is_alphanumeric())
                    .collect();
                !words
                    .iter()
                    .any(|word| matches!(*word, "break" | "exit" | "return"))
            });
        if let Some(condition) = condition {
            let mut here = match insists {
                true => position.clone(),
                false => position.hidden(self.hider(
                    HidingForm::Condition,
                    "while ",
                    condition.start_byte(),
                    condition.end_byte(),
                )),
            };
            here.heeds_errors = false;
            here.ends_on_error = false;
            match leaves {
                Some(leaves) => leaves
                    .into_iter()
                    .for_each(|leaf| self.children(leaf, &here)),
                None => self.visit(condition, &here),
            }
        }
        if let Some(body) = body {
            let here = position.hidden(self.hider(
                HidingForm::Loop,
                "",
                node.start_byte(),
                body.start_byte(),
            ));
            self.visit(body, &here);
        }
    }

    fn for_loop(&mut self, node: Node<'t>, position: &Position) {
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
        let mut here =
            position.hidden(self.hider(HidingForm::Loop, "", node.start_byte(), body.start_byte()));
        if literal {
            let rounds = u32::try_from(values.len()).unwrap_or(u32::MAX).max(1);
            here.times = here.times.saturating_mul(rounds);
        }
        self.visit(body, &here);
    }

    fn command(&mut self, node: Node<'t>, position: &Position) {
        let mut words: Vec<Word> = Vec::new();
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
        for child in &children {
            match child.kind() {
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" | "comment" => {}
                "variable_assignment" => self.sets_path(*child),
                _ => match read_word(*child, self.text) {
                    Some(word) => words.push(word),
                    None => return,
                },
            }
        }
        for child in children {
            self.substitutions(child, position);
        }
        let fed = self.fed.take();
        let here = Position {
            folder: self.shell.folder.clone(),
            ..position.clone()
        };
        self.words(&words, self.source(node), fed.as_deref(), &here, 0);
    }

    /// A command by its words. `text`: as it is written.
    fn words(
        &mut self,
        words: &[Word],
        text: &str,
        fed: Option<&str>,
        position: &Position,
        depth: usize,
    ) {
        let Some(program) = words
            .first()
            .and_then(Word::as_program)
            .filter(|_| depth < 20)
        else {
            return;
        };
        let name = basename(program);
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let arguments = texts.get(1..).unwrap_or(&[]);
        if let Some(body) = self.functions.get(program).copied() {
            if !self.calling.iter().any(|known| known == program) && self.calling.len() < 20 {
                self.calling.push(program.to_owned());
                let here = Position {
                    returns: position.reach(),
                    ..position.clone()
                };
                self.visit(body, &here);
                self.calling.pop();
            }
            return;
        }
        match name {
            "set" => return self.set(arguments),
            "cd" | "pushd" => return self.moves(arguments),
            "wait" if arguments.iter().any(|word| !word.is_empty()) => {
                if position.reach().is_ok() {
                    for at in std::mem::take(&mut self.background) {
                        if let Some(command) = self.reader.reading.commands.get_mut(at) {
                            command.hidden_by = None;
                        }
                    }
                }
                return;
            }
            "trap" => {
                let ends = |word: &&str| word.split_whitespace().any(|word| word == "exit");
                if arguments.contains(&"ERR") && arguments.first().is_some_and(ends) {
                    self.shell.ends_on_error = true;
                }
                return;
            }
            "." | "source" => {
                self.reader.reading.changes_path |=
                    arguments.iter().any(|word| word.ends_with("activate"));
                if let Some(file) = arguments.first() {
                    self.reader.script_file(file, &[], position);
                }
                return;
            }
            "exec" if !arguments.is_empty() => {
                let here = Position {
                    value: position.exits.clone(),
                    ..position.clone()
                };
                return self.wrapped(name, words, text, fed, &here, depth);
            }
            "find" | "gfind" if arguments.contains(&";") => {
                let here = position.hidden(StatusHider {
                    form: HidingForm::Tool,
                    text: "find -exec ... ;".to_owned(),
                });
                return self.wrapped(name, words, text, fed, &here, depth);
            }
            "script"
                if !arguments.iter().any(|word| {
                    matches!(*word, "-e" | "--return")
                        || word.starts_with('-') && !word.starts_with("--") && word.contains('e')
                }) =>
            {
                let here = position.hidden(StatusHider {
                    form: HidingForm::Tool,
                    text: "script without -e".to_owned(),
                });
                return self.wrapped(name, words, text, fed, &here, depth);
            }
            name if is_shell(name) => return self.shell_call(words, text, fed, position),
            _ => {}
        }
        match recognise(&texts) {
            Recognised::Idle => self.wrapped(name, words, text, fed, position, depth),
            Recognised::Wraps(at) => {
                let inner = words.get(at..).unwrap_or(&[]);
                self.words(inner, text, fed, position, depth + 1);
            }
            Recognised::PackageScripts(call) => {
                self.reader.package_scripts(text, program, &call, position)
            }
            Recognised::Make(call) => {
                self.reader
                    .recipes(text, program, RecipeLanguage::Make, &call, position)
            }
            Recognised::Just(call) => {
                self.reader
                    .recipes(text, program, RecipeLanguage::Just, &call, position)
            }
            Recognised::Known(CommandKind::Program)
                if program.contains('/') && !program.starts_with('/') =>
            {
                self.reader.script_file(program, &[], position);
                self.reader
                    .note(text, program, CommandKind::ProjectScript, position);
            }
            Recognised::Known(CommandKind::Program) => {
                if !self.wraps(name, words, text, fed, position, depth)
                    && !self.guarded.iter().any(|known| known == program)
                {
                    self.reader
                        .note(text, program, CommandKind::Program, position);
                }
            }
            Recognised::Known(kind) => self.reader.note(text, program, kind, position),
        }
    }

    fn wrapped(
        &mut self,
        name: &str,
        words: &[Word],
        text: &str,
        fed: Option<&str>,
        position: &Position,
        depth: usize,
    ) {
        self.wraps(name, words, text, fed, position, depth);
    }

    /// Reads what a command like `timeout 5 COMMAND` runs; whether it is one.
    fn wraps(
        &mut self,
        name: &str,
        words: &[Word],
        text: &str,
        fed: Option<&str>,
        position: &Position,
        depth: usize,
    ) -> bool {
        let mut wraps = false;
        for inner in unfold(name, words, &Feed::Nothing) {
            match inner {
                Inner::From(at) => {
                    wraps = true;
                    self.words(
                        words.get(at..).unwrap_or(&[]),
                        text,
                        fed,
                        position,
                        depth + 1,
                    );
                }
                Inner::Command(inner) => {
                    wraps = true;
                    self.words(&inner, text, fed, position, depth + 1);
                }
                Inner::Script { text, .. } => {
                    wraps = true;
                    self.reader.script(&text, &position.within(false));
                }
                Inner::Given(_)
                | Inner::AnyFrom(_)
                | Inner::Code(_)
                | Inner::Unreadable(_)
                | Inner::Fetched(_)
                | Inner::Typed
                | Inner::Alias(..) => {}
            }
        }
        wraps
    }

    /// `sh -c TEXT`, `bash FILE`, `sh <<END`.
    fn shell_call(&mut self, words: &[Word], text: &str, fed: Option<&str>, position: &Position) {
        let mut options: Vec<&str> = Vec::new();
        let mut at = 1;
        while let Some(word) = words.get(at).map(|word| word.text.as_str()) {
            if word == "--" {
                at += 1;
                break;
            }
            if !word.starts_with(['-', '+']) || word == "-" {
                break;
            }
            options.push(word);
            at += 1;
            for _ in word.matches(['o', 'O']).filter(|_| !word.starts_with("--")) {
                options.extend(words.get(at).map(|word| word.text.as_str()));
                at += 1;
            }
        }
        let is_text = options
            .iter()
            .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('c'));
        let within = position.within(false);
        match (words.get(at), fed) {
            (Some(script), _) if is_text => {
                self.reader
                    .script(&with_options(&options, &script.text), &within);
            }
            (Some(file), _) => {
                let file = file.text.clone();
                self.reader.script_file(&file, &options, position);
                self.reader.note(
                    text,
                    words.first().map_or("", |word| word.text.as_str()),
                    CommandKind::ProjectScript,
                    position,
                );
            }
            (None, Some(fed)) => self.reader.script(&with_options(&options, fed), &within),
            (None, None) => {}
        }
    }

    fn set(&mut self, arguments: &[&str]) {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let on = word.starts_with('-');
            let Some(letters) = word.strip_prefix(['-', '+']) else {
                return;
            };
            if letters.starts_with('-') {
                return;
            }
            if letters.contains('e') {
                self.shell.ends_on_error = on;
            }
            for _ in letters.matches('o') {
                match words.next() {
                    Some(&"pipefail") => self.shell.fails_in_pipes = on,
                    Some(&"errexit") => self.shell.ends_on_error = on,
                    _ => {}
                }
            }
        }
    }

    fn moves(&mut self, arguments: &[&str]) {
        let to = arguments.iter().find(|word| !word.starts_with('-'));
        // Where nobody knows, no file is found.
        self.shell.folder = to
            .and_then(|to| joined(&self.shell.folder, to))
            .unwrap_or_else(|| "\0".to_owned());
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
