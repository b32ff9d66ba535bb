//! The HTML page: its content, and that all untrusted content is text. `interop/browser` tests appearance and
//! behaviour in a browser.
use std::collections::BTreeMap;

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::http_agents::bank_client;
use crate::common::{Project, echo_agent};
use crate::mcp::BANK;

/// Text that the page must escape.
const HOSTILE: &str = "</script><script>alert(1)</script><!-- <script> ]]> & \u{2028} \u{1b}[31m \u{202e}";

fn hostile_reply(request: &FakeRequest) -> FakeReply {
    let run = FakeRun::for_request(request).started().reasoning(HOSTILE);
    let run = run.tool("c1", "<b>tool</b>", &json!({"</script>": HOSTILE}), Some(json!(HOSTILE)));
    run.text(HOSTILE).finished().into()
}

/// A page parsed like a browser does: a script element ends at the first `</script`.
pub(super) struct ReportPage {
    html: String,
    pub(super) data: BTreeMap<String, Value>,
    scripts: Vec<String>,
}

impl ReportPage {
    #[track_caller]
    pub(super) fn from_report(project: &Project, file: &str) -> ReportPage {
        let html = project.workspace.read(file);
        let (mut data, mut scripts) = (BTreeMap::new(), Vec::new());
        let mut rest = html.as_str();
        while let Some(begin) = rest.find("<script") {
            let element = &rest[begin..];
            let body = element.find('>').expect("a tag ends") + 1;
            let end = body + element[body..].to_lowercase().find("</script").expect("an element ends");
            let text = &element[body..end];
            match element[..body].split("id=\"").nth(1).and_then(|id| id.split('"').next()) {
                Some(id) => {
                    let value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
                    assert!(data.insert(id.to_string(), value).is_none(), "{id} twice");
                }
                None => scripts.push(text.to_string()),
            }
            rest = &element[end..];
        }
        ReportPage { html, data, scripts }
    }

    /// The items of a turn: types of events and names of calls, in order.
    #[track_caller]
    fn items(&self, turn: usize) -> Vec<&str> {
        let case = &self.data["case-0"];
        let events = case["attempts"][0]["events"].as_array().expect("events");
        let item = |item: &Value| match item["call"].as_u64() {
            Some(place) => {
                case["result"]["turns"][turn]["tool_calls"][place as usize]["name"].as_str().unwrap()
            }
            None => {
                let event = events.iter().find(|event| event["sequence"] == item["sequence"]);
                event.and_then(|event| event["type"].as_str()).expect("an event")
            }
        };
        let turn = &case["attempts"][0]["turns"][turn];
        turn["items"].as_array().expect("items").iter().map(item).collect()
    }

    fn rows(&self) -> Vec<&Value> {
        self.data["rows"].as_array().expect("rows").iter().collect()
    }
}

const SUITE: &str = "
name: says
tags: [one, two]
turns:
  - user: hello
    assert: { text: { must_match: hello } }
    evaluate: [{ type: contains, value: sunshine }]
---
name: fails
turns: [{ user: hello, assert: { text: { must_match: never } } }]
---
name: later
skip: not ready
turns: [{ user: hello }]
";

#[test]
fn page_contains_report_and_events() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", SUITE);
    project.hotseat(&["test", "-o", "r.json", "-o", "pages/r.html", "--parallel", "1"]).assert_code(1);
    let report = project.workspace.read_json("r.json");
    let page = ReportPage::from_report(&project, "pages/r.html");

    assert_eq!(page.data["run"]["summary"], report["summary"]);
    assert_eq!(page.data["run"]["metadata"]["output_file"], "pages/r.html");
    for (index, result) in report["results"].as_array().expect("results").iter().enumerate() {
        assert_eq!(page.data[&format!("case-{index}")]["result"], *result);
    }
    let events = page.data["case-0"]["attempts"][0]["events"].as_array().expect("events");
    let types: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert!(types.contains(&"turn.started") && types.contains(&"message.assistant"), "{types:?}");

    let rows = page.rows();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["tags"], json!(["one", "two"]));
    assert_eq!(
        rows[0]["soft"],
        json!([{"criterion": "the agent's text to contain \"sunshine\"", "passed": false}])
    );
    assert_eq!(rows[1]["kind"], "assertion");
    assert_eq!(rows[2]["skip_reason"], "not ready");
}

#[test]
fn page_contains_source_lines_and_rerun_command() {
    let agent = echo_agent();
    let suite =
        "name: it's one\ntags: [x]\nturns:\n  - user: hello\n    assert: { text: { must_match: never } }\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    assert_eq!(project.hotseat(&["test", "-o", "r.html"]).code, 1);
    let page = ReportPage::from_report(&project, "r.html");
    let case = &page.data["case-0"];
    let check = &case["result"]["turns"][0]["assertions"][0];
    let source = &case["sources"][0];
    for member in ["file", "line", "column"] {
        assert_eq!(source[member], check[member], "{source}");
    }
    assert_eq!((&source["line"], &source["marked"]), (&json!(5), &json!([34, 39])));
    assert_eq!(source["text"], "    assert: { text: { must_match: never } }");
    let rerun = case["rerun"].as_str().expect("a command");
    let file = check["file"].as_str().expect("a file");
    assert_eq!(rerun, format!("hotseat test {file} --run '^it'\\''s one$'"));
}

#[test]
fn page_escapes_untrusted_content() {
    let agent = FakeAgent::start(hostile_reply);
    let suite = json!({"id": HOSTILE, "name": HOSTILE, "tags": [HOSTILE], "metadata": {"k": HOSTILE},
        "turns": [{"user": HOSTILE, "assert": {"text": {"must_match": "<script>never</script>"}}}]});
    let project = Project::with_agent(&agent).file("a.test.jsonl", &suite.to_string());
    project.hotseat(&["test", "-o", "r.html", "-o", "r.json"]).assert_code(1);
    let page = ReportPage::from_report(&project, "r.html");
    let report = project.workspace.read_json("r.json");

    assert_eq!(page.data["case-0"]["result"], report["results"][0]);
    assert_eq!(page.data["rows"][0]["name"], HOSTILE);
    // Only the scripts of Hotseat.
    assert_eq!(page.scripts.len(), 1);
    assert!(!page.html.contains("<script>alert") && !page.html.contains("<!-- "), "it is data");
}

#[test]
fn page_loads_nothing_from_network() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", SUITE);
    project.hotseat(&["test", "-o", "r.html"]);
    let page = ReportPage::from_report(&project, "r.html");
    let head = page.html.split("</head>").next().expect("a head");
    assert!(head.contains("default-src 'none'; connect-src 'none'"), "{head}");
    for tag in ["<link rel=\"stylesheet\"", "src=\"", "@import", "url("] {
        assert!(!page.html.contains(tag), "the page has {tag}");
    }
}

#[test]
fn page_contains_every_attempt() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", SUITE);
    project.hotseat(&["test", "--runs", "3", "--run", "says", "-o", "r.html"]);
    let page = ReportPage::from_report(&project, "r.html");
    let case = &page.data["case-0"];
    assert_eq!(case["result"]["run_details"].as_array().map(Vec::len), Some(3));
    let numbers: Vec<&Value> =
        case["attempts"].as_array().expect("attempts").iter().map(|attempt| &attempt["number"]).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(page.data["rows"][0]["attempts"], 3);
    assert_eq!(page.data["rows"][0]["soft"].as_array().map(Vec::len), Some(3));
}

#[test]
fn page_hides_internals_of_embedded_agents() {
    let project = Project::empty();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/expense/hotseat.yaml");
    let suite = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/expense/expense.test.yaml");
    project
        .hotseat(&["test", "--config", example, suite, "--run", "drafted,", "-o", "r.html"])
        .assert_code(0);
    let attempt = &ReportPage::from_report(&project, "r.html").data["case-0"]["attempts"][0];
    let events = attempt["events"].as_array().expect("events");
    assert!(attempt["left_out"].as_u64() > Some(20), "{}", attempt["left_out"]);
    assert!(events.iter().any(|event| event["type"] == "llm.call.completed"));
    assert!(!events.iter().any(|event| event["type"] == "executor.action.started"));
}

#[test]
fn page_has_one_item_for_a_call_that_agent_and_server_show() {
    let agent = FakeAgent::with_run(|run, request| {
        let bank = bank_client(request);
        let run = run.reasoning("I pay.");
        // The client adds a key to the arguments.
        let sent = json!({"amount": 5.0, "order_id": "o-1", "key": "k"});
        let result = bank.call("charge_card", &sent).expect("an answer");
        let reported = json!({"amount": 5.0, "order_id": "o-1"});
        run.tool("c1", "mcp__bank__charge_card", &reported, Some(result)).text("Paid.").finished()
    });
    let header = "  headers: { x-bank: '${MCP.bank.url}' }\n";
    let config = format!("target:\n  endpoint: {agent}\n{header}{BANK}");
    let project = Project::with_config(&config).suite("a", "name: a\nturns: [{ user: pay }]\n");
    assert_eq!(project.hotseat(&["test", "-o", "r.html"]).code, 0);
    let page = ReportPage::from_report(&project, "r.html");
    let expected = ["message.user", "message.reasoning", "mcp__bank__charge_card", "message.assistant"];
    assert_eq!(page.items(0), expected);
    let spans = &page.data["case-0"]["attempts"][0]["turns"][0]["spans"];
    let tools = spans.as_array().expect("spans").iter().filter(|span| span["kind"] == "tool");
    assert_eq!(tools.count(), 1, "{spans}");
}

#[test]
fn page_has_conversations_with_called_agents_in_their_calls() {
    let project = Project::empty();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/research/hotseat.yaml");
    let suite = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/research/research.test.yaml");
    project.hotseat(&["test", "--config", example, suite, "-o", "r.html"]);
    let page = ReportPage::from_report(&project, "r.html");
    let inner = page.data.iter().filter(|(id, _)| id.starts_with("case-")).find_map(|(_, case)| {
        let turns = case["attempts"][0]["turns"].as_array()?;
        let inner = turns.iter().find(|turn| turn["callee"].is_array())?;
        let calls = case["result"]["turns"].as_array()?.iter().flat_map(|turn| turn["tool_calls"].as_array());
        let opened = calls.flatten().any(|call| call["id"] == inner["callee"][1]);
        assert!(opened, "{}", inner["callee"]);
        Some(inner)
    });
    let items = inner.expect("a conversation with a called agent")["items"].as_array().expect("items");
    assert!(items.iter().all(|item| item["from"].is_string()), "{items:?}");
}

#[test]
fn reports_unwritable_page() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", SUITE).file("taken", "");
    project.hotseat(&["test", "-o", "taken/r.html"]).assert_stderr(3, &["cannot write taken/r.html"]);
}
