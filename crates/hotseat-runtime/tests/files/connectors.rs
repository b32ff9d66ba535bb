//! Which model speaks for which agent.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hotseat_document::{Diagnostics, Source, View, yaml};
use hotseat_model::{Discard, Message, Position, PureModel, Request};
use hotseat_runtime::files::{self, AgentFile, Connector, Connectors, Options};
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

fn load(folder: &TempDir) -> AgentFile {
    files::load(folder.path(), &Options::default()).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// The profile of each agent.
fn profiles(agent: &AgentFile) -> BTreeMap<String, String> {
    let profile = |agent: &Arc<hotseat_runtime::definition::Agent>| {
        (agent.id.to_string(), agent.persona.profile.id.to_string())
    };
    agent.definitions.agents().map(profile).collect()
}

fn request(agent: &str) -> Request {
    let position = Position { agent: agent.into(), turn: 1, call: 1, attempt: 1, ..Position::default() };
    Request { position, messages: vec![Message::user("hi")], ..Request::default() }
}

const SAYS: &str = "use: always\nrules: [{ reply: 'script of {{ agent }}' }]\n";

#[test]
fn a_script_beside_the_file_speaks_and_agents_within_share_it() {
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
    let mut cast = agent.cast().unwrap();
    let mut said = |agent: &str| cast.answer(&request(agent)).value.unwrap().text;
    assert_eq!([said("a"), said("e"), said("d")], ["script of a", "B speaks for e", "script of d"]);
    let nobody = cast.answer(&request("nobody")).value.unwrap_err();
    assert_eq!(nobody.message, "no model speaks for the agent `nobody`");
}

#[test]
fn providers_are_opened_with_variables_and_unused_ones_need_none() {
    let folder = folder(&[(
        "agent.yaml",
        "name: A\nconnector: local\nconnectors:\n  local:\n    type: openai\n    model: '${ENV.MODEL}'\n    base_url: http://127.0.0.1:9/v1\n    api_key: '${ENV.KEY}'\n    headers: { x-team: 'the $${team}' }\n    timeout_ms: 5000\n    stream: false\n    extra: { seed: 1 }\n  other: { type: anthropic, model: m, api_key: '${ENV.OTHER_KEY}' }\n",
    )]);
    let environment = |name: &str| match name {
        "MODEL" => Some("qwen".to_owned()),
        "KEY" => Some("hunter2".to_owned()),
        _ => None,
    };
    let agent = files::load(folder.path(), &Options { environment: &environment, connectors: None }).unwrap();
    let names: Vec<&str> = agent.connectors.keys().map(|name| &**name).collect();
    assert_eq!(names, ["local"]);
    let Connector::Provider(connector) = &agent.connectors["local"] else { panic!("a provider") };
    assert_eq!((connector.model.as_str(), connector.stream), ("qwen", false));
    assert_eq!(connector.limits.total.as_millis(), 5000);
    assert_eq!(connector.headers, [("x-team".to_owned(), "the ${team}".into())]);
    assert!(!format!("{agent:?}").contains("hunter2"), "keys are not shown");
    assert_eq!(agent.models().unwrap()["local"].name(), "qwen");
    let error = agent.cast().unwrap_err();
    assert_eq!(error.message, "the connector `local` needs a network, which this driver has not");
}

#[test]
fn connectors_of_a_project_are_there_for_those_who_have_none() {
    let source = Source::new("hotseat.yaml", "default: { type: scripted, script: usual.yaml }\n", 1);
    let node = yaml::parse(&source).unwrap();
    let project = folder(&[("usual.yaml", SAYS)]);
    let (mut connectors, mut mistakes) = (Connectors::default(), Diagnostics::new());
    connectors.add(View::new(&node, &source), project.path(), &mut mistakes);
    assert_eq!(mistakes, Diagnostics::new());
    let options = Options { connectors: Some(&connectors), ..Options::default() };

    let without = folder(&[("agent.yaml", "name: A\n")]);
    let agent = files::load(&without.path().join("agent.yaml"), &options).unwrap();
    assert_eq!(profiles(&agent)["a"], "default");
    let own = folder(&[("agent.yaml", "name: A\n"), ("script.yaml", SAYS)]);
    assert_eq!(profiles(&files::load(own.path(), &options).unwrap())["a"], "a-script");
}

#[tokio::test]
async fn a_recording_is_played_in_real_time_and_in_simulated_time() {
    let mut written: Vec<u8> = Vec::new();
    let (sender, receiver) = std::sync::mpsc::channel();
    let folder = folder(&[
        ("agent.yaml", "name: A\nconnector: r\nconnectors:\n  r: { type: recorded, file: calls.jsonl }\n"),
        ("script.yaml", SAYS),
    ]);
    let script = Connector::Scripted(Arc::new(
        hotseat_model::script::Script::load(&folder.path().join("script.yaml")).unwrap(),
    ));
    let recorded = hotseat_model::recording::Recorded::new(script.open().unwrap(), Lines(sender)).unwrap();
    hotseat_model::Model::call(&recorded, &request("a"), &mut Discard).await.unwrap();
    drop(recorded);
    written.extend(receiver.iter().flatten());
    std::fs::write(folder.path().join("calls.jsonl"), written).unwrap();

    let agent = load(&folder);
    assert_eq!(agent.cast().unwrap().answer(&request("a")).value.unwrap().text, "script of a");
    let models = agent.models().unwrap();
    assert_eq!(models["r"].call(&request("a"), &mut Discard).await.unwrap().text, "script of a");
}

/// A writer whose bytes come out elsewhere.
struct Lines(std::sync::mpsc::Sender<Vec<u8>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(std::io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_workflow_can_ask_agents_of_other_files_and_of_its_own() {
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
