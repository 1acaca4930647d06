//! Python that prints, counts and reads. Names that run, write or hide are not allowed anywhere,
//! texts included, so that no text can be made into a program unseen.

use super::file;
use super::text::{Token, arguments, names, tokens};
use crate::effects::row::Deed;
use crate::effects::{Act, Effect};

/// Names that make a program unreadable, wherever they stand.
const NOT: &[&str] = &[
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
    // Other ways to members and to code.
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

/// Modules that run, write or reach others, whatever of them is used.
const MODULES: &[&str] = &[
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

/// What of `os` only looks.
const OS: &[&str] = &[
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

/// Methods of other people's packages that write to where their first argument says.
const SAVES: &[&str] = &[
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

/// Whether all of it is harmless but for what is put into `out`.
pub(super) fn read(text: &str, out: &mut Vec<Effect>) -> bool {
    let Some(tokens) = tokens(text, "#") else {
        return false;
    };
    // Other alphabets fold into ours in names.
    let plain = tokens.iter().all(|token| match token {
        Token::Name(name) => name.is_ascii(),
        Token::Sign(c) => c.is_ascii() && *c != '`' && *c != '\0',
        _ => true,
    });
    // An escape can spell any name in a text that some function runs; few need one.
    let spelt = tokens
        .iter()
        .any(|token| matches!(token, Token::Quoted(text, _) if spells(text)));
    if !plain || spelt || names(text).any(|name| NOT.contains(&name)) {
        return false;
    }
    let runs = tokens.iter().any(|token| matches!(token, Token::Quoted(text, _) if text.contains("__imp") || text.contains("@__")));
    if runs {
        return false;
    }
    let at = |at: usize| tokens.get(at);
    for (index, token) in tokens.iter().enumerate() {
        let before = index.checked_sub(1).and_then(&at);
        match token {
            Token::Name("os") => {
                let imported =
                    matches!(before, Some(Token::Name("import")) | Some(Token::Sign(',')))
                        && !matches!(at(index + 1), Some(Token::Name("as")));
                let used = at(index + 1) == Some(&Token::Sign('.'))
                    && matches!(at(index + 2), Some(Token::Name(name)) if OS.contains(name));
                let from = matches!(before, Some(Token::Name("from")))
                    && matches!(
                        at(index + 1),
                        Some(Token::Sign('.')) | Some(Token::Name("import"))
                    )
                    && from_os(&tokens, index);
                if !(imported || used || from) {
                    return false;
                }
            }
            Token::Name(
                "open" | "TextIOWrapper" | "FileIO" | "ZipFile" | "TarFile" | "GzipFile"
                | "BZ2File" | "LZMAFile",
            ) if !matches!(before, Some(Token::Name("import"))) => {
                let defined = matches!(before, Some(Token::Name("def")));
                if defined
                    || at(index + 1) != Some(&Token::Sign('('))
                    || !opened(&tokens, index, out)
                {
                    return false;
                }
            }
            Token::Name("replace") if before == Some(&Token::Sign('.')) => {
                // That of a text has two arguments, that of a file one.
                let two = at(index + 1) == Some(&Token::Sign('('))
                    && arguments(&tokens, index + 2).len() >= 2;
                if !two {
                    return false;
                }
            }
            Token::Name("remove" | "write" | "writelines" | "rename" | "unpack_archive") => {
                let holder = index.checked_sub(2).and_then(&at);
                let method = before == Some(&Token::Sign('.'));
                let screen = matches!(holder, Some(Token::Name("stdout" | "stderr")));
                // `.remove` of a list, and of a handle that `open` was asked about.
                let known =
                    matches!(token, Token::Name("remove" | "write" | "writelines")) && method;
                if !(screen || known) {
                    return false;
                }
            }
            Token::Name(name)
                if SAVES.contains(name) && at(index + 1) == Some(&Token::Sign('(')) =>
            {
                match arguments(&tokens, index + 2).first() {
                    Some([Token::Quoted(path, false)]) => out.push(file(Act::Write, path)),
                    Some([]) | None => {}
                    Some(_) => return false,
                }
            }
            Token::Name("import" | "from") => {
                out.push(Effect::Deed(Deed::Opaque));
                let line = tokens.get(index + 1..).unwrap_or(&[]).iter();
                let line =
                    line.take_while(|token| !matches!(token, Token::Line | Token::Sign(';')));
                // Of `from x import y`, `y` is a name of theirs.
                let barred = |token: &Token<'_>| matches!(token, Token::Name(name) if MODULES.contains(name));
                let own = |name: &str| matches!(name, "config" | "handlers");
                let first = matches!(at(index + 1), Some(Token::Name(name)) if MODULES.contains(name) && !own(name));
                let deep = matches!(token, Token::Name("import"))
                    || at(index + 1) == Some(&Token::Name("logging"));
                if first || deep && line.clone().any(barred) {
                    return false;
                }
                for token in line {
                    if let Token::Name(name) = token {
                        super::imports(name, out);
                    }
                }
            }
            // Where a log, or a tree of XML, goes.
            Token::Name("basicConfig" | "dump") if at(index + 1) == Some(&Token::Sign('(')) => {
                for piece in arguments(&tokens, index + 2) {
                    match piece {
                        [
                            Token::Name("filename"),
                            Token::Sign('='),
                            Token::Quoted(path, false),
                        ] => {
                            out.push(file(Act::Write, path));
                        }
                        [Token::Name("filename"), ..] | [Token::Sign('*'), ..] => return false,
                        _ => {}
                    }
                }
            }
            // Where it makes files of its own.
            Token::Name("dir") if at(index + 1) == Some(&Token::Sign('=')) => match at(index + 2) {
                Some(Token::Quoted(path, false)) => out.push(file(Act::Write, path)),
                _ => return false,
            },
            // What looks like a path may be read somewhere.
            Token::Quoted(text, format) => {
                if *format && names(text).any(|name| matches!(name, "open" | "os")) {
                    return false;
                }
                if text.contains('/') || text.starts_with(['.', '~']) {
                    out.push(file(Act::Read, text));
                }
            }
            _ => {}
        }
    }
    true
}

/// Whether an escape in a text can stand for a character of a name or of a path.
fn spells(text: &str) -> bool {
    text.match_indices("\\x").any(|(at, _)| {
        let digits = text.get(at + 2..at + 4);
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        byte.is_none_or(|byte| byte.is_ascii_graphic())
    }) || text.contains("\\u")
        || text.contains("\\U")
        || text.contains("\\N")
}

fn from_os(tokens: &[Token<'_>], index: usize) -> bool {
    let rest = tokens.get(index + 1..).unwrap_or(&[]);
    let line = rest
        .iter()
        .take_while(|token| !matches!(token, Token::Line | Token::Sign(';')));
    line.filter_map(|token| match token {
        Token::Name(name) => Some(*name),
        Token::Sign('*') => Some("*"),
        _ => None,
    })
    .all(|name| {
        matches!(name, "import" | "as")
            || OS.contains(&name)
            || matches!(
                name,
                "join" | "exists" | "basename" | "dirname" | "abspath" | "isfile" | "isdir"
            )
    })
}

/// A call of `open`: what is read or written.
fn opened(tokens: &[Token<'_>], index: usize, out: &mut Vec<Effect>) -> bool {
    let arguments = arguments(tokens, index + 2);
    let mode = |piece: &[Token<'_>]| -> Option<String> {
        let text = match piece {
            [Token::Quoted(text, false)] => text,
            [
                Token::Name("mode"),
                Token::Sign('='),
                Token::Quoted(text, false),
            ] => text,
            _ => return None,
        };
        let is_mode =
            !text.is_empty() && text.len() <= 4 && text.chars().all(|c| "rwaxbtU+".contains(c));
        is_mode.then(|| (*text).to_owned())
    };
    let unclear = arguments
        .iter()
        .any(|piece| matches!(piece, [Token::Sign('*'), ..]))
        || arguments.iter().any(|piece| {
            matches!(piece, [Token::Name("opener"), ..])
                || matches!(piece, [Token::Name("mode"), Token::Sign('='), ..])
                    && mode(piece).is_none()
        });
    let method = index.checked_sub(1).and_then(|at| tokens.get(at)) == Some(&Token::Sign('.'));
    let modes: Vec<String> = arguments.iter().filter_map(|piece| mode(piece)).collect();
    let second_unclear = !method
        && arguments.get(1).is_some_and(|piece| {
            mode(piece).is_none()
                && !matches!(
                    piece,
                    [
                        Token::Name("encoding" | "newline" | "errors" | "buffering"),
                        ..
                    ]
                )
        });
    let writes = modes.iter().any(|mode| mode.contains(['w', 'a', 'x', '+']));
    let path = match arguments.first() {
        Some([Token::Quoted(path, false)])
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
            out.push(file(Act::Write, path));
            true
        }
        (None, true) => false,
        (Some(path), false) => {
            out.push(file(Act::Read, path));
            true
        }
        (None, false) => true,
    }
}
