//! Implements the cursor of a token reading: where the next reading begins and what was counted
//! last. A message's rows may be split over two readings and still count once.

use serde::{Deserialize, Serialize};

/// Messages that are remembered. Rows of one message may stand apart, but not far.
const MAX_COUNTED_MESSAGES: usize = 4;

/// The contents of a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsageCursor {
    /// Bytes read so far, complete lines only.
    #[serde(rename = "o")]
    offset: u64,
    /// The last messages counted, oldest first: id, output, input.
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    counted: Vec<(String, u64, u64)>,
}

impl UsageCursor {
    /// Parses a cursor. One that cannot be parsed begins anew.
    pub(crate) fn parse_usage_cursor_or_default(cursor: &str) -> Self {
        serde_json::from_str(cursor).unwrap_or_default()
    }

    /// Returns the cursor as text.
    pub(crate) fn serialize_cursor(&self) -> String {
        // Strings and integers only: serialising cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns whether nothing was ever counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// Calls `row` for every complete line and moves on by them.
    pub(crate) fn for_each_complete_line(
        &mut self,
        bytes: &[u8],
        mut row: impl FnMut(&mut Self, &[u8]),
    ) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            // The agent may be in the middle of writing this line: the next reading takes it whole.
            if !line.ends_with(b"\n") {
                break;
            }
            self.offset = self.offset.saturating_add(line.len() as u64);
            row(self, line);
        }
    }

    /// Records what a message has used by now and returns what that adds.
    pub(crate) fn record_message_usage(&mut self, id: &str, output: u64, input: u64) -> (u64, u64) {
        if let Some((_, out, inp)) = self.counted.iter_mut().find(|(known, ..)| known == id) {
            let added = (output.saturating_sub(*out), input.saturating_sub(*inp));
            // The larger count stays, so that an older snapshot of the message is not subtracted
            // and added again.
            *out = output.max(*out);
            *inp = input.max(*inp);
            return added;
        }
        if self.counted.len() >= MAX_COUNTED_MESSAGES {
            self.counted.remove(0);
        }
        self.counted.push((id.to_owned(), output, input));
        (output, input)
    }

    /// Returns what was recorded last for this id.
    pub(crate) fn noted_usage_for_message(&self, id: &str) -> Option<(u64, u64)> {
        self.counted
            .iter()
            .find(|(known, ..)| known == id)
            .map(|(_, out, inp)| (*out, *inp))
    }

    /// Forgets what was recorded for this id.
    pub(crate) fn forget_message_usage(&mut self, id: &str) {
        self.counted.retain(|(known, ..)| known != id);
    }
}

/// Returns the offset at which the next reading begins.
pub(crate) fn parse_transcript_read_offset(cursor: &str) -> u64 {
    UsageCursor::parse_usage_cursor_or_default(cursor).offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_counts_once_and_growth_is_added() {
        let mut ledger = UsageCursor::default();
        assert_eq!(ledger.record_message_usage("a", 10, 100), (10, 100));
        assert_eq!(ledger.record_message_usage("a", 10, 100), (0, 0));
        let mut later = UsageCursor::parse_usage_cursor_or_default(&ledger.serialize_cursor());
        assert_eq!(later, ledger);
        assert_eq!(later.record_message_usage("a", 12, 100), (2, 0));
        assert_eq!(later.record_message_usage("a", 1, 1), (0, 0));
    }

    #[test]
    fn a_foreign_cursor_begins_anew() {
        assert_eq!(parse_transcript_read_offset("nonsense"), 0);
        assert_eq!(parse_transcript_read_offset(""), 0);
        assert_eq!(parse_transcript_read_offset(r#"{"o":12}"#), 12);
    }
}
