//! Comparison of two runs.
use std::sync::atomic::{AtomicUsize, Ordering};

use hotseat_testkit::completions::text_reply;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, ProgramOutput};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::common::letters::{case, cases, letter_agent, project, with};
use crate::common::{HOTSEAT, Project, TEST_TIMEOUT, echo_agent};

/// Runs all cases and writes a report.
#[track_caller]
fn write_report(project: &Project, file: &str, args: &[&str]) {
    let output = project.hotseat(&[&["test", "--parallel", "1", "-o", file], args].concat());
    assert!(output.code <= 1, "{output}");
}

#[track_caller]
fn run_compare(project: &Project, args: &[&str]) -> (ProgramOutput, Value) {
    let output = project.hotseat(&[&["compare", "--json"], args].concat());
    let found: Value =
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output}"));
    assert_eq!(found["exit_code"], output.code, "{output}");
    (output, found)
}

/// Console output without values that differ from run to run.
fn normalized_output(output: &ProgramOutput) -> String {
    let lines = output.redacted().stdout;
    let lines = lines.lines().map(|line| match line.split_once(" · ") {
        Some((before, _)) if line.starts_with("before:") || line.starts_with("after:") => {
            format!("{before} · …")
        }
        _ if line.starts_with("  time:") => "  time: …".to_string(),
        _ => line.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// In a run they count as attempts that did not pass; without them, one of four would be all of one.
#[test]
fn skipped_attempts_count_as_in_the_run() {
    let asked = AtomicUsize::new(0);
    // The second run asks for input in three of four attempts.
    let agent = FakeAgent::start(move |_| {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        FakeReply::json(200, &json!({"reply": "ok", "waits": number >= 32 && !number.is_multiple_of(4)}))
    });
    let suite: Vec<String> = (0..8)
        .map(|number| {
            format!("name: c{number}\nturns: [{{ user: hi, assert: {{ text: {{ must_match: ok }} }} }}]\n")
        })
        .collect();
    let config = format!(
        "target:\n  type: http\n  endpoint: '{agent}'\n  body: {{ text: '{{{{message}}}}' }}\n  map: {{ reply: $.reply, awaiting: $.waits }}\n"
    );
    let project = Project::with_config(&config).suite("a", &suite.join("---\n"));
    let options = ["--runs", "4", "--on-missing-input", "skip"];
    write_report(&project, "before.json", &options);
    write_report(&project, "after.json", &options);
    let (output, found) = run_compare(&project, &["before.json", "after.json"]);
    assert_eq!(output.code, 1, "{output}");
    let rate = &found["pass_rate"];
    assert_eq!((&rate["after"]["passed"], &rate["claim"]), (&json!(8), &json!("worse")), "{rate:#}");
}

/// A path for each difference would take 20 GB.
#[test]
fn many_differences_below_a_long_name_are_compared() {
    let asked = AtomicUsize::new(0);
    let agent = FakeAgent::with_run(move |run, _| {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        let arguments = json!({("k".repeat(1_000_000)): vec![number; 20_000]});
        run.tool("c1", "book", &arguments, Some(json!(true))).text(["yes", "no"][number]).finished()
    });
    let suite = "name: a\nturns: [{ user: book, assert: { text: { must_match: yes } } }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    write_report(&project, "before.json", &[]);
    write_report(&project, "after.json", &[]);
    let output = project.hotseat(&["compare", "before.json", "after.json"]);
    output.assert_stdout(0, &["book with different arguments: kkk"]);
}

#[test]
fn detects_a_regression() {
    let agent = letter_agent();
    let project = project(&agent, &cases(&["pppppfffff", "pppppppppp", "ppfppppfpp", "pppppppppppp"]));
    write_report(&project, "before.json", &["--runs", "5"]);
    write_report(&project, "after.jsonl", &["--runs", "5"]);
    let output = project.hotseat(&["compare", "before.json", "after.jsonl"]);
    assert_eq!(output.code, 1, "{output}");
    assert_snapshot!(normalized_output(&output), @r#"
    before: before.json · …
    after:  after.jsonl · …
    cases:  4 in both and compared

    pass rate: 95.0% (19/20, 76–99%) → 70.0% (14/20, 48–85%)
      run by run: 95.0% ± 10.0 → 70.0% ± 10.0; their ranges overlap
      not significant (p = 0.050)

    1 case significantly worse
      ✗ pppppfffff 5/5 → 0/5
          they diverge in turn 1:
            before (run 1): the agent says “good”
            after (run 1): the agent says “bad”
          error: expected the agent to say something that matches /good/, got "bad"

    average per case
      time: …
      turns: 1 → 1

    WORSE: significantly more failures than before (95% confidence)
    "#);
    let (_, found) = run_compare(&project, &["before.json", "after.jsonl"]);
    let claims: Vec<Value> = found["cases"]
        .as_array()
        .expect("cases")
        .iter()
        .map(|case| json!([case["id"], case["claim"], case["before"]["passed"], case["after"]["passed"]]))
        .collect();
    assert_eq!(
        json!(claims),
        json!([
            ["pppppfffff", "worse", 5, 0],
            ["pppppppppp", "nothing", 5, 5],
            ["ppfppppfpp", "nothing", 4, 4],
            ["pppppppppppp", "nothing", 5, 5]
        ])
    );
    let (turned, found) = run_compare(&project, &["after.jsonl", "before.json"]);
    assert_eq!((turned.code, &found["cases"][0]["claim"]), (0, &json!("better")));
}

#[test]
fn identical_runs_show_no_difference() {
    let agent = letter_agent();
    let project = project(&agent, &cases(&["ppfpppfppp", "pfppppppfp", "pppppppppp"]));
    write_report(&project, "before.json", &["--runs", "5"]);
    write_report(&project, "after.json", &["--runs", "5"]);
    // Some shells begin a file with a byte order mark.
    let after = project.workspace.read("after.json");
    project.workspace.file("after.json", &format!("\u{FEFF}{after}"));
    let (output, found) = run_compare(&project, &["before.json", "after.json"]);
    assert_eq!(
        (output.code, &found["pass_rate"]["claim"], &found["worse"]),
        (0, &json!("nothing"), &json!(false))
    );
    let other =
        |key: &str| found[key].as_array().expect("a list").iter().all(|one| one["claim"] == "nothing");
    assert!(["cases", "figures", "tools", "evaluations"].into_iter().all(other), "{output}");
}

#[test]
fn single_extra_failure_is_significant_only_on_request() {
    let agent = letter_agent();
    let project = project(&agent, &cases(&["pf", "pp", "fp"]));
    write_report(&project, "before.json", &[]);
    write_report(&project, "after.json", &[]);
    let output = project.hotseat(&["compare", "before.json", "after.json"]);
    assert_eq!(output.code, 0, "{output}");
    assert_snapshot!(normalized_output(&output), @r#"
    before: before.json · …
    after:  after.json · …
    cases:  3 in both and compared

    pass rate: 66.7% (2/3, 21–94%) → 66.7% (2/3, 21–94%)
      too few attempts to detect a change: raise `--runs` in both runs

    1 case newly failing; not significant
      ✗ pf 1/1 → 0/1
          they diverge in turn 1:
            before: the agent says “good”
            after:  the agent says “bad”
          error: expected the agent to say something that matches /good/, got "bad"

    1 case newly passing; not significant
      ✓ fp 0/1 → 1/1
          they diverge in turn 1:
            before: the agent says “bad”
            after:  the agent says “good”

    average per case
      time: …
      turns: 1 → 1

    nothing got significantly worse (95% confidence), though 1 case newly fails
    "#);
    assert_eq!(project.hotseat(&["compare", "--strict", "before.json", "after.json"]).code, 1);
    assert_eq!(project.hotseat(&["compare", "--strict", "before.json", "before.json"]).code, 0);
}

/// An agent that calls a search tool before it answers, with other arguments (`after`) from the second
/// conversation on.
fn searching_agent(before: Value, after: Value) -> FakeAgent {
    let told = AtomicUsize::new(0);
    FakeAgent::with_run(move |run, _| {
        let arguments = if told.fetch_add(1, Ordering::SeqCst) == 0 { &before } else { &after };
        let run = run.tool("c1", "find", &json!({"all": true}), Some(json!("ok")));
        let run = match arguments {
            Value::Null => run,
            arguments => run.tool("c2", "book", arguments, Some(json!("booked"))),
        };
        run.text("Done. \u{1b}[31m::error::").finished()
    })
}

const BOOKS: &str = "id: books\nturns: [{ user: go, assert: { tools: { require: [{ name: book, args_match: { to: SEA } }] } } }]\n";

#[test]
fn reports_where_conversations_diverge() {
    for (after, place, words) in [
        (
            json!({"to": "JFK", "bags": [1]}),
            json!([1, 2]),
            "book with different arguments: to: \"SEA\" → \"JFK\"; bags[0]: nothing → 1",
        ),
        (Value::Null, json!([1, 2]), "after:  the agent says"),
    ] {
        let agent = searching_agent(json!({"to": "SEA", "bags": []}), after);
        let project = Project::with_agent(&agent).suite("a", BOOKS);
        write_report(&project, "before.json", &[]);
        write_report(&project, "after.json", &[]);
        let (output, found) = run_compare(&project, &["before.json", "after.json"]);
        let parting = &found["cases"][0]["parting"];
        assert_eq!(json!([parting["turn"], parting["call"]]), place, "{output}");
        assert_eq!(parting["before"]["does"]["tool"], "book");
        let output = project.hotseat(&["compare", "before.json", "after.json"]);
        assert!(output.stdout.contains(words), "{output}");
        assert!(
            !output.stdout.contains('\u{1b}') && !output.stdout.lines().any(|line| line.starts_with("::")),
            "{output}"
        );
    }
}

#[test]
fn lists_incomparable_cases() {
    let agent = letter_agent();
    let folder = project(&agent, &(cases(&["pp", "ppp"]) + "---\n" + &case("pppp")));
    write_report(&folder, "before.json", &[]);
    let other = case("pp").replace("must_match: good", "must_match: goo");
    let asked = case("ppp").replace("turns: [{", "state: { a: 1 }\nturns: [{");
    // Case names and key order do not matter.
    let moved = format!("name: another name\ntags: [x]\n{}", case("pppp"));
    folder.workspace.file("a.test.yaml", &[other, asked, moved, case("ppppp")].join("---\n"));
    write_report(&folder, "after.json", &[]);
    let (_, found) = run_compare(&folder, &["before.json", "after.json"]);
    let why: Vec<Value> = found["not_compared"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|not| json!([not["id"], not["why"]]))
        .collect();
    assert_eq!(
        json!(why),
        json!([["pp", "different checks"], ["ppp", "the user inputs or the agent context differ"]])
    );
    assert_eq!(
        (&found["cases_compared"], &found["cases_added"]),
        (&json!(1), &json!(["ppppp"])),
        "{found:#}"
    );

    let agent = letter_agent();
    let folder = project(&agent, &case("p"));
    write_report(&folder, "one.json", &[]);
    folder.workspace.file("a.test.yaml", &case("pp"));
    write_report(&folder, "two.json", &[]);
    folder.hotseat(&["compare", "one.json", "two.json"]).assert_stdout(4, &["nothing could be compared"]);

    let folder = project(&agent, "id: a\nturns: [{ user: o }]\n");
    write_report(&folder, "one.json", &[]);
    folder.workspace.file("a.test.yaml", "id: a\nturns: [{ user: oo }]\n");
    write_report(&folder, "two.json", &[]);
    folder
        .hotseat(&["compare", "one.json", "two.json"])
        .assert_stdout(4, &["`--other-inputs` compares them"]);
}

#[test]
fn informational_checks_are_compared_without_effect() {
    let agent = letter_agent();
    let suite = |letters: &str| {
        format!(
            "id: {letters}\nturns: [{{ user: {letters}, evaluate: {{ text: {{ must_match: good }} }} }}]\n"
        )
    };
    let letters = ["pppppfffff", "pppppfffff0", "pppppfffff1"].map(suite).join("---\n");
    let project = project(&agent, &letters);
    write_report(&project, "before.json", &["--runs", "5"]);
    write_report(&project, "after.json", &["--runs", "5"]);
    let (output, found) = run_compare(&project, &["before.json", "after.json"]);
    let check = &found["evaluations"][0];
    assert_eq!((&check["claim"], output.code), (&json!("worse"), 0), "{output}");
    assert_eq!((&check["before"]["holds"], &check["after"]["holds"]), (&json!(15), &json!(0)));
}

#[test]
fn rejects_files_that_are_not_reports() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).file("words.json", "hello").file("other.json", "{\"a\": 1}");
    let output = project.hotseat(&["compare", "gone.json", "words.json"]);
    assert_eq!(output.code, 2, "{output}");
    assert_snapshot!(output.stderr, @"
    error: gone.json: cannot be read: No such file or directory (os error 2)
     |
     = help: name a report written by `hotseat test -o FILE.json` or `-o FILE.jsonl`, or a saved run by its id in `hotseat runs`

    error: words.json: this is not JSON (expected value at line 1 column 1)
     |
     = help: name a report written by `hotseat test -o FILE.json` or `-o FILE.jsonl`, or a saved run by its id in `hotseat runs`
    ");
    project.workspace.file("list.json", "[]");
    for arguments in [&["compare", "list.json", "list.json"][..], &["extract", "list.json"]] {
        let output = project.hotseat(arguments);
        let expected = "list.json: this is not a run report: it is not a JSON object";
        output.assert_stderr(2, &[expected]);
        assert!(output.stderr.contains("name a report written by"), "{output}");
    }
    let output = project.hotseat(&["compare", "other.json", "other.json"]);
    assert!(output.stderr.contains("other.json: this is not a run report: it has no results"), "{output}");
    for confidence in ["0", "1", "x", "-1"] {
        assert_eq!(project.hotseat(&["compare", "a", "b", "--confidence", confidence]).code, 2);
    }
}

#[test]
fn rates_next_to_the_limits_are_not_rounded_to_them() {
    let report = |passed: usize| {
        let status = |n: usize| if n < passed { "passed" } else { "failed" };
        let runs: Vec<Value> = (0..2500).map(|n| json!({"run": n + 1, "status": status(n)})).collect();
        json!({"results": [{"id": "a", "status": "failed", "run_details": runs}]}).to_string()
    };
    let agent = echo_agent();
    let project = Project::with_agent(&agent).file("most.json", &report(2499)).file("few.json", &report(1));
    let output = project.hotseat(&["compare", "most.json", "few.json", "--confidence", "99.999%"]);
    let rates = "pass rate: 99.9% (2499/2500, 99–99.9%) → 0.1% (1/2500, 0.1–1%)";
    assert!(output.stdout.contains(rates), "{output}");
    assert!(output.stdout.contains("(99.999% confidence)"), "{output}");
}

/// Results of several runs in one file cannot be told apart.
#[test]
fn rejects_reports_of_more_than_one_run() {
    let agent = letter_agent();
    let project = project(&agent, &cases(&["pppp", "pfpp"]));
    write_report(&project, "one.jsonl", &["--runs", "2"]);
    write_report(&project, "one.json", &["--runs", "2"]);
    let [lines, whole] = ["one.jsonl", "one.json"].map(|file| project.workspace.read(file));
    let results: Vec<&str> = lines.lines().collect();
    let repeated = [results[0], results[1], results[1], results[2], results[3]].join("\n");
    let attempts = lines.replacen("{\"run\":2,", "{\"run\":1,", 1);
    let project = project
        .file("two.jsonl", &format!("{lines}{lines}"))
        .file("two.json", &format!("{whole}{whole}"))
        .file("repeated.jsonl", &repeated)
        .file("attempts.jsonl", &attempts);
    let last = whole.lines().count();
    for (file, place, words) in [
        ("two.jsonl", "two.jsonl:5:1".to_string(), "another run starts here, and a report has one run"),
        ("two.json", format!("two.json:{}:1", last + 1), "another run starts here, and a report has one run"),
        ("repeated.jsonl", "repeated.jsonl:3:1".to_string(), "this is the second result of the case `pppp`"),
        (
            "attempts.jsonl",
            "attempts.jsonl:2:1".to_string(),
            "the case `pppp` has two attempts with the number 1",
        ),
    ] {
        let output = project.hotseat(&["compare", "one.json", file]);
        assert_eq!((output.code, &*output.stdout), (2, ""), "{output}");
        for part in [words, &place, "write each run to a report of its own"] {
            assert!(output.stderr.contains(part), "{part}: {output}");
        }
    }
    project.hotseat(&["extract", "two.jsonl"]).assert_stderr(2, &["two.jsonl:5:1"]);
}

/// Shells pass the output of commands as pipes: `hotseat compare <(…) <(…)`.
#[test]
#[cfg(unix)]
fn reads_reports_from_pipes() {
    let agent = letter_agent();
    let project = project(&agent, &case("pp"));
    write_report(&project, "before.json", &[]);
    write_report(&project, "after.jsonl", &[]);
    let script = format!(
        "mkfifo one two; cat before.json > one & cat after.jsonl > two & '{HOTSEAT}' compare one two && \
         cat after.jsonl | '{HOTSEAT}' extract /dev/stdin -o results"
    );
    project
        .workspace
        .command("sh", &["-c", &script])
        .timeout(TEST_TIMEOUT)
        .run()
        .assert_stdout(0, &["cases:  1 in both and compared", "1 file in results"]);
}

/// The third and the fourth run have attempts at one case only.
#[test]
fn spread_is_of_runs_with_all_cases() {
    let result = |id: &str, statuses: &[&str]| {
        let runs: Vec<Value> =
            (1..).zip(statuses).map(|(n, status)| json!({"run": n, "status": status})).collect();
        json!({"id": id, "status": "failed", "run_details": runs})
    };
    let report = |results: &[Value]| json!({ "results": results }).to_string();
    let more = result("more", &["passed", "failed", "failed", "failed"]);
    let agent = echo_agent();
    let project = Project::with_agent(&agent)
        .file("before.json", &report(&[more.clone(), result("few", &["passed", "passed"])]))
        .file("after.json", &report(&[more, result("few", &["passed"])]));
    let (_, found) = run_compare(&project, &["before.json", "after.json"]);
    let rate = &found["pass_rate"];
    let spread = json!({"mean": 0.75, "deviation": 0.25, "least": 0.5, "most": 1.0});
    assert_eq!((&rate["before"]["by_run"], &rate["after"]["by_run"]), (&spread, &Value::Null), "{rate:#}");
}

#[test]
fn output_fits_narrow_width() {
    let agent = letter_agent();
    let project = project(&agent, &cases(&["pppppfffff", "ppfppppfpp"]));
    write_report(&project, "before.json", &["--runs", "5"]);
    write_report(&project, "after.json", &["--runs", "5"]);
    let output = project.command(&["compare", "before.json", "after.json"]).env("COLUMNS", "50").run();
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 50), "{output}");
    assert!(output.stdout.contains("WORSE"), "{output}");
}

#[test]
fn saved_runs_compare_like_their_reports() {
    let reliable = with("ppppffffffff", "reliability: { rate: 0.5, confidence: 0.8, max_runs: 4 }\n");
    let soft =
        "evaluate: { text: { must_not_match: JFK } }, assert: { tools: { require: [{ name: book }] } }";
    let books = format!("id: books\nturns: [{{ user: go, {soft} }}, {{ user: again }}]\n");
    let letters = ["pppppfffff", "pppppppppp", "ppfppppfpp", "pppppppppppp"];
    for (agent, suite, args) in [
        (letter_agent(), cases(&letters), &["--runs", "5"][..]),
        (letter_agent(), cases(&["ppeuwfpfeu", "wwwwwppppp"]), &["--runs", "5"]),
        (letter_agent(), cases(&["fpep", "upp", "pfp", "eeee"]), &["--retries", "1"]),
        (letter_agent(), reliable, &[]),
        (searching_agent(json!({"to": "SEA"}), json!({"to": "JFK", "bags": [1]})), books, &[]),
    ] {
        let project = project(&agent, &suite);
        write_report(&project, "before.json", args);
        write_report(&project, "after.jsonl", args);
        let listed = project.hotseat(&["runs", "--json"]);
        let listed: Vec<Value> =
            listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [after, before] = listed.as_slice() else { panic!("two runs are kept: {listed:?}") };
        let id = |run: &Value| run["id"].as_str().unwrap().to_string();
        let (of_reports, mut reported) = run_compare(&project, &["before.json", "after.jsonl"]);
        for (before, after) in [(id(before), id(after)), (id(before)[..8].to_string(), "last".to_string())] {
            let (output, mut of_kept) = run_compare(&project, &[&before, &after]);
            assert_eq!(output.code, of_reports.code, "{output}");
            for which in ["before", "after"] {
                for comparison in [&mut reported, &mut of_kept] {
                    comparison[which]["run"].take();
                }
            }
            assert_eq!(of_kept, reported, "{suite}");
        }
        project.hotseat(&["compare", "before.json", "ffffffff"]).assert_stderr(2, &["ffffffff"]);
    }
}

/// A report of cases with the given token counts.
fn usage_report(tokens: &[u32]) -> String {
    let result = |(at, tokens): (usize, &u32)| json!({"id": format!("c{at}"), "status": "passed", "spent": {"total_tokens": tokens}, "turns": [{"duration_ms": 1.0}]});
    json!({"summary": {}, "results": tokens.iter().enumerate().map(result).collect::<Vec<_>>()}).to_string()
}

#[test]
fn dominant_case_does_not_reverse_conclusion() {
    let (mut before, mut after) = (vec![100; 30], vec![110; 30]);
    let project = Project::empty()
        .file("before.json", &usage_report(&before))
        .file("after.json", &usage_report(&after));
    let claim = || {
        let (_, found) = run_compare(&project, &["before.json", "after.json"]);
        let tokens =
            found["figures"].as_array().unwrap().iter().find(|figure| figure["name"] == "tokens").unwrap();
        tokens["claim"].clone()
    };
    assert_eq!(claim(), "more");
    (before[29], after[29]) = (10_000, 100);
    project.workspace.file("before.json", &usage_report(&before));
    project.workspace.file("after.json", &usage_report(&after));
    assert_eq!(claim(), "nothing", "29 of 30 cases take more, and the mean is less");
}

#[test]
fn durations_below_jitter_of_machines_claim_nothing() {
    let claim = |before: f64, after: f64| {
        let report = |ms: f64| usage_report(&[1; 30]).replace("1.0", &format!("{ms:?}"));
        let project =
            Project::empty().file("before.json", &report(before)).file("after.json", &report(after));
        let (_, found) = run_compare(&project, &["before.json", "after.json"]);
        found["figures"][0]["claim"].clone()
    };
    assert_eq!(claim(1.0, 4.0), "nothing");
    assert_eq!(claim(1.0, 9.0), "more");
    assert_eq!(claim(200.0, 180.5), "nothing", "less than a tenth");
    assert_eq!(claim(200.0, 170.0), "less");
}

#[test]
fn any_number_in_report_can_be_printed() {
    let report = usage_report(&[1]).replace("1.0", "1e30");
    let project = Project::empty().file("before.json", &report).file("after.json", &report);
    project.hotseat(&["compare", "before.json", "after.json"]).assert_code(0);
}

#[test]
fn lost_passing_cases_fail_on_request() {
    let stays = case("ppppp");
    let others = [
        ("it is missing", case("ppp"), String::new()),
        ("it is skipped", case("pppp"), with("pppp", "skip: later\n")),
        ("its hook fails", case("pu"), with("pu", "hooks: [{ cmd: ['false'] }]\n")),
        (
            "it checks something else and fails",
            case("pf"),
            case("pf").replace("must_match: good", "must_match: goo"),
        ),
    ];
    for (why, was, is) in others {
        let agent = letter_agent();
        let folder = project(&agent, &[&stays, "---\n", &was].concat());
        write_report(&folder, "before.json", &[]);
        folder.workspace.file("a.test.yaml", &[&stays, "---\n", &is].concat());
        if is.is_empty() {
            folder.workspace.file("a.test.yaml", &stays);
        }
        write_report(&folder, "after.json", &[]);
        let plain = folder.hotseat(&["compare", "before.json", "after.json"]);
        assert_eq!(plain.code, 0, "{why}: {plain}");
        let words = "1 case passed before and did not pass now, and cannot be compared";
        assert!(
            plain.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains(words),
            "{why}: {plain}"
        );
        let (strict, found) = run_compare(&folder, &["--strict", "before.json", "after.json"]);
        assert_eq!((strict.code, &found["no_longer_passing"]), (1, &json!(1)), "{why}: {strict}");
    }
}

/// Reason why the only case is not compared after a change of the project; `None` if it is compared.
#[track_caller]
fn skip_reason(project: &Project, file: &str, from: &str, to: &str) -> Option<String> {
    project.hotseat(&["test", "-o", "one.json"]);
    let text = project.workspace.read(file);
    assert!(text.contains(from), "{from} in {text}");
    project.workspace.file(file, &text.replace(from, to));
    project.hotseat(&["test", "-o", "two.json"]);
    project.workspace.file(file, &text);
    let (_, found) = run_compare(project, &["one.json", "two.json"]);
    let why = found["not_compared"].as_array().expect("a list").first()?;
    Some(why["why"].as_str().expect("a text").to_string())
}

#[test]
fn judge_configuration_is_part_of_check_identity() {
    let agent = echo_agent();
    let with = |project: &str| Project::with_config(&format!("target:\n  endpoint: {agent}\n{project}"));
    let checks = Some("different checks".to_string());
    let case = "name: a\nturns: [{ user: hello, timeout_ms: 20000, assert: [{ type: satisfy, criteria: polite }] }]\n";

    let project = with("  assert: { text: { must_match: hello } }\ncriteria:\n  polite: { match: [{ type: contains, value: You }] }\n")
        .suite("a", case);
    assert_eq!(skip_reason(&project, "hotseat.yaml", "value: You", "value: said"), checks, "a criterion");
    assert_eq!(
        skip_reason(&project, "hotseat.yaml", "must_match: hello", "must_match: ello"),
        checks,
        "the target"
    );
    assert_eq!(skip_reason(&project, "a.test.yaml", "20000", "20001"), None, "a limit of time is no input");
    assert_eq!(
        skip_reason(&project, "a.test.yaml", "hello", "hello!"),
        Some("the user inputs or the agent context differ".to_string())
    );

    let head = "suite:\n  criteria:\n    polite: { match: [{ type: contains, value: You }] }\n---\n";
    let project = with("").suite("a", &format!("{head}{case}"));
    assert_eq!(
        skip_reason(&project, "a.test.yaml", "value: You", "value: said"),
        checks,
        "a criterion of the suite"
    );

    let topics = "name: a\nclassify_topics: triggers\ndecide_topics: always\ntopics: { begin: { assert: { text: { must_match: said } } } }\ngraph:\n  begin: []\nturns: [{ user: hello }]\n";
    let project = with("").suite("a", topics);
    assert_eq!(
        skip_reason(&project, "a.test.yaml", "must_match: said", "must_match: You"),
        checks,
        "a topic"
    );

    let script = "import { it, user, agent, expect } from 'hotseat';\nimport { greeting } from './greeting.ts';\n\
                  it('greets', () => { user.says(greeting); expect(agent).toContain('hello'); });\n";
    let project =
        with("").file("a_test.ts", script).file("greeting.ts", "export const greeting = 'hello';\n");
    assert_eq!(
        skip_reason(&project, "a_test.ts", "toContain('hello')", "toContain('You')"),
        checks,
        "a test in TypeScript"
    );
    assert_eq!(skip_reason(&project, "a_test.ts", "\nit(", "\n// unchanged\nit("), None);
}

/// Cases that are not compared, with the reason, after a change of a file.
#[track_caller]
fn not_compared(project: &Project, file: &str, from: &str, to: &str) -> Value {
    let text = project.workspace.read(file);
    assert!(text.contains(from), "{from} in {text}");
    write_report(project, "one.json", &[]);
    project.workspace.file(file, &text.replace(from, to));
    write_report(project, "two.json", &[]);
    project.workspace.file(file, &text);
    let (_, found) = run_compare(project, &["one.json", "two.json"]);
    let all = found["not_compared"].as_array().expect("a list").iter();
    all.map(|not| json!([not["id"], not["why"]])).collect()
}

#[test]
fn changed_scenarios_differ_in_their_own_cases_only() {
    const SCENARIOS: &str = "[{id: one, name: One, goal: g, say: hello, want: You}, {id: two, name: Two, goal: g, say: hello, want: You}]\n";
    const JSON: &str = r#"[{"id": "one", "name": "One", "goal": "g", "say": "hello"}, {"id": "two", "name": "Two", "goal": "g", "say": "hello"}]"#;
    let suite = |scenarios: &str| {
        format!(
            "id: a\nscenarios: {scenarios}\nturns: [{{ user: '${{scenario.say}}', assert: [{{ type: contains, value: '${{scenario.want}}' }}] }}]\n"
        )
    };
    let script = "import { it, user, agent, expect, scenarioSet } from 'hotseat';\n\
                  scenarioSet('set', 'all.json', (scenario) => {\n\
                    it(`a ${scenario.name}`, () => { user.says(scenario.say); expect(agent).toContain('You'); });\n\
                  });\n";
    let agent = echo_agent();
    let of_file = Project::with_agent(&agent).suite("a", &suite("all.yaml")).file("all.yaml", SCENARIOS);
    let inline = Project::with_agent(&agent).suite("a", &suite(SCENARIOS));
    let program = Project::with_agent(&agent).file("a_test.ts", script).file("all.json", JSON);
    let inputs = "the user inputs or the agent context differ";
    for (project, file) in [(&of_file, "all.yaml"), (&inline, "a.test.yaml")] {
        let changed = |from, to| not_compared(project, file, from, to);
        assert_eq!(changed("Two, goal: g, say: hello", "Two, goal: g, say: hi"), json!([["a@two", inputs]]));
        let want = ("say: hello, want: You}]", "say: hello, want: said}]");
        assert_eq!(changed(want.0, want.1), json!([["a@two", "different checks"]]));
        // Neither an input nor a check.
        assert_eq!(changed("Two, goal: g", "Two, goal: other"), json!([]));
        let third = "You}, {id: three, name: Three, goal: g, say: hello, want: You}]\n";
        assert_eq!(changed("You}]\n", third), json!([]));
    }
    let changed = not_compared(&program, "all.json", r#""say": "hello"}]"#, r#""say": "hi"}]"#);
    assert_eq!(changed, json!([["a Two@two", inputs]]));
}

#[test]
fn changed_functions_and_judges_are_noted() {
    let agent = echo_agent();
    let judge = FakeAgent::start(|_: &FakeRequest| {
        let answer = json!({"reasoning": "It is.", "satisfied": true});
        text_reply(&answer.to_string())
    });
    let connector = format!("{{ type: openai, base_url: '{judge}v1', model: small, stream: false }}");
    let project = Project::with_config(&format!(
        "target:\n  endpoint: {agent}\nconnectors: {{ j: {connector} }}\njudge: connectors:j\ncriteria: {{ kind: Is it kind? }}\n"
    ))
    .suite("a", "name: a\nturns: [{ user: hello, assert: [{ type: script, use: scripts:f }, { type: satisfy, criteria: kind }] }]\n")
    .file("f.ts", "import { word } from './word.ts';\nexport default (said) => said.includes(word);\n")
    .file("word.ts", "export const word = 'hello';\n");
    write_report(&project, "one.json", &[]);
    let project = project.file("word.ts", "export const word = 'never';\n");
    write_report(&project, "two.json", &[]);
    let config =
        project.workspace.read("hotseat.yaml").replace("stream: false", "stream: false, temperature: 1");
    project.workspace.file("hotseat.yaml", &config);
    write_report(&project, "three.json", &[]);
    let notes = |one: &str, other: &str| run_compare(&project, &[one, other]).1["notes"].clone();
    assert_eq!(notes("one.json", "one.json"), json!([]));
    let functions = "in 1 case the script functions that judge them have changed";
    assert_eq!(notes("one.json", "two.json"), json!([functions]));
    assert_eq!(
        notes("two.json", "three.json"),
        json!(["in 1 case the settings of their judges have changed"])
    );
    // A recheck runs the functions as they are now, and reuses no verdict of a judge with other settings.
    let again = project.hotseat(&["recheck", "last~1"]);
    let flat = again.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("settings of judges have changed since run"), "{again}");
    assert!(flat.contains("no recorded answer, and judges are not asked"), "{again}");
    assert_eq!(again.code, 1, "{again}");
}

/// Content that this version cannot read must not count as a failed case.
#[test]
fn unreadable_results_are_errors_with_their_place() {
    let good = json!({"results": [{"id": "a", "status": "passed"}]}).to_string();
    let project = Project::empty().file("good.json", &good);
    let later = r#"{"metadata": {"version": "99.0"}, "results": []}"#;
    for (report, expected) in [
        (
            "{\"results\": [\n  {\"id\": \"a\", \"status\": \"zzz\"}\n]}",
            &["unknown status `zzz`", "bad.json:2:3", "help: name a report written by"][..],
        ),
        ("{\"results\": [3]}", &["integer `3`, expected an object", "bad.json:1:14", "help: "]),
        (later, &["bad.json: this report has the format 99.0", "help: update Hotseat"]),
    ] {
        project.workspace.file("bad.json", report);
        let compared = project.hotseat(&["compare", "good.json", "bad.json"]);
        assert_eq!(compared.code, 2, "{compared}");
        for words in expected {
            assert!(compared.stderr.contains(words), "{words}: {compared}");
        }
        assert!(!compared.stderr.contains("struct"), "{compared}");
    }
    for report in ["{\"results\": [3]}", later] {
        project.workspace.file("bad.json", report);
        let extracted = project.hotseat(&["extract", "bad.json", "-o", "out"]);
        extracted.assert_stderr(2, &["help: "]);
        assert!(!extracted.stderr.contains("struct"), "{extracted}");
    }
}
