//! The keeper: a process between Checkrein and a check, forked and never exec'd. It is the
//! subreaper of the check's tree (`PR_SET_CHILD_SUBREAPER`), so every process that loses its parent
//! (a daemon that forked twice and called setsid, with or without its environment) becomes its
//! child and nobody else's. Killing its children until there are none kills exactly the tree.
//!
//! INVARIANT: this code runs after `fork` in a process that had threads. It does not allocate, lock
//! or panic; it makes system calls on stack memory only.

use std::io::{self, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, kill_process_group, pidfd_open,
    set_child_subreaper, set_parent_process_death_signal, setsid, wait,
};

/// How often adopted processes that have ended are reaped while the check runs.
const REAP: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
/// The same on a kernel without pidfd, where the check's own end is found this way too.
const REAP_WITHOUT_PIDFD: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};
/// Time between two rounds of killing, and the number of rounds after which surviving processes are
/// given up.
const ROUND: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};
const ROUNDS: u32 = 5_000;

/// Called between fork and exec. Returns in the process that becomes the check; the parent stays as
/// the keeper. The keeper has `lock` open until the tree is gone; the check does not.
pub(super) fn fork_subreaper(
    leash: &OwnedFd,
    report: &OwnedFd,
    lock: Option<&OwnedFd>,
) -> io::Result<()> {
    // A session of its own: what a terminal or `kill 0` sends does not reach the keeper.
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    match fork_with_libc()? {
        None => {
            // The check leads its own session and group too, so that the whole group can be killed
            // at once below.
            setsid()?;
            // The keeper has one thread, so this fires at its end and no sooner.
            set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        }
        Some(check) => {
            // From here on this is the keeper: nothing may return into the forked program.
            block_signals();
            // This also closes the pipe on which `Command::spawn` waits for the exec, and the
            // check's output: the keeper would hold both open.
            let lock = lock.unwrap_or(leash).as_raw_fd();
            close_all_fds_except([leash.as_raw_fd(), report.as_raw_fd(), lock]);
            let (status, survivors) = wait_for_check_process_tree(check, leash);
            let [a, b, c, d] = status.unwrap_or(0).to_ne_bytes();
            // Five bytes are within `PIPE_BUF`, so they arrive whole or not at all.
            let _ = rustix::io::write(report, &[a, b, c, d, u8::from(survivors)]);
            exit_immediately()
        }
    }
}

/// Waits for the end of the check or of the leash, then for the end of the whole tree. Returns the
/// check's status, and whether some of the tree would not die.
fn wait_for_check_process_tree(check: Pid, leash: &OwnedFd) -> (Option<i32>, bool) {
    let mut status = None;
    // A pidfd becomes readable when the process ends; there is none before Linux 5.3.
    let pidfd = pidfd_open(check, PidfdFlags::empty()).ok();
    let pause = if pidfd.is_some() {
        REAP
    } else {
        REAP_WITHOUT_PIDFD
    };
    let end = pidfd.as_ref().unwrap_or(leash);
    loop {
        // No events are asked for: `POLLHUP` is always reported, and comes when the last writer is
        // gone.
        let held = PollFd::from_borrowed_fd(leash.as_fd(), PollFlags::empty());
        let mut fds = [held, PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN)];
        let _ = poll(&mut fds, Some(&pause));
        let [held, _] = fds;
        if !held.revents().is_empty() {
            // Only as long as the check is not reaped: its number could be another group's after
            // that.
            let _ = kill_process_group(check, Signal::KILL);
            break;
        }
        reap_children(check, &mut status);
        if status.is_some() {
            break;
        }
    }
    // In rounds, because the children of a killed process become the keeper's own only when it
    // dies.
    for _ in 0..ROUNDS {
        if reap_children(check, &mut status) {
            return (status, false);
        }
        kill_children();
        let _ = poll(&mut [], Some(&ROUND));
    }
    (status, true)
}

/// Reaps children that have ended and returns whether none is left.
fn reap_children(check: Pid, status: &mut Option<i32>) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, ended))) if pid == check => *status = Some(ended.as_raw()),
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(rustix::io::Errno::INTR) => {}
            // `ECHILD`: there are no children any more.
            Err(_) => return true,
        }
    }
}

/// Kills the keeper's children. Their children become its own by that and die in the next round.
fn kill_children() {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(proc) = openat(CWD, c"/proc", flags, Mode::empty()) else {
        return;
    };
    let keeper = getpid();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&proc, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        let Some(pid) = parse_decimal_bytes(entry.file_name().to_bytes()).and_then(Pid::from_raw)
        else {
            continue;
        };
        if parent_pid(&proc, pid) == Some(keeper) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Returns the fourth field of `/proc/PID/stat`. The second, the name, may contain blanks and
/// parentheses, so the fields are counted from the last `)`.
fn parent_pid(proc: &OwnedFd, pid: Pid) -> Option<Pid> {
    // `format!` would allocate, which is not allowed after a fork.
    let mut path = [0_u8; 24];
    let mut rest = path.as_mut_slice();
    write!(rest, "{}/stat", pid.as_raw_nonzero()).ok()?;
    let unused = rest.len();
    let path = path.get(..path.len().checked_sub(unused)?)?;
    let file = openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0_u8; 256];
    let length = rustix::io::read(&file, &mut text).ok()?;
    let text = text.get(..length)?;
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    let parent = text.get(name_end..)?.split(|byte| *byte == b' ').nth(2)?;
    Pid::from_raw(parse_decimal_bytes(parent)?)
}

fn parse_decimal_bytes(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[expect(unsafe_code, reason = "rustix has no stable fork")]
fn fork_with_libc() -> io::Result<Option<Pid>> {
    // SAFETY: no invariants of ours are at stake; both sides go on with system calls only.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

#[expect(unsafe_code, reason = "signal masks are not in rustix's stable part")]
fn block_signals() {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigfillset` initialises the set that `sigprocmask` reads. Handlers of the program
    // that this was forked from must not run here, and only SIGKILL may end the keeper.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
        // In a program that ignores SIGCHLD, the kernel would reap children before their status is
        // read.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

fn close_all_fds_except(mut kept: [RawFd; 3]) {
    // Closes the gaps between the kept descriptors, which may be equal.
    kept.sort_unstable();
    let mut first = 0;
    for fd in kept.map(RawFd::unsigned_abs) {
        close_descriptor_range(first, fd.checked_sub(1));
        first = fd + 1;
    }
    close_descriptor_range(first, Some(u32::MAX));
}

#[expect(
    unsafe_code,
    reason = "closes descriptors that Rust values of the forked program own"
)]
fn close_descriptor_range(first: u32, last: Option<u32>) {
    let Some(last) = last.filter(|last| first <= *last) else {
        return;
    };
    // SAFETY: nothing of the forked program runs here any more, so nobody misses them.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, last, 0) != 0 {
            // `close_range` needs Linux 5.9. Without it descriptors above this bound stay open,
            // which is rare enough.
            for fd in first..=last.min(65_536) {
                libc::close(fd.cast_signed());
            }
        }
    }
}

#[expect(
    unsafe_code,
    reason = "`std::process::exit` would run handlers of the forked program"
)]
fn exit_immediately() -> ! {
    // SAFETY: ends this process without running anything.
    unsafe { libc::_exit(0) }
}
