//! Results of proxied MCP servers, in all forms that the protocol allows.

use hotseat_testkit::FakeAgent;
use serde_json::{Value, json};

use crate::common::http_agents::{bank_client, bank_target};
use crate::common::{Project, TestRun};
use crate::mcp::{calls, plain_agent};

/// A server that answers each order with the result of this name in `results.json`.
const SERVER: &str = "import json, sys
results = json.load(open('results.json'))
for line in sys.stdin:
    request = json.loads(line)
    info = {'name': 'bank', 'version': '1'}
    result = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': info}
    if request['method'] == 'tools/list':
        result = {'tools': [{'name': 'charge_card', 'inputSchema': {'type': 'object'}}]}
    if request['method'] == 'tools/call':
        result = results[request['params']['arguments']['order_id']]
    if 'id' in request:
        print(json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': result}), flush=True)
";

/// Runs one case for each result, with these assertions.
fn run_results(results: &[(&str, Value, &str)]) -> TestRun {
    let agent = plain_agent();
    let config =
        format!("{}mcp: {{ bank: {{ type: proxy, command: [python3, bank.py] }} }}\n", bank_target(&agent));
    let suites = results.iter().map(|(name, _, asserted)| {
        format!("name: {name}\nturns: [{{ user: pay {name}, assert: {asserted} }}]\n")
    });
    let suite = suites.collect::<Vec<_>>().join("---\n");
    let by_name: Value = results.iter().map(|(name, result, _)| (name.to_string(), result.clone())).collect();
    let project =
        Project::with_config(&config).file("bank.py", SERVER).file("results.json", &by_name.to_string());
    project.suite("a", &suite).test(&[])
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn members_of_a_result_that_are_null_are_absent() {
    let result = json!({
        "content": [text("done")], "structuredContent": null, "isError": false, "_meta": null, "resultType": null,
    });
    let run = run_results(&[(
        "a",
        result,
        "[{ tools: { require: [{ name: charge_card, result_match: '^done$' }] } }, { type: tool_result, tool: charge_card, result: done }]",
    )]);
    run.assert_all_passed();
}

fn recorded(run: &TestRun, name: &str) -> Value {
    calls(run, name)[0]["result"].clone()
}

/// A text resource, embedded.
fn resource(text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": "file:///a", "text": text}})
}

#[test]
fn a_result_has_all_that_the_agent_receives() {
    let any = "{ budget: { max_tool_calls: 1 } }";
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let link = json!({"type": "resource_link", "uri": "file:///a", "name": "SECRET"});
    let forms = [
        ("texts", json!({"content": [text("a"), text("b")]}), json!("a\nb")),
        ("resource", json!({"content": [text("intro"), resource("SECRET")]}), json!("intro\nSECRET")),
        ("image", json!({"content": [text("a"), image]}), json!([text("a"), image])),
        ("link", json!({"content": [link]}), json!([link])),
        (
            "same",
            json!({"content": [text("{ \"ok\": true }")], "structuredContent": {"ok": true}}),
            json!({"ok": true}),
        ),
        (
            "wrapped",
            json!({"content": [text("5")], "structuredContent": {"result": 5.0}}),
            json!({"result": 5.0}),
        ),
        (
            "entries",
            json!({"content": [text("a"), text("2")], "structuredContent": {"result": ["a", 2]}}),
            json!({"result": ["a", 2]}),
        ),
        ("only", json!({"content": [], "structuredContent": {"ok": true}}), json!({"ok": true})),
        (
            "other",
            json!({"content": [text("SECRET")], "structuredContent": {"ok": true}}),
            json!({"ok": true, "content": [text("SECRET")]}),
        ),
        (
            "clash",
            json!({"content": [text("SECRET")], "structuredContent": {"content": 1}}),
            json!({"structuredContent": {"content": 1}, "content": [text("SECRET")]}),
        ),
    ];
    let results = forms.clone().map(|(name, result, _)| (name, result, any));
    let run = run_results(&results);
    run.assert_all_passed();
    for (name, _, value) in forms {
        assert_eq!(recorded(&run, name), value, "{name}");
    }
}

#[test]
fn assertions_see_all_that_the_agent_receives() {
    let hidden = json!({"content": [text("SECRET")], "structuredContent": {"ok": true}});
    let read = json!({"content": [text("intro"), resource("SECRET")]});
    let forbidden = "{ tools: { forbid_calls: [{ name: charge_card, result_match: SECRET }] } }";
    let without = "{ tools: { require: [{ name: charge_card, result_not_match: SECRET }] } }";
    let run = run_results(&[
        ("a", hidden.clone(), forbidden),
        ("b", hidden.clone(), without),
        ("c", read.clone(), forbidden),
        ("d", read, without),
        ("e", hidden, "[{ type: tool_result, tool: charge_card, result: { ok: true } }]"),
        (
            "f",
            json!({"content": [], "structuredContent": {"error": "declined"}, "isError": true}),
            "{ tools: { require: [{ name: charge_card, result_match: declined }] } }",
        ),
        (
            "g",
            json!({"content": [text("declined")], "structuredContent": {"error": "declined"}, "isError": true}),
            "{ tools: { require: [{ name: charge_card, result_match: '^declined$' }] } }",
        ),
        (
            "h",
            json!({"content": [text("declined")], "structuredContent": {"why": "SECRET"}, "isError": true}),
            forbidden,
        ),
    ]);
    for name in ["a", "b", "c", "d", "h"] {
        run.assert_failure(name, "assertion", &["SECRET"]);
    }
    for name in ["e", "f", "g"] {
        assert_eq!(run.case(name)["status"], "passed", "{}", run.output);
    }
}

/// Agents report what their framework passes to the model: the text, the structured content, or all.
#[test]
fn a_reported_part_of_an_answer_is_no_other_result() {
    let notes = |answered: Value, reported: Value| {
        let agent = FakeAgent::with_run(move |run, request| {
            let bank = bank_client(request);
            let arguments = json!({"order_id": "a"});
            bank.call("charge_card", &arguments).expect("an answer");
            run.tool("c1", "charge_card", &arguments, Some(reported.clone())).text("Paid.").finished()
        });
        let config = format!(
            "target:\n  endpoint: {agent}\n  headers: {{ x-bank: '${{MCP.bank.url}}' }}\nmcp: {{ bank: {{ type: proxy, command: [python3, bank.py] }} }}\n"
        );
        let project = Project::with_config(&config).file("bank.py", SERVER);
        let project = project.file("results.json", &json!({"a": answered}).to_string());
        let suite = "name: a\nturns: [{ user: pay, assert: { budget: { max_tool_calls: 1 } } }]\n";
        let run = project.suite("a", suite).test(&[]);
        run.assert_all_passed();
        run.case("a")["turns"][0]["notes"].to_string()
    };
    let both = json!({"content": [text("Charged 5 EUR")], "structuredContent": {"charged": 5}});
    for part in [json!("Charged 5 EUR"), json!({"charged": 5}), json!([text("Charged 5 EUR")]), both.clone()]
    {
        assert_eq!(notes(both.clone(), part.clone()), "null", "{part}");
    }
    assert!(notes(both, json!({"charged": 6})).contains("another result"));
    // Servers wrap a value that is no object.
    let wrapped = json!({"content": [text("[\"a\",\"b\"]")], "structuredContent": {"result": ["a", "b"]}});
    for part in [json!(["a", "b"]), json!("[\"a\", \"b\"]"), wrapped["structuredContent"].clone()] {
        assert_eq!(notes(wrapped.clone(), part.clone()), "null", "{part}");
    }
    assert!(notes(wrapped, json!(["b", "a"])).contains("another result"));
    let declined = json!({"content": [text("{\"charged\":false}")], "structuredContent": {"charged": false}});
    assert!(notes(declined, json!("charged, all fine")).contains("another result"));
    let quoted = notes(json!({"content": [text("not done")]}), json!("done"));
    assert!(quoted.contains(r#"counts: \"done\", not \"not done\""#), "{quoted}");
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}});
    let shown = json!({"content": [text("a chart"), image]});
    assert_eq!(notes(shown, json!([text("a chart"), url])), "null");
    let read = json!({"content": [text("intro"), resource("the text")]});
    assert_eq!(notes(read.clone(), json!("intro")), "null");
    assert_eq!(notes(read.clone(), read["content"].clone()), "null");
}
