//! Reads an agent's message from stdin to its end, but not beyond a size, nor beyond a deadline.

use std::io::{self, Read};
use std::time::Instant;

/// Largest message that is read, in bytes.
pub(crate) const MAX_INPUT: u64 = 8 * 1024 * 1024;

/// A message that was not read to its end.
pub(crate) struct HookMessageReadError {
    pub(crate) head: Vec<u8>,
    /// Why, for people.
    pub(crate) why: String,
}

/// Reads the message. An agent that has not closed stdin by `due` is not waited for: it would take
/// our silence for consent.
pub(crate) fn read_hook_stdin_bytes(due: Option<Instant>) -> Result<Vec<u8>, HookMessageReadError> {
    let mut stdin = DeadlineStdin {
        from: io::stdin().lock(),
        due,
    };
    let mut bytes = Vec::new();
    if let Err(error) = read_message_up_to_limit(&mut stdin, &mut bytes) {
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

/// Reads all of it, or one piece more than is allowed.
fn read_message_up_to_limit(from: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    // As large as the buffer of stdin, so that no bytes stay in it while `poll` waits for more.
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

/// Stdin with a deadline.
struct DeadlineStdin {
    from: io::StdinLock<'static>,
    due: Option<Instant>,
}

impl Read for DeadlineStdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(due) = self.due {
            wait_until_stdin_readable(&self.from, due)?;
        }
        self.from.read(buffer)
    }
}

/// Waits until there is something to read, or the end.
#[cfg(unix)]
fn wait_until_stdin_readable(from: &io::StdinLock<'_>, due: Instant) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    loop {
        let left = due.saturating_duration_since(Instant::now());
        // A time that does not fit is longer than any wait of ours, so there is no timeout.
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
fn wait_until_stdin_readable(_from: &io::StdinLock<'_>, _due: Instant) -> io::Result<()> {
    Ok(())
}
