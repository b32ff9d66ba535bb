//! Damaged run stores and full disks: the saved data is shown, or an error explains the damage.
use std::fs;
use std::path::PathBuf;

use hotseat_testkit::FakeAgent;
use serde_json::json;

use crate::common::{HOTSEAT, Project, TEST_TIMEOUT};

/// Deterministic random number generator.
struct SeededRandom(u64);

impl SeededRandom {
    fn next_below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

fn agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let said = request.last_user_text();
        run.tool("c1", "look_up", &json!({"what": said}), Some(json!({"found": said})))
            .text(&format!("It is {said}."))
            .finished()
    })
}

fn store_path(project: &Project) -> PathBuf {
    let folder = project.workspace.path(".hotseat");
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .find(|path| path.extension().is_some_and(|extension| extension == "db" || extension == "sqlite"))
        .expect("a store")
}

/// A store with two runs that use every table.
fn project(agent: &FakeAgent) -> Project {
    let case = |n: usize| {
        format!(
            "---\nid: c{n}\nretries: 1\nturns: [{{ user: 'number {n}', assert: {{ text: {{ must_match: '{n}\\.' }} }} }}, {{ user: bye }}]\n"
        )
    };
    let failing = "---\nid: bad\nturns: [{ user: x, assert: { text: { must_match: never } } }]\n";
    let suite: String = (0..12).map(case).chain([failing.to_string()]).collect();
    let project = Project::with_agent(agent).suite("a", &suite);
    for _ in 0..2 {
        assert_eq!(project.hotseat(&["test"]).code, 1);
    }
    project
}

/// Exit code, stdout and stderr of commands that read the store.
fn store_output(project: &Project) -> Vec<(i32, String, String)> {
    [&["show", "last", "-v"][..], &["show", "last~1", "--json"], &["show", "last", "c3"]]
        .iter()
        .map(|arguments| {
            let output = project.hotseat(arguments);
            (output.code, output.stdout.clone(), output.stderr.clone())
        })
        .collect()
}

#[test]
fn damaged_store_is_reported_or_still_readable() {
    let agent = agent();
    let project = project(&agent);
    let path = store_path(&project);
    let sound = fs::read(&path).unwrap();
    let expected = store_output(&project);
    assert!(expected.iter().all(|(code, ..)| *code == 1 || *code == 0), "{expected:#?}");
    let mut numbers = SeededRandom(0x9e37_79b9_7f4a_7c15);
    let (mut told, mut unharmed) = (0, 0);
    for round in 0..150 {
        let mut bytes = sound.clone();
        let at = numbers.next_below(bytes.len());
        let what = match round % 5 {
            // Flips a bit, changes a byte, zeroes a block, swaps blocks, truncates the file.
            0 => {
                bytes[at] ^= 1 << numbers.next_below(8);
                "a bit"
            }
            1 => {
                bytes[at] = u8::try_from(numbers.next_below(256)).unwrap();
                "a byte"
            }
            2 => {
                let end = (at + 1 + numbers.next_below(600)).min(bytes.len());
                bytes[at..end].fill(0);
                "zeros"
            }
            3 => {
                let (page, count) = (4096, bytes.len() / 4096);
                let (one, other) = (numbers.next_below(count), numbers.next_below(count));
                for offset in 0..page {
                    bytes.swap(one * page + offset, other * page + offset);
                }
                "pages"
            }
            _ => {
                bytes.truncate(at);
                "the end"
            }
        };
        fs::write(&path, &bytes).unwrap();
        for ((code, stdout, stderr), (was_code, was_stdout, was_stderr)) in
            store_output(&project).iter().zip(&expected)
        {
            if (code, stdout, stderr) == (was_code, was_stdout, was_stderr) {
                unharmed += 1;
                continue;
            }
            let context = format!("{what} at {at} in round {round}\nexit code {code}\n{stdout}\n{stderr}");
            assert!(*code == 3 || *code == 2, "{context}");
            assert!(stderr.contains("error: ") || stdout.contains("\"type\":\"error\""), "{context}");
            told += 1;
        }
    }
    assert!(told > 20 && unharmed > 20, "{told} told, {unharmed} unharmed: the test tries both");
}

/// Changes that SQLite does not detect: characters within stored values.
#[test]
fn altered_rows_are_detected() {
    let agent = agent();
    let project = project(&agent);
    let path = store_path(&project);
    let sound = fs::read(&path).unwrap();
    let mut found = 0;
    for (what, by) in
        [("c3", "c4"), ("passed", "failed"), ("a.test.yaml", "b.test.yaml"), ("assertion", "assertiom")]
    {
        let at: Vec<usize> = (0..sound.len() - what.len())
            .filter(|at| &sound[*at..*at + what.len()] == what.as_bytes())
            .collect();
        for at in at.into_iter().take(12) {
            let mut bytes = sound.clone();
            bytes[at..at + by.len()].copy_from_slice(by.as_bytes());
            fs::write(&path, &bytes).unwrap();
            let before = ["last", "last~1"].map(|run| project.hotseat(&["show", run]));
            if before.iter().any(|output| output.stderr.contains("damaged")) {
                found += 1;
            }
            for output in before {
                let is_sound = matches!(output.code, 0 | 1) && output.stderr.is_empty();
                let is_told = output.code == 3 && output.stderr.contains("error: ");
                assert!(is_sound || is_told, "{what} at {at}: {output}");
            }
        }
    }
    assert!(found > 10, "{found}");
}

/// Values that somebody edited, with the words about them. They name the run and what to do.
#[test]
fn commands_over_all_runs_name_the_damaged_one() {
    let agent = agent();
    let project = project(&agent);
    let path = store_path(&project);
    let sound = fs::read(&path).unwrap();
    let runs: Vec<serde_json::Value> = project
        .hotseat(&["runs", "--json"])
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let id = runs[0]["id"].as_str().expect("an id");
    let last = "run = (SELECT max(number) FROM run)";
    for (change, listed) in [
        (format!("UPDATE cases SET status = 'great' WHERE {last} AND id = 'bad'"), true),
        (format!("UPDATE cases SET status = 'passed' WHERE {last} AND id = 'bad'"), false),
        (format!("UPDATE cases SET id = 'other' WHERE {last} AND id = 'bad'"), false),
        (format!("UPDATE suite SET path = '/other' WHERE {last}"), false),
        ("UPDATE run SET about = x'00' WHERE number = (SELECT max(number) FROM run)".to_string(), true),
        ("UPDATE run SET summary = '{\"x' WHERE number = (SELECT max(number) FROM run)".to_string(), true),
    ] {
        fs::write(&path, &sound).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch(&change).unwrap();
        let commands = [&["list", "--last-failed"][..], &["test", "--last-failed"], &["runs"]];
        for arguments in &commands[..if listed { 3 } else { 2 }] {
            let output = project.hotseat(arguments);
            assert!(output.code == 3 && output.stdout.is_empty(), "{change}: {output}");
            assert!(
                output.stderr.contains(&format!("is damaged at run {}: ", &id[..8])),
                "{change}: {output}"
            );
            assert!(output.stderr.contains("help: restore it from a backup"), "{change}: {output}");
        }
    }
}

/// As on a read-only volume. Users who may write everywhere cannot see the difference.
#[test]
fn store_in_read_only_folder_can_be_read() {
    use std::os::unix::fs::PermissionsExt as _;

    let agent = agent();
    let project = project(&agent);
    let path = store_path(&project);
    let folder = path.parent().expect("a folder");
    let commands: [&[&str]; 5] = [
        &["runs"],
        &["show", "last"],
        &["compare", "last~1", "last"],
        &["extract", "last", "-o", "results"],
        &["list", "--last-failed"],
    ];
    let run_all =
        || commands.map(|arguments| project.hotseat(arguments)).map(|output| (output.code, output.stdout));
    let expected = run_all();
    let allow = |mode| fs::set_permissions(folder, fs::Permissions::from_mode(mode)).expect("an own folder");
    allow(0o555);
    let found = run_all();
    allow(0o755);
    assert_eq!(found, expected);
}

/// Simulates a full disk by limiting the file size.
#[test]
fn reports_run_that_cannot_be_saved() {
    let agent = FakeAgent::with_run(|run, request| {
        run.text(&format!("{} {}", request.last_user_text(), incompressible_text(&request.last_user_text())))
            .finished()
    });
    let case = |n: usize| format!("---\nid: c{n}\nturns: [{{ user: 'number {n}' }}]\n");
    let project = Project::with_agent(&agent).suite("a", &(0..60).map(case).collect::<String>());
    // The limit is in blocks of 512 bytes.
    let script = format!("ulimit -f 400; exec '{HOTSEAT}' test --parallel 1");
    let output = project.workspace.command("sh", &["-c", &script]).timeout(TEST_TIMEOUT).run();
    assert_eq!(output.code, 0, "what the agent did is known: {output}");
    assert!(output.stderr.contains("this run is not saved completely: "), "{output}");
    assert!(output.stderr.contains("run the cases again to save a run"), "{output}");
    let output = project.hotseat(&["show", "last"]);
    let says_so = output.stderr.contains("the last events of this run were not saved: ")
        || output.stderr.contains("this run is incomplete; `hotseat resume")
        || output.stderr.contains("there are no saved runs in ");
    assert!(says_so, "{output}");
    // If there was room for the end of the run, the list says what happened.
    let listed = project.hotseat(&["runs"]);
    let says_so = listed.stdout.contains("(the last events of this run were not saved: ")
        || listed.stdout.contains("(killed)")
        || listed.stdout.is_empty();
    assert!(says_so, "{listed}");
    // An unwritable report is an error.
    let script = format!("ulimit -f 40; exec '{HOTSEAT}' test --parallel 1 --no-store -o out.json");
    let write_report = || project.workspace.command("sh", &["-c", &script]).timeout(TEST_TIMEOUT).run();
    write_report().assert_stderr(3, &["out.json"]);
    assert!(!project.workspace.path("out.json").exists(), "a report without content is none");
    project.workspace.file("out.json", "");
    write_report().assert_stderr(3, &["out.json"]);
    assert_eq!(project.workspace.read("out.json"), "", "the file was there before");
}

/// SQLite writes to a deleted file without an error.
#[test]
fn reports_store_that_is_deleted_during_the_run() {
    for delete in
        ["rm -r .hotseat", "rm .hotseat/runs.db", "rm -r .hotseat; mkdir .hotseat; : > .hotseat/runs.db"]
    {
        let answer = "printf '{\"type\": \"text\", \"text\": \"Hello\"}\\n{\"type\": \"done\"}\\n'";
        let project = Project::with_config("target:\n  type: command\n  command: [sh, agent.sh]\n")
            .file("agent.sh", &format!("read -r message\n{delete}\n{answer}\n"))
            .suite("a", "name: greets\nturns: [{ user: Hello }]\n");
        let output = project.hotseat(&["test", "-o", "report.json"]);
        assert_eq!(output.code, 0, "the results are known: {output}");
        assert!(output.stdout.contains("ALL TESTS PASSED"), "{output}");
        assert!(project.workspace.read("report.json").contains("\"greets\""), "{output}");
        let warning = output.stderr.lines().find(|line| line.contains("this run is not saved completely: "));
        let warning = warning.unwrap_or_else(|| panic!("{delete}: {output}"));
        for part in
            [".hotseat/runs.db was deleted or replaced during the run", "run the cases again to save a run"]
        {
            assert!(warning.contains(part), "{part}: {output}");
        }
        let shown = project.hotseat(&["show", "last"]);
        assert!(shown.stderr.contains("no saved runs"), "{delete}: {shown}");
    }
}

/// Incompressible text.
fn incompressible_text(seed: &str) -> String {
    let seed =
        seed.bytes().fold(0x1234_5678_9abc_def1_u64, |sum, byte| sum.wrapping_mul(31) ^ u64::from(byte));
    let mut numbers = SeededRandom(seed | 1);
    (0..8_000).map(|_| char::from(b'!' + u8::try_from(numbers.next_below(90)).unwrap())).collect()
}
