//! What passes between client and server, and what is done to it: calls of tools are judged, their
//! results recorded; everything else goes on as it came.

use std::collections::BTreeMap;
use std::io::{PipeWriter, Write as _};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use checkrein_adapters::mcp;
use checkrein_runtime::tool_result_text;
use serde_json::{Map, Value};

use super::declared::Declared;
use super::gate::{Gate, Judged, Passed};
use super::wire::{INVALID, Line, Message, SERVER_FAILED, value};
use crate::ui;
use crate::ui::printable::one_line;

/// Lines of a server in a row that are no messages: more are no slip.
const MAX_STRAY: usize = 1_000;
/// So many of them are shown.
const SHOWN_STRAY: usize = 3;
/// Bytes of one that are shown.
const STRAY: usize = 200;
/// Requests that the server can owe an answer to.
const MAX_OPEN: usize = 10_000;

/// Calls of one tool with the same arguments that the server can owe an answer to.
const MAX_ALIKE: usize = 20;

/// Both directions.
pub(super) struct Passing {
    pub(super) gate: Gate,
    /// What rules call the server; until then it is known by its program.
    named: Option<String>,
    name: OnceLock<String>,
    program: String,
    declared: Declared,
    open: Mutex<BTreeMap<String, Open>>,
    down: Mutex<Option<PipeWriter>>,
    /// When the client asked for something first.
    pub(super) asked: OnceLock<Instant>,
    /// Whether the server has answered anything.
    pub(super) answered: OnceLock<()>,
    /// Whether it was said that it answers what nobody waits for.
    unasked: OnceLock<()>,
}

/// A call that is to be judged.
pub(super) struct Called {
    message: Message,
    params: Value,
    tool: String,
    id: Value,
}

/// What an answer is waited for.
enum Open {
    /// A call that is being judged; the client's id of it.
    Judged(Value),
    /// A call that was judged; the client's id of it.
    Call(Value, Box<Passed>),
    /// The client's `initialize` or `server/discover`: the answer names the server.
    Hello(Value),
    /// Anything else of the client's.
    Other(Value),
    /// A list of tools for ourselves, by its number.
    List(u64),
}

/// What became of a line of the server's.
pub(super) enum Stray {
    /// It was a message.
    No,
    /// It was none.
    Yes,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Passing {
    pub(super) fn new(
        gate: Gate,
        down: PipeWriter,
        named: Option<String>,
        program: String,
    ) -> Self {
        Self {
            gate,
            named,
            name: OnceLock::new(),
            program,
            declared: Declared::default(),
            open: Mutex::new(BTreeMap::new()),
            down: Mutex::new(Some(down)),
            asked: OnceLock::new(),
            answered: OnceLock::new(),
            unasked: OnceLock::new(),
        }
    }

    fn server(&self) -> &str {
        let named = self.named.as_ref().or_else(|| self.name.get());
        named.unwrap_or(&self.program)
    }

    /// Nothing more goes to the server. Without waiting: who writes to a server that does not read
    /// holds the line.
    pub(super) fn hang_up(&self) {
        if let Ok(mut down) = self.down.try_lock() {
            down.take();
        }
    }

    /// The server says nothing more.
    pub(super) fn silent(&self) {
        self.declared.gone();
    }

    /// What nobody answered is answered with this.
    pub(super) fn give_up(&self, why: &str) {
        for (_, open) in std::mem::take(&mut *lock(&self.open)) {
            let text = format!("checkrein mcp-proxy: {why}");
            match open {
                Open::Call(id, passed) => {
                    self.gate.failed(&passed.call, why);
                    up(&Message::answer(
                        id,
                        &mcp::refusal_result(&text, &Value::Null),
                    ));
                }
                Open::Judged(id) => {
                    up(&Message::answer(
                        id,
                        &mcp::refusal_result(&text, &Value::Null),
                    ));
                }
                Open::Hello(id) | Open::Other(id) => {
                    up(&Message::failure(id, SERVER_FAILED, &text));
                }
                Open::List(_) => {}
            }
        }
    }

    /// A line of the client's. Calls go to who judges them, one after the other: that may take a
    /// while, and nothing else waits for it.
    pub(super) fn client_says(&self, line: Line, calls: &Sender<Called>) {
        let refused = |text: &str| {
            up(&Message::failure(
                Value::Null,
                INVALID,
                &format!("checkrein mcp-proxy: this message is not passed on: {text}"),
            ));
        };
        let message = match line {
            Line::End => return,
            Line::Whole(line) if line.trim().is_empty() => return,
            Line::Whole(line) => Message::read(&line),
            Line::Bytes => Err("it is not UTF-8".to_owned()),
            Line::TooLong => Err(TOO_LONG.to_owned()),
        };
        let message = match message {
            Ok(message) => message,
            Err(why) => return refused(&why),
        };
        let id = message.id.clone();
        match (message.method.as_deref(), id) {
            (Some(method), Some(id)) => {
                let key = id.to_string();
                let taken = {
                    let open = lock(&self.open);
                    open.contains_key(&key) || open.len() >= MAX_OPEN
                };
                if taken {
                    let text =
                        "checkrein mcp-proxy: this id is in use, or too many requests are open";
                    return up(&Message::failure(id, INVALID, text));
                }
                if self.asked.get().is_none() {
                    let _ = self.asked.set(Instant::now());
                }
                if method == "tools/call" {
                    match called(message, id.clone()) {
                        Ok(call) => {
                            lock(&self.open).insert(key, Open::Judged(id));
                            // Who judges them goes after us.
                            let _ = calls.send(call);
                        }
                        Err(text) => up(&Message::failure(id, INVALID, text)),
                    }
                    return;
                }
                let open = match method {
                    "initialize" | "server/discover" => Open::Hello(id),
                    _ => Open::Other(id),
                };
                lock(&self.open).insert(key, open);
                self.down(&message);
            }
            (Some("tools/call"), None) => {
                refused("a call of a tool needs an id, so that it can be answered");
            }
            (Some("notifications/cancelled"), None) => {
                let params = value(message.params.as_deref());
                let key = params.get("requestId").map(Value::to_string);
                let open = key.and_then(|key| lock(&self.open).remove(&key));
                match open {
                    // The server does not know of it yet, and will not.
                    Some(Open::Judged(_)) => return,
                    Some(Open::Call(_, passed)) => self.gate.failed(&passed.call, CANCELLED),
                    Some(Open::Hello(_) | Open::Other(_) | Open::List(_)) | None => {}
                }
                self.down(&message);
            }
            (_, _) => self.down(&message),
        }
    }

    /// Judges a call, and sends it on or answers it.
    pub(super) fn call(&self, call: Called) {
        let Called {
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
        let ask = |number: u64, params: Value| {
            let id = format!("checkrein/tools/{number}");
            let request = Message::request(&id, "tools/list", &params);
            lock(&self.open).insert(Value::from(id).to_string(), Open::List(number));
            self.down(&request);
        };
        let misfit = self
            .declared
            .misfit(&tool, &args, &of_protocol(&meta), &ask);
        let call = self.gate.next_call(self.server(), &tool, args);
        let against = misfit.map(|misfit| misfit.to_string());
        let against = against.or_else(|| self.refuse_one_more(&call));
        let judged = self.gate.judge(call, against);
        let key = id.to_string();
        let mut open = lock(&self.open);
        let waits = matches!(open.get(&key), Some(Open::Judged(_)));
        match judged {
            Judged::Refused(text) if waits => {
                open.remove(&key);
                drop(open);
                up(&Message::answer(id, &mcp::refusal_result(&text, &meta)));
            }
            Judged::Runs(passed) if waits => {
                open.insert(key, Open::Call(id, Box::new(passed)));
                drop(open);
                // What was judged is what is sent.
                self.down(&message.with_params(&params));
            }
            Judged::Refused(_) => {}
            Judged::Runs(passed) => {
                drop(open);
                self.gate.failed(&passed.call, CANCELLED);
            }
        }
    }

    /// Why this call is not sent, if the server owes answers to as many of exactly this kind as it
    /// may. Other calls between them hide none: a detector looks at the last thirty only.
    fn refuse_one_more(&self, call: &mcp::McpToolCall) -> Option<String> {
        let digest = call.call_digest();
        let open = lock(&self.open);
        let alike = |open: &&Open| matches!(open, Open::Call(_, passed) if passed.digest == digest);
        let alike = open.values().filter(alike).count();
        (alike >= MAX_ALIKE).then(|| {
            format!(
                "{alike} calls exactly like this one have not come back; it is not sent before one of them has. Wait, or try something else"
            )
        })
    }

    /// To the server.
    fn down(&self, message: &Message) {
        let mut down = lock(&self.down);
        if let Some(pipe) = down.as_mut()
            && pipe.write_all(&message.line()).is_err()
        {
            // It is gone, or going: what is open is answered when that is known.
            down.take();
        }
    }

    /// A line of the server's.
    pub(super) fn server_says(&self, line: &str) -> Stray {
        let Ok(message) = Message::read(line) else {
            return Stray::Yes;
        };
        let _ = self.answered.set(());
        if message.method.as_deref() == Some("notifications/tools/list_changed") {
            self.declared.forget();
        }
        let open = match (&message.method, message.key()) {
            (None, Some(key)) => self.waits_for(&key),
            _ => None,
        };
        // There are readers to whom a request with a result is an answer.
        let answers =
            message.method.is_none() || message.result.is_some() || message.error.is_some();
        if open.is_none() && answers && self.gate.rewrites() {
            self.is_unasked();
            return Stray::No;
        }
        match open {
            Some(Open::List(number)) => {
                let page = value(message.result.as_deref());
                self.learn_name(&page);
                let answer = message.result.is_some().then_some(page);
                self.declared.page(number, answer.ok_or(()));
                return Stray::No;
            }
            Some(Open::Call(_, passed)) => return self.result(line, message, &passed),
            Some(Open::Hello(_)) => self.learn_name(&value(message.result.as_deref())),
            Some(Open::Judged(_) | Open::Other(_)) | None => {}
        }
        up_as_it_is(line);
        Stray::No
    }

    /// Who waits for this answer.
    fn waits_for(&self, key: &str) -> Option<Open> {
        let mut open = lock(&self.open);
        // The server has not heard of a call that is being judged.
        let early = matches!(open.get(key), Some(Open::Judged(_)));
        match early && self.gate.rewrites() {
            true => None,
            false => open.remove(key),
        }
    }

    /// The server answers what nobody waits for, and middleware would not see it.
    fn is_unasked(&self) {
        if self.unasked.set(()).is_ok() {
            ui::say(
                "checkrein mcp-proxy: the server sent an answer that nobody waits for; such answers are not passed on, as middleware looks at results",
            );
        }
    }

    fn result(&self, line: &str, message: Message, passed: &Passed) -> Stray {
        let error = message.error.as_deref().map(|error| value(Some(error)));
        let mut result = value(message.result.as_deref());
        let answer = match &error {
            Some(error) => Err(error),
            None => Ok(&result),
        };
        let given = self.gate.returned(&passed.call, answer);
        if given.is_none() && passed.advice.is_none() {
            up_as_it_is(line);
            return Stray::No;
        }
        let id = message.id.unwrap_or_default();
        match error {
            None => {
                if let Some(given) = &given {
                    result = mcp::rewrite_tool_result(&result, given);
                }
                if let Some(advice) = &passed.advice {
                    mcp::append_nudge_to_tool_result(&mut result, advice);
                }
                up(&Message::answer(id, &result));
            }
            Some(error) => {
                let code = error.get("code").and_then(Value::as_i64);
                // Of an error the words are what a model reads.
                let said = tool_result_text(given.as_ref().unwrap_or(&error));
                let advice = passed.advice.as_deref().map(|advice| format!("\n{advice}"));
                let text = said + &advice.unwrap_or_default();
                up(&Message::failure(id, code.unwrap_or(SERVER_FAILED), &text));
            }
        }
        Stray::No
    }

    /// The name that the server gives itself, the first time it does.
    fn learn_name(&self, result: &Value) {
        let info = result.get("serverInfo").or_else(|| {
            result
                .get("_meta")?
                .get("io.modelcontextprotocol/serverInfo")
        });
        let name = info
            .and_then(|info| info.get("name"))
            .and_then(Value::as_str);
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            let _ = self.name.set(name.to_owned());
        }
    }
}

/// A call, if it can be one; else what is wrong with it.
fn called(message: Message, id: Value) -> Result<Called, &'static str> {
    let params = value(message.params.as_deref());
    let tool = params.get("name").and_then(Value::as_str);
    let tool = tool
        .ok_or("checkrein mcp-proxy: a call of a tool names it in params.name")?
        .to_owned();
    // There are readers to whom these are the same.
    let double = |name: &str| {
        let mut names = params.as_object().into_iter().flat_map(Map::keys);
        names.any(|key| key != name && key.eq_ignore_ascii_case(name))
    };
    if double("name") || double("arguments") {
        return Err("checkrein mcp-proxy: params has two spellings of name or arguments");
    }
    Ok(Called {
        message,
        params,
        tool,
        id,
    })
}

/// The outcome of a call that the client took back.
const CANCELLED: &str = "cancelled";

/// What is said of a message that is too long.
pub(super) const TOO_LONG: &str = "it is longer than 32 MiB";

/// Counts what a server prints that is no message.
#[derive(Default)]
pub(super) struct Strays {
    in_a_row: usize,
    shown: usize,
}

impl Strays {
    /// It was one.
    pub(super) fn none(&mut self) {
        self.in_a_row = 0;
    }

    /// It was none; whether that is too much.
    pub(super) fn one(&mut self, line: &str) -> bool {
        self.in_a_row += 1;
        if self.shown < SHOWN_STRAY {
            self.shown += 1;
            let head = line
                .get(..line.floor_char_boundary(STRAY))
                .unwrap_or_default();
            ui::say(&format!(
                "checkrein mcp-proxy: the server printed something that is no message, and it is not passed on: {}",
                one_line(head)
            ));
        }
        self.in_a_row > MAX_STRAY
    }
}

/// What each request says of the protocol since 2026-07-28: ours says the same as the client's.
fn of_protocol(meta: &Value) -> Value {
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

/// To the client.
fn up(message: &Message) {
    ui::answer_bytes(&message.line());
}

fn up_as_it_is(line: &str) {
    ui::answer_bytes(format!("{line}\n").as_bytes());
}
