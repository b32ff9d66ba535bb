//! What users of other test tools type: options, keys and assertion types are understood or answered in words.

use serde_json::json;

use crate::common::{Project, echo_agent};

const SUITE: &str = "name: greets\nturns: [{ user: hi }]\n---\nname: thanks\nturns: [{ user: hi }]\n";

#[test]
fn options_of_peers_are_understood() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", SUITE);
    let run = project.test(&["--filter", "^greets$", "--repeat", "2"]);
    assert_eq!((run.count("total"), agent.requests().len()), (1, 2), "{}", run.output);
}

#[test]
fn options_of_peers_are_answered() {
    let project = Project::with_agent(&echo_agent()).suite("a", SUITE);
    for (arguments, words) in [
        (&["--reporter", "junit"][..], "write `-o report.xml`"),
        (&["-r", "html"], "write `-o report.html`"),
        (&["-x"], "'--fail-fast'"),
        (&["-m", "slow"], "'--tag TAG'"),
        (&["--workers", "4"], "'--parallel N'"),
        (&["--junitxml=a.xml"], "'-o report.xml'"),
        (&["--grep-invert", "slow"], "'--exclude-tag TAG'"),
        (&["--collect-only"], "'hotseat list'"),
        (&["--base-url", "http://x/"], "'--endpoint URL'"),
        (&["-g", "slow"], "'--grep REGEX'"),
        (&["--ui"], "'--view'"),
    ] {
        let output = project.hotseat(&[&["test"], arguments].concat());
        assert!(output.code == 2 && output.stderr.contains(words), "{arguments:?}: {output}");
    }
}

#[test]
fn keys_of_peers_are_answered() {
    for (text, words) in [
        ("prompt: Hi\n", "write what the user says under `turns:`"),
        ("name: a\nprompts: [Hi]\nturns: [{ user: hi }]\n", "write what the user says under `turns:`"),
        (
            "name: a\nturns: [{ user: hi, assert: { tools: { require: [{ name: b, args: { x: 1 } }] } } }]\n",
            "`args_match: { NAME: PATTERN }`",
        ),
        ("tests: []\n", "separate them by a line `---`"),
        ("cases: []\n", "separate them by a line `---`"),
        ("name: a\nturns: [{ user: hi }]\nassert: [contains: hi]\n", "write `{ type: contains, value: … }`"),
        ("name: a\nvars: { x: 1 }\nturns: [{ user: hi }]\n", "`scenarios:`"),
        ("providers: [openai]\n", "`agents:` of hotseat.yaml"),
        ("suite: { target: { type: http } }\n", "`agents:` of hotseat.yaml"),
        ("name: a\nendpoint: 'http://x/'\nturns: [{ user: hi }]\n", "`agents:` of hotseat.yaml"),
        ("name: a\nturns: [{ user: hi, require: [pay] }]\n", "`assert: { tools: { require: [NAME]"),
        ("defaultTest: {}\n", "under `suite:` in a first document"),
        (
            "name: a\nturns: [{ user: hi }]\nassert: [{ type: llm-rubric, value: polite }]\n",
            "`{ type: satisfy,",
        ),
        ("name: a\nturns: [{ user: hi }]\nassert: [{ type: icontains, value: hi }]\n", "/text/i"),
        ("name: a\nturns: [{ user: hi }]\nassert: [{ type: contains-any, value: [hi] }]\n", "/one|other/i"),
        ("name: a\nturns: [{ user: hi }]\nassert: [{ type: is-json }]\n", "json_path"),
        ("name: a\nsimulator: agents:bob\n", "write `simulator: { use: \"agents:bob\" }`"),
        (
            "name: a\nturns: [{ user: hi }]\nmcp: { s: { type: proxy, endpoint: 'http://a/' } }\n",
            "it is called `url`",
        ),
        (
            "name: a\nturns: [{ user: hi }]\nassert: [{ type: tool_not_called, name: pay }]\n",
            "write `{ type: tool_called, negate: true, … }`",
        ),
        (
            "name: a\nturns: [{ user: hi }]\nassert: [{ type: not-regex, value: hi }]\n",
            "write `{ type: regex, negate: true, … }`",
        ),
    ] {
        let project = Project::with_agent(&echo_agent()).suite("a", text);
        let output = project.hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{text}: {words}\n{output}");
    }
    for (turn, words) in [
        (
            "user: hi, assert: [{ not: { type: contains, value: x } }]",
            "write `negate: true` beside the `type`",
        ),
        (
            "user: hi, assert: [{ anyOf: [{ type: contains, value: x }] }]",
            "one assertion that allows each of them",
        ),
        ("user: hi, assert: { all_of: [{ type: contains, value: x }] }", "all of them must hold"),
        ("user: hi, assert: [hi]", "write `{ type: contains, value: TEXT }`"),
        ("user: hi, assert: { text: hi }", "write `text: { must_match: PATTERN }`"),
        ("user: hi, assert: { text: { contains: hi } }", "write `must_match: PATTERN`"),
        ("user: hi, assert: { tools: { require: [{ name: x, count: '>=2' }] } }", "write `{ min: N }`"),
        (
            "user: hi, assert: { tools: { forbid_calls: [pay] } }",
            "list tools that must never be called under `forbid`",
        ),
        ("user: hi, assert: { timing: { max_duration_ms: 3s } }", "write 3000: the number of milliseconds"),
        ("user: hi, assert: [{ type: tool_called, tool: x }]", "the name of the tool under `name:`"),
        ("user: hi, assert: [{ type: satisfy, criteria: { prompt: kind } }]", "it is called `description`"),
        ("role: user, content: hi", "write what the user says under `user:`"),
        ("user: hi, agent: hello", "what you expect of its answer under `assert:`"),
        ("assistant: hello", "what you expect of its answer under `assert:`"),
    ] {
        let yaml = format!("name: a\nturns: [{{ {turn} }}]\n");
        let output = Project::with_agent(&echo_agent()).suite("a", &yaml).hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{turn}: {words}\n{output}");
    }
    let json = r#"{"name": "a", "turns": [{"user": "hi", "assert": [{"not": {"type": "contains", "value": "x"}}]}]}"#;
    Project::with_agent(&echo_agent())
        .file("a.test.jsonl", json)
        .hotseat(&["test"])
        .assert_stderr(2, &["write `negate: true`"]);
    for (key, words) in
        [("runs: 5", "`--runs N` runs every case N times"), ("only: true", "`hotseat test --run NAME`")]
    {
        let yaml = format!("name: a\n{key}\nturns: [{{ user: hi }}]\n");
        let output = Project::with_agent(&echo_agent()).suite("a", &yaml).hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{key}: {words}\n{output}");
    }
    let identity = Project::with_agent(&echo_agent()).suite("a", "name: a\nuser: hi\n").test(&[]);
    let detail = identity.failure("a").to_string();
    assert!(detail.contains("`user` of a case is the identity of the user"), "{detail}");
    for (config, words) in [
        ("providers: [x]\n", "agents are under `target:` or `agents:`; a case"),
        ("targets: { type: http }\n", "did you mean `target`?"),
        ("target: { url: 'http://127.0.0.1:1/' }\n", "it is called `endpoint`"),
        ("criteria: { kind: { prompt: Is it kind? } }\n", "it is called `description`"),
        ("target: { type: openai, baseURL: 'http://127.0.0.1:1/', model: m }\n", "it is called `base_url`"),
    ] {
        let project = Project::with_config(config).suite("a", SUITE);
        let output = project.hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{config}: {words}\n{output}");
    }
}

/// Older versions of YAML read these words as false.
#[test]
fn a_word_for_false_is_no_reason_to_skip() {
    for word in ["no", "Off", "'false'"] {
        let suite = format!("name: a\nskip: {word}\nturns: [{{ user: hi }}]\n");
        let output = Project::with_agent(&echo_agent()).suite("a", &suite).hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains("write `skip: false`"), "{word}: {output}");
    }
}

#[test]
fn required_tools_are_named_plainly() {
    let agent = hotseat_testkit::FakeAgent::with_run(|run, _| {
        run.tool("c1", "create_expense", &json!({}), Some(json!({}))).text("done").finished()
    });
    let block = |tool: &str| format!("{{ tools: {{ require: [{tool}], forbid: [delete_expense] }} }}");
    let yaml = |tool: &str| format!("name: a\nturns: [{{ user: hi, assert: {} }}]\n", block(tool));
    let jsonl = |tool: &str| {
        let assert = json!({"tools": {"require": [tool], "forbid": ["delete_expense"]}});
        json!({"name": "a", "turns": [{"user": "hi", "assert": assert}]}).to_string()
    };
    let script = |tool: &str| {
        format!(
            "import {{ it, user }} from \"hotseat\"; it(\"a\", {{ assert: {{ tools: {{ require: [\"{tool}\"] }} }} }}, () => {{ user.says(\"hi\"); }});"
        )
    };
    for (tool, code) in [("create_expense", 0), ("submit_expense", 1)] {
        for (file, text) in
            [("a.test.yaml", yaml(tool)), ("a.test.jsonl", jsonl(tool)), ("a_test.ts", script(tool))]
        {
            let project = Project::with_agent(&agent).file(file, &text);
            let output = project.hotseat(&["test"]);
            assert_eq!(output.code, code, "{file} {tool}: {output}");
            assert!(code == 0 || output.stdout.contains("submit_expense"), "{output}");
        }
    }
}

#[test]
fn misspelt_matchers_name_the_nearest() {
    let agent = echo_agent();
    for (call, words) in [
        ("expect(agent).toContian(\"hi\")", "unknown matcher `toContian`: did you mean `toContain`?"),
        ("expect(agent).not.toMach(/x/)", "unknown matcher `toMach`: did you mean `toMatch`?"),
        ("expect(1).tobe(1)", "unknown matcher `tobe`: did you mean `toBe`?"),
        ("expect(1).toEqul(1)", "unknown matcher `toEqul`: did you mean `toEqual`?"),
        ("expect(1).to_equal(1)", "unknown matcher `to_equal`: did you mean `toEqual`?"),
        ("evaluate(1).beAGreatThing()", "unknown matcher `beAGreatThing`"),
    ] {
        let text = format!(
            "import {{ agent, evaluate, expect, it, user }} from \"hotseat\";\nit(\"a\", () => {{\n  user.says(\"hi\");\n  {call};\n}});\n"
        );
        let project = Project::with_agent(&agent).file("a_test.ts", &text);
        let output = project.hotseat(&["test"]);
        assert!(output.code == 1 && output.stdout.contains(words), "{call}: {output}");
        assert!(output.stdout.contains("a_test.ts:4"), "{output}");
    }
    let fine = "import { agent, expect, it, user } from \"hotseat\"; it(\"a\", async () => { user.says(\"hi\"); await expect(agent).toContain(\"hi\"); });";
    let project = Project::with_agent(&agent).file("a_test.ts", fine);
    assert_eq!(project.hotseat(&["test"]).code, 0);
}
