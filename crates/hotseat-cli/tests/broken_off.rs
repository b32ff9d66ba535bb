//! Runs that are broken off: what had ended is kept, and what was left can be run later.
#![cfg(unix)]

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use hotseat_testkit::FakeAgent;
use hotseat_testkit::agui::Run;
use serde_json::Value;

use common::{LONG, Project};

/// How many cases a run has.
const CASES: usize = 60;

/// An agent that takes a moment, and answers some questions badly.
fn agent() -> FakeAgent {
    FakeAgent::start(|request| {
        let said = request.last_user_text();
        let number: usize = said.parse().expect("it is told numbers");
        let answer = if number.is_multiple_of(7) { "bad" } else { "good" };
        Run::of(request).started().pause(Duration::from_millis(3 + number as u64 % 5)).text(answer).finished()
    })
}

fn suite() -> String {
    let case = |n: usize| {
        format!("---\nid: c{n}\nturns: [{{ user: '{n}', assert: {{ text: {{ must_match: good }} }} }}]\n")
    };
    (0..CASES).map(case).collect()
}

/// What cases came to, by their ids; none twice.
#[track_caller]
fn verdicts<'a>(results: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for result in results {
        let text = |key: &str| result[key].as_str().expect("a text").to_string();
        let before = all.insert(text("id"), text("status"));
        assert_eq!(before, None, "{} is there twice", result["id"]);
    }
    all
}

fn expected() -> BTreeMap<String, String> {
    let status = |n: usize| if n.is_multiple_of(7) { "failed" } else { "passed" };
    (0..CASES).map(|n| (format!("c{n}"), status(n).to_string())).collect()
}

/// The results among events; a line that was cut off is none.
fn told(events: &str) -> Vec<Value> {
    let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["type"] == "result").collect()
}

/// Kills runs at different moments. What they had told is kept; nothing is there twice; what is left can be run, and the
/// verdicts are those of a run that was never killed.
#[expect(clippy::print_stdout, reason = "what was seen is told by the long test")]
fn kill(times: u64) {
    let agent = agent();
    let (mut in_the_middle, mut kept_more) = (0, 0);
    for round in 0..times {
        let project = Project::of(&agent).suite("a", &suite());
        let args = ["test", "--json", "--parallel", "4", "-o", "report.json"];
        let mut running = project.command(&args).spawn();
        // At some case, and some time behind it.
        running.wait_for_stdout(&format!("\"id\":\"c{}\"", (round * 37) % CASES as u64));
        std::thread::sleep(Duration::from_micros((round * 7_919) % 9_000));
        let id = running.id().to_string();
        project.workspace.run("kill", &["-9", &id]);
        let killed = running.wait();
        let told = verdicts(&told(&killed.stdout));

        let listed = project.hotseat(&["runs", "--json"]);
        let Some(run) = listed.stdout.lines().next() else {
            assert!(told.is_empty(), "{killed}");
            continue;
        };
        let run: Value = serde_json::from_str(run).expect("a run");
        let shown = project.hotseat(&["show", "--json"]);
        assert_eq!(shown.code, 0, "{shown}");
        let results = self::told(&shown.stdout);
        let kept = verdicts(&results);
        for (id, status) in &told {
            assert_eq!(kept.get(id), Some(status), "{id} was told as {status}: {killed}");
        }
        kept_more += usize::from(kept.len() > told.len());
        if run["state"] == "ended" {
            assert_eq!(kept, expected());
            continue;
        }
        in_the_middle += usize::from(!kept.is_empty());
        assert_eq!(run["state"], "killed", "{run}");
        let resumed = project.hotseat(&["resume", "last", "--json"]);
        assert_eq!(resumed.code, 1, "{resumed}");
        assert_eq!(verdicts(&self::told(&resumed.stdout)), expected(), "{resumed}");
        let report: Value = serde_json::from_str(&project.workspace.read("report.json")).expect("a report");
        assert_eq!(verdicts(report["results"].as_array().expect("results")), expected());

        // What had ended was not run again, and it is one run.
        let after: Value =
            serde_json::from_str(&project.hotseat(&["runs", "--json"]).stdout).expect("one run");
        assert_eq!((&after["id"], &after["state"]), (&run["id"], &Value::from("ended")));
        let again = project.hotseat(&["show", "-o", "again.json"]);
        assert_eq!(again.code, 0, "{again}");
        let again = project.workspace.read("again.json").replace("again.json", "report.json");
        assert_eq!(again, project.workspace.read("report.json"));
        for result in &results {
            let same = |other: &&Value| other["id"] == result["id"];
            let all = report["results"].as_array().expect("results");
            let now = all.iter().find(same).expect("it is there");
            assert_eq!(now["started_at"], result["started_at"], "{} was run again", result["id"]);
        }
        let nothing = project.hotseat(&["resume"]);
        assert!(nothing.code == 2 && nothing.stderr.contains("nothing is left"), "{nothing}");
    }
    println!(
        "{times} runs killed, {in_the_middle} of them in the middle; {kept_more} had kept more than they had told"
    );
    assert!(in_the_middle * 3 >= times as usize, "only {in_the_middle} of {times} were killed in the middle");
}

#[test]
fn what_had_ended_survives_a_kill() {
    kill(6);
}

#[test]
#[ignore = "takes minutes: .ci/run calls it"]
fn what_had_ended_survives_two_hundred_kills() {
    kill(200);
}

#[test]
fn a_run_that_was_interrupted_is_finished() {
    let agent = FakeAgent::start(|request| {
        let run = Run::of(request).started();
        match request.last_user_text().as_str() {
            "wait" => run.gate("open").text("good").finished(),
            _ => run.text("good").finished(),
        }
    });
    let case = |id: &str, said: &str| {
        format!("---\nid: {id}\nturns: [{{ user: {said}, assert: {{ text: {{ must_match: good }} }} }}]\n")
    };
    let suite = [case("first", "hello"), case("second", "wait"), case("third", "hello")].concat();
    let project = Project::of(&agent).suite("a", &suite);
    let mut running = project.command(&["test", "--parallel", "1"]).spawn();
    agent.wait_at_gate("open", LONG);
    let busy = project.hotseat(&["resume"]);
    assert!(busy.code == 2 && busy.stderr.contains("goes on in another process"), "{busy}");
    let listed = project.hotseat(&["runs"]);
    assert!(listed.stdout.contains("1 of 3 (running)"), "{listed}");
    running.interrupt();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    let output = running.wait();
    assert_eq!(output.code, 130, "{output}");
    assert!(output.stderr.contains("runs what is left"), "{output}");
    let listed = project.hotseat(&["runs"]);
    assert!(listed.stdout.contains("2 of 3 (interrupted)"), "{listed}");

    let resumed = project.hotseat(&["resume", "-o", "out.json"]);
    assert_eq!(resumed.code, 0, "{resumed}");
    let report: Value = serde_json::from_str(&project.workspace.read("out.json")).expect("a report");
    assert_eq!(
        (&report["summary"]["total"], &report["summary"]["passed"]),
        (&Value::from(3), &Value::from(3))
    );
    let told = agent.requests().iter().filter(|request| request.last_user_text() == "hello").count();
    assert_eq!(told, 2, "the first case is not run again");
}

#[test]
fn a_run_whose_suites_have_changed_is_not_gone_on_with() {
    let agent = agent();
    let project = Project::of(&agent).suite("a", &suite());
    let mut running = project.command(&["test", "--parallel", "1"]).spawn();
    running.wait_for_stdout("PASSED");
    running.interrupt();
    assert_eq!(running.wait().code, 130);
    let project = project.suite("a", &suite().replace("must_match: good", "must_match: bad"));
    let resumed = project.hotseat(&["resume"]);
    assert_eq!(resumed.code, 2, "{resumed}");
    assert!(resumed.stderr.contains("the suites have changed since"), "{resumed}");
}

/// A project whose run was interrupted when one of its cases had ended.
fn interrupted(project: Project) -> Project {
    let mut running = project.command(&["test", "--parallel", "1"]).spawn();
    running.wait_for_stdout("PASSED");
    running.interrupt();
    assert_eq!(running.wait().code, 130);
    project
}

#[test]
fn whatever_judges_the_cases_of_a_run_has_to_be_as_it_was() {
    let agent = agent();
    let target = format!("target:\n  endpoint: {}\n", agent.url());
    let of = |more: &str| Project::with(&format!("{target}{more}"));
    let head = "suite:\n  criteria:\n    good: { match: [{ type: contains, value: good }] }\n---\n";
    let judged = suite()
        .replace("text: { must_match: good }", "XX")
        .replace("{ XX }", "[{ type: satisfy, criteria: good }]");
    let tests: String = (1..CASES).map(|n| format!("it('c{n}', () => ask('{n}'));\n")).collect();
    let tests = format!("import {{ it }} from 'hotseat';\nimport {{ ask }} from './ask.ts';\n{tests}");
    let ask = "import { user, agent, expect } from 'hotseat';\n\
               export const ask = (said: string) => { user.says(said); expect(agent).toContain('o'); };\n";
    for (project, file, from, to) in [
        (of("").suite("a", &format!("{head}{judged}")), "a.test.yaml", "value: good", "value: d"),
        (
            of("  assert: { text: { must_not_match: never } }\n").suite("a", &suite()),
            "hotseat.yaml",
            "never",
            "nothing",
        ),
        (of("").file("a_test.ts", &tests).file("ask.ts", ask), "ask.ts", "toContain('o')", "toContain('d')"),
    ] {
        let project = interrupted(project);
        let text = project.workspace.read(file);
        project.workspace.file(file, &text.replace(from, to));
        let resumed = project.hotseat(&["resume"]);
        assert!(
            resumed.code == 2 && resumed.stderr.contains("the suites have changed since"),
            "{file}: {resumed}"
        );
        project.workspace.file(file, &text);
        let resumed = project.hotseat(&["resume"]);
        assert!(resumed.code <= 1, "{file}: {resumed}");
    }
}

#[test]
fn a_case_that_was_to_be_tried_again_is_left_to_be_run() {
    let agent = FakeAgent::start(|request| Run::of(request).started().gate("open").text("bad").finished());
    let case = "id: a\nretries: 1\nturns: [{ user: hi, assert: { text: { must_match: good } } }]\n";
    let project = Project::of(&agent).suite("a", case);
    let mut running = project.command(&["test"]).spawn();
    agent.wait_at_gate("open", LONG);
    running.interrupt();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    assert_eq!(running.wait().code, 130);
    assert_eq!(project.hotseat(&["show", "last", "--export", "there.hotseat"]).code, 0);
    let there = project.hotseat(&["runs", "--store", "there.hotseat"]);
    assert!(there.stdout.contains("(interrupted)"), "what was written into a file knows it too: {there}");
    let resumed = project.hotseat(&["resume", "-o", "out.json"]);
    assert_eq!(resumed.code, 1, "{resumed}");
    let report: Value = serde_json::from_str(&project.workspace.read("out.json")).expect("a report");
    assert_eq!(report["results"][0]["attempts"].as_array().map(Vec::len), Some(2), "{report:#}");
    assert_eq!(agent.requests().len(), 3);
}
