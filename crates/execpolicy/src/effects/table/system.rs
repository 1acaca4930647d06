//! The machine: rights, services, processes, disks, schedules.

use crate::effects::Act;
use crate::effects::Effect;
use crate::effects::call::Call;
use crate::effects::row::{Deed, On, Row};
use crate::shell::{Known, Word};

const MACHINE: &[Deed] = &[Deed::Machine];

pub(super) const ROWS: &[Row] = &[
    Row::does(
        &[
            "sudo",
            "su",
            "doas",
            "pkexec",
            "runuser",
            "sg",
            "newgrp",
            "gosu",
            "su-exec",
            "setpriv",
            "capsh",
            "run0",
            "chroot",
            "unshare",
            "nsenter",
            "machinectl",
            "bwrap",
            "firejail",
            "proot",
        ],
        &[Deed::Privilege],
    )
    .more(asks_sudo),
    Row::does(
        &[
            "passwd",
            "chpasswd",
            "useradd",
            "usermod",
            "adduser",
            "groupadd",
            "groupmod",
            "groupdel",
            "addgroup",
            "gpasswd",
            "visudo",
            "vipw",
            "chsh",
            "chfn",
            "dscl",
            "sysadminctl",
            "chage",
            "newusers",
            "loginctl",
            "polkit",
            "aa-disable",
            "setenforce",
            "spctl",
            "csrutil",
            "tccutil",
            "authconfig",
        ],
        &[Deed::Privilege],
    ),
    Row::does(&["userdel", "deluser"], &[Deed::Privilege])
        .values("RP")
        .more(removes_user),
    Row::of(&[
        "ps",
        "top",
        "htop",
        "btop",
        "atop",
        "pgrep",
        "pidof",
        "pstree",
        "lsof",
        "uptime",
        "free",
        "vmstat",
        "iostat",
        "mpstat",
        "pidstat",
        "sar",
        "dstat",
        "nmon",
        "glances",
        "lscpu",
        "lsmem",
        "lsblk",
        "lspci",
        "lsusb",
        "lsmod",
        "lshw",
        "dmidecode",
        "hwinfo",
        "inxi",
        "neofetch",
        "fastfetch",
        "nvidia-smi",
        "rocm-smi",
        "nvtop",
        "sensors",
        "ipcs",
        "lsns",
        "lslocks",
        "lslogins",
        "blkid",
        "findmnt",
        "netstat",
        "lsipc",
        "system_profiler",
        "ioreg",
        "vm_stat",
        "pmap",
        "slabtop",
        "iotop",
        "powertop",
        "cpuid",
        "getenforce",
        "sestatus",
        "runlevel",
    ]),
    Row::of(&["ss"]).on(&[
        ("K", On::Does(Deed::Machine)),
        ("kill", On::Does(Deed::Machine)),
        ("D", On::Writes),
    ]),
    Row::of(&["tshark", "tcpdump", "capinfos", "editcap"]).more(captures),
    Row::of(&["printenv"]),
    Row::of(&["kill"]).more(kill),
    Row::of(&[
        "pkill",
        "killall",
        "killall5",
        "skill",
        "xkill",
        "fuser",
        "kill-port",
        "fkill",
    ])
    .more(pkill),
    Row::of(&[
        "renice",
        "prlimit",
        "numactl",
        "cpulimit",
        "schedtool",
        "choom",
    ])
    .more(runs_rest),
    Row::of(&[
        "systemctl",
        "service",
        "rc-service",
        "rc-update",
        "initctl",
        "sv",
        "s6-rc",
        "supervisorctl",
        "pm2",
        "forever",
        "brew-services",
        "launchctl",
        "schtasks",
        "chkconfig",
        "update-rc.d",
        "insserv",
        "systemd-run",
        "monit",
    ])
    .more(services),
    Row::does(
        &["crontab", "anacron", "atrm", "incrontab", "fcrontab"],
        &[],
    )
    .more(crontab),
    Row::of(&["atq"]),
    Row::of(&[
        "journalctl",
        "dmesg",
        "logger",
        "lastb",
        "faillog",
        "auditctl",
        "ausearch",
    ])
    .more(logs),
    Row::does(
        &[
            "reboot", "shutdown", "halt", "poweroff", "init", "telinit", "kexec",
        ],
        MACHINE,
    )
    .more(stops),
    Row::does(
        &[
            "insmod",
            "rmmod",
            "modprobe",
            "depmod",
            "sysctl",
            "ldconfig",
            "update-grub",
            "grub-install",
            "dracut",
            "mkinitramfs",
            "efibootmgr",
            "timedatectl",
            "hostnamectl",
            "localectl",
            "ntpdate",
            "hwclock",
            "chvt",
            "setterm",
            "swaplabel",
            "bpftool",
            "defaults",
            "plutil",
            "nvram",
            "pmset",
            "scutil",
            "systemsetup",
            "networksetup",
            "softwareupdate",
            "reg",
            "regedit",
            "bcdedit",
            "wsl",
            "cmd.exe",
            "powershell.exe",
            "dbus-send",
            "gdbus",
            "busctl",
            "gsettings",
            "dconf",
            "xdotool",
            "ydotool",
            "wmctrl",
            "iptables-save",
            "nmap",
            "masscan",
            "arp",
            "arpspoof",
            "hping3",
            "tc",
            "ethtool",
            "iw",
            "iwconfig",
            "rfkill",
            "nmcli",
            "ifup",
            "ifdown",
            "dhclient",
            "brctl",
            "ovs-vsctl",
            "wpa_cli",
            "conntrack",
            "ipset",
            "nft",
            "ufw",
            "firewall-cmd",
            "iptables",
            "ip6tables",
            "pfctl",
            "ebtables",
        ],
        MACHINE,
    )
    .more(shows),
    Row::of(&["ip", "ifconfig", "route", "netplan"]).more(links),
    Row::of(&[
        "xhost",
        "xrandr",
        "xset",
        "setxkbmap",
        "loadkeys",
        "xmodmap",
        "xrdb",
    ])
    .more(machine),
    Row::of(&["checkrein"]).longs(&["root"]).more(ourselves),
    Row::of(&[
        "claude",
        "codex",
        "gemini",
        "aider",
        "opencode",
        "goose",
        "amp",
        "cursor-agent",
        "copilot",
        "llm",
        "ollama",
        "qwen",
        "crush",
        "droid",
    ])
    .more(agents),
    // Words of agents' own tools, as some harnesses spell them.
    Row::reads(&[
        "goto",
        "scroll_up",
        "scroll_down",
        "find_file",
        "search_dir",
        "search_file",
        "submit",
    ]),
];

/// What was captured before is read; capturing listens to the machine.
fn captures(call: &Call<'_>, out: &mut Vec<Effect>) {
    let named = |flags: &[&str]| {
        call.words
            .iter()
            .zip(call.words.iter().skip(1))
            .filter(|(flag, _)| flags.contains(&flag.text.as_str()))
            .map(|(_, file)| file.clone())
            .collect::<Vec<_>>()
    };
    let reads = named(&["-r", "--read-file"]);
    let code = call
        .words
        .iter()
        .any(|word| word.text.starts_with("-X") || word.text == "-z" && call.name() == "tcpdump");
    if reads.is_empty()
        && !(call.words.len() == 2
            && matches!(
                call.words.get(1).and_then(Word::as_fixed),
                Some("--version" | "-D")
            ))
        || code
    {
        out.push(Effect::Deed(Deed::Machine));
    }
    out.extend(reads.into_iter().map(|word| Effect::File(Act::Read, word)));
    out.extend(
        named(&["-w", "--export-objects"])
            .into_iter()
            .map(|word| Effect::File(Act::Write, word)),
    );
}

fn machine(_: &Call<'_>, out: &mut Vec<Effect>) {
    out.push(Effect::Deed(Deed::Machine));
}

/// `sudo -l`, `sudo -n true`: still asks for rights.
fn asks_sudo(_: &Call<'_>, _: &mut Vec<Effect>) {}

/// The machine goes down, or is told that it will.
fn stops(call: &Call<'_>, out: &mut Vec<Effect>) {
    let stops = match call.name() {
        "init" | "telinit" => matches!(call.operand(0), Some("0" | "6")),
        "kexec" => call.has(&["e", "exec"]),
        // Only a message, or the end of one that was on its way.
        _ => {
            let says = call.is_only(&["--help", "--version"]);
            !says && !call.has_only(&["c", "k", "w", "wtmp-only", "show"])
        }
    };
    if stops {
        out.push(Effect::Deed(Deed::Stops));
    }
}

/// Without operands, or with options that only ask, the state is shown.
fn shows(call: &Call<'_>, out: &mut Vec<Effect>) {
    let alone = call.words.len() == 1;
    let none = call.operands.is_empty();
    let only = |options: &[&str]| call.has_only(options);
    let shown = match call.name() {
        "timedatectl" | "hostnamectl" | "localectl" => {
            alone || call.words.len() == 2 && call.begins_with(&["status"])
        }
        "modprobe" | "arp" => alone,
        "sysctl" => {
            let sets = call.words.iter().any(|word| word.text.contains('='));
            !sets
                && (call.options.is_empty()
                    || only(&["a", "A", "X", "n", "e", "N", "b", "all", "names", "values"]))
        }
        "iptables" | "ip6tables" => {
            only(&[
                "L",
                "S",
                "list",
                "list-rules",
                "n",
                "v",
                "x",
                "t",
                "numeric",
                "verbose",
                "exact",
                "table",
                "line-numbers",
            ]) && call.has(&["L", "S", "list", "list-rules"])
        }
        // It reads its words as one text: what follows a `;` is another command.
        "nft" => {
            let ends = |word: &&Word| word.known != Known::Fixed || word.text.contains([';', '\n']);
            call.begins_with(&["list"]) && !call.operands.iter().any(ends)
        }
        "ufw" => call.begins_with(&["status"]),
        "nmcli" | "iw" => {
            alone
                || matches!(
                    (call.operand(0), call.operand(1)),
                    (
                        Some("general" | "g" | "dev" | "device" | "con" | "connection"),
                        None | Some("status" | "show")
                    )
                )
        }
        "ldconfig" => {
            none && only(&["p", "print-cache", "v", "N"]) && call.has(&["p", "print-cache"])
        }
        "defaults" => call.begins_with(&["read", "domains", "find"]),
        "plutil" => only(&["p"]),
        "pmset" => only(&["g"]),
        "scutil" => only(&["get", "dns", "proxy", "nwi"]),
        "hwclock" => {
            none && only(&["r", "show", "u", "utc", "l", "localtime", "v", "verbose"])
                && call.has(&["r", "show"])
        }
        "efibootmgr" => alone || none && only(&["v", "verbose"]),
        _ => false,
    };
    if shown {
        out.clear();
    }
}

fn kill(call: &Call<'_>, out: &mut Vec<Effect>) {
    // `-1` as a target is everything, `1` is the first of all.
    let words: Vec<&str> = call
        .words
        .iter()
        .skip(1)
        .map(|word| word.text.as_str())
        .collect();
    let targets = match words.split_first() {
        Some((first, rest))
            if first.starts_with('-') && *first != "--" && !matches!(*first, "-s" | "-n") =>
        {
            rest
        }
        Some((&("-s" | "-n"), rest)) => rest.get(1..).unwrap_or(&[]),
        _ => words.as_slice(),
    };
    if targets.iter().any(|word| matches!(*word, "-1")) {
        out.push(Effect::Deed(Deed::Stops));
    }
    let all = |word: &&&str| {
        matches!(**word, "-1" | "1" | "0" | "$PPID")
            || ["checkrein", "claude", "codex"]
                .iter()
                .any(|own| word.contains(own))
    };
    if targets.iter().any(|word| all(&word)) {
        out.push(Effect::Deed(Deed::Machine));
    }
}

/// By a name that says enough.
fn pkill(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call.name();
    if name == "fuser" {
        if call.has(&["k", "kill"])
            && !call
                .operands
                .iter()
                .any(|word| word.text.contains("tcp") || word.text.contains("udp"))
        {
            out.push(Effect::Deed(Deed::Machine));
        }
        return;
    }
    let broad = call.operands.is_empty()
        || call.has(&["u", "U", "g", "G", "s", "t", "v", "user", "uid"])
        || call.operands.iter().any(|word| {
            let plain = word.text.trim_matches(|c: char| !c.is_alphanumeric());
            plain.len() < 3
                || word.known != Known::Fixed
                || matches!(
                    plain,
                    "bash"
                        | "zsh"
                        | "ssh"
                        | "sshd"
                        | "systemd"
                        | "init"
                        | "claude"
                        | "codex"
                        | "checkrein"
                        | "login"
                        | "dockerd"
                        | "cron"
                        | "crond"
                        | "launchd"
                )
        });
    if broad || matches!(name, "killall5" | "xkill" | "skill") {
        out.push(Effect::Deed(Deed::Machine));
    }
}

fn runs_rest(call: &Call<'_>, out: &mut Vec<Effect>) {
    let at = call
        .words
        .iter()
        .skip(1)
        .position(|word| !word.text.starts_with('-'))
        .map_or(call.words.len(), |at| at + 1);
    if call
        .words
        .first()
        .is_some_and(|word| matches!(word.text.as_str(), "numactl" | "cpulimit"))
    {
        out.push(Effect::Command(
            call.words.get(at..).unwrap_or(&[]).to_vec(),
        ));
    } else {
        out.push(Effect::Deed(Deed::Machine));
    }
}

fn services(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call.name();
    let asks = |word: &str| {
        matches!(
            word,
            "status"
                | "list-units"
                | "list-unit-files"
                | "is-active"
                | "is-enabled"
                | "is-failed"
                | "show"
                | "cat"
                | "list-timers"
                | "list-dependencies"
                | "list-sockets"
                | "list"
                | "ls"
                | "logs"
                | "info"
                | "describe"
                | "print"
                | "jlist"
                | "version"
                | "help"
                | "--status-all"
                | "get-default"
                | "monit"
                | "show-environment"
                | "tail"
                | "avail"
                | "pid"
                | "prettylist"
        )
    };
    let words: Vec<&str> = call
        .words
        .iter()
        .skip(1)
        .map(|word| word.text.as_str())
        .collect();
    let verb = match name {
        "service" | "rc-service" => words
            .iter()
            .filter(|word| !word.starts_with('-'))
            .nth(1)
            .or_else(|| words.first()),
        _ => words.iter().find(|word| !word.starts_with('-')),
    };
    const STOPS: &[&str] = &[
        "reboot",
        "poweroff",
        "halt",
        "kexec",
        "soft-reboot",
        "emergency",
        "rescue",
    ];
    let target = |word: &&str| {
        let unit = word.strip_suffix(".target");
        unit.is_some_and(|unit| {
            STOPS.contains(&unit) || matches!(unit, "shutdown" | "runlevel0" | "runlevel6")
        })
    };
    let starts = verb.is_some_and(|word| matches!(*word, "start" | "restart" | "isolate"));
    if name == "systemctl"
        && (verb.is_some_and(|word| STOPS.contains(word)) || starts && words.iter().any(target))
    {
        out.push(Effect::Deed(Deed::Stops));
    }
    if !(verb.is_some_and(|word| asks(word)) || words.is_empty() && name != "systemd-run") {
        out.push(Effect::Deed(Deed::Persists));
    }
}

/// With its home, if told so.
fn removes_user(call: &Call<'_>, out: &mut Vec<Effect>) {
    let home = call.has(&["r", "remove", "remove-home", "remove-all-files"]);
    if let Some(user) = call.operand(0).filter(|_| home) {
        out.push(Effect::File(Act::Remove, Word::fixed(format!("~{user}"))));
    }
}

fn crontab(call: &Call<'_>, out: &mut Vec<Effect>) {
    let lists = call
        .words
        .iter()
        .skip(1)
        .all(|word| matches!(word.text.as_str(), "-l"))
        && call.words.len() > 1;
    if !lists {
        out.push(Effect::Deed(Deed::Persists));
    }
}

fn logs(call: &Call<'_>, out: &mut Vec<Effect>) {
    let changes = call.options.iter().any(|(name, _)| {
        name.starts_with("vacuum")
            || matches!(
                name.as_str(),
                "rotate"
                    | "flush"
                    | "sync"
                    | "C"
                    | "clear"
                    | "c"
                    | "read-clear"
                    | "D"
                    | "n-off"
                    | "relinquish-var"
                    | "setup-keys"
                    | "update-catalog"
            )
    });
    let dmesg = call.name().ends_with("dmesg");
    let auditctl = call.name().ends_with("auditctl");
    let plain = call.has(&["c"]) && !dmesg;
    if (changes && !plain) || auditctl {
        out.push(Effect::Deed(Deed::Machine));
    }
}

fn links(call: &Call<'_>, out: &mut Vec<Effect>) {
    let changes = call.operands.iter().skip(1).any(|word| {
        matches!(
            word.text.as_str(),
            "add"
                | "del"
                | "delete"
                | "set"
                | "change"
                | "replace"
                | "flush"
                | "up"
                | "down"
                | "exec"
                | "append"
        )
    }) || call.has(&["b", "batch", "force"])
        || call
            .words
            .first()
            .is_some_and(|word| word.text.ends_with("ifconfig"))
            && call.operands.len() > 1
        || call
            .words
            .first()
            .is_some_and(|word| word.text.ends_with("route"))
            && !call.operands.is_empty()
        || matches!(call.operand(0), Some("netns" | "apply" | "try")) && call.operands.len() > 1;
    if changes {
        out.push(Effect::Deed(Deed::Machine));
    }
}

/// What `own` does not refuse of ours only looks.
fn ourselves(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call.operand(0) == Some("patch") && call.operand(1) == Some("apply") {
        out.push(Effect::Patch(call.values_of(&["root"]).next().cloned()));
    }
    match call.operand(0) {
        // Checks of a project are its code, wherever it lies.
        Some("check") => {
            let mut config = call
                .values_of(&["root"])
                .next()
                .cloned()
                .unwrap_or_else(|| Word::fixed("."));
            config.append(&Word::fixed("/checkrein.toml"));
            out.push(Effect::Deed(Deed::Opaque));
            out.push(Effect::RunsFile(config));
        }
        // An agent of its own; a command behind `--` is judged as what it is.
        Some("run") if !call.words.iter().any(|word| word.as_fixed() == Some("--")) => {
            out.push(Effect::Deed(Deed::Code));
        }
        _ => {}
    }
}

/// Another agent, with what it may do: only what it is, is asked without a person.
fn agents(call: &Call<'_>, out: &mut Vec<Effect>) {
    let asks = call.words.len() == 2
        && call.words.get(1).is_some_and(|word| {
            matches!(
                word.text.as_str(),
                "--version" | "--help" | "-v" | "-h" | "list" | "ps" | "doctor"
            )
        });
    if !asks {
        out.push(Effect::Deed(Deed::Code));
    }
    out.extend(
        call.values_of(&["output-last-message"])
            .map(|word| Effect::File(Act::Write, word.clone())),
    );
}
