//! Programs that make, copy, move and remove files, and change what may be done with them.

use crate::effects::call::Call;
use crate::effects::inert;
use crate::effects::row::{Deed, On, Operands, Row};
use crate::effects::{Act, Effect};
use crate::shell::{Known, Word};

pub(super) const ROWS: &[Row] = &[
    Row::removes(&[
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
    Row::removes(&["shred", "srm", "wipe"])
        .values("ns")
        .longs(&["iterations", "size"]),
    Row::writes(&["mkdir", "touch", "mkfifo", "gmkdir", "gtouch"])
        .values("mtd")
        .longs(&["mode", "date", "time"])
        .on(&[("r", On::Reads), ("reference", On::Reads)]),
    Row::of(&["gio"]).more(gio),
    Row::of(&["truncate", "fallocate"])
        .operands(Operands::Replace)
        .values("slo")
        .longs(&["size", "length", "offset"])
        .on(&[("r", On::Reads), ("reference", On::Reads)]),
    Row::does(&["mknod"], &[Deed::Machine]),
    Row::of(&["mktemp"]),
    Row::of(&["cp", "gcp", "copy", "pcp"])
        .operands(Operands::Copy)
        .values("S")
        .longs(&["suffix", "context"])
        .on(&[("t", On::Into), ("target-directory", On::Into)])
        .more(copied),
    Row::of(&["install", "ginstall"])
        .operands(Operands::Copy)
        .values("gmoS")
        .longs(&["group", "mode", "owner", "suffix", "context"])
        .on(&[
            ("t", On::Into),
            ("target-directory", On::Into),
            ("strip-program", On::Runs),
        ])
        .more(installed),
    Row::of(&["mv", "gmv"])
        .operands(Operands::Move)
        .values("S")
        .longs(&["suffix", "context"])
        .on(&[("t", On::Into), ("target-directory", On::Into)]),
    Row::of(&["ln", "gln", "link"])
        .values("S")
        .longs(&["suffix"])
        .on(&[("t", On::Into), ("target-directory", On::Into)])
        .more(linked),
    Row::of(&["rename", "prename", "mmv", "zmv"]).more(renamed),
    Row::of(&["chmod", "gchmod"]).more(modes),
    Row::of(&["chown", "chgrp"]).more(owners),
    Row::does(
        &[
            "chattr",
            "setfacl",
            "setfattr",
            "setcap",
            "chflags",
            "chcon",
            "restorecon",
        ],
        &[Deed::Privilege],
    )
    .operands(Operands::Write),
    Row::does(&["xattr"], &[Deed::Privilege]),
    Row::of(&["dd", "gdd", "dcfldd"]).more(dd),
    Row::of(&["patch", "gpatch"])
        .values("pFgVzYBDdr")
        .longs(&[
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
        .on(&[
            ("i", On::Reads),
            ("input", On::Reads),
            ("o", On::Writes),
            ("output", On::Writes),
            ("r", On::Writes),
            ("reject-file", On::Writes),
            ("dry-run", On::Inert(&inert::PATCH)),
        ])
        .more(patch),
    Row::reads(&["dos2unix", "unix2dos"])
        .on(&[("n", On::Edits)])
        .more(edited),
    Row::of(&["find", "gfind"]).more(find),
    Row::of(&["fd", "fdfind"])
        .operands(Operands::Text)
        .values("eEtdSocjg")
        .longs(&[
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

/// `cp -r` reads all that lies below.
fn copied(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call.has(&["r", "R", "a", "recursive", "archive"]) {
        let into = call.has(&["t", "target-directory"]);
        let sources = call.operands.len().saturating_sub(usize::from(!into));
        out.extend(
            call.operands
                .iter()
                .take(sources)
                .map(|word| Effect::File(Act::ReadBelow, (*word).clone())),
        );
        // What lies in the source goes there, and not the source.
        let whole = call.has(&["T", "no-target-directory"])
            || call.operands.iter().any(|word| word.text.ends_with("/."));
        let target = call.operands.last().filter(|_| whole && !into);
        out.extend(target.map(|word| Effect::File(Act::Unpack, (*word).clone())));
    }
}

/// `install -d` makes folders; a mode that lends rights is no ordinary one.
fn installed(call: &Call<'_>, out: &mut Vec<Effect>) {
    let lends = |word: &Word| lends_rights(&word.text);
    if call.has(&["o", "owner"]) || call.values_of(&["m", "mode"]).any(lends) {
        out.push(Effect::Deed(Deed::Privilege));
    }
    if call.has(&["d", "directory"]) {
        out.extend(
            call.operands
                .iter()
                .map(|word| Effect::File(Act::Write, (*word).clone())),
        );
    }
}

/// A second name for a file: who writes under it writes the first, so both have to be ordinary.
fn linked(call: &Call<'_>, out: &mut Vec<Effect>) {
    let into = call.values_of(&["t", "target-directory"]).next();
    let (target, sources) = match (into, call.operands.split_last()) {
        (Some(folder), _) => (folder.clone(), call.operands.as_slice()),
        (None, Some((only, []))) => {
            // `ln -s PATH`: here, under its own name.
            out.push(Effect::Link((*only).clone(), Word::fixed("."), false));
            return;
        }
        (None, Some((last, sources))) => ((*last).clone(), sources),
        (None, None) => return,
    };
    let act = match call.has(&["f", "force"]) {
        true => Act::Replace,
        false => Act::Write,
    };
    out.push(Effect::File(act, target.clone()));
    let symbolic = call.has(&["s", "symbolic"]);
    out.extend(
        sources
            .iter()
            .map(|word| Effect::Link((*word).clone(), target.clone(), symbolic)),
    );
    let sources = sources.iter().map(|word| (*word).clone()).collect();
    out.push(Effect::PutInto(target, sources));
}

/// `rename EXPRESSION FILES`: the expression is Perl or a plain text.
fn renamed(call: &Call<'_>, out: &mut Vec<Effect>) {
    let skip = if call
        .words
        .first()
        .is_some_and(|word| word.text == "prename")
    {
        1
    } else {
        2
    };
    let code = call.operands.first().is_some_and(|word| {
        let plain = |text: &str| {
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() || " ._-/\\$^*+?()[]|sy".contains(c))
        };
        !word.as_fixed().is_some_and(plain) || word.text.ends_with('e') && word.text.contains('/')
    });
    if code {
        out.push(Effect::Deed(Deed::Code));
    }
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
        out.push(Effect::File(Act::Remove, (*word).clone()));
    }
}

/// Whether a mode gives the owner's rights to whoever runs the file.
fn lends_rights(mode: &str) -> bool {
    let digits = mode.trim_start_matches('0');
    let octal = !mode.is_empty() && mode.chars().all(|c| c.is_digit(8));
    (octal && digits.len() > 3) || (!octal && mode.contains('s'))
}

/// Whether a mode takes a right away from the owner, or lets everybody write.
fn takes_rights(mode: &str) -> bool {
    if !mode.is_empty() && mode.chars().all(|c| c.is_digit(8)) {
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
            Some('+') => everybody && what.contains('w') && !who.is_empty(),
            Some('=') => {
                owner && !(what.contains('r') && what.contains('w') && what.contains(['x', 'X']))
                    || everybody && what.contains('w')
            }
            _ => false,
        }
    })
}

fn spoilt(words: Option<&[&Word]>, out: &mut Vec<Effect>) {
    let words = words.unwrap_or(&[]).iter();
    out.extend(words.map(|word| Effect::File(Act::Spoil, (*word).clone())));
}

/// Accounts to which no home of a person belongs.
fn is_nobodys(owner: &str) -> bool {
    let owner = owner.split([':', '.']).next().unwrap_or(owner);
    [
        "root", "nobody", "daemon", "bin", "sys", "www-data", "nginx", "0", "65534",
    ]
    .contains(&owner)
}

/// `gio trash`, `gio remove`: the other words of it open, copy and tell.
fn gio(call: &Call<'_>, out: &mut Vec<Effect>) {
    let files = call.operands.get(1..).unwrap_or(&[]).iter();
    match call.operand(0) {
        Some("trash" | "remove") => {
            out.extend(files.map(|word| Effect::File(Act::Remove, (*word).clone())));
        }
        Some("info" | "list" | "tree" | "version" | "help") => {}
        Some("cat") => out.extend(files.map(|word| Effect::File(Act::Read, (*word).clone()))),
        _ => out.push(Effect::Deed(Deed::Unknown)),
    }
}

fn modes(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call.has(&["R", "recursive"]) {
        out.push(Effect::Deed(Deed::Modes));
    }
    // `-x` and `-w` are modes, not options.
    let letters = |name: &str| name.chars().all(|c| "rwxXstugo".contains(c)) && !name.is_empty();
    let minus = call.options.iter().any(|(name, _)| letters(name));
    let skip = usize::from(!minus && !call.has(&["reference"]));
    let mode = call.operands.first().filter(|_| skip == 1);
    if call.has(&["R", "recursive"]) && mode.is_some_and(|word| takes_rights(&word.text)) {
        spoilt(call.operands.get(1..), out);
    }
    if skip == 1 {
        match call.operands.first() {
            Some(mode) if mode.known != Known::Fixed || lends_rights(&mode.text) => {
                out.push(Effect::Deed(Deed::Privilege));
            }
            _ => {}
        }
    }
    out.extend(
        call.operands
            .iter()
            .skip(skip)
            .map(|word| Effect::File(Act::Write, (*word).clone())),
    );
}

fn owners(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.push(Effect::Deed(if call.has(&["R", "recursive"]) {
        Deed::Modes
    } else {
        Deed::Privilege
    }));
    let skip = usize::from(!call.has(&["reference"]));
    if call.has(&["R", "recursive"]) && call.operand(0).is_some_and(is_nobodys) && skip == 1 {
        spoilt(call.operands.get(1..), out);
    }
    out.extend(
        call.operands
            .iter()
            .skip(skip)
            .map(|word| Effect::File(Act::Write, (*word).clone())),
    );
}

fn dd(call: &Call<'_>, out: &mut Vec<Effect>) {
    for word in call.words.iter().skip(1) {
        let Some((name, _)) = word.text.split_once('=') else {
            if word.known != Known::Fixed {
                out.push(Effect::Deed(Deed::Unclear));
            }
            continue;
        };
        let act = match name {
            "if" => Act::Read,
            "of" => Act::Replace,
            _ => continue,
        };
        out.extend(word.after('=').map(|value| Effect::File(act, value)));
    }
}

/// What it writes stands in the patch; only a named file is known here.
fn patch(call: &Call<'_>, out: &mut Vec<Effect>) {
    match call.operands.first() {
        Some(file) => out.push(Effect::File(Act::Write, (*file).clone())),
        None => {
            let folder = call.values_of(&["d", "directory"]).next().cloned();
            out.push(Effect::Patch(folder));
        }
    }
    if let Some(file) = call.operands.get(1) {
        out.push(Effect::File(Act::Read, (*file).clone()));
    }
}

fn edited(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.extend(
        call.operands
            .iter()
            .map(|word| Effect::File(Act::Write, (*word).clone())),
    );
}

/// Options of `find` that take a word, beside those that do something.
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

/// Where it starts, and by what names it chooses.
pub(super) fn find_scope(words: &[Word]) -> (Vec<Word>, Vec<Word>) {
    let mut starts = Vec::new();
    let mut names = Vec::new();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        match word.as_fixed() {
            Some("-H" | "-L" | "-P" | "-E" | "-X" | "-x" | "-d" | "-s" | "--") => {}
            Some("-f" | "-D") => at += 1,
            Some("(" | "!" | ",") => break,
            Some(text) if text.starts_with("-O") => {}
            Some(text) if text.starts_with('-') => break,
            _ => starts.push(word.clone()),
        }
        at += 1;
    }
    // Names count only if each alternative has one, and nothing is turned round.
    let turned = |word: &Word| {
        matches!(
            word.as_fixed(),
            Some("-not" | "!" | "," | "-regex" | "-iregex")
        )
    };
    let any = words.iter().skip(at).any(turned);
    let mut named = false;
    let mut all = !any;
    while let Some(word) = words.get(at) {
        at += 1;
        match word.as_fixed() {
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
        starts.push(Word::fixed("."));
    }
    (starts, names)
}

/// Whether a test leaves anything out.
pub(super) fn chooses(words: &[Word]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        // `-name '*'` is every name.
        let every = |test: &str| {
            let next = words.get(at + 1).and_then(Word::as_fixed);
            let wild = next.is_some_and(|text| {
                text.contains('*') && text.chars().all(|c| matches!(c, '*' | '?'))
            });
            let turned = at.checked_sub(1).and_then(|at| words.get(at));
            let turned = turned.is_some_and(|word| matches!(word.as_fixed(), Some("!" | "-not")));
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
            // All but one name is next to everything, too.
            (turned || wild) && named.contains(&test)
        };
        if word.as_fixed().is_some_and(every) {
            return false;
        }
        matches!(
            word.as_fixed(),
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

fn find(call: &Call<'_>, out: &mut Vec<Effect>) {
    let words = call.words;
    let (starts, names) = find_scope(words);
    out.extend(
        starts
            .iter()
            .map(|word| Effect::File(Act::List, word.clone())),
    );
    let mut at = 1 + starts.len();
    let mut lists = starts.len();
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(text) = word.as_fixed() else {
            out.push(match lists {
                0 => Effect::Deed(Deed::Unclear),
                _ => Effect::Option(word.clone()),
            });
            continue;
        };
        match text {
            "-delete" => {
                let all = found_below(&starts, &names, chooses(words));
                out.extend(all.into_iter().map(|word| Effect::File(Act::Remove, word)));
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                out.extend(
                    words
                        .get(at)
                        .map(|word| Effect::File(Act::Write, word.clone())),
                );
                at += if text == "-fprintf" { 2 } else { 1 };
            }
            // What they run is judged as a command of its own.
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let ends = |word: &Word| matches!(word.as_fixed(), Some(";" | "+"));
                at += words
                    .get(at..)
                    .and_then(|rest| rest.iter().position(ends))
                    .map_or(words.len(), |end| end + 1);
            }
            _ if TESTS.contains(&text) => at += 1,
            _ if ALONE.contains(&text) => {}
            _ if text.starts_with('-') => out.push(Effect::Deed(Deed::Unclear)),
            _ => lists = 0,
        }
    }
}

/// What is found below these, by these names if there are any.
pub(super) fn found_below(starts: &[Word], names: &[Word], chosen: bool) -> Vec<Word> {
    let by_name = |start: &Word| -> Vec<Word> {
        match names {
            [] => vec![found(start, None, chosen)],
            names => names
                .iter()
                .map(|name| found(start, Some(name), chosen))
                .collect(),
        }
    };
    starts.iter().flat_map(by_name).collect()
}

/// What `{}` stands for: anything below where it starts, of that name if one is asked for.
pub(super) fn found(start: &Word, name: Option<&Word>, chosen: bool) -> Word {
    if !chosen {
        return start.clone();
    }
    let mut word = start.clone();
    let name = name.and_then(Word::as_fixed).unwrap_or("?*");
    word.append(&Word::fixed(format!("/**/{name}")));
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

/// What `fd` finds: without a pattern or another test that leaves something out, all that lies in
/// its folders.
pub(super) fn found_by_fd(words: &[Word]) -> Vec<Word> {
    let mut operands = Vec::new();
    let mut chosen = false;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        at += 1;
        match word.as_fixed() {
            Some("-x" | "-X" | "--exec" | "--exec-batch") => break,
            Some(text) if FD_VALUES.contains(&text) => {
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
    chosen |= !matches!(pattern, None | Some("" | "." | ".*" | "^" | "$"));
    match operands.get(1..) {
        None | Some([]) => vec![Word::fixed("**/?*")],
        Some(folders) => folders
            .iter()
            .map(|folder| found(folder, None, chosen))
            .collect(),
    }
}
