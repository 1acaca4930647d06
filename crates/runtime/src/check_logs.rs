//! Keeps the full outputs of checks in the repo's `.checkrein/logs`, where agent and person can
//! read them, out of git's sight; in the state folder if the repo puts a symlink there.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use checkrein_verifiers::private_file::{create_private_folder, write_private_file};

use crate::workspace::TreeAndStateFolder;

/// How many logs are kept; older ones are removed.
const MAX_LOGS: usize = 60;

/// Creates and prunes the folder for logs.
pub(crate) fn prepare_log_folder(place: &TreeAndStateFolder) -> PathBuf {
    let ours = place.root.join(".checkrein");
    let logs = ours.join("logs");
    // With a link, a cloned repo could have our files written, and old ones removed, anywhere.
    if is_symlink(&ours) || is_symlink(&logs) {
        let apart = place.state.join("logs");
        // A log that cannot be written is reported by the check itself.
        let _ = create_private_folder(&apart);
        prune_check_logs(&apart);
        return apart;
    }
    let kept_out = ours.join(".gitignore");
    let made = create_private_folder(&ours).and_then(|()| create_private_folder(&logs));
    // The ignore file keeps the logs out of git. One that is there, even as a link, is left alone.
    if made.is_ok() && std::fs::symlink_metadata(&kept_out).is_err() {
        let _ = write_private_file(&kept_out, b"*\n");
    }
    prune_check_logs(&logs);
    logs
}

/// The folders in which logs may be.
pub(crate) fn possible_check_log_folders(place: &TreeAndStateFolder) -> Vec<PathBuf> {
    let ours = place.root.join(".checkrein");
    let logs = ours.join("logs");
    let mut folders = vec![place.state.join("logs")];
    if !is_symlink(&ours) && !is_symlink(&logs) {
        folders.push(logs);
    }
    folders
}

fn is_symlink(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

/// Removes old logs, but only what we wrote: regular files named `VERIFIER-NONCE.log`.
fn prune_check_logs(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut logs: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_own_log_file_name))
        .filter_map(|entry| {
            let metadata = std::fs::symlink_metadata(entry.path()).ok()?;
            (metadata.is_file()).then_some((metadata.modified().ok()?, entry.path()))
        })
        .collect();
    logs.sort();
    let surplus = logs.len().saturating_sub(MAX_LOGS);
    for (_, path) in logs.into_iter().take(surplus) {
        // Another process may have been faster.
        let _ = std::fs::remove_file(path);
    }
}

/// Whether a file is named as our logs are.
pub(crate) fn is_own_log_file_name(name: &str) -> bool {
    name.strip_suffix(".log")
        .and_then(|stem| stem.rsplit_once('-'))
        .is_some_and(|(_, nonce)| nonce.len() >= 8 && nonce.chars().all(|c| c.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_logs_are_ours() {
        assert!(is_own_log_file_name("tests-0123456789abcdef.log"));
        for name in [
            "notes.log",
            "tests-xyz.log",
            "tests-0123456789abcdef.txt",
            "0123456789abcdef.log",
        ] {
            assert!(!is_own_log_file_name(name), "{name}");
        }
    }
}
