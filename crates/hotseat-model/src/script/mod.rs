//! The scripted model: answers from a file or from rules in code.
//!
//! A script is a list of rules. Each rule has conditions and an answer: text, tool calls or a failure,
//! optionally delayed. The first rule that matches a request answers it; a request without a matching rule is
//! an error. [`ModelScript::answer`] is a plain function of the request and the memory of used rules, [`ScriptMemory`];
//! [`ScriptedModel`] holds both, and [`LiveModel`](crate::LiveModel) makes a [`Model`](crate::Model) of it.
//!
//! ```
//! use hotseat_model::script::{ModelScript, ScriptedModel};
//! use hotseat_model::{ModelMessage, ModelRequest, PureModel};
//!
//! let script = ModelScript::parse("greeter.yaml", r#"
//! rules:
//!   - when: { user: "I am (?<name>\\w+)" }
//!     reply: "Hello {{ name }}."
//!   - reply: "Who are you?"
//! "#)?;
//!
//! let mut model = ScriptedModel::new(script);
//! let request = ModelRequest { messages: vec![ModelMessage::user("I am Ada")], ..ModelRequest::default() };
//! assert_eq!(model.answer(&request).value.unwrap().text, "Hello Ada.");
//! # Ok::<(), hotseat_document::Diagnostics>(())
//! ```
//!
//! # File format
//! YAML or JSON, described by [`SCRIPT`]. All problems of a file are reported together, with their places.

mod builder;
mod compiled;
mod condition;
mod diagnostics;
mod memory;
mod model_script;
mod pattern;
mod reader;
mod rule;
mod shape;
mod surrogates;
#[cfg_attr(not(feature = "templates"), path = "no_template.rs")]
mod template;
#[cfg(feature = "templates")]
mod template_filters;
mod template_syntax;

pub use builder::ScriptBuilder;
pub use compiled::RuleId;
pub use memory::ScriptMemory;
pub use model_script::{ModelScript, ScriptedModel};
pub use rule::{RULE, Rule, USE};
pub use shape::SCRIPT;
