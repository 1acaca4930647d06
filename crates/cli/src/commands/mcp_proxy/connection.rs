//! Forwards messages between client and server. Calls of tools are judged and their results
//! recorded; everything else passes unchanged.

use std::collections::BTreeMap;
use std::io::{PipeWriter, Write as _};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use checkrein_adapters::mcp;
use checkrein_runtime::tool_result_text;
use serde_json::{Map, Value};

use super::declared_tools::ServerDeclaredTools;
use super::gate::{ForwardedCall, McpProxySessionGate, ProxiedCallDecision};
use super::wire::{
    INVALID_REQUEST, JsonRpcMessage, McpStreamReadResult, SERVER_FAILED, parse_raw_json_part,
};
use crate::ui;
use crate::ui::printable::escape_to_one_line;

/// Lines in a row that are no messages: a server that prints more is taken for broken.
const MAX_STRAY: usize = 1_000;
/// Lines that are no messages and are shown to a person.
const SHOWN_STRAY: usize = 3;
/// Bytes of such a line that are shown.
const SHOWN_STRAY_BYTES: usize = 200;
/// Requests that may wait for an answer of the server at a time.
const MAX_OPEN: usize = 10_000;

/// Calls of one tool with the same arguments that may wait for an answer at a time.
const MAX_IDENTICAL_OPEN: usize = 20;

/// Forwards both directions.
pub(super) struct McpMessageForwarder {
    pub(super) gate: McpProxySessionGate,
    /// The name that rules use for the server; without one, the name it gives itself counts.
    given_name: Option<String>,
    learned_name: OnceLock<String>,
    program: String,
    declared_tools: ServerDeclaredTools,
    open_requests: Mutex<BTreeMap<String, OpenMcpRequestPurpose>>,
    server_stdin: Mutex<Option<PipeWriter>>,
    /// When the client sent its first request.
    pub(super) first_request_at: OnceLock<Instant>,
    /// Set once the server has answered anything.
    pub(super) answered: OnceLock<()>,
    /// Whether a person was told that the server answers what nobody waits for.
    warned_unsolicited: OnceLock<()>,
}

/// A call that waits to be judged.
pub(super) struct QueuedMcpToolCall {
    message: JsonRpcMessage,
    params: Value,
    tool: String,
    id: Value,
}

/// What the answer to an open request is for.
enum OpenMcpRequestPurpose {
    /// A call that is being judged, by the client's id.
    Evaluating(Value),
    /// A call that was judged and sent, by the client's id.
    Forwarded(Value, Box<ForwardedCall>),
    /// The client's `initialize` or `server/discover`, whose answer names the server.
    Handshake(Value),
    /// Any other request of the client.
    Other(Value),
    /// Our own request for a list of tools, by its number.
    ToolList(u64),
}

/// What a line of the server turned out to be.
pub(super) enum MessageOrStrayLine {
    /// A message.
    Message,
    /// Anything else.
    Stray,
}

fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl McpMessageForwarder {
    pub(super) fn new(
        gate: McpProxySessionGate,
        down: PipeWriter,
        named: Option<String>,
        program: String,
    ) -> Self {
        Self {
            gate,
            given_name: named,
            learned_name: OnceLock::new(),
            program,
            declared_tools: ServerDeclaredTools::default(),
            open_requests: Mutex::new(BTreeMap::new()),
            server_stdin: Mutex::new(Some(down)),
            first_request_at: OnceLock::new(),
            answered: OnceLock::new(),
            warned_unsolicited: OnceLock::new(),
        }
    }

    fn proxied_server_name(&self) -> &str {
        let named = self.given_name.as_ref().or_else(|| self.learned_name.get());
        named.unwrap_or(&self.program)
    }

    /// Closes the server's stdin. Does not wait for the lock: a thread that writes to a server
    /// which does not read may hold it.
    pub(super) fn close_server_stdin(&self) {
        if let Ok(mut down) = self.server_stdin.try_lock() {
            down.take();
        }
    }

    /// Notes that the server's output has ended.
    pub(super) fn mark_server_output_ended(&self) {
        self.declared_tools.mark_server_gone();
    }

    /// Answers every open request with this error.
    pub(super) fn answer_open_requests_with_error(&self, why: &str) {
        for (_, open) in std::mem::take(&mut *lock_unpoisoned(&self.open_requests)) {
            let text = format!("checkrein mcp-proxy: {why}");
            match open {
                OpenMcpRequestPurpose::Forwarded(id, passed) => {
                    // The server got this call and may have run it, so the log gets an outcome too.
                    self.gate.record_mcp_call_failure(&passed.call, why);
                    send_to_client(&JsonRpcMessage::json_rpc_result_message(
                        id,
                        &mcp::mcp_refusal_result(&text, &Value::Null),
                    ));
                }
                OpenMcpRequestPurpose::Evaluating(id) => {
                    send_to_client(&JsonRpcMessage::json_rpc_result_message(
                        id,
                        &mcp::mcp_refusal_result(&text, &Value::Null),
                    ));
                }
                OpenMcpRequestPurpose::Handshake(id) | OpenMcpRequestPurpose::Other(id) => {
                    send_to_client(&JsonRpcMessage::new_json_rpc_error(
                        id,
                        SERVER_FAILED,
                        &text,
                    ));
                }
                // A request of our own: whoever waits for the list learns from
                // `mark_server_silent`.
                OpenMcpRequestPurpose::ToolList(_) => {}
            }
        }
    }

    /// Handles a line of the client. Calls are queued for the thread that judges them one after the
    /// other: that may take a while, and nothing else waits for it.
    pub(super) fn handle_line_from_mcp_client(
        &self,
        line: McpStreamReadResult,
        calls: &Sender<QueuedMcpToolCall>,
    ) {
        let refused = |text: &str| {
            send_to_client(&JsonRpcMessage::new_json_rpc_error(
                Value::Null,
                INVALID_REQUEST,
                &format!("checkrein mcp-proxy: this message is not passed on: {text}"),
            ));
        };
        let message = match line {
            McpStreamReadResult::End => return,
            McpStreamReadResult::Text(line) if line.trim().is_empty() => return,
            McpStreamReadResult::Text(line) => JsonRpcMessage::parse_json_rpc_line(&line),
            McpStreamReadResult::NotUtf8 => Err("it is not UTF-8".to_owned()),
            McpStreamReadResult::TooLong => Err(TOO_LONG_TEXT.to_owned()),
        };
        let message = match message {
            Ok(message) => message,
            Err(why) => return refused(&why),
        };
        let id = message.id.clone();
        match (message.method.as_deref(), id) {
            (Some(method), Some(id)) => {
                // The key is the id as JSON text, so 1 and "1" are two requests.
                let key = id.to_string();
                let taken = {
                    let open = lock_unpoisoned(&self.open_requests);
                    // With one id for two requests, the answer to one would pass for the answer to
                    // the other.
                    open.contains_key(&key) || open.len() >= MAX_OPEN
                };
                if taken {
                    let text =
                        "checkrein mcp-proxy: this id is in use, or too many requests are open";
                    return send_to_client(&JsonRpcMessage::new_json_rpc_error(
                        id,
                        INVALID_REQUEST,
                        text,
                    ));
                }
                // The time to start counts from the first request: a server may do nothing before
                // it.
                if self.first_request_at.get().is_none() {
                    let _ = self.first_request_at.set(Instant::now());
                }
                if method == "tools/call" {
                    match parse_mcp_tool_call(message, id.clone()) {
                        Ok(call) => {
                            // Entered before it is queued, so that a cancellation finds it.
                            lock_unpoisoned(&self.open_requests)
                                .insert(key, OpenMcpRequestPurpose::Evaluating(id));
                            // The thread that judges ends after this one, so the queue is still
                            // read.
                            let _ = calls.send(call);
                        }
                        Err(text) => send_to_client(&JsonRpcMessage::new_json_rpc_error(
                            id,
                            INVALID_REQUEST,
                            text,
                        )),
                    }
                    return;
                }
                // The answer to a handshake names the server, and rules know its tools by that
                // name.
                let open = match method {
                    "initialize" | "server/discover" => OpenMcpRequestPurpose::Handshake(id),
                    _ => OpenMcpRequestPurpose::Other(id),
                };
                lock_unpoisoned(&self.open_requests).insert(key, open);
                self.send_to_server(&message);
            }
            (Some("tools/call"), None) => {
                refused("a call of a tool needs an id, so that it can be answered");
            }
            (Some("notifications/cancelled"), None) => {
                let params = parse_raw_json_part(message.params.as_deref());
                let key = params.get("requestId").map(Value::to_string);
                let open = key.and_then(|key| lock_unpoisoned(&self.open_requests).remove(&key));
                match open {
                    // The server has not seen this call and will not, so it needs no cancellation.
                    Some(OpenMcpRequestPurpose::Evaluating(_)) => return,
                    Some(OpenMcpRequestPurpose::Forwarded(_, passed)) => {
                        self.gate.record_mcp_call_failure(&passed.call, CANCELLED)
                    }
                    Some(
                        OpenMcpRequestPurpose::Handshake(_)
                        | OpenMcpRequestPurpose::Other(_)
                        | OpenMcpRequestPurpose::ToolList(_),
                    )
                    | None => {}
                }
                self.send_to_server(&message);
            }
            (_, _) => self.send_to_server(&message),
        }
    }

    /// Judges a call, and forwards or answers it.
    pub(super) fn forward_call_if_allowed(&self, call: QueuedMcpToolCall) {
        let QueuedMcpToolCall {
            message,
            params,
            tool,
            id,
        } = call;
        let args = match params.get("arguments") {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(args) => args.clone(),
        };
        let meta = params.get("_meta").cloned().unwrap_or_default();
        // Ids of our own begin with `checkrein/`. They are entered as a client's are, so that the
        // answers are taken out again and not forwarded.
        let ask = |number: u64, params: Value| {
            let id = format!("checkrein/tools/{number}");
            let request = JsonRpcMessage::new_json_rpc_request(&id, "tools/list", &params);
            lock_unpoisoned(&self.open_requests).insert(
                Value::from(id).to_string(),
                OpenMcpRequestPurpose::ToolList(number),
            );
            self.send_to_server(&request);
        };
        let misfit = self.declared_tools.check_call_against_declared_tools(
            &tool,
            &args,
            &keep_protocol_meta_entries(&meta),
            &ask,
        );
        let call = self
            .gate
            .new_mcp_tool_call(self.proxied_server_name(), &tool, args);
        // A misfit is no refusal yet: the gate counts the call first, for the detectors.
        let against = misfit.map(|misfit| misfit.to_string());
        let against = against.or_else(|| self.identical_open_calls_refusal(&call));
        let judged = self.gate.evaluate_mcp_tool_call(call, against);
        let key = id.to_string();
        let mut open = lock_unpoisoned(&self.open_requests);
        // The client may have cancelled the call meanwhile. Then its entry is gone, and nobody
        // waits.
        let waits = matches!(open.get(&key), Some(OpenMcpRequestPurpose::Evaluating(_)));
        match judged {
            ProxiedCallDecision::Refused(text) if waits => {
                open.remove(&key);
                drop(open);
                send_to_client(&JsonRpcMessage::json_rpc_result_message(
                    id,
                    &mcp::mcp_refusal_result(&text, &meta),
                ));
            }
            ProxiedCallDecision::Forward(passed) if waits => {
                // Entered before it is sent, because a server may answer at once.
                open.insert(key, OpenMcpRequestPurpose::Forwarded(id, Box::new(passed)));
                drop(open);
                // The parameters that were judged are the ones that are sent.
                self.send_to_server(&message.with_json_rpc_params(&params));
            }
            ProxiedCallDecision::Refused(_) => {}
            // Cancelled after it was judged: it is not sent, and its outcome is recorded.
            ProxiedCallDecision::Forward(passed) => {
                drop(open);
                self.gate.record_mcp_call_failure(&passed.call, CANCELLED);
            }
        }
    }

    /// Says why this call is not sent, if the server owes answers to too many calls exactly like
    /// it. Other calls between them hide none, whereas a detector sees only the last thirty.
    fn identical_open_calls_refusal(&self, call: &mcp::McpToolCall) -> Option<String> {
        let digest = call.call_digest();
        let open = lock_unpoisoned(&self.open_requests);
        let alike = |open: &&OpenMcpRequestPurpose| matches!(open, OpenMcpRequestPurpose::Forwarded(_, passed) if passed.digest == digest);
        let alike = open.values().filter(alike).count();
        (alike >= MAX_IDENTICAL_OPEN).then(|| {
            format!(
                "{alike} calls exactly like this one have not come back; it is not sent before one of them has. Wait, or try something else"
            )
        })
    }

    /// Sends a message to the server.
    fn send_to_server(&self, message: &JsonRpcMessage) {
        let mut down = lock_unpoisoned(&self.server_stdin);
        if let Some(pipe) = down.as_mut()
            && pipe.write_all(&message.to_json_rpc_line()).is_err()
        {
            // The server is gone or about to go. Open requests are answered once that is certain.
            down.take();
        }
    }

    /// Handles a line of the server.
    pub(super) fn handle_line_from_mcp_server(&self, line: &str) -> MessageOrStrayLine {
        let Ok(message) = JsonRpcMessage::parse_json_rpc_line(line) else {
            return MessageOrStrayLine::Stray;
        };
        let _ = self.answered.set(());
        if message.method.as_deref() == Some("notifications/tools/list_changed") {
            self.declared_tools.forget_declared_tools();
        }
        // Ids are counted by each side for itself: a request of the server may have the id of an
        // open request of the client.
        let open = match (&message.method, message.json_rpc_id_key()) {
            (None, Some(key)) => self.take_mcp_request_awaiting_reply(&key),
            _ => None,
        };
        // Some readers take a request that also has a result for an answer.
        let answers =
            message.method.is_none() || message.result.is_some() || message.error.is_some();
        // With middleware every result must have been looked at, so an answer to nothing is
        // withheld.
        if open.is_none() && answers && self.gate.middleware_rewrites_results() {
            self.warn_unsolicited_answer();
            return MessageOrStrayLine::Message;
        }
        match open {
            Some(OpenMcpRequestPurpose::ToolList(number)) => {
                let page = parse_raw_json_part(message.result.as_deref());
                self.learn_mcp_server_name(&page);
                let answer = message.result.is_some().then_some(page);
                self.declared_tools
                    .hand_tool_list_page_to_waiter(number, answer.ok_or(()));
                return MessageOrStrayLine::Message;
            }
            Some(OpenMcpRequestPurpose::Forwarded(_, passed)) => {
                return self.record_and_forward_result(line, message, &passed);
            }
            Some(OpenMcpRequestPurpose::Handshake(_)) => {
                self.learn_mcp_server_name(&parse_raw_json_part(message.result.as_deref()))
            }
            Some(OpenMcpRequestPurpose::Evaluating(_) | OpenMcpRequestPurpose::Other(_)) | None => {
            }
        }
        send_line_to_client(line);
        MessageOrStrayLine::Message
    }

    /// Takes out the request that this answer belongs to.
    fn take_mcp_request_awaiting_reply(&self, key: &str) -> Option<OpenMcpRequestPurpose> {
        let mut open = lock_unpoisoned(&self.open_requests);
        // The server has not been sent a call that is still being judged.
        let early = matches!(open.get(key), Some(OpenMcpRequestPurpose::Evaluating(_)));
        // The entry stays in that case: the call is still being judged, and the early answer is
        // dropped.
        match early && self.gate.middleware_rewrites_results() {
            true => None,
            false => open.remove(key),
        }
    }

    /// Warns once that the server answers what nobody waits for, which middleware would not see.
    fn warn_unsolicited_answer(&self) {
        if self.warned_unsolicited.set(()).is_ok() {
            ui::print_wrapped_to_stderr(
                "checkrein mcp-proxy: the server sent an answer that nobody waits for; such answers are not passed on, as middleware looks at results",
            );
        }
    }

    fn record_and_forward_result(
        &self,
        line: &str,
        message: JsonRpcMessage,
        passed: &ForwardedCall,
    ) -> MessageOrStrayLine {
        let error = message
            .error
            .as_deref()
            .map(|error| parse_raw_json_part(Some(error)));
        let mut result = parse_raw_json_part(message.result.as_deref());
        let answer = match &error {
            Some(error) => Err(error),
            None => Ok(&result),
        };
        let given = self.gate.record_mcp_call_result(&passed.call, answer);
        // Nothing to change: the client gets the server's own bytes.
        if given.is_none() && passed.advice.is_none() {
            send_line_to_client(line);
            return MessageOrStrayLine::Message;
        }
        let id = message.id.unwrap_or_default();
        match error {
            None => {
                if let Some(given) = &given {
                    result = mcp::replace_tool_result(&result, given);
                }
                if let Some(advice) = &passed.advice {
                    mcp::append_nudge_to_tool_result(&mut result, advice);
                }
                send_to_client(&JsonRpcMessage::json_rpc_result_message(id, &result));
            }
            Some(error) => {
                let code = error.get("code").and_then(Value::as_i64);
                // A model reads the message of an error, so advice and rewrites go into it.
                let said = tool_result_text(given.as_ref().unwrap_or(&error));
                let advice = passed.advice.as_deref().map(|advice| format!("\n{advice}"));
                let text = said + &advice.unwrap_or_default();
                send_to_client(&JsonRpcMessage::new_json_rpc_error(
                    id,
                    code.unwrap_or(SERVER_FAILED),
                    &text,
                ));
            }
        }
        MessageOrStrayLine::Message
    }

    /// Learns the name that the server gives itself.
    fn learn_mcp_server_name(&self, result: &Value) {
        let info = result.get("serverInfo").or_else(|| {
            result
                .get("_meta")?
                .get("io.modelcontextprotocol/serverInfo")
        });
        let name = info
            .and_then(|info| info.get("name"))
            .and_then(Value::as_str);
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            // Only the first name is kept: a server must not slip out of rules by renaming itself.
            let _ = self.learned_name.set(name.to_owned());
        }
    }
}

/// Returns a call, or what is wrong with it.
fn parse_mcp_tool_call(
    message: JsonRpcMessage,
    id: Value,
) -> Result<QueuedMcpToolCall, &'static str> {
    let params = parse_raw_json_part(message.params.as_deref());
    let tool = params.get("name").and_then(Value::as_str);
    let tool = tool
        .ok_or("checkrein mcp-proxy: a call of a tool names it in params.name")?
        .to_owned();
    // Some readers ignore case: the server could read another name or other arguments than were
    // judged.
    let double = |name: &str| {
        let mut names = params.as_object().into_iter().flat_map(Map::keys);
        names.any(|key| key != name && key.eq_ignore_ascii_case(name))
    };
    if double("name") || double("arguments") {
        return Err("checkrein mcp-proxy: params has two spellings of name or arguments");
    }
    Ok(QueuedMcpToolCall {
        message,
        params,
        tool,
        id,
    })
}

/// The outcome of a call that the client cancelled.
const CANCELLED: &str = "cancelled";

/// Describes a message that is too long.
pub(super) const TOO_LONG_TEXT: &str = "it is longer than 32 MiB";

/// Counts lines of a server that are no messages.
#[derive(Default)]
pub(super) struct StrayLineCounter {
    in_a_row: usize,
    shown: usize,
}

impl StrayLineCounter {
    /// Notes a line that was a message.
    pub(super) fn reset_stray_line_count(&mut self) {
        self.in_a_row = 0;
    }

    /// Notes a line that was none; returns whether there are too many of them.
    pub(super) fn count_stray_mcp_line(&mut self, line: &str) -> bool {
        self.in_a_row += 1;
        if self.shown < SHOWN_STRAY {
            self.shown += 1;
            let head = line
                .get(..line.floor_char_boundary(SHOWN_STRAY_BYTES))
                .unwrap_or_default();
            ui::print_wrapped_to_stderr(&format!(
                "checkrein mcp-proxy: the server printed something that is no message, and it is not passed on: {}",
                escape_to_one_line(head)
            ));
        }
        self.in_a_row > MAX_STRAY
    }
}

/// Returns the metadata of the protocol, which each request carries since 2026-07-28: our requests
/// say the same as the client's.
fn keep_protocol_meta_entries(meta: &Value) -> Value {
    let Value::Object(meta) = meta else {
        return Value::Null;
    };
    let of_protocol = meta
        .iter()
        .filter(|(name, _)| name.starts_with("io.modelcontextprotocol/"));
    let of_protocol: Map<String, Value> = of_protocol
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    match of_protocol.is_empty() {
        true => Value::Null,
        false => Value::Object(of_protocol),
    }
}

/// Sends a message to the client.
fn send_to_client(message: &JsonRpcMessage) {
    ui::write_stdout_bytes(&message.to_json_rpc_line());
}

fn send_line_to_client(line: &str) {
    ui::write_stdout_bytes(format!("{line}\n").as_bytes());
}
