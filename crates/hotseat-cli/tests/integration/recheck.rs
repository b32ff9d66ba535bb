//! `hotseat recheck`: an unchanged suite gives identical results, a changed one its own verdict, without
//! contacting any agent.
use std::sync::atomic::{AtomicUsize, Ordering};

use hotseat_testkit::completions::text_reply;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::letters::{case, letter_agent, with};
use crate::common::{Project, TestRun, assert_no_panic, echo_agent};

/// Runs `hotseat recheck` with a report.
#[track_caller]
fn recheck_in(project: &Project, env: &[(&str, &str)], args: &[&str]) -> TestRun {
    const REPORT: &str = "out/again.json";
    let _ = std::fs::remove_file(project.workspace.path(REPORT));
    let command = project.command(&[&["recheck", "-o", REPORT], args].concat());
    let output = env.iter().fold(command, |command, (name, value)| command.env(name, value)).run();
    assert_no_panic(&output);
    assert!(!output.stdout.contains("Output: /"), "the path is shown as given: {output}");
    let report = std::fs::read_to_string(project.workspace.path(REPORT));
    let report = report.unwrap_or_else(|_| panic!("no report was written\n{output}"));
    TestRun { report: serde_json::from_str(&report).expect("JSON"), output }
}

#[track_caller]
fn recheck(project: &Project, args: &[&str]) -> TestRun {
    recheck_in(project, &[], args)
}

/// Verdict, checks, messages, turns and times of every case, without judge durations and skipped cases.
fn normalized_results(tested: &TestRun) -> Value {
    fn remove_volatile(value: &mut Value) {
        match value {
            Value::Object(members) => {
                if members.get("status").is_some_and(|status| status == "skipped") {
                    members.remove("started_at");
                }
                if let Some(Value::Object(judgement)) = members.get_mut("judgement") {
                    judgement.remove("duration_ms");
                }
                members.values_mut().for_each(remove_volatile);
            }
            Value::Array(values) => values.iter_mut().for_each(remove_volatile),
            _ => {}
        }
    }
    let mut results = tested.report["results"].clone();
    remove_volatile(&mut results);
    results
}

/// Asserts that an unchanged suite gives identical results and exit code.
#[track_caller]
fn assert_recheck_is_identical(project: &Project, before: &TestRun) {
    assert_recheck_is_identical_in(project, &[], before);
}

#[track_caller]
fn assert_recheck_is_identical_in(project: &Project, env: &[(&str, &str)], before: &TestRun) {
    let again = recheck_in(project, env, &[]);
    let (one, other) = (normalized_results(before), normalized_results(&again));
    let (Some(ones), Some(others)) = (one.as_array(), other.as_array()) else { panic!("lists of results") };
    for (one, other) in ones.iter().zip(others) {
        assert_eq!(one, other, "{}: {:#}\n{:#}\n{}", one["name"], one, other, again.output);
    }
    assert_eq!(ones.len(), others.len());
    assert_eq!(before.output.code, again.output.code, "{}", again.output);
}

/// Message of a case that could not be rechecked.
#[track_caller]
fn error_message(tested: &TestRun, case: &str) -> String {
    let failure = tested.failure(case);
    assert_eq!(failure["kind"], "not_kept", "{}", tested.output);
    assert_ne!(tested.output.code, 0);
    failure["message"].as_str().unwrap().to_string()
}

const GREETS: &str = "
name: greets
turns:
  - { user: Hello, assert: { text: { must_match: 'You said: Hello' } } }
  - { user: Bye }
";

#[test]
fn changed_assertion_is_rechecked_without_agent() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", GREETS);
    project.test(&[]).assert_all_passed();
    let heard = agent.requests().len();

    let project = project.suite("a", &GREETS.replace("You said: Hello", "Good evening"));
    let again = recheck(&project, &["last"]);
    assert_eq!((again.output.code, again.failure("greets")["kind"].as_str()), (1, Some("assertion")));
    let detail = again.failure("greets")["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("Good evening") && detail.contains("You said: Hello"), "{detail}");
    assert_eq!(agent.requests().len(), heard, "the agent is not contacted");

    let runs = project.hotseat(&["runs"]);
    assert!(runs.stdout.contains("recheck of"), "{runs}");
    let of: Vec<Value> = project
        .hotseat(&["runs", "--json"])
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(of[0]["origin"]["rechecked"]["of"], of[1]["id"]);
    let shown = project.hotseat(&["show", "last"]);
    let short = &of[1]["id"].as_str().unwrap()[..8];
    assert!(shown.stdout.contains(&format!("Recheck: conversations of run {short}")), "{shown}");
    assert_eq!(again.report["metadata"]["recheck_of"].as_str(), Some(short), "{}", again.report["metadata"]);
    let compared = project.hotseat(&["compare", "last~1", "last"]);
    assert!(compared.stdout.contains("greets"), "{compared}");
    project.hotseat(&["resume", "last"]).assert_code(2);

    // A rechecked run can be rechecked again, offline and with another suite.
    drop(agent);
    let project = project.suite("a", GREETS);
    recheck(&project, &["last"]).assert_all_passed();
    recheck(&project, &["last~1"]).assert_all_passed();
    recheck(&project, &["last~2", "a.test.yaml"]).assert_all_passed();
}

/// An agent with output for every kind of check.
fn versatile_agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let said = request.last_user_text();
        if !request.tool_results_since_last_user().is_empty() {
            return FakeReply::from(run.text("Thank you for the answer.").finished());
        }
        match said.as_str() {
            "break" => run.text("I").error("broken", Some("E1")).into(),
            "refuse" => FakeReply::status(500),
            "hang" => run.text("One moment").hang().into(),
            "ask" => run.tool_call("call-ask", "ask_form", &json!({"form": "7"})).finished().into(),
            "null" => {
                run.tool("c-null", "look", &Value::Null, Some(json!("ok"))).text("Done.").finished().into()
            }
            "token" => run.text("It is s3cr3t-value, and order o-77.").finished().into(),
            said => run
                .state(json!({"step": 2, "for": said}))
                .tool(
                    &format!("c-{said}"),
                    "look",
                    &json!({"for": said, "n": 3}),
                    Some(json!({"found": [1, 2]})),
                )
                .text(&format!("You said: {said}. Shall I go on?"))
                .finished()
                .into(),
        }
    })
}

const EVERYTHING: &str = r#"
name: all kinds of assertions
tags: [x]
turn_assert: { timing: { max_duration_ms: 20000 } }
turns:
  - user: one
    assert:
      tools:
        require:
          - { name: look, count: { exact: 1 }, args_match: { for: '^one$' }, result_match: found }
        forbid: [delete]
      text: { must_match: 'You said: one', must_not_match: sorry }
    evaluate: { text: { must_match: nothing like it } }
  - user: two
    assertions:
      - { type: contains, value: two }
      - { type: regex, value: 'You said: \w+' }
      - { type: tool_called, value: look }
      - { type: equals, value: something else, negate: true }
      - { type: script, use: scripts:short }
      - { type: tool_result, value: { tool: look, result: { found: [1, 2] } } }
assert: { timing: { max_duration_ms: 60000, max_idle_ms: 60000 } }
final_assertions:
  - { type: contains, value: two }
checkpoints:
  - { id: looked, assert: [{ type: tool_called, value: look }] }
  - { id: later, after: [looked], required: false, assert: [{ type: contains, value: nobody says this }] }
---
name: goes on after failures
continue_on_failure: true
turns:
  - { user: one, assert: { text: { must_match: no } } }
  - { user: two, assert: { text: { must_match: neither } } }
---
name: stops at the first failure
turns:
  - { user: one, assert: { text: { must_match: no } } }
  - { user: two }
---
name: misses a checkpoint
checkpoints: [{ id: paid, assert: [{ type: tool_called, value: pay }] }]
turns: [{ user: one }]
---
name: breaks
turns: [{ user: break }]
---
name: is expected to break
turns: [{ user: break, expect_error: { code: E1 } }, { user: on }]
---
name: is expected to break otherwise
turns: [{ user: break, expect_error: { code: E2 } }]
---
name: is refused
turns: [{ user: refuse }]
---
name: takes too long for the turn
turns: [{ user: hang, timeout_ms: 300 }]
---
name: takes too long for the case
timeout_ms: 300
turns: [{ user: hang }]
---
name: takes too long for a check
turns: [{ user: hang, assert: { timing: { max_duration_ms: 300 } } }]
---
name: asks for a form
tools: [{ name: ask_form, answers: [{ content: { ok: true } }] }]
turns: [{ user: ask, assert: { text: { must_match: Thank you } } }]
---
name: asks for a form that nobody answers
tools: [{ name: ask_form, answers: [{ args_match: { form: '9' }, content: 1 }] }]
turns: [{ user: ask }]
---
name: calls without arguments
turns: [{ user: 'null', assert: { tools: { forbid_calls: [{ name: look, args_match: { to: Rome } }] } } }]
---
name: is left out
skip: not yet
turns: [{ user: one }]
---
name: waits for an answer
on_missing_input: fail
turns: [{ user: one }]
---
name: knows what hooks know
hooks: [{ cmd: [./order] }]
turns: [{ user: token, assert: { text: { must_match: 'order ${order_id}' } } }]
---
name: has no hook
hooks: [{ cmd: [./nothing] }]
turns: [{ user: one }]
---
name: takes secrets out
turns: [{ user: 'token', assert: [{ type: contains, value: s3cr3t-value }] }]
---
name: knows a secret
turns: [{ user: 'token ${ENV.API_TOKEN}', assert: [{ type: contains, value: 'token ${ENV.API_TOKEN}' }] }]
---
name: asserts what is spent
turns: [{ user: one, assert: { budget: { max_tool_calls: 1 } } }, { user: two, evaluate: { budget: { max_tokens: 10 } } }]
---
name: follows topics
topics:
  first: { assert: { text: { must_match: one } } }
  second: { triggers: [{ on_user_match: two }], assert: { text: { must_match: no such words } } }
graph: { first: second, second: }
decide_topics: always
classify_topics: triggers
turns: [{ user: one }, { user: two }]
"#;

fn versatile_project(agent: &FakeAgent) -> Project {
    let project = Project::with_agent(agent)
        .suite("a", EVERYTHING)
        .file(
            "short.ts",
            "export default function short(output) { console.log('looked'); return output.length < 1000; }\n",
        )
        .file("order", "#!/bin/sh\necho '{\"order_id\": \"o-77\"}'\n");
    project.workspace.run("chmod", &["+x", "order"]);
    project
}

const TOKEN: &[(&str, &str)] = &[("API_TOKEN", "s3cr3t-value")];

#[test]
fn unchanged_suite_gives_identical_results() {
    let agent = versatile_agent();
    let project = versatile_project(&agent);
    let before = project.test_in(TOKEN, &["--retries", "1"]);
    assert_ne!(before.count("passed"), 0, "{}", before.output);
    let heard = agent.requests().len();
    assert_recheck_is_identical_in(&project, TOKEN, &before);
    assert_eq!(agent.requests().len(), heard);
    drop(agent);
    assert_recheck_is_identical_in(&project, TOKEN, &before);
}

#[test]
fn repeated_attempts_are_rechecked_individually() {
    let agent = letter_agent();
    let half = "reliability: { rate: 0.5, confidence: 0.9 }\n";
    let few = "reliability: { rate: 0.5, confidence: 0.9, max_runs: 6 }\n";
    let suite = [
        with("pppppppp", half),
        with("pffffffffff", half),
        with("pfpfpf", few),
        with("upppppppppppppppppp", half),
        case("p"),
    ];
    let project = crate::common::letters::project(&agent, &suite.join("---\n"));
    let before = project.test(&["--parallel", "1"]);
    assert_recheck_is_identical(&project, &before);
    // The current declaration applies, limited to the recorded runs.
    let suite = suite.join("---\n").replace("rate: 0.5, confidence: 0.9 }", "rate: 0.8, confidence: 0.9 }");
    let project = project.suite("a", &suite);
    let again = recheck(&project, &[]);
    assert_eq!(again.case("pppppppp")["reliability"]["status"], "INCONCLUSIVE", "{}", again.output);
    assert_eq!(again.case("pppppppp")["runs"], 4);
    let error = again.case("pppppppp")["error"].as_str().unwrap_or_default();
    assert!(error.contains("the saved run has no more attempts") && !error.contains("max_runs"), "{error}");

    let agent = letter_agent();
    let project =
        crate::common::letters::project(&agent, &[case("ppp"), case("pfp"), case("fff")].join("---\n"));
    let before = project.test(&["--runs", "3", "--min-pass-rate", "0.6"]);
    assert_recheck_is_identical(&project, &before);
    let agent = letter_agent();
    let project = crate::common::letters::project(
        &agent,
        &[with("ffp", "retries: 3\n"), with("fff", "retries: 2\n")].join("---\n"),
    );
    let before = project.test(&[]);
    assert_recheck_is_identical(&project, &before);
    let project = project.suite(
        "a",
        &[with("ffp", "retries: 3\n"), with("fff", "retries: 2\n")]
            .join("---\n")
            .replace("must_match: good", "must_match: bad"),
    );
    recheck(&project, &[]).assert_all_passed();
}

#[test]
fn changed_input_is_not_rechecked() {
    let agent = echo_agent();
    const ASKS: &str = "
name: asks
metadata: { of: test }
turns:
  - { user: Hello, assert: { text: { must_match: Hello } } }
  - { user: Bye }
";
    let project = Project::with_agent(&agent).suite("a", ASKS);
    project.test(&[]).assert_all_passed();
    let heard = agent.requests().len();
    for (from, to, named) in [
        ("user: Bye", "user: Good bye", "`user` of turn 2"),
        ("  - { user: Bye }\n", "", "turn 2 was removed"),
        ("  - { user: Bye }\n", "  - { user: Bye }\n  - { user: Well }\n", "turn 3 is new"),
        ("of: test", "of: another", "`metadata`"),
        ("name: asks\n", "name: asks\nstate: { a: 1 }\n", "`state`"),
        (
            "name: asks\n",
            "name: asks\nmessages: [{ role: user, content: Before }, { role: assistant, content: Yes }]\n",
            "`messages`",
        ),
        (
            "user: Bye }",
            "user: Bye, attachments: [{ type: image, url: 'http://127.0.0.1/a.png' }] }",
            "`attachments` of turn 2",
        ),
        ("user: Bye }", "user: Bye, resume: [{ status: resolved, payload: {} }] }", "`resume` of turn 2"),
    ] {
        let text = ASKS.replace(from, to);
        assert_ne!(text, ASKS);
        project.workspace.file("a.test.yaml", &text);
        let again = recheck(&project, &[]);
        let message = error_message(&again, "asks");
        assert!(
            message.starts_with("the input of the case has changed since run") && message.contains(named),
            "{named}: {message}"
        );
    }
    assert_eq!(agent.requests().len(), heard);
    // Assertions and time limits are not inputs.
    let text = ASKS.replace(
        "name: asks\n",
        "name: asks\ntags: [new]\ntimeout_ms: 9000\nretries: 2\non_missing_input: end\n",
    );
    let project = project.suite("a", &text);
    recheck(&project, &[]).assert_all_passed();
    // A variable with another value.
    let project = project.suite("b", "name: says\nturns: [{ user: 'I am ${ENV.WHO}' }]\n");
    project.test_in(&[("WHO", "Ann")], &["b.test.yaml"]).assert_all_passed();
    recheck_in(&project, &[("WHO", "Ann")], &[]).assert_all_passed();
    let again = recheck_in(&project, &[("WHO", "Bob")], &[]);
    assert!(error_message(&again, "says").contains("turn 1: the user's text differs"), "{}", again.output);
}

#[test]
fn missing_recorded_data_is_a_distinct_error() {
    let agent = echo_agent();
    let project =
        Project::with_agent(&agent).suite("a", GREETS).suite("b", "name: goes\nturns: [{ user: a }]\n");
    project.test(&[]).assert_all_passed();
    let project =
        project.suite("b", "name: comes\nturns: [{ user: a }]\n---\nname: greets\nturns: [{ user: a }]\n");
    let again = recheck(&project, &[]);
    assert!(error_message(&again, "comes").contains("has no conversation of this case"), "{}", again.output);
    let results = again.results();
    let words = results.last().unwrap()["failure"]["message"].as_str().unwrap_or_default();
    assert!(words.contains("it has `greets` in a.test.yaml, but this case is in b.test.yaml"), "{words}");
    assert_eq!((again.count("failed"), again.count("errors"), again.count("passed")), (2, 2, 1));
    assert!(
        again.output.stderr.contains("has `goes` of b.test.yaml, which no longer exists"),
        "{}",
        again.output
    );
    let next = "make the missing conversations: `hotseat test b.test.yaml --run";
    assert!(again.output.stdout.contains(next), "{}", again.output);
    assert_eq!(again.output.code, 1);

    // A conversation ended by a check has no further turns.
    let strict = GREETS.replace("You said: Hello", "Good evening");
    let project = project.suite("a", &strict);
    project.test(&["a.test.yaml"]);
    let project = project.suite("a", GREETS);
    let again = recheck(&project, &[]);
    assert!(
        error_message(&again, "greets").contains("the recorded conversation ended after turn 1"),
        "{}",
        again.output
    );
    let turns = again.case("greets")["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 1, "no turn is made up: {}", again.output);

    // A skipped case has no conversation.
    let project = project.suite("a", &GREETS.replace("name: greets", "name: greets\nskip: later"));
    project.test(&["a.test.yaml"]);
    let project = project.suite("a", GREETS);
    assert!(error_message(&recheck(&project, &[]), "greets").contains("the case was skipped in run"));
}

/// A judge model that always passes and counts its requests.
fn counting_judge(asked: &'static AtomicUsize) -> FakeAgent {
    FakeAgent::start(move |_: &FakeRequest| {
        asked.fetch_add(1, Ordering::SeqCst);
        let answer = json!({"reasoning": "It greets.", "satisfied": true});
        text_reply(&answer.to_string())
    })
}

fn judged_project(agent: &FakeAgent, judge: &FakeAgent, suite: &str) -> Project {
    Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nconnectors:\n  j: {{ type: openai, base_url: '{judge}v1', model: m, stream: false }}\njudge: connectors:j\n"
    ))
    .suite("a", suite)
}

#[test]
fn judge_answers_are_reused_unless_requested() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let (agent, model) = (echo_agent(), counting_judge(&ASKED));
    const JUDGED: &str = "
name: judged
criteria: { friendly: Is friendly. }
turns:
  - user: Hello
    assert: [{ type: satisfy, criterion: friendly }, { type: satisfy, criterion: friendly, judge: { votes: 3 } }]
final_assertions: [{ type: satisfy, criterion: friendly, negate: true }]
";
    let project = judged_project(&agent, &model, JUDGED);
    let before = project.test(&[]);
    let asked = ASKED.load(Ordering::SeqCst);
    assert_ne!(asked, 0, "{}", before.output);
    assert_recheck_is_identical(&project, &before);
    // The default, written out, changes nothing.
    let config = project.workspace.read("hotseat.yaml");
    project.workspace.file(
        "hotseat.yaml",
        &config.replace("judge: connectors:j", "judge: { use: 'connectors:j', votes: 1 }"),
    );
    assert_recheck_is_identical(&project, &before);
    project.workspace.file("hotseat.yaml", &config);
    assert_eq!(ASKED.load(Ordering::SeqCst), asked, "the judge is not contacted");

    let project = project
        .suite("a", &JUDGED.replace("Is friendly.", "Is friendly and short.").replace(", negate: true", ""));
    let again = recheck(&project, &[]);
    let failure = again.failure("judged");
    assert_eq!((failure["kind"].as_str(), failure["fault"].as_str()), (Some("judge_error"), Some("judge")));
    let words = failure["message"].as_str().unwrap_or_default();
    assert!(words.contains("this question has no recorded answer") && words.contains("--judge"), "{words}");
    assert_eq!(ASKED.load(Ordering::SeqCst), asked, "the judge is not contacted");
    recheck(&project, &["--judge"]).assert_all_passed();
    assert!(ASKED.load(Ordering::SeqCst) > asked);
}

/// The options of a question choose its model and more.
#[test]
fn verdicts_are_not_reused_for_other_options() {
    let agent = echo_agent();
    let judge = FakeAgent::start(|_: &FakeRequest| text_reply(r#"{"passed": true, "reason": "It greets."}"#));
    let suite = |options: &str| {
        format!(
            "name: a\nturns: [{{ user: Hi, assert: [{{ type: agent, use: agents:j, criteria: greets, options: {options} }}] }}]\n"
        )
    };
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nagents: {{ j: {{ type: openai, base_url: '{judge}v1', model: m, stream: false }} }}\n"
    ))
    .suite("a", &suite("{ connector: m1 }"));
    let before = project.test(&[]);
    before.assert_all_passed();
    assert_eq!(judge.requests()[0].json()["model"], "m1");
    assert_recheck_is_identical(&project, &before);
    for options in
        ["{ connector: m2 }", "{ connector: m1, temperature: 2 }", "{ metadata: { tone: x }, connector: m1 }"]
    {
        project.workspace.file("a.test.yaml", &suite(options));
        recheck(&project, &[]).assert_failure("a", "judge_error", &["this question has no recorded answer"]);
    }
}

/// A judge that is an embedded agent or a scripted model is another judge once its files have changed.
#[test]
fn verdicts_of_judges_with_changed_files_are_not_reused() {
    let script = "use: always\nrules: [{ reply: '{\"satisfied\":true,\"reasoning\":\"It greets.\"}' }]\n";
    for (judge, changed) in [
        ("agents: { j: { type: embedded, agent: j } }\njudge: agents:j\n", "j/agent.yaml"),
        ("agents: { j: { type: embedded, agent: j } }\njudge: agents:j\n", "j/script.yaml"),
        (
            "connectors: { j: { type: scripted, script: j/script.yaml } }\njudge: connectors:j\n",
            "j/script.yaml",
        ),
    ] {
        let project =
            Project::with_config(&format!("target: {{ type: embedded, agent: agent.yaml }}\n{judge}"))
                .file("agent.yaml", "name: Clerk\n")
                .file("script.yaml", "use: always\nrules: [{ reply: Hello. }]\n")
                .file("j/agent.yaml", "name: Judge\n")
                .file("j/script.yaml", script)
                .suite(
                    "a",
                    "name: a\nturns: [{ user: Hi, assert: [{ type: satisfy, criterion: it greets }] }]\n",
                );
        let before = project.test(&[]);
        before.assert_all_passed();
        assert_recheck_is_identical(&project, &before);
        let text = project.workspace.read(changed);
        let project = project.file(changed, &format!("# Another version.\n{text}"));
        let again = recheck(&project, &[]);
        again.assert_failure("a", "judge_error", &["this question has no recorded answer"]);
        recheck(&project, &["--judge"]).assert_all_passed();
    }
}

#[test]
fn simulated_user_turns_are_reused() {
    let agent = echo_agent();
    let user = FakeAgent::with_run(|run, request| {
        let told = request.last_user_json();
        let answer = match told["turn_number"].as_u64() {
            Some(3..) => json!({"message": "", "done": true, "goal_progress": "achieved", "reason": "r"}),
            turn => {
                json!({"message": format!("Turn {turn:?}"), "done": false, "goal_progress": "partial", "reason": "r"})
            }
        };
        run.text(&answer.to_string()).finished()
    });
    const SIMULATED: &str = "
name: simulated
simulate: { goal: A room, max_turns: 5 }
assert: { text: { must_match: 'Turn Some' } }
checkpoints: [{ id: said, assert: [{ type: contains, value: 'Some(2)' }] }]
";
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nagents:\n  user: {{ endpoint: '{user}' }}\nsimulator: agents:user\n"
    ))
    .suite("a", SIMULATED);
    let before = project.test(&[]);
    before.assert_all_passed();
    let heard = (agent.requests().len(), user.requests().len());
    assert_recheck_is_identical(&project, &before);
    let project =
        project.suite("a", &SIMULATED.replace("'Turn Some'", "nothing").replace("id: said", "id: other"));
    let again = recheck(&project, &[]);
    assert_eq!(again.failure("simulated")["kind"], "assertion", "{}", again.output);
    let project = project.suite("a", &SIMULATED.replace("A room", "A hall"));
    assert!(error_message(&recheck(&project, &[]), "simulated").contains("`simulate`"));
    assert_eq!((agent.requests().len(), user.requests().len()), heard);
}

/// Without a turn, the recorded conversation has no id.
#[test]
fn errors_of_a_simulated_user_before_the_first_turn_are_the_same_again() {
    let agent = echo_agent();
    const CHECKPOINTS: &str = "checkpoints: [{ id: said, assert: [{ type: contains, value: Hello }] }]\n";
    for (user, checkpoints) in [
        ("{ reply: 'not { JSON' }", CHECKPOINTS),
        ("{ error: auth }", CHECKPOINTS),
        ("{ reply: '{\"goal_achieved\": true}' }", CHECKPOINTS),
        // Without checkpoints the case is skipped.
        ("{ reply: 'not { JSON' }", ""),
    ] {
        let project = Project::with_config(&format!(
            "target: {{ endpoint: '{agent}' }}\nconnectors: {{ user: {{ type: scripted, script: user.yaml }} }}\n"
        ))
        .file("user.yaml", &format!("use: always\nrules: [{user}]\n"))
        .suite(
            "a",
            &format!(
                "name: a\nsimulator: {{ use: connectors:user, metadata: {{ goal: A room }} }}\n{checkpoints}"
            ),
        );
        let before = project.test(&[]);
        match checkpoints {
            "" => assert_eq!(before.case("a")["status"], "skipped", "{}", before.output),
            _ => assert_eq!(before.failure("a")["kind"], "simulator_error", "{}", before.output),
        }
        assert_recheck_is_identical(&project, &before);
    }
}

const TESTS: &str = "import { it, user, agent, conversation, expect, evaluate } from 'hotseat';
it('greets', () => {
  user.says('Hello');
  expect(agent.response.text).toContain('You said: Hello');
  user.says('Bye');
  expect(conversation.turns.length).toBe(2);
  evaluate(agent.response.text).toContain('nothing');
});
";

#[test]
fn typescript_tests_drive_recorded_conversation() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).file("a_test.ts", TESTS);
    let before = project.test(&["a_test.ts"]);
    before.assert_all_passed();
    let heard = agent.requests().len();
    assert_recheck_is_identical(&project, &before);
    let project = project.file("a_test.ts", &TESTS.replace("toBe(2)", "toBe(3)"));
    assert_eq!(recheck(&project, &[]).failure("greets")["kind"], "assertion");
    let project = project.file("a_test.ts", &TESTS.replace("'Bye'", "'Good bye'"));
    let again = recheck(&project, &[]);
    assert!(error_message(&again, "greets").contains("turn 2: the user's text differs"), "{}", again.output);
    let project = project.file("a_test.ts", &TESTS.replace("  evaluate", "  user.says('More');\n  evaluate"));
    assert!(error_message(&recheck(&project, &[]), "greets").contains("ended after turn 2"));
    let project =
        project.file("a_test.ts", &TESTS.replace("  user.says('Bye');\n", "").replace("toBe(2)", "toBe(1)"));
    assert!(error_message(&recheck(&project, &[]), "greets").contains("but now the test ends after turn 1"));
    assert_eq!(agent.requests().len(), heard);
}

#[test]
fn script_checks_run_without_contacting_agent() {
    let agent = echo_agent();
    let other = echo_agent();
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nscripts: {{ hosts: ['127.0.0.1:{}'] }}\n",
        other.port()
    ))
    .suite("a", "name: looked at\nturns: [{ user: Hello, assert: [{ type: script, use: scripts:look }] }]\n")
    .file("look.ts", "export default function look(output) { return output.includes('Hello'); }\n");
    project.test(&[]).assert_all_passed();
    recheck(&project, &[]).assert_all_passed();
    let asks = format!(
        "export default async function look(output) {{ const r = await fetch('{other}'); return r.ok; }}\n"
    );
    let project = project.file("look.ts", &asks);
    let again = recheck(&project, &[]);
    let failure = again.failure("looked at");
    assert_eq!(failure["kind"], "script_error", "{}", again.output);
    assert!(
        failure.to_string().contains("not available during a recheck, which contacts nothing"),
        "{}",
        again.output
    );
    assert!(other.requests().is_empty());
}

#[test]
fn reports_value_that_is_no_longer_secret() {
    let agent = FakeAgent::with_text("It is s3cr3t-value.");
    let project = Project::with_agent(&agent)
        .suite("a", "name: tells\nturns: [{ user: Hi, assert: { text: { must_match: It is } } }]\n");
    project.test_in(TOKEN, &[]).assert_all_passed();
    let again = recheck_in(&project, TOKEN, &[]);
    assert!(!again.output.stdout.contains("a redacted secret"), "{}", again.output);
    let again = recheck(&project, &[]);
    assert!(
        again.output.stdout.contains("this conversation contains a redacted secret that is no longer known"),
        "{}",
        again.output
    );
    assert!(again.output.stdout.contains("ENV.API_TOKEN"), "{}", again.output);
}

/// Saved cases are without secrets, also those that stand in a file. The input of such a case has not changed.
#[test]
fn cases_that_contain_secrets_are_unchanged() {
    let agent = echo_agent();
    let env = [("API_TOKEN", "s3cr3t-value"), ("PIN_TOKEN", "12345678"), ("BANK_LOGIN", "bank-login-0817")];
    let suite = "name: said\nturns: [{ user: it is s3cr3t-value }]\nassert: { text: { must_not_match: bad } }
---\nname: served\nturns: [{ user: 'it is env-key-0816 and bank-login-0817' }]\nassert: { text: { must_not_match: bad } }
mcp: { bank: { type: proxy, command: [cat], env: { A_API_KEY: env-key-0816, B_API_KEY: '${ENV.BANK_LOGIN}' } } }\n";
    let number = |user: &str| {
        json!({"id": "number", "metadata": {"pin": 12_345_678}, "turns": [{"user": user}]}).to_string()
    };
    let project = Project::with_agent(&agent).suite("a", suite).file("b.test.jsonl", &number("hi"));
    let tested = project.test_in(&env, &["a.test.yaml", "b.test.jsonl"]);
    tested.assert_all_passed();
    project
        .hotseat(&["compare", "out/report.json", "last"])
        .assert_stdout(0, &["cases:  3 in both and compared"]);
    assert_recheck_is_identical_in(&project, &env, &tested);
    let project = project.file("b.test.jsonl", &number("ho"));
    let again = recheck_in(&project, &env, &[]);
    assert!(
        error_message(&again, "number").contains("the input of the case has changed"),
        "{}",
        again.output
    );
}

/// The mark in a saved conversation stands for the key of its run, not for the one that replaced it since.
#[test]
fn a_secret_with_another_value_is_unknown() {
    let agent = FakeAgent::with_run(|run, request| {
        let text = format!("It is {}-12345678.", request.last_user_text());
        run.text(&text).finished()
    });
    let suite = "name: tells\nturns: [{ user: live, assert: [{ type: not_contains, value: live- }] }]\n\
                 ---\nname: hides\nturns: [{ user: test, assert: [{ type: not_contains, value: live- }] }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    let of_run = [("LIVE_TOKEN", "live-12345678"), ("TEST_TOKEN", "test-12345678")];
    let tested = project.test_in(&of_run, &[]);
    assert_eq!(
        [tested.case("tells")["status"].clone(), tested.case("hides")["status"].clone()],
        ["failed", "passed"]
    );
    let same = recheck_in(&project, &of_run, &[]);
    assert_eq!(same.case("tells")["failure"]["kind"], "assertion", "{}", same.output);
    assert_eq!(same.case("hides")["status"], "passed", "{}", same.output);
    assert!(!same.output.stdout.contains("no longer known"), "{}", same.output);
    let exchanged = [("LIVE_TOKEN", "rotated-87654321"), ("TEST_TOKEN", "live-87654321")];
    let again = recheck_in(&project, &exchanged, &[]);
    for (case, name) in [("tells", "ENV.LIVE_TOKEN"), ("hides", "ENV.TEST_TOKEN")] {
        let failure = again.case(case)["failure"].to_string();
        assert!(failure.contains("its value is unknown here"), "{failure}\n{}", again.output);
        let warning = format!("a redacted secret that is no longer known ({name} has another value now)");
        assert!(again.case(case)["warnings"].to_string().contains(&warning), "{}", again.output);
    }
}

#[test]
fn aborted_conversation_keeps_original_time_limit() {
    let agent = versatile_agent();
    const HANGS: &str =
        "name: hangs\nturns: [{ user: hang, assert: { timing: { max_duration_ms: 300 } } }]\n";
    let project = Project::with_agent(&agent).suite("a", HANGS);
    let before = project.test(&[]);
    assert_recheck_is_identical(&project, &before);
    let project = project.suite("a", &HANGS.replace("300", "250"));
    assert_eq!(recheck(&project, &[]).failure("hangs")["kind"], "assertion");
    let project = project.suite("a", &HANGS.replace("300", "20000"));
    assert!(
        error_message(&recheck(&project, &[]), "hangs")
            .contains("of the recorded conversation was stopped after")
    );
}

#[test]
fn rejects_runs_that_cannot_be_rechecked() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", GREETS);
    project.hotseat(&["recheck"]).assert_code(2);
    project.test(&[]).assert_all_passed();
    project
        .hotseat(&["recheck", "last", "tests/greets.rs"])
        .assert_stderr(2, &["tests/greets.rs is a Rust test"]);
    project.hotseat(&["recheck", "last", "nowhere.test.yaml"]).assert_stderr(4, &["nowhere.test.yaml"]);
    let events = project.hotseat(&["recheck", "last", "--json"]);
    let last: Value = serde_json::from_str(events.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((events.code, last["exit_code"].as_u64()), (0, Some(0)), "{events}");
    // A merged run is rechecked as one.
    for part in ["1/2", "2/2"] {
        project.hotseat(&["test", "--shard", part]);
    }
    assert_eq!(project.hotseat(&["merge", "last", "last~1"]).code, 0);
    recheck(&project, &["last"]).assert_all_passed();
}

#[test]
fn unknown_times_remain_unknown() {
    let agent = echo_agent();
    let recording = r#"{"version": 1, "case": "greets", "turns": [
        {"user": "Hello", "events": [{"type": "message", "text": "You said: Hello"}, {"type": "finished"}]}]}"#;
    const ONE: &str = "name: greets\nturns: [{ user: Hello, assert: { text: { must_match: Hello } } }]\n";
    let project = Project::with_agent(&agent).suite("a", ONE).file("greets.json", recording);
    project.test(&["-n", "replay:greets.json"]).assert_all_passed();
    recheck(&project, &[]).assert_all_passed();
    let project = project.suite("a", &ONE.replace("text:", "timing: { max_duration_ms: 5000 }, text:"));
    let again = recheck(&project, &[]);
    let failure = again.failure("greets");
    assert_eq!(failure["kind"], "test_error", "{}", again.output);
    assert!(
        failure["message"].as_str().unwrap_or_default().contains("times of this conversation are unknown")
    );
}

/// The command in the hint at the end of a run, as words.
#[track_caller]
fn suggested_command(output: &str) -> Vec<String> {
    let (_, hint) = output.split_once("  Next: ").unwrap_or_else(|| panic!("no hint: {output}"));
    let command = hint.split('`').nth(1).unwrap_or_else(|| panic!("no command: {output}"));
    let words = command.split_whitespace().map(|word| word.trim_matches('\'').to_string());
    let words: Vec<String> = words.collect();
    assert_eq!(words[0], "hotseat", "{command}");
    words[1..].to_vec()
}

#[test]
fn events_of_a_run_that_cannot_be_used_end_with_a_summary() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", "id: p\nturns: [{ user: hi }]\n");
    project.test(&[]).assert_all_passed();
    for arguments in
        [["recheck", "nope", "--json"], ["resume", "nope", "--json"], ["resume", "last", "--json"]]
    {
        let output = project.hotseat(&arguments);
        let lines: Vec<Value> =
            output.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let types: Vec<&Value> = lines.iter().map(|line| &line["type"]).collect();
        assert_eq!((output.code, types), (2, vec![&json!("error"), &json!("summary")]), "{output}");
    }
}

#[test]
fn selected_cases_without_a_conversation_fail() {
    let agent = echo_agent();
    let case = |id: &str| format!("id: {id}\nturns: [{{ user: hi }}]\n");
    let project = Project::with_agent(&agent).suite("a", &case("p"));
    project.test(&[]).assert_all_passed();
    project.workspace.file("a.test.yaml", &[case("p"), case("pp")].join("---\n"));
    let again = recheck(&project, &["-k", "p or pp"]);
    again.assert_failure("pp", "not_kept", &[]);
    assert_eq!(again.case("p")["status"], "passed", "{}", again.output);
    // The filter of the run is not repeated, so the case may not belong to it.
    project.test(&["--run", "^p$"]).assert_all_passed();
    recheck(&project, &["-k", "p or pp"]).assert_all_passed();
}

#[test]
fn hint_after_recheck_is_a_command_that_works() {
    let agent = letter_agent();
    let project = Project::with_agent(&agent).suite("a", &[case("p"), case("f"), case("pp")].join("---\n"));
    assert_eq!(project.test(&[]).output.code, 1);
    let again = recheck(&project, &[]);
    let command = suggested_command(&again.output.stdout);
    assert_eq!(command[0], "recheck", "{}", again.output);
    let requests = agent.requests().len();
    let command: Vec<&str> = command.iter().map(String::as_str).chain(["--json"]).collect();
    let only = project.hotseat(&command);
    let summary: Value = serde_json::from_str(only.stdout.lines().last().expect("a summary")).expect("JSON");
    assert_eq!((&summary["total"], &summary["failed_ids"]), (&json!(1), &json!(["f"])), "{only}");
    assert_eq!(agent.requests().len(), requests, "no agent is contacted");
}
