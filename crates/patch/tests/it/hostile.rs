//! Paths that would lead out, by every way there is: nothing outside changes, and nothing
//! inside either.

use std::fs;

use checkrein_patch::{InMemoryFileTree, PatchRefusalCause, PathBelowRoot};

use crate::tree::{checked, files, lay, memory, on_disk};

fn add(path: &str) -> String {
    format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch")
}

#[track_caller]
fn refused(tree: &InMemoryFileTree, patch: &str, cause: PatchRefusalCause) {
    let refusals = checked(tree, patch).unwrap_err();
    assert_eq!(refusals[0].cause, cause, "{patch}: {refusals:?}");
}

#[test]
fn paths_that_leave_the_root_are_refused() {
    let tree = memory(&files(&[("src/a", "1\n")]));
    for path in [
        "../x",
        "src/../../x",
        "/etc/passwd",
        "/root-of-memory/../x",
        "/root-of-memoryx/y",
        "src/../../../etc/x",
    ] {
        refused(&tree, &add(path), PatchRefusalCause::OutsideRoot);
    }
    for path in ["src", ".", "src/..", "src/", "src/a/b", "new/../x", "a\0b"] {
        refused(&tree, &add(path), PatchRefusalCause::BadPath);
    }
    for path in [
        ".git/config",
        ".GIT/hooks/x",
        "src/.git",
        ".git\u{200c}/x",
        "GIT~1/x",
    ] {
        refused(&tree, &add(path), PatchRefusalCause::InsideGit);
    }
    for diff in [
        "--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n",
        "--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n",
        "--- /etc/passwd\n+++ /etc/passwd\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/src/a b/src/a\nrename from src/a\nrename to ../a\n",
    ] {
        refused(&tree, diff, PatchRefusalCause::OutsideRoot);
    }
    // What stays inside is no matter how it is spelled.
    for path in ["./x", "src/../x", "/root-of-memory/x", "src//x", "src/./x"] {
        assert!(checked(&tree, &add(path)).is_ok(), "{path}");
    }
}

#[test]
fn links_that_leave_the_root_are_refused() {
    let mut tree = memory(&files(&[("src/a", "1\n"), (".git/config", "c\n")]));
    let path = |text: &str| PathBelowRoot::parse_path_inside_tree(text).unwrap();
    for (name, target) in [
        ("up", ".."),
        ("away", "/etc"),
        ("out", "../outside"),
        ("round", "round"),
        ("git", ".git"),
        ("in", "src"),
        ("file", "src/a"),
        ("up-in", "src/../.."),
        ("chain", "up/x"),
    ] {
        tree.links.insert(path(name), target.to_owned());
    }
    for name in ["up/x", "away/passwd", "out", "up-in/x", "chain"] {
        refused(&tree, &add(name), PatchRefusalCause::OutsideRoot);
    }
    refused(&tree, &add("round"), PatchRefusalCause::BadPath);
    refused(&tree, &add("git/config"), PatchRefusalCause::InsideGit);
    let written = |name: &str| {
        let plan = checked(&tree, &add(name)).unwrap();
        plan.steps[0].path.to_string()
    };
    // A link that stays inside is followed, and what it names is written, not the link.
    assert_eq!(written("in/b"), "src/b");
    assert_eq!(written("file"), "src/a");
}

#[test]
fn one_file_by_two_names() {
    let mut tree = memory(&files(&[("a.txt", "1\n")]));
    let moved = |to: &str| {
        format!(
            "*** Begin Patch\n*** Update File: a.txt\n*** Move to: {to}\n@@\n-1\n+2\n*** End Patch"
        )
    };
    // Codex deletes the file; here the move is none and the lines change.
    for to in ["a.txt", "./a.txt", "/root-of-memory/a.txt"] {
        let plan = checked(&tree, &moved(to)).unwrap();
        assert_eq!(plan.hazards[0].cause, PatchRefusalCause::SelfMove);
        assert_eq!(plan.steps.len(), 1);
        assert!(plan.steps[0].after.is_some());
    }
    tree.links.insert(
        PathBelowRoot::parse_path_inside_tree("l").unwrap(),
        "a.txt".to_owned(),
    );
    let plan = checked(&tree, &moved("l")).unwrap();
    assert_eq!(plan.hazards[0].cause, PatchRefusalCause::SelfMove);
    // Where case is one, another case is no other name.
    assert!(checked(&tree, &moved("A.TXT")).is_ok());
    tree.is_case_insensitive = true;
    refused(&tree, &moved("A.TXT"), PatchRefusalCause::SameFile);
}

#[cfg(unix)]
#[test]
fn on_disk_nothing_outside_changes() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    lay(&root, &files(&[("a", "1\n"), ("src/b", "2\n")]));
    fs::write(folder.path().join("outside"), "mine\n").unwrap();
    symlink("../outside", root.join("out")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink(folder.path(), root.join("abs")).unwrap();
    symlink("src", root.join("in")).unwrap();
    for path in ["out", "up/outside", "abs/outside", "up/new", "../new"] {
        for patch in [
            add(path),
            format!("*** Begin Patch\n*** Update File: {path}\n@@\n-mine\n+yours\n*** End Patch"),
            format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch"),
            format!(
                "*** Begin Patch\n*** Update File: a\n*** Move to: {path}\n@@\n-1\n+yours\n*** End Patch"
            ),
        ] {
            assert!(on_disk(&root, &patch).is_err(), "{patch}");
        }
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("outside")).unwrap(),
        "mine\n"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "1\n");
    // By a link that stays inside, and by the root's own absolute name.
    let absolute = root.join("in/b").display().to_string();
    let patch = format!("*** Begin Patch\n*** Update File: {absolute}\n@@\n-2\n+3\n*** End Patch");
    on_disk(&root, &patch).unwrap();
    assert_eq!(fs::read_to_string(root.join("src/b")).unwrap(), "3\n");
    assert!(root.join("in").is_symlink());
}

/// A folder that becomes a link between check and apply leads nowhere.
#[cfg(unix)]
#[test]
fn a_link_put_in_place_after_the_check_is_not_followed() {
    use checkrein_patch::{DiskTree, apply_patch_plan};
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    lay(&root, &files(&[("src/a", "1\n")]));
    lay(folder.path(), &files(&[("outside/a", "1\n")]));
    let disk = DiskTree::open_file_tree(&root, u64::MAX).unwrap();
    let patch = "*** Begin Patch\n*** Update File: src/a\n@@\n-1\n+2\n*** End Patch";
    let plan = checked(&disk, patch).unwrap();
    fs::remove_dir_all(root.join("src")).unwrap();
    std::os::unix::fs::symlink("../outside", root.join("src")).unwrap();
    let memory = tempfile::tempdir().unwrap();
    assert!(apply_patch_plan(&plan, &disk, memory.path()).is_err());
    let outside = folder.path().join("outside");
    assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "1\n");
    assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
}

/// What is made to be slow ends, and soon: by counts, so that the answer is the same everywhere.
#[test]
fn patches_made_to_be_slow_end() {
    let runs: String = (0..60).map(|_| "x\n".repeat(300) + "y\n").collect();
    let tree = memory(&files(&[("f", &runs)]));
    let chunk = format!("@@\n{}-x\n+z\n", " x\n".repeat(300));
    let patch = format!(
        "*** Begin Patch\n*** Update File: f\n{}*** End Patch",
        chunk.repeat(40)
    );
    refused(&tree, &patch, PatchRefusalCause::NoMatch);
    let hunk = "@@ -5 +5 @@\n-x\n+z\n";
    let diff = format!("--- a/f\n+++ b/f\n{}", hunk.repeat(800));
    assert!(checked(&tree, &diff).is_err());
}

/// Each would take minutes if every file were compared with every other.
#[test]
fn many_files_and_many_lines_are_no_more_than_many() {
    let adds: String = (0..20_000)
        .map(|number| format!("*** Add File: d{}/n{number}\n+x\n", number % 100))
        .collect();
    let patch = format!("*** Begin Patch\n{adds}*** End Patch");
    let plan = checked(&InMemoryFileTree::default(), &patch).unwrap();
    assert_eq!(plan.steps.len(), 20_000);

    // Lines that are all the same, and a block of them that is one too long.
    let file = "same\n".repeat(60_000);
    let tree = memory(&files(&[("f", &file)]));
    let block = "-same\n".repeat(30_000);
    let hunk = format!("@@ -1,30001 +1,1 @@\n{block}-other\n+x\n");
    refused(
        &tree,
        &format!("--- a/f\n+++ b/f\n{hunk}"),
        PatchRefusalCause::NoMatch,
    );

    let deep = format!("{}x", "a/".repeat(1_000));
    refused(
        &InMemoryFileTree::default(),
        &add(&deep),
        PatchRefusalCause::BadPath,
    );
    refused(
        &InMemoryFileTree::default(),
        &add(&"a".repeat(5_000)),
        PatchRefusalCause::BadPath,
    );
}

#[test]
fn what_the_patch_has_put_into_a_folder_counts_until_it_goes() {
    let tree = memory(&files(&[("d/a", "1\n")]));
    let body = |body: &str| format!("*** Begin Patch\n{body}*** End Patch");
    // A folder of the patch's own is no file.
    refused(
        &tree,
        &body("*** Add File: n/a\n+x\n*** Add File: n\n+x\n"),
        PatchRefusalCause::BadPath,
    );
    // It is none any more once all of it is gone.
    let patch = body(
        "*** Add File: n/a\n+x\n*** Add File: n/b\n+x\n*** Delete File: n/a\n*** Delete File: n/b\n*** Add File: n\n+x\n",
    );
    assert!(checked(&tree, &patch).is_ok());
    let patch = body(
        "*** Add File: n/a\n+x\n*** Add File: n/a\n+y\n*** Delete File: n/a\n*** Add File: n\n+x\n",
    );
    assert!(checked(&tree, &patch).is_ok());
}

#[test]
fn a_link_that_is_moved_is_not_taken_for_its_file() {
    let mut tree = memory(&files(&[("f", "1\n")]));
    tree.links.insert(
        PathBelowRoot::parse_path_inside_tree("l").unwrap(),
        "f".to_owned(),
    );
    let patch = "*** Begin Patch\n*** Update File: l\n*** Move to: g\n@@\n-1\n+2\n*** End Patch";
    refused(&tree, patch, PatchRefusalCause::Unsupported);
}
