//! What a language model is: a request goes in, a reply comes out, in pieces if somebody watches.
//!
//! The types are provider-neutral and have a serialised form, which is what recordings hold.

mod assembly;
mod model;
mod pure;
pub mod recording;
mod retry;
pub mod script;
mod sleep;
mod types;

pub use assembly::Assembly;
pub use model::{Answering, Discard, Model, Sink};
pub use pure::{Function, Live, PureModel};
pub use retry::{RetryPolicy, Retrying};
pub use sleep::{Sleep, Sleeping, TokioSleep};
pub use types::{
    Delta, ErrorKind, Message, ModelError, Position, Reply, Request, ResponseFormat, StopReason, Timed, Tool,
    ToolCall, ToolResult, Usage,
};
