//! Recognizes harmless one-liners of Perl, Ruby and PHP: those without a name or a sign that can
//! run code, write or hide either. Perl and Ruby have a list of what is forbidden, PHP of what is
//! allowed.

use super::file_access_effect;
use crate::effects::{CommandEffect, FileAccess};

use super::tokens::identifiers_in_code;

pub(super) const PERL_MODULES: &[&str] = &[
    "strict",
    "warnings",
    "utf8",
    "feature",
    "List::Util",
    "POSIX",
    "Data::Dumper",
    "JSON",
    "JSON::PP",
    "Time::HiRes",
    "Time::Local",
    "Scalar::Util",
    "MIME::Base64",
    "Digest::MD5",
    "Digest::SHA",
    "Encode",
    "bigint",
    "bignum",
    "Text::Wrap",
    "open",
];
pub(super) const RUBY_MODULES: &[&str] = &[
    "json",
    "yaml",
    "date",
    "time",
    "set",
    "csv",
    "digest",
    "base64",
    "securerandom",
    "bigdecimal",
    "pp",
    "psych",
    "erb",
    "uri",
    "rbconfig",
];

const PERL_FORBIDDEN_NAMES: &[&str] = &[
    "system",
    "exec",
    "qx",
    "open",
    "sysopen",
    "opendir",
    "unlink",
    "eval",
    "evalbytes",
    "require",
    "use",
    "no",
    "do",
    "syscall",
    "fork",
    "kill",
    "rename",
    "rmdir",
    "remove",
    "creat",
    "mkfifo",
    "mknod",
    "execl",
    "execle",
    "execlp",
    "execv",
    "execve",
    "execvp",
    "mkdir",
    "symlink",
    "link",
    "chmod",
    "chown",
    "chroot",
    "utime",
    "truncate",
    "socket",
    "connect",
    "bind",
    "pipe",
    "dbmopen",
    "ARGV",
    "ENV",
    "SIG",
    "INC",
    "CORE",
    "UNIVERSAL",
    "can",
    "sub",
    "goto",
    "local",
    "tie",
    "bless",
    "select",
    "readpipe",
    "dump",
    "ioctl",
    "fcntl",
    "sysread",
    "syswrite",
    "glob",
    "package",
    "import",
    "AUTOLOAD",
    "DESTROY",
    "format",
    "write",
    "IO",
    "File",
    "IPC",
    "read",
    "binmode",
    "setpgrp",
    "setpriority",
    "umask",
    "chdir",
    "unpack",
    "study",
    "prototype",
    "lock",
    "wait",
    "waitpid",
    "alarm",
];

/// Whether the Perl program is harmless.
pub(super) fn is_perl_code_harmless(text: &str, _: &mut [CommandEffect]) -> bool {
    // Signs that call a function by a computed name (`&$x`, `&{...}`, `->$x`, `*{...}`), run code
    // (backticks, `(?{`), open a pipe (`|"`), or spell characters (`\x`).
    let signs = [
        "`", "&$", "&{", "->$", "->(", "->{", "*{", "$$", "@$", "%$", "@{", "${", "(?{", "(??{",
        "|\"", "\"|", "<$", "<<", "\\x", "\\N", "$^", "=>", "%{",
    ];
    // `@{` and `${` dereference a computed name. Ordinary one-liners do without any of these, so a
    // false alarm costs one question.
    !signs.iter().any(|sign| text.contains(sign))
        && text.is_ascii()
        && !identifiers_in_code(text).any(|name| PERL_FORBIDDEN_NAMES.contains(&name))
        && !has_perl_ee_modifier(text)
}

/// Whether some word could be the modifiers of `s///ee`, which evaluates its result as code.
fn has_perl_ee_modifier(text: &str) -> bool {
    identifiers_in_code(text).any(|name| {
        // Only a short word of modifier letters counts, or ordinary names with two `e` would, too.
        name.len() <= 8
            && name.matches('e').count() > 1
            && name.chars().all(|c| "msixpodualngcer".contains(c))
    })
}

const RUBY_FORBIDDEN_NAMES: &[&str] = &[
    "system",
    "exec",
    "spawn",
    "fork",
    "open",
    "IO",
    "File",
    "Dir",
    "FileUtils",
    "Pathname",
    "Kernel",
    "Process",
    "eval",
    "instance_eval",
    "class_eval",
    "module_eval",
    "instance_exec",
    "binding",
    "send",
    "public_send",
    "__send__",
    "method",
    "instance_method",
    "define_method",
    "const_get",
    "Object",
    "ObjectSpace",
    "require_relative",
    "load",
    "autoload",
    "syscall",
    "trap",
    "at_exit",
    "Marshal",
    "YAML",
    "ERB",
    "Net",
    "Socket",
    "TCPSocket",
    "Open3",
    "PTY",
    "Thread",
    "x",
    "constantize",
    "popen",
    "popen3",
    "write",
    "unlink",
    "delete",
    "rm",
    "rm_rf",
    "test",
    "Fiddle",
    "DL",
    "RubyVM",
    "TracePoint",
    "ENV",
    "tap",
    "then",
    "to_proc",
    "unpack",
    "pack",
    "Gem",
    "Bundler",
    "ARGF",
    "Tempfile",
    "Psych",
    "Rake",
    "abort",
];

/// Whether the Ruby program is harmless; adds the files that it reads.
pub(super) fn is_ruby_code_harmless(text: &str, out: &mut Vec<CommandEffect>) -> bool {
    // Backticks and `%x` run commands, `&:name` calls a method by name, `#{}` holds code.
    let signs = ["`", "%x", "&:", "<<", "\\x", "\\u", "#{"];
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        // `require` loads a file, so only modules of the list are allowed.
        if matches!(word, "require" | "require;") || word.starts_with("require(") {
            let name = words
                .peek()
                .unwrap_or(&"")
                .trim_matches(|c: char| !c.is_ascii_alphanumeric());
            if !RUBY_MODULES.contains(&name) {
                return false;
            }
        }
    }
    // `File` and `IO` are forbidden names. Reads with a literal path are cut out first, because
    // they are common and their path is known.
    let mut rest = text.to_owned();
    for reader in ["File.read(", "File.readlines(", "IO.read(", "File.exist?("] {
        while let Some(at) = rest.find(reader) {
            let after = rest.get(at + reader.len()..).unwrap_or("");
            let Some(quote) = after.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
                return false;
            };
            let inner = after.get(1..).unwrap_or("");
            let Some(end) = inner.find(quote) else {
                return false;
            };
            let path = inner.get(..end).unwrap_or("");
            // `IO.read("|cmd")` runs the command.
            if path.starts_with('|') {
                return false;
            }
            out.push(file_access_effect(FileAccess::Read, path));
            rest.replace_range(at..at + reader.len() + end + 2, "");
        }
    }
    !signs.iter().any(|sign| rest.contains(sign))
        && rest.is_ascii()
        && !identifiers_in_code(&rest).any(|name| RUBY_FORBIDDEN_NAMES.contains(&name))
}

/// Functions that only compute or print.
const PHP_PURE_FUNCTIONS: &[&str] = &[
    "echo",
    "print",
    "printf",
    "sprintf",
    "print_r",
    "var_dump",
    "var_export",
    "phpversion",
    "php_sapi_name",
    "PHP_VERSION",
    "PHP_EOL",
    "PHP_OS",
    "PHP_INT_MAX",
    "json_encode",
    "json_decode",
    "count",
    "strlen",
    "substr",
    "strtoupper",
    "strtolower",
    "trim",
    "explode",
    "implode",
    "date",
    "time",
    "microtime",
    "round",
    "floor",
    "ceil",
    "abs",
    "max",
    "min",
    "sqrt",
    "pow",
    "range",
    "array_sum",
    "in_array",
    "is_array",
    "isset",
    "empty",
    "true",
    "false",
    "null",
    "extension_loaded",
    "function_exists",
    "class_exists",
    "memory_get_usage",
    "php_uname",
    "number_format",
    "str_repeat",
    "md5",
    "sha1",
    "hash",
    "base64_encode",
    "base64_decode",
    "urlencode",
    "urldecode",
    "intdiv",
    "foreach",
    "for",
    "if",
    "else",
    "as",
    "while",
    "return",
    "exit",
    "sys_get_temp_dir",
    "getcwd",
    "ini_get",
    "get_loaded_extensions",
    "php_ini_loaded_file",
    "strval",
    "intval",
    "strtotime",
    "mktime",
];

/// Whether the PHP program is harmless: every name outside of strings is a known pure function.
pub(super) fn is_php_code_harmless(text: &str) -> bool {
    // A variable could hold the name of a function, which PHP calls as `$f()`.
    if text.contains(['`', '$', '&']) || !text.is_ascii() {
        return false;
    }
    // Strings are data here: without variables none of their contents can be called.
    let Some(tokens) = super::tokens::tokenize_code(text, "#") else {
        return false;
    };
    // A string or an expression that is called is a function by a computed name: `"sys" . "tem"` in
    // brackets.
    tokens.windows(2).all(|pair| {
        !matches!(
            pair,
            [
                super::tokens::CodeToken::Quoted(..) | super::tokens::CodeToken::Sign(')' | ']'),
                super::tokens::CodeToken::Sign('(')
            ]
        )
    }) && tokens
        .iter()
        .all(|token| !matches!(token, super::tokens::CodeToken::Name(name) if !PHP_PURE_FUNCTIONS.contains(name)))
}
