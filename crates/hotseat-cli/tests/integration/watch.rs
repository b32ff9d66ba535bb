//! `hotseat test --watch`: at a terminal with keys, and without one.

use std::time::Duration;

use hotseat_testkit::{FakeAgent, SpawnedProgram};

use crate::common::{Project, TEST_TIMEOUT, echo_agent, exists};

fn case(name: &str, expected: &str) -> String {
    format!("name: {name}\nturns: [{{ user: hello, assert: {{ text: {{ must_match: {expected} }} }} }}]\n")
}

fn watched(agent: &FakeAgent) -> Project {
    Project::with_agent(agent)
        .suite("a", &case("first", "hello"))
        .suite("b", &case("second", "goodbye"))
        .file("helpers.ts", "export const word: string = \"hello\";\n")
        .file(
            "c_test.ts",
            "import { agent, expect, it, user } from \"hotseat\";\nimport { word } from \"./helpers.ts\";\nit(\"third\", () => { user.says(word); expect(agent).toContain(word); });\n",
        )
}

#[track_caller]
fn start(project: &Project, arguments: &[&str]) -> SpawnedProgram {
    let arguments = [&["test", "--watch", "--color", "never"], arguments].concat();
    project.command(&arguments).terminal(100).timeout(TEST_TIMEOUT).spawn()
}

/// Waits until a run has ended, and returns its output.
#[track_caller]
fn wait_for_run(running: &mut SpawnedProgram, number: usize) -> String {
    let all = running.wait_for_stdout(&format!("── run {number} ended; watching "));
    let start = all.find(&format!("── run {number}: ")).expect("a run begins before it ends");
    all[start..].to_string()
}

#[test]
fn changed_files_run_what_they_affect() {
    let agent = echo_agent();
    let project = watched(&agent);
    let mut running = start(&project, &[]);
    let first = wait_for_run(&mut running, 1);
    assert!(first.contains("Total:     3") && first.contains("3 suites"), "{first}");
    assert!(first.contains("keys: a all"), "{first}");

    project.workspace.file("b.test.yaml", &case("renamed", "hello"));
    let run = wait_for_run(&mut running, 2);
    assert!(
        run.contains("b.test.yaml changed") && run.contains("renamed") && run.contains("Total:     1"),
        "{run}"
    );

    project.workspace.file("helpers.ts", "export const word: string = \"hello you\";\n");
    let run = wait_for_run(&mut running, 3);
    assert!(
        run.contains("helpers.ts changed") && run.contains("third") && run.contains("Total:     1"),
        "{run}"
    );

    project.workspace.file("d.test.yaml", &case("added", "hello"));
    let run = wait_for_run(&mut running, 4);
    assert!(run.contains("added") && run.contains("Total:     1"), "{run}");

    let config = project.workspace.read("hotseat.yaml");
    project.workspace.file("hotseat.yaml", &format!("{config}parallel: 2\n"));
    let run = wait_for_run(&mut running, 5);
    assert!(run.contains("hotseat.yaml changed, all cases") && run.contains("Total:     4"), "{run}");

    // A mistake is shown, and mending it runs the case.
    project.workspace.file("a.test.yaml", "name: first\nturnz: []\n");
    let run = wait_for_run(&mut running, 6);
    assert!(run.contains("unknown key `turnz`"), "{run}");
    project.workspace.file("a.test.yaml", &case("mended", "hello"));
    assert!(wait_for_run(&mut running, 7).contains("mended"));
    running.press_keys("q");
    assert_eq!(running.wait().code, 0);
}

#[test]
fn keys_select_cases() {
    let agent = echo_agent();
    let project = watched(&agent);
    let mut running = start(&project, &["-k", "first or second"]);
    assert!(wait_for_run(&mut running, 1).contains("Total:     2"));
    running.press_keys("f");
    let run = wait_for_run(&mut running, 2);
    assert!(run.contains("failed cases") && run.contains("second") && run.contains("Total:     1"), "{run}");
    running.press_keys("\n");
    let run = wait_for_run(&mut running, 3);
    assert!(run.contains("again") && run.contains("Total:     1"), "{run}");
    running.press_keys("a");
    assert!(wait_for_run(&mut running, 4).contains("Total:     2"));
    // An erased character may take several bytes, and an arrow is no Esc.
    running.press_keys("/thirxö\u{7f}\u{7f}\u{1b}[A\u{1b}OAd\n");
    let run = wait_for_run(&mut running, 5);
    assert!(run.contains("-k third") && run.contains("Total:     1"), "{run}");
    running.press_keys("t\u{1b}");
    running.press_keys("tno such case\n");
    let run = wait_for_run(&mut running, 6);
    assert!(run.contains("no case selected") || run.contains("not a valid expression"), "{run}");
    running.press_keys("a");
    assert!(wait_for_run(&mut running, 7).contains("Total:     2"));
    running.press_keys("q");
    assert_eq!(running.wait().code, 1, "the last run failed");
}

/// The failed cases are known from saved runs.
#[test]
fn unsaved_runs_have_no_key_for_failed_cases() {
    let agent = echo_agent();
    let unsaved = format!("target: {{ endpoint: '{agent}' }}\nstore: false\n");
    for (project, arguments) in [
        (Project::with_agent(&agent), &["--no-store"][..]),
        (Project::with_agent(&agent), &["--shard", "1/1"]),
        (Project::with_config(&unsaved), &[]),
    ] {
        let project = project.suite("b", &case("second", "goodbye"));
        let mut running = start(&project, arguments);
        let run = wait_for_run(&mut running, 1);
        assert!(run.contains("keys: a all · t filter · Enter again · q quit"), "{run}");
        running.press_keys("fa");
        let run = wait_for_run(&mut running, 2);
        assert!(run.contains("all cases") && run.contains("Total:     1"), "{run}");
        running.press_keys("q");
        assert_eq!(running.wait().code, 1);
    }
}

#[test]
fn ctrl_c_quits_between_runs_and_during_one() {
    let agent = FakeAgent::with_text("hello");
    let project = watched(&agent);
    let mut running = start(&project, &["a.test.yaml"]);
    wait_for_run(&mut running, 1);
    running.interrupt();
    assert_eq!(running.wait().code, 130);
}

/// A shell sets the modes of its terminal when a program is stopped, and continues it with a signal.
#[test]
fn keys_work_after_the_process_was_stopped() {
    let agent = echo_agent();
    let project = watched(&agent);
    let mut running = start(&project, &["-k", "first"]);
    wait_for_run(&mut running, 1);
    let (pid, shell) = (running.id(), |script: &str| project.workspace.run("sh", &["-c", script]));
    let modes = || shell(&format!("stty -a < /proc/{pid}/fd/0")).stdout;
    assert!(modes().contains("-icanon"), "{}", modes());
    shell(&format!("stty icanon echo < /proc/{pid}/fd/0 && kill -CONT {pid}")).assert_code(0);
    running.press_keys("a");
    wait_for_run(&mut running, 2);
    assert!(modes().contains("-icanon"), "{}", modes());
    running.press_keys("q");
    assert_eq!(running.wait().code, 0);
}

#[test]
fn changed_program_runs_all_cases() {
    let program = |answer: &str| {
        format!(
            "while read -r line; do\n  echo '{{\"type\":\"text\",\"text\":\"{answer}\"}}'\n  echo '{{\"type\":\"done\"}}'\ndone\n"
        )
    };
    let project = Project::with_config("target: { type: command, command: [sh, agent.sh], cwd: agent }\n")
        .suite("a", &case("first", "hello"))
        .file("agent/agent.sh", &program("goodbye"));
    let mut running = start(&project, &[]);
    let run = wait_for_run(&mut running, 1);
    assert!(run.contains("1 agent file") && run.contains("Failed:    1"), "{run}");
    project.workspace.file("agent/agent.sh", &program("hello"));
    let run = wait_for_run(&mut running, 2);
    assert!(run.contains("agent/agent.sh changed, all cases") && run.contains("Failed:    0"), "{run}");
    running.press_keys("q");
    assert_eq!(running.wait().code, 0);
}

/// Reports that are written into the folder of an agent, and other files there that its definition does not name.
#[test]
fn only_named_files_of_an_agent_run_all_cases() {
    let rules = |answer: &str| format!("rules:\n  - reply: {answer}\n");
    let tool = "tools: [{ name: look, description: Looks., input: { type: object }, task: look }]\n";
    let project = Project::with_config("target: { type: embedded, agent: shop }\n")
        .suite("a", &case("first", "hello"))
        .file("shop/agent.yaml", &format!("name: shop\nsystem: s\n{tool}"))
        .file("shop/script.yaml", &rules("goodbye"))
        .file("shop/tasks/look.yaml", "steps: [{ mock: { returns: one } }]\n");
    let mut running = start(&project, &["-o", "shop/summary.md", "--trace", "shop/trace.yaml"]);
    let run = wait_for_run(&mut running, 1);
    assert!(run.contains("3 agent files") && run.contains("Failed:    1"), "{run}");
    project.workspace.file("shop/notes.txt", "one");
    // A changed report would have caused the second run by then.
    std::thread::sleep(Duration::from_secs(2));
    project.workspace.file("shop/tasks/look.yaml", "steps: [{ mock: { returns: two } }]\n");
    let run = wait_for_run(&mut running, 2);
    assert!(run.contains("── run 2: shop/tasks/look.yaml changed, all cases ──"), "{run}");
    project.workspace.file("shop/script.yaml", &rules("hello"));
    let run = wait_for_run(&mut running, 3);
    assert!(run.contains("shop/script.yaml changed, all cases") && run.contains("Failed:    0"), "{run}");
    running.press_keys("q");
    assert_eq!(running.wait().code, 0);
}

#[test]
fn changed_server_is_started_again() {
    let agent = echo_agent();
    let address = crate::common::unreachable_address();
    let port = address.trim_end_matches('/').rsplit(':').next().expect("a port").to_string();
    let server = |version: &str| {
        format!(
            "import http.server, socketserver\nVERSION = '{version}'\nopen('started-' + VERSION, 'w').close()\nclass Handler(http.server.BaseHTTPRequestHandler):\n    def do_GET(self):\n        self.send_response(200)\n        self.end_headers()\n    def log_message(self, *words):\n        pass\nsocketserver.TCPServer.allow_reuse_address = True\nsocketserver.TCPServer(('127.0.0.1', {port}), Handler).serve_forever()\n"
        )
    };
    let project = Project::with_config(&format!(
        "target:\n  endpoint: '{agent}'\n  start: {{ command: [python3, server.py], ready: '{address}' }}\n"
    ))
    .suite("a", &case("first", "hello"))
    .file("server.py", &server("one"));
    let mut running = start(&project, &[]);
    let run = wait_for_run(&mut running, 1);
    assert!(run.contains("1 agent file") && exists(&project.workspace, "started-one"), "{run}");
    project.workspace.file("server.py", &server("two"));
    let run = wait_for_run(&mut running, 2);
    assert!(
        run.contains("server.py changed, all cases") && exists(&project.workspace, "started-two"),
        "{run}"
    );
    running.press_keys("q");
    assert_eq!(running.wait().code, 0);
}

#[test]
fn without_a_terminal_there_are_no_keys() {
    let agent = echo_agent();
    let project = watched(&agent);
    let mut running = project.command(&["test", "--watch", "a.test.yaml"]).timeout(TEST_TIMEOUT).spawn();
    let words = running.wait_for_stderr("run 1 ended; watching 1 suite");
    assert!(!words.contains("keys:"), "{words}");
    project.workspace.file("a.test.yaml", &case("renamed", "hello"));
    running.wait_for_stdout("renamed");
    running.interrupt();
    assert_eq!(running.wait().code, 130);
    project.hotseat(&["test", "--watch", "--json"]).assert_stdout(2, &["cannot be used with"]);
}
