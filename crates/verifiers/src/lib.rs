//! Finds out: runs verifiers, and digests the tree that they are about.
//!
//! A verifier always comes back with a [`Report`]; its own crash, hang or garbage is
//! an inconclusive verdict in it, never an error of ours (law 5). Nothing here decides
//! what follows from a verdict.
//!
//! # To add a kind
//! 1. A folder beside `command`, with a unit struct that implements [`Verifier`]:
//!    `kind` is the word in `[[verifier]] kind = "..."`, `check_definition` says at
//!    config time what is wrong with a definition, `verify` runs it.
//! 2. `verify` honours `job.deadline` and `job.cancelled`, writes nothing outside
//!    `job.log_dir`, and turns each failure of its own into [`Report::inconclusive`].
//! 3. One line in [`ALL`].
//! 4. One row in `samples` of `tests/conformance.rs`: definitions that pass, fail,
//!    cannot tell, hang and flood. The suite fails until the row is there.

mod command;
pub mod file_system;
mod findings;
pub mod git;
mod job;
pub mod judge;
pub mod logs;
mod output;
mod patterns;
pub mod plugin;
pub mod private_file;
pub mod progress;
pub mod regular;
mod run_report;
mod schema;
pub mod second;
pub mod tree;
pub mod veto;
pub mod witness;

pub use checkrein_models::{ChatMessage, without_endpoint_variables};
pub use command::withheld;
pub use command::{Command, find_in_path, process, program_is_there};
pub use job::{Job, Redact, Report};
pub use judge::Judge;
pub use schema::{MAX_SCHEMA, Schema};

/// A way of finding out.
pub trait Verifier: Sync {
    /// The word in `[[verifier]] kind = "..."`.
    fn kind(&self) -> &'static str;

    /// Whether this definition (canonical JSON, of this kind's own shape) can be run.
    ///
    /// # Errors
    /// What is wrong with it, for the person who wrote the config.
    fn check_definition(&self, definition: &str) -> Result<(), DefinitionError>;

    /// Files of the tree that such a definition names: they count whatever ignore files say.
    fn named_files(&self, _definition: &str) -> Vec<String> {
        Vec::new()
    }

    /// The shell command that such a definition runs, if it runs one.
    fn shell_command(&self, _definition: &str) -> Option<String> {
        None
    }

    /// Finds out, within the job's time. Never panics, never hangs past it.
    fn verify(&self, job: &Job<'_>) -> Report;
}

/// Every kind.
pub const ALL: &[&dyn Verifier] = &[&Command, &Schema, &Judge];

/// The kind of this name.
pub fn find(kind: &str) -> Option<&'static dyn Verifier> {
    ALL.iter().copied().find(|verifier| verifier.kind() == kind)
}

/// A definition that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// It is not of this kind's shape.
    #[error("not a definition of a '{kind}' verifier")]
    Shape {
        /// The kind.
        kind: &'static str,
        /// What the JSON reader says.
        source: serde_json::Error,
    },
    /// A text that must say something is blank.
    #[error("'{key}' is empty")]
    Empty {
        /// The key.
        key: &'static str,
    },
    /// A schema that cannot be used; the text names the file and the place in it.
    #[error("{what}")]
    Schema {
        /// What is wrong, and where.
        what: String,
    },
    /// A judge whose model cannot be asked, whoever tries.
    #[error("{what}")]
    Judge {
        /// What is wrong with it.
        what: String,
    },
    /// What a schema is to be about is nothing that can be named.
    #[error("{what}")]
    Target {
        /// What is wrong with it.
        what: String,
    },
    /// A name of an environment variable that can be none.
    #[error("'{name}' cannot be the name of an environment variable")]
    VariableName {
        /// The name.
        name: String,
    },
}
