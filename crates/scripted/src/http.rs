//! Implements as much of an HTTP/1.1 server as two agents need, on loopback only. It also serves as
//! the agents' proxy, which refuses every other host; `model` records the refused hosts.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Longest request in bytes, its head included; larger than any request of an agent.
const MAX_REQUEST: u64 = 64 * 1024 * 1024;
/// Most open connections; more than any agent has at once. Further ones are closed unread.
const MAX_CONNECTIONS: usize = 64;
/// Longest silence of a client in the middle of a request.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A complete request.
#[derive(Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// Path or, for CONNECT, host.
    pub(crate) target: String,
    pub(crate) body: Vec<u8>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) body: Vec<u8>,
}

impl HttpResponse {
    pub(crate) fn json_response(status: u16, value: &serde_json::Value) -> Self {
        Self {
            status,
            kind: "application/json",
            body: value.to_string().into_bytes(),
        }
    }

    pub(crate) fn event_stream_response(body: String) -> Self {
        Self {
            status: 200,
            kind: "text/event-stream; charset=utf-8",
            body: body.into_bytes(),
        }
    }
}

/// A server that listens until dropped.
#[derive(Debug)]
pub(crate) struct LoopbackHttpServer {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl LoopbackHttpServer {
    /// Starts a server. Each connection has its own thread and carries one request.
    pub(crate) fn start_http_server(
        handle: impl Fn(HttpRequest) -> HttpResponse + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        // Port 0: the system chooses a free one, so that servers can run in parallel.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let (handle, ended) = (Arc::new(handle), Arc::clone(&over));
        let open = Arc::new(AtomicUsize::new(0));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                // Dropping the stream closes it; the client sees a reset and may try again.
                if open.load(Ordering::SeqCst) >= MAX_CONNECTIONS {
                    continue;
                }
                open.fetch_add(1, Ordering::SeqCst);
                let (handle, open) = (Arc::clone(&handle), Arc::clone(&open));
                std::thread::spawn(move || {
                    serve_one_http_request(&stream, &*handle);
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Ok(Self {
            address,
            stopped: over,
        })
    }

    pub(crate) fn scripted_server_url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for LoopbackHttpServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // A connection wakes the listener out of `accept`, so that it sees the flag.
        drop(TcpStream::connect(self.address));
    }
}

fn serve_one_http_request(
    stream: &TcpStream,
    handle: &(dyn Fn(HttpRequest) -> HttpResponse + Send + Sync),
) {
    // A client that disconnects in the middle of a request needs no answer.
    let Ok(Some(request)) = read_http_request(stream) else {
        return;
    };
    // The answer to HEAD has the length of the body but no body (RFC 9110).
    let silent = request.method == "HEAD";
    let response = handle(request);
    let _ = write_http_response(stream, &response, silent);
}

fn read_http_request(stream: &TcpStream) -> std::io::Result<Option<HttpRequest>> {
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    stream.set_write_timeout(Some(READ_TIMEOUT))?;
    // Bounded as a whole, so that neither the head nor chunks can grow without limit.
    let mut input = BufReader::new(stream.take(MAX_REQUEST));
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Ok(None);
    };
    let (mut length, mut chunked) = (0, false);
    loop {
        let mut header = String::new();
        if input.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        let Some((name, value)) = header.split_once(':') else {
            continue;
        };
        match name.trim().to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "transfer-encoding" => chunked = value.to_ascii_lowercase().contains("chunked"),
            // A client that sends `Expect` waits for this line before it sends the body.
            "expect" => (&mut &*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
            _ => {}
        }
    }
    let mut body = Vec::new();
    if chunked {
        while let size @ 1.. = read_http_chunk_size(&mut input)? {
            read_exact_body_bytes(&mut input, size, &mut body)?;
            // Each chunk ends with a line break of its own.
            input.read_line(&mut String::new())?;
        }
    } else {
        read_exact_body_bytes(&mut input, length, &mut body)?;
    }
    Ok(Some(HttpRequest {
        method,
        target,
        body,
    }))
}

fn read_http_chunk_size(input: &mut impl BufRead) -> std::io::Result<u64> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let digits = line.split(';').next().unwrap_or_default().trim();
    u64::from_str_radix(digits, 16).map_err(|_| Error::from(ErrorKind::InvalidData))
}

fn read_exact_body_bytes(
    input: &mut impl Read,
    length: u64,
    body: &mut Vec<u8>,
) -> std::io::Result<()> {
    let read = input.take(length).read_to_end(body)?;
    if read as u64 == length {
        Ok(())
    } else {
        Err(Error::from(ErrorKind::UnexpectedEof))
    }
}

fn write_http_response(
    mut stream: &TcpStream,
    response: &HttpResponse,
    silent: bool,
) -> std::io::Result<()> {
    let HttpResponse { status, kind, body } = response;
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    )?;
    if !silent {
        stream.write_all(body)?;
    }
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of the answer to raw bytes.
    fn ask(server: &LoopbackHttpServer, raw: &[u8]) -> String {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(raw).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    #[test]
    fn bodies_are_read_whole_however_they_come() {
        let server = LoopbackHttpServer::start_http_server(|request| {
            let said = format!(
                "{} {} {}",
                request.method,
                request.target,
                String::from_utf8_lossy(&request.body)
            );
            HttpResponse {
                status: 200,
                kind: "text/plain",
                body: said.into_bytes(),
            }
        })
        .unwrap();
        let check = |raw: &str, expected: &str| assert_eq!(ask(&server, raw.as_bytes()), expected);
        check(
            "POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
            "POST /a hello",
        );
        check(
            "POST /b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=1\r\nlo\r\n0\r\n\r\n",
            "POST /b hello",
        );
        check("GET /c?d=e HTTP/1.1\r\n\r\n", "GET /c?d=e ");
        check("HEAD / HTTP/1.1\r\n\r\n", "");
        check(
            "CONNECT example.org:443 HTTP/1.1\r\n\r\n",
            "CONNECT example.org:443 ",
        );
    }
}
