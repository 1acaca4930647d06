//! The digest of real trees: what counts, what does not, what nobody can hide.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![cfg(unix)]

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::ids::VerifierName;
use checkrein_verifiers::file_system::RealFileSystem;
use checkrein_verifiers::tree::{
    ExcludedFileCounts, FileId, PackedNameSet, TreeReadResult, TreeReadTimeoutAndCancel,
    TreeReader, TreeReaderError, UncompiledVerifierGlobs, git_tracked_files,
};
use world::VerifierFixture;

/// A view as a test writes it: name, inputs, outputs.
type ViewSpec<'a> = (&'a str, &'a [&'a str], &'a [&'a str]);

fn reader(world: &VerifierFixture) -> TreeReader {
    TreeReader {
        files: Arc::new(RealFileSystem),
        root: world.root(),
        cache_file: world.outside().join("state/tree-cache"),
        always_included: Arc::new(
            git_tracked_files(&world.root(), &BTreeMap::new(), Duration::from_secs(60)).unwrap(),
        ),
        also_included: BTreeSet::new(),
        excluded_folder: None,
        own_output_files: BTreeSet::new(),
    }
}

fn read(reader: &TreeReader, views: &[ViewSpec<'_>]) -> TreeReadResult {
    let owned: Vec<(VerifierName, Vec<String>, Vec<String>)> = views
        .iter()
        .map(|(name, inputs, outputs)| {
            let text = |globs: &[&str]| globs.iter().map(|&glob| glob.to_owned()).collect();
            (VerifierName::from(*name), text(inputs), text(outputs))
        })
        .collect();
    let views: Vec<UncompiledVerifierGlobs<'_>> = owned
        .iter()
        .map(|(name, inputs, outputs)| UncompiledVerifierGlobs {
            name,
            inputs,
            outputs,
        })
        .collect();
    let reading = reader
        .read_tree(&views, TreeReadTimeoutAndCancel::default())
        .unwrap();
    assert!(reading.cache_error.is_none());
    // Whatever the cache says, a reading without it says the same.
    let mut fresh = reader.clone();
    fresh.cache_file = reader.cache_file.with_file_name("unused");
    let again = fresh
        .read_tree(&views, TreeReadTimeoutAndCancel::default())
        .unwrap();
    assert_eq!(again.fact, reading.fact);
    let _ = std::fs::remove_file(&fresh.cache_file);
    reading
}

fn digest(reader: &TreeReader) -> Digest {
    read(reader, &[]).fact.tree
}

fn git(world: &VerifierFixture, arguments: &[&str]) {
    let status = Command::new("git")
        .arg("-C")
        .arg(world.root())
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .env_remove("GIT_DIR")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "git {arguments:?}");
}

/// A small Python project under git.
fn project() -> VerifierFixture {
    let world = VerifierFixture::new();
    world.write("app/core.py", "def add(a, b):\n    return a + b\n");
    world.write(
        "tests/test_core.py",
        "def test_add(): assert add(1, 2) == 3\n",
    );
    world.write(".gitignore", "*.log\nbuild/\n");
    git(&world, &["init", "-q"]);
    git(&world, &["add", "-A"]);
    git(&world, &["commit", "-q", "-m", "first"]);
    world
}

/// What `change` does to the digest.
fn check(
    world: &VerifierFixture,
    reader: &TreeReader,
    what: &str,
    differs: bool,
    change: impl FnOnce(),
) {
    let before = digest(reader);
    change();
    assert_eq!(digest(reader) != before, differs, "{what}");
    assert!(world.root().exists());
}

#[test]
fn what_counts_and_what_does_not() {
    let world = project();
    let reader = reader(&world);
    let check =
        |what: &str, differs, change: &dyn Fn()| check(&world, &reader, what, differs, change);
    check("nothing", false, &|| {});
    check("an edit", true, &|| {
        world.write("app/core.py", "def add(a, b):\n    return a - b\n")
    });
    check("the edit taken back", true, &|| {
        world.write("app/core.py", "def add(a, b):\n    return a + b\n");
    });
    check("the same bytes written again", false, &|| {
        world.write("app/core.py", "def add(a, b):\n    return a + b\n");
    });
    check("a new file", true, &|| world.write("app/new.py", ""));
    check("a new hidden file", true, &|| world.write(".env", "A=1"));
    check("a file renamed", true, &|| {
        std::fs::rename(world.path("app/new.py"), world.path("app/newer.py")).unwrap();
    });
    check("an executable bit", true, &|| {
        mode(&world, "app/newer.py", 0o755)
    });
    check("another bit", false, &|| {
        mode(&world, "app/newer.py", 0o711)
    });
    check("a symlink", true, &|| {
        symlink("core.py", world.path("app/link")).unwrap()
    });
    check("its target", true, &|| {
        std::fs::remove_file(world.path("app/link")).unwrap();
        symlink("newer.py", world.path("app/link")).unwrap();
    });
    check("a symlink that is a loop", true, &|| {
        symlink("..", world.path("app/up")).unwrap()
    });
    check("an empty folder", true, &|| {
        std::fs::create_dir(world.path("empty")).unwrap()
    });
    check("a pipe, which is not opened", true, &|| {
        let mode = rustix::fs::Mode::RUSR;
        let path = world.path("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    });
    check("an ignored file", false, &|| world.write("debug.log", "x"));
    check("an ignored folder", false, &|| {
        world.write("build/a/b.o", "x")
    });
    check("what pytest leaves", false, &|| {
        world.write("app/__pycache__/core.cpython-312.pyc", "x");
        world.write("tests/__pycache__/test_core.cpython-312-pytest-8.pyc", "x");
        world.write(".pytest_cache/v/cache/lastfailed", "{}");
    });
    check("installed packages", false, &|| {
        world.write("web/node_modules/a/index.js", "x")
    });
    check("a target folder that is no cargo's", true, &|| {
        world.write("app/target/a", "x")
    });
    check("git's own", false, &|| {
        git(&world, &["commit", "-q", "--allow-empty", "-m", "x"])
    });
    check("our own", false, &|| {
        world.write(".checkrein/logs/tests-1.log", "x")
    });
    check("a nested repository's files", true, &|| {
        world.write("sub/a.txt", "x")
    });
    check("a nested repository's git", false, &|| {
        world.write("sub/.git/HEAD", "x")
    });
    check("a pointer to a git folder", false, &|| {
        world.write("sub2/.git", "gitdir: x")
    });
    check("a file deleted", true, &|| {
        std::fs::remove_file(world.path("tests/test_core.py")).unwrap()
    });
    check("cargo's target folder", true, &|| {
        world.write("rust/Cargo.toml", "[package]");
        world.write("rust/target/debug/a", "x");
    });
    check("cargo's target folder, again", false, &|| {
        world.write("rust/target/debug/b", "x")
    });
}

fn mode(world: &VerifierFixture, name: &str, mode: u32) {
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(world.path(name), permissions).unwrap();
}

#[test]
fn tracked_files_cannot_be_hidden() {
    let world = project();
    world.write("app/__pycache__/kept.py", "1");
    world.write("build/generated.py", "1");
    git(&world, &["add", "-f", "-A"]);
    git(&world, &["commit", "-q", "-m", "tracked though ignored"]);
    let reader = reader(&world);
    assert_eq!(
        reader.always_included.iter().collect::<Vec<_>>(),
        [
            ".gitignore",
            "app/__pycache__/kept.py",
            "app/core.py",
            "build/generated.py",
            "tests/test_core.py"
        ]
    );
    let check =
        |what: &str, differs, change: &dyn Fn()| check(&world, &reader, what, differs, change);
    check("a tracked file in a cache folder", true, &|| {
        world.write("app/__pycache__/kept.py", "2")
    });
    check("a tracked file in an ignored folder", true, &|| {
        world.write("build/generated.py", "2")
    });
    check("assume-unchanged", false, &|| {
        git(
            &world,
            &["update-index", "--assume-unchanged", "app/core.py"],
        );
    });
    check("an edit behind it", true, &|| {
        world.write("app/core.py", "cheated")
    });
    check("skip-worktree", false, &|| {
        git(
            &world,
            &["update-index", "--skip-worktree", "tests/test_core.py"],
        );
    });
    check("an edit behind it", true, &|| {
        world.write("tests/test_core.py", "cheated")
    });
    check("untracked for git", false, &|| {
        git(&world, &["rm", "-q", "--cached", "app/core.py"])
    });
    check("an edit behind it", true, &|| {
        world.write("app/core.py", "cheated more")
    });
    check("`*` in the ignore file", true, &|| {
        world.write(".gitignore", "*\n")
    });
    check("an edit behind it", true, &|| {
        world.write("app/core.py", "cheated again")
    });
    check("a private ignore list", false, &|| {
        world.write(".git/info/exclude", "*\n")
    });
    check("an edit behind it", true, &|| {
        world.write("tests/test_core.py", "cheated again")
    });
    // A folder that hides itself shows by its ignore file.
    world.write(".gitignore", "");
    check("an ignore file that ignores itself", true, &|| {
        world.write("app/x/.gitignore", "*\n")
    });
    check("a tracked file deleted", true, &|| {
        std::fs::remove_file(world.path("app/core.py")).unwrap()
    });
    check("a tracked file behind a symlinked folder", true, &|| {
        std::fs::rename(world.path("build"), world.outside().join("build")).unwrap();
        symlink(world.outside().join("build"), world.path("build")).unwrap();
    });
    check("an edit outside the tree", false, &|| {
        world.write("build/generated.py", "3")
    });
}

/// Size, time of modification and inode are as before; only the change time tells.
/// Bytes that this thread has read.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_with_a_hole_of_20_gib_is_not_read_and_cannot_be_edited_unseen() {
    use std::os::unix::fs::FileExt as _;

    let world = project();
    let large = std::fs::File::create(world.path("large.bin")).unwrap();
    large.set_len(20 << 30).unwrap();
    let reader = reader(&world);
    let before = bytes_read();
    let mut seen = BTreeSet::from([digest(&reader).to_hex()]);
    assert!(
        !seen.insert(digest(&reader).to_hex()),
        "nothing was changed"
    );
    let modified = large.metadata().unwrap().modified().unwrap();
    for at in 0..5 {
        // At once, of the same length, and dated back.
        large.write_all_at(b"x", at << 30).unwrap();
        large.set_modified(modified).unwrap();
        assert!(seen.insert(digest(&reader).to_hex()), "edit {at}");
    }
    // A date in the future keeps nobody waiting, and hides nothing.
    large
        .set_modified(modified + Duration::from_secs(1 << 30))
        .unwrap();
    assert!(seen.insert(digest(&reader).to_hex()));
    large.write_all_at(b"y", 7).unwrap();
    assert!(seen.insert(digest(&reader).to_hex()));
    assert!(bytes_read() - before < 64 << 20);
    assert_eq!(read(&reader, &[]).unread, ["large.bin"]);
}

/// A sparse index names a folder instead of the files in it.
#[test]
fn what_a_sparse_index_does_not_name_counts_as_well() {
    let world = project();
    git(
        &world,
        &[
            "sparse-checkout",
            "set",
            "--cone",
            "--sparse-index",
            "tests",
        ],
    );
    let reader = reader(&world);
    assert!(
        reader.always_included.contains_name("app/"),
        "{:?}",
        reader.always_included
    );
    let check = |what: &str, differs: bool, change: &dyn Fn()| {
        check(&world, &reader, what, differs, change);
    };
    check("a file that is back", true, &|| {
        world.write("app/core.py", "1");
    });
    check("an ignore file that names it", true, &|| {
        world.write(".gitignore", "app/\n*.log\n");
    });
    check("an edit under it", true, &|| {
        world.write("app/core.py", "2")
    });
    check("another ignored file there", true, &|| {
        world.write("app/deep/x.log", "2");
    });
    check("a repository there", false, &|| {
        world.write("app/deep/.git/x", "2");
    });
    check("an ignored file elsewhere", false, &|| {
        world.write("tests/x.log", "2");
    });
}

#[test]
fn a_file_dated_back_is_read_again() {
    let world = project();
    let reader = reader(&world);
    let file = world.path("app/core.py");
    let old = std::fs::metadata(&file).unwrap().modified().unwrap() - Duration::from_secs(3600);
    let set = |text: &str| {
        world.write("app/core.py", text);
        std::fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_modified(old)
            .unwrap();
    };
    set("aaaa");
    check(&world, &reader, "dated back", true, || set("bbbb"));
}

#[test]
fn without_any_git() {
    let world = VerifierFixture::new();
    world.write(".gitignore", "*.log\n!keep.log\n/only-here\n");
    world.write("src/.gitignore", "local\n# comment\n[bad\n");
    world.write("src/a.txt", "1");
    let reader = reader(&world);
    assert_eq!(*reader.always_included, PackedNameSet::default());
    let check =
        |what: &str, differs, change: &dyn Fn()| check(&world, &reader, what, differs, change);
    check("an edit", true, &|| world.write("src/a.txt", "2"));
    check("an ignored file", false, &|| world.write("src/x.log", "1"));
    check("an exception", true, &|| world.write("src/keep.log", "1"));
    check("an anchored name", false, &|| world.write("only-here", "1"));
    check("not where it is anchored", true, &|| {
        world.write("src/only-here", "1")
    });
    check("a nested ignore file", false, &|| {
        world.write("src/deep/local/a", "1")
    });
    check("beside it", true, &|| world.write("local", "1"));
    // Ignore files above are read up to a repository's root, and there is none.
    check("an ignore file above", false, &|| {
        std::fs::write(world.outside().join(".gitignore"), "*\n").unwrap();
    });
    check("an edit below it", true, &|| world.write("src/a.txt", "3"));
}

#[test]
fn a_folder_of_a_larger_repository() {
    let world = project();
    world.write("packages/one/src/a.py", "1");
    git(&world, &["add", "-A"]);
    let mut reader = reader(&world);
    reader.root = world.path("packages/one");
    reader.always_included = Arc::new(
        git_tracked_files(&reader.root, &BTreeMap::new(), Duration::from_secs(60)).unwrap(),
    );
    assert_eq!(reader.always_included.to_nul_separated_text(), "src/a.py");
    let check =
        |what: &str, differs, change: &dyn Fn()| check(&world, &reader, what, differs, change);
    check("an edit", true, &|| {
        world.write("packages/one/src/a.py", "2")
    });
    check("what the repository ignores", false, &|| {
        world.write("packages/one/x.log", "2")
    });
    check("outside of it", false, &|| world.write("app/core.py", "2"));
}

#[test]
fn views() {
    let world = project();
    world.write("coverage/a.xml", "1");
    let reader = reader(&world);
    let views: &[ViewSpec<'_>] = &[
        ("tests", &["app", "tests/**"], &["coverage/**"]),
        ("lint", &["app/**/*.py"], &[]),
        ("cover", &["coverage"], &[]),
        ("all", &[], &["report.xml"]),
    ];
    let names = ["tests", "lint", "cover", "all"];
    let check = |what: &str, expected: &[&str], in_tree: bool, change: &dyn Fn()| {
        let before = read(&reader, views);
        change();
        let after = read(&reader, views);
        let moved = |name: &&&str| {
            let name = VerifierName::from(**name);
            let differs = before.fact.verifier_subject_digest(&name)
                != after.fact.verifier_subject_digest(&name);
            assert_eq!(
                !before
                    .changed_paths_between_readings(&after, Some(&name))
                    .is_empty(),
                differs,
                "{what} {name}"
            );
            differs
        };
        let moved: Vec<&str> = names.iter().filter(moved).copied().collect();
        assert_eq!(moved, expected, "{what}");
        assert_eq!(before.fact.tree != after.fact.tree, in_tree, "{what}");
        assert_eq!(
            !before
                .changed_paths_between_readings(&after, None)
                .is_empty(),
            in_tree,
            "{what}"
        );
    };
    check("app", &["tests", "lint", "all"], true, &|| {
        world.write("app/core.py", "2")
    });
    check("tests", &["tests", "all"], true, &|| {
        world.write("tests/test_core.py", "2")
    });
    check("elsewhere", &["all"], true, &|| world.write("README", "2"));
    check(
        "an output that is another's input",
        &["cover"],
        false,
        &|| world.write("coverage/a.xml", "2"),
    );
    check("an output", &[], false, &|| world.write("report.xml", "2"));
    let reading = read(&reader, views);
    let files: Vec<usize> = reading.views.iter().map(|view| view.files).collect();
    assert_eq!((files, reading.files), (vec![2, 1, 1, 4], 4));
    assert_eq!(
        reading.fact.verifier_subject_digest(&"all".into()),
        reading.fact.tree
    );
    // Only `report.xml`: the coverage file counts for somebody.
    assert_eq!(
        reading.left_out,
        ExcludedFileCounts {
            outputs: 1,
            ..ExcludedFileCounts::default()
        }
    );
    assert!(matches!(
        reader.read_tree(
            &[UncompiledVerifierGlobs {
                name: &"x".into(),
                inputs: &["a[".into()],
                outputs: &[]
            }],
            TreeReadTimeoutAndCancel::default()
        ),
        Err(TreeReaderError::Glob { .. })
    ));

    // A view that matches nothing is about everything: else its verdict would never grow stale.
    std::fs::remove_file(world.path("coverage/a.xml")).unwrap();
    check(
        "all, to one that matches nothing",
        &["cover", "all"],
        true,
        &|| world.write("README", "3"),
    );
}

/// The tree is moved by somebody else while a check runs.
/// A glob reaches what ignore files leave out only where it says so before its first wildcard.
#[test]
fn what_inputs_name_counts_though_it_is_ignored() {
    let world = project();
    world.write(".gitignore", "*.log\nbuild/\n.env\ndeps/\nnode_modules\n");
    world.write(".env", "1");
    world.write("deps/a/x.js", "x");
    world.write("node_modules/b/y.js", "y");
    world.write("app/__pycache__/core.pyc", "1");
    let reader = reader(&world);
    let views: [ViewSpec<'_>; 7] = [
        ("env", &[".env"], &[]),
        ("like env", &["./.env*"], &[]),
        ("deps", &["deps/"], &[]),
        ("scripts", &["deps/*/x.*", "node_modules/**"], &[]),
        ("but", &["deps/**"], &["deps/a/**"]),
        ("all", &["**"], &[]),
        ("sources", &["app/**"], &[]),
    ];
    let names = |reading: &TreeReadResult, later: &TreeReadResult| {
        let changed = |(name, ..): &ViewSpec<'_>| {
            let name = VerifierName::from(*name);
            reading.fact.verifier_subject_digest(&name) != later.fact.verifier_subject_digest(&name)
        };
        let of = views.iter().filter(|view| changed(view));
        let names: Vec<&str> = of.map(|(name, ..)| *name).collect();
        (names.join(", "), reading.fact.tree != later.fact.tree)
    };
    let check = |change: &dyn Fn(), expected: &str| {
        let before = read(&reader, &views);
        change();
        let after = read(&reader, &views);
        assert_eq!(names(&before, &after), (expected.to_owned(), false));
    };
    world.write("deps/keep", "1");
    check(&|| world.write(".env", "0"), "env, like env");
    check(&|| world.write("deps/a/x.js", "z"), "deps, scripts");
    check(&|| world.write("deps/new.js", "z"), "deps, but");
    check(&|| world.write("node_modules/b/y.js", "z"), "scripts");
    check(&|| world.write("app/__pycache__/core.pyc", "2"), "");
    check(&|| world.write("app/x.log", "2"), "");
    check(
        &|| std::fs::remove_file(world.root().join(".env")).unwrap(),
        "env, like env",
    );
    // The folder gives way to a link to another.
    check(
        &|| {
            std::fs::remove_dir_all(world.root().join("node_modules")).unwrap();
            symlink(world.outside(), world.root().join("node_modules")).unwrap();
        },
        "scripts",
    );
}

/// A folder counts by its name alone, if it is empty or holds something that counts.
#[test]
fn a_folder_of_ignored_files_does_not_count() {
    let world = project();
    let reader = reader(&world);
    let check =
        |what: &str, differs, change: &dyn Fn()| check(&world, &reader, what, differs, change);
    check("what is in it is ignored", false, &|| {
        world.write("fixtures/a.log", "1")
    });
    check("empty", true, &|| {
        std::fs::remove_file(world.path("fixtures/a.log")).unwrap();
    });
    check("gone", true, &|| {
        std::fs::remove_dir(world.path("fixtures")).unwrap();
    });
}

#[test]
fn changed_paths_name_each_edited_file() {
    let world = project();
    let reader = reader(&world);
    let before = read(&reader, &[("tests", &["app/**"], &[])]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            world.run(
                "echo 2 > app/core.py; rm tests/test_core.py; mkdir docs; echo x > docs/new.md",
            )
        });
    });
    let after = read(&reader, &[("tests", &["app/**"], &[])]);
    // The folder is empty by then.
    let changed = ["app/core.py", "docs/new.md", "tests", "tests/test_core.py"];
    assert_eq!(before.changed_paths_between_readings(&after, None), changed);
    assert_eq!(after.changed_paths_between_readings(&before, None), changed);
    assert_eq!(
        before.changed_paths_between_readings(&after, Some(&"tests".into())),
        ["app/core.py"]
    );
    assert_eq!(
        after.changed_paths_between_readings(&after, None),
        Vec::<String>::new()
    );
}

#[test]
fn odd_names_and_unreadable_files() {
    let world = VerifierFixture::new();
    let odd = |bytes: &[u8]| world.root().join(std::ffi::OsStr::from_bytes(bytes));
    std::fs::write(odd(b"a\xff"), "1").unwrap();
    std::fs::write(odd(b"new\nline"), "1").unwrap();
    let reader = reader(&world);
    let before = read(&reader, &[]);
    std::fs::rename(odd(b"a\xff"), odd(b"a\xfe")).unwrap();
    let after = read(&reader, &[]);
    assert_eq!(
        before.changed_paths_between_readings(&after, None),
        ["a\\xfe", "a\\xff"]
    );

    // A folder where a file's cached content is known, then a file that cannot be opened. Root
    // may open anything; there is no such file to be had then.
    world.write("secret", "1");
    if !rustix::process::geteuid().is_root() {
        check(&world, &reader, "not to be read", true, || {
            mode(&world, "secret", 0o000)
        });
    }
    assert!(matches!(
        TreeReader {
            root: world.path("gone"),
            ..reader
        }
        .read_tree(&[], TreeReadTimeoutAndCancel::default()),
        Err(TreeReaderError::Root { .. })
    ));
}

#[test]
fn a_damaged_cache_is_an_empty_one() {
    let world = project();
    let reader = reader(&world);
    let right = digest(&reader);
    // What is young is not remembered: nobody made the folder yet.
    std::fs::create_dir_all(reader.cache_file.parent().unwrap()).unwrap();
    for damage in [
        "",
        "x",
        "a longer text that is no cache at all, of more than 32 bytes",
    ] {
        std::fs::write(&reader.cache_file, damage).unwrap();
        assert_eq!(digest(&reader), right);
    }
    // A folder in its place: it cannot be saved, and the reading is right all the same.
    let blocked = TreeReader {
        cache_file: world.root(),
        ..reader.clone()
    };
    let reading = blocked
        .read_tree(&[], TreeReadTimeoutAndCancel::default())
        .unwrap();
    assert_eq!(reading.fact.tree, right);
}

fn five_thousand(world: &VerifierFixture) {
    for folder in 0..100 {
        for file in 0..50 {
            world.write(
                &format!("src/m{folder}/f{file}.rs"),
                format!("// {folder} {file}\n").repeat(40),
            );
        }
    }
    world.write(".gitignore", "*.log\n/target/\n*.tmp\nnode_modules\n");
}

#[test]
fn five_thousand_files() {
    let world = VerifierFixture::new();
    five_thousand(&world);
    git(&world, &["init", "-q"]);
    git(&world, &["add", "-A"]);
    let reader = reader(&world);
    assert_eq!(reader.always_included.len(), 5_001);
    let first = read(&reader, &[("lint", &["src/m1/**"], &[])]);
    assert_eq!((first.files, first.views[0].files), (5_001, 50));
    assert_eq!(
        first.fact,
        read(&reader, &[("lint", &["src/m1/**"], &[])]).fact
    );

    world.write("src/m7/f7.rs", "changed");
    let second = read(&reader, &[]);
    assert_eq!(
        first.changed_paths_between_readings(&second, None),
        ["src/m7/f7.rs"]
    );

    assert!(matches!(
        reader.read_tree(
            &[],
            TreeReadTimeoutAndCancel {
                time: Some(Duration::ZERO),
                cancelled: None
            }
        ),
        Err(TreeReaderError::TooSlow {
            limit: Duration::ZERO
        })
    ));
}

/// Not a test of right and wrong: `cargo test --release -- --ignored --nocapture how_fast`.
#[test]
#[ignore = "prints times"]
fn how_fast() {
    let world = VerifierFixture::new();
    five_thousand(&world);
    git(&world, &["init", "-q"]);
    git(&world, &["add", "-A"]);
    let reader = reader(&world);
    let names = ["tests", "lint", "types"].map(VerifierName::from);
    let globs = |text: &str| vec![text.to_owned()];
    let (rust, cargo, out) = (globs("src/**/*.rs"), globs("Cargo.*"), globs("coverage/**"));
    let views = [
        UncompiledVerifierGlobs {
            name: &names[0],
            inputs: &[],
            outputs: &out,
        },
        UncompiledVerifierGlobs {
            name: &names[1],
            inputs: &rust,
            outputs: &[],
        },
        UncompiledVerifierGlobs {
            name: &names[2],
            inputs: &cargo,
            outputs: &[],
        },
    ];
    for label in ["cold", "young", "warm", "warm", "warm", "warm"] {
        let started = std::time::Instant::now();
        reader
            .read_tree(&views, TreeReadTimeoutAndCancel::default())
            .unwrap();
        println!("{label}: {:?}", started.elapsed());
        // Out of the time in which a file counts as young.
        std::thread::sleep(Duration::from_millis(150));
    }
}

#[test]
fn our_own_state_is_no_part_of_the_tree() {
    let world = project();
    world.write("state/store.db", "1");
    let reader = TreeReader {
        excluded_folder: Some(world.path("state")),
        ..reader(&world)
    };
    let before = digest(&reader);
    world.write("state/store.db", "2");
    assert_eq!(digest(&reader), before);
    world.write("other/store.db", "2");
    assert_ne!(digest(&reader), before);
}

#[test]
fn what_we_print_into_is_no_part_of_the_tree_unless_it_is_tracked() {
    let world = project();
    let id =
        |name: &str| FileId::from_metadata(&std::fs::metadata(world.path(name)).unwrap()).unwrap();
    let plain = reader(&world);
    let before = digest(&plain);
    world.write("out.json", "1");
    assert_ne!(digest(&plain), before);
    let reader = TreeReader {
        own_output_files: [id("out.json"), id("app/core.py")].into(),
        ..plain
    };
    assert_eq!(digest(&reader), before);
    std::fs::rename(world.path("out.json"), world.path("other.json")).unwrap();
    assert_eq!(digest(&reader), before);
    world.write("app/core.py", "2");
    assert_ne!(digest(&reader), before);
}

#[test]
fn a_reading_that_is_cancelled_is_given_up() {
    let world = project();
    let cancelled = std::sync::atomic::AtomicBool::new(true);
    let limits = TreeReadTimeoutAndCancel {
        time: None,
        cancelled: Some(&cancelled),
    };
    assert!(matches!(
        reader(&world).read_tree(&[], limits),
        Err(TreeReaderError::Cancelled)
    ));
}
