//! Digests what a check runs with: its programs, its variables, and marks of installed packages. A
//! pass that was found with another program or other packages is about something else.
//!
//! What a program starts in turn is not followed: `cargo` may be a shim, `python3` a script.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use checkrein_core::digest::{Digest, EightByteDigest};
use checkrein_core::policy::{Policy, VerifierSpec};
use checkrein_verifiers::{find_program_in_path, regular_file};

use crate::workspace::TreeAndStateFolder;

/// A larger program is identified by its stamp, since it is read at each look.
const MAX_HASHED_BYTES: u64 = 1 << 20;
/// The same for a program of the tree, which a check may build.
const MAX_HASHED_TREE_BYTES: u64 = 64 << 20;
/// How much of a file is read for its first line.
const MAX_LINE_BYTES: u64 = 256;

/// Digests what the checks of this policy run with, given marks of installed packages. One digest
/// serves all: a pass that is lost needlessly costs a run, one that is kept wrongly is a wrong
/// verdict.
pub(crate) fn digest_of_check_environment(
    place: &TreeAndStateFolder,
    policy: &Policy,
    packages: Digest,
) -> EightByteDigest {
    let mut parts = vec![place.environment_variables_digest(), packages];
    for script in policy.verifiers.iter().filter_map(shell_script_of_check) {
        parts.push(
            place
                .system
                .script_programs_digest(&script, &place.root, &place.env),
        );
    }
    Digest::hash_parts(parts.iter().map(|part| &part.as_bytes()[..])).to_eight_byte_digest()
}

/// The shell command of a check whose kind starts programs.
fn shell_script_of_check(spec: &VerifierSpec) -> Option<String> {
    let kind = checkrein_verifiers::find_verifier_kind(&spec.kind)?;
    kind.definition_shell_command(&spec.definition)
        .map(|script| script.to_string())
}

/// Digests the files of the programs that the script itself calls by name.
pub(crate) fn script_programs_digest(
    script: &str,
    root: &Path,
    env: &BTreeMap<OsString, OsString>,
) -> Digest {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for name in possible_program_names_in_script(script) {
        let found = match name.contains('/') {
            // With a slash, a shell takes the name for a path; otherwise it searches `PATH`.
            true => Some(root.join(name)).filter(|file| is_executable_file(file)),
            false => find_program_in_path(name, env),
        };
        // A word that names no program is an argument, or a builtin of the shell.
        let Some(file) = found else { continue };
        parts.push(fingerprint_program_content(&file, root));
        if let Some(interpreter) = shebang_program(&file, env) {
            parts.push(fingerprint_program_content(&interpreter, root));
        }
    }
    Digest::hash_parts(parts.iter().map(Vec::as_slice))
}

/// Returns the words that may name a program: behind `timeout 60`, `exec` or `if` it is not the
/// first. A word too many costs a run.
fn possible_program_names_in_script(script: &str) -> impl Iterator<Item = &str> {
    let separates = |c: char| c.is_whitespace() || ";&|(){}".contains(c);
    let words = script.split(separates);
    words.filter(|word| !word.is_empty() && !is_assignment(word) && is_literal_shell_word(word))
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_literal_shell_word(word: &str) -> bool {
    !word.starts_with('-') && !word.contains(['$', '`', '*', '"', '\'', '<', '>'])
}

#[cfg(unix)]
fn is_executable_file(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = std::fs::metadata(file);
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable_file(file: &Path) -> bool {
    file.is_file()
}

/// Identifies a file by its content, so that the same program installed or built again counts as
/// the same; a large file by what the file system says of it.
fn fingerprint_program_content(file: &Path, root: &Path) -> Vec<u8> {
    let mut id = file.as_os_str().as_encoded_bytes().to_vec();
    id.push(0);
    let largest = match file.starts_with(root) {
        true => MAX_HASHED_TREE_BYTES,
        false => MAX_HASHED_BYTES,
    };
    if let Ok(opened) = regular_file::open_regular_file(file) {
        let mut bytes = Vec::new();
        if opened
            .take(largest)
            .read_to_end(&mut bytes)
            // Exactly `largest` bytes may be the beginning of a larger file.
            .is_ok_and(|read| (read as u64) < largest)
        {
            id.extend(Digest::hash_bytes(&bytes).as_bytes());
            return id;
        }
    }
    if let Ok(metadata) = std::fs::metadata(file) {
        id.extend(metadata_stamp(&metadata));
    }
    id
}

#[cfg(unix)]
fn metadata_stamp(metadata: &std::fs::Metadata) -> Vec<u8> {
    use std::os::unix::fs::MetadataExt as _;
    let (device, inode, size) = (metadata.dev(), metadata.ino(), metadata.size());
    // The change time: unlike the modification time, no program can set it back.
    let (seconds, ns) = (metadata.ctime(), metadata.ctime_nsec());
    format!("{device} {inode} {size} {seconds} {ns}").into_bytes()
}

#[cfg(not(unix))]
fn metadata_stamp(metadata: &std::fs::Metadata) -> Vec<u8> {
    let modified = metadata.modified().ok();
    let since = modified.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let ns = since.unwrap_or_default().as_nanos();
    format!("{} {ns}", metadata.len()).into_bytes()
}

/// The program that the first line of a script names.
fn shebang_program(file: &Path, env: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let mut line = Vec::new();
    regular_file::open_regular_file(file)
        .ok()?
        .take(MAX_LINE_BYTES)
        .read_to_end(&mut line)
        .ok()?;
    let line = line
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace();
    let program = words.next()?;
    // `env` finds the interpreter by its name, so that one is looked up.
    if !program.ends_with("/env") {
        return Some(PathBuf::from(program));
    }
    let named = words.find(|word| !word.starts_with('-') && !is_assignment(word))?;
    find_program_in_path(named, env)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_of_a_script_may_name_a_program() {
        let check = |script: &str, expected: &[&str]| {
            assert_eq!(
                possible_program_names_in_script(script).collect::<Vec<_>>(),
                expected,
                "{script}"
            );
        };
        check("CI=1 cargo test --a=b", &["cargo", "test"]);
        check(
            "timeout 60 mytool|tee log",
            &["timeout", "60", "mytool", "tee", "log"],
        );
        check("$RUNNER; \"mine\"", &[]);
    }
}
