//! Archivers: what they pack is read, where they unpack is written.

use crate::effects::call::Call;
use crate::effects::row::{Deed, On, Operands, Row};
use crate::effects::{Act, Effect};
use crate::shell::Word;

pub(super) const ROWS: &[Row] = &[
    Row::of(&["tar", "gtar", "bsdtar"]).more(tar),
    Row::of(&[
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
    .values("SbTMDq")
    .longs(&[
        "suffix",
        "threads",
        "memlimit",
        "format",
        "block-size",
        "quality",
    ])
    .on(&[
        ("o", On::Writes),
        ("output", On::Writes),
        ("output-dir-flat", On::Writes),
        ("c", On::Value),
        ("stdout", On::Value),
    ])
    .more(pack),
    Row::of(&["zip"])
        .values("bnPstixT")
        .on(&[
            ("TT", On::With(Deed::Code)),
            ("unzip-command", On::With(Deed::Code)),
            ("b", On::Value),
            ("O", On::Writes),
            ("out", On::Writes),
        ])
        .more(zip),
    Row::of(&["unzip", "bsdunzip"])
        .values("xPIO")
        .on(&[("d", On::Writes)])
        .more(unzip),
    Row::reads(&["zipinfo", "zipnote", "lsar", "tarlist"]).operands(Operands::Read),
    Row::of(&[
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
    .more(others),
];

/// A first cluster without a dash has options, too; what they take stands in its order.
fn tar(call: &Call<'_>, out: &mut Vec<Effect>) {
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
    let mut file: Option<Word> = None;
    let mut folder: Option<Word> = None;
    let mut inputs: Vec<Word> = Vec::new();
    let mut stdout = false;
    let mut removes = false;
    let mut at = 1;
    let mut only_files = false;
    let mut take = |letter: char, value: Option<Word>, out: &mut Vec<Effect>| match letter {
        'f' => file = value,
        'C' => folder = value,
        'I' => out.extend(value.map(Effect::Runs)),
        'F' => out.push(Effect::Deed(Deed::Code)),
        'T' | 'X' | 'g' => out.extend(value.map(|word| Effect::File(Act::Read, word))),
        _ => {}
    };
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
                Some((name, _)) => (name, word.after('=')),
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
                "absolute-names" => out.push(Effect::Deed(Deed::Unclear)),
                _ if name.starts_with("to-c")
                    || name.starts_with("checkpoint-a")
                    || name.starts_with("info-s")
                    || name.starts_with("new-vol")
                    || name.starts_with("rmt")
                    || name.starts_with("rsh")
                    || name.starts_with("use-c") =>
                {
                    out.push(Effect::Deed(Deed::Code))
                }
                _ => {}
            }
        } else if let Some(cluster) = text.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            for (from, letter) in cluster.char_indices() {
                match letter {
                    'c' | 'x' | 't' | 'r' | 'u' | 'd' | 'A' => mode = Some(letter),
                    'O' => stdout = true,
                    'P' => out.push(Effect::Deed(Deed::Unclear)),
                    'f' | 'C' | 'I' | 'T' | 'X' | 'g' | 'F' | 'b' | 'H' | 'K' | 'L' | 'N' | 'V' => {
                        let rest = cluster.get(from + 1..).unwrap_or("");
                        let value = if rest.is_empty() {
                            at += 1;
                            call.words.get(at).cloned()
                        } else {
                            Some(word.from(from + 2))
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
                    'P' => out.push(Effect::Deed(Deed::Unclear)),
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
    match mode {
        Some('x' | 'e' | 'g') => {
            out.extend(file.map(|word| Effect::File(Act::Read, word)));
            if !stdout {
                out.push(Effect::File(
                    Act::Unpack,
                    folder.unwrap_or_else(|| Word::fixed(".")),
                ));
            }
        }
        Some('t' | 'l') => out.extend(file.map(|word| Effect::File(Act::Read, word))),
        Some('c' | 'r' | 'u' | 'a' | 'A' | 'd') => {
            out.extend(
                file.filter(|word| word.text != "-")
                    .map(|word| Effect::File(Act::Write, word)),
            );
            out.extend(folder.map(Effect::At));
            for word in inputs {
                out.push(Effect::File(Act::ReadBelow, word.clone()));
                if removes {
                    out.push(Effect::File(Act::Remove, word));
                }
            }
        }
        _ if call.is_only(&["--version", "--help"]) => {}
        _ => out.push(Effect::Deed(Deed::Unclear)),
    }
}

/// They replace what they are given, unless they only print or keep.
fn pack(call: &Call<'_>, out: &mut Vec<Effect>) {
    let prints = call.has(&["c", "stdout", "to-stdout", "l", "list", "t", "test"]);
    let act = if prints { Act::Read } else { Act::Write };
    out.extend(
        call.operands
            .iter()
            .map(|word| Effect::File(act, (*word).clone())),
    );
}

fn zip(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call
        .words
        .iter()
        .any(|word| word.text.starts_with("-TT") || word.text.starts_with("--unzip-c"))
    {
        out.push(Effect::Deed(Deed::Code));
    }
    if let Some((file, inputs)) = call.operands.split_first() {
        out.push(Effect::File(Act::Write, (*file).clone()));
        for word in inputs {
            out.push(Effect::File(Act::ReadBelow, (*word).clone()));
            if call.has(&["m", "move"]) {
                out.push(Effect::File(Act::Remove, (*word).clone()));
            }
        }
    }
}

fn unzip(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.extend(
        call.operands
            .first()
            .map(|word| Effect::File(Act::Read, (*word).clone())),
    );
    if !call.has(&["l", "t", "p", "Z", "v", "z"]) {
        let folder = call.values_of(&["d"]).next().cloned();
        out.push(Effect::File(
            Act::Unpack,
            folder.unwrap_or_else(|| Word::fixed(".")),
        ));
    }
    if call.has(&[":"]) {
        out.push(Effect::Deed(Deed::Unclear));
    }
}

fn others(call: &Call<'_>, out: &mut Vec<Effect>) {
    let first = call.operand(0).unwrap_or("");
    let options: Vec<&str> = call
        .words
        .iter()
        .skip(1)
        .map(|word| word.text.as_str())
        .collect();
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
        out.push(Effect::Deed(Deed::Code));
    }
    for word in options
        .iter()
        .filter_map(|word| word.strip_prefix("-o"))
        .filter(|folder| !folder.is_empty())
    {
        out.push(Effect::File(Act::Unpack, Word::fixed(word)));
    }
    out.push(Effect::File(Act::Unpack, Word::fixed(".")));
    if matches!(first, "a" | "u" | "d" | "cf" | "cvf" | "uf" | "m") {
        out.extend(
            call.operands
                .get(1)
                .map(|word| Effect::File(Act::Write, (*word).clone())),
        );
    }
    out.extend(
        call.operands
            .iter()
            .skip(1)
            .filter(|word| word.text.contains('/'))
            .map(|word| Effect::File(Act::ReadBelow, (*word).clone())),
    );
}
