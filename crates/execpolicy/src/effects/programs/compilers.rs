//! Describes compilers, linkers, typesetters and debuggers. Compilers write their output, debuggers
//! run a program; options that load plugins or run commands are code.

use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};
use crate::effects::{CodeLanguage, CommandEffect, FileAccess};

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::new(&[
        "gcc",
        "g++",
        "cc",
        "c++",
        "clang",
        "clang++",
        "tcc",
        "icc",
        "nvcc",
        "gfortran",
        "f77",
        "f95",
        "gdc",
        "ldc",
        "dmd",
        "mingw-gcc",
        "emcc",
        "em++",
        "zig-cc",
        "ccache",
        "sccache",
        "distcc",
        "cl",
    ])
    .with_short_value_options("DUILlxuTWO-")
    .with_option_meanings(&[
        ("o", OptionMeaning::Writes),
        ("I", OptionMeaning::Value),
        ("L", OptionMeaning::Value),
        // `-B FOLDER` is where the compiler looks for its sub-programs; `-wrapper` runs another
        // program for each of them.
        (
            "B",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
        ),
        (
            "wrapper",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
        ),
        ("MF", OptionMeaning::Writes),
    ])
    .with_extra_effects_fn(compiler_input_effects),
    ProgramEffectSpec::new(&[
        "ld",
        "lld",
        "gold",
        "mold",
        "ar",
        "ranlib",
        "as",
        "nasm",
        "yasm",
        "strip",
        "objcopy",
        "patchelf",
        "install_name_tool",
        "lipo",
        "windres",
        "dlltool",
    ])
    .with_extra_effects_fn(object_file_tool_effects),
    ProgramEffectSpec::program_spec_reading_operands(&[
        "rustc",
        "javac",
        "kotlinc",
        "scalac",
        "ghc",
        "ocamlc",
        "ocamlopt",
        "fpc",
        "nim",
        "valac",
        "csc",
        "mcs",
        "fsc",
        "vbc",
        "swiftc",
        "elixirc",
        "erlc",
        "solc",
        "gobjc",
        "sass",
        "lessc",
        "tailwindcss",
        "postcss",
        "stylus",
        "coffee",
        "pug",
        "asc",
        "flex",
        "bison",
        "yacc",
        "lex",
        "m4",
        "cpp",
        "moc",
        "uic",
        "rcc",
        "glslc",
        "pdflatex",
        "latex",
        "xelatex",
        "lualatex",
        "latexmk",
        "bibtex",
        "typst",
        "pandoc",
        "asciidoctor",
        "rst2html",
        "dot",
        "plantuml",
        "mmdc",
        "groff",
        "troff",
        "nroff",
        "makeinfo",
        "gettext",
        "xgettext",
        "msgfmt",
        "msgmerge",
    ])
    .with_short_value_options("LClidT")
    .with_long_value_options(&[
        "edition",
        "crate-type",
        "crate-name",
        "target",
        "out-dir",
        "emit",
        "extern",
        "cfg",
        "from",
        "to",
        "template",
        "css",
        "config",
        "input",
    ])
    .with_option_meanings(&[
        ("o", OptionMeaning::Writes),
        ("output", OptionMeaning::Writes),
        ("out-dir", OptionMeaning::Writes),
        (
            // Lets a TeX document run commands.
            "shell-escape",
            OptionMeaning::FlagEffect(NonFileEffectKind::UnreadableCode),
        ),
        (
            // Pandoc runs filters as programs.
            "filter",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
        ),
        (
            "F",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
        ),
        (
            "lua-filter",
            OptionMeaning::ValueEffect(NonFileEffectKind::UnreadableCode),
        ),
    ])
    .with_extra_effects_fn(tex_shell_escape_effects),
    ProgramEffectSpec::new(&[
        "gdb", "lldb", "valgrind", "perf", "rr", "cgdb", "pdb", "dlv", "jdb", "jstack", "jmap",
        "jps", "jcmd", "jstat", "py-spy", "austin", "scalene", "memray",
    ])
    .with_extra_effects_fn(debugger_effects),
];

/// Adds the sources that are read, and code that is loaded: plugins, and options from an `@FILE`.
fn compiler_input_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.extend(
        call.operands
            .iter()
            .map(|word| CommandEffect::File(FileAccess::Read, (*word).clone())),
    );
    let plugin = |word: &&crate::shell::CommandWord| {
        word.text.starts_with("-fplugin")
            || word.text.starts_with("-wrapper")
            || word.text.starts_with("-load")
            || word.text.starts_with("@")
    };
    if call.words.iter().skip(1).any(|word| plugin(&word)) {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
}

fn object_file_tool_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // `strip`, `ar` or `objcopy` change their operands in place; whether they do is not told apart.
    out.extend(
        call.operands
            .iter()
            .map(|word| CommandEffect::File(FileAccess::Write, (*word).clone())),
    );
    out.extend(
        call.option_values(&["o"])
            .map(|word| CommandEffect::File(FileAccess::Write, word.clone())),
    );
}

/// Judges typesetters and macro processors: `-shell-escape` of TeX and `syscmd` of m4 run commands.
fn tex_shell_escape_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if call.words.iter().any(|word| {
        word.text.contains("shell-escape")
            || word.text.contains("write18")
            || word.text.contains("syscmd")
            || word.text.contains("-pdflatex=")
    }) {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
}

/// Judges debuggers. They run a program of the project; debugger commands in the words can be code.
fn debugger_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let name = call.command_name();
    if matches!(name, "gdb" | "lldb") {
        // Commands that only look or step. A call or an expression among their arguments can run
        // anything.
        let plain = |text: &str| {
            matches!(
                text.split_whitespace().next().unwrap_or(""),
                "bt" | "run"
                    | "r"
                    | "quit"
                    | "q"
                    | "where"
                    | "info"
                    | "frame"
                    | "thread"
                    | "backtrace"
                    | "b"
                    | "break"
                    | "c"
                    | "continue"
                    | "disassemble"
                    | "x"
                    | "set-pagination"
                    | "up"
                    | "down"
                    | "list"
                    | "l"
            ) && !text.contains(['(', '!', '|', '=', '$'])
        };
        let commands = call
            .words
            .iter()
            .zip(call.words.iter().skip(1))
            .filter(|(flag, _)| {
                matches!(
                    flag.text.as_str(),
                    "-ex"
                        | "--ex"
                        | "-eval-command"
                        | "--eval-command"
                        | "-iex"
                        | "-o"
                        | "-O"
                        | "--one-line"
                        | "-k"
                )
            });
        if commands
            .clone()
            .any(|(_, text)| !text.as_literal().is_some_and(plain))
            || call.words.iter().any(|word| {
                matches!(
                    word.text.as_str(),
                    "-x" | "-s" | "-p" | "--command" | "--python" | "-P"
                ) || word.text.contains('=')
            })
        {
            out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
        }
        // The program behind `--args` is started with these words.
        let args = call
            .words
            .iter()
            .position(|word| matches!(word.text.as_str(), "--args" | "-args" | "--"));
        if let Some(at) = args {
            out.push(CommandEffect::ProjectTool(
                call.words.get(at + 1..).unwrap_or(&[]).to_vec(),
            ));
        }
        // Further debugger commands come from standard input.
        out.push(CommandEffect::StdinCode(CodeLanguage::Unread));
        return out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
    }
    // These record a program that they start; the others show what was recorded.
    if name == "perf"
        && matches!(
            call.literal_operand(0),
            Some("record" | "stat" | "trace" | "mem" | "c2c")
        )
    {
        let rest = call.operands.iter().skip(1).map(|word| (*word).clone());
        out.push(CommandEffect::ProjectTool(rest.collect()));
    }
    if name == "valgrind" && !call.operands.is_empty() {
        return out.push(CommandEffect::ProjectTool(call.words_from_first_operand()));
    }
    out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
}
