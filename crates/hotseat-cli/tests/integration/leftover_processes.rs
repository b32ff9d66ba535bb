//! Processes started by Hotseat: none remains after any kind of exit, or the next run ends it.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use hotseat_testkit::{SpawnedProgram, checkout};

use crate::common::{Lifeline, Project, TEST_TIMEOUT, echo_agent, exists, unreachable_address};

/// A project whose agent is started by a script that a lifeline can observe, with a case that blocks the run
/// until a file exists.
fn start_script_agent(script: &str) -> (Project, Lifeline) {
    let url = unreachable_address();
    let port = url.trim_matches('/').rsplit(':').next().expect("a port").to_string();
    let project = Project::with_config(&format!(
        "target:\n  endpoint: {url}\n  start: {{ command: [sh, agent.sh], ready: '{url}health', timeout_ms: 20000, env: {{ PORT: '{port}' }} }}\n"
    ))
    .file("agent.sh", &script.replace("AGENT", &checkout::binary().display().to_string()))
    .suite("a", "name: pays\nhooks: [{ cmd: [sh, hook.sh] }]\nturns: [{ user: pay }]\n")
    .file("hook.sh", "touch reached\nfor n in $(seq 200); do test -e go && exit; sleep 0.1; done\n");
    let alive = Lifeline::new(&project.workspace, "alive");
    (project, alive)
}

/// A server that has left its process group and its parent.
const DAEMON: &str = "setsid sh -c 'exec 3>alive; AGENT --port $PORT & wait' &\nexec 3>&-\nwait\n";

fn wait_for(project: &Project, file: &str) {
    let until = Instant::now() + TEST_TIMEOUT;
    while !exists(&project.workspace, file) {
        assert!(Instant::now() < until, "{file} is not there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn send(project: &Project, signal: &str, to: &SpawnedProgram) {
    assert_eq!(project.workspace.run("kill", &[signal, &to.id().to_string()]).code, 0);
}

#[test]
fn sighup_stops_run_gracefully() {
    let (project, alive) = start_script_agent("exec 3>alive\nAGENT --port $PORT &\nwait\n");
    let mut running = project.command(&["test", "-o", "out.json"]).spawn();
    wait_for(&project, "reached");
    send(&project, "-HUP", &running);
    running.wait_for_stdout("no new cases");
    project.workspace.file("go", "");
    running.wait().assert_code(130);
    let report = project.workspace.read_json("out.json");
    assert_eq!(report["results"][0]["status"], "passed", "{report:#}");
    assert_eq!(
        report["metadata"]["interrupted"].as_bool().or(report["summary"]["interrupted"].as_bool()),
        Some(true)
    );
    alive.wait_for_end();
}

#[test]
fn ignored_sighup_stays_ignored() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent)
        .suite("a", "name: a\nhooks: [{ cmd: [sh, hook.sh] }]\nturns: [{ user: hello }]\n")
        .file("hook.sh", "touch reached\nfor n in $(seq 200); do test -e go && exit; sleep 0.1; done\n");
    let running =
        project.workspace.command("nohup", &[crate::common::HOTSEAT, "test"]).timeout(TEST_TIMEOUT).spawn();
    wait_for(&project, "reached");
    send(&project, "-HUP", &running);
    project.workspace.file("go", "");
    running.wait().assert_code(0);
}

#[test]
fn detached_processes_end_with_their_starter() {
    // A server.
    let (project, alive) = start_script_agent(DAEMON);
    project.workspace.file("go", "");
    project.hotseat(&["test"]).assert_code(0);
    alive.wait_for_end();
    // A hook and a program agent.
    let agent = echo_agent();
    let left = "setsid sh -c 'exec 3>alive; sleep 1000' & while ! test -e held; do sleep 0.01; done";
    let hook = format!("hooks: [{{ cmd: [sh, -c, \"{left}\"] }}]\n");
    let project =
        Project::with_agent(&agent).suite("a", &format!("name: a\n{hook}turns: [{{ user: hello }}]\n"));
    let alive = Lifeline::new(&project.workspace, "alive");
    let running = project.command(&["test"]).spawn();
    alive.wait_for_start();
    project.workspace.file("held", "");
    assert_eq!(running.wait().code, 0);
    alive.wait_for_end();
    let program = "setsid sh -c 'exec 3>alive; touch up; sleep 1000' >/dev/null 2>&1 </dev/null &\nwhile ! test -e up; do sleep 0.01; done\nwhile read -r line; do\n  echo '{\"type\": \"text\", \"text\": \"hello\"}'\n  echo '{\"type\": \"done\"}'\ndone\n";
    let project = Project::with_config("target: { type: command, command: [sh, agent.sh] }\n")
        .file("agent.sh", program)
        .suite("a", "name: a\nturns: [{ user: hello }]\n");
    let alive = Lifeline::new(&project.workspace, "alive");
    let output = project.hotseat(&["test"]);
    alive.wait_for_start();
    alive.wait_for_end();
    assert_eq!(output.code, 0, "{output}");
}

#[test]
fn next_run_ends_processes_of_killed_run() {
    for script in ["exec 3>alive\nAGENT --port $PORT &\nwait\n", DAEMON] {
        let (project, alive) = start_script_agent(script);
        let running = project.command(&["test"]).spawn();
        wait_for(&project, "reached");
        send(&project, "-KILL", &running);
        let _ = running.wait();
        assert!(!alive.has_ended(), "the server has survived the run");
        // A run of another project does not touch it.
        let agent = echo_agent();
        let other = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hello }]\n");
        assert_eq!(other.hotseat(&["test"]).code, 0);
        assert!(!alive.has_ended());
        let next = Lifeline::new(&project.workspace, "next");
        project.workspace.file("agent.sh", &project.workspace.read("agent.sh").replace("3>alive", "3>next"));
        project.workspace.file("go", "");
        project
            .hotseat(&["test"])
            .assert_stderr(0, &["was ended: a run that was killed had started it and left it"]);
        alive.wait_for_end();
        next.wait_for_end();
        // One signal is enough.
        project
            .workspace
            .file("agent.sh", &project.workspace.read("agent.sh").replace("3>next", "3>/dev/null"));
        let output = project.hotseat(&["test"]);
        assert!(output.code == 0 && !output.stderr.contains("was ended"), "{output}");
    }
}

#[test]
fn the_next_run_ends_programs_and_hooks_that_a_killed_one_has_left() {
    let left = "setsid sh -c 'exec 3>alive; sleep 1000' >/dev/null 2>&1 </dev/null &\n";
    let until_it_may = "touch reached\nwhile ! test -e go; do sleep 0.05; done\n";
    let answers = "while read -r line; do\n  echo '{\"type\": \"text\", \"text\": \"hello\"}'\n  echo '{\"type\": \"done\"}'\ndone\n";
    for (what, agent, hook) in [
        ("a program", format!("{left}{until_it_may}{answers}"), String::new()),
        ("a hook", answers.to_string(), format!("{left}{until_it_may}")),
    ] {
        let project = Project::with_config("target: { type: command, command: [sh, agent.sh] }\n")
            .file("agent.sh", &agent)
            .file("hook.sh", &hook)
            .suite("a", "name: a\nhooks: [{ cmd: [sh, hook.sh] }]\nturns: [{ user: hello }]\n");
        let alive = Lifeline::new(&project.workspace, "alive");
        let running = project.command(&["test"]).spawn();
        wait_for(&project, "reached");
        alive.wait_for_start();
        send(&project, "-KILL", &running);
        let _ = running.wait();
        assert!(!alive.has_ended(), "{what} has ended with the run");
        // A run of another project leaves it alone.
        let other_agent = echo_agent();
        let other = Project::with_agent(&other_agent).suite("a", "name: a\nturns: [{ user: hello }]\n");
        assert_eq!(other.hotseat(&["test"]).code, 0);
        assert!(!alive.has_ended(), "{what} was ended by a run of another project");
        project.workspace.file("agent.sh", answers);
        project.workspace.file("hook.sh", "");
        let output = project.hotseat(&["test"]);
        assert_eq!(output.code, 0, "{what}: {output}");
        assert!(
            output.stderr.contains("was ended: a run that was killed had started it and left it"),
            "{what}: {output}"
        );
        alive.wait_for_end();
        let output = project.hotseat(&["test"]);
        assert!(output.code == 0 && !output.stderr.contains("was ended"), "{what}: {output}");
    }
}

/// A run does not end programs and hooks of an active run, even of the same project.
#[test]
fn run_leaves_hooks_of_active_run_alone() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent)
        .suite("a", "name: a\nhooks: [{ cmd: [sh, hook.sh] }]\nturns: [{ user: hello }]\n")
        .suite("b", "name: b\nturns: [{ user: hello }]\n")
        .file("hook.sh", "exec 3>alive\ntouch reached\nwhile ! test -e go; do sleep 0.05; done\n");
    let alive = Lifeline::new(&project.workspace, "alive");
    let running = project.command(&["test", "--run", "^a$"]).spawn();
    wait_for(&project, "reached");
    let output = project.hotseat(&["test", "--run", "^b$"]);
    assert!(output.code == 0 && !output.stderr.contains("was ended"), "{output}");
    assert!(!alive.has_ended());
    project.workspace.file("go", "");
    assert_eq!(running.wait().code, 0);
    alive.wait_for_end();
}

#[test]
fn run_leaves_servers_of_active_run_alone() {
    let (project, alive) = start_script_agent("exec 3>alive\nAGENT --port $PORT &\nwait\n");
    let running = project.command(&["test"]).spawn();
    wait_for(&project, "reached");
    project.hotseat(&["test"]).assert_stdout(3, &["did not start: http://"]);
    assert!(!alive.has_ended());
    project.workspace.file("go", "");
    assert_eq!(running.wait().code, 0);
    alive.wait_for_end();
}
