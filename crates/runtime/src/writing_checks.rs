//! Checks that were seen to write into the tree, and what: such a check runs alone from then on, with an eye
//! on those files. One small file for each definition; without it a check is only found out anew.

use std::path::PathBuf;

use checkrein_core::digest::Digest;
use checkrein_core::policy::VerifierSpec;
use checkrein_verifiers::private_file::{create_private_folder, write_private_file};

use crate::durable_file;
use crate::workspace::TreeAndStateFolder;

/// More files are not watched.
const MAX_FILES: usize = 200;
/// First line of a check that takes files away and brings them back.
const RESTORES: &str = "restores";
/// First line of any other.
const WRITES: &str = "writes";

/// What is known of a check.
#[derive(Debug, Default)]
pub(crate) struct CheckWrites {
    pub(crate) paths: Vec<String>,
    /// It was seen to take some of them away and bring them back.
    pub(crate) restores: bool,
}

pub(crate) fn recorded_check_writes(
    place: &TreeAndStateFolder,
    spec: &VerifierSpec,
) -> CheckWrites {
    let text = durable_file::read_limited_text_file(
        &path_of_check_writes_record(place, spec),
        durable_file::MAX_CONFIG_BYTES,
    );
    let text = text.ok().flatten().unwrap_or_default();
    let mut lines = text.lines();
    CheckWrites {
        restores: lines.next() == Some(RESTORES),
        paths: lines.map(str::to_owned).collect(),
    }
}

/// Adds to what is known of it.
pub(crate) fn record_check_writes(
    place: &TreeAndStateFolder,
    spec: &VerifierSpec,
    paths: &[String],
    restores: bool,
) {
    let before = recorded_check_writes(place, spec);
    let mut all = before.paths;
    all.extend(paths.iter().filter(|path| !path.contains('\n')).cloned());
    all.sort_unstable();
    all.dedup();
    all.truncate(MAX_FILES);
    let head = match restores {
        true => RESTORES,
        false => WRITES,
    };
    let file = path_of_check_writes_record(place, spec);
    let _ = file.parent().map_or(Ok(()), create_private_folder);
    let _ = write_private_file(&file, format!("{head}\n{}\n", all.join("\n")).as_bytes());
}

fn path_of_check_writes_record(place: &TreeAndStateFolder, spec: &VerifierSpec) -> PathBuf {
    let id = Digest::hash_parts([
        place.root.as_os_str().as_encoded_bytes(),
        spec.definition_digest().as_bytes(),
    ]);
    let mut name = id.to_hex();
    name.truncate(24);
    place.state.join("writers").join(name)
}
