//! Disks, partitions and file systems. What makes one destroys what was there; what only shows
//! one is known by its options, all of them.

use crate::effects::call::Call;
use crate::effects::row::{Deed, Row};
use crate::effects::{Act, Effect};
use crate::shell::Word;

pub(super) const ROWS: &[Row] = &[
    Row::does(
        &[
            "mkfs",
            "mke2fs",
            "mkdosfs",
            "mkntfs",
            "mkswap",
            "newfs",
            "blkdiscard",
            "pvcreate",
            "mkfs.ext",
        ],
        &[Deed::Machine],
    )
    .more(formats),
    Row::does(
        &[
            "wipefs",
            "fdisk",
            "sfdisk",
            "cfdisk",
            "gdisk",
            "sgdisk",
            "parted",
            "badblocks",
            "cryptsetup",
        ],
        &[Deed::Machine],
    )
    .values("x")
    .more(partitions),
    Row::does(
        &[
            "hdparm", "lvm", "lvremove", "vgremove", "pvremove", "mdadm", "zfs", "zpool",
            "diskutil", "nvme", "dmsetup", "asr",
        ],
        &[Deed::Machine],
    )
    .more(volumes),
    Row::does(
        &[
            "mount",
            "umount",
            "fsck",
            "e2fsck",
            "tune2fs",
            "resize2fs",
            "xfs_repair",
            "partprobe",
            "losetup",
            "vgcreate",
            "lvcreate",
            "btrfs",
            "swapon",
            "swapoff",
            "hdiutil",
            "fusermount",
            "format",
            "multipath",
            "kpartx",
            "debugfs",
            "fstrim",
            "bless",
            "smartctl",
        ],
        &[Deed::Machine],
    )
    .more(shows),
];

/// The program that a name such as `mkfs.btrfs` or `newfs_msdos` is a kind of.
pub(super) fn family(name: &str) -> Option<&'static str> {
    [("mkfs.", "mkfs"), ("newfs_", "newfs")]
        .into_iter()
        .find(|(begins, _)| name.starts_with(begins))
        .map(|(_, family)| family)
}

/// What stands on them is gone. Without an operand it cannot be told which.
fn wiped(operands: &[&Word], out: &mut Vec<Effect>) {
    if operands.is_empty() {
        out.push(Effect::Deed(Deed::Wipes));
    }
    let all = operands.iter();
    out.extend(all.map(|word| Effect::File(Act::Format, (*word).clone())));
}

fn formats(call: &Call<'_>, out: &mut Vec<Effect>) {
    wiped(&call.operands, out);
}

/// Programs that show a disk, or change what is on it.
fn partitions(call: &Call<'_>, out: &mut Vec<Effect>) {
    let operands = call.operands.as_slice();
    let (shows, wipes) = match call.name() {
        "wipefs" => (false, call.has(&["a", "all", "o", "offset"])),
        "badblocks" => (false, call.has(&["w"])),
        "cryptsetup" => {
            let verb = call.operand(0);
            let formats = matches!(
                verb,
                Some("luksFormat" | "luksErase" | "erase" | "format" | "reencrypt")
            );
            (matches!(verb, Some("status" | "luksDump")), formats)
        }
        "sgdisk" => {
            let shows = call.has_only(&["p", "print", "v", "verify", "i", "info", "E", "F"]);
            (shows, !shows)
        }
        "parted" => {
            let prints = operands.len() == 2 && call.operand(1) == Some("print");
            let lists = operands.is_empty() && call.has_only(&["l", "list", "m", "machine"]);
            let shows = lists || prints;
            (shows, !shows)
        }
        _ => {
            let shows = call.has_only(&["l", "list", "x", "d", "dump", "J", "json", "V", "verify"]);
            (shows, !shows)
        }
    };
    if shows {
        out.clear();
    } else if wipes {
        wiped(operands, out);
    }
}

/// Programs whose sub-command, or one option, removes a volume or all that is on a disk.
fn volumes(call: &Call<'_>, out: &mut Vec<Effect>) {
    let verb = call.operand(0).unwrap_or("");
    let wipes = match call.name() {
        "hdparm" => call
            .options
            .iter()
            .any(|(name, _)| name.starts_with("security-erase") || name == "trim-sector-ranges"),
        "lvremove" | "vgremove" | "pvremove" => true,
        "lvm" => matches!(verb, "lvremove" | "vgremove" | "pvremove" | "pvcreate"),
        "mdadm" => call.has(&["zero-superblock", "create", "C"]),
        // A snapshot is no disk.
        "zfs" => verb == "destroy" && !call.operands.iter().any(|word| word.text.contains('@')),
        "zpool" => matches!(verb, "destroy" | "labelclear" | "create"),
        "diskutil" => {
            let any = |begins: &str| {
                let mut words = call.operands.iter().take(2);
                words.any(|word| word.text.to_ascii_lowercase().starts_with(begins))
            };
            [
                "erase",
                "zerodisk",
                "randomdisk",
                "secureerase",
                "partitiondisk",
                "reformat",
                "delete",
            ]
            .into_iter()
            .any(any)
        }
        "nvme" => matches!(verb, "format" | "sanitize" | "write-zeroes" | "dsm"),
        "dmsetup" => matches!(verb, "wipe_table" | "remove_all"),
        _ => call.has(&["erase"]),
    };
    if wipes {
        out.push(Effect::Deed(Deed::Wipes));
        return;
    }
    let looks: &[&str] = match call.name() {
        "zfs" | "zpool" | "diskutil" | "nvme" => &["list", "status", "get", "info"],
        _ => &[],
    };
    if call.begins_with(looks) {
        out.clear();
    }
}

/// With options that only ask, the state is shown.
fn shows(call: &Call<'_>, out: &mut Vec<Effect>) {
    let none = call.operands.is_empty();
    let shown = match call.name() {
        "mount" => none && (call.words.len() == 1 || call.has_only(&["l", "V"])),
        "swapon" => {
            none && call.has_only(&[
                "s",
                "show",
                "summary",
                "bytes",
                "noheadings",
                "raw",
                "output",
            ])
        }
        "losetup" => none && call.has_only(&["a", "l", "list", "all"]),
        "btrfs" => call.begins_with(&["list", "status", "get", "info"]),
        "smartctl" => call.has_only(&["a", "i", "H", "all", "info", "health", "x", "xall", "scan"]),
        _ => false,
    };
    if shown {
        out.clear();
    }
}
