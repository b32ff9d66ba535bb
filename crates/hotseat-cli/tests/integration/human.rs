//! Human input: at a terminal, through a pipe, and without any human.

use hotseat_testkit::FakeAgent;
use serde_json::{Value, json};

use crate::common::{Project, TEST_TIMEOUT, TestRun};

/// An agent that asks for the amount and then finishes.
fn agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        match request.last_user_text().as_str() {
            said if said.contains("250") => run.text("Done. Reference: EXP-1."),
            "evil" => run.text("\u{1b}[2JWhat now?\nYou> forged?"),
            _ => run.text("How much is it?"),
        }
        .finished()
    })
}

fn case(id: &str, more: Value) -> Value {
    let mut case = json!({"id": id, "turns": [{"input": "A dinner"}], "interactive": {"enabled": true},
        "final_assertions": [{"type": "contains", "value": "EXP-1"}]});
    case.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    case
}

fn project(agent: &FakeAgent, cases: &[Value]) -> Project {
    Project::with_agent(agent).cases(cases)
}

/// Runs `hotseat test` with these lines on stdin.
fn run_with_stdin(project: &Project, lines: impl AsRef<[u8]>, args: &[&str]) -> TestRun {
    project.test_with(args, |command| command.stdin(lines))
}

#[test]
fn piped_lines_answer_agent() {
    let agent = agent();
    let tested =
        run_with_stdin(&project(&agent, &[case("a", json!({}))]), "\n  it is 250 \nnever read\n", &[]);
    tested.assert_all_passed();
    let turns = tested.case("a")["turns"].as_array().unwrap();
    assert_eq!((&turns[1]["input"], &turns[1]["input_source"]), (&json!("it is 250"), &json!("interactive")));
    assert_eq!(turns.len(), 2, "the agent waits for nothing any more");
    assert_eq!(agent.requests()[1].last_user_text(), "it is 250");
}

#[test]
fn missing_human_does_not_block_run() {
    let agent = agent();
    let cases = [
        case("skips", json!({})),
        case("fails", json!({"on_missing_input": "fail"})),
        case("ends", json!({"on_missing_input": "end"})),
    ];
    let tested = run_with_stdin(&project(&agent, &cases), "", &[]);
    for (name, status) in [("skips", "skipped"), ("fails", "failed"), ("ends", "failed")] {
        assert_eq!(tested.case(name)["status"], status, "{name}");
    }
    assert_eq!(
        tested.case("skips")["skip_reason"],
        "Agent awaiting input, no next turn defined (standard input has ended)"
    );
    assert_eq!(tested.case("fails")["error_kind"], "no_input");
    assert_eq!(tested.case("ends")["error_kind"], "assertion");
}

/// The advice to use `--interactive` helps nobody who does.
#[test]
fn a_missing_answer_of_the_human_has_its_own_hint() {
    let agent = agent();
    let cases = [
        case("skips", json!({})),
        case("fails", json!({"on_missing_input": "fail"})),
        case(
            "ends",
            json!({"on_missing_input": "end", "final_assertions": [{"type": "contains", "value": "How"}]}),
        ),
        json!({"id": "begins", "interactive": {"enabled": true}, "final_assertions": [{"type": "contains", "value": "EXP-1"}]}),
    ];
    let tested = run_with_stdin(&project(&agent, &cases), "", &["--interactive"]);
    let output = tested.output.stdout.split_whitespace().collect::<Vec<_>>().join(" ").replace(" │ ", " ");
    let hint = "Run the case in a terminal, or pipe one line for each question to standard input";
    assert_eq!(output.matches(hint).count(), 3, "{}", tested.output);
    assert!(output.contains(&format!("Hint: {hint}; set `on_missing_input: end`")), "{}", tested.output);
    assert!(!output.contains("use --interactive"), "{}", tested.output);
    let ended = "the human gave no input for turn 2: standard input has ended (`on_missing_input: end`)";
    assert_eq!(tested.case("ends")["warnings"], json!([ended]));
    assert_eq!(tested.case("begins")["error"], "no initial input");
}

#[test]
fn a_human_who_is_not_asked_is_a_warning() {
    let agent = agent();
    let done = json!({"turns": [{"input": "It is 250"}]});
    let held = project(&agent, &[case("done", done.clone()), case("asked", json!({}))]);
    let tested = run_with_stdin(&held, "250\n", &[]);
    tested.assert_all_passed();
    let warning = "the human was not asked: the agent awaits no input after turn 1 (`completed`)";
    assert_eq!(tested.case("done")["warnings"], json!([warning]));
    assert_eq!(tested.case("asked")["warnings"], Value::Null);
    assert!(tested.output.stdout.contains(&format!("warning: {warning}")), "{}", tested.output);
    let rechecked = held.hotseat(&["recheck", "last"]);
    assert_eq!(rechecked.stdout.matches("the human was not asked").count(), 1, "{rechecked}");
    // Nobody else expects to be asked.
    let plain = json!({"id": "plain", "turns": [{"input": "It is 250"}]});
    let tested = run_with_stdin(&project(&agent, &[plain]), "", &[]);
    assert_eq!(tested.case("plain")["warnings"], Value::Null);
}

#[test]
fn a_line_that_cannot_be_sent_is_no_end_of_the_input() {
    let agent = agent();
    let held = project(&agent, &[case("first", json!({})), case("second", json!({}))]);
    let long = "x".repeat(8 * 1024 * 1024 + 1);
    for (line, reason) in
        [(&b"250 \xe9\n"[..], "is not UTF-8"), (&[long.as_bytes(), b"\n"].concat(), "is too long")]
    {
        let tested = run_with_stdin(&held, [line, b"250\n"].concat(), &[]);
        tested.assert_failure("first", "test_error", &[reason]);
        assert_eq!(tested.case("second")["total_turns"], 2, "{:#}", tested.case("second"));
    }
}

/// Standard input may be endless, and the agent may always ask.
#[test]
fn endless_input_ends_at_the_maximum_of_turns() {
    // A program gets one message a turn; the history of 1,000 requests over HTTP takes far longer to read.
    const SCRIPT: &str = r#"while read -r message; do
  echo turn >> turns
  echo '{"type": "text", "text": "Which one?"}'
  echo '{"type": "done"}'
done
"#;
    let project = |case: Value| {
        Project::with_config("target:\n  type: command\n  command: [sh, agent.sh]\n")
            .file("agent.sh", SCRIPT)
            .file("a.test.jsonl", &case.to_string())
    };
    let lines = "more\n".repeat(1_100);
    let endless = project(case("a", json!({})));
    let tested = run_with_stdin(&endless, &lines, &[]);
    assert_eq!(tested.case("a")["error_kind"], "max_turns");
    assert_eq!(tested.case("a")["error"], "max turns (1000) exceeded");
    assert_eq!(endless.workspace.read("turns").lines().count(), 1_000);
    let tested = run_with_stdin(&project(case("a", json!({"max_turns": 3}))), &lines, &[]);
    assert_eq!(tested.case("a")["error"], "max turns (3) exceeded");
}

#[test]
fn flags_control_human_input() {
    let agent = agent();
    let plain = json!({"id": "plain", "type": "multi_turn", "turns": [{"input": "A dinner"}]});
    let held = project(&agent, std::slice::from_ref(&plain));
    assert_eq!(run_with_stdin(&held, "250\n", &[]).case("plain")["status"], "skipped");
    assert_eq!(run_with_stdin(&held, "250\n", &["--interactive"]).case("plain")["total_turns"], 2);
    let both = &["--interactive", "--skip-interactive"];
    assert_eq!(run_with_stdin(&held, "250\n", both).case("plain")["status"], "skipped");

    let asks = project(&agent, &[case("asks", json!({}))]);
    assert_eq!(run_with_stdin(&asks, "250\n", &["--skip-interactive"]).case("asks")["status"], "skipped");
    let fails = &["--skip-interactive", "--on-missing-input", "fail"];
    assert_eq!(run_with_stdin(&asks, "250\n", fails).case("asks")["error_kind"], "no_input");
    let ends = &["--skip-interactive", "--on-missing-input=end"];
    assert_eq!(run_with_stdin(&asks, "250\n", ends).case("asks")["error_kind"], "assertion");
}

#[test]
fn human_can_end_or_skip() {
    let agent = agent();
    let ends = case("a", json!({"final_assertions": [{"type": "contains", "value": "How much"}]}));
    let held = project(&agent, &[ends]);
    assert_eq!(run_with_stdin(&held, "/end\n", &[]).case("a")["status"], "passed");
    let skipped = run_with_stdin(&held, "/skip\n", &[]);
    assert_eq!(skipped.case("a")["status"], "skipped");
    assert_eq!(skipped.case("a")["skip_reason"], "skipped by the human");
}

#[test]
fn human_at_terminal_sees_conversation_and_answers() {
    let agent = agent();
    let held = project(&agent, &[case("dinner", json!({}))]);
    let mut running = held.command(&["test", "--color", "never"]).terminal(60).timeout(TEST_TIMEOUT).spawn();
    let seen = running.wait_for_stdout("You> ");
    assert!(seen.contains("dinner, turn 2"), "{seen}");
    assert!(seen.contains("  User: A dinner\r\n  Agent: How much is it?"), "{seen}");
    // An accidental key press is not an answer.
    running.type_line("");
    running.type_line("250, please");
    running.wait().assert_stdout(0, &["PASSED"]);
}

/// What a human has typed when the time is up was meant for this case, not for the next one.
#[test]
fn late_keys_answer_no_other_case() {
    let agent = agent();
    let first = case("first", json!({"interactive": {"enabled": true, "timeout": "3s"}}));
    let held = project(&agent, &[first, case("second", json!({}))]);
    let mut running = held.command(&["test", "--color", "never"]).terminal(60).timeout(TEST_TIMEOUT).spawn();
    running.wait_for_stdout("You> ");
    running.press_keys("an answer for the fir");
    running.wait_for_stdout("second, turn 2");
    running.type_line("250, please");
    let output = running.wait();
    output.assert_stdout(0, &["PASSED"]);
    let said = agent.user_texts();
    assert_eq!(said, ["A dinner", "A dinner", "250, please"], "{output}");
}

#[test]
fn end_of_terminal_input_is_not_an_answer() {
    let agent = agent();
    let held = project(&agent, &[case("dinner", json!({"on_missing_input": "fail"}))]);
    let mut running = held.command(&["test"]).terminal(60).timeout(TEST_TIMEOUT).spawn();
    running.wait_for_stdout("You> ");
    running.press_ctrl_d();
    let output = running.wait();
    assert_eq!(output.code, 1, "{output}");
}

#[test]
fn ctrl_c_stops_run_waiting_for_human() {
    let agent = agent();
    let held = project(&agent, &[case("dinner", json!({}))]);
    let mut running = held.command(&["test"]).terminal(60).timeout(TEST_TIMEOUT).spawn();
    running.wait_for_stdout("You> ");
    running.press_ctrl_c();
    running.wait_for_stdout("waiting for running cases");
    running.press_ctrl_c();
    let output = running.wait();
    assert_eq!(output.code, 130, "{output}");
}

#[test]
fn agent_output_cannot_control_terminal() {
    let agent = agent();
    let evil = json!({"id": "evil", "turns": [{"input": "evil"}], "interactive": {"enabled": true}, "on_missing_input": "end"});
    let held = project(&agent, &[evil]);
    let mut running = held.command(&["test", "--color", "never"]).terminal(60).timeout(TEST_TIMEOUT).spawn();
    let seen = running.wait_for_stdout("\r\nYou> ");
    running.type_line("/end");
    let output = running.wait();
    assert_eq!(output.code, 0, "{output}");
    assert!(!seen.contains("\u{1b}[2JWhat"), "{seen:?}");
    assert!(seen.contains("  Agent: ␛[2JWhat now?\r\n    You> forged?"), "{seen:?}");
}

#[test]
fn prompts_one_human_question_at_a_time() {
    let agent = agent();
    let cases: Vec<Value> = (0..6).map(|n| case(&format!("c{n}"), json!({}))).collect();
    let tested = run_with_stdin(&project(&agent, &cases), "250\n".repeat(6), &["--parallel", "6"]);
    tested.assert_all_passed();
}

#[test]
fn human_answer_times_out() {
    let agent = agent();
    let held = project(&agent, &[case("a", json!({"interactive": {"enabled": true, "timeout": "50ms"}}))]);
    // A terminal without input: stdin does not end.
    let running = held.command(&["test", "-o", "out.json"]).terminal(80).timeout(TEST_TIMEOUT).spawn();
    let output = running.wait();
    assert_eq!(output.code, 0, "{output}");
    let report = held.workspace.read_json("out.json");
    assert_eq!(
        report["results"][0]["skip_reason"],
        "Agent awaiting input, no next turn defined (no input was typed in time)"
    );
}
