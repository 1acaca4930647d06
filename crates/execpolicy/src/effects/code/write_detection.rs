//! Guesses from its words whether an unreadable program writes some file. The guess can be wrong
//! either way. It only serves to find protected files that such a program names, and may write.

use super::tokens::identifiers_in_code;

/// Names of functions that write, move or remove files, in any language.
const WRITERS: &[&str] = &[
    "appendFile",
    "appendFileSync",
    "binwrite",
    "copy",
    "copy2",
    "copyFile",
    "copyFileSync",
    "copyfile",
    "copytree",
    "cpSync",
    "createWriteStream",
    "dump",
    "file_put_contents",
    "fwrite",
    "move",
    "outputFile",
    "outputFileSync",
    "outputJson",
    "outputJsonSync",
    "remove",
    "rename",
    "renameSync",
    "rm",
    "rmSync",
    "rmtree",
    "symlink",
    "symlinkSync",
    "symlink_to",
    "touch",
    "truncate",
    "truncateSync",
    "unlink",
    "unlinkSync",
    "write",
    "writeFile",
    "writeFileSync",
    "writeJson",
    "writeJsonSync",
    "write_bytes",
    "write_text",
    "writelines",
];
/// Modes with which a file is opened for writing, as quoted strings.
const MODES: &[&str] = &[
    "w", "a", "x", "wb", "ab", "xb", "wt", "at", "w+", "a+", "r+", "rb+", "r+b", "wb+", "w+b", ">",
    ">>", "+<", "+>",
];

/// Whether some name or mode in the program suggests that it writes a file.
pub(super) fn code_may_write_files(text: &str) -> bool {
    identifiers_in_code(text).any(|name| WRITERS.contains(&name))
        || quoted_strings_in_code(text).any(is_write_mode)
}

/// Whether the string is a mode such as `w`, or a mode and a name in one, as in Perl.
fn is_write_mode(text: &str) -> bool {
    MODES.contains(&text) || text.starts_with('>') || text.starts_with("+<")
}

/// Returns the texts between each quote and the next of its kind.
fn quoted_strings_in_code(text: &str) -> impl Iterator<Item = &str> {
    // Escapes and kinds of strings differ between the languages, so quotes are only paired.
    let mut rest = text;
    std::iter::from_fn(move || {
        let at = rest.find(['"', '\''])?;
        let (_, from) = rest.split_at_checked(at)?;
        let quote = from.chars().next()?;
        let inner = from.get(1..)?;
        // A lone quote, such as an apostrophe, is passed over, so that the strings behind it are
        // seen.
        let Some((inside, after)) = inner.split_once(quote) else {
            rest = inner;
            return Some("");
        };
        rest = after;
        Some(inside)
    })
}
