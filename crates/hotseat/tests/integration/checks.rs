//! Checks against a reference implementation: random conversations and assertions, decided by code that uses
//! no regular expressions, paths or traces and follows the reference documentation alone.

use std::collections::BTreeMap;
use std::time::Duration;

use hotseat_checks::Check;
use hotseat_document::{SourceText, yaml};
use hotseat_engine::cases::{DecodeSettings, InheritedSettings, TestCase};
use hotseat_targets::recorder::SecretRedactor;
use hotseat_trace::{
    AssistantMessage, ErrorInfo, Event, Origin, Payload, TimeOffset, ToolCompleted, ToolFailed,
    ToolInvocation, TracedConversation, TurnCompletion, TurnScope, TurnStart,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const TOOLS: [&str; 3] = ["search", "pay", "Pay"];

/// Argument paths, and the text at that path in each of the [`arguments`].
const PATHS: [(&str, [Option<&str>; 4]); 8] = [
    ("n", [Some("1"), Some("12"), Some("null"), None]),
    ("city", [Some("Paris"), Some("paris"), None, None]),
    ("cart.items.0.sku", [Some("A"), Some("B"), None, None]),
    ("cart.items.1.sku", [None, Some("A"), None, None]),
    ("cart.items", [Some(r#"[{"sku":"A"}]"#), Some(r#"[{"sku":"B"},{"sku":"A"}]"#), None, None]),
    ("a.b", [Some("dotted"), Some("nested"), None, None]),
    ("flag", [Some("true"), Some("false"), Some("[]"), None]),
    ("missing", [None, None, None, None]),
];

fn arguments(number: usize) -> Value {
    match number {
        0 => {
            json!({"n": 1, "city": "Paris", "cart": {"items": [{"sku": "A"}]}, "a.b": "dotted", "a": {"b": "hidden"}, "flag": true})
        }
        1 => {
            json!({"n": 12, "city": "paris", "cart": {"items": [{"sku": "B"}, {"sku": "A"}]}, "a": {"b": "nested"}, "flag": false})
        }
        2 => json!({"n": null, "flag": []}),
        _ => json!({}),
    }
}

/// Tool results and the text they are matched by.
const RESULTS: [Option<&str>; 5] =
    [None, Some("approved"), Some("declined"), Some(r#"{"status":"approved","n":12}"#), Some("A\nB")];

#[derive(Debug, Clone)]
struct SampleConversation {
    turns: Vec<SampleTurn>,
}

/// Times in milliseconds.
#[derive(Debug, Clone)]
struct SampleTurn {
    /// From the end of the previous turn.
    pause: u64,
    length: u64,
    calls: Vec<SampleCall>,
    texts: Vec<&'static str>,
}

#[derive(Debug, Clone)]
struct SampleCall {
    tool: &'static str,
    arguments: usize,
    result: usize,
    failed: bool,
    /// From the start of the turn, and from there to the result.
    begins: u64,
    lasts: u64,
}

/// A pattern that needs no regular expressions.
#[derive(Debug, Clone)]
enum SimplePattern {
    Contains(&'static str),
    Equals(&'static str),
    ContainsInAnyCase(&'static str),
    Anything,
}

impl SimplePattern {
    fn to_pattern(&self) -> String {
        match self {
            SimplePattern::Contains(text) => hotseat_checks::escape(text),
            SimplePattern::Equals(text) => format!("^{}$", hotseat_checks::escape(text)),
            SimplePattern::ContainsInAnyCase(text) => format!("/{}/i", hotseat_checks::escape(text)),
            SimplePattern::Anything => ".*".to_string(),
        }
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            SimplePattern::Contains(part) => text.contains(part),
            SimplePattern::Equals(whole) => text == *whole,
            SimplePattern::ContainsInAnyCase(part) => text.to_lowercase().contains(&part.to_lowercase()),
            SimplePattern::Anything => true,
        }
    }
}

type Arguments = Vec<(usize, SimplePattern)>;

/// One assertion.
#[derive(Debug, Clone)]
enum SampleAssertion {
    Forbid(Vec<&'static str>),
    Require(RequiredCall),
    ForbidCall { tool: &'static str, arguments: Arguments, result: Vec<SimplePattern> },
    Duration(u64),
    Gap(u64),
    Idle(u64),
    MustMatch(Vec<SimplePattern>),
    MustNotMatch(Vec<SimplePattern>),
}

#[derive(Debug, Clone)]
struct RequiredCall {
    tool: &'static str,
    count: Option<(Option<u64>, Option<u64>)>,
    arguments: Arguments,
    arguments_not: Arguments,
    result: Vec<SimplePattern>,
    result_not: Vec<SimplePattern>,
    after: Option<&'static str>,
}

// ---- written form
// ------------------------------------------------------------------------------------------

fn arguments_by_path(arguments: &Arguments) -> Value {
    let patterns =
        arguments.iter().map(|(path, pattern)| (PATHS[*path].0.to_string(), json!(pattern.to_pattern())));
    Value::Object(patterns.collect())
}

fn one_or_many(patterns: &[SimplePattern]) -> Value {
    match patterns {
        [one] => json!(one.to_pattern()),
        many => json!(many.iter().map(SimplePattern::to_pattern).collect::<Vec<_>>()),
    }
}

impl SampleAssertion {
    fn to_value(&self) -> Value {
        match self {
            SampleAssertion::Forbid(tools) => json!({"tools": {"forbid": tools}}),
            SampleAssertion::Require(require) => json!({"tools": {"require": [require.to_value()]}}),
            SampleAssertion::ForbidCall { tool, arguments, result } => {
                let mut entry = json!({"name": tool});
                if !arguments.is_empty() {
                    entry["args_match"] = arguments_by_path(arguments);
                }
                if !result.is_empty() {
                    entry["result_match"] = one_or_many(result);
                }
                json!({"tools": {"forbid_calls": [entry]}})
            }
            SampleAssertion::Duration(limit) => json!({"timing": {"max_duration_ms": limit}}),
            SampleAssertion::Gap(limit) => json!({"timing": {"max_gap_ms": limit}}),
            SampleAssertion::Idle(limit) => json!({"timing": {"max_idle_ms": limit}}),
            SampleAssertion::MustMatch(patterns) => json!({"text": {"must_match": one_or_many(patterns)}}),
            SampleAssertion::MustNotMatch(patterns) => {
                json!({"text": {"must_not_match": one_or_many(patterns)}})
            }
        }
    }
}

impl RequiredCall {
    fn to_value(&self) -> Value {
        let mut entry = json!({"name": self.tool});
        match self.count {
            None => {}
            Some((Some(min), Some(max))) if min == max => entry["count"] = json!({"exact": min}),
            Some((min, max)) => {
                let bounds = [("min", min), ("max", max)]
                    .into_iter()
                    .filter_map(|(name, bound)| Some((name.to_string(), json!(bound?))));
                entry["count"] = Value::Object(bounds.collect());
            }
        }
        for (key, arguments) in [("args_match", &self.arguments), ("args_not_match", &self.arguments_not)] {
            if !arguments.is_empty() {
                entry[key] = arguments_by_path(arguments);
            }
        }
        for (key, patterns) in [("result_match", &self.result), ("result_not_match", &self.result_not)] {
            if !patterns.is_empty() {
                entry[key] = one_or_many(patterns);
            }
        }
        if let Some(after) = self.after {
            entry["after"] = json!(after);
        }
        entry
    }
}

// ---- reference implementation
// ------------------------------------------------------------------------------

/// The evaluated part of a conversation as a flat list of events on one time line.
struct ObservedPart<'a> {
    /// In start order.
    calls: Vec<(&'a SampleCall, u64, u64)>,
    text: String,
    begins: u64,
    ends: u64,
}

fn observe<'a>(talk: &'a SampleConversation, turns: std::ops::Range<usize>) -> ObservedPart<'a> {
    let mut clock = 0;
    let mut seen = ObservedPart { calls: Vec::new(), text: String::new(), begins: 0, ends: 0 };
    let mut texts = Vec::new();
    for (number, turn) in talk.turns.iter().enumerate() {
        // The time between evaluated turns is not the agent's.
        if number <= turns.start {
            clock += turn.pause;
        }
        if turns.contains(&number) {
            if number == turns.start {
                seen.begins = clock;
            }
            let times = |call: &SampleCall| (clock + call.begins, clock + call.begins + call.runs_for());
            seen.calls.extend(turn.calls.iter().map(|call| (call, times(call).0, times(call).1)));
            texts.extend(turn.texts.iter().copied());
        }
        clock += turn.length;
        if turns.contains(&number) {
            seen.ends = clock;
        }
    }
    seen.text = texts.join("\n");
    seen
}

impl SampleCall {
    /// The duration of a call without a result is unknown.
    fn runs_for(&self) -> u64 {
        if RESULTS[self.result].is_some() { self.lasts } else { 0 }
    }

    fn has_arguments(&self, wanted: &Arguments) -> bool {
        wanted
            .iter()
            .all(|(path, pattern)| PATHS[*path].1[self.arguments].is_some_and(|text| pattern.matches(text)))
    }

    fn has_one_of(&self, unwanted: &Arguments) -> bool {
        unwanted
            .iter()
            .any(|(path, pattern)| PATHS[*path].1[self.arguments].is_some_and(|text| pattern.matches(text)))
    }

    fn has_result(&self, wanted: &[SimplePattern]) -> bool {
        wanted.iter().all(|pattern| RESULTS[self.result].is_some_and(|text| pattern.matches(text)))
    }

    /// A missing result could have been any.
    fn may_have_result(&self, wanted: &[SimplePattern]) -> bool {
        RESULTS[self.result].is_none() || self.has_result(wanted)
    }
}

impl ObservedPart<'_> {
    /// Returns true if an assertion passes for every possible value of the missing results.
    fn is_satisfied(&self, assertion: &SampleAssertion) -> bool {
        match assertion {
            SampleAssertion::Forbid(tools) => !self.calls.iter().any(|(call, ..)| tools.contains(&call.tool)),
            SampleAssertion::Require(require) => self.is_required_satisfied(require),
            SampleAssertion::ForbidCall { tool, arguments, result } => {
                let like_this = |call: &SampleCall| {
                    call.tool == *tool && call.has_arguments(arguments) && call.may_have_result(result)
                };
                !self.calls.iter().any(|(call, ..)| like_this(call))
            }
            SampleAssertion::Duration(limit) => self.ends - self.begins <= *limit,
            SampleAssertion::Gap(limit) => {
                match (self.calls.first(), self.calls.iter().map(|(_, _, ends)| *ends).max()) {
                    (Some((_, first, _)), Some(last)) => self.longest_idle(*first, last) <= *limit,
                    _ => true,
                }
            }
            SampleAssertion::Idle(limit) => self.longest_idle(self.begins, self.ends) <= *limit,
            SampleAssertion::MustMatch(patterns) => {
                patterns.iter().all(|pattern| pattern.matches(&self.text))
            }
            SampleAssertion::MustNotMatch(patterns) => {
                !patterns.iter().any(|pattern| pattern.matches(&self.text))
            }
        }
    }

    fn is_required_satisfied(&self, require: &RequiredCall) -> bool {
        let of_tool: Vec<usize> =
            (0..self.calls.len()).filter(|place| self.calls[*place].0.tool == require.tool).collect();
        let meant: Vec<usize> = of_tool
            .iter()
            .copied()
            .filter(|place| self.calls[*place].0.has_arguments(&require.arguments))
            .collect();
        let counted: Vec<usize> =
            meant.iter().copied().filter(|place| self.calls[*place].0.has_result(&require.result)).collect();

        let (min, max) = match require.count {
            None => (1, u64::MAX),
            Some((min, max)) => (min.unwrap_or(0), max.unwrap_or(u64::MAX)),
        };
        let possible: Vec<usize> = meant
            .iter()
            .copied()
            .filter(|place| self.calls[*place].0.may_have_result(&require.result))
            .collect();
        let enough = (counted.len()..=possible.len()).all(|count| (min..=max).contains(&(count as u64)));
        let clean = !meant.iter().any(|place| self.calls[*place].0.has_one_of(&require.arguments_not));
        let good = !meant.iter().any(|place| {
            let result = RESULTS[self.calls[*place].0.result];
            require.result_not.iter().any(|pattern| result.is_none_or(|text| pattern.matches(text)))
        });
        let began_before =
            |place: usize, tool: &str| self.calls[..place].iter().any(|(call, ..)| call.tool == tool);
        let in_order = match require.after {
            None => true,
            Some(tool) if tool == require.tool => counted.iter().any(|place| began_before(*place, tool)),
            Some(tool) => possible.iter().all(|place| began_before(*place, tool)),
        };
        enough && clean && good && in_order
    }

    /// Longest time without a running tool, counted by millisecond. A call splits it even if it takes no
    /// time.
    fn longest_idle(&self, from: u64, to: u64) -> u64 {
        let (mut longest, mut current) = (0, 0);
        for now in from..to {
            let touched = self.calls.iter().any(|(_, begins, ends)| *begins == now || *ends == now);
            let busy = self.calls.iter().any(|(_, begins, ends)| (*begins..*ends).contains(&now));
            if touched || busy {
                current = 0;
            }
            current += u64::from(!busy);
            longest = longest.max(current);
        }
        longest
    }
}

// ---- evaluated conversation
// --------------------------------------------------------------------------------

/// The conversation as built from its trace.
fn conversation(talk: &SampleConversation) -> TracedConversation {
    let mut happened: Vec<(u64, Payload)> = Vec::new();
    let mut clock = 0;
    for (number, turn) in talk.turns.iter().enumerate() {
        clock += turn.pause;
        let turn_id: std::sync::Arc<str> = format!("turn-{}", number + 1).into();
        let started = TurnStart::by_user(turn_id.clone(), "t".into(), "x");
        happened.push((clock, started.into()));
        let mut within: Vec<(u64, Payload)> = Vec::new();
        for (place, call) in turn.calls.iter().enumerate() {
            let tool_call_id: std::sync::Arc<str> = format!("c-{number}-{place}").into();
            let invoked = ToolInvocation {
                turn_id: turn_id.clone(),
                tool_call_id: tool_call_id.clone(),
                tool_name: call.tool.into(),
                input: Some(arguments(call.arguments)),
                ..ToolInvocation::default()
            };
            within.push((clock + call.begins, invoked.into()));
            if let Some(text) = RESULTS[call.result] {
                let (turn_id, origin) = (turn_id.clone(), Origin::Stream);
                let answered: Payload = match call.failed {
                    true => ToolFailed {
                        turn_id,
                        tool_call_id,
                        error: ErrorInfo { code: None, message: text.into(), retriable: None },
                        origin,
                    }
                    .into(),
                    false => {
                        let output = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
                        ToolCompleted { turn_id, tool_call_id, output, origin }.into()
                    }
                };
                within.push((clock + call.begins + call.lasts, answered));
            }
        }
        for (place, text) in turn.texts.iter().enumerate() {
            let message = AssistantMessage {
                turn_id: turn_id.clone(),
                message_id: format!("m-{number}-{place}").into(),
                content: (*text).into(),
                has_tool_use: Some(false),
                started_us: None,
                origin: Origin::Stream,
                subagent: None,
            };
            within.push((clock, message.into()));
        }
        within.sort_by_key(|(at, _)| *at);
        happened.extend(within);
        clock += turn.length;
        happened.push((clock, TurnCompletion { turn_id, issues: None }.into()));
    }
    let events: Vec<Event> = happened
        .into_iter()
        .zip(1..)
        .map(|((at, payload), sequence)| Event {
            sequence,
            offset: TimeOffset::from_millis(at),
            timestamp: 0,
            payload,
        })
        .collect();
    TracedConversation::from_events(&events)
}

/// Checks of an assertion at case level and at the level of each turn.
fn case(talk: &SampleConversation, assertion: &SampleAssertion) -> TestCase {
    let block = assertion.to_value();
    let turns: Vec<Value> = talk.turns.iter().map(|_| json!({"user": "hi", "assert": block})).collect();
    let case = json!({"name": "random", "turns": turns, "assert": block});
    let source = SourceText::new("random.test.yaml", case.to_string(), 1);
    let (inherited, environment, redactor) =
        (InheritedSettings::default(), BTreeMap::new(), SecretRedactor::default());
    let decoding = DecodeSettings {
        inherited: &inherited,
        agents: &Default::default(),
        shared: &Default::default(),
        root: std::path::Path::new(""),
        environment: &environment,
        redactor: &redactor,
        default_simulator: false,
    };
    TestCase::read(&source, yaml::parse, decoding).expect("what is generated is sound")
}

fn all_pass(checks: &[Check], scope: TurnScope<'_>) -> bool {
    checks.iter().all(|check| check.decide(scope).passed)
}

// ---- generators
// --------------------------------------------------------------------------------------------

fn pattern() -> impl Strategy<Value = SimplePattern> {
    let text = prop_oneof![
        Just("1"),
        Just("12"),
        Just("Paris"),
        Just("A"),
        Just("approved"),
        Just("declined"),
        Just("null"),
        Just("true"),
        Just("nested"),
        Just("[]"),
        Just("status\":\"app"),
        Just("A\nB"),
        Just("Done."),
        Just(""),
    ];
    (text, 0..3).prop_map(|(text, kind)| match kind {
        1 => SimplePattern::Equals(text),
        // Empty patterns are rejected.
        _ if text.is_empty() => SimplePattern::Anything,
        0 => SimplePattern::Contains(text),
        _ => SimplePattern::ContainsInAnyCase(text),
    })
}

fn tool() -> impl Strategy<Value = &'static str> {
    (0..TOOLS.len()).prop_map(|number| TOOLS[number])
}

fn patterns(most: usize) -> impl Strategy<Value = Vec<SimplePattern>> {
    proptest::collection::vec(pattern(), 0..=most)
}

fn some_patterns() -> impl Strategy<Value = Vec<SimplePattern>> {
    proptest::collection::vec(pattern(), 1..=2)
}

fn some_arguments() -> impl Strategy<Value = Arguments> {
    proptest::collection::btree_map(0..PATHS.len(), pattern(), 0..=2)
        .prop_map(|patterns| patterns.into_iter().collect())
}

fn require() -> impl Strategy<Value = RequiredCall> {
    let count = prop_oneof![
        Just(None),
        (0..3_u64).prop_map(|exact| Some((Some(exact), Some(exact)))),
        (0..3_u64).prop_map(|min| Some((Some(min), None))),
        (0..3_u64).prop_map(|max| Some((None, Some(max)))),
        (0..3_u64, 1..3_u64).prop_map(|(min, more)| Some((Some(min), Some(min + more)))),
    ];
    let after = proptest::option::weighted(0.4, tool());
    let required = (tool(), count, some_arguments(), some_arguments(), patterns(1), patterns(1), after)
        .prop_map(|(tool, count, arguments, arguments_not, result, result_not, after)| RequiredCall {
            tool,
            count,
            arguments,
            arguments_not,
            result,
            result_not,
            after,
        });
    required.prop_filter("any number of calls is enough", |one| {
        let is_limited = one.count != Some((Some(0), None));
        is_limited || one.after.is_some() || !one.arguments_not.is_empty() || !one.result_not.is_empty()
    })
}

fn assertion() -> impl Strategy<Value = SampleAssertion> {
    prop_oneof![
        2 => proptest::collection::vec(tool(), 1..3).prop_map(SampleAssertion::Forbid),
        8 => require().prop_map(SampleAssertion::Require),
        4 => (tool(), some_arguments(), patterns(2)).prop_map(|(tool, arguments, result)| SampleAssertion::ForbidCall { tool, arguments, result }),
        1 => (1..60_u64).prop_map(SampleAssertion::Duration),
        2 => (1..12_u64).prop_map(SampleAssertion::Gap),
        2 => (1..12_u64).prop_map(SampleAssertion::Idle),
        2 => some_patterns().prop_filter("every text matches", |all| !all.iter().any(|one| matches!(one, SimplePattern::Anything))).prop_map(SampleAssertion::MustMatch),
        2 => some_patterns().prop_map(SampleAssertion::MustNotMatch),
    ]
}

fn call() -> impl Strategy<Value = SampleCall> {
    // Few tools and arguments, so that assertions are often close to passing or failing.
    let tool = prop_oneof![3 => Just("pay"), 1 => Just("search"), 1 => Just("Pay")];
    (tool, 0..4_usize, 0..RESULTS.len(), proptest::bool::weighted(0.2), 0..20_u64, 0..8_u64).prop_map(
        |(tool, arguments, result, failed, begins, lasts)| SampleCall {
            tool,
            arguments,
            result,
            failed,
            begins,
            lasts,
        },
    )
}

fn turn() -> impl Strategy<Value = SampleTurn> {
    let texts = prop_oneof![Just("A"), Just("B"), Just("Done."), Just("approved"), Just("it is 12")];
    (0..4_u64, 0..4_u64, proptest::collection::vec(call(), 0..5), proptest::collection::vec(texts, 0..3))
        .prop_map(|(pause, more, mut calls, texts)| {
            calls.sort_by_key(|call| call.begins);
            let length = calls.iter().map(|call| call.begins + call.lasts).max().unwrap_or(0) + more;
            SampleTurn { pause, length, calls, texts }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn checks_agree_with_reference(turns in proptest::collection::vec(turn(), 1..4), assertion in assertion()) {
        let talk = SampleConversation { turns };
        let conversation = conversation(&talk);
        let case = case(&talk, &assertion);
        let whole = observe(&talk, 0..talk.turns.len());
        prop_assert_eq!(all_pass(&case.checks, conversation.scope()), whole.is_satisfied(&assertion), "over the whole conversation");
        for (number, turn) in case.turns.iter().enumerate() {
            let scope = conversation.turn_scope(number).expect("the turn was held");
            let part = observe(&talk, number..number + 1);
            prop_assert_eq!(all_pass(&turn.checks, scope), part.is_satisfied(&assertion), "in turn {}", number + 1);
        }
    }

    #[test]
    fn decided_checks_report_expected_and_actual(turns in proptest::collection::vec(turn(), 1..3), assertion in assertion()) {
        let talk = SampleConversation { turns };
        let conversation = conversation(&talk);
        for check in &case(&talk, &assertion).checks {
            let verdict = check.decide(conversation.scope());
            prop_assert_eq!(&verdict.expected, &check.describe());
            prop_assert!(!verdict.expected.is_empty() && !verdict.actual.is_empty());
            prop_assert_eq!(check.decide(conversation.scope()), verdict, "the same question has the same answer");
        }
    }
}

/// Random tests are meaningful only if each kind of random assertion both passes and fails.
#[test]
fn random_assertions_pass_and_fail() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut met: BTreeMap<(usize, bool), usize> = BTreeMap::new();
    let strategy = (proptest::collection::vec(turn(), 1..4), assertion());
    for _ in 0..1000 {
        let (turns, assertion) = strategy.new_tree(&mut runner).expect("nothing is rejected").current();
        let talk = SampleConversation { turns };
        let kind = match assertion {
            SampleAssertion::Forbid(_) => 0,
            SampleAssertion::Require(_) => 1,
            SampleAssertion::ForbidCall { .. } => 2,
            SampleAssertion::Duration(_) => 3,
            SampleAssertion::Gap(_) => 4,
            SampleAssertion::Idle(_) => 5,
            SampleAssertion::MustMatch(_) => 6,
            SampleAssertion::MustNotMatch(_) => 7,
        };
        let holds = observe(&talk, 0..talk.turns.len()).is_satisfied(&assertion);
        *met.entry((kind, holds)).or_default() += 1;
    }
    assert!(met.len() == 16 && met.values().all(|times| *times >= 3), "{met:?}");
}

/// A98, A117, A123, A126: edge cases with the most likely misreadings.
#[test]
fn edge_cases_have_expected_messages() {
    let call = |tool: &'static str, arguments: usize, result: usize, begins: u64| SampleCall {
        tool,
        arguments,
        result,
        failed: false,
        begins,
        lasts: 2,
    };
    let talk = SampleConversation {
        turns: vec![SampleTurn {
            pause: 0,
            length: 40,
            calls: vec![call("pay", 0, 1, 0), call("search", 3, 0, 10), call("pay", 1, 2, 20)],
            texts: vec!["A", "B"],
        }],
    };
    let conversation = conversation(&talk);
    for (block, holds) in [
        // One bad result of two fails.
        (json!({"tools": {"require": [{"name": "pay", "result_not_match": "declined"}]}}), false),
        (
            json!({"tools": {"require": [{"name": "pay", "args_match": {"n": "^1$"}, "result_not_match": "declined"}]}}),
            true,
        ),
        // A missing result is unknown.
        (json!({"tools": {"require": [{"name": "search", "result_match": ".*"}]}}), false),
        (json!({"tools": {"require": [{"name": "search", "result_not_match": ".*"}]}}), false),
        (json!({"tools": {"forbid_calls": [{"name": "search", "result_match": "declined"}]}}), false),
        (json!({"tools": {"require": [{"name": "search", "count": {"exact": 1}}]}}), true),
        // Never called, in four spellings.
        (json!({"tools": {"forbid": ["refund"]}}), true),
        (json!({"tools": {"require": [{"name": "refund", "count": {"exact": 0}}]}}), true),
        (json!({"tools": {"require": [{"name": "refund", "count": {"max": 0}}]}}), true),
        (json!({"tools": {"require": [{"name": "refund", "count": {"min": 0, "max": 2}}]}}), true),
        // The order applies to the matching calls, not to the first call of a name.
        (json!({"tools": {"require": [{"name": "pay", "after": "search"}]}}), false),
        (
            json!({"tools": {"require": [{"name": "pay", "args_match": {"n": "^12$"}, "after": "search"}]}}),
            true,
        ),
        (json!({"tools": {"require": [{"name": "search", "after": "refund"}]}}), false),
        // A tool follows itself if it is called again.
        (json!({"tools": {"require": [{"name": "search", "after": "search"}]}}), false),
        (json!({"tools": {"require": [{"name": "pay", "after": "pay"}]}}), true),
        // Names must match exactly.
        (json!({"tools": {"forbid": ["PAY", "pa"]}}), true),
        // Limits are inclusive; there are 8 ms between two calls of 2 ms each, and 18 ms after the last.
        (json!({"timing": {"max_duration_ms": 40}}), true),
        (json!({"timing": {"max_duration_ms": 39}}), false),
        (json!({"timing": {"max_gap_ms": 10}}), true),
        (json!({"timing": {"max_gap_ms": 9}}), false),
        (json!({"timing": {"max_idle_ms": 18}}), true),
        (json!({"timing": {"max_idle_ms": 17}}), false),
        // Several messages are joined with line ends.
        (json!({"text": {"must_match": "A\nB"}}), true),
        (json!({"text": {"must_match": ["A", "C"]}}), false),
        (json!({"text": {"must_not_match": ["C", "A"]}}), false),
    ] {
        let case = json!({"name": "x", "turns": [{"user": "hi"}], "assert": block});
        let source = SourceText::new("x.test.yaml", case.to_string(), 1);
        let (inherited, environment, redactor) =
            (InheritedSettings::default(), BTreeMap::new(), SecretRedactor::default());
        let decoding = DecodeSettings {
            inherited: &inherited,
            agents: &Default::default(),
            shared: &Default::default(),
            root: std::path::Path::new(""),
            environment: &environment,
            redactor: &redactor,
            default_simulator: false,
        };
        let case = TestCase::read(&source, yaml::parse, decoding).expect("a sound case");
        assert_eq!(all_pass(&case.checks, conversation.scope()), holds, "{block}");
    }
    assert_eq!(conversation.scope().duration(), Duration::from_millis(40));
}
