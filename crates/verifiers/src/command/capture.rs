//! Captures what a command prints: for its log on disk, for the parsers, and for the excerpt.
//! Everything is bounded, so that a gigabyte of output fills neither memory nor disk.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use memchr::memmem;

use crate::RedactBytesFn;
use crate::logs;
use crate::output::{HeadTailBuffer, LineSplitter, strip_terminal_escapes};
use crate::run_report::{CheckOutputParser, ParsedCheckOutput};

/// Bytes that are held back at most while a line or a private key is incomplete.
const MAX_HELD: usize = 64 * 1024;
/// Markers of a PEM private key, the only secret that spans several lines.
const KEY_BEGINS: &[u8] = b"-----BEGIN ";
const KEY_ENDS: &[u8] = b"-----END ";

/// Bytes of an output that are logged and parsed: of its beginning, and of its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputCaptureLimits {
    pub(crate) head: u64,
    pub(crate) tail: usize,
}

pub(crate) const CAPTURE_LIMITS: OutputCaptureLimits = OutputCaptureLimits {
    head: 32 << 20,
    tail: 8 << 20,
};

/// The result of a capture.
pub(crate) struct OutputCaptureResult {
    /// Size of the whole output in bytes.
    pub(crate) total: u64,
    pub(crate) ends: HeadTailBuffer,
    /// What the parsers read from its lines.
    pub(crate) report: ParsedCheckOutput,
    /// Withheld variables that the output names.
    pub(crate) named: Vec<String>,
    /// The path of the log, or why there is none.
    pub(crate) log: Result<PathBuf, String>,
}

pub(crate) struct OutputCapture<'a> {
    bounds: OutputCaptureLimits,
    total: u64,
    redact: RedactBytesFn<'a>,
    /// The start of an incomplete line or private key: a secret is redacted whole or not at all, so
    /// neither is passed on in parts.
    held: Vec<u8>,
    log: Result<(PathBuf, File), String>,
    tail: VecDeque<Vec<u8>>,
    tail_bytes: usize,
    ends: HeadTailBuffer,
    lines: LineSplitter,
    readers: CheckOutputLineParser,
}

struct CheckOutputLineParser {
    report: CheckOutputParser,
    withheld: Vec<(String, bool)>,
}

impl<'a> OutputCapture<'a> {
    pub(crate) fn new(
        root: &Path,
        log: PathBuf,
        withheld: Vec<String>,
        bounds: OutputCaptureLimits,
        redact: RedactBytesFn<'a>,
    ) -> Self {
        Self {
            bounds,
            total: 0,
            redact,
            held: Vec::new(),
            log: logs::create_log_file(&log)
                .map(|file| (log, file))
                .map_err(|err| err.to_string()),
            tail: VecDeque::new(),
            tail_bytes: 0,
            ends: HeadTailBuffer::default(),
            lines: LineSplitter::default(),
            readers: CheckOutputLineParser {
                report: CheckOutputParser::new(root),
                withheld: withheld.into_iter().map(|name| (name, false)).collect(),
            },
        }
    }

    /// Takes the next chunk of output.
    pub(crate) fn capture_output_chunk(&mut self, chunk: Vec<u8>) {
        // Phase 1: up to `bounds.head` bytes go on at once.
        let room = self.bounds.head.saturating_sub(self.total);
        self.total += chunk.len() as u64;
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let (head, rest) = chunk.split_at_checked(room).unwrap_or((&chunk, &[]));
        self.append_and_flush_redacted_output(head);
        if rest.is_empty() {
            return;
        }
        // Phase 2: the rest waits in a ring of chunks of which only the newest stay.
        self.tail_bytes += rest.len();
        // Whole chunks are moved and dropped, never copied: this is the path of the flood.
        self.tail.push_back(if head.is_empty() {
            chunk
        } else {
            rest.to_vec()
        });
        while let Some(first) = self.tail.front() {
            // A chunk goes only if the tail is still long enough without it.
            if self.tail_bytes - first.len() < self.bounds.tail {
                break;
            }
            self.tail_bytes -= first.len();
            self.tail.pop_front();
        }
    }

    /// Finishes the capture. The tail follows the head, with a line between that counts what is
    /// missing.
    pub(crate) fn finish_capture(mut self) -> OutputCaptureResult {
        let tail = std::mem::take(&mut self.tail);
        let mut left_out = 0;
        if !tail.is_empty() {
            left_out = self
                .total
                .saturating_sub(self.bounds.head + self.tail_bytes as u64);
            if left_out > 0 {
                // The line that the omission begins in never becomes complete, so what is held of
                // it goes on.
                self.flush_redacted(self.held.len());
                self.log_and_parse_check_output(
                    format!("\n[checkrein: {left_out} bytes left out]\n").as_bytes(),
                );
                self.ends.count_skipped_bytes(left_out);
            }
            for chunk in tail {
                self.append_and_flush_redacted_output(&chunk);
            }
        }
        self.flush_redacted(self.held.len());
        let Self {
            total,
            log,
            ends,
            mut lines,
            mut readers,
            ..
        } = self;
        lines.flush_unterminated_last_line(|line| readers.scan_check_output_line(line));
        let CheckOutputLineParser { report, withheld } = readers;
        let named = withheld
            .into_iter()
            .filter(|(_, named)| *named)
            .map(|(name, _)| name);
        OutputCaptureResult {
            total,
            ends,
            // With a part missing the counts of the output may not add up: masked commands are not
            // believed then.
            report: report.finish_parsed_check_output(left_out == 0),
            named: named.collect(),
            log: log.map(|(path, _)| path),
        }
    }

    fn append_and_flush_redacted_output(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        self.flush_redacted(flushable_len(&self.held));
    }

    /// Passes on the first `count` held bytes, redacted.
    fn flush_redacted(&mut self, count: usize) {
        let rest = self.held.split_off(count.min(self.held.len()));
        let ready = std::mem::replace(&mut self.held, rest);
        if !ready.is_empty() {
            let hidden = (self.redact)(&ready);
            let shown = hidden.unwrap_or(ready);
            // Excerpt, log and parsers all see only the redacted bytes.
            self.ends.push_output_chunk(&shown);
            self.log_and_parse_check_output(&shown);
        }
    }

    fn log_and_parse_check_output(&mut self, bytes: &[u8]) {
        if let Ok((_, file)) = &mut self.log
            && let Err(err) = file.write_all(bytes)
        {
            // A full disk costs the log, not the verdict: the parsers go on.
            self.log = Err(err.to_string());
        }
        let readers = &mut self.readers;
        self.lines
            .split_chunk_into_lines(bytes, |line| readers.scan_check_output_line(line));
    }
}

impl CheckOutputLineParser {
    fn scan_check_output_line(&mut self, line: &[u8]) {
        let text = strip_terminal_escapes(line);
        // A carriage return of a progress bar ends a line too.
        for line in text.lines() {
            self.report.read_check_output_line(line);
            for (name, named) in &mut self.withheld {
                *named = *named || contains_word(line, name);
            }
        }
    }
}

/// Returns how many of the held bytes can be passed on: whole lines, and no part of a private key.
/// More than [`MAX_HELD`] are not held back.
fn flushable_len(held: &[u8]) -> usize {
    let Some(lines) = held
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map(|at| at + 1)
    else {
        return if held.len() > MAX_HELD { held.len() } else { 0 };
    };
    let ready = held.get(..lines).unwrap_or_default();
    // A key that has begun and not ended waits for its end, up to the bound.
    match memmem::rfind(ready, KEY_BEGINS).filter(|_| held.len() <= MAX_HELD) {
        Some(begins) if memmem::rfind(ready, KEY_ENDS).is_none_or(|ends| ends < begins) => begins,
        _ => lines,
    }
}

/// Returns whether `name` occurs in `line` as a whole word.
fn contains_word(line: &str, name: &str) -> bool {
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
        let bounds = OutputCaptureLimits { head: 16, tail: 8 };
        let mut capture = OutputCapture::new(
            dir.path(),
            dir.path().join("logs/a.log"),
            Vec::new(),
            bounds,
            &|_| None,
        );
        for chunk in ["0123456789", "abcdefghij", "KLMNOPQRST", "uvwx", "yz12"] {
            capture.capture_output_chunk(chunk.as_bytes().to_vec());
        }
        let captured = capture.finish_capture();
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
            let mut capture = OutputCapture::new(
                dir.path(),
                dir.path().join("a.log"),
                Vec::new(),
                CAPTURE_LIMITS,
                &keys,
            );
            capture.capture_output_chunk(text[..cut].to_vec());
            capture.capture_output_chunk(text[cut..].to_vec());
            let captured = capture.finish_capture();
            let log = std::fs::read_to_string(captured.log.unwrap()).unwrap();
            assert!(
                !log.contains("secret") && log.ends_with("last ***"),
                "{log}"
            );
            assert_eq!(captured.ends.render_output_excerpt(&[]), log);
            assert_eq!(captured.total, text.len() as u64);
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_is_told_and_the_readers_still_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let mut capture = OutputCapture::new(
            dir.path(),
            dir.path().join("file/a.log"),
            vec!["A_KEY".to_owned(), "B_KEY".to_owned()],
            CAPTURE_LIMITS,
            &|_| None,
        );
        capture.capture_output_chunk(b"test x ... FAILED\nset A_KEY, not MY_B_KEY".to_vec());
        let captured = capture.finish_capture();
        assert!(captured.log.is_err());
        assert_eq!(captured.report.findings.len(), 1);
        assert_eq!(captured.named, ["A_KEY"]);
    }
}
