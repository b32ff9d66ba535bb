//! Tests of agents in Rust as plain test functions: attributes on a module, over the groups and examples of `hotseat::dsl`.
//!
//! A module with [`agent_spec`] is a group, its functions are examples, and each example is a `#[test]` of its own:
//!
//! ```
//! use hotseat_attributes::agent_spec;
//!
//! #[agent_spec("Room Booking Agent")]
//! mod room_booking {
//!     use hotseat::dsl::prelude::*;
//!
//!     #[setup]
//!     fn shared(g: &mut Group) {
//!         g.agent(replies(async |_| "Which room?"));
//!     }
//!
//!     #[it("asks for the room")]
//!     async fn asks(user: User, agent: Agent) {
//!         user.says("Hi, I need a meeting room").await;
//!         expect!(agent, matches("(?i)which room"));
//!     }
//! }
//! # fn main() {}
//! ```

mod read;
mod scenarios;
mod write;

use proc_macro::TokenStream;
use syn::{ItemMod, parse_macro_input};

use read::Spec;

/// Makes a module a group of examples. Its argument is the name of the group. The project is the nearest `hotseat.yaml`, from
/// the folder of the package upwards, or what `config` says: `#[agent_spec("Room Booking Agent", config = "agents/hotseat.yaml")]`.
///
/// Within it, and in no other place, these attributes mean something:
///
/// | attribute | on | is |
/// |---|---|---|
/// | `#[it("name")]` | an `async fn` | an example. Its arguments are any of `User`, `Agent`, `Conversation`, `Test` and `Scenario`, and fixtures as `Rc<T>`, in any order. It becomes a `#[test]` of the name of the function |
/// | `#[it("name", with = function)]` | an `async fn` | the same, of which a `fn(&mut It)` says more: tags, its agent, its judge |
/// | `#[setup]` | a `fn(&mut Group)` | declares what holds for all examples of the module and of those within it: criteria, topics, the agent, hooks, fixtures |
/// | `#[context("name")]` | a `mod` | a group within this one, which inherits all that |
/// | `#[scenarios("file")]` | an example | each scenario of the file is a `#[test]` of its own, `function::id`, and the name of the example may say `{name}`, or `{…}` with any other text that scenarios have |
///
/// `#[ignore]`, `#[cfg(…)]` and comments on an example are those of its test.
#[proc_macro_attribute]
pub fn agent_spec(name: TokenStream, module: TokenStream) -> TokenStream {
    let Spec { name, config } = parse_macro_input!(name as Spec);
    let module = parse_macro_input!(module as ItemMod);
    match read::group(name, module) {
        Ok(group) => write::spec(&group, config.as_ref()).into(),
        Err(wrong) => wrong.into_compile_error().into(),
    }
}
