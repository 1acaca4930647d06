//! The paths in the arguments of a tool: by the names of the arguments, in lists and objects, in
//! `file:` addresses, in the headers of patches, and below a folder that stands beside them.

use serde_json::Value;

use super::CallFolder;
use super::names::words;

/// Objects and lists inside one another that are looked into.
const MAX_DEPTH: usize = 16;
/// Texts that are looked at.
const MAX_TEXTS: usize = 2_000;
/// Bytes of a text that can be a path.
const MAX_PATH: usize = 4_096;
/// Bytes of a text that can be JSON itself.
const MAX_JSON: usize = 1 << 20;
/// Folders, and names below them, that are put together.
const MAX_JOINED: usize = 32;

/// What was found in the arguments of one call.
#[derive(Debug, Default)]
pub(super) struct FoundPaths {
    /// Paths, by the names of their arguments.
    pub(super) named: Vec<String>,
    /// Those of them from which something is copied or moved.
    pub(super) sources: Vec<String>,
    /// The places for a result.
    pub(super) outputs: Vec<String>,
    /// Paths in the headers of patches.
    pub(super) patched: Vec<String>,
    /// Other texts that could be paths.
    pub(super) others: Vec<String>,
    /// There was more than is looked at.
    pub(super) is_cut: bool,
    /// Folders in which the others may lie.
    pub(super) folders: Vec<String>,
    /// Folders in which a command of the call may start.
    pub(super) starts: Vec<CallFolder>,
    relative: Vec<String>,
    texts: usize,
}

/// What the name of an argument says of the texts in it.
#[derive(Debug, Clone, Copy, Default)]
struct ArgumentRole {
    is_path: bool,
    is_source: bool,
    is_output: bool,
    is_folder: bool,
    start: Start,
    /// Text for a file, or for a person.
    is_content: bool,
}

/// Whether a command starts in the folder that an argument names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Start {
    #[default]
    No,
    Possible,
    Sure,
}

impl FoundPaths {
    pub(super) fn of(args: &Value) -> Self {
        let mut found = Self::default();
        found.value(args, ArgumentRole::default(), MAX_DEPTH);
        found.join_folders();
        found
    }

    fn value(&mut self, value: &Value, role: ArgumentRole, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            self.is_cut = true;
            return;
        };
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    let mut inner = ArgumentRole::of(name);
                    let like_a_path = name.contains(['/', '.']);
                    if role.is_path && (like_a_path || !inner.is_path && !inner.is_content) {
                        // `{"files": {"a.rs": "text"}}`
                        self.text(name, role, depth);
                        inner = ArgumentRole {
                            is_content: true,
                            ..ArgumentRole::default()
                        };
                    } else if like_a_path {
                        self.text(name, ArgumentRole::default(), depth);
                    }
                    // `{"cwd": {"uri": "a"}}`
                    if inner.start == Start::No {
                        inner.start = role.start;
                    }
                    self.value(value, inner, depth);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| self.value(value, role, depth)),
            Value::String(text) => self.text(text, role, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str, role: ArgumentRole, depth: usize) {
        self.texts += 1;
        if self.texts > MAX_TEXTS {
            self.is_cut = true;
            return;
        }
        if role.is_content {
            return;
        }
        if text.contains('\n') {
            self.patched.extend(patched(text));
        }
        let nested = text.trim_start().starts_with(['{', '[']) && text.len() <= MAX_JSON;
        if nested && let Ok(value) = serde_json::from_str::<Value>(text) {
            self.value(&value, role, depth);
        }
        self.start(text, role.start);
        let Some(path) = path(text) else { return };
        if role.is_output {
            keep(&mut self.outputs, &path);
        }
        if role.is_folder {
            keep(&mut self.folders, &path);
        }
        if !role.is_path {
            // Words for a person, or for a search, are no path.
            if role.is_folder || !path.contains(char::is_whitespace) {
                keep(&mut self.others, &path);
            }
            return;
        }
        keep(&mut self.named, &path);
        if role.is_source {
            keep(&mut self.sources, &path);
        }
        if !role.is_folder && !path.starts_with('/') {
            keep(&mut self.relative, &path);
        }
    }

    fn start(&mut self, text: &str, start: Start) {
        let path = path(text);
        let known = path.filter(|path| !path.contains(['$', '`']));
        let folder = match (start, known) {
            (Start::No, _) => return,
            (_, _) if text.trim().is_empty() => return,
            (Start::Sure, Some(path)) => CallFolder::Named(path),
            (Start::Possible, Some(path)) => CallFolder::Possible(path),
            (Start::Sure, None) => CallFolder::Unknown,
            (Start::Possible, None) => return,
        };
        if !self.starts.contains(&folder) {
            self.starts.push(folder);
        }
    }

    /// A name below a folder that another argument gives.
    fn join_folders(&mut self) {
        for folder in self.folders.iter().take(MAX_JOINED) {
            for name in self.relative.iter().take(MAX_JOINED) {
                let joined = format!("{}/{name}", folder.trim_end_matches('/'));
                if self.sources.contains(name) {
                    keep(&mut self.sources, &joined);
                }
                if self.outputs.contains(name) {
                    keep(&mut self.outputs, &joined);
                }
                keep(&mut self.named, &joined);
            }
        }
        self.is_cut |= self.folders.len() > MAX_JOINED
            || !self.folders.is_empty() && self.relative.len() > MAX_JOINED;
    }
}

impl ArgumentRole {
    fn of(name: &str) -> Self {
        let words = words(name);
        let joined = words.concat();
        let any = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        let last = words.last().map_or("", String::as_str);
        let only_folder =
            FOLDERS.contains(&joined.as_str()) || matches!(last, "cwd" | "root" | "workspace");
        let is_folder = only_folder || matches!(last, "dir" | "directory" | "folder");
        let is_path = PATHS.contains(&joined.as_str()) || PATHS.contains(&last);
        Self {
            is_path: is_path && !only_folder,
            is_source: any(&["from", "old", "source", "src"])
                || matches!(joined.as_str(), "oldpath" | "sourcepath"),
            is_output: any(&["dest", "destination", "export", "out", "output", "save"]),
            is_folder,
            start: match STARTS.contains(&joined.as_str())
                || matches!(last, "cwd" | "dir" | "directory" | "folder")
            {
                true => Start::Sure,
                false if is_folder || joined == "path" => Start::Possible,
                false => Start::No,
            },
            is_content: CONTENTS.contains(&joined.as_str()),
        }
    }
}

fn keep(found: &mut Vec<String>, path: &str) {
    if !found.iter().any(|known| known == path) {
        found.push(path.to_owned());
    }
}

/// This file in that folder.
pub(super) fn inside(folder: &str, file: &str) -> Option<String> {
    let name = file.trim_end_matches('/').rsplit('/').next()?;
    (!name.is_empty()).then(|| format!("{}/{name}", folder.trim_end_matches('/')))
}

/// The path that a text is, or that a `file:` address in it means. An address of another scheme is
/// no file of this machine.
fn path(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_PATH || text.contains(['\n', '\0']) {
        return None;
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return Some(text.to_owned());
    };
    if scheme.eq_ignore_ascii_case("file") {
        let rest = rest.split(['?', '#']).next().unwrap_or(rest);
        let place = match rest.strip_prefix("//") {
            // A host comes first, and is this one.
            Some(place) => place.get(place.find('/').unwrap_or(0)..)?,
            None => rest,
        };
        return decoded(place).filter(|place| !place.is_empty());
    }
    (!rest.starts_with("//")).then(|| text.to_owned())
}

/// `%2E` is a dot.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        match (byte, digit(ahead.next()), digit(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).ok()?);
                rest = ahead;
            }
            (byte, _, _) => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// The paths in the headers of a patch.
fn patched(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let path = PATCHED.iter().find_map(|head| line.strip_prefix(head))?;
        Some(path.trim().to_owned())
    })
}

/// How the lines of a patch begin that name a file.
const PATCHED: &[&str] = &[
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
    "+++ b/",
];

/// Names of arguments that hold a path, and last words of longer names, without case and `_`.
const PATHS: &[&str] = &[
    "absolutepath",
    "dest",
    "destination",
    "destinationpath",
    "dir",
    "directory",
    "dst",
    "file",
    "filename",
    "filepath",
    "files",
    "folder",
    "newpath",
    "notebookpath",
    "oldpath",
    "path",
    "paths",
    "relative",
    "relativepath",
    "source",
    "sourcepath",
    "src",
    "targetfile",
    "targetpath",
    "uri",
    "uris",
];

/// Names of arguments that hold a folder in which the others lie, and often no path at all.
const FOLDERS: &[&str] = &[
    "base",
    "basedir",
    "basepath",
    "parent",
    "parentdir",
    "parentpath",
    "project",
    "projectpath",
    "repo",
    "repopath",
    "rootpath",
    "workdir",
    "workingdirectory",
    "workspaceroot",
];

/// Names of arguments that hold the folder in which a command starts.
const STARTS: &[&str] = &[
    "chdir",
    "directorypath",
    "dirpath",
    "folderpath",
    "startin",
    "workdir",
    "workingdir",
    "workingdirectory",
];

/// Names of arguments that hold text for a file.
const CONTENTS: &[&str] = &[
    "body",
    "content",
    "contents",
    "description",
    "filetext",
    "message",
    "newsource",
    "newstr",
    "newstring",
    "newtext",
    "oldstr",
    "oldstring",
    "oldtext",
    "text",
    "title",
];
