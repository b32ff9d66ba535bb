//! The Markdown summary: short, failures first, with untrusted text escaped.
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};

use crate::common::{Project, echo_agent};

const SUITE: &str = "
name: holds
turns: [{ user: hello, assert: { text: { must_match: hello } } }]
---
name: does not hold
turns: [{ user: hello, assert: { text: { must_match: never } } }]
---
name: later
skip: not ready
turns: [{ user: hello }]
";

#[test]
fn failures_include_checks_and_conversation() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", SUITE);
    project.hotseat(&["test", "-o", "r.md"]).assert_code(1);
    let text = project.workspace.read("r.md");
    for part in [
        "## \u{274c} ",
        "**1 passed**, **1 failed**, **1 skipped** of 3 cases",
        "### \u{2717} does not hold",
        "<code>a.test.yaml:5</code>",
        "- turn 1: expected the agent to say something that matches /never/,<br>got \"You said&#58; hello\"",
        "<details><summary>Conversation, 1 turn</summary>",
        "User: hello\nAgent: You said: hello\n",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains("### \u{2717} holds"), "{text}");
}

#[test]
fn appends_to_step_summary() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", SUITE).file("summary.md", "before\n");
    project.command(&["test"]).env("GITHUB_STEP_SUMMARY", "summary.md").run().assert_code(1);
    let text = project.workspace.read("summary.md");
    assert!(text.starts_with("before\n## ") && text.contains("does not hold"), "{text}");
}

#[test]
fn escapes_untrusted_text() {
    fn hostile_reply(request: &FakeRequest) -> FakeReply {
        let words = "</details><script>alert(1)</script>\n````\n@everyone [x](javascript:1) | a |";
        FakeRun::for_request(request).started().text(words).finished().into()
    }
    let agent = FakeAgent::start(hostile_reply);
    let suite = "name: '<img src=x> @me #12 [a](b)'\nturns: [{ user: hi, assert: { text: { must_match: never } } }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    project.hotseat(&["test", "-o", "r.md"]);
    let text = project.workspace.read("r.md");
    let (before, conversation) = text.split_once("<details>").expect("a conversation");
    for part in ["<script", "<img", "@me", "@everyone", "[a](b)", "](javascript"] {
        assert!(!before.contains(part), "{part} in {before}");
    }
    // The text as GitHub renders it, with entities decoded.
    let read = before.replace("&#64;", "@").replace("&#35;", "#").replace("&#8203;", "\u{200b}");
    for mention in ["@me", "@everyone", "#12"] {
        assert!(!read.contains(mention), "{mention} in {before}");
    }
    assert!(conversation.contains("`````text\n"), "the fence is longer than what is within: {text}");
    assert_eq!(conversation.matches("\n`````\n").count(), 1, "{text}");
}

#[test]
fn summary_fits_comment_limit() {
    let agent = echo_agent();
    let case = |n: usize| {
        format!(
            "name: case {n}\nturns: [{{ user: {}, assert: {{ text: {{ must_match: never }} }} }}]\n",
            "long ".repeat(200)
        )
    };
    let suite = (1..=120).map(case).collect::<Vec<_>>().join("---\n");
    let project = Project::with_agent(&agent).suite("a", &suite);
    project.hotseat(&["test", "-o", "r.md"]);
    let text = project.workspace.read("r.md");
    assert!(text.len() < 65_536, "{}", text.len());
    assert!(text.contains("### \u{2717} case 1\n") && text.contains("more that do not fit here"), "{text}");
}
