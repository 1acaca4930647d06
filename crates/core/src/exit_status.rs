//! What happens to exit statuses inside a check's command: which commands it runs, and which of
//! them can fail without the check failing. The exec policy's shell grammar produces this analysis,
//! and the verifier that ran the check decides whether to trust a status.

/// What a check's command runs, as far as its exit status is concerned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitStatusAnalysis {
    /// The commands that could matter, in source order.
    pub commands: Vec<CheckScriptCommand>,
    /// Whether it changes where programs are looked for: `PATH=...`, `. venv/bin/activate`.
    pub changes_path: bool,
}

impl ExitStatusAnalysis {
    /// Returns whether the status of another program decides, so that this one may fail.
    pub fn other_command_decides_status(&self, command: &CheckScriptCommand) -> bool {
        self.commands.iter().any(|other| {
            // A utility such as `git` or `curl` judges no project, so its status cannot decide in
            // place of another.
            other.masked_by.is_none()
                && other.kind != CheckScriptCommandKind::Utility
                && other.program != command.program
        })
    }

    /// Returns whether the failure of this masked, unknown program is what the check is about.
    pub fn masks_relevant_failure(&self, command: &CheckScriptCommand) -> bool {
        // A substituted output or a negated status is still examined by the command around it.
        let looked_at = command.masked_by.as_ref().is_some_and(|hider| {
            matches!(
                hider.form,
                ExitStatusMaskKind::Substitution | ExitStatusMaskKind::Negation
            )
        });
        command.kind == CheckScriptCommandKind::Program
            && !looked_at
            && !self.other_command_decides_status(command)
    }
}

/// A command of a check that could matter to its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckScriptCommand {
    /// Its words as written, shortened.
    pub text: String,
    /// The program, as it is called.
    pub program: String,
    /// The folder in which it runs, relative to the root; empty for the root.
    pub folder: String,
    /// What kind of command it is.
    pub kind: CheckScriptCommandKind,
    /// The file in which it stands; `None` for the check's own `run`.
    pub place: Option<String>,
    /// What hides its failure from the check.
    pub masked_by: Option<ExitStatusMask>,
    /// How often it runs, as far as that is written.
    pub times: u32,
    /// The check can end well without having run it.
    pub may_not_run: bool,
    /// Its output goes to a file, so test counts in the check's output may be another command's.
    pub prints_elsewhere: bool,
}

/// What hides an exit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitStatusMask {
    /// In which way.
    pub form: ExitStatusMaskKind,
    /// As it is written: `|| true`, `| tail -5`.
    pub text: String,
}

/// In which way an exit status is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatusMaskKind {
    /// `a || b`, and `b` does not fail for certain.
    Alternative,
    /// `a; b`: the last status counts.
    Sequence,
    /// `a | b` without `pipefail`.
    Pipe,
    /// `a &`.
    Background,
    /// `! a`.
    Negation,
    /// `if a; then ...`, `while a; do ...`.
    Condition,
    /// `for x in y; do a; done`: the last round counts.
    Loop,
    /// `b $(a)`, `b <(a)`.
    Substitution,
    /// `trap 'exit 0' EXIT`.
    Trap,
    /// An option or mark of the tool that runs it: `make -i`, `-pytest` in a recipe.
    Tool,
    /// It may be hidden: the context could not be read. The text says why.
    Unreadable,
}

impl ExitStatusMask {
    /// Returns a mask for a command whose context could not be read, with the reason.
    pub fn unreadable_exit_status_mask(why: impl Into<String>) -> Self {
        Self {
            form: ExitStatusMaskKind::Unreadable,
            text: why.into(),
        }
    }

    /// Describes for people what the mask does to this command.
    pub fn describe_exit_mask(&self, command: &CheckScriptCommand) -> String {
        let place = match &command.place {
            Some(place) => format!(" in {place}"),
            None => String::new(),
        };
        match self.form {
            ExitStatusMaskKind::Unreadable => format!(
                "whether the exit status of `{}`{place} counts cannot be told: {}",
                command.text, self.text
            ),
            _ => format!(
                "`{}` hides the exit status of `{}`{place}",
                self.text, command.text
            ),
        }
    }
}

/// What a command is known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckScriptCommandKind {
    /// Runs tests; `None` if it is not known which runner prints their counts.
    Tests(Option<TestRunner>),
    /// Judges without a count of tests: a compiler, a linter, a type checker.
    Checker,
    /// Runs a script of the project that cannot be read.
    ProjectScript,
    /// A system program that judges no project: `git`, `curl`. It matters only if it is missing.
    Utility,
    /// Answers a question about files: `grep`, `diff`. Like `Utility`, but its answer decides.
    Question,
    /// Any other program. It is the subject of the check where nothing else decides.
    Program,
}

/// A test runner whose counts can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "their own names")]
pub enum TestRunner {
    Bun,
    Cargo,
    Ctest,
    Deno,
    Dotnet,
    Go,
    Jest,
    Maven,
    Mocha,
    Nextest,
    Node,
    Phpunit,
    Pytest,
    Rspec,
    Unittest,
    Vitest,
}
