//! Reads and writes `trust.json`: which config of this repo a person has approved. Under
//! `--require-trust` nothing of the repo runs without it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;
use checkrein_core::ids::UnixMillis;
use checkrein_runtime::durable_file;
use serde::{Deserialize, Serialize};

use crate::locate::{self, ProjectLocation};
use crate::person::PersonCallerEvidence;

/// An approval: what was approved, and the check that a person did it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrustApproval {
    /// The digest of the config and the rules files it names.
    pub(crate) digest: Digest,
    /// The checkout. Its linked worktrees are meant as well.
    pub(crate) top: PathBuf,
    /// When.
    pub(crate) at: UnixMillis,
    /// The check of who approved it.
    pub(crate) by: PersonCallerEvidence,
    /// The config itself, for a repo that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

/// Approvals by the config's folder, from the top of the checkout on: all worktrees share the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ApprovedConfigsFile {
    approved: BTreeMap<String, TrustApproval>,
}

fn trust_file_path(state: &Path) -> PathBuf {
    state.join("trust.json")
}

/// Reads the file. One that cannot be read approves nothing.
fn read_trust_file_or_default(state: &Path) -> ApprovedConfigsFile {
    read_trust_file(state).unwrap_or_default()
}

fn read_trust_file(state: &Path) -> io::Result<ApprovedConfigsFile> {
    match durable_file::read_regular_file(&trust_file_path(state), durable_file::MAX_CONFIG_BYTES)?
    {
        Some(bytes) => Ok(serde_json::from_slice(&bytes)?),
        None => Ok(ApprovedConfigsFile::default()),
    }
}

fn write_trust_file(state: &Path, approvals: &ApprovedConfigsFile) -> io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(approvals)?;
    bytes.push(b'\n');
    durable_file::write_atomically(&trust_file_path(state), &bytes)
}

fn find_config_approval(located: &ProjectLocation) -> Option<TrustApproval> {
    let mut approvals = read_trust_file_or_default(&located.place.state).approved;
    let approval = approvals.remove(&located.project_root_relative_to_top())?;
    // A folder can claim to be a worktree of an approved repo; only one that the repo knows of is
    // believed.
    let here = approval.top == located.top || locate::is_linked_worktree(&located.top);
    here.then_some(approval)
}

/// Returns the digest that a person approved here.
pub(crate) fn approved_config_digest(located: &ProjectLocation) -> Option<Digest> {
    find_config_approval(located).map(|approval| approval.digest)
}

/// Returns the config that a person approved for a repo that has none.
pub(crate) fn approved_config_text(located: &ProjectLocation) -> Option<String> {
    find_config_approval(located)?.text
}

/// Records an approval in the place of an older one.
pub(crate) fn record_trust_approval(
    located: &ProjectLocation,
    approval: TrustApproval,
) -> io::Result<()> {
    let state = &located.place.state;
    // The file is shared by all worktrees: without the lock, one of two approvals at the same time
    // would be lost.
    let _lock = durable_file::acquire_file_lock(&trust_file_path(state))?;
    let mut approvals = read_trust_file_or_default(state);
    approvals
        .approved
        .insert(located.project_root_relative_to_top(), approval);
    write_trust_file(state, &approvals)
}

/// Removes an approval; returns whether there was one.
pub(crate) fn revoke_trust_approval(located: &ProjectLocation) -> io::Result<bool> {
    let state = &located.place.state;
    let _lock = durable_file::acquire_file_lock(&trust_file_path(state))?;
    let mut approvals = read_trust_file_or_default(state);
    let was = approvals
        .approved
        .remove(&located.project_root_relative_to_top())
        .is_some();
    if was {
        write_trust_file(state, &approvals)?;
    }
    Ok(was)
}

/// Returns the notice that the repo's config is not approved.
pub(crate) fn config_not_approved_notice(located: &ProjectLocation) -> String {
    let state = &located.place.state;
    // A damaged file is named as such, since "not approved" would send a person into approving
    // again and again.
    let why = match (read_trust_file(state), approved_config_digest(located)) {
        (Err(error), _) => format!(
            "is not approved, since {} cannot be read ({error})",
            trust_file_path(state).display()
        ),
        (Ok(_), Some(_)) => "has changed since you approved it".to_owned(),
        (Ok(_), None) => "is not approved".to_owned(),
    };
    format!(
        "this repo's checkrein.toml {why}: nothing of it runs, and nothing is verified. To look at it and approve it, in {}: checkrein trust",
        located.place.root.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approvals_given_at_once_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        std::fs::create_dir_all(folder.path().join("repo/.git")).unwrap();
        let places: Vec<ProjectLocation> = (0..16)
            .map(|nth| {
                let below = folder.path().join(format!("repo/{nth}"));
                std::fs::create_dir_all(&below).unwrap();
                std::fs::write(below.join(locate::CONFIG), "").unwrap();
                locate::locate_project(&below, Some(&state))
            })
            .collect();
        let by = PersonCallerEvidence {
            who: String::new(),
            terminal: true,
            marks: Vec::new(),
            ancestors: None,
        };
        std::thread::scope(|scope| {
            for located in &places {
                let approval = TrustApproval {
                    digest: Digest::hash_bytes(located.project_root_relative_to_top().as_bytes()),
                    top: located.top.clone(),
                    at: UnixMillis(1),
                    by: by.clone(),
                    text: None,
                };
                scope.spawn(|| record_trust_approval(located, approval).unwrap());
            }
        });
        for located in &places {
            let given = Digest::hash_bytes(located.project_root_relative_to_top().as_bytes());
            assert_eq!(approved_config_digest(located), Some(given));
        }
    }
}
