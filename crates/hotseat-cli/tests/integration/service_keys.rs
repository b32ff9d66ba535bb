//! Every key of MCP servers, served models, their faults and the assertions about them is known in all front ends: case
//! files in YAML and JSON lines, TypeScript and Rust.

use std::collections::BTreeSet;
use std::path::Path;

use hotseat::dsl::{Group, HarnessOutput};
use serde_json::{Value, json};

use crate::common::{Project, echo_agent};

/// A valid case, and the definitions of the schema whose keys it has.
struct KeySample {
    name: &'static str,
    keys: Value,
    /// Names of definitions, with the places of their values in `keys`.
    definitions: &'static [(&'static str, &'static str)],
}

fn samples() -> Vec<KeySample> {
    let answers = json!([
        {"args_match": {"order_id": "^o"}, "content": {"ok": true}, "once": true},
        {"error": "declined", "once": true},
        {"use": "scripts:bank.charge", "ask": {"sure": {"message": "Sure?", "schema": {"type": "object"}}}},
    ]);
    let schema = json!({"type": "object"});
    let mock = json!({
        "type": "mock", "tools_from": "tools.json", "instructions": "Be careful.", "page_size": 2, "unmatched": "error_result",
        "faults": [{"tool": "charge", "args_match": {"order_id": "o"}, "nth": 1, "do": {"delay_ms": 1}}],
        "tools": [
            {"name": "charge", "description": "Charges.", "inputSchema": schema, "outputSchema": schema, "annotations": {"readOnlyHint": true}, "answers": answers},
            {"name": "second", "parameters": schema, "output_schema": schema, "answers": [{"script": "bank.charge"}]},
            {"name": "third", "input_schema": schema, "offered_after": "charge"},
        ],
    });
    let program = json!({"type": "proxy", "command": ["./bank"], "env": {"A": "b"}, "cwd": ".", "faults": [{"rate": 0.5, "seed": 3, "do": "stale"}]});
    let url = json!({"type": "proxy", "url": "http://127.0.0.1:9/mcp", "headers": {"a": "b"}, "record": "out/bank.jsonl"});
    let replay = json!({"type": "replay", "from": "bank.mcp.jsonl", "unmatched": "fail", "faults": [{"every": 2, "do": {"http": 503}}]});
    let fault = |action: Value| json!({"server": "bank", "tool": "charge", "do": action});
    vec![
        KeySample {
            name: "mock",
            keys: json!({"mcp": {"bank": mock}}),
            definitions: &[
                ("McpMock", "/mcp/bank"),
                ("McpTool", "/mcp/bank/tools/0"),
                ("McpTool", "/mcp/bank/tools/1"),
                ("McpTool", "/mcp/bank/tools/2"),
                ("McpToolAnswer", "/mcp/bank/tools/0/answers/0"),
                ("McpToolAnswer", "/mcp/bank/tools/0/answers/1"),
                ("McpToolAnswer", "/mcp/bank/tools/0/answers/2"),
                ("McpToolAnswer", "/mcp/bank/tools/1/answers/0"),
                ("McpQuestion", "/mcp/bank/tools/0/answers/2/ask/sure"),
                ("McpFault", "/mcp/bank/faults/0"),
            ],
        },
        KeySample {
            name: "proxies and replays",
            keys: json!({"mcp": {"program": program, "url": url, "replay": replay}}),
            definitions: &[
                ("McpProxy", "/mcp/program"),
                ("McpProxy", "/mcp/url"),
                ("McpReplay", "/mcp/replay"),
                ("McpFault", "/mcp/program/faults/0"),
                ("McpFault", "/mcp/replay/faults/0"),
            ],
        },
        KeySample {
            name: "changes",
            keys: json!({"mcp": {"shop": {"unmatched": "fail", "faults": [{"do": "empty"}], "tools": [{"name": "extra"}]}}}),
            definitions: &[("McpChange", "/mcp/shop")],
        },
        KeySample {
            name: "faults of a case",
            keys: json!({
                "mcp": {"bank": {"type": "mock", "tools": [{"name": "charge"}]}},
                "faults": [
                    {"server": "bank", "tool": "charge", "args_match": {"order_id": "o"}, "nth": 1, "do": {"delay_ms": 1}},
                    {"server": "bank", "every": 2, "do": {"slow_stream_ms": 1}},
                    {"server": "bank", "rate": 0.5, "seed": 3, "do": {"http": 503}},
                    fault(json!({"rpc_error": -32001})),
                    fault(json!({"is_error": "busy"})),
                    fault(json!({"huge_bytes": 100})),
                    fault(json!("lost_answer")),
                ],
            }),
            definitions: &[
                ("CaseFault", "/faults/0"),
                ("CaseFault", "/faults/1"),
                ("CaseFault", "/faults/2"),
                ("FaultAction", "/faults/0/do"),
                ("FaultAction", "/faults/1/do"),
                ("FaultAction", "/faults/2/do"),
                ("FaultAction", "/faults/3/do"),
                ("FaultAction", "/faults/4/do"),
                ("FaultAction", "/faults/5/do"),
            ],
        },
        KeySample {
            name: "models",
            keys: json!({"models": {
                "file": {"script": "model.yaml", "faults": [{"nth": 1, "do": {"delay_ms": 1}}]},
                "rules": {"rules": [{"reply": "Hi."}], "use": "always", "faults": [{"every": 2, "do": {"rate_limit_ms": 1}}]},
                "relay": {"type": "relay", "url": "http://127.0.0.1:9/v1", "headers": {"a": "b"}, "record": "out/relay.jsonl", "ignore": ["/user"], "faults": [{"rate": 0.5, "seed": 3, "do": {"http": 500}}]},
                "replay": {"type": "replay", "file": "relay.jsonl", "ignore": ["/user"], "faults": [{"do": "overloaded"}]},
            }}),
            definitions: &[
                ("ServedModel", "/models/file"),
                ("ServedModel", "/models/rules"),
                ("ModelRelay", "/models/relay"),
                ("ModelReplay", "/models/replay"),
                ("ModelFault", "/models/file/faults/0"),
                ("ModelFault", "/models/rules/faults/0"),
                ("ModelFault", "/models/relay/faults/0"),
                ("ModelFaultAction", "/models/file/faults/0/do"),
                ("ModelFaultAction", "/models/rules/faults/0/do"),
                ("ModelFaultAction", "/models/relay/faults/0/do"),
            ],
        },
        KeySample {
            name: "assertions",
            keys: json!({
                "mcp": {"bank": {"type": "mock", "tools": [{"name": "charge"}, {"name": "refund"}], "faults": [{"do": "is_error"}]}},
                "assert": [
                    {"type": "idempotent", "tool": "charge", "key": "order_id", "server": "bank", "negate": true, "message": "once"},
                    {"type": "after_fault", "tool": "charge", "server": "bank", "max_retries": 2, "key": "order_id", "forbid": ["refund"], "negate": true, "message": "calm"},
                    {"type": "valid_arguments", "tool": "charge", "server": "bank", "negate": true, "message": "valid"},
                ],
            }),
            definitions: &[
                ("Idempotent", "/assert/0"),
                ("AfterFault", "/assert/1"),
                ("ValidArguments", "/assert/2"),
            ],
        },
    ]
}

/// A case of one sample with a misspelt key, and what the error must say.
struct Misspelling {
    name: String,
    keys: Value,
    word: String,
}

/// A case for each key of each sample, which has another name.
fn misspellings() -> Vec<Misspelling> {
    let mut all = Vec::new();
    for sample in samples() {
        for (_, place) in sample.definitions {
            let members = sample.keys.pointer(place).and_then(Value::as_object).expect("an object");
            for key in members.keys().filter(|key| *key != "type") {
                let mut keys = sample.keys.clone();
                let changed = keys.pointer_mut(place).and_then(Value::as_object_mut).expect("an object");
                let value = changed.shift_remove(key).expect("the key");
                let word = format!("{key}zz");
                changed.insert(word.clone(), value);
                all.push(Misspelling { name: format!("{} {place} {key}", sample.name), keys, word });
            }
        }
    }
    all
}

/// Runs cases, given by name and keys, in all front ends. Returns the exit codes, outputs and reports.
fn run_everywhere(cases: &[(String, Value)]) -> Vec<(&'static str, i32, String, Value)> {
    let agent = echo_agent();
    let config = format!(
        "target: {{ endpoint: '{agent}' }}\nmcp: {{ shop: {{ type: mock, tools: [{{ name: extra }}] }} }}\n"
    );
    let project = Project::with_config(&config)
        .file("tools.json", r#"{"tools": [{"name": "recorded"}]}"#)
        .file("src/bank.ts", "export const charge = () => ({ content: 1 });\n")
        .file("model.yaml", "rules: [{ reply: Hello. }]\n")
        .file("bank.mcp.jsonl", "{\"format\":\"hotseat-mcp-recording\",\"version\":1,\"server\":\"bank\"}\n")
        .file("relay.jsonl", "{\"format\":\"hotseat-served-model\",\"version\":1}\n");
    let documents: Vec<Value> = cases
        .iter()
        .map(|(name, keys)| {
            let mut case = json!({"name": name, "turns": [{"user": "hello"}]});
            case.as_object_mut().expect("a case").extend(keys.as_object().expect("keys").clone());
            case
        })
        .collect();
    // JSON is YAML, too.
    let yaml: Vec<String> = documents.iter().map(|case| format!("{case:#}\n")).collect();
    let lines: Vec<String> = documents.iter().map(|case| format!("{case}\n")).collect();
    let tests = cases.iter().map(|(name, keys)| {
        let options = camel_case(keys).to_string();
        format!("it({}, {options}, () => {{ user.says('hello'); }});\n", json!(name))
    });
    let script = "import { it, user } from 'hotseat';\n".to_string() + &tests.collect::<String>();
    let mut all = Vec::new();
    for (front_end, file, text) in [
        ("YAML", "a.test.yaml", yaml.join("---\n")),
        ("JSON lines", "a.test.jsonl", lines.concat()),
        ("TypeScript", "a_test.ts", script),
    ] {
        project.workspace.file(file, &text);
        let output = project.hotseat(&["test", file, "-o", "report.json", "--no-store"]);
        all.push((front_end, output.code, output.stdout + &output.stderr, read_report(&project)));
    }
    let (harness, output) = project.harness("tests/a.rs", &["-o", "report.json"]);
    let cases = cases.to_vec();
    let code = harness.run(move |g: &mut Group| {
        for (name, keys) in cases {
            let example = g.it(name, async |t| {
                t.user.says("hello").await;
            });
            for (key, value) in keys.as_object().expect("keys") {
                example.case_key(key, value.clone());
            }
        }
    });
    let HarnessOutput::Captured(kept) = output else { unreachable!("it is kept") };
    all.push(("Rust", code.into(), kept.text(), read_report(&project)));
    all
}

/// Reads the report of the last run, and removes it.
fn read_report(project: &Project) -> Value {
    let path = project.workspace.path("report.json");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(path);
    serde_json::from_str(&text).unwrap_or_default()
}

/// Keys as scripts spell them.
fn camel_case(value: &Value) -> Value {
    let spelled = |key: &String| {
        let mut words = key.split('_');
        let first = words.next().unwrap_or_default().to_string();
        // Arguments and headers have names of their own.
        match key.as_str() {
            "order_id" => key.clone(),
            _ => words.fold(first, |text, word| text + &word[..1].to_uppercase() + &word[1..]),
        }
    };
    match value {
        Value::Object(members) => {
            members.iter().map(|(key, value)| (spelled(key), camel_case(value))).collect()
        }
        Value::Array(values) => values.iter().map(camel_case).collect(),
        other => other.clone(),
    }
}

#[test]
fn the_samples_have_every_key() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/suite.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut missing = Vec::new();
    let samples = samples();
    let names: BTreeSet<&str> =
        samples.iter().flat_map(|sample| sample.definitions).map(|(name, _)| *name).collect();
    let services = ["Mcp", "Model", "ServedModel", "CaseFault", "FaultAction"];
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        let is_service = services.iter().any(|start| name.starts_with(start));
        if is_service && !names.contains(name.as_str()) {
            missing.push(name.clone());
        }
        let keys = definition["properties"].as_object().into_iter().flat_map(serde_json::Map::keys);
        for key in keys.filter(|_| names.contains(name.as_str())) {
            let has = |sample: &KeySample| {
                let mut places = sample.definitions.iter().filter(|(other, _)| other == name);
                places.any(|(_, place)| {
                    sample.keys.pointer(place).is_some_and(|value| value.get(key).is_some())
                })
            };
            if !samples.iter().any(has) {
                missing.push(format!("{name}.{key}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_key_is_accepted_in_all_front_ends() {
    let cases: Vec<_> = samples().into_iter().map(|sample| (sample.name.to_string(), sample.keys)).collect();
    let mut expected: Option<Vec<String>> = None;
    for (front_end, code, words, report) in run_everywhere(&cases) {
        assert_eq!(code, 1, "{front_end}: {words}");
        let results = report["results"].as_array().unwrap_or_else(|| panic!("{front_end}: {words}"));
        let digest = |result: &Value| {
            let failure = &result["failure"];
            // Places differ.
            let message = failure["message"].as_str().unwrap_or_default();
            let message = message.split(" (").next().unwrap_or_default();
            format!("{} {} {} {message}", result["name"], result["status"], failure["kind"])
        };
        let digests: Vec<String> = results.iter().map(digest).collect();
        assert_eq!(digests.len(), cases.len(), "{front_end}: {words}");
        assert_eq!(&digests, expected.get_or_insert_with(|| digests.clone()), "{front_end}: {words}");
    }
}

#[test]
fn every_misspelt_key_is_refused_by_name_in_all_front_ends() {
    let misspellings = misspellings();
    assert!(misspellings.len() > 70, "{}", misspellings.len());
    // A run shows at most 100 errors.
    for part in misspellings.chunks(25) {
        let cases: Vec<_> = part.iter().map(|wrong| (wrong.name.clone(), wrong.keys.clone())).collect();
        for (front_end, code, words, _) in run_everywhere(&cases) {
            assert_eq!(code, 2, "{front_end}: {words}");
            for Misspelling { name, word, .. } in part {
                let camel = camel_case(&json!({word.as_str(): 1}));
                let camel = camel.as_object().and_then(|keys| keys.keys().next()).expect("a key");
                let is_named = [word, camel].iter().any(|word| words.contains(&format!("`{word}`")));
                assert!(is_named, "{front_end} does not name `{word}` of {name}: {words}");
            }
        }
    }
}
