//! Usage and costs: reported by agents, priced by the project, limited by budgets.
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::Project;

/// A program that prints the user text as its output lines, so each case defines what its agent reports.
const AGENT: &str = r#"
while read -r line; do
  case $line in
    *two\ calls*) echo '{"type":"tool_call","name":"a","arguments":{},"result":1}'; echo '{"type":"tool_call","name":"b","arguments":{},"result":1}';;
  esac
  case $line in
    *priced*) echo '{"type":"usage","usage":{"model":"m-1","prompt_tokens":1000,"completion_tokens":100}}';;
    *foreign*) echo '{"type":"usage","usage":{"model":"m-9","input_tokens":1000,"output_tokens":100}}';;
    *huge*) echo '{"type":"usage","usage":{"prompt_tokens":18446744073709551615,"completion_tokens":18446744073709551615}}';;
    *mixed*) echo '{"type":"usage","usage":[{"model":"m-1","input_tokens":1000,"output_tokens":100},{"model":"m-1","input_tokens":100000}]}';;
    *cached*) echo '{"type":"usage","usage":{"model":"m-1","input_tokens":1,"cache_read_input_tokens":100,"cache_creation_input_tokens":50,"output_tokens":1}}';;
    *below*) echo '{"type":"usage","usage":{"total_tokens":1,"input_tokens":50,"output_tokens":60}}';;
    *twice*) echo '{"type":"usage","usage":{"total_tokens":10}}'; echo '{"type":"usage","usage":{"total_tokens":10}}'; echo '{"type":"usage","usage":{"total_tokens":10}}';;
    *half*) echo '{"type":"usage","usage":{"completion_tokens":5}}';;
    *tenth*) echo '{"type":"usage","usage":{"total_tokens":1,"cost":0.1}}';;
    *costtext*) echo '{"type":"usage","usage":{"prompt_tokens":3,"completion_tokens":2,"model":"m-1","cost":"0.02"}}';;
    *costnegative*) echo '{"type":"usage","usage":{"prompt_tokens":3,"completion_tokens":2,"model":"m-1","total_cost":-1}}';;
    *tiny*) echo '{"type":"usage","usage":{"total_tokens":9,"cost":0.000021}}';;
    *fifth*) echo '{"type":"usage","usage":{"total_tokens":1,"cost":0.2}}';;
    *counted*) echo '{"type":"usage","usage":{"prompt_tokens":1000,"completion_tokens":100}}';;
  esac
  echo '{"type":"text","text":"hello"}'
  echo '{"type":"done"}'
done
"#;

const PROJECT: &str = r#"
target:
  type: command
  command: ["sh", "agent.sh"]
connectors:
  fast:
    type: openai
    model: m-1
    price: { input: 3, output: 15 }
"#;

fn project(suite: &str) -> Project {
    Project::with_config(PROJECT).file("agent.sh", AGENT).suite("a", suite)
}

/// Single-turn cases as rows of `name | user text | assertion`.
fn cases(rows: &[(&str, &str, &str)]) -> Project {
    let case = |(name, said, assert): &(&str, &str, &str)| {
        format!("name: {name}\nturns: [{{ user: {said}, assert: {assert} }}]\n")
    };
    project(&rows.iter().map(case).collect::<Vec<_>>().join("---\n"))
}

#[test]
fn budgets_pass_and_fail() {
    let project = cases(&[
        ("holds", "priced", "{ budget: { max_tokens: 1100, max_cost: 0.0045, max_tool_calls: 0 } }"),
        (
            "typed holds",
            "priced two calls",
            "[{ type: max_tokens, value: 1100 }, { type: max_cost, value: 0.0045 }, { type: max_tool_calls, value: 2 }]",
        ),
        ("too many tokens", "priced", "{ budget: { max_tokens: 1099 } }"),
        ("too dear", "priced", "{ type: max_cost, value: 0.0044 }"),
        ("too many calls", "two calls", "{ budget: { max_tool_calls: 1 } }"),
        ("negated", "priced", "{ type: max_tokens, value: 1000, negate: true }"),
    ]);
    let tested = project.test(&[]);
    for name in ["holds", "typed holds", "negated"] {
        assert_eq!(tested.case(name)["status"], "passed", "{}", tested.output);
    }
    let found = |name: &str| tested.case(name)["turns"][0]["assertions"][0]["actual"].clone();
    assert_eq!(tested.failure("too many tokens")["kind"], "assertion");
    assert_eq!(found("too many tokens"), "1100 tokens");
    assert_eq!(tested.failure("too dear")["kind"], "assertion");
    assert_eq!(found("too dear"), "0.004500");
    assert_eq!(tested.failure("too many calls")["kind"], "assertion");
    assert_eq!(found("too many calls"), "2: \n- turn 1: a\n- turn 1: b");
}

#[test]
fn unreported_usage_errors_budget_checks() {
    let project = cases(&[
        ("tokens", "silent", "{ budget: { max_tokens: 1000000 } }"),
        ("negated", "silent", "{ type: max_tokens, value: 1, negate: true }"),
        ("cost", "silent", "{ budget: { max_cost: 1000 } }"),
        ("no price", "foreign", "{ budget: { max_cost: 1000 } }"),
        ("no model", "counted", "{ type: max_cost, value: 1000 }"),
        ("text", "costtext", "{ type: max_cost, value: 1000 }"),
        ("negative", "costnegative", "{ type: max_cost, value: 1000 }"),
        ("below parts", "below", "{ type: max_tokens, value: 1000 }"),
        ("one part", "half", "{ type: max_tokens, value: 1000 }"),
    ]);
    let tested = project.test(&[]);
    for (name, words) in [
        ("below parts", "the reported usage of turn 1 cannot be used"),
        ("one part", "the reported usage of turn 1 cannot be used"),
        ("tokens", "neither the agent nor a model reports the usage of turn 1"),
        ("negated", "neither the agent nor a model reports the usage of turn 1"),
        ("cost", "neither the agent nor a model reports the usage of turn 1"),
        ("no price", "the tokens of `m-9` have no price; give its connector a `price`"),
        ("text", "`usage.cost` of turn 1 is \"0.02\", expected a number of at least 0"),
        ("negative", "`usage.total_cost` of turn 1 is -1, expected a number of at least 0"),
        ("no model", "the model and the price of the tokens of turn 1 are unknown"),
    ] {
        let failure = tested.assert_fault(name, "usage_error", "test");
        assert!(failure["message"].as_str().is_some_and(|message| message.contains(words)), "{failure}");
        assert!(tested.case(name)["turns"][0]["assertions"][0]["error"].is_string());
    }
}

#[test]
fn case_budget_covers_all_turns() {
    let suite = "
name: together
turns: [{ user: priced }, { user: priced }]
assert: { budget: { max_tokens: 2200 } }
---
name: too much together
turns: [{ user: priced }, { user: priced, assert: { budget: { max_tokens: 1100 } } }]
assert: { budget: { max_tokens: 2199 } }
---
name: partly known
turns: [{ user: priced }, { user: silent }]
assert: { budget: { max_tokens: 5000 } }
---
name: known to be too much
turns: [{ user: priced }, { user: silent }]
assert: { budget: { max_tokens: 500 } }
";
    let tested = project(suite).test(&[]);
    assert_eq!(tested.case("together")["status"], "passed", "{}", tested.output);
    assert_eq!(tested.failure("too much together")["kind"], "assertion");
    assert_eq!(tested.failure("partly known")["kind"], "usage_error");
    assert_eq!(tested.failure("known to be too much")["kind"], "assertion");
    let found = &tested.case("known to be too much")["assertions"][0]["actual"];
    assert_eq!(found, "1100 tokens or more");
}

/// Agents of all protocols that report 30 tokens before or with an error: the tokens are spent, in the run and in its replay.
#[test]
fn usage_of_turns_with_an_error_counts() {
    let usage = || json!({"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30});
    let ag_ui = FakeAgent::with_run(move |run, _| {
        let ended =
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "error": "boom", "usage": usage()});
        run.text("Hi.").raw_event(ended)
    });
    let http = FakeAgent::start(move |_| {
        FakeReply::json(200, &json!({"reply": "Hi.", "usage": usage(), "error": "boom"}))
    });
    let chat = |reply: Value| FakeAgent::start(move |_| FakeReply::json(200, &reply));
    let choice = |reason: &str| json!({"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": reason});
    let with_reason = chat(json!({"choices": [choice("error")], "usage": usage()}));
    let with_error =
        chat(json!({"error": {"message": "boom"}, "choices": [choice("stop")], "usage": usage()}));
    let program = format!(
        "while read -r line; do echo '{}'; echo '{}'; done",
        json!({"type": "usage", "usage": usage()}),
        json!({"type": "error", "message": "boom"})
    );
    let suite = "
name: expected
turns: [{ user: hi, expect_error: 'boom|error', assert: { budget: { max_tokens: 30 } } }]
---
name: too much
turns: [{ user: hi, expect_error: 'boom|error' }]
assert: { budget: { max_tokens: 29 } }
";
    for target in [
        format!("{{ endpoint: '{ag_ui}' }}"),
        format!(
            "{{ type: http, endpoint: '{http}', body: {{ text: '{{{{message}}}}' }}, map: {{ reply: $.reply, usage: $.usage, error: $.error }} }}"
        ),
        format!("{{ type: openai, base_url: '{with_reason}v1', model: m }}"),
        format!("{{ type: openai, base_url: '{with_error}v1', model: m }}"),
        "{ type: command, command: [sh, agent.sh] }".to_string(),
    ] {
        let project =
            Project::with_config(&format!("target: {target}\n")).file("agent.sh", &program).suite("a", suite);
        for options in [["--record", "rec"], ["-n", "replay:rec"]] {
            let tested = project.test(&options);
            assert_eq!(tested.case("expected")["status"], "passed", "{target}: {}", tested.output);
            assert_eq!(tested.case("expected")["turns"][0]["usage"], json!([usage()]), "{target}");
            tested.assert_failure("too much", "assertion", &["30 tokens"]);
            assert_eq!(tested.report["summary"]["spent"]["total_tokens"], 60, "{target}: {}", tested.output);
        }
    }
}

/// A turn without an orderly end has spent the tokens that were reported until then.
#[test]
fn usage_of_broken_turns_counts() {
    let program = "read -r line; echo '{\"type\":\"usage\",\"usage\":{\"total_tokens\":30}}'; exit 3";
    let tested = Project::with_config("target: { type: command, command: [sh, agent.sh] }\n")
        .file("agent.sh", program)
        .suite("a", "name: a\nturns: [{ user: hi }]\n")
        .test(&[]);
    tested.assert_failure("a", "protocol_error", &["without `done`"]);
    assert_eq!(tested.case("a")["spent"]["total_tokens"], 30, "{}", tested.output);
}

#[test]
fn inner_budget_overrides_outer() {
    let suite = "
name: own
turns: [{ user: priced, assert: { budget: { max_tokens: 2000 } } }]
";
    let text = PROJECT.replace("connectors:", "  turn_assert: { budget: { max_tokens: 1 } }\nconnectors:");
    let project = Project::with_config(&text).file("agent.sh", AGENT).suite("a", suite);
    project.test(&[]).assert_all_passed();
}

#[test]
fn every_report_contains_usage() {
    let project = project(
        "
name: both
turns: [{ user: priced }, { user: priced }]
---
name: one
turns: [{ user: priced }]
",
    );
    let tested = project.test(&["-o", "r.html", "--trace", "trace.jsonl"]);
    tested.assert_all_passed();
    let spent = json!({"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100, "cost": 0.0045});
    assert_eq!(tested.case("both")["turns"][0]["spent"], spent);
    assert_eq!(tested.case("both")["spent"]["cost"], 0.009);
    assert_eq!(tested.report["summary"]["spent"]["total_tokens"], 3300);
    assert!(tested.output.stdout.contains("Tokens:    3300 (3000 in, 300 out)"), "{}", tested.output);
    assert!(tested.output.stdout.contains("Cost:      0.0135"), "{}", tested.output);
    let trace = project.workspace.read("trace.jsonl");
    let events: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let spent: Vec<&Value> = events.iter().filter(|event| event["type"] == "turn.spent").collect();
    assert_eq!(spent.len(), 3);
    assert_eq!(spent[0]["payload"]["spent"]["totalTokens"], 1100);
}

/// The cost of an answer may be far below a cent; no output shows it as nothing.
#[test]
fn small_costs_are_shown() {
    let project = project("name: a\nturns: [{ user: tiny }]\n");
    let tested = project.test(&["-o", "one.json", "-o", "r.md"]);
    assert!(tested.output.stdout.contains("Cost:      0.000021"), "{}", tested.output);
    assert!(project.workspace.read("r.md").contains("0\\.000021"), "{}", project.workspace.read("r.md"));
    project.hotseat(&["compare", "one.json", "one.json"]).assert_stdout(0, &["cost: 0.000021 → 0.000021"]);
}

#[test]
fn embedded_agents_report_their_own_usage() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/expense/");
    let project = Project::with_config(&format!("target: {{ type: embedded, agent: {root} }}\n")).suite(
        "a",
        "name: counted\nturns: [{ user: I want to submit an expense, assert: { budget: { max_tokens: 5000 } } }]\n",
    );
    let tested = project.test(&[]);
    tested.assert_all_passed();
    let spent = &tested.case("counted")["spent"];
    assert_eq!(spent["estimated"], true, "a script does not count: {spent}");
    assert!(spent["total_tokens"].as_u64() > Some(10), "{spent}");
}

/// A provider that reports no tokens, or only some, leaves a budget undecided, as any agent does; `price` of the agent's file counts.
#[test]
fn unreported_tokens_of_embedded_agents_decide_no_budget() {
    let model = FakeAgent::start(|request: &FakeRequest| {
        let said = request.json()["messages"]
            .as_array()
            .and_then(|all| all.last()?["content"].as_str().map(str::to_string));
        let usage = match said.as_deref().unwrap_or_default() {
            "full" => {
                json!({"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 500}})
            }
            "half" => json!({"completion_tokens": 100}),
            "first" => json!({"prompt_tokens": 1000}),
            "uncounted" => json!({"prompt_tokens": 9, "completion_tokens": 0}),
            "zero" => json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
            _ => Value::Null,
        };
        let message = json!({"role": "assistant", "content": "Hi."});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        FakeReply::json(
            200,
            &json!({"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}),
        )
    });
    let agent = format!(
        "name: Clerk\nconnector: m\nconnectors:\n  m: {{ type: openai, base_url: '{model}v1', model: m-1, stream: false, price: {{ input: 3, output: 15, cached_input: 1 }} }}\n"
    );
    let mut suite = String::new();
    for said in ["full", "half", "first", "zero", "uncounted", "none"] {
        suite += &format!(
            "name: {said}\nturns: [{{ user: {said}, assert: {{ budget: {{ max_tokens: 1100, max_cost: 0.0035 }} }} }}]\n---\n"
        );
    }
    suite += "name: not exceeded\nturns: [{ user: none, assert: { budget: { max_tokens: 0 } } }]\n";
    let tested = Project::with_config("target: { type: embedded, agent: agent.yaml }\n")
        .file("agent.yaml", &agent)
        .suite("a", &suite)
        .test(&[]);
    assert_eq!(tested.case("full")["status"], "passed", "{}", tested.output);
    assert_eq!(tested.case("full")["spent"]["cost"], 0.0035);
    for name in ["half", "first", "zero", "uncounted", "none", "not exceeded"] {
        tested.assert_failure(name, "usage_error", &["a part of the usage of turn 1 is unknown"]);
    }
}

/// Servers that do not count report zero; a reply with a text has tokens.
#[test]
fn zero_tokens_for_a_reply_leave_budgets_undecided() {
    for usage in [
        json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
        json!({"prompt_tokens": 9, "completion_tokens": 0}),
        json!({"total_tokens": 0, "cost": 0}),
    ] {
        let shown = usage.to_string();
        let server = FakeAgent::start(move |_| {
            let message = json!({"role": "assistant", "content": "Hi."});
            let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
            FakeReply::json(200, &json!({"choices": [choice], "usage": usage}))
        });
        let config = format!("target: {{ type: openai, base_url: '{server}v1', model: m }}\n");
        let suite = "name: a\nturns: [{ user: hi, assert: { budget: { max_tokens: 100 } } }]\n---\nname: b\nturns: [{ user: hi, assert: { budget: { max_cost: 1 } } }]\n";
        let tested = Project::with_config(&config).suite("a", suite).test(&[]);
        for name in ["a", "b"] {
            assert_eq!(tested.failure(name)["kind"], "usage_error", "{shown}: {}", tested.output);
        }
        let notes = tested.case("a").to_string();
        assert!(notes.contains("counts no token of the reply"), "{shown}: {notes}");
    }
}

/// The price is that of the connector that a turn selects, not that of the agent.
#[test]
fn selected_connectors_have_their_own_prices() {
    let script =
        "use: always\nrules: [{ reply: { text: Hi., usage: { input_tokens: 10, output_tokens: 1 } } }]\n";
    let suite = "
name: usual
turns: [{ user: hi }]
---
name: dear
turns: [{ user: hi }, { user: hi, options: { connector: dear } }]
";
    let embedded = Project::with_config(
        "target: { type: embedded, agent: agent.yaml }
connectors:
  cheap: { type: scripted, script: model.yaml, price: { input: 1000, output: 0 } }
  dear: { type: scripted, script: model.yaml, price: { input: 100000, output: 0 } }
",
    )
    .file("agent.yaml", "name: Clerk\nconnector: cheap\n")
    .file("model.yaml", script)
    .suite("a", suite);
    // A server whose replies do not name their model.
    let server = FakeAgent::start(|_: &FakeRequest| {
        let message = json!({"role": "assistant", "content": "Hi."});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 1});
        let reply = json!({"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage});
        FakeReply::json(200, &reply)
    });
    let chat = Project::with_config(&format!(
        "target: {{ type: openai, base_url: '{server}v1', model: cheap-1, stream: false }}
connectors:
  cheap: {{ type: openai, base_url: '{server}v1', model: cheap-1, price: {{ input: 1000, output: 0 }} }}
  dear: {{ type: openai, base_url: '{server}v1', model: dear-1, price: {{ input: 100000, output: 0 }} }}
"
    ))
    .suite("a", suite);
    for project in [embedded, chat] {
        for (options, usual, dear) in [(&[][..], 0.01, 1.01), (&["-c", "dear"], 1.0, 2.0)] {
            let tested = project.test(options);
            tested.assert_all_passed();
            assert_eq!(tested.case("usual")["spent"]["cost"], usual, "{options:?}: {}", tested.output);
            assert_eq!(tested.case("dear")["spent"]["cost"], dear, "{options:?}: {}", tested.output);
        }
    }
}

#[test]
fn rejects_invalid_budgets_and_prices_before_run() {
    let text = PROJECT.replace("input: 3", "input: -3");
    Project::with_config(&text)
        .file("agent.sh", AGENT)
        .suite("a", "name: a\nturns: [{ user: hi }]\n")
        .hotseat(&["test"])
        .assert_stderr(2, &["`input` must be 0 or more"]);
    for (assert, words) in [
        ("{ budget: {} }", "`budget` asserts nothing"),
        ("{ budget: { max_token: 5 } }", "unknown key `max_token`"),
        ("{ budget: { max_tokens: 1.5 } }", "a whole number"),
        ("{ budget: { max_cost: -1 } }", "the cost limit must not be negative"),
        ("{ type: max_cost, value: -1 }", "the cost limit must not be negative"),
    ] {
        let output = cases(&[("a", "hi", assert)]).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{assert}: {output}");
        assert!(output.stderr.contains(words), "{assert}: {output}");
    }
}

#[test]
fn overflowing_usage_exceeds_every_budget() {
    let suite = "
name: great
turns: [{ user: huge }, { user: huge }]
assert: { budget: { max_tokens: 5000 } }
";
    let tested = project(suite).test(&[]);
    assert_eq!(tested.failure("great")["kind"], "assertion");
    assert_eq!(tested.case("great")["assertions"][0]["actual"], format!("{} tokens", u64::MAX));
    assert_eq!(tested.report["summary"]["spent"]["total_tokens"], u64::MAX);
}

#[test]
fn partial_usage_is_not_treated_as_total() {
    let tested = cases(&[("half", "half", "{ budget: { max_tokens: 5 } }")]).test(&[]);
    assert_eq!(tested.failure("half")["kind"], "usage_error");
}

#[test]
fn a_total_below_its_parts_leaves_budgets_undecided() {
    let tested = cases(&[
        ("tokens", "below", "{ budget: { max_tokens: 10 } }"),
        ("negated", "below", "{ type: max_tokens, value: 10, negate: true }"),
    ])
    .test(&[]);
    for name in ["tokens", "negated"] {
        assert_eq!(tested.failure(name)["kind"], "usage_error", "{name}: {}", tested.output);
    }
}

#[test]
fn several_reports_of_one_turn_are_added() {
    let tested = cases(&[
        ("exceeded", "twice", "{ budget: { max_tokens: 29 } }"),
        ("holds", "twice", "{ budget: { max_tokens: 30 } }"),
    ])
    .test(&[]);
    tested.assert_failure("exceeded", "assertion", &["30 tokens"]);
    assert_eq!(tested.case("holds")["status"], "passed", "{}", tested.output);
}

#[test]
fn uncountable_part_of_usage_leaves_budgets_undecided() {
    let tested = cases(&[
        ("tokens", "mixed", "{ budget: { max_tokens: 1100 } }"),
        ("cost", "mixed", "{ budget: { max_cost: 1 } }"),
        ("negated", "mixed", "{ type: max_tokens, value: 1100, negate: true }"),
        ("exceeded anyhow", "mixed", "{ budget: { max_tokens: 1099 } }"),
    ])
    .test(&[]);
    for name in ["tokens", "cost", "negated"] {
        tested.assert_failure(name, "usage_error", &["a part of the usage of turn 1 is unknown"]);
    }
    assert_eq!(tested.failure("exceeded anyhow")["kind"], "assertion");
    let found = &tested.case("exceeded anyhow")["turns"][0]["assertions"][0]["actual"];
    assert_eq!(found, "1100 tokens or more");
}

#[test]
fn run_without_usage_leaves_budget_of_its_turn_undecided() {
    for reports in [0, 1] {
        let agent = FakeAgent::with_run(move |run, request| {
            let run = match request.index {
                0 => run.tool_call("c", "pick", &json!({})),
                _ => run.text("Red."),
            };
            let usage = json!([{"model": "m", "inputTokens": 1, "outputTokens": 1}]);
            let end = json!({"type": "RUN_FINISHED", "usage": usage});
            if request.index == reports { run.raw_event(end).reply() } else { run.finished().reply() }
        });
        let suite = "name: a\ntools: [{ name: pick, answers: [{ content: red }] }]\nturns: [{ user: hi, assert: { budget: { max_tokens: 10 } } }]\n";
        let tested = Project::with_agent(&agent).suite("a", suite).test(&[]);
        tested.assert_failure("a", "usage_error", &["a part of the usage of turn 1 is unknown"]);
    }
}

#[test]
fn tokens_of_a_cache_count() {
    let tested = cases(&[
        ("holds", "cached", "{ budget: { max_tokens: 152 } }"),
        ("exceeded", "cached", "{ budget: { max_tokens: 151 } }"),
    ])
    .test(&[]);
    assert_eq!(tested.case("holds")["status"], "passed", "{}", tested.output);
    assert_eq!(tested.case("exceeded")["turns"][0]["assertions"][0]["actual"], "152 tokens");
}

#[test]
fn cost_sums_are_exact_for_partial_usage() {
    let suite = "
name: known
turns: [{ user: tenth }, { user: fifth }]
assert: { budget: { max_cost: 0.3 } }
---
name: partly known
turns: [{ user: tenth }, { user: fifth }, { user: silent }]
assert: { budget: { max_cost: 0.3 } }
";
    let tested = project(suite).test(&[]);
    assert_eq!(tested.case("known")["status"], "passed", "{}", tested.output);
    assert_eq!(tested.failure("partly known")["kind"], "usage_error");
}

#[test]
fn criterion_budget_errors_without_usage() {
    let case = |name: &str, more: &str, said: &str, negate: bool| {
        format!(
            "name: {name}
criteria:
  cheap: {{ match: [{{ budget: {{ max_tokens: 5000 }} }}{more}] }}
turns: [{{ user: {said}, assert: {{ type: satisfy, criteria: cheap, negate: {negate} }} }}]
"
        )
    };
    let broken = ", { text: { must_match: never } }";
    let suite = [
        case("holds", "", "priced", false),
        case("silent", "", "silent", false),
        case("negated", "", "silent", true),
        case("broken anyhow", broken, "silent", false),
    ];
    let tested = project(&suite.join("---\n")).test(&[]);
    assert_eq!(tested.case("holds")["status"], "passed", "{}", tested.output);
    for name in ["silent", "negated"] {
        let failure = tested.failure(name);
        assert_eq!(failure["kind"], "usage_error", "{failure:#}");
        let words = "neither the agent nor a model reports the usage of turn 1";
        assert!(failure["message"].as_str().unwrap().contains(words), "{failure:#}");
    }
    assert_eq!(tested.failure("broken anyhow")["kind"], "assertion");
}
