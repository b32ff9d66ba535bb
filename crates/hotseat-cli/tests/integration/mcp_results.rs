//! Results of proxied MCP servers, in all forms that the protocol allows.

use serde_json::{Value, json};

use crate::common::{Project, TestRun};
use crate::mcp::{calls, plain_agent, plain_target};

/// A server that answers each order with the result of this name in `results.json`.
const SERVER: &str = "import json, sys
results = json.load(open('results.json'))
for line in sys.stdin:
    request = json.loads(line)
    info = {'name': 'bank', 'version': '1'}
    result = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': info}
    if request['method'] == 'tools/list':
        result = {'tools': [{'name': 'charge_card', 'description': None, 'inputSchema': None}], 'nextCursor': None}
    if request['method'] == 'tools/call':
        result = results[request['params']['arguments']['order_id']]
    if 'id' in request:
        print(json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': result}), flush=True)
";

/// Runs one case for each result, with these assertions.
fn run_results(results: &[(&str, Value, &str)]) -> TestRun {
    let agent = plain_agent();
    let config =
        format!("{}mcp: {{ bank: {{ type: proxy, command: [python3, bank.py] }} }}\n", plain_target(&agent));
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
