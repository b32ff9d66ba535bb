//! Conversations in real time, on tokio.
//!
//! A [`ConversationHost`] runs the conversations of one set of definitions. Each conversation is a task that
//! handles one entry at a time: it applies the entry, commits it to the [`ConversationStore`](crate::store::ConversationStore), publishes the
//! records to watchers, and then starts the requested effects. Without handles and pending work, it is unloaded; the
//! conversations unloaded last are kept as they are for their next turn. After a restart, a conversation is restored
//! from its entries, and pending effects are requested again. If its agent has changed in the meantime,
//! recorded history is kept, an event records the change, and the new definition applies from then on.
//!
//! ```
//! use std::sync::Arc;
//! use hotseat_model::{FunctionModel, LiveModel, ModelReply, ModelRequest, TimedValue};
//! use hotseat_runtime::conversation::ConversationInput;
//! use hotseat_runtime::definition::{Definitions, persona};
//! use hotseat_runtime::live::{ConversationHost, HostOptions, ModelRegistry, Signal};
//! use hotseat_trace::Payload;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (definitions, agent) = Definitions::from_persona(&persona("Greeter"))?;
//! let model = FunctionModel::new("greeter", |_: &ModelRequest| {
//!     TimedValue::now(Ok(ModelReply::text("Hello to you")))
//! });
//! let models = ModelRegistry::single(LiveModel::new(model));
//! let host = ConversationHost::new(Arc::new(definitions), models, HostOptions::default());
//!
//! let conversation = host.conversation(&"c1".into(), &agent).await?;
//! let mut watcher = conversation.watch();
//! let content = "Hello!".to_string();
//! conversation.send(ConversationInput::UserMessage { user: "user".into(), content, reply_to: None, client_id: None }).await?;
//! while let Some(signal) = watcher.next().await {
//!     let Signal::Event(record) = signal else { continue };
//!     if let Payload::AssistantMessage(message) = &record.payload {
//!         assert_eq!(&*message.content, "Hello to you");
//!         break;
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod actor;
mod clock;
mod core;
mod error;
mod handle;
mod host;
mod idle;
mod message;
mod models;
mod state;
mod watch;

pub use error::HostError;
pub use handle::{ConversationHandle, Watcher};
pub use host::ConversationHost;
pub use message::SendOutcome;
pub use models::ModelRegistry;
pub use state::HostOptions;
pub use watch::Signal;
