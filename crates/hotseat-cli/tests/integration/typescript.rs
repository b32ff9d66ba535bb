//! TypeScript tests: declared by a file, run individually, decided by the recorded trace.

use std::time::{Duration, Instant};

use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::common::typescript::{
    IMPORTS, JUDGE, USER, assert_outcomes, booking, project, project_with_roles, refused, run_script,
    statuses,
};
use crate::common::{Project, echo_agent, example};
use crate::html::ReportPage;

const MIXED: &str = "
export function TestFirst(t) { t.assert.True(true); }
function helper() {}
export const notATest = () => {};
describe('Booking', () => {
  context('by day', { tags: ['day'] }, () => {
    it('finds a room', () => { user.says('hello'); expect(agent).toCallTool('check_availability'); });
    it.skip('waits', () => {});
  });
  it('is left', { skip: 'no rooms yet' }, () => {});
});
export const TestSecond = async (t) => { await null; t.assert.Equal(t.name, 'TestSecond'); };
// export function TestThird(t) {}
it('stands alone', () => {});
";

#[test]
fn test_file_is_a_suite() {
    let agent = booking();
    let project = project(&agent, MIXED);
    let listed = project.hotseat(&["list", "a_test.ts"]);
    assert_snapshot!(listed.stdout, @r#"
    a_test.ts:3 TestFirst
    a_test.ts:8 Booking > by day > finds a room
    a_test.ts:9 Booking > by day > waits (skipped: `skip: true`)
    a_test.ts:11 Booking > is left (skipped: no rooms yet)
    a_test.ts:13 TestSecond
    a_test.ts:15 stands alone
    "#);
    let tested = project.test(&["a_test.ts"]);
    assert_eq!(tested.output.code, 0, "{}", tested.output);
    assert_eq!(
        statuses(&tested),
        [
            "Booking > by day > finds a room passed",
            "Booking > by day > waits skipped",
            "Booking > is left skipped",
            "TestFirst passed",
            "TestSecond passed",
            "stands alone passed",
        ]
    );
    assert_eq!(tested.case("Booking > is left")["skip_reason"], "no rooms yet");
    assert_eq!(tested.case("Booking > by day > finds a room")["tags"], json!(["day"]));
    assert_eq!(agent.user_texts(), ["hello"]);
    let chosen = project.test(&["a_test.ts", "--run", "^Test"]);
    assert_eq!(statuses(&chosen), ["TestFirst passed", "TestSecond passed"]);
}

#[test]
fn discovers_only_hotseat_tests_in_folders() {
    let agent = booking();
    let project = project(&agent, "it('one', () => {});")
        .suite("b", "name: written\nturns: [{user: hi}]")
        .file("src/env_test.ts", "export function Before() {} Deno.test('x', () => {});")
        .file("src/other_test.ts", "import { test } from 'node:test'; test('x', () => {});")
        .file("src/more_test.js", "export function TestMore(t) { t.assert.True(true); }");
    for args in [&[][..], &["."]] {
        let tested = project.test(args);
        assert_eq!(statuses(&tested), ["TestMore passed", "one passed", "written passed"], "{args:?}");
    }
    let output = project.hotseat(&["test", "src/env_test.ts"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(
        output.stderr.contains("no tests in src/env_test.ts") || output.stderr.contains("Deno"),
        "{output}"
    );
}

#[test]
fn hard_assertion_ends_test_and_soft_one_does_not() {
    let agent = booking();
    let script = "it('a', () => {
      user.says('one');
      evaluate(agent).toCallTool('book_room');
      user.says('two');
      expect(agent).toCallTool('book_room');
      user.says('three');
    });";
    let tested = project(&agent, script).test(&["a_test.ts"]);
    assert_eq!(agent.user_texts(), ["one", "two"]);
    let failure = tested.assert_fault("a", "assertion", "agent");
    assert!(failure["detail"].as_str().unwrap().contains("a_test.ts:6:21"), "{failure:#}");
    assert_eq!(tested.output.code, 1);
    let soft = "it('a', () => { user.says('one'); evaluate(agent).toCallTool('book_room'); });";
    assert_eq!(run_script(soft).output.code, 0);
}

#[test]
fn test_functions_name_missing_arguments() {
    let tested = run_script("export function TestA(t) { t.assert.Equal(1); }");
    let message = tested.failure("TestA")["message"].to_string();
    assert!(message.contains("Equal expects 2 arguments and an optional message, got 1"), "{message}");
}

#[test]
fn caught_failure_still_fails() {
    let agent = booking();
    let script = "it('a', async () => {
      user.says('one');
      for (const again of [1, 2]) {
        try { expect(agent).toCallTool('book_room'); } catch {}
        await Promise.resolve().then(() => expect(1).toBe(2)).catch(() => {});
      }
      try { user.says('two'); } catch (error) { console.log(error.message); }
    });
    export function TestB(t) {
      try { t.fatal('no'); } catch {}
      t.assert.True(true);
    }";
    let tested = project(&agent, script).test(&["a_test.ts"]);
    assert_eq!(agent.user_texts(), ["one"]);
    assert_eq!(tested.failure("a")["kind"], "assertion");
    let said = tested.case("a")["logs"].as_array().unwrap();
    assert!(said.iter().any(|line| line.as_str().unwrap().starts_with("the case has ended: ")), "{said:?}");
    assert!(tested.failure("TestB")["message"].as_str().unwrap().contains("no"));
}

#[test]
fn names_that_are_not_imported_are_explained() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent)
        .file("a_test.ts", "describe('a', () => {});\n")
        .file("b_test.ts", "import { it } from 'hotseat';\nit('b', () => { expect(1).toBe(1); });\n");
    let help = "import it: `import { describe } from \"hotseat\"`";
    project.hotseat(&["list", "a_test.ts"]).assert_stderr(2, &["--> a_test.ts:1:1", help]);
    let failure = project.test(&["b_test.ts"]).failure("b").to_string();
    assert!(failure.contains("import { expect } from"), "{failure}");
}

#[test]
fn test_bugs_are_test_errors() {
    for (script, words) in [
        ("it('a', () => { missing(); });", "missing is not defined"),
        ("it('a', () => { throw new Error('broken'); });", "broken"),
        ("it('a', async () => { await null; throw 'words'; });", "words"),
        ("it('a', async () => { Promise.reject(new Error('lost')); });", "lost"),
        ("it('a', () => { user.says(5); });", "user.says needs a message, got 5"),
        ("it('a', () => { user.says({ user: 'x', tiemout: '1s' }); });", "tiemout"),
        ("it('a', () => { expect(agent).toBe(1); });", "toBe compares values"),
        ("it('a', () => { expect(1).toCallTool('x'); });", "needs `agent` or `conversation`"),
        ("it('a', () => { expect(1); });", "asserts nothing"),
        (
            "it('a', () => { expect(conversation.hasToolCall).toBeTruthy(); });",
            "the value is a function: call it",
        ),
        (
            "it('a', () => { expect(conversation.hasToolCall).not.toBe(false); });",
            "the value is a function: call it",
        ),
        ("it('a', () => { expect(agent).toHold({ type: 'contians', value: 'x' }); });", "contians"),
        ("it('a', () => { expect(agent).not.toMatch(/a/, /b/); });", "needs one pattern"),
        ("it('a', () => { criterion('x', 'y'); });", "must be used outside of `it`"),
        ("it('a', () => { describe('x', () => {}); });", "must be used outside of `it`"),
        ("it('a', () => { const a = []; while (true) a.push(new Array(1e6).fill(a)); });", "memory"),
        ("it('a', { timeout: '300ms' }, () => { while (true) {} });", "did not finish within 300 ms"),
        (
            "it('a', { timeout: '300ms' }, () => { while (true) conversation.evaluationResults; });",
            "did not finish within 300 ms",
        ),
        ("after(() => { throw new Error('of after'); }); it('a', () => {});", "of after"),
        ("before(() => { throw new Error('of before'); }); it('a', () => {});", "of before"),
    ] {
        let tested = run_script(script);
        let failure = tested.assert_fault("a", "script_error", "test");
        let shown = failure.to_string();
        assert!(shown.contains(words), "{script}: {failure:#}");
        if !words.contains("memory") && !words.contains("words") && !words.contains("300 ms") {
            assert!(shown.contains("a_test.ts:2:"), "{script}: {failure:#}");
        }
    }
}

#[test]
fn a_wrong_option_of_a_group_is_one_error_at_the_group() {
    let tests = "  it('b', () => {});\n  it('c', () => {});\n";
    for (options, words) in [
        ("{ tgas: ['x'] }", "unknown key `tgas`"),
        ("{ tgas: ['x'] }", "did you mean `tags`?"),
        ("{ turns: [] }", "`turns` is not supported for tests in code"),
        ("{ hooks: [] }", "call `before` and `after` in the group of the test"),
    ] {
        let output = refused(&format!("describe('a', {options}, () => {{\n{tests}}});"));
        assert!(output.stderr.contains(words) && output.stderr.contains("a_test.ts:2:1"), "{output}");
        assert_eq!(output.stderr.matches("error: ").count(), 1, "{output}");
    }
    // The keys that are listed are those of tests in code.
    for script in ["describe('a', { nonsense: 1 }, () => {});", "it('a', { nonsense: 1 }, () => {});"] {
        let output = refused(script);
        let stderr = &output.stderr;
        assert!(stderr.contains("known keys are") && stderr.contains("`turn_assert`"), "{output}");
        assert!(!stderr.contains("`turns`") && !stderr.contains("`hooks`"), "{output}");
    }
}

#[test]
fn user_says_takes_a_turn_by_any_of_its_spellings() {
    let agent = booking();
    let script = "it('a', () => {
      user.says({ user: 'one' });
      user.says({ input: 'two', timeout: '30s' });
      user.says({ content: 'three' });
    });";
    project(&agent, script).test(&["a_test.ts"]).assert_all_passed();
    assert_eq!(agent.user_texts(), ["one", "two", "three"]);
    let failure = run_script("it('a', () => { user.says({ text: 'hi' }); });").failure("a").to_string();
    assert!(failure.contains("user.says needs the user's text under `user`, got"), "{failure}");
}

#[test]
fn excerpts_fit_beside_the_margin_of_a_failure() {
    let long = "a text that is longer than a line of the terminal ".repeat(4);
    let script = format!("{IMPORTS}\nit('a', () => {{ user.says('hi'); throw new Error('{long}'); }});");
    let agent = booking();
    let project = Project::with_agent(&agent).file("a_test.ts", &script);
    let output = project.command(&["test", "a_test.ts"]).env("COLUMNS", "80").run();
    let lines: Vec<&str> = output.stdout.lines().filter(|line| line.contains("2 | it(")).collect();
    assert!(lines.len() == 1 && lines[0].ends_with("..."), "{output}");
}

#[test]
fn declaration_errors_are_reported_before_run() {
    for (script, words) in [
        ("it('a', { tiemout: '1s' }, () => {});", "unknown key `tiemout`"),
        ("it('a', { timeout: 'soon' }, () => {});", "soon"),
        ("it('a', { turns: [] }, () => {});", "`turns` is not supported for tests in code"),
        ("it('a', { hooks: [] }, () => {});", "call `before` and `after` in the group of the test"),
        ("it('a', 5);", "needs a function"),
        ("it('a', () => {}); it('a', () => {});", "another test in this file is called `a`"),
        ("user.says('x');", "can only be used within `it`"),
        ("expect(1).toBe(1);", "can only be used within `it`"),
        ("describe('a', async () => {});", "must not be async"),
        ("describe('a', function* () {});", "a generator function runs nothing"),
        ("scenarioSet('s', [{ name: 'x', goal: 'y' }], async () => {});", "must not be async"),
        ("simulator({ goal: 'x' });", "belongs to a single test"),
        ("criterion('not a name', 'x');", "must be a word like"),
        ("criterion('x', { match: () => 1, matchMessages: () => 1 });", "use one of them"),
        ("scenarioSet('s', 'missing.json', () => {});", "missing.json"),
        ("scenarioSet('s', [{ name: 'x' }], () => {});", "missing required fields: goal"),
        ("const x = 1;", "no tests in a_test.ts"),
        ("it('a', () => {}", "Expected"),
        ("import { x } from './nowhere'; it('a', () => {});", "nowhere"),
        ("import { nothing } from 'hotseat'; it('a', () => {});", "nothing"),
        ("missing();", "missing is not defined"),
        ("while (true) {}", "did not finish"),
    ] {
        let output = refused(script);
        assert!(output.stderr.contains(words), "{script}: {output}");
        if !words.contains("no tests") && !words.contains("did not finish") {
            assert!(
                output.stderr.contains("a_test.ts:2:") || output.stderr.contains("a_test.ts:1:"),
                "{script}: {output}"
            );
        }
    }
}

#[test]
fn errors_report_their_lines() {
    let shown = |script: &str| {
        let tested = run_script(script);
        let detail = tested.failure("a")["detail"].as_str().unwrap().to_string();
        format!("{}\n{detail}", tested.failure("a")["message"].as_str().unwrap())
    };
    assert_snapshot!(shown("it('a', () => {\n  const room: any = undefined;\n  room.name();\n});"), @r#"
    TypeError: cannot read property 'name' of undefined (a_test.ts:4:3)
    error: TypeError: cannot read property 'name' of undefined
     --> a_test.ts:4:3
      |
    4 |   room.name();
      |   ^^^^
    "#);
    assert_snapshot!(shown("it('a', () => {\n  user.says('hello');\n  expect(agent).toCallTool('book_room', { room: /blue/i });\n});"), @"
    expected book_room with room: matching /(?i)blue/ to be called, got no call; tools called: check_availability
    a_test.ts:4:17: expected book_room with room: matching /(?i)blue/ to be called, got no call; tools called: check_availability
    ");
    assert_snapshot!(shown("it('a', () => {\n  expect(1 + 1, 'sums are right').toBe(3);\n});"), @r#"
    sums are right
    a_test.ts:3:35: expected `1 + 1` to be 3, got 2
    "#);
    assert_snapshot!(shown("it('a', { timeout: '200ms' }, () => {\n  while (true) {}\n});"), @r#"
    the script did not finish within 200 ms (a_test.ts:2:1)
    error: the script did not finish within 200 ms
     --> a_test.ts:2:1
      |
    2 | it('a', { timeout: '200ms' }, () => {
      | ^^
    "#);
    assert_snapshot!(shown("it('a', () => {\n  const all = [];\n  while (true) all.push(new Array(1e6).fill(all));\n});"), @r#"
    the script needs more than 64 MiB of memory (a_test.ts:4:45)
    error: the script needs more than 64 MiB of memory
     --> a_test.ts:4:45
      |
    4 |   while (true) all.push(new Array(1e6).fill(all));
      |                                             ^^^
    "#);
    let refused = |script: &str| refused(script).stderr;
    assert_snapshot!(refused("import { rooms } from './rooms';\nit('a', () => {});"), @r#"
    error: no file found for `./rooms`
     --> a_test.ts:2:23
      |
    2 | import { rooms } from './rooms';
      |                       ^^^^^^^^^
      |
      = help: looked for rooms.ts, rooms.js, rooms.mjs, rooms.json, rooms/index.ts, rooms/index.js
    "#);
    assert_snapshot!(refused("import { rooms } from 'hotseat';\nit('a', () => {});"), @r#"
    error: hotseat exports no `rooms`
     --> a_test.ts:2:23
      |
    2 | import { rooms } from 'hotseat';
      |                       ^^^^^^^^^
      |
      = help: hotseat exports describe, context, it, test, before, beforeEach, after, afterEach, criterion, topic, simulator, scenarioSet, expectConversationTo, user, agent, conversation, expect, evaluate, gt, gte, lt, lte, between, oneOf, anything; if `rooms` is a type, write `import type`
    "#);
    assert_snapshot!(refused("it('a', () => {\n  const = 1;\n});"), @r#"
    error: Expected identifier or destructuring pattern, found '='
     --> a_test.ts:3:9
      |
    3 |   const = 1;
      |         ^
    "#);
    assert_snapshot!(refused("\nit('a', { tags: 5 }, () => {});"), @r#"
    error: `tags` must be a list, found the number 5
     --> a_test.ts:3:1
      |
    3 | it('a', { tags: 5 }, () => {});
      | ^^
      |
      = help: write it as a list, between `[` and `]`
    "#);
}

#[test]
fn each_test_has_its_own_engine() {
    let script = "let count = 0;
      for (const name of ['a', 'b', 'c']) it(name, () => { count += 1; expect(count).toBe(1); globalThis.seen = (globalThis.seen ?? 0) + 1; expect(globalThis.seen).toBe(1); });";
    let tested = run_script(script);
    tested.assert_all_passed();
    let repeated = project(&booking(), script).test(&["a_test.ts", "--runs", "3", "--parallel", "4"]);
    repeated.assert_all_passed();
}

#[test]
fn failed_test_is_retried_like_any_case() {
    let agent = FakeAgent::with_run(|run, request| {
        run.text(if request.index == 0 { "no" } else { "yes" }).finished()
    });
    let script = "it('a', { retries: 1 }, () => { expect(user.says('hi').text).toBe('yes'); });";
    let tested = project(&agent, script).test(&["a_test.ts"]);
    tested.assert_all_passed();
    assert_eq!(agent.requests().len(), 2);
}

#[test]
fn hooks_run_around_each_test_for_every_outcome() {
    let script = "before(() => console.log('file'));
      after(() => console.log('file after'));
      describe('g', () => {
        before(() => console.log('group'));
        after(() => console.log('group after'));
        it('a', () => { console.log('body'); expect(1).toBe(2); });
      });";
    let tested = run_script(script);
    assert_eq!(tested.failure("g > a")["kind"], "assertion");
    assert_eq!(tested.case("g > a")["logs"], json!(["file", "group", "body", "group after", "file after"]));
}

#[test]
fn focused_tests_run_alone() {
    let script = "it('a', () => { throw 1; }); it.only('b', () => {}); describe.only('g', () => { it('c', () => {}); });";
    let tested = run_script(script);
    assert_eq!(statuses(&tested), ["a skipped", "b passed", "g > c passed"]);
    assert_eq!(tested.case("a")["skip_reason"], "another test of this file is marked `only`");

    // Nobody asked to skip `a`, but `d`.
    let script = "it('a', () => { throw 1; }); it.only('b', () => {}); it.skip('d', () => {});";
    let tested = project(&echo_agent(), script).test(&["a_test.ts", "--fail-on-skip"]);
    assert_eq!((tested.output.code, tested.count("unasked_skips")), (1, 1), "{}", tested.output);
}

#[test]
fn script_time_is_separate_from_agent_time() {
    let agent = FakeAgent::with_run(|run, _| {
        let run = run.pause(Duration::from_millis(400));
        run.text("slow").finished()
    });
    // The case limit also limits the script; the agent uses most of the time.
    let slow = "it('a', { timeout: '5s' }, () => { for (let i = 0; i < 3; i++) user.says('hi'); });";
    project(&agent, slow).test(&["a_test.ts"]).assert_all_passed();
    let late = "it('a', { timeout: '700ms' }, () => { for (let i = 0; i < 9; i++) user.says('hi'); });";
    let tested = project(&agent, late).test(&["a_test.ts"]);
    assert_eq!(tested.failure("a")["kind"], "timeout");
    let silent = FakeAgent::start(|_: &FakeRequest| FakeReply::never());
    let begun = Instant::now();
    let script = "it('a', () => { user.says({ user: 'hi', timeout: '300ms' }); });";
    let tested = project(&silent, script).test(&["a_test.ts"]);
    assert_eq!(tested.failure("a")["message"], "the turn timed out after 300 ms");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn conversation_is_readable() {
    let script = "it('a', () => {
      expect(conversation.isEmpty).toBe(true);
      const response = user.says('hello');
      expect(response.text).toMatch(/3:00 PM/);
      expect(response.length).toBe(33);
      expect(agent.response.hasToolCall('check_availability', { capacity: gte(5) })).toBe(true);
      user.says('again');
      expect(conversation.turns.length).toBe(2);
      expect(conversation.turnCount).toBe(2);
      expect(conversation.messages.map((m) => m.role)).toEqual(['user', 'agent', 'user', 'agent']);
      expect(conversation.lastUserMessage.content).toBe('again');
      expect(conversation.lastUserMessage.source).toBe('script');
      expect(conversation.allToolCalls.map((c) => [c.name, c.turn])).toEqual([['check_availability', 1], ['check_availability', 2]]);
      expect(conversation.allToolCalls[0].argument('room')).toBe('Blue Room');
      expect(conversation.allToolCalls[1].result).toEqual({ free: true });
      expect(conversation.calledTool('check_availability')).toBe(2);
      expect(conversation.calledTool('book_room')).toBe(0);
      expect(conversation.hasToolCall('check_availability', { asked: 'again' })).toBe(true);
      expect(conversation.toolCallsFor('check_availability', { asked: 'hello' })).toHaveLength(1);
      expect(conversation.currentTopic).toBeNull();
      expect(conversation.topicHistory).toEqual([]);
      expect(agent.currentTurn.number).toBe(2);
      expect(agent.toolCalls).toHaveLength(1);
      expect(agent.responseMatches(/free/)).toBe(true);
      expect(typeof conversation.lastTurn.durationMs).toBe('number');
      evaluate(agent).toContain('no such words');
      expect(conversation.softEvaluations).toHaveLength(1);
      expect(conversation.softEvaluations[0]).toMatchObject({ mode: 'soft', type: 'contains', passed: false, turn: 2 });
    });";
    run_script(script).assert_all_passed();
}

/// An assertion, and whether it passes.
const OF_AGENT: &[(&str, bool)] = &[
    ("expect(agent).toCallTool('check_availability')", true),
    ("expect(agent).toCallTool('book_room')", false),
    ("expect(agent).not.toCallTool('book_room')", true),
    ("expect(agent).not.toCallTool('check_availability')", false),
    ("expect(agent).toCallTool(['book_room', 'check_availability'])", true),
    ("expect(agent).toCallTool('check_availability', { room: 'Blue Room' })", true),
    ("expect(agent).toCallTool('check_availability', { room: 'Red Room' })", false),
    ("expect(agent).toCallTool('check_availability', { capacity: 10 })", true),
    ("expect(agent).toCallTool('check_availability', { capacity: '10' })", false),
    ("expect(agent).toCallTool('check_availability', { room: /^blue/i })", true),
    ("expect(agent).toCallTool('check_availability', { room: /^blue/ })", false),
    ("expect(agent).toCallTool('check_availability', { capacity: gte(10) })", true),
    ("expect(agent).toCallTool('check_availability', { capacity: gt(10) })", false),
    (
        "expect(agent).toCallTool('check_availability', { capacity: between(1, 10), room: oneOf('Blue Room') })",
        true,
    ),
    ("expect(agent).toCallTool('check_availability', { capacity: (n) => n % 2 === 0 })", true),
    ("expect(agent).not.toCallTool('check_availability', { capacity: (n) => n % 2 === 1 })", true),
    ("expect(agent).toCallTool('check_availability', { missing: anything() })", false),
    ("expect(agent).toCallTool('check_availability', undefined, { times: 1 })", true),
    ("expect(agent).toCallTool('check_availability', undefined, { times: 2 })", false),
    ("expect(agent).toCallTool('check_availability', { room: /Blue/ }, { times: { max: 0 } })", false),
    ("expect(conversation).toHaveToolCall('check_availability', { asked: 'hello' })", true),
    ("expect(agent).toHaveToolCall('check_availability', { asked: 'hello' })", false),
    ("expect(conversation).toHaveToolCall('check_availability', undefined, { times: 2 })", true),
    ("expect(agent).toMatch(/free/, /3:00/)", true),
    ("expect(agent).toMatch(/free/, /4:00/)", false),
    ("expect(agent).toMatchAny(/4:00/, /3:00/)", true),
    ("expect(agent).toMatchAny(/4:00/, /5:00/)", false),
    ("expect(agent).not.toMatch(/4:00/)", true),
    ("expect(agent).not.toMatch(/3:00/)", false),
    ("expect(agent).toMatch(/FREE/)", false),
    ("expect(agent).toContain('Blue Room')", true),
    ("expect(agent).not.toContain('Blue Room')", false),
    ("expect(agent).toSatisfy((turn) => turn.agentResponse.text.length < 40)", true),
    ("expect(agent).toSatisfy('concise', (turn) => turn.agentResponse.text.length < 4)", false),
    ("expect(agent).toSatisfy(['short', (turn) => true], (turn) => true)", true),
    ("expect(agent).toSatisfy(['short', (turn) => true], (turn) => false)", false),
    ("expect(agent).not.toSatisfy((turn) => false)", true),
    ("expect(conversation).toSatisfy((conversation) => conversation.turns.length === 2)", true),
    ("expect(agent).toSatisfy('by_code')", true),
    ("expect(agent).toSatisfy('by_messages')", false),
    (
        "expect(agent).toHold({ type: 'tool_result', tool: 'check_availability', result: { free: true } })",
        true,
    ),
    (
        "expect(agent).toHold({ type: 'tool_result', tool: 'check_availability', result: { free: false } })",
        false,
    ),
    ("expect(agent).toHold({ type: 'regex', pattern: /FREE/i })", true),
    ("expect(agent).toHold({ tools: { forbid: ['check_availability'] } })", false),
    (
        "expect(conversation).toHold([{ type: 'contains', value: 'Blue' }, { type: 'not_contains', value: 'Red' }])",
        true,
    ),
];

#[test]
fn agent_assertions() {
    assert_outcomes(
        "criterion('by_code', 'x', { match: (c) => c.calledTool('check_availability') === 2 });
         criterion('by_messages', { matchMessages: (all) => all.some((m) => m.isAgent && m.content.includes('form')) });",
        "user.says('hello'); user.says('again');",
        OF_AGENT,
    );
}

#[test]
fn arguments_beside_a_function_are_compared_as_without_it() {
    let agent = FakeAgent::with_run(|run, _| {
        run.tool("c1", "book", &json!({"people": "twelve", "room": "Red", "dx": -0.0}), None)
            .tool(
                "c2",
                "book",
                &json!({"people": 12, "room": "Blue", "id": 9_007_199_254_740_993_i64, "at": {"hour": 9.0, "day": "Mon"}}),
                None,
            )
            .text("ok")
            .finished()
    });
    let (holds, fails, errors) = ("passed assertion", "failed assertion", "failed script_error");
    let cases = [
        // Another call matches, whatever the order of the arguments.
        ("toCallTool('book', { people: gte(12), room: (r) => r === 'Blue' })", holds),
        ("toCallTool('book', { room: (r) => r === 'Blue', people: gte(12) })", holds),
        (
            "toCallTool('book', { room: (r) => { if (r === 'Red') throw new Error('odd'); return true; } })",
            holds,
        ),
        ("not.toCallTool('book', { people: gte(13), room: (r) => r === 'Blue' })", holds),
        ("toCallTool('book', { people: gte(12), room: (r) => r === 'Green' })", fails),
        ("not.toCallTool('book', { people: gte(12), room: (r) => r === 'Blue' })", fails),
        // The call that cannot be compared decides.
        ("toCallTool('book', { people: gte(13), room: (r) => r !== 'Green' })", errors),
        ("not.toCallTool('book', { people: gte(13), room: (r) => r !== 'Green' })", errors),
        ("toCallTool('book', { people: gte(12), room: () => true }, { times: 1 })", errors),
        ("toCallTool('book', { room: () => { throw new Error('odd'); } })", errors),
        // As without a function.
        ("toCallTool('book', { dx: 0, room: (r) => r === 'Red' })", holds),
        ("toCallTool('book', { at: { hour: 9, day: (d) => d === 'Mon' } })", holds),
        ("toCallTool('book', { at: { hour: gt(9), day: (d) => d === 'Mon' } })", fails),
        ("toCallTool(['look', 'book'], { room: expect.stringContaining('lu') }, { times: 1 })", holds),
        ("not.toCallTool('book', { none: () => { throw new Error('odd'); } })", holds),
    ];
    let tests: Vec<String> = (cases.iter().enumerate())
        .map(|(number, (code, _))| {
            format!("it('{number}', () => {{ user.says('hi'); expect(agent).{code}; }});")
        })
        .collect();
    let tested = project(&agent, &tests.join("\n")).test(&["a_test.ts"]);
    for (number, (code, outcome)) in cases.iter().enumerate() {
        let case = tested.case(&number.to_string());
        let kind = case["failure"]["kind"].as_str().unwrap_or("assertion");
        assert_eq!(&format!("{} {kind}", case["status"].as_str().unwrap()), outcome, "{code}: {case:#}");
    }
    // The same of the conversation.
    let code = "user.says('hi');
      expect(conversation.hasToolCall('book', { people: gte(12) })).toBe(true);
      expect(conversation.hasToolCall('book', { people: gte(12), room: 'Green' })).toBe(false);
      expect(() => conversation.hasToolCall('book', { people: gte(13) })).toThrow(/not a number/);
      expect(conversation.toolCallsFor('book', { people: gte(12), room: 'Blue' }).length).toBe(1);";
    project(&agent, &format!("it('a', () => {{ {code} }});")).test(&["a_test.ts"]).assert_all_passed();
}

#[test]
fn value_assertions() {
    let all: &[(&str, bool)] = &[
        ("expect(1).toBe(1)", true),
        ("expect({}).toBe({})", false),
        ("expect(NaN).toBe(NaN)", true),
        ("expect(1).not.toBe(2)", true),
        ("expect([-0, 1]).toEqual([-0, 1])", true),
        ("expect([-0, 1]).toEqual([0, 1])", false),
        ("expect({ a: -0 }).toMatchObject({ a: 0 })", false),
        ("expect(new Map([[{ a: 1 }, 2]])).toEqual(new Map([[{ a: 1 }, 2]]))", true),
        ("expect(new Map([[{ a: 1 }, 2]])).toEqual(new Map([[{ a: 1 }, 3]]))", false),
        ("expect(new Map([[{ a: 1 }, 2]])).toEqual(new Map([[{ a: 2 }, 2]]))", false),
        (
            "expect(new Map([[{ a: 1 }, 2], [{ a: 1 }, 2]])).toEqual(new Map([[{ a: 1 }, 2], [{ a: 2 }, 2]]))",
            false,
        ),
        ("expect(new Map([[1, 2]])).toEqual(new Map([[gte(2), 2]]))", false),
        ("expect(new Map([[3, 2]])).toEqual(new Map([[gte(2), 2]]))", true),
        ("expect(new Set([1, NaN])).toEqual(new Set([NaN, 1]))", true),
        ("expect(new Set([1, { a: NaN }])).toEqual(new Set([{ a: NaN }, 1]))", true),
        ("expect(nested(500)).toEqual(nested(500))", true),
        ("expect(nested(500)).toEqual(nested(501))", false),
        ("expect(nested(500)).toStrictEqual(nested(500))", true),
        ("expect(nested(500)).toMatchObject(nested(500))", true),
        ("expect(nested(500)).toMatchObject(nested(499))", false),
        ("expect({ a: [1, { b: 2 }] }).toStrictEqual({ a: [1, { b: 2 }] })", true),
        ("expect({ a: 1, b: undefined }).toStrictEqual({ a: 1 })", false),
        ("expect([, 1]).toStrictEqual([undefined, 1])", false),
        ("expect([, 1]).toStrictEqual([, 1])", true),
        ("expect([new Point()]).toStrictEqual([new Point()])", true),
        ("expect([new Point()]).toStrictEqual([{ x: 1 }])", false),
        ("expect([new Point()]).toEqual([{ x: 1 }])", true),
        ("expect(new Point()).toMatchObject({ x: 1, double: 2 })", true),
        ("expect(new Point()).toMatchObject({ double: 3 })", false),
        ("expect(new Point()).toMatchObject({ hasOwnProperty: Object.prototype.hasOwnProperty })", false),
        ("expect({ list: [{ a: 1, b: 2 }, { a: 3 }] }).toMatchObject({ list: [{ a: 1 }, { a: 3 }] })", true),
        ("expect({ list: [{ a: 1, b: 2 }, { a: 3 }] }).toMatchObject({ list: [{ a: 1 }] })", false),
        ("expect({ list: [{ a: 1 }] }).toMatchObject({ list: [{ a: 1 }, {}] })", false),
        (
            "expect(user.says('The Blue Room')).toMatchObject({ isEmpty: false, toolCalls: [{ name: 'check_availability' }] })",
            true,
        ),
        ("expect(user.says('The Blue Room')).toMatchObject({ isEmpty: true })", false),
        ("expect(user.says('The Blue Room')).toMatchObject({ toolCalls: [] })", false),
        ("expect(user.says('The Blue Room')).toMatchObject({ toolCalls: [{}, {}] })", false),
        ("expect(5).toBe(gte(5))", true),
        ("expect({ a: [1, { b: 2 }], c: undefined }).toEqual({ a: [1, { b: 2 }] })", true),
        ("expect([1, 2]).toEqual([2, 1])", false),
        ("expect([1]).toEqual([1, undefined])", false),
        // Lists have members besides their entries, as the list of a match has.
        ("expect('abc'.match(/b/)).toEqual('abc'.match(/b/))", true),
        ("expect('abc'.match(/b/)).toEqual('abb'.match(/b/))", false),
        ("expect('abc'.match(/b/)).toEqual(['b'])", false),
        ("expect(['b']).toEqual('abc'.match(/b/))", false),
        ("expect('abc'.match(/b/)).toEqual(Object.assign(['b'], { index: 1, input: 'abc' }))", true),
        ("expect({ list: Object.assign([1], { 4294967295: 2 }) }).toEqual({ list: [1] })", false),
        ("expect([, 1]).toEqual([undefined, 1])", true),
        ("expect(new Map([[1, { a: 1 }]])).toEqual(new Map([[1, { a: 1 }]]))", true),
        ("expect(new Set([{ a: 1 }, { b: 2 }])).toEqual(new Set([{ a: 1 }, { a: 1 }]))", false),
        ("expect(new Uint8Array([1, 2]).buffer).toEqual(new Uint8Array([1, 2]).buffer)", true),
        ("expect(new Uint8Array([1, 2]).buffer).toEqual(new Uint8Array([1, 3]).buffer)", false),
        (
            "expect(new DataView(new Uint8Array([1, 2]).buffer, 1)).toEqual(new DataView(new Uint8Array([2]).buffer))",
            true,
        ),
        ("expect(new DataView(new ArrayBuffer(2))).toEqual(new DataView(new ArrayBuffer(3)))", false),
        ("expect(new Uint8Array([1])).toEqual(new Uint8Array([1]))", true),
        ("expect(new Uint8Array([1])).toEqual(new Uint8Array([2]))", false),
        ("expect(new Uint8Array([1])).toEqual(new Int8Array([1]))", false),
        ("expect(new ArrayBuffer(0)).toEqual({})", false),
        ("expect(Object(1)).toEqual(Object(1))", true),
        ("expect(Object(1)).toEqual(Object(2))", false),
        ("expect(Object('1')).toEqual(Object(1))", false),
        ("expect({ [Symbol.for('a')]: 1 }).toEqual({ [Symbol.for('a')]: 1 })", true),
        ("expect({ [Symbol.for('a')]: 1 }).toEqual({ [Symbol.for('a')]: 2 })", false),
        ("expect({ [Symbol.for('a')]: 1 }).toEqual({})", false),
        ("expect({ a: 1, b: { c: 2, d: 3 } }).toMatchObject({ b: { c: 2 } })", true),
        ("expect({ a: 1 }).toMatchObject({ b: 1 })", false),
        ("expect('abc').toContain('b')", true),
        ("expect(['a', 'b']).toContain('a', 'b')", true),
        ("expect(['a', 'b']).toContain('a', 'c')", false),
        ("expect([{ a: 1 }]).toContain({ a: 1 })", false),
        ("expect([{ a: 1 }]).toContainEqual({ a: 1 })", true),
        ("expect('abc').toMatch(/B/i)", true),
        ("expect('abc').toMatch('z')", false),
        ("expect('人工').toHaveLength(2)", true),
        // As `length` of JavaScript.
        ("expect('a😀').toHaveLength(3)", true),
        ("expect({ a: [{ b: 1 }] }).toHaveProperty('a[0].b', 1)", true),
        ("expect({ a: [{ b: 1 }] }).toHaveProperty('a.1')", false),
        ("expect({ 'a.b': 1 }).toHaveProperty('a.b', 1)", true),
        ("expect({ 'a.b': 1 }).not.toHaveProperty('a.b')", false),
        ("expect(2).toBeGreaterThan(1)", true),
        ("expect(2).toBeGreaterThan(2)", false),
        ("expect(2).toBeGreaterThanOrEqual(2)", true),
        ("expect(2).toBeLessThan(2)", false),
        ("expect(2).toBeLessThanOrEqual(2)", true),
        ("expect(0.1 + 0.2).toBeCloseTo(0.3)", true),
        ("expect(0).toBeTruthy()", false),
        ("expect(0).toBeFalsy()", true),
        ("expect(null).toBeNull()", true),
        ("expect(undefined).toBeUndefined()", true),
        ("expect(null).toBeDefined()", true),
        ("expect([]).toBeTypeOf('array')", true),
        ("expect(new TypeError('x')).toBeInstanceOf(Error)", true),
        ("expect(4).toSatisfy((n) => n > 3)", true),
        ("expect(4).toSatisfy((n) => n > 4)", false),
        ("expect(() => { throw new Error('broken'); }).toThrow('broken')", true),
        ("expect(() => { throw new Error('broken'); }).toThrow(TypeError)", false),
        ("expect(() => {}).toThrow()", false),
        ("expect(() => {}).not.toThrow()", true),
    ];
    assert_outcomes(
        "class Point { x = 1; get double() { return 2 * this.x; } }
         const nested = (depth) => { let value = 1; for (let i = 0; i < depth; i += 1) value = { a: value }; return value; };",
        "",
        all,
    );
}

#[test]
fn undecidable_assertion_errors_even_if_negated() {
    let undecidable = [
        "expect(5).toContain(5)",
        "expect('2').toBeGreaterThan(1)",
        "expect(5).not.toContain(5)",
        "expect(5).toHaveLength(1)",
        "expect(5).not.toMatch(/6/)",
        "expect(5).not.toThrow()",
        "expect(4).not.toSatisfy((n) => n.missing.too)",
        "expect(agent).toSatisfy((turn) => turn.topic.too)",
        "expect(agent).not.toSatisfy((turn) => turn.topic.too)",
        "expect(agent).not.toSatisfy(async () => false)",
    ];
    let early =
        ["expect(agent).toMatch(/a/)", "expect(agent).not.toCallTool('x')", "expect(agent).toContain('a')"];
    let mut script = String::new();
    for (number, code) in undecidable.iter().enumerate() {
        let soft = code.replace("expect(", "evaluate(");
        let hard = format!("user.says('hi'); {code}; user.says('never');");
        script += &format!("it('hard {number}', () => {{ {hard} }});\n");
        script += &format!("it('soft {number}', () => {{ user.says('hi'); {soft}; }});\n");
    }
    for (number, code) in early.iter().enumerate() {
        script += &format!("it('early {number}', () => {{ {code}; }});\n");
    }
    let tested = run_script(&script);
    for (number, code) in undecidable.iter().enumerate() {
        assert_eq!(tested.failure(&format!("hard {number}"))["kind"], "script_error", "{code}");
        assert_eq!(tested.case(&format!("soft {number}"))["status"], "passed", "{code}");
    }
    for number in 0..early.len() {
        let failure = tested.failure(&format!("early {number}"));
        assert!(
            failure["message"].as_str().unwrap().contains("there is no turn to check yet"),
            "{failure:#}"
        );
        assert_eq!(failure["fault"], "test");
    }
}

/// A promise is true, whatever it resolves to.
#[test]
fn forgotten_await_is_no_pass() {
    let called = "user.says('The Blue Room');";
    let cases = [
        ("expect(Promise.resolve(false)).toBeTruthy()", "expect got a promise"),
        ("evaluate((async () => 1)()).not.toBe(2)", "evaluate got a promise"),
        ("expect(agent).toCallTool('check_availability', { room: async () => false })", "must not be async"),
        ("conversation.hasToolCall('check_availability', { room: async () => false })", "must not be async"),
    ];
    let mut script = String::new();
    for (number, (code, _)) in cases.iter().enumerate() {
        script += &format!("it('case {number}', () => {{ {called} {code}; }});\n");
    }
    let tested = run_script(&script);
    for (number, (code, words)) in cases.iter().enumerate() {
        let failure = tested.failure(&format!("case {number}"));
        assert_eq!(failure["kind"], "script_error", "{code}: {failure:#}");
        assert!(failure["message"].as_str().unwrap().contains(words), "{code}: {failure:#}");
    }
}

/// An empty list, a text and an object count as true.
#[test]
fn only_true_and_false_decide_a_check() {
    let cases = [
        (
            "expect(conversation).toSatisfy((c) => c.allToolCalls.filter((call) => call.name === 'zz'))",
            "the function returned []",
        ),
        ("expect(agent).not.toSatisfy(() => 'false')", "the function returned \"false\""),
        ("expect(agent).toSatisfy(() => ({ satisfied: false }))", "return true or false"),
        ("expect([1]).toSatisfy((list) => list.filter((one) => one > 5))", "the function returned []"),
        ("expect(agent).toCallTool('check_availability', { room: () => [] })", "the function returned []"),
    ];
    assert_script_errors(&cases);
}

/// An object written in a test is identical to none of the agent's, and no text equals a regular expression.
#[test]
fn negated_comparisons_that_pass_anyway_are_errors() {
    const SAME_OBJECT: &str = "it looks for the same object";
    const NO_TEXT: &str = "no text equals a regular expression";
    assert_script_errors(&[
        ("expect(agent.toolCalls).not.toContain({ name: 'check_availability' })", SAME_OBJECT),
        ("expect(new Set(agent.toolCalls)).not.toContain({ name: 'check_availability' })", SAME_OBJECT),
        ("expect([{ room: 'Blue' }]).not.toContain({ room: /blue/i })", "use not.toContainEqual"),
        ("expect({ room: 'Blue' }).not.toBe({ room: 'Blue' })", "use not.toEqual"),
        ("expect('an error').not.toBe(/error/)", NO_TEXT),
        ("expect('an error').not.toEqual(/error/)", "use not.toMatch"),
        ("expect(['an error']).not.toContain(/error/)", NO_TEXT),
        (
            "evaluate(['an error']).not.toContainEqual(/error/)",
            "use not.toContainEqual(expect.stringMatching(/error/))",
        ),
    ]);
    assert_outcomes(
        "const own = { a: 1 };",
        "",
        &[
            ("expect([{ a: 1 }]).not.toContain({ a: 2 })", true),
            ("expect({ a: 1, b: 2 }).not.toBe(own)", true),
            ("expect([own].values()).not.toContain({ a: 2 })", true),
            ("expect([own, { a: 1 }]).not.toContain(own)", false),
            ("expect([own].values()).not.toContain(own)", false),
            ("expect([/a/]).not.toContainEqual(/b/)", true),
        ],
    );
}

/// A name that does not exist would be undefined, and undefined is not equal to anything.
#[test]
fn misspelt_names_do_not_pass() {
    assert_script_errors(&[
        ("expect(agent.respones).not.toBe('x')", "agent has no member `respones`: did you mean `response`?"),
        (
            "expect(conversation.allToolCalls.map((call) => call.nmae)).not.toContain('check_availability')",
            "call has no member `nmae`: did you mean `name`?",
        ),
        ("expect(agent.response.metadata.nmae).not.toBe('x')", "the value is undefined"),
        (
            "if (agent.response.reply === 'sorry') throw new Error('it failed')",
            "response has no member `reply`; it has findToolCalls, hasToolCall, ",
        ),
        ("if (conversation.lastTurn?.reply) throw new Error('it failed')", "turn has no member `reply`"),
        ("if (agent.toolCalls[0].failed) throw new Error('it failed')", "call has no member `failed`"),
        ("if (conversation.messages[0].text) throw new Error('it failed')", "message has no member `text`"),
        ("user.say('hello')", "user has no member `say`: did you mean `says`?"),
        (
            "expect(agent.response.toolCalls).not.toContain('check_availability')",
            "write `expect(agent).not.toCallTool(\"check_availability\")`",
        ),
        (
            "expect(agent.toolCalls).not.toContainEqual('check_availability')",
            "no entry of the list is a text",
        ),
        ("expect(agent.toolCalls).not.toEqual(['check_availability'])", "no entry of the list is a text"),
        ("expect(conversation.inTopic('nosuch')).toBe(false)", "there is no topic"),
        ("expect(conversation.turnsInTopic('nosuch')).toBe(0)", "there is no topic"),
        ("expect(agent.inTopic('nosuch')).toBe(false)", "there is no topic"),
        (
            "conversation.calledTool('check_availability', {}, { times: 3 })",
            "expects at most 2 arguments, got 3",
        ),
        ("agent.calledTool(['a'])", "expects the name of a tool"),
        ("expect('hello error').not.toContain('zz', 'error')", "negating several is ambiguous"),
        ("expect([1, 2]).not.toContainEqual(3, 1)", "negating several is ambiguous"),
    ]);
    assert_outcomes(
        "",
        "",
        &[
            ("expect(undefined).not.toBeDefined()", true),
            ("expect(undefined).not.toBeNull()", true),
            ("expect([1, 2]).not.toContain(3)", true),
            ("expect([{ a: 1 }, 'x']).not.toContain('y')", true),
            ("expect([{ a: 1 }]).not.toContainEqual({ a: 2 })", true),
            (
                "user.says('hi'); expect(agent.toolCalls.map((call) => call.name)).not.toEqual(['book_room'])",
                true,
            ),
            ("user.says('hi'); expect(agent.toolCalls).not.toEqual([])", true),
            ("user.says('hi'); expect(agent.toolCalls[0].error).toBeUndefined()", true),
            ("user.says('hi'); expect(agent.response).not.toHaveProperty('reply')", true),
            ("user.says('hi'); expect(conversation.lastTurn).not.toMatchObject({ reply: 'x' })", true),
            (
                "user.says('hi'); expect(JSON.parse(JSON.stringify(agent.response)).reply).toBeUndefined()",
                true,
            ),
            ("expect({ a: 1 }).not.toHaveProperty('a', 2)", true),
            ("expect(1.5).not.toBeCloseTo(1.4, 2)", true),
        ],
    );
}

/// Asserts that each line of code is an error of the test.
#[track_caller]
fn assert_script_errors(cases: &[(&str, &str)]) {
    let tests = cases.iter().enumerate();
    let tests = tests.map(|(number, (code, _))| {
        format!("it('case {number}', () => {{ user.says('The Blue Room'); {code}; }});\n")
    });
    let tested = run_script(&tests.collect::<String>());
    for (number, (code, words)) in cases.iter().enumerate() {
        let failure = tested.failure(&format!("case {number}"));
        assert_eq!(failure["kind"], "script_error", "{code}: {failure:#}");
        assert!(failure["message"].as_str().unwrap().contains(words), "{code}: {failure:#}");
    }
}

#[test]
fn a_function_that_returns_nothing_decides_nothing() {
    let cases = [
        "expect(agent).not.toCallTool('check_availability', { room: (room) => { room === 'Blue'; } })",
        "expect(agent).not.toSatisfy(() => {})",
        "expect(1).not.toSatisfy((one) => { one > 5; })",
    ];
    let mut script = String::new();
    for (number, code) in cases.iter().enumerate() {
        script += &format!("it('case {number}', () => {{ user.says('The Blue Room'); {code}; }});\n");
    }
    let tested = run_script(&script);
    for (number, code) in cases.iter().enumerate() {
        let failure = tested.failure(&format!("case {number}"));
        assert_eq!(failure["kind"], "script_error", "{code}: {failure:#}");
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains("the function returned undefined"), "{code}: {failure:#}");
    }
}

/// A call of a generator function runs nothing of it.
#[test]
fn generator_functions_are_no_tests() {
    let script = "
it('body', function* () { user.says('hello'); expect(1).toBe(2); });
it('async body', async function* () { user.says('hello'); expect(1).toBe(2); });
it('throws', () => { user.says('hello'); expect(function* () { throw new Error('x'); }).not.toThrow(); });
it('criterion', () => { user.says('hello'); expect(agent).toSatisfy(function* () { return false; }); });
describe('group', () => {
  before(function* () { throw new Error('x'); });
  it('hook', () => { user.says('hello'); expect(1).toBe(1); });
});
export function* TestFunction(t) { user.says('hello'); t.assert.True(false); }
export function TestRun(t) { user.says('hello'); t.run('part', function* (t) { t.assert.True(false); }); }
export function TestNoPanic(t) { user.says('hello'); t.assert.NoPanic(function* () { throw new Error('x'); }); }
";
    let tested = run_script(script);
    let names = [
        "body",
        "async body",
        "throws",
        "criterion",
        "group > hook",
        "TestFunction",
        "TestRun",
        "TestNoPanic",
    ];
    for name in names {
        let failure = tested.failure(name);
        assert_eq!(failure["kind"], "script_error", "{name}: {failure:#}");
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains("a generator function runs nothing"), "{name}: {failure:#}");
    }
}

#[test]
fn test_functions_collect_all_failures() {
    let all: &[(&str, bool)] = &[
        ("True(true)", true),
        ("True(1)", false),
        ("True(Promise.resolve(false))", false),
        ("True('')", false),
        ("False(false)", true),
        ("False(null)", false),
        ("False('x')", false),
        ("Equal({ a: [1] }, { a: [1] })", true),
        ("Equal(1, '1')", false),
        ("Equal(null, undefined)", false),
        ("NotEqual([1], [2])", true),
        ("NotEqual([1], [1])", false),
        ("Nil(undefined)", true),
        ("Nil(0)", false),
        ("NotNil(0)", true),
        ("NotNil(null)", false),
        ("Contains('abc', 'b')", true),
        ("Contains([{ a: 1 }], { a: 1 })", true),
        ("Contains({ total: 12 }, '12')", true),
        ("Contains('abc', 'z')", false),
        ("NotContains('abc', 'z')", true),
        ("NotContains([1], 1)", false),
        ("Len('人工', 2)", true),
        ("Len([1], 2)", false),
        ("Len({ a: 1, b: 2 }, 2)", true),
        ("Len(5, 1)", false),
        ("Greater(2, 1)", true),
        ("Greater(1, 1)", false),
        ("GreaterOrEqual(1, 1)", true),
        ("GreaterOrEqual(0, 1)", false),
        ("Less(1, 2)", true),
        ("Less('1', 2)", false),
        ("LessOrEqual(2, 2)", true),
        ("LessOrEqual(3, 2)", false),
        ("Error(new Error('x'))", true),
        ("Error(null)", false),
        ("NoError(null)", true),
        ("NoError('x')", false),
        ("Panic(() => { throw 1; })", true),
        ("Panic(() => 1)", false),
        ("Panic(5)", false),
        ("NoPanic(() => 1)", true),
        ("NoPanic(() => { throw 1; })", false),
        ("NoPanic(5)", false),
        ("Panic(async () => { throw 1; })", true),
        ("NoPanic(async () => { throw 1; })", false),
        ("Match('Blue', /blue/i)", true),
        ("Match('Blue', '^B')", true),
        ("Match('Blue', /blue/)", false),
        ("NotMatch('Blue', /red/)", true),
        ("NotMatch('Blue', 'Bl')", false),
        ("Type([], 'array')", true),
        ("Type(null, 'null')", true),
        ("Type({}, 'array')", false),
        ("JSONPath({ a: [{ b: 1 }] }, '$.a[0].b', 1)", true),
        ("JSONPath({ a: 1 }, '$.b', 1)", false),
        ("JSONPath({ a: 1 }, '$[', 1)", false),
        ("Equal(1)", false),
        ("True()", false),
        ("Len('x')", false),
    ];
    let calls: Vec<String> = all.iter().map(|(code, _)| format!("await t.assert.{code};")).collect();
    let script = format!(
        "export async function TestAll(t, ctx) {{ t.assert.Equal(t.failed, false);\n{}\nt.assert.Equal(t.failed, true); t.assert.Equal(ctx.locale, 'en-us'); }}",
        calls.join("\n")
    );
    let tested = run_script(&script);
    let checks = tested.case("TestAll")["assertions"].as_array().unwrap();
    assert_eq!(checks.len(), all.len() + 3);
    for (check, (code, holds)) in checks[1..].iter().zip(all) {
        assert_eq!(check["passed"], *holds, "{code}: {check:#}");
    }
    assert!(checks[all.len() + 1..].iter().all(|check| check["passed"] == true));
    let failing = all.iter().filter(|(_, holds)| !holds).count();
    let message = tested.failure("TestAll")["message"].as_str().unwrap().to_string();
    // Misused assertions are undecidable and counted separately.
    assert!(message.starts_with(&format!("{} checks failed", failing - 11)), "{message}");
    assert!(message.ends_with("11 errored"), "{message}");
}

#[test]
fn test_functions_control_outcome() {
    let script = "
export function TestError(t) { t.error('first', { a: 1 }); t.log('after', 1); }
export function TestFail(t) { t.fail(); console.log('after'); }
export function TestFatal(t) { t.fatal('over'); t.log('never'); }
export function TestSkip(t) { t.skip('not now'); t.log('never'); }
export function TestSkipFailed(t) { t.assert.True(false); t.skip('not now'); }
export function TestParts(t) {
  t.assert.True(t.run('good', (t) => { t.assert.Equal(t.name, 'good'); }));
  t.assert.False(t.run('bad', (t) => { t.assert.True(false, 'own words'); t.fatal('stop'); t.log('never'); }));
  t.run('left', (t) => { t.skip('for now'); t.assert.True(false); });
  t.log('goes on');
}
export function TestTalks(t) { t.assert.Contains(user.says('hi').text, 'Blue'); user.says('again'); t.assert.Len(conversation.turns, 2); }
export function TestThrows(t) { t.assert.True(false); null.x; }
";
    let tested = run_script(script);
    assert_eq!(
        statuses(&tested),
        [
            "TestError failed",
            "TestFail failed",
            "TestFatal failed",
            "TestParts failed",
            "TestSkip skipped",
            "TestSkipFailed failed",
            "TestTalks passed",
            "TestThrows failed"
        ]
    );
    let said = |name: &str| tested.case(name)["logs"].clone();
    assert_eq!(said("TestError"), json!(["after 1"]));
    assert_eq!(said("TestFatal"), Value::Null);
    assert_eq!(said("TestSkip"), json!(["SKIP: not now"]));
    assert_eq!(said("TestParts"), json!(["SKIP: left: for now", "goes on"]));
    assert_eq!(tested.failure("TestError")["message"], "first { a: 1 }");
    assert_eq!(tested.failure("TestFail")["message"], "test failed");
    assert!(tested.failure("TestParts")["message"].as_str().unwrap().contains("bad: own words"));
    assert_eq!(tested.failure("TestThrows")["kind"], "script_error");
    assert!(tested.failure("TestThrows")["detail"].as_str().unwrap().contains("null"));
}

#[test]
fn assertions_of_test_functions_do_not_convert_values() {
    let undecided = [
        ("Text", "t.assert.True('false')"),
        ("Object", "t.assert.True({ pass: false })"),
        ("List", "t.assert.True([])"),
        ("Misspelt", "t.assert.False(user.says('hi').refundd)"),
        ("Empty", "t.assert.False('')"),
        ("Zero", "t.assert.False(0)"),
        ("Fine", "t.assert.Error('fine')"),
        ("NoError", "t.assert.Error({})"),
    ];
    let decided = [
        ("BadTrue", "t.assert.True(false)", "failed"),
        ("BadFalse", "t.assert.False(true)", "failed"),
        ("BadError", "t.assert.Error(undefined)", "failed"),
        (
            "GoodError",
            "t.assert.True(true); t.assert.False(false); t.assert.Error(new TypeError('x'))",
            "passed",
        ),
    ];
    let test = |(name, body): (&str, &str)| format!("export function Test{name}(t) {{ {body}; }}\n");
    let script: String =
        undecided.into_iter().chain(decided.map(|(name, body, _)| (name, body))).map(test).collect();
    let tested = run_script(&script);
    for (name, _) in undecided {
        let name = format!("Test{name}");
        assert_eq!(tested.case(&name)["status"], "failed", "{name}");
        assert_eq!(tested.failure(&name)["fault"], "test", "{name}: {}", tested.failure(&name));
    }
    for (name, _, status) in decided {
        assert_eq!(tested.case(&format!("Test{name}"))["status"], status, "{name}: {}", tested.output);
    }
}

#[test]
fn a_subtest_that_throws_has_failed_also_if_its_error_is_caught() {
    let script = "
export function TestCaught(t) { try { t.run('a', () => { throw new Error('broken'); }); } catch {} }
export async function TestCaughtLater(t) { try { await t.run('a', async () => { throw new Error('broken'); }); } catch {} }
export function TestSkipped(t) { try { t.run('a', (t) => { t.run('b', () => null.x); }); } catch {} t.skip('not now'); }
export function TestNotCaught(t) { t.run('a', () => { throw new Error('broken'); }); }
";
    let tested = run_script(script);
    for name in ["TestCaught", "TestCaughtLater", "TestNotCaught", "TestSkipped"] {
        assert_eq!(tested.case(name)["status"], "failed", "{name}: {}", tested.output);
        assert_eq!(tested.failure(name)["kind"], "script_error", "{name}");
    }
    let failure = tested.failure("TestCaught");
    assert!(failure["message"].as_str().unwrap().contains("broken (a_test.ts:"), "{failure}");
}

/// Numbers of JavaScript hold integers of at most 53 bits exactly, so neighbours of a larger id would be equal to it.
#[test]
fn integers_that_javascript_would_round_are_texts() {
    let script = "use: always\nrules: [{ when: { tool_result: { tool: look } }, reply: Done. }, { reply: { tool_calls: [{ name: look, arguments: { id: 9007199254740993, n: 7 } }] } }]\n";
    let tests = "import { conversation, expect, it, user } from 'hotseat';
      const first = () => { user.says('go'); return conversation.allToolCalls[0].arguments; };
      it('neighbour', () => { expect(first().id).toBe(9007199254740992); });
      it('digits', () => {
        expect(first()).toEqual({ id: '9007199254740993', n: 7 });
        expect(conversation).toCallTool('look', { id: (id) => id === '9007199254740993' });
      });
    ";
    let tested = Project::with_config("target: { type: embedded, agent: agent.yaml }\n")
        .file("agent.yaml", "name: A\ntools: [{ name: look, task: { steps: [{ mock: { returns: 2 } }] } }]\n")
        .file("script.yaml", script)
        .file("a_test.ts", tests)
        .test(&["a_test.ts"]);
    assert_eq!(statuses(&tested), ["digits passed", "neighbour failed"]);
}

#[test]
fn a_test_function_that_is_not_exported_by_its_name_is_refused() {
    let agent = booking();
    for (export, words) in [
        (
            "export default function TestX(t) { t.fail(); }",
            Some("the test function TestX is the default export"),
        ),
        (
            "export default function (t) { t.fail(); }",
            Some("the default export is a function without a name"),
        ),
        (
            "export default async (t) => { t.fail(); };",
            Some("the default export is a function without a name"),
        ),
        (
            "export default class { run(t) { t.fail(); } }",
            Some("the default export is a class without a name"),
        ),
        (
            "export default { TestX(t) { t.fail(); } };",
            Some("the default export holds the test function TestX, which is not run"),
        ),
        (
            "export class Rooms { TestX(t) { t.fail(); } }",
            Some("the export Rooms holds the test function TestX"),
        ),
        (
            "export const tests = { rooms: [{ TestX: (t) => t.fail() }] };",
            Some("the export tests holds the test function TestX"),
        ),
        (
            "const TestX = (t) => t.fail(); export default [TestX];",
            Some("the default export holds the test function TestX"),
        ),
        (
            "function TestX(t) { t.fail(); } export { TestX as other };",
            Some("the test function TestX is exported as other, so it is not run"),
        ),
        ("export function TestX(t) {} export default { TestX };", None),
        ("export default { rooms: { TestRooms: ['Blue'], count: () => 1 } };", None),
        ("export default class Helper { run() {} }", None),
        ("export { user, agent, conversation, expect, it } from 'hotseat';", None),
        ("export class TestX { constructor(t) { t.fail(); } }", Some("the export TestX is no test function")),
        ("export const TestX = { run(t) { t.fail(); } };", Some("the export TestX is no test function")),
        ("export const TestUser = { name: 'Mary' };", None),
        ("function TestX(t) { t.fail(); }", Some("the test function `TestX` is not exported")),
        ("const TestX = async (t) => { t.fail(); };", Some("the test function `TestX` is not exported")),
        ("function TestX(t) {} export function helper(t) { TestX(t); }", None),
        ("function TestX(t) {} export default TestX; export { TestX };", None),
        ("export default function helper() {}", None),
    ] {
        let script = format!("{export}\nexport function TestNamed(t) {{}}");
        let output = project(&agent, &script).hotseat(&["test", "a_test.ts"]);
        assert_eq!(output.code, if words.is_some() { 2 } else { 0 }, "{output}");
        assert!(words.is_none_or(|words| output.stderr.contains(words)), "{output}");
    }
}

#[test]
fn project_assertions_apply_to_tests() {
    let agent = booking();
    let text =
        format!("target:\n  endpoint: {agent}\n  assert: {{ tools: {{ forbid: [check_availability] }} }}\n");
    let script =
        format!("{IMPORTS}\nit('talks', () => {{ user.says('hi'); }}); it('is silent', () => {{}});");
    let tested = Project::with_config(&text).file("a_test.ts", &script).test(&["a_test.ts"]);
    assert_eq!(statuses(&tested), ["is silent passed", "talks failed"]);
}

#[test]
fn user_turns_support_all_case_file_features() {
    let agent = FakeAgent::with_run(|run, _| run.error("no rooms", Some("E1")));
    let script = "it('a', () => { user.says({ user: 'hi', expectError: { code: /^E/ } }); });
      it('b', () => { user.says('hi', { expectError: 'something else' }); });
      it('c', () => { user.says('hi'); });";
    let tested = project(&agent, script).test(&["a_test.ts"]);
    assert_eq!(statuses(&tested), ["a passed", "b failed", "c failed"]);
    assert_eq!(tested.failure("c")["kind"], "agent_error");
}

#[test]
fn attachments_are_read_and_unsupported_ones_rejected() {
    let script = "it('a', () => { user.says({ user: 'hi', attachments: [{ type: 'image', source: 'file://receipt.png' }] }); });
      it('b', () => { user.says({ user: 'hi', attachments: [{ type: 'image', source: 'file://nowhere.png' }] }); });";
    let agent = echo_agent();
    let tested =
        project(&agent, script).file("receipt.png", "a picture").test(&["a_test.ts", "--run", "^a$"]);
    tested.assert_all_passed();
    let sent = agent.requests()[0].json()["messages"].to_string();
    assert!(sent.contains("YSBwaWN0dXJl"), "what the file says, in base64: {sent}");
    let tested = project(&agent, script).test(&["a_test.ts", "--run", "^b$"]);
    assert!(tested.failure("b")["message"].as_str().unwrap().contains("no such file: nowhere.png"));
    // Embedded agents read only text.
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/expense/");
    let project = Project::with_config(&format!("target: {{ type: embedded, agent: {root} }}\n"))
        .file("a_test.ts", &format!("{IMPORTS}\n{script}"))
        .file("receipt.png", "a picture");
    let failure = project.test(&["a_test.ts", "--run", "^a$"]).failure("a").clone();
    assert_eq!(failure["kind"], "test_error", "{failure:#}");
    assert!(failure["message"].as_str().unwrap().contains("attachments cannot be sent"), "{failure:#}");
    assert_eq!(agent.requests().len(), 1);
}

#[test]
fn redacts_secrets_in_test_output() {
    let agent = echo_agent();
    let text = format!(
        "target:\n  endpoint: {agent}\n  headers: {{ Authorization: \"Bearer ${{ENV.API_KEY}}\" }}\n"
    );
    let script = format!(
        "{IMPORTS}\nit('a', () => {{ console.log('hush-hush-42'); user.says('hush-hush-42'); expect('hush-hush-42').toBe('x'); }});"
    );
    let project = Project::with_config(&text).file("a_test.ts", &script);
    let tested = project.test_in(&[("API_KEY", "hush-hush-42")], &["a_test.ts"]);
    let told = tested.report["results"].to_string();
    assert!(!told.contains("hush-hush-42"), "{told}");
}

#[test]
fn init_creates_working_typescript_suite() {
    let agent = echo_agent();
    let project = Project::empty();
    project.hotseat(&["init", "--typescript", "--endpoint", &agent.url()]).assert_code(0);
    let types = std::fs::read_to_string(project.workspace.path("hotseat-editor/hotseat.d.ts")).unwrap();
    assert_eq!(types, hotseat_engine::typescript::TYPE_DEFINITIONS);
    project.test(&[]).assert_all_passed();
    // User edits are kept, and the type declarations are updated.
    project.workspace.file("tests/first_test.ts", "// mine");
    project.workspace.file("hotseat-editor/hotseat.d.ts", "// old");
    assert_eq!(project.hotseat(&["init", "--typescript"]).code, 0);
    assert_eq!(project.workspace.read("tests/first_test.ts"), "// mine");
    assert_eq!(project.workspace.read("hotseat-editor/hotseat.d.ts"), types);
}

/// Test script of a document, verbatim.
const EXPENSE_TEST: &str = r#"
export function TestExpenseResponse(t: TestingT, ctx: Context) {
  const messages = [
    { role: "user", content: "I want to submit an expense" },
    { role: "assistant", content: "What type of expense?" },
    { role: "user", content: "Travel, $500" },
  ];

  const response = Process("agents.expense.Stream", ctx, messages);

  // Static assertion
  t.assert.Contains(response.content, "confirm");

  // Agent-driven assertion
  t.assert.Agent(response.content, "workers.test.validator", {
    metadata: {
      criteria: "Response should ask for confirmation before creating expense",
      conversation: messages,
    },
  });
}
"#;

/// Hooks of the same document, verbatim.
const ENV_TEST: &str = r#"
export function Before(ctx: Context, testCase: TestCase): BeforeResult {
  // Prepare database
  const userId = Process("models.user.Create", {
    name: "Test User",
    email: "test@example.com",
  });

  // Prepare knowledge base
  Process("knowledge.expense.Index", {
    documents: [{ title: "Policy", content: "Max expense $5000" }],
  });

  return {
    data: { userId, testId: testCase.id },
  };
}

export function After(
  ctx: Context,
  testCase: TestCase,
  result: TestResult,
  beforeData: any
) {
  // Clean up database
  if (beforeData?.userId) {
    Process("models.user.Delete", beforeData.userId);
  }

  // Clean up knowledge base
  Process("knowledge.expense.Clear");
}
"#;

#[test]
fn documented_scripts_run_unchanged() {
    let hotseat = "
agents:
  expense: { type: embedded, agent: . }
  workers.test.validator: { type: embedded, agent: validator }
target: expense
scripts:
  processes:
    models.user.Create: { cmd: [sh, -c, 'cat >> created.txt; echo 7'] }
    models.user.Delete: { cmd: [sh, -c, 'cat >> deleted.txt'] }
    knowledge.*: { cmd: [sh, -c, 'cat >> knowledge.txt'] }
";
    let validator = |passed: bool| {
        format!(
            "rules:\n  - when: {{ user: '(?s)ask for confirmation.*Please confirm' }}\n    reply: {{ json: {{ passed: {passed}, score: 1, reason: it asks }} }}\n  - use: always\n    reply: {{ json: {{ passed: false, reason: not asked as expected }} }}\n"
        )
    };
    let project = example("expense")
        .file("hotseat.yaml", hotseat)
        .file("validator/agent.yaml", "name: Validator\n")
        .file("validator/script.yaml", &validator(true))
        .file("src/expense_test.ts", EXPENSE_TEST)
        .file("src/env_test.ts", ENV_TEST)
        .file(
            "hooked.test.jsonl",
            r#"{"id": "T001", "input": "Submit a $500 travel expense", "before": "env_test.Before", "after": "env_test.After", "assertions": [{"type": "contains", "value": "confirm"}]}"#,
        );
    let tested = project.test(&["src/expense_test.ts", "hooked.test.jsonl"]);
    assert_eq!(statuses(&tested), ["T001 passed", "TestExpenseResponse passed"], "{}", tested.output);
    let test = tested.case("TestExpenseResponse");
    // Assertions after a call of the agent belong to its turn.
    let checks = [&test["turns"][0]["assertions"], &test["assertions"]];
    let checks = checks.into_iter().flat_map(|checks| checks.as_array().unwrap());
    let kinds: Vec<&Value> = checks.map(|check| &check["type"]).collect();
    assert_eq!(kinds, ["Contains", "agent"]);
    assert!(project.workspace.read("created.txt").contains("Test User"));
    assert!(project.workspace.read("deleted.txt").contains("[7]"));
    assert!(project.workspace.read("knowledge.txt").contains("knowledge.expense.Clear"));
    // A negative judgement fails the test; a missing judge gives no verdict.
    let project = project.file("validator/script.yaml", &validator(false));
    let tested = project.test(&["src/expense_test.ts"]);
    assert_eq!(tested.failure("TestExpenseResponse")["kind"], "assertion", "{}", tested.output);
    let project =
        project.file("src/expense_test.ts", &EXPENSE_TEST.replace("workers.test.validator", "nobody"));
    let tested = project.test(&["src/expense_test.ts"]);
    assert_eq!(tested.failure("TestExpenseResponse")["kind"], "judge_error", "{}", tested.output);
}

#[test]
fn documented_examples_run_against_booking_agent() {
    let project = example("booking");
    let tested = project.test(&["booking_test.ts"]);
    tested.assert_all_passed();
    let results = tested.results();
    assert!(results.len() >= 4, "{}", tested.output);
    let measured = tested.report["results"].to_string();
    assert!(!measured.contains("nobody says what"), "{measured}");
    let simulated = tested.case("Event Booking Agent > handles standard venue search");
    assert_eq!(simulated["turns"].as_array().unwrap().last().unwrap()["input_source"], "simulated");
    // A missing booking fails the assertion.
    let text = project
        .workspace
        .read("booking_test.ts")
        .replace("expect(agent).not.toCallTool(\"book_room\")", "expect(agent).toCallTool(\"book_room\")");
    let tested = project.file("booking_test.ts", &text).test(&["booking_test.ts"]);
    assert_eq!(tested.failure("Room Booking Agent > handles booking with modification")["kind"], "assertion");
}

#[test]
fn criteria_use_project_judge() {
    let script = "
      criterion('good', 'is it good');
      criterion('bad', 'is it bad');
      criterion('broken', 'broken');
      it('holds', () => { user.says('fine'); expect(agent).toSatisfy('good'); evaluate(agent).toSatisfy('good', 'bad', 'of_project'); });
      it('fails', () => { user.says('fine'); expect(agent).toSatisfy('bad'); });
      it('not', () => { user.says('fine'); expect(agent).not.toSatisfy('bad'); });
      it('breaks', () => { user.says('fine'); expect(agent).toSatisfy('broken'); });
      it('breaks softly', () => { user.says('fine'); evaluate(agent).toSatisfy('broken'); evaluate(agent).not.toSatisfy('broken'); });
      it('names nothing', () => { user.says('fine'); expect(agent).toSatisfy('godo'); });
      it('says it in words', () => { user.says('fine'); expect(agent).toSatisfy('the answer is good'); });
      it('achieves', () => { user.says('fine'); expect(conversation).toHaveAchievedGoal('all'); });
      it('states no goal', () => { user.says('fine'); expect(conversation).toHaveAchievedStatedGoal(); });
    ";
    let tested = project_with_roles(JUDGE, USER, script).test(&["a_test.ts"]);
    assert_eq!(
        statuses(&tested),
        [
            "achieves passed",
            "breaks failed",
            "breaks softly passed",
            "fails failed",
            "holds passed",
            "names nothing failed",
            "not passed",
            "says it in words passed",
            "states no goal failed",
        ],
        "{}",
        tested.output
    );
    assert_eq!(tested.failure("fails")["kind"], "assertion");
    assert_eq!(tested.failure("breaks")["kind"], "judge_error");
    assert_eq!(tested.failure("names nothing")["fault"], "test");
    assert!(tested.failure("names nothing").to_string().contains("godo"));
    // An undecidable criterion never passes.
    let text = "target:\n  endpoint: http://127.0.0.1:9/\n";
    let agent = echo_agent();
    let script =
        format!("{IMPORTS}\nit('a', () => {{ user.says('hi'); expect(agent).toSatisfy('it is polite'); }});");
    let project =
        Project::with_config(&text.replace("http://127.0.0.1:9/", &agent.url())).file("a_test.ts", &script);
    assert_eq!(project.test(&["a_test.ts"]).failure("a")["kind"], "test_error");
}

#[test]
fn matchers_ask_judge() {
    let script = "
      it('is grounded', () => { user.says('hi'); expect(agent).toBeGroundedIn(['venues'], { fromTools: ['check_availability'] }); });
      it('is not', () => { user.says('hi'); expect(agent).toBeGroundedIn('venues'); });
      it('asks', () => { user.says('hi'); expect(agent).toHaveIntent('gather', { describedAs: 'asks what is needed' }); });
      it('does not ask', () => { user.says('hi'); expect(agent).toHaveIntent('gather', { describedAs: 'books' }); });
      it('does ask', () => { user.says('hi'); expect(agent).not.toHaveIntent('gather', { describedAs: 'asks what is needed' }); });
    ";
    let judge = r#"
name: judge
use: always
rules:
  - when: { user: "(?s)Only results of these tools count.check_availability.*venues|(?s)venues.*Only results of these tools count.check_availability" }
    reply: { json: { reasoning: it is, claims_found: [], violations: [], grounded: true } }
  - when: { user: venues }
    reply: { json: { reasoning: it is not, claims_found: [{ type: venues, claim: a room, grounded: false, source: "" }], violations: [a room], grounded: false } }
  - when: { user: asks what is needed }
    reply: { json: { reasoning: it does, observed_intent: to ask, matches: true } }
  - reply: { json: { reasoning: it does not, observed_intent: to book, matches: false } }
"#;
    let tested = project_with_roles(judge, USER, script).test(&["a_test.ts"]);
    let came =
        ["asks passed", "does ask failed", "does not ask failed", "is grounded passed", "is not failed"];
    assert_eq!(statuses(&tested), came, "{}", tested.output);
    for name in ["does ask", "does not ask", "is not"] {
        assert_eq!(tested.failure(name)["kind"], "assertion", "{name}");
    }
}

#[test]
fn response_without_a_visible_character_is_empty() {
    let agent = FakeAgent::with_run(|run, request| {
        let text = if request.user_texts() == ["invisible"] { "\u{200b}\u{feff} " } else { "Hi" };
        run.text(text).finished()
    });
    let script = "it('a', () => { expect(user.says('invisible').isEmpty).toBe(true); });
      it('b', () => { expect(user.says('hello').isEmpty).toBe(false); });";
    project(&agent, script).test(&["a_test.ts"]).assert_all_passed();
}

#[test]
fn failure_in_helper_function_reports_test_line() {
    let script = "import { isPolite } from './helpers';
      it('a', () => { user.says('hi');
        isPolite();
      });
      it('b', () => { user.says('hi'); isPolite(undefined, true); });";
    let helpers = "import { agent, expect } from 'hotseat';
export function isPolite(words = 'please', wrong = false) {
  if (wrong) expect(agent).toContain();
  expect(agent).toContain(words);
}";
    let tested = project(&booking(), script).file("helpers.ts", helpers).test(&["a_test.ts"]);
    let detail = tested.failure("a")["detail"].as_str().unwrap();
    assert!(detail.starts_with("helpers.ts:4:"), "{detail}");
    assert!(detail.contains(" (called at a_test.ts:4:9): "), "{detail}");
    let detail = tested.failure("b")["detail"].as_str().unwrap();
    assert!(detail.contains("helpers.ts:3:") && detail.contains("a_test.ts:6:"), "{detail}");
}

#[test]
fn failure_in_helper_function_shows_its_call_in_reports() {
    let script = "import { isPolite } from './helpers';
const isShort = () => {
  expect(agent.response.text.length).toBe(1);
};
it('in the file', () => { user.says('hi');
  isShort();
});
it('in another file', () => { user.says('hi');
  isPolite();
});
it('in a loop', () => { user.says('hi'); [1].forEach((one) => { expect(one).toBe(2); }); });";
    let helpers = "import { agent, expect } from 'hotseat';
export const isPolite = () => expect(agent).toContain('please');";
    let agent = booking();
    let project = project(&agent, script).file("helpers.ts", helpers);
    let tested = project.hotseat(&["test", "a_test.ts", "-o", "r.md", "-o", "r.html"]);
    let markdown = project.workspace.read("r.md");
    assert!(markdown.contains(",<br>at <code>a&#95;test.ts:4:"), "{markdown}");
    assert!(markdown.contains(", called at <code>a&#95;test.ts:7:3: isShort();</code>\n"), "{markdown}");
    assert!(markdown.contains(", called at <code>a&#95;test.ts:10:3: isPolite();</code>\n"), "{markdown}");
    assert_eq!(markdown.matches("called at").count(), 2, "{markdown}");
    let page = ReportPage::from_report(&project, "r.html");
    for (case, place, line) in [(0, [7, 3], "  isShort();"), (1, [10, 3], "  isPolite();")] {
        let case = &page.data[&format!("case-{case}")];
        let called_at = &case["result"]["turns"][0]["assertions"][0]["called_at"];
        assert_eq!(
            *called_at,
            json!({"file": "a_test.ts", "line": place[0], "column": place[1]}),
            "{case:#}"
        );
        let sources = case["sources"].as_array().unwrap();
        let source = sources.iter().find(|source| source["line"] == called_at["line"]).unwrap();
        assert_eq!(source["text"], line);
    }
    let shown = project.hotseat(&["show", "last"]);
    for output in [&tested.stdout, &shown.stdout] {
        assert!(output.contains("--> a_test.ts:4:"), "{output}");
        assert!(output.contains("= called at: a_test.ts:7:3: isShort();"), "{output}");
        assert!(output.contains("--> helpers.ts:2:"), "{output}");
        assert!(output.contains("= called at: a_test.ts:10:3: isPolite();"), "{output}");
        assert_eq!(output.matches("called at").count(), 2, "{output}");
    }
}

#[test]
fn simulated_user_continues_until_stopped() {
    let script = "
      simulator({ role: 'somebody' });
      it('to its end', () => { const end = user.simulate({ goal: 'say it all' }); expect(end.reason).toBe('goal_reached'); expect(conversation.turns.map((t) => t.userMessage.content)).toEqual(['one', 'two', 'three']); expect(conversation.lastUserMessage.source).toBe('simulator'); expect(conversation).toHaveAchievedStatedGoal(); });
      it('until it is enough', () => { const end = user.simulate({ goal: 'say it all', stopWhen: (turn, conversation) => turn.userMessage.content === 'two' && conversation.turnCount === 2 }); expect(end.reason).toBe('stop_condition'); expect(conversation.turnCount).toBe(2); });
      it('as long as it may', () => { const end = user.simulate({ goal: 'say it all', maxTurns: 1 }); expect(end.reason).toBe('max_turns'); user.says('and I'); expect(conversation.turnCount).toBe(2); });
      it('breaks', () => { user.simulate({ goal: 'say it all', stopWhen: () => missing }); });
      it('without a goal', () => { user.simulate({ role: 'x' }); });
      it('without a turn', () => { user.simulate({ goal: 'x', maxTurns: 0 }); });
      it('with a mistake', () => { user.simulate({ goal: 'x', shoud: ['y'] }); });
    ";
    let tested = project_with_roles(JUDGE, USER, script).test(&["a_test.ts"]);
    assert_eq!(
        statuses(&tested),
        [
            "as long as it may passed",
            "breaks failed",
            "to its end passed",
            "until it is enough passed",
            "with a mistake failed",
            "without a goal failed",
            "without a turn failed",
        ],
        "{}",
        tested.output
    );
    assert_eq!(tested.failure("breaks")["kind"], "script_error");
    assert!(tested.failure("breaks")["message"].as_str().unwrap().contains("missing is not defined"));
    assert!(tested.failure("with a mistake")["message"].as_str().unwrap().contains("shoud"));
}

#[test]
fn topics_are_tracked_and_asserted() {
    let script = "
      topic('start', { characteristic: 'start' });
      topic('middle', { triggers: [{ onUserMatch: /two/ }], expect: { 'is short': (turn) => turn.agentResponse.length < 20 } });
      topic('end', { triggers: [{ onCondition: (turn) => turn.userMessage.content === 'three' }], evaluate: { match: /no such words/ } });
      const graph = { start: 'middle', middle: 'end', end: null };
      it('follows', () => {
        expectConversationTo(graph);
        user.says('one');
        expect(agent).toBeInTopic('start');
        user.says('two');
        expect(agent).toBeInTopic('middle');
        user.says('three');
        expect(conversation.topicHistory).toEqual(['start', 'middle', 'end']);
        expect(conversation.currentTopic).toBe('end');
        expect(conversation.turnsInTopic('middle')).toBe(1);
        expect(conversation.topicVisits[1].turns[0].number).toBe(2);
        expect(conversation).toHaveReachedTopic('middle');
        expect(agent).not.toBeInTopic('middle');
      });
      it('follows afterwards', () => { user.says('one'); user.says('two'); expectConversationTo(graph); expect(conversation.topicHistory).toEqual(['start', 'middle']); expect(conversation.turns[1].topic).toBe('middle'); });
      it('simulates', () => { expectConversationTo(graph); user.simulate({ goal: 'x' }); expect(conversation.topicHistory).toEqual(['start', 'middle', 'end']); });
      it('asserts', () => { expectConversationTo({ ...graph, middle: { next: 'end', triggers: [{ onUserMatch: /two/ }], expect: { 'is too short': (turn) => turn.agentResponse.length > 99 } } }); user.simulate({ goal: 'x' }); });
      it('has no such topic', () => { expectConversationTo({ start: 'nowhere' }); });
      it('asks for no such topic', () => { expectConversationTo(graph); user.says('one'); expect(agent).toBeInTopic('strat'); });
      it('has no graph', () => { user.says('one'); expect(agent).not.toBeInTopic('start'); });
    ";
    let tested = project_with_roles(JUDGE, USER, script).test(&["a_test.ts"]);
    assert_eq!(
        statuses(&tested),
        [
            "asks for no such topic failed",
            "asserts failed",
            "follows afterwards passed",
            "follows passed",
            "has no graph failed",
            "has no such topic failed",
            "simulates passed",
        ],
        "{}",
        tested.output
    );
    assert!(
        tested.failure("asserts").to_string().contains("is too short"),
        "{:#}",
        tested.failure("asserts")
    );
    assert_eq!(tested.failure("asserts")["kind"], "assertion");
    for (name, words) in [
        ("has no such topic", "nowhere"),
        ("asks for no such topic", "strat"),
        ("has no graph", "topics need a `graph`, but none is defined"),
    ] {
        assert!(tested.failure(name).to_string().contains(words), "{name}: {:#}", tested.failure(name));
        assert_eq!(tested.failure(name)["fault"], "test");
    }
}

#[test]
fn each_simulated_user_is_resolved_by_name() {
    let user = |words: &'static str| {
        FakeAgent::with_run(move |run, _| {
            let answer = json!({"message": words, "done": false, "goal_progress": "none", "reason": ""});
            run.text(&answer.to_string()).finished()
        })
    };
    let (agent, usual, other) = (echo_agent(), user("I am the usual one"), user("I am the other one"));
    let project = |simulator: &str| {
        let script = "it('a', () => {
          for (const use of ['agents:other', undefined, 'agents:usual', 'agents:other']) {
            user.simulate({ goal: 'x', maxTurns: 1, maxRepeats: 0, ...(use === undefined ? {} : { use }) });
          }
          console.log(conversation.turns.map((turn) => turn.userMessage.content.split(' ')[3]).join());
        });";
        let text = format!(
            "target: {{ endpoint: '{agent}' }}\nagents:\n  usual: {{ endpoint: '{usual}' }}\n  other: {{ endpoint: '{other}' }}\n{simulator}"
        );
        Project::with_config(&text).file("a_test.ts", &format!("{IMPORTS}\n{script}"))
    };
    let tested = project("simulator: agents:usual\n").test(&["a_test.ts"]);
    tested.assert_all_passed();
    assert_eq!(tested.case("a")["logs"], json!(["other,usual,usual,other"]));
    let tested = project("").test(&["a_test.ts"]);
    assert!(tested.failure("a")["message"].as_str().unwrap().contains("no simulated user is configured"));
    assert_eq!(tested.case("a")["turns"].as_array().unwrap().len(), 1);
}

#[test]
fn assertion_names_are_resolved() {
    let script = "
      criterion('good', 'is it good');
      criterion('quiet', { match: (conversation) => conversation.turns.every((turn) => turn.agentResponse.length < 20) });
      criterion('loud', { matchMessages: (messages) => messages.length === 2 && messages.every((one) => one.content.length > 99) });
      topic('start', { evaluate: { satisfy: ['good', 'of_project', 'quiet'] } });
      topic('end', { triggers: [{ onUserMatch: /two/ }], expect: { satisfy: 'good' } });
      const graph = { start: 'end', end: null };
      it('topics', () => { expectConversationTo(graph); user.simulate({ goal: 'x', maxTurns: 2 }); });
      it('topics, told again', () => { expectConversationTo(graph); user.simulate({ goal: 'x', maxTurns: 2 }); conversation.evaluationResults.forEach((one) => console.log(one.topic, one.criterion, one.reasoning)); });
      it('a function', () => { expectConversationTo({ start: { next: 'end', expect: { satisfy: 'loud' } }, end: null }); user.simulate({ goal: 'x', maxTurns: 2 }); });
      it('stops', () => { expect(user.simulate({ goal: 'x', stopWhen: { type: 'satisfy', criteria: 'good' } }).turnCount).toBe(2); });
      it('a turn', () => { user.says({ user: 'two', assert: { type: 'satisfy', criteria: 'good' } }); });
      it('another turn', () => { user.says({ user: 'one', assert: { type: 'satisfy', criteria: 'good' } }); });
      it('the stated goal', () => { user.simulate({ goal: 'x', stopWhen: { type: 'goal' } }); expect(conversation.turnCount).toBe(1); });
    ";
    let judge = JUDGE.replace("fine'", "two'");
    let tested = project_with_roles(&judge, USER, script).test(&["a_test.ts"]);
    let came = statuses(&tested);
    let expected = [
        "a function failed",
        "a turn passed",
        "another turn failed",
        "stops passed",
        "the stated goal passed",
        "topics passed",
        "topics, told again passed",
    ];
    assert_eq!(came, expected, "{}", tested.output);
    let of_start = &tested.case("topics")["topic_visits"][0]["assertions"];
    let decided: Vec<(&Value, &Value)> =
        of_start.as_array().unwrap().iter().map(|check| (&check["criterion"], &check["passed"])).collect();
    let (no, yes) = (json!(false), json!(true));
    assert_eq!(decided, [(&json!("quiet"), &yes), (&json!("good"), &no), (&json!("of_project"), &no)]);
    assert!(of_start[1]["reasoning"].is_string(), "{of_start:#}");
    assert_eq!(tested.case("topics")["topic_visits"][1]["assertions"][0]["passed"], true);
    assert_eq!(
        tested.case("topics, told again")["logs"],
        json!([
            "start quiet null",
            "start good it is not",
            "start of_project it is not",
            "end good it is fine"
        ])
    );
    assert_eq!(tested.failure("a function")["kind"], "assertion");
    let turn = tested.failure("another turn");
    assert_eq!(turn["kind"], "assertion");
    assert!(turn["detail"].as_str().unwrap().starts_with("a_test.ts:14:"), "{turn:#}");
}

#[test]
fn unresolved_names_are_test_errors_even_if_soft() {
    let script = "
      criterion('good', 'is it good');
      topic('start', { characteristic: 'start' });
      topic('end', { characteristic: 'end' });
      const graph = { start: 'end', end: null };
      const never = (work) => { try { work(); } catch {} };
      it('of a topic', () => { expectConversationTo({ start: { next: 'end', evaluate: { satisfy: 'godo' } }, end: null }); user.says('hi'); });
      it('a topic of a topic', () => { expectConversationTo({ start: { next: 'end', expect: { type: 'reached_topic', name: 'strat', negate: true } }, end: null }); user.says('hi'); });
      it('to stop', () => { user.simulate({ goal: 'x', stopWhen: { type: 'satisfy', criteria: 'godo' } }); });
      it('a topic to stop', () => { expectConversationTo(graph); user.simulate({ goal: 'x', stopWhen: { type: 'topic', name: 'strat', negate: true } }); });
      it('during a topic', () => { expectConversationTo(graph); user.simulate({ goal: 'x', duringTopic: { strat: { role: 'y' } } }); });
      it('of a turn', () => { user.says({ user: 'hi', evaluate: { type: 'satisfy', criteria: 'godo' } }); });
      it('measured', () => { user.says('hi'); evaluate(agent).toSatisfy('godo'); user.says('never'); });
      it('a topic that is measured', () => { expectConversationTo(graph); user.says('hi'); never(() => evaluate(agent).not.toBeInTopic('strat')); });
    ";
    let tested = project_with_roles(JUDGE, USER, script).test(&["a_test.ts"]);
    for (name, words, turns) in [
        ("of a topic", "unknown criterion `godo`: did you mean `good`?", 0),
        ("a topic of a topic", "unknown topic `strat`: it is not in the graph: did you mean `start`?", 0),
        ("to stop", "`godo`", 0),
        ("a topic to stop", "`strat`", 0),
        ("during a topic", "`strat`", 0),
        ("of a turn", "`godo`", 0),
        ("measured", "`godo`", 1),
        ("a topic that is measured", "`strat`", 1),
    ] {
        let failure = tested.assert_fault(name, "test_error", "test");
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains(words) && message.contains("a_test.ts:"), "{name}: {message}");
        assert_eq!(tested.case(name)["turns"].as_array().unwrap().len(), turns, "{name}");
    }
}

#[test]
fn scripts_are_limited_to_project_grants() {
    let script = "it('a', () => { files.read('hotseat.yaml'); });
      it('b', () => { fetch('http://127.0.0.1:9/'); });
      it('c', () => { Process('models.user.Create', {}); });
      it('d', () => { process.env.HOME; });";
    let tested = run_script(script);
    for name in ["a", "b", "c", "d"] {
        assert_eq!(tested.failure(name)["kind"], "script_error", "{name}");
    }
}

/// However a test is declared, it starts with the variables of its file as the file sets them.
#[test]
fn tests_of_a_file_share_no_state() {
    let script = "
let count = 0;
const seen = [];
function next(t) { seen.push(count); count += 1; expect(seen).toEqual([0]); if (t) t.assert.Equal(count, 1); }
it('first', () => { next(); });
it('second', () => { next(); });
describe('group', () => {
  it('third', () => { next(); });
  it('fourth', { tags: ['a'] }, () => { next(); });
});
describe('hooked', () => {
  before(() => { seen.length = 0; });
  it('fifth', () => { next(); });
  it('sixth', () => { next(); });
});
for (const name of ['seventh', 'eighth']) it(name, () => { next(); });
export function TestNinth(t) { next(t); }
export function TestTenth(t) { next(t); }
";
    let agent = booking();
    let tested = project(&agent, script).test(&["a_test.ts", "--parallel", "2", "--runs", "2"]);
    tested.assert_all_passed();
    assert_eq!(statuses(&tested).len(), 10);
}

/// Tests that stand beside others run with their own declarations, and their errors point at their file.
#[test]
fn errors_point_at_tests_beside_others() {
    let script = "const word = 'é'; it('a', () => { wrong; }); it('b', () => { /* é */ wrong; }); const after = wrong2(); function wrong2() { return 1; }
describe('group', () => { it('c', () => {
    wrong;
  });
  it('d', () => {}); it('e', () => { wrong; }) });
it.skip('f', () => {})
it('g', () => {
  expect(after).toBe(1); wrong; })
; [1].forEach(() => it('h', () => { wrong; })); it(`i`, () => { wrong; });
export function TestJ(t) { t.log(word); } export function TestK(t) { wrong; }
export async function TestL(t) { TestJ(t); wrong; }
";
    let agent = booking();
    let tested = project(&agent, script).test(&["a_test.ts"]);
    let lines: Vec<&str> = script.lines().collect();
    for (name, line, place) in [
        ("a", 1, "wrong; }); it('b'"),
        ("b", 1, "wrong; }); const"),
        ("group > c", 3, "wrong;"),
        ("group > e", 5, "wrong; }) });"),
        ("g", 8, "wrong; })"),
        ("h", 9, "wrong; }));"),
        ("i", 9, "wrong; });\u{0}"),
        ("TestK", 10, "wrong; }"),
        ("TestL", 11, "wrong; }"),
    ] {
        let text = lines[line - 1];
        let at = match place.strip_suffix('\u{0}') {
            Some(place) => text.rfind(place),
            None => text.find(place),
        };
        let column = text[..at.unwrap()].chars().count() + 1;
        let place = format!("a_test.ts:{}:{column}", line + 1);
        let failure = &tested.case(name)["failure"];
        assert!(failure.to_string().contains(&place), "{name} at {place}: {failure:#}");
    }
    for (name, status) in [("group > d", "passed"), ("f", "skipped"), ("TestJ", "passed")] {
        assert_eq!(tested.case(name)["status"], status, "{name}");
    }
}

#[test]
fn unused_answers_name_their_interrupt_and_the_turn() {
    let tested = run_script(
        "it('a', () => {
  user.says('hello', { resume: [{ tool: 'pay', reason: 'approval', payload: 1 }] });
});",
    );
    let words = "the agent never asked for the answer for pay and with a reason that matches /approval/ at a_test.ts:3:";
    tested.assert_failure("a", "assertion", &[words]);
}

#[test]
fn rows_of_a_table_declare_tests_and_groups() {
    let agent = booking();
    let tested = project(
        &agent,
        "it.each([['Rome', 2], ['Oslo', 3]])('%# books %s for %d', (city, people, { user }) => { user.says(`${city} ${people}`); });
         it.each([{ at: { city: 'Bonn' }, n: 1 }, { at: { city: 'Kiel' }, n: 2 }])('$at.city: $n of $none, 100%%', { tags: ['row'] }, ({ at }) => { user.says(at.city); });
         describe.each(['a', 'b'])('group %s', (letter) => { it.each([1])('%s', (n) => { user.says(letter + n); }); });
         it.skip.each([1])('left out %$', () => {});
         it('plain', () => { user.says('plain'); });",
    )
    .test(&["a_test.ts"]);
    assert_eq!(
        statuses(&tested),
        [
            "0 books Rome for 2 passed",
            "1 books Oslo for 3 passed",
            "Bonn: 1 of $none, 100% passed",
            "Kiel: 2 of $none, 100% passed",
            "group a > 1 passed",
            "group b > 1 passed",
            "left out 1 skipped",
            "plain passed",
        ]
    );
    let mut texts = agent.user_texts();
    texts.sort();
    assert_eq!(texts, ["Bonn", "Kiel", "Oslo 3", "Rome 2", "a1", "b1", "plain"]);
}

#[test]
fn a_failed_row_fails_its_own_test_only() {
    let tested = run_script("it.each([1, 2, 3])('n %s', (n) => { expect(n).not.toBe(2); });");
    assert_eq!(statuses(&tested), ["n 1 passed", "n 2 failed", "n 3 passed"]);
    let focused = run_script("it.only.each([1, 2])('n %s', () => {}); it('other', () => {});");
    assert_eq!(statuses(&focused), ["n 1 passed", "n 2 passed", "other skipped"]);
}

#[test]
fn tables_without_rows_or_names_are_refused() {
    for (script, words) in [
        ("it.each([])('a', () => {});", "it.each got an empty list, so it would declare nothing"),
        (
            "describe.each('ab')('a', () => {});",
            "describe.each needs a list of rows, such as [{ city: \"Rome\" }], got \"ab\"",
        ),
        (
            "it.each`a | b\n${1} | ${2}`('a', () => {});",
            "it.each needs a list of rows, such as [{ city: \"Rome\" }], got a template",
        ),
        ("it.each([1], 2)('a', () => {});", "it.each expects at most 1 argument, got 2"),
        ("it.each([1, 2])('a', () => {});", "two rows of it.each are called \"a\": put %s, %# or $member"),
        ("it.each([1])('a');", "it(\"a\") needs a function"),
        ("it.each([1])('a %s', { tiemout: '1s' }, () => {});", "unknown key `tiemout`"),
        ("describe.each([1])('a %s', async () => {});", "must not be async"),
        ("it.each([1])('a %s', () => {}, 5);", "the options of it must be an object"),
    ] {
        let output = refused(script);
        assert!(
            output.stderr.contains(words) && output.stderr.contains("a_test.ts:2:"),
            "{script}: {output}"
        );
    }
}

#[test]
fn names_of_other_test_tools_are_known() {
    let agent = booking();
    let tested = Project::with_agent(&agent)
        .file(
            "a_test.ts",
            "import { test, beforeEach, afterEach, user } from 'hotseat';\nbeforeEach(() => { user.says('before'); });\nafterEach(() => { user.says('after'); });\ntest('a', () => { user.says('a'); });",
        )
        .test(&["a_test.ts"]);
    assert_eq!(statuses(&tested), ["a passed"]);
    assert_eq!(agent.user_texts(), ["before", "a", "after"]);

    let imported = refused("import { beforeAl } from 'hotseat';\nit('a', () => {});");
    assert!(imported.stderr.contains("a_test.ts:2:26"), "{imported}");
    let listed = refused("import { vi } from 'hotseat';\nit('a', () => {});").stderr;
    assert!(listed.contains("hotseat exports describe, context, it, test, before,"), "{listed}");
    let message = |script: &str| run_script(script).failure("a").to_string();
    let called = message("it('a', () => { user.says('x'); expect(agent).toHaveBeenCalledWith('x'); });");
    assert!(called.contains("did you mean `toCallTool`?"), "{called}");
    let response = message("it('a', () => { user.says('x'); expect(agent.response).toMatch(/x/); });");
    assert!(response.contains("is not a string: match its `text`"), "{response}");
    let soft = message("it('a', () => { expect.soft(1).toBe(2); });");
    assert!(soft.contains("`t.assert` of a test function continues after a failure"), "{soft}");
    let timer = message("it('a', () => { setTimeout(() => {}, 5); });");
    assert!(timer.contains("scripts have no timers"), "{timer}");
}

#[test]
fn placeholders_stand_in_expected_values() {
    assert_outcomes(
        "",
        "user.says('hello');",
        &[
            ("expect({ a: 1 }).toEqual({ a: expect.any(Number) })", true),
            ("expect({ a: '1' }).toEqual({ a: expect.any(Number) })", false),
            (
                "expect([1, [], {}, 'a', true, null]).toEqual([expect.any(Number), expect.any(Array), expect.any(Object), expect.any(String), expect.any(Boolean), expect.anything()])",
                false,
            ),
            (
                "expect([1, [], {}, 'a', true]).toEqual([expect.any(Number), expect.any(Array), expect.any(Object), expect.any(String), expect.any(Boolean)])",
                true,
            ),
            ("expect(null).toEqual(expect.any(Object))", false),
            ("expect({ a: { b: 1 }, c: 2 }).toEqual(expect.objectContaining({ a: { b: 1 } }))", true),
            ("expect({ a: { b: 1, d: 2 } }).toEqual(expect.objectContaining({ a: { b: 1 } }))", false),
            ("expect('a').toEqual(expect.objectContaining({ a: 1 }))", false),
            ("expect([1, 2, 3]).toEqual(expect.arrayContaining([3, 1]))", true),
            ("expect([1, 2]).toEqual(expect.arrayContaining([3]))", false),
            ("expect(['The Blue Room']).toEqual([expect.stringContaining('Blue')])", true),
            ("expect(['The Blue Room']).toEqual([expect.stringMatching(/red/i)])", false),
            ("expect(5).toEqual(expect.stringMatching(/5/))", false),
            (
                "expect(agent).toCallTool('check_availability', { room: expect.stringContaining('Blue'), capacity: expect.any(Number) })",
                true,
            ),
            ("expect(agent).toCallTool('check_availability', { room: expect.any(Number) })", false),
            ("expect(agent).not.toCallTool('check_availability', { capacity: expect.any(String) })", true),
        ],
    );
    for (script, words) in [
        ("expect(1).toEqual(expect.any('number'))", "expect.any needs a class such as Number"),
        ("expect({}).toEqual(expect.objectContaining({}))", "needs an object with members"),
        ("expect([]).toEqual(expect.arrayContaining([]))", "needs a list with entries"),
        ("expect('').toEqual(expect.stringContaining(''))", "needs a text"),
    ] {
        let failure = run_script(&format!("it('a', () => {{ {script}; }});")).failure("a").to_string();
        assert!(failure.contains(words), "{script}: {failure}");
    }
}

#[test]
fn final_assertions_and_evaluations_of_groups_are_added_to_those_of_tests() {
    let assertion = |value: &str| format!("{{ type: 'contains', value: '{value}' }}");
    let script = format!(
        "describe('object', {{ finalAssertions: {0}, evaluate: {0} }}, () => {{ it('a', {{ finalAssertions: {1}, evaluate: {1} }}, () => {{ user.says('x'); }}); }});
         describe('list', {{ finalAssertions: [{0}] }}, () => {{ it('a', {{ finalAssertions: {1} }}, () => {{ user.says('x'); }}); }});
         describe('negated', {{ finalAssertions: {{ type: 'contains', value: 'nothing', negate: true }} }}, () => {{ it('a', {{ finalAssertions: {1} }}, () => {{ user.says('x'); }}); }});
         describe('block', {{ finalAssertions: {{ text: {{ must_not_match: 'free' }} }} }}, () => {{ it('a', {{ finalAssertions: {{ text: {{ must_match: 'Blue' }} }} }}, () => {{ user.says('x'); }}); }});",
        assertion("nothing"),
        assertion("Blue Room"),
    );
    let tested = run_script(&script);
    assert_eq!(
        statuses(&tested),
        ["block > a failed", "list > a failed", "negated > a passed", "object > a failed"],
        "{}",
        tested.output
    );
}

#[test]
fn regular_expressions_in_options_are_patterns_or_refused() {
    for options in [
        "assert: { tools: { forbid: [/delete/] } }",
        "turnAssert: { tools: { require: [{ name: /x/ }] } }",
        "tags: [/x/]",
        "state: { a: /x/ }",
    ] {
        let output = refused(&format!("it('a', {{ {options} }}, () => {{ user.says('x'); }});"));
        assert!(output.stderr.contains("is compared as a text here"), "{options}: {output}");
    }
    let tested = run_script(
        "it('a', { assert: { text: { mustMatch: /blue/i, must_not_match: [/red/] }, tools: { require: [{ name: 'check_availability', argsMatch: { room: /Blue/ }, resultMatch: /true/ }] } } }, () => {
           user.says({ user: 'x', assert: [{ type: 'regex', value: /Room/ }, { type: 'regex', pattern: [/Room/] }, { type: 'tool_called', name: 'check_availability', where: { room: { regex: /^Blue/ } } }] });
         });",
    );
    assert_eq!(statuses(&tested), ["a passed"], "{}", tested.output);
}

#[test]
fn functions_that_decide_checks_cannot_send_or_assert() {
    for check in [
        "expect(agent).toCallTool('check_availability', { room: (v) => { user.says('q'); return true; } })",
        "expect(agent).not.toCallTool('check_availability', { room: (v) => { try { user.says('q'); } catch {} return false; } })",
        "expect(agent).toCallTool('check_availability', { room: (v) => { expect(1).toBe(1); return true; } })",
        "expect(conversation.hasToolCall('check_availability', { room: (v) => { user.says('q'); return true; } })).toBe(true)",
        "expect(agent).toSatisfy(['n', () => { user.says('q'); return true; }])",
        "expect(agent).toSatisfy('c')",
        "expect(5).toSatisfy(() => { evaluate(1).toBe(1); return true; })",
    ] {
        let agent = booking();
        let script = format!(
            "criterion('c', {{ match: () => {{ user.says('q'); return true; }} }}); it('a', () => {{ user.says('x'); {check}; }});"
        );
        let tested = project(&agent, &script).test(&["a_test.ts"]);
        let failure = tested.failure("a");
        assert_eq!(failure["kind"], "script_error", "{check}: {failure:#}");
        assert!(
            failure.to_string().contains("a judging function cannot assert or send anything"),
            "{failure:#}"
        );
        assert_eq!(agent.user_texts(), ["x"], "{check}");
    }
    let reads = run_script(
        "it('a', () => { user.says('x'); evaluate(1).toBe(1); expect(agent).toSatisfy(() => conversation.evaluationResults.length === 1); });",
    );
    assert_eq!(statuses(&reads), ["a passed"], "{}", reads.output);
}

#[test]
fn assertions_of_a_message_replace_those_of_every_turn() {
    let agent = booking();
    let config = format!(
        "target: {{ endpoint: '{agent}', turn_assert: {{ text: {{ must_not_match: free }}, budget: {{ max_tool_calls: 0 }} }} }}\n"
    );
    let suite = "import { it, user } from 'hotseat';
      it('all', () => { user.says({ user: 'x', assert: false }); });
      it('parts', () => { user.says({ user: 'x', assert: { text: false, budget: { maxToolCalls: 1 } } }); });
      it('one', () => { user.says({ user: 'x', assert: { text: false } }); });
      it('none', () => { user.says('x'); });
      it('of test', { turnAssert: { text: false, budget: false } }, () => { user.says('x'); });
      it('added', { turnAssert: false }, () => { user.says({ user: 'x', assert: { text: { must_not_match: 'Blue' } } }); });";
    let tested = Project::with_config(&config).file("a_test.ts", suite).test(&["a_test.ts"]);
    assert_eq!(
        statuses(&tested),
        ["added failed", "all passed", "none failed", "of test passed", "one failed", "parts passed"],
        "{}",
        tested.output
    );
}

#[test]
fn false_discards_assertions_of_groups() {
    let tested = run_script(
        "describe('above', { assert: { text: { must_not_match: 'free' } }, turnAssert: { text: { must_not_match: 'free' } } }, () => {
           it('discards', { assert: false, turnAssert: false }, () => { user.says('x'); });
           it('keeps', () => { user.says('x'); });
         });
         describe('false', { assert: false }, () => {
           it('adds', { assert: { text: { must_not_match: 'free' } } }, () => { user.says('x'); });
           it('adds typed', { assert: { type: 'contains', value: 'nothing' } }, () => { user.says('x'); });
           it('none', () => { user.says('x'); });
         });
         describe('block', { assert: { text: false } }, () => {
           it('adds', { assert: { text: { must_match: 'free' } } }, () => { user.says('x'); });
         });",
    );
    assert_eq!(
        statuses(&tested),
        [
            "above > discards passed",
            "above > keeps failed",
            "block > adds passed",
            "false > adds failed",
            "false > adds typed failed",
            "false > none passed"
        ],
        "{}",
        tested.output
    );
}
