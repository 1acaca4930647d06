//! A patch against a tree, as a whole: every change sees what those before it have done, and
//! the first byte is written by nobody before the last line is known to fit.

use std::collections::{BTreeMap, HashMap};

use checkrein_core::digest::Digest;

use crate::hunks::{self, Fit};
use crate::model::{Change, Format, Patch, What};
use crate::path::{self, Within};
use crate::plan::{Action, Content, Listed, Plan, Step};
use crate::refusal::{Cause, Refusal};
use crate::tree::{Node, Tree};
use crate::update;

/// Links that are followed on the way to one file.
const MOST_LINKS: usize = 40;
/// Bytes of a path, as systems bound them, and names in it.
const LONGEST_PATH: usize = 4096;
const DEEPEST: usize = 512;
/// Refusals that are collected.
const MOST: usize = 16;
/// Bytes of files that one patch may be about, counted for each change.
const MOST_BYTES: usize = 256 << 20;

/// Checks a patch whose relative paths begin at `base`.
///
/// # Errors
/// All reasons why it is not applied, file by file; at most a handful of each file.
pub fn check(
    patch: &Patch,
    tree: &dyn Tree,
    base: &Within,
    fit: Fit,
) -> Result<Plan, Vec<Refusal>> {
    let mut check = Check {
        tree,
        base,
        fit,
        format: patch.format(),
        files: BTreeMap::new(),
        folders: HashMap::new(),
        identities: HashMap::new(),
        listed: Vec::new(),
        hazards: Vec::new(),
        bytes: 0,
    };
    let mut refusals = Vec::new();
    for change in &patch.changes {
        if let Err(found) = check.change(change) {
            refusals.extend(found);
        }
        if refusals.len() >= MOST {
            break;
        }
    }
    if !refusals.is_empty() {
        refusals.extend(check.hazards);
        return Err(refusals);
    }
    let mut steps = Vec::new();
    for (_, file) in check.files {
        // Came and went within the patch.
        if file.before.is_none() && file.now.is_none() {
            continue;
        }
        steps.push(Step {
            path: file.path,
            before: file.before,
            after: file.now,
        });
    }
    Ok(Plan {
        format: patch.format(),
        steps,
        listed: check.listed,
        hazards: check.hazards,
    })
}

/// A file that the patch touches.
struct Touched {
    path: Within,
    before: Option<Digest>,
    identity: Option<(u64, u64)>,
    now: Option<Content>,
}

struct Check<'c> {
    tree: &'c dyn Tree,
    base: &'c Within,
    fit: Fit,
    format: Format,
    /// By path, in lower case where that is one.
    files: BTreeMap<Within, Touched>,
    /// How many of the files that are there now lie below each folder.
    folders: HashMap<Within, usize>,
    /// The files by what makes them these and no others.
    identities: HashMap<(u64, u64), Vec<Within>>,
    listed: Vec<Listed>,
    hazards: Vec<Refusal>,
    bytes: usize,
}

type Refusals = Vec<Refusal>;

/// A place that a change speaks of: where it is, and how to refuse it.
struct Spot<'s> {
    spelled: &'s str,
    line: usize,
}

impl Spot<'_> {
    fn refuse(&self, cause: Cause, message: impl Into<String>) -> Refusal {
        Refusal::of_file(cause, self.spelled, self.line, message.into())
    }
}

impl Check<'_> {
    fn change(&mut self, change: &Change) -> Result<(), Refusals> {
        let spot = Spot {
            spelled: &change.path,
            line: change.line,
        };
        match &change.what {
            What::Add(content) => {
                let path = self.walk(&spot, true)?;
                let was = self.file(&spot, &path)?.is_some();
                self.write(&spot, &path, content.clone().into_bytes(), None, None)?;
                self.list(Action::Add, &path, None, was);
            }
            What::Delete => {
                // The link goes, not what it names.
                let path = self.walk(&spot, false)?;
                if let Ok(Node::Link(_)) = self.look(&path) {
                    return Err(vec![spot.refuse(
                        Cause::Unsupported,
                        "it is a symbolic link: remove it by name in a shell",
                    )]);
                }
                self.content(&spot, &path)?;
                self.remove(&path);
                self.list(Action::Delete, &path, None, false);
            }
            What::Update { to, chunks } => {
                let path = self.walk(&spot, true)?;
                if to.is_some() && matches!(self.look(&self.walk(&spot, false)?), Ok(Node::Link(_)))
                {
                    // The link would go, and the file that it names stay.
                    return Err(vec![spot.refuse(
                        Cause::Unsupported,
                        "it is a symbolic link: move the file that it names, by its own name",
                    )]);
                }
                let bytes = self.content(&spot, &path)?;
                let text = String::from_utf8(bytes).map_err(|error| {
                    let at = error.utf8_error().valid_up_to();
                    let what = format!("the file is not UTF-8 text (byte {at})");
                    vec![spot.refuse(Cause::NotText, what)]
                })?;
                let updated = update::update(&change.path, &text, chunks)?.into_bytes();
                self.put(&spot, path, to.as_deref(), updated, None, false)?;
            }
            What::Create {
                content,
                executable,
            } => {
                let path = self.walk(&spot, true)?;
                if self.file(&spot, &path)?.is_some() {
                    let what = "the patch makes this file, and it is there already";
                    return Err(vec![spot.refuse(Cause::Exists, what)]);
                }
                self.write(
                    &spot,
                    &path,
                    content.clone().into_bytes(),
                    *executable,
                    None,
                )?;
                self.list(Action::Add, &path, None, false);
            }
            What::Remove(hunks) => {
                let path = self.walk(&spot, true)?;
                let bytes = self.content(&spot, &path)?;
                let left = hunks::put(&change.path, &bytes, hunks, self.fit)?;
                if !left.is_empty() && !hunks.is_empty() {
                    let what = format!(
                        "the patch removes this file, but {} bytes of it are not in the patch",
                        left.len()
                    );
                    return Err(vec![spot.refuse(Cause::NoMatch, what)]);
                }
                self.remove(&path);
                self.list(Action::Delete, &path, None, false);
            }
            What::Hunks {
                hunks,
                to,
                copies,
                executable,
                makes,
            } => {
                let path = self.walk(&spot, true)?;
                if *makes && self.file(&spot, &path)?.is_none() {
                    let content = hunks.iter().flat_map(|hunk| &hunk.new);
                    let content: String = content.map(String::as_str).collect();
                    self.write(&spot, &path, content.into_bytes(), None, None)?;
                    self.list(Action::Add, &path, None, false);
                    return Ok(());
                }
                let bytes = self.content(&spot, &path)?;
                let updated = hunks::put(&change.path, &bytes, hunks, self.fit)?;
                self.put(&spot, path, to.as_deref(), updated, *executable, *copies)?;
            }
        }
        Ok(())
    }

    /// The new content of a file, where it is or under another name.
    fn put(
        &mut self,
        spot: &Spot<'_>,
        from: Within,
        to: Option<&str>,
        bytes: Vec<u8>,
        executable: Option<bool>,
        copies: bool,
    ) -> Result<(), Refusals> {
        let Some(to) = to else {
            self.write(spot, &from, bytes, executable, None)?;
            self.list(Action::Update, &from, None, false);
            return Ok(());
        };
        let target = Spot {
            spelled: to,
            line: spot.line,
        };
        let path = self.walk(&target, true)?;
        let there = self.file(&target, &path)?;
        let key = self.key(&from);
        let here = self.files.get(&key).and_then(|file| file.identity);
        if self.key(&path) == key {
            if from != path {
                return Err(vec![target.refuse(
                    Cause::SameFile,
                    "on this file system it is the file itself in another case: rename it in a shell",
                )]);
            }
            self.hazards.push(target.refuse(
                Cause::SelfMove,
                "the file is moved onto itself; apply_patch would delete it: leave `*** Move to:` out",
            ));
            self.write(spot, &from, bytes, executable, None)?;
            self.list(Action::Update, &from, None, false);
            return Ok(());
        }
        if let (Some(Some(there)), Some(here)) = (there, here)
            && there == here
        {
            let what = "it is another name of the very file that is moved";
            return Err(vec![target.refuse(Cause::SameFile, what)]);
        }
        if there.is_some() && self.format == Format::Unified {
            let what = "the patch makes this file, and it is there already";
            return Err(vec![target.refuse(Cause::Exists, what)]);
        }
        self.write(&target, &path, bytes, executable, Some(&from))?;
        if !copies {
            self.remove(&from);
        }
        let action = if copies { Action::Copy } else { Action::Move };
        self.list(action, &path, Some(&from), there.is_some());
        Ok(())
    }

    /// What files are known by.
    fn key(&self, path: &Within) -> Within {
        match self.tree.folds_case() {
            true => path.in_lower_case(),
            false => path.clone(),
        }
    }

    /// A file comes into sight, or what it holds changes.
    fn touch(&mut self, key: Within, file: Touched) {
        let is = file.now.is_some();
        if let Some(identity) = file.identity {
            self.identities
                .entry(identity)
                .or_default()
                .push(key.clone());
        }
        let was = self.files.insert(key.clone(), file);
        self.count(&key, was.is_some_and(|file| file.now.is_some()), is);
    }

    /// Keeps count of what lies in the folders above.
    fn count(&mut self, key: &Within, was: bool, is: bool) {
        if was == is {
            return;
        }
        let mut folder = key.clone();
        while folder.pop() && folder != Within::root() {
            let files = self.folders.entry(folder.clone()).or_default();
            *files = match is {
                true => *files + 1,
                false => files.saturating_sub(1),
            };
        }
    }

    /// What stands there after the changes so far.
    fn look(&self, path: &Within) -> Result<Node, String> {
        let key = self.key(path);
        if let Some(file) = self.files.get(&key) {
            if let Some(content) = &file.now {
                return Ok(Node::File {
                    identity: file.identity,
                    executable: content.executable == Some(true),
                });
            }
            // Nothing lies in what was a file.
            return Ok(Node::Missing);
        }
        if self.folders.get(&key).is_some_and(|files| *files > 0) {
            return Ok(Node::Folder);
        }
        self.tree.look(path).map_err(|error| error.to_string())
    }

    /// From a path as it is spelled to the place it means below the root, through links that
    /// stay there. `follow`: also the link that the last name may be.
    fn walk(&self, spot: &Spot<'_>, follow: bool) -> Result<Within, Refusals> {
        self.walked(spot, follow).map_err(|refusal| vec![refusal])
    }

    fn walked(&self, spot: &Spot<'_>, follow: bool) -> Result<Within, Refusal> {
        let bad = |what: &str| spot.refuse(Cause::BadPath, what);
        if spot.spelled.is_empty() {
            return Err(bad("the path is empty"));
        }
        if spot.spelled.contains('\0') {
            return Err(bad("the path holds a NUL"));
        }
        if spot.spelled.len() > LONGEST_PATH || spot.spelled.split('/').count() > DEEPEST {
            return Err(bad("the path is longer than any system takes"));
        }
        let (mut at, rest) = self.start(spot, spot.spelled, self.base)?;
        let mut names: Vec<String> = rest.rev().map(str::to_owned).collect();
        if matches!(
            names.first().map(String::as_str),
            None | Some("" | "." | "..")
        ) {
            return Err(bad("the path names a folder, and a file is wanted"));
        }
        let mut links = 0;
        // Below what is not there nothing is.
        let mut missing = false;
        while let Some(name) = names.pop() {
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    if !at.pop() {
                        return Err(outside(spot));
                    }
                    continue;
                }
                name if !path::is_name(name) => {
                    return Err(bad("the path holds what no file name may hold"));
                }
                name => at.push(name),
            }
            let node = match missing {
                true => Node::Missing,
                false => self
                    .look(&at)
                    .map_err(|error| spot.refuse(Cause::Unreadable, error))?,
            };
            missing = node == Node::Missing;
            let is_last = names.iter().all(|name| matches!(name.as_str(), "" | "."));
            match node {
                Node::Link(target) if follow || !is_last => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(bad("its links go round in a circle"));
                    }
                    at.pop();
                    let (from, rest) = self.start(spot, &target, &at)?;
                    let rest: Vec<String> = rest.rev().map(str::to_owned).collect();
                    at = from;
                    names.extend(rest);
                }
                Node::Folder if is_last => {
                    return Err(bad("it is a folder, and a file is wanted"));
                }
                Node::Other => return Err(bad("it is neither a file nor a folder")),
                Node::File { .. } | Node::Link(_) if !is_last => {
                    return Err(bad("something on the way to it is a file"));
                }
                Node::Missing if names.iter().any(|name| name == "..") => {
                    return Err(bad("it goes up again from a folder that is not there"));
                }
                Node::Missing | Node::Folder | Node::File { .. } | Node::Link(_) => {}
            }
        }
        if at.is_in_git() {
            let what = "nothing is written into a `.git` folder: git commands change it";
            return Err(spot.refuse(Cause::InsideGit, what));
        }
        match at == Within::root() {
            true => Err(bad("the path names a folder, and a file is wanted")),
            false => Ok(at),
        }
    }

    /// Where a path begins, and its names from there.
    fn start<'p>(
        &self,
        spot: &Spot<'_>,
        spelled: &'p str,
        base: &Within,
    ) -> Result<(Within, std::str::Split<'p, char>), Refusal> {
        let absolute = spelled.starts_with('/') || std::path::Path::new(spelled).is_absolute();
        if !absolute {
            return Ok((base.clone(), spelled.split('/')));
        }
        let below = self.tree.roots().into_iter().find_map(|root| {
            let rest = spelled.strip_prefix(root.trim_end_matches(['/', '\\']))?;
            rest.strip_prefix(['/', std::path::MAIN_SEPARATOR])
        });
        match below {
            Some(below) => Ok((Within::root(), below.split('/'))),
            None => Err(outside(spot)),
        }
    }

    /// What makes the file at this path the one it is, if there is a file.
    fn file(&self, spot: &Spot<'_>, path: &Within) -> Result<Option<Option<(u64, u64)>>, Refusals> {
        match self.look(path) {
            Ok(Node::File { identity, .. }) => Ok(Some(identity)),
            Ok(_) => Ok(None),
            Err(error) => Err(vec![spot.refuse(Cause::Unreadable, error)]),
        }
    }

    /// What the file holds after the changes so far; from here on it is known.
    fn content(&mut self, spot: &Spot<'_>, path: &Within) -> Result<Vec<u8>, Refusals> {
        let key = self.key(path);
        if !self.files.contains_key(&key) {
            let identity = match self.file(spot, path)? {
                Some(identity) => identity,
                None => return Err(vec![spot.refuse(Cause::Missing, "there is no such file")]),
            };
            let bytes = self.read(spot, path)?;
            let touched = Touched {
                path: path.clone(),
                before: Some(Digest::hash_bytes(&bytes)),
                identity,
                now: Some(Content {
                    bytes,
                    executable: None,
                    like: Some(path.clone()),
                }),
            };
            self.touch(key.clone(), touched);
        }
        let now = self.files.get(&key).and_then(|file| file.now.as_ref());
        match now {
            Some(content) if self.bytes.saturating_add(content.bytes.len()) > MOST_BYTES => {
                let what = format!("the patch is about more than {MOST_BYTES} bytes of files");
                Err(vec![spot.refuse(Cause::Unreadable, what)])
            }
            Some(content) => {
                self.bytes += content.bytes.len();
                Ok(content.bytes.clone())
            }
            None => Err(vec![spot.refuse(
                Cause::Missing,
                "there is no such file any more: the patch has removed it before",
            )]),
        }
    }

    fn read(&self, spot: &Spot<'_>, path: &Within) -> Result<Vec<u8>, Refusals> {
        self.tree.read(path).map_err(|error| {
            vec![spot.refuse(
                Cause::Unreadable,
                format!("the file cannot be read: {error}"),
            )]
        })
    }

    /// `like`: the file whose permissions a new one gets.
    fn write(
        &mut self,
        spot: &Spot<'_>,
        path: &Within,
        bytes: Vec<u8>,
        executable: Option<bool>,
        like: Option<&Within>,
    ) -> Result<(), Refusals> {
        let key = self.key(path);
        if !self.files.contains_key(&key) {
            let mut touched = Touched {
                path: path.clone(),
                before: None,
                identity: None,
                now: None,
            };
            if let Some(identity) = self.file(spot, path)? {
                touched.before = Some(Digest::hash_bytes(&self.read(spot, path)?));
                touched.identity = identity;
                self.one_name(spot, &touched)?;
            }
            self.touch(key.clone(), touched);
        }
        let moved_from = like.and_then(|like| self.files.get(&self.key(like)));
        let inherited = moved_from.and_then(|file| file.now.as_ref());
        let (like, marked) = match inherited {
            Some(content) => (content.like.clone(), content.executable),
            None => (None, None),
        };
        let mut was_there = true;
        if let Some(file) = self.files.get_mut(&key) {
            was_there = file.now.is_some();
            let was = file.now.as_ref().and_then(|content| content.executable);
            file.now = Some(Content {
                bytes,
                executable: executable.or(marked).or(was),
                // What is there keeps its own permissions.
                like: match file.before {
                    Some(_) => Some(file.path.clone()),
                    None => like,
                },
            });
        }
        self.count(&key, was_there, true);
        Ok(())
    }

    /// Two names of one file cannot both be written.
    fn one_name(&self, spot: &Spot<'_>, touched: &Touched) -> Result<(), Refusals> {
        let same = touched.identity.and_then(|it| self.identities.get(&it));
        let known = same.into_iter().flatten();
        let mut files = known.filter_map(|key| self.files.get(key));
        match files.find(|file| file.now.is_some()) {
            None => Ok(()),
            Some(other) => Err(vec![spot.refuse(
                Cause::SameFile,
                format!(
                    "it is another name of {}, which the patch changes as well",
                    other.path
                ),
            )]),
        }
    }

    fn remove(&mut self, path: &Within) {
        let key = self.key(path);
        if let Some(file) = self.files.get_mut(&key) {
            let was = file.now.take().is_some();
            self.count(&key, was, false);
        }
    }

    fn list(&mut self, action: Action, path: &Within, from: Option<&Within>, replaces: bool) {
        self.listed.push(Listed {
            action,
            path: path.to_string(),
            from: from.map(Within::to_string),
            replaces,
        });
    }
}

fn outside(spot: &Spot<'_>) -> Refusal {
    spot.refuse(
        Cause::OutsideRoot,
        "the path leads out of the folder that is worked in",
    )
}
