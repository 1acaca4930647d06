//! Parses server-sent events into the data they carry. Names of events are ignored, because every
//! wire repeats them in the data.

use super::ModelAnswerDecodeError;

/// Splits a stream into events. It keeps at most what was fed, which the caller bounds.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    /// The line whose end has not come.
    line: Vec<u8>,
    /// The last line ended with CR, so an LF now belongs to the same line end.
    carriage: bool,
    data: Option<String>,
}

impl SseParser {
    /// Passes each complete event to `take`, until it returns that the event was the last. What
    /// follows is ignored.
    pub(crate) fn feed_sse_bytes(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(&str) -> Result<bool, ModelAnswerDecodeError>,
    ) -> Result<(), ModelAnswerDecodeError> {
        for byte in bytes {
            match byte {
                b'\n' if self.carriage => self.carriage = false,
                b'\n' | b'\r' => {
                    self.carriage = *byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    if let Some(event) = self.feed_sse_line(&line)?
                        && take(&event)?
                    {
                        break;
                    }
                }
                _ => {
                    self.carriage = false;
                    self.line.push(*byte);
                }
            }
        }
        Ok(())
    }

    /// Returns the event that this line completes.
    fn feed_sse_line(&mut self, line: &[u8]) -> Result<Option<String>, ModelAnswerDecodeError> {
        let line = std::str::from_utf8(line)
            .map_err(|_| ModelAnswerDecodeError::Unreadable("it is not UTF-8".to_owned()))?;
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        if line.is_empty() {
            return Ok(self.data.take());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                let data = self.data.get_or_insert_default();
                if !data.is_empty() {
                    data.push('\n');
                }
                data.push_str(value);
            }
            // A comment, or a field that only browsers need.
            "" | "event" | "id" | "retry" => {}
            // The specification says to ignore unknown fields. In practice such a line is a proxy's
            // page or a server that does not stream, and the first line tells which.
            _ => {
                return Err(ModelAnswerDecodeError::Unreadable(format!(
                    "it is no stream of events: {line}"
                )));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Result<Vec<String>, ModelAnswerDecodeError> {
        let (mut events, mut found) = (SseParser::default(), Vec::new());
        for piece in pieces {
            events.feed_sse_bytes(piece, |data| {
                found.push(data.to_owned());
                Ok(data == "last")
            })?;
        }
        Ok(found)
    }

    #[test]
    fn lines_end_in_three_ways_and_anywhere() {
        let whole =
            "event: a\r\ndata: {\"x\":1}\r\n\r\n: note\rdata:2\rdata: ü\r\rdata: 3\n\nid: 7\n\n";
        let expected = ["{\"x\":1}", "2\nü", "3"];
        assert_eq!(read(&[whole.as_bytes()]).unwrap(), expected);
        let bytes: Vec<&[u8]> = whole.as_bytes().chunks(1).collect();
        assert_eq!(read(&bytes).unwrap(), expected);
    }

    #[test]
    fn behind_the_last_event_nothing_is_read() {
        assert_eq!(read(&[b"data: last\n\n<html>\n"]).unwrap(), ["last"]);
    }

    #[test]
    fn an_event_that_was_not_ended_is_none() {
        assert!(read(&[b"data: 1\n"]).unwrap().is_empty());
    }

    #[test]
    fn another_format_is_said() {
        for other in ["<html>\n", "{\"error\":1}\n", "data: \u{fffd}\nnonsense\n"] {
            assert!(read(&[other.as_bytes()]).is_err(), "{other}");
        }
        assert!(read(&[b"data: \xff\n"]).is_err());
    }
}
