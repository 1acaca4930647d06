//! Implements `kind = "command"`: runs a command in the tree and judges it by its exit status,
//! unless the test runner's output shows that nothing ran or that its failure was masked.

mod capture;
pub(crate) mod definition;
mod masked_status;
pub mod process;
mod programs;
mod run;
mod run_verdict;
mod tool_versions;
pub mod withheld;

use std::time::{Duration, Instant};

use checkrein_core::evidence::{CheckRetryability, InconclusiveCause};

use crate::{VerifierDefinitionError, VerifierJob, VerifierKind, VerifierReport};
use definition::CommandVerifierDefinition;
pub use programs::{find_program_in_path, program_exists};

/// The `command` kind.
#[derive(Debug, Clone, Copy)]
pub struct CommandVerifier;

impl VerifierKind for CommandVerifier {
    fn verifier_kind_name(&self) -> &'static str {
        "command"
    }

    fn validate_verifier_definition(
        &self,
        definition: &str,
    ) -> Result<(), VerifierDefinitionError> {
        CommandVerifierDefinition::parse_definition(definition).map(|_| ())
    }

    fn definition_shell_command(&self, definition: &str) -> Option<String> {
        Some(
            CommandVerifierDefinition::parse_definition(definition)
                .ok()?
                .run,
        )
    }

    fn run_verifier_job(&self, job: &VerifierJob<'_>) -> VerifierReport {
        let started = Instant::now();
        let mut report = match CommandVerifierDefinition::parse_definition(&job.spec.definition) {
            Ok(definition) => std::thread::scope(|scope| {
                // Queried in parallel, so that the check does not wait for it.
                let tools = scope.spawn(|| tool_versions::tool_versions(&definition.run, job));
                let mut report = run_verdict::command_verifier_report(
                    &definition,
                    job,
                    run::run_verifier_command(&definition, job),
                );
                report.tools = tools.join().unwrap_or_default();
                report
            }),
            Err(err) => VerifierReport::inconclusive_report(
                InconclusiveCause::Internal,
                CheckRetryability::No,
                err.to_string(),
            ),
        };
        report.duration_ms = duration_millis(started.elapsed());
        report
    }
}

impl CommandVerifier {
    /// Runs a command for its output. The programs that it names are not asked for their versions:
    /// the person allowed this command and nothing else.
    pub fn verify_without_tool_versions(self, job: &VerifierJob<'_>) -> VerifierReport {
        let started = Instant::now();
        let mut report = match CommandVerifierDefinition::parse_definition(&job.spec.definition) {
            Ok(definition) => run_verdict::command_verifier_report(
                &definition,
                job,
                run::run_verifier_command(&definition, job),
            ),
            Err(err) => VerifierReport::inconclusive_report(
                InconclusiveCause::Internal,
                CheckRetryability::No,
                err.to_string(),
            ),
        };
        report.duration_ms = duration_millis(started.elapsed());
        report
    }
}

fn duration_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
