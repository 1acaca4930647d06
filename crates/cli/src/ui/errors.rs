//! Defines the errors of commands and their one renderer: what happened, where, and what to do
//! next.

use std::process::ExitCode;

use checkrein_runtime::RuntimeError;
use checkrein_runtime::config::ConfigError;
use checkrein_store::StoreError;
use checkrein_verifiers::tree::TreeReaderError;

use crate::exit_code;
use crate::ui::line::StyledLine;
use crate::ui::style::TextStyle;

/// Whose fault an error is, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CliErrorKind {
    /// A mistake in what was typed or configured.
    Usage,
    /// A failure of the machine or of Checkrein.
    Failed,
    /// The caller is not allowed to: it takes a person.
    Forbidden,
    /// Nobody's mistake: a model or a person that had to be asked did not answer.
    Inconclusive,
    /// Nobody's mistake: a person pressed Ctrl-C.
    Interrupted,
}

/// An error with what to do about it.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) kind: CliErrorKind,
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

impl CommandError {
    pub(crate) fn usage_error(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            kind: CliErrorKind::Usage,
            what: what.into(),
            hint: Some(hint.into()),
        }
    }

    pub(crate) fn caller_not_allowed_error(
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            kind: CliErrorKind::Forbidden,
            what: what.into(),
            hint: Some(hint.into()),
        }
    }

    pub(crate) fn inconclusive_cli_error(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            kind: CliErrorKind::Inconclusive,
            what: what.into(),
            hint: Some(hint.into()),
        }
    }

    pub(crate) fn command_interrupted_error(what: impl Into<String>) -> Self {
        Self {
            kind: CliErrorKind::Interrupted,
            what: what.into(),
            hint: None,
        }
    }

    pub(crate) fn cli_failure_error(what: impl Into<String>) -> Self {
        Self {
            kind: CliErrorKind::Failed,
            what: what.into(),
            hint: None,
        }
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        Self {
            kind: CliErrorKind::Usage,
            what: error.to_string(),
            hint: None,
        }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        match error {
            // Usually somebody looks before anything was recorded, and the name of a missing file
            // would not help them.
            StoreError::Missing { .. } => Self::usage_error(
                "nothing is recorded for this repo yet",
                "start your agent here, or: checkrein run -- CMD",
            ),
            other => Self::cli_failure_error(other.to_string()),
        }
    }
}

impl From<RuntimeError> for CommandError {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Config(error) => error.into(),
            // Ctrl-C can arrive while the tree is read; both are the same to a person.
            RuntimeError::Cancelled | RuntimeError::Tree(TreeReaderError::Cancelled) => {
                Self::command_interrupted_error(RuntimeError::Cancelled.to_string())
            }
            other => Self::cli_failure_error(other.to_string()),
        }
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        Self::cli_failure_error(error.to_string())
    }
}

/// Prints an error and returns its exit code.
pub(crate) fn report_command_error(error: &CommandError) -> ExitCode {
    let heading = StyledLine::line_from_styled_text(TextStyle::Bad, "checkrein:");
    crate::ui::print_wrapped_to_stderr(
        heading
            .with_plain_suffix(" ")
            .with_plain_suffix(&error.what),
    );
    if let Some(hint) = &error.hint {
        crate::ui::print_wrapped_to_stderr(&format!("  {hint}"));
    }
    exit_code::to_exit_code(match error.kind {
        CliErrorKind::Usage => exit_code::USAGE,
        CliErrorKind::Failed => exit_code::NO,
        // A code of its own, so that a script can tell "ask a person" from a usage error.
        CliErrorKind::Forbidden => exit_code::FORBIDDEN,
        CliErrorKind::Inconclusive => exit_code::INCONCLUSIVE,
        CliErrorKind::Interrupted => exit_code::INTERRUPTED,
    })
}
