//! Relays: bytes pass unchanged, are recorded, and are replayed by lane and content.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_http::HttpClients;
use hotseat_model::Secret;
use hotseat_model::serve::{
    CassetteFile, ModelCassette, ModelRelay, ModelServers, RecordTarget, ReplaySource, ServeLimits,
    ServedConversation, ServedModel, ServedSource, TextCleaner,
};
use hotseat_testkit::TestWorkspace;
use http::Method;
use serde_json::{Value, json};

use super::common::{Served, read, request};

const RULES: &str = "rules:
  - when: { user: weather }
    use: always
    reply: { tool_calls: [{ name: find, arguments: { id: a } }], usage: { input_tokens: 3, output_tokens: 2 } }
  - use: always
    reply: Hello there.
";

fn open(source: ServedSource) -> (ModelServers, ServedConversation) {
    let servers = ModelServers::start(ServeLimits::default()).unwrap();
    let model = ServedModel { source, faults: Vec::new() };
    let conversation = servers.open_conversation("c1", BTreeMap::from([("main".to_owned(), model)]));
    (servers, conversation)
}

async fn post(url: &str, path: &str, body: &Value) -> (u16, String, String) {
    let request = request(&HttpClients::default(), Method::POST, &format!("{url}/{path}"));
    let request = request.header("authorization", "Bearer agent-key-1").body(body.to_string());
    let answer = read(request.send().await.unwrap()).await;
    assert!(!answer.is_broken);
    (answer.status, answer.header("content-type").unwrap().to_owned(), answer.body)
}

fn requests() -> [(&'static str, Value); 4] {
    let ask = |text: &str, stream: bool| json!({"model": "m", "stream": stream, "max_tokens": 9, "messages": [{"role": "user", "content": text}]});
    [
        ("v1/chat/completions", ask("hi", false)),
        ("chat/completions", ask("weather", true)),
        ("v1/messages", ask("weather", true)),
        ("v1/responses", json!({"model": "m", "input": "my key is agent-key-1"})),
    ]
}

/// A recording with one exchange of each method and query, of which the last one is of an earlier version.
const FILES: &str = r#"{"format":"hotseat-served-model","version":1}
{"lane":"l1","model":"main","method":"GET","path":"files","query":"after=1","request":null,"status":200,"response":"first","took_ms":1}
{"lane":"l1","model":"main","method":"POST","path":"orders","request":{"type":"order","id":"o-1"},"status":200,"response":"ordered","took_ms":1}
{"lane":"l1","model":"main","path":"old","request":null,"status":200,"response":"any","took_ms":1}
"#;

#[tokio::test]
async fn a_replay_compares_methods_queries_and_data() {
    let replay = || {
        let cassette = Arc::new(ModelCassette::parse(FILES).unwrap());
        let cleaner = TextCleaner::default();
        open(ServedSource::Replay(ReplaySource {
            cassette,
            lane: "l1".to_owned(),
            ignored: Vec::new(),
            cleaner,
        }))
    };
    let order = |id: &str| json!({"type": "order", "id": id}).to_string();
    for (method, path, body, expected) in [
        (Method::GET, "files?after=1&key=other", String::new(), "first"),
        (Method::GET, "files?after=2", String::new(), "it is GET files?after=1"),
        (Method::DELETE, "files?after=1", String::new(), "it is GET files?after=1"),
        (Method::POST, "orders", order("o-1"), "ordered"),
        (Method::POST, "orders", order("o-2"), r#"/id: recorded \"o-1\", now \"o-2\""#),
        (Method::DELETE, "old?a=1", String::new(), "any"),
    ] {
        let (_servers, conversation) = replay();
        let url = format!("{}/{path}", conversation.url("main").unwrap());
        let asked = request(&HttpClients::default(), method.clone(), &url).body(body);
        let answer = read(asked.send().await.unwrap()).await;
        assert!(answer.body.contains(expected), "{method} {path}: {}", answer.body);
    }
}

/// In the query of the agent, also encoded, and in that of the URL of the provider.
#[tokio::test]
async fn keys_in_queries_are_not_recorded() {
    let provider = Served::script(RULES);
    let workspace = TestWorkspace::new();
    let path = workspace.path("main.jsonl");
    let ask =
        |words: &str| json!({"model": "m", "messages": [{"role": "user", "content": format!("hi {words}")}]});
    for (base, query, words) in [
        ("", "?a=1&Key=query-key-1", "query-key-1"),
        ("", "?access_token=query%2Fkey+2", "query/key 2"),
        ("", "?api%2Dkey=query-key-3", "query-key-3"),
        ("?key=query-key-4", "", "query-key-4"),
    ] {
        let file = Arc::new(CassetteFile::new(path.clone()));
        let relay = ModelRelay::new(&format!("{}{base}", provider.url()), &[]).unwrap();
        let cleaner = TextCleaner::default();
        let target = RecordTarget { file, lane: "l1".to_owned(), cleaner: cleaner.clone() };
        let (_servers, conversation) = open(ServedSource::Relay(Arc::new(relay), Some(target)));
        let request = format!("chat/completions{query}");
        let live = post(&conversation.url("main").unwrap(), &request, &ask(words)).await;
        assert!(live.2.contains("Hello there."), "{live:?}");
        conversation.save_recordings().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("hi [key]") && !text.contains(words), "{query}: {text}");
        if base.is_empty() {
            let cassette = Arc::new(ModelCassette::parse(&text).unwrap());
            let replay = ReplaySource { cassette, lane: "l1".to_owned(), ignored: Vec::new(), cleaner };
            let (_servers, conversation) = open(ServedSource::Replay(replay));
            let replayed = post(&conversation.url("main").unwrap(), &request, &ask(words)).await;
            assert_eq!(replayed, live, "{query}");
        }
    }
}

#[tokio::test]
async fn bytes_pass_unchanged_and_are_replayed() {
    let provider = Served::script(RULES);
    let workspace = TestWorkspace::new();
    let path = workspace.path("a/main.jsonl");
    let file = Arc::new(CassetteFile::new(path.clone()));
    let relay = ModelRelay::new(&provider.url(), &[("x-extra".to_owned(), Secret::new("1"))]).unwrap();
    let cleaner = TextCleaner::new(|text| text.replace("weather", "[secret]"));
    let target = RecordTarget { file, lane: "l1".to_owned(), cleaner: cleaner.clone() };
    let (_servers, conversation) = open(ServedSource::Relay(Arc::new(relay), Some(target)));
    let mut live = Vec::new();
    for (path, body) in requests() {
        live.push(post(&conversation.url("main").unwrap(), path, &body).await);
    }
    assert!(live[0].2.contains("Hello there."), "{live:?}");
    assert_eq!(live[1].1, "text/event-stream; charset=utf-8");
    conversation.save_recordings().unwrap();

    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("agent-key-1") && !text.contains("weather"), "{text}");
    let cassette = Arc::new(ModelCassette::parse(&text).unwrap());
    assert_eq!(cassette.exchanges().len(), 4);
    let replay = ReplaySource { cassette, lane: "l1".to_owned(), ignored: Vec::new(), cleaner };
    let (_servers, conversation) = open(ServedSource::Replay(replay));
    let url = conversation.url("main").unwrap();
    // In another order: the identity is the content. The key in the body was not recorded.
    for index in [2, 3, 0] {
        let (path, body) = &requests()[index];
        assert_eq!(post(&url, path, body).await, live[index]);
    }
    let (status, _, body) = post(&url, "v1/chat/completions", &requests()[0].1).await;
    assert_eq!(status, 400);
    assert!(body.contains("the recording has no further answer to this request"), "{body}");
    assert_eq!(
        conversation.unused_answers().collect::<Vec<_>>(),
        [("main", vec!["the exchange in line 3".to_owned()])]
    );
}
