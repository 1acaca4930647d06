//! Remembers checks that were seen to write into the tree, and the files: such a check runs alone
//! from then on, while those files are watched. One small file per definition; without it a check
//! is merely found out anew.

use std::path::PathBuf;

use checkrein_core::digest::Digest;
use checkrein_core::policy::VerifierSpec;
use checkrein_verifiers::private_file::{create_private_folder, write_private_file};

use crate::durable_file;
use crate::workspace::TreeAndStateFolder;

/// How many files are watched at most.
const MAX_FILES: usize = 200;
/// The first line for a check that takes files away and brings them back.
const RESTORES: &str = "restores";
/// The first line for any other check.
const WRITES: &str = "writes";

/// What is known about a check.
#[derive(Debug, Default)]
pub(crate) struct FilesSeenWrittenByCheck {
    pub(crate) paths: Vec<String>,
    /// Whether it was last seen to take some of them away and bring them back.
    pub(crate) restores: bool,
}

pub(crate) fn recorded_check_writes(
    place: &TreeAndStateFolder,
    spec: &VerifierSpec,
) -> FilesSeenWrittenByCheck {
    let text = durable_file::read_limited_text_file(
        &check_writes_record_file_path(place, spec),
        durable_file::MAX_CONFIG_BYTES,
    );
    let text = text.ok().flatten().unwrap_or_default();
    let mut lines = text.lines();
    FilesSeenWrittenByCheck {
        restores: lines.next() == Some(RESTORES),
        paths: lines.map(str::to_owned).collect(),
    }
}

/// Adds files to what is known; the newest run decides about `restores`.
pub(crate) fn add_files_written_by_check(
    place: &TreeAndStateFolder,
    spec: &VerifierSpec,
    paths: &[String],
    restores: bool,
) {
    let before = recorded_check_writes(place, spec);
    let mut all = before.paths;
    // One line per file: a name with a line feed would read as two.
    all.extend(paths.iter().filter(|path| !path.contains('\n')).cloned());
    all.sort_unstable();
    all.dedup();
    all.truncate(MAX_FILES);
    let head = match restores {
        true => RESTORES,
        false => WRITES,
    };
    let file = check_writes_record_file_path(place, spec);
    // Errors are ignored: without the file the check is found out anew.
    let _ = file.parent().map_or(Ok(()), create_private_folder);
    let _ = write_private_file(&file, format!("{head}\n{}\n", all.join("\n")).as_bytes());
}

fn check_writes_record_file_path(place: &TreeAndStateFolder, spec: &VerifierSpec) -> PathBuf {
    // Root and definition: the same command in another tree may write other files.
    let id = Digest::hash_parts([
        place.root.as_os_str().as_encoded_bytes(),
        spec.verifier_definition_digest().as_bytes(),
    ]);
    let mut name = id.to_hex();
    name.truncate(24);
    place.state.join("writers").join(name)
}
