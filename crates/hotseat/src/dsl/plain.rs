//! Examples as plain `#[test]` functions, each a separate run. The attributes of `hotseat-attributes` expand
//! to calls of this module; it can also be called directly where a test file cannot have its own `main`.

use std::future::Future;
use std::rc::Rc;

use super::conversation::Conversation;
use super::fixture::Fixture;
use super::handles::{Agent, User};
use super::harness::{Harness, HarnessContext, HarnessOutput, exit};
use super::scenario::{Scenario, ScenarioSource, load};
use super::test::Test;
use super::tree::Group;

/// Runs the declared examples as the body of a test function. Prints the results, and panics unless the
/// examples pass. `config` is the path of the project file; the default is the nearest `hotseat.yaml`,
/// searched upwards from the package directory.
///
/// ```no_run
/// use hotseat::dsl::plain;
/// use hotseat::dsl::prelude::*;
///
/// #[test]
/// fn greets() {
///     plain::run(file!(), None, |s| {
///         s.it("greets", async |t| {
///             t.user.says("Hi").await;
///             expect!(t.agent.text(), not(is_empty()));
///         });
///     });
/// }
/// ```
#[track_caller]
pub fn run(file: &'static str, config: Option<&str>, declare: impl FnOnce(&mut Group)) {
    let output = HarnessOutput::captured();
    let world = HarnessContext { output: output.clone(), ..HarnessContext::from_process().1 };
    // Each of these tests would be a saved run.
    let config = config.map(|config| format!("--config={config}"));
    let arguments = ["--no-store".to_string()].into_iter().chain(config).collect();
    let code = Harness { arguments, context: world, file }.run(declare);
    output.print_captured();
    match code {
        exit::PASSED => {}
        // Ctrl-C must stop the whole program: the other tests do not receive the signal.
        exit::INTERRUPTED => HarnessContext::exit(code),
        _ => panic!("the example did not pass"),
    }
}

/// A type that an example function can take as an argument.
#[diagnostic::on_unimplemented(
    message = "an example cannot take a `{Self}` as argument",
    label = "expected `User`, `Agent`, `Conversation`, `Scenario`, `Test`, or `Rc<T>` for a fixture"
)]
pub trait ExampleArgument {
    /// Gets the value from a test.
    fn from_test(test: &Test) -> impl Future<Output = Self>;
}

impl ExampleArgument for Test {
    async fn from_test(test: &Test) -> Test {
        test.clone()
    }
}

impl ExampleArgument for User {
    async fn from_test(test: &Test) -> User {
        test.user.clone()
    }
}

impl ExampleArgument for Agent {
    async fn from_test(test: &Test) -> Agent {
        test.agent.clone()
    }
}

impl ExampleArgument for Conversation {
    async fn from_test(test: &Test) -> Conversation {
        test.conversation.clone()
    }
}

impl ExampleArgument for Scenario {
    async fn from_test(test: &Test) -> Scenario {
        let Some(scenario) = test.scenario() else {
            panic!("this example has no scenario: set the file with `#[scenarios(\"file\")]`");
        };
        scenario.clone()
    }
}

/// The fixture with this type; the one of the innermost group if there are several.
impl<V: 'static> ExampleArgument for Rc<V> {
    async fn from_test(test: &Test) -> Rc<V> {
        match Fixture::find_by_type(&test.channel.example.fixtures) {
            Ok(fixture) => test.get(fixture).await,
            Err(words) => panic!("{words}"),
        }
    }
}

/// Selects one scenario of a file by its index, from 0. `of` is the number of scenarios when the test was
/// compiled.
pub fn one_scenario(file: &str, number: &str, expected_count: usize) -> ScenarioSource {
    load(file).select(number.parse().unwrap_or_default(), expected_count)
}

/// Fills `{…}` placeholders in the name of an example from a scenario.
pub fn scenario_name(pattern: &str, scenario: &Scenario) -> String {
    let mut parts = pattern.split('{');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |name, part| match part.split_once('}') {
        Some((path, rest)) => name + &scenario.str(path) + rest,
        None => name + "{" + part,
    })
}
