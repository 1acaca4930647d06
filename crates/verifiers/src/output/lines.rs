//! Splits a stream of chunks into lines, in bounded memory.

/// Bytes of a line that are kept; the rest of the line is skipped.
const LINE_BYTES: usize = 4096;

/// Cuts chunks into lines.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    begun: Vec<u8>,
}

impl LineSplitter {
    /// Splits the next chunk and calls `each` for every line that is complete.
    pub(crate) fn split_chunk_into_lines(&mut self, chunk: &[u8], mut each: impl FnMut(&[u8])) {
        let mut pieces = chunk.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            let complete = pieces.peek().is_some();
            let room = LINE_BYTES.saturating_sub(self.begun.len());
            let piece = piece.get(..room).unwrap_or(piece);
            // Most lines lie within one chunk and are passed on without a copy.
            if complete && self.begun.is_empty() {
                each(piece);
                continue;
            }
            self.begun.extend_from_slice(piece);
            if complete {
                each(&self.begun);
                self.begun.clear();
            }
        }
    }

    /// Passes on the last line if no line end followed it.
    pub(crate) fn flush_unterminated_last_line(&mut self, each: impl FnOnce(&[u8])) {
        if !self.begun.is_empty() {
            each(&self.begun);
            self.begun.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let mut found = Vec::new();
        let mut lines = LineSplitter::default();
        for chunk in chunks {
            lines.split_chunk_into_lines(chunk, |line| {
                found.push(String::from_utf8_lossy(line).into_owned())
            });
        }
        lines.flush_unterminated_last_line(|line| {
            found.push(String::from_utf8_lossy(line).into_owned())
        });
        found
    }

    #[test]
    fn lines_do_not_depend_on_chunk_boundaries() {
        assert_eq!(lines(&[b"a\nbc\n\nd"]), ["a", "bc", "", "d"]);
        assert_eq!(lines(&[b"a", b"\nb", b"c\n", b"\nd"]), ["a", "bc", "", "d"]);
        assert_eq!(lines(&[b"", b"a\n", b""]), ["a"]);
    }

    #[test]
    fn an_endless_line_is_cut_and_the_next_one_is_whole() {
        let long = vec![b'x'; 1_000_000];
        let found = lines(&[&long, &long, b"yyy\nnext\n"]);
        assert_eq!(
            found.iter().map(String::len).collect::<Vec<_>>(),
            [LINE_BYTES, 4]
        );
    }
}
