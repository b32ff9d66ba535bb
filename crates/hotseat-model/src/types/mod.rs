//! Data of model calls.

mod delta;
mod error;
mod estimate;
mod message;
mod reply;
mod request;
mod timed;
mod tool;
mod usage;

pub use delta::ReplyDelta;
pub use error::{ModelError, ModelErrorKind};
pub use message::ModelMessage;
pub use reply::{ModelReply, ProviderParts, StopReason};
pub use request::{CallPosition, ModelRequest, ResponseFormat};
pub use timed::TimedValue;
pub(crate) use tool::parse_arguments;
pub use tool::{ModelTool, ModelToolCall, ModelToolResult, read_arguments};
pub use usage::TokenUsage;
