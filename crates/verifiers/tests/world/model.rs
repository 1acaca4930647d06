//! A model on loopback that answers as its own name says, in the form of OpenAI's chat API.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// Where it listens, and what it was asked, request by request.
pub(crate) struct Model {
    pub(crate) address: String,
    pub(crate) asked: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<Value>>>::default();
        let kept = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = kept.clone();
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Self { address, asked }
    }
}

fn serve(stream: TcpStream, asked: &Mutex<Vec<Value>>) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    asked.lock().unwrap().push(body.clone());
    let nth = asked.lock().unwrap().len();
    let number: u64 = prompt(&body).lines().next().unwrap().parse().unwrap();
    let verdict = |verdict: &str, score: f64| {
        json!({
            "ref": number, "goal": "x", "completeness": "x", "rules": "x", "score": score,
            "verdict": verdict, "category": "incomplete", "feedback": "- add the tests\n- say why",
        })
        .to_string()
    };
    let text = match body.get("model").and_then(Value::as_str).unwrap() {
        "pass" => verdict("pass", 1.0),
        "fail" => verdict("fail", 0.1),
        "low" => verdict("pass", 0.3),
        "near" => verdict("pass", 0.75),
        "wavers" => verdict(if nth % 2 == 1 { "pass" } else { "fail" }, 0.7),
        "plain" => "FAIL [goal_missed]: that is another file".to_owned(),
        "prose" => "It looks good to me.".to_owned(),
        "both" => verdict("pass", 1.0) + &verdict("fail", 0.1),
        "bytes" => "\u{0}\u{1b}[2J{{{{".repeat(2_000),
        "huge" => "a".repeat(200_000),
        "hang" => {
            std::thread::sleep(std::time::Duration::from_secs(3_600));
            return;
        }
        "gone" => return,
        other => panic!("{other}"),
    };
    let chunk = |value: Value| format!("data: {value}\n\n");
    let stream = [
        chunk(json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]})),
        chunk(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})),
        chunk(json!({"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 60}})),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let stream = [head.as_bytes(), stream.as_bytes()].concat();
    // Who has enough hangs up.
    let _ = reader.into_inner().write_all(&stream);
}

/// The prompt of a request.
pub(crate) fn prompt(body: &Value) -> &str {
    let messages = body.get("messages").and_then(Value::as_array).unwrap();
    let last = messages.last().unwrap();
    last.get("content").and_then(Value::as_str).unwrap()
}
