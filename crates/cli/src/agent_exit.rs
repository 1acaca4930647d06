//! Ends a hook whose agent is gone: nobody waits for its answer, and what it started must not go
//! on.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::Ordering;

use checkrein_runtime::{RealSystem, System as _};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::signals::CANCELLED;

/// Makes the end of the agent above this process cancel what it does, as a signal would. The agent
/// has ended if nobody reads our output any more and its process is gone: a helper that starts
/// hooks may end before them, and an agent may want the exit status only. Kernels before 5.3 cannot
/// tell.
pub(crate) fn cancel_when_agent_exits() {
    let agent = RealSystem.find_agent_process_above_hook();
    let pid = agent.and_then(|agent| Pid::from_raw(i32::try_from(agent.pid()).ok()?));
    let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // The process id may have been reused before it was opened.
    let process = process.filter(|_| agent.is_some_and(|agent| RealSystem.is_process_alive(agent)));
    let Some(process) = process else { return };
    // The thread ends with this process. If none can be started, the answer's deadline ends the
    // work.
    let _ = std::thread::Builder::new().spawn(move || {
        // A pipe without a reader reports an error, a socket without a peer a hang-up; poll(2)
        // reports both unasked.
        let heard = block_until_descriptor_event(std::io::stdout().as_fd(), PollFlags::empty())
            .and_then(|()| block_until_descriptor_event(process.as_fd(), PollFlags::IN));
        if heard.is_ok() {
            CANCELLED.store(true, Ordering::Relaxed);
        }
    });
}

fn block_until_descriptor_event(of: BorrowedFd<'_>, event: PollFlags) -> Result<(), Errno> {
    loop {
        match poll(&mut [PollFd::from_borrowed_fd(of, event)], None) {
            Err(Errno::INTR) => {}
            heard => return heard.map(|_| ()),
        }
    }
}
