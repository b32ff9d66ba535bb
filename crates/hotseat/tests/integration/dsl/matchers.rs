//! Assertions on calls and answers against a known call.

use std::fs;
use std::path::Path;

use hotseat::dsl::prelude::*;
use hotseat::dsl::{DecideTopics, Matcher, ToolCallMatcher, TurnMatcher, one_of};
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, McpClient};
use serde_json::json;

use super::harness::{echo_agent, run_examples, run_examples_in, target_without_calls};

#[test]
fn nan_decides_nothing() {
    let nan = f64::NAN;
    for undecided in [
        ne(Some(0.0)).assertion(&Some(nan)),
        ne((1, 0.0)).assertion(&(1, nan)),
        ne(vec![nan]).assertion(&vec![nan]),
        ne(('"', nan)).assertion(&('"', 0.0)),
        not(contains(nan)).assertion(&vec![1.0]),
        not(contains(1.0)).assertion(&vec![nan]),
        not(contains_any([1.0, 2.0])).assertion(&[3.0, nan]),
        not(one_of([Some(nan)])).assertion(&Some(1.0)),
    ] {
        assert_eq!(undecided.holds(), None, "{undecided:?}");
    }
    for decided in [
        ne("NaN").assertion(&"a"),
        ne(("a \"NaN", '\'')).assertion(&("a \" NaN ", 'b')),
        ne(vec!["inf NaN"]).assertion(&vec!["b"]),
        not(contains("NaN")).assertion("a"),
    ] {
        assert_eq!(decided.holds(), Some(true), "{decided:?}");
    }
    let ran = run_examples(|s| {
        echo_agent(s);
        let called = || call_tool("check_availability");
        for (name, matcher) in [
            ("one of", called().with("note", one_of([nan]))),
            ("a list", called().with("note", vec![1.0, nan])),
            ("an array", called().with("note", [f64::INFINITY])),
            ("contains", called().with("note", contains([nan]))),
            ("a number", called().with("note", nan)),
            ("a limit", called().with("note", ge(nan))),
        ] {
            s.it(name, async move |t| {
                t.user.says("a room").await;
                evaluate!(t.agent, not(matcher.clone()));
            });
        }
    });
    assert_eq!(ran.cases().len(), 6);
    for (name, _) in ran.cases() {
        let (kind, message) = ran.failure(name);
        assert_eq!(kind, "test_error", "{name}: {message}");
        assert!(message.contains("an argument cannot be compared with "), "{name}: {message}");
    }
}

#[test]
fn arguments_compare_as_written() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.it("compares", async |t| {
            t.user.says("a room").await;
            let called = || call_tool("check_availability");
            for (number, (matcher, holds)) in [
                (called(), true),
                (called().with("room", "Blue Room"), true),
                (called().with("room", "blue room"), false),
                (called().with("capacity", 10), true),
                (called().with("capacity", 10.0), true),
                // Text is not a number.
                (called().with("capacity", "10"), false),
                (called().with("capacity", ge(10)).with("room", matches("^Blue")), true),
                (called().with("capacity", gt(10)), false),
                (called().with("capacity", not(lt(10))), true),
                (called().with("room", contains(["Blue", "Room"])), true),
                (called().with("room", one_of(["Red Room", "Blue Room"])), true),
                (called().with("room", matches(["Blue", "green"])), false),
                (called().with("room", matches_any(["Blue", "green"])), true),
                (called().with("flags", json!({"catering": false})), true),
                (called().with("flags", that(|flags| flags["catering"] == false)), true),
                (called().with("note", ()), true),
                (called().with("missing", ()), false),
                (called().with("missing", that(|_| true)), false),
                (called().times(1), true),
                (called().times(2), false),
                (called().at_least(2), false),
                (called().with("capacity", le(10)).times(1), true),
                (called().with("capacity", le(10)).at_most(0), false),
                (call_tool("book_room"), false),
                (call_tool("book_room").with("capacity", ge(1)), false),
                (call_tool("book_room").times(0), true),
            ]
            .into_iter()
            .enumerate()
            {
                assert_eq!(evaluate!(t.agent, matcher.clone()), holds, "{number}: {matcher:?}");
                assert_eq!(evaluate!(t.agent, not(matcher.clone())), !holds, "not {number}: {matcher:?}");
            }
        });
    });
    assert_eq!(ran.code, 0, "{ran:#?}");
}

/// Arguments that are not JSON are unknown to functions, too.
#[test]
fn functions_do_not_decide_about_broken_arguments() {
    let agent = FakeAgent::with_run(|run, _| {
        run.raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "pay"}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"amount\": 35"}))
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c"}))
            .text("Paid.")
            .finished()
    });
    let write = |folder: &Path| {
        let project = format!("target: {{ endpoint: \"{agent}\" }}\n");
        std::fs::write(folder.join("hotseat.yaml"), project).unwrap();
    };
    let ran = run_examples_in(write, &[], |s| {
        s.it("pays", async |t| {
            t.user.says("pay").await;
            let of_amount = || call_tool("pay").with("amount", that(|amount| amount == 35));
            for matcher in [of_amount(), of_amount().times(0)] {
                assert!(!evaluate!(t.agent, matcher.clone()), "{matcher:?}");
                assert!(!evaluate!(t.agent, not(matcher.clone())), "not {matcher:?}");
            }
            expect!(t.agent, of_amount().at_most(1));
            expect!(t.agent, not(call_tool("ship").with("amount", that(|amount| amount == 35))));
        });
    });
    assert_eq!(ran.code, 0, "{ran:#?}");
}

#[test]
fn agent_is_last_turn_and_conversation_is_all_turns() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.it("looks back", async |t| {
            t.user.says("a room").await;
            t.user.says("thank you").await;
            expect!(t.agent, not(call_tool("check_availability")));
            expect!(t.conversation, have_tool_call("check_availability").with("capacity", ge(1)));
            expect!(t.agent, matches(["thank", "you"]));
            expect!(t.agent, not(matches("room")));
        });
    });
    assert_eq!(ran.code, 0, "{ran:#?}");
}

#[test]
fn reports_contain_expected_actual_and_location() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.it("tells", async |t| {
            t.user.says("a room").await;
            evaluate!(t.agent, call_tool("book_room"));
            evaluate!(t.agent, call_tool("check_availability").with("capacity", gt(10)));
            evaluate!(t.conversation.turns().len(), ge(3));
            evaluate!(t.conversation.tool_names(), contains(["check_availability", "book_room"]));
        });
    });
    let checks = ran.checks("tells");
    let told: Vec<(&str, &str)> = checks
        .iter()
        .map(|check| (check["expected"].as_str().unwrap(), check["actual"].as_str().unwrap()))
        .collect();
    assert_eq!(told[0], ("book_room to be called", "no call; tools called: check_availability"));
    assert_eq!(told[1].0, "check_availability with capacity: more than 10 to be called");
    assert!(told[1].1.contains(r#""capacity":10"#), "{told:?}");
    assert_eq!(told[2], ("`t.conversation.turns().len()` to be at least 3", "1"));
    assert_eq!(
        told[3],
        (
            r#"`t.conversation.tool_names()` to contain "check_availability", "book_room""#,
            r#"["check_availability"]"#
        )
    );
}

/// As over every protocol.
#[test]
fn a_result_that_is_json_text_is_its_value() {
    let ran = run_examples(|s| {
        s.agent(replies(async |_| {
            let result = json!("{\"status\": \"declined\"}");
            CodeAgentAnswer::text("Done.").calling("pay", json!({}), result)
        }));
        s.it("is declined", async |t| {
            t.user.says("hello").await;
            expect!(
                t.agent,
                holds(json!({"type": "tool_result", "tool": "pay", "result": {"status": "declined"}}))
            );
        });
        s.it("is not declined", async |t| {
            t.user.says("hello").await;
            expect!(
                t.agent,
                not(holds(json!({"type": "tool_result", "tool": "pay", "result": {"status": "declined"}})))
            );
        });
    });
    assert_eq!(ran.cases(), [("is declined", "passed"), ("is not declined", "failed")]);
}

/// No assertion can require or forbid it.
#[test]
fn a_call_without_a_name_is_invalid() {
    let ran = run_examples(|s| {
        s.agent(replies(async |_| CodeAgentAnswer::text("Done.").calling(" ", json!({}), json!({}))));
        s.it("calls nothing", async |t| {
            t.user.says("hello").await;
            expect!(t.agent, not(call_tool("pay")));
        });
    });
    let (kind, message) = ran.failure("calls nothing");
    assert!(kind == "protocol_error" && message.contains("a tool without a name"), "{kind} {message}");
}

/// Numbers of calls that contradict each other, or allow everything, are refused with functions and without.
#[test]
fn impossible_and_empty_numbers_of_calls_are_errors_of_the_test() {
    type SetCount = fn(ToolCallMatcher) -> ToolCallMatcher;
    let ran = run_examples(|s| {
        echo_agent(s);
        let all: [(&'static str, SetCount); 4] = [
            ("exact and minimum", |called| called.times(1).at_least(2)),
            ("minimum and exact", |called| called.at_least(2).times(1)),
            ("empty range", |called| called.at_least(3).at_most(1)),
            ("any number", |called| called.at_least(0)),
        ];
        for (name, counted) in all {
            for (kind, is_negated) in [("plain", false), ("negated", true)] {
                s.it(format!("{name}, {kind}, a value"), async move |t| {
                    t.user.says("a room").await;
                    let called = counted(call_tool("check_availability").with("room", "x"));
                    match is_negated {
                        true => _ = evaluate!(t.agent, not(called)),
                        false => _ = evaluate!(t.agent, called),
                    }
                });
                s.it(format!("{name}, {kind}, a function"), async move |t| {
                    t.user.says("a room").await;
                    let called = counted(call_tool("check_availability").with("room", that(|_| true)));
                    match is_negated {
                        true => _ = evaluate!(t.agent, not(called)),
                        false => _ = evaluate!(t.agent, called),
                    }
                });
            }
        }
    });
    assert_eq!(ran.cases().len(), 16, "{ran:#?}");
    for (name, _) in ran.cases() {
        assert_eq!(ran.failure(name).0, "test_error", "{name}: {ran:#?}");
    }
}

/// None of them, or not all? Of a turn, or of all?
#[test]
fn ambiguous_assertions_are_errors_of_the_test() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.it("texts", async |t| {
            t.user.says("a room").await;
            expect!(t.agent.text(), not(contains(["error", "nothing of this"])));
        });
        s.it("patterns", async |t| {
            t.user.says("a room").await;
            expect!(t.agent.text(), not(matches(["error", "nothing of this"])));
        });
        s.it("arguments", async |t| {
            t.user.says("a room").await;
            expect!(t.agent, call_tool("check_availability").with("room", not(contains(["a", "b"]))));
        });
        s.it("nothing", async |t| {
            t.user.says("a room").await;
            expect!(t.agent, holds(json!({})));
        });
        s.it("all turns of one", async |t| {
            t.user.says("a room").await;
            expect!(t.agent, holds(json!({"type": "contains", "value": "room", "turns": "all"})));
        });
        s.it("one of several, or each", async |t| {
            t.user.says("a room").await;
            expect!(t.agent.text(), not(contains_any(["error", "nothing of this"])));
            expect!(t.agent.text(), not(contains("error")));
        });
    });
    for (case, words) in [
        ("texts", "`not` of several assertions is ambiguous"),
        ("patterns", "`not` of several assertions is ambiguous"),
        ("arguments", "`not` of several is ambiguous"),
        ("nothing", "this asserts nothing"),
        ("all turns of one", "so `turns: all` has no effect here"),
    ] {
        let (kind, message) = ran.failure(case);
        assert!(kind == "test_error" && message.contains(words), "{case}: {kind} {message}");
    }
    assert_eq!(ran.case("one of several, or each")["status"], "passed", "{ran:#?}");
}

#[test]
fn tests_can_define_matchers() {
    struct Polite;

    impl Matcher<Agent> for Polite {
        fn assertion(&self, agent: &Agent) -> Assertion {
            let said = agent.text();
            Assertion::new("a polite answer", said.contains("please"), said)
        }
    }

    struct Undecided;

    impl Matcher<Agent> for Undecided {
        fn assertion(&self, _: &Agent) -> Assertion {
            Assertion::undecided("an answer in Latin", "nobody here knows Latin")
        }
    }

    let ran = run_examples(|s| {
        echo_agent(s);
        s.it("is polite", async |t| {
            t.user.says("say please").await;
            expect!(t.agent, Polite);
            assert!(!evaluate!(t.agent, not(Polite)));
            // An undecidable check fails plain and negated.
            assert!(!evaluate!(t.agent, Undecided));
            assert!(!evaluate!(t.agent, not(Undecided)));
        });
    });
    assert_eq!(ran.code, 0, "{ran:#?}");
}

#[test]
fn agent_behavior_can_be_asserted_in_topics() {
    fn about_turns(_: impl TurnMatcher) {}
    about_turns(call_tool("a").with("n", ge(1)));
    about_turns(not(matches("error|sorry")));
    about_turns(satisfies("short", |turn| turn.text().len() < 500));
}

/// A list of calls that nothing shows is not an empty list.
#[test]
fn calls_that_nothing_shows_cannot_be_read() {
    let agent = FakeAgent::start(|_: &FakeRequest| FakeReply::json(200, &json!({"reply": "Hello."})));
    let config = target_without_calls(&agent);
    let write = |folder: &Path| fs::write(folder.join("hotseat.yaml"), config).unwrap();
    let ran = run_examples_in(write, &[], |s| {
        s.it("all", async |t| {
            t.user.says("hi").await;
            assert!(t.conversation.all_tool_calls().is_empty());
        });
        s.it("of a tool", async |t| {
            t.user.says("hi").await;
            assert!(!t.conversation.has_tool_call("refund"));
        });
        s.it("of the last turn", async |t| {
            let response = t.user.says("hi").await;
            assert!(!response.has_tool_call("refund"));
        });
        s.it("of a message", async |t| {
            t.user.says("hi").await;
            assert!(!t.conversation.messages()[1].has_tool_call("refund"));
        });
        s.it("with an argument", async |t| {
            t.user.says("hi").await;
            expect!(t.agent, not(call_tool("refund").with("amount", that(|amount| amount.is_number()))));
        });
        s.criterion("no refund", "").matches(|conversation| !conversation.has_tool_call("refund"));
        s.it("in a criterion", async |t| {
            t.user.says("hi").await;
            expect!(t.agent, satisfy("no refund"));
        });
        s.criterion("no call", "").matches_messages(|all| all.iter().all(|one| one.tool_calls().is_empty()));
        s.it("in a criterion of messages", async |t| {
            t.user.says("hi").await;
            expect!(t.agent, satisfy("no call"));
        });
        s.it("texts", async |t| {
            t.user.says("hi").await;
            assert_eq!(t.conversation.messages()[1].content, "Hello.");
        });
    });
    for case in [
        "all",
        "of a tool",
        "of the last turn",
        "of a message",
        "with an argument",
        "in a criterion",
        "in a criterion of messages",
    ] {
        let (_, message) = ran.failure(case);
        assert!(message.contains("calls are not visible"), "{case}: {message}");
    }
    assert_eq!(ran.case("texts")["status"], "passed", "{ran:?}");
}

/// A tool of an MCP server of the test has the names that agents give it, whatever is compared.
#[test]
fn tools_of_servers_have_other_names() {
    let agent = FakeAgent::with_run(|run, request| {
        let arguments = json!({"order": {"id": "o-1", "amount": 5}});
        if request.json().to_string().contains("remember") {
            return run.tool("c1", "mcp__bank__refund", &arguments, None).text("Paid before.").finished();
        }
        let bank = McpClient::new(request.header("x-bank").expect("the address of the bank"));
        let result = bank.call("refund", &arguments).expect("an answer");
        run.tool("c1", "mcp__bank__refund", &arguments, Some(result)).text("Paid.").finished()
    });
    let config = format!(
        "target: {{ endpoint: '{agent}', headers: {{ x-bank: '${{MCP.bank.url}}' }} }}\nmcp: {{ bank: {{ type: mock, tools: [{{ name: refund, answers: [{{ content: paid }}] }}] }} }}\n"
    );
    let write = |folder: &Path| fs::write(folder.join("hotseat.yaml"), config).unwrap();
    let ran = run_examples_in(write, &[], |s| {
        s.it("a", async |t| {
            let response = t.user.says("hi").await;
            assert!(response.has_tool_call("refund") && response.has_tool_call("mcp__bank__refund"));
            assert_eq!(t.conversation.called_tool("refund"), 1);
            assert!(t.conversation.messages()[1].has_tool_call("bank_refund"));
            let call = response.turn().tool_call("refund").expect("a call");
            let known = call.server_tool.expect("the server received it");
            assert_eq!((known.server.as_str(), known.tool.as_str()), ("bank", "refund"));
            // A function changes how the other arguments are compared in nothing.
            let refunded = || call_tool("refund").with("order", json!({"id": "o-1"}));
            expect!(t.agent, refunded());
            expect!(t.agent, refunded().with("order", that(|order| order["amount"] == 5)));
            expect!(t.agent, refunded().with("order", json!({"amount": 5})));
            expect!(t.agent, call_tool("refund").with("order", not(json!({"id": "o-2"}))));
            expect!(t.agent, not(call_tool("refund").with("order", not(json!({"id": "o-1"})))));
            expect!(t.agent, not(refunded().with("order", that(|order| order["amount"] == 6))));
        });
        s.it("a call that the server did not receive", async |t| {
            let response = t.user.says("remember").await;
            assert!(response.tool_calls()[0].is_named("refund"));
            assert!(t.conversation.messages()[1].has_tool_call("refund"));
        });
    });
    assert_eq!(ran.code, 0, "{ran:#?}");
}

/// Functions that check see that nothing has shown calls yet, also in topics.
#[test]
fn functions_cannot_read_calls_before_a_service_is_used() {
    let agent = FakeAgent::start(|_: &FakeRequest| FakeReply::json(200, &json!({"reply": "Hello."})));
    let target = target_without_calls(&agent);
    let config = format!(
        "{target}mcp: {{ bank: {{ type: mock, tools: [{{ name: refund, answers: [{{ content: paid }}] }}] }} }}\n"
    );
    let write = |folder: &Path| fs::write(folder.join("hotseat.yaml"), config).unwrap();
    let ran = run_examples_in(write, &[], |s| {
        s.decide_topics(DecideTopics::Always);
        s.criterion("no refund", "").matches(|conversation| !conversation.has_tool_call("refund"));
        s.it("in a criterion", async |t| {
            t.user.says("hi").await;
            expect!(t.agent, satisfy("no refund"));
        });
        s.topic("start")
            .characteristic("Anything")
            .expect(satisfies("no call", |turn| turn.tool_calls().is_empty()));
        s.it("in a topic", async |t| {
            t.expect_conversation_to(graph! { start });
            t.user.says("hi").await;
        });
    });
    for case in ["in a criterion", "in a topic"] {
        let (_, message) = ran.failure(case);
        assert!(
            message.contains("the agent used no MCP server and no model of the test"),
            "{case}: {message}"
        );
    }
}
