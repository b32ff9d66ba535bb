#![doc = include_str!("../README.md")]

mod expand;
mod parse;
mod scenarios;

use proc_macro::TokenStream;
use syn::{ItemMod, parse_macro_input};

use parse::AgentSpecArgs;

/// Turns a module into a group of examples. The argument is the name of the group. The project file is the
/// nearest `hotseat.yaml`, searched upwards from the package directory, or set by `config`:
/// `#[agent_spec("Room Booking Agent", config = "agents/hotseat.yaml")]`.
///
/// These attributes are available inside the module:
///
/// | attribute | on | effect |
/// |---|---|---|
/// | `#[it("name")]` | an `async fn` | An example. Its arguments are any of `User`, `Agent`, `Conversation`, `Test`, `Scenario` and fixtures as `Rc<T>`, in any order. It becomes a `#[test]` with the name of the function |
/// | `#[it("name", with = function)]` | an `async fn` | An example configured by a `fn(&mut ExampleBuilder)`: tags, agent, judge |
/// | `#[setup]` | a `fn(&mut Group)` | Declares criteria, topics, the agent, hooks and fixtures of this module and nested ones |
/// | `#[context("name")]` | a `mod` | A nested group, which inherits all declarations |
/// | `#[scenarios("file")]` | an example | Creates one `#[test]` for each scenario of the file, `function::id`. The name of the example may contain `{name}` or `{…}` with any other text member of the scenario |
///
/// `#[ignore]`, `#[cfg(…)]` and doc comments of an example are applied to its test.
#[proc_macro_attribute]
pub fn agent_spec(name: TokenStream, module: TokenStream) -> TokenStream {
    let AgentSpecArgs { name, config } = parse_macro_input!(name as AgentSpecArgs);
    let module = parse_macro_input!(module as ItemMod);
    match parse::parse_group(name, module) {
        Ok(group) => expand::expand_spec(&group, config.as_ref()).into(),
        Err(wrong) => wrong.into_compile_error().into(),
    }
}
