//! The data of a call to a language model; no behaviour beyond looking at it.

mod delta;
mod error;
mod message;
mod reply;
mod request;
mod timed;
mod tool;
mod usage;

pub use delta::Delta;
pub use error::{ErrorKind, ModelError};
pub use message::{Message, ToolCall, ToolResult};
pub use reply::{Reply, StopReason};
pub use request::{Position, Request, ResponseFormat};
pub use timed::Timed;
pub use tool::Tool;
pub use usage::Usage;
