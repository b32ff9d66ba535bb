//! Deterministic models in real time.

use std::sync::Arc;
use std::time::Duration;

use hotseat_model::script::{ModelScript, Rule, ScriptedModel};
use hotseat_model::{
    DiscardSink, FunctionModel, LiveModel, Model, ModelErrorKind, ModelMessage, ModelReply, ModelRequest,
    ModelToolCall, ReplyAssembler, ReplyDelta, TimedValue,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::Instant;

fn scripted(rules: impl IntoIterator<Item = Rule>) -> LiveModel<ScriptedModel> {
    let script = rules.into_iter().fold(ModelScript::builder("s"), |script, rule| script.rule(rule));
    LiveModel::new(ScriptedModel::new(script.build().unwrap()))
}

#[test]
fn models_and_scripts_are_send_and_sync() {
    fn shared<T: Send + Sync>() {}
    shared::<ModelScript>();
    shared::<LiveModel<ScriptedModel>>();
}

/// A request with a position.
fn request() -> ModelRequest {
    let mut request = ModelRequest { messages: vec![ModelMessage::user("x")], ..ModelRequest::default() };
    (request.position.turn, request.position.call, request.position.attempt) = (1, 1, 1);
    request
}

#[tokio::test(start_paused = true)]
async fn text_deltas_are_spread_over_answer_duration() {
    let model = scripted([Rule::new().say("one two three").delay(Duration::from_millis(300))]);
    let started = Instant::now();
    let mut seen = Vec::new();
    let mut sink = |delta| seen.push((started.elapsed().as_millis(), delta));
    let reply = model.call(&request(), &mut sink).await.unwrap();
    assert_eq!(reply.text, "one two three");
    let text = |text: &str| ReplyDelta::Text { text: text.into() };
    assert_eq!(seen, [(100, text("one ")), (200, text("two ")), (300, text("three"))]);
    assert_eq!(started.elapsed().as_millis(), 300);
}

#[tokio::test(start_paused = true)]
async fn answer_without_text_is_delayed() {
    let model = scripted([Rule::new().fail(ModelErrorKind::Timeout).delay(Duration::from_secs(7))]);
    let started = Instant::now();
    assert_eq!(model.call(&request(), &mut DiscardSink).await.unwrap_err().kind, ModelErrorKind::Timeout);
    assert_eq!(started.elapsed(), Duration::from_secs(7));
}

#[tokio::test]
async fn output_before_failure_is_delivered() {
    let model = scripted([Rule::new().fail_after(ModelErrorKind::Network, "Let me see")]);
    let mut assembly = ReplyAssembler::default();
    let error = model.call(&request(), &mut |delta| assembly.add(&delta)).await.unwrap_err();
    assert_eq!(assembly.into_reply().text, "Let me see");
    assert_eq!(error.partial.unwrap().text, "Let me see");
}

#[tokio::test]
async fn used_rules_are_inspectable_while_model_lives() {
    let model = scripted([Rule::new().say("a"), Rule::new().turn(9).say("b")]);
    model.call(&request(), &mut DiscardSink).await.unwrap();
    assert_eq!(model.unused().len(), 1);
    assert_eq!(format!("{model:?}"), "LiveModel { name: \"s\", .. }");
}

#[tokio::test]
async fn models_work_behind_pointers() {
    let models: Vec<Box<dyn Model>> = vec![
        Box::new(scripted([Rule::new().say("a")])),
        Box::new(Arc::new(LiveModel::new(FunctionModel::new("f", |_: &ModelRequest| {
            TimedValue::now(Ok(ModelReply::text("a")))
        })))),
    ];
    for model in models {
        assert_eq!(model.call(&request(), &mut DiscardSink).await.unwrap().text, "a");
    }
}

fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        "[ -~]{0,8}".prop_map(|text| json!({"text": text, "list": [1, null, true]})),
        // Invalid JSON, JSON-like text, and empty text.
        prop_oneof![
            Just("{oops"),
            Just("7"),
            Just("null"),
            Just(""),
            Just("  "),
            Just("\"quoted\""),
            Just("[1]")
        ]
        .prop_map(Value::from),
    ]
}

fn reply() -> impl Strategy<Value = ModelReply> {
    let text = || "([a-zé🌍]{0,5}[ \n\t]{0,2}){0,6}";
    let calls = proptest::collection::vec(("[a-z]{1,4}", arguments()), 0..4);
    (text(), text(), calls).prop_map(|(text, reasoning, calls)| {
        let calls = calls.into_iter().enumerate();
        let tool_calls: Vec<ModelToolCall> = calls
            .map(|(index, (name, arguments))| ModelToolCall {
                id: format!("call_{index}"),
                name,
                arguments,
                ..ModelToolCall::default()
            })
            .collect();
        let whole = if tool_calls.is_empty() {
            ModelReply::text(text)
        } else {
            ModelReply { text, ..ModelReply::tool_calls(tool_calls) }
        };
        ModelReply { reasoning, ..whole }
    })
}

proptest! {
    #[test]
    fn stream_pieces_build_reply(reply in reply()) {
        let mut assembly = ReplyAssembler::default();
        for delta in reply.deltas() {
            assembly.add(&delta);
        }
        prop_assert_eq!(assembly.is_empty(), reply == ModelReply::default());
        prop_assert_eq!(assembly.into_reply(), reply);
    }
}
