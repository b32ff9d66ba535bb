//! Cases that declare a required reliability.
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::common::letters::{case, letter_agent, project, unreachable_hook, with};
use crate::common::{Project, TEST_TIMEOUT, TestRun, echo_agent};

/// A case that always passes reaches this after four runs.
const HALF: &str = "reliability: { rate: 0.5, confidence: 0.9 }\n";

#[track_caller]
fn reliability_result(tested: &TestRun, case: &str) -> Value {
    let result = tested.case(case);
    json!([
        result["status"],
        result["error_kind"],
        result["reliability"]["status"],
        result["reliability"]["decided_after"],
        result["runs"]
    ])
}

#[test]
fn case_runs_until_reliability_is_decided() {
    let agent = letter_agent();
    let few = "reliability: { rate: 0.5, confidence: 0.9, max_runs: 6 }\n";
    let suite = [
        with("pppppppp", HALF),
        with("ffffffff", HALF),
        with("pffffffffff", HALF),
        with("pfpfpf", few),
        case("p"),
    ];
    let tested = project(&agent, &suite.join("---\n")).test(&["--parallel", "1"]);
    assert_eq!(
        reliability_result(&tested, "pppppppp"),
        json!(["passed", null, "PASS", 4, 4]),
        "{}",
        tested.output
    );
    assert_eq!(reliability_result(&tested, "ffffffff"), json!(["failed", "assertion", "FAIL", 4, 4]));
    assert_eq!(reliability_result(&tested, "pffffffffff"), json!(["failed", "assertion", "FLAKY", 11, 11]));
    assert_eq!(
        reliability_result(&tested, "pfpfpf"),
        json!(["failed", "inconclusive", "INCONCLUSIVE", null, 6])
    );
    assert_eq!(
        reliability_result(&tested, "p"),
        json!(["passed", null, null, null, null]),
        "nothing is declared for it"
    );
    assert_eq!(tested.output.code, 1);
    assert_eq!(
        tested.report["summary"]["reliability"],
        json!({"pass": 1, "fail": 1, "flaky": 1, "inconclusive": 1})
    );
    let error = |case: &str| tested.case(case)["error"].as_str().unwrap_or_default().to_string();
    assert_snapshot!(
        ["ffffffff", "pffffffffff", "pfpfpf"].map(error).join("\n"), @r#"
    FAIL: 0 of 4 runs passed; the declared rate of 50% is missed, with 90% confidence; run 1: expected the agent to say something that matches /good/, got "bad"
    FLAKY: 1 of 11 runs passed; the declared rate of 50% is missed, with 90% confidence; run 2: expected the agent to say something that matches /good/, got "bad"
    INCONCLUSIVE: 3 of 6 runs passed; the declared rate of 50% is not yet decided with 90% confidence; increase `max_runs` for a conclusion
    "#
    );
}

#[test]
fn run_with_only_reliable_cases_passes() {
    let agent = letter_agent();
    let output = project(&agent, &with("pppppppp", HALF)).hotseat(&["test", "--parallel", "1"]).redacted();
    assert_eq!(output.code, 0, "{output}");
    let from = output.stdout.find('ℹ').unwrap_or(0);
    assert_snapshot!(output.stdout[from..], @"
    ℹ Agent: http://127.0.0.1:[PORT]/
    ℹ Input: a.test.yaml (1 test case)
    ℹ Timeout: [TIME] per turn
    ℹ Reliability: declared by 1 case, each repeated until decided

    ───────────────────────────────────────────────────────────────
      Running Tests
    ───────────────────────────────────────────────────────────────
    ► [pppppppp] 100% (4/4) Stable avg:[TIME]
      PASS at least 50% declared, with 90% confidence: after 4 of at most 12 runs
      rate 60–100% (90%) · pass^4 100% · same answer 100% · [TIME]/[TIME]/[TIME]

    ───────────────────────────────────────────────────────────────
      Stability Analysis
    ───────────────────────────────────────────────────────────────
      Total runs:        4
      Overall pass rate: 100.0%
      Stable cases:      1
      Unstable cases:    0
      Reliability:       1 PASS

      [pppppppp] 100% (4/4) Stable avg:[TIME]

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     1
      Passed:    1
      Failed:    0
      Pass Rate: 100.0%
      Duration:  [TIME]

    ═══════════════════════════════════════════════════════════════
      ✨ ALL TESTS PASSED ✨
    ═══════════════════════════════════════════════════════════════
    ");
}

#[test]
fn in_flight_runs_finish_without_changing_result() {
    let agent = letter_agent();
    let eight = "reliability: { rate: 0.5, confidence: 0.9, max_runs: 8 }\n";
    let tested = project(&agent, &with("pppppppp", eight)).test(&["--parallel", "8"]);
    assert_eq!(
        reliability_result(&tested, "pppppppp"),
        json!(["passed", null, "PASS", 4, 8]),
        "{}",
        tested.output
    );
}

#[test]
fn invalid_attempts_do_not_count() {
    let agent = letter_agent();
    let suite = with("pppp", &(unreachable_hook(&agent, "one", "2|3") + HALF));
    let project = Project::with_config("target: { endpoint: '${url}' }\n").suite("a", &suite);
    let tested = project.test(&["--parallel", "1"]);
    assert_eq!(reliability_result(&tested, "pppp"), json!(["passed", null, "PASS", 6, 4]));
    assert_eq!((&tested.case("pppp")["invalid"], &tested.case("pppp")["redrawn"]), (&json!(2), &json!(2)));
}

#[test]
fn too_many_invalid_attempts_are_inconclusive() {
    let agent = letter_agent();
    let suite = with("ppp", &(unreachable_hook(&agent, "one", "2|3|4|5|6|7|8|9") + HALF));
    let project = Project::with_config("target: { endpoint: '${url}' }\n").suite("a", &suite);
    let tested = project.test(&["--parallel", "1", "--max-invalid", "2"]);
    assert_eq!(
        reliability_result(&tested, "ppp"),
        json!(["failed", "inconclusive", "INCONCLUSIVE", null, 1])
    );
    assert_eq!(tested.failure("ppp")["fault"], "infrastructure");
    let error =
        tested.case("ppp")["error"].as_str().expect("an error").split(": connect").next().unwrap_or_default();
    assert!(error.contains("3 were invalid, 2 of them replaced") && error.contains("; run 2: "), "{error}");
    assert_eq!((agent.requests().len(), tested.output.code), (1, 1), "{}", tested.output);
}

#[test]
fn case_reliability_overrides_project() {
    let agent = letter_agent();
    let text = format!("target: {{ endpoint: '{agent}' }}\n{HALF}");
    let suite = [
        case("pppp"),
        with("p", "reliability: false\n"),
        with("fp", "retries: 1\n"),
        with("pppppp", "reliability: { rate: 0.6, confidence: 0.9 }\n"),
    ];
    let project = Project::with_config(&text).suite("a", &suite.join("---\n"));
    let tested = project.test(&["--parallel", "1"]);
    assert_eq!(
        reliability_result(&tested, "pppp"),
        json!(["passed", null, "PASS", 4, 4]),
        "{}",
        tested.output
    );
    assert_eq!(reliability_result(&tested, "p"), json!(["passed", null, null, null, null]));
    assert_eq!(reliability_result(&tested, "fp"), json!(["passed", null, null, null, null]));
    assert_eq!(reliability_result(&tested, "pppppp"), json!(["passed", null, "PASS", 6, 6]));
    assert_eq!(tested.output.code, 0);
}

#[test]
fn runs_flag_overrides_reliability_with_warning() {
    let agent = letter_agent();
    let tested = project(&agent, &with("pp", HALF)).test(&["--runs", "1"]);
    assert_eq!(reliability_result(&tested, "pp"), json!(["passed", null, null, null, null]));
    assert_eq!(agent.requests().len(), 1);
    let words = "--runs overrides `reliability`, which is declared for 1 case and ignored in this run";
    assert!(tested.output.stderr.contains(words), "{}", tested.output);
}

#[test]
fn unanswered_case_fails_as_inconclusive() {
    let agent = letter_agent();
    let tested =
        project(&agent, &with("wwwwwwww", &format!("type: multi_turn\n{HALF}"))).test(&["--parallel", "1"]);
    assert_eq!(
        reliability_result(&tested, "wwwwwwww"),
        json!(["failed", "inconclusive", "INCONCLUSIVE", 4, 4]),
        "{}",
        tested.output
    );
    let error = tested.case("wwwwwwww")["error"].as_str().unwrap_or_default();
    assert!(error.starts_with("INCONCLUSIVE: 0 of 4 runs passed"), "{error}");
    assert!(error.contains("run 1 was skipped: Agent awaiting input"), "{error}");
    assert_eq!(tested.output.code, 1);
    let skipped = project(&agent, &with("wwwwwwww", &format!("skip: true\n{HALF}"))).test(&[]);
    assert_eq!((&skipped.case("wwwwwwww")["status"], skipped.output.code), (&json!("skipped"), 0));
}

#[test]
fn fail_fast_stops_on_missed_reliability() {
    let agent = letter_agent();
    let suite = [with("ffffffff", HALF), case("p")].join("---\n");
    let tested = project(&agent, &suite).test(&["--parallel", "1", "--fail-fast"]);
    assert_eq!((&tested.case("p")["status"], agent.requests().len()), (&json!("skipped"), 4));
}

#[test]
fn interrupted_case_is_inconclusive() {
    let agent = letter_agent();
    let project = project(&agent, &with("pgpp", HALF));
    let mut running = project.command(&["test", "-o", "out.json", "--parallel", "1"]).spawn();
    agent.wait_for_requests(2, TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    let output = running.wait();
    let report = project.workspace.read_json("out.json");
    let result = &report["results"][0];
    assert_eq!(
        (&result["status"], &result["reliability"]["status"]),
        (&json!("skipped"), &json!("INCONCLUSIVE"))
    );
    assert_eq!(
        (&result["skip_reason"], output.code),
        (&json!("2 of 2 runs passed: the run was interrupted"), 130)
    );
}

#[test]
fn rejects_unprovable_reliability() {
    let agent = echo_agent();
    let wrong = |project: &str, case: &str| {
        let text = format!("target: {{ endpoint: '{agent}' }}\n{project}");
        let output = Project::with_config(&text).suite("a", &with("p", case)).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{output}");
        output.stderr
    };
    assert_snapshot!(wrong("", "reliability: { rate: 0.9, max_runs: 10 }\n"), @"
    error: at least 33 runs are needed to confirm a rate of 90% with a confidence of 95%, even if every run passes
     --> a.test.yaml:2:37
      |
    2 | reliability: { rate: 0.9, max_runs: 10 }
      |                                     ^^
      |
      = help: increase `max_runs` to about 99, or declare a lower `rate` or `confidence`
    ");
    let most = wrong("", "reliability: { rate: 0.999, max_runs: 10 }\n");
    assert!(
        most.contains("a rate of 99.9% ") && most.contains("increase `max_runs` to about 10000,"),
        "{most}"
    );
    assert_snapshot!(wrong("", "reliability: { rate: 1 }\n"), @"
    error: `rate` must be between 0 and 1: no number of attempts can prove that a case always passes
     --> a.test.yaml:2:22
      |
    2 | reliability: { rate: 1 }
      |                      ^
      |
      = help: 0.9: nine of ten attempts must pass
    ");
    assert_snapshot!(wrong("", "reliability: { rate: 0.9 }\nretries: 2\n"), @"
    error: `retries` and `reliability` cannot be combined
     --> a.test.yaml:3:1
      |
    3 | retries: 2
      | ^^^^^^^
      |
      = help: a case with a declared reliability is never retried, since retries would distort its pass rate
    ");
    assert_snapshot!(wrong("runs: 3\nreliability: { rate: 0.9 }\n", ""), @"
    error: `runs` and `reliability` cannot be combined
     --> hotseat.yaml:2:1
      |
    2 | runs: 3
      | ^^^^
      |
      = help: use `max_runs` of `reliability` to limit the number of runs
    ");
    for case in [
        "reliability: { rate: 0 }\n",
        "reliability: { rate: 0.9, confidence: 1 }\n",
        "reliability: { rate: 0.9999, confidence: 0.99 }\n",
        "reliability: true\n",
        "reliability: { confidence: 0.9 }\n",
        "reliability: { rate: 0.9, runs: 3 }\n",
    ] {
        wrong("", case);
    }
    assert_eq!(agent.requests().len(), 0);
}
