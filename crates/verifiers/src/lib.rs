//! Finds out: runs verifiers, and digests the tree that they are about.
//!
//! A verifier always comes back with a [`VerifierReport`]; its own crash, hang or garbage is
//! an inconclusive verdict in it, never an error of ours (law 5). Nothing here decides
//! what follows from a verdict.
//!
//! # To add a kind
//! 1. A folder beside `command`, with a unit struct that implements [`VerifierKind`]:
//!    `kind` is the word in `[[verifier]] kind = "..."`, `check_definition` says at
//!    config time what is wrong with a definition, `verify` runs it.
//! 2. `verify` honours `job.deadline` and `job.cancelled`, writes nothing outside
//!    `job.log_dir`, and turns each failure of its own into [`VerifierReport::inconclusive_report`].
//! 3. One line in [`VERIFIER_KINDS`].
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
pub mod regular_file;
pub mod reviewer;
mod run_report;
mod schema;
pub mod sync_reviewer;
pub mod tree;
pub mod veto;

pub use checkrein_models::{ChatMessage, without_endpoint_variables};
pub use command::withheld;
pub use command::{CommandVerifier, find_in_path, process, program_exists};
pub use job::{RedactBytesFn, VerifierJob, VerifierReport};
pub use judge::JudgeVerifier;
pub use schema::{MAX_SCHEMA, SchemaVerifier};

/// A way of finding out.
pub trait VerifierKind: Sync {
    /// The word in `[[verifier]] kind = "..."`.
    fn verifier_kind_name(&self) -> &'static str;

    /// Whether this definition (canonical JSON, of this kind's own shape) can be run.
    ///
    /// # Errors
    /// What is wrong with it, for the person who wrote the config.
    fn validate_verifier_definition(&self, definition: &str)
    -> Result<(), VerifierDefinitionError>;

    /// Files of the tree that such a definition names: they count whatever ignore files say.
    fn files_named_in_definition(&self, _definition: &str) -> Vec<String> {
        Vec::new()
    }

    /// The shell command that such a definition runs, if it runs one.
    fn definition_shell_command(&self, _definition: &str) -> Option<String> {
        None
    }

    /// Finds out, within the job's time. Never panics, never hangs past it.
    fn verify_and_report(&self, job: &VerifierJob<'_>) -> VerifierReport;
}

/// Every kind.
pub const VERIFIER_KINDS: &[&dyn VerifierKind] =
    &[&CommandVerifier, &SchemaVerifier, &JudgeVerifier];

/// The kind of this name.
pub fn find_verifier_kind(kind: &str) -> Option<&'static dyn VerifierKind> {
    VERIFIER_KINDS
        .iter()
        .copied()
        .find(|verifier| verifier.verifier_kind_name() == kind)
}

/// A definition that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum VerifierDefinitionError {
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
