//! Pure models in real time, and calls that are made again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotseat_model::script::{Rule, Script, Scripted};
use hotseat_model::{
    Assembly, Delta, Discard, ErrorKind, Function, Live, Message, Model, ModelError, Reply, Request,
    RetryPolicy, Retrying, Sleep, Sleeping, Timed, ToolCall,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::Instant;

/// Waits for nothing and remembers how long it should have waited.
#[derive(Clone, Default)]
struct NoWait(Arc<Mutex<Vec<u128>>>);

impl NoWait {
    fn waits(&self) -> Vec<u128> {
        self.0.lock().unwrap().clone()
    }
}

impl Sleep for NoWait {
    fn sleep(&self, time: Duration) -> Sleeping {
        self.0.lock().unwrap().push(time.as_millis());
        Box::pin(async {})
    }
}

fn scripted(rules: impl IntoIterator<Item = Rule>) -> Live<Scripted> {
    let script = rules.into_iter().fold(Script::builder("s"), |script, rule| script.rule(rule));
    Live::new(Scripted::new(script.build().unwrap()))
}

#[test]
fn models_and_scripts_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Script>();
    shared::<Live<Scripted>>();
    shared::<Retrying<Live<Scripted>>>();
}

/// The request of a caller that knows where it is.
fn request() -> Request {
    let mut request = Request { messages: vec![Message::user("x")], ..Request::default() };
    (request.position.turn, request.position.call, request.position.attempt) = (1, 1, 1);
    request
}

#[tokio::test(start_paused = true)]
async fn words_are_spread_over_the_time_that_an_answer_takes() {
    let model = scripted([Rule::new().say("one two three").delay(Duration::from_millis(300))]);
    let started = Instant::now();
    let mut seen = Vec::new();
    let mut sink = |delta| seen.push((started.elapsed().as_millis(), delta));
    let reply = model.call(&request(), &mut sink).await.unwrap();
    assert_eq!(reply.text, "one two three");
    let text = |text: &str| Delta::Text { text: text.into() };
    assert_eq!(seen, [(100, text("one ")), (200, text("two ")), (300, text("three"))]);
    assert_eq!(started.elapsed().as_millis(), 300);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_words_takes_its_time_as_well() {
    let model = scripted([Rule::new().fail(ErrorKind::Timeout).delay(Duration::from_secs(7))]);
    let started = Instant::now();
    assert_eq!(model.call(&request(), &mut Discard).await.unwrap_err().kind, ErrorKind::Timeout);
    assert_eq!(started.elapsed(), Duration::from_secs(7));
}

#[tokio::test]
async fn what_came_before_a_failure_is_seen() {
    let model = scripted([Rule::new().fail_after(ErrorKind::Network, "Let me see")]);
    let mut assembly = Assembly::default();
    let error = model.call(&request(), &mut |delta| assembly.add(&delta)).await.unwrap_err();
    assert_eq!(assembly.reply().text, "Let me see");
    assert_eq!(error.partial.unwrap().text, "Let me see");
}

#[tokio::test]
async fn rules_can_be_looked_at_while_a_model_lives() {
    let model = scripted([Rule::new().say("a"), Rule::new().turn(9).say("b")]);
    model.call(&request(), &mut Discard).await.unwrap();
    assert_eq!(model.look(|scripted| scripted.unused().len()), 1);
    assert_eq!(format!("{model:?}"), "Live { name: \"s\", .. }");
}

#[tokio::test]
async fn models_are_used_behind_pointers() {
    let models: Vec<Box<dyn Model>> = vec![
        Box::new(scripted([Rule::new().say("a")])),
        Box::new(Arc::new(Live::new(Function::new("f", |_: &Request| Timed::now(Ok(Reply::text("a"))))))),
    ];
    for model in models {
        assert_eq!(model.call(&request(), &mut Discard).await.unwrap().text, "a");
    }
}

/// A model that fails with these errors, one after the other, and then replies; with the attempts that it was asked.
fn failing(errors: Vec<ModelError>) -> (impl Model, Arc<Mutex<Vec<u32>>>) {
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let (asked, mut errors) = (Arc::clone(&attempts), errors.into_iter());
    let answer = move |request: &Request| {
        asked.lock().unwrap().push(request.position.attempt);
        Timed::now(errors.next().map_or_else(|| Ok(Reply::text("fine")), Err))
    };
    (Live::new(Function::new("failing", answer)), attempts)
}

fn error(kind: ErrorKind) -> ModelError {
    ModelError::new(kind, "broken")
}

#[tokio::test]
async fn what_can_be_retried_is_retried_with_growing_waits() {
    let policy = RetryPolicy { attempts: 6, longest_wait: Duration::from_secs(3), ..RetryPolicy::default() };
    let kinds =
        [ErrorKind::Network, ErrorKind::Timeout, ErrorKind::RateLimit, ErrorKind::Server, ErrorKind::Server];
    let (model, attempts) = failing(kinds.map(error).to_vec());
    let sleep = NoWait::default();
    let model = Retrying::new(model, policy).with_sleep(Arc::new(sleep.clone()));
    assert_eq!(model.call(&request(), &mut Discard).await.unwrap().text, "fine");
    assert_eq!(sleep.waits(), [500, 1000, 2000, 3000, 3000]);
    assert_eq!(*attempts.lock().unwrap(), [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn attempts_come_to_an_end() {
    let (model, attempts) = failing(vec![error(ErrorKind::Server); 9]);
    let model = Retrying::new(model, RetryPolicy::default()).with_sleep(Arc::new(NoWait::default()));
    assert_eq!(model.call(&request(), &mut Discard).await.unwrap_err().kind, ErrorKind::Server);
    assert_eq!(attempts.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn what_cannot_be_retried_is_not() {
    let kinds = [
        ErrorKind::Auth,
        ErrorKind::BadRequest,
        ErrorKind::ContextTooLong,
        ErrorKind::Decode,
        ErrorKind::Configuration,
        ErrorKind::Unanswered,
    ];
    for kind in kinds {
        let (model, attempts) = failing(vec![error(kind)]);
        let model = Retrying::new(model, RetryPolicy::default()).with_sleep(Arc::new(NoWait::default()));
        assert_eq!(model.call(&request(), &mut Discard).await.unwrap_err().kind, kind);
        assert_eq!(attempts.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_provider_is_left_alone_as_long_as_it_asks() {
    let asks = |millis| ModelError {
        retry_after: Some(Duration::from_millis(millis)),
        ..error(ErrorKind::RateLimit)
    };
    let (model, _) = failing(vec![asks(1), asks(4000)]);
    let sleep = NoWait::default();
    let model = Retrying::new(model, RetryPolicy::default()).with_sleep(Arc::new(sleep.clone()));
    assert!(model.call(&request(), &mut Discard).await.is_ok());
    assert_eq!(sleep.waits(), [500, 4000]);

    // Longer than the policy allows: the caller is told at once.
    let (model, attempts) = failing(vec![asks(30_001)]);
    let model = Retrying::new(model, RetryPolicy::default()).with_sleep(Arc::new(NoWait::default()));
    assert!(model.call(&request(), &mut Discard).await.is_err());
    assert_eq!(attempts.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn nothing_is_retried_after_output_unless_the_caller_asks() {
    let after_output =
        || vec![ModelError { partial: Some(Box::new(Reply::text("Let me "))), ..error(ErrorKind::Network) }];
    let (model, attempts) = failing(after_output());
    let model = Retrying::new(model, RetryPolicy::default()).with_sleep(Arc::new(NoWait::default()));
    assert!(model.call(&request(), &mut Discard).await.is_err());
    assert_eq!(attempts.lock().unwrap().len(), 1);

    let (model, _) = failing(after_output());
    let policy = RetryPolicy { after_output: true, ..RetryPolicy::default() };
    let model = Retrying::new(model, policy).with_sleep(Arc::new(NoWait::default()));
    let (mut seen, mut assembly) = (Vec::new(), Assembly::default());
    let mut sink = |delta: Delta| {
        assembly.add(&delta);
        seen.push(delta);
    };
    assert_eq!(model.call(&request(), &mut sink).await.unwrap().text, "fine");
    assert_eq!(seen[2], Delta::Restarted);
    assert_eq!(assembly.reply().text, "fine");
}

fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        "[ -~]{0,8}".prop_map(|text| json!({"text": text, "list": [1, null, true]})),
        // What is not JSON, what looks like JSON, and what is nothing.
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

fn reply() -> impl Strategy<Value = Reply> {
    let text = || "([a-zé🌍]{0,5}[ \n\t]{0,2}){0,6}";
    let calls = proptest::collection::vec(("[a-z]{1,4}", arguments()), 0..4);
    (text(), text(), calls).prop_map(|(text, reasoning, calls)| {
        let calls = calls.into_iter().enumerate();
        let tool_calls: Vec<ToolCall> = calls
            .map(|(index, (name, arguments))| ToolCall { id: format!("call_{index}"), name, arguments })
            .collect();
        let whole = if tool_calls.is_empty() {
            Reply::text(text)
        } else {
            Reply { text, ..Reply::tool_calls(tool_calls) }
        };
        Reply { reasoning, ..whole }
    })
}

proptest! {
    #[test]
    fn the_pieces_of_a_reply_make_the_reply(reply in reply()) {
        let mut assembly = Assembly::default();
        for delta in reply.deltas() {
            assembly.add(&delta);
        }
        prop_assert_eq!(assembly.is_empty(), reply == Reply::default());
        prop_assert_eq!(assembly.reply(), reply);
    }

    #[test]
    fn waits_never_shrink_and_never_pass_the_longest(first in 0u64..5000, longest in 0u64..60_000, attempts in 1u32..80) {
        let policy = RetryPolicy {
            attempts,
            first_wait: Duration::from_millis(first),
            longest_wait: Duration::from_millis(longest),
            after_output: false,
        };
        let error = error(ErrorKind::Server);
        let waits: Vec<Duration> = (1..).map_while(|attempt| policy.wait(attempt, &error, false)).collect();
        prop_assert_eq!(waits.len(), attempts as usize - 1);
        prop_assert!(waits.is_sorted());
        prop_assert!(waits.iter().all(|wait| *wait <= policy.longest_wait));
    }
}
