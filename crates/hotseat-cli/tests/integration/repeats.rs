//! Repeats and retries.
use hotseat_testkit::{FakeAgent, ProgramOutput};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::common::letters::{case, cases, letter_agent, project, unreachable_hook, with};
use crate::common::{Project, TEST_TIMEOUT, TestRun, echo_agent};

/// Selected members of the result of a case.
#[track_caller]
fn result_members(tested: &TestRun, case: &str, keys: &[&str]) -> Value {
    let result = tested.case(case);
    Value::Object(keys.iter().map(|key| (key.to_string(), result[*key].clone())).collect())
}

fn request_count(agent: &FakeAgent, letters: &str) -> usize {
    agent.requests().iter().filter(|request| request.last_user_text() == letters).count()
}

// Repeats.

#[test]
fn repeats_use_separate_sessions() {
    let agent = letter_agent();
    let suite = with("pppp", "hooks: [{ cmd: [sh, -c, 'echo x >> ran'] }]\n") + "---\n" + &case("ppppp");
    let tested = project(&agent, &suite).test(&["--runs", "4"]);
    tested.assert_all_passed();
    let threads: std::collections::BTreeSet<String> =
        agent.requests().iter().map(|request| request.json()["threadId"].to_string()).collect();
    assert_eq!((agent.requests().len(), threads.len()), (8, 8), "a fresh conversation each time");
    assert_eq!(
        result_members(
            &tested,
            "pppp",
            &["runs", "passed", "failed", "pass_rate", "stable", "stability_class", "consistency"]
        ),
        json!({"runs": 4, "passed": 4, "failed": 0, "pass_rate": 100.0, "stable": true, "stability_class": "stable", "consistency": 1.0}),
    );
}

#[test]
fn hooks_run_for_each_repeat() {
    let agent = letter_agent();
    let project = project(&agent, &with("ppp", "hooks: [{ cmd: [sh, -c, 'echo x >> ran'] }]\n"));
    project.test(&["--runs", "3"]).assert_all_passed();
    assert_eq!(project.workspace.read("ran"), "x\nx\nx\n");
}

#[test]
fn fixed_conversation_id_is_not_reused_across_repeats() {
    let agent = letter_agent();
    project(&agent, &with("ppp", "threadId: mine\n"))
        .test(&["--runs", "3", "--parallel", "1"])
        .assert_all_passed();
    let threads: Vec<Value> =
        agent.requests().iter().map(|request| request.json()["threadId"].clone()).collect();
    assert_eq!(threads, ["mine", "mine-2", "mine-3"]);
}

#[test]
fn stability_has_documented_classes() {
    let agent = letter_agent();
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
            result_members(&tested, letters, &["pass_rate", "stable", "stability_class"]),
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
fn consistency_measures_answer_agreement() {
    let agent = letter_agent();
    let all = [("ppp", 1.0), ("ppo", 0.333), ("jkj", 1.0), ("fff", 1.0), ("pof", 0.0), ("ppu", 1.0)];
    let tested = project(&agent, &cases(&all.map(|(letters, _)| letters))).test(&["--runs", "3"]);
    for (letters, consistency) in all {
        assert_eq!(tested.case(letters)["consistency"], consistency, "{letters}\n{}", tested.output);
    }
    let alone = letter_agent();
    let tested = project(&alone, &cases(&["pu"])).test(&["--runs", "2"]);
    assert_eq!(tested.case("pu")["consistency"], Value::Null, "one answer agrees with none");
    // An invalid attempt says nothing about the agent, although it has an answer.
    let other = letter_agent();
    let suite = with("ppo", "assert: [{ type: script, use: 'scripts:checks.known' }]\n");
    let script =
        "export function known(said) { if (said === 'good') return true; throw new Error('mine') }\n";
    let tested = project(&other, &suite).file("src/checks.ts", script).test(&["--runs", "3"]);
    let members = result_members(&tested, "ppo", &["runs", "invalid", "consistency"]);
    assert_eq!(members, json!({"runs": 2, "invalid": 1, "consistency": 1.0}), "{}", tested.output);
}

#[test]
fn durations_cover_individual_runs() {
    let agent = letter_agent();
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
fn report_contains_every_run_in_full() {
    let agent = letter_agent();
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
    // The first failed run represents the case.
    assert_eq!(
        result_members(&tested, "pfeo", &["status", "output", "error_kind"]),
        json!({"status": "failed", "output": "bad", "error_kind": "assertion"})
    );
    let error = result["error"].as_str().expect("an error");
    assert!(error.starts_with("2 of 4 runs passed; run 2: "), "{error}");
}

#[test]
fn repeats_run_in_parallel_with_other_cases() {
    let agent = letter_agent();
    let project = project(&agent, &cases(&["ggg", "gggg"]));
    let running = project.command(&["test", "--runs", "3", "--parallel", "5"]).spawn();
    agent.wait_for_requests(5, TEST_TIMEOUT);
    agent.release("open");
    let output = running.wait();
    assert_eq!((output.code, agent.requests().len(), agent.most_in_flight()), (0, 6, 5), "{output}");
}

#[test]
fn new_case_starts_only_when_no_repeat_is_pending() {
    let agent = letter_agent();
    project(&agent, &cases(&["pp", "ppp", "pppp"]))
        .test(&["--runs", "2", "--parallel", "1"])
        .assert_all_passed();
    let order = agent.user_texts();
    assert_eq!(order, ["pp", "pp", "ppp", "ppp", "pppp", "pppp"]);
}

#[test]
fn pass_threshold_can_be_lower_than_all() {
    for (rate, enough) in [("0.8", true), ("80%", true), ("0.81", false), ("1", false)] {
        let agent = letter_agent();
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
fn runs_flag_overrides_project() {
    let agent = letter_agent();
    let text = format!("target: {{ endpoint: '{agent}' }}\nruns: 2\nmin_pass_rate: 0.5\n");
    let project = Project::with_config(&text).suite("a", &case("pfppf"));
    let tested = project.test(&[]);
    assert_eq!((tested.output.code, request_count(&agent, "pfppf")), (0, 2), "{}", tested.output);
    let tested = project.test(&["--runs", "3", "--min-pass-rate", "100%"]);
    assert_eq!((tested.output.code, request_count(&agent, "pfppf")), (1, 5), "{}", tested.output);
}

#[test]
fn rates_have_one_form_everywhere() {
    for rate in ["0.66", "66%", "'66 %'"] {
        let agent = letter_agent();
        let text = format!("target: {{ endpoint: '{agent}' }}\nruns: 3\nmin_pass_rate: {rate}\n");
        let tested = Project::with_config(&text).suite("a", &case("pfp")).test(&[]);
        assert_eq!(tested.output.code, 0, "{rate}: {}", tested.output);
        assert_eq!(tested.report["summary"]["overall_pass_rate"], 66.7);
    }
    let agent = letter_agent();
    let letters = "p".repeat(40);
    let declared = with(&letters, "reliability: { rate: 50%, confidence: 80% }\n");
    let tested = project(&agent, &declared).test(&[]);
    let reliability = &tested.case(&letters)["reliability"];
    assert_eq!(
        (&reliability["rate"], &reliability["confidence"]),
        (&json!(0.5), &json!(0.8)),
        "{reliability:#}"
    );
}

#[test]
fn pass_rate_without_repeats_has_a_note() {
    let agent = letter_agent();
    let text = format!("target: {{ endpoint: '{agent}' }}\nmin_pass_rate: 50%\n");
    let project = Project::with_config(&text).suite("a", &case("ppf"));
    let note =
        "note: `min_pass_rate` of the project file is ignored, because each case runs once: set `runs`";
    let tested = project.test(&[]);
    assert!(tested.output.code == 0 && tested.output.stderr.contains(note), "{}", tested.output);
    let tested = project.test(&["--runs", "2"]);
    assert!(tested.output.code == 0 && !tested.output.stderr.contains("min_pass_rate"), "{}", tested.output);
}

/// A rate is 100% only if nothing failed, and 0% only if nothing passed.
#[test]
fn rates_next_to_the_limits_are_not_rounded_to_them() {
    let agent = letter_agent();
    let [most, few] = ["pf", "fp"].map(|letters| {
        let (many, one) = letters.split_at(1);
        many.repeat(250) + one
    });
    let tested = project(&agent, &cases(&[&most, &few])).test(&["--runs", "251"]);
    for line in ["… 99.6% (250/251)", "… 0.4% (1/251)", "  rate 98–99.9% (95%)", "  rate 0.1–2% (95%)"]
    {
        assert!(tested.output.stdout.contains(line), "{line}: {}", tested.output);
    }
}

#[test]
fn skipped_case_is_reported_once() {
    let agent = letter_agent();
    let suite = with("a", "skip: true\n") + "---\n" + &case("pp");
    let tested = project(&agent, &suite).test(&["--runs", "2"]);
    assert_eq!((tested.output.code, tested.count("skipped"), tested.count("total_runs")), (0, 1, 2));
    assert_eq!(tested.case("a")["run_details"], Value::Null);
}

#[test]
fn invalid_attempts_are_repeated() {
    let agent = letter_agent();
    // The second run uses an unreachable address.
    let suite = [
        with("ppp", &unreachable_hook(&agent, "one", "2")),
        with("pfp", &unreachable_hook(&agent, "two", "2")),
    ]
    .join("---\n");
    let project = Project::with_config("target: { endpoint: '${url}' }\n").suite("a", &suite);
    let tested = project.test(&["--runs", "3", "--parallel", "1"]);
    let keys = ["runs", "passed", "failed", "invalid", "redrawn", "pass_rate", "status", "error_kind"];
    assert_eq!(
        result_members(&tested, "ppp", &keys),
        json!({"runs": 3, "passed": 3, "failed": 0, "invalid": 1, "redrawn": 1, "pass_rate": 100.0, "status": "passed", "error_kind": null}),
        "{}",
        tested.output
    );
    assert_eq!(
        result_members(&tested, "pfp", &keys),
        json!({"runs": 3, "passed": 2, "failed": 1, "invalid": 1, "redrawn": 1, "pass_rate": 66.7, "status": "failed", "error_kind": "assertion"})
    );
    let details = tested.case("ppp")["run_details"].as_array().expect("runs");
    let of = |key: &str| details.iter().map(|run| run[key].clone()).collect::<Value>();
    assert_eq!((of("run"), of("invalid")), (json!([1, 2, 3, 4]), json!([null, true, null, null])));
    assert_eq!(of("error_kind"), json!([null, "unreachable", null, null]));
    assert_eq!((tested.count("invalid_runs"), tested.count("redrawn_runs"), tested.output.code), (2, 2, 1));
    assert_eq!((tested.count("total_runs"), tested.count("passed_runs")), (6, 5));
    let line = tested.output.stdout.lines().find(|shown| shown.starts_with("► [ppp] ")).expect("its line");
    assert!(line.starts_with("► [ppp] 100% (3/3) Stable avg:") && line.ends_with(", 1 replaced"), "{line}");
    assert!(tested.output.stdout.contains("2 (not the agent's fault), 2 replaced"), "{}", tested.output);
}

#[test]
fn missing_runs_do_not_pass() {
    let agent = letter_agent();
    let suite = with("pp", &unreachable_hook(&agent, "one", "2|3|4|5"));
    let project = Project::with_config("target: { endpoint: '${url}' }\n").suite("a", &suite);
    let tested = project.test(&["--runs", "2", "--parallel", "1", "--max-invalid", "2"]);
    assert_eq!(
        result_members(
            &tested,
            "pp",
            &["runs", "passed", "failed", "invalid", "redrawn", "pass_rate", "status"]
        ),
        json!({"runs": 1, "passed": 1, "failed": 0, "invalid": 3, "redrawn": 2, "pass_rate": 100.0, "status": "failed"}),
    );
    let error = tested.case("pp")["error"].as_str().expect("an error");
    assert!(error.starts_with("1 of 2 runs passed, 3 were invalid, 2 of them replaced; run 2: "), "{error}");
    assert_eq!(tested.failure("pp")["fault"], "infrastructure");

    // Enough passed runs suffice without the invalid one.
    let agent = letter_agent();
    let suite = with("pp", &unreachable_hook(&agent, "one", "2|3|4|5"));
    let project = Project::with_config("target: { endpoint: '${url}' }\nmax_invalid: 0\n").suite("a", &suite);
    let tested = project.test(&["--runs", "2", "--parallel", "1", "--min-pass-rate", "50%"]);
    assert_eq!((&tested.case("pp")["status"], &tested.case("pp")["redrawn"]), (&json!("passed"), &json!(0)));
}

#[test]
fn unanswered_runs_do_not_pass() {
    let agent = letter_agent();
    let waits = |letters: &str| with(letters, "type: multi_turn\n");
    let tested =
        project(&agent, &[waits("www"), waits("pwp"), waits("pwf")].join("---\n")).test(&["--runs", "3"]);
    let status = |case: &str| result_members(&tested, case, &["status", "error_kind", "skipped"]);
    assert_eq!(status("www"), json!({"status": "skipped", "error_kind": null, "skipped": 3}));
    assert_eq!(status("pwp"), json!({"status": "failed", "error_kind": "no_input", "skipped": 1}));
    assert_eq!(status("pwf"), json!({"status": "failed", "error_kind": "assertion", "skipped": 1}));
}

#[test]
fn fail_fast_stops_after_first_unstable_case() {
    let agent = letter_agent();
    let project = project(&agent, &cases(&["ppp", "pfp", "pppp"]));
    let tested = project.test(&["--runs", "3", "--parallel", "1", "--fail-fast"]);
    let statuses = ["ppp", "pfp", "pppp"].map(|case| tested.case(case)["status"].clone());
    assert_eq!(statuses, ["passed", "failed", "skipped"]);
    assert_eq!(agent.requests().len(), 6, "started runs finish");
    assert_eq!(tested.case("pppp")["skip_reason"], "not run: `pfp` failed (--fail-fast)");
}

#[test]
fn no_case_starts_once_another_is_certainly_unstable() {
    let agent = letter_agent();
    let project = project(&agent, &cases(&["fg", "pp"]));
    let mut running =
        project.command(&["test", "--json", "--runs", "2", "--parallel", "2", "--fail-fast"]).spawn();
    // One run has failed, so another case may start while the other run is still running.
    running.wait_for_stdout(r#""type":"test_result""#);
    agent.release("open");
    let output = running.wait();
    assert_eq!(
        (output.code, request_count(&agent, "fg"), request_count(&agent, "pp")),
        (1, 2, 0),
        "{output}"
    );
}

#[test]
fn ctrl_c_ends_case_after_running_attempts() {
    let agent = letter_agent();
    let project = project(&agent, &cases(&["pggg", "fggg", "pppp"]));
    let args =
        ["test", "-o", "out.json", "-o", "out.jsonl", "-o", "out.xml", "--runs", "4", "--parallel", "5"];
    let mut running = project.command(&args).spawn();
    // All runs of the first case, and as many of the second as are allowed.
    agent.wait_for_requests(7, TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    let output = running.wait();
    assert_eq!(output.code, 130, "{output}");
    let report = project.workspace.read_json("out.json");
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
fn interrupted_repeats_do_not_pass() {
    let agent = letter_agent();
    let project = project(&agent, &case("pgg"));
    let mut running = project.command(&["test", "-o", "out.json", "--runs", "3", "--parallel", "1"]).spawn();
    agent.wait_for_requests(2, TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    let output = running.wait();
    let report = project.workspace.read_json("out.json");
    let result = &report["results"][0];
    assert_eq!((&result["status"], &result["stable"]), (&json!("skipped"), &Value::Null), "{output}");
    let reason = "2 of 3 runs passed, only 2 were started: the run was interrupted";
    assert_eq!((&result["skip_reason"], output.code), (&json!(reason), 130), "{output}");
    assert!(output.stdout.contains("► [pgg] 100% (2/2) Cut Short avg:"), "{output}");
}

/// Attempts that did not start could have saved a case whose attempts until then say nothing about the agent.
#[test]
fn interrupted_repeats_without_a_valid_attempt_are_skipped() {
    let agent = letter_agent();
    let suite = with("g", &unreachable_hook(&agent, "runs", "1"));
    let project = Project::with_config("target: { endpoint: '${url}' }\n").suite("a", &suite);
    let mut running = project.command(&["test", "-o", "out.json", "--runs", "2", "--parallel", "1"]).spawn();
    agent.wait_for_requests(1, TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    running.press_ctrl_c();
    let output = running.wait();
    output.assert_code(130);
    let result = &project.workspace.read_json("out.json")["results"][0];
    assert_eq!((&result["status"], &result["invalid"]), (&json!("skipped"), &json!(2)), "{output}");
    let reason = "0 of 2 runs passed, 2 were invalid, only 2 were started: the run was interrupted";
    assert_eq!(result["skip_reason"], reason, "{output}");
}

#[test]
fn rejects_contradictory_options() {
    let agent = echo_agent();
    let project = project(&agent, &case("p"));
    let said = |args: &[&str]| {
        let output = project.hotseat(&[&["test"], args].concat());
        assert_eq!(output.code, 2, "{output}");
        output.stderr
    };
    assert_snapshot!(said(&["--min-pass-rate", "0.5"]), @"
    error: --min-pass-rate requires repeated cases, and each case runs once
     |
     = help: pass `--runs N` to run each case N times
    ");
    assert_snapshot!(said(&["--max-invalid", "3"]), @"
    error: --max-invalid requires repeated cases, and each case runs once
     |
     = help: pass `--runs N` to run each case N times
    ");
    assert_snapshot!(said(&["--runs", "3", "--retries", "1"]), @"
    error: --retries cannot be used with 3 runs of each case
     |
     = help: repeated runs are not retried, since that would hide unreliable cases; pass `--runs 1` to retry
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
        let text = format!("target: {{ endpoint: '{agent}' }}\n{text}\n");
        let output = Project::with_config(&text).suite("a", &case("p")).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{output}");
        output.stderr
    };
    assert_snapshot!(wrong("min_pass_rate: 80"), @"
    error: `min_pass_rate` must be more than 0 and at most 1
     --> hotseat.yaml:2:16
      |
    2 | min_pass_rate: 80
      |                ^^
      |
      = help: 0.8 or 80%: four of five runs must pass
    ");
    wrong("runs: 0");
    wrong("retries: -1");
    assert_eq!(agent.requests().len(), 0);
}

// Retries.

#[test]
fn passed_retry_is_flaky() {
    let agent = letter_agent();
    let suite =
        [with("ffp", "retries: 2\n"), case("p"), with("efff", "retries: 2\n"), case("f")].join("---\n");
    let project = project(&agent, &suite);
    let tested = project.test(&["--parallel", "1", "-o", "out.md"]);
    let of = |case: &str| result_members(&tested, case, &["status", "flaky", "output"]);
    assert_eq!(of("ffp"), json!({"status": "passed", "flaky": true, "output": "good"}));
    assert_eq!(of("p"), json!({"status": "passed", "flaky": null, "output": "good"}));
    assert_eq!(of("efff"), json!({"status": "failed", "flaky": null, "output": "bad"}));
    assert_eq!(of("f"), json!({"status": "failed", "flaky": null, "output": "bad"}));
    assert_eq!((tested.count("passed"), tested.count("failed"), tested.count("flaky")), (2, 2, 1));
    let markdown = project.workspace.read("out.md");
    assert!(markdown.contains("**2 passed (1 flaky)**, **2 failed** of 4 cases"), "{markdown}");
    assert_eq!((tested.output.code, agent.requests().len()), (1, 8));

    let attempts = tested.case("ffp")["attempts"].as_array().expect("all attempts");
    let of = |key: &str| attempts.iter().map(|attempt| attempt[key].clone()).collect::<Value>();
    assert_eq!(of("attempt"), json!([1, 2, 3]));
    assert_eq!(of("status"), json!(["failed", "failed", "passed"]));
    assert_eq!(of("output"), json!(["bad", "bad", "good"]));
    assert_eq!(attempts[0]["turns"][0]["assertions"][0]["passed"], false);
    assert_eq!(tested.case("p")["attempts"], Value::Null);
}

/// A check that throws says nothing about the agent, and would throw again.
#[test]
fn an_error_of_a_script_is_not_retried() {
    let agent = letter_agent();
    let check = "export function chk(output: string) { if (output === 'bad') throw new Error('unreadable'); return true; }";
    let suite =
        "name: fp\nretries: 2\nturns: [{ user: fp, assert: { type: script, use: 'scripts:check.chk' } }]\n";
    let tested = project(&agent, suite).file("src/check.ts", check).test(&[]);
    tested.assert_failure("fp", "script_error", &["unreadable"]);
    assert_eq!(agent.requests().len(), 1);
}

/// The failure before it is a result; a skip is none.
#[test]
fn a_skipped_retry_does_not_hide_the_failure() {
    let agent = letter_agent();
    let suite = [with("fw", "retries: 1\ntype: multi_turn\n"), with("w", "type: multi_turn\n")].join("---\n");
    let tested = project(&agent, &suite).test(&["--parallel", "1"]);
    assert_eq!(
        (&tested.case("fw")["status"], &tested.case("w")["status"]),
        (&json!("failed"), &json!("skipped"))
    );
    assert_eq!(tested.case("fw")["turns"][0]["assertions"][0]["passed"], false);
    // The line of the case names the attempt that is shown.
    let shown = &tested.output.stdout;
    assert!(shown.contains("► [fw] (1 turn) - attempt 1\n  Attempt 2: SKIPPED"), "{shown}");
    assert_eq!(tested.output.code, 1);
}

#[test]
fn retry_count_precedence_is_flag_case_project() {
    let agent = letter_agent();
    let text = format!("target: {{ endpoint: '{agent}' }}\nretries: 1\n");
    let suite = [case("fffff"), with("ffff", "retries: 0\n"), with("fffffff", "retries: 2\n")].join("---\n");
    let project = Project::with_config(&text).suite("a", &suite);
    let counts = || ["fffff", "ffff", "fffffff"].map(|letters| request_count(&agent, letters));
    project.test(&[]);
    assert_eq!(counts(), [2, 1, 3]);
    project.test(&["--retries", "0"]);
    assert_eq!(counts(), [3, 2, 4]);
    project.test(&["--retries", "1"]);
    assert_eq!(counts(), [5, 4, 6]);
}

#[test]
fn repeats_are_not_retried() {
    let agent = letter_agent();
    let tested = project(&agent, &with("fp", "retries: 1\n")).test(&["--runs", "2"]);
    assert_eq!((tested.output.code, agent.requests().len()), (1, 2));
    assert_eq!(tested.case("fp")["passed"], 1);
}

#[test]
fn test_errors_are_not_retried() {
    let agent = letter_agent();
    // The attachment is read when the case runs.
    let suite = "id: a\nretries: 3\nhooks: [{ cmd: [sh, -c, 'echo x >> ran'] }]\nturns: [{ user: pppp, attachments: [{ type: image, source: 'file://gone.png' }] }]\n";
    let project = project(&agent, suite);
    let tested = project.test(&[]);
    assert_eq!(tested.failure("a")["kind"], "test_error", "{}", tested.output);
    assert_eq!(project.workspace.read("ran"), "x\n");
}

#[test]
fn hooks_run_again_on_retry() {
    let agent = letter_agent();
    let hook = "hooks: [{ cmd: [sh, -c, 'echo x >> ran; test $(wc -l < ran) -gt 1'] }]\nretries: 1\n";
    let tested = project(&agent, &with("p", hook)).test(&[]);
    tested.assert_all_passed();
    assert_eq!(tested.case("p")["attempts"][0]["error_kind"], "hook_error");
}

#[test]
fn repeats_that_ignore_retries_have_a_note() {
    let agent = crate::common::echo_agent();
    let turns = "turns: [{ user: hi }]";
    let suite = format!(
        "name: a\nretries: 2\n{turns}\n---\nname: b\nretries: 0\n{turns}\n---\nname: c\n{turns}\n---\nname: d\nretries: 1\nskip: true\n{turns}\n"
    );
    let project = |config: &str| {
        Project::with_config(&format!("target: {{ endpoint: '{agent}' }}\n{config}")).suite("a", &suite)
    };
    let noted = |project: Project, args: &[&str], words: Option<&str>| {
        let output = project.test(args).output;
        let note = output.stderr.lines().find(|line| line.contains("`retries`"));
        assert_eq!(note, words, "{args:?}: {output}");
    };
    let one = "note: each case runs 2 times, so `retries`, which is set for 1 case, is ignored in this run";
    noted(project(""), &["--runs", "2"], Some(one));
    noted(project("runs: 2\n"), &[], Some(one));
    let two = "note: each case runs 2 times, so `retries`, which is set for 2 cases, is ignored in this run";
    noted(project("retries: 1\n"), &["--runs", "2"], Some(two));
    noted(project("retries: 1\n"), &["--runs", "1"], None);
}

#[test]
fn no_retry_after_ctrl_c() {
    let agent = FakeAgent::with_run(|run, _| run.gate("open").text("bad").finished());
    let project = project(&agent, &with("a", "retries: 5\n"));
    let mut running = project.command(&["test", "-o", "out.json"]).spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    let output = running.wait();
    let report = project.workspace.read_json("out.json");
    assert_eq!((&report["results"][0]["status"], agent.requests().len()), (&json!("skipped"), 1), "{output}");
    assert!(output.stdout.contains("SKIPPED retry 1 not run: the run was interrupted"), "{output}");
    assert_eq!(output.code, 130);
}

/// Under the tree of several turns stands the result of the case, too.
#[test]
fn a_missing_retry_of_several_turns_is_shown_as_skipped() {
    let agent = FakeAgent::with_run(|run, _| run.gate("open").text("bad").finished());
    let suite =
        "id: a\nretries: 5\nturns: [{ user: hi, assert: { text: { must_match: good } } }, { user: ho }]\n";
    let project = project(&agent, suite);
    let mut running = project.command(&["test"]).spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    let output = running.wait();
    assert!(output.stdout.contains("SKIPPED retry 1 not run: the run was interrupted"), "{output}");
    assert!(output.stdout.contains("\n  SKIPPED (") && !output.stdout.contains("\n  FAILED ("), "{output}");
}

/// A retry that the second Ctrl-C cancels might have passed.
#[test]
fn a_cancelled_retry_leaves_the_case_undecided() {
    let agent = FakeAgent::with_run(|run, request| {
        let run = if request.index == 0 { run } else { run.gate("open") };
        run.text("bad").finished()
    });
    let project = project(&agent, &with("a", "retries: 1\n"));
    let mut running = project.command(&["test", "-o", "out.json"]).spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    running.press_ctrl_c();
    running.wait().assert_code(130);
    let report = project.workspace.read_json("out.json");
    let case = &report["results"][0];
    assert_eq!(case["status"], "skipped", "{case:#}");
    assert_eq!(case["skip_reason"], "retry 1 cancelled: the run was interrupted", "{case:#}");
    agent.release("open");
    project.hotseat(&["resume"]).assert_code(1);
    let report = project.workspace.read_json("out.json");
    assert_eq!(report["results"][0]["attempts"].as_array().map(Vec::len), Some(2), "{report:#}");
}

#[test]
fn fail_fast_waits_for_last_attempt() {
    let agent = letter_agent();
    let suite = [with("fp", "retries: 1\n"), with("ff", "retries: 1\n"), case("p")].join("---\n");
    let tested = project(&agent, &suite).test(&["--parallel", "1", "--fail-fast"]);
    let statuses = ["fp", "ff", "p"].map(|case| tested.case(case)["status"].clone());
    assert_eq!(statuses, ["passed", "failed", "skipped"]);
}

// Skips.

#[test]
fn unexpected_skips_can_fail_run() {
    let agent = letter_agent();
    let asked = with("a", "skip: later\n");
    let waits = with("www", "type: multi_turn\n");
    let project = project(&agent, &[asked.clone(), waits].join("---\n"));
    assert_eq!(project.test(&[]).output.code, 0);
    let tested = project.test(&["--fail-on-skip"]);
    assert_eq!((tested.output.code, tested.count("skipped"), tested.count("unasked_skips")), (1, 2, 1));
    assert!(tested.output.stdout.contains("TESTS FAILED"), "{}", tested.output);
    assert!(tested.output.stdout.contains("2 (1 fails the run: --fail-on-skip)"), "{}", tested.output);

    let tested = Project::with_agent(&agent).suite("a", &asked).test(&["--fail-on-skip"]);
    assert_eq!((tested.output.code, tested.count("skipped")), (0, 1));
}

#[test]
fn unexpected_skips_of_attempts_can_fail_run() {
    let suite = [with("pwp", "type: multi_turn\n"), with("ppf", "type: multi_turn\n")].join("---\n");
    let options = ["--runs", "3", "--min-pass-rate", "0.5", "--parallel", "1"];
    let tested = project(&letter_agent(), &suite).test(&options);
    assert_eq!((tested.output.code, tested.count("passed"), tested.count("unasked_skips")), (0, 2, 1));
    let tested = project(&letter_agent(), &suite).test(&[&options[..], &["--fail-on-skip"]].concat());
    assert_eq!((tested.output.code, tested.count("passed"), tested.count("unasked_skips")), (1, 2, 1));
    assert!(tested.output.stdout.contains("TESTS FAILED"), "{}", tested.output);
    let row = "Skipped:   0 (1 with skipped attempts fails the run: --fail-on-skip)";
    assert!(tested.output.stdout.contains(row), "{}", tested.output);
}

// Output for people and programs.

#[test]
fn console_shows_stability() {
    let agent = letter_agent();
    let suite = [case("ppp"), case("pfp"), "name: in words\n".to_string() + &case("fee")].join("---\n");
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

    ► [pfp] 67% (2/3) Unstable avg:[TIME] - FAILED
      rate 21–94% (95%) · pass^3 0% · same answer 33% · [TIME]/[TIME]/[TIME]
      Run 2: FAILED ([TIME]) assertion: expected the agent to say something that matches /good/, got "…
      ├─ Turn 1: "pfp" → FAILED ([TIME])
      │    Agent: "bad"
      │    ✗ expected the agent to say something that matches /good/
      └─ assertion: a check failed

         ✗ turn 1: expected the agent to say something that matches /good/
          --> a.test.yaml:5:52
           |
         5 | turns: [{ user: pfp, assert: { text: { must_match: good } } }]
           |                                                    ^^^^
           |
           = got: "bad"

    ► [fee] in words 0% (0/3) Consistently Failing avg:[TIME] - FAILED
      rate 0–56% (95%) · pass^3 0% · [TIME]/[TIME]/[TIME]
      Run 1: FAILED ([TIME]) assertion: expected the agent to say something that matches /good/, got "…
      Run 2: FAILED ([TIME]) agent_error: the agent failed: no
      Run 3: FAILED ([TIME]) agent_error: the agent failed: no

      Run 1:
      ├─ Turn 1: "fee" → FAILED ([TIME])
      │    Agent: "bad"
      │    ✗ expected the agent to say something that matches /good/
      └─ assertion: a check failed

         ✗ turn 1: expected the agent to say something that matches /good/
          --> a.test.yaml:9:52
           |
         9 | turns: [{ user: fee, assert: { text: { must_match: good } } }]
           |                                                    ^^^^
           |
           = got: "bad"

    ───────────────────────────────────────────────────────────────
      Stability Analysis
    ───────────────────────────────────────────────────────────────
      Runs per case:     3
      Total runs:        9
      Overall pass rate: 55.6%
      Stable cases:      1
      Unstable cases:    2 (1 consistently failing)

      [ppp] 100% (3/3) Stable avg:[TIME]
      [pfp] 67% (2/3) Unstable avg:[TIME] - FAILED
      [fee] in words 0% (0/3) Consistently Failing avg:[TIME] - FAILED

    ───────────────────────────────────────────────────────────────
      Failed Tests
    ───────────────────────────────────────────────────────────────
      ✗ [pfp] (a.test.yaml:4:5)
      ✗ [fee] in words (a.test.yaml:7:7)

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     3
      Passed:    1
      Failed:    2
      Pass Rate: 33.3%
      Duration:  [TIME]

      Next: after the fix, run only the failed cases: `hotseat test --runs 3 --parallel 1 --lf`

    ═══════════════════════════════════════════════════════════════
      ❌ TESTS FAILED
    ═══════════════════════════════════════════════════════════════
    "#);
}

#[test]
fn console_limits_attempt_output() {
    let agent = letter_agent();
    let output = project(&agent, &case(&"f".repeat(30))).hotseat(&["test", "--runs", "30"]).redacted();
    let (from, to) = (output.stdout.find('►').unwrap_or(0), output.stdout.find("  Run 1:\n").unwrap_or(0));
    assert_snapshot!(output.stdout[from..to], @r#"
    ► [ffffffffffffffffffffffffffffff] 0% (0/30) Consistently Failing avg:[TIME] - FAILED
      rate 0–11% (95%) · pass^5 0% · same answer 100% · [TIME]/[TIME]/[TIME]
      Run 1: FAILED ([TIME]) assertion: expected the agent to say something that matches /good/, got "…
      Run 2: FAILED ([TIME]) assertion: expected the agent to say something that matches /good/, got "…
      Run 3: FAILED ([TIME]) assertion: expected the agent to say something that matches /good/, got "…
      Run 4: FAILED ([TIME]) assertion: expected the agent to say something that matches /good/, got "…
      Run 5: FAILED ([TIME]) assertion: expected the agent to say something that matches /good/, got "…
      … and 25 more runs that did not pass
    "#);
}

#[test]
fn console_shows_retries() {
    let agent = letter_agent();
    let suite = [with("fep", "retries: 2\n"), with("fe", "retries: 1\n")].join("---\n");
    let output = project(&agent, &suite).hotseat(&["test", "--parallel", "1"]).redacted();
    let from = output.stdout.find('►').unwrap_or(0);
    assert_snapshot!(output.stdout[from..], @r#"
    ► [fep] fep PASSED ([TIME]) - flaky, attempt 3
      Attempt 1: FAILED ([TIME]) assertion: expected the agent to say something that matches /good/, g…
      Attempt 2: FAILED ([TIME]) agent_error: the agent failed: no

    ► [fe] fe FAILED ([TIME]) - attempt 2
      Attempt 1: FAILED ([TIME]) assertion: expected the agent to say something that matches /good/, g…
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
      Pass Rate: 50.0%
      Duration:  [TIME]

      Next: see everything the agent sent: `hotseat test --parallel 1 --lf --trace trace.jsonl`

    ═══════════════════════════════════════════════════════════════
      ❌ TESTS FAILED
    ═══════════════════════════════════════════════════════════════
    "#);
}

#[test]
fn junit_uses_surefire_elements() {
    let agent = letter_agent();
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
                r#"<flakyFailure message="check failed"#,
                r#"<flakyError message="the agent failed: no" type="agent_error""#,
            ],
        ),
        (
            failed,
            [
                r#"<failure message="check failed"#,
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

/// Names that differ only in characters that XML cannot contain are equal in it.
#[test]
fn junit_names_are_unique_as_they_are_written() {
    let agent = letter_agent();
    let suite = [
        ("p", "one", r#""a\uFFFDb""#),
        ("pp", r#""\u0081x""#, r#""a\u0081b""#),
        ("ppp", r#""\u0082x""#, r#""a\u0082b""#),
        ("pppp", "four", r#""a\uFFFDb [one]""#),
    ];
    let suite = suite.map(|(text, id, name)| {
        with(text, &format!("name: {name}\n")).replace(&format!("id: {text}\n"), &format!("id: {id}\n"))
    });
    let project = project(&agent, &suite.join("---\n"));
    project.test(&["-o", "out.xml"]).assert_all_passed();
    let xml = project.workspace.read("out.xml");
    let names = xml.split("<testcase name=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let names: Vec<&str> = names.collect();
    let expected = ["a�b [one] #1", "a�b [�x] #2", "a�b [�x] #3", "a�b [one] [four] #4"];
    assert_eq!(names, expected, "{xml}");
}

/// Readers of XML make spaces of raw tabs and line breaks in attributes.
#[test]
fn junit_names_that_differ_in_white_space_stay_different_for_readers() {
    let agent = letter_agent();
    let names = ["a b", "a\tb", "a\nb", "a\rb"];
    let named = |(text, name): (&str, &&str)| with(text, &format!("name: {name:?}\n"));
    let suite: Vec<String> = ["p", "pp", "ppp", "pppp"].into_iter().zip(&names).map(named).collect();
    let project = project(&agent, &suite.join("---\n"));
    project.test(&["-o", "out.xml"]).assert_all_passed();
    let xml = project.workspace.read("out.xml");
    let written = xml.split("<testcase name=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    assert_eq!(written.collect::<Vec<_>>(), ["a b", "a&#9;b", "a&#10;b", "a&#13;b"], "{xml}");
    quick_junit::Report::deserialize_from_str(&xml).expect("JUnit");
}

/// An attempt that says nothing about the agent makes no passed case flaky.
#[test]
fn junit_shows_invalid_attempts_of_passed_cases_as_properties() {
    let agent = letter_agent();
    let hook = "hooks: [{ cmd: [sh, -c, 'echo x >> ran; test $(wc -l < ran) -gt 1'] }]\nretries: 1\n";
    let project = project(&agent, &with("p", hook));
    let tested = project.test(&["-o", "out.xml"]);
    tested.assert_all_passed();
    let xml = project.workspace.read("out.xml");
    assert!(!xml.contains("flaky") && xml.contains(r#"<property name="invalid_attempt_1" value=""#), "{xml}");
}

/// As in reports of Surefire, only cases that passed have flaky failures.
#[test]
fn junit_separates_passed_and_failed_runs() {
    let agent = letter_agent();
    let project = project(&agent, &cases(&["pff", "fff", "ppf"]));
    let args = ["test", "--runs", "3", "--min-pass-rate", "0.6", "--parallel", "1", "-o", "out.xml"];
    project.hotseat(&args);
    let xml = project.workspace.read("out.xml");
    quick_junit::Report::deserialize_from_str(&xml).expect("JUnit");
    let parts = xml.split("<testcase").skip(1).map(|case| {
        ["<failure", "<flakyFailure", "<rerunFailure"].map(|element| case.matches(element).count())
    });
    assert_eq!(parts.collect::<Vec<_>>(), [[1, 0, 1], [1, 0, 2], [0, 1, 0]], "{xml}");
    assert!(xml.contains("1 of 3 runs passed, at least 2 required; run 2: "), "{xml}");
}

#[test]
fn github_annotates_failures_and_warns_about_flaky_cases() {
    let agent = letter_agent();
    let suite = [with("fp", "retries: 1\n"), with("ff", "retries: 1\n")].join("---\n");
    let annotations = |agent: &FakeAgent, suite: &str, args: &[&str]| {
        let args = [&["test", "--parallel", "1"], args].concat();
        let output = project(agent, suite).command(&args).env("GITHUB_ACTIONS", "true").run();
        let lines = output.stdout.lines().filter(|line| line.starts_with("::"));
        let lines = lines.map(|line| line.split("%0A").next().unwrap_or_default().to_string());
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(annotations(&agent, &suite, &[]), @r#"
    ::warning file=a.test.yaml,line=3,col=51,title=fp::flaky: passed at attempt 2; before: failed: expected the agent to say something that matches /good/, got "bad"
    ::error file=a.test.yaml,line=7,col=51,title=ff::failed in each of 2 attempts: expected the agent to say something that matches /good/, got "bad"
    "#);
    let repeated = cases(&["fpp", "fff", "ppp"]);
    assert_snapshot!(annotations(&agent, &repeated, &["--runs", "3", "--min-pass-rate", "0.5"]), @r#"
    ::warning file=a.test.yaml,line=2,col=52,title=fpp::2 of 3 runs passed; run 1: failed: expected the agent to say something that matches /good/, got "bad"
    ::error file=a.test.yaml,line=5,col=52,title=fff::failed: 0 of 3 runs passed, at least 2 required; run 1: expected the agent to say something that matches /good/, got "bad"
    "#);
}

#[test]
fn github_annotations_tell_failures_from_invalid_attempts() {
    let agent = letter_agent();
    let retried = |case: &str| with(case, &(unreachable_hook(&agent, case, "1") + "retries: 1\n"));
    let suite = [retried("fp"), retried("ff")].join("---\n");
    let project = Project::with_config("target: { endpoint: '${url}' }\n").suite("a", &suite);
    let output = project.command(&["test", "--parallel", "1"]).env("GITHUB_ACTIONS", "true").run();
    for words in
        ["title=fp::flaky: passed at attempt 3; before: failed: ", "title=ff::failed in 2 of 3 attempts: "]
    {
        assert!(output.stdout.contains(words), "{words}: {output}");
    }
}

#[test]
fn emits_event_for_each_finished_attempt() {
    let agent = letter_agent();
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
fn trace_contains_every_attempt() {
    let agent = letter_agent();
    let project = project(&agent, &with("fp", "retries: 1\n"));
    project.hotseat(&["test", "--trace", "trace.jsonl"]);
    let trace = project.workspace.read("trace.jsonl");
    let lines = trace.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let heads =
        lines.filter(|line| line["type"] == "case").map(|line| json!([line["attempt"], line["status"]]));
    assert_eq!(heads.collect::<Value>(), json!([[1, "failed"], [2, "passed"]]));
}

// Large suites.

#[test]
fn streamed_suite_yields_each_case_once_in_order() {
    let agent = echo_agent();
    let line = |n: usize| {
        format!(
            "{{\"id\":\"c{n}\",\"input\":\"hi c{n}\",\"assert\":{{\"type\":\"contains\",\"value\":\"c{n}\"}}}}\n"
        )
    };
    let suite: String = (0..1_500).map(line).collect();
    let project = Project::with_agent(&agent).file("a.test.jsonl", &suite);
    let output =
        project.command(&["test", "-o", "out.json", "--parallel", "16"]).timeout(4 * TEST_TIMEOUT).run();
    assert_eq!(output.code, 0, "{}", &output.stdout[output.stdout.len().saturating_sub(2_000)..]);
    let report = project.workspace.read_json("out.json");
    let results = report["results"].as_array().expect("results");
    assert!(results.iter().enumerate().all(|(n, result)| result["id"] == format!("c{n}")));
    assert_eq!((results.len(), agent.requests().len()), (1_500, 1_500));
}

/// Runs a suite of many cases, and writes it again while the first cases run.
fn run_changed_suite(changed: impl Fn(&dyn Fn(usize) -> String) -> String) -> (Project, ProgramOutput) {
    let agent = FakeAgent::with_run(|run, _| run.gate("open").text("hi").finished());
    // More than the reader takes at once.
    let input = "hi ".repeat(50);
    let line = |n: usize| format!("{{\"id\":\"c{n}\",\"input\":\"{input}\"}}\n");
    let of = |count: usize| (0..count).map(line).collect::<String>();
    let project = Project::with_agent(&agent).file("a.test.jsonl", &of(1_400));
    let running = project
        .command(&["test", "-o", "out.json", "-o", "out.md", "--parallel", "4"])
        .timeout(4 * TEST_TIMEOUT)
        .spawn();
    agent.wait_for_requests(4, TEST_TIMEOUT);
    project.workspace.file("a.test.jsonl", &changed(&of));
    agent.release("open");
    let output = running.wait();
    (project, output)
}

#[test]
fn suite_changed_during_run_fails_run() {
    let (project, output) = run_changed_suite(|of| of(1_101));
    output.assert_stderr(3, &["the suites changed during the run"]);
    assert!(!output.stdout.contains("ALL TESTS PASSED"), "{output}");
    let report = project.workspace.read_json("out.json");
    assert!(
        report["summary"]["error"]
            .as_str()
            .is_some_and(|why| why.contains("the suites changed during the run")),
        "{report}"
    );
    assert!(project.workspace.read("out.md").starts_with("## \u{274c} "));
    let listed = project.hotseat(&["runs", "--json"]);
    assert!(!listed.stdout.contains("\"ended\""), "{listed}");
}

/// Errors at the place where reading continues in the new file are in neither version.
#[test]
fn suite_changed_to_invalid_text_during_run_is_reported_as_change() {
    let (_project, output) = run_changed_suite(|of| format!("{}{{\"id\": \"c", of(1_101)));
    output.assert_stderr(3, &["the suites changed during the run", "without editing suites during the run"]);
    assert!(!output.stderr.contains("-->"), "{output}");
}

#[test]
fn ctrl_c_lists_remaining_cases_of_streamed_suite() {
    let agent = FakeAgent::with_run(|run, _| run.gate("open").text("hi").finished());
    let line = |n: usize| format!("{{\"id\":\"c{n}\",\"input\":\"hi\"}}\n");
    let suite: String = (0..1_500).map(line).collect();
    let project = Project::with_agent(&agent).file("a.test.jsonl", &suite);
    let mut running =
        project.command(&["test", "-o", "out.json", "--parallel", "4"]).timeout(4 * TEST_TIMEOUT).spawn();
    agent.wait_for_requests(4, TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    let output = running.wait();
    let report = project.workspace.read_json("out.json");
    let count = |what: &str| report["summary"][what].as_u64();
    assert_eq!((output.code, count("passed"), count("skipped")), (130, Some(4), Some(1_496)));
}
