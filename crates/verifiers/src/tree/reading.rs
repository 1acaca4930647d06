//! Holds one reading of a tree: its digests, what was left out, and how it differs from another
//! reading.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use checkrein_core::digest::Digest;
use checkrein_core::ids::VerifierName;
use checkrein_core::input::TreeDigests;

use super::content::{SortedPathDigests, TreeEntryDigest};
use super::globs::VerifierPathMatcher;
use super::markers::InstalledPackageMarker;
use super::walk::path_text_with_escapes;
use super::watch::FilesWatchedDuringCheck;
use crate::file_system::ReadOnlyFileSystem;

/// Counts of what was left out, for reports. A folder counts as one, whatever it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExcludedFileCounts {
    /// Ignored files and folders.
    pub ignored: u32,
    /// Known cache folders.
    pub caches: u32,
    /// Files that only `outputs` name.
    pub outputs: u32,
}

/// The part of the tree that one verifier depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierInputFilesDigest {
    /// The verifier's name.
    pub name: VerifierName,
    /// The digest of its subject.
    pub digest: Digest,
    /// Number of files. 0 means that its `inputs` match nothing; a verdict about nothing would
    /// never become stale.
    pub files: usize,
}

/// The result of reading a tree.
#[derive(Debug)]
pub struct TreeReadResult {
    /// Digests of the whole tree and of each view, for the core.
    pub fact: TreeDigests,
    /// The views, in the order in which they were asked for.
    pub views: Vec<VerifierInputFilesDigest>,
    /// Number of files that count for the whole tree.
    pub files: usize,
    /// What does not count.
    pub left_out: ExcludedFileCounts,
    /// Files too large to be read: they count by their size and times.
    pub unread: Vec<String>,
    /// Why the stat cache could not be saved. The reading is correct all the same, but the next one
    /// is slower.
    pub cache_error: Option<std::io::Error>,
    leaves: SortedPathDigests,
    markers: Vec<InstalledPackageMarker>,
    selector: VerifierPathMatcher,
    file_system: Arc<dyn ReadOnlyFileSystem>,
}

impl TreeReadResult {
    pub(crate) fn new(
        leaves: SortedPathDigests,
        markers: Vec<InstalledPackageMarker>,
        selector: VerifierPathMatcher,
        left_out: ExcludedFileCounts,
        unread: Vec<String>,
        cache_error: Option<std::io::Error>,
        file_system: Arc<dyn ReadOnlyFileSystem>,
    ) -> Self {
        let (tree, files) = digest_tree_entries(
            leaves
                .iter()
                .filter(|leaf| selector.leaf_counts_in_whole_tree_digest(leaf)),
        );
        let views: Vec<VerifierInputFilesDigest> = selector
            .verifier_names()
            .map(|name| {
                // Most verifiers have no `inputs`: they share one digest instead of hashing the
                // tree once each.
                let (digest, files) = if selector.covers_whole_tree(name) {
                    (tree, files)
                } else {
                    digest_tree_entries(
                        leaves
                            .iter()
                            .filter(|leaf| selector.is_verifier_input(name, leaf)),
                    )
                };
                VerifierInputFilesDigest {
                    name: name.clone(),
                    digest,
                    files,
                }
            })
            .collect();
        // A view that matches nothing takes the whole tree as its subject: a verdict about nothing
        // could never become stale.
        let subject =
            |view: &VerifierInputFilesDigest| if view.files == 0 { tree } else { view.digest };
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

    /// Returns the files of one verifier's view that changed between this reading and a `later`
    /// one, or that were rewritten or replaced with the same content: another process may have seen
    /// different content in between.
    pub fn paths_touched_between_readings(
        &self,
        later: &TreeReadResult,
        view: &VerifierName,
    ) -> Vec<String> {
        let is_rewritten = |one: &TreeEntryDigest<'_>, other: &TreeEntryDigest<'_>| {
            one.stamp != other.stamp && self.selector.is_verifier_input(view, one)
        };
        self.differing_paths(later, Some(view), is_rewritten)
    }

    /// Watches these files for content other than in this reading.
    pub fn file_content_watch(&self, root: &Path, paths: &[String]) -> FilesWatchedDuringCheck {
        let named = |leaf: &TreeEntryDigest<'_>| paths.contains(&path_text_with_escapes(leaf.path));
        FilesWatchedDuringCheck::new(
            Arc::clone(&self.file_system),
            root,
            self.leaves.iter().filter(named),
        )
    }

    /// Returns the digest of the markers of installed packages and ignored `.env` files.
    pub fn packages_digest(&self) -> Digest {
        let parts = self
            .markers
            .iter()
            .flat_map(|InstalledPackageMarker { path, digest }| {
                [path.as_bytes(), &digest.as_bytes()[..]]
            });
        Digest::hash_parts(parts)
    }

    /// Returns the paths of markers that differ in a `later` reading.
    pub fn changed_installed_package_markers(&self, later: &TreeReadResult) -> Vec<String> {
        let only_in =
            |these: &[InstalledPackageMarker], those: &[InstalledPackageMarker]| -> Vec<String> {
                let changed = these.iter().filter(|mark| !those.contains(mark));
                changed.map(|mark| mark.path.clone()).collect()
            };
        let mut changed = only_in(&self.markers, &later.markers);
        // Both directions: a marker that came and one that went are both changes.
        changed.extend(only_in(&later.markers, &self.markers));
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Returns the paths that came, went or changed between this reading and a `later` one, sorted.
    /// They are those of one verifier's view, or of the whole tree.
    pub fn changed_paths_between_readings(
        &self,
        later: &TreeReadResult,
        view: Option<&VerifierName>,
    ) -> Vec<String> {
        self.differing_paths(later, view, |_, _| false)
    }

    /// Returns the changed paths, and the unchanged ones for which `differs` holds.
    fn differing_paths(
        &self,
        later: &TreeReadResult,
        view: Option<&VerifierName>,
        differs: impl Fn(&TreeEntryDigest<'_>, &TreeEntryDigest<'_>) -> bool,
    ) -> Vec<String> {
        // The counterpart of `subject` above: a view without files is about the whole tree.
        let about_all = |name: &VerifierName| {
            self.views
                .iter()
                .any(|view| view.name == *name && view.files == 0)
        };
        let counts = |leaf: &TreeEntryDigest<'_>| match view {
            Some(name) if !about_all(name) => self.selector.is_verifier_input(name, leaf),
            Some(_) | None => self.selector.leaf_counts_in_whole_tree_digest(leaf),
        };
        let mut changed = Vec::new();
        // A merge of two lists that are both sorted by path.
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
                        // The digest covers the executable bit too, so a changed mode is a changed
                        // path.
                        if one.digest == other.digest {
                            if differs(&one, &other) {
                                changed.push(path_text_with_escapes(one.path));
                            }
                            continue;
                        }
                        Some(one)
                    }
                },
            };
            if let Some(leaf) = leaf.filter(|leaf| counts(leaf)) {
                changed.push(path_text_with_escapes(leaf.path));
            }
        }
    }
}

/// Returns the digest of these leaves, and how many of them are files.
fn digest_tree_entries<'a>(leaves: impl Iterator<Item = TreeEntryDigest<'a>>) -> (Digest, usize) {
    let mut files = 0;
    let mut hasher = blake3::Hasher::new();
    // Hashed in large pieces, which takes a tenth of the time of small ones.
    let mut piece: Vec<u8> = Vec::with_capacity(PIECE + PIECE / 4);
    for leaf in leaves {
        files += usize::from(leaf.is_file);
        for part in [leaf.path, leaf.digest.as_bytes().as_slice()] {
            // Each part carries its length, so that no path can be split differently to give the
            // same bytes.
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

/// Bytes that are hashed at once in [`digest_tree_entries`].
const PIECE: usize = 64 * 1024;
