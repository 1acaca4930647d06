//! Names and writes log files: one for each run, named after its verifier and a nonce.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use checkrein_core::digest::Digest;

use crate::VerifierJob;
use crate::private_file::create_private_folder;

/// Returns a name that no other run on this machine has.
pub fn unique_run_name() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // Process, counter and time together: process ids are reused, and clocks are set back.
    let digest = Digest::hash_parts([
        std::process::id().to_le_bytes().as_slice(),
        COUNTER
            .fetch_add(1, Ordering::Relaxed)
            .to_le_bytes()
            .as_slice(),
        since_epoch.as_nanos().to_le_bytes().as_slice(),
    ]);
    format!("{:016x}", digest.to_eight_byte_digest().0)
}

/// Returns the path of this run's log.
pub(crate) fn check_log_path(job: &VerifierJob<'_>, nonce: &str) -> PathBuf {
    let name = sanitized_file_name(job.spec.name.as_str());
    job.log_dir.join(format!("{name}-{nonce}.log"))
}

/// Creates a log that only its owner may read.
pub(crate) fn create_log_file(log: &Path) -> std::io::Result<File> {
    if let Some(folder) = log.parent() {
        create_private_folder(folder)?;
    }
    let mut options = File::options();
    // Never an existing file: a link in its place would have us write elsewhere.
    options.write(true).create_new(true);
    // A check may print secrets.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(log)
}

/// Writes these bytes as the log of a run and returns its path as [`path_text_from_root`] does.
pub(crate) fn write_check_run_log(job: &VerifierJob<'_>, bytes: &[u8]) -> std::io::Result<String> {
    let path = check_log_path(job, &unique_run_name());
    create_log_file(&path)?.write_all(bytes)?;
    Ok(path_text_from_root(&path, job.root))
}

/// Returns the path relative to the root and `/`-separated if it is inside it.
pub(crate) fn path_text_from_root(path: &Path, root: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(inside) => {
            let parts: Vec<_> = inside
                .components()
                .map(|part| part.as_os_str().to_string_lossy())
                .collect();
            parts.join("/")
        }
        Err(_) => path.to_string_lossy().into_owned(),
    }
}

fn sanitized_file_name(name: &str) -> String {
    // A verifier's name may hold a `/` or `..`, which would leave the folder.
    let safe = |c: char| {
        if c.is_alphanumeric() || matches!(c, '-' | '_') {
            c
        } else {
            '_'
        }
    };
    name.chars().take(64).map(safe).collect()
}
