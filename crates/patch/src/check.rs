//! Checks a patch against a tree as a whole and plans the file changes. Each change sees the effect
//! of those before it. Nothing is written here, so no byte is written before the last line is known
//! to fit.

use std::collections::{BTreeMap, HashMap};

use checkrein_core::digest::Digest;

use crate::file_tree::{FileTreeReader, PathEntryKind};
use crate::hunks::{self, HunkMatchDialect};
use crate::parsed_patch::{ParsedPatch, PatchFileChange, PatchFileSection, PatchFormat};
use crate::plan::{
    FileAction, FileActionForDisplay, PatchPlan, PlannedFileChange, PlannedFileContent,
};
use crate::refusal::{PatchRefusal, PatchRefusalCause};
use crate::tree_path::{self, PathBelowRoot};
use crate::update_chunks;

/// Most links that are followed on the way to one file.
const MAX_LINKS: usize = 40;
/// Longest path in bytes, as systems bound it, and most names in it.
const MAX_PATH_BYTES: usize = 4096;
const MAX_PATH_DEPTH: usize = 512;
/// Refusals after which the check stops.
const MAX_REFUSALS: usize = 16;
/// Most bytes of files that one patch may concern, counted once for each change.
const MAX_TOTAL_BYTES: usize = 256 << 20;

/// Checks a patch whose relative paths begin at `base`.
///
/// # Errors
/// The reasons why it is not applied, file by file, with a bounded number for each file.
pub fn plan_patch_against_tree(
    patch: &ParsedPatch,
    tree: &dyn FileTreeReader,
    base: &PathBelowRoot,
    fit: HunkMatchDialect,
) -> Result<PatchPlan, Vec<PatchRefusal>> {
    let mut check = PatchPlanner {
        tree,
        base,
        fit,
        format: patch.patch_format(),
        files: BTreeMap::new(),
        folders: HashMap::new(),
        identities: HashMap::new(),
        listed: Vec::new(),
        hazards: Vec::new(),
        bytes: 0,
    };
    let mut refusals = Vec::new();
    for change in &patch.changes {
        // Checked on after a refusal, so that an agent learns of all mistakes at once.
        if let Err(found) = check.check_and_plan_file_change(change) {
            refusals.extend(found);
        }
        if refusals.len() >= MAX_REFUSALS {
            break;
        }
    }
    if !refusals.is_empty() {
        // Hazards do not refuse a patch on their own, but help to write a refused one again.
        refusals.extend(check.hazards);
        return Err(refusals);
    }
    let mut steps = Vec::new();
    for (_, file) in check.files {
        // The patch created the file and removed it again.
        if file.before.is_none() && file.now.is_none() {
            continue;
        }
        steps.push(PlannedFileChange {
            path: file.path,
            before: file.before,
            after: file.now,
        });
    }
    Ok(PatchPlan {
        format: patch.patch_format(),
        steps,
        listed_actions: check.listed,
        hazards: check.hazards,
    })
}

/// A file that the patch touches.
struct FileTouchedByPatch {
    path: PathBelowRoot,
    before: Option<Digest>,
    identity: Option<(u64, u64)>,
    now: Option<PlannedFileContent>,
}

struct PatchPlanner<'c> {
    tree: &'c dyn FileTreeReader,
    base: &'c PathBelowRoot,
    fit: HunkMatchDialect,
    format: PatchFormat,
    /// By path; in lower case on a tree that ignores case.
    files: BTreeMap<PathBelowRoot, FileTouchedByPatch>,
    /// How many touched files exist below each folder after the changes so far.
    folders: HashMap<PathBelowRoot, usize>,
    /// Touched files by their identity (device and inode).
    identities: HashMap<(u64, u64), Vec<PathBelowRoot>>,
    listed: Vec<FileActionForDisplay>,
    hazards: Vec<PatchRefusal>,
    bytes: usize,
}

type PatchRefusalList = Vec<PatchRefusal>;

/// A path as the patch spells it, with the patch line that names it.
struct PatchPathWithLine<'s> {
    path: &'s str,
    line: usize,
}

impl PatchPathWithLine<'_> {
    fn build_patch_refusal(
        &self,
        cause: PatchRefusalCause,
        message: impl Into<String>,
    ) -> PatchRefusal {
        PatchRefusal::refusal_for_file(cause, self.path, self.line, message.into())
    }
}

impl PatchPlanner<'_> {
    fn check_and_plan_file_change(
        &mut self,
        change: &PatchFileSection,
    ) -> Result<(), PatchRefusalList> {
        let spot = PatchPathWithLine {
            path: &change.path,
            line: change.line,
        };
        match &change.kind {
            PatchFileChange::Add(content) => {
                let path = self.resolve_patch_path(&spot, true)?;
                // V4A adds a file even if one is there, as Codex does; the list of actions says
                // that it was replaced.
                let was = self.file_identity(&spot, &path)?.is_some();
                self.plan_file_write(&spot, &path, content.clone().into_bytes(), None, None)?;
                self.list_patch_file_action(FileAction::Add, &path, None, was);
            }
            PatchFileChange::Delete => {
                // The last name is not followed: a deletion means the link itself, not its target.
                let path = self.resolve_patch_path(&spot, false)?;
                if let Ok(PathEntryKind::Link(_)) = self.node_after_patch_changes(&path) {
                    return Err(vec![spot.build_patch_refusal(
                        PatchRefusalCause::Unsupported,
                        "it is a symbolic link: remove it by name in a shell",
                    )]);
                }
                // Read only to record the content that `apply` must find before it removes the
                // file.
                self.file_content_after_changes_so_far(&spot, &path)?;
                self.plan_file_removal(&path);
                self.list_patch_file_action(FileAction::Delete, &path, None, false);
            }
            PatchFileChange::Update { to, chunks } => {
                let path = self.resolve_patch_path(&spot, true)?;
                if to.is_some()
                    && matches!(
                        self.node_after_patch_changes(&self.resolve_patch_path(&spot, false)?),
                        Ok(PathEntryKind::Link(_))
                    )
                {
                    // A move would remove the link and leave the file that it names in place.
                    return Err(vec![spot.build_patch_refusal(
                        PatchRefusalCause::Unsupported,
                        "it is a symbolic link: move the file that it names, by its own name",
                    )]);
                }
                let bytes = self.file_content_after_changes_so_far(&spot, &path)?;
                // V4A chunks are compared as text. A lossy conversion would rewrite the bytes that
                // are no UTF-8.
                let text = String::from_utf8(bytes).map_err(|error| {
                    let at = error.utf8_error().valid_up_to();
                    let what = format!("the file is not UTF-8 text (byte {at})");
                    vec![spot.build_patch_refusal(PatchRefusalCause::NotText, what)]
                })?;
                let updated =
                    update_chunks::apply_update_chunks(&change.path, &text, chunks)?.into_bytes();
                self.plan_file_write_or_move(&spot, path, to.as_deref(), updated, None, false)?;
            }
            PatchFileChange::Create {
                content,
                executable,
            } => {
                let path = self.resolve_patch_path(&spot, true)?;
                if self.file_identity(&spot, &path)?.is_some() {
                    let what = "the patch makes this file, and it is there already";
                    return Err(vec![
                        spot.build_patch_refusal(PatchRefusalCause::Exists, what),
                    ]);
                }
                self.plan_file_write(
                    &spot,
                    &path,
                    content.clone().into_bytes(),
                    *executable,
                    None,
                )?;
                self.list_patch_file_action(FileAction::Add, &path, None, false);
            }
            PatchFileChange::Remove(hunks) => {
                let path = self.resolve_patch_path(&spot, true)?;
                let bytes = self.file_content_after_changes_so_far(&spot, &path)?;
                // Lines that are not in the patch would be lost with the file, so they refuse the
                // removal.
                let left = hunks::apply_hunks(&change.path, &bytes, hunks, self.fit)?;
                if !left.is_empty() && !hunks.is_empty() {
                    let what = format!(
                        "the patch removes this file, but {} bytes of it are not in the patch",
                        left.len()
                    );
                    return Err(vec![
                        spot.build_patch_refusal(PatchRefusalCause::NoMatch, what),
                    ]);
                }
                self.plan_file_removal(&path);
                self.list_patch_file_action(FileAction::Delete, &path, None, false);
            }
            PatchFileChange::Hunks {
                hunks,
                to,
                is_copy: copies,
                executable,
                creates_if_missing: makes,
            } => {
                let path = self.resolve_patch_path(&spot, true)?;
                // A plain diff does not say whether it creates a file; without old lines it may.
                if *makes && self.file_identity(&spot, &path)?.is_none() {
                    let content = hunks.iter().flat_map(|hunk| &hunk.new);
                    let content: String = content.map(String::as_str).collect();
                    self.plan_file_write(&spot, &path, content.into_bytes(), None, None)?;
                    self.list_patch_file_action(FileAction::Add, &path, None, false);
                    return Ok(());
                }
                let bytes = self.file_content_after_changes_so_far(&spot, &path)?;
                let updated = hunks::apply_hunks(&change.path, &bytes, hunks, self.fit)?;
                self.plan_file_write_or_move(
                    &spot,
                    path,
                    to.as_deref(),
                    updated,
                    *executable,
                    *copies,
                )?;
            }
        }
        Ok(())
    }

    /// Plans new content for a file, in its place or under another name.
    fn plan_file_write_or_move(
        &mut self,
        spot: &PatchPathWithLine<'_>,
        from: PathBelowRoot,
        to: Option<&str>,
        bytes: Vec<u8>,
        executable: Option<bool>,
        copies: bool,
    ) -> Result<(), PatchRefusalList> {
        let Some(to) = to else {
            self.plan_file_write(spot, &from, bytes, executable, None)?;
            self.list_patch_file_action(FileAction::Update, &from, None, false);
            return Ok(());
        };
        let target = PatchPathWithLine {
            path: to,
            line: spot.line,
        };
        let path = self.resolve_patch_path(&target, true)?;
        let there = self.file_identity(&target, &path)?;
        let key = self.case_folded_path_key(&from);
        let here = self.files.get(&key).and_then(|file| file.identity);
        // The same file under its own name, or in another case where case does not matter. It is
        // found before the write below, which would otherwise be followed by the removal of the
        // same file.
        if self.case_folded_path_key(&path) == key {
            if from != path {
                return Err(vec![target.build_patch_refusal(
                    PatchRefusalCause::SameFile,
                    "on this file system it is the file itself in another case: rename it in a shell",
                )]);
            }
            self.hazards.push(target.build_patch_refusal(
                PatchRefusalCause::SelfMove,
                "the file is moved onto itself; apply_patch would delete it: leave `*** Move to:` out",
            ));
            self.plan_file_write(spot, &from, bytes, executable, None)?;
            self.list_patch_file_action(FileAction::Update, &from, None, false);
            return Ok(());
        }
        // Another name of the same file, such as a hard link.
        if let (Some(Some(there)), Some(here)) = (there, here)
            && there == here
        {
            let what = "it is another name of the very file that is moved";
            return Err(vec![
                target.build_patch_refusal(PatchRefusalCause::SameFile, what),
            ]);
        }
        // `git apply` refuses to overwrite. V4A moves overwrite, as in Codex.
        if there.is_some() && self.format == PatchFormat::Unified {
            let what = "the patch makes this file, and it is there already";
            return Err(vec![
                target.build_patch_refusal(PatchRefusalCause::Exists, what),
            ]);
        }
        // Written before the source is removed, since the permissions come from the source.
        self.plan_file_write(&target, &path, bytes, executable, Some(&from))?;
        if !copies {
            self.plan_file_removal(&from);
        }
        let action = if copies {
            FileAction::Copy
        } else {
            FileAction::Move
        };
        self.list_patch_file_action(action, &path, Some(&from), there.is_some());
        Ok(())
    }

    /// Returns the key by which a file is tracked.
    fn case_folded_path_key(&self, path: &PathBelowRoot) -> PathBelowRoot {
        match self.tree.is_case_insensitive() {
            true => path.lowercase_path(),
            false => path.clone(),
        }
    }

    /// Records a file that the patch touches.
    fn record_patched_file(&mut self, key: PathBelowRoot, file: FileTouchedByPatch) {
        let is = file.now.is_some();
        if let Some(identity) = file.identity {
            self.identities
                .entry(identity)
                .or_default()
                .push(key.clone());
        }
        let was = self.files.insert(key.clone(), file);
        self.update_folder_file_counts(&key, was.is_some_and(|file| file.now.is_some()), is);
    }

    /// Updates the file counts of all folders above a file.
    fn update_folder_file_counts(&mut self, key: &PathBelowRoot, was: bool, is: bool) {
        if was == is {
            return;
        }
        let mut folder = key.clone();
        // The root always exists, so it needs no count.
        while folder.pop_last_component() && folder != PathBelowRoot::tree_root_path() {
            let files = self.folders.entry(folder.clone()).or_default();
            *files = match is {
                true => *files + 1,
                false => files.saturating_sub(1),
            };
        }
    }

    /// Returns what is at a path after the changes so far.
    fn node_after_patch_changes(&self, path: &PathBelowRoot) -> Result<PathEntryKind, String> {
        let key = self.case_folded_path_key(path);
        if let Some(file) = self.files.get(&key) {
            if let Some(content) = &file.now {
                return Ok(PathEntryKind::File {
                    identity: file.identity,
                    executable: content.executable == Some(true),
                });
            }
            // The patch removed the file. The tree still has it, so it must not be asked.
            return Ok(PathEntryKind::Missing);
        }
        if self.folders.get(&key).is_some_and(|files| *files > 0) {
            return Ok(PathEntryKind::Folder);
        }
        self.tree
            .file_tree_node_at_path(path)
            .map_err(|error| error.to_string())
    }

    /// Resolves a path as spelled to the place below the root that it means, through links that
    /// stay below the root. With `follow`, a link in the last name is followed, too.
    fn resolve_patch_path(
        &self,
        spot: &PatchPathWithLine<'_>,
        follow: bool,
    ) -> Result<PathBelowRoot, PatchRefusalList> {
        self.resolve_patch_path_symlinks(spot, follow)
            .map_err(|refusal| vec![refusal])
    }

    fn resolve_patch_path_symlinks(
        &self,
        spot: &PatchPathWithLine<'_>,
        follow: bool,
    ) -> Result<PathBelowRoot, PatchRefusal> {
        let bad = |what: &str| spot.build_patch_refusal(PatchRefusalCause::BadPath, what);
        if spot.path.is_empty() {
            return Err(bad("the path is empty"));
        }
        if spot.path.contains('\0') {
            return Err(bad("the path holds a NUL"));
        }
        if spot.path.len() > MAX_PATH_BYTES || spot.path.split('/').count() > MAX_PATH_DEPTH {
            return Err(bad("the path is longer than any system takes"));
        }
        let (mut at, rest) = self.split_path_into_base_and_names(spot, spot.path, self.base)?;
        // A stack of the names that remain, the next one last. A link pushes the names of its
        // target.
        let mut names: Vec<String> = rest.rev().map(str::to_owned).collect();
        if matches!(
            names.first().map(String::as_str),
            None | Some("" | "." | "..")
        ) {
            return Err(bad("the path names a folder, and a file is wanted"));
        }
        let mut links = 0;
        // Nothing exists below a missing folder, so the tree is not asked any more.
        let mut missing = false;
        while let Some(name) = names.pop() {
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    // `..` above the root: refused, even if a later name would lead back in.
                    if !at.pop_last_component() {
                        return Err(path_outside_root_refusal(spot));
                    }
                    continue;
                }
                name if !tree_path::is_single_file_name(name) => {
                    return Err(bad("the path holds what no file name may hold"));
                }
                name => at.push_path_component(name),
            }
            let node = match missing {
                true => PathEntryKind::Missing,
                false => self.node_after_patch_changes(&at).map_err(|error| {
                    spot.build_patch_refusal(PatchRefusalCause::Unreadable, error)
                })?,
            };
            missing = node == PathEntryKind::Missing;
            let is_last = names.iter().all(|name| matches!(name.as_str(), "" | "."));
            match node {
                PathEntryKind::Link(target) if follow || !is_last => {
                    // Cycles are found by this bound alone, as POSIX systems find them (`ELOOP`).
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(bad("its links go round in a circle"));
                    }
                    at.pop_last_component();
                    let (from, rest) = self.split_path_into_base_and_names(spot, &target, &at)?;
                    let rest: Vec<String> = rest.rev().map(str::to_owned).collect();
                    at = from;
                    names.extend(rest);
                }
                PathEntryKind::Folder if is_last => {
                    return Err(bad("it is a folder, and a file is wanted"));
                }
                PathEntryKind::Other => return Err(bad("it is neither a file nor a folder")),
                PathEntryKind::File { .. } | PathEntryKind::Link(_) if !is_last => {
                    return Err(bad("something on the way to it is a file"));
                }
                // The system would refuse `missing/../file`; resolving it by text would accept it.
                PathEntryKind::Missing if names.iter().any(|name| name == "..") => {
                    return Err(bad("it goes up again from a folder that is not there"));
                }
                PathEntryKind::Missing
                | PathEntryKind::Folder
                | PathEntryKind::File { .. }
                | PathEntryKind::Link(_) => {}
            }
        }
        // Checked on the resolved path, so that a link into `.git` is refused as well. A hook or a
        // config written there would be run by git.
        if at.has_dot_git_component() {
            let what = "nothing is written into a `.git` folder: git commands change it";
            return Err(spot.build_patch_refusal(PatchRefusalCause::InsideGit, what));
        }
        match at == PathBelowRoot::tree_root_path() {
            true => Err(bad("the path names a folder, and a file is wanted")),
            false => Ok(at),
        }
    }

    /// Splits a path into the folder where it begins and its names from there.
    fn split_path_into_base_and_names<'p>(
        &self,
        spot: &PatchPathWithLine<'_>,
        spelled: &'p str,
        base: &PathBelowRoot,
    ) -> Result<(PathBelowRoot, std::str::Split<'p, char>), PatchRefusal> {
        let absolute = spelled.starts_with('/') || std::path::Path::new(spelled).is_absolute();
        if !absolute {
            return Ok((base.clone(), spelled.split('/')));
        }
        // An absolute path is accepted if it begins with a spelling of the root, such as `/tmp` and
        // `/private/tmp` for the same folder.
        let below = self.tree.root_spellings().into_iter().find_map(|root| {
            let rest = spelled.strip_prefix(root.trim_end_matches(['/', '\\']))?;
            rest.strip_prefix(['/', std::path::MAIN_SEPARATOR])
        });
        match below {
            Some(below) => Ok((PathBelowRoot::tree_root_path(), below.split('/'))),
            None => Err(path_outside_root_refusal(spot)),
        }
    }

    /// Returns the identity of the file at this path, if there is a file; the inner `None` is a
    /// file whose system reports no identity.
    fn file_identity(
        &self,
        spot: &PatchPathWithLine<'_>,
        path: &PathBelowRoot,
    ) -> Result<Option<Option<(u64, u64)>>, PatchRefusalList> {
        match self.node_after_patch_changes(path) {
            Ok(PathEntryKind::File { identity, .. }) => Ok(Some(identity)),
            Ok(_) => Ok(None),
            Err(error) => Err(vec![
                spot.build_patch_refusal(PatchRefusalCause::Unreadable, error),
            ]),
        }
    }

    /// Returns the content of a file after the changes so far, and tracks the file from here on.
    fn file_content_after_changes_so_far(
        &mut self,
        spot: &PatchPathWithLine<'_>,
        path: &PathBelowRoot,
    ) -> Result<Vec<u8>, PatchRefusalList> {
        let key = self.case_folded_path_key(path);
        if !self.files.contains_key(&key) {
            let identity = match self.file_identity(spot, path)? {
                Some(identity) => identity,
                None => {
                    return Err(vec![spot.build_patch_refusal(
                        PatchRefusalCause::Missing,
                        "there is no such file",
                    )]);
                }
            };
            let bytes = self.read_patch_target_file(spot, path)?;
            let touched = FileTouchedByPatch {
                path: path.clone(),
                before: Some(Digest::hash_bytes(&bytes)),
                identity,
                now: Some(PlannedFileContent {
                    bytes,
                    executable: None,
                    permissions_from: Some(path.clone()),
                }),
            };
            self.record_patched_file(key.clone(), touched);
        }
        // `None` only if an earlier change of the patch has removed the file.
        let now = self.files.get(&key).and_then(|file| file.now.as_ref());
        match now {
            // Counted for each change: many changes of one large file copy it each time.
            Some(content) if self.bytes.saturating_add(content.bytes.len()) > MAX_TOTAL_BYTES => {
                let what = format!("the patch is about more than {MAX_TOTAL_BYTES} bytes of files");
                Err(vec![
                    spot.build_patch_refusal(PatchRefusalCause::Unreadable, what),
                ])
            }
            Some(content) => {
                self.bytes += content.bytes.len();
                Ok(content.bytes.clone())
            }
            None => Err(vec![spot.build_patch_refusal(
                PatchRefusalCause::Missing,
                "there is no such file any more: the patch has removed it before",
            )]),
        }
    }

    fn read_patch_target_file(
        &self,
        spot: &PatchPathWithLine<'_>,
        path: &PathBelowRoot,
    ) -> Result<Vec<u8>, PatchRefusalList> {
        self.tree.read_file(path).map_err(|error| {
            vec![spot.build_patch_refusal(
                PatchRefusalCause::Unreadable,
                format!("the file cannot be read: {error}"),
            )]
        })
    }

    /// Plans the content of a file. A new file gets the permissions of `like`.
    fn plan_file_write(
        &mut self,
        spot: &PatchPathWithLine<'_>,
        path: &PathBelowRoot,
        bytes: Vec<u8>,
        executable: Option<bool>,
        like: Option<&PathBelowRoot>,
    ) -> Result<(), PatchRefusalList> {
        let key = self.case_folded_path_key(path);
        if !self.files.contains_key(&key) {
            let mut touched = FileTouchedByPatch {
                path: path.clone(),
                before: None,
                identity: None,
                now: None,
            };
            if let Some(identity) = self.file_identity(spot, path)? {
                touched.before = Some(Digest::hash_bytes(
                    &self.read_patch_target_file(spot, path)?,
                ));
                touched.identity = identity;
                self.refuse_file_patched_by_two_names(spot, &touched)?;
            }
            self.record_patched_file(key.clone(), touched);
        }
        let moved_from = like.and_then(|like| self.files.get(&self.case_folded_path_key(like)));
        let inherited = moved_from.and_then(|file| file.now.as_ref());
        let (like, marked) = match inherited {
            Some(content) => (content.permissions_from.clone(), content.executable),
            None => (None, None),
        };
        let mut was_there = true;
        if let Some(file) = self.files.get_mut(&key) {
            was_there = file.now.is_some();
            let was = file.now.as_ref().and_then(|content| content.executable);
            file.now = Some(PlannedFileContent {
                bytes,
                // The patch's own mode first, then that of a moved file, then an earlier change of
                // this file.
                executable: executable.or(marked).or(was),
                // An existing file keeps its own permissions.
                permissions_from: match file.before {
                    Some(_) => Some(file.path.clone()),
                    None => like,
                },
            });
        }
        self.update_folder_file_counts(&key, was_there, true);
        Ok(())
    }

    /// Refuses a file that the patch also changes under another name.
    fn refuse_file_patched_by_two_names(
        &self,
        spot: &PatchPathWithLine<'_>,
        touched: &FileTouchedByPatch,
    ) -> Result<(), PatchRefusalList> {
        let same = touched.identity.and_then(|it| self.identities.get(&it));
        let known = same.into_iter().flatten();
        let mut files = known.filter_map(|key| self.files.get(key));
        match files.find(|file| file.now.is_some()) {
            None => Ok(()),
            Some(other) => Err(vec![spot.build_patch_refusal(
                PatchRefusalCause::SameFile,
                format!(
                    "it is another name of {}, which the patch changes as well",
                    other.path
                ),
            )]),
        }
    }

    fn plan_file_removal(&mut self, path: &PathBelowRoot) {
        let key = self.case_folded_path_key(path);
        if let Some(file) = self.files.get_mut(&key) {
            let was = file.now.take().is_some();
            self.update_folder_file_counts(&key, was, false);
        }
    }

    fn list_patch_file_action(
        &mut self,
        action: FileAction,
        path: &PathBelowRoot,
        from: Option<&PathBelowRoot>,
        replaces: bool,
    ) {
        self.listed.push(FileActionForDisplay {
            action,
            path: path.to_string(),
            from: from.map(PathBelowRoot::to_string),
            replaces,
        });
    }
}

fn path_outside_root_refusal(spot: &PatchPathWithLine<'_>) -> PatchRefusal {
    spot.build_patch_refusal(
        PatchRefusalCause::OutsideRoot,
        "the path leads out of the folder that is worked in",
    )
}
