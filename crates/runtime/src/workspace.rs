//! Where a session works: the tree it is about, and the folder that remembers.

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
    ExcludedFileCounts, PackedNameSet, TreeReadLimits, TreeReadResult, TreeReader, TreeReaderError,
    VerifierGlobs, git_tracked_files,
};

use crate::delivery::Patience;
use crate::printed::printed_into;
use crate::system::{RealSystem, System};
use crate::{environment, run_environment, whole};

/// At a prompt the tree is read only as long as nobody notices.
pub(crate) const PROMPT_LIMIT: Duration = Duration::from_secs(2);

/// Longer a list of tracked files is not believed.
const LARGEST_LIST: u64 = 256 << 20;

/// Begins a list that is not known to be whole. No other list begins so: no name is empty.
const UNKNOWN: u8 = b'\0';

/// The files that count whatever ignore files say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracked {
    /// Those that are known.
    pub(crate) names: Arc<PackedNameSet>,
    /// Why there may be more, and what to do about it.
    pub(crate) unknown: Option<String>,
}

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
    /// The machine.
    pub system: Arc<dyn System>,
}

impl Place {
    /// A folder, with the environment of this process and a state folder that goes with it.
    pub fn here(root: &Path) -> Self {
        Self {
            state: std::env::temp_dir().join(format!("checkrein-{}", std::process::id())),
            env: Arc::new(std::env::vars_os().collect()),
            root: root.canonicalize().unwrap_or_else(|_| root.to_owned()),
            addresses: true,
            system: Arc::new(RealSystem),
        }
    }

    /// The environment in which models are asked.
    pub fn models(&self) -> Cow<'_, BTreeMap<OsString, OsString>> {
        match self.addresses {
            true => Cow::Borrowed(&self.env),
            false => Cow::Owned(checkrein_verifiers::without_endpoint_variables(&self.env)),
        }
    }

    /// Takes down which files are tracked now: they count from here on, whatever
    /// ignore files say later. If that cannot be found out within `limit`, what is known from
    /// before counts, and that it is not all is taken down too.
    pub(crate) fn begin_task(&self, session: &SessionId, limit: Duration) -> Tracked {
        let tracked = self.tracked_now(limit);
        let file = self.tracked_file(session);
        let before = whole::read(&file, LARGEST_LIST).ok().flatten();
        // Nearly always nothing has changed, and there may be hundreds of thousands.
        if tracked.unknown.is_none()
            && before.as_deref() == Some(tracked.names.nul_separated_names().as_bytes())
        {
            return tracked;
        }
        let before = before.map(names_in).unwrap_or_default();
        let names = match tracked.unknown {
            None => with_those_of_an_index_that_is_gone(tracked.names, &before),
            Some(_) => Arc::new(before),
        };
        self.take_down(session, Tracked { names, ..tracked })
    }

    /// Whether it could not be found out, when the session's newest task began, nor since, which
    /// files git tracks: those that match an ignore rule may be missed then.
    pub fn tracked_unknown(&self, session: &SessionId) -> bool {
        self.taken_down(session)
            .is_some_and(|tracked| tracked.unknown.is_some())
    }

    fn tracked_now(&self, limit: Duration) -> Tracked {
        match git_tracked_files(&self.root, &self.env, limit) {
            Ok(names) => Tracked {
                names: Arc::new(names),
                unknown: None,
            },
            Err(error) => Tracked {
                names: Arc::default(),
                unknown: Some(why_unknown(&error)),
            },
        }
    }

    fn take_down(&self, session: &SessionId, tracked: Tracked) -> Tracked {
        let mut text = String::new();
        if tracked.unknown.is_some() {
            text.push(char::from(UNKNOWN));
        }
        text.push_str(tracked.names.nul_separated_names());
        // Without the list ignore files decide: less is seen, nothing wrong is claimed.
        let file = self.tracked_file(session);
        let _ = file.parent().map_or(Ok(()), create_private_folder);
        let fresh = file.with_extension(std::process::id().to_string());
        if write_private_file(&fresh, text.as_bytes()).is_ok() {
            let _ = std::fs::rename(&fresh, &file);
        }
        tracked
    }

    fn taken_down(&self, session: &SessionId) -> Option<Tracked> {
        let bytes = whole::read(&self.tracked_file(session), LARGEST_LIST);
        let bytes = bytes.ok()??;
        let unknown = bytes.starts_with(&[UNKNOWN]);
        Some(Tracked {
            names: Arc::new(names_in(bytes)),
            unknown: unknown
                .then(|| "the git index could not be read when the task began".to_owned()),
        })
    }

    /// Reads the tree, with the part that each verifier depends on. Where it is not known which
    /// files count, its digests are like those of no tree that is known: no evidence is about it.
    pub(crate) fn read(
        &self,
        tracked: &Tracked,
        policy: &Policy,
        limits: TreeReadLimits<'_>,
    ) -> Result<TreeReadResult, TreeReaderError> {
        let views: Vec<VerifierGlobs<'_>> = policy
            .verifiers
            .iter()
            .filter(|spec| spec.subject == VerdictSubjectKind::Tree)
            .map(|spec| VerifierGlobs {
                name: &spec.name,
                inputs: &spec.inputs,
                outputs: &spec.outputs,
            })
            .collect();
        // What a verifier names is judged, whatever ignore files say of it.
        let named: BTreeSet<String> = policy
            .verifiers
            .iter()
            .filter_map(|spec| Some((checkrein_verifiers::find_verifier_kind(&spec.kind)?, spec)))
            .flat_map(|(kind, spec)| kind.files_named_in_definition(&spec.definition))
            .collect();
        let reader = TreeReader {
            files: Arc::<dyn System>::clone(&self.system),
            root: self.root.clone(),
            cache_file: self.cache_file(),
            always_included: Arc::clone(&tracked.names),
            also_included: named,
            excluded_folder: Some(self.state.clone()),
            own_output_files: printed_into(&self.state, &self.env),
        };
        let mut reading = reader.read_tree(&views, limits)?;
        self.keep_large_files(&reading.unread);
        if tracked.unknown.is_some() {
            reading.fact = of_unknown_files(reading.fact);
        }
        let packages = reading.packages_digest();
        reading.fact.environment = Some(run_environment::of(self, policy, packages));
        Ok(reading)
    }

    /// The files tracked when the session's task began; those tracked now without one. What could
    /// not be read then is read now, so that who mends it can go on.
    pub(crate) fn tracked(&self, session: Option<&SessionId>, patience: Patience<'_>) -> Tracked {
        let limit = patience.for_a_question(&*self.system);
        let Some(session) = session else {
            return self.tracked_now(limit);
        };
        let Some(mut tracked) = self.taken_down(session) else {
            return self.begin_task(session, limit);
        };
        if tracked.unknown.is_some() {
            let now = self.tracked_now(limit);
            tracked.names = Arc::new(tracked.names.with_more_names(now.names.iter()));
            tracked.unknown = now.unknown;
            if tracked.unknown.is_none() {
                tracked = self.take_down(session, tracked);
            }
        }
        tracked
    }

    /// Removes what is known of a session beside the store.
    pub(crate) fn forget_session(&self, session: &SessionId) -> bool {
        std::fs::remove_file(self.tracked_file(session)).is_ok()
    }

    /// What is left out of the tree as it is now, for a task of this session; `None` if that cannot be
    /// told within `limit`.
    pub fn left_out(
        &self,
        session: &SessionId,
        policy: &Policy,
        limit: Duration,
    ) -> Option<ExcludedFileCounts> {
        let tracked = self.taken_down(session);
        let tracked = tracked.unwrap_or_else(|| self.tracked_now(limit));
        let limits = TreeReadLimits {
            time: Some(limit),
            ..TreeReadLimits::default()
        };
        let reading = self.read(&tracked, policy, limits).ok()?;
        Some(reading.left_out)
    }

    /// Files that were too large to be read when the tree was read last.
    pub fn large_files(&self) -> Vec<String> {
        let listed = whole::read(&self.large_files_file(), whole::SMALL);
        let names = listed.ok().flatten().map(names_in);
        names
            .unwrap_or_default()
            .iter()
            .map(str::to_owned)
            .collect()
    }

    /// Only to be told of: without the list nothing is.
    fn keep_large_files(&self, names: &[String]) {
        let file = self.large_files_file();
        if names.is_empty() {
            // Nearly always it is not there.
            let _ = std::fs::remove_file(file);
            return;
        }
        let _ = file.parent().map_or(Ok(()), create_private_folder);
        let _ = write_private_file(&file, names.join("\0").as_bytes());
    }

    fn large_files_file(&self) -> PathBuf {
        self.cache_file().with_extension("large")
    }

    fn cache_file(&self) -> PathBuf {
        let name = short_name(self.root.as_os_str().as_encoded_bytes());
        self.state.join("tree").join(name)
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

/// Names as they are kept.
fn names_in(listed: Vec<u8>) -> PackedNameSet {
    let lossy = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
    let text = String::from_utf8(listed).unwrap_or_else(lossy);
    // Without the mark of a list that is not whole.
    PackedNameSet::from_nul_separated(text.strip_prefix('\0').map(str::to_owned).unwrap_or(text))
}

/// These names, with those that git tracked before and has no index for any more.
fn with_those_of_an_index_that_is_gone(
    now: Arc<PackedNameSet>,
    before: &PackedNameSet,
) -> Arc<PackedNameSet> {
    let gone = before.iter().filter(|name| !now.contains_name(name));
    let gone: Vec<&str> = gone
        .filter(|name| is_of_an_index_that_is_gone(name, &now))
        .collect();
    match gone.is_empty() {
        true => now,
        false => Arc::new(now.with_more_names(gone)),
    }
}

/// Whether a name that git tracked is not among those of now because there is no index any more that
/// could have it: that of the repository, or that of the submodule which it is in.
fn is_of_an_index_that_is_gone(name: &str, now: &PackedNameSet) -> bool {
    let is_empty = |submodule: &str| {
        let inside = format!("{submodule}/");
        let first = now.first_name_at_or_after(&inside);
        !first.is_some_and(|first| first.starts_with(&inside))
    };
    let above = name.match_indices('/').filter_map(|(at, _)| name.get(..at));
    now.is_empty()
        || above
            .into_iter()
            .any(|folder| now.contains_name(folder) && is_empty(folder))
}

/// What went wrong, and what to do about it.
fn why_unknown(error: &GitReadError) -> String {
    let source = match error.source() {
        Some(source) => format!(": {source}"),
        None => String::new(),
    };
    format!(
        "it is not known which files git tracks: {error}{source}; {}",
        error.git_error_remedy()
    )
}

/// The digests of a tree of which some files may not have been seen.
fn of_unknown_files(fact: TreeDigests) -> TreeDigests {
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

fn short_name(bytes: &[u8]) -> String {
    let mut name = Digest::hash_bytes(bytes).to_hex();
    name.truncate(24);
    name
}
