//! Language models that the project file names, and who speaks with them.
#![cfg(unix)]

mod common;

use common::{LONG, Project, Tested, echo_agent};
use hotseat_testkit::FakeAgent;
use hotseat_testkit::completions::Completion;
use serde_json::{Value, json};

const HELLO: &str = "name: a\nturns: [{ user: hello }]\n";

/// An agent that names a connector of the project.
const AGENT: &str = "name: Clerk\nconnector: loud\n";

/// A script that says one thing, whatever it is asked.
fn says(words: &str) -> String {
    format!("use: always\nrules: [{{ reply: '{words}' }}]\n")
}

/// A project whose agent speaks as the connector `loud` says, with another one beside it.
fn project() -> Project {
    Project::with(
        "target: { type: embedded, agent: agent.yaml }
connectors:
  loud: { type: scripted, script: models/loud.yaml }
  quiet: { type: scripted, script: models/quiet.yaml }
  remote: { type: openai, base_url: 'http://127.0.0.1:9/v1', model: m, api_key: '${ENV.NOT_SET}' }
",
    )
    .file("agent.yaml", AGENT)
    .file("models/loud.yaml", &says("GOOD DAY!"))
    .file("models/quiet.yaml", &says("good day"))
}

/// What the agent said first in a case.
#[track_caller]
fn said(tested: &Tested, case: &str) -> String {
    outputs(tested, case)[0].as_str().unwrap_or_default().to_string()
}

/// What the agent said, turn by turn.
#[track_caller]
fn outputs(tested: &Tested, case: &str) -> Vec<Value> {
    let turns = tested.case(case)["turns"].as_array().expect("a list of turns");
    turns.iter().map(|turn| turn["output"].clone()).collect()
}

#[test]
fn an_agent_speaks_with_a_model_of_the_project() {
    let tested = project().suite("a", HELLO).test(&[]);
    tested.all_passed();
    assert_eq!(said(&tested, "a"), "GOOD DAY!");
}

#[test]
fn a_model_of_the_agent_goes_before_one_of_the_project() {
    let own = format!("{AGENT}connectors: {{ loud: {{ type: scripted, script: own.yaml }} }}\n");
    let tested =
        project().file("agent.yaml", &own).file("own.yaml", &says("mine")).suite("a", HELLO).test(&[]);
    tested.all_passed();
    assert_eq!(said(&tested, "a"), "mine");
}

#[test]
fn mistakes_of_connectors_are_refused_with_their_place() {
    for (connectors, words) in [
        ("loud: { type: scripted, scrpt: a }", "did you mean `script`?"),
        ("loud: { type: sripted, script: a }", "hotseat.yaml:3:"),
        ("lout: { type: scripted, script: models/loud.yaml }", "did you mean `lout`?"),
        ("loud: { type: scripted, script: models/nothing.yaml }", "models/nothing.yaml cannot be read"),
        (
            "loud: { type: openai, model: m, api_key: '${ENV.NOT_SET}' }",
            "environment variable `NOT_SET` is not set",
        ),
    ] {
        let text = format!("target: {{ type: embedded, agent: agent.yaml }}\nconnectors:\n  {connectors}\n");
        let project = Project::with(&text).file("agent.yaml", AGENT).suite("a", HELLO);
        let output = project.hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{words}: {output}");
    }
}

#[test]
fn options_of_case_and_turn_choose_the_model_and_the_flag_goes_before_both() {
    let case = json!({
        "id": "a", "options": {"connector": "quiet"},
        "turns": [{"input": "1"}, {"input": "2", "options": {"connector": "own"}}, {"input": "3"}],
    });
    // A connector that is named last is one of the agent's files.
    let own = format!("{AGENT}connectors: {{ own: {{ type: scripted, script: own.yaml }} }}\n");
    let project = project()
        .file("agent.yaml", &own)
        .file("own.yaml", &says("mine"))
        .file("a.test.json", &case.to_string())
        .suite("b", "name: b\nturns: [{ user: hello }]\n");
    let tested = project.test(&[]);
    tested.all_passed();
    assert_eq!(outputs(&tested, "a"), ["good day", "mine", "good day"]);
    assert_eq!(outputs(&tested, "b"), ["GOOD DAY!"]);
    for flag in ["-c", "--connector"] {
        let tested = project.test(&[flag, "quiet"]);
        tested.all_passed();
        assert_eq!(outputs(&tested, "a"), ["good day", "good day", "good day"]);
        assert_eq!(outputs(&tested, "b"), ["good day"]);
    }
}

#[test]
fn a_model_that_is_chosen_lives_as_long_as_the_conversation() {
    let counting = "rules: [{ reply: one }, { reply: two }]\n";
    let case = json!({"id": "a", "turns": [
        {"input": "1", "options": {"connector": "quiet"}}, {"input": "2"},
        {"input": "3", "options": {"connector": "quiet"}},
    ]});
    let tested =
        project().file("models/quiet.yaml", counting).file("a.test.json", &case.to_string()).test(&[]);
    tested.all_passed();
    assert_eq!(outputs(&tested, "a"), ["one", "GOOD DAY!", "two"]);
}

#[test]
fn a_connector_that_nobody_has_is_refused_before_anything_runs() {
    let case =
        json!({"id": "a", "turns": [{"input": "1"}, {"input": "2", "options": {"connector": "quite"}}]});
    let output = project().file("a.test.json", &case.to_string()).hotseat(&["test"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("there is no connector `quite`"), "{output}");
    assert!(
        output.stderr.contains("did you mean `quiet`?") && output.stderr.contains("a.test.json:1:"),
        "{output}"
    );
    let output = project().suite("a", HELLO).hotseat(&["test", "-c", "lout"]);
    assert!(output.code == 2 && output.stderr.contains("did you mean `loud`?"), "{output}");
    // The one of the command line goes before that of the case, so the case's is not looked at.
    project().file("a.test.json", &case.to_string()).test(&["-c", "quiet"]).all_passed();
    // What is wrong with one that is named is told, too.
    let output = project().suite("a", HELLO).hotseat(&["test", "-c", "remote"]);
    assert!(output.code == 2 && output.stderr.contains("`NOT_SET` is not set"), "{output}");
    for (connector, words) in
        [(json!(7), "`connector` must be a name"), (json!(""), "`connector` must be a name")]
    {
        let case = json!({"id": "a", "input": "x", "options": {"connector": connector}});
        let output = project().file("a.test.json", &case.to_string()).hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{words}: {output}");
    }
}

#[test]
fn a_hook_can_choose_the_model() {
    let suite = |name: &str| {
        format!(
            "name: a\nhooks: [{{ cmd: [echo, '{{\"model\": \"{name}\"}}'] }}]\noptions: {{ connector: '${{model}}' }}\nturns: [{{ user: hello }}]\n"
        )
    };
    let tested = project().suite("a", &suite("quiet")).test(&[]);
    tested.all_passed();
    assert_eq!(said(&tested, "a"), "good day");
    let tested = project().suite("a", &suite("quite")).test(&[]);
    let failure = tested.failure("a");
    assert_eq!(failure["kind"], "test_error");
    assert!(
        failure["message"].as_str().is_some_and(|words| words.contains("no connector `quite`")),
        "{failure}"
    );
}

#[test]
fn other_options_have_no_place_at_an_embedded_agent() {
    let held = |options: serde_json::Value| {
        let case = json!({"id": "a", "input": "x", "options": options});
        project().file("a.test.json", &case.to_string()).hotseat(&["test"])
    };
    for (options, words) in [
        (
            json!({"mode": "chat", "metadata": {"a": 1}}),
            "gives `options.mode`, which its agent is never told",
        ),
        (json!({"mode": "chat"}), "an embedded agent is told `connector` and `metadata`"),
        (json!({"skip": "all"}), "gives `options.skip`, which its agent is never told"),
        (
            json!({"skip": {"history": false}}),
            "gives `options.skip.history: false`, and an embedded agent cannot",
        ),
        (json!({"skip": {"history": true, "trace": true}}), "gives `options.skip.trace: true`"),
        (json!({"skip": {"output": true}}), "gives `options.skip.output: true`"),
    ] {
        let output = held(options);
        assert!(output.code == 2 && output.stderr.contains(words), "{words}\n{output}");
    }
    // What holds of every such agent need not be told.
    let output = held(json!({"skip": {"history": true, "trace": false}}));
    assert_eq!(output.code, 0, "{output}");
}

#[test]
fn over_chat_completions_a_connector_takes_the_place_of_the_server() {
    let [server, other] =
        [0, 1].map(|_| FakeAgent::start(|_| Completion::new().text("Fine.").finish("stop")));
    let file = format!(
        "target: {{ type: openai, base_url: '{}v1', model: m, api_key: target-key-1, headers: {{ X-Team: blue }}, body: {{ max_tokens: 5 }} }}
connectors:
  other: {{ type: openai, base_url: '{}v2', model: large, api_key: '${{ENV.OTHER}}', temperature: 0.5, max_tokens: 9, headers: {{ X-Org: red }}, extra: {{ seed: 3 }} }}
  claude: {{ type: anthropic, model: c }}
",
        server.url(),
        other.url()
    );
    let case = json!({"id": "a", "turns": [
        {"input": "1"}, {"input": "2", "options": {"connector": "other"}}, {"input": "3", "options": {"connector": "small"}},
    ]});
    let project = Project::with(&file).file("a.test.json", &case.to_string());
    project.test_in(&[("OTHER", "other-key-12345")], &["--trace", "out/t.jsonl"]).all_passed();
    let here = server.requests();
    let models: Vec<Value> = here.iter().map(|request| request.json()["model"].clone()).collect();
    assert_eq!(models, ["m", "small"]);
    let [there] = other.requests().try_into().expect("one request");
    let body = there.json();
    assert_eq!(there.path, "/v2/chat/completions");
    assert_eq!(
        (&body["model"], &body["temperature"], &body["seed"]),
        (&json!("large"), &json!(0.5), &json!(3))
    );
    assert_eq!(body["max_tokens"], 5, "what the target says of all requests stays");
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(3), "the conversation goes on");
    assert_eq!(there.header("authorization"), Some("Bearer other-key-12345"));
    assert_eq!((there.header("x-org"), there.header("x-team")), (Some("red"), None));

    let output = project.command(&["test", "-c", "claude"]).env("OTHER", "other-key-12345").run();
    assert!(output.code == 2 && output.stderr.contains("is not of `type: openai`"), "{output}");
    assert_eq!((server.requests().len(), other.requests().len()), (2, 1));
}

#[test]
fn other_agents_are_told_the_name() {
    let agent = echo_agent();
    Project::of(&agent).suite("a", HELLO).test(&["-c", "large"]).all_passed();
    assert_eq!(agent.requests()[0].json()["forwardedProps"]["options"], json!({"connector": "large"}));
    // A template without a place for it is refused.
    let target = format!("target: {{ type: http, endpoint: '{}', body: '{{{{message}}}}' }}\n", agent.url());
    let output = Project::with(&target).suite("a", HELLO).hotseat(&["test", "-c", "large"]);
    assert!(output.code == 2 && output.stderr.contains("the agent is never told which one"), "{output}");
    assert!(output.stderr.contains("`{{options.connector}}` into the template"), "{output}");
}

#[test]
fn an_agent_that_is_served_speaks_with_a_model_of_the_project() {
    for (args, words) in [(&[][..], "GOOD DAY!"), (&["-c", "quiet"], "good day")] {
        let project = project();
        let command = [&["serve", "agent.yaml", "--port", "0"], args].concat();
        let mut running = project.command(&command).timeout(LONG).spawn();
        let printed = running.wait_for_stdout("Ctrl-C stops it.");
        let address = printed.split_whitespace().nth(2).expect("an address");
        let target = format!("target: {{ type: openai, base_url: '{address}/v1', model: clerk }}\n");
        let tested = Project::with(&target).suite("a", HELLO).test(&[]);
        tested.all_passed();
        assert_eq!(said(&tested, "a"), words);
        running.interrupt();
        assert_eq!(running.wait().code, 0);
    }
    let output = project().hotseat(&["serve", "agent.yaml", "-c", "quite"]);
    assert!(output.code == 2 && output.stderr.contains("did you mean `quiet`?"), "{output}");
}
