//! Each fault as the client sees it, its events, and the selection of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hotseat_mcp::{
    ArgumentsMatcher, FaultKind, FaultRule, FaultTrigger, McpAnswer, McpCall, McpEventKind, McpToolResult,
    ServerDefinition,
};
use serde_json::{Value, json};

use crate::common::{Answers, Fixture, body_of, call, charge, open, stateless};

/// A mock whose calls count their effects.
struct FaultyMock {
    fixture: Fixture,
    effects: Arc<AtomicUsize>,
}

fn faulty(rules: Vec<FaultRule>) -> FaultyMock {
    let effects = Arc::new(AtomicUsize::new(0));
    let counted = effects.clone();
    let answers = Answers(move |call: &McpCall| {
        counted.fetch_add(1, Ordering::SeqCst);
        McpAnswer::Result(McpToolResult::from_value(json!({"charged": call.arguments["amount"]})))
    });
    let mut definition = ServerDefinition::mock("bank", vec![charge()]);
    definition.faults = rules;
    FaultyMock { fixture: open(definition, answers), effects }
}

fn first(kind: FaultKind) -> Vec<FaultRule> {
    vec![FaultRule { tool: Some("charge".to_string()), arguments: None, trigger: FaultTrigger::Nth(1), kind }]
}

/// Sends a call and returns status, content type and body, or `None` if the connection was closed.
async fn raw_call(url: &str, amount: u64) -> Option<(u16, String, String)> {
    let params = json!({"name": "charge", "arguments": {"amount": amount}});
    let response = stateless(url, "tools/call", params).send().await.ok()?;
    let content_type =
        response.headers().get("content-type").map(|value| value.to_str().unwrap().to_string());
    let status = response.status().as_u16();
    Some((status, content_type.unwrap_or_default(), body_of(response).await?))
}

/// Waits for the end of the first call: whether its fault was reported, and whether an answer was delivered.
async fn end_of_first_call(mock: &mut FaultyMock) -> (String, Option<bool>) {
    let fault = mock.fixture.wait_for(|event| match event {
        McpEventKind::FaultInjected { call: 1, rule: 0, fault } => Some(fault.name().to_string()),
        _ => None,
    });
    let fault = fault.await;
    let end = mock.fixture.wait_for(|event| match event {
        McpEventKind::CallAnswered { call: 1, delivered, .. } => Some(Some(*delivered)),
        McpEventKind::CallCancelled { call: 1, .. } => Some(None),
        _ => None,
    });
    (fault, end.await)
}

#[tokio::test]
async fn a_lost_answer_has_its_effect_and_closes_the_connection() {
    let mut mock = faulty(first(FaultKind::LostAnswer));
    assert_eq!(raw_call(&mock.fixture.url(), 5).await, None);
    assert_eq!(mock.effects.load(Ordering::SeqCst), 1, "the effect happens");
    assert_eq!(end_of_first_call(&mut mock).await, ("lost_answer".to_string(), Some(false)));
    let again = raw_call(&mock.fixture.url(), 5).await.unwrap();
    assert_eq!(again.0, 200);
    assert_eq!(mock.effects.load(Ordering::SeqCst), 2, "the client paid twice");
}

#[tokio::test]
async fn a_disconnect_has_no_effect() {
    let mut mock = faulty(first(FaultKind::Disconnect));
    assert_eq!(raw_call(&mock.fixture.url(), 5).await, None);
    assert_eq!(mock.effects.load(Ordering::SeqCst), 0);
    assert_eq!(end_of_first_call(&mut mock).await, ("disconnect".to_string(), Some(false)));
}

#[tokio::test]
async fn a_timeout_lasts_until_the_client_gives_up() {
    let mut mock = faulty(first(FaultKind::Timeout));
    let url = mock.fixture.url();
    let waited = tokio::time::timeout(Duration::from_millis(300), raw_call(&url, 5)).await;
    assert!(waited.is_err(), "no answer arrives");
    assert_eq!(mock.effects.load(Ordering::SeqCst), 0);
    assert_eq!(end_of_first_call(&mut mock).await, ("timeout".to_string(), None));
}

#[tokio::test]
async fn failures_before_the_effect_reach_the_client() {
    let kinds = [
        (FaultKind::Http(503), 503, "service unavailable\n"),
        (FaultKind::Http(401), 401, "unauthorized\n"),
        (FaultKind::RpcError { code: -32050, message: "try later".to_string() }, 200, "-32050"),
        (FaultKind::IsError { text: "the bank is closed".to_string() }, 200, "the bank is closed"),
    ];
    for (kind, status, text) in kinds {
        let mut mock = faulty(first(kind.clone()));
        let (found, _, body) = raw_call(&mock.fixture.url(), 5).await.unwrap();
        assert_eq!(found, status, "{kind}");
        assert!(body.contains(text), "{kind}: {body}");
        assert_eq!(mock.effects.load(Ordering::SeqCst), 0, "{kind}");
        assert_eq!(end_of_first_call(&mut mock).await, (kind.name().to_string(), Some(true)));
    }
}

#[tokio::test]
async fn broken_answers_have_their_effect() {
    let is_json = |body: &str| serde_json::from_str::<Value>(body).is_ok();
    for kind in [
        FaultKind::Empty,
        FaultKind::Garbage,
        FaultKind::Truncate,
        FaultKind::SchemaViolation,
        FaultKind::Huge { bytes: 300_000 },
        FaultKind::DuplicateAnswer,
    ] {
        let mut mock = faulty(first(kind.clone()));
        let (_, content_type, body) = raw_call(&mock.fixture.url(), 5).await.unwrap();
        let result = || serde_json::from_str::<Value>(&body).unwrap()["result"].clone();
        match &kind {
            FaultKind::Empty => assert_eq!(result()["content"], json!([])),
            FaultKind::Garbage => assert!(!is_json(&body)),
            FaultKind::Truncate => assert!(!is_json(&body) && body.starts_with("{\"jsonrpc\"")),
            FaultKind::SchemaViolation => assert!(!result()["content"].is_array()),
            FaultKind::Huge { .. } => assert!(body.len() >= 300_000),
            _ => {
                assert!(content_type.starts_with("text/event-stream"));
                assert_eq!(body.matches("\"charged\\\":5").count(), 2);
            }
        }
        assert_eq!(mock.effects.load(Ordering::SeqCst), 1, "{kind}");
        assert_eq!(end_of_first_call(&mut mock).await, (kind.name().to_string(), Some(true)));
        assert_eq!(
            call(&mock.fixture.url(), "charge", json!({"amount": 1})).await["result"]["isError"],
            Value::Null
        );
    }
}

#[tokio::test]
async fn slow_answers_are_complete() {
    for kind in
        [FaultKind::Delay(Duration::from_millis(200)), FaultKind::SlowStream(Duration::from_millis(200))]
    {
        let mock = faulty(first(kind.clone()));
        let start = Instant::now();
        let answer = call(&mock.fixture.url(), "charge", json!({"amount": 5})).await;
        assert!(start.elapsed() >= Duration::from_millis(180), "{kind}");
        assert_eq!(answer["result"]["structuredContent"], json!({"charged": 5}), "{kind}");
    }
}

#[tokio::test]
async fn a_stale_answer_is_the_previous_one_and_not_reached_without_one() {
    let rules = vec![FaultRule {
        tool: None,
        arguments: None,
        trigger: FaultTrigger::Every(1),
        kind: FaultKind::Stale,
    }];
    let mock = faulty(rules);
    let url = mock.fixture.url();
    let charged = |answer: Value| answer["result"]["structuredContent"]["charged"].clone();
    assert_eq!(charged(call(&url, "charge", json!({"amount": 1})).await), 1);
    assert_eq!(charged(call(&url, "charge", json!({"amount": 2})).await), 1);
    // The previous answer is the one that the server gave, not the one that the client got.
    assert_eq!(charged(call(&url, "charge", json!({"amount": 3})).await), 2);
}

/// Matches one amount.
#[derive(Debug)]
struct Amount(u64);

impl ArgumentsMatcher for Amount {
    fn matches(&self, arguments: &Value) -> bool {
        arguments["amount"] == self.0
    }
}

#[tokio::test]
async fn rules_select_by_tool_arguments_and_number() {
    let rule = |tool: Option<&str>, amount: Option<u64>, trigger| FaultRule {
        tool: tool.map(str::to_string),
        arguments: amount.map(|amount| Arc::new(Amount(amount)) as Arc<dyn ArgumentsMatcher>),
        trigger,
        kind: FaultKind::IsError { text: "broken".to_string() },
    };
    let mock = faulty(vec![
        rule(Some("charge"), Some(7), FaultTrigger::Nth(2)),
        rule(Some("refund"), None, FaultTrigger::Nth(1)),
        rule(None, Some(8), FaultTrigger::Every(2)),
    ]);
    let url = mock.fixture.url();
    let mut broken = Vec::new();
    for amount in [7, 1, 7, 7, 8, 8, 8, 8] {
        broken.push(call(&url, "charge", json!({"amount": amount})).await["result"]["isError"] == true);
    }
    assert_eq!(broken, [false, false, true, false, false, true, false, true]);
}

#[tokio::test]
async fn random_faults_depend_on_the_seed_and_not_on_the_order() {
    let drawn = |amounts: Vec<u64>| async move {
        let mock = faulty(vec![FaultRule {
            tool: None,
            arguments: None,
            trigger: FaultTrigger::Rate { seed: 3, rate: 0.4 },
            kind: FaultKind::IsError { text: "broken".to_string() },
        }]);
        let mut broken = Vec::new();
        for amount in amounts {
            let answer = call(&mock.fixture.url(), "charge", json!({"amount": amount})).await;
            if answer["result"]["isError"] == true {
                broken.push(amount);
            }
        }
        broken.sort_unstable();
        broken
    };
    let forward = drawn((0..60).collect()).await;
    let backward = drawn((0..60).rev().collect()).await;
    assert_eq!(forward, backward);
    assert!((12..=36).contains(&forward.len()), "{} of 60 at a rate of 0.4", forward.len());
}
