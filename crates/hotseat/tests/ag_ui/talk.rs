//! Holding a conversation in a test, and reading what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hotseat::adapters::ag_ui::{Envelope, Session, Strictness, Target, TimingSource};
use hotseat::adapters::http::Http;
use hotseat::cases::{Case, Decoding, Inherited};
use hotseat::document::{Source, yaml};
use hotseat::session::{Held, Partners, Recorder, Redactor, Timeouts, TurnScript, hold};
use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Reply, Request};
use hotseat_trace::{FailureKind, Payload, Status};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

/// No test waits this long unless something is wrong.
pub const LONG: Duration = Duration::from_secs(20);

/// What an agent does in a run, or at the end of one.
pub type Play = fn(Run) -> Run;

/// An agent that answers every request with a run like this.
pub fn agent<R: Into<Reply>>(run: impl Fn(Run) -> R + Send + Sync + 'static) -> FakeAgent {
    FakeAgent::start(move |request: &Request| run(Run::of(request)))
}

/// An agent that answers the requests of a conversation with these runs, in this order.
pub fn agent_of(runs: Vec<Play>) -> FakeAgent {
    FakeAgent::start(move |request: &Request| {
        let run = runs.get(request.index).expect("the test says what this request is answered with");
        run(Run::of(request))
    })
}

/// A conversation of one turn with an agent that answers it with this run.
pub fn hears(run: impl Fn(Run) -> Run + Send + Sync + 'static) -> Told {
    let agent = agent(run);
    Talk::with(&agent).says("hello").held()
}

/// The same with the rules of the protocol taken strictly.
pub fn hears_strictly(run: impl Fn(Run) -> Run + Send + Sync + 'static) -> Told {
    let agent = agent(run);
    Talk::with(&agent).strictly().says("hello").held()
}

/// A conversation that is to be held.
pub struct Talk {
    target: Target,
    timeouts: Timeouts,
    case: Value,
}

impl Talk {
    pub fn with(agent: &FakeAgent) -> Talk {
        let target = Target {
            endpoint: agent.url().parse().expect("a fake agent has an address"),
            headers: HeaderMap::new(),
            envelope: Envelope::None,
            thread_id: None,
            state: json!({}),
            context: json!([]),
            forwarded_props: json!({}),
            strictness: Strictness::Lenient,
            timing: TimingSource::Arrival,
            keep_raw: false,
        };
        let timeouts = Timeouts { turn: LONG, idle: LONG, case: None };
        Talk { target, timeouts, case: json!({"name": "talk", "turns": []}) }
    }

    pub fn target(mut self, change: impl FnOnce(&mut Target)) -> Talk {
        change(&mut self.target);
        self
    }

    pub fn strictly(self) -> Talk {
        self.target(|target| target.strictness = Strictness::Strict)
    }

    pub fn timeouts(mut self, turn: Duration, idle: Duration) -> Talk {
        self.timeouts = Timeouts { turn, idle, case: None };
        self
    }

    /// Another turn.
    pub fn says(self, text: &str) -> Talk {
        self.turn(json!({"user": text}))
    }

    /// Another turn, written as in a case file.
    pub fn turn(mut self, turn: Value) -> Talk {
        self.case["turns"].as_array_mut().expect("turns are a list").push(turn);
        self
    }

    /// A member of the case, written as in a case file.
    pub fn case(mut self, key: &str, value: Value) -> Talk {
        self.case[key] = value;
        self
    }

    pub fn held(self) -> Told {
        let case = read(&self.case);
        let http = Arc::new(Http::default());
        let mut session = Session::open(http, self.target);
        let script = TurnScript::new(case.target.tools.clone());
        let recorder = Recorder::new(Redactor::default(), true);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Told(runtime.block_on(hold(
            &case,
            &mut session,
            script,
            self.timeouts,
            Partners::default(),
            recorder,
        )))
    }
}

/// A case as a case file would hold it; JSON is YAML.
fn read(case: &Value) -> Case {
    let source = Source::new("talk.test.yaml", case.to_string(), 1);
    let (inherited, environment, redactor) = (Inherited::default(), BTreeMap::new(), Redactor::default());
    let decoding = Decoding {
        inherited: &inherited,
        agents: &Default::default(),
        shared: &Default::default(),
        root: std::path::Path::new(""),
        environment: &environment,
        redactor: &redactor,
        default_simulator: false,
    };
    Case::read(&source, yaml::parse, decoding).expect("a sound case")
}

/// What came of a conversation.
pub struct Told(pub Held);

impl Told {
    #[track_caller]
    pub fn passed(self) -> Told {
        assert_eq!(self.0.verdict.status, Status::Passed, "{:#?}\n{:#?}", self.0.verdict, self.0.checks);
        self
    }

    /// It failed for this reason, and the words (message and detail) contain these.
    #[track_caller]
    pub fn failed(self, kind: FailureKind, words: &str) -> Told {
        let failure = self.0.verdict.failure.as_ref().expect("it should have failed");
        let said = format!("{}\n{}", failure.message, failure.detail.as_deref().unwrap_or_default());
        assert!(failure.kind == kind && said.contains(words), "{failure:#?} instead of {kind:?}: {words}");
        self
    }

    /// Every call of a tool: turn, tool, arguments, result.
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

    /// Every text of the agent with its turn.
    pub fn texts(&self) -> Vec<String> {
        let turns = self.0.conversation.turns.iter();
        turns
            .flat_map(|turn| {
                turn.messages.iter().map(|message| format!("{} {}", turn.number, message.content))
            })
            .collect()
    }

    /// Every thought of the agent.
    pub fn thoughts(&self) -> Vec<String> {
        let turns = self.0.conversation.turns.iter();
        turns.flat_map(|turn| turn.reasoning.iter().map(|thought| thought.content.clone())).collect()
    }

    /// What was noted about the protocol.
    pub fn notes(&self) -> Vec<String> {
        self.0.conversation.turns.iter().flat_map(|turn| turn.notes.clone()).collect()
    }

    /// Events of the trace of one type, their members as JSON.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let payloads = self.0.events.iter().map(|event| &event.payload);
        let meant = payloads.filter(|payload| payload.type_name() == name);
        meant.map(|payload| Payload::to_json(payload).expect("events are JSON")).collect()
    }

    /// Nothing was noted.
    #[track_caller]
    pub fn quietly(self) -> Told {
        assert_eq!(self.notes(), Vec::<String>::new());
        self
    }

    /// Something was noted that contains these words.
    #[track_caller]
    pub fn noting(self, words: &str) -> Told {
        assert!(self.notes().iter().any(|note| note.contains(words)), "{:#?} has no {words}", self.notes());
        self
    }
}

/// The messages that a request carries.
pub fn messages(request: &Request) -> Vec<Value> {
    request.input().messages().to_vec()
}

/// The roles of messages, with what identifies them at a glance: tools that are called, calls that are answered.
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
