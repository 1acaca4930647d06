//! Which commands of a check can fail without the check failing: `a || true`, `a; b`,
//! `a | b`, and the same in the scripts, recipes and package scripts that it calls, as
//! far as they can be read. Reads no file itself: whoever asks hands them in.

mod build_tools;
mod called;
mod command;
mod compound;
mod expansion;
mod flow;
mod justfile;
mod known_programs;
mod launchers;
mod left_behind;
mod make_variables;
mod makefile;
mod packages;
mod questions;
mod recipe_file;
mod recipes;
mod recognise;
mod script;
mod script_reader;
mod simulation;
mod tool_calls;
mod tool_files;
mod unsure_programs;

use crate::shell::ParsedScripts;
use checkrein_core::exit_status::{
    CheckScriptCommandKind, ExitStatusAnalysis, ExitStatusMask, VerdictRelevantCommand,
};

/// Scripts inside one another.
const MAX_DEPTH: usize = 12;
/// Scripts that are read for one check.
const MAX_SCRIPTS: usize = 200;
/// Commands that are told of one check.
const MAX_COMMANDS: usize = 500;
/// Statements that are visited for one check, functions at each call.
const MAX_VISITS: usize = 20_000;
/// What scripts may cost that are run in thought for one check.
const MAX_WORK: usize = 24_000;
/// Characters of a command, or of what hides it.
const MAX_TEXT: usize = 80;

/// What a check finds around it.
#[derive(Clone, Copy)]
pub struct Project<'a> {
    /// The text of a file, by its path relative to the root.
    pub text: &'a dyn Fn(&str) -> Option<String>,
    /// What stands at a path relative to the root.
    pub entry: &'a dyn Fn(&str) -> Option<ProjectEntry>,
    /// The names of the folders in a folder.
    pub folders: &'a dyn Fn(&str) -> Vec<String>,
    /// Whether `sh` knows what bash knows: `[[`, `((`, `&>`, `+=`.
    pub sh_is_bash: bool,
    /// Whether a program can be found by its name alone.
    pub has_program: &'a dyn Fn(&str) -> bool,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectEntry {
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

/// Reads what becomes of the exit statuses in `script`.
pub fn read_exit_statuses(script: &str, project: &Project<'_>) -> ExitStatusAnalysis {
    let mut reader = Reader {
        project,
        scripts: ParsedScripts::default(),
        reading: ExitStatusAnalysis::default(),
        calls: Vec::new(),
        scripts_read: 0,
        nesting: 0,
        work: MAX_WORK,
        visits: MAX_VISITS,
        unread: None,
        absent: Vec::new(),
    };
    reader.script(script, &Position::outermost(project.sh_is_bash));
    // A part that was not read may hide anything.
    let unread = reader.unread.map(|why| VerdictRelevantCommand {
        masked_by: Some(ExitStatusMask::mask_from_unreadable_context(why)),
        ..reader.command(
            script,
            "sh",
            CheckScriptCommandKind::Tests(None),
            &Position::outermost(project.sh_is_bash),
        )
    });
    let mut reading = reader.reading;
    reading.commands.extend(unread);
    // What is not there and need not be matters where nothing else is checked.
    let decides =
        |command: &VerdictRelevantCommand| command.kind != CheckScriptCommandKind::Program;
    if !reading.commands.iter().any(decides) {
        reading.commands.extend(reader.absent);
    }
    reading
}

/// A status that reaches the check's own, or what hides it.
type Reach = Result<(), ExitStatusMask>;

/// Where a script or a command stands.
#[derive(Debug, Clone)]
struct Position {
    /// Whether its own status becomes the check's.
    value: Reach,
    /// Whether `exit 1` there ends the check so.
    exits: Reach,
    /// Whether `set -e` would apply here: not before `||` or `&&`, nor in a condition.
    heeds_errors: bool,
    /// `set -e`, and it applies here.
    ends_on_error: bool,
    /// The folder, relative to the root.
    folder: String,
    /// The file in which it stands.
    place: Option<String>,
    /// How often it runs.
    times: u32,
    /// It runs only if it is given something: `xargs -r`.
    may_not_run: bool,
    /// Its output goes to a file that is not shown.
    prints_elsewhere: bool,
    /// The shell that reads it knows what bash knows.
    bash: bool,
}

impl Position {
    fn outermost(bash: bool) -> Self {
        Self {
            value: Ok(()),
            exits: Ok(()),
            heeds_errors: true,
            ends_on_error: false,
            folder: String::new(),
            place: None,
            times: 1,
            may_not_run: false,
            prints_elsewhere: false,
            bash,
        }
    }

    /// Whether a failure here makes the check fail.
    fn reach(&self) -> Reach {
        match &self.value {
            Ok(()) => Ok(()),
            Err(_) if self.ends_on_error => self.exits.clone(),
            Err(hider) => Err(hider.clone()),
        }
    }

    /// Where what a process of its own runs stands: a subshell, another script.
    fn within(&self, ends_on_error: bool) -> Self {
        let reach = self.reach();
        Self {
            value: reach.clone(),
            exits: reach,
            ends_on_error,
            ..self.clone()
        }
    }

    /// The same, where its status does not become the check's.
    fn hidden(&self, hider: ExitStatusMask) -> Self {
        Self {
            value: Err(hider),
            ..self.clone()
        }
    }
}

struct Reader<'f> {
    project: &'f Project<'f>,
    scripts: ParsedScripts,
    reading: ExitStatusAnalysis,
    /// Scripts that are being read, each by its name: none is read within itself.
    calls: Vec<String>,
    scripts_read: usize,
    /// Statements inside one another at the moment.
    nesting: usize,
    /// What is left of [`MAX_WORK`].
    work: usize,
    /// What is left of [`MAX_VISITS`].
    visits: usize,
    /// Why a part of it was not read.
    unread: Option<&'static str>,
    /// Scripts that are called if they are there, and are not.
    absent: Vec<VerdictRelevantCommand>,
}

impl Reader<'_> {
    /// A script that a shell of its own reads.
    fn script(&mut self, text: &str, position: &Position) {
        flow::read_script(self, text, position);
    }

    /// Reads what is called `name`, unless it is being read already or there was too much.
    fn called(&mut self, name: String, read: impl FnOnce(&mut Self)) {
        if self.calls.contains(&name) {
            return;
        }
        if self.calls.len() >= MAX_DEPTH || self.scripts_read >= MAX_SCRIPTS {
            self.unread = Some("it calls too many scripts");
            return;
        }
        self.scripts_read += 1;
        self.calls.push(name);
        read(self);
        self.calls.pop();
    }

    /// Reads each of several ways of which one will run; only the run knows which. Where not all of them
    /// judge something, none does for certain.
    fn either(&mut self, ways: usize, why: &str, read: impl Fn(&mut Self, usize)) {
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
            self.doubt_from(from, why);
        }
    }

    /// What was noted since then may not be what runs.
    fn doubt_from(&mut self, from: usize, why: &str) {
        let commands = self.reading.commands.get_mut(from..).unwrap_or_default();
        for command in commands {
            command
                .masked_by
                .get_or_insert_with(|| ExitStatusMask::mask_from_unreadable_context(why));
        }
    }

    /// What was noted at this place may not be what runs.
    fn doubt(&mut self, at: usize, why: &str) {
        if let Some(command) = self.reading.commands.get_mut(at) {
            command
                .masked_by
                .get_or_insert_with(|| ExitStatusMask::mask_from_unreadable_context(why));
        }
    }

    fn text_of(&self, folder: &str, path: &str) -> Option<String> {
        (self.project.text)(&called::joined(folder, path)?)
    }

    /// Takes a command down.
    fn note(
        &mut self,
        text: &str,
        program: &str,
        kind: CheckScriptCommandKind,
        position: &Position,
    ) {
        if self.reading.commands.len() < MAX_COMMANDS {
            let command = self.command(text, program, kind, position);
            self.reading.commands.push(command);
        } else if kind != CheckScriptCommandKind::Program || position.reach().is_err() {
            self.unread = Some("it runs too many commands");
        }
    }

    fn command(
        &self,
        text: &str,
        program: &str,
        kind: CheckScriptCommandKind,
        position: &Position,
    ) -> VerdictRelevantCommand {
        VerdictRelevantCommand {
            text: shortened(text),
            program: program.to_owned(),
            folder: position.folder.clone(),
            kind,
            place: position.place.clone(),
            masked_by: position.reach().err(),
            times: position.times,
            may_not_run: position.may_not_run,
            prints_elsewhere: position.prints_elsewhere,
        }
    }
}

/// The first line, as much of it as one reads at a glance.
fn shortened(text: &str) -> String {
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
