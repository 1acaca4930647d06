//! Runs verifiers, and digests the tree that they are about.
//!
//! A verifier always returns a [`VerifierReport`]. If it crashes, hangs or produces garbage, the
//! report is an inconclusive verdict, never an error of ours (law 5). Nothing here decides what
//! follows from a verdict.
//!
//! # To add a kind
//! 1. A folder beside `command`, with a unit struct that implements [`VerifierKind`]:
//!    `verifier_kind_name` returns the word in `[[verifier]] kind = "..."`,
//!    `validate_verifier_definition` says at config time what is wrong with a definition, and
//!    `run_verifier_job` runs it.
//! 2. `run_verifier_job` honours `job.deadline` and `job.cancelled`, writes nothing outside
//!    `job.log_dir`, and turns each failure of its own into
//!    [`VerifierReport::inconclusive_report`].
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
pub use command::{CommandVerifier, find_program_in_path, process, program_exists};
pub use job::{RedactBytesFn, VerifierJob, VerifierReport};
pub use judge::JudgeVerifier;
pub use schema::{MAX_SCHEMA, SchemaVerifier};

/// A kind of verifier.
pub trait VerifierKind: Sync {
    /// Returns the word in `[[verifier]] kind = "..."`.
    fn verifier_kind_name(&self) -> &'static str;

    /// Checks whether this definition (canonical JSON, of this kind's own shape) can be run.
    ///
    /// # Errors
    /// What is wrong with it, for the person who wrote the config.
    fn validate_verifier_definition(&self, definition: &str)
    -> Result<(), VerifierDefinitionError>;

    /// Returns the files of the tree that such a definition names: they count even if they are
    /// ignored.
    fn files_named_in_definition(&self, _definition: &str) -> Vec<String> {
        Vec::new()
    }

    /// Returns the shell command that such a definition runs, if any.
    fn definition_shell_command(&self, _definition: &str) -> Option<String> {
        None
    }

    /// Runs the verifier within the job's time. Never panics, and never hangs past that time.
    fn run_verifier_job(&self, job: &VerifierJob<'_>) -> VerifierReport;
}

/// All kinds of verifiers.
pub const VERIFIER_KINDS: &[&dyn VerifierKind] =
    &[&CommandVerifier, &SchemaVerifier, &JudgeVerifier];

/// Returns the kind of this name.
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
    /// A judge whose model name is not usable on any machine.
    #[error("{what}")]
    Judge {
        /// What is wrong with it.
        what: String,
    },
    /// A target that is not a valid name.
    #[error("{what}")]
    Target {
        /// What is wrong with it.
        what: String,
    },
    /// An invalid name of an environment variable.
    #[error("'{name}' cannot be the name of an environment variable")]
    VariableName {
        /// The name.
        name: String,
    },
}
