//! Agent selection and parallel execution of examples.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hotseat::dsl::prelude::*;
use hotseat_testkit::ModelClient;
use serde_json::json;
use tokio::sync::Barrier;

use super::harness::{echo_agent, run_examples, run_examples_in, run_examples_with};

#[test]
fn hanging_example_is_aborted_and_others_run() {
    let ran = run_examples_with(&["--timeout", "400ms"], |s| {
        echo_agent(s);
        s.it("waits for nothing", async |t| {
            t.user.says("hello").await;
            std::future::pending::<()>().await;
        });
        s.it("goes on", async |t| {
            t.user.says("hello").await;
        });
    });
    assert_eq!(ran.cases(), [("waits for nothing", "failed"), ("goes on", "passed")]);
    assert_eq!(ran.failure("waits for nothing"), ("timeout", "the case timed out after 400 ms"));
    let detail = ran.case("waits for nothing")["failure"]["detail"].as_str().unwrap();
    assert!(
        detail.contains("execution.rs:") && detail.ends_with("this example was still running"),
        "{detail}"
    );
}

#[test]
fn innermost_agent_is_used_and_created_per_example() {
    struct CountingAgent {
        name: String,
        heard: usize,
    }

    impl Responder for CountingAgent {
        async fn respond(&mut self, messages: &[Message]) -> Result<CodeAgentAnswer, Box<dyn Error>> {
            self.heard += 1;
            Ok(CodeAgentAnswer::text(format!("{} {} {}", self.name, self.heard, messages.len())))
        }
    }

    let made = Arc::new(Mutex::new(Vec::<(String, u32, Vec<String>)>::new()));
    let told = made.clone();
    let ran = run_examples_with(&["--test-threads=1"], |s| {
        let shop = s.fixture(async |t| format!("shop of {}", t.name()));
        s.agent(factory(async move |context| {
            let told = (context.name().to_string(), context.line(), context.tags().to_vec());
            made.lock().unwrap().push(told);
            CountingAgent { name: context.get(shop).await.to_string(), heard: 0 }
        }));
        for name in ["one", "two"] {
            s.it(name, async move |t| {
                t.user.says("hello").await;
                t.user.says("again").await;
                assert_eq!(t.agent.text(), format!("shop of {name} 2 3"));
                assert_eq!(*t.get(shop).await, format!("shop of {name}"));
            })
            .tag("shops");
        }
        s.it("asks nobody", async |_| {});
        s.describe("inner", |g| {
            g.agent(replies(async |_| "another one"));
            g.it("three", async |t| {
                assert_eq!(t.user.says("hello").await.text(), "another one");
            });
        });
    });
    assert_eq!(ran.code, 0, "{ran:#?}");
    // An unused agent is not created.
    let told = told.lock().unwrap();
    let names: Vec<&str> = told.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    assert!(told.iter().all(|(_, line, tags)| *line > 0 && tags == &["shops"]), "{told:?}");
}

#[test]
fn agent_in_the_program_uses_a_served_model() {
    struct ModelAgent(ModelClient);

    impl Responder for ModelAgent {
        async fn respond(&mut self, messages: &[Message]) -> Result<CodeAgentAnswer, Box<dyn Error>> {
            let history: Vec<_> =
                messages.iter().map(|message| json!({"role": "user", "content": message.content})).collect();
            let reply = self.0.call(&history, &[]).map_err(|(_, words)| words)?;
            Ok(CodeAgentAnswer::text(reply["content"].as_str().unwrap_or_default()))
        }
    }

    let project = "models:\n  main: { rules: [{ when: { user: hello }, reply: Good day. }] }\n";
    let write = |folder: &std::path::Path| std::fs::write(folder.join("hotseat.yaml"), project).unwrap();
    let ran = run_examples_in(write, &[], |s| {
        s.agent(factory(async |context| ModelAgent(ModelClient::new(&context.model_url("main")))));
        s.it("answers", async |t| {
            t.user.says("hello").await;
            expect!(t.agent, contains("Good day."));
            assert!(t.agent.model_url("main").starts_with("http://127.0.0.1:"));
        });
        s.it("has no other model", async |t| drop(t.agent.model_url("mian")));
    });
    assert_eq!(ran.cases(), [("answers", "passed"), ("has no other model", "failed")]);
    let (kind, message) = ran.failure("has no other model");
    assert_eq!(kind, "test_error");
    assert!(message.starts_with("this case has no served model `mian` ("), "{message}");
}

#[test]
fn failing_agent_is_agent_error() {
    let ran = run_examples(|s| {
        s.describe("returns an error", |g| {
            g.agent(replies(async |_| Err::<CodeAgentAnswer, _>("out of paper")));
            g.it("fails", async |t| {
                t.user.says("print").await;
            });
        });
        s.describe("panics", |g| {
            g.agent(replies(async |messages: Vec<Message>| messages[7].content.clone()));
            g.it("fails", async |t| {
                t.user.says("print").await;
            });
        });
        s.describe("says nothing", |g| {
            g.agent(replies(async |_| ""));
            g.it("fails", async |t| {
                t.user.says("print").await;
            });
        });
        s.describe("never comes back", |g| {
            g.agent(replies(async |_| std::future::pending::<String>().await));
            g.it("fails", async |t| {
                t.user.says("print").within(std::time::Duration::from_millis(100)).await;
            });
        });
    });
    assert_eq!(ran.code, 1);
    assert_eq!(ran.failure("returns an error::fails"), ("agent_error", "the agent failed: out of paper"));
    let (kind, message) = ran.failure("panics::fails");
    assert!(kind == "agent_error" && message.contains("index out of bounds"), "{message}");
    assert_eq!(ran.failure("says nothing::fails").0, "protocol_error");
    assert_eq!(ran.failure("never comes back::fails"), ("timeout", "the turn timed out after 100 ms"));
}

#[test]
fn panic_of_agent_is_no_expected_error() {
    struct Never;

    impl Responder for Never {
        async fn respond(&mut self, _: &[Message]) -> Result<CodeAgentAnswer, Box<dyn Error>> {
            Ok(CodeAgentAnswer::text("Hello!"))
        }
    }

    let ran = run_examples(|s| {
        s.describe("answers", |g| {
            g.agent(replies(async |messages: Vec<Message>| messages[7].content.clone()));
            g.it("x", async |t| {
                t.user.says("order 0?").expect_error("index out of bounds").await;
            });
        });
        s.describe("is created", |g| {
            g.agent(factory(async |context| match context.name() {
                "" => Never,
                _ => panic!("order not found"),
            }));
            g.it("x", async |t| {
                t.user.says("order 0?").expect_error(".").await;
            });
        });
        s.describe("returns it", |g| {
            g.agent(replies(async |_| Err::<String, _>("order not found")));
            g.it("x", async |t| {
                t.user.says("order 0?").expect_error("not found").await;
            });
        });
    });
    assert_eq!(
        ran.cases(),
        [("answers::x", "failed"), ("is created::x", "failed"), ("returns it::x", "passed")]
    );
    for (case, words) in [("answers::x", "index out of bounds"), ("is created::x", "order not found")] {
        let (kind, message) = ran.failure(case);
        assert_eq!(kind, "agent_error");
        assert!(message.starts_with("the agent panicked: ") && message.contains(words), "{message}");
    }
}

#[test]
fn calls_of_agent_that_returns_an_error_are_unknown() {
    let ran = run_examples(|s| {
        s.describe("lost", |g| {
            g.agent(replies(async |messages: Vec<Message>| match messages.len() {
                1 => Err("the card is declined"),
                _ => Ok(CodeAgentAnswer::text("Done.")),
            }));
            g.it("asserts none", async |t| {
                t.user.says("pay").expect_error("declined").await;
                expect!(t.agent, not(call_tool("charge_card")));
            });
            g.it("asserts none of all", async |t| {
                t.user.says("pay").expect_error("declined").await;
                t.user.says("and now").await;
                evaluate!(t.conversation, not(call_tool("charge_card")));
            });
            g.it("reads them", async |t| {
                t.user.says("pay").expect_error("declined").await;
                expect!(t.agent.tool_calls(), is_empty());
            });
            g.it("has an assertion of its case", async |t| {
                t.user.says("pay").expect_error("declined").await;
            })
            .case_key("assert", json!({"tools": {"forbid": ["charge_card"]}}));
            g.it("goes on", async |t| {
                t.user.says("pay").expect_error("declined").await;
                t.user.says("and now").await;
                expect!(t.agent, not(call_tool("charge_card")));
                expect!(t.agent.tool_calls(), is_empty());
            });
        });
        s.describe("told", |g| {
            g.agent(replies(async |messages: Vec<Message>| {
                let charged = CodeAgentAnswer::default().failing("charge_card", json!({}), "no cover");
                match messages.len() {
                    1 => charged.ending_with_error("the card is declined"),
                    _ => CodeAgentAnswer::text(format!("after {} messages", messages.len())),
                }
            }));
            g.it("asserts them", async |t| {
                t.user.says("pay").expect_error("declined").await;
                expect!(t.agent, call_tool("charge_card"));
                expect!(t.agent.tool_calls(), len(eq(1)));
                assert_eq!(t.user.says("and now").await.text(), "after 4 messages");
            });
            g.it("asserts none", async |t| {
                t.user.says("pay").expect_error("declined").await;
                expect!(t.agent, not(call_tool("charge_card")));
            });
        });
    });
    for case in ["asserts none", "asserts none of all", "reads them", "has an assertion of its case"] {
        let (kind, message) = ran.failure(&format!("lost::{case}")).to_owned();
        assert_eq!(kind, "test_error", "{case}: {message}");
        assert!(message.contains("the tool calls of turn 1 are unknown"), "{case}: {message}");
        assert!(message.contains("ending_with_error"), "{case}: {message}");
    }
    assert_eq!(ran.case("lost::goes on")["status"], "passed", "{ran:#?}");
    assert_eq!(ran.case("told::asserts them")["status"], "passed", "{ran:#?}");
    assert_eq!(ran.failure("told::asserts none").0, "assertion");
}

#[test]
fn agent_receives_conversation_and_context() {
    let ran = run_examples(|s| {
        s.agent(replies(async |messages: Vec<Message>| {
            let told: Vec<_> = messages
                .iter()
                .map(|message| json!([format!("{:?}", message.role), message.content, message.metadata]))
                .collect();
            let told = json!(told).to_string();
            CodeAgentAnswer::text(told).calling("search", json!({"q": 1}), json!("found")).awaiting(false)
        }));
        s.it("hears", async |t| {
            t.user.says("one").await;
            let heard = t.user.says("two").with_options(json!({"metadata": {"shop": 7}})).await.text();
            let heard: serde_json::Value = serde_json::from_str(&heard).unwrap();
            let roles: Vec<&str> = heard.as_array().unwrap().iter().map(|m| m[0].as_str().unwrap()).collect();
            assert_eq!(roles, ["User", "Agent", "Tool", "Agent", "User"], "{heard}");
            assert_eq!((&heard[2][1], &heard[4][1]), (&json!("found"), &json!("two")));
            assert_eq!((&heard[0][2], &heard[4][2]["metadata"]["shop"]), (&json!(null), &json!(7)));
        });
    });
    assert_eq!(ran.code, 0, "{ran:#?}");
}

#[test]
fn blocking_examples_run_in_parallel() {
    let (barrier, all) = (Arc::new(std::sync::Barrier::new(3)), Arc::new(Barrier::new(3)));
    let ran = run_examples_with(&["--test-threads=3"], |s| {
        echo_agent(s);
        for number in 0..3 {
            let (barrier, all) = (barrier.clone(), all.clone());
            s.it(format!("meets the others {number}"), async move |t| {
                // Each waits for the two others, so sequential execution would never end.
                barrier.wait();
                t.user.says("hello").await;
                all.wait().await;
            });
        }
    });
    assert_eq!((ran.code, ran.cases().len()), (0, 3), "{ran:#?}");
}

#[test]
fn example_supports_repeats_and_retries() {
    let tried = Arc::new(AtomicUsize::new(0));
    let count = tried.clone();
    let repeated = run_examples_with(&["--runs=5", "--min-pass-rate=0.8", "--test-threads=1"], |s| {
        echo_agent(s);
        s.it("is not steady", async move |t| {
            t.user.says("hello").await;
            expect!(count.fetch_add(1, Ordering::SeqCst), ne(2));
        });
    });
    assert_eq!((repeated.code, tried.load(Ordering::SeqCst)), (0, 5), "{repeated:#?}");
    let count = Arc::new(AtomicUsize::new(0));
    let retried = run_examples(|s| {
        echo_agent(s);
        s.it("passes the second time", async move |t| {
            t.user.says("hello").await;
            expect!(count.fetch_add(1, Ordering::SeqCst), gt(0));
        })
        .retries(2);
    });
    assert_eq!((retried.code, &retried.case("passes the second time")["flaky"]), (0, &json!(true)));
}

struct PanickingDrop;

impl Drop for PanickingDrop {
    fn drop(&mut self) {
        panic!("it falls");
    }
}

#[test]
fn panic_in_fixture_drop_fails_example() {
    let ran = run_examples(|s| {
        echo_agent(s);
        let heavy = s.fixture(async |_| PanickingDrop);
        s.it("holds it", async move |t| {
            t.get(heavy).await;
            t.user.says("hello").await;
        });
    });
    let failure = &ran.case("holds it")["failure"];
    assert_eq!((ran.code, &failure["kind"]), (1, &json!("hook_error")), "{ran:#?}");
    let message = failure["message"].as_str().unwrap();
    assert!(message.starts_with("dropping a fixture panicked: it falls"), "{message}");
}

#[test]
fn tasks_that_are_not_awaited_count() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.it("lets a task panic", async |t| {
            t.user.says("hello").await;
            let begun = tokio::spawn(async { panic!("it was lost") });
            while !begun.is_finished() {
                tokio::task::yield_now().await;
            }
        });
        s.it("catches another panic", async |t| {
            tokio::task::spawn_local(async { assert_eq!(1, 2, "it was lost") });
            t.user.says("hello").await;
            assert!(std::panic::catch_unwind(|| panic!("caught")).is_err());
        });
        s.it("ends with a local task", async |t| {
            t.user.says("hello").await;
            tokio::task::spawn_local(async { panic!("it was lost") });
        });
        s.it("ends with a task", async |t| {
            t.user.says("hello").await;
            tokio::spawn(async {
                tokio::task::yield_now().await;
                panic!("it was lost")
            });
        });
        s.it("awaits a blocking task", async |t| {
            t.user.says("hello").await;
            assert!(tokio::task::spawn_blocking(|| panic!("it was lost")).await.is_err());
        });
        s.it("ends with assertions", async |t| {
            t.user.says("hello").await;
            let agent = t.agent.clone();
            tokio::task::spawn_local(async move {
                expect!(agent, contains("hello"));
                expect!(agent, contains("zzz"));
            });
        });
        s.it("ends with a turn", async |t| {
            t.user.says("hello").await;
            tokio::task::spawn_local(async move {
                t.user.says("again").await;
                expect!(t.agent, contains("zzz"));
            });
        });
        s.it("ends while a task waits", async |t| {
            t.user.says("hello").await;
            tokio::task::spawn_local(std::future::pending::<()>());
            tokio::task::spawn_local(async {
                loop {
                    tokio::task::yield_now().await;
                }
            });
        });
        s.it("ignores a thread that panics", async |t| {
            t.user.says("hello").await;
            assert!(std::thread::spawn(|| panic!("it was lost")).join().is_err());
        });
        s.it("unwraps the panic of a thread", async |t| {
            t.user.says("hello").await;
            std::thread::spawn(|| panic!("it was lost")).join().unwrap();
        });
        s.it("catches a panic", async |t| {
            t.user.says("hello").await;
            assert!(std::panic::catch_unwind(|| panic!("caught")).is_err());
        });
    });
    for case in [
        "lets a task panic",
        "catches another panic",
        "ends with a local task",
        "ends with a task",
        "awaits a blocking task",
    ] {
        let (kind, message) = ran.failure(case);
        assert_eq!(kind, "test_error", "{case}: {message}");
        assert!(message.starts_with("a task of the test panicked: "), "{case}: {message}");
        assert!(message.contains("it was lost") && message.contains("execution.rs"), "{case}: {message}");
    }
    for case in ["ends with assertions", "ends with a turn"] {
        assert_eq!(ran.failure(case).0, "assertion", "{case}");
    }
    assert_eq!(ran.failure("unwraps the panic of a thread").0, "test_error");
    for case in ["ends while a task waits", "ignores a thread that panics", "catches a panic"] {
        assert_eq!(ran.case(case)["status"], "passed", "{ran:#?}");
    }
}

#[test]
fn expectations_during_agent_turn_are_rejected() {
    let ran = run_examples(|s| {
        s.agent(replies(async |_| {
            expect!(1, eq(1));
            "Hello!"
        }));
        s.it("greets", async |t| {
            t.user.says("hello").await;
        });
    });
    let failure = &ran.case("greets")["failure"];
    assert_eq!((ran.code, &failure["kind"]), (1, &json!("test_error")), "{ran:#?}");
    assert!(failure["message"].as_str().unwrap().starts_with("a turn is in progress"), "{failure}");
}

#[test]
fn turns_at_the_same_time_are_rejected() {
    let ran = run_examples(|s| {
        echo_agent(s);
        for number in 0..20 {
            s.it(format!("sends two at once {number}"), async |t| {
                tokio::join!(t.user.says("a"), t.user.says("b"));
            });
        }
        s.it("sends two", async |t| {
            t.user.says("a").await;
            t.user.says("b").await;
        });
    });
    for number in 0..20 {
        let (kind, message) = ran.failure(&format!("sends two at once {number}"));
        assert_eq!(kind, "test_error", "{message}");
        assert!(message.starts_with("a turn is in progress: "), "{message}");
    }
    assert_eq!(ran.case("sends two")["status"], "passed", "{ran:#?}");
}

#[test]
fn late_assertion_fails_no_other_run() {
    let (begin, begun) = std::sync::mpsc::channel::<()>();
    let (late, given) = std::sync::mpsc::channel();
    let begun = Mutex::new(Some((begun, late)));
    let first = run_examples(|s| {
        echo_agent(s);
        s.it("loses an assertion", async move |t| {
            t.user.says("hello").await;
            let (begun, late) = begun.lock().unwrap().take().unwrap();
            let agent = t.agent.clone();
            let thread = std::thread::spawn(move || {
                let _ = begun.recv();
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async { expect!(agent, contains("zzz")) });
            });
            late.send(thread).unwrap();
        });
    });
    assert_eq!(first.code, 0, "{first:#?}");
    let thread = Mutex::new(Some(given.recv().unwrap()));
    let second = run_examples(|s| {
        echo_agent(s);
        s.it("is innocent", async move |t| {
            t.user.says("hello").await;
            begin.send(()).unwrap();
            let thread = thread.lock().unwrap().take().unwrap();
            let panic = thread.join().unwrap_err();
            let words = panic.downcast_ref::<String>().unwrap();
            assert!(words.contains("after its example `loses an assertion` had ended"), "{words}");
        });
    });
    assert_eq!(second.code, 0, "{second:#?}");
}

#[test]
fn late_assertion_fails_its_run() {
    let ran = run_examples_with(&["--test-threads=1"], |s| {
        echo_agent(s);
        let thread = Arc::new(Mutex::new(None));
        let started = thread.clone();
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let begun = Mutex::new(Some(begun));
        s.it("loses an assertion", async move |t| {
            t.user.says("hello").await;
            let (begun, agent) = (begun.lock().unwrap().take().unwrap(), t.agent.clone());
            *started.lock().unwrap() = Some(std::thread::spawn(move || {
                let _ = begun.recv();
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async { expect!(agent, contains("zzz")) });
            }));
        });
        s.it("is innocent", async move |t| {
            t.user.says("hello").await;
            begin.send(()).unwrap();
            assert!(thread.lock().unwrap().take().unwrap().join().is_err());
        });
    });
    assert_eq!(ran.cases(), [("loses an assertion", "passed"), ("is innocent", "passed")]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert!(ran.output.contains("after its example `loses an assertion` had ended"), "{}", ran.output);
}

#[test]
fn example_that_blocks_stops_running_at_its_time_limit() {
    // An assertion on a value needs a program in which no other example runs.
    let isolated = std::env::var_os("HOTSEAT_ISOLATED_TEST").is_some();
    if !isolated {
        let name = "dsl::execution::example_that_blocks_stops_running_at_its_time_limit";
        let mut program = std::process::Command::new(std::env::current_exe().unwrap());
        let ran = program.args(["--exact", name]).env("HOTSEAT_ISOLATED_TEST", "1").output().unwrap();
        let output = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && output.contains("1 passed"), "{output}");
        return;
    }
    let ran = run_examples_with(&["--test-threads=1"], |s| {
        echo_agent(s);
        s.it("blocks", async |t| {
            t.user.says("hello").await;
            std::thread::sleep(std::time::Duration::from_secs(60));
        })
        .timeout(std::time::Duration::from_millis(200));
        s.it("asserts on a thread", async |t| {
            t.user.says("hello").await;
            let thread = std::thread::spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async { expect!(1, eq(1)) });
            });
            tokio::task::spawn_blocking(|| thread.join().unwrap()).await.unwrap();
        });
    });
    assert_eq!(ran.cases(), [("blocks", "failed"), ("asserts on a thread", "passed")], "{ran:#?}");
}

#[test]
fn panicking_function_is_test_error() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.criterion("brief", "").matches(|_| panic!("no ruler"));
        s.it("asks a criterion", async |t| {
            t.user.says("hello").await;
            expect!(t.agent, satisfy("brief"));
        });
        s.it("measures a criterion", async |t| {
            t.user.says("hello").await;
            evaluate!(t.agent, satisfy("brief"));
        });
        s.it("asks a function", async |t| {
            t.user.says("hello").await;
            expect!(t.agent, not(satisfies("short", |_| panic!("no ruler"))));
        });
        s.it("asks a function of an argument", async |t| {
            t.user.says("hello").await;
            expect!(t.agent, not(call_tool("search").with("city", that(|_| panic!("no ruler")))));
        });
    });
    for case in ["asks a criterion", "asks a function"] {
        let failure = &ran.case(case)["failure"];
        assert_eq!(failure["kind"], "test_error", "{failure}");
        let detail = failure.to_string();
        assert!(detail.contains("no ruler") && detail.contains("execution.rs"), "{detail}");
    }
    let measured = ran.case("measures a criterion");
    assert_eq!(measured["status"], "passed", "{measured}");
    assert!(measured.to_string().contains("no ruler"), "{measured}");
    // The function is not called if the tool was not.
    assert_eq!(ran.case("asks a function of an argument")["status"], "passed");
}
