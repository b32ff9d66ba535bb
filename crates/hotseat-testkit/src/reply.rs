//! What a fake agent answers: a head, and a list of steps that are played one after the other.

use std::num::NonZeroUsize;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// An answer, decided before its first byte is sent.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Played before the head. Bytes go out as they are, so that a test can also play a server
    /// that does not speak HTTP.
    pub before: Vec<Step>,
    /// The status code.
    pub status: u16,
    /// Sent as written, after the framing header that the server adds.
    pub headers: Vec<(String, String)>,
    /// Played after the head. The reply ends cleanly after the last one.
    pub body: Vec<Step>,
    /// How the client can tell where the body ends.
    pub framing: Framing,
    /// Body bytes go out in pieces of at most this size, each a write of its own.
    pub piece: Option<NonZeroUsize>,
}

/// One thing that happens while a reply is sent.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends bytes at once.
    Bytes(Bytes),
    /// Sends a server-sent event: `data: {json}` and a blank line.
    Event(Value),
    /// Waits. For tests about time only; everything else waits at a gate.
    Pause(Duration),
    /// Waits until the test calls [`FakeAgent::release`](crate::FakeAgent::release) with this name.
    Gate(String),
    /// Sends nothing more until the client leaves or the server stops.
    Hang,
    /// Closes the connection without ending the body.
    Cut,
    /// Like [`Step::Cut`], but the client sees a reset connection.
    Reset,
    /// Ends the body cleanly, whatever follows. Before the head it is a [`Step::Cut`].
    End,
}

/// How the end of a body is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Every write is one chunk; an empty chunk ends the body. The connection stays open.
    Chunked,
    /// The connection closes, so that a cut cannot be told from an end.
    UntilClose,
}

impl Reply {
    /// A head with this status and no body.
    pub fn status(status: u16) -> Reply {
        Reply {
            before: Vec::new(),
            status,
            headers: Vec::new(),
            body: Vec::new(),
            framing: Framing::Chunked,
            piece: None,
        }
    }

    /// A stream of server-sent events, still empty.
    pub fn sse() -> Reply {
        Reply::status(200).header("content-type", "text/event-stream").header("cache-control", "no-cache")
    }

    /// Plain text.
    pub fn text(status: u16, text: &str) -> Reply {
        Reply::status(status).header("content-type", "text/plain; charset=utf-8").bytes(text.to_owned())
    }

    /// A JSON document.
    pub fn json(status: u16, value: &Value) -> Reply {
        Reply::status(status).header("content-type", "application/json").bytes(value.to_string())
    }

    /// Not one byte until the client leaves or the server stops.
    pub fn never() -> Reply {
        Reply::status(200).first(Step::Hang)
    }

    /// Closes the connection without one byte.
    pub fn refused() -> Reply {
        Reply::status(200).first(Step::Cut)
    }

    /// Adds a step that is played before the head.
    pub fn first(mut self, step: Step) -> Reply {
        self.before.push(step);
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a step of the body.
    pub fn step(mut self, step: Step) -> Reply {
        self.body.push(step);
        self
    }

    /// Adds [`Step::Bytes`].
    pub fn bytes(self, bytes: impl Into<Bytes>) -> Reply {
        self.step(Step::Bytes(bytes.into()))
    }

    /// Adds [`Step::Event`].
    pub fn event(self, event: Value) -> Reply {
        self.step(Step::Event(event))
    }

    /// Adds [`Step::Pause`].
    pub fn pause(self, time: Duration) -> Reply {
        self.step(Step::Pause(time))
    }

    /// Adds [`Step::Gate`].
    pub fn gate(self, name: &str) -> Reply {
        self.step(Step::Gate(name.to_owned()))
    }

    /// Adds [`Step::Hang`].
    pub fn hang(self) -> Reply {
        self.step(Step::Hang)
    }

    /// Adds [`Step::Cut`].
    pub fn cut(self) -> Reply {
        self.step(Step::Cut)
    }

    /// Adds [`Step::Reset`].
    pub fn reset(self) -> Reply {
        self.step(Step::Reset)
    }

    /// Sends the body in writes of at most `size` bytes, wherever that cuts it.
    ///
    /// # Panics
    /// If `size` is 0.
    pub fn in_pieces_of(mut self, size: usize) -> Reply {
        self.piece = Some(NonZeroUsize::new(size).expect("a piece has at least one byte"));
        self
    }

    /// Marks the end of the body by closing the connection.
    pub fn until_close(mut self) -> Reply {
        self.framing = Framing::UntilClose;
        self
    }
}
