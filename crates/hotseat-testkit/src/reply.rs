//! Replies of a fake agent: a head and a sequence of steps.

use std::num::NonZeroUsize;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// A reply, fixed before its first byte is sent.
#[derive(Debug, Clone)]
pub struct FakeReply {
    /// Steps before the head. Bytes are sent unchanged, so a test can also play a server that does not speak
    /// HTTP.
    pub before: Vec<ReplyStep>,
    /// Status code.
    pub status: u16,
    /// Headers, sent unchanged after the framing header that the server adds.
    pub headers: Vec<(String, String)>,
    /// Steps after the head. The reply ends cleanly after the last one.
    pub body: Vec<ReplyStep>,
    /// End marker of the body.
    pub framing: BodyFraming,
    /// Maximum size of each write of body bytes.
    pub piece: Option<NonZeroUsize>,
}

/// One step of sending a reply.
#[derive(Debug, Clone)]
pub enum ReplyStep {
    /// Sends bytes at once.
    Bytes(Bytes),
    /// Sends a server-sent event: `data: {json}` and a blank line.
    Event(Value),
    /// Waits. Only for tests of timing; other tests use a gate.
    Pause(Duration),
    /// Waits until the test calls [`FakeAgent::release`](crate::FakeAgent::release) with this name.
    Gate(String),
    /// Sends nothing more until the client leaves or the server stops.
    Hang,
    /// Closes the connection without ending the body.
    Cut,
    /// Like [`ReplyStep::Cut`], but the client sees a reset connection.
    Reset,
    /// Ends the body cleanly and ignores later steps. Before the head it equals [`ReplyStep::Cut`].
    End,
}

/// End marker of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// Every write is one chunk; an empty chunk ends the body. The connection stays open.
    Chunked,
    /// The connection closes, so a cut looks like an end.
    UntilClose,
}

impl FakeReply {
    /// Creates a reply with this status and no body.
    pub fn status(status: u16) -> FakeReply {
        FakeReply {
            before: Vec::new(),
            status,
            headers: Vec::new(),
            body: Vec::new(),
            framing: BodyFraming::Chunked,
            piece: None,
        }
    }

    /// Creates an empty stream of server-sent events.
    pub fn sse() -> FakeReply {
        FakeReply::status(200).header("content-type", "text/event-stream").header("cache-control", "no-cache")
    }

    /// Creates a plain text reply.
    pub fn text(status: u16, text: &str) -> FakeReply {
        FakeReply::status(status).header("content-type", "text/plain; charset=utf-8").bytes(text.to_owned())
    }

    /// Creates a JSON reply.
    pub fn json(status: u16, value: &Value) -> FakeReply {
        FakeReply::status(status).header("content-type", "application/json").bytes(value.to_string())
    }

    /// Creates a reply that sends nothing until the client leaves or the server stops.
    pub fn never() -> FakeReply {
        FakeReply::status(200).first(ReplyStep::Hang)
    }

    /// Creates a reply that closes the connection without a byte.
    pub fn refused() -> FakeReply {
        FakeReply::status(200).first(ReplyStep::Cut)
    }

    /// Adds a step that is played before the head.
    pub fn first(mut self, step: ReplyStep) -> FakeReply {
        self.before.push(step);
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> FakeReply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a step of the body.
    pub fn step(mut self, step: ReplyStep) -> FakeReply {
        self.body.push(step);
        self
    }

    /// Adds [`ReplyStep::Bytes`].
    pub fn bytes(self, bytes: impl Into<Bytes>) -> FakeReply {
        self.step(ReplyStep::Bytes(bytes.into()))
    }

    /// Adds [`ReplyStep::Event`].
    pub fn event(self, event: Value) -> FakeReply {
        self.step(ReplyStep::Event(event))
    }

    /// Adds [`ReplyStep::Pause`].
    pub fn pause(self, time: Duration) -> FakeReply {
        self.step(ReplyStep::Pause(time))
    }

    /// Adds [`ReplyStep::Gate`].
    pub fn gate(self, name: &str) -> FakeReply {
        self.step(ReplyStep::Gate(name.to_owned()))
    }

    /// Adds [`ReplyStep::Hang`].
    pub fn hang(self) -> FakeReply {
        self.step(ReplyStep::Hang)
    }

    /// Adds [`ReplyStep::Cut`].
    pub fn cut(self) -> FakeReply {
        self.step(ReplyStep::Cut)
    }

    /// Adds [`ReplyStep::Reset`].
    pub fn reset(self) -> FakeReply {
        self.step(ReplyStep::Reset)
    }

    /// Limits each write of the body to `size` bytes. Panics if `size` is 0.
    pub fn with_piece_size(mut self, size: usize) -> FakeReply {
        self.piece = Some(NonZeroUsize::new(size).expect("a piece has at least one byte"));
        self
    }

    /// Marks the end of the body by closing the connection.
    pub fn until_close(mut self) -> FakeReply {
        self.framing = BodyFraming::UntilClose;
        self
    }
}
