//! Simulated users and judges: their input, interpretation of their answers, and results.

use std::sync::atomic::{AtomicUsize, Ordering};

use hotseat_testkit::agui::RunAgentInput;
use hotseat_testkit::completions::text_reply;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::{Project, unreachable_address};

/// A sales agent that asks for details and finally confirms.
fn sales_agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let said = request.last_user_text().to_lowercase();
        match said {
            said if said.contains("confirm") => run
                .tool("c9", "create_expense", &json!({"amount": 250}), Some(json!({"status": "submitted"})))
                .text("Expense submitted. Reference: EXP-001")
                .finished(),
            said if said.contains("250") => run.text("I will create it. Please confirm.").finished(),
            said if said.contains("thanks") => run.text("Good bye.").finished(),
            _ => run.text("What type of expense is it?").finished(),
        }
    })
}

#[test]
fn a_misspelt_role_is_one_error_where_it_is_set() {
    let connectors = "connectors: { fast: { type: openai, model: m, api_key: k } }\n";
    let judged = |name: &str| {
        format!(
            "name: {name}\nturns: [{{ user: hi }}]\nassert: [{{ type: satisfy, criteria: one sentence }}, {{ type: satisfy, criteria: another sentence }}]\n"
        )
    };
    let cases = format!("{}---\n{}", judged("a"), judged("b"));
    let simulated =
        "name: a\nsimulator: { metadata: { goal: g } }\n---\nname: b\nsimulator: { metadata: { goal: g } }\n";
    for (settings, cases, place) in [
        ("judge: connectors:fsat\n", cases.clone(), "hotseat.yaml:3:8"),
        ("", format!("suite: {{ judge: 'connectors:fsat' }}\n---\n{cases}"), "a.test.yaml:1:17"),
        ("judge: { connector: fsat }\n", cases, "hotseat.yaml:3:21"),
        ("simulator: connectors:fsat\n", simulated.to_string(), "hotseat.yaml:3:12"),
    ] {
        let config = format!("target: {{ endpoint: '{}' }}\n{connectors}{settings}", unreachable_address());
        let project = Project::with_config(&config).suite("a", &cases);
        let output = project.hotseat(&["test", "--dry-run"]);
        output.assert_stderr(2, &[place]);
        assert!(output.stderr.contains("unknown connector `fsat`"), "{output}");
        assert_eq!(output.stderr.matches("error: ").count(), 1, "{output}");
    }
}

/// A simulated user that sends these messages in order.
fn simulated_user(script: &'static [&'static str]) -> FakeAgent {
    FakeAgent::with_run(move |run, request| {
        let told = request.last_user_json();
        let turn = usize::try_from(told["turn_number"].as_u64().unwrap()).unwrap();
        // If the first turn is written, the user starts with the second.
        let first = usize::try_from(told["first"].as_u64().unwrap_or(1)).unwrap();
        run.text(script.get(turn - first).copied().unwrap_or(r#"{"goal_achieved": true}"#)).finished()
    })
}

/// Input of a role in each request.
fn received_inputs(helper: &FakeAgent) -> Vec<Value> {
    helper.requests().iter().map(FakeRequest::last_user_json).collect()
}

fn project(target: &FakeAgent, helpers: &[(&str, &FakeAgent)]) -> Project {
    let mut text = format!("target: {{ endpoint: '{target}' }}\nagents:\n");
    for (name, agent) in helpers {
        text.push_str(&format!("  {name}: {{ endpoint: '{agent}' }}\n"));
    }
    Project::with_config(&text)
}

const DONE: &[&str] = &[
    r#"{"input": "Client dinner, $250", "goal_achieved": false, "reasoning": "says what it is"}"#,
    "Confirm",
];

fn dynamic_case() -> Value {
    json!({
        "id": "T004",
        "name": "Expense Submission Coverage",
        "simulator": {
            "use": "workers.test.user-simulator",
            "options": {"metadata": {"persona": "New employee", "goal": "Submit a $250 expense"}}
        },
        "checkpoints": [
            {"id": "ask_type", "description": "Agent asks for a confirmation", "assertion": {"type": "contains", "value": "confirm"}},
            {"id": "call_create", "after": ["ask_type"], "assertion": {"type": "tool_called", "name": "create_expense"}},
            {"id": "confirm", "after": ["call_create"], "assertion": {"type": "contains", "value": "submitted"}}
        ],
        "max_turns": 10,
        "timeout": "2m"
    })
}

#[test]
fn dynamic_case_runs_until_checkpoints_are_reached() {
    let (agent, user) = (sales_agent(), simulated_user(DONE));
    let tested =
        project(&agent, &[("workers.test.user-simulator", &user)]).cases(&[dynamic_case()]).test(&[]);
    tested.assert_all_passed();
    let case = tested.case("Expense Submission Coverage");
    let reached: Vec<(&str, u64)> = case["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|checkpoint| {
            (checkpoint["id"].as_str().unwrap(), checkpoint["reached_at_turn"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(reached, [("ask_type", 1), ("call_create", 2), ("confirm", 2)]);
    assert_eq!(case["total_turns"], 2);
    let said: Vec<&Value> = case["turns"].as_array().unwrap().iter().map(|turn| &turn["input"]).collect();
    assert_eq!(said, ["Client dinner, $250", "Confirm"]);
    // No request is made after all checkpoints are reached.
    assert_eq!((user.requests().len(), agent.requests().len()), (2, 2));
    let threads: Vec<Value> = agent.requests().iter().map(|r| r.json()["threadId"].clone()).collect();
    assert_eq!(threads[0], threads[1], "one conversation");
}

#[test]
fn simulated_user_receives_full_context() {
    let (agent, user) = (sales_agent(), simulated_user(DONE));
    project(&agent, &[("workers.test.user-simulator", &user)])
        .cases(&[dynamic_case()])
        .test(&[])
        .assert_all_passed();
    let told = received_inputs(&user);
    let first = &told[0];
    for (key, value) in [
        ("test_mode", json!("simulator")),
        ("test_id", json!("T004")),
        ("persona", json!("New employee")),
        ("goal", json!("Submit a $250 expense")),
        ("turn_number", json!(1)),
        ("max_turns", json!(10)),
        ("last_response", json!("")),
        ("conversation", json!([])),
        ("tool_results", json!({})),
        ("checkpoints_pending", json!(["ask_type", "call_create", "confirm"])),
        ("checkpoints_reached", json!([])),
    ] {
        assert_eq!(first[key], value, "{key}: {first:#}");
    }
    let second = &told[1];
    assert_eq!(second["turn_number"], 2);
    assert_eq!(second["last_response"], "I will create it. Please confirm.");
    assert_eq!(second["checkpoints_reached"], json!(["ask_type"]));
    assert_eq!(
        second["conversation"],
        json!([
            {"role": "user", "content": "Client dinner, $250"},
            {"role": "assistant", "content": "I will create it. Please confirm."}
        ])
    );
    // Each question is a separate conversation.
    let threads: Vec<Value> = user.requests().iter().map(|r| r.json()["threadId"].clone()).collect();
    assert_ne!(threads[0], threads[1]);
    assert_eq!(RunAgentInput::from_request(&user.requests()[1]).unwrap().messages().len(), 1);
}

/// The hybrid sample: two written turns, then simulated ones.
#[test]
fn written_turns_precede_simulated_ones() {
    let agent = sales_agent();
    let user = simulated_user(&[
        r#"{"message": "It was $250"}"#,
        "Please confirm it",
        r#"{"input": "", "goal_achieved": true}"#,
    ]);
    let case = json!({
        "id": "hybrid",
        "turns": [{"input": "Start expense report"}, {"input": "Travel expense"}],
        "simulator": {"use": "agents:workers.test.user-sim", "metadata": {"goal": "Complete the submission", "first": 3}},
        "final_assertions": [{"type": "tool_called", "name": "create_expense"}, {"type": "contains", "value": "submitted"}]
    });
    let tested = project(&agent, &[("workers.test.user-sim", &user)]).cases(&[case]).test(&[]);
    tested.assert_all_passed();
    let turns = tested.case("hybrid")["turns"].as_array().unwrap();
    let sources: Vec<&str> = turns.iter().map(|turn| turn["input_source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["static", "static", "simulated", "simulated"]);
    // The agent does not wait after submitting, so the simulated user is not asked.
    assert_eq!(user.requests().len(), 2);
}

#[test]
fn simulated_user_is_asked_only_if_agent_waits() {
    let (agent, user) = (sales_agent(), simulated_user(&["never said"]));
    let case = json!({"id": "done", "turns": [{"input": "thanks"}], "simulator": {"use": "u"}});
    project(&agent, &[("u", &user)]).cases(&[case]).test(&[]).assert_all_passed();
    assert_eq!(user.requests().len(), 0);
}

#[test]
fn achieved_goal_ends_conversation() {
    let agent = sales_agent();
    let user = simulated_user(&[
        "250 it is",
        r#"{"input": "Bye, thanks", "goal_achieved": true, "reasoning": "it asked"}"#,
    ]);
    let goes_on = |id: &str, more: Value| {
        let mut case = json!({"id": id, "simulator": {"use": "u"}});
        case.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        case
    };
    let asserted = |value: &str| json!({"final_assertions": [{"type": "contains", "value": value}]});
    let checkpoint = |value: &str| json!({"checkpoints": [{"id": "said", "assertion": {"type": "contains", "value": value}}, {"id": "extra", "required": false, "assertion": {"type": "contains", "value": "nowhere"}}]});
    let tested = project(&agent, &[("u", &user)])
        .cases(&[
            goes_on("holds", asserted("confirm")),
            goes_on("does not hold", asserted("submitted")),
            goes_on("reached", checkpoint("confirm")),
            goes_on("missing", checkpoint("submitted")),
            goes_on("no checkpoints", json!({"checkpoints": []})),
        ])
        .test(&[]);
    for (name, status, turns, error) in [
        ("holds", "passed", 1, Value::Null),
        ("does not hold", "failed", 1, json!("assertion")),
        ("reached", "passed", 1, Value::Null),
        ("missing", "failed", 1, json!("missing_checkpoints")),
        ("no checkpoints", "passed", 1, Value::Null),
    ] {
        let case = tested.case(name);
        assert_eq!(
            (&case["status"], &case["total_turns"]),
            (&json!(status), &json!(turns)),
            "{name}: {case:#}"
        );
        assert_eq!(case["error_kind"], error, "{name}");
    }
    assert_eq!(tested.case("missing")["error"], "missing checkpoints: said");
    // Its message is not sent.
    assert!(agent.requests().iter().all(|request| !request.last_user_text().contains("Bye")));
}

#[test]
fn conversation_ends_at_turn_limit() {
    let agent = FakeAgent::with_text("And then?");
    let user = FakeAgent::with_text("More");
    let pending = json!([{"id": "end", "assertion": {"type": "contains", "value": "The end"}}]);
    let tested = project(&agent, &[("u", &user)]).cases(&[
        json!({"id": "own", "simulator": {"use": "u"}, "max_turns": 3}),
        json!({"id": "told", "simulator": {"use": "u", "options": {"metadata": {"max_turns": 2}}}}),
        json!({"id": "own wins", "simulator": {"use": "u", "metadata": {"max_turns": 2}}, "max_turns": 4}),
        json!({"id": "usual", "simulator": {"use": "u"}, "input": "Go"}),
        json!({"id": "dynamic", "simulator": {"use": "u"}, "max_turns": 2, "checkpoints": pending}),
    ]).test(&[]);
    for (name, turns, error) in [
        ("own", 3, "max turns (3) exceeded"),
        ("told", 2, "max turns (2) exceeded"),
        ("own wins", 4, "max turns (4) exceeded"),
        ("usual", 20, "max turns (20) exceeded"),
        ("dynamic", 2, "max turns (2) exceeded; missing checkpoints: end"),
    ] {
        let case = tested.case(name);
        assert_eq!((&case["error"], &case["total_turns"]), (&json!(error), &json!(turns)), "{name}");
        assert_eq!(case["error_kind"], "max_turns");
    }
}

#[test]
fn failing_simulated_user_is_not_agent_failure() {
    let agent = sales_agent();
    let broken = FakeAgent::with_text(r#"{"answer": "?"}"#);
    let empty = FakeAgent::with_text(r#"{"input": " ", "goal_achieved": false}"#);
    let failing = FakeAgent::start(|_: &FakeRequest| FakeReply::text(500, "out of order"));
    let gone = unreachable_address();
    let project = project(&agent, &[("broken", &broken), ("empty", &empty), ("failing", &failing)]);
    project.workspace.file(
        "hotseat.yaml",
        &format!("{}  gone: {{ endpoint: '{gone}' }}\n", project.workspace.read("hotseat.yaml")),
    );
    let case = |id: &str, who: &str, more: Value| {
        let mut case = json!({"id": id, "turns": [{"input": "Help me"}], "simulator": {"use": who}});
        case.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        case
    };
    let dynamic =
        json!({"checkpoints": [{"id": "x", "assertion": {"type": "contains", "value": "nowhere"}}]});
    let tested = project
        .cases(&[
            case("multi", "broken", json!({})),
            case("multi fails", "empty", json!({"on_missing_input": "fail"})),
            case("dynamic", "failing", dynamic.clone()),
            case("nobody", "gone", dynamic.clone()),
            json!({"id": "first", "simulator": {"use": "broken"}, "checkpoints": dynamic["checkpoints"]}),
        ])
        .test(&[]);
    let multi = tested.case("multi");
    assert_eq!(multi["status"], "skipped");
    assert!(multi["skip_reason"].as_str().unwrap().starts_with("simulator error: "), "{multi:#}");
    for (name, words) in [
        ("multi fails", "simulator error: the answer has neither a message nor `goal_achieved: true`"),
        ("dynamic", "simulator error: "),
        ("nobody", "simulator error: "),
        ("first", "simulator error: the answer has neither `input` nor `goal_achieved`"),
    ] {
        let case = tested.case(name);
        assert_eq!(
            (&case["status"], &case["error_kind"]),
            (&json!("failed"), &json!("simulator_error")),
            "{name}"
        );
        assert_eq!(case["failure"]["fault"], "simulator", "{name}");
        assert!(case["error"].as_str().unwrap().starts_with(words), "{name}: {}", case["error"]);
    }
}

/// A simulated user that fails on its first question and has reached its goal on every other one.
fn recovering_user() -> FakeAgent {
    let asked = AtomicUsize::new(0);
    FakeAgent::with_run(move |run, _| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => FakeReply::text(500, "out of order"),
        _ => run.text(r#"{"goal_achieved": true}"#).finished().into(),
    })
}

#[test]
fn skip_by_failed_simulated_user_is_invalid_attempt() {
    let agent = sales_agent();
    let case = |more: Value| {
        let mut case = json!({"id": "a", "turns": [{"input": "Help me"}], "simulator": {"use": "u"}});
        case.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        case
    };
    let tested = |case: Value, args: &[&str]| {
        project(&agent, &[("u", &recovering_user())]).cases(&[case]).test(args).case("a").clone()
    };
    let repeated = tested(case(json!({})), &["--runs", "3", "--min-pass-rate", "1"]);
    let counts = ["runs", "passed", "skipped", "invalid", "redrawn"].map(|key| repeated[key].as_u64());
    assert_eq!(counts, [3, 3, 0, 1, 1].map(Some), "{repeated:#}");
    assert_eq!(repeated["status"], "passed");
    let retried = tested(case(json!({"retries": 1})), &[]);
    assert_eq!((&retried["status"], &retried["flaky"]), (&json!("passed"), &Value::Null), "{retried:#}");
    assert_eq!(retried["attempts"].as_array().map(Vec::len), Some(2));
    // Too few attempts are left if none is replaced.
    let missing = tested(case(json!({})), &["--runs", "3", "--min-pass-rate", "1", "--max-invalid", "0"]);
    assert_eq!((&missing["status"], &missing["error_kind"]), (&json!("failed"), &json!("simulator_error")));
}

/// The time limit of a case ends while the simulated user is awaited, so the agent is not at fault.
#[test]
fn unresponsive_simulated_user_ends_with_case() {
    let agent = sales_agent();
    let silent = FakeAgent::start(|_: &FakeRequest| FakeReply::never());
    let checkpoints = json!([{"id": "x", "assertion": {"type": "contains", "value": "nowhere"}}]);
    let case = json!({"id": "a", "simulator": {"use": "u"}, "timeout": "300ms", "checkpoints": checkpoints});
    let tested = project(&agent, &[("u", &silent)]).cases(&[case]).test(&[]);
    let case = tested.case("a");
    let words = "simulator error: no answer before the time limit of the case (300 ms) ended";
    assert_eq!((&case["error"], &case["error_kind"]), (&json!(words), &json!("simulator_error")));
    assert_eq!(case["failure"]["fault"], "simulator", "{case:#}");
    assert_eq!(agent.requests().len(), 0, "the agent was never contacted");
}

#[test]
fn default_simulator_applies_to_all_cases() {
    let (agent, first, second) = (sales_agent(), simulated_user(DONE), simulated_user(DONE));
    let without = json!({"id": "without", "simulator": {}, "checkpoints": dynamic_case()["checkpoints"]});
    let own =
        json!({"id": "own", "simulator": {"use": "second"}, "checkpoints": dynamic_case()["checkpoints"]});
    let project = || project(&agent, &[("first", &first), ("second", &second)]);
    project().cases(&[without.clone(), own]).test(&["--simulator", "first"]).assert_all_passed();
    assert_eq!((first.requests().len(), second.requests().len()), (2, 2));

    let text = |project: &Project| project.workspace.read("hotseat.yaml");
    let project_wide = project();
    project_wide
        .workspace
        .file("hotseat.yaml", &format!("{}simulator: agents:second\n", text(&project_wide)));
    project_wide.cases(std::slice::from_ref(&without)).test(&[]).assert_all_passed();
    assert_eq!(second.requests().len(), 4);

    let nobody = project().file("a.test.jsonl", &without.to_string());
    nobody.hotseat(&["test"]).assert_stderr(2, &["no simulated user is configured", "a.test.jsonl:1:"]);
    nobody.hotseat(&["test", "--simulator", "frist"]).assert_stderr(2, &["unknown agent `frist`", "`first`"]);
    assert_eq!(agent.requests().len(), 3 * 2, "no agent was contacted");
}

const MODEL: &str = r#"
name: a user
rules:
  - when: { turn: 1, system: "You play the user", user: '"goal":"dinner"' }
    reply: { json: { input: "It was $250", goal_achieved: false } }
  - when: { turn: 2 }
    reply: "Confirm"
"#;

#[test]
fn model_simulates_and_judges_with_builtin_prompts() {
    let agent = sales_agent();
    let judge = "name: a judge\nuse: always\nrules:\n  - when: { system: 'You judge', user: 'EXP-001' }\n    reply: { json: { passed: true, score: 0.9, reason: 'it names the reference' } }\n";
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nconnectors:\n  user: {{ type: scripted, script: user.yaml }}\n  judge: {{ type: scripted, script: judge.yaml }}\njudge: connectors:judge\n"
    ))
    .file("user.yaml", MODEL)
    .file("judge.yaml", judge);
    let case = json!({
        "id": "models",
        "simulator": {"use": "connectors:user", "metadata": {"goal": "dinner"}},
        "final_assertions": [{"type": "agent", "criteria": "names a reference"}]
    });
    let tested = project.cases(&[case]).test(&[]);
    tested.assert_all_passed();
    let check = &tested.case("models")["final_assertions"][0];
    assert_eq!(check["actual"], "the judge agrees (score 0.9): it names the reference");
}

/// A model has the conversation as the messages before its question, with calls of tools in words.
#[test]
fn model_simulates_from_a_transcript() {
    let agent = FakeAgent::with_run(|run, request| {
        match &*request.last_user_text() {
            "A room" => run
                .tool("c", "find_rooms", &json!({"day": "Monday"}), Some(json!("two")))
                .text("Blue or red?"),
            other => run.text(&format!("Booked: {other}.")),
        }
        .finished()
    });
    let model = FakeAgent::start(|_: &FakeRequest| text_reply(r#"{"input": "Blue"}"#));
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nconnectors: {{ user: {{ type: openai, base_url: '{model}v1', model: m, stream: false }} }}\n"
    ));
    let case = json!({
        "id": "a",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "turns": [{"user": "A room"}],
        "simulator": {"use": "connectors:user", "style": "transcript", "metadata": {"goal": "a blue room"}},
        "checkpoints": [{"id": "booked", "assertion": {"type": "contains", "value": "Booked: Blue"}}],
    });
    project.cases(&[case]).test(&[]).assert_all_passed();
    let asked = model.requests()[0].json();
    let messages = asked["messages"].as_array().expect("messages");
    let told: Vec<String> =
        messages[1..].iter().map(|said| format!("{} {}", said["role"], said["content"])).collect();
    assert_eq!(
        told[..told.len() - 1],
        [
            r#""user" "Be brief.""#,
            r#""user" "Hello""#,
            r#""user" "A room""#,
            r#""user" "The agent called the tool `find_rooms` with {\"day\":\"Monday\"}""#,
            r#""user" "The tool `find_rooms` returned two""#,
            r#""assistant" "Blue or red?""#,
        ],
        "{asked:#}"
    );
    assert!(
        told.last()
            .is_some_and(|question| question.contains("a blue room") && !question.contains("conversation")),
        "{told:#?}"
    );
}

#[test]
fn judge_receives_context_and_decides() {
    let agent = sales_agent();
    let (kind, strict) = (
        FakeAgent::with_text(r#"{"passed": true, "score": 0.95, "reason": "helpful", "suggestions": []}"#),
        FakeAgent::with_text("```json\n{\"passed\": false, \"reason\": \"rude\"}\n```"),
    );
    let judged = |judge: &str, more: Value| {
        let mut check = json!({"type": "agent", "use": judge, "options": {"metadata": {"criteria": "be polite", "tone": "friendly"}}});
        check.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        check
    };
    let tested = project(&agent, &[("kind", &kind), ("strict", &strict)]).cases(&[
        json!({"id": "agrees", "input": "confirm it", "assertions": [judged("agents:kind", json!({}))]}),
        json!({"id": "does not", "input": "confirm it", "assertions": [judged("agents:strict", json!({}))]}),
        json!({"id": "negated", "input": "confirm it", "assertions": [judged("agents:strict", json!({"negate": true}))]}),
        json!({"id": "measured", "input": "confirm it", "evaluate": [judged("strict", json!({}))]}),
        json!({"id": "message", "input": "confirm it", "assertions": [judged("strict", json!({"message": "It was rude."}))]}),
    ]).test(&["--parallel", "1"]);
    for (name, status) in [
        ("agrees", "passed"),
        ("does not", "failed"),
        ("negated", "passed"),
        ("measured", "passed"),
        ("message", "failed"),
    ] {
        assert_eq!(tested.case(name)["status"], status, "{name}: {:#}", tested.case(name));
    }
    assert_eq!(tested.case("does not")["error_kind"], "assertion");
    assert_eq!(tested.case("does not")["assertions"][0]["actual"], "the judge does not agree: rude");
    assert_eq!(tested.case("message")["error"], "It was rude.");
    let told = &received_inputs(&kind)[0];
    for (key, value) in [
        ("test_mode", json!("validator")),
        ("test_id", json!("agrees")),
        ("criteria", json!("be polite")),
        ("tone", json!("friendly")),
        ("input", json!("confirm it")),
        ("output", json!("Expense submitted. Reference: EXP-001")),
        (
            "tool_calls",
            json!([{"name": "create_expense", "arguments": {"amount": 250}, "result": {"status": "submitted"}, "error": null}]),
        ),
    ] {
        assert_eq!(told[key], value, "{key}: {told:#}");
    }
    let roles: Vec<&Value> =
        told["conversation"].as_array().unwrap().iter().map(|said| &said["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
}

#[test]
fn invalid_judge_answer_is_judge_error() {
    let agent = sales_agent();
    let judges = [
        ("prose", FakeAgent::with_text("It is fine, passed.")),
        ("silent", FakeAgent::with_text(r#"{"score": 1}"#)),
        ("texts", FakeAgent::with_text(r#"{"passed": "true"}"#)),
        ("contradictory", FakeAgent::with_text(r#"{"passed": true, "pass": false}"#)),
        ("failing", FakeAgent::start(|_: &FakeRequest| FakeReply::text(500, "out of order"))),
    ];
    let helpers: Vec<(&str, &FakeAgent)> = judges.iter().map(|(name, agent)| (*name, agent)).collect();
    let mut cases = Vec::new();
    for (name, _) in &judges {
        for negate in [false, true] {
            let check = json!({"type": "agent", "use": name, "criteria": "x", "negate": negate});
            cases.push(json!({"id": format!("{name} {negate}"), "input": "confirm", "assertions": [check]}));
        }
    }
    let measured = json!({"type": "agent", "use": "prose", "criteria": "x"});
    cases.push(json!({"id": "measured", "input": "confirm", "evaluate": [measured]}));
    let both =
        json!([{"type": "agent", "use": "prose", "criteria": "x"}, {"type": "contains", "value": "nowhere"}]);
    cases.push(json!({"id": "both", "input": "confirm", "assertions": both}));
    let checkpoint =
        json!([{"id": "polite", "assertion": {"type": "agent", "use": "silent", "criteria": "x"}}]);
    cases.push(json!({"id": "checkpoint", "input": "confirm", "checkpoints": checkpoint}));
    let tested = project(&agent, &helpers).cases(&cases).test(&[]);
    for (name, words) in [
        ("prose", "judge error: invalid response format"),
        ("silent", "judge error: validator response missing 'passed' field: the answer was"),
        (
            "texts",
            "judge error: invalid response format: the judge's `passed` is \"true\", but must be true or false",
        ),
        (
            "contradictory",
            "judge error: invalid response format: the answer contradicts itself: `passed` is true, and `pass` is false",
        ),
        ("failing", "judge error: "),
    ] {
        for negate in [false, true] {
            let case = tested.case(&format!("{name} {negate}"));
            assert_eq!(
                (&case["status"], &case["error_kind"]),
                (&json!("failed"), &json!("judge_error")),
                "{case:#}"
            );
            assert_eq!(case["failure"]["fault"], "judge");
            let error = case["error"].as_str().unwrap();
            assert!(error.starts_with(words), "{error}");
            if error.contains("missing 'passed' field") {
                let next = format!(
                    "the judge `agents:{name}` must answer with one JSON object that has `passed`: true or false"
                );
                assert!(error.contains(&next), "{error}");
            }
            assert!(case["assertions"][0]["error"].is_string(), "{case:#}");
        }
    }
    assert_eq!(tested.case("measured")["status"], "passed");
    // A failed check is a statement about the agent, even if another judge fails.
    assert_eq!(tested.case("both")["error_kind"], "assertion");
    let error = tested.case("checkpoint")["error"].as_str().unwrap().to_string();
    assert!(
        error.starts_with("checkpoint polite failed: validator response missing 'passed' field"),
        "{error}"
    );
}

#[test]
fn waiting_checkpoint_asks_no_judge() {
    let agent = sales_agent();
    let judge = FakeAgent::with_text(r#"{"passed": true}"#);
    let case = json!({
        "id": "order",
        "turns": [{"input": "Help"}, {"input": "250"}],
        "checkpoints": [
            {"id": "second", "after": ["first"], "assertion": {"type": "agent", "use": "j", "criteria": "x"}},
            {"id": "first", "assertion": {"type": "contains", "value": "confirm"}}
        ]
    });
    let tested = project(&agent, &[("j", &judge)]).cases(&[case]).test(&[]);
    tested.assert_all_passed();
    assert_eq!(judge.requests().len(), 1, "only in the turn in which it could be reached");
}

#[test]
fn role_agents_are_started_like_targets() {
    let agent = sales_agent();
    let asked = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let user = FakeAgent::with_run(move |run, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        run.text("250, and confirm").finished()
    });
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nagents:\n  u:\n    endpoint: '{user}'\n    headers: {{ authorization: 'Bearer ${{ENV.USER_TOKEN}}' }}\n"
    ));
    let case = json!({"id": "a", "simulator": {"use": "u"}, "checkpoints": [{"id": "x", "assertion": {"type": "contains", "value": "submitted"}}]});
    let project = project.file("a.test.jsonl", &case.to_string());
    project.hotseat(&["test"]).assert_stderr(2, &["USER_TOKEN"]);
    project.test_in(&[("USER_TOKEN", "very-secret-token")], &[]).assert_all_passed();
    assert_eq!(user.requests()[0].header("authorization"), Some("Bearer very-secret-token"));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}
