//! Reads a message's fields tolerantly: unknown fields are ignored, an optional field of the wrong
//! type counts as missing, and a missing field without which nothing can be judged is an
//! [`AgentMessageParseError`].

use serde_json::{Map, Value};

use crate::agent_event::{AgentEventKind, AgentMessageParseError, AwaitedHookReplyForm};
use crate::lenient_json;

/// The fields of one message of one agent.
#[derive(Debug)]
pub(crate) struct HookPayloadFields {
    pub(crate) agent: &'static str,
    pub(crate) event: AgentEventKind,
    pub(crate) native_event: String,
    map: Map<String, Value>,
}

impl HookPayloadFields {
    /// Parses one JSON object. The field `name` holds the agent's name of the event, which `kind`
    /// translates.
    pub(crate) fn parse_hook_message(
        agent: &'static str,
        name: &'static str,
        kind: fn(&str) -> AgentEventKind,
        bytes: &[u8],
    ) -> Result<Self, AgentMessageParseError> {
        // A broken message often still shows which event it is, and so which form of answer the
        // agent waits for.
        let guess = || find_field_in_broken_json(bytes, name).map(|native| kind(&native));
        let unreadable = |what: String, place: String, hint: &'static str| {
            let event = guess();
            let form = event.map_or(
                AwaitedHookReplyForm::Unknown,
                AwaitedHookReplyForm::reply_form_for_event,
            );
            AgentMessageParseError {
                agent,
                event,
                what,
                place,
                hint,
                reply_form: form,
            }
        };
        let value = lenient_json::parse_json_with_lone_surrogates(bytes).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            // The hints differ by cause: a person who types the command, a wrapper that cuts, a
            // wrapper that prints.
            let (what, hint) = if bytes.iter().all(u8::is_ascii_whitespace) {
                (
                    "empty input",
                    "this command is run by the agent, which writes JSON to its stdin",
                )
            } else if error.is_eof() {
                (
                    "the JSON ends in the middle",
                    "the agent or a wrapper cut its message",
                )
            } else {
                (
                    "not JSON",
                    "the agent, or a wrapper around the hook, sent something else",
                )
            };
            unreadable(what.to_owned(), place, hint)
        })?;
        let Value::Object(map) = value else {
            return Err(unreadable(
                "not a JSON object".to_owned(),
                "line 1, column 1".to_owned(),
                "one object is expected",
            ));
        };
        let Some(native) = map.get(name).and_then(Value::as_str).map(str::to_owned) else {
            return Err(unreadable(
                "no event name".to_owned(),
                format!("field {name:?}"),
                "is this hook installed for the right agent?",
            ));
        };
        Ok(Self {
            agent,
            event: kind(&native),
            native_event: native,
            map,
        })
    }

    /// A text.
    pub(crate) fn text_field(&self, field: &str) -> Option<&str> {
        self.map.get(field).and_then(Value::as_str)
    }

    /// A text that is not empty, as identifiers are.
    pub(crate) fn nonempty_payload_text_field(&self, field: &str) -> Option<&str> {
        self.text_field(field).filter(|text| !text.is_empty())
    }

    /// A text without which the message cannot be judged.
    pub(crate) fn required_id_field(&self, field: &str) -> Result<&str, AgentMessageParseError> {
        self.nonempty_payload_text_field(field)
            .ok_or_else(|| AgentMessageParseError {
                agent: self.agent,
                event: Some(self.event),
                what: if self.map.contains_key(field) {
                    "not a text, or an empty one".to_owned()
                } else {
                    format!("{} cannot be judged without this", self.native_event)
                },
                place: format!("field {field:?}"),
                hint: "a newer or older version of the agent? `checkrein doctor` compares",
                reply_form: AwaitedHookReplyForm::reply_form_for_event(self.event),
            })
    }

    /// A boolean.
    pub(crate) fn bool_field(&self, field: &str) -> Option<bool> {
        self.map.get(field).and_then(Value::as_bool)
    }

    /// Any value; `null` if it is missing.
    pub(crate) fn json_field(&self, field: &str) -> &Value {
        self.map.get(field).unwrap_or(&Value::Null)
    }

    /// A list; empty if it is missing.
    pub(crate) fn json_list_field(&self, field: &str) -> &[Value] {
        self.map
            .get(field)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    /// An own copy of an identifier.
    pub(crate) fn owned_id_field(&self, field: &str) -> Option<String> {
        self.nonempty_payload_text_field(field).map(str::to_owned)
    }
}

/// Returns the first text value of this field anywhere in the bytes, however broken they are.
fn find_field_in_broken_json(bytes: &[u8], field: &str) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let (_, after) = text.split_once(&format!("\"{field}\""))?;
    let value = after
        .trim_start()
        .strip_prefix(':')?
        .trim_start()
        .strip_prefix('"')?;
    let (name, _) = value.split_once('"')?;
    // No event has a name that long; more is other text behind a lost quotation mark.
    (name.len() <= 64).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(native: &str) -> AgentEventKind {
        if native == "Stop" {
            AgentEventKind::Stop
        } else {
            AgentEventKind::Other
        }
    }

    #[test]
    fn what_cannot_be_read_still_says_what_it_seems_to_be() {
        let check = |bytes: &[u8], what: &str, place: &str, form: AwaitedHookReplyForm| {
            let error =
                HookPayloadFields::parse_hook_message("agent", "name", kind, bytes).unwrap_err();
            assert_eq!(
                (error.what.as_str(), error.place.as_str(), error.reply_form),
                (what, place, form)
            );
        };
        check(
            b" \n",
            "empty input",
            "line 2, column 0",
            AwaitedHookReplyForm::Unknown,
        );
        check(
            b"nonsense",
            "not JSON",
            "line 1, column 2",
            AwaitedHookReplyForm::Unknown,
        );
        check(
            br#"{"name" : "Stop", "x": "#,
            "the JSON ends in the middle",
            "line 1, column 23",
            AwaitedHookReplyForm::Stop,
        );
        check(
            br#"{"name":"Other", nope"#,
            "not JSON",
            "line 1, column 18",
            AwaitedHookReplyForm::Silent,
        );
        check(
            b"[1]",
            "not a JSON object",
            "line 1, column 1",
            AwaitedHookReplyForm::Unknown,
        );
        check(
            b"{}",
            "no event name",
            "field \"name\"",
            AwaitedHookReplyForm::Unknown,
        );
    }

    #[test]
    fn an_optional_field_of_the_wrong_type_is_a_missing_one() {
        let fields = HookPayloadFields::parse_hook_message(
            "agent",
            "name",
            kind,
            br#"{"name":"Stop","a":7,"b":"x","c":[1],"d":true}"#,
        )
        .unwrap();
        assert_eq!(
            (
                fields.text_field("a"),
                fields.text_field("b"),
                fields.json_list_field("b").len(),
                fields.json_list_field("c").len()
            ),
            (None, Some("x"), 0, 1)
        );
        assert_eq!(
            (fields.bool_field("b"), fields.bool_field("d")),
            (None, Some(true))
        );
        let error = fields.required_id_field("a").unwrap_err();
        assert_eq!(
            (error.reply_form, error.place.as_str()),
            (AwaitedHookReplyForm::Stop, "field \"a\"")
        );
    }
}
