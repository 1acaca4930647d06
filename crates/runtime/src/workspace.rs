//! Where a session works: the tree it is about, and the folder that remembers.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::ids::SessionId;
use checkrein_core::policy::{Policy, SubjectKind};
use checkrein_verifiers::private_file::{create_private_folder, write_private_file};
use checkrein_verifiers::tree::{Limits, TreeError, TreeReader, TreeReading, View, tracked_files};

use crate::delivery::Patience;
use crate::{environment, whole};

/// At a prompt the tree is read only as long as nobody notices.
pub(crate) const PROMPT_LIMIT: Duration = Duration::from_secs(2);

/// Longer a list of tracked files is not believed.
const LARGEST_LIST: u64 = 256 << 20;

/// Stands for a list that could not be read. No list begins so: no name is empty.
const UNKNOWN: &str = "\0";

/// A tree and its state folder.
#[derive(Debug, Clone)]
pub struct Place {
    /// The tree that is judged; checks run here.
    pub root: PathBuf,
    /// The state folder of this repo.
    pub state: PathBuf,
    /// The environment that checks get a filtered copy of. Shared: places are copied often.
    pub env: Arc<BTreeMap<OsString, OsString>>,
    /// Whether what it says of where models are reached is believed: not where a stranger's
    /// settings may have set it.
    pub addresses: bool,
}

impl Place {
    /// A folder, with the environment of this process and a state folder that goes with it.
    pub fn here(root: &Path) -> Self {
        Self {
            state: std::env::temp_dir().join(format!("checkrein-{}", std::process::id())),
            env: Arc::new(std::env::vars_os().collect()),
            root: root.canonicalize().unwrap_or_else(|_| root.to_owned()),
            addresses: true,
        }
    }

    /// The environment in which models are asked.
    pub fn models(&self) -> Cow<'_, BTreeMap<OsString, OsString>> {
        match self.addresses {
            true => Cow::Borrowed(&self.env),
            false => Cow::Owned(checkrein_verifiers::without_addresses(&self.env)),
        }
    }

    /// Takes down which files are tracked now: they count from here on, whatever
    /// ignore files say later. If the index cannot be read within `limit`, what is known from
    /// before stays, and that nothing is known is taken down too.
    pub(crate) fn begin_task(&self, session: &SessionId, limit: Duration) -> BTreeSet<String> {
        let file = self.tracked_file(session);
        let now = tracked_files(&self.root, limit);
        if now.is_none()
            && let Some(before) = self.taken_down(session)
            && before != UNKNOWN
        {
            return names(&before);
        }
        let text = match &now {
            Some(names) => names.iter().cloned().collect::<Vec<_>>().join("\0"),
            None => UNKNOWN.to_owned(),
        };
        // Without the list ignore files decide: less is seen, nothing wrong is claimed.
        let _ = file.parent().map_or(Ok(()), create_private_folder);
        let fresh = file.with_extension(std::process::id().to_string());
        if write_private_file(&fresh, text.as_bytes()).is_ok() {
            let _ = std::fs::rename(&fresh, &file);
        }
        now.unwrap_or_default()
    }

    /// Whether it could not be read, when the session's newest task began, which files git
    /// tracks: those that match an ignore rule are missed then.
    pub fn tracked_unknown(&self, session: &SessionId) -> bool {
        self.taken_down(session).is_some_and(|text| text == UNKNOWN)
    }

    fn taken_down(&self, session: &SessionId) -> Option<String> {
        let bytes = whole::read(&self.tracked_file(session), LARGEST_LIST);
        Some(String::from_utf8_lossy(&bytes.ok()??).into_owned())
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
    pub(crate) fn tracked(
        &self,
        session: Option<&SessionId>,
        patience: Patience<'_>,
    ) -> BTreeSet<String> {
        let limit = patience.for_a_question();
        let Some(session) = session else {
            return tracked_files(&self.root, limit).unwrap_or_default();
        };
        match self.taken_down(session) {
            Some(text) => names(&text),
            None => self.begin_task(session, limit),
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

fn names(text: &str) -> BTreeSet<String> {
    let names = text.split('\0').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

fn short_name(bytes: &[u8]) -> String {
    let mut name = Digest::of(bytes).to_hex();
    name.truncate(24);
    name
}
