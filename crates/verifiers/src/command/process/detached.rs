//! Starts a process that outlives its parent and keeps nobody waiting. A reader of a pipe waits
//! until every process that has the pipe open for writing has closed it.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use rustix::process::setsid;

/// Starts `command` in a session of its own. It inherits no descriptor besides its three standard
/// ones, not even those that this process was started with.
///
/// # Errors
/// As [`Command::spawn`].
#[expect(
    unsafe_code,
    reason = "pre_exec: `stand_alone` does nothing but system calls"
)]
pub fn spawn_detached(mut command: Command) -> io::Result<Child> {
    // SAFETY: after the fork of a process with threads only async-signal-safe calls are allowed,
    // and `detach_from_parent` makes no others.
    unsafe { command.pre_exec(detach_from_parent) };
    command.spawn()
}

#[expect(unsafe_code, reason = "rustix has no close_range")]
fn detach_from_parent() -> io::Result<()> {
    // A new session has no terminal, so the hangup of the parent's terminal does not reach it.
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
    // `CLOSE_RANGE_CLOEXEC` needs Linux 5.11. Without it descriptors above this bound stay open,
    // which is rare enough.
    for fd in 3..1024 {
        // SAFETY: as above; a number that is not open is an error, and no harm.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}
