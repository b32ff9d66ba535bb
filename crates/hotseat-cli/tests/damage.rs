//! Stores of runs that were damaged, and disks that are full: what is shown is what was kept, or words say that it is not.
#![cfg(unix)]

mod common;

use std::fs;
use std::path::PathBuf;

use hotseat_testkit::FakeAgent;
use hotseat_testkit::agui::Run;
use serde_json::json;

use common::{HOTSEAT, LONG, Project};

/// A generator of numbers that are the same in each run of the test.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

fn agent() -> FakeAgent {
    FakeAgent::start(|request| {
        let said = request.last_user_text();
        let run = Run::of(request).started();
        run.tool("c1", "look_up", &json!({"what": said}), Some(json!({"found": said})))
            .text(&format!("It is {said}."))
            .finished()
    })
}

fn store(project: &Project) -> PathBuf {
    let folder = project.workspace.path(".hotseat");
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .find(|path| path.extension().is_some_and(|extension| extension == "db" || extension == "sqlite"))
        .expect("a store")
}

/// A store of two runs with everything that a store holds.
fn project(agent: &FakeAgent) -> Project {
    let case = |n: usize| {
        format!(
            "---\nid: c{n}\nretries: 1\nturns: [{{ user: 'number {n}', assert: {{ text: {{ must_match: '{n}\\.' }} }} }}, {{ user: bye }}]\n"
        )
    };
    let failing = "---\nid: bad\nturns: [{ user: x, assert: { text: { must_match: never } } }]\n";
    let suite: String = (0..12).map(case).chain([failing.to_string()]).collect();
    let project = Project::of(agent).suite("a", &suite);
    for _ in 0..2 {
        assert_eq!(project.hotseat(&["test"]).code, 1);
    }
    project
}

/// What commands show of the store: exit code, output and what is said.
fn shown(project: &Project) -> Vec<(i32, String, String)> {
    [&["show", "last", "-v"][..], &["show", "last~1", "--json"], &["show", "last", "c3"]]
        .iter()
        .map(|arguments| {
            let output = project.hotseat(arguments);
            (output.code, output.stdout.clone(), output.stderr.clone())
        })
        .collect()
}

#[test]
fn a_damaged_store_shows_what_was_kept_or_says_that_it_is_damaged() {
    let agent = agent();
    let project = project(&agent);
    let path = store(&project);
    let sound = fs::read(&path).unwrap();
    let expected = shown(&project);
    assert!(expected.iter().all(|(code, ..)| *code == 1 || *code == 0), "{expected:#?}");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut told, mut unharmed) = (0, 0);
    for round in 0..150 {
        let mut bytes = sound.clone();
        let at = numbers.below(bytes.len());
        let what = match round % 5 {
            // A bit, a byte, a piece of nothing, a piece that was swapped, an end that is missing.
            0 => {
                bytes[at] ^= 1 << numbers.below(8);
                "a bit"
            }
            1 => {
                bytes[at] = u8::try_from(numbers.below(256)).unwrap();
                "a byte"
            }
            2 => {
                let end = (at + 1 + numbers.below(600)).min(bytes.len());
                bytes[at..end].fill(0);
                "zeros"
            }
            3 => {
                let (page, count) = (4096, bytes.len() / 4096);
                let (one, other) = (numbers.below(count), numbers.below(count));
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
            shown(&project).iter().zip(&expected)
        {
            if (code, stdout, stderr) == (was_code, was_stdout, was_stderr) {
                unharmed += 1;
                continue;
            }
            let context = format!("{what} at {at} in round {round}\nexit code {code}\n{stdout}\n{stderr}");
            assert!(*code == 3 || *code == 2, "{context}");
            assert!(stderr.contains("error: "), "{context}");
            told += 1;
        }
    }
    assert!(told > 20 && unharmed > 20, "{told} told, {unharmed} unharmed: the test tries both");
}

/// What SQLite itself does not notice: letters within what is kept.
#[test]
fn letters_that_were_altered_in_a_row_are_noticed() {
    let agent = agent();
    let project = project(&agent);
    let path = store(&project);
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

/// A disk that is full, as far as a process can be shown one: files may not grow beyond a limit.
#[test]
fn a_run_that_cannot_be_kept_any_more_says_so() {
    let agent = FakeAgent::start(|request| {
        Run::of(request)
            .started()
            .text(&format!("{} {}", request.last_user_text(), noise(&request.last_user_text())))
            .finished()
    });
    let case = |n: usize| format!("---\nid: c{n}\nturns: [{{ user: 'number {n}' }}]\n");
    let project = Project::of(&agent).suite("a", &(0..60).map(case).collect::<String>());
    // The limit counts in pieces of 512 bytes.
    let script = format!("ulimit -f 400; exec '{HOTSEAT}' test --parallel 1");
    let output = project.workspace.command("sh", &["-c", &script]).timeout(LONG).run();
    assert_eq!(output.code, 0, "what the agent did is known: {output}");
    assert!(output.stderr.contains("this run is not kept: "), "{output}");
    let output = project.hotseat(&["show", "last"]);
    let says_so = output.stderr.contains("is not kept: ")
        || output.stderr.contains("did not come to its end")
        || output.stderr.contains("no run");
    assert!(says_so, "{output}");
    // A report that cannot be written is an error.
    let script = format!("ulimit -f 40; exec '{HOTSEAT}' test --parallel 1 --no-store -o out.json");
    let output = project.workspace.command("sh", &["-c", &script]).timeout(LONG).run();
    assert_eq!(output.code, 3, "{output}");
    assert!(output.stderr.contains("out.json"), "{output}");
}

/// Letters that nothing makes shorter.
fn noise(seed: &str) -> String {
    let seed =
        seed.bytes().fold(0x1234_5678_9abc_def1_u64, |sum, byte| sum.wrapping_mul(31) ^ u64::from(byte));
    let mut numbers = Numbers(seed | 1);
    (0..8_000).map(|_| char::from(b'!' + u8::try_from(numbers.below(90)).unwrap())).collect()
}
