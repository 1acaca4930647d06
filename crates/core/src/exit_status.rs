//! What becomes of the exit statuses inside a check's command: which commands it runs,
//! and which of them can fail without the check failing. Found out by the exec policy's
//! shell grammar, believed or not by the verifier that ran the check.

/// What a check's command runs, as far as its exit status is concerned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitStatusAnalysis {
    /// The commands that could matter, in the order of the text.
    pub commands: Vec<VerdictRelevantCommand>,
    /// Whether it changes where programs are looked for: `PATH=...`, `. venv/bin/activate`.
    pub changes_path: bool,
}

impl ExitStatusAnalysis {
    /// Whether the status of another program decides, so that this one may fail.
    pub fn other_command_decides_status(&self, command: &VerdictRelevantCommand) -> bool {
        self.commands.iter().any(|other| {
            other.masked_by.is_none()
                && other.kind != CheckScriptCommandKind::Utility
                && other.program != command.program
        })
    }

    /// Whether the failure of this hidden program, which nobody knows, is what the check is about.
    pub fn masks_relevant_failure(&self, command: &VerdictRelevantCommand) -> bool {
        // What is printed or turned round is looked at in another way.
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
pub struct VerdictRelevantCommand {
    /// Its words, as they are written, shortened.
    pub text: String,
    /// The program, as it is called.
    pub program: String,
    /// The folder in which it runs, relative to the root; empty for the root.
    pub folder: String,
    /// What it is known to be.
    pub kind: CheckScriptCommandKind,
    /// The file in which it stands; `None` for the check's own `run`.
    pub place: Option<String>,
    /// What keeps its failure from becoming the check's.
    pub masked_by: Option<ExitStatusMask>,
    /// How often it runs, as far as that is written.
    pub times: u32,
    /// The check can end well without having run it.
    pub may_not_run: bool,
    /// What it prints goes to a file, and what the check prints of tests may be another's.
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
    /// It may be hidden: what stands around it could not be read. The text says why.
    Unreadable,
}

impl ExitStatusMask {
    /// What stands around a command could not be read, and why.
    pub fn mask_from_unreadable_context(why: impl Into<String>) -> Self {
        Self {
            form: ExitStatusMaskKind::Unreadable,
            text: why.into(),
        }
    }

    /// What it does to this command, as one says it.
    pub fn describe_exit_mask(&self, command: &VerdictRelevantCommand) -> String {
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
    /// A program of the system that judges no project: `git`, `curl`. It matters only if it is missing.
    Utility,
    /// One that answers a question about files: `grep`, `diff`. The same, but its answer decides.
    Question,
    /// Any other program. It is what the check is about where nothing else decides.
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
