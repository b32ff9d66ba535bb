//! Language models that the project file names, and who speaks with them.
#![cfg(unix)]

mod common;

use common::Project;

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
fn said(tested: &common::Tested, case: &str) -> String {
    tested.case(case)["turns"][0]["messages"][0].as_str().unwrap_or_default().to_string()
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
