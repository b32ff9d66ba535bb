//! What the compiler says of tests that make no sense.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The library as this program was linked with it: the newest one beside it.
fn library(folder: &Path) -> PathBuf {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libhotseat-") && name.ends_with(".rlib")
    };
    let built =
        |path: &PathBuf| path.metadata().and_then(|known| known.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(is_library).max_by_key(built).expect("the library is beside its tests")
}

/// What the compiler says of an example with this body, or of a group in which this is declared.
fn said_of(declared: &str, body: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("agents.rs");
    let text = format!(
        "use hotseat::dsl::prelude::*;\npub fn declare(g: &mut Group) {{\n    {declared}\n    g.it(\"a\", async |t| {{ {body} }});\n}}\n"
    );
    std::fs::write(&source, text).unwrap();
    let program = std::env::current_exe().unwrap();
    let beside = program.parent().unwrap();
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let mut command = Command::new(compiler);
    command.args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--out-dir"]).arg(folder.path());
    command.arg("-L").arg(format!("dependency={}", beside.display()));
    command.arg("--extern").arg(format!("hotseat={}", library(beside).display()));
    let output = command.arg(source).output().expect("there is a compiler");
    String::from_utf8(output.stderr).unwrap()
}

#[track_caller]
fn says(said: &str, words: &[&str]) {
    for words in words {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
}

#[test]
fn what_makes_sense_compiles() {
    let said = said_of(
        "g.topic(\"a\").expect(call_tool(\"book\"));",
        "expect!(t.agent, call_tool(\"book\").with(\"n\", 1));",
    );
    assert!(!said.contains("error"), "{said}");
}

#[test]
fn a_matcher_on_a_wrong_subject_says_what_it_is_asserted_of() {
    says(
        &said_of("", "expect!(t.agent.text(), call_tool(\"book\"));"),
        &["`CallTool` asserts nothing of `std::string::String`", "is asserted of `agent`"],
    );
    says(
        &said_of("", "expect!(t.agent.text(), grounded_in(\"prices\"));"),
        &["`GroundedIn` asserts nothing of `std::string::String`", "is asserted of `agent`"],
    );
    says(
        &said_of("", "expect!(t.conversation.turns().len(), contains(\"a\"));"),
        &["asserts nothing of `usize`", "values that can be compared"],
    );
}

#[test]
fn what_cannot_be_asserted_of_a_topic_says_what_can() {
    says(
        &said_of("g.topic(\"a\").expect(eq(3));", ""),
        &["cannot be asserted of a topic", "what the agent says and does"],
    );
}

#[test]
fn what_an_argument_or_a_name_cannot_be_says_what_it_can() {
    says(
        &said_of("", "expect!(t.agent, call_tool(\"book\").with(\"who\", std::path::Path::new(\"x\")));"),
        &["is nothing that an argument of a tool call can be compared with", "that(|value| …)"],
    );
    says(
        &said_of("", "expect!(t.agent, satisfy(3));"),
        &["is neither one text nor several", "[\"friendly\", \"helpful\"]"],
    );
}
