//! Error output for invalid files, flags and output paths.
use hotseat_testkit::{FakeAgent, FakeReply, ProgramOutput};
use insta::assert_snapshot;

use crate::common::{Project, echo_agent, unreachable_address};

/// A project with an unreachable agent, for runs that must not contact it.
fn offline_project() -> Project {
    Project::with_config("target:\n  endpoint: http://127.0.0.1:9/\n")
}

/// Output without values that differ from run to run.
#[track_caller]
fn normalized_output(project: &Project, args: &[&str]) -> ProgramOutput {
    project.hotseat(args).redacted()
}

/// Output for an invalid suite.
#[track_caller]
fn suite_error(suite: &str) -> ProgramOutput {
    let output = normalized_output(&offline_project().suite("a", suite), &["test"]);
    assert_eq!(output.code, 2, "{output}");
    assert_eq!(output.stdout, "");
    output
}

// Suites.

/// JSON has no documents.
#[test]
fn advice_about_cases_fits_the_format() {
    let case = r#"{"name": "a", "turns": [{"user": "hi"}]}"#;
    for (text, help) in [
        (
            format!(r#"{{"name": "x", "cases": [{case}]}}"#),
            "write the cases as the entries of a list: `[{…}, {…}]`",
        ),
        (
            format!(r#"{{"suite": {{}}, "cases": [{case}]}}"#),
            "the head of a suite is a value of its own, such as the first of a list: `[{\"suite\": {…}}, {…}]`",
        ),
    ] {
        let output = offline_project().file("a.test.json", &text).hotseat(&["test"]);
        output.assert_stderr(2, &[help]);
        assert!(!output.stderr.contains("`---`") && !output.stderr.contains("document"), "{output}");
    }
    let list = format!(r#"[{{"suite": {{}}}}, {case}]"#);
    offline_project().file("a.test.json", &list).hotseat(&["test", "--dry-run"]).assert_code(0);
}

#[test]
fn reports_errors_of_all_files() {
    let project = offline_project()
        .suite("first", "name: a\nturn: []\n---\nname: ''\nturns: []\n")
        .suite("second", "turns: [{ usr: hello }]\n")
        .suite("fine", "name: b\nturns: [{ user: hello }]\n");
    assert_snapshot!(normalized_output(&project, &["test"]), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: unknown key `turn`
     --> first.test.yaml:2:1
      |
    2 | turn: []
      | ^^^^
      |
      = help: did you mean `turns`?

    error: `name` must be a text that is not empty, found an empty text
     --> first.test.yaml:4:7
      |
    4 | name: ''
      |       ^^

    error: `turns` must be a list that is not empty, found an empty list
     --> first.test.yaml:5:8
      |
    5 | turns: []
      |        ^^

    error: unknown key `usr` in an entry of `turns`
     --> second.test.yaml:1:11
      |
    1 | turns: [{ usr: hello }]
      |           ^^^
      |
      = help: did you mean `user`?

    error: this case has neither `name` nor `id`
     --> second.test.yaml:1:1
      |
    1 | turns: [{ usr: hello }]
      | ^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: `name` is the display name in reports; `id` is a short name that stays the same when the display name changes
    ");
}

#[test]
fn unknown_keys_suggest_similar_key() {
    assert_snapshot!(suite_error("
name: a
turns:
  - user: hello
    asert: { text: { must_match: hello } }
  - user: hello
    assert:
      tools:
        requires: [{ name: charge_card }]
        require: [{ name: charge_card, arg_match: { amount: 1 } }]
      colour: red
"), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: unknown key `asert` in an entry of `turns`
     --> a.test.yaml:5:5
      |
    5 |     asert: { text: { must_match: hello } }
      |     ^^^^^
      |
      = help: did you mean `assert`?

    error: unknown key `requires` in `tools`
     --> a.test.yaml:9:9
      |
    9 |         requires: [{ name: charge_card }]
      |         ^^^^^^^^
      |
      = help: known keys are `forbid`, `require`, `forbid_calls`

    error: unknown key `arg_match` in an entry of `require`
      --> a.test.yaml:10:40
       |
    10 |         require: [{ name: charge_card, arg_match: { amount: 1 } }]
       |                                        ^^^^^^^^^
       |
       = help: did you mean `args_match`?

    error: unknown key `colour` in `assert`
      --> a.test.yaml:11:7
       |
    11 |       colour: red
       |       ^^^^^^
       |
       = help: known keys are `tools`, `timing`, `budget`, `text`
    ");
}

/// Keys that had another name are refused with the current one, in files and in tests that are programs.
#[test]
fn former_names_are_rejected_with_the_current_ones() {
    let suite = |text: &str| offline_project().suite("a", text).hotseat(&["test"]);
    let config = |text: &str| {
        let target = "target: { endpoint: 'http://127.0.0.1:1' }\n";
        let text = if text.starts_with("target") { text.to_string() } else { format!("{target}{text}\n") };
        Project::with_config(&text).suite("a", "name: a\nturns: [{ user: hi }]\n").hotseat(&["test"])
    };
    let script = |options: &str, body: &str| {
        let script = format!("it('a', {{ {options} }}, () => {{ user.says('hi'); {body} }});");
        crate::common::typescript::project(&echo_agent(), &script).hotseat(&["test", "a_test.ts"])
    };
    let beside = "{ text: { beside_calls: 'forbid' } }";
    let rows = [
        (config("redraws: 1"), "redraws", "max_invalid"),
        (config("store: { keep: 7d }"), "keep", "max_age"),
        (config("target: { type: command, command: [cat], speaks: text }\n"), "speaks", "protocol"),
        (
            suite(&format!("name: a\nturns: [{{ user: hi, assert: {beside} }}]\n")),
            "beside_calls",
            "with_tool_calls",
        ),
        (script(&format!("assert: {beside}"), ""), "beside_calls", "with_tool_calls"),
    ];
    for (output, former, current) in rows {
        assert_eq!(output.code, 2, "{former}: {output}");
        let shown = format!("{}{}", output.stdout, output.stderr);
        assert!(shown.contains(&format!("unknown key `{former}`")), "{former}: {shown}");
        assert!(shown.contains(&format!("it is called `{current}`")), "{former}: {shown}");
    }
    // In the body of a test it is an error of the test.
    script("", &format!("expect(agent).toHold({beside});"))
        .assert_stdout(1, &["it is called `with_tool_calls`"]);
}

#[test]
fn former_flags_are_rejected_with_the_current_ones() {
    let project = offline_project().suite("a", "name: a\nturns: [{ user: hi }]\n");
    for (args, former, current) in [
        (&["test", "--redraws", "2"][..], "--redraws", "--max-invalid"),
        (&["test", "--redraws=2", "--json"], "--redraws", "--max-invalid"),
        (&["runs", "--prune", "--keep", "7d"], "--keep", "--max-age"),
    ] {
        let output = project.hotseat(args);
        assert_eq!(output.code, 2, "{output}");
        let shown = format!("{}{}", output.stdout, output.stderr);
        assert!(shown.contains(&format!("unexpected argument '{former}' found")), "{shown}");
        assert!(shown.contains(&format!("it is called '{current}'")), "{shown}");
    }
    // A flag that another command never had is only unknown.
    let output = project.hotseat(&["list", "--redraws", "2"]);
    assert!(output.code == 2 && !output.stderr.contains("it is called"), "{output}");
}

#[test]
fn rejects_wrong_types() {
    assert_snapshot!(suite_error("
name: [a]
timeout_ms: soon
skip: 3
turns:
  - user: 5
    timeout_ms: 0
    assert: true
  - hello
assert:
  tools:
    forbid: delete_order
    require: [{ name: charge_card, count: { exact: -1 } }, { name: x }]
  timing: { max_duration_ms: 1.5 }
"), @r#"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: `name` must be a text that is not empty, found a list
     --> a.test.yaml:2:7
      |
    2 | name: [a]
      |       ^^^

    error: `timeout_ms` must be a whole number from 1 to 604800000, found the text "soon"
     --> a.test.yaml:3:13
      |
    3 | timeout_ms: soon
      |             ^^^^

    error: `skip` must be true or false or a text that is not empty, found the number 3
     --> a.test.yaml:4:7
      |
    4 | skip: 3
      |       ^
      |
      = help: write "3" to mean text

    error: `user` must be text, a mapping or a list that is not empty, found the number 5
     --> a.test.yaml:6:11
      |
    6 |   - user: 5
      |           ^
      |
      = help: write "5" to mean text

    error: `timeout_ms` must be a whole number from 1 to 604800000, found the number 0
     --> a.test.yaml:7:17
      |
    7 |     timeout_ms: 0
      |                 ^

    error: `assert` must be false, a mapping or a list that is not empty, found true
     --> a.test.yaml:8:13
      |
    8 |     assert: true
      |             ^^^^

    error: an entry of `turns` must be a mapping, found the text "hello"
     --> a.test.yaml:9:5
      |
    9 |   - hello
      |     ^^^^^
      |
      = help: write what the user says under `user`: `{ user: Hello }`

    error: `forbid` must be a list that is not empty, found the text "delete_order"
      --> a.test.yaml:12:13
       |
    12 |     forbid: delete_order
       |             ^^^^^^^^^^^^
       |
       = help: write it as a list, between `[` and `]`

    error: `exact` must be a whole number from 0 to 1000000, found the number -1
      --> a.test.yaml:13:52
       |
    13 |     require: [{ name: charge_card, count: { exact: -1 } }, { name: x }]
       |                                                    ^^

    error: `max_duration_ms` must be a whole number from 1 to 604800000, found the number 1.5
      --> a.test.yaml:14:30
       |
    14 |   timing: { max_duration_ms: 1.5 }
       |                              ^^^
    "#);
}

/// The first answer that matches is used, so no call ever reaches a later one with the same conditions.
#[test]
fn rejects_answers_that_are_never_used() {
    let once = suite_error("
name: a
turns: [{ user: hello, resume: [{ tool: refund, once: true, payload: 1 }, { tool: refund, payload: 2 }, { payload: 3 }] }]
tools:
  - name: t
    answers: [{ content: a, once: true }, { args_match: { n: 1 }, content: b }, { content: c }]
asert: x
");
    assert!(once.stderr.contains("asert") && !once.stderr.contains("never used"), "{once}");
    assert_snapshot!(suite_error("
name: a
turns:
  - user: hello
    resume:
      - { tool: refund, payload: { approved: true } }
      - { tool: refund, status: cancelled }
tools:
  - { name: t, answers: [{ args_match: { n: 1, m: x }, content: a }, { args_match: { m: x, n: 1 }, content: b }] }
mcp: { s: { type: mock, tools: [{ name: t, answers: [{ content: a }, { args_match: { n: 1 }, error: b }] }] } }
"), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: this entry of `resume` is never used, because the one at a.test.yaml:6:9 always comes first
     --> a.test.yaml:7:9
      |
    7 |       - { tool: refund, status: cancelled }
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write `once: true` in the earlier entry, or give it other conditions

    error: this entry of `answers` is never used, because the one at a.test.yaml:9:26 always comes first
     --> a.test.yaml:9:70
      |
    9 | ..., m: x }, content: a }, { args_match: { m: x, n: 1 }, content: b }] }
      |                            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write `once: true` in the earlier entry, or give it other conditions

    error: this entry of `answers` is never used, because the one at a.test.yaml:10:54 always comes first
      --> a.test.yaml:10:70
       |
    10 | ... answers: [{ content: a }, { args_match: { n: 1 }, error: b }] }] } }
       |                               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: write `once: true` in the earlier entry, or give it other conditions
    ");
}

#[test]
fn rejects_contradictory_counts_and_blocks() {
    assert_snapshot!(suite_error("
name: a
turns: [{ user: hello, resume: [{ status: cancelled, payload: 1 }] }]
tools: [{ name: confirm, answers: [{ content: 1, error: no }, { once: true }] }, { name: confirm }]
assert:
  tools:
    require:
      - { name: a, count: { exact: 1, min: 1 } }
      - { name: a, count: { min: 3, max: 2 } }
      - { name: a, count: {} }
"), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: a cancelled interrupt has no `payload`
     --> a.test.yaml:3:63
      |
    3 | turns: [{ user: hello, resume: [{ status: cancelled, payload: 1 }] }]
      |                                                               ^

    error: an answer needs one of `content`, `error` and `use`
     --> a.test.yaml:4:36
      |
    4 | tools: [{ name: confirm, answers: [{ content: 1, error: no }, { once: true }] }, { name: conf...
      |                                    ^^^^^^^^^^^^^^^^^^^^^^^^^

    error: an answer needs one of `content`, `error` and `use`
     --> a.test.yaml:4:63
      |
    4 | tools: [{ name: confirm, answers: [{ content: 1, error: no }, { once: true }] }, { name: conf...
      |                                                               ^^^^^^^^^^^^^^

    error: tool `confirm` is defined twice
     --> a.test.yaml:4:90
      |
    4 | ... error: no }, { once: true }] }, { name: confirm }]
      |                                             ^^^^^^^

    error: `exact` cannot be combined with `min` or `max`
     --> a.test.yaml:8:36
      |
    8 |       - { name: a, count: { exact: 1, min: 1 } }
      |                                    ^

    error: `min` 3 is more than `max` 2
     --> a.test.yaml:9:34
      |
    9 |       - { name: a, count: { min: 3, max: 2 } }
      |                                  ^

    error: `count` needs `exact`, `min` or `max`
      --> a.test.yaml:10:27
       |
    10 |       - { name: a, count: {} }
       |                           ^^
    ");
}

#[test]
fn rejects_duplicate_keys() {
    assert_snapshot!(suite_error("
name: a
turns: [{ user: hello }]
name: b
assert:
  text: { must_match: a, must_match: b }
"), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: the key `name` is written twice
     --> a.test.yaml:4:1
      |
    2 | name: a
      | ---- first
    3 | turns: [{ user: hello }]
    4 | name: b
      | ^^^^ again

    error: the key `must_match` is written twice
     --> a.test.yaml:6:26
      |
    6 |   text: { must_match: a, must_match: b }
      |           ----------     ^^^^^^^^^^ again
      |           |
      |           first
    ");
}

#[test]
fn rejects_invalid_yaml() {
    assert_snapshot!(suite_error("name: a\nturns:\n  - user: \"hello\n    assert: {}\n"), @r#"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: this quoted text has no closing quote, or its lines are not indented
     --> a.test.yaml:3:11
      |
    3 |   - user: "hello
      |           ^
      |
      = help: indent the continuation lines of a quoted text
    "#);
    assert_snapshot!(suite_error("name: a\nturns: [{ user: hello }\n"), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: expected `,` or `]` here
     --> a.test.yaml:2:24
      |
    2 | turns: [{ user: hello }
      |                        ^
      |
      = help: write text that contains `,`, `{`, `}`, `[` or `]` in quotes
    ");
    assert_snapshot!(suite_error("name: a\n\tturns: []\n"), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: a tab cannot be used for indentation
     --> a.test.yaml:1:7
      |
    1 | name: a
      |       ^
      |
      = help: use spaces
    ");
    assert_snapshot!(suite_error("- name: a\n- name: b\n"), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: this document must be a mapping, found a list
     --> a.test.yaml:1:1
      |
    1 | - name: a
      | ^^^^^^^^^
      |
      = help: each case is a document of its own; separate them by a line `---`
    ");
    assert_snapshot!(suite_error("just words\n"), @r#"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: this document must be a mapping, found the text "just words"
     --> a.test.yaml:1:1
      |
    1 | just words
      | ^^^^^^^^^^
    "#);
}

#[test]
fn rejects_invalid_utf8() {
    let project = offline_project();
    std::fs::write(project.workspace.path("a.test.yaml"), b"name: a\nturns: [{ user: \"\xff\" }]\n")
        .expect("a file");
    assert_snapshot!(normalized_output(&project, &["test"]), @r#"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: this is not UTF-8
     --> a.test.yaml:2:18
      |
    2 | turns: [{ user: "�" }]
      |                  ^
      |
      = help: save the file as UTF-8
    "#);
}

#[test]
fn text_that_is_not_utf8_has_a_place() {
    let project = offline_project();
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(project.workspace.path(name), bytes).expect("a file");
    write("a_test.ts", b"// one\n// tw\xff\n");
    let output = project.hotseat(&["test"]);
    assert!(output.stderr.contains("it is not UTF-8 in line 2, column 6"), "{output}");
    write(".env", b"A=1\nSECRET=sekrit\xff\n");
    let output = project.hotseat(&["test"]);
    assert!(output.stderr.contains("this is not UTF-8") && output.stderr.contains(".env:2:14"), "{output}");
    assert!(!output.stderr.contains("sekrit"), "{output}");
}

#[test]
fn truncated_list_shows_where_it_begins() {
    for (text, place, line) in [
        ("[\n  {\"id\": \"a\", \"turns\": [{\"input\": \"x\"}]},\n\n", "a.test.json:1:1", "1 | ["),
        ("\n  { \"cases\": [\n", "a.test.json:2:14", "2 |              ["),
    ] {
        let output = offline_project().file("a.test.json", text).hotseat(&["test"]);
        let stderr = &output.stderr;
        assert!(stderr.contains("`]` is missing at the end of the list that begins here"), "{output}");
        assert!(stderr.contains(place) && stderr.contains(line), "{output}");
    }
    // The end of a value that is not complete is its last text.
    let text = "[\n  {\"id\": \"a\", \"turns\": [\n\n";
    let output = offline_project().file("a.test.json", text).hotseat(&["test"]);
    assert!(output.stderr.contains("a.test.json:2:"), "{output}");
}

#[test]
fn no_break_spaces_are_named() {
    for text in [
        "name: a\n\u{a0}\u{a0}turns: [{ user: hi }]\n",
        "name: a\nturns\u{a0}: [{ user: hi }]\n",
        "name: a\nturns:\n\u{a0}- user: hi\n",
        "name: a\nturns:\n  - user: hi\n\u{a0}   assert: { text: { must_match: hi } }\n",
    ] {
        let output = offline_project().suite("a", text).hotseat(&["test"]);
        let help = "this is a no-break space (U+00A0), which YAML reads as text; write a space";
        output.assert_stderr(2, &[help]);
    }
}

#[test]
fn rejects_suite_without_cases() {
    assert_snapshot!(suite_error(""), @r#"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: no test cases found in a.test.yaml
     |
     = help: write a case, such as `{"name": "greets", "turns": [{"user": "Hello"}]}`
    "#);
    assert_snapshot!(suite_error("# nothing yet\n---\n"), @r#"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: no test cases found in a.test.yaml
     |
     = help: write a case, such as `{"name": "greets", "turns": [{"user": "Hello"}]}`
    "#);
}

#[test]
fn keys_in_wrong_places_are_told_where_they_belong() {
    let put = "put it under `assert:`: `assert: { text: { … } }`";
    for (suite, words) in [
        ("name: a\nturns: [{ user: hi }]\ntools: { require: [x] }\n", "put assertions under `assert:`"),
        ("name: a\nturns: [{ user: hi }]\ntext: { must_match: x }\n", put),
        ("name: a\nturns: [{ user: hi, text: { must_match: x } }]\n", put),
        ("name: a\nturns:\n- user:hi\n", "write a space after the colon: `user: …`"),
        ("name: a\ninput: hi\nassert: [{ type: goal }]\n", "`simulate: { goal: … }`"),
        ("name: a\ninput: hi\nreliability: { rate: 0 }\n", "between 0 and 1: a rate of 0 asserts nothing"),
        (
            "name: a\nturns:\n- user: hi\n  assert: [{ type: contains, value: x, turns: all }]\n",
            "a.test.yaml:4:47\n",
        ),
    ] {
        let output = offline_project().suite("a", suite).hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{words}: {output}");
    }
}

/// A folder with a project file gets no example from `hotseat init`.
#[test]
fn missing_suites_are_no_mistake_of_the_files() {
    let config = "target: { endpoint: 'http://127.0.0.1:9/' }\nsuites: ['nope/*.yaml']\n";
    let output = Project::with_config(config).hotseat(&["test"]);
    assert!(output.code == 4 && output.stderr.contains("correct `suites` in the project file"), "{output}");
    let empty = Project::empty();
    let output = empty.command(&["test"]).run();
    assert!(
        output.code == 4 && output.stderr.contains("run `hotseat init` to create an example"),
        "{output}"
    );
}

#[test]
fn empty_words_of_commands_are_refused() {
    let project = offline_project().suite("a", "name: a\ninput: hi\n");
    for args in [&["--tag", ""][..], &["--exclude-tag", ""], &[""]] {
        let output = project.hotseat(&[&["list"], args].concat());
        assert!(output.code == 2 && output.stderr.contains("it is empty"), "{args:?}: {output}");
    }
    for target in
        ["type: command, command: ['']", "endpoint: 'http://127.0.0.1:9/', start: { command: [' '] }"]
    {
        let project =
            Project::with_config(&format!("target: {{ {target} }}\n")).suite("a", "name: a\ninput: hi\n");
        let output = project.hotseat(&["test", "--dry-run"]);
        let words = "the program of this command is empty";
        assert!(output.code == 2 && output.stderr.contains(words), "{target}: {output}");
    }
}

#[test]
fn rejects_unknown_version() {
    assert_snapshot!(suite_error("version: \"2.0\"\nname: a\nturns: [{ user: hello }]\n"), @r#"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: `version` must be `1` or `1.0`, found the text "2.0"
     --> a.test.yaml:1:10
      |
    1 | version: "2.0"
      |          ^^^^^
      |
      = help: did you mean `1.0`?
    "#);
}

#[test]
fn rejects_duplicate_case_names() {
    assert_snapshot!(suite_error("name: a\nturns: [{ user: hello }]\n---\nname: a\nturns: [{ user: bye }]\n"), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: duplicate case id `a` in this file
     --> a.test.yaml:4:7
      |
    4 | name: a
      |       ^
      |
      = help: change the `id` or, without one, the name of one of them
    ");
}

#[test]
fn rejects_invalid_pattern() {
    assert_snapshot!(suite_error("
name: a
turns:
  - user: hello
    assert:
      text: { must_match: ['(unclosed', '(?!look)ahead'] }
      tools: { forbid_calls: [{ name: x, args_match: { a: '[z-a]' } }] }
"), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: this pattern does not compile: unclosed group
     --> a.test.yaml:6:28
      |
    6 |       text: { must_match: ['(unclosed', '(?!look)ahead'] }
      |                            ^^^^^^^^^^^

    error: this pattern does not compile: look-around, including look-ahead and look-behind, is not supported (patterns are matched in linear time, which rules them out)
     --> a.test.yaml:6:41
      |
    6 |       text: { must_match: ['(unclosed', '(?!look)ahead'] }
      |                                         ^^^^^^^^^^^^^^^

    error: this pattern does not compile: invalid character class range, the start must be <= the end
     --> a.test.yaml:7:59
      |
    7 |       tools: { forbid_calls: [{ name: x, args_match: { a: '[z-a]' } }] }
      |                                                           ^^^^^^^
    ");
}

#[test]
fn rejects_undefined_variable() {
    assert_snapshot!(suite_error("
name: a
turns:
  - user: 'order ${ORDER} of ${ENV.SHOP}'
  - user: 'order ${ORDER'
  - user: 'order ${OR-DER}'
    assert: { text: { must_match: '${HOME}' } }
"), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: variable `ORDER` is not defined: no hook sets it
     --> a.test.yaml:4:11
      |
    4 |   - user: 'order ${ORDER} of ${ENV.SHOP}'
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: environment variable `SHOP` is not set
     --> a.test.yaml:4:11
      |
    4 |   - user: 'order ${ORDER} of ${ENV.SHOP}'
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: `${` without a closing `}`; write `$${` for a literal `${`
     --> a.test.yaml:5:11
      |
    5 |   - user: 'order ${ORDER'
      |           ^^^^^^^^^^^^^^^

    error: `${OR-DER}` is not a valid variable: names consist of letters, digits and `_`; write `$${` for a literal `${`
     --> a.test.yaml:6:11
      |
    6 |   - user: 'order ${OR-DER}'
      |           ^^^^^^^^^^^^^^^^^

    error: variable `HOME` is not defined; for the environment variable write `${ENV.HOME}`
     --> a.test.yaml:7:35
      |
    7 |     assert: { text: { must_match: '${HOME}' } }
      |                                   ^^^^^^^^^
    ");
}

#[test]
fn values_of_scenarios_need_scenarios() {
    let output = suite_error("name: a\nturns: [{ user: 'buy ${scenario.item}' }]\n");
    let words = "`${scenario.item}`: this case has no scenarios; list them under `scenarios`";
    assert!(output.stderr.contains(words) && output.stderr.contains("a.test.yaml:2:"), "{output}");
}

/// Long error lists are shortened, with the number of omitted errors.
#[test]
fn error_count_includes_every_error() {
    let cases: Vec<String> =
        (0..60).map(|n| format!("name: case {n}\nturns: [{{ user: hello, asert: {{}} }}]\n")).collect();
    let output = suite_error(&cases.join("---\n"));
    assert_eq!(output.stderr.matches("unknown key `asert`").count(), 60, "{output}");
}

// The project file.

#[test]
fn reports_missing_project_file() {
    let project = Project::empty().suite("a", "name: a\nturns: [{ user: hello }]\n");
    assert_snapshot!(normalized_output(&project, &["test"]), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: no project file (hotseat.yaml) in this folder or above it
     |
     = help: set the URL of the agent under `target: endpoint:`, or run `hotseat init`
    ");
}

#[test]
fn reports_missing_target() {
    let project = Project::with_config("parallel: 2\n").suite("a", "name: a\nturns: [{ user: hello }]\n");
    assert_snapshot!(normalized_output(&project, &["test"]), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: hotseat.yaml has no `target`
     |
     = help: set the URL of the agent under `target: endpoint:`, or run `hotseat init`
    ");
}

#[test]
fn rejects_invalid_target() {
    let project = Project::with_config(
        "target:\n  type: ag_ui\n  endpoint: ftp://example.com/\n  header: { a: b }\n  timeout_ms: fast\nparalel: 2\n",
    )
    .suite("a", "name: a\nturns: [{ user: hello }]\n");
    assert_snapshot!(normalized_output(&project, &["test"]), @r#"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: `endpoint` must be a URL, found the text "ftp://example.com/"
     --> hotseat.yaml:3:13
      |
    3 |   endpoint: ftp://example.com/
      |             ^^^^^^^^^^^^^^^^^^
      |
      = help: a URL starts with `http://` or `https://`

    error: unknown key `header` in `target`
     --> hotseat.yaml:4:3
      |
    4 |   header: { a: b }
      |   ^^^^^^
      |
      = help: did you mean `headers`?

    error: `timeout_ms` must be a whole number from 1 to 604800000, found the text "fast"
     --> hotseat.yaml:5:15
      |
    5 |   timeout_ms: fast
      |               ^^^^

    error: unknown key `paralel`
     --> hotseat.yaml:6:1
      |
    6 | paralel: 2
      | ^^^^^^^
      |
      = help: did you mean `parallel`?
    "#);
    let project = Project::with_config("target:\n  type: comand\n  endpoint: http://127.0.0.1:9/\n")
        .suite("a", "name: a\nturns: [{ user: hello }]\n");
    assert_snapshot!(normalized_output(&project, &["test"]), @r#"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: `type` must be one of `ag_ui`, `openai`, `http`, `command`, `embedded`, `replay`, found the text "comand"
     --> hotseat.yaml:2:9
      |
    2 |   type: comand
      |         ^^^^^^
      |
      = help: did you mean `command`?
    "#);
    let project = Project::with_config("target: { command: [./agent], timeout_ms: 5 }\n")
        .suite("a", "name: a\nturns: [{ user: hello }]\n");
    assert_snapshot!(normalized_output(&project, &["test"]), @r#"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: `target` has no `type`
     --> hotseat.yaml:1:9
      |
    1 | target: { command: [./agent], timeout_ms: 5 }
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: with these keys, `type` is `command`
    "#);
    let project = Project::with_config(
        "target:\n  endpoint: 'not an address'\n  headers: { 'a b': c, X-A: \"line\\nend\" }\n",
    )
    .suite("a", "name: a\nturns: [{ user: hello }]\n");
    assert_snapshot!(normalized_output(&project, &["test"]), @r#"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: `endpoint` must be a URL, found the text "not an address"
     --> hotseat.yaml:2:13
      |
    2 |   endpoint: 'not an address'
      |             ^^^^^^^^^^^^^^^^
      |
      = help: a URL starts with `http://` or `https://`
    "#);
}

#[test]
fn reports_nonexistent_project_file() {
    assert_snapshot!(normalized_output(&offline_project(), &["test", "--config", "other.yaml"]), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: cannot read project file other.yaml: No such file or directory (os error 2)
    ");
}

// Selection and flags.

#[test]
fn reports_no_suites() {
    assert_snapshot!(normalized_output(&offline_project(), &["test"]), @r#"
    exit code: 4
    ----- stdout -----

    ----- stderr -----
    error: no suites found: no file under . matches **/*.test.{yaml,yml,json,jsonl}, **/*_test.{ts,mts,js,mjs}
     |
     = help: write a suite, such as `tests/first.test.yaml` with `{"name": "greets", "turns": [{"user": "Hello"}]}`
    "#);
}

#[test]
fn reports_nonexistent_paths() {
    let project =
        offline_project().file("empty/readme.md", "").suite("a", "name: a\nturns: [{ user: hello }]\n");
    assert_snapshot!(normalized_output(&project, &["test", "b.test.yaml", "empty", "c/*.yaml", "[", "a.test.yaml"]), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: no such file or folder: b.test.yaml
     |
     = help: did you mean `a.test.yaml`?

    error: no suites (*.test.yaml, .yml, .json or .jsonl, *_test.ts with tests) in empty

    error: no files match c/*.yaml

    error: `[` is not a glob: error parsing glob '[': unclosed character class; missing ']'
    ");
}

#[test]
fn rejects_invalid_filter_pattern() {
    let project = offline_project().suite("a", "name: a\nturns: [{ user: hello }]\n");
    assert_snapshot!(normalized_output(&project, &["test", "--run", "(a"]), @r#"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: --run "(a" is not a valid regular expression: unclosed group
    "#);
}

#[test]
fn reports_filter_without_matches() {
    let project = offline_project().suite("a", "name: a\nturns: [{ user: hello }]\n");
    assert_snapshot!(normalized_output(&project, &["test", "--run", "b"]), @r#"
    exit code: 4
    ----- stdout -----

    ----- stderr -----
    error: no case selected: --run "b" matches none of 1 case
     |
     = help: `hotseat list` prints the cases
    "#);
    assert_snapshot!(normalized_output(&project, &["list", "--run", "b"]), @r#"
    exit code: 4
    ----- stdout -----

    ----- stderr -----
    error: no case selected: --run "b" matches none of 1 case
     |
     = help: `hotseat list` prints the cases
    "#);
}

#[test]
fn rejects_unknown_report_extensions() {
    let project = offline_project().suite("a", "name: a\nturns: [{ user: hello }]\n");
    assert_snapshot!(normalized_output(&project, &["test", "-o", "report.txt", "-o", "report", "-o", "a.json", "-o", "./a.json"]), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: -o report.txt: unknown extension, expected one of .json, .jsonl, .xml, .html, .md
     |
     = help: to write a file named after the time, give a folder with a trailing `/`

    error: -o report: unknown extension, expected one of .json, .jsonl, .xml, .html, .md
     |
     = help: to write a file named after the time, give a folder with a trailing `/`

    error: -o ./a.json is given twice
    ");
    // Cases are saved as JSON lines, which are no YAML.
    project
        .hotseat(&["test", "--save", "first.yaml"])
        .assert_stderr(2, &["--save first.yaml: unknown extension, expected .jsonl"]);
}

#[test]
fn an_empty_argument_does_not_select_all_cases() {
    let project = offline_project().suite("a", "name: a\nturns: [{ user: hello }]\n");
    for args in [&["test", ""][..], &["test", "-i", ""], &["list", ""]] {
        let output = project.hotseat(args);
        assert_eq!(output.code, 2, "{args:?}: {output}");
        let words = "it is empty, perhaps because a variable of the shell is not set";
        assert!(output.stderr.contains(words), "{args:?}: {output}");
    }
}

#[test]
fn rejects_two_reports_in_one_file() {
    let project = offline_project().suite("a", "name: a\nturns: [{ user: hello }]\n");
    assert_snapshot!(normalized_output(&project, &["test", "-o", "out/a.jsonl", "--trace", "out/./a.jsonl"]), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: --trace out/./a.jsonl is already named by -o
    ");
}

#[test]
fn rejects_unwritable_report() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent)
        .suite("a", "name: a\nturns: [{ user: hello, assert: { text: { must_match: hello } } }]\n")
        .file("taken", "a file, not a folder");
    assert_snapshot!(normalized_output(&project, &["test", "-o", "taken/report.json"]), @"
    exit code: 3
    ----- stdout -----

    ----- stderr -----
    error: cannot write taken/report.json: its folder cannot be created: File exists (os error 17)
    ");
    assert_snapshot!(normalized_output(&project, &["test", "--trace", "."]), @"
    exit code: 3
    ----- stdout -----

    ----- stderr -----
    error: cannot write .: Is a directory (os error 21)
    ");
    assert_eq!(agent.requests().len(), 0, "nothing is run whose report would be lost");
}

/// A disk that becomes full during the run: the run continues, and the exit code reports it.
#[test]
#[cfg(target_os = "linux")]
fn reports_write_failure_during_run() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent)
        .suite("a", "name: a\nturns: [{ user: hello, assert: { text: { must_match: hello } } }]\n");
    std::os::unix::fs::symlink("/dev/full", project.workspace.path("full.jsonl")).expect("a link");
    assert_snapshot!(normalized_output(&project, &["test", "-o", "full.jsonl"]), @"
    exit code: 3
    ----- stdout -----
    ═══════════════════════════════════════════════════════════════
      Agent Test                                      Hotseat 0.1.0
    ═══════════════════════════════════════════════════════════════
    ℹ Agent: http://127.0.0.1:[PORT]/
    ℹ Input: a.test.yaml (1 test case)
    ℹ Timeout: [TIME] per turn

    ───────────────────────────────────────────────────────────────
      Running Tests
    ───────────────────────────────────────────────────────────────
    ► a · hello PASSED ([TIME])

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     1
      Passed:    1
      Failed:    0
      Pass Rate: 100.0%
      Duration:  [TIME]

    ═══════════════════════════════════════════════════════════════
      ✨ ALL TESTS PASSED ✨
    ═══════════════════════════════════════════════════════════════

    ----- stderr -----
    error: cannot write full.jsonl: No space left on device (os error 28)
    ");
}

#[test]
fn rejects_unknown_or_meaningless_flags() {
    let project = offline_project();
    assert_snapshot!(normalized_output(&project, &["test", "--paralell", "2"]), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: unexpected argument '--paralell' found

      tip: a similar argument exists: '--parallel'

    Usage: hotseat test --parallel <N> [PATH|NAME]...

    For more information, try '--help'.
    ");
    assert_snapshot!(normalized_output(&project, &["test", "--parallel", "0"]), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: invalid value '0' for '--parallel <N>': expected a whole number from 1 to 10000

    For more information, try '--help'.
    ");
    assert_snapshot!(normalized_output(&project, &["test", "--timeout", "soon"]), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: invalid value 'soon' for '--timeout <DURATION>': expected numbers with the units h, m, s and ms, such as [TIME], [TIME] or [TIME], at most one week (168h)

    For more information, try '--help'.
    ");
    for (written, words) in [
        ("30", "a number needs a unit: write 30s for seconds, or 30ms for milliseconds"),
        ("200h", "it must be more than zero and at most one week (168h)"),
        ("8d", "30s or 1m30s, at most one week (168h)"),
    ] {
        project.hotseat(&["test", "--timeout", written]).assert_stderr(2, &[words]);
    }
    assert_snapshot!(normalized_output(&project, &["test", "--color", "pink"]), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: invalid value 'pink' for '--color <WHEN>'
      [possible values: auto, always, never]

    For more information, try '--help'.
    ");
    assert_snapshot!(normalized_output(&project, &["tset"]), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: unrecognized subcommand 'tset'

      tip: a similar subcommand exists: 'test'

    Usage: hotseat [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    assert_snapshot!(normalized_output(&project, &["init", "--endpoint", "localhost:8000"]), @"
    exit code: 2
    ----- stdout -----

    ----- stderr -----
    error: --endpoint localhost:[PORT]: expected an HTTP URL
     |
     = help: for example `http://127.0.0.1:[PORT]/`
    ");
    project.hotseat(&["init", "hotseat.yaml"]).assert_stderr(2, &["hotseat.yaml is not a folder"]);
    for address in ["http://", "https://:80/", "http://?", "http://a b/", "${ENV.URL}"] {
        project.hotseat(&["init", "--endpoint", address]).assert_stderr(2, &["expected an HTTP URL"]);
    }
}

#[test]
fn missing_subcommand_prints_help() {
    let output = offline_project().hotseat(&[]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("Usage: hotseat [OPTIONS] <COMMAND>"), "{output}");
}

#[test]
fn help_and_version_exit_successfully() {
    for args in [&["--help"][..], &["test", "--help"], &["--version"], &["help", "list"]] {
        let output = offline_project().hotseat(args);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
        assert!(output.stdout.contains("hotseat"), "{output}");
    }
}

/// Arguments of the example lines of a help text.
fn help_examples(help: &str) -> Vec<Vec<String>> {
    let lines = help.lines().filter_map(|line| line.trim_start().strip_prefix("hotseat "));
    let lines = lines.filter_map(|line| line.split_once('#').map(|(command, _)| command));
    let words = |command: &str| {
        let parts = command.split('"').enumerate().flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().map(str::to_string).collect(),
            _ => vec![part.to_string()],
        });
        parts.collect()
    };
    lines.map(words).collect()
}

#[test]
fn examples_of_help_run() {
    let agent = echo_agent();
    let project = Project::empty();
    for (help, page) in [("--help", "docs/index.md"), ("test --help", "docs/command-line.md")] {
        let args: Vec<&str> = help.split(' ').collect();
        let help = project.hotseat(&args).stdout;
        assert!(help.contains(page), "{help}");
        assert!(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page).is_file());
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        let examples = help_examples(&help);
        assert!((3..=6).contains(&examples.len()), "{examples:?}");
        for example in examples {
            let example: Vec<String> =
                example.iter().map(|word| word.replace("http://127.0.0.1:8000/", &agent.url())).collect();
            let args: Vec<&str> = example.iter().map(String::as_str).collect();
            let output = project.hotseat(&args);
            // No case of the example project has failed.
            let code = if args.contains(&"--last-failed") { 4 } else { 0 };
            assert_eq!(output.code, code, "{args:?}: {output}");
        }
    }
}

#[test]
fn flags_of_test_are_grouped_as_in_the_documentation() {
    let help = offline_project().hotseat(&["test", "--help"]).stdout;
    let page = include_str!("../../../../docs/command-line.md");
    let page = &page[page.find("## Flags of `hotseat test`").unwrap()..];
    let groups =
        ["Select the cases:", "Control the conversations:", "Control the run:", "Write output:", "Examples:"];
    for pair in groups.windows(2) {
        let (start, end) = (help.find(&format!("\n{}", pair[0])), help.find(&format!("\n{}", pair[1])));
        let (Some(start), Some(end)) = (start, end) else { panic!("{}: {help}", pair[0]) };
        assert!(start < end, "{}: {help}", pair[0]);
        let on_page = &page[page.find(pair[0]).unwrap()..];
        let on_page = on_page.split("\n\n").nth(1).unwrap();
        let flags = help[start..end].lines().filter(|line| line.starts_with("  ") && line.contains("--"));
        let flags = flags.filter(|line| line.trim_start().starts_with('-'));
        let names: Vec<(&str, &str)> = flags
            .map(|line| {
                let names = line.trim().split(' ').next().unwrap().trim_end_matches(',');
                (names, line.trim().split(' ').find(|word| word.starts_with("--")).unwrap())
            })
            .collect();
        assert!(!names.is_empty(), "{help}");
        for (short, long) in names {
            let is_listed = [short, long].iter().any(|name| on_page.contains(&format!("`{name}")));
            assert!(is_listed, "{long} is not under {:?} in the documentation", pair[0]);
        }
    }
    // Only the flags of every command are in no group.
    let ungrouped = &help[help.find("\nOptions:").unwrap()..help.find("\nSelect the cases:").unwrap()];
    assert_eq!(ungrouped.matches(" --").count(), 3, "{ungrouped}");
}

// The agent.

#[test]
fn reports_unreachable_address() {
    let project = Project::with_config(&format!("target: {{ endpoint: '{}' }}\n", unreachable_address()))
        .suite("a", "name: a\nturns: [{ user: hello, assert: { text: { must_match: hello } } }]\n");
    assert_snapshot!(normalized_output(&project, &["test"]), @r#"
    exit code: 3
    ----- stdout -----
    ═══════════════════════════════════════════════════════════════
      Agent Test                                      Hotseat 0.1.0
    ═══════════════════════════════════════════════════════════════
    ℹ Agent: http://127.0.0.1:[PORT]/
    ℹ Input: a.test.yaml (1 test case)
    ℹ Timeout: [TIME] per turn

    ───────────────────────────────────────────────────────────────
      Running Tests
    ───────────────────────────────────────────────────────────────
    ► a · hello INFRASTRUCTURE ERROR ([TIME])
      ├─ Turn 1: "hello" → INFRASTRUCTURE ERROR ([TIME])
      └─ unreachable: cannot reach http://127.0.0.1:[PORT]/: Connection refused (os error 111)

         --> a.test.yaml:1:7

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     1
      Passed:    0
      Failed:    1
                 1 infrastructure error
      Pass Rate: 0.0%
      Duration:  [TIME]

      Next: start the agent, or correct its address in the project file

    ═══════════════════════════════════════════════════════════════
      ❌ TESTS FAILED
    ═══════════════════════════════════════════════════════════════

    ----- stderr -----
    "#);
}

// Colours.

/// Output with every coloured element, including an error.
#[track_caller]
fn has_colors(env: &[(&str, &str)], args: &[&str]) -> (bool, bool) {
    let agent = FakeAgent::with_text("No.");
    let fails = "name: a\nturns: [{ user: hello, assert: { text: { must_match: 'yes' } } }]\n";
    let run = |project: &Project| {
        let command = project.command(&[&["test"], args].concat());
        env.iter().fold(command, |command, (name, value)| command.env(name, value)).run()
    };
    let run_through = run(&Project::with_agent(&agent).suite("a", fails));
    assert_eq!(run_through.code, 1, "{run_through}");
    let refused = run(&offline_project().suite("a", "nam: a\n"));
    assert_eq!(refused.code, 2, "{refused}");
    (run_through.stdout.contains('\x1b'), refused.stderr.contains('\x1b'))
}

#[test]
fn piped_output_has_no_colors_by_default() {
    assert_eq!(has_colors(&[], &[]), (false, false));
    assert_eq!(has_colors(&[("NO_COLOR", "1")], &[]), (false, false));
    assert_eq!(has_colors(&[("TERM", "xterm-256color")], &[]), (false, false));
    assert_eq!(has_colors(&[], &["--color", "never"]), (false, false));
    assert_eq!(has_colors(&[], &["--color", "always"]), (true, true));
    assert_eq!(has_colors(&[("NO_COLOR", "1")], &["--color", "always"]), (true, true));
}

/// The client chooses their values: another length would end the request in its middle, or merge it with the next one.
#[test]
fn headers_of_the_connection_are_refused_before_sending() {
    const TURN: &str = "name: a\nturns: [{ user: hi }]\n";
    const JUDGED: &str =
        "name: a\nturns: [{ user: hi, assert: [{ type: satisfy, criteria: It is polite. }] }]\n";
    let server = FakeAgent::start(|_| FakeReply::text(200, "fine"));
    let assert_refused = |config: &str, suite: &str, header: &str| {
        let output = Project::with_config(config).suite("a", suite).hotseat(&["test"]);
        let words = format!("the header `{header}` belongs to the connection and cannot be set; remove it");
        let is_placed = output.stderr.contains("--> hotseat.yaml:");
        assert!(output.code == 2 && is_placed && output.stderr.contains(&words), "{config}\n{output}");
    };
    let url = server.url();
    for header in ["transfer-encoding", "Connection", "Keep-Alive", "TE", "Trailer", "Upgrade", "Expect"] {
        let config = format!("target: {{ endpoint: '{url}', headers: {{ {header}: x }} }}\n");
        assert_refused(&config, TURN, header);
    }
    let headers = "headers: { Content-Length: '0' }";
    for target in [
        format!("{{ endpoint: '{url}', {headers} }}"),
        format!("{{ type: http, endpoint: '{url}', body: {{ m: '{{{{message}}}}' }}, {headers} }}"),
        format!("{{ type: openai, base_url: '{url}', model: m, {headers} }}"),
    ] {
        assert_refused(&format!("target: {target}\n"), TURN, "Content-Length");
    }
    for (services, suite) in [
        (format!("mcp: {{ bank: {{ type: proxy, url: '{url}', {headers} }} }}"), TURN),
        (format!("models: {{ main: {{ type: relay, url: '{url}', {headers} }} }}"), TURN),
        (
            format!(
                "connectors: {{ c: {{ type: openai, base_url: '{url}', model: m, {headers} }} }}\njudge: connectors:c"
            ),
            JUDGED,
        ),
    ] {
        let config = format!("target: {{ endpoint: '{url}' }}\n{services}\n");
        assert_refused(&config, suite, "Content-Length");
    }
    assert_eq!(server.requests().len(), 0);
    // Servers on one address differ by it.
    let agent = echo_agent();
    let config = format!("target: {{ endpoint: '{agent}', headers: {{ Host: shop.example }} }}\n");
    Project::with_config(&config).suite("a", TURN).test(&[]).assert_all_passed();
    assert_eq!(agent.requests()[0].header("host"), Some("shop.example"));
}

#[test]
fn a_header_that_no_request_can_have_is_refused_at_its_value() {
    let server = FakeAgent::start(|_| FakeReply::text(200, "fine"));
    let url = server.url();
    let headers = "headers: { X-Team: \"a\\nb\" }";
    for (service, place) in [
        (format!("target: {{ endpoint: '{url}',\n  {headers} }}\n"), "2:22"),
        (
            format!(
                "target: {{ type: http, endpoint: '{url}', body: {{ m: '{{{{message}}}}' }},\n  {headers} }}\n"
            ),
            "2:22",
        ),
        (
            format!(
                "target: {{ endpoint: '{url}' }}\nmcp: {{ bank: {{ type: proxy, url: '{url}',\n  {headers} }} }}\n"
            ),
            "3:22",
        ),
        (
            format!(
                "target: {{ endpoint: '{url}' }}\nmodels: {{ main: {{ type: relay, url: '{url}',\n  {headers} }} }}\n"
            ),
            "3:22",
        ),
    ] {
        let project = Project::with_config(&service).suite("a", "name: a\nturns: [{ user: hi }]\n");
        let output = project.hotseat(&["test"]);
        let words = format!(
            "error: header `x-team` contains a line break or control character\n --> hotseat.yaml:{place}\n"
        );
        assert!(output.code == 2 && output.stderr.contains(&words), "{words}{service}\n{output}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn schemes_of_urls_are_words_in_any_case() {
    let agent = echo_agent();
    let url = agent.url().replace("http://", "HTTP://");
    let project = Project::with_config(&format!("target: {{ endpoint: '{url}' }}\n"))
        .suite("a", "name: a\nturns:\n  - user: hi\n    attachments: [{ type: image, source: 'HTTPS://a.example/x.png' }, { type: image, source: 'Data:image/png;base64,AAAA' }]\n");
    project.test(&[]).assert_all_passed();
    Project::with_config("target: { endpoint: 'HTTP:///x' }\n")
        .suite("a", "name: a\nturns: [{ user: hi }]\n")
        .hotseat(&["test"])
        .assert_stderr(2, &["`endpoint` must be a URL"]);
}

#[test]
fn commands_of_other_tools_are_named() {
    let project = Project::empty();
    for (command, words) in [
        ("run", "tip: 'hotseat test' runs the cases\n"),
        ("eval", "tip: 'hotseat test' runs the cases\n"),
        ("ls", "tip: 'hotseat list' prints the cases\n"),
        ("rusn", "tip: a similar subcommand exists: 'runs'\n"),
    ] {
        let output = project.hotseat(&[command]);
        assert!(output.code == 2 && output.stderr.contains(words), "{command}: {output}");
        assert_eq!(output.stderr.matches("tip:").count(), 1, "{output}");
    }
}

#[test]
fn numbers_of_calls_have_their_key() {
    for (assertion, words) in [
        ("[{ type: tool_called, name: pay, times: 2 }]", "write the number of calls under `count:`"),
        ("{ tools: { require: [{ name: pay, times: 2 }] } }", "write the number of calls under `count:`"),
    ] {
        let output = suite_error(&format!("name: a\nturns: [{{ user: hi, assert: {assertion} }}]\n"));
        assert!(output.stderr.contains(words), "{assertion}: {output}");
    }
    let output = suite_error("name: a\ntimes: 3\nturns: [{ user: hi }]\n");
    assert!(output.stderr.contains("`--runs N` runs every case N times"), "{output}");
}
