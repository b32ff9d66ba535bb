//! Repeated cases against an agent that behaves in each run as the case prescribes.

use std::collections::HashMap;
use std::sync::Mutex;

use hotseat_testkit::{FakeAgent, FakeReply};
use serde_json::json;

use super::{Project, unreachable_address};

/// An agent controlled by letters, one per conversation: `p` answers correctly, `o` in other words, `j` and
/// `k` with the same JSON in two spellings, `f` incorrectly, `e` fails, `u` is unreachable, `w` waits for
/// input, and `g` answers correctly once the test opens the gate.
pub fn letter_agent() -> FakeAgent {
    let told: Mutex<HashMap<String, usize>> = Mutex::default();
    FakeAgent::with_run(move |run, request| {
        let said = request.last_user_text();
        let mut told = told.lock().expect("no handler has panicked");
        let count = told.entry(said.clone()).or_default();
        let letter = said.chars().nth(*count).unwrap_or_else(|| panic!("{said} was told once too often"));
        *count += 1;
        match letter {
            'p' => run.text("good").finished().into(),
            'o' => run.text("good, too").finished().into(),
            'j' => run.text(r#"{"word": "good", "n": 1}"#).finished().into(),
            'k' => run.text(r#"{"n":1.0,"word":"good"}"#).finished().into(),
            'f' => run.text("bad").finished().into(),
            'w' => run.text("Is that good?").finished().into(),
            'g' => run.gate("open").text("good").finished().into(),
            'e' => run.error("no", None).into(),
            'u' => FakeReply::refused(),
            other => panic!("{other} says nothing"),
        }
    })
}

/// A case that passes if the agent answers correctly.
pub fn case(letters: &str) -> String {
    with(letters, "")
}

/// Like `case`, with more keys.
pub fn with(letters: &str, more: &str) -> String {
    format!(
        "id: {letters}\n{more}turns: [{{ user: {letters}, assert: {{ text: {{ must_match: good }} }} }}]\n"
    )
}

pub fn cases(all: &[&str]) -> String {
    all.iter().map(|letters| case(letters)).collect::<Vec<_>>().join("---\n")
}

/// A project with one suite.
pub fn project(agent: &FakeAgent, suite: &str) -> Project {
    Project::with_agent(agent).suite("a", suite)
}

/// A hook that provides the address of the agent as `url`; for runs that match a shell pattern, an
/// unreachable address.
pub fn unreachable_hook(agent: &FakeAgent, file: &str, runs: &str) -> String {
    let script = format!(
        r#"echo x >> {file}; case $(($(wc -l < {file}))) in {runs}) url={};; *) url={agent};; esac; printf '{{"url": "%s"}}' $url"#,
        unreachable_address()
    );
    format!("hooks: [{{ cmd: [sh, -c, {}] }}]\n", json!(script))
}
