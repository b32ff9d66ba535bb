//! Hundreds of generated malformed answers of agents, judges and other roles: none produces a verdict, plain
//! or negated.
use hotseat_testkit::completions::text_reply;
use hotseat_testkit::malformed::{MalformedAnswer, MalformedKind, malformed_answers};
use hotseat_testkit::{FakeAgent, FakeRequest};
use serde_json::{Value, json};

use crate::common::{Project, TestRun};

/// Number after the last `#` of a message; it selects the answer.
fn requested_number(message: &str) -> usize {
    let digits = message.rsplit('#').next().unwrap_or_default();
    let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no number: {message}"))
}

/// An agent that returns the answer with the given number.
fn answering_agent(answers: Vec<String>) -> FakeAgent {
    FakeAgent::with_run(move |run, request| {
        let text = &answers[requested_number(&request.last_user_text())];
        run.text(text).finished()
    })
}

/// Answers that are invalid for every role.
fn texts(all: &[MalformedAnswer]) -> Vec<String> {
    let of_no_use = all.iter().filter(|malformed| malformed.kind != MalformedKind::Unescaped);
    of_no_use.map(|malformed| malformed.text.clone()).collect()
}

#[track_caller]
fn run_cases(project: Project, cases: &[Value]) -> TestRun {
    project
        .cases(cases)
        .test_with(&["--parallel", "8"], |command| command.timeout(crate::common::TEST_TIMEOUT * 4))
}

/// All assertions of all turns of a case.
fn assertions(case: &Value) -> impl Iterator<Item = &Value> {
    let of = |of: &Value| of["assertions"].as_array().cloned().unwrap_or_default();
    assert!(of(case).is_empty() || case["turns"].is_array(), "{case}");
    case["turns"].as_array().into_iter().flatten().flat_map(|turn| turn["assertions"].as_array()).flatten()
}

#[test]
fn malformed_json_answer_passes_no_json_assertion() {
    let (glad, sorry) = (json!({"status": "ok"}), json!({"status": "failed"}));
    let all = malformed_answers(&glad, &sorry);
    assert!(all.len() >= 500);
    let agent = answering_agent(all.iter().map(|malformed| malformed.text.clone()).collect());
    let assert = |kind: MalformedKind| {
        let mut all = vec![json!({"type": "equals", "value": glad})];
        if kind != MalformedKind::Prose {
            all.extend([
                json!({"type": "json_path", "path": "$.status", "value": "ok"}),
                json!({"type": "json_path", "path": "$.status"}),
                json!({"type": "schema", "schema": {"required": ["status"]}}),
                json!({"type": "type", "path": "$.status", "value": "string"}),
            ]);
        }
        let negated = all.clone().into_iter().map(|mut assertion| {
            assertion["negate"] = json!(true);
            assertion
        });
        let mut both: Vec<Value> = all.iter().cloned().chain(negated).collect();
        if kind != MalformedKind::Prose {
            both.push(json!({"type": "script", "use": "scripts:json.none"}));
        }
        both
    };
    let mut cases = Vec::new();
    for (place, malformed) in all.iter().enumerate() {
        let turns = json!([{"input": format!("#{place}"), "assert": assert(malformed.kind)}]);
        cases.push(json!({"id": format!("a{place}"), "turns": turns}));
        cases.push(json!({"id": format!("e{place}"), "input": format!("#{place}"), "expected": glad}));
    }
    let project = Project::with_agent(&agent).file(
        "src/json.ts",
        "export const none = (output: string, input: any, expected: any, context: any) => context.response.json === null;",
    );
    let tested = run_cases(project, &cases);
    assert_eq!((tested.output.code, tested.results().len()), (1, 2 * all.len()));
    for result in tested.results() {
        assert_eq!(result["status"], "failed", "{result}");
        for assertion in assertions(result) {
            // The function reports that it received no JSON.
            let expected = assertion["type"] == "script";
            assert_eq!(assertion["passed"], expected, "{assertion}\n{}", result["turns"]);
        }
    }
}

/// `json_path` reads a single value in prose or in a code block, and the report says where it was found.
#[test]
fn finds_single_json_value_in_prose() {
    let answers = [
        ("Here: {\"status\": \"ok\"}", "in the only JSON in the prose of the answer"),
        ("Result:\n```json\n{\"status\": \"ok\"}\n```", "in the code block of the answer"),
        ("```\n{\"status\": \"ok\"}\n```", "in the code block of the answer"),
        ("{\"status\": \"ok\"}", "in the answer"),
    ];
    let agent = answering_agent(answers.iter().map(|(text, _)| (*text).to_string()).collect());
    let cases: Vec<Value> = (0..answers.len())
        .map(|place| {
            let assert = json!([{"type": "json_path", "path": "$.status", "value": "ok"}]);
            json!({"id": place.to_string(), "turns": [{"input": format!("#{place}"), "assert": assert}]})
        })
        .collect();
    let tested = run_cases(Project::with_agent(&agent), &cases);
    tested.assert_all_passed();
    for (result, (_, place)) in tested.results().iter().zip(answers) {
        let found = assertions(result).next().expect("an assertion");
        assert_eq!(found["actual"], format!("\"ok\" {place}"));
    }
}

/// Broken JSON is not replaced by a tool result.
#[test]
fn malformed_answer_has_no_fallback() {
    let agent = FakeAgent::with_run(|run, request| {
        let run = run.tool("c1", "look", &json!({}), Some(json!({"status": "ok"})));
        run.text(if request.last_user_text() == "words" {
            "It is done."
        } else {
            "{\"status\": \"failed\", "
        })
        .finished()
    });
    let case = |said: &str| {
        let assert = json!([{"type": "json_path", "path": "$.status", "value": "ok"}]);
        json!({"id": said, "turns": [{"input": said, "assert": assert}]})
    };
    let tested = run_cases(Project::with_agent(&agent), &[case("words"), case("broken")]);
    let statuses: Vec<&Value> = tested.results().iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, ["passed", "failed"]);
}

#[test]
fn malformed_judge_answer_is_judge_error() {
    let judgement = |passed: bool| json!({"passed": passed, "reason": "r"});
    let verdict = |satisfied: bool| json!({"reasoning": "r", "satisfied": satisfied});
    let mut open = texts(&malformed_answers(&judgement(true), &judgement(false)));
    let shapes =
        ["true", "[]", "null", "{}", r#"{"passed": "true"}"#, r#"{"passed": 1}"#, r#"{"reason": "x"}"#];
    open.extend(shapes.map(str::to_string));
    let strict = texts(&malformed_answers(&verdict(true), &verdict(false)));
    let count = open.len().max(strict.len());
    assert!(count >= 500);
    let target = FakeAgent::with_text("Hello.");
    let (of_agent, of_model) = (open.clone(), strict);
    let judge = answering_judge(of_agent);
    let model = FakeAgent::start(move |request: &FakeRequest| {
        let body = request.json();
        let message = body["messages"].as_array().and_then(|all| all.last()).expect("a message").clone();
        let asked = message["content"].as_str().unwrap_or_default();
        let criterion = asked.split("# The criterion\n").nth(1).unwrap_or(asked);
        let text =
            &of_model[requested_number(criterion.split("#end").next().unwrap_or_default()) % of_model.len()];
        text_reply(text)
    });
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{target}' }}\nagents: {{ judge: {{ endpoint: '{judge}' }} }}\nconnectors:\n  model: {{ type: openai, base_url: '{model}v1', model: m, stream: false }}\njudge: {{ use: connectors:model, retries: 0 }}\n"
    ));
    let cases: Vec<Value> = (0..count)
        .flat_map(|place| {
            [false, true].map(|negate| {
                let by_agent = json!({"type": "agent", "use": "agents:judge", "criteria": format!("#{}", place % open.len()), "negate": negate});
                let by_model = json!({"type": "satisfy", "criteria": format!("The answer is number #{place}#end"), "negate": negate});
                json!({"id": format!("{place} {negate}"), "turns": [{"input": "Hi", "assert": [by_agent, by_model]}]})
            })
        })
        .collect();
    let tested = run_cases(project, &cases);
    assert_eq!((tested.output.code, tested.results().len()), (1, 2 * count), "{}", tested.output.stderr);
    for result in tested.results() {
        assert_eq!(result["failure"]["kind"], "judge_error", "{result}");
        for assertion in assertions(result) {
            assert!(assertion["passed"] == false && assertion["error"].is_string(), "{assertion}");
        }
    }
}

/// A judge that returns the answer whose number is in its criteria.
fn answering_judge(answers: Vec<String>) -> FakeAgent {
    FakeAgent::with_run(move |run, request| {
        let told = request.last_user_json();
        let text = &answers[requested_number(told["criteria"].as_str().expect("criteria"))];
        run.text(text).finished()
    })
}

/// TypeScript asks a judge with `t.assert.Agent`.
#[test]
fn malformed_judge_answer_errors_in_typescript() {
    let judgement = |passed: bool| json!({"passed": passed, "reason": "r"});
    let answers = texts(&malformed_answers(&judgement(true), &judgement(false)));
    let count = answers.len().min(150);
    let step = answers.len() / count;
    let judge = answering_judge(answers);
    let target = FakeAgent::with_text("Hello.");
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{target}' }}\nagents: {{ judge: {{ endpoint: '{judge}' }} }}\njudge: {{ retries: 0 }}\n"
    ))
    .file(
        "a_test.ts",
        &format!(
            "export function TestJudge(t: TestingT, ctx: Context) {{\n  for (let i = 0; i < {count}; i++) t.assert.Agent('Hello.', 'judge', {{ criteria: `#${{i * {step}}}` }});\n}}\n"
        ),
    );
    let tested = project.test(&["a_test.ts"]);
    let result = &tested.results()[0];
    assert_eq!((&result["status"], tested.output.code), (&json!("failed"), 1), "{}", tested.output);
    let mut all = Vec::new();
    collect_assertions(result, &mut all);
    assert!(all.len() >= count, "{result:#}");
    for assertion in all {
        assert!(assertion["passed"] == false && assertion["error"].is_string(), "{assertion}");
    }
}

/// All assertions anywhere in a result.
fn collect_assertions<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::Array(all)) = members.get("assertions") {
                found.extend(all);
            }
            members.values().for_each(|member| collect_assertions(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_assertions(item, found)),
        _ => {}
    }
}

#[test]
fn malformed_simulator_answer_is_never_sent() {
    let answer = |input: &str, achieved: bool| json!({"input": input, "goal_achieved": achieved});
    let mut answers = texts(&malformed_answers(&answer("Yes", true), &answer("No", false)));
    let shapes = ["42", "true", "null", "[]", r#"{"input": 3}"#, r#"{"input": "a", "message": "b"}"#];
    answers.extend(shapes.map(str::to_string));
    let count = answers.len();
    let user = FakeAgent::with_run(move |run, request| {
        let told = request.last_user_json();
        let text = &answers[requested_number(told["persona"].as_str().expect("a persona"))];
        run.text(text).finished()
    });
    let target = FakeAgent::with_text("Hello.");
    let cases: Vec<Value> = (0..count)
        .map(|place| {
            json!({
                "id": place.to_string(),
                "simulator": {"use": "user", "options": {"metadata": {"persona": format!("#{place}")}}},
                "checkpoints": [{"id": "greets", "assertion": {"type": "contains", "value": "Hello"}}],
                "max_turns": 1,
            })
        })
        .collect();
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{target}' }}\nagents: {{ user: {{ endpoint: '{user}' }} }}\n"
    ));
    let tested = run_cases(project, &cases);
    assert_eq!(target.requests().len(), 0, "nothing is said to the agent");
    assert_eq!(tested.results().len(), count);
    for result in tested.results() {
        assert_eq!(result["failure"]["kind"], "simulator_error", "{result}");
    }
}

#[test]
fn truncated_generator_list_runs_nothing() {
    let all = [
        r#"[{"id": "G1", "input": "hi"}, {"id": "G2", "input": "bye"}, {"id":"#,
        r#"{"cases": [{"id": "G1", "input": "hi"}"#,
        "{\"id\": \"G1\", \"input\": \"hi\"}\n{\"id\": \"G2\", \"input\": \"bye\"}",
        "Here you are:\n```json\n[{\"id\": \"G1\", \"input\": \"hi\"}]\n```",
        r#"{"cases": [{"id": "G1", "input": "hi"}], "cases": []}"#,
    ];
    let generator = FakeAgent::with_run(move |run, request| {
        let told = request.last_user_json();
        let text = all[usize::try_from(told["nth"].as_u64().expect("a number")).expect("small")];
        run.text(text).finished()
    });
    let target = FakeAgent::with_text("Hello.");
    let project = Project::with_config(&format!(
        "agents: {{ shop: {{ endpoint: '{target}' }}, gen: {{ endpoint: '{generator}' }} }}\n"
    ));
    for place in 0..all.len() {
        let output = project.hotseat(&["test", "-n", "shop", "-i", &format!("agents:gen?nth={place}")]);
        assert!(output.code > 1, "{output}");
        assert!(output.stderr.contains("failed to parse generator response as JSON: it "), "{output}");
    }
    assert_eq!(target.requests().len(), 0);
}
