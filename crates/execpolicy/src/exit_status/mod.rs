//! Finds the commands of a check that can fail without the check failing: `a || true`, `a; b`,
//! `a | b`, and the same in the scripts, recipes and package scripts that it calls, as far as they
//! can be read.
//!
//! This module reads no file itself; the caller provides the texts.

mod build_tools;
mod called_scripts;
mod command;
mod compound;
mod detached_commands;
mod expansion;
mod justfile;
mod known_programs;
mod launchers;
mod make_variables;
mod makefile;
mod package_scripts;
mod recipe_file;
mod recipes;
mod recognise;
mod runner_calls;
mod runner_files;
mod script_model;
mod script_reader;
mod simulation;
mod simulation_queries;
mod status_tracer;
mod unknown_programs;

use crate::shell::ParsedShellScriptCache;
use checkrein_core::exit_status::{
    CheckScriptCommand, CheckScriptCommandKind, ExitStatusAnalysis, ExitStatusMask,
};

/// How deep scripts may call one another.
const MAX_DEPTH: usize = 12;
/// Scripts that are read for one check.
const MAX_SCRIPTS: usize = 200;
/// Commands that are reported for one check.
const MAX_COMMANDS: usize = 500;
/// Statements that are visited for one check, functions at each call.
const MAX_VISITS: usize = 20_000;
/// Work that the simulation of scripts may take for one check.
const MAX_WORK: usize = 24_000;
/// Characters kept of a command, or of what hides its status.
const MAX_TEXT: usize = 80;

/// What a check finds around it: files, folders, programs and its shell.
#[derive(Clone, Copy)]
pub struct ScriptProjectView<'a> {
    /// The text of a file, by its path relative to the root.
    pub text: &'a dyn Fn(&str) -> Option<String>,
    /// What stands at a path relative to the root.
    pub entry: &'a dyn Fn(&str) -> Option<FileFolderOrNothing>,
    /// The names of the folders in a folder.
    pub folders: &'a dyn Fn(&str) -> Vec<String>,
    /// Whether `sh` knows what bash knows: `[[`, `((`, `&>`, `+=`.
    pub sh_is_bash: bool,
    /// Whether a program can be found by its name alone.
    pub has_program: &'a dyn Fn(&str) -> bool,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFolderOrNothing {
    /// A file.
    File {
        /// Whether it can be run.
        executable: bool,
        /// Whether it holds anything.
        empty: bool,
    },
    /// A folder.
    Folder,
    /// Nothing.
    Nothing,
}

/// Analyses what becomes of the exit statuses in `script`.
pub fn analyze_exit_status_masking(
    script: &str,
    project: &ScriptProjectView<'_>,
) -> ExitStatusAnalysis {
    let mut reader = ExitStatusAnalyzer {
        project,
        scripts: ParsedShellScriptCache::default(),
        reading: ExitStatusAnalysis::default(),
        call_stack: Vec::new(),
        scripts_read: 0,
        nesting: 0,
        work: MAX_WORK,
        visits: MAX_VISITS,
        unread: None,
        absent: Vec::new(),
    };
    reader.analyze_script_exit_statuses(
        script,
        &CommandStatusContext::status_context_of_outermost_script(project.sh_is_bash),
    );
    // A part that was not read may hide anything, so it counts as a hidden test.
    let unread = reader.unread.map(|why| CheckScriptCommand {
        masked_by: Some(ExitStatusMask::unreadable_exit_status_mask(why)),
        ..reader.new_check_script_command(
            script,
            "sh",
            CheckScriptCommandKind::Tests(None),
            &CommandStatusContext::status_context_of_outermost_script(project.sh_is_bash),
        )
    });
    let mut reading = reader.reading;
    reading.commands.extend(unread);
    // A script that need not exist, and does not, matters only where nothing else is checked.
    let decides = |command: &CheckScriptCommand| command.kind != CheckScriptCommandKind::Program;
    if !reading.commands.iter().any(decides) {
        reading.commands.extend(reader.absent);
    }
    reading
}

/// Whether a status reaches the check's own; the error says what hides it.
type ExitStatusMaskResult = Result<(), ExitStatusMask>;

/// Where a script or a command stands.
#[derive(Debug, Clone)]
struct CommandStatusContext {
    /// Whether its own status becomes the check's.
    own_reach: ExitStatusMaskResult,
    /// Whether `exit 1` there makes the check fail.
    exit_reach: ExitStatusMaskResult,
    /// Whether `set -e` would apply here: not before `||` or `&&`, nor in a condition.
    errexit_applies: bool,
    /// Whether `set -e` is set and applies here.
    errexit: bool,
    /// The folder, relative to the root.
    folder: String,
    /// The file in which it stands.
    place: Option<String>,
    /// How often it runs.
    run_count: u32,
    /// Whether it may not run at all, as with `xargs -r`.
    may_not_run: bool,
    /// Whether its output goes to a file that is not shown.
    prints_elsewhere: bool,
    /// Whether the shell that reads it supports bash syntax.
    bash: bool,
}

impl CommandStatusContext {
    fn status_context_of_outermost_script(bash: bool) -> Self {
        Self {
            own_reach: Ok(()),
            exit_reach: Ok(()),
            errexit_applies: true,
            errexit: false,
            folder: String::new(),
            place: None,
            run_count: 1,
            may_not_run: false,
            prints_elsewhere: false,
            bash,
        }
    }

    /// Returns whether a failure here makes the check fail.
    fn failure_reaches_check(&self) -> ExitStatusMaskResult {
        match &self.own_reach {
            Ok(()) => Ok(()),
            // `set -e` ends the script at the failure, whatever follows it.
            Err(_) if self.errexit => self.exit_reach.clone(),
            Err(hider) => Err(hider.clone()),
        }
    }

    /// Returns the context of what a process of its own runs: a subshell, another script.
    fn child_process_exit_status_context(&self, ends_on_error: bool) -> Self {
        // A process ends by `exit` or after its last command, and either gives its status.
        let reach = self.failure_reaches_check();
        Self {
            own_reach: reach.clone(),
            exit_reach: reach,
            errexit: ends_on_error,
            ..self.clone()
        }
    }

    /// Returns the same context, with the status hidden.
    fn with_status_hidden_by(&self, hider: ExitStatusMask) -> Self {
        Self {
            own_reach: Err(hider),
            ..self.clone()
        }
    }
}

struct ExitStatusAnalyzer<'f> {
    project: &'f ScriptProjectView<'f>,
    scripts: ParsedShellScriptCache,
    reading: ExitStatusAnalysis,
    /// Names of the scripts that are being read; none is read within itself.
    call_stack: Vec<String>,
    scripts_read: usize,
    /// How deep the current statement is nested.
    nesting: usize,
    /// What is left of [`MAX_WORK`].
    work: usize,
    /// What is left of [`MAX_VISITS`].
    visits: usize,
    /// Why a part was not read, if one was not.
    unread: Option<&'static str>,
    /// Scripts that are called only if they exist, and do not.
    absent: Vec<CheckScriptCommand>,
}

impl ExitStatusAnalyzer<'_> {
    /// Analyses a script that a shell of its own reads.
    fn analyze_script_exit_statuses(&mut self, text: &str, position: &CommandStatusContext) {
        status_tracer::trace_script_exit_statuses(self, text, position);
    }

    /// Reads the script called `name`, unless it is being read already or the bounds are met.
    fn read_script_unless_recursive(&mut self, name: String, read: impl FnOnce(&mut Self)) {
        // The outer reading finds all that a recursive call could add.
        if self.call_stack.contains(&name) {
            return;
        }
        if self.call_stack.len() >= MAX_DEPTH || self.scripts_read >= MAX_SCRIPTS {
            self.unread = Some("it calls too many scripts");
            return;
        }
        self.scripts_read += 1;
        self.call_stack.push(name);
        read(self);
        self.call_stack.pop();
    }

    /// Reads each of several alternatives, of which only the run knows which one is taken. Unless
    /// all of them judge something, none does for certain.
    fn analyze_each_possible_branch(
        &mut self,
        ways: usize,
        why: &str,
        read: impl Fn(&mut Self, usize),
    ) {
        let from = self.reading.commands.len();
        let mut all_judge = true;
        for way in 0..ways {
            let before = self.reading.commands.len();
            read(self, way);
            let commands = self.reading.commands.get(before..).unwrap_or(&[]);
            all_judge &= commands
                .iter()
                .any(|command| command.kind != CheckScriptCommandKind::Utility);
        }
        if !all_judge {
            self.mark_commands_doubtful_from(from, why);
        }
    }

    /// Marks the commands noted from this index on: they may not be what runs.
    fn mark_commands_doubtful_from(&mut self, from: usize, why: &str) {
        // A reason that is known already is the more precise one, so it stays.
        let commands = self.reading.commands.get_mut(from..).unwrap_or_default();
        for command in commands {
            command
                .masked_by
                .get_or_insert_with(|| ExitStatusMask::unreadable_exit_status_mask(why));
        }
    }

    /// Marks the command noted at this index: it may not be what runs.
    fn mark_command_doubtful(&mut self, at: usize, why: &str) {
        if let Some(command) = self.reading.commands.get_mut(at) {
            command
                .masked_by
                .get_or_insert_with(|| ExitStatusMask::unreadable_exit_status_mask(why));
        }
    }

    fn project_file_text(&self, folder: &str, path: &str) -> Option<String> {
        (self.project.text)(&called_scripts::join_path_within_root(folder, path)?)
    }

    /// Records a command.
    fn record_check_script_command(
        &mut self,
        text: &str,
        program: &str,
        kind: CheckScriptCommandKind,
        position: &CommandStatusContext,
    ) {
        if self.reading.commands.len() < MAX_COMMANDS {
            let command = self.new_check_script_command(text, program, kind, position);
            self.reading.commands.push(command);
        } else if kind != CheckScriptCommandKind::Program
            || position.failure_reaches_check().is_err()
        {
            // An unknown program whose status counts can be left out without harm; what is hidden
            // cannot.
            self.unread = Some("it runs too many commands");
        }
    }

    fn new_check_script_command(
        &self,
        text: &str,
        program: &str,
        kind: CheckScriptCommandKind,
        position: &CommandStatusContext,
    ) -> CheckScriptCommand {
        CheckScriptCommand {
            text: shorten_to_first_line(text),
            program: program.to_owned(),
            folder: position.folder.clone(),
            kind,
            place: position.place.clone(),
            masked_by: position.failure_reaches_check().err(),
            times: position.run_count,
            may_not_run: position.may_not_run,
            prints_elsewhere: position.prints_elsewhere,
        }
    }
}

/// Returns the first line, shortened to a readable length.
fn shorten_to_first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or("").trim_end();
    let mut chars = line.chars();
    let mut short: String = chars.by_ref().take(MAX_TEXT).collect();
    if chars.next().is_some() || text.trim().lines().nth(1).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests;
