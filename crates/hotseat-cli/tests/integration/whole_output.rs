//! Long conversations on the console: folded by default, complete in verbose mode.
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeRequest};
use serde_json::{Value, json};

use crate::common::{Project, unreachable_address};

/// An agent whose answers, arguments and results are longer than a line, with text between its calls.
fn talkative_agent() -> FakeAgent {
    FakeAgent::start(|request: &FakeRequest| {
        let number = request.user_texts().len();
        let call = |run: FakeRun, n: usize| {
            let id = format!("c-{number}-{n}");
            run.tool(
                &id,
                "look_up",
                &json!({"key": format!("KEY{n} {}end-of-key", "k ".repeat(150))}),
                Some(json!(format!("{}end-of-result-{n}", "r ".repeat(150)))),
            )
        };
        let run = FakeRun::for_request(request).started().text(&format!("First words of {number}."));
        let run = call(call(run, 1), 2).text("Words in the middle.\n\n  Second paragraph.");
        call(run, 3).text(&format!("{}end-of-answer", "long answer ".repeat(40))).finished()
    })
}

fn suite(turns: usize) -> String {
    let turn = |n: usize| format!("  - user: question {n} {}end-of-question\n", "please ".repeat(30));
    format!("name: a\nturns:\n{}", (1..=turns).map(turn).collect::<String>())
}

/// Joins wrapped lines: margins and line breaks become one space.
fn joined(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || "│├└─".contains(c))
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn verbose_mode_prints_whole_texts() {
    let agent = talkative_agent();
    let project = Project::with_agent(&agent).suite("a", &suite(2));
    let ends = [
        "end-of-question",
        "end-of-key",
        "end-of-result-1",
        "end-of-result-3",
        "end-of-answer",
        "Second paragraph.",
    ];
    for columns in ["40", "100", "200"] {
        let shown = project.command(&["test", "-v"]).env("COLUMNS", columns).run();
        let width: usize = columns.parse().expect("a number");
        assert!(shown.stdout.lines().all(|line| line.chars().count() <= width), "{shown}");
        for text in
            [shown.stdout, project.command(&["show", "last", "-v"]).env("COLUMNS", columns).run().stdout]
        {
            let text = joined(&text);
            for end in ends {
                assert!(text.contains(end), "{end} is missing with {columns} columns: {text}");
            }
        }
    }
    // A pipe without a width gets every line of a text as one line.
    for args in [&["test", "-v"][..], &["show", "last", "-v"], &["show", "last", "a"]] {
        let piped = project.hotseat(args).stdout;
        let lines: Vec<&str> = piped.lines().collect();
        let has =
            |begin: &str, end: &str| lines.iter().any(|line| line.contains(begin) && line.contains(end));
        assert!(has("KEY1", "end-of-result-1") && has("long answer", "end-of-answer\""), "{args:?}: {piped}");
        assert!(has("User: \"question 1", "end-of-question\""), "{args:?}: {piped}");
    }
    let short = project.hotseat(&["test"]).stdout;
    assert!(!short.contains("end-of-answer") && short.contains("PASSED"), "{short}");
}

/// Texts and calls of a turn appear in the order in which the agent sent them.
#[test]
fn texts_and_calls_are_in_the_order_of_their_events() {
    let agent = talkative_agent();
    let project = Project::with_agent(&agent).suite("a", &suite(1));
    let shown = project.hotseat(&["test", "-v", "-o", "out/short.md"]).stdout;
    assert_ordered(&shown);
    // The summary in Markdown and the transcript of JUnit have the order of the console.
    let failing = Project::with_agent(&agent)
        .suite("a", &format!("{}assert: {{ text: {{ must_match: never }} }}\n", suite(1)));
    failing.hotseat(&["test", "-o", "out/short.md", "-o", "out/junit.xml"]);
    assert_ordered(&failing.workspace.read("out/short.md"));
    assert_ordered(&failing.workspace.read("out/junit.xml"));
}

#[track_caller]
fn assert_ordered(text: &str) {
    let mut rest = text;
    for part in ["First words", "KEY1", "KEY2", "Words in the middle", "KEY3", "long answer"] {
        let Some(at) = rest.find(part) else { panic!("{part} is missing or too early: {text}") };
        rest = &rest[at..];
    }
}

/// A recording has no times if it was imported; its events still have an order.
#[test]
fn replays_of_one_recording_give_one_output() {
    let agent = talkative_agent();
    let project = Project::with_agent(&agent).suite("a", &suite(3));
    project.hotseat(&["test", "--record", "recordings"]);
    let folder = project.workspace.path("recordings");
    let path = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let mut recording: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let timed = recording.clone();
    remove_times(&mut recording);
    assert_ne!(recording, timed);
    for recording in [timed, recording] {
        std::fs::write(&path, recording.to_string()).unwrap();
        let config = format!("target: {{ endpoint: '{}' }}\n", unreachable_address());
        let project = Project::with_config(&config).suite("a", &suite(3));
        let from = format!("replay:{}", folder.display());
        let outputs: Vec<String> =
            (0..20).map(|_| project.hotseat(&["test", "-v", "-n", &from]).redacted().stdout).collect();
        assert!(outputs[0].contains("ALL TESTS PASSED"), "{}", outputs[0]);
        assert_ordered(&outputs[0]);
        for output in &outputs[1..] {
            assert_eq!(*output, outputs[0]);
        }
    }
}

fn remove_times(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for key in ["at_ms", "started_ms", "duration_ms"] {
                members.remove(key);
            }
            members.values_mut().for_each(remove_times);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_times),
        _ => {}
    }
}

/// Answers `turn N`, and calls a tool in turn 18.
fn patient_agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let said = request.last_user_text();
        let run = match said.as_str() {
            "turn 18" => run.tool("c", "pay", &json!({"amount": 5}), Some(json!("paid"))),
            _ => run,
        };
        run.text(&format!("Answer to {said}.")).finished()
    })
}

/// A conversation of which one turn fails, or none.
fn long_conversation(agent: &FakeAgent, turns: usize, failing: usize, assertions: &str) -> Project {
    let turn = |n: usize| {
        let pattern = if n == failing { "never" } else { "Answer" };
        format!("  - {{ user: turn {n}, assert: {{ text: {{ must_match: {pattern} }} }} }}\n")
    };
    let turns: String = (1..=turns).map(turn).collect();
    Project::with_agent(agent).suite("a", &format!("name: a\nturns:\n{turns}{assertions}"))
}

#[test]
fn a_long_failed_case_folds_passed_turns() {
    let agent = patient_agent();
    let heads = |project: &Project, args: &[&str]| -> Vec<String> {
        let shown = project.hotseat(&[&["test"], args].concat()).redacted().stdout;
        let heads = shown.lines().filter(|line| line.starts_with("  ├─ ") || line.starts_with("  └─ "));
        heads.map(|line| line.trim_start_matches(['├', '└', '─', ' ']).to_string()).collect()
    };
    let failed_turn = long_conversation(&agent, 40, 18, "");
    assert_eq!(
        heads(&failed_turn, &[])[..3],
        ["Turns 1-17: PASSED", "Turn 18: \"turn 18\" → FAILED ([TIME])", "Turns 19-40: not run"]
    );
    assert!(heads(&failed_turn, &["-v"]).contains(&"Turn 5: \"turn 5\" → PASSED ([TIME])".to_string()));

    // The turn with the call that a check of the case compares is displayed, and the last one.
    let assertion = "assert: { type: tool_called, name: pay, arguments: { amount: 6 } }\n";
    let shown = heads(&long_conversation(&agent, 40, 0, assertion), &[]);
    assert_eq!(
        shown[..5],
        [
            "Turns 1-17: PASSED",
            "Turn 18: \"turn 18\" → PASSED ([TIME])",
            "Turns 19-39: PASSED",
            "Turn 40: \"turn 40\" → PASSED ([TIME])",
            "Final Assertions: FAILED",
        ],
        "{shown:#?}"
    );
    // Short conversations are displayed completely.
    let short = heads(&long_conversation(&agent, 8, 8, ""), &[]);
    assert_eq!(short.iter().filter(|head| head.starts_with("Turn ")).count(), 8, "{short:#?}");
}
