//! Describes programs that create, copy, move, find and remove files, or change their permissions.

use crate::effects::inert;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{
    NonFileEffectKind, OperandRole, OptionMeaning, ProgramEffectSpec,
};
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::{CommandWord, WordKnowledge};

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::program_spec_removing_operands(&[
        "rm",
        "rmdir",
        "unlink",
        "grm",
        "trash",
        "trash-put",
        "rmtrash",
        "rimraf",
        "del-cli",
    ]),
    ProgramEffectSpec::program_spec_removing_operands(&["shred", "srm", "wipe"])
        .with_short_value_options("ns")
        .with_long_value_options(&["iterations", "size"]),
    ProgramEffectSpec::program_spec_writing_operands(&[
        "mkdir", "touch", "mkfifo", "gmkdir", "gtouch",
    ])
    .with_short_value_options("mtd")
    .with_long_value_options(&["mode", "date", "time"])
    .with_option_meanings(&[
        ("r", OptionMeaning::Reads),
        ("reference", OptionMeaning::Reads),
    ]),
    ProgramEffectSpec::new(&["gio"]).with_extra_effects_fn(gio_effects),
    ProgramEffectSpec::new(&["truncate", "fallocate"])
        .with_operand_role(OperandRole::Replace)
        .with_short_value_options("slo")
        .with_long_value_options(&["size", "length", "offset"])
        .with_option_meanings(&[
            ("r", OptionMeaning::Reads),
            ("reference", OptionMeaning::Reads),
        ]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["mknod"],
        &[NonFileEffectKind::ChangesMachine],
    ),
    ProgramEffectSpec::new(&["mktemp"]),
    ProgramEffectSpec::new(&["cp", "gcp", "copy", "pcp"])
        .with_operand_role(OperandRole::Copy)
        .with_short_value_options("S")
        .with_long_value_options(&["suffix", "context"])
        .with_option_meanings(&[
            ("t", OptionMeaning::TargetDir),
            ("target-directory", OptionMeaning::TargetDir),
        ])
        .with_extra_effects_fn(recursive_copy_effects),
    ProgramEffectSpec::new(&["install", "ginstall"])
        .with_operand_role(OperandRole::Copy)
        .with_short_value_options("gmoS")
        .with_long_value_options(&["group", "mode", "owner", "suffix", "context"])
        .with_option_meanings(&[
            ("t", OptionMeaning::TargetDir),
            ("target-directory", OptionMeaning::TargetDir),
            ("strip-program", OptionMeaning::Command),
        ])
        .with_extra_effects_fn(install_command_effects),
    ProgramEffectSpec::new(&["mv", "gmv"])
        .with_operand_role(OperandRole::Move)
        .with_short_value_options("S")
        .with_long_value_options(&["suffix", "context"])
        .with_option_meanings(&[
            ("t", OptionMeaning::TargetDir),
            ("target-directory", OptionMeaning::TargetDir),
        ]),
    ProgramEffectSpec::new(&["ln", "gln", "link"])
        .with_short_value_options("S")
        .with_long_value_options(&["suffix"])
        .with_option_meanings(&[
            ("t", OptionMeaning::TargetDir),
            ("target-directory", OptionMeaning::TargetDir),
        ])
        .with_extra_effects_fn(ln_effects),
    ProgramEffectSpec::new(&["rename", "prename", "mmv", "zmv"])
        .with_extra_effects_fn(rename_effects),
    ProgramEffectSpec::new(&["chmod", "gchmod"]).with_extra_effects_fn(chmod_effects),
    ProgramEffectSpec::new(&["chown", "chgrp"]).with_extra_effects_fn(chown_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "chattr",
            "setfacl",
            "setfattr",
            "setcap",
            "chflags",
            "chcon",
            "restorecon",
        ],
        &[NonFileEffectKind::Privilege],
    )
    .with_operand_role(OperandRole::Write),
    ProgramEffectSpec::program_spec_with_fixed_effects(&["xattr"], &[NonFileEffectKind::Privilege]),
    ProgramEffectSpec::new(&["dd", "gdd", "dcfldd"]).with_extra_effects_fn(dd_effects),
    ProgramEffectSpec::new(&["patch", "gpatch"])
        .with_short_value_options("pFgVzYBDdr")
        .with_long_value_options(&[
            "strip",
            "fuzz",
            "prefix",
            "suffix",
            "basename-prefix",
            "ifdef",
            "version-control",
            "quoting-style",
            "read-only",
        ])
        .with_option_meanings(&[
            ("i", OptionMeaning::Reads),
            ("input", OptionMeaning::Reads),
            ("o", OptionMeaning::Writes),
            ("output", OptionMeaning::Writes),
            ("r", OptionMeaning::Writes),
            ("reject-file", OptionMeaning::Writes),
            ("dry-run", OptionMeaning::Inert(&inert::PATCH)),
        ])
        .with_extra_effects_fn(patch_effects),
    ProgramEffectSpec::program_spec_reading_operands(&["dos2unix", "unix2dos"])
        .with_option_meanings(&[("n", OptionMeaning::Edits)])
        .with_extra_effects_fn(line_ending_effects),
    ProgramEffectSpec::new(&["find", "gfind"]).with_extra_effects_fn(find_effects),
    ProgramEffectSpec::new(&["fd", "fdfind"])
        .with_operand_role(OperandRole::Text)
        .with_short_value_options("eEtdSocjg")
        .with_long_value_options(&[
            "extension",
            "exclude",
            "type",
            "max-depth",
            "min-depth",
            "size",
            "owner",
            "color",
            "threads",
            "changed-within",
            "changed-before",
            "base-directory",
            "format",
            "max-results",
        ]),
];

/// Adds that a recursive copy reads everything below its sources.
fn recursive_copy_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if call.has_option(&["r", "R", "a", "recursive", "archive"]) {
        let into = call.has_option(&["t", "target-directory"]);
        let sources = call.operands.len().saturating_sub(usize::from(!into));
        out.extend(
            call.operands
                .iter()
                .take(sources)
                .map(|word| CommandEffect::File(FileAccess::ReadBelow, (*word).clone())),
        );
        // With `-T` or `SRC/.` the content of the source is put into the target, under names that
        // are not known.
        let whole = call.has_option(&["T", "no-target-directory"])
            || call.operands.iter().any(|word| word.text.ends_with("/."));
        let target = call.operands.last().filter(|_| whole && !into);
        out.extend(target.map(|word| CommandEffect::File(FileAccess::Unpack, (*word).clone())));
    }
}

/// Judges `install`: an owner or a setuid mode is a matter of rights, `-d` creates folders.
fn install_command_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let lends = |word: &CommandWord| sets_special_permission_bit(&word.text);
    if call.has_option(&["o", "owner"]) || call.option_values(&["m", "mode"]).any(lends) {
        out.push(CommandEffect::Kind(NonFileEffectKind::Privilege));
    }
    if call.has_option(&["d", "directory"]) {
        out.extend(
            call.operands
                .iter()
                .map(|word| CommandEffect::File(FileAccess::Write, (*word).clone())),
        );
    }
}

/// Adds a link. Writing through the new name writes the source, so both names are judged.
fn ln_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let into = call.option_values(&["t", "target-directory"]).next();
    let (target, sources) = match (into, call.operands.split_last()) {
        (Some(folder), _) => (folder.clone(), call.operands.as_slice()),
        (None, Some((only, []))) => {
            // `ln -s PATH` makes the link in the working folder, under the name of the file.
            out.push(CommandEffect::Link(
                (*only).clone(),
                CommandWord::new_literal_word("."),
                false,
            ));
            return;
        }
        (None, Some((last, sources))) => ((*last).clone(), sources),
        (None, None) => return,
    };
    let act = match call.has_option(&["f", "force"]) {
        true => FileAccess::Replace,
        false => FileAccess::Write,
    };
    out.push(CommandEffect::File(act, target.clone()));
    let symbolic = call.has_option(&["s", "symbolic"]);
    out.extend(
        sources
            .iter()
            .map(|word| CommandEffect::Link((*word).clone(), target.clone(), symbolic)),
    );
    let sources = sources.iter().map(|word| (*word).clone()).collect();
    out.push(CommandEffect::PutInto(target, sources));
}

/// Judges `rename`, which exists twice: with a Perl expression, or with two plain texts.
fn rename_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let skip = if call
        .words
        .first()
        .is_some_and(|word| word.text == "prename")
    {
        1
    } else {
        2
    };
    // A Perl expression can run anything. Only `s/x/y/` and `y/a/b/` of plain signs are accepted,
    // without the flag `e`.
    let code = call.operands.first().is_some_and(|word| {
        let plain = |text: &str| {
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() || " ._-/\\$^*+?()[]|sy".contains(c))
        };
        !word.as_literal().is_some_and(plain) || word.text.ends_with('e') && word.text.contains('/')
    });
    if code {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    // A slash means one Perl expression; else FROM and TO stand before the files.
    let skip = if call
        .operands
        .first()
        .is_some_and(|word| word.text.contains('/'))
    {
        1
    } else {
        skip
    };
    for word in call.operands.iter().skip(skip) {
        out.push(CommandEffect::File(FileAccess::Remove, (*word).clone()));
    }
}

/// Whether a mode sets setuid, setgid or the sticky bit, in octal or as `s`.
fn sets_special_permission_bit(mode: &str) -> bool {
    let digits = mode.trim_start_matches('0');
    let octal = !mode.is_empty() && mode.chars().all(|c| c.is_digit(8));
    (octal && digits.len() > 3) || (!octal && mode.contains('s'))
}

/// Whether a mode takes a right from the owner or lets everybody write.
fn chmod_mode_breaks_permissions(mode: &str) -> bool {
    if !mode.is_empty() && mode.chars().all(|c| c.is_digit(8)) {
        // From the right: others, group, owner. Bit 2 is the right to write.
        let mut digits = mode.chars().rev().filter_map(|c| c.to_digit(8));
        let (other, owner) = (digits.next(), digits.nth(1));
        return owner.unwrap_or(0) != 7 || other.unwrap_or(0) & 2 != 0;
    }
    mode.split(',').any(|part| {
        let at = part.find(['+', '-', '=']).unwrap_or(part.len());
        let (who, what) = part.split_at(at);
        let owner = who.is_empty() || who.contains(['a', 'u']);
        let everybody = who.is_empty() || who.contains(['a', 'o']);
        match what.chars().next() {
            Some('-') => owner && what.contains(['r', 'w', 'x', 'X']),
            // Without a "who" the umask applies, which normally keeps others from writing.
            Some('+') => everybody && what.contains('w') && !who.is_empty(),
            Some('=') => {
                owner && !(what.contains('r') && what.contains('w') && what.contains(['x', 'X']))
                    || everybody && what.contains('w')
            }
            _ => false,
        }
    })
}

fn add_permission_effects(words: Option<&[&CommandWord]>, out: &mut Vec<CommandEffect>) {
    let words = words.unwrap_or(&[]).iter();
    out.extend(
        words.map(|word| CommandEffect::File(FileAccess::BreakPermissions, (*word).clone())),
    );
}

/// Whether this account is none of a person, so that a home given to it is lost to its owner.
fn is_system_account(owner: &str) -> bool {
    let owner = owner.split([':', '.']).next().unwrap_or(owner);
    [
        "root", "nobody", "daemon", "bin", "sys", "www-data", "nginx", "0", "65534",
    ]
    .contains(&owner)
}

/// Judges `gio` by its sub-command; those not listed open or copy something.
fn gio_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let files = call.operands.get(1..).unwrap_or(&[]).iter();
    match call.literal_operand(0) {
        Some("trash" | "remove") => {
            out.extend(files.map(|word| CommandEffect::File(FileAccess::Remove, (*word).clone())));
        }
        Some("info" | "list" | "tree" | "version" | "help") => {}
        Some("cat") => {
            out.extend(files.map(|word| CommandEffect::File(FileAccess::Read, (*word).clone())))
        }
        _ => out.push(CommandEffect::Kind(NonFileEffectKind::UnknownProgram)),
    }
}

fn chmod_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if call.has_option(&["R", "recursive"]) {
        out.push(CommandEffect::Kind(NonFileEffectKind::ChangesModes));
    }
    // `-x` and `-w` are modes, not options.
    let letters = |name: &str| name.chars().all(|c| "rwxXstugo".contains(c)) && !name.is_empty();
    let minus = call.options.iter().any(|(name, _)| letters(name));
    // With such a mode, or `--reference`, every operand is a file.
    let skip = usize::from(!minus && !call.has_option(&["reference"]));
    let mode = call.operands.first().filter(|_| skip == 1);
    if call.has_option(&["R", "recursive"])
        && mode.is_some_and(|word| chmod_mode_breaks_permissions(&word.text))
    {
        add_permission_effects(call.operands.get(1..), out);
    }
    if skip == 1 {
        match call.operands.first() {
            Some(mode)
                if mode.knowledge != WordKnowledge::Literal
                    || sets_special_permission_bit(&mode.text) =>
            {
                out.push(CommandEffect::Kind(NonFileEffectKind::Privilege));
            }
            _ => {}
        }
    }
    out.extend(
        call.operands
            .iter()
            .skip(skip)
            .map(|word| CommandEffect::File(FileAccess::Write, (*word).clone())),
    );
}

fn chown_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // Giving files away needs rights that the work normally does not have.
    out.push(CommandEffect::Kind(
        if call.has_option(&["R", "recursive"]) {
            NonFileEffectKind::ChangesModes
        } else {
            NonFileEffectKind::Privilege
        },
    ));
    let skip = usize::from(!call.has_option(&["reference"]));
    if call.has_option(&["R", "recursive"])
        && call.literal_operand(0).is_some_and(is_system_account)
        && skip == 1
    {
        add_permission_effects(call.operands.get(1..), out);
    }
    out.extend(
        call.operands
            .iter()
            .skip(skip)
            .map(|word| CommandEffect::File(FileAccess::Write, (*word).clone())),
    );
}

fn dd_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    for word in call.words.iter().skip(1) {
        // Operands of `dd` are `NAME=VALUE`; an unknown word could be `of=/dev/sda`.
        let Some((name, _)) = word.text.split_once('=') else {
            if word.knowledge != WordKnowledge::Literal {
                out.push(CommandEffect::Kind(NonFileEffectKind::UnknownOptions));
            }
            continue;
        };
        let act = match name {
            "if" => FileAccess::Read,
            "of" => FileAccess::Replace,
            _ => continue,
        };
        out.extend(
            word.suffix_after_char('=')
                .map(|value| CommandEffect::File(act, value)),
        );
    }
}

/// Judges `patch`. The files are named in the patch, unless an operand names the one to change.
fn patch_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    match call.operands.first() {
        Some(file) => out.push(CommandEffect::File(FileAccess::Write, (*file).clone())),
        None => {
            let folder = call.option_values(&["d", "directory"]).next().cloned();
            out.push(CommandEffect::Patch(folder));
        }
    }
    if let Some(file) = call.operands.get(1) {
        out.push(CommandEffect::File(FileAccess::Read, (*file).clone()));
    }
}

fn line_ending_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.extend(
        call.operands
            .iter()
            .map(|word| CommandEffect::File(FileAccess::Write, (*word).clone())),
    );
}

/// Tests and options of `find` that take one word and have no effect.
const TESTS: &[&str] = &[
    "-amin",
    "-anewer",
    "-atime",
    "-cmin",
    "-cnewer",
    "-context",
    "-ctime",
    "-fstype",
    "-gid",
    "-group",
    "-ilname",
    "-iname",
    "-inum",
    "-ipath",
    "-iregex",
    "-iwholename",
    "-links",
    "-lname",
    "-maxdepth",
    "-mindepth",
    "-mmin",
    "-mtime",
    "-name",
    "-newer",
    "-path",
    "-perm",
    "-printf",
    "-regex",
    "-regextype",
    "-samefile",
    "-size",
    "-type",
    "-uid",
    "-used",
    "-user",
    "-wholename",
    "-xtype",
    "-newermt",
    "-newerct",
    "-newerat",
    "-newermm",
    "-newercc",
    "-newerac",
    "-newercm",
    "-newerBt",
    "-D",
    "-files0-from",
];
// Options, operators and actions of `find` that take no word.
const ALONE: &[&str] = &[
    "-H",
    "-L",
    "-P",
    "-X",
    "-E",
    "-a",
    "-o",
    "-and",
    "-or",
    "-not",
    "!",
    "(",
    ")",
    ",",
    "-daystart",
    "-depth",
    "-d",
    "-empty",
    "-executable",
    "-false",
    "-follow",
    "-ignore_readdir_race",
    "-ls",
    "-mount",
    "-nogroup",
    "-noleaf",
    "-nouser",
    "-nowarn",
    "-print",
    "-print0",
    "-prune",
    "-quit",
    "-readable",
    "-true",
    "-warn",
    "-writable",
    "-xdev",
    "-x",
    "-s",
    "-O1",
    "-O2",
    "-O3",
    "-O0",
    "--",
    "-help",
    "--help",
    "--version",
    "-version",
];

/// Returns where `find` starts, and the names it selects by if every alternative has one.
pub(super) fn starts_and_names_of_find(
    words: &[CommandWord],
) -> (Vec<CommandWord>, Vec<CommandWord>) {
    // Phase 1: the starting points stand before the first test.
    let mut starts = Vec::new();
    let mut names = Vec::new();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        match word.as_literal() {
            Some("-H" | "-L" | "-P" | "-E" | "-X" | "-x" | "-d" | "-s" | "--") => {}
            Some("-f" | "-D") => at += 1,
            Some("(" | "!" | ",") => break,
            Some(text) if text.starts_with("-O") => {}
            Some(text) if text.starts_with('-') => break,
            _ => starts.push(word.clone()),
        }
        at += 1;
    }
    // Phase 2: names count only if each alternative of `-o` has one and nothing is negated: with
    // `-name x -o -size 0` anything could be found.
    let turned = |word: &CommandWord| {
        matches!(
            word.as_literal(),
            Some("-not" | "!" | "," | "-regex" | "-iregex")
        )
    };
    let any = words.iter().skip(at).any(turned);
    let mut named = false;
    let mut all = !any;
    while let Some(word) = words.get(at) {
        at += 1;
        match word.as_literal() {
            Some("-name" | "-iname") => {
                named = true;
                names.extend(words.get(at).cloned());
            }
            Some("-o" | "-or") => all &= std::mem::take(&mut named),
            Some("-exec" | "-execdir" | "-ok" | "-okdir" | "-delete") => break,
            _ => {}
        }
    }
    if !(all && named) {
        names.clear();
    }
    if starts.is_empty() {
        starts.push(CommandWord::new_literal_word("."));
    }
    (starts, names)
}

/// Whether some test of `find` filters, so that not everything is found.
pub(super) fn has_find_filter(words: &[CommandWord]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        // `-name '*'` is every name.
        let every = |test: &str| {
            let next = words.get(at + 1).and_then(CommandWord::as_literal);
            let wild = next.is_some_and(|text| {
                text.contains('*') && text.chars().all(|c| matches!(c, '*' | '?'))
            });
            let turned = at.checked_sub(1).and_then(|at| words.get(at));
            let turned = turned.is_some_and(|word| matches!(word.as_literal(), Some("!" | "-not")));
            let named = [
                "-name",
                "-iname",
                "-path",
                "-ipath",
                "-wholename",
                "-iwholename",
                "-regex",
                "-iregex",
            ];
            // Everything except one name is as good as everything.
            (turned || wild) && named.contains(&test)
        };
        if word.as_literal().is_some_and(every) {
            return false;
        }
        matches!(
            word.as_literal(),
            Some(
                "-name"
                    | "-iname"
                    | "-path"
                    | "-ipath"
                    | "-wholename"
                    | "-regex"
                    | "-iregex"
                    | "-empty"
                    | "-newer"
                    | "-mtime"
                    | "-mmin"
                    | "-size"
                    | "-perm"
                    | "-atime"
                    | "-ctime"
                    | "-lname"
                    | "-xtype"
                    | "-iwholename"
                    | "-user"
            )
        )
    })
}

fn find_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let words = call.words;
    let (starts, names) = starts_and_names_of_find(words);
    out.extend(
        starts
            .iter()
            .map(|word| CommandEffect::File(FileAccess::List, word.clone())),
    );
    let mut at = 1 + starts.len();
    // While starting points may still follow, an unknown word is one of them, or an option.
    let mut lists = starts.len();
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(text) = word.as_literal() else {
            out.push(match lists {
                0 => CommandEffect::Kind(NonFileEffectKind::UnknownOptions),
                _ => CommandEffect::PossibleOption(word.clone()),
            });
            continue;
        };
        match text {
            "-delete" => {
                // Without a filter `-delete` removes the starting points themselves.
                let all = path_patterns_of_find_results(&starts, &names, has_find_filter(words));
                out.extend(
                    all.into_iter()
                        .map(|word| CommandEffect::File(FileAccess::Remove, word)),
                );
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                out.extend(
                    words
                        .get(at)
                        .map(|word| CommandEffect::File(FileAccess::Write, word.clone())),
                );
                // `-fprintf FILE FORMAT` takes two words, the others one.
                at += if text == "-fprintf" { 2 } else { 1 };
            }
            // The command behind them is found by the shell grammar, and judged on its own.
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let ends = |word: &CommandWord| matches!(word.as_literal(), Some(";" | "+"));
                at += words
                    .get(at..)
                    .and_then(|rest| rest.iter().position(ends))
                    .map_or(words.len(), |end| end + 1);
            }
            _ if TESTS.contains(&text) => at += 1,
            _ if ALONE.contains(&text) => {}
            _ if text.starts_with('-') => {
                out.push(CommandEffect::Kind(NonFileEffectKind::UnknownOptions))
            }
            _ => lists = 0,
        }
    }
}

/// Returns patterns for what is found below these folders, by these names if there are any.
pub(super) fn path_patterns_of_find_results(
    starts: &[CommandWord],
    names: &[CommandWord],
    chosen: bool,
) -> Vec<CommandWord> {
    let by_name = |start: &CommandWord| -> Vec<CommandWord> {
        match names {
            [] => vec![path_pattern_of_find_results(start, None, chosen)],
            names => names
                .iter()
                .map(|name| path_pattern_of_find_results(start, Some(name), chosen))
                .collect(),
        }
    };
    starts.iter().flat_map(by_name).collect()
}

/// Returns the pattern that `{}` stands for. Without a filter (`chosen`) the folder itself is
/// found.
pub(super) fn path_pattern_of_find_results(
    start: &CommandWord,
    name: Option<&CommandWord>,
    chosen: bool,
) -> CommandWord {
    if !chosen {
        return start.clone();
    }
    let mut word = start.clone();
    let name = name.and_then(CommandWord::as_literal).unwrap_or("?*");
    word.append_word_without_blank(&CommandWord::new_literal_word(format!("/**/{name}")));
    word
}

/// Options of `fd` that take a word.
const FD_VALUES: &[&str] = &[
    "-t",
    "-e",
    "-d",
    "-E",
    "-S",
    "-o",
    "-c",
    "-j",
    "--type",
    "--extension",
    "--max-depth",
    "--min-depth",
    "--exact-depth",
    "--exclude",
    "--size",
    "--owner",
    "--color",
    "--threads",
    "--changed-within",
    "--changed-before",
    "--max-results",
    "--base-directory",
    "--and",
    "--ignore-file",
    "--path-separator",
    "--search-path",
    "--format",
];

/// Returns what `fd` finds. Without a pattern or another filter that is everything in its folders.
pub(super) fn paths_found_by_fd(words: &[CommandWord]) -> Vec<CommandWord> {
    let mut operands = Vec::new();
    let mut chosen = false;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        at += 1;
        match word.as_literal() {
            Some("-x" | "-X" | "--exec" | "--exec-batch") => break,
            Some(text) if FD_VALUES.contains(&text) => {
                // These select nothing by name, age or size.
                let whole = matches!(
                    text,
                    "-j" | "--threads" | "-c" | "--color" | "-t" | "--type"
                );
                chosen |= !whole;
                at += 1;
            }
            Some(text) if text.starts_with('-') => {
                chosen |= [
                    "-e",
                    "-E",
                    "-S",
                    "--ext",
                    "--exc",
                    "--size",
                    "--changed",
                    "--max-d",
                ]
                .iter()
                .any(|begin| text.starts_with(begin));
            }
            _ => operands.push(word),
        }
    }
    let pattern = operands.first().map(|word| word.text.as_str());
    // A pattern that matches every name is none.
    chosen |= !matches!(pattern, None | Some("" | "." | ".*" | "^" | "$"));
    match operands.get(1..) {
        None | Some([]) => vec![CommandWord::new_literal_word("**/?*")],
        Some(folders) => folders
            .iter()
            .map(|folder| path_pattern_of_find_results(folder, None, chosen))
            .collect(),
    }
}
