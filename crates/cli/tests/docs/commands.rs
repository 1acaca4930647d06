//! Commands on the pages, read by the real command line: a flag that is not there, or not there
//! any more, is found.

use std::process::Command;

use super::{blocks, pages, read};

/// Commands that the pages tell people to type: prompts in `console` blocks, and code in a line.
fn typed(text: &str) -> Vec<String> {
    let consoles = blocks(text, "console");
    let mut found: Vec<String> = consoles
        .iter()
        .flat_map(|block| block.lines())
        .filter_map(|line| line.strip_prefix("$ "))
        .map(str::to_owned)
        .collect();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found.retain(|command| command == "checkrein" || command.starts_with("checkrein "));
    found
}

/// The words up to what is not checkrein's any more: `--`, a pipe, a comment.
fn words(command: &str) -> Vec<String> {
    let words = shlex::split(command).unwrap_or_else(|| panic!("cannot be read: {command}"));
    words
        .into_iter()
        .skip(1)
        .take_while(|word| !["--", "|", ">", "&&", ";", "&"].contains(&word.as_str()))
        .collect()
}

/// Whether the command line takes these words. Help comes after them, so nothing is done.
fn complaint(words: &[String]) -> Option<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_checkrein"));
    let out = command.args(words).arg("--help").output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    (out.status.code() != Some(0)).then_some(said)
}

#[test]
fn the_command_line_takes_what_the_pages_type() {
    let mut wrong = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for page in pages() {
        // Designs speak of what will be, the changelog of what was.
        if page.starts_with("docs/design/") || page == "CHANGELOG.md" {
            continue;
        }
        for command in typed(&read(&page)) {
            let words = words(&command);
            // The hook reads its arguments by itself; the settings tests look at them.
            if words.first().is_some_and(|first| first == "hook") || !seen.insert(words.clone()) {
                continue;
            }
            if let Some(said) = complaint(&words) {
                wrong.push(format!("{page}: {command}\n{said}"));
            }
        }
    }
    assert!(seen.len() > 12, "only {seen:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_flag_that_is_not_there_is_found() {
    for command in ["checkrein run --never", "checkrein frobnicate"] {
        assert!(complaint(&words(command)).is_some(), "{command}");
    }
}
