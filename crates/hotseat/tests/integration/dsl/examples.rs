//! Examples: conversation, checks, failures.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use hotseat::dsl::prelude::*;
use serde_json::json;

use super::harness::{echo_agent, run_examples, run_examples_with};

#[test]
fn conversation_checks_are_reported_with_locations() {
    let ran = run_examples(|s| {
        s.describe("Room Booking Agent", |g| {
            echo_agent(g);
            g.it("looks a room up", async |Test { user, agent, conversation, .. }| {
                let response = user.says("A room, please").await;
                assert_eq!(response.text(), "You said: A room, please");
                expect!(
                    agent,
                    call_tool("check_availability").with("room", "Blue Room").with("capacity", 10)
                );
                expect!(agent, not(call_tool("book_room")));
                evaluate!(agent, matches("(?i)no such words"), "it should apologise");
                expect!(conversation.turns().len(), eq(1));
            })
            .tag("rooms");
        });
    });
    assert_eq!(ran.code, 0, "{ran:#?}");
    let name = "Room Booking Agent::looks a room up";
    assert_eq!(ran.case(name)["status"], "passed");
    assert_eq!(ran.case(name)["tags"], json!(["rooms"]));
    assert!(ran.case(name)["file"].as_str().unwrap().ends_with("tests/integration/dsl/examples.rs"));
    let checks = ran.checks(name);
    let told: Vec<(bool, bool)> =
        checks.iter().map(|check| (check["passed"] == true, check["soft"] == true)).collect();
    assert_eq!(told, [(true, false), (true, false), (false, true), (true, false)], "{checks:#?}");
    // The location is that of the macro invocation.
    assert!(checks.iter().all(|check| check["file"].as_str().unwrap().ends_with("examples.rs")));
    assert_eq!((&checks[2]["line"], &checks[2]["column"]), (&json!(25), &json!(17)));
    assert_eq!(checks[1]["negate"], true);
}

#[test]
fn failed_hard_expectation_ends_case_even_if_caught() {
    let asked = Arc::new(AtomicUsize::new(0));
    let (counted, reached) = (asked.clone(), Arc::new(AtomicUsize::new(0)));
    let beyond = reached.clone();
    let ran = run_examples(|s| {
        s.agent(replies(async move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            "at your service"
        }));
        s.it("is stubborn", async move |t| {
            t.user.says("hello").await;
            let own = t.clone();
            // An aborted task is the closest equivalent of a `catch` in an async test.
            let tried = tokio::task::spawn_local(async move {
                expect!(own.agent.text(), contains("no such words"), "it should say {}", "so");
            });
            assert!(tried.await.is_err());
            beyond.fetch_add(1, Ordering::SeqCst);
            t.user.says("again").await;
            beyond.fetch_add(1, Ordering::SeqCst);
        });
    });
    assert_eq!(
        (ran.code, asked.load(Ordering::SeqCst), reached.load(Ordering::SeqCst)),
        (1, 1, 1),
        "{ran:#?}"
    );
    assert_eq!(ran.failure("is stubborn"), ("assertion", "it should say so"));
    assert_eq!(ran.case("is stubborn")["turns"].as_array().unwrap().len(), 1);
}

#[test]
fn soft_evaluations_never_fail_and_return_result() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.it("measures", async |t| {
            t.user.says("hello").await;
            assert!(evaluate!(t.agent.text(), contains("hello")));
            assert!(!evaluate!(t.agent.text(), contains("good-bye")));
            assert!(!evaluate!(t.agent, satisfies("broken", |_| panic!("no idea"))));
            assert!(!evaluate!(t.agent, not(satisfies("broken, too", |_| panic!("no idea")))));
            let results = t.conversation.soft_evaluations();
            assert_eq!(results.len(), 4);
            assert_eq!(t.conversation.hard_evaluations(), []);
            assert!(results[2].found.contains("panicked: no idea"), "{results:?}");
        });
    });
    assert_eq!(ran.code, 0, "{ran:#?}");
}

#[test]
fn unawaited_expectation_fails_example() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.it("forgets", async |t| {
            #[allow(unused_must_use)]
            {
                t.user.says("hello");
            }
        });
        s.it("waits", async |t| {
            t.user.says("hello").await;
        });
    });
    assert_eq!(ran.code, 1);
    let (kind, message) = ran.failure("forgets");
    assert_eq!(kind, "test_error");
    assert!(message.starts_with("`user.says` was never awaited, so no message was sent ("), "{message}");
    assert!(message.contains("tests/integration/dsl/examples.rs:"), "{message}");
    assert_eq!(ran.case("waits")["status"], "passed");
}

#[test]
fn panic_error_and_misuse_fail_only_their_case_with_location() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.it("panics", async |t| {
            t.user.says("hello").await;
            t.conversation.turns().pop().unwrap().tool_call("missing").expect("a call");
        });
        s.it("returns an error", async |t| -> Result<(), String> {
            t.user.says("hello").await;
            Err("no such file".to_string())
        });
        s.it("has a pattern that does not compile", async |t| {
            t.user.says("hello").await;
            evaluate!(t.agent, not(matches("(")));
        });
        s.it("asks too early", async |t| {
            t.agent.response();
        });
        s.it("expects too early", async |t| {
            expect!(t.agent, not(call_tool("book_room")));
        });
        s.it("reads calls too early", async |t| {
            expect!(t.agent.tool_calls(), is_empty());
        });
        s.it("counts calls too early", async |t| {
            expect!(t.agent.called_tool("book_room"), eq(0));
        });
        s.it("reads all calls too early", async |t| {
            expect!(t.conversation.tool_names(), is_empty());
        });
        s.it("looks for a call too early", async |t| {
            expect!(t.conversation.has_tool_call("book_room"), eq(false));
        });
        s.it("goes well", async |t| {
            t.user.says("hello").await;
        });
    });
    assert_eq!(ran.code, 1);
    for name in ["reads calls", "counts calls", "reads all calls", "looks for a call"] {
        let (kind, message) = ran.failure(&format!("{name} too early"));
        assert!(
            kind == "test_error" && message.contains("there is no turn to check yet"),
            "{name}: {message}"
        );
        assert!(message.contains("tests/integration/dsl/examples.rs:"), "{name}: {message}");
    }
    for (name, expected_kind, words) in [
        ("panics", "test_error", "the test panicked: a call ("),
        ("returns an error", "test_error", "the test returned an error: no such file ("),
        ("has a pattern that does not compile", "test_error", "the pattern \"(\" does not compile"),
        ("asks too early", "test_error", "there is no response yet"),
    ] {
        let (kind, message) = ran.failure(name);
        assert!(kind == expected_kind && message.starts_with(words), "{name}: {kind} {message}");
        assert!(message.contains("tests/integration/dsl/examples.rs:"), "{name}: {message}");
    }
    assert!(ran.failure("expects too early").1.contains("there is no turn to check yet"), "{ran:#?}");
    assert_eq!(ran.case("goes well")["status"], "passed");
}

#[test]
fn hooks_nest_around_each_example_even_on_failure() {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let say = |words: &'static str| {
        let told = told.clone();
        move || told.lock().unwrap().push(words.to_string())
    };
    let (outer, inner, after_inner, after_outer) =
        (say("outer before"), say("inner before"), say("inner after"), say("outer after"));
    let (second_after, body) = (say("second inner after"), say("body"));
    let ran = run_examples_with(&["--test-threads=1"], |s| {
        echo_agent(s);
        s.before(async move |_| outer()).after(async move |_| after_outer());
        s.describe("inner", |g| {
            g.before(async move |_| inner());
            g.after(async move |_| after_inner());
            g.after(async move |_| second_after());
            g.it("fails", async move |t| {
                t.user.says("hello").await;
                body();
                expect!(1, eq(2));
            });
        });
        s.it("has a hook that fails", async |_| {});
        s.describe("broken", |g| {
            g.before(async |_| -> Result<(), &str> { Err("no database") });
            g.it("never runs", async |_| unreachable!());
        });
    });
    let order = told.lock().unwrap().clone();
    let whole = ["outer before", "inner before", "body", "second inner after", "inner after", "outer after"];
    assert_eq!(order[..6], whole.map(str::to_string), "{order:?}");
    // The hooks around an example with a failing `before` still run.
    assert_eq!(order[8..], ["outer before", "outer after"], "{order:?}");
    assert_eq!(ran.failure("inner::fails").0, "assertion");
    let (kind, message) = ran.failure("broken::never runs");
    assert!(
        kind == "hook_error" && message.starts_with("`before` returned an error: no database ("),
        "{message}"
    );
}

#[test]
fn fixture_is_created_once_per_example() {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let ran = run_examples_with(&["--test-threads=1"], |s| {
        echo_agent(s);
        let number = s.fixture(async move |_| count.fetch_add(1, Ordering::SeqCst));
        let text = s.fixture(async move |t| format!("{}: {}", t.name(), t.get(number).await));
        s.it("first", async move |t| {
            assert_eq!((*t.get(number).await, &**t.get(text).await), (0, "first: 0"));
        });
        s.it("second", async move |t| {
            assert_eq!((*t.get(text).await).as_str(), "second: 1");
            assert_eq!(*t.get(number).await, 1);
        });
        s.it("third", async |_| {});
    });
    assert_eq!((ran.code, made.load(Ordering::SeqCst)), (0, 2), "{ran:#?}");
}

#[test]
fn fixture_that_is_asked_for_twice_at_once_is_built_once() {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let ran = run_examples(|s| {
        echo_agent(s);
        let slow = s.fixture(async move |_| {
            tokio::task::yield_now().await;
            count.fetch_add(1, Ordering::SeqCst)
        });
        let (one, other) =
            (s.fixture(async move |t| t.get(slow).await), s.fixture(async move |t| t.get(slow).await));
        s.it("asks for both", async move |t| {
            let (one, other) = tokio::join!(t.get(one), t.get(other));
            assert_eq!((**one, **other), (0, 0));
        });
    });
    assert_eq!((ran.code, made.load(Ordering::SeqCst)), (0, 1), "{ran:#?}");
}

#[test]
fn fixture_that_depends_on_itself_or_panics_fails_its_example() {
    let own = Arc::new(OnceLock::<Fixture<u8>>::new());
    let known = own.clone();
    let ran = run_examples(|s| {
        echo_agent(s);
        let circular = s.fixture(async move |t| *t.get(*known.get().expect("declared")).await);
        own.set(circular).unwrap_or_else(|_| unreachable!("set once"));
        let broken = s.fixture(async |_| -> u16 { panic!("no database") });
        s.after(async move |t| drop(t.get(broken).await));
        s.it("is circular", async move |t| drop(t.get(circular).await));
        s.it("is broken", async move |t| drop(t.get(broken).await));
    });
    assert_eq!(ran.code, 1, "{ran:#?}");
    let message = ran.failure("is circular").1;
    assert!(message.contains("the fixture of type `u8` depends on itself"), "{message}");
    let message = ran.failure("is broken").1;
    assert!(message.contains("no database") && !message.contains("depends on itself"), "{message}");
}

/// Keys of case files that methods set would be lost beside them.
#[test]
fn keys_with_a_method_are_refused() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.tag("slow").case_key("tags", json!(["quick"]));
        s.it("says hello", async |_| {}).case_key("skip", "broken").case_key("name", "another");
    });
    assert_eq!((ran.code, ran.report.is_null()), (2, true), "{ran:#?}");
    for message in [
        "`case_key` cannot set `tags`: use `tag`",
        "`case_key` cannot set `skip`: use `skip`",
        "`case_key` cannot set `name`: use the name of the example, the first argument of `it`",
    ] {
        assert!(ran.output.contains(message), "{message}: {}", ran.output);
    }
    assert!(ran.output.contains("dsl/examples.rs:"), "{}", ran.output);
}

#[test]
fn timed_out_example_is_aborted_and_cleaned_up() {
    let cleaned = Arc::new(AtomicUsize::new(0));
    let count = cleaned.clone();
    let ran = run_examples(|s| {
        echo_agent(s);
        s.after(async move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        s.it("hangs", async |t| {
            t.user.says("hello").await;
            std::future::pending::<()>().await;
        })
        .timeout(Duration::from_millis(200));
        s.it("goes well", async |t| {
            t.user.says("hello").await;
        });
    });
    assert_eq!(ran.failure("hangs"), ("timeout", "the case timed out after 200 ms"));
    assert_eq!(
        (ran.case("goes well")["status"].as_str(), cleaned.load(Ordering::SeqCst)),
        (Some("passed"), 2)
    );
}

#[test]
fn example_may_skip_itself_and_add_notes() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.it("is left out", async |t| {
            t.log("looking for a dictionary");
            t.skip("there is none");
        });
    });
    assert_eq!(ran.code, 0);
    assert_eq!(ran.case("is left out")["skip_reason"], "there is none");
}

#[test]
fn conversation_is_readable() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.it("reads", async |t| {
            assert!(t.conversation.is_empty() && t.conversation.last_turn().is_none());
            t.user.says("hello").await;
            let response = t.user.says("a room").await;
            assert!(response.has_tool_call("check_availability") && response.includes("a room"));
            let messages = t.conversation.messages();
            let told: Vec<(Role, &str)> =
                messages.iter().map(|message| (message.role, message.content.as_str())).collect();
            assert_eq!(
                told,
                [
                    (Role::User, "hello"),
                    (Role::Agent, "You said: hello"),
                    (Role::User, "a room"),
                    (Role::Agent, "You said: a room"),
                ]
            );
            assert!(messages[3].has_tool_call("check_availability") && !messages[1].has_tool_call("x"));
            let call = t.conversation.tool_calls_for("check_availability").pop().unwrap();
            assert_eq!(
                (call.argument("room"), call.result),
                (json!("Blue Room"), Some(json!({"free": true})))
            );
            assert_eq!(t.conversation.called_tool("check_availability"), 1);
            assert_eq!((t.agent.called_tool("check_availability"), t.conversation.turn_count()), (1, 2));
            assert_eq!(t.conversation.turns()[0].number(), 1);
            assert_eq!(t.conversation.turns()[0].tool_calls(), []);
        });
    });
    assert_eq!(ran.code, 0, "{ran:#?}");
}
