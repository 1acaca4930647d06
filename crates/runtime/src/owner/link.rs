//! What hook and owner say to each other, one JSON value a line.

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

/// One end of the socket between a hook and its owner.
#[derive(Debug)]
pub struct OwnerLink {
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
    Done { verifier: VerifierName, run: Digest },
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
        Ok(Self {
            lines: BufReader::new(stream),
            begun: Vec::new(),
        })
    }

    pub(super) fn say(&self, said: &impl Serialize) -> io::Result<()> {
        say(self.lines.get_ref(), said)
    }

    /// The same end, for who only speaks.
    pub(super) fn speaker(&self) -> io::Result<UnixStream> {
        self.lines.get_ref().try_clone()
    }

    /// What cannot be read ends it: there is nobody to say so to.
    pub(super) fn hear<T: DeserializeOwned>(&mut self) -> Heard<T> {
        let left = LONGEST_LINE.saturating_sub(self.begun.len() as u64);
        let mut bounded = (&mut self.lines).take(left);
        match bounded.read_until(b'\n', &mut self.begun) {
            Ok(_) if self.begun.ends_with(b"\n") => {
                let line = std::mem::take(&mut self.begun);
                serde_json::from_slice(&line).map_or(Heard::End, Heard::Said)
            }
            Ok(_) => Heard::End,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                    Heard::Nothing
                }
                _ => Heard::End,
            },
        }
    }
}

pub(super) fn say(mut stream: &UnixStream, said: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    stream.write_all(&line)
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
}
