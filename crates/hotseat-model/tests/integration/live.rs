//! Deterministic models in real time, and retries.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotseat_model::script::{ModelScript, Rule, ScriptedModel};
use hotseat_model::{
    DiscardSink, FunctionModel, LiveModel, Model, ModelError, ModelErrorKind, ModelMessage, ModelReply,
    ModelRequest, ModelToolCall, ReplyAssembler, ReplyDelta, RetryPolicy, RetryingModel, Sleep, SleepFuture,
    TimedValue,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::Instant;

/// Returns immediately and records the requested durations.
#[derive(Clone, Default)]
struct InstantTimer(Arc<Mutex<Vec<u128>>>);

impl InstantTimer {
    fn recorded_waits(&self) -> Vec<u128> {
        self.0.lock().unwrap().clone()
    }
}

impl Sleep for InstantTimer {
    fn sleep(&self, time: Duration) -> SleepFuture {
        self.0.lock().unwrap().push(time.as_millis());
        Box::pin(async {})
    }
}

fn scripted(rules: impl IntoIterator<Item = Rule>) -> LiveModel<ScriptedModel> {
    let script = rules.into_iter().fold(ModelScript::builder("s"), |script, rule| script.rule(rule));
    LiveModel::new(ScriptedModel::new(script.build().unwrap()))
}

#[test]
fn models_and_scripts_are_send_and_sync() {
    fn shared<T: Send + Sync>() {}
    shared::<ModelScript>();
    shared::<LiveModel<ScriptedModel>>();
    shared::<RetryingModel<LiveModel<ScriptedModel>>>();
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
    assert_eq!(model.inspect(|scripted| scripted.unused().len()), 1);
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

/// A model that fails with these errors in order and then replies, and the attempts it received.
fn failing_model(errors: Vec<ModelError>) -> (impl Model, Arc<Mutex<Vec<u32>>>) {
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let (asked, mut errors) = (Arc::clone(&attempts), errors.into_iter());
    let answer = move |request: &ModelRequest| {
        asked.lock().unwrap().push(request.position.attempt);
        TimedValue::now(errors.next().map_or_else(|| Ok(ModelReply::text("fine")), Err))
    };
    (LiveModel::new(FunctionModel::new("failing", answer)), attempts)
}

fn error(kind: ModelErrorKind) -> ModelError {
    ModelError::new(kind, "broken")
}

#[tokio::test]
async fn retryable_errors_are_retried_with_backoff() {
    let policy = RetryPolicy { max_attempts: 6, max_delay: Duration::from_secs(3), ..RetryPolicy::default() };
    let kinds = [
        ModelErrorKind::Network,
        ModelErrorKind::Timeout,
        ModelErrorKind::RateLimit,
        ModelErrorKind::Server,
        ModelErrorKind::Server,
    ];
    let (model, attempts) = failing_model(kinds.map(error).to_vec());
    let sleep = InstantTimer::default();
    let model = RetryingModel::new(model, policy).with_sleep(Arc::new(sleep.clone()));
    assert_eq!(model.call(&request(), &mut DiscardSink).await.unwrap().text, "fine");
    assert_eq!(sleep.recorded_waits(), [500, 1000, 2000, 3000, 3000]);
    assert_eq!(*attempts.lock().unwrap(), [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn retries_are_limited() {
    let (model, attempts) = failing_model(vec![error(ModelErrorKind::Server); 9]);
    let model =
        RetryingModel::new(model, RetryPolicy::default()).with_sleep(Arc::new(InstantTimer::default()));
    assert_eq!(model.call(&request(), &mut DiscardSink).await.unwrap_err().kind, ModelErrorKind::Server);
    assert_eq!(attempts.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn permanent_errors_are_not_retried() {
    let kinds = [
        ModelErrorKind::Auth,
        ModelErrorKind::BadRequest,
        ModelErrorKind::ContextTooLong,
        ModelErrorKind::Decode,
        ModelErrorKind::Configuration,
        ModelErrorKind::Unanswered,
    ];
    for kind in kinds {
        let (model, attempts) = failing_model(vec![error(kind)]);
        let model =
            RetryingModel::new(model, RetryPolicy::default()).with_sleep(Arc::new(InstantTimer::default()));
        assert_eq!(model.call(&request(), &mut DiscardSink).await.unwrap_err().kind, kind);
        assert_eq!(attempts.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn retry_after_is_respected() {
    let asks = |millis| ModelError {
        retry_after: Some(Duration::from_millis(millis)),
        ..error(ModelErrorKind::RateLimit)
    };
    let (model, _) = failing_model(vec![asks(1), asks(4000)]);
    let sleep = InstantTimer::default();
    let model = RetryingModel::new(model, RetryPolicy::default()).with_sleep(Arc::new(sleep.clone()));
    assert!(model.call(&request(), &mut DiscardSink).await.is_ok());
    assert_eq!(sleep.recorded_waits(), [500, 4000]);

    // Longer than the policy allows: the error is returned immediately.
    let (model, attempts) = failing_model(vec![asks(30_001)]);
    let model =
        RetryingModel::new(model, RetryPolicy::default()).with_sleep(Arc::new(InstantTimer::default()));
    assert!(model.call(&request(), &mut DiscardSink).await.is_err());
    assert_eq!(attempts.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn partial_output_is_not_retried_by_default() {
    let after_output = || {
        vec![ModelError {
            partial: Some(Box::new(ModelReply::text("Let me "))),
            ..error(ModelErrorKind::Network)
        }]
    };
    let (model, attempts) = failing_model(after_output());
    let model =
        RetryingModel::new(model, RetryPolicy::default()).with_sleep(Arc::new(InstantTimer::default()));
    assert!(model.call(&request(), &mut DiscardSink).await.is_err());
    assert_eq!(attempts.lock().unwrap().len(), 1);

    let (model, _) = failing_model(after_output());
    let policy = RetryPolicy { after_output: true, ..RetryPolicy::default() };
    let model = RetryingModel::new(model, policy).with_sleep(Arc::new(InstantTimer::default()));
    let (mut seen, mut assembly) = (Vec::new(), ReplyAssembler::default());
    let mut sink = |delta: ReplyDelta| {
        assembly.add(&delta);
        seen.push(delta);
    };
    assert_eq!(model.call(&request(), &mut sink).await.unwrap().text, "fine");
    assert_eq!(seen[2], ReplyDelta::Restarted);
    assert_eq!(assembly.into_reply().text, "fine");
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

    #[test]
    fn backoff_grows_up_to_maximum(first in 0u64..5000, longest in 0u64..60_000, attempts in 1u32..80) {
        let policy = RetryPolicy {
            max_attempts: attempts,
            initial_delay: Duration::from_millis(first),
            max_delay: Duration::from_millis(longest),
            after_output: false,
        };
        let error = error(ModelErrorKind::Server);
        let waits: Vec<Duration> = (1..).map_while(|attempt| policy.delay_after(attempt, &error, false)).collect();
        prop_assert_eq!(waits.len(), attempts as usize - 1);
        prop_assert!(waits.is_sorted());
        prop_assert!(waits.iter().all(|wait| *wait <= policy.max_delay));
    }
}
