//! The workspace of a session: the tree that is judged, and the state folder that remembers.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use std::sync::Arc;
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::ids::SessionId;
use checkrein_core::input::TreeDigests;
use checkrein_core::policy::{Policy, VerdictSubjectKind};
use checkrein_verifiers::git::GitReadError;
use checkrein_verifiers::private_file::{create_private_folder, write_private_file};
use checkrein_verifiers::tree::{
    ExcludedFileCounts, PackedNameSet, TreeReadResult, TreeReadTimeoutAndCancel, TreeReader,
    TreeReaderError, UncompiledVerifierGlobs, git_tracked_files,
};

use crate::event_delivery::Deadline;
use crate::output_files::own_output_file_ids;
use crate::system::{RealSystem, System};
use crate::{durable_file, environment, run_environment};

/// The limit for reading the tree at a prompt, short enough that nobody notices it.
pub(crate) const PROMPT_LIMIT: Duration = Duration::from_secs(2);

/// The largest list of tracked files that is read.
const MAX_LIST_BYTES: u64 = 256 << 20;

/// The first byte of a list that may be incomplete. No other list begins with it, because no name
/// is empty.
const INCOMPLETE_MARK: u8 = b'\0';

/// The files that count whatever ignore files say.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrackedFiles {
    /// Those that are known.
    pub(crate) names: Arc<PackedNameSet>,
    /// Why the list may be incomplete, and what to do about it.
    pub(crate) unknown: Option<String>,
}

/// A tree and its state folder.
#[derive(Debug, Clone)]
pub struct TreeAndStateFolder {
    /// The tree that is judged; checks run here.
    pub root: PathBuf,
    /// The state folder of this repo.
    pub state: PathBuf,
    /// The environment that checks get a filtered copy of. Shared: places are copied often.
    pub env: Arc<BTreeMap<OsString, OsString>>,
    /// Whether the variables that say where models are reached are believed. They are not where a
    /// stranger's settings may have set them.
    pub trusts_addresses: bool,
    /// The machine.
    pub system: Arc<dyn System>,
}

impl TreeAndStateFolder {
    /// A workspace in this folder, with the environment of this process and a state folder of its
    /// own.
    pub fn new_with_per_process_state_folder(root: &Path) -> Self {
        Self {
            state: std::env::temp_dir().join(format!("checkrein-{}", std::process::id())),
            env: Arc::new(std::env::vars_os().collect()),
            root: root.canonicalize().unwrap_or_else(|_| root.to_owned()),
            trusts_addresses: true,
            system: Arc::new(RealSystem),
        }
    }

    /// The environment in which models are asked.
    pub fn env_vars_for_model_requests(&self) -> Cow<'_, BTreeMap<OsString, OsString>> {
        match self.trusts_addresses {
            true => Cow::Borrowed(&self.env),
            false => Cow::Owned(checkrein_verifiers::without_endpoint_variables(&self.env)),
        }
    }

    /// Records which files are tracked now: they count from here on, whatever ignore files say
    /// later. If that cannot be found out within `limit`, the earlier list counts, and it is
    /// recorded that the list may be incomplete.
    pub(crate) fn record_tracked_file_list(
        &self,
        session: &SessionId,
        limit: Duration,
    ) -> TrackedFiles {
        let tracked = self.list_tracked_files(limit);
        let file = self.git_tracked_files_list_path(session);
        let before = durable_file::read_regular_file(&file, MAX_LIST_BYTES)
            .ok()
            .flatten();
        // Nearly always nothing has changed, and there may be hundreds of thousands of names.
        if tracked.unknown.is_none()
            && before.as_deref() == Some(tracked.names.to_nul_separated_text().as_bytes())
        {
            return tracked;
        }
        let before = before.map(name_list_from_stored_bytes).unwrap_or_default();
        // A new list may lack the files of an index that is gone. Without a new list, the earlier
        // one is all that is known.
        let names = match tracked.unknown {
            None => keep_tracked_names_if_index_lost(tracked.names, &before),
            Some(_) => Arc::new(before),
        };
        self.record_tracked_files(session, TrackedFiles { names, ..tracked })
    }

    /// Whether git's tracked files could not be listed when the session's newest task began, nor
    /// since: those that match an ignore rule may then be missed.
    pub fn are_tracked_files_unknown(&self, session: &SessionId) -> bool {
        self.recorded_tracked_files(session)
            .is_some_and(|tracked| tracked.unknown.is_some())
    }

    fn list_tracked_files(&self, limit: Duration) -> TrackedFiles {
        match git_tracked_files(&self.root, &self.env, limit) {
            Ok(names) => TrackedFiles {
                names: Arc::new(names),
                unknown: None,
            },
            Err(error) => TrackedFiles {
                names: Arc::default(),
                unknown: Some(tracked_files_unknown_reason(&error)),
            },
        }
    }

    fn record_tracked_files(&self, session: &SessionId, tracked: TrackedFiles) -> TrackedFiles {
        let mut text = String::new();
        if tracked.unknown.is_some() {
            text.push(char::from(INCOMPLETE_MARK));
        }
        text.push_str(tracked.names.to_nul_separated_text());
        // Errors are ignored. Without the list, ignore files decide: fewer files are seen, but
        // nothing wrong is claimed.
        let file = self.git_tracked_files_list_path(session);
        let _ = file.parent().map_or(Ok(()), create_private_folder);
        // Renamed into place, so that a hook that reads meanwhile sees the old list or the new one.
        let fresh = file.with_extension(std::process::id().to_string());
        if write_private_file(&fresh, text.as_bytes()).is_ok() {
            let _ = std::fs::rename(&fresh, &file);
        }
        tracked
    }

    fn recorded_tracked_files(&self, session: &SessionId) -> Option<TrackedFiles> {
        let bytes = durable_file::read_regular_file(
            &self.git_tracked_files_list_path(session),
            MAX_LIST_BYTES,
        );
        let bytes = bytes.ok()??;
        let unknown = bytes.starts_with(&[INCOMPLETE_MARK]);
        Some(TrackedFiles {
            names: Arc::new(name_list_from_stored_bytes(bytes)),
            unknown: unknown
                .then(|| "the git index could not be read when the task began".to_owned()),
        })
    }

    /// Reads the tree, with the part that each verifier depends on. If it is not known which files
    /// count, the digests match no known tree, so no evidence is about it.
    pub(crate) fn read_tree(
        &self,
        tracked: &TrackedFiles,
        policy: &Policy,
        limits: TreeReadTimeoutAndCancel<'_>,
    ) -> Result<TreeReadResult, TreeReaderError> {
        // Only checks of the tree have a part of it that they depend on.
        let views: Vec<UncompiledVerifierGlobs<'_>> = policy
            .verifiers
            .iter()
            .filter(|spec| spec.subject == VerdictSubjectKind::Tree)
            .map(|spec| UncompiledVerifierGlobs {
                name: &spec.name,
                inputs: &spec.inputs,
                outputs: &spec.outputs,
            })
            .collect();
        // A file that a verifier names is judged whatever ignore files say.
        let named: BTreeSet<String> = policy
            .verifiers
            .iter()
            .filter_map(|spec| Some((checkrein_verifiers::find_verifier_kind(&spec.kind)?, spec)))
            .flat_map(|(kind, spec)| kind.files_named_in_definition(&spec.definition))
            .collect();
        let reader = TreeReader {
            files: Arc::<dyn System>::clone(&self.system),
            root: self.root.clone(),
            cache_file: self.tree_cache_path(),
            always_included: Arc::clone(&tracked.names),
            also_included: named,
            excluded_folder: Some(self.state.clone()),
            own_output_files: own_output_file_ids(&self.state, &self.env),
        };
        let mut reading = reader.read_tree(&views, limits)?;
        self.write_too_large_files_list(&reading.unread);
        // The reading itself is sound, but no evidence may be taken for this tree.
        if tracked.unknown.is_some() {
            reading.fact = mark_tree_digests_incomplete(reading.fact);
        }
        let packages = reading.packages_digest();
        reading.fact.environment = Some(run_environment::digest_of_check_environment(
            self, policy, packages,
        ));
        Ok(reading)
    }

    /// Returns the files that were tracked when the session's task began; without a session, those
    /// tracked now. A list that was incomplete is read again, so that whoever mends the index can
    /// go on.
    pub(crate) fn git_tracked_files_at_task_start(
        &self,
        session: Option<&SessionId>,
        patience: Deadline<'_>,
    ) -> TrackedFiles {
        let limit = patience.auxiliary_program_timeout(&*self.system);
        let Some(session) = session else {
            return self.list_tracked_files(limit);
        };
        // A session without a list had no prompt here yet; it begins with what is tracked now.
        let Some(mut tracked) = self.recorded_tracked_files(session) else {
            return self.record_tracked_file_list(session, limit);
        };
        if tracked.unknown.is_some() {
            let now = self.list_tracked_files(limit);
            // Names are only added: what was tracked at the task's start goes on counting.
            tracked.names = Arc::new(tracked.names.name_set_union(now.names.iter()));
            tracked.unknown = now.unknown;
            if tracked.unknown.is_none() {
                tracked = self.record_tracked_files(session, tracked);
            }
        }
        tracked
    }

    /// Removes the files about a session beside the store.
    pub(crate) fn remove_session_files(&self, session: &SessionId) -> bool {
        std::fs::remove_file(self.git_tracked_files_list_path(session)).is_ok()
    }

    /// Returns what is left out of the tree as it is now, for a task of this session; `None` if
    /// that cannot be found out within `limit`.
    pub fn excluded_file_counts(
        &self,
        session: &SessionId,
        policy: &Policy,
        limit: Duration,
    ) -> Option<ExcludedFileCounts> {
        let tracked = self.recorded_tracked_files(session);
        let tracked = tracked.unwrap_or_else(|| self.list_tracked_files(limit));
        let limits = TreeReadTimeoutAndCancel {
            time: Some(limit),
            ..TreeReadTimeoutAndCancel::default()
        };
        let reading = self.read_tree(&tracked, policy, limits).ok()?;
        Some(reading.left_out)
    }

    /// Files that were too large to be read when the tree was read last.
    pub fn files_too_large_to_read(&self) -> Vec<String> {
        let listed = durable_file::read_regular_file(
            &self.too_large_files_list_path(),
            durable_file::MAX_SMALL_BYTES,
        );
        let names = listed.ok().flatten().map(name_list_from_stored_bytes);
        names
            .unwrap_or_default()
            .iter()
            .map(str::to_owned)
            .collect()
    }

    /// Records the large files, for messages only: without the list none are named.
    fn write_too_large_files_list(&self, names: &[String]) {
        let file = self.too_large_files_list_path();
        if names.is_empty() {
            // As a rule there is no such file.
            let _ = std::fs::remove_file(file);
            return;
        }
        let _ = file.parent().map_or(Ok(()), create_private_folder);
        let _ = write_private_file(&file, names.join("\0").as_bytes());
    }

    fn too_large_files_list_path(&self) -> PathBuf {
        self.tree_cache_path().with_extension("large")
    }

    fn tree_cache_path(&self) -> PathBuf {
        let name = hash_to_short_folder_name(self.root.as_os_str().as_encoded_bytes());
        self.state.join("tree").join(name)
    }

    fn git_tracked_files_list_path(&self, session: &SessionId) -> PathBuf {
        self.state
            .join("tracked")
            .join(hash_to_short_folder_name(session.as_str().as_bytes()))
    }

    /// Part of the content key: a check that sees another environment is another check.
    pub(crate) fn environment_variables_digest(&self) -> Digest {
        environment::environment_and_platform_digest(&self.root, &self.env)
    }

    pub(crate) fn workspace_root_path_text(&self) -> String {
        self.root.display().to_string()
    }
}

/// Reads names as they are stored.
fn name_list_from_stored_bytes(listed: Vec<u8>) -> PackedNameSet {
    let lossy = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
    let text = String::from_utf8(listed).unwrap_or_else(lossy);
    // The mark of an incomplete list is no part of the names.
    PackedNameSet::from_nul_separated(text.strip_prefix('\0').map(str::to_owned).unwrap_or(text))
}

/// Adds the names that git tracked before and has no index for any more.
fn keep_tracked_names_if_index_lost(
    now: Arc<PackedNameSet>,
    before: &PackedNameSet,
) -> Arc<PackedNameSet> {
    let gone = before.iter().filter(|name| !now.contains_name(name));
    let gone: Vec<&str> = gone
        .filter(|name| is_missing_due_to_lost_git_index(name, &now))
        .collect();
    match gone.is_empty() {
        true => now,
        false => Arc::new(now.name_set_union(gone)),
    }
}

/// Whether a tracked name is missing now because the index that would hold it is gone: that of the
/// repository, or that of the submodule which the name is in.
fn is_missing_due_to_lost_git_index(name: &str, now: &PackedNameSet) -> bool {
    let is_empty = |submodule: &str| {
        let inside = format!("{submodule}/");
        // Names are sorted, so a file of the submodule would come next.
        let first = now.first_name_sorted_at_or_after(&inside);
        !first.is_some_and(|first| first.starts_with(&inside))
    };
    // Each folder above the file may be the submodule that git lists as one name.
    let above = name.match_indices('/').filter_map(|(at, _)| name.get(..at));
    now.is_empty()
        || above
            .into_iter()
            .any(|folder| now.contains_name(folder) && is_empty(folder))
}

/// Describes why git's tracked files are not known, and what to do about it.
fn tracked_files_unknown_reason(error: &GitReadError) -> String {
    let source = match error.source() {
        Some(source) => format!(": {source}"),
        None => String::new(),
    };
    format!(
        "it is not known which files git tracks: {error}{source}; {}",
        error.git_error_remedy()
    )
}

/// Changes the digests of a tree of which some files may not have been seen.
fn mark_tree_digests_incomplete(fact: TreeDigests) -> TreeDigests {
    let other = |digest: Digest| Digest::hash_parts([b"not all", &digest.as_bytes()[..]]);
    TreeDigests {
        tree: other(fact.tree),
        subjects: fact
            .subjects
            .into_iter()
            .map(|(name, digest)| (name, other(digest)))
            .collect(),
        environment: fact.environment,
        acts: fact.acts,
    }
}

fn hash_to_short_folder_name(bytes: &[u8]) -> String {
    let mut name = Digest::hash_bytes(bytes).to_hex();
    name.truncate(24);
    name
}
