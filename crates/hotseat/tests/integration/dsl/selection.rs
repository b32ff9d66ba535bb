//! Selection of examples.

use std::path::Path;

use hotseat::dsl::prelude::*;

use super::harness::{echo_agent, run_examples_in, run_examples_with};

fn tree(s: &mut Group) {
    echo_agent(s);
    s.describe("booking", |g| {
        g.tag("booking");
        g.it("books", async |_| {});
        g.it("cancels", async |_| {}).tag("slow");
        g.it("pays", async |_| {}).skip("no money yet");
    });
    s.it("greets", async |_| {});
}

#[test]
fn filters_follow_test_harness_conventions() {
    for (arguments, names) in [
        (&[][..], &["booking::books", "booking::cancels", "booking::pays", "greets"][..]),
        (&["book"], &["booking::books", "booking::cancels", "booking::pays"]),
        (&["books", "greets"], &["booking::books", "greets"]),
        (&["--exact", "greets"], &["greets"]),
        (&["--skip", "booking"], &["greets"]),
        (&["book", "--skip=cancels", "--skip=pays"], &["booking::books"]),
        (&["--tag", "slow"], &["booking::cancels"]),
        (&["--tag", "booking", "--tag", "slow", "cancels"], &["booking::cancels"]),
        (&["--ignored"], &["booking::pays"]),
    ] {
        let ran = run_examples_with(arguments, tree);
        let found: Vec<&str> = ran.cases().into_iter().map(|(name, _)| name).collect();
        assert_eq!((ran.code, &found[..]), (0, names), "{arguments:?}");
    }
}

#[test]
fn missing_recording_has_advice_for_rust() {
    let one = r#"{"version": 1, "case": "a", "turns": [{"user": "hello", "events": [{"type": "message", "at_ms": 1, "text": "Hi."}]}]}"#;
    let write = |folder: &Path| {
        std::fs::create_dir(folder.join("rec")).unwrap();
        std::fs::write(folder.join("rec/a.json"), one).unwrap();
    };
    let run = |from: &str| {
        run_examples_in(write, &[&format!("--agent=replay:{from}")], |s| {
            s.it("b", async |t| drop(t.user.says("hello").await));
        })
    };
    let missing = run("rec");
    assert!(missing.failure("b").1.starts_with("no recording of `b` of "), "{missing:#?}");
    let detail = missing.case("b")["failure"]["detail"].as_str().unwrap();
    assert!(detail.starts_with("tests in Rust are not recorded: name one recording"), "{detail}");
    assert_eq!(run("rec/a.json").cases(), [("b", "passed")]);
}

#[test]
fn empty_match_is_ok_for_filter_but_not_for_tag() {
    assert_eq!(run_examples_with(&["nothing like it"], tree).code, 0);
    assert_eq!(run_examples_with(&["--exact", "book"], tree).code, 0);
    assert_eq!(run_examples_with(&["--tag", "missing"], tree).code, 4);
    assert_eq!(run_examples_with(&[], |_| {}).code, 4);
}

/// No other test file can be meant.
#[test]
fn a_line_without_an_example_names_the_nearest() {
    let ran = run_examples_with(&["harness.rs:1"], tree);
    assert_eq!(ran.code, 4, "{ran:#?}");
    assert!(ran.output.contains("`booking::books` is at harness.rs:"), "{ran:#?}");
    assert_eq!(run_examples_with(&["other.rs:1"], tree).code, 0);
}

#[test]
fn skipped_examples_are_reported_and_run_on_request() {
    let ran = run_examples_with(&[], tree);
    assert_eq!(ran.case("booking::pays")["skip_reason"], "no money yet");
    let ran = run_examples_with(&["--include-ignored"], tree);
    assert_eq!(ran.case("booking::pays")["status"], "passed");
}

#[test]
fn focused_examples_run_alone() {
    let focused = |s: &mut Group| {
        tree(s);
        s.fit("is worked on", async |_| {});
        s.fdescribe("these, too", |g| {
            g.it("one", async |_| {});
            g.it("two", async |_| {});
        });
    };
    let ran = run_examples_with(&[], focused);
    let names: Vec<&str> = ran.cases().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["is worked on", "these, too::one", "these, too::two"]);
    assert_eq!(run_examples_with(&["--exact", "greets"], focused).cases(), []);
    assert_eq!(run_examples_with(&["--forbid-only"], focused).code, 2);
}

#[test]
fn rejects_ambiguous_examples() {
    let ran = run_examples_with(&[], |s| {
        echo_agent(s);
        s.it("greets", async |_| {});
        s.it(" greets\n", async |_| {});
    });
    assert_eq!((ran.code, ran.cases()), (2, vec![]));
    let ran = run_examples_with(&[], |s| {
        echo_agent(s);
        s.case_key("id", "same");
        s.it("greets", async |_| {});
        s.it("thanks", async |_| {});
    });
    assert_eq!((ran.code, ran.cases()), (2, vec![]));
    assert!(ran.output.contains("two examples have the id `same`"), "{ran:#?}");
    let ran = run_examples_with(&[], |s| {
        echo_agent(s);
        s.case_key("agent", "another");
        s.it("greets", async |_| {});
    });
    assert_eq!((ran.code, ran.cases()), (2, vec![]));
    assert!(ran.output.contains("`case_key` cannot set `agent`: use `agent`"), "{ran:#?}");
}

#[test]
fn a_page_has_the_conversation_without_a_saved_run() {
    let ran = run_examples_with(&["--output=report.html"], |s| {
        echo_agent(s);
        s.it("asks", async |t| {
            t.user.says("a room").await;
        });
    });
    let case = ran.files["report.html"]
        .split("id=\"case-0\">")
        .nth(1)
        .and_then(|rest| rest.split("</script>").next());
    let case: serde_json::Value = serde_json::from_str(case.expect("a case")).expect("JSON");
    let attempt = &case["attempts"][0];
    let shown = attempt["turns"][0]["items"].as_array().expect("items").iter().map(|item| {
        let events = attempt["events"].as_array().expect("events");
        events.iter().find(|event| event["sequence"] == item["sequence"]).map(|event| event["type"].as_str())
    });
    let shown: Vec<&str> = shown.map(|found| found.flatten().expect("an event")).collect();
    assert_eq!(shown, ["message.user", "tool.invoked", "message.assistant"]);
}

#[test]
fn errors_are_reported_before_run() {
    // No project file and no agent in the program.
    let without_agent = |s: &mut Group| {
        s.it("greets", async |_| unreachable!());
    };
    assert_eq!(run_examples_with(&[], without_agent).code, 2);
    let named = |s: &mut Group| {
        s.agent("nobody");
        s.it("greets", async |_| unreachable!());
    };
    assert_eq!(run_examples_with(&[], named).code, 2);
    assert_eq!(run_examples_with(&["--no-such-flag"], tree).code, 2);
    assert_eq!(run_examples_with(&["--output=report.pdf"], tree).code, 2);
    // A refused run keeps the reports of the last one.
    let with_reports = |folder: &Path| {
        for name in ["report.json", "trace.jsonl"] {
            std::fs::write(folder.join(name), "{}").unwrap();
        }
    };
    let ran = run_examples_in(with_reports, &["--trace=trace.jsonl"], without_agent);
    assert_eq!((ran.code, &*ran.files["report.json"], &*ran.files["trace.jsonl"]), (2, "{}", "{}"));
    assert_eq!(run_examples_with(&["--output=/proc/none/report.json"], tree).code, 3);
}

/// An address that the agent of an example does not get would leave its old one tested.
#[test]
fn address_of_the_command_line_belongs_to_the_tested_agent() {
    let config = "target: a\nagents: { a: { endpoint: 'http://127.0.0.1:9/a' }, b: { endpoint: 'http://127.0.0.1:9/b' } }\n";
    let write = |folder: &Path| std::fs::write(folder.join("hotseat.yaml"), config).unwrap();
    let ran = run_examples_in(write, &["--endpoint=http://127.0.0.1:9/new"], |s| {
        s.agent("b");
        s.it("says hello", async |t| drop(t.user.says("hello").await));
    });
    assert_eq!((ran.code, ran.report.is_null()), (2, true), "{ran:#?}");
    let message = "--endpoint is the address of agent `a`, but cases test agent `b`";
    assert!(ran.output.contains(message), "{}", ran.output);
}
