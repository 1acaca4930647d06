//! Finds checks whose command hides an exit status: what a person is told about them, and how to
//! write such a command so that it hides nothing.

use std::path::Path;

use checkrein_core::exit_status::{
    CheckScriptCommand, CheckScriptCommandKind, ExitStatusMask, ExitStatusMaskKind,
};
use checkrein_core::policy::Policy;
use checkrein_runtime::exit_statuses;

use crate::programs::find_program_on_path;

/// A check that can pass although a command in it fails.
pub(crate) struct MaskedCheck {
    /// The command, and what hides its status.
    pub(crate) what: String,
    /// How to write the check instead.
    pub(crate) fix: String,
}

/// The consequence for a check that is not fixed.
pub(crate) const MASKED_CONSEQUENCE: &str =
    "it passes only where its output shows that tests ran and none failed";

/// Returns the checks of this policy that hide a status, each with the first one that it hides.
pub(crate) fn checks_hiding_exit_status(root: &Path, policy: &Policy) -> Vec<MaskedCheck> {
    let env = std::env::vars_os().collect();
    let checks = policy.verifiers.iter().filter_map(|spec| {
        let reading = exit_statuses::analyse_verifier_exit_statuses(root, &env, spec)?;
        let hidden =
            |command: &'_ CheckScriptCommand| Some((command.clone(), command.masked_by.clone()?));
        // Only a hidden status that can change the verdict is worth a warning: `grep -q x || true`
        // in a script is not.
        let matters = |(command, _): &(CheckScriptCommand, ExitStatusMask)| match command.kind {
            CheckScriptCommandKind::Tests(_) | CheckScriptCommandKind::Checker => true,
            CheckScriptCommandKind::ProjectScript => false,
            CheckScriptCommandKind::Program if reading.masks_relevant_failure(command) => true,
            CheckScriptCommandKind::Utility
            | CheckScriptCommandKind::Question
            | CheckScriptCommandKind::Program => {
                // A utility matters only if it is missing: then the hidden status is 127, and the
                // check tests nothing.
                let plain = !command.program.contains(['/', '$', '`', '~']);
                plain && !reading.changes_path && find_program_on_path(&command.program).is_none()
            }
        };
        let (command, hider) = reading.commands.iter().filter_map(hidden).find(matters)?;
        Some(MaskedCheck {
            what: format!("{}: {}", spec.name, hider.describe_exit_mask(&command)),
            fix: exit_status_masking_remedy(&hider),
        })
    });
    checks.collect()
}

fn exit_status_masking_remedy(hider: &ExitStatusMask) -> String {
    let text = &hider.text;
    match hider.form {
        ExitStatusMaskKind::Alternative | ExitStatusMaskKind::Tool => format!("take `{text}` out"),
        ExitStatusMaskKind::Sequence => {
            "join the commands with &&, or begin with `set -e`".to_owned()
        }
        ExitStatusMaskKind::Pipe => "run it as bash -o pipefail -c '...'".to_owned(),
        ExitStatusMaskKind::Background if text.starts_with("&>") => {
            "write `> file 2>&1`, or run it as bash -c '...'".to_owned()
        }
        ExitStatusMaskKind::Background => "wait for it with `wait $!`, last of all".to_owned(),
        ExitStatusMaskKind::Negation => "take the `!` out".to_owned(),
        ExitStatusMaskKind::Condition => {
            "end the branch in which it failed with `exit 1`".to_owned()
        }
        ExitStatusMaskKind::Loop => {
            "add `|| exit 1` within the loop, or begin with `set -e`".to_owned()
        }
        ExitStatusMaskKind::Substitution => "run it as a command of its own".to_owned(),
        ExitStatusMaskKind::Unreadable => {
            "run it as a command of its own, without a script around it".to_owned()
        }
        ExitStatusMaskKind::Trap => {
            "let the trap end with the status it was entered with".to_owned()
        }
    }
}
