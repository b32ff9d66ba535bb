//! A session that a program drives: what was recorded decides, whatever the program makes of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hotseat::adapters::Pending;
use hotseat::adapters::ag_ui::{self, Envelope, Strictness, Target};
use hotseat::adapters::http::Http;
use hotseat::cases::{self, Case, Decoding, Following, Inherited, Topics, TopicsDecided, Turn, satisfies};
use hotseat::checks::{Check, CheckKind, Compared, Contains, Judging, MaxDuration, Reference, Strength};
use hotseat::document::{Diagnostics, Node, Source, View, yaml};
use hotseat::model::Live;
use hotseat::model::script::{Script, Scripted};
use hotseat::roles::Role;
use hotseat::session::{
    Body, Ended, Held, Part, Partners, Recorder, Redactor, Session, Simulation, Subject, Timeouts,
    TurnScript, hold,
};
use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Reply, Request};
use hotseat_trace::{Failure, FailureKind, Status};
use reqwest::header::HeaderMap;
use serde_json::json;

/// No test waits this long unless something is wrong.
const LONG: Duration = Duration::from_secs(20);

type Program = for<'a> fn(&'a mut Session<'_>) -> Pending<'a, Result<(), Failure>>;

struct Programmed(Program);

impl fmt::Debug for Programmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a program")
    }
}

impl Body for Programmed {
    fn hold<'a>(&'a self, session: &'a mut Session<'_>) -> Pending<'a, Result<(), Failure>> {
        (self.0)(session)
    }
}

/// What a program comes to whose agent says "at your service" to everything; and how often it was asked.
fn held(program: Program) -> (Held, usize) {
    let agent =
        FakeAgent::start(|request: &Request| Run::of(request).started().text("at your service").finished());
    let held = held_with(&agent, "{name: program}", program, LONG);
    (held, agent.requests().len())
}

fn held_with(agent: &FakeAgent, case: &str, program: Program, turn: Duration) -> Held {
    held_among(agent, case, program, turn, Partners::default())
}

fn held_among(agent: &FakeAgent, case: &str, program: Program, turn: Duration, partners: Partners) -> Held {
    let target = Target {
        endpoint: agent.url().parse().unwrap(),
        headers: HeaderMap::new(),
        envelope: Envelope::None,
        thread_id: None,
        state: json!({}),
        context: json!([]),
        forwarded_props: json!({}),
        strictness: Strictness::Lenient,
        timing: ag_ui::TimingSource::Arrival,
        keep_raw: false,
    };
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
    let source = Source::new("program.yaml", case.to_string(), 1);
    let mut case = Case::read(&source, yaml::parse, decoding).unwrap();
    case.body = Some(Arc::new(Programmed(program)));
    let mut session = ag_ui::Session::open(Arc::new(Http::default()), target);
    let timeouts = Timeouts { turn, idle: LONG, case: None };
    let recorder = Recorder::new(Redactor::default(), true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let script = TurnScript::new(Vec::new());
    runtime.block_on(hold(&case, &mut session, script, timeouts, partners, recorder))
}

async fn says(session: &mut Session<'_>, words: &str) -> Result<(), Ended> {
    let turn = Turn { content: vec![Part::Text(words.to_string())], ..session.case().unwritten.clone() };
    session.say(turn).await
}

#[test]
fn a_program_has_a_limit_where_nobody_says_one() {
    let (held, _) = held(|session| {
        Box::pin(async move {
            assert_eq!(session.limit().map(|(_, limit)| limit), Some(Duration::from_secs(300)));
            Ok(())
        })
    });
    assert_eq!(held.verdict.status, Status::Passed, "{:?}", held.verdict);
}

fn contains(session: &Session<'_>, text: &str) -> Check {
    let kind = CheckKind::Contains(Contains { text: text.to_string(), there: true, turns: None });
    Check::new(kind, session.case().place.clone())
}

fn soft(check: Check) -> Check {
    Check { strength: Strength::Soft, ..check }
}

#[track_caller]
fn failed(held: &Held, kind: FailureKind, words: &str) {
    let failure = held.verdict.failure.as_ref().expect("it should have failed");
    assert!(failure.kind == kind && failure.message.contains(words), "{failure:#?}");
}

#[test]
fn a_program_holds_a_conversation_and_has_checks_decided() {
    let (held, asked) = held(|session| {
        Box::pin(async move {
            says(session, "hello").await.unwrap();
            assert_eq!(session.conversation().turns.len(), 1);
            let check = contains(session, "service");
            assert!(session.decide(check, Subject::LastTurn).await.unwrap().verdict.passed);
            says(session, "again").await.unwrap();
            let check = contains(session, "at your");
            session.decide(check, Subject::Conversation).await.unwrap();
            Ok(())
        })
    });
    assert_eq!((held.verdict.status, asked), (Status::Passed, 2));
    let turns: Vec<Option<usize>> = held.checks.iter().map(|checked| checked.turn).collect();
    assert_eq!(turns, [Some(1), None]);
}

#[test]
fn a_hard_check_that_does_not_hold_ends_the_case_even_if_the_program_goes_on() {
    let (held, asked) = held(|session| {
        Box::pin(async move {
            says(session, "hello").await.unwrap();
            let check = contains(session, "no such words");
            let ended = session.decide(check, Subject::LastTurn).await.unwrap_err();
            assert!(ended.just_now, "{ended:?}");
            // What was recorded decides: the program swallows the failure and goes on.
            for _ in 0..2 {
                let ended = says(session, "again").await.unwrap_err();
                assert!(ended.why.starts_with("the case has ended: does not hold"), "{ended:?}");
                assert!(!ended.just_now);
            }
            let check = contains(session, "service");
            assert!(session.decide(check, Subject::LastTurn).await.is_err());
            session.skip("never mind");
            Ok(())
        })
    });
    assert_eq!((held.checks.len(), asked), (1, 1));
    failed(&held, FailureKind::Assertion, "no such words");
}

#[test]
fn a_soft_check_is_only_recorded() {
    let (held, asked) = held(|session| {
        Box::pin(async move {
            says(session, "hello").await.unwrap();
            let check = soft(contains(session, "no such words"));
            assert!(!session.decide(check, Subject::LastTurn).await.unwrap().verdict.passed);
            says(session, "again").await.unwrap();
            Ok(())
        })
    });
    assert_eq!((held.verdict.status, held.checks.len(), asked), (Status::Passed, 1, 2));
}

#[test]
fn what_looks_at_a_turn_before_there_is_one_can_not_be_decided() {
    for (negated, strength) in [(false, Strength::Hard), (true, Strength::Hard), (true, Strength::Soft)] {
        let program: Program = match (negated, strength) {
            (false, _) => |session| {
                Box::pin(async move {
                    let check = contains(session, "service");
                    drop(session.decide(check, Subject::LastTurn).await.unwrap_err());
                    Ok(())
                })
            },
            (true, Strength::Hard) => |session| {
                Box::pin(async move {
                    let check = Check { negated: true, ..contains(session, "service") };
                    drop(session.decide(check, Subject::LastTurn).await.unwrap_err());
                    Ok(())
                })
            },
            (true, Strength::Soft) => |session| {
                Box::pin(async move {
                    let check = soft(Check { negated: true, ..contains(session, "service") });
                    assert!(session.decide(check, Subject::LastTurn).await.unwrap().error.is_some());
                    Ok(())
                })
            },
        };
        let (held, _) = held(program);
        match strength {
            Strength::Hard => failed(&held, FailureKind::TestError, "there is no turn to look at"),
            Strength::Soft => assert_eq!(held.verdict.status, Status::Passed),
        }
    }
}

#[test]
fn a_case_that_goes_on_after_failures_fails_by_all_of_them() {
    let agent =
        FakeAgent::start(|request: &Request| Run::of(request).started().text("at your service").finished());
    let case = "{name: program, continue_on_failure: true}";
    let program: Program = |session| {
        Box::pin(async move {
            let place = session.case().place.clone();
            let compared = |actual: &str, holds| {
                let (expected, actual) = ("to be 4".to_string(), actual.to_string());
                Check::new(
                    CheckKind::Compared(Compared { expected, actual, holds: Ok(holds) }),
                    place.clone(),
                )
            };
            for check in [compared("3", false), compared("4", true), compared("5", false)] {
                session.decide(check, Subject::Value).await.unwrap();
            }
            says(session, "hello").await.unwrap();
            Ok(())
        })
    };
    let held = held_with(&agent, case, program, LONG);
    failed(&held, FailureKind::Assertion, "2 checks do not hold; the first: to be 4");
    let passed: Vec<bool> = held.checks.iter().map(|checked| checked.verdict.passed).collect();
    assert_eq!(passed, [false, true, false]);
}

#[test]
fn an_error_of_the_program_fails_the_case_unless_it_has_ended_before() {
    let broken = |words: &str| Failure::new(FailureKind::ScriptError, words);
    let (held, _) =
        held(|_| Box::pin(async { Err(Failure::new(FailureKind::ScriptError, "x is not defined")) }));
    assert_eq!(held.verdict.failure, Some(broken("x is not defined")));
    let (held, _) = self::held(|session| {
        Box::pin(async move {
            session.skip("not today");
            Err(Failure::new(FailureKind::ScriptError, "x is not defined"))
        })
    });
    assert_eq!(held.verdict.skip_reason.as_deref(), Some("not today"));
}

#[test]
fn an_agent_that_does_not_answer_ends_the_case() {
    let agent = FakeAgent::start(|_: &Request| Reply::never());
    let program: Program = |session| {
        Box::pin(async move {
            says(session, "hello").await.unwrap_err();
            says(session, "hello?").await.unwrap_err();
            Ok(())
        })
    };
    let held = held_with(&agent, "{name: program}", program, Duration::from_millis(200));
    failed(&held, FailureKind::Timeout, "the turn timed out after 200 ms");
    assert_eq!((agent.requests().len(), held.limit), (1, Some(Duration::from_millis(200))));
}

#[test]
fn what_the_case_asserts_holds_for_programs_too() {
    let agent =
        FakeAgent::start(|request: &Request| Run::of(request).started().text("at your service").finished());
    let case = "{name: program, final_assertions: [{type: contains, value: no such words}]}";
    let program: Program = |session| {
        Box::pin(async move {
            says(session, "hello").await.unwrap();
            Ok(())
        })
    };
    failed(&held_with(&agent, case, program, LONG), FailureKind::Assertion, "no such words");
    let silent: Program = |_| Box::pin(async { Ok(()) });
    let silent = held_with(&agent, case, silent, LONG);
    failed(&silent, FailureKind::TestError, "there is no turn to look at: nothing was said yet");
}

#[test]
fn without_a_simulated_user_nobody_goes_on() {
    let (held, asked) = held(|session| {
        Box::pin(async move {
            session.simulate(Simulation::default()).await.unwrap_err();
            Ok(())
        })
    });
    failed(&held, FailureKind::SimulatorError, "there is no simulated user to ask");
    assert_eq!(asked, 0);
}

#[test]
fn time_limits_of_checks_are_limits_only_where_they_are_known_before_the_turn() {
    let (held, _) = held(|session| {
        Box::pin(async move {
            says(session, "hello").await.unwrap();
            let kind = CheckKind::MaxDuration(MaxDuration { limit: LONG });
            let check = Check::new(kind, session.case().place.clone());
            session.decide(check, Subject::LastTurn).await.unwrap();
            Ok(())
        })
    });
    assert_eq!(held.verdict.status, Status::Passed);
}

/// Topics as a program declares them: as JSON.
fn topics(graph: serde_json::Value) -> Arc<Topics> {
    let source = Source::new("program.ts", "", 1);
    let node = Node::from(graph);
    let mut mistakes = Diagnostics::new();
    let read = cases::graph(View::new(&node, &source), &[], &mut mistakes);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    Arc::new(Topics { following: Following { asks_judge: false, ..Following::default() }, ..read.unwrap() })
}

fn booking(assertion: serde_json::Value) -> Arc<Topics> {
    topics(json!({
        "greeting": {"next": "booking", "characteristic": "Hello", "assert": assertion},
        "booking": {"next": ["greeting"], "triggers": {"on_user_match": "book"}},
    }))
}

#[test]
fn a_graph_that_is_declared_later_holds_for_the_turns_before() {
    let (held, asked) = held(|session| {
        Box::pin(async move {
            says(session, "hello").await.unwrap();
            says(session, "book it").await.unwrap();
            assert_eq!(session.conversation().current_topic, None);
            let topics = booking(json!({"type": "contains", "value": "service"}));
            let topics = Arc::new(Topics {
                following: Following { decided: TopicsDecided::Always, ..topics.following },
                ..(*topics).clone()
            });
            session.declare_topics(topics).await.unwrap();
            assert_eq!(session.conversation().current_topic.as_deref(), Some("booking"));
            // What the topic asserts that was left is decided at once.
            assert_eq!(session.checks().len(), 1);
            assert_eq!(session.checks()[0].topic.as_ref().unwrap().visit, 1);
            says(session, "thanks").await.unwrap();
            Ok(())
        })
    });
    assert_eq!((held.verdict.status, asked), (Status::Passed, 3));
    let topics: Vec<_> = held.conversation.turns.iter().map(|turn| turn.topic.as_deref()).collect();
    assert_eq!(topics, [Some("greeting"), Some("booking"), Some("booking")]);
    assert_eq!(
        held.conversation.topic_history().iter().map(|t| &**t).collect::<Vec<_>>(),
        ["greeting", "booking"]
    );
    // The trace alone tells the same.
    let again = hotseat_trace::Conversation::of(held.events.iter().map(|record| &record.event));
    assert_eq!(again.topic_visits(), held.conversation.topic_visits());
    assert_eq!(again.turns_in_topic("booking"), 2);
}

#[test]
fn what_a_topic_asserts_of_turns_before_it_was_declared_can_end_the_case() {
    let (held, _) = held(|session| {
        Box::pin(async move {
            says(session, "hello").await.unwrap();
            says(session, "book it").await.unwrap();
            let topics = booking(json!({"type": "contains", "value": "no such words"}));
            let topics = Arc::new(Topics {
                following: Following { decided: TopicsDecided::Always, ..topics.following },
                ..(*topics).clone()
            });
            session.declare_topics(topics).await.unwrap_err();
            says(session, "thanks").await.unwrap_err();
            Ok(())
        })
    });
    failed(&held, FailureKind::Assertion, "no such words");
    assert_eq!(held.conversation.turns.len(), 2);
}

#[test]
fn topics_are_declared_once() {
    let (held, _) = held(|session| {
        Box::pin(async move {
            let topics = || booking(json!({"type": "contains", "value": "service"}));
            session.declare_topics(topics()).await.unwrap();
            assert_eq!(session.conversation().current_topic.as_deref(), Some("greeting"));
            session.declare_topics(topics()).await.unwrap_err();
            Ok(())
        })
    });
    failed(&held, FailureKind::TestError, "declared before");
}

/// A judge that is a script: what is friendly is friendly.
fn judged_by_script() -> Partners {
    let script = "use: always
rules:
  - { when: { user: 'Name: friendly' }, reply: { json: { reasoning: It serves., satisfied: true } } }
  - { when: { user: 'brief' }, reply: { json: { reasoning: It is long., satisfied: false } } }
  - { reply: 'I cannot say.' }
";
    let script = Script::read(&Source::new("judge.yaml", script, 1)).unwrap();
    let model = Arc::new(Live::new(Scripted::new(Arc::new(script))));
    let role = Role::model(&Reference::Connector("judge".to_string()), model, LONG);
    Partners { judges: vec![(Judging::default().whom(), Ok(role))], ..Partners::default() }
}

#[test]
fn a_program_has_criteria_judged_as_cases_have() {
    let agent =
        FakeAgent::start(|request: &Request| Run::of(request).started().text("at your service").finished());
    let case = "{name: program, criteria: {friendly: It is friendly}}";
    let program: Program = |session| {
        Box::pin(async move {
            let place = session.case().place.clone();
            let satisfies = |text: &str| satisfies(text, Judging::default(), place.clone());
            says(session, "hello").await.unwrap();
            let friendly = session.decide(satisfies("friendly"), Subject::LastTurn).await.unwrap();
            assert!(friendly.verdict.passed, "{friendly:#?}");
            assert_eq!(friendly.opinion.as_ref().unwrap().reasoning.as_deref(), Some("It serves."));
            for (text, errs) in [("It is brief.", false), ("It is unclear.", true)] {
                let checked = session.decide(soft(satisfies(text)), Subject::LastTurn).await.unwrap();
                assert_eq!((checked.verdict.passed, checked.error.is_some()), (false, errs), "{checked:#?}");
            }
            Ok(())
        })
    };
    let held = held_among(&agent, case, program, LONG, judged_by_script());
    assert_eq!(held.verdict.status, Status::Passed, "{held:#?}");
    // A name that nothing bears is a mistake, even if it is only measured.
    let misspelt = held_among(
        &agent,
        case,
        |session| {
            Box::pin(async move {
                let place = session.case().place.clone();
                says(session, "hello").await.unwrap();
                let check = soft(satisfies("nobody", Judging::default(), place));
                let ended = session.decide(check, Subject::LastTurn).await.unwrap_err();
                assert!(ended.just_now, "{ended:?}");
                Ok(())
            })
        },
        LONG,
        judged_by_script(),
    );
    failed(&misspelt, FailureKind::TestError, "no criterion is called `nobody`");
    // Without a judge nothing passes, whatever is asked.
    let alone = held_among(
        &agent,
        case,
        |session| {
            Box::pin(async move {
                let place = session.case().place.clone();
                says(session, "hello").await.unwrap();
                let _ =
                    session.decide(satisfies("friendly", Judging::default(), place), Subject::LastTurn).await;
                Ok(())
            })
        },
        LONG,
        Partners::default(),
    );
    failed(&alone, FailureKind::TestError, "there is no judge to ask");
}
