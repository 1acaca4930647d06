//! Finds the paths in the arguments of a tool: by argument names, in lists and objects, in URLs, in
//! patch headers, and below a folder that another argument names.

use serde_json::Value;

use super::tool_names::split_tool_name_into_words;
use super::{CallStartFolder, address, command, options, patch_headers};

/// How deeply nested objects and lists are scanned.
const MAX_DEPTH: usize = 16;
/// Texts scanned per call.
const MAX_TEXTS: usize = 2_000;
/// Bytes of a text that can be JSON itself.
const MAX_JSON: usize = 1 << 20;
/// Folders, and names below them, that are joined.
const MAX_JOINED: usize = 32;

/// Names of arguments with which a call asks for a change, whatever they hold.
const CHANGE_ARGUMENTS: &[&str] = &[
    "apply",
    "autofix",
    "fix",
    "inplace",
    "replace",
    "replacement",
    "replacewith",
];

/// What was found in the arguments of one call.
#[derive(Debug, Default)]
pub(super) struct ToolArgumentPathScan {
    /// Paths, by the names of their arguments.
    pub(super) named: Vec<String>,
    /// Those paths from which something is copied or moved.
    pub(super) sources: Vec<String>,
    /// The places for a result.
    pub(super) outputs: Vec<String>,
    /// Those whose argument is only called `target` or `to`.
    targets: Vec<String>,
    /// Files of a log.
    logs: Vec<String>,
    /// Paths in the headers of patches.
    pub(super) patched: Vec<String>,
    /// Paths in the headers of patches inside file contents.
    pub(super) patched_in_content: Vec<String>,
    /// Other texts that could be paths.
    pub(super) others: Vec<String>,
    /// Headings and messages that could be paths.
    pub(super) labels: Vec<String>,
    /// There is text for a file.
    pub(super) has_content: bool,
    /// A file is opened to be written, or the call says that it changes what it finds.
    pub(super) opens_to_write: bool,
    /// It is told only to check what it would change.
    pub(super) only_checks: bool,
    /// What it reads is elsewhere: a URL, or the id of something stored by another service.
    pub(super) is_fetched: bool,
    /// There was more than is scanned.
    pub(super) is_cut: bool,
    /// Folders in which the others may lie.
    pub(super) folders: Vec<String>,
    /// Folders in which a command of the call may start.
    pub(super) starts: Vec<CallStartFolder>,
    relative: Vec<String>,
    options: options::FileOptionScanner,
    texts: usize,
    /// A command stands among the arguments, and is read as one.
    skips_command: bool,
}

/// What an argument's name says about its value.
#[derive(Debug, Clone, Copy, Default)]
struct ToolArgumentRole {
    is_path: bool,
    is_source: bool,
    is_output: bool,
    is_target: bool,
    is_log: bool,
    is_folder: bool,
    /// Options for a program.
    is_options: bool,
    start: StartFolderCertainty,
    /// Text for a file, or for a person.
    is_content: bool,
    /// A heading or message for a person.
    is_label: bool,
}

/// Whether a command starts in the folder that an argument names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum StartFolderCertainty {
    #[default]
    No,
    Possible,
    Sure,
}

impl ToolArgumentPathScan {
    pub(super) fn paths_named_in_tool_arguments(args: &Value) -> Self {
        Self::scan_tool_arguments_for_paths(args, false)
    }

    /// Scans a call that runs a command. The command itself is no argument of the call, and a
    /// folder is where it starts.
    pub(super) fn scan_tool_args_beside_command(args: &Value) -> Self {
        Self::scan_tool_arguments_for_paths(args, true)
    }

    fn scan_tool_arguments_for_paths(args: &Value, runs: bool) -> Self {
        let mut found = Self {
            skips_command: runs,
            ..Self::default()
        };
        found.scan_argument_value_for_paths(args, ToolArgumentRole::default(), MAX_DEPTH);
        found.join_tool_call_folders_and_names();
        found
    }

    fn scan_argument_value_for_paths(
        &mut self,
        value: &Value,
        role: ToolArgumentRole,
        depth: usize,
    ) {
        let Some(depth) = depth.checked_sub(1) else {
            // A cut scan is reported, so that the caller can treat the call as unknown instead of
            // harmless.
            self.is_cut = true;
            return;
        };
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    if self.skips_command
                        && (command::is_command_argument_name(name)
                            || is_environment_argument_name(name))
                    {
                        continue;
                    }
                    self.note_tool_argument_about_writing(name, value);
                    let mut inner = ToolArgumentRole::role_from_tool_argument_name(name);
                    let like_a_path = name.contains(['/', '.']);
                    if role.is_path && (like_a_path || !inner.is_path && !inner.is_content) {
                        // Paths as keys, with the text as value: `{"files": {"a.rs": "text"}}`.
                        self.scan_tool_argument_for_paths(name, role, depth);
                        inner = ToolArgumentRole {
                            is_content: true,
                            ..ToolArgumentRole::default()
                        };
                    } else if like_a_path {
                        self.scan_tool_argument_for_paths(name, ToolArgumentRole::default(), depth);
                    }
                    // A nested value keeps the role of the outer name: `{"cwd": {"uri": "a"}}`.
                    if inner.start == StartFolderCertainty::No {
                        inner.start = role.start;
                    }
                    self.scan_argument_value_for_paths(value, inner, depth);
                }
            }
            Value::Array(list) => list
                .iter()
                .for_each(|value| self.scan_argument_value_for_paths(value, role, depth)),
            Value::String(text) => self.scan_tool_argument_for_paths(text, role, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn scan_tool_argument_for_paths(&mut self, text: &str, role: ToolArgumentRole, depth: usize) {
        self.texts += 1;
        if self.texts > MAX_TEXTS {
            self.is_cut = true;
            return;
        }
        let is_long = text.contains('\n');
        if role.is_content {
            self.has_content |= !text.is_empty();
            if is_long {
                self.patched_in_content
                    .extend(patch_headers::patched_paths(text));
            }
            return;
        }
        if is_long {
            self.patched.extend(patch_headers::patched_paths(text));
        }
        // Some agents send nested arguments as JSON in a string. The text itself still counts as a
        // possible path below.
        let nested = text.trim_start().starts_with(['{', '[']) && text.len() <= MAX_JSON;
        if nested && let Ok(value) = serde_json::from_str::<Value>(text) {
            self.scan_argument_value_for_paths(&value, role, depth);
        }
        if role.is_options {
            let said = self.options.file_effects_of_options(text);
            said.into_iter()
                .for_each(|said| self.note_option_effect_on_files(said));
        }
        self.is_fetched |= address::is_remote_url(text);
        self.note_call_start_folder(text, role.start);
        // A file name may contain a newline, and a text may be a list of names, so both readings
        // count.
        if role.is_path && text.trim().contains('\n') {
            let lines = text.lines().take(MAX_JOINED);
            for text in std::iter::once(text).chain(lines) {
                for path in address::local_paths_of_path_or_url(text) {
                    self.add_tool_argument_path(path, role);
                }
            }
            return;
        }
        if text.trim().contains('\n') {
            return;
        }
        for path in address::local_paths_of_path_or_url(text.trim()) {
            self.add_tool_argument_path(path, role);
        }
    }

    fn add_tool_argument_path(&mut self, path: String, role: ToolArgumentRole) {
        if role.is_output {
            push_unique(&mut self.outputs, &path);
        }
        if role.is_target {
            push_unique(&mut self.targets, &path);
        }
        if role.is_log {
            push_unique(&mut self.logs, &path);
        }
        if role.is_folder {
            push_unique(&mut self.folders, &path);
        }
        // The folder where a command starts is not a file that its tool writes.
        if self.skips_command && role.start != StartFolderCertainty::No {
            return;
        }
        let is_words = path.contains(char::is_whitespace);
        if role.is_label {
            if !is_words {
                push_unique(&mut self.labels, &path);
            }
            return;
        }
        if !role.is_path {
            // Text with blanks under an unknown name is for a person or a search, not a path.
            if role.is_folder || !is_words {
                push_unique(&mut self.others, &path);
            }
            return;
        }
        push_unique(&mut self.named, &path);
        if role.is_source {
            push_unique(&mut self.sources, &path);
        }
        if !role.is_folder && !path.starts_with('/') {
            push_unique(&mut self.relative, &path);
        }
    }

    /// Notes what an argument says about the call as a whole.
    fn note_tool_argument_about_writing(&mut self, name: &str, value: &Value) {
        let joined = split_tool_name_into_words(name).concat();
        let text = value.as_str().unwrap_or("");
        if matches!(joined.as_str(), "mode" | "openmode" | "flag" | "flags") {
            let text = text.to_ascii_lowercase();
            // Modes of `open`: `w`, `ab`, `r+`.
            let letters = text.replace(['b', 't'], "");
            self.opens_to_write |= ["write", "append"].iter().any(|word| text.contains(word))
                || matches!(
                    letters.as_str(),
                    "w" | "w+" | "a" | "a+" | "r+" | "rw" | "x" | "x+"
                );
        }
        let is_said =
            !matches!(value, Value::Null | Value::Bool(false)) && value.as_str() != Some("");
        self.opens_to_write |= CHANGE_ARGUMENTS.contains(&joined.as_str()) && is_said;
        if *value == Value::Bool(true)
            && let Some(said) =
                options::fix_or_check_only_by_option_name(&split_tool_name_into_words(name))
        {
            self.note_option_effect_on_files(said);
        }
        self.is_fetched |= KEPT_BY_OTHERS.contains(&joined.as_str()) && !value.is_null();
    }

    /// Notes what options say.
    fn note_option_effect_on_files(&mut self, said: options::OptionEffectOnFiles) {
        match said {
            options::OptionEffectOnFiles::ChangesFiles => self.opens_to_write = true,
            options::OptionEffectOnFiles::OnlyChecks => self.only_checks = true,
            options::OptionEffectOnFiles::WritesResultTo(path) => {
                push_unique(&mut self.outputs, &path)
            }
        }
    }

    fn note_call_start_folder(&mut self, text: &str, start: StartFolderCertainty) {
        let path = address::local_paths_of_path_or_url(text.trim())
            .into_iter()
            .next();
        // A shell may expand such a folder, so where it lies is known only at run time.
        let known = path.filter(|path| !path.contains(['$', '`']));
        let folder = match (start, known) {
            (StartFolderCertainty::No, _) => return,
            (_, _) if text.trim().is_empty() => return,
            (StartFolderCertainty::Sure, Some(path)) => CallStartFolder::Named(path),
            (StartFolderCertainty::Possible, Some(path)) => CallStartFolder::Possible(path),
            (StartFolderCertainty::Sure, None) => CallStartFolder::Unknown,
            // An argument that may mean something else must not make every call's folder unknown.
            (StartFolderCertainty::Possible, None) => return,
        };
        if !self.starts.contains(&folder) {
            self.starts.push(folder);
        }
    }

    /// Returns the paths to which a reading tool writes its result. The second of two compared
    /// things is not one, nor is a log that is being read.
    pub(super) fn paths_written_by_reading_tool(
        &self,
        compares: bool,
        reads_logs: bool,
    ) -> Vec<String> {
        let targets = self.targets.iter().filter(|_| !compares);
        let logs = self.logs.iter().filter(|_| !reads_logs);
        self.outputs
            .iter()
            .chain(targets)
            .chain(logs)
            .cloned()
            .collect()
    }

    /// Joins names with the folders that other arguments name.
    fn join_tool_call_folders_and_names(&mut self) {
        for folder in self.folders.iter().take(MAX_JOINED) {
            for name in self.relative.iter().take(MAX_JOINED) {
                let joined = format!("{}/{name}", folder.trim_end_matches('/'));
                if self.sources.contains(name) {
                    push_unique(&mut self.sources, &joined);
                }
                if self.outputs.contains(name) {
                    push_unique(&mut self.outputs, &joined);
                }
                push_unique(&mut self.named, &joined);
            }
        }
        // Each folder is joined with each name, so without the bounds a hostile call could make
        // millions of paths.
        self.is_cut |= self.folders.len() > MAX_JOINED
            || !self.folders.is_empty() && self.relative.len() > MAX_JOINED;
    }
}

impl ToolArgumentRole {
    fn role_from_tool_argument_name(name: &str) -> Self {
        let words = split_tool_name_into_words(name);
        let joined = words.concat();
        let any = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        let last = words.last().map_or("", String::as_str);
        // A name such as `root` or `workspace` says where files are, not which file is meant.
        let only_folder =
            FOLDERS.contains(&joined.as_str()) || matches!(last, "cwd" | "root" | "workspace");
        let is_folder = only_folder || matches!(last, "dir" | "directory" | "folder");
        let is_path = PATHS.contains(&joined.as_str()) || PATHS.contains(&last);
        Self {
            is_path: is_path && !only_folder,
            is_source: any(&["from", "old", "source", "src"])
                || matches!(joined.as_str(), "oldpath" | "sourcepath"),
            is_output: any(OUTPUTS),
            is_target: matches!(last, "target" | "to") && !any(OUTPUTS),
            is_log: any(&["log"]) && matches!(last, "file" | "path"),
            is_folder,
            is_options: matches!(
                last,
                "args" | "arguments" | "argv" | "flags" | "options" | "opts"
            ),
            start: match STARTS.contains(&joined.as_str())
                || matches!(last, "cwd" | "dir" | "directory" | "folder")
            {
                true => StartFolderCertainty::Sure,
                false if is_folder || joined == "path" => StartFolderCertainty::Possible,
                false => StartFolderCertainty::No,
            },
            is_content: CONTENTS.contains(&joined.as_str()),
            is_label: LABELS.contains(&joined.as_str()),
        }
    }
}

fn push_unique(found: &mut Vec<String>, path: &str) {
    if !found.iter().any(|known| known == path) {
        found.push(path.to_owned());
    }
}

/// Returns the path of this file's name in that folder.
pub(super) fn folder_joined_with_base_name(folder: &str, file: &str) -> Option<String> {
    let name = file.trim_end_matches('/').rsplit('/').next()?;
    (!name.is_empty()).then(|| format!("{}/{name}", folder.trim_end_matches('/')))
}

/// Returns whether an argument of this name holds text for a file.
pub(super) fn is_content_argument(name: &str) -> bool {
    CONTENTS.contains(&split_tool_name_into_words(name).concat().as_str())
}

fn is_environment_argument_name(name: &str) -> bool {
    let joined = split_tool_name_into_words(name).concat();
    matches!(
        joined.as_str(),
        "env" | "environment" | "environmentvariables" | "envvars"
    )
}

/// Returns the words of code that can be paths. What the code does with them cannot be read.
pub(super) fn path_like_words_in_code(code: &str) -> Vec<String> {
    let in_a_path = |c: char| c.is_alphanumeric() || "_-./~@+".contains(c);
    code.split(|c| !in_a_path(c))
        .filter(|word| word.len() > 1)
        .map(str::to_owned)
        .take(MAX_TEXTS)
        .collect()
}

/// Words of the names of arguments that hold a place for a result.
pub(super) const OUTPUTS: &[&str] = &[
    "dest",
    "destination",
    "dump",
    "export",
    "into",
    "out",
    "outfile",
    "output",
    "save",
    "sink",
    "store",
    "tee",
    "write",
];

/// Names of arguments that hold the number of something that is kept elsewhere, and read from there.
const KEPT_BY_OTHERS: &[&str] = &[
    "artifactid",
    "assetid",
    "attachmentid",
    "blobid",
    "bucket",
    "fileid",
    "imageid",
    "objectid",
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
    "filetext",
    "newsource",
    "newstr",
    "newstring",
    "newtext",
    "oldstr",
    "oldstring",
    "oldtext",
    "text",
];

/// Names of arguments that say what a call is about. A file can be named by one where none is elsewhere.
const LABELS: &[&str] = &["description", "message", "subject", "summary", "title"];
