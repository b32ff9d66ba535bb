//! Input sources of `-i`: files, messages, generators and stdin; and roles that write reports.

use hotseat_testkit::completions::complete_reply;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::{Project, TEST_TIMEOUT, echo_agent, unreachable_address};

/// A project with these agents, none of which is the target.
fn project(agents: &[(&str, String)]) -> Project {
    let agents: String = agents
        .iter()
        .map(|(name, url)| format!("  {name}: {{ endpoint: '{url}', description: 'Repeats' }}\n"))
        .collect();
    Project::with_config(&format!("agents:\n{agents}"))
}

#[test]
fn message_prints_only_reply() {
    let agent = FakeAgent::with_run(|run, request| match request.last_user_text().as_str() {
        "json" => run.text("{\"a\": {\"b\": 1}}").finished(),
        "tools" => run
            .tool("c1", "find_order", &json!({"id": 7}), Some(json!({"status": "sent"})))
            .text("It was sent.")
            .finished(),
        "fail" => run.error("out of order", None),
        said => run.text(&format!("You said: {said}")).finished(),
    });
    let project = project(&[("mock", agent.url())]);
    let said = |text: &str| project.hotseat(&["test", "-n", "mock", "-i", text]);
    assert_eq!(said("Hello, how are you?").stdout, "You said: Hello, how are you?\n");
    assert_eq!(said("a/b?").stdout, "You said: a/b?\n");
    assert_eq!(said("Note: buy milk").stdout, "You said: Note: buy milk\n");
    assert_eq!(said("x\n::error::forged").stdout, "You said: x\n:: error::forged\n");
    assert_eq!(said("json").stdout, "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n");
    assert_eq!(
        said("tools").stdout,
        "It was sent.\n--- Tool Calls ---\nfind_order → OK (args: {\"id\":7})\n"
    );
    let failed = said("fail");
    assert_eq!(failed.code, 1, "{failed}");
    assert!(failed.stdout.starts_with("error: the agent failed: out of order"), "{failed}");
    assert_eq!(agent.requests()[0].user_texts(), ["Hello, how are you?"]);

    let verbose = project.hotseat(&["test", "-n", "mock", "-i", "hi", "-v", "-o", "out.json"]);
    assert!(verbose.stdout.contains("PASSED"), "{verbose}");
    let report = project.workspace.read_json("out.json");
    assert_eq!(report["results"][0]["output"], "You said: hi");
}

/// A part of a suite is selected without `-i`, which takes whole suites.
#[test]
fn parts_of_suites_are_no_messages() {
    let agent = echo_agent();
    let project = project(&[("mock", agent.url())]).file("a.test.yaml", "name: a\ninput: hi\n");
    for part in ["a.test.yaml:1", "a.test.yaml::a"] {
        let output = project.hotseat(&["test", "-n", "mock", "-i", part]);
        output.assert_code(2);
        assert!(output.stderr.contains(&format!("leave `-i` out: `hotseat test {part}`")), "{output}");
    }
    assert_eq!(agent.requests().len(), 0);
    // Only a human can give this case a message.
    let bare =
        project.file("b.test.yaml", "name: b\n").hotseat(&["test", "--dry-run", "-n", "mock", "b.test.yaml"]);
    assert!(bare.stderr.contains("this case has no `turns` and asserts nothing: it fails"), "{bare}");
}

/// A message has no assertions, so no note says that; the other notes are as for suites.
#[test]
fn notes_about_flags_are_printed_for_a_message() {
    let project = Project::with_config("target: { type: command, protocol: text, command: [cat] }\n")
        .file("ctx.json", r#"{"authorized": {"user_id": "mary"}}"#);
    let output = project.hotseat(&["test", "-i", "hi", "-u", "bob", "--ctx", "ctx.json"]);
    assert_eq!((output.stdout.as_str(), output.code), ("hi\n", 0), "{output}");
    insta::assert_snapshot!(output.stderr, @r"
    note: -u bob overrides `authorized.user_id` of --ctx (mary)
    note: -u: not supported by the agent
    ");
}

#[test]
fn a_script_without_the_name_of_tests_is_refused_by_its_name() {
    let script = "import { it, user } from 'hotseat';\nit('a', () => user.says('hi'));\n";
    let agent = echo_agent();
    for (name, renamed) in [
        ("rooms.test.ts", "rooms_test.ts"),
        ("rooms.spec.js", "rooms_test.js"),
        ("rooms_test.tsx", "rooms_test.ts"),
        ("rooms.test.cts", "rooms_test.ts"),
        ("rooms_test.cjs", "rooms_test.ts"),
        ("Rooms.mts", "Rooms_test.mts"),
    ] {
        let project = Project::with_agent(&agent).file(&format!("tests/{name}"), script);
        let path = format!("tests/{name}");
        for args in [&[&*path][..], &["-i", &path], &["tests/*"], &[&format!("{path}:2")]] {
            let output = project.hotseat(&[&["test"], args].concat());
            assert_eq!(output.code, 2, "{output}");
            let words = format!("{path} is not run: the names of tests in TypeScript and JavaScript end in");
            let help = format!("rename it to `{renamed}`");
            assert!(output.stderr.contains(&words) && output.stderr.contains(&help), "{args:?}\n{output}");
        }
    }
    let output = Project::with_agent(&agent).hotseat(&["test", "-i", "rooms.test.tsx"]);
    assert!(output.stderr.contains("no such file or folder: rooms.test.tsx"), "{output}");
}

#[test]
fn rejects_invalid_input_sources() {
    let agent = echo_agent();
    let project = project(&[("mock", agent.url()), ("other", agent.url())]);
    for (args, words) in [
        (&["-i", "agnets:x", "-n", "mock"][..], "did you mean `agents:x`?"),
        (&["-i", "hello"], "`-n`"),
        (&["-i", "agents:", "-n", "mock"], "`agents:` does not name an agent, connector or script"),
        (&["-i", "hello", "a.test.yaml"], "cannot be used with"),
    ] {
        project.hotseat(&[&["test"], args].concat()).assert_stderr(2, &[words]);
    }
    // The same misspelt path selects nothing, with and without `-i`.
    let project = project.suite("cases", "name: a\nturns: [{ user: hi }]\n");
    for (args, words) in [
        (&["-i", "./nope.jsonl"][..], "no such file or folder: ./nope.jsonl"),
        (&["-i", "nope_test.ts"], "no such file or folder: nope_test.ts"),
        (&["./nope.jsonl"], "no such file or folder: ./nope.jsonl"),
        (&["-i", "@nope.txt"], "no such file or folder: nope.txt"),
        (&["-i", "cass.test.yaml"], "did you mean `cases.test.yaml`?"),
        (&["cass.test.yaml"], "did you mean `cases.test.yaml`?"),
    ] {
        project.hotseat(&[&["test", "-n", "mock"], args].concat()).assert_stderr(4, &[words]);
    }
    assert_eq!(agent.requests().len(), 0);
}

#[test]
fn accepts_every_input_flag_spelling() {
    let agent = echo_agent();
    let project = project(&[("mock", agent.url())])
        .file("some/cases.jsonl", "// one\n{\"id\": \"a\", \"input\": \"hi\", \"assertions\": [{\"type\": \"contains\", \"value\": \"hi\"}]}\n");
    for input in ["some/cases.jsonl", "./some/cases.jsonl", "@some/cases.jsonl"] {
        project.hotseat(&["test", "-n", "mock", "-i", input]).assert_code(0);
    }
    let absolute = project.workspace.path("some/cases.jsonl");
    project.hotseat(&["test", "-i", absolute.to_str().unwrap()]).assert_code(0);
    assert_eq!(agent.requests().len(), 4);
}

const CASES: &str = r#"```json
{"cases": [
  {"id": "G001", "input": "hi", "assertions": [{"type": "contains", "value": "hi"}]},
  {"id": "G002", "name": "Two turns", "turns": [{"input": "a"}, {"input": "b", "assert": [{"type": "equals", "value": "You said: b"}]}]},
  {"id": "G003", "simulator": {"metadata": {"goal": "leave"}}, "checkpoints": [{"id": "x", "assertion": {"type": "contains", "value": "bye"}}], "tags": ["made-up"]}
]}
```"#;

/// Generated cases cannot name a simulator of their own.
fn with_simulator(project: Project) -> Project {
    let text = project.workspace.read("hotseat.yaml");
    project.file("hotseat.yaml", &format!("{text}simulator: agents:user\n"))
}

#[test]
fn generates_cases() {
    let (agent, generator, user) =
        (echo_agent(), FakeAgent::with_text(CASES), FakeAgent::with_text("good bye"));
    let project =
        project(&[("mock", agent.url()), ("workers.test.generator", generator.url()), ("user", user.url())]);
    let project = with_simulator(project);
    let input = "agents:workers.test.generator?count=10&focus=edge-cases";
    let tested = project.test(&["-i", input, "-n", "mock"]);
    tested.assert_all_passed();
    assert_eq!(tested.count("total"), 3);
    assert_eq!(agent.requests().len(), 4);
    let told = generator.requests()[0].last_user_json();
    for (key, value) in [
        ("test_mode", json!("generator")),
        ("target_agent", json!("mock")),
        ("target_description", json!("Repeats")),
        ("count", json!(10)),
        ("focus", json!("edge-cases")),
    ] {
        assert_eq!(told[key], value, "{key}: {told:#}");
    }
}

#[test]
fn generated_cases_can_be_saved_and_rerun() {
    let (agent, generator, user) =
        (echo_agent(), FakeAgent::with_text(CASES), FakeAgent::with_text("good bye"));
    let project =
        with_simulator(project(&[("mock", agent.url()), ("gen", generator.url()), ("user", user.url())]));
    let printed = project.hotseat(&["test", "-i", "agents:gen", "-n", "mock", "--dry-run"]);
    assert_eq!(printed.code, 0, "{printed}");
    assert_eq!(printed.stdout.lines().count(), 3, "{printed}");
    project
        .hotseat(&["test", "-i", "agents:gen", "-n", "mock", "--dry-run", "-o", "tests/generated.jsonl"])
        .assert_code(0);
    assert_eq!(project.workspace.read("tests/generated.jsonl"), printed.stdout);
    let third: Value = serde_json::from_str(printed.stdout.lines().nth(2).unwrap()).unwrap();
    assert_eq!(third["tags"], json!(["made-up"]), "nothing is lost");
    assert_eq!(agent.requests().len(), 0);
    let told = generator.requests()[0].last_user_json();
    assert_eq!(told["count"], 5, "default number of cases");

    let tested = project.test(&["-i", "tests/generated.jsonl", "-n", "mock"]);
    tested.assert_all_passed();
    assert_eq!(tested.count("total"), 3);
}

/// The answer of a model is data: it must not run programs, read files or learn variables.
#[test]
fn generated_cases_get_no_rights() {
    let agent = echo_agent();
    let harmless = FakeAgent::with_text(
        r#"{"cases": [{"id": "G1", "input": "say ${ENV.PRIVATE} and ${x}", "assert": {"text": {"must_match": "ENV.PRIVATE"}}}]}"#,
    );
    let hooks = FakeAgent::with_text(
        r#"{"cases": [{"id": "G1", "input": "x", "hooks": [{"cmd": ["touch", "here"]}]}]}"#,
    );
    let files = FakeAgent::with_text(
        r#"{"cases": [{"id": "G1", "turns": [{"input": "x", "attachments": [{"type": "image", "path": "a.png"}]}]}]}"#,
    );
    let head = FakeAgent::with_text(
        r#"{"cases": [{"suite": {"hooks": [{"cmd": ["touch", "here"]}]}}, {"id": "G1", "input": "x"}]}"#,
    );
    let content = FakeAgent::with_text(
        r#"{"cases": [{"id": "G1", "turns": [{"user": [{"type": "file", "source": "file://hotseat.yaml"}]}]}]}"#,
    );
    let prompt = FakeAgent::with_text(
        r#"{"cases": [{"id": "G1", "simulate": {"use": "harmless", "goal": "x", "template": "hotseat.yaml"}}]}"#,
    );
    let references = [
        ("`use`", r#""assertions": [{"type": "agent", "use": "agents:other", "criteria": "x"}]"#),
        ("`use`", r#""simulator": {"use": "other"}"#),
        ("`use`", r#""simulate": {"use": "agents:other", "goal": "x"}"#),
        ("`judge`", r#""assert": [{"type": "satisfy", "criteria": "It is kind.", "judge": "agents:other"}]"#),
        ("`use`", r#""judge": {"use": "other"}"#),
        ("`type: script`", r#""evaluate": [{"type": "script", "use": "evil.run"}]"#),
        (
            "`function`",
            r#""criteria": {"kind": {"function": "evil.run"}}, "assert": [{"type": "satisfy", "criteria": "kind"}]"#,
        ),
        ("`scripts:`", r#""assert": [{"type": "satisfy", "criteria": " scripts:evil.run"}]"#),
    ];
    let referring = FakeAgent::with_run(move |run, request| {
        let told: Value = serde_json::from_str(&request.last_user_text()).unwrap_or_default();
        let (_, part) = references[told["number"].as_u64().unwrap_or_default() as usize];
        let cases = format!(r#"{{"cases": [{{"id": "G1", "input": "x", {part}}}]}}"#);
        run.text(&cases).finished()
    });
    let project = project(&[
        ("mock", agent.url()),
        ("referring", referring.url()),
        ("harmless", harmless.url()),
        ("hooks", hooks.url()),
        ("files", files.url()),
        ("head", head.url()),
        ("content", content.url()),
        ("prompt", prompt.url()),
    ]);
    let run = project.test_in(&[("PRIVATE", "do not tell")], &["-i", "agents:harmless", "-n", "mock"]);
    run.assert_all_passed();
    assert_eq!(agent.requests()[0].last_user_text(), "say ${ENV.PRIVATE} and ${x}");
    for (input, key) in [
        ("agents:hooks", "`hooks`"),
        ("agents:files", "`attachments`"),
        ("agents:head", "`suite`"),
        ("agents:content", "`file://`"),
        ("agents:prompt", "`template`"),
    ] {
        project.hotseat(&["test", "-i", input, "-n", "mock"]).assert_stderr(3, &[key]);
    }
    let text = project.workspace.read("hotseat.yaml");
    let project = project
        .file("hotseat.yaml", &format!("{text}  other: {{ type: command, command: [touch, here] }}\n"))
        .file("evil.ts", "export function run() { return true; }\n");
    for (number, (key, part)) in references.iter().enumerate() {
        let input = format!("agents:referring?number={number}");
        let output = project.hotseat(&["test", "-i", &input, "-n", "mock"]);
        assert!(output.code == 3 && output.stderr.contains(key), "{part}\n{output}");
    }
    assert!(!crate::common::exists(&project.workspace, "here"));
    assert_eq!(agent.requests().len(), 1);
}

/// Cases that are skipped would let a run pass without any test.
#[test]
fn generated_cases_are_run() {
    let agent = echo_agent();
    let skipped = FakeAgent::with_text(
        r#"{"cases": [{"id": "G1", "input": "hi", "skip": false}, {"id": "G2", "input": "hi", "skip": "later"}]}"#,
    );
    let few = FakeAgent::with_text(
        r#"{"cases": [{"id": "G1", "input": "hi", "assert": [{"type": "contains", "value": "hi"}]}]}"#,
    );
    let project = project(&[("mock", agent.url()), ("skipped", skipped.url()), ("few", few.url())]);
    project
        .hotseat(&["test", "-i", "agents:skipped", "-n", "mock"])
        .assert_stderr(3, &["agents:skipped wrote a case with `skip`"]);
    assert!(agent.requests().is_empty());
    project
        .hotseat(&["test", "-i", "agents:few?count=3", "-n", "mock"])
        .assert_stderr(0, &["note: agents:few wrote 1 of 3 cases"]);
}

#[test]
fn failing_generators_end_run() {
    let agent = echo_agent();
    let prose = FakeAgent::with_text("I cannot think of any.");
    let wrong = FakeAgent::with_text(r#"{"cases": [{"id": "G1", "input": "hi", "asserts": []}]}"#);
    let nameless = FakeAgent::with_text(r#"{"cases": [{"id": "G0", "input": "x"}, {"input": "hi"}]}"#);
    let project = project(&[
        ("mock", agent.url()),
        ("prose", prose.url()),
        ("wrong", wrong.url()),
        ("nameless", nameless.url()),
        ("gone", unreachable_address()),
    ]);
    for (input, code, words) in [
        ("agents:prose", 3, "failed to parse generator response as JSON"),
        ("agents:gone", 3, "agents:gone generated no cases"),
        ("agents:wrong", 2, "did you mean `assert`?"),
        ("agents:nameless", 2, "neither `name` nor `id`"),
        ("agents:nobody", 2, "unknown agent `nobody`"),
        ("connectors:none", 2, "none"),
    ] {
        project.hotseat(&["test", "-i", input, "-n", "mock"]).assert_stderr(code, &[words]);
    }
    project
        .hotseat(&["test", "-i", "agents:prose"])
        .assert_stderr(2, &["no agent is selected for the generated cases"]);
    assert_eq!((agent.requests().len(), prose.requests().len()), (0, 1));
}

#[test]
fn interactive_conversation_can_be_saved() {
    let agent = echo_agent();
    let project = project(&[("mock", agent.url())]);
    let args = ["test", "-i", "-", "-n", "mock", "--interactive", "-o", "out.json", "--save", "saved.jsonl"];
    project.command(&args).stdin("hi\nbye\n").run().assert_code(0);
    let report = project.workspace.read_json("out.json");
    let turns = report["results"][0]["turns"].as_array().unwrap();
    let said: Vec<&Value> = turns.iter().map(|turn| &turn["input"]).collect();
    assert_eq!(said, ["hi", "bye"]);
    assert!(turns.iter().all(|turn| turn["input_source"] == "interactive"));

    let saved = project.workspace.read_json("saved.jsonl");
    assert_eq!(saved["turns"], json!([{"input": "hi"}, {"input": "bye"}]));
    let again = project.test(&["-n", "mock", "-i", "saved.jsonl"]);
    again.assert_all_passed();
    assert_eq!(agent.requests().len(), 4);

    // What looks like a variable was text, and is text again.
    std::fs::remove_file(project.workspace.path("saved.jsonl")).unwrap();
    project.command(&args).stdin("tell ${ENV.HOME} and ${x}\n").run().assert_code(0);
    project.test(&["-n", "mock", "-i", "saved.jsonl"]).assert_all_passed();
    let texts: Vec<String> =
        agent.requests().iter().skip(4).map(|request| request.last_user_text()).collect();
    assert_eq!(texts, ["tell ${ENV.HOME} and ${x}"; 2]);

    let with_input = |text: &str| project.command(&["test", "-i", "-", "-n", "mock"]).stdin(text).run();
    with_input("").assert_stdout(1, &["no initial input", "give a message"]);
    let ended = with_input("/end\n");
    ended.assert_stdout(1, &["no message was given"]);
    assert!(!ended.stdout.contains("empty") && !ended.stdout.contains("--on-missing-input"), "{ended}");
    project
        .command(&["test", "-i", "-", "-n", "mock", "--skip-interactive"])
        .run()
        .assert_stderr(2, &["drop one of them"]);
}

#[test]
fn interactive_terminal_shows_new_output() {
    let agent = echo_agent();
    let project = project(&[("mock", agent.url())]);
    let mut running =
        project.command(&["test", "-i", "-", "-n", "mock"]).terminal(70).timeout(TEST_TIMEOUT).spawn();
    running.wait_for_stdout("You> ");
    running.type_line("hello");
    running.wait_for_stdout("Agent: You said: hello\r\nYou> ");
    running.type_line("more");
    let seen = running.wait_for_stdout("Agent: You said: more\r\nYou> ");
    assert_eq!(seen.matches("Agent: You said: hello").count(), 1, "{seen}");
    running.type_line("/end");
    running.wait().assert_code(0);
}

#[test]
#[cfg(target_os = "linux")]
fn line_that_the_terminal_cuts_off_is_not_sent() {
    let agent = echo_agent();
    let project = project(&[("mock", agent.url())]);
    let mut running =
        project.command(&["test", "-i", "-", "-n", "mock"]).terminal(70).timeout(TEST_TIMEOUT).spawn();
    running.wait_for_stdout("You> ");
    running.type_line(&"x".repeat(9_000));
    running.wait_for_stdout("so this one was not sent");
    running.type_line(&"y".repeat(4_000));
    running.wait_for_stdout("Agent: You said: yyy");
    running.type_line("/end");
    running.wait().assert_code(0);
    let sent: Vec<usize> = agent.requests().iter().map(|request| request.last_user_text().len()).collect();
    assert_eq!(sent, [4_000]);
}

#[test]
fn cancelled_interactive_conversation_is_saved() {
    let agent = FakeAgent::with_run(|run, request| -> FakeReply {
        match request.last_user_text().as_str() {
            "hi" => run.text("Hello. Who are you?").finished().into(),
            _ => run.gate("never").hang().into(),
        }
    });
    let project = project(&[("mock", agent.url())]);
    let args = ["test", "-i", "-", "-n", "mock", "--interactive", "--save", "saved.jsonl"];
    let mut running = project.command(&args).stdin("hi\nbye\n").spawn();
    agent.wait_at_gate("never", TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    running.press_ctrl_c();
    running.wait().assert_code(130);
    let saved = project.workspace.read_json("saved.jsonl");
    assert_eq!(saved["turns"], json!([{"input": "hi"}, {"input": "bye"}]));
}

/// People add assertions to the saved file.
#[test]
fn saved_cases_replace_no_content() {
    let agent = echo_agent();
    let project = project(&[("mock", agent.url())]).file("edited.jsonl", "{}\n").file("empty.jsonl", "");
    let save = |file| project.command(&["test", "-i", "-", "-n", "mock", "--save", file]).stdin("hi\n").run();
    save("edited.jsonl").assert_stderr(
        3,
        &["cannot write edited.jsonl: it has content", "choose another name, or delete the file"],
    );
    assert_eq!((project.workspace.read("edited.jsonl").as_str(), agent.requests().len()), ("{}\n", 0));
    save("empty.jsonl").assert_code(0);
    assert!(project.workspace.read("empty.jsonl").contains("\"input\":\"hi\""));
}

#[test]
fn saved_case_includes_simulated_turns() {
    let (agent, user) = (echo_agent(), FakeAgent::with_text("good bye"));
    let case = json!({
        "id": "a", "tags": ["x"], "input": "hi", "simulator": {"use": "user"},
        "checkpoints": [{"id": "end", "assertion": {"type": "contains", "value": "bye"}}]
    });
    let project =
        project(&[("mock", agent.url()), ("user", user.url())]).file("a.test.jsonl", &case.to_string());
    project.hotseat(&["test", "-n", "mock", "--save", "saved.jsonl"]).assert_code(0);
    let saved = project.workspace.read_json("saved.jsonl");
    assert_eq!(saved["turns"], json!([{"input": "hi"}, {"input": "good bye"}]));
    assert_eq!((&saved["tags"], &saved["checkpoints"]), (&case["tags"], &case["checkpoints"]));
    assert_eq!((saved.get("simulator"), saved.get("input")), (None, None));
}

/// The written turns replace the simulated user, whose goal and scenario belong to the case.
#[test]
fn saved_simulations_run_again() {
    let (agent, user) = (echo_agent(), FakeAgent::with_text("good bye"));
    let judge = FakeAgent::with_text(r#"{"reasoning": "It is.", "achieved": true}"#);
    let agents = [("mock", agent.url()), ("user", user.url()), ("j", judge.url())];
    let suite = "suite:
  criteria: { polite: { match: [{ type: contains, value: said }] } }
---
name: visit
scenarios: [{ id: one, name: One, goal: See one }, { id: two, name: Two, goal: See two }]
turns: [{ user: 'hi ${scenario.name}', assert: [{ type: satisfy, criteria: polite }] }]
simulate: { use: 'agents:user', goal: '${scenario.goal}', max_turns: 1 }
final_assertions: [{ type: goal, judge: 'agents:j' }]
";
    let project = project(&agents).file("a.test.yaml", suite);
    let output = project.hotseat(&["test", "-n", "mock", "--parallel", "1", "--save", "saved.test.jsonl"]);
    let saved = project.workspace.read("saved.test.jsonl");
    assert_eq!(saved.lines().count(), 3, "{output}{saved}");
    assert!(!saved.contains("simulate") && saved.contains(r#""goal":"${scenario.goal}""#), "{saved}");
    project.hotseat(&["list", "-n", "mock", "saved.test.jsonl"]).assert_code(0);
    let asked = user.requests().len();
    let again = project.test(&["-n", "mock", "--parallel", "1", "saved.test.jsonl"]);
    again.assert_all_passed();
    assert_eq!(again.report["summary"]["total"], 2, "{}", again.output);
    assert_eq!(user.requests().len(), asked, "{}", again.output);
    let turns = again.report["results"][0]["turns"].as_array().expect("turns");
    let said: Vec<&Value> = turns.iter().map(|turn| &turn["input"]).collect();
    assert_eq!(said, ["hi One", "good bye"], "{}", again.output);
}

#[test]
fn written_cases_can_be_run() {
    let agent = echo_agent();
    let head = "suite:\n  criteria: { polite: { match: [{ type: contains, value: said }] } }\n---\n";
    let case = "name: visit
scenarios: [{ id: one, name: One, goal: See one }, { id: two, name: Two, goal: See two }]
turns: [{ user: 'hi ${scenario.name}', assert: [{ type: satisfy, criteria: polite }] }]
";
    let project = project(&[("mock", agent.url())])
        .file("a.test.yaml", &format!("{head}{case}"))
        .file("b.test.yaml", "name: other\nturns: [{ user: hi, assert: { text: { must_match: hi } } }]\n")
        .file("c_test.ts", "import { it, user } from 'hotseat';\nit('c', () => user.says('hi'));\n");
    let write = |suites: &[&str]| {
        project.hotseat(&[&["test", "-n", "mock", "--dry-run", "-o", "written.test.jsonl"], suites].concat())
    };
    write(&["a.test.yaml"]).assert_code(0);
    let run = project.test(&["-n", "mock", "written.test.jsonl"]);
    run.assert_all_passed();
    assert_eq!(run.report["summary"]["total"], 2, "{}", run.output);
    for (suites, words) in [
        (["a.test.yaml", "b.test.yaml"], "one of these suites has shared settings (`suite`)"),
        (["b.test.yaml", "c_test.ts"], "`c` is a program, which cannot be written as a case"),
    ] {
        write(&suites).assert_stderr(2, &[words]);
    }
}

#[test]
fn role_can_write_report() {
    let (agent, writer) = (echo_agent(), FakeAgent::with_text("# All is well\n\u{1b}[31mred"));
    let suite = r#"{"id": "a", "input": "hi", "assertions": [{"type": "contains", "value": "hi"}]}"#;
    let project = project(&[("mock", agent.url()), ("rep", writer.url())]).file("a.test.jsonl", suite);
    project.hotseat(&["test", "-n", "mock", "-r", "rep", "-o", "report.md", "-o", "out.json"]).assert_code(0);
    assert_eq!(project.workspace.read("report.md"), "# All is well\n\u{1b}[31mred");
    let told = writer.requests()[0].last_user_json();
    assert_eq!((&told["format"], &told["test_mode"]), (&json!("md"), &json!("reporter")));
    let own = project.workspace.read_json("out.json");
    assert_eq!(told["report"]["results"][0]["id"], own["results"][0]["id"]);
    assert_eq!(told["report"]["summary"]["passed"], 1);

    let printed = project.hotseat(&["test", "-n", "mock", "-r", "agents:rep"]);
    assert!(printed.stdout.ends_with("# All is well\n␛[31mred\n"), "{printed}");
}

/// Each line of a script error is a line of the message.
#[test]
fn errors_of_report_writers_keep_their_lines() {
    let agent = echo_agent();
    let script = "export function report(): string {\n  throw new Error('out of paper');\n}\n";
    let suite = r#"{"id": "a", "input": "hi", "assertions": [{"type": "contains", "value": "hi"}]}"#;
    let project = project(&[("mock", agent.url())]).file("a.test.jsonl", suite).file("w.ts", script);
    let output = project.hotseat(&["test", "-n", "mock", "-r", "scripts:w.report"]);
    assert_eq!(output.code, 3, "{output}");
    let message = "error: scripts:w.report wrote no report: w.ts:2:13: Error: out of paper\n";
    assert!(output.stderr.contains(message), "{output}");
    assert!(output.stderr.contains("\n  2 |   throw new Error("), "{output}");
    assert!(!output.stderr.contains('␊'), "{output}");
    // In the stream of events they are one event.
    let output =
        project.hotseat(&["test", "--json", "-n", "mock", "-r", "scripts:w.report", "-o", "report.md"]);
    let is_error = |line: &&str| line.contains("wrote no report");
    let [event] = output.stdout.lines().filter(is_error).collect::<Vec<_>>()[..] else { panic!("{output}") };
    let event: Value = serde_json::from_str(event).expect("an event");
    assert!(event.to_string().contains("throw new Error("), "{event}");
}

/// A case that is written elsewhere would be decided by other files, or test another agent.
#[test]
fn written_cases_test_what_their_suites_test() {
    let (one, two) = (echo_agent(), echo_agent());
    let config = format!(
        "agents: {{ one: {{ endpoint: '{}', folder: tests/own }}, two: {{ endpoint: '{}' }} }}\ntarget: two\n",
        one.url(),
        two.url()
    );
    let prompt = "{{system}} {{rules}} {{conversation}}";
    let tools = "{\"tools\": []}";
    let project = Project::with_config(&config)
        .file("src/checks.ts", "export function polite() { return true; }\n")
        .file("tests/sub/src/checks.ts", "export function polite() { return false; }\n")
        .file(
            "tests/sub/script.test.yaml",
            "name: p\ninput: hi\nassert: [{ type: script, use: 'scripts:checks.polite' }]\n",
        )
        .file("tests/sub/hook.test.yaml", "name: h\ninput: hi\nbefore: checks.polite\n")
        .file("tests/own/agent.test.yaml", "name: a\ninput: hi\n")
        .file("tests/sub/r.jpg", "x")
        .file(
            "tests/sub/file.test.yaml",
            "name: f\nturns: [{ user: hi, attachments: [{ type: image, source: 'file://./r.jpg' }] }]\n",
        )
        .file("tests/sub/prompt.md", prompt)
        .file(
            "tests/sub/prompt.test.yaml",
            "name: s\ninput: hi\nsimulate: { use: 'agents:one', goal: end, template: prompt.md, max_turns: 1 }\n",
        )
        .file("tests/sub/tools.json", tools)
        .file(
            "tests/sub/mcp.test.yaml",
            "name: m\ninput: hi\nmcp: { bank: { type: mock, tools_from: tools.json } }\n",
        )
        .file("tests/x.test.yaml", "name: same\ninput: hi\n")
        .file("tests/y.test.yaml", "name: same\ninput: hi\n")
        .file("all.json", tools)
        .file(
            "tests/free.test.yaml",
            "name: free\ninput: hi\nmcp: { bank: { type: mock, tools_from: all.json } }\nassert: [{ type: script, use: 'scripts:checks.polite' }]\n",
        );
    let write =
        |suites: &[&str], to: &str| project.hotseat(&[&["test", "--dry-run", "-o", to][..], suites].concat());
    for (suites, words) in [
        (&["tests/sub/script.test.yaml"][..], "`scripts:checks.polite` would be another function, or none"),
        (&["tests/sub/hook.test.yaml"], "`checks.polite` would be another function, or none"),
        (&["tests/own/agent.test.yaml"], "it would test agent `two`, and not agent `one`"),
        (&["tests/sub/file.test.yaml"], "`./r.jpg` would be another file, or none"),
        (&["tests/sub/prompt.test.yaml"], "`prompt.md` would be another file, or none"),
        (&["tests/sub/mcp.test.yaml"], "`tools.json` would be another file, or none"),
        (&["tests/x.test.yaml", "tests/y.test.yaml"], "a case of another suite has the id `same`, too"),
    ] {
        let refused = write(suites, "all.test.jsonl");
        refused.assert_code(2);
        let place = format!("{}:1:", suites[suites.len() - 1]);
        for words in [words, "-o all.test.jsonl: this case cannot be written there", &place] {
            assert!(refused.stderr.contains(words), "{words}: {refused}");
        }
        assert!(!project.workspace.path("all.test.jsonl").exists(), "{refused}");
    }
    let refused = write(&["tests/own/agent.test.yaml"], "all.test.jsonl");
    let help = "write it beside its suite: `-o tests/own/all.test.jsonl`";
    assert!(refused.stderr.contains(help), "{refused}");

    for (suite, to, code) in [
        ("tests/sub/script.test.yaml", "tests/sub/all.test.jsonl", 1),
        ("tests/own/agent.test.yaml", "tests/own/all.test.jsonl", 0),
        ("tests/sub/file.test.yaml", "tests/sub/all.test.jsonl", 0),
        ("tests/sub/mcp.test.yaml", "tests/sub/all.test.jsonl", 0),
        // Its files are those of the project.
        ("tests/free.test.yaml", "all.test.jsonl", 0),
    ] {
        write(&[suite], to).assert_code(0);
        project.hotseat(&["test", to]).assert_code(code);
        project.hotseat(&["test", suite]).assert_code(code);
    }

    let asked = one.requests().len() + two.requests().len();
    let saved = project.hotseat(&["test", "tests/sub/prompt.test.yaml", "--save", "saved.test.jsonl"]);
    saved.assert_code(2);
    assert!(saved.stderr.contains("`--save tests/sub/saved.test.jsonl`"), "{saved}");
    assert_eq!(one.requests().len() + two.requests().len(), asked, "{saved}");
    // A case that no simulated user continues is not saved.
    let args = ["test", "tests/own/agent.test.yaml", "--save", "saved.test.jsonl"];
    project.hotseat(&args).assert_code(0);
}

#[test]
fn report_exists_if_report_writer_fails() {
    let agent = echo_agent();
    let failing = FakeAgent::start(|_: &FakeRequest| FakeReply::text(500, "out of order"));
    let suite = r#"{"id": "a", "input": "hi", "assertions": [{"type": "contains", "value": "hi"}]}"#;
    let project = project(&[("mock", agent.url()), ("rep", failing.url())]).file("a.test.jsonl", suite);
    project
        .hotseat(&["test", "-n", "mock", "-r", "rep", "-o", "report.md"])
        .assert_stderr(3, &["agents:rep wrote no report"]);
    let kept = project.workspace.read_json("report.json");
    assert_eq!(kept["summary"]["passed"], 1);
    // A report that was cut off may lack the failures.
    let cut = FakeAgent::start(|_: &FakeRequest| {
        complete_reply(json!({"role": "assistant", "content": "# Repo"}), "length")
    });
    let connector =
        format!("connectors: {{ cut: {{ type: openai, base_url: '{cut}v1', model: m, stream: false }} }}\n");
    let text = project.workspace.read("hotseat.yaml");
    project.workspace.file("hotseat.yaml", &(text + &connector));
    project
        .hotseat(&["test", "-n", "mock", "-r", "connectors:cut", "-o", "cut.md"])
        .assert_stderr(3, &["its answer was truncated at the length limit"]);
    assert!(!crate::common::exists(&project.workspace, "cut.md"));
    project.hotseat(&["test", "-n", "mock", "-r", "nobody", "-o", "report.md"]).assert_code(2);
    assert_eq!(agent.requests().len(), 2, "nothing is run for a helper that there is not");
}
