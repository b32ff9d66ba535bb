//! Console injection: no console line starts with agent text, and agent text cannot control a terminal or a
//! CI server.
use std::sync::{Arc, Mutex};

use hotseat_testkit::FakeAgent;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::Project;

/// Marker at the start of each agent text, which no console line may start with.
const MARK: &str = "ZQX";

/// Separators between the texts: line ends, command prefixes and control sequences.
const SEPARATORS: [&str; 16] = [
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

/// Returns true if GitHub would detect a command at the start of the line, or Azure Pipelines or TeamCity
/// anywhere in it.
fn contains_ci_command(line: &str) -> bool {
    let named = line.trim_start().strip_prefix("::").and_then(|rest| rest.chars().next());
    named.is_some_and(char::is_alphabetic)
        || ["##[", "##vso[", "##teamcity["].iter().any(|command| line.contains(command))
}

fn hostile_text() -> impl Strategy<Value = String> {
    let piece = (0..SEPARATORS.len(), ".{0,12}")
        .prop_map(|(between, tail)| format!("{MARK}{tail}{}", SEPARATORS[between]));
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

/// A case for each place where agent text can appear. The checks fail, so their details are shown.
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
    fn agent_text_cannot_forge_console_lines(said in hostile_text(), name in hostile_text(), result in hostile_text(), width in 40usize..140) {
        let told = Arc::new(Mutex::new((said, name, result)));
        let agent = FakeAgent::with_run(move |run, request| {
            let (said, name, result) = told.lock().expect("the lock is never poisoned").clone();
            match request.last_user_text().as_str() {
                "call" => run.tool("c", &name, &json!({ &name: said }), Some(json!(result))).text(&said).finished().into(),
                "error" => run.error(&said, Some(&name)).into(),
                "ask" => run.text(&format!("{said}?")).finished().into(),
                "body" => hotseat_testkit::FakeReply::text(500, &said),
                "garbage" => hotseat_testkit::FakeReply::sse().bytes(format!("data: {said}\n\n")),
                _ => run.text(&said).reasoning(&result).finished().into(),
            }
        });
        let project = Project::with_agent(&agent).suite("a", SUITE);
        let output = project.command(&["test", "-v"]).env("COLUMNS", width.to_string()).run();
        prop_assert_eq!(output.code, 1, "{}", output);
        for line in output.stdout.lines().chain(output.stderr.lines()) {
            let obeyed = line.chars().find(|c| c.is_control() || "\u{202e}\u{2028}\u{2029}".contains(*c));
            prop_assert_eq!(obeyed, None, "{:?}\n{}", line, output);
            // Command parsers skip only blanks.
            let begin = line.trim_start();
            prop_assert!(!begin.starts_with(MARK), "{:?}\n{}", line, output);
            prop_assert!(!contains_ci_command(line), "{:?}\n{}", line, output);
        }
        // Events are read by programs and printed by CI servers.
        let events = project.command(&["test", "--json"]).run();
        prop_assert!(events.code == 1 && !events.stdout.contains("##"), "{}", events);
        prop_assert!(events.stdout.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{}", events);
    }
}
