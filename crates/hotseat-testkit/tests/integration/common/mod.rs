//! A raw HTTP client, so that tests see the exact bytes.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Tests fail after waiting this long.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(20);

pub struct Client {
    stream: BufReader<TcpStream>,
}

pub struct Head {
    pub status: u16,
    pub headers: Vec<String>,
}

/// Next part of a chunked body.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    Chunk(String),
    /// The empty chunk: a clean end.
    End,
    /// The connection was closed.
    Closed,
    /// The connection was reset.
    Reset,
}

impl Client {
    pub fn connect(port: u16) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("a timeout can be set");
        Client { stream: BufReader::new(stream) }
    }

    pub fn write(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).expect("the server reads");
    }

    pub fn post(&mut self, path: &str, body: &str) {
        self.write(&format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
    }

    pub fn get(&mut self, path: &str) {
        self.write(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    }

    fn line(&mut self) -> Result<String, Piece> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => Err(Piece::Closed),
            Ok(_) => Ok(line.trim_end_matches("\r\n").to_owned()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Err(Piece::Reset),
            Err(error) => panic!("{error}"),
        }
    }

    pub fn head(&mut self) -> Head {
        let start = self.line().expect("a status line");
        let status = start.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).expect("HTTP/1.1 NNN");
        let mut headers = Vec::new();
        loop {
            let line = self.line().expect("a header or a blank line");
            if line.is_empty() {
                return Head { status: status.parse().expect("a number"), headers };
            }
            headers.push(line);
        }
    }

    pub fn piece(&mut self) -> Piece {
        let size = match self.line() {
            Ok(line) => usize::from_str_radix(&line, 16).expect("a chunk size"),
            Err(end) => return end,
        };
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk).expect("the whole chunk");
        assert_eq!(&chunk[size..], b"\r\n");
        match size {
            0 => Piece::End,
            // A chunk may end inside a character; tests of that join the bytes.
            _ => Piece::Chunk(String::from_utf8_lossy(&chunk[..size]).into_owned()),
        }
    }

    /// Chunks up to a clean end.
    pub fn chunks(&mut self) -> Vec<Vec<u8>> {
        let mut chunks = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.line().expect("a chunk"), 16).expect("a chunk size");
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).expect("the whole chunk");
            chunk.truncate(size);
            if size == 0 {
                return chunks;
            }
            chunks.push(chunk);
        }
    }

    /// Status and complete body.
    pub fn reply(&mut self) -> (u16, String) {
        let status = self.head().status;
        (status, String::from_utf8(self.chunks().concat()).expect("text"))
    }

    /// Everything up to the end of the connection.
    pub fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.stream.read_to_string(&mut rest).expect("text, then a close");
        rest
    }

    /// Closes the connection.
    pub fn leave(self) {
        self.stream.get_ref().shutdown(Shutdown::Both).expect("an open connection");
    }
}

/// Starts a run and reads its events.
pub fn run(port: u16, input: &Value) -> Vec<Value> {
    let mut client = Client::connect(port);
    client.post("/", &input.to_string());
    let (status, body) = client.reply();
    assert_eq!(status, 200, "{body}");
    let events = body.strip_suffix("\n\n").expect("a stream that ends with a blank line").split("\n\n");
    events
        .map(|event| serde_json::from_str(event.strip_prefix("data: ").expect("data:")).expect("JSON"))
        .collect()
}
