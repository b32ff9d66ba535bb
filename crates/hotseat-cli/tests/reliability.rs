//! Cases that declare how reliable the agent has to be.
#![cfg(unix)]

mod common;

use insta::assert_snapshot;
use serde_json::{Value, json};

use common::letters::{case, lettered, project, spoiled, with};
use common::{LONG, Project, Tested, echo_agent};

/// Four runs show that a case that always passes reaches this.
const HALF: &str = "reliability: { rate: 0.5, confidence: 0.9 }\n";

#[track_caller]
fn promise(tested: &Tested, case: &str) -> Value {
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
fn a_case_is_run_until_it_is_known_how_reliable_it_is() {
    let agent = lettered();
    let few = "reliability: { rate: 0.5, confidence: 0.9, max_runs: 6 }\n";
    let suite = [
        with("pppppppp", HALF),
        with("ffffffff", HALF),
        with("pffffffffff", HALF),
        with("pfpfpf", few),
        case("p"),
    ];
    let tested = project(&agent, &suite.join("---\n")).test(&["--parallel", "1"]);
    assert_eq!(promise(&tested, "pppppppp"), json!(["passed", null, "PASS", 4, 4]), "{}", tested.output);
    assert_eq!(promise(&tested, "ffffffff"), json!(["failed", "assertion", "FAIL", 4, 4]));
    assert_eq!(promise(&tested, "pffffffffff"), json!(["failed", "assertion", "FLAKY", 11, 11]));
    assert_eq!(promise(&tested, "pfpfpf"), json!(["failed", "inconclusive", "INCONCLUSIVE", null, 6]));
    assert_eq!(
        promise(&tested, "p"),
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
        ["ffffffff", "pffffffffff", "pfpfpf"].map(error).join("\n"), @"
    FAIL: 0 of 4 runs passed; 50% is declared and missed, with 90% confidence; run 1: does not hold: the agent says something that fits /good/
    FLAKY: 1 of 11 runs passed; 50% is declared and missed, with 90% confidence; run 2: does not hold: the agent says something that fits /good/
    INCONCLUSIVE: 3 of 6 runs passed; that does not tell whether the declared 50% is reached: the rate lies between 22% and 78%, with 90% confidence; more runs would tell (`max_runs`)
    "
    );
}

#[test]
fn a_run_of_nothing_but_promises_that_are_kept_passes() {
    let agent = lettered();
    let output = project(&agent, &with("pppppppp", HALF)).hotseat(&["test", "--parallel", "1"]).redacted();
    assert_eq!(output.code, 0, "{output}");
    let from = output.stdout.find('ℹ').unwrap_or(0);
    assert_snapshot!(output.stdout[from..], @"
    ℹ Agent: http://127.0.0.1:[PORT]/
    ℹ Input: a.test.yaml (1 test case)
    ℹ Timeout: [TIME] per turn
    ℹ Reliability: declared by 1 case, each run until it is known

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
fn runs_that_had_begun_when_it_was_known_come_to_their_end_and_change_nothing() {
    let agent = lettered();
    let eight = "reliability: { rate: 0.5, confidence: 0.9, max_runs: 8 }\n";
    let tested = project(&agent, &with("pppppppp", eight)).test(&["--parallel", "8"]);
    assert_eq!(promise(&tested, "pppppppp"), json!(["passed", null, "PASS", 4, 8]), "{}", tested.output);
}

#[test]
fn runs_that_say_nothing_decide_nothing() {
    let agent = lettered();
    let suite = with("pppp", &(spoiled(&agent, "one", "2|3") + HALF));
    let project = Project::with("target: { endpoint: '${url}' }\n").suite("a", &suite);
    let tested = project.test(&["--parallel", "1"]);
    assert_eq!(promise(&tested, "pppp"), json!(["passed", null, "PASS", 6, 4]));
    assert_eq!((&tested.case("pppp")["invalid"], &tested.case("pppp")["redrawn"]), (&json!(2), &json!(2)));
}

#[test]
fn a_case_of_which_too_much_is_spoiled_is_inconclusive() {
    let agent = lettered();
    let suite = with("ppp", &(spoiled(&agent, "one", "2|3|4|5|6|7|8|9") + HALF));
    let project = Project::with("target: { endpoint: '${url}' }\n").suite("a", &suite);
    let tested = project.test(&["--parallel", "1", "--redraws", "2"]);
    assert_eq!(promise(&tested, "ppp"), json!(["failed", "inconclusive", "INCONCLUSIVE", null, 1]));
    assert_eq!(tested.failure("ppp")["fault"], "infrastructure");
    let error =
        tested.case("ppp")["error"].as_str().expect("an error").split(": connect").next().unwrap_or_default();
    assert!(error.contains("1 says nothing about the agent") && error.contains("; run 2: "), "{error}");
    assert_eq!((agent.requests().len(), tested.output.code), (1, 1), "{}", tested.output);
}

#[test]
fn the_project_declares_for_all_and_cases_say_better() {
    let agent = lettered();
    let text = format!("target: {{ endpoint: '{}' }}\n{HALF}", agent.url());
    let suite = [
        case("pppp"),
        with("p", "reliability: false\n"),
        with("fp", "retries: 1\n"),
        with("pppppp", "reliability: { rate: 0.6, confidence: 0.9 }\n"),
    ];
    let project = Project::with(&text).suite("a", &suite.join("---\n"));
    let tested = project.test(&["--parallel", "1"]);
    assert_eq!(promise(&tested, "pppp"), json!(["passed", null, "PASS", 4, 4]), "{}", tested.output);
    assert_eq!(promise(&tested, "p"), json!(["passed", null, null, null, null]));
    assert_eq!(promise(&tested, "fp"), json!(["passed", null, null, null, null]));
    assert_eq!(promise(&tested, "pppppp"), json!(["passed", null, "PASS", 6, 6]));
    assert_eq!(tested.output.code, 0);
}

#[test]
fn whoever_says_how_many_runs_puts_promises_aside_and_is_told() {
    let agent = lettered();
    let tested = project(&agent, &with("pp", HALF)).test(&["--runs", "1"]);
    assert_eq!(promise(&tested, "pp"), json!(["passed", null, null, null, null]));
    assert_eq!(agent.requests().len(), 1);
    let words =
        "--runs says how many runs there are: `reliability`, which is declared for 1 case, is put aside";
    assert!(tested.output.stderr.contains(words), "{}", tested.output);
}

#[test]
fn a_case_in_which_nobody_answers_the_agent_is_skipped_and_not_known() {
    let agent = lettered();
    let tested =
        project(&agent, &with("wwwwwwww", &format!("type: multi_turn\n{HALF}"))).test(&["--parallel", "1"]);
    assert_eq!(
        promise(&tested, "wwwwwwww"),
        json!(["skipped", null, "INCONCLUSIVE", 4, 4]),
        "{}",
        tested.output
    );
}

#[test]
fn fail_fast_stops_when_a_promise_is_broken() {
    let agent = lettered();
    let suite = [with("ffffffff", HALF), case("p")].join("---\n");
    let tested = project(&agent, &suite).test(&["--parallel", "1", "--fail-fast"]);
    assert_eq!((&tested.case("p")["status"], agent.requests().len()), (&json!("skipped"), 4));
}

#[test]
fn what_is_cut_short_is_not_known() {
    let agent = lettered();
    let project = project(&agent, &with("pgpp", HALF));
    let mut running = project.command(&["test", "-o", "out.json", "--parallel", "1"]).spawn();
    agent.wait_for_requests(2, LONG);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    agent.release("open");
    let output = running.wait();
    let report: Value = serde_json::from_str(&project.workspace.read("out.json")).expect("a whole report");
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
fn what_can_never_be_shown_is_refused() {
    let agent = echo_agent();
    let wrong = |project: &str, case: &str| {
        let text = format!("target: {{ endpoint: '{}' }}\n{project}", agent.url());
        let output = Project::with(&text).suite("a", &with("p", case)).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{output}");
        output.stderr
    };
    assert_snapshot!(wrong("", "reliability: { rate: 0.9, max_runs: 10 }\n"), @"
    error: 33 runs are needed to show that a case that always passes has a rate of 0.9, with a confidence of 0.95
     --> a.test.yaml:2:37
      |
    2 | reliability: { rate: 0.9, max_runs: 10 }
      |                                     ^^
      |
      = help: raise `max_runs` to 99 or so, or declare a lower `rate` or `confidence`
    ");
    assert_snapshot!(wrong("", "reliability: { rate: 1 }\n"), @"
    error: `rate` lies between 0 and 1: no number of runs can show that something always passes
     --> a.test.yaml:2:22
      |
    2 | reliability: { rate: 1 }
      |                      ^
      |
      = help: 0.9: nine of ten attempts have to pass
    ");
    assert_snapshot!(wrong("", "reliability: { rate: 0.9 }\nretries: 2\n"), @"
    error: `retries` and `reliability`: one of the two
     --> a.test.yaml:3:1
      |
    3 | retries: 2
      | ^^^^^^^
      |
      = help: a case that is run until its rate is known is never tried again, for that would hide the rate
    ");
    assert_snapshot!(wrong("runs: 3\nreliability: { rate: 0.9 }\n", ""), @"
    error: `runs` and `reliability`: one of the two
     --> hotseat.yaml:2:1
      |
    2 | runs: 3
      | ^^^^
      |
      = help: `max_runs` of `reliability` says how many runs there may be
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
