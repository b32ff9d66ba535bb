//! Every command line of the documents, as it stands there.

use hotseat_testkit::Output;
use serde_json::Value;

use crate::doors::{House, sample};

/// The commands of a sample: what stands on several lines is one.
fn commands(path: &str) -> Vec<String> {
    let text = sample(path).replace("\\\n", " ");
    text.lines().filter(|line| line.starts_with("yao ")).map(str::to_string).collect()
}

/// A project with all files that the commands name.
fn house() -> House {
    let stages = sample("documents/standard/stages.jsonl");
    House::open()
        .with("multi-turn.jsonl", &sample("suites/multi-turn.jsonl"))
        .with("expense.jsonl", &stages)
        .with("dynamic.jsonl", &sample("documents/standard/dynamic.jsonl"))
        .with("inputs.jsonl", &sample("documents/standard/hooks.jsonl"))
        .with("generate.ts", &generator("default function", "S001"))
        .with("expense.ts", &generator("function generate", "S002"))
}

/// A script with a function that makes a case up.
fn generator(function: &str, id: &str) -> String {
    format!("export {function}() {{ return [{{ id: \"{id}\", input: \"Hello, how are you?\" }}]; }}\n")
}

/// Runs a command of the documents. The name of the program is the only thing that differs.
fn run(house: &House, command: &str) -> Output {
    let line = format!("yao() {{ shift 2; \"$HOTSEAT\" test \"$@\"; }}\n{command}");
    let output = house.knowing(house.project.workspace.command("sh", &["-c", &line])).run();
    crate::common::never_panicked(&output);
    output
}

/// How each command of a sample ends, and words of what it prints.
#[track_caller]
fn all(path: &str, expected: &[(i32, &str)]) -> House {
    let house = house();
    let commands = commands(path);
    assert_eq!(commands.len(), expected.len(), "{commands:#?}");
    for (command, (code, words)) in commands.iter().zip(expected) {
        let output = run(&house, command);
        let printed = format!("{}{}", output.stdout, output.stderr);
        assert!(output.code == *code && printed.contains(words), "{command}\n{words}\n{output}");
    }
    house
}

#[test]
fn sources_of_input() {
    all(
        "documents/multi-turn/sources.sh",
        &[(0, "SKIPPED"), (0, "Fine, thank you."), (0, "[G003]"), (0, "[S001]"), (0, "[G003]")],
    );
}

#[test]
fn examples_of_several_turns() {
    let house = all(
        "documents/multi-turn/examples.sh",
        &[
            (0, "[expense-turn3]"),
            (0, "What type of expense would you like to submit?"),
            (0, "[G003]"),
            (0, "[S002]"),
            (0, "[G003]"),
            (0, "nothing is wrong with 3 cases"),
            (0, "SKIPPED"),
            (0, "Hint: Add more turns, use --interactive, or configure simulator"),
            (1, "FAILED"),
            (0, "Agent: [tool: create_expense("),
        ],
    );
    // What was generated and kept is run again.
    let again = house.command(&["test", "-i", "tests/generated.jsonl"]).run();
    assert_eq!(again.code, 0, "{again}");
}

#[test]
fn hooks_around_the_run() {
    let house = all("documents/standard/hooks.sh", &[(0, "ALL TESTS PASSED")]);
    let log = house.project.workspace.read("hooks.jsonl");
    let told: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let around = |key: &str| told.iter().position(|told| told.get(key).is_some());
    assert_eq!((around("test_cases"), around("results")), (Some(0), Some(3)), "{told:#?}");
}

#[test]
fn examples_of_one_turn() {
    all(
        "documents/standard/examples.sh",
        &[
            (0, "Fine, thank you."),
            (0, "[expense-turn3]"),
            (0, "[G003]"),
            (0, "3/3 checkpoints"),
            (0, "Parallel: "),
            (0, "create_expense"),
        ],
    );
}

/// Names of hooks lead to functions of scripts or to commands of the project file, or nowhere.
#[test]
fn hooks_that_nobody_has_written_are_refused() {
    let house = house();
    let output = run(&house, "yao agent test -i ./tests/inputs.jsonl --before env_test.Missing");
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("env_test.Missing"), "{output}");
}
