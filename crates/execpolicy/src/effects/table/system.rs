//! The machine: rights, services, processes, disks, schedules.

use crate::effects::Act;
use crate::effects::Effect;
use crate::effects::call::Call;
use crate::effects::row::{Deed, On, Row};
use crate::shell::Known;

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
            "userdel",
            "adduser",
            "deluser",
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
    Row::of(&["kill"]).on(&[("list", On::Inert)]).more(kill),
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
            "mount",
            "umount",
            "mkfs",
            "fsck",
            "e2fsck",
            "tune2fs",
            "resize2fs",
            "xfs_repair",
            "fdisk",
            "sfdisk",
            "cfdisk",
            "gdisk",
            "sgdisk",
            "parted",
            "partprobe",
            "wipefs",
            "blkdiscard",
            "badblocks",
            "hdparm",
            "losetup",
            "cryptsetup",
            "lvm",
            "pvcreate",
            "vgcreate",
            "lvcreate",
            "lvremove",
            "vgremove",
            "pvremove",
            "mdadm",
            "zfs",
            "zpool",
            "btrfs",
            "swapon",
            "swapoff",
            "mkswap",
            "diskutil",
            "hdiutil",
            "fusermount",
            "mkfs.ext4",
            "mkfs.xfs",
            "mkfs.vfat",
            "mkfs.ext",
            "mke2fs",
            "newfs",
            "format",
            "dmsetup",
            "multipath",
            "kpartx",
            "debugfs",
            "fstrim",
            "asr",
            "bless",
            "nvme",
            "smartctl",
        ],
        MACHINE,
    )
    .more(shows),
    Row::does(
        &[
            "reboot",
            "shutdown",
            "halt",
            "poweroff",
            "init",
            "telinit",
            "kexec",
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
        && call
            .words
            .iter()
            .all(|word| word.text != "--version" && word.text != "-D")
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

/// Without operands, or with options that only ask, the state is shown.
fn shows(call: &Call<'_>, out: &mut Vec<Effect>) {
    let name = call.name();
    let alone = call.words.len() == 1;
    let shown = match name {
        "mount" | "timedatectl" | "hostnamectl" | "localectl" | "modprobe" | "arp" => {
            alone
                || call.words.len() == 2 && matches!(call.operand(0), Some("status"))
                || name == "mount" && call.operands.is_empty() && call.has(&["l", "V"])
        }
        "swapon" => call.has(&["s", "show", "summary"]),
        "fdisk" | "parted" | "sfdisk" | "gdisk" => call.has(&["l", "list"]) && !call.has(&["s"]),
        "losetup" => call.has(&["a", "l", "list", "all"]),
        "sysctl" => {
            !call.has(&["w", "p", "write", "load", "system"])
                && !call.words.iter().any(|word| word.text.contains('='))
        }
        "zfs" | "zpool" | "btrfs" | "diskutil" => {
            matches!(call.operand(0), Some("list" | "status" | "get" | "info"))
        }
        "iptables" | "ip6tables" | "nft" | "ufw" => {
            call.has(&["L", "S", "list", "list-rules"])
                || matches!(call.operand(0), Some("status" | "list"))
        }
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
        "ldconfig" => call.has(&["p", "print-cache"]),
        "smartctl" | "nvme" => {
            call.has(&["a", "i", "H", "all", "info"]) || matches!(call.operand(0), Some("list"))
        }
        "defaults" => matches!(call.operand(0), Some("read" | "domains" | "find")),
        "plutil" => call.has(&["p", "lint"]),
        "pmset" | "scutil" => call.has(&["g", "get"]),
        "hwclock" => call.has(&["r", "show"]),
        "efibootmgr" => alone,
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
    if !(verb.is_some_and(|word| asks(word)) || words.is_empty() && name != "systemd-run") {
        out.push(Effect::Deed(Deed::Persists));
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
    for (at, word) in call.words.iter().enumerate() {
        if word.text == "--" {
            let inner = call.words.get(at + 1..).unwrap_or(&[]);
            if call.operand(0) == Some("run") {
                out.push(Effect::Command(inner.to_vec()));
            }
            break;
        }
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
