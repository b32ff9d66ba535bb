//! TypeScript tests with programming errors: they never pass, even if the test catches the exception.

use crate::common::typescript::{
    IMPORTS, JUDGE, USER, assert_outcomes, booking, project, project_with_roles, refused, run_script,
    statuses,
};
use crate::common::{Project, echo_agent};
use serde_json::json;

/// Asserts that each statement is a test error, even if the exception is caught and the check is soft.
#[track_caller]
fn assert_test_errors(declared: &str, all: &[(&str, &str)]) {
    let body = |code: &str| format!("user.says('hi'); try {{ {code}; }} catch {{}}");
    let of_each = all.iter().enumerate().map(|(number, (code, _))| {
        let soft = code.replace("expect(", "evaluate(");
        format!(
            "it('{number}', () => {{ {} }});\nit('{number} softly', () => {{ {} }});",
            body(code),
            body(&soft)
        )
    });
    let tested = run_script(&format!("{declared}\n{}", of_each.collect::<Vec<_>>().join("\n")));
    for (number, (code, words)) in all.iter().enumerate() {
        for name in [number.to_string(), format!("{number} softly")] {
            let failure = tested.failure(&name);
            assert_eq!(failure["fault"], "test", "{code}: {failure:#}");
            let message = failure["message"].as_str().unwrap();
            assert!(message.contains(words), "{code}: {message}");
            assert!(message.contains("a_test.ts:"), "{code}: {message}");
        }
    }
}

/// Asserts that each check is undecidable: a test failure if hard, noted if soft.
#[track_caller]
fn assert_undecidable(all: &[&str]) {
    let tests = all.iter().enumerate().map(|(number, code)| {
        let negated = code.replace(").to", ").not.to");
        let soft = code.replace("expect(", "evaluate(");
        let say = "user.says('hi');";
        format!(
            "it('{number}', () => {{ {say} {code}; }});\nit('{number} not', () => {{ {say} {negated}; }});\nit('{number} soft', () => {{ {say} {soft}; }});"
        )
    });
    let tested = run_script(&tests.collect::<Vec<_>>().join("\n"));
    for (number, code) in all.iter().enumerate() {
        for name in [number.to_string(), format!("{number} not")] {
            assert_eq!(tested.failure(&name)["kind"], "script_error", "{name}: {code}");
        }
        let case = tested.case(&format!("{number} soft"));
        assert_eq!(case["status"], "passed", "{code}: {case:#}");
        let noted = case["evaluations"].as_array().or(case["assertions"].as_array()).unwrap();
        assert!(noted.iter().all(|check| check["passed"] != true), "{code}: {case:#}");
    }
}

#[test]
fn each_test_runs_its_own_body_regardless_of_name() {
    let tested = run_script(
        "it('same', { id: 'a' }, () => {}); it('same', { id: 'b' }, () => { expect(1).toBe(2); });",
    );
    assert_eq!(statuses(&tested), ["same failed", "same passed"]);
    let tested = run_script(
        "describe('g', () => { it('x', { id: 'a' }, () => { expect(1).toBe(2); }); }); it('g > x', { id: 'b' }, () => {});",
    );
    assert_eq!(statuses(&tested), ["g > x failed", "g > x passed"]);
}

#[test]
fn rejects_options_without_effect() {
    for (options, words) in [
        ("simulate: { goal: 'x' }", "`simulate`"),
        ("simulator: { use: 'agents:x' }", "`simulator`"),
        ("scenarios: [{ name: 'x', goal: 'y' }]", "`scenarios`"),
        ("skip: ''", "`skip`"),
        ("skip: 1", "`skip`"),
    ] {
        let output = refused(&format!("it('a', {{ {options} }}, () => {{}});"));
        assert!(
            output.stderr.contains(words) && output.stderr.contains("a_test.ts:2:"),
            "{options}: {output}"
        );
    }
    for (declared, words) in [
        ("criterion('x', 'y', { match: () => 1, goodExamples: [] });", "is for a judge"),
        ("criterion('x', 'y'); criterion('x', 'z');", "is already declared here"),
        ("topic('x', {}); topic('x', {});", "is already declared here"),
    ] {
        let output = refused(&format!("{declared} it('a', () => {{}});"));
        assert!(output.stderr.contains(words), "{declared}: {output}");
    }
}

#[test]
fn rejects_criteria_of_functions_in_options() {
    let asserted = "[{ type: 'satisfy', criteria: ['short', 'polite'] }]";
    let declared = "criterion('polite', { match: () => false });";
    let config = "target: { endpoint: 'http://127.0.0.1:9/' }
criteria: { short: { match: [{ type: contains, value: a }] }, polite: { match: [{ type: contains, value: a }] } }
";
    for (script, line) in [
        (format!("{declared}\nit('a', {{ assert: {asserted} }}, () => {{}});"), 3),
        (format!("{declared}\nit('a', {{ evaluate: {asserted} }}, () => {{}});"), 3),
        (
            format!(
                "{declared}\ndescribe('g', {{ turnAssert: {asserted} }}, () => {{\nit('a', () => {{}}); }});"
            ),
            4,
        ),
        (
            format!(
                "it('b', () => {{}});\ndescribe('g', () => {{ {declared}\nit('a', {{ finalAssertions: {asserted} }}, () => {{}}); }});"
            ),
            4,
        ),
    ] {
        let project = Project::with_config(config).file("a_test.ts", &format!("{IMPORTS}\n{script}"));
        project.hotseat(&["test"]).assert_stderr(
            2,
            &[
                "the criterion `polite` is decided by a function",
                "write `expect(agent).toSatisfy(\"polite\")` in the test",
                &format!("a_test.ts:{line}:"),
            ],
        );
    }
    // The criterion of another group, or a nearer one for a judge, does not count.
    for script in [
        format!(
            "describe('g', () => {{ {declared} }}); it('a', {{ assert: {asserted} }}, () => {{ user.says('a'); }});"
        ),
        format!(
            "{declared} describe('g', () => {{ criterion('polite', 'It is polite'); it('a', {{ assert: {asserted} }}, () => {{}}); }});"
        ),
    ] {
        let project = Project::with_config(config).file("a_test.ts", &format!("{IMPORTS}\n{script}"));
        let output = project.hotseat(&["test"]);
        assert!(!output.stderr.contains("is decided by a function"), "{script}: {output}");
    }
}

#[test]
fn an_invalid_regular_expression_is_reported_at_its_place() {
    let good = "import { it, user } from 'hotseat';\nit('a', () => { user.says('hi'); });\n";
    for literal in ["/a(b/", "/a[x--y]b/u", "/a/ii", r"/a\_b/u", r"/[/]\/é(/"] {
        let before = "const half: number = 4 / 2 / 1, text = 'é/(', ";
        let bad =
            good.replace("user.says('hi')", &format!("{before}wrong = {literal}; user.says(wrong.source)"));
        let column = 1 + "it('a', () => { ".len() + before.chars().count() + "wrong = ".len();
        let project = Project::with_agent(&echo_agent()).file("good_test.ts", good).file("bad_test.ts", &bad);
        let output = project.hotseat(&["test"]);
        assert_eq!(output.code, 2, "{literal}: {output}");
        assert!(output.stderr.contains(&format!("bad_test.ts:2:{column}\n")), "{literal}: {output}");
        assert!(output.stderr.contains("this regular expression is invalid"), "{literal}: {output}");
    }
}

#[test]
fn an_error_without_a_place_names_its_file() {
    let project = Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\n")
        .file("a_test.ts", "import { it } from 'hotseat';\nit('a', () => {});\n")
        .file("deep/b_test.ts", "import { it } from 'hotseat';\nthrow 1;\n");
    project.hotseat(&["list"]).assert_stderr(2, &["deep/b_test.ts: thrown: 1"]);
}

/// JSON would leave these values out, and the assertion would assert less.
#[test]
fn rejects_values_that_a_case_file_cannot_hold() {
    let called = |arguments: &str| {
        format!(
            "expect(agent).toHold({{ type: 'tool_called', name: 'check_availability', arguments: {arguments} }})"
        )
    };
    let rows = [
        (called("{ room: (v) => v === 1 }"), "`arguments.room` is [function room], which a case file cannot hold"),
        (called("{ room: anything }"), "`arguments.room` is anything, which"),
        (called("{ cart: { x: Symbol() } }"), "`arguments.cart.x` is Symbol()"),
        (called("{ at: new Date(0) }"), "`arguments.at` is 1970"),
        (called("{ at: new Map() }"), "`arguments.at` is Map {}"),
        (called("{ at: 1n }"), "`arguments.at` is 1n"),
        (called("{ at: NaN }"), "`arguments.at` is NaN"),
        (called("{ at: gt(1) }"), "`arguments.at`"),
        (called("{ room: /Blue/ }"), "`arguments.room` is /Blue/, which is compared as a text here"),
        ("expect(agent).toHold({ type: 'tool_called', name: 'x', count: () => 3 })".to_string(), "`count`"),
        ("expect(agent).toHold({ tools: { forbid: [/delete/] } })".to_string(), "`tools.forbid.0` is /delete/, which is compared as a text here"),
        ("expect(agent).toHold({ type: 'tool_called', name: /delete/, negate: true })".to_string(), "`name` is /delete/"),
        ("expect(agent).toHold({ type: 'tool_sequence', only: [/delete/], calls: [] })".to_string(), "`only.0` is /delete/"),
        ("expect(agent).not.toHold({ type: 'tool_called', name: 'x', where: { to: { equals: /^evil/ } } })".to_string(), "`where.to.equals` is /^evil/"),
        ("expect(agent).not.toHold({ type: 'tool_called', name: 'x', where: { to: { oneOf: [/^evil/] } } })".to_string(), "`where.to.oneOf.0`"),
        ("expect(agent).toHold({ type: 'not_contains', value: /hel+o/ })".to_string(), "`value` is /hel+o/"),
        ("user.says({ user: 'hi', assert: [{ type: 'tool_called', name: 'x', arguments: { a: () => 1 } }] })".to_string(), "`assert.0.arguments.a`"),
        ("expect(agent).not.toCallTool('check_availability', { room: 1n })".to_string(), "`room` of the arguments is 1n"),
        ("expect(agent).not.toCallTool('check_availability', { room: { at: new Date(0) } })".to_string(), "`room.at` of the arguments"),
        ("agent.calledTool('check_availability', { room: new Set([1]) })".to_string(), "`room` of the arguments is Set"),
        ("expect(agent).toCallTool('x', new Map([['room', 1]]))".to_string(), "the value of the arguments is Map {"),
    ];
    let rows: Vec<(&str, &str)> = rows.iter().map(|(code, words)| (code.as_str(), *words)).collect();
    assert_test_errors("", &rows);
    assert_outcomes(
        "",
        "user.says('hello');",
        &[
            ("expect(agent).toHold({ type: 'regex', value: /./ })", true),
            ("expect(agent).toHold({ text: { must_match: /./ } })", true),
        ],
    );
}

#[test]
fn rejects_undefined_values_in_expected_calls() {
    assert_test_errors(
        "",
        &[
            (
                "expect(agent).toCallTool('check_availability', { room: agent.response.metadata.rooom })",
                "`room` of the arguments is undefined",
            ),
            (
                "expect(agent).toCallTool('check_availability', { room: /Blue/, at: agent.response.metadata.at })",
                "`at` of the arguments",
            ),
            (
                "expect(agent).toCallTool('check_availability', { room: { name: agent.response.metadata.x } })",
                "`room.name`",
            ),
            ("expect(agent).toCallTool('check_availability', ['Blue Room'])", "must be an object"),
            ("agent.calledTool('check_availability', { room: agent.response.metadata.rooom })", "`room`"),
            (
                "agent.response.hasToolCall('check_availability', { room: agent.response.metadata.rooom })",
                "`room`",
            ),
            (
                "conversation.toolCallsFor('check_availability', { room: agent.response.metadata.rooom })",
                "`room`",
            ),
            ("expect(agent).toCallTool('check_availability', undefined, { time: 7 })", "no option `time`"),
            ("expect(agent).toCallTool('check_availability', undefined, { tims: 3 })", "no option `tims`"),
            ("expect(agent).toCallTool('check_availability', undefined, { count: 5 })", "no option `count`"),
            ("expect(agent).toCallTool('check_availability', undefined, 5)", "options of toCallTool"),
            ("expect(agent).toCallTool('check_availability', undefined, {})", "`times` of toCallTool"),
            (
                "expect(agent).toCallTool('check_availability', undefined, { times: { exactly: 7 } })",
                "no option `exactly`",
            ),
            (
                "expect(agent).toCallTool('check_availability', { room: /x/ }, { times: { atLeast: 5 } })",
                "no option `atLeast`",
            ),
            ("expect(agent).toCallTool('check_availability', undefined, { times: '5' })", "`times`"),
            ("expect(agent).toCallTool('check_availability', undefined, { times: {} })", "`times`"),
            ("expect(agent).toCallTool('check_availability', undefined, { times: -1 })", "`times`"),
            (
                "expect(agent).toCallTool('check_availability', undefined, { times: { min: 3, max: 2 } })",
                "`min`",
            ),
            (
                "expect(agent).toCallTool('check_availability', undefined, { times: { min: 3, exact: 2 } })",
                "`exact`",
            ),
            (
                "expect(agent).toCallTool('a', undefined, { times: 1 }, 'x')",
                "toCallTool expects at most 3 arguments",
            ),
        ],
    );
    let at_most = "{ times: { max: 3 } }";
    assert_outcomes(
        "",
        "user.says('hello');",
        &[
            (&format!("expect(agent).toCallTool('book_room', {{ room: 'x' }}, {at_most})"), true),
            (&format!("expect(agent).toCallTool('book_room', {{ room: /x/ }}, {at_most})"), true),
            (&format!("expect(agent).not.toCallTool('book_room', {{ room: /x/ }}, {at_most})"), false),
            ("expect(agent).toCallTool('check_availability', { room: /x/ }, { times: { max: 0 } })", true),
            ("expect(agent).toCallTool('check_availability', { room: /B/ }, { times: { min: 2 } })", false),
        ],
    );
    for (check, words) in [
        ("toCallTool('check_availability', { room: /B/ }, { times: { min: 2 } })", "at least twice"),
        (
            "toCallTool('check_availability', { room: (v) => v !== '' }, { times: { min: 2 } })",
            "at least twice",
        ),
        (
            "not.toCallTool('check_availability', { room: (v) => v !== '' }, { times: { max: 1 } })",
            "at most once",
        ),
    ] {
        let tested = run_script(&format!("it('a', () => {{ user.says('hi'); expect(agent).{check}; }});"));
        let failure = tested.failure("a");
        assert!(failure["message"].as_str().unwrap().contains(words), "{failure:#}");
    }
}

/// An assertion without what was meant would assert less, or nothing.
#[test]
fn rejects_undefined_members_of_assertions() {
    assert_test_errors(
        "const cfg = {};",
        &[
            (
                "user.says({ user: 'a', assert: { type: 'tool_called', name: 'check_availability', arguments: { room: cfg.room } } })",
                "`assert.arguments.room` is undefined",
            ),
            (
                "user.says('a', { assert: [{ text: { must_match: cfg.room } }] })",
                "`assert.0.text.must_match` is undefined",
            ),
            (
                "user.says({ user: 'a', assert: { type: 'contains', value: 'x' } }, { assert: { type: 'contains', value: 'y' } })",
                "user.says got `assert` twice",
            ),
            (
                "expect(agent).toCallTool('check_availability', cfg.args)",
                "arguments of toCallTool are undefined",
            ),
            (
                "expect(agent).toHaveToolCall('check_availability', cfg.args)",
                "arguments of toHaveToolCall are undefined",
            ),
            ("expect(agent.response).not.toEqual('The Blue Room is free.')", "use its `text`"),
            ("expect({ name: cfg.name }).not.toEqual({ name: 'bad' })", "a member of the value is undefined"),
            (
                "expect(new Set(agent.toolCalls.map((call) => call.arguments.nam))).not.toContain('book')",
                "a member of the value is undefined",
            ),
        ],
    );
    for (declared, words) in [
        (
            "it('a', { assert: { text: { must_match: cfg.x } } }, () => {});",
            "`assert.text.must_match` is undefined",
        ),
        (
            "describe('g', { turnAssert: [{ type: 'contains', value: cfg.x }] }, () => { it('a', () => {}); });",
            "`turnAssert.0.value` is undefined",
        ),
        (
            "topic('t', { expect: { toolCall: cfg.x } }); it('a', () => {});",
            "`toolCall` of the topic `t` is undefined",
        ),
        ("topic('t', { expect: {} }); it('a', () => {});", "an assertion of the topic `t` is empty"),
        (
            "topic('t', { triggers: [{ onToolCall: { name: 'x', arguments: cfg.x } }] }); it('a', () => {});",
            "every call would match",
        ),
        (
            "it('a', { turnAssert: { text: { must_match: 'a' } }, turn_assert: { text: { must_match: 'b' } } }, () => {});",
            "unknown key `turnAssert`",
        ),
    ] {
        let output = refused(&format!("const cfg = {{}};\n{declared}"));
        assert!(output.stderr.contains(words), "{declared}: {output}");
    }
}

/// The engine keeps only the last calls, and the library visits nested values with several.
#[test]
fn errors_in_nested_values_name_the_line_of_the_call() {
    let tested = run_script(
        "it('a', () => {\n  user.says('hi');\n  user.says({ user: 'x', assert: [{ text: { must_match: [undefined] } }] });\n});",
    );
    let message = tested.failure("a")["message"].to_string();
    assert!(message.contains("`assert.0.text.must_match.0` is undefined"), "{message}");
    assert!(message.contains("(a_test.ts:4:"), "{message}");
}

/// A list that a test sorts or empties is what later checks read.
#[test]
fn a_test_cannot_change_what_later_checks_read() {
    let changes = [
        "agent.toolCalls.shift()",
        "agent.response.toolCalls.pop()",
        "conversation.turns[0].toolCalls.length = 0",
        "agent.toolCalls[0].name = 'other'",
        "agent.toolCalls.push(agent.toolCalls[0])",
    ];
    let tests = changes.iter().enumerate().map(|(number, change)| {
        format!(
            "it('{number}', () => {{ user.says('hi'); {change}; }});
             it('{number} caught', () => {{
               user.says('hi');
               try {{ {change}; }} catch {{}}
               expect(agent).toCallTool('check_availability', {{ room: (room) => room.startsWith('Blue') }}, {{ times: 1 }});
             }});"
        )
    });
    let tested = run_script(&tests.collect::<Vec<_>>().join("\n"));
    for (number, change) in changes.iter().enumerate() {
        assert_eq!(tested.failure(&number.to_string())["fault"], "test", "{change}");
        assert_eq!(tested.case(&format!("{number} caught"))["status"], "passed", "{change}");
    }
}

#[test]
fn errors_in_microtasks_fail_the_test() {
    let tested = run_script(
        "it('at the end', () => { user.says('hi'); expect(agent).toContain('Room'); queueMicrotask(() => { throw new Error('wrong'); }); });
         it('before another wait', async () => { user.says('hi'); expect(agent).toContain('Room'); queueMicrotask(() => { throw new Error('wrong'); }); await null; });
         it('none', async () => { let done = false; queueMicrotask(() => { done = true; }); await null; await null; user.says('hi'); expect(done).toBe(true); });",
    );
    assert_eq!(
        statuses(&tested),
        ["at the end failed", "before another wait failed", "none passed"],
        "{}",
        tested.output
    );
}

#[test]
fn the_last_topic_of_a_graph_may_have_a_limit() {
    let tested = run_script(
        "topic('start', {});
         topic('limited', { triggers: [{ onToolCall: 'check_availability' }], maxTurns: 3 });
         it('by null', () => { expectConversationTo({ start: 'limited', limited: null }); user.says('hi'); });
         it('by next', () => { expectConversationTo({ start: { next: 'limited' }, limited: { next: null } }); user.says('hi'); });",
    );
    tested.assert_all_passed();
}

#[test]
fn matchers_validate_their_arguments() {
    assert_test_errors(
        "",
        &[
            ("expect(agent).not.toContain('Blue', 'Red')", "not.toContain needs one text"),
            ("expect(agent).toContain('')", "toContain needs a non-empty string"),
            ("expect(agent).toMatch(/Blue/, undefined)", "toMatch needs"),
            ("expect(agent).toMatch('')", "toMatch needs"),
            ("expect(agent).toHold([])", "toHold needs at least one assertion"),
            ("expect(agent).toHold({})", "this asserts nothing"),
            (
                "expect(agent).toHold({ type: 'contains', value: 'x', turns: 'all' })",
                "so `turns: all` has no effect here",
            ),
            ("expect(agent).toHold({ tools: {} })", "asserts nothing"),
            (
                "expect(agent).toHold({ type: 'tool_called', name: agent.response.metadata.x })",
                "`name` of the assertion is undefined",
            ),
            (
                "expect(agent).not.toHold([{ type: 'contains', value: 'x' }, { type: 'contains', value: 'Blue' }])",
                "needs one assertion",
            ),
            (
                "expect(agent).not.toHold({ tools: { require: [{ name: 'x' }], forbid: ['check_availability'] } })",
                "`not` cannot negate several assertions at once",
            ),
            ("expect(conversation).toHaveAchievedGoal('a', 'b')", "expects 1 argument"),
            ("expect(agent).toHaveIntent('x', { describeAs: 'y' })", "no option `describeAs`"),
            ("expect(agent).toBeGroundedIn('prices', { fromTool: ['x'] })", "no option `fromTool`"),
            ("expect(1).toBe()", "toBe expects 1 argument, got 0"),
            ("expect(1).toBe(1, 'words')", "toBe expects 1 argument, got 2"),
            ("expect(1).toBeTruthy(true)", "toBeTruthy expects no argument"),
            ("expect(undefined).not.toBeGreaterThan(undefined)", "undefined cannot be ordered"),
            ("expect(1).not.toBeGreaterThan(NaN)", "NaN cannot be ordered"),
            ("expect('x').not.toBeTypeOf('strnig')", "toBeTypeOf needs one of"),
            ("expect([1, 2]).not.toHaveLength('2')", "toHaveLength needs a whole number"),
            ("expect([1]).not.toContain(undefined)", "toContain needs a value, got undefined"),
            ("expect([1]).not.toContainEqual(undefined)", "toContainEqual needs a value, got undefined"),
            ("expect('12').not.toContain(1)", "toContain of a string needs non-empty strings"),
            ("expect(5).not.toEqual(between(1, undefined))", "between needs two numbers"),
            ("expect(5).not.toEqual(oneOf())", "oneOf needs"),
            (
                "expect(agent).not.toCallTool('check_availability', { room: oneOf(['Blue Room', 'Red Room']) })",
                "write `oneOf(...list)`",
            ),
            ("expect(5).not.toEqual(oneOf([5]))", "write `oneOf(...list)`"),
            ("expect(5).not.toEqual(gt('4'))", "> needs a number"),
            ("expect({}).toHaveProperty('')", "toHaveProperty needs a path"),
            ("expect({}).not.toHaveProperty(undefined)", "toHaveProperty needs a path"),
            ("expect({}).not.toMatchObject(undefined)", "toMatchObject needs an object"),
            ("expect({ a: 1 }).toMatchObject({})", "toMatchObject({}) accepts every object"),
            ("expect(1).not.toBeCloseTo('1')", "toBeCloseTo needs a number"),
            (
                "expect(() => {}).not.toThrow(undefined)",
                "toThrow needs a non-empty string, a pattern, a class or a value, got undefined",
            ),
            ("expect(() => { throw new Error('x'); }).toThrow('')", "toThrow needs a non-empty string"),
            ("expect('x').not.toMatch(undefined)", "toMatch needs"),
            ("expect(agent).toBeInTopic(5)", "expected the name of a topic, got 5"),
            ("expect(agent).toHold({ type: 'contians', value: 'x' })", "contians"),
            ("user.says(5)", "user.says needs a message, got 5"),
            ("user.says({ user: 'x', tiemout: '1s' })", "tiemout"),
            ("criterion('x', 'y')", "criterion must be used outside of `it`"),
        ],
    );
}

#[test]
fn impossible_comparisons_error_even_if_negated() {
    assert_undecidable(&[
        "expect(undefined).toBeGreaterThan(3)",
        "expect(NaN).toBeLessThan(3)",
        "expect(Number('abc')).toBe(0)",
        "expect(Number('abc')).toEqual(1)",
        "expect(1).toEqual(NaN)",
        "expect(Number('abc')).toBe(oneOf(1, 2))",
        "expect({ a: [NaN] }).toEqual({ a: [1] })",
        "expect({ a: NaN }).toMatchObject({ a: 1 })",
        "expect({ a: NaN }).toHaveProperty('a', 1)",
        "expect([1]).toContain(NaN)",
        "expect([1]).toContainEqual(NaN)",
        "expect('500').toBeGreaterThan(3)",
        "expect(5).toBeGreaterThan('3')",
        "expect(undefined).toMatchObject({ a: 1 })",
        "expect(undefined).toHaveProperty('a')",
        "expect(() => {}).toHaveLength(0)",
        "expect({ length: '2' }).toHaveLength(2)",
        "expect('1').toBeCloseTo(1)",
        "expect(undefined).toBeNaN()",
        "expect(conversation.hasToolCall).toBeTruthy()",
        "expect(conversation.hasToolCall).not.toBe(false)",
        "expect(conversation.hasToolCall).not.toEqual([])",
        "expect('abc').toContainEqual('a')",
        "expect({ a: Promise.resolve(1) }).toEqual({ a: Promise.resolve(2) })",
        "expect(new WeakMap()).toEqual(new WeakMap())",
        "expect([1].values()).toEqual([2].values())",
        "expect(new Headers({ a: '1' })).toEqual(new Headers({ a: '2' }))",
        "expect({ a: 1 }).toMatchObject({ a: (v) => v.x.y })",
        "expect(agent).toCallTool('check_availability', { room: (v) => v.a.b.c })",
    ]);
}

/// Calls every function and method of the library with more arguments than it takes. Only these take any number.
#[test]
fn every_function_refuses_surplus_arguments() {
    let tested = run_script(
        "import * as hotseat from 'hotseat';
         const many = Array.from({ length: 9 }, () => () => {});
         const accepted = [];
         let count = 0;
         const refuses = (name, work) => {
           count += 1;
           try { work(); } catch (error) { if (/expects (no|at most|\\d+) .*, got 9$/.test(error.message)) return; }
           accepted.push(name);
         };
         const all = (of, object) => {
           for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(object))) {
             if (name === 'constructor' || typeof value !== 'function') continue;
             refuses(`${of}${name}`, () => value.apply(object, many));
             for (const more of ['only', 'skip']) if (value[more] !== undefined) refuses(`${of}${name}.${more}`, () => value[more](...many));
           }
         };
         export function TestAll(t) {
           user.says('hello');
           t.assert.Equal(Object.keys(t.assert).filter((name) => name !== 'Agent' && t.assert[name](...many) !== false), []);
           all('', hotseat);
           for (const [name, object] of Object.entries({ user, agent, conversation, t })) all(`${name}.`, object);
           const { currentTurn: turn } = agent;
           const { agentResponse: response, agentMessage: message, toolCalls: [call] } = turn;
           for (const [name, object] of Object.entries({ turn, response, message, call })) all(`${name}.`, Object.getPrototypeOf(object));
           refuses('t.assert.Agent', () => t.assert.Agent(...many));
           console.log(count > 45, 'accepted:', accepted.sort().join(' '));
         }",
    );
    let case = tested.case("TestAll");
    assert_eq!(case["status"], "failed", "{case:#}");
    let logs = case["logs"].to_string();
    assert!(logs.contains("true accepted: oneOf t.error t.log\""), "{logs}");
}

#[test]
fn surplus_arguments_are_test_errors() {
    assert_test_errors(
        "",
        &[
            ("user.says('hello', {}, { expectError: /x/ })", "user.says expects at most 2 arguments, got 3"),
            ("expect(1, 'm', 2).toBe(1)", "expects at most 2 arguments, got 3"),
            ("expect(1).toBe(gte(1, 99))", "gte expects at most 1 argument, got 2"),
            ("expect(5).toBe(anything(5))", "anything expects no argument, got 1"),
            ("agent.response.matches(/a/, /b/)", "response.matches expects at most 1 argument, got 2"),
        ],
    );
    let hook = refused("after(() => {}, () => {}); it('a', () => {});");
    assert!(hook.stderr.contains("after expects at most 1 argument, got 2"), "{hook}");
    let scenario = run_script(
        "scenarioSet('s', [{ name: 'a', goal: 'b' }], (one) => { it('a', () => one.get('goal', 'c')); });",
    );
    let message = scenario.report["results"][0]["failure"]["message"].as_str().unwrap();
    assert!(message.contains("scenario.get expects at most 1 argument, got 2"), "{message}");
}

#[test]
fn test_waits_for_what_it_does_not_await() {
    let tested = run_script(
        "const never = () => new Promise(() => {});
         export function TestSubtest(t) { user.says('hi'); t.run('s', async (u) => { await never(); u.fail('x'); }); }
         export function TestInner(t) { t.run('s', async (u) => { u.run('s', never); }); }
         export function TestPanic(t) { t.assert.Panic(never); }
         export function TestNoPanic(t) { t.assert.NoPanic(never); }
         export function TestSettles(t) {
           t.run('s', async (u) => { await null; u.assert.Panic(async () => { throw 1; }); });
           t.assert.NoPanic(async () => { await null; });
         }
         export function TestFails(t) { t.run('s', async (u) => { await null; u.fail('x'); }); }",
    );
    for name in ["TestSubtest", "TestInner", "TestPanic", "TestNoPanic"] {
        let failure = tested.failure(name);
        assert_eq!(failure["kind"], "script_error", "{name}: {failure:#}");
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains("awaits a promise that can no longer settle"), "{name}: {message}");
    }
    assert_eq!(tested.case("TestSettles")["status"], "passed");
    assert_eq!(tested.failure("TestFails")["kind"], "assertion");
}

#[test]
fn test_functions_compare_supported_values() {
    let all = [
        "NotContains(undefined, 'Which')",
        "NotContains('x', undefined)",
        "NotContains(null, 'ul')",
        "Contains(null, 'ul')",
        "Contains('undefined', undefined)",
        "Contains('x', '')",
        "NotMatch(undefined, /x/)",
        "Match(undefined, /(?:)/)",
        "NotMatch('x', undefined)",
        "Len(undefined, undefined)",
        "Len('xx', '2')",
        "Less(undefined, 3)",
        "GreaterOrEqual(3, NaN)",
        "Equal(NaN, 1)",
        "NotEqual(NaN, 1)",
        "NotEqual({ a: 1 }, { a: NaN })",
        "NotContains([1], NaN)",
        "NotContains([{ name: 'book_room' }], 'book_room')",
        "NotEqual([{ name: 'book_room' }], ['book_room'])",
        "JSONPath({ a: null }, '$.a', NaN)",
        "JSONPath({ a: [null] }, '$.a', [NaN])",
        "Type({}, 'objekt')",
        "JSONPath({ a: null }, '$.a', undefined)",
        "Equal(1, 1, 'words', 5)",
        "Equal(1, 1, 5)",
        "Panic(() => { throw 1; }, 'words', 5)",
    ];
    let tests = all.iter().enumerate();
    let tests = tests.map(|(number, code)| format!("export function Test{number}(t) {{ t.assert.{code}; }}"));
    let tested = run_script(&tests.collect::<Vec<_>>().join("\n"));
    for (number, code) in all.iter().enumerate() {
        let case = tested.case(&format!("Test{number}"));
        assert_eq!(case["status"], "failed", "{code}: {case:#}");
    }
}

#[test]
fn test_functions_validate_their_arguments() {
    let all =
        ["Equal(1)", "NoError()", "True(true, 'words', 3)", "Equal(1, 1, 5)", "True(Promise.resolve(true))"];
    let tests = all.iter().enumerate();
    let tests = tests.map(|(number, code)| format!("export function Test{number}(t) {{ t.assert.{code}; }}"));
    let tested = run_script(&tests.collect::<Vec<_>>().join("\n"));
    for (number, code) in all.iter().enumerate() {
        assert_eq!(tested.failure(&format!("Test{number}"))["fault"], "test", "{code}");
    }
}

#[test]
fn special_objects_are_compared_by_kind() {
    assert_outcomes(
        "",
        "",
        &[
            ("expect({ at: new Date(1) }).toMatchObject({ at: new Date(2) })", false),
            ("expect({ at: new Date(1) }).toMatchObject({ at: new Date(1) })", true),
            ("expect({ of: new Map([[1, 2]]) }).toMatchObject({ of: new Map([[1, 3]]) })", false),
            ("expect({ of: new Set([1]) }).toMatchObject({ of: new Set([2]) })", false),
            ("expect({ why: new Error('a') }).toMatchObject({ why: new Error('b') })", false),
            ("expect({ a: [{ b: 1, c: 2 }] }).toMatchObject({ a: [{ b: 1 }] })", true),
            ("expect(new Error('a', { cause: 1 })).toEqual(new Error('a', { cause: 1 }))", true),
            ("expect(new Error('a', { cause: 1 })).toEqual(new Error('a', { cause: 2 }))", false),
            ("expect(new AggregateError([1], 'a')).toEqual(new AggregateError([2], 'a'))", false),
            (
                "const of = (code) => Object.assign(new Error('a'), { code }); expect(of(1)).toEqual(of(2))",
                false,
            ),
            (
                "class M extends Map { v = 1 }; expect(new M()).toEqual(Object.assign(new M(), { v: 2 }))",
                false,
            ),
            ("Object.is = () => true; expect(1).toBe(2)", false),
            ("Object.is = () => true; expect({ a: 1 }).toEqual({ a: 2 })", false),
        ],
    );
}

#[test]
fn conversation_matchers_check_all_turns() {
    let all = [
        ("toContain('said: one')", true),
        ("not.toContain('said: one')", false),
        ("toContain('said: two')", true),
        ("toContain('said: three')", false),
        ("not.toContain('said: three')", true),
        // The texts of the turns are one text.
        ("not.toMatch(/^You said: two/)", true),
        ("not.toMatch(/^You said: two/m)", false),
        ("toMatch(/^You said: two$/m)", true),
    ];
    let tests = all.iter().enumerate().map(|(number, (code, _))| {
        format!(
            "it('{number}', () => {{ user.says('one'); user.says('two'); expect(conversation).{code}; }});"
        )
    });
    let agent = echo_agent();
    let tested = project(&agent, &tests.collect::<Vec<_>>().join("\n")).test(&["a_test.ts"]);
    for (number, (code, holds)) in all.iter().enumerate() {
        let status = if *holds { "passed" } else { "failed" };
        assert_eq!(tested.case(&number.to_string())["status"], status, "{code}");
    }
}

#[test]
fn self_stopped_test_does_not_pass() {
    let script = "
      it('borrows', () => { Object.prototype.ended = 'x'; user.says('hi'); expect(1).toBe(2); });
      export function TestSkips(t) { let stop; t.run('inner', (t) => { try { t.skip('x'); } catch (error) { stop = error; throw error; } }); throw stop; }
      export function TestSkipsInside(t) { t.run('inner', (t) => t.skip('x')); }
      export function TestEnds(t) { t.fatal('x'); }
    ";
    let tested = run_script(script);
    for name in ["borrows", "TestSkips"] {
        tested.assert_fault(name, "test_error", "test");
    }
    assert_eq!(tested.case("TestSkipsInside")["status"], "passed");
    assert_eq!(tested.failure("TestEnds")["kind"], "assertion");
}

#[test]
fn unheld_conversation_cannot_be_asserted() {
    let all = [
        "expect(conversation).not.toCallTool('x')",
        "expect(conversation).not.toCallTool('x', { room: /y/ })",
        "expect(conversation).not.toMatch(/x/)",
        "expect(conversation).not.toContain('x')",
        "expect(conversation).not.toSatisfy((conversation) => conversation.isEmpty === false)",
        "expect(conversation).toHold({ type: 'not_contains', value: 'x' })",
        "expect(agent).not.toCallTool('x')",
        "expect(agent.toolCalls).toHaveLength(0)",
        "expect(agent.calledTool('x')).toBe(0)",
        "expect(conversation.allToolCalls).toEqual([])",
        "expect(conversation.hasToolCall('x')).toBe(false)",
        "expect(conversation.toolCallsFor('x')).toHaveLength(0)",
    ];
    let tests = all.iter().enumerate();
    let tests = tests.map(|(number, code)| format!("it('{number}', () => {{ {code}; }});"));
    let tested = run_script(&tests.collect::<Vec<_>>().join("\n"));
    for (number, code) in all.iter().enumerate() {
        let failure = tested.failure(&number.to_string());
        assert_eq!(failure["fault"], "test", "{code}: {failure:#}");
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains("there is no turn to check yet"), "{code}: {failure:#}");
    }
    run_script("it('a', () => { expect(conversation.isEmpty).toBe(true); expect(1).not.toBe(2); });")
        .assert_all_passed();
}

#[test]
fn every_criterion_in_list_is_judged() {
    let script = "
      criterion('good', 'is it good');
      criterion('bad', 'is it bad');
      criterion('worse', { match: () => false });
      it('a', () => { user.says('fine'); expect(agent).toSatisfy('bad', 'worse', 'good'); });
      it('b', () => { user.says('fine'); expect(agent).toHold([{ type: 'contains', value: 'x1' }, { type: 'contains', value: 'x2' }, { type: 'contains', value: 'fine' }]); });
    ";
    let tested = project_with_roles(JUDGE, USER, script).test(&["a_test.ts"]);
    for name in ["a", "b"] {
        let checks = tested.case(name)["turns"][0]["assertions"].as_array().unwrap();
        let passed: Vec<bool> = checks.iter().map(|check| check["passed"] == true).collect();
        assert_eq!(passed, [false, false, true], "{checks:#?}");
        let message = tested.failure(name)["message"].as_str().unwrap();
        assert!(message.starts_with("2 checks failed"), "{message}");
    }
}

#[test]
fn unknown_judge_is_test_error() {
    let tested = run_script(
        "it('a', () => { user.says('hi'); evaluate(agent).toSatisfy('it is polite'); user.says('never'); });",
    );
    assert_eq!(tested.output.code, 1, "{}", tested.output);
    tested.assert_fault("a", "test_error", "test");
    assert_eq!(tested.case("a")["turns"].as_array().unwrap().len(), 1);
}

#[test]
fn judge_functions_can_only_judge() {
    let script = "
      const graph = { start: { next: null, triggers: [{ onUserMatch: /x/ }] } };
      it('stops', () => { user.simulate({ goal: 'x', stopWhen: () => { expect(1).toBe(1); return true; } }); });
      it('stops softly', () => { user.simulate({ goal: 'x', stopWhen: () => { try { evaluate(1).toBe(1); } catch {} return true; } }); });
      it('condition', () => { expectConversationTo({ start: 'end', end: { triggers: [{ onCondition: () => { user.says('more'); return true; } }] } }); user.says('hi'); });
      it('knows', () => { user.simulate({ goal: 'x', stopWhen: (turn) => turn.hasToolCall('x', { a: turn.typo }) }); });
      it('looks', () => { user.simulate({ goal: 'x', stopWhen: (turn, conversation) => conversation.turnCount === 1 }); });
    ";
    let tested = project_with_roles(JUDGE, USER, script).test(&["a_test.ts"]);
    for name in ["stops", "stops softly", "condition", "knows"] {
        let failure = tested.failure(name);
        assert_eq!(failure["fault"], "test", "{name}: {failure:#}");
    }
    let message = tested.failure("stops softly")["message"].as_str().unwrap().to_string();
    assert!(message.contains("a judging function cannot assert or send anything"), "{message}");
    assert_eq!(tested.case("looks")["status"], "passed", "{}", tested.output);
}

#[test]
fn errors_of_functions_that_are_called_later_name_their_lines() {
    let script = "
      topic('declared', { triggers: [{ onCondition: (turn) => turn.nope.x }] });
      topic('undecided', { expect: { 'is fine': () => 5 } });
      criterion('odd', { match: (conversation) => { throw new Error('odd boom'); } });
      const calls = (graph) => () => { expectConversationTo(graph); user.says('hi'); };
      it('condition', calls({ declared: null }));
      it('expectation', { decideTopics: 'always' }, calls({ undecided: null }));
      it('stop', () => { user.simulate({ goal: 'x',
        stopWhen: (turn) => turn.nope.x }); });
      it('criterion', () => { user.says({ user: 'hi', assert: { type: 'satisfy', criteria: 'odd' } }); });
    ";
    let tested = project_with_roles(JUDGE, USER, script).test(&["a_test.ts"]);
    for (name, function, place, line) in [
        ("condition", "onCondition", "a_test.ts:3:", "onCondition: (turn) => turn.nope.x"),
        ("expectation", "is fine", "a_test.ts:4:", "topic('undecided'"),
        ("stop", "stopWhen", "a_test.ts:10:", "stopWhen: (turn)"),
        ("criterion", "odd", "a_test.ts:5:", "throw new Error('odd boom')"),
    ] {
        let failure = tested.failure(name);
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains(&format!("{function}: {place}")), "{name}: {failure:#}");
        let detail = failure["detail"].as_str().unwrap_or_default();
        assert!(
            detail.contains(line) && !failure.to_string().contains("of the test)"),
            "{name}: {failure:#}"
        );
    }
}

#[test]
fn topics_of_a_graph_have_their_own_places() {
    let script = "
      topic('same', { triggers: [{ onUserMatch: /x/ }], expect: { match: /zzz/ } });
      const options = { classifyTopics: 'triggers', decideTopics: 'always' };
      it('declared', options, () => { expectConversationTo({ same: null }); user.says('hi'); });
      it('of the graph', options, () => {
        expectConversationTo({ same: { next: null, expect: { match: /zzz/ } } }); user.says('hi'); });
    ";
    let tested = run_script(script);
    for (name, line) in [("declared", 3), ("of the graph", 7)] {
        let failure = tested.failure(name);
        let detail = failure["detail"].as_str().unwrap_or_default();
        assert!(detail.starts_with(&format!("a_test.ts:{line}:")), "{name}: {failure:#}");
    }
}

/// A judging function may return the result of a script function. As an object it would be true.
#[test]
fn results_of_script_functions_count_in_tests() {
    let script = "
      criterion('no', { match: () => ({ pass: false, message: 'no' }) });
      criterion('nothing', { match: () => {} });
      const options = { classifyTopics: 'triggers', decideTopics: 'always' };
      it('criterion', () => { user.says('hi'); expect(agent).toSatisfy('no'); });
      it('function', () => { user.says('hi'); expect(agent).toSatisfy(() => ({ passed: false })); });
      it('value', () => { user.says('hi'); expect(5).toSatisfy((value) => ({ pass: value === 6 })); });
      it('topic', options, () => { expectConversationTo({ all: { characteristic: 'y', expect: { no: () => ({ pass: false }) } } }); user.says('hi'); });
      it('accepted', () => { user.says('hi'); expect(agent).toSatisfy(() => ({ pass: true })); });
      it('neither', () => { user.says('hi'); expect(agent).toSatisfy(() => ({ pass: 'no' })); });
      it('nothing', () => { user.says({ user: 'hi', assert: { type: 'satisfy', criteria: 'nothing', negate: true } }); });
    ";
    let tested = run_script(script);
    for name in ["criterion", "function", "value", "topic"] {
        assert_eq!(tested.failure(name)["kind"], "assertion", "{name}: {:#}", tested.failure(name));
    }
    assert_eq!(tested.case("accepted")["status"], "passed", "{:#}", tested.case("accepted"));
    for (name, words) in
        [("neither", "must be true or false"), ("nothing", "the function returned undefined")]
    {
        let failure = tested.failure(name);
        assert_eq!(failure["fault"], "test", "{failure:#}");
        assert!(failure.to_string().contains(words), "{failure:#}");
    }
}

/// No part of a declaration of a topic is dropped.
#[test]
fn every_assertion_and_condition_of_a_topic_counts() {
    let script = "
      const declare = (topic) => () => { expectConversationTo({ all: { characteristic: 'y', ...topic } }); user.says('hi'); };
      const options = { classifyTopics: 'triggers', decideTopics: 'always' };
      it('both kinds', options, declare({ assert: [{ type: 'contains', value: 'zzz' }], expect: { match: /./ } }));
      it('both kinds of turns', options, declare({ turn_assert: [{ type: 'contains', value: 'zzz' }], expect: { yes: () => true } }));
      it('two kinds of trigger', options, declare({ triggers: [{ onToolCall: { name: 'never' }, onCondition: () => true }] }));
      it('tools alone', options, declare({ expect: { fromTools: ['a'], match: /./ } }));
      it('a function as a criterion', options, declare({ expect: { satisfy: () => true } }));
    ";
    let tested = run_script(script);
    for name in ["both kinds", "both kinds of turns"] {
        assert_eq!(tested.failure(name)["kind"], "assertion", "{:#}", tested.failure(name));
    }
    for (name, words) in [
        ("two kinds of trigger", "has `onToolCall` and `onCondition`: write a trigger for each"),
        ("tools alone", "`fromTools` of the topic `all` needs `grounded`"),
        ("a function as a criterion", "give a function a name"),
    ] {
        tested.assert_failure(name, "script_error", &[words]);
    }
}

#[test]
fn file_declarations_apply_to_test_functions() {
    let script = "
      criterion('short', { match: (conversation) => conversation.turns.length === 1 });
      before(() => console.log('before'));
      after(() => console.log('after'));
      export function TestA(t) { console.log('body'); user.says('hi'); expect(agent).toSatisfy('short'); }
    ";
    let tested = run_script(script);
    assert_eq!(statuses(&tested), ["TestA passed"]);
    assert_eq!(tested.case("TestA")["logs"], json!(["before", "body", "after"]));
    let focused = run_script("export function TestA(t) { t.assert.True(false); } it.only('b', () => {});");
    assert_eq!(statuses(&focused), ["TestA skipped", "b passed"]);
    let judged = "criterion('good', 'is it good'); export function TestA(t) { user.says('fine'); expect(agent).toSatisfy('good'); }";
    let judged = project_with_roles(JUDGE, USER, judged);
    judged.test(&["a_test.ts"]).assert_all_passed();
}

#[test]
fn code_criteria_count_as_criteria() {
    let script = "criterion('brief', { match: () => false }); it('a', () => { user.says('hi'); evaluate(agent).toSatisfy('brief', ['loud', () => true]); });";
    let tested = run_script(script);
    let counted: Vec<&str> = tested.report["summary"]["criteria"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(counted, ["brief", "loud"]);
    assert!(
        tested.report["results"].to_string().contains("\"criterion\":\"brief\""),
        "{:#}",
        tested.case("a")
    );
}

#[test]
fn lone_surrogates_are_preserved() {
    let script = "
      it('long', () => { user.says('x'.repeat(999 - 'You said: '.length) + '😀 and more'); expect(agent).toMatch(/and more/); expect(agent).not.toMatch(/nothing/); evaluate(agent).toMatch(/nothing/); });
      it('half', () => { console.log('\\ud83d'); user.says('a\\ud83d'); expect(agent.response.text).toMatch(/said: a/); });
    ";
    project(&echo_agent(), script).test(&["a_test.ts"]).assert_all_passed();
}

#[test]
fn caught_import_error_does_not_mask_later_errors() {
    let script = "it('a', async () => { try { await import('./nowhere'); } catch {} null.x; }); it('b', () => { JSON.parse('nope'); });";
    let tested = run_script(script);
    let message = tested.failure("a")["message"].as_str().unwrap().to_string();
    assert!(!message.contains("nowhere") && message.contains("null"), "{message}");
    assert!(
        tested.failure("b")["message"].as_str().unwrap().starts_with("SyntaxError:"),
        "{:#}",
        tested.failure("b")
    );
}

#[test]
fn redacts_secret_in_thrown_error() {
    let agent = echo_agent();
    let text = format!(
        "target:\n  endpoint: {agent}\n  headers: {{ Authorization: \"Bearer ${{ENV.API_KEY}}\" }}\n"
    );
    let project =
        Project::with_config(&text).file("a_test.ts", "throw new Error('it is ' + 'hush-' + 'hush-42');");
    let output = project.command(&["test", "a_test.ts"]).env("API_KEY", "hush-hush-42").run();
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("it is") && !output.to_string().contains("hush-hush-42"), "{output}");
}

#[test]
fn reports_name_the_script_its_calls_and_its_console() {
    let agent = booking();
    let script = "function total(cart) { return cart.items.length; }
    it('a', () => { console.log('counting'); user.says('go'); total({}); });
    it('b', () => { user.says('go'); expect(agent).toCallTool('check_availability'); });";
    let tested = project(&agent, script).test(&["a_test.ts"]);
    let failed = tested.case("a");
    assert_eq!(failed["script"], json!({"type": "script_test", "path": "a_test.ts"}), "{failed}");
    assert_eq!(failed["logs"], json!(["counting"]));
    let calls = failed["failure"]["stack_trace"].as_array().expect("a stack trace");
    assert!(calls[0].as_str().unwrap().starts_with("at total (a_test.ts:2:"), "{calls:?}");
    assert!(calls[1].as_str().unwrap().contains("a_test.ts:3:"), "{calls:?}");
    let passed = tested.case("b");
    assert_eq!(
        (&passed["script"]["type"], passed["failure"].get("stack_trace")),
        (&json!("script_test"), None)
    );
    let output = project(&agent, script).hotseat(&["test", "a_test.ts"]);
    assert!(output.stdout.contains("  Script Test"), "{output}");
}

/// Options become generated JSON, which nobody can look up.
#[test]
fn places_of_options_are_those_of_the_declaration() {
    let tested = run_script(
        "it('a', { checkpoints: [{ id: 'one', assertion: { type: 'contains', value: 'no such text' } }] }, () => { user.says('x'); });",
    );
    assert!(tested.output.stdout.contains("2 | it('a', { checkpoints:"), "{}", tested.output);
    assert!(!tested.output.stdout.contains("{\"checkpoints\""), "{}", tested.output);
    for (options, message) in [
        ("judge: 'nobody', assert: { type: 'goal', goal: 'x' }", "unknown agent `nobody`"),
        ("metadata: { note: /a/ }", "`metadata.note` is /a/"),
    ] {
        refused(&format!("it('a', {{ {options} }}, () => {{ user.says('x'); }});"))
            .assert_stderr(2, &[message, "--> a_test.ts:2:", &format!("2 | it('a', {{ {options} }}")]);
    }
}

#[test]
fn errors_in_files_of_scenarios_name_the_file() {
    let script = "scenarioSet('a', 'venues.json', (s) => { it('a', () => {}); });";
    let project = project(&booking(), script).file("venues.json", "[{\n  \"name\": \"a\", \"goal\": }]");
    let output = project.hotseat(&["list"]);
    assert!(output.stderr.contains("scenarioSet(\"a\"): venues.json:2:"), "{output}");
}

#[test]
fn similar_names_of_other_tools_are_answered() {
    let tested = run_script(
        "export function TestEquals(t) { t.assert.Equals(1, 1); }
         export function TestCase(t) { t.assert.equal(1, 1); }
         export function TestUnknown(t) { t.assert.Whatever(1); }
         it('within', () => { expect({ a: 1 }).not.toEqual({ a: expect.anything }); });
         it('alone', () => { expect('a').toBe(anything); });
         it('call', () => { user.says('x'); expect(agent).toCallTool('check_availability', { room: gt }); });",
    );
    for (name, message) in [
        ("TestEquals", "unknown assertion `t.assert.Equals`: did you mean `t.assert.Equal`?"),
        ("TestCase", "unknown assertion `t.assert.equal`: did you mean `t.assert.Equal`?"),
        ("TestUnknown", "unknown assertion `t.assert.Whatever`: there are True, False,"),
        ("within", "`anything` has no brackets: write `anything()`"),
        ("alone", "`anything` has no brackets: write `anything()`"),
        ("call", "`gt` has no brackets: write `gt(…)`"),
    ] {
        tested.assert_failure(name, "script_error", &[message]);
    }
    for what in ["it", "describe"] {
        let output = refused(&format!("{what}.todo('a');"));
        let later = refused(&format!("{what}('a', () => {{}}, 5000);"));
        let advice = format!("write `{what}(\"a\", {{ timeout: \"5s\" }}, () => {{ … }})`");
        assert!(later.stderr.contains(&advice), "{later}");
        let conditional = refused(&format!("{what}.skipIf(true)('a', () => {{}});"));
        let advice = format!("there is no {what}.skipIf: write `{what}(\"name\", {{ skip: condition }}");
        assert!(conditional.stderr.contains(&advice), "{conditional}");
        let message = format!("there is no {what}.todo: write `{what}.skip(\"name\", () => {{}})`");
        assert!(output.stderr.contains(&message) && output.stderr.contains("2 | "), "{output}");
    }
}
