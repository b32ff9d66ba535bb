//! Property test: a written recording is read back unchanged.

use hotseat_trace::{
    AgentRunFailed, AgentRunFinished, AssistantMessage, AwaitingInput, ErrorInfo, InterruptAnswered,
    InterruptRaised, Note, Origin, Payload, ReasoningMessage, StateSnapshot, ToolArguments, ToolCompleted,
    ToolFailed, ToolInvocation, TracedConversation, TurnCompletion, TurnFailed, TurnStart, UserMessage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{AgentRecording, read, turns_of, write};
use crate::recorder::{SecretRedactor, TraceRecorder};

/// Strings that commonly break formats.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["", " ", "a", "a#2", "\n", "é", "\"", "null", "0", "\u{0}"])
            .prop_map(str::to_string),
        any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Arbitrary events, with ids that may refer to nothing.
fn event() -> impl Strategy<Value = Payload> {
    let id = || prop::sample::select(vec!["", "a", "a#2", "b"]);
    let origin = || prop::sample::select(vec![Origin::Stream, Origin::Client, Origin::Snapshot]);
    // Clients answer calls but make none.
    let seen = || prop::sample::select(vec![Origin::Stream, Origin::Snapshot, Origin::Model]);
    let turn = || std::sync::Arc::<str>::from("t");
    let error = |(code, message): (Option<String>, String)| ErrorInfo { code, message, retriable: None };
    prop_oneof![
        (text(), any::<Option<bool>>()).prop_map(move |(content, has_tool_use)| AssistantMessage {
            turn_id: turn(),
            message_id: "".into(),
            content: content.into(),
            has_tool_use,
            subagent: Some("".into()),
            ..AssistantMessage::default()
        }
        .into()),
        text().prop_map(move |content| {
            let (turn_id, message_id, content) = (turn(), "".into(), content.into());
            ReasoningMessage { turn_id, message_id, content, subagent: None }.into()
        }),
        (id(), text(), prop::option::of(value()), seen()).prop_map(move |(id, name, input, origin)| {
            ToolInvocation {
                turn_id: turn(),
                tool_call_id: id.into(),
                tool_name: name.into(),
                input,
                origin,
                ..ToolInvocation::default()
            }
            .into()
        }),
        (id(), prop::option::of(value()), prop::option::of(text())).prop_map(move |(id, input, text)| {
            ToolArguments {
                turn_id: turn(),
                tool_call_id: id.into(),
                input,
                text,
                ended_us: None,
                message_id: None,
            }
            .into()
        }),
        (id(), value(), origin()).prop_map(move |(id, output, origin)| ToolCompleted {
            turn_id: turn(),
            tool_call_id: id.into(),
            output,
            origin
        }
        .into()),
        (id(), text(), origin()).prop_map(move |(id, message, origin)| ToolFailed {
            turn_id: turn(),
            tool_call_id: id.into(),
            error: error((None, message)),
            origin,
        }
        .into()),
        (id(), text(), value()).prop_map(move |(id, message, value)| InterruptRaised {
            turn_id: turn(),
            interrupt_id: id.into(),
            reason: Some(String::new()),
            message: Some(message),
            tool_call_id: Some("x".into()),
            server: None,
            value,
        }
        .into()),
        (id(), prop::option::of(value()), prop::sample::select(vec!["resolved", "cancelled", ""])).prop_map(
            move |(id, payload, status)| InterruptAnswered {
                turn_id: turn(),
                interrupt_id: id.into(),
                status: status.into(),
                payload,
            }
            .into()
        ),
        value().prop_map(move |state| StateSnapshot { turn_id: turn(), state }.into()),
        (any::<bool>(), prop::option::of(text())).prop_map(move |(awaiting, hint)| AwaitingInput {
            turn_id: turn(),
            awaiting,
            hint
        }
        .into()),
        text().prop_map(move |message| Note { turn_id: turn(), message, event: None }.into()),
        (text(), prop::option::of(value()), prop::option::of(text())).prop_map(
            move |(outcome, result, reason)| AgentRunFinished {
                turn_id: turn(),
                run_id: "".into(),
                outcome: outcome.into(),
                result: result.clone(),
                usage: result,
                finish_reason: reason.map(Into::into),
            }
            .into()
        ),
        (prop::option::of(text()), text(), prop::option::of(value())).prop_map(
            move |(code, message, usage)| {
                AgentRunFailed { turn_id: turn(), error: error((code, message)), usage }.into()
            }
        ),
    ]
}

/// End of a turn: success, error, or none.
fn end() -> impl Strategy<Value = Option<Payload>> {
    let turn = || std::sync::Arc::<str>::from("t");
    prop_oneof![
        Just(None),
        Just(Some(TurnCompletion { turn_id: turn(), issues: None }.into())),
        text().prop_map(move |message| Some(
            TurnFailed { turn_id: turn(), error: ErrorInfo { code: None, message, retriable: None } }.into()
        )),
    ]
}

fn describe_calls(conversation: &TracedConversation) -> Vec<String> {
    let calls = conversation.scope().calls();
    calls.map(|(turn, call)| format!("{turn} {} {} {:?}", call.name, call.arguments, call.result)).collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        user in text(),
        case in text(),
        events in prop::collection::vec(event(), 0..12),
        late in prop::collection::vec(event(), 0..2),
        end in end(),
    ) {
        let mut recorder = TraceRecorder::new(SecretRedactor::default(), true);
        recorder.emit(TurnStart::by_user("t".into(), "c".into(), "hotseat"));
        recorder.emit(UserMessage { turn_id: "t".into(), message_id: "u".into(), content: user, attachments: Vec::new(), options: None });
        let mut called = std::collections::HashSet::new();
        for event in events.into_iter().chain(end).chain(late) {
            // Adapters never reuse a call id within a conversation.
            if !matches!(&event, Payload::ToolInvoked(call) if !called.insert(call.tool_call_id.clone())) {
                recorder.emit(event);
            }
        }
        let (conversation, records) = recorder.finish();
        let turns = turns_of(&records, &conversation);
        let calls: usize = turns.iter().flat_map(|turn| &turn.events).filter(|event| matches!(event.kind, super::RecordedEventKind::ToolCall { .. })).count();
        prop_assert_eq!(calls, describe_calls(&conversation).len(), "{:?}", describe_calls(&conversation));

        let folder = tempfile::tempdir().unwrap();
        let recording = AgentRecording { case: case.clone(), turns, ..AgentRecording::default() };
        write(folder.path(), &recording).unwrap();
        let path = folder.path().join(super::file_name(None, &case));
        let again = read(&path, "shown").map_err(|error| TestCaseError::fail(format!("{error:#?}\n{}", std::fs::read_to_string(&path).unwrap_or_default())))?;
        prop_assert_eq!(format!("{:?}", without_locations(again)), format!("{:?}", without_locations(recording)));
    }
}

/// Removes locations, which only read recordings have.
fn without_locations(mut recording: AgentRecording) -> AgentRecording {
    for turn in &mut recording.turns {
        turn.place = None;
        turn.events.iter_mut().for_each(|event| event.place = None);
    }
    recording
}
