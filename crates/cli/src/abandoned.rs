//! A hook whose agent is gone: nobody waits for its answer, and what it started must not go on.

use std::os::fd::AsFd as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use checkrein_runtime::{RealSystem, System as _};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::signals::CANCELLED;

const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// From here on the end of the agent above this process cancels what it does, as a signal would. The agent has ended
/// if its process is gone and nobody reads our output any more: a helper that starts hooks may end before them.
pub(crate) fn listen() {
    let Some(agent) = RealSystem.agent() else {
        return;
    };
    // It ends with this process.
    std::thread::spawn(move || {
        while RealSystem.lives(agent) || is_read() {
            std::thread::sleep(LOOK_AGAIN);
        }
        CANCELLED.store(true, Ordering::Relaxed);
    });
}

/// Whether somebody may read what is printed. What is no pipe always may be read.
fn is_read() -> bool {
    let stdout = std::io::stdout();
    let mut output = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let _ = poll(&mut output, Some(&at_once));
    // Of a pipe without a reader it says the one, of a socket without a peer the other.
    !output[0]
        .revents()
        .intersects(PollFlags::ERR | PollFlags::HUP)
}
