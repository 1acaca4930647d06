//! Messages as they stand on a line. They are read within a bound and parsed no further than
//! needed, so that unknown parts pass unchanged.

use std::io::{BufRead, BufReader, Read};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Longest message in bytes, with the files that it may carry.
pub(super) const MAX_LINE: usize = 32 << 20;

/// JSON-RPC's code for a message that is no valid request.
pub(super) const INVALID_REQUEST: i64 = -32600;
/// Code for errors that the server is to blame for.
pub(super) const SERVER_FAILED: i64 = -32000;

/// What was read from a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum McpStreamReadResult {
    /// A line without its newline.
    Text(String),
    /// A line that is not UTF-8.
    NotUtf8,
    /// A line beyond the bound; the rest of it is skipped by the next read.
    TooLong,
    /// The end of the stream.
    End,
}

/// Reads the lines of a stream.
pub(super) struct WireLineReader<R> {
    from: BufReader<R>,
    /// Whether the rest of a line that was too long is still to come.
    skipping_rest: bool,
}

impl<R: Read> WireLineReader<R> {
    pub(super) fn new(from: R) -> Self {
        Self {
            from: BufReader::with_capacity(64 << 10, from),
            skipping_rest: false,
        }
    }

    /// Reads the next line. A stream that cannot be read counts as ended.
    pub(super) fn read_next_mcp_line(&mut self) -> McpStreamReadResult {
        let mut line = Vec::new();
        loop {
            let Ok(bytes) = self.from.fill_buf() else {
                return McpStreamReadResult::End;
            };
            let newline = bytes.iter().position(|byte| *byte == b'\n');
            let (part, used) = match newline {
                Some(at) => (bytes.get(..at).unwrap_or_default(), at + 1),
                None => (bytes, bytes.len()),
            };
            // Checked before anything is copied: a line without an end must not fill the memory.
            let too_long = line.len() + part.len() > MAX_LINE;
            if !self.skipping_rest && !too_long {
                line.extend_from_slice(part);
            }
            self.from.consume(used);
            match (newline.is_some() || used == 0, self.skipping_rest) {
                _ if too_long => {
                    self.skipping_rest = newline.is_none();
                    return McpStreamReadResult::TooLong;
                }
                (false, _) => {}
                (true, true) if used > 0 => self.skipping_rest = false,
                (true, _) if used == 0 && line.is_empty() => return McpStreamReadResult::End,
                // At the end of the stream, what was read without a newline is a line as well.
                (true, _) => {
                    return String::from_utf8(line)
                        .map_or(McpStreamReadResult::NotUtf8, McpStreamReadResult::Text);
                }
            }
        }
    }
}

/// A message with its parts as they were written. A part that stands there twice makes it
/// unreadable: two readers could take different ones.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct JsonRpcMessage {
    jsonrpc: JsonRpcVersion,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) params: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize, Serialize)]
enum JsonRpcVersion {
    #[serde(rename = "2.0")]
    Two,
}

impl JsonRpcMessage {
    /// Parses a line; the error says what is wrong with it.
    pub(super) fn parse_json_rpc_line(line: &str) -> Result<Self, String> {
        match line.trim_start().chars().next() {
            Some('{') => serde_json::from_str(line).map_err(|error| error.to_string()),
            // A batch would carry several calls in one message, and calls are judged one by one.
            Some('[') => Err(
                "it is a batch, which MCP has not known since 2025-06-18: send one message a line"
                    .to_owned(),
            ),
            _ => Err("it is no JSON object".to_owned()),
        }
    }

    pub(super) fn new_json_rpc_request(id: &str, method: &str, params: &Value) -> Self {
        Self {
            jsonrpc: JsonRpcVersion::Two,
            id: Some(Value::from(id)),
            method: Some(method.to_owned()),
            params: serde_json::value::to_raw_value(params).ok(),
            result: None,
            error: None,
        }
    }

    pub(super) fn json_rpc_result_message(id: Value, result: &Value) -> Self {
        Self {
            jsonrpc: JsonRpcVersion::Two,
            id: Some(id),
            method: None,
            params: None,
            result: serde_json::value::to_raw_value(result).ok(),
            error: None,
        }
    }

    pub(super) fn new_json_rpc_error(id: Value, code: i64, text: &str) -> Self {
        let error = serde_json::json!({ "code": code, "message": text });
        Self {
            jsonrpc: JsonRpcVersion::Two,
            id: Some(id),
            method: None,
            params: None,
            result: None,
            error: serde_json::value::to_raw_value(&error).ok(),
        }
    }

    /// Returns the message with other parameters.
    pub(super) fn with_json_rpc_params(mut self, params: &Value) -> Self {
        self.params = serde_json::value::to_raw_value(params).ok();
        self
    }

    /// Renders the message as a line.
    pub(super) fn to_json_rpc_line(&self) -> Vec<u8> {
        // Texts and JSON values can be written as JSON.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Returns the key that its answer is known by; `None` for what is not answered.
    pub(super) fn json_rpc_id_key(&self) -> Option<String> {
        self.id.as_ref().map(Value::to_string)
    }
}

/// Parses a part; null if it is missing.
pub(super) fn parse_raw_json_part(part: Option<&RawValue>) -> Value {
    part.and_then(|part| serde_json::from_str(part.get()).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_within_their_bound() {
        let mut long = vec![b'x'; MAX_LINE + 1];
        long.extend(b"\nc\n");
        let mut text = b"a\n\n\xff\n".to_vec();
        text.extend(long);
        text.extend(b"last");
        let mut lines = WireLineReader::new(text.as_slice());
        let whole = |text: &str| McpStreamReadResult::Text(text.to_owned());
        for expected in [
            whole("a"),
            whole(""),
            McpStreamReadResult::NotUtf8,
            McpStreamReadResult::TooLong,
            whole("c"),
            whole("last"),
            McpStreamReadResult::End,
        ] {
            assert_eq!(lines.read_next_mcp_line(), expected);
        }
    }

    #[test]
    fn a_message_has_one_reading() {
        let check = |line: &str, expected: Option<&str>| {
            let read = JsonRpcMessage::parse_json_rpc_line(line).ok();
            let written =
                read.map(|message| String::from_utf8(message.to_json_rpc_line()).unwrap());
            assert_eq!(written.as_deref().map(str::trim_end), expected, "{line}");
        };
        check(
            r#" {"id":1,"jsonrpc":"2.0","method":"ping"}"#,
            Some(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
        );
        // What some servers would take for the method.
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#,
            Some(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"n":1.50}}"#,
            Some(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n":1.50}}"#),
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#,
            None,
        );
        check(r#"["2.0",1,"tools/call",{}]"#, None);
        check(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, None);
        check(r#"{"id":1,"method":"ping"}"#, None);
        check(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, None);
        check("", None);
    }
}
