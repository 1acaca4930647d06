//! Describes programs that act on the machine: rights, services, processes, network, schedules.
//! Many also show its state; those calls are recognized by their options, all of which must be
//! known.

use crate::effects::CommandEffect;
use crate::effects::FileAccess;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};
use crate::shell::{CommandWord, WordKnowledge};

const MACHINE: &[NonFileEffectKind] = &[NonFileEffectKind::ChangesMachine];

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::program_spec_with_fixed_effects(
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
        &[NonFileEffectKind::Privilege],
    )
    .with_extra_effects_fn(add_nothing_for_any_sudo_call),
    ProgramEffectSpec::program_spec_with_fixed_effects(
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
        &[NonFileEffectKind::Privilege],
    ),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["userdel", "deluser"],
        &[NonFileEffectKind::Privilege],
    )
    .with_short_value_options("RP")
    .with_extra_effects_fn(userdel_effects),
    ProgramEffectSpec::new(&[
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
    ProgramEffectSpec::new(&["ss"]).with_option_meanings(&[
        // `ss -K` closes the connections that it lists, also those of others.
        (
            "K",
            OptionMeaning::FlagEffect(NonFileEffectKind::ChangesMachine),
        ),
        (
            "kill",
            OptionMeaning::FlagEffect(NonFileEffectKind::ChangesMachine),
        ),
        ("D", OptionMeaning::Writes),
    ]),
    ProgramEffectSpec::new(&["tshark", "tcpdump", "capinfos", "editcap"])
        .with_extra_effects_fn(packet_capture_effects),
    ProgramEffectSpec::new(&["printenv"]),
    ProgramEffectSpec::new(&["kill"]).with_extra_effects_fn(kill_effects),
    ProgramEffectSpec::new(&[
        "pkill",
        "killall",
        "killall5",
        "skill",
        "xkill",
        "fuser",
        "kill-port",
        "fkill",
    ])
    .with_extra_effects_fn(pkill_effects),
    ProgramEffectSpec::new(&[
        "renice",
        "prlimit",
        "numactl",
        "cpulimit",
        "schedtool",
        "choom",
    ])
    .with_extra_effects_fn(process_priority_tool_effects),
    ProgramEffectSpec::new(&[
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
    .with_extra_effects_fn(service_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &["crontab", "anacron", "atrm", "incrontab", "fcrontab"],
        &[],
    )
    .with_extra_effects_fn(crontab_effects),
    ProgramEffectSpec::new(&["atq"]),
    ProgramEffectSpec::new(&[
        "journalctl",
        "dmesg",
        "logger",
        "lastb",
        "faillog",
        "auditctl",
        "ausearch",
    ])
    .with_extra_effects_fn(system_log_program_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "reboot", "shutdown", "halt", "poweroff", "init", "telinit", "kexec",
        ],
        MACHINE,
    )
    .with_extra_effects_fn(shutdown_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
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
    .with_extra_effects_fn(drop_effects_of_status_queries),
    ProgramEffectSpec::new(&["ip", "ifconfig", "route", "netplan"])
        .with_extra_effects_fn(network_interface_effects),
    ProgramEffectSpec::new(&[
        "xhost",
        "xrandr",
        "xset",
        "setxkbmap",
        "loadkeys",
        "xmodmap",
        "xrdb",
    ])
    .with_extra_effects_fn(display_settings_tool_effects),
    ProgramEffectSpec::new(&["checkrein"])
        .with_long_value_options(&["root"])
        .with_extra_effects_fn(checkrein_effects),
    ProgramEffectSpec::new(&[
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
    .with_extra_effects_fn(agent_cli_effects),
    // Names of agent tools that some harnesses pass through the shell.
    ProgramEffectSpec::program_spec_reading_operands(&[
        "goto",
        "scroll_up",
        "scroll_down",
        "find_file",
        "search_dir",
        "search_file",
        "submit",
    ]),
];

/// Judges packet tools: reading an earlier capture is harmless, capturing listens to the machine.
fn packet_capture_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let named = |flags: &[&str]| {
        call.words
            .iter()
            .zip(call.words.iter().skip(1))
            .filter(|(flag, _)| flags.contains(&flag.text.as_str()))
            .map(|(_, file)| file.clone())
            .collect::<Vec<_>>()
    };
    let reads = named(&["-r", "--read-file"]);
    // tshark: `-X lua_script:FILE` loads code. tcpdump: `-z COMMAND` runs it on each finished file.
    let code = call.words.iter().any(|word| {
        word.text.starts_with("-X") || word.text == "-z" && call.command_name() == "tcpdump"
    });
    if reads.is_empty()
        && !(call.words.len() == 2
            && matches!(
                call.words.get(1).and_then(CommandWord::as_literal),
                Some("--version" | "-D")
            ))
        || code
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::ChangesMachine));
    }
    out.extend(
        reads
            .into_iter()
            .map(|word| CommandEffect::File(FileAccess::Read, word)),
    );
    out.extend(
        named(&["-w", "--export-objects"])
            .into_iter()
            .map(|word| CommandEffect::File(FileAccess::Write, word)),
    );
}

fn display_settings_tool_effects(_: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.push(CommandEffect::Kind(NonFileEffectKind::ChangesMachine));
}

/// Adds nothing. Its presence keeps `sudo --help` from being taken for a harmless call, because a
/// row with a handler gets no such exemption.
fn add_nothing_for_any_sudo_call(_: &ParsedArgs<'_>, _: &mut Vec<CommandEffect>) {}

/// Adds that the machine goes down, unless the call only prints or cancels something.
fn shutdown_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let stops = match call.command_name() {
        // Runlevel 0 halts, 6 reboots.
        "init" | "telinit" => matches!(call.literal_operand(0), Some("0" | "6")),
        "kexec" => call.has_option(&["e", "exec"]),
        // `-c` cancels, `-k` only warns, `-w` only writes the log record.
        _ => {
            let says = call.only_argument_is_one_of(&["--help", "--version"]);
            !says && !call.has_only_listed_options(&["c", "k", "w", "wtmp-only", "show"])
        }
    };
    if stops {
        out.push(CommandEffect::Kind(NonFileEffectKind::ShutsDownMachine));
    }
}

/// Drops the effects of calls that only show the state.
fn drop_effects_of_status_queries(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let alone = call.words.len() == 1;
    let none = call.operands.is_empty();
    let only = |options: &[&str]| call.has_only_listed_options(options);
    let shown = match call.command_name() {
        "timedatectl" | "hostnamectl" | "localectl" => {
            alone || call.words.len() == 2 && call.first_argument_is_one_of(&["status"])
        }
        "modprobe" | "arp" => alone,
        "sysctl" => {
            // `sysctl NAME=VALUE` sets without an option.
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
            ]) && call.has_option(&["L", "S", "list", "list-rules"])
        }
        // `nft` joins its words into one text, in which `;` separates commands.
        "nft" => {
            let ends = |word: &&CommandWord| {
                word.knowledge != WordKnowledge::Literal || word.text.contains([';', '\n'])
            };
            call.first_argument_is_one_of(&["list"]) && !call.operands.iter().any(ends)
        }
        "ufw" => call.first_argument_is_one_of(&["status"]),
        "nmcli" | "iw" => {
            alone
                || matches!(
                    (call.literal_operand(0), call.literal_operand(1)),
                    (
                        Some("general" | "g" | "dev" | "device" | "con" | "connection"),
                        None | Some("status" | "show")
                    )
                )
        }
        "ldconfig" => {
            none && only(&["p", "print-cache", "v", "N"]) && call.has_option(&["p", "print-cache"])
        }
        "defaults" => call.first_argument_is_one_of(&["read", "domains", "find"]),
        "plutil" => only(&["p"]),
        "pmset" => only(&["g"]),
        "scutil" => only(&["get", "dns", "proxy", "nwi"]),
        "hwclock" => {
            none && only(&["r", "show", "u", "utc", "l", "localtime", "v", "verbose"])
                && call.has_option(&["r", "show"])
        }
        "efibootmgr" => alone || none && only(&["v", "verbose"]),
        _ => false,
    };
    if shown {
        out.clear();
    }
}

fn kill_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // The words are read here, because `-1` can be a signal or a target.
    let words: Vec<&str> = call
        .words
        .iter()
        .skip(1)
        .map(|word| word.text.as_str())
        .collect();
    // The first word with a dash is the signal, unless it is `-s` or `-n`, which take the signal as
    // a value.
    let targets = match words.split_first() {
        Some((first, rest))
            if first.starts_with('-') && *first != "--" && !matches!(*first, "-s" | "-n") =>
        {
            rest
        }
        Some((&("-s" | "-n"), rest)) => rest.get(1..).unwrap_or(&[]),
        _ => words.as_slice(),
    };
    // As a target, `-1` is every process that may be signalled, and so ends the session.
    if targets.iter().any(|word| matches!(*word, "-1")) {
        out.push(CommandEffect::Kind(NonFileEffectKind::ShutsDownMachine));
    }
    // Process 1, the own process group, the agent itself, or what supervises it.
    let all = |word: &&&str| {
        matches!(**word, "-1" | "1" | "0" | "$PPID")
            || ["checkrein", "claude", "codex"]
                .iter()
                .any(|own| word.contains(own))
    };
    if targets.iter().any(|word| all(&word)) {
        out.push(CommandEffect::Kind(NonFileEffectKind::ChangesMachine));
    }
}

/// Judges killing by name: the name must be long and specific enough to mean processes of the work.
fn pkill_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let name = call.command_name();
    if name == "fuser" {
        // `fuser -k 3000/tcp` frees a port, which is everyday work; with a file or mount it kills
        // all users of it.
        if call.has_option(&["k", "kill"])
            && !call
                .operands
                .iter()
                .any(|word| word.text.contains("tcp") || word.text.contains("udp"))
        {
            out.push(CommandEffect::Kind(NonFileEffectKind::ChangesMachine));
        }
        return;
    }
    // By user, group, terminal or negation, processes of others are met.
    let broad = call.operands.is_empty()
        || call.has_option(&["u", "U", "g", "G", "s", "t", "v", "user", "uid"])
        || call.operands.iter().any(|word| {
            let plain = word.text.trim_matches(|c: char| !c.is_alphanumeric());
            // A pattern of one or two letters matches almost any process.
            plain.len() < 3
                || word.knowledge != WordKnowledge::Literal
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
        out.push(CommandEffect::Kind(NonFileEffectKind::ChangesMachine));
    }
}

fn process_priority_tool_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let at = call
        .words
        .iter()
        .skip(1)
        .position(|word| !word.text.starts_with('-'))
        .map_or(call.words.len(), |at| at + 1);
    // `numactl` and `cpulimit` run a command; the others change running processes.
    if call
        .words
        .first()
        .is_some_and(|word| matches!(word.text.as_str(), "numactl" | "cpulimit"))
    {
        out.push(CommandEffect::Command(
            call.words.get(at..).unwrap_or(&[]).to_vec(),
        ));
    } else {
        out.push(CommandEffect::Kind(NonFileEffectKind::ChangesMachine));
    }
}

fn service_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let name = call.command_name();
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
    // `service NAME VERB`, but `systemctl VERB NAME`.
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
    // Runlevels 0 and 6 are older names of the targets for halt and reboot.
    let target = |word: &&str| {
        let unit = word.strip_suffix(".target");
        unit.is_some_and(|unit| {
            STOPS.contains(&unit) || matches!(unit, "shutdown" | "runlevel0" | "runlevel6")
        })
    };
    // A target such as `poweroff.target` can also be started like a service.
    let starts = verb.is_some_and(|word| matches!(*word, "start" | "restart" | "isolate"));
    if name == "systemctl"
        && (verb.is_some_and(|word| STOPS.contains(word)) || starts && words.iter().any(target))
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::ShutsDownMachine));
    }
    // Even stopping a service lasts after the work; `systemd-run` always starts something.
    if !(verb.is_some_and(|word| asks(word)) || words.is_empty() && name != "systemd-run") {
        out.push(CommandEffect::Kind(NonFileEffectKind::Persists));
    }
}

/// Adds the removal of the home of the account, where an option asks for it.
fn userdel_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let home = call.has_option(&["r", "remove", "remove-home", "remove-all-files"]);
    if let Some(user) = call.literal_operand(0).filter(|_| home) {
        out.push(CommandEffect::File(
            FileAccess::Remove,
            CommandWord::new_literal_word(format!("~{user}")),
        ));
    }
}

fn crontab_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // Everything but `crontab -l` replaces, edits or removes the table.
    let lists = call
        .words
        .iter()
        .skip(1)
        .all(|word| matches!(word.text.as_str(), "-l"))
        && call.words.len() > 1;
    if !lists {
        out.push(CommandEffect::Kind(NonFileEffectKind::Persists));
    }
}

fn system_log_program_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
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
    let dmesg = call.command_name().ends_with("dmesg");
    let auditctl = call.command_name().ends_with("auditctl");
    // `dmesg -c` clears the buffer. In `journalctl` the letter selects a cursor.
    let plain = call.has_option(&["c"]) && !dmesg;
    if (changes && !plain) || auditctl {
        out.push(CommandEffect::Kind(NonFileEffectKind::ChangesMachine));
    }
}

fn network_interface_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // Without one of these words `ip OBJECT` only shows.
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
    }) || call.has_option(&["b", "batch", "force"])
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
        || matches!(call.literal_operand(0), Some("netns" | "apply" | "try"))
            && call.operands.len() > 1;
    if changes {
        out.push(CommandEffect::Kind(NonFileEffectKind::ChangesMachine));
    }
}

/// Judges calls of Checkrein itself. Other sub-commands than these only look, or are refused
/// elsewhere.
fn checkrein_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    if call.literal_operand(0) == Some("patch") && call.literal_operand(1) == Some("apply") {
        out.push(CommandEffect::Patch(
            call.option_values(&["root"]).next().cloned(),
        ));
    }
    match call.literal_operand(0) {
        // The checks of a project are commands in its config, which a script may just have written.
        Some("check") => {
            let mut config = call
                .option_values(&["root"])
                .next()
                .cloned()
                .unwrap_or_else(|| CommandWord::new_literal_word("."));
            config.append_word_without_blank(&CommandWord::new_literal_word("/checkrein.toml"));
            out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
            out.push(CommandEffect::RunsFile(config));
        }
        // Starts an agent; a command behind `--` is judged on its own.
        Some("run")
            if !call
                .words
                .iter()
                .any(|word| word.as_literal() == Some("--")) =>
        {
            out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
        }
        _ => {}
    }
}

/// Judges calls of other agents, which can do anything. Only queries about the program are
/// harmless.
fn agent_cli_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let asks = call.words.len() == 2
        && call.words.get(1).is_some_and(|word| {
            matches!(
                word.text.as_str(),
                "--version" | "--help" | "-v" | "-h" | "list" | "ps" | "doctor"
            )
        });
    if !asks {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    out.extend(
        call.option_values(&["output-last-message"])
            .map(|word| CommandEffect::File(FileAccess::Write, word.clone())),
    );
}
