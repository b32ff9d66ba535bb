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
//! # Ok::<(), hotseat_model::script::ScriptError>(())
//! ```
//!
//! # The file
//! YAML or JSON. Keys that are not listed here are mistakes; all mistakes are reported together, with their places.
//!
//! | key | means |
//! |---|---|
//! | `name` | what the model is called; the file's name otherwise |
//! | `use` | `once` (the default) or `always`: how often rules answer that do not say it themselves |
//! | `rules` | the rules, in order |
//! | `rules[].name` | a name for messages |
//! | `rules[].when` | the conditions; without it the rule fits every request |
//! | `rules[].expect` | the same keys; a request that the rule answers and that does not fit them is an error |
//! | `rules[].use` | `once` in each conversation, or `always` |
//! | `rules[].delay_ms` | the time until the answer is whole, in milliseconds |
//! | `rules[].reply` | a text, or `text` or `json`, `reasoning`, `tool_calls`, `stop`, `usage` |
//! | `reply.tool_calls[]` | the name of a tool, or `name`, `arguments`, `id` |
//! | `rules[].error` | a kind of failure, or `kind`, `message`, `status`, `retry_after_ms`, `body`, and `after`: text that arrives before the failure |
//!
//! | condition | holds if |
//! |---|---|
//! | `conversation`, `agent` | it has this id or name |
//! | `turn`, `call`, `attempt` | it has this number, from 1 |
//! | `system` | the system prompt matches |
//! | `user` | what the user said last matches; without `call`, `tool_result` and `notice` only as long as the model has not replied to it |
//! | `tool_result` | a tool's answer matches to which the model has not replied yet; or `tool`, `matches`, `failed` |
//! | `notice` | a notice matches to which the model has not replied yet |
//! | `offered` | this tool is, or these tools are, offered to the model |
//!
//! Texts of replies and arguments are templates of [minijinja](https://docs.rs/minijinja): `{{ user }}`,
//! `{{ system }}`, `{{ notice }}`, `{{ result }}` (of the tool that `tool_result` names, else of the last one that
//! answered; JSON is JSON: `{{ result.price }}`), `{{ results.search }}`, `{{ messages }}`, `{{ tools }}`,
//! `{{ conversation }}`, `{{ agent }}`, `{{ turn }}`, `{{ call }}`, `{{ attempt }}`, and the named groups of the
//! patterns. An argument that is one `{{ … }}` alone keeps the type of its value.

mod answer;
mod builder;
mod compiled;
mod condition;
mod fields;
mod pattern;
mod place;
mod read;
mod rule;
mod template;
mod tree;
mod used;
mod yaml;

pub use answer::{Script, Scripted};
pub use builder::ScriptBuilder;
pub use compiled::RuleId;
pub use place::{Mistake, Place, ScriptError};
pub use rule::Rule;
pub use used::Used;
