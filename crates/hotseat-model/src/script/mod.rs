//! The scripted model: it answers what a file or a test says.
//!
//! A script is a list of rules. Each says when it applies and what the model then answers: text, tool calls, a
//! failure, after a delay. Of several that fit a request the first one answers; a request that none fits is an
//! error which names it. [`Script::answer`] is an ordinary function of the request and of which rules were
//! [`Used`]; [`Scripted`] holds both, and [`Live`](crate::Live) makes a [`Model`](crate::Model) of it.
//!
//! ```
//! use hotseat_model::script::{Script, Scripted};
//! use hotseat_model::{Message, PureModel, Request};
//!
//! let script = Script::parse("greeter.yaml", r#"
//! rules:
//!   - when: { user: "I am (?<name>\\w+)" }
//!     reply: "Hello {{ name }}."
//!   - reply: "Who are you?"
//! "#)?;
//!
//! let mut model = Scripted::new(script);
//! let request = Request { messages: vec![Message::user("I am Ada")], ..Request::default() };
//! assert_eq!(model.answer(&request).value.unwrap().text, "Hello Ada.");
//! # Ok::<(), hotseat_document::Diagnostics>(())
//! ```
//!
//! # The file
//! YAML or JSON. [`SCRIPT`] says what may stand in it; everything that may not is reported together, with its places.

mod answer;
mod builder;
mod compiled;
mod condition;
mod mistakes;
mod pattern;
mod read;
mod rule;
mod shape;
mod surrogates;
mod template;
mod used;

pub use answer::{Script, Scripted};
pub use builder::ScriptBuilder;
pub use compiled::RuleId;
pub use rule::Rule;
pub use shape::SCRIPT;
pub use used::Used;
