//! `checkrein confined-exec PLAN CMD ARGS...`: a mount namespace of our own, for where there is
//! no bubblewrap. Makes the plan's mounts, gives up every capability, becomes CMD. It never
//! comes back: whatever fails, CMD is not started.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::fs::StatVfsMountFlags;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};
use rustix::process::{getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use super::plan::{Mount, Plan};
use crate::{exit_code, ui};

pub(crate) fn main(words: Vec<OsString>) -> ExitCode {
    let [plan, program, arguments @ ..] = words.as_slice() else {
        ui::say("checkrein: confined-exec is for checkrein run --confine");
        return exit_code::exit(exit_code::USAGE);
    };
    let error = match enter(Path::new(plan)) {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    };
    ui::say(&error.to_string());
    exit_code::exit(exit_code::USAGE)
}

fn enter(plan: &Path) -> io::Result<()> {
    let plan: Plan = serde_json::from_slice(&std::fs::read(plan)?)?;
    let here = std::env::current_dir()?;
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    said("unshare", unshare())?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    said("mount --make-rprivate /", mount_change("/", private))?;
    for mount in &plan.mounts {
        make(mount)?;
    }
    if plan.root {
        cover_disks()?;
    }
    // We still stand in the folder below the mounts, where all can be written.
    std::env::set_current_dir(here)?;
    drop_capabilities(plan.root)?;
    Ok(())
}

#[expect(
    unsafe_code,
    reason = "it is unsafe for programs with threads; this has one"
)]
fn unshare() -> rustix::io::Result<()> {
    // SAFETY: called first thing by a process with one thread; no file descriptors are unshared.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) }
}

fn make(one: &Mount) -> io::Result<()> {
    match one {
        Mount::Pin(folder) => bind(folder, folder),
        Mount::ReadOnly { from, to } => {
            bind(from, to)?;
            // Flags that the mount had before us must stay.
            let had = rustix::fs::statvfs(to)?.f_flag;
            let mut flags = MountFlags::BIND | MountFlags::RDONLY;
            for (set, flag) in [
                (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
                (StatVfsMountFlags::NODEV, MountFlags::NODEV),
                (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
                (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
                (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
                (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
            ] {
                if had.contains(set) {
                    flags |= flag;
                }
            }
            said(
                &format!("remount {} read-only", to.display()),
                mount_remount(to, flags, ""),
            )
        }
        Mount::Hide(folder) => said(
            &format!("hide {}", folder.display()),
            mount("tmpfs", folder, "tmpfs", MountFlags::empty(), None),
        ),
    }
}

fn bind(from: &Path, to: &Path) -> io::Result<()> {
    said(
        &format!("bind {}", to.display()),
        mount_bind_recursive(from, to),
    )
}

/// Root could write to a disk without any mount.
fn cover_disks() -> io::Result<()> {
    for entry in std::fs::read_dir("/dev")?.filter_map(Result::ok) {
        let path = entry.path();
        let raw = ["mem", "kmem", "port"]
            .iter()
            .any(|name| path.ends_with(name));
        let disk = entry.file_type().is_ok_and(|kind| kind.is_block_device());
        if raw || disk {
            bind(Path::new("/dev/null"), &path)?;
        }
    }
    Ok(())
}

fn drop_capabilities(root: bool) -> io::Result<()> {
    // What an agent's own sandbox needs to map root once more; it gives no file back.
    let kept = if root {
        CapabilitySet::SETFCAP
    } else {
        CapabilitySet::empty()
    };
    for capability in CapabilitySet::all()
        .iter()
        .filter(|one| !kept.contains(*one))
    {
        match remove_capability_from_bounding_set(capability) {
            // One that this kernel does not know cannot be had either.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return said("drop capabilities", Err(error)),
        }
    }
    said("drop ambient capabilities", clear_ambient_capability_set())?;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: kept,
    };
    said("drop capabilities", set_capabilities(None, sets))?;
    said("set no_new_privs", set_no_new_privs(true))
}

fn said(what: &str, result: rustix::io::Result<()>) -> io::Result<()> {
    result.map_err(|error| io::Error::other(format!("{what}: {}", io::Error::from(error))))
}
