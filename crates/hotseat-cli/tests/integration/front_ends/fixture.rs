//! Fixture: two agents, a judge model and a project that defines them; runs tests of each front end.

use hotseat::dsl::{Group, HarnessOutput};
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::completions::text_reply;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, McpClient, ModelClient};
use serde_json::{Value, json};

use crate::common::Project;
use crate::common::http_agents::http_agent;

/// How a front end supports a feature.
pub enum FrontEndSupport {
    /// Supported: this test has the effect.
    Supported(FrontEndTest),
    /// Unsupported: this test is rejected with this message.
    Unsupported(FrontEndTest, &'static str),
}

/// Tests of a front end and how to run them.
pub struct FrontEndTest {
    pub test: TestSource,
    /// Arguments of each run.
    pub runs: &'static [&'static [&'static str]],
}

/// Test source of a front end.
pub enum TestSource {
    Data(&'static str),
    TypeScript(&'static str),
    Rust(fn(&mut Group)),
}

/// Observations of the last run, and all requests to the agents and the judge.
#[derive(Debug)]
pub struct Observations {
    pub code: i32,
    /// Stdout and stderr.
    pub words: String,
    /// Null if no report was written.
    pub report: Value,
    /// Requests to agent `one`, over AG-UI.
    pub one: Vec<Value>,
    /// Requests to agent `two`, over HTTP.
    pub two: Vec<Value>,
    /// Models that were asked to judge.
    pub judged: Vec<String>,
    /// Number of executions of the project hook.
    pub prepared: usize,
    /// Output of `hotseat runs`.
    pub runs: String,
}

impl Observations {
    /// Results of the last run.
    pub fn results(&self) -> &[Value] {
        self.report["results"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Number of requests to each agent.
    pub fn request_counts(&self) -> (usize, usize) {
        (self.one.len(), self.two.len())
    }
}

pub struct FeatureFixture {
    one: FakeAgent,
    two: FakeAgent,
    judge: FakeAgent,
    project: Project,
}

/// Placeholder picture, plain and in base64.
const PICTURE: &str = "a receipt over 12 euros";
pub const ENCODED: &str = "YSByZWNlaXB0IG92ZXIgMTIgZXVyb3M=";

impl FeatureFixture {
    pub fn create() -> FeatureFixture {
        let one = FakeAgent::start(answer_request);
        let two = http_agent(|_| "two heard you");
        let judge = FakeAgent::start(|_| {
            let answer = json!({"reasoning": "It is so.", "satisfied": true}).to_string();
            text_reply(&answer)
        });
        let project = Project::with_config(&format!(
            "agents:
  one: {{ endpoint: '{one}' }}
  two:
    type: http
    endpoint: '{two}'
    body: {{ m: '{{{{message}}}}', user: '{{{{user}}}}', team: '{{{{team}}}}', options: '{{{{options}}}}', ctx: '{{{{ctx}}}}' }}
    map: {{ reply: $.reply }}
target: one
connectors:
  usual: {{ type: openai, base_url: '{judge}v1', model: usual, stream: false }}
  strict: {{ type: openai, base_url: '{judge}v1', model: strict, stream: false }}
  planner: {{ type: scripted, script: planner.yaml }}
judge: connectors:usual
hooks:
  prepare: {{ cmd: [sh, -c, 'echo prepared >> hook.log'] }}
"
        ))
        .file("receipt.png", PICTURE)
        .file("src/bank.ts", "export const charge = (args: { order: string }) => ({ content: `charged ${args.order}` });\n")
        .file("planner.yaml", "name: planner\nrules:\n  - when: { turn: 1 }\n    reply: { json: { reason: It begins., goal_progress: none, done: false, message: I plan } }\n  - reply: { json: { reason: It has it., goal_progress: achieved, done: true, message: '' } }\n")
        .file("rooms.json", r#"[{"id": "blue", "name": "Blue", "goal": "the blue room"}, {"id": "red", "name": "Red", "goal": "the red room"}]"#);
        FeatureFixture { one, two, judge, project }
    }

    pub fn run(&self, written: &FrontEndTest) -> Observations {
        let (mut code, mut words) = (0, String::new());
        for arguments in written.runs {
            let _ = std::fs::remove_file(self.project.workspace.path("report.json"));
            let (ended, said) = match written.test {
                TestSource::Data(text) => self.run_binary("a.test.yaml", text, arguments),
                TestSource::TypeScript(text) => self.run_binary("a_test.ts", text, arguments),
                TestSource::Rust(declare) => self.run_harness(declare, arguments),
            };
            code = ended;
            words += &said;
        }
        let report = std::fs::read_to_string(self.project.workspace.path("report.json")).ok();
        let told = |agent: &FakeAgent| agent.requests().iter().map(FakeRequest::json).collect::<Vec<_>>();
        let model = |request: Value| request["model"].as_str().unwrap_or_default().to_string();
        let runs = self.project.hotseat(&["runs"]);
        Observations {
            code,
            words,
            report: report.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
            one: told(&self.one),
            two: told(&self.two),
            judged: told(&self.judge).into_iter().map(model).collect(),
            prepared: std::fs::read_to_string(self.project.workspace.path("hook.log"))
                .map_or(0, |log| log.lines().count()),
            runs: runs.stdout + &runs.stderr,
        }
    }

    fn run_binary(&self, path: &str, text: &str, arguments: &[&str]) -> (i32, String) {
        self.project.workspace.file(path, text);
        let all = match arguments {
            // `hotseat` subcommand other than `test`.
            [command @ ("recheck" | "resume"), rest @ ..] => [&[*command], rest].concat(),
            arguments => [&["test", "-o", "report.json"], arguments].concat(),
        };
        let output = self.project.hotseat(&all);
        (output.code, output.stdout + &output.stderr)
    }

    fn run_harness(&self, declare: fn(&mut Group), arguments: &[&str]) -> (i32, String) {
        if let [command @ ("recheck" | "resume"), rest @ ..] = arguments {
            let output = self.project.hotseat(&[&[*command], rest].concat());
            return (output.code, output.stdout + &output.stderr);
        }
        let (harness, output) =
            self.project.harness("tests/a.rs", &[&["-o", "report.json"], arguments].concat());
        let code = harness.run(declare);
        let HarnessOutput::Captured(kept) = output else { unreachable!("it is kept") };
        (code.into(), kept.text())
    }
}

/// An echo agent that also follows requests in the user text.
fn answer_request(request: &FakeRequest) -> FakeReply {
    let run = FakeRun::for_request(request).started();
    let said = request.last_user_text();
    let addresses = request.json()["forwardedProps"].clone();
    let bank = || McpClient::new(addresses["bank"].as_str().expect("the address of the bank"));
    let order = json!({"order": "o-1"});
    let run = match said.as_str() {
        "charge" => {
            let bank = bank();
            let paid = (0..3).find_map(|_| bank.call("charge", &order).ok());
            run.text(&format!("paid {}", paid.unwrap_or_default())).finished()
        }
        "charge or refund" => {
            let bank = bank();
            let done = bank.call("charge", &order).or_else(|_| bank.call("refund", &order));
            run.text(&format!("done: {done:?}")).finished()
        }
        "charge and answer" => {
            let bank = bank().responding(&[("Sure?", json!({"action": "accept"}))]);
            run.text(&format!("{:?}", bank.call("charge", &order))).finished()
        }
        "charge and list" => {
            let bank = bank();
            let done = bank.call("charge", &order);
            run.text(&format!("{done:?} {}", bank.tools().unwrap_or_default().join(","))).finished()
        }
        "ask your model" => {
            let model = ModelClient::new(addresses["model"].as_str().expect("the address of the model"));
            let question = json!({"role": "user", "content": "hello"});
            let reply = model.call_with_retries(&[question], &[]).expect("a reply");
            run.text(reply["content"].as_str().unwrap_or_default()).finished()
        }
        _ if !request.resume().is_empty() => run.text("It is paid.").finished(),
        "fail" => run.error("out of paper", Some("E7")),
        "pay" => run.interrupted(vec![json!({"id": "i1", "reason": "tool_call", "message": "Pay it?"})]),
        "look" => run
            .tool("c1", "look_up", &json!({"room": "Blue Room"}), Some(json!({"free": true})))
            .text("It is free.")
            .finished(),
        said => run.text(&format!("one heard {said}")).finished(),
    };
    run.into()
}
