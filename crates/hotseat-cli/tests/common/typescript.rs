//! Files of tests in TypeScript, run against a fake agent.

use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Output, Request};
use serde_json::json;

use super::{Project, Tested, echo_agent};

/// What every file of tests of ours begins with; it is one line.
pub const IMPORTS: &str = "import { describe, context, it, before, after, criterion, topic, simulator, scenarioSet, expectConversationTo, user, agent, conversation, expect, evaluate, gt, gte, lt, lte, between, oneOf, anything } from 'hotseat';";

/// An agent that books rooms: it looks one up, and says so.
pub fn booking() -> FakeAgent {
    FakeAgent::start(|request: &Request| {
        let said = request.json()["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        let run = Run::of(request).started();
        let arguments = json!({"room": "Blue Room", "capacity": 10, "asked": said});
        run.tool("c1", "check_availability", &arguments, Some(json!({"free": true})))
            .text("The Blue Room is free at 3:00 PM.")
            .finished()
    })
}

/// A project with one file of tests.
pub fn project(agent: &FakeAgent, script: &str) -> Project {
    Project::of(agent).file("a_test.ts", &format!("{IMPORTS}\n{script}"))
}

#[track_caller]
pub fn came_to(script: &str) -> Tested {
    project(&booking(), script).test(&["a_test.ts"])
}

#[track_caller]
pub fn refused(script: &str) -> Output {
    let agent = booking();
    let output = project(&agent, script).hotseat(&["test", "a_test.ts"]);
    assert_eq!((output.code, agent.requests().len()), (2, 0), "{output}");
    output
}

/// What the user said to the agent, request by request.
pub fn heard(agent: &FakeAgent) -> Vec<String> {
    let last = |request: &Request| {
        request.json()["messages"].as_array().unwrap().last().unwrap()["content"]
            .as_str()
            .unwrap()
            .to_string()
    };
    agent.requests().iter().map(last).collect()
}

pub fn statuses(tested: &Tested) -> Vec<String> {
    let results = tested.report["results"].as_array().unwrap();
    let mut all: Vec<String> = results
        .iter()
        .map(|result| format!("{} {}", result["name"].as_str().unwrap(), result["status"].as_str().unwrap()))
        .collect();
    all.sort();
    all
}

/// Runs each as a test of its own.
#[track_caller]
pub fn holds_or_not(declared: &str, first: &str, all: &[(&str, bool)]) {
    let tests = all.iter().enumerate();
    let tests: Vec<String> =
        tests.map(|(number, (code, _))| format!("it('{number}', () => {{ {first} {code}; }});")).collect();
    let tested = came_to(&format!("{declared}\n{}", tests.join("\n")));
    for (number, (code, holds)) in all.iter().enumerate() {
        let case = tested.case(&number.to_string());
        let status = if *holds { "passed" } else { "failed" };
        assert_eq!(case["status"], status, "{code}: {case:#}");
        if !holds {
            assert_eq!(case["failure"]["kind"], "assertion", "{code}: {case:#}");
        }
    }
}

/// A project whose agent echoes, with a judge and a simulated user that are scripts.
pub fn helped(judge: &str, simulator: &str, script: &str) -> Project {
    let agent = echo_agent();
    let text = format!(
        "target:\n  endpoint: {}\nconnectors:\n  judge: {{ type: scripted, script: judge.yaml }}\n  user: {{ type: scripted, script: user.yaml }}\njudge: connectors:judge\nsimulator: connectors:user\ncriteria:\n  of_project: A criterion of the project\n",
        agent.url()
    );
    // The agent lives as long as the test.
    std::mem::forget(agent);
    Project::with(&text)
        .file("judge.yaml", judge)
        .file("user.yaml", simulator)
        .file("a_test.ts", &format!("{IMPORTS}\n{script}"))
}

pub const JUDGE: &str = r#"
name: judge
use: always
rules:
  - when: { system: satisfies a criterion, user: '(?s)good.*"agent":"[^\n]*fine' }
    reply: { json: { reasoning: it is fine, satisfied: true } }
  - when: { system: satisfies a criterion, user: 'broken' }
    reply: no JSON at all
  - when: { system: satisfies a criterion }
    reply: { json: { reasoning: it is not, satisfied: false } }
  - when: { system: achieved a goal }
    reply: { json: { reasoning: done, achieved: true } }
  - when: { system: which topic, user: 'The conversation was in: (?<topic>\w+)' }
    reply: { json: { reasoning: stays, topic: "{{ topic }}", confidence: low } }
"#;

/// Says "one", "two", "three", and then that it has what it wants.
pub const USER: &str = r#"
name: user
use: always
rules:
  - when: { user: 'You said: three' }
    reply: { json: { message: "", done: true, goal_progress: achieved, reason: all said } }
  - when: { user: 'You said: two' }
    reply: { json: { message: three, done: false, goal_progress: partial, reason: "" } }
  - when: { user: 'You said: one' }
    reply: { json: { message: two, done: false, goal_progress: partial, reason: "" } }
  - reply: { json: { message: one, done: false, goal_progress: none, reason: "" } }
"#;
