//! Minimal HTTP/1.1 for the fake agent, with control over every byte and close.

use std::io;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::reply::{BodyFraming, FakeReply};

/// Maximum length of a line.
const MAX_LINE_BYTES: usize = 1024 * 1024;

/// A connection and its unprocessed input.
pub(crate) struct HttpConnection {
    stream: TcpStream,
    unread: BytesMut,
}

/// Head and body of a request.
pub(crate) struct IncomingRequest {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// True if the client accepts another reply on this connection.
    pub keep_alive: bool,
    /// False for HTTP/1.0 clients, which do not support chunks.
    pub knows_chunks: bool,
}

/// Reason why no request could be read.
pub(crate) enum RequestReadError {
    /// The client closed the connection, between requests or within one.
    Closed,
    /// The input is not HTTP/1.
    Malformed(String),
}

impl From<io::Error> for RequestReadError {
    fn from(_: io::Error) -> RequestReadError {
        RequestReadError::Closed
    }
}

impl HttpConnection {
    pub fn new(stream: TcpStream) -> io::Result<HttpConnection> {
        // Sends every write at once, since tests check the received data between writes.
        stream.set_nodelay(true)?;
        Ok(HttpConnection { stream, unread: BytesMut::new() })
    }

    /// Reads the next request.
    pub async fn read_request(&mut self) -> Result<IncomingRequest, RequestReadError> {
        let start = self.read_line().await?;
        let mut words = start.split(' ');
        let (Some(method), Some(path), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(RequestReadError::Malformed(format!("request line {start:?}")));
        };
        if !version.starts_with("HTTP/1.") {
            return Err(RequestReadError::Malformed(format!("version {version:?}")));
        }
        let headers = self.read_headers().await?;
        let header = |name: &str| {
            headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.to_ascii_lowercase())
        };

        let old = version == "HTTP/1.0";
        let keep_alive = match header("connection").as_deref() {
            Some("close") => false,
            Some("keep-alive") => true,
            Some(_) | None => !old,
        };
        if header("expect").as_deref() == Some("100-continue") {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let body = if header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
            self.read_chunks().await?
        } else if let Some(length) = header("content-length") {
            let length =
                length.parse().map_err(|_| RequestReadError::Malformed(format!("length {length:?}")))?;
            self.read_exactly(length).await?
        } else {
            Bytes::new()
        };
        Ok(IncomingRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body,
            keep_alive,
            knows_chunks: !old,
        })
    }

    async fn read_headers(&mut self) -> Result<Vec<(String, String)>, RequestReadError> {
        let mut headers = Vec::new();
        loop {
            let line = self.read_line().await?;
            if line.is_empty() {
                return Ok(headers);
            }
            let Some((name, value)) = line.split_once(':') else {
                return Err(RequestReadError::Malformed(format!("header {line:?}")));
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    async fn read_chunks(&mut self) -> Result<Bytes, RequestReadError> {
        let mut body = BytesMut::new();
        loop {
            let line = self.read_line().await?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16)
                .map_err(|_| RequestReadError::Malformed(format!("chunk size {line:?}")))?;
            if size == 0 {
                // Trailers look like headers and are ignored.
                self.read_headers().await?;
                return Ok(body.freeze());
            }
            body.extend_from_slice(&self.read_exactly(size).await?);
            if !self.read_line().await?.is_empty() {
                return Err(RequestReadError::Malformed("a chunk is longer than its size".to_owned()));
            }
        }
    }

    /// Returns the next line, without its end.
    async fn read_line(&mut self) -> Result<String, RequestReadError> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.unread[searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.unread.split_to(searched + end + 1);
                let line = String::from_utf8_lossy(&line);
                return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
            }
            searched = self.unread.len();
            if searched > MAX_LINE_BYTES {
                return Err(RequestReadError::Malformed("a line without end".to_owned()));
            }
            self.read_more().await?;
        }
    }

    async fn read_exactly(&mut self, length: usize) -> Result<Bytes, RequestReadError> {
        while self.unread.len() < length {
            self.read_more().await?;
        }
        Ok(self.unread.split_to(length).freeze())
    }

    async fn read_more(&mut self) -> Result<(), RequestReadError> {
        match self.stream.read_buf(&mut self.unread).await? {
            0 => Err(RequestReadError::Closed),
            _ => Ok(()),
        }
    }

    /// Returns when the client has closed its side. Data that arrives meanwhile is kept for the next request,
    /// so the future may be dropped at any time.
    pub async fn wait_for_close(&mut self) {
        while self.read_more().await.is_ok() {}
    }

    /// Sends the head of a reply.
    pub async fn write_head(
        &mut self,
        reply: &FakeReply,
        framing: Option<BodyFraming>,
        close: bool,
    ) -> io::Result<()> {
        // Clients ignore the reason phrase; readers of captured streams do not.
        let status = StatusCode::from_u16(reply.status).ok();
        let reason = status.and_then(|status| status.canonical_reason()).unwrap_or_default();
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", reply.status);
        match framing {
            Some(BodyFraming::Chunked) => head.push_str("transfer-encoding: chunked\r\n"),
            Some(BodyFraming::UntilClose) | None => {}
        }
        if close {
            head.push_str("connection: close\r\n");
        }
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.write(head.as_bytes()).await
    }

    /// Sends one piece of a body.
    pub async fn write_piece(&mut self, framing: BodyFraming, piece: &[u8]) -> io::Result<()> {
        match framing {
            BodyFraming::UntilClose => self.write(piece).await,
            // An empty chunk would end the body.
            BodyFraming::Chunked if piece.is_empty() => Ok(()),
            BodyFraming::Chunked => {
                let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
                chunk.extend_from_slice(piece);
                chunk.extend_from_slice(b"\r\n");
                self.write(&chunk).await
            }
        }
    }

    /// Ends a body cleanly.
    pub async fn write_end(&mut self, framing: BodyFraming) -> io::Result<()> {
        match framing {
            BodyFraming::UntilClose => Ok(()),
            BodyFraming::Chunked => self.write(b"0\r\n\r\n").await,
        }
    }

    /// Sends bytes as they are.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Closes the connection so that the client sees a normal end, even if it sent unread data.
    pub async fn close(mut self) {
        // Closing a socket with unread bytes resets it, and the reset may overtake sent data.
        if self.stream.shutdown().await.is_ok() {
            self.wait_for_close().await;
        }
    }

    /// Closes the connection so that the client sees a reset.
    pub fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }
}
