//! A provider on loopback: real connections, real bytes, an answer for each request in turn. It
//! keeps what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How an answer goes on after what it has said.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterAnswer {
    /// It ends as it should.
    End,
    /// The line is cut.
    Drop,
    /// Silence, until the client goes.
    Stall,
    /// This again and again, until the client goes; a little slower than the line could.
    Again(&'static str, Duration),
}

/// One answer.
#[derive(Clone)]
pub(crate) struct ServerAnswer {
    /// Status line and headers; none at all if empty.
    head: String,
    pieces: Vec<Vec<u8>>,
    then: AfterAnswer,
}

impl ServerAnswer {
    /// A stream of events, each in a chunk of its own.
    pub(crate) fn stream(events: &[String]) -> Self {
        let pieces = events.iter().map(|event| event.clone().into_bytes());
        Self {
            head: head("200 OK", "content-type: text/event-stream\r\n"),
            pieces: pieces.collect(),
            then: AfterAnswer::End,
        }
    }

    /// The same bytes cut without regard to what they say.
    pub(crate) fn cut(mut self, size: usize) -> Self {
        let bytes = self.pieces.concat();
        self.pieces = bytes.chunks(size).map(<[u8]>::to_vec).collect();
        self
    }

    pub(crate) fn then(mut self, then: AfterAnswer) -> Self {
        self.then = then;
        self
    }

    pub(crate) fn error(status: &str, headers: &str, body: &Value) -> Self {
        Self {
            head: head(
                status,
                &format!("content-type: application/json\r\n{headers}"),
            ),
            pieces: vec![body.to_string().into_bytes()],
            then: AfterAnswer::End,
        }
    }

    /// Nothing, not even a status.
    pub(crate) fn nothing(then: AfterAnswer) -> Self {
        Self {
            head: String::new(),
            pieces: Vec::new(),
            then,
        }
    }
}

fn head(status: &str, headers: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}transfer-encoding: chunked\r\nconnection: close\r\n\r\n")
}

/// One request.
pub(crate) struct ReceivedRequest {
    pub(crate) at: Instant,
    pub(crate) target: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(header, _)| header == name);
        named.next().map(|(_, value)| value.as_str())
    }

    /// Every header that has this text in its value.
    pub(crate) fn headers_with(&self, text: &str) -> Vec<&str> {
        let with = self
            .headers
            .iter()
            .filter(|(_, value)| value.contains(text));
        with.map(|(name, _)| name.as_str()).collect()
    }
}

pub(crate) struct ModelServer {
    pub(crate) base: String,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    /// One word for each request that was read.
    pub(crate) asked: Receiver<()>,
    /// One word for each client that went before its answer's end.
    pub(crate) gone: Receiver<()>,
}

impl ModelServer {
    /// Who asks more often than there are answers finds the line cut.
    pub(crate) fn start(answers: Vec<ServerAnswer>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let ((asked, was_asked), (gone, has_gone)) = (channel(), channel());
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let (kept, answers) = (Arc::clone(&kept), answers.clone());
                let (asked, gone) = (asked.clone(), gone.clone());
                std::thread::spawn(move || serve(stream, &kept, &answers, &asked, &gone));
            }
        });
        Self {
            base,
            seen,
            asked: was_asked,
            gone: has_gone,
        }
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub(crate) fn seen<T>(&self, look: impl FnOnce(&[ReceivedRequest]) -> T) -> T {
        look(&self.seen.lock().unwrap())
    }
}

fn serve(
    mut stream: TcpStream,
    kept: &Mutex<Vec<ReceivedRequest>>,
    answers: &[ServerAnswer],
    asked: &Sender<()>,
    gone: &Sender<()>,
) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let Some(seen) = read(&stream) else { return };
    let number = {
        let mut kept = kept.lock().unwrap();
        kept.push(seen);
        kept.len() - 1
    };
    // Nobody may be listening any more.
    let _ = asked.send(());
    let Some(answer) = answers.get(number) else {
        return;
    };
    if write(&mut stream, answer).is_err() {
        let _ = gone.send(());
    }
}

fn write(stream: &mut TcpStream, answer: &ServerAnswer) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(answer.head.as_bytes())?;
    for piece in &answer.pieces {
        chunk(stream, piece)?;
    }
    match answer.then {
        AfterAnswer::End => stream.write_all(b"0\r\n\r\n"),
        AfterAnswer::Drop => Ok(()),
        AfterAnswer::Stall => match stream.read(&mut [0]) {
            Ok(0) => Err(std::io::ErrorKind::BrokenPipe.into()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        },
        AfterAnswer::Again(text, pause) => loop {
            chunk(stream, text.as_bytes())?;
            std::thread::sleep(pause);
        },
    }
}

fn chunk(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    write!(stream, "{:x}\r\n", bytes.len())?;
    stream.write_all(bytes)?;
    stream.write_all(b"\r\n")?;
    stream.flush()
}

fn read(stream: &TcpStream) -> Option<ReceivedRequest> {
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length?.1.parse().ok()?];
    input.read_exact(&mut body).ok()?;
    Some(ReceivedRequest {
        at: Instant::now(),
        target,
        headers,
        body: serde_json::from_slice(&body).ok()?,
    })
}
