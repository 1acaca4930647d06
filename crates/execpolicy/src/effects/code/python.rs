//! Recognizes Python programs that only print, compute and read. Names that run code, write or hide
//! either of those are not allowed anywhere, string literals included, so that no string can become
//! a program unseen. A program that is not plainly harmless counts as unreadable.

use super::file_access_effect;
use super::tokens::{CodeToken, identifiers_in_code, split_code_call_arguments, tokenize_code};
use crate::effects::program_spec::NonFileEffectKind;
use crate::effects::{CommandEffect, FileAccess};

/// Names that make a program unreadable, wherever they stand.
const FORBIDDEN_NAMES: &[&str] = &[
    "exec",
    "eval",
    "compile",
    "execfile",
    "getattr",
    "setattr",
    "delattr",
    "globals",
    "locals",
    "vars",
    "breakpoint",
    "__import__",
    "__builtins__",
    "__class__",
    "__subclasses__",
    "__bases__",
    "__base__",
    "__mro__",
    "__globals__",
    "__getattribute__",
    "__getattr__",
    "__loader__",
    "__spec__",
    "__code__",
    "__reduce__",
    "__dict__",
    "__self__",
    "__func__",
    "__wrapped__",
    "__closure__",
    "__call__",
    "__init_subclass__",
    "__set_name__",
    "__del__",
    "f_builtins",
    "f_globals",
    "f_locals",
    "gi_frame",
    "cr_frame",
    "tb_frame",
    "gi_code",
    "func_globals",
    "_getframe",
    "modules",
    "meta_path",
    "settrace",
    "setprofile",
    "subprocess",
    "ctypes",
    "cffi",
    "socket",
    "socketserver",
    "shutil",
    "pty",
    "importlib",
    "runpy",
    "builtins",
    "pickle",
    "cPickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
    "urllib",
    "urllib2",
    "urllib3",
    "requests",
    "httpx",
    "aiohttp",
    "ftplib",
    "smtplib",
    "telnetlib",
    "paramiko",
    "fabric",
    "pexpect",
    "plumbum",
    "sh",
    "invoke",
    "webbrowser",
    "signal",
    "multiprocessing",
    "posix",
    "nt",
    "psutil",
    "boto3",
    "docker",
    "distutils",
    "pip",
    "operator",
    "methodcaller",
    "attrgetter",
    "timeit",
    "cProfile",
    "profile",
    "pdb",
    "bdb",
    "trace",
    "code",
    "codeop",
    "doctest",
    "fileinput",
    "sched",
    "gc",
    "types",
    "FunctionType",
    "CodeType",
    "winreg",
    "keyring",
    "antigravity",
    "imp",
    "pkgutil",
    "zipimport",
    "linecache",
    "system",
    "popen",
    "popen2",
    "popen3",
    "popen4",
    "spawnl",
    "spawnv",
    "spawnlp",
    "spawnvp",
    "posix_spawn",
    "startfile",
    "execv",
    "execve",
    "execl",
    "execlp",
    "execvp",
    "fork",
    "forkpty",
    "kill",
    "killpg",
    "abort",
    "unlink",
    "rmtree",
    "rmdir",
    "removedirs",
    "renames",
    "symlink",
    "symlink_to",
    "hardlink_to",
    "link_to",
    "chmod",
    "chown",
    "lchown",
    "lchmod",
    "chflags",
    "truncate",
    "write_text",
    "write_bytes",
    "mkfifo",
    "mknod",
    "makedirs",
    "mkdir",
    "touch",
    "extractall",
    "extract",
    "copyfile",
    "copytree",
    "copy2",
    "move",
    "utime",
    "setuid",
    "setgid",
    "chroot",
    "putenv",
    "unsetenv",
    "environb",
    "sympify",
    "parse_expr",
    "lambdify",
    "evaluate",
    "unsafe_load",
    "full_load",
    "allow_pickle",
    "create_subprocess_shell",
    "create_subprocess_exec",
    "getoutput",
    "getstatusoutput",
    "check_output",
    "check_call",
    "Popen",
    "run_path",
    "run_module",
    "exec_module",
    "load_module",
    "find_module",
    "import_module",
    "rename",
    "fromfd",
    "urlopen",
    "urlretrieve",
    "NamedTemporaryFile",
    "FileHandler",
    "savez",
    // Further ways to modules, attributes and code: `os` is also reachable as the `_os` that other
    // modules of the standard library import.
    "_os",
    "_sys",
    "_shutil",
    "_io",
    "_socket",
    "_rmtree",
    "_importer",
    "_posixsubprocess",
    "_winapi",
    "_imp",
    "_thread",
    "_pyio",
    "_pickle",
    "_ctypes",
    "_subprocess",
    "_syscmd_file",
    "_syscmd_ver",
    "_NormalAccessor",
    "bltns",
    "getattr_static",
    "getmembers",
    "getmembers_static",
    "getmodule",
    "get_type_hints",
    "get_annotations",
    "eval_str",
    "ForwardRef",
    "Formatter",
    "get_field",
    "mock",
    "subprocess_exec",
    "subprocess_shell",
    "open_connection",
    "open_unix_connection",
    "create_connection",
    "sock_connect",
    "run_in_subinterp",
    "read_pickle",
    "UnsafeLoader",
    "execsitecustomize",
    "execvpe",
    "execlpe",
    "spawnvpe",
    "posix_spawnp",
    "RotatingFileHandler",
    "write_history_file",
    "tofile",
    "memmap",
];

/// Modules that run code, write or use the network, whichever of their members is used.
const FORBIDDEN_MODULES: &[&str] = &[
    "pydoc",
    "venv",
    "zipapp",
    "compileall",
    "py_compile",
    "ensurepip",
    "http",
    "xmlrpc",
    "wsgiref",
    "imaplib",
    "poplib",
    "nntplib",
    "smtpd",
    "mailbox",
    "dbm",
    "netrc",
    "cgitb",
    "cgi",
    "cmd",
    "test",
    "idlelib",
    "lib2to3",
    "turtle",
    "turtledemo",
    "tkinter",
    "curses",
    "readline",
    "rlcompleter",
    "mmap",
    "fcntl",
    "termios",
    "syslog",
    "faulthandler",
    "modulefinder",
    "msilib",
    "pipes",
    "handlers",
    "config",
    "asyncore",
    "asynchat",
];

/// Members of `os` that change nothing.
const HARMLESS_OS_NAMES: &[&str] = &[
    "path",
    "getcwd",
    "listdir",
    "scandir",
    "walk",
    "sep",
    "linesep",
    "name",
    "stat",
    "cpu_count",
    "getpid",
    "getppid",
    "getuid",
    "uname",
    "environ",
    "getenv",
    "curdir",
    "pardir",
    "extsep",
    "pathsep",
    "fspath",
    "access",
    "R_OK",
    "W_OK",
    "X_OK",
    "F_OK",
    "get_terminal_size",
    "getlogin",
    "getloadavg",
    "fsencode",
    "fsdecode",
    "devnull",
    "PathLike",
    "lstat",
    "readlink",
];

/// Methods of third-party packages that write the file named by their first argument.
const SAVE_METHODS: &[&str] = &[
    "to_csv",
    "to_json",
    "to_excel",
    "to_parquet",
    "to_pickle",
    "to_html",
    "to_feather",
    "to_hdf",
    "savefig",
    "save",
    "savetxt",
    "dump_to",
    "imwrite",
    "imsave",
    "write_html",
    "write_image",
    "write_csv",
    "write_parquet",
    "to_file",
    "tofile",
    "save_model",
    "save_pretrained",
    "to_netcdf",
    "to_markdown",
    "to_latex",
    "to_stata",
];

/// Whether the program is harmless apart from the effects that are added to `out`.
pub(super) fn analyze_python_code_effects(text: &str, out: &mut Vec<CommandEffect>) -> bool {
    // Phase 1: the whole text. A forbidden name in any place ends the analysis.
    let Some(tokens) = tokenize_code(text, "#") else {
        return false;
    };
    // Python normalizes identifiers (NFKC), so a name in other letters can be a forbidden one.
    let plain = tokens.iter().all(|token| match token {
        CodeToken::Name(name) => name.is_ascii(),
        CodeToken::Sign(c) => c.is_ascii() && *c != '`' && *c != '\0',
        _ => true,
    });
    // An escape can spell any name in a text that some function runs; few need one.
    let spelt = tokens.iter().any(
        |token| matches!(token, CodeToken::Quoted(text, _) if has_obfuscating_python_escape(text)),
    );
    if !plain || spelt || identifiers_in_code(text).any(|name| FORBIDDEN_NAMES.contains(&name)) {
        return false;
    }
    // A mangled `__import__` in a string may be handed to something that evaluates it.
    let runs = tokens.iter().any(|token| matches!(token, CodeToken::Quoted(text, _) if text.contains("__imp") || text.contains("@__")));
    if runs {
        return false;
    }
    // Phase 2: each token with its neighbours. Whatever is not recognized as harmless returns
    // false.
    let at = |at: usize| tokens.get(at);
    for (index, token) in tokens.iter().enumerate() {
        let before = index.checked_sub(1).and_then(&at);
        match token {
            CodeToken::Name("os") => {
                // `import os as x` would give the module a name that is not followed.
                let imported = matches!(
                    before,
                    Some(CodeToken::Name("import")) | Some(CodeToken::Sign(','))
                ) && !matches!(at(index + 1), Some(CodeToken::Name("as")));
                let used = at(index + 1) == Some(&CodeToken::Sign('.'))
                    && matches!(at(index + 2), Some(CodeToken::Name(name)) if HARMLESS_OS_NAMES.contains(name));
                let from = matches!(before, Some(CodeToken::Name("from")))
                    && matches!(
                        at(index + 1),
                        Some(CodeToken::Sign('.')) | Some(CodeToken::Name("import"))
                    )
                    && imports_harmless_os_names(&tokens, index);
                if !(imported || used || from) {
                    return false;
                }
            }
            CodeToken::Name(
                "open" | "TextIOWrapper" | "FileIO" | "ZipFile" | "TarFile" | "GzipFile"
                | "BZ2File" | "LZMAFile",
            ) if !matches!(before, Some(CodeToken::Name("import"))) => {
                // A definition of `open`, or a mention without a call, can stand for the function
                // later.
                let defined = matches!(before, Some(CodeToken::Name("def")));
                if defined
                    || at(index + 1) != Some(&CodeToken::Sign('('))
                    || !analyze_python_open_call(&tokens, index, out)
                {
                    return false;
                }
            }
            CodeToken::Name("replace") if before == Some(&CodeToken::Sign('.')) => {
                // `str.replace` has two arguments; `Path.replace` has one, and moves a file.
                let two = at(index + 1) == Some(&CodeToken::Sign('('))
                    && split_code_call_arguments(&tokens, index + 2).len() >= 2;
                if !two {
                    return false;
                }
            }
            CodeToken::Name("remove" | "write" | "writelines" | "rename" | "unpack_archive") => {
                let holder = index.checked_sub(2).and_then(&at);
                let method = before == Some(&CodeToken::Sign('.'));
                let screen = matches!(holder, Some(CodeToken::Name("stdout" | "stderr")));
                // `.remove` belongs to a list, as `os` is checked above; `.write` belongs to a
                // handle whose `open` was checked.
                let known =
                    matches!(token, CodeToken::Name("remove" | "write" | "writelines")) && method;
                if !(screen || known) {
                    return false;
                }
            }
            CodeToken::Name(name)
                if SAVE_METHODS.contains(name) && at(index + 1) == Some(&CodeToken::Sign('(')) =>
            {
                match split_code_call_arguments(&tokens, index + 2).first() {
                    Some([CodeToken::Quoted(path, false)]) => {
                        out.push(file_access_effect(FileAccess::Write, path))
                    }
                    // Without an argument nothing is written.
                    Some([]) | None => {}
                    Some(_) => return false,
                }
            }
            CodeToken::Name("import" | "from") => {
                // An import runs the module, which may be a file of the project.
                out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
                let line = tokens.get(index + 1..).unwrap_or(&[]).iter();
                let line = line
                    .take_while(|token| !matches!(token, CodeToken::Line | CodeToken::Sign(';')));
                // In `from x import y` only `x` is a module, except that `logging` has submodules
                // that write files or run code. `config` and `handlers` alone are common local
                // modules.
                let barred = |token: &CodeToken<'_>| matches!(token, CodeToken::Name(name) if FORBIDDEN_MODULES.contains(name));
                let own = |name: &str| matches!(name, "config" | "handlers");
                let first = matches!(at(index + 1), Some(CodeToken::Name(name)) if FORBIDDEN_MODULES.contains(name) && !own(name));
                let deep = matches!(token, CodeToken::Name("import"))
                    || at(index + 1) == Some(&CodeToken::Name("logging"));
                if first || deep && line.clone().any(barred) {
                    return false;
                }
                for token in line {
                    if let CodeToken::Name(name) = token {
                        super::add_python_module_source_files(name, out);
                    }
                }
            }
            // The file that a log or an XML tree is written to.
            CodeToken::Name("basicConfig" | "dump")
                if at(index + 1) == Some(&CodeToken::Sign('(')) =>
            {
                for piece in split_code_call_arguments(&tokens, index + 2) {
                    match piece {
                        [
                            CodeToken::Name("filename"),
                            CodeToken::Sign('='),
                            CodeToken::Quoted(path, false),
                        ] => {
                            out.push(file_access_effect(FileAccess::Write, path));
                        }
                        // `**options` could hold a file name.
                        [CodeToken::Name("filename"), ..] | [CodeToken::Sign('*'), ..] => {
                            return false;
                        }
                        _ => {}
                    }
                }
            }
            // `dir=` is where `tempfile` makes its files.
            CodeToken::Name("dir") if at(index + 1) == Some(&CodeToken::Sign('=')) => {
                match at(index + 2) {
                    Some(CodeToken::Quoted(path, false)) => {
                        out.push(file_access_effect(FileAccess::Write, path))
                    }
                    _ => return false,
                }
            }
            // A string that looks like a path counts as read, wherever it is used.
            CodeToken::Quoted(text, format) => {
                // An f-string holds expressions, which are not tokenized.
                if *format && identifiers_in_code(text).any(|name| matches!(name, "open" | "os")) {
                    return false;
                }
                if text.contains('/') || text.starts_with(['.', '~']) {
                    out.push(file_access_effect(FileAccess::Read, text));
                }
            }
            _ => {}
        }
    }
    true
}

/// Whether an escape can spell a character of a name or a path. `\x1b`, as in colours, cannot.
fn has_obfuscating_python_escape(text: &str) -> bool {
    text.match_indices("\\x").any(|(at, _)| {
        let digits = text.get(at + 2..at + 4);
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        byte.is_none_or(|byte| byte.is_ascii_graphic())
    }) || text.contains("\\u")
        || text.contains("\\U")
        || text.contains("\\N")
}

fn imports_harmless_os_names(tokens: &[CodeToken<'_>], index: usize) -> bool {
    let rest = tokens.get(index + 1..).unwrap_or(&[]);
    let line = rest
        .iter()
        .take_while(|token| !matches!(token, CodeToken::Line | CodeToken::Sign(';')));
    line.filter_map(|token| match token {
        CodeToken::Name(name) => Some(*name),
        CodeToken::Sign('*') => Some("*"),
        _ => None,
    })
    .all(|name| {
        matches!(name, "import" | "as")
            || HARMLESS_OS_NAMES.contains(&name)
            || matches!(
                name,
                "join" | "exists" | "basename" | "dirname" | "abspath" | "isfile" | "isdir"
            )
    })
}

/// Adds what a call of `open` reads or writes. Returns `false` if that is not certain.
fn analyze_python_open_call(
    tokens: &[CodeToken<'_>],
    index: usize,
    out: &mut Vec<CommandEffect>,
) -> bool {
    let arguments = split_code_call_arguments(tokens, index + 2);
    let mode = |piece: &[CodeToken<'_>]| -> Option<String> {
        let text = match piece {
            [CodeToken::Quoted(text, false)] => text,
            [
                CodeToken::Name("mode"),
                CodeToken::Sign('='),
                CodeToken::Quoted(text, false),
            ] => text,
            _ => return None,
        };
        // A text of these letters only is a mode; a file of such a name is rare.
        let is_mode =
            !text.is_empty() && text.len() <= 4 && text.chars().all(|c| "rwaxbtU+".contains(c));
        is_mode.then(|| (*text).to_owned())
    };
    // `*args`, an `opener` or a computed mode leave open what happens.
    let unclear = arguments
        .iter()
        .any(|piece| matches!(piece, [CodeToken::Sign('*'), ..]))
        || arguments.iter().any(|piece| {
            matches!(piece, [CodeToken::Name("opener"), ..])
                || matches!(piece, [CodeToken::Name("mode"), CodeToken::Sign('='), ..])
                    && mode(piece).is_none()
        });
    let method = index.checked_sub(1).and_then(|at| tokens.get(at)) == Some(&CodeToken::Sign('.'));
    let modes: Vec<String> = arguments.iter().filter_map(|piece| mode(piece)).collect();
    // A method, such as `Path.open`, has its mode first, a function has it second.
    let second_unclear = !method
        && arguments.get(1).is_some_and(|piece| {
            mode(piece).is_none()
                && !matches!(
                    piece,
                    [
                        CodeToken::Name("encoding" | "newline" | "errors" | "buffering"),
                        ..
                    ]
                )
        });
    let writes = modes.iter().any(|mode| mode.contains(['w', 'a', 'x', '+']));
    let path = match arguments.first() {
        Some([CodeToken::Quoted(path, false)])
            if !(method
                && modes.len() == 1
                && arguments.first().and_then(|piece| mode(piece)).is_some()) =>
        {
            Some(*path)
        }
        _ => None,
    };
    match (path, writes) {
        _ if unclear || second_unclear => false,
        (Some(path), true) => {
            out.push(file_access_effect(FileAccess::Write, path));
            true
        }
        // A file is written, but its name is computed.
        (None, true) => false,
        (Some(path), false) => {
            out.push(file_access_effect(FileAccess::Read, path));
            true
        }
        (None, false) => true,
    }
}
