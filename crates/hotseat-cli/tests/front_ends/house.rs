//! Two agents, a model that judges, and a project that knows them; tests of each front-end are run there.

use std::sync::Arc;

use hotseat::dsl::{Group, Harness, Output, World};
use hotseat_testkit::agui::Run;
use hotseat_testkit::completions::whole;
use hotseat_testkit::{FakeAgent, Reply, Request};
use serde_json::{Value, json};

use super::common::Project;

/// How a front-end says something.
pub enum Front {
    /// This has the effect.
    Has(Written),
    /// It cannot be said; whoever tries is told so, in these words.
    Lacks(Written, &'static str),
}

/// Tests as a front-end has them, and how they are run.
pub struct Written {
    pub test: Test,
    /// Arguments of each run.
    pub runs: &'static [&'static [&'static str]],
}

/// Tests as a front-end has them.
pub enum Test {
    Data(&'static str),
    TypeScript(&'static str),
    Rust(fn(&mut Group)),
}

/// What was seen of the last run, and what all of them have told the agents and the judge.
#[derive(Debug)]
pub struct Seen {
    pub code: i32,
    /// Standard output and standard error.
    pub words: String,
    /// Null where none was written.
    pub report: Value,
    /// What agent `one` was sent, over AG-UI.
    pub one: Vec<Value>,
    /// What agent `two` was sent, over HTTP.
    pub two: Vec<Value>,
    /// The models that were asked to judge.
    pub judged: Vec<String>,
    /// How often the hook of the project has run.
    pub prepared: usize,
    /// What `hotseat runs` tells.
    pub runs: String,
}

impl Seen {
    /// A result of the last run.
    pub fn results(&self) -> &[Value] {
        self.report["results"].as_array().map_or(&[], Vec::as_slice)
    }

    /// How often each agent was asked.
    pub fn asked(&self) -> (usize, usize) {
        (self.one.len(), self.two.len())
    }
}

pub struct House {
    one: FakeAgent,
    two: FakeAgent,
    judge: FakeAgent,
    project: Project,
}

/// What stands for a picture, and what it is in base64.
const PICTURE: &str = "a receipt over 12 euros";
pub const ENCODED: &str = "YSByZWNlaXB0IG92ZXIgMTIgZXVyb3M=";

impl House {
    pub fn open() -> House {
        let one = FakeAgent::start(one);
        let two = FakeAgent::start(|_| Reply::json(200, &json!({"reply": "two heard you"})));
        let judge = FakeAgent::start(|_| {
            let answer = json!({"reasoning": "It is so.", "satisfied": true}).to_string();
            whole(json!({"role": "assistant", "content": answer}), "stop")
        });
        let project = Project::with(&format!(
            "agents:
  one: {{ endpoint: '{}' }}
  two:
    type: http
    endpoint: '{}'
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
",
            one.url(),
            two.url(),
            judge = judge.url(),
        ))
        .file("receipt.png", PICTURE)
        .file("planner.yaml", "name: planner\nrules:\n  - when: { turn: 1 }\n    reply: { json: { reason: It begins., goal_progress: none, done: false, message: I plan } }\n  - reply: { json: { reason: It has it., goal_progress: achieved, done: true, message: '' } }\n")
        .file("rooms.json", r#"[{"id": "blue", "name": "Blue", "goal": "the blue room"}, {"id": "red", "name": "Red", "goal": "the red room"}]"#);
        House { one, two, judge, project }
    }

    pub fn run(&self, written: &Written) -> Seen {
        let (mut code, mut words) = (0, String::new());
        for arguments in written.runs {
            let _ = std::fs::remove_file(self.project.workspace.path("report.json"));
            let (ended, said) = match written.test {
                Test::Data(text) => self.binary("a.test.yaml", text, arguments),
                Test::TypeScript(text) => self.binary("a_test.ts", text, arguments),
                Test::Rust(declare) => self.harness(declare, arguments),
            };
            code = ended;
            words += &said;
        }
        let report = std::fs::read_to_string(self.project.workspace.path("report.json")).ok();
        let told = |agent: &FakeAgent| agent.requests().iter().map(Request::json).collect::<Vec<_>>();
        let model = |request: Value| request["model"].as_str().unwrap_or_default().to_string();
        let runs = self.project.hotseat(&["runs"]);
        Seen {
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

    fn binary(&self, path: &str, text: &str, arguments: &[&str]) -> (i32, String) {
        self.project.workspace.file(path, text);
        let all = match arguments {
            // A command of its own.
            [command @ ("recheck" | "resume"), rest @ ..] => [&[*command], rest].concat(),
            arguments => [&["test", "-o", "report.json"], arguments].concat(),
        };
        let output = self.project.hotseat(&all);
        (output.code, output.stdout + &output.stderr)
    }

    fn harness(&self, declare: fn(&mut Group), arguments: &[&str]) -> (i32, String) {
        if let [command @ ("recheck" | "resume"), rest @ ..] = arguments {
            let output = self.project.hotseat(&[&[*command], rest].concat());
            return (output.code, output.stdout + &output.stderr);
        }
        let output = Output::kept();
        let arguments = [&["-o", "report.json"], arguments].concat();
        let harness = Harness {
            arguments: arguments.iter().map(|argument| argument.to_string()).collect(),
            world: World {
                environment: Arc::default(),
                folder: self.project.workspace.path("."),
                color: false,
                width: 100,
                output: output.clone(),
            },
            file: "tests/a.rs",
        };
        let code = harness.run(declare);
        let Output::Kept(kept) = output else { unreachable!("it is kept") };
        (code.into(), kept.text())
    }
}

/// An agent that repeats what it hears, and does what it is asked for.
fn one(request: &Request) -> Reply {
    let run = Run::of(request).started();
    let said = request.last_user_text();
    let run = match said.as_str() {
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
