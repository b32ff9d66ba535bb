//! Recording and replay of model calls.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotseat_model::recording::{RecordedAnswer, RecordingModel, ReplayModel, digest};
use hotseat_model::script::{ModelScript, ScriptedModel};
use hotseat_model::{
    CallPosition, DiscardSink, LiveModel, Model, ModelError, ModelErrorKind, ModelMessage, ModelReply,
    ModelRequest, ModelTool, ModelToolResult, PureModel,
};
use proptest::prelude::*;
use serde_json::json;

/// A readable in-memory file.
#[derive(Clone, Default)]
struct MemoryFile(Arc<Mutex<Vec<u8>>>);

impl MemoryFile {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for MemoryFile {
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

fn at(conversation: &str, turn: u32, call: u32, attempt: u32) -> CallPosition {
    CallPosition { conversation: conversation.into(), agent: "clerk".into(), turn, call, attempt }
}

/// Requests of one conversation.
fn calls(conversation: &str) -> Vec<ModelRequest> {
    let tools = vec![ModelTool {
        name: "find".into(),
        description: "Finds.".into(),
        input_schema: json!({"b": 1, "a": 2}),
    }];
    let first = ModelRequest {
        position: at(conversation, 1, 1, 1),
        system: Some("Be kind.".into()),
        messages: vec![ModelMessage::user("shoes")],
        tools,
        temperature: Some(0.5),
        ..ModelRequest::default()
    };
    let mut second = first.clone();
    second.position = at(conversation, 1, 2, 1);
    let result = ModelToolResult {
        call_id: "call_1_1_1".into(),
        name: "find".into(),
        content: json!(["red"]),
        is_error: false,
    };
    second.messages.push(ModelMessage::Tool(result));
    let third = ModelRequest { position: at(conversation, 1, 2, 2), ..second.clone() };
    let mut fourth = second.clone();
    fourth.position = at(conversation, 2, 1, 1);
    fourth.messages.push(ModelMessage::user("and hats"));
    vec![first, second, third, fourth]
}

fn without_position(text: &str) -> ModelRequest {
    ModelRequest { messages: vec![ModelMessage::user(text)], ..ModelRequest::default() }
}

/// Records these requests; returns the recording and the replies.
async fn record(requests: &[ModelRequest]) -> (String, Vec<Result<ModelReply, ModelError>>) {
    let file = MemoryFile::default();
    let script = ScriptedModel::new(ModelScript::parse("s.yaml", SCRIPT).unwrap());
    let model = RecordingModel::new(LiveModel::new(script), file.clone()).unwrap();
    let mut answers = Vec::new();
    for request in requests {
        answers.push(model.call(request, &mut DiscardSink).await);
    }
    (file.text(), answers)
}

#[tokio::test(start_paused = true)]
async fn recorded_answers_are_replayed() {
    let requests = calls("c1");
    let (text, answers) = record(&requests).await;
    let mut played = ReplayModel::parse("r.jsonl", &text).unwrap();
    assert_eq!(played.name(), "clerk");
    assert_eq!(played.unused_exchanges().len(), 4);
    // The order of the calls does not matter, and each can be repeated.
    for (request, answer) in requests.iter().zip(&answers).rev().chain(requests.iter().zip(&answers)) {
        let again = played.answer(request);
        assert_eq!((again.delay, &again.value), (Duration::ZERO, answer));
    }
    assert!(played.unused_exchanges().is_empty());
}

#[tokio::test(start_paused = true)]
async fn recording_format_is_stable() {
    let (text, _) = record(&calls("c1")).await;
    insta::assert_snapshot!(text);
}

#[tokio::test(start_paused = true)]
async fn replay_can_keep_original_timing() {
    let requests = calls("c1");
    let (text, _) = record(&requests).await;
    let mut played = ReplayModel::parse("r.jsonl", &text).unwrap().with_recorded_timing();
    assert_eq!(played.answer(&requests[0]).delay, Duration::from_millis(40));
}

#[tokio::test(start_paused = true)]
async fn conversation_is_matched_under_another_id() {
    let mut one = calls("recorded-1");
    let mut two = calls("recorded-2");
    two[0].messages = vec![ModelMessage::user("coats")];
    let (text, answers) = record(&[one.clone(), two.clone()].concat()).await;
    let mut played = ReplayModel::parse("r.jsonl", &text).unwrap();
    for (requests, id) in [(&mut two, "live-1"), (&mut one, "live-2")] {
        requests.iter_mut().for_each(|request| request.position.conversation = id.into());
    }
    assert_eq!(played.answer(&two[0]).value, answers[4]);
    assert_eq!(played.answer(&one[0]).value, answers[0]);
    assert_eq!(played.answer(&two[1]).value, answers[5]);
    assert_eq!(played.answer(&one[3]).value, answers[3]);
}

#[tokio::test(start_paused = true)]
async fn calls_without_position_replay_in_order() {
    let requests = [without_position("a"), without_position("b"), without_position("a")];
    let (text, answers) = record(&requests).await;
    let mut played = ReplayModel::parse("r.jsonl", &text).unwrap();
    for (request, answer) in requests.iter().zip(&answers) {
        assert_eq!(&played.answer(request).value, answer);
    }
}

#[tokio::test(start_paused = true)]
async fn changed_request_is_rejected_with_differences() {
    let requests = calls("c1");
    let (text, _) = record(&requests).await;
    let mut played = ReplayModel::parse("r.jsonl", &text).unwrap();
    let mut refused = Vec::new();

    let mut changed = requests[1].clone();
    changed.system = Some(format!("{}Be kind and {}", "Always. ".repeat(20), "polite. ".repeat(20)));
    changed.temperature = None;
    changed.max_tokens = Some(100);
    changed.messages.push(ModelMessage::user("and more"));
    changed.tools[0].input_schema = json!({"a": 2, "b/c": 1});
    if let ModelMessage::Tool(result) = &mut changed.messages[1] {
        result.content = json!(["red", {"green": true}]);
    }
    refused.push(changed);
    let mut shorter = requests[3].clone();
    shorter.messages.truncate(1);
    refused.push(shorter);
    let mut many = requests[3].clone();
    many.messages = (0..20).map(|n| ModelMessage::user(format!("message {n}"))).collect();
    refused.push(many);
    let mut other_beginning = requests[0].clone();
    other_beginning.position.conversation = "unknown".into();
    other_beginning.messages = vec![ModelMessage::user("Shoes")];
    refused.push(other_beginning);
    let mut unknown_turn = requests[0].clone();
    unknown_turn.position.turn = 9;
    refused.push(unknown_turn.clone());
    unknown_turn.position.conversation = "unknown".into();
    refused.push(unknown_turn);

    let errors = refused.iter().map(|request| played.answer(request).value.unwrap_err());
    let errors: Vec<ModelError> = errors.collect();
    assert!(errors.iter().all(|error| error.kind == ModelErrorKind::Unanswered));
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[test]
fn rejects_files_that_are_not_recordings() {
    let header = r#"{"format":"hotseat-model-traffic","version":1,"model":"m"}"#;
    let files = [
        String::new(),
        "hello\n".to_owned(),
        r#"{"format":"something","version":1,"model":"m"}"#.to_owned(),
        header.replace(":1", ":2"),
        format!("{header}\n{{\"digest\":\"x\"}}\n\nnot JSON\n"),
    ];
    let shown = files.map(|text| ReplayModel::parse("r.jsonl", &text).unwrap_err().to_string());
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[test]
fn reads_empty_recording() {
    let text = r#"{"format":"hotseat-model-traffic","version":1,"model":"m"}"#;
    let mut played = ReplayModel::parse("r.jsonl", text).unwrap();
    let error = played.answer(&without_position("a")).value.unwrap_err();
    assert_eq!(
        error.to_string(),
        "r.jsonl has no answer for a call without a position; it holds 0 calls of other conversations"
    );
}

struct FullDisk;

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // There is room for the first line only.
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
async fn unwritable_answer_is_an_error() {
    let script = ScriptedModel::new(ModelScript::parse("s.yaml", SCRIPT).unwrap());
    let model = RecordingModel::new(LiveModel::new(script), FullDisk).unwrap();
    let error = model.call(&without_position("a"), &mut DiscardSink).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Configuration);
    assert_eq!(error.to_string(), "the recording cannot be written: no storage space");
}

#[test]
fn digest_depends_on_request_not_location() {
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

fn outcome() -> impl Strategy<Value = RecordedAnswer> {
    let reply = (text(), text(), text()).prop_map(|(said, thought, name)| {
        let call = hotseat_model::ModelToolCall {
            id: name.clone(),
            name,
            arguments: json!({"x": said}),
            ..hotseat_model::ModelToolCall::default()
        };
        RecordedAnswer::Reply(ModelReply {
            reasoning: thought,
            tool_calls: vec![call],
            ..ModelReply::text(said)
        })
    });
    let error =
        (text(), proptest::option::of(0u64..100_000), text()).prop_map(|(message, retry_after, partial)| {
            RecordedAnswer::Error(ModelError {
                status: Some(503),
                retry_after: retry_after.map(Duration::from_millis),
                partial: Some(Box::new(ModelReply::text(partial))),
                ..ModelError::new(ModelErrorKind::Server, message)
            })
        });
    prop_oneof![reply, error]
}

proptest! {
    #[test]
    fn recording_round_trips(outcome in outcome()) {
        let text = serde_json::to_string(&outcome).unwrap();
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(serde_json::from_str::<RecordedAnswer>(&text).unwrap(), outcome);
    }
}
