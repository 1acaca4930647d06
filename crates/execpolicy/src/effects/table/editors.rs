//! Programs that change files in place, or are used for it.

use crate::effects::call::Call;
use crate::effects::code;
use crate::effects::inert;
use crate::effects::row::{Deed, On, Row};
use crate::effects::{Act, Effect};
use crate::shell::Word;

pub(super) const ROWS: &[Row] = &[
    Row::of(&["sed", "gsed", "ssed"])
        .values("l")
        .longs(&["line-length"])
        .on(&[
            ("e", On::Program),
            ("expression", On::Program),
            ("f", On::Program),
            ("file", On::Program),
            ("i", On::Edits),
            ("in-place", On::Edits),
        ])
        .more(sed),
    Row::of(&[
        "vi", "vim", "nvim", "view", "vimdiff", "ex", "nvi", "ed", "red", "emacs", "nano", "pico",
        "micro", "helix", "hx", "kak", "joe", "mcedit", "gvim",
    ])
    .more(editor),
    Row::of(&[
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
    .more(opens),
    Row::of(&["sd"])
        .on(&[
            ("p", On::Inert(&inert::PRINTS)),
            ("preview", On::Inert(&inert::PRINTS)),
        ])
        .more(sd),
    Row::of(&[
        "fastmod",
        "codemod",
        "comby",
        "jscodeshift",
        "gritql",
        "grit",
    ])
    .more(rewrites),
    Row::of(&["apply_patch", "applypatch"]).more(|_, out| out.push(Effect::Patch(None))),
    Row::of(&[
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
    .more(media),
];

fn sed(call: &Call<'_>, out: &mut Vec<Effect>) {
    let mut files = call.operands.as_slice();
    let scripts: Vec<&Word> = call.values_of(&["e", "expression"]).collect();
    for file in call.values_of(&["f", "file"]) {
        out.push(code::file_of(file));
    }
    let inline = !scripts.is_empty() || call.has(&["f", "file"]);
    for script in scripts {
        code::sed(script, out);
    }
    if !inline && let Some((script, rest)) = files.split_first() {
        code::sed(script, out);
        files = rest;
    }
    // GNU takes what hangs on `-i` for a suffix, so `-ie` edits and `-ne` has a program.
    let edits = call.has(&["i", "in-place"])
        || call
            .options
            .iter()
            .any(|(name, _)| name.starts_with("in-p"));
    let act = if edits { Act::Write } else { Act::Read };
    out.extend(files.iter().map(|word| Effect::File(act, (*word).clone())));
}

/// An editor without a person does what its words say.
fn editor(call: &Call<'_>, out: &mut Vec<Effect>) {
    let version = call.words.len() == 2
        && call
            .words
            .get(1)
            .is_some_and(|word| matches!(word.text.as_str(), "--version" | "--help"));
    if !version {
        out.push(Effect::Deed(Deed::Code));
    }
    if !version
        && matches!(
            call.name(),
            "ex" | "ed" | "red" | "vi" | "vim" | "nvim" | "nvi"
        )
    {
        let files = call.words.iter().skip(1);
        let files = files.filter(|word| !word.text.starts_with(['-', '+']));
        out.extend(files.map(|word| Effect::File(Act::Write, word.clone())));
    }
}

/// Shows something to the person, or takes it on a clipboard.
fn opens(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call.name();
    if matches!(name, "open" | "xdg-open" | "start" | "explorer.exe") {
        let page = call.operands.iter().all(|word| {
            word.text.starts_with("http://")
                || word.text.starts_with("https://")
                || word.text.ends_with(".html")
                || word.text.ends_with(".png")
                || word.text.ends_with(".pdf")
        });
        if !page || call.has(&["a", "b", "n", "W"]) {
            out.push(Effect::Deed(Deed::Code));
        }
    }
    if matches!(name, "code" | "cursor") && call.has(&["install-extension", "uninstall-extension"])
    {
        out.push(Effect::Deed(Deed::Persists));
    }
}

fn sd(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.extend(
        call.operands
            .iter()
            .skip(2)
            .map(|word| Effect::File(Act::Write, (*word).clone())),
    );
}

fn rewrites(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.push(Effect::Deed(Deed::Opaque));
    out.push(Effect::File(
        Act::WriteBelow,
        call.values_of(&["d", "dir"])
            .next()
            .cloned()
            .unwrap_or_else(|| Word::fixed(".")),
    ));
}

/// Converters read and write what they name.
fn media(call: &Call<'_>, out: &mut Vec<Effect>) {
    let code = |word: &Word| {
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
        out.push(Effect::Deed(Deed::Code));
    }
    let path =
        |word: &&&Word| !word.text.contains(['=', ' ', '(', '{']) && word.text.contains(['.', '/']);
    out.extend(
        call.operands
            .iter()
            .filter(|word| path(word))
            .map(|word| Effect::File(Act::Write, (*word).clone())),
    );
    out.extend(
        call.options
            .iter()
            .filter_map(|(_, value)| value.clone())
            .filter(|word| word.text.contains('/'))
            .map(|word| Effect::File(Act::Write, word)),
    );
}
