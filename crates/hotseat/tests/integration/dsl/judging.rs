//! Criteria, judges, topics, simulated users and scenarios, with scripted judge and user.

use std::fs;
use std::path::Path;

use hotseat::dsl::prelude::*;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use super::harness::{ExampleRun, echo_agent, run_examples, run_examples_in, target_without_calls};

const PROJECT: &str = "
connectors:
  judge: { type: scripted, script: judge.yaml }
  user: { type: scripted, script: user.yaml }
judge: connectors:judge
simulator: connectors:user
";

const JUDGE: &str = r#"
name: judge
use: always
rules:
  - name: sees a word
    when: { system: satisfies a criterion, user: '(?s)Name: (polite|strict)\n.*"agent":"[^\n]*please' }
    reply: { json: { reasoning: It says please., satisfied: true } }
  - name: broken
    when: { system: satisfies a criterion, user: 'Name: broken' }
    reply: satisfied
  - name: no
    when: { system: satisfies a criterion }
    reply: { json: { reasoning: Nothing shows it., satisfied: false } }
  - name: claims
    when: { system: kinds that are forbidden }
    reply: { json: { reasoning: It names a price., claims_found: [{ type: prices, claim: five euros, grounded: false }], violated: true } }
  - name: goal
    when: { system: achieved a goal, user: 'have lunch' }
    reply: { json: { reasoning: Lunch is served., achieved: true } }
  - name: no goal
    when: { system: achieved a goal }
    reply: { json: { reasoning: No lunch., achieved: false } }
  - name: topic
    when: { system: which topic, user: '(?s).*"agent":"[^\n]*order[^\n]*\}\n</evidence' }
    reply: { json: { reasoning: Something is ordered., topic: ordering, confidence: high } }
  - name: other topic
    when: { system: which topic, user: 'The conversation was in: (?<topic>\w+)' }
    reply: { json: { reasoning: Nothing new., topic: "{{ topic }}", confidence: low } }
"#;

const USER: &str = r#"
name: user
use: always
rules:
  - name: tells what it was told
    when: { system: "(?s).*" }
    reply: { json: { reason: wants it, goal_progress: partial, done: false, message: "I want to order {{ 'lunch' }}, please" } }
"#;

/// Runs examples in a project with a judge and a user.
fn run_judged(arguments: &[&str], declare: impl FnOnce(&mut Group)) -> ExampleRun {
    let write = |folder: &Path| {
        for (name, text) in [("hotseat.yaml", PROJECT), ("judge.yaml", JUDGE), ("user.yaml", USER)] {
            fs::write(folder.join(name), text).unwrap();
        }
        let venues = json!([{"id": "a", "name": "One", "goal": "have lunch", "verification": {"least": 1}},
            {"id": "b", "name": "Two", "goal": "sleep"}]);
        fs::write(folder.join("venues.json"), venues.to_string()).unwrap();
        fs::write(folder.join("wrong.json"), r#"[{"name": "One", "goal": "g"}, {"name": "Two"}]"#).unwrap();
    };
    run_examples_in(write, arguments, declare)
}

#[test]
fn criteria_are_judged_separately_and_inherited() {
    let ran = run_judged(&[], |s| {
        echo_agent(s);
        s.criterion("polite", "The agent says please");
        s.criterion("short", "It is short").matches(|conversation| conversation.turn_count() == 1);
        s.describe("inner", |g| {
            g.criterion("strict", "Nothing at all is wrong")
                .good_example("please", "It is polite")
                .bad_example("now!", "It is not")
                .edge_case("if you please", true, "Polite enough");
            // The inner definition of a name takes precedence.
            g.criterion("short", "Never").matches_messages(|messages| messages.len() == 7);
            g.it("judges", async |t| {
                t.user.says("say please").await;
                assert!(evaluate!(t.agent, satisfy("polite")));
                assert!(!evaluate!(t.agent, satisfy(["polite", "short", "It speaks German"])));
                expect!(t.agent, not(satisfy("It speaks German")));
                expect!(t.agent, satisfy("strict"));
                let results = t.conversation.soft_evaluations();
                let passed: Vec<bool> = results.iter().map(|result| result.passed).collect();
                assert_eq!(passed, [true, true, false, false]);
                assert_eq!(results[1].reasoning.as_deref(), Some("It says please."));
            });
        });
        s.it("outer", async |t| {
            t.user.says("say please").await;
            expect!(t.agent, satisfy("short"));
        });
    });
    assert_eq!(ran.code, 0, "{ran:#?}");
}

/// The test names functions only in the conversation.
#[test]
fn script_functions_of_the_project_decide_in_rust_as_in_files() {
    let write = |folder: &Path| {
        fs::write(folder.join("hotseat.yaml"), "criteria: { short: { function: 'scripts:checks.short' } }\n")
            .unwrap();
        fs::create_dir(folder.join("src")).unwrap();
        fs::write(
            folder.join("src/checks.ts"),
            "export const short = (turn: any) => turn.text.length < 20;\n",
        )
        .unwrap();
    };
    let ran = run_examples_in(write, &[], |s| {
        echo_agent(s);
        for name in ["short", "scripts:checks.short"] {
            s.it(format!("{name} is right"), async move |t| {
                t.user.says("yes").await;
                expect!(t.agent, satisfy(name));
            });
            s.it(format!("{name} is wrong"), async move |t| {
                t.user.says("a long text without an end").await;
                expect!(t.agent, satisfy(name));
            });
        }
        s.it("names what is not there", async |t| {
            t.user.says("yes").await;
            evaluate!(t.agent, satisfy("scripts:checks.absent"));
        });
    });
    for name in ["short", "scripts:checks.short"] {
        assert_eq!(ran.case(&format!("{name} is right"))["status"], "passed", "{ran:#?}");
        assert_eq!(ran.failure(&format!("{name} is wrong")).0, "assertion", "{ran:#?}");
    }
    let (kind, message) = ran.failure("names what is not there");
    assert!(kind == "test_error" && message.contains("absent"), "{kind} {message}");
}

#[test]
fn undecided_judgement_is_no_verdict_and_unknown_name_is_error() {
    let ran = run_judged(&[], |s| {
        echo_agent(s);
        s.criterion("broken", "The judge answers rubbish");
        s.criterion("polite", "The agent says please");
        s.it("goes on when it is soft", async |t| {
            t.user.says("hello").await;
            assert!(!evaluate!(t.agent, satisfy("broken")));
            assert!(!evaluate!(t.agent, not(satisfy("broken"))));
            t.user.says("again").await;
        });
        s.it("fails by its judge", async |t| {
            t.user.says("hello").await;
            expect!(t.agent, not(satisfy("broken")));
        });
        s.it("names what is not there", async |t| {
            t.user.says("hello").await;
            evaluate!(t.agent, satisfy("polit"));
        });
        s.it("negates several", async |t| {
            t.user.says("hello").await;
            evaluate!(t.agent, not(satisfy(["polite", "broken"])));
        });
        s.it("asks for a goal that nobody stated", async |t| {
            t.user.says("hello").await;
            evaluate!(t.conversation, achieve_stated_goal());
        });
        s.it("claims", async |t| {
            t.user.says("hello").await;
            assert!(evaluate!(t.agent, claim("prices")));
            expect!(t.agent, not(claim("prices")));
        });
    });
    assert_eq!(ran.case("goes on when it is soft")["status"], "passed", "{ran:#?}");
    for (name, kind, words) in [
        ("fails by its judge", "judge_error", ""),
        ("names what is not there", "test_error", "unknown criterion `polit`: did you mean `polite`?"),
        ("negates several", "test_error", "`not` of several"),
        ("asks for a goal that nobody stated", "test_error", "no goal is set"),
        ("claims", "assertion", "prices"),
    ] {
        let (found, message) = ran.failure(name);
        assert!(found == kind && message.contains(words), "{name}: {found} {message}");
    }
}

#[test]
fn unknown_judge_decides_nothing() {
    let ran = super::harness::run_examples(|s| {
        echo_agent(s);
        s.it("is not judged", async |t| {
            t.user.says("hello").await;
            expect!(t.agent, not(satisfy("It is rude")));
        });
        s.it("is not measured", async |t| {
            t.user.says("hello").await;
            evaluate!(t.agent, not(satisfy("It is rude")));
        });
        s.it("is not simulated", async |t| {
            t.user
                .simulate(|s| {
                    s.goal("have lunch");
                })
                .await;
        });
    });
    assert_eq!(ran.failure("is not judged").0, "test_error", "{ran:#?}");
    assert_eq!(ran.failure("is not measured").0, "test_error", "{ran:#?}");
    let (kind, message) = ran.failure("is not simulated");
    assert!(kind == "simulator_error" && message.contains("`simulator:` in the project file"), "{message}");
}

fn topics(s: &mut Group) {
    echo_agent(s);
    s.topic("greeting").characteristic("They say hello");
    s.topic("ordering").characteristic("They order").evaluate(matches("order"));
    s.topic("looking")
        .characteristic("They look for a room")
        .trigger(on_tool_call("check_availability").with("capacity", ge(5)))
        .trigger(on_condition(|turn, conversation| {
            turn.text().contains("look") && conversation.turn_count() > 1
        }))
        .expect(satisfies("short", |turn| turn.text().len() < 30))
        .forbid_tool_call("book_room");
}

/// Such users would say nothing, and their examples pass.
#[test]
fn simulated_users_need_a_goal_and_a_turn() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.it("no turn", async |t| _ = t.user.simulate(|s| _ = s.goal("x").max_turns(0)).await);
        s.it("no goal", async |t| _ = t.user.simulate(|s| _ = s.goal("  ")).await);
    });
    for (name, words) in [("no turn", "must be at least 1"), ("no goal", "requires a `goal`")] {
        let message = ran.failure(name).1;
        assert!(message.contains(words), "{name}: {message}");
    }
}

/// A negated function holds of no turn of a visit, not merely of not all.
#[test]
fn a_negated_function_is_false_of_each_turn() {
    let ran = run_examples(|s| {
        echo_agent(s);
        s.decide_topics(DecideTopics::Always).classify_topics(ClassifyTopics::Triggers);
        s.topic("looking")
            .characteristic("They look for a room")
            .trigger(on_user_match("look"))
            .expect(not(satisfies("bad", |turn| turn.text().contains("bad"))));
        for (name, second) in [("passes", "look again"), ("fails", "look bad")] {
            s.it(name, async move |t| {
                t.expect_conversation_to(graph! { looking });
                t.user.says("look").await;
                t.user.says(second).await;
            });
        }
    });
    assert_eq!(ran.case("passes")["status"], "passed", "{ran:#?}");
    let (kind, message) = ran.failure("fails");
    assert!(kind == "assertion" && message.contains("no turn to satisfy bad"), "{kind} {message}");
}

#[test]
fn topics_follow_triggers_and_judge() {
    let ran = run_judged(&[], |s| {
        topics(s);
        s.it("goes through them", async |t| {
            t.expect_conversation_to(graph! {
                greeting => [ordering, looking],
                ordering => looking,
                looking => ordering,
            });
            assert_eq!(t.conversation.topic_history(), Vec::<String>::new());
            t.user.says("hello").await;
            expect!(t.agent, in_topic("greeting"));
            t.user.says("a room").await;
            expect!(t.agent, in_topic("looking"));
            t.user.says("I order lunch").await;
            expect!(t.conversation, not(in_topic("looking")));
            expect!(t.conversation, reached_topic("looking"));
            t.user.says("look").await;
            expect!(t.conversation.topic_history(), eq(["greeting", "looking", "ordering", "looking"]));
            assert_eq!(t.conversation.turns_in_topic("looking"), 2);
            assert_eq!(t.conversation.topic_visits()[3].number, 2);
            assert_eq!(t.conversation.turns()[2].topic().as_deref(), Some("ordering"));
            assert!(t.agent.in_topic("looking") && t.conversation.current_topic().unwrap() == "looking");
        });
        s.it("declares them later", async |t| {
            t.user.says("hello").await;
            t.user.says("a room").await;
            t.expect_conversation_to(graph! { greeting => looking, looking });
            expect!(t.conversation.topic_history(), eq(["greeting", "looking"]));
        });
        s.it("wires what is not there", async |t| {
            t.expect_conversation_to(graph! { greeting => [ordring, greeting], looking, nothing });
            unreachable!();
        });
        s.it("follows nothing", async |t| {
            t.user.says("hello").await;
            expect!(t.agent, not(in_topic("greeting")));
        });
    });
    assert_eq!(ran.case("goes through them")["status"], "passed", "{ran:#?}");
    assert_eq!(ran.case("declares them later")["status"], "passed", "{ran:#?}");
    assert_eq!(ran.failure("wires what is not there").0, "test_error");
    let message = ran.case("wires what is not there")["failure"].to_string();
    for words in [
        "topic `greeting` references undefined topic `ordring`",
        "topic `greeting` is followed by itself",
        "topic `nothing` is in the graph, but never defined",
        "topic `looking` is unreachable",
        "tests/integration/dsl/judging.rs:",
    ] {
        assert!(message.contains(words), "{words} is missing: {message}");
    }
    let (kind, message) = ran.failure("follows nothing");
    assert!(
        kind == "test_error" && message.contains("topics need a `graph`, but none is defined"),
        "{message}"
    );
    assert_eq!(ran.case("follows nothing")["turns"].as_array().unwrap().len(), 1);
}

#[test]
fn misspelled_topic_is_error_even_if_negated_or_soft() {
    let ran = run_judged(&[], |s| {
        topics(s);
        s.it("asserts", async |t| {
            t.expect_conversation_to(graph! { greeting => looking, looking });
            t.user.says("hello").await;
            expect!(t.agent, not(in_topic("lookng")));
            unreachable!();
        });
        s.it("measures", async |t| {
            t.expect_conversation_to(graph! { greeting => looking, looking });
            t.user.says("hello").await;
            evaluate!(t.conversation, not(reached_topic("lookng")));
            unreachable!();
        });
        s.it("has rules for it", async |t| {
            t.expect_conversation_to(graph! { greeting => looking, looking });
            t.user
                .simulate(|s| {
                    s.goal("have lunch").during_topic("lookng", |s| {
                        s.should("hurry");
                    });
                })
                .await;
            unreachable!();
        });
        s.it("differs in more than character", async |t| {
            t.expect_conversation_to(graph! { greeting => looking, looking });
            t.user
                .simulate(|s| {
                    s.goal("have lunch").during_topic("looking", |s| {
                        s.should("hurry").max_turns(3);
                    });
                })
                .await;
            unreachable!();
        });
    });
    for (name, words, turns) in [
        ("asserts", "unknown topic `lookng`: it is not in the graph: did you mean `looking`?", 1),
        ("measures", "unknown topic `lookng`: it is not in the graph", 1),
        ("has rules for it", "unknown topic `lookng`: it is not in the graph", 0),
        ("differs in more than character", "only the character of the user can differ in a topic", 0),
    ] {
        let (kind, message) = ran.failure(name);
        assert!(kind == "test_error" && message.contains(words), "{name}: {kind} {message}");
        assert!(message.contains("tests/integration/dsl/judging.rs:"), "{name}: {message}");
        assert_eq!(ran.case(name)["turns"].as_array().unwrap().len(), turns, "{name}");
    }
}

#[test]
fn simulated_user_receives_brief_and_topic_assertions_decide() {
    let ran = run_judged(&["--trace=trace.jsonl"], |s| {
        topics(s);
        s.simulator()
            .role("Somebody hungry")
            .should("say please")
            .personality_note("Has no time")
            .max_turns(9);
        s.it("goes on until it is enough", async |t| {
            let simulated = t
                .user
                .simulate(|s| {
                    s.goal("have lunch")
                        .personality_note("Likes soup")
                        .should_not("wait")
                        .max_repeats(0)
                        .stop_when(|turn, conversation| turn.number() == 2 && conversation.turn_count() == 2);
                })
                .await;
            assert_eq!((simulated.reason(), simulated.turns()), ("stop_condition", 2));
            expect!(t.conversation, achieve_stated_goal());
            expect!(t.conversation, not(achieve_goal("go home")));
        });
        s.it("fails by what its topic asserts", async |t| {
            t.expect_conversation_to(graph! { looking });
            t.user
                .simulate(|s| {
                    s.goal("have lunch").max_turns(1);
                })
                .await;
        });
        s.it("repeats itself", async |t| {
            t.user
                .simulate(|s| {
                    s.goal("have lunch");
                })
                .await;
        });
        s.it("has no goal", async |t| {
            t.user.simulate(|_| {}).await;
        });
    });
    assert_eq!(ran.case("goes on until it is enough")["status"], "passed", "{ran:#?}");
    let (kind, message) = ran.failure("fails by what its topic asserts");
    assert!(kind == "max_turns" && message.contains("short"), "{message}");
    let (kind, message) = ran.failure("repeats itself");
    assert!(kind == "simulator_error" && message.contains("it repeats itself"), "{message}");
    assert_eq!(ran.failure("has no goal").0, "test_error");
    let told = ran.files["trace.jsonl"].lines().find(|line| line.contains("Likes soup"));
    let told = told.expect("the user was told its personality");
    for words in ["Somebody hungry", "Has no time", "say please", "wait"] {
        assert!(told.contains(words), "{words} is missing: {told}");
    }
}

#[test]
fn scenarios_generate_examples_with_data() {
    let declare = |s: &mut Group| {
        echo_agent(s);
        s.scenario_set("lunches", load("venues.json"), |g, scenario| {
            g.it(format!("handles {}", scenario.str("name")), async move |t| {
                assert_eq!(t.scenario().unwrap().id(), scenario.id());
                t.user.says(scenario.str("goal")).await;
                assert!(scenario.get_opt("verification.least").is_none() || scenario.id() == "a");
                assert_eq!(scenario.list_opt("nothing"), None);
                expect!(t.agent.text(), contains(scenario.str("goal")));
            });
        });
        s.scenario_set("inline", json!([{"name": "Three", "goal": "g"}]), |g, scenario| {
            g.it(format!("handles {}", scenario.str("name")), async move |_| {});
        });
    };
    let ran = run_judged(&[], declare);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(ran.cases().len(), 3);
    assert_eq!(ran.case("handles One")["id"], "handles One@a");
    for wrong in ["wrong.json", "missing.json"] {
        let ran = run_judged(&[], |s| {
            s.scenario_set("lunches", load(wrong), |_, _| unreachable!());
        });
        assert_eq!(ran.code, 2, "{wrong}");
    }
}

#[test]
fn rejects_invalid_declarations_before_run() {
    type Declare = fn(&mut Group);
    let wrong: [Declare; 8] = [
        |s| {
            s.criterion("friendly", "");
        },
        |s| {
            s.criterion("a", "A").matches(|_| true).matches_messages(|_| true);
        },
        |s| {
            s.criterion("a", "A").matches(|_| true).good_example("x", "y");
        },
        |s| {
            s.criterion("a", "A");
            s.criterion("a", "B");
        },
        |s| {
            s.topic("a");
            s.topic("a");
        },
        |s| {
            s.simulator().goal("not here");
        },
        |s| {
            s.simulator().template("not here");
        },
        |s| {
            s.simulator().played_by("no such thing: at all");
        },
    ];
    for (number, declare) in wrong.into_iter().enumerate() {
        let ran = run_judged(&[], |s| {
            echo_agent(s);
            s.it("never runs", async |_| unreachable!());
            declare(s);
        });
        assert_eq!(ran.code, 2, "{number}");
    }
}

#[test]
fn unused_topics_are_validated() {
    let refused = |declare: fn(&mut Topic)| {
        let ran = run_judged(&[], |s| {
            echo_agent(s);
            declare(s.topic("unused"));
            s.it("goes through no topic", async |t| {
                t.user.says("hello").await;
            });
        });
        assert_eq!((ran.code, &ran.report), (2, &Value::Null));
    };
    refused(|topic| _ = topic.evaluate(satisfy("polit")));
    refused(|topic| _ = topic.expect(matches("(unclosed")));
    refused(|topic| _ = topic.expect(matches("")));
    refused(|topic| _ = topic.trigger(on_user_match("a|")));
    refused(|topic| _ = topic.trigger(on_tool_call("x").with("n", ge(f64::NAN))));
    refused(|topic| _ = topic.trigger(on_response_match("Booked").with("room", "Red")));
    refused(|topic| _ = topic.expect(not(satisfy(["friendly", "brief"]))));
}

/// Such triggers can never fire.
#[test]
fn triggers_at_calls_that_nothing_shows_are_refused() {
    let agent = FakeAgent::start(|_: &FakeRequest| FakeReply::json(200, &json!({"reply": "Hello."})));
    let target = target_without_calls(&agent);
    let bank =
        "mcp: { bank: { type: mock, tools: [{ name: charge_card, answers: [{ content: charged }] }] } }\n";
    let hidden = "the agent's calls are not visible";
    for (project, tool, words) in [
        (target.clone(), "charge_card", hidden),
        (target.clone() + bank, "charge_crad", "no MCP server of the test has a tool `charge_crad`"),
    ] {
        for trigger in [on_tool_call(tool), on_tool_call(tool).with("amount", ge(5))] {
            let write = |folder: &Path| fs::write(folder.join("hotseat.yaml"), &project).unwrap();
            let ran = run_examples_in(write, &[], |s| {
                s.classify_topics(ClassifyTopics::Triggers);
                s.topic("start");
                s.topic("paid").trigger(trigger);
                s.it("pays", async |t| {
                    t.expect_conversation_to(graph! { start => paid, paid => start });
                    t.user.says("hello").await;
                });
            });
            let (kind, message) = ran.failure("pays");
            assert!(kind == "test_error" && message.contains(words), "{ran:#?}");
        }
    }
}

/// Name of a way to read a scenario, and the way.
type ScenarioAccess = (&'static str, fn(&Scenario));

#[test]
fn missing_scenario_value_is_an_error() {
    let list = json!([{"name": "One", "goal": "g", "none": null, "people": 3, "rooms": ["a"], "venue": {"city": "Ulm"}}]);
    let ran = run_judged(&[], |s| {
        echo_agent(s);
        s.scenario_set("all", list, |g, scenario| {
            let tries: Vec<ScenarioAccess> = vec![
                ("get", |scenario| drop(scenario.get("rom"))),
                ("get null", |scenario| drop(scenario.get("none"))),
                ("str", |scenario| drop(scenario.str("venue.cty"))),
                ("str of a list", |scenario| drop(scenario.str("rooms"))),
                ("list", |scenario| drop(scenario.list("rom"))),
                ("list of a text", |scenario| drop(scenario.list("goal"))),
                ("list_opt of a text", |scenario| drop(scenario.list_opt("goal"))),
                ("texts", |scenario| drop(scenario.texts("rom"))),
            ];
            for (name, attempt) in tries {
                let scenario = scenario.clone();
                g.it(name, async move |_| attempt(&scenario));
            }
            g.it("twins", async move |t| {
                t.user.says("hello").await;
                assert_eq!((scenario.get_opt("rom"), scenario.get_opt("none")), (None, None));
                assert_eq!((scenario.str_opt("venue.cty"), scenario.str("people")), (None, "3".to_string()));
                assert_eq!((scenario.list_opt("rom"), scenario.texts_opt("rom")), (None, None));
                assert_eq!(
                    (scenario.texts("rooms"), scenario.str("rooms.0")),
                    (vec!["a".to_string()], "a".to_string())
                );
            });
        });
    });
    for result in ran.report["results"].as_array().unwrap() {
        let expected = if result["name"] == "twins" { "passed" } else { "failed" };
        assert_eq!(result["status"], expected, "{result:#}");
    }
    assert_eq!(ran.report["summary"]["total"], 9);
}

/// Runs a future on a separate thread and waits for its end.
fn run_on_thread(work: impl Future<Output = ()> + Send + 'static) {
    let thread = std::thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work);
    });
    // Only the session knows the result.
    let _ = thread.join();
}

#[test]
fn expectation_failed_on_other_thread_fails_case() {
    let ran = run_judged(&[], |s| {
        echo_agent(s);
        s.it("of the agent", async |t| {
            t.user.says("hello").await;
            let agent = t.agent.clone();
            run_on_thread(async move { expect!(agent, matches("nowhere")) });
        });
        s.it("holds", async |t| {
            t.user.says("hello").await;
            let agent = t.agent.clone();
            run_on_thread(async move { expect!(agent, matches("hello")) });
        });
    });
    assert_eq!(ran.failure("of the agent").0, "assertion", "{ran:#?}");
    assert_eq!(ran.case("holds")["status"], "passed", "{ran:#?}");
    assert_eq!(ran.case("holds")["turns"][0]["assertions"][0]["passed"], true);
}
