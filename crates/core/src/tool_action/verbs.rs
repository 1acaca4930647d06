//! Classifies a tool by the words of its name. A name is a verb and its object, in either order:
//! `read_file`, `file_read`. A tool counts as read-only only if nothing in its name speaks of a
//! change.

/// What a name says, by its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolNameMeaning {
    /// It changes files.
    ChangesFiles,
    /// It looks at something.
    OnlyReads,
    /// It works on something that is not a file of the tree: an issue, a branch, a breakpoint.
    OutsideFiles,
    /// It leaves the files that it names unchanged: it runs them as tests, checks them, or hands
    /// them to git.
    LeavesFiles,
    /// It rewrites the files that it names, unless it is told only to check them.
    FormatsFiles,
    /// Nothing that is known.
    Unknown,
}

/// Returns the meaning of a name with these words.
pub(super) fn tool_name_meaning(words: &[String]) -> ToolNameMeaning {
    let has = |known: &[&str]| has_any_word(words, known);
    let first = words.first().map_or("", String::as_str);
    let rest = words.get(1..).unwrap_or(&[]);
    // `git_add` records files and leaves them unchanged. `git_add_and_reset` has a second verb that
    // may not.
    let keeps = first == "git"
        && rest
            .first()
            .is_some_and(|word| GIT_KEEPS.contains(&word.as_str()))
        && !self::has_any_word(rest.get(1..).unwrap_or(&[]), CHANGES)
        && !self::has_any_word(rest.get(1..).unwrap_or(&[]), ALTERS);
    // `run_mypy`, `cargo_test`; and `check_format`, where `format` alone writes.
    let known = [CHECKERS, WITH_CHECKERS, FORMATS, LANGUAGE_TOOLS, THINGS];
    let is_known = |word: &String| known.iter().any(|known| known.contains(&word.as_str()));
    let runs_known = words.iter().all(is_known);
    let formats = runs_known && has(FORMATS) && !has(&["check"]);
    let checks = runs_known && !formats && (has(CHECKERS) || has(FORMATS));
    // `create_merge_request` changes no file, although `merge` alone may.
    let request = has(&["merge", "pull"]) && has(&["request", "requests"]);
    let no_file = (request || has(NO_FILES)) && !has(FILES) && !has(RUNS);
    if keeps || checks {
        return ToolNameMeaning::LeavesFiles;
    }
    if formats {
        return ToolNameMeaning::FormatsFiles;
    }
    if no_file {
        return ToolNameMeaning::OutsideFiles;
    }
    // A second verb may change things: `find_and_replace`, `get_or_create`.
    let looks_first = LOOKS.contains(&first) && !has(&["and", "or"]);
    match has(CHANGES) {
        true if !looks_first => ToolNameMeaning::ChangesFiles,
        false if tool_name_means_reading(words) => ToolNameMeaning::OnlyReads,
        // A reading verb first and a changing one later (`get_update`) is ambiguous. Unknown is the
        // safe answer.
        _ => ToolNameMeaning::Unknown,
    }
}

/// Returns whether one of the words is one of these.
pub(super) fn has_any_word(words: &[String], known: &[&str]) -> bool {
    words.iter().any(|word| known.contains(&word.as_str()))
}

fn tool_name_means_reading(words: &[String]) -> bool {
    let Some((last, before)) = words.split_last() else {
        return false;
    };
    let first = words.first().map_or("", String::as_str);
    let is = |known: &[&str], word: &str| known.contains(&word);
    // `directory_tree`, `file_read`: a known object, and then how it is viewed.
    let of_a_thing = before
        .iter()
        .all(|word| is(THINGS, word) || is(LANGUAGE_TOOLS, word))
        && (is(LOOKS, last) || is(VIEWS, last));
    let by_verb = is(LOOKS, first) || is(SEARCHES, last);
    // `get_screenshot` makes the thing that it gets, and may write it to a file.
    let makes = first == "get" && has_any_word(words, MADE);
    (by_verb || of_a_thing)
        && !makes
        // `read_to` names a destination.
        && last != "to"
        // `check_and_run` executes something, whatever it reads before.
        && !has_any_word(words, RUNS)
        && !words
            .iter()
            .any(|word| is(ALTERS, word) && !(is(BRINGS, first) && is(ALSO_THINGS, word)))
        && !has_any_word(words, &["and", "into", "onto", "or"])
}

/// Verbs of tools that change files.
const CHANGES: &[&str] = &[
    "add",
    "append",
    "apply",
    "copy",
    "cp",
    "create",
    "delete",
    "destroy",
    "download",
    "edit",
    "erase",
    "extract",
    "insert",
    "link",
    "make",
    "mkdir",
    "modify",
    "move",
    "mv",
    "overwrite",
    "patch",
    "prepend",
    "purge",
    "put",
    "remove",
    "rename",
    "replace",
    "restore",
    "rm",
    "rmdir",
    "save",
    "set",
    "symlink",
    "touch",
    "trash",
    "truncate",
    "unlink",
    "unzip",
    "update",
    "upload",
    "wipe",
    "write",
];

/// Verbs after which the named file is gone.
pub(super) const TAKES_AWAY: &[&str] = &[
    "delete", "destroy", "erase", "move", "mv", "purge", "remove", "rename", "rm", "rmdir",
    "trash", "unlink", "wipe",
];

/// Verbs of tools that may change what they look at.
const ALTERS: &[&str] = &[
    "archive",
    "checkout",
    "clean",
    "cleanup",
    "clear",
    "commit",
    "compress",
    "convert",
    "discard",
    "drop",
    "dump",
    "export",
    "flush",
    "generate",
    "import",
    "install",
    "merge",
    "migrate",
    "prune",
    "rebase",
    "record",
    "refactor",
    "refresh",
    "repair",
    "reset",
    "resolve",
    "revert",
    "rewrite",
    "rollback",
    "rotate",
    "stash",
    "store",
    "swap",
    "toggle",
    "transform",
];

/// Verbs of tools that look at something.
const LOOKS: &[&str] = &[
    "ag",
    "analyse",
    "analyze",
    "bat",
    "blame",
    "cat",
    "check",
    "compare",
    "count",
    "describe",
    "detect",
    "diff",
    "display",
    "exists",
    "explain",
    "explore",
    "fd",
    "find",
    "get",
    "glob",
    "goto",
    "grep",
    "has",
    "hash",
    "head",
    "inspect",
    "is",
    "jq",
    "less",
    "list",
    "load",
    "locate",
    "lookup",
    "ls",
    "open",
    "peek",
    "preview",
    "query",
    "read",
    "review",
    "rg",
    "ripgrep",
    "scan",
    "search",
    "show",
    "stat",
    "status",
    "summarise",
    "summarize",
    "tail",
    "validate",
    "verify",
    "view",
    "wc",
];

/// Reading verbs that also count at the end of a name: `semantic_search`.
const SEARCHES: &[&str] = &["check", "exists", "grep", "lint", "lookup", "search"];

/// Reading verbs after which the next word is an object: `get_commit` reads, where `check_commit`
/// may commit.
const BRINGS: &[&str] = &["count", "describe", "get", "list", "show"];

/// Words that are objects after one of these verbs.
const ALSO_THINGS: &[&str] = &["commit", "import", "merge", "record", "stash", "store"];

/// Reading verbs that return a text unchanged.
pub(super) const READS_TEXT: &[&str] = &[
    "bat", "cat", "display", "get", "head", "less", "list", "load", "ls", "open", "read", "show",
    "tail", "view",
];

/// Views of an object that a tool can show.
const VIEWS: &[&str] = &[
    "callers",
    "contents",
    "definition",
    "definitions",
    "diagnostics",
    "hierarchy",
    "history",
    "implementations",
    "info",
    "metadata",
    "outline",
    "references",
    "size",
    "stats",
    "summary",
    "symbols",
    "tree",
    "usages",
];

/// Things that are looked at.
const THINGS: &[&str] = &[
    "call",
    "code",
    "codebase",
    "dir",
    "directory",
    "document",
    "file",
    "files",
    "folder",
    "git",
    "image",
    "lsp",
    "notebook",
    "path",
    "pdf",
    "project",
    "repo",
    "repository",
    "symbol",
    "text",
    "type",
    "web",
    "workspace",
];

/// Objects that are made when they are asked for, and may be put into a file.
const MADE: &[&str] = &[
    "archive",
    "backup",
    "capture",
    "download",
    "dump",
    "export",
    "pdf",
    "profile",
    "recording",
    "screenshot",
    "screenshots",
    "snapshot",
    "trace",
    "video",
];

/// Verbs of tools that run something.
const RUNS: &[&str] = &[
    "build", "eval", "exec", "execute", "fix", "format", "run", "start", "sync",
];

/// Tests, linters and type checkers. They leave what they are given unchanged.
const CHECKERS: &[&str] = &[
    "bandit",
    "bats",
    "clippy",
    "ctest",
    "cypress",
    "eslint",
    "flake8",
    "hadolint",
    "jest",
    "lint",
    "linter",
    "linters",
    "linting",
    "lints",
    "mocha",
    "mypy",
    "nextest",
    "phpstan",
    "phpunit",
    "pylint",
    "pyright",
    "pytest",
    "rspec",
    "semgrep",
    "shellcheck",
    "spec",
    "specs",
    "stylelint",
    "test",
    "testing",
    "tests",
    "tslint",
    "typecheck",
    "typechecker",
    "unittest",
    "unittests",
    "vet",
    "vitest",
    "yamllint",
];

/// Words that may accompany a checker's name.
const WITH_CHECKERS: &[&str] = &[
    "all",
    "analysis",
    "case",
    "cases",
    "check",
    "checker",
    "checks",
    "coverage",
    "debug",
    "e2e",
    "exec",
    "execute",
    "failed",
    "file",
    "files",
    "for",
    "in",
    "integration",
    "on",
    "quick",
    "rerun",
    "results",
    "run",
    "runner",
    "scan",
    "single",
    "start",
    "static",
    "suite",
    "unit",
    "watch",
];

/// Formatters, which rewrite files unless they are told only to check.
const FORMATS: &[&str] = &[
    "black",
    "fmt",
    "format",
    "formatting",
    "prettier",
    "rustfmt",
];

/// Languages and programs that qualify a tool's name: `cargo_test`, `ruff_check`.
const LANGUAGE_TOOLS: &[&str] = &[
    "biome",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "deno",
    "django",
    "dotnet",
    "go",
    "gradle",
    "java",
    "javascript",
    "js",
    "just",
    "maven",
    "mix",
    "mvn",
    "node",
    "npm",
    "npx",
    "nx",
    "php",
    "pnpm",
    "poetry",
    "py",
    "python",
    "rails",
    "rake",
    "ruby",
    "ruff",
    "rust",
    "swift",
    "tox",
    "ts",
    "typescript",
    "uv",
    "xcode",
    "yarn",
    "zig",
];

/// Things that are no files of the tree.
const NO_FILES: &[&str] = &[
    "branch",
    "branches",
    "breakpoint",
    "breakpoints",
    "click",
    "discussion",
    "discussions",
    "entities",
    "entity",
    "hover",
    "issue",
    "issues",
    "milestone",
    "navigate",
    "observation",
    "observations",
    "pr",
    "prs",
    "relation",
    "relations",
    "review",
    "reviews",
    "scroll",
    "tap",
    "ticket",
    "tickets",
];

/// Words that show that a name is about files after all.
const FILES: &[&str] = &[
    "apply",
    "code",
    "diff",
    "dir",
    "directory",
    "document",
    "file",
    "files",
    "folder",
    "notebook",
    "patch",
    "path",
    "paths",
    "suggestion",
    "suggestions",
    "write",
];

/// Git subcommands that leave the files of the tree unchanged.
const GIT_KEEPS: &[&str] = &[
    "add", "blame", "cat", "commit", "describe", "diff", "fetch", "grep", "log", "ls", "push",
    "reflog", "remote", "rev", "shortlog", "show", "stage", "status", "tag",
];
