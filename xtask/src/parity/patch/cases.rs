//! Generates trees and V4A patches from a seed. Most patches are well meant, with the slips that
//! models make; some are broken.

use std::collections::BTreeMap;

use super::random::PatchRng;

/// A tree and a patch for it.
pub(super) struct PatchParityCase {
    pub(super) files: BTreeMap<String, String>,
    /// Links and their targets.
    pub(super) links: Vec<(String, String)>,
    pub(super) patch: String,
}

const NAMES: &[&str] = &[
    "f.txt",
    "src/main.rs",
    "src/lib.rs",
    "docs/a b.md",
    "g",
    "src/deep/er/x.py",
    "ü.txt",
];

const LINES: &[&str] = &[
    "fn main() {",
    "    let x = 1;",
    "    let y = 2;",
    "        return x;",
    "}",
    "",
    "",
    "}",
    "{",
    "a",
    "b",
    "a ",
    "  a",
    "\tindented",
    "trailing  ",
    "“quoted” – dash",
    "it’s a\u{a0}b",
    "wide\u{3000}blank",
    "    // comment",
    "+plus",
    "-minus",
    "@@ at",
    "*** stars",
    " ",
    "x = y # é",
    "end",
];

// Lines that break a patch: most are words of the patch language in the wrong place.
const JUNK: &[&str] = &[
    "",
    " ",
    "@@",
    "@@ ",
    "@@ a",
    "@@ fn main() {",
    "@@ -1,2 +1,2 @@",
    "*** End of File",
    "*** End of File ",
    "*** End Patch",
    "*** Begin Patch",
    "*** Update File: f.txt",
    " *** Add File: padded",
    "*** Add File: new",
    "*** Delete File: g",
    "*** Move to: moved",
    "*** Environment ID: e",
    "garbage",
    "+x",
    "-x",
    " x",
    "+",
    "-",
    "\t",
    "***",
];

pub(super) fn generate_patch_parity_case(seed: u64) -> PatchParityCase {
    let mut random = PatchRng::new(seed);
    let mut files = BTreeMap::new();
    for _ in 0..1 + random.random_below(4) {
        if let Some(name) = random.pick_item(NAMES) {
            files.insert((*name).to_owned(), random_file_text(&mut random));
        }
    }
    let mut links = Vec::new();
    if random.random_bool_with_percent(4) {
        // Links to a file, to a folder, out of the tree, and to themselves (`loop`).
        let targets = ["f.txt", "src", "../outside", "loop", "src/main.rs", "g"];
        if let Some(target) = random.pick_item(&targets) {
            links.push(("loop".to_owned(), (*target).to_owned()));
        }
    }
    let patch = random_patch_text(&mut random, &files);
    PatchParityCase {
        files,
        links,
        patch,
    }
}

fn random_file_text(random: &mut PatchRng) -> String {
    let ends: &[&str] = match random.random_below(20) {
        0 | 1 => &["\r\n"],
        2 => &["\n", "\r\n"],
        3 => &["\n", "\n", "\n", "\r", "\r\n"],
        _ => &["\n"],
    };
    let mut text = String::new();
    let count = match random.random_below(10) {
        0 => 0,
        1 => 1,
        _ => 2 + random.random_below(18),
    };
    for _ in 0..count {
        text.push_str(random.pick_item(LINES).copied().unwrap_or_default());
        text.push_str(random.pick_item(ends).copied().unwrap_or("\n"));
    }
    if random.random_bool_with_percent(15) {
        text = text.trim_end_matches(['\n', '\r']).to_owned();
    }
    text
}

fn random_patch_text(random: &mut PatchRng, files: &BTreeMap<String, String>) -> String {
    let mut lines = vec!["*** Begin Patch".to_owned()];
    if random.random_bool_with_percent(2) {
        lines.push("*** Environment ID: e".to_owned());
    }
    // Repeated entries are weights, here and below.
    let operations = [1, 1, 1, 1, 2, 3];
    for _ in 0..random.pick_item(&operations).copied().unwrap_or(1) {
        push_random_patch_operation(random, files, &mut lines);
    }
    lines.push("*** End Patch".to_owned());
    if random.random_bool_with_percent(12) {
        corrupt_random_patch_lines(random, &mut lines);
    }
    if random.random_bool_with_percent(4) {
        // Blanks around the markers of the language.
        for line in lines.iter_mut().filter(|line| line.starts_with("*** ")) {
            match random.random_below(3) {
                0 => line.insert(0, ' '),
                1 => line.push(' '),
                _ => {}
            }
        }
    }
    match random.random_below(60) {
        0 => {
            // The heredoc in which a patch is typed in a shell.
            lines.insert(0, "<<'EOF'".to_owned());
            lines.push("EOF".to_owned());
        }
        1 => {
            lines.insert(0, "<<EOF".to_owned());
            lines.push("EOF".to_owned());
        }
        2 => {
            lines.insert(0, "<<'END'".to_owned());
            lines.push("END".to_owned());
        }
        _ => {}
    }
    let end = if random.random_bool_with_percent(3) {
        "\r\n"
    } else {
        "\n"
    };
    let mut text = lines.join(end);
    if random.random_bool_with_percent(50) {
        text.push_str(end);
    }
    if random.random_bool_with_percent(2) {
        text.insert_str(0, "\n  ");
    }
    text
}

fn corrupt_random_patch_lines(random: &mut PatchRng, lines: &mut Vec<String>) {
    for _ in 0..1 + random.random_below(2) {
        let at = random.random_below(lines.len());
        match random.random_below(4) {
            0 => {
                lines.remove(at);
            }
            1 => {
                let again = lines.get(at).cloned().unwrap_or_default();
                lines.insert(at, again);
            }
            2 => {
                let junk = random.pick_item(JUNK).copied().unwrap_or_default();
                lines.insert(at, junk.to_owned());
            }
            _ => {
                let junk = random.pick_item(JUNK).copied().unwrap_or_default();
                if let Some(line) = lines.get_mut(at) {
                    *line = junk.to_owned();
                }
            }
        }
        if lines.is_empty() {
            return;
        }
    }
}

fn push_random_patch_operation(
    random: &mut PatchRng,
    files: &BTreeMap<String, String>,
    lines: &mut Vec<String>,
) {
    let known: Vec<&String> = files.keys().collect();
    // Mostly a file that exists, so that there is something to find.
    let mut name = match random.pick_item(&known) {
        Some(name) if !random.random_bool_with_percent(4) => (*name).clone(),
        _ => random
            .pick_item(NAMES)
            .copied()
            .unwrap_or("f.txt")
            .to_owned(),
    };
    if random.random_bool_with_percent(2) {
        name = "loop".to_owned();
    }
    match random.random_below(10) {
        0 | 1 => {
            let path = random_patch_target_path(random, &name);
            lines.push(format!("*** Add File: {path}"));
            for _ in 0..random.random_below(4) {
                let line = random.pick_item(LINES).copied().unwrap_or_default();
                lines.push(format!("+{line}"));
            }
        }
        2 => lines.push(format!(
            "*** Delete File: {}",
            randomly_respell_path(random, &name)
        )),
        _ => {
            lines.push(format!(
                "*** Update File: {}",
                randomly_respell_path(random, &name)
            ));
            if random.random_bool_with_percent(15) {
                let path = random_patch_target_path(random, &name);
                lines.push(format!("*** Move to: {path}"));
            }
            let text = files.get(&name).map_or("", String::as_str);
            push_random_patch_chunks(random, text, lines);
        }
    }
}

/// Returns a path to write to: a new one, a known one, the same, or one elsewhere.
fn random_patch_target_path(random: &mut PatchRng, name: &str) -> String {
    match random.random_below(16) {
        0..=4 => "new.txt".to_owned(),
        5 | 6 => "new/folder/file.rs".to_owned(),
        7 => name.to_owned(),
        8 => randomly_respell_path(random, name),
        9 => format!("{name}/below"),
        10 => "src".to_owned(),
        11 if random.random_bool_with_percent(30) => "../outside/x".to_owned(),
        12 if random.random_bool_with_percent(20) => ".git/hooks/x".to_owned(),
        _ => random
            .pick_item(NAMES)
            .copied()
            .unwrap_or("f.txt")
            .to_owned(),
    }
}

fn randomly_respell_path(random: &mut PatchRng, name: &str) -> String {
    match random.random_below(40) {
        // Other spellings of the same path, and control characters in it.
        0 => format!("./{name}"),
        1 => format!("src/../{name}"),
        2 => format!("{{root}}/{name}"),
        3 => name.replace('/', "//"),
        4 => format!("../{{name}}/{name}"),
        5 => format!("\t{name}"),
        6 => name.replace('.', "\t."),
        7 => format!(".\t/{name}\t"),
        8 => format!("src/.\t./\r{name}"),
        9 => format!("\t{{root}}/{name}"),
        _ => name.to_owned(),
    }
}

fn push_random_patch_chunks(random: &mut PatchRng, text: &str, out: &mut Vec<String>) {
    let file: Vec<&str> = text
        .split('\n')
        .map(|line| line.trim_end_matches('\r'))
        .collect();
    // Chunks mostly go down the file, as the language wants it; a few jump anywhere.
    let mut from = 0;
    let chunks = [1, 1, 2, 2, 3, 4];
    for chunk in 0..random.pick_item(&chunks).copied().unwrap_or(1) {
        let length = 1 + random.random_below(4);
        let mut start = from + random.random_below(6);
        if random.random_bool_with_percent(3) {
            start = random.random_below(file.len());
        }
        if random.random_bool_with_percent(15) {
            // At the end of the file, where `*** End of File` and a missing line end count.
            start = file
                .len()
                .saturating_sub(length + usize::from(random.random_bool_with_percent(70)));
        }
        let window = file
            .get(start..(start + length).min(file.len()))
            .unwrap_or_default();
        from = start + length;
        let context = start
            .checked_sub(1 + random.random_below(3))
            .and_then(|at| file.get(at));
        match context {
            Some(context) if random.random_bool_with_percent(20) => {
                out.push(format!("@@ {}", misremember_line(random, context)))
            }
            // The first chunk may go without its `@@`.
            _ if chunk == 0 && random.random_bool_with_percent(15) => {}
            _ => out.push("@@".to_owned()),
        }
        if random.random_bool_with_percent(6) {
            // Only added lines, without anything to find.
            out.push(format!(
                "+{}",
                random.pick_item(LINES).copied().unwrap_or_default()
            ));
        } else {
            for line in window {
                push_random_patch_lines(random, line, out);
            }
            if window.is_empty() {
                out.push("+appended".to_owned());
            }
        }
        if random.random_bool_with_percent(8) {
            out.push(
                ["", " ", "+", "-"]
                    .get(random.random_below(4))
                    .copied()
                    .unwrap_or("")
                    .to_owned(),
            );
        }
        let is_end = from + 1 >= file.len();
        if (is_end && random.random_bool_with_percent(30)) || random.random_bool_with_percent(1) {
            out.push("*** End of File".to_owned());
            if random.random_bool_with_percent(10) {
                out.push(String::new());
            }
        }
    }
}

fn push_random_patch_lines(random: &mut PatchRng, line: &str, out: &mut Vec<String>) {
    let spelled = misremember_line(random, line);
    match random.random_below(10) {
        0..=4 if spelled.is_empty() && random.random_bool_with_percent(40) => {
            out.push(String::new())
        }
        0..=4 => out.push(format!(" {spelled}")),
        5 | 6 => {
            out.push(format!("-{spelled}"));
            let line = random.pick_item(LINES).copied().unwrap_or_default();
            out.push(format!("+{line}"));
        }
        7 => out.push(format!("-{spelled}")),
        8 => {
            let line = random.pick_item(LINES).copied().unwrap_or_default();
            out.push(format!("+{line}"));
            out.push(format!(" {spelled}"));
        }
        _ => {
            out.push(format!("-{spelled}"));
            out.push(format!("+{spelled}"));
        }
    }
}

/// Returns a line as a model may remember it: mostly right, at times with other blanks or plain
/// punctuation.
fn misremember_line(random: &mut PatchRng, line: &str) -> String {
    match random.random_below(60) {
        0 => line.trim_end().to_owned(),
        1 => format!("{line} "),
        2 => line.trim().to_owned(),
        3 => format!("  {line}"),
        4 => line
            .replace(['“', '”'], "\"")
            .replace('–', "-")
            .replace('’', "'")
            .replace(['\u{a0}', '\u{3000}'], " "),
        5 => format!("{line}x"),
        6 => line.replace(' ', "  "),
        _ => line.to_owned(),
    }
}
