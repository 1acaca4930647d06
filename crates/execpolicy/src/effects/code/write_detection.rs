//! Whether a program that cannot be read writes some file, by the words in it. A guess to both sides: what it
//! is asked for is only which of the files that it names are not to be written by anybody.

use super::tokens::identifiers_in;

/// Names of what writes, moves or removes files, in any language.
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
/// Ways to open a file that is written, as they stand in quotes.
const MODES: &[&str] = &[
    "w", "a", "x", "wb", "ab", "xb", "wt", "at", "w+", "a+", "r+", "rb+", "r+b", "wb+", "w+b", ">",
    ">>", "+<", "+>",
];

/// Whether something in it writes some file.
pub(super) fn code_may_write_files(text: &str) -> bool {
    identifiers_in(text).any(|name| WRITERS.contains(&name))
        || quoted_strings_in_code(text).any(is_write_mode)
}

/// `w`, or the mode and the name in one, as Perl has them.
fn is_write_mode(text: &str) -> bool {
    MODES.contains(&text) || text.starts_with('>') || text.starts_with("+<")
}

/// What stands between one quote and the next of its kind.
fn quoted_strings_in_code(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let at = rest.find(['"', '\''])?;
        let (_, from) = rest.split_at_checked(at)?;
        let quote = from.chars().next()?;
        let inner = from.get(1..)?;
        let Some((inside, after)) = inner.split_once(quote) else {
            rest = inner;
            return Some("");
        };
        rest = after;
        Some(inside)
    })
}
