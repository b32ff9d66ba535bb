//! What goes through a model can be written down and played, and only that.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotseat_model::recording::{Outcome, Played, Recorded, digest};
use hotseat_model::script::{Script, Scripted};
use hotseat_model::{
    Discard, ErrorKind, Live, Message, Model, ModelError, Position, PureModel, Reply, Request, Tool,
    ToolResult,
};
use proptest::prelude::*;
use serde_json::json;

/// A file in memory that the test can look into.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const SCRIPT: &str = r"
name: clerk
use: always
rules:
  - { when: { turn: 1, call: 1 }, reply: { tool_calls: [{ name: find, arguments: { text: '{{ user }}' } }] }, delay_ms: 40 }
  - { when: { turn: 1, call: 2, attempt: 1 }, error: { kind: rate_limit, retry_after_ms: 5, body: slow down } }
  - { when: { turn: 1, call: 2, attempt: 2 }, reply: 'Found {{ result }}.' }
  - { when: { turn: 2 }, error: { kind: server, after: 'I am' } }
  - { reply: 'no position: {{ user }}' }
";

fn at(conversation: &str, turn: u32, call: u32, attempt: u32) -> Position {
    Position { conversation: conversation.into(), agent: "clerk".into(), turn, call, attempt }
}

/// The calls of one conversation.
fn calls(conversation: &str) -> Vec<Request> {
    let tools = vec![Tool {
        name: "find".into(),
        description: "Finds.".into(),
        input_schema: json!({"b": 1, "a": 2}),
    }];
    let first = Request {
        position: at(conversation, 1, 1, 1),
        system: Some("Be kind.".into()),
        messages: vec![Message::user("shoes")],
        tools,
        temperature: Some(0.5),
        ..Request::default()
    };
    let mut second = first.clone();
    second.position = at(conversation, 1, 2, 1);
    let result = ToolResult {
        call_id: "call_1_1_1".into(),
        name: "find".into(),
        content: json!(["red"]),
        is_error: false,
    };
    second.messages.push(Message::Tool(result));
    let third = Request { position: at(conversation, 1, 2, 2), ..second.clone() };
    let mut fourth = second.clone();
    fourth.position = at(conversation, 2, 1, 1);
    fourth.messages.push(Message::user("and hats"));
    vec![first, second, third, fourth]
}

fn without_position(text: &str) -> Request {
    Request { messages: vec![Message::user(text)], ..Request::default() }
}

/// A recording of these calls, and what they were answered.
async fn record(requests: &[Request]) -> (String, Vec<Result<Reply, ModelError>>) {
    let file = Memory::default();
    let script = Scripted::new(Script::parse("s.yaml", SCRIPT).unwrap());
    let model = Recorded::new(Live::new(script), file.clone()).unwrap();
    let mut answers = Vec::new();
    for request in requests {
        answers.push(model.call(request, &mut Discard).await);
    }
    (file.text(), answers)
}

#[tokio::test(start_paused = true)]
async fn what_was_recorded_is_played() {
    let requests = calls("c1");
    let (text, answers) = record(&requests).await;
    let mut played = Played::parse("r.jsonl", &text).unwrap();
    assert_eq!(played.name(), "clerk");
    assert_eq!(played.unplayed().len(), 4);
    // The order of the calls does not matter, and each can be made again.
    for (request, answer) in requests.iter().zip(&answers).rev().chain(requests.iter().zip(&answers)) {
        let again = played.answer(request);
        assert_eq!((again.delay, &again.value), (Duration::ZERO, answer));
    }
    assert!(played.unplayed().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_recorded_form_stays_as_it_is() {
    let (text, _) = record(&calls("c1")).await;
    insta::assert_snapshot!(text);
}

#[tokio::test(start_paused = true)]
async fn answers_can_take_as_long_as_they_took() {
    let requests = calls("c1");
    let (text, _) = record(&requests).await;
    let mut played = Played::parse("r.jsonl", &text).unwrap().in_recorded_time();
    assert_eq!(played.answer(&requests[0]).delay, Duration::from_millis(40));
}

#[tokio::test(start_paused = true)]
async fn a_conversation_is_recognised_under_another_id() {
    let mut one = calls("recorded-1");
    let mut two = calls("recorded-2");
    two[0].messages = vec![Message::user("coats")];
    let (text, answers) = record(&[one.clone(), two.clone()].concat()).await;
    let mut played = Played::parse("r.jsonl", &text).unwrap();
    for (requests, id) in [(&mut two, "live-1"), (&mut one, "live-2")] {
        requests.iter_mut().for_each(|request| request.position.conversation = id.into());
    }
    assert_eq!(played.answer(&two[0]).value, answers[4]);
    assert_eq!(played.answer(&one[0]).value, answers[0]);
    assert_eq!(played.answer(&two[1]).value, answers[5]);
    assert_eq!(played.answer(&one[3]).value, answers[3]);
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_position_are_played_in_order() {
    let requests = [without_position("a"), without_position("b"), without_position("a")];
    let (text, answers) = record(&requests).await;
    let mut played = Played::parse("r.jsonl", &text).unwrap();
    for (request, answer) in requests.iter().zip(&answers) {
        assert_eq!(&played.answer(request).value, answer);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_differs_is_refused_with_what_has_changed() {
    let requests = calls("c1");
    let (text, _) = record(&requests).await;
    let mut played = Played::parse("r.jsonl", &text).unwrap();
    let mut refused = Vec::new();

    let mut changed = requests[1].clone();
    changed.system = Some(format!("{}Be kind and {}", "Always. ".repeat(20), "polite. ".repeat(20)));
    changed.temperature = None;
    changed.max_tokens = Some(100);
    changed.messages.push(Message::user("and more"));
    changed.tools[0].input_schema = json!({"a": 2, "b/c": 1});
    if let Message::Tool(result) = &mut changed.messages[1] {
        result.content = json!(["red", {"green": true}]);
    }
    refused.push(changed);
    let mut shorter = requests[3].clone();
    shorter.messages.truncate(1);
    refused.push(shorter);
    let mut many = requests[3].clone();
    many.messages = (0..20).map(|n| Message::user(format!("message {n}"))).collect();
    refused.push(many);
    let mut other_beginning = requests[0].clone();
    other_beginning.position.conversation = "unknown".into();
    other_beginning.messages = vec![Message::user("Shoes")];
    refused.push(other_beginning);
    let mut unknown_turn = requests[0].clone();
    unknown_turn.position.turn = 9;
    refused.push(unknown_turn.clone());
    unknown_turn.position.conversation = "unknown".into();
    refused.push(unknown_turn);

    let errors = refused.iter().map(|request| played.answer(request).value.unwrap_err());
    let errors: Vec<ModelError> = errors.collect();
    assert!(errors.iter().all(|error| error.kind == ErrorKind::Unanswered));
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[test]
fn files_that_are_no_recordings_are_refused() {
    let header = r#"{"format":"hotseat-model-traffic","version":1,"model":"m"}"#;
    let files = [
        String::new(),
        "hello\n".to_owned(),
        r#"{"format":"something","version":1,"model":"m"}"#.to_owned(),
        header.replace(":1", ":2"),
        format!("{header}\n{{\"digest\":\"x\"}}\n\nnot JSON\n"),
    ];
    let shown = files.map(|text| Played::parse("r.jsonl", &text).unwrap_err().to_string());
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[test]
fn an_empty_recording_can_be_read() {
    let text = r#"{"format":"hotseat-model-traffic","version":1,"model":"m"}"#;
    let mut played = Played::parse("r.jsonl", text).unwrap();
    let error = played.answer(&without_position("a")).value.unwrap_err();
    assert_eq!(
        error.to_string(),
        "r.jsonl has no answer for a call without a position; it holds 0 calls of other conversations"
    );
}

struct Full;

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The first line fits.
        if bytes.starts_with(b"{\"format\"") {
            Ok(bytes.len())
        } else {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_written_down_is_an_error() {
    let script = Scripted::new(Script::parse("s.yaml", SCRIPT).unwrap());
    let model = Recorded::new(Live::new(script), Full).unwrap();
    let error = model.call(&without_position("a"), &mut Discard).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Configuration);
    assert_eq!(error.to_string(), "the recording cannot be written: no storage space");
}

#[test]
fn a_digest_names_what_is_asked_and_not_where() {
    let requests = calls("c1");
    assert_eq!(digest(&requests[1]), digest(&requests[2]));
    assert_ne!(digest(&requests[0]), digest(&requests[1]));
    let mut reordered = requests[0].clone();
    reordered.tools[0].input_schema = json!({"a": 2, "b": 1});
    assert_eq!(digest(&requests[0]), digest(&reordered));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,12}", Just("é你🌍\u{2028}\n\"\\".to_owned())]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let reply = (text(), text(), text()).prop_map(|(said, thought, name)| {
        let call = hotseat_model::ToolCall { id: name.clone(), name, arguments: json!({"x": said}) };
        Outcome::Reply(Reply { reasoning: thought, tool_calls: vec![call], ..Reply::text(said) })
    });
    let error =
        (text(), proptest::option::of(0u64..100_000), text()).prop_map(|(message, retry_after, partial)| {
            Outcome::Error(ModelError {
                status: Some(503),
                retry_after: retry_after.map(Duration::from_millis),
                partial: Some(Box::new(Reply::text(partial))),
                ..ModelError::new(ErrorKind::Server, message)
            })
        });
    prop_oneof![reply, error]
}

proptest! {
    #[test]
    fn what_is_written_reads_back(outcome in outcome()) {
        let text = serde_json::to_string(&outcome).unwrap();
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), outcome);
    }
}
