//! A process that outlives whoever starts it, and keeps nobody waiting: who reads a pipe to its end waits
//! for every process that has it open to write.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use rustix::process::setsid;

/// Starts `command` in a session of its own. It has no descriptor open but the three of its own, also not
/// those that this process was started with.
///
/// # Errors
/// As of `Command::spawn`.
#[expect(
    unsafe_code,
    reason = "pre_exec: `stand_alone` does nothing but system calls"
)]
pub fn spawn_detached(mut command: Command) -> io::Result<Child> {
    // SAFETY: after the fork of a process with threads only async-signal-safe calls are allowed, and
    // `stand_alone` makes no others.
    unsafe { command.pre_exec(detach_from_parent) };
    command.spawn()
}

#[expect(unsafe_code, reason = "rustix has no close_range")]
fn detach_from_parent() -> io::Result<()> {
    setsid()?;
    // SAFETY: closes nothing before the exec, and what Rust has open is marked so anyway.
    let marked = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if marked == 0 {
        return Ok(());
    }
    // Before Linux 5.11. Descriptors above this bound are rare enough.
    for fd in 3..1024 {
        // SAFETY: as above; a number that is not open is an error, and no harm.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}
