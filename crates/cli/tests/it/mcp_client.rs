//! An MCP client that writes JSON-RPC by hand.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::World;

/// A client and its server.
pub(crate) struct Client {
    pub(crate) process: Child,
    to: Option<ChildStdin>,
    from: Receiver<String>,
    stderr: Receiver<String>,
    asked: u64,
}

/// Nobody here takes longer who comes at all.
const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    /// Before the handshake.
    pub(crate) fn raw(world: &World, args: &[&str]) -> Self {
        Self::of(world, world.checkrein(args))
    }

    /// The same of this command.
    pub(crate) fn of(world: &World, mut command: Command) -> Self {
        let mut process = command
            .env("MCP_LOG", world.outside("server"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, from) = channel();
        let out = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines() {
                if sender.send(line.unwrap()).is_err() {
                    break;
                }
            }
        });
        let (sender, stderr) = channel();
        let mut err = process.stderr.take().unwrap();
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = err.read_to_string(&mut text);
            let _ = sender.send(text);
        });
        Self {
            to: process.stdin.take(),
            process,
            from,
            stderr,
            asked: 0,
        }
    }

    /// After it; the server calls itself so.
    pub(crate) fn greeted(world: &World, args: &[&str], name: &str) -> Self {
        Self::raw(world, args).greets(name)
    }

    /// The handshake.
    pub(crate) fn greets(self, name: &str) -> Self {
        let mut client = self;
        let hello = client.ask(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], name, "{hello}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.write(&message.to_string());
    }

    pub(crate) fn write(&mut self, line: &str) {
        let to = self.to.as_mut().unwrap();
        to.write_all(line.as_bytes()).unwrap();
        to.write_all(b"\n").unwrap();
    }

    pub(crate) fn hear_line(&self) -> String {
        self.from.recv_timeout(PATIENCE).expect("no message came")
    }

    /// Nothing but messages ever goes to the client.
    pub(crate) fn hear(&self) -> Value {
        let line = self.hear_line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Sends a request; its id.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let answer = self.hear();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// A call's result.
    pub(crate) fn call(&mut self, tool: &str, args: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": args }));
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// What a call is refused with.
    pub(crate) fn refused(&mut self, tool: &str, args: Value) -> String {
        let result = self.call(tool, args);
        assert_eq!(result["isError"], true, "{result}");
        text(&result)
    }

    /// What a call says that ran.
    pub(crate) fn ran(&mut self, tool: &str, args: Value) -> String {
        let result = self.call(tool, args);
        assert_eq!(result["isError"], false, "{result}");
        text(&result)
    }

    /// Hangs up; exit status and stderr.
    pub(crate) fn bye(mut self) -> (Option<i32>, String) {
        self.to.take();
        self.over()
    }

    /// It ends by itself.
    pub(crate) fn over(mut self) -> (Option<i32>, String) {
        let code = self.process.wait().unwrap().code();
        (code, self.stderr.recv_timeout(PATIENCE).unwrap())
    }
}

/// All text of a result, a line per part.
pub(crate) fn text(result: &Value) -> String {
    let parts = result["content"].as_array().unwrap().iter();
    let parts: Vec<&str> = parts.map(|part| part["text"].as_str().unwrap()).collect();
    parts.join("\n")
}
