//! Proxied MCP servers that do not work: programs that do not start or end early, and addresses with broken answers.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Command, Stdio};

use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, McpClient, ProgramOutput};
use serde_json::json;

use crate::common::http_agents::{bank_target, http_agent};
use crate::common::{HOTSEAT, Project, TestRun};
use crate::mcp::{BANK, plain_agent};

/// A server that prints a secret and a control character, and ends when it is asked.
const DYING: &str = "import os, sys
print('x' * 100000, file=sys.stderr)
print('cannot open the ledger of', os.environ['BANK_TOKEN'], chr(27) + '[31m', file=sys.stderr)
sys.stdin.readline()
sys.exit(3)
";
const SECRET: &str = "bank-secret-7311";

fn run(proxy: &str, user: &str) -> TestRun {
    let agent = plain_agent();
    let config = format!("{}mcp: {{ bank: {{ type: proxy, {proxy} }} }}\n", bank_target(&agent));
    let suite = format!("name: a\nturns: [{{ user: {user} }}]\n");
    let project = Project::with_config(&config).file("bank.py", DYING).suite("a", &suite);
    project.test_in(&[("BANK_TOKEN", SECRET)], &[])
}

#[test]
fn a_program_that_ends_is_an_error_of_the_test_with_its_last_words() {
    let proxy = "command: [python3, bank.py], env: { BANK_TOKEN: '${ENV.BANK_TOKEN}' }";
    for user in ["pay o-1", "list"] {
        let run = run(proxy, user);
        let words = [
            "MCP server `bank` failed: the program `python3` ended (exit status: 3)",
            "standard error of MCP server `bank`:",
            "cannot open the ledger of",
        ];
        run.assert_failure("a", "test_error", &words);
        assert_eq!(run.failure("a")["fault"], "test");
        let detail = run.failure("a")["detail"].as_str().expect("a detail");
        assert!(detail.len() < 20_000 && !detail.contains(SECRET), "{detail}");
        let ProgramOutput { stdout, .. } = &run.output;
        assert!(stdout.contains("cannot open the ledger of") && !stdout.contains('\u{1b}'), "{stdout}");
        assert!(!run.report.to_string().contains(SECRET) && !stdout.contains(SECRET));
    }
}

/// The child has the output of the program, so the output has no end.
#[test]
fn a_program_that_ends_while_its_child_runs_is_an_error_of_the_test() {
    let answer = "        __import__('subprocess').Popen(['sleep', '60'])\n        sys.exit(0)\n";
    let run = run_program(answer, ", timeout: 30s");
    let words = "MCP server `bank` failed: the program `python3` ended (exit status: 0)";
    run.assert_failure("a", "test_error", &[words]);
}

#[test]
fn a_program_whose_message_answers_no_request_is_an_error_of_the_test() {
    let deep = "'{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":' + '[' * 500 + ']' * 500 + '}'";
    for (line, words) in [
        (
            "'{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}'",
            r#"answered with the id \"1\", which no request has"#,
        ),
        ("'{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}'", "answered with the id 77, which no request has"),
        (
            "'{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no JSON\"}}'",
            "which no request has: no JSON (code -32700)",
        ),
        (deep, "printed an invalid message: the message is nested deeper than 127 levels"),
    ] {
        let program = format!(
            "import sys\nfor line in sys.stdin:\n    print('{{\"level\": \"info\"}}')\n    print({line}, flush=True)\n"
        );
        let agent = plain_agent();
        let config = format!(
            "{}mcp: {{ bank: {{ type: proxy, command: [python3, bank.py] }} }}\n",
            bank_target(&agent)
        );
        let suite = "name: a\nturns: [{ user: pay o-1 }]\n";
        let run = Project::with_config(&config).file("bank.py", &program).suite("a", suite).test(&[]);
        run.assert_failure("a", "test_error", &["MCP server `bank` failed: the program `python3`", words]);
    }
}

/// A server that treats notifications as requests.
const ANSWERS_EVERYTHING: &str = "import json, sys
for line in sys.stdin:
    request = json.loads(line)
    answer = {'jsonrpc': '2.0', 'id': request.get('id')}
    if request['method'] == 'initialize':
        info = {'name': 'bank', 'version': '1'}
        answer['result'] = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': info}
    elif request['method'] == 'tools/call':
        answer['result'] = {'content': [{'type': 'text', 'text': 'charged'}]}
    else:
        answer['error'] = {'code': -32601, 'message': 'unknown method'}
    print(json.dumps(answer), flush=True)
";

#[test]
fn a_program_may_answer_notifications() {
    let agent = plain_agent();
    let config =
        format!("{}mcp: {{ bank: {{ type: proxy, command: [python3, bank.py] }} }}\n", bank_target(&agent));
    let suite = "name: a\nturns: [{ user: pay o-1 }]\n";
    let run = Project::with_config(&config).file("bank.py", ANSWERS_EVERYTHING).suite("a", suite).test(&[]);
    assert_eq!(run.count("passed"), 1, "{}", run.output);
}

/// Runs the case with a program that treats the call in this way.
fn run_program(answer: &str, turn: &str) -> TestRun {
    let agent = plain_agent();
    let config =
        format!("{}mcp: {{ bank: {{ type: proxy, command: [python3, bank.py] }} }}\n", bank_target(&agent));
    let program = ANSWERS_EVERYTHING
        .replace("        answer['result'] = {'content': [{'type': 'text', 'text': 'charged'}]}\n", answer);
    let suite = format!("name: a\nturns: [{{ user: pay o-1{turn} }}]\n");
    Project::with_config(&config).file("bank.py", &program).suite("a", &suite).test(&[])
}

#[test]
fn forms_of_messages_that_mean_the_same_are_accepted() {
    let ok = |text: &str| {
        format!("        answer['result'] = {{'content': [{{'type': 'text', 'text': '{text}'}}]}}\n")
    };
    for (answer, output) in [
        (ok("charged") + "        answer['error'] = None\n", "paid \"charged\""),
        (ok("charged") + "        answer['id'] = float(answer['id'])\n", "paid \"charged\""),
        (ok("charged \\ud83d"), "paid \"charged \u{FFFD}\""),
        (
            "        answer.update(result=None, error={'code': 1, 'message': 'declined'})\n".to_string(),
            "not paid: declined",
        ),
    ] {
        let run = run_program(&answer, "");
        assert_eq!(run.case("a")["turns"][0]["output"], output, "{answer}");
    }
    // Answers to notifications, and notifications in the forms of lenient servers.
    for message in [
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"no handler"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"notifications/tools/list_changed"}"#,
    ] {
        let run = run_program(&format!("        print('{message}')\n{}", ok("charged")), "");
        assert_eq!(run.case("a")["turns"][0]["output"], "paid \"charged\"", "{message} {}", run.output);
        let notes = run.case("a")["turns"][0]["notes"].to_string();
        assert_eq!(
            notes.contains("without the id of a request, which is ignored"),
            !message.contains("method"),
            "{notes}"
        );
    }
    let both = ok("charged") + "        answer['error'] = {'code': 1, 'message': 'declined'}\n";
    let words = [
        "printed an invalid message: a message has both `result` and `error`; the line is: {",
        "; let the program answer each request once, with JSON-RPC 2.0 and the id of the request",
    ];
    run_program(&both, "").assert_failure("a", "test_error", &words);
}

#[test]
fn a_timeout_says_that_a_server_of_the_test_had_not_answered() {
    let words = "MCP server `bank` had not answered its call of charge_card for ";
    let hanging = "        continue\n";
    let run = run_program(hanging, ", timeout: 1s");
    run.assert_failure("a", "timeout", &["the turn timed out after 1000 ms", words]);
    assert!(run.output.stdout.contains(words), "{}", run.output);
    // The limit of a check is no failure of its own.
    let run = run_program(hanging, ", assert: { timing: { max_duration_ms: 1000 } }");
    run.assert_failure("a", "assertion", &[]);
    let notes = run.case("a")["turns"][0]["notes"].to_string();
    assert!(notes.contains(words), "{notes}");
    // A fault of the test is expected to hang.
    let agent = plain_agent();
    let suite =
        "name: a\nfaults: [{ tool: charge_card, do: timeout }]\nturns: [{ user: pay o-1, timeout: 500ms }]\n";
    let run = Project::with_config(&(bank_target(&agent) + BANK)).suite("a", suite).test(&[]);
    run.assert_failure("a", "timeout", &["the turn timed out after 500 ms"]);
    assert!(!run.failure("a").to_string().contains(words), "{}", run.output);
}

#[test]
fn a_timeout_names_a_handshake_without_an_answer() {
    let agent = FakeAgent::start(|request: &FakeRequest| {
        let bank = McpClient::new(request.header("x-bank").expect("the address of the bank"));
        let tools = bank.with_session().and_then(|session| session.tools());
        FakeReply::json(200, &json!({"reply": format!("{tools:?}")}))
    });
    let proxy = "mcp: { bank: { type: proxy, command: [python3, bank.py] } }\n";
    for method in ["initialize", "tools/list"] {
        let ignored = format!("    if request['method'] == '{method}':\n        continue\n    answer =");
        let program = ANSWERS_EVERYTHING.replacen("    answer =", &ignored, 1);
        let project = Project::with_config(&(bank_target(&agent) + proxy)).file("bank.py", &program);
        let run = project.suite("a", "name: a\nturns: [{ user: hello, timeout: 2s }]\n").test(&[]);
        let words = format!("MCP server `bank` had not answered `{method}` for ");
        run.assert_failure("a", "timeout", &["the turn timed out after 2000 ms", &words]);
    }
}

#[test]
fn a_second_answer_to_one_request_is_an_error_of_the_test() {
    let twice = "        answer['result'] = {'content': [{'type': 'text', 'text': 'charged'}]}
        sys.stdout.write(json.dumps(answer) + '\\n')
";
    let run = run_program(twice, "");
    let words = "MCP server `bank` failed: the program `python3` answered a request twice (its id is ";
    run.assert_failure("a", "test_error", &[words]);
    let answer = |request: &FakeRequest| {
        let charged = json!({"content": [{"type": "text", "text": "charged"}]});
        json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": charged})
    };
    let server = FakeAgent::start(move |request: &FakeRequest| {
        FakeReply::sse().event(answer(request)).event(answer(request))
    });
    let agent = plain_agent();
    let config = format!("{}mcp: {{ bank: {{ type: proxy, url: '{server}' }} }}\n", bank_target(&agent));
    let suite = "name: a\nturns: [{ user: pay o-1 }]\n";
    let run = Project::with_config(&config).suite("a", suite).test(&[]);
    let words = "MCP server `bank` failed: the proxied server answered a request twice";
    run.assert_failure("a", "test_error", &[words]);
}

#[test]
fn a_program_that_does_not_start_is_an_error_of_the_test() {
    let run = run("command: [./no-such-bank]", "pay o-1");
    let words = "MCP server `bank` failed: the program `./no-such-bank` cannot be started: ";
    run.assert_failure("a", "test_error", &[words]);
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error_of_the_test() {
    let proxy = format!("url: '{}'", crate::common::unreachable_address());
    let words = "MCP server `bank` failed: the proxied server cannot be reached";
    run(&proxy, "pay o-1").assert_failure("a", "test_error", &[words]);
}

/// Runs a case that calls a server whose calls get this reply.
fn run_at_url(settings: &str, reply: impl Fn() -> FakeReply + Send + Sync + 'static) -> TestRun {
    let server = FakeAgent::start(move |_: &FakeRequest| reply());
    let agent = plain_agent();
    let url = server.url();
    let config =
        format!("{}mcp: {{ bank: {{ type: proxy, url: '{url}'{settings} }} }}\n", bank_target(&agent));
    let suite = "name: a\nturns: [{ user: pay o-1 }]\n";
    Project::with_config(&config).suite("a", suite).test_in(&[("BANK_TOKEN", SECRET)], &[])
}

#[test]
fn a_server_with_broken_answers_is_an_error_of_the_test() {
    let foreign = json!({"jsonrpc": "2.0", "id": "foreign", "result": {"content": []}});
    let deep =
        [r#"{"jsonrpc":"2.0","id":1,"result":"#, &"[".repeat(100_000), &"]".repeat(100_000), "}"].concat();
    let replies = [
        ("HTTP status 502", FakeReply::text(502, "bad gateway")),
        ("HTTP status 503", FakeReply::text(503, "later")),
        ("HTTP status 307", FakeReply::status(307).header("location", "http://127.0.0.1:1/")),
        ("closed the connection within its answer", FakeReply::json(200, &json!({})).cut()),
        ("the message is nested deeper than 127 levels", FakeReply::text(200, &deep)),
        (r#"the id \"foreign\", which no request has"#, FakeReply::json(200, &foreign)),
    ];
    for (words, reply) in replies {
        run_at_url("", move || reply.clone()).assert_failure(
            "a",
            "test_error",
            &["MCP server `bank` failed: ", words],
        );
    }
}

/// A server may close a connection after an answer. The client of the agent has a connection for each request, so it would not
/// notice.
#[test]
fn requests_share_a_connection_only_if_the_client_shares_it() {
    let server = FakeAgent::start(|request: &FakeRequest| {
        let result = json!({"content": [{"type": "text", "text": "charged"}]});
        FakeReply::json(200, &json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result}))
    });
    let agent = plain_agent();
    let config = format!("{}mcp: {{ bank: {{ type: proxy, url: '{server}' }} }}\n", bank_target(&agent));
    let suite = "name: a\nturns: [{ user: pay o-1 }, { user: pay o-2 }]\n";
    Project::with_config(&config).suite("a", suite).test(&[]).assert_all_passed();
    let connections: Vec<usize> = server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 1]);
}

#[test]
fn forms_of_answers_that_mean_the_same_are_accepted() {
    let result = r#""result":{"content":[{"type":"text","text":"charged \ud83d"}]}"#;
    let json = format!(r#"{{"jsonrpc":"2.0","id":1.0,{result},"error":null}}"#);
    let events = format!("data: {json}\n\n");
    for (content_type, body) in [("Application/JSON", json), ("Text/Event-Stream; Charset=UTF-8", events)] {
        let run = run_at_url("", move || {
            FakeReply::status(200).header("content-type", content_type).bytes(body.clone().into_bytes())
        });
        assert_eq!(run.case("a")["status"], "passed", "{content_type}: {:#}", run.case("a"));
        let called = &run.case("a")["turns"][0]["tool_calls"][0];
        assert_eq!(called["result"], "charged \u{FFFD}", "{content_type}");
    }
}

#[test]
fn a_rejected_key_is_an_error_of_the_test_if_the_test_sends_it() {
    let reply = || FakeReply::json(401, &json!({"error": "who are you?"}));
    let run = run_at_url(", headers: { authorization: 'Bearer ${ENV.BANK_TOKEN}' }", reply);
    run.assert_failure("a", "test_error", &["MCP server `bank` failed: ", "HTTP status 401"]);
    // The agent may log in.
    assert_eq!(run_at_url("", reply).count("passed"), 1);
}

#[test]
fn serving_a_program_that_ends_shows_its_last_words() {
    let project = Project::empty().file("bank.py", DYING);
    let mut command = Command::new(HOTSEAT);
    command.args(["mcp", "serve", "--", "python3", "bank.py"]).current_dir(project.workspace.root());
    command.env("BANK_TOKEN", "ours").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("hotseat starts");
    let first_line = |output: &mut dyn Read| {
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line");
        line
    };
    let url = first_line(child.stdout.as_mut().expect("the output"));
    let url = url.split_whitespace().last().expect("an address");
    let answer = McpClient::new(url).call("charge_card", &json!({}));
    let failure = first_line(child.stderr.as_mut().expect("the errors"));
    let _ = child.kill();
    let _ = child.wait();
    assert!(answer.is_err(), "{answer:?}");
    let words = "the program `python3` ended (exit status: 3): cannot open the ledger of ours";
    assert!(failure.contains(words), "{failure}");
}

#[test]
fn recording_the_lists_of_a_program_that_ends_shows_its_error_output() {
    let project = Project::empty().file("bank.py", DYING);
    let command = project.command(&["mcp", "record", "bank.jsonl", "--", "python3", "bank.py"]);
    let output = command.env("BANK_TOKEN", "ours").run();
    assert_ne!(output.code, 0, "{output}");
    for words in ["the program `python3` ended (exit status: 3)", "cannot open the ledger of ours"] {
        assert!(output.stderr.contains(words), "{output}");
    }
    assert!(!output.stderr.contains('\u{1b}'), "{output}");
}

/// An agent that does not connect to a proxied server shows no calls of it: assertions that it makes none prove nothing.
#[test]
fn a_proxied_server_without_a_connection_is_a_warning_of_the_run() {
    let config = "target: { type: embedded, agent: agent.yaml }\nmcp: { bank: { type: proxy, url: 'http://127.0.0.1:9/' } }\n";
    let suite = "name: a\nturns: [{ user: x, assert: { tools: { forbid: [pay] } } }]\n---\nname: b\nturns: [{ user: x }]\n";
    let run = Project::with_config(config)
        .file("agent.yaml", "name: Clerk\n")
        .file("script.yaml", "use: always\nrules: [{ reply: Hi. }]\n")
        .suite("a", suite)
        .test(&[]);
    let words = "no agent connected to the proxied MCP server `bank`";
    assert_eq!(run.output.stderr.matches(words).count(), 1, "{}", run.output);
}

/// A client of a server without sessions may call at once.
#[test]
fn a_call_without_a_handshake_is_visible() {
    let bank = FakeAgent::start(|request: &FakeRequest| {
        let result = json!({"content": [{"type": "text", "text": "charged"}]});
        FakeReply::json(200, &json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result}))
    });
    let agent = http_agent(|request| {
        let url = request.header("x-bank").expect("the address of the bank");
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "charge_card", "arguments": {}}});
        let headers = [("accept", "application/json, text/event-stream")];
        let answer = hotseat_testkit::post(url, &headers, &call.to_string()).expect("an answer");
        answer.body
    });
    let config = format!("{}mcp: {{ bank: {{ type: proxy, url: '{bank}' }} }}\n", bank_target(&agent));
    let suite = |check: &str| {
        format!("name: a\nturns: [{{ user: pay, assert: {{ tools: {{ {check}: [charge_card] }} }} }}]\n")
    };
    let run = |check: &str| Project::with_config(&config).suite("a", &suite(check)).test(&[]);
    let required = run("require");
    required.assert_all_passed();
    assert!(!required.output.stderr.contains("no agent connected"), "{}", required.output);
    run("forbid").assert_failure("a", "assertion", &["charge_card"]);
}

/// Lines that are ignored cost time, so they have a limit. Other conversations share the thread that reads them.
#[test]
fn endless_ignored_lines_end_their_conversation_only() {
    let endless = "        while True: print('debug ' * 2000)\n";
    let agent = plain_agent();
    let config = format!("{}{BANK}", bank_target(&agent));
    let program = ANSWERS_EVERYTHING
        .replace("        answer['result'] = {'content': [{'type': 'text', 'text': 'charged'}]}\n", endless);
    let bad = "name: bad\nmcp: { bank: { type: proxy, command: [python3, bank.py] } }\nturns: [{ user: pay o-1 }]\n";
    let good = |number: usize| {
        format!(
            "name: good {number}\nturns: [{{ user: pay o-1, assert: {{ tools: {{ require: [charge_card] }} }} }}]\n"
        )
    };
    let cases: Vec<String> = std::iter::once(bad.to_string()).chain((0..10).map(good)).collect();
    let project = Project::with_config(&config).file("bank.py", &program).suite("a", &cases.join("---\n"));
    let run = project.test(&["--parallel", "2"]);
    let words = [
        "MCP server `bank` failed: the program `python3` printed more than 16777216 bytes of lines that are no messages",
    ];
    run.assert_failure("bad", "test_error", &words);
    assert_eq!(run.count("passed"), 10, "{}", run.output);
}

#[test]
fn ignored_lines_of_a_program_are_noted() {
    const PRINTING: &str = "import json, sys
print('bank is ready', flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if 'id' not in message: continue
    answer = {'jsonrpc': '2.0', 'id': message['id'], 'result': {'content': [{'type': 'text', 'text': 'charged'}]}}
    if message['method'] == 'tools/call': print(json.dumps(answer, indent=1))
    print(json.dumps(answer), flush=True)
";
    let agent = plain_agent();
    let proxy = "mcp: { bank: { type: proxy, command: [python3, bank.py] } }\n";
    let suite = "name: a\nturns: [{ user: pay o-1 }, { user: pay o-2 }]\n";
    let config = bank_target(&agent) + proxy;
    let run = Project::with_config(&config).file("bank.py", PRINTING).suite("a", suite).test(&[]);
    run.assert_all_passed();
    let report = run.report.to_string();
    let noted =
        report.matches("prints lines that are no JSON-RPC messages, which are ignored; the first is:");
    assert_eq!(noted.count(), 1, "{report}");
}
