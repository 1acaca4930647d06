//! One reading of a tree: digests, what was left out, and what differs from another reading.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use checkrein_core::digest::Digest;
use checkrein_core::ids::VerifierName;
use checkrein_core::input::TreeDigests;

use super::content::{SortedPathDigests, TreeEntryDigest};
use super::globs::VerifierPathMatcher;
use super::markers::InstalledPackageMarker;
use super::walk::path_text;
use super::watch::FilesWatchedDuringCheck;
use crate::file_system::FileSystem;

/// How much does not count, so that it can be said. A folder left out is one, whatever is in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExcludedFileCounts {
    /// Files and folders that ignore files name.
    pub ignored: u32,
    /// Known cache folders.
    pub caches: u32,
    /// Files that only `outputs` name.
    pub outputs: u32,
}

/// What one verifier depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierInputDigest {
    /// Whose it is.
    pub name: VerifierName,
    /// Its subject.
    pub digest: Digest,
    /// How many files; 0 means that its `inputs` match nothing, and a verdict about nothing
    /// never grows stale.
    pub files: usize,
}

/// A tree as it was read.
#[derive(Debug)]
pub struct TreeReadResult {
    /// Digests of the whole and of each view, for the core.
    pub fact: TreeDigests,
    /// Each view, in the order in which they were asked for.
    pub views: Vec<VerifierInputDigest>,
    /// How many files count for the whole.
    pub files: usize,
    /// What does not count.
    pub left_out: ExcludedFileCounts,
    /// Files too large to be read: they count by their size and their times.
    pub unread: Vec<String>,
    /// Why the stat cache could not be saved. The reading is right all the same; the next is slower.
    pub cache_error: Option<std::io::Error>,
    leaves: SortedPathDigests,
    markers: Vec<InstalledPackageMarker>,
    selector: VerifierPathMatcher,
    file_system: Arc<dyn FileSystem>,
}

impl TreeReadResult {
    pub(crate) fn new(
        leaves: SortedPathDigests,
        markers: Vec<InstalledPackageMarker>,
        selector: VerifierPathMatcher,
        left_out: ExcludedFileCounts,
        unread: Vec<String>,
        cache_error: Option<std::io::Error>,
        file_system: Arc<dyn FileSystem>,
    ) -> Self {
        let (tree, files) = digest_tree_entries(
            leaves
                .iter()
                .filter(|leaf| selector.leaf_counts_for_whole_tree(leaf)),
        );
        let views: Vec<VerifierInputDigest> = selector
            .verifier_names()
            .map(|name| {
                let (digest, files) = if selector.covers_whole_tree(name) {
                    (tree, files)
                } else {
                    digest_tree_entries(
                        leaves
                            .iter()
                            .filter(|leaf| selector.is_verifier_input(name, leaf)),
                    )
                };
                VerifierInputDigest {
                    name: name.clone(),
                    digest,
                    files,
                }
            })
            .collect();
        // A verdict about nothing could never grow stale: it is taken to be about everything.
        let subject = |view: &VerifierInputDigest| if view.files == 0 { tree } else { view.digest };
        let subjects = views
            .iter()
            .map(|view| (view.name.clone(), subject(view)))
            .collect();
        let fact = TreeDigests {
            tree,
            subjects,
            environment: None,
            acts: None,
        };
        Self {
            fact,
            views,
            files,
            left_out,
            unread,
            cache_error,
            leaves,
            markers,
            selector,
            file_system,
        }
    }

    /// The files of one verifier's view that changed between this reading and a `later` one, or were written or
    /// replaced and hold the same: somebody may have seen those otherwise meanwhile.
    pub fn changed_or_rewritten_paths(
        &self,
        later: &TreeReadResult,
        view: &VerifierName,
    ) -> Vec<String> {
        let is_rewritten = |one: &TreeEntryDigest<'_>, other: &TreeEntryDigest<'_>| {
            one.stamp != other.stamp && self.selector.is_verifier_input(view, one)
        };
        self.differing_paths(later, Some(view), is_rewritten)
    }

    /// Watches these files for being otherwise than in this reading.
    pub fn watch_files(&self, root: &Path, paths: &[String]) -> FilesWatchedDuringCheck {
        let named = |leaf: &TreeEntryDigest<'_>| paths.contains(&path_text(leaf.path));
        FilesWatchedDuringCheck::new(
            Arc::clone(&self.file_system),
            root,
            self.leaves.iter().filter(named),
        )
    }

    /// Marks of installed packages and of `.env` files that do not count.
    pub fn packages_digest(&self) -> Digest {
        let parts = self
            .markers
            .iter()
            .flat_map(|InstalledPackageMarker { path, digest }| {
                [path.as_bytes(), &digest.as_bytes()[..]]
            });
        Digest::hash_parts(parts)
    }

    /// The marks that are others in a `later` reading.
    pub fn changed_package_markers(&self, later: &TreeReadResult) -> Vec<String> {
        let only_in =
            |these: &[InstalledPackageMarker], those: &[InstalledPackageMarker]| -> Vec<String> {
                let changed = these.iter().filter(|mark| !those.contains(mark));
                changed.map(|mark| mark.path.clone()).collect()
            };
        let mut changed = only_in(&self.markers, &later.markers);
        changed.extend(only_in(&later.markers, &self.markers));
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// The paths that came, went or changed between this reading and a `later` one, sorted: of
    /// one verifier's view, or of the whole tree.
    pub fn changed_paths_between_readings(
        &self,
        later: &TreeReadResult,
        view: Option<&VerifierName>,
    ) -> Vec<String> {
        self.differing_paths(later, view, |_, _| false)
    }

    /// Those, and the ones that hold the same and of which this holds.
    fn differing_paths(
        &self,
        later: &TreeReadResult,
        view: Option<&VerifierName>,
        differs: impl Fn(&TreeEntryDigest<'_>, &TreeEntryDigest<'_>) -> bool,
    ) -> Vec<String> {
        let about_all = |name: &VerifierName| {
            self.views
                .iter()
                .any(|view| view.name == *name && view.files == 0)
        };
        let counts = |leaf: &TreeEntryDigest<'_>| match view {
            Some(name) if !about_all(name) => self.selector.is_verifier_input(name, leaf),
            Some(_) | None => self.selector.leaf_counts_for_whole_tree(leaf),
        };
        let mut changed = Vec::new();
        let mut ours = self.leaves.iter().peekable();
        let mut theirs = later.leaves.iter().peekable();
        loop {
            let leaf = match (ours.peek(), theirs.peek()) {
                (None, None) => return changed,
                (Some(_), None) => ours.next(),
                (None, Some(_)) => theirs.next(),
                (Some(one), Some(other)) => match one.path.cmp(other.path) {
                    Ordering::Less => ours.next(),
                    Ordering::Greater => theirs.next(),
                    Ordering::Equal => {
                        let Some((one, other)) = ours.next().zip(theirs.next()) else {
                            return changed;
                        };
                        if one.digest == other.digest {
                            if differs(&one, &other) {
                                changed.push(path_text(one.path));
                            }
                            continue;
                        }
                        Some(one)
                    }
                },
            };
            if let Some(leaf) = leaf.filter(|leaf| counts(leaf)) {
                changed.push(path_text(leaf.path));
            }
        }
    }
}

/// The digest of these, and how many of them are files.
fn digest_tree_entries<'a>(leaves: impl Iterator<Item = TreeEntryDigest<'a>>) -> (Digest, usize) {
    let mut files = 0;
    let mut hasher = blake3::Hasher::new();
    // Hashed in large pieces, which takes a tenth of the time of small ones.
    let mut piece: Vec<u8> = Vec::with_capacity(PIECE + PIECE / 4);
    for leaf in leaves {
        files += usize::from(leaf.is_file);
        for part in [leaf.path, leaf.digest.as_bytes().as_slice()] {
            piece.extend_from_slice(&(part.len() as u64).to_le_bytes());
            piece.extend_from_slice(part);
        }
        if piece.len() >= PIECE {
            hasher.update(&piece);
            piece.clear();
        }
    }
    hasher.update(&piece);
    (Digest::from_bytes(*hasher.finalize().as_bytes()), files)
}

/// See [`digest_tree_entries`].
const PIECE: usize = 64 * 1024;
