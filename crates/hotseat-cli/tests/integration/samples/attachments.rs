//! Samples with pictures. Embedded agents read only text and reject them; the other adapters reach agents
//! that read pictures.

use hotseat_testkit::completions::ChatCompletion;
use hotseat_testkit::{FakeAgent, FakeRequest};
use serde_json::Value;

use super::adapters::{ADAPTERS, SampleProject, sample};
use crate::common::{Project, TestRun};

const SAMPLES: [&str; 2] = ["documents/standard/attachment.jsonl", "documents/multi-turn/receipt.jsonl"];

/// Placeholder picture, plain and in base64.
const PICTURE: &str = "a receipt over 12 euros";
const ENCODED: &str = "YSByZWNlaXB0IG92ZXIgMTIgZXVyb3M=";

/// Answers whether it received the picture.
fn picture_answer(request: &FakeRequest) -> &'static str {
    if request.json().to_string().contains(ENCODED) { "The amount is 12 euros." } else { "I see nothing." }
}

fn project(target: &str, case: &str) -> Project {
    Project::with_config(&format!("target: {target}\n"))
        .file("tests/receipt.jsonl", case)
        .file("tests/fixtures/receipt.jpg", PICTURE)
}

fn run_case(target: &str, case: &str) -> TestRun {
    project(target, case).test(&["-i", "tests/receipt.jsonl"])
}

#[test]
fn pictures_are_sent_by_supporting_adapters() {
    let ag_ui = FakeAgent::with_run(|run, request| run.text(picture_answer(request)).finished());
    let openai = FakeAgent::start(|request: &FakeRequest| {
        ChatCompletion::new().text(picture_answer(request)).finish("stop").streamed()
    });
    let program = format!(
        "while read -r line; do case \"$line\" in *{ENCODED}*) said='The amount is 12 euros.';; *) said='I see nothing.';; esac; \
         printf '{{\"type\": \"text\", \"text\": \"%s\"}}\\n{{\"type\": \"done\"}}\\n' \"$said\"; done"
    );
    let targets = [
        format!("{{ endpoint: '{ag_ui}' }}"),
        format!("{{ type: openai, base_url: '{openai}v1', model: m }}"),
        format!("{{ type: command, command: [sh, -c, {}] }}", Value::String(program)),
    ];
    for target in targets {
        for path in SAMPLES {
            let tested = run_case(&target, &sample(path));
            tested.assert_all_passed();
            let turns = tested.report["results"][0]["turns"].as_array().unwrap();
            assert_eq!(turns[0]["output"], "The amount is 12 euros.", "{target} {path}");
        }
    }
}

#[test]
fn text_only_agent_receives_no_pictures() {
    for path in SAMPLES {
        let house = SampleProject::create()
            .with_test_file("receipt.jsonl", &sample(path))
            .with_test_file("fixtures/receipt.jpg", PICTURE);
        house
            .command(&["test", "--config", "embedded.yaml", "-i", "tests/receipt.jsonl"])
            .run()
            .assert_stderr(2, &["this case sets `attachments`, which its agent does not support"]);
        // The other adapters send the picture to the agent, which answers that it cannot read it.
        for door in &ADAPTERS[1..] {
            let tested = house.run_with(door, "receipt.jsonl", &[]);
            let failed = &tested.report["results"][0];
            assert_eq!(failed["error_kind"], "agent_error", "{door}: {failed:#}");
            let words = failed["error"].as_str().unwrap();
            assert!(words.contains("text only") || words.contains("400"), "{door}: {words}");
        }
    }
}
