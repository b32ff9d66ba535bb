//! Target selection: `target`, `agents`, `-n`, and the folder of a suite.
use hotseat_testkit::completions::ChatCompletion;
use hotseat_testkit::{FakeAgent, FakeReply};

use crate::common::{Project, echo_agent};

const HELLO: &str = "name: a\nturns: [{ user: hello }]\n";

/// Two agents that answer with their own name.
fn named_agents() -> [FakeAgent; 2] {
    [
        FakeAgent::start(|_| ChatCompletion::new().text("I am red.").finish("stop")),
        FakeAgent::start(|_| FakeReply::text(200, "I am blue.")),
    ]
}

/// A project with both agents, preceded by further settings.
fn project(agents: &[FakeAgent; 2], before: &str) -> Project {
    let [red, blue] = agents;
    Project::with_config(&format!(
        "{before}agents:
  red: {{ type: openai, base_url: '{red}', model: m, folder: red, assert: {{ text: {{ must_match: red }} }} }}
  blue: {{ type: http, endpoint: '{blue}', body: '{{{{message}}}}', assert: {{ text: {{ must_match: blue }} }} }}
"
    ))
}

fn request_counts(agents: &[FakeAgent; 2]) -> (usize, usize) {
    (agents[0].requests().len(), agents[1].requests().len())
}

#[test]
fn target_flag_accepts_agent_name() {
    let agents = named_agents();
    project(&agents, "target: blue\n").suite("a", HELLO).test(&[]).assert_all_passed();
    assert_eq!(request_counts(&agents), (0, 1));
}

#[test]
fn command_line_overrides_target() {
    for flag in ["-n", "--agent", "--name"] {
        let agents = named_agents();
        let tested = project(&agents, "target: blue\n").suite("a", HELLO).test(&[flag, "red"]);
        tested.assert_all_passed();
        assert_eq!(request_counts(&agents), (1, 0));
        assert!(tested.output.stdout.contains("ℹ Agent: red (http://127.0.0.1:"), "{}", tested.output);
    }
}

/// An address that no case uses would leave the old agents tested.
#[test]
fn address_of_the_command_line_belongs_to_the_tested_agent() {
    let agents = named_agents();
    let fresh = FakeAgent::start(|_| FakeReply::text(200, "I am blue."));
    let project = project(&agents, "target: blue\n")
        .suite("a", HELLO)
        .suite("red/b", &HELLO.replace("name: a", "name: b"));
    for arguments in [&["red"][..], &[]] {
        project
            .hotseat(&[&["test", "--endpoint", &fresh.url()], arguments].concat())
            .assert_stderr(2, &["--endpoint is the address of agent `blue`, but cases test agent `red`"]);
    }
    assert_eq!((request_counts(&agents), fresh.requests().len()), ((0, 0), 0));
    project.test(&["--endpoint", &fresh.url(), "a.test.yaml"]).assert_all_passed();
    project.test(&["--endpoint", &fresh.url(), "-n", "blue"]).assert_all_passed();
    assert_eq!((request_counts(&agents), fresh.requests().len()), ((0, 0), 3));
}

#[test]
fn suite_in_agent_folder_targets_that_agent() {
    let agents = named_agents();
    let suites = || {
        project(&agents, "target: blue\n")
            .suite("a", HELLO)
            .suite("red/deep/b", &HELLO.replace("name: a", "name: b"))
    };
    let tested = suites().test(&[]);
    tested.assert_all_passed();
    assert_eq!(request_counts(&agents), (1, 1));
    suites().test(&["red/deep"]).assert_all_passed();
    assert_eq!(request_counts(&agents), (2, 1));
    // The command line applies to every case.
    let chosen = suites().test(&["-n", "red"]);
    assert_eq!(request_counts(&agents), (4, 1));
    chosen.assert_all_passed();
}

#[test]
fn single_agent_is_default_target() {
    let agent = echo_agent();
    let project = Project::with_config(&format!("agents: {{ only: {{ endpoint: '{agent}' }} }}\n"));
    project.suite("a", HELLO).test(&[]).assert_all_passed();
}

#[test]
fn rejects_unknown_agent_names() {
    let agents = named_agents();
    for (before, args, code, words) in [
        ("target: blu\n", &["test"][..], 2, "unknown agent `blu`"),
        ("target: blu\n", &["test"], 2, "did you mean `blue`?"),
        // A misspelt selection selects nothing.
        ("target: blue\n", &["test", "-n", "rad"], 4, "did you mean `red`?"),
        ("target: blue\n", &["list", "-n", "purple"], 4, "there are red, blue"),
        ("", &["test"], 2, "has several agents (red, blue) and no `target`"),
    ] {
        project(&agents, before).suite("a", HELLO).hotseat(args).assert_stderr(code, &[words]);
    }
    Project::with_agent(&echo_agent())
        .suite("a", HELLO)
        .hotseat(&["test", "-n", "red"])
        .assert_stderr(4, &["unknown agent `red`", "define agents under `agents:` in the project file"]);
    let folder =
        Project::with_config("target: { endpoint: 'http://127.0.0.1:9/', folder: x }\n").suite("a", HELLO);
    folder.hotseat(&["test"]).assert_stderr(2, &["`folder` is supported only for entries of `agents`"]);
    assert_eq!(request_counts(&agents), (0, 0));
}

#[test]
fn unused_agent_needs_no_variables() {
    let agent = echo_agent();
    let project = Project::with_config(&format!(
        "target: here\nagents:\n  here: {{ endpoint: '{agent}' }}\n  there: {{ endpoint: '${{ENV.NOT_SET}}' }}\n"
    ))
    .suite("a", HELLO);
    project.test(&[]).assert_all_passed();
    project
        .hotseat(&["test", "-n", "there"])
        .assert_stderr(2, &["environment variable `NOT_SET` is not set"]);
}

#[test]
fn starts_only_used_agents() {
    let agents = named_agents();
    let start = |name: &str, agent: &FakeAgent| {
        // The address answers only after the program has started, so a passing case proves that it was
        // started.
        format!(
            "  {name}: {{ endpoint: '{agent}', folder: {name}, start: {{ command: [sh, start.sh, {name}], ready: '{agent}' }} }}\n"
        )
    };
    let file = format!("agents:\n{}{}", start("red", &agents[0]), start("blue", &agents[1]));
    let project =
        Project::with_config(&file).file("start.sh", "touch started-$1; sleep 1000\n").suite("red/a", HELLO);
    // Both addresses are already in use, so starting fails: only the agent that is used is started.
    let output = project.hotseat(&["test"]);
    assert_eq!(output.code, 3, "{output}");
    assert!(
        output.stdout.contains(&agents[0].url()) && !output.stdout.contains(&agents[1].url()),
        "{output}"
    );
}

/// Secrets of an address are known, wherever the address is named.
#[test]
fn secrets_of_an_endpoint_of_the_command_line_are_redacted() {
    let (password, key) = ("hunter2hunter2", "qwertyuiop123");
    let address = format!("http://bob:{password}@127.0.0.1:1/?api_key={key}");
    let suite = "name: a\nturns: [{ user: hello }]\n";
    let projects = [
        ("target: { endpoint: 'http://127.0.0.1:1/' }\n".to_string(), &["--endpoint", &address][..]),
        (
            "agents: { one: { endpoint: 'http://127.0.0.1:1/' } }\n".to_string(),
            &["-n", "one", "--endpoint", &address],
        ),
        ("secrets: []\n".to_string(), &["--endpoint", &address]),
        (format!("target: {{ endpoint: '{address}' }}\n"), &[]),
    ];
    for (config, args) in projects {
        let project = Project::with_config(&config).suite("a", suite);
        let outputs = ["-o", "r.xml", "-o", "r.html", "--trace", "t.jsonl"];
        let run = project.test(&[args, &outputs].concat());
        assert_eq!(run.failure("a")["kind"], "unreachable", "{}", run.output);
        let files = ["out/report.json", "r.xml", "r.html", "t.jsonl", ".hotseat/runs.db"].map(|path| {
            String::from_utf8_lossy(&std::fs::read(project.workspace.path(path)).unwrap()).into_owned()
        });
        let saved = project.hotseat(&["runs", "--json"]).stdout;
        let shown = [&run.output.stdout, &run.output.stderr, &saved].into_iter().chain(&files);
        for (place, shown) in shown.enumerate() {
            for secret in [password, key] {
                assert!(!shown.contains(secret), "{config}, {place}: {shown}");
            }
        }
    }
    let project = Project::empty().suite("a", suite);
    let refused = project.hotseat(&["test", "--endpoint", &format!("ftp://bob:{password}@host/")]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(!refused.stderr.contains(password), "{refused}");
}
