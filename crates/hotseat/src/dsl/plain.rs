//! Examples as plain `#[test]` functions, each a run by itself. The attributes of `hotseat-attributes` are written with this;
//! by hand it serves as well where a test file cannot have a main function of its own.

use std::future::Future;
use std::rc::Rc;

use super::fixture::Fixture;
use super::handles::{Agent, Conversation, User};
use super::harness::{Harness, Output, World, exit};
use super::scenario::{Scenario, Scenarios, load};
use super::test::Test;
use super::tree::Group;

/// Runs the examples that are declared: the body of a test function. It prints what came of them, and panics where that is no
/// success. `config` is the project file, where that is not the nearest `hotseat.yaml` from the folder of the package upwards.
///
/// ```no_run
/// use hotseat::dsl::plain;
/// use hotseat::dsl::prelude::*;
///
/// #[test]
/// fn greets() {
///     plain::hold(file!(), None, |s| {
///         s.it("greets", async |t| {
///             t.user.says("Hi").await;
///             expect!(t.agent.text(), not(is_empty()));
///         });
///     });
/// }
/// ```
#[track_caller]
pub fn hold(file: &'static str, config: Option<&str>, declare: impl FnOnce(&mut Group)) {
    let output = Output::kept();
    let world = World { output: output.clone(), ..World::read().1 };
    // Each of these tests would be a run of its own.
    let config = config.map(|config| format!("--config={config}"));
    let arguments = ["--no-store".to_string()].into_iter().chain(config).collect();
    let code = Harness { arguments, world, file }.run(declare);
    output.pass_on();
    match code {
        exit::PASSED => {}
        // Ctrl-C is for all tests of the program, and no other one would hear of it.
        exit::INTERRUPTED => World::end(code),
        _ => panic!("the example has not passed"),
    }
}

/// What an example can be given.
#[diagnostic::on_unimplemented(
    message = "an example cannot be given a `{Self}`",
    label = "one of `User`, `Agent`, `Conversation`, `Scenario`, `Test`, and `Rc<T>` for a fixture"
)]
pub trait Argument {
    /// That of a test.
    fn of(test: &Test) -> impl Future<Output = Self>;
}

impl Argument for Test {
    async fn of(test: &Test) -> Test {
        test.clone()
    }
}

impl Argument for User {
    async fn of(test: &Test) -> User {
        test.user.clone()
    }
}

impl Argument for Agent {
    async fn of(test: &Test) -> Agent {
        test.agent.clone()
    }
}

impl Argument for Conversation {
    async fn of(test: &Test) -> Conversation {
        test.conversation.clone()
    }
}

impl Argument for Scenario {
    async fn of(test: &Test) -> Scenario {
        let Some(scenario) = test.scenario() else {
            panic!("this example has no scenario: `#[scenarios(\"file\")]` says where they are");
        };
        scenario.clone()
    }
}

/// The fixture of this type that the groups around have: of several the one of the innermost group.
impl<V: 'static> Argument for Rc<V> {
    async fn of(test: &Test) -> Rc<V> {
        match Fixture::by_type(&test.line.example.fixtures) {
            Ok(fixture) => test.get(fixture).await,
            Err(words) => panic!("{words}"),
        }
    }
}

/// One of the scenarios of a file, by its place, from 0. There were so many when the test was compiled.
pub fn one_scenario(file: &str, number: &str, of: usize) -> Scenarios {
    load(file).only(number.parse().unwrap_or_default(), of)
}

/// A name in which `{…}` is what a scenario says there.
pub fn name(pattern: &str, scenario: &Scenario) -> String {
    let mut parts = pattern.split('{');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |name, part| match part.split_once('}') {
        Some((path, rest)) => name + &scenario.str(path) + rest,
        None => name + "{" + part,
    })
}
