//! Functions of scripts that answer tools: of mocked MCP servers, and of the client.

use hotseat_testkit::{FakeAgent, FakeReply};
use serde_json::json;

use crate::common::http_agents::bank_target;
use crate::common::{Project, TestRun};
use crate::mcp::{calls, plain_agent};

/// Functions that answer `charge_card`, well and badly.
const FUNCTIONS: &str = "
interface Charge { order_id: string; amount: number }
interface Context { tool: string; server: string | null; number: number; test_id: string }

export function charge(args: Charge, context: Context) {
  console.log('charging', args.order_id);
  if (args.order_id === 'broke') return { error: 'card declined' };
  return { content: { order: args.order_id, cents: args.amount * 100, context } };
}
export const throws = () => { throw new Error('no such card'); };
export const hangs = () => { for (;;); };
export const nothing = () => {};
export const both = () => ({ content: 1, error: 'no' });
export const wrong = () => 'charged';
export const fetches = () => fetch('http://127.0.0.1:9/').json();
";

/// A project whose bank answers `charge_card` by a function.
fn project(agent: &FakeAgent, function: &str, suite: &str) -> Project {
    let config = format!(
        "{}scripts: {{ timeout_ms: 2000 }}
mcp: {{ bank: {{ type: mock, tools: [{{ name: charge_card, answers: [{{ use: scripts:bank.{function} }}] }}] }} }}
",
        bank_target(agent)
    );
    Project::with_config(&config).file("src/bank.ts", FUNCTIONS).suite("a", suite)
}

fn run(function: &str, suite: &str) -> TestRun {
    project(&plain_agent(), function, suite).test(&[])
}

#[test]
fn a_function_answers_a_tool_of_a_mock() {
    let run = run(
        "charge",
        "name: a
turns:
  - user: pay o-1
  - user: pay broke
    assert: { text: { must_match: 'not paid: card declined' } }
  - user: pay o-2
---
name: b
mcp: { bank: { tools: [{ name: charge_card, answers: [{ args_match: { order_id: o-1 }, content: written }, { use: bank.charge }] }] } }
turns: [{ user: pay o-1, assert: { text: { must_match: '\"written\"' } } }, { user: pay o-2, assert: { text: { must_match: '500' } } }]
",
    );
    run.assert_all_passed();
    let calls = calls(&run, "a");
    let context = |number: u32| json!({"tool": "charge_card", "server": "bank", "number": number, "inputs": {}, "test_id": "a"});
    assert_eq!(calls[0]["result"], json!({"order": "o-1", "cents": 500, "context": context(1)}));
    assert_eq!(calls[1]["error"], "card declined");
    assert_eq!(calls[2]["result"], json!({"order": "o-2", "cents": 500, "context": context(3)}));
    assert_eq!(run.case("a")["logs"], json!(["charging o-1", "charging broke", "charging o-2"]));
}

#[test]
fn a_function_that_fails_is_an_error_of_the_test_with_its_places() {
    let suite = "name: a\nmcp: { bank: { unmatched: error_result } }\nturns: [{ user: naive o-1 }]\n";
    for (function, words) in [
        ("throws", "no such card"),
        ("hangs", "the script did not finish within 2000 ms"),
        ("nothing", "it returned null; expected an object with either `content` or `error` (a text)"),
        ("both", "expected an object with either"),
        ("wrong", "it returned \\\"charged\\\""),
        ("fetches", "scripts: hosts"),
    ] {
        let run = run(function, suite);
        let who = format!("scripts:bank.{function} did not answer charge_card of MCP server `bank`: ");
        run.assert_failure("a", "script_error", &[&who, words, "named at hotseat.yaml:8:74"]);
        assert_eq!(run.failure("a")["fault"], "test", "{}", run.output);
    }
    let thrown = run("throws", suite);
    thrown.assert_failure("a", "script_error", &["src/bank.ts:10:41", "throw new Error('no such ca"]);
}

#[test]
fn a_missing_function_is_found_before_anything_is_contacted() {
    let agent = plain_agent();
    let output = project(&agent, "chrge", "name: a\nturns: [{ user: pay o-1 }]\n").hotseat(&["test"]);
    assert_eq!((output.code, agent.requests().len()), (2, 0), "{output}");
    assert!(output.stderr.contains("chrge") && output.stderr.contains("hotseat.yaml:8:74"), "{output}");
}

/// An agent that calls a tool of the client, and tells its result.
fn asking_agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let messages = request.json()["messages"].as_array().expect("messages").clone();
        let reply: FakeReply = match messages.last().filter(|message| message["role"] == "tool") {
            Some(result) => run.text(&format!("It says {}", result["content"])).finished().into(),
            None => run.tool("c1", "confirm", &json!({"amount": 7}), None).finished().into(),
        };
        reply
    })
}

#[test]
fn a_function_answers_a_tool_of_the_client() {
    let functions = "export const confirm = (args: any, context: any) => ({ content: `${args.amount} ${context.tool} ${context.server} ${context.number}` });\nexport const throws = () => { throw new Error('no'); };\n";
    let case = |name: &str, function: &str, rest: &str| {
        format!(
            "name: {name}\ntools: [{{ name: confirm, answers: [{{ use: scripts:client.{function} }}] }}]\nturns: [{{ user: pay{rest} }}]\n"
        )
    };
    let suite = [
        case("a", "confirm", ", assert: { text: { must_match: 'It says .*7 confirm null 1' } }"),
        case("b", "throws", ""),
    ];
    let agent = asking_agent();
    let project =
        Project::with_agent(&agent).file("src/client.ts", functions).suite("a", &suite.join("---\n"));
    let run = project.test(&["--record", "recordings"]);
    assert_eq!(run.case("a")["status"], "passed", "{}", run.output);
    run.assert_failure(
        "b",
        "script_error",
        &["scripts:client.throws did not answer confirm: ", "src/client.ts:2:"],
    );
    // A replay has the recorded answer.
    project.workspace.file("src/client.ts", &functions.replace("`${args.amount}", "`other ${args.amount}"));
    let replayed = project.test(&["-n", "replay:recordings", "--run", "^a$"]);
    replayed.assert_all_passed();
}

#[test]
fn a_timeout_says_that_a_function_had_not_answered() {
    let functions = "export const hangs = () => { for (;;); };\n";
    let suite = "name: a\ntools: [{ name: confirm, answers: [{ use: scripts:client.hangs }] }]\nturns: [{ user: pay, timeout: 1s }]\n";
    let run =
        Project::with_agent(&asking_agent()).file("src/client.ts", functions).suite("a", suite).test(&[]);
    let words =
        ["the turn timed out after 1000 ms", "the test had not answered the call of its tool confirm for "];
    run.assert_failure("a", "timeout", &words);
}

#[test]
fn a_test_in_typescript_names_its_functions() {
    let agent = plain_agent();
    let script = "import { it, user, expect, agent } from 'hotseat';
it('a', { mcp: { bank: { tools: [{ name: 'charge_card', answers: [{ use: 'scripts:bank.charge' }] }] } } }, () => {
  user.says('pay o-3');
  expect(agent).toHold({ type: 'tool_result', tool: 'charge_card', result: { order: 'o-3' } });
});
";
    let project =
        project(&agent, "throws", "name: unused\nturns: [{ user: hi }]\n").file("a_test.ts", script);
    project.test(&["a_test.ts"]).assert_all_passed();
}
