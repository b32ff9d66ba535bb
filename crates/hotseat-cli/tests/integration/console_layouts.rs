//! Complete console output of each kind of run, from the banner to the last line.
use hotseat_testkit::{FakeAgent, FakeReply, ProgramOutput};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::common::{Project, TEST_TIMEOUT};

/// An expense assistant that asks for details, drafts, and submits after confirmation.
fn expense_agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| -> FakeReply {
        let said = request.last_user_text();
        let run = match said.as_str() {
            said if said.contains("$3500") || said.contains("$250") => run
                .tool(
                    "call-1",
                    "create_expense",
                    &json!({"amount": if said.contains("$250") { 250 } else { 3500 }, "type": "travel"}),
                    Some(json!({"id": "EXP-001", "status": "draft"})),
                )
                .text("I'll create the expense. Please confirm."),
            said if said.to_lowercase().contains("confirm") => run
                .tool(
                    "call-2",
                    "submit_expense",
                    &json!({"id": "EXP-001"}),
                    Some(json!({"expense": {"status": "submitted"}})),
                )
                .text("Expense submitted. Reference: EXP-001"),
            said if said.contains("$100,000") => {
                run.text("This requires manager approval. Please provide PO number.")
            }
            said if said.contains("hang") => {
                return run.tool_call("c", "slow_tool", &json!({})).hang().into();
            }
            said if said.contains("crash") => return run.error("model exploded", Some("BOOM")).into(),
            _ => run.text("What type of expense would you like to submit?"),
        };
        run.finished().into()
    })
}

/// A simulated user that sends these messages and then reports its goal as achieved.
fn simulated_user(script: &'static [&'static str]) -> FakeAgent {
    FakeAgent::with_run(move |run, request| {
        let told = request.last_user_json();
        let turn = told["turn_number"].as_u64().and_then(|turn| usize::try_from(turn).ok()).expect("a turn");
        let next = match script.get(turn - 1) {
            Some(said) => json!({"input": said, "goal_achieved": false, "reasoning": "it was asked for"}),
            None => json!({"input": "", "goal_achieved": true, "reasoning": "Expense submitted"}),
        };
        run.text(&next.to_string()).finished()
    })
}

fn project(cases: &[Value]) -> Project {
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    Project::empty().file("tests/expense.test.jsonl", &lines.join("\n"))
}

/// Runs a suite; asserts that the output fits the width.
#[track_caller]
fn console_output(project: &Project, columns: &str, args: &[&str]) -> ProgramOutput {
    let arguments = [&["test"], args].concat();
    let output = project.command(&arguments).env("COLUMNS", columns).run();
    for line in output.stdout.lines() {
        let width = line.chars().count();
        // Locations are never cut, so that they stay clickable.
        assert!(
            line.trim_start().starts_with("(tests/") || width <= columns.parse().expect("a number"),
            "{width} columns: {line}"
        );
    }
    output.redacted()
}

fn target(agent: &FakeAgent) -> String {
    format!("agents:\n  assistants.expense: {{ endpoint: '{agent}' }}\ntarget: assistants.expense\n")
}

#[test]
fn single_turn_cases() {
    let agent = expense_agent();
    let project = project(&[
        json!({"id": "T001", "input": "人工智能和机器学习正在改变我们的生活方式和工作方式，也改变着我们的思维方式和学习方式"}),
        json!({"id": "T002", "input": "The rapid development of cloud computing\n has   reshaped the way in which expenses are submitted",
            "assertions": [{"type": "contains", "value": "type of expense"}]}),
        json!({"id": "T003", "name": "Final confirmation", "assertions": [{"type": "tool_called", "name": "submit_expense"}],
            "input": [{"role": "user", "content": "Travel, $3500"}, {"role": "assistant", "content": "Please confirm."},
                {"role": "user", "content": "Yes, confirm"}]}),
        json!({"id": "T004", "input": "Hello", "skip": "not ready"}),
    ])
    .file("hotseat.yaml", &target(&agent));
    assert_snapshot!(console_output(&project, "80", &["--parallel", "1", "-o", "out/report.json"]), @"
    exit code: 0
    ----- stdout -----
    ═══════════════════════════════════════════════════════════════
      Agent Test                                      Hotseat 0.1.0
    ═══════════════════════════════════════════════════════════════
    ℹ Agent: assistants.expense (http://127.0.0.1:[PORT]/)
    ℹ Input: tests/expense.test.jsonl (4 test cases)
    ℹ Timeout: [TIME] per turn

    ───────────────────────────────────────────────────────────────
      Running Tests
    ───────────────────────────────────────────────────────────────
    ► [T001] 人工智能和机器学习正在改变我... PASSED ([TIME]) - nothing was asserted
    ► [T002] The rapid development of cloud computing has reshap... PASSED ([TIME])
    ► [T003] Final confirmation · Yes, confirm PASSED ([TIME])
    ► [T004] SKIPPED not ready

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     assistants.expense (http://127.0.0.1:[PORT]/)
      Total:     4
      Passed:    3
      Failed:    0
      Skipped:   1
      Pass Rate: 100.0%
      Duration:  [TIME]

      Output: out/report.json

    ═══════════════════════════════════════════════════════════════
      ✨ ALL TESTS PASSED ✨ (1 skipped)
    ═══════════════════════════════════════════════════════════════

    ----- stderr -----
    note: this case asserts nothing: it passes if the agent answers without an error (tests/expense.test.jsonl:1:7)
    ");
}

fn expense_cases() -> [Value; 2] {
    [
        json!({"id": "T001", "name": "Expense Reimbursement Flow", "turns": [
            {"input": "I want to submit an expense", "assertions": [{"type": "contains", "value": "type of expense"}]},
            {"input": "Business travel, $3500", "assertions": [{"type": "tool_called", "name": "create_expense"}]},
            {"input": "Yes, confirm", "assertions": [{"type": "contains", "value": "submitted"}]}],
            "final_assertions": [{"type": "json_path", "path": "$.expense.status", "value": "submitted"}]}),
        json!({"id": "T002", "name": "Large Expense Approval", "type": "multi_turn",
            "turns": [{"input": "Submit $100,000 equipment purchase"}],
            "final_assertions": [{"type": "contains", "value": "submitted"}]}),
    ]
}

#[test]
fn multi_turn_conversations() {
    let (agent, user) = (expense_agent(), simulated_user(&["", "It's for client dinner, $250", "Confirm"]));
    let simulated = json!({"id": "T003", "name": "Dynamic Expense Flow", "on_missing_input": "end",
        "turns": [{"input": "Help me file an expense"}],
        "simulator": {"use": "workers.test.user-sim", "options": {"metadata": {"goal": "Submit"}}},
        "final_assertions": [{"type": "tool_called", "name": "submit_expense"}]});
    let [first, second] = expense_cases();
    let project = project(&[first, second, simulated]).file(
        "hotseat.yaml",
        &format!(
            "agents:\n  assistants.expense: {{ endpoint: '{agent}' }}\n  workers.test.user-sim: {{ endpoint: '{user}' }}\ntarget: assistants.expense\n"
        ),
    );
    assert_snapshot!(console_output(&project, "80", &["--parallel", "1"]), @r#"
    exit code: 0
    ----- stdout -----
    ═══════════════════════════════════════════════════════════════
      Agent Test (Multi-Turn)                         Hotseat 0.1.0
    ═══════════════════════════════════════════════════════════════
    ℹ Agent: assistants.expense (http://127.0.0.1:[PORT]/)
    ℹ Input: tests/expense.test.jsonl (3 test cases)
    ℹ Simulator: workers.test.user-sim
    ℹ Timeout: [TIME] per turn

    ───────────────────────────────────────────────────────────────
      Running Tests
    ───────────────────────────────────────────────────────────────
    ► [T001] Expense Reimbursement Flow (3 turns) PASSED ([TIME])

    ► [T002] Large Expense Approval (1 turn)
      ├─ Turn 1: "Submit $100,000 equipment purchase" → PASSED ([TIME])
      │    Agent: "This requires manager approval. Please provide PO number."
      │
      ├─ Turn 2: SKIPPED
      │    Reason: Agent awaiting input, no next turn defined
      │    Agent asked: "This requires manager approval. Please provide PO number."
      │    Hint: Add more turns, use --interactive, or configure simulator; set
      │      `on_missing_input: end` if the conversation may end here
      │
      └─ Result: SKIPPED

    ► [T003] Dynamic Expense Fl… (simulator: workers.test.user-sim) PASSED ([TIME])

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     assistants.expense (http://127.0.0.1:[PORT]/)
      Simulator: workers.test.user-sim
      Total:     3
      Passed:    2
      Failed:    0
      Skipped:   1
      Pass Rate: 100.0%
      Duration:  [TIME]

      Total turns:    7
      Avg turns/test: 2.3
      Total time:     [TIME]

    ═══════════════════════════════════════════════════════════════
      ✨ ALL TESTS PASSED ✨ (1 skipped)
    ═══════════════════════════════════════════════════════════════

    ----- stderr -----
    "#);
    assert_snapshot!(console_output(&project, "40", &["--parallel", "1", "-v"]), @r#"
    exit code: 0
    ----- stdout -----
    ════════════════════════════════════════
      Agent Test (Multi-Turn)
    ════════════════════════════════════════
    ℹ Agent: assistants.expense
      (http://127.0.0.1:[PORT]/)
    ℹ Input: tests/expense.test.jsonl (3
      test cases)
    ℹ Simulator: workers.test.user-sim
    ℹ Timeout: [TIME] per turn

    ────────────────────────────────────────
      Running Tests
    ────────────────────────────────────────
    ► [T001] Expense Reimbursemen… (3 turns)
      ├─ Turn 1: "I want to submi…" → PASSED
      │    User: "I want to submit an
      │    │ expense"
      │    Agent: "What type of expense
      │    │ would you like to submit?"
      │    ✓ contains "type of expense"
      │
      ├─ Turn 2: "Business travel…" → PASSED
      │    User: "Business travel, $3500"
      │    Agent: [tool:
      │    │ create_expense({"amount":3500,
      │    │ "type":"travel"})] →
      │    │ {"id":"EXP-001",
      │    │ "status":"draft"}
      │    Agent: "I'll create the expense.
      │    │ Please confirm."
      │    ✓ tool_called "create_expense"
      │
      ├─ Turn 3: "Yes, confirm" → PASSED
      │    Agent: [tool: submit_expense({"id
      │    │ ":"EXP-001"})] → {"expense":{"s
      │    │ tatus":"submitted"}}
      │    Agent: "Expense submitted.
      │    │ Reference: EXP-001"
      │    ✓ contains "submitted"
      │
      └─ Final Assertions: PASSED
         ✓ $.expense.status = "submitted"
      PASSED ([TIME]) - 3 turns, 4 checks

    ► [T002] Large Expense Approval (1 turn)
      ├─ Turn 1: "Submit $100,000…" → PASSED
      │    User: "Submit $100,000 equipment
      │    │ purchase"
      │    Agent: "This requires manager
      │    │ approval. Please provide PO
      │    │ number."
      │
      ├─ Turn 2: SKIPPED
      │    Reason: Agent awaiting input, no
      │      next turn defined
      │    Agent asked: "This requires
      │      manager approval. Please
      │      provide PO number."
      │    Hint: Add more turns, use
      │      --interactive, or configure
      │      simulator; set
      │      `on_missing_input: end` if the
      │      conversation may end here
      │
      └─ Result: SKIPPED

    ► [T003] Dynamic Expense Flow
      ├─ Turn 1: "Help me file an…" → PASSED
      │    User: "Help me file an expense"
      │    Agent: "What type of expense
      │    │ would you like to submit?"
      │
      ├─ Turn 2: "It's for client…" → PASSED
      │    User: "It's for client dinner,
      │    │ $250"
      │    Agent: [tool:
      │    │ create_expense({"amount":250,
      │    │ "type":"travel"})] →
      │    │ {"id":"EXP-001",
      │    │ "status":"draft"}
      │    Agent: "I'll create the expense.
      │    │ Please confirm."
      │    simulator: it was asked for
      │
      ├─ Turn 3: "Confirm" → PASSED
      │    Agent: [tool: submit_expense({"id
      │    │ ":"EXP-001"})] → {"expense":{"s
      │    │ tatus":"submitted"}}
      │    Agent: "Expense submitted.
      │    │ Reference: EXP-001"
      │    simulator: it was asked for
      │
      └─ Final Assertions: PASSED
         ✓ tool_called "submit_expense"
      PASSED ([TIME]) - 3 turns, 1 check

    ────────────────────────────────────────
      Summary
    ────────────────────────────────────────
      Agent:     assistants.expense
                 (http://127.0.0.1:[PORT]/)
      Simulator: workers.test.user-sim
      Total:     3
      Passed:    2
      Failed:    0
      Skipped:   1
      Pass Rate: 100.0%
      Duration:  [TIME]

      Total turns:    7
      Avg turns/test: 2.3
      Total time:     [TIME]

    ════════════════════════════════════════
      ✨ ALL TESTS PASSED ✨ (1 skipped)
    ════════════════════════════════════════

    ----- stderr -----
    "#);
}

fn coverage() -> Value {
    json!({"id": "T001", "name": "Expense Submission Coverage",
        "simulator": {"use": "workers.test.user-simulator", "options": {"metadata": {"goal": "Submit a $250 expense"}}},
        "checkpoints": [
            {"id": "ask_type", "assertion": {"type": "contains", "value": "type of expense"}},
            {"id": "call_create", "after": ["ask_type"], "assertion": {"type": "tool_called", "name": "create_expense"}},
            {"id": "confirm", "description": "Agent confirms submission", "after": ["call_create"],
                "assertion": {"type": "contains", "value": "submitted"}}],
        "max_turns": 10})
}

fn target_with_user(agent: &FakeAgent, user: &FakeAgent) -> String {
    format!(
        "agents:\n  assistants.expense: {{ endpoint: '{agent}' }}\n  workers.test.user-simulator: {{ endpoint: '{user}' }}\ntarget: assistants.expense\n"
    )
}

#[test]
fn simulated_users_and_checkpoints() {
    let (agent, user) = (
        expense_agent(),
        simulated_user(&["Help me file an expense", "Client dinner, $250", "Yes, confirm"]),
    );
    let mut missing = coverage();
    missing["id"] = json!("T002");
    missing["name"] = json!("Expense that is paid");
    missing["checkpoints"][2]["assertion"]["value"] = json!("paid");
    missing["max_turns"] = json!(3);
    let project = project(&[coverage(), missing]).file("hotseat.yaml", &target_with_user(&agent, &user));
    assert_snapshot!(console_output(&project, "80", &["--parallel", "1"]), @r#"
    exit code: 1
    ----- stdout -----
    ═══════════════════════════════════════════════════════════════
      Agent Test (Dynamic Mode)                       Hotseat 0.1.0
    ═══════════════════════════════════════════════════════════════
    ℹ Agent: assistants.expense (http://127.0.0.1:[PORT]/)
    ℹ Input: tests/expense.test.jsonl (2 test cases)
    ℹ Simulator: workers.test.user-simulator
    ℹ Timeout: [TIME] per turn

    ───────────────────────────────────────────────────────────────
      Running Tests
    ───────────────────────────────────────────────────────────────
    ► [T001] Expense Submission Coverage PASSED ([TIME]) - 3 turns, 3/3 checkpoints

    ► [T002] Expense that is paid
      ├─ Turn 1: "Help me file an expense" → "What type of expense would you like …"
      │  ├─ simulator: it was asked for
      │  └─ ✓ checkpoint: ask_type
      ├─ Turn 2: "Client dinner, $250" → "I'll create the expense. Please confirm."
      │  ├─ Agent: [tool: create_expense({"amount":250,"type":"travel"})] → {"id":"…
      │  ├─ simulator: it was asked for
      │  └─ ✓ checkpoint: call_create (tool: create_expense)
      └─ Turn 3: "Yes, confirm" → "Expense submitted. Reference: EXP-001"
         ├─ Agent: [tool: submit_expense({"id":"EXP-001"})] → {"expense":{"status":…
         └─ simulator: it was asked for
      FAILED ([TIME]) - 3 turns, 2/3 checkpoints
      └─ max turns (3) exceeded; missing checkpoints: confirm

         ✗ checkpoint: confirm (Agent confirms submission)
          --> tests/expense.test.jsonl:2:348
           |
         2 | ...e":"create_expense"}},{"id":"confirm","description":"Agent confir...
           |                                ^^^^^^^^^
           |
           = reason: in turn 3: expected the agent's text to contain "paid", got
           |   "Expense submitted. Reference: EXP-001"

    ───────────────────────────────────────────────────────────────
      Failed Tests
    ───────────────────────────────────────────────────────────────
      ✗ [T002] Expense that is paid (tests/expense.test.jsonl:2:21, max_turns)

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     assistants.expense (http://127.0.0.1:[PORT]/)
      Simulator: workers.test.user-simulator
      Total:     2
      Passed:    1
      Failed:    1
      Pass Rate: 50.0%
      Duration:  [TIME]

      Total turns:    6
      Avg turns/test: 3.0
      Total time:     [TIME]

      Next: see above whether the conversation goes in circles; if it needs longer,
            raise `max_turns`

    ═══════════════════════════════════════════════════════════════
      ❌ TESTS FAILED
    ═══════════════════════════════════════════════════════════════

    ----- stderr -----
    "#);
    assert_snapshot!(console_output(&project, "40", &["--parallel", "1"]), @r#"
    exit code: 1
    ----- stdout -----
    ════════════════════════════════════════
      Agent Test (Dynamic Mode)
    ════════════════════════════════════════
    ℹ Agent: assistants.expense
      (http://127.0.0.1:[PORT]/)
    ℹ Input: tests/expense.test.jsonl (2
      test cases)
    ℹ Simulator: workers.test.user-simulator
    ℹ Timeout: [TIME] per turn

    ────────────────────────────────────────
      Running Tests
    ────────────────────────────────────────
    ► [T001] Expense Submi… PASSED ([TIME])

    ► [T002] Expense that is paid
      ├─ Turn 1: "Help me f…" → "What type…"
      │  ├─ simulator: it was asked for
      │  └─ ✓ checkpoint: ask_type
      ├─ Turn 2: "Client di…" → "I'll crea…"
      │  ├─ Agent: [tool: create_expense({"…
      │  ├─ simulator: it was asked for
      │  └─ ✓ checkpoint: call_create (tool…
      └─ Turn 3: "Yes, conf…" → "Expense s…"
         ├─ Agent: [tool: submit_expense({"…
         └─ simulator: it was asked for
      FAILED ([TIME]) - 3 turns, 2/3
        checkpoints
      └─ max turns (3) exceeded; missing
    │ checkpoints: confirm

    ✗ checkpoint: confirm (Agent confirms
      submission)
     --> tests/expense.test.jsonl:2:348
      |
    2 | ..."}},{"id":"confirm","descripti...
      |              ^^^^^^^^^
      |
      = reason: in turn 3: expected the
      |   agent's text to contain "paid",
      |   got "Expense submitted. Reference:
      |   EXP-001"

    ────────────────────────────────────────
      Failed Tests
    ────────────────────────────────────────
      ✗ [T002] Expense that is paid
        (tests/expense.test.jsonl:2:21, max_turns)

    ────────────────────────────────────────
      Summary
    ────────────────────────────────────────
      Agent:     assistants.expense
                 (http://127.0.0.1:[PORT]/)
      Simulator: workers.test.user-simulator
      Total:     2
      Passed:    1
      Failed:    1
      Pass Rate: 50.0%
      Duration:  [TIME]

      Total turns:    6
      Avg turns/test: 3.0
      Total time:     [TIME]

      Next: see above whether the
            conversation goes in circles; if
            it needs longer, raise
            `max_turns`

    ════════════════════════════════════════
      ❌ TESTS FAILED
    ════════════════════════════════════════

    ----- stderr -----
    "#);
}

#[test]
fn conversation_failures() {
    let agent = expense_agent();
    let [mut first, _] = expense_cases();
    first["turns"][1]["assertions"] = json!([{"type": "tool_called", "name": "submit_expense"}]);
    let mut second = first.clone();
    second["id"] = json!("T002");
    second["turns"][1] = json!({"input": "Business travel, $3500"});
    second["final_assertions"] = json!([{"type": "json_path", "path": "$.expense.status", "value": "paid"},
        {"type": "tool_called", "name": "submit_expense"}]);
    let third = json!({"id": "T003", "name": "Crash", "turns": [{"input": "hello"}, {"input": "crash"}, {"input": "never said"}]});
    let project = project(&[first, second, third]).file("hotseat.yaml", &target(&agent));
    assert_snapshot!(console_output(&project, "80", &["--parallel", "1"]), @r#"
    exit code: 1
    ----- stdout -----
    ═══════════════════════════════════════════════════════════════
      Agent Test (Multi-Turn)                         Hotseat 0.1.0
    ═══════════════════════════════════════════════════════════════
    ℹ Agent: assistants.expense (http://127.0.0.1:[PORT]/)
    ℹ Input: tests/expense.test.jsonl (3 test cases)
    ℹ Timeout: [TIME] per turn

    ───────────────────────────────────────────────────────────────
      Running Tests
    ───────────────────────────────────────────────────────────────
    ► [T001] Expense Reimbursement Flow (3 turns)
      ├─ Turn 1: "I want to submit an expense" → PASSED ([TIME])
      │    Agent: "What type of expense would you like to submit?"
      │    ✓ contains "type of expense"
      │
      ├─ Turn 2: "Business travel, $3500" → FAILED ([TIME])
      │    Agent: [tool: create_expense({"amount":3500,"type":"travel"})] → {"id":"…
      │    Agent: "I'll create the expense. Please confirm."
      │    ✗ tool_called "submit_expense"
      │
      └─ Turn 3: not run
      FAILED ([TIME]) - 2 turns, 2 checks
      └─ assertion: 1 of 2 checks failed

         ✗ turn 2: expected submit_expense to be called
          --> tests/expense.test.jsonl:1:237
           |
         1 | ...e":"tool_called","name":"submit_expense"}]},{"input":"Yes, confir...
           |                            ^^^^^^^^^^^^^^^^
           |
           = got: no call; tools called: create_expense

    ► [T002] Expense Reimbursement Flow (3 turns)
      ├─ Turn 1: "I want to submit an expense" → PASSED ([TIME])
      │    Agent: "What type of expense would you like to submit?"
      │    ✓ contains "type of expense"
      │
      ├─ Turn 2: "Business travel, $3500" → PASSED ([TIME])
      │    Agent: [tool: create_expense({"amount":3500,"type":"travel"})] → {"id":"…
      │    Agent: "I'll create the expense. Please confirm."
      │
      ├─ Turn 3: "Yes, confirm" → PASSED ([TIME])
      │    Agent: [tool: submit_expense({"id":"EXP-001"})] → {"expense":{"status":"…
      │    Agent: "Expense submitted. Reference: EXP-001"
      │    ✓ contains "submitted"
      │
      └─ Final Assertions: FAILED
         ✗ $.expense.status = "paid"
         ✓ tool_called "submit_expense"
      FAILED ([TIME]) - 3 turns, 4 checks
      └─ assertion: 1 of 4 checks failed

         ✗ expected $.expense.status to be "paid"
          --> tests/expense.test.jsonl:2:323
           |
         2 | ...pe":"json_path","path":"$.expense.status","value":"paid"},{"type"...
           |                           ^^^^^^^^^^^^^^^^^^
           |
           = got: "submitted" in the result of submit_expense in turn 3

    ► [T003] Crash (3 turns)
      ├─ Turn 1: "hello" → PASSED ([TIME])
      │    Agent: "What type of expense would you like to submit?"
      │
      ├─ Turn 2: "crash" → FAILED ([TIME])
      │    error: model exploded
      │
      └─ Turn 3: not run
      FAILED ([TIME]) - 2 turns
      └─ agent_error: the agent failed: model exploded (BOOM)

         --> tests/expense.test.jsonl:3:21

    ───────────────────────────────────────────────────────────────
      Failed Tests
    ───────────────────────────────────────────────────────────────
      ✗ [T001] Expense Reimbursement Flow (tests/expense.test.jsonl:1:21)
      ✗ [T002] Expense Reimbursement Flow (tests/expense.test.jsonl:2:21)
      ✗ [T003] Crash (tests/expense.test.jsonl:3:21, agent_error)

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     assistants.expense (http://127.0.0.1:[PORT]/)
      Total:     3
      Passed:    0
      Failed:    3
      Pass Rate: 0.0%
      Duration:  [TIME]

      Total turns:    7
      Avg turns/test: 2.3
      Total time:     [TIME]

    ═══════════════════════════════════════════════════════════════
      ❌ TESTS FAILED
    ═══════════════════════════════════════════════════════════════

    ----- stderr -----
    note: this case asserts nothing: it passes if the agent answers without an error (tests/expense.test.jsonl:3:21)
    "#);
}

/// Cases with `wait N` are answered when gate N opens.
fn gated_agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let said = request.last_user_text();
        let run = match said.strip_prefix("wait ") {
            Some(gate) => run.gate(gate),
            None => run,
        };
        run.text(&format!("You said: {said}")).finished()
    })
}

fn project_with_cases(agent: &FakeAgent, cases: &[Value]) -> Project {
    project(cases).file("hotseat.yaml", &format!("target: {{ endpoint: '{agent}' }}\n"))
}

fn two_turn_case(id: &str) -> Value {
    json!({"id": id, "turns": [{"input": "first"}, {"input": format!("wait {id}")}]})
}

#[test]
fn concurrent_conversations_are_not_interleaved() {
    let agent = gated_agent();
    let project = project_with_cases(&agent, &[two_turn_case("A"), two_turn_case("B"), two_turn_case("C")]);
    let mut running = project.command(&["test", "--parallel", "3"]).env("COLUMNS", "80").spawn();
    for gate in ["A", "B", "C"] {
        agent.wait_at_gate(gate, TEST_TIMEOUT);
    }
    for gate in ["B", "C"] {
        agent.release(gate);
        running.wait_for_stdout(&format!("► [{gate}]"));
    }
    agent.release("A");
    assert_snapshot!(running.wait().redacted().stdout, @"
    ═══════════════════════════════════════════════════════════════
      Agent Test (Parallel: 3)                        Hotseat 0.1.0
    ═══════════════════════════════════════════════════════════════
    ℹ Agent: http://127.0.0.1:[PORT]/
    ℹ Input: tests/expense.test.jsonl (3 test cases)
    ℹ Timeout: [TIME] per turn
    ℹ Parallel: 3 concurrent

    ───────────────────────────────────────────────────────────────
      Running Tests (3 parallel)
    ───────────────────────────────────────────────────────────────
    ► [B] first (2 turns) PASSED ([TIME]) - nothing was asserted
    ► [C] first (2 turns) PASSED ([TIME]) - nothing was asserted
    ► [A] first (2 turns) PASSED ([TIME]) - nothing was asserted

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     3
      Passed:    3
      Failed:    0
      Pass Rate: 100.0%
      Duration:  [TIME] (effective: [TIME]/test with 3 parallel)

      Total turns:    6
      Avg turns/test: 2.0
      Total time:     [TIME]

    ═══════════════════════════════════════════════════════════════
      ✨ ALL TESTS PASSED ✨
    ═══════════════════════════════════════════════════════════════
    ");
}

#[test]
fn terminal_shows_progress_at_bottom() {
    let agent = gated_agent();
    let wait = |id: &str| json!({"id": id, "input": format!("wait {id}"), "assertions": [{"type": "contains", "value": "wait"}]});
    let project = project_with_cases(&agent, &[wait("A"), wait("B"), wait("C")]);
    let mut running = project.command(&["test", "--parallel", "2", "--color", "never"]).terminal(80).spawn();
    agent.wait_at_gate("A", TEST_TIMEOUT);
    agent.wait_at_gate("B", TEST_TIMEOUT);
    agent.release("A");
    running.wait_for_stdout("[Progress: 1/3 completed, 2 running...] ");
    running.wait_for_stdout(" left B, C");
    agent.release("B");
    agent.release("C");
    let output = running.wait();
    assert_eq!(output.code, 0, "{output}");
    // The progress line is overwritten by later output.
    let last = output.stdout.rfind("[Progress: ").unwrap_or_else(|| panic!("{output}"));
    assert!(output.stdout[last..].contains("\r\u{1b}[2K"), "{output}");
}

#[test]
fn long_run_prints_progress_periodically() {
    let agent = gated_agent();
    let cases: Vec<Value> = (1..=60).map(|n| json!({"id": format!("T{n:02}"), "input": "hello"})).collect();
    let output = project_with_cases(&agent, &cases).hotseat(&["test", "--parallel", "1"]);
    let lines: Vec<&str> = output.stdout.lines().filter(|line| line.contains("Progress")).collect();
    assert_eq!(lines, ["[Progress: 25/60 completed]", "[Progress: 50/60 completed]"], "{output}");
    let few = project_with_cases(&agent, &cases[..20]).hotseat(&["test", "--parallel", "1"]);
    assert!(!few.stdout.contains("Progress"), "{few}");
}

/// A passed case takes one line, except in verbose mode.
#[test]
fn passed_cases_print_one_line_each() {
    let agent = expense_agent();
    let many = |count: usize| -> Vec<Value> {
        (1..=count)
            .map(|n| json!({"id": format!("T{n}"), "turns": [{"input": "hello"}, {"input": "bye"}]}))
            .collect()
    };
    for (count, args, trees) in [(2, &[][..], 0), (13, &[], 0), (13, &["-v"], 13)] {
        let output =
            project(&many(count)).file("hotseat.yaml", &target(&agent)).hotseat(&[&["test"], args].concat());
        assert_eq!(output.stdout.matches("├─ Turn 1: ").count(), trees, "{count} {args:?}\n{output}");
        let lines =
            output.stdout.lines().filter(|line| line.starts_with("► [T") && line.contains(" PASSED "));
        assert_eq!(lines.clone().count(), count - trees, "{output}");
        assert!(lines.clone().all(|line| line.ends_with(" - nothing was asserted")), "{output}");
        let line = "► [T1] hello (2 turns) PASSED (";
        assert_eq!(
            output.stdout.contains(line),
            trees == 0,
            "what was said first tells one from another\n{output}"
        );
    }
}

#[test]
fn attachments_are_listed_next_to_input() {
    let agent = expense_agent();
    let turns = json!([
        {"input": "Submit receipt", "attachments": [{"type": "image", "source": "file://./receipt.jpg"}]},
        {"input": "Travel, $250"}
    ]);
    let project = project(&[json!({"id": "T002", "name": "Expense with Attachment", "turns": turns})])
        .file("hotseat.yaml", &target(&agent))
        .file("tests/receipt.jpg", "a picture");
    let output = console_output(&project, "80", &["-v"]);
    assert!(output.stdout.contains("├─ Turn 1: \"Submit receipt\" + [receipt.jpg] → PASSED ("), "{output}");
    assert!(!output.stdout.contains("note: attached"), "it is told once\n{output}");
}

#[test]
fn achieved_goal_is_shown_with_last_turn() {
    let agent = FakeAgent::with_text("Anything else?");
    let user = simulated_user(&["I want to submit an expense"]);
    let case =
        json!({"id": "T001", "simulator": {"use": "workers.test.user-simulator"}, "on_missing_input": "end"});
    let project = project(&[case]).file("hotseat.yaml", &target_with_user(&agent, &user));
    let output = console_output(&project, "80", &[]);
    let tree: Vec<&str> = output.stdout.lines().skip_while(|line| !line.starts_with('►')).take(5).collect();
    assert_snapshot!(tree.join("\n"), @"
    ► [T001] (simulator: workers.test.user-simulator) PASSED ([TIME])

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
    ");
}

#[test]
fn verbose_mode_quotes_judges() {
    let agent = expense_agent();
    let judge = FakeAgent::with_run(|run, _| {
        let verdict = json!({"passed": true, "score": 0.95, "reason": "It asks politely"});
        run.text(&verdict.to_string()).finished()
    });
    let case = json!({"id": "T001", "input": "hello",
        "assertions": [{"type": "agent", "use": "agents:workers.test.user-simulator", "value": "It is polite"}]});
    let project = project(&[case]).file("hotseat.yaml", &target_with_user(&agent, &judge));
    let output = console_output(&project, "80", &["-v"]);
    let tree: Vec<&str> = output.stdout.lines().skip_while(|line| !line.starts_with('►')).take(6).collect();
    assert_snapshot!(tree.join("\n"), @r#"
    ► [T001] hello PASSED ([TIME])
      ├─ Turn 1: "hello" → PASSED ([TIME])
      │    Agent: "What type of expense would you like to submit?"
      │    judge agents:workers.test.user-simulator agrees (score 0.95): It asks
      │    │ politely
      │    ✓ expected the judge to agree: It is polite
    "#);
}
