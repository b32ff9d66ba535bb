//! Compiler messages for invalid tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The library that this program is linked with: the newest one next to it.
fn library_path(folder: &Path) -> PathBuf {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libhotseat-") && name.ends_with(".rlib")
    };
    let built =
        |path: &PathBuf| path.metadata().and_then(|known| known.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(is_library).max_by_key(built).expect("the library is beside its tests")
}

/// Compiler output for an example with this body, or a group with this declaration.
fn compiler_output(declared: &str, body: &str) -> String {
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
    command.arg("--extern").arg(format!("hotseat={}", library_path(beside).display()));
    let output = command.arg(source).output().expect("there is a compiler");
    String::from_utf8(output.stderr).unwrap()
}

#[track_caller]
fn assert_mentions(said: &str, words: &[&str]) {
    for words in words {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
}

#[test]
fn valid_code_compiles() {
    let said = compiler_output(
        "g.topic(\"a\").expect(call_tool(\"book\"));",
        "expect!(t.agent, call_tool(\"book\").with(\"n\", 1));",
    );
    assert!(!said.contains("error"), "{said}");
}

#[test]
fn wrong_subject_error_names_valid_subject() {
    assert_mentions(
        &compiler_output("", "expect!(t.agent.text(), call_tool(\"book\"));"),
        &["`ToolCallMatcher` is not a matcher for `", "String`", "with `agent`"],
    );
    assert_mentions(
        &compiler_output("", "expect!(t.agent.text(), grounded_in(\"prices\"));"),
        &["`GroundedInMatcher` is not a matcher for `", "String`", "with `agent`"],
    );
    assert_mentions(
        &compiler_output("", "expect!(t.conversation.turns().len(), contains(\"a\"));"),
        &["is not a matcher for `usize`", "with comparable values"],
    );
}

#[test]
fn invalid_topic_assertion_lists_alternatives() {
    assert_mentions(
        &compiler_output("g.topic(\"a\").expect(eq(3));", ""),
        &["cannot be used as an assertion of a topic", "use one of `satisfy`"],
    );
}

#[test]
fn invalid_argument_or_name_lists_alternatives() {
    assert_mentions(
        &compiler_output(
            "",
            "expect!(t.agent, call_tool(\"book\").with(\"who\", std::path::Path::new(\"x\")));",
        ),
        &["a tool argument cannot be compared with", "that(|value| …)"],
    );
    assert_mentions(
        &compiler_output("", "expect!(t.agent, satisfy(3));"),
        &["is neither a text nor a list of texts", "[\"friendly\", \"helpful\"]"],
    );
}
