//! Shells, their own commands, and interpreters. Programs that run their arguments do nothing of
//! their own: what they run is found by the shell grammar and judged as a command.

use crate::effects::call::Call;
use crate::effects::code::{self, Language};
use crate::effects::row::{Deed, On, Row};
use crate::effects::{Act, Effect};
use crate::shell::Word;

pub(super) const ROWS: &[Row] = &[
    // Keywords, and what changes only the shell itself.
    Row::of(&[
        "{",
        "}",
        "!",
        "if",
        "then",
        "elif",
        "else",
        "do",
        "while",
        "until",
        "fi",
        "done",
        "esac",
        "case",
        "for",
        "select",
        "function",
        "cd",
        "pushd",
        "popd",
        "dirs",
        "set",
        "unset",
        "shift",
        "return",
        "exit",
        "break",
        "continue",
        "local",
        "declare",
        "typeset",
        "readonly",
        "export",
        "let",
        "read",
        "getopts",
        "umask",
        "ulimit",
        "wait",
        "jobs",
        "fg",
        "bg",
        "times",
        "caller",
        "shopt",
        "setopt",
        "unsetopt",
        "autoload",
        "bind",
        "logout",
        "suspend",
        "unalias",
        "alias",
        "trap",
        "eval",
        "builtin",
        "command",
        "exec",
        "history",
        "print",
        "whence",
        "where",
        "disown",
        "coproc",
        "noglob",
        "nocorrect",
        "-",
        "compinit",
        "rehash",
        "vared",
        "integer",
        "float",
        "end",
        "begin",
        "((",
    ]),
    Row::does(&["enable", "zmodload", "fc"], &[Deed::Code]),
    Row::of(&["mapfile", "readarray"])
        .values("dnOsuc")
        .on(&[("C", On::Runs)]),
    // Run their arguments.
    Row::of(&[
        "env",
        "genv",
        "xargs",
        "gxargs",
        "nohup",
        "nice",
        "time",
        "gtime",
        "timeout",
        "gtimeout",
        "stdbuf",
        "gstdbuf",
        "ionice",
        "chrt",
        "taskset",
        "watch",
        "parallel",
        "strace",
        "ltrace",
        "fakeroot",
        "caffeinate",
        "eatmydata",
        "busybox",
        "toybox",
        "setarch",
        "linux32",
        "linux64",
        "flock",
        "script",
        "unbuffer",
        "setsid",
        "cross-env",
        "dotenv",
        "dotenvx",
    ])
    .more(wrapper),
    Row::of(&[
        "sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "rbash", "fish",
    ])
    .more(shell),
    Row::of(&["source", "."]).more(sourced),
    Row::of(&["python", "pypy", "ipython", "python3-dbg"]).more(python),
    Row::of(&["node", "nodejs"]).more(node),
    Row::of(&["perl"]).more(perl),
    Row::of(&["ruby", "jruby"]).more(ruby),
    Row::of(&["php"]).more(php),
    Row::of(&[
        "lua",
        "luajit",
        "Rscript",
        "R",
        "julia",
        "octave",
        "guile",
        "racket",
        "sbcl",
        "clisp",
        "elixir",
        "iex",
        "erl",
        "escript",
        "groovy",
        "scala",
        "ocaml",
        "ghci",
        "runghc",
        "runhaskell",
        "tclsh",
        "wish",
        "expect",
        "osascript",
        "swipl",
        "gnuplot",
        "java",
        "jshell",
        "csi",
        "pwsh",
        "powershell",
        "maxima",
        "gp",
        "sage",
        "irb",
        "kotlin",
        "qjs",
        "d8",
        "jsc",
        "mono",
        "wine",
        "wasmtime",
        "wasmer",
        "janet",
        "fennel",
        "nu",
        "xonsh",
        "elvish",
    ])
    .more(other),
    Row::of(&["awk", "gawk", "mawk", "nawk", "goawk"]).more(awk),
    Row::of(&["at", "batch"]).more(queued),
    Row::does(
        &["tmux", "screen", "dtach", "abduco", "zellij"],
        &[Deed::Code],
    )
    .more(multiplexer),
    Row::does(
        &[
            "entr",
            "watchexec",
            "chokidar",
            "inotifywait-run",
            "fswatch-run",
        ],
        &[Deed::Opaque],
    )
    .more(entr),
    Row::of(&[
        "inotifywait",
        "fswatch",
        "wait-for-it",
        "wait-on",
        "wait-for",
    ]),
];

fn operand_from<'w>(call: &'w Call<'_>, at: usize) -> Option<&'w Word> {
    call.words.get(at)
}

/// `nohup` outlives a terminal, not the work; `env` without a command shows its variables.
fn wrapper(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call.name();
    match name {
        "script" => {
            let file = call
                .words
                .iter()
                .skip(1)
                .rfind(|word| !word.text.starts_with('-'));
            out.extend(
                file.filter(|word| !word.text.contains(' '))
                    .map(|word| Effect::File(Act::Write, word.clone())),
            );
        }
        "time" | "gtime" | "strace" | "ltrace" | "parallel" => {
            for (at, word) in call.words.iter().enumerate().skip(1) {
                let text = word.text.as_str();
                if !text.starts_with('-') {
                    break;
                }
                if matches!(text, "-o" | "--output" | "--joblog" | "--results") {
                    out.extend(
                        call.words
                            .get(at + 1)
                            .map(|word| Effect::File(Act::Write, word.clone())),
                    );
                } else if text.starts_with("-o")
                    || text.starts_with("--output=")
                    || text.starts_with("--results=")
                {
                    out.push(Effect::File(
                        Act::Write,
                        word.from(if text.starts_with("--") {
                            text.find('=').map_or(2, |at| at + 1)
                        } else {
                            2
                        }),
                    ));
                }
            }
        }
        // It runs elsewhere.
        "env" | "genv" => {
            let own = call
                .words
                .iter()
                .skip(1)
                .take_while(|word| word.text.starts_with('-') || word.is_assignment());
            if own
                .clone()
                .any(|word| word.text.starts_with("-C") || word.text.starts_with("--ch"))
            {
                out.push(Effect::Deed(Deed::Unclear));
            }
        }
        "cross-env" | "dotenv" | "dotenvx" | "unbuffer" => {
            let at = call
                .words
                .iter()
                .skip(1)
                .position(|word| !word.text.starts_with('-') && !word.is_assignment())
                .map_or(call.words.len(), |at| at + 1);
            let rest = call.words.get(at..).unwrap_or(&[]);
            let skip = usize::from(rest.first().is_some_and(|word| word.text == "run"));
            out.push(Effect::Tool(rest.get(skip..).unwrap_or(&[]).to_vec()));
        }
        "xargs" | "gxargs" => {
            out.extend(
                call.words
                    .iter()
                    .zip(call.words.iter().skip(1))
                    .take_while(|(flag, _)| {
                        flag.text.starts_with('-') || flag.text.ends_with("xargs")
                    })
                    .filter(|(flag, _)| matches!(flag.text.as_str(), "-a" | "--arg-file"))
                    .map(|(_, file)| Effect::File(Act::Read, file.clone())),
            );
        }
        _ => {}
    }
}

/// A file of commands, or a text that the grammar reads.
fn shell(call: &Call<'_>, out: &mut Vec<Effect>) {
    let mut at = 1;
    while let Some(word) = operand_from(call, at) {
        let text = word.text.as_str();
        match text {
            "--rcfile" | "--init-file" => {
                out.push(Effect::Deed(Deed::Code));
                at += 2;
            }
            "-o" | "+o" | "-O" | "+O" => at += 2,
            "--" => {
                at += 1;
                break;
            }
            _ if text.starts_with("--") => at += 1,
            _ if text.starts_with(['-', '+']) && text.len() > 1 => {
                // `-n` only reads, `-c` has a text, `-s` reads its input.
                if text.starts_with('-') && text.contains(['n']) && !text.contains('c') {
                    return;
                }
                if text.contains('s') {
                    return out.push(Effect::Fed(Language::Shell));
                }
                if text.contains('c') {
                    return;
                }
                at += 1;
            }
            _ => break,
        }
    }
    out.push(match operand_from(call, at) {
        Some(file) => Effect::RunsFile(file.clone()),
        None => Effect::Fed(Language::Shell),
    });
}

fn sourced(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.extend(call.words.get(1).map(|word| Effect::RunsFile(word.clone())));
}

/// Modules of Python's own that are like a program.
fn module(name: &str, rest: &[Word], out: &mut Vec<Effect>) {
    let as_program = |program: &'static str, out: &mut Vec<Effect>| {
        let mut words = vec![Word::fixed(program)];
        words.extend(rest.iter().cloned());
        out.push(Effect::Tool(words));
    };
    code::imports(name, out);
    if name == "unittest" {
        let named = rest.iter().filter_map(Word::as_fixed);
        named.for_each(|name| code::imports(name, out));
        out.push(Effect::Starts(Word::fixed("**/test*.py")));
    }
    let fed = |word: &Word| word.text.starts_with("/dev") || word.text.starts_with("/proc");
    if rest.iter().any(fed) {
        out.push(Effect::Deed(Deed::Code));
    }
    match name {
        "pip" => as_program("pip", out),
        "pytest" | "tox" | "nox" | "black" | "ruff" | "mypy" | "flake8" | "isort" | "pylint"
        | "coverage" | "build" | "twine" | "uvicorn" | "gunicorn" | "flask" | "poetry" | "pipx"
        | "uv" | "virtualenv" | "alembic" | "celery" | "jupyter" | "sphinx" => {
            let program = rest.len();
            let mut words = vec![Word::fixed(name)];
            words.extend(rest.iter().take(program).cloned());
            out.push(Effect::Deed(Deed::Opaque));
            out.push(Effect::Tool(words));
        }
        "json.tool" | "tabnanny" | "tokenize" | "ast" | "dis" | "calendar" | "this"
        | "platform" | "site" | "sysconfig" | "base64" | "gzip" | "zipfile" | "tarfile"
        | "compileall" | "py_compile" | "venv" | "ensurepip" | "http.server" | "pydoc"
        | "unittest" | "doctest" | "trace" | "cProfile" | "profile" | "pstats" | "symtable"
        | "inspect" | "pyclbr" | "difflib" | "mimetypes" | "locale" | "encodings" | "lib2to3"
        | "xmlrpc" | "dataclasses" | "zipapp" => {
            out.push(Effect::Deed(Deed::Opaque));
            let written: &[Word] = match name {
                "json.tool" => rest
                    .iter()
                    .filter(|word| !word.text.starts_with('-'))
                    .nth(1)
                    .map_or(&[], std::slice::from_ref),
                "venv" => rest.last().map_or(&[], std::slice::from_ref),
                _ => &[],
            };
            out.extend(
                written
                    .iter()
                    .map(|word| Effect::File(Act::Write, word.clone())),
            );
        }
        "timeit" | "code" | "pty" | "runpy" | "pdb" | "asyncio" | "idlelib" | "test" => {
            out.push(Effect::Deed(Deed::Code))
        }
        "smtpd" | "smtplib" | "ftplib" | "webbrowser" => out.push(Effect::Deed(Deed::Uploads)),
        _ => out.push(Effect::Deed(Deed::Opaque)),
    }
}

fn python(call: &Call<'_>, out: &mut Vec<Effect>) {
    let mut at = 1;
    while let Some(word) = call.words.get(at) {
        let text = word.text.as_str();
        let Some(cluster) = text.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else {
            break;
        };
        if call.is_only(&["--version", "--help", "-V", "-VV", "-h"]) {
            return;
        }
        if cluster.starts_with('-') {
            at += 1;
            continue;
        }
        if cluster
            .split(['c', 'm', 'W', 'X'])
            .next()
            .unwrap_or("")
            .contains('i')
        {
            out.push(Effect::Fed(Language::Python));
        }
        if let Some(end) = cluster.find(['c', 'm', 'W', 'X']) {
            let attached = cluster.get(end + 1..).unwrap_or("");
            let (value, used) = match attached.is_empty() {
                true => (call.words.get(at + 1).cloned(), 2),
                false => (Some(word.from(end + 2)), 1),
            };
            match cluster.as_bytes().get(end) {
                // The grammar does not read other languages: `code` does, where it can.
                Some(b'c') => return code::judge(Language::Python, value.as_ref(), out),
                Some(b'm') => {
                    let rest = call.words.get(at + used..).unwrap_or(&[]);
                    match value.as_ref().and_then(Word::as_fixed) {
                        Some(name) => return module(name, rest, out),
                        None => return out.push(Effect::Deed(Deed::Unclear)),
                    }
                }
                _ => at += used,
            }
            continue;
        }
        at += 1;
    }
    match call.words.get(at) {
        Some(word) if word.text == "-" => out.push(Effect::Fed(Language::Python)),
        Some(file) => {
            let mut inner = file.clone();
            inner.append(&Word::fixed("/__main__.py"));
            out.push(Effect::Starts(inner));
            out.push(Effect::RunsFile(file.clone()));
        }
        None => out.push(Effect::Fed(Language::Python)),
    }
}

fn node(call: &Call<'_>, out: &mut Vec<Effect>) {
    const VALUES: &[&str] = &[
        "-C",
        "--conditions",
        "--test-name-pattern",
        "--test-reporter",
        "--input-type",
        "--watch-path",
        "--title",
        "--max-old-space-size",
    ];
    let mut at = 1;
    while let Some(word) = call.words.get(at) {
        let text = word.text.as_str();
        match text {
            "-e" | "--eval" | "-p" | "--print" | "-pe" | "-ep" => {
                return code::judge(Language::Node, call.words.get(at + 1), out);
            }
            "-" => return out.push(Effect::Fed(Language::Node)),
            "-i" | "--interactive" => {
                out.push(Effect::Fed(Language::Node));
                at += 1;
            }
            "-v" | "--version" | "-h" | "--help" | "--v8-options" if call.words.len() == 2 => {
                return;
            }
            "--" => {
                at += 1;
                break;
            }
            _ if text.starts_with("--eval=") || text.starts_with("--print=") => {
                return code::judge(Language::Node, word.after('=').as_ref(), out);
            }
            "-r" | "--require" | "--import" | "--loader" | "--experimental-loader" => {
                out.extend(call.words.get(at + 1).map(loaded));
                at += 2;
            }
            "--env-file" => {
                out.extend(call.words.get(at + 1).cloned().map(Effect::Starts));
                at += 2;
            }
            _ if VALUES.contains(&text) => at += 2,
            "--test" => {
                out.push(Effect::Starts(Word::fixed("**/*test*")));
                return out.push(Effect::Deed(Deed::Opaque));
            }
            _ if [
                "--import=",
                "--require=",
                "--loader=",
                "--experimental-loader=",
                "--env-file=",
            ]
            .iter()
            .any(|flag| text.starts_with(flag)) =>
            {
                out.extend(word.after('=').as_ref().map(loaded));
                at += 1;
            }
            _ if text.starts_with('-') => at += 1,
            _ => break,
        }
    }
    match call.words.get(at) {
        Some(file) => out.push(Effect::RunsFile(file.clone())),
        None => out.push(Effect::Fed(Language::Node)),
    }
}

/// What `node` loads before its program: a file, or code in the word.
fn loaded(word: &Word) -> Effect {
    match word.text.contains(':') {
        true => Effect::Deed(Deed::Code),
        false => Effect::RunsFile(word.clone()),
    }
}

/// Letters of Perl and Ruby whose value is a program, read from the words.
fn one_liner(language: Language, call: &Call<'_>, out: &mut Vec<Effect>) {
    let mut at = 1;
    let mut edits = false;
    let mut inline = false;
    while let Some(word) = call.words.get(at) {
        let text = word.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        let Some(cluster) = text.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else {
            break;
        };
        at += 1;
        if cluster.starts_with('-') || matches!(cluster, "v" | "V" | "h") {
            continue;
        }
        for (from, letter) in cluster.char_indices() {
            let rest = cluster.get(from + 1..).unwrap_or("");
            match letter {
                'i' => {
                    edits = true;
                    break;
                }
                'e' | 'E' => {
                    inline = true;
                    let value = if rest.is_empty() {
                        at += 1;
                        call.words.get(at - 1).cloned()
                    } else {
                        Some(word.from(from + 2))
                    };
                    code::judge(language, value.as_ref(), out);
                    break;
                }
                'c' if rest.is_empty() => return,
                // A debugger.
                'd' if language == Language::Perl => {
                    out.push(Effect::Deed(Deed::Code));
                    break;
                }
                // `-MModule` and `-rmodule` load code of a package.
                'M' | 'm' | 'r' => {
                    let module = if rest.is_empty() {
                        call.words.get(at).map_or("", |word| word.text.as_str())
                    } else {
                        rest
                    };
                    if !code::is_module(
                        language,
                        module
                            .trim_start_matches('-')
                            .split('=')
                            .next()
                            .unwrap_or(""),
                    ) || module.contains([';', '(', '{', ' '])
                    {
                        out.push(Effect::Deed(Deed::Code));
                    }
                    if rest.is_empty() {
                        at += 1;
                    }
                    break;
                }
                'I' | 'C' | 'F' | '0' | 'l' | 'x' | 'D' | 'K' | 'W' | 'T' | 'U' => {
                    if matches!(letter, 'I') && rest.is_empty() {
                        at += 1;
                    }
                    if letter == 'F' && rest.contains(['{', '(', ')', ';', '@', '`']) {
                        out.push(Effect::Deed(Deed::Code));
                    }
                    if !matches!(letter, '0' | 'l' | 'W' | 'T' | 'U')
                        || !rest.starts_with(|c: char| c.is_alphabetic())
                    {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    let files = call.words.get(at..).unwrap_or(&[]);
    if inline {
        // `<>` of Perl opens `rm x |` as a command.
        if language == Language::Perl
            && files
                .iter()
                .any(|word| word.text.contains('|') || word.text.starts_with('>'))
        {
            out.push(Effect::Deed(Deed::Code));
        }
        let act = if edits { Act::Write } else { Act::Read };
        out.extend(files.iter().map(|word| Effect::File(act, word.clone())));
        return;
    }
    match files.first() {
        Some(word) if word.text != "-" => out.push(Effect::RunsFile(word.clone())),
        None if call.words.len() > 1 => {}
        _ => out.push(Effect::Fed(language)),
    }
}

fn perl(call: &Call<'_>, out: &mut Vec<Effect>) {
    one_liner(Language::Perl, call, out);
}

fn ruby(call: &Call<'_>, out: &mut Vec<Effect>) {
    one_liner(Language::Ruby, call, out);
}

fn php(call: &Call<'_>, out: &mut Vec<Effect>) {
    let mut at = 1;
    while let Some(word) = call.words.get(at) {
        match word.text.as_str() {
            "-r" | "-R" | "-B" | "-E" | "--run" => {
                return code::judge(Language::Php, call.words.get(at + 1), out);
            }
            "-d" | "-z" => {
                out.push(Effect::Deed(Deed::Unclear));
                at += 2;
            }
            "-c" | "-t" => at += 2,
            "-S" => return out.push(Effect::Deed(Deed::Opaque)),
            "-v" | "-m" | "-i" | "-h" | "--version" | "--ini" | "--modules"
                if call.words.len() == 2 =>
            {
                return;
            }
            // `php -l FILE` reads it and runs nothing.
            "-l" if call.words.len() == 3 => return,
            "-f" => at += 1,
            text if text.starts_with("-r") => return out.push(Effect::Deed(Deed::Code)),
            text if text.starts_with('-') => at += 1,
            _ => break,
        }
    }
    match call.words.get(at) {
        Some(file) => out.push(Effect::RunsFile(file.clone())),
        None => out.push(Effect::Fed(Language::Php)),
    }
}

/// Interpreters whose code is not read: a file is the project's, a text is not known.
fn other(call: &Call<'_>, out: &mut Vec<Effect>) {
    let asks = |word: &Word| {
        matches!(
            word.as_fixed(),
            Some("--version" | "-version" | "-v" | "-V" | "--help" | "-h" | "-help")
        )
    };
    if call.words.len() == 2 && call.words.get(1).is_some_and(asks) {
        return;
    }
    let java = call.name().ends_with("java");
    let file = call
        .words
        .iter()
        .skip(1)
        .find(|word| !word.text.starts_with('-'));
    let text = call.words.iter().skip(1).any(|word| {
        matches!(
            word.text.as_str(),
            "-e" | "-E"
                | "-c"
                | "--eval"
                | "--execute"
                | "-eval"
                | "-g"
                | "-x"
                | "-p"
                | "--print"
                | "-Command"
                | "-EncodedCommand"
                | "-r"
                | "--command"
                | "-t"
        ) || (word.text.starts_with("-e") && word.text.len() > 2 && !word.text.starts_with("-ea"))
    });
    match file {
        _ if java
            && !call.words.iter().any(|word| {
                word.text.starts_with("-XX:OnError") || word.text.starts_with("-XX:OnOutOf")
            }) =>
        {
            out.push(Effect::Deed(Deed::Opaque))
        }
        Some(file) if !text && !java => out.push(Effect::RunsFile(file.clone())),
        _ => out.push(Effect::Deed(Deed::Code)),
    }
}

fn awk(call: &Call<'_>, out: &mut Vec<Effect>) {
    let mut at = 1;
    let mut program = None;
    while let Some(word) = call.words.get(at) {
        let text = word.text.as_str();
        match text {
            "--" => {
                at += 1;
                break;
            }
            "-f" | "--file" => {
                out.extend(call.words.get(at + 1).map(code::file_of));
                program = Some(None);
                at += 2;
            }
            _ if text.starts_with("-f") || text.starts_with("--file=") => {
                let from = if text.starts_with("-f") { 2 } else { 7 };
                out.push(code::file_of(&word.from(from)));
                program = Some(None);
                at += 1;
            }
            "-F" | "-v" | "--field-separator" | "--assign" => at += 2,
            "-i" | "--include" | "-l" | "--load" | "-E" | "--exec" => {
                out.push(Effect::Deed(Deed::Code));
                at += 2;
            }
            "-e" | "--source" => {
                program = Some(call.words.get(at + 1));
                at += 2;
            }
            _ if text.starts_with("-i")
                || text.starts_with("-l")
                || text.starts_with("--include")
                || text.starts_with("--load")
                || text.starts_with("--exec")
                || text.starts_with("-E")
                || text.starts_with("-W") =>
            {
                out.push(Effect::Deed(Deed::Code));
                at += 1;
            }
            _ if text.starts_with('-') && text.len() > 1 => at += 1,
            _ => break,
        }
    }
    let program = match program {
        Some(program) => program,
        None => {
            at += 1;
            call.words.get(at - 1)
        }
    };
    if let Some(program) = program {
        code::awk(program, out);
    }
    let files = call.words.get(at..).unwrap_or(&[]);
    out.extend(
        files
            .iter()
            .filter(|word| !word.is_assignment())
            .map(|word| Effect::File(Act::Read, word.clone())),
    );
}

fn queued(call: &Call<'_>, out: &mut Vec<Effect>) {
    if !call.has(&["l", "q", "V"]) || !call.operands.is_empty() {
        out.push(Effect::Deed(Deed::Persists));
    }
}

/// Sessions are only looked at.
fn multiplexer(call: &Call<'_>, out: &mut Vec<Effect>) {
    let looks = matches!(
        call.operand(0),
        Some(
            "ls" | "list-sessions"
                | "lsp"
                | "list-panes"
                | "list-windows"
                | "capture-pane"
                | "capturep"
                | "display-message"
                | "has-session"
                | "has"
                | "info"
        )
    ) || call.has(&["ls", "list", "V"]);
    if looks {
        out.retain(|effect| *effect != Effect::Deed(Deed::Code));
    }
}

fn entr(call: &Call<'_>, out: &mut Vec<Effect>) {
    let at = call
        .words
        .iter()
        .skip(1)
        .position(|word| !word.text.starts_with('-'))
        .map_or(call.words.len(), |at| at + 1);
    out.push(Effect::Tool(call.words.get(at..).unwrap_or(&[]).to_vec()));
}
