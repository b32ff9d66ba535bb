//! `hotseat serve`, used by a human and by `hotseat test`.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::common::{HOTSEAT, Project, TEST_TIMEOUT, assert_no_panic};
use hotseat_testkit::SpawnedProgram;
use serde_json::json;

const AGENT: &str = "\
name: Clerk
system: You are a clerk.
tools:
  - name: look_up
    description: Looks an order up
    input: { type: object, properties: { order: { type: string } }, required: [order] }
    task:
      steps:
        - mock: { computes: '{order: input.order, total: 42.5}' }
  - name: research
    description: Takes a while
    async: true
    task:
      steps:
        - mock: { returns: { found: 7 }, delay_ms: 50 }
  - name: ask_expert
    description: Asks somebody who knows
    agent: { name: Expert, system: EXPERT, connector: expert }
  - name: invite
    description: Brings an adviser into the conversation
    mode: loop_in
    agent: { name: Adviser, system: ADVISER, connector: expert }
  - { name: sign, client: true, description: Signs a form }
connectors:
  clerk: { type: scripted, script: clerk.script.yaml }
  expert: { type: scripted, script: expert.script.yaml }
connector: clerk
";

const SCRIPT: &str = r#"
use: always
rules:
  - when: { user: 'order (?<order>\S+)' }
    reply: { text: Let me look., tool_calls: [{ name: look_up, arguments: { order: '{{ order }}' } }] }
  - when: { tool_result: { tool: look_up } }
    reply: It costs {{ result.total }}.
  - when: { user: research }
    reply: { text: I have started., tool_calls: [research] }
  - when: { notice: found }
    reply: It is 7.
  - when: { user: expert }
    reply: { tool_calls: [ask_expert] }
  - when: { tool_result: { tool: ask_expert } }
    reply: 'The expert says: {{ result.response }}'
  - when: { user: adviser }
    reply: { text: One moment., tool_calls: [invite] }
  - when: { tool_result: { tool: invite } }
    reply: You have heard it.
  - when: { user: confirm, offered: [confirm] }
    reply: { tool_calls: [{ name: confirm, arguments: { action: pay } }] }
  - when: { tool_result: { tool: confirm } }
    reply: 'You said: {{ result }}'
  - when: { user: sign }
    reply: { tool_calls: [sign] }
  - when: { tool_result: { tool: sign } }
    reply: 'Signed by {{ result }}'
  - when: { user: crash }
    error: auth
  - when: { user: think }
    reply: { text: Done., reasoning: Let me think. }
  - reply: Hello.
"#;

const SUITE: &str = r"
name: text
turns:
  - user: hello
    assert: { text: { must_match: '^Hello\.$' } }
  - user: think about it
    assert: { text: { must_match: '^Done\.$' } }
---
name: tools
turns:
  - user: order o-9
    assert:
      tools:
        require:
          - { name: look_up, args_match: { order: '^o-9$' }, result_match: '42\.5', count: { exact: 1 } }
      text: { must_match: 'It costs 42\.5' }
  - user: order o-8
    assert:
      tools: { require: [{ name: look_up, args_match: { order: '^o-8$' }, count: { exact: 1 } }] }
---
name: work beside the conversation
turns:
  - user: research
    assert:
      tools: { require: [{ name: research, result_match: '7' }] }
      text: { must_match: 'I have started\.\s*It is 7\.' }
---
name: another agent
turns:
  - user: ask the expert
    assert:
      tools: { require: [{ name: ask_expert }] }
      text: { must_match: '^The expert says: I know\.$' }
---
name: an agent that joins the conversation
turns:
  - user: invite an adviser
    assert:
      tools: { require: [{ name: invite }] }
      text: { must_match: '^One moment\.\s+I know\.\s+You have heard it\.$' }
  - user: hello
    assert: { text: { must_match: '^Hello\.$' } }
---
name: a tool of the client
tools:
  - name: confirm
    description: Asks the user
    parameters: { type: object, properties: { action: { type: string } } }
    answers: [{ args_match: { action: pay }, content: yes of course }]
turns:
  - user: confirm it
    assert:
      tools: { require: [{ name: confirm, result_match: of course }] }
      text: { must_match: 'You said: yes of course' }
  - user: hello again
";

/// A project with an agent and a suite.
fn project() -> Project {
    Project::empty()
        .file("clerk/agent.yaml", AGENT)
        .file("clerk/clerk.script.yaml", SCRIPT)
        .file("clerk/expert.script.yaml", "use: always\nrules: [{ reply: I know. }]\n")
}

/// Starts a server and returns its address.
fn start_server(project: &Project, args: &[&str]) -> (SpawnedProgram, String) {
    let args = [&["serve", "clerk", "--port", "0"], args].concat();
    let mut running = project.command(&args).timeout(TEST_TIMEOUT).spawn();
    let printed = running.wait_for_stdout("Ctrl-C stops it.");
    let address = printed.split_whitespace().nth(2).expect("an address").to_string();
    (running, address)
}

#[test]
fn strict_client_accepts_served_events() {
    let project = project();
    let (running, address) = start_server(&project, &[]);
    let target = format!("target:\n  endpoint: {address}/\n  protocol: strict\n");
    let project = project.file("hotseat.yaml", &target).suite("serve", SUITE);
    let tested = project.test(&[]);
    tested.assert_all_passed();
    assert_eq!(tested.count("passed"), 6);
    running.interrupt();
    let output = running.wait();
    assert_no_panic(&output);
    assert_eq!(output.code, 0, "{output}");
}

#[test]
fn suite_passes_over_chat_completions_with_visible_tools() {
    let project = project();
    let (_running, address) = start_server(&project, &[]);
    let target = format!(
        "target: {{ type: openai, base_url: '{address}/v1', model: clerk, body: {{ show_tools: true }} }}\n"
    );
    let tested = project.file("hotseat.yaml", &target).suite("serve", SUITE).test(&[]);
    tested.assert_all_passed();
    assert_eq!(tested.count("passed"), 6);
}

#[test]
fn suite_passes_over_stdio() {
    let target = format!("target: {{ type: command, command: ['{HOTSEAT}', serve, clerk, --stdio] }}\n");
    let tested = project().file("hotseat.yaml", &target).suite("serve", SUITE).test(&[]);
    tested.assert_all_passed();
    assert_eq!(tested.count("passed"), 6);
}

/// Output for these lines on stdin.
fn answered_lines(project: &Project, args: &[&str], input: &[serde_json::Value]) -> Vec<serde_json::Value> {
    let args = [&["serve", "clerk", "--stdio"], args].concat();
    let text: Vec<String> = input.iter().map(serde_json::Value::to_string).collect();
    let output = project.command(&args).stdin(format!("{}\n", text.join("\n\n"))).run();
    assert_eq!((output.code, &*output.stderr), (0, ""), "{output}");
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn invalid_lines_are_answered_with_errors() {
    let tools = json!([{"name": "look_up"}]);
    let said = answered_lines(
        &project(),
        &[],
        &[
            json!("hello"),
            json!({"type": "massage"}),
            json!({"type": "tool_result", "id": "c1", "result": 1}),
            json!({"type": "message", "text": "hi", "attachments": [{"type": "image"}]}),
            json!({"type": "message", "text": "hi", "tools": tools}),
            json!({"type": "message", "text": "crash"}),
            json!({"type": "message", "text": "hello"}),
        ],
    );
    let words: Vec<&str> = said.iter().filter_map(|line| line["message"].as_str()).collect();
    for (number, part) in [
        "neither a `message` nor a `tool_result`",
        "unknown variant `massage`",
        "no call `c1` is waiting for a result",
        "the agent supports text only",
        "the agent already has a tool named",
        "simulates a failure: auth",
    ]
    .iter()
    .enumerate()
    {
        assert!(words[number].contains(part), "{part}: {words:#?}");
    }
    assert_eq!(said[5]["code"], "LLM_FAILED");
    assert_eq!(said[6], json!({"type": "text", "text": "Hello."}), "the conversation continues");
    assert_eq!(said.last().unwrap(), &json!({"type": "done"}));
}

#[test]
fn lines_with_very_many_values_are_refused() {
    let message = |values: usize| json!({"type": "message", "text": "hello", "options": vec![0; values]});
    let said = answered_lines(&project(), &[], &[message(300_000), message(100_000)]);
    assert_eq!(said[0]["message"], "the line has more than 200000 JSON values");
    assert_eq!(said[1], json!({"type": "text", "text": "Hello."}), "{said:#?}");
}

#[test]
fn client_answers_tools_over_stdio() {
    let tools = json!([{"name": "confirm", "parameters": {"type": "object"}}]);
    let ask = json!({"type": "message", "conversation_id": "c", "text": "confirm it", "tools": tools});
    let answer = |id: &str| json!({"type": "tool_result", "id": id, "error": "nobody is there"});
    let hello = json!({"type": "message", "conversation_id": "c", "text": "hello"});
    let said = answered_lines(&project(), &[], &[ask, answer("c-t1-k9"), hello]);
    let call = &said[0];
    assert_eq!(
        (&call["type"], &call["name"], &call["id"]),
        (&json!("tool_call"), &json!("confirm"), &json!("c-t1-k1"))
    );
    assert!(
        said[1]["message"].as_str().unwrap().contains("no call `c-t1-k9` is waiting for a result"),
        "{said:#?}"
    );
    // Any other message abandons the call.
    assert_eq!(said[2], json!({"type": "text", "text": "Hello."}));
    assert_eq!(said.last().unwrap(), &json!({"type": "done"}));
}

/// A client that does not offer a tool may never answer its call, so the call ends the turn.
#[test]
fn calls_of_tools_that_a_client_does_not_offer_end_the_turn_over_stdio() {
    let sign = json!({"type": "message", "conversation_id": "c", "text": "sign it"});
    let answer = json!({"type": "tool_result", "id": "c-t1-k1", "result": "Ada"});
    let said = answered_lines(&project(), &[], &[sign, answer]);
    let is_done = |line: &&serde_json::Value| line["type"] == "done";
    let ends: Vec<_> = said.iter().filter(is_done).map(|line| line["finish_reason"].as_str()).collect();
    assert_eq!(ends, [Some("tool_calls"), None], "{said:#?}");
    assert!(said.contains(&json!({"type": "text", "text": "Signed by Ada"})), "{said:#?}");
}

/// Otherwise a client would take half an answer for a whole one.
#[test]
fn an_answer_that_was_cut_says_so_over_stdio() {
    let script = "rules:
- { when: { user: long }, reply: { text: And so, stop: max_tokens } }
- { when: { user: bad }, reply: { text: I can, stop: refusal } }
- { reply: Hello. }
";
    let project =
        Project::empty().file("clerk/agent.yaml", "name: Clerk\n").file("clerk/script.yaml", script);
    let said = answered_lines(
        &project,
        &[],
        &["long", "bad", "hello"].map(|text| json!({"type": "message", "text": text})),
    );
    let ends = said.iter().filter(|line| line["type"] == "done");
    let reasons: Vec<_> = ends.map(|line| line["finish_reason"].as_str()).collect();
    assert_eq!(reasons, [Some("length"), Some("content_filter"), None], "{said:#?}");
}

#[test]
fn stdio_conversations_can_be_stored() {
    let project = project();
    let say = |text: &str| [json!({"type": "message", "conversation_id": "kept", "text": text})];
    let first = answered_lines(&project, &["--store", "kept.db"], &say("order o-1"));
    assert_eq!(first[1]["id"], "kept-t1-k1", "{first:#?}");
    let second = answered_lines(&project, &["--store", "kept.db"], &say("order o-2"));
    assert_eq!(second[1]["id"], "kept-t2-k1", "{second:#?}");
}

#[test]
fn rejects_stdio_with_port() {
    project().hotseat(&["serve", "clerk", "--stdio", "--port", "0"]).assert_code(2);
}

#[test]
fn failed_turn_is_agent_error() {
    let project = project();
    let (_running, address) = start_server(&project, &[]);
    let target = format!("target:\n  endpoint: {address}/\n  protocol: strict\n");
    let suite = "name: crash\nturns: [{ user: crash }]\n";
    let project = project.file("hotseat.yaml", &target).suite("serve", suite);
    let tested = project.test(&[]);
    assert_eq!(tested.failure("crash")["kind"], "agent_error", "{}", tested.output);
}

#[test]
fn startup_message_shows_working_command() {
    let project = project();
    let (running, address) = start_server(&project, &[]);
    let port = address.rsplit(':').next().unwrap().to_string();
    running.interrupt();
    let output = running.wait();
    insta::assert_snapshot!(output.stdout.replace(&port, "PORT"), @r#"
    clerk on http://127.0.0.1:PORT
      AG-UI             http://127.0.0.1:PORT/
      chat completions  http://127.0.0.1:PORT/v1 (model clerk)
    Try it:
      curl -N http://127.0.0.1:PORT/v1/chat/completions -H 'content-type: application/json' -d '{"model": "clerk", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}'
    Ctrl-C stops it.
    "#);
}

/// The suggested command, without curl.
#[test]
fn example_input_line_is_answered() {
    let project = project();
    let (_running, address) = start_server(&project, &[]);
    let host = address.strip_prefix("http://").unwrap();
    let body = r#"{"model": "clerk", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}"#;
    let mut socket = TcpStream::connect(host).unwrap();
    write!(
        socket,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("[DONE]"), "{answer}");
}

#[test]
fn stored_conversations_survive_restart() {
    let project = project();
    let told = |address: &str, messages: &str| {
        let host = address.strip_prefix("http://").unwrap();
        let body = format!(r#"{{"threadId": "t", "runId": "r", "messages": [{messages}]}}"#);
        let mut socket = TcpStream::connect(host).unwrap();
        write!(
            socket,
            "POST / HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    };
    let (running, address) = start_server(&project, &["--store", "kept.db"]);
    let first = r#"{"id": "1", "role": "user", "content": "hello"}"#;
    assert!(told(&address, first).contains("t-t1-r1"));
    running.interrupt();
    assert_eq!(running.wait().code, 0);
    let (_running, address) = start_server(&project, &["--store", "kept.db"]);
    let other = r#"{"id": "1", "role": "user", "content": "something else"}, {"id": "2", "role": "user", "content": "x"}"#;
    assert!(told(&address, other).contains("is not what the user said in turn 1"));
    let more = r#"{"id": "2", "role": "user", "content": "hello"}"#;
    assert!(told(&address, &format!("{first}, {more}")).contains("lacks message t-t1-r1"));
    let answer = r#"{"id": "t-t1-r1", "role": "assistant", "content": "Hello."}"#;
    assert!(told(&address, &format!("{first}, {answer}, {more}")).contains("t-t2-r1"));
}

#[test]
fn reports_agent_file_errors_with_location() {
    let project = project().file("clerk/agent.yaml", "name: Clerk\nsistem: x\n");
    let output = project.hotseat(&["serve", "clerk"]);
    output.assert_stderr(2, &["agent.yaml:2:1", "sistem"]);
    assert_eq!(output.stdout, "");
}

#[test]
fn reports_missing_agent() {
    Project::empty().hotseat(&["serve", "nowhere"]).assert_stderr(2, &["nowhere"]);
}

/// What is answered to a request with this body, or to a GET without one.
fn ask(address: &str, path: &str, body: Option<&str>) -> String {
    let host = address.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(host).unwrap();
    let head = format!("HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    match body {
        None => write!(socket, "GET {path} {head}\r\n").unwrap(),
        Some(body) => {
            let length = body.len();
            let kind = "content-type: application/json";
            write!(socket, "POST {path} {head}{kind}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        }
    }
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn connections_that_send_no_request_give_way_after_the_time_that_is_set() {
    let project = project();
    let (_running, address) = start_server(&project, &["--max-connections", "1", "--head-timeout", "300ms"]);
    let mut half_open = TcpStream::connect(address.strip_prefix("http://").unwrap()).unwrap();
    write!(half_open, "GET /health HTTP/1.1\r\n").unwrap();
    let asked = Instant::now();
    let answer = ask(&address, "/health", None);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // Where nothing is set it is ten seconds, and there is room for both.
    assert!(asked.elapsed() < Duration::from_secs(9), "{:?}", asked.elapsed());
    half_open.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut rest = String::new();
    // The server has closed it, with words or without.
    let closed = half_open.read_to_string(&mut rest);
    assert!(
        closed.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset) || !rest.contains("200"),
        "{rest}"
    );
}

#[test]
fn the_conversations_that_were_used_longest_ago_are_forgotten_beyond_the_number_that_is_set() {
    let project = project();
    let (_running, address) = start_server(&project, &["--max-conversations", "2"]);
    for thread in ["one", "two", "three", "four"] {
        let said = r#"{"id": "1", "role": "user", "content": "hello"}"#;
        let body = format!(r#"{{"threadId": "{thread}", "runId": "r", "messages": [{said}]}}"#);
        let told = ask(&address, "/", Some(&body));
        assert!(told.contains("RUN_FINISHED"), "{thread}: {told}");
    }
    assert!(ask(&address, "/threads/four", None).contains("Hello."));
    let forgotten = ask(&address, "/threads/one", None);
    assert!(forgotten.starts_with("HTTP/1.1 404"), "{forgotten}");
}

#[test]
fn limits_that_are_none_or_hold_for_nothing_are_refused() {
    let refused: [&[&str]; 5] = [
        &["--max-connections", "0"],
        &["--head-timeout", "soon"],
        &["--max-size", "much"],
        &["--stdio", "--max-connections", "7"],
        &["--store", "kept.db", "--max-memories", "7"],
    ];
    for args in refused {
        let output = project().hotseat(&[&["serve", "clerk"], args].concat());
        assert_eq!(output.code, 2, "{args:?}: {output}");
    }
}

/// Browsers send an origin in one form only. Another one would allow no page.
#[test]
fn origins_of_pages_are_accepted_in_any_spelling_or_refused() {
    let accepted =
        ["http://localhost:3000/", "HTTP://LocalHost:3000", "https://Example.com:443/", "tauri://localhost"];
    let allowed = accepted.map(|origin| ["--allow-origin", origin]).concat();
    let (_running, address) = start_server(&project(), &allowed);
    let host = address.trim_start_matches("http://");
    for origin in ["http://localhost:3000", "https://example.com", "tauri://localhost", "http://other"] {
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "OPTIONS / HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let is_allowed = answer.contains(&format!("access-control-allow-origin: {origin}\r\n"));
        assert_eq!(is_allowed, origin != "http://other", "{origin}: {answer}");
    }
    for (origin, next) in [
        ("foo", "such as http://localhost:3000"),
        ("", "such as http://localhost:3000"),
        ("localhost:3000", "such as http://localhost:3000"),
        ("http://*.example.com", "such as http://localhost:3000"),
        ("https://example.com/app", "write https://example.com"),
        ("https://example.com/?a=b", "write https://example.com"),
        ("https://me@example.com", "write https://example.com"),
    ] {
        let output = project().hotseat(&["serve", "clerk", "--allow-origin", origin]);
        assert_eq!(output.code, 2, "{origin}: {output}");
        assert!(output.stderr.contains(next), "{origin}: {output}");
    }
}

#[test]
fn reports_port_in_use() {
    let project = project();
    let (_running, address) = start_server(&project, &[]);
    let port = address.rsplit(':').next().unwrap();
    project
        .hotseat(&["serve", "clerk", "--port", port])
        .assert_stderr(3, &[&format!("cannot listen on 127.0.0.1:{port}"), "--port 0"]);
}

#[test]
fn warns_about_externally_reachable_address() {
    let project = project();
    let mut running = project.command(&["serve", "clerk", "--port", "0", "--host", "0.0.0.0"]).spawn();
    let said = running.wait_for_stderr("warning");
    assert!(said.contains("every machine that reaches this address can talk to the agent"), "{said}");
    running.wait_for_stdout("http://127.0.0.1:");
    project.hotseat(&["serve", "clerk", "--host", "here"]).assert_code(2);
}

/// Of a repeated key one value would be taken; a list would fill the members in order.
#[test]
fn a_request_is_one_object_without_repeated_keys() {
    let project = project();
    let (_running, address) = start_server(&project, &[]);
    let input =
        r#"{"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "hello"}]}"#;
    for (body, words) in [
        (
            input.replace("\"runId\"", "\"threadId\": \"u\", \"runId\""),
            r#"the body has a duplicate key \"threadId\""#,
        ),
        ("[]".to_string(), "the body must be a JSON object"),
        ("{".to_string(), "the body is not JSON"),
        (format!("\u{FEFF}{input}"), "t-t1-r1"),
    ] {
        let answer = ask(&address, "/", Some(&body));
        assert!(answer.contains(words), "{body}: {answer}");
    }
}

const SHOP: &str = "\
name: Clerk
system: You are a clerk.
tools:
  - name: refund
    approval: 'Refund {id}?'
    task: { steps: [{ when: \"input.id == '666'\", fail: too evil }, { mock: { returns: paid } }] }
  - name: find_order
    input: { type: object, properties: { id: { type: string } }, required: [id] }
    task: { steps: [{ mock: { computes: '{id: input.id}' } }] }
  - { name: slow, async: true, task: { steps: [{ mock: { returns: { n: 1 }, delay_ms: 50 } }] } }
";

const SHOP_SCRIPT: &str = r#"
use: always
rules:
  - { when: { tool_result: { tool: refund, failed: true } }, reply: 'No refund: {{ result.message }}.' }
  - { when: { tool_result: { tool: refund } }, reply: Refunded. }
  - { when: { tool_result: { tool: find_order } }, reply: Looked. }
  - { when: { notice: slow }, reply: Slow is done. }
  - { when: { tool_result: { tool: slow } }, reply: Started. }
  - { when: { user: refund }, reply: { tool_calls: [{ name: refund, arguments: { id: '5' } }] } }
  - { when: { user: bad order }, reply: { tool_calls: [{ name: find_order, arguments: { idd: 5 } }] } }
  - { when: { user: slow }, reply: { tool_calls: [slow] } }
  - reply: '{{ system }}'
"#;

/// The targets by which one served agent can be tested.
fn shop_project(address: &str) -> Project {
    let targets = format!(
        "agents:\n  embedded: {{ type: embedded, agent: clerk }}\n  ag_ui: {{ endpoint: '{address}/', protocol: strict }}\n  \
         openai: {{ type: openai, base_url: '{address}/v1', model: clerk, body: {{ show_tools: true }} }}\n  \
         stdio: {{ type: command, command: ['{HOTSEAT}', serve, clerk, --stdio] }}\ntarget: embedded\n"
    );
    let project = Project::with_config(&targets).file("clerk/agent.yaml", SHOP);
    project.file("clerk/script.yaml", SHOP_SCRIPT)
}

fn start_shop() -> (SpawnedProgram, Project) {
    let served = Project::empty().file("clerk/agent.yaml", SHOP).file("clerk/script.yaml", SHOP_SCRIPT);
    let (running, address) = start_server(&served, &[]);
    (running, shop_project(&address))
}

#[test]
fn edited_arguments_and_reasons_of_approvals_are_the_same_over_ag_ui() {
    let (_running, project) = start_shop();
    let edited = "resume: [{ tool: refund, payload: { approved: true, editedArgs: { id: '666' } } }]";
    let suite = format!(
        "name: edited
turns: [{{ user: refund, {edited}, assert: {{ tools: {{ require: [{{ name: refund, count: {{ exact: 1 }}, args_match: {{ id: '^666$' }} }}] }} }} }}]
---
name: forbidden
turns: [{{ user: refund, {edited}, assert: {{ tools: {{ forbid_calls: [{{ name: refund, args_match: {{ id: '666' }} }}] }} }} }}]
---
name: reason of the trace
turns: [{{ user: refund, resume: [{{ reason: '^tool_approval$', payload: {{ approved: true }} }}] }}, {{ user: slow }}]
---
name: reason of the protocol
turns: [{{ user: refund, resume: [{{ reason: '^tool_call$', payload: {{ approved: true }} }}] }}]
"
    );
    let project = project.suite("a", &suite);
    for agent in ["embedded", "ag_ui"] {
        let tested = project.test(&["-n", agent]);
        for name in ["edited", "reason of the trace", "reason of the protocol"] {
            assert_eq!(tested.case(name)["status"], "passed", "{agent}: {}", tested.output);
        }
        assert_eq!(tested.failure("forbidden")["kind"], "assertion", "{agent}: {}", tested.output);
    }
}

#[test]
fn failed_tools_and_messages_after_results_are_the_same_over_all_protocols() {
    let (_running, project) = start_shop();
    let suite = "name: failed tool
turns: [{ user: bad order, assert: [{ type: tool_result, tool: find_order, negate: true }, { type: equals, value: Looked. }] }]
---
name: succeeds
turns: [{ user: bad order, assert: [{ type: tool_result, tool: find_order }] }]
---
name: message after a result
turns: [{ user: slow, assert: [{ type: equals, value: Slow is done. }] }, { user: hello }]
";
    let project = project.suite("a", suite);
    for agent in ["embedded", "ag_ui", "openai", "stdio"] {
        let tested = project.test(&["-n", agent]);
        for name in ["failed tool", "message after a result"] {
            assert_eq!(tested.case(name)["status"], "passed", "{agent}: {}", tested.output);
        }
        assert_eq!(tested.failure("succeeds")["kind"], "assertion", "{agent}: {}", tested.output);
    }
}

#[test]
fn chat_completions_continue_a_conversation_with_visible_tools() {
    let (_running, project) = start_shop();
    let project = project.suite(
        "a",
        "name: a\nturns: [{ user: slow }, { user: hello, assert: { text: { must_not_match: Started } } }]\n",
    );
    let tested = project.test(&["-n", "openai"]);
    tested.assert_all_passed();
}
