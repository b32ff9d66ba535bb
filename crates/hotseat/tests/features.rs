//! What a build refuses if a feature is missing. The tests of the workspace have all features, so this is a program of its
//! own, which `scripts/check` runs without any.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat::dsl::prelude::*;
use hotseat::dsl::{Harness, HarnessContext, HarnessOutput};
use serde_json::json;

/// Runs an example with an agent in the program, in a folder with this project file. Returns the exit code and the output.
fn run(project: &str, arguments: &[&str], declare: impl FnOnce(&mut Group)) -> (u8, String) {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("hotseat.yaml", project),
        ("src/checks.ts", "export const greets = () => true;\n"),
        ("critic.yaml", "rules: [{ reply: \"{{ user }}\" }]\n"),
    ];
    std::fs::create_dir(folder.path().join("src")).unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let output = HarnessOutput::captured();
    let context = HarnessContext {
        environment: Arc::new(BTreeMap::new()),
        folder: folder.path().to_path_buf(),
        color: false,
        width: 200,
        output: output.clone(),
    };
    let arguments = arguments.iter().map(|argument| argument.to_string()).collect();
    let code = Harness { arguments, context, file: file!() }.run(declare);
    let HarnessOutput::Captured(kept) = output else { unreachable!("it is captured") };
    (code, kept.text())
}

fn in_program(s: &mut Group) {
    s.agent(replies(async |_| "{\"total\": 3}"));
    s.it("greets", async |t| {
        t.user.says("hello").await;
    });
}

/// Asserts that an output names a missing feature and the place that needs it, and no other one.
#[track_caller]
fn assert_needs(feature: &str, is_on: bool, place: &str, (code, output): (u8, String)) {
    let named = format!("feature `{feature}` of the crate `hotseat`");
    assert_eq!(output.contains(&named), !is_on, "exit code {code}: {output}");
    if !is_on {
        assert!(code != 0 && output.contains(place), "exit code {code}: {output}");
    }
}

#[test]
fn encrypted_agents_need_https() {
    let project = "target:\n  endpoint: \"https://127.0.0.1:1/\"\n";
    let ran = run(project, &[], |s| {
        s.it("greets", async |t| {
            t.user.says("hello").await;
        });
    });
    assert_needs("https", cfg!(feature = "https"), "hotseat.yaml:2:13", ran);
}

#[test]
fn judges_with_a_default_address_need_https() {
    let project =
        "connectors:\n  critic: { type: openai, model: m, api_key: k }\njudge: \"connectors:critic\"\n";
    let declare = |s: &mut Group| {
        s.agent(replies(async |_| "Hello"));
        s.it("greets", async |t| {
            t.user.says("hello").await;
            expect!(t.agent, satisfy("It greets the user"));
        });
    };
    if cfg!(feature = "https") {
        // It would be contacted.
        return;
    }
    assert_needs("https", false, "critic", run(project, &[], declare));
}

#[test]
fn schemas_need_json_schema() {
    let ran = run("{}\n", &[], |s| {
        s.agent(replies(async |_| "{\"total\": 3}"));
        s.it("counts", async |t| {
            t.user.says("hello").await;
            expect!(t.agent, holds(json!({"type": "schema", "value": {"required": ["total"]}})));
        });
    });
    assert_needs("json-schema", cfg!(feature = "json-schema"), "features.rs:", ran);
}

#[test]
fn mcp_servers_need_mcp() {
    let project = "mcp:\n  crm: { type: mock, tools: [{ name: find, answers: [{ content: found }] }] }\n";
    assert_needs("mcp", cfg!(feature = "mcp"), "hotseat.yaml:2:3", run(project, &[], in_program));
}

#[test]
fn served_models_need_models() {
    let project = "models:\n  main: { rules: [{ reply: { text: Hello } }] }\n";
    assert_needs("models", cfg!(feature = "models"), "hotseat.yaml:2:3", run(project, &[], in_program));
}

#[test]
fn keys_of_examples_need_their_features_too() {
    let ran = run("{}\n", &[], |s| {
        s.agent(replies(async |_| "Hello"));
        let example = s.it("greets", async |t| {
            t.user.says("hello").await;
        });
        example.case_key("models", json!({"main": {"rules": [{"reply": {"text": "Hello"}}]}}));
    });
    assert_needs("models", cfg!(feature = "models"), "features.rs:", ran);
}

#[test]
fn functions_of_scripts_need_scripts() {
    let ran = run("{}\n", &[], |s| {
        s.agent(replies(async |_| "Hello"));
        let example = s.it("greets", async |t| {
            t.user.says("hello").await;
        });
        example.case_key("turn_assert", json!([{"type": "script", "use": "scripts:checks.greets"}]));
    });
    assert_needs("scripts", cfg!(feature = "scripts"), "features.rs:", ran);
}

#[test]
fn failed_examples_of_the_last_run_need_store() {
    let ran = run("{}\n", &["--last-failed"], in_program);
    assert_needs("store", cfg!(feature = "store"), "--last-failed", ran);
}

#[test]
fn agents_in_files_need_agents() {
    let project = "target:\n  type: embedded\n  agent: agent.yaml\n";
    let ran = run(project, &[], |s| {
        s.it("greets", async |t| {
            t.user.says("hello").await;
        });
    });
    assert_needs("agents", cfg!(feature = "agents"), "hotseat.yaml:2", ran);
}

#[test]
fn templates_of_scripted_models_need_models() {
    let project = concat!(
        "connectors:\n  critic: { type: scripted, script: critic.yaml }\n",
        "judge: \"connectors:critic\"\n"
    );
    let ran = run(project, &[], |s| {
        s.agent(replies(async |_| "Hello"));
        s.it("greets", async |t| {
            t.user.says("hello").await;
            expect!(t.agent, satisfy("It greets the user"));
        });
    });
    assert_needs("models", cfg!(feature = "models"), "critic.yaml:1", ran);
}
