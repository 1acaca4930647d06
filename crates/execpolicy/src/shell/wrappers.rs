//! The table of programs that run what their arguments say, one entry each. The options are those
//! of GNU, BusyBox and util-linux.

use super::wrapper_options::{NO_OPTIONS, WrapperOptionsSpec};

/// How a program runs other code.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WrapperKind {
    /// `PROGRAM [options] [operands] COMMAND...`
    Runs(WrapperOptionsSpec),
    /// As `Runs`, but the words are joined and read by a shell: `watch`.
    RunsText(WrapperOptionsSpec),
    /// A shell: `-c TEXT`, a file, or commands on standard input.
    Shell,
    /// `eval WORDS...`
    Eval,
    /// `trap TEXT SIGNAL...`
    Trap,
    /// `. FILE`
    Source,
    /// `alias NAME=TEXT...`
    Alias,
    /// `find ... -exec COMMAND ;`
    Find,
    /// `env`, which also splits a text with `-S`.
    Env,
    /// `xargs`, which adds words that only its input knows.
    Xargs,
    /// `PROGRAM [operands] -c TEXT` (`su`, `script`), or commands on standard input.
    TextOption,
    /// `ssh HOST WORDS...`: joined, and read by a shell there.
    Ssh,
    /// An interpreter, by the letters and long names whose value is a program.
    Inline(&'static str, &'static [&'static str]),
    /// `awk PROGRAM`, where only `system` and pipes run anything.
    Awk,
    /// Reads commands from standard input only: `at`.
    Queue,
    /// Checkrein itself: `run -- COMMAND...`, `mcp-proxy -- COMMAND...`.
    Checkrein,
}

const SUDO: WrapperOptionsSpec = WrapperOptionsSpec {
    flags: "AbBEeHikKnNPSsvV",
    values: "CDghpRrTtUu",
    long_flags: &[
        "askpass",
        "background",
        "bell",
        "preserve-env",
        "edit",
        "set-home",
        "login",
        "reset-timestamp",
        "non-interactive",
        "preserve-groups",
        "stdin",
        "shell",
    ],
    long_values: &[
        "close-from",
        "chdir",
        "group",
        "host",
        "prompt",
        "chroot",
        "role",
        "type",
        "command-timeout",
        "other-user",
        "user",
    ],
    assignments: true,
    ..NO_OPTIONS
};

/// Returns how `name`, a program without its folder, runs other code.
pub(crate) fn wrapper_kind(name: &str) -> Option<WrapperKind> {
    use WrapperKind::*;
    Some(match name {
        "sh" | "bash" | "zsh" | "dash" | "ash" | "ksh" | "mksh" | "rbash" | "fish" => Shell,
        "eval" => Eval,
        "trap" => Trap,
        "." | "source" => Source,
        "alias" => Alias,
        "find" | "gfind" | "fd" | "fdfind" => Find,
        "env" | "genv" => Env,
        "xargs" | "gxargs" => Xargs,
        "ssh" => Ssh,
        "su" | "runuser" | "script" | "sg" => TextOption,
        "at" | "batch" => Queue,
        "checkrein" => Checkrein,
        "awk" | "gawk" | "mawk" | "nawk" => Awk,
        "python" | "pypy" => Inline("c", &[]),
        "perl" => Inline("eE", &[]),
        "ruby" | "lua" | "luajit" | "osascript" | "Rscript" => Inline("e", &[]),
        "node" | "nodejs" | "bun" => Inline("ep", &["eval", "print"]),
        "php" => Inline("rBRE", &["run"]),
        "sudo" => Runs(SUDO),
        "doas" => Runs(WrapperOptionsSpec {
            flags: "Lns",
            values: "aCu",
            ..NO_OPTIONS
        }),
        "nohup" | "builtin" | "coproc" | "noglob" | "nocorrect" | "eatmydata" | "busybox"
        | "toybox" | "-" => Runs(NO_OPTIONS),
        // The grammar takes some keywords for commands: `time { a; }`, `! { a; }`.
        "{" | "}" | "!" | "if" | "then" | "elif" | "else" | "do" | "while" | "until" | "fi"
        | "done" | "esac" => Runs(NO_OPTIONS),
        // `command -v` only prints where a program is.
        "command" => Runs(WrapperOptionsSpec {
            flags: "p",
            inert: &["v", "V"],
            ..NO_OPTIONS
        }),
        "exec" => Runs(WrapperOptionsSpec {
            flags: "cl",
            values: "a",
            ..NO_OPTIONS
        }),
        "nice" => Runs(WrapperOptionsSpec {
            flags: "0123456789-",
            values: "n",
            long_values: &["adjustment"],
            ..NO_OPTIONS
        }),
        "time" | "gtime" => Runs(WrapperOptionsSpec {
            flags: "apvqV",
            values: "fo",
            long_flags: &["append", "portability", "verbose", "quiet"],
            long_values: &["format", "output"],
            ..NO_OPTIONS
        }),
        "timeout" | "gtimeout" => Runs(WrapperOptionsSpec {
            flags: "vfp",
            values: "ks",
            long_flags: &["foreground", "preserve-status", "verbose"],
            long_values: &["kill-after", "signal"],
            operands: 1,
            ..NO_OPTIONS
        }),
        "stdbuf" | "gstdbuf" => Runs(WrapperOptionsSpec {
            values: "ioe",
            long_values: &["input", "output", "error"],
            ..NO_OPTIONS
        }),
        "setsid" => Runs(WrapperOptionsSpec {
            flags: "cfw",
            long_flags: &["ctty", "fork", "wait"],
            ..NO_OPTIONS
        }),
        // With `-p` it changes a process that runs already.
        "ionice" => Runs(WrapperOptionsSpec {
            flags: "t",
            values: "cn",
            inert: &["p", "pid"],
            long_flags: &["ignore"],
            long_values: &["class", "classdata"],
            ..NO_OPTIONS
        }),
        "chrt" => Runs(WrapperOptionsSpec {
            flags: "abdfiorRv",
            values: "TPD",
            inert: &["p", "m"],
            operands: 1,
            ..NO_OPTIONS
        }),
        "taskset" => Runs(WrapperOptionsSpec {
            flags: "ac",
            inert: &["p", "pid"],
            long_flags: &["all-tasks", "cpu-list"],
            operands: 1,
            ..NO_OPTIONS
        }),
        "chroot" => Runs(WrapperOptionsSpec {
            long_flags: &["skip-chdir"],
            long_values: &["groups", "userspec"],
            operands: 1,
            ..NO_OPTIONS
        }),
        "setarch" | "linux32" | "linux64" => Runs(WrapperOptionsSpec {
            flags: "RvBFILSTXZ3",
            ..NO_OPTIONS
        }),
        "unshare" => Runs(WrapperOptionsSpec {
            flags: "cfimnpruCUT",
            values: "RSGw",
            long_flags: &[
                "fork",
                "ipc",
                "mount",
                "net",
                "pid",
                "map-root-user",
                "map-current-user",
                "uts",
                "user",
                "cgroup",
                "mount-proc",
            ],
            long_values: &["root", "wd", "setuid", "setgid", "propagation"],
            ..NO_OPTIONS
        }),
        "strace" | "ltrace" => Runs(WrapperOptionsSpec {
            flags: "cCdfFhiknqrStTvVwxyYZz",
            values: "abeEIoOpPsuUX",
            ..NO_OPTIONS
        }),
        "fakeroot" => Runs(WrapperOptionsSpec {
            flags: "uhv",
            values: "lsifb",
            ..NO_OPTIONS
        }),
        "caffeinate" => Runs(WrapperOptionsSpec {
            flags: "disum",
            values: "tw",
            ..NO_OPTIONS
        }),
        "pkexec" => Runs(WrapperOptionsSpec {
            long_values: &["user"],
            long_flags: &["keep-cwd"],
            ..NO_OPTIONS
        }),
        "systemd-run" => Runs(WrapperOptionsSpec {
            flags: "dGPqrSt",
            values: "EHMpu",
            long_flags: &[
                "user", "scope", "pty", "pipe", "wait", "quiet", "collect", "no-block",
            ],
            long_values: &[
                "unit",
                "property",
                "uid",
                "gid",
                "setenv",
                "slice",
                "description",
                "working-directory",
            ],
            ..NO_OPTIONS
        }),
        // `flock FILE -c TEXT`: `-c` is a flag here, and `nested_code` reads the text after it.
        "flock" => Runs(WrapperOptionsSpec {
            flags: "censuxoF",
            values: "wE",
            long_flags: &[
                "close",
                "command",
                "exclusive",
                "nonblock",
                "nb",
                "shared",
                "unlock",
                "verbose",
                "no-fork",
            ],
            long_values: &["timeout", "wait", "conflict-exit-code"],
            operands: 1,
            ..NO_OPTIONS
        }),
        "watch" => RunsText(WrapperOptionsSpec {
            flags: "bcCdegprtwx",
            values: "nq",
            long_flags: &[
                "beep",
                "color",
                "no-color",
                "differences",
                "errexit",
                "chgexit",
                "precise",
                "no-title",
                "no-wrap",
                "exec",
            ],
            long_values: &["interval", "equexit"],
            ..NO_OPTIONS
        }),
        "parallel" => RunsText(WrapperOptionsSpec {
            flags: "kmnqtuvX0",
            values: "aCdEIjLNSP",
            long_flags: &[
                "keep-order",
                "dry-run",
                "bar",
                "verbose",
                "null",
                "pipe",
                "xargs",
            ],
            long_values: &[
                "jobs",
                "arg-file",
                "colsep",
                "delimiter",
                "max-args",
                "joblog",
                "delay",
            ],
            ..NO_OPTIONS
        }),
        _ => {
            // `python3.12`, `lua5.4`: the number is not part of the name.
            let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            return (plain != name && !plain.is_empty())
                .then(|| wrapper_kind(plain))
                .flatten();
        }
    })
}

/// `env`, without `-S`.
pub(crate) const ENV: WrapperOptionsSpec = WrapperOptionsSpec {
    flags: "i0v",
    values: "uCS",
    long_flags: &[
        "ignore-environment",
        "null",
        "debug",
        "block-signal",
        "default-signal",
    ],
    long_values: &["unset", "chdir", "split-string"],
    assignments: true,
    ..NO_OPTIONS
};

/// `xargs`.
pub(crate) const XARGS: WrapperOptionsSpec = WrapperOptionsSpec {
    flags: "0oprtx",
    values: "adEILnPRsJS",
    attached: "eil",
    long_flags: &[
        "null",
        "open-tty",
        "interactive",
        "no-run-if-empty",
        "verbose",
        "exit",
        "replace",
        "max-lines",
        "eof",
        "show-limits",
    ],
    long_values: &[
        "arg-file",
        "delimiter",
        "max-args",
        "max-procs",
        "max-chars",
        "process-slot-var",
    ],
    ..NO_OPTIONS
};

/// `ssh`.
pub(crate) const SSH: WrapperOptionsSpec = WrapperOptionsSpec {
    flags: "46AaCfGgKkMNnqsTtVvXxYy",
    values: "BbcDEeFIiJLlmOopPQRSWw",
    operands: 1,
    ..NO_OPTIONS
};
