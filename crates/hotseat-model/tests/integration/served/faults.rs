//! Injected faults.

use std::time::{Duration, Instant};

use hotseat_model::serve::{FaultKind, FaultTrigger, ModelFault, ServeLimits};
use http::Method;
use serde_json::{Value, json};

use super::common::{Answer, PATHS, Served, ask, streamed};

const SCRIPT: &str = "
use: always
rules:
  - when: { user: call }
    reply: { tool_calls: [{ name: pay, arguments: { order: abcdef } }] }
  - reply: one two three four five six";

fn first(kind: FaultKind) -> Vec<ModelFault> {
    vec![ModelFault { trigger: FaultTrigger::Nth(1), kind }]
}

fn served(faults: Vec<ModelFault>) -> Served {
    Served::with(SCRIPT, faults, ServeLimits::default())
}

/// The answer to the first call, and to the second one, which gets no fault.
async fn broken(kind: FaultKind, path: &str, stream: bool, text: &str) -> (Answer, Vec<String>) {
    let mut served = served(first(kind));
    let mut body = ask(path, text);
    body["stream"] = stream.into();
    let answer = served.post(path, &body).await;
    let mut events = served.events();
    assert!(events.remove(0).starts_with("1 received"));
    let second = served.post(path, &body).await;
    assert_eq!((second.status, second.is_broken), (200, false));
    (answer, events)
}

#[tokio::test]
async fn statuses_and_headers() {
    for path in PATHS {
        for stream in [false, true] {
            let delay = Some(Duration::from_millis(20));
            let (limited, events) =
                broken(FaultKind::RateLimit { retry_after: delay }, path, stream, "x").await;
            assert_eq!((limited.status, limited.header("retry-after-ms")), (429, Some("20")));
            assert_eq!(limited.json()["error"]["type"], "rate_limit_error");
            assert_eq!(events, ["1 fault 0: rate_limit with retry-after of 20 ms", "1 failed: rate_limit"]);
            let (overloaded, _) = broken(FaultKind::Overloaded, path, stream, "x").await;
            let status = if path == "v1/messages" { 529 } else { 503 };
            assert_eq!(overloaded.status, status);
            let (other, events) = broken(FaultKind::Http(403), path, stream, "x").await;
            assert_eq!(other.status, 403);
            assert_eq!(events, ["1 fault 0: http 403", "1 failed: auth"]);
        }
    }
}

#[tokio::test]
async fn lost_and_cut_answers() {
    for path in PATHS {
        for stream in [false, true] {
            for kind in [FaultKind::Disconnect, FaultKind::LostAnswer] {
                let (answer, events) = broken(kind, path, stream, "x").await;
                assert!(answer.is_broken && answer.body.is_empty(), "{}", answer.body);
                assert_eq!(events[1], "1 failed: network");
            }
            let (cut, _) = broken(FaultKind::Truncate, path, stream, "x").await;
            assert!(cut.is_broken && !cut.body.is_empty(), "{path} {stream}: {}", cut.body);
            assert!(!stream || (cut.body.contains("three") && !cut.body.contains("four")), "{}", cut.body);
            let (garbage, _) = broken(FaultKind::Garbage, path, stream, "x").await;
            assert!(garbage.status == 200 && serde_json::from_str::<Value>(&garbage.body).is_err());
        }
    }
}

#[tokio::test]
async fn changed_replies() {
    for path in PATHS {
        for stream in [false, true] {
            let (empty, events) = broken(FaultKind::Empty, path, stream, "x").await;
            assert!(empty.status == 200 && !empty.body.contains("two"), "{}", empty.body);
            assert_eq!(events, ["1 fault 0: empty", "1 answered: \"\" "]);
            let (malformed, events) = broken(FaultKind::MalformedArguments, path, stream, "call").await;
            assert!(malformed.body.contains("{\\\"ord"), "{}", malformed.body);
            assert!(!malformed.body.contains("abcdef"), "{}", malformed.body);
            assert_eq!(events, ["1 fault 0: malformed_arguments", "pay is none of ", "1 answered: \"\" pay"]);
        }
    }
}

#[tokio::test]
async fn late_answers() {
    let begun = Instant::now();
    let (late, _) = broken(FaultKind::Delay(Duration::from_millis(150)), PATHS[0], true, "x").await;
    assert_eq!(late.status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(150));
    let mut served = served(first(FaultKind::Timeout));
    let url = format!("{}/{}", served.url(), PATHS[0]);
    let request = served.request(Method::POST, &url).body(ask(PATHS[0], "x").to_string());
    assert!(tokio::time::timeout(Duration::from_millis(100), served.send(request)).await.is_err());
    assert_eq!(served.events()[1..], ["1 fault 0: timeout", "1 failed: timeout"]);
}

#[tokio::test]
async fn rules_count_calls() {
    let rule = |trigger, kind| ModelFault { trigger, kind };
    let served = served(vec![
        rule(FaultTrigger::Every(2), FaultKind::Http(500)),
        rule(FaultTrigger::Nth(3), FaultKind::Overloaded),
        rule(FaultTrigger::Nth(9), FaultKind::Garbage),
        rule(FaultTrigger::Nth(1), FaultKind::MalformedArguments),
    ]);
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(served.post(PATHS[0], &ask(PATHS[0], "x")).await.status);
    }
    assert_eq!(statuses, [200, 500, 503, 500]);
}

#[tokio::test]
async fn random_faults_depend_on_the_seed_and_the_request_only() {
    let statuses = async |seed: u64, reversed: bool| {
        let trigger = FaultTrigger::Rate { seed, rate: 0.5 };
        let served = served(vec![ModelFault { trigger, kind: FaultKind::Http(500) }]);
        let mut numbers: Vec<u32> = (0..40).collect();
        if reversed {
            numbers.reverse();
        }
        let mut statuses = std::collections::BTreeMap::new();
        for number in numbers {
            let answer = served.post(PATHS[0], &streamed(ask(PATHS[0], &number.to_string()))).await;
            statuses.insert(number, answer.status);
        }
        statuses
    };
    let one = statuses(1, false).await;
    assert_eq!(one, statuses(1, true).await);
    assert_ne!(one, statuses(2, false).await);
    let broken = one.values().filter(|status| **status == 500).count();
    assert!((10..=30).contains(&broken), "{broken}");
    assert_eq!(json!(one.len()), json!(40));
}
