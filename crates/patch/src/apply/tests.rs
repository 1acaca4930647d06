//! An apply killed at every write, rename and removal, in a process of its own: what is left
//! is the tree as before it or, after recovery, as after it. Recovery is killed the same way.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::{HunkMatchDialect, parse_patch, plan_patch_against_tree};

/// Set in the child: at which step it dies, of what, and where it works.
const DIES_AT: &str = "CHECKREIN_TEST_PATCH_DIES_AT";
const DOES: &str = "CHECKREIN_TEST_PATCH_DOES";
const WHERE: &str = "CHECKREIN_TEST_PATCH_WHERE";

const PATCH: &str = "*** Begin Patch
*** Update File: src/a.txt
@@
-one
+ONE
*** Add File: new/deep/b.txt
+made
*** Delete File: gone.txt
*** Update File: from.txt
*** Move to: moved/to.txt
@@
-x
+y
*** Delete File: folder-to-be
*** Add File: folder-to-be/file
+below what was a file
*** End Patch";

/// Every file, folder and link with what it holds.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if path.is_dir() {
                found.insert(name, b"folder".to_vec());
                folders.push(path);
            } else {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn lay(place: &Path) {
    let root = place.join("tree");
    fs::create_dir_all(root.join("src")).unwrap();
    fs::write(root.join("src/a.txt"), "one\ntwo\n").unwrap();
    fs::write(root.join("gone.txt"), "bye\n").unwrap();
    fs::write(root.join("from.txt"), "x\n").unwrap();
    fs::write(root.join("folder-to-be"), "a file\n").unwrap();
}

fn plan(disk: &DiskTree) -> PatchPlan {
    plan_patch_against_tree(
        &parse_patch(PATCH, None).unwrap(),
        disk,
        &PathBelowRoot::tree_root_path(),
        HunkMatchDialect::Git,
    )
    .unwrap()
}

fn disk(place: &Path) -> DiskTree {
    DiskTree::open_file_tree(&place.join("tree"), u64::MAX).unwrap()
}

/// In the child: does what it is told and dies at the step it is told, as by kill -9.
#[test]
fn child() {
    let Ok(place) = std::env::var(WHERE) else {
        return;
    };
    let place = PathBuf::from(place);
    let dies_at: u32 = std::env::var(DIES_AT).unwrap().parse().unwrap();
    let step = Cell::new(0);
    let watch = |_: &'static str| {
        step.set(step.get() + 1);
        if step.get() == dies_at {
            std::process::abort();
        }
    };
    let ops = PatchStepObserver::observer_with_step_callback(&watch);
    let (disk, memory) = (disk(&place), place.join("memory"));
    match std::env::var(DOES).unwrap().as_str() {
        "apply" => apply_patch_plan_observed(&plan(&disk), &disk, &memory, &ops).unwrap(),
        _ => {
            super::recovery::recover_patch_journal(&disk, &memory, &ops).unwrap();
        }
    }
}

/// Whether the child came to its end.
fn run(place: &Path, does: &str, dies_at: u32) -> bool {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "apply::tests::child"])
        .env(WHERE, place)
        .env(DOES, does)
        .env(DIES_AT, dies_at.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("running 1 test"), "{text}");
    output.status.success()
}

fn recovered(place: &Path) -> PatchRecoveryOutcome {
    recover_interrupted_apply(&disk(place), &place.join("memory")).unwrap()
}

/// The tree before, and after an apply that nobody disturbs.
fn both_ends() -> [BTreeMap<PathBuf, Vec<u8>>; 2] {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path());
    let before = snapshot(&folder.path().join("tree"));
    let disk = disk(folder.path());
    apply_patch_plan(&plan(&disk), &disk, &folder.path().join("memory")).unwrap();
    [before, snapshot(&folder.path().join("tree"))]
}

#[test]
fn killed_anywhere_it_is_as_before_or_as_after() {
    let [before, after] = both_ends();
    let mut ended = [0, 0];
    for dies_at in 1.. {
        let folder = tempfile::tempdir().unwrap();
        lay(folder.path());
        let finished = run(folder.path(), "apply", dies_at);
        let how = recovered(folder.path());
        let tree = snapshot(&folder.path().join("tree"));
        let end = [&before, &after].iter().position(|end| **end == tree);
        let end = end.unwrap_or_else(|| unreachable!("killed at step {dies_at}: {tree:?}"));
        ended[end] += 1;
        assert_eq!(recovered(folder.path()), PatchRecoveryOutcome::Nothing);
        if finished {
            assert_eq!((end, how), (1, PatchRecoveryOutcome::Nothing));
            break;
        }
        // What was not decided is taken back, and what was is not.
        match how {
            PatchRecoveryOutcome::RolledBack => assert_eq!(end, 0, "step {dies_at}"),
            PatchRecoveryOutcome::Finished { left_alone } => {
                assert_eq!((end, left_alone), (1, Vec::new()), "step {dies_at}");
            }
            PatchRecoveryOutcome::Nothing => {}
            PatchRecoveryOutcome::Unreadable { kept } => panic!("{kept}"),
        }
    }
    // Both happened, at more than one step each.
    assert!(ended[0] > 10 && ended[1] > 10, "{ended:?}");
}

#[test]
fn a_recovery_that_is_killed_is_taken_up_as_well() {
    let [before, after] = both_ends();
    // One kill before the decision, some after it.
    for dies_at in [9, 24, 26, 28, 30] {
        for again_at in 1.. {
            let folder = tempfile::tempdir().unwrap();
            lay(folder.path());
            assert!(!run(folder.path(), "apply", dies_at));
            let finished = run(folder.path(), "recover", again_at);
            recovered(folder.path());
            let tree = snapshot(&folder.path().join("tree"));
            assert!(
                tree == before || tree == after,
                "{dies_at}, {again_at}: {tree:?}"
            );
            if finished {
                break;
            }
        }
    }
}

/// What a power cut may take: everything that was not synced before the journal says so.
#[test]
fn nothing_is_decided_before_all_of_it_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path());
    let steps = RefCell::new(Vec::new());
    let watch = |what: &'static str| steps.borrow_mut().push(what);
    let disk = disk(folder.path());
    let memory = folder.path().join("memory");
    apply_patch_plan_observed(
        &plan(&disk),
        &disk,
        &memory,
        &PatchStepObserver::observer_with_step_callback(&watch),
    )
    .unwrap();
    let steps = steps.into_inner();
    let decided = steps
        .iter()
        .position(|step| *step == "rename the journal: decided")
        .unwrap();
    let (before, after) = steps.split_at(decided);
    let count = |steps: &[&str], what: &str| steps.iter().filter(|step| **step == what).count();
    assert_eq!(count(before, "create a staged file"), 4);
    assert_eq!(count(before, "sync a staged file"), 4);
    assert!(count(before, "sync a folder of staged files") >= 1);
    assert_eq!(before.last(), Some(&"sync the journal"));
    for what in ["rename a staged file", "remove a file", "make a folder"] {
        assert_eq!(count(before, what), 0, "{what}");
    }
    // And the journal goes only when what it says is on disk.
    let folders = after
        .iter()
        .rposition(|step| *step == "sync a folder")
        .unwrap();
    let removed = after
        .iter()
        .position(|step| *step == "remove the journal")
        .unwrap();
    let last_write = after
        .iter()
        .rposition(|step| ["rename a staged file", "remove a file"].contains(step))
        .unwrap();
    assert!(last_write < folders && folders < removed, "{after:?}");
    assert_eq!(after[1], "sync the journal's folder");
}

#[test]
fn what_somebody_changed_after_the_kill_is_left_alone() {
    let [_, after] = both_ends();
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path());
    let root = folder.path().join("tree");
    // Dies right after the decision.
    let died = (1..).find(|dies_at| {
        let _ = fs::remove_dir_all(&root);
        lay(folder.path());
        let finished = run(folder.path(), "apply", *dies_at);
        assert!(!finished, "it never died after the decision");
        let journal = fs::read_to_string(folder.path().join("memory/journal.json"));
        journal.is_ok_and(|journal| journal.contains("decided")) || {
            recovered(folder.path());
            false
        }
    });
    assert!(died.is_some());
    fs::write(root.join("src/a.txt"), "mine\n").unwrap();
    let left_alone = vec!["src/a.txt".to_owned()];
    assert_eq!(
        recovered(folder.path()),
        PatchRecoveryOutcome::Finished { left_alone }
    );
    let mut expected = after;
    expected.insert(PathBuf::from("src/a.txt"), b"mine\n".to_vec());
    assert_eq!(snapshot(&root), expected);
}

#[test]
fn a_tree_that_changed_since_the_check_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path());
    let disk = disk(folder.path());
    let plan = plan(&disk);
    fs::write(folder.path().join("tree/gone.txt"), "still needed\n").unwrap();
    let before = snapshot(&folder.path().join("tree"));
    let error = apply_patch_plan(&plan, &disk, &folder.path().join("memory")).unwrap_err();
    assert!(matches!(error, PatchWriteError::Untouched(_)), "{error}");
    assert!(error.to_string().contains("gone.txt"), "{error}");
    assert_eq!(snapshot(&folder.path().join("tree")), before);
}

#[test]
fn a_journal_made_by_somebody_else_leads_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path());
    let memory = folder.path().join("memory");
    fs::create_dir_all(&memory).unwrap();
    let outside = folder.path().join("outside");
    fs::write(&outside, "mine").unwrap();
    let acts: Vec<_> = ["../outside", "/etc/x", ".git/config", "a/../../outside"]
        .iter()
        .map(|path| serde_json::json!({"path": path, "before": Digest::hash_bytes(b"mine"), "after": null, "staged": "../outside"}))
        .collect();
    let journal = serde_json::json!({"phase": "decided", "acts": acts});
    fs::write(memory.join("journal.json"), journal.to_string()).unwrap();
    let before = snapshot(&folder.path().join("tree"));
    assert!(matches!(
        recovered(folder.path()),
        PatchRecoveryOutcome::Finished { .. }
    ));
    assert_eq!(snapshot(&folder.path().join("tree")), before);
    assert_eq!(fs::read_to_string(outside).unwrap(), "mine");
}

#[cfg(unix)]
#[test]
fn permissions_stay_also_under_another_name() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path());
    let root = folder.path().join("tree");
    let set = |name: &str, mode| {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    let mode = |name: &str| fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o7777;
    set("from.txt", 0o750);
    set("src/a.txt", 0o600);
    let disk = disk(folder.path());
    apply_patch_plan(&plan(&disk), &disk, &folder.path().join("memory")).unwrap();
    assert_eq!(mode("moved/to.txt"), 0o750);
    assert_eq!(mode("src/a.txt"), 0o600);
}

#[test]
fn what_is_no_journal_is_put_aside_and_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path());
    let (disk, memory) = (disk(folder.path()), folder.path().join("memory"));
    fs::create_dir(&memory).unwrap();
    for bytes in [
        &b"{\"phase\":\"dec"[..],
        b"",
        b"{\"phase\":\"later\",\"acts\":[]}",
    ] {
        fs::write(memory.join("journal.json"), bytes).unwrap();
        let PatchRecoveryOutcome::Unreadable { kept } = recovered(folder.path()) else {
            panic!("it was read");
        };
        assert_eq!(fs::read(kept).unwrap(), bytes);
        assert_eq!(recovered(folder.path()), PatchRecoveryOutcome::Nothing);
    }
    fs::create_dir(memory.join("journal.json")).unwrap();
    apply_patch_plan(&plan(&disk), &disk, &memory).unwrap();
    assert!(!folder.path().join("tree/gone.txt").exists());
}

#[cfg(unix)]
#[test]
fn what_is_remembered_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path());
    let disk = disk(folder.path());
    let state = folder.path().join("state");
    apply_patch_plan(&plan(&disk), &disk, &state.join("patch/x")).unwrap();
    for made in ["", "patch", "patch/x"] {
        let mode = fs::metadata(state.join(made)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{made}");
    }
}
