//! Language models that the test serves to its agent: scripts, addresses, calls in the trace, and faults.

use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, ModelClient};
use serde_json::{Value, json};

use crate::common::{Project, TestRun};

/// The model of most tests: it looks up an order with a tool, and tells the result.
const CLERK: &str = "models:
  main:
    rules:
      - when: { user: 'order (?<order>\\S+)', offered: find_order }
        reply:
          tool_calls: [{ name: find_order, arguments: { id: '{{ order }}' } }]
          usage: { input_tokens: 30, output_tokens: 10 }
      - when: { tool_result: { tool: find_order } }
        reply: { text: 'It costs {{ results.find_order.price }}.', usage: { input_tokens: 50, output_tokens: 5 } }
";

/// An agent with a tool, which reaches its model at the address in a header of the request.
fn agent() -> FakeAgent {
    FakeAgent::start(|request: &FakeRequest| {
        let model = ModelClient::new(request.header("x-model").expect("the address of the model"));
        let text = request.json()["text"].as_str().unwrap_or_default().to_string();
        FakeReply::json(200, &json!({"reply": converse(&model, &text)}))
    })
}

/// Lets the model call the tool until it replies with a text.
fn converse(model: &ModelClient, text: &str) -> String {
    let mut messages = vec![json!({"role": "user", "content": text})];
    for _ in 0..5 {
        let reply = match model.call_with_retries(&messages, &["find_order"]) {
            Ok(reply) => reply,
            Err((status, words)) => return format!("failed with {status}: {words}"),
        };
        let calls = reply["tool_calls"].as_array().cloned().unwrap_or_default();
        if calls.is_empty() {
            return reply["content"].as_str().unwrap_or_default().to_string();
        }
        messages.push(reply);
        for call in calls {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            let content = match serde_json::from_str::<Value>(arguments) {
                Ok(_) => json!({"price": 42}).to_string(),
                Err(_) => json!({"price": "unknown"}).to_string(),
            };
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": content}));
        }
    }
    "gave up".to_string()
}

fn target(agent: &FakeAgent) -> String {
    format!(
        "target:\n  type: http\n  endpoint: {}\n  headers: {{ x-model: '${{MODELS.main.url}}' }}\n  body: {{ text: '{{{{message}}}}' }}\n  map: {{ reply: $.reply }}\n",
        agent.url()
    )
}

fn project(agent: &FakeAgent, models: &str, suite: &str) -> Project {
    Project::with_config(&(target(agent) + models)).suite("a", suite)
}

fn run(models: &str, suite: &str) -> TestRun {
    project(&agent(), models, suite).test(&[])
}

#[track_caller]
fn assert_failure(run: &TestRun, name: &str, kind: &str, words: &[&str]) {
    let failure = run.failure(name);
    assert_eq!(failure["kind"], kind, "{failure:#}");
    let text = format!("{} {}", failure["message"], failure["detail"]);
    for words in words {
        assert!(text.contains(words), "{words:?} is not in {failure:#}");
    }
}

#[test]
fn an_agent_answers_with_a_scripted_model_and_its_calls_are_in_the_report() {
    let agent = agent();
    let suite = "name: a
turns:
  - user: order o-7
    assert: { text: { must_match: '^It costs 42\\.$' }, budget: { max_tokens: 95 } }
";
    let project = project(&agent, CLERK, suite);
    let run = project.test(&["--trace", "traces"]);
    run.assert_all_passed();
    let usage = &run.case("a")["turns"][0]["spent"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(80), &json!(15)), "{usage:#}");
    let trace = std::fs::read_dir(project.workspace.path("traces")).unwrap().next().unwrap().unwrap().path();
    let trace = std::fs::read_to_string(trace).unwrap();
    let kinds: Vec<&str> = ["llm.call.started", "llm.call.completed"]
        .into_iter()
        .flat_map(|kind| trace.match_indices(kind).map(move |_| kind))
        .collect();
    assert_eq!(kinds.len(), 4, "{trace}");
    assert!(trace.contains("gpt-5"), "{trace}");
}

#[test]
fn the_script_can_be_a_file_and_a_case_can_replace_it() {
    let rules = CLERK.replace("models:\n  main:\n    rules:", "rules:");
    let own = "name: own\nmodels: { main: { rules: [{ reply: 'Something else.' }] } }\nturns: [{ user: order o-1, assert: { text: { must_match: else } } }]\n";
    let shared = "name: shared\nturns: [{ user: order o-1, assert: { text: { must_match: '42' } } }]\n";
    let project =
        project(&agent(), "models: { main: { script: clerk.yaml } }\n", &format!("{own}---\n{shared}"));
    project.file("clerk.yaml", &rules).test(&[]).assert_all_passed();
}

#[test]
fn a_request_without_a_rule_is_an_error_of_the_test() {
    let run = run(CLERK, "name: a\nturns: [{ user: hello }]\n");
    assert_failure(
        &run,
        "a",
        "test_error",
        &["served model `main` has no reply", "no rule of main answers", "not rule 1", "add a rule"],
    );
}

#[test]
fn conversations_at_the_same_time_have_their_own_rules() {
    let suite: Vec<String> = (0..40)
        .map(|number| {
            format!(
                "name: c{number}\nturns:\n  - {{ user: order o-{number}, assert: {{ text: {{ must_match: '42' }} }} }}\n"
            )
        })
        .collect();
    let run = project(&agent(), CLERK, &suite.join("---\n")).test(&["--parallel", "32"]);
    run.assert_all_passed();
}

#[test]
fn a_program_receives_the_address_in_its_environment() {
    let target = "target:\n  type: command\n  protocol: text\n  command: [sh, -c, 'echo $OPENAI_BASE_URL']\n  env: { OPENAI_BASE_URL: '${MODELS.main.url}' }\n";
    let suite = "name: a\nturns: [{ user: x, assert: { text: { must_match: '^http://127\\.0\\.0\\.1:\\d+/models/main/[0-9a-f]{32}$' } } }]\n";
    Project::with_config(&(target.to_string() + CLERK)).suite("a", suite).test(&[]).assert_all_passed();
}

#[test]
fn an_agent_that_is_started_once_needs_conversations_one_after_the_other() {
    let start = "  start: { command: ['true'], env: { MODEL: '${MODELS.main.url}' } }\n";
    let target = format!("target:\n  endpoint: http://127.0.0.1:9/\n{start}");
    let output = Project::with_config(&(target + CLERK))
        .suite("a", "name: a\nturns: [{ user: hi }]\n")
        .hotseat(&["test", "--parallel", "4"]);
    let text = output.stderr;
    assert!(text.contains("receives the address of a served model when it starts"), "{text}");
    assert!(text.contains("set `parallel: 1`, or pass `${MODELS.NAME.url}`"), "{text}");
}

#[test]
fn faults_reach_the_agent() {
    let case = |name: &str, fault: &str, text: &str| {
        format!(
            "name: {name}\nmodels: {{ main: {{ faults: [{{ do: {fault} }}] }} }}\nturns: [{{ user: order o-1, assert: {{ text: {{ must_match: '{text}' }} }} }}]\n"
        )
    };
    let models = CLERK.replace("    rules:", "    use: always\n    rules:");
    let suite = [
        case("limited", "{ rate_limit_ms: 10 }", "costs 42"),
        case("overloaded", "overloaded", "costs 42"),
        case("lost", "lost_answer", "costs 42"),
        case("cut", "truncate", "costs 42"),
        case("garbage", "garbage", "costs 42"),
        case("late", "{ delay_ms: 20 }", "costs 42"),
        case("refused", "{ http: 403 }", "failed with 403: the test injected a fault"),
        case("empty", "empty", "^$"),
        case("malformed", "malformed_arguments", "costs unknown"),
    ];
    let run = run(&models, &suite.join("---\n"));
    run.assert_all_passed();
}

#[test]
fn a_fault_that_is_not_reached_is_an_error_of_the_test() {
    let suite = "name: a
models: { main: { faults: [{ nth: 3, do: overloaded }, { do: malformed_arguments }, { nth: 2, do: malformed_arguments }] } }
turns: [{ user: order o-1 }]
";
    let run = run(CLERK, suite);
    assert_failure(
        &run,
        "a",
        "test_error",
        &[
            "fault `overloaded` of the served model `main` was not reached: no call was selected (a.test.yaml:2:",
            "fault `malformed_arguments` of the served model `main` was not reached: no selected reply called a tool (a.test.yaml:2:",
        ],
    );
}

#[test]
fn mistakes_have_their_place() {
    let agent = agent();
    for (models, suite, words) in [
        (
            "models: { main: { faults: [{ do: empty }] } }\n",
            "name: a\n",
            "the model `main` needs a `script` or `rules`",
        ),
        (
            "models: { main: { script: none.yaml } }\n",
            "name: a\nturns: [{ user: x }]\n",
            "the script `none.yaml` was not found",
        ),
        ("models: { 'a b': { rules: [{ reply: x }] } }\n", "name: a\n", "`a b` is not a name of a model"),
        (
            "models: { main: { rules: [{ reply: x }], script: y } }\n",
            "name: a\n",
            "has a `script` and `rules`",
        ),
        ("models: { main: { rules: [{ when: { user: '(' }, reply: x }] } }\n", "name: a\n", "`(`"),
        (
            "models: { main: { rules: [{ reply: x }], faults: [{ nth: 1, every: 2, do: empty }] } }\n",
            "name: a\n",
            "one of `nth`, `every` and `rate`",
        ),
        (
            "models: { maim: { rules: [{ reply: x }] } }\n",
            "name: a\nturns: [{ user: x }]\n",
            "unknown served model `main`",
        ),
    ] {
        let output = project(&agent, models, suite).hotseat(&["test"]);
        let text = output.stderr;
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
}
