//! Turns that go on beside each other, and what happens when nobody is connected.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use hotseat_model::Live;
use hotseat_model::script::{Rule, Scripted};
use hotseat_runtime::definition::{Persona, mock, persona, task, tool, workflow};
use hotseat_runtime::live::HostOptions;
use hotseat_runtime::serve::{Agent, InputLine, Options, converse};
use hotseat_runtime::store::{InMemory, Sqlite};
use serde_json::{Value, json};

use super::kit::{Client, SOON, Served, events, refused, scripted, serve, serve_with, short, stored};

/// An agent that researches for this long beside the conversation.
fn researcher(delay_ms: u64) -> Persona {
    let slow =
        workflow("Slow").node(task("Slow").step(mock().delay_ms(delay_ms).returns(json!({"found": "gold"}))));
    persona("Researcher").tool(tool("research").workflow(&slow).asynchronous())
}

fn answers() -> Live<Scripted> {
    scripted([
        Rule::new().notice("gold").say("I found gold."),
        Rule::new().user("find").call(1).say("I have started.").call_tool("research", json!({})),
        Rule::new().say("It is noon."),
        Rule::new().say("It is one."),
    ])
}

/// Reads events of a response until one of them holds this.
async fn until(response: reqwest::Response, part: &str) -> (String, impl futures_util::Stream) {
    let mut pieces = Box::pin(response.bytes_stream());
    let mut seen = String::new();
    let read = async {
        while !seen.contains(part) {
            let piece = pieces.next().await.expect("the stream goes on").unwrap();
            seen.push_str(std::str::from_utf8(&piece).unwrap());
        }
    };
    tokio::time::timeout(SOON, read).await.unwrap_or_else(|_| panic!("{part} does not come"));
    (seen, pieces)
}

/// The ids and names of the events of a thread.
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
async fn a_second_message_begins_a_turn_of_its_own_while_an_asynchronous_one_runs() {
    let served = serve(&researcher(1500), answers()).await;
    let mut client = Client::new(&served, "t");
    client.user("find it");
    let body = client.body(None);
    let first = served.post("/", &body).await;
    let (seen, rest) = until(first, "TOOL_CALL_END").await;
    // What the client has so far goes with its next message.
    let mut beside = Client::new(&served, "t");
    beside.messages.clone_from(&client.messages);
    beside.take_in(&events(&seen));
    let told = short(&beside.say("what time is it?").await);
    assert_eq!(beside.last_text(), "It is noon.");
    assert!(told.iter().all(|line| !line.contains("t-t1-")), "one run tells of one turn: {told:#?}");
    assert_eq!(told.last().unwrap(), r#"RUN_FINISHED {"type":"success"}"#);
    let state = served.host.conversation(&"t".into(), &"researcher".into()).await.unwrap();
    let state = state.state().await.unwrap();
    assert!(state.turns[0].is_active() && !state.turns[1].is_active(), "the second turn ended first");
    // The first run ends by itself, with the answer of its own turn.
    let mut rest = Box::pin(rest);
    let whole = async { while rest.next().await.is_some() {} };
    tokio::time::timeout(SOON, whole).await.expect("the first run ends");
    let state = served.host.conversation(&"t".into(), &"researcher".into()).await.unwrap();
    let state = state.state().await.unwrap();
    let said: Vec<&str> = state.messages.iter().map(|message| &*message.content).collect();
    let expected = ["find it", "I have started.", "what time is it?", "It is noon.", "I found gold."];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn a_turn_that_is_not_asynchronous_is_not_joined() {
    let slow = task("Slow").step(mock().delay_ms(700).returns(json!({"found": "gold"})));
    let agent = persona("Researcher").tool(tool("research").task(&slow));
    let served = serve(&agent, answers()).await;
    let mut client = Client::new(&served, "t");
    client.user("find it");
    let body = client.body(None);
    let (_, _rest) = until(served.post("/", &body).await, "TOOL_CALL_END").await;
    let (status, words) = refused(served.post("/", &body).await).await;
    assert_eq!(status, 409);
    assert!(words.contains("a run of the thread t goes on"), "{words}");
}

#[tokio::test]
async fn a_thread_is_told_in_one_stream_that_can_be_taken_up_again() {
    let served = serve(&researcher(300), answers()).await;
    let url = format!("{}/threads/t/events", served.url);
    let (status, words) = refused(served.http.get(&url).send().await.unwrap()).await;
    assert_eq!((status, words.contains("there is no conversation t")), (404, true), "{words}");
    let mut client = Client::new(&served, "t");
    client.say("what time is it?").await;
    let from = async |id: &str| {
        let request = served.http.get(&url).header("last-event-id", id);
        request.send().await.unwrap()
    };
    let (seen, _) = until(from("0").await, "event: turn.completed").await;
    let first = names(&seen);
    let kinds: Vec<&str> = first.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(kinds, ["turn.started", "message.user", "message.assistant", "turn.completed"]);
    let last = first.last().unwrap().0;
    // Both turns are told by the one stream, and what was seen is not told again.
    let follow = tokio::spawn({
        let response = from(&last.to_string()).await;
        async move { until(response, "I found gold.\"").await.0 }
    });
    client.say("find it").await;
    let told = follow.await.unwrap();
    let second = names(&told);
    assert!(second.iter().all(|(id, _)| *id > last), "{second:?}");
    assert!(told.contains("event: message.delta\ndata: {"), "{told}");
    assert!(!told.contains("system"), "how requests are built is nobody's business: {told}");
    // Whichever event was the last, the stream goes on with the next one.
    let (all, _) = until(from("0").await, "I found gold.\"").await;
    let all = names(&all);
    for (place, (id, _)) in all.iter().enumerate().take(all.len() - 1) {
        let (rest, _) = until(from(&id.to_string()).await, "I found gold.\"").await;
        assert_eq!(names(&rest), all[place + 1..], "after {id}");
    }
    let (status, words) = refused(from("soon").await).await;
    assert_eq!((status, words.contains("`last-event-id` is the number of an event")), (400, true), "{words}");
}

#[tokio::test]
async fn an_asynchronous_answer_that_nobody_waited_for_can_be_fetched() {
    let served = serve(&researcher(400), answers()).await;
    let mut client = Client::new(&served, "t");
    client.user("find it");
    let body = client.body(None);
    let (_, rest) = until(served.post("/", &body).await, "TOOL_CALL_END").await;
    drop(rest);
    let fetched = fetch_until(&served, "I found gold.").await;
    assert_eq!(fetched["running"], false, "{fetched}");
    // The client goes on from there.
    let mut client = Client::new(&served, "t");
    client.messages = fetched["messages"].as_array().unwrap().clone();
    client.say("what time is it?").await;
    assert_eq!(client.last_text(), "It is noon.");
}

/// Fetches the thread `t` until its last message is this.
async fn fetch_until(served: &Served, words: &str) -> Value {
    let fetched = async {
        loop {
            let response = served.http.get(format!("{}/threads/t", served.url)).send().await.unwrap();
            let thread: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            let last = thread["messages"].as_array().and_then(|messages| messages.last().cloned());
            if last.is_some_and(|last| last["content"] == words) && thread["running"] == false {
                return thread;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, fetched).await.expect("the answer is there")
}

#[tokio::test]
async fn an_answer_can_be_fetched_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kept.db");
    let open = || stored(Arc::new(Sqlite::open(&file).unwrap()));
    let first = serve_with(&researcher(600), answers(), Options::default(), open()).await;
    let mut client = Client::new(&first, "t");
    client.user("find it");
    let body = client.body(None);
    let (seen, rest) = until(first.post("/", &body).await, "TOOL_CALL_END").await;
    assert!(seen.contains("I "), "{seen}");
    drop(rest);
    first.stop().await;
    // The conversation is given up by its process where it stands.
    let again = async {
        loop {
            match Sqlite::open(&file) {
                Ok(store) => return stored(Arc::new(store)),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let options: HostOptions = tokio::time::timeout(SOON, again).await.expect("the file is free");
    let second = serve_with(&researcher(600), answers(), Options::default(), options).await;
    let url = format!("{}/agents/researcher/threads/t/events", second.url);
    let (told, _) = until(second.http.get(url).send().await.unwrap(), "I found gold.\"").await;
    assert!(told.contains("I have started."), "{told}");
    fetch_until(&second, "I found gold.").await;
}

#[tokio::test]
async fn a_server_that_stops_ends_the_streams_of_threads() {
    let served = serve(&researcher(1), answers()).await;
    Client::new(&served, "t").say("what time is it?").await;
    let url = format!("{}/threads/t/events", served.url);
    let (_, rest) = until(served.http.get(url).send().await.unwrap(), "turn.completed").await;
    served.stop().await;
    drop(rest);
}

/// What is answered to these lines. The next line is written when what was told holds its part.
async fn lines(delay_ms: u64, input: &[(&str, Value)]) -> Vec<Value> {
    let host = hotseat_runtime::live::Host::new;
    let (definitions, id) = hotseat_runtime::definition::Definitions::of(&researcher(delay_ms)).unwrap();
    let definitions = Arc::new(definitions);
    let models = hotseat_runtime::live::Models::one(answers());
    let options = HostOptions { store: Arc::new(InMemory::default()), ..HostOptions::default() };
    let host = host(definitions.clone(), models, options);
    let agent = Agent::new("researcher", host, definitions, id);
    let (send, mut received) = tokio::sync::mpsc::channel(16);
    let output = Shared::default();
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
    let both = async { tokio::join!(converse(&agent, &mut received, &mut writer), feeding) };
    tokio::time::timeout(SOON, both).await.expect("the lines are answered").0.unwrap();
    output.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An output that can be read while it is written.
#[derive(Clone, Default)]
struct Shared(Arc<std::sync::Mutex<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn lines_are_answered_beside_an_asynchronous_turn() {
    let message = |turn: u32, text: &str| json!({"type": "message", "turn": turn, "text": text});
    let told = lines(
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
async fn lines_that_are_too_long_or_no_text_are_answered_with_errors() {
    let input = format!("{}\n{}\n", "x".repeat(100), json!({"type": "message", "text": "what time is it?"}));
    let input = [input.as_bytes(), b"\xff\xff\n"].concat();
    let mut received = hotseat_runtime::serve::read_lines(std::io::Cursor::new(input), 64);
    let (definitions, id) = hotseat_runtime::definition::Definitions::of(&researcher(1)).unwrap();
    let definitions = Arc::new(definitions);
    let models = hotseat_runtime::live::Models::one(answers());
    let host = hotseat_runtime::live::Host::new(definitions.clone(), models, HostOptions::default());
    let agent = Agent::new("researcher", host, definitions, id);
    let mut output = Vec::new();
    converse(&agent, &mut received, &mut output).await.unwrap();
    let text = String::from_utf8(output).unwrap();
    for part in ["a line is longer than 64 bytes", "It is noon.", "a line is not UTF-8"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
