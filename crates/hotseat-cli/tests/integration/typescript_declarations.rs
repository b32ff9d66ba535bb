//! Declarations of TypeScript test files: options, scenarios, topics, markers.

use crate::common::Project;
use crate::common::typescript::{
    IMPORTS, JUDGE, USER, booking, project, project_with_roles, refused, run_script, statuses,
};
use serde_json::{Value, json};

#[test]
fn scenarios_become_tests() {
    let scenarios = json!([
        {"id": "a", "name": "workshop", "goal": "find a room", "verification": {"people": 10}},
        {"name": "party", "goal": "find a hall", "extra": [1], "personality": null},
    ]);
    let script = "describe('rooms', () => {
      scenarioSet('venues', 'scenarios/venues.json', (s) => {
        it(`handles ${s.name}`, ({ scenario }) => { user.says(s.goal); expect(scenario).toBe(s); expect(() => { s.name = 'x'; }).toThrow(); });
      });
      scenarioSet('inline', [{ name: 'one', goal: 'g' }], (s) => { it(`has ${s.name}`, () => { expect(s.missing).toBeUndefined(); expect(s.get('goal')).toBe('g'); }); });
    });";
    let agent = booking();
    let mut project = project(&agent, script).file("scenarios/venues.json", &scenarios.to_string());
    let tested = project.test(&["a_test.ts", "--parallel", "1"]);
    tested.assert_all_passed();
    assert_eq!(agent.user_texts(), ["find a room", "find a hall"]);
    let workshop = tested.case("rooms > handles workshop");
    assert_eq!(workshop["id"], "rooms > handles workshop@a");
    assert_eq!(workshop["scenario"]["set"], "venues");
    assert_eq!(workshop["scenario"]["id"], "a");
    assert_eq!(workshop["scenario"]["data"]["verification"]["people"], 10);
    // The expected outcome of a scenario is not sent to the agent.
    assert!(workshop.get("metadata").is_none_or(Value::is_null), "{workshop:#}");
    let party = tested.case("rooms > handles party");
    assert_eq!(party["scenario"]["fingerprint"], party["scenario"]["id"]);
    // A scenario with an id keeps its identity under another name.
    let first = workshop["stable_id"].clone();
    let renamed = scenarios.to_string().replace("\"workshop\"", "\"seminar\"");
    project = project.file("scenarios/venues.json", &renamed);
    let tested = project.test(&["a_test.ts"]);
    assert_eq!(tested.case("rooms > handles seminar")["stable_id"], first);
    assert_ne!(tested.case("rooms > handles party")["stable_id"], first);
}

#[test]
fn scenarios_are_read_as_in_case_files() {
    let script = |source: &str| {
        format!("scenarioSet('venues', {source}, (s) => {{ it(`handles ${{s.name}}`, () => {{}}); }});")
    };
    let named = |name: &str, text: &str| {
        project(&booking(), &script(&format!("'{name}'"))).file(name, text).hotseat(&["test", "a_test.ts"])
    };
    for (name, text) in [
        ("venues.yaml", "- {name: one, goal: g}\n- {name: two, goal: g}\n"),
        ("venues.jsonl", "{\"name\": \"one\", \"goal\": \"g\"}\n{\"name\": \"two\", \"goal\": \"g\"}\n"),
    ] {
        let output = named(name, text);
        assert!(output.code == 0 && output.stdout.contains("handles two"), "{name}: {output}");
    }
    for (text, words) in [
        ("{", "venues.json"),
        ("{}", "the scenarios of set `venues` are not a list"),
        ("[]", "has no scenario"),
        (
            "[{\"name\": \"x\", \"goal\": \"y\"}, 5]",
            "index 1 of set `venues` in venues.json is not a mapping",
        ),
        (
            "[{\"id\": \"a\", \"name\": \"x\", \"goal\": \"y\"}, {\"id\": \"a\", \"name\": \"z\", \"goal\": \"y\"}]",
            "has the id `a`",
        ),
    ] {
        let output = named("venues.json", text);
        assert!(
            output.code == 2 && (output.stderr.contains(words) || words == "venues.json"),
            "{words}: {output}"
        );
    }
    for (source, words) in [
        ("[]", "scenarios"),
        ("{}", "this set needs `from` or `scenarios`"),
        (
            "{ from: 'x.json', scenarios: [{ name: 'x', goal: 'y' }] }",
            "`from` and `scenarios` cannot be combined",
        ),
        ("{ form: 'x.json' }", "form"),
        ("5", "expected a file or a list of scenarios"),
        ("'missing.json'", "missing.json"),
        ("'../../../../../../../../etc/hostname'", "outside"),
        ("[{ name: 'x' }]", "missing required fields: goal"),
    ] {
        let output = refused(&script(source));
        assert!(output.stderr.contains(words), "{source}: {output}");
    }
    let tested = run_script(
        "scenarioSet('s', [{ name: 'x', goal: 'y' }], (s) => { it('a', () => { try { s.get('gaol'); } catch {} }); });",
    );
    assert!(tested.failure("a")["message"].as_str().unwrap().contains("has no `gaol`"), "{}", tested.output);
}

#[test]
fn test_options_take_effect() {
    let tested = run_script(
        "it('a', { maxTurns: 1 }, () => { user.says('one'); user.says('two'); });
         it('b', { maxTurns: 2 }, () => { user.says('one'); user.says('two'); });
         it('c', { assert: [{ type: 'contains', value: 'never said' }] }, () => {});
         it('d', { assert: [{ type: 'not_contains', value: 'never said' }] }, () => {});
         it('e', { evaluate: [{ type: 'contains', value: 'never said' }] }, () => {});
         it('f', { finalAssertions: [{ type: 'contains', value: 'never said' }] }, () => {});
         it('g',
           { assert: [{ type: 'contains', value: 'never said' }] },
           () => { user.says('one'); });",
    );
    let came = ["a failed", "b passed", "c failed", "d failed", "e passed", "f failed", "g failed"];
    assert_eq!(statuses(&tested), came, "{}", tested.output);
    assert_eq!(tested.failure("a")["kind"], "max_turns");
    assert_eq!(tested.case("a")["turns"].as_array().unwrap().len(), 1);
    assert_eq!(tested.failure("c")["fault"], "test");
    let detail = tested.failure("g")["detail"].as_str().unwrap();
    assert!(detail.starts_with("a_test.ts:8:10: "), "{detail}");
}

/// As a case adds its assertions to those of its agent.
#[test]
fn tests_add_their_options_to_those_of_their_groups() {
    let tested = run_script(
        "const says = (word) => ({ text: { must_match: word } });
         describe('outer', { assert: says('never said'), turnAssert: { budget: { max_tool_calls: 0 } }, tags: ['a'], options: { x: 1 } }, () => {
           it('its own', { assert: says('Room') }, () => { user.says('hi'); });
           it('none', { assert: { text: false }, turnAssert: { budget: false } }, () => { user.says('hi'); });
           it('a limit', { assert: { text: false }, turn_assert: { budget: { maxToolCalls: 5 } } }, () => { user.says('hi'); });
           describe('inner', { assert: { type: 'contains', value: 'Room' }, turnAssert: { budget: false }, tags: ['b', 'a'], options: { y: 2 } }, () => {
             it('a list', { assert: [{ type: 'contains', value: 'free' }], options: { z: 3 } }, () => { user.says('hi'); });
           });
         });
         describe('turns', { turnAssert: says('never said') }, () => {
           it('its own', { turnAssert: says('Room') }, () => { user.says('hi'); });
         });
         describe('servers', { mcp: { bank: { type: 'mock', tools: [{ name: 'pay', answers: [{ content: 'ok' }] }] } }, criteria: { kind: 'is kind' } }, () => {
           it('all', { mcp: { shop: { type: 'mock', tools: [{ name: 'buy', answers: [{ content: 'ok' }] }] } }, criteria: { brief: 'is brief' }, assert: [{ type: 'tool_called', negate: true, name: 'pay', server: 'bank' }, { type: 'tool_called', negate: true, name: 'buy', server: 'shop' }] }, () => { user.says('hi'); });
           it('tools', { mcp: { bank: { tools: [{ name: 'pay', answers: [{ content: 'declined' }] }], unmatched: 'error_result' } }, assert: undefined }, () => { user.says('hi'); });
           it('faults', { mcp: { bank: { faults: [{ do: 'lost_answer', tool: 'pay' }] } } }, () => { user.says('hi'); });
         });",
    );
    let came = [
        "outer > a limit passed",
        "outer > inner > a list failed",
        "outer > its own failed",
        "outer > none passed",
        "servers > all passed",
        "servers > faults failed",
        "servers > tools passed",
        "turns > its own failed",
    ];
    assert_eq!(statuses(&tested), came, "{}", tested.output);
    // The server of the group has the fault of the test, which this agent cannot meet.
    let unmet = tested.failure("servers > faults")["message"].to_string();
    assert!(unmet.contains("fault `lost_answer` on pay of MCP server `bank` was not reached"), "{unmet}");
    let listed = tested.case("outer > inner > a list");
    assert_eq!(listed["tags"], json!(["a", "b"]));
    let checks = listed["assertions"].as_array().expect("assertions");
    let passed: Vec<bool> = checks.iter().map(|check| check["passed"] == true).collect();
    assert_eq!(passed, [false, true, true], "{checks:#?}");
}

#[test]
fn topics_are_tracked_in_selected_tests() {
    let script = "
      topic('start', { evaluate: { match: /no such words/ } });
      const graph = { start: null };
      it('simulated', { decideTopics: 'simulated' }, () => { expectConversationTo(graph); user.says('hi'); });
      it('unsaid', () => { expectConversationTo(graph); user.says('hi'); });
      it('always', { decideTopics: 'always' }, () => { expectConversationTo(graph); user.says('hi'); });
      it('asks', () => { expectConversationTo({ start: ['a', 'b'], a: null, b: null }); user.says('hi'); });
      it('asks nobody', { classifyTopics: 'triggers' }, () => { expectConversationTo({ start: ['a', 'b'], a: null, b: null }); user.says('hi'); });
      topic('a', { characteristic: 'a' }); topic('b', { characteristic: 'b' });
    ";
    let tested = project_with_roles(JUDGE, USER, script).test(&["a_test.ts"]);
    let soft = |name: &str| tested.case(name)["topic_visits"][0]["assertions"].as_array().map_or(0, Vec::len);
    let decided = ["simulated", "unsaid", "always"].map(soft);
    assert_eq!(decided, [0, 1, 1], "{}", tested.output);
    let asked = |name: &str| tested.case(name)["turns"].to_string().contains("judge");
    assert_eq!((asked("asks"), asked("asks nobody")), (true, false), "{:#}", tested.case("asks"));
    assert_eq!(tested.case("asks nobody")["status"], "passed");
}

#[test]
fn topic_assertions_are_known_after_simulation() {
    let script = "
      topic('start', { evaluate: { 'is short': (turn) => turn.agentResponse.length < 20, notMatch: /said: one/ } });
      topic('strict', { expect: { notMatch: /said: one/ } });
      it('knows', () => {
        expectConversationTo({ start: null });
        user.simulate({ goal: 'x', maxTurns: 2 });
        const found = conversation.evaluationResults;
        expect(found.map((one) => [one.topic, one.visit, one.passed])).toEqual([['start', 1, false], ['start', 1, true], ['start', 1, true]]);
        expect(conversation.topicVisits[0].visit).toBe(1);
      });
      it('ends', () => { expectConversationTo({ strict: null }); user.simulate({ goal: 'x', maxTurns: 2 }); user.says('never'); });
      it('goes on', () => { expectConversationTo({ start: null }); user.simulate({ goal: 'x', maxTurns: 1 }); user.says('a very long text, and more of it'); });
    ";
    let tested = project_with_roles(JUDGE, USER, script).test(&["a_test.ts"]);
    assert_eq!(statuses(&tested), ["ends failed", "goes on passed", "knows passed"], "{}", tested.output);
    assert_eq!(tested.case("ends")["turns"].as_array().unwrap().len(), 2);
    // The function stays available until the last topic is decided, also after the simulated turns.
    let decided = tested.case("goes on")["topic_visits"][0]["assertions"].to_string();
    assert!(!decided.contains("ended meanwhile"), "{decided}");
    assert!(decided.contains("false"), "{decided}");
}

#[test]
fn focused_tests_can_be_forbidden() {
    let agent = booking();
    let of = project(&agent, "it('a', () => {});\nit.only('b', () => {});");
    assert_eq!(of.hotseat(&["test", "a_test.ts"]).code, 0);
    for command in ["test", "list"] {
        of.hotseat(&[command, "--forbid-only", "a_test.ts"]).assert_stderr(2, &["`only`", "a_test.ts:3:"]);
    }
    let grouped = project(&agent, "describe.only('g', () => { it('a', () => {}); });");
    assert_eq!(grouped.hotseat(&["test", "--forbid-only", "a_test.ts"]).code, 2);
    let plain = project(&agent, "it('a', () => {}); it.skip('b', () => {});");
    assert_eq!(plain.hotseat(&["test", "--forbid-only", "a_test.ts"]).code, 0);
}

#[test]
fn unused_declarations_are_validated() {
    for (declared, words) in [
        ("topic('x', { characterstic: 'y' });", "characterstic"),
        ("topic('x', { triggers: [{ onToolCal: 'y' }] });", "onToolCal"),
        ("topic('x', { expect: { 'is short': true } });", "is short"),
        ("simulator({ roel: 'y' });", "roel"),
        ("simulator({ neverSays: '(' });", "("),
    ] {
        let output = refused(&format!("{declared}\nit('a', () => {{}});"));
        assert!(
            output.stderr.contains(words) && output.stderr.contains("a_test.ts:2:"),
            "{declared}: {output}"
        );
    }
    let script = "
      topic('x', { characteristic: 'y', agentIntent: 'z', maxTurns: 3, triggers: [{ onToolCall: { name: 'a', arguments: { b: /c/ } } }, { afterTurnsIn: { topic: 'y', count: 2 } }, { onCondition: () => true }] });
      simulator({ role: 'x', personality: null, neverSays: [/a/i], duringTopic: { x: { role: 'y' } }, stopWhen: () => true });
      it('a', () => {});
    ";
    run_script(script).assert_all_passed();
}

#[test]
fn user_without_personality_is_allowed() {
    let script = "scenarioSet('s', [{ name: 'x', goal: 'y', personality: null }, { name: 'z', goal: 'y' }], (s) => { it(s.name, () => { user.simulate({ goal: s.goal, personality: s.personality, maxTurns: 1 }); }); });";
    project_with_roles(JUDGE, USER, script).test(&["a_test.ts"]).assert_all_passed();
}

#[test]
fn turn_metadata_is_readable() {
    let script = "it('a', () => {
      user.says('hi', { options: { metadata: { room: 7 } } });
      expect(conversation.lastUserMessage.metadata).toEqual({ metadata: { room: 7 } });
      user.says('again');
      expect(conversation.lastUserMessage.metadata).toEqual({});
      expect(conversation.messages[0].isUser).toBe(true);
      expect(agent.lastResponse.findToolCalls('x')).toHaveLength(0);
    });";
    let project = Project::with_config("target:\n  type: embedded\n  agent: agent.yaml\n")
        .file("agent.yaml", "name: Rooms\n")
        .file("script.yaml", "use: always\nrules:\n  - reply: Which room do you need?\n")
        .file("a_test.ts", &format!("{IMPORTS}\n{script}"));
    project.test(&["a_test.ts"]).assert_all_passed();
}

/// A test runs with the rest of its file. Other tests are left out only where that changes nothing.
#[test]
fn a_test_sees_what_other_declarations_of_its_file_do() {
    let script = r#"
      // A function that calls `it` and another function at the same place.
      const names = [];
      function both(f) { f("one", () => {}); }
      both(it);
      both((name) => names.push(name));
      it("sees names", () => { expect(names).toEqual(["one"]); });

      // A parameter called `it`.
      const counted = [];
      const twice = (it) => { it("two", () => {}); };
      twice((name) => counted.push(name));
      twice((name, body) => { counted.push(typeof body); });
      it("sees two", () => { expect(counted).toEqual(["two", "function"]); });

      // Declared by a function that a test calls, too.
      function late() { it("late", () => {}); }
      late();
      it("declares", () => { let thrown = "nothing"; try { late(); } catch (error) { thrown = error.name; } expect(thrown).toBe("TypeError"); });

      // Arguments with effects, and names from texts.
      let number = 0;
      it(`numbered ${++number}`, () => {});
      it("is // no comment", { tags: ["a"] }, () => { expect("it('x', () => {})".length).toBe(17); });
      it("is `quoted` /* too */", () => { expect(/it\("a", \(\) => \{/.test("it(\"a\", () => {")).toBe(true); });
      it("counts", () => { expect(number).toBe(11); });

      // Hooks of groups run for their own tests only.
      let calls = "";
      describe("outer", () => {
        before(() => { calls += "o"; });
        it("first", () => { expect(calls).toBe("o"); });
        describe("inner", () => {
          before(() => { calls += "i"; });
          after(() => { calls = ""; });
          it("second", () => { expect(calls).toBe("oi"); });
        });
        describe("other", () => {
          before(function () { calls += "x"; });
          it("third", () => { expect(calls).toBe("ox"); });
        });
      });
      describe("with more", () => {
        before(() => { calls += "m"; });
        number += 10;
        it("fourth", () => { expect(calls).toBe("m"); expect(number).toBe(11); });
      });
      if (number > 5) it("conditional", () => { expect(number).toBe(11); }); else it("never", () => {});
      for (const n of [1, 2, 3]) it(`loop ${n}`, () => { expect([n, calls]).toEqual([n, ""]); });
    "#;
    let tested = run_script(script);
    let statuses = statuses(&tested);
    assert_eq!(statuses.len(), 17, "{statuses:#?}");
    // Calling `it` within a test is a mistake of the test, also if it catches the error.
    let wrong: Vec<&String> = statuses.iter().filter(|status| !status.ends_with(" passed")).collect();
    assert_eq!(wrong, ["declares failed"], "{statuses:#?}");
    assert!(tested.case("declares")["failure"].to_string().contains("must be used outside of `it`"));
}

/// Texts with line breaks may have any indentation.
#[test]
fn a_line_after_a_text_with_line_breaks_selects_its_test() {
    let script = "\
describe('group', () => {
  it('first', { tags: ['a'] }, async (t: any) => {
    await t.user.says(`one
two
  it('no test') {
`);
    t.assert.equal(1, 1);
  });

  it('second', (t) => { t.user.says(`
x`); });
});
export function TestThird(t) {
  t.user.says(`
y`);
  t.user.says('z');
}
";
    let project = project(&booking(), script);
    for (line, name) in [
        (3, "group > first"),
        (5, "group > first"),
        (8, "group > first"),
        (9, "group > first"),
        (11, "group > second"),
        (12, "group > second"),
        (17, "TestThird"),
    ] {
        let listed = project.hotseat(&["list", "--json", &format!("a_test.ts:{line}")]);
        let names: Vec<Value> =
            listed.stdout.lines().map(|case| serde_json::from_str(case).unwrap()).collect();
        assert!(names.len() == 1 && names[0]["name"] == name, "{line}: {listed}");
    }
    let listed = project.hotseat(&["list", "a_test.ts:10"]);
    assert!(listed.code != 0 && listed.stderr.contains("no case is at line 10"), "{listed}");
}

/// Two spellings of an option are one option, also of a group and of a test in it.
#[test]
fn spellings_of_an_option_inherit_and_replace_each_other() {
    let tested = run_script(
        "const says = (word) => ({ text: { must_match: word } });
         describe('added', { assertions: { type: 'contains', value: 'no such text' } }, () => {
           it('own', { assert: says('Room') }, () => { user.says('hi'); });
         });
         describe('discarded', { assert: says('no such text') }, () => {
           it('own', { assertions: false }, () => { user.says('hi'); });
         });
         describe('time', { timeout: '1m', retries: 1 }, () => {
           it('own', { timeoutMs: 70000, reliability: { rate: 0.5, confidence: 0.6 } }, () => { user.says('hi'); });
         });
         describe('reliable', { reliability: { rate: 0.9 }, timeoutMs: 60000 }, () => {
           it('own', { retries: 1, timeout: '2m' }, () => { user.says('hi'); });
         });",
    );
    let came = ["added > own failed", "discarded > own passed", "reliable > own passed", "time > own passed"];
    assert_eq!(statuses(&tested), came, "{}", tested.output);
    assert!(tested.case("time > own")["reliability"].is_object(), "{}", tested.case("time > own"));
    for options in ["{ assert: CHECK, assertions: CHECK }", "{ retries: 1, reliability: { rate: 0.9 } }"] {
        refused(&format!(
            "const CHECK = {{ type: 'contains', value: 'x' }};
             describe('a', {{ assert: CHECK, retries: 2 }}, () => {{ it('b', {options}, () => {{ user.says('x'); }}); }});"
        ));
    }
}
