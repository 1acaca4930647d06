//! Implements `checkrein confined-exec PLAN CMD ARGS...`: a mount namespace of our own, for where
//! there is no bubblewrap. It makes the plan's mounts, gives up every capability and becomes CMD.
//! It never returns to a caller that could go on: whatever fails, CMD is not started.

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

use super::mount_plan::{MountPlan, PlannedMount};
use crate::{exit_code, ui};

pub(crate) fn run_confined_exec_command(words: Vec<OsString>) -> ExitCode {
    let [plan, program, arguments @ ..] = words.as_slice() else {
        ui::print_wrapped_to_stderr("checkrein: confined-exec is for checkrein run --confine");
        return exit_code::to_exit_code(exit_code::USAGE);
    };
    let error = match enter_namespace(Path::new(plan)) {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    };
    ui::print_wrapped_to_stderr(&error.to_string());
    exit_code::to_exit_code(exit_code::USAGE)
}

fn enter_namespace(plan: &Path) -> io::Result<()> {
    let plan: MountPlan = serde_json::from_slice(&std::fs::read(plan)?)?;
    let here = std::env::current_dir()?;
    // Read before `unshare`: in a namespace without a map every id is that of nobody.
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    add_error_context("unshare", unshare_namespaces())?;
    // The kernel lets an unprivileged process write its group map only after this
    // (user_namespaces(7)).
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    // Mounts must not spread to the namespace that we came from, nor from there to here.
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    add_error_context("mount --make-rprivate /", mount_change("/", private))?;
    for mount in &plan.mounts {
        perform_mount(mount)?;
    }
    if plan.root {
        mask_disk_devices()?;
    }
    // The current folder is still the one below the mounts, where everything is writable.
    std::env::set_current_dir(here)?;
    drop_capabilities(plan.root)?;
    Ok(())
}

#[expect(
    unsafe_code,
    reason = "it is unsafe for programs with threads; this has one"
)]
fn unshare_namespaces() -> rustix::io::Result<()> {
    // SAFETY: called first thing by a process with one thread; no file descriptors are unshared.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) }
}

fn perform_mount(one: &PlannedMount) -> io::Result<()> {
    match one {
        PlannedMount::Pin(folder) => perform_bind_mount(folder, folder),
        PlannedMount::ReadOnly { from, to } => {
            perform_bind_mount(from, to)?;
            // The flags that the mount had must stay: the kernel refuses a remount that clears one
            // from within a user namespace.
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
            add_error_context(
                &format!("remount {} read-only", to.display()),
                mount_remount(to, flags, ""),
            )
        }
        PlannedMount::Hide(folder) => add_error_context(
            &format!("hide {}", folder.display()),
            mount("tmpfs", folder, "tmpfs", MountFlags::empty(), None),
        ),
    }
}

fn perform_bind_mount(from: &Path, to: &Path) -> io::Result<()> {
    add_error_context(
        &format!("bind {}", to.display()),
        mount_bind_recursive(from, to),
    )
}

/// Hides disks and memory devices from root, who could write to a disk without any mount.
fn mask_disk_devices() -> io::Result<()> {
    for entry in std::fs::read_dir("/dev")?.filter_map(Result::ok) {
        let path = entry.path();
        let raw = ["mem", "kmem", "port"]
            .iter()
            .any(|name| path.ends_with(name));
        let disk = entry.file_type().is_ok_and(|kind| kind.is_block_device());
        if raw || disk {
            perform_bind_mount(Path::new("/dev/null"), &path)?;
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
            Err(error) => return add_error_context("drop capabilities", Err(error)),
        }
    }
    add_error_context("drop ambient capabilities", clear_ambient_capability_set())?;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: kept,
    };
    add_error_context("drop capabilities", set_capabilities(None, sets))?;
    // Last: no set-uid program can give the agent back what was dropped.
    add_error_context("set no_new_privs", set_no_new_privs(true))
}

fn add_error_context(what: &str, result: rustix::io::Result<()>) -> io::Result<()> {
    result.map_err(|error| io::Error::other(format!("{what}: {}", io::Error::from(error))))
}
