//! Runs: started processes, order, parallelism, and ends of a run.
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, TestWorkspace, checkout};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::common::{Lifeline, Project, TEST_TIMEOUT, echo, echo_agent, exists, unreachable_address};

/// A case that passes if the agent repeats the user text.
fn case(name: &str) -> String {
    format!("name: {name}\nturns: [{{ user: {name}, assert: {{ text: {{ must_match: {name} }} }} }}]\n")
}

/// A suite of passing cases.
fn cases(count: usize) -> String {
    (0..count).map(|n| case(&format!("case-{n}"))).collect::<Vec<_>>().join("---\n")
}

/// An agent whose answers wait until the test opens the gate.
fn waiting_agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let said = request.last_user_text();
        run.gate("open").text(&format!("You said: {said}")).finished()
    })
}

/// Name and status of every result in report order.
fn statuses(report: &Value) -> Vec<(&str, &str)> {
    let results = report["results"].as_array().expect("a list of results");
    results
        .iter()
        .map(|result| {
            (result["name"].as_str().unwrap_or_default(), result["status"].as_str().unwrap_or_default())
        })
        .collect()
}

fn report(workspace: &TestWorkspace) -> Value {
    workspace.read_json("out.json")
}

// Parallelism.

/// Runs `all` cases; the gate opens once the expected number is in flight.
#[track_caller]
fn assert_concurrency(
    project: impl FnOnce(&FakeAgent) -> Project,
    args: &[&str],
    all: usize,
    expected: usize,
) {
    let agent = waiting_agent();
    let project = project(&agent).suite("a", &cases(all));
    let running = project.command(&[&["test"], args].concat()).spawn();
    agent.wait_for_requests(expected, TEST_TIMEOUT);
    agent.release("open");
    let output = running.wait();
    assert_eq!((output.code, agent.requests().len(), agent.most_in_flight()), (0, all, expected), "{output}");
}

#[test]
fn parallel_limit_is_respected() {
    assert_concurrency(Project::with_agent, &["--parallel", "1"], 3, 1);
    assert_concurrency(Project::with_agent, &["--parallel", "3"], 7, 3);
    assert_concurrency(Project::with_agent, &["--parallel", "100"], 12, 12);
}

#[test]
fn default_parallelism_is_eight() {
    assert_concurrency(Project::with_agent, &[], 12, 8);
}

#[test]
fn parallel_flag_overrides_project() {
    let project = |agent: &FakeAgent| {
        Project::with_config(&format!("target: {{ endpoint: '{agent}' }}\nparallel: 2\n"))
    };
    assert_concurrency(project, &[], 5, 2);
    assert_concurrency(project, &["--parallel", "3"], 5, 3);
}

#[test]
fn turns_of_a_case_are_sequential() {
    let agent = echo_agent();
    let suite = "name: a\nturns: [{ user: one }, { user: two }, { user: three, assert: { text: { must_match: three } } }]\n";
    Project::with_agent(&agent).suite("a", suite).test(&[]).assert_all_passed();
    let told: Vec<Vec<String>> = agent.requests().iter().map(|request| request.user_texts()).collect();
    assert_eq!(told, [vec!["one"], vec!["one", "two"], vec!["one", "two", "three"]]);
    assert_eq!(agent.most_in_flight(), 1);
}

#[test]
fn no_turn_is_sent_after_a_failed_turn() {
    let agent = echo_agent();
    let suite = "name: a\nturns: [{ user: one, assert: { text: { must_match: two } } }, { user: two }]\n";
    let tested = Project::with_agent(&agent).suite("a", suite).test(&[]);
    assert_eq!(tested.failure("a")["kind"], "assertion");
    assert_eq!(agent.requests().len(), 1);
}

// Selection.

#[test]
fn fail_fast_starts_no_case_after_failure() {
    let agent = FakeAgent::start(|request| match request.last_user_text().as_str() {
        "bad" => FakeRun::for_request(request).started().error("no", None),
        said => FakeRun::for_request(request).started().text(said).finished(),
    });
    let suite = [case("good"), case("bad"), case("late"), case("later")].join("---\n");
    let project = Project::with_agent(&agent).suite("a", &suite);
    let tested = project.test(&["--fail-fast", "--parallel", "1"]);
    let expected = [("good", "passed"), ("bad", "failed"), ("late", "skipped"), ("later", "skipped")];
    assert_eq!(statuses(&tested.report), expected, "{}", tested.output);
    assert_eq!(tested.case("late")["skip_reason"], "not run: `bad` failed (--fail-fast)");
    assert_eq!((tested.output.code, agent.requests().len()), (1, 2));
    // Without the flag all cases run.
    let tested = project.test(&["--parallel", "1"]);
    assert_eq!((tested.count("passed"), tested.count("failed"), tested.count("skipped")), (3, 1, 0));
}

#[test]
fn fail_fast_finishes_running_cases() {
    let agent = FakeAgent::start(|request| match request.last_user_text().as_str() {
        "bad" => FakeRun::for_request(request).started().error("no", None),
        said => FakeRun::for_request(request).started().gate("open").text(said).finished(),
    });
    let suite = [case("good"), case("bad"), case("late")].join("---\n");
    let project = Project::with_agent(&agent).suite("a", &suite);
    let mut running = project.command(&["test", "-o", "out.json", "--fail-fast", "--parallel", "2"]).spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    running.wait_for_stdout("► bad");
    agent.release("open");
    let output = running.wait();
    let report = report(&project.workspace);
    assert_eq!(statuses(&report), [("good", "passed"), ("bad", "failed"), ("late", "skipped")], "{output}");
    assert_eq!(output.code, 1);
}

#[test]
fn fail_fast_leaves_incomplete_run_and_own_skip_reasons() {
    let agent = echo_agent();
    let bad = "name: bad\nturns: [{ user: hi, assert: { text: { must_match: never } } }]\n".to_string();
    let marked = "name: marked\nskip: broken upstream\nturns: [{ user: hi }]\n".to_string();
    let project = Project::with_agent(&agent).suite("a", &[bad, case("late"), marked].join("---\n"));
    let tested = project.test(&["--parallel", "1", "--fail-fast"]);
    let reason = |place: usize| {
        tested.report["results"][place]["skip_reason"].as_str().unwrap_or_default().to_string()
    };
    assert_eq!(
        (reason(1).as_str(), reason(2).as_str()),
        ("not run: `bad` failed (--fail-fast)", "broken upstream")
    );
    assert_eq!(tested.report["summary"]["interrupted"], false);
    let listed = project.hotseat(&["runs"]);
    assert!(listed.stdout.contains("2 of 3 (incomplete)"), "{listed}");
}

#[test]
fn filter_matches_id_and_name() {
    let agent = echo_agent();
    let suite = "
name: checkout works
id: C-1
turns: [{ user: one }]
---
name: refund works
id: C-2
turns: [{ user: two }]
---
name: refund is refused
turns: [{ user: three }]
";
    let project = Project::with_agent(&agent).suite("a", suite).suite("b", &case("other"));
    let selected = |pattern: &str| {
        let tested = project.test(&["--run", pattern]);
        assert_eq!(tested.output.code, 0, "{}", tested.output);
        statuses(&tested.report).into_iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(selected("^C-2$"), ["refund works"]);
    assert_eq!(selected("refund"), ["refund works", "refund is refused"]);
    assert_eq!(selected("(?i)WORKS$"), ["checkout works", "refund works"]);
    assert_eq!(selected("."), ["checkout works", "refund works", "refund is refused", "other"]);
}

#[test]
fn dry_run_contacts_no_agent_and_writes_nothing() {
    let agent = echo_agent();
    let suite = "name: a\nhooks: [{ cmd: [touch, hook-ran] }]\nturns: [{ user: hello, assert: { text: { must_match: h } } }]\n";
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}', start: {{ command: [touch, agent-ran] }} }}\n"
    ))
    .suite("a", suite)
    .suite("b", &cases(2));
    assert_snapshot!(project.hotseat(&["test", "--dry-run"]), @"
    exit code: 0
    ----- stdout -----
    no errors in 3 cases in 2 suites; no agent was contacted

    ----- stderr -----
    ");
    let refused = project.hotseat(&[
        "test",
        "--dry-run",
        "-o",
        "out.json",
        "--trace",
        "trace.jsonl",
        "-o",
        "cases.jsonl",
        "--record",
        "recordings",
        "--record-cassettes",
        "cassettes",
    ]);
    assert_snapshot!(refused, @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: -o out.json: a dry run has no results to write
     |
     = help: leave it out; `-o FILE.jsonl` writes the cases

    error: --trace trace.jsonl: a dry run has no results to write
     |
     = help: leave it out; `-o FILE.jsonl` writes the cases

    error: --record recordings: a dry run has no results to write
     |
     = help: leave it out; `-o FILE.jsonl` writes the cases

    error: --record-cassettes cassettes: a dry run has no results to write
     |
     = help: leave it out; `-o FILE.jsonl` writes the cases
    ");
    let files =
        ["hook-ran", "agent-ran", "out.json", "trace.jsonl", "cases.jsonl", "recordings", "cassettes"];
    assert!(files.iter().all(|file| !exists(&project.workspace, file)));
    assert_eq!(agent.requests().len(), 0);
}

#[test]
fn skipped_cases_are_counted_and_do_not_fail_run() {
    let agent = echo_agent();
    let suite = "
name: with a reason
skip: waits for the new tool
turns: [{ user: one }]
---
name: without
skip: true
turns: [{ user: two }]
---
name: not at all
skip: false
turns: [{ user: three }]
";
    let tested = Project::with_agent(&agent).suite("a", suite).test(&[]);
    let expected = [("with a reason", "skipped"), ("without", "skipped"), ("not at all", "passed")];
    assert_eq!(statuses(&tested.report), expected);
    assert_eq!(tested.case("with a reason")["skip_reason"], "waits for the new tool");
    assert_eq!((tested.output.code, agent.requests().len()), (0, 1));

    // An empty selection does not fail either.
    let tested =
        Project::with_agent(&agent).suite("a", "name: a\nskip: true\nturns: [{ user: one }]\n").test(&[]);
    assert_eq!((tested.output.code, tested.count("skipped")), (0, 1));
}

#[test]
fn same_name_in_two_files_is_two_cases() {
    let agent = echo_agent();
    let project =
        Project::with_agent(&agent).suite("one", &case("hello")).file("deep/two.test.yml", &case("hello"));
    let tested = project.test(&[]);
    tested.assert_all_passed();
    let results = tested.results();
    let files: Vec<&Value> = results.iter().map(|result| &result["file"]).collect();
    assert_eq!(files, ["deep/two.test.yml", "one.test.yaml"]);
}

/// A suite that is left out would look like one that passed.
#[cfg(unix)]
#[test]
fn suites_behind_links_and_in_unreadable_folders_are_not_left_out() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let config = "target: { endpoint: 'http://127.0.0.1:9/' }\nsuites: ['tests/**/*.test.yaml']\n";
    let project = Project::with_config(config)
        .file("tests/a.test.yaml", &case("a"))
        .file("shared/b.yaml", &case("b"))
        .file("shared/deep/c.test.yaml", &case("c"));
    let path = |name: &str| project.workspace.path(name);
    symlink("../shared/b.yaml", path("tests/b.test.yaml")).expect("a link");
    symlink("a.test.yaml", path("tests/again.test.yaml")).expect("a link");
    symlink("../shared", path("tests/folder")).expect("a link");
    symlink("..", path("tests/loop")).expect("a link");
    for arguments in [&["list"][..], &["list", "tests"], &["list", "tests/*.yaml"]] {
        let output = project.command(arguments).run();
        assert_eq!(output.stdout, "tests/a.test.yaml:1 a\ntests/b.test.yaml:1 b\n", "{output}");
    }
    symlink("missing.yaml", path("tests/gone.test.yaml")).expect("a link");
    project.command(&["list"]).run().assert_stderr(2, &["cannot follow the link tests/gone.test.yaml: "]);
    std::fs::remove_file(path("tests/gone.test.yaml")).expect("the link is there");
    symlink("/dev/null", path("tests/device.test.yaml")).expect("a link");
    let words = "tests/device.test.yaml is neither a file nor a folder, so it cannot be read several times";
    project.command(&["list"]).run().assert_stderr(2, &[words, "save it as a file"]);
    std::fs::remove_file(path("tests/device.test.yaml")).expect("the link is there");

    std::fs::create_dir(path("tests/closed")).expect("a folder");
    std::fs::create_dir(path("data")).expect("a folder");
    let mode = |bits| {
        let set = |folder| std::fs::set_permissions(path(folder), std::fs::Permissions::from_mode(bits));
        set("data").and(set("tests/closed"))
    };
    mode(0).expect("permissions");
    // The superuser reads every folder.
    if std::fs::read_dir(path("tests/closed")).is_err() {
        let output = project.command(&["list"]).run();
        output.assert_stderr(2, &["cannot search for suites: "]);
        assert!(!output.stderr.contains("data"), "no suite can be there: {output}");
    }
    mode(0o755).expect("permissions");
}

#[test]
fn suites_are_files_folders_and_globs() {
    let project =
        Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\nsuites: ['tests/**/*.yaml']\n")
            .file("tests/a.yaml", &case("a"))
            .file("tests/deep/b.yaml", &case("b"))
            .file("tests/deep/c.test.yaml", &case("c"))
            .file("tests/.hidden/d.yaml", &case("d"))
            .file("tests/node_modules/e.yaml", &case("e"))
            .file("tests/ignored.yaml", &case("f"))
            .file(".gitignore", "ignored.yaml\n")
            .file("other.txt", &case("g"));
    let listed = |args: &[&str], folder: &str| {
        let output = project.command(&[&["list", "--json"], args].concat()).cwd(folder).run();
        assert_eq!(output.code, 0, "{output}");
        let lines =
            output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
        lines.map(|line| line["file"].as_str().unwrap_or_default().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&[], "."), ["tests/a.yaml", "tests/deep/b.yaml", "tests/deep/c.test.yaml"]);
    assert_eq!(listed(&["tests"], "."), ["tests/deep/c.test.yaml"], "in a folder, *.test.yaml");
    assert_eq!(listed(&["other.txt"], "."), ["other.txt"], "a file, whatever it is called");
    assert_eq!(listed(&["{hotseat,tests/a}.yaml"], "."), ["tests/a.yaml"], "a glob finds no project file");
    project
        .hotseat(&["list", "hotseat.yaml", "other.txt"])
        .assert_stderr(2, &["hotseat.yaml is a project file, not a suite"]);
    assert_eq!(listed(&["tests/*/?.yaml"], "."), ["tests/deep/b.yaml"]);
    assert_eq!(
        listed(&["tests/a.yaml", "./tests/a.yaml", "tests/**/a.yaml"], "."),
        ["tests/a.yaml"],
        "each once"
    );
    assert_eq!(listed(&["b.yaml"], "tests/deep"), ["b.yaml"], "relative to where one stands");
    assert_eq!(listed(&[], "tests/deep").len(), 3, "the project is found by walking up");
}

#[test]
fn the_personal_ignore_file_of_git_decides_nothing() {
    let project = Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\n")
        .suite("a", &case("a"))
        .suite("b", &case("b"))
        .file(".gitignore", "b.test.yaml\n")
        .file("home/ignored", "a.test.yaml\n");
    let home = project.workspace.path("home");
    project.workspace.file("home/.gitconfig", "[core]\n  excludesFile = ~/ignored\n");
    let output = project.command(&["list"]).env("HOME", home.to_str().expect("a path")).run();
    assert_eq!(output.stdout, "a.test.yaml:1 a\n", "{output}");
    project.workspace.file(".gitignore", "*.test.yaml\n");
    let output = project.hotseat(&["list"]);
    assert!(output.stderr.contains("a `.gitignore` names a.test.yaml; pass it as an argument"), "{output}");
}

/// The same tests run on every machine, and in every folder into which a repository is cloned.
#[test]
fn only_ignore_files_of_the_repository_count() {
    let config = "target: { endpoint: 'http://127.0.0.1:9/' }\n";
    let project = Project::empty()
        .file(".gitignore", "above.test.yaml\n")
        .file("repo/.git/info/exclude", "excluded.test.yaml\n")
        .file("repo/.git/HEAD", "ref: refs/heads/main\n")
        .file("repo/.gitignore", "ignored.test.yaml\n")
        .file("repo/shop/.ignore", "other.test.yaml\n")
        .file("repo/shop/.gitignore", "inner.test.yaml\n")
        .file("repo/shop/hotseat.yaml", config);
    let names = ["above", "excluded", "ignored", "inner", "other"];
    let project = names
        .iter()
        .fold(project, |project, name| project.file(&format!("repo/shop/{name}.test.yaml"), &case(name)));
    let listed = |folder: &str| {
        let output = project.command(&["list"]).cwd(folder).run();
        assert_eq!(output.code, 0, "{output}");
        let names = output.stdout.lines().filter_map(|line| line.rsplit(' ').next());
        names.map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(listed("repo/shop"), ["above", "excluded", "other"]);
    std::fs::remove_dir_all(project.workspace.path("repo/.git")).expect("the repository is there");
    assert_eq!(listed("repo/shop"), ["excluded", "other"], "outside of a repository");
}

#[test]
fn list_prints_case_names() {
    let suite = "name: first\nid: C-1\ntags: [smoke]\nturns: [{ user: one }, { user: two, assert: { text: { must_match: x } } }]\n---\nname: second\nskip: later\nturns: [{ user: a }]\n";
    let project = Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\n")
        .suite("a", suite)
        .suite("b", &case("third"));
    assert_snapshot!(project.hotseat(&["list"]), @"
    exit code: 0
    ----- stdout -----
    a.test.yaml:1 first
    a.test.yaml:6 second (skipped: later)
    b.test.yaml:1 third

    ----- stderr -----
    3 of 3 cases in 2 suites
    ");
    assert_snapshot!(project.hotseat(&["list", "--json"]), @r#"
    exit code: 0
    ----- stdout -----
    {"id":"C-1","name":"first","suite":"a.test.yaml","file":"a.test.yaml","line":1,"turns":2,"tags":["smoke"],"skip":null}
    {"id":"second","name":"second","suite":"a.test.yaml","file":"a.test.yaml","line":6,"turns":1,"tags":[],"skip":"later"}
    {"id":"third","name":"third","suite":"b.test.yaml","file":"b.test.yaml","line":1,"turns":1,"tags":[],"skip":null}

    ----- stderr -----
    "#);
    assert_snapshot!(project.hotseat(&["list", "--run", "third"]), @"
    exit code: 0
    ----- stdout -----
    b.test.yaml:1 third

    ----- stderr -----
    1 of 3 cases in 2 suites
    ");
}

#[test]
fn case_file_selects_exactly_its_cases() {
    let agent = echo_agent();
    // Each suite has the same ids.
    let two = [case("one"), case("two")].join("---\n");
    let project = Project::with_agent(&agent).suite("a", &two).suite("b", &two);
    let listed = project.hotseat(&["list", "--json"]).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    // Some shells begin a file with a byte order mark.
    project.workspace.file("cases.jsonl", &format!("\u{FEFF}{}\n\n{}\n", lines[0], lines[3]));
    let tested = project.test(&["--cases", "cases.jsonl"]);
    let results = tested.results();
    let ran: Vec<_> = results.iter().map(|result| (&result["file"], &result["id"])).collect();
    assert_eq!(ran, [(&json!("a.test.yaml"), &json!("one")), (&json!("b.test.yaml"), &json!("two"))]);
    assert_eq!((tested.output.code, agent.requests().len()), (0, 2), "{}", tested.output);
    // Cases that do not exist, no case, lines that are no cases.
    for (text, error) in [
        (lines[1].replace("two", "three"), "--cases: a.test.yaml has no case `three`"),
        (String::new(), "--cases cases.jsonl: the file has no case"),
        ("{\"id\":\"one\"}".to_string(), "--cases cases.jsonl: line 1 is not a case"),
    ] {
        project.workspace.file("cases.jsonl", &text);
        project.hotseat(&["test", "--cases", "cases.jsonl"]).assert_stderr(2, &[error]);
    }
    project
        .hotseat(&["test", "--cases", "missing.jsonl"])
        .assert_stderr(2, &["cannot read --cases missing.jsonl"]);
    assert_eq!(agent.requests().len(), 2, "nothing else ran");
}

#[test]
fn recheck_of_selected_cases_needs_no_case_file() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", &[case("one"), case("two")].join("---\n"));
    let listed = project.hotseat(&["list", "--json"]).stdout;
    project.workspace.file("cases.jsonl", listed.lines().next().unwrap_or_default());
    assert_eq!(project.hotseat(&["test", "--cases", "cases.jsonl"]).code, 0);
    std::fs::remove_file(project.workspace.path("cases.jsonl")).expect("the file exists");
    project.hotseat(&["recheck", "last"]).assert_stdout(0, &["Total:     1"]);
}

// init

#[test]
fn init_creates_working_files() {
    let agent = echo_agent();
    let project = Project::empty();
    assert_snapshot!(project.hotseat(&["init", "--endpoint", &agent.url()]), @"
    exit code: 0
    ----- stdout -----
    wrote  hotseat.yaml
    wrote  tests/first.test.yaml
    wrote  hotseat-editor/suite.schema.json
    wrote  hotseat-editor/project.schema.json

    Next:
      hotseat test

    ----- stderr -----
    ");
    project.hotseat(&["test", "--dry-run"]).assert_code(0);
    assert_eq!(agent.requests().len(), 0);

    let tested = project.test(&[]);
    assert_eq!(tested.output.code, 0, "{}", tested.output);
    assert_eq!((tested.count("passed"), tested.count("skipped")), (1, 1));
    for schema in ["hotseat-editor/suite.schema.json", "hotseat-editor/project.schema.json"] {
        let schema = project.workspace.read_json(schema);
        assert!(schema["properties"].is_object(), "{schema:#}");
    }
    // Referenced files exist.
    for (file, schema) in [("hotseat.yaml", "suite"), ("tests/first.test.yaml", "project")] {
        let text = project.workspace.read(file);
        let relative = text.lines().next().and_then(|line| line.rsplit_once('=')).expect("a schema").1;
        let folder = project.workspace.path(file).parent().expect("a folder").to_path_buf();
        assert!(folder.join(relative).is_file() && !relative.contains(schema), "{file}: {relative}");
    }
}

#[test]
fn init_keeps_existing_files() {
    let project = Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\n")
        .file("hotseat-editor/suite.schema.json", "old")
        .file("tsconfig.json", "{ \"include\": [\"src\"] }");
    assert_snapshot!(project.hotseat(&["init"]), @"
    exit code: 0
    ----- stdout -----
    kept   hotseat.yaml (already exists)
    wrote  hotseat-editor/suite.schema.json
    wrote  hotseat-editor/project.schema.json

    Next:
      hotseat test

    ----- stderr -----
    ");
    assert_eq!(project.workspace.read("hotseat.yaml"), "target: { endpoint: 'http://127.0.0.1:9/' }\n");
    assert_ne!(project.workspace.read("hotseat-editor/suite.schema.json"), "old");
    assert_snapshot!(project.hotseat(&["init", "--endpoint", "http://127.0.0.1:7/", "--typescript"]), @r#"
    exit code: 0
    ----- stdout -----
    kept   hotseat.yaml (already exists; set the address to http://127.0.0.1:7/ yourself)
    kept   tsconfig.json (already exists; add "hotseat-editor/hotseat.d.ts" to its `include` yourself)
    kept   hotseat-editor/suite.schema.json (up to date)
    kept   hotseat-editor/project.schema.json (up to date)
    wrote  hotseat-editor/hotseat.d.ts

    Next:
      hotseat test

    ----- stderr -----
    "#);
    assert!(!project.workspace.path("tests").exists(), "a project gets no test that it did not ask for");
    project.workspace.file("hotseat.yaml", "# yaml-language-server: $schema=.hotseat/project.schema.json\n");
    let output = project.hotseat(&["init"]);
    assert!(
        output
            .stdout
            .contains("hotseat.yaml (already exists; replace .hotseat/ by hotseat-editor/ yourself)"),
        "{output}"
    );
}

/// An agent that `doctor` can ask whether it is there.
fn doctored_agent() -> FakeAgent {
    FakeAgent::start(|request: &FakeRequest| match request.method.as_str() {
        "GET" => FakeReply::status(405),
        _ => echo(request),
    })
}

#[test]
fn init_leaves_a_folder_to_the_project_around_it() {
    let agent = doctored_agent();
    for name in ["hotseat.yaml", "aguitest.config.yaml"] {
        let project = Project::empty()
            .file(
                name,
                &format!(
                    "target: {{ endpoint: '{agent}', assert: {{ text: {{ must_not_match: Hello }} }} }}\n"
                ),
            )
            .file("specs/a.test.yaml", "name: a\nturns: [{ user: Hello }]\n");
        let in_specs = |args: &[&str]| project.command(args).cwd("specs").run();
        assert_eq!(in_specs(&["test"]).code, 1);
        let advice = in_specs(&["doctor"]).stdout;
        assert!(
            advice.contains("is missing") && advice.contains("next: run `hotseat init`, which"),
            "{advice}"
        );

        let output = in_specs(&["init"]);
        let kept =
            format!("{name} (the project file of this folder; name a new folder to create a project in it)");
        assert!(output.code == 0 && output.stdout.contains(&kept), "{output}");
        for file in ["specs/hotseat.yaml", "specs/tests", "specs/hotseat-editor"] {
            assert!(!project.workspace.path(file).exists(), "{file}: {output}");
        }
        assert!(!in_specs(&["doctor"]).stdout.contains("is missing"));
        assert_eq!(in_specs(&["test"]).code, 1, "the assertion of the project still applies");
        // The same from the folder of the project, and by the name of its folder of tests.
        for args in [&["init"][..], &["init", "specs"]] {
            let output = project.hotseat(args);
            output.assert_stdout(0, &["kept   "]);
            assert!(!output.stdout.contains("wrote"), "{output}");
        }
    }
}

#[test]
fn doctor_and_init_mean_the_same_editor_files() {
    let agent = doctored_agent();
    let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hi }]\n");
    for tsconfig in ["{}", "{ \"include\": [\"hotseat-editor/hotseat.d.ts\"] }"] {
        project.workspace.file("tsconfig.json", tsconfig);
        assert_eq!(project.hotseat(&["init"]).code, 0);
        let output = project.hotseat(&["doctor"]);
        assert!(output.code == 0 && !output.stdout.contains("is missing"), "{output}");
    }
    std::fs::remove_file(project.workspace.path("hotseat-editor/hotseat.d.ts"))
        .expect("named by tsconfig.json");
    let output = project.hotseat(&["doctor"]);
    assert!(output.stdout.contains("hotseat.d.ts is missing"), "{output}");
}

#[test]
fn files_for_editors_are_committed() {
    let agent = echo_agent();
    let project = Project::empty();
    assert_eq!(project.hotseat(&["init", "--typescript", "--endpoint", &agent.url()]).code, 0);
    assert_eq!(project.hotseat(&["test"]).code, 0);
    assert_eq!(project.workspace.run("git", &["init", "--quiet", "."]).code, 0);
    assert_eq!(project.workspace.run("git", &["add", "."]).code, 0);
    let committed = project.workspace.run("git", &["ls-files"]).stdout;
    for file in ["suite.schema.json", "project.schema.json", "hotseat.d.ts"] {
        assert!(committed.contains(&format!("hotseat-editor/{file}")), "{committed}");
    }
    assert!(!committed.contains("runs.db"), "{committed}");
}

#[test]
fn init_writes_to_given_folder() {
    let project = Project::empty();
    assert_snapshot!(project.hotseat(&["init", "agents/shop"]), @"
    exit code: 0
    ----- stdout -----
    wrote  hotseat.yaml
    wrote  tests/first.test.yaml
    wrote  hotseat-editor/suite.schema.json
    wrote  hotseat-editor/project.schema.json

    Next: set the address of your agent in hotseat.yaml, then
      cd agents/shop && hotseat test

    ----- stderr -----
    ");
    assert_eq!(project.command(&["test", "--dry-run"]).cwd("agents/shop").run().code, 0);
    let output = project.hotseat(&["init", "my tests"]);
    assert!(output.stdout.contains("cd 'my tests' && hotseat test"), "{output}");
    // Also within a project, a new folder that is named gets one of its own.
    project
        .command(&["init", "../support"])
        .cwd("agents/shop")
        .run()
        .assert_stdout(0, &["wrote  hotseat.yaml"]);
    // The folder before `..` is not around the named one, not even if that has files.
    project.workspace.file("agents/drafts/notes.md", "none");
    project
        .command(&["init", "../drafts"])
        .cwd("agents/shop")
        .run()
        .assert_stdout(0, &["wrote  hotseat.yaml"]);
    let blocked = Project::empty().file("taken", "a file");
    blocked.hotseat(&["init", "taken"]).assert_stderr(2, &["taken is not a folder"]);
}

// Ctrl-C.

#[test]
fn ctrl_c_finishes_running_cases() {
    let agent = waiting_agent();
    let project = Project::with_agent(&agent).suite("a", &[case("running"), case("waiting")].join("---\n"));
    let mut running =
        project.command(&["test", "-o", "out.json", "-o", "out.xml", "--parallel", "1"]).spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases; waiting for running cases (Ctrl-C again cancels them)");
    agent.release("open");
    let output = running.wait();
    assert_eq!(output.code, 130, "{output}");
    let report = report(&project.workspace);
    assert_eq!(statuses(&report), [("running", "passed"), ("waiting", "skipped")], "{output}");
    assert_eq!(report["results"][1]["skip_reason"], "not run: the run was interrupted");
    assert_eq!(report["summary"]["interrupted"], true);
    assert_eq!(agent.requests().len(), 1);
    assert!(project.workspace.read("out.xml").contains("not run: the run was interrupted"));
}

#[test]
fn second_ctrl_c_cancels_immediately() {
    // The second request shows that the text of the first reply was read.
    let agent = FakeAgent::with_run(|run, request| match request.tool_results_since_last_user().is_empty() {
        true => run.text("Hello.").tool_call("c", "look", &json!({})).finished(),
        false => run.gate("never").hang(),
    });
    let tool = "tools: [{ name: look, answers: [{ content: 1 }] }]\n";
    let suite = [&case("running"), tool, "---\n", &case("waiting")].concat();
    let project = Project::with_agent(&agent).suite("a", &suite);
    let files = ["-o", "out.json", "--trace", "trace.jsonl"];
    let mut running = project.command(&[&["test", "--parallel", "1"], &files[..]].concat()).spawn();
    agent.wait_at_gate("never", TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    running.press_ctrl_c();
    let output = running.wait();
    output.assert_stdout(130, &["cancelling running cases"]);
    let report = report(&project.workspace);
    assert_eq!(statuses(&report), [("running", "failed"), ("waiting", "skipped")], "{output}");
    assert_eq!(report["results"][0]["failure"]["kind"], "cancelled");
    assert_eq!(report["results"][0]["failure"]["fault"], "infrastructure");
    // What had been said until then is kept.
    let turn = &report["results"][0]["turns"][0];
    assert_eq!((&turn["output"], &turn["status"]), (&"Hello.".into(), &"failed".into()), "{turn}");
    let trace = project.workspace.read("trace.jsonl");
    assert!(trace.contains("Hello.") && trace.contains("turn.failed"), "{trace}");
    let saved = project.hotseat(&["show", "last", "running"]);
    assert!(saved.stdout.contains("Hello."), "{saved}");
    agent.wait_for_abandoned(1, TEST_TIMEOUT);
}

/// CI servers send this signal when a job is cancelled.
#[test]
fn sigterm_acts_like_ctrl_c() {
    let agent = waiting_agent();
    let project = Project::with_agent(&agent).suite("a", &case("running"));
    let mut running = project.command(&["test", "-o", "out.json"]).spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    assert_eq!(project.workspace.run("kill", &["-TERM", &running.id().to_string()]).code, 0);
    running.wait_for_stdout("no new cases");
    agent.release("open");
    let output = running.wait();
    output.assert_code(130);
    assert_eq!(statuses(&report(&project.workspace)), [("running", "passed")]);
    assert!(!output.stderr.contains("hotseat resume"), "no case remains: {output}");
}

/// A terminal sends Ctrl-C to all processes; hooks are not interrupted by it, and are killed with their case.
#[test]
fn hook_survives_first_ctrl_c_but_not_second() {
    let agent = echo_agent();
    let hook = "exec 3>alive\necho started > started\nsh -c 'sleep 1000 & wait'\n";
    let project = Project::with_agent(&agent)
        .file("hook.sh", hook)
        .suite("a", "name: a\nhooks: [{ cmd: [sh, hook.sh] }]\nturns: [{ user: hello }]\n");
    let alive = Lifeline::new(&project.workspace, "alive");
    let mut running = project.command(&["test", "-o", "out.json"]).spawn();
    alive.wait_for_start();
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    assert!(!alive.has_ended());
    running.press_ctrl_c();
    running.wait().assert_code(130);
    alive.wait_for_end();
    assert_eq!(report(&project.workspace)["results"][0]["failure"]["kind"], "cancelled");
    assert_eq!(agent.requests().len(), 0);
}

#[test]
fn second_ctrl_c_ends_the_hook_before_the_run() {
    let agent = echo_agent();
    let hook = "exec 3>alive\necho started > started\nsh -c 'sleep 1000 & wait'\n";
    let config = format!(
        "target: {{ endpoint: '{agent}' }}\nhooks:\n  slow: {{ cmd: [sh, hook.sh] }}\n  last: {{ cmd: [touch, after-ran] }}\n"
    );
    let project =
        Project::with_config(&config).file("hook.sh", hook).suite("a", "name: a\nturns: [{ user: hello }]\n");
    let alive = Lifeline::new(&project.workspace, "alive");
    let running = project.command(&["test", "-o", "out.json", "--before", "slow", "--after", "last"]).spawn();
    alive.wait_for_start();
    // Two signals of one kind may arrive as one.
    running.press_ctrl_c();
    assert_eq!(project.workspace.run("kill", &["-TERM", &running.id().to_string()]).code, 0);
    let output = running.wait();
    assert_eq!(output.code, 130, "{output}");
    alive.wait_for_end();
    assert!(exists(&project.workspace, "after-ran"), "{output}");
    assert_eq!(report(&project.workspace)["summary"]["interrupted"], true, "{output}");
    assert_eq!(agent.requests().len(), 0);
}

// target.start

/// A project that starts the example agent with a script observed by a lifeline.
fn start_script_agent(script: &str) -> (Project, Lifeline, String) {
    let url = unreachable_address();
    let port = url.trim_matches('/').rsplit(':').next().expect("a port").to_string();
    let project = Project::with_config(&format!(
        "
target:
  endpoint: {url}
  start: {{ command: [sh, agent.sh], ready: '{url}health', timeout_ms: 20000, env: {{ PORT: '{port}' }}, cwd: server }}
"
    ))
    .file("server/agent.sh", &script.replace("AGENT", &checkout::binary().display().to_string()));
    let alive = Lifeline::new(&project.workspace, "alive");
    (project, alive, url)
}

const PAYS: &str = "
name: pays
turns: [{ user: pay, assert: { tools: { require: [{ name: charge_card, count: { exact: 1 } }] } } }]
";

#[test]
fn starts_and_stops_agent_with_children() {
    // The agent is a child of the started script, which also starts another process.
    let (project, alive, _) =
        start_script_agent("exec 3>../alive\nsleep 1000 &\nAGENT --port $PORT &\nwait\n");
    project.suite("a", PAYS).test(&[]).assert_all_passed();
    alive.wait_for_end();
}

#[test]
fn unresponsive_agent_is_killed() {
    let (project, alive, _) =
        start_script_agent("exec 3>../alive\ntrap '' TERM\nAGENT --port $PORT &\nwhile :; do wait; done\n");
    project.suite("a", PAYS).test(&[]).assert_all_passed();
    alive.wait_for_end();
}

/// Failure of the only case of a project whose agent does not start.
#[track_caller]
fn start_failure(project: &Project) -> (String, String) {
    let tested = project.test(&[]);
    assert_eq!(tested.output.code, 3, "{}", tested.output);
    let failure = tested.failure("pays");
    assert_eq!(failure["kind"], "unreachable");
    let stdout = tested.output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(stdout.contains("Next: correct `start` of the agent in the project file"), "{}", tested.output);
    let text = |key: &str| failure[key].as_str().unwrap_or_default().to_string();
    (text("message"), text("detail"))
}

#[test]
fn agent_exits_before_ready() {
    let (project, _alive, url) = start_script_agent("exit 3\n");
    let (message, detail) = start_failure(&project.suite("a", PAYS));
    let expected = format!(
        "the target (hotseat.yaml:4:3) did not start: `sh agent.sh` exited before it responded at {url}health (exit status: 3)"
    );
    assert_eq!((&*message, &*detail), (&*expected, "it printed nothing"));
}

#[test]
fn agent_exit_quotes_its_output() {
    // Repeated, since output lost at exit is an intermittent error.
    for _ in 0..20 {
        let (project, _alive, _) = start_script_agent("echo booting\necho 'no module named shop'\nexit 3\n");
        let (_, detail) = start_failure(&project.suite("a", PAYS));
        assert_eq!(detail, "its last output:\nbooting\nno module named shop");
    }
}

#[test]
fn agent_program_is_missing() {
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{}', start: {{ command: [no-such-agent, --serve] }} }}\n",
        unreachable_address()
    ))
    .suite("a", PAYS);
    let (message, detail) = start_failure(&project);
    assert!(message.ends_with("did not start: there is no program `no-such-agent`"), "{message}");
    assert_eq!(detail, "install the program, or correct `command` and `cwd` of `start`");
}

#[test]
fn agent_never_becomes_ready() {
    let url = unreachable_address();
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{url}', start: {{ command: [sh, -c, 'exec 3>alive; echo loading; sleep 1000'], timeout_ms: 1500 }} }}\n"
    ))
    .suite("a", PAYS);
    let alive = Lifeline::new(&project.workspace, "alive");
    let (message, detail) = start_failure(&project);
    let expected = format!(
        "`sh -c exec 3>alive; echo loading; sleep 1000` did not respond within 1500 ms: cannot reach {url}: Connection refused"
    );
    assert!(message.contains(&expected) && detail == "its last output:\nloading", "{message}\n{detail}");
    alive.wait_for_end();
}

#[test]
fn agent_address_is_in_use() {
    let stranger = FakeAgent::start(|_| FakeReply::status(405));
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{stranger}', start: {{ command: [touch, started] }} }}\n"
    ))
    .suite("a", PAYS);
    let (message, detail) = start_failure(&project);
    let expected = format!("did not start: {stranger} is already in use by another process");
    assert!(message.ends_with(&expected), "{message}");
    assert!(detail.starts_with("end that process (find it with `lsof -i :PORT`)"), "{detail}");
    assert!(!exists(&project.workspace, "started"));
    assert!(
        stranger.requests().iter().all(|request| request.method == "GET"),
        "the other server receives no messages"
    );
}

#[test]
fn cases_of_other_agents_run_if_an_agent_does_not_start() {
    let agent = echo_agent();
    let config = format!(
        "agents:
  works: {{ endpoint: '{agent}' }}
  broken:
    endpoint: '{unreachable}'
    start: {{ command: [sh, -c, 'echo no key; exit 4'] }}
  judge:
    endpoint: '{unreachable}'
    start: {{ command: [no-such-judge] }}
target: works
judge: agents:judge
",
        unreachable = unreachable_address()
    );
    let judged = "name: judged\nturns: [{ user: hi, assert: { type: satisfy, criteria: It is polite } }]\n";
    let project = Project::with_config(&config)
        .suite("a", &format!("{}---\n{judged}", case("one")))
        .suite("b", &format!("suite: {{ agent: broken }}\n---\n{}---\n{}", case("two"), case("three")));
    let tested = project.test(&[]);
    let output = &tested.output;
    assert_eq!(output.code, 1, "{output}");
    assert_eq!(tested.case("one")["status"], "passed", "{output}");
    for name in ["two", "three"] {
        let message = "agent `broken` (hotseat.yaml:5:5) did not start: `sh -c echo no key; exit 4` exited before it responded";
        tested.assert_failure(name, "unreachable", &[message]);
        assert_eq!(tested.failure(name)["detail"], "its last output:\nno key");
    }
    let failure = tested.failure("judged").to_string() + &tested.case("judged").to_string();
    assert!(
        failure.contains("agent `judge` (hotseat.yaml:8:5) did not start: there is no program"),
        "{failure}"
    );
    // The run is saved as any other.
    let saved = project.hotseat(&["runs", "--json"]);
    assert_eq!(saved.stdout.lines().count(), 1, "{saved}");
    let shown = project.hotseat(&["show", "last"]);
    assert!(shown.stdout.contains("agent `broken`"), "{shown}");
}

#[test]
fn ctrl_c_during_agent_start() {
    let url = unreachable_address();
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{url}', start: {{ command: [sh, -c, 'exec 3>alive; sleep 1000'] }} }}\n"
    ))
    .suite("a", PAYS);
    let alive = Lifeline::new(&project.workspace, "alive");
    let running = project.command(&["test"]).spawn();
    alive.wait_for_start();
    running.press_ctrl_c();
    running.wait().assert_code(130);
    alive.wait_for_end();
}

/// The agent exits between two cases: the second fails as unreachable and reports the exit.
#[test]
#[cfg(target_os = "linux")]
fn agent_dies_during_run() {
    let script = "exec 3>../alive\nAGENT --port $PORT 3>&- &\nagent=$!\necho $$ > ../pid\nread x < ../die\nkill -9 $agent\nwait\necho 'out of memory' >&2\nexit 9\n";
    let (project, alive, _) = start_script_agent(script);
    assert_eq!(project.workspace.run("mkfifo", &["die"]).code, 0);
    let hook = "echo now > die\nwhile ! grep -q 'State:.Z' /proc/$(cat pid)/status; do :; done\n";
    let suite =
        format!("{PAYS}---\nname: too late\nhooks: [{{ cmd: [sh, kill.sh] }}]\nturns: [{{ user: pay }}]\n");
    let tested = project.file("kill.sh", hook).suite("a", &suite).test(&["--parallel", "1"]);
    assert_eq!(statuses(&tested.report), [("pays", "passed"), ("too late", "failed")], "{}", tested.output);
    let failure = tested.failure("too late");
    assert_eq!(failure["kind"], "unreachable");
    let detail = failure["detail"].as_str().unwrap_or_default();
    assert!(
        detail.contains("has exited (exit status: 9)") && detail.contains("out of memory"),
        "{failure:#}"
    );
    assert_eq!(tested.output.code, 1, "one case has reached it");
    alive.wait_for_end();
}

// Incomplete reading of the output.

#[test]
fn closed_output_pipe_is_handled() {
    let agent = echo_agent();
    let many: Vec<String> =
        (0..50).map(|n| case(&format!("case-{n}")).replace("must_match: case", "must_match: x")).collect();
    let project = Project::with_agent(&agent).suite("a", &many.join("---\n"));
    assert_eq!(project.workspace.run("mkfifo", &["pipe"]).code, 0);
    for (arguments, code) in [
        ("test -o out.json", "1"),
        ("list", "0"),
        ("list --json", "0"),
        ("schema", "0"),
        ("test --dry-run", "0"),
        ("init", "0"),
        ("test --help", "0"),
    ] {
        // A pipe whose reader closes before the first line.
        let script = format!(
            "exec 3<>pipe; exec 1>pipe; exec 3<&-; '{}' {arguments}; echo $? > code",
            crate::common::HOTSEAT
        );
        let output = project.workspace.run("sh", &["-c", &script]);
        assert_eq!(
            (output.stderr.contains("panicked"), project.workspace.read("code").trim()),
            (false, code),
            "{arguments}: {output}"
        );
    }
    let report = report(&project.workspace);
    assert_eq!(report["summary"]["failed"], 50, "the run continues and its report is complete");
}

#[test]
#[cfg(target_os = "linux")]
fn unwritable_output_is_reported() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", &case("hello"));
    for arguments in ["test", "test --json", "list", "schema"] {
        let script = format!("'{}' {arguments} > /dev/full", crate::common::HOTSEAT);
        let output = project.workspace.run("sh", &["-c", &script]);
        assert_eq!(output.code, 3, "{arguments}: {output}");
        assert!(
            output.stderr.contains("cannot write standard output: No space left on device"),
            "{arguments}: {output}"
        );
    }
}

// Time limits.

#[test]
fn unreached_limit_has_no_effect() {
    let agent = FakeAgent::start(echo);
    let suite = "name: a\ntimeout_ms: 600000\nturns: [{ user: a, timeout_ms: 600000, assert: { timing: { max_duration_ms: 600000 } } }]\n";
    let started = std::time::Instant::now();
    Project::with_agent(&agent).suite("a", suite).test(&["--timeout", "10m"]).assert_all_passed();
    assert!(started.elapsed() < Duration::from_secs(20));
    let turn = &agent.requests()[0].json()["messages"][0];
    assert_eq!((&turn["role"], &turn["content"]), (&json!("user"), &json!("a")));
}

#[test]
fn slow_reader_does_not_slow_agent() {
    let agent = FakeAgent::with_run(|run, request| {
        run.text(&format!("{} {}", request.last_user_text(), "long ".repeat(400))).finished()
    });
    // A blocked conversation still has a turn left when its time is over.
    let two_turns = |n: usize| format!("---\nname: case-{n}\nturns: [{{ user: hello }}, {{ user: bye }}]\n");
    let project = Project::with_agent(&agent).suite("a", &(0..400).map(two_turns).collect::<String>());
    let script = format!(
        "('{}' test -v --parallel 4 --timeout 5s -o out.json; echo $? > code) | (sleep 8; cat > seen)",
        crate::common::HOTSEAT
    );
    let output = project.workspace.command("sh", &["-c", &script]).timeout(4 * TEST_TIMEOUT).run();
    let report = report(&project.workspace);
    assert_eq!(report["summary"]["passed"], 400, "{}", report["summary"]);
    assert_eq!(project.workspace.read("code").trim(), "0", "{output}");
    assert!(project.workspace.read("seen").contains("ALL TESTS PASSED"));
}

#[test]
fn ctrl_c_works_when_output_is_not_read() {
    let agent = FakeAgent::with_run(|run, request| {
        run.text(&format!("{} {}", request.last_user_text(), "long ".repeat(400))).finished()
    });
    let project = Project::with_agent(&agent).suite("a", &cases(2_000));
    assert_eq!(project.workspace.run("mkfifo", &["pipe"]).code, 0);
    for arguments in ["test -v", "test --json"] {
        let before = agent.requests().len();
        let script = format!("exec '{}' {arguments} --parallel 4 3<>pipe >pipe", crate::common::HOTSEAT);
        let running = project.workspace.command("sh", &["-c", &script]).timeout(2 * TEST_TIMEOUT).spawn();
        agent.wait_for_requests(before + 40, TEST_TIMEOUT);
        let (ended, id) = (AtomicBool::new(false), running.id().to_string());
        let output = thread::scope(|scope| {
            scope.spawn(|| {
                // Signals that arrive together count once.
                while !ended.load(Ordering::Relaxed) {
                    project.workspace.run("kill", &["-INT", &id]);
                    thread::sleep(Duration::from_millis(100));
                }
            });
            let output = running.wait();
            ended.store(true, Ordering::Relaxed);
            output
        });
        assert_eq!(output.code, 130, "{arguments}");
        assert!(
            agent.requests().len() < before + 2_000,
            "no conversation starts while the output is not read"
        );
    }
}
