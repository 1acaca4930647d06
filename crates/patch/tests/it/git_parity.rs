//! Unified diffs as git takes them: the real `git apply` is asked the same.

use std::fs;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use crate::tree::{FileTexts, files, lay, on_disk, patched};

fn git(folder: &Path, arguments: &[&str], input: Option<&str>) -> (bool, String) {
    use std::io::Write as _;
    let mut child = Command::new("git")
        .args([
            "-c",
            "core.autocrlf=false",
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@y",
        ])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.unwrap_or_default().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text)
}

fn read(root: &Path) -> FileTexts {
    let mut found = FileTexts::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with(".git") {
                folders.push(path);
            } else if path.is_file() {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                found.insert(name.to_owned(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// What `git apply` leaves, or `None` if it refuses.
fn by_git(before: &FileTexts, diff: &str) -> Option<FileTexts> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tree");
    fs::create_dir(&root).unwrap();
    lay(&root, before);
    let (done, _) = git(&root, &["apply", "-"], Some(diff));
    done.then(|| read(&root))
}

#[track_caller]
fn same(before: &FileTexts, diff: &str) {
    assert_eq!(
        patched(before, diff).ok(),
        by_git(before, diff),
        "{diff}\n{before:?}"
    );
}

/// Names, quotes, renames, copies, modes, ends of files: as git itself writes them.
#[test]
fn what_git_diff_writes_is_applied() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tree");
    fs::create_dir(&root).unwrap();
    let text: String = (0..40).map(|line| format!("line {line}\n")).collect();
    let before = files(&[
        ("a b.txt", &text),
        ("ü\t\"q\".txt", &text),
        ("gone", "no newline"),
        ("moved", &text.replace("line", "other")),
        ("crlf", "a\r\nb\r\nc\r\n"),
        ("tail", "x\ny"),
    ]);
    lay(&root, &before);
    git(&root, &["init", "-q"], None);
    git(&root, &["add", "-A"], None);
    git(&root, &["commit", "-qm", "x"], None);
    fs::write(
        root.join("a b.txt"),
        text.replace("line 3\n", "").replace("line 30", "30"),
    )
    .unwrap();
    fs::write(root.join("ü\t\"q\".txt"), format!("first\n{text}last\n")).unwrap();
    fs::remove_file(root.join("gone")).unwrap();
    fs::create_dir(root.join("to")).unwrap();
    fs::rename(root.join("moved"), root.join("to/here")).unwrap();
    fs::write(
        root.join("to/here"),
        text.replace("line", "other")
            .replace("other 7\n", "seven\n"),
    )
    .unwrap();
    fs::write(root.join("crlf"), "a\r\nB\r\nc\r\n").unwrap();
    fs::write(root.join("tail"), "x\nz").unwrap();
    fs::write(root.join("new"), "").unwrap();
    fs::write(root.join("new2"), "without an end").unwrap();
    let after = read(&root);
    git(&root, &["add", "-A"], None);
    let (_, diff) = git(&root, &["diff", "--cached", "-M"], None);
    assert!(diff.contains("rename from moved"), "{diff}");
    assert_eq!(patched(&before, &diff).as_ref(), Ok(&after), "{diff}");

    let other = folder.path().join("other");
    lay(&other, &before);
    on_disk(&other, &diff).unwrap();
    assert_eq!(read(&other), after);
}

#[test]
fn plain_diffs_and_refusals() {
    let before = files(&[("f", "a\nb\nc\nd\ne\n"), ("g", "x\n")]);
    for diff in [
        "--- a/f\n+++ b/f\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n",
        "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n b\n-c\n+C\n d\n",
        "--- a/f\n+++ b/f\n@@ -4,3 +4,3 @@\n b\n-c\n+C\n d\n",
        "--- a/f\n+++ b/f\n@@ -2,2 +2,2 @@\n b\n-c\n+C\n",
        "--- a/f\n+++ b/f\n@@ -4,2 +4,3 @@\n d\n e\n+f\n",
        "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n+0\n a\n b\n",
        "--- a/f\n+++ b/f\n@@ -3,2 +3,3 @@\n+0\n a\n b\n",
        "--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+x\n",
        "--- /dev/null\n+++ b/n/m\n@@ -0,0 +1 @@\n+x\n",
        "--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
        "--- a/missing\n+++ b/missing\n@@ -1 +1 @@\n-x\n+y\n",
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-y\n+z\n",
    ] {
        same(&before, diff);
    }
}

/// `diff -N` dates what is not there at the beginning of time, in the zone it runs in.
#[test]
fn files_that_come_and_go_by_their_dates() {
    let before = files(&[("f", "a\n"), ("empty", "")]);
    let diff = |old: &str, new: &str, name: &str, hunk: &str| {
        format!("diff -ruN a/{name} b/{name}\n--- a/{name}\t{old}\n+++ b/{name}\t{new}\n{hunk}")
    };
    let now = "2026-03-01 10:00:00.000000000 +0100";
    let (comes, goes) = ("@@ -0,0 +1 @@\n+x\n", "@@ -1 +0,0 @@\n-a\n");
    for zero in [
        "1970-01-01 00:00:00.000000000 +0000",
        "1970-01-01 01:00:00.000000000 +0100",
        "1969-12-31 19:00:00.000000000 -0500",
        "1970-01-01 05:30:00 +0530",
        "1970-01-01 00:00:00.000000000 +0100",
        "1970-01-01 00:00:01.000000000 +0000",
        "1970-01-02 00:00:00.000000000 +0000",
    ] {
        same(&before, &diff(zero, now, "n/new", comes));
        same(&before, &diff(zero, now, "f", comes));
        same(&before, &diff(now, zero, "f", goes));
        same(&before, &diff(now, zero, "f", "@@ -1 +0,0 @@\n-b\n"));
    }
    // What wants nothing to be there makes a file that is not, whatever its date.
    same(&before, &diff(now, now, "new", comes));
    same(&before, &diff(now, now, "empty", comes));
    same(
        &before,
        &diff(now, now, "f", "@@ -0,0 +1 @@\n+x\n@@ -9 +10 @@\n-b\n+c\n"),
    );
    same(
        &before,
        &diff(now, now, "new", "@@ -0,0 +1 @@\n+x\n@@ -9 +10 @@\n-b\n+c\n"),
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Real diffs, put to a file that has moved on since.
    #[test]
    fn the_same_place_as_git(
        old in prop::collection::vec("[abcd]", 0..24),
        edits in prop::collection::vec((0_usize..24, "[abxyz]", 0_u8..3), 1..4),
        later in prop::collection::vec((0_usize..24, "[abq]"), 0..3),
        context in 0_usize..4,
    ) {
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let mut new = old.clone();
        for (at, line, what) in edits {
            let at = at.min(new.len());
            match what {
                0 => new.insert(at, line),
                1 if at < new.len() => { new.remove(at); }
                _ if at < new.len() => new[at] = line,
                _ => {}
            }
        }
        let mut now = old.clone();
        for (at, line) in later {
            now.insert(at.min(now.len()), line);
        }
        prop_assume!(old != new && !old.is_empty() && !new.is_empty() && context > 0);
        let diff = diffed(&text(&old), &text(&new), context);
        let before = files(&[("f", text(&now).as_str())]);
        let (ours, theirs) = (patched(&before, &diff).ok(), by_git(&before, &diff));
        prop_assert_eq!(ours, theirs, "{}\n{:?}", diff, before);
    }
}

fn diffed(old: &str, new: &str, context: usize) -> String {
    let mut options = diffy::DiffOptions::new();
    options.set_context_len(context);
    options
        .set_original_filename("a/f")
        .set_modified_filename("b/f");
    options.create_patch(old, new).to_string()
}
