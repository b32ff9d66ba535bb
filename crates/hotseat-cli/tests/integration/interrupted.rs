//! Interrupted runs: finished cases are kept and the remaining ones can be resumed.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hotseat_testkit::completions::text_reply;
use hotseat_testkit::{FakeAgent, FakeRequest};
use serde_json::{Value, json};

use crate::common::{Project, TEST_TIMEOUT};

/// Number of cases of a run.
const CASE_COUNT: usize = 60;

/// An agent with a short delay that answers some questions incorrectly.
fn agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let said = request.last_user_text();
        let number: usize = said.parse().expect("it is told numbers");
        let answer = if number.is_multiple_of(7) { "bad" } else { "good" };
        run.pause(Duration::from_millis(3 + number as u64 % 5)).text(answer).finished()
    })
}

fn suite() -> String {
    let case = |n: usize| {
        format!("---\nid: c{n}\nturns: [{{ user: '{n}', assert: {{ text: {{ must_match: good }} }} }}]\n")
    };
    (0..CASE_COUNT).map(case).collect()
}

/// Status of each case by id. Panics on duplicates.
#[track_caller]
fn verdicts<'a>(results: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for result in results {
        let text = |key: &str| result[key].as_str().expect("a text").to_string();
        let before = all.insert(text("id"), text("status"));
        assert_eq!(before, None, "{} is not unique", result["id"]);
    }
    all
}

fn expected_verdicts() -> BTreeMap<String, String> {
    let status = |n: usize| if n.is_multiple_of(7) { "failed" } else { "passed" };
    (0..CASE_COUNT).map(|n| (format!("c{n}"), status(n).to_string())).collect()
}

/// Result events; a truncated line is ignored.
fn result_events(events: &str) -> Vec<Value> {
    let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["type"] == "result").collect()
}

/// Kills runs at different moments. Reported results are kept without duplicates, the rest can be resumed,
/// and the verdicts equal those of an uninterrupted run.
#[expect(clippy::print_stdout, reason = "what was seen is told by the long test")]
fn assert_runs_survive_kills(times: u64) {
    let agent = agent();
    let (mut in_the_middle, mut kept_more) = (0, 0);
    for round in 0..times {
        let project = Project::with_agent(&agent).suite("a", &suite());
        let args = ["test", "--json", "--parallel", "4", "-o", "report.json"];
        let mut running = project.command(&args).spawn();
        // Kill after a varying number of cases plus a delay.
        running.wait_for_stdout(&format!("\"id\":\"c{}\"", (round * 37) % CASE_COUNT as u64));
        std::thread::sleep(Duration::from_micros((round * 7_919) % 9_000));
        let id = running.id().to_string();
        project.workspace.run("kill", &["-9", &id]);
        let killed = running.wait();
        let told = verdicts(&result_events(&killed.stdout));

        let listed = project.hotseat(&["runs", "--json"]);
        let Some(run) = listed.stdout.lines().next() else {
            assert!(told.is_empty(), "{killed}");
            continue;
        };
        let run: Value = serde_json::from_str(run).expect("a run");
        let shown = project.hotseat(&["show", "--json"]);
        assert_eq!(shown.code, 0, "{shown}");
        let results = self::result_events(&shown.stdout);
        let kept = verdicts(&results);
        for (id, status) in &told {
            assert_eq!(kept.get(id), Some(status), "{id} was told as {status}: {killed}");
        }
        kept_more += usize::from(kept.len() > told.len());
        if run["state"] == "ended" {
            assert_eq!(kept, expected_verdicts());
            continue;
        }
        in_the_middle += usize::from(!kept.is_empty());
        assert_eq!(run["state"], "killed", "{run}");
        let resumed = project.hotseat(&["resume", "last", "--json"]);
        assert_eq!(resumed.code, 1, "{resumed}");
        assert_eq!(verdicts(&self::result_events(&resumed.stdout)), expected_verdicts(), "{resumed}");
        let report = project.workspace.read_json("report.json");
        assert_eq!(verdicts(report["results"].as_array().expect("results")), expected_verdicts());

        // Finished cases were not repeated, and the store contains one run.
        let after: Value =
            serde_json::from_str(&project.hotseat(&["runs", "--json"]).stdout).expect("one run");
        assert_eq!((&after["id"], &after["state"]), (&run["id"], &Value::from("ended")));
        project.hotseat(&["show", "-o", "again.json"]).assert_code(0);
        let again = project.workspace.read("again.json").replace("again.json", "report.json");
        assert_eq!(again, project.workspace.read("report.json"));
        for result in &results {
            let same = |other: &&Value| other["id"] == result["id"];
            let all = report["results"].as_array().expect("results");
            let now = all.iter().find(same).expect("it is there");
            assert_eq!(now["started_at"], result["started_at"], "{} was run again", result["id"]);
        }
        project.hotseat(&["resume"]).assert_stderr(2, &["is complete: all its cases have ended"]);
    }
    println!(
        "{times} runs killed, {in_the_middle} of them in the middle; {kept_more} had kept more than they had told"
    );
    assert!(in_the_middle * 3 >= times as usize, "only {in_the_middle} of {times} were killed in the middle");
}

#[test]
fn killed_run_keeps_finished_cases() {
    assert_runs_survive_kills(6);
}

#[test]
#[ignore = "takes minutes: .ci/run calls it"]
fn finished_cases_survive_two_hundred_kills() {
    assert_runs_survive_kills(200);
}

#[test]
fn interrupted_run_resumes() {
    let agent = FakeAgent::with_run(|run, request| match request.last_user_text().as_str() {
        "wait" => run.gate("open").text("good").finished(),
        _ => run.text("good").finished(),
    });
    let case = |id: &str, said: &str| {
        format!("---\nid: {id}\nturns: [{{ user: {said}, assert: {{ text: {{ must_match: good }} }} }}]\n")
    };
    let suite = [case("first", "hello"), case("second", "wait"), case("third", "hello")].concat();
    let project = Project::with_agent(&agent).suite("a", &suite);
    let mut running = project.command(&["test", "--parallel", "1"]).spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    // The store is written behind the run.
    let begun = Instant::now();
    loop {
        let listed = project.hotseat(&["runs"]);
        if listed.stdout.contains("1 of 3 (running)") {
            break;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "{listed}");
    }
    project.hotseat(&["resume"]).assert_stderr(2, &["is still running in another process"]);
    running.interrupt();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    running.wait().assert_stderr(130, &["runs the remaining cases"]);
    let listed = project.hotseat(&["runs"]);
    assert!(listed.stdout.contains("2 of 3 (interrupted)"), "{listed}");

    project.hotseat(&["resume", "-o", "out.json"]).assert_code(0);
    let report = project.workspace.read_json("out.json");
    assert_eq!(
        (&report["summary"]["total"], &report["summary"]["passed"]),
        (&Value::from(3), &Value::from(3))
    );
    let told = agent.requests().iter().filter(|request| request.last_user_text() == "hello").count();
    assert_eq!(told, 2, "the first case is not run again");
}

/// The reports are complete by then; the caller, such as a loop of a shell, learns of the signal.
#[test]
fn a_signal_during_the_last_hook_is_an_interruption() {
    let agent = FakeAgent::with_text("good");
    let hook = "hooks: { last: { cmd: [sh, -c, 'until sleep 1; [ -e done ]; do :; done'] } }\n";
    let project = Project::with_config(&format!("target: {{ endpoint: '{agent}' }}\n{hook}"))
        .suite("a", "id: first\nturns: [{ user: hello }]\n");
    let mut running = project.command(&["test", "--after", "last", "-o", "out.json"]).spawn();
    running.wait_for_stdout("TESTS PASSED");
    running.interrupt();
    project.workspace.file("done", "");
    let output = running.wait();
    output.assert_code(130);
    assert!(!output.stderr.contains("hotseat resume"), "{output}");
    assert_eq!(project.workspace.read_json("out.json")["summary"]["passed"], 1);
    assert!(!project.hotseat(&["runs"]).stdout.contains("interrupted"));
}

#[test]
fn changed_suites_cannot_be_resumed() {
    let agent = agent();
    let others: Vec<String> =
        ["b", "c"].iter().map(|name| format!("id: {name}\nturns: [{{ user: hi }}]\n")).collect();
    let project =
        Project::with_agent(&agent).suite("a", &suite()).suite("b", &others[0]).suite("c", &others[1]);
    let project = interrupted_project(project);
    let refused = |words: &str| {
        project.hotseat(&["resume"]).assert_stderr(2, &[words]);
    };
    project.workspace.file("a.test.yaml", &suite().replace("must_match: good", "must_match: bad"));
    refused("the suite a.test.yaml has changed since run ");
    project.workspace.file("c.test.yaml", "id: other\nturns: [{ user: hi }]\n");
    refused("the suites a.test.yaml, c.test.yaml have changed since run ");
    project.workspace.file("a.test.yaml", &suite());
    project.workspace.file("c.test.yaml", &others[1]);
    project.workspace.file("d.test.yaml", "id: d\nturns: [{ user: hi }]\n");
    refused("the suite d.test.yaml has changed since run ");
}

/// A project whose run was interrupted after its first finished case.
fn interrupted_project(project: Project) -> Project {
    let mut running = project.command(&["test", "--parallel", "1"]).spawn();
    running.wait_for_stdout("PASSED");
    running.interrupt();
    assert_eq!(running.wait().code, 130);
    project
}

#[test]
fn changed_judging_configuration_cannot_be_resumed() {
    let agent = agent();
    let target = format!("target:\n  endpoint: {agent}\n");
    let of = |more: &str| Project::with_config(&format!("{target}{more}"));
    let head = "suite:\n  criteria:\n    good: { match: [{ type: contains, value: good }] }\n---\n";
    let judged = suite()
        .replace("text: { must_match: good }", "XX")
        .replace("{ XX }", "[{ type: satisfy, criteria: good }]");
    let tests: String = (1..CASE_COUNT).map(|n| format!("it('c{n}', () => ask('{n}'));\n")).collect();
    let tests = format!("import {{ it }} from 'hotseat';\nimport {{ ask }} from './ask.ts';\n{tests}");
    let ask = "import { user, agent, expect } from 'hotseat';\n\
               export const ask = (said: string) => { user.says(said); expect(agent).toContain('o'); };\n";
    let scripted = judged.replace("{ type: satisfy, criteria: good }", "{ type: script, use: scripts:f }");
    let function =
        "import { word } from './word.ts';\nexport default (said: string) => said.includes(word);\n";
    let judge = FakeAgent::start(|_: &FakeRequest| {
        let answer = json!({"reasoning": "It is.", "satisfied": true});
        text_reply(&answer.to_string())
    });
    let connector = format!("{{ type: openai, base_url: '{judge}v1', model: small, stream: false }}");
    let judge =
        format!("connectors: {{ j: {connector} }}\njudge: connectors:j\ncriteria: {{ good: Is it good? }}\n");
    for (project, file, from, to) in [
        (of("").suite("a", &format!("{head}{judged}")), "a.test.yaml", "value: good", "value: d"),
        (
            of("  assert: { text: { must_not_match: never } }\n").suite("a", &suite()),
            "hotseat.yaml",
            "never",
            "nothing",
        ),
        (
            of("")
                .suite("a", &scripted)
                .file("f.ts", function)
                .file("word.ts", "export const word = 'good';\n"),
            "word.ts",
            "'good'",
            "'bad'",
        ),
        (of(&judge).suite("a", &judged), "hotseat.yaml", "model: small", "model: large"),
        (of("").file("a_test.ts", &tests).file("ask.ts", ask), "ask.ts", "toContain('o')", "toContain('d')"),
    ] {
        let project = interrupted_project(project);
        let text = project.workspace.read(file);
        project.workspace.file(file, &text.replace(from, to));
        let resumed = project.hotseat(&["resume"]);
        let suite = if file == "ask.ts" { "a_test.ts" } else { "a.test.yaml" };
        let words = format!("the suite {suite} has changed since");
        assert!(resumed.code == 2 && resumed.stderr.contains(&words), "{file}: {resumed}");
        project.workspace.file(file, &text);
        let resumed = project.hotseat(&["resume"]);
        assert!(resumed.code <= 1, "{file}: {resumed}");
    }
}

#[test]
fn pending_retry_is_resumed() {
    let agent = FakeAgent::with_run(|run, _| run.gate("open").text("bad").finished());
    let case = "id: a\nretries: 1\nturns: [{ user: hi, assert: { text: { must_match: good } } }]\n";
    let project = Project::with_agent(&agent).suite("a", case);
    let mut running = project.command(&["test", "-o", "junit.xml"]).spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    running.interrupt();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    assert_eq!(running.wait().code, 130);
    // Servers that read nothing else must not take it for a run without failures.
    let xml = project.workspace.read("junit.xml");
    quick_junit::Report::deserialize_from_str(&xml).expect("JUnit");
    assert!(xml.contains(r#"<error message="the run was interrupted" type="run_error"/>"#), "{xml}");
    assert!(xml.contains(r#"<property name="failed_attempt_1" value="failed: "#), "{xml}");
    assert!(xml.contains(r#"tests="2" skipped="1" failures="0" errors="1""#), "{xml}");
    assert_eq!(project.hotseat(&["show", "last", "-o", "stopped.json"]).code, 0);
    let stopped = project.workspace.read_json("stopped.json");
    assert_eq!(stopped["results"][0]["status"], "skipped", "the retry may have passed: {stopped:#}");
    let reason = &stopped["results"][0]["skip_reason"];
    assert_eq!(reason, "retry 1 not run: the run was interrupted", "{stopped:#}");
    assert_eq!(project.hotseat(&["show", "last", "--export", "there.hotseat"]).code, 0);
    let there = project.hotseat(&["runs", "--store", "there.hotseat"]);
    assert!(there.stdout.contains("(interrupted)"), "what was written into a file knows it too: {there}");
    project.hotseat(&["resume", "-o", "out.json"]).assert_code(1);
    let report = project.workspace.read_json("out.json");
    assert_eq!(report["results"][0]["attempts"].as_array().map(Vec::len), Some(2), "{report:#}");
    assert_eq!(agent.requests().len(), 2, "the first attempt is kept");
}

/// What an agent did before the interruption counts, whatever it does later.
#[test]
fn ended_attempts_of_an_interrupted_case_count() {
    for (options, status, runs, requests) in [
        (&["--runs", "3"][..], "failed", 3, 3),
        (&["--runs", "3", "--min-pass-rate", "0.6"], "passed", 3, 3),
        (&["--retries", "2"], "passed", 2, 2),
    ] {
        let asked = AtomicUsize::new(0);
        let agent = FakeAgent::with_run(move |run, _| match asked.fetch_add(1, Ordering::Relaxed) {
            0 => run.text("bad").finished(),
            1 => run.gate("open").text("good").finished(),
            _ => run.text("good").finished(),
        });
        let case = "id: a\nturns: [{ user: hi, assert: { text: { must_match: good } } }]\n";
        let project = Project::with_agent(&agent).suite("a", case);
        let arguments = [&["test", "--parallel", "1"][..], options].concat();
        let running = project.command(&arguments).spawn();
        // The first attempt has ended, and its events are saved while the second one runs.
        agent.wait_at_gate("open", TEST_TIMEOUT);
        let saved = || project.hotseat(&["show", "last", "--json"]).stdout.contains("test_result");
        let until = Instant::now() + TEST_TIMEOUT;
        while !saved() {
            assert!(Instant::now() < until, "the first attempt is not saved");
        }
        project.workspace.run("kill", &["-9", &running.id().to_string()]);
        running.wait();
        agent.release("open");
        assert_eq!(project.hotseat(&["show", "last", "-o", "killed.json"]).code, 0);
        let killed = project.workspace.read_json("killed.json");
        assert_eq!(killed["summary"]["interrupted"], true, "{killed:#}");
        let before = agent.requests().len();
        let resumed = project.hotseat(&["resume", "-o", "out.json"]);
        let report = project.workspace.read_json("out.json");
        let result = &report["results"][0];
        assert_eq!(result["status"], status, "{options:?}: {resumed}");
        let made = result["run_details"].as_array().or(result["attempts"].as_array()).map_or(0, Vec::len);
        assert_eq!((made, agent.requests().len() - before), (runs, requests - 1), "{options:?}: {report:#}");
        let first = &result["run_details"].as_array().or(result["attempts"].as_array()).expect("attempts")[0];
        assert_eq!(first["status"], "failed", "{options:?}: {report:#}");
    }
}

#[test]
fn hint_after_resume_is_a_command_that_works() {
    let agent = FakeAgent::with_run(|run, request| match request.last_user_text().as_str() {
        "wait" => run.gate("open").text("good").finished(),
        _ => run.text("bad").finished(),
    });
    let case = |id: &str| {
        format!("---\nid: {id}\nturns: [{{ user: '{id}', assert: {{ text: {{ must_match: good }} }} }}]\n")
    };
    let suite = [case("wrong"), case("wait"), case("wrong too")].concat();
    let project = Project::with_agent(&agent).suite("a", &suite);
    let mut running = project.command(&["test", "--parallel", "1"]).spawn();
    // What is printed is saved.
    running.wait_for_stdout("got: \"bad\"");
    agent.wait_at_gate("open", TEST_TIMEOUT);
    project.workspace.run("kill", &["-9", &running.id().to_string()]);
    running.wait();
    agent.release("open");
    let resumed = project.hotseat(&["resume", "last"]);
    let hint = "run only the failed cases: `hotseat test --parallel 1 --lf`";
    let flat = resumed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(hint), "{resumed}");
    let failed = project.hotseat(&["test", "--parallel", "1", "--lf", "--json"]);
    let summary: Value =
        serde_json::from_str(failed.stdout.lines().last().expect("a summary")).expect("JSON");
    assert_eq!(summary["failed_ids"], serde_json::json!(["wrong", "wrong too"]), "{failed}");
}
