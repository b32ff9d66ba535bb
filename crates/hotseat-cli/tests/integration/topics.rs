//! Topics: assignment of turns, triggers and judges, assertions on exit, and reports.

use hotseat_testkit::FakeAgent;
use serde_json::{Value, json};

use crate::common::{Project, TestRun};

/// An agent that books rooms and answers by the user text.
fn booking_agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| match request.last_user_text().to_lowercase() {
        said if said.contains("blue room") => run
            .tool(
                "c1",
                "check_availability",
                &json!({"room": "Blue Room", "capacity": 10}),
                Some(json!({"free": true})),
            )
            .text("It is free. Shall I book it?")
            .finished(),
        said if said.contains("book it") => run
            .tool("c2", "book_room", &json!({"room": "Blue Room"}), Some(json!({"reference": "R-1"})))
            .text("Booked.")
            .finished(),
        said if said.contains("nonsense") => run.text("Sorry, I did not understand.").finished(),
        _ => run.text("Hello! How can I help?").finished(),
    })
}

/// A judge that selects the topic of a turn by the end of the user text.
fn topic_judge() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let asked = request.last_user_text();
        let last = asked.lines().rev().find(|line| line.contains("\"user\"")).unwrap_or_default();
        let topic = match () {
            () if last.contains("Blue Room") => "gathering",
            () if last.contains("book it") => "confirming",
            () => "greeting",
        };
        let answer =
            json!({"reasoning": format!("it sounds like {topic}"), "topic": topic, "confidence": "high"});
        run.text(&answer.to_string()).finished()
    })
}

fn project(agent: &FakeAgent, judge: Option<&FakeAgent>) -> Project {
    let mut text = format!("target: {{ endpoint: '{agent}' }}\n");
    if let Some(judge) = judge {
        text.push_str(&format!("agents:\n  judge: {{ endpoint: '{judge}' }}\njudge: agents:judge\n"));
    }
    Project::with_config(&text)
}

fn run_suite(agent: &FakeAgent, judge: Option<&FakeAgent>, suite: &str) -> TestRun {
    project(agent, judge).suite("a", suite).test(&[])
}

/// Stdout and stderr of a suite that must be rejected.
fn rejection_output(suite: &str) -> String {
    let (agent, judge) = (booking_agent(), topic_judge());
    let output = project(&agent, Some(&judge)).suite("a", suite).hotseat(&["test"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(agent.requests().is_empty(), "nothing is contacted before all is right");
    output.stderr
}

fn topics_of(case: &Value) -> Vec<&str> {
    case["turns"].as_array().unwrap().iter().map(|turn| turn["topic"].as_str().unwrap_or("-")).collect()
}

const BOOKING: &str = r"
name: booking
topics:
  greeting: { characteristic: Initial contact }
  gathering: { characteristic: '  Collecting requirements  ', agent_intent: Find out what is needed }
  confirming: { characteristic: Confirming the booking }
graph:
  greeting: gathering
  gathering: confirming
  confirming:
turns:
  - user: Hello!
    assert: { type: topic, name: greeting }
  - user: The Blue Room, please
    assert:
      - { type: topic, name: gathering }
      - { type: topic_history, value: [greeting, gathering] }
      - { type: reached_topic, name: confirming, negate: true }
      - { type: tool_called, name: check_availability }
  - user: Yes, book it
    assert: { type: topic, name: confirming }
final_assertions:
  - { type: topic_history, value: [greeting, gathering, confirming] }
  - { type: reached_topic, name: gathering }
";

#[test]
fn judge_tracks_topics_of_scripted_conversation() {
    let (agent, judge) = (booking_agent(), topic_judge());
    let tested = run_suite(&agent, Some(&judge), BOOKING);
    tested.assert_all_passed();
    let case = tested.case("booking");
    assert_eq!(topics_of(case), ["greeting", "gathering", "confirming"]);
    assert_eq!(case["topic_history"], json!(["greeting", "gathering", "confirming"]));
    assert_eq!(case["final_topic"], "confirming");
    assert_eq!(case["completion"]["final_topic"], "confirming");
    assert_eq!(case["completion"]["state"], "pass");
    assert_eq!(case["completion"]["turn_count"], 3);
    let turns: Vec<&Value> =
        case["topic_visits"].as_array().unwrap().iter().map(|visit| &visit["turns"]).collect();
    assert_eq!(turns, [&json!([1]), &json!([2]), &json!([3])]);
    let why = &case["turns"][1]["topic_reason"];
    assert_eq!(
        (why["from"].as_str(), why["why"].as_str(), why["confidence"].as_str(), why["reasoning"].as_str()),
        (Some("greeting"), Some("judge"), Some("high"), Some("it sounds like gathering"))
    );
    // Every turn that could lead to another topic is judged: the third is the first in the last topic.
    let asked = judge.user_texts();
    assert_eq!(asked.len(), 3, "each turn had a choice before it");
    let second = &asked[1];
    for part in [
        "## greeting",
        "## gathering",
        "Characteristic: Collecting requirements\n",
        "Agent intent: Find out what is needed",
    ] {
        assert!(second.contains(part), "{part}: {second}");
    }
    assert!(!second.contains("## confirming"), "only what may follow is a candidate: {second}");
}

#[test]
fn trace_explains_topic_decisions() {
    let (agent, judge) = (booking_agent(), topic_judge());
    let project = project(&agent, Some(&judge)).suite("a", BOOKING);
    project.hotseat(&["test", "--trace", "out.jsonl"]).assert_code(0);
    let trace = project.workspace.read("out.jsonl");
    let events: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["type"] == name).map(|event| &event["payload"]).collect()
    };
    assert_eq!(of("topics.declared")[0]["topics"][0], json!({"name": "greeting", "next": ["gathering"]}));
    let changed = of("topic.changed");
    assert_eq!(*changed[0], json!({"to": "greeting", "why": "initial"}));
    assert_eq!(changed[1]["from"], "greeting");
    assert_eq!(
        (&changed[1]["to"], &changed[1]["turn"], &changed[1]["why"]),
        (&json!("gathering"), &json!(2), &json!("judge"))
    );
    // Staying in a topic has a reason too.
    assert_eq!(of("topic.kept")[0]["turn"], 1);
}

/// Topics selected by triggers, without a judge.
fn run_with_triggers(triggers: &str, turns: &[&str]) -> (Vec<String>, TestRun) {
    let agent = booking_agent();
    let turns: String = turns.iter().map(|turn| format!("  - user: {turn}\n")).collect();
    let known = "topics: { a: { characteristic: A }, b: { characteristic: B } }";
    let suite = format!("name: t\nclassify_topics: triggers\n{known}\ngraph:\n{triggers}\nturns:\n{turns}");
    let tested = run_suite(&agent, None, &suite);
    let found = topics_of(tested.case("t")).into_iter().map(str::to_string).collect();
    (found, tested)
}

#[test]
fn every_trigger_kind_fires() {
    for (trigger, fires) in [
        ("{ on_tool_call: check_availability }", true),
        ("{ on_tool_call: check_availability, with_params: { capacity: 10 } }", true),
        ("{ on_tool_call: check_availability, with_params: { capacity: '10' } }", false),
        ("{ on_tool_call: check_availability, with_params: { room: 'regex:/blue/i' } }", true),
        ("{ on_tool_call: check_availability, with_params: { floor: 1 } }", false),
        ("{ on_tool_call: Check_Availability }", false),
        ("{ on_response_match: '/shall i BOOK/i' }", true),
        ("{ on_response_match: 'blue room' }", false),
        ("{ on_user_match: 'Blue Room' }", true),
        ("{ on_user_match: 'Shall I' }", false),
        ("{ after_turns_in: a, count: 2 }", true),
        ("{ after_turns_in: a, count: 3 }", false),
        ("[{ on_user_match: nothing }, { on_user_match: Blue }]", true),
    ] {
        let graph = format!("  a: b\n  b: {{ triggers: {trigger} }}");
        let (topics, _) = run_with_triggers(&graph, &["Hello", "The Blue Room"]);
        assert_eq!(topics, ["a", if fires { "b" } else { "a" }], "{trigger}");
    }
}

/// Nobody knows whether the trigger fires.
#[test]
fn a_trigger_on_arguments_that_are_no_json_fails_the_turn() {
    let agent = FakeAgent::with_run(|run, _| {
        let run = run
            .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "book"}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{bad"}))
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}));
        run.text("Booked.").finished()
    });
    let suite = |trigger: &str| {
        format!(
            "name: t\nclassify_topics: triggers\ntopics: {{ a: {{ characteristic: A }}, b: {{ characteristic: B }} }}\ngraph:\n  a: b\n  b: {{ triggers: {trigger} }}\nturns: [{{ user: hi }}]\n"
        )
    };
    let tested = run_suite(&agent, None, &suite("{ on_tool_call: book, with_params: { room: A } }"));
    tested.assert_failure("t", "assertion", &["the topic of turn 1 is unknown", "book"]);
    let tested = run_suite(&agent, None, &suite("{ on_tool_call: book }"));
    assert_eq!(topics_of(tested.case("t")), ["b"]);
}

#[test]
fn script_function_can_be_trigger() {
    let agent = booking_agent();
    let suite = "name: t\nclassify_topics: triggers\ntopics: { a: {} }\ngraph:\n  a: b\n  b: { triggers: { on_condition: 'scripts:topics.booked' } }\nturns:\n  - user: Hello\n  - user: book it\n";
    let project = project(&agent, None).suite("a", suite);
    let project = project.file(
        "src/topics.ts",
        "export function booked(output: string, input: string, expected: any, context: any) { return context.tool_calls.some((c: any) => c.name === 'book_room'); }",
    );
    let tested = project.test(&[]);
    assert_eq!(topics_of(tested.case("t")), ["a", "b"]);
    let why = &tested.case("t")["turns"][1]["topic_reason"];
    assert_eq!((&why["why"], &why["trigger"]), (&json!("trigger"), &json!("scripts:topics.booked passes")));

    // A failing trigger function is a test error.
    let project = project.file("src/topics.ts", "export function booked() { throw new Error('no idea'); }");
    let tested = project.test(&[]);
    assert_eq!(tested.failure("t")["kind"], "script_error");
}

/// A topic that a hook names is looked up once the hook has run.
#[test]
fn a_hook_may_name_a_topic() {
    let suite = |named: &str, assertion: &str| {
        format!(
            "name: a
hooks: [{{ cmd: [echo, '{{\"WHICH\": \"{named}\"}}'] }}]
topics:
  greeting: {{ characteristic: The beginning }}
  gathering: {{ characteristic: A room is named, triggers: {{ on_tool_call: check_availability }} }}
graph: {{ greeting: gathering, gathering: null }}
classify_topics: triggers
turns: [{{ user: The Blue Room, assert: {{ {assertion} }} }}]
"
        )
    };
    for assertion in [
        "type: value, of: topic_history, equals: ['${WHICH}']",
        "type: value, of: topic_history, contains: '${WHICH}'",
        "type: topic_history, value: ['${WHICH}']",
        "type: reached_topic, name: '${WHICH}'",
    ] {
        run_suite(&booking_agent(), None, &suite("gathering", assertion)).assert_all_passed();
        let wrong = run_suite(&booking_agent(), None, &suite("greeting", assertion));
        assert_eq!(wrong.failure("a")["kind"], "assertion", "{assertion}");
        let unknown = run_suite(&booking_agent(), None, &suite("gathring", assertion));
        unknown.assert_failure("a", "test_error", &["did you mean `gathering`"]);
    }
}

#[test]
fn current_topic_then_successors_in_order() {
    // Both fire: the current topic wins.
    let (topics, _) = run_with_triggers(
        "  a: { next: b, triggers: { on_user_match: Blue } }\n  b: { triggers: { on_user_match: Blue } }",
        &["The Blue Room"],
    );
    assert_eq!(topics, ["a"]);
    // Both successors fire: the first declared successor wins, not the first topic of the graph.
    let fires = "{ triggers: { on_user_match: Blue } }";
    let (topics, _) =
        run_with_triggers(&format!("  a: [c, b]\n  b: {fires}\n  c: {fires}"), &["The Blue Room"]);
    assert_eq!(topics, ["c"]);
    // A topic that is not a successor is never entered.
    let (topics, _) = run_with_triggers(&format!("  a: b\n  b: c\n  c: {fires}"), &["The Blue Room"]);
    assert_eq!(topics, ["a"]);
    // A topic reachable from everywhere can be entered.
    let graph =
        "  a: b\n  b:\n  lost: { from: any, next: b, triggers: { on_response_match: did not understand } }";
    let (topics, tested) = run_with_triggers(graph, &["Hello", "nonsense"]);
    assert_eq!(topics, ["a", "lost"]);
    assert_eq!(tested.case("t")["topic_graph"][2]["fromAny"], true);
}

#[test]
fn judge_is_asked_only_if_no_trigger_fires() {
    let (agent, judge) = (booking_agent(), topic_judge());
    let suite = "
name: t
graph:
  greeting: { next: gathering, characteristic: Hello }
  gathering: { next: confirming, triggers: { on_tool_call: check_availability } }
  confirming: { triggers: { on_tool_call: book_room } }
turns: [{ user: Hello }, { user: The Blue Room }, { user: book it }, { user: thanks }]
";
    let tested = run_suite(&agent, Some(&judge), suite);
    assert_eq!(topics_of(tested.case("t")), ["greeting", "gathering", "confirming", "confirming"]);
    // Nothing precedes the first turn; the last topic has no successor.
    assert_eq!(judge.requests().len(), 1);
}

#[test]
fn unknown_topic_answer_is_ignored_with_warning() {
    let (agent, judge) = (
        booking_agent(),
        FakeAgent::with_text(r#"{"reasoning": "surely", "topic": "confirming", "confidence": "high"}"#),
    );
    let suite = BOOKING.split("turns:").next().unwrap().to_string() + "turns: [{ user: Hello }]\n";
    let tested = run_suite(&agent, Some(&judge), &suite);
    let turn = &tested.case("booking")["turns"][0];
    assert_eq!(turn["topic"], "greeting");
    assert_eq!(
        (&turn["topic_reason"]["why"], &turn["topic_reason"]["confidence"]),
        (&json!("fallback"), &json!("low"))
    );
}

#[test]
fn unusable_topic_judge_answer_is_an_error() {
    let (agent, judge) = (booking_agent(), FakeAgent::with_text("It is about booking, I think."));
    let suite = BOOKING.replace("type: topic, name: greeting", "type: topic, name: greeting, negate: true");
    let tested = run_suite(&agent, Some(&judge), &suite);
    tested.assert_fault("booking", "judge_error", "judge");
    assert_eq!(tested.case("booking")["completion"]["failure_type"], "error");
    assert_eq!(agent.requests().len(), 1, "it does not go on without knowing where it is");
}

#[test]
fn missing_topic_judge_is_reported_before_run() {
    let agent = booking_agent();
    project(&agent, None)
        .suite("a", BOOKING)
        .hotseat(&["test"])
        .assert_stderr(2, &["no judge is configured", "a.test.yaml:8"]);
    assert!(agent.requests().is_empty());
}

#[test]
fn graph_errors_report_their_lines() {
    let stderr = rejection_output(
        "
name: g
topics:
  a: { characteristic: A }
  b: { characteristic: B }
  c: { characteristic: C }
graph:
  a: [b, b, nowhere]
  b: b
  c:
  unknown:
  '7': { characteristic: Seven }
turns: [{ user: Hello }]
",
    );
    for (words, line) in [
        ("topic `a` is followed by `b` twice", 8),
        ("topic `a` references undefined topic `nowhere`", 8),
        ("topic `b` is followed by itself", 9),
        ("topic `c` is unreachable", 10),
        ("topic `unknown` is in the graph, but never defined", 11),
        ("`7` is not a valid topic name", 12),
    ] {
        assert!(stderr.contains(words), "{words}: {stderr}");
        assert!(stderr.contains(&format!("a.test.yaml:{line}:")), "{line}: {stderr}");
    }
    for (graph, words) in [
        ("graph: { a: { characteristic: A, bogus: 1 } }", "unknown key `bogus`"),
        ("graph: { a: 7 }", "`a` must be"),
        ("graph: { a: { next: 7 } }", "`next` must be"),
        ("graph: {}", "the graph has no topic"),
        ("graph: { a: { from: b, characteristic: A } }", "`from` must be `any`"),
        ("graph: { a: { triggers: {} } }", "this trigger never fires"),
        (
            "graph: { a: { triggers: { on_tool_call: x, on_user_match: y } } }",
            "`on_tool_call` and `on_user_match` cannot be combined in one trigger",
        ),
        ("graph: { a: { triggers: { on_user_match: '(' } } }", "does not compile"),
        ("graph: { a: { triggers: { on_user_match: x, count: 2 } } }", "`count` requires `after_turns_in`"),
        ("graph: { a: { triggers: { after_turns_in: b } } }", "unknown topic `b`: it is not in the graph"),
        ("topics: { a: { characteristic: A } }", "there is no `graph`"),
        (
            "graph: { a: { characteristic: A } }\nassert: { type: topic, name: aa, negate: true }",
            "unknown topic `aa`: it is not in the graph",
        ),
        (
            "assert: { type: reached_topic, name: a, negate: true }",
            "topics need a `graph`, but none is defined",
        ),
    ] {
        let stderr = rejection_output(&format!("name: g\n{graph}\nturns: [{{ user: Hello }}]\n"));
        assert!(stderr.contains(words), "{graph}: {stderr}");
    }
}

#[test]
fn duplicate_topics_are_rejected_while_reading() {
    let stderr = rejection_output(
        "name: g\ngraph:\n  a: { characteristic: A }\n  a: { characteristic: B }\nturns: [{ user: x }]\n",
    );
    assert!(stderr.contains("`a`") && stderr.contains("a.test.yaml:4:"), "{stderr}");
}

#[test]
fn topics_come_from_project_suite_and_case() {
    let (agent, judge) = (booking_agent(), topic_judge());
    let project = project(&agent, Some(&judge));
    let head = project.workspace.read("hotseat.yaml");
    project.workspace.file(
        "hotseat.yaml",
        &format!("{head}topics:\n  greeting: {{ characteristic: Of the project }}\n  gathering: {{ characteristic: Of the project }}\n"),
    );
    let project = project.suite(
        "a",
        "
suite:
  topics:
    gathering: { characteristic: Of the suite }
  graph: { greeting: gathering, gathering: }
---
name: of the suite
turns: [{ user: Hello }]
---
name: of the case
topics:
  gathering: { characteristic: Of the case }
turns: [{ user: Hello }]
---
name: of its graph
graph:
  greeting: gathering
  gathering: { characteristic: Of the graph }
turns: [{ user: Hello }]
",
    );
    let tested = project.test(&["--parallel", "1"]);
    tested.assert_all_passed();
    let asked = judge.user_texts();
    for (question, of) in asked.iter().zip(["Of the suite", "Of the case", "Of the graph"]) {
        assert!(question.contains(&format!("## gathering\nCharacteristic: {of}\n")), "{of}: {question}");
        assert!(question.contains("## greeting\nCharacteristic: Of the project\n"), "{question}");
    }
}

#[test]
fn suite_head_must_be_first_and_alone() {
    let case = "name: c\nturns: [{ user: Hello }]\n";
    let stderr =
        rejection_output(&format!("{case}---\nsuite: {{ topics: {{ a: {{ characteristic: A }} }} }}\n"));
    assert!(stderr.contains("`suite` is not a key of a case"), "{stderr}");
    let stderr = rejection_output(&format!("suite: {{ topics: {{}} }}\nname: c\n---\n{case}"));
    assert!(stderr.contains("`name` is not allowed next to `suite`"), "{stderr}");
    let stderr = rejection_output(&format!("suite: {{ topic: {{}} }}\n---\n{case}"));
    assert!(stderr.contains("unknown key `topic`") && stderr.contains("`topics`"), "{stderr}");
    let stderr = rejection_output("suite: { topics: {} }\n");
    assert!(stderr.contains("no test cases found"), "{stderr}");
}

#[test]
fn exceeding_topic_turn_limit_fails_case() {
    let agent = booking_agent();
    let suite = "name: t\nclassify_topics: triggers\ngraph: { a: { next: b, max_turns: 2, characteristic: A }, b: { triggers: { on_tool_call: book_room } } }\nturns: [{ user: x }, { user: y }, { user: z }, { user: book it }]\n";
    let tested = run_suite(&agent, None, suite);
    let failure = tested.failure("t");
    assert_eq!(failure["kind"], "max_turns");
    assert!(failure["message"].as_str().unwrap().contains("topic `a` (2)"), "{failure}");
    assert_eq!(agent.requests().len(), 3);
    assert_eq!(tested.case("t")["completion"]["failure_type"], "max_turns");
}

#[test]
fn topic_assertions_are_optional_in_scripted_conversations() {
    let agent = booking_agent();
    let suite = |how: &str| {
        format!(
            "name: t\nclassify_topics: triggers\n{how}graph:\n  a: {{ next: b, assert: {{ type: tool_called, name: book_room }} }}\n  b: {{ triggers: {{ on_user_match: Blue }}, assert: {{ type: tool_called, name: check_availability }} }}\nturns: [{{ user: Hello }}, {{ user: Blue Room }}, {{ user: book it }}]\n"
        )
    };
    run_suite(&agent, None, &suite("")).assert_all_passed();
    let before = agent.requests().len();
    let tested = run_suite(&agent, None, &suite("decide_topics: always\n"));
    assert_eq!(tested.failure("t")["kind"], "assertion");
    assert_eq!(agent.requests().len() - before, 2, "it ends when the topic is left");
    let tested = run_suite(&agent, None, &suite("decide_topics: always\ncontinue_on_failure: true\n"));
    let visits = tested.case("t")["topic_visits"].as_array().unwrap();
    assert_eq!(
        (visits.len(), &visits[0]["assertions"][0]["passed"], &visits[1]["assertions"][0]["passed"]),
        (2, &json!(false), &json!(true))
    );
    assert_eq!(tested.case("t")["total_turns"], 3);
    tested.failure("t");
}

#[test]
fn console_shows_topic_path() {
    let (agent, judge) = (booking_agent(), topic_judge());
    let output = project(&agent, Some(&judge)).suite("a", BOOKING).hotseat(&["test", "-v"]);
    assert!(
        output.stdout.contains("Topic: greeting → gathering (judge: high, it sounds like gathering)"),
        "{output}"
    );
}

#[test]
fn topics_support_soft_agent_intent_and_inherited_criteria() {
    let agent = booking_agent();
    let judge = FakeAgent::with_text(
        r#"{"reasoning": "it greets", "observed_intent": "to greet", "matches": false}"#,
    );
    let suite = "
name: t
classify_topics: triggers
decide_topics: always
criteria: { polite: Is polite }
graph:
  a: { next: b, agent_intent: Welcome the user, evaluate_intent: true, characteristic: A }
  b: { triggers: { on_user_match: Blue } }
turns: [{ user: Hello }, { user: The Blue Room }]
";
    let tested = run_suite(&agent, Some(&judge), suite);
    tested.assert_all_passed();
    let visits = tested.case("t")["topic_visits"].as_array().unwrap();
    let check = &visits[0]["assertions"][0];
    assert_eq!((&check["soft"], &check["passed"]), (&json!(true), &json!(false)));
    assert_eq!(judge.requests().len(), 1, "once for each visit");
    let asked = judge.requests()[0].last_user_text();
    assert!(asked.contains("Welcome the user") && !asked.contains("Blue Room"), "{asked}");

    for (topic, words) in [
        ("{ evaluate_intent: true, characteristic: A }", "`evaluate_intent` needs an `agent_intent`"),
        ("{ characteristic: A, evaluate: { type: satisfy, criteria: polit } }", "polit"),
    ] {
        let stderr = rejection_output(&format!(
            "name: t\ncriteria: {{ polite: Is polite }}\ngraph: {{ a: {topic} }}\nturns: [{{ user: x }}]\n"
        ));
        assert!(stderr.contains(words) && stderr.contains("a.test.yaml:3:"), "{words}: {stderr}");
    }
}

#[test]
fn undecided_soft_topic_check_does_not_end_case() {
    let (agent, judge) = (booking_agent(), FakeAgent::with_text("I would rather not say."));
    let suite = "
name: t
classify_topics: triggers
decide_topics: always
graph:
  a: { next: b, characteristic: A, evaluate: { type: satisfy, criteria: It is polite } }
  b: { triggers: { on_user_match: Blue } }
turns: [{ user: Hello }, { user: The Blue Room }]
";
    let tested = run_suite(&agent, Some(&judge), suite);
    tested.assert_all_passed();
    let check = &tested.case("t")["topic_visits"][0]["assertions"][0];
    assert!(check["passed"] == false && check["error"].is_string(), "{check}");
    let hard = suite.replace("evaluate:", "assert:");
    let tested = run_suite(&agent, Some(&judge), &hard);
    assert_eq!(tested.failure("t")["kind"], "judge_error");
}

#[test]
fn html_report_shows_topic_graph_and_path() {
    let (agent, judge) = (booking_agent(), topic_judge());
    let suite = BOOKING.replace("greeting", "a</script><script>alert(1)");
    let suite = suite.replace("a</script><script>alert(1): ", "'a</script><script>alert(1)': ");
    let project = project(&agent, Some(&judge)).suite("a", &suite);
    let output = project.hotseat(&["test", "-o", "out.html"]);
    assert!(output.code < 2, "{output}");
    let page = project.workspace.read("out.html");
    assert!(page.contains("class=\\\"topic visited"), "the graph is there");
    assert!(!page.contains("<script>alert(1)"), "and nothing in it is read as HTML");
}

#[test]
fn topic_assertions_count_as_assertions() {
    let agent = booking_agent();
    let suite = |more: &str| {
        format!(
            "name: t\nclassify_topics: triggers\n{more}graph: {{ a: {{ assert: {{ type: contains, value: Hello }} }} }}\nturns: [{{ user: x }}]\n"
        )
    };
    let output = project(&agent, None).suite("a", &suite("decide_topics: always\n")).hotseat(&["test"]);
    assert!(
        output.code == 0
            && !output.stderr.contains("asserts nothing")
            && !output.stdout.contains("asserts nothing"),
        "{output}"
    );
    let output = project(&agent, None).suite("a", &suite("")).hotseat(&["test"]);
    let said = output.stdout.clone() + &output.stderr;
    assert!(
        said.contains("the assertions of these topics are not checked") && said.contains("asserts nothing"),
        "{output}"
    );
    let many: Vec<String> =
        (0..7).map(|number| suite("").replacen("name: t", &format!("name: t{number}"), 1)).collect();
    let many = many.join("---\n");
    let output = project(&agent, None).suite("a", &many).hotseat(&["test"]);
    let said = output.stdout.clone() + &output.stderr;
    assert!(said.contains("not checked: 7 cases have no simulated user"), "{output}");
    assert_eq!(said.matches("the assertions of these topics").count(), 1, "{output}");
}

#[test]
fn rejects_criterion_with_unknown_topic() {
    let suite = |name: &str, graph: &str| {
        format!(
            "name: t
criteria: {{ booked: {{ match: {{ type: reached_topic, name: {name} }} }} }}
topics: {{ greeting: {{ characteristic: G }}, booking: {{ triggers: {{ on_tool_call: book_room }} }} }}
{graph}
turns: [{{ user: Hello }}]
final_assertions: {{ type: satisfy, criteria: booked, negate: true }}
"
        )
    };
    let graph = "graph: { greeting: booking, booking: }\nclassify_topics: triggers";
    run_suite(&booking_agent(), None, &suite("booking", graph)).assert_all_passed();
    let words = rejection_output(&suite("boking", graph));
    assert!(
        words.contains("unknown topic `boking`: it is not in the graph") && words.contains("a.test.yaml:2:"),
        "{words}"
    );
    assert!(words.contains("did you mean `booking`?"), "{words}");
    let words = rejection_output(&suite("booking", "").replace("topics:", "metadata:"));
    assert!(words.contains("topics need a `graph`, but none is defined"), "{words}");
}

/// No turn is in a topic that the graph does not name, so its assertions would be lost.
#[test]
fn a_topic_that_the_graph_does_not_name_is_rejected() {
    let suite = "name: a\nturns: [{ user: hi }]\ntopics:\n  greeting: { characteristic: hello }\n  Booking: { characteristic: books, assert: { text: { must_match: zzz } } }\n  booking: { characteristic: books }\ngraph: { greeting: booking, booking: greeting }\n";
    Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\n")
        .suite("a", suite)
        .hotseat(&["test"])
        .assert_stderr(
            2,
            &["no topic of the graph is named `Booking`", "a.test.yaml:5:3", "did you mean `booking`?"],
        );
}
