//! Which agent is tested: `target`, `agents`, `-n`, and the place of a suite.
#![cfg(unix)]

mod common;

use hotseat_testkit::completions::Completion;
use hotseat_testkit::{FakeAgent, Reply};

use common::{Project, echo_agent};

const HELLO: &str = "name: a\nturns: [{ user: hello }]\n";

/// Two agents that say who they are.
fn two() -> [FakeAgent; 2] {
    [
        FakeAgent::start(|_| Completion::new().text("I am red.").finish("stop")),
        FakeAgent::start(|_| Reply::text(200, "I am blue.")),
    ]
}

/// A project of both, with more settings before.
fn project(agents: &[FakeAgent; 2], before: &str) -> Project {
    let [red, blue] = agents;
    Project::with(&format!(
        "{before}agents:
  red: {{ type: openai, base_url: '{}', model: m, folder: red, assert: {{ text: {{ must_match: red }} }} }}
  blue: {{ type: http, endpoint: '{}', body: '{{{{message}}}}', assert: {{ text: {{ must_match: blue }} }} }}
",
        red.url(),
        blue.url()
    ))
}

fn asked(agents: &[FakeAgent; 2]) -> (usize, usize) {
    (agents[0].requests().len(), agents[1].requests().len())
}

#[test]
fn a_target_can_be_a_name() {
    let agents = two();
    project(&agents, "target: blue\n").suite("a", HELLO).test(&[]).all_passed();
    assert_eq!(asked(&agents), (0, 1));
}

#[test]
fn the_command_line_chooses() {
    for flag in ["-n", "--agent", "--name"] {
        let agents = two();
        let tested = project(&agents, "target: blue\n").suite("a", HELLO).test(&[flag, "red"]);
        tested.all_passed();
        assert_eq!(asked(&agents), (1, 0));
        assert!(tested.output.stdout.contains("ℹ Agent: red (http://127.0.0.1:"), "{}", tested.output);
    }
}

#[test]
fn a_suite_below_the_folder_of_an_agent_tests_it() {
    let agents = two();
    let suites = || {
        project(&agents, "target: blue\n")
            .suite("a", HELLO)
            .suite("red/deep/b", &HELLO.replace("name: a", "name: b"))
    };
    let tested = suites().test(&[]);
    tested.all_passed();
    assert_eq!(asked(&agents), (1, 1));
    suites().test(&["red/deep"]).all_passed();
    assert_eq!(asked(&agents), (2, 1));
    // What is said on the command line holds for all.
    let chosen = suites().test(&["-n", "red"]);
    assert_eq!(asked(&agents), (4, 1));
    chosen.all_passed();
}

#[test]
fn the_only_agent_is_the_target() {
    let agent = echo_agent();
    let project = Project::with(&format!("agents: {{ only: {{ endpoint: '{}' }} }}\n", agent.url()));
    project.suite("a", HELLO).test(&[]).all_passed();
}

#[test]
fn names_that_nobody_has_are_refused() {
    let agents = two();
    for (before, args, words) in [
        ("target: blu\n", &["test"][..], "no agent is called `blu`"),
        ("target: blu\n", &["test"], "did you mean `blue`?"),
        ("target: blue\n", &["test", "-n", "rad"], "did you mean `red`?"),
        ("target: blue\n", &["list", "-n", "purple"], "there are red, blue"),
        ("", &["test"], "names several agents (red, blue) and no `target`"),
    ] {
        let output = project(&agents, before).suite("a", HELLO).hotseat(args);
        assert_eq!(output.code, 2, "{output}");
        assert!(output.stderr.contains(words), "{words}: {output}");
    }
    let output = Project::of(&echo_agent()).suite("a", HELLO).hotseat(&["test", "-n", "red"]);
    assert!(output.code == 2 && output.stderr.contains("this one names none"), "{output}");
    let folder = Project::with("target: { endpoint: 'http://127.0.0.1:9/', folder: x }\n").suite("a", HELLO);
    let output = folder.hotseat(&["test"]);
    assert!(output.code == 2 && output.stderr.contains("`folder` goes with one of `agents`"), "{output}");
    assert_eq!(asked(&agents), (0, 0));
}

#[test]
fn variables_of_an_agent_that_is_not_used_need_not_be_set() {
    let agent = echo_agent();
    let project = Project::with(&format!(
        "target: here\nagents:\n  here: {{ endpoint: '{}' }}\n  there: {{ endpoint: '${{ENV.NOT_SET}}' }}\n",
        agent.url()
    ))
    .suite("a", HELLO);
    project.test(&[]).all_passed();
    let output = project.hotseat(&["test", "-n", "there"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("environment variable `NOT_SET` is not set"), "{output}");
}

#[test]
fn only_an_agent_that_is_used_is_started() {
    let agents = two();
    let start = |name: &str, agent: &FakeAgent| {
        // The address answers only once the program runs: it is the program that opens the way to it.
        format!(
            "  {name}: {{ endpoint: '{}', folder: {name}, start: {{ command: [sh, start.sh, {name}], ready: '{}' }} }}\n",
            agent.url(),
            agent.url()
        )
    };
    let file = format!("agents:\n{}{}", start("red", &agents[0]), start("blue", &agents[1]));
    let project =
        Project::with(&file).file("start.sh", "touch started-$1; sleep 1000\n").suite("red/a", HELLO);
    // Both answer already, so starting is refused: only the agent that is used is started at all.
    let output = project.hotseat(&["test"]);
    assert_eq!(output.code, 3, "{output}");
    assert!(
        output.stderr.contains(&agents[0].url()) && !output.stderr.contains(&agents[1].url()),
        "{output}"
    );
}
