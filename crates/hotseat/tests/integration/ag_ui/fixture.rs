//! Test fixture: runs a conversation and reads its result.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::{SourceText, yaml};
use hotseat_engine::cases::{DecodeSettings, InheritedSettings, TestCase};
use hotseat_engine::session::{ConversationResult, Session, SessionRoles, SessionTimeouts, run_conversation};
use hotseat_targets::ag_ui::{AgUiSession, AgUiTarget, ProtocolStrictness, RequestEnvelope, TimingSource};
use hotseat_targets::connection::http::HttpClient;
use hotseat_targets::message::ScriptedAnswers;
use hotseat_targets::recorder::{SecretRedactor, TraceRecorder};
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use hotseat_trace::{FailureKind, Payload, VerdictStatus};
use http::HeaderMap;
use serde_json::{Value, json};

/// Tests wait this long only if they fail.
pub const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// Events of an agent in a run or at its end.
pub type RunScript = fn(FakeRun) -> FakeRun;

/// An agent that answers every request with this run.
pub fn agent<R: Into<FakeReply>>(run: impl Fn(FakeRun) -> R + Send + Sync + 'static) -> FakeAgent {
    FakeAgent::start(move |request: &FakeRequest| run(FakeRun::for_request(request)))
}

/// An agent that answers the requests of a conversation with these runs in order.
pub fn scripted_agent(runs: Vec<RunScript>) -> FakeAgent {
    FakeAgent::start(move |request: &FakeRequest| {
        let run = runs.get(request.index).expect("the test says what this request is answered with");
        run(FakeRun::for_request(request))
    })
}

/// Runs a single-turn conversation with an agent that answers with this run.
pub fn run_turn_with(run: impl Fn(FakeRun) -> FakeRun + Send + Sync + 'static) -> ConversationOutcome {
    let agent = agent(run);
    TestConversation::new(&agent).user_says("hello").run()
}

/// Like `run_turn_with`, with strict protocol rules.
pub fn run_strict_turn(run: impl Fn(FakeRun) -> FakeRun + Send + Sync + 'static) -> ConversationOutcome {
    let agent = agent(run);
    TestConversation::new(&agent).strict().user_says("hello").run()
}

/// A planned conversation.
pub struct TestConversation {
    target: AgUiTarget,
    timeouts: SessionTimeouts,
    case: Value,
}

impl TestConversation {
    pub fn new(agent: &FakeAgent) -> TestConversation {
        let target = AgUiTarget {
            endpoint: agent.url().parse().expect("a fake agent has an address"),
            headers: HeaderMap::new(),
            envelope: RequestEnvelope::None,
            thread_id: None,
            state: json!({}),
            context: json!([]),
            forwarded_props: json!({}),
            strictness: ProtocolStrictness::Lenient,
            timing: TimingSource::Arrival,
            keep_raw: false,
        };
        let timeouts = SessionTimeouts { turn: WAIT_LIMIT, idle: WAIT_LIMIT, case: None };
        TestConversation { target, timeouts, case: json!({"name": "talk", "turns": []}) }
    }

    pub fn target(mut self, change: impl FnOnce(&mut AgUiTarget)) -> TestConversation {
        change(&mut self.target);
        self
    }

    pub fn strict(self) -> TestConversation {
        self.target(|target| target.strictness = ProtocolStrictness::Strict)
    }

    pub fn timeouts(mut self, turn: Duration, idle: Duration) -> TestConversation {
        self.timeouts = SessionTimeouts { turn, idle, case: None };
        self
    }

    /// Adds a turn.
    pub fn user_says(self, text: &str) -> TestConversation {
        self.turn(json!({"user": text}))
    }

    /// Adds a turn in case file format.
    pub fn turn(mut self, turn: Value) -> TestConversation {
        self.case["turns"].as_array_mut().expect("turns are a list").push(turn);
        self
    }

    /// Adds a member of the case in case file format.
    pub fn case(mut self, key: &str, value: Value) -> TestConversation {
        self.case[key] = value;
        self
    }

    pub fn run(self) -> ConversationOutcome {
        let case = read(&self.case);
        let http = Arc::new(HttpClient::default());
        let mut session = AgUiSession::open(http, self.target);
        let script = ScriptedAnswers::new(case.target.tools.clone());
        let recorder = TraceRecorder::new(SecretRedactor::default(), true);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let roles = SessionRoles::default();
        let session = Session::open(&case, &mut session, script, self.timeouts, roles, recorder);
        ConversationOutcome(runtime.block_on(run_conversation(session, None, pending())))
    }
}

/// Reads a case in case file format; JSON is YAML.
fn read(case: &Value) -> TestCase {
    let source = SourceText::new("talk.test.yaml", case.to_string(), 1);
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
    TestCase::read(&source, yaml::parse, decoding).expect("a sound case")
}

/// Result of a conversation.
pub struct ConversationOutcome(pub ConversationResult);

impl ConversationOutcome {
    #[track_caller]
    pub fn passed(self) -> ConversationOutcome {
        assert_eq!(
            self.0.verdict.status,
            VerdictStatus::Passed,
            "{:#?}\n{:#?}",
            self.0.verdict,
            self.0.checks
        );
        self
    }

    /// Asserts that it failed with this kind and that message and detail contain these words.
    #[track_caller]
    pub fn failed(self, kind: FailureKind, words: &str) -> ConversationOutcome {
        let failure = self.0.verdict.failure.as_ref().expect("it should have failed");
        let said = format!("{}\n{}", failure.message, failure.detail.as_deref().unwrap_or_default());
        assert!(failure.kind == kind && said.contains(words), "{failure:#?} instead of {kind:?}: {words}");
        self
    }

    /// All tool calls: turn, tool, arguments, result.
    pub fn calls(&self) -> Vec<String> {
        let calls = self.0.conversation.scope().calls();
        let shown = calls.map(|(turn, call)| {
            let result = match &call.result {
                Some(result) if result.failed => format!("failed: {}", result.text()),
                Some(result) => result.text(),
                None => "nothing".to_string(),
            };
            format!("{turn} {} {} → {result}", call.name, call.arguments)
        });
        shown.collect()
    }

    /// All agent texts with their turn.
    pub fn texts(&self) -> Vec<String> {
        let turns = self.0.conversation.turns.iter();
        turns
            .flat_map(|turn| {
                turn.messages.iter().map(|message| format!("{} {}", turn.number, message.content))
            })
            .collect()
    }

    /// All reasoning of the agent.
    pub fn reasoning_texts(&self) -> Vec<String> {
        let turns = self.0.conversation.turns.iter();
        turns.flat_map(|turn| turn.reasoning.iter().map(|thought| thought.content.to_string())).collect()
    }

    /// All protocol notes.
    pub fn notes(&self) -> Vec<String> {
        self.0.conversation.turns.iter().flat_map(|turn| turn.notes.clone()).collect()
    }

    /// Trace events of one type, as JSON.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let payloads = self.0.events.iter().map(|event| &event.payload);
        let meant = payloads.filter(|payload| payload.type_name() == name);
        meant.map(|payload| Payload::to_json(payload).expect("events are JSON")).collect()
    }

    /// Asserts that there are no notes.
    #[track_caller]
    pub fn assert_no_notes(self) -> ConversationOutcome {
        assert_eq!(self.notes(), Vec::<String>::new());
        self
    }

    /// Asserts that a note contains these words.
    #[track_caller]
    pub fn assert_note(self, words: &str) -> ConversationOutcome {
        assert!(self.notes().iter().any(|note| note.contains(words)), "{:#?} has no {words}", self.notes());
        self
    }
}

/// Messages of a request.
pub fn messages(request: &FakeRequest) -> Vec<Value> {
    request.input().messages().to_vec()
}

/// Roles of messages with called tools or answered calls.
pub fn roles(messages: &[Value]) -> Vec<String> {
    let one = |message: &Value| {
        let role = message["role"].as_str().unwrap_or("?");
        match (&message["toolCalls"], &message["toolCallId"]) {
            (Value::Array(calls), _) => {
                let ids: Vec<&str> = calls.iter().filter_map(|call| call["id"].as_str()).collect();
                format!("{role}({})", ids.join(","))
            }
            (_, Value::String(id)) => format!("{role}:{id}"),
            _ => role.to_string(),
        }
    };
    messages.iter().map(one).collect()
}
