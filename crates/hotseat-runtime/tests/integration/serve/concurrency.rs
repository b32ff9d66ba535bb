//! Concurrent turns, and behaviour without a connected client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hotseat_http::IncomingResponse;
use hotseat_model::script::{Rule, ScriptedModel};
use hotseat_model::{
    LiveModel, Model, ModelError, ModelErrorKind, ModelRequest, ReplyDelta, ReplyFuture, ReplySink,
};
use hotseat_runtime::definition::{Persona, mock, persona, task, tool, workflow};
use hotseat_runtime::live::HostOptions;
use hotseat_runtime::serve::{InputLine, ServeOptions, ServedAgent, serve_lines};
use hotseat_runtime::store::{InMemoryStore, SqliteStore};
use http::Method;
use serde_json::{Value, json};

use super::kit::{
    AgUiClient, EVENT_TIMEOUT, OutputPiece, TestServer, abbreviate, controlled_model, events, rejection,
    scripted, send, serve, serve_with, store_options, text,
};

/// An agent with an asynchronous research tool of this duration.
fn researcher(delay_ms: u64) -> Persona {
    let slow =
        workflow("Slow").node(task("Slow").step(mock().delay_ms(delay_ms).returns(json!({"found": "gold"}))));
    persona("Researcher").tool(tool("research").workflow(&slow).asynchronous())
}

fn answers() -> LiveModel<ScriptedModel> {
    scripted([
        Rule::new().notice("gold").say("I found gold."),
        Rule::new().user("find").call(1).say("I have started.").call_tool("research", json!({})),
        Rule::new().say("It is noon."),
        Rule::new().say("It is one."),
    ])
}

/// Reads events of a response until one contains this text.
async fn read_until(mut response: IncomingResponse, part: &str) -> (String, IncomingResponse) {
    let seen = super::kit::read_until(&mut response, part).await;
    (seen, response)
}

/// Ids and names of the events of a thread.
fn names(stream: &str) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    for event in stream.split("\n\n") {
        let line = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        if let (Some(id), Some(name)) = (line("id: "), line("event: ")) {
            found.push((id.parse().unwrap(), name.to_string()));
        }
    }
    found
}

#[tokio::test]
async fn second_message_starts_turn_during_async_turn() {
    let served = serve(&researcher(1500), answers()).await;
    let mut client = AgUiClient::new(&served, "t");
    client.user("find it");
    let body = client.body(None);
    let first = served.post("/", &body).await;
    let (seen, rest) = read_until(first, "TOOL_CALL_END").await;
    // Its message is not answered, and there is no other one yet.
    let (status, words) = rejection(served.post("/", &body).await).await;
    assert!(
        status == 409 && words.contains("turn 1 still waits for asynchronous tools; fetch the thread"),
        "{words}"
    );
    // The client sends its history with the next message.
    let mut beside = AgUiClient::new(&served, "t");
    beside.messages.clone_from(&client.messages);
    beside.process_events(&events(&seen));
    let told = abbreviate(&beside.say("what time is it?").await);
    assert_eq!(beside.last_text(), "It is noon.");
    assert!(told.iter().all(|line| !line.contains("t-t1-")), "one run tells of one turn: {told:#?}");
    assert_eq!(told.last().unwrap(), r#"RUN_FINISHED {"type":"success"}"#);
    let state = served.host.conversation(&"t".into(), &"researcher".into()).await.unwrap();
    let state = state.state().await.unwrap();
    assert!(state.turns[0].is_active() && !state.turns[1].is_active(), "the second turn ended first");
    // The first run ends with the answer of its own turn.
    tokio::time::timeout(EVENT_TIMEOUT, text(rest)).await.expect("the first run ends");
    let state = served.host.conversation(&"t".into(), &"researcher".into()).await.unwrap();
    let state = state.state().await.unwrap();
    let said: Vec<&str> = state.messages.iter().map(|message| &*message.content).collect();
    let expected = ["find it", "I have started.", "what time is it?", "It is noon.", "I found gold."];
    assert_eq!(said, expected);
}

/// A model whose first reply to the question about the time breaks off when the other turn has ended.
struct RestartingModel {
    model: LiveModel<ScriptedModel>,
    has_restarted: AtomicBool,
}

impl Model for RestartingModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn call<'a>(&'a self, request: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
        let asks_time = format!("{:?}", request.messages.last()).contains("what time");
        if !asks_time || self.has_restarted.swap(true, Ordering::SeqCst) {
            return self.model.call(request, sink);
        }
        Box::pin(async move {
            sink.delta(ReplyDelta::Text { text: "It may be".to_string() });
            tokio::time::sleep(Duration::from_millis(1500)).await;
            Err(ModelError::new(ModelErrorKind::Server, "restarted"))
        })
    }
}

/// A snapshot replaces all messages of the client, also those that a turn beside the run has brought meanwhile.
#[tokio::test]
async fn snapshots_have_the_messages_of_turns_beside_the_run() {
    for sends_history in [true, false] {
        let model = RestartingModel { model: answers(), has_restarted: AtomicBool::new(false) };
        let served = serve(&researcher(500), model).await;
        let mut client = AgUiClient::new(&served, "t");
        client.user("find it");
        let first = served.post("/", &client.body(None)).await;
        let (seen, rest) = read_until(first, "TOOL_CALL_END").await;
        client.process_events(&events(&seen));
        let mut beside = AgUiClient::new(&served, "t");
        if sends_history {
            beside.messages.clone_from(&client.messages);
        }
        beside.messages.push(json!({"id": "beside", "role": "user", "content": "what time is it?"}));
        let told = beside.run(None).await;
        assert!(told.iter().any(|event| event["type"] == "MESSAGES_SNAPSHOT"), "{told:#?}");
        let said = beside.messages.iter().map(|message| message["content"].as_str().unwrap_or_default());
        let said: Vec<&str> = said.collect();
        let has = |text: &str| said.iter().filter(|said| said.contains(text)).count();
        for text in [
            "find it",
            "I have started.",
            "{\"found\":\"gold\"}",
            "I found gold.",
            "what time",
            "It is noon.",
        ] {
            assert_eq!(has(text), 1, "{text}: {said:#?}");
        }
        assert_eq!(has("It may be"), 0, "{said:#?}");
        let place = |text: &str| said.iter().position(|said| said.contains(text));
        assert!(place("I found gold.") < place("what time"), "the turns stay together: {said:#?}");
        tokio::time::timeout(EVENT_TIMEOUT, text(rest)).await.expect("the first run ends");
    }
}

#[tokio::test]
async fn synchronous_turn_cannot_be_joined() {
    let slow = task("Slow").step(mock().delay_ms(700).returns(json!({"found": "gold"})));
    let agent = persona("Researcher").tool(tool("research").task(&slow));
    let served = serve(&agent, answers()).await;
    let mut client = AgUiClient::new(&served, "t");
    client.user("find it");
    let body = client.body(None);
    let (_, _rest) = read_until(served.post("/", &body).await, "TOOL_CALL_END").await;
    let (status, words) = rejection(served.post("/", &body).await).await;
    assert_eq!(status, 409);
    assert!(words.contains("thread t already has a running request"), "{words}");
}

#[tokio::test]
async fn thread_stream_can_be_resumed() {
    let served = serve(&researcher(300), answers()).await;
    let path = "/threads/t/events";
    let (status, words) = rejection(served.get(path).await).await;
    assert_eq!((status, words.contains("unknown conversation t")), (404, true), "{words}");
    let mut client = AgUiClient::new(&served, "t");
    client.say("what time is it?").await;
    let from = async |id: &str| send(served.open(Method::GET, path).header("last-event-id", id)).await;
    let (seen, _) = read_until(from("0").await, "event: turn.completed").await;
    let first = names(&seen);
    let kinds: Vec<&str> = first.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(kinds, ["turn.started", "message.user", "message.assistant", "turn.completed"]);
    let last = first.last().unwrap().0;
    // The single stream contains both turns without repeating seen events.
    let follow = tokio::spawn({
        let response = from(&last.to_string()).await;
        async move { read_until(response, "I found gold.\"").await.0 }
    });
    client.say("find it").await;
    let told = follow.await.unwrap();
    let second = names(&told);
    assert!(second.iter().all(|(id, _)| *id > last), "{second:?}");
    assert!(told.contains("event: message.delta\ndata: {"), "{told}");
    assert!(!told.contains("system"), "how requests are built is nobody's business: {told}");
    // The stream resumes after any last event.
    let (all, _) = read_until(from("0").await, "I found gold.\"").await;
    let all = names(&all);
    for (place, (id, _)) in all.iter().enumerate().take(all.len() - 1) {
        let (rest, _) = read_until(from(&id.to_string()).await, "I found gold.\"").await;
        assert_eq!(names(&rest), all[place + 1..], "after {id}");
    }
    let (status, words) = rejection(from("soon").await).await;
    assert_eq!(
        (status, words.contains("`last-event-id` must be the number of an event")),
        (400, true),
        "{words}"
    );
}

#[tokio::test]
async fn unclaimed_async_answer_can_be_fetched() {
    let served = serve(&researcher(400), answers()).await;
    let mut client = AgUiClient::new(&served, "t");
    client.user("find it");
    let body = client.body(None);
    let (_, rest) = read_until(served.post("/", &body).await, "TOOL_CALL_END").await;
    drop(rest);
    let fetched = fetch_until(&served, "I found gold.").await;
    assert_eq!(fetched["running"], false, "{fetched}");
    // The client continues from there.
    let mut client = AgUiClient::new(&served, "t");
    client.messages = fetched["messages"].as_array().unwrap().clone();
    client.say("what time is it?").await;
    assert_eq!(client.last_text(), "It is noon.");
}

/// Fetches the thread `t` until its last message has this text.
async fn fetch_until(served: &TestServer, words: &str) -> Value {
    let fetched = async {
        loop {
            let response = served.get("/threads/t").await;
            let thread: Value = serde_json::from_str(&text(response).await).unwrap();
            let last = thread["messages"].as_array().and_then(|messages| messages.last().cloned());
            if last.is_some_and(|last| last["content"] == words) && thread["running"] == false {
                return thread;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(EVENT_TIMEOUT, fetched).await.expect("the answer is there")
}

#[tokio::test]
async fn answer_can_be_fetched_after_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kept.db");
    let open = || store_options(Arc::new(SqliteStore::open(&file).unwrap()));
    let first = serve_with(&researcher(600), answers(), ServeOptions::default(), open()).await;
    let mut client = AgUiClient::new(&first, "t");
    client.user("find it");
    let body = client.body(None);
    let (seen, rest) = read_until(first.post("/", &body).await, "TOOL_CALL_END").await;
    assert!(seen.contains("I "), "{seen}");
    drop(rest);
    first.stop().await;
    // The process drops the conversation in its current state.
    let again = async {
        loop {
            match SqliteStore::open(&file) {
                Ok(store) => return store_options(Arc::new(store)),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let options: HostOptions = tokio::time::timeout(EVENT_TIMEOUT, again).await.expect("the file is free");
    let second = serve_with(&researcher(600), answers(), ServeOptions::default(), options).await;
    let stream = second.get("/agents/researcher/threads/t/events").await;
    let (told, _) = read_until(stream, "I found gold.\"").await;
    assert!(told.contains("I have started."), "{told}");
    fetch_until(&second, "I found gold.").await;
}

/// A server that is killed while the model answers. Its turn continues in the next one, and the client repeats its request.
#[tokio::test]
async fn turn_of_a_killed_server_continues_once() {
    let folder = tempfile::tempdir().unwrap();
    let serve_file = async |name: &str, model| {
        let store = store_options(Arc::new(SqliteStore::open(&folder.path().join(name)).unwrap()));
        serve_with(&persona("Helper"), model, ServeOptions::default(), store).await
    };
    let (first_teller, model) = controlled_model();
    let first = serve_file("first.db", model).await;
    let mut client = AgUiClient::new(&first, "t");
    client.user("hi");
    let body = client.body(None);
    first_teller.emit([OutputPiece::Text("Hel")]);
    let (_, _first_response) = read_until(first.post("/", &body).await, "\"Hel\"").await;
    // What a killed server leaves.
    for ending in ["", "-wal"] {
        let file = |name: &str| folder.path().join(format!("{name}.db{ending}"));
        std::fs::copy(file("first"), file("second")).unwrap();
    }
    let (teller, model) = controlled_model();
    let second = serve_file("second.db", model).await;
    let idle = teller.listeners();
    let fetched: Value = serde_json::from_str(&text(second.get("/threads/t").await).await).unwrap();
    assert_eq!(fetched["running"], true, "{fetched}");
    let (status, words) = rejection(second.post("/", &body).await).await;
    assert!(status == 409 && words.contains("turn 1 of the thread runs without its client"), "{words}");
    assert!(words.contains("fetch it with GET /threads/THREAD"), "{words}");
    teller.wait_for_calls(idle + 1).await;
    teller.emit([OutputPiece::Text("Hello"), OutputPiece::Done]);
    fetch_until(&second, "Hello").await;
    let (status, words) = rejection(second.post("/", &body).await).await;
    assert!(status == 409 && words.contains("the agent has answered all of its messages; fetch"), "{words}");
}

#[tokio::test]
async fn server_shutdown_ends_thread_streams() {
    let served = serve(&researcher(1), answers()).await;
    AgUiClient::new(&served, "t").say("what time is it?").await;
    let (_, rest) = read_until(served.get("/threads/t/events").await, "turn.completed").await;
    served.stop().await;
    drop(rest);
}

/// Output for these input lines. Each next line is written once the output contains its part.
async fn answer_lines(delay_ms: u64, input: &[(&str, Value)]) -> Vec<Value> {
    let host = hotseat_runtime::live::ConversationHost::new;
    let (definitions, id) =
        hotseat_runtime::definition::Definitions::from_persona(&researcher(delay_ms)).unwrap();
    let definitions = Arc::new(definitions);
    let models = hotseat_runtime::live::ModelRegistry::single(answers());
    let options = HostOptions { store: Arc::new(InMemoryStore::default()), ..HostOptions::default() };
    let host = host(definitions.clone(), models, options);
    let agent = ServedAgent::new("researcher", host, definitions, id);
    let (send, mut received) = tokio::sync::mpsc::channel(16);
    let output = SharedOutput::default();
    let mut writer = output.clone();
    let feeding = async {
        for (after, line) in input {
            while !output.text().contains(after) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            send.send(InputLine::Text(line.to_string())).await.unwrap();
        }
        drop(send);
    };
    let both = async { tokio::join!(serve_lines(&agent, &mut received, &mut writer), feeding) };
    tokio::time::timeout(EVENT_TIMEOUT, both).await.expect("the lines are answered").0.unwrap();
    output.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An output that can be read during writing.
#[derive(Clone, Default)]
struct SharedOutput(Arc<std::sync::Mutex<Vec<u8>>>);

impl SharedOutput {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for SharedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn lines_are_answered_during_async_turn() {
    let message = |turn: u32, text: &str| json!({"type": "message", "turn": turn, "text": text});
    let told = answer_lines(
        500,
        &[
            ("", message(1, "find it")),
            ("tool_call", message(2, "what time is it?")),
            ("", message(3, "and now?")),
        ],
    )
    .await;
    let said: Vec<(u64, &str)> = told
        .iter()
        .filter_map(|line| {
            Some((
                line["turn"].as_u64()?,
                line["text"].as_str().or(line["type"].as_str().filter(|kind| *kind == "done"))?,
            ))
        })
        .collect();
    let place = |entry: (u64, &str)| {
        said.iter().position(|known| *known == entry).unwrap_or_else(|| panic!("{entry:?} in {said:?}"))
    };
    assert!(place((1, "I have started.")) < place((2, "It is noon.")), "{said:?}");
    assert!(place((2, "done")) < place((3, "It is one.")), "turns without such tools follow each other");
    assert!(place((3, "done")) < place((1, "I found gold.")), "{said:?}");
    assert_eq!(*said.last().unwrap(), (1, "done"), "the turn that was begun first is held to its end");
}

#[tokio::test]
async fn invalid_or_long_lines_are_answered_with_errors() {
    let input = format!("{}\n{}\n", "x".repeat(100), json!({"type": "message", "text": "what time is it?"}));
    let blank = json!({"type": "message", "text": " "}).to_string();
    let input = [input.as_bytes(), b"\xff\xff\n", blank.as_bytes()].concat();
    let mut received = hotseat_runtime::serve::read_lines(std::io::Cursor::new(input), 64);
    let (definitions, id) = hotseat_runtime::definition::Definitions::from_persona(&researcher(1)).unwrap();
    let definitions = Arc::new(definitions);
    let models = hotseat_runtime::live::ModelRegistry::single(answers());
    let host =
        hotseat_runtime::live::ConversationHost::new(definitions.clone(), models, HostOptions::default());
    let agent = ServedAgent::new("researcher", host, definitions, id);
    let mut output = Vec::new();
    serve_lines(&agent, &mut received, &mut output).await.unwrap();
    let text = String::from_utf8(output).unwrap();
    for part in [
        "a line is longer than 64 bytes",
        "It is noon.",
        "a line is not valid UTF-8",
        "text: the message of the user has no text",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
