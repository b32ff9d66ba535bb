//! What a language model is: a request goes in, a reply comes out, in pieces if somebody watches.
//!
//! * [`Request`], [`Message`], [`Tool`], [`Reply`], [`Usage`], [`ModelError`]: what is asked and answered, in the
//!   words of no provider, with a serialised form for recordings.
//! * [`Model`]: something that answers; [`Sink`]: who watches the [`Delta`]s; [`Assembly`]: from the pieces to the
//!   whole.
//! * [`Connector`]: a model behind chat completions or Anthropic's messages. [`Retrying`] makes a failed call again.
//! * [`script`]: a model that answers what a file says. [`recording`]: writes down what goes through a model, and
//!   plays it.
//! * [`PureModel`]: a model without clock, chance and network, which is what scripts and recordings are. A simulator
//!   asks it as it is, [`Live`] makes a [`Model`] of it.
//!
//! ```
//! use hotseat_model::script::{Rule, Script, Scripted};
//! use hotseat_model::{Delta, Live, Message, Model, Request};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let script = Script::builder("greeter").rule(Rule::new().user("hello").say("Hello to you.")).build()?;
//! let model: Box<dyn Model> = Box::new(Live::new(Scripted::new(script)));
//!
//! let request = Request { messages: vec![Message::user("hello")], ..Request::default() };
//! let mut words = 0;
//! let reply = model.call(&request, &mut |_: Delta| words += 1).await?;
//! assert_eq!((reply.text.as_str(), words), ("Hello to you.", 3));
//! # Ok(())
//! # }
//! ```

mod assembly;
mod model;
mod providers;
mod pure;
pub mod recording;
mod retry;
pub mod script;
mod sleep;
mod types;

pub use assembly::Assembly;
pub use model::{Answering, Discard, Model, Sink};
pub use providers::{Connector, Provider, Secret, TimeLimits};
pub use pure::{Function, Live, PureModel};
pub use retry::{RetryPolicy, Retrying};
pub use sleep::{Sleep, Sleeping, TokioSleep};
pub use types::{
    Delta, ErrorKind, Message, ModelError, Position, Reply, Request, ResponseFormat, StopReason, Timed, Tool,
    ToolCall, ToolResult, Usage,
};
