//! Cases that are run several times, against an agent that does in each run as the case says.

use std::collections::HashMap;
use std::sync::Mutex;

use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Reply};
use serde_json::json;

use super::{Project, nobody};

/// An agent that is told letters and does what they say, one for each conversation: `p` answers well, `o` in other
/// words, `j` and `k` with the same JSON written in two ways, `f` badly, `e` fails, `u` cannot be reached, `w` waits for an
/// input, and `g` answers well when the test opens the gate.
pub fn lettered() -> FakeAgent {
    let told: Mutex<HashMap<String, usize>> = Mutex::default();
    FakeAgent::start(move |request| {
        let said = request.last_user_text();
        let mut told = told.lock().expect("no handler has panicked");
        let count = told.entry(said.clone()).or_default();
        let letter = said.chars().nth(*count).unwrap_or_else(|| panic!("{said} was told once too often"));
        *count += 1;
        let run = Run::of(request).started();
        match letter {
            'p' => run.text("good").finished().into(),
            'o' => run.text("good, too").finished().into(),
            'j' => run.text(r#"{"word": "good", "n": 1}"#).finished().into(),
            'k' => run.text(r#"{"n":1.0,"word":"good"}"#).finished().into(),
            'f' => run.text("bad").finished().into(),
            'w' => run.text("Is that good?").finished().into(),
            'g' => run.gate("open").text("good").finished().into(),
            'e' => run.error("no", None).into(),
            'u' => Reply::refused(),
            other => panic!("{other} says nothing"),
        }
    })
}

/// A case that passes when the agent answers well.
pub fn case(letters: &str) -> String {
    with(letters, "")
}

/// The same with more keys.
pub fn with(letters: &str, more: &str) -> String {
    format!(
        "id: {letters}\n{more}turns: [{{ user: {letters}, assert: {{ text: {{ must_match: good }} }} }}]\n"
    )
}

pub fn cases(all: &[&str]) -> String {
    all.iter().map(|letters| case(letters)).collect::<Vec<_>>().join("---\n")
}

/// A project of one suite.
pub fn project(agent: &FakeAgent, suite: &str) -> Project {
    Project::of(agent).suite("a", suite)
}

/// A hook that gives the address of the agent as `url`; in these runs, as a pattern of the shell, one where nobody
/// listens.
pub fn spoiled(agent: &FakeAgent, file: &str, runs: &str) -> String {
    let script = format!(
        r#"echo x >> {file}; case $(($(wc -l < {file}))) in {runs}) url={};; *) url={};; esac; printf '{{"url": "%s"}}' $url"#,
        nobody(),
        agent.url()
    );
    format!("hooks: [{{ cmd: [sh, -c, {}] }}]\n", json!(script))
}
