//! JavaScript that prints and reads.

use super::file;
use super::text::{Token, arguments, names, tokens};
use crate::effects::row::Deed;
use crate::effects::{Act, Effect};
use crate::shell::Word;

/// Names that make a program unreadable, wherever they stand.
const NOT: &[&str] = &[
    "eval",
    "Function",
    "constructor",
    "prototype",
    "__proto__",
    "globalThis",
    "global",
    "window",
    "self",
    "Reflect",
    "Proxy",
    "mainModule",
    "binding",
    "_linkedBinding",
    "dlopen",
    "getBuiltinModule",
    "createRequire",
    "Module",
    "_load",
    "_compile",
    "runInThisContext",
    "runInNewContext",
    "runInContext",
    "Script",
    "vm",
    "Worker",
    "worker_threads",
    "cluster",
    "inspector",
    "repl",
    "child_process",
    "spawn",
    "spawnSync",
    "execSync",
    "execFile",
    "execFileSync",
    "fork",
    "kill",
    "abort",
    "net",
    "dgram",
    "tls",
    "http",
    "https",
    "http2",
    "fetch",
    "WebSocket",
    "XMLHttpRequest",
    "axios",
    "request",
    "got",
    "undici",
    "writeFile",
    "writeFileSync",
    "appendFile",
    "appendFileSync",
    "createWriteStream",
    "unlink",
    "unlinkSync",
    "rm",
    "rmSync",
    "rmdir",
    "rmdirSync",
    "rename",
    "renameSync",
    "copyFile",
    "copyFileSync",
    "cp",
    "cpSync",
    "mkdir",
    "mkdirSync",
    "mkdtemp",
    "mkdtempSync",
    "symlink",
    "symlinkSync",
    "link",
    "linkSync",
    "chmod",
    "chmodSync",
    "chown",
    "chownSync",
    "truncate",
    "truncateSync",
    "ftruncate",
    "openSync",
    "open",
    "writeSync",
    "writev",
    "utimes",
    "utimesSync",
    "setuid",
    "setgid",
    "chroot",
    "chdir",
    "Deno",
    "Bun",
    "zx",
    "shelljs",
    "execa",
    "fs-extra",
    "rimraf",
    "del",
    "import",
    "with",
    "dotenv",
    "promises",
];

/// Modules that only compute or look.
const MODULES: &[&str] = &[
    "fs",
    "path",
    "os",
    "util",
    "url",
    "querystring",
    "crypto",
    "assert",
    "events",
    "stream",
    "buffer",
    "string_decoder",
    "zlib",
    "punycode",
    "perf_hooks",
    "timers",
    "readline",
];

/// Whether all of it is harmless but for what is put into `out`.
pub(super) fn read(text: &str, out: &mut Vec<Effect>) -> bool {
    // An escape can spell any name, a regex can hold a quote.
    if text.contains("\\u")
        || text.contains("\\x")
        || text.contains("${")
        || names(text).any(|name| NOT.contains(&name))
    {
        return false;
    }
    let Some(tokens) = tokens(text, "//") else {
        return false;
    };
    let plain = tokens.iter().all(|token| match token {
        Token::Name(name) => name.is_ascii(),
        Token::Sign(c) => c.is_ascii(),
        _ => true,
    });
    if !plain {
        return false;
    }
    for (index, token) in tokens.iter().enumerate() {
        let next = tokens.get(index + 1);
        match token {
            Token::Name("require") => {
                let arguments = match next {
                    Some(Token::Sign('(')) => arguments(&tokens, index + 2),
                    Some(Token::Sign('.'))
                        if matches!(tokens.get(index + 2), Some(Token::Name("resolve"))) =>
                    {
                        continue;
                    }
                    _ => return false,
                };
                let [[Token::Quoted(name, false)]] = arguments.as_slice() else {
                    return false;
                };
                if !is_plain_use(&tokens, index) {
                    return false;
                }
                let name = name.strip_prefix("node:").unwrap_or(name);
                if name.starts_with(['/', '~']) {
                    return false;
                }
                if name.ends_with(".json") {
                    out.push(file(Act::Read, name));
                } else if !MODULES.contains(&name) {
                    // A package, or a file of the project.
                    out.push(Effect::Deed(Deed::Opaque));
                    let folder = if name.starts_with('.') {
                        ""
                    } else {
                        "node_modules/"
                    };
                    let ends = ["", ".*", "/*"].map(|end| format!("{folder}{name}{end}"));
                    out.extend(ends.map(|path| Effect::Starts(Word::fixed(path))));
                }
            }
            // `x[y]` could be any member.
            Token::Sign('[') => {
                let member = matches!(
                    index.checked_sub(1).and_then(|at| tokens.get(at)),
                    Some(Token::Name(_) | Token::Sign(')' | ']' | '}') | Token::Quoted(..))
                );
                let computed = matches!(
                    index.checked_sub(1).and_then(|at| tokens.get(at)),
                    Some(Token::Sign('{' | ','))
                ) && computes_name(&tokens, index);
                if computed {
                    return false;
                }
                let fixed = matches!(
                    (next, tokens.get(index + 2)),
                    (
                        Some(Token::Number | Token::Quoted(_, false)),
                        Some(Token::Sign(']'))
                    )
                ) || matches!(
                    (next, tokens.get(index + 2)),
                    (
                        Some(Token::Name("i" | "k" | "key" | "n" | "j")),
                        Some(Token::Sign(']'))
                    )
                ) && only_looked_up(&tokens, index);
                if member && !fixed {
                    return false;
                }
            }
            Token::Quoted(text, _) if text.contains('/') || text.starts_with(['.', '~']) => {
                out.push(file(Act::Read, text))
            }
            _ => {}
        }
    }
    true
}

/// Whether `{[x]: y}` takes a member whose name is made.
fn computes_name(tokens: &[Token<'_>], at: usize) -> bool {
    let rest = tokens.get(at..).unwrap_or(&[]);
    let end = rest.iter().position(|token| *token == Token::Sign(']'));
    end.is_some_and(|end| rest.get(end + 1) == Some(&Token::Sign(':')))
}

/// Whether `x[k]` is shown or counted and neither called nor kept, and nothing here is a module
/// with members that act.
fn only_looked_up(tokens: &[Token<'_>], at: usize) -> bool {
    let holder = at.checked_sub(1).and_then(|at| tokens.get(at));
    let before = at.checked_sub(2).and_then(|at| tokens.get(at));
    let behind = tokens.get(at + 3);
    let acts =
        |token: &Token<'_>| matches!(token, Token::Quoted("fs" | "node:fs" | "os" | "module", _));
    matches!(holder, Some(Token::Name(name)) if !matches!(*name, "process" | "module" | "exports" | "this" | "require" | "console"))
        && !matches!(before, Some(Token::Sign('=' | '.')))
        && !matches!(behind, Some(Token::Sign('(' | '[' | '.' | '`')))
        && !tokens.iter().any(acts)
}

/// Whether what `require` brings is only ever used by the names of its members: `require(x).y`,
/// `{y} = require(x)`, or `m = require(x)` where `m` stands nowhere without a dot behind it.
fn is_plain_use(tokens: &[Token<'_>], at: usize) -> bool {
    let end = tokens
        .get(at..)
        .and_then(|rest| rest.iter().position(|token| *token == Token::Sign(')')));
    let behind = end.and_then(|end| tokens.get(at + end + 1));
    if behind == Some(&Token::Sign('.')) {
        return true;
    }
    let [held, equals] = [2, 1].map(|back| at.checked_sub(back).and_then(|at| tokens.get(at)));
    let data =
        matches!(tokens.get(at + 2), Some(Token::Quoted(name, _)) if name.ends_with(".json"));
    match (held, equals) {
        (Some(Token::Sign('}')), Some(Token::Sign('='))) => true,
        (Some(Token::Name(held)), Some(Token::Sign('='))) if !data => {
            let loose = |pair: &[Token<'_>]| matches!(pair, [Token::Name(name), next] if name == held && !matches!(next, Token::Sign('.' | '=' | '(')));
            !tokens.windows(2).any(loose)
        }
        // It may be shown.
        _ => {
            data || !matches!(
                tokens.get(at + 2),
                Some(Token::Quoted("fs" | "node:fs" | "os" | "module", _))
            )
        }
    }
}
