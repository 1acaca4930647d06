//! Compilers, linkers and typesetters write what they make; debuggers run it.

use crate::effects::call::Call;
use crate::effects::row::{Deed, On, Row};
use crate::effects::{Act, Effect, Language};

pub(super) const ROWS: &[Row] = &[
    Row::of(&[
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
    .values("DUILlxuTWO-")
    .on(&[
        ("o", On::Writes),
        ("I", On::Value),
        ("L", On::Value),
        ("B", On::With(Deed::Code)),
        ("wrapper", On::With(Deed::Code)),
        ("MF", On::Writes),
    ])
    .more(compiled),
    Row::of(&[
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
    .more(last_written),
    Row::reads(&[
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
    .values("LClidT")
    .longs(&[
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
    .on(&[
        ("o", On::Writes),
        ("output", On::Writes),
        ("out-dir", On::Writes),
        ("shell-escape", On::Does(Deed::Code)),
        ("filter", On::With(Deed::Code)),
        ("F", On::With(Deed::Code)),
        ("lua-filter", On::With(Deed::Code)),
    ])
    .more(escaped),
    Row::of(&[
        "gdb", "lldb", "valgrind", "perf", "rr", "cgdb", "pdb", "dlv", "jdb", "jstack", "jmap",
        "jps", "jcmd", "jstat", "py-spy", "austin", "scalene", "memray",
    ])
    .more(debugger),
];

/// `-oFILE`; a plugin is code.
fn compiled(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.extend(
        call.operands
            .iter()
            .map(|word| Effect::File(Act::Read, (*word).clone())),
    );
    let plugin = |word: &&crate::shell::Word| {
        word.text.starts_with("-fplugin")
            || word.text.starts_with("-wrapper")
            || word.text.starts_with("-load")
            || word.text.starts_with("@")
    };
    if call.words.iter().skip(1).any(|word| plugin(&word)) {
        out.push(Effect::Deed(Deed::Code));
    }
}

fn last_written(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.extend(
        call.operands
            .iter()
            .map(|word| Effect::File(Act::Write, (*word).clone())),
    );
    out.extend(
        call.values_of(&["o"])
            .map(|word| Effect::File(Act::Write, word.clone())),
    );
}

/// TeX with `-shell-escape` runs commands.
fn escaped(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call.words.iter().any(|word| {
        word.text.contains("shell-escape")
            || word.text.contains("write18")
            || word.text.contains("syscmd")
            || word.text.contains("-pdflatex=")
    }) {
        out.push(Effect::Deed(Deed::Code));
    }
}

/// Debuggers run a program of the project; commands in their words are code.
fn debugger(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call.name();
    if matches!(name, "gdb" | "lldb") {
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
            .any(|(_, text)| !text.as_fixed().is_some_and(plain))
            || call.words.iter().any(|word| {
                matches!(
                    word.text.as_str(),
                    "-x" | "-s" | "-p" | "--command" | "--python" | "-P"
                ) || word.text.contains('=')
            })
        {
            out.push(Effect::Deed(Deed::Code));
        }
        let args = call
            .words
            .iter()
            .position(|word| matches!(word.text.as_str(), "--args" | "-args" | "--"));
        if let Some(at) = args {
            out.push(Effect::Tool(
                call.words.get(at + 1..).unwrap_or(&[]).to_vec(),
            ));
        }
        out.push(Effect::Fed(Language::Other));
        return out.push(Effect::Deed(Deed::Opaque));
    }
    if name == "perf"
        && matches!(
            call.operand(0),
            Some("record" | "stat" | "trace" | "mem" | "c2c")
        )
    {
        let rest = call.operands.iter().skip(1).map(|word| (*word).clone());
        out.push(Effect::Tool(rest.collect()));
    }
    if name == "valgrind" && !call.operands.is_empty() {
        return out.push(Effect::Tool(call.behind()));
    }
    out.push(Effect::Deed(Deed::Opaque));
}
