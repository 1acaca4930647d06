//! Finds the patch that a script applies, where the script does little else: a heredoc or a file
//! for `apply_patch`, `git apply`, `patch`, or `checkrein patch apply`.
//!
//! Anything that runs before the patch could change the files that it is for, so then only its
//! paths are read.

use std::borrow::Cow;
use std::path::PathBuf;

use super::nested_code::{NestedCode, code_run_by_command};
use super::parse_cache::ParsedShellScriptCache;
use super::stdin::StdinSource;
use super::word::CommandWord;
use super::working_dirs::{WorkingDir, WorkingDirs};
use super::{syntax_walk, working_dirs};
use crate::effects::{self, CommandEffect, FileAccess};
use crate::rule_set::basename;

/// How deep scripts inside scripts are followed.
const MAX_DEPTH: usize = 4;

/// The program that applies a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchApplyingProgram {
    /// Codex's `apply_patch`.
    ApplyPatch,
    /// `git apply`.
    GitApply,
    /// GNU `patch`.
    Patch,
    /// `checkrein patch apply`.
    Checkrein,
}

/// Where the text of a patch is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchTextSource {
    /// In the script itself.
    Inline(String),
    /// In this file, by a path from where the script begins.
    File(String),
}

/// A patch that a script applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchApplyingCommand {
    /// The program that applies it.
    pub tool: PatchApplyingProgram,
    /// Where its text is.
    pub text: PatchTextSource,
    /// The value of `-p N`, if given.
    pub strip: Option<usize>,
    /// The folder in which the program is started. A patch file is named from there, or from the
    /// folder in which the program works.
    pub started: Option<String>,
    /// The folder in which the program works, relative to where the script begins. One with a `$`
    /// in its name is known only at run time.
    pub folder: Option<String>,
    /// Whether nothing before it can change the files that it is for.
    pub first: bool,
    /// Whether only its paths count: the program more likely works in another folder, or an option
    /// changes what fits.
    pub paths_only: bool,
}

/// Returns the patches that a script applies, as far as they can be read beforehand.
pub fn patches_in_script(
    scripts: &ParsedShellScriptCache,
    script: &str,
) -> Vec<PatchApplyingCommand> {
    let mut found = Vec::new();
    collect_patches_in_script(
        scripts,
        script,
        &working_dirs::initial_working_dirs(),
        MAX_DEPTH,
        &mut found,
    );
    found
}

/// Returns the patches that a command given as words applies; no shell reads the words.
pub fn patch_commands_in_argv<S: AsRef<str>>(words: &[S]) -> Vec<PatchApplyingCommand> {
    let words: Vec<CommandWord> = words
        .iter()
        .map(|word| CommandWord::new_literal_word(word.as_ref()))
        .collect();
    let mut found = Vec::new();
    let start = PatchCommandContext {
        stdin: &StdinSource::PlainFile,
        dirs: &working_dirs::initial_working_dirs(),
        scripts: &ParsedShellScriptCache::default(),
    };
    collect_patches_in_command(&words, &start, (&mut false, MAX_DEPTH), &mut found);
    found
}

/// What surrounds a command.
#[derive(Clone, Copy)]
struct PatchCommandContext<'a> {
    stdin: &'a StdinSource,
    dirs: &'a WorkingDirs,
    scripts: &'a ParsedShellScriptCache,
}

impl PatchCommandContext<'_> {
    /// Returns the folders in which it can work, the likeliest first: a `cd` usually succeeds.
    fn patch_folders_by_likelihood(&self) -> Vec<Option<String>> {
        let mut folders: Vec<(usize, Option<String>)> =
            self.dirs.iter().map(cd_step_count_and_folder).collect();
        folders.sort_by_key(|(steps, _)| std::cmp::Reverse(*steps));
        folders.into_iter().map(|(_, folder)| folder).collect()
    }
}

/// Returns how many `cd` steps lead to a folder, and its name.
fn cd_step_count_and_folder(dir: &WorkingDir) -> (usize, Option<String>) {
    let mut steps = Vec::new();
    let mut at = dir;
    while let Some(step) = at {
        steps.push(&step.to);
        at = &step.from;
    }
    let count = steps.len();
    let mut path: Option<PathBuf> = None;
    for word in steps.into_iter().rev() {
        let name = word.as_literal().unwrap_or(UNKNOWN_FOLDER);
        path = Some(path.unwrap_or_default().join(name));
    }
    (count, path.map(|path| path.display().to_string()))
}

/// Stands for the name of a folder that is not known.
const UNKNOWN_FOLDER: &str = "$";

fn collect_patches_in_script(
    scripts: &ParsedShellScriptCache,
    script: &str,
    dirs: &WorkingDirs,
    depth: usize,
    found: &mut Vec<PatchApplyingCommand>,
) {
    let script = &*script_without_heredoc_stderr_redirect(script);
    let read =
        syntax_walk::parse_script_into_commands(scripts, script, &StdinSource::PlainFile, dirs);
    // A script that cannot be read in full may do anything before the patch.
    if read.broken {
        return;
    }
    // A redirect that writes counts wherever it stands: its file is opened before its command
    // runs.
    let mut anything = read
        .redirected
        .iter()
        .any(|file| file.written && redirect_may_change_file(file));
    let mut before: Option<&[CommandWord]> = None;
    let from = found.len();
    for one in &read.commands {
        let words = match (&one.stdin, redirected_input_file(script)) {
            // `< FILE` feeds the one command that there is to feed.
            (StdinSource::PlainFile, Some(file)) if reads_patch_on_stdin(&one.words) => {
                rewrite_patch_redirect_as_argument(&one.words, file)
            }
            // `cat FILE | git apply` is read as if the file were named.
            (StdinSource::CommandOutput | StdinSource::Downloaded, _)
                if reads_patch_on_stdin(&one.words) =>
            {
                match before.and_then(file_shown_by_cat) {
                    Some(file) => rewrite_patch_redirect_as_argument(&one.words, file),
                    None => one.words.clone(),
                }
            }
            _ => one.words.clone(),
        };
        let place = PatchCommandContext {
            stdin: &one.stdin,
            dirs: &one.dirs,
            scripts,
        };
        collect_patches_in_command(&words, &place, (&mut anything, depth), found);
        before = Some(&one.words);
    }
    // The script handles a failure itself (`a || b`), so a patch that does not fit is no reason to
    // refuse it.
    if read.has_fallback {
        for one in found.iter_mut().skip(from) {
            one.first = false;
        }
    }
}

/// Removes `2>&1` between a heredoc's word and a pipe: the grammar takes what follows it for words
/// of the command in front. It says nothing about files.
fn script_without_heredoc_stderr_redirect(script: &str) -> Cow<'_, str> {
    let Some(at) = script.find("<<") else {
        return Cow::Borrowed(script);
    };
    let (before, rest) = script.split_at(at);
    let (line, body) = rest.split_at(rest.find('\n').unwrap_or(rest.len()));
    match line.contains(" 2>&1 |") {
        true => Cow::Owned([before, &line.replace(" 2>&1 |", " |"), body].concat()),
        false => Cow::Borrowed(script),
    }
}

/// Returns whether a redirect may change a file of the tree; `2>&1` and `/dev/null` do not.
fn redirect_may_change_file(redirected: &syntax_walk::FileRedirect) -> bool {
    let number = |text: &str| {
        text.chars()
            .all(|char| char.is_ascii_digit() || char == '-')
    };
    let path = redirected.path.as_literal();
    !path.is_some_and(|path| number(path) || path.starts_with("/dev/"))
}

/// Returns the file of `cat FILE |`.
fn file_shown_by_cat(words: &[CommandWord]) -> Option<&str> {
    match words {
        [cat, file] if cat.program_path_if_known().map(basename) == Some("cat") => {
            file.as_literal().filter(|file| !file.starts_with('-'))
        }
        _ => None,
    }
}

fn reads_patch_on_stdin(words: &[CommandWord]) -> bool {
    let program = words
        .first()
        .and_then(CommandWord::program_path_if_known)
        .map(basename);
    matches!(
        program,
        Some("apply_patch" | "applypatch" | "patch" | "git" | "checkrein")
    )
}

/// Rewrites a redirected patch as an argument: `patch < x` means `patch -i x`, and `git apply < x`
/// means `git apply x`. `apply_patch` has no such option; this form exists only in here.
fn rewrite_patch_redirect_as_argument(words: &[CommandWord], file: &str) -> Vec<CommandWord> {
    let mut words = words.to_vec();
    match words
        .first()
        .and_then(CommandWord::program_path_if_known)
        .map(basename)
    {
        Some("patch" | "apply_patch" | "applypatch") => {
            words.extend([
                CommandWord::new_literal_word("-i"),
                CommandWord::new_literal_word(file),
            ]);
        }
        Some("git" | "checkrein") => words.push(CommandWord::new_literal_word(file)),
        _ => {}
    }
    words
}

/// Returns the plain word after the only `<` of a script.
fn redirected_input_file(script: &str) -> Option<&str> {
    let (_, behind) = script.split_once('<')?;
    let word = behind.split_whitespace().next()?;
    let plain = |char: char| char.is_alphanumeric() || "/._-+".contains(char);
    (!behind.contains('<') && word.chars().all(plain)).then_some(word)
}

fn collect_patches_in_command(
    words: &[CommandWord],
    place: &PatchCommandContext<'_>,
    (anything, depth): (&mut bool, usize),
    found: &mut Vec<PatchApplyingCommand>,
) {
    let Some(program) = words
        .first()
        .and_then(CommandWord::program_path_if_known)
        .map(basename)
    else {
        // A program that is not known may change any file.
        *anything = true;
        return;
    };
    let feed = place.stdin;
    let texts: Option<Vec<&str>> = words.iter().skip(1).map(CommandWord::as_literal).collect();
    let patching = texts.as_deref().and_then(|texts| match program {
        "apply_patch" | "applypatch" => parse_apply_patch_command(texts, feed),
        "git" => parse_git_apply(texts, feed),
        "patch" => parse_gnu_patch_arguments(texts, feed),
        "checkrein" => parse_checkrein_patch_command(texts, feed),
        _ => None,
    });
    if let Some(patching) = patching {
        // The fit is checked in the likeliest folder only; for the others the paths count.
        for (at, folder) in place.patch_folders_by_likelihood().into_iter().enumerate() {
            let paths_only = at > 0 || !patching.plain;
            found.push(PatchApplyingCommand {
                tool: patching.tool,
                text: patching.text.clone(),
                strip: patching.strip,
                folder: join_optional_folders(folder.clone(), patching.folder.as_deref()),
                started: folder,
                first: !*anything && !paths_only,
                paths_only,
            });
        }
        // The patch changes files itself, so a later one is not the first.
        *anything = true;
        return;
    }
    match program {
        "cd" | "pushd" | "popd" | "echo" | "pwd" | "true" | "set" | ":" => {}
        _ => {
            let mut inner_one = false;
            for inner in code_run_by_command(program, words, feed)
                .into_iter()
                .take(8)
            {
                inner_one = true;
                match inner {
                    NestedCode::Script { text, sure: true } if depth > 0 && !*anything => {
                        collect_patches_in_script(
                            place.scripts,
                            &text,
                            place.dirs,
                            depth - 1,
                            found,
                        );
                    }
                    NestedCode::WordsFrom(at) if depth > 0 => {
                        let rest = words.get(at..).unwrap_or_default();
                        collect_patches_in_command(rest, place, (anything, depth - 1), found);
                    }
                    _ => {}
                }
            }
            // Commands that another one runs are followed for patches only, so any file may have
            // changed.
            *anything |= inner_one || !leaves_files_unchanged(program, words);
        }
    }
}

/// Returns whether a command leaves all files unchanged.
fn leaves_files_unchanged(program: &str, words: &[CommandWord]) -> bool {
    effects::command_effects(program, words, false)
        .iter()
        .all(|effect| {
            matches!(
                effect,
                CommandEffect::File(
                    FileAccess::Read
                        | FileAccess::ReadUnshown
                        | FileAccess::List
                        | FileAccess::ReadBelow,
                    _
                )
            )
        })
}

/// What a command applies, according to its words.
struct PatchInvocation {
    tool: PatchApplyingProgram,
    text: PatchTextSource,
    strip: Option<usize>,
    /// The folder that its paths start from, if an option names one.
    folder: Option<String>,
    /// Whether no option changes what fits.
    plain: bool,
}

/// Joins a folder and one that is named relative to it.
fn join_optional_folders(folder: Option<String>, named: Option<&str>) -> Option<String> {
    match (folder, named) {
        (Some(folder), Some(named)) => {
            Some(PathBuf::from(folder).join(named).display().to_string())
        }
        (folder, None) => folder,
        (None, Some(named)) => Some(named.to_owned()),
    }
}

fn stdin_patch(feed: &StdinSource) -> Option<PatchTextSource> {
    match feed {
        StdinSource::Text { text, sure: true } => Some(PatchTextSource::Inline(text.to_string())),
        StdinSource::Text { .. }
        | StdinSource::Paths(_)
        | StdinSource::Interactive
        | StdinSource::PlainFile
        | StdinSource::CommandOutput
        | StdinSource::Downloaded => None,
    }
}

fn parse_apply_patch_command(words: &[&str], feed: &StdinSource) -> Option<PatchInvocation> {
    let text = match words {
        [] => stdin_patch(feed)?,
        [text] => PatchTextSource::Inline((*text).to_owned()),
        // Only `rewrite_patch_redirect_as_argument` writes this form.
        ["-i", file] => PatchTextSource::File((*file).to_owned()),
        _ => return None,
    };
    Some(PatchInvocation {
        tool: PatchApplyingProgram::ApplyPatch,
        text,
        strip: None,
        folder: None,
        plain: true,
    })
}

/// An option that is not known clears `plain` but does not end the reading: the patch names its
/// files all the same.
fn parse_git_apply(words: &[&str], feed: &StdinSource) -> Option<PatchInvocation> {
    let (first, rest) = words.split_first()?;
    if *first != "apply" {
        return None;
    }
    if effects::is_patch_dry_run(words) {
        return None;
    }
    let (mut strip, mut folder, mut file, mut plain) = (None, None, None, true);
    for word in rest {
        match *word {
            "-v" | "--verbose" | "-q" | "--quiet" | "-" | "--index" => {}
            word if word.starts_with("-p") => strip = Some(word.get(2..)?.parse().ok()?),
            // `--whitespace=fix` changes the lines that are written.
            word if word.starts_with("--whitespace=") && !word.ends_with("fix") => {}
            word if word.starts_with("--directory=") => {
                folder = word.strip_prefix("--directory=").map(str::to_owned);
                plain = false;
            }
            word if word.starts_with('-') || file.is_some() => plain = false,
            word => file = Some(word.to_owned()),
        }
    }
    let text = match file {
        Some(file) => PatchTextSource::File(file),
        None => stdin_patch(feed)?,
    };
    Some(PatchInvocation {
        tool: PatchApplyingProgram::GitApply,
        text,
        strip,
        folder,
        plain,
    })
}

fn parse_gnu_patch_arguments(words: &[&str], feed: &StdinSource) -> Option<PatchInvocation> {
    let (mut strip, mut folder, mut file, mut plain) = (None, None, None, true);
    let named: Vec<&str> = std::iter::once("patch")
        .chain(words.iter().copied())
        .collect();
    if effects::is_patch_dry_run(&named) {
        return None;
    }
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "-i" => file = Some((*words.next()?).to_owned()),
            // In another folder the fit is not checked, only the paths are.
            "-d" => (folder, plain) = (Some((*words.next()?).to_owned()), false),
            "-s" | "--silent" | "--quiet" | "-u" | "--unified" | "-N" | "--forward" => {}
            word if word.starts_with("--strip=") => {
                strip = Some(word.strip_prefix("--strip=")?.parse().ok()?);
            }
            word if word.starts_with("-p") => strip = Some(word.get(2..)?.parse().ok()?),
            word if word.starts_with("--input=") => {
                file = Some(word.strip_prefix("--input=")?.to_owned());
            }
            word if word.starts_with("--directory=") => {
                folder = word.strip_prefix("--directory=").map(str::to_owned);
                plain = false;
            }
            _ => plain = false,
        }
    }
    let text = match file {
        Some(file) => PatchTextSource::File(file),
        None => stdin_patch(feed)?,
    };
    Some(PatchInvocation {
        tool: PatchApplyingProgram::Patch,
        text,
        // Without `-p`, GNU `patch` looks only at the last part of a path, wherever that file is.
        plain: plain && strip.is_some(),
        strip,
        folder,
    })
}

fn parse_checkrein_patch_command(words: &[&str], feed: &StdinSource) -> Option<PatchInvocation> {
    let ["patch", "apply", rest @ ..] = words else {
        return None;
    };
    let (mut folder, mut file) = (None, None);
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--json" | "-" => {}
            "--root" => folder = Some((*rest.next()?).to_owned()),
            word if word.starts_with("--root=") => {
                folder = word.strip_prefix("--root=").map(str::to_owned);
            }
            word if word.starts_with('-') || file.is_some() => return None,
            word => file = Some(word.to_owned()),
        }
    }
    let text = match file {
        Some(file) => PatchTextSource::File(file),
        None => stdin_patch(feed)?,
    };
    Some(PatchInvocation {
        tool: PatchApplyingProgram::Checkrein,
        text,
        strip: None,
        folder,
        plain: true,
    })
}

/// Returns the files that a unified diff changes by its headers, each with and without the first
/// folder of its name.
pub(super) fn paths_in_diff_headers(text: &str) -> impl Iterator<Item = &str> {
    let heads = ["+++ ", "--- ", "rename from ", "rename to ", "copy to "];
    let head = move |line| heads.iter().find_map(|head| str::strip_prefix(line, head));
    let names = text.lines().filter_map(head);
    let names = names.map(|name| name.split('\t').next().unwrap_or(name).trim());
    // With `-p1` the first folder (`a/`, `b/`) is dropped, with `-p0` it is kept.
    names
        .flat_map(|name| [Some(name), name.split_once('/').map(|(_, rest)| rest)])
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patches(script: &str) -> Vec<PatchApplyingCommand> {
        patches_in_script(&ParsedShellScriptCache::default(), script)
    }

    fn one(script: &str) -> Option<PatchApplyingCommand> {
        let mut found = patches(script);
        (found.len() == 1).then(|| found.remove(0))
    }

    #[test]
    fn heredocs_files_and_arguments() {
        let check = |script: &str, tool, text: PatchTextSource, strip, folder: Option<&str>| {
            let expected = PatchApplyingCommand {
                tool,
                text,
                strip,
                started: folder.map(str::to_owned),
                folder: folder.map(str::to_owned),
                first: true,
                paths_only: false,
            };
            assert_eq!(one(script), Some(expected), "{script}");
        };
        let here = |text: &str| PatchTextSource::Inline(text.to_owned());
        let file = |text: &str| PatchTextSource::File(text.to_owned());
        let heredoc = "apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF\n";
        let body = "*** Begin Patch\n*** End Patch\n";
        check(
            heredoc,
            PatchApplyingProgram::ApplyPatch,
            here(body),
            None,
            None,
        );
        check(
            &format!("cd sub && {heredoc}"),
            PatchApplyingProgram::ApplyPatch,
            here(body),
            None,
            Some("sub"),
        );
        check(
            "apply_patch 'x'",
            PatchApplyingProgram::ApplyPatch,
            here("x"),
            None,
            None,
        );
        check(
            "bash -lc \"apply_patch 'x'\"",
            PatchApplyingProgram::ApplyPatch,
            here("x"),
            None,
            None,
        );
        check(
            "git apply -p2 a.diff",
            PatchApplyingProgram::GitApply,
            file("a.diff"),
            Some(2),
            None,
        );
        check(
            "git apply < a.diff && cargo test",
            PatchApplyingProgram::GitApply,
            file("a.diff"),
            None,
            None,
        );
        check(
            "git apply <<'E'\nx\nE",
            PatchApplyingProgram::GitApply,
            here("x\n"),
            None,
            None,
        );
        check(
            "patch -p1 < a.diff",
            PatchApplyingProgram::Patch,
            file("a.diff"),
            Some(1),
            None,
        );
        check(
            "patch -p1 -i a.diff",
            PatchApplyingProgram::Patch,
            file("a.diff"),
            Some(1),
            None,
        );
        check(
            "checkrein patch apply a.diff",
            PatchApplyingProgram::Checkrein,
            file("a.diff"),
            None,
            None,
        );
    }

    #[test]
    fn what_only_looks_or_cannot_be_read_is_passed_over() {
        for script in [
            "git apply --check a.diff",
            "patch --dry-run -p1 < a.diff",
            "apply_patch <<EOF\n$X\nEOF",
            "apply_patch \"$P\"",
            "checkrein patch check a.diff",
            "echo apply_patch x",
        ] {
            assert_eq!(patches(script), [], "{script}");
        }
    }

    #[test]
    fn a_patch_that_comes_after_something_else_is_not_first() {
        for script in [
            "sed -i s/a/b/ f; git apply a.diff",
            "git checkout f && git apply a.diff",
            "echo x > f; apply_patch 'x'",
            "git apply a.diff || patch -p1 < a.diff",
            "bash -c \"git apply a.diff || patch -p1 < a.diff\"",
            "make; apply_patch 'x'",
        ] {
            let found = patches(script);
            assert!(!found.is_empty(), "{script}");
            assert!(found.iter().all(|one| !one.first), "{script}: {found:?}");
        }
        let found = patches("git apply a.diff; git apply b.diff");
        let first: Vec<bool> = found.iter().map(|one| one.first).collect();
        assert_eq!(first, [true, false]);
    }

    #[test]
    fn what_only_looks_or_says_something_changes_nothing_before() {
        for script in [
            "cat f; apply_patch 'x'",
            "ls -la && apply_patch 'x'",
            "grep -rn x src | head; apply_patch 'x'",
            "sed -n 1,20p f; git apply a.diff",
            "apply_patch 'x' 2>&1 | tail -3",
            "apply_patch 'x' 2>/dev/null",
            "apply_patch <<'EOF' | tail -3\nx\nEOF",
            "apply_patch <<'EOF' 2>&1\nx\nEOF",
            "apply_patch <<'EOF' 2>&1 | tail -3\nx\nEOF",
            "apply_patch 'x' || true",
            "apply_patch 'x' || { echo failed; exit 1; }",
            "cd sub || exit 1; apply_patch 'x'",
            "apply_patch 'a || b'",
            "apply_patch <<'EOF'\n+ a || b\nEOF",
            "# a || b\napply_patch 'x'",
            "bash -lc \"apply_patch 'a || b'\"",
            "set -e\napply_patch 'x'",
        ] {
            let found = patches(script);
            assert_eq!(
                found.iter().filter(|one| one.first).count(),
                1,
                "{script}: {found:?}"
            );
        }
    }

    #[test]
    fn of_what_an_option_changes_the_paths_are_read() {
        let check = |script: &str, folder: Option<&str>| {
            let found = one(script).unwrap_or_else(|| panic!("{script}"));
            assert!(found.paths_only && !found.first, "{script}: {found:?}");
            assert_eq!(found.folder.as_deref(), folder, "{script}");
        };
        check("git apply --3way a.diff", None);
        check("git apply -R a.diff", None);
        check("git apply -C1 a.diff", None);
        check("cd x && git apply --directory=sub a.diff", Some("x/sub"));
        check("patch < a.diff", None);
        check("patch -R -p1 < a.diff", None);
        check("patch -d sub -p1 < a.diff", Some("sub"));
        check("patch -f -p1 < a.diff", None);
        let own = one("checkrein patch apply --root sub --json a.diff").unwrap();
        assert_eq!(
            (own.folder.as_deref(), own.paths_only),
            (Some("sub"), false)
        );
    }

    #[test]
    fn the_folder_that_a_patch_is_applied_in() {
        let check = |script: &str, expected: &[Option<&str>]| {
            let found = patches(script);
            let folders: Vec<Option<&str>> =
                found.iter().map(|one| one.folder.as_deref()).collect();
            assert_eq!(folders, expected, "{script}");
            assert!(found.iter().skip(1).all(|one| one.paths_only), "{script}");
        };
        check("cd a && cd b && apply_patch 'x'", &[Some("a/b")]);
        check("pushd a && apply_patch 'x'", &[Some("a")]);
        check("cd a && cd .. && apply_patch 'x'", &[Some("a/..")]);
        check("(cd a); apply_patch 'x'", &[None]);
        check("cd a && bash -c \"apply_patch 'x'\"", &[Some("a")]);
        check("cd a && cd /b && apply_patch 'x'", &[Some("/b")]);
        check("cd \"$X\" && apply_patch 'x'", &[Some("$")]);
        check("cd a; apply_patch 'x'", &[Some("a"), None]);
    }

    #[test]
    fn patches_of_files_and_of_tabbed_heredocs() {
        let text = |script: &str| one(script).map(|one| one.text);
        let file = Some(PatchTextSource::File("p".to_owned()));
        for script in [
            "apply_patch < p",
            "cat p | apply_patch",
            "cat p | git apply",
            "checkrein patch apply --json p",
        ] {
            assert_eq!(text(script), file, "{script}");
        }
        let tabbed = "apply_patch <<-'EOF'\n\t*** Begin Patch\n\t\t*** End Patch\n\tEOF";
        let body = "*** Begin Patch\n*** End Patch\n".to_owned();
        assert_eq!(text(tabbed), Some(PatchTextSource::Inline(body)));
    }
}
