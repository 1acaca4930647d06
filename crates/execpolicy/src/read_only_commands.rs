//! Commands that are known to only read: a short list, for where nothing else can be judged.

/// First words of commands that only read, as long as none of their options is found to write or
/// to run anything.
const READERS: &[&str] = &[
    "[",
    "basename",
    "cat",
    "cd",
    "cmp",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "false",
    "fgrep",
    "file",
    "find",
    "git blame",
    "git describe",
    "git diff",
    "git grep",
    "git log",
    "git ls-files",
    "git ls-tree",
    "git rev-parse",
    "git show",
    "git status",
    "grep",
    "head",
    "id",
    "jq",
    "ls",
    "nl",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rg",
    "seq",
    "sleep",
    "stat",
    "tail",
    "test",
    "tr",
    "true",
    "uname",
    "wc",
    "which",
    "whoami",
];

/// Options by which a reader runs a program or writes a file.
const RUN_OR_WRITE: &[&str] = &[
    "--ext-diff",
    "--open-files-in-pager",
    "--output",
    "--pre",
    "-O",
];

/// Returns whether a command only reads. What it reads, and where, is not asked here.
pub fn is_read_only_command(argv: &[String]) -> bool {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    // Beginnings are compared, so that `--output=FILE` counts as well.
    let runs = |word: &&str| RUN_OR_WRITE.iter().any(|option| word.starts_with(option));
    if words.iter().any(runs) {
        return false;
    }
    match words.as_slice() {
        // Agents look at the pages of a file in this way.
        ["sed", "-n", lines, ..] => lines
            .chars()
            .all(|c| c.is_ascii_digit() || ",$p".contains(c)),
        // Only bare names count: a path may lead to any program.
        [program, command, ..] => {
            let both = format!("{program} {command}");
            READERS.contains(program) || READERS.contains(&both.as_str())
        }
        [program] => READERS.contains(program),
        [] => false,
    }
}
