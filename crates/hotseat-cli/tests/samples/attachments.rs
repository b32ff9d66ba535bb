//! Samples with pictures. An agent of Hotseat's own reads words only, so they are refused there, and the other doors lead to
//! agents that look at pictures.

use hotseat_testkit::agui::Run;
use hotseat_testkit::completions::Completion;
use hotseat_testkit::{FakeAgent, Reply, Request};
use serde_json::Value;

use crate::common::{Project, Tested};
use crate::doors::{DOORS, House, sample};

const SAMPLES: [&str; 2] = ["documents/standard/attachment.jsonl", "documents/multi-turn/receipt.jsonl"];

/// What stands for a picture, and what it is in base64.
const PICTURE: &str = "a receipt over 12 euros";
const ENCODED: &str = "YSByZWNlaXB0IG92ZXIgMTIgZXVyb3M=";

/// Answers what it would see, if it was shown the picture.
fn seen(request: &Request) -> &'static str {
    if request.json().to_string().contains(ENCODED) { "The amount is 12 euros." } else { "I see nothing." }
}

fn project(target: &str, case: &str) -> Project {
    Project::with(&format!("target: {target}\n"))
        .file("tests/receipt.jsonl", case)
        .file("tests/fixtures/receipt.jpg", PICTURE)
}

fn held(target: &str, case: &str) -> Tested {
    project(target, case).test(&["-i", "tests/receipt.jsonl"])
}

#[test]
fn pictures_arrive_behind_the_doors_that_carry_them() {
    let ag_ui = FakeAgent::start(|request: &Request| -> Reply {
        Run::of(request).started().text(seen(request)).finished().into()
    });
    let openai =
        FakeAgent::start(|request: &Request| Completion::new().text(seen(request)).finish("stop").streamed());
    let program = format!(
        "while read -r line; do case \"$line\" in *{ENCODED}*) said='The amount is 12 euros.';; *) said='I see nothing.';; esac; \
         printf '{{\"type\": \"text\", \"text\": \"%s\"}}\\n{{\"type\": \"done\"}}\\n' \"$said\"; done"
    );
    let targets = [
        format!("{{ endpoint: '{}' }}", ag_ui.url()),
        format!("{{ type: openai, base_url: '{}v1', model: m }}", openai.url()),
        format!("{{ type: command, command: [sh, -c, {}] }}", Value::String(program)),
    ];
    for target in targets {
        for path in SAMPLES {
            let tested = held(&target, &sample(path));
            tested.all_passed();
            let turns = tested.report["results"][0]["turns"].as_array().unwrap();
            assert_eq!(turns[0]["output"], "The amount is 12 euros.", "{target} {path}");
        }
    }
}

#[test]
fn an_agent_of_words_is_not_shown_pictures() {
    for path in SAMPLES {
        let house = House::open().with("receipt.jsonl", &sample(path)).with("fixtures/receipt.jpg", PICTURE);
        let output = house.command(&["test", "--config", "embedded.yaml", "-i", "tests/receipt.jsonl"]).run();
        assert_eq!(output.code, 2, "{output}");
        assert!(output.stderr.contains("gives `attachments`, which its agent is never told"), "{output}");
        // The other doors carry the picture to the agent, which says that it cannot read it.
        for door in &DOORS[1..] {
            let tested = house.held(door, "receipt.jsonl", &[]);
            let failed = &tested.report["results"][0];
            assert_eq!(failed["error_kind"], "agent_error", "{door}: {failed:#}");
            let words = failed["error"].as_str().unwrap();
            assert!(
                words.contains("text only") || words.contains("words only") || words.contains("400"),
                "{door}: {words}"
            );
        }
    }
}
