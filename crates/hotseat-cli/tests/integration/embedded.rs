//! Data that an embedded agent receives besides the user text.
use crate::common::Project;
use serde_json::json;

/// A scripted model that reports which data its system prompt contains.
const SCRIPT: &str = r#"
use: always
rules:
  - when: { system: 'application that runs this conversation: Be brief', user: rules }
    reply: I was told to be brief.
  - when: { system: 'Earlier messages of this conversation.*My name is Mary.*"name":"book".*"role":"tool".*Booked', user: before }
    reply: Mary has booked.
  - when: { system: '- scenario: refund\n- level: 3', user: now }
    reply: a refund of level 3
  - when: { system: '- scenario: refund\n- level: 1', user: now }
    reply: a refund of level 1
  - reply: Nobody told me.
"#;

fn project() -> Project {
    Project::with_config("target: { type: embedded, agent: . }\n")
        .file("agent.yaml", "name: Clerk\nsystem: You are a clerk.\n")
        .file("script.yaml", SCRIPT)
}

#[test]
fn model_receives_history_before_first_turn() {
    let case = json!({
        "id": "a",
        "messages": [
            {"role": "system", "content": "Be brief"},
            {"role": "user", "content": "My name is Mary"},
            {"role": "assistant", "tool_calls": [{"id": "c1", "name": "book", "arguments": {}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "Booked"},
        ],
        "turns": [
            {"input": "rules", "assert": [{"type": "equals", "value": "I was told to be brief."}]},
            {"input": "before", "assert": [{"type": "equals", "value": "Mary has booked."}]},
        ],
    });
    let tested = project().file("a.test.json", &case.to_string()).test(&[]);
    tested.assert_all_passed();
    // History is not a turn.
    assert_eq!(tested.case("a")["turns"].as_array().map(Vec::len), Some(2));
}

#[test]
fn model_receives_turn_metadata() {
    let is = |value: &str| json!([{"type": "equals", "value": value}]);
    let case = json!({
        "id": "a", "options": {"metadata": {"scenario": "refund", "level": 1}},
        "turns": [
            {"input": "now", "assert": is("a refund of level 1")},
            {"input": "now", "options": {"metadata": {"level": 3}}, "assert": is("a refund of level 3")},
            {"input": "now", "assert": is("a refund of level 1")},
        ],
    });
    project().file("a.test.json", &case.to_string()).test(&[]).assert_all_passed();
    let without = json!({"id": "a", "input": "now", "assert": is("Nobody told me.")});
    project().file("a.test.json", &without.to_string()).test(&[]).assert_all_passed();
}

#[test]
fn failed_tools_are_issues_of_their_turn() {
    let suite = "name: a\nturns: [{ user: hello }, { user: thanks }]\n";
    let project = Project::with_config("target: { type: embedded, agent: agent.yaml }\n")
        .file("agent.yaml", "name: Adder\ntools: [{ name: add, task: { steps: [{ mock: { returns: 2 } }] } }]\n")
        .file("script.yaml", "use: always\nrules:\n  - { when: { tool_result: { tool: subtract } }, reply: No. }\n  - { when: { user: thanks }, reply: Bye. }\n  - reply: { text: Let me see., tool_calls: [{ name: subtract, arguments: {} }] }\n")
        .suite("a", suite);
    let tested = project.test(&["--trace", "out/trace.jsonl"]);
    tested.assert_all_passed();
    let trace = project.workspace.read("out/trace.jsonl");
    let completed: Vec<&str> = trace.lines().filter(|line| line.contains("turn.completed")).collect();
    assert!(completed[0].contains("\"issues\":{\"toolFailures\":1}"), "{completed:#?}");
    assert!(!completed[1].contains("issues"), "{completed:#?}");
}

/// What another agent does for the agent under test counts, and so does a call that the agent may no longer make.
#[test]
fn calls_of_called_agents_are_calls() {
    let tool = "tools: [{ name: refund, task: { steps: [{ mock: { returns: { ok: 1 } } }] } }]\n";
    let suite =
        "name: a\nturns: [{ user: go, assert: { tools: { require: [helper], forbid: [refund] } } }]\n";
    let project = Project::with_config("target: { type: embedded, agent: agent.yaml }\n")
        .file("agent.yaml", "name: Main\ntools: [{ name: helper, agent: ./helper/agent.yaml }]\n")
        .file("helper/agent.yaml", &format!("name: Helper\n{tool}"))
        .file("script.yaml", "use: always\nrules:\n  - { when: { tool_result: { tool: helper } }, reply: Done. }\n  - reply: { tool_calls: [{ name: helper, arguments: {} }] }\n")
        .file("helper/script.yaml", "use: always\nrules:\n  - { when: { tool_result: { tool: refund } }, reply: Paid. }\n  - reply: { tool_calls: [{ name: refund, arguments: { n: 7 } }] }\n")
        .suite("a", suite);
    let tested = project.test(&[]);
    tested.assert_failure("a", "assertion", &["refund"]);
    let calls = &tested.case("a")["turns"][0]["tool_calls"];
    assert_eq!([&calls[0]["name"], &calls[1]["name"]], ["helper", "refund"], "{calls:#}");
    assert_eq!((&calls[1]["args"], &calls[1]["result"]), (&json!({"n": 7}), &json!({"ok": 1})));
    let last = Project::with_config("target: { type: embedded, agent: agent.yaml }\n")
        .file("agent.yaml", &format!("name: Main\nlimits: {{ max_moves: 1 }}\n{tool}"))
        .file("script.yaml", "use: always\nrules:\n  - reply: { text: I pay it back., tool_calls: [{ name: refund, arguments: {} }] }\n")
        .suite("a", "name: a\nturns: [{ user: go, assert: { tools: { forbid: [refund] } } }]\n");
    last.test(&[]).assert_failure("a", "assertion", &["refund"]);
}

/// A script without a rule is a mistake of the test, and no error that a case may expect of its agent.
#[test]
fn models_of_the_test_that_cannot_answer_are_test_errors() {
    let script = "rules: [{ when: { user: hello }, reply: Hi. }, { when: { user: down }, error: { kind: server, message: it is down } }]\n";
    let case =
        |name: &str, user: &str| format!("name: {name}\nturns: [{{ user: {user}, expect_error: . }}]\n");
    let tested = Project::with_config("target: { type: embedded, agent: agent.yaml }\n")
        .file("agent.yaml", "name: A\nlimits: { model: { attempts: 1 } }\n")
        .file("script.yaml", script)
        .suite("a", &case("a", "anything"))
        .suite("b", &case("b", "down"))
        .test(&[]);
    tested.assert_failure("a", "test_error", &["the model of the agent cannot answer", "no rule of"]);
    assert_eq!(tested.case("b")["status"], "passed", "{}", tested.output);
}

#[test]
fn tools_that_agent_executes_itself_are_refused() {
    let project = |own: &str| {
        Project::with_config("target: { type: embedded, agent: agent.yaml }\n")
            .file("agent.yaml", &format!("name: A\ntools: [{{ name: look, {own} }}]\n"))
            .file("script.yaml", "use: always\nrules: [{ when: { tool_result: { tool: look } }, reply: Done. }, { reply: { tool_calls: [look] } }]\n")
            .suite("a", "name: a\ntools: [{ name: look, answers: [{ content: 1 }] }]\nturns: [{ user: hello }]\n")
    };
    project("task: { steps: [{ mock: { returns: 2 } }] }")
        .hotseat(&["test"])
        .assert_stderr(2, &["executes `look` itself"]);
    project("client: true").test(&[]).assert_all_passed();
}

#[test]
fn prices_of_own_connectors_apply() {
    let project = |price: &str| {
        Project::with_config("target: { type: embedded, agent: agent.yaml }\nconnectors: { s: { type: scripted, script: s.yaml, price: { input: 0, output: 0 } } }\n")
            .file("agent.yaml", &format!("name: A\nconnector: s\nconnectors: {{ s: {{ type: scripted, script: s.yaml, price: {price} }} }}\n"))
            .file("s.yaml", "use: always\nrules: [{ reply: { text: Hi., usage: { input_tokens: 1000, output_tokens: 1000 } } }]\n")
            .suite("a", "name: a\nturns: [{ user: hello, assert: { budget: { max_cost: 3 } } }]\n")
    };
    project("{ input: 1000, output: 2000 }").test(&[]).assert_all_passed();
    let tested = project("{ input: 1000, output: 2001 }").test(&[]);
    tested.assert_failure("a", "assertion", &["a cost of at most 3"]);
}

#[test]
fn rejects_attachments() {
    let image = json!({"type": "image", "source": "data:image/png;base64,AA"});
    for case in [
        json!({"id": "a", "turns": [{"input": "x", "attachments": [image]}]}),
        json!({"id": "a", "messages": [{"role": "user", "content": [image]}], "turns": [{"input": "x"}]}),
    ] {
        let output = project().file("a.test.json", &case.to_string()).hotseat(&["test"]);
        assert!(output.code == 2, "{output}");
        assert!(
            output.stderr.contains("this case sets `attachments`, which its agent does not support"),
            "{output}"
        );
        assert!(output.stderr.contains("embedded agents support text only"), "{output}");
    }
}

/// A tool that the agent, or an agent that it calls, executes itself would never reach the answers of the test.
#[test]
fn refuses_tools_that_the_agent_executes() {
    let tool = "tools: [{ name: refund, task: { steps: [{ mock: { returns: paid } }] } }]\n";
    let helper = "tools: [{ name: helper, agent: ./helper/agent.yaml }]\n";
    let offered = "tools: [{ name: refund, answers: [{ content: refused }] }]\n";
    let case = "name: a\nturns: [{ user: go }]\n";
    for (main, target, case, place, by) in [
        (tool, "", &*format!("{offered}{case}"), "a.test.yaml:1:17", "main"),
        (helper, "", &*format!("{offered}{case}"), "a.test.yaml:1:17", "helper"),
        (
            tool,
            "  tools: [{ name: refund, answers: [{ content: refused }] }]\n",
            case,
            "hotseat.yaml:4:19",
            "main",
        ),
    ] {
        Project::with_config(&format!("target:\n  type: embedded\n  agent: agent.yaml\n{target}"))
            .file("agent.yaml", &format!("name: Main\n{main}"))
            .file("helper/agent.yaml", &format!("name: Helper\n{tool}"))
            .file("script.yaml", "use: always\nrules: [{ reply: Done. }]\n")
            .suite("a", case)
            .hotseat(&["test"])
            .assert_stderr(2, &[&format!("the agent `{by}` executes `refund` itself"), place]);
    }
}

/// A script without a rule is a mistake of the test, not an error that the test may expect of the agent.
#[test]
fn missing_rule_is_no_expected_error() {
    let suite = "name: own\nturns: [{ user: go, expect_error: . }]\n---\nname: called\nturns: [{ user: help, expect_error: { code: . } }]\n";
    let tested = Project::with_config("target: { type: embedded, agent: agent.yaml }\n")
        .file("agent.yaml", "name: Main\ntools: [{ name: helper, agent: ./helper/agent.yaml }]\n")
        .file("helper/agent.yaml", "name: Helper\n")
        .file("script.yaml", "use: always\nrules: [{ when: { user: help }, reply: { tool_calls: [{ name: helper, arguments: {} }] } }]\n")
        .file("helper/script.yaml", "use: always\nrules: [{ when: { user: never }, reply: No. }]\n")
        .suite("a", suite)
        .test(&[]);
    for name in ["own", "called"] {
        tested.assert_failure(name, "test_error", &["the model of the agent cannot answer: no rule"]);
    }
}

/// As over the protocols of `hotseat serve`.
#[test]
fn an_agent_that_says_and_calls_nothing_has_not_answered() {
    let tested = Project::with_config("target: { type: embedded, agent: agent.yaml }\n")
        .file("agent.yaml", "name: Main\n")
        .file("script.yaml", "use: always\nrules: [{ when: { user: blank }, reply: ' ' }, { when: { user: invisible }, reply: \"\\u200b\" }, { reply: Hello. }]\n")
        .suite("a", "name: silent\nturns: [{ user: blank, assert: { tools: { forbid: [pay] } } }]\n---\nname: invisible\nturns: [{ user: invisible }]\n---\nname: polite\nturns: [{ user: hi }]\n")
        .test(&[]);
    for name in ["silent", "invisible"] {
        tested.assert_failure(name, "protocol_error", &["the agent's answer is empty"]);
    }
    assert_eq!(tested.case("polite")["status"], "passed", "{}", tested.output);
}

/// The project file may name agents that are written later.
#[test]
fn files_of_an_agent_are_read_only_if_it_is_used() {
    let agents = "agents:
  clerk: { type: embedded, agent: . }
  later: { type: embedded, agent: later }
  recorded: { type: replay, from: rec }
target: clerk
";
    let project = Project::with_config(agents)
        .file("agent.yaml", "name: Clerk\nsystem: You are a clerk.\n")
        .file("script.yaml", SCRIPT)
        .suite("a", "name: a\nturns: [{ user: hello }]\n");
    project.test(&["--record", "rec"]).assert_all_passed();
    assert_eq!(project.hotseat(&["runs"]).code, 0);
    assert_eq!(project.hotseat(&["show", "last"]).code, 0);
    project.test(&["-n", "recorded"]).assert_all_passed();
    let run = project.hotseat(&["test", "-n", "later", "--dry-run"]);
    run.assert_stderr(2, &["no agent found at"]);
    assert!(run.stderr.contains("hotseat.yaml:3:35"), "{run}");
    project.workspace.file("latter/agent.yaml", "name: Latter\nsystem: You are late.\n");
    let run = project.hotseat(&["test", "-n", "later", "--dry-run"]);
    assert!(run.stderr.contains("did you mean `latter`?"), "{run}");
    let judged = "name: b\njudge: agents:later\ncriteria: { polite: It is polite }\nturns: [{ user: hello, assert: { type: satisfy, criteria: [polite] } }]\n";
    project.suite("b", judged).hotseat(&["test", "--dry-run"]).assert_stderr(2, &["no agent found at"]);
}

/// Each model call reads the whole conversation: recorded whole each time, a long one would reach the limits on an agent's data.
#[test]
fn traces_grow_by_what_is_new_in_a_turn() {
    let text = "x".repeat(2_000);
    let turns = |count: usize| vec![json!({"input": text}); count];
    let trace_of = |count: usize| {
        let case = json!({"id": "a", "turns": turns(count)});
        let project = project().file("a.test.json", &case.to_string());
        project.test(&["--trace", "out/trace.jsonl"]).assert_all_passed();
        project.workspace.read("out/trace.jsonl")
    };
    let short = trace_of(1);
    let is_whole = |line: &&str| line.contains("workflow.started") && line.contains(&text);
    assert!(short.lines().any(|line| is_whole(&line)), "short inputs stay whole: {short}");
    let (some, many) = (trace_of(20), trace_of(40));
    let added = many.len() - some.len();
    assert!(added < 20 * 30_000, "20 further turns take {added} bytes");
    assert!(many.contains("\"input\":{\"sha256\":"), "{many}");
}
