//! Describes shells, shell builtins and interpreters. Programs that run their arguments have no
//! effects of their own: the shell grammar finds what they run, and it is judged as a command.

use crate::effects::code::{self, CodeLanguage};
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::CommandWord;

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    // Keywords, and what changes only the shell itself.
    ProgramEffectSpec::new(&[
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
    ProgramEffectSpec::program_spec_with_fixed_effects(
        // They load a shared object as a builtin, load a module, or run commands of the history.
        &["enable", "zmodload", "fc"],
        &[NonFileEffectKind::UnreadableCode],
    ),
    ProgramEffectSpec::new(&["mapfile", "readarray"])
        .with_short_value_options("dnOsuc")
        // `mapfile -C CALLBACK` runs it for every few lines.
        .with_option_meanings(&[("C", OptionMeaning::Command)]),
    // They run their arguments.
    ProgramEffectSpec::new(&[
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
    .with_extra_effects_fn(command_wrapper_own_effects),
    ProgramEffectSpec::new(&[
        "sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "rbash", "fish",
    ])
    .with_extra_effects_fn(shell_interpreter_effects),
    ProgramEffectSpec::new(&["source", "."]).with_extra_effects_fn(source_command_effects),
    ProgramEffectSpec::new(&["python", "pypy", "ipython", "python3-dbg"])
        .with_extra_effects_fn(python_effects),
    ProgramEffectSpec::new(&["node", "nodejs"]).with_extra_effects_fn(nodejs_effects),
    ProgramEffectSpec::new(&["perl"]).with_extra_effects_fn(perl_effects),
    ProgramEffectSpec::new(&["ruby", "jruby"]).with_extra_effects_fn(ruby_effects),
    ProgramEffectSpec::new(&["php"]).with_extra_effects_fn(php_effects),
    ProgramEffectSpec::new(&[
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
    .with_extra_effects_fn(other_interpreter_effects),
    ProgramEffectSpec::new(&["awk", "gawk", "mawk", "nawk", "goawk"])
        .with_extra_effects_fn(awk_effects),
    ProgramEffectSpec::new(&["at", "batch"]).with_extra_effects_fn(at_job_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["tmux", "screen", "dtach", "abduco", "zellij"],
        &[NonFileEffectKind::UnreadableCode],
    )
    .with_extra_effects_fn(drop_effect_of_multiplexer_query),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "entr",
            "watchexec",
            "chokidar",
            "inotifywait-run",
            "fswatch-run",
        ],
        &[NonFileEffectKind::Opaque],
    )
    .with_extra_effects_fn(file_watcher_effects),
    ProgramEffectSpec::new(&[
        "inotifywait",
        "fswatch",
        "wait-for-it",
        "wait-on",
        "wait-for",
    ]),
];

fn word_at<'w>(call: &'w ParsedArgs<'_>, at: usize) -> Option<&'w CommandWord> {
    call.words.get(at)
}

/// Adds what a wrapper does besides running its arguments, mostly a file that it writes.
fn command_wrapper_own_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let name = call.command_name();
    match name {
        "script" => {
            // The last word is the transcript, unless it is the command of `-c`, which has blanks.
            let file = call
                .words
                .iter()
                .skip(1)
                .rfind(|word| !word.text.starts_with('-'));
            out.extend(
                file.filter(|word| !word.text.contains(' '))
                    .map(|word| CommandEffect::File(FileAccess::Write, word.clone())),
            );
        }
        "time" | "gtime" | "strace" | "ltrace" | "parallel" => {
            for (at, word) in call.words.iter().enumerate().skip(1) {
                let text = word.text.as_str();
                // Behind the first operand all words belong to the command.
                if !text.starts_with('-') {
                    break;
                }
                if matches!(text, "-o" | "--output" | "--joblog" | "--results") {
                    out.extend(
                        call.words
                            .get(at + 1)
                            .map(|word| CommandEffect::File(FileAccess::Write, word.clone())),
                    );
                } else if text.starts_with("-o")
                    || text.starts_with("--output=")
                    || text.starts_with("--results=")
                {
                    out.push(CommandEffect::File(
                        FileAccess::Write,
                        word.word_suffix_from_byte(if text.starts_with("--") {
                            text.find('=').map_or(2, |at| at + 1)
                        } else {
                            2
                        }),
                    ));
                }
            }
        }
        // `env --chdir` runs the command in another folder, which its paths would have to follow.
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
                out.push(CommandEffect::Kind(NonFileEffectKind::UnknownOptions));
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
            out.push(CommandEffect::ProjectTool(
                rest.get(skip..).unwrap_or(&[]).to_vec(),
            ));
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
                    .map(|(_, file)| CommandEffect::File(FileAccess::Read, file.clone())),
            );
        }
        _ => {}
    }
}

/// Judges a shell call: a script file, or standard input. The grammar reads the text of `-c`.
fn shell_interpreter_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let mut at = 1;
    while let Some(word) = word_at(call, at) {
        let text = word.text.as_str();
        match text {
            "--rcfile" | "--init-file" => {
                out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
                at += 2;
            }
            // They take the name of a shell option.
            "-o" | "+o" | "-O" | "+O" => at += 2,
            "--" => {
                at += 1;
                break;
            }
            _ if text.starts_with("--") => at += 1,
            _ if text.starts_with(['-', '+']) && text.len() > 1 => {
                // `-n` only checks the syntax, `-c` takes a text, `-s` reads standard input.
                if text.starts_with('-') && text.contains(['n']) && !text.contains('c') {
                    return;
                }
                if text.contains('s') {
                    return out.push(CommandEffect::StdinCode(CodeLanguage::Shell));
                }
                if text.contains('c') {
                    return;
                }
                at += 1;
            }
            _ => break,
        }
    }
    out.push(match word_at(call, at) {
        Some(file) => CommandEffect::RunsFile(file.clone()),
        None => CommandEffect::StdinCode(CodeLanguage::Shell),
    });
}

fn source_command_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.extend(
        call.words
            .get(1)
            .map(|word| CommandEffect::RunsFile(word.clone())),
    );
}

/// Adds the effects of `python -m NAME`: the module is a program, or a file of the project.
fn add_python_module_effects(name: &str, rest: &[CommandWord], out: &mut Vec<CommandEffect>) {
    let as_program = |program: &'static str, out: &mut Vec<CommandEffect>| {
        let mut words = vec![CommandWord::new_literal_word(program)];
        words.extend(rest.iter().cloned());
        out.push(CommandEffect::ProjectTool(words));
    };
    // A file of this name in the folder would be run instead of the real module.
    code::add_python_module_source_files(name, out);
    if name == "unittest" {
        let named = rest.iter().filter_map(CommandWord::as_literal);
        named.for_each(|name| code::add_python_module_source_files(name, out));
        out.push(CommandEffect::StartsFile(CommandWord::new_literal_word(
            "**/test*.py",
        )));
    }
    // A program that is read from a descriptor has no file that could be judged.
    let fed = |word: &CommandWord| word.text.starts_with("/dev") || word.text.starts_with("/proc");
    if rest.iter().any(fed) {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    match name {
        "pip" => as_program("pip", out),
        "pytest" | "tox" | "nox" | "black" | "ruff" | "mypy" | "flake8" | "isort" | "pylint"
        | "coverage" | "build" | "twine" | "uvicorn" | "gunicorn" | "flask" | "poetry" | "pipx"
        | "uv" | "virtualenv" | "alembic" | "celery" | "jupyter" | "sphinx" => {
            let program = rest.len();
            let mut words = vec![CommandWord::new_literal_word(name)];
            words.extend(rest.iter().take(program).cloned());
            out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
            out.push(CommandEffect::ProjectTool(words));
        }
        "json.tool" | "tabnanny" | "tokenize" | "ast" | "dis" | "calendar" | "this"
        | "platform" | "site" | "sysconfig" | "base64" | "gzip" | "zipfile" | "tarfile"
        | "compileall" | "py_compile" | "venv" | "ensurepip" | "http.server" | "pydoc"
        | "unittest" | "doctest" | "trace" | "cProfile" | "profile" | "pstats" | "symtable"
        | "inspect" | "pyclbr" | "difflib" | "mimetypes" | "locale" | "encodings" | "lib2to3"
        | "xmlrpc" | "dataclasses" | "zipapp" => {
            out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
            let written: &[CommandWord] = match name {
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
                    .map(|word| CommandEffect::File(FileAccess::Write, word.clone())),
            );
        }
        // These run code or a command from their arguments or input.
        "timeit" | "code" | "pty" | "runpy" | "pdb" | "asyncio" | "idlelib" | "test" => {
            out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode))
        }
        "smtpd" | "smtplib" | "ftplib" | "webbrowser" => {
            out.push(CommandEffect::Kind(NonFileEffectKind::Uploads))
        }
        _ => out.push(CommandEffect::Kind(NonFileEffectKind::Opaque)),
    }
}

fn python_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let mut at = 1;
    while let Some(word) = call.words.get(at) {
        let text = word.text.as_str();
        // Options come before the program; the first other word is the script.
        let Some(cluster) = text.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else {
            break;
        };
        if call.only_argument_is_one_of(&["--version", "--help", "-V", "-VV", "-h"]) {
            return;
        }
        if cluster.starts_with('-') {
            at += 1;
            continue;
        }
        // `-i` reads further code from its input after the program.
        if cluster
            .split(['c', 'm', 'W', 'X'])
            .next()
            .unwrap_or("")
            .contains('i')
        {
            out.push(CommandEffect::StdinCode(CodeLanguage::Python));
        }
        if let Some(end) = cluster.find(['c', 'm', 'W', 'X']) {
            let attached = cluster.get(end + 1..).unwrap_or("");
            let (value, used) = match attached.is_empty() {
                true => (call.words.get(at + 1).cloned(), 2),
                false => (Some(word.word_suffix_from_byte(end + 2)), 1),
            };
            match cluster.as_bytes().get(end) {
                // The grammar does not read other languages: `code` does, where it can.
                Some(b'c') => {
                    return code::add_inline_code_effects(
                        CodeLanguage::Python,
                        value.as_ref(),
                        out,
                    );
                }
                Some(b'm') => {
                    let rest = call.words.get(at + used..).unwrap_or(&[]);
                    match value.as_ref().and_then(CommandWord::as_literal) {
                        Some(name) => return add_python_module_effects(name, rest, out),
                        None => {
                            return out
                                .push(CommandEffect::Kind(NonFileEffectKind::UnknownOptions));
                        }
                    }
                }
                _ => at += used,
            }
            continue;
        }
        at += 1;
    }
    match call.words.get(at) {
        Some(word) if word.text == "-" => out.push(CommandEffect::StdinCode(CodeLanguage::Python)),
        Some(file) => {
            let mut inner = file.clone();
            // `python FOLDER` and `python FILE.zip` run the `__main__.py` inside.
            inner.append_word_without_blank(&CommandWord::new_literal_word("/__main__.py"));
            out.push(CommandEffect::StartsFile(inner));
            out.push(CommandEffect::RunsFile(file.clone()));
        }
        None => out.push(CommandEffect::StdinCode(CodeLanguage::Python)),
    }
}

fn nodejs_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
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
                return code::add_inline_code_effects(
                    CodeLanguage::Node,
                    call.words.get(at + 1),
                    out,
                );
            }
            "-" => return out.push(CommandEffect::StdinCode(CodeLanguage::Node)),
            "-i" | "--interactive" => {
                out.push(CommandEffect::StdinCode(CodeLanguage::Node));
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
                return code::add_inline_code_effects(
                    CodeLanguage::Node,
                    word.suffix_after_char('=').as_ref(),
                    out,
                );
            }
            // A preloaded module runs before the program, whatever the program is.
            "-r" | "--require" | "--import" | "--loader" | "--experimental-loader" => {
                out.extend(call.words.get(at + 1).map(node_preload_effect));
                at += 2;
            }
            // The file can set `NODE_OPTIONS`, so a script must not have written it.
            "--env-file" => {
                out.extend(
                    call.words
                        .get(at + 1)
                        .cloned()
                        .map(CommandEffect::StartsFile),
                );
                at += 2;
            }
            _ if VALUES.contains(&text) => at += 2,
            "--test" => {
                // The test runner picks its files by name.
                out.push(CommandEffect::StartsFile(CommandWord::new_literal_word(
                    "**/*test*",
                )));
                return out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
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
                out.extend(
                    word.suffix_after_char('=')
                        .as_ref()
                        .map(node_preload_effect),
                );
                at += 1;
            }
            _ if text.starts_with('-') => at += 1,
            _ => break,
        }
    }
    match call.words.get(at) {
        Some(file) => out.push(CommandEffect::RunsFile(file.clone())),
        None => out.push(CommandEffect::StdinCode(CodeLanguage::Node)),
    }
}

/// Returns the effect of a module that `node` preloads: a file, or code in a `data:` URL.
fn node_preload_effect(word: &CommandWord) -> CommandEffect {
    match word.text.contains(':') {
        true => CommandEffect::Kind(NonFileEffectKind::UnreadableCode),
        false => CommandEffect::RunsFile(word.clone()),
    }
}

/// Judges a call of Perl or Ruby, which share the letters for one-liners (`-e`, `-i`, `-n`).
fn perl_or_ruby_effects(
    language: CodeLanguage,
    call: &ParsedArgs<'_>,
    out: &mut Vec<CommandEffect>,
) {
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
                // The rest of the cluster is the suffix of the backup: `-i.bak`.
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
                        Some(word.word_suffix_from_byte(from + 2))
                    };
                    code::add_inline_code_effects(language, value.as_ref(), out);
                    break;
                }
                // Only checks the syntax.
                'c' if rest.is_empty() => return,
                // `-d` runs the debugger, which loads a module of any name.
                'd' if language == CodeLanguage::Perl => {
                    out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
                    break;
                }
                // `-MModule` and `-rmodule` load a package. Perl inserts the text into a `use`
                // statement, so signs in it are code.
                'M' | 'm' | 'r' => {
                    let module = if rest.is_empty() {
                        call.words.get(at).map_or("", |word| word.text.as_str())
                    } else {
                        rest
                    };
                    if !code::is_pure_module(
                        language,
                        module
                            .trim_start_matches('-')
                            .split('=')
                            .next()
                            .unwrap_or(""),
                    ) || module.contains([';', '(', '{', ' '])
                    {
                        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
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
                    // `-F` takes a pattern, in which Perl can run code.
                    if letter == 'F' && rest.contains(['{', '(', ')', ';', '@', '`']) {
                        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
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
        // Perl's `<>` opens each argument, and runs `rm x |` as a command.
        if language == CodeLanguage::Perl
            && files
                .iter()
                .any(|word| word.text.contains('|') || word.text.starts_with('>'))
        {
            out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
        }
        let act = if edits {
            FileAccess::Write
        } else {
            FileAccess::Read
        };
        out.extend(
            files
                .iter()
                .map(|word| CommandEffect::File(act, word.clone())),
        );
        return;
    }
    match files.first() {
        Some(word) if word.text != "-" => out.push(CommandEffect::RunsFile(word.clone())),
        None if call.words.len() > 1 => {}
        _ => out.push(CommandEffect::StdinCode(language)),
    }
}

fn perl_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    perl_or_ruby_effects(CodeLanguage::Perl, call, out);
}

fn ruby_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    perl_or_ruby_effects(CodeLanguage::Ruby, call, out);
}

fn php_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let mut at = 1;
    while let Some(word) = call.words.get(at) {
        match word.text.as_str() {
            "-r" | "-R" | "-B" | "-E" | "--run" => {
                return code::add_inline_code_effects(
                    CodeLanguage::Php,
                    call.words.get(at + 1),
                    out,
                );
            }
            // `-d` sets an option such as `auto_prepend_file`; `-z` loads an extension.
            "-d" | "-z" => {
                out.push(CommandEffect::Kind(NonFileEffectKind::UnknownOptions));
                at += 2;
            }
            "-c" | "-t" => at += 2,
            // The built-in server runs scripts of the project on request.
            "-S" => return out.push(CommandEffect::Kind(NonFileEffectKind::Opaque)),
            "-v" | "-m" | "-i" | "-h" | "--version" | "--ini" | "--modules"
                if call.words.len() == 2 =>
            {
                return;
            }
            // `php -l FILE` reads it and runs nothing.
            "-l" if call.words.len() == 3 => return,
            "-f" => at += 1,
            text if text.starts_with("-r") => {
                return out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
            }
            text if text.starts_with('-') => at += 1,
            _ => break,
        }
    }
    match call.words.get(at) {
        Some(file) => out.push(CommandEffect::RunsFile(file.clone())),
        None => out.push(CommandEffect::StdinCode(CodeLanguage::Php)),
    }
}

/// Judges interpreters whose code is not analyzed: a file is judged as such, inline code is
/// unknown.
fn other_interpreter_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let asks = |word: &CommandWord| {
        matches!(
            word.as_literal(),
            Some("--version" | "-version" | "-v" | "-V" | "--help" | "-h" | "-help")
        )
    };
    if call.words.len() == 2 && call.words.get(1).is_some_and(asks) {
        return;
    }
    let java = call.command_name().ends_with("java");
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
        // Java gets a class name and not a file. `-XX:OnError` runs a command when the program
        // crashes.
        _ if java
            && !call.words.iter().any(|word| {
                word.text.starts_with("-XX:OnError") || word.text.starts_with("-XX:OnOutOf")
            }) =>
        {
            out.push(CommandEffect::Kind(NonFileEffectKind::Opaque))
        }
        Some(file) if !text && !java => out.push(CommandEffect::RunsFile(file.clone())),
        _ => out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode)),
    }
}

fn awk_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
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
                out.extend(
                    call.words
                        .get(at + 1)
                        .map(code::runs_file_or_unreadable_effect),
                );
                program = Some(None);
                at += 2;
            }
            _ if text.starts_with("-f") || text.starts_with("--file=") => {
                let from = if text.starts_with("-f") { 2 } else { 7 };
                out.push(code::runs_file_or_unreadable_effect(
                    &word.word_suffix_from_byte(from),
                ));
                program = Some(None);
                at += 1;
            }
            "-F" | "-v" | "--field-separator" | "--assign" => at += 2,
            // gawk: they load another program or a shared library.
            "-i" | "--include" | "-l" | "--load" | "-E" | "--exec" => {
                out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
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
                out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
                at += 1;
            }
            _ if text.starts_with('-') && text.len() > 1 => at += 1,
            _ => break,
        }
    }
    // Without `-f` or `-e` the first operand is the program.
    let program = match program {
        Some(program) => program,
        None => {
            at += 1;
            call.words.get(at - 1)
        }
    };
    if let Some(program) = program {
        code::awk_program_effects(program, out);
    }
    let files = call.words.get(at..).unwrap_or(&[]);
    out.extend(
        files
            .iter()
            .filter(|word| !word.is_assignment())
            .map(|word| CommandEffect::File(FileAccess::Read, word.clone())),
    );
}

fn at_job_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if !call.has_option(&["l", "q", "V"]) || !call.operands.is_empty() {
        out.push(CommandEffect::Kind(NonFileEffectKind::Persists));
    }
}

/// Drops the effect of the row where a session is only looked at.
fn drop_effect_of_multiplexer_query(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let looks = matches!(
        call.literal_operand(0),
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
    ) || call.has_option(&["ls", "list", "V"]);
    if looks {
        out.retain(|effect| *effect != CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
}

fn file_watcher_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let at = call
        .words
        .iter()
        .skip(1)
        .position(|word| !word.text.starts_with('-'))
        .map_or(call.words.len(), |at| at + 1);
    out.push(CommandEffect::ProjectTool(
        call.words.get(at..).unwrap_or(&[]).to_vec(),
    ));
}
