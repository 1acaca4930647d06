//! The tools of our own loop's agent: run a command, apply a patch. Nothing here asks whether that
//! is allowed; the caller has asked.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::evidence::InconclusiveCause;
use checkrein_core::ids::VerifierName;
use checkrein_core::policy::{Stance, VerdictSubjectKind, VerifierSpec, VerifierTier};
use checkrein_patch::{
    DiskTree, HunkMatchDialect, PathBelowRoot, apply_patch_plan, parse_patch,
    plan_patch_against_tree, recover_interrupted_apply, render_patch_refusals,
};
use checkrein_verifiers::{CommandVerifier, VerifierJob, VerifierReport};

use crate::check_logs;
use crate::workspace::TreeAndStateFolder;
use checkrein_redaction::Redactor;

/// The largest file that is patched.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// The tools of one tree.
#[derive(Clone)]
pub struct WorkspaceTools {
    place: TreeAndStateFolder,
    redactor: Arc<Redactor>,
}

impl WorkspaceTools {
    /// In this place.
    pub fn new(place: TreeAndStateFolder) -> Self {
        let redactor = Arc::new(Redactor::new_from_secret_variables(&place.env));
        Self { place, redactor }
    }

    /// Runs a command until it ends or its time is over; everything that it started is killed with
    /// it. Returns both ends of its output, without the keys of model providers.
    ///
    /// # Errors
    /// Returns the same output if the command did not end with status 0.
    pub fn run_shell(
        &self,
        command: &str,
        time: Duration,
        cancelled: &AtomicBool,
    ) -> Result<String, String> {
        // The command runs as a verifier does, with its limits, its log and its clean environment.
        let spec = VerifierSpec {
            name: VerifierName::new("shell"),
            kind: "command".to_owned(),
            tier: VerifierTier::Hard,
            subject: VerdictSubjectKind::Tree,
            definition: serde_json::json!({ "run": command, "env": [] }).to_string(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            timeout_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
            retries: 0,
            advisory: true,
            stance: Stance::Block,
            judge: None,
        };
        let logs = check_logs::prepare_log_folder(&self.place);
        let report = CommandVerifier.verify_without_tool_versions(&VerifierJob {
            spec: &spec,
            root: &self.place.root,
            message: None,
            case: None,
            deadline: None,
            log_dir: &logs,
            cancelled,
            env: &self.place.env,
            model_env: &self.place.env,
            tool_versions_file: &self.place.state.join("tools.json"),
            exit_statuses: None,
            lock: None,
            redact: &|text| self.redactor.redact_bytes(text),
        });
        shell_tool_result_text(report, time)
    }

    /// Applies a patch, completely or not at all.
    ///
    /// # Errors
    /// Returns why nothing, or not everything, was changed, in words for the author of the patch.
    pub fn apply_patch(&self, text: &str) -> Result<String, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{error}");
        let disk = DiskTree::open_file_tree(&self.place.root, MAX_FILE_BYTES)
            .map_err(|error| failed(&error))?;
        let memory = self.patch_journal_path();
        // A patch that a crash interrupted is undone or finished first: the files that this one is
        // checked against must be whole.
        recover_interrupted_apply(&disk, &memory).map_err(|error| failed(&error))?;
        let plan = parse_patch(text, None)
            .map_err(|refusal| vec![refusal])
            .and_then(|patch| {
                plan_patch_against_tree(
                    &patch,
                    &disk,
                    &PathBelowRoot::tree_root_path(),
                    HunkMatchDialect::Git,
                )
            })
            .map_err(|refusals| {
                format!(
                    "refused, nothing is changed\n{}",
                    render_patch_refusals(&refusals)
                )
            })?;
        apply_patch_plan(&plan, &disk, &memory).map_err(|error| failed(&error))?;
        let paths: Vec<String> = plan
            .steps
            .iter()
            .map(|step| step.path.to_string())
            .collect();
        Ok(format!("applied: {}", paths.join(", ")))
    }

    /// The journal of this root, which is kept outside of the tree.
    fn patch_journal_path(&self) -> PathBuf {
        let mut name = Digest::hash_bytes(self.place.root.as_os_str().as_encoded_bytes()).to_hex();
        name.truncate(24);
        self.place.state.join("patch").join(name)
    }
}

fn shell_tool_result_text(report: VerifierReport, time: Duration) -> Result<String, String> {
    let said = report.excerpt;
    match (report.exit_code, report.cause) {
        // The order matters: a command that was killed for its time may have an exit code as well.
        (_, Some(InconclusiveCause::Timeout)) => {
            Err(format!("ended after {}s\n{said}", time.as_secs()))
        }
        (Some(0), _) => Ok(said),
        (Some(code), _) => Err(format!("exit status {code}\n{said}")),
        (None, _) => Err(format!("it did not come to its end\n{said}")),
    }
}
