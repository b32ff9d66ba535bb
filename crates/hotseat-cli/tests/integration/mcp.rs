//! MCP servers of the test: mocks, their answers, faults, and the assertions about their calls.

use std::sync::{Arc, Mutex};

use hotseat_testkit::{FakeAgent, McpClient, TestWorkspace, post};
use serde_json::{Value, json};

use crate::common::http_agents::{asked_text, bank_client, bank_target, http_agent, http_target};
use crate::common::typescript::IMPORTS;
use crate::common::{HOTSEAT, Project, TestRun, unreachable_address};
use crate::mcp_command::ServedMcp;

/// Servers of most tests: a bank that charges cards.
pub const BANK: &str = "mcp:
  bank:
    type: mock
    tools:
      - name: charge_card
        description: Charges the card of the customer.
        inputSchema: { type: object, required: [order_id, amount], properties: { order_id: { type: string }, amount: { type: number } } }
        answers:
          - { args_match: { order_id: '^o-1$' }, content: { charged: true } }
          - { args_match: { order_id: '^broke$' }, error: card declined }
      - name: find_charge
        annotations: { readOnlyHint: true }
        inputSchema: { type: object, properties: { order_id: { type: string } } }
        answers: [{ content: { found: true } }]
";

/// A plain HTTP agent, whose protocol shows no tool calls. It does what the user says with the server in its header.
pub fn plain_agent() -> FakeAgent {
    http_agent(|request| act(&bank_client(request), &asked_text(request)))
}

/// Does what the user says, and tells the outcome.
fn act(bank: &McpClient, text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let arguments = |id: &str| json!({"order_id": id, "amount": 5});
    match words.as_slice() {
        ["pay", id] => match bank.call("charge_card", &arguments(id)) {
            Ok(value) => format!("paid {value}"),
            Err(words) => format!("not paid: {words}"),
        },
        // Repeats the call until it gets an answer.
        ["naive", id] => {
            let paid = (0..3).find_map(|_| bank.call("charge_card", &arguments(id)).ok());
            paid.map_or("gave up".to_string(), |value| format!("paid {value}"))
        }
        // Looks whether the charge exists before it repeats the call.
        ["careful", id] => match bank.call("charge_card", &arguments(id)) {
            Ok(value) => format!("paid {value}"),
            Err(_) => match bank.call("find_charge", &arguments(id)) {
                Ok(found) if found["found"] == true => "paid before".to_string(),
                _ => format!("{:?}", bank.call("charge_card", &arguments(id))),
            },
        },
        // Acts without a word.
        ["silent", id] => bank.call("charge_card", &arguments(id)).map(|_| String::new()).unwrap_or_default(),
        ["mute"] => String::new(),
        ["list"] => bank.tools().unwrap_or_default().join(","),
        ["invalid"] => format!("{:?}", bank.call("charge_card", &json!({"order_id": 1}))),
        ["unknown"] => format!("{:?}", bank.call("refund", &json!({}))),
        _ => "Hello.".to_string(),
    }
}

/// A project with the bank and a plain agent.
pub fn bank_project(agent: &FakeAgent, suite: &str) -> Project {
    Project::with_config(&(bank_target(agent) + BANK)).suite("a", suite)
}

fn run(suite: &str) -> TestRun {
    bank_project(&plain_agent(), suite).test(&[])
}

/// The calls of a case: tool, server and sources.
pub fn calls(run: &TestRun, name: &str) -> Vec<Value> {
    let turns = run.case(name)["turns"].as_array().expect("turns").clone();
    turns.iter().flat_map(|turn| turn["tool_calls"].as_array().expect("calls").clone()).collect()
}

// Calls.

#[test]
fn calls_of_a_plain_agent_are_visible_at_the_server() {
    let run = run("name: a
turns:
  - user: list
    assert: { text: { must_match: '^charge_card,find_charge$' } }
  - user: pay o-1
    assert:
      - tools: { require: [{ name: charge_card, server: bank, args_match: { order_id: o-1 }, result_match: 'true' }], forbid: [find_charge] }
      - { type: tool_result, tool: charge_card, server: bank, result: { charged: true } }
      - { type: valid_arguments }
      - { text: { must_match: 'paid .*true' } }
  - user: pay broke
    assert: { tools: { require: [{ name: charge_card, result_match: declined }] }, text: { must_match: 'not paid: card declined' } }
assert: [{ type: tool_sequence, calls: [{ name: charge_card, server: bank }, charge_card] }]
");
    run.assert_all_passed();
    assert!(!run.output.stdout.contains("a different target"), "{}", run.output);
    let calls = calls(&run, "a");
    assert_eq!(calls.len(), 2);
    assert_eq!((&calls[0]["server"], &calls[0]["seen_by"]), (&json!("bank"), &json!(["mcp"])));
    assert_eq!(calls[0]["result"], json!({"charged": true}));
    assert_eq!(calls[1]["error"], "card declined");
    assert!(calls[0]["started_ms"].as_f64() >= Some(0.0) && calls[0]["duration_ms"].as_f64() >= Some(0.0));
}

/// Runs a case whose agent calls find_charge with these arguments, written as they are.
fn run_with_arguments(arguments: &'static str, suite: &str) -> TestRun {
    let agent = http_agent(move |request| {
        let address = request.header("x-bank").expect("the address of the bank");
        let version = r#""_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": {}}"#;
        let body = format!(
            "\u{FEFF}{{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\", \"params\": {{\"name\": \"find_charge\", \"arguments\": {arguments}, {version}}}}}"
        );
        let headers = [
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "find_charge"),
        ];
        let answer = post(address, &headers, &body).expect("an answer");
        answer.body
    });
    bank_project(&agent, suite).test(&[])
}

/// An MCP client may write any integer, and a byte order mark.
#[test]
fn arguments_keep_their_digits() {
    let suite = "name: a
turns:
  - user: find
    assert: { tools: { require: [{ name: find_charge, args_match: { charge: '^123456789012345678901$' } }] }, text: { must_match: found } }
";
    run_with_arguments(r#"{"charge": 123456789012345678901}"#, suite).assert_all_passed();
}

/// Programs cut texts between the halves of a character.
#[test]
fn arguments_with_half_of_a_surrogate_pair_are_a_call() {
    let suite = "name: a\nturns: [{ user: find, assert: { tools: { forbid: [find_charge] } } }]\n";
    let run = run_with_arguments(r#"{"charge": "x\ud83d"}"#, suite);
    run.assert_failure("a", "assertion", &["find_charge"]);
    assert_eq!(calls(&run, "a")[0]["args"], json!({"charge": "x\u{FFFD}"}));
}

/// A client that encodes its arguments twice: no single argument is known.
#[test]
fn a_text_as_arguments_decides_nothing() {
    let agent = http_agent(|request| {
        let bank = bank_client(request);
        let arguments = json!({"order_id": "o-9"}).to_string();
        let found = bank.call("find_charge", &json!(arguments));
        format!("{found:?}")
    });
    let suite = "name: a
turns: [{ user: find, assert: { tools: { forbid_calls: [{ name: find_charge, args_match: { order_id: o-9 } }] } } }]
";
    let run = bank_project(&agent, suite).test(&[]);
    run.assert_failure("a", "assertion", &["unknown or no JSON object"]);
}

#[test]
fn parallel_conversations_do_not_mix() {
    let case = |id: usize| {
        format!(
            "name: c{id}\nmcp: {{ bank: {{ tools: [{{ name: charge_card, answers: [{{ content: 'case {id}' }}] }}] }} }}\nturns: [{{ user: pay x, assert: {{ text: {{ must_match: '^paid \"case {id}\"$' }}, tools: {{ require: [{{ name: charge_card, count: {{ exact: 1 }} }}] }} }} }}]\n"
        )
    };
    let suite: Vec<String> = (0..20).map(case).collect();
    let run = bank_project(&plain_agent(), &suite.join("---\n")).test(&["--parallel", "10"]);
    run.assert_all_passed();
}

#[test]
fn a_call_without_an_answer_is_an_error_of_the_test() {
    let run = run("name: a
turns: [{ user: pay o-2 }]
---
name: left to the agent
mcp: { bank: { unmatched: error_result } }
turns: [{ user: pay o-2, assert: { text: { must_match: 'not paid: no answer is defined' } } }]
---
name: used up
mcp: { bank: { tools: [{ name: charge_card, answers: [{ content: ok, once: true }] }] } }
turns: [{ user: pay o-1 }, { user: pay o-1 }]
");
    let needs = "nearest: answer 1 of 2 for charge_card: it needs order_id";
    run.assert_failure("a", "test_error", &["MCP server `bank` has no answer for charge_card", "o-2", needs]);
    assert_eq!(run.case("left to the agent")["status"], "passed", "{}", run.output);
    run.assert_failure("used up", "test_error", &["it is used for one call only"]);
}

#[test]
fn invalid_arguments_can_be_asserted() {
    let run = run("name: a
turns: [{ user: invalid, assert: [{ type: valid_arguments, negate: true }, { text: { must_match: 'Invalid arguments' } }] }]
---
name: b
turns: [{ user: invalid, assert: [{ type: valid_arguments, tool: charge_card }] }]
---
name: unknown tool
turns: [{ user: unknown, assert: { tools: { require: [{ name: refund, result_match: 'Unknown tool' }] } } }]
");
    assert_eq!(run.case("a")["status"], "passed", "{}", run.output);
    run.assert_failure("b", "assertion", &["calls of charge_card to satisfy the input schema", "order_id"]);
    assert_eq!(run.case("unknown tool")["status"], "passed", "{}", run.output);
}

// Files.

#[test]
fn settings_have_three_layers() {
    let suite = "suite:
  mcp:
    bank: { tools: [{ name: charge_card, answers: [{ content: from suite }] }, { name: extra, answers: [{ content: 1 }] }] }
---
name: a
turns:
  - { user: list, assert: { text: { must_match: '^charge_card,find_charge,extra$' } } }
  - { user: pay o-9, assert: { text: { must_match: from suite } } }
  - { user: invalid, assert: [{ type: valid_arguments, negate: true }] }
---
name: b
mcp: { bank: { type: mock, tools_from: tools.json, tools: [{ name: charge_card, answers: [{ content: from case }] }] } }
turns:
  - { user: list, assert: { text: { must_match: '^recorded,charge_card$' } } }
  - { user: pay o-9, assert: { text: { must_match: from case } } }
";
    let list = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [
        {"name": "recorded", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
        {"name": "charge_card", "inputSchema": {"type": "object"}},
    ]}});
    let agent = plain_agent();
    let project = bank_project(&agent, suite).file("tools.json", &format!("\u{FEFF}{list}"));
    project.test(&[]).assert_all_passed();
}

#[test]
fn mistakes_are_reported_before_anything_is_contacted() {
    let agent = plain_agent();
    for (suite, words) in [
        (
            "name: a\nturns: [{ user: hi, assert: { tools: { require: [{ name: x, server: bnk }] } } }]\n",
            "unknown MCP server `bnk`\n",
        ),
        (
            "name: a\nturns: [{ user: hi, assert: { tools: { require: [{ name: x, server: bnk }] } } }]\n",
            "did you mean `bank`?",
        ),
        (
            "name: a\nturns: [{ user: hi, assert: { tools: { forbid_calls: [{ name: chrge_card, server: bank }] } } }]\n",
            "MCP server `bank` has no tool `chrge_card`\n",
        ),
        (
            "name: a\nturns: [{ user: hi, assert: [{ type: tool_result, tool: bank_chrge_card, server: bank }] }]\n",
            "MCP server `bank` has no tool `bank_chrge_card`\n",
        ),
        (
            "name: a\nfaults: [{ tool: find_chrge, do: timeout }]\nturns: [{ user: hi }]\n",
            "did you mean `find_charge`?",
        ),
        ("name: a\nfaults: [{ tool: find_chrge, do: timeout }]\nturns: [{ user: hi }]\n", "a.test.yaml:2:18"),
        (
            "suite: { mcp: { bank: { faults: [{ tool: refund, do: timeout }] } } }\n---\nname: a\nturns: [{ user: hi }]\n",
            "it has charge_card, find_charge",
        ),
        (
            "name: a\nmcp: { crm: { tools: [{ name: x }] } }\nturns: [{ user: hi }]\n",
            "define it with `type: mock`, `type: proxy` or `type: replay`",
        ),
        (
            "name: a\nmcp: { bank: { type: mock } }\nturns: [{ user: hi }]\n",
            "a mock needs `tools` or `tools_from`",
        ),
        (
            "name: a\nmcp: { bank: { type: mock, tools_from: none.json } }\nturns: [{ user: hi }]\n",
            "`none.json` was not found",
        ),
        (
            "name: a\nmcp: { bank: { tools: [{ name: x, inputSchema: { type: 5 } }] } }\nturns: [{ user: hi }]\n",
            "`inputSchema` of the tool `x` is invalid",
        ),
        (
            "name: a\nmcp: { bank: { type: proxy } }\nturns: [{ user: hi }]\n",
            "a proxy needs either a `command` or a `url`",
        ),
        (
            "name: a\nfaults: [{ do: lost_answer, nth: 1, every: 2 }]\nturns: [{ user: hi }]\n",
            "one of `nth`, `every` and `rate`",
        ),
        (
            "name: a\nfaults: [{ do: { http: 503, delay_ms: 5 } }]\nturns: [{ user: hi }]\n",
            "`do` needs exactly one fault",
        ),
        (
            "name: a\nfaults: [{ server: crm, do: empty }]\nturns: [{ user: hi }]\n",
            "unknown MCP server `crm`",
        ),
        (
            "name: a\nforwardedProps: { crm: '${MCP.crm.url}' }\nturns: [{ user: hi }]\n",
            "unknown MCP server `crm`",
        ),
        (
            "name: a\nturns:\n  - user: hi\n  - user: Use ${MCP.bnk.url} and pay\n",
            "unknown MCP server `bnk`\n --> a.test.yaml:4:11",
        ),
        (
            "name: a\nturns:\n  - user: hi\n  - user: Use ${MODELS.gpt.url}\n",
            "unknown served model `gpt`\n --> a.test.yaml:4:11",
        ),
        (
            "name: a\nturns: [{ user: hi, assert: [{ type: after_fault }] }]\n",
            "`after_fault` needs `max_retries` or `forbid`",
        ),
        (
            "name: a\nturns:\n  - user: pay o-1\n    assert: [{ type: after_fault, max_retries: 1 }]\n",
            "what the agent does after a fault, but the case injects none\n --> a.test.yaml:4:14",
        ),
        (
            "name: a\nmodels: { m: { type: scripted, rules: [{ reply: Hi }] } }\nturns: [{ user: hi }]\n",
            "without `type`: a scripted language model",
        ),
        (
            "name: a\nscenarios: [{ name: b, goal: g }, { name: c, goal: g }]\nturns: [{ user: pay o-1 }]\nassert: [{ type: after_fault, max_retries: 1 }]\n",
            "what the agent does after a fault, but the case injects none\n --> a.test.yaml:4:10",
        ),
    ] {
        let output = bank_project(&agent, suite).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{output}");
        let shown = format!("{}{}", output.stdout, output.stderr);
        assert_eq!(shown.matches(words.trim_end()).count(), 1, "{words:?} is not once in {shown}");
    }
    assert_eq!(agent.requests().len(), 0);
}

#[test]
fn assertions_about_calls_that_nothing_shows_are_refused() {
    let agent = http_agent(|_| "Hello.");
    let target = http_target(&agent, "");
    for assertion in [
        "tools: { forbid: [charge_card] }",
        "budget: { max_tool_calls: 1 }",
        "timing: { max_gap_ms: 1 }",
        "text: { with_tool_calls: forbid }",
        // A judge would find no result that supports a claim.
        "type: grounded, types: [prices]",
        "type: claims, forbid: [prices]",
    ] {
        let suite = format!("name: a\nturns: [{{ user: hi, assert: {{ {assertion} }} }}]\n");
        Project::with_config(&target)
            .suite("a", &suite)
            .hotseat(&["test"])
            .assert_stderr(2, &["the agent's calls are not visible"]);
    }
    let trigger = "name: a\nclassify_topics: triggers\ntopics:\n  start: {}\n  paid: { triggers: [{ on_tool_call: pay }] }\ngraph: { start: paid, paid: start }\nturns: [{ user: hi }]\n";
    Project::with_config(&target)
        .suite("a", trigger)
        .hotseat(&["test"])
        .assert_stderr(2, &["the agent's calls are not visible\n --> a.test.yaml:5"]);
    let trigger = trigger.replace("pay", "charge_crad");
    let output = bank_project(&agent, &trigger).hotseat(&["test"]);
    assert_eq!(output.code, 2, "{output}");
    let words =
        "no MCP server of the test has a tool `charge_crad`, and nothing else shows the agent's calls";
    assert!(
        output.stderr.contains(words) && output.stderr.contains("did you mean `charge_card`"),
        "{output}"
    );
    assert_eq!(agent.requests().len(), 0);
    let graph = "topic('start', {}); topic('paid', { triggers: [{ onToolCall: 'charge_crad' }] });
it('a', { classifyTopics: 'triggers' }, () => { expectConversationTo({ start: 'paid', paid: null }); user.says('hi'); });";
    for (config, words) in
        [(target.clone(), "the agent's calls are not visible"), (bank_target(&agent) + BANK, words)]
    {
        let project = Project::with_config(&config).file("a_test.ts", &format!("{IMPORTS}\n{graph}\n"));
        project.test(&[]).assert_failure("a", "test_error", &[words]);
    }
    let written =
        format!("{IMPORTS}\nit('a', () => {{ user.says('hi'); expect(agent).toCallTool('x'); }});\n");
    let project = Project::with_config(&target).file("a_test.ts", &written);
    project.test(&[]).assert_failure("a", "test_error", &["the agent's calls are not visible"]);
}

/// A list of calls that nothing shows is not an empty list.
#[test]
fn scripts_cannot_read_calls_that_nothing_shows() {
    let agent = http_agent(|_| "Hello.");
    let target = http_target(&agent, "");
    let reads = [
        "conversation.allToolCalls.length",
        "conversation.hasToolCall('x')",
        "conversation.calledTool('x')",
        "conversation.messages[1].hasToolCall('x')",
        "conversation.lastTurn.findToolCalls('x')",
        "agent.toolCalls",
        "agent.response.hasToolCall('x')",
        "expect(agent).not.toCallTool('x', { n: (n) => n > 1 })",
    ];
    let tests = reads.iter().enumerate().map(|(number, read)| {
        format!("it('{number}', () => {{ user.says('hi'); try {{ {read}; }} catch {{}} }});\n")
    });
    let tests: String = tests.collect();
    let others = "it('texts', () => {
      user.says('hi');
      expect(conversation.messages.map((one) => one.content)).toEqual(['hi', 'Hello.']);
      expect(JSON.stringify(conversation.turns)).toContain('Hello.');
    });";
    let project = Project::with_config(&target).file("a_test.ts", &format!("{IMPORTS}\n{tests}{others}\n"));
    let tested = project.test(&[]);
    for (number, read) in reads.iter().enumerate() {
        let failure = tested.failure(&number.to_string());
        let message = failure["message"].as_str().unwrap_or_default();
        assert!(message.contains("calls are not visible"), "{read}: {failure:#}");
        assert_eq!(failure["fault"], "test", "{read}");
    }
    assert_eq!(tested.case("texts")["status"], "passed", "{:#}", tested.case("texts"));
}

/// An agent may use a server of the test only when it needs it: before, it has called nothing. An agent that never does shows
/// nothing.
#[test]
fn calls_are_decided_before_the_first_use_of_a_server() {
    let agent = plain_agent();
    let suite = "name: later
turns:
  - { user: hi, assert: { tools: { forbid: [charge_card] } } }
  - { user: pay o-1, assert: { tools: { require: [charge_card] } } }
---
name: never
turns: [{ user: hi, assert: { tools: { forbid: [charge_card] } } }, { user: hi }]
---
name: missing
turns: [{ user: hi, assert: { tools: { require: [charge_card] } } }, { user: pay o-1 }]
";
    let test = format!(
        "{IMPORTS}
const options = {{ classifyTopics: 'triggers', decideTopics: 'always' }};
const all = (asserted) => expectConversationTo({{ all: {{ characteristic: 'y', ...asserted }} }});
it('said with an assertion', () => {{ user.says({{ user: 'pay o-1', assert: {{ type: 'tool_called', name: 'charge_card' }} }}); }});
it('declared in a topic', options, () => {{ all({{ expect: {{ toolCall: 'charge_card' }} }}); user.says('pay o-1'); }});
it('not yet', () => {{ user.says('hi'); expect(agent).not.toCallTool('charge_card'); user.says('pay o-1'); expect(agent).toCallTool('charge_card'); }});
it('never called', () => {{ user.says('hi'); expect(agent).not.toCallTool('charge_card'); }});
it('never in a topic', options, () => {{ all({{ expect: {{ forbidToolCall: 'charge_card' }} }}); user.says('hi'); }});
it('not called', () => {{ user.says('hi'); expect(agent).toCallTool('charge_card'); }});
"
    );
    let tested = bank_project(&agent, suite).file("a_test.ts", &test).test(&[]);
    for case in ["later", "said with an assertion", "declared in a topic", "not yet"] {
        assert_eq!(tested.case(case)["status"], "passed", "{:#}", tested.case(case));
    }
    let words = ["the agent used no MCP server and no model of the test"];
    for case in ["never", "missing", "never called", "never in a topic", "not called"] {
        tested.assert_failure(case, "test_error", &words);
    }
}

/// Functions that decide a check see that nothing shows calls, or has shown them so far; a condition sees no calls so far.
#[test]
fn functions_that_check_cannot_read_calls_that_nothing_shows() {
    let agent = http_agent(|_| "Hello.");
    let services = bank_target(&agent);
    let hidden = services.replace("  headers: { x-bank: '${MCP.bank.url}' }\n", "");
    let functions = "export const none = (output, input, expected, context) => context.tool_calls.length === 0;
export const noneInTurn = (turn) => turn.tool_calls.every((call) => call.name !== 'pay');
export const noneInMessages = (messages) => messages.every((one) => one.role === 'user' || one.tool_calls.length === 0);
";
    let suite = "name: script
turns: [{ user: hi, assert: [{ type: script, use: 'scripts:f.none' }] }]
---
name: criterion
turns: [{ user: hi, assert: [{ type: satisfy, criteria: 'scripts:f.noneInTurn' }] }]
---
name: messages
criteria: { none: { match_messages: 'scripts:f.noneInMessages' } }
turns: [{ user: hi, assert: [{ type: satisfy, criteria: none }] }]
";
    let test = format!(
        "{IMPORTS}
it('in a topic', {{ classifyTopics: 'triggers', decideTopics: 'always' }}, () => {{
  expectConversationTo({{ all: {{ characteristic: 'x', expect: {{ 'no call': (turn) => turn.toolCalls.length === 0 }} }} }});
  user.says('hi');
}});
"
    );
    for (target, words) in [
        (&hidden, "map them in the project file"),
        (&(services + BANK), "the agent used no MCP server and no model of the test"),
    ] {
        let project = Project::with_config(target).suite("b", suite).file("f.ts", functions);
        let tested = project.file("a_test.ts", &test).test(&[]);
        for case in ["script", "criterion", "messages", "in a topic"] {
            let failure = tested.failure(case);
            assert_eq!(failure["fault"], "test", "{failure:#}");
            let shown = failure.to_string();
            assert!(shown.contains("calls are not visible") && shown.contains(words), "{case}: {failure:#}");
        }
    }
}

// Faults.

/// A case whose agent loses the answer to its first charge.
fn lost_answer(name: &str, user: &str, assertion: &str) -> String {
    format!(
        "name: {name}\nfaults: [{{ tool: charge_card, do: lost_answer }}]\nturns: [{{ user: {user} }}]\nassert: [{assertion}]\n"
    )
}

const IDEMPOTENT: &str = "{ type: idempotent, tool: charge_card, server: bank, key: order_id }";

#[test]
fn a_lost_answer_makes_a_naive_agent_pay_twice() {
    let suite = [
        lost_answer("naive", "naive o-1", IDEMPOTENT),
        lost_answer("careful", "careful o-1", IDEMPOTENT),
        lost_answer("retries", "naive o-1", "{ type: after_fault, tool: charge_card, max_retries: 0 }"),
        lost_answer("one retry", "naive o-1", "{ type: after_fault, max_retries: 1, forbid: [find_charge] }"),
        lost_answer("forbidden", "careful o-1", "{ type: after_fault, forbid: [find_charge] }"),
    ];
    let run = run(&suite.join("---\n"));
    let words = [
        "charge_card at server bank to take effect at most once for each order_id",
        "2 effects for order_id \\\"o-1\\\"",
        "[lost_answer]",
    ];
    let failure = run.failure("naive");
    let text = format!("{} {}", failure["message"], failure["detail"]).replace("\\\\\\\"", "\\\"");
    assert!(words.iter().all(|words| text.contains(words)), "{text}");
    assert_eq!(run.case("careful")["status"], "passed", "{}", run.output);
    run.assert_failure("retries", "assertion", &["1 retry of charge_card"]);
    assert_eq!(run.case("one retry")["status"], "passed", "{}", run.output);
    run.assert_failure("forbidden", "assertion", &["find_charge"]);
    let made = calls(&run, "naive");
    assert_eq!(
        (made.len(), &made[0]["faults"], &made[0]["answer_lost"]),
        (2, &json!(["lost_answer"]), &json!(true))
    );
    assert_eq!((made[0].get("result"), &made[1]["result"]), (None, &json!({"charged": true})));
}

#[test]
fn a_fault_that_no_call_reaches_is_an_error_of_the_test() {
    let run = run("name: a
faults: [{ tool: charge_card, nth: 2, do: timeout }]
turns: [{ user: pay o-1 }]
");
    let words = [
        "fault `timeout` on charge_card of MCP server `bank` was not reached",
        "called once, and the fault selects none of these calls",
        "a.test.yaml:2",
    ];
    run.assert_failure("a", "test_error", &words);
}

#[test]
fn a_fault_that_no_call_reaches_is_told_although_a_check_fails_first() {
    let run = run("name: a
faults: [{ tool: charge_card, do: lost_answer }]
turns:
  - { user: list, assert: { text: { must_match: refund } } }
  - { user: pay o-1 }
");
    run.assert_failure(
        "a",
        "assertion",
        &["fault `lost_answer` on charge_card of MCP server `bank` was not reached", "refund"],
    );
}

#[test]
fn every_fault_reaches_the_agent_and_the_trace() {
    let kinds = [
        "disconnect",
        "http",
        "rpc_error",
        "is_error",
        "empty",
        "garbage",
        "truncate",
        "schema_violation",
        "huge",
        "lost_answer",
        "duplicate_answer",
        "{ delay_ms: 20 }",
        "{ slow_stream_ms: 20 }",
        "{ http: 429 }",
        "{ rpc_error: -32001 }",
        "{ is_error: busy }",
        "{ huge_bytes: 100 }",
    ];
    let case = |(index, kind): (usize, &&str)| {
        format!(
            "name: f{index}\nfaults: [{{ do: {kind}, args_match: {{ order_id: o }} }}]\nturns: [{{ user: pay o-1 }}, {{ user: pay o-1, assert: {{ text: {{ must_match: '^paid' }} }} }}]\n"
        )
    };
    let suite: Vec<String> = kinds.iter().enumerate().map(case).collect();
    let run = run(&suite.join("---\n"));
    run.assert_all_passed();
    for (index, kind) in kinds.iter().enumerate() {
        let made = calls(&run, &format!("f{index}"));
        let name = kind.trim_matches(['{', '}', ' ']).split([':', ' ']).next().unwrap_or_default();
        let name = name.trim_end_matches("_ms").trim_end_matches("_bytes");
        assert_eq!((made.len(), &made[0]["faults"]), (2, &json!([name])), "{kind}: {made:#?}");
        assert!(made[1].get("faults").is_none(), "{kind}");
    }
}

#[test]
fn a_seed_selects_the_same_calls_again() {
    let suite = "name: a
faults: [{ rate: 0.5, seed: 7, do: is_error }]
turns: [{ user: pay o-1 }, { user: pay o-1 }, { user: pay o-1 }, { user: pay o-1 }, { user: pay o-1 }, { user: pay o-1 }]
";
    let faults = |run: &TestRun| -> Vec<bool> {
        calls(run, "a").iter().map(|call| call.get("faults").is_some()).collect()
    };
    let (first, second) = (faults(&run(suite)), faults(&run(suite)));
    assert_eq!(first, second);
    assert!(first.contains(&true) && first.contains(&false), "{first:?}");
    // The last attempt is reported.
    let retried = run(&format!("{suite}retries: 1\nassert: {{ text: {{ must_match: never }} }}\n"));
    assert_eq!(retried.case("a")["attempts"].as_array().map(Vec::len), Some(2), "{}", retried.output);
    assert_eq!(faults(&retried), first);
}

// Sweeps.

/// Cases whose agents differ in what they do after a fault.
const SWEPT: &str = "name: naive
turns: [{ user: naive o-1 }]
---
name: careful
turns: [{ user: careful o-1 }]
---
name: fails
turns: [{ user: pay o-1, assert: { text: { must_match: never } } }]
---
name: no call
turns: [{ user: list }]
---
name: has a fault
faults: [{ do: is_error }]
turns: [{ user: pay o-1 }]
";

/// Outcomes of a sweep: case, call, fault, outcome, further calls.
fn swept(run: &TestRun) -> Vec<String> {
    let rows = run.report["fault_sweep"]["rows"].as_array().expect("a sweep").iter();
    let shown = rows.map(|row| {
        let text = |key: &str| row[key].as_str().unwrap_or_default();
        let (case, tool, fault, outcome) = (text("case"), text("tool"), text("fault"), text("outcome"));
        format!("{case}: {tool} {} {fault}: {outcome} {}", row["nth"], row["calls_again"])
    });
    shown.collect()
}

#[test]
fn a_sweep_shows_what_the_agent_does_after_each_fault() {
    let agent = plain_agent();
    let project = bank_project(&agent, SWEPT);
    let arguments = ["--faults", "sweep", "--fault-kinds", "is_error,lost_answer,delay,stale"];
    let files = ["-o", "report.html", "-o", "report.md"];
    let run = project.test(&[&arguments[..], &["--parallel", "8"], &files].concat());
    let expected = [
        "naive: charge_card 1 delay: recovered 0",
        "naive: charge_card 1 is_error: called_again 1",
        "naive: charge_card 1 lost_answer: acted_twice 1",
        "careful: charge_card 1 delay: recovered 0",
        "careful: charge_card 1 is_error: told_user 0",
        "careful: charge_card 1 lost_answer: recovered 0",
    ];
    assert_eq!(swept(&run), expected, "{}", run.output);
    let skipped = run.report["fault_sweep"]["skipped"].as_array().expect("a list");
    let reasons = skipped.iter().map(|skip| format!("{}: {}", skip["case"], skip["reason"]));
    assert_eq!(
        reasons.collect::<Vec<_>>(),
        [
            "\"fails\": \"it failed without faults\"",
            "\"no call\": \"it called no tool of an MCP server of the test\"",
            "\"has a fault\": \"it injects faults itself\"",
        ]
    );
    assert_eq!(run.output.code, 1, "{}", run.output);
    let console = &run.output.stdout;
    assert!(console.contains("faults: 6 conversations"), "{console}");
    assert!(console.contains("acted twice (1 call more)"), "{console}");
    assert!(console.contains("1 of 6 conversations with a fault shows a defect"), "{console}");
    let totals = "3 recovered · 1 called again · 1 acted twice · 1 told the user";
    assert!(console.contains(totals), "{console}");
    let passed = bank_project(&agent, SWEPT).test(&[&arguments[..], &["--run", "^naive$"]].concat());
    let summary = &passed.output.stdout[passed.output.stdout.find("Summary").expect("a summary")..];
    for words in ["Passed:    1 without faults", "1 conversation with a fault", "SWEEP OF FAULTS FAILED"] {
        assert!(summary.contains(words), "{words}: {summary}");
    }
    assert!(!summary.contains("TESTS FAILED"), "{summary}");
    // A case and a call are named once.
    assert_eq!(console.matches("charge_card #1").count(), 2, "{console}");
    let read = |name: &str| std::fs::read_to_string(project.workspace.path(name)).expect(name);
    let markdown = read("report.md");
    let defect = "- naive: <code>charge&#95;card</code> #1, <code>lost&#95;answer</code>: **acted twice**";
    assert!(markdown.contains(totals) && markdown.contains(defect), "{markdown}");
    assert!(read("report.html").contains("\"fault_sweep\":{\"runs\":6"));
    // The result does not depend on the number of conversations at once.
    let again = project.test(&[&arguments[..], &["--parallel", "1"]].concat());
    assert_eq!(again.report["fault_sweep"], run.report["fault_sweep"]);
    // No table is announced that is not shown.
    let stale = project.test(&["--faults", "sweep", "--fault-kinds", "stale", "--run", "^naive$"]);
    assert!(stale.output.code == 3 && !stale.output.stderr.contains("the table"), "{}", stale.output);
    // A seed selects some of the conversations.
    let limited = ["--fault-limit", "2", "--fault-seed", "7"];
    let limited = [0, 1].map(|_| project.test(&[&arguments[..], &limited[..]].concat()));
    assert_eq!(swept(&limited[0]), swept(&limited[1]));
    assert_eq!(swept(&limited[0]).len(), 2);
    assert!(limited[0].output.stdout.contains("faults: 2 conversations of 6 combinations"));
}

/// An agent may do the work again at another server. The same name there is the same work.
#[test]
fn a_sweep_sees_the_same_tool_at_other_servers() {
    let agent = http_agent(|request| {
        let pay = |server: &str| {
            let server = McpClient::new(request.header(server).expect("the address of a server"));
            server.call("charge_card", &json!({"order_id": "o-1"}))
        };
        let paid = match request.json()["text"] == "pay both" {
            true => pay("x-bank").and(pay("x-other")),
            false => pay("x-bank").or_else(|_| pay("x-other")),
        };
        paid.map_or("not paid", |_| "paid")
    });
    let target = bank_target(&agent);
    let target =
        target.replace("x-bank: '${MCP.bank.url}'", "x-bank: '${MCP.bank.url}', x-other: '${MCP.other.url}'");
    let mock = "{ type: mock, tools: [{ name: charge_card, answers: [{ content: charged }] }] }";
    let servers = format!("mcp: {{ bank: {mock}, other: {mock} }}\n");
    let project = Project::with_config(&(target + &servers)).suite("a", "name: a\nturns: [{ user: pay }]\n");
    let run = project.test(&["--faults", "sweep", "--fault-kinds", "is_error,lost_answer"]);
    let expected =
        ["a: charge_card 1 is_error: called_again 1", "a: charge_card 1 lost_answer: acted_twice 1"];
    assert_eq!(swept(&run), expected, "{}", run.output);
    assert!(!run.output.stdout.contains("charge_card at bank"), "{}", run.output);
    // Calls of several servers have the names of the servers.
    let run = project.suite("a", "name: a\nturns: [{ user: pay both }]\n").test(&[
        "--faults",
        "sweep",
        "--fault-kinds",
        "delay",
    ]);
    for call in ["charge_card at bank #1", "charge_card at other #1"] {
        assert!(run.output.stdout.contains(call), "{}", run.output);
    }
}

/// The same number of effects is not the same work.
#[test]
fn a_sweep_compares_the_arguments_of_effects() {
    let agent = http_agent(|request| {
        let bank = bank_client(request);
        let charge = |order: &str| bank.call("charge_card", &json!({"order_id": order}));
        for order in ["o-1", "o-2"] {
            // After a failure it charges the wrong order.
            let _ = charge(order).or_else(|_| charge("o-1"));
        }
        "Both are paid."
    });
    let mock =
        "mcp: { bank: { type: mock, tools: [{ name: charge_card, answers: [{ content: charged }] }] } }\n";
    let project =
        Project::with_config(&(bank_target(&agent) + mock)).suite("a", "name: a\nturns: [{ user: pay }]\n");
    let run = project.test(&["--faults", "sweep", "--fault-kinds", "is_error"]);
    let expected = ["a: charge_card 1 is_error: called_again 1", "a: charge_card 2 is_error: acted_twice 1"];
    assert_eq!(swept(&run), expected, "{}", run.output);
}

#[test]
fn a_sweep_says_how_many_calls_got_no_fault() {
    let agent = http_agent(|request| {
        let bank = bank_client(request);
        for order in 0..203 {
            let _ = bank.call("charge_card", &json!({"order_id": format!("o-{order}")}));
        }
        "All are paid."
    });
    let mock =
        "mcp: { bank: { type: mock, tools: [{ name: charge_card, answers: [{ content: charged }] }] } }\n";
    let project =
        Project::with_config(&(bank_target(&agent) + mock)).suite("a", "name: a\nturns: [{ user: pay }]\n");
    let run = project.test(&["--faults", "sweep", "--fault-kinds", "delay", "--fault-limit", "1"]);
    assert_eq!(run.report["fault_sweep"]["calls_left_out"], 3, "{}", run.output);
    let words = "3 calls after the first 200 of a case got no fault";
    assert!(run.output.stdout.contains(words), "{}", run.output);
}

#[test]
fn a_sweep_without_a_defect_passes() {
    let agent = plain_agent();
    let project = bank_project(&agent, SWEPT);
    let run = project.test(&["--run", "careful", "--faults", "sweep", "--fault-kinds", "lost_answer,delay"]);
    assert_eq!((run.output.code, swept(&run).len()), (0, 2), "{}", run.output);
    // A call again of a tool that says that it is harmless is no defect.
    let project = bank_project(
        &agent,
        "name: a
mcp: { bank: { tools: [{ name: charge_card, annotations: { idempotentHint: true } }] } }
turns: [{ user: naive o-1 }]
",
    );
    let run = project.test(&["--faults", "sweep", "--fault-kinds", "lost_answer"]);
    assert_eq!(swept(&run), ["a: charge_card 1 lost_answer: called_again 1"]);
    assert_eq!(run.output.code, 0, "{}", run.output);
    // A sweep without a fault proves nothing.
    let project = bank_project(&agent, SWEPT);
    for case in ["no call", "has a fault"] {
        let run = project.test(&["--run", case, "--faults", "sweep"]);
        assert_eq!(run.output.code, 3, "{}", run.output);
        assert!(run.output.stderr.contains("the sweep injected no fault"), "{}", run.output);
    }
    for (arguments, words) in [
        (&["--fault-limit", "5"][..], "--faults"),
        (&["--faults", "sweep", "--fault-kinds", "lost"][..], "lost_answer"),
    ] {
        project.hotseat(&[&["test"], arguments].concat()).assert_stderr(2, &[words]);
    }
}

#[test]
fn an_assertion_about_a_fault_that_was_not_injected_is_an_error_of_the_test() {
    let suite = lost_answer("a", "naive o-1", "{ type: after_fault, tool: find_charge, max_retries: 0 }");
    let run = run(&suite);
    run.assert_failure("a", "test_error", &["no such fault was injected"]);
    assert_eq!(run.failure("a")["fault"], "test");
}

#[test]
fn assertions_about_faults_apply_to_the_faults_of_a_sweep() {
    let suite = "name: a
turns: [{ user: naive o-1 }]
assert: [{ type: after_fault, tool: charge_card, max_retries: 0 }, { type: after_fault, tool: find_charge, max_retries: 0 }]
";
    let arguments = ["--faults", "sweep", "--fault-kinds", "is_error,delay"];
    let run = bank_project(&plain_agent(), suite).test(&arguments);
    // The conversation without a fault passes, and the retry after one fails.
    assert_eq!(
        swept(&run),
        ["a: charge_card 1 delay: recovered 0", "a: charge_card 1 is_error: failed 1"],
        "{}",
        run.output
    );
    assert_eq!(run.case("a")["status"], "passed", "{}", run.output);
}

#[test]
fn an_empty_reply_after_a_call_is_judged_by_assertions() {
    let called = "assert: { tools: { require: [charge_card] } }";
    let run = run(&format!(
        "name: acts\nturns: [{{ user: silent o-1, {called} }}, {{ user: pay o-1 }}]\n---\nname: mute\nturns: [{{ user: mute }}]\n---\nname: text\nturns: [{{ user: silent o-1, assert: {{ text: {{ must_match: paid }} }} }}]\n"
    ));
    assert_eq!(run.case("acts")["status"], "passed", "{}", run.output);
    run.assert_failure("mute", "protocol_error", &["no text and no tool call"]);
    run.assert_failure("text", "assertion", &["paid"]);
}

// Proxies.

/// A real server with the tool `charge_card`, at an address of its own.
fn served_bank(workspace: &TestWorkspace) -> ServedMcp {
    let tool = json!({"name": "charge_card", "answer": "charged ${arguments.order_id}"});
    workspace.file("bank.json", &json!({"name": "bank", "tools": [tool]}).to_string());
    ServedMcp::start(workspace, &["bank.json"])
}

#[test]
fn calls_of_proxied_servers_are_visible_and_can_be_broken() {
    let (agent, workspace) = (plain_agent(), TestWorkspace::new());
    let served = served_bank(&workspace);
    let suite = "name: seen
turns:
  - user: pay o-1
    assert: { text: { must_match: 'charged o-1' }, tools: { require: [{ name: charge_card, server: bank, result_match: 'charged o-1' }] } }
---
name: paid twice
faults: [{ tool: charge_card, do: lost_answer }]
turns: [{ user: naive o-2, assert: { text: { must_match: 'charged o-2' } } }]
assert: [{ type: idempotent, tool: charge_card, key: order_id, negate: true }]
---
name: the answer of the previous call
faults: [{ tool: charge_card, do: stale }]
turns: [{ user: pay o-3 }, { user: pay o-4, assert: { text: { must_match: 'charged o-3' } } }]
";
    let by_url = format!("url: '{}'", served.url);
    let by_command = format!(
        "command: ['{HOTSEAT}', mcp, bank], env: {{ HOTSEAT_MCP: '{}' }}",
        served.bridge_address("bank")
    );
    for upstream in [by_url, by_command] {
        let config = format!("{}mcp: {{ bank: {{ type: proxy, {upstream} }} }}\n", bank_target(&agent));
        let run = Project::with_config(&config).suite("a", suite).test(&[]);
        run.assert_all_passed();
        let made = calls(&run, "paid twice");
        assert_eq!((made.len(), &made[0]["faults"]), (2, &json!(["lost_answer"])), "{upstream}: {made:#?}");
    }
}

#[test]
fn a_tool_that_a_proxied_server_does_not_list_is_an_error_of_the_test() {
    let (agent, workspace) = (plain_agent(), TestWorkspace::new());
    let served = served_bank(&workspace);
    let config = format!(
        "{}mcp: {{ bank: {{ type: proxy, command: ['{HOTSEAT}', mcp, bank], env: {{ HOTSEAT_MCP: '{}' }} }} }}\n",
        bank_target(&agent),
        served.bridge_address("bank")
    );
    let suite = "name: fault
faults: [{ tool: charge_crd, do: lost_answer }]
turns: [{ user: list }, { user: pay o-1 }]
---
name: assertion
turns: [{ user: list, assert: { tools: { forbid_calls: [{ name: charge_crd, server: bank }] } } }]
---
name: no server
turns: [{ user: list }]
assert: { tools: { forbid: [charge_crd] } }
---
name: trigger
classify_topics: triggers
topics: { paying: { characteristic: paying, triggers: { on_tool_call: charge_crd } } }
graph: { paying: [] }
turns: [{ user: list }]
---
name: known
turns: [{ user: list }]
assert: { tools: { forbid: [charge_card] } }
";
    let script = "import { it, user, agent, expect } from 'hotseat';
it('in a script', () => { user.says('list'); expect(agent).not.toCallTool('charge_crd'); });
";
    let project = Project::with_config(&config).suite("a", suite).file("a_test.ts", script);
    let run = project.test(&["a.test.yaml", "a_test.ts"]);
    let words = ["MCP server `bank` has no tool `charge_crd`", "did you mean `charge_card`?"];
    run.assert_failure("fault", "test_error", &[words[0], words[1], "a.test.yaml:2:18"]);
    run.assert_failure("assertion", "test_error", &words);
    for name in ["no server", "trigger", "in a script"] {
        let words =
            "no MCP server of the test has a tool `charge_crd`, and nothing else shows the agent's calls";
        run.assert_failure(name, "test_error", &[words, "did you mean `charge_card`?"]);
    }
    assert_eq!(run.case("known")["status"], "passed", "{}", run.output);
}

/// The calls of a conversation as a text, without ids and times.
fn call_digest(conversation: &Value) -> String {
    let turns = conversation["turns"].as_array().into_iter().flatten();
    let all = turns.flat_map(|turn| turn["tool_calls"].as_array()).flatten();
    let keys = ["name", "args", "server", "faults", "answer_lost", "result", "error", "invalid_arguments"];
    let shown = all.map(|call| keys.map(|key| call[key].to_string()).join(" "));
    shown.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_recorded_server_is_replayed_in_many_conversations_at_once() {
    let (agent, workspace) = (plain_agent(), TestWorkspace::new());
    let served = served_bank(&workspace);
    let suite = "name: a
turns: [{ user: list }, { user: pay o-1, assert: { text: { must_match: 'charged o-1' } } }, { user: pay o-2 }, { user: pay o-1 }]
---
name: b
turns: [{ user: pay o-3, assert: { text: { must_match: 'charged o-3' } } }]
";
    let config = |bank: &str| format!("{}mcp: {{ bank: {bank} }}\n", bank_target(&agent));
    let proxy = format!("{{ type: proxy, url: '{}', record: recordings/bank.mcp.jsonl }}", served.url);
    let project = Project::with_config(&config(&proxy)).suite("a", suite);
    let recorded = project.test(&[]);
    recorded.assert_all_passed();
    // A case that does not run keeps its recording.
    project.test(&["--run", "^a$"]).assert_all_passed();
    drop(served);
    let before = std::fs::read_to_string(project.workspace.path("recordings/bank.mcp.jsonl")).unwrap();
    assert!(before.contains("o-3"), "{before}");

    project.workspace.file("hotseat.yaml", &config("{ type: replay, from: recordings/bank.mcp.jsonl }"));
    let replayed = project.test(&["--runs", "100", "--parallel", "32"]);
    replayed.assert_all_passed();
    for name in ["a", "b"] {
        let first = call_digest(recorded.case(name));
        assert!(first.contains("charged"), "{first}");
        let runs = replayed.case(name)["run_details"].as_array().cloned().unwrap_or_default();
        assert_eq!(runs.len(), 100, "{}", replayed.output);
        assert!(runs.iter().all(|run| call_digest(run) == first), "{name}: {first}");
    }

    // Calls of another case, further calls and other arguments are no recorded calls.
    let missing = "name: b\nturns: [{ user: pay o-1 }]\n---\nname: a\nturns: [{ user: pay o-9 }]\n";
    let missed = Project::with_config(&config("{ type: replay, from: bank.mcp.jsonl }"))
        .file("bank.mcp.jsonl", &before)
        .suite("a", missing)
        .test(&[]);
    let words = ["MCP server `bank` has no answer for charge_card", "/arguments/order_id: recorded"];
    missed.assert_failure("b", "test_error", &[words[0], words[1], "\"o-3\\\", now \\\"o-1"]);
    missed.assert_failure("a", "test_error", &words);
}

// Agents that live longer than a conversation.

/// If a turn follows. After the last one it changes no verdict, however long the test goes on.
#[test]
fn a_call_between_two_turns_is_an_error() {
    let address: Arc<Mutex<String>> = Arc::default();
    let known = address.clone();
    let agent = http_agent(move |request| {
        *known.lock().unwrap() = request.header("x-bank").expect("the address of the bank").to_string();
        "Hello."
    });
    // The judge is asked after the turn. It plays the part of an agent that goes on working.
    let known = address.clone();
    let judge = FakeAgent::with_run(move |run, _| {
        act(&McpClient::new(&known.lock().unwrap()), "pay o-1");
        let answer = json!({"satisfied": true, "reasoning": "It is."}).to_string();
        run.text(&answer).finished()
    });
    let target = bank_target(&agent);
    let judged =
        format!("{target}agents: {{ judge: {{ endpoint: '{judge}' }} }}\njudge: agents:judge\n{BANK}");
    let suite = |rest: &str| {
        format!(
            "name: a\nturns: [{{ user: hi, assert: [{{ type: satisfy, criteria: It is kind }}] }}{rest}]\n"
        )
    };
    let program = |rest: &str| {
        let check = "expect(agent).toSatisfy('It is kind');";
        format!("{IMPORTS}it('a', () => {{ user.says('hi'); {check} {rest} }});\n")
    };
    for (file, last, with_another) in [
        ("a.test.yaml", suite(""), suite(", { user: bye }")),
        ("a_test.ts", program(""), program("user.says('bye');")),
    ] {
        let project = Project::with_config(&judged).file(file, &with_another);
        let words = ["the agent called charge_card of MCP server `bank` after turn 1 had ended"];
        project.test(&[]).assert_failure("a", "agent_error", &words);
        project.hotseat(&["recheck", "last"]).assert_stdout(1, &[words[0]]);

        let run = Project::with_config(&judged).file(file, &last).test(&[]);
        run.assert_all_passed();
        assert!(calls(&run, "a").is_empty(), "{}", run.output);
        let words = "called charge_card of MCP server `bank` after the end of the conversation";
        assert!(run.output.stderr.contains(words), "{}", run.output);
    }
}

#[test]
fn a_conversation_that_is_over_refuses_calls() {
    let first: Arc<Mutex<Option<String>>> = Arc::default();
    let agent = http_agent(move |request| {
        let address = request.header("x-bank").expect("the address of the bank").to_string();
        let first = first.lock().unwrap().get_or_insert_with(|| address.clone()).clone();
        match first == address {
            true => "Hello.".to_string(),
            false => act(&McpClient::new(&first), "pay o-1"),
        }
    });
    let suite = "name: a\nturns: [{ user: hi }]\n---\nname: b\nturns: [{ user: hi, assert: { text: { must_match: 'not paid' } } }]\n";
    let run = bank_project(&agent, suite).test(&["--parallel", "1"]);
    run.assert_all_passed();
    assert_eq!(calls(&run, "b"), Vec::<Value>::new());
}

#[test]
fn hooks_receive_addresses_and_set_answers() {
    let agent = http_agent(|request| {
        let bank = McpClient::new(request.json()["bank"].as_str().expect("the address of the bank"));
        act(&bank, "pay o-1")
    });
    let target = format!(
        "target:\n  type: http\n  endpoint: {agent}\n  body: {{ message: '{{{{message}}}}', bank: '{{{{forwardedProps.bank}}}}' }}\n  map: {{ reply: $.reply }}\n"
    );
    let suite = "name: a
hooks: [{ cmd: [sh, -c, 'echo \"{\\\"BANK\\\": \\\"$URL\\\", \\\"WORD\\\": \\\"from hook\\\"}\"'], env: { URL: '${MCP.bank.url}' } }]
forwardedProps: { bank: '${BANK}' }
mcp: { bank: { tools: [{ name: charge_card, answers: [{ content: '${WORD}' }] }] } }
turns: [{ user: hi, assert: { text: { must_match: 'paid \"from hook\"' }, tools: { require: [{ name: charge_card }] } } }]
";
    Project::with_config(&(target + BANK)).suite("a", suite).test(&[]).assert_all_passed();
}

#[test]
fn programs_receive_addresses_in_their_environment() {
    let agent = "while read -r message; do\n  case \"$BANK\" in http://127.0.0.1:*/mcp/bank/*) text=yes;; *) text=\"no: $BANK\";; esac\n  echo \"{\\\"type\\\":\\\"text\\\",\\\"text\\\":\\\"$text\\\"}\"\n  echo '{\"type\":\"done\"}'\ndone\n";
    let target = "target:\n  type: command\n  command: [sh, agent.sh]\n  env: { BANK: '${MCP.bank.url}' }\n";
    let suite = "name: a\nturns: [{ user: hi, assert: { text: { must_match: '^yes$' } } }]\n";
    let project =
        Project::with_config(&(target.to_string() + BANK)).file("agent.sh", agent).suite("a", suite);
    project.test(&[]).assert_all_passed();
}

/// An agent that starts the bank as its program, calls it after a handshake, and tells how the output of the program ends.
const PROGRAM_AGENT: &str = r#"import json, subprocess, sys
for line in sys.stdin:
    bank = subprocess.Popen([sys.argv[1], "mcp", "bank"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    def send(message):
        bank.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        bank.stdin.flush()
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
    send({"id": 1, "method": "initialize", "params": info})
    bank.stdout.readline()
    send({"method": "notifications/initialized"})
    send({"id": 2, "method": "tools/call", "params": {"name": "charge_card", "arguments": {"order_id": "o-1", "amount": 1}}})
    answer = bank.stdout.readline() or f"ended with {bank.wait()}"
    print(json.dumps({"type": "text", "text": answer}))
    print(json.dumps({"type": "done"}), flush=True)
"#;

#[test]
fn a_lost_connection_ends_the_program_of_the_server() {
    let target = format!("target: {{ type: command, command: [python3, agent.py, '{HOTSEAT}'] }}\n");
    let case = |fault: &str| {
        format!(
            "name: {fault}\nfaults: [{{ do: {fault} }}]\nturns: [{{ user: pay, assert: {{ text: {{ must_match: '^ended with 3$' }} }} }}]\n"
        )
    };
    let suite = [case("lost_answer"), case("disconnect")].join("---\n");
    let project = Project::with_config(&(target + BANK)).file("agent.py", PROGRAM_AGENT).suite("a", &suite);
    project.test(&[]).assert_all_passed();
}

/// An agent in Python that learns the address of the bank when it starts, and lists its tools before it answers.
const STARTED_AGENT: &str = r#"
import http.server, json, os, urllib.request

def request(method, params, name=None):
    params["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
               "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    if name: headers["Mcp-Name"] = name
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    text = urllib.request.urlopen(urllib.request.Request(os.environ["BANK"], body, headers)).read().decode()
    return json.loads(text[text.index("{"):text.rindex("}") + 1])["result"]

tools = [tool["name"] for tool in request("tools/list", {})["tools"]]

class Agent(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.answer("ready")
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        result = request("tools/call", {"name": "charge_card", "arguments": {"order_id": "o-1", "amount": 1}}, "charge_card")
        self.answer(json.dumps({"reply": f"{len(tools)} tools: " + result["content"][0]["text"]}))
    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
    def log_message(self, *_): pass

http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Agent).serve_forever()
"#;

#[test]
fn a_started_agent_keeps_its_address_over_conversations() {
    let url = unreachable_address();
    let port = url.trim_matches('/').rsplit(':').next().expect("a port").to_string();
    let target = format!(
        "target:\n  type: http\n  endpoint: {url}\n  body: {{ text: '{{{{message}}}}' }}\n  map: {{ reply: $.reply }}\n  start: {{ command: [python3, agent.py], env: {{ PORT: '{port}', BANK: '${{MCP.bank.url}}' }} }}\n"
    );
    let case = |id: usize| {
        format!(
            "name: c{id}\nmcp: {{ bank: {{ tools: [{{ name: charge_card, answers: [{{ content: case {id} }}] }}] }} }}\nturns: [{{ user: pay, assert: {{ text: {{ must_match: '^2 tools: case {id}$' }}, tools: {{ require: [{{ name: charge_card, count: {{ exact: 1 }} }}] }} }} }}]\n"
        )
    };
    let suite = [case(1), case(2), case(3)].join("---\n");
    let project = Project::with_config(&(target + BANK)).suite("a", &suite).file("agent.py", STARTED_AGENT);
    let refused = project.hotseat(&["test"]);
    assert_ne!(refused.code, 0, "{refused}");
    assert!(refused.stderr.contains("concurrent conversations would mix"), "{refused}");
    project.test(&["--parallel", "1"]).assert_all_passed();
}

// Recordings.

#[test]
fn a_replay_has_the_calls_and_faults_of_its_recording() {
    let agent = plain_agent();
    let suite = lost_answer("a", "naive o-1", "{ type: after_fault, tool: charge_card, max_retries: 1 }")
        + "---\nname: b\nturns: [{ user: invalid, assert: [{ type: valid_arguments, negate: true }] }]\n";
    let project = bank_project(&agent, &suite);
    let recorded = project.test(&["--record", "recordings"]);
    recorded.assert_all_passed();
    let requests = agent.requests().len();
    // The recorded conversations, 100 times and 32 at once.
    let replayed = project.test(&["-n", "replay:recordings", "--runs", "100", "--parallel", "32"]);
    replayed.assert_all_passed();
    assert_eq!(agent.requests().len(), requests, "the agent is not contacted");
    for name in ["a", "b"] {
        let first = call_digest(recorded.case(name));
        assert!(!first.is_empty());
        let runs = replayed.case(name)["run_details"].as_array().cloned().unwrap_or_default();
        assert_eq!(runs.len(), 100, "{}", replayed.output);
        for run in &runs {
            assert_eq!(call_digest(run), first, "{name}");
        }
    }
    // Saved conversations are evaluated without the servers as well.
    project.hotseat(&["recheck", "last"]).assert_code(0);
}

/// The server refuses it, and no turn is left that could fail.
#[test]
fn a_call_after_the_last_turn_is_a_warning_of_the_run() {
    let agent = http_agent(|request| {
        let bank = bank_client(request);
        let pause = std::time::Duration::from_millis(200);
        match request.json()["text"].as_str() {
            Some("late") => {
                bank.tools().expect("tools");
                std::thread::spawn(move || {
                    std::thread::sleep(pause);
                    bank.call("find_charge", &json!({}))
                });
            }
            _ => std::thread::sleep(5 * pause),
        }
        "Done."
    });
    let suite = "name: a\nturns: [{ user: late, assert: { tools: { forbid: [find_charge] } } }]\n---\nname: b\nturns: [{ user: wait }]\n";
    let run = bank_project(&agent, suite).test(&["--parallel", "1"]);
    run.assert_all_passed();
    let words = "called find_charge of MCP server `bank` after the end of the conversation";
    assert!(run.output.stderr.contains(words), "{}", run.output);
}

#[test]
fn an_answer_that_clients_refuse_is_an_error_before_the_run() {
    let tool = |answer: &str| {
        format!(
            "mcp:
  bank:
    type: mock
    tools:
      - name: find_charge
        outputSchema: {{ type: object, required: [found], properties: {{ found: {{ type: boolean }} }} }}
        answers: [{answer}]
"
        )
    };
    let suite = "name: a\nturns: [{ user: careful o-1 }]\n";
    let agent = http_agent(|request| format!("{:?}", bank_client(request).call("find_charge", &json!({}))));
    let project = |answer: &str| {
        let functions = "export const find = () => ({ content: { found: 'yes' } });";
        let config = bank_target(&agent) + &tool(answer);
        Project::with_config(&config).file("src/bank.ts", functions).suite("a", suite)
    };
    for (answer, problem) in [
        ("{ content: found it }", "it has no structured content"),
        ("{ content: { found: 'yes' } }", "/found: \"yes\" is not of type"),
    ] {
        project(answer)
            .hotseat(&["test"])
            .assert_stderr(2, &["clients would refuse this answer", problem, "answers: [{ content: "]);
    }
    let config = bank_target(&agent) + &tool("{ error: no }").replace("type: boolean", "type: bool");
    Project::with_config(&config)
        .suite("a", suite)
        .hotseat(&["test"])
        .assert_stderr(2, &["this is not a JSON Schema: \"bool\" is not"]);
    for answer in ["{ content: { found: true } }", "{ error: no }", "{ use: scripts:bank.find }"] {
        let run = project(answer).test(&[]);
        run.assert_all_passed();
        let is_noted = run.report.to_string().contains("clients may refuse the answer to this call");
        assert_eq!(is_noted, answer.contains("use"), "{}", run.report);
    }
}

/// The address is another one in each conversation.
#[test]
fn addresses_in_texts_of_the_user_are_no_changes() {
    let suite = "name: a
turns: [{ user: 'Use ${MCP.bank.url}, please', assert: { text: { must_match: Hello } } }]
";
    let agent = plain_agent();
    let project = bank_project(&agent, suite);
    project.test(&["--record", "rec"]).assert_all_passed();
    project.hotseat(&["recheck", "last"]).assert_code(0);
    project.test(&["-n", "replay:rec"]).assert_all_passed();
    let project = project.suite("a", &suite.replace("please", "now"));
    project.hotseat(&["recheck", "last"]).assert_stdout(1, &["the input of the case has changed"]);
}
