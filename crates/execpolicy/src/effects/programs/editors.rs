//! Describes programs that change files in place: stream editors, editors, codemods and converters.

use crate::effects::code;
use crate::effects::inert;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::CommandWord;

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::new(&["sed", "gsed", "ssed"])
        .with_short_value_options("l")
        .with_long_value_options(&["line-length"])
        .with_option_meanings(&[
            ("e", OptionMeaning::ProgramText),
            ("expression", OptionMeaning::ProgramText),
            ("f", OptionMeaning::ProgramText),
            ("file", OptionMeaning::ProgramText),
            ("i", OptionMeaning::Edits),
            ("in-place", OptionMeaning::Edits),
        ])
        .with_extra_effects_fn(sed_effects),
    ProgramEffectSpec::new(&[
        "vi", "vim", "nvim", "view", "vimdiff", "ex", "nvi", "ed", "red", "emacs", "nano", "pico",
        "micro", "helix", "hx", "kak", "joe", "mcedit", "gvim",
    ])
    .with_extra_effects_fn(editor_effects),
    ProgramEffectSpec::new(&[
        "code",
        "cursor",
        "subl",
        "open",
        "xdg-open",
        "start",
        "idea",
        "zed",
        "atom",
        "explorer.exe",
        "say",
        "notify-send",
        "pbcopy",
        "xclip",
        "xsel",
        "wl-copy",
        "clip.exe",
    ])
    .with_extra_effects_fn(opener_effects),
    ProgramEffectSpec::new(&["sd"])
        .with_option_meanings(&[
            ("p", OptionMeaning::Inert(&inert::PRINTS)),
            ("preview", OptionMeaning::Inert(&inert::PRINTS)),
        ])
        .with_extra_effects_fn(sd_effects),
    ProgramEffectSpec::new(&[
        "fastmod",
        "codemod",
        "comby",
        "jscodeshift",
        "gritql",
        "grit",
    ])
    .with_extra_effects_fn(codemod_effects),
    ProgramEffectSpec::new(&["apply_patch", "applypatch"])
        .with_extra_effects_fn(|_, out| out.push(CommandEffect::Patch(None))),
    ProgramEffectSpec::new(&[
        "crudini",
        "augtool",
        "xmlstarlet",
        "json",
        "fx",
        "gron",
        "miller",
        "mlr",
        "q",
        "textql",
        "xsv",
        "qsv",
        "csvkit",
        "pdftotext",
        "pdftoppm",
        "convert",
        "magick",
        "mogrify",
        "ffmpeg",
        "sox",
        "exiftool",
        "optipng",
        "pngquant",
        "jpegoptim",
        "svgo",
        "cwebp",
        "gifsicle",
        "inkscape",
        "rsvg-convert",
        "qpdf",
        "gs",
        "tesseract",
        "wkhtmltopdf",
        "soffice",
        "libreoffice",
    ])
    .with_extra_effects_fn(file_converter_effects),
];

fn sed_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let mut files = call.operands.as_slice();
    let scripts: Vec<&CommandWord> = call.option_values(&["e", "expression"]).collect();
    for file in call.option_values(&["f", "file"]) {
        out.push(code::runs_file_or_unreadable_effect(file));
    }
    // Without `-e` or `-f` the first operand is the script.
    let inline = !scripts.is_empty() || call.has_option(&["f", "file"]);
    for script in scripts {
        code::sed_script_effects(script, out);
    }
    if !inline && let Some((script, rest)) = files.split_first() {
        code::sed_script_effects(script, out);
        files = rest;
    }
    // GNU sed takes what is attached to `-i` as a suffix: `-ie` edits in place with the suffix `e`.
    let edits = call.has_option(&["i", "in-place"])
        || call
            .options
            .iter()
            .any(|(name, _)| name.starts_with("in-p"));
    let act = if edits {
        FileAccess::Write
    } else {
        FileAccess::Read
    };
    out.extend(
        files
            .iter()
            .map(|word| CommandEffect::File(act, (*word).clone())),
    );
}

/// Judges editors. Without a person an editor only does what its arguments say: `vim -c "!rm x"`.
fn editor_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // Any further word may be a file or a command.
    let version = call.words.len() == 2
        && call
            .words
            .get(1)
            .is_some_and(|word| matches!(word.text.as_str(), "--version" | "--help"));
    if !version {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    if !version
        && matches!(
            call.command_name(),
            "ex" | "ed" | "red" | "vi" | "vim" | "nvim" | "nvi"
        )
    {
        let files = call.words.iter().skip(1);
        // Options and start commands (`+...`) are no files.
        let files = files.filter(|word| !word.text.starts_with(['-', '+']));
        out.extend(files.map(|word| CommandEffect::File(FileAccess::Write, word.clone())));
    }
}

/// Judges openers and clipboards: a page or a document is shown, anything else may be run.
fn opener_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let name = call.command_name();
    if matches!(name, "open" | "xdg-open" | "start" | "explorer.exe") {
        let page = call.operands.iter().all(|word| {
            word.text.starts_with("http://")
                || word.text.starts_with("https://")
                || word.text.ends_with(".html")
                || word.text.ends_with(".png")
                || word.text.ends_with(".pdf")
        });
        // `-a` and `-b` name the program to open it with.
        if !page || call.has_option(&["a", "b", "n", "W"]) {
            out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
        }
    }
    // An extension runs in the editor of the person from then on.
    if matches!(name, "code" | "cursor")
        && call.has_option(&["install-extension", "uninstall-extension"])
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::Persists));
    }
}

fn sd_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.extend(
        call.operands
            .iter()
            // The first two operands are what is found and what replaces it.
            .skip(2)
            .map(|word| CommandEffect::File(FileAccess::Write, (*word).clone())),
    );
}

fn codemod_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
    out.push(CommandEffect::File(
        FileAccess::WriteBelow,
        call.option_values(&["d", "dir"])
            .next()
            .cloned()
            .unwrap_or_else(|| CommandWord::new_literal_word(".")),
    ));
}

/// Judges converters: each operand with a dot or slash may be read or written.
fn file_converter_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // ImageMagick runs `|COMMAND` and `msl:` scripts; Ghostscript is not confined with `-dNOSAFER`;
    // Miller and others have functions such as `system` and `exec`.
    let code = |word: &CommandWord| {
        let text = word.text.as_str();
        text.starts_with('|')
            || text.contains("system")
            || text.contains("exec")
            || text.starts_with("msl:")
            || text.starts_with("-dNOSAFER")
            || text.starts_with("macro:")
            || text.contains("pipe")
    };
    if call.words.iter().skip(1).any(code) {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    // Expressions, formats and sizes are operands, too; only what looks like a path is judged.
    let path = |word: &&&CommandWord| {
        !word.text.contains(['=', ' ', '(', '{']) && word.text.contains(['.', '/'])
    };
    out.extend(
        call.operands
            .iter()
            .filter(|word| path(word))
            .map(|word| CommandEffect::File(FileAccess::Write, (*word).clone())),
    );
    out.extend(
        call.options
            .iter()
            .filter_map(|(_, value)| value.clone())
            .filter(|word| word.text.contains('/'))
            .map(|word| CommandEffect::File(FileAccess::Write, word)),
    );
}
