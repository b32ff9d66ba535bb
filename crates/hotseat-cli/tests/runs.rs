//! Cases that are run several times, and cases that are tried again.
#![cfg(unix)]

mod common;

use hotseat_testkit::FakeAgent;
use hotseat_testkit::agui::Run;
use insta::assert_snapshot;
use serde_json::{Value, json};

use common::letters::{case, cases, lettered, project, spoiled, with};
use common::{LONG, Project, Tested, echo_agent};

/// Members of the result of a case, as one object.
#[track_caller]
fn members(tested: &Tested, case: &str, keys: &[&str]) -> Value {
    let result = tested.case(case);
    Value::Object(keys.iter().map(|key| (key.to_string(), result[*key].clone())).collect())
}

fn told(agent: &FakeAgent, letters: &str) -> usize {
    agent.requests().iter().filter(|request| request.last_user_text() == letters).count()
}

// Runs.

#[test]
fn each_case_is_run_so_many_times_in_sessions_of_its_own() {
    let agent = lettered();
    let suite = with("pppp", "hooks: [{ cmd: [sh, -c, 'echo x >> ran'] }]\n") + "---\n" + &case("ppppp");
    let tested = project(&agent, &suite).test(&["--runs", "4"]);
    tested.all_passed();
    let threads: std::collections::BTreeSet<String> =
        agent.requests().iter().map(|request| request.json()["threadId"].to_string()).collect();
    assert_eq!((agent.requests().len(), threads.len()), (8, 8), "a fresh conversation each time");
    assert_eq!(
        members(
            &tested,
            "pppp",
            &["runs", "passed", "failed", "pass_rate", "stable", "stability_class", "consistency"]
        ),
        json!({"runs": 4, "passed": 4, "failed": 0, "pass_rate": 100.0, "stable": true, "stability_class": "stable", "consistency": 1.0}),
    );
}

#[test]
fn hooks_run_each_time() {
    let agent = lettered();
    let project = project(&agent, &with("ppp", "hooks: [{ cmd: [sh, -c, 'echo x >> ran'] }]\n"));
    project.test(&["--runs", "3"]).all_passed();
    assert_eq!(project.workspace.read("ran"), "x\nx\nx\n");
}

#[test]
fn a_conversation_whose_id_is_written_does_not_go_on_in_the_next_run() {
    let agent = lettered();
    project(&agent, &with("ppp", "threadId: mine\n")).test(&["--runs", "3", "--parallel", "1"]).all_passed();
    let threads: Vec<Value> =
        agent.requests().iter().map(|request| request.json()["threadId"].clone()).collect();
    assert_eq!(threads, ["mine", "mine-2", "mine-3"]);
}

#[test]
fn stability_has_the_classes_of_the_documents() {
    let agent = lettered();
    let all = [
        ("pppppppppp", 100.0, "stable"),
        ("pppppppppf", 90.0, "mostly_stable"),
        ("ppppfppppf", 80.0, "mostly_stable"),
        ("pppfppfppf", 70.0, "unstable"),
        ("pfpfpfpfpf", 50.0, "unstable"),
        ("pfffpfpfpf", 40.0, "highly_unstable"),
        ("ffffffffff", 0.0, "highly_unstable"),
    ];
    let suite = cases(&all.map(|(letters, ..)| letters));
    let tested = project(&agent, &suite).test(&["--runs", "10"]);
    for (letters, rate, class) in all {
        let stable = rate == 100.0;
        assert_eq!(
            members(&tested, letters, &["pass_rate", "stable", "stability_class"]),
            json!({"pass_rate": rate, "stable": stable, "stability_class": class}),
        );
        assert_eq!(tested.case(letters)["status"], if stable { "passed" } else { "failed" });
    }
    let summary = &tested.report["summary"];
    let keys =
        ["runs_per_case", "total_runs", "passed_runs", "overall_pass_rate", "stable_cases", "unstable_cases"];
    let found: Vec<&Value> = keys.iter().map(|key| &summary[*key]).collect();
    assert_eq!(json!(found), json!([10, 70, 43, 61.4, 1, 6]));
    assert_eq!(tested.output.code, 1);
}

#[test]
fn consistency_is_agreement_of_answers_and_not_the_pass_rate() {
    let agent = lettered();
    let all = [("ppp", 1.0), ("ppo", 0.333), ("jkj", 1.0), ("fff", 1.0), ("pof", 0.0), ("ppu", 1.0)];
    let tested = project(&agent, &cases(&all.map(|(letters, _)| letters))).test(&["--runs", "3"]);
    for (letters, consistency) in all {
        assert_eq!(tested.case(letters)["consistency"], consistency, "{letters}\n{}", tested.output);
    }
    let alone = lettered();
    let tested = project(&alone, &cases(&["pu"])).test(&["--runs", "2"]);
    assert_eq!(tested.case("pu")["consistency"], Value::Null, "one answer agrees with none");
}

#[test]
fn durations_are_those_of_the_runs() {
    let agent = lettered();
    let tested = project(&agent, &case("ppf")).test(&["--runs", "3"]);
    let result = tested.case("ppf");
    let took: Vec<f64> = result["run_details"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| run["duration_ms"].as_f64().expect("a duration"))
        .collect();
    let average = took.iter().sum::<f64>() / 3.0;
    let deviation = (took.iter().map(|took| (took - average).powi(2)).sum::<f64>() / 3.0).sqrt();
    let near = |key: &str, expected: f64| {
        let found = result[key].as_f64().expect("a number");
        assert!((found - expected).abs() < 0.01, "{key} is {found} and not {expected}");
    };
    near("avg_duration_ms", average);
    near("min_duration_ms", took.iter().copied().fold(f64::MAX, f64::min));
    near("max_duration_ms", took.iter().copied().fold(0.0, f64::max));
    near("std_deviation_ms", deviation);
}

#[test]
fn every_run_is_in_the_report_with_all_that_happened() {
    let agent = lettered();
    let tested = project(&agent, &case("pfeo")).test(&["--runs", "4", "--parallel", "1"]);
    let result = tested.case("pfeo");
    let runs = result["run_details"].as_array().expect("runs");
    let of = |key: &str| runs.iter().map(|run| run[key].clone()).collect::<Value>();
    assert_eq!(of("run"), json!([1, 2, 3, 4]));
    assert_eq!(of("status"), json!(["passed", "failed", "failed", "passed"]));
    assert_eq!(of("output"), json!(["good", "bad", null, "good, too"]));
    assert_eq!(of("error_kind"), json!([null, "assertion", "agent_error", null]));
    assert_eq!(runs[2]["error"], "agent error: no");
    assert_eq!(runs[1]["turns"][0]["assertions"][0]["passed"], false);
    // What stands for the case is the first run that failed.
    assert_eq!(
        members(&tested, "pfeo", &["status", "output", "error_kind"]),
        json!({"status": "failed", "output": "bad", "error_kind": "assertion"})
    );
    let error = result["error"].as_str().expect("an error");
    assert!(error.starts_with("2 of 4 runs passed; run 2: "), "{error}");
}

#[test]
fn runs_are_made_side_by_side_with_everything_else() {
    let agent = lettered();
    let project = project(&agent, &cases(&["ggg", "gggg"]));
    let running = project.command(&["test", "--runs", "3", "--parallel", "5"]).spawn();
    agent.wait_for_requests(5, LONG);
    agent.release("open");
    let output = running.wait();
    assert_eq!((output.code, agent.requests().len(), agent.most_in_flight()), (0, 6, 5), "{output}");
}

#[test]
fn a_case_begins_when_no_run_of_another_waits() {
    let agent = lettered();
    project(&agent, &cases(&["pp", "ppp", "pppp"])).test(&["--runs", "2", "--parallel", "1"]).all_passed();
    let order: Vec<String> = agent.requests().iter().map(|request| request.last_user_text()).collect();
    assert_eq!(order, ["pp", "pp", "ppp", "ppp", "pppp", "pppp"]);
}

#[test]
fn less_than_all_runs_can_be_enough() {
    for (rate, enough) in [("0.8", true), ("80%", true), ("0.81", false), ("1", false)] {
        let agent = lettered();
        let tested = project(&agent, &case("ppfpp")).test(&["--runs", "5", "--min-pass-rate", rate]);
        let (status, code) = if enough { ("passed", 0) } else { ("failed", 1) };
        assert_eq!(
            (&tested.case("ppfpp")["status"], tested.output.code),
            (&json!(status), code),
            "{rate}: {}",
            tested.output
        );
        assert_eq!(tested.case("ppfpp")["stable"], false);
        assert_eq!(tested.report["summary"]["unstable_cases"], 1);
        if !enough {
            continue;
        }
        assert_eq!(tested.case("ppfpp")["output"], "good", "a run that passed stands for it");
    }
}

#[test]
fn the_project_says_how_many_runs_and_the_command_line_says_better() {
    let agent = lettered();
    let text = format!("target: {{ endpoint: '{}' }}\nruns: 2\nmin_pass_rate: 0.5\n", agent.url());
    let project = Project::with(&text).suite("a", &case("pfppf"));
    let tested = project.test(&[]);
    assert_eq!((tested.output.code, told(&agent, "pfppf")), (0, 2), "{}", tested.output);
    let tested = project.test(&["--runs", "3", "--min-pass-rate", "100%"]);
    assert_eq!((tested.output.code, told(&agent, "pfppf")), (1, 5), "{}", tested.output);
}

#[test]
fn a_case_that_is_left_out_is_left_out_once() {
    let agent = lettered();
    let suite = with("a", "skip: true\n") + "---\n" + &case("pp");
    let tested = project(&agent, &suite).test(&["--runs", "2"]);
    assert_eq!((tested.output.code, tested.count("skipped"), tested.count("total_runs")), (0, 1, 2));
    assert_eq!(tested.case("a")["run_details"], Value::Null);
}

#[test]
fn runs_that_say_nothing_about_the_agent_are_made_again() {
    let agent = lettered();
    // In its second run a case talks to an address where nobody listens.
    let suite =
        [with("ppp", &spoiled(&agent, "one", "2")), with("pfp", &spoiled(&agent, "two", "2"))].join("---\n");
    let project = Project::with("target: { endpoint: '${url}' }\n").suite("a", &suite);
    let tested = project.test(&["--runs", "3", "--parallel", "1"]);
    let keys = ["runs", "passed", "failed", "invalid", "redrawn", "pass_rate", "status", "error_kind"];
    assert_eq!(
        members(&tested, "ppp", &keys),
        json!({"runs": 3, "passed": 3, "failed": 0, "invalid": 1, "redrawn": 1, "pass_rate": 100.0, "status": "passed", "error_kind": null}),
        "{}",
        tested.output
    );
    assert_eq!(
        members(&tested, "pfp", &keys),
        json!({"runs": 3, "passed": 2, "failed": 1, "invalid": 1, "redrawn": 1, "pass_rate": 66.7, "status": "failed", "error_kind": "assertion"})
    );
    let details = tested.case("ppp")["run_details"].as_array().expect("runs");
    let of = |key: &str| details.iter().map(|run| run[key].clone()).collect::<Value>();
    assert_eq!((of("run"), of("invalid")), (json!([1, 2, 3, 4]), json!([null, true, null, null])));
    assert_eq!(of("error_kind"), json!([null, "unreachable", null, null]));
    assert_eq!((tested.count("invalid_runs"), tested.count("redrawn_runs"), tested.output.code), (2, 2, 1));
    assert_eq!((tested.count("total_runs"), tested.count("passed_runs")), (6, 5));
    let line = tested.output.stdout.lines().find(|shown| shown.starts_with("► [ppp] ")).expect("its line");
    assert!(line.starts_with("► [ppp] 100% (3/3) Stable avg:") && line.ends_with(", 1 made again"), "{line}");
    assert!(tested.output.stdout.contains("2 (not the agent's fault), 2 made again"), "{}", tested.output);
}

#[test]
fn a_case_does_not_pass_on_runs_that_are_missing() {
    let agent = lettered();
    let suite = with("pp", &spoiled(&agent, "one", "2|3|4|5"));
    let project = Project::with("target: { endpoint: '${url}' }\n").suite("a", &suite);
    let tested = project.test(&["--runs", "2", "--parallel", "1", "--redraws", "2"]);
    assert_eq!(
        members(&tested, "pp", &["runs", "passed", "failed", "invalid", "redrawn", "pass_rate", "status"]),
        json!({"runs": 1, "passed": 1, "failed": 0, "invalid": 3, "redrawn": 2, "pass_rate": 100.0, "status": "failed"}),
    );
    let error = tested.case("pp")["error"].as_str().expect("an error");
    assert!(error.starts_with("1 of 2 runs passed, 1 says nothing about the agent; run 2: "), "{error}");
    assert_eq!(tested.failure("pp")["fault"], "infrastructure");

    // Where enough passed without it, that is enough.
    let agent = lettered();
    let suite = with("pp", &spoiled(&agent, "one", "2|3|4|5"));
    let project = Project::with("target: { endpoint: '${url}' }\nredraws: 0\n").suite("a", &suite);
    let tested = project.test(&["--runs", "2", "--parallel", "1", "--min-pass-rate", "50%"]);
    assert_eq!((&tested.case("pp")["status"], &tested.case("pp")["redrawn"]), (&json!("passed"), &json!(0)));
}

#[test]
fn runs_in_which_nobody_answers_the_agent_are_not_passed() {
    let agent = lettered();
    let waits = |letters: &str| with(letters, "type: multi_turn\n");
    let tested =
        project(&agent, &[waits("www"), waits("pwp"), waits("pwf")].join("---\n")).test(&["--runs", "3"]);
    let status = |case: &str| members(&tested, case, &["status", "error_kind", "skipped"]);
    assert_eq!(status("www"), json!({"status": "skipped", "error_kind": null, "skipped": 3}));
    assert_eq!(status("pwp"), json!({"status": "failed", "error_kind": "no_input", "skipped": 1}));
    assert_eq!(status("pwf"), json!({"status": "failed", "error_kind": "assertion", "skipped": 1}));
}

#[test]
fn fail_fast_stops_after_the_first_case_that_is_not_stable() {
    let agent = lettered();
    let project = project(&agent, &cases(&["ppp", "pfp", "pppp"]));
    let tested = project.test(&["--runs", "3", "--parallel", "1", "--fail-fast"]);
    let statuses = ["ppp", "pfp", "pppp"].map(|case| tested.case(case)["status"].clone());
    assert_eq!(statuses, ["passed", "failed", "skipped"]);
    assert_eq!(agent.requests().len(), 6, "what has begun comes to its end");
    assert_eq!(tested.case("pppp")["skip_reason"], "not run: `pfp` failed (--fail-fast)");
}

#[test]
fn no_case_begins_once_another_can_no_longer_be_stable() {
    let agent = lettered();
    let project = project(&agent, &cases(&["fg", "pp"]));
    let mut running =
        project.command(&["test", "--json", "--runs", "2", "--parallel", "2", "--fail-fast"]).spawn();
    // One run has failed and leaves room for another case, while the other run goes on.
    running.wait_for_stdout(r#""type":"test_result""#);
    agent.release("open");
    let output = running.wait();
    assert_eq!((output.code, told(&agent, "fg"), told(&agent, "pp")), (1, 2, 0), "{output}");
}

#[test]
fn ctrl_c_ends_a_case_after_the_runs_that_have_begun() {
    let agent = lettered();
    let project = project(&agent, &cases(&["pggg", "fggg", "pppp"]));
    let args =
        ["test", "-o", "out.json", "-o", "out.jsonl", "-o", "out.xml", "--runs", "4", "--parallel", "5"];
    let mut running = project.command(&args).spawn();
    // All of the first case, and of the second what there is room for.
    agent.wait_for_requests(7, LONG);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    let output = running.wait();
    assert_eq!(output.code, 130, "{output}");
    let report: Value = serde_json::from_str(&project.workspace.read("out.json")).expect("a whole report");
    let of = |index: usize| {
        let keys = ["id", "status", "runs", "passed", "not_run", "stable", "stability_class"];
        keys.iter().map(|key| report["results"][index][*key].clone()).collect::<Value>()
    };
    assert_eq!(of(0), json!(["pggg", "passed", 4, 4, 0, true, "stable"]), "{output}");
    assert_eq!(of(1), json!(["fggg", "failed", 3, 2, 1, false, null]), "{output}");
    assert_eq!(of(2), json!(["pppp", "skipped", null, null, null, null, null]), "{output}");
    let lines = project.workspace.read("out.jsonl");
    assert_eq!(lines.lines().count(), 5, "{lines}");
    quick_junit::Report::deserialize_from_str(&project.workspace.read("out.xml")).expect("JUnit");
}

#[test]
fn a_case_whose_runs_were_cut_short_has_not_passed() {
    let agent = lettered();
    let project = project(&agent, &case("pgg"));
    let mut running = project.command(&["test", "-o", "out.json", "--runs", "3", "--parallel", "1"]).spawn();
    agent.wait_for_requests(2, LONG);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    let output = running.wait();
    let report: Value = serde_json::from_str(&project.workspace.read("out.json")).expect("a whole report");
    let result = &report["results"][0];
    assert_eq!((&result["status"], &result["stable"]), (&json!("skipped"), &Value::Null), "{output}");
    let reason = "2 of 3 runs passed, and only 2 were begun: the run was interrupted";
    assert_eq!((&result["skip_reason"], output.code), (&json!(reason), 130), "{output}");
    assert!(output.stdout.contains("► [pgg] 100% (2/2) Cut Short avg:"), "{output}");
}

#[test]
fn what_makes_no_sense_together_is_refused() {
    let agent = echo_agent();
    let project = project(&agent, &case("p"));
    let said = |args: &[&str]| {
        let output = project.hotseat(&[&["test"], args].concat());
        assert_eq!(output.code, 2, "{output}");
        output.stderr
    };
    assert_snapshot!(said(&["--min-pass-rate", "0.5"]), @"
    error: --min-pass-rate is a part of the runs of a case, which is run once
     |
     = help: `--runs N` runs each case several times
    ");
    assert_snapshot!(said(&["--runs", "3", "--retries", "1"]), @"
    error: --retries and 3 runs of each case: one of the two
     |
     = help: runs are never tried again, for that would hide how steady a case is; `--runs 1` runs each once
    ");
    for args in [
        ["--runs", "0"],
        ["--runs", "-1"],
        ["--runs", "x"],
        ["--runs", "10001"],
        ["--min-pass-rate", "0"],
        ["--min-pass-rate", "1.1"],
        ["--min-pass-rate", "101%"],
        ["--min-pass-rate", "NaN"],
        ["--min-pass-rate", "%"],
        ["--retries", "101"],
        ["--retries", "-1"],
    ] {
        said(&args);
    }
    let wrong = |text: &str| {
        let text = format!("target: {{ endpoint: '{}' }}\n{text}\n", agent.url());
        let output = Project::with(&text).suite("a", &case("p")).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{output}");
        output.stderr
    };
    assert_snapshot!(wrong("min_pass_rate: 80"), @"
    error: `min_pass_rate` is a part of all runs: more than 0, and at most 1
     --> hotseat.yaml:2:16
      |
    2 | min_pass_rate: 80
      |                ^^
      |
      = help: 0.8: four of five runs have to pass
    ");
    wrong("runs: 0");
    wrong("retries: -1");
    assert_eq!(agent.requests().len(), 0);
}

// Retries.

#[test]
fn a_case_that_passes_when_it_is_tried_again_is_flaky() {
    let agent = lettered();
    let suite =
        [with("ffp", "retries: 2\n"), case("p"), with("efff", "retries: 2\n"), case("f")].join("---\n");
    let tested = project(&agent, &suite).test(&["--parallel", "1"]);
    let of = |case: &str| members(&tested, case, &["status", "flaky", "output"]);
    assert_eq!(of("ffp"), json!({"status": "passed", "flaky": true, "output": "good"}));
    assert_eq!(of("p"), json!({"status": "passed", "flaky": null, "output": "good"}));
    assert_eq!(of("efff"), json!({"status": "failed", "flaky": null, "output": "bad"}));
    assert_eq!(of("f"), json!({"status": "failed", "flaky": null, "output": "bad"}));
    assert_eq!((tested.count("passed"), tested.count("failed"), tested.count("flaky")), (2, 2, 1));
    assert_eq!((tested.output.code, agent.requests().len()), (1, 8));

    let attempts = tested.case("ffp")["attempts"].as_array().expect("all attempts");
    let of = |key: &str| attempts.iter().map(|attempt| attempt[key].clone()).collect::<Value>();
    assert_eq!(of("attempt"), json!([1, 2, 3]));
    assert_eq!(of("status"), json!(["failed", "failed", "passed"]));
    assert_eq!(of("output"), json!(["bad", "bad", "good"]));
    assert_eq!(attempts[0]["turns"][0]["assertions"][0]["passed"], false);
    assert_eq!(tested.case("p")["attempts"], Value::Null);
}

#[test]
fn the_project_says_how_often_and_cases_and_the_command_line_say_better() {
    let agent = lettered();
    let text = format!("target: {{ endpoint: '{}' }}\nretries: 1\n", agent.url());
    let suite = [case("fffff"), with("ffff", "retries: 0\n"), with("fffffff", "retries: 2\n")].join("---\n");
    let project = Project::with(&text).suite("a", &suite);
    let counts = || ["fffff", "ffff", "fffffff"].map(|letters| told(&agent, letters));
    project.test(&[]);
    assert_eq!(counts(), [2, 1, 3]);
    project.test(&["--retries", "0"]);
    assert_eq!(counts(), [3, 2, 4]);
    project.test(&["--retries", "1"]);
    assert_eq!(counts(), [5, 4, 6]);
}

#[test]
fn runs_are_never_tried_again() {
    let agent = lettered();
    let tested = project(&agent, &with("fp", "retries: 1\n")).test(&["--runs", "2"]);
    assert_eq!((tested.output.code, agent.requests().len()), (1, 2));
    assert_eq!(tested.case("fp")["passed"], 1);
}

#[test]
fn what_is_wrong_with_a_test_is_not_tried_again() {
    let agent = lettered();
    // The attachment is looked for when the case runs.
    let suite = "id: a\nretries: 3\nhooks: [{ cmd: [sh, -c, 'echo x >> ran'] }]\nturns: [{ user: pppp, attachments: [{ type: image, source: 'file://gone.png' }] }]\n";
    let project = project(&agent, suite);
    let tested = project.test(&[]);
    assert_eq!(tested.failure("a")["kind"], "test_error", "{}", tested.output);
    assert_eq!(project.workspace.read("ran"), "x\n");
}

#[test]
fn a_hook_runs_again_with_its_case() {
    let agent = lettered();
    let hook = "hooks: [{ cmd: [sh, -c, 'echo x >> ran; test $(wc -l < ran) -gt 1'] }]\nretries: 1\n";
    let tested = project(&agent, &with("p", hook)).test(&[]);
    tested.all_passed();
    assert_eq!(tested.case("p")["attempts"][0]["error_kind"], "hook_error");
}

#[test]
fn nothing_is_tried_again_after_ctrl_c() {
    let agent = FakeAgent::start(|request| Run::of(request).started().gate("open").text("bad").finished());
    let project = project(&agent, &with("a", "retries: 5\n"));
    let mut running = project.command(&["test", "-o", "out.json"]).spawn();
    agent.wait_at_gate("open", LONG);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    let output = running.wait();
    let report: Value = serde_json::from_str(&project.workspace.read("out.json")).expect("a whole report");
    assert_eq!((&report["results"][0]["status"], agent.requests().len()), (&json!("failed"), 1), "{output}");
    assert_eq!(output.code, 130);
}

#[test]
fn fail_fast_waits_for_the_last_attempt() {
    let agent = lettered();
    let suite = [with("fp", "retries: 1\n"), with("ff", "retries: 1\n"), case("p")].join("---\n");
    let tested = project(&agent, &suite).test(&["--parallel", "1", "--fail-fast"]);
    let statuses = ["fp", "ff", "p"].map(|case| tested.case(case)["status"].clone());
    assert_eq!(statuses, ["passed", "failed", "skipped"]);
}

// Skips.

#[test]
fn skips_that_nobody_asked_for_can_make_a_run_fail() {
    let agent = lettered();
    let asked = with("a", "skip: later\n");
    let waits = with("www", "type: multi_turn\n");
    let project = project(&agent, &[asked.clone(), waits].join("---\n"));
    assert_eq!(project.test(&[]).output.code, 0);
    let tested = project.test(&["--fail-on-skip"]);
    assert_eq!((tested.output.code, tested.count("skipped"), tested.count("unasked_skips")), (1, 2, 1));
    assert!(tested.output.stdout.contains("TESTS FAILED"), "{}", tested.output);
    assert!(tested.output.stdout.contains("2 (1 fails the run: --fail-on-skip)"), "{}", tested.output);

    let tested = Project::of(&agent).suite("a", &asked).test(&["--fail-on-skip"]);
    assert_eq!((tested.output.code, tested.count("skipped")), (0, 1));
}

// What people and programs see.

#[test]
fn the_console_shows_how_steady_cases_are() {
    let agent = lettered();
    let suite = [case("ppp"), case("pfp"), "name: in words\n".to_string() + &case("feu")].join("---\n");
    let output = project(&agent, &suite).hotseat(&["test", "--runs", "3", "--parallel", "1"]).redacted();
    assert_snapshot!(output.stdout, @r#"
    ═══════════════════════════════════════════════════════════════
      Agent Test                                      Hotseat 0.1.0
    ═══════════════════════════════════════════════════════════════
    ℹ Agent: http://127.0.0.1:[PORT]/
    ℹ Input: a.test.yaml (3 test cases)
    ℹ Timeout: [TIME] per turn
    ℹ Runs: 3 of each case

    ───────────────────────────────────────────────────────────────
      Running Tests
    ───────────────────────────────────────────────────────────────
    ► [ppp] 100% (3/3) Stable avg:[TIME]
      rate 44–100% (95%) · pass^3 100% · same answer 100% · [TIME]/[TIME]/[TIME]

    ► [pfp] 67% (2/3) Unstable avg:[TIME]
      rate 21–94% (95%) · pass^3 0% · same answer 33% · [TIME]/[TIME]/[TIME]
      Run 2: FAILED ([TIME]) assertion: does not hold: the agent says something that fits /good/
      ├─ Turn 1: "pfp" → FAILED ([TIME])
      │    Agent: "bad"
      │    ✗ the agent says something that fits /good/
      └─ assertion: a check does not hold

         ✗ turn 1: the agent says something that fits /good/
          --> a.test.yaml:5:52
           |
         5 | turns: [{ user: pfp, assert: { text: { must_match: good } } }]
           |                                                    ^^^^
           |
           = found: "bad"

    ► [feu] in words 0% (0/3) Highly Unstable avg:[TIME]
      rate 0–56% (95%) · pass^3 0% · [TIME]/[TIME]/[TIME]
      Run 1: FAILED ([TIME]) assertion: does not hold: the agent says something that fits /good/
      Run 2: FAILED ([TIME]) agent_error: the agent failed: no
      Run 3: FAILED ([TIME]) protocol_error: http://127.0.0.1:[PORT]/ accepted the connection and gave …

      Run 1:
      ├─ Turn 1: "feu" → FAILED ([TIME])
      │    Agent: "bad"
      │    ✗ the agent says something that fits /good/
      └─ assertion: a check does not hold

         ✗ turn 1: the agent says something that fits /good/
          --> a.test.yaml:9:52
           |
         9 | turns: [{ user: feu, assert: { text: { must_match: good } } }]
           |                                                    ^^^^
           |
           = found: "bad"

    ───────────────────────────────────────────────────────────────
      Stability Analysis
    ───────────────────────────────────────────────────────────────
      Runs per case:     3
      Total runs:        9
      Overall pass rate: 55.6%
      Stable cases:      1
      Unstable cases:    2

      [ppp] 100% (3/3) Stable avg:[TIME]
      [pfp] 67% (2/3) Unstable avg:[TIME]
      [feu] in words 0% (0/3) Highly Unstable avg:[TIME]

    ───────────────────────────────────────────────────────────────
      Failed Tests
    ───────────────────────────────────────────────────────────────
      ✗ [pfp] (a.test.yaml:4:5)
      ✗ [feu] in words (a.test.yaml:7:7)

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     3
      Passed:    1
      Failed:    2
      Pass Rate: 33.3%
      Duration:  [TIME]

      Next: when it is fixed, run only what failed: `--run '^(pfp|feu)$'`

    ═══════════════════════════════════════════════════════════════
      ❌ TESTS FAILED
    ═══════════════════════════════════════════════════════════════
    "#);
}

#[test]
fn attempts_of_a_case_do_not_drown_the_console() {
    let agent = lettered();
    let output = project(&agent, &case(&"f".repeat(30))).hotseat(&["test", "--runs", "30"]).redacted();
    let (from, to) = (output.stdout.find('►').unwrap_or(0), output.stdout.find("  Run 1:\n").unwrap_or(0));
    assert_snapshot!(output.stdout[from..to], @"
    ► [ffffffffffffffffffffffffffffff] 0% (0/30) Highly Unstable avg:[TIME]
      rate 0–11% (95%) · pass^5 0% · same answer 100% · [TIME]/[TIME]/[TIME]
      Run 1: FAILED ([TIME]) assertion: does not hold: the agent says something that fits /good/
      Run 2: FAILED ([TIME]) assertion: does not hold: the agent says something that fits /good/
      Run 3: FAILED ([TIME]) assertion: does not hold: the agent says something that fits /good/
      Run 4: FAILED ([TIME]) assertion: does not hold: the agent says something that fits /good/
      Run 5: FAILED ([TIME]) assertion: does not hold: the agent says something that fits /good/
      … and 25 more runs that did not pass
    ");
}

#[test]
fn the_console_shows_what_was_tried_again() {
    let agent = lettered();
    let suite = [with("fep", "retries: 2\n"), with("fe", "retries: 1\n")].join("---\n");
    let output = project(&agent, &suite).hotseat(&["test", "--parallel", "1"]).redacted();
    let from = output.stdout.find('►').unwrap_or(0);
    assert_snapshot!(output.stdout[from..], @r#"
    ► [fep] fep PASSED ([TIME]) - flaky, attempt 3
      Attempt 1: FAILED ([TIME]) assertion: does not hold: the agent says something that fits /good/
      Attempt 2: FAILED ([TIME]) agent_error: the agent failed: no

    ► [fe] fe FAILED ([TIME]) - attempt 2
      Attempt 1: FAILED ([TIME]) assertion: does not hold: the agent says something that fits /good/
      ├─ Turn 1: "fe" → FAILED ([TIME])
      │    error: no
      └─ agent_error: the agent failed: no

         --> a.test.yaml:5:5

    ───────────────────────────────────────────────────────────────
      Failed Tests
    ───────────────────────────────────────────────────────────────
      ✗ [fe] (a.test.yaml:5:5, agent_error)

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     2
      Passed:    1
        Flaky:   1
      Failed:    1
      Errors:    1 of them
      Pass Rate: 50.0%
      Duration:  [TIME]

      Next: see all that the agent sent: `--run '^fe$' --trace trace.jsonl`

    ═══════════════════════════════════════════════════════════════
      ❌ TESTS FAILED
    ═══════════════════════════════════════════════════════════════
    "#);
}

#[test]
fn junit_has_the_elements_of_surefire() {
    let agent = lettered();
    let suite = [with("fep", "retries: 2\n"), with("fe", "retries: 1\n")].join("---\n");
    let project = project(&agent, &suite);
    project.hotseat(&["test", "--parallel", "1", "-o", "out.xml"]);
    let xml = project.workspace.read("out.xml");
    quick_junit::Report::deserialize_from_str(&xml).expect("JUnit");
    let (flaky, failed) = xml.split_once(r#"<testcase name="fe""#).expect("two cases");
    for (part, tags) in [
        (
            flaky,
            [
                r#"<flakyFailure message="does not hold"#,
                r#"<flakyError message="the agent failed: no" type="agent_error""#,
            ],
        ),
        (
            failed,
            [
                r#"<failure message="does not hold"#,
                r#"<rerunError message="the agent failed: no" type="agent_error""#,
            ],
        ),
    ] {
        for tag in tags {
            let tag = tag.split(" message").next().unwrap_or_default();
            assert!(part.contains(tag), "{tag}\n{xml}");
        }
    }
    assert!(!flaky.contains("<failure") && !failed.contains("<flaky"), "{xml}");
    assert!(xml.contains(r#"tests="2" skipped="0" failures="1" errors="0""#), "{xml}");
}

#[test]
fn junit_tells_runs_that_passed_from_those_that_did_not() {
    let agent = lettered();
    let project = project(&agent, &cases(&["pff", "fff"]));
    project.hotseat(&["test", "--runs", "3", "--parallel", "1", "-o", "out.xml"]);
    let xml = project.workspace.read("out.xml");
    quick_junit::Report::deserialize_from_str(&xml).expect("JUnit");
    let count = |tag: &str| xml.matches(tag).count();
    assert_eq!((count("<failure"), count("<flakyFailure"), count("<rerunFailure")), (2, 1, 2), "{xml}");
    assert!(xml.contains("1 of 3 runs passed; run 2: "), "{xml}");
}

#[test]
fn github_is_told_of_what_failed_and_warned_of_what_is_flaky() {
    let agent = lettered();
    let suite = [with("fp", "retries: 1\n"), with("ff", "retries: 1\n")].join("---\n");
    let annotations = |agent: &FakeAgent, suite: &str, args: &[&str]| {
        let args = [&["test", "--parallel", "1"], args].concat();
        let output = project(agent, suite).command(&args).env("GITHUB_ACTIONS", "true").run();
        let lines = output.stdout.lines().filter(|line| line.starts_with("::"));
        let lines = lines.map(|line| line.split("%0A").next().unwrap_or_default().to_string());
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(annotations(&agent, &suite, &[]), @"
    ::warning file=a.test.yaml,line=3,col=51,title=fp::flaky: passed at attempt 2; before: does not hold: the agent says something that fits /good/
    ::error file=a.test.yaml,line=7,col=51,title=ff::failed in each of 2 attempts: does not hold: the agent says something that fits /good/
    ");
    let repeated = cases(&["fpp", "fff", "ppp"]);
    assert_snapshot!(annotations(&agent, &repeated, &["--runs", "3", "--min-pass-rate", "0.5"]), @"
    ::warning file=a.test.yaml,line=2,col=52,title=fpp::2 of 3 runs passed; run 1: does not hold: the agent says something that fits /good/
    ::error file=a.test.yaml,line=5,col=52,title=fff::0 of 3 runs passed, and 2 have to; run 1: does not hold: the agent says something that fits /good/
    ");
}

#[test]
fn events_tell_each_attempt_as_it_ends() {
    let agent = lettered();
    let suite = [case("p"), with("fp", "retries: 1\n")].join("---\n");
    let types = |args: &[&str]| {
        let output =
            project(&agent, &suite).hotseat(&[&["test", "--json", "--parallel", "1"], args].concat());
        let lines = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines
            .filter(|line| line["type"].as_str().is_some_and(|of| of.starts_with("test_") || of == "result"))
            .map(|line| {
                json!([line["type"], line["id"], line["attempt"], line["status"], line["error_kind"]])
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        json!(types(&[])),
        json!([
            ["test_start", "p", null, null, null],
            ["result", "p", null, "passed", null],
            ["test_start", "fp", null, null, null],
            ["test_result", "fp", 1, "failed", "assertion"],
            ["test_result", "fp", 2, "passed", null],
            ["result", "fp", null, "passed", null],
        ])
    );
}

#[test]
fn the_trace_holds_every_attempt() {
    let agent = lettered();
    let project = project(&agent, &with("fp", "retries: 1\n"));
    project.hotseat(&["test", "--trace", "trace.jsonl"]);
    let trace = project.workspace.read("trace.jsonl");
    let lines = trace.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let heads =
        lines.filter(|line| line["type"] == "case").map(|line| json!([line["attempt"], line["status"]]));
    assert_eq!(heads.collect::<Value>(), json!([[1, "failed"], [2, "passed"]]));
}

// Many cases.

#[test]
fn a_suite_that_is_read_while_it_runs_gives_every_case_once_and_in_order() {
    let agent = echo_agent();
    let line = |n: usize| {
        format!(
            "{{\"id\":\"c{n}\",\"input\":\"hi c{n}\",\"assert\":{{\"type\":\"contains\",\"value\":\"c{n}\"}}}}\n"
        )
    };
    let suite: String = (0..1_500).map(line).collect();
    let project = Project::of(&agent).file("a.test.jsonl", &suite);
    let output = project.command(&["test", "-o", "out.json", "--parallel", "16"]).timeout(4 * LONG).run();
    assert_eq!(output.code, 0, "{}", &output.stdout[output.stdout.len().saturating_sub(2_000)..]);
    let report: Value = serde_json::from_str(&project.workspace.read("out.json")).expect("a report");
    let results = report["results"].as_array().expect("results");
    assert!(results.iter().enumerate().all(|(n, result)| result["id"] == format!("c{n}")));
    assert_eq!((results.len(), agent.requests().len()), (1_500, 1_500));
}

#[test]
fn a_suite_that_changes_while_it_is_read_makes_no_good_run() {
    let agent = FakeAgent::start(|request| Run::of(request).started().gate("open").text("hi").finished());
    let line = |n: usize| format!("{{\"id\":\"c{n}\",\"input\":\"hi\"}}\n");
    let of = |count: usize| (0..count).map(line).collect::<String>();
    let project = Project::of(&agent).file("a.test.jsonl", &of(1_400));
    let running = project
        .command(&["test", "-o", "out.json", "-o", "out.md", "--parallel", "4"])
        .timeout(4 * LONG)
        .spawn();
    agent.wait_for_requests(4, LONG);
    project.workspace.file("a.test.jsonl", &of(1_101));
    agent.release("open");
    let output = running.wait();
    assert_eq!(output.code, 3, "{output}");
    assert!(output.stderr.contains("the suites have changed since the run began"), "{output}");
    assert!(!output.stdout.contains("ALL TESTS PASSED"), "{output}");
    let report: Value = serde_json::from_str(&project.workspace.read("out.json")).expect("a report");
    assert!(report["summary"]["error"].as_str().is_some_and(|why| why.contains("have changed")), "{report}");
    assert!(project.workspace.read("out.md").starts_with("## \u{274c} "));
    let listed = project.hotseat(&["runs", "--json"]);
    assert!(!listed.stdout.contains("\"ended\""), "{listed}");
}

#[test]
fn ctrl_c_lists_what_is_left_of_a_suite_that_is_read_while_it_runs() {
    let agent = FakeAgent::start(|request| Run::of(request).started().gate("open").text("hi").finished());
    let line = |n: usize| format!("{{\"id\":\"c{n}\",\"input\":\"hi\"}}\n");
    let suite: String = (0..1_500).map(line).collect();
    let project = Project::of(&agent).file("a.test.jsonl", &suite);
    let mut running =
        project.command(&["test", "-o", "out.json", "--parallel", "4"]).timeout(4 * LONG).spawn();
    agent.wait_for_requests(4, LONG);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    let output = running.wait();
    let report: Value = serde_json::from_str(&project.workspace.read("out.json")).expect("a report");
    let count = |what: &str| report["summary"][what].as_u64();
    assert_eq!((output.code, count("passed"), count("skipped")), (130, Some(4), Some(1_496)));
}
