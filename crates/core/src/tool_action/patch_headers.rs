//! Finds the files that a patch changes, from its headers: V4A and unified diffs, including
//! deletions and renames without text. The prefix of a path (`b/`, `w/`, none) is inferred from the
//! two names of the same file.

/// How the lines of a V4A patch begin that name a file.
const V4A: &[&str] = &[
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// Lines of a git diff that name a file in addition to `---` and `+++`, without a prefix.
const MOVES: &[&str] = &["rename from ", "rename to ", "copy to "];

/// The name of a file that is not there.
const NOTHING: &str = "/dev/null";

/// Returns the paths in the headers of a patch; empty if the text is no patch.
pub(super) fn patched_paths(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut keep = |path: String| {
        if !path.is_empty() && !found.contains(&path) {
            found.push(path);
        }
    };
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let indented = line.trim_start();
        if let Some(path) = V4A.iter().find_map(|head| indented.strip_prefix(head)) {
            keep(path.trim().to_owned());
        } else if let Some(both) = line.strip_prefix("diff --git ") {
            split_git_diff_names(both).into_iter().for_each(&mut keep);
        } else if let Some(path) = MOVES.iter().find_map(|head| line.strip_prefix(head)) {
            keep(patch_header_file_name(path));
        } else if let Some(old) = line.strip_prefix("--- ")
            // A `--- ` line alone may be a Markdown rule or a removed line. Only the pair is a
            // header.
            && let Some(new) = lines.peek().and_then(|next| next.strip_prefix("+++ "))
        {
            patch_paths_from_name_pair(&patch_header_file_name(old), &patch_header_file_name(new))
                .into_iter()
                .for_each(&mut keep);
        }
    }
    found
}

/// Returns the name in a header, without the date after a tab and without git's quotes.
fn patch_header_file_name(text: &str) -> String {
    let text = text.split('\t').next().unwrap_or(text).trim();
    match text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
    {
        Some(quoted) => unquote_git_path(quoted),
        None => text.to_owned(),
    }
}

/// Resolves `\"`, `\\` and bytes written as three octal digits.
fn unquote_git_path(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let digits: Vec<u8> = rest.clone().take(3).collect();
        let octal = std::str::from_utf8(&digits)
            .ok()
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        // Git writes bytes outside of ASCII as three octal digits (`core.quotePath`).
        match octal.filter(|_| digits.len() == 3) {
            Some(byte) => {
                bytes.push(byte);
                rest.nth(2);
            }
            None => bytes.extend(rest.next()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Splits the two names after `diff --git`. They are separated by a blank, and may contain blanks
/// themselves.
fn split_git_diff_names(both: &str) -> Vec<String> {
    let parted = |at: usize| Some((both.get(..at)?, both.get(at + 1..)?));
    let blanks = || both.match_indices(' ').map(|(at, _)| at);
    // In the usual case both names are the same file, apart from the prefix.
    let same = blanks().filter_map(parted).find(|(old, new)| {
        old == new
            || strip_first_path_component(&patch_header_file_name(old))
                == strip_first_path_component(&patch_header_file_name(new))
                && old.contains('/')
    });
    let halves = same.or_else(|| blanks().filter_map(parted).next());
    halves.map_or_else(Vec::new, |(old, new)| {
        patch_paths_from_name_pair(&patch_header_file_name(old), &patch_header_file_name(new))
    })
}

/// Returns the file or files of an old and a new name, without diff prefixes.
fn patch_paths_from_name_pair(old: &str, new: &str) -> Vec<String> {
    let named = [old, new];
    let there = || named.into_iter().filter(|name| *name != NOTHING);
    let prefixed = match there().collect::<Vec<_>>().as_slice() {
        [old, new] => {
            // Different first parts with equal rests are prefixes. Equal first parts are a folder
            // of the path.
            first_path_component(old) != first_path_component(new)
                && (strip_first_path_component(old) == strip_first_path_component(new)
                    || has_diff_prefix(old) && has_diff_prefix(new))
        }
        // One name is `/dev/null`, so only the usual prefixes can tell.
        [only] => has_diff_prefix(only),
        _ => false,
    };
    let plain = |name: &str| match prefixed {
        true => strip_first_path_component(name).unwrap_or(name).to_owned(),
        false => name.to_owned(),
    };
    there().map(plain).collect()
}

/// `a/`, `b/`, and with `diff.mnemonicPrefix` `c/`, `i/`, `o/`, `w/`; `1/` and `2/` of `--no-index`.
fn has_diff_prefix(name: &str) -> bool {
    matches!(
        first_path_component(name),
        Some("a" | "b" | "c" | "i" | "o" | "w" | "1" | "2")
    )
}

fn first_path_component(name: &str) -> Option<&str> {
    name.split_once('/').map(|(first, _)| first)
}

fn strip_first_path_component(name: &str) -> Option<&str> {
    name.split_once('/').map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_patch() {
        let check =
            |text: &str, expected: &[&str]| assert_eq!(patched_paths(text), expected, "{text}");
        check("--- a/t/x\n+++ b/t/x\n@@ -1 +1 @@\n", &["t/x"]);
        check("--- t/x\n+++ t/x\n@@ -1 +1 @@\n", &["t/x"]);
        check("--- t/x\t2026-01-01\n+++ t/x\t2026-01-02\n", &["t/x"]);
        check("--- i/t/x\n+++ w/t/x\n", &["t/x"]);
        check("--- old/t/x\n+++ new/t/x\n", &["t/x"]);
        check("--- a/t/x\n+++ /dev/null\n", &["t/x"]);
        check("--- t/x\n+++ /dev/null\n", &["t/x"]);
        check("--- /dev/null\n+++ b/t/x\n", &["t/x"]);
        check("--- /dev/null\n+++ Makefile\n", &["Makefile"]);
        check("--- a/x\n+++ b/t/y\n", &["x", "t/y"]);
        check(
            "diff --git a/x b/t/y\nsimilarity index 100%\nrename from x\nrename to t/y\n",
            &["x", "t/y"],
        );
        check(
            "diff --git a/t/x b/t/x\ndeleted file mode 100644\n",
            &["t/x"],
        );
        check(
            "diff --git t/x t/x\nold mode 100644\nnew mode 100755\n",
            &["t/x"],
        );
        check("diff --git a/t/a b b/t/a b\n", &["t/a b"]);
        check(
            "diff --git \"a/t/\\303\\244\" \"b/t/\\303\\244\"\n--- \"a/t/\\303\\244\"\n+++ \"b/t/\\303\\244\"\n",
            &["t/ä"],
        );
        check("*** Begin Patch\n  *** Delete File: t/x \n", &["t/x"]);
        // A rule and a list are no patch.
        check("a\n--- \nb\n--- c\n+ d\n", &[]);
    }
}
