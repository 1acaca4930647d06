//! Describes programs that read, count, search, sort and print text. Most are harmless apart from
//! what they read; the exceptions are options that write a file or name a program to run.

use crate::effects::inert;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{
    NonFileEffectKind, OperandRole, OptionMeaning, ProgramEffectSpec,
};
use crate::effects::{CommandEffect, FileAccess};

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    // They print their arguments, or facts about the system.
    ProgramEffectSpec::new(&[
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
    ProgramEffectSpec::new(&["date"]).with_option_meanings(&[
        (
            "s",
            OptionMeaning::ValueEffect(NonFileEffectKind::ChangesMachine),
        ),
        (
            "set",
            OptionMeaning::ValueEffect(NonFileEffectKind::ChangesMachine),
        ),
        ("f", OptionMeaning::Reads),
        ("r", OptionMeaning::Value),
        ("d", OptionMeaning::Value),
        ("date", OptionMeaning::Value),
    ]),
    ProgramEffectSpec::new(&[
        "id", "users", "who", "w", "last", "lastlog", "finger", "pinky",
    ]),
    // An operand sets the name, so there should be none.
    ProgramEffectSpec::new(&["hostname"])
        .with_operand_role(OperandRole::None)
        .with_option_meanings(&[
            (
                "F",
                OptionMeaning::ValueEffect(NonFileEffectKind::ChangesMachine),
            ),
            (
                "b",
                OptionMeaning::FlagEffect(NonFileEffectKind::ChangesMachine),
            ),
        ]),
    ProgramEffectSpec::new(&["bc", "dc"])
        .with_operand_role(OperandRole::Read)
        .with_option_meanings(&[("e", OptionMeaning::Value), ("f", OptionMeaning::Reads)])
        .with_extra_effects_fn(calculator_effects),
    // They read their operands.
    ProgramEffectSpec::program_spec_reading_operands(&[
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
    .with_short_value_options("ncbsdmftwiIDNSjAkqX")
    .with_long_value_options(&[
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
    .with_option_meanings(&[("files0-from", OptionMeaning::Reads)]),
    ProgramEffectSpec::program_spec_reading_operands(&["bat", "batcat"])
        .with_long_value_options(&[
            "line-range",
            "theme",
            "style",
            "language",
            "color",
            "wrap",
            "tabs",
            "highlight-line",
        ])
        .with_short_value_options("rlHm")
        .with_option_meanings(&[("pager", OptionMeaning::Command)]),
    // They show metadata of files, not their content.
    ProgramEffectSpec::new(&[
        "ls", "dir", "vdir", "lsd", "exa", "eza", "stat", "readlink", "realpath", "df", "namei",
        "pathchk", "test", "[", "[[", "lsattr", "getfacl", "getfattr", "mdls", "mdfind",
    ])
    .with_short_value_options("cfIwT")
    .with_long_value_options(&[
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
    .with_operand_role(OperandRole::List),
    ProgramEffectSpec::new(&["tr"]),
    ProgramEffectSpec::program_spec_reading_operands(&["base64"])
        .with_short_value_options("bwi")
        .with_long_value_options(&["wrap", "break"])
        .with_option_meanings(&[
            ("o", OptionMeaning::Writes),
            ("output", OptionMeaning::Writes),
            ("i", OptionMeaning::Reads),
            ("input", OptionMeaning::Reads),
        ]),
    ProgramEffectSpec::new(&["xxd"])
        .with_short_value_options("cglos")
        .with_operand_role(OperandRole::ReadThenWrite),
    ProgramEffectSpec::new(&["uniq"])
        .with_short_value_options("fsw")
        .with_long_value_options(&["skip-fields", "skip-chars", "check-chars"])
        .with_operand_role(OperandRole::ReadThenWrite),
    ProgramEffectSpec::program_spec_reading_operands(&["sort", "gsort"])
        .with_short_value_options("kStT")
        .with_long_value_options(&[
            "key",
            "field-separator",
            "buffer-size",
            "temporary-directory",
            "parallel",
            "sort",
            "batch-size",
            "random-source",
        ])
        .with_option_meanings(&[
            ("o", OptionMeaning::Writes),
            ("output", OptionMeaning::Writes),
            // `sort` pipes its temporary files through this program.
            ("compress-program", OptionMeaning::Command),
            ("files0-from", OptionMeaning::Reads),
        ]),
    ProgramEffectSpec::program_spec_reading_operands(&["shuf", "gshuf"])
        .with_short_value_options("ni")
        .with_long_value_options(&["head-count", "input-range"])
        .with_option_meanings(&[
            ("o", OptionMeaning::Writes),
            ("output", OptionMeaning::Writes),
            ("random-source", OptionMeaning::Reads),
            ("e", OptionMeaning::Value),
            ("echo", OptionMeaning::Value),
        ]),
    ProgramEffectSpec::new(&["tree"])
        .with_short_value_options("LPIHT")
        .with_long_value_options(&[
            "filelimit",
            "charset",
            "timefmt",
            "sort",
            "filesfrom",
            "fromtabfile",
        ])
        .with_option_meanings(&[("o", OptionMeaning::Writes)])
        .with_operand_role(OperandRole::List),
    ProgramEffectSpec::new(&["du", "ncdu", "dust"])
        .with_short_value_options("dtXBo")
        .with_long_value_options(&[
            "max-depth",
            "threshold",
            "exclude",
            "block-size",
            "exclude-from",
            "time-style",
        ])
        .with_operand_role(OperandRole::Read)
        .with_option_meanings(&[("files0-from", OptionMeaning::Reads)]),
    ProgramEffectSpec::new(&[
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
    .with_short_value_options("ABCmdD")
    .with_long_value_options(&[
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
    .with_option_meanings(&[
        ("e", OptionMeaning::ProgramText),
        ("regexp", OptionMeaning::ProgramText),
        ("f", OptionMeaning::ProgramText),
        ("file", OptionMeaning::ProgramText),
        ("exclude-from", OptionMeaning::Reads),
    ])
    .with_operand_role(OperandRole::PatternThenRead)
    .with_extra_effects_fn(recursive_grep_effects),
    ProgramEffectSpec::new(&["rg", "ripgrep", "rga"])
        .with_short_value_options("ABCEgjmMtTrd")
        .with_long_value_options(&[
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
        .with_option_meanings(&[
            ("e", OptionMeaning::ProgramText),
            ("regexp", OptionMeaning::ProgramText),
            ("f", OptionMeaning::ProgramText),
            ("file", OptionMeaning::ProgramText),
            ("files", OptionMeaning::ProgramText),
            ("type-list", OptionMeaning::Inert(&inert::PRINTS)),
            ("ignore-file", OptionMeaning::Reads),
            // Ripgrep runs it on every file that it searches.
            ("pre", OptionMeaning::Command),
            ("pre-glob", OptionMeaning::Value),
            // Ripgrep runs it to find the host name for hyperlinks.
            ("hostname-bin", OptionMeaning::Command),
        ])
        .with_operand_role(OperandRole::PatternThenRead)
        .with_extra_effects_fn(ripgrep_effects),
    ProgramEffectSpec::new(&["ag", "ack", "pt", "ugrep", "ast-grep", "sgrep"])
        .with_short_value_options("ABCgmp")
        .with_long_value_options(&[
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
        .with_option_meanings(&[
            ("pager", OptionMeaning::Command),
            (
                "rewrite",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            // ast-grep rewrites files with `-r`; the other programs of the row give the letter
            // another meaning.
            (
                "r",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            ("output", OptionMeaning::Writes),
            // ugrep passes files through these commands.
            ("filter", OptionMeaning::Command),
            (
                // An ackrc file can define options, the pager among them.
                "ackrc",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
        ])
        .with_operand_role(OperandRole::PatternThenRead),
    ProgramEffectSpec::program_spec_reading_operands(&["diff", "gdiff"])
        .with_short_value_options("UCWxXISF")
        .with_long_value_options(&[
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
    ProgramEffectSpec::program_spec_reading_operands(&["difft", "delta"])
        .with_long_value_options(&["context", "display", "width", "color", "pager"]),
    ProgramEffectSpec::new(&["jq", "gojq", "jaq"])
        .with_long_value_options(&["indent", "tab"])
        .with_option_meanings(&[
            ("f", OptionMeaning::ProgramText),
            ("from-file", OptionMeaning::ProgramText),
            ("L", OptionMeaning::Value),
        ])
        .with_operand_role(OperandRole::PatternThenRead)
        .with_extra_effects_fn(jq_effects),
    ProgramEffectSpec::new(&["yq", "dasel", "xq", "tomlq", "toml"])
        .with_short_value_options("oprIP")
        .with_long_value_options(&["output-format", "input-format", "indent", "prettyPrint"])
        .with_option_meanings(&[
            ("i", OptionMeaning::Edits),
            ("inplace", OptionMeaning::Edits),
            ("in-place", OptionMeaning::Edits),
            // `yq -s` splits a document into files whose names it computes.
            (
                "s",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            (
                "split-exp",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            ("from-file", OptionMeaning::ProgramText),
        ])
        .with_operand_role(OperandRole::PatternThenRead),
    ProgramEffectSpec::new(&["xmllint"])
        .with_long_value_options(&["xpath", "pattern", "encode", "maxmem", "path"])
        .with_operand_role(OperandRole::Read)
        .with_option_meanings(&[
            ("o", OptionMeaning::Writes),
            ("output", OptionMeaning::Writes),
            ("schema", OptionMeaning::Reads),
            ("dtdvalid", OptionMeaning::Reads),
            ("relaxng", OptionMeaning::Reads),
        ]),
    ProgramEffectSpec::program_spec_reading_operands(&["iconv"])
        .with_short_value_options("ft")
        .with_long_value_options(&["from-code", "to-code"])
        .with_option_meanings(&[
            ("o", OptionMeaning::Writes),
            ("output", OptionMeaning::Writes),
        ]),
    ProgramEffectSpec::program_spec_reading_operands(&["less", "more", "most", "pg", "zmore"])
        .with_short_value_options("bhjxyz")
        .with_option_meanings(&[
            ("o", OptionMeaning::Writes),
            ("O", OptionMeaning::Writes),
            ("log-file", OptionMeaning::Writes),
            // A lesskey file can bind keys to commands, and set variables such as `LESSOPEN`.
            (
                "k",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "lesskey-file",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "lesskey-src",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "lesskey-content",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            ("p", OptionMeaning::Value),
            ("t", OptionMeaning::Value),
        ])
        .with_extra_effects_fn(pager_effects),
    ProgramEffectSpec::new(&["tee", "sponge"]).with_extra_effects_fn(tee_effects),
    ProgramEffectSpec::new(&["split", "csplit"])
        .with_short_value_options("abCnltfk")
        .with_long_value_options(&[
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
        // `split --filter` pipes each part to a command.
        .with_option_meanings(&[("filter", OptionMeaning::Command)])
        .with_extra_effects_fn(split_program_effects),
    ProgramEffectSpec::new(&[
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
    // `hash -p FILE NAME` makes NAME run another program.
    ProgramEffectSpec::new(&["hash"]).with_option_meanings(&[(
        "p",
        OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
    )]),
    ProgramEffectSpec::new(&["compgen", "complete"])
        .with_short_value_options("AGPSX")
        .with_option_meanings(&[
            // Completion runs this command or function; `-W` expands its words.
            ("C", OptionMeaning::Command),
            (
                "F",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "W",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
        ]),
    ProgramEffectSpec::new(&["man", "info", "tldr", "help"])
        .with_short_value_options("MSLm")
        .with_option_meanings(&[
            // `-P` names the pager, `-H` a browser, and `-C` a config file that can name them.
            ("P", OptionMeaning::Command),
            ("pager", OptionMeaning::Command),
            ("H", OptionMeaning::Edits),
            (
                "html",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            (
                "C",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "config-file",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            ("o", OptionMeaning::Writes),
            ("output", OptionMeaning::Writes),
        ]),
];

/// Adds that `grep -r` reads everything below its operands.
fn recursive_grep_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if call.has_option(&["r", "R", "recursive", "dereference-recursive"]) {
        add_grep_recursive_read_effects(call, out);
    }
}

fn ripgrep_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    add_grep_recursive_read_effects(call, out);
}

fn add_grep_recursive_read_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    use crate::effects::FileAccess;
    let skip = usize::from(!call.has_option(&["e", "regexp", "f", "file", "files"]));
    let folders = call.operands.iter().skip(skip);
    out.extend(folders.map(|word| CommandEffect::File(FileAccess::ReadBelow, (*word).clone())));
}

/// Adds the files of `--slurpfile NAME FILE` and its like, whose values are two words.
fn jq_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    use crate::effects::FileAccess;
    let reads = |at: usize| call.words.get(at + 2).cloned();
    for (at, word) in call.words.iter().enumerate() {
        if matches!(
            word.as_literal(),
            Some("--slurpfile" | "--rawfile" | "--argfile")
        ) {
            out.extend(reads(at).map(|word| CommandEffect::File(FileAccess::Read, word)));
        }
    }
}

/// Judges the start command of a pager (`+!CMD`), which can run or write something.
fn pager_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let runs = |word: &crate::shell::CommandWord| {
        word.text.starts_with('+') && word.text.contains(['!', '|', 's', 'v', '#'])
    };
    if call.words.iter().any(runs) {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
}

/// Judges `dc`, which runs `!COMMAND`. `bc` has no such command in its arguments.
fn calculator_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let dc = call
        .words
        .first()
        .is_some_and(|word| word.text.ends_with("dc"));
    if dc {
        out.push(CommandEffect::StdinCode(
            crate::effects::CodeLanguage::Unread,
        ));
    }
    if dc
        && call
            .option_values(&["e"])
            .any(|word| word.text.contains('!'))
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
}

/// Adds the files that `split` and `csplit` write, named after a prefix or `x`.
fn split_program_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    use crate::effects::FileAccess;
    if let Some(first) = call.operands.first() {
        out.push(CommandEffect::File(FileAccess::Read, (*first).clone()));
    }
    // The second operand of `csplit` is a pattern, and its prefix an option.
    let prefix = match call.operands.get(1) {
        Some(word) if call.command_name() == "split" => Some((*word).clone()),
        _ => call.option_values(&["f", "prefix"]).next().cloned(),
    };
    // The program only appends to the prefix, so the folder is known.
    let mut made = prefix.unwrap_or_else(|| crate::shell::CommandWord::new_literal_word("x"));
    made.append_word_without_blank(&crate::shell::CommandWord::new_literal_word("?*"));
    out.push(CommandEffect::File(FileAccess::Write, made));
}

fn tee_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // Only replacing loses what a file of accounts or settings held.
    let act = match call.has_option(&["a", "append"]) {
        true => FileAccess::Write,
        false => FileAccess::Replace,
    };
    let files = call.operands.iter();
    out.extend(files.map(|word| CommandEffect::File(act, (*word).clone())));
}
