//! Saved runs: their reports, failed cases, and pruning.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use hotseat_report::store::RunStore;
use hotseat_testkit::FakeAgent;
use hotseat_testkit::agui::FakeRun;
use serde_json::{Value, json};

use crate::common::{HOTSEAT, Project, TEST_TIMEOUT, echo_agent, exists};

/// Cases that pass, fail by checks, fail by errors, and are skipped.
const MIXED: &str = "
name: greets
tags: [easy]
turns:
  - user: Hello
    assert: { text: { must_match: 'You said: Hello' } }
  - user: Bye, ünïcode 👋
    assert: { timing: { max_duration_ms: 20000 } }
---
name: is wrong
turns: [{ user: Hi, assert: { text: { must_match: nothing of that, must_not_match: Hi } } }]
evaluate: { text: { must_match: soft } }
---
name: breaks
turns: [{ user: BREAK }]
---
name: is left out
skip: not yet
turns: [{ user: Hello }]
";

/// An echo agent that fails on request.
fn agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let said = request.last_user_text();
        match said.contains("BREAK") {
            true => run.text("I").error("broken", Some("E1")),
            false => {
                let (id, args) = (format!("call for {said}"), json!({"for": said}));
                let run = run.tool(&id, "look", &args, Some(json!({"found": true})));
                run.text(&format!("You said: {said}")).finished()
            }
        }
    })
}

/// Output of `hotseat runs --json`.
#[track_caller]
fn list_runs(project: &Project) -> Vec<Value> {
    let output = project.hotseat(&["runs", "--json"]);
    assert_eq!(output.code, 0, "{output}");
    output.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn saved_run_reproduces_reports_exactly() {
    let agent = agent();
    for more in [
        &[][..],
        &["--runs", "3", "--parallel", "2"],
        &["--retries", "1"],
        &["--fail-fast", "--parallel", "1"],
    ] {
        let project = Project::with_agent(&agent)
            .suite("a", MIXED)
            .suite("b", &MIXED.replace("greets", "greets again"));
        let reports = [
            "-o",
            "out/r.json",
            "-o",
            "out/r.jsonl",
            "-o",
            "out/r.xml",
            "-o",
            "out/r.html",
            "--trace",
            "out/r.trace",
        ];
        let live = project.hotseat(&[&["test"], more, &reports[..]].concat());
        assert_eq!(live.code, 1, "{live}");
        let files = ["r.json", "r.jsonl", "r.xml", "r.html", "r.trace"].map(|name| format!("out/{name}"));
        let before = files.clone().map(|file| project.workspace.read(&file));
        assert!(before.iter().all(|text| text.len() > 300), "{before:?}");
        std::fs::remove_dir_all(project.workspace.path("out")).expect("the reports are there");

        project.hotseat(&[&["show", "last"], &reports[..]].concat()).assert_code(0);
        for (file, before) in files.iter().zip(before) {
            assert!(project.workspace.read(file) == before, "{file} with {more:?}");
        }
        let console = project.hotseat(&["show"]);
        let without_outputs = |text: &str| {
            let lines = text.lines().filter(|line| !line.starts_with("  Output: "));
            lines.collect::<Vec<_>>().join("\n").replace("\n\n\n", "\n\n")
        };
        assert_eq!(without_outputs(&console.stdout), without_outputs(&live.stdout), "{more:?}");

        let live = project.hotseat(&[&["test", "--json"], more].concat());
        let shown = project.hotseat(&["show", "--json"]);
        let verbose = project.hotseat(&["show", "--json", "-v"]);
        assert!(verbose.code == 0 && verbose.stdout == shown.stdout, "{verbose}");
        // Warnings about suites precede the run and do not belong to it.
        let events = live.stdout.lines().filter(|line| !line.contains(r#""type":"log""#));
        let (shown, live): (Vec<&str>, Vec<&str>) = (shown.stdout.lines().collect(), events.collect());
        assert!(shown == live, "{more:?}: {shown:#?}\nis not\n{live:#?}");
    }
}

#[test]
fn shows_one_conversation() {
    let agent = agent();
    let project = Project::with_agent(&agent).suite("a", MIXED);
    project.hotseat(&["test"]);
    project
        .hotseat(&["show", "last", "is wrong"])
        .assert_stdout(0, &["You said: Hi", "nothing of that", "a.test.yaml:"]);
    let events = project.hotseat(&["show", "last", "is wrong", "--json"]);
    let first: Value = serde_json::from_str(events.stdout.lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["type"], "turn.started");

    project
        .hotseat(&["show", "last", "is worng"])
        .assert_stderr(2, &["has no case `is worng`; did you mean `is wrong`?"]);
}

#[test]
fn case_with_id_of_another_suite_is_shown_by_its_place() {
    let agent = agent();
    let case = |text: &str| format!("name: asks\nturns:\n  - user: {text}\n");
    let project = Project::with_agent(&agent);
    let project = project.suite("a b", &case("in the first")).suite("b", &case("in the second"));
    assert_eq!(project.hotseat(&["test"]).code, 0);
    let output = project.hotseat(&["show", "last", "asks"]);
    output.assert_stderr(2, &["several cases `asks`"]);
    assert!(output.stderr.contains("\n = help: name one by its place: `hotseat show "), "{output}");
    assert!(output.stderr.contains(" 'a b.test.yaml:1:7'`"), "{output}");
    let output = project.hotseat(&["show", "last", "b.test.yaml:1"]);
    output.assert_stdout(0, &["in the second"]);
    assert!(!output.stdout.contains("in the first"), "{output}");
    project.hotseat(&["show", "last", "b.test.yaml:2"]).assert_stderr(2, &["has no case `b.test.yaml:2`"]);
}

#[test]
fn lists_and_names_saved_runs() {
    let agent = agent();
    let project = Project::with_agent(&agent).suite("a", MIXED);
    project.hotseat(&["runs"]).assert_stderr(2, &["there are no saved runs in"]);

    project.hotseat(&["test"]);
    project.hotseat(&["test", "--run", "greets"]);
    let listed = list_runs(&project);
    let of =
        |run: &Value| ["total", "passed", "failed", "skipped", "unfinished"].map(|key| run[key].as_u64());
    assert_eq!(of(&listed[0]), [Some(1), Some(1), Some(0), Some(0), Some(0)]);
    assert_eq!(of(&listed[1]), [Some(4), Some(1), Some(2), Some(1), Some(0)]);
    assert_eq!(listed[0]["state"], "ended");
    assert_eq!(listed[0]["command"], json!(["test", "--run", "greets"]));

    let words = project.hotseat(&["runs"]).stdout;
    assert!(words.contains("1 passed, 2 failed, 1 skipped"), "{words}");
    let id = listed[1]["id"].as_str().expect("an id");
    for name in [id, &id[..8], "last~1"] {
        let shown = project.hotseat(&["show", name]);
        assert!(shown.stdout.contains("Total:     4"), "{name}: {shown}");
    }
    for (name, words) in [
        ("last~2", "fewer runs are saved"),
        ("zzz", "there is no run `zzz`"),
        ("%", "there is no run `%`"),
        ("", "there is no run ``"),
    ] {
        let shown = project.hotseat(&["show", name]);
        assert!(shown.code == 2 && shown.stderr.contains(words), "{name}: {shown}");
    }
    assert_eq!(project.hotseat(&["show", "last", "-o", "x.pdf"]).code, 2);
    assert!(project.workspace.read(".hotseat/.gitignore").contains("\n*\n"));
}

#[test]
fn saving_can_be_disabled() {
    let agent = echo_agent();
    let off = Project::with_config(&format!("target:\n  endpoint: {agent}\nstore: false\n"));
    for (project, args) in [(off, &["test"][..]), (Project::with_agent(&agent), &["test", "--no-store"])] {
        let project = project.suite("a", "name: greets\nturns: [{ user: Hello }]\n");
        assert_eq!(project.hotseat(args).code, 0);
        assert!(!exists(&project.workspace, ".hotseat"));
    }
    let wrong = Project::with_config(
        "store: { max_age: 3 moons, max_size: 1GB }\ntarget: { endpoint: 'http://127.0.0.1:1' }\n",
    );
    wrong.suite("a", "name: a\nturns: [{ user: Hello }]\n").hotseat(&["test"]).assert_stderr(
        2,
        &["invalid `max_age`: the maximum age of stored runs, for example 90d", "hotseat.yaml:1:19"],
    );
}

#[test]
fn unwritable_store_does_not_change_verdict() {
    let agent = echo_agent();
    let suite = "name: greets\nturns: [{ user: Hello }]\n";
    let blocked = Project::with_agent(&agent).suite("a", suite).file(".hotseat", "a file, and no folder");
    blocked.hotseat(&["test"]).assert_stderr(0, &["warning: this run is not saved: "]);
    let offline = Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\n")
        .suite("a", suite)
        .file(".hotseat", "a file, and no folder");
    let examined = offline.hotseat(&["doctor"]);
    assert!(examined.stdout.contains(".hotseat/runs.db cannot be written: "), "{examined}");
    let viewed = blocked.hotseat(&["test", "--view"]);
    assert!(viewed.stderr.contains("--view: there is no page, because this run is not saved"), "{viewed}");

    let foreign =
        Project::with_agent(&agent).suite("a", suite).file(".hotseat/runs.db", &"no database ".repeat(500));
    foreign.hotseat(&["test"]).assert_stderr(0, &["not a database"]);
    foreign.hotseat(&["runs"]).assert_stderr(3, &["move it away"]);
    assert!(foreign.workspace.read(".hotseat/runs.db").starts_with("no database"), "it is left as it was");
}

#[test]
fn reruns_only_failed_cases() {
    let agent = agent();
    let project = Project::with_agent(&agent)
        .suite("a", MIXED)
        .suite("b", &MIXED.replace("Hi", "Hello").replace("BREAK", "Hi"));
    project.hotseat(&["test", "--last-failed"]).assert_code(2);

    project.hotseat(&["test"]);
    let again = project.test(&["--last-failed"]);
    let ids: Vec<_> =
        again.results().iter().map(|r| (r["file"].as_str().unwrap(), r["id"].as_str().unwrap())).collect();
    assert_eq!(ids, [("a.test.yaml", "is wrong"), ("a.test.yaml", "breaks"), ("b.test.yaml", "is wrong")]);

    let narrowed = project.test(&["--last-failed", "--run", "breaks"]);
    assert_eq!(narrowed.count("total"), 1);
    project.file("c.test.yaml", "name: passes\nturns: [{ user: Hello }]\n").hotseat(&["test", "c.test.yaml"]);
}

/// The failed cases change with each saved run, and a file of cases names what must run.
#[test]
fn options_that_contradict_each_other_are_refused() {
    let project = Project::with_agent(&agent()).suite("a", MIXED);
    project.hotseat(&["test"]);
    let listed = project.hotseat(&["list", "--last-failed", "--json"]);
    let project = project.file("failed.jsonl", &listed.stdout);
    for (args, words) in [
        (
            &["--last-failed", "--shard", "1/2"][..],
            ["--last-failed cannot be used with --shard", "--cases failed.jsonl"],
        ),
        (
            &["--cases", "failed.jsonl", "--run", "breaks"],
            ["--cases cannot be used with --run", "list --json --run"],
        ),
        (&["--cases", "failed.jsonl", "-k", "x"], ["--cases cannot be used with -k", "list --json -k"]),
        (&["--cases", "failed.jsonl", "--lf"], ["--cases cannot be used with --last-failed", "every case"]),
        (
            &["--cases", "failed.jsonl", "breaks"],
            ["--cases cannot be used with breaks", "list --json breaks"],
        ),
        (&["--cases", "failed.jsonl", "a.test.yaml:3"], ["with a.test.yaml:3", "list --json a.test.yaml:3"]),
        (&["--cases", "failed.jsonl", "a.test.yaml::breaks"], ["with a.test.yaml::breaks", "every case"]),
    ] {
        for command in ["test", "list"] {
            let output = project.hotseat(&[&[command], args].concat());
            assert_eq!(output.code, 2, "{args:?}: {output}");
            words.iter().for_each(|words| assert!(output.stderr.contains(words), "{words}: {output}"));
        }
    }
    let whole = project.test(&["--cases", "failed.jsonl", "a.test.yaml"]);
    assert_eq!(whole.count("total"), listed.stdout.lines().count() as u64, "{}", whole.output);
    let parts =
        ["1/2", "2/2"].map(|part| project.test(&["--cases", "failed.jsonl", "--shard", part]).count("total"));
    assert_eq!(parts.iter().sum::<u64>(), listed.stdout.lines().count() as u64, "{parts:?}");
}

/// The assertions of the agents differ too, but that is not the reason.
#[test]
fn merge_names_different_agents() {
    let agent = echo_agent();
    let config = format!(
        "agents: {{ one: {{ endpoint: '{agent}' }}, two: {{ endpoint: '{agent}', turn_assert: {{ text: {{ must_not_match: zzz }} }} }} }}\ntarget: one\n"
    );
    let suite = "name: a\nturns: [{ user: Hello }]\n---\nname: b\nturns: [{ user: Hello }]\n";
    let project = Project::with_config(&config).suite("a", suite);
    project.hotseat(&["test", "--shard", "1/2", "-n", "two"]);
    project.hotseat(&["test", "--shard", "2/2"]);
    project
        .hotseat(&["merge", "last~1", "last"])
        .assert_stderr(2, &["did not test the same agent: two and one"]);
}

#[test]
fn each_agent_has_its_own_failed_cases() {
    let says = |text: &'static str| FakeAgent::with_text(text);
    let (one, two) = (says("No"), says("Yes"));
    let config =
        format!("agents: {{ one: {{ endpoint: '{one}' }}, two: {{ endpoint: '{two}' }} }}\ntarget: one\n");
    let assertion = "turns: [{ user: Hello, assert: { text: { must_match: Yes } } }]";
    let suite = format!("name: usual\n{assertion}\n---\nname: own\nagent: two\n{assertion}\n");
    let project = Project::with_config(&config).suite("a", &suite);
    assert_eq!(project.hotseat(&["test", "-n", "one"]).code, 1);
    assert_eq!(project.hotseat(&["test", "-n", "two"]).code, 0);
    let again = project.test(&["-n", "one", "--last-failed"]);
    assert_eq!(again.count("total"), 2, "{}", again.output);
    // The default agent of `usual` is one, and that of `own` is two.
    let again = project.test(&["--last-failed"]);
    assert_eq!((again.count("total"), again.count("failed")), (1, 1), "{}", again.output);
    assert_eq!(project.hotseat(&["test", "-n", "two", "--last-failed"]).code, 4);
}

/// A replay and another address say nothing about what the agent of the project does.
#[test]
fn replays_and_other_endpoints_have_their_own_failed_cases() {
    let says = |text: &'static str| {
        FakeAgent::start(move |request| FakeRun::for_request(request).started().text(text).finished())
    };
    let (one, two) = (says("No"), says("Yes"));
    let config = format!(
        "agents: {{ one: {{ endpoint: '{}' }}, two: {{ endpoint: '{}' }} }}\ntarget: one\n",
        one.url(),
        two.url()
    );
    let suite = "name: a\nturns: [{ user: Hello, assert: { text: { must_match: Yes } } }]\n";
    let project = Project::with_config(&config).suite("a", suite);
    assert_eq!(project.hotseat(&["test", "-n", "two", "--record", "rec"]).code, 0);
    assert_eq!(project.hotseat(&["test"]).code, 1);
    assert_eq!(project.hotseat(&["test", "-n", "replay:rec"]).code, 0);
    assert_eq!(project.hotseat(&["test", "--endpoint", &two.url()]).code, 0);
    let again = project.test(&["--last-failed"]);
    assert_eq!((again.count("total"), again.count("failed")), (1, 1), "{}", again.output);
    for other in [["-n", "replay:rec"], ["--endpoint", &two.url()]] {
        let none = project.hotseat(&[&["test", "--last-failed"], &other[..]].concat());
        assert_eq!(none.code, 4, "{none}");
    }
    // The address of the project file is no other one.
    let again = project.test(&["--last-failed", "--endpoint", &one.url()]);
    assert_eq!(again.count("failed"), 1, "{}", again.output);
}

/// A recheck of an earlier run contacts no agent, so the last run decides.
#[test]
fn rechecks_do_not_change_which_cases_failed() {
    let is_broken = Arc::new(AtomicBool::new(false));
    let broken = is_broken.clone();
    let agent = FakeAgent::with_run(move |run, _| {
        let said = if broken.load(Ordering::Relaxed) { "No" } else { "Yes" };
        run.text(said).finished()
    });
    let suite = "name: agrees\nturns: [{ user: Hello, assert: { text: { must_match: Yes } } }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    assert_eq!(project.hotseat(&["test"]).code, 0);
    is_broken.store(true, Ordering::Relaxed);
    assert_eq!(project.hotseat(&["test"]).code, 1);
    assert_eq!(project.hotseat(&["recheck", "last~1"]).code, 0);
    let again = project.test(&["--last-failed"]);
    assert_eq!((again.count("total"), again.output.code), (1, 1), "{}", again.output);
}

#[test]
fn rerun_without_failures_runs_nothing() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", "name: greets\nturns: [{ user: Hello }]\n");
    project.hotseat(&["test"]);
    project.hotseat(&["test", "--last-failed"]).assert_stderr(4, &["every case passed when it last ran"]);
}

#[test]
fn two_processes_share_one_store() {
    let agent = agent();
    let many: String =
        (0..40).map(|n| format!("---\nname: case {n}\nturns: [{{ user: Hello {n} }}]\n")).collect();
    let project = Project::with_agent(&agent).suite("a", &many);
    let all: Vec<_> = (0..4).map(|_| project.command(&["test", "--parallel", "4"]).spawn()).collect();
    for running in all {
        let output = running.wait();
        assert!(output.code == 0 && !output.stderr.contains("warning"), "{output}");
    }
    let listed = list_runs(&project);
    assert_eq!(listed.len(), 4);
    for run in &listed {
        assert_eq!((run["passed"].as_u64(), run["state"].as_str()), (Some(40), Some("ended")), "{run}");
    }
}

#[test]
fn prunes_old_runs_but_never_last() {
    let agent = agent();
    let project = Project::with_config(&format!("target:\n  endpoint: {agent}\nstore: {{ max_size: 1B }}\n"))
        .suite("a", MIXED);
    for _ in 0..3 {
        project.hotseat(&["test"]);
    }
    assert_eq!(list_runs(&project).len(), 1, "each run leaves no room for those before it");

    let project = Project::with_agent(&agent).suite("a", MIXED);
    for _ in 0..3 {
        project.hotseat(&["test"]);
    }
    assert_eq!(list_runs(&project).len(), 3);
    let latest = project.hotseat(&["runs", "--limit", "2"]);
    assert_eq!(latest.stdout.lines().count(), 2, "{latest}");
    assert!(latest.stderr.contains("note: the latest 2 runs; `--limit 0` lists all"), "{latest}");
    assert!(project.hotseat(&["runs", "--limit", "3"]).stderr.is_empty());
    let pruned = project.hotseat(&["runs", "--prune", "--max-size", "1B"]);
    assert!(pruned.code == 0 && pruned.stdout.starts_with("deleted 2 runs"), "{pruned}");
    let again = project.hotseat(&["runs", "--prune", "--max-size", "1B", "--json"]);
    let again: Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert_eq!((&again["deleted_runs"], &again["freed_bytes"]), (&json!(0), &json!(0)));
    assert_eq!(list_runs(&project).len(), 1);
    assert_eq!(project.hotseat(&["show", "last", "greets"]).code, 0);
}

#[test]
fn shards_partition_suite() {
    let agent = echo_agent();
    let many: String =
        (0..30).map(|n| format!("---\nname: case {n}\nturns: [{{ user: Hello }}]\n")).collect();
    let ids = |project: &Project, part: &str| -> Vec<String> {
        let tested = project.test(&["--shard", part]);
        let all = tested.results();
        all.iter().map(|result| result["id"].as_str().unwrap().to_string()).collect()
    };
    let project = Project::with_agent(&agent).suite("a", &many);
    let parts = ["1/3", "2/3", "3/3"].map(|part| ids(&project, part));
    let mut all: Vec<&String> = parts.iter().flatten().collect();
    all.sort();
    all.dedup();
    assert_eq!((all.len(), parts.iter().map(Vec::len).sum::<usize>()), (30, 30));

    // The position of a case does not matter.
    let shifted =
        Project::with_agent(&agent).suite("a", &format!("name: new\nturns: [{{ user: Hello }}]\n{many}"));
    for (part, before) in ["1/3", "2/3", "3/3"].iter().zip(&parts) {
        let now: Vec<String> = ids(&shifted, part).into_iter().filter(|id| id != "new").collect();
        assert_eq!(&now, before);
    }
    for wrong in ["0/3", "4/3", "3", "a/b"] {
        assert_eq!(project.hotseat(&["test", "--shard", wrong]).code, 2, "{wrong}");
    }
    // A shard may be empty.
    let one = Project::with_agent(&agent).suite("a", "name: one\nturns: [{ user: Hello }]\n");
    let codes: Vec<i32> =
        (1..=4).map(|n| one.hotseat(&["test", "--shard", &format!("{n}/4")]).code).collect();
    assert_eq!(codes, [0; 4]);
}

#[test]
fn secrets_are_not_saved() {
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    let agent = FakeAgent::with_run(|run, _| {
        TOLD.fetch_add(1, Ordering::Relaxed);
        run.text("your key is sk-very-secret-0815, isn't it").finished()
    });
    let project = Project::with_config(&format!(
        "target:\n  endpoint: {agent}\n  headers: {{ Authorization: 'Bearer ${{ENV.API_KEY}}' }}\n"
    ))
    .suite("a", "name: asks\nturns: [{ user: Which key? }]\n");
    project.command(&["test"]).env("API_KEY", "sk-very-secret-0815").run().assert_code(0);
    assert_eq!(TOLD.load(Ordering::Relaxed), 1);
    for args in [&["show", "--json"][..], &["show", "last", "asks", "--json"], &["runs", "--json"]] {
        let shown = project.hotseat(args);
        assert!(shown.code == 0 && !shown.stdout.contains("very-secret"), "{args:?}: {shown}");
    }
    let kept = std::fs::read(project.workspace.path(".hotseat/runs.db")).expect("it is there");
    assert!(!kept.windows(11).any(|bytes| bytes == b"very-secret"));
}

#[test]
fn encoded_secrets_reach_no_output() {
    const SECRET: &str = "-----BEGIN KEY-----\nMIIE/very-secret\n-----END KEY-----";
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("user:{SECRET}"));
    let inner = json!({ "pem": SECRET }).to_string();
    let nested = json!({ "inner": inner, "slashes": SECRET.replace('/', "\\/") }).to_string();
    let agent = FakeAgent::with_run(move |run, _| {
        let run = run.tool("c", "read_key", &json!({ "in": inner }), Some(json!(nested)));
        run.text(&format!("Basic {encoded} {}", SECRET.replace('\n', "%0A").replace('/', "%2f"))).finished()
    });
    let project = Project::with_agent(&agent)
        .suite("a", "name: asks\nturns: [{ user: Which key? }]\nassert: { tools: { forbid: [read_key] } }\n");
    let reports = ["-o", "r.html", "-o", "r.json", "-o", "r.xml", "-o", "r.md", "--trace", "t.jsonl", "-v"];
    let output = project.command(&[&["test"][..], &reports].concat()).env("SIGNING_KEY", SECRET).run();
    assert_eq!(output.code, 1, "{output}");
    let files = ["r.html", "r.json", "r.xml", "r.md", "t.jsonl"].map(|file| project.workspace.read(file));
    let shown = project.hotseat(&["show", "last", "asks", "--json"]).stdout;
    for text in files.iter().chain([&output.stdout, &shown]) {
        assert!(!text.contains("MIIE") && !text.contains("TUlJR"), "{text}");
    }
    assert!(shown.contains("[redacted:ENV.SIGNING_KEY]"), "{shown}");
}

#[test]
fn error_next_to_key_does_not_print_it() {
    let project =
        Project::with_config("connectors: { a: { type: openai, api_key: sk-very-secret, modl: x } }\n")
            .suite("a", "name: a\nturns: [{ user: Hi }]\n");
    for args in [&["test"][..], &["test", "--json"], &["list"]] {
        let output = project.hotseat(args);
        let all = output.stdout.clone() + &output.stderr;
        assert!(output.code == 2 && all.contains("modl") && !all.contains("very-secret"), "{output}");
    }
}

#[test]
fn merges_sharded_runs() {
    let agent = agent();
    let many: String = (0..30)
        .map(|n| format!("---\nname: case {n}\nturns: [{{ user: Hello {n}, assert: {{ text: {{ must_not_match: Hello 7 }} }} }}]\n"))
        .collect();
    let project = Project::with_agent(&agent).suite("a", &many);
    let whole = project.test(&[]);
    for part in ["1/3", "2/3", "3/3"] {
        project.hotseat(&["test", "--shard", part]);
    }
    // One shard comes from another machine.
    assert_eq!(project.hotseat(&["show", "last", "--export", "third.hotseat"]).code, 0);
    project
        .hotseat(&["show", "last", "--export", "third.hotseat"])
        .assert_stderr(2, &["third.hotseat already exists"]);
    let exported = project.hotseat(&["runs", "--json", "--store", "third.hotseat"]);
    assert_eq!(
        exported.stdout.lines().next(),
        project.hotseat(&["runs", "--json", "-n", "1"]).stdout.lines().next()
    );

    let merged = project
        .command(&["merge", "last~2", "third.hotseat", "last~1", "-o", "all.json"])
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", "summary.md")
        .run();
    assert_eq!(merged.code, 1, "case 7 fails: {merged}");
    assert!(merged.stdout.contains("  Output: all.json\n"), "{merged}");
    assert!(merged.stdout.contains("FAILED"), "the run is shown beside its report: {merged}");
    let annotation = "::error file=a.test.yaml,line=24,";
    assert!(merged.stdout.contains(annotation) && merged.stdout.contains("title=case 7::"), "{merged}");
    let summary = project.workspace.read("summary.md");
    assert!(summary.starts_with("## ❌ ") && summary.contains("case 7"), "{summary}");
    let all = project.workspace.read_json("all.json");
    let told = |report: &Value| -> Vec<(u64, String, String)> {
        let results = report["results"].as_array().expect("results");
        let told = results.iter().map(|result| {
            let text = |key: &str| result[key].as_str().expect("a text").to_string();
            (result["index"].as_u64().expect("a number"), text("id"), text("status"))
        });
        told.collect()
    };
    assert_eq!(told(&all), told(&whole.report));
    for key in ["total", "passed", "failed", "skipped", "errors"] {
        assert_eq!(all["summary"][key], whole.report["summary"][key], "{key}");
    }
    assert_eq!(list_runs(&project)[0]["origin"]["merged"]["of"].as_array().map(Vec::len), Some(3));

    for (parts, words) in [
        (&["last~3", "last~2"][..], "are in none of these runs: 3/3 missing"),
        (
            &["last~3", "last~2", "third.hotseat", "last~1"],
            " is named twice: name the run of each shard once",
        ),
        (&["last~3", "last~3"], " is named twice: name the run of each shard once"),
        (&["last~4", "last~3"], "is in both runs"),
        (&["last~3", "all.json"], "reports cannot be merged"),
    ] {
        let output = project.hotseat(&[&["merge"], parts].concat());
        assert!(output.code == 2 && output.stderr.contains(words), "{parts:?}: {output}");
    }
    let project = project.suite("a", &many.replace("Hello 7", "Hello 8"));
    project.hotseat(&["test", "--shard", "3/3"]);
    project.hotseat(&["merge", "last~4", "last~3", "last"]).assert_stderr(2, &["do not have the same cases"]);
}

#[test]
fn pruning_frees_disk_space() {
    let agent = FakeAgent::with_run(|run, _| {
        // Compressible data needs no space.
        let noise = (0..12_000_u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        run.text(&noise.collect::<String>()).finished()
    });
    let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hello }]\n");
    let size = || std::fs::metadata(project.workspace.path(".hotseat/runs.db")).expect("it is there").len();
    project.hotseat(&["test"]);
    let of_one = size();
    for _ in 0..4 {
        project.hotseat(&["test"]);
    }
    assert!(size() > 3 * of_one, "{} {of_one}", size());
    let pruned = project.hotseat(&["runs", "--prune", "--max-size", "1B"]);
    assert!(pruned.code == 0 && pruned.stdout.starts_with("deleted 4 runs"), "{pruned}");
    assert!(size() < 2 * of_one, "{} {of_one}", size());
}

#[test]
fn merge_names_different_contexts_and_limits() {
    let agent = echo_agent();
    let suite = "name: a\nturns: [{ user: Hello }]\n---\nname: b\nturns: [{ user: Hello }]\n";
    let project = Project::with_agent(&agent)
        .suite("a", suite)
        .file("one.json", r#"{"metadata": {"tenant": "one"}}"#)
        .file("two.json", r#"{"metadata": {"tenant": "two"}}"#);
    project.hotseat(&["test", "--shard", "1/2", "--ctx", "one.json"]);
    project.hotseat(&["test", "--shard", "2/2", "--ctx", "two.json"]);
    let words = "used different context files (`--ctx`), or different `limits` of the project";
    project.hotseat(&["merge", "last~1", "last"]).assert_stderr(2, &[words]);
    project.hotseat(&["test", "--shard", "2/2", "--ctx", "one.json"]);
    project.hotseat(&["merge", "last~2", "last"]).assert_code(0);

    project.hotseat(&["test", "--shard", "1/2"]);
    let config = project.workspace.read("hotseat.yaml");
    project.workspace.file("hotseat.yaml", &format!("{config}limits: {{ turn: {{ calls: 5 }} }}\n"));
    project.hotseat(&["test", "--shard", "2/2"]);
    project.hotseat(&["merge", "last~1", "last"]).assert_stderr(2, &[words]);
}

#[test]
fn merge_names_a_missing_file() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", "name: greets\nturns: [{ user: Hello }]\n");
    assert_eq!(project.hotseat(&["test"]).code, 0);
    for missing in ["part-1.hotseat", "parts/one"] {
        let output = project.hotseat(&["merge", missing, "last"]);
        assert!(output.code == 2 && output.stderr.contains(&format!("no such file: {missing}")), "{output}");
        assert!(output.stderr.contains("hotseat show RUN --export FILE"), "{output}");
    }
}

/// A damaged file is no wrong argument: the run it holds cannot be read.
#[test]
fn merge_reports_a_damaged_file() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", "name: greets\nturns: [{ user: Hello }]\n");
    assert_eq!(project.hotseat(&["test"]).code, 0);
    assert_eq!(project.hotseat(&["show", "last", "--export", "part.hotseat"]).code, 0);
    let path = project.workspace.path("part.hotseat");
    let whole = std::fs::read(&path).expect("the exported run");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("a truncated file");
    let cut = project.hotseat(&["merge", "part.hotseat"]);
    cut.assert_stderr(3, &["part.hotseat is damaged: "]);
    assert!(cut.stderr.contains("\n = help: restore it from a backup, or export the run again"), "{cut}");
    // The summary of the run is JSON.
    let member = b"\"skipped\":";
    let place = whole.windows(member.len()).position(|part| part == member).expect("a summary");
    let mut altered = whole;
    altered[place + 1..place + 8].copy_from_slice(b"passed\"");
    std::fs::write(&path, &altered).expect("an altered file");
    project.hotseat(&["merge", "part.hotseat"]).assert_stderr(3, &["part.hotseat is damaged at run "]);
}

#[test]
fn merge_rejects_different_configurations() {
    let agent = agent();
    let many: String =
        (0..20).map(|n| format!("---\nname: case {n}\nturns: [{{ user: Hello {n} }}]\n")).collect();
    let other = format!(
        "agents:\n  other: {{ endpoint: '{agent}' }}\n  one: {{ endpoint: '{agent}' }}\ntarget: one\n"
    );
    let project = Project::with_config(&other).suite("a", &many);
    project.hotseat(&["test", "--shard", "1/2"]);
    let elsewhere = agent.url().replace("127.0.0.1", "localhost");
    for (args, words) in [
        (&["--retries", "2"][..], "used different options: --retries\n"),
        (&["--timeout", "90s"], "used different options: --timeout\n"),
        (&["--user", "bob"], "used different options: --user\n"),
        (&["--team", "red"], "used different options: --team\n"),
        (&["--locale", "de-de"], "used different options: --locale\n"),
        (&["--on-missing-input", "skip"], "used different options: --on-missing-input\n"),
        (&["--skip-interactive"], "used different options: --skip-interactive\n"),
        (&["--runs", "2", "--fail-fast"], "used different options: --runs, --fail-fast\n"),
        (&["--endpoint", &elsewhere], "did not test the same agent: one at http://127.0.0.1:"),
        (&["--agent", "other"], "did not test the same agent: one and other"),
    ] {
        project.hotseat(&[&["test", "--shard", "2/2"], args].concat());
        let output = project.hotseat(&["merge", "last~1", "last"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{args:?}: {output}");
        assert_eq!(project.hotseat(&["runs", "--prune", "--max-size", "1GB"]).code, 0);
        project.hotseat(&["test", "--shard", "1/2"]);
    }
    project.hotseat(&["test", "--shard", "2/2", "--parallel", "1"]);
    assert_eq!(project.hotseat(&["merge", "last~1", "last"]).code, 0, "how many run at once does not matter");
    // A server that the job starts has another port on each machine.
    let started = self::agent();
    project.hotseat(&["test", "--shard", "1/2"]);
    project.hotseat(&["test", "--shard", "2/2", "--endpoint", &started.url()]);
    project.hotseat(&["merge", "last~1", "last"]).assert_code(0);
}

/// Shards that tested different programs are no shards of one run. Folders of absolute paths differ between machines.
#[test]
fn merge_compares_commands_of_programs() {
    let config = |command: &str| {
        format!("agents: {{ one: {{ type: command, command: [{command}] }} }}\ntarget: one\n")
    };
    let suite = "name: a\nturns: [{ user: x }]\n---\nname: b\nturns: [{ user: x }]\n---\nname: c\nturns: [{ user: x }]\n";
    let program =
        "while read -r m; do echo '{\"type\":\"text\",\"text\":\"x\"}'; echo '{\"type\":\"done\"}'; done\n";
    let project = Project::with_config(&config("sh, one.sh"))
        .file("one.sh", program)
        .file("two.sh", program)
        .suite("a", suite);
    for (command, code) in [("/bin/sh, one.sh", 0), ("sh, two.sh", 2)] {
        project.workspace.file("hotseat.yaml", &config("sh, one.sh"));
        assert_eq!(project.hotseat(&["test", "--shard", "1/2"]).code, 0);
        project.workspace.file("hotseat.yaml", &config(command));
        assert_eq!(project.hotseat(&["test", "--shard", "2/2"]).code, 0);
        let merged = project.hotseat(&["merge", "last~1", "last"]);
        assert_eq!(merged.code, code, "{command}: {merged}");
        let words = "did not test the same agent: one at `sh one.sh` and one at `sh two.sh`";
        assert!(code == 0 || merged.stderr.contains(words), "{merged}");
    }
}

#[test]
fn interrupted_rerun_keeps_remaining_failures() {
    let agent = FakeAgent::with_run(|run, request| match request.last_user_text().as_str() {
        "wait" if request.header("x-gate").is_some() => run.gate("open").text("bad").finished(),
        _ => run.text("bad").finished(),
    });
    let case = |id: &str, said: &str| {
        format!("---\nid: {id}\nturns: [{{ user: {said}, assert: {{ text: {{ must_match: good }} }} }}]\n")
    };
    let suite = [case("first", "wait"), case("second", "hello"), case("third", "hello")].concat();
    let project = Project::with_config(&format!("target:\n  endpoint: {agent}\n")).suite("a", &suite);
    project.hotseat(&["test"]);
    project
        .workspace
        .file("hotseat.yaml", &format!("target:\n  endpoint: {agent}\n  headers: {{ x-gate: yes }}\n"));
    let mut running = project.command(&["test", "--last-failed", "--parallel", "1"]).spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    running.interrupt();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    assert_eq!(running.wait().code, 130);
    let again = project.test(&["--last-failed"]);
    assert_eq!(again.count("total"), 3, "{}", again.output);
}

#[test]
fn reruns_failures_from_another_machine() {
    let agent = agent();
    let text = format!("target:\n  endpoint: {agent}\n");
    let many: String = (0..20)
        .map(|n| format!("---\nname: case {n}\nturns: [{{ user: Hello {n}, assert: {{ text: {{ must_not_match: Hello 1 }} }} }}]\n"))
        .collect();
    let (here, there) =
        (Project::with_config(&text).suite("a", &many), Project::with_config(&text).suite("a", &many));
    let failed = here.test(&[]).count("failed");
    here.hotseat(&["test", "--shard", "1/2"]);
    there.hotseat(&["test", "--shard", "2/2"]);
    assert_eq!(there.hotseat(&["show", "last", "--export", "part.hotseat"]).code, 0);
    std::fs::copy(there.workspace.path("part.hotseat"), here.workspace.path("part.hotseat"))
        .expect("it is there");
    for parts in [["last", "part.hotseat"], ["part.hotseat", "last~1"]] {
        here.hotseat(&[&["merge"][..], &parts].concat()).assert_code(1);
        let again = here.command(&["test", "--last-failed", "-o", "out.json", "--no-store"]).run();
        assert_eq!(again.code, 1, "{again}");
        let report = here.workspace.read_json("out.json");
        assert_eq!(report["summary"]["total"].as_u64(), Some(failed), "{parts:?}: {again}");
    }
}

#[test]
fn redacts_command_line_and_suite_secrets() {
    const SECRET: &str = "tok-very-secret-0815";
    let agent = echo_agent();
    let project = Project::with_agent(&agent)
        .suite("a", &format!("name: asks\nturns: [{{ user: 'I am {SECRET}' }}]\n"));
    for args in [
        &["-u", SECRET, "-t", SECRET, "--locale", SECRET][..],
        &["--run", "asks|tok-very-secret-0815"],
        &["-i", "I am tok-very-secret-0815, too"],
    ] {
        let reports = ["-o", "out.json", "-o", "out.jsonl", "-o", "out.html"];
        project.command(&[&["test"], args, &reports].concat()).env("MY_TOKEN", SECRET).run().assert_code(0);
        for file in ["out.json", "out.jsonl", "out.html"] {
            let text = project.workspace.read(file);
            assert!(!text.contains("very-secret"), "{args:?}: {file}: {text}");
        }
    }
    let kept = std::fs::read(project.workspace.path(".hotseat/runs.db")).expect("it is there");
    assert!(!kept.windows(11).any(|bytes| bytes == b"very-secret"));
    for run in ["last", "last~1", "last~2"] {
        let shown = project.hotseat(&["show", run, "--json"]);
        assert!(shown.code == 0 && !shown.stdout.contains("very-secret"), "{shown}");
    }
}

/// A secret that a hook sets is known only after the case has started and its row may have been written.
#[test]
fn secrets_that_hooks_set_are_masked_in_saved_suites() {
    const SECRET: &str = "sekrit-12345678";
    let agent = FakeAgent::with_run(|run, _| run.pause(Duration::from_millis(100)).text("good").finished());
    let hook = |then: &str| {
        format!("hooks: [{{ cmd: [sh, -c, 'echo \"{{\\\"API_TOKEN\\\":\\\"{SECRET}\\\"}}\"'] }}{then}]\n")
    };
    let suite = [
        format!("id: one\n{}turns: [{{ user: hello }}]\n", hook("")),
        format!(
            "id: repeated\nretries: 1\n{}turns: [{{ user: hello, assert: {{ text: {{ must_match: bad }} }} }}]\n",
            hook("")
        ),
        format!("id: unprepared\n{}turns: [{{ user: hello }}]\n", hook(", { cmd: ['false'] }")),
    ];
    let project = Project::with_agent(&agent).suite("a", &suite.join("---\n"));
    assert_eq!(project.hotseat(&["test", "--parallel", "1"]).code, 1);
    assert_eq!(project.hotseat(&["show", "last", "--export", "there.hotseat"]).code, 0);
    for file in [".hotseat/runs.db", "there.hotseat"] {
        let path = project.workspace.path(file);
        let bytes = std::fs::read(&path).expect("it is there");
        assert!(!bytes.windows(SECRET.len()).any(|bytes| bytes == SECRET.as_bytes()), "{file}");
        let store = RunStore::open(&path).expect("a store");
        let run = store.find("last").expect("a run");
        for id in ["one", "repeated", "unprepared"] {
            let outcome = store.outcome(&run, id).expect("a case");
            let text = &outcome.case_ref.case.source_text.source.text;
            assert!(text.contains("API_TOKEN") && !text.contains(SECRET), "{file}, {id}: {text}");
            assert!(text.contains(&"x".repeat(SECRET.len())), "{file}, {id}: {text}");
        }
    }
}

#[test]
fn resumed_run_does_not_expose_redaction_markers() {
    const SECRET: &str = "tok-very-secret-0815";
    let agent = FakeAgent::with_run(|run, _| run.gate("open").text("good").finished());
    let suite: String = (0..3).map(|n| format!("---\nid: c{n}\nturns: [{{ user: hello }}]\n")).collect();
    let project = Project::with_agent(&agent).suite("a", &suite);
    let mut running =
        project.command(&["test", "--parallel", "1", "-u", SECRET]).env("MY_TOKEN", SECRET).spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    running.interrupt();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    assert_eq!(running.wait().code, 130);
    let without = project.hotseat(&["resume"]);
    assert!(
        without.code == 2
            && without.stderr.contains("was started with the secret `ENV.MY_TOKEN` as an argument"),
        "{without}"
    );
    project.command(&["resume"]).env("MY_TOKEN", SECRET).run().assert_code(0);
    let told: Vec<String> = agent.requests().iter().map(|request| request.json().to_string()).collect();
    assert!(told.len() == 3 && told.iter().all(|body| body.contains(SECRET)), "{told:#?}");
}

#[test]
fn deeply_nested_agent_output_can_be_reloaded() {
    let nested = |depth: usize| (0..depth).fold(json!("the end"), |inner, _| json!({ "in": inner }));
    let agent = FakeAgent::start(move |request| {
        let depth = request.last_user_text().parse().expect("it is told a number");
        let run =
            FakeRun::for_request(request).started().tool("c1", "look", &nested(depth), Some(nested(depth)));
        run.state(nested(depth.min(100))).text("Done.").finished()
    });
    let suite: String =
        [3, 60, 100, 124].map(|n| format!("---\nid: c{n}\nturns: [{{ user: '{n}' }}]\n")).concat();
    let project = Project::with_agent(&agent).suite("a", &suite);
    project.hotseat(&["test", "-o", "out.json", "-o", "out.jsonl"]).assert_code(0);
    for args in [
        &["show", "last", "-v"][..],
        &["show", "last", "-o", "again.json"],
        &["show", "last", "--export", "part.db"],
        &["merge", "part.db"],
        &["compare", "last", "out.json"],
        &["compare", "out.jsonl", "last~1"],
    ] {
        let output = project.hotseat(args);
        assert_eq!(output.code, 0, "{args:?}: {output}");
    }
    let report = project.workspace.read_json("out.json");
    let of = |case: usize| &report["results"][case]["turns"][0]["tool_calls"][0];
    assert_eq!((&of(0)["args"], &of(0)["result"]), (&nested(3), &nested(3)));
    assert!(of(3)["args"].to_string().contains("the end"), "nothing is lost");
}

#[test]
fn concurrent_first_runs_create_one_store() {
    let agent = echo_agent();
    for round in 0..4 {
        let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hello }]\n");
        let all: Vec<_> = (0..6).map(|_| project.command(&["test"]).spawn()).collect();
        for running in all {
            let output = running.wait();
            assert!(output.code == 0 && !output.stderr.contains("warning"), "{round}: {output}");
        }
        assert_eq!(list_runs(&project).len(), 6, "{round}");
    }
}

#[test]
fn reading_store_modifies_nothing() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hello }]\n");
    project.hotseat(&["test"]);
    assert_eq!(project.hotseat(&["show", "last", "--export", "alone/part.db"]).code, 0);
    project.workspace.file("alone/empty.db", "");
    let folder = project.workspace.path("alone");
    let there = || {
        let files = std::fs::read_dir(&folder).expect("it is there").map(|file| file.expect("a file").path());
        let mut all: Vec<_> =
            files.map(|path| (path.clone(), std::fs::read(path).expect("a file"))).collect();
        all.sort();
        all
    };
    let before = there();
    assert_eq!(before.len(), 2, "a file that was written stands alone");
    for args in [&["runs", "--store", "alone/part.db"][..], &["show", "last", "--store", "alone/part.db"]] {
        project.hotseat(args).assert_code(0);
    }
    project
        .hotseat(&["runs", "--store", "alone/empty.db"])
        .assert_stderr(2, &["alone/empty.db is empty: it contains no saved runs"]);
    assert_eq!(there(), before);
}

#[test]
fn resumed_run_is_saved_despite_project_changes() {
    let agent = FakeAgent::with_run(|run, _| run.gate("open").text("good").finished());
    let suite: String = (0..3).map(|n| format!("---\nid: c{n}\nturns: [{{ user: hello }}]\n")).collect();
    let project = Project::with_agent(&agent).suite("a", &suite);
    let mut running = project.command(&["test", "--parallel", "1"]).spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    running.interrupt();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    assert_eq!(running.wait().code, 130);
    project.workspace.file("hotseat.yaml", &format!("target:\n  endpoint: {agent}\nstore: false\n"));
    assert_eq!(project.hotseat(&["resume"]).code, 0);
    for case in ["c0", "c2"] {
        let events = project.hotseat(&["show", "last", case, "--json"]);
        assert!(events.stdout.contains("turn.completed"), "{case}: {events}");
    }
}

/// `text` of an agent that fails as long as a file exists beside the project.
const TWO_SUITES: [(&str, &str); 2] = [
    (
        "a",
        "name: pays\nturns: [{ user: pay, assert: { text: { must_match: paid } } }]\n---\nname: greets\nturns: [{ user: hi }]\n",
    ),
    (
        "b",
        "name: books\nturns: [{ user: book, assert: { text: { must_match: booked } } }]\n---\nname: thanks\nturns: [{ user: hi }]\n",
    ),
];

#[test]
fn failures_are_remembered_until_they_pass() {
    let is_mended = Arc::new(AtomicBool::new(false));
    let mended = is_mended.clone();
    let agent = FakeAgent::with_run(move |run, request| {
        let said = request.last_user_text();
        let reply = if said == "pay" && mended.load(Ordering::SeqCst) { "paid".to_string() } else { said };
        run.text(&reply).finished()
    });
    let project = TWO_SUITES
        .iter()
        .fold(Project::with_agent(&agent), |project, (name, text)| project.suite(name, text));
    let failed = |arguments: &[&str]| -> Vec<String> {
        let output = project.hotseat(&[&["list", "--json", "--last-failed"], arguments].concat());
        let lines = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("a case"));
        lines.map(|case| case["id"].as_str().unwrap_or_default().to_string()).collect()
    };
    assert_eq!(project.hotseat(&["test"]).code, 1);
    assert_eq!(failed(&[]), ["pays", "books"]);
    // Runs of other cases do not forget it.
    assert_eq!(project.hotseat(&["test", "-k", "greets or thanks"]).code, 0);
    assert_eq!(failed(&[]), ["pays", "books"]);
    assert_eq!(failed(&["a.test.yaml"]), ["pays"]);
    for arguments in [["test", "a.test.yaml:4", "--lf"], ["test", "a.test.yaml::greets", "--lf"]] {
        let passed = project.hotseat(&arguments);
        let words = format!("{} matches no case that failed when it last ran", arguments[1]);
        assert!(passed.code == 4 && passed.stderr.contains(&words), "{passed}");
    }
    is_mended.store(true, Ordering::SeqCst);
    let again = project.test(&["--last-failed"]);
    assert_eq!((again.count("total"), again.count("passed")), (2, 1), "{}", again.output);
    assert_eq!(failed(&[]), ["books"]);
    // A run that is not saved changes nothing.
    assert_eq!(project.hotseat(&["test", "--no-store", "a.test.yaml"]).code, 0);
    assert_eq!(failed(&[]), ["books"]);
    // A skipped case keeps its failure.
    project
        .workspace
        .file("b.test.yaml", &TWO_SUITES[1].1.replace("name: books", "name: books\nskip: later"));
    assert_eq!(project.hotseat(&["test"]).code, 0);
    assert_eq!(failed(&[]), ["books"]);
}

#[test]
fn suggested_commands_run_the_failed_cases() {
    let agent = FakeAgent::with_run(|run, request| run.text(&request.last_user_text()).finished());
    for (arguments, command, failed) in [
        (&[][..], "hotseat test --lf", &["pays", "books"][..]),
        (&["b.test.yaml", "-v", "-o", "x.json"], "hotseat test b.test.yaml:1", &["books"]),
        (
            &["a.test.yaml", "b.test.yaml", "--no-store"],
            "hotseat test --no-store a.test.yaml:1 b.test.yaml:1",
            &["pays", "books"],
        ),
        (&["-k", "pays or greets", "--timeout=20s"], "hotseat test --timeout=20s a.test.yaml:1", &["pays"]),
        (
            &["-n", "one", "--color", "never", "-k", "not greets"],
            "hotseat test -n one -k 'not greets' --lf",
            &["pays", "books"],
        ),
        (
            &["--shard", "1/1", "-k", "not thanks"],
            "hotseat test a.test.yaml:1 b.test.yaml:1",
            &["pays", "books"],
        ),
    ] {
        let project = Project::with_config(&format!("agents:\n  one: {{ endpoint: '{agent}' }}\n"));
        let project = TWO_SUITES.iter().fold(project, |project, (name, text)| project.suite(name, text));
        let first = project.hotseat(&[&["test"], arguments].concat());
        assert_eq!(first.code, 1, "{first}");
        let is_printed = |line: &str| line.trim() == command || line.ends_with(&format!("`{command}`"));
        assert!(first.stdout.lines().any(is_printed), "{command}\n{first}");
        let dir = std::path::Path::new(HOTSEAT).parent().expect("a folder").display().to_string();
        let path = format!("{dir}:{}", std::env::var("PATH").unwrap_or_default());
        let script = format!("{command} -o report.json");
        let again = project.workspace.command("sh", &["-c", &script]).env("PATH", &path).run();
        assert_eq!(again.code, 1, "{command}: {again}");
        let report = project.workspace.read_json("report.json");
        let names: Vec<&str> = report["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| result["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, failed, "{command}");
    }
}

#[test]
fn suggested_commands_name_the_lines_of_cases_in_several_suites() {
    let agent = agent();
    let cases = ["one", "two"].map(|name| {
        format!("name: {name}\nturns: [{{ user: hi, assert: {{ text: {{ must_match: nowhere }} }} }}]\n")
    });
    let passing = "name: other\nturns: [{ user: hi }]\n";
    let project = Project::with_agent(&agent).suite("c", passing);
    let project = project.suite("a", &cases.join("---\n")).suite("b", &cases.join("---\n"));
    let output = project.hotseat(&["test", "--no-store"]);
    let command = "hotseat test --no-store a.test.yaml:1 a.test.yaml:4 b.test.yaml:1 b.test.yaml:4";
    assert!(output.stdout.contains(command), "{output}");
}

#[test]
fn an_unknown_run_is_an_event_for_programs() {
    let project = Project::with_agent(&echo_agent()).suite("a", "name: a\nturns: [{ user: hi }]\n");
    project.test(&[]);
    let output = project.hotseat(&["show", "nope", "--json"]);
    let events: Vec<serde_json::Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    assert_eq!((output.code, &*output.stderr, events.len()), (2, "", 2), "{output}");
    assert!(events[0].to_string().contains("there is no run `nope`"), "{output}");
    assert_eq!(events[1]["type"], "summary", "{output}");
}

/// Without a next step, or as if no run had been saved, these would mislead.
#[test]
fn what_is_in_the_place_of_saved_runs_is_named() {
    let folder = Project::empty().file(".hotseat/runs.db/note", "");
    let file = Project::empty().file(".hotseat", "");
    for (project, words) in [(folder, "because this is a folder"), (file, ".hotseat is a file")] {
        for args in [&["runs"][..], &["show", "last"]] {
            let output = project.hotseat(args);
            assert_eq!(output.code, 3, "{args:?}: {output}");
            assert!(output.stderr.contains(words), "{args:?}: {output}");
            assert!(output.stderr.contains("move it away, or name another file with --store"), "{output}");
        }
    }
}
