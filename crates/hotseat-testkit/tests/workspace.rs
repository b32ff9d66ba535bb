//! What a program sees in a workspace, and what a test sees of the program.
#![cfg(unix)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use hotseat_testkit::Workspace;

fn panic_of<T>(run: impl FnOnce() -> T) -> String {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(_) => panic!("it should have panicked"),
        Err(panic) => *panic.downcast::<String>().expect("words"),
    }
}

#[test]
fn output_is_code_stdout_and_stderr() {
    let workspace = Workspace::new();
    let output = workspace.run("sh", &["-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (3, "out\n", "err\n"));
    assert_eq!(output.to_string(), "exit code: 3\n----- stdout -----\nout\n\n----- stderr -----\nerr\n");
}

#[test]
fn a_signal_shows_in_the_code_as_in_a_shell() {
    assert_eq!(Workspace::new().run("sh", &["-c", "kill -TERM $$"]).code, 128 + 15);
}

#[test]
fn the_environment_is_empty_but_for_path_and_home() {
    let workspace = Workspace::new();
    let output = workspace.command("env", &[]).env("GIVEN", "1").run();
    let mut names: Vec<&str> =
        output.stdout.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    assert_eq!(names, ["GIVEN", "HOME", "PATH"]);
    assert!(output.stdout.contains(&format!("HOME={}\n", workspace.root().display())));
}

#[test]
fn files_get_their_folders_and_programs_run_among_them() {
    let workspace = Workspace::new();
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
fn input_is_what_was_given_or_nothing() {
    let workspace = Workspace::new();
    assert_eq!(workspace.run("cat", &[]).stdout, "");
    // More than a pipe holds, both ways.
    let long = "0123456789".repeat(100_000);
    assert_eq!(workspace.command("cat", &[]).stdin(&long).run().stdout, long);
    assert_eq!(workspace.command("true", &[]).stdin(&long).run().code, 0);
}

#[test]
fn a_program_that_takes_too_long_is_killed_with_its_children() {
    let workspace = Workspace::new();
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
    // Signal 0 reaches nobody once the child is dead; a shell is asked until whoever reaps it has.
    let gone = "while kill -0 $(cat child) 2>/dev/null && ! grep -q 'State:.Z' /proc/$(cat child)/status; do :; done";
    assert_eq!(workspace.run("sh", &["-c", gone]).code, 0);
}

#[test]
fn a_program_must_not_leave_anything_behind() {
    let workspace = Workspace::new();
    let message = panic_of(|| workspace.run("sh", &["-c", "sleep 1000 & echo done"]));
    assert!(message.contains("left something behind") && message.contains("done"), "{message}");
}

#[test]
fn an_interrupt_reaches_the_program_alone_and_ctrl_c_its_group() {
    let workspace = Workspace::new();
    // A shell runs its own trap as soon as the command in the foreground has ended.
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
fn waiting_for_text_that_never_comes_fails() {
    let workspace = Workspace::new();
    let message = panic_of(|| workspace.command("echo", &["other"]).spawn().wait_for_stdout("this"));
    assert!(message.contains("never printed \"this\" to stdout") && message.contains("other"), "{message}");
    let message = panic_of(|| {
        let silent = workspace.command("sleep", &["1000"]).timeout(Duration::from_millis(50));
        silent.spawn().wait_for_stderr("this")
    });
    assert!(message.contains("never printed \"this\" to stderr"), "{message}");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let message = panic_of(|| Workspace::new().run("no-such-program", &["x"]));
    assert!(message.contains("cannot start") && message.contains("no-such-program"), "{message}");
}
