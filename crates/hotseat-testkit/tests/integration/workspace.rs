//! Environment of a program in a workspace, and its observable output.
#![cfg(unix)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use hotseat_testkit::TestWorkspace;

fn panic_of<T>(run: impl FnOnce() -> T) -> String {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(_) => panic!("it should have panicked"),
        Err(panic) => *panic.downcast::<String>().expect("words"),
    }
}

#[test]
fn output_has_code_stdout_and_stderr() {
    let workspace = TestWorkspace::new();
    let output = workspace.run("sh", &["-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (3, "out\n", "err\n"));
    assert_eq!(output.to_string(), "exit code: 3\n----- stdout -----\nout\n\n----- stderr -----\nerr\n");
}

#[test]
fn signal_exit_code_matches_shell() {
    assert_eq!(TestWorkspace::new().run("sh", &["-c", "kill -TERM $$"]).code, 128 + 15);
}

#[test]
fn environment_contains_only_path_and_home() {
    let workspace = TestWorkspace::new();
    let output = workspace.command("env", &[]).env("GIVEN", "1").run();
    let mut names: Vec<&str> =
        output.stdout.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    assert_eq!(names, ["GIVEN", "HOME", "PATH"]);
    assert!(output.stdout.contains(&format!("HOME={}\n", workspace.root().display())));
}

#[test]
fn creates_parent_folders_and_runs_in_workspace() {
    let workspace = TestWorkspace::new();
    let path = workspace.file("a/b/c.txt", "text");
    assert_eq!((path.clone(), workspace.read("a/b/c.txt")), (workspace.path("a/b/c.txt"), "text".to_owned()));
    let output = workspace.command("sh", &["-c", "pwd; cat c.txt"]).cwd("a/b").run();
    assert_eq!(output.redacted().stdout, "[DIR]/a/b\ntext");
    assert_eq!(workspace.run("pwd", &[]).redacted().stdout, "[DIR]\n");

    let root = workspace.root().to_owned();
    drop(workspace);
    assert!(!root.exists());
}

#[test]
fn stdin_is_given_text_or_empty() {
    let workspace = TestWorkspace::new();
    assert_eq!(workspace.run("cat", &[]).stdout, "");
    // More than a pipe buffer, in both directions.
    let long = "0123456789".repeat(100_000);
    assert_eq!(workspace.command("cat", &[]).stdin(&long).run().stdout, long);
    assert_eq!(workspace.command("true", &[]).stdin(&long).run().code, 0);
}

#[test]
fn slow_program_is_killed_with_children() {
    let workspace = TestWorkspace::new();
    let script = "sleep 1000 & echo child $!; echo problem >&2; wait";
    let start = Instant::now();
    let message = panic_of(|| {
        let mut running = workspace.command("sh", &["-c", script]).timeout(Duration::from_secs(2)).spawn();
        let printed = running.wait_for_stdout("\n");
        workspace.file("child", printed.trim().strip_prefix("child ").expect("the child's id"));
        running.wait()
    });
    assert!(start.elapsed() < Duration::from_secs(20), "it waited for the child");
    assert!(message.contains("was still running after 2s"), "{message}");
    assert!(message.contains("child ") && message.contains("problem"), "{message}");
    // Signal 0 fails once the child is dead and reaped, so a shell polls for that.
    let gone = "while kill -0 $(cat child) 2>/dev/null && ! grep -q 'State:.Z' /proc/$(cat child)/status; do :; done";
    assert_eq!(workspace.run("sh", &["-c", gone]).code, 0);
}

#[test]
fn leftover_processes_fail_test() {
    let workspace = TestWorkspace::new();
    let message = panic_of(|| workspace.run("sh", &["-c", "sleep 1000 & echo done"]));
    assert!(message.contains("left something behind") && message.contains("done"), "{message}");
}

#[test]
fn interrupt_reaches_program_and_ctrl_c_its_group() {
    let workspace = TestWorkspace::new();
    // A shell runs its trap after the foreground command has ended.
    workspace.file(
        "child",
        "trap 'echo child; exit' INT; echo $1; while [ ! -e go ]; do sleep 0.01; done; echo went",
    );
    let script = "trap 'echo parent' INT; sh child first; rm go; sh child second; echo over";
    let mut running = workspace.command("sh", &["-c", script]).spawn();
    running.wait_for_stdout("first\n");
    running.interrupt();
    workspace.file("go", "");
    running.wait_for_stdout("second\n");
    running.press_ctrl_c();
    assert_eq!(running.wait().stdout, "first\nwent\nparent\nsecond\nchild\nparent\nover\n");
}

#[test]
fn waiting_for_missing_text_fails() {
    let workspace = TestWorkspace::new();
    let message = panic_of(|| workspace.command("echo", &["other"]).spawn().wait_for_stdout("this"));
    assert!(message.contains("never printed \"this\" to stdout") && message.contains("other"), "{message}");
    let message = panic_of(|| {
        let silent = workspace.command("sleep", &["1000"]).timeout(Duration::from_millis(50));
        silent.spawn().wait_for_stderr("this")
    });
    assert!(message.contains("never printed \"this\" to stderr"), "{message}");
}

#[test]
fn missing_program_is_named() {
    let message = panic_of(|| TestWorkspace::new().run("no-such-program", &["x"]));
    assert!(message.contains("cannot start") && message.contains("no-such-program"), "{message}");
}
