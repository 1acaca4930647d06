//! Records which state folder knows a session, by the session's id: its agent may work in any other
//! folder by now. There is one small file per session, beside the state folders. A file that is
//! lost or wrong only means that the session is not found by its id: the store that it names has
//! the last word.

use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;
use checkrein_core::ids::SessionId;
use checkrein_runtime::durable_file;
use checkrein_verifiers::private_file::{create_private_folder, write_private_file};

/// A folder beside the state folders. No repo's folder has this name, since those end with a
/// digest.
const FOLDER: &str = "sessions";

/// Records that the session begins in this state folder. The first entry stays.
pub(crate) fn add_session_index_entry(state: &Path, session: &SessionId) {
    let (Some(file), Some(name)) = (session_index_entry_path(state, session), state.file_name())
    else {
        return;
    };
    if file.exists() {
        return;
    }
    // Without the entry the session is found in its own folder, as ever.
    let _ = file.parent().map_or(Ok(()), create_private_folder);
    let _ = write_private_file(&file, name.as_encoded_bytes());
}

/// Returns the state folder that this session began in, if it is another one than `state`.
pub(crate) fn find_other_state_folder_of_session(
    state: &Path,
    session: &SessionId,
) -> Option<PathBuf> {
    let name = durable_file::read_limited_text_file(
        &session_index_entry_path(state, session)?,
        durable_file::MAX_SMALL_BYTES,
    )
    .ok()??;
    // The name becomes part of a path: it must not lead out of the folder of all states.
    let is_plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']);
    let other = state.parent()?.join(name);
    (is_plain && other != state && other.is_dir()).then_some(other)
}

/// Removes the entry of a session of this state folder.
pub(crate) fn remove_session_index_entry(state: &Path, session: &SessionId) {
    let ours = |name: String| state.file_name().is_some_and(|own| own == name.as_str());
    let Some(file) = session_index_entry_path(state, session) else {
        return;
    };
    if durable_file::read_limited_text_file(&file, durable_file::MAX_SMALL_BYTES)
        .ok()
        .flatten()
        .is_some_and(ours)
    {
        let _ = std::fs::remove_file(file);
    }
}

fn session_index_entry_path(state: &Path, session: &SessionId) -> Option<PathBuf> {
    let mut name = Digest::hash_bytes(session.as_str().as_bytes()).to_hex();
    name.truncate(24);
    Some(state.parent()?.join(FOLDER).join(name))
}
