//! `laws --refresh [REV]`: carries patches that break something on purpose over to the current
//! checkout. Each patch applies at REV (HEAD by default). What it does to the words of a file there
//! is done to the same words of the current file, under the names that they have now. Whether a
//! test goes red by it is for `laws --break` to show.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Folders that hold such patches.
const FOLDERS: &[&str] = &["laws", "crates/simulation/planted"];

/// Carries all patches over.
pub(crate) fn rebase_fault_patches(root: &Path, revision: &str) -> Result<ExitCode, String> {
    let names = files_renamed_since_revision(root, revision)?;
    let mut failed = false;
    for folder in FOLDERS {
        let mut patches: Vec<_> = std::fs::read_dir(root.join(folder))
            .map_err(|error| format!("{folder}: {error}"))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|end| end == "patch"))
            .collect();
        patches.sort();
        for patch in patches {
            let text = std::fs::read_to_string(&patch);
            let text = text.map_err(|error| format!("{}: {error}", patch.display()))?;
            let name = patch.strip_prefix(root).unwrap_or(&patch).display();
            match update_fault_patch_to_current_files(root, revision, &names, &text) {
                Ok(fresh) if fresh == text => {}
                Ok(fresh) => {
                    std::fs::write(&patch, fresh).map_err(|error| format!("{name}: {error}"))?;
                    println!("{name}: refreshed");
                }
                Err(why) => {
                    failed = true;
                    println!("{name}: NOT REFRESHED: {why}");
                }
            }
        }
    }
    Ok(match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Returns the current paths of files of that revision that have moved.
fn files_renamed_since_revision(
    root: &Path,
    revision: &str,
) -> Result<BTreeMap<String, String>, String> {
    // 30 % instead of git's 50: a file in which most names have changed counts as moved too.
    let status = [
        "diff",
        "--name-status",
        "-M30%",
        "--diff-filter=R",
        revision,
    ];
    let listed = run_git(root, &status)?;
    let rows = listed.lines().filter_map(|line| {
        let mut fields = line.split('\t').skip(1);
        Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
    });
    Ok(rows.collect())
}

/// Returns the patch for the current files, with its header as it is.
fn update_fault_patch_to_current_files(
    root: &Path,
    revision: &str,
    names: &BTreeMap<String, String>,
    patch: &str,
) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let touched = |patch: &str| -> Vec<String> {
        let paths = patch.lines().filter_map(|line| line.strip_prefix("+++ b/"));
        paths.map(|path| path.trim_end().to_owned()).collect()
    };
    let mut before = Vec::new();
    let mut is_as_it_was = true;
    for path in touched(patch) {
        let text = run_git(root, &["show", &format!("{revision}:{path}")])?;
        is_as_it_was &= read_text_file(root, &path).is_ok_and(|now| now == text);
        write_text_file(folder.path(), &path, &text)?;
        before.push((path, text));
    }
    // A patch whose files have not changed keeps its bytes.
    if is_as_it_was {
        return Ok(patch.to_owned());
    }
    write_text_file(folder.path(), "breach.patch", patch)?;
    // Outside of any repository, git takes the paths as they are.
    run_git(folder.path(), &["apply", "breach.patch"])?;
    let mut fresh: String = patch
        .split_inclusive('\n')
        .take_while(|line| line.starts_with('#'))
        .collect();
    // The patch becomes a change of words, is carried to the current text, and becomes a diff
    // again.
    for (path, old) in before {
        let broken = read_text_file(folder.path(), &path)?;
        let now_at = names.get(&path).unwrap_or(&path);
        let now = read_text_file(root, now_at)?;
        let carried = format_rust_source(root, &carry_change_to_current_text(&old, &broken, &now))?;
        write_text_file(folder.path(), "a", &now)?;
        write_text_file(folder.path(), "b", &carried)?;
        // `--no-index` ends with status 1 if the files differ, so the status is not checked.
        let compared = Command::new("git")
            .args(["diff", "--no-index", "--", "a", "b"])
            .current_dir(folder.path())
            .output();
        let compared = compared.map_err(|error| format!("git diff: {error}"))?;
        // Only the hunks are kept: the diff's own header names the files of the temporary folder.
        let compared = String::from_utf8_lossy(&compared.stdout).into_owned();
        let hunks = compared
            .find("\n@@")
            .ok_or("nothing is left of what it does")?;
        fresh.push_str(&format!("--- a/{now_at}\n+++ b/{now_at}"));
        fresh.push_str(compared.get(hunks..).unwrap_or_default());
    }
    Ok(fresh)
}

/// Applies the change from `old` to `broken` to `now`. The three are alike except for that change
/// and for names.
fn carry_change_to_current_text(old: &str, broken: &str, now: &str) -> String {
    let (old, broken, now) = (
        TokenizedText::tokenize_text(old),
        TokenizedText::tokenize_text(broken),
        TokenizedText::tokenize_text(now),
    );
    let places = WordAlignmentOfTexts::align_words_of_two_texts(&old, &now);
    let mut text = String::new();
    let mut done = 0;
    for change in capture_diff_slices(Algorithm::Myers, &old.words, &broken.words) {
        if matches!(change, DiffOp::Equal { .. }) {
            continue;
        }
        let (of_old, of_broken) = (change.old_range(), change.new_range());
        let from = places.aligned_word_boundary_in_other_text(of_old.start);
        text.push_str(now.text_of_word_range(done..from));
        // What the patch puts in goes by today's names too.
        for at in of_broken {
            let word = broken.words.get(at).copied().unwrap_or_default();
            text.push_str(
                places
                    .new_name_of_nearest_occurrence(word, of_old.start)
                    .unwrap_or(word),
            );
            text.push_str(broken.whitespace_after_nth_word(at));
        }
        done = places
            .aligned_word_boundary_in_other_text(of_old.end)
            .max(from);
        // Line breaks inside the replaced text are lost with it. A line comment before it would
        // swallow what follows, so one is put back.
        if now.text_of_word_range(from..done).ends_with(['\n', ' '])
            && now.text_of_word_range(from..done).contains('\n')
        {
            text.push('\n');
        }
    }
    text.push_str(now.text_of_word_range(done..now.words.len()));
    text
}

/// A text split into words (names, numbers, operators and single signs), with the blanks after
/// each.
struct TokenizedText<'t> {
    text: &'t str,
    words: Vec<&'t str>,
    /// Where each word begins, and one more entry for the end.
    begins: Vec<usize>,
}

impl<'t> TokenizedText<'t> {
    fn tokenize_text(text: &'t str) -> Self {
        let (mut words, mut begins) = (Vec::new(), Vec::new());
        let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
        let is_of_operator = |c: char| "=!<>&|+-*/:.^%".contains(c);
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let end_of = |is_of_word: &dyn Fn(char) -> bool| {
                rest.find(|c| !is_of_word(c)).unwrap_or(rest.len())
            };
            let length = match first {
                first if is_of_name(first) => end_of(&is_of_name),
                first if is_of_operator(first) => end_of(&is_of_operator),
                first => first.len_utf8(),
            };
            let (word, after) = rest.split_at(length);
            begins.push(text.len() - rest.len());
            words.push(word);
            rest = after.trim_start();
        }
        begins.push(text.len());
        Self {
            text,
            words,
            begins,
        }
    }

    fn start_offset_of_nth_word(&self, at: usize) -> usize {
        self.begins.get(at).copied().unwrap_or(self.text.len())
    }

    /// Returns the text of these words, with the blanks between and after them.
    fn text_of_word_range(&self, words: std::ops::Range<usize>) -> &'t str {
        // Blanks before the first word belong to it, or they would be lost.
        let from = match words.start {
            0 => 0,
            at => self.start_offset_of_nth_word(at),
        };
        self.text
            .get(from..self.start_offset_of_nth_word(words.end))
            .unwrap_or_default()
    }

    fn whitespace_after_nth_word(&self, at: usize) -> &'t str {
        let word = self.words.get(at).map_or(0, |word| word.len());
        self.text
            .get(self.start_offset_of_nth_word(at) + word..self.start_offset_of_nth_word(at + 1))
            .unwrap_or_default()
    }
}

/// Tells which words of one text are which of another.
struct WordAlignmentOfTexts<'t> {
    /// For each boundary between words, the one in the other text.
    boundaries: Vec<usize>,
    /// For each word, where it stands here and which word stands there in its place.
    names: BTreeMap<&'t str, Vec<(usize, &'t str)>>,
}

impl<'t> WordAlignmentOfTexts<'t> {
    fn align_words_of_two_texts(here: &TokenizedText<'t>, there: &TokenizedText<'t>) -> Self {
        let mut boundaries = vec![0; here.words.len() + 1];
        let mut names: BTreeMap<&'t str, Vec<(usize, &'t str)>> = BTreeMap::new();
        for change in capture_diff_slices(Algorithm::Myers, &here.words, &there.words) {
            let (old, new) = (change.old_range(), change.new_range());
            // Pieces of equal length are taken to differ in names only and are matched word by
            // word; in others no word has a certain counterpart.
            let is_alike = old.len() == new.len();
            for at in old.clone() {
                let step = at - old.start;
                let to = match is_alike {
                    true => new.start + step,
                    // Somewhere in what takes its place.
                    false => (new.start + step).min(new.end),
                };
                if let Some(boundary) = boundaries.get_mut(at) {
                    *boundary = to;
                }
                if let (true, Some(word), Some(name)) =
                    (is_alike, here.words.get(at), there.words.get(to))
                {
                    names.entry(word).or_default().push((at, name));
                }
            }
            if let Some(end) = boundaries.get_mut(old.end) {
                *end = new.end;
            }
        }
        Self { boundaries, names }
    }

    fn aligned_word_boundary_in_other_text(&self, at: usize) -> usize {
        self.boundaries.get(at).copied().unwrap_or_default()
    }

    /// Returns what the occurrence of `word` nearest to `near` is called there. One word may have
    /// several new names, by what it means at each place.
    fn new_name_of_nearest_occurrence(&self, word: &str, near: usize) -> Option<&'t str> {
        let all = self.names.get(word)?.iter();
        all.min_by_key(|(at, _)| at.abs_diff(near))
            .map(|(_, name)| *name)
    }
}

fn format_rust_source(root: &Path, text: &str) -> Result<String, String> {
    use std::io::Write as _;
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("rustfmt: {error}"))?;
    if let Some(mut input) = rustfmt.stdin.take() {
        input
            .write_all(text.as_bytes())
            .map_err(|error| format!("rustfmt: {error}"))?;
    }
    let output = rustfmt.wait_with_output();
    require_successful_output("rustfmt", output)
}

fn run_git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .output();
    require_successful_output("git", output)
}

fn require_successful_output(
    program: &str,
    output: std::io::Result<std::process::Output>,
) -> Result<String, String> {
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program}: {}", why.lines().next().unwrap_or("")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn read_text_file(folder: &Path, path: &str) -> Result<String, String> {
    std::fs::read_to_string(folder.join(path)).map_err(|error| format!("{path}: {error}"))
}

fn write_text_file(folder: &Path, path: &str, text: &str) -> Result<(), String> {
    let file = folder.join(path);
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).map_err(|error| format!("{path}: {error}"))?;
    }
    std::fs::write(&file, text).map_err(|error| format!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "fn read(of: &Told) -> bool {\n    let told = of.look();\n    told.is_some() && of.is_new()\n}\n";

    /// Compares words only: blanks are rustfmt's business.
    fn check(broken: &str, now: &str, expected: &str) {
        let carried = carry_change_to_current_text(OLD, broken, now);
        assert_eq!(
            TokenizedText::tokenize_text(&carried).words,
            TokenizedText::tokenize_text(expected).words
        );
    }

    #[test]
    fn what_breaks_it_is_done_to_the_same_words_by_other_names() {
        let now = "fn read_answer(answer: &UserAnswer) -> bool {\n    let text = answer.find_text();\n    text.is_some() && answer.is_new()\n}\n";
        check(&OLD.replace("&&", "||"), now, &now.replace("&&", "||"));
        check(
            &OLD.replace(" && of.is_new()", ""),
            now,
            &now.replace(" && answer.is_new()", ""),
        );
        // What it puts in is called by today's names.
        check(
            &OLD.replace("told.is_some()", "of.look().is_none()"),
            now,
            &now.replace("text.is_some()", "answer.find_text().is_none()"),
        );
    }

    #[test]
    fn lines_that_are_broken_otherwise_are_the_same() {
        let now = "fn read(\n    of: &UserAnswer,\n) -> bool {\n    let told = of.look();\n    told.is_some()\n        && of.is_new()\n}\n";
        check(
            &OLD.replace("is_some", "is_none"),
            now,
            &now.replace("is_some", "is_none"),
        );
    }

    #[test]
    fn a_patch_of_today_is_as_it_is() {
        check(&OLD.replace("&&", "||"), OLD, &OLD.replace("&&", "||"));
    }
}
