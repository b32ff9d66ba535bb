//! Language models: a request goes in, a reply comes out, optionally streamed.
//!
//! * [`ModelRequest`], [`ModelMessage`], [`ModelTool`], [`ModelReply`], [`TokenUsage`], [`ModelError`]: provider-independent data of a
//!   call, serialisable.
//! * [`Model`]: answers requests; [`ReplySink`]: receives the streamed [`ReplyDelta`]s; [`ReplyAssembler`]: assembles them
//!   into a reply.
//! * [`ConnectorConfig`]: a model behind chat completions or Anthropic's messages API.
//! * [`script`]: a model that answers from a file.
//! * [`serve`]: models served over HTTP, for agents that expect a provider.
//! * [`PureModel`]: a deterministic model without clock or network, such as a script.
//!   Simulators call it directly; [`LiveModel`] makes a [`Model`] of it.
//!
//! ```
//! use hotseat_model::script::{Rule, ModelScript, ScriptedModel};
//! use hotseat_model::{LiveModel, Model, ModelMessage, ModelRequest, ReplyDelta};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let rule = Rule::new().user("hello").say("Hello to you.");
//! let script = ModelScript::builder("greeter").rule(rule).build()?;
//! let model: Box<dyn Model> = Box::new(LiveModel::new(ScriptedModel::new(script)));
//!
//! let request = ModelRequest { messages: vec![ModelMessage::user("hello")], ..ModelRequest::default() };
//! let mut words = 0;
//! let reply = model.call(&request, &mut |_: ReplyDelta| words += 1).await?;
//! assert_eq!((reply.text.as_str(), words), ("Hello to you.", 3));
//! # Ok(())
//! # }
//! ```

mod call_pieces;
mod completion_usage;
mod content_text;
mod extra_members;
mod model;
mod open_calls;
mod providers;
mod pure;
mod reply_assembler;
mod reported_error;
pub mod script;
pub mod serve;
mod setters;
mod types;
mod usage_report;
mod whole_message;

pub use call_pieces::{
    AmbiguousPiece, ArgumentsProgress, MisplacedCalls, PlacedPiece, ToolCallPiece, ToolCallPieces,
    is_call_part,
};
pub use completion_usage::completion_usage;
pub use content_text::{ContentError, ContentText};
pub use extra_members::merge_extra_members;
pub use model::{DiscardSink, Model, ReplyFuture, ReplySink};
pub use open_calls::{OpenCalls, UnmatchedResult};
pub use providers::{ConnectorConfig, Provider, Secret, TimeLimits};
pub use pure::{FunctionModel, LiveModel, PureModel};
pub use reply_assembler::ReplyAssembler;
pub use reported_error::{completion_error, is_error_object, reported_error};
pub use types::{
    CallPosition, ModelError, ModelErrorKind, ModelMessage, ModelReply, ModelRequest, ModelTool,
    ModelToolCall, ModelToolResult, ProviderParts, ReplyDelta, ResponseFormat, StopReason, TimedValue,
    TokenUsage, read_arguments,
};
pub use usage_report::UsageReport;
pub use whole_message::unstreamed_text;
