//! Recognizes homes, disks and system folders by their paths: what nobody means to lose. Ordinary
//! files in them do not count: `~/.cache/x` and `/etc/apt/sources.list.d/x.list` come and go.

use super::glob::{globs_intersect, is_glob};
use super::paths::{PIECE, UNKNOWN};

/// Folders whose loss breaks the machine; "everything directly in one" counts as the folder.
const SYSTEM_FOLDERS: &[&[&str]] = &[
    &[],
    &["Applications"],
    &["Library"],
    &["System"],
    &["Users"],
    &["Volumes"],
    &["bin"],
    &["boot"],
    &["dev"],
    &["etc"],
    &["home"],
    &["lib"],
    &["lib32"],
    &["lib64"],
    &["libx32"],
    &["media"],
    &["mnt"],
    &["opt"],
    &["private"],
    &["private", "etc"],
    &["private", "var"],
    &["proc"],
    &["run"],
    &["sbin"],
    &["srv"],
    &["sys"],
    &["usr"],
    &["usr", "bin"],
    &["usr", "include"],
    &["usr", "lib"],
    &["usr", "lib32"],
    &["usr", "lib64"],
    &["usr", "libexec"],
    &["usr", "local"],
    &["usr", "sbin"],
    &["usr", "share"],
    &["var"],
    &["var", "lib"],
    // Without one of these nobody logs in, or nothing is mounted.
    &["etc", "fstab"],
    &["etc", "group"],
    &["etc", "passwd"],
    &["etc", "shadow"],
    &["etc", "sudoers"],
];

/// Prefixes of the device names of disks and of memory.
const DISKS: &[&str] = &[
    "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "dm-", "md", "mem", "kmem",
];
/// One disk of each kind, to compare patterns with: `/dev/sd*`, `/dev/nvme?n1`.
const SAMPLES: &[&str] = &[
    "sda", "sda1", "hda", "vda", "vda1", "xvda", "nvme0n1", "mmcblk0", "disk0", "rdisk0", "dm-0",
    "md0",
];

/// Whether the path is a home, or means all that lies in one.
pub(super) fn means_home_or_all_inside(path: &[&str], home: &[&str]) -> bool {
    let somebody = match path {
        ["home" | "Users", name] => is_one_users_home_name(name),
        ["home" | "Users", name, all] => {
            is_one_users_home_name(name) && glob_matches_nearly_every_file_name(all)
        }
        ["root"] => true,
        // `home-of` is how paths.rs writes the home of `~bob`.
        ["root", all] | ["\u{2}home-of", _, all] => glob_matches_nearly_every_file_name(all),
        // `~bob`
        ["\u{2}home-of", _] => true,
        _ => false,
    };
    somebody || means_folder_or_all_inside(path, home)
}

fn is_one_users_home_name(name: &str) -> bool {
    // The folder `Shared` among the homes of macOS is the home of nobody.
    !name.contains(UNKNOWN) && !matches!(name, "Shared" | "**")
}

/// Whether the path is a folder of the system, or means all that lies in one.
pub(super) fn is_system_path(path: &[&str]) -> bool {
    SYSTEM_FOLDERS
        .iter()
        .any(|folder| means_folder_or_all_inside(path, folder))
}

/// Whether the path is a system folder meant for what people add to it, or means everything in one.
pub(super) fn is_user_managed_system_path(path: &[&str]) -> bool {
    let folder = match path {
        [folder @ .., all] if glob_matches_nearly_every_file_name(all) => folder,
        folder => folder,
    };
    matches!(
        folder,
        ["usr", "local"] | ["opt" | "srv" | "mnt" | "media" | "Applications" | "Volumes"]
    )
}

/// Whether the path is a file that says who can log in.
pub(super) fn is_login_account_file_path(path: &[&str]) -> bool {
    matches!(
        path,
        ["etc", "passwd" | "shadow" | "group" | "sudoers"]
            | ["private", "etc", "passwd" | "group" | "sudoers"]
    )
}

/// Whether the path is a disk, or a pattern that means one.
pub(super) fn is_disk_device_or_glob(path: &[&str]) -> bool {
    match path {
        ["dev", "mapper" | "disk" | "block", rest @ ..] => {
            // `/dev/mapper/control` is the interface of the device mapper, and no disk.
            rest.last().is_some_and(|name| *name != "control")
        }
        // A name that is not known is asked about elsewhere; refusing needs more.
        ["dev", name] if name.contains(UNKNOWN) || *name == PIECE => false,
        ["dev", name] if is_glob(name) => SAMPLES.iter().any(|disk| globs_intersect(name, disk)),
        ["dev", name] => DISKS.iter().any(|begins| {
            let rest = name.strip_prefix(begins);
            // `sda`, `nvme0n1`, `mem`, but not `hdmi`.
            rest.is_some_and(|rest| match *begins {
                "mem" | "kmem" => rest.is_empty(),
                "sd" | "hd" | "vd" | "xvd" => {
                    // One or two drive letters, then the number of a partition: `sda`, `sdaa3`.
                    let letters = rest.trim_end_matches(|c: char| c.is_ascii_digit());
                    (1..=2).contains(&letters.len())
                        && (letters.len() == 1 || *begins != "hd")
                        && letters.chars().all(|c| c.is_ascii_lowercase())
                }
                _ => rest.starts_with(|c: char| c.is_ascii_digit()),
            })
        }),
        _ => false,
    }
}

/// Whether the path is a loop device, or a partition of one.
pub(super) fn is_loop_device_path(path: &[&str]) -> bool {
    let (["dev", name] | ["dev", "mapper", name]) = path else {
        return false;
    };
    let number = name.strip_prefix("loop").unwrap_or("");
    let part = |c: char| c.is_ascii_digit() || c == 'p';
    number.starts_with(|c: char| c.is_ascii_digit()) && number.chars().all(part)
}

fn means_folder_or_all_inside(path: &[&str], folder: &[&str]) -> bool {
    let named = |path: &[&str]| {
        path.len() == folder.len()
            && path.iter().zip(folder).all(|(part, name)| {
                // Refusal needs a named folder: an unknown part or `**` can mean anything.
                !part.contains(UNKNOWN) && *part != "**" && globs_intersect(part, name)
            })
    };
    if named(path) {
        return true;
    }
    match path.split_last() {
        // `**/NAME` stands for what `find` selected, which is not everything in the folder.
        Some((last, above)) if above.last() != Some(&"**") => {
            glob_matches_nearly_every_file_name(last) && named(above)
        }
        _ => false,
    }
}

/// Whether a pattern matches nearly every name: it contains no literal letter.
fn glob_matches_nearly_every_file_name(part: &str) -> bool {
    let mut rest = part;
    let mut outside = String::new();
    // A class such as `[a-z]` asks for no certain letter, so only text outside of classes counts.
    while let Some((before, class)) = rest.split_once('[') {
        outside.push_str(before);
        // `[]x]`, `[!]x]`: a bracket that comes first is one of the class.
        let skip = usize::from(class.starts_with(['!', '^'])) + 1;
        let end = class
            .char_indices()
            .skip(skip)
            .find(|(_, c)| *c == ']')
            .map(|(at, _)| at + 1);
        match end {
            Some(end) => rest = class.get(end..).unwrap_or(""),
            None => return false,
        }
    }
    outside.push_str(rest);
    is_glob(part) && outside.chars().all(|c| matches!(c, '*' | '?' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> Vec<&str> {
        path.split('/').filter(|part| !part.is_empty()).collect()
    }

    #[test]
    fn homes() {
        for path in [
            "/home/dev",
            "/home/*",
            "/home/dev/*",
            "/home/dev/.*",
            "/home/dev/.[!.]*",
            "/home/dev/[a-z]*",
            "/home/dev/??*",
            "/root",
            "/root/*",
            "/Users/you",
            "/h*/dev",
        ] {
            assert!(
                means_home_or_all_inside(&parts(path), &["home", "dev"]),
                "{path}"
            );
        }
        for path in [
            "/home/dev/.cache",
            "/home/dev/.cache/*",
            "/home/dev/D*",
            "/home/dev/repo",
            "/home/dev/**/?*",
            "/home/dev/**/*.pyc",
            "/tmp/home/dev",
            "/home/\u{1}",
            "/home/**/?*",
        ] {
            assert!(
                !means_home_or_all_inside(&parts(path), &["home", "dev"]),
                "{path}"
            );
        }
        assert!(!means_home_or_all_inside(
            &["Users", "Shared"],
            &["home", "dev"]
        ));
    }

    #[test]
    fn folders_of_the_system() {
        for path in [
            "/",
            "/*",
            "/.*",
            "/[a-z]*",
            "/etc",
            "/etc/*",
            "/e*",
            "/usr",
            "/u*",
            "/usr/*",
            "/usr/lib",
            "/usr/l*",
            "/var/lib/*",
            "/boot/*",
            "/bin",
            "/etc/passwd",
        ] {
            assert!(is_system_path(&parts(path)), "{path}");
        }
        for path in [
            "/tmp",
            "/tmp/*",
            "/var/tmp/x",
            "/etc/nginx",
            "/usr/local/go",
            "/var/lib/apt/lists/*",
            "/var/cache/*",
            "/var/log/*",
            "/opt/x",
            "/app",
            "/srv/www",
            "/**/core",
            "/**/?*",
            "/etc/apt/sources.list.d/x.list",
            "/usr/share/doc/*",
            "/\u{1}",
            "/mnt/data",
        ] {
            assert!(!is_system_path(&parts(path)), "{path}");
        }
    }

    #[test]
    fn disks() {
        for path in [
            "/dev/sda",
            "/dev/sdb1",
            "/dev/sdaa",
            "/dev/nvme0n1p2",
            "/dev/mmcblk0",
            "/dev/disk2",
            "/dev/rdisk2",
            "/dev/vda",
            "/dev/md0",
            "/dev/dm-0",
            "/dev/mapper/root",
            "/dev/sd*",
            "/dev/disk/by-id/x",
            "/dev/mem",
            "/dev/nvme?n1",
        ] {
            assert!(is_disk_device_or_glob(&parts(path)), "{path}");
        }
        for path in [
            "/dev/null",
            "/dev/ttyUSB0",
            "/dev/hdmi",
            "/dev/shm/x",
            "/dev/loop0",
            "/dev/kvm",
            "/dev/stdin",
            "/dev/tty*",
            "/dev/disks",
            "/dev/video0",
            "/dev/sde2e",
        ] {
            assert!(!is_disk_device_or_glob(&parts(path)), "{path}");
        }
    }
}
