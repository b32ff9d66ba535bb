//! Script functions that judge and that run before and after cases and runs.

use std::collections::BTreeSet;

use hotseat_testkit::{FakeAgent, ProgramOutput};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::common::{Project, TestRun, echo_agent};

/// A case with one assertion on an echo.
fn case(id: &str, assertion: &Value) -> String {
    json!({"id": id, "input": "hi", "assert": [assertion]}).to_string()
}

/// A project whose only case is judged by `src/checks.ts`.
fn judged_project(agent: &FakeAgent, script: &str, assertion: &Value) -> Project {
    Project::with_agent(agent).file("src/checks.ts", script).file("a.test.jsonl", &case("a", assertion))
}

fn judge_assertion(function: &str) -> Value {
    json!({"type": "script", "use": function})
}

#[track_caller]
fn run_judged(script: &str, assertion: &Value) -> TestRun {
    let agent = echo_agent();
    judged_project(&agent, script, assertion).test(&[])
}

#[track_caller]
fn assert_rejected(project: &Project, agent: &FakeAgent, args: &[&str]) -> ProgramOutput {
    let output = project.hotseat(&[&["test"], args].concat());
    assert_eq!(output.code, 2, "{output}");
    assert_eq!(agent.requests().len(), 0);
    output
}

#[test]
fn function_judges_agent_text_and_calls() {
    let agent = FakeAgent::with_run(|run, _| {
        run.tool("c1", "lookup", &json!({"id": 7}), Some(json!({"ok": true})))
            .text("{\"total\": 12}")
            .finished()
    });
    let script = "
        interface Context { metadata: { most: number }; tool_calls: any[]; response: any; conversation: any[]; test_id: string }
        export async function total(output: string, input: string, expected: unknown, context: Context) {
          await null;
          const seen = { output, input, expected, ...context };
          console.log('seen', seen);
          return { pass: context.response.json.total <= context.metadata.most, message: `total of ${context.response.json.total}` };
        }";
    let assertion = json!({"type": "script", "use": "scripts:checks.total", "value": {"a": 1}, "options": {"metadata": {"most": 20}}});
    let tested = judged_project(&agent, script, &assertion).test(&[]);
    tested.assert_all_passed();
    let told = &tested.case("a")["assertions"][0];
    assert_eq!(told["actual"], "total of 12");
    let seen = told["logs"][0].as_str().unwrap().strip_prefix("seen ").unwrap();
    let seen: Value = serde_json::from_str(seen).unwrap();
    assert_eq!((&seen["output"], &seen["input"]), (&json!("{\"total\": 12}"), &json!("hi")));
    assert_eq!((&seen["expected"], &seen["test_id"]), (&json!({"a": 1}), &json!("a")));
    let call = json!({"id": "c1", "name": "lookup", "args": {"id": 7}, "turn": 1, "result": {"ok": true}});
    assert_eq!(seen["tool_calls"], json!([call]));
    assert_eq!(seen["conversation"][0], json!({"role": "user", "content": "hi"}));
}

#[test]
fn judgement_is_word_or_object() {
    for (returned, passed) in [
        ("true", true),
        ("false", false),
        ("{ pass: true }", true),
        ("{ passed: false, reason: 'too long' }", false),
        ("{ pass: false, message: 'too long' }", false),
    ] {
        let script = format!("export const judge = () => ({returned});");
        let tested = run_judged(&script, &judge_assertion("scripts:checks.judge"));
        let negated =
            run_judged(&script, &json!({"type": "script", "use": "scripts:checks.judge", "negate": true}));
        for (tested, passed) in [(tested, passed), (negated, !passed)] {
            let case = tested.case("a");
            assert_eq!(case["status"] == "passed", passed, "{returned}: {case:#}");
            if !passed {
                assert_eq!(case["failure"]["kind"], "assertion", "{returned}");
            }
            if returned.contains("too long") {
                assert_eq!(case["assertions"][0]["actual"], "too long");
            }
        }
    }
}

#[test]
fn invalid_judgement_errors_even_if_negated() {
    for script in [
        "export const judge = () => {};",
        "export const judge = () => 1;",
        "export const judge = () => 'true';",
        "export const judge = () => [true];",
        "export const judge = () => ({ pass: 'yes' });",
        "export const judge = () => ({ pass: true, passed: false });",
        "export const judge = () => ({});",
        "export const judge = () => { throw new Error('broken'); };",
        "export const judge = async () => { await null; return missing; };",
        "export const judge = () => (new Promise(() => {}));",
        "export const judge = () => () => true;",
    ] {
        for negate in [false, true] {
            let tested = run_judged(
                script,
                &json!({"type": "script", "use": "scripts:checks.judge", "negate": negate}),
            );
            tested.assert_fault("a", "script_error", "test");
            assert_eq!(tested.output.code, 1, "{script}");
        }
    }
}

#[test]
fn script_error_reports_line() {
    let script = "type Output = string;\nexport function judge(output: Output) {\n  const parts: string[] = output.split(':');\n  return parts[5]!.trim() === '';\n}\n";
    let tested = run_judged(script, &judge_assertion("scripts:checks.judge"));
    let failure = tested.failure("a");
    assert_snapshot!(failure["message"].as_str().unwrap(), @"script error: scripts:checks.judge: src/checks.ts:4:10: TypeError: cannot read property 'trim' of undefined");
    assert_snapshot!(failure["detail"].as_str().unwrap(), @"
    error: TypeError: cannot read property 'trim' of undefined
     --> src/checks.ts:4:10
      |
    4 |   return parts[5]!.trim() === '';
      |          ^^^^^
    a.test.jsonl:1:57: scripts:checks.judge to pass
    ");
}

#[test]
fn functions_are_found_in_conventional_locations() {
    let agent = echo_agent();
    let project =
        Project::with_config(&format!("agents:\n  it: {{ endpoint: '{agent}', folder: agents/it }}\n"));
    let yes = "export const judge = () => true; export default () => true;";
    let no = "export const judge = () => false; export default () => false;";
    let project = project
        .file("agents/it/src/own.ts", yes)
        .file("src/own.ts", no)
        .file("src/deep/er/checks.ts", yes)
        .file("src/tests/validate-expense.ts", "export default function () { return true; }")
        .file("src/tests/index.ts", "export const other = () => true;")
        .file("src/plain.js", "export function judge() { return true }")
        .file("agents/it/tests/beside.ts", yes)
        .file("agents/src/above.ts", yes)
        .file("src/some_test.ts", yes);
    let uses = [
        "scripts:own.judge",
        "scripts:deep.er.checks.judge",
        "scripts:deep/er/checks.judge",
        "scripts:tests.validate-expense",
        "scripts:tests.other",
        "scripts:plain.judge",
        "scripts:beside.judge",
        "scripts:beside",
        "scripts:above.judge",
        "scripts.own.judge",
        "own.judge",
        "scripts:some.judge",
        "script:some_test.judge",
    ];
    let cases: Vec<String> = uses
        .iter()
        .map(|function| {
            json!({"id": function, "input": "hi", "assertions": [{"type": "script", "script": function}]})
                .to_string()
        })
        .collect();
    let project = project.file("agents/it/tests/a.test.jsonl", &cases.join("\n"));
    project.test(&[]).assert_all_passed();
}

#[test]
fn missing_function_is_reported_before_run() {
    let agent = echo_agent();
    let script = "export const polite = () => true;\nexport const words = 1;\n";
    let output = assert_rejected(
        &judged_project(&agent, script, &judge_assertion("scripts:checks.polit")),
        &agent,
        &[],
    );
    assert_snapshot!(output.stderr, @r#"
    error: src/checks.ts exports no function `polit`
     --> a.test.jsonl:1:57
      |
    1 | {"id":"a","input":"hi","assert":[{"type":"script","use":"scripts:checks.polit"}]}
      |                                                         ^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `polite`?
    "#);
    let output = assert_rejected(
        &judged_project(&agent, script, &judge_assertion("scripts:chekcs.polite")),
        &agent,
        &[],
    );
    assert_snapshot!(output.stderr, @r#"
    error: no script found for `scripts:chekcs.polite`
     --> a.test.jsonl:1:57
      |
    1 | {"id":"a","input":"hi","assert":[{"type":"script","use":"scripts:chekcs.polite"}]}
      |                                                         ^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: looked for src/chekcs.ts, src/chekcs_test.ts, chekcs.ts, chekcs_test.ts, src/chekcs/polite.ts, src/chekcs/polite_test.ts, chekcs/polite.ts, chekcs/polite_test.ts
    "#);
    let output = assert_rejected(
        &judged_project(
            &agent,
            "export const polite = () => {;\n",
            &judge_assertion("scripts:checks.polite"),
        ),
        &agent,
        &[],
    );
    assert_snapshot!(output.stderr, @r#"
    error: Unexpected end of input in block
     --> src/checks.ts:2:1
      |
    2 |
      | ^
      |
     ::: a.test.jsonl:1:57
      |
    1 | {"id":"a","input":"hi","assert":[{"type":"script","use":"scripts:checks.polite"}]}
      |                                                         ----------------------- named here
    "#);
    let output = assert_rejected(
        &judged_project(
            &agent,
            "throw new Error('no');\nexport const polite = 1;",
            &judge_assertion("scripts:checks.polite"),
        ),
        &agent,
        &[],
    );
    assert!(output.stderr.contains("src/checks.ts:1:11"), "{output}");
    for (function, words) in [
        ("scripts:checks.words", "is not a function"),
        ("scripts:../outside.polite", "is not a reference to a script function"),
        ("scripts:", "is not a reference to a script function"),
        ("scripts:/etc/passwd", "is not a reference to a script function"),
    ] {
        let output =
            assert_rejected(&judged_project(&agent, script, &judge_assertion(function)), &agent, &[]);
        assert!(output.stderr.contains(words), "{output}");
        assert!(output.stderr.contains("a.test.jsonl:1:"), "{output}");
    }
    let missing = json!({"type": "script"});
    assert_rejected(&judged_project(&agent, script, &missing), &agent, &[]);
}

#[test]
fn script_cannot_read_outside_project() {
    let agent = echo_agent();
    let project = judged_project(
        &agent,
        "import secret from '../../secret.json';\nexport const judge = () => !!secret;",
        &judge_assertion("scripts:checks.judge"),
    );
    let output = assert_rejected(&project, &agent, &[]);
    assert!(output.stderr.contains("is outside the folder that scripts may read"), "{output}");
    assert!(output.stderr.contains("src/checks.ts:1:20"), "{output}");
}

#[test]
fn functions_work_wherever_typed_assertions_do() {
    let agent = echo_agent();
    let script = "export const hi = (output: string) => output.includes('hi');
        export const two = (_o: string, _i: string, _e: unknown, c: any) => c.conversation.filter((m: any) => m.role === 'user').length === 2;";
    let hi = judge_assertion("scripts:checks.hi");
    let text = json!({
        "id": "a",
        "turns": [{"input": "hi", "assertions": [hi]}, {"input": "hi you", "evaluate": [judge_assertion("scripts:checks.two"), {"type": "script", "use": "scripts:checks.hi", "negate": true}]}],
        "final_assertions": [judge_assertion("scripts:checks.two")],
    });
    let tested = Project::with_agent(&agent)
        .file("src/checks.ts", script)
        .file("a.test.jsonl", &text.to_string())
        .test(&[]);
    tested.assert_all_passed();
    let of_second: Vec<&Value> =
        tested.case("a")["turns"][1]["assertions"].as_array().unwrap().iter().map(|a| &a["passed"]).collect();
    assert_eq!(of_second, [true, false], "a soft one is only measured");
}

/// The sample of the documentation, reduced to scripts.
const ENV_TEST: &str = r#"
interface Case { id: string }
export function Before(ctx: Context, testCase: Case): BeforeResult {
  console.log("preparing", testCase.id, "for", ctx.authorized.user_id);
  return { who: "Ada", data: { userId: 7, testId: testCase.id } };
}

export function After(ctx: Context, testCase: Case, result: TestResult, beforeData: any) {
  if (beforeData?.userId) {
    console.warn("cleaning", testCase.id, result.status, result.error_kind, beforeData.userId, ctx.locale !== undefined);
  }
}

export async function BeforeAll(ctx: Context, testCases: Case[]): Promise<BeforeResult> {
  await null;
  console.log("before all", testCases.map((one) => one.id).join());
  return { data: { initialized: true } };
}

export function AfterAll(ctx: Context, results: TestResult[], beforeData: any) {
  console.log("after all", results.map((one) => one.status).join(), beforeData.initialized, typeof ctx);
}
"#;

fn project_with_hooks(agent: &FakeAgent, before: &str, after: &str) -> Project {
    let case = json!({
        "id": "T001", "input": "as ${who}", "before": before, "after": after,
        "assertions": [{"type": "contains", "value": "as Ada"}],
    });
    Project::with_agent(agent).file("a.test.jsonl", &case.to_string())
}

#[test]
fn functions_run_before_and_after_case() {
    let agent = echo_agent();
    for (before, after) in [
        ("env_test.Before", "env_test.After"),
        ("src/env_test.Before", "src/env_test.After"),
        ("env.Before", "scripts:env_test.After"),
        ("Before", "After"),
    ] {
        let project = project_with_hooks(&agent, before, after).file("src/env_test.ts", ENV_TEST);
        let tested = project.test(&["--user", "ada", "-v"]);
        tested.assert_all_passed();
        let logs = &tested.case("T001")["logs"];
        assert_eq!(
            logs,
            &json!(["preparing T001 for ada", "warn: cleaning T001 passed null 7 true"]),
            "{before}"
        );
        assert!(tested.output.stdout.contains("console: preparing T001 for ada"), "{}", tested.output);
    }
    for (place, name) in [
        ("src/deep/env_test.ts", "deep/env_test"),
        ("env_test.ts", "env_test"),
        ("src/env_test.js", "env_test"),
    ] {
        let plain = "export const Before = () => ({ who: 'Ada' }); export const After = (c, t, r, data) => console.log(data);";
        let project = project_with_hooks(&agent, &format!("{name}.Before"), &format!("{name}.After"))
            .file(place, plain);
        let tested = project.test(&[]);
        tested.assert_all_passed();
        assert_eq!(tested.case("T001")["logs"], json!(["{\"who\":\"Ada\"}"]), "{place}");
    }
}

/// Test files end in `_test` too, and cannot be loaded as scripts.
#[test]
fn hooks_are_found_beside_test_files() {
    let agent = echo_agent();
    let test_file = "import { it, user } from 'hotseat';\nit('a', () => { user.says('hi'); });\n";
    let project = |before: &str| {
        project_with_hooks(&agent, before, "After").file("a_test.ts", test_file).file("z_test.ts", ENV_TEST)
    };
    project("Before").test(&["-k", "T001"]).assert_all_passed();
    project("Befor").hotseat(&["test", "-k", "T001"]).assert_stderr(2, &["unknown hook `Befor`"]);
    let in_text = project("Befor").file("noon_test.ts", &test_file.replace("'a'", "'Before noon'"));
    let misspelt = in_text.hotseat(&["test", "-k", "T001"]);
    assert!(misspelt.stderr.contains("unknown hook `Befor`"), "{misspelt}");
}

#[test]
fn functions_run_before_and_after_run() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).file("src/env_test.ts", ENV_TEST).file(
        "a.test.jsonl",
        &[
            case("a", &json!({"type": "contains", "value": "hi"})),
            case("b", &json!({"type": "contains", "value": "no"})),
        ]
        .join("\n"),
    );
    project
        .hotseat(&["test", "--before", "env_test.BeforeAll", "--after", "env_test.AfterAll", "-v"])
        .assert_stderr(1, &["console: before all a,b\nconsole: after all passed,failed true object"]);

    let quiet = project.hotseat(&["test", "--before", "env_test.BeforeAll"]);
    assert!(!quiet.stderr.contains("console:"), "{quiet}");

    let events = project.hotseat(&["test", "--json", "-v", "--before", "env_test.BeforeAll"]);
    assert!(
        events.stdout.contains(r#"{"type":"log","level":"info","message":"before all a,b"}"#),
        "{events}"
    );
}

#[test]
fn failing_before_function_prevents_case() {
    let agent = echo_agent();
    let script = "export function Before() {\n  console.log('on the way');\n  throw new Error('no database');\n}\nexport const After = () => { throw new Error('not cleaned') };\n";
    let project =
        project_with_hooks(&agent, "env_test.Before", "env_test.After").file("src/env_test.ts", script);
    let tested = project.test(&[]);
    let failure = tested.failure("T001");
    assert_eq!(failure["kind"], "hook_error");
    assert_snapshot!(failure["message"].as_str().unwrap(), @"before script failed: hook `env_test.Before` failed: Error: no database (src/env_test.ts:3:13)");
    assert_snapshot!(failure["detail"].as_str().unwrap(), @"
    error: Error: no database
     --> src/env_test.ts:3:13
      |
    3 |   throw new Error('no database');
      |             ^^^^^
    console:
    on the way
    ");
    assert_eq!(
        tested.case("T001").get("warnings"),
        None,
        "without a successful before hook there is no cleanup"
    );
    assert_eq!(agent.requests().len(), 0);

    project
        .hotseat(&["test", "--before", "env_test.Before"])
        .assert_stderr(3, &["--before env_test.Before failed, so no case ran"]);

    let good = script.replace("throw new Error('no database');", "return { who: 'Ada' };");
    let tested = project_with_hooks(&agent, "env_test.Before", "env_test.After")
        .file("src/env_test.ts", &good)
        .test(&[]);
    tested.assert_all_passed();
    let warning = tested.case("T001")["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains(
            "after script failed: hook `env_test.After` failed: Error: not cleaned (src/env_test.ts:5:"
        ),
        "{warning}"
    );
}

#[test]
fn missing_hooks_are_reported_before_run() {
    let agent = echo_agent();
    let with =
        |name: &str| project_with_hooks(&agent, name, "env_test.After").file("src/env_test.ts", ENV_TEST);
    let output = assert_rejected(&with("env_test.Befor"), &agent, &[]);
    assert!(output.stderr.contains("did you mean `Before`?"), "{output}");
    assert!(output.stderr.contains("a.test.jsonl:1:"), "{output}");
    let output = assert_rejected(&with("other_test.Before"), &agent, &[]);
    assert!(output.stderr.contains("unknown hook `other_test.Before`"), "{output}");
    let two = with("Before").file("src/more_test.ts", "export const Before = () => 1;");
    let output = assert_rejected(&two, &agent, &[]);
    assert!(output.stderr.contains("several scripts have a function `Before`"), "{output}");
    assert_rejected(&with("env_test.Before"), &agent, &["--before", "env_test.Nothing"]);
}

#[test]
fn command_takes_precedence_over_function() {
    let agent = echo_agent();
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{agent}' }}\nhooks:\n  env_test.Before: {{ cmd: [sh, -c, 'echo \"{{\\\"who\\\": \\\"Ada\\\"}}\"'] }}\n"
    ));
    let case = json!({"id": "a", "input": "as ${who}", "before": "env_test.Before", "assert": [{"type": "contains", "value": "as Ada"}]});
    let script = "export const Before = () => ({ who: 'nobody' });";
    project
        .file("src/env_test.ts", script)
        .file("a.test.jsonl", &case.to_string())
        .test(&[])
        .assert_all_passed();
}

#[test]
fn concurrent_calls_use_separate_engines() {
    let agent = echo_agent();
    let script = "let n = 0;
        export const Before = (_ctx: unknown, test: { id: string }) => ({ who: `${test.id}.${++n}`, data: test.id });
        export const After = (_ctx: unknown, test: { id: string }, _r: unknown, data: string) => { console.log(test.id, data, ++n) };
        export const own = (output: string, _i: string, _e: unknown, c: { test_id: string }) => output.endsWith(`${c.test_id}.1`);";
    let cases: Vec<String> = (0..50).map(|number| {
        json!({"id": format!("c{number}"), "input": "as ${who}", "before": "Before", "after": "After", "assert": [{"type": "script", "use": "env_test.own"}]}).to_string()
    }).collect();
    let tested = Project::with_agent(&agent)
        .file("src/env_test.ts", script)
        .file("a.test.jsonl", &cases.join("\n"))
        .test(&["--parallel", "10"]);
    tested.assert_all_passed();
    let logs: BTreeSet<String> = (0..50)
        .map(|number| tested.case(&format!("c{number}"))["logs"][0].as_str().unwrap().to_string())
        .collect();
    assert_eq!(logs, (0..50).map(|number| format!("c{number} c{number} 1")).collect());
}

#[test]
fn endless_judge_function_is_stopped() {
    let tested =
        run_judged("export function judge() {\n  for (;;) {}\n}\n", &judge_assertion("scripts:checks.judge"));
    let failure = tested.failure("a");
    assert_eq!(failure["kind"], "script_error");
    assert!(failure["message"].as_str().unwrap().contains("did not finish within 10000 ms"), "{failure}");
}

#[test]
fn redacts_secrets_in_script_output() {
    let agent = echo_agent();
    let script = "export const Before = () => ({ who: 'Ada', API_TOKEN: 'sesame-open-1' });
        export const After = (_c: unknown, _t: unknown, _r: unknown, data: any) => console.log(data.API_TOKEN);";
    let tested = project_with_hooks(&agent, "Before", "After").file("src/env_test.ts", script).test(&[]);
    tested.assert_all_passed();
    assert_eq!(tested.case("T001")["logs"], json!(["[redacted:API_TOKEN]"]));
}

/// Functions that steer a conversation are no assertions, so their lines belong to the case.
#[test]
fn console_output_of_conditions_is_reported() {
    let agent = echo_agent();
    let script = "export const user = () => ({ input: 'more' });
        export const stop = (output: string) => { console.log('may stop', output); return true };
        export const moved = () => { console.log('moved?'); return true };";
    let case = "name: a\nclassify_topics: triggers\ntopics:\n  one: { characteristic: x }\n  two: { characteristic: y, triggers: { on_condition: 'scripts:roles.moved' } }\ngraph: { one: two, two: }\nsimulate: { goal: g, use: 'scripts:roles.user', stop_when: 'scripts:roles.stop' }\n";
    let tested = Project::with_agent(&agent).file("src/roles.ts", script).suite("a", case).test(&[]);
    tested.assert_all_passed();
    let logs = tested.case("a")["logs"].to_string();
    assert!(logs.contains("moved?") && logs.contains("may stop"), "{logs}");
}

/// A criterion about the whole case must be satisfied by each turn.
#[test]
fn criteria_of_a_case_cover_each_turn() {
    let agent = echo_agent();
    let suite = r#"
name: short
criteria: { short: { description: Each answer is short, function: "scripts:checks.short" } }
turns: [{ user: yes }, { user: FIRST }, { user: no }]
assert: [{ type: satisfy, criteria: [short] }]
"#;
    let script =
        "export function short(turn: any) { return { pass: turn.text.length < 30, message: turn.text } }\n";
    let project = |text: &str| {
        Project::with_agent(&agent).file("src/checks.ts", script).suite("a", &suite.replace("FIRST", text))
    };
    project("maybe").test(&[]).assert_all_passed();
    let tested = project("this is a very long text that is not short").test(&[]);
    let check = &tested.case("short")["assertions"][0];
    assert_eq!(check["passed"], false, "{}", tested.output);
    let actual = check["actual"].as_str().unwrap_or_default();
    assert!(actual.starts_with("turn 2: ") && actual.contains("very long"), "{check:#}");
}

/// The program names functions only in the conversation, so the file does not tell which ones a test calls.
#[test]
fn typescript_tests_call_functions_as_files_do() {
    let agent = echo_agent();
    let config = format!(
        "target: {{ endpoint: '{agent}' }}
criteria:
  short: {{ description: The answer is short, function: 'scripts:checks.short' }}
topics:
  first: {{ characteristic: The beginning }}
  second: {{ characteristic: The end, triggers: [{{ on_condition: 'scripts:checks.named' }}] }}
"
    );
    let functions = "
export const short = (turn: any) => turn.text.length < 20;
export const named = (output: string) => output.includes('name');
";
    let rows = [
        "user.says(TEXT); expect(agent).toHold({ type: 'script', use: 'scripts:checks.named' });",
        "user.says({ user: TEXT, assert: [{ type: 'script', use: 'scripts:checks.named' }] });",
        "user.says(TEXT); expect(agent).toSatisfy('short');",
        "user.says(TEXT); expect(agent).toSatisfy('scripts:checks.short');",
        "expectConversationTo({ first: 'second', second: null }); user.says(TEXT); expect(agent).toBeInTopic('second');",
    ];
    let test = |name: &str, text: &str, row: &str| {
        let options = "{ classifyTopics: 'triggers' }";
        format!("it('{name}', {options}, () => {{ {} }});\n", row.replace("TEXT", &format!("'{text}'")))
    };
    let mut script =
        "import { agent, evaluate, expect, expectConversationTo, it, user } from 'hotseat';\n".to_string();
    for (index, row) in rows.iter().enumerate() {
        script += &test(&format!("right {index}"), "my name", row);
        script += &test(&format!("wrong {index}"), "I tell you nothing, whatever you ask", row);
    }
    let missing = "user.says('a'); evaluate(agent).toHold({ type: 'script', use: 'scripts:checks.absent' });";
    script += &test("missing", "a", missing);
    let project = Project::with_config(&config).file("src/checks.ts", functions).file("a_test.ts", &script);
    let tested = project.test(&[]);
    for (index, row) in rows.iter().enumerate() {
        let right = tested.case(&format!("right {index}"));
        assert_eq!(right["status"], "passed", "{row}: {right:#}");
        assert_eq!(tested.failure(&format!("wrong {index}"))["kind"], "assertion", "{row}");
    }
    tested.assert_failure("missing", "test_error", &["absent"]);
}

/// Which criterion is meant is known only after the hook.
#[test]
fn a_hook_may_name_a_criterion() {
    let agent = echo_agent();
    let suite = r#"
name: TEXT
hooks: [{ cmd: [echo, '{"WHICH": "NAME"}'] }]
criteria:
  short: { description: The answer is short, function: "scripts:checks.short" }
  kind: { description: The answer is kind, judge: "scripts:checks.judge" }
turns: [{ user: TEXT, assert: { type: satisfy, criteria: "${WHICH}" } }]
"#;
    let functions = "
export const short = (turn: any) => turn.text.length < 20;
export const judge = (asked: any) => ({ reasoning: 'so', satisfied: JSON.stringify(asked).includes('please') });
";
    for (name, right, wrong) in [
        ("short", "yes", "a long text without end"),
        ("kind", "yes please", "go away"),
        ("scripts:checks.short", "yes", "a long text without end"),
    ] {
        let cases = [right, wrong].map(|text| suite.replace("TEXT", text).replace("NAME", name)).join("---");
        let tested =
            Project::with_agent(&agent).file("src/checks.ts", functions).suite("a", &cases).test(&[]);
        assert_eq!(tested.case(right)["status"], "passed", "{name}: {}", tested.output);
        assert_eq!(tested.failure(wrong)["kind"], "assertion", "{name}: {}", tested.output);
    }
    let unknown = suite.replace("TEXT", "a").replace("NAME", "The answer is kind.");
    let tested = Project::with_agent(&agent).file("src/checks.ts", functions).suite("a", &unknown).test(&[]);
    tested.assert_failure("a", "judge_error", &["no judge is configured"]);
}
