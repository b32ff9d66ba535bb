//! Errors in large numbers and of large size: output and time stay bounded.
#![cfg(unix)]

mod common;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use common::Project;

/// What a flood may print.
const MAX_OUTPUT_BYTES: usize = 200_000;

/// What a flood may take. It takes well under a second of processor time; machines are busy.
const MAX_TIME: Duration = Duration::from_secs(20);

#[track_caller]
fn is_bounded(project: &Project, args: &[&str], expected: &str) {
    let started = Instant::now();
    let output = project.hotseat(args);
    let printed = output.stdout.len() + output.stderr.len();
    assert!(started.elapsed() < MAX_TIME, "{args:?}: {:?}", started.elapsed());
    assert!(printed < MAX_OUTPUT_BYTES, "{args:?}: {printed} bytes");
    assert_eq!(output.code, 2, "{args:?}: {printed} bytes");
    let all = output.stdout + &output.stderr;
    assert!(all.contains(expected), "{args:?}: {}", &all[..all.len().min(3_000)]);
}

#[test]
fn thousands_of_unknown_keys_are_counted_and_not_listed() {
    let mut lines = "name: a\nturns: [{ user: Hello }]\n".to_string();
    for number in 0..20_000 {
        writeln!(lines, "unknown_{number}: 1").expect("memory takes everything");
    }
    let inline: Vec<String> = (0..20_000).map(|number| format!("unknown_{number}: 1")).collect();
    let one_line = format!("{{ name: a, turns: [{{ user: Hello }}], {} }}\n", inline.join(", "));
    for suite in [lines, one_line] {
        let project = Project::with("target: { endpoint: 'http://127.0.0.1:9' }\n").suite("a", &suite);
        is_bounded(&project, &["test"], "… and 19900 more errors");
        is_bounded(&project, &["test", "--json"], "… and 19900 more errors");
    }
}

#[test]
fn a_message_of_many_megabytes_is_cut() {
    let project = Project::with("target: { endpoint: 'http://127.0.0.1:9' }\n")
        .file("a_test.ts", "throw new Error('x'.repeat(10_000_000));\n");
    is_bounded(&project, &["test", "a_test.ts"], "more bytes)");
    is_bounded(&project, &["test", "--json", "a_test.ts"], "more bytes)");
}
