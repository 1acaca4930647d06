//! Defines the exit codes, which `docs/transitions.md` documents. `run` has those of its transition
//! reasons; `hook` has the agent's own and never these.

use std::process::ExitCode;

/// Yes, or nothing to report.
pub(crate) const YES: u8 = 0;
/// No: `accept` is false, a replay differs.
pub(crate) const NO: u8 = 1;
/// Usage or config error.
pub(crate) const USAGE: u8 = 2;
/// Inconclusive.
pub(crate) const INCONCLUSIVE: u8 = 3;

/// The caller is not allowed to do this.
pub(crate) const FORBIDDEN: u8 = 4;

/// Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// Returns the code as the process's own.
pub(crate) fn to_exit_code(code: u8) -> ExitCode {
    ExitCode::from(code)
}
