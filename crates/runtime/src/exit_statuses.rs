//! What becomes of the exit statuses inside a check's command, read from the tree as it
//! stands. Nothing of it is run.

use std::io::Read as _;
use std::path::Path;

use checkrein_core::exit_status::StatusReading;
use checkrein_core::ids::VerifierName;
use checkrein_core::policy::{Policy, VerifierSpec};
use checkrein_execpolicy::read_exit_statuses;
use checkrein_verifiers::{program_is_there, regular};

use crate::workspace::Place;

/// Verifiers whose programs can all be found, by the names that their commands call them.
pub(crate) fn equipped(place: &Place, policy: &Policy) -> Vec<VerifierName> {
    let there = |spec: &&VerifierSpec| {
        let Some(reading) = of_check(&place.root, spec) else {
            return false;
        };
        // What a called file runs is the file's business.
        let mut own = reading
            .commands
            .iter()
            .filter(|command| command.place.is_none())
            .peekable();
        own.peek().is_some()
            && own.all(|command| {
                program_is_there(&command.program, &command.folder, &place.root, &place.env)
            })
    };
    let specs = policy.verifiers.iter().filter(there);
    specs.map(|spec| spec.name.clone()).collect()
}

/// Bytes of a script, a makefile or a `package.json` that is read.
const LARGEST_SCRIPT: u64 = 512 * 1024;

/// What becomes of the exit statuses in the command of this verifier; `None` if it runs none.
pub fn of_check(root: &Path, spec: &VerifierSpec) -> Option<StatusReading> {
    let kind = checkrein_verifiers::find(&spec.kind)?;
    let script = kind.shell_command(&spec.definition)?;
    let file = |path: &str| {
        let mut text = Vec::new();
        let file = regular::open(&root.join(path)).ok()?;
        file.take(LARGEST_SCRIPT).read_to_end(&mut text).ok()?;
        String::from_utf8(text).ok()
    };
    Some(read_exit_statuses(&script, &file))
}
