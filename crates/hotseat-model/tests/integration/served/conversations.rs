//! Conversations, their addresses, events and limits.

use std::sync::Arc;

use hotseat_http::HttpClients;
use hotseat_model::serve::{ModelServers, ServeLimits};
use http::Method;
use serde_json::json;

use super::common::{PATHS, Served, ask, models, read, request, streamed};

const ECHO: &str =
    "use: always\nrules:\n  - reply: \"{{ conversation }}: {{ user }}, {{ turn }}.{{ call }}\"";

#[tokio::test]
async fn each_conversation_has_its_own_rules_and_events() {
    let servers = ModelServers::start(ServeLimits::default()).unwrap();
    let once = "rules:\n  - reply: \"{{ conversation }} first\"\n  - reply: \"{{ conversation }} second\"";
    let ids: Vec<String> = (0..32).map(|number| format!("case-{number}")).collect();
    let mut opened: Vec<_> =
        ids.iter().map(|id| servers.open_conversation(id, models(once, Vec::new()))).collect();
    let clients: Arc<HttpClients> = Arc::default();
    let mut tasks = tokio::task::JoinSet::new();
    for (conversation, id) in opened.iter().zip(&ids) {
        let (url, id, clients) = (conversation.url("main").unwrap(), id.clone(), clients.clone());
        assert!(url.starts_with("http://127.0.0.1:") && url.contains("/models/main/"), "{url}");
        tasks.spawn(async move {
            for expected in ["first", "second"] {
                let request = request(&clients, Method::POST, &format!("{url}/{}", PATHS[0]));
                let response = request.body(ask(PATHS[0], "x").to_string()).send().await.unwrap();
                let reply = read(response).await.json();
                let text = reply["choices"][0]["message"]["content"].as_str().unwrap();
                assert_eq!(text, format!("{id} {expected}"));
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    for conversation in &mut opened {
        assert_eq!(std::iter::from_fn(|| conversation.try_next_event()).count(), 4);
    }
}

#[tokio::test]
async fn positions_follow_from_the_messages() {
    let mut served = Served::script(ECHO);
    let messages = json!([
        {"role": "user", "content": "one"}, {"role": "assistant", "content": "x"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    ]);
    let body = json!({"model": "gpt", "messages": messages});
    let reply = served.post(PATHS[0], &body).await.json();
    assert_eq!(reply["choices"][0]["message"]["content"], "c1: two, 2.2");
    served.post(PATHS[0], &body).await;
    let events = served.events();
    assert_eq!(
        events[0],
        "1 received: ChatCompletions for gpt, conversation c1, agent gpt, turn 2, call 2, 0 tools"
    );
    assert_eq!(events[1], "1 answered: \"c1: two, 2.2\" ");
    assert!(events[2].contains("turn 2, call 2, attempt 2"), "{events:?}");
}

#[tokio::test]
async fn tool_calls_of_a_conversation_have_different_ids() {
    let served = Served::script("use: always\nrules:\n  - reply: { tool_calls: [search, search] }");
    let mut ids = std::collections::BTreeSet::new();
    for stream in [false, true] {
        let body = ask(PATHS[0], "x");
        let answer = match stream {
            false => served.post(PATHS[0], &body).await,
            true => served.post(PATHS[0], &streamed(body)).await,
        };
        let text = answer.body;
        ids.extend(
            text.split("\"id\":\"call").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()),
        );
    }
    assert_eq!(ids.len(), 4, "{ids:?}");
}

#[tokio::test]
async fn addresses_work_with_and_without_the_version() {
    let served = Served::script(ECHO);
    for path in ["chat/completions", "v1/chat/completions", "v1/v1/messages", "messages", "responses"] {
        let bare = path.trim_start_matches("v1/");
        assert_eq!(served.post(path, &ask(&format!("v1/{bare}"), "x")).await.status, 200, "{path}");
    }
    let list = served.send(served.request(Method::GET, &format!("{}/v1/models", served.url()))).await;
    assert_eq!(list.json()["data"][0]["id"], "script.yaml");
    let counted = served.post("v1/messages/count_tokens", &ask(PATHS[2], "12345678")).await;
    assert_eq!(counted.json(), json!({"input_tokens": 2}));
    let missing = served.post("v1/embeddings", &json!({})).await;
    assert_eq!(missing.status, 404);
    assert!(missing.body.contains("POST v1/embeddings") || missing.body.contains("POST embeddings"));
}

#[tokio::test]
async fn foreign_pages_and_unknown_addresses_are_refused() {
    let served = Served::script(ECHO);
    let url = format!("{}/{}", served.url(), PATHS[0]);
    let post = |url: &str| served.request(Method::POST, url).body(ask(PATHS[0], "x").to_string());
    let foreign_host = served.send(post(&url).header("host", "evil.example")).await;
    assert_eq!(foreign_host.status, 403);
    let foreign_page = served.send(post(&url).header("origin", "https://evil.example")).await;
    assert_eq!(foreign_page.status, 403);
    let other_model = served.send(post(&url.replace("/main/", "/other/"))).await;
    assert_eq!(other_model.status, 404);
    assert!(other_model.body.contains("served models: main"));
    let guessed = url.replace(url.split('/').nth(5).unwrap(), "0000");
    assert_eq!(served.send(post(&guessed)).await.status, 404);
    served.conversation.close();
    let closed = served.send(post(&url)).await;
    assert!(closed.status == 404 && closed.body.contains("the conversation has ended"));
}

#[tokio::test]
async fn requests_with_very_many_values_are_refused() {
    let served = Served::script("rules: [{ reply: never }]");
    let answer = served.post_text(PATHS[0], format!("[{}1]", "1,".repeat(1_100_000))).await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("more than 1000000 JSON values"), "{}", answer.body);
    let deep = served.post_text(PATHS[0], "[".repeat(1_000_000)).await;
    assert_eq!(deep.status, 400);
}

#[tokio::test]
async fn limits_are_enforced() {
    let limits = ServeLimits { max_body_bytes: 1000, max_open_requests: 1, ..ServeLimits::default() };
    let slow = "rules:\n  - delay_ms: 3600000\n    reply: never\n  - reply: second";
    let mut served = Served::with(slow, Vec::new(), limits);
    let long = served.post(PATHS[0], &ask(PATHS[0], &"x".repeat(2000))).await;
    assert_eq!(long.status, 413);
    let url = format!("{}/{}", served.url(), PATHS[0]);
    let waiting =
        tokio::spawn(served.request(Method::POST, &url).body(ask(PATHS[0], "x").to_string()).send());
    assert!(served.events()[0].contains("refused: the body is longer than 1000 bytes"));
    served.conversation.next_event().await.unwrap();
    let further = served.post(PATHS[0], &ask(PATHS[0], "x")).await;
    assert_eq!(further.status, 503);
    // A client that disconnects ends its call.
    waiting.abort();
    let failed = served.conversation.next_event().await.unwrap();
    assert!(format!("{:?}", failed.kind).contains("has 1 open requests"), "{failed:?}");
    let failed = served.conversation.next_event().await.unwrap();
    assert!(format!("{:?}", failed.kind).contains("the client disconnected"), "{failed:?}");
}
