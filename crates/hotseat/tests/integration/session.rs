//! A session driven by a program: the recorded trace decides, regardless of the program's own handling.

use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use hotseat_checks::{
    Check, CheckKind, CheckStrength, ContainsText, JudgeSettings, MaxDuration, PrecomputedCheck,
    RoleReference,
};
use hotseat_document::{Diagnostics, DocumentNode, NodeView, SourceText, yaml};
use hotseat_engine::cases;
use hotseat_engine::cases::{
    CaseProgram, CaseTopics, CaseTurn, DecodeSettings, InheritedSettings, TestCase, TopicCheckPolicy,
    TopicSettings, criterion_check,
};
use hotseat_engine::roles::RoleClient;
use hotseat_engine::session::{
    CaseBody, CheckSubject, ConversationResult, EndedCaseError, Session, SessionRoles, SessionTimeouts,
    SimulationOptions, run_conversation,
};
use hotseat_model::LiveModel;
use hotseat_model::script::{ModelScript, ScriptedModel};
use hotseat_targets::BoxFuture;
use hotseat_targets::ag_ui;
use hotseat_targets::ag_ui::{AgUiTarget, ProtocolStrictness, RequestEnvelope};
use hotseat_targets::connection::http::HttpClient;
use hotseat_targets::message::{ContentPart, ScriptedAnswers};
use hotseat_targets::recorder::{SecretRedactor, TraceRecorder};
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use hotseat_trace::{AttemptFailure, FailureKind, VerdictStatus};
use http::HeaderMap;
use serde_json::json;

/// Tests wait this long only if they fail.
const WAIT_LIMIT: Duration = Duration::from_secs(20);

type Program = for<'a> fn(&'a mut Session<'_>) -> BoxFuture<'a, Result<(), AttemptFailure>>;

struct ProgramBody(Program);

impl fmt::Debug for ProgramBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a program")
    }
}

impl CaseBody for ProgramBody {
    fn drive<'a>(&'a self, session: &'a mut Session<'_>) -> BoxFuture<'a, Result<(), AttemptFailure>> {
        (self.0)(session)
    }
}

/// Result of a program whose agent always answers "at your service", and the number of requests.
fn run_program(program: Program) -> (ConversationResult, usize) {
    let agent = FakeAgent::with_text("at your service");
    let held = run_program_with(&agent, "{name: program}", program, WAIT_LIMIT);
    (held, agent.requests().len())
}

fn run_program_with(agent: &FakeAgent, case: &str, program: Program, turn: Duration) -> ConversationResult {
    run_program_with_roles(agent, case, program, turn, SessionRoles::default())
}

fn run_program_with_roles(
    agent: &FakeAgent,
    case: &str,
    program: Program,
    turn: Duration,
    partners: SessionRoles,
) -> ConversationResult {
    let target = AgUiTarget {
        endpoint: agent.url().parse().unwrap(),
        headers: HeaderMap::new(),
        envelope: RequestEnvelope::None,
        thread_id: None,
        state: json!({}),
        context: json!([]),
        forwarded_props: json!({}),
        strictness: ProtocolStrictness::Lenient,
        timing: ag_ui::TimingSource::Arrival,
        keep_raw: false,
    };
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
    let source = SourceText::new("program.yaml", case.to_string(), 1);
    let mut case = TestCase::read(&source, yaml::parse, decoding).unwrap();
    case.program = Some(CaseProgram::default());
    let body = ProgramBody(program);
    let mut session = ag_ui::AgUiSession::open(Arc::new(HttpClient::default()), target);
    let timeouts = SessionTimeouts { turn, idle: WAIT_LIMIT, case: None };
    let recorder = TraceRecorder::new(SecretRedactor::default(), true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let script = ScriptedAnswers::new(Vec::new());
    let session = Session::open(&case, &mut session, script, timeouts, partners, recorder);
    runtime.block_on(run_conversation(session, Some(&body), pending()))
}

async fn send_user_text(session: &mut Session<'_>, words: &str) -> Result<(), EndedCaseError> {
    let turn = CaseTurn {
        content: vec![ContentPart::Text(words.to_string())],
        ..session.case().turn_defaults.clone()
    };
    session.send_turn(turn).await
}

#[test]
fn program_has_default_time_limit() {
    let (held, _) = run_program(|session| {
        Box::pin(async move {
            assert_eq!(
                session.conversation_deadline().map(|(_, limit)| limit),
                Some(Duration::from_secs(300))
            );
            Ok(())
        })
    });
    assert_eq!(held.verdict.status, VerdictStatus::Passed, "{:?}", held.verdict);
}

fn contains(session: &Session<'_>, text: &str) -> Check {
    let kind =
        CheckKind::ContainsText(ContainsText { text: text.to_string(), must_contain: true, turns: None });
    Check::new(kind, session.case().place.clone())
}

fn soft(check: Check) -> Check {
    Check { strength: CheckStrength::Soft, ..check }
}

#[track_caller]
fn assert_failed(held: &ConversationResult, kind: FailureKind, words: &str) {
    let failure = held.verdict.failure.as_ref().expect("it should have failed");
    assert!(failure.kind == kind && failure.message.contains(words), "{failure:#?}");
}

#[test]
fn program_holds_conversation_and_evaluates_checks() {
    let (held, asked) = run_program(|session| {
        Box::pin(async move {
            send_user_text(session, "hello").await.unwrap();
            assert_eq!(session.conversation().turns.len(), 1);
            let check = contains(session, "service");
            assert!(session.evaluate(check, CheckSubject::LastTurn).await.unwrap().verdict.passed);
            send_user_text(session, "again").await.unwrap();
            let check = contains(session, "at your");
            session.evaluate(check, CheckSubject::Conversation).await.unwrap();
            Ok(())
        })
    });
    assert_eq!((held.verdict.status, asked), (VerdictStatus::Passed, 2));
    let turns: Vec<Option<usize>> = held.checks.iter().map(|checked| checked.turn).collect();
    assert_eq!(turns, [Some(1), None]);
}

#[test]
fn failed_hard_check_ends_case_even_if_program_continues() {
    let (held, asked) = run_program(|session| {
        Box::pin(async move {
            send_user_text(session, "hello").await.unwrap();
            let check = contains(session, "no such words");
            let ended = session.evaluate(check, CheckSubject::LastTurn).await.unwrap_err();
            assert!(ended.ended_now, "{ended:?}");
            // The recorded trace decides: the program ignores the failure and continues.
            for _ in 0..2 {
                let ended = send_user_text(session, "again").await.unwrap_err();
                assert!(ended.reason.starts_with("the case has ended: expected "), "{ended:?}");
                assert!(!ended.ended_now);
            }
            let check = contains(session, "service");
            assert!(session.evaluate(check, CheckSubject::LastTurn).await.is_err());
            session.skip("never mind");
            Ok(())
        })
    });
    assert_eq!((held.checks.len(), asked), (1, 1));
    assert_failed(&held, FailureKind::Assertion, "no such words");
}

#[test]
fn soft_check_is_only_recorded() {
    let (held, asked) = run_program(|session| {
        Box::pin(async move {
            send_user_text(session, "hello").await.unwrap();
            let check = soft(contains(session, "no such words"));
            assert!(!session.evaluate(check, CheckSubject::LastTurn).await.unwrap().verdict.passed);
            send_user_text(session, "again").await.unwrap();
            Ok(())
        })
    });
    assert_eq!((held.verdict.status, held.checks.len(), asked), (VerdictStatus::Passed, 1, 2));
}

#[test]
fn turn_check_before_first_turn_is_undecidable() {
    for (negated, strength) in
        [(false, CheckStrength::Hard), (true, CheckStrength::Hard), (true, CheckStrength::Soft)]
    {
        let program: Program = match (negated, strength) {
            (false, _) => |session| {
                Box::pin(async move {
                    let check = contains(session, "service");
                    drop(session.evaluate(check, CheckSubject::LastTurn).await.unwrap_err());
                    Ok(())
                })
            },
            (true, CheckStrength::Hard) => |session| {
                Box::pin(async move {
                    let check = Check { negated: true, ..contains(session, "service") };
                    drop(session.evaluate(check, CheckSubject::LastTurn).await.unwrap_err());
                    Ok(())
                })
            },
            (true, CheckStrength::Soft) => |session| {
                Box::pin(async move {
                    let check = soft(Check { negated: true, ..contains(session, "service") });
                    assert!(session.evaluate(check, CheckSubject::LastTurn).await.unwrap().error.is_some());
                    Ok(())
                })
            },
        };
        let (held, _) = run_program(program);
        match strength {
            CheckStrength::Hard => {
                assert_failed(&held, FailureKind::TestError, "there is no turn to check yet; send one first")
            }
            CheckStrength::Soft => assert_eq!(held.verdict.status, VerdictStatus::Passed),
        }
    }
}

#[test]
fn continue_on_failure_reports_all_failures() {
    let agent = FakeAgent::with_text("at your service");
    let case = "{name: program, continue_on_failure: true}";
    let program: Program = |session| {
        Box::pin(async move {
            let place = session.case().place.clone();
            let compared = |actual: &str, holds| {
                let (expected, actual) = ("to be 4".to_string(), actual.to_string());
                Check::new(
                    CheckKind::Precomputed(PrecomputedCheck { expected, actual, result: Ok(holds) }),
                    place.clone(),
                )
            };
            for check in [compared("3", false), compared("4", true), compared("5", false)] {
                session.evaluate(check, CheckSubject::Value).await.unwrap();
            }
            send_user_text(session, "hello").await.unwrap();
            Ok(())
        })
    };
    let held = run_program_with(&agent, case, program, WAIT_LIMIT);
    assert_failed(&held, FailureKind::Assertion, "2 checks failed; first: expected to be 4, got 3");
    let passed: Vec<bool> = held.checks.iter().map(|checked| checked.verdict.passed).collect();
    assert_eq!(passed, [false, true, false]);
}

#[test]
fn program_error_fails_case_unless_already_ended() {
    let broken = |words: &str| AttemptFailure::new(FailureKind::ScriptError, words);
    let (held, _) = run_program(|_| {
        Box::pin(async { Err(AttemptFailure::new(FailureKind::ScriptError, "x is not defined")) })
    });
    assert_eq!(held.verdict.failure, Some(broken("x is not defined")));
    let (held, _) = self::run_program(|session| {
        Box::pin(async move {
            session.skip("not today");
            Err(AttemptFailure::new(FailureKind::ScriptError, "x is not defined"))
        })
    });
    assert_eq!(held.verdict.skip_reason.as_deref(), Some("not today"));
}

#[test]
fn unresponsive_agent_ends_case() {
    let agent = FakeAgent::start(|_: &FakeRequest| FakeReply::never());
    let program: Program = |session| {
        Box::pin(async move {
            send_user_text(session, "hello").await.unwrap_err();
            send_user_text(session, "hello?").await.unwrap_err();
            Ok(())
        })
    };
    let held = run_program_with(&agent, "{name: program}", program, Duration::from_millis(200));
    assert_failed(&held, FailureKind::Timeout, "the turn timed out after 200 ms");
    assert_eq!((agent.requests().len(), held.limit), (1, Some(Duration::from_millis(200))));
}

#[test]
fn case_assertions_apply_to_programs() {
    let agent = FakeAgent::with_text("at your service");
    let case = "{name: program, final_assertions: [{type: contains, value: no such words}]}";
    let program: Program = |session| {
        Box::pin(async move {
            send_user_text(session, "hello").await.unwrap();
            Ok(())
        })
    };
    assert_failed(
        &run_program_with(&agent, case, program, WAIT_LIMIT),
        FailureKind::Assertion,
        "no such words",
    );
    let silent: Program = |_| Box::pin(async { Ok(()) });
    let silent = run_program_with(&agent, case, silent, WAIT_LIMIT);
    assert_failed(&silent, FailureKind::TestError, "there is no turn to check yet; send one first");
}

#[test]
fn conversation_needs_simulated_user_to_continue() {
    let (held, asked) = run_program(|session| {
        Box::pin(async move {
            session.simulate(SimulationOptions::default()).await.unwrap_err();
            Ok(())
        })
    });
    assert_failed(&held, FailureKind::SimulatorError, "no simulated user is configured");
    assert_eq!(asked, 0);
}

#[test]
fn time_limit_checks_abort_only_if_known_before_turn() {
    let (held, _) = run_program(|session| {
        Box::pin(async move {
            send_user_text(session, "hello").await.unwrap();
            let kind = CheckKind::MaxDuration(MaxDuration { limit: WAIT_LIMIT });
            let check = Check::new(kind, session.case().place.clone());
            session.evaluate(check, CheckSubject::LastTurn).await.unwrap();
            Ok(())
        })
    });
    assert_eq!(held.verdict.status, VerdictStatus::Passed);
}

/// Topics as JSON, as programs declare them.
fn topics(graph: serde_json::Value) -> Arc<CaseTopics> {
    let source = SourceText::new("program.ts", "", 1);
    let node = DocumentNode::from(graph);
    let mut mistakes = Diagnostics::new();
    let read = cases::read_graph(NodeView::new(&node, &source), &[], &mut mistakes);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    Arc::new(CaseTopics {
        settings: TopicSettings { asks_judge: false, ..TopicSettings::default() },
        ..read.unwrap()
    })
}

fn booking_topics(assertion: serde_json::Value) -> Arc<CaseTopics> {
    topics(json!({
        "greeting": {"next": "booking", "characteristic": "Hello", "assert": assertion},
        "booking": {"next": ["greeting"], "triggers": {"on_user_match": "book"}},
    }))
}

#[test]
fn late_graph_declaration_covers_earlier_turns() {
    let (held, asked) = run_program(|session| {
        Box::pin(async move {
            send_user_text(session, "hello").await.unwrap();
            send_user_text(session, "book it").await.unwrap();
            assert_eq!(session.conversation().current_topic, None);
            let topics = booking_topics(json!({"type": "contains", "value": "service"}));
            let topics = Arc::new(CaseTopics {
                settings: TopicSettings { check_policy: TopicCheckPolicy::Always, ..topics.settings },
                ..(*topics).clone()
            });
            session.declare_topics(topics).await.unwrap();
            assert_eq!(session.conversation().current_topic.as_deref(), Some("booking"));
            // The assertions of the left topic are evaluated immediately.
            assert_eq!(session.checks().len(), 1);
            assert_eq!(session.checks()[0].topic.as_ref().unwrap().visit, 1);
            send_user_text(session, "thanks").await.unwrap();
            Ok(())
        })
    });
    assert_eq!((held.verdict.status, asked), (VerdictStatus::Passed, 3));
    let topics: Vec<_> = held.conversation.turns.iter().map(|turn| turn.topic.as_deref()).collect();
    assert_eq!(topics, [Some("greeting"), Some("booking"), Some("booking")]);
    assert_eq!(
        held.conversation.topic_history().iter().map(|t| &**t).collect::<Vec<_>>(),
        ["greeting", "booking"]
    );
    // The trace alone gives the same result.
    let again =
        hotseat_trace::TracedConversation::from_events(held.events.iter().map(|record| &record.event));
    assert_eq!(again.topic_visits(), held.conversation.topic_visits());
    assert_eq!(again.turns_in_topic("booking"), 2);
}

#[test]
fn late_topic_assertion_can_end_case() {
    let (held, _) = run_program(|session| {
        Box::pin(async move {
            send_user_text(session, "hello").await.unwrap();
            send_user_text(session, "book it").await.unwrap();
            let topics = booking_topics(json!({"type": "contains", "value": "no such words"}));
            let topics = Arc::new(CaseTopics {
                settings: TopicSettings { check_policy: TopicCheckPolicy::Always, ..topics.settings },
                ..(*topics).clone()
            });
            session.declare_topics(topics).await.unwrap_err();
            send_user_text(session, "thanks").await.unwrap_err();
            Ok(())
        })
    });
    assert_failed(&held, FailureKind::Assertion, "no such words");
    assert_eq!(held.conversation.turns.len(), 2);
}

#[test]
fn topics_are_declared_once() {
    let (held, _) = run_program(|session| {
        Box::pin(async move {
            let topics = || booking_topics(json!({"type": "contains", "value": "service"}));
            session.declare_topics(topics()).await.unwrap();
            assert_eq!(session.conversation().current_topic.as_deref(), Some("greeting"));
            session.declare_topics(topics()).await.unwrap_err();
            Ok(())
        })
    });
    assert_failed(&held, FailureKind::TestError, "already declared");
}

/// A scripted judge that accepts friendly answers.
fn scripted_judge() -> SessionRoles {
    let script = "use: always
rules:
  - { when: { user: 'Name: friendly' }, reply: { json: { reasoning: It serves., satisfied: true } } }
  - { when: { user: 'brief' }, reply: { json: { reasoning: It is long., satisfied: false } } }
  - { reply: 'I cannot say.' }
";
    let script = ModelScript::from_source(&SourceText::new("judge.yaml", script, 1)).unwrap();
    let model = Arc::new(LiveModel::new(ScriptedModel::new(Arc::new(script))));
    let role = RoleClient::model(&RoleReference::Connector("judge".to_string()), model, WAIT_LIMIT);
    SessionRoles { judges: vec![(JudgeSettings::default().selector(), Ok(role))], ..SessionRoles::default() }
}

#[test]
fn program_criteria_are_judged_like_case_criteria() {
    let agent = FakeAgent::with_text("at your service");
    let case = "{name: program, criteria: {friendly: It is friendly}}";
    let program: Program = |session| {
        Box::pin(async move {
            let place = session.case().place.clone();
            let satisfies = |text: &str| criterion_check(text, JudgeSettings::default(), place.clone());
            send_user_text(session, "hello").await.unwrap();
            let friendly = session.evaluate(satisfies("friendly"), CheckSubject::LastTurn).await.unwrap();
            assert!(friendly.verdict.passed, "{friendly:#?}");
            assert_eq!(friendly.opinion.as_ref().unwrap().reasoning.as_deref(), Some("It serves."));
            for (text, errs) in [("It is brief.", false), ("It is unclear.", true)] {
                let checked = session.evaluate(soft(satisfies(text)), CheckSubject::LastTurn).await.unwrap();
                assert_eq!((checked.verdict.passed, checked.error.is_some()), (false, errs), "{checked:#?}");
            }
            Ok(())
        })
    };
    let held = run_program_with_roles(&agent, case, program, WAIT_LIMIT, scripted_judge());
    assert_eq!(held.verdict.status, VerdictStatus::Passed, "{held:#?}");
    // An unknown name is an error, even for a soft check.
    let misspelt = run_program_with_roles(
        &agent,
        case,
        |session| {
            Box::pin(async move {
                let place = session.case().place.clone();
                send_user_text(session, "hello").await.unwrap();
                let check = soft(criterion_check("nobody", JudgeSettings::default(), place));
                let ended = session.evaluate(check, CheckSubject::LastTurn).await.unwrap_err();
                assert!(ended.ended_now, "{ended:?}");
                Ok(())
            })
        },
        WAIT_LIMIT,
        scripted_judge(),
    );
    assert_failed(&misspelt, FailureKind::TestError, "unknown criterion `nobody`");
    // Without a judge nothing passes.
    let alone = run_program_with_roles(
        &agent,
        case,
        |session| {
            Box::pin(async move {
                let place = session.case().place.clone();
                send_user_text(session, "hello").await.unwrap();
                let _ = session
                    .evaluate(
                        criterion_check("friendly", JudgeSettings::default(), place),
                        CheckSubject::LastTurn,
                    )
                    .await;
                Ok(())
            })
        },
        WAIT_LIMIT,
        SessionRoles::default(),
    );
    assert_failed(&alone, FailureKind::TestError, "no judge is configured");
}
