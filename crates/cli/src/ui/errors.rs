//! One renderer for errors: what, where, what to do next.

use std::process::ExitCode;

use checkrein_runtime::RuntimeError;
use checkrein_runtime::config::ConfigError;
use checkrein_store::StoreError;
use checkrein_verifiers::tree::TreeReaderError;

use crate::exit_code;
use crate::ui::line::Line;
use crate::ui::style::Paint;

/// Whose fault it is, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What was typed or configured.
    Usage,
    /// The world, or us.
    Failed,
    /// Who asked: it takes a person.
    Forbidden,
    /// Nobody's here: who had to be asked did not answer.
    Inconclusive,
    /// Nobody's: a person pressed Ctrl-C.
    Interrupted,
}

/// An error with what to do about it.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) kind: Kind,
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

impl CommandError {
    pub(crate) fn usage(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            kind: Kind::Usage,
            what: what.into(),
            hint: Some(hint.into()),
        }
    }

    pub(crate) fn forbidden(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            kind: Kind::Forbidden,
            what: what.into(),
            hint: Some(hint.into()),
        }
    }

    pub(crate) fn inconclusive(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            kind: Kind::Inconclusive,
            what: what.into(),
            hint: Some(hint.into()),
        }
    }

    pub(crate) fn interrupted(what: impl Into<String>) -> Self {
        Self {
            kind: Kind::Interrupted,
            what: what.into(),
            hint: None,
        }
    }

    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self {
            kind: Kind::Failed,
            what: what.into(),
            hint: None,
        }
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        Self {
            kind: Kind::Usage,
            what: error.to_string(),
            hint: None,
        }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        match error {
            // Somebody looks before anything happened: the file's name would not help.
            StoreError::Missing { .. } => Self::usage(
                "nothing is recorded for this repo yet",
                "start your agent here, or: checkrein run -- CMD",
            ),
            other => Self::failed(other.to_string()),
        }
    }
}

impl From<RuntimeError> for CommandError {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Config(error) => error.into(),
            RuntimeError::Cancelled | RuntimeError::Tree(TreeReaderError::Cancelled) => {
                Self::interrupted(RuntimeError::Cancelled.to_string())
            }
            other => Self::failed(other.to_string()),
        }
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error.to_string())
    }
}

/// Prints it and says how to exit.
pub(crate) fn report(error: &CommandError) -> ExitCode {
    let heading = Line::painted(Paint::Bad, "checkrein:");
    crate::ui::say(heading.with(" ").with(&error.what));
    if let Some(hint) = &error.hint {
        crate::ui::say(&format!("  {hint}"));
    }
    exit_code::exit(match error.kind {
        Kind::Usage => exit_code::USAGE,
        Kind::Failed => exit_code::NO,
        Kind::Forbidden => exit_code::FORBIDDEN,
        Kind::Inconclusive => exit_code::INCONCLUSIVE,
        Kind::Interrupted => exit_code::INTERRUPTED,
    })
}
