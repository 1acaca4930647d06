//! The messages between hook and owner, one JSON value per line.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::ids::VerifierName;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The longest line.
const MAX_LINE_BYTES: u64 = 1 << 20;
/// How long a reader waits at a time before it looks at other things.
const TICK: Duration = Duration::from_millis(50);

/// One end of the connection between a hook and its owner.
pub struct HookWorkerLinkEnd {
    end: Box<dyn WorkerTransport>,
}

impl fmt::Debug for HookWorkerLinkEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnerLink").finish_non_exhaustive()
    }
}

/// Carries the lines. It ends when the process at the other end does.
pub trait WorkerTransport: Send {
    /// Waits for a line, but only for a moment.
    fn receive_line_from_worker_link(&mut self) -> WorkerLinkReadOutcome;

    /// Returns a writer to the other end.
    ///
    /// # Errors
    /// If this process can have no more descriptors.
    fn worker_link_writer(&self) -> io::Result<Box<dyn WorkerTransportWriter>>;
}

/// See [`WorkerTransport::worker_link_writer`].
pub trait WorkerTransportWriter: Send + Sync {
    /// Sends a line, which ends with a line feed.
    ///
    /// # Errors
    /// If the other end is gone.
    fn send_worker_link_line(&self, line: &[u8]) -> io::Result<()>;
}

/// The outcome of waiting for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerLinkReadOutcome {
    /// A line, with the line feed at its end.
    Line(Vec<u8>),
    /// No line yet.
    Nothing,
    /// There will be no more lines.
    End,
}

/// A connection between two processes.
struct WorkerSocketTransport {
    lines: BufReader<UnixStream>,
    /// The beginning of a line whose end has not come yet.
    begun: Vec<u8>,
}

/// A message of an owner.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkerToHookMessage {
    Started {
        verifier: VerifierName,
        command: String,
    },
    /// Evidence is kept under this id.
    Done { run: Digest },
}

/// A message of a hook after the batch.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HookToWorkerMessage {
    /// The hook no longer waits: go on alone.
    Keep,
}

/// The outcome of listening for a moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WorkerLinkReceiveOutcome<T> {
    Message(T),
    Nothing,
    /// The other end is gone.
    End,
}

impl HookWorkerLinkEnd {
    /// Creates a link over this end of a socket pair.
    ///
    /// # Errors
    /// If it is no socket.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        // Reads return after a moment, so that the reader can look at other things.
        stream.set_read_timeout(Some(TICK))?;
        Ok(Self::over_transport(WorkerSocketTransport {
            lines: BufReader::new(stream),
            begun: Vec::new(),
        }))
    }

    /// Creates a link over another transport.
    pub fn over_transport(end: impl WorkerTransport + 'static) -> Self {
        Self { end: Box::new(end) }
    }

    pub(super) fn send_message(&self, said: &impl Serialize) -> io::Result<()> {
        write_worker_link_message(&*self.worker_transport_writer()?, said)
    }

    pub(super) fn worker_transport_writer(&self) -> io::Result<Box<dyn WorkerTransportWriter>> {
        self.end.worker_link_writer()
    }

    /// Receives a message. A line that cannot be read ends the link: nobody could be told about it.
    pub(super) fn receive_link_message<T: DeserializeOwned>(
        &mut self,
    ) -> WorkerLinkReceiveOutcome<T> {
        match self.end.receive_line_from_worker_link() {
            WorkerLinkReadOutcome::Line(line) => serde_json::from_slice(&line).map_or(
                WorkerLinkReceiveOutcome::End,
                WorkerLinkReceiveOutcome::Message,
            ),
            WorkerLinkReadOutcome::Nothing => WorkerLinkReceiveOutcome::Nothing,
            WorkerLinkReadOutcome::End => WorkerLinkReceiveOutcome::End,
        }
    }
}

impl WorkerTransport for WorkerSocketTransport {
    fn receive_line_from_worker_link(&mut self) -> WorkerLinkReadOutcome {
        // The bound includes what came before the last pause, so no line can grow beyond it.
        let left = MAX_LINE_BYTES.saturating_sub(self.begun.len() as u64);
        let mut bounded = (&mut self.lines).take(left);
        match bounded.read_until(b'\n', &mut self.begun) {
            Ok(_) if self.begun.ends_with(b"\n") => {
                WorkerLinkReadOutcome::Line(std::mem::take(&mut self.begun))
            }
            // The end of the stream, or a line that is too long.
            Ok(_) => WorkerLinkReadOutcome::End,
            Err(error) => match error.kind() {
                // The beginning of a line stays in `begun`, so a pause in its middle loses nothing.
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                    WorkerLinkReadOutcome::Nothing
                }
                _ => WorkerLinkReadOutcome::End,
            },
        }
    }

    fn worker_link_writer(&self) -> io::Result<Box<dyn WorkerTransportWriter>> {
        Ok(Box::new(self.lines.get_ref().try_clone()?))
    }
}

impl WorkerTransportWriter for UnixStream {
    fn send_worker_link_line(&self, line: &[u8]) -> io::Result<()> {
        let mut stream = self;
        stream.write_all(line)
    }
}

pub(super) fn write_worker_link_message(
    writer: &dyn WorkerTransportWriter,
    said: &impl Serialize,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    writer.send_worker_link_line(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_heard_whole_and_an_end_is_an_end() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut link = HookWorkerLinkEnd::new(here).unwrap();
        assert_eq!(
            link.receive_link_message::<HookToWorkerMessage>(),
            WorkerLinkReceiveOutcome::Nothing
        );
        there.write_all(b"\"ke").unwrap();
        assert_eq!(
            link.receive_link_message::<HookToWorkerMessage>(),
            WorkerLinkReceiveOutcome::Nothing
        );
        there.write_all(b"ep\"\n").unwrap();
        assert_eq!(
            link.receive_link_message(),
            WorkerLinkReceiveOutcome::Message(HookToWorkerMessage::Keep)
        );
        there.write_all(b"\"kee").unwrap();
        drop(there);
        assert_eq!(
            link.receive_link_message::<HookToWorkerMessage>(),
            WorkerLinkReceiveOutcome::End
        );
    }

    #[test]
    fn half_a_line_is_none() {
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(b"\"keep\"").unwrap();
        drop(there);
        let mut link = HookWorkerLinkEnd::new(here).unwrap();
        assert_eq!(
            link.receive_link_message::<HookToWorkerMessage>(),
            WorkerLinkReceiveOutcome::End
        );
    }
}
