//! Where a session works: the tree it is about, and the folder that remembers.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::ids::SessionId;
use checkrein_core::policy::{Policy, SubjectKind};
use checkrein_verifiers::tree::{Limits, TreeError, TreeReader, TreeReading, View, tracked_files};

use crate::{environment, whole};

/// At a prompt the tree is read only as long as nobody notices.
pub(crate) const PROMPT_LIMIT: Duration = Duration::from_secs(2);

/// Longer a list of tracked files is not believed.
const LARGEST_LIST: u64 = 256 << 20;

/// A tree and its state folder.
#[derive(Debug, Clone)]
pub struct Place {
    /// The tree that is judged; checks run here.
    pub root: PathBuf,
    /// The state folder of this repo.
    pub state: PathBuf,
    /// The environment that checks get a filtered copy of. Shared: places are copied often.
    pub env: Arc<BTreeMap<OsString, OsString>>,
}

impl Place {
    /// Takes down which files are tracked now: they count from here on, whatever
    /// ignore files say later.
    pub(crate) fn begin_task(&self, session: &SessionId) {
        let names: Vec<u8> = tracked_files(&self.root)
            .into_iter()
            .collect::<Vec<_>>()
            .join("\0")
            .into_bytes();
        let file = self.tracked_file(session);
        // Without the list ignore files decide: less is seen, nothing wrong is claimed.
        let _ = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        let fresh = file.with_extension(std::process::id().to_string());
        if std::fs::write(&fresh, names).is_ok() {
            let _ = std::fs::rename(&fresh, &file);
        }
    }

    /// Reads the tree, with the part that each verifier depends on. `always` are the files
    /// that count whatever ignore files say.
    pub(crate) fn read(
        &self,
        always: &BTreeSet<String>,
        policy: &Policy,
        limits: Limits<'_>,
    ) -> Result<TreeReading, TreeError> {
        let views: Vec<View<'_>> = policy
            .verifiers
            .iter()
            .filter(|spec| spec.subject == SubjectKind::Tree)
            .map(|spec| View {
                name: &spec.name,
                inputs: &spec.inputs,
                outputs: &spec.outputs,
            })
            .collect();
        // What a verifier names is judged, whatever ignore files say of it.
        let named: BTreeSet<String> = policy
            .verifiers
            .iter()
            .filter_map(|spec| Some((checkrein_verifiers::find(&spec.kind)?, spec)))
            .flat_map(|(kind, spec)| kind.named_files(&spec.definition))
            .collect();
        let reader = TreeReader {
            root: self.root.clone(),
            cache_file: self
                .state
                .join("tree")
                .join(short_name(self.root.as_os_str().as_encoded_bytes())),
            always: always.union(&named).cloned().collect(),
            apart: Some(self.state.clone()),
        };
        reader.read(&views, limits)
    }

    /// The files tracked when the session's task began; those tracked now without one.
    pub(crate) fn tracked(&self, session: Option<&SessionId>) -> BTreeSet<String> {
        let Some(session) = session else {
            return tracked_files(&self.root);
        };
        match whole::read(&self.tracked_file(session), LARGEST_LIST) {
            Ok(Some(bytes)) => String::from_utf8_lossy(&bytes)
                .split('\0')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
            Ok(None) | Err(_) => {
                self.begin_task(session);
                tracked_files(&self.root)
            }
        }
    }

    /// Removes what is known of a session beside the store.
    pub(crate) fn forget_session(&self, session: &SessionId) -> bool {
        std::fs::remove_file(self.tracked_file(session)).is_ok()
    }

    fn tracked_file(&self, session: &SessionId) -> PathBuf {
        self.state
            .join("tracked")
            .join(short_name(session.as_str().as_bytes()))
    }

    /// Part of the content key: a check that sees another environment is another check.
    pub(crate) fn environment(&self) -> Digest {
        environment::digest(&self.root, &self.env)
    }

    pub(crate) fn root_text(&self) -> String {
        self.root.display().to_string()
    }
}

fn short_name(bytes: &[u8]) -> String {
    let mut name = Digest::of(bytes).to_hex();
    name.truncate(24);
    name
}
