//! Analyses what becomes of the exit statuses inside a check's command, from the files of the tree
//! as they are. Nothing is run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use checkrein_core::exit_status::ExitStatusAnalysis;
use checkrein_core::ids::VerifierName;
use checkrein_core::policy::{Policy, VerifierSpec};
use checkrein_execpolicy::{FileFolderOrNothing, ScriptProjectView, analyze_exit_status_masking};
use checkrein_verifiers::{find_program_in_path, program_exists, regular_file};

use crate::workspace::TreeAndStateFolder;

/// The verifiers whose programs can all be found, under the names by which their commands call
/// them.
pub(crate) fn verifiers_with_programs_found(
    place: &TreeAndStateFolder,
    policy: &Policy,
) -> Vec<VerifierName> {
    let there = |spec: &&VerifierSpec| {
        let Some(reading) = analyse_verifier_exit_statuses(&place.root, &place.env, spec) else {
            return false;
        };
        // What a called file runs is left to that file.
        let mut own = reading
            .commands
            .iter()
            .filter(|command| command.place.is_none())
            .peekable();
        // A command without any program of its own is not known to run.
        own.peek().is_some()
            && own.all(|command| {
                program_exists(&command.program, &command.folder, &place.root, &place.env)
            })
    };
    let specs = policy.verifiers.iter().filter(there);
    specs.map(|spec| spec.name.clone()).collect()
}

/// The largest script, makefile or `package.json` that is read.
const MAX_SCRIPT_BYTES: u64 = 512 * 1024;

/// Analyses the exit statuses in the command of this verifier; `None` if it runs none. `env` is the
/// environment in which it runs.
pub fn analyse_verifier_exit_statuses(
    root: &Path,
    env: &BTreeMap<OsString, OsString>,
    spec: &VerifierSpec,
) -> Option<ExitStatusAnalysis> {
    let kind = checkrein_verifiers::find_verifier_kind(&spec.kind)?;
    let script = kind.definition_shell_command(&spec.definition)?;
    // A script that is too long is read in part; what cannot be read at all is unknown.
    let file = |path: &str| {
        let mut text = Vec::new();
        let file = regular_file::open_regular_file(&root.join(path)).ok()?;
        file.take(MAX_SCRIPT_BYTES).read_to_end(&mut text).ok()?;
        String::from_utf8(text).ok()
    };
    let project = ScriptProjectView {
        text: &file,
        entry: &|path| file_folder_or_nothing_at_path(&root.join(path)),
        sh_is_bash: sh_is_bash(env),
        folders: &|path| sorted_subfolder_names(&root.join(path)),
        has_program: &|program| program_exists(program, "", root, env),
    };
    Some(analyze_exit_status_masking(&script, &project))
}

/// Whether `sh` is another name of bash or zsh. On macOS it is, although no link shows it.
fn sh_is_bash(env: &BTreeMap<OsString, OsString>) -> bool {
    let file = find_program_in_path("sh", env).and_then(|file| file.canonicalize().ok());
    let name = file.as_deref().and_then(Path::file_name);
    let by_name =
        |known: &[&str]| name.is_some_and(|name| known.iter().any(|known| name == *known));
    by_name(&["bash", "zsh"]) || cfg!(target_os = "macos") && by_name(&["sh"])
}

/// How many folders of a workspace are looked at.
const MAX_FOLDERS: usize = 200;

/// The names of the folders in a folder, sorted.
fn sorted_subfolder_names(path: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return Vec::new();
    };
    let found = entries.take(MAX_FOLDERS).filter_map(|entry| {
        let entry = entry.ok()?;
        let is_folder = entry.file_type().ok()?.is_dir();
        is_folder.then(|| entry.file_name().into_string().ok())?
    });
    let mut names: Vec<String> = found.collect();
    names.sort();
    names
}

/// What is at a path; `None` if that cannot be found out.
fn file_folder_or_nothing_at_path(path: &Path) -> Option<FileFolderOrNothing> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Some(FileFolderOrNothing::Folder),
        Ok(found) if found.is_file() => Some(FileFolderOrNothing::File {
            executable: has_execute_permission(&found),
            empty: found.len() == 0,
        }),
        // Only a sure absence counts as nothing; any other error leaves it unknown.
        Err(err) if err.kind() == ErrorKind::NotFound => Some(FileFolderOrNothing::Nothing),
        _ => None,
    }
}

#[cfg(unix)]
fn has_execute_permission(file: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn has_execute_permission(_: &Metadata) -> bool {
    true
}
