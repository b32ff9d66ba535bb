//! Every command line of the documentation, verbatim.

use hotseat_testkit::ProgramOutput;
use serde_json::Value;

use super::adapters::{SampleProject, sample};

/// Commands of a sample; continued lines are joined.
fn sample_commands(path: &str) -> Vec<String> {
    let text = sample(path).replace("\\\n", " ");
    text.lines().filter(|line| line.starts_with("yao ")).map(str::to_string).collect()
}

/// A project with all files that the commands use.
fn sample_project() -> SampleProject {
    let stages = sample("documents/standard/stages.jsonl");
    SampleProject::create()
        .with_test_file("multi-turn.jsonl", &sample("suites/multi-turn.jsonl"))
        .with_test_file("expense.jsonl", &stages)
        .with_test_file("dynamic.jsonl", &sample("documents/standard/dynamic.jsonl"))
        .with_test_file("inputs.jsonl", &sample("documents/standard/hooks.jsonl"))
        .with_test_file("generate.ts", &generator("default function", "S001"))
        .with_test_file("expense.ts", &generator("function generate", "S002"))
}

/// A script with a generator function.
fn generator(function: &str, id: &str) -> String {
    format!("export {function}() {{ return [{{ id: \"{id}\", input: \"Hello, how are you?\" }}]; }}\n")
}

/// Runs a command of the documentation. Only the program name differs.
fn run_command(house: &SampleProject, command: &str) -> ProgramOutput {
    let line = format!("yao() {{ shift 2; \"$HOTSEAT\" test \"$@\"; }}\n{command}");
    let output = house.with_environment(house.project.workspace.command("sh", &["-c", &line])).run();
    crate::common::assert_no_panic(&output);
    output
}

/// Runs each command of a sample and asserts its exit code and part of its output.
#[track_caller]
fn run_all_commands(path: &str, expected: &[(i32, &str)]) -> SampleProject {
    let house = sample_project();
    let commands = sample_commands(path);
    assert_eq!(commands.len(), expected.len(), "{commands:#?}");
    for (command, (code, words)) in commands.iter().zip(expected) {
        let output = run_command(&house, command);
        let printed = format!("{}{}", output.stdout, output.stderr);
        assert!(output.code == *code && printed.contains(words), "{command}\n{words}\n{output}");
    }
    house
}

#[test]
fn input_sources() {
    run_all_commands(
        "documents/multi-turn/sources.sh",
        &[(0, "SKIPPED"), (0, "Fine, thank you."), (0, "[G003]"), (0, "[S001]"), (0, "[G003]")],
    );
}

#[test]
fn multi_turn_examples() {
    let house = run_all_commands(
        "documents/multi-turn/examples.sh",
        &[
            (0, "[expense-turn3]"),
            (0, "What type of expense would you like to submit?"),
            (0, "[G003]"),
            (0, "[S002]"),
            (0, "[G003]"),
            (0, "no errors in 3 cases"),
            (0, "SKIPPED"),
            (0, "Hint: Add more turns, use --interactive, or configure simulator"),
            (1, "FAILED"),
            (0, "Agent: [tool: create_expense("),
        ],
    );
    // The generated suite is run again.
    house.command(&["test", "-i", "tests/generated.jsonl"]).run().assert_code(0);
}

#[test]
fn hooks_around_the_run() {
    let house = run_all_commands("documents/standard/hooks.sh", &[(0, "ALL TESTS PASSED")]);
    let log = house.project.workspace.read("hooks.jsonl");
    let told: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let around = |key: &str| told.iter().position(|told| told.get(key).is_some());
    assert_eq!((around("test_cases"), around("results")), (Some(0), Some(3)), "{told:#?}");
}

#[test]
fn single_turn_examples() {
    run_all_commands(
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

/// Hook names refer to script functions or commands of the project file; unknown names are errors.
#[test]
fn rejects_undefined_hooks() {
    let house = sample_project();
    run_command(&house, "yao agent test -i ./tests/inputs.jsonl --before env_test.Missing")
        .assert_stderr(2, &["env_test.Missing"]);
}
