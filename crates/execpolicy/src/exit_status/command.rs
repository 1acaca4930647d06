//! One command by its words: what it is known to be, what it runs in turn, and what it
//! tells the shell itself.

use checkrein_core::exit_status::{CheckScriptCommandKind, ExitStatusMask, ExitStatusMaskKind};
use tree_sitter::Node;

use super::build_tools::{BuildTests, build_tests};
use super::called::{is_shell, joined, with_options};
use super::flow::Flow;
use super::left_behind::left_behind;
use super::recipes::RecipeLanguage;
use super::recognise::{Recognised, recognise};
use super::unsure_programs::may_be_left_out;
use super::{MAX_WORK, Position, shortened};
use crate::rules::basename;
use crate::shell::{Feed, Inner, Known, Word, read_word, unfold};

/// Commands like `timeout 5 COMMAND` inside one another.
const MAX_WRAPPERS: usize = 20;

impl<'t> Flow<'_, '_, 't> {
    pub(super) fn command(&mut self, node: Node<'t>, position: &Position) {
        let mut words: Vec<Word> = Vec::new();
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
        for child in &children {
            match child.kind() {
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" | "comment" => {}
                "variable_assignment" => {
                    self.sets_path(*child);
                    self.sets_make_flags(*child);
                    self.sets_read_first(self.source(*child));
                }
                _ => match self.constant_words(self.source(*child)) {
                    Some(constant) => words.extend(constant),
                    // Where the grammar and the shell do not agree, it is some word.
                    None => words.push(
                        read_word(*child, self.text)
                            .unwrap_or_else(|| Word::open(self.source(*child), Known::Many)),
                    ),
                },
            }
        }
        for child in children {
            self.substitutions(child, position);
        }
        let fed = self.fed.take();
        let position = match self.matters(&words) {
            true => self.position_of(node, position),
            false => position.clone(),
        };
        for word in words.iter().filter(|word| word.is_assignment()) {
            self.sets_read_first(&word.text);
        }
        let position = match &self.read_first {
            Some(text) if position.reach().is_ok() => position.hidden(ExitStatusMask {
                form: ExitStatusMaskKind::Tool,
                text: text.clone(),
            }),
            _ => position,
        };
        let here = Position {
            folder: self.shell.folder.clone(),
            ..position
        };
        let from = self.reader.reading.commands.len();
        self.words(&words, self.source(node), fed.as_deref(), &here, 0);
        self.noted(node, from);
    }

    /// Whether anybody asks what becomes of the status of this command. Programs that are there
    /// and are known for nothing fail as they like.
    fn matters(&self, words: &[Word]) -> bool {
        let Some(program) = words.first().and_then(Word::as_program) else {
            return !words.is_empty();
        };
        let name = basename(program);
        if self.functions.contains_key(program) {
            return false;
        }
        if matches!(name, "." | "source" | "wait") || is_shell(name) {
            return true;
        }
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        match recognise(&texts) {
            Recognised::Idle => !unfold(name, words, &Feed::Nothing).is_empty(),
            // Where there is much to ask, the form says enough of what nobody knows.
            Recognised::Known(CheckScriptCommandKind::Program)
                if self.reader.work > MAX_WORK / 2 =>
            {
                true
            }
            Recognised::Known(
                CheckScriptCommandKind::Program
                | CheckScriptCommandKind::Utility
                | CheckScriptCommandKind::Question,
            ) => {
                program.contains('/')
                    || name == "cargo"
                    || !(self.reader.project.has_program)(name)
                    || !unfold(name, words, &Feed::Nothing).is_empty()
            }
            _ => true,
        }
    }

    /// A command by its words. `text`: as it is written.
    pub(super) fn words(
        &mut self,
        words: &[Word],
        text: &str,
        fed: Option<&str>,
        position: &Position,
        depth: usize,
    ) {
        if depth >= MAX_WRAPPERS {
            self.reader.unread = Some("it is nested too deeply");
            return;
        }
        let Some(program) = words.first().and_then(Word::as_program) else {
            return self.unknown_program(words, text, fed, position, depth);
        };
        let name = basename(program);
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let arguments = texts.get(1..).unwrap_or(&[]);
        // `command pytest`, `timeout 5 pytest`: no function is meant.
        if depth == 0 && self.script.functions.contains_key(program) {
            return self.function_call(words, &texts, text, position);
        }
        if let Some(alias) = self.aliases.get(program).cloned() {
            // What it stands for, only the shell knows.
            let here = position.hidden(ExitStatusMask {
                form: ExitStatusMaskKind::Tool,
                text: alias,
            });
            self.reader
                .note(text, program, CheckScriptCommandKind::Tests(None), &here);
            return;
        }
        match name {
            "alias" => {
                let given = arguments.iter().filter_map(|word| word.split_once('='));
                let named = given.map(|(name, _)| (name.to_owned(), shortened(text)));
                return self.aliases.extend(named);
            }
            "set" => return self.set(arguments),
            "cd" | "pushd" => return self.moves(arguments),
            "wait" if arguments.iter().any(|word| !word.is_empty()) => {
                if position.reach().is_ok() {
                    for at in std::mem::take(&mut self.background) {
                        if let Some(command) = self.reader.reading.commands.get_mut(at) {
                            command.masked_by = None;
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
                    let same = if position.bash { "bash" } else { "dash" };
                    let read = self.reader.script_file(file, &[], Some(same), position);
                    // It may bring functions.
                    self.reader.reading.changes_path |= !read;
                }
                return;
            }
            "exec" if !arguments.is_empty() => {
                let here = Position {
                    value: position.exits.clone(),
                    ..position.clone()
                };
                self.wraps(name, words, text, fed, &here, depth);
                return;
            }
            "find" | "gfind" if arguments.contains(&";") => {
                let here = position.hidden(ExitStatusMask {
                    form: ExitStatusMaskKind::Tool,
                    text: "find -exec ... ;".to_owned(),
                });
                self.wraps(name, words, text, fed, &here, depth);
                return;
            }
            "script"
                if !arguments.iter().any(|word| {
                    matches!(*word, "-e" | "--return")
                        || word.starts_with('-') && !word.starts_with("--") && word.contains('e')
                }) =>
            {
                let here = position.hidden(ExitStatusMask {
                    form: ExitStatusMaskKind::Tool,
                    text: "script without -e".to_owned(),
                });
                self.wraps(name, words, text, fed, &here, depth);
                return;
            }
            "xargs" | "gxargs" if arguments.iter().any(|word| runs_if_given(word)) => {
                let here = Position {
                    may_not_run: true,
                    ..position.clone()
                };
                self.wraps(name, words, text, fed, &here, depth);
                return;
            }
            name if is_shell(name) => return self.shell_call(words, text, fed, position),
            _ => {}
        }
        let tests = build_tests(name, arguments);
        let lost = match &tests {
            BuildTests::Ignored(option) => Some(option.clone()),
            _ => left_behind(name, arguments),
        };
        let position = &Position {
            may_not_run: position.may_not_run || tests == BuildTests::Skipped,
            ..match lost {
                Some(text) => position.hidden(ExitStatusMask {
                    form: ExitStatusMaskKind::Tool,
                    text,
                }),
                None => position.clone(),
            }
        };
        if name == "cargo"
            && let Some(alias) = self.reader.cargo_alias(&texts, position)
        {
            let words: Vec<Word> = alias.into_iter().map(Word::fixed).collect();
            return self.words(&words, text, fed, position, depth + 1);
        }
        if name == "tox" {
            self.reader.tox(arguments, position);
        }
        if may_be_left_out(words) {
            // Without that word, which may come to none, it lists what there is, or helps.
            let here = Position {
                may_not_run: true,
                ..position.clone()
            };
            self.reader
                .note(text, program, CheckScriptCommandKind::Tests(None), &here);
            return;
        }
        match recognise(&texts) {
            Recognised::Idle => {
                self.wraps(name, words, text, fed, position, depth);
            }
            Recognised::Wraps(at) => {
                let inner = words.get(at..).unwrap_or(&[]);
                self.words(inner, text, fed, position, depth + 1);
            }
            Recognised::Script(at) => {
                let script = texts.get(at).copied().unwrap_or("");
                self.reader.script(script, &position.within(false));
            }
            Recognised::PackageScripts(call) => {
                self.reader.package_scripts(text, program, &call, position)
            }
            Recognised::Make(mut call) => {
                call.passed_over = call.passed_over.or(self.make_flags);
                self.reader
                    .recipes(text, program, RecipeLanguage::Make, &call, position)
            }
            Recognised::Just(call) => {
                self.reader
                    .recipes(text, program, RecipeLanguage::Just, &call, position)
            }
            Recognised::Known(CheckScriptCommandKind::Program)
                if program.contains('/') && !program.starts_with('/') =>
            {
                self.reader.script_file(program, &[], None, position);
                self.reader.note(
                    text,
                    program,
                    CheckScriptCommandKind::ProjectScript,
                    position,
                );
            }
            Recognised::Known(
                kind @ (CheckScriptCommandKind::Program
                | CheckScriptCommandKind::Utility
                | CheckScriptCommandKind::Question),
            ) => {
                if !self.wraps(name, words, text, fed, position, depth)
                    && !self.guarded.iter().any(|known| known == program)
                {
                    self.reader.note(text, program, kind, position);
                }
            }
            Recognised::Known(kind) => self.reader.note(text, program, kind, position),
        }
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
        // A word of the shell's own: what follows may be a function.
        let deeper = if name == "time" { depth } else { depth + 1 };
        for inner in unfold(name, words, &Feed::Nothing) {
            match inner {
                Inner::From(at) => {
                    wraps = true;
                    self.words(words.get(at..).unwrap_or(&[]), text, fed, position, deeper);
                }
                Inner::Command(inner) => {
                    wraps = true;
                    self.words(&inner, text, fed, position, deeper);
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
        let shell = words.first().map_or("", |word| word.text.as_str());
        let within = Position {
            bash: self.reader.knows_bash(shell),
            ..position.within(false)
        };
        match (words.get(at), fed) {
            (Some(script), _) if is_text => {
                self.reader
                    .script(&with_options(&options, &script.text), &within);
            }
            (Some(file), _) => {
                let file = file.text.clone();
                self.reader
                    .script_file(&file, &options, Some(shell), position);
                self.reader.note(
                    text,
                    words.first().map_or("", |word| word.text.as_str()),
                    CheckScriptCommandKind::ProjectScript,
                    position,
                );
            }
            (None, Some(fed)) => self.reader.script(&with_options(&options, fed), &within),
            (None, None) => {
                let Some(file) = self.fed_file.take() else {
                    return;
                };
                let read = self
                    .reader
                    .script_file(&file, &options, Some(shell), position);
                if !read {
                    let hider = ExitStatusMask::mask_from_unreadable_context(format!(
                        "{shell} reads {file}"
                    ));
                    let here = position.hidden(hider);
                    self.reader
                        .note(text, shell, CheckScriptCommandKind::Tests(None), &here);
                }
            }
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

/// `xargs -r`: without input it runs nothing.
fn runs_if_given(word: &str) -> bool {
    word == "--no-run-if-empty"
        || word.starts_with('-')
            && word.chars().skip(1).all(|c| c.is_ascii_alphanumeric())
            && word.contains('r')
}
