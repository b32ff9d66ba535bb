//! `hotseat mcp`: mocks, recordings, and the bridge of agents that start their servers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use hotseat_testkit::{McpClient, ProgramOutput, TestWorkspace};
use serde_json::json;

use crate::common::HOTSEAT;

const MOCK: &str =
    r#"{"name": "bank", "tools": [{"name": "charge", "answer": "charged ${arguments.order}"}]}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"charge","arguments":{"order":"A1"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// `hotseat mcp serve`, ended when dropped.
pub struct ServedMcp {
    child: Child,
    /// Address of the server.
    pub url: String,
}

impl ServedMcp {
    /// Serves with these arguments of `hotseat mcp serve`.
    pub fn start(workspace: &TestWorkspace, arguments: &[&str]) -> ServedMcp {
        let mut command = Command::new(HOTSEAT);
        command.args(["mcp", "serve"]).args(arguments).current_dir(workspace.root()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().last().unwrap().to_string();
        assert!(url.starts_with("http://127.0.0.1:"), "{line}");
        ServedMcp { child, url }
    }

    /// The address as tests give it to agents that start `hotseat mcp NAME`.
    pub fn bridge_address(&self, name: &str) -> String {
        self.url.replace(&format!("/mcp/{name}/"), "/mcp/{server}/")
    }
}

impl Drop for ServedMcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends lines to `hotseat mcp NAME` and returns its output.
fn talk(name: &str, address: &str, lines: &[&str]) -> Vec<String> {
    let mut command = Command::new(HOTSEAT);
    command.args(["mcp", name]).env("HOTSEAT_MCP", address).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect()
}

#[test]
fn an_agent_talks_to_a_mock_over_standard_input_and_output() {
    let workspace = TestWorkspace::new();
    workspace.file("bank.json", MOCK);
    let served = ServedMcp::start(&workspace, &["bank.json"]);
    let answers = talk("bank", &served.bridge_address("bank"), &[CALL]);
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(answers[0].contains("\"id\":4") && answers[0].contains("charged A1"), "{}", answers[0]);
}

#[test]
fn mistakes_in_a_mock_are_refused() {
    let workspace = TestWorkspace::new();
    workspace.file("bank.json", MOCK);
    workspace.file("kept.mcp.jsonl", "kept");
    for (definition, words) in [
        ("[]", "must be an object"),
        (r#"{"tols": []}"#, "`tols` is unknown: a definition has `name`, `instructions`"),
        (r#"{"name": 1}"#, "`name` must be a text"),
        (r#"{"pageSize": -1}"#, "`pageSize` must be a number"),
        (r#"{"tools": [{"name": "charge", "answr": "x"}]}"#, "`answr` is unknown; did you mean `answer`?"),
    ] {
        workspace.file("wrong.json", definition);
        let output = workspace.run(HOTSEAT, &["mcp", "serve", "wrong.json"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{definition}: {output}");
    }
    // All mistakes, with their places.
    let definition = r#"{
  "instructions": 1,
  "tools": [
    {"name": "a", "answr": "x"},
    {"name": "a", "answer": 7},
    {"name": "b", "offeredAfter": 1},
    {"name": "c", "description": 1}
  ],
  "prompts": [{"nme": "p"}]
}"#;
    workspace.file("wrong.json", definition);
    let output = workspace.run(HOTSEAT, &["mcp", "serve", "wrong.json"]);
    for (place, words) in [
        ("2:3", "`instructions` must be a text"),
        ("4:19", "tool `a`: `answr` is unknown; did you mean `answer`?"),
        ("5:6", "two tools have the name `a`"),
        ("5:19", "tool `a`: an answer must be an object or a text"),
        ("6:19", "tool `b`: `offeredAfter` must be the name of a tool"),
        ("7:5", "`description` of the tool `c` must be a text"),
        ("9:15", "an entry needs `name`"),
    ] {
        let at = format!("wrong.json:{place}\n");
        assert!(output.stderr.contains(&at) && output.stderr.contains(words), "{place}: {output}");
    }
    output.assert_stderr(2, &["4 |     {\"name\": \"a\", \"answr\""]);
    workspace
        .run(HOTSEAT, &["mcp", "serve", "bank.json", "--record", "kept.mcp.jsonl"])
        .assert_stderr(2, &["--record needs a server"]);
    assert_eq!(workspace.read("kept.mcp.jsonl"), "kept");
}

#[test]
fn the_tools_of_a_program_are_recorded_and_served_again() {
    let workspace = TestWorkspace::new();
    workspace.file("bank.json", MOCK);
    let served = ServedMcp::start(&workspace, &["bank.json"]);
    workspace
        .command(HOTSEAT, &["mcp", "record", "bank.mcp.jsonl", "--", HOTSEAT, "mcp", "bank"])
        .env("HOTSEAT_MCP", served.bridge_address("bank"))
        .run()
        .assert_stdout(0, &["1 tool in bank.mcp.jsonl"]);
    let replayed = ServedMcp::start(&workspace, &["bank.mcp.jsonl"]);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let answers = talk("replay", &replayed.bridge_address("replay"), &[list]);
    assert!(answers[0].contains("\"name\":\"charge\""), "{}", answers[0]);
}

#[test]
fn a_misspelt_name_is_an_error_with_the_servers() {
    let workspace = TestWorkspace::new();
    workspace.file("bank.json", MOCK);
    let served = ServedMcp::start(&workspace, &["bank.json"]);
    let bridge = workspace.command(HOTSEAT, &["mcp", "bnak"]).stdin(format!("{CALL}\n"));
    let output = bridge.env("HOTSEAT_MCP", served.bridge_address("bank")).run();
    let words = "MCP server `bnak`: there is no server of this name; the conversation has: `bank`";
    assert_eq!(output.code, 3, "{output}");
    assert!(output.stderr.contains(words) && output.stdout.contains(words), "{output}");
}

/// Serves the mock through a proxy that records, sends it these calls, and ends it with Ctrl-C.
fn record_calls(workspace: &TestWorkspace, file: &str, calls: usize) -> ProgramOutput {
    let served = ServedMcp::start(workspace, &["bank.json"]);
    let arguments = ["mcp", "serve", "--record", file, "--url", &served.url];
    let mut proxy = workspace.command(HOTSEAT, &arguments).spawn();
    let printed = proxy.wait_for_stdout("Ctrl-C");
    let url = printed.lines().next().and_then(|line| line.split_whitespace().last()).expect("an address");
    for _ in 0..calls {
        McpClient::new(url).call("charge", &json!({"order": "A1"})).expect("an answer");
    }
    proxy.interrupt();
    proxy.wait()
}

#[test]
fn only_a_recording_is_replaced_and_only_by_exchanges() {
    let workspace = TestWorkspace::new();
    workspace.file("bank.json", MOCK);
    workspace.file("notes.jsonl", "my notes\n");
    let served = ServedMcp::start(&workspace, &["bank.json"]);
    for arguments in [
        ["mcp", "record", "notes.jsonl", "--url", &served.url].as_slice(),
        ["mcp", "serve", "--record", "notes.jsonl", "--url", &served.url].as_slice(),
    ] {
        let output = workspace.run(HOTSEAT, arguments);
        let words = "notes.jsonl would be replaced: line 1: this is no recording of MCP traffic";
        output.assert_stderr(2, &[words]);
        assert_eq!(workspace.read("notes.jsonl"), "my notes\n");
    }
    let recorded = record_calls(&workspace, "bank.mcp.jsonl", 1);
    assert_eq!((recorded.code, recorded.stderr.as_str()), (0, ""), "{recorded}");
    let first = workspace.read("bank.mcp.jsonl");
    assert!(first.contains("charged A1"), "{first}");
    let empty = record_calls(&workspace, "bank.mcp.jsonl", 0);
    let words = "no request was recorded, so bank.mcp.jsonl was not written";
    empty.assert_stderr(0, &[words]);
    assert_eq!(workspace.read("bank.mcp.jsonl"), first);
    record_calls(&workspace, "bank.mcp.jsonl", 2).assert_code(0);
    assert_eq!(workspace.read("bank.mcp.jsonl").matches("charged A1").count(), 2);
}

#[test]
fn mistakes_have_words() {
    let workspace = TestWorkspace::new();
    workspace.file("broken.json", "{");
    workspace.file("twice.json", r#"{"tools": [], "tools": []}"#);
    workspace.file("schema.json", r#"{"tools": [{"name": "a", "inputSchema": {"type": "objekt"}}]}"#);
    workspace.file("other.jsonl", "{}");
    let head = r#"{"format":"hotseat-mcp-recording","version":1}"#;
    workspace.file("cut.mcp.jsonl", &format!("{head}\n{{\"method"));
    // A server whose list of tools is its first argument.
    let server = r#"while read -r line; do
          id=${line#*\"id\":}; id=${id%%[,\}]*}
          case $line in
            *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}';;
            *'"tools/list"'*) result=$1;;
            *) continue;;
          esac
          echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"
        done"#;
    workspace.file("server.sh", server);
    for (arguments, code, words) in [
        (&["mcp", "bank"][..], 2, "HOTSEAT_MCP is not set"),
        (&["mcp", "serve", "missing.json"], 2, "cannot read missing.json"),
        (&["mcp", "serve", "broken.json"], 2, "broken.json:1:2"),
        (&["mcp", "serve", "twice.json"], 2, "twice.json:1:15"),
        (
            &["mcp", "serve", "schema.json"],
            3,
            "schema.json: MCP server `mock`: `inputSchema` of the tool `a`",
        ),
        (
            &["mcp", "serve", "cut.mcp.jsonl"],
            2,
            "cut.mcp.jsonl: line 2: EOF while parsing a string in column 8\n",
        ),
        (
            &["mcp", "record", "a.mcp.jsonl", "--url", "http://u:p@127.0.0.1:1/mcp?key=k"],
            3,
            "the proxied server cannot be reached at http://127.0.0.1:1/mcp: Connection refused",
        ),
        (&["mcp", "serve", "other.jsonl"], 2, "other.jsonl: line 1: this is no recording of MCP traffic"),
        (&["mcp", "record", "a.mcp.jsonl", "--", "/no/such/program"], 3, "cannot be started"),
        (
            &["mcp", "record", "out.txt", "--", "sh", "server.sh", "{\"tools\":[]}"],
            2,
            "out.txt: the name of a recording ends in `.jsonl`",
        ),
        (
            &["mcp", "serve", "--record", "out.json", "--", "sh", "server.sh", "{\"tools\":[]}"],
            2,
            "--record out.json: the name of a recording ends in `.jsonl`",
        ),
        (
            &["mcp", "record", "a.mcp.jsonl", "--", "sh", "server.sh", "{\"tools\":\"pay\"}"],
            3,
            "the answer to `tools/list` has no list `tools`",
        ),
        (
            &["mcp", "record", "a.mcp.jsonl", "--", "sh", "server.sh", "{\"tools\":[],\"nextCursor\":\"a\"}"],
            3,
            "`tools/list` has more than 1000 pages",
        ),
    ] {
        let run = workspace.run(HOTSEAT, arguments);
        assert_eq!(run.code, code, "{arguments:?}\n{run}");
        assert!(run.stderr.contains(words), "{arguments:?}\n{run}");
    }
}
