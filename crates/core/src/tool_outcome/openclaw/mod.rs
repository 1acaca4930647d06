//! What OpenClaw's loop detector would see of a call and of its result: the rules of
//! `src/agents/tool-loop-detection.ts` in openclaw 2026.9.6, restated. The preset `openclaw` counts
//! with these facts alone, so that it decides what the original would.
//!
//! Only equality of digests matters to the rules, so the digests are ours: a value that OpenClaw
//! serialises to one text has one digest here. They tell entries of one window apart and are taken of
//! texts of any length, so they are not the digests that evidence is kept under.

mod external_content;
mod volatile_failure_text;

use std::borrow::Cow;
use std::cell::RefCell;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

use crate::digest::EightByteDigest;
use crate::input::{OpenClawCallFacts, OpenClawOutcomeFacts, OpenClawToolKind};

use self::external_content::mask_external_content_ids;
use self::volatile_failure_text::mask_volatile_failure_spans;

/// Actions of the tool `message` that send something.
const SEND_ACTIONS: [&str; 9] = [
    "send",
    "broadcast",
    "reply",
    "thread-reply",
    "sendWithEffect",
    "sendAttachment",
    "upload-file",
    "sticker",
    "poll",
];

/// Fields of a delivery that differ each time.
const VOLATILE_DELIVERY_KEYS: [&str; 18] = [
    "messageId",
    "message_id",
    "messageIds",
    "platformMessageId",
    "platformMessageIds",
    "fileId",
    "file_id",
    "fileKey",
    "pollId",
    "poll_id",
    "receipt",
    "runId",
    "idempotencyKey",
    "ts",
    "timestamp",
    "sentAt",
    "deliveredAt",
    "createdAt",
];

/// What came back for a call.
#[derive(Debug, Clone, Copy)]
pub struct OpenClawResult<'a> {
    /// The result; `null`: there is none.
    pub result: &'a Value,
    /// The error; `null`, `false` or an empty text: there is none.
    pub error: &'a Value,
    /// The result as the agent wrote it. The order of its keys shows in the text of a result without
    /// content; where it is not known, the keys are taken as sorted.
    pub result_json: Option<&'a str>,
}

/// A tool as the rules name it.
#[derive(Debug)]
pub struct OpenClawTool<'a> {
    name: Cow<'a, str>,
    kind: OpenClawToolKind,
}

impl<'a> OpenClawTool<'a> {
    /// Folds the name as OpenClaw's admission layer does.
    pub fn from_tool_name(tool: &'a str) -> Self {
        let name = trim_like_javascript(tool);
        let is_folded = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
        let name = match name.bytes().all(is_folded) {
            true => Cow::Borrowed(name),
            false => Cow::Owned(name.to_lowercase()),
        };
        let (name, kind) = match &*name {
            "" => (Cow::Borrowed("tool"), OpenClawToolKind::Other),
            "bash" | "exec" => (Cow::Borrowed("exec"), OpenClawToolKind::Exec),
            "apply-patch" => (Cow::Borrowed("apply_patch"), OpenClawToolKind::Other),
            "cron" => (Cow::Borrowed("automations"), OpenClawToolKind::Other),
            "write" => (name, OpenClawToolKind::Write),
            "process" => (name, OpenClawToolKind::Process),
            "command_status" => (name, OpenClawToolKind::CommandStatus),
            "message" => (name, OpenClawToolKind::Message),
            "sessions_send" | "conversations_send" | "conversations_turn" => {
                (name, OpenClawToolKind::Send)
            }
            _ => (name, OpenClawToolKind::Other),
        };
        Self { name, kind }
    }

    /// Returns the digest by which the rules tell calls apart.
    pub fn call_digest(&self, args: &Value) -> EightByteDigest {
        digest_written(|bytes| {
            write_stable_string(&self.name, bytes);
            write_stable_value(args, bytes, Cow::Borrowed);
        })
    }

    /// Returns what the rules read of a request with this digest. `run` is the agent's own name of the
    /// run, if it has one.
    pub fn call_facts(
        &self,
        call: EightByteDigest,
        args: &Value,
        call_id: Option<&str>,
        run: Option<&str>,
    ) -> OpenClawCallFacts {
        OpenClawCallFacts {
            call,
            tool: four_byte_digest(&self.name),
            kind: self.kind,
            polls: match self.kind {
                OpenClawToolKind::CommandStatus => true,
                OpenClawToolKind::Process => {
                    matches!(action_of_call(args), Some("poll" | "log"))
                }
                _ => false,
            },
            call_id: call_id.map(four_byte_digest),
            run: run
                .map(trim_like_javascript)
                .filter(|run| !run.is_empty())
                .map(four_byte_digest),
            runs_regardless: false,
            alone: false,
        }
    }
}

/// Returns what the rules read of a result; `None` if there is no outcome at all.
pub fn openclaw_outcome_facts(
    args: &Value,
    came_back: OpenClawResult<'_>,
    call: OpenClawCallFacts,
) -> Option<OpenClawOutcomeFacts> {
    let OpenClawResult { result, error, .. } = came_back;
    let nothing_special = |result| OpenClawOutcomeFacts {
        call,
        result: Some(result),
        failure: None,
        vetoed: false,
        no_progress: false,
        unknown_tool: None,
    };
    let failed = match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    if failed {
        let text = error_text(error);
        return Some(OpenClawOutcomeFacts {
            no_progress: true,
            unknown_tool: unknown_tool_name(&text).map(|name| four_byte_digest(&name)),
            ..nothing_special(digest_parts(&[Part::Word("error"), Part::Text(&text)]))
        });
    }
    let no_details = Map::new();
    let (details, text) = match result {
        Value::Null => return None,
        // A text is what a tool of OpenClaw's would have wrapped in its content.
        Value::String(text) => (&no_details, Cow::Borrowed(trim_like_javascript(text))),
        Value::Object(map)
            if map.get("content").is_some_and(Value::is_array) || map.contains_key("details") =>
        {
            let details = map.get("details").and_then(Value::as_object);
            (details.unwrap_or(&no_details), content_text(map))
        }
        Value::Object(map) => {
            let text = match came_back.result_json {
                Some(json) => indented_json_text(json),
                None => indented_json_text(&result.to_string()),
            };
            (map, Cow::Owned(text))
        }
        other => return Some(nothing_special(digest_parts(&[Part::Value(other)]))),
    };
    let field = |key: &str| details.get(key);
    let text_field = |key: &str| field(key).and_then(Value::as_str);
    if text_field("status") == Some("blocked") && text_field("deniedReason") == Some("tool-loop") {
        return Some(OpenClawOutcomeFacts {
            call,
            result: None,
            failure: None,
            vetoed: true,
            no_progress: false,
            unknown_tool: None,
        });
    }
    if call.kind == OpenClawToolKind::Exec
        && let Some((result, failure)) = exec_outcome(details, &text)
    {
        return Some(OpenClawOutcomeFacts {
            failure,
            ..nothing_special(result)
        });
    }
    if call.kind == OpenClawToolKind::Write && field("changed") == Some(&Value::Bool(false)) {
        return Some(OpenClawOutcomeFacts {
            no_progress: true,
            ..nothing_special(digest_parts(&[Part::Word("unchanged write")]))
        });
    }
    if call.kind == OpenClawToolKind::Process
        && let Some(action @ ("poll" | "log")) = action_of_call(args)
    {
        let keys: &[&str] = match action {
            "poll" => &["exitCode", "exitSignal", "aggregated"],
            _ => &[
                "totalLines",
                "totalChars",
                "truncated",
                "exitCode",
                "exitSignal",
            ],
        };
        // A status that is missing is not a status of null; the other fields are the same either way.
        let mut parts = vec![Part::Word(action)];
        parts.push(field("status").map_or(Part::Word("no status"), Part::Value));
        parts.extend(
            keys.iter()
                .map(|key| Part::Value(field(key).unwrap_or(&Value::Null))),
        );
        parts.push(Part::Text(&text));
        return Some(nothing_special(digest_parts(&parts)));
    }
    let sends = match call.kind {
        OpenClawToolKind::Send => true,
        OpenClawToolKind::Message => {
            action_of_call(args).is_some_and(|action| SEND_ACTIONS.contains(&action))
        }
        _ => false,
    };
    Some(nothing_special(match sends {
        true => digest_parts(&[
            Part::Word("sent"),
            Part::Fields(&without_delivery_ids(details)),
        ]),
        false => digest_parts(&[Part::Fields(details), Part::Text(&text)]),
    }))
}

fn action_of_call(args: &Value) -> Option<&str> {
    args.get("action")?.as_str()
}

/// Returns the digest of what a command did and, for a failure, the digest without what differs from
/// one run to the next. `None`: the status is none of a command.
fn exec_outcome(
    details: &Map<String, Value>,
    text: &str,
) -> Option<(EightByteDigest, Option<EightByteDigest>)> {
    let text_field = |key: &str| details.get(key).and_then(Value::as_str);
    let status = text_field("status")?;
    match status {
        "running" => {
            let tail = text_field("tail").unwrap_or_default();
            Some((digest_parts(&[Part::Word(status), Part::Text(tail)]), None))
        }
        "completed" | "failed" => {
            let exit_code = details.get("exitCode").filter(|code| code.is_number());
            let timed_out = details.get("timedOut") == Some(&Value::Bool(true));
            let output = text_field("aggregated")
                .map(trim_like_javascript)
                .filter(|output| !output.is_empty())
                .unwrap_or(text);
            let digest = |kind, output: &str| {
                digest_parts(&[
                    Part::Word(kind),
                    Part::Word(status),
                    Part::Value(exit_code.unwrap_or(&Value::Null)),
                    Part::Value(&Value::Bool(timed_out)),
                    Part::Text(output),
                ])
            };
            let footer = output
                .strip_prefix("(Command exited with code ")
                .and_then(|rest| rest.strip_suffix(')'));
            let is_footer = |code: &Value| footer == Some(code.to_string().as_str());
            let is_failure = exit_code.is_some_and(|code| {
                code.as_f64() != Some(0.0) && !timed_out && !output.is_empty() && !is_footer(code)
            });
            let failure =
                is_failure.then(|| digest("failure", &mask_volatile_failure_spans(output)));
            Some((digest("ended", output), failure))
        }
        "approval-pending" | "approval-unavailable" => {
            let or_null = |key: &str| text_field(key).map_or(Part::Word("none"), Part::Text);
            let or_empty = |key: &str| Part::Text(text_field(key).unwrap_or_default());
            let parts = [
                Part::Word(status),
                or_null("reason"),
                or_null("host"),
                or_empty("command"),
                or_empty("warningText"),
            ];
            Some((digest_parts(&parts), None))
        }
        _ => None,
    }
}

/// Returns the texts of a result's content, one a line.
fn content_text(result: &Map<String, Value>) -> Cow<'_, str> {
    let entries = result.get("content").and_then(Value::as_array);
    let mut texts = entries
        .into_iter()
        .flatten()
        .filter(|entry| entry.get("type").is_some_and(Value::is_string))
        .filter_map(|entry| entry.get("text")?.as_str());
    let first = texts.next().unwrap_or_default();
    let Some(second) = texts.next() else {
        return Cow::Borrowed(trim_like_javascript(first));
    };
    let mut joined = format!("{first}\n{second}");
    for text in texts {
        joined.push('\n');
        joined.push_str(text);
    }
    Cow::Owned(trim_like_javascript(&joined).to_owned())
}

fn error_text(error: &Value) -> Cow<'_, str> {
    match error {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Returns the name in "unknown tool: x" or "tool x not found", in lower case.
fn unknown_tool_name(error: &str) -> Option<String> {
    let text = error.to_ascii_lowercase();
    name_after_unknown_tool(&text).or_else(|| name_of_tool_not_found(&text))
}

fn name_after_unknown_tool(text: &str) -> Option<String> {
    text.match_indices("unknown tool").find_map(|(at, found)| {
        let rest = text.get(at + found.len()..)?;
        let rest_of_separator =
            rest.trim_start_matches(|sign: char| sign == ':' || is_javascript_blank(sign));
        // At least one sign lies between.
        (rest_of_separator.len() < rest.len()).then_some(())?;
        let rest = rest_of_separator
            .strip_prefix(['"', '\''])
            .unwrap_or(rest_of_separator);
        leading_tool_name(rest).map(str::to_owned)
    })
}

fn name_of_tool_not_found(text: &str) -> Option<String> {
    text.match_indices("tool").find_map(|(at, found)| {
        let rest = after_blanks(text.get(at + found.len()..)?)?;
        let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest);
        let name = leading_tool_name(rest)?;
        let rest = rest.get(name.len()..)?;
        let rest = after_blanks(rest.strip_prefix(['"', '\'']).unwrap_or(rest))?;
        (rest.starts_with("not found") || rest.starts_with("is not available"))
            .then(|| name.to_owned())
    })
}

/// Returns the text after the blanks it begins with; `None` if it begins with none.
fn after_blanks(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(is_javascript_blank);
    (rest.len() < text.len()).then_some(rest)
}

fn leading_tool_name(text: &str) -> Option<&str> {
    let is_part = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '.' | '-');
    let len = text.find(|sign: char| !is_part(sign)).unwrap_or(text.len());
    text.get(..len).filter(|name| !name.is_empty())
}

/// Returns a delivery without the ids and times that are new each time.
fn without_delivery_ids(delivery: &Map<String, Value>) -> Map<String, Value> {
    let is_text = |key: &str| delivery.get(key).is_some_and(Value::is_string);
    let is_message = is_text("id")
        && is_text("text")
        && (is_text("direction")
            || is_text("senderId")
            || is_text("accountId")
            || delivery.get("conversation").is_some_and(Value::is_object));
    let kept = delivery.iter().filter(|(key, _)| {
        !(VOLATILE_DELIVERY_KEYS.contains(&key.as_str()) || is_message && *key == "id")
    });
    kept.map(|(key, item)| (key.clone(), value_without_delivery_ids(item)))
        .collect()
}

fn value_without_delivery_ids(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(value_without_delivery_ids).collect(),
        Value::Object(map) => Value::Object(without_delivery_ids(map)),
        other => other.clone(),
    }
}

/// A larger result is compared as it was written.
const MAX_INDENTED_BYTES: usize = 256 * 1024;
/// Of a longer text, the digest is digested.
const MAX_COPIED_BYTES: usize = 256;

/// One part of what a digest is made of.
enum Part<'a> {
    /// A word of ours, which tells kinds of digests apart.
    Word(&'a str),
    /// A text that came back.
    Text(&'a str),
    /// A value that came back.
    Value(&'a Value),
    /// An object that came back.
    Fields(&'a Map<String, Value>),
}

fn digest_parts(parts: &[Part<'_>]) -> EightByteDigest {
    digest_written(|bytes| {
        for part in parts {
            match part {
                Part::Word(word) => write_stable_string(word, bytes),
                Part::Text(text) => write_stable_string(&mask_external_content_ids(text), bytes),
                Part::Value(value) => write_stable_value(value, bytes, mask_external_content_ids),
                Part::Fields(fields) => {
                    write_stable_fields(fields, bytes, mask_external_content_ids)
                }
            }
        }
    })
}

thread_local! {
    /// What is digested next. Allocated once: this is done twice for each call.
    static DIGESTED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Returns the digest of what `write` appends.
fn digest_written(write: impl FnOnce(&mut Vec<u8>)) -> EightByteDigest {
    DIGESTED.with_borrow_mut(|bytes| {
        bytes.clear();
        write(bytes);
        EightByteDigest(xxh3_64(bytes))
    })
}

fn four_byte_digest(text: &str) -> u32 {
    xxh3_64(text.as_bytes()) as u32
}

/// Writes a value so that equal values, in the sense of JavaScript, have equal bytes, and different ones
/// do not: keys sorted, numbers as doubles, lengths before what they count.
fn write_stable_value<'a>(
    value: &'a Value,
    out: &mut Vec<u8>,
    mask: impl Fn(&'a str) -> Cow<'a, str> + Copy,
) {
    match value {
        Value::Null => out.push(b'n'),
        Value::Bool(true) => out.push(b't'),
        Value::Bool(false) => out.push(b'f'),
        Value::Number(number) => {
            out.push(b'd');
            out.extend_from_slice(&javascript_number_bits(number).to_le_bytes());
        }
        Value::String(text) => write_stable_string(&mask(text), out),
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write_stable_value(item, out, mask);
            }
            out.push(b']');
        }
        Value::Object(map) => write_stable_fields(map, out, mask),
    }
}

/// Returns the bits of the double that a number is in JavaScript, where 0 and -0 are one.
fn javascript_number_bits(number: &serde_json::Number) -> u64 {
    const MINUS_ZERO: u64 = 1 << 63;
    // `None` for no number that was read from JSON.
    match number.as_f64().unwrap_or_default().to_bits() {
        MINUS_ZERO => 0,
        bits => bits,
    }
}

fn write_stable_fields<'a>(
    map: &'a Map<String, Value>,
    out: &mut Vec<u8>,
    mask: impl Fn(&'a str) -> Cow<'a, str> + Copy,
) {
    out.push(b'{');
    let begin = out.len();
    let mut last: Option<&String> = None;
    for (key, item) in map {
        // `serde_json` sorts by itself, unless a crate of the build asks it for another order.
        if last.replace(key).is_some_and(|last| last > key) {
            out.truncate(begin);
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            for (key, item) in entries {
                write_stable_string(&mask(key), out);
                write_stable_value(item, out, mask);
            }
            break;
        }
        write_stable_string(&mask(key), out);
        write_stable_value(item, out, mask);
    }
    out.push(b'}');
}

fn write_stable_string(text: &str, out: &mut Vec<u8>) {
    out.push(b's');
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    // A long text is not copied.
    if text.len() > MAX_COPIED_BYTES {
        out.extend_from_slice(&xxh3_64(text.as_bytes()).to_le_bytes());
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

fn trim_like_javascript(text: &str) -> &str {
    text.trim_matches(is_javascript_blank)
}

/// Blanks of JavaScript are those of Unicode with the byte order mark and without the next-line sign.
fn is_javascript_blank(sign: char) -> bool {
    (sign.is_whitespace() && sign != '\u{85}') || sign == '\u{feff}'
}

/// Returns the JSON with its keys in their order and an indent of two, as `JSON.stringify` writes it.
fn indented_json_text(raw: &str) -> String {
    // Only equality counts, and the indent of a deep value is many times the value.
    if raw.len() > MAX_INDENTED_BYTES {
        return raw.to_owned();
    }
    let Ok(value) = serde_json::from_str::<OrderedJson>(raw) else {
        return raw.to_owned();
    };
    let mut out = Vec::with_capacity(raw.len());
    value.write_indented(0, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A JSON value that keeps the order of its keys.
enum OrderedJson {
    Scalar(Value),
    List(Vec<OrderedJson>),
    Fields(Vec<(String, OrderedJson)>),
}

impl OrderedJson {
    fn write_indented(&self, depth: usize, out: &mut Vec<u8>) {
        let line = |out: &mut Vec<u8>, depth: usize| {
            out.push(b'\n');
            out.extend(std::iter::repeat_n(b' ', 2 * depth));
        };
        match self {
            Self::Scalar(Value::Number(number)) => {
                let text = match javascript_number_bits(number) {
                    0 => "0".to_owned(),
                    _ => number.as_f64().unwrap_or_default().to_string(),
                };
                out.extend_from_slice(text.as_bytes());
            }
            Self::Scalar(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Self::List(items) if items.is_empty() => out.extend_from_slice(b"[]"),
            Self::Fields(fields) if fields.is_empty() => out.extend_from_slice(b"{}"),
            Self::List(items) => {
                out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    line(out, depth + 1);
                    item.write_indented(depth + 1, out);
                }
                line(out, depth);
                out.push(b']');
            }
            Self::Fields(fields) => {
                out.push(b'{');
                for (at, (key, item)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    line(out, depth + 1);
                    out.extend_from_slice(Value::from(key.as_str()).to_string().as_bytes());
                    out.extend_from_slice(b": ");
                    item.write_indented(depth + 1, out);
                }
                line(out, depth);
                out.push(b'}');
            }
        }
    }
}

impl<'de> Deserialize<'de> for OrderedJson {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct OrderedJsonVisitor;
        impl<'de> Visitor<'de> for OrderedJsonVisitor {
            type Value = OrderedJson;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_unit<E>(self) -> Result<OrderedJson, E> {
                Ok(OrderedJson::Scalar(Value::Null))
            }
            fn visit_bool<E>(self, value: bool) -> Result<OrderedJson, E> {
                Ok(OrderedJson::Scalar(value.into()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<OrderedJson, E> {
                Ok(OrderedJson::Scalar(value.into()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<OrderedJson, E> {
                Ok(OrderedJson::Scalar(value.into()))
            }
            #[expect(
                clippy::disallowed_types,
                reason = "serde's own signature; the value is written as it was read"
            )]
            fn visit_f64<E>(self, value: f64) -> Result<OrderedJson, E> {
                Ok(OrderedJson::Scalar(value.into()))
            }
            fn visit_str<E>(self, value: &str) -> Result<OrderedJson, E> {
                Ok(OrderedJson::Scalar(value.into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<OrderedJson, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(OrderedJson::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<OrderedJson, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = items.next_entry()? {
                    fields.push(field);
                }
                Ok(OrderedJson::Fields(fields))
            }
        }
        from.deserialize_any(OrderedJsonVisitor)
    }
}

/// Returns whether a result has the shape of OpenClaw's own, and nothing beside it: `content` of texts,
/// and `details`. Results of MCP servers look like it and have more in them.
pub fn is_openclaw_result(result: &Value) -> bool {
    let Value::Object(map) = result else {
        return true;
    };
    let looks_like_one =
        map.get("content").is_some_and(Value::is_array) || map.contains_key("details");
    let is_text = |entry: &Value| entry.get("type").and_then(Value::as_str) == Some("text");
    !looks_like_one
        || (map
            .keys()
            .all(|key| matches!(key.as_str(), "content" | "details"))
            && map
                .get("content")
                .and_then(Value::as_array)
                .is_none_or(|entries| entries.iter().all(is_text)))
}

#[cfg(test)]
mod tests;
