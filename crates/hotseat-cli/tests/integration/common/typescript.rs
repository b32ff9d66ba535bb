//! TypeScript test files, run against a fake agent.

use hotseat_testkit::{FakeAgent, ProgramOutput};
use serde_json::json;

use super::{Project, TestRun, echo_agent};

/// First line of every test file; must be a single line.
pub const IMPORTS: &str = "import { describe, context, it, before, after, criterion, topic, simulator, scenarioSet, expectConversationTo, user, agent, conversation, expect, evaluate, gt, gte, lt, lte, between, oneOf, anything } from 'hotseat';";

/// An agent that books rooms after checking availability.
pub fn booking() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let said = request.json()["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        let arguments = json!({"room": "Blue Room", "capacity": 10, "asked": said});
        run.tool("c1", "check_availability", &arguments, Some(json!({"free": true})))
            .text("The Blue Room is free at 3:00 PM.")
            .finished()
    })
}

/// A project with one test file.
pub fn project(agent: &FakeAgent, script: &str) -> Project {
    Project::with_agent(agent).file("a_test.ts", &format!("{IMPORTS}\n{script}"))
}

#[track_caller]
pub fn run_script(script: &str) -> TestRun {
    project(&booking(), script).test(&["a_test.ts"])
}

#[track_caller]
pub fn refused(script: &str) -> ProgramOutput {
    let agent = booking();
    let output = project(&agent, script).hotseat(&["test", "a_test.ts"]);
    assert_eq!((output.code, agent.requests().len()), (2, 0), "{output}");
    output
}

pub fn statuses(tested: &TestRun) -> Vec<String> {
    let results = tested.results();
    let mut all: Vec<String> = results
        .iter()
        .map(|result| format!("{} {}", result["name"].as_str().unwrap(), result["status"].as_str().unwrap()))
        .collect();
    all.sort();
    all
}

/// Runs each assertion as a separate test.
#[track_caller]
pub fn assert_outcomes(declared: &str, first: &str, all: &[(&str, bool)]) {
    let tests = all.iter().enumerate();
    let tests: Vec<String> =
        tests.map(|(number, (code, _))| format!("it('{number}', () => {{ {first} {code}; }});")).collect();
    let tested = run_script(&format!("{declared}\n{}", tests.join("\n")));
    for (number, (code, holds)) in all.iter().enumerate() {
        let case = tested.case(&number.to_string());
        let status = if *holds { "passed" } else { "failed" };
        assert_eq!(case["status"], status, "{code}: {case:#}");
        if !holds {
            assert_eq!(case["failure"]["kind"], "assertion", "{code}: {case:#}");
        }
    }
}

/// A project with an echo agent, a scripted judge and a scripted simulated user.
pub fn project_with_roles(judge: &str, simulator: &str, script: &str) -> Project {
    let agent = echo_agent();
    let text = format!(
        "target:\n  endpoint: {agent}\nconnectors:\n  judge: {{ type: scripted, script: judge.yaml }}\n  user: {{ type: scripted, script: user.yaml }}\njudge: connectors:judge\nsimulator: connectors:user\ncriteria:\n  of_project: A criterion of the project\n"
    );
    // Keeps the agent alive for the whole test.
    std::mem::forget(agent);
    Project::with_config(&text)
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

/// Says "one", "two", "three", and then that its goal is achieved.
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
