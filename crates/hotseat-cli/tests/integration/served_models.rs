//! Language models that the test serves to its agent: scripts, addresses, calls in the trace, and faults.

use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, ModelClient, post};
use serde_json::{Value, json};

use crate::common::http_agents::{asked_text, http_agent, model_client, model_target};
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
    http_agent(|request| converse(&model_client(request), &asked_text(request)))
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
            let text = reply["content"].as_str().unwrap_or_default();
            return if text.is_empty() { "said nothing".to_string() } else { text.to_string() };
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

fn project(agent: &FakeAgent, models: &str, suite: &str) -> Project {
    Project::with_config(&(model_target(agent) + models)).suite("a", suite)
}

fn run(models: &str, suite: &str) -> TestRun {
    project(&agent(), models, suite).test(&[])
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
    let run = project.test(&["--trace", "trace.jsonl"]);
    run.assert_all_passed();
    let usage = &run.case("a")["turns"][0]["spent"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(80), &json!(15)), "{usage:#}");
    let trace = std::fs::read_to_string(project.workspace.path("trace.jsonl")).unwrap();
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
    let agent = agent();
    let project =
        project(&agent, "models: { main: { script: clerk.yaml } }\n", &format!("{own}---\n{shared}"));
    project.file("clerk.yaml", &rules).test(&[]).assert_all_passed();
}

#[test]
fn a_request_without_a_rule_is_an_error_of_the_test() {
    let run = run(CLERK, "name: a\nturns: [{ user: hello }]\n");
    run.assert_failure(
        "a",
        "test_error",
        &["served model `main` has no reply", "no rule of main answers", "not rule 1", "add a rule"],
    );
}

/// A model behind a provider calls tools of the request only; a script may call any, for example a misspelt one.
#[test]
fn a_scripted_call_of_a_tool_that_is_not_offered_has_a_note() {
    let rules = "models:
  main:
    rules:
      - reply: { tool_calls: [{ name: find_ordr, arguments: { id: o-7 } }, { name: find_order, arguments: { id: o-7 } }] }
      - when: { tool_result: { tool: find_order } }
        reply: Done.
";
    let run = run(rules, "name: a\nturns: [{ user: hi, assert: { text: { must_match: Done } } }]\n");
    run.assert_all_passed();
    let notes = run.case("a")["turns"][0]["notes"].to_string();
    let words = "the served model `main` calls the tool `find_ordr`, which its request does not offer; did you mean `find_order`?";
    assert_eq!(notes.matches("does not offer").count(), 1, "{notes}");
    assert!(notes.contains(words), "{notes}");
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
fn a_test_in_typescript_knows_the_address() {
    let agent = agent();
    let script = r#"
import { describe, it, agent, user, expect } from "hotseat";
describe("addresses", () => {
  it("are known before the first turn", { models: { other: { rules: [{ reply: "Hello." }] } } }, () => {
    expect(agent.modelUrl("main")).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/models\/main\/[0-9a-f]{32}$/);
    expect(agent.modelUrl("other")).toMatch(/\/models\/other\//);
    user.says("order o-1");
    expect(agent.response.text).toContain("42");
  });
  it("of unknown models are errors", () => { agent.modelUrl("mian"); });
});
"#;
    let run =
        Project::with_config(&(model_target(&agent) + CLERK)).file("a_test.ts", script).test(&["a_test.ts"]);
    assert_eq!(run.case("addresses > are known before the first turn")["status"], "passed");
    run.assert_failure(
        "addresses > of unknown models are errors",
        "script_error",
        &["this case has no served model `mian`"],
    );
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
        case("empty", "empty", "^said nothing$"),
        case("malformed", "malformed_arguments", "costs unknown"),
    ];
    let agent = agent();
    let run = project(&agent, &models, &suite.join("---\n")).test(&[]);
    run.assert_all_passed();
    let injected = &run.case("limited")["turns"][0]["model_faults"];
    let expected = "rate_limit with retry-after of 10 ms";
    assert_eq!(*injected, json!([{"model": "main", "call": 1, "fault": expected}]));
}

#[test]
fn the_console_shows_faults_and_unused_rules() {
    let suite = "name: a
models:
  main:
    rules: [{ reply: Hello. }, { name: later, when: { user: later }, reply: Later. }]
    faults: [{ do: overloaded }]
turns: [{ user: hi, assert: { text: { must_match: '^Hello' } } }]
";
    let run = run("", suite);
    run.assert_all_passed();
    let notes = run.case("a")["turns"][0]["notes"].to_string();
    assert!(notes.contains("the served model `main` did not use rule 2 `later` (a.test.yaml:4:"), "{notes}");
    let agent = agent();
    let project = project(&agent, "", suite);
    let text = project.hotseat(&["test", "-v"]).stdout;
    project.hotseat(&["recheck", "last", "-o", "again.json"]);
    let again = project.workspace.read_json("again.json");
    assert_eq!(again["results"][0]["turns"][0]["notes"].to_string(), notes);
    for expected in ["Model main: fault `overloaded` in call 1", "did not use rule 2 `later`"] {
        assert!(text.contains(expected), "{expected:?} is not in {text}");
    }
}

#[test]
fn a_fault_that_is_not_reached_is_an_error_of_the_test() {
    let suite = "name: a
models: { main: { faults: [{ nth: 3, do: overloaded }, { do: malformed_arguments }, { nth: 2, do: malformed_arguments }] } }
turns: [{ user: order o-1 }]
";
    let run = run(CLERK, suite);
    run.assert_failure("a",
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
            "the model `main` needs a `script`, `rules` or a `type`",
        ),
        (
            "models: { main: { script: none.yaml } }\n",
            "name: a\nturns: [{ user: x }]\n",
            "`none.yaml` was not found\n --> hotseat.yaml:",
        ),
        ("models: { 'a b': { rules: [{ reply: x }] } }\n", "name: a\n", "`a b` is not a name of a model"),
        (
            "models: { main: { rules: [{ reply: x }], script: y } }\n",
            "name: a\n",
            "has a `script` and `rules`",
        ),
        (
            "models: { main: { rules: [{ when: { user: '(' }, reply: x }] } }\n",
            "name: a\n",
            "hotseat.yaml:7:",
        ),
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

/// The template engine finds unknown filters and tests only when it renders.
#[test]
fn mistakes_in_templates_are_found_before_the_agent_is_contacted() {
    let agent = agent();
    for (reply, words) in [
        ("It is {{ user | uper }}", "the filter `uper`, which does not exist"),
        ("{% if user is odd or turn is big %}a{% endif %}", "the test `big`, which does not exist"),
        ("{{ user | upper", "this template is invalid: syntax error: "),
        ("{% if user %}", "this template is invalid: syntax error: "),
    ]
    .map(|(text, words)| (format!("\"{text}\""), words))
    .into_iter()
    .chain([(
        "{ tool_calls: [{ name: '{{ user }}' }] }".to_string(),
        "the `name` of a tool call cannot be a template: {{ user }}",
    )]) {
        let rules = format!("rules:\n  - reply: x\n    delay_ms: 1\n  - reply: {reply}\n");
        let served =
            project(&agent, "models: { main: { script: script.yaml } }\n", "name: a\nturns: [{ user: x }]\n")
                .file("script.yaml", &rules);
        let embedded = Project::with_config("target: { type: embedded, agent: . }\n")
            .file("agent.yaml", "name: Clerk\n")
            .file("script.yaml", &rules)
            .suite("a", "name: a\nturns: [{ user: x }]\n");
        for project in [served, embedded] {
            let output = project.hotseat(&["test"]);
            let line = format!("4 |   - reply: {reply}");
            output.assert_stderr(2, &[words, "script.yaml:4:", &line]);
        }
    }
    assert_eq!(agent.requests().len(), 0);
}

/// A provider that answers chat completions, and repeats the text of the last message.
fn provider() -> FakeAgent {
    FakeAgent::start(|request: &FakeRequest| {
        if request.header("authorization") != Some("Bearer provider-key-1") {
            return FakeReply::json(401, &json!({"error": {"message": "the key is wrong"}}));
        }
        let text = request.json()["messages"][0]["content"].as_str().unwrap_or_default().to_string();
        let message = json!({"role": "assistant", "content": format!("You said {text}.")});
        let usage = json!({"prompt_tokens": 7, "completion_tokens": 3});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        FakeReply::json(200, &json!({"id": "chatcmpl-1", "choices": [choice], "usage": usage}))
    })
}

fn relayed(provider: &FakeAgent) -> String {
    format!(
        "models: {{ main: {{ type: relay, url: '{provider}', headers: {{ authorization: 'Bearer provider-key-1' }}, record: recordings/main.jsonl }} }}\n"
    )
}

const REPLAYED: &str = "models: { main: { type: replay, file: recordings/main.jsonl } }\n";

#[test]
fn relayed_answers_are_recorded_and_replayed_without_the_provider() {
    let agent = agent();
    let cases: Vec<String> = (0..40)
        .map(|number| {
            format!("name: c{number}\nturns: [{{ user: hello {number}, assert: {{ text: {{ must_match: 'You said hello {number}' }}, budget: {{ max_tokens: 10 }} }} }}]\n")
        })
        .collect();
    let provider = provider();
    let recorded = project(&agent, &relayed(&provider), &cases.join("---\n"));
    let run = recorded.test(&["--parallel", "32"]);
    run.assert_all_passed();
    assert_eq!(run.case("c7")["turns"][0]["spent"]["total_tokens"], 10);
    let text = std::fs::read_to_string(recorded.workspace.path("recordings/main.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 41, "{text}");
    assert!(!text.contains("provider-key-1"), "{text}");
    drop(provider);

    let replayed = project(&agent, REPLAYED, &cases.join("---\n")).file("recordings/main.jsonl", &text);
    let run = replayed.test(&["--parallel", "32"]);
    run.assert_all_passed();
    assert_eq!(run.case("c7")["turns"][0]["spent"]["total_tokens"], 10);
}

#[test]
fn a_request_that_was_not_recorded_names_the_nearest_one() {
    let agent = agent();
    let suite = |text: &str| format!("name: a\nturns: [{{ user: {text} }}]\n");
    let provider = provider();
    let recorded = project(&agent, &relayed(&provider), &suite("hello"));
    recorded.test(&[]).assert_all_passed();
    let text = std::fs::read_to_string(recorded.workspace.path("recordings/main.jsonl")).unwrap();
    let file = "recordings/main.jsonl";
    let run = project(&agent, REPLAYED, &suite("help")).file(file, &text).test(&[]);
    let words = [
        "served model `main` has no reply: no recorded exchange fits its request to `chat/completions`",
        "the nearest recorded request is in line 2: /messages/0/content: recorded",
        "record the case again",
    ];
    run.assert_failure("a", "test_error", &words);
    let ignoring =
        "models: { main: { type: replay, file: recordings/main.jsonl, ignore: [/messages/0/content] } }\n";
    project(&agent, ignoring, &suite("help")).file(file, &text).test(&[]).assert_all_passed();
    let other = suite("hello").replace("name: a", "name: b");
    let run = project(&agent, REPLAYED, &other).file(file, &text).test(&[]);
    run.assert_failure(
        "b",
        "test_error",
        &["the recording has no conversation `a.test.yaml#b`", "a.test.yaml#a"],
    );
}

#[test]
fn a_case_that_is_recorded_again_replaces_only_its_own_exchanges() {
    let (agent, provider) = (agent(), provider());
    let suite = "name: a\nturns: [{ user: one }]\n---\nname: b\nturns: [{ user: two }]\n";
    let project = project(&agent, &relayed(&provider), suite);
    project.test(&[]).assert_all_passed();
    let path = project.workspace.path("recordings/main.jsonl");
    let before = std::fs::read_to_string(&path).unwrap();
    project.test(&["a.test.yaml:4"]).assert_all_passed();
    let after = std::fs::read_to_string(&path).unwrap();
    let lanes = |text: &str| {
        text.lines().map(|line| line.split("\"took_ms\"").next().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(lanes(&before), lanes(&after));
}

#[test]
fn faults_break_relayed_and_replayed_answers() {
    let (agent, provider) = (agent(), provider());
    let case = |fault: &str| {
        format!(
            "name: {fault}\nmodels: {{ main: {{ faults: [{{ do: {fault} }}] }} }}\nturns: [{{ user: hello, assert: {{ text: {{ must_match: 'You said hello' }} }} }}]\n"
        )
    };
    let faults = ["overloaded", "disconnect", "lost_answer", "truncate", "garbage"];
    let suite = faults.map(case).join("---\n");
    let recorded = project(&agent, &relayed(&provider), &suite);
    recorded.test(&[]).assert_all_passed();
    let text = std::fs::read_to_string(recorded.workspace.path("recordings/main.jsonl")).unwrap();
    drop(provider);
    project(&agent, REPLAYED, &suite).file("recordings/main.jsonl", &text).test(&[]).assert_all_passed();

    let output =
        project(&agent, REPLAYED, &case("empty")).file("recordings/main.jsonl", &text).hotseat(&["test"]);
    let expected = "the fault `empty` changes a reply, which only models with a script can do";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn an_ignored_member_that_is_no_pointer_is_an_error() {
    let agent = agent();
    for model in [
        "{ type: replay, file: a.jsonl, ignore: [messages/0/content] }",
        "{ type: relay, url: 'http://127.0.0.1:1', ignore: [/a, messages/0/content] }",
    ] {
        let case = format!("name: a\nmodels: {{ main: {model} }}\nturns: [{{ user: hello }}]\n");
        let output = project(&agent, "", &case).hotseat(&["test"]);
        for words in ["`messages/0/content` is no JSON Pointer", "did you mean `/messages/0/content`?"] {
            assert!(output.stderr.contains(words), "{output}");
        }
        assert!(output.stderr.contains("a.test.yaml:2:"), "{output}");
    }
}

/// Of two lists of messages, a model would see one, and the test the same one.
#[test]
fn a_repeated_key_in_a_request_is_refused() {
    let agent = http_agent(|request| {
        let url =
            format!("{}/chat/completions", request.header("x-model").expect("the address of the model"));
        let hello = r#"[{"role": "user", "content": "hello"}]"#;
        let body = format!(r#"{{"model": "m", "messages": {hello}, "messages": {hello}}}"#);
        let answer = post(&url, &[], &body).expect("an answer");
        answer.body
    });
    let suite =
        "name: a\nturns: [{ user: hello, assert: { text: { must_match: 'has a duplicate key' } } }]\n";
    project(&agent, CLERK, suite).test(&[]).assert_all_passed();
}

/// Providers refuse a history in which a call has no result, or several.
#[test]
fn an_agent_that_loses_or_repeats_a_tool_result_is_refused_as_by_providers() {
    let agent = http_agent(|request| {
        let model = model_client(request);
        let text = asked_text(request);
        let mut messages = vec![json!({"role": "user", "content": text})];
        let reply = model.call(&messages, &[]).expect("two calls");
        let ids: Vec<Value> = [0, 1].map(|index| reply["tool_calls"][index]["id"].clone()).into();
        messages.push(reply);
        let answered: &[usize] = match text.as_str() {
            "lose" => &[0],
            "repeat" => &[0, 1, 1],
            _ => &[0, 1],
        };
        messages.extend(
            answered
                .iter()
                .map(|&index| json!({"role": "tool", "tool_call_id": ids[index], "content": "ok"})),
        );
        match model.call(&messages, &[]) {
            Ok(reply) => reply["content"].clone(),
            Err((status, words)) => json!(format!("failed with {status}: {words}")),
        }
    });
    let models = "models: { main: { rules: [{ when: { call: 1 }, reply: { tool_calls: [book, pay] } }, { reply: Booked. }] } }\n";
    let case = |text: &str| {
        format!(
            "name: {text}\nturns: [{{ user: {text}, assert: {{ text: {{ must_match: '^Booked' }} }} }}]\n"
        )
    };
    let suite = ["complete", "lose", "repeat"].map(case).join("---\n");
    let run = project(&agent, models, &suite).test(&[]);
    assert_eq!(run.case("complete")["status"], "passed", "{:#}", run.case("complete"));
    for (name, problem) in
        [("lose", "of `pay` has no result"), ("repeat", "of `pay` has more than one result")]
    {
        run.assert_failure(name, "assertion", &["failed with 400", problem]);
        let notes = run.case(name)["turns"][0]["notes"].to_string();
        assert!(notes.contains("the served model `main` refused a request"), "{notes}");
        assert!(notes.contains(problem), "{notes}");
    }
}
