//! `hotseat extract`: single results of a report as files.

use hotseat_testkit::FakeAgent;
use serde_json::json;

use crate::common::{Project, exists};

/// A project with two cases, one of them with an id that is a path and with hostile texts, and its reports.
fn reported() -> (FakeAgent, Project) {
    let agent = FakeAgent::with_run(|run, _| {
        run.tool("c1", "find", &json!({"q": "<b>"}), Some(json!({"found": 1})))
            .text("# Done\n```\n<script>")
            .finished()
    });
    let never = json!([{"type": "contains", "value": "Never"}]);
    let turns = json!([{"input": "one", "assertions": never}, {"input": "two"}, {"input": "three"}]);
    let cases = [
        json!({"id": "a/../b", "name": "two <turns>", "turns": turns}),
        json!({"id": "a-b", "input": "hello"}),
    ];
    let project = Project::with_agent(&agent).cases(&cases);
    project.hotseat(&["test", "-o", "out/report.json", "-o", "out/lines.jsonl"]).assert_code(1);
    (agent, project)
}

#[test]
fn each_result_is_a_file() {
    let (agent, project) = reported();
    let requests = agent.requests().len();
    for (report, folder) in [("out/report.json", "out/report"), ("out/lines.jsonl", "out/lines")] {
        let output = project.hotseat(&["extract", report]);
        assert_eq!((output.code, &*output.stdout), (0, &*format!("2 files in {folder}\n")), "{output}");
        let page = project.workspace.read(&format!("{folder}/a-b.md"));
        for words in [
            "# two &lt;turns&gt;\n",
            "- Status: **failed**\n- Duration: ",
            "- Case: <code>a/../b</code>\n",
            "- Error: ",
            "\n## Turn 1: failed\n",
            "\nUser:\n\n```text\none\n```\n",
            "\nTool:\n\n```text\nfind({\"q\":\"<b>\"})\n→ {\"found\":1}\n```\n",
            // The fence is longer than that of the agent.
            "\nAgent:\n\n````text\n# Done\n```\n<script>\n````\n",
            "- ✗ expected ",
            "\nTurns 2-3: not run\n",
        ] {
            assert!(page.contains(words), "{words:?} is not in\n{page}");
        }
        let page = project.workspace.read(&format!("{folder}/a-b-2.md"));
        for words in
            ["- Status: **passed**", "\n## Input\n\n```text\nhello\n```\n", "\n## Output\n\n````text\n# Done"]
        {
            assert!(page.contains(words), "{words:?} is not in\n{page}");
        }
    }
    assert_eq!(agent.requests().len(), requests, "no agent is contacted");
}

#[test]
fn results_are_selected_and_written_as_json() {
    let (_agent, project) = reported();
    let report = project.workspace.read_json("out/report.json");
    for (source, folder) in [("out/report.json", "one"), ("last", "saved")] {
        let output = project.hotseat(&["extract", source, "a-b", "-o", folder, "--format", "json"]);
        assert_eq!((output.code, &*output.stdout), (0, &*format!("1 file in {folder}\n")), "{output}");
        assert!(!exists(&project.workspace, &format!("{folder}/a-b.json")));
        let result = project.workspace.read_json(&format!("{folder}/a-b-2.json"));
        assert_eq!((&result["id"], &result["output"]), (&json!("a-b"), &report["results"][1]["output"]));
    }
}

#[test]
fn mistakes_have_words() {
    let (_agent, project) = reported();
    let project = project.file("words.json", "hello").file("other.json", "{\"id\": \"a\"}");
    for (arguments, words) in [
        (&["missing.json"][..], "missing.json: cannot be read"),
        (&["words.json"], "words.json: this is not JSON (expected value"),
        (&["other.json"], "other.json: this is not a run report: it has no results"),
        (&["out/report.json", "c"], "the report has no case `c`"),
        (&["nosuchrun"], "nosuchrun"),
    ] {
        project.hotseat(&[&["extract"], arguments].concat()).assert_stderr(2, &[words]);
    }
    let cut = project.workspace.read("out/lines.jsonl");
    let end = cut.rfind("{\"type\":\"result\"").expect("a result") + 40;
    let project = project.file("cut.jsonl", &cut[..end]);
    #[cfg(unix)]
    {
        let device = project.hotseat(&["extract", "/dev/stdin"]);
        assert!(device.code == 2 && device.stderr.contains("name the folder with `-o DIR`"), "{device}");
    }
    let output = project.hotseat(&["extract", "cut.jsonl"]);
    assert_eq!((output.code, &*output.stdout), (0, "1 file in cut\n"), "{output}");
}
