//! Clients and proxied servers that send without end, too much, or nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hotseat_mcp::{
    FaultKind, FaultRule, FaultTrigger, FixedAnswerer, McpAnswer, McpCall, McpEventKind, McpLimits,
    McpOptions, McpServers, McpToolResult, ServerDefinition, ServerKind, Upstream, UpstreamCommand,
};
use hotseat_testkit::{FakeAgent, FakeReply};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{Answers, body_of, charge, json_of, open, post, stateless};

/// Time that no test reaches.
const LONG: Duration = Duration::from_secs(60);

/// Awaits something that must not take long.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future).await.unwrap_or_else(|_| panic!("{what}: nothing happens"))
}

fn bank() -> (ServerDefinition, Arc<Answers<impl Fn(&McpCall) -> McpAnswer + Send + Sync>>) {
    let answers = |_: &McpCall| McpAnswer::Result(McpToolResult::from_value(json!("charged")));
    (ServerDefinition::mock("bank", vec![charge()]), Arc::new(Answers(answers)))
}

#[tokio::test]
async fn connections_that_send_nothing_keep_no_client_out() {
    let limits = McpLimits { max_connections: 8, ..McpLimits::default() };
    let (definition, answers) = bank();
    let servers =
        McpServers::start(vec![definition], McpOptions { limits, ..McpOptions::default() }).unwrap();
    let conversation = servers.open_conversation("case", answers, Vec::new()).unwrap();
    let url = conversation.url("bank").unwrap();
    for beginning in ["", "POST /mcp HTTP/1.1\r\nx-endless: "] {
        let mut half_open = Vec::new();
        for _ in 0..100 {
            let mut stream = TcpStream::connect(servers.address()).await.unwrap();
            // The server may have closed it already.
            let _ = stream.write_all(beginning.as_bytes()).await;
            half_open.push(stream);
        }
        let params = json!({"name": "charge", "arguments": {"amount": 5}});
        // A kept-alive connection is idle between two requests, and may have to go as well.
        let request = stateless(&url, "tools/call", params).header("connection", "close");
        let answer = json_of(soon("a call", request.send()).await.unwrap()).await;
        assert!(answer["result"].is_object(), "{answer}");
        // The oldest one had to go.
        let mut rest = Vec::new();
        let _ = soon("the oldest connection", half_open[0].read_to_end(&mut rest)).await;
    }
}

/// A broken body is no message that is too long.
#[tokio::test]
async fn broken_bodies_are_no_reached_limit() {
    let (definition, answers) = bank();
    let servers = McpServers::start(vec![definition], McpOptions::default()).unwrap();
    let mut conversation = servers.open_conversation("case", answers, Vec::new()).unwrap();
    let url = conversation.url("bank").unwrap();
    let path = &url[url.find("/mcp").expect("a path")..];
    let host = servers.address();
    let head = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n");
    let mut stream = TcpStream::connect(host).await.unwrap();
    let broken = format!("{head}transfer-encoding: chunked\r\nconnection: close\r\n\r\nnot a size\r\n");
    stream.write_all(broken.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = soon("an answer", stream.read_to_string(&mut answer)).await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("the body is incomplete: "), "{answer}");
    let event = conversation.try_next_event().expect("an event");
    assert!(matches!(event.kind, McpEventKind::RequestBroken { .. }), "{event:?}");
}

#[tokio::test]
async fn messages_with_very_many_values_are_refused() {
    let (definition, _) = bank();
    let fixture = open(definition, FixedAnswerer::default());
    let values = format!("[{}1]", "1,".repeat(1_100_000));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}).to_string();
    let body = body.replace("{}", &format!("{{\"all\":{values}}}"));
    let request = stateless(&fixture.url(), "ping", json!({})).body(body);
    let answer = json_of(soon("an answer", request.send()).await.unwrap()).await;
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("more than 1000000 JSON values"), "{answer}");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let request = post(&fixture.url()).body(deep);
    let answer = json_of(soon("an answer", request.send()).await.unwrap()).await;
    assert!(answer["error"]["message"].is_string(), "{answer}");
}

#[tokio::test]
async fn a_repeated_key_is_refused() {
    let (definition, _) = bank();
    let fixture = open(definition, FixedAnswerer::default());
    let params = json!({"name": "charge", "arguments": {"amount": 5}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let body = body.replace(r#""amount":5"#, r#""amount":5000,"amount":5"#);
    let request = stateless(&fixture.url(), "tools/call", json!({})).body(body);
    let answer = json_of(soon("an answer", request.send()).await.unwrap()).await;
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with(r#"the message has a duplicate key "amount""#), "{answer}");
}

/// A lenient server would execute what Hotseat cannot read or sees no answer of, and no check would see the call.
#[tokio::test]
async fn a_proxy_forwards_no_call_that_it_cannot_observe() {
    let call = |id: &str, arguments: &str| {
        let params = format!(r#"{{"name":"charge","arguments":{arguments}}}"#);
        format!(r#"{{"jsonrpc":"2.0",{id}"method":"tools/call","params":{params}}}"#)
    };
    let whole = call(r#""id":1,"#, "{}");
    let utf_16 = whole.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let is_forwarded = Arc::new(AtomicBool::new(false));
    let seen = is_forwarded.clone();
    let server = FakeAgent::start(move |_| {
        seen.store(true, Ordering::Relaxed);
        FakeReply::status(202)
    });
    let upstream = Upstream::Url { url: server.url(), headers: Default::default() };
    let url = ServerDefinition::new("proxy", ServerKind::Proxy(upstream));
    let (mock, _) = bank();
    for definition in [mock, program_that_prints(""), url] {
        let name = definition.name.clone();
        let mut fixture = open(definition, FixedAnswerer::default());
        let url = fixture.url();
        let post = |body: &[u8]| post(&url).body(body.to_vec()).send();
        for (body, words) in [
            (call(r#""id":1,"#, r#"{"amount":NaN}"#).into_bytes(), "the message "),
            (utf_16.clone(), "the message "),
            (whole.replace(r#""name""#, r#""name":"list","name""#).into_bytes(), "a duplicate key \"name\""),
            (format!("[{whole}]").into_bytes(), "batches are not supported"),
            (whole.replace(r#""jsonrpc":"2.0","#, "").into_bytes(), "`jsonrpc` must be \"2.0\""),
            (call(r#""id":null,"#, "{}").into_bytes(), "`id` must be a text or a number"),
            (call(r#""id":{"a":1},"#, "{}").into_bytes(), "`id` must be a text or a number"),
            (call("", "{}").into_bytes(), "a call of a tool needs an `id`"),
        ] {
            let response = soon(words, post(&body)).await.unwrap();
            assert_eq!(response.status(), 400, "{name}: {words}");
            let answer = json_of(response).await;
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains(words), "{name}: {answer}");
            let event = fixture.conversation.try_next_event().expect("a note");
            let noted =
                matches!(&event.kind, McpEventKind::ProtocolError { message, .. } if message.contains(words));
            assert!(noted, "{name}: {event:?}");
        }
        assert!(!is_forwarded.load(Ordering::Relaxed));
        let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        assert_eq!(soon("a notification", post(cancelled.as_bytes())).await.unwrap().status(), 202, "{name}");
    }
    assert!(is_forwarded.load(Ordering::Relaxed), "notifications pass");
}

/// A program that prints this before its answers.
fn program_that_prints(noise: &str) -> ServerDefinition {
    let script = format!(
        r#"while read -r line; do
  id=${{line#*\"id\":}}; id=${{id%%,*}}
  {noise}
  case $line in
    *'"id":'*) echo "{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"tools\":[],\"content\":[]}}}}" ;;
  esac
done"#
    );
    let argv = ["sh", "-c", &script].map(str::to_string).to_vec();
    let environment = [("PATH".to_string(), "/usr/bin:/bin".to_string())].into();
    let command = UpstreamCommand { argv, environment, folder: None };
    ServerDefinition::new("proxy", ServerKind::Proxy(Upstream::Command(command)))
}

#[tokio::test]
async fn a_program_may_print_much_before_it_answers() {
    for noise in [
        "yes '' | head -n 2000000",
        "yes '{}' | head -n 300000",
        r#"yes '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}' | head -n 20000"#,
    ] {
        let fixture = open(program_that_prints(noise), FixedAnswerer::default());
        let request = stateless(&fixture.url(), "tools/list", json!({})).send();
        let answer = soon(noise, async { body_of(request.await.unwrap()).await.unwrap() }).await;
        assert!(answer.contains("\"tools\":[]"), "{noise}: {}", &answer[..answer.len().min(300)]);
    }
}

#[tokio::test]
async fn a_program_with_very_many_tools_delays_no_one() {
    let tools: Vec<Value> = (0..20_000)
        .map(|n| json!({"name": format!("t{n}"), "inputSchema": {"type": "object", "properties": {"a": {"pattern": "^(a|b)*$"}}}}))
        .collect();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let body = body.clone();
            tokio::spawn(async move {
                let mut received = [0; 65_536];
                let _ = stream.read(&mut received).await;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                let _ = stream
                    .write_all(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes())
                    .await;
            });
        }
    });
    let upstream = Upstream::Url { url: format!("http://{address}/"), headers: Default::default() };
    let fixture = open(ServerDefinition::new("proxy", ServerKind::Proxy(upstream)), FixedAnswerer::default());
    let request = stateless(&fixture.url(), "tools/list", json!({})).send();
    let answer = soon("a list", async { json_of(request.await.unwrap()).await }).await;
    assert_eq!(answer["result"]["tools"].as_array().map(Vec::len), Some(20_000));
}

/// A server that sends events and never ends its answer.
#[tokio::test]
async fn an_endless_answer_ends_with_its_conversation() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (ended, mut end) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let ended = ended.clone();
            tokio::spawn(async move {
                let mut received = [0; 65_536];
                let _ = stream.read(&mut received).await;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(head.as_bytes()).await;
                let message =
                    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": 1}});
                let event = format!("data: {message}\n\n").repeat(100);
                while stream.write_all(event.as_bytes()).await.is_ok() {}
                let _ = ended.send(());
            });
        }
    });
    let upstream = Upstream::Url { url: format!("http://{address}/"), headers: Default::default() };
    let fixture = open(ServerDefinition::new("proxy", ServerKind::Proxy(upstream)), FixedAnswerer::default());
    for (method, params) in [("tools/call", json!({"name": "charge"})), ("tools/list", json!({}))] {
        let mut response = soon(method, stateless(&fixture.url(), method, params).send()).await.unwrap();
        assert!(soon(method, response.next_bytes()).await.unwrap().is_some());
        if method == "tools/list" {
            fixture.conversation.close();
        }
        let rest = soon(method, async {
            // The client reads on; only the end of the conversation ends the answer.
            let is_first = method == "tools/call";
            while !is_first && matches!(response.next_bytes().await, Ok(Some(_))) {}
        });
        rest.await;
    }
    // Both connections to the proxied server are closed.
    for _ in 0..2 {
        soon("the end of a connection", end.recv()).await;
    }
}

/// A server that asks its client without end on the stream of a call.
async fn asking_server() -> Upstream {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut received = [0; 65_536];
                let _ = stream.read(&mut received).await;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(head.as_bytes()).await;
                for id in 0.. {
                    let params = json!({"message": "Sure?"});
                    let asked =
                        json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
                    if stream.write_all(format!("data: {asked}\n\n").as_bytes()).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    Upstream::Url { url, headers: Default::default() }
}

#[tokio::test]
async fn a_call_that_asks_without_end_fails() {
    let ask = r#"i=0; while case $line in *tools/call*) true ;; *) false ;; esac; do i=$((i + 1))
      echo "{\"jsonrpc\":\"2.0\",\"id\":\"q$i\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"Sure?\"}}"
    done"#;
    let proxy = async || ServerDefinition::new("proxy", ServerKind::Proxy(asking_server().await));
    let mut faulty = proxy().await;
    let kind = FaultKind::Empty;
    faulty.faults = vec![FaultRule { tool: None, arguments: None, trigger: FaultTrigger::Nth(1), kind }];
    for (what, definition) in
        [("a program", program_that_prints(ask)), ("a URL", proxy().await), ("a fault", faulty)]
    {
        let mut fixture = open(definition, FixedAnswerer::default());
        let request = stateless(&fixture.url(), "tools/call", json!({"name": "charge"}));
        // The answer of a URL breaks off, perhaps before its head.
        if let Ok(response) = soon(what, request.send()).await {
            soon(what, body_of(response)).await;
        }
        let mut asked = 0;
        let failure = loop {
            let event = soon(what, fixture.conversation.next_event()).await.unwrap();
            asked += usize::from(matches!(event.kind, McpEventKind::InputRequested { .. }));
            if let Some(failure) = event.kind.server_failure() {
                break failure;
            }
        };
        assert_eq!((asked, failure.as_str()), (32, "the call asked for input more than 32 times"), "{what}");
    }
}

/// A client of revision 2026-07-28 calls again for each question.
#[tokio::test]
async fn a_call_whose_answers_ask_without_end_fails() {
    let ask = r#"case $line in *tools/call*)
      echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{\"q\":{}},\"requestState\":\"s\"}}"
      continue ;; esac"#;
    let upstream = FakeAgent::start(|_: &hotseat_testkit::FakeRequest| {
        let result = json!({"resultType": "input_required", "inputRequests": {"q": {}}, "requestState": "s"});
        FakeReply::json(200, &json!({"jsonrpc": "2.0", "id": 1, "result": result}))
    });
    let url = Upstream::Url { url: upstream.url().to_string(), headers: Default::default() };
    for (what, definition) in [
        ("a program", program_that_prints(ask)),
        ("a URL", ServerDefinition::new("proxy", ServerKind::Proxy(url))),
    ] {
        let mut fixture = open(definition, FixedAnswerer::default());
        let mut params = json!({"name": "charge"});
        for round in 1..=32 {
            let answer = soon(what, stateless(&fixture.url(), "tools/call", params.clone()).send()).await;
            let answer = json_of(answer.unwrap()).await;
            assert_eq!(answer["result"]["resultType"], "input_required", "{what}, round {round}: {answer}");
            params["requestState"] = answer["result"]["requestState"].clone();
            params["inputResponses"] = json!({"q": {"action": "accept"}});
        }
        // The answer of a URL breaks off before its head.
        if let Ok(response) = soon(what, stateless(&fixture.url(), "tools/call", params).send()).await {
            let refused = json_of(response).await;
            let message = "the call asked for input more than 32 times";
            assert_eq!(refused["error"]["message"], message, "{what}: {refused}");
        }
        let failure = soon(what, fixture.wait_for(McpEventKind::server_failure)).await;
        assert_eq!(failure, "the call asked for input more than 32 times", "{what}");
    }
}

/// Keeps a slow call alive: a `ping` asks for nothing.
#[tokio::test]
async fn a_server_may_ping_its_client_often() {
    let ping = r#"case $line in *tools/call*) yes '{"jsonrpc":"2.0","id":"p","method":"ping"}' | head -n 100 ;; esac"#;
    let fixture = open(program_that_prints(ping), FixedAnswerer::default());
    let request = stateless(&fixture.url(), "tools/call", json!({"name": "charge"})).send();
    let answer = soon("an answer", async { body_of(request.await.unwrap()).await.unwrap() }).await;
    assert!(answer.contains("\"content\":[]"), "{answer}");
}
