//! What was recorded once is read, replayed and gone on with for ever. Golden files are what builds
//! of their time wrote: logs, stores, `--json` documents, each in its folder. Here today's build
//! does the same again, and must do it as the newest file of each name has it; that older ones
//! still hold is tested beside them. `crates/core/tests/golden/README.md` says how one is added.

mod documents;
mod logs;
mod shape;
mod stores;
mod stories;
mod stories_of_models;
mod stories_of_people;
mod stories_of_the_library;

use std::path::{Path, PathBuf};

/// Set, what is missing is written: never anything in the place of what is there.
const WRITE: &str = "CHECKREIN_WRITE_GOLDEN";

fn is_writing() -> bool {
    std::env::var_os(WRITE).is_some()
}

/// The newest golden file of this name in a folder of the repo, `NAME.N.ENDING`, and its N.
fn newest(folder: &str, name: &str, ending: &str) -> Option<(u32, PathBuf)> {
    let numbered = |path: PathBuf| {
        let file = path.file_name()?.to_str()?;
        let number = file.strip_prefix(name)?.strip_prefix('.')?;
        let number = number.strip_suffix(ending)?.strip_suffix('.')?;
        Some((number.parse().ok()?, path))
    };
    let files = std::fs::read_dir(in_repo(folder)).unwrap();
    let paths = files.map(|entry| entry.unwrap().path());
    paths.filter_map(numbered).max()
}

/// Where the one after it goes.
fn next(folder: &str, name: &str, ending: &str) -> PathBuf {
    let number = newest(folder, name, ending).map_or(1, |(number, _)| number + 1);
    in_repo(folder).join(format!("{name}.{number}.{ending}"))
}

fn in_repo(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder)
}

/// What a golden file says, and what today's build says, line by line.
#[track_caller]
fn same(file: &Path, recorded: &[String], today: &[String]) {
    let at = recorded
        .iter()
        .zip(today)
        .position(|(recorded, today)| recorded != today)
        .unwrap_or(recorded.len().min(today.len()));
    let line = |lines: &[String]| lines.get(at).map_or("nothing", String::as_str).to_owned();
    assert!(
        recorded == today,
        "today's build does not write what {} has. At line {}\n  it has   {}\n  today is {}\n\
         If that is meant, add a file beside it: {WRITE}=1 cargo test -p checkrein-cli --test it golden::",
        file.display(),
        at + 1,
        line(recorded),
        line(today),
    );
}

#[test]
fn a_golden_file_is_small_and_all_of_them_are() {
    let mut all = 0;
    for folder in [logs::FOLDER, stores::FOLDER, documents::FOLDER] {
        for entry in std::fs::read_dir(in_repo(folder)).unwrap() {
            let entry = entry.unwrap();
            let size = entry.metadata().unwrap().len();
            // Each table of a store takes a page at least.
            assert!(size <= 160 * 1024, "{:?}: {size} bytes", entry.path());
            all += size;
        }
    }
    assert!(all <= 4 * 1024 * 1024, "{all} bytes");
}
