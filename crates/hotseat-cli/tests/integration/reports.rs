//! Reports: machine-readable files, annotations, and data that no report may contain.
use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, ProgramOutput, checkout};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::common::{HOTSEAT, Project, TEST_TIMEOUT, TestRun, echo_agent, unreachable_address};

/// An agent that pays, refuses or fails.
fn shop_reply(request: &FakeRequest) -> FakeReply {
    let run = FakeRun::for_request(request).started();
    let charge = |run: FakeRun, status: &str| {
        run.tool(
            "call-1",
            "charge_card",
            &json!({"amount": 42.5, "currency": "EUR"}),
            Some(json!({"status": status})),
        )
    };
    match request.last_user_text().as_str() {
        "pay" => charge(run, "approved").text("Paid 42.50 EUR.").finished().into(),
        "decline" => charge(run, "declined").text("Payment failed.").finished().into(),
        "crash" => run.error("model exploded", Some("BOOM")).into(),
        "hang" => run.hang().into(),
        said => run.reasoning("Nothing to do.").text(&format!("You said: {said}")).finished().into(),
    }
}

const SUITE: &str = "
name: pays
id: P-1
turns:
  - { user: hello, assert: { text: { must_match: hello } } }
  - { user: pay }
assert:
  tools: { require: [{ name: charge_card, count: { exact: 1 }, result_match: approved }] }
---
name: is declined
turns:
  - user: decline
    assert:
      tools:
        require: [{ name: charge_card, result_match: approved }]
      text: { must_not_match: Paid }
---
name: crashes
turns: [{ user: crash }]
---
name: hangs
turns: [{ user: hang, timeout_ms: 1000 }]
---
name: later
skip: not ready
turns: [{ user: hello }]
";

fn shop_project() -> (FakeAgent, Project) {
    let agent = FakeAgent::start(shop_reply);
    let project =
        Project::with_agent(&agent).suite("a", SUITE).suite("b", "name: other\nturns: [{ user: pay }]\n");
    (agent, project)
}

/// Removes values that differ from run to run: times, durations, ids and addresses.
fn normalize(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                let time = ["_ms", "_at", "_ts"].iter().any(|end| key.ends_with(end)) || key == "timestamp";
                match value {
                    Value::Number(_) if time => *value = json!("[TIME]"),
                    Value::String(_) if time => *value = json!("[WHEN]"),
                    other => normalize(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::String(text) => *text = hotseat_testkit::redact(text, std::path::Path::new("/nowhere")),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[track_caller]
fn read_json_lines(project: &Project, file: &str) -> Vec<Value> {
    let text = project.workspace.read(file);
    assert!(text.ends_with('\n'), "{text}");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

// Files.

#[test]
fn json_contains_all_cases_in_order() {
    let (_agent, project) = shop_project();
    let TestRun { output, mut report } = project.test(&[]);
    assert_eq!(output.code, 1, "{output}");
    normalize(&mut report);
    assert_snapshot!(serde_json::to_string_pretty(&report).expect("JSON"), @r#"
    {
      "summary": {
        "total": 6,
        "passed": 2,
        "failed": 3,
        "skipped": 1,
        "labels": {
          "passed": 2,
          "failed": 3,
          "skipped": 1
        },
        "errors": 1,
        "timeouts": 1,
        "interrupted": false,
        "pass_rate": 40.0,
        "duration_ms": "[TIME]",
        "agent_id": "http://127.0.0.1:[PORT]/",
        "agent_path": "http://127.0.0.1:[PORT]/"
      },
      "environment": {
        "user_id": "test-user",
        "team_id": "test-team",
        "locale": "en-us"
      },
      "metadata": {
        "version": "1.8",
        "hotseat": "0.1.0",
        "started_at": "[WHEN]",
        "completed_at": "[WHEN]",
        "input_files": [
          "a.test.yaml",
          "b.test.yaml"
        ],
        "output_file": "out/report.json",
        "options": {
          "parallel": 8,
          "fail_fast": false,
          "runs": 1,
          "fail_on_skip": false
        }
      },
      "results": [
        {
          "index": 0,
          "id": "P-1",
          "name": "pays",
          "file": "a.test.yaml",
          "line": 2,
          "agent": "http://127.0.0.1:[PORT]/",
          "mode": "multi_turn",
          "status": "passed",
          "label": "passed",
          "completion": {
            "state": "pass",
            "final_topic": null,
            "turn_count": 2
          },
          "stable_id": "example:125058724ada",
          "fingerprints": {
            "asked": "a7856364596524d8",
            "checked": "6822ce7ea86b8f55"
          },
          "started_at": "[WHEN]",
          "duration_ms": "[TIME]",
          "total_turns": 2,
          "turns": [
            {
              "turn": 1,
              "status": "passed",
              "input": "hello",
              "input_source": "static",
              "output": "You said: hello",
              "messages": [
                "You said: hello"
              ],
              "reasoning": [
                "Nothing to do."
              ],
              "tool_calls": [],
              "awaiting_input": false,
              "awaiting_reason": "completed",
              "assertions": [
                {
                  "passed": true,
                  "state": "passed",
                  "expected": "the agent to say something that matches /hello/",
                  "actual": "\"You said: hello\"",
                  "file": "a.test.yaml",
                  "line": 5,
                  "column": 50
                }
              ],
              "start_ts": "[TIME]",
              "end_ts": "[TIME]",
              "duration_ms": "[TIME]"
            },
            {
              "turn": 2,
              "status": "passed",
              "input": "pay",
              "input_source": "static",
              "output": "Paid 42.50 EUR.",
              "messages": [
                "Paid 42.50 EUR."
              ],
              "tool_calls": [
                {
                  "id": "call-1",
                  "name": "charge_card",
                  "args": {
                    "amount": 42.5,
                    "currency": "EUR"
                  },
                  "result": {
                    "status": "approved"
                  },
                  "started_ms": "[TIME]",
                  "duration_ms": "[TIME]",
                  "timestamp": "[TIME]"
                }
              ],
              "awaiting_input": false,
              "awaiting_reason": "completed",
              "assertions": [],
              "start_ts": "[TIME]",
              "end_ts": "[TIME]",
              "duration_ms": "[TIME]"
            }
          ],
          "assertions": [
            {
              "passed": true,
              "state": "passed",
              "expected": "charge_card with a result that matches /approved/ to be called exactly once",
              "actual": "1 call: turn 2: charge_card({\"amount\":42.5,\"currency\":\"EUR\"}) → {\"status\":\"approved\"}",
              "file": "a.test.yaml",
              "line": 8,
              "column": 50
            }
          ]
        },
        {
          "index": 1,
          "id": "is declined",
          "name": "is declined",
          "file": "a.test.yaml",
          "line": 10,
          "agent": "http://127.0.0.1:[PORT]/",
          "mode": "standard",
          "status": "failed",
          "label": "failed",
          "failure": {
            "kind": "assertion",
            "fault": "agent",
            "message": "expected charge_card with a result that matches /approved/ to be called, got charge_card in turn 1, where the result is {\"status\":\"declined\"}",
            "detail": "a.test.yaml:15:27: expected charge_card with a result that matches /approved/ to be called, got 0 of 1 call matching\n- nearest: charge_card in turn 1\n  the result: expected /approved/, got {\"status\":\"declined\"}\n- turn 1: charge_card({\"amount\":42.5,\"currency\":\"EUR\"}) → {\"status\":\"declined\"}"
          },
          "error": "expected charge_card with a result that matches /approved/ to be called, got charge_card in turn 1, where the result is {\"status\":\"declined\"}",
          "error_kind": "assertion",
          "completion": {
            "state": "fail",
            "failure_type": "assertion",
            "failure_message": "expected charge_card with a result that matches /approved/ to be called, got charge_card in turn 1, where the result is {\"status\":\"declined\"}",
            "final_topic": null,
            "turn_count": 1
          },
          "stable_id": "example:fbfcfe4c6f18",
          "fingerprints": {
            "asked": "316fcf3f86896c36",
            "checked": "1e525692d665f883"
          },
          "input": "decline",
          "output": "Payment failed.",
          "started_at": "[WHEN]",
          "duration_ms": "[TIME]",
          "total_turns": 1,
          "turns": [
            {
              "turn": 1,
              "status": "failed",
              "input": "decline",
              "input_source": "static",
              "output": "Payment failed.",
              "messages": [
                "Payment failed."
              ],
              "tool_calls": [
                {
                  "id": "call-1",
                  "name": "charge_card",
                  "args": {
                    "amount": 42.5,
                    "currency": "EUR"
                  },
                  "result": {
                    "status": "declined"
                  },
                  "started_ms": "[TIME]",
                  "duration_ms": "[TIME]",
                  "timestamp": "[TIME]"
                }
              ],
              "awaiting_input": false,
              "awaiting_reason": "completed",
              "assertions": [
                {
                  "passed": false,
                  "state": "failed",
                  "expected": "charge_card with a result that matches /approved/ to be called",
                  "actual": "0 of 1 call matching\n- nearest: charge_card in turn 1\n  the result: expected /approved/, got {\"status\":\"declined\"}\n- turn 1: charge_card({\"amount\":42.5,\"currency\":\"EUR\"}) → {\"status\":\"declined\"}",
                  "comparison": {
                    "summary": "0 of 1 call matching",
                    "missing": [
                      {
                        "nearest": {
                          "tool": "charge_card",
                          "turn": 1,
                          "id": "call-1",
                          "differences": [
                            {
                              "part": "result",
                              "path": "",
                              "expected": "/approved/",
                              "got": "{\"status\":\"declined\"}",
                              "reason": "pattern"
                            }
                          ]
                        }
                      }
                    ],
                    "lines": [
                      {
                        "text": "turn 1: charge_card({\"amount\":42.5,\"currency\":\"EUR\"}) → {\"status\":\"declined\"}"
                      }
                    ]
                  },
                  "file": "a.test.yaml",
                  "line": 15,
                  "column": 27
                },
                {
                  "passed": true,
                  "state": "passed",
                  "expected": "the agent to say nothing that matches /Paid/",
                  "actual": "\"Payment failed.\"",
                  "file": "a.test.yaml",
                  "line": 16,
                  "column": 31
                }
              ],
              "assertion_errors": [
                "expected charge_card with a result that matches /approved/ to be called, got 0 of 1 call matching\n- nearest: charge_card in turn 1\n  the result: expected /approved/, got {\"status\":\"declined\"}\n- turn 1: charge_card({\"amount\":42.5,\"currency\":\"EUR\"}) → {\"status\":\"declined\"}"
              ],
              "start_ts": "[TIME]",
              "end_ts": "[TIME]",
              "duration_ms": "[TIME]"
            }
          ],
          "assertions": [],
          "assertion_errors": [
            "expected charge_card with a result that matches /approved/ to be called, got 0 of 1 call matching\n- nearest: charge_card in turn 1\n  the result: expected /approved/, got {\"status\":\"declined\"}\n- turn 1: charge_card({\"amount\":42.5,\"currency\":\"EUR\"}) → {\"status\":\"declined\"}"
          ]
        },
        {
          "index": 2,
          "id": "crashes",
          "name": "crashes",
          "file": "a.test.yaml",
          "line": 18,
          "agent": "http://127.0.0.1:[PORT]/",
          "mode": "standard",
          "status": "failed",
          "label": "failed",
          "failure": {
            "kind": "agent_error",
            "fault": "agent",
            "message": "the agent failed: model exploded (BOOM)"
          },
          "error": "agent error: model exploded (BOOM)",
          "error_kind": "agent_error",
          "completion": {
            "state": "fail",
            "failure_type": "error",
            "failure_message": "the agent failed: model exploded (BOOM)",
            "final_topic": null,
            "turn_count": 1
          },
          "stable_id": "example:51cce2c4cf52",
          "fingerprints": {
            "asked": "44678ed707ee576a",
            "checked": "44136fa355b3678a"
          },
          "input": "crash",
          "output": null,
          "started_at": "[WHEN]",
          "duration_ms": "[TIME]",
          "total_turns": 1,
          "turns": [
            {
              "turn": 1,
              "status": "failed",
              "input": "crash",
              "input_source": "static",
              "output": null,
              "messages": [],
              "tool_calls": [],
              "error": "agent error: model exploded (BOOM)",
              "error_info": {
                "code": "BOOM",
                "message": "model exploded"
              },
              "awaiting_input": false,
              "awaiting_reason": "completed",
              "assertions": [],
              "start_ts": "[TIME]",
              "end_ts": "[TIME]",
              "duration_ms": "[TIME]"
            }
          ],
          "assertions": []
        },
        {
          "index": 3,
          "id": "hangs",
          "name": "hangs",
          "file": "a.test.yaml",
          "line": 21,
          "agent": "http://127.0.0.1:[PORT]/",
          "mode": "standard",
          "status": "failed",
          "label": "failed",
          "failure": {
            "kind": "timeout",
            "fault": "agent",
            "message": "the turn timed out after 1000 ms"
          },
          "error": "timeout after [TIME]",
          "error_kind": "timeout",
          "completion": {
            "state": "fail",
            "failure_type": "timeout",
            "failure_message": "the turn timed out after 1000 ms",
            "final_topic": null,
            "turn_count": 1
          },
          "stable_id": "example:db1f74e642d2",
          "fingerprints": {
            "asked": "a5d9680bc087a3f2",
            "checked": "44136fa355b3678a"
          },
          "input": "hang",
          "output": null,
          "started_at": "[WHEN]",
          "duration_ms": "[TIME]",
          "total_turns": 1,
          "turns": [
            {
              "turn": 1,
              "status": "failed",
              "input": "hang",
              "input_source": "static",
              "output": null,
              "messages": [],
              "tool_calls": [],
              "error": "timeout after [TIME]",
              "error_info": {
                "code": "timeout",
                "message": "stopped at its time limit"
              },
              "awaiting_input": false,
              "awaiting_reason": "completed",
              "assertions": [],
              "start_ts": "[TIME]",
              "end_ts": "[TIME]",
              "duration_ms": "[TIME]"
            }
          ],
          "assertions": []
        },
        {
          "index": 4,
          "id": "later",
          "name": "later",
          "file": "a.test.yaml",
          "line": 24,
          "agent": "http://127.0.0.1:[PORT]/",
          "mode": "standard",
          "status": "skipped",
          "label": "skipped",
          "skip_reason": "not ready",
          "stable_id": "example:1d9283d848ea",
          "fingerprints": {
            "asked": "3eda7970dba4aed5",
            "checked": "44136fa355b3678a"
          },
          "started_at": "[WHEN]",
          "duration_ms": "[TIME]",
          "total_turns": 0,
          "turns": [],
          "assertions": []
        },
        {
          "index": 5,
          "id": "other",
          "name": "other",
          "file": "b.test.yaml",
          "line": 1,
          "agent": "http://127.0.0.1:[PORT]/",
          "mode": "standard",
          "status": "passed",
          "label": "passed",
          "completion": {
            "state": "pass",
            "final_topic": null,
            "turn_count": 1
          },
          "stable_id": "example:d9298a10d1b0",
          "fingerprints": {
            "asked": "1338c000b44016c7",
            "checked": "44136fa355b3678a"
          },
          "input": "pay",
          "output": "Paid 42.50 EUR.",
          "started_at": "[WHEN]",
          "duration_ms": "[TIME]",
          "total_turns": 1,
          "turns": [
            {
              "turn": 1,
              "status": "passed",
              "input": "pay",
              "input_source": "static",
              "output": "Paid 42.50 EUR.",
              "messages": [
                "Paid 42.50 EUR."
              ],
              "tool_calls": [
                {
                  "id": "call-1",
                  "name": "charge_card",
                  "args": {
                    "amount": 42.5,
                    "currency": "EUR"
                  },
                  "result": {
                    "status": "approved"
                  },
                  "started_ms": "[TIME]",
                  "duration_ms": "[TIME]",
                  "timestamp": "[TIME]"
                }
              ],
              "awaiting_input": false,
              "awaiting_reason": "completed",
              "assertions": [],
              "start_ts": "[TIME]",
              "end_ts": "[TIME]",
              "duration_ms": "[TIME]"
            }
          ],
          "assertions": []
        }
      ]
    }
    "#);
}

#[test]
fn json_lines_are_written_as_cases_finish() {
    let agent = FakeAgent::with_run(|run, request| {
        let said = request.last_user_text();
        let run = if said == "second" { run.gate("open") } else { run };
        run.text(&said).finished()
    });
    let project = Project::with_agent(&agent)
        .suite("a", "name: first\nturns: [{ user: first }]\n---\nname: second\nturns: [{ user: second }]\n");
    let mut running =
        project.command(&["test", "-o", "out.jsonl", "-o", "out.json", "--parallel", "1"]).spawn();
    agent.wait_at_gate("open", TEST_TIMEOUT);
    running.wait_for_stdout("► first");

    let soon = read_json_lines(&project, "out.jsonl");
    let types: Vec<&Value> = soon.iter().map(|line| &line["type"]).collect();
    assert_eq!(types, ["start", "result"], "before the run has ended");
    assert_eq!((&soon[0]["total"], &soon[0]["parallel"]), (&json!(2), &json!(1)));
    assert_eq!((&soon[1]["name"], &soon[1]["status"]), (&json!("first"), &json!("passed")));

    agent.release("open");
    assert_eq!(running.wait().code, 0);
    let all = read_json_lines(&project, "out.jsonl");
    let types: Vec<&Value> = all.iter().map(|line| &line["type"]).collect();
    assert_eq!(types, ["start", "result", "result", "summary"]);
    // A result is identical in both files.
    let report = project.workspace.read_json("out.json");
    for (line, result) in all[1..3].iter().zip(report["results"].as_array().expect("results")) {
        let mut line = line.clone();
        assert_eq!(line.as_object_mut().and_then(|line| line.remove("type")), Some(json!("result")));
        assert_eq!(&line, result);
    }
    let summary = all[3].as_object().expect("a summary");
    assert_eq!((&summary["total"], &summary["passed"]), (&json!(2), &json!(2)));
}

/// Asserts that `value` has all members of `sample` with values of the same type. Lists are compared entry by
/// entry.
#[track_caller]
fn assert_has_members(value: &Value, sample: &Value, path: &str) {
    match (value, sample) {
        (Value::Object(members), Value::Object(wanted)) => {
            for (key, sample) in wanted {
                let found = members.get(key).unwrap_or_else(|| panic!("{path}.{key} is missing: {value:#}"));
                assert_has_members(found, sample, &format!("{path}.{key}"));
            }
        }
        (Value::Array(entries), Value::Array(wanted)) => {
            assert_eq!(entries.len(), wanted.len(), "{path}: {value:#}");
            for (number, (entry, sample)) in entries.iter().zip(wanted).enumerate() {
                assert_has_members(entry, sample, &format!("{path}[{number}]"));
            }
        }
        // Times and paths differ; everything else is identical.
        (Value::Number(_), Value::Number(_)) if path.ends_with("duration_ms") => {}
        (Value::String(_), Value::String(_)) if path.ends_with("_at") || path.ends_with("_path") => {}
        (found, sample) => assert_eq!(found, sample, "{path}"),
    }
}

/// Documented report of single-turn cases.
#[test]
fn json_has_documented_members_for_single_turn_cases() {
    let agent = FakeAgent::with_run(|run, request| {
        let answer = match request.last_user_text().as_str() {
            "Business travel, $3500" => "Confirm $3500 expense?",
            _ => "What type of expense would you like to submit?",
        };
        run.text(answer).finished()
    });
    let history = json!([
        {"role": "user", "content": "I want to submit an expense"},
        {"role": "assistant", "content": "What type?"},
        {"role": "user", "content": "Business travel, $3500"}
    ]);
    let first = json!([{"role": "user", "content": "I want to submit an expense"}]);
    let cases =
        [json!({"id": "expense-turn1", "input": first}), json!({"id": "expense-turn2", "input": history})];
    let project = Project::with_config(&format!(
        "agents:\n  assistants.expense: {{ endpoint: '{agent}' }}\ntarget: assistants.expense\n"
    ))
    .file("tests/expense.test.jsonl", &format!("{}\n{}\n", cases[0], cases[1]));
    let report = project.test(&["--timeout", "90s", "--run", "expense"]).report;
    let sample = json!({
        "summary": {
            "total": 2, "passed": 2, "failed": 0, "skipped": 0, "errors": 0, "timeouts": 0, "duration_ms": 0,
            "pass_rate": 100.0, "agent_id": "assistants.expense", "agent_path": ""
        },
        "results": [
            {"id": "expense-turn1", "name": "expense-turn1", "agent": "assistants.expense", "mode": "standard", "status": "passed",
                "input": first, "output": "What type of expense would you like to submit?", "duration_ms": 0},
            {"id": "expense-turn2", "status": "passed", "input": history, "output": "Confirm $3500 expense?", "duration_ms": 0}
        ],
        "metadata": {
            "started_at": "", "completed_at": "", "input_file": "tests/expense.test.jsonl",
            "input_files": ["tests/expense.test.jsonl"], "output_file": "out/report.json", "version": "1.8",
            "options": {"parallel": 8, "timeout_ms": 90_000.0, "fail_fast": false, "run": "expense"}
        }
    });
    assert_has_members(&report, &sample, "report");
}

/// Documented report of conversations, in JSON and JSON lines.
#[test]
fn json_has_documented_members_for_conversations() {
    let agent = FakeAgent::with_run(|run, request| {
        let said = request.last_user_text();
        let status = json!({"expense": {"status": "submitted"}});
        match said.as_str() {
            said if said.contains("confirm") => {
                run.tool("c-2", "submit", &json!({}), Some(status)).text("Submitted!")
            }
            said if said.contains('$') => run.tool("c-1", "create_expense", &json!({"amount": 3500}), None),
            _ => run.text("What type of expense would you like to submit?"),
        }
        .finished()
    });
    let user = FakeAgent::with_run(|run, request| {
        let told = request.last_user_json();
        let script = ["Help me file an expense", "Client dinner, $250", "Yes, confirm"];
        let turn = told["turn_number"].as_u64().and_then(|turn| usize::try_from(turn).ok()).expect("a turn");
        run.text(&json!({"input": script[turn - 1]}).to_string()).finished()
    });
    let check = |check: &Value, passed: bool| {
        let mut check = check.clone();
        check["passed"] = json!(passed);
        check
    };
    let asks = json!({"type": "contains", "value": "type of expense"});
    let creates = json!({"type": "tool_called", "name": "create_expense"});
    let is_submitted = json!({"type": "json_path", "path": "$.expense.status", "value": "submitted"});
    let flow = json!({"id": "T001", "name": "Expense Reimbursement Flow", "turns": [
        {"input": "I want to submit an expense", "assertions": [asks]},
        {"input": "Business travel, $3500", "assertions": [creates]},
        {"input": "Yes, confirm", "assertions": []}], "final_assertions": [is_submitted]});
    let checkpoint = |id: &str, assertion: &Value| json!({"id": id, "assertion": assertion});
    let dynamic = json!({"id": "expense-dynamic", "name": "Expense Coverage Test", "simulator": {"use": "sim"}, "checkpoints": [
        checkpoint("ask_type", &asks), checkpoint("call_create", &creates),
        checkpoint("confirm", &json!({"type": "contains", "value": "Submitted"}))]});
    let flow = {
        let mut flow = flow;
        flow["turns"][2] = json!({"input": "Yes, confirm"});
        flow
    };
    let project = Project::with_config(&format!(
        "agents:\n  assistants.expense: {{ endpoint: '{agent}' }}\n  sim: {{ endpoint: '{user}' }}\ntarget: assistants.expense\n"
    ))
    .file("tests/a.test.jsonl", &format!("{flow}\n{dynamic}\n"));
    let tested = project.test(&["-o", "out.jsonl"]);
    tested.assert_all_passed();
    let flow = json!({
        "id": "T001", "name": "Expense Reimbursement Flow", "mode": "multi_turn", "status": "passed",
        "turns": [
            {"turn": 1, "input": "I want to submit an expense", "input_source": "static",
                "output": "What type of expense would you like to submit?", "awaiting_input": true,
                "assertions": [check(&asks, true)], "duration_ms": 0},
            {"turn": 2, "input": "Business travel, $3500", "input_source": "static", "output": null,
                "tool_calls": [{"name": "create_expense", "args": {"amount": 3500}}], "awaiting_input": false,
                "assertions": [check(&creates, true)], "duration_ms": 0},
            {"turn": 3, "input": "Yes, confirm", "input_source": "static", "output": "Submitted!",
                "awaiting_input": false, "assertions": [], "duration_ms": 0}
        ],
        "final_assertions": [check(&is_submitted, true)],
        "total_turns": 3, "duration_ms": 0
    });
    let dynamic = json!({
        "id": "expense-dynamic", "name": "Expense Coverage Test", "mode": "dynamic", "status": "passed",
        "turns": [
            {"turn": 1, "input": "Help me file an expense", "input_source": "simulated",
                "output": "What type of expense would you like to submit?",
                "roles": [{"role": "simulator", "agent": "agents:sim", "finding": {"input": "Help me file an expense"}}]},
            {"turn": 2, "input": "Client dinner, $250", "output": null},
            {"turn": 3, "input": "Yes, confirm", "output": "Submitted!"}
        ],
        "checkpoints": [
            {"id": "ask_type", "reached_at_turn": 1, "passed": true},
            {"id": "call_create", "reached_at_turn": 2, "passed": true},
            {"id": "confirm", "reached_at_turn": 3, "passed": true}
        ],
        "total_turns": 3, "duration_ms": 0
    });
    assert_has_members(&tested.report["results"], &json!([flow, dynamic]), "results");
    let written = read_json_lines(&project, "out.jsonl");
    for sample in [flow, dynamic] {
        let line = written.iter().find(|line| line["id"] == sample["id"]).expect("a line for each case");
        assert_eq!(line["type"], "result");
        assert_has_members(line, &sample, "line");
    }
    let start = json!({"type": "start", "agent_id": "assistants.expense", "input_file": "tests/a.test.jsonl", "options": {}});
    assert_has_members(&written[0], &start, "start");
}

#[test]
fn folder_receives_one_report_per_run() {
    let (_agent, project) = shop_project();
    let names = |folder: &str| {
        let entries = std::fs::read_dir(project.workspace.path(folder)).expect("the folder is made");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let output = project.hotseat(&["test", "-o", "results/"]);
    let one = names("results");
    assert_eq!(one.len(), 1, "{output}");
    let digits = one[0].strip_prefix("output-").and_then(|rest| rest.strip_suffix(".jsonl"));
    assert!(
        digits.is_some_and(|digits| digits.len() == 14 && digits.bytes().all(|b| b.is_ascii_digit())),
        "{one:?}"
    );
    assert!(output.stdout.contains(&format!("  Output: results/{}\n", one[0])), "{output}");
    assert_eq!(read_json_lines(&project, &format!("results/{}", one[0])).len(), 8);
    // The folder exists now, so the trailing slash is optional; runs use separate files.
    for _ in 0..3 {
        project.hotseat(&["test", "-o", "results", "--run", "^pays$"]);
    }
    assert_eq!(names("results").len(), 4);
    assert_eq!(read_json_lines(&project, &format!("results/{}", one[0])).len(), 8, "it stays as it was");
    // No file was requested.
    project.hotseat(&["test"]);
    assert!(names(".").iter().all(|name| !name.starts_with("output")), "{:?}", names("."));
}

#[test]
fn counts_add_up() {
    let (_agent, project) = shop_project();
    let tested = project.test(&[]);
    let count = |what| tested.count(what);
    assert_eq!((count("total"), count("passed"), count("failed"), count("skipped")), (6, 2, 3, 1));
    assert_eq!((count("errors"), count("timeouts")), (1, 1), "of those that failed");
}

#[test]
fn junit_is_well_formed_with_correct_counts() {
    let (_agent, project) = shop_project();
    project.hotseat(&["test", "-o", "out.xml"]);
    let report =
        quick_junit::Report::deserialize_from_str(&project.workspace.read("out.xml")).expect("JUnit");
    assert_eq!((report.tests, report.failures, report.errors), (6, 1, 2));
    let suites: Vec<(&str, usize)> =
        report.test_suites.iter().map(|suite| (suite.name.as_str(), suite.test_cases.len())).collect();
    assert_eq!(suites, [("a.test.yaml", 5), ("b.test.yaml", 1)]);
    let names: Vec<&str> = report.test_suites[0].test_cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["pays", "is declined", "crashes", "hangs", "later"]);
    let xml = project.workspace.read("out.xml");
    for part in [
        r#"type="failed: assertion""#,
        r#"type="failed: agent_error""#,
        r#"type="failed: timeout""#,
        r#"<skipped message="not ready"/>"#,
        r#"file="a.test.yaml""#,
        "Tool: charge_card({&quot;amount&quot;:42.5",
    ] {
        assert!(xml.contains(part), "{part}\n{xml}");
    }
}

/// Readers of JUnit know a case by the name of its suite and its own.
#[test]
fn junit_tells_cases_of_one_name_apart() {
    let agent = echo_agent();
    let case = |id: &str, name: &str| json!({"id": id, "name": name, "input": "hi"}).to_string();
    let cases =
        [case("A-1", "greets"), case("A-2", "greets"), case("A-3", "books"), case("greets", "greets")];
    let project = Project::with_agent(&agent).file("a.test.jsonl", &cases.join("\n"));
    assert_eq!(project.hotseat(&["test", "-o", "out.xml"]).code, 0);
    let xml = project.workspace.read("out.xml");
    let report = quick_junit::Report::deserialize_from_str(&xml).expect("JUnit");
    let names: Vec<&str> = report.test_suites[0].test_cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["greets [A-1]", "greets [A-2]", "books", "greets"]);
    let ids = report.test_suites[0].test_cases.iter().flat_map(|case| &case.properties);
    let ids: Vec<&str> = ids.filter(|one| one.name.as_str() == "id").map(|one| one.value.as_str()).collect();
    assert_eq!(ids, ["A-1", "A-2", "A-3"]);
}

#[test]
fn junit_accepts_any_file_name() {
    let agent = echo_agent();
    let name = "<testsuite a=\"b\"> &amp; <testcase '.test.yaml";
    let project = Project::with_agent(&agent)
        .file(name, "name: a\nturns: [{ user: hello }]\n---\nname: b\nturns: [{ user: hello }]\n")
        .suite("z", "name: c\nturns: [{ user: hello }]\n");
    assert_eq!(project.hotseat(&["test", "-o", "out.xml"]).code, 0);
    let report =
        quick_junit::Report::deserialize_from_str(&project.workspace.read("out.xml")).expect("JUnit");
    let found =
        report.test_suites.iter().map(|suite| (suite.name.as_str(), suite.tests, suite.test_cases.len()));
    assert_eq!(found.collect::<Vec<_>>(), [(name, 2, 2), ("z.test.yaml", 1, 1)]);
    assert_eq!(report.test_suites[0].test_cases[1].classname.as_deref(), Some(name));
}

#[test]
fn writes_several_reports_at_once() {
    let (_agent, project) = shop_project();
    let files = ["deep/down/out.json", "out.jsonl", "out.ndjson", "deep/OUT.XML"];
    let arguments: Vec<&str> =
        ["test"].into_iter().chain(files.iter().flat_map(|file| ["-o", file])).collect();
    project.hotseat(&arguments).assert_code(1);
    let json = project.workspace.read_json(files[0]);
    assert_eq!(json["results"].as_array().map(Vec::len), Some(6));
    assert_eq!(read_json_lines(&project, files[1]).len(), 8);
    assert_eq!(read_json_lines(&project, files[2]).len(), 8);
    assert!(project.workspace.read(files[3]).starts_with("<?xml"));
}

#[test]
fn reports_are_complete_when_nothing_ran() {
    let (_agent, project) = shop_project();
    let config = "target: { endpoint: 'http://127.0.0.1:9/' }\nhooks: { fails: { cmd: ['false'] } }\n";
    project.workspace.file("hotseat.yaml", config);
    let reports = ["--before", "fails", "-o", "out.json", "-o", "out.jsonl", "-o", "out.xml", "-o", "out.md"];
    let output =
        project.command(&[&["test"][..], &reports].concat()).env("GITHUB_STEP_SUMMARY", "summary.md").run();
    assert_eq!(output.code, 3, "{output}");
    let json = project.workspace.read_json("out.json");
    assert_eq!((&json["summary"]["total"], &json["results"]), (&json!(0), &json!([])));
    assert_eq!(read_json_lines(&project, "out.jsonl").len(), 1);
    // No report may look like one of a run without failures.
    for why in [&json["summary"]["error"], &read_json_lines(&project, "out.jsonl")[0]["error"]] {
        assert!(
            why.as_str().is_some_and(|why| why.contains("--before fails failed, so no case ran")),
            "{json}"
        );
    }
    let xml = project.workspace.read("out.xml");
    let report = quick_junit::Report::deserialize_from_str(&xml).expect("JUnit");
    assert_eq!((report.tests, report.errors), (1, 1), "{xml}");
    for file in ["out.md", "summary.md"] {
        let text = project.workspace.read(file);
        assert!(text.starts_with("## \u{274c} ") && text.contains("could not be carried out"), "{text}");
    }
    assert!(!output.stdout.contains("NO TEST RAN"), "{output}");
}

#[test]
fn report_without_passed_cases_shows_no_success_mark() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", "name: a\nskip: later\nturns: [{ user: hello }]\n");
    assert_eq!(project.hotseat(&["test", "-o", "out.md"]).code, 0);
    let text = project.workspace.read("out.md");
    assert!(!text.contains('\u{2705}'), "{text}");
}

#[test]
fn trace_contains_agent_events() {
    let (_agent, project) = shop_project();
    project.hotseat(&["test", "--trace", "trace.jsonl", "--run", "^pays$"]);
    let trace = read_json_lines(&project, "trace.jsonl");
    assert_eq!(
        (&trace[0]["type"], &trace[0]["id"], &trace[0]["status"]),
        (&json!("case"), &json!("P-1"), &json!("passed"))
    );
    let sequence: Vec<u64> = trace[1..].iter().filter_map(|event| event["sequence"].as_u64()).collect();
    assert_eq!(sequence, (1..=sequence.len() as u64).collect::<Vec<_>>(), "numbered from 1 without a gap");
    let raw = trace.iter().filter(|event| event["type"] == "raw");
    let raw: Vec<&str> = raw.filter_map(|event| event["payload"]["event"]["type"].as_str()).collect();
    let (first, last) = (raw.first(), raw.last());
    assert_eq!((first, last), (Some(&"RUN_STARTED"), Some(&"RUN_FINISHED")), "{raw:?}");
    assert!(raw.contains(&"TOOL_CALL_RESULT"), "{raw:?}");
}

/// Identical agent output gives identical reports, except for times and ids.
#[test]
fn reports_are_deterministic() {
    let (_agent, project) = shop_project();
    let mut reports = ["1", "1", "8"].map(|parallel| {
        let mut report = project.test(&["--parallel", parallel]).report;
        normalize(&mut report);
        report["metadata"]["options"]["parallel"] = json!("[PARALLEL]");
        serde_json::to_string_pretty(&report).expect("JSON")
    });
    assert_eq!(reports[0], reports[1]);
    assert_eq!(reports[0], reports[2], "the order in which cases end is not the order of the report");
    // Different output gives a different report.
    let other = FakeAgent::start(|request| match request.last_user_text().as_str() {
        "pay" => FakeRun::for_request(request).started().text("Paid 42.51 EUR.").finished().into(),
        _ => shop_reply(request),
    });
    let project =
        Project::with_agent(&other).suite("a", SUITE).suite("b", "name: other\nturns: [{ user: pay }]\n");
    let mut report = project.test(&[]).report;
    normalize(&mut report);
    report["metadata"]["options"]["parallel"] = json!("[PARALLEL]");
    reports[1] = serde_json::to_string_pretty(&report).expect("JSON");
    assert_ne!(reports[0], reports[1]);
}

// GitHub.

#[test]
fn annotates_each_failed_case_once() {
    let (_agent, project) = shop_project();
    let output = project.command(&["test", "--parallel", "1"]).env("GITHUB_ACTIONS", "true").run();
    let annotations: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with("::")).collect();
    assert_snapshot!(annotations.join("\n"), @r#"
    ::error file=a.test.yaml,line=15,col=27,title=is declined::failed: expected charge_card with a result that matches /approved/ to be called, got charge_card in turn 1, where the result is {"status":"declined"}%0Aa.test.yaml:15:27: expected charge_card with a result that matches /approved/ to be called, got 0 of 1 call matching%0A- nearest: charge_card in turn 1%0A  the result: expected /approved/, got {"status":"declined"}%0A- turn 1: charge_card({"amount":42.5,"currency":"EUR"}) → {"status":"declined"}
    ::error file=a.test.yaml,line=18,col=7,title=crashes::failed: the agent failed: model exploded (BOOM)
    ::error file=a.test.yaml,line=21,col=7,title=hangs::failed: the turn timed out after 1000 ms
    "#);
    // Annotations are written only on GitHub.
    assert!(!project.hotseat(&["test"]).stdout.contains("::error"));
}

#[test]
fn annotations_contain_no_commands_of_other_servers() {
    let agent = FakeAgent::with_run(|run, _| run.error("a ##vso[task.x]y ##[error]z", None));
    let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hello }]\n");
    let output = project.command(&["test"]).env("GITHUB_ACTIONS", "true").run();
    assert!(output.stdout.contains("::error file=a.test.yaml"), "{output}");
    assert!(!output.stdout.contains("##vso[") && !output.stdout.contains("##["), "{output}");
}

#[test]
fn annotation_paths_are_relative_to_repository() {
    let agent = FakeAgent::start(shop_reply);
    let project = Project::empty()
        .file(
            "sub/hotseat.yaml",
            &format!("target:\n  endpoint: {agent}\n  assert:\n    tools: {{ forbid: [charge_card] }}\n"),
        )
        .file(
            "sub/tests/a.test.yaml",
            "name: own\nturns: [{ user: hello, assert: { text: { must_match: bye } } }]\n",
        )
        .file("sub/tests/b.test.yaml", "name: inherited\nturns: [{ user: pay }]\n");
    let output = project
        .command(&["test", "--parallel", "1"])
        .cwd("sub")
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_WORKSPACE", project.workspace.root())
        .run();
    let annotations: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with("::error")).collect();
    assert_eq!(annotations.len(), 2, "{output}");
    assert!(
        annotations[0].starts_with("::error file=sub/tests/a.test.yaml,line=2,col=54,title=own::"),
        "{output}"
    );
    assert!(
        annotations[1].starts_with("::error file=sub/hotseat.yaml,line=4,col=23,title=inherited::"),
        "{output}"
    );
}

// Untrusted text.

/// Text with special meaning for terminals, CI servers and XML parsers.
const HOSTILE: &str = "\x1b[31mred\x1b[0m\x1b]0;title\x07\r\x1b[2K\u{9b}31m\u{202e}\n::error file=a::pwned\n  ::set-output name=a::b\n##[error]pwned <b>&amp;\"']]></b>\u{0}\u{fffe} 100%";

fn hostile_reply(request: &FakeRequest) -> FakeReply {
    let run = FakeRun::for_request(request).started();
    match request.last_user_text().as_str() {
        "error" => run.error(HOSTILE, Some(HOSTILE)).into(),
        "body" => FakeReply::text(500, HOSTILE),
        "interrupt" => {
            run.interrupted(vec![json!({"id": HOSTILE, "reason": HOSTILE, "message": HOSTILE})]).into()
        }
        "unknown" => run.raw_event(json!({"type": HOSTILE})).text("hm").finished().into(),
        _ => run
            .text(HOSTILE)
            .tool("c", &format!("::error::{HOSTILE}"), &json!({ HOSTILE: HOSTILE }), Some(json!(HOSTILE)))
            .tool("d", "charge_card", &json!({ "a": HOSTILE }), Some(json!(HOSTILE)))
            .reasoning(HOSTILE)
            .finished()
            .into(),
    }
}

fn hostile_project(agent: &FakeAgent) -> Project {
    let case = |user: &str| {
        format!(
            "---\nname: \"{user} %0A\\n::error::x\"\nturns: [{{ user: {user}, assert: {{ text: {{ must_match: '^$' }} }} }}]\n"
        )
    };
    let hook = "---\nname: hook\nhooks: [{ cmd: [sh, hook.sh] }]\nturns: [{ user: a }]\n";
    let calls = "---\nname: calls\nturns: [{ user: say }]\nassert: { tools: { forbid: [charge_card] } }\n";
    let suite: String =
        ["error", "body", "interrupt", "unknown", "say"].iter().map(|user| case(user)).collect();
    Project::with_agent(agent).suite("a", &format!("{suite}{hook}{calls}")).file(
        "hook.sh",
        "printf '\\033[31m\\n::error::x\\n##[error]y\\r\\n'; printf '\\n::error::z\\n' >&2; exit 1\n",
    )
}

#[test]
fn untrusted_text_cannot_control_console() {
    let agent = FakeAgent::start(hostile_reply);
    let project = hostile_project(&agent);
    for width in ["40", "80", "200"] {
        let ProgramOutput { stdout, stderr, code, .. } =
            project.command(&["test", "-v"]).env("COLUMNS", width).run();
        assert_eq!(code, 1);
        for text in [&stdout, &stderr] {
            let bad = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
            assert_eq!(bad, None, "{text:?}");
            for line in text.lines() {
                assert!(!line.trim_start().starts_with("::") && !line.contains("##["), "{line}");
            }
        }
    }
}

#[test]
fn agent_answer_cannot_inject_workflow_command() {
    let words = "  ::set-output name=a::b\n\t::error::pwned\n\u{a0}::warning::too\n##\r[error]x";
    let agent = FakeAgent::with_text(words);
    let project = Project::with_agent(&agent);
    for args in [&["test", "-i", "hello"][..], &["test", "-i", "hello", "-v"]] {
        let output = project.hotseat(args);
        assert_eq!(output.code, 0, "{output}");
        for line in output.stdout.lines().chain(output.stderr.lines()) {
            // A command has its name directly after the colons.
            let name = line.trim_start().strip_prefix("::").and_then(|rest| rest.chars().next());
            assert!(!name.is_some_and(char::is_alphabetic) && !line.contains("##["), "{line:?}");
        }
    }
}

#[test]
fn only_hotseat_emits_workflow_commands() {
    let agent = FakeAgent::start(hostile_reply);
    let project = hostile_project(&agent);
    let output = project.command(&["test"]).env("GITHUB_ACTIONS", "true").run();
    let commands: Vec<&str> =
        output.stdout.lines().filter(|line| line.trim_start().starts_with("::")).collect();
    assert_eq!(commands.len(), 7, "{output}");
    for command in commands {
        assert!(command.starts_with("::error file=a.test.yaml,line="), "{command}");
        assert!(!command.chars().any(char::is_control), "{command:?}");
    }
    assert!(output.stdout.contains("title=say %250A%0A%3A%3Aerror%3A%3Ax::"), "{output}");
}

#[test]
fn untrusted_text_is_data_in_reports() {
    let agent = FakeAgent::start(hostile_reply);
    let project = hostile_project(&agent);
    let tested = project.test(&["-o", "out.xml", "-o", "out.jsonl"]);
    let said = tested.results().iter().find(|result| result["name"] == "calls");
    let turn = &said.expect("the case")["turns"][0];
    assert_eq!(
        (&turn["output"], &turn["tool_calls"][1]["result"]),
        (&json!(HOSTILE), &json!(HOSTILE)),
        "kept whole"
    );
    let xml = project.workspace.read("out.xml");
    let report = quick_junit::Report::deserialize_from_str(&xml).expect("JUnit");
    assert_eq!((report.tests, report.failures + report.errors), (7, 7));
    let no_character = |c: char| {
        matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{202e}')
            || c.is_control() && !matches!(c, '\n' | '\t' | '\r')
    };
    assert!(!xml.contains(no_character), "{xml:?}");
    // Nothing is left out.
    assert!(xml.contains('␛') && xml.contains('\u{fffd}'), "{xml:?}");
    assert_eq!(read_json_lines(&project, "out.jsonl").len(), 9);
}

// Secrets.

/// Long enough to be split over several deltas.
const SECRET: &str = "sk-live-0123456789abcdefghijklmnopqrstuvwxyz";

/// A secret that exists only where a test puts it.
const OTHER_SECRET: &str = "pw-9876543210zyxwvutsrqponmlkjihgfedcba";

/// Leaks the header token through every output of an agent.
fn leaking_reply(request: &FakeRequest) -> FakeReply {
    let secret =
        request.header("authorization").unwrap_or_default().trim_start_matches("Bearer ").to_string();
    let secret =
        if secret.is_empty() { request.header("x-key").unwrap_or_default().to_string() } else { secret };
    let run = FakeRun::for_request(request).started();
    let words = request.last_user_text();
    match words.split(' ').next().unwrap_or_default() {
        "text" => run.text(&format!("The token is {secret}.")).finished().into(),
        "chunks" => run.text_chunks(&format!("The token is {secret}.")).finished().into(),
        "call" => run.tool("c", "login", &json!({ "token": secret }), Some(json!({ "used": [secret] }))).finished().into(),
        "callchunks" => run.tool_chunks("c", "login", &json!({ "token": secret }), Some(json!(secret))).finished().into(),
        "name" => run.tool(&secret, &secret, &json!({}), None).finished().into(),
        "broken" => run
            .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "login"}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": format!("{{\"token\": \"{}", &secret[..20])}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": &secret[20..]}))
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c"}))
            .finished()
            .into(),
        "state" => run.state(json!({ "token": secret })).custom(&secret, json!([secret])).finished().into(),
        "delta" => run
            .state(json!({}))
            .delta(json!([{"op": "add", "path": "/token", "value": secret}]))
            .finished()
            .into(),
        "thought" => run.reasoning(&secret).finished().into(),
        "snapshot" => run.messages_snapshot(vec![json!({"id": "m", "role": "assistant", "content": secret})]).finished().into(),
        "error" => run.error(&format!("bad token {secret}"), Some(&secret)).into(),
        "body" => FakeReply::json(401, &json!({ "token": secret })),
        "page" => FakeReply::status(200).header("content-type", "text/html").bytes(format!("<b>{secret}</b>")),
        "garbage" => FakeReply::sse().bytes(format!("data: {secret}\n\n")),
        "cut" => FakeReply::sse().bytes(format!("data: {{\"token\": \"{secret}")),
        "interrupt" => run.interrupted(vec![json!({"id": "i", "reason": secret, "message": secret})]).into(),
        "unknown" => run.raw_event(json!({"type": secret})).finished().into(),
        "moved" => FakeReply::status(307).header("location", &format!("http://127.0.0.1:9/?token={secret}")),
        other => panic!("{other} gives nothing away"),
    }
}

const LEAK_KINDS: [&str; 18] = [
    "text",
    "chunks",
    "call",
    "callchunks",
    "name",
    "broken",
    "state",
    "delta",
    "thought",
    "snapshot",
    "error",
    "body",
    "page",
    "garbage",
    "cut",
    "interrupt",
    "unknown",
    "moved",
];

/// A case for each leak, with checks that show their findings.
fn leaking_suite(hooks: &str) -> String {
    let case = |way: &&str| {
        format!(
            "
name: {way}
{hooks}
turns:
  - user: {way} please
    assert:
      text: {{ must_match: impossible }}
      tools: {{ require: [{{ name: login, args_match: {{ token: impossible }} }}] }}
"
        )
    };
    LEAK_KINDS.iter().map(case).collect::<Vec<_>>().join("---\n")
}

/// Runs the suite with every output and asserts that none contains the secret.
#[track_caller]
fn assert_secret_redacted(project: &Project, env: &[(&str, &str)]) {
    let outputs = ["out/report.json", "out.jsonl", "out.xml", "out.html", "trace.jsonl"];
    let arguments = ["-v", "-o", outputs[1], "-o", outputs[2], "-o", outputs[3], "--trace", outputs[4]];
    let env = [&[("GITHUB_ACTIONS", "true")], env].concat();
    let tested = project.test_in(&env, &arguments);
    assert_eq!(tested.output.code, 1, "{}", tested.output);
    assert_eq!(tested.count("failed"), LEAK_KINDS.len() as u64, "{}", tested.output);
    let mut all = vec![("stdout", tested.output.stdout.clone()), ("stderr", tested.output.stderr.clone())];
    all.extend(outputs.map(|file| (file, project.workspace.read(file))));
    for (name, text) in &all {
        // The console wraps and truncates lines.
        let joined: String = text.split_whitespace().filter(|word| !matches!(*word, "│" | "|")).collect();
        for text in [text, &joined] {
            let found = text.find(&SECRET[..24]);
            let around = found.map(|at| &text[text.floor_char_boundary(at.saturating_sub(400))..at + 24]);
            assert_eq!(around, None, "{name} tells the secret");
        }
    }
    assert!(all[0].1.contains("[redacted:"), "{}", tested.output);
}

#[test]
fn redacts_header_token_from_environment() {
    let agent = FakeAgent::start(leaking_reply);
    let target = format!("target: {{ endpoint: '{agent}', headers: {{ X-Key: '${{ENV.PLAIN_NAME}}' }} }}\n");
    assert_secret_redacted(
        &Project::with_config(&target).suite("a", &leaking_suite("")),
        &[("PLAIN_NAME", SECRET)],
    );
}

#[test]
fn redacts_literal_header_token() {
    let agent = FakeAgent::start(leaking_reply);
    let target =
        format!("target:\n  endpoint: '{agent}'\n  headers: {{ Authorization: 'Bearer {SECRET}' }}\n");
    assert_secret_redacted(&Project::with_config(&target).suite("a", &leaking_suite("")), &[]);
}

#[test]
fn redacts_hook_token() {
    let agent = FakeAgent::start(leaking_reply);
    let target = format!("target: {{ endpoint: '{agent}', headers: {{ X-Key: '${{SHOP_TOKEN}}' }} }}\n");
    let hooks = format!("hooks: [{{ cmd: [echo, '{{\"SHOP_TOKEN\":\"{SECRET}\"}}'] }}]");
    assert_secret_redacted(&Project::with_config(&target).suite("a", &leaking_suite(&hooks)), &[]);
}

#[test]
fn redacts_project_secrets() {
    let agent = FakeAgent::start(leaking_reply);
    let target = format!(
        "secrets: [ANYTHING]\ntarget: {{ endpoint: '{agent}', headers: {{ X-Key: '${{ANYTHING}}' }} }}\n"
    );
    let hooks = format!("hooks: [{{ cmd: [echo, '{{\"ANYTHING\":\"{SECRET}\"}}'] }}]");
    assert_secret_redacted(&Project::with_config(&target).suite("a", &leaking_suite(&hooks)), &[]);
}

/// Readers could join the fragments of a split secret.
#[test]
fn redacts_split_secrets() {
    let agent = FakeAgent::start(leaking_reply);
    let target =
        format!("target:\n  endpoint: '{agent}'\n  headers: {{ Authorization: 'Bearer {SECRET}' }}\n");
    let project = Project::with_config(&target).suite("a", &leaking_suite(""));
    project.hotseat(&["test", "--trace", "trace.jsonl"]);
    let mut pieces = String::new();
    for event in read_json_lines(&project, "trace.jsonl") {
        pieces.push_str(event["payload"]["event"]["delta"].as_str().unwrap_or_default());
    }
    assert!(!pieces.is_empty() && !pieces.contains(SECRET), "{pieces}");
}

/// Asserts that no output of a run contains the secret from `API_TOKEN`.
#[track_caller]
fn assert_token_redacted(project: &Project) -> String {
    let outputs = ["out/report.json", "out.jsonl", "out.xml", "out.html", "trace.jsonl"];
    let arguments = ["-v", "-o", outputs[1], "-o", outputs[2], "-o", outputs[3], "--trace", outputs[4]];
    let tested = project.test_in(&[("API_TOKEN", SECRET), ("GITHUB_ACTIONS", "true")], &arguments);
    let files = outputs.map(|file| format!("{file}: {}", project.workspace.read(file))).join("\n");
    let all = format!("{}{files}", tested.output);
    let told: Vec<&str> =
        all.lines().filter(|line| line.contains(SECRET) || line.contains(OTHER_SECRET)).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    all
}

/// Same for a suite with an echo agent.
#[track_caller]
fn assert_suite_redacts_token(suite: &str) {
    let agent = echo_agent();
    let all = assert_token_redacted(&Project::with_agent(&agent).suite("a", suite));
    assert!(all.contains("[redacted:"), "nothing was there to be told: {all}");
}

#[test]
fn redacts_secrets_in_user_messages() {
    assert_suite_redacts_token(
        "name: a\nturns: [{ user: 'I am ${ENV.API_TOKEN}', assert: { text: { must_match: x } } }]\n",
    );
}

#[test]
fn redacts_secrets_in_case_input() {
    assert_suite_redacts_token("id: a\ninput: 'I am ${ENV.API_TOKEN}'\n");
    assert_suite_redacts_token(
        "id: a\ninput: [{ role: user, content: 'I am ${ENV.API_TOKEN}' }]\nskip: 'not ${ENV.API_TOKEN}'\n",
    );
}

#[test]
fn redacts_secrets_in_patterns() {
    assert_suite_redacts_token(
        "name: a\nturns: [{ user: a, assert: { text: { must_match: 'not ${ENV.API_TOKEN}' } } }]\n",
    );
}

#[test]
fn redacts_secrets_in_state_and_thread() {
    assert_suite_redacts_token(
        "name: a\nstate: { token: '${ENV.API_TOKEN}' }\nthreadId: '${ENV.API_TOKEN}'\nturns: [{ user: a }]\n",
    );
}

#[test]
fn redacts_secrets_in_case_names() {
    assert_suite_redacts_token(
        "name: 'with ${ENV.API_TOKEN}'\nid: 'id-${ENV.API_TOKEN}'\nturns: [{ user: a }]\n",
    );
}

#[test]
fn redacts_secrets_in_skip_reasons() {
    assert_suite_redacts_token("name: a\nskip: 'no ${ENV.API_TOKEN}'\nturns: [{ user: a }]\n");
}

#[test]
fn redacts_secrets_in_hook_failures() {
    assert_suite_redacts_token(
        "name: a\nhooks: [{ cmd: [sh, -c, 'echo $API_TOKEN; echo $API_TOKEN >&2; exit 1'] }]\nturns: [{ user: a }]\n",
    );
    assert_suite_redacts_token(
        "name: a\nhooks: [{ cmd: [no-such-program, '${ENV.API_TOKEN}'] }]\nturns: [{ user: a }]\n",
    );
}

/// The address is known only after the hooks have run.
#[test]
fn redacts_secrets_in_hook_failures_with_per_case_target() {
    let agent = echo_agent();
    let suite = "name: a\nhooks: [{ cmd: [sh, -c, 'echo $API_TOKEN; exit 1'] }]\nturns: [{ user: a }]\n";
    let target = format!("target: {{ endpoint: '{agent}${{SHOP}}' }}\n");
    assert_token_redacted(&Project::with_config(&target).suite("a", suite));
}

#[test]
fn redacts_secrets_passed_between_hooks() {
    let gives = format!("{{ cmd: [echo, '{{\"OTHER_TOKEN\":\"{OTHER_SECRET}\"}}'] }}");
    let fails = "{ cmd: [sh, -c, 'echo $1; exit 1', sh, '${OTHER_TOKEN}'] }";
    assert_suite_redacts_token(&format!("name: a\nhooks: [{gives}, {fails}]\nturns: [{{ user: a }}]\n"));
}

#[test]
fn redacts_secrets_in_address() {
    let agent = echo_agent();
    let target = format!("target: {{ endpoint: '{agent}?key=${{ENV.API_TOKEN}}' }}\n");
    assert_token_redacted(&Project::with_config(&target).suite("a", "name: a\nturns: [{ user: a }]\n"));
    let target = "target: { endpoint: 'http://user:${ENV.API_TOKEN}@127.0.0.1:9/' }\n";
    assert_token_redacted(&Project::with_config(target).suite("a", "name: a\nturns: [{ user: a }]\n"));
}

#[test]
fn redacts_secrets_in_target_checks() {
    let agent = echo_agent();
    let target = format!(
        "target:\n  endpoint: '{agent}'\n  assert: {{ text: {{ must_match: 'x${{ENV.API_TOKEN}}' }} }}\n"
    );
    assert_token_redacted(&Project::with_config(&target).suite("a", "name: a\nturns: [{ user: a }]\n"));
}

/// The agent exits before the second case; its last output is shown.
#[test]
#[cfg(target_os = "linux")]
fn redacts_secrets_in_crashed_agent_output() {
    let url = unreachable_address();
    let port = url.trim_matches('/').rsplit(':').next().expect("a port").to_string();
    let script = format!(
        "echo $$ > pid\n'{}' --port {port} &\nagent=$!\nread x < die\nkill -9 $agent\nwait\necho key was $API_TOKEN\nexit 1\n",
        checkout::binary().display()
    );
    let hook = "echo now > die\nwhile ! grep -q 'State:.Z' /proc/$(cat pid)/status; do :; done\n";
    let project = Project::with_config(&format!(
        "target: {{ endpoint: '{url}', start: {{ command: [sh, agent.sh], ready: '{url}health' }} }}\n"
    ))
    .file("agent.sh", &script)
    .file("kill.sh", hook)
    .suite("a", "name: a\nhooks: [{ cmd: [sh, kill.sh] }]\nturns: [{ user: pay }]\n");
    assert_eq!(project.workspace.run("mkfifo", &["die"]).code, 0);
    let all = assert_token_redacted(&project);
    assert!(all.contains("key was"), "{all}");
}

#[test]
fn redacts_secrets_in_started_agent_output() {
    let target = "
target:
  endpoint: http://127.0.0.1:9/
  start: { command: [sh, -c, 'echo key is $API_TOKEN; exit 1'] }
";
    let project = Project::with_config(target).suite("a", "name: a\nturns: [{ user: a }]\n");
    let output = project.command(&["test"]).env("API_TOKEN", SECRET).run();
    output.assert_stdout(3, &["key is"]);
    assert!(!output.stdout.contains(SECRET) && !output.stderr.contains(SECRET), "{output}");
}

/// Files that cases, connectors and scripts name are inputs, too.
#[test]
fn reports_never_overwrite_files_that_inputs_name() {
    let agent = echo_agent();
    let config = format!(
        "connectors: {{ user: {{ type: scripted, script: user.json }} }}\ntarget: {{ endpoint: '{}' }}\n",
        agent.url()
    );
    let simulated = "name: s\ninput: hi\nsimulate: { use: 'connectors:user', goal: end, template: prompt.md, max_turns: 1 }\n";
    let test = "import { scenarioSet, it, user } from 'hotseat';\nimport words from './words.json';\n\
                scenarioSet('people', 'people.json', () => { it(words.name, () => user.says('hi')); });\n";
    let project = Project::with_config(&config)
        .file("user.json", "{\"rules\": [{\"reply\": \"bye\"}]}")
        .file("prompt.md", "{{system}} {{rules}} {{conversation}}")
        .file("s.test.yaml", simulated)
        .file("words.json", "{\"name\": \"greets\"}")
        .file("people.json", "[{\"id\": \"ann\", \"name\": \"Ann\", \"goal\": \"greet\"}]")
        .file("b_test.ts", test);
    let listed = project.hotseat(&["list"]);
    assert_eq!(listed.code, 0, "{listed}");
    for (file, words) in [
        ("prompt.md", "would overwrite a prompt of a simulated user"),
        ("user.json", "would overwrite a file of a connector"),
        ("words.json", "would overwrite a file of a script"),
        ("people.json", "would overwrite a file of a script"),
    ] {
        let before = project.workspace.read(file);
        let output = project.hotseat(&["test", "-o", file]);
        assert!(output.code == 2 && output.stderr.contains(words), "{file}: {output}");
        assert_eq!(project.workspace.read(file), before);
    }
    assert_eq!(agent.requests().len(), 0);
}

#[test]
fn reports_never_overwrite_inputs() {
    let agent = echo_agent();
    let suite = "{\"id\": \"a\", \"input\": \"hello\"}\n";
    let project = Project::with_agent(&agent).file("a.test.jsonl", suite).file("sub/x", "");
    let listed = project.hotseat(&["list", "--json"]).stdout;
    let project = project.file("ctx.json", "{}").file("list.jsonl", &listed);
    let config = project.workspace.read("hotseat.yaml");
    let helper = "agents:\n  helper: { type: command, command: [python3, helper.py] }\n";
    let config = format!("{config}{helper}");
    let project = project.file("hotseat.yaml", &config).file(".env", "").file("helper.py", "");
    let project = project.file("kept/a.json", "{}").file("tapes/x/b.json", "{}").file("src/lib.ts", "");
    let tools = "{\"tools\": [{\"name\": \"pay\", \"inputSchema\": {\"type\": \"object\"}}]}";
    let rules = "{\"rules\": [{\"reply\": \"fine\"}]}";
    let services = "name: s\nmcp: { bank: { type: mock, tools_from: tools.json } }\nmodels: { main: { script: rules.json } }\nturns: [{ user: hi }]\n";
    let project = project.suite("s", services).file("tools.json", tools).file("rules.json", rules);
    let files = "name: f\nscenarios: sets/venues.json\nturns: [{ user: hi, attachments: [{ type: image, source: 'file://sets/map.png' }] }]\n";
    let venues = "[{\"name\": \"a venue\", \"goal\": \"a room\"}]";
    let project = project.suite("f", files).file("sets/venues.json", venues).file("sets/map.png", "x");
    std::fs::hard_link(project.workspace.path("a.test.jsonl"), project.workspace.path("link.jsonl")).unwrap();
    for (args, words) in [
        (&["--save", "a.test.jsonl"][..], "--save a.test.jsonl would overwrite a suite of this run"),
        (&["--trace", "./a.test.jsonl"], "--trace ./a.test.jsonl: this is the name of a suite"),
        (&["-o", "sub/../a.test.jsonl"], "-o sub/../a.test.jsonl: this is the name of a suite"),
        (&["-o", "other.test.json"], "-o other.test.json: this is the name of a suite"),
        (&["--ctx", "ctx.json", "-o", "./ctx.json"], "-o ./ctx.json would overwrite the file of `--ctx`"),
        (
            &["--cases", "list.jsonl", "-o", "list.jsonl"],
            "-o list.jsonl would overwrite the file of `--cases`",
        ),
        (&["--trace", "hotseat.yaml"], "--trace hotseat.yaml would overwrite the project file"),
        (&["--trace", ".env"], "--trace .env would overwrite the `.env` file"),
        (&["--trace", "link.jsonl"], "--trace link.jsonl would overwrite a suite of this run"),
        (&["--trace", "other_test.ts"], "--trace other_test.ts: this is the name of a suite"),
        (&["--trace", "helper.py"], "--trace helper.py would overwrite a file of an agent"),
        (&["--trace", "sub/.env"], "--trace sub/.env would overwrite the `.env` file"),
        (&["--trace", "src/lib.ts"], "--trace src/lib.ts would overwrite a program"),
        (&["-n", "replay:kept", "-o", "kept/a.json"], "-o kept/a.json would overwrite a recording"),
        (&["--cassettes", "tapes", "-o", "tapes/x/b.json"], "-o tapes/x/b.json would overwrite a cassette"),
        (&["-o", "tools.json"], "-o tools.json would overwrite a file of an MCP server or a served model"),
        (&["-o", "rules.json"], "-o rules.json would overwrite a file of an MCP server or a served model"),
        (&["-o", "sets/venues.json"], "-o sets/venues.json would overwrite a file of scenarios"),
        (&["--trace", "sets/map.png"], "--trace sets/map.png would overwrite an attachment"),
        (&["-o", "x.jsonl", "--save", "sub/../x.jsonl"], "--save sub/../x.jsonl is already named by -o"),
        (&["-o", "x.jsonl", "-o", "./x.jsonl"], "-o ./x.jsonl is given twice"),
        (&["--save", "x.jsonl", "--trace", "x.jsonl"], "is already named by --trace"),
    ] {
        let output = project.hotseat(&[&["test"], args].concat());
        assert!(output.code == 2 && output.stderr.contains(words), "{args:?}: {output}");
    }
    assert_eq!(
        (project.workspace.read("a.test.jsonl"), project.workspace.read("hotseat.yaml")),
        (suite.to_string(), config)
    );
    assert_eq!(agent.requests().len(), 0);

    project.hotseat(&["test", "--shard", "1/1"]);
    let merged = project.hotseat(&["merge", "last", "-o", "all.txt"]);
    merged.assert_stderr(2, &["unknown extension, expected one of .json"]);
    assert_eq!(project.hotseat(&["show", "last", "--export", "part.json"]).code, 0);
    let part = std::fs::read(project.workspace.path("part.json")).unwrap();
    for (args, words) in [
        (
            &["test", "--trace", ".hotseat/runs.db"][..],
            "--trace .hotseat/runs.db would overwrite the saved runs",
        ),
        (&["show", "last", "--trace", ".hotseat/runs.db"], "would overwrite the saved runs"),
        (&["show", "last", "-o", "tools.json"], "would overwrite a file of an MCP server"),
        (&["show", "last", "--trace", "helper.py"], "would overwrite a file of an agent"),
        (&["merge", "last", "-o", "rules.json"], "would overwrite a file of an MCP server"),
        (&["recheck", "last", "-o", "tools.json"], "would overwrite a file of an MCP server"),
    ] {
        let output = project.hotseat(args);
        assert!(output.code == 2 && output.stderr.contains(words), "{args:?}: {output}");
    }
    assert_eq!(project.hotseat(&["runs"]).code, 0);
    for (args, words) in [
        (&["merge", "part.json"][..], "-o ./part.json would overwrite a merged run"),
        (&["merge", "last", "--store", "part.json"], "-o ./part.json would overwrite the saved runs"),
        (&["recheck", "last", "--store", "part.json"], "-o ./part.json would overwrite the saved runs"),
        (&["show", "last", "--store", "part.json"], "-o ./part.json would overwrite the saved runs"),
    ] {
        let output = project.hotseat(&[args, &["-o", "./part.json"]].concat());
        assert!(output.code == 2 && output.stderr.contains(words), "{args:?}: {output}");
    }
    assert!(std::fs::read(project.workspace.path("part.json")).unwrap() == part);
    let listed = project.hotseat(&["runs", "--json"]);
    assert_eq!(listed.stdout.lines().count(), 1, "nothing was joined: {listed}");
    project
        .hotseat(&["show", "last", "-o", "a.test.jsonl"])
        .assert_stderr(2, &["this is the name of a suite"]);
    for (trace, words) in [(".env", "overwrite the `.env` file"), ("b_test.ts", "the name of a suite")] {
        project.hotseat(&["show", "last", "--trace", trace]).assert_stderr(2, &[words]);
    }
    assert_eq!(project.workspace.read("a.test.jsonl"), suite);
}

/// A report that cannot be written, or whose writer is killed, leaves the one of the run before.
#[test]
fn a_report_that_is_not_complete_replaces_nothing() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hi }]\n");
    let project = project.file("r.html", "before").file("sub/x", "");
    // The page is larger than files may be, with and without the signal that ends the process.
    for (script, code) in [("trap '' XFSZ; ", Some(3)), ("", None)] {
        let script = format!("{script}ulimit -f 40; exec '{HOTSEAT}' test --no-store -o r.html");
        let output = project.workspace.command("sh", &["-c", &script]).run();
        assert!(code.is_none_or(|code| output.code == code), "{output}");
        assert_ne!(output.code, 0, "{output}");
        assert_eq!(project.workspace.read("r.html"), "before");
    }
    let link = project.workspace.path("link.html");
    std::os::unix::fs::symlink("r.html", &link).unwrap();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    std::fs::set_permissions(&link, permissions).unwrap();
    project.hotseat(&["test", "--no-store", "-o", "link.html"]).assert_code(0);
    assert!(project.workspace.read("r.html").starts_with("<!doctype html>"));
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let mode = std::os::unix::fs::PermissionsExt::mode(&link.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o640);
    std::os::unix::fs::symlink("/dev/stdout", project.workspace.path("out.json")).unwrap();
    project.hotseat(&["test", "--no-store", "-o", "out.json"]).assert_stdout(0, &["{\"summary\":{"]);
    let script = format!("'{HOTSEAT}' test --no-store -o out.json > all.txt");
    assert_eq!(project.workspace.run("sh", &["-c", &script]).code, 0);
    assert!(project.workspace.read("all.txt").contains("Pass Rate"));
}

/// A run that ends without a report leaves the one of the run before, and no other run writes the same file.
#[test]
fn a_report_is_replaced_at_the_end_of_the_run() {
    let agent =
        FakeAgent::with_run(|run, request| match request.json()["messages"][0]["content"] == "wait" {
            true => run.gate("answer").text("late").finished(),
            false => run.text("at once").finished(),
        });
    let suite = "name: quick\nturns: [{ user: hi }]\n---\nname: slow\nturns: [{ user: wait }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    let reports = ["r.json", "r.xml", "r.html"];
    let outputs: Vec<&str> = reports.iter().flat_map(|file| ["-o", file]).collect();
    let quick = [&["test", "--run", "quick"], &outputs[..]].concat();
    assert_eq!(project.hotseat(&quick).code, 0);
    let read = || reports.map(|file| project.workspace.read(file));
    let first = read();
    let slow = [&["test", "--run", "slow", "-o", "r.jsonl"], &outputs[..]].concat();
    let running = project.command(&slow).spawn();
    agent.wait_at_gate("answer", TEST_TIMEOUT);
    for file in ["r.jsonl", "r.json"] {
        let other = project.hotseat(&["test", "--run", "quick", "-o", file]);
        let words = format!("cannot write {file}: another run is writing this file");
        assert!(other.code == 3 && other.stderr.contains(&words), "{other}");
    }
    project.workspace.run("kill", &["-9", &running.id().to_string()]);
    running.wait();
    assert_eq!(read(), first);
    let running = project.command(&slow).spawn();
    agent.wait_at_gate("answer", TEST_TIMEOUT);
    agent.release("answer");
    assert_eq!(running.wait().code, 0);
    for (before, after) in first.iter().zip(read()) {
        assert!(before.contains("quick") && !after.contains("quick") && after.contains("slow"), "{after}");
    }
}
