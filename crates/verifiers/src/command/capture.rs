//! Takes in what a command prints: to its log on disk, to the readers, to the excerpt.
//! All bounded, so that a gigabyte of output fills neither memory nor disk.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use memchr::memmem;

use crate::Redact;
use crate::logs;
use crate::output::{Ends, Lines, plain};
use crate::run_report::{RunReport, RunReportReader};

/// Bytes of an output that its log keeps and its readers see: of the beginning, and of the end.
const MAX_HELD: usize = 64 * 1024;
/// A private key is the only secret that takes more than a line.
const KEY_BEGINS: &[u8] = b"-----BEGIN ";
const KEY_ENDS: &[u8] = b"-----END ";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) head: u64,
    pub(crate) tail: usize,
}

pub(crate) const BOUNDS: Bounds = Bounds {
    head: 32 << 20,
    tail: 8 << 20,
};

/// What became of the output.
pub(crate) struct Captured {
    /// Bytes of the output.
    pub(crate) total: u64,
    pub(crate) ends: Ends,
    /// What its lines say.
    pub(crate) report: RunReport,
    /// Withheld variables that it names.
    pub(crate) named: Vec<String>,
    /// The log, or why there is none.
    pub(crate) log: Result<PathBuf, String>,
}

pub(crate) struct Capture<'a> {
    bounds: Bounds,
    total: u64,
    redact: Redact<'a>,
    /// The beginning of a line, or of a private key: it is hidden whole or not at all.
    held: Vec<u8>,
    log: Result<(PathBuf, File), String>,
    tail: VecDeque<Vec<u8>>,
    tail_bytes: usize,
    ends: Ends,
    lines: Lines,
    readers: Readers,
}

struct Readers {
    report: RunReportReader,
    withheld: Vec<(String, bool)>,
}

impl<'a> Capture<'a> {
    pub(crate) fn new(
        root: &Path,
        log: PathBuf,
        withheld: Vec<String>,
        bounds: Bounds,
        redact: Redact<'a>,
    ) -> Self {
        Self {
            bounds,
            total: 0,
            redact,
            held: Vec::new(),
            log: logs::create(&log)
                .map(|file| (log, file))
                .map_err(|err| err.to_string()),
            tail: VecDeque::new(),
            tail_bytes: 0,
            ends: Ends::default(),
            lines: Lines::default(),
            readers: Readers {
                report: RunReportReader::new(root),
                withheld: withheld.into_iter().map(|name| (name, false)).collect(),
            },
        }
    }

    /// Takes the next chunk.
    pub(crate) fn feed(&mut self, chunk: Vec<u8>) {
        let room = self.bounds.head.saturating_sub(self.total);
        self.total += chunk.len() as u64;
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let (head, rest) = chunk.split_at_checked(room).unwrap_or((&chunk, &[]));
        self.take(head);
        if rest.is_empty() {
            return;
        }
        self.tail_bytes += rest.len();
        // Whole chunks are moved and dropped, never copied: this is the path of the flood.
        self.tail.push_back(if head.is_empty() {
            chunk
        } else {
            rest.to_vec()
        });
        while let Some(first) = self.tail.front() {
            if self.tail_bytes - first.len() < self.bounds.tail {
                break;
            }
            self.tail_bytes -= first.len();
            self.tail.pop_front();
        }
    }

    /// Ends it: the tail follows the head, with a line between that counts what is missing.
    pub(crate) fn finish(mut self) -> Captured {
        let tail = std::mem::take(&mut self.tail);
        let mut left_out = 0;
        if !tail.is_empty() {
            left_out = self
                .total
                .saturating_sub(self.bounds.head + self.tail_bytes as u64);
            if left_out > 0 {
                // The line in which the middle begins will not become whole any more.
                self.release(self.held.len());
                self.write(format!("\n[checkrein: {left_out} bytes left out]\n").as_bytes());
                self.ends.skip(left_out);
            }
            for chunk in tail {
                self.take(&chunk);
            }
        }
        self.release(self.held.len());
        let Self {
            total,
            log,
            ends,
            mut lines,
            mut readers,
            ..
        } = self;
        lines.finish(|line| readers.line(line));
        let Readers { report, withheld } = readers;
        let named = withheld
            .into_iter()
            .filter(|(_, named)| *named)
            .map(|(name, _)| name);
        Captured {
            total,
            ends,
            report: report.finish(left_out == 0),
            named: named.collect(),
            log: log.map(|(path, _)| path),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        self.release(whole(&self.held));
    }

    /// Lets the first bytes of what is held go on, without their secrets.
    fn release(&mut self, count: usize) {
        let rest = self.held.split_off(count.min(self.held.len()));
        let ready = std::mem::replace(&mut self.held, rest);
        if !ready.is_empty() {
            let hidden = (self.redact)(&ready);
            let shown = hidden.unwrap_or(ready);
            self.ends.feed(&shown);
            self.write(&shown);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Ok((_, file)) = &mut self.log
            && let Err(err) = file.write_all(bytes)
        {
            self.log = Err(err.to_string());
        }
        let readers = &mut self.readers;
        self.lines.feed(bytes, |line| readers.line(line));
    }
}

impl Readers {
    fn line(&mut self, line: &[u8]) {
        let text = plain(line);
        // A carriage return of a progress bar ends a line too.
        for line in text.lines() {
            self.report.line(line);
            for (name, named) in &mut self.withheld {
                *named = *named || mentions(line, name);
            }
        }
    }
}

/// How many of these bytes can go on: whole lines, and no part of a private key. More than
/// [`MAX_HELD`] are not held back.
fn whole(held: &[u8]) -> usize {
    let Some(lines) = held
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map(|at| at + 1)
    else {
        return if held.len() > MAX_HELD { held.len() } else { 0 };
    };
    let ready = held.get(..lines).unwrap_or_default();
    match memmem::rfind(ready, KEY_BEGINS).filter(|_| held.len() <= MAX_HELD) {
        Some(begins) if memmem::rfind(ready, KEY_ENDS).is_none_or(|ends| ends < begins) => begins,
        _ => lines,
    }
}

/// Whether `name` stands in `line` as a word of its own.
fn mentions(line: &str, name: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line
            .get(at + name.len()..)
            .and_then(|text| text.chars().next());
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_keeps_both_ends_and_counts_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let bounds = Bounds { head: 16, tail: 8 };
        let mut capture = Capture::new(
            dir.path(),
            dir.path().join("logs/a.log"),
            Vec::new(),
            bounds,
            &|_| None,
        );
        for chunk in ["0123456789", "abcdefghij", "KLMNOPQRST", "uvwx", "yz12"] {
            capture.feed(chunk.as_bytes().to_vec());
        }
        let captured = capture.finish();
        let log = std::fs::read_to_string(captured.log.unwrap()).unwrap();
        assert_eq!(
            log,
            "0123456789abcdef\n[checkrein: 14 bytes left out]\nuvwxyz12"
        );
        assert_eq!(captured.total, 38);
    }

    #[test]
    fn a_secret_is_hidden_wherever_the_stream_is_cut() {
        let text = b"one\nthe secret here\n-----BEGIN X-----\nsecret\nsecret\n-----END X-----\nlast secret";
        for cut in 0..text.len() {
            let dir = tempfile::tempdir().unwrap();
            let keys = |bytes: &[u8]| {
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                let whole = text.matches("-----BEGIN").count() == text.matches("-----END").count();
                assert!(whole, "{text}");
                Some(text.replace("secret", "***").into_bytes())
            };
            let mut capture = Capture::new(
                dir.path(),
                dir.path().join("a.log"),
                Vec::new(),
                BOUNDS,
                &keys,
            );
            capture.feed(text[..cut].to_vec());
            capture.feed(text[cut..].to_vec());
            let captured = capture.finish();
            let log = std::fs::read_to_string(captured.log.unwrap()).unwrap();
            assert!(
                !log.contains("secret") && log.ends_with("last ***"),
                "{log}"
            );
            assert_eq!(captured.ends.excerpt(&[]), log);
            assert_eq!(captured.total, text.len() as u64);
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_is_told_and_the_readers_still_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let mut capture = Capture::new(
            dir.path(),
            dir.path().join("file/a.log"),
            vec!["A_KEY".to_owned(), "B_KEY".to_owned()],
            BOUNDS,
            &|_| None,
        );
        capture.feed(b"test x ... FAILED\nset A_KEY, not MY_B_KEY".to_vec());
        let captured = capture.finish();
        assert!(captured.log.is_err());
        assert_eq!(captured.report.findings.len(), 1);
        assert_eq!(captured.named, ["A_KEY"]);
    }
}
