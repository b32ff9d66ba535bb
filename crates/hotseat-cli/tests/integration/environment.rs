//! The environment of a run: `.env`, colors, another address of the agent, and `hotseat doctor`.

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::Value;

use crate::common::{Project, echo, echo_agent, unreachable_address};

const SECRET: &str = "sekrit-0815-value";

fn suite() -> &'static str {
    "name: says it\nturns: [{ user: hi, assert: { text: { must_match: hi } } }]\n"
}

#[test]
fn env_file_sets_variables_and_is_redacted() {
    let agent = echo_agent();
    let project = Project::with_config(
        "target: { endpoint: '${ENV.AGENT_URL}', headers: { x-word: '${ENV.WORD}' } }\nhooks: { show: { cmd: [sh, -c, 'echo $WORD > hook.log'] } }\n",
    )
    .file(".env", &format!("# local\nexport AGENT_URL={agent}\nWORD='{SECRET}' # secret\n"))
    .suite("a", &format!("name: says it\nbefore: show\nturns: [{{ user: 'it is {SECRET}' }}]\n"));
    let run = project.test(&["-v", "--trace", "trace.jsonl"]);
    assert_eq!(run.output.code, 0, "{}", run.output);
    assert_eq!(agent.requests()[0].header("x-word"), Some(SECRET));
    assert_eq!(project.workspace.read("hook.log").trim(), SECRET);
    for text in [
        &run.output.stdout,
        &run.output.stderr,
        &run.report.to_string(),
        &project.workspace.read("trace.jsonl"),
    ] {
        assert!(!text.contains(SECRET), "{text}");
    }
    assert!(run.report.to_string().contains("[redacted:ENV.WORD]"), "{}", run.report);
    // The real environment wins, and the file can be left out.
    project.command(&["test"]).env("WORD", "another-value").run().assert_code(0);
    assert_eq!(agent.requests()[1].header("x-word"), Some("another-value"));
    project.hotseat(&["test", "--no-env-file"]).assert_stderr(2, &["AGENT_URL"]);
}

/// The search for a secret that repeats itself is prepared in linear time: by the square, it took hours.
#[test]
fn long_secrets_that_repeat_themselves_are_redacted() {
    let secret = "ab".repeat(20_000) + "c";
    let agent = FakeAgent::with_run({
        let secret = secret.clone();
        move |run, _| run.text(&format!("It is {secret}.")).finished()
    });
    let project = Project::with_agent(&agent).file(".env", &format!("KEY={secret}\n")).suite("a", suite());
    let run = project.test(&[]);
    assert!(run.report.to_string().contains("It is [redacted:ENV.KEY]."), "{}", run.report);
}

/// Files and folders of a run, without those that the test writes.
fn written_texts(project: &Project, files: &[&str]) -> Vec<(String, Vec<u8>)> {
    let read = |file: &&str| {
        let bytes = std::fs::read(project.workspace.path(file));
        (file.to_string(), bytes.unwrap_or_else(|error| panic!("{file}: {error}")))
    };
    files.iter().map(read).collect()
}

#[test]
fn texts_of_the_test_are_redacted() {
    let agent = echo_agent();
    let attached = "name: attached
turns: [{ user: hi, attachments: [{ type: image, source: 'file://./${ENV.WORD}.jpg' }] }]
";
    let described = "name: described
turns: [{ user: hi }]
checkpoints: [{ id: c, description: 'shows ${ENV.WORD}', assertion: { text: { must_match: bye } } }]
";
    let excerpt = format!(
        "name: excerpt\nturns: [{{ user: hi, assert: {{ text: {{ must_match: bye }} }} }}] # {SECRET}\n"
    );
    let agent_and_secret = [("WORD", SECRET)];
    for (name, suite, kind) in [
        ("attached", attached, "test_error"),
        ("described", described, "missing_checkpoints"),
        ("excerpt", &*excerpt, "assertion"),
    ] {
        let project = Project::with_config(&format!(
            "target: {{ endpoint: '{agent}', headers: {{ x-word: '${{ENV.WORD}}' }} }}\n"
        ))
        .suite("a", suite);
        let outputs = ["out.html", "out.md", "out.xml", "out.jsonl"];
        let arguments: Vec<&str> = outputs.iter().flat_map(|file| ["-o", *file]).collect();
        let run = project.test_in(&agent_and_secret, &[&["-v"], &*arguments].concat());
        assert_eq!(run.failure(name)["kind"], kind, "{}", run.output);
        let mut shown = written_texts(&project, &outputs);
        shown.push(("report".to_string(), run.report.to_string().into_bytes()));
        shown.push(("console".to_string(), run.output.to_string().into_bytes()));
        for (file, text) in shown {
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains(SECRET), "{name}: {file}: {text}");
        }
        let again = project.command(&["show", "last"]).env("WORD", "x").run();
        assert!(!again.to_string().contains(SECRET), "{again}");
    }
}

/// Secrets are removed from conversations, so they are removed from what is compared with them, too: otherwise an agent
/// that reveals one would pass.
#[test]
fn assertions_find_secrets_in_conversations() {
    let agent = echo_agent();
    let said = format!("it is {SECRET}");
    let hidden = [
        "{ type: not_contains, value: '${ENV.WORD}' }".to_string(),
        format!("{{ type: not_contains, value: [nothing, '{SECRET}'] }}"),
        "{ type: contains, value: '${ENV.WORD}', negate: true }".to_string(),
        "{ type: equals, value: 'You said: it is ${ENV.WORD}', negate: true }".to_string(),
        "{ text: { must_not_match: '${ENV.WORD}' } }".to_string(),
        format!("{{ text: {{ must_not_match: '{SECRET}' }} }}"),
    ];
    let shown = [
        "{ type: contains, value: '${ENV.WORD}' }",
        "{ type: equals, value: 'You said: it is ${ENV.WORD}' }",
    ];
    let case = |assertion: &str| {
        format!("name: \"{}\"\nturns: [{{ user: '{said}', assert: {assertion} }}]\n", assertion.len())
    };
    for (assertions, code) in
        [(hidden.iter().map(String::as_str).collect::<Vec<_>>(), 1), (shown.to_vec(), 0)]
    {
        for assertion in assertions {
            let project = Project::with_config("target: { endpoint: '${ENV.AGENT_URL}' }\n")
                .file(".env", &format!("AGENT_URL={agent}\nWORD={SECRET}\n"))
                .suite("a", &case(assertion));
            let tested = project.test(&[]);
            assert_eq!(tested.output.code, code, "{assertion}: {}", tested.output);
            assert!(!tested.report.to_string().contains(SECRET), "{}", tested.report);
        }
    }
    // So are those of the project.
    for secret in [format!("AGENT_URL={agent}\nWORD={SECRET}\n"), format!("AGENT_URL={agent}\n")] {
        let config = "target: { endpoint: '${ENV.AGENT_URL}', assert: [{ type: not_contains, value: '${ENV.WORD}' }] }\nsecrets: [WORD]\n";
        let project = Project::with_config(config)
            .file(".env", &secret)
            .suite("a", &case("{ text: { must_match: it } }"));
        project.command(&["test"]).env("WORD", SECRET).run().assert_stdout(1, &["not to contain"]);
    }
    // Assertions of programs are the same assertions.
    let test = format!(
        "import {{ it, user, agent, expect }} from \"hotseat\";\nit(\"a\", () => {{ user.says(\"{said}\"); expect(agent).not.toContain(\"{SECRET}\"); }});\n"
    );
    let project = Project::with_config("target: { endpoint: '${ENV.AGENT_URL}' }\n")
        .file(".env", &format!("AGENT_URL={agent}\nWORD={SECRET}\n"))
        .file("a_test.ts", &test);
    let tested = project.test(&[]);
    assert_eq!(tested.output.code, 1, "{}", tested.output);
}

/// A misspelt name would name nothing, and the secret would be shown.
/// Rows that were replaced leave their bytes in a file of SQLite, unless they are erased.
#[test]
fn saved_runs_keep_no_bytes_of_a_secret_of_a_hook() {
    let secret = "zqx91827364556677";
    let told = format!("{{\"SESSION_TOKEN\": \"{secret}\"}}");
    let case = |number| {
        format!("name: case {number}\nhooks: [{{ cmd: [echo, '{told}'] }}]\nturns: [{{ user: hello }}]\n")
    };
    let cases: Vec<String> = (0..20).map(case).collect();
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", &cases.join("---\n"));
    project.test(&[]).assert_all_passed();
    let saved = std::fs::read(project.workspace.path(".hotseat/runs.db")).expect("the saved runs");
    assert!(!saved.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()));
}

#[test]
fn names_of_secrets_are_variables() {
    let agent = FakeAgent::start(|request: &FakeRequest| FakeRun::for_request(request).text(SECRET));
    let project = |secrets: &str| {
        let config = format!("target: {{ endpoint: '{agent}' }}\nsecrets: [{secrets}]\n");
        Project::with_config(&config).suite("a", suite())
    };
    for (name, help) in [
        ("env.WORD", "write `ENV.WORD` for a variable of the environment"),
        ("$WORD", "write `ENV.WORD`"),
        ("ENV.", "write `ENV.NAME`"),
        ("a b", "write `ENV.NAME`"),
    ] {
        let output = project(name).hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains("hotseat.yaml:2:11"), "{name}: {output}");
        assert!(output.stderr.contains(help), "{name}: {output}");
    }
    assert_eq!(agent.requests().len(), 0);
    for name in ["ENV.WORD", "WORD"] {
        let output = project(name).command(&["test", "-v"]).env("WORD", SECRET).run();
        assert!(output.stdout.contains("[redacted:") && !output.stdout.contains(SECRET), "{name}: {output}");
    }
}

/// A secret of digits is found in a sentence too, although it would be JSON by itself.
#[test]
fn assertions_find_secrets_of_digits_in_sentences() {
    let agent = echo_agent();
    let hidden = [
        "[{ type: not_contains, value: '${ENV.DB_PASSWORD}' }]",
        "[{ type: not_contains, value: '17171717' }]",
        "[{ type: contains, value: '${ENV.DB_PASSWORD}', negate: true }]",
        "{ text: { must_not_match: '${ENV.DB_PASSWORD}' } }",
        "{ text: { must_not_match: '^You said: pay ${ENV.DB_PASSWORD} now$' } }",
    ];
    let shown = [
        "{ text: { must_match: 'pay ${ENV.DB_PASSWORD} now' } }",
        "[{ type: equals, value: 'You said: pay ${ENV.DB_PASSWORD} now' }]",
    ];
    let mut project = Project::with_agent(&agent);
    for (number, assertion) in hidden.iter().chain(&shown).enumerate() {
        let case = format!("name: a{number}\nturns: [{{ user: pay 17171717 now, assert: {assertion} }}]\n");
        project = project.suite(&format!("a{number}"), &case);
    }
    let test = "import { it, user, agent, expect } from \"hotseat\";\nit(\"ts\", () => { user.says(\"pay 17171717 now\"); expect(agent).not.toContain(\"17171717\"); });\n";
    let tested = project.file("a_test.ts", test).test_in(&[("DB_PASSWORD", "17171717")], &[]);
    for number in 0..hidden.len() + shown.len() {
        let expected = if number < hidden.len() { "failed" } else { "passed" };
        assert_eq!(tested.case(&format!("a{number}"))["status"], expected, "{number}: {}", tested.output);
    }
    assert_eq!(tested.count("failed"), 6, "{}", tested.output);
    assert!(!tested.report.to_string().contains("17171717"), "{}", tested.report);
    // An answer that is only the number is its mark, as it is in an assertion.
    let agent = FakeAgent::with_text("17171717");
    let assertions = "[{ type: equals, value: '${ENV.DB_PASSWORD}' }, { type: regex, pattern: '^${ENV.DB_PASSWORD}$' }, { type: equals, value: 17171717 }]";
    let case = format!("name: a\nturns: [{{ user: hi, assert: {assertions} }}]\n");
    let tested = Project::with_agent(&agent).suite("a", &case).test_in(&[("DB_PASSWORD", "17171717")], &[]);
    tested.assert_all_passed();
}

#[test]
fn env_file_mistakes_have_a_place_and_no_value() {
    let project = Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\nsuites: ['${ENV.N}']\n")
        .suite("a", suite());
    project.workspace.file(".env", &format!("A=1\nB {SECRET}\n"));
    for command in ["test", "list", "doctor"] {
        let output = project.hotseat(&[command]);
        assert_eq!(output.code, 2, "{output}");
        let all = output.stdout + &output.stderr;
        assert!(all.contains(".env:2:3") && all.contains("expected `=`") && !all.contains(SECRET), "{all}");
    }
    project.workspace.file(".env", &format!("N=[{SECRET}\n"));
    let output = project.hotseat(&["list"]);
    assert!(output.code == 2 && !output.stderr.contains(SECRET), "{output}");
    // A folder of this name is no file of variables.
    std::fs::remove_file(project.workspace.path(".env")).expect("the file exists");
    project.workspace.file(".env/bin/python", "");
    assert_eq!(project.command(&["list"]).env("N", "*.test.yaml").run().code, 0);
}

/// Without the file, a run would silently lack its variables.
#[test]
#[cfg(unix)]
fn an_env_file_that_cannot_be_read_is_a_mistake() {
    let project = Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\n").suite("a", suite());
    let link = |to: &str| std::os::unix::fs::symlink(to, project.workspace.path(".env")).expect("a link");
    for (target, words) in [
        ("gone.env", "cannot read .env: No such file or directory"),
        ("/dev/null", "cannot read .env: it is a pipe or a device; save the text as a file"),
    ] {
        link(target);
        project.hotseat(&["list"]).assert_stderr(2, &[words]);
        assert_eq!(project.hotseat(&["list", "--no-env-file"]).code, 0);
        std::fs::remove_file(project.workspace.path(".env")).expect("the link is there");
    }
}

#[test]
fn color_variables_have_an_order() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", suite());
    let is_colored = |variables: &[(&str, &str)], arguments: &[&str]| {
        // Help and errors of the arguments follow the same rules.
        let runs = [(vec!["test"], 0), (vec!["test", "--help"], 0), (vec!["test", "--unknown"], 2)].map(
            |(run, code)| {
                let command = project.command(&[arguments, &run].concat()).env("NO_COLOR", "");
                let output =
                    variables.iter().fold(command, |command, (name, value)| command.env(name, value)).run();
                assert_eq!(output.code, code, "{output}");
                (output.stdout + &output.stderr).contains('\u{1b}')
            },
        );
        assert!(
            runs.iter().all(|is_colored| *is_colored == runs[0]),
            "{variables:?} {arguments:?}: {runs:?}"
        );
        runs[0]
    };
    assert!(!is_colored(&[], &[]));
    assert!(is_colored(&[("FORCE_COLOR", "1")], &[]));
    assert!(is_colored(&[("CLICOLOR_FORCE", "1")], &[]));
    assert!(!is_colored(&[("CLICOLOR_FORCE", "0")], &[]));
    assert!(!is_colored(&[("FORCE_COLOR", "1"), ("NO_COLOR", "1")], &[]));
    assert!(!is_colored(&[("FORCE_COLOR", "0"), ("CLICOLOR_FORCE", "1")], &[]));
    assert!(!is_colored(&[("FORCE_COLOR", "1")], &["--color", "never"]));
    assert!(!is_colored(&[("CLICOLOR_FORCE", "1")], &["--color=never"]));
    assert!(is_colored(&[("NO_COLOR", "1")], &["--color", "always"]));
}

#[test]
fn endpoint_replaces_the_address_of_the_tested_agent() {
    let agent = echo_agent();
    let dead = unreachable_address();
    let project = Project::with_config(&format!(
        "agents:\n  one: {{ endpoint: '{dead}', headers: {{ x-key: k }}, start: {{ command: ['false'] }} }}\n  two: {{ endpoint: '{dead}' }}\n  own: {{ type: command, command: [cat] }}\ntarget: one\n"
    ))
    .suite("a", suite());
    let url = agent.url();
    for arguments in [&[][..], &["-n", "two"]] {
        project.hotseat(&[&["test", "--endpoint", &url], arguments].concat()).assert_code(0);
    }
    assert_eq!(agent.requests()[0].header("x-key"), Some("k"));
    for (arguments, words) in [
        (&["-n", "own", "--endpoint", &url][..], "agent `own` has no address"),
        (&["--endpoint", "nowhere"], "--endpoint nowhere: expected an HTTP URL"),
        (&["--endpoint", "http://"], "--endpoint http://: expected an HTTP URL"),
        (&["--endpoint", "${ENV.URL}"], "--endpoint ${ENV.URL}: expected an HTTP URL"),
        (&["--endpoint", "http://:80/"], "--endpoint http://:80/: expected an HTTP URL"),
    ] {
        project.hotseat(&[&["test"], arguments].concat()).assert_stderr(2, &[words]);
    }
    let bare = Project::empty().suite("a", suite());
    assert_eq!(bare.hotseat(&["test", "--endpoint", &url]).code, 0);
}

#[test]
fn doctor_says_whether_a_run_could_start() {
    let agent = FakeAgent::start(|request| match request.method.as_str() {
        "GET" => FakeReply::status(405),
        _ => echo(request),
    });
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nconnectors:\n  judge: {{ type: openai, model: m, api_key: '${{ENV.JUDGE_KEY}}' }}\n"
    ))
    .file(".env", &format!("OTHER={SECRET}\n"))
    .suite("a", suite())
    .file("b_test.ts", "import { it, user } from \"hotseat\"; it(\"b\", () => { user.says(\"hi\"); });");
    let output = project.hotseat(&["doctor", "--json"]);
    assert_eq!(output.code, 0, "{output}");
    let found: Value = serde_json::from_str(&output.stdout).expect("one object");
    assert_eq!(found["can_start"], true);
    let message = |subject: &str| {
        let findings = found["findings"].as_array().expect("findings");
        let finding = findings.iter().find(|finding| finding["subject"] == subject);
        finding.unwrap_or_else(|| panic!("{subject}: {found:#}"))["message"].as_str().unwrap().to_string()
    };
    assert!(message("agent").contains("ag_ui") && message("agent").ends_with("answers"));
    assert_eq!(message(".env"), "1 variable: OTHER");
    assert_eq!(message("suites"), "2 cases in 2 suites");
    assert!(message("model judge").contains("JUDGE_KEY"), "{found:#}");
    assert!(message("store").ends_with("no runs yet"));
    assert!(message("editor").ends_with("is missing"));
    assert!(!output.stdout.contains(SECRET));
    assert_eq!(project.hotseat(&["init"]).code, 0);
    assert_eq!(project.hotseat(&["test", "a.test.yaml"]).code, 0);
    let keyed = project.command(&["doctor"]).env("JUDGE_KEY", "key-0815-4711").run();
    assert!(keyed.stdout.contains("a key is set") && !keyed.stdout.contains("key-0815-4711"), "{keyed}");
    assert!(keyed.stdout.contains("last run") && !keyed.stdout.contains("is missing"), "{keyed}");

    let dead = Project::with_config(&format!("target: {{ endpoint: '{}' }}\n", unreachable_address()))
        .suite("a", suite());
    let output = dead.hotseat(&["doctor"]);
    output.assert_stdout(3, &["does not answer: cannot reach"]);
    assert!(
        output.stdout.contains("next: start the agent") && output.stdout.contains("A run cannot start."),
        "{output}"
    );
    assert_eq!(dead.hotseat(&["doctor", "--endpoint", &agent.url()]).code, 0);

    let occupied =
        Project::with_config(&format!("target: {{ endpoint: '{agent}', start: {{ command: ['true'] }} }}\n"))
            .suite("a", suite());
    occupied.hotseat(&["doctor"]).assert_stdout(2, &["is in use, but the run would start"]);

    let empty = Project::empty();
    empty.hotseat(&["doctor"]).assert_stdout(2, &["next: run `hotseat init`"]);
    let broken = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ usre: hi }]\n");
    broken.hotseat(&["doctor"]).assert_stdout(2, &["a.test.yaml:2"]);
}

#[test]
#[cfg(unix)]
fn doctor_looks_for_programs() {
    let command = |settings: &str| {
        let text = format!("target:\n  type: command\n{settings}");
        Project::with_config(&text).suite("a", suite()).file("agent.sh", "").hotseat(&["doctor"])
    };
    command("  command: [sh, agent.sh]\n").assert_stdout(0, &["✓ agent"]);
    for (settings, words) in [
        ("  command: [no-such-program, x]\n", "`no-such-program x`: there is no program `no-such-program`"),
        ("  command: [./agent.sh]\n", "the file `./agent.sh` is not executable"),
        ("  command: [./none.sh]\n", "there is no program `./none.sh`"),
        ("  command: [sh, agent.sh]\n  env: { PATH: /nowhere }\n", "there is no program `sh`"),
        ("  command: [sh, agent.sh]\n  cwd: gone\n", "there is no folder "),
    ] {
        let output = command(settings);
        assert!(output.code == 3 && output.stdout.contains("✗ agent"), "{settings}: {output}");
        assert!(output.stdout.contains(words), "{words}: {output}");
        assert!(output.stdout.contains("next: install the program"), "{output}");
    }
    Project::with_config(&format!(
        "target: {{ endpoint: '{}', start: {{ command: [no-such-program] }} }}\n",
        unreachable_address()
    ))
    .suite("a", suite())
    .hotseat(&["doctor"])
    .assert_stdout(3, &["there is no program `no-such-program`"]);
}

#[test]
fn doctor_examines_everything_despite_a_wrong_suite() {
    let agent = FakeAgent::start(echo);
    let script = "import { it, user } from \"hotseat\"; it(\"b\", () => { user.says(\"hi\"); });";
    let wrong: String = (0..25).map(|_| "---\nname: a\nturns: [{ usre: hi }]\n").collect();
    let project = Project::with_agent(&agent).suite("a", &wrong).file("b_test.ts", script);
    project.hotseat(&["doctor"]).assert_stdout(
        2,
        &[
            "a.test.yaml:3",
            "and 5 more errors",
            "`hotseat list` prints all",
            "✓ scripts",
            "1 suite in TypeScript",
        ],
    );
}

#[test]
fn saved_runs_are_found_where_test_saved_them() {
    let agent = echo_agent();
    let project = Project::empty()
        .file("examples/shop/hotseat.yaml", &format!("target: {{ endpoint: '{agent}' }}\n"))
        .file("examples/shop/a.test.yaml", suite());
    assert_eq!(project.hotseat(&["test", "examples/shop"]).code, 0);
    for command in [&["runs"][..], &["show", "last"]] {
        project.hotseat(command).assert_stderr(0, &["note: runs of examples/shop/hotseat.yaml"]);
    }
    project.workspace.file("examples/bar/hotseat.yaml", &format!("target: {{ endpoint: '{agent}' }}\n"));
    project.workspace.file("examples/bar/a.test.yaml", suite());
    assert_eq!(project.hotseat(&["test", "examples/bar"]).code, 0);
    project.hotseat(&["runs"]).assert_stderr(2, &["select one with --config"]);
    assert_eq!(project.hotseat(&["runs", "--config", "examples/bar/hotseat.yaml"]).code, 0);
}

/// Secrets that stand literally in the project file.
#[test]
fn passwords_and_keys_of_addresses_are_redacted() {
    let agent = echo_agent();
    let host = agent.url().replace("http://", "");
    let (host, secrets) = (
        host.trim_end_matches('/'),
        ["p%40ss-0815", "p@ss-0815", "query-key-4711", "to%2Fken-0815", "to/ken-0815", "env-key-0816"],
    );
    let config = format!(
        "target: {{ endpoint: 'http://user:p%40ss-0815@{host}/?api_key=query-key-4711&code=to%2fken-0815&team=blue-team' }}
mcp: {{ bank: {{ type: proxy, command: [cat], env: {{ BANK_API_KEY: env-key-0816, BANK_MODE: plain-mode }} }} }}\n"
    );
    for (secret, is_known) in
        secrets.map(|secret| (secret, true)).into_iter().chain([("blue-team", false), ("plain-mode", false)])
    {
        let suite = format!("name: a\nturns: [{{ user: 'it is {secret}!' }}]\n");
        let run = Project::with_config(&config).suite("a", &suite).test(&[]);
        run.assert_all_passed();
        let is_shown = run.report["results"].to_string().contains(&format!("it is {secret}!"));
        assert_eq!(!is_shown, is_known, "{secret}: {}", run.report);
        let shown = format!("{} {}", run.report, run.output.stdout);
        let written = secrets.iter().find(|secret| shown.contains(**secret));
        assert_eq!(written, None, "{shown}");
    }
}
