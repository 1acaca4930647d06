//! Describes archivers and compressors. What they pack is read; the folder that they unpack into is
//! written under names that only the archive knows.

use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{
    NonFileEffectKind, OperandRole, OptionMeaning, ProgramEffectSpec,
};
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::CommandWord;

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::new(&["tar", "gtar", "bsdtar"]).with_extra_effects_fn(tar_effects),
    ProgramEffectSpec::new(&[
        "gzip",
        "gunzip",
        "bzip2",
        "bunzip2",
        "xz",
        "unxz",
        "lzma",
        "unlzma",
        "zstd",
        "unzstd",
        "lz4",
        "unlz4",
        "compress",
        "uncompress",
        "pigz",
        "lzip",
        "brotli",
        "pixz",
        "pbzip2",
        "lzop",
        "ncompress",
        "snzip",
    ])
    .with_short_value_options("SbTMDq")
    .with_long_value_options(&[
        "suffix",
        "threads",
        "memlimit",
        "format",
        "block-size",
        "quality",
    ])
    .with_option_meanings(&[
        ("o", OptionMeaning::Writes),
        ("output", OptionMeaning::Writes),
        ("output-dir-flat", OptionMeaning::Writes),
        ("c", OptionMeaning::Value),
        ("stdout", OptionMeaning::Value),
    ])
    .with_extra_effects_fn(compressor_effects),
    ProgramEffectSpec::new(&["zip"])
        .with_short_value_options("bnPstixT")
        .with_option_meanings(&[
            // `zip -T -TT COMMAND` tests the archive with this command.
            (
                "TT",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            (
                "unzip-command",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
            ),
            ("b", OptionMeaning::Value),
            ("O", OptionMeaning::Writes),
            ("out", OptionMeaning::Writes),
        ])
        .with_extra_effects_fn(zip_effects),
    ProgramEffectSpec::new(&["unzip", "bsdunzip"])
        .with_short_value_options("xPIO")
        .with_option_meanings(&[("d", OptionMeaning::Writes)])
        .with_extra_effects_fn(unzip_effects),
    ProgramEffectSpec::program_spec_reading_operands(&["zipinfo", "zipnote", "lsar", "tarlist"])
        .with_operand_role(OperandRole::Read),
    ProgramEffectSpec::new(&[
        "7z",
        "7za",
        "7zr",
        "7zz",
        "unrar",
        "rar",
        "unar",
        "jar",
        "cpio",
        "pax",
        "ar-x",
        "arj",
        "unace",
        "asar",
        "cabextract",
        "squashfs",
        "unsquashfs",
        "mksquashfs",
    ])
    .with_extra_effects_fn(other_archiver_effects),
];

/// Judges `tar`, whose first word may be options without a dash (`tar cf FILE`): their values
/// follow in the order of the letters.
fn tar_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // Long options that take a value.
    const LONGS: &[&str] = &[
        "--exclude",
        "--directory",
        "--file",
        "--transform",
        "--xform",
        "--files-from",
        "--exclude-from",
        "--strip-components",
        "--owner",
        "--group",
        "--mode",
        "--mtime",
        "--format",
        "--newer",
        "--use-compress-program",
        "--to-command",
        "--checkpoint-action",
        "--info-script",
        "--new-volume-script",
        "--rmt-command",
        "--rsh-command",
        "--index-file",
        "--volno-file",
        "--listed-incremental",
        "--suffix",
        "--label",
        "--record-size",
        "--blocking-factor",
        "--sort",
        "--warning",
        "--wildcards-match-slash",
    ];
    let mut mode = None;
    let mut file: Option<CommandWord> = None;
    let mut folder: Option<CommandWord> = None;
    let mut inputs: Vec<CommandWord> = Vec::new();
    let mut stdout = false;
    let mut removes = false;
    let mut at = 1;
    let mut only_files = false;
    let mut take =
        |letter: char, value: Option<CommandWord>, out: &mut Vec<CommandEffect>| match letter {
            'f' => file = value,
            'C' => folder = value,
            // `-I` names the compressor, which is run. `-F` names a script for the end of a volume.
            'I' => out.extend(value.map(CommandEffect::RunsScript)),
            'F' => out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode)),
            'T' | 'X' | 'g' => {
                out.extend(value.map(|word| CommandEffect::File(FileAccess::Read, word)))
            }
            _ => {}
        };
    // Phase 1: the words. Mode, archive, folder and inputs can come in any order.
    while let Some(word) = call.words.get(at) {
        let text = word.text.as_str();
        if only_files {
            inputs.push(word.clone());
            at += 1;
            continue;
        }
        if text == "--" {
            only_files = true;
        } else if let Some(long) = text.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, _)) => (name, word.suffix_after_char('=')),
                None => (long, None),
            };
            let takes = LONGS
                .iter()
                .any(|known| known.trim_start_matches('-') == name);
            let value = attached.or_else(|| {
                takes
                    .then(|| {
                        at += 1;
                        call.words.get(at).cloned()
                    })
                    .flatten()
            });
            match name {
                "file" => take('f', value, out),
                "directory" => take('C', value, out),
                "use-compress-program" => take('I', value, out),
                "create" | "extract" | "get" | "list" | "append" | "update" | "concatenate"
                | "catenate" | "delete" | "diff" | "compare" => mode = name.chars().next(),
                "to-stdout" => stdout = true,
                "remove-files" => removes = true,
                // Members are unpacked to absolute paths, anywhere on the machine.
                "absolute-names" => {
                    out.push(CommandEffect::Kind(NonFileEffectKind::UnknownOptions))
                }
                // Abbreviations of options that run a command.
                _ if name.starts_with("to-c")
                    || name.starts_with("checkpoint-a")
                    || name.starts_with("info-s")
                    || name.starts_with("new-vol")
                    || name.starts_with("rmt")
                    || name.starts_with("rsh")
                    || name.starts_with("use-c") =>
                {
                    out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode))
                }
                _ => {}
            }
        } else if let Some(cluster) = text.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            for (from, letter) in cluster.char_indices() {
                match letter {
                    'c' | 'x' | 't' | 'r' | 'u' | 'd' | 'A' => mode = Some(letter),
                    'O' => stdout = true,
                    'P' => out.push(CommandEffect::Kind(NonFileEffectKind::UnknownOptions)),
                    'f' | 'C' | 'I' | 'T' | 'X' | 'g' | 'F' | 'b' | 'H' | 'K' | 'L' | 'N' | 'V' => {
                        let rest = cluster.get(from + 1..).unwrap_or("");
                        let value = if rest.is_empty() {
                            at += 1;
                            call.words.get(at).cloned()
                        } else {
                            Some(word.word_suffix_from_byte(from + 2))
                        };
                        take(letter, value, out);
                        break;
                    }
                    _ => {}
                }
            }
        } else if at == 1 {
            for letter in text.chars() {
                match letter {
                    'c' | 'x' | 't' | 'r' | 'u' | 'd' | 'A' => mode = Some(letter),
                    'O' => stdout = true,
                    'P' => out.push(CommandEffect::Kind(NonFileEffectKind::UnknownOptions)),
                    'f' | 'C' | 'I' | 'T' | 'X' | 'g' | 'F' | 'b' | 'H' | 'K' | 'L' | 'N' | 'V' => {
                        at += 1;
                        take(letter, call.words.get(at).cloned(), out);
                    }
                    _ => {}
                }
            }
        } else {
            inputs.push(word.clone());
        }
        at += 1;
    }
    // Phase 2: what the mode does with them.
    match mode {
        Some('x' | 'e' | 'g') => {
            out.extend(file.map(|word| CommandEffect::File(FileAccess::Read, word)));
            if !stdout {
                out.push(CommandEffect::File(
                    FileAccess::Unpack,
                    folder.unwrap_or_else(|| CommandWord::new_literal_word(".")),
                ));
            }
        }
        Some('t' | 'l') => out.extend(file.map(|word| CommandEffect::File(FileAccess::Read, word))),
        Some('c' | 'r' | 'u' | 'a' | 'A' | 'd') => {
            out.extend(
                file.filter(|word| word.text != "-")
                    .map(|word| CommandEffect::File(FileAccess::Write, word)),
            );
            // The archive itself is named from the folder of the call, so it comes before the
            // change.
            out.extend(folder.map(CommandEffect::ChangeDir));
            for word in inputs {
                out.push(CommandEffect::File(FileAccess::ReadBelow, word.clone()));
                if removes {
                    out.push(CommandEffect::File(FileAccess::Remove, word));
                }
            }
        }
        _ if call.only_argument_is_one_of(&["--version", "--help"]) => {}
        _ => out.push(CommandEffect::Kind(NonFileEffectKind::UnknownOptions)),
    }
}

/// Judges compressors, which replace their operands unless they only print, list or test.
fn compressor_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let prints = call.has_option(&["c", "stdout", "to-stdout", "l", "list", "t", "test"]);
    let act = if prints {
        FileAccess::Read
    } else {
        FileAccess::Write
    };
    out.extend(
        call.operands
            .iter()
            .map(|word| CommandEffect::File(act, (*word).clone())),
    );
}

fn zip_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if call
        .words
        .iter()
        .any(|word| word.text.starts_with("-TT") || word.text.starts_with("--unzip-c"))
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    if let Some((file, inputs)) = call.operands.split_first() {
        out.push(CommandEffect::File(FileAccess::Write, (*file).clone()));
        for word in inputs {
            out.push(CommandEffect::File(FileAccess::ReadBelow, (*word).clone()));
            // `zip -m` deletes what it has packed.
            if call.has_option(&["m", "move"]) {
                out.push(CommandEffect::File(FileAccess::Remove, (*word).clone()));
            }
        }
    }
}

fn unzip_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.extend(
        call.operands
            .first()
            .map(|word| CommandEffect::File(FileAccess::Read, (*word).clone())),
    );
    // With these it lists, tests or prints, and unpacks nothing.
    if !call.has_option(&["l", "t", "p", "Z", "v", "z"]) {
        let folder = call.option_values(&["d"]).next().cloned();
        out.push(CommandEffect::File(
            FileAccess::Unpack,
            folder.unwrap_or_else(|| CommandWord::new_literal_word(".")),
        ));
    }
    // `unzip -:` accepts members that climb out of the folder with `../`.
    if call.has_option(&[":"]) {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnknownOptions));
    }
}

fn other_archiver_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let first = call.literal_operand(0).unwrap_or("");
    let options: Vec<&str> = call
        .words
        .iter()
        .skip(1)
        .map(|word| word.text.as_str())
        .collect();
    // Listing only; the spelling differs between the programs.
    if options.iter().any(|word| {
        matches!(
            *word,
            "l" | "t" | "list" | "tf" | "-tf" | "tvf" | "-t" | "-it" | "-l" | "lb" | "-lls"
        )
    }) {
        return;
    }
    if options.iter().any(|word| {
        word.starts_with("-I")
            || word.starts_with("--to-c")
            || word.starts_with("--rsh")
            || word.starts_with("-sdel")
            || word.starts_with("-df")
    }) {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    for word in options
        .iter()
        .filter_map(|word| word.strip_prefix("-o"))
        .filter(|folder| !folder.is_empty())
    {
        out.push(CommandEffect::File(
            FileAccess::Unpack,
            CommandWord::new_literal_word(word),
        ));
    }
    // These programs are not told apart: some unpack into the working folder without an option.
    out.push(CommandEffect::File(
        FileAccess::Unpack,
        CommandWord::new_literal_word("."),
    ));
    if matches!(first, "a" | "u" | "d" | "cf" | "cvf" | "uf" | "m") {
        out.extend(
            call.operands
                .get(1)
                .map(|word| CommandEffect::File(FileAccess::Write, (*word).clone())),
        );
    }
    out.extend(
        call.operands
            .iter()
            .skip(1)
            .filter(|word| word.text.contains('/'))
            .map(|word| CommandEffect::File(FileAccess::ReadBelow, (*word).clone())),
    );
}
