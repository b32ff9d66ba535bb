//! Selection of cases: the same options in every command and front end, lines, and misspelt selections.

use std::path::Path;

use hotseat::dsl::HarnessOutput;
use hotseat::dsl::prelude::*;
use hotseat_testkit::FakeAgent;
use serde_json::Value;

use crate::common::{Project, echo_agent};

/// The cases of each front end: the second one has two tags.
const YAML: &str = "\
name: books a room
tags: [smoke]
turns: [{ user: hi }]
---
# about the second case
name: cancels a room
tags: [smoke, slow]
turns: [{ user: hi }]
---
name: pays once
turns: [{ user: hi }]
";
const JSON_LINES: &str = r#"{"name": "books a room", "tags": ["smoke"], "turns": [{"user": "hi"}]}
{"name": "cancels a room", "tags": ["smoke", "slow"], "turns": [{"user": "hi"}]}
{"name": "pays once", "turns": [{"user": "hi"}]}
"#;
const TYPESCRIPT: &str = r#"import { it, user } from "hotseat";

it("books a room", { tags: ["smoke"] }, () => {
  user.says("hi");
});

it("cancels a room", { tags: ["smoke", "slow"] }, () => {
  user.says("hi");
});

it("pays once", () => {
  user.says("hi");
});
"#;

fn examples(s: &mut Group) {
    s.it("books a room", async |t| drop(t.user.says("hi").await)).tag("smoke");
    s.it("cancels a room", async |t| {
        t.user.says("hi").await;
    })
    .tag("smoke")
    .tag("slow");
    s.it("pays once", async |t| drop(t.user.says("hi").await));
}

/// Selects cases in one way.
struct SelectionOption {
    /// The option in the table of the documentation.
    name: &'static str,
    /// `{line}` stands for the file and a line inside of the second case.
    arguments: &'static [&'static str],
    selected: &'static [&'static str],
}

const OPTIONS: [SelectionOption; 10] = [
    SelectionOption { name: "`FILE:LINE`", arguments: &["{line}"], selected: &["cancels a room"] },
    SelectionOption { name: "a word", arguments: &["room"], selected: &["books a room", "cancels a room"] },
    SelectionOption {
        name: "several words",
        arguments: &["pays", "cancels a"],
        selected: &["cancels a room", "pays once"],
    },
    SelectionOption { name: "`--run REGEX`", arguments: &["--run", "^pays"], selected: &["pays once"] },
    SelectionOption {
        name: "several `--run`",
        arguments: &["--run", "pays", "--run", "cancels"],
        selected: &["cancels a room", "pays once"],
    },
    SelectionOption {
        name: "`-k EXPR`",
        arguments: &["-k", "room and not (slow or Pays)"],
        selected: &["books a room"],
    },
    SelectionOption {
        name: "`--grep REGEX`",
        arguments: &["--grep", "^smoke$"],
        selected: &["books a room", "cancels a room"],
    },
    SelectionOption { name: "`--tag TAG`", arguments: &["--tag", "slow"], selected: &["cancels a room"] },
    SelectionOption {
        name: "`--exclude-tag TAG`",
        arguments: &["--exclude-tag", "slow"],
        selected: &["books a room", "pays once"],
    },
    SelectionOption {
        name: "several options",
        arguments: &["--tag", "smoke", "--exclude-tag", "slow", "--run", "."],
        selected: &["books a room"],
    },
];

/// Columns of the table.
const COLUMNS: [&str; 4] = ["`test`", "`list`", "`recheck`", "Rust test file"];

fn names(report: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(report).unwrap_or_default();
    let results = report["results"].as_array().into_iter().flatten();
    results.map(|result| result["name"].as_str().unwrap_or_default().to_string()).collect()
}

/// Names that each command selects in a suite.
fn select_in_suite(
    agent: &FakeAgent,
    file: &str,
    text: &str,
    line: u32,
    arguments: &[&str],
) -> Vec<Vec<String>> {
    let project = Project::with_agent(agent).file(file, text);
    let at = format!("{file}:{line}");
    let given: Vec<&str> =
        arguments.iter().map(|one| if *one == "{line}" { at.as_str() } else { one }).collect();
    let report = |first: &[&str]| {
        let output = project.hotseat(&[first, &["-o", "report.json"], &given].concat());
        assert_eq!(output.code, 0, "{file} {first:?} {given:?}: {output}");
        names(&project.workspace.read("report.json"))
    };
    let listed = project.hotseat(&[&["list", "--json"], given.as_slice()].concat());
    assert_eq!(listed.code, 0, "{file} {given:?}: {listed}");
    let listed = listed.stdout.lines().map(|line| {
        let case: Value = serde_json::from_str(line).expect("a JSON object per line");
        case["name"].as_str().unwrap_or_default().to_string()
    });
    let listed = listed.collect();
    let tested = report(&["test"]);
    assert_eq!(project.hotseat(&["test"]).code, 0);
    vec![tested, listed, report(&["recheck", "last"])]
}

/// Names that a Rust test file selects.
fn select_in_rust(agent: &FakeAgent, arguments: &[&str]) -> (u8, Vec<String>, String) {
    let project = Project::with_agent(agent);
    let source = include_str!("selection.rs");
    let line = source.lines().position(|line| line.contains("s.it(\"cancels")).expect("it is declared") + 2;
    let at = format!("integration/selection.rs:{line}");
    let given = arguments.iter().map(|one| if *one == "{line}" { at.as_str() } else { one });
    let given: Vec<&str> = ["-o", "report.json"].into_iter().chain(given).collect();
    let (harness, output) = project.harness(file!(), &given);
    let code = harness.run(examples);
    let HarnessOutput::Captured(kept) = output else { unreachable!("it is kept") };
    let report = std::fs::read_to_string(project.workspace.path("report.json")).unwrap_or_default();
    (code, names(&report), kept.text())
}

#[test]
fn options_select_the_same_cases_everywhere() {
    let agent = echo_agent();
    let mut table = format!("| | {} |\n|---|{}\n", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len()));
    for SelectionOption { name, arguments, selected } in &OPTIONS {
        for (file, text, line) in
            [("a.test.yaml", YAML, 5), ("a.test.jsonl", JSON_LINES, 2), ("a_test.ts", TYPESCRIPT, 8)]
        {
            for (found, command) in
                select_in_suite(&agent, file, text, line, arguments).iter().zip(["test", "list", "recheck"])
            {
                assert_eq!(found, selected, "{name} in `{command}` of {file}");
            }
        }
        let (code, found, words) = select_in_rust(&agent, arguments);
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!((code, &found[..]), (0, *selected), "{name} in Rust: {words}");
        table += &format!("| {name} | {} |\n", ["yes"; COLUMNS.len()].join(" | "));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/selection.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- selection: begin -->\n", "<!-- selection: end -->");
    let (before, rest) = page.split_once(begin).expect("the page has a table of options");
    let (_, after) = rest.split_once(end).expect("the table has an end");
    let expected = format!("{before}{begin}{table}{end}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    } else {
        assert!(
            page == expected,
            "`UPDATE_DOCS=1 cargo test --test integration selection` writes the table:\n{table}"
        );
    }
}

fn project() -> Project {
    Project::with_config("agents:\n  checkout: { endpoint: 'http://127.0.0.1:1/' }\ntarget: checkout\n")
        .file("tests/booking.test.yaml", YAML)
        .file("tests/other.test.jsonl", JSON_LINES)
}

#[test]
fn lines_select_single_cases() {
    let project = project()
        .file("tests/list.test.json", "[\n  {\"name\": \"one\", \"turns\": [{\"user\": \"hi\"}]},\n  {\n    \"name\": \"two\",\n    \"turns\": [{\"user\": \"hi\"}]\n  }\n]\n")
        .file("tests/rooms.test.yaml", "name: sees the room\nscenarios: [{ id: blue, name: Blue, goal: x }, { id: red, name: Red, goal: x }]\nturns: [{ user: hi }]\n---\nname: tours ${scenario.name}\nscenarios: [{ id: blue, name: Blue, goal: x }, { id: red, name: Red, goal: x }]\nturns: [{ user: hi }]\n")
        .file("tests/floor_test.ts", "import { it, scenarioSet } from 'hotseat';\nscenarioSet('floors', [{ id: 'blue', name: 'Blue', goal: 'x' }, { id: 'red', name: 'Red', goal: 'x' }], () => {\n  it('opens the floor', () => {});\n});\n");
    for (arguments, ids) in [
        (&["tests/booking.test.yaml:4"][..], &["cancels a room"][..]),
        (&["tests/booking.test.yaml:5:3"], &["cancels a room"]),
        (&["tests/booking.test.yaml:1", "./tests/booking.test.yaml:11"], &["books a room", "pays once"]),
        (&["tests/list.test.json:4"], &["two"]),
        (&["tests/rooms.test.yaml:3"], &["blue", "red"]),
        (&["tests/booking.test.yaml:1", "tests/list.test.json"], &["books a room", "one", "two"]),
        (&["tests/list.test.json:2", "tests/list.test.json"], &["one", "two"]),
        (&["tests/list.test.json:2", "tests", "-k", "list"], &["one", "two"]),
        (&["tests/booking.test.yaml::pays once"], &["pays once"]),
        (&["tests/rooms.test.yaml::sees the room"], &["blue", "red"]),
        (&["tests/rooms.test.yaml::sees the room: Red"], &["red"]),
        (&["tests/rooms.test.yaml::tours ${scenario.name}"], &["tours Blue", "tours Red"]),
        (&["tests/floor_test.ts::opens the floor"], &["@blue", "@red"]),
        (
            &["tests/booking.test.yaml::pays once", "tests/booking.test.yaml:1"],
            &["books a room", "pays once"],
        ),
        (&["tests/list.test.json::one", "tests/booking.test.yaml:1"], &["books a room", "one"]),
        (&["tests/booking.test.yaml", "PAYS", "cancels a"], &["cancels a room", "pays once"]),
        (&["tests/booking.test.yaml::pays once", "once", "-k", "not slow"], &["pays once"]),
    ] {
        let output = project.hotseat(&[&["list", "--json"], arguments].concat());
        assert_eq!(output.code, 0, "{output}");
        let found: Vec<Value> =
            output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let found: Vec<&str> = found.iter().map(|case| case["id"].as_str().unwrap()).collect();
        let fits = found.len() == ids.len() && found.iter().zip(ids).all(|(id, part)| id.contains(part));
        assert!(fits, "{arguments:?}: {found:?}");
    }
}

/// Tests in any spelling that the language has are found in folders. What is left out is named, unless it is a test of another tool.
#[test]
fn folders_lose_no_test_in_typescript() {
    const TESTS: [(&str, &str); 8] = [
        ("list_test.ts", "const TestList = (t) => t.assert.True(false);\nexport { TestList };\n"),
        ("line_test.ts", "export function\n  TestLine(t) { t.assert.True(false); }\n"),
        (
            "comment_test.ts",
            "/** doc */ export /* one */ function TestComment(t) { t.assert.True(false); }\n",
        ),
        ("tab_test.ts", "export\tfunction TestTab(t) { t.assert.True(false); }\n"),
        ("all_test.ts", "export * from './lib';\n"),
        ("lib_test.ts", "export { TestLibrary } from './lib';\n"),
        ("small_test.mjs", "import{it}from\"hotseat\";it('small',()=>{throw 1});\n"),
        ("fixtures_test.ts", "import { it } from './fixtures';\nit('fixtures', () => { throw 1; });\n"),
    ];
    let others = [
        ("lib.ts", "export function TestLibrary(t) { t.assert.True(false); }\n"),
        ("fixtures.ts", "export { it, user } from 'hotseat';\n"),
        ("vitest_test.ts", "import { test } from 'vitest';\nimport './lib';\ntest('x', () => {});\n"),
        ("hooks_test.ts", "export function Before() { return {}; }\n"),
        ("lost_test.ts", "function TestLost(t) { t.assert.True(false); }\n"),
        ("checkout.test.ts", "import { it } from 'hotseat';\nit('x', () => {});\n"),
        ("vitest.test.ts", "import { test } from 'vitest';\n"),
        ("UPPER.Test.yaml", "name: x\nturns: [{ user: hi }]\n"),
    ];
    let mut project = project();
    for (name, text) in TESTS.iter().chain(&others) {
        project = project.file(&format!("tests/{name}"), text);
    }
    for arguments in [&["test", "--no-store"][..], &["test", "--no-store", "tests"]] {
        let output = project.hotseat(arguments);
        for (name, _) in TESTS {
            assert!(output.stdout.contains(&format!("tests/{name}:")), "{name}: {output}");
        }
        assert!(
            output.stderr.contains("left out: tests/lost_test.ts, without an import of `hotseat`"),
            "{output}"
        );
        assert!(output.stderr.contains("names: tests/UPPER.Test.yaml, tests/checkout.test.ts;"), "{output}");
        assert!(!output.stderr.contains("vitest") && !output.stderr.contains("hooks_test"), "{output}");
    }
    let test = "import assert from 'node:assert';\nexport function TestPackage(t) { assert(false); }\n";
    let output = self::project().file("tests/package_test.ts", test).hotseat(&["list"]);
    assert!(output.stderr.contains("tests/package_test.ts:1:20") && output.code == 2, "{output}");
    let output = project.hotseat(&["list", "tests/*_test.ts"]);
    assert!(output.stderr.contains("tests/lost_test.ts") && output.code == 2, "{output}");
}

#[test]
fn misspelt_selections_name_the_nearest() {
    let project = project();
    for (arguments, words) in [
        (&["--run", "boks a room"][..], "did you mean `books a room`?"),
        (&["--run", "cancls"], "did you mean `cancels`?"),
        (&["--run", "he cancls a table"], "did you mean `cancels`?"),
        (&["-k", "cancls and room"], "did you mean `cancels`?"),
        (&["--grep", "smokee"], "did you mean `smoke`?"),
        (&["--tag", "smok"], "did you mean `smoke`?"),
        (&["--tag", "nightly"], "the tags are slow, smoke"),
        (&["--tag", "slow", "--exclude-tag", "slow"], "`hotseat list` prints the cases"),
        (&["tests/boking.test.yaml"], "did you mean `tests/booking.test.yaml`?"),
        (&["booking.test.yaml:6"], "did you mean `tests/booking.test.yaml:6`?"),
        (&["tests/booking.test.yaml:99"], "`pays once` is at tests/booking.test.yaml:9"),
        (&["booking.test.yaml::pays once"], "did you mean `tests/booking.test.yaml::pays once`?"),
        (&["tests/booking.test.yaml::pays onec"], "did you mean `pays once`?"),
        (
            &["-k", "books|pays"],
            "`-k` joins words by `and`, `or` and `not`; `--run` takes a regular expression",
        ),
        (&["tests/booking.test.yaml::pays"], "`hotseat list tests/booking.test.yaml` prints the cases"),
        (&["pasy"], "`pasy` is no file, no folder and no part of a name"),
        (&["cancls"], "did you mean `cancels`?"),
        (&["tesst"], "did you mean `tests`?"),
        (&["Is it open?"], "`hotseat test -i 'Is it open?'` sends it to the agent as a message"),
        (&["who cancls?"], "did you mean `cancels`? `hotseat test -i 'who cancls?'` sends it to the agent"),
        // A word that is wrong is an error even if others select cases.
        (&["pays", "cancls"], "did you mean `cancels`?"),
        (&["pays", "--tag", "slow"], "\"pays\" --tag \"slow\" matches none of 6 cases"),
        (&["--run", "books", "-k", "pays"], "`hotseat list` prints the cases"),
        (&["-n", "chekout"], "did you mean `checkout`?"),
    ] {
        for command in ["test", "list"] {
            let output = project.hotseat(&[&[command], arguments].concat());
            assert_eq!(output.code, 4, "{output}");
            assert!(output.stderr.contains(words), "{command} {arguments:?}: {words}\n{output}");
        }
    }
    let agent = echo_agent();
    for (arguments, words) in
        [(&["--tag", "smok"][..], "did you mean `smoke`?"), (&["-k", "cancls"], "did you mean `cancels`?")]
    {
        let (code, _, said) = select_in_rust(&agent, arguments);
        assert!(code == 4 && said.contains(words), "{arguments:?}: {code} {said}");
    }
}

/// A case of another suite may have the same id.
#[test]
fn the_suggested_command_selects_only_failed_cases() {
    let agent = echo_agent();
    let case = |id: &str, expected: &str| {
        format!(
            "name: {id}\nturns: [{{ user: hi, assert: {{ text: {{ must_match: {expected} }} }} }}]\n---\n"
        )
    };
    let (passes, fails) = (|id: &str| case(id, "hi"), |id: &str| case(id, "never"));
    let suggested = |a: String, b: String| {
        let project = Project::with_agent(&agent).suite("a", &a).suite("b", &b);
        let args = ["test", "--no-store", "--parallel", "1"];
        let output = project.hotseat(&args);
        assert_eq!(output.code, 1, "{output}");
        let (_, next) = output.stdout.split_once("only the failed cases:").expect("a suggestion");
        next.replace('`', "").trim().lines().next().unwrap_or_default().trim().to_string()
    };
    let prefix = "hotseat test --no-store --parallel 1";
    let one_suite = suggested(passes("x") + &passes("y"), fails("x") + &fails("y") + &passes("z"));
    assert_eq!(one_suite, format!("{prefix} b.test.yaml:1 b.test.yaml:4"));
    let two_suites = suggested(passes("x") + &fails("y"), fails("x") + &passes("y"));
    assert_eq!(two_suites, format!("{prefix} a.test.yaml:4 b.test.yaml:1"));
}

#[test]
fn words_are_kept_by_the_commands_of_the_report() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).file(
        "pays/a.test.yaml",
        "name: pays once\nturns: [{ user: hi, assert: { text: { must_match: never } } }]\n---\nname: pays twice\nturns: [{ user: hi, assert: { text: { must_match: never } } }]\n---\nname: books\nturns: [{ user: hi }]\n",
    );
    project
        .hotseat(&["test", "twice", "books", "-o", "report.json"])
        .assert_stdout(1, &["Next: after the fix"]);
    let report = project.workspace.read_json("report.json");
    assert_eq!(report["metadata"]["options"]["run"], "\"twice\" \"books\"", "{report}");
    assert_eq!(names(&project.workspace.read("report.json")), ["pays twice", "books"]);
    // A recheck of some cases keeps the words of its own command only.
    project.hotseat(&["recheck", "last", "books", "-o", "report.json"]).assert_code(0);
    assert_eq!(names(&project.workspace.read("report.json")), ["books"]);
    // A folder takes precedence over a word.
    let output = project.hotseat(&["list", "pays"]);
    assert!(output.code == 0 && output.stdout.lines().count() == 3, "{output}");
}

#[test]
fn notes_terms_without_cases() {
    let project = project();
    for (arguments, words) in [
        (&["--tag", "slow", "--tag", "smok"][..], "no case has the tag \"smok\"; did you mean `smoke`?"),
        (&["--exclude-tag", "slwo"], "no case has the tag \"slwo\"; did you mean `slow`?"),
        (&["--run", "pays", "--run", "bookz"], "--run \"bookz\" matches no case; did you mean `books`?"),
    ] {
        for command in [&["test", "--dry-run"][..], &["list"], &["list", "--json"]] {
            let output = project.hotseat(&[command, arguments].concat());
            assert!(output.code == 0 && output.stderr.contains(words), "{command:?} {arguments:?}: {output}");
        }
    }
}

#[test]
fn invalid_expressions_are_usage_errors() {
    let project = project();
    for (arguments, words) in [
        (&["-k", "a and"][..], "-k \"a and\" is not a valid expression: expected a word at column 6"),
        (
            &["-k", "pays once"],
            "expected `and`, `or` or the end at column 6; quotes join the words of one text",
        ),
        (&["--grep", "(a"], "--grep \"(a\" is not a valid regular expression: unclosed group"),
        (&["tests/booking.test.yaml", "nope/", "["], "no such file or folder: nope/"),
    ] {
        let output = project.hotseat(&[&["test"], arguments].concat());
        assert!(output.code == 2 && output.stderr.contains(words), "{arguments:?}: {output}");
    }
    let (code, _, said) = select_in_rust(&echo_agent(), &["-k", "(a"]);
    assert!(code == 2 && said.contains("expected `)` at column 3"), "{said}");
}

/// The tests that somebody looks for there would never run.
#[test]
fn an_entry_of_suites_without_a_suite_is_an_error() {
    for (entry, help) in [
        ("sub", "write `sub/**/*.test.yaml`"),
        ("nosuch/*.test.yaml", "correct its path, or remove it"),
        ("misspelt.test.yaml", "correct its path, or remove it"),
    ] {
        let config =
            format!("target: {{ endpoint: 'http://127.0.0.1:9/' }}\nsuites: ['*.test.yaml', '{entry}']\n");
        let project = Project::with_config(&config).suite("a", YAML).file("sub/b.test.yaml", YAML);
        for command in ["list", "test"] {
            project.hotseat(&[command]).assert_stderr(2, &[&format!("no suite matches `{entry}`"), help]);
        }
    }
    let config = "target: { endpoint: 'http://127.0.0.1:9/' }\nsuites: ['*.test.yaml', 'sub/**/*.test.yaml', '*.test.json']\n";
    Project::with_config(config)
        .suite("a", YAML)
        .file("sub/b.test.yaml", YAML)
        .hotseat(&["list"])
        .assert_code(0);
}

/// Suites near another project file test the agent of the project that runs: a note says so, once for each such file.
#[test]
fn project_files_nearer_to_suites_are_noted() {
    let config = "target: { type: embedded, agent: agent.yaml }\n";
    let suite = "name: a\nturns: [{ user: x, assert: [{ type: contains, value: Hi }] }]\n";
    let project = Project::with_config(config)
        .file("agent.yaml", "name: Clerk\n")
        .file("script.yaml", "use: always\nrules: [{ reply: Hi. }]\n")
        .file("sub/hotseat.yaml", config)
        .file("sub/deep/a.test.yaml", suite)
        .file("sub/b.test.yaml", suite)
        .file("other/c.test.yaml", suite);
    let note = "sub/hotseat.yaml is not used: its 2 suites of this run test the agents of hotseat.yaml";
    for args in [&["test"][..], &["test", "sub"]] {
        let output = project.hotseat(args);
        assert_eq!((output.code, output.stderr.matches(note).count()), (0, 1), "{output}");
    }
    for args in [&["test", "other"][..], &["test", "--config", "sub/hotseat.yaml", "other/c.test.yaml"]] {
        assert!(!project.hotseat(args).stderr.contains("is not used"), "{args:?}");
    }
}

/// With two project files in one folder, a note says which one does not count.
#[test]
fn second_project_files_of_a_folder_are_noted() {
    let config = "target: { type: embedded, agent: agent.yaml }\n";
    let project = Project::with_config(config)
        .file("agent.yaml", "name: Clerk\n")
        .file("script.yaml", "use: always\nrules: [{ reply: Hi. }]\n")
        .file("hotseat.yml", "target: { endpoint: 'http://127.0.0.1:9/' }\n")
        .suite("a", "name: a\nturns: [{ user: x, assert: [{ type: contains, value: Hi }] }]\n");
    let note = "hotseat.yml is not used: hotseat.yaml beside it is; remove one of them";
    let output = project.hotseat(&["test"]);
    output.assert_code(0);
    assert_eq!(output.stderr.matches(note).count(), 1, "{output}");
    let output = project.hotseat(&["test", "--config", "hotseat.yml", "--dry-run"]);
    output.assert_code(0);
    assert!(!output.stderr.contains("is not used"), "{output}");
}

#[test]
fn lines_and_names_beside_their_whole_file_must_exist() {
    let project = Project::with_config("target: { endpoint: 'http://127.0.0.1:9/' }\n").suite("a", YAML);
    let listed = |part: &str| project.hotseat(&["list", "a.test.yaml", part]);
    for (part, message) in [
        ("a.test.yaml:99", "no case is at line 99 of a.test.yaml"),
        ("a.test.yaml::nosuch", "a.test.yaml has no case `nosuch`"),
    ] {
        listed(part).assert_stderr(4, &[message]);
    }
    listed("a.test.yaml::pays once").assert_stdout(0, &["books a room"]);
}
