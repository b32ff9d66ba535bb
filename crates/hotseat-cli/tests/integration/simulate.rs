//! Simulated users with a brief: their input, stop conditions, recorded data, and invalid behaviour.

use std::sync::atomic::{AtomicUsize, Ordering};

use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::{Project, TestRun};

/// An agent that finds and books a venue.
fn agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| match request.last_user_text().to_lowercase() {
        said if said.contains("stuttgart") => run
            .tool("c1", "search", &json!({"city": "Stuttgart"}), Some(json!([{"name": "Liederhalle"}])))
            .text("I have found the Liederhalle.")
            .finished(),
        said if said.contains("book") => run
            .tool("c2", "book_venue", &json!({"name": "Liederhalle"}), Some(json!({"ok": true})))
            .text("Booked.")
            .finished(),
        said => run.text(&format!("What do you need? You said {}", said.len())).finished(),
    })
}

/// A simulated user that sends the requested messages in order.
fn simulated_user(script: &'static [&'static str]) -> FakeAgent {
    FakeAgent::with_run(move |run, request| {
        let told = request.last_user_json();
        let turn = usize::try_from(told["turn_number"].as_u64().unwrap()).unwrap();
        let said = script.get(turn - 1).copied().unwrap_or("And then?");
        let answer = match said.strip_prefix("DONE ") {
            Some(progress) => {
                json!({"message": "", "done": true, "goal_progress": progress, "reason": "that is all"})
            }
            None if said.starts_with('{') => serde_json::from_str(said).unwrap(),
            None => json!({"message": said, "done": false, "goal_progress": "partial", "reason": "r"}),
        };
        run.text(&answer.to_string()).finished()
    })
}

fn project(agent: &FakeAgent, user: &FakeAgent) -> Project {
    Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nagents:\n  user: {{ endpoint: '{user}' }}\nsimulator: agents:user\n"
    ))
}

fn run_suite(agent: &FakeAgent, user: &FakeAgent, suite: &str) -> TestRun {
    project(agent, user).suite("a", suite).test(&[])
}

fn received_inputs(helper: &FakeAgent) -> Vec<Value> {
    helper.requests().iter().map(FakeRequest::last_user_json).collect()
}

const GOAL: &str = "name: s\nsimulate:\n  goal: Find a venue in Stuttgart\n";

#[test]
fn user_description_is_merged_from_project_to_topic() {
    let agent = agent();
    let user = simulated_user(&["Hello", "In Stuttgart", "Book it", "DONE achieved"]);
    let project = project(&agent, &user);
    let head = project.workspace.read("hotseat.yaml");
    let shared = "
simulate:
  role: Of the project
  personality: [Professional]
  context: Of the project
  should: be brief
  max_turns: 3
";
    project.workspace.file("hotseat.yaml", &format!("{head}{shared}"));
    let tested = project
        .suite(
            "a",
            "
suite:
  simulate:
    personality: [Values efficiency]
    context: [Based in Stuttgart]
    should_not: engage in small talk
    max_turns: 10
---
name: s
classify_topics: triggers
graph:
  start: { next: found, characteristic: S }
  found: { triggers: { on_tool_call: search } }
simulate:
  goal: Find a venue
  role: Planner
  context: [Budget 30000]
  should: [confirm everything]
  during_topic:
    found: { personality: Impatient, should: double-check every detail }
",
        )
        .test(&[]);
    tested.assert_all_passed();
    let told = received_inputs(&user);
    let first = &told[0];
    assert_eq!(first["goal"], "Find a venue");
    assert_eq!(first["role"], "Planner");
    assert_eq!(first["personality"], json!(["Professional", "Values efficiency"]));
    assert_eq!(first["context"], json!(["Based in Stuttgart", "Budget 30000"]));
    assert_eq!(first["should"], json!(["be brief", "confirm everything"]));
    assert_eq!(first["should_not"], json!(["engage in small talk"]));
    assert_eq!(first["max_turns"], 10);
    // Topic settings apply while the conversation is in the topic, here after the second turn.
    assert_eq!(told[1]["personality"], json!(["Professional", "Values efficiency"]));
    assert_eq!(told[2]["personality"], "Impatient");
    assert_eq!(told[2]["should"], json!(["be brief", "confirm everything", "double-check every detail"]));
    let case = tested.case("s");
    let simulation = &case["simulations"][0];
    assert_eq!(simulation["goal"], "Find a venue");
    assert_eq!(
        (&simulation["termination"], &simulation["goal_progress"], &simulation["turns"]),
        (&json!("goal_reached"), &json!("achieved"), &json!(3))
    );
    assert_eq!(case["completion"]["termination"], "goal_reached");
    assert_eq!(case["turns"][0]["input_source"], "simulated");
}

#[test]
fn end_of_simulation_is_recorded() {
    for (script, brief, turns, reason) in [
        (
            &["Hello", "In Stuttgart", "Book it", "Thanks"][..],
            "  stop_when: { type: tool_called, name: book_venue }\n",
            3,
            "stop_condition",
        ),
        (&["Hello", "In Stuttgart", "Book it"][..], "  max_turns: 2\n", 2, "max_turns"),
        // In the same turn the limit takes precedence.
        (
            &["Hello", "Book it", "x"][..],
            "  max_turns: 2\n  stop_when: { type: tool_called, name: book_venue }\n",
            2,
            "max_turns",
        ),
        (&["Hello", "DONE achieved"][..], "", 1, "goal_reached"),
        (&["Hello", "DONE partial"][..], "", 1, "gave_up"),
        (
            &[
                "a b", "c d", "e f", "g h", "i j", "k l", "m n", "o p", "q r", "s t", "u v", "w x", "y z",
                "1", "2", "3", "4",
            ][..],
            "",
            15,
            "max_turns",
        ),
    ] {
        let (agent, user) = (
            agent(),
            FakeAgent::with_run(move |run, request| {
                let told = request.last_user_json();
                let turn = usize::try_from(told["turn_number"].as_u64().unwrap()).unwrap();
                let said = script[turn - 1];
                let answer = match said.strip_prefix("DONE ") {
                    Some(progress) => {
                        json!({"message": "", "done": true, "goal_progress": progress, "reason": "that is all"})
                    }
                    None => json!({"message": said, "done": false, "goal_progress": "none", "reason": "r"}),
                };
                run.text(&answer.to_string()).finished()
            }),
        );
        let tested = run_suite(&agent, &user, &format!("{GOAL}{brief}"));
        tested.assert_all_passed();
        assert_eq!(agent.requests().len(), turns, "{brief}{script:?}");
        let case = tested.case("s");
        assert_eq!(case["completion"]["termination"], reason, "{brief}");
        assert_eq!(case["simulations"][0]["turns"], turns, "{brief}");
    }
}

/// A conversation without any turn says nothing about the agent.
#[test]
fn simulation_without_input_fails() {
    let (agent, user) = (agent(), simulated_user(&["Hello"]));
    let tested = run_suite(
        &agent,
        &user,
        &format!("{GOAL}  max_turns: 0\nassert: {{ text: {{ must_not_match: x }} }}\n"),
    );
    tested.assert_failure("s", "no_input", &["no initial input", "the simulated user gave none"]);
    assert!(agent.requests().is_empty());
}

/// A user who is done before the first input says nothing about the agent either.
#[test]
fn user_that_is_done_before_the_first_input_is_an_error_of_the_simulator() {
    let (agent, user) = (agent(), simulated_user(&["DONE achieved"]));
    let tested = run_suite(&agent, &user, &format!("{GOAL}assert: {{ text: {{ must_not_match: x }} }}\n"));
    let words = "it reports its goal as achieved before its first input";
    tested.assert_failure("s", "simulator_error", &[words]);
    assert!(agent.requests().is_empty());
}

#[test]
fn script_function_can_end_simulation() {
    let (agent, user) = (agent(), simulated_user(&["Hello", "In Stuttgart", "Book it", "More"]));
    let project = project(&agent, &user).suite("a", &format!("{GOAL}  stop_when: scripts:stop.booked\n"));
    let project = project.file("src/stop.ts", "export const booked = (o: string, i: string, e: any, c: any) => c.tool_calls.some((t: any) => t.name === 'book_venue');");
    let tested = project.test(&[]);
    tested.assert_all_passed();
    assert_eq!(tested.case("s")["completion"]["termination"], "stop_condition");
    assert_eq!(agent.requests().len(), 3);
    let project = project.file("src/stop.ts", "export const booked = () => 'yes';");
    let tested = project.test(&[]);
    assert_eq!(
        tested.failure("s")["kind"],
        "script_error",
        "what says nothing of use stops nothing by accident"
    );
}

#[test]
fn turn_limit_fails_case_only_with_failed_hard_check() {
    let (agent, user) = (agent(), simulated_user(&["Hello", "I like venues", "Well"]));
    let suite =
        format!("{GOAL}  max_turns: 2\nfinal_assertions: {{ type: tool_called, name: book_venue }}\n");
    let tested = run_suite(&agent, &user, &suite);
    let failure = tested.assert_fault("s", "max_turns", "agent");
    assert!(failure["message"].as_str().unwrap().starts_with("max turns (2) reached; "), "{failure}");
    let completion = &tested.case("s")["completion"];
    assert_eq!(
        (&completion["failure_type"], &completion["turn_count"], &completion["state"]),
        (&json!("max_turns"), &json!(2), &json!("fail"))
    );
    // A conversation that ended otherwise fails by its check.
    let stopped = suite.replace("max_turns: 2", "stop_when: { type: contains, value: 'What' }");
    let tested = run_suite(&agent, &user, &stopped);
    assert_eq!(tested.case("s")["completion"]["failure_type"], "assertion");
}

/// Also in a test file, whose simulated user is that of a statement.
#[test]
fn reached_checkpoints_end_the_simulation() {
    let checkpoints = r#"[{"id": "booked", "assertion": {"type": "tool_called", "name": "book_venue"}}]"#;
    let yaml = format!("{GOAL}checkpoints: {checkpoints}\n");
    let script = format!(
        "import {{ it, user }} from 'hotseat';\nit('s', {{ checkpoints: {checkpoints} }}, () => {{ user.simulate({{ goal: 'Book a venue' }}); }});\n"
    );
    for (name, text) in [("a.test.yaml", yaml), ("a_test.ts", script)] {
        let (agent, user) = (agent(), simulated_user(&["Hello", "In Stuttgart", "Book it", "More"]));
        let tested = project(&agent, &user).file(name, &text).test(&[]);
        tested.assert_all_passed();
        assert_eq!(tested.case("s")["completion"]["termination"], "stop_condition", "{name}");
        assert_eq!(agent.requests().len(), 3, "{name}");
    }
}

#[test]
fn simulation_continues_after_written_turns() {
    let (agent, user) = (agent(), simulated_user(&["never", "In Stuttgart", "DONE achieved"]));
    let tested =
        run_suite(&agent, &user, &format!("{GOAL}  max_turns: 2\nturns: [{{ user: Good morning }}]\n"));
    tested.assert_all_passed();
    assert_eq!(agent.user_texts(), ["Good morning", "In Stuttgart"]);
    assert_eq!(tested.case("s")["simulations"][0]["first_turn"], 2);
}

#[test]
fn user_message_is_cleaned_and_never_empty() {
    let (agent, user) = (agent(), simulated_user(&["User: \"In Stuttgart\"", "DONE achieved"]));
    run_suite(&agent, &user, GOAL).assert_all_passed();
    assert_eq!(agent.user_texts(), ["In Stuttgart"]);
}

/// The party that is awaited when the time limit of the case ends is at fault, however long the other took.
#[test]
fn slow_simulated_user_is_at_fault_at_the_time_limit() {
    let yaml = format!("timeout: 600ms\n{GOAL}");
    let script = "import { it, user } from 'hotseat';\nit('s', { timeout: '600ms' }, () => { user.simulate({ goal: 'g' }); });\n";
    for (name, text) in [("a.test.yaml", yaml.as_str()), ("a_test.ts", script)] {
        let (agent, silent) = (agent(), FakeAgent::start(|_: &FakeRequest| FakeReply::never()));
        let tested = project(&agent, &silent).file(name, text).test(&["--runs", "2", "--max-invalid", "0"]);
        let failure = tested.assert_fault("s", "simulator_error", "simulator");
        let words = "no answer before the time limit of the case (600 ms) ended";
        assert!(failure["message"].as_str().unwrap().contains(words), "{name}: {failure}");
        assert_eq!(tested.case("s")["invalid"], 2, "{name}: {:#}", tested.case("s"));
        assert!(agent.requests().is_empty(), "{name}: the agent was never contacted");
    }
    let (user, silent) = (simulated_user(&["Hello"]), FakeAgent::start(|_: &FakeRequest| FakeReply::never()));
    let tested = run_suite(&silent, &user, &format!("timeout: 600ms\n{GOAL}"));
    tested.assert_fault("s", "timeout", "agent");
}

#[test]
fn unusable_user_message_is_retried_then_error() {
    for rubbish in [
        r#"{"message": " ", "done": false, "goal_progress": "none"}"#,
        r#"{"message": "\u200b", "done": false, "goal_progress": "none"}"#,
        r#"{"message": "\u2800\ufeff\u00ad", "done": false, "goal_progress": "none"}"#,
        r#"{"message": "x", "done": "no", "goal_progress": "none"}"#,
    ] {
        let (agent, user) = (agent(), FakeAgent::with_text(rubbish));
        let tested = run_suite(&agent, &user, GOAL);
        tested.assert_fault("s", "simulator_error", "simulator");
        assert_eq!((user.requests().len(), agent.requests().len()), (3, 0));
        assert_eq!(tested.case("s")["completion"]["termination"], "error");
        assert_eq!(tested.case("s")["completion"]["failure_type"], "error");
    }
}

#[test]
fn out_of_role_user_makes_attempt_invalid() {
    for (script, brief, words) in [
        (
            &["I need a big venue", "i need a BIG venue!", "I need a big venue", "I need a big venue"][..],
            "",
            "repeats itself",
        ),
        (&["I need a venue", "As an AI language model, I cannot attend events."][..], "", "left its role"),
        (&["I need a venue", "How can I help you today?"][..], "", "left its role"),
        (&["I need a venue", "Agent: here are three venues"][..], "", "left its role"),
        (&["I need a venue", "Sorry, I’m an AI assistant."][..], "", "left its role"),
        (&["I need a venue", "I’m just an AI, so I need none"][..], "", "left its role"),
        (
            &["I need a venue", "Our budget is 90,000 EUR"][..],
            "  never_says: '/budget.*90/i'\n",
            "it states a false fact",
        ),
    ] {
        let (agent, user) = (
            agent(),
            FakeAgent::with_run(move |run, request| {
                let told = request.last_user_json();
                let turn = usize::try_from(told["turn_number"].as_u64().unwrap()).unwrap();
                let answer = json!({"message": script[turn - 1], "done": false, "goal_progress": "none", "reason": "r"});
                run.text(&answer.to_string()).finished()
            }),
        );
        let suite = format!("{GOAL}{brief}final_assertions: {{ type: tool_called, name: book_venue }}\n");
        let tested = run_suite(&agent, &user, &suite);
        let failure = tested.assert_fault("s", "simulator_error", "simulator");
        assert!(failure["message"].as_str().unwrap().contains(words), "{words}: {failure}");
        assert_eq!(agent.requests().len(), script.len() - 1, "the invalid user message is not sent");
        // The message and everything before it are recorded.
        let case = tested.case("s");
        let kept =
            case["turns"].as_array().unwrap().iter().flat_map(|turn| turn["roles"].as_array().unwrap());
        assert!(
            kept.clone().any(|role| role["error"].as_str().is_some_and(|error| error.contains(words))),
            "{case:#}"
        );
        assert_eq!(case["total_turns"], script.len() - 1);
    }
    // It can be allowed.
    let (agent, user) = (agent(), simulated_user(&["I need a big venue"; 8]));
    run_suite(&agent, &user, &format!("{GOAL}  max_turns: 8\n  max_repeats: 0\n")).assert_all_passed();
}

#[test]
fn topics_are_judged_on_exit_and_can_stop_conversation() {
    let topics = "classify_topics: triggers\ngraph:\n  start: { next: found, characteristic: S, assert: { text: { must_match: Berlin } }, evaluate: { type: contains, value: never } }\n  found: { next: start, triggers: { on_tool_call: search } }\n";
    let (agent, user) = (agent(), simulated_user(&["Hello", "In Stuttgart", "Book it", "DONE achieved"]));
    let tested = run_suite(&agent, &user, &format!("{GOAL}{topics}"));
    let failure = tested.failure("s");
    assert_eq!(failure["kind"], "assertion");
    assert_eq!(agent.user_texts(), ["Hello", "In Stuttgart"], "no further message is sent");
    let case = tested.case("s");
    assert_eq!(case["completion"]["termination"], "error");
    let visit = &case["topic_visits"][0];
    assert_eq!(
        (&visit["topic"], &visit["visit"], &visit["turns"]),
        (&json!("start"), &json!(1), &json!([1]))
    );
    let checks: Vec<(bool, bool)> = visit["assertions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| (check["passed"] == true, check["soft"] == true))
        .collect();
    assert_eq!(checks, [(false, false), (false, true)]);
    // Continues on request.
    let user = unusable_user();
    let before = agent.requests().len();
    let tested = run_suite(&agent, &user, &format!("continue_on_failure: true\n{GOAL}{topics}"));
    tested.failure("s");
    assert_eq!(agent.requests().len() - before, 3);
}

fn unusable_user() -> FakeAgent {
    simulated_user(&["Hello", "In Stuttgart", "Book it", "DONE achieved"])
}

#[test]
fn each_topic_visit_is_judged_by_its_own_turns() {
    // The turn that leads to a topic belongs to it; returning starts a new visit.
    let topics = "
classify_topics: triggers
graph:
  start: { next: found, triggers: { on_user_match: again }, characteristic: S }
  found:
    next: start
    triggers: { on_tool_call: search }
    assert: { type: tool_called, name: search, count: { exact: 1 } }
    turn_evaluate: { type: contains, value: Liederhalle }
";
    let (agent, user) = (
        agent(),
        simulated_user(&[
            "Hello",
            "In Stuttgart",
            "Well",
            "again please",
            "In Stuttgart too",
            "DONE achieved",
        ]),
    );
    let tested = run_suite(&agent, &user, &format!("{GOAL}{topics}"));
    tested.assert_all_passed();
    let case = tested.case("s");
    assert_eq!(case["topic_history"], json!(["start", "found", "start", "found"]));
    let visits = case["topic_visits"].as_array().unwrap();
    assert_eq!((&visits[1]["visit"], &visits[1]["turns"]), (&json!(1), &json!([2, 3])));
    assert_eq!((&visits[3]["visit"], &visits[3]["turns"]), (&json!(2), &json!([5])));
    let every: Vec<(&Value, &Value)> = visits[1]["assertions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["soft"] == true)
        .map(|check| (&check["turn"], &check["passed"]))
        .collect();
    assert_eq!(every, [(&json!(2), &json!(true)), (&json!(3), &json!(false))]);
    // The checks are listed with the visit only.
    assert_eq!(case["assertions"], json!([]));
}

#[test]
fn rejects_brief_without_goal_or_with_shared_goal() {
    let (agent, user) = (agent(), simulated_user(&[]));
    for (suite, words) in [
        ("name: s\nsimulate: { role: Planner }\n", "`simulate` has no `goal`"),
        ("suite: { simulate: { goal: Find } }\n---\nname: s\nturns: [{ user: x }]\n", "unknown key `goal`"),
        (
            "suite: { simulate: { template: x.md } }\n---\nname: s\nturns: [{ user: x }]\n",
            "unknown key `template`",
        ),
        ("name: s\nsimulate: { goal: Find, rule: x }\n", "unknown key `rule`"),
        ("name: s\nsimulate: { goal: Find, should: [] }\n", "`should` must be"),
        ("name: s\nsimulate: { goal: Find, note: x }\n", "unknown key `note`"),
        (
            "name: s\nsimulate: { goal: Find }\nsimulator: { use: user }\n",
            "`simulate` and `simulator` both define the simulated user",
        ),
        (
            "name: s\nsimulate: { goal: Find, during_topic: { a: { should: x } } }\n",
            "topics need a `graph`, but none is defined",
        ),
        ("name: s\nsimulate: { goal: Find, stop_when: {} }\n", "this asserts nothing"),
        ("name: s\nsimulate: { goal: Find, template: nowhere.md }\n", "prompt file `nowhere.md` not found"),
        ("name: s\nsimulate: { goal: Find, never_says: '(' }\n", "does not compile"),
    ] {
        let output = project(&agent, &user).suite("a", suite).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{suite}\n{output}");
        assert!(output.stderr.contains(words), "{words}: {output}");
    }
    assert!(agent.requests().is_empty() && user.requests().is_empty());
}

/// A rate-limited model is not asked again before the requested time, and a replay does not wait.
#[test]
fn rate_limited_user_is_asked_again_after_the_pause() {
    for (kind, said) in [
        (
            "simulate: { goal: Find a venue in Stuttgart }",
            r#"{"message": "In Stuttgart", "done": false, "goal_progress": "none", "reason": "r"}"#,
        ),
        (
            "simulator: { use: connectors:user }\ncheckpoints: [{ id: found, assertion: { type: contains, value: Liederhalle } }]",
            "In Stuttgart",
        ),
    ] {
        let agent = agent();
        let asked = AtomicUsize::new(0);
        let user = FakeAgent::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
            0 => FakeReply::text(429, "too many").header("retry-after", "1"),
            _ => {
                let message = json!({"role": "assistant", "content": said});
                FakeReply::json(200, &json!({"choices": [{"message": message, "finish_reason": "stop"}]}))
            }
        });
        let project = Project::with_config(&format!(
            "target: {{ endpoint: '{agent}' }}\nconnectors:\n  user: {{ type: openai, base_url: '{user}', model: m, stream: false }}\nsimulator: connectors:user\n"
        ))
        .suite("a", &format!("name: s\n{kind}\nmax_turns: 1\n"));
        let tested = project.test(&["--record-cassettes", "cassettes"]);
        tested.assert_all_passed();
        let duration = |run: &TestRun| run.case("s")["turns"][0]["roles"][0]["duration_ms"].as_f64();
        assert_eq!(user.requests().len(), 2);
        assert!(duration(&tested) >= Some(1000.0), "{}", tested.case("s"));
        let replayed = project.test(&["--cassettes", "cassettes"]);
        replayed.assert_all_passed();
        assert!(replayed.case("s")["duration_ms"].as_f64() < Some(1000.0), "{}", replayed.case("s"));
        assert_eq!(user.requests().len(), 2);
    }
}

/// A server that asks for more time than there is, is asked once.
#[test]
fn rate_limit_of_a_user_beyond_the_time_limit_fails_at_once() {
    let (agent, user) =
        (agent(), FakeAgent::start(|_| FakeReply::text(429, "too many").header("retry-after", "900")));
    let tested = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nconnectors:\n  user: {{ type: openai, base_url: '{user}', model: m }}\nsimulator: connectors:user\n"
    ))
    .suite("a", GOAL)
    .test(&[]);
    tested.assert_failure("s", "simulator_error", &["429", "the next call may be made after 900000 ms"]);
    assert_eq!(user.requests().len(), 1);
}

#[test]
fn model_receives_full_prompt_and_answer_format() {
    let agent = agent();
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nconnectors:\n  user: {{ type: scripted, script: user.yaml }}\nsimulator: connectors:user\n"
    ));
    let project = project
        .file(
            "user.yaml",
            r#"
name: user
rules:
  - when: { turn: 1, system: 'You play the user', user: '"goal":"Find a venue in Stuttgart".*"role":"Planner"' }
    reply: { json: { reason: begins, goal_progress: none, done: false, message: In Stuttgart } }
  - when: { system: 'I am (?<who>\w+), turn 2 of 15' }
    reply: { json: { reason: done, goal_progress: achieved, done: true, message: "" } }
  - when: { turn: 2 }
    reply: { json: { reason: done, goal_progress: achieved, done: true, message: "" } }
  - when: { system: 'I am a planner' }
    reply: { json: { reason: begins, goal_progress: none, done: false, message: In Stuttgart } }
"#,
        )
        .suite("a", "name: s\nsimulate: { goal: Find a venue in Stuttgart, role: Planner }\n");
    project.test(&[]).assert_all_passed();
    // A prompt defined by the case.
    let project = project
        .file("own.md", "I am a planner.\n{{system}}\n{{rules}}\nSo far:\n{{conversation}}\nTurn {{turn}} of {{max_turns}}.")
        .suite("a", "name: s\nsimulate: { goal: Find, role: Planner, should: hurry, template: own.md }\n");
    let tested = project.test(&[]);
    tested.assert_all_passed();
    let project = project.file("own.md", "{{system}} {{topic}}");
    project.hotseat(&["test"]).assert_stderr(2, &["has the unknown placeholder `topic`"]);
}

#[test]
fn wrong_answer_format_is_an_error() {
    let agent = agent();
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nconnectors:\n  user: {{ type: scripted, script: user.yaml }}\nsimulator: connectors:user\n"
    ));
    let project = project
        .file("user.yaml", "name: user\nrules: [{ reply: 'I need a room' }]\n")
        .suite("a", "name: s\nsimulate: { goal: Find a venue }\n");
    let tested = project.test(&[]);
    assert_eq!(tested.failure("s")["kind"], "simulator_error");
    for (answer, words) in [
        ("{ reason: r, goal_progress: none, message: Hi }", "the answer has no `done`; "),
        ("{ reason: r }", "the answer has no `done`, `message`, `goal_progress`; "),
    ] {
        let rules = format!("name: user\nrules: [{{ reply: {{ json: {answer} }} }}]\n");
        project.workspace.file("user.yaml", &rules);
        let tested = project.test(&[]);
        tested.assert_failure("s", "simulator_error", &[words]);
    }
    assert!(agent.requests().is_empty());
}

#[test]
fn console_shows_end_of_simulation() {
    let (agent, user) = (agent(), simulated_user(&["Hello", "DONE achieved"]));
    let output = project(&agent, &user).suite("a", GOAL).hotseat(&["test", "-v"]);
    assert!(
        output.stdout.contains("Simulation: goal_reached after 1 input, goal achieved: that is all"),
        "{output}"
    );
}

#[test]
fn user_mentioning_machines_stays_in_role() {
    let script = &[
        "I'm a digital marketer",
        "I am a virtual event planner",
        "I'm an AI researcher",
        "Your bot only wrote 'How can I help you?' and then nothing happened",
        "Agent: Smith, policy number 12, that is my insurance contact",
        "DONE achieved",
    ];
    let (agent, user) = (agent(), simulated_user(script));
    run_suite(&agent, &user, GOAL).assert_all_passed();
    assert_eq!(agent.user_texts(), script[..5]);
}

/// What an agent did stays done, so the attempt says something about it and is not replaced.
#[test]
fn a_violated_prohibition_outlasts_a_broken_simulated_user() {
    let user = FakeAgent::with_run(|run, request| {
        let told = request.last_user_json();
        let answer = match told["turn_number"].as_u64() {
            Some(1) => r#"{"message": "Book it", "done": false, "goal_progress": "none", "reason": "r"}"#,
            _ => "{}",
        };
        run.text(answer).finished()
    });
    for asserted in ["assert", "final_assertions"] {
        let agent = agent();
        let suite = format!("{GOAL}{asserted}: {{ tools: {{ forbid: [book_venue] }} }}\n");
        let tested = project(&agent, &user).suite("a", &suite).test(&["--retries", "2"]);
        tested.assert_failure("s", "assertion", &["book_venue"]);
    }
}

#[test]
fn a_broken_simulated_user_is_no_end() {
    let agent = agent();
    let asserted = "final_assertions: { type: tool_called, name: book_venue }\n";
    // `end` completes a conversation whose agent needs no input, not one whose simulated user fails.
    let broken = FakeAgent::with_text("{}");
    for assertions in ["", asserted] {
        let suite = format!("name: s\nsimulator: {{ use: user }}\non_missing_input: end\n{assertions}");
        assert_eq!(
            run_suite(&agent, &broken, &suite).failure("s")["kind"],
            "simulator_error",
            "{assertions}"
        );
    }
    assert!(agent.requests().is_empty());
    let asks = FakeAgent::with_text("Where?");
    for (policy, status) in [("skip", "skipped"), ("end", "failed"), ("fail", "failed")] {
        let suite = format!(
            "name: s\nturns: [{{ user: Find a venue }}]\nsimulator: {{ use: user }}\non_missing_input: {policy}\nassert: {{ text: {{ must_match: Where }} }}\n"
        );
        let tested = run_suite(&asks, &broken, &suite);
        let case = tested.case("s");
        assert_eq!(case["status"], status, "{policy}: {case:#}");
        assert!(case.to_string().contains("simulator error"), "{policy}: {case:#}");
    }
}

#[test]
fn user_text_before_first_turn_is_recorded() {
    const UNUSABLE_ANSWER: &str = r#"{"message": " ", "done": false, "goal_progress": "none"}"#;
    for (script, words) in [
        (&["DONE achieved"][..], "it reports its goal as achieved before its first input"),
        (&["DONE none"][..], "it stops before its first input"),
        (&["As an AI language model, I need no venue"][..], "it has left its role"),
        (&[UNUSABLE_ANSWER][..], "the answer has neither a message nor `done: true`"),
    ] {
        let (agent, user) = (agent(), simulated_user(script));
        let project = project(&agent, &user).suite("a", GOAL);
        let tested = project.test(&["--trace", "trace.jsonl"]);
        let failure = tested.failure("s");
        assert_eq!(failure["kind"], "simulator_error");
        assert!(failure["message"].as_str().unwrap().contains(words), "{words}: {failure}");
        let trace = project.workspace.read("trace.jsonl");
        let events: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let answered: Vec<&Value> = events.iter().filter(|event| event["type"] == "role.answered").collect();
        assert_eq!(answered.len(), user.requests().len(), "{words}: {trace}");
        for event in answered {
            let payload = &event["payload"];
            assert_eq!(payload["turnId"], "no-turn");
            assert!(
                payload["error"].as_str().is_some_and(|error| error.contains(words)),
                "{words}: {payload:#}"
            );
        }
        assert!(agent.requests().is_empty());
    }
}

#[test]
fn users_that_are_language_models_may_say_so() {
    let (agent, user) =
        (agent(), simulated_user(&["As an AI language model, I book for my owner", "DONE achieved"]));
    let suite = "name: s\nsimulate: { goal: book a venue, role: An AI language model that books venues for its owner }\n";
    let tested = project(&agent, &user).suite("a", suite).test(&[]);
    tested.assert_all_passed();
}
