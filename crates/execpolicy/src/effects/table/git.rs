//! Git, by sub-command.

use crate::effects::call::Call;
use crate::effects::inert;
use crate::effects::row::{Deed, On, Operands, Row};
use crate::effects::{Act, Effect};
use crate::shell::{Known, Word};

pub(super) const ROWS: &[Row] = &[
    Row::of(&["git", "hub"])
        .on(&[
            ("C", On::At),
            ("c", On::Value),
            ("git-dir", On::Value),
            ("work-tree", On::At),
            ("namespace", On::Value),
            ("exec-path", On::Edits),
            ("config-env", On::With(Deed::Unclear)),
            ("super-prefix", On::Value),
        ])
        .subs(SUBS)
        .more(settings),
    Row::of(&["git-lfs"]),
    Row::does(&["git-filter-repo", "bfg"], &[Deed::Rewrites]),
    Row::reads(&["tig", "gitk", "lazygit", "git-cola"]),
];

const SHOWS: &[(&str, On)] = &[
    ("output", On::Writes),
    ("O", On::Edits),
    ("ext-diff", On::Does(Deed::Code)),
    ("S", On::Value),
    ("G", On::Value),
    ("L", On::Value),
    ("n", On::Value),
    ("U", On::Edits),
    ("o", On::Value),
];

const SUBS: &[Row] = &[
    Row::of(&[
        "status",
        "log",
        "show",
        "diff",
        "whatchanged",
        "shortlog",
        "range-diff",
        "diff-tree",
        "diff-index",
        "diff-files",
        "cherry",
        "rev-list",
        "show-branch",
    ])
    .longs(&[
        "author",
        "since",
        "until",
        "after",
        "before",
        "grep",
        "format",
        "max-count",
        "skip",
        "word-diff-regex",
        "inter-hunk-context",
        "diff-algorithm",
    ])
    .on(SHOWS)
    .more(shown),
    Row::of(&[
        "describe",
        "rev-parse",
        "ls-files",
        "ls-tree",
        "cat-file",
        "name-rev",
        "merge-base",
        "for-each-ref",
        "show-ref",
        "count-objects",
        "check-ignore",
        "check-attr",
        "check-ref-format",
        "check-mailmap",
        "version",
        "help",
        "fsck",
        "verify-commit",
        "verify-tag",
        "verify-pack",
        "blame",
        "annotate",
        "diff-pairs",
        "stripspace",
        "patch-id",
        "get-tar-commit-id",
        "request-pull",
        "var",
        "column",
        "unpack-file",
        "merge-tree",
        "fmt-merge-msg",
        "show-index",
        "bugreport",
        "diagnose",
        "backfill",
        "hash-object",
        "mktree",
        "write-tree",
        "commit-tree",
        "rerere",
        "update-server-info",
        "pack-refs",
    ])
    .values("LSCMe")
    .longs(&[
        "format",
        "exclude",
        "match",
        "abbrev",
        "contents",
        "sort",
        "points-at",
    ])
    .more(shown),
    Row::does(&["ls-remote"], &[Deed::Network])
        .on(&[
            ("upload-pack", On::With(Deed::Code)),
            ("exec", On::With(Deed::Code)),
        ])
        .more(remote_place),
    Row::of(&["grep"])
        .values("ABCmef")
        .longs(&["max-depth", "threads", "max-count"])
        .on(&[
            ("O", On::Does(Deed::Code)),
            ("open-files-in-pager", On::Does(Deed::Code)),
        ]),
    Row::of(&["init"])
        .on(&[
            ("template", On::With(Deed::Code)),
            ("separate-git-dir", On::Writes),
        ])
        .operands(Operands::Write),
    Row::of(&["add", "stage", "notes", "sparse-checkout", "update-index"])
        .longs(&["chmod", "pathspec-from-file"])
        .on(&[("p", On::Value)]),
    Row::of(&["commit"])
        .values("mCcFtuS")
        .longs(&[
            "message",
            "file",
            "author",
            "date",
            "template",
            "fixup",
            "squash",
            "reuse-message",
            "cleanup",
            "trailer",
        ])
        .on(&[
            ("no-verify", On::Does(Deed::Unchecked)),
            ("n", On::Does(Deed::Unchecked)),
            ("no-post-rewrite", On::Does(Deed::Unchecked)),
        ]),
    Row::of(&["branch"])
        .values("u")
        .longs(&["set-upstream-to", "format", "sort", "points-at"])
        .on(&[
            ("D", On::Does(Deed::History)),
            ("f", On::Does(Deed::History)),
            ("force", On::Does(Deed::History)),
            ("M", On::Does(Deed::History)),
            ("C", On::Does(Deed::History)),
        ]),
    Row::of(&["tag"])
        .values("mFun")
        .longs(&[
            "message",
            "file",
            "local-user",
            "sort",
            "format",
            "points-at",
            "contains",
            "merged",
        ])
        .on(&[
            ("d", On::Does(Deed::History)),
            ("delete", On::Does(Deed::History)),
            ("f", On::Does(Deed::History)),
            ("force", On::Does(Deed::History)),
        ]),
    Row::does(&["checkout"], &[Deed::Moves])
        .values("b")
        .longs(&["orphan", "conflict"])
        .on(&[
            ("B", On::With(Deed::History)),
            ("f", On::Does(Deed::Drops)),
            ("force", On::Does(Deed::Drops)),
            ("pathspec-from-file", On::With(Deed::Drops)),
        ])
        .more(checkout),
    Row::does(&["switch"], &[Deed::Moves])
        .values("c")
        .longs(&["create", "orphan", "conflict"])
        .on(&[
            ("C", On::With(Deed::History)),
            ("force-create", On::With(Deed::History)),
            ("f", On::Does(Deed::Drops)),
            ("force", On::Does(Deed::Drops)),
            ("discard-changes", On::Does(Deed::Drops)),
        ]),
    Row::of(&["restore"])
        .values("s")
        .longs(&["source", "conflict"])
        .on(&[("pathspec-from-file", On::With(Deed::Drops))])
        .more(restore),
    Row::of(&["reset"])
        .on(&[("pathspec-from-file", On::Value)])
        .more(reset),
    Row::of(&["clean"])
        .values("e")
        .longs(&["exclude"])
        .more(clean),
    Row::of(&["stash"]).more(stash),
    Row::does(&["merge", "cherry-pick", "revert"], &[Deed::Moves])
        .values("msSXF")
        .longs(&[
            "message",
            "strategy",
            "strategy-option",
            "mainline",
            "file",
            "into-name",
            "cleanup",
        ])
        .on(&[("no-verify", On::Does(Deed::Unchecked))]),
    Row::does(&["rebase"], &[Deed::Moves])
        .values("sXC")
        .longs(&["onto", "strategy", "strategy-option", "empty"])
        .on(&[
            ("x", On::Runs),
            ("exec", On::Runs),
            ("i", On::Does(Deed::History)),
            ("interactive", On::Does(Deed::History)),
            ("root", On::Does(Deed::History)),
            ("edit-todo", On::Does(Deed::History)),
            ("no-verify", On::Does(Deed::Unchecked)),
        ]),
    Row::does(&["fetch"], &[Deed::Network])
        .values("jo")
        .longs(&[
            "depth",
            "deepen",
            "shallow-since",
            "shallow-exclude",
            "jobs",
            "refmap",
            "server-option",
            "negotiation-tip",
            "filter",
        ])
        .on(&[
            ("upload-pack", On::With(Deed::Code)),
            ("f", On::Does(Deed::History)),
            ("force", On::Does(Deed::History)),
            ("multiple", On::Value),
        ])
        .more(remote_place),
    Row::does(&["pull"], &[Deed::Network, Deed::Moves])
        .values("sXjo")
        .longs(&[
            "depth",
            "strategy",
            "strategy-option",
            "jobs",
            "server-option",
        ])
        .on(&[
            ("upload-pack", On::With(Deed::Code)),
            ("f", On::Does(Deed::History)),
            ("force", On::Does(Deed::History)),
        ])
        .more(remote_place),
    Row::does(&["push"], &[Deed::Network])
        .values("o")
        .longs(&["push-option"])
        .on(&[
            ("f", On::Does(Deed::Forces)),
            ("force", On::Does(Deed::Forces)),
            ("force-with-lease", On::Does(Deed::Forces)),
            ("mirror", On::Does(Deed::Forces)),
            ("delete", On::Does(Deed::Forces)),
            ("d", On::Does(Deed::Forces)),
            ("prune", On::Does(Deed::Forces)),
            ("no-verify", On::Does(Deed::Unchecked)),
            ("receive-pack", On::With(Deed::Code)),
            ("exec", On::With(Deed::Code)),
            ("repo", On::With(Deed::Uploads)),
        ])
        .more(push),
    Row::does(&["clone"], &[Deed::Network])
        .values("bojc")
        .longs(&[
            "branch",
            "depth",
            "origin",
            "jobs",
            "filter",
            "shallow-since",
            "reference",
            "server-option",
        ])
        .on(&[
            ("c", On::With(Deed::Unclear)),
            ("config", On::With(Deed::Unclear)),
            ("u", On::With(Deed::Code)),
            ("upload-pack", On::With(Deed::Code)),
            ("template", On::With(Deed::Code)),
            ("separate-git-dir", On::Writes),
        ])
        .more(clone),
    Row::of(&["remote"]).subs(&[
        Row::of(&[
            "show",
            "get-url",
            "rename",
            "prune",
            "update",
            "set-head",
            "set-branches",
            "remove",
            "rm",
        ]),
        Row::does(&["add", "set-url"], &[Deed::Uploads]).values("tm"),
    ]),
    Row::of(&["config"])
        .values("f")
        .longs(&["file", "blob", "type", "default", "value", "comment"])
        .more(config),
    Row::of(&["submodule"]).on(&[("quiet", On::Value)]).subs(&[
        Row::does(
            &[
                "status",
                "init",
                "summary",
                "sync",
                "set-branch",
                "absorbgitdirs",
            ],
            &[],
        ),
        Row::does(&["update"], &[Deed::Network])
            .longs(&["reference", "depth", "jobs"])
            .on(&[
                ("f", On::Does(Deed::Drops)),
                ("force", On::Does(Deed::Drops)),
            ]),
        Row::does(&["add", "set-url"], &[Deed::Network])
            .values("b")
            .longs(&["branch", "name", "reference", "depth"]),
        Row::does(&["deinit"], &[])
            .on(&[
                ("f", On::Does(Deed::Drops)),
                ("force", On::Does(Deed::Drops)),
            ])
            .operands(Operands::Remove),
        Row::of(&["foreach"]).more(foreach),
    ]),
    Row::of(&["worktree"]).subs(&[
        Row::of(&["list", "prune", "lock", "unlock", "repair"]).longs(&["reason", "expire"]),
        Row::of(&["add"])
            .values("bB")
            .longs(&["reason"])
            .more(worktree),
        Row::of(&["move"]).operands(Operands::Move),
        Row::of(&["remove"]).on(&[
            ("f", On::Does(Deed::Drops)),
            ("force", On::Does(Deed::Drops)),
        ]),
    ]),
    Row::of(&["bisect"]).subs(&[
        Row::does(
            &[
                "start",
                "good",
                "bad",
                "new",
                "old",
                "skip",
                "reset",
                "log",
                "visualize",
                "view",
                "terms",
                "replay",
                "next",
            ],
            &[Deed::Moves],
        ),
        Row::of(&["run"]).more(bisect),
    ]),
    Row::of(&["apply"])
        .values("pC")
        .longs(&["whitespace", "exclude", "include"])
        .on(&[
            ("check", On::Inert(&inert::GIT_APPLY)),
            ("stat", On::Inert(&inert::GIT_APPLY)),
            ("numstat", On::Inert(&inert::GIT_APPLY)),
            ("summary", On::Inert(&inert::GIT_APPLY)),
            ("unsafe-paths", On::Does(Deed::Unclear)),
            ("directory", On::Value),
        ])
        .more(apply),
    Row::of(&["am"])
        .values("pC")
        .longs(&["whitespace", "exclude", "include", "patch-format"])
        .on(&[("no-verify", On::Does(Deed::Unchecked))])
        .more(apply),
    Row::of(&["rm"])
        .on(&[
            ("cached", On::Inert(&inert::GIT_FILES)),
            ("n", On::Inert(&inert::GIT_FILES)),
            ("dry-run", On::Inert(&inert::GIT_FILES)),
        ])
        .operands(Operands::Remove),
    Row::of(&["mv"]).operands(Operands::Move),
    Row::of(&["archive", "bundle"])
        .longs(&["format", "prefix"])
        .on(&[
            ("o", On::Writes),
            ("output", On::Writes),
            ("exec", On::With(Deed::Code)),
            ("remote", On::With(Deed::Network)),
        ]),
    Row::of(&["format-patch"])
        .values("nv")
        .longs(&[
            "start-number",
            "subject-prefix",
            "reroll-count",
            "to",
            "cc",
            "in-reply-to",
            "base",
            "suffix",
        ])
        .on(&[("o", On::Writes), ("output-directory", On::Writes)]),
    Row::of(&["fast-export"]),
    Row::of(&["reflog"]).more(reflog),
    Row::of(&[
        "gc",
        "repack",
        "multi-pack-index",
        "commit-graph",
        "maintenance",
    ])
    .more(collect),
    Row::does(
        &["filter-branch", "filter-repo", "prune"],
        &[Deed::Rewrites],
    ),
    Row::does(&["replace", "update-ref", "fast-import"], &[Deed::History]),
    Row::of(&["symbolic-ref"])
        .values("m")
        .on(&[
            ("d", On::Does(Deed::History)),
            ("delete", On::Does(Deed::History)),
        ])
        .more(symbolic),
    Row::does(&["read-tree", "checkout-index"], &[Deed::Drops]),
    Row::does(
        &["difftool", "mergetool", "hook", "instaweb", "gui", "citool"],
        &[Deed::Code],
    ),
    Row::does(
        &["credential", "credential-store", "credential-cache"],
        &[Deed::Secret],
    ),
    Row::does(
        &["send-email", "imap-send", "p4", "svn", "cvsserver"],
        &[Deed::Uploads],
    ),
    Row::does(&["daemon", "fsmonitor--daemon"], &[Deed::Persists]),
    Row::of(&["lfs"]).subs(&[
        Row::does(
            &[
                "pull", "fetch", "checkout", "ls-files", "status", "env", "version", "track",
                "untrack", "install", "logs", "fsck", "pointer", "locks",
            ],
            &[Deed::Network],
        )
        .values("IX"),
        Row::does(&["push"], &[Deed::Network]),
        Row::does(&["migrate"], &[Deed::Rewrites]),
        Row::does(&["prune"], &[Deed::History]),
    ]),
    Row::of(&["flow"]),
];

/// Settings that name no program and skip no check.
const PLAIN: &[&str] = &[
    "user.",
    "color.",
    "core.pager=cat",
    "core.pager=",
    "core.autocrlf",
    "core.quotepath",
    "core.filemode",
    "core.abbrev",
    "core.whitespace",
    "core.ignorecase",
    "core.longpaths",
    "core.eol",
    "core.safecrlf",
    "diff.renames",
    "diff.renamelimit",
    "diff.algorithm",
    "diff.noprefix",
    "diff.mnemonicprefix",
    "merge.conflictstyle",
    "merge.renamelimit",
    "merge.ff",
    "log.",
    "advice.",
    "init.defaultbranch",
    "pull.",
    "push.default",
    "push.autosetupremote",
    "rebase.autostash",
    "rebase.autosquash",
    "fetch.prune",
    "fetch.parallel",
    "http.lowspeed",
    "http.postbuffer",
    "http.version",
    "gc.auto",
    "column.",
    "status.",
    "format.pretty",
    "commit.gpgsign=false",
    "tag.gpgsign=false",
    "commit.verbose",
    "branch.",
    "submodule.recurse",
    "submodule.fetchjobs",
    "safe.directory",
    "pack.",
    "index.",
    "feature.",
    "help.autocorrect=0",
    "tag.sort",
    "grep.",
    "blame.",
    "rerere.enabled",
    "stash.",
    "protocol.version",
    "core.compression",
    "core.editor=true",
    "core.editor=:",
    "sequence.editor=true",
    "sequence.editor=:",
    "core.editor=cat",
    "pager.",
];

fn is_plain(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    PLAIN
        .iter()
        .any(|plain| match plain.strip_suffix(['.', '=']) {
            Some("pager") => setting.starts_with("pager.") && setting.ends_with("false"),
            Some("core.pager") => setting == "core.pager=",
            Some(_) => setting.starts_with(plain),
            None if plain.contains('=') => setting == *plain,
            None => setting.split('=').next() == Some(plain),
        })
}

/// `-c NAME=VALUE` can name programs to run.
fn settings(call: &Call<'_>, out: &mut Vec<Effect>) {
    let open = call.values_of(&["c"]).any(|word| {
        !is_plain(word.lead()) || (word.known != Known::Fixed && !word.lead().contains('='))
    });
    if open || call.has(&["exec-path"]) && call.values_of(&["exec-path"]).next().is_some() {
        out.push(Effect::Deed(Deed::Code));
    }
}

fn config(call: &Call<'_>, out: &mut Vec<Effect>) {
    let reads = call.has(&[
        "get",
        "get-all",
        "get-regexp",
        "get-urlmatch",
        "l",
        "list",
        "name-only",
        "get-color",
        "get-colorbool",
    ]);
    let first = call.operand(0).unwrap_or("");
    if reads || matches!(first, "get" | "list") {
        return;
    }
    let modern = matches!(
        first,
        "set" | "unset" | "edit" | "remove-section" | "rename-section"
    );
    let at = usize::from(modern);
    if call.operands.len() <= at + 1
        && !modern
        && !call.has(&[
            "unset",
            "unset-all",
            "e",
            "edit",
            "remove-section",
            "rename-section",
            "add",
            "replace-all",
        ])
    {
        return;
    }
    let name = call.operand(at).unwrap_or("");
    let value = call.operand(at + 1).unwrap_or("\u{1}");
    if call.has(&["global", "system", "f", "file"]) {
        out.push(Effect::Deed(Deed::Persists));
    }
    if !is_plain(&format!("{name}={value}")) {
        out.push(Effect::Deed(Deed::Unchecked));
    }
}

/// `git diff --no-index` and `git hash-object` read files by name.
fn shown(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call.has(&["no-index"])
        || call
            .words
            .first()
            .is_some_and(|word| word.text == "hash-object")
    {
        out.extend(
            call.operands
                .iter()
                .map(|word| Effect::File(Act::Read, (*word).clone())),
        );
    }
}

/// A pathspec that means a folder, or may: all changes in it.
fn many(word: &Word) -> bool {
    let text = word.text.as_str();
    let name = text.rsplit('/').next().unwrap_or(text);
    word.known == Known::Many
        || text.starts_with(':')
        || name.is_empty()
        || !name.trim_start_matches('.').contains('.')
}

/// What is thrown away by going back to what is kept.
fn back(words: &[&Word], out: &mut Vec<Effect>) {
    for word in words {
        if many(word) {
            out.push(Effect::Deed(Deed::Drops));
        }
        out.push(Effect::File(Act::WriteBelow, (*word).clone()));
    }
}

fn all(out: &mut Vec<Effect>) {
    out.push(Effect::File(Act::WriteBelow, Word::fixed(".")));
}

fn dashes(call: &Call<'_>) -> Option<usize> {
    call.words
        .iter()
        .position(|word| word.as_fixed() == Some("--"))
}

fn checkout(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call.has(&["f", "force", "pathspec-from-file"]) {
        all(out);
    }
    if call.has(&["b", "B", "orphan", "t", "track", "detach", "d"]) {
        return;
    }
    if let Some(at) = dashes(call) {
        let paths: Vec<&Word> = call.words.iter().skip(at + 1).collect();
        back(&paths, out);
        return;
    }
    match call.operands.as_slice() {
        [one] => {
            let text = one.text.as_str();
            if matches!(text, "." | "./" | "*" | ":/" | "..")
                || text.ends_with('/')
                || text.starts_with(':')
                || one.text.contains('*')
            {
                back(&[one], out);
            } else if text.contains('.') {
                out.push(Effect::File(Act::WriteBelow, (*one).clone()));
            }
        }
        [_, paths @ ..] => back(paths, out),
        [] if call.has(&["ours", "theirs"]) => all(out),
        [] => {}
    }
}

fn restore(call: &Call<'_>, out: &mut Vec<Effect>) {
    let staged = call.has(&["staged", "S"]) && !call.has(&["worktree", "W"]);
    if !staged {
        back(&call.operands, out);
    }
}

fn reset(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call
        .options
        .iter()
        .any(|(name, _)| name.starts_with('h') || name.starts_with("merg") || name.starts_with('k'))
    {
        out.push(Effect::Deed(Deed::Drops));
        all(out);
    }
}

fn clean(call: &Call<'_>, out: &mut Vec<Effect>) {
    if !inert::holds(call.words, &["n", "dry-run"], &inert::GIT_FILES, "e", false) {
        out.push(Effect::Deed(Deed::Drops));
        all(out);
        let here = Word::fixed(".");
        let folders = match call.operands.as_slice() {
            [] => &[&here][..],
            folders => folders,
        };
        for word in folders {
            out.push(Effect::File(Act::Clear, (*word).clone()));
            out.push(Effect::File(Act::WriteBelow, (*word).clone()));
        }
    }
}

fn stash(call: &Call<'_>, out: &mut Vec<Effect>) {
    let behind = dashes(call).map(|at| call.words.iter().skip(at + 1).collect());
    let named: Vec<&Word> = match (behind, call.operands.as_slice()) {
        (Some(paths), _) => paths,
        (None, [push, paths @ ..]) if push.as_fixed() == Some("push") => paths.to_vec(),
        (None, _) => Vec::new(),
    };
    out.extend(
        named
            .iter()
            .map(|word| Effect::File(Act::WriteBelow, (*word).clone())),
    );
    match call.operand(0) {
        Some(_) if dashes(call) == Some(1) => all(out),
        Some("list" | "show" | "create" | "store") => {}
        Some("drop" | "clear") => out.push(Effect::Deed(Deed::Drops)),
        None | Some("push" | "save" | "pop" | "apply" | "branch") => all(out),
        Some(_) => out.push(Effect::Deed(Deed::Unclear)),
    }
}

fn apply(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.extend(
        call.operands
            .iter()
            .map(|word| Effect::File(Act::Read, (*word).clone())),
    );
    out.push(Effect::Patch(
        call.values_of(&["directory"]).next().cloned(),
    ));
}

/// A place that is not called by a name: what is pushed there goes elsewhere.
fn foreign(word: &Word) -> bool {
    word.text.contains("://")
        || word.text.starts_with(['/', '~'])
        || word
            .text
            .split('/')
            .next()
            .is_some_and(|host| host.contains(':') && host.contains(['@', '.']))
}

fn push(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call.operands.first().is_some_and(|word| foreign(word)) {
        out.push(Effect::Deed(Deed::Uploads));
    }
    remote_place(call, out);
    let forces = |word: &&&Word| word.text.starts_with(['+', ':']) || word.known == Known::Many;
    if call.operands.iter().skip(1).any(|word| forces(&word)) {
        out.push(Effect::Deed(Deed::Forces));
    }
    if inert::holds(call.words, &["n", "dry-run"], &inert::GIT_PUSH, "o", false) {
        out.retain(|effect| *effect != Effect::Deed(Deed::Forces));
    }
}

/// `ext::COMMAND` runs it.
fn remote_place(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call
        .operands
        .iter()
        .any(|word| word.text.starts_with("ext::") || word.text.starts_with("fd::"))
    {
        out.push(Effect::Deed(Deed::Code));
    }
    let own = call
        .operands
        .iter()
        .skip(1)
        .any(|word| word.text.starts_with('+'));
    if own {
        out.push(Effect::Deed(Deed::History));
    }
}

fn clone(call: &Call<'_>, out: &mut Vec<Effect>) {
    remote_place(call, out);
    if let Some(folder) = call.operands.get(1) {
        out.push(Effect::File(Act::Write, (*folder).clone()));
    }
}

fn worktree(call: &Call<'_>, out: &mut Vec<Effect>) {
    // A linked tree beside this one is where they are usually made.
    if let Some(folder) = call
        .operands
        .first()
        .filter(|word| word.text.starts_with(['/', '~', '$']))
    {
        out.push(Effect::File(Act::Write, (*folder).clone()));
    }
    if call.has(&["B", "f", "force"]) {
        out.push(Effect::Deed(Deed::History));
    }
}

fn foreach(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.extend(
        call.operands
            .iter()
            .map(|word| Effect::Runs((*word).clone())),
    );
    if call.operands.len() > 1 {
        out.push(Effect::Command(
            call.operands.iter().map(|word| (*word).clone()).collect(),
        ));
    }
}

fn bisect(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.push(Effect::Command(
        call.words.iter().skip(1).cloned().collect(),
    ));
}

fn reflog(call: &Call<'_>, out: &mut Vec<Effect>) {
    if matches!(call.operand(0), Some("expire" | "delete" | "drop")) {
        out.push(Effect::Deed(Deed::Rewrites));
    }
}

fn collect(call: &Call<'_>, out: &mut Vec<Effect>) {
    let drops = call.options.iter().any(|(name, value)| {
        name == "prune"
            && value
                .as_ref()
                .is_none_or(|word| !word.text.contains("weeks"))
            || name.starts_with("cruft-exp")
    });
    if drops {
        out.push(Effect::Deed(Deed::Rewrites));
    }
    if call.operand(0) == Some("start") || call.operand(0) == Some("register") {
        out.push(Effect::Deed(Deed::Persists));
    }
}

fn symbolic(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call.operands.len() > 1 {
        out.push(Effect::Deed(Deed::History));
    }
}
