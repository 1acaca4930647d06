//! Describes programs for disks, partitions and file systems. Making one destroys what was there. A
//! call that only shows something is recognized by its options, all of which must be known.

use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, ProgramEffectSpec};
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::CommandWord;

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::program_spec_with_fixed_effects(
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
        &[NonFileEffectKind::ChangesMachine],
    )
    .with_extra_effects_fn(mkfs_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
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
        &[NonFileEffectKind::ChangesMachine],
    )
    .with_short_value_options("x")
    .with_extra_effects_fn(disk_partition_tool_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "hdparm", "lvm", "lvremove", "vgremove", "pvremove", "mdadm", "zfs", "zpool",
            "diskutil", "nvme", "dmsetup", "asr",
        ],
        &[NonFileEffectKind::ChangesMachine],
    )
    .with_extra_effects_fn(volume_tool_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
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
        &[NonFileEffectKind::ChangesMachine],
    )
    .with_extra_effects_fn(drop_disk_query_effects),
];

/// Returns the program of which `mkfs.btrfs` or `newfs_msdos` is a variant.
pub(super) fn mkfs_program_family(name: &str) -> Option<&'static str> {
    [("mkfs.", "mkfs"), ("newfs_", "newfs")]
        .into_iter()
        .find(|(begins, _)| name.starts_with(begins))
        .map(|(_, family)| family)
}

/// Adds that everything on the operands is lost. Without an operand some disk is wiped.
fn add_disk_format_effects(operands: &[&CommandWord], out: &mut Vec<CommandEffect>) {
    if operands.is_empty() {
        out.push(CommandEffect::Kind(NonFileEffectKind::WipesDisk));
    }
    let all = operands.iter();
    out.extend(all.map(|word| CommandEffect::File(FileAccess::Format, (*word).clone())));
}

fn mkfs_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    add_disk_format_effects(&call.operands, out);
}

/// Judges programs that show a disk or change what is on it.
fn disk_partition_tool_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let operands = call.operands.as_slice();
    let (shows, wipes) = match call.command_name() {
        // `wipefs` and `badblocks` only read without these options, which is still asked about.
        "wipefs" => (false, call.has_option(&["a", "all", "o", "offset"])),
        "badblocks" => (false, call.has_option(&["w"])),
        "cryptsetup" => {
            let verb = call.literal_operand(0);
            let formats = matches!(
                verb,
                Some("luksFormat" | "luksErase" | "erase" | "format" | "reencrypt")
            );
            (matches!(verb, Some("status" | "luksDump")), formats)
        }
        "sgdisk" => {
            // Any option that is not known to show something may write the table.
            let shows =
                call.has_only_listed_options(&["p", "print", "v", "verify", "i", "info", "E", "F"]);
            (shows, !shows)
        }
        "parted" => {
            let prints = operands.len() == 2 && call.literal_operand(1) == Some("print");
            let lists =
                operands.is_empty() && call.has_only_listed_options(&["l", "list", "m", "machine"]);
            let shows = lists || prints;
            (shows, !shows)
        }
        // `fdisk -l` and `sfdisk -d` show. Without an option they wait for commands that write.
        _ => {
            let shows = call.has_only_listed_options(&[
                "l", "list", "x", "d", "dump", "J", "json", "V", "verify",
            ]);
            (shows, !shows)
        }
    };
    // The row says that the machine is changed; for a call that only shows, nothing remains.
    if shows {
        out.clear();
    } else if wipes {
        add_disk_format_effects(operands, out);
    }
}

/// Judges programs whose sub-command or option removes a volume or all data on a disk.
fn volume_tool_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let verb = call.literal_operand(0).unwrap_or("");
    let wipes = match call.command_name() {
        "hdparm" => call
            .options
            .iter()
            .any(|(name, _)| name.starts_with("security-erase") || name == "trim-sector-ranges"),
        "lvremove" | "vgremove" | "pvremove" => true,
        "lvm" => matches!(verb, "lvremove" | "vgremove" | "pvremove" | "pvcreate"),
        // Creating an array overwrites the start of its disks.
        "mdadm" => call.has_option(&["zero-superblock", "create", "C"]),
        // `zfs destroy POOL@NAME` removes a snapshot, and the data stays.
        "zfs" => verb == "destroy" && !call.operands.iter().any(|word| word.text.contains('@')),
        "zpool" => matches!(verb, "destroy" | "labelclear" | "create"),
        "diskutil" => {
            // macOS: verbs such as `eraseDisk` have several spellings, and `apfs deleteVolume` has
            // two words.
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
        _ => call.has_option(&["erase"]),
    };
    if wipes {
        out.push(CommandEffect::Kind(NonFileEffectKind::WipesDisk));
        return;
    }
    // Only the first argument counts, so an option before it keeps the question.
    let looks: &[&str] = match call.command_name() {
        "zfs" | "zpool" | "diskutil" | "nvme" => &["list", "status", "get", "info"],
        _ => &[],
    };
    if call.first_argument_is_one_of(looks) {
        out.clear();
    }
}

/// Drops the effects of calls that only show the state.
fn drop_disk_query_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let none = call.operands.is_empty();
    let shown = match call.command_name() {
        "mount" => none && (call.words.len() == 1 || call.has_only_listed_options(&["l", "V"])),
        "swapon" => {
            none && call.has_only_listed_options(&[
                "s",
                "show",
                "summary",
                "bytes",
                "noheadings",
                "raw",
                "output",
            ])
        }
        "losetup" => none && call.has_only_listed_options(&["a", "l", "list", "all"]),
        "btrfs" => call.first_argument_is_one_of(&["list", "status", "get", "info"]),
        "smartctl" => call.has_only_listed_options(&[
            "a", "i", "H", "all", "info", "health", "x", "xall", "scan",
        ]),
        _ => false,
    };
    if shown {
        out.clear();
    }
}
