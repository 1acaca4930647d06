//! What hook and owner say to each other, one JSON value a line.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::ids::VerifierName;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longer no line is.
const LONGEST_LINE: u64 = 1 << 20;
/// How long a reader waits at a time before it looks at other things.
const TICK: Duration = Duration::from_millis(50);

/// One end of the connection between a hook and its owner.
pub struct OwnerLink {
    end: Box<dyn LinkEnd>,
}

impl fmt::Debug for OwnerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnerLink").finish_non_exhaustive()
    }
}

/// What carries the lines. It ends when the process at the other end does.
pub trait LinkEnd: Send {
    /// Waits a moment for a line.
    fn receive(&mut self) -> Received;

    /// The way to the other end.
    ///
    /// # Errors
    /// If this process can have no more descriptors.
    fn writer(&self) -> io::Result<Box<dyn LinkWriter>>;
}

/// See [`LinkEnd::writer`].
pub trait LinkWriter: Send + Sync {
    /// Sends a line, which ends with a line feed.
    ///
    /// # Errors
    /// If the other end is gone.
    fn send(&self, line: &[u8]) -> io::Result<()>;
}

/// What came of waiting for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// One, with the line feed at its end.
    Line(Vec<u8>),
    /// None yet.
    Nothing,
    /// There will be none.
    End,
}

/// A connection between two processes.
struct SocketEnd {
    lines: BufReader<UnixStream>,
    /// The beginning of a line whose end has not come yet.
    begun: Vec<u8>,
}

/// What an owner says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OwnerSays {
    Started {
        verifier: VerifierName,
        command: String,
    },
    /// Evidence is kept under this id.
    Done { run: Digest },
}

/// What a hook says after the batch.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HookSays {
    /// Nobody waits any more; go on alone.
    Keep,
}

/// What came of listening for a moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard<T> {
    Said(T),
    Nothing,
    /// The other end is gone.
    End,
}

impl OwnerLink {
    /// Over this end of a pair.
    ///
    /// # Errors
    /// If it is no socket.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(TICK))?;
        Ok(Self::over(SocketEnd {
            lines: BufReader::new(stream),
            begun: Vec::new(),
        }))
    }

    /// Over something else that carries lines.
    pub fn over(end: impl LinkEnd + 'static) -> Self {
        Self { end: Box::new(end) }
    }

    pub(super) fn say(&self, said: &impl Serialize) -> io::Result<()> {
        say(&*self.writer()?, said)
    }

    pub(super) fn writer(&self) -> io::Result<Box<dyn LinkWriter>> {
        self.end.writer()
    }

    /// What cannot be read ends it: there is nobody to say so to.
    pub(super) fn hear<T: DeserializeOwned>(&mut self) -> Heard<T> {
        match self.end.receive() {
            Received::Line(line) => serde_json::from_slice(&line).map_or(Heard::End, Heard::Said),
            Received::Nothing => Heard::Nothing,
            Received::End => Heard::End,
        }
    }
}

impl LinkEnd for SocketEnd {
    fn receive(&mut self) -> Received {
        let left = LONGEST_LINE.saturating_sub(self.begun.len() as u64);
        let mut bounded = (&mut self.lines).take(left);
        match bounded.read_until(b'\n', &mut self.begun) {
            Ok(_) if self.begun.ends_with(b"\n") => Received::Line(std::mem::take(&mut self.begun)),
            Ok(_) => Received::End,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                    Received::Nothing
                }
                _ => Received::End,
            },
        }
    }

    fn writer(&self) -> io::Result<Box<dyn LinkWriter>> {
        Ok(Box::new(self.lines.get_ref().try_clone()?))
    }
}

impl LinkWriter for UnixStream {
    fn send(&self, line: &[u8]) -> io::Result<()> {
        let mut stream = self;
        stream.write_all(line)
    }
}

pub(super) fn say(writer: &dyn LinkWriter, said: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    writer.send(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_heard_whole_and_an_end_is_an_end() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut link = OwnerLink::new(here).unwrap();
        assert_eq!(link.hear::<HookSays>(), Heard::Nothing);
        there.write_all(b"\"ke").unwrap();
        assert_eq!(link.hear::<HookSays>(), Heard::Nothing);
        there.write_all(b"ep\"\n").unwrap();
        assert_eq!(link.hear(), Heard::Said(HookSays::Keep));
        there.write_all(b"\"kee").unwrap();
        drop(there);
        assert_eq!(link.hear::<HookSays>(), Heard::End);
    }

    #[test]
    fn half_a_line_is_none() {
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(b"\"keep\"").unwrap();
        drop(there);
        let mut link = OwnerLink::new(here).unwrap();
        assert_eq!(link.hear::<HookSays>(), Heard::End);
    }
}
