//! Whatever an agent says, the console stays ours: no line begins with its words, and nothing in them steers a terminal
//! or a CI server.
#![cfg(unix)]

mod common;

use std::sync::{Arc, Mutex};

use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Request};
use proptest::prelude::*;
use serde_json::{Value, json};

use common::Project;

/// Each piece of what the agent says begins with it, so that no line of the console may.
const MARK: &str = "ZQX";

/// What stands between the pieces: everything that ends a line, begins a command or is obeyed.
const BETWEEN: [&str; 16] = [
    " ",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\n\n  ",
    "\u{1b}[2K",
    "\u{1b}]0;title\u{7}",
    "\u{9b}31m",
    "\u{202e}",
    "\n::error::",
    "##[error]",
    "##vso[task.setvariable variable=x]y",
    "##teamcity[buildStop comment='x']",
    "\u{85}",
    "\u{2028}",
];

/// Whether GitHub would find a command at the beginning of a line, or Azure Pipelines or TeamCity anywhere in it.
fn gives_command(line: &str) -> bool {
    let named = line.trim_start().strip_prefix("::").and_then(|rest| rest.chars().next());
    named.is_some_and(char::is_alphabetic)
        || ["##[", "##vso[", "##teamcity["].iter().any(|command| line.contains(command))
}

fn words() -> impl Strategy<Value = String> {
    let piece =
        (0..BETWEEN.len(), ".{0,12}").prop_map(|(between, tail)| format!("{MARK}{tail}{}", BETWEEN[between]));
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

/// A case for each place where an agent's words can stand. The checks fail, so that what they found is shown.
const SUITE: &str = "
name: says
turns:
  - { user: text, assert: { text: { must_match: '^impossible$' } } }
---
id: calls
input: call
assertions: [{ type: tool_called, name: other }, { type: equals, value: impossible }, { type: contains, value: impossible }]
---
name: goes on
turns: [{ user: text }, { user: call }, { user: error }]
---
id: waits
type: multi_turn
turns: [{ input: ask }]
---
id: dynamic
turns: [{ input: text }, { input: call }]
checkpoints: [{ id: never, assertion: { type: contains, value: impossible } }]
---
id: body
input: body
---
id: garbage
input: garbage
";

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_line_of_the_console_is_the_agents(said in words(), name in words(), result in words(), width in 40usize..140) {
        let told = Arc::new(Mutex::new((said, name, result)));
        let agent = FakeAgent::start(move |request: &Request| {
            let (said, name, result) = told.lock().expect("nobody panics here").clone();
            let run = Run::of(request).started();
            match request.last_user_text().as_str() {
                "call" => run.tool("c", &name, &json!({ &name: said }), Some(json!(result))).text(&said).finished().into(),
                "error" => run.error(&said, Some(&name)).into(),
                "ask" => run.text(&format!("{said}?")).finished().into(),
                "body" => hotseat_testkit::Reply::text(500, &said),
                "garbage" => hotseat_testkit::Reply::sse().bytes(format!("data: {said}\n\n")),
                _ => run.text(&said).reasoning(&result).finished().into(),
            }
        });
        let project = Project::of(&agent).suite("a", SUITE);
        let output = project.command(&["test", "-v"]).env("COLUMNS", width.to_string()).run();
        prop_assert_eq!(output.code, 1, "{}", output);
        for line in output.stdout.lines().chain(output.stderr.lines()) {
            let obeyed = line.chars().find(|c| c.is_control() || "\u{202e}\u{2028}\u{2029}".contains(*c));
            prop_assert_eq!(obeyed, None, "{:?}\n{}", line, output);
            // Whoever looks for commands passes over blanks only.
            let begin = line.trim_start();
            prop_assert!(!begin.starts_with(MARK), "{:?}\n{}", line, output);
            prop_assert!(!gives_command(line), "{:?}\n{}", line, output);
        }
        // Events are read by programs, and by the CI server that prints them, too.
        let events = project.command(&["test", "--json"]).run();
        prop_assert!(events.code == 1 && !events.stdout.contains("##"), "{}", events);
        prop_assert!(events.stdout.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{}", events);
    }
}
