//! Script functions as simulated users, judges, generators and report writers, and as hooks.

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::{Project, TEST_TIMEOUT, TestRun, echo, echo_agent};

/// A project whose scripts are in `src/roles.ts`, with cases.
fn project(agent: &FakeAgent, more: &str, script: &str, cases: &[Value]) -> Project {
    Project::with_config(&format!("agents: {{ it: {{ endpoint: '{agent}' }} }}\n{more}"))
        .file("src/roles.ts", script)
        .cases(cases)
}

fn simulated_case(user: &Value) -> Value {
    json!({
        "id": "a", "simulator": user, "max_turns": 4,
        "checkpoints": [{"id": "dinner", "assertion": {"type": "contains", "value": "dinner"}}],
    })
}

const USER: &str = "interface Told { turn_number: number; goal: string; last_response: string; conversation: unknown[]; test_mode: string }
export function user(told: Told) {
  console.log('turn', told.turn_number);
  if (told.test_mode !== 'simulator') throw new Error('asked for something else');
  if (told.turn_number === 1) return 'hello';
  return { input: `${told.goal}, after ${told.last_response} and ${told.conversation.length}`, reasoning: 'says it' };
}
export const done = async (told: Told) => (told.turn_number === 1 ? 'hello' : { goal_achieved: true });
";

#[test]
fn function_provides_user_messages() {
    let agent = echo_agent();
    let user = json!({"use": "scripts:roles.user", "metadata": {"goal": "A dinner"}});
    let tested = project(&agent, "", USER, &[simulated_case(&user)]).test(&[]);
    tested.assert_all_passed();
    let turns = tested.case("a")["turns"].as_array().unwrap();
    let inputs: Vec<&str> = turns.iter().map(|turn| turn["input"].as_str().unwrap()).collect();
    assert_eq!(inputs, ["hello", "A dinner, after You said: hello and 2"]);
    assert_eq!(turns[1]["input_source"], "simulated");
    assert_eq!(turns[1]["roles"][0]["logs"], json!(["turn 2"]));

    for (more, args) in
        [("simulator: scripts:roles.user\n", &[][..]), ("", &["--simulator", "scripts:roles.user"][..])]
    {
        let user = json!({"metadata": {"goal": "A dinner"}});
        project(&agent, more, USER, &[simulated_case(&user)]).test(args).assert_all_passed();
    }
    let done = simulated_case(&json!({"use": "scripts:roles.done"}));
    let failure = project(&agent, "", USER, &[done]).test(&[]).failure("a").clone();
    assert_eq!(failure["message"], "missing checkpoints: dinner");
}

#[test]
fn failing_simulator_function_is_not_agent_failure() {
    let agent = echo_agent();
    for (body, words) in [
        ("", "the answer is empty"),
        ("return 7", "neither an object nor a string"),
        ("return '{\"input\": \"hello'", "it is cut off"),
        ("return { say: 'x' }", "neither `input` nor `goal_achieved`"),
        ("return { input: 3 }", "`input` is 3"),
        ("throw new Error('no words')", "src/roles.ts:2:17: Error: no words"),
        ("for (;;) {}", "no answer after 2000 ms"),
        ("fetch('http://127.0.0.1:1/')", "127.0.0.1 is not permitted"),
    ] {
        let script = format!("export function user(told: object): any {{\n      {body}\n}}\n");
        let case = simulated_case(&json!({"use": "scripts:roles.user"}));
        let tested = project(&agent, "scripts: { timeout_ms: 2000 }\n", &script, &[case]).test(&[]);
        let failure = tested.assert_fault("a", "simulator_error", "simulator");
        assert!(failure["message"].as_str().unwrap().contains(words), "{body}: {failure}");
    }
    let refused = |user: &Value, words: &str| {
        project(&agent, "", USER, &[simulated_case(user)])
            .hotseat(&["test"])
            .assert_stderr(2, &[words, "a.test.jsonl:1:"]);
    };
    refused(&json!({"use": "scripts:roles.usr"}), "did you mean `user`?");
    refused(&json!({"use": "scripts:nowhere.user"}), "no script found for `nowhere.user`");
    refused(
        &json!({"use": "scripts:roles.user", "options": {"connector": "fast"}}),
        "`scripts:roles.user` is a script function and cannot be combined with `connector`",
    );
}

fn judged_case(by: &str) -> Value {
    json!({"id": "a", "input": "hi", "assertions": [{"type": "agent", "use": by, "criteria": "It greets"}]})
}

#[test]
fn function_judges_like_an_agent() {
    let agent = echo_agent();
    let script = "export function fair(told: any) {
      if (told.criteria !== 'It greets' || told.input !== 'hi') throw new Error(JSON.stringify(told));
      return { passed: told.output.includes('hi'), score: 0.75, reason: 'seen' };
    }
    export const hard = () => ({ passed: false, reason: 'never' });
    export const vague = () => ({ score: 1 });
    export const bare = () => true;
    export const broken = () => { throw new Error('no court') };";
    let came_to =
        |name: &str| project(&agent, "", script, &[judged_case(&format!("scripts:roles.{name}"))]).test(&[]);
    let fair = came_to("fair");
    fair.assert_all_passed();
    let check = &fair.case("a")["assertions"][0];
    assert!(check["actual"].as_str().unwrap().contains("seen"), "{check}");
    assert_eq!(came_to("hard").failure("a")["kind"], "assertion");
    for name in ["vague", "bare", "broken"] {
        let tested: TestRun = came_to(name);
        tested.assert_fault("a", "judge_error", "judge");
    }
    let usual = json!({"id": "a", "input": "hi", "assertions": [{"type": "agent", "criteria": "It greets"}]});
    project(&agent, "judge: scripts:roles.fair\n", script, &[usual]).test(&[]).assert_all_passed();
}

#[test]
fn function_generates_cases() {
    let agent = echo_agent();
    let script = "export function make(told: any) {
      const cases = [];
      for (let n = 1; n <= told.count; n++) cases.push({ id: `G${n}`, input: `${told.focus} ${n}`, assertions: [{ type: 'contains', value: told.focus }] });
      if (told.test_mode !== 'generator' || told.target_agent !== 'it') throw new Error(JSON.stringify(told));
      return { cases };
    }
    export const none = () => ({ cases: [] });
    export const wrong = () => [{ id: 'G1', inptu: 'x' }];
    export const broken = () => { throw new Error('no ideas') };";
    let project = project(&agent, "", script, &[]);
    let tested = project.test(&["-n", "it", "-i", "scripts:roles.make?count=3&focus=edges"]);
    tested.assert_all_passed();
    assert_eq!(tested.count("total"), 3);
    assert_eq!(tested.case("G2")["turns"][0]["input"], "edges 2");
    for (name, code, words) in [
        ("none", 3, "scripts:roles.none generated no cases"),
        ("broken", 3, "Error: no ideas\n |"),
        ("wrong", 2, "did you mean `input`?"),
        ("mke", 2, "did you mean `make`?"),
    ] {
        let output = project.hotseat(&["test", "-n", "it", "-i", &format!("scripts:roles.{name}")]);
        assert_eq!(output.code, code, "{name}: {output}");
        assert!(output.stderr.contains(words), "{name}: {output}");
    }
    let output = project.hotseat(&["test", "-i", "scripts:roles.make"]);
    assert_eq!(output.code, 2, "no agent is named: {output}");
}

#[test]
fn function_writes_report() {
    let agent = echo_agent();
    let script = "export const write = (told: any) => `# ${told.report.summary.passed} passed`;";
    let case = json!({"id": "a", "input": "hi", "assertions": [{"type": "contains", "value": "hi"}]});
    let project = project(&agent, "", script, &[case]);
    project.hotseat(&["test", "-r", "scripts:roles.write", "-o", "report.txt"]).assert_code(0);
    assert_eq!(project.workspace.read("report.txt").trim(), "# 1 passed");
}

/// Hooks that log their calls.
const HOOKS: &str = "const note = (what: string) => files.append('log.txt', what + '\\n');
export const BeforeAll = (ctx: any, cases: any[]) => { note(`all ${cases.length}`); return { data: { shared: 7 } }; };
export const Before = (ctx: any, test: any) => { note(`before ${test.id}`); return { data: test.id }; };
export const After = (ctx: any, test: any, result: any, data: any) => {
  note(`after ${test.id} ${result.status} ${result.error_kind} ${data} ${result.assertions.length}`);
};
export const AfterAll = (ctx: any, results: any[], data: any) => {
  note(`end ${results.map((one) => `${one.id} ${one.status}`).join()} ${data.shared}`);
};
";

const AROUND: [&str; 4] = ["--before", "env_test.BeforeAll", "--after", "env_test.AfterAll"];

fn project_with_hooks(agent: &FakeAgent, cases: &[Value]) -> Project {
    let cases: Vec<Value> = cases
        .iter()
        .map(|case| {
            let mut case = case.clone();
            (case["before"], case["after"]) = (json!("env_test.Before"), json!("env_test.After"));
            case
        })
        .collect();
    // The hooks are in `src` of the agent, as documented.
    let project = Project::with_config(&format!(
        "agents: {{ it: {{ endpoint: '{agent}', folder: assistants/expense, timeout_ms: 60000 }} }}\nscripts: {{ write: [log.txt] }}\n"
    ));
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    project
        .file("assistants/expense/src/env_test.ts", HOOKS)
        .file("assistants/expense/tests/inputs.test.jsonl", &lines.join("\n"))
}

fn log(project: &Project) -> Vec<String> {
    project.workspace.read("log.txt").lines().map(str::to_string).collect()
}

fn agent_of_all_kinds() -> FakeAgent {
    FakeAgent::start(|request: &FakeRequest| match request.last_user_text().as_str() {
        "hang" => FakeReply::never(),
        "fail" => FakeRun::for_request(request).started().error("it broke", None).into(),
        "gate" => FakeReply::sse().gate("open"),
        _ => echo(request),
    })
}

#[test]
fn hooks_run_in_document_order_and_after_always_runs() {
    let agent = agent_of_all_kinds();
    let cases = [
        json!({"id": "good", "input": "hi", "assertions": [{"type": "contains", "value": "hi"}]}),
        json!({"id": "bad", "input": "hi", "assertions": [{"type": "contains", "value": "no"}]}),
        json!({"id": "broken", "input": "fail"}),
        json!({"id": "late", "input": "hang", "timeout": "300ms"}),
    ];
    let project = project_with_hooks(&agent, &cases);
    project.hotseat(&[&["test", "--parallel", "1"][..], &AROUND].concat()).assert_code(1);
    assert_eq!(
        log(&project),
        [
            "all 4",
            "before good",
            "after good passed null good 1",
            "before bad",
            "after bad failed assertion bad 1",
            "before broken",
            "after broken failed agent_error broken 0",
            "before late",
            "after late failed timeout late 0",
            "end good passed,bad failed,broken failed,late failed 7",
        ]
    );

    let many: Vec<Value> = (0..30).map(|n| json!({"id": format!("c{n}"), "input": "hi"})).collect();
    let project = project_with_hooks(&agent, &many);
    project.hotseat(&[&["test", "--parallel", "10"][..], &AROUND].concat());
    let log = log(&project);
    assert_eq!((log.len(), log[0].as_str()), (62, "all 30"));
    assert!(log[61].starts_with("end "), "{log:?}");
    for n in 0..30 {
        let at = |line: String| {
            log.iter().position(|own| *own == line).unwrap_or_else(|| panic!("{line}: {log:?}"))
        };
        assert!(at(format!("before c{n}")) < at(format!("after c{n} passed null c{n} 0")));
    }
}

#[test]
fn after_runs_when_run_is_interrupted_or_stopped() {
    let agent = agent_of_all_kinds();
    let cases = [json!({"id": "a", "input": "gate", "timeout": "2s"}), json!({"id": "b", "input": "hi"})];
    let project = project_with_hooks(&agent, &cases);
    let command = project.command(&[&["test", "--parallel", "1"][..], &AROUND].concat());
    let mut running = command.spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    running.wait().assert_code(130);
    let log = log(&project);
    assert_eq!(log[..2], ["all 2", "before a"]);
    assert!(log[2].starts_with("after a failed timeout"), "{log:?}");
    assert!(log[3].starts_with("end a failed,b skipped") && log.len() == 4, "{log:?}");

    let cases = [json!({"id": "a", "input": "fail"}), json!({"id": "b", "input": "hi"})];
    let project = project_with_hooks(&agent, &cases);
    project.hotseat(&[&["test", "--parallel", "1", "--fail-fast"][..], &AROUND].concat());
    let log = self::log(&project);
    assert!(log[3].starts_with("end a failed,b skipped") && log.len() == 4, "{log:?}");
}

#[test]
fn project_hook_can_be_function_with_own_time_limit() {
    let agent = echo_agent();
    let script = "export const slow = () => { for (;;) {} }; export const seed = () => ({ who: 'Ada' });";
    let with = |hook: &str| {
        let case = json!({"id": "a", "input": "as ${who}", "before": "seed", "assert": [{"type": "contains", "value": "as Ada"}]});
        project(&agent, &format!("hooks: {{ seed: {hook} }}\n"), script, &[case])
    };
    with("{ use: 'scripts:roles.seed' }").test(&[]).assert_all_passed();
    let failure = with("{ use: 'roles.slow', timeout_ms: 200 }").test(&[]).failure("a").clone();
    assert!(failure["message"].as_str().unwrap().contains("did not finish within 200 ms"), "{failure}");
    for (hook, words) in [
        ("{ use: 'roles.seed', cmd: [echo] }", "a hook needs either `cmd` or `use`"),
        ("{ timeout_ms: 5 }", "a hook needs either `cmd` or `use`"),
        ("{ use: 'roles.seed', cwd: . }", "a function hook does not support `cwd`"),
        ("{ use: 'roles.sed' }", "did you mean `seed`?"),
    ] {
        let output = with(hook).hotseat(&["test"]);
        assert_eq!(output.code, 2, "{hook}: {output}");
        assert!(output.stderr.contains(words), "{hook}: {output}");
    }
}

/// The page on roles promises a text for the questions with built-in prompts, and its answers are these objects.
#[test]
fn functions_receive_the_questions_of_criteria_and_topics_as_text() {
    let agent = echo_agent();
    let script = "export const judge = (question: unknown) => {
          if (typeof question !== 'string') throw new Error('a text was promised');
          return question.includes('# The topics')
            ? { reasoning: 'it asks for a room', topic: 'rooms', confidence: 'medium' }
            : { satisfied: question.includes('Is friendly.'), reasoning: 'it greets' };
        };";
    let case = "name: a\njudge: scripts:roles.judge\ntopics:\n  greeting: { characteristic: Welcome }\n  rooms: { characteristic: Rooms }\n  tables: { characteristic: Tables }\ngraph: { greeting: [rooms, tables], rooms: , tables: }\nturns: [{ user: Hello, assert: [{ type: topic, name: rooms }, { type: satisfy, criterion: Is friendly. }] }]\n";
    let tested = Project::with_agent(&agent).file("src/roles.ts", script).suite("a", case).test(&[]);
    tested.assert_all_passed();
}
