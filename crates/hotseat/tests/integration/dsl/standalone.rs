//! Output and exit code of a test file as a separate program, which is this test binary started again.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::sync::Arc;

use hotseat::dsl::prelude::*;
use hotseat::dsl::{self, Harness, HarnessContext};

use super::harness::echo_agent;

/// Arguments of the program, one per line.
const ARGUMENTS: &str = "DSL_CHILD_ARGUMENTS";

/// Makes an example of the program exit.
const EXITS: &str = "DSL_CHILD_EXITS";

/// Not a test: body of the program that the tests below start.
#[test]
fn example_program() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let world = HarnessContext {
        environment: Arc::new(BTreeMap::new()),
        folder: std::env::temp_dir(),
        color: false,
        width: 100,
        output: dsl::HarnessOutput::Standard,
    };
    let arguments = arguments.lines().map(str::to_string).collect();
    let declare = if std::env::var_os(EXITS).is_some() { declare_exit } else { declare };
    let code = Harness { arguments, context: world, file: "tests/agents.rs" }.run(declare);
    #[expect(clippy::exit, reason = "this is the end of the program")]
    std::process::exit(code.into());
}

fn declare(s: &mut Group) {
    echo_agent(s);
    s.describe("Room Booking Agent", |g| {
        g.it("greets", async |t| {
            t.user.says("hello").await;
            expect!(t.agent, call_tool("check_availability"));
        });
        g.it("panics", async |t| {
            t.user.says("hello").await;
            panic!("no words for it");
        });
        g.it("is left out", async |_| {}).skip("not yet");
        g.it("goes well", async |t| {
            t.user.says("hello").await;
        });
    });
}

#[expect(clippy::exit, reason = "examples may call code that exits")]
fn declare_exit(s: &mut Group) {
    echo_agent(s);
    s.it("fails", async |_| panic!("never seen"));
    s.it("exits", async |_| std::process::exit(0));
}

/// The exit code of an example is not that of the program: the other examples did not end.
#[test]
#[cfg(target_os = "linux")]
fn an_example_that_exits_fails_the_program() {
    let ran = program(&["--test-threads", "1", "exits"]).env(EXITS, "").output().unwrap();
    let words = String::from_utf8(ran.stderr).unwrap();
    assert!(!ran.status.success(), "{words}");
    assert!(words.contains("the example `exits` ended the test program"), "{words}");
}

fn run_program(arguments: &[&str]) -> Output {
    program(arguments).output().unwrap()
}

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["dsl::standalone::example_program", "--exact", "--nocapture"]);
    command.env(ARGUMENTS, arguments.join("\n")).env_remove("RUST_BACKTRACE");
    command
}

#[test]
fn examples_are_listed_for_cargo_and_nextest() {
    let names = ["greets", "panics", "is left out", "goes well"]
        .map(|name| format!("Room Booking Agent::{name}: test"));
    let listed = run_program(&["--list", "--format", "terse"]);
    let text = String::from_utf8(listed.stdout).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.ends_with(": test")).collect();
    assert_eq!((lines, listed.status.code()), (names.iter().map(String::as_str).collect(), Some(0)));
    let ignored = run_program(&["--list", "--format=terse", "--ignored"]);
    let text = String::from_utf8(ignored.stdout).unwrap();
    assert!(text.contains("is left out: test") && !text.contains("greets"), "{text}");
    let pretty = String::from_utf8(run_program(&["--list"]).stdout).unwrap();
    assert!(pretty.ends_with("\n4 tests, 0 benchmarks\n"), "{pretty}");
}

#[test]
fn failures_report_locations_and_panics_once() {
    let ran = run_program(&[]);
    let (shown, beside) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    assert_eq!(ran.status.code(), Some(1), "{shown}");
    for words in [
        "tests/integration/dsl/standalone.rs:41:13",
        r#"expect!(t.agent, call_tool("check_availability"));"#,
        "check_availability to be called",
        "no tool calls",
        "the test panicked: no words for it",
        "tests/integration/dsl/standalone.rs:45:13",
    ] {
        assert!(shown.contains(words), "{words} is missing:\n{shown}");
    }
    // A panic of a test is not printed while other tests run.
    assert!(!beside.contains("no words for it"), "{beside}");
}

#[test]
fn passed_examples_can_be_hidden() {
    let shown = String::from_utf8(run_program(&["--quiet"]).stdout).unwrap();
    for words in
        ["Room Booking Agent::greets", "check_availability to be called", "no words for it", "Failed:    2"]
    {
        assert!(shown.contains(words), "{words} is missing:\n{shown}");
    }
    assert!(!shown.contains("goes well") && !shown.contains("is left out"), "{shown}");
}

#[test]
fn nextest_runs_single_example() {
    let ran = run_program(&["--exact", "Room Booking Agent::goes well", "--nocapture"]);
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stdout));
    let help = String::from_utf8(run_program(&["--help"]).stdout).unwrap();
    assert!(help.contains("--test-threads N"), "{help}");
}

#[test]
fn usage_errors_have_messages() {
    let wrong = run_program(&["--exakt"]);
    let words = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        words.contains("unknown argument `--exakt`") && words.contains("did you mean `--exact`?"),
        "{words}"
    );
}
