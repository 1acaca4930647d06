//! Keeps the head and the tail of an output: there a failing command says what it does and what is
//! wrong.

use super::strip_terminal_escapes;

/// The longest excerpt in bytes.
pub(crate) const EXCERPT_BYTES: usize = 16 * 1024;

/// Raw bytes kept of the beginning and of the end. Together they leave room for notes.
const HEAD: usize = 4 * 1024;
const TAIL: usize = 11 * 1024;

/// The two ends of a stream.
#[derive(Debug, Default)]
pub(crate) struct HeadTailBuffer {
    head: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
}

impl HeadTailBuffer {
    /// Appends the next chunk.
    pub(crate) fn push_output_chunk(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        let room = HEAD.saturating_sub(self.head.len());
        let (head, rest) = chunk.split_at_checked(room).unwrap_or((chunk, &[]));
        self.head.extend_from_slice(head);
        // Of a large chunk only its last part can survive; the rest is not copied.
        let newest = rest.get(rest.len().saturating_sub(TAIL)..).unwrap_or(rest);
        self.tail.extend_from_slice(newest);
        if self.tail.len() > TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }

    /// Counts bytes of the middle that were never pushed.
    pub(crate) fn count_skipped_bytes(&mut self, bytes: u64) {
        self.total += bytes;
    }

    /// Returns the text to show: notes first, then both ends with the omitted bytes between them
    /// counted.
    pub(crate) fn render_output_excerpt(&self, notes: &[String]) -> String {
        let mut text = String::new();
        for note in notes {
            text.push_str("[checkrein: ");
            text.push_str(note);
            text.push_str("]\n");
        }
        let kept = (self.head.len() + self.tail.len()) as u64;
        if self.total <= kept {
            // One piece, so that a character or an escape at the seam stays whole.
            text.push_str(&strip_terminal_escapes(
                &[self.head.as_slice(), self.tail.as_slice()].concat(),
            ));
        } else {
            // Cut at line ends: half a line could read as a whole one, and half a character as
            // another.
            text.push_str(&strip_terminal_escapes(trim_partial_last_line(&self.head)));
            text.push_str(&format!(
                "\n[checkrein: about {} bytes left out]\n",
                self.total - kept
            ));
            text.push_str(&strip_terminal_escapes(trim_partial_first_line(&self.tail)));
        }
        // Invalid UTF-8 grows to three bytes per byte when it is decoded, so the bound is enforced
        // last.
        truncate_text_to_bytes(text, EXCERPT_BYTES)
    }
}

fn trim_partial_last_line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    end.and_then(|end| bytes.get(..end)).unwrap_or(bytes)
}

fn trim_partial_first_line(bytes: &[u8]) -> &[u8] {
    let start = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .filter(|at| at + 1 < bytes.len());
    start
        .and_then(|start| bytes.get(start + 1..))
        .unwrap_or(bytes)
}

/// Returns `text` cut to at most `limit` bytes, at a character boundary.
pub(crate) fn truncate_text_to_bytes(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_output_is_shown_whole() {
        let mut ends = HeadTailBuffer::default();
        ends.push_output_chunk(b"\x1b[31mone\n");
        ends.push_output_chunk(b"two\n");
        assert_eq!(
            ends.render_output_excerpt(&["odd".to_owned()]),
            "[checkrein: odd]\none\ntwo\n"
        );
    }

    #[test]
    fn a_long_one_keeps_both_ends_and_the_bound() {
        let mut ends = HeadTailBuffer::default();
        ends.push_output_chunk(b"first\n");
        for number in 0..100_000 {
            ends.push_output_chunk(format!("line {number}\n").as_bytes());
        }
        ends.push_output_chunk(b"last\n");
        let text = ends.render_output_excerpt(&[]);
        assert!(text.starts_with("first\nline 0\n"), "{text}");
        assert!(text.ends_with("\nline 99999\nlast\n"), "{text}");
        assert!(text.contains("bytes left out]"));
        assert!(text.len() <= EXCERPT_BYTES);
    }

    #[test]
    fn bytes_that_grow_when_decoded_stay_within_the_bound() {
        let mut ends = HeadTailBuffer::default();
        // Each byte becomes a three-byte replacement character.
        ends.push_output_chunk(&vec![0xff; 1 << 20]);
        assert!(ends.render_output_excerpt(&[]).len() <= EXCERPT_BYTES);
    }
}
