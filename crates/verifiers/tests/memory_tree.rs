//! A tree in memory and the same tree on disk are read alike.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![cfg(unix)]

mod memory_files;

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use checkrein_core::ids::VerifierName;
use checkrein_verifiers::file_system::{FileKind, ReadOnlyFileSystem, RealFileSystem};
use checkrein_verifiers::tree::{
    TreeReadResult, TreeReadTimeoutAndCancel, TreeReader, UncompiledVerifierGlobs,
};
use memory_files::MemoryFiles;
use proptest::prelude::*;

/// After so long a file's stamp is believed.
const AT_REST: Duration = Duration::from_secs(61);

/// The same tree twice, at one path.
struct TwinTrees {
    folder: tempfile::TempDir,
    memory: MemoryFiles,
}

#[derive(Debug, Clone)]
enum TreeEdit {
    Write(PathBuf, String),
    Folder(PathBuf),
    Link(PathBuf, PathBuf),
    Executable(PathBuf, bool),
    Remove(PathBuf),
    /// Long enough for stamps to be believed.
    Rest,
}

impl TwinTrees {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A link that leads out of the tree finds nothing else there, and no cache.
        let root = folder.path().join("above/tree");
        std::fs::create_dir_all(&root).unwrap();
        let memory = MemoryFiles::new(&root);
        Self { folder, memory }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("above/tree")
    }

    fn reader(&self, files: Arc<dyn ReadOnlyFileSystem>, cache: &str) -> TreeReader {
        let always = ["kept.log", "b/node_modules/c", "a.txt/kept/"];
        TreeReader {
            files,
            root: self.root(),
            cache_file: self.folder.path().join(cache),
            always_included: Arc::new(always.into_iter().collect()),
            also_included: BTreeSet::from(["a/out.json".to_owned()]),
            excluded_folder: None,
            own_output_files: BTreeSet::new(),
        }
    }

    fn in_memory(&self) -> TreeReadResult {
        read(&self.reader(Arc::new(self.memory.clone()), "memory"))
    }

    fn on_disk(&self) -> TreeReadResult {
        read(&self.reader(Arc::new(RealFileSystem), "disk"))
    }

    /// Does it to both, if it can be done.
    fn apply(&self, edit: &TreeEdit) {
        let full = |path: &Path| self.root().join(path);
        let make_room = |path: &Path| std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Two edits never happen in one moment.
        self.memory.pass(Duration::from_millis(1));
        match edit {
            TreeEdit::Write(path, content) => {
                let path = full(path);
                if self.memory.write(&path, content.as_bytes()) {
                    make_room(&path);
                    std::fs::write(path, content).unwrap();
                }
            }
            TreeEdit::Folder(path) => {
                let path = full(path);
                if self.memory.make_folder(&path) {
                    std::fs::create_dir_all(path).unwrap();
                }
            }
            TreeEdit::Link(path, target) => {
                let path = full(path);
                if self.memory.make_link(&path, target) {
                    make_room(&path);
                    symlink(target, path).unwrap();
                }
            }
            TreeEdit::Executable(path, executable) => {
                let path = full(path);
                if self.memory.set_executable(&path, *executable) {
                    let mode = if *executable { 0o755 } else { 0o644 };
                    let permissions = std::fs::Permissions::from_mode(mode);
                    std::fs::set_permissions(path, permissions).unwrap();
                }
            }
            TreeEdit::Remove(path) => {
                let path = full(path);
                match self.memory.remove(&path) {
                    Some(FileKind::Folder) => std::fs::remove_dir_all(path).unwrap(),
                    Some(_) => std::fs::remove_file(path).unwrap(),
                    None => {}
                }
            }
            TreeEdit::Rest => self.memory.pass(AT_REST),
        }
    }
}

fn read(reader: &TreeReader) -> TreeReadResult {
    let names = ["all", "some", "ignored"].map(VerifierName::from);
    let globs = |globs: &[&str]| -> Vec<String> { globs.iter().map(|&g| g.to_owned()).collect() };
    let views = [
        (globs(&[]), globs(&["**/out.json"])),
        (globs(&["a/**", "*.txt"]), globs(&["a/b"])),
        (globs(&["node_modules/**", ".env"]), globs(&[])),
    ];
    let views: Vec<UncompiledVerifierGlobs<'_>> = names
        .iter()
        .zip(&views)
        .map(|(name, (inputs, outputs))| UncompiledVerifierGlobs {
            name,
            inputs,
            outputs,
        })
        .collect();
    let reading = reader
        .read_tree(&views, TreeReadTimeoutAndCancel::default())
        .unwrap();
    assert!(reading.cache_error.is_none());
    reading
}

fn path() -> impl Strategy<Value = PathBuf> {
    let name = prop::sample::select(vec![
        "a",
        "b",
        "c",
        "a.txt",
        "a-b",
        "kept",
        "kept.log",
        "x.log",
        "out.json",
        ".env",
        "node_modules",
        "target",
        "Cargo.toml",
        ".git",
        ".checkrein",
    ]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.iter().collect())
}

fn edit() -> impl Strategy<Value = TreeEdit> {
    let content = prop::sample::select(vec!["", "1", "2", "in more pieces than one", "AND MORE"]);
    let ignored = prop::sample::select(vec![
        "*.log\n",
        "/a\n!a.txt\n",
        "b/\n.env\n",
        "*\n",
        "*\n!*/\n!c\n",
        "[\nnode_modules",
        "\u{feff}c\n",
    ]);
    let target = prop::sample::select(vec!["a", "..", "../b", "nowhere", "a/b/c", "."]);
    let ignore_file = || {
        let folder = path();
        prop_oneof![
            Just(PathBuf::from(".gitignore")),
            folder.prop_map(|folder| folder.join(".gitignore")),
        ]
    };
    prop_oneof![
        6 => (path(), content).prop_map(|(path, text)| TreeEdit::Write(path, text.to_owned())),
        2 => (ignore_file(), ignored).prop_map(|(path, text)| TreeEdit::Write(path, text.to_owned())),
        1 => path().prop_map(TreeEdit::Folder),
        1 => (path(), target).prop_map(|(path, target)| TreeEdit::Link(path, target.into())),
        1 => (path(), any::<bool>()).prop_map(|(path, set)| TreeEdit::Executable(path, set)),
        2 => path().prop_map(TreeEdit::Remove),
        1 => ignore_file().prop_map(TreeEdit::Remove),
        2 => Just(TreeEdit::Rest),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// On disk every stamp is young and each file is read; in memory most come out of the stat cache.
    #[test]
    fn both_are_read_alike_after_each_edit(edits in prop::collection::vec(
        prop::collection::vec(edit(), 1..8), 1..6,
    )) {
        let twins = TwinTrees::new();
        let nothing = twins.in_memory();
        let mut before: Option<(TreeReadResult, TreeReadResult)> = None;
        for edits in &edits {
            for edit in edits {
                twins.apply(edit);
            }
            let (disk, memory) = (twins.on_disk(), twins.in_memory());
            prop_assert_eq!(&disk.fact, &memory.fact);
            prop_assert_eq!(&disk.views, &memory.views);
            prop_assert_eq!(disk.files, memory.files);
            prop_assert_eq!(disk.left_out, memory.left_out);
            prop_assert_eq!(disk.packages_digest(), memory.packages_digest());
            prop_assert_eq!(disk.changed_paths_between_readings(&memory, None), Vec::<String>::new());
            prop_assert!(nothing.changed_paths_between_readings(&memory, None).is_sorted());
            if let Some((disk_before, memory_before)) = &before {
                prop_assert_eq!(
                    disk_before.changed_paths_between_readings(&disk, None),
                    memory_before.changed_paths_between_readings(&memory, None)
                );
            }
            // And once more, with nothing new.
            prop_assert_eq!(&twins.in_memory().fact, &memory.fact);
            before = Some((disk, memory));
        }
    }
}

/// Enough folders for threads of their own, and names that sort otherwise with a `/` behind them.
#[test]
fn threads_change_nothing() {
    let twins = TwinTrees::new();
    let nothing = twins.in_memory();
    let mut written = Vec::new();
    for n in 0..200 {
        for name in ["a/b", "a-b", "a", "a.b", "a0/deep/er"] {
            let name = format!("{}/{name}/{}/file", n % 9, n);
            assert!(twins.memory.write(&twins.root().join(&name), b"1"));
            written.push(name);
        }
        for name in ["empty", "a/b.rs", "a/b-"] {
            let name = format!("{}/{name}{}", n % 9, n);
            assert!(twins.memory.make_folder(&twins.root().join(&name)));
            written.push(name);
        }
    }
    written.sort_unstable();
    let one = twins.in_memory();
    assert_eq!(nothing.changed_paths_between_readings(&one, None), written);
    let four = twins.memory.with_threads(4);
    for _ in 0..2 {
        let four = read(&twins.reader(Arc::new(four.clone()), "four"));
        assert_eq!(four.fact, one.fact);
        assert_eq!(nothing.changed_paths_between_readings(&four, None), written);
        twins.memory.pass(AT_REST);
    }
}

#[test]
fn what_is_at_rest_is_not_opened_again() {
    let twins = TwinTrees::new();
    let file = twins.root().join("file");
    twins.memory.write(&file, b"content");
    let opened = || {
        let before = twins.memory.opened();
        let reading = twins.in_memory();
        (twins.memory.opened() - before, reading.fact.tree)
    };
    let (_, digest) = opened();
    assert_eq!(opened(), (1, digest), "it is young");
    twins.memory.pass(AT_REST);
    assert_eq!(opened(), (1, digest), "and was when it was read last");
    assert_eq!(opened(), (0, digest));
}

/// A file that is written while it is read is of neither content, and nothing of it is remembered.
#[test]
fn a_torn_read_is_not_remembered() {
    let twins = TwinTrees::new();
    let file = twins.root().join("file");
    let digest_of = |content: &[u8]| {
        twins.memory.write(&file, content);
        twins.memory.pass(AT_REST);
        twins.in_memory().fact.tree
    };
    let (new, old) = (digest_of(b"NEW CONTENT"), digest_of(b"old content"));
    twins.memory.write(&file, b"old content");
    twins.memory.pass(AT_REST);
    twins.memory.tear(&file, b"NEW CONTENT");
    let torn = twins.in_memory().fact.tree;
    assert!(torn != new && torn != old);
    twins.memory.pass(AT_REST);
    assert_eq!(twins.in_memory().fact.tree, new);
}

/// The stamp of the file is as it was when its folder was listed, but another file was read.
#[test]
fn what_stood_there_for_a_moment_is_not_remembered_as_the_file() {
    let twins = TwinTrees::new();
    let file = twins.root().join("file");
    twins.memory.write(&file, b"content");
    let right = twins.in_memory().fact.tree;
    twins.memory.pass(AT_REST);
    twins.memory.replace_briefly(&file, b"another");
    assert_ne!(twins.in_memory().fact.tree, right);
    assert_eq!(twins.in_memory().fact.tree, right);
}

#[test]
fn a_file_that_cannot_be_read_differs_from_each_that_can() {
    let twins = TwinTrees::new();
    let file = twins.root().join("file");
    twins.memory.write(&file, b"content");
    let whole = twins.in_memory().fact.tree;
    twins.memory.break_file(Some(&file));
    let broken = twins.in_memory().fact.tree;
    assert_ne!(broken, whole);
    assert_eq!(twins.in_memory().fact.tree, broken);
    twins.memory.break_file(None);
    assert_eq!(twins.in_memory().fact.tree, whole);
}

/// A watch takes its time from the same clock.
#[test]
fn a_file_that_is_gone_for_long_is_seen_to_be() {
    let twins = TwinTrees::new();
    let file = twins.root().join("file");
    let gone_for = |time: Duration| {
        twins.memory.write(&file, b"content");
        let reading = twins.in_memory();
        let mut watch = reading.file_content_watch(&twins.root(), &["file".to_owned()]);
        watch.record_changes_of_watched_files();
        twins.memory.remove(&file);
        watch.record_changes_of_watched_files();
        twins.memory.pass(time);
        watch.record_changes_of_watched_files();
        twins.memory.write(&file, b"content");
        watch.record_changes_of_watched_files();
        watch.files_differing_too_long()
    };
    assert_eq!(gone_for(Duration::from_millis(90)), Vec::<String>::new());
    assert_eq!(gone_for(Duration::from_millis(110)), ["file"]);
}
