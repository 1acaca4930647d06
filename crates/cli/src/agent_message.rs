//! An agent's message on stdin: read to its end, but not beyond a size, nor beyond a moment.

use std::io::{self, Read};
use std::time::Instant;

/// More is not read.
pub(crate) const MAX_INPUT: u64 = 8 * 1024 * 1024;

/// A message that was not read to its end.
pub(crate) struct HookMessageReadError {
    pub(crate) head: Vec<u8>,
    /// For people.
    pub(crate) why: String,
}

/// Reads it. Who has not closed it by `due` is not waited for: the agent would take our silence
/// for consent.
pub(crate) fn read_hook_stdin_message(
    due: Option<Instant>,
) -> Result<Vec<u8>, HookMessageReadError> {
    let mut stdin = DeadlineStdin {
        from: io::stdin().lock(),
        due,
    };
    let mut bytes = Vec::new();
    if let Err(error) = read_bounded_message(&mut stdin, &mut bytes) {
        return Err(HookMessageReadError {
            head: bytes,
            why: format!("the agent's message could not be read: {error}"),
        });
    }
    if bytes.len() as u64 > MAX_INPUT {
        // The agent must not be left writing into a closed pipe.
        let _ = io::copy(&mut stdin, &mut io::sink());
        let why = format!(
            "the agent's message is larger than {} MiB; it was not judged",
            MAX_INPUT >> 20
        );
        return Err(HookMessageReadError { head: bytes, why });
    }
    Ok(bytes)
}

/// All of it, or a piece more than may be.
fn read_bounded_message(from: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    // As large as the buffer of stdin, which then keeps nothing back from who waits for more.
    let mut piece = [0; 8 * 1024];
    while bytes.len() as u64 <= MAX_INPUT {
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => bytes.extend(piece.iter().take(length)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Stdin until a moment.
struct DeadlineStdin {
    from: io::StdinLock<'static>,
    due: Option<Instant>,
}

impl Read for DeadlineStdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(due) = self.due {
            wait_readable(&self.from, due)?;
        }
        self.from.read(buffer)
    }
}

/// Waits until there is something to read, or the end.
#[cfg(unix)]
fn wait_readable(from: &io::StdinLock<'_>, due: Instant) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    loop {
        let left = due.saturating_duration_since(Instant::now());
        // Longer than any wait of ours if it does not fit.
        let left = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(from, PollFlags::IN)], left.as_ref()) {
            Ok(0) => {
                let why = "its end did not come in time";
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Elsewhere the agent's own timeout ends the wait.
#[cfg(not(unix))]
fn wait_readable(_from: &io::StdinLock<'_>, _due: Instant) -> io::Result<()> {
    Ok(())
}
