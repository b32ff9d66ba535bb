//! Proxies of servers over HTTP and of programs.

use std::time::Duration;

use hotseat_mcp::{
    FaultKind, FaultRule, FaultTrigger, FixedAnswerer, McpAnswer, McpCall, McpEventKind, McpOptions,
    McpServers, McpToolResult, ProtocolRevision, ServerDefinition, ServerKind, Upstream, UpstreamCommand,
    bridge_lines, run_bridge,
};
use hotseat_testkit::{FakeAgent, FakeReply};
use http::Method;
use serde_json::{Value, json};

use crate::common::{
    Answers, Fixture, SessionClient, body_of, call, charge, json_of, open, post, request_to, stateless,
};

/// A program that answers each request with its own method and parameters.
const ECHO_PROGRAM: &str = r#"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
    *'"method":"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"sh\",\"version\":\"1\"}}}" ;;
    *'"method":"tools/call"'*) echo 'this line is no message'
       echo "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$id,\"progress\":1}}"
       echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"from a program\"}]}}" ;;
    *'"id":'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[]}}" ;;
  esac
done
"#;

fn proxy_of(upstream: Upstream, faults: Vec<FaultRule>) -> Fixture {
    let mut definition = ServerDefinition::new("proxy", ServerKind::Proxy(upstream));
    definition.faults = faults;
    open(definition, FixedAnswerer::default())
}

fn bank() -> Fixture {
    let answers = Answers(|call: &McpCall| {
        McpAnswer::Result(McpToolResult::from_value(json!({"charged": call.arguments["amount"]})))
    });
    open(ServerDefinition::mock("bank", vec![charge()]), answers)
}

fn url_of(upstream: &Fixture) -> Upstream {
    Upstream::Url { url: upstream.url(), headers: Default::default() }
}

fn program() -> Upstream {
    let argv = ["sh", "-c", ECHO_PROGRAM].map(str::to_string).to_vec();
    let environment = [("PATH".to_string(), "/usr/bin:/bin".to_string())].into();
    Upstream::Command(UpstreamCommand { argv, environment, folder: None })
}

async fn answered(fixture: &mut Fixture) -> (Value, bool) {
    let answered = fixture.wait_for(|event| match event {
        McpEventKind::CallAnswered { call: 1, outcome, delivered, .. } => {
            Some((outcome.as_ref().unwrap().value(), *delivered))
        }
        _ => None,
    });
    answered.await
}

#[tokio::test]
async fn a_proxy_of_a_url_changes_nothing_and_sees_calls() {
    let upstream = bank();
    let mut proxy = proxy_of(url_of(&upstream), Vec::new());
    for (method, params) in [
        ("tools/call", json!({"name": "charge", "arguments": {"amount": 5}})),
        ("tools/list", json!({})),
        ("server/discover", json!({})),
        ("unknown/method", json!({})),
        ("tools/call", json!({"name": "charge", "arguments": {"amount": "five"}})),
    ] {
        let direct = stateless(&upstream.url(), method, params.clone()).send().await.unwrap();
        let through = stateless(&proxy.url(), method, params).send().await.unwrap();
        assert_eq!(direct.status(), through.status(), "{method}");
        assert_eq!(direct.headers()["content-type"], through.headers()["content-type"]);
        assert_eq!(body_of(direct).await, body_of(through).await, "{method}");
    }
    let revision = proxy.wait_for(|event| match event {
        McpEventKind::ClientConnected { revision, .. } => Some(*revision),
        _ => None,
    });
    assert_eq!(revision.await, ProtocolRevision::V2026July);
    assert_eq!(answered(&mut proxy).await, (json!({"charged": 5}), true));
}

#[tokio::test]
async fn sessions_pass_through_a_proxy_of_a_url() {
    let upstream = bank();
    let mut proxy = proxy_of(url_of(&upstream), Vec::new());
    let session = SessionClient::open(&proxy.url(), "2025-06-18").await;
    let answer = session.request("tools/call", json!({"name": "charge", "arguments": {"amount": 2}})).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"charged": 2}));
    let revision = proxy.wait_for(|event| match event {
        McpEventKind::ClientConnected { revision, client, .. } => Some((*revision, client.clone())),
        _ => None,
    });
    assert_eq!(revision.await, (ProtocolRevision::V2025June, Some("old".to_string())));
    assert_eq!(answered(&mut proxy).await, (json!({"charged": 2}), true));
}

#[tokio::test]
async fn an_answer_of_a_proxied_server_is_lost_after_its_effect() {
    let mut upstream = bank();
    let fault = |trigger, kind| FaultRule { tool: None, arguments: None, trigger, kind };
    let rules = vec![
        fault(FaultTrigger::Nth(1), FaultKind::LostAnswer),
        fault(FaultTrigger::Nth(2), FaultKind::Disconnect),
    ];
    let mut proxy = proxy_of(url_of(&upstream), rules);
    let charge = |amount: u64| {
        let params = json!({"name": "charge", "arguments": {"amount": amount}});
        stateless(&proxy.url(), "tools/call", params).send()
    };
    assert!(charge(1).await.is_err());
    assert!(charge(2).await.is_err());
    assert_eq!(charge(3).await.unwrap().status(), 200);
    let mut reached = Vec::new();
    while let Some(event) = upstream.conversation.try_next_event() {
        if let McpEventKind::CallReceived { arguments, .. } = event.kind {
            reached.push(arguments["amount"].as_u64().unwrap());
        }
    }
    assert_eq!(reached, [1, 3], "the lost answer had its effect, the disconnect had none");
    assert_eq!(answered(&mut proxy).await, (json!({"charged": 1}), false));
}

#[tokio::test]
async fn an_unreachable_server_is_an_error_of_the_call() {
    let gone = bank().url();
    let mut proxy = proxy_of(Upstream::Url { url: gone, headers: Default::default() }, Vec::new());
    let params = json!({"name": "charge", "arguments": {"amount": 1}});
    let response = stateless(&proxy.url(), "tools/call", params).send().await.unwrap();
    assert_eq!(response.status(), 502);
    let message = proxy.wait_for(|event| match event {
        McpEventKind::CallAnswered { outcome: Err(error), .. } => Some(error.message.clone()),
        _ => None,
    });
    assert!(message.await.starts_with("the proxied server cannot be reached"));
}

#[tokio::test]
async fn a_compressed_answer_is_an_error_of_the_call() {
    let packed = FakeAgent::start(|_| FakeReply::json(200, &json!({})).header("content-encoding", "gzip"));
    let mut proxy = proxy_of(Upstream::Url { url: packed.url(), headers: Default::default() }, Vec::new());
    let params = json!({"name": "charge", "arguments": {"amount": 1}});
    let response = stateless(&proxy.url(), "tools/call", params).send().await.unwrap();
    assert_eq!(response.status(), 502);
    let failure = proxy.wait_for(|event| event.server_failure()).await;
    assert!(failure.contains("has the unsupported encoding gzip; turn off compression"), "{failure}");
}

#[tokio::test]
async fn a_program_serves_clients_with_and_without_sessions() {
    let mut proxy = proxy_of(program(), Vec::new());
    let session = SessionClient::open(&proxy.url(), "2025-11-25").await;
    assert_eq!(session.initialized["result"]["serverInfo"]["name"], "sh");
    assert_eq!(session.initialized["result"]["protocolVersion"], "2025-06-18", "the program decides");
    let params = json!({"name": "any", "arguments": {}, "_meta": {"progressToken": "mine"}});
    let message = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
    let stream = body_of(session.send(message).await).await.unwrap();
    assert!(stream.contains("\"progressToken\":\"mine\""), "{stream}");
    assert!(stream.contains("\"id\":\"a\"") && stream.contains("from a program"), "{stream}");
    assert_eq!(answered(&mut proxy).await, (json!("from a program"), true));
    let listed = json_of(stateless(&proxy.url(), "tools/list", json!({})).send().await.unwrap()).await;
    assert_eq!(listed["result"]["tools"], json!([]));
}

/// A program decides on the revision of its session, also if no mock speaks it.
#[tokio::test]
async fn a_program_may_announce_an_older_or_unknown_revision() {
    let Upstream::Command(command) = program() else { panic!("a program") };
    for version in ["2024-11-05", "2031-01-01"] {
        let argv = ["sh", "-c", &ECHO_PROGRAM.replace("2025-06-18", version)].map(str::to_string).to_vec();
        let mut proxy = proxy_of(Upstream::Command(UpstreamCommand { argv, ..command.clone() }), Vec::new());
        let session = SessionClient::open(&proxy.url(), "2025-11-25").await;
        assert_eq!(session.initialized["result"]["protocolVersion"], version);
        let listed = session.request("tools/list", json!({})).await;
        assert_eq!(listed["result"]["tools"], json!([]), "{listed}");
        let params = json!({"name": "any", "arguments": {}});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let stream = body_of(session.send(message).await).await.unwrap();
        assert!(stream.contains("from a program"), "{stream}");
        assert_eq!(answered(&mut proxy).await, (json!("from a program"), true));
        // Another revision than the announced one is refused as before.
        let other = post(&proxy.url()).header("mcp-session-id", &session.session);
        let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).to_string();
        let refused = other.header("mcp-protocol-version", "2030-01-01").body(body).send().await.unwrap();
        assert_eq!(json_of(refused).await["error"]["code"], -32022);
    }
}

/// On standard input and output the same session has no headers of the client.
#[tokio::test]
async fn a_bridge_serves_the_revision_that_a_program_announces() {
    let Upstream::Command(command) = program() else { panic!("a program") };
    let argv = ["sh", "-c", &ECHO_PROGRAM.replace("2025-06-18", "2024-11-05")].map(str::to_string).to_vec();
    let proxy = proxy_of(Upstream::Command(UpstreamCommand { argv, ..command }), Vec::new());
    let address = proxy.conversation.bridge_address();
    let (input, lines) = bridge_lines();
    let (written, mut output) = bridge_lines();
    let ended = tokio::spawn(async move { run_bridge(&address, "proxy", lines, written, 1 << 20).await });
    let params = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    for (method, params) in [("initialize", params), ("tools/list", json!({}))] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        input.send(message.to_string().into_bytes()).await.unwrap();
        let line = output.recv().await.unwrap();
        let answer: Value = serde_json::from_slice(&line).unwrap();
        assert!(answer["result"].is_object(), "{answer}");
    }
    drop(input);
    assert!(ended.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_program_that_ends_answers_with_errors() {
    let argv = ["sh", "-c", "read -r line"].map(str::to_string).to_vec();
    let environment = [("PATH".to_string(), "/usr/bin:/bin".to_string())].into();
    let program = Upstream::Command(UpstreamCommand { argv, environment, folder: None });
    let proxy = proxy_of(program, Vec::new());
    let answer = call(&proxy.url(), "charge", json!({"amount": 1})).await;
    assert_eq!(answer["error"]["message"], "the program of the server has ended");
    let missing =
        UpstreamCommand { argv: vec!["/no/such/program".to_string()], ..UpstreamCommand::default() };
    let proxy = proxy_of(Upstream::Command(missing), Vec::new());
    let answer = call(&proxy.url(), "charge", json!({"amount": 1})).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("cannot be started"), "{answer}");
}

/// A program that answers `second` when `first` is cancelled, and other calls with the number of these two.
const WAITING_PROGRAM: &str = r#"
seen=0
answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$2\"}]}}"; }
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
    *notifications/cancelled*) case $line in *"\"requestId\":$first}"*) answer "$second" done ;; esac ;;
    *'"first"'*) first=$id; seen=$((seen + 1)) ;;
    *'"second"'*) second=$id; seen=$((seen + 1)) ;;
    *'"id":'*) answer "$id" "seen $seen" ;;
  esac
done
"#;

#[tokio::test]
async fn headers_of_a_proxy_replace_those_of_the_client() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let head = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            tokio::io::AsyncReadExt::read_buf(&mut stream, &mut head).await.unwrap();
        }
        String::from_utf8_lossy(&head).to_lowercase()
    });
    let headers = [("Authorization".to_string(), "Bearer real".to_string())].into();
    let proxy = proxy_of(Upstream::Url { url, headers }, Vec::new());
    let request = stateless(&proxy.url(), "tools/call", json!({"name": "charge", "arguments": {}}));
    // The server closes the connection without an answer.
    let _ = request.header("authorization", "Bearer agent").send().await;
    let head = head.await.unwrap();
    assert_eq!(head.matches("authorization:").count(), 1, "{head}");
    assert!(head.contains("authorization: bearer real"), "{head}");
}

#[tokio::test]
async fn a_client_cancels_its_own_call_of_a_shared_program() {
    let Upstream::Command(command) = program() else { panic!("a program") };
    let argv = ["sh", "-c", WAITING_PROGRAM].map(str::to_string).to_vec();
    let proxy = proxy_of(Upstream::Command(UpstreamCommand { argv, ..command }), Vec::new());
    // All clients use the same identifier.
    let send = |name: &str| {
        let request = stateless(&proxy.url(), "tools/call", json!({"name": name, "arguments": {}}));
        tokio::spawn(async move { json_of(request.send().await.unwrap()).await })
    };
    let second = send("second");
    let wait_until_seen = async |count: u64| {
        let seen = format!("seen {count}");
        while call(&proxy.url(), "count", json!({})).await["result"]["content"][0]["text"] != seen {}
    };
    wait_until_seen(1).await;
    let first = send("first");
    wait_until_seen(2).await;
    first.abort();
    assert_eq!(second.await.unwrap()["result"]["content"][0]["text"], "done");
}

/// A program that answers calls with tasks in the form of both revisions, `old` and `new`, of which `new` fails.
const TASK_PROGRAM: &str = r#"
answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
    *tools/call*'"old"'*) answer "$id" '{"task":{"taskId":"t-old","status":"working"}}' ;;
    *tools/call*'"new"'*) answer "$id" '{"resultType":"task","taskId":"t-new","status":"working"}' ;;
    *tasks/result*) answer "$id" '{"content":[{"type":"text","text":"charged"}]}' ;;
    *tasks/get*t-old*) answer "$id" '{"taskId":"t-old","status":"completed"}' ;;
    *tasks/get*) answer "$id" '{"resultType":"complete","taskId":"t-new","status":"failed","error":{"code":7,"message":"declined"}}' ;;
    *'"id":'*) answer "$id" '{}' ;;
  esac
done
"#;

#[tokio::test]
async fn the_answer_to_a_call_with_a_task_is_the_result_of_the_task() {
    let Upstream::Command(command) = program() else { panic!("a program") };
    let argv = ["sh", "-c", TASK_PROGRAM].map(str::to_string).to_vec();
    let program = || Upstream::Command(UpstreamCommand { argv: argv.clone(), ..command.clone() });
    let behind = proxy_of(program(), Vec::new());
    for mut proxy in [proxy_of(program(), Vec::new()), proxy_of(url_of(&behind), Vec::new())] {
        for (tool, requests) in
            [("old", &["tasks/get", "tasks/result", "tasks/result"][..]), ("new", &["tasks/get"])]
        {
            call(&proxy.url(), tool, json!({})).await;
            for method in requests {
                let params = json!({"taskId": format!("t-{tool}")});
                assert_eq!(stateless(&proxy.url(), method, params).send().await.unwrap().status(), 200);
            }
        }
        let mut events = Vec::new();
        while let Some(event) = proxy.conversation.try_next_event() {
            match event.kind {
                McpEventKind::TaskStarted { call } => events.push(format!("task {call}")),
                McpEventKind::CallAnswered { call, outcome, .. } => {
                    events.push(format!(
                        "answer {call} {:?}",
                        outcome.map(|result| result.text()).map_err(|e| e.message)
                    ));
                }
                _ => {}
            }
        }
        let expected = ["task 1", r#"answer 1 Ok("charged")"#, "task 2", r#"answer 2 Err("declined")"#];
        assert_eq!(events, expected);
    }
}

/// Runs one call at a server that answers with these events, and returns the result and the failures of the server. A fault that only
/// delays the answer takes another way through the proxy.
async fn call_answered_with(events: &str, is_delayed: bool) -> (Option<Value>, Vec<String>) {
    let events = events.to_string();
    let server = FakeAgent::start(move |_| FakeReply::sse().bytes(events.clone()));
    let kind = FaultKind::Delay(Duration::from_millis(1));
    let fault = FaultRule { tool: None, arguments: None, trigger: FaultTrigger::Nth(1), kind };
    let upstream = Upstream::Url { url: server.url(), headers: Default::default() };
    let mut proxy = proxy_of(upstream, if is_delayed { vec![fault] } else { Vec::new() });
    let params = json!({"name": "charge", "arguments": {"amount": 1}});
    let response = stateless(&proxy.url(), "tools/call", params).send().await.unwrap();
    body_of(response).await;
    let (mut failures, mut outcome) = (Vec::new(), None);
    while outcome.is_none() {
        let kind = proxy.conversation.next_event().await.unwrap().kind;
        failures.extend(kind.server_failure());
        if let McpEventKind::CallAnswered { outcome: answer, .. } = kind {
            outcome = Some(answer.ok().map(|result| result.value()));
        }
    }
    (outcome.flatten(), failures)
}

const CHARGED: &str =
    r#"data: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"charged"}]}}"#;

#[tokio::test]
async fn a_stream_without_an_answer_is_a_failure_of_the_server() {
    let notification = r#"data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}"#;
    let batch = CHARGED.replacen("{", "[{", 1) + "]";
    for (events, words, result) in [
        (String::new(), "without an answer", None),
        (format!("{notification}\n\n"), "without an answer", None),
        (format!("{batch}\n\n"), "an invalid message: batches are not supported", None),
        (format!("data: {{\"jsonrpc\":\n\n{CHARGED}\n\n"), "an invalid message: ", Some(json!("charged"))),
    ] {
        let (answered, failures) = call_answered_with(&events, false).await;
        assert_eq!(answered, result, "{events}");
        assert!(failures[0].contains(words), "{events}: {failures:?}");
        let (answered, failures) = call_answered_with(&events, true).await;
        assert_eq!(answered, result, "{events}");
        assert!(!failures.is_empty(), "{events}");
    }
}

/// Clients of streams that end regularly accept it.
#[tokio::test]
async fn a_last_event_without_its_empty_line_is_the_answer() {
    for is_delayed in [false, true] {
        for end in ["", "\n"] {
            let (answered, failures) = call_answered_with(&format!("{CHARGED}{end}"), is_delayed).await;
            assert_eq!((answered, failures), (Some(json!("charged")), Vec::new()));
        }
    }
}

/// A server that ends the stream of a call before its answer, and sends that when the client resumes the stream.
async fn resuming_server() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            let is_whole = |head: &[u8]| match head.starts_with(b"POST") {
                true => head.ends_with(b"}"),
                false => head.ends_with(b"\r\n\r\n"),
            };
            while !is_whole(&head) {
                tokio::io::AsyncReadExt::read_buf(&mut stream, &mut head).await.unwrap();
            }
            let events = match head.starts_with(b"GET") {
                true => {
                    "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"charged\"}]}}\n\n"
                }
                false => "id: 1\nretry: 5\ndata: \n\n",
            };
            let response = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}"
            );
            tokio::io::AsyncWriteExt::write_all(&mut stream, response.as_bytes()).await.unwrap();
        }
    });
    url
}

#[tokio::test]
async fn an_answer_on_a_resumed_stream_is_that_of_the_call() {
    let upstream = Upstream::Url { url: resuming_server().await, headers: Default::default() };
    let mut definition = ServerDefinition::new("proxy", ServerKind::Proxy(upstream));
    definition.record = true;
    let mut proxy = open(definition, FixedAnswerer::default());
    let params = json!({"name": "charge", "arguments": {"amount": 1}});
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let first = post(&proxy.url()).header("mcp-session-id", "s").body(message.to_string());
    let first = body_of(first.send().await.unwrap()).await.unwrap();
    assert!(!first.contains("charged"), "{first}");
    let gap = proxy.conversation.recording_gap("proxy");
    assert_eq!(gap.as_deref(), Some("a call has no answer yet"));
    // Another session resumes a stream of its own.
    for session in ["other", "s"] {
        let resumed = request_to(Method::GET, &proxy.url()).header("accept", "text/event-stream");
        let resumed = resumed.header("mcp-session-id", session).header("last-event-id", "1");
        let resumed = body_of(resumed.send().await.unwrap()).await.unwrap();
        assert!(resumed.contains("charged"), "{resumed}");
    }
    assert_eq!(answered(&mut proxy).await, (json!("charged"), true));
    assert_eq!(proxy.conversation.recording_gap("proxy"), None);
    let exchanges = proxy.conversation.recording("proxy").unwrap().exchanges;
    assert_eq!(exchanges.len(), 1);
    assert_eq!(exchanges[0].outcome.as_ref().unwrap()["content"][0]["text"], "charged");
    while let Some(event) = proxy.conversation.try_next_event() {
        assert!(!matches!(
            event.kind,
            McpEventKind::CallBrokenOff { .. } | McpEventKind::CallCancelled { .. }
        ));
    }
}

#[tokio::test]
async fn an_invalid_result_is_a_failure_of_the_server() {
    let Upstream::Command(command) = program() else { panic!("a program") };
    for (result, problem) in [
        ("null", "it is no object"),
        ("[1]", "it is no object"),
        (r#"{"content":"oops"}"#, "`content` is no list of objects"),
        (r#"{"content":["oops"]}"#, "`content` is no list of objects"),
        (r#"{"content":[],"isError":"true"}"#, "`isError` is neither true nor false"),
        (r#"{"content":[],"resultType":"other"}"#, "its `resultType` is not known"),
    ] {
        let script = ECHO_PROGRAM.replace(
            r#"{\"content\":[{\"type\":\"text\",\"text\":\"from a program\"}]}"#,
            &result.replace('"', "\\\""),
        );
        let argv = ["sh", "-c", &script].map(str::to_string).to_vec();
        let mut proxy = proxy_of(Upstream::Command(UpstreamCommand { argv, ..command.clone() }), Vec::new());
        let session = SessionClient::open(&proxy.url(), "2025-11-25").await;
        let params = json!({"name": "any", "arguments": {}});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        body_of(session.send(message).await).await.unwrap();
        let failure = proxy.wait_for(|event| event.server_failure());
        let failure = failure.await;
        assert!(failure.contains(problem), "{result}: {failure}");
    }
}

#[test]
fn invalid_definitions_are_errors() {
    let proxy = |url: &str| {
        ServerDefinition::new(
            "p",
            ServerKind::Proxy(Upstream::Url { url: url.to_string(), headers: Default::default() }),
        )
    };
    let empty = Upstream::Command(UpstreamCommand::default());
    let mut bad_schema = charge();
    bad_schema.input_schema = json!({"type": 3});
    for (definition, expected) in [
        (proxy("ftp://x"), "must begin with http://"),
        (proxy("nonsense"), "is invalid"),
        (ServerDefinition::new("p", ServerKind::Proxy(empty)), "is empty"),
        (ServerDefinition::mock("a b", Vec::new()), "a name consists of"),
        (ServerDefinition::mock("p", vec![bad_schema]), "`inputSchema` of the tool `charge`"),
        (ServerDefinition::mock("p", vec![charge(), charge()]), "two tools have the name"),
    ] {
        let error = McpServers::start(vec![definition], McpOptions::default()).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
