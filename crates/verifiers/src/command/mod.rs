//! `kind = "command"`: runs a command in the tree and judges it by its exit status, unless
//! the runner behind it tells that nothing ran or that its failure was masked.

mod capture;
pub(crate) mod definition;
mod judge;
mod masks;
pub mod process;
mod programs;
mod run;
mod tools;
pub mod withheld;

use std::time::{Duration, Instant};

use checkrein_core::evidence::{InconclusiveCause, Retryability};

use crate::{DefinitionError, Job, Report, Verifier};
use definition::Definition;
pub use programs::{find_in_path, program_is_there};

/// The `command` kind.
#[derive(Debug, Clone, Copy)]
pub struct Command;

impl Verifier for Command {
    fn kind(&self) -> &'static str {
        "command"
    }

    fn check_definition(&self, definition: &str) -> Result<(), DefinitionError> {
        Definition::parse(definition).map(|_| ())
    }

    fn shell_command(&self, definition: &str) -> Option<String> {
        Some(Definition::parse(definition).ok()?.run)
    }

    fn verify(&self, job: &Job<'_>) -> Report {
        let started = Instant::now();
        let mut report = match Definition::parse(&job.spec.definition) {
            Ok(definition) => std::thread::scope(|scope| {
                // Asked beside the run: a check does not wait for it.
                let tools = scope.spawn(|| tools::versions(&definition.run, job));
                let mut report = judge::report(&definition, job, run::run(&definition, job));
                report.tools = tools.join().unwrap_or_default();
                report
            }),
            Err(err) => Report::inconclusive(
                InconclusiveCause::Internal,
                Retryability::No,
                err.to_string(),
            ),
        };
        report.duration_ms = milliseconds(started.elapsed());
        report
    }
}

impl Command {
    /// Runs a command for what it says. The programs that it names are not asked for their
    /// versions: whoever allowed it allowed nothing else.
    pub fn once(self, job: &Job<'_>) -> Report {
        let started = Instant::now();
        let mut report = match Definition::parse(&job.spec.definition) {
            Ok(definition) => judge::report(&definition, job, run::run(&definition, job)),
            Err(err) => Report::inconclusive(
                InconclusiveCause::Internal,
                Retryability::No,
                err.to_string(),
            ),
        };
        report.duration_ms = milliseconds(started.elapsed());
        report
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
