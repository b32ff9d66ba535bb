//! Selection of the model for each agent.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hotseat_document::{Diagnostics, NodeView, SourceText, yaml};
use hotseat_model::{CallPosition, ModelMessage, ModelRequest, PureModel};
use hotseat_runtime::files::{self, ConnectorSet, LoadOptions, LoadedAgent, ModelConnector};
use tempfile::TempDir;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn load(folder: &TempDir) -> LoadedAgent {
    files::load(folder.path(), &LoadOptions::default()).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Profile of each agent.
fn profiles(agent: &LoadedAgent) -> BTreeMap<String, String> {
    let profile = |agent: &Arc<hotseat_runtime::definition::AgentDefinition>| {
        (agent.id.to_string(), agent.persona.profile.id.to_string())
    };
    agent.definitions.agents().map(profile).collect()
}

fn request(agent: &str) -> ModelRequest {
    let position =
        CallPosition { agent: agent.into(), turn: 1, call: 1, attempt: 1, ..CallPosition::default() };
    ModelRequest { position, messages: vec![ModelMessage::user("hi")], ..ModelRequest::default() }
}

const SAYS: &str = "use: always\nrules: [{ reply: 'script of {{ agent }}' }]\n";

#[test]
fn script_next_to_file_is_shared_with_nested_agents() {
    let folder = folder(&[
        (
            "agent.yaml",
            "name: A\ntools:\n  - { name: b, agent: b }\n  - { name: c, agent: { name: C, tools: [{ name: d, agent: d }] } }\n",
        ),
        ("script.yaml", SAYS),
        ("agents/b.yaml", "name: B\ntools: [{ name: e, agent: { name: E } }]\n"),
        ("agents/b.script.yaml", "use: always\nrules: [{ reply: 'B speaks for {{ agent }}' }]\n"),
        ("agents/d/agent.yaml", "name: D\ntools: [{ name: a, agent: ../.. }]\n"),
    ]);
    let agent = load(&folder);
    let expected =
        [("a", "a-script"), ("b", "b-script"), ("c", "a-script"), ("d", "a-script"), ("e", "b-script")];
    assert_eq!(profiles(&agent), expected.map(|(id, profile)| (id.to_owned(), profile.to_owned())).into());
    let mut cast = agent.combined_model().unwrap();
    let mut said = |agent: &str| cast.answer(&request(agent)).value.unwrap().text;
    assert_eq!([said("a"), said("e"), said("d")], ["script of a", "B speaks for e", "script of d"]);
    let nobody = cast.answer(&request("nobody")).value.unwrap_err();
    assert_eq!(nobody.message, "the agent `nobody` has no model");
}

#[test]
fn providers_resolve_variables_only_when_used() {
    let folder = folder(&[(
        "agent.yaml",
        "name: A\nconnector: local\nconnectors:\n  local:\n    type: openai\n    model: '${ENV.MODEL}'\n    base_url: http://127.0.0.1:9/v1\n    api_key: '${ENV.KEY}'\n    headers: { x-team: 'the $${team}' }\n    timeout_ms: 5000\n    stream: false\n    extra: { seed: 1 }\n  other: { type: anthropic, model: m, api_key: '${ENV.OTHER_KEY}' }\n",
    )]);
    let environment = |name: &str| match name {
        "MODEL" => Some("qwen".to_owned()),
        "KEY" => Some("hunter2".to_owned()),
        _ => None,
    };
    let agent =
        files::load(folder.path(), &LoadOptions { environment: &environment, connectors: None }).unwrap();
    let names: Vec<&str> = agent.connectors.keys().map(|name| &**name).collect();
    assert_eq!(names, ["local"]);
    let ModelConnector::Provider(connector) = &agent.connectors["local"] else { panic!("a provider") };
    assert_eq!((connector.model.as_str(), connector.stream), ("qwen", false));
    assert_eq!(connector.limits.total.as_millis(), 5000);
    assert_eq!(connector.headers, [("x-team".to_owned(), "the ${team}".into())]);
    assert!(!format!("{agent:?}").contains("hunter2"), "keys are not shown");
    assert_eq!(agent.models().unwrap()["local"].name(), "qwen");
    let error = agent.combined_model().unwrap_err();
    assert_eq!(
        error.message,
        "the connector `local` needs a network, which the simulated driver does not have"
    );
}

#[test]
fn project_connectors_are_defaults() {
    let source = SourceText::new("hotseat.yaml", "default: { type: scripted, script: usual.yaml }\n", 1);
    let node = yaml::parse(&source).unwrap();
    let project = folder(&[("usual.yaml", SAYS)]);
    let (mut connectors, mut mistakes) = (ConnectorSet::default(), Diagnostics::new());
    connectors.add(NodeView::new(&node, &source), project.path(), &mut mistakes);
    assert_eq!(mistakes, Diagnostics::new());
    let options = LoadOptions { connectors: Some(&connectors), ..LoadOptions::default() };

    let without = folder(&[("agent.yaml", "name: A\n")]);
    let agent = files::load(&without.path().join("agent.yaml"), &options).unwrap();
    assert_eq!(profiles(&agent)["a"], "default");
    let own = folder(&[("agent.yaml", "name: A\n"), ("script.yaml", SAYS)]);
    assert_eq!(profiles(&files::load(own.path(), &options).unwrap())["a"], "a-script");
}

#[test]
fn workflow_asks_own_and_external_agents() {
    let folder = folder(&[
        (
            "agent.yaml",
            "name: A\ntools:\n  - name: t\n    workflow:\n      nodes:\n        - { name: n, agent: b, input: input.x }\n        - { name: m, task: { steps: [{ agent: { name: C } }] } }\n",
        ),
        ("script.yaml", SAYS),
        ("agents/b.yaml", "name: B\ntools: [{ name: t, task: ask }]\n"),
        ("tasks/ask.yaml", "steps: [{ agent: { name: D } }, { agent: b }]\n"),
    ]);
    let expected = [("a", "a-script"), ("b", "a-script"), ("c", "a-script"), ("d", "a-script")];
    let expected: BTreeMap<String, String> =
        expected.map(|(id, profile)| (id.to_owned(), profile.to_owned())).into();
    assert_eq!(profiles(&load(&folder)), expected);
}
