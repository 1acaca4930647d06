//! Recognizes JavaScript programs for Node that only print, compute and read. Forbidden names,
//! escapes in strings and computed members make a program unreadable, because any of them can hide
//! a call.

use super::file_access_effect;
use super::tokens::{CodeToken, identifiers_in_code, split_code_call_arguments, tokenize_code};
use crate::effects::program_spec::NonFileEffectKind;
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::CommandWord;

/// Names that make a program unreadable, wherever they stand.
const FORBIDDEN_NAMES: &[&str] = &[
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

/// Modules that change nothing, apart from the members forbidden above.
const PURE_MODULES: &[&str] = &[
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

/// Whether the program is harmless apart from the effects that are added to `out`.
pub(super) fn analyze_javascript(text: &str, out: &mut Vec<CommandEffect>) -> bool {
    // An escape can spell any name, and a template (`${...}`) holds code in a string.
    if text.contains("\\u")
        || text.contains("\\x")
        || text.contains("${")
        || identifiers_in_code(text).any(|name| FORBIDDEN_NAMES.contains(&name))
    {
        return false;
    }
    let Some(tokens) = tokenize_code(text, "//") else {
        return false;
    };
    // Letters that look like others would pass the comparison of names.
    let plain = tokens.iter().all(|token| match token {
        CodeToken::Name(name) => name.is_ascii(),
        CodeToken::Sign(c) => c.is_ascii(),
        _ => true,
    });
    if !plain {
        return false;
    }
    for (index, token) in tokens.iter().enumerate() {
        let next = tokens.get(index + 1);
        match token {
            CodeToken::Name("require") => {
                // Only a call with one literal argument is known; `require` itself must not be
                // passed on.
                let arguments = match next {
                    Some(CodeToken::Sign('(')) => split_code_call_arguments(&tokens, index + 2),
                    Some(CodeToken::Sign('.'))
                        if matches!(tokens.get(index + 2), Some(CodeToken::Name("resolve"))) =>
                    {
                        continue;
                    }
                    _ => return false,
                };
                let [[CodeToken::Quoted(name, false)]] = arguments.as_slice() else {
                    return false;
                };
                if !uses_js_module_by_named_members_only(&tokens, index) {
                    return false;
                }
                let name = name.strip_prefix("node:").unwrap_or(name);
                // A module by its absolute path may lie outside of the project.
                if name.starts_with(['/', '~']) {
                    return false;
                }
                if name.ends_with(".json") {
                    out.push(file_access_effect(FileAccess::Read, name));
                } else if !PURE_MODULES.contains(&name) {
                    // A package, or a file of the project.
                    out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
                    let folder = if name.starts_with('.') {
                        ""
                    } else {
                        "node_modules/"
                    };
                    // Node adds an extension, or takes a folder with an index file.
                    let ends = ["", ".*", "/*"].map(|end| format!("{folder}{name}{end}"));
                    out.extend(ends.map(|path| {
                        CommandEffect::StartsFile(CommandWord::new_literal_word(path))
                    }));
                }
            }
            // `x[y]` could be any member, a forbidden one among them.
            CodeToken::Sign('[') => {
                let member = matches!(
                    index.checked_sub(1).and_then(|at| tokens.get(at)),
                    Some(
                        CodeToken::Name(_)
                            | CodeToken::Sign(')' | ']' | '}')
                            | CodeToken::Quoted(..)
                    )
                );
                let computed = matches!(
                    index.checked_sub(1).and_then(|at| tokens.get(at)),
                    Some(CodeToken::Sign('{' | ','))
                ) && is_computed_js_key(&tokens, index);
                if computed {
                    return false;
                }
                // An index that is a literal, or a usual name of a loop variable, names no hidden
                // function.
                let fixed = matches!(
                    (next, tokens.get(index + 2)),
                    (
                        Some(CodeToken::Number | CodeToken::Quoted(_, false)),
                        Some(CodeToken::Sign(']'))
                    )
                ) || matches!(
                    (next, tokens.get(index + 2)),
                    (
                        Some(CodeToken::Name("i" | "k" | "key" | "n" | "j")),
                        Some(CodeToken::Sign(']'))
                    )
                ) && is_harmless_js_index_access(&tokens, index);
                if member && !fixed {
                    return false;
                }
            }
            CodeToken::Quoted(text, _) if text.contains('/') || text.starts_with(['.', '~']) => {
                out.push(file_access_effect(FileAccess::Read, text))
            }
            _ => {}
        }
    }
    true
}

/// Whether this is a computed key, `{[x]: y}`, which can take any member.
fn is_computed_js_key(tokens: &[CodeToken<'_>], at: usize) -> bool {
    let rest = tokens.get(at..).unwrap_or(&[]);
    let end = rest.iter().position(|token| *token == CodeToken::Sign(']'));
    end.is_some_and(|end| rest.get(end + 1) == Some(&CodeToken::Sign(':')))
}

/// Whether `x[k]` is only shown or counted, neither called nor kept, in a program that requires no
/// module with dangerous members.
fn is_harmless_js_index_access(tokens: &[CodeToken<'_>], at: usize) -> bool {
    let holder = at.checked_sub(1).and_then(|at| tokens.get(at));
    let before = at.checked_sub(2).and_then(|at| tokens.get(at));
    let behind = tokens.get(at + 3);
    let acts = |token: &CodeToken<'_>| {
        matches!(
            token,
            CodeToken::Quoted("fs" | "node:fs" | "os" | "module", _)
        )
    };
    matches!(holder, Some(CodeToken::Name(name)) if !matches!(*name, "process" | "module" | "exports" | "this" | "require" | "console"))
        && !matches!(before, Some(CodeToken::Sign('=' | '.')))
        && !matches!(behind, Some(CodeToken::Sign('(' | '[' | '.' | '`')))
        && !tokens.iter().any(acts)
}

/// Whether the module that `require` returns is only used through named members: `require(x).y`,
/// `{y} = require(x)`, or `m = require(x)` where every `m` is followed by a dot.
fn uses_js_module_by_named_members_only(tokens: &[CodeToken<'_>], at: usize) -> bool {
    let end = tokens
        .get(at..)
        .and_then(|rest| rest.iter().position(|token| *token == CodeToken::Sign(')')));
    let behind = end.and_then(|end| tokens.get(at + end + 1));
    if behind == Some(&CodeToken::Sign('.')) {
        return true;
    }
    // Passed on as a whole, the module could be searched for members by computed names.
    let [held, equals] = [2, 1].map(|back| at.checked_sub(back).and_then(|at| tokens.get(at)));
    let data =
        matches!(tokens.get(at + 2), Some(CodeToken::Quoted(name, _)) if name.ends_with(".json"));
    match (held, equals) {
        (Some(CodeToken::Sign('}')), Some(CodeToken::Sign('='))) => true,
        (Some(CodeToken::Name(held)), Some(CodeToken::Sign('='))) if !data => {
            let loose = |pair: &[CodeToken<'_>]| matches!(pair, [CodeToken::Name(name), next] if name == held && !matches!(next, CodeToken::Sign('.' | '=' | '(')));
            !tokens.windows(2).any(loose)
        }
        // Elsewhere the module may be printed. Data and most modules give nothing away.
        _ => {
            data || !matches!(
                tokens.get(at + 2),
                Some(CodeToken::Quoted("fs" | "node:fs" | "os" | "module", _))
            )
        }
    }
}
