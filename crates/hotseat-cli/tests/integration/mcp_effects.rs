//! Assertions about calls at MCP servers: which calls took effect, which are equal, and which are valid.

use std::time::Duration;

use hotseat_testkit::{FakeAgent, McpClient, TestWorkspace};
use serde_json::{Value, json};

use crate::common::http_agents::{asked_text, bank_client, http_agent};
use crate::common::{HOTSEAT, Project, TestRun};
use crate::mcp_command::ServedMcp;

/// Time after which the agent gives a call up.
const PATIENCE: Duration = Duration::from_millis(300);

const BANK: &str = "mcp: { bank: { type: mock, tools: [{ name: charge_card, answers: [{ content: { charged: true } }] }] } }\n";

/// Calls the tool with each of the arguments that the user lists. `impatient` gives the first call up, and `listing` lists the
/// tools before.
fn agent() -> FakeAgent {
    http_agent(|request| {
        let bank = bank_client(request);
        let text = asked_text(request);
        let (manner, calls) = text.split_once(' ').expect("a manner and arguments");
        let calls: Vec<Value> = serde_json::from_str(calls).expect("a list of arguments");
        if manner == "listing" {
            bank.tools().expect("the tools");
        }
        let answers = calls.iter().enumerate().map(|(place, arguments)| {
            let client = match (manner, place) {
                ("impatient", 0) => bank.impatient(PATIENCE),
                _ => bank.clone(),
            };
            format!("{:?}", client.call("charge_card", arguments))
        });
        answers.collect::<Vec<_>>().join(" ")
    })
}

fn run(servers: &str, suite: &str, arguments: &[&str]) -> TestRun {
    let agent = agent();
    project(&agent, servers, suite).test(arguments)
}

fn project(agent: &FakeAgent, servers: &str, suite: &str) -> Project {
    let config = format!(
        "target:\n  type: http\n  endpoint: {agent}\n  headers: {{ x-bank: '${{MCP.bank.url}}' }}\n  body: {{ text: '{{{{message}}}}' }}\n  map: {{ reply: $.reply }}\n{servers}"
    );
    Project::with_config(&config).suite("a", suite)
}

#[test]
fn a_call_that_the_client_gives_up_takes_effect_although_its_answer_is_delayed() {
    let suite = r#"name: a
faults: [{ tool: charge_card, do: { delay_ms: 60000 } }]
turns: [{ user: 'impatient [{"order_id": "o-1"}, {"order_id": "o-1"}]' }]
assert: [{ type: idempotent, tool: charge_card, key: order_id }]
"#;
    let tested = run(BANK, suite, &[]);
    tested.assert_failure("a", "assertion", &["2 effects for order_id", "[delay]"]);
    let call = &tested.case("a")["turns"][0]["tool_calls"][0];
    assert_eq!((&call["answer_lost"], call.get("result")), (&json!(true), None), "{call:#}");
}

#[test]
fn a_call_that_a_proxied_server_does_not_answer_may_have_taken_effect() {
    // Reads the call and ends, or reads it and never answers.
    for (program, manner) in [("read line", "patient"), ("while read line; do :; done", "impatient")] {
        let server = format!("mcp: {{ bank: {{ type: proxy, command: [sh, -c, '{program}'] }} }}\n");
        let suite = format!(
            "name: a\nturns: [{{ user: '{manner} [{{\"order_id\": \"o-1\"}}]' }}]\nassert: [{{ type: idempotent, tool: charge_card, key: order_id }}]\n"
        );
        let tested = run(&server, &suite, &["-v"]);
        let calls = tested.case("a")["turns"][0]["tool_calls"].as_array().expect("calls").clone();
        assert!(!calls.is_empty() && calls.iter().all(|call| call["answer_lost"] == true), "{calls:#?}");
        match manner {
            "patient" => tested.assert_failure("a", "test_error", &["the program `sh` ended"]),
            _ => {
                tested.assert_all_passed();
                assert!(tested.output.stdout.contains("the client cancelled its call"), "{}", tested.output);
            }
        };
    }
}

/// A server that charges in a task. Its order says how the charge ends.
const TASK_SERVER: &str = r#"import json, sys
for line in sys.stdin:
    message = json.loads(line)
    params = message.get('params', {})
    result = {'protocolVersion': '2025-11-25', 'capabilities': {}, 'serverInfo': {'name': 'bank', 'version': '1'}}
    if message['method'] == 'tools/call':
        result = {'task': {'taskId': params['arguments']['order_id'], 'status': 'working'}}
    if message['method'] == 'tasks/result':
        result = {'content': [{'type': 'text', 'text': params['taskId']}], 'isError': params['taskId'] == 'declined'}
    if 'id' in message:
        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}), flush=True)
"#;

#[test]
fn a_call_with_a_task_has_the_result_of_the_task() {
    let agent = http_agent(|request| {
        let bank = bank_client(request);
        let text = asked_text(request);
        for order in text.split(' ') {
            let task = bank.call_once("charge_card", &json!({"order_id": order}), &Default::default());
            let task = task.expect("a task")["task"]["taskId"].clone();
            if order != "forgotten" {
                bank.request("tasks/result", json!({"taskId": task, "_meta": {}}), None).expect("a result");
            }
        }
        "done"
    });
    let effects = "{ type: idempotent, tool: charge_card, key: order_id }";
    let case = |orders: &str, check: &str| {
        format!("name: {orders}\nturns: [{{ user: {orders} }}]\nassert: [{check}]\n")
    };
    let suite = [
        case("charged", "{ type: tool_result, tool: charge_card, result: charged }"),
        case("declined", "{ type: tool_result, tool: charge_card }"),
        case("forgotten", "{ type: tool_result, tool: charge_card }"),
        case("declined declined", effects),
        case("forgotten forgotten", effects),
    ];
    let server = "mcp: { bank: { type: proxy, command: [python3, bank.py] } }\n";
    let tested = project(&agent, server, &suite.join("---\n")).file("bank.py", TASK_SERVER).test(&[]);
    for passing in ["charged", "declined declined"] {
        assert_eq!(tested.case(passing)["status"], "passed", "{passing}: {}", tested.output);
    }
    tested.assert_failure("declined", "assertion", &["charge_card"]);
    tested.assert_failure("forgotten", "assertion", &["charge_card"]);
    tested.assert_failure("forgotten forgotten", "assertion", &["2 effects for order_id"]);
}

#[test]
fn equal_arguments_are_one_call_in_any_form() {
    let retried = r#"name: NAME
faults: [{ tool: charge_card, do: lost_answer }]
turns: [{ user: 'patient CALLS' }]
assert: [CHECK]
"#;
    let retries = "{ type: after_fault, tool: charge_card, max_retries: 0 }";
    let effects = "{ type: idempotent, tool: charge_card, key: order_id }";
    let cases = [
        ("order", r#"[{"order_id": "o-1", "n": 1}, {"n": 1.0, "order_id": "o-1"}]"#, retries),
        ("number", r#"[{"order_id": 1}, {"order_id": 1.0}]"#, effects),
        ("nested", r#"[{"order_id": {"a": 1, "b": 2}}, {"order_id": {"b": 2, "a": 1}}]"#, effects),
        ("other", r#"[{"order_id": "1"}, {"order_id": 1}]"#, effects),
    ];
    let suite = cases.map(|(name, calls, check)| {
        retried.replace("NAME", name).replace("CALLS", calls).replace("CHECK", check)
    });
    let tested = run(BANK, &suite.join("---\n"), &[]);
    tested.assert_failure("order", "assertion", &["1 retry of charge_card"]);
    tested.assert_failure("number", "assertion", &["2 effects for order_id 1"]);
    tested.assert_failure("nested", "assertion", &["2 effects for order_id"]);
    assert_eq!(tested.case("other")["status"], "passed", "{}", tested.output);
}

#[test]
fn a_key_says_which_calls_after_a_fault_are_retries() {
    let case = |name: &str, calls: &str, check: &str| {
        format!(
            "name: {name}\nfaults: [{{ tool: charge_card, do: is_error }}]\nturns: [{{ user: 'patient {calls}' }}]\nassert: [{{ type: after_fault, {check} }}]\n"
        )
    };
    let new_keys =
        r#"[{"order_id": "o-1", "try": 1}, {"order_id": "o-1", "try": 2}, {"order_id": "o-1", "try": 3}]"#;
    let other_orders =
        r#"[{"order_id": "o-1"}, {"order_id": "o-1"}, {"order_id": "o-2"}, {"order_id": "o-3"}]"#;
    let no_key = r#"[{"order_id": "o-1"}, {"n": 1}]"#;
    let suite = [
        case("new keys", new_keys, "max_retries: 1, key: order_id"),
        case("few", new_keys, "max_retries: 2, key: order_id"),
        case("other orders", other_orders, "max_retries: 1, key: order_id"),
        case("no key", no_key, "max_retries: 1, key: order_id"),
    ];
    let tested = run(BANK, &suite.join("---\n"), &[]);
    tested.assert_failure(
        "new keys",
        "assertion",
        &["at most 1 retry with the same order_id", "2 retries of charge_card"],
    );
    for name in ["few", "other orders"] {
        assert_eq!(tested.case(name)["status"], "passed", "{name}: {}", tested.output);
    }
    tested.assert_failure("no key", "assertion", &["a call has no argument order_id"]);
    project(&agent(), BANK, &case("a", "[]", "forbid: [refund], key: order_id"))
        .hotseat(&["test"])
        .assert_stderr(2, &["`key` needs `max_retries`"]);
}

#[test]
fn a_retry_at_another_server_is_a_retry() {
    let servers = "mcp:\n  bank: { type: mock, tools: [{ name: charge_card, answers: [{ content: ok }] }] }\n  spare: { type: mock, tools: [{ name: charge_card, answers: [{ content: ok }] }] }\n";
    let agent = http_agent(|request| {
        let call = |server: &str| {
            let client = McpClient::new(request.header(server).expect("an address"));
            format!("{:?}", client.call("charge_card", &json!({"order_id": "o-1"})))
        };
        format!("{} {}", call("x-bank"), call("x-spare"))
    });
    let config = format!(
        "target:\n  type: http\n  endpoint: {agent}\n  headers: {{ x-bank: '${{MCP.bank.url}}', x-spare: '${{MCP.spare.url}}' }}\n  body: {{ text: '{{{{message}}}}' }}\n  map: {{ reply: $.reply }}\n{servers}"
    );
    let case = |name: &str, more: &str| {
        format!(
            "name: {name}\nfaults: [{{ tool: charge_card, server: bank, do: is_error }}]\nturns: [{{ user: pay }}]\nassert: [{{ type: after_fault, max_retries: 0{more} }}]\n"
        )
    };
    let suite = format!("{}---\n{}", case("any", ""), case("one", ", server: bank"));
    let tested = Project::with_config(&config).suite("a", &suite).test(&[]);
    tested.assert_failure("any", "assertion", &["1 retry of charge_card"]);
    assert_eq!(tested.case("one")["status"], "passed", "{}", tested.output);
}

#[test]
fn an_effect_that_an_earlier_turn_had_is_repeated() {
    let turns = |second: &str| {
        format!(
            "turns:\n- user: 'patient [{{\"order_id\": \"o-1\"}}]'\n- user: 'patient [{{\"order_id\": \"{second}\"}}]'\n  assert: [{{ type: idempotent, tool: charge_card, key: order_id }}]\n"
        )
    };
    let suite = format!("name: same\n{}---\nname: other\n{}", turns("o-1"), turns("o-2"));
    let tested = run(BANK, &suite, &[]);
    tested.assert_failure("same", "assertion", &["2 effects for order_id", "turn 1", "turn 2"]);
    assert_eq!(tested.case("other")["status"], "passed", "{}", tested.output);
}

#[test]
fn a_tool_is_asserted_by_any_name_under_which_agents_report_it() {
    let case = |name: &str| {
        format!(
            "name: {name}\nturns: [{{ user: 'patient [{{}}]', assert: {{ tools: {{ forbid: [{name}] }} }} }}]\n"
        )
    };
    let names = ["charge_card", "bank_charge_card", "mcp__bank__charge_card"];
    let tested = run(BANK, &names.map(case).join("---\n"), &[]);
    for name in names {
        tested.assert_failure(name, "assertion", &["never to be called, got 1 call"]);
    }
    // A fault is one of the server.
    let fault = "name: a\nfaults: [{ tool: mcp__bank__charge_card, do: is_error }]\nturns: [{ user: 'patient [{}]' }]\n";
    let agent = agent();
    let refused = project(&agent, BANK, fault).hotseat(&["test"]);
    assert!(refused.stderr.contains("MCP server `bank` has no tool `mcp__bank__charge_card`"), "{refused}");
}

const VALID: &str = "assert: [{ type: valid_arguments, tool: charge_card }]\n";

#[test]
fn arguments_that_are_no_object_are_not_valid() {
    let suite = format!(
        "name: a\nturns: [{{ user: 'patient [\"{{\\\"order_id\\\": 1}}\", {{\"order_id\": 1}}]' }}]\n{VALID}"
    );
    run(BANK, &suite, &[]).assert_failure("a", "assertion", &["`arguments` must be an object"]);
}

#[test]
fn arguments_are_validated_by_the_schemas_that_a_proxied_server_lists() {
    let workspace = TestWorkspace::new();
    let schema = json!({"type": "object", "properties": {"order_id": {"type": "string"}}});
    let tools = json!([{"name": "charge_card", "inputSchema": schema, "answer": "charged"}]);
    workspace.file("bank.json", &json!({"name": "bank", "tools": tools}).to_string());
    let served = ServedMcp::start(&workspace, &["bank.json"]);
    let bridge = format!(
        "{{ type: proxy, command: ['{HOTSEAT}', mcp, bank], env: {{ HOTSEAT_MCP: '{}' }} }}",
        served.bridge_address("bank")
    );
    let case = |name: &str, calls: &str| format!("name: {name}\nturns: [{{ user: '{calls}' }}]\n{VALID}");
    let suite = [
        case("wrong", r#"listing [{"order_id": "o-1"}, {"order_id": 1}]"#),
        case("right", r#"listing [{"order_id": "o-1"}]"#),
        case("unlisted", r#"patient [{"order_id": "o-1"}]"#),
    ]
    .join("---\n");
    let agent = agent();
    let check = |tested: &TestRun| {
        tested.assert_failure("wrong", "assertion", &["/order_id: 1 is not of type"]);
        assert_eq!(tested.case("right")["status"], "passed", "{}", tested.output);
        tested.assert_failure(
            "unlisted",
            "test_error",
            &["the schema of a tool is not known: the agent did not list the tools of MCP server `bank`"],
        );
    };
    for bank in [format!("{{ type: proxy, url: '{}' }}", served.url), bridge] {
        let project = project(&agent, &format!("mcp: {{ bank: {bank} }}\n"), &suite);
        check(&project.test(&["--record-cassettes", "cassettes"]));
        check(&project.test(&["--cassettes", "cassettes"]));
    }
}

/// A server whose schema of the tool is invalid, as are some servers in use.
const INVALID_SCHEMA_SERVER: &str = r#"import json, sys
schema = {'type': 'object', 'properties': {'order_id': {'type': 'strin'}}}
for line in sys.stdin:
    message = json.loads(line)
    result = {'protocolVersion': '2025-11-25', 'capabilities': {}, 'serverInfo': {'name': 'bank', 'version': '1'}}
    if message['method'] == 'tools/list':
        result = {'tools': [{'name': 'charge_card', 'inputSchema': schema}]}
    if message['method'] == 'tools/call':
        result = {'content': [{'type': 'text', 'text': 'charged'}]}
    if 'id' in message:
        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}), flush=True)
"#;

#[test]
fn a_schema_that_cannot_be_used_is_named_with_the_reason() {
    let agent = agent();
    let suite = format!("name: a\nturns: [{{ user: 'listing [{{\"order_id\": \"o-1\"}}]' }}]\n{VALID}");
    let bank = "mcp: { bank: { type: proxy, command: [python3, bank.py] } }\n";
    let project = project(&agent, bank, &suite).file("bank.py", INVALID_SCHEMA_SERVER);
    let check = |tested: &TestRun| {
        let reason = [
            "MCP server `bank` lists a tool that cannot be used: ",
            "`inputSchema` of the tool `charge_card` is invalid at /properties/order_id/type: ",
            "; the call: turn 1: charge_card(",
        ];
        tested.assert_failure("a", "test_error", &reason);
    };
    check(&project.test(&["--record-cassettes", "cassettes"]));
    check(&project.test(&["--cassettes", "cassettes"]));
    let rechecked = project.hotseat(&["recheck", "last"]);
    assert!(rechecked.stdout.contains("lists a tool that cannot be used"), "{rechecked}");
}

#[test]
fn members_of_a_listed_tool_that_are_null_are_absent() {
    let agent = agent();
    let suite = format!("name: a\nturns: [{{ user: 'listing [{{\"order_id\": 1}}]' }}]\n{VALID}");
    let tool = "{'name': 'charge_card', 'description': None, 'inputSchema': None, 'outputSchema': None}], 'nextCursor': None";
    let program = INVALID_SCHEMA_SERVER.replace("{'name': 'charge_card', 'inputSchema': schema}]", tool);
    let bank = "mcp: { bank: { type: proxy, command: [python3, bank.py] } }\n";
    project(&agent, bank, &suite).file("bank.py", &program).test(&[]).assert_all_passed();
}

/// Servers made with Zod publish such patterns.
const LOOK_AROUND: &str = r"^(?!\.)(?!.*\.\.)[a-z.]+@[a-z.]+$";

#[test]
fn patterns_with_look_around_do_not_end_the_run() {
    let agent = agent();
    let email = json!({"type": "string", "pattern": LOOK_AROUND});
    let schema = json!({"type": "object", "properties": {"email": email, "n": {"type": "integer"}}});
    let tools = json!({"tools": [{"name": "charge_card", "inputSchema": schema}]}).to_string();
    let case =
        |name: &str, calls: &str| format!("name: {name}\nturns: [{{ user: 'listing [{calls}]' }}]\n{VALID}");
    let suite = [
        case("used", r#"{"email": "a@b.co"}"#),
        case("wrong", r#"{"n": "x"}"#),
        case("absent", r#"{"n": 1}"#),
    ];
    let mock = "mcp: { bank: { type: mock, tools_from: tools.json, tools: [{ name: charge_card, answers: [{ content: charged }] }] } }\n";
    let proxy = "mcp: { bank: { type: proxy, command: [python3, bank.py] } }\n";
    let program = INVALID_SCHEMA_SERVER.replace(
        "'tools': [{'name': 'charge_card', 'inputSchema': schema}]",
        "**json.load(open('tools.json'))",
    );
    for bank in [mock, proxy] {
        let project =
            project(&agent, bank, &suite.join("---\n")).file("tools.json", &tools).file("bank.py", &program);
        let run = project.test(&[]);
        let place = "[a-z.]+@[a-z.]+$` at /properties/email/pattern";
        let words = [
            "look-around and back-references are not supported in patterns: ",
            place,
            "of the tool `charge_card`",
        ];
        run.assert_failure("used", "test_error", &words);
        assert!(run.output.stdout.contains("charged"), "{}", run.output);
        run.assert_failure("wrong", "assertion", &["/n: ", "is not of type"]);
        assert_eq!(run.case("absent")["status"], "passed", "{}", run.output);
        let notes = run.case("used")["turns"][0]["notes"].to_string();
        assert_eq!(notes.contains("the arguments of a call are not validated"), bank == mock, "{notes}");
    }
    // A schema of the test can be changed.
    let check = "name: a\nturns: [{ user: 'listing []', assert: [{ type: schema, schema: { type: object, properties: { a: { type: string, pattern: '^(?!x)' } } } }] }]\n";
    let output = project(&agent, mock, check).file("tools.json", &tools).hotseat(&["test"]);
    let words =
        "look-around and back-references are not supported in patterns: `^(?!x)` at /properties/a/pattern";
    assert!(output.stderr.contains(words) && !output.stderr.contains("is not a"), "{output}");
}
