//! Programs that read, count, sort and print.

use crate::effects::call::Call;
use crate::effects::inert;
use crate::effects::row::{Deed, On, Operands, Row};
use crate::effects::{Act, Effect};

pub(super) const ROWS: &[Row] = &[
    // Print what they are told, or what the system is.
    Row::of(&[
        "echo",
        "printf",
        "true",
        "false",
        ":",
        "pwd",
        "seq",
        "yes",
        "expr",
        "factor",
        "sleep",
        "tty",
        "whoami",
        "logname",
        "nproc",
        "arch",
        "uname",
        "cal",
        "ncal",
        "tput",
        "clear",
        "reset",
        "basename",
        "dirname",
        "usleep",
        "getconf",
        "getopt",
        "uuidgen",
        "mcookie",
        "fold-case",
        "figlet",
        "cowsay",
        "lolcat",
        "banner",
        "jot",
        "numfmt",
        "locale",
        "sw_vers",
        "groups",
        "tabs",
        "stty",
    ]),
    Row::of(&["date"]).on(&[
        ("s", On::With(Deed::Machine)),
        ("set", On::With(Deed::Machine)),
        ("f", On::Reads),
        ("r", On::Value),
        ("d", On::Value),
        ("date", On::Value),
    ]),
    Row::of(&[
        "id", "users", "who", "w", "last", "lastlog", "finger", "pinky",
    ]),
    Row::of(&["hostname"]).operands(Operands::None).on(&[
        ("F", On::With(Deed::Machine)),
        ("b", On::Does(Deed::Machine)),
    ]),
    Row::of(&["bc", "dc"])
        .operands(Operands::Read)
        .on(&[("e", On::Value), ("f", On::Reads)])
        .more(calculator),
    // Read what they are given.
    Row::reads(&[
        "cat",
        "tac",
        "nl",
        "rev",
        "wc",
        "od",
        "hexdump",
        "hd",
        "strings",
        "md5sum",
        "md5",
        "sha1sum",
        "sha224sum",
        "sha256sum",
        "sha384sum",
        "sha512sum",
        "shasum",
        "b2sum",
        "cksum",
        "sum",
        "file",
        "comm",
        "cmp",
        "join",
        "paste",
        "fold",
        "fmt",
        "expand",
        "unexpand",
        "column",
        "colrm",
        "pr",
        "ptx",
        "tsort",
        "base32",
        "basenc",
        "uuencode",
        "zcat",
        "bzcat",
        "xzcat",
        "zstdcat",
        "lz4cat",
        "gzcat",
        "identify",
        "mediainfo",
        "ffprobe",
        "pdfinfo",
        "nm",
        "size",
        "readelf",
        "objdump",
        "otool",
        "c++filt",
        "addr2line",
        "look",
        "tail",
        "head",
        "cut",
        "hexyl",
        "mdcat",
        "glow",
        "cloc",
        "tokei",
        "scc",
        "sloccount",
        "wdiff",
        "colordiff",
        "diff3",
        "sdiff",
        "icdiff",
        "jsonlint",
        "yamllint",
        "zless",
        "jless",
        "dwdiff",
        "diffstat",
        "filterdiff",
        "lsdiff",
        "cpuinfo",
        "ascii",
        "chardet",
        "chardetect",
        "csvlook",
        "csvcut",
        "csvstat",
        "csvgrep",
        "csvjson",
        "csvsort",
    ])
    .values("ncbsdmftwiIDNSjAkqX")
    .longs(&[
        "lines",
        "bytes",
        "width",
        "separator",
        "delimiter",
        "delimiters",
        "format",
        "max-line-length",
        "fields",
        "characters",
        "sleep-interval",
        "pid",
        "language",
        "line-range",
        "theme",
        "style",
        "ignore",
        "hide",
        "block-size",
        "sort",
        "time",
        "color",
        "exclude-dir",
        "ignore-initial",
        "printf",
        "type",
        "section",
        "start-address",
        "stop-address",
        "radix",
        "skip-bytes",
        "read-bytes",
        "algorithm",
        "tabs",
        "table-columns",
        "output-separator",
        "time-style",
        "include-ext",
        "exclude-ext",
        "include-lang",
    ])
    .on(&[("files0-from", On::Reads)]),
    Row::reads(&["bat", "batcat"])
        .longs(&[
            "line-range",
            "theme",
            "style",
            "language",
            "color",
            "wrap",
            "tabs",
            "highlight-line",
        ])
        .values("rlHm")
        .on(&[("pager", On::Runs)]),
    // They show what is known of files, not what is in them.
    Row::of(&[
        "ls", "dir", "vdir", "lsd", "exa", "eza", "stat", "readlink", "realpath", "df", "namei",
        "pathchk", "test", "[", "[[", "lsattr", "getfacl", "getfattr", "mdls", "mdfind",
    ])
    .values("cfIwT")
    .longs(&[
        "format",
        "printf",
        "ignore",
        "hide",
        "block-size",
        "sort",
        "time",
        "color",
        "time-style",
        "width",
    ])
    .operands(Operands::List),
    Row::of(&["tr"]),
    Row::reads(&["base64"])
        .values("bwi")
        .longs(&["wrap", "break"])
        .on(&[
            ("o", On::Writes),
            ("output", On::Writes),
            ("i", On::Reads),
            ("input", On::Reads),
        ]),
    Row::of(&["xxd"]).values("cglos").operands(Operands::FromTo),
    Row::of(&["uniq"])
        .values("fsw")
        .longs(&["skip-fields", "skip-chars", "check-chars"])
        .operands(Operands::FromTo),
    Row::reads(&["sort", "gsort"])
        .values("kStT")
        .longs(&[
            "key",
            "field-separator",
            "buffer-size",
            "temporary-directory",
            "parallel",
            "sort",
            "batch-size",
            "random-source",
        ])
        .on(&[
            ("o", On::Writes),
            ("output", On::Writes),
            ("compress-program", On::Runs),
            ("files0-from", On::Reads),
        ]),
    Row::reads(&["shuf", "gshuf"])
        .values("ni")
        .longs(&["head-count", "input-range"])
        .on(&[
            ("o", On::Writes),
            ("output", On::Writes),
            ("random-source", On::Reads),
            ("e", On::Value),
            ("echo", On::Value),
        ]),
    Row::of(&["tree"])
        .values("LPIHT")
        .longs(&[
            "filelimit",
            "charset",
            "timefmt",
            "sort",
            "filesfrom",
            "fromtabfile",
        ])
        .on(&[("o", On::Writes)])
        .operands(Operands::List),
    Row::of(&["du", "ncdu", "dust"])
        .values("dtXBo")
        .longs(&[
            "max-depth",
            "threshold",
            "exclude",
            "block-size",
            "exclude-from",
            "time-style",
        ])
        .operands(Operands::Read)
        .on(&[("files0-from", On::Reads)]),
    Row::of(&[
        "grep",
        "egrep",
        "fgrep",
        "zgrep",
        "ggrep",
        "bzgrep",
        "xzgrep",
        "pcregrep",
        "pcre2grep",
    ])
    .values("ABCmdD")
    .longs(&[
        "after-context",
        "before-context",
        "context",
        "max-count",
        "binary-files",
        "devices",
        "directories",
        "exclude",
        "include",
        "exclude-dir",
        "label",
        "color",
        "colour",
    ])
    .on(&[
        ("e", On::Program),
        ("regexp", On::Program),
        ("f", On::Program),
        ("file", On::Program),
        ("exclude-from", On::Reads),
    ])
    .operands(Operands::FirstText)
    .more(grep),
    Row::of(&["rg", "ripgrep", "rga"])
        .values("ABCEgjmMtTrd")
        .longs(&[
            "after-context",
            "before-context",
            "context",
            "encoding",
            "glob",
            "iglob",
            "threads",
            "max-count",
            "max-columns",
            "type",
            "type-not",
            "type-add",
            "type-clear",
            "replace",
            "max-depth",
            "maxdepth",
            "sort",
            "sortr",
            "color",
            "colors",
            "context-separator",
            "engine",
            "max-filesize",
            "path-separator",
            "regex-size-limit",
            "dfa-size-limit",
            "field-context-separator",
            "field-match-separator",
        ])
        .on(&[
            ("e", On::Program),
            ("regexp", On::Program),
            ("f", On::Program),
            ("file", On::Program),
            ("files", On::Program),
            ("type-list", On::Inert(&inert::PRINTS)),
            ("ignore-file", On::Reads),
            ("pre", On::Runs),
            ("pre-glob", On::Value),
            ("hostname-bin", On::Runs),
        ])
        .operands(Operands::FirstText)
        .more(search),
    Row::of(&["ag", "ack", "pt", "ugrep", "ast-grep", "sgrep"])
        .values("ABCgmp")
        .longs(&[
            "after",
            "before",
            "context",
            "depth",
            "ignore",
            "ignore-dir",
            "type",
            "lang",
            "pattern",
        ])
        .on(&[
            ("pager", On::Runs),
            ("rewrite", On::With(Deed::Unclear)),
            ("r", On::With(Deed::Unclear)),
            ("output", On::Writes),
            ("filter", On::Runs),
            ("ackrc", On::With(Deed::Code)),
        ])
        .operands(Operands::FirstText),
    Row::reads(&["diff", "gdiff"]).values("UCWxXISF").longs(&[
        "unified",
        "context",
        "width",
        "exclude",
        "exclude-from",
        "ignore-matching-lines",
        "label",
        "show-function-line",
        "horizon-lines",
        "color",
        "palette",
        "starting-file",
        "from-file",
        "to-file",
        "tabsize",
    ]),
    Row::reads(&["difft", "delta"]).longs(&["context", "display", "width", "color", "pager"]),
    Row::of(&["jq", "gojq", "jaq"])
        .longs(&["indent", "tab"])
        .on(&[
            ("f", On::Program),
            ("from-file", On::Program),
            ("L", On::Value),
        ])
        .operands(Operands::FirstText)
        .more(jq),
    Row::of(&["yq", "dasel", "xq", "tomlq", "toml"])
        .values("oprIP")
        .longs(&["output-format", "input-format", "indent", "prettyPrint"])
        .on(&[
            ("i", On::Edits),
            ("inplace", On::Edits),
            ("in-place", On::Edits),
            ("s", On::With(Deed::Unclear)),
            ("split-exp", On::With(Deed::Unclear)),
            ("from-file", On::Program),
        ])
        .operands(Operands::FirstText),
    Row::of(&["xmllint"])
        .longs(&["xpath", "pattern", "encode", "maxmem", "path"])
        .operands(Operands::Read)
        .on(&[
            ("o", On::Writes),
            ("output", On::Writes),
            ("schema", On::Reads),
            ("dtdvalid", On::Reads),
            ("relaxng", On::Reads),
        ]),
    Row::reads(&["iconv"])
        .values("ft")
        .longs(&["from-code", "to-code"])
        .on(&[("o", On::Writes), ("output", On::Writes)]),
    Row::reads(&["less", "more", "most", "pg", "zmore"])
        .values("bhjxyz")
        .on(&[
            ("o", On::Writes),
            ("O", On::Writes),
            ("log-file", On::Writes),
            ("k", On::With(Deed::Code)),
            ("lesskey-file", On::With(Deed::Code)),
            ("lesskey-src", On::With(Deed::Code)),
            ("lesskey-content", On::With(Deed::Code)),
            ("p", On::Value),
            ("t", On::Value),
        ])
        .more(pager),
    Row::of(&["tee", "sponge"]).more(tee),
    Row::of(&["split", "csplit"])
        .values("abCnltfk")
        .longs(&[
            "suffix-length",
            "additional-suffix",
            "bytes",
            "line-bytes",
            "lines",
            "number",
            "separator",
            "prefix",
            "suffix-format",
            "digits",
        ])
        .on(&[("filter", On::Runs)])
        .more(split),
    Row::of(&[
        "which",
        "whereis",
        "type",
        "command-not-found",
        "whatis",
        "apropos",
        "locate",
        "mlocate",
        "plocate",
    ]),
    // Another program under this name.
    Row::of(&["hash"]).on(&[("p", On::With(Deed::Code))]),
    Row::of(&["compgen", "complete"]).values("AGPSX").on(&[
        ("C", On::Runs),
        ("F", On::With(Deed::Code)),
        ("W", On::With(Deed::Code)),
    ]),
    Row::of(&["man", "info", "tldr", "help"])
        .values("MSLm")
        .on(&[
            ("P", On::Runs),
            ("pager", On::Runs),
            ("H", On::Edits),
            ("html", On::With(Deed::Unclear)),
            ("C", On::With(Deed::Code)),
            ("config-file", On::With(Deed::Code)),
            ("o", On::Writes),
            ("output", On::Writes),
        ]),
];

/// `-r` reads all that lies below its operands, or below this folder.
fn grep(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call.has(&["r", "R", "recursive", "dereference-recursive"]) {
        below(call, out);
    }
}

fn search(call: &Call<'_>, out: &mut Vec<Effect>) {
    below(call, out);
}

fn below(call: &Call<'_>, out: &mut Vec<Effect>) {
    use crate::effects::Act;
    let skip = usize::from(!call.has(&["e", "regexp", "f", "file", "files"]));
    let folders = call.operands.iter().skip(skip);
    out.extend(folders.map(|word| Effect::File(Act::ReadBelow, (*word).clone())));
}

/// The values of `--arg NAME TEXT` are two words, those of `--slurpfile NAME FILE` a file.
fn jq(call: &Call<'_>, out: &mut Vec<Effect>) {
    use crate::effects::Act;
    let reads = |at: usize| call.words.get(at + 2).cloned();
    for (at, word) in call.words.iter().enumerate() {
        if matches!(
            word.as_fixed(),
            Some("--slurpfile" | "--rawfile" | "--argfile")
        ) {
            out.extend(reads(at).map(|word| Effect::File(Act::Read, word)));
        }
    }
}

/// `!COMMAND` in a start command of a pager, and `bc`, which knows `!COMMAND` on its input only.
fn pager(call: &Call<'_>, out: &mut Vec<Effect>) {
    let runs = |word: &crate::shell::Word| {
        word.text.starts_with('+') && word.text.contains(['!', '|', 's', 'v', '#'])
    };
    if call.words.iter().any(runs) {
        out.push(Effect::Deed(Deed::Code));
    }
}

/// `dc` runs `!COMMAND`.
fn calculator(call: &Call<'_>, out: &mut Vec<Effect>) {
    let dc = call
        .words
        .first()
        .is_some_and(|word| word.text.ends_with("dc"));
    if dc {
        out.push(Effect::Fed(crate::effects::Language::Other));
    }
    if dc && call.values_of(&["e"]).any(|word| word.text.contains('!')) {
        out.push(Effect::Deed(Deed::Code));
    }
}

/// What it makes is called like its second operand, or `xaa`.
fn split(call: &Call<'_>, out: &mut Vec<Effect>) {
    use crate::effects::Act;
    if let Some(first) = call.operands.first() {
        out.push(Effect::File(Act::Read, (*first).clone()));
    }
    // `csplit` has patterns behind it.
    let prefix = match call.operands.get(1) {
        Some(word) if call.name() == "split" => Some((*word).clone()),
        _ => call.values_of(&["f", "prefix"]).next().cloned(),
    };
    // A folder's name stays what it is, the rest of the name is the program's.
    let mut made = prefix.unwrap_or_else(|| crate::shell::Word::fixed("x"));
    made.append(&crate::shell::Word::fixed("?*"));
    out.push(Effect::File(Act::Write, made));
}

fn tee(call: &Call<'_>, out: &mut Vec<Effect>) {
    let act = match call.has(&["a", "append"]) {
        true => Act::Write,
        false => Act::Replace,
    };
    let files = call.operands.iter();
    out.extend(files.map(|word| Effect::File(act, (*word).clone())));
}
