//! What git tracks, read in process, beside what `git ls-files --cached` says of the same
//! repository.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![cfg(unix)]

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use checkrein_verifiers::git::{
    GitPathsFromEnvironment, GitReadError, GitTrackedPaths, read_tracked_paths,
};
use checkrein_verifiers::tree::git_tracked_files;
use world::VerifierFixture;

/// Git as a test starts it: nothing of this account's settings counts.
fn git_command(world: &VerifierFixture, folder: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env("HOME", world.outside())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "t")
        .env("GIT_AUTHOR_EMAIL", "t@example.com")
        .env("GIT_COMMITTER_NAME", "t")
        .env("GIT_COMMITTER_EMAIL", "t@example.com")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE");
    command
}

/// Runs a shell script of git commands in the tree.
fn script(world: &VerifierFixture, script: &str) {
    let mut git = git_command(world, &world.root());
    let mut shell = Command::new("sh");
    shell.args(["-euc", script]).current_dir(world.root());
    for (name, value) in git.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let done = shell.output().unwrap();
    assert!(
        done.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    // Git must be there at all.
    assert!(git.arg("--version").output().unwrap().status.success());
}

fn listed_by_git(
    world: &VerifierFixture,
    folder: &Path,
    env: &[(&str, String)],
) -> BTreeSet<Vec<u8>> {
    let mut git = git_command(world, folder);
    git.envs(env.iter().map(|(name, value)| (name, value)));
    // A sparse index is shown in full.
    let out = git
        .args(["ls-files", "-z", "--cached", "--stage"])
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let mut names = BTreeSet::new();
    for line in out.stdout.split(|byte| *byte == 0) {
        let Some(at) = line.iter().position(|byte| *byte == b'\t') else {
            continue;
        };
        let name = &line[at + 1..];
        names.insert(name.to_vec());
        // Git lists those of submodules only where its config knows them.
        let inner = folder.join(std::ffi::OsStr::from_bytes(name));
        let is_link = inner.is_symlink();
        if line.starts_with(b"160000") && !is_link && inner.join(".git").exists() {
            let inside = listed_by_git(world, &inner, &[]);
            names.extend(inside.iter().map(|file| [name, file].join(&b'/')));
        }
    }
    names
}

fn in_an_hour() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

/// The same names, where the folders of a sparse index stand for all that git lists in them.
fn assert_same(world: &VerifierFixture, folder: &Path, what: &str) -> GitTrackedPaths {
    let read = read_tracked_paths(folder, &GitPathsFromEnvironment::default(), in_an_hour())
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let listed = listed_by_git(world, folder, &[]);
    let stands_for = |name: &[u8], sparse: &[u8]| {
        sparse.is_empty() || name.starts_with(sparse) && name.get(sparse.len()) == Some(&b'/')
    };
    let rest: BTreeSet<Vec<u8>> = listed
        .iter()
        .filter(|name| !read.folders.iter().any(|sparse| stands_for(name, sparse)))
        .cloned()
        .collect();
    assert_eq!(read.files, rest, "{what}");
    for sparse in &read.folders {
        assert!(
            listed.iter().any(|name| stands_for(name, sparse)),
            "{what}: nothing is tracked in {sparse:?}"
        );
    }
    read
}

/// Name of a state, and the script that leads to it.
const STATES: &[(&str, &str)] = &[
    ("nothing was ever added", ""),
    ("added, no commit", "git add -A"),
    ("a commit", "git add -A; git commit -qm x"),
    (
        "all is removed",
        "git add -A; git commit -qm x; git rm -qr --cached .",
    ),
    (
        "renamed",
        "git add -A; git commit -qm x; git mv a/one a/uno; git mv b c",
    ),
    ("intent to add", "git add -N a/one b"),
    (
        "skip-worktree and assume-unchanged",
        "git add -A; git update-index --skip-worktree a/one; git update-index --assume-unchanged b/two",
    ),
    (
        "executable, link",
        "chmod +x a/one; ln -s one a/link; git add -A",
    ),
    (
        "a conflict",
        "git add -A; git commit -qm x; git checkout -qb o; echo o > a/one; git rm -q b/two; git commit -qam o; \
         git checkout -q -; echo m > a/one; echo m > b/two; git commit -qam m; git merge -q o || true; \
         git ls-files -u | grep -q .",
    ),
    (
        "names that are hard to write",
        "printf x > \"$(printf 'n\\303\\274 \\377\\n\"x')\"; mkdir -p 'a/ b'; echo > 'a/ b/-c'; git add -A",
    ),
    (
        "long names",
        "for i in 1 2 3; do d=$(printf '%0200d' $i); mkdir -p $d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d; done; \
         d=$(printf '%0200d' 1); echo > $d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/$d/f; git add -A",
    ),
    (
        "a submodule",
        "git init -q sub; git -C sub commit -q --allow-empty -m s; git add -A",
    ),
    (
        "sparse checkout",
        "git add -A; git commit -qm x; git sparse-checkout set --cone --no-sparse-index a",
    ),
    (
        "sparse checkout by patterns",
        "git add -A; git commit -qm x; git sparse-checkout set --no-cone '/a/*' '!b'",
    ),
    (
        "sparse index",
        "mkdir -p d/e/f; echo > d/e/f/g; echo > d/h; git add -A; git commit -qm x; \
         git sparse-checkout set --cone --sparse-index a",
    ),
    (
        "split index without a change",
        "git add -A; git update-index --split-index",
    ),
    (
        "split index with additions, changes and deletions",
        "for i in $(seq 300); do echo $i > b/$i; done; git add -A; git commit -qm x; git config splitIndex.maxPercentChange 100; \
         git update-index --split-index; echo n > a/new; git add a; echo c > a/one; git add a/one; \
         git rm -q b/two b/100 b/101 b/102 b/2*; git mv b/7 b/seven; ls .git/sharedindex.*",
    ),
    (
        "split index whose base is gone again",
        "git add -A; git update-index --split-index; git add -A; git update-index --no-split-index",
    ),
    (
        "untracked cache and end-of-index offsets",
        "for i in $(seq 500); do echo $i > b/$i; done; git config index.threads 4; git config core.untrackedCache true; \
         git add -A; git commit -qm x; git update-index --force-untracked-cache; git status",
    ),
    (
        "fsmonitor's extension",
        "printf '#!/bin/sh\\nprintf \"t\\\\0/\\\\0\"\\n' > .git/monitor; chmod +x .git/monitor; git add -A; git commit -qm x; \
         git config core.fsmonitor .git/monitor; git update-index --fsmonitor; git status; grep -q FSMN .git/index",
    ),
    (
        "no digest at the end",
        "git config index.skipHash true; git add -A",
    ),
    (
        "a submodule in place of a file of a split index",
        "git add -A; git config splitIndex.maxPercentChange 100; git update-index --split-index; rm b/two; \
         git init -q b/two; echo > b/two/in; git -C b/two add in; git -C b/two commit -qm s; git add b/two",
    ),
    (
        "a file in place of a submodule of a split index",
        "rm b/two; git init -q b/two; echo > b/two/in; git -C b/two add in; git -C b/two commit -qm s; git add -A; \
         git config splitIndex.maxPercentChange 100; git update-index --split-index; mv b/two b/moved; echo > b/two; \
         git add b/two; ls .git/sharedindex.*",
    ),
    (
        "submodules with files that their own ignore files name",
        "git init -q sub; echo '*.gen' > sub/.gitignore; echo > sub/a.gen; mkdir -p sub/deep; echo > sub/deep/b.gen; \
         git -C sub add -f -A; git -C sub commit -qm s; git init -q sub/in; echo > sub/in/c.gen; git -C sub/in add -f c.gen; \
         git -C sub/in commit -qm i; git -C sub add in; git add -A",
    ),
    (
        "a submodule whose folder is gone, one without a repository, one behind a link",
        "for s in gone bare link; do git init -q $s; echo > $s/f; git -C $s add f; git -C $s commit -qm s; done; git add -A; \
         rm -rf gone bare/.git; mv link ../behind; ln -s ../behind link",
    ),
    (
        "a submodule with a split and sparse index",
        "git init -q sub; mkdir -p sub/d/e sub/k; echo > sub/d/e/f; echo > sub/k/f; git -C sub add -A; git -C sub commit -qm s; \
         git -C sub sparse-checkout set --cone --sparse-index k; git add -A",
    ),
    (
        "a config of the worktree that git does not read",
        "git add -A; printf '[core]\\n\\tworktree = /\\n' > .git/config.worktree",
    ),
    (
        "a config of the worktree that git is told not to read",
        "git add -A; printf '[core]\\n\\tworktree = /\\n' > .git/config.worktree; git config extensions.worktreeConfig off",
    ),
    (
        "a config of the worktree that agrees",
        "git add -A; git config extensions.worktreeConfig true; git config core.worktree /; \
         git --git-dir .git --work-tree . config --worktree core.worktree ..",
    ),
    (
        "resolve-undo",
        "git add -A; git commit -qm x; git checkout -qb o; echo o > a/one; git commit -qam o; \
         git checkout -q -; echo m > a/one; git commit -qam m; git merge -q o || true; git add a/one",
    ),
];

#[test]
fn the_names_are_those_that_git_lists() {
    let mut different = BTreeSet::new();
    for (format, versions) in [("sha1", &["2", "3", "4"][..]), ("sha256", &["4"])] {
        for version in versions {
            for (name, made) in STATES {
                let world = VerifierFixture::new();
                world.write("a/one", "1");
                world.write("b/two", "2");
                world.write(".gitignore", "*.log\n");
                let what = format!("{name}, {format}, version {version}");
                script(
                    &world,
                    &format!(
                        "git init -q --object-format={format} .; git config index.version {version}; {made}"
                    ),
                );
                let read = assert_same(&world, &world.root(), &what);
                different.insert(format!("{read:?}"));
                for below in ["a", "b", "d/e"] {
                    if world.path(below).is_dir() {
                        assert_same(&world, &world.path(below), &format!("{what}, in {below}"));
                    }
                }
            }
        }
    }
    assert!(
        different.len() >= 10,
        "the states differ: {}",
        different.len()
    );
}

#[test]
fn a_folder_outside_of_a_sparse_checkout_is_tracked_as_a_whole() {
    let world = VerifierFixture::new();
    world.write("a/one", "1");
    world.write("d/e/two", "2");
    script(
        &world,
        "git init -q; git add -A; git commit -qm x; git sparse-checkout set --cone --sparse-index a",
    );
    world.write("d/e/two", "back again");
    let names = |folder: &str| {
        let names = git_tracked_files(
            &world.path(folder),
            &BTreeMap::new(),
            Duration::from_secs(60),
        )
        .unwrap();
        names.iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["a/one", "d/"]);
    assert_eq!(names("d/e"), ["/"]);
    assert_eq!(names("a"), ["one"]);
}

#[test]
fn linked_worktrees_submodules_and_folders_elsewhere() {
    let world = VerifierFixture::new();
    world.write("a/one", "1");
    script(
        &world,
        "git init -q .; git add -A; git commit -qm x; git worktree add -q ../linked; echo 2 > ../linked/two; git -C ../linked add two; \
         git init -q --separate-git-dir=../apart ../other; echo 3 > ../other/three; git -C ../other add -A; \
         git init -q ../lib; echo 4 > ../lib/four; git -C ../lib add -A; git -C ../lib commit -qm l; \
         git -c protocol.file.allow=always submodule --quiet add ../lib lib; \
         git commit -qm l; git -C ../linked checkout -q --detach $(git rev-parse HEAD); \
         git -C ../linked -c protocol.file.allow=always submodule --quiet update --init; \
         mkdir ../through; ln -s ../tree/.git ../through/.git",
    );
    for folder in [
        "tree",
        "linked",
        "other",
        "tree/lib",
        "linked/lib",
        "tree/a",
        "through",
    ] {
        let read = assert_same(&world, &world.outside().join(folder), folder);
        assert!(!read.files.is_empty(), "{folder}");
    }
    // A link to a folder of the tree is that folder.
    symlink(world.path("a"), world.outside().join("link")).unwrap();
    let read = read_tracked_paths(
        &world.outside().join("link"),
        &GitPathsFromEnvironment::default(),
        in_an_hour(),
    )
    .unwrap();
    assert_eq!(read.files, [b"one".to_vec()].into());
}

/// Git lists the same by itself where its config knows the submodules.
#[test]
fn files_of_submodules_are_those_that_git_lists() {
    let world = VerifierFixture::new();
    world.write("a/one", "1");
    script(
        &world,
        "git init -q .; git init -q ../lib; echo '*.gen' > ../lib/.gitignore; echo 4 > ../lib/four.gen; git -C ../lib add -f -A; \
         git -C ../lib commit -qm l; git init -q ../deep; echo 5 > ../deep/five; git -C ../deep add -A; git -C ../deep commit -qm d; \
         git -C ../lib -c protocol.file.allow=always submodule --quiet add ../deep sub/deep; git -C ../lib commit -qm s; \
         git -c protocol.file.allow=always submodule --quiet add ../lib a/lib; \
         git -c protocol.file.allow=always submodule --quiet update --init --recursive; git add -A",
    );
    for folder in ["", "a", "a/lib", "a/lib/sub"] {
        let read = assert_same(&world, &world.path(folder), folder);
        let out = git_command(&world, &world.path(folder))
            .args(["ls-files", "-z", "--cached", "--recurse-submodules"])
            .output()
            .unwrap();
        let listed = out.stdout.split(|byte| *byte == 0);
        let listed: BTreeSet<_> = listed.filter(|name| !name.is_empty()).collect();
        assert!(
            listed.iter().any(|name| name.ends_with(b"five")),
            "{folder}"
        );
        for name in listed {
            assert!(read.files.contains(name), "{folder}: {name:?}");
        }
    }
    assert!(
        assert_same(&world, &world.root(), "top")
            .files
            .contains(&b"a/lib/four.gen"[..])
    );
}

/// A submodule's `.git` is anybody's to write: it leads neither out of the repository nor in a
/// circle, and what cannot be read is not nothing.
#[test]
fn submodules_that_lead_elsewhere() {
    for (name, planted, expected) in [
        (
            "another repository",
            "git init -q ../other; echo > ../other/x; git -C ../other add x; echo \"gitdir: ../../other/.git\" > sub/.git",
            Err("leads out of"),
        ),
        (
            "a link to another repository",
            "git init -q ../other; ln -s ../../other/.git sub/.git",
            Err("leads out of"),
        ),
        (
            "a common folder elsewhere",
            "git init -q ../other; mkdir sub/.git; cp .git/HEAD .git/index sub/.git; echo ../../../other/.git > sub/.git/commondir",
            Err("leads out of"),
        ),
        (
            "nowhere",
            "echo 'gitdir: nowhere' > sub/.git",
            Err("does not lead to a git repository"),
        ),
        (
            "itself",
            "echo 'gitdir: .git' > sub/.git",
            Err("does not lead to a git repository"),
        ),
        (
            "a damaged index",
            "mv ../kept sub/.git; echo > sub/.git/index",
            Err("the git index cannot be read"),
        ),
        (
            "a pipe for an index",
            "mv ../kept sub/.git; rm sub/.git/index; mkfifo sub/.git/index",
            Err("cannot read"),
        ),
        (
            "another worktree",
            "mv ../kept sub/.git; git --git-dir sub/.git config core.worktree /",
            Err("names another folder"),
        ),
        (
            "the repository around it",
            "mkdir -p sub/sub; for d in sub sub/sub; do echo \"gitdir: $PWD/.git\" > $d/.git; done; git config core.worktree \"$PWD\"",
            Err("names another folder"),
        ),
        (
            "the repository around it, which says nothing of its worktree",
            "mkdir -p sub/sub; for d in sub sub/sub; do echo \"gitdir: $PWD/.git\" > $d/.git; done",
            Ok([
                "one",
                "sub",
                "sub/one",
                "sub/sub",
                "sub/sub/one",
                "sub/sub/sub",
            ]
            .as_slice()),
        ),
        (
            "an empty repository",
            "git init -q sub",
            Ok(["one", "sub"].as_slice()),
        ),
    ] {
        let world = VerifierFixture::new();
        world.write("one", "1");
        script(
            &world,
            &format!(
                "git init -q; git init -q sub; git -C sub commit -q --allow-empty -m s; git add -A; mv sub/.git ../kept; {planted}"
            ),
        );
        let read = git_tracked_files(&world.root(), &BTreeMap::new(), Duration::from_secs(60));
        match (read, expected) {
            (Ok(read), Ok(expected)) => {
                assert_eq!(read.iter().collect::<Vec<_>>(), expected, "{name}");
            }
            (Err(error), Err(expected)) => {
                assert!(error.to_string().contains(expected), "{name}: {error}");
            }
            (read, _) => panic!("{name}: {read:?}"),
        }
    }
}

/// What the environment leads git to counts beside what is there without it: whoever sets it
/// must not be able to make files count for nothing.
#[test]
fn what_the_environment_names_counts_too() {
    let world = VerifierFixture::new();
    world.write("a/one", "1");
    world.write("two", "2");
    world.write("three", "3");
    script(
        &world,
        "git init -q; git add a; GIT_INDEX_FILE=.git/second git add two; \
         git init -q --bare ../dots; git --git-dir ../dots --work-tree . add three a; mkdir ../empty; \
         git init -q --bare ../elsewhere; git --git-dir ../elsewhere config core.bare false; \
         git --git-dir ../elsewhere config core.worktree ../tree; git --git-dir ../elsewhere add two",
    );
    let outside = world.outside().display().to_string();
    let dots = format!("{outside}/dots");
    let check = |folder: &str, env: &[(&str, String)]| {
        let folder = world.path(folder);
        let variables: BTreeMap<OsString, OsString> = env
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let read = read_tracked_paths(
            &folder,
            &GitPathsFromEnvironment::git_variables_from_env(&variables),
            in_an_hour(),
        )
        .unwrap();
        let mut listed = listed_by_git(&world, &folder, &[]);
        listed.extend(listed_by_git(&world, &folder, env));
        assert_eq!(read.files, listed, "{env:?}");
        read.files.len()
    };
    let own = |value: &str| value.to_owned();
    assert_eq!(check("", &[]), 1);
    assert_eq!(check("", &[("GIT_INDEX_FILE", own(".git/second"))]), 2);
    assert_eq!(
        check(
            "",
            &[("GIT_INDEX_FILE", format!("{outside}/tree/.git/second"))]
        ),
        2
    );
    assert_eq!(check("a", &[("GIT_INDEX_FILE", own(".git/second"))]), 1);
    assert_eq!(check("", &[("GIT_INDEX_FILE", own("nowhere"))]), 1);
    let tree = |folder: &str| ("GIT_WORK_TREE", folder.to_owned());
    assert_eq!(check("", &[("GIT_DIR", dots.clone()), tree(".")]), 2);
    assert_eq!(
        check("", &[("GIT_DIR", own("../dots")), tree("../tree")]),
        2
    );
    assert_eq!(check("a", &[("GIT_DIR", own("../../dots")), tree("..")]), 1);
    assert_eq!(check("", &[("GIT_DIR", own("../elsewhere"))]), 2);
    assert_eq!(check("", &[("GIT_DIR", own(".git"))]), 1);
    assert_eq!(check("a", &[tree("..")]), 1);
    let variables = |env: &[(&str, &str)]| -> BTreeMap<OsString, OsString> {
        env.iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    };
    for env in [
        &[("GIT_DIR", "../empty")][..],
        &[("GIT_DIR", "/nowhere")],
        &[("GIT_DIR", "")],
        &[("GIT_DIR", "two")],
        &[("GIT_WORK_TREE", "")],
        &[("GIT_INDEX_FILE", "two")],
        &[("GIT_INDEX_FILE", "/dev/zero")],
    ] {
        let read = git_tracked_files(&world.root(), &variables(env), Duration::from_secs(60));
        assert!(read.is_err(), "{env:?}: {read:?}");
        let mut git = git_command(&world, &world.root());
        let fails = !git
            .args(["ls-files"])
            .envs(env.iter().copied())
            .output()
            .unwrap()
            .status
            .success();
        assert!(fails || env[0].1 == "/dev/zero", "{env:?}");
    }
    // As in a hook of git's, which starts at the top.
    for env in [
        &[("GIT_DIR", ".git")][..],
        &[("GIT_DIR", ".git"), ("GIT_WORK_TREE", ".")],
        &[("GIT_DIR", ".git"), ("GIT_INDEX_FILE", ".git/index")],
    ] {
        let read = git_tracked_files(&world.path("a"), &variables(env), Duration::from_secs(60));
        assert_eq!(read.unwrap().to_nul_separated_text(), "one", "{env:?}");
    }
    // The names belong to another folder then.
    for env in [
        [("GIT_DIR", &*dots), ("GIT_WORK_TREE", "nowhere")],
        [("GIT_DIR", &*dots), ("GIT_WORK_TREE", "../empty")],
    ] {
        let read = git_tracked_files(&world.root(), &variables(&env), Duration::from_secs(60));
        assert_eq!(read.unwrap().to_nul_separated_text(), "a/one", "{env:?}");
    }
    // Without a repository there is nothing that they could change.
    let nowhere = VerifierFixture::new();
    for env in [("GIT_WORK_TREE", "."), ("GIT_INDEX_FILE", "x")] {
        let read = git_tracked_files(&nowhere.root(), &variables(&[env]), Duration::from_secs(60));
        assert!(read.unwrap().is_empty());
    }
}

/// What is no repository for git is none for us: the one around it counts.
#[test]
fn folders_that_only_look_like_a_repository() {
    let world = VerifierFixture::new();
    world.write("sub/one", "1");
    world.write("bare/two", "1");
    script(
        &world,
        "git init -q; git add -A; git init -q --bare x.git; git -C x.git config core.bare true",
    );
    std::fs::create_dir(world.path("sub/.git")).unwrap();
    assert_same(&world, &world.path("sub"), "an empty .git");
    std::fs::write(world.path("sub/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    assert_same(&world, &world.path("sub"), "a .git without objects");
    // Git would take this one. Its config can be a stranger's, as ordinary files of a clone.
    for entry in std::fs::read_dir(world.path("x.git")).unwrap() {
        let entry = entry.unwrap();
        std::fs::rename(entry.path(), world.path("bare").join(entry.file_name())).unwrap();
    }
    let read = read_tracked_paths(
        &world.path("bare"),
        &GitPathsFromEnvironment::default(),
        in_an_hour(),
    )
    .unwrap();
    assert_eq!(read.files, [b"two".to_vec()].into());
    let nowhere = VerifierFixture::new();
    let read = read_tracked_paths(
        &nowhere.root(),
        &GitPathsFromEnvironment::default(),
        in_an_hour(),
    )
    .unwrap();
    assert_eq!(read, GitTrackedPaths::default());
}

/// What is done to a repository.
type RepositoryDamage = Box<dyn Fn(&VerifierFixture)>;

/// Where it is not known what is tracked, nobody is told that nothing is.
#[test]
fn what_cannot_be_read_is_not_nothing() {
    let put = |name: &'static str, text: &'static [u8]| {
        move |world: &VerifierFixture| std::fs::write(world.path(name), text).unwrap()
    };
    let pipe = |name: &'static str| {
        move |world: &VerifierFixture| {
            let _ = std::fs::remove_file(world.path(name));
            let made = Command::new("mkfifo").arg(world.path(name)).status();
            assert!(made.unwrap().success());
        }
    };
    let link = |name: &'static str, target: &'static str| {
        move |world: &VerifierFixture| {
            std::fs::remove_file(world.path(name)).unwrap();
            symlink(target, world.path(name)).unwrap();
        }
    };
    let cut = |by: u64| {
        move |world: &VerifierFixture| {
            let file = std::fs::File::options()
                .write(true)
                .open(world.path(".git/index"));
            let file = file.unwrap();
            file.set_len(file.metadata().unwrap().len() - by).unwrap();
        }
    };
    let config = |text: &'static str| {
        move |world: &VerifierFixture| {
            let file = world.path(".git/config");
            let before = std::fs::read_to_string(&file).unwrap();
            std::fs::write(file, before + text).unwrap();
        }
    };
    let shell = |text: &'static str| move |world: &VerifierFixture| script(world, text);
    let cases: Vec<(&str, RepositoryDamage)> = vec![
        ("a pipe for an index", Box::new(pipe(".git/index"))),
        ("a pipe for a config", Box::new(pipe(".git/config"))),
        ("a pipe for a commondir", Box::new(pipe(".git/commondir"))),
        (
            "a device for an index",
            Box::new(link(".git/index", "/dev/zero")),
        ),
        (
            "another file for an index",
            Box::new(link(".git/index", "/etc/passwd")),
        ),
        ("no bytes", Box::new(put(".git/index", b""))),
        (
            "a header only",
            Box::new(put(".git/index", b"DIRC\0\0\0\x02\xff\xff\xff\xff")),
        ),
        ("cut off by one byte", Box::new(cut(1))),
        ("cut off in an entry", Box::new(cut(60))),
        (
            "larger than any index",
            Box::new(|world| {
                let file = std::fs::File::options()
                    .write(true)
                    .open(world.path(".git/index"));
                file.unwrap().set_len(20 << 30).unwrap();
            }),
        ),
        (
            "names of another length",
            Box::new(config("[extensions]\n\tobjectFormat = sha256\n")),
        ),
        (
            "a worktree elsewhere",
            Box::new(config("[core]\n\tworktree = /\n")),
        ),
        (
            "a worktree elsewhere, by a config of its own",
            Box::new(shell(
                "git config extensions.worktreeConfig true; printf '[core]\\n\\tworktree = /\\n' > .git/config.worktree",
            )),
        ),
        (
            "no shared index",
            Box::new(shell(
                "git update-index --split-index; rm .git/sharedindex.*",
            )),
        ),
        (
            "a damaged shared index",
            Box::new(shell(
                "git update-index --split-index; for f in .git/sharedindex.*; do chmod +w $f; echo > $f; done",
            )),
        ),
        (
            "a pointer to nothing",
            Box::new(shell("rm -rf .git; echo 'gitdir: nowhere' > .git")),
        ),
        (
            "no pointer",
            Box::new(shell("rm -rf .git; echo hello > .git")),
        ),
    ];
    for (name, damage) in cases {
        let world = VerifierFixture::new();
        world.write("a/one", "1");
        world.write("b/two", "1");
        script(&world, "git init -q; git add -A; git commit -qm x");
        assert!(
            git_tracked_files(&world.root(), &BTreeMap::new(), Duration::from_secs(60)).is_ok()
        );
        damage(&world);
        let read = git_tracked_files(&world.root(), &BTreeMap::new(), Duration::from_secs(60));
        assert!(
            read.is_err_and(|error| !error.git_error_remedy().is_empty()),
            "{name}"
        );
    }
}

#[test]
fn an_index_is_read_within_its_time() {
    let world = VerifierFixture::new();
    world.write("a/one", "1");
    script(&world, "git init -q; git add -A");
    let late = read_tracked_paths(
        &world.root(),
        &GitPathsFromEnvironment::default(),
        Instant::now(),
    );
    assert!(matches!(late, Err(GitReadError::TooSlow)), "{late:?}");
}

/// Version 4 writes of each name only what differs from the one before. A small file could hold
/// names without end.
#[test]
fn names_are_bounded_as_well() {
    let world = VerifierFixture::new();
    script(&world, "git init -q; git config index.version 4");
    let mut index = b"DIRC\0\0\0\x04".to_vec();
    let count: u32 = 40_000;
    index.extend(count.to_be_bytes());
    for _ in 0..count {
        index.extend([0; 24]);
        index.extend(0o100_644u32.to_be_bytes());
        index.extend([0; 32]);
        index.extend([0x0f, 0xff]);
        // Keeps the whole name before it, and makes it longer.
        index.extend([0]);
        index.extend([b'a'; 20]);
        index.extend([0]);
    }
    index.extend([0; 20]);
    std::fs::write(world.path(".git/index"), &index).unwrap();
    let read = read_tracked_paths(
        &world.root(),
        &GitPathsFromEnvironment::default(),
        in_an_hour(),
    );
    assert!(
        matches!(read, Err(GitReadError::Index(_))),
        "{:?}",
        read.map(|read| read.files.len())
    );
}
