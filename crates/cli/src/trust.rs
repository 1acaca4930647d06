//! `trust.json`: which config of this repo a person has approved. Under `--require-trust`
//! nothing of the repo runs without it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;
use checkrein_core::ids::UnixMillis;
use checkrein_runtime::whole;
use serde::{Deserialize, Serialize};

use crate::locate::{self, Located};
use crate::person::Checked;

/// What was approved, and how it was told that a person did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Approval {
    /// Of the config and the rules files it names.
    pub(crate) digest: Digest,
    /// The checkout. Its linked worktrees are meant as well.
    pub(crate) top: PathBuf,
    /// When.
    pub(crate) at: UnixMillis,
    /// By whom.
    pub(crate) by: Checked,
    /// The config itself, for a repo that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

/// By the config's folder, from the top of the checkout on: all worktrees share the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Approvals {
    approved: BTreeMap<String, Approval>,
}

fn file(state: &Path) -> PathBuf {
    state.join("trust.json")
}

/// What cannot be read approves nothing.
fn read(state: &Path) -> Approvals {
    look(state).unwrap_or_default()
}

fn look(state: &Path) -> io::Result<Approvals> {
    match whole::read_regular_file(&file(state), whole::MAX_CONFIG_BYTES)? {
        Some(bytes) => Ok(serde_json::from_slice(&bytes)?),
        None => Ok(Approvals::default()),
    }
}

fn write(state: &Path, approvals: &Approvals) -> io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(approvals)?;
    bytes.push(b'\n');
    whole::write_atomically(&file(state), &bytes)
}

fn of(located: &Located) -> Option<Approval> {
    let mut approvals = read(&located.place.state).approved;
    let approval = approvals.remove(&located.below_top())?;
    let here = approval.top == located.top || locate::is_linked_worktree(&located.top);
    here.then_some(approval)
}

/// The digest that a person approved here.
pub(crate) fn approved(located: &Located) -> Option<Digest> {
    of(located).map(|approval| approval.digest)
}

/// The config that a person approved for a repo that has none.
pub(crate) fn text(located: &Located) -> Option<String> {
    of(located)?.text
}

/// Records an approval in the place of an older one.
pub(crate) fn approve(located: &Located, approval: Approval) -> io::Result<()> {
    let state = &located.place.state;
    let _lock = whole::lock_file(&file(state))?;
    let mut approvals = read(state);
    approvals.approved.insert(located.below_top(), approval);
    write(state, &approvals)
}

/// Takes an approval back; says whether there was one.
pub(crate) fn revoke(located: &Located) -> io::Result<bool> {
    let state = &located.place.state;
    let _lock = whole::lock_file(&file(state))?;
    let mut approvals = read(state);
    let was = approvals.approved.remove(&located.below_top()).is_some();
    if was {
        write(state, &approvals)?;
    }
    Ok(was)
}

/// What is said where the repo's config is not approved.
pub(crate) fn words(located: &Located) -> String {
    let state = &located.place.state;
    let why = match (look(state), approved(located)) {
        (Err(error), _) => format!(
            "is not approved, since {} cannot be read ({error})",
            file(state).display()
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
        let places: Vec<Located> = (0..16)
            .map(|nth| {
                let below = folder.path().join(format!("repo/{nth}"));
                std::fs::create_dir_all(&below).unwrap();
                std::fs::write(below.join(locate::CONFIG), "").unwrap();
                locate::locate(&below, Some(&state))
            })
            .collect();
        let by = Checked {
            who: String::new(),
            terminal: true,
            marks: Vec::new(),
            ancestors: None,
        };
        std::thread::scope(|scope| {
            for located in &places {
                let approval = Approval {
                    digest: Digest::hash_bytes(located.below_top().as_bytes()),
                    top: located.top.clone(),
                    at: UnixMillis(1),
                    by: by.clone(),
                    text: None,
                };
                scope.spawn(|| approve(located, approval).unwrap());
            }
        });
        for located in &places {
            let given = Digest::hash_bytes(located.below_top().as_bytes());
            assert_eq!(approved(located), Some(given));
        }
    }
}
