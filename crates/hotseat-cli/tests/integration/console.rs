//! Console output of a run.
use hotseat_testkit::checkout::AgentFault;
use hotseat_testkit::{FakeAgent, FakeReply, ProgramOutput, interfaces};
use insta::assert_snapshot;
use serde_json::json;

use crate::common::Project;

/// The example agent with some additional answers.
fn agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| -> FakeReply {
        match request.last_user_text().as_str() {
            "think" => run
                .reasoning("Let me see.")
                .text("First thought.")
                .tool("c", "look_up", &json!({"what": "第二"}), Some(json!("nothing")))
                .text("Second thought,\nover two lines.")
                .finished()
                .into(),
            "hang" => run.tool_call("c", "slow_tool", &json!({})).hang().into(),
            "page" => FakeReply::text(
                503,
                "<html>\n  <body>try again later, when there are fewer people who want something of us</body>\n</html>\n",
            ),
            _ => interfaces::reply(request, AgentFault::None),
        }
    })
}

#[track_caller]
fn console_output(suite: &str, columns: &str, args: &[&str]) -> ProgramOutput {
    let agent = agent();
    let project = Project::with_agent(&agent).suite("a", suite);
    let command = project.command(&[&["test", "--parallel", "1"], args].concat()).env("COLUMNS", columns);
    let output = command.run();
    for line in output.stdout.lines() {
        let width = line.chars().count();
        assert!(width <= columns.parse().expect("a number"), "{width} columns: {line}");
    }
    // Replaces ids, which differ from run to run.
    output.redacted()
}

const PASSES: &str = "
name: greets
turns: [{ user: hello, assert: { text: { must_match: hello } } }]
";

const CHECKS: &str = "
name: pays once
turns:
  - user: checkout
    assert:
      tools:
        require:
          - name: validate_cart
            args_match: { cart_id: '^c-1$' }
  - user: pay twice
assert:
  tools:
    require:
      - name: charge_card
        count: { exact: 1 }
    forbid: [delete_order]
";

#[test]
fn passing_run_prints_one_line_per_case() {
    let suite =
        format!("{PASSES}---\nname: later\nskip: the tool is not there yet\nturns: [{{ user: a }}]\n");
    assert_snapshot!(console_output(&suite, "80", &[]), @"
    exit code: 0
    ----- stdout -----
    ═══════════════════════════════════════════════════════════════
      Agent Test                                      Hotseat 0.1.0
    ═══════════════════════════════════════════════════════════════
    ℹ Agent: http://127.0.0.1:[PORT]/
    ℹ Input: a.test.yaml (2 test cases)
    ℹ Timeout: [TIME] per turn

    ───────────────────────────────────────────────────────────────
      Running Tests
    ───────────────────────────────────────────────────────────────
    ► greets · hello PASSED ([TIME])
    ► later SKIPPED the tool is not there yet

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     2
      Passed:    1
      Failed:    0
      Skipped:   1
      Pass Rate: 100.0%
      Duration:  [TIME]

    ═══════════════════════════════════════════════════════════════
      ✨ ALL TESTS PASSED ✨ (1 skipped)
    ═══════════════════════════════════════════════════════════════

    ----- stderr -----
    ");
}

#[test]
fn prints_failed_check() {
    assert_snapshot!(console_output(&format!("{PASSES}---{CHECKS}"), "80", &[]), @r#"
    exit code: 1
    ----- stdout -----
    ═══════════════════════════════════════════════════════════════
      Agent Test (Multi-Turn)                         Hotseat 0.1.0
    ═══════════════════════════════════════════════════════════════
    ℹ Agent: http://127.0.0.1:[PORT]/
    ℹ Input: a.test.yaml (2 test cases)
    ℹ Timeout: [TIME] per turn

    ───────────────────────────────────────────────────────────────
      Running Tests
    ───────────────────────────────────────────────────────────────
    ► greets · hello PASSED ([TIME])

    ► pays once (2 turns)
      ├─ Turn 1: "checkout" → PASSED ([TIME])
      │    Agent: [tool: validate_cart({"cart_id":"c-1"})] → {"ok":true,"cart_id":"…
      │    Agent: [tool: get_shipping_options({"country":"FR","cart":{"id":"c-1","i…
      │    Agent: "Cart is valid. Shipping options: standard, express."
      │    ✓ expected validate_cart with cart_id /^c-1$/ to be called
      │
      ├─ Turn 2: "pay twice" → PASSED ([TIME])
      │    Agent: [tool: charge_card({"amount":42.5,"currency":"EUR","token":"tok_1…
      │    Agent: [tool: charge_card({"amount":42.5,"currency":"EUR","token":"tok_2…
      │    Agent: "Charged twice."
      │
      └─ Final Assertions: FAILED
         ✓ expected delete_order never to be called
         ✗ expected charge_card to be called exactly once
      FAILED ([TIME]) - 2 turns, 3 checks
      └─ assertion: 1 of 3 checks failed

         ✗ expected charge_card to be called exactly once
           --> a.test.yaml:18:16
            |
         18 |         count: { exact: 1 }
            |                ^^^^^^^^^^^^
            |
            = got: 2 calls:
            |   - turn 2: charge_card({"amount":42.5,"currency":"EUR",
            |     "token":"tok_1"}) → {"status":"approved","charge_id":"ch_001",
            |     "amount":42.5,"currency":"EUR"}
            |   - turn 2: charge_card({"amount":42.5,"currency":"EUR",
            |     "token":"tok_2"}) → {"status":"approved","charge_id":"ch_001",
            |     "amount":42.5,"currency":"EUR"}

    ───────────────────────────────────────────────────────────────
      Failed Tests
    ───────────────────────────────────────────────────────────────
      ✗ pays once (a.test.yaml:5:7)

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     2
      Passed:    1
      Failed:    1
      Pass Rate: 50.0%
      Duration:  [TIME]

      Total turns:    3
      Avg turns/test: 1.5
      Total time:     [TIME]

      Next: after the fix, run only the failed cases:
            hotseat test --parallel 1 --lf

    ═══════════════════════════════════════════════════════════════
      ❌ TESTS FAILED
    ═══════════════════════════════════════════════════════════════

    ----- stderr -----
    "#);
}

#[test]
fn wraps_output_for_narrow_terminal() {
    assert_snapshot!(console_output(CHECKS, "50", &[]), @r#"
    exit code: 1
    ----- stdout -----
    ══════════════════════════════════════════════════
      Agent Test (Multi-Turn)            Hotseat 0.1.0
    ══════════════════════════════════════════════════
    ℹ Agent: http://127.0.0.1:[PORT]/
    ℹ Input: a.test.yaml (1 test case)
    ℹ Timeout: [TIME] per turn

    ──────────────────────────────────────────────────
      Running Tests
    ──────────────────────────────────────────────────
    ► pays once (2 turns)
      ├─ Turn 1: "checkout" → PASSED
      │    Agent: [tool: validate_cart({"cart_id":"c-…
      │    Agent: [tool: get_shipping_options({"count…
      │    Agent: "Cart is valid. Shipping options: s…
      │    ✓ expected validate_cart with cart_id /^c-…
      │
      ├─ Turn 2: "pay twice" → PASSED
      │    Agent: [tool: charge_card({"amount":42.5,"…
      │    Agent: [tool: charge_card({"amount":42.5,"…
      │    Agent: "Charged twice."
      │
      └─ Final Assertions: FAILED
         ✓ expected delete_order never to be called
         ✗ expected charge_card to be called exactly …
      FAILED ([TIME]) - 2 turns, 3 checks
      └─ assertion: 1 of 3 checks failed

         ✗ expected charge_card to be called exactly
           once
           --> a.test.yaml:15:16
            |
         15 |         count: { exact: 1 }
            |                ^^^^^^^^^^^^
            |
            = got: 2 calls:
            |   - turn 2: charge_card({"amount":42.5,
            |     "currency":"EUR","token":"tok_1"}) →
            |     {"status":"approved",
            |     "charge_id":"ch_001","amount":42.5,
            |     "currency":"EUR"}
            |   - turn 2: charge_card({"amount":42.5,
            |     "currency":"EUR","token":"tok_2"}) →
            |     {"status":"approved",
            |     "charge_id":"ch_001","amount":42.5,
            |     "currency":"EUR"}

    ──────────────────────────────────────────────────
      Summary
    ──────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     1
      Passed:    0
      Failed:    1
      Pass Rate: 0.0%
      Duration:  [TIME]

      Total turns:    2
      Avg turns/test: 2.0
      Total time:     [TIME]

    ══════════════════════════════════════════════════
      ❌ TESTS FAILED
    ══════════════════════════════════════════════════

    ----- stderr -----
    "#);
}

#[test]
fn prints_several_failed_checks_with_long_lines() {
    assert_snapshot!(console_output("
name: a case with a name that is a good deal longer than any line that would have to hold it
turns:
  - user: think
    assert: { tools: { require: [{ name: look_up, args_match: { what: '^first$' }, result_match: ['something', 'anything at all'] }] }, text: { must_match: 'Third thought', must_not_match: ['First', '第二'] } }
", "80", &[]), @r#"
    exit code: 1
    ----- stdout -----
    ═══════════════════════════════════════════════════════════════
      Agent Test                                      Hotseat 0.1.0
    ═══════════════════════════════════════════════════════════════
    ℹ Agent: http://127.0.0.1:[PORT]/
    ℹ Input: a.test.yaml (1 test case)
    ℹ Timeout: [TIME] per turn

    ───────────────────────────────────────────────────────────────
      Running Tests
    ───────────────────────────────────────────────────────────────
    ► a case with a name that is a good deal longer than any line … FAILED ([TIME])
      ├─ Turn 1: "think" → FAILED ([TIME])
      │    Agent: "First thought."
      │    Agent: [tool: look_up({"what":"第二"})] → nothing
      │    Agent: "Second thought,⏎over two lines."
      │    ✗ expected look_up with what /^first$/ with a result that matches /somet…
      │    ✗ expected the agent to say something that matches /Third thought/
      │    ✗ expected the agent to say nothing that matches /First/
      │    ✓ expected the agent to say nothing that matches /第二/
      └─ assertion: 3 of 4 checks failed

         ✗ turn 1: expected look_up with what /^first$/ with a result that matches
           /something/ and /anything at all/ to be called
          --> a.test.yaml:5:42
           |
         5 |     assert: { tools: { require: [{ name: look_up, args_match: { what...
           |                                          ^^^^^^^
           |
           = got: 0 of 1 call matching
           |   nearest: look_up in turn 1
           |     argument    expected           got
           |     what        /^first$/          "第二"
           |     the result  /something/        "nothing"
           |     the result  /anything at all/  "nothing"
           |   - turn 1: look_up({"what":"第二"}) → nothing

         ✗ turn 1: expected the agent to say something that matches /Third thought/
          --> a.test.yaml:5:157
           |
         5 | ...] }, text: { must_match: 'Third thought', must_not_match: ['First...
           |                             ^^^^^^^^^^^^^^^
           |
           = got: "First thought.\nSecond thought,\nover two lines."

         ✗ turn 1: expected the agent to say nothing that matches /First/
          --> a.test.yaml:5:191
           |
         5 | ...d thought', must_not_match: ['First', '第二'] } }
           |                                 ^^^^^^^
           |
           = got: "First thought.\nSecond thought,\nover two lines."

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     1
      Passed:    0
      Failed:    1
      Pass Rate: 0.0%
      Duration:  [TIME]

    ═══════════════════════════════════════════════════════════════
      ❌ TESTS FAILED
    ═══════════════════════════════════════════════════════════════

    ----- stderr -----
    "#);
}

#[test]
fn verbose_mode_prints_everything() {
    let more = "
name: remembers
turns:
  - { user: think, assert: { text: { must_match: thought } } }
  - { user: refund, resume: [{ tool: refund_order, payload: { approved: true } }] }
assert: { tools: { require: [{ name: refund_order, after: look_up }] } }
---
name: asserts nothing
turns: [{ user: hello }]
";
    assert_snapshot!(console_output(more, "80", &["-v"]), @r#"
    exit code: 0
    ----- stdout -----
    ═══════════════════════════════════════════════════════════════
      Agent Test (Multi-Turn)                         Hotseat 0.1.0
    ═══════════════════════════════════════════════════════════════
    ℹ Agent: http://127.0.0.1:[PORT]/
    ℹ Input: a.test.yaml (2 test cases)
    ℹ Timeout: [TIME] per turn

    ───────────────────────────────────────────────────────────────
      Running Tests
    ───────────────────────────────────────────────────────────────
    ► remembers (2 turns)
      ├─ Turn 1: "think" → PASSED ([TIME])
      │    Agent: "First thought."
      │    Agent: [tool: look_up({"what":"第二"})] → nothing
      │    Agent: "Second thought,
      │    │ over two lines."
      │    ✓ expected the agent to say something that matches /thought/
      │
      ├─ Turn 2: "refund" → PASSED ([TIME])
      │    Agent: [tool: refund_order({"order_id":"o-9","amount":42.5})] →
      │    │ {"refunded":42.5,"order_id":"o-9"}
      │    Agent: "Refund outcome: {"refunded":42.5,"order_id":"o-9"}"
      │    paused: Refund 42.5 EUR of order o-9? → resolved
      │
      └─ Final Assertions: PASSED
         ✓ expected refund_order to be called
         ✓ expected refund_order to be called only after look_up
      PASSED ([TIME]) - 2 turns, 3 checks

    ► asserts nothing · hello PASSED ([TIME]) - nothing was asserted
      ├─ Turn 1: "hello" → PASSED ([TIME])
      │    Agent: "You said: hello"
      └─ nothing was asserted

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     2
      Passed:    2
      Failed:    0
      Pass Rate: 100.0%
      Duration:  [TIME]

      Total turns:    3
      Avg turns/test: 1.5
      Total time:     [TIME]

    ═══════════════════════════════════════════════════════════════
      ✨ ALL TESTS PASSED ✨
    ═══════════════════════════════════════════════════════════════

    ----- stderr -----
    note: this case asserts nothing: it passes if the agent answers without an error (a.test.yaml:8:7)
    "#);
}

#[test]
fn prints_failures_without_checks() {
    assert_snapshot!(console_output("
name: crashes
turns: [{ user: crash }]
---
name: hangs
turns: [{ user: hang, timeout_ms: 1000 }]
---
name: is busy
turns: [{ user: page }]
---
name: asks
turns: [{ user: refund }]
---
name: has a hook
hooks: [{ cmd: [sh, '-c', 'echo connecting; echo no such shop >&2; exit 2'] }]
turns: [{ user: hello }]
", "80", &[]), @r#"
    exit code: 1
    ----- stdout -----
    ═══════════════════════════════════════════════════════════════
      Agent Test                                      Hotseat 0.1.0
    ═══════════════════════════════════════════════════════════════
    ℹ Agent: http://127.0.0.1:[PORT]/
    ℹ Input: a.test.yaml (5 test cases)
    ℹ Timeout: [TIME] per turn

    ───────────────────────────────────────────────────────────────
      Running Tests
    ───────────────────────────────────────────────────────────────
    ► crashes · crash FAILED ([TIME])
      ├─ Turn 1: "crash" → FAILED ([TIME])
      │    error: model backend exploded
      └─ agent_error: the agent failed: model backend exploded (MODEL_ERROR)

         --> a.test.yaml:2:7

    ► hangs · hang FAILED ([TIME])
      ├─ Turn 1: "hang" → FAILED ([TIME])
      │    Agent: [tool: slow_tool({})] → no result
      └─ timeout: the turn timed out after 1000 ms

         --> a.test.yaml:5:7

    ► is busy · page FAILED ([TIME])
      ├─ Turn 1: "page" → FAILED ([TIME])
      └─ agent_error: http://127.0.0.1:[PORT]/ answered HTTP 503 Service Unavailable

         │ <html>
         │   <body>try again later, when there are fewer people who want something
         │   of us</body>
         │ </html>

         --> a.test.yaml:8:7

    ► asks · refund TEST ERROR ([TIME])
      ├─ Turn 1: "refund" → TEST ERROR ([TIME])
      │    Agent: [tool: refund_order({"order_id":"o-9","amount":42.5})] → no result
      │    paused: Refund 42.5 EUR of order o-9? → unanswered
      └─ test_error: the agent paused for an answer that the turn does not define
         │ (add it to `resume`); reason: tool_call; message: Refund 42.5 EUR of
         │ order o-9?; tool: refund_order

         │ {
         │   "id": "approve-[ID]-call-1",
         │   "reason": "tool_call",
         │   "message": "Refund 42.5 EUR of order o-9?",
         │   "toolCallId": "[ID]-call-1",
         │   "responseSchema": {
         │     "type": "object",
         │     "properties": {
         │       "approved": {
         │         "type": "boolean"
         │       }
         │     },
         │     "required": [
         │       "approved"
         │     ]
         │   }
         │ }

         --> a.test.yaml:11:7

    ► has a hook TEST ERROR ([TIME])
      └─ hook_error: hook `sh -c echo connecting; echo no such shop >&2; exit 2`
         │ failed (exit status: 2) (a.test.yaml:15:9)

         │ stdout:
         │ connecting
         │ stderr:
         │ no such shop

         --> a.test.yaml:14:7

    ───────────────────────────────────────────────────────────────
      Failed Tests
    ───────────────────────────────────────────────────────────────
      ✗ crashes (a.test.yaml:2:7, agent_error)
      ✗ hangs (a.test.yaml:5:7, timeout)
      ✗ is busy (a.test.yaml:8:7, agent_error)
      ✗ asks (a.test.yaml:11:7, test error)
      ✗ has a hook (a.test.yaml:14:7, test error: hook_error)

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     5
      Passed:    0
      Failed:    5
                 3 failed
                 2 test errors
      Timeouts:  1 of them
      Pass Rate: 0.0%
      Duration:  [TIME]

      Next: see everything the agent sent:
            hotseat test --parallel 1 --lf --trace trace.jsonl

    ═══════════════════════════════════════════════════════════════
      ❌ TESTS FAILED
    ═══════════════════════════════════════════════════════════════

    ----- stderr -----
    note: this case asserts nothing: it passes if the agent answers without an error (a.test.yaml:2:7)
    note: this case asserts nothing: it passes if the agent answers without an error (a.test.yaml:5:7)
    note: this case asserts nothing: it passes if the agent answers without an error (a.test.yaml:8:7)
    note: this case asserts nothing: it passes if the agent answers without an error (a.test.yaml:11:7)
    note: this case asserts nothing: it passes if the agent answers without an error (a.test.yaml:14:7)
    "#);
}

#[test]
fn prints_stream_warnings() {
    let agent = FakeAgent::with_run(|run, _| run.raw_event(json!({"type": "NOVELTY"})).finished());
    let suite = "name: a\nturns: [{ user: a }]\n";
    let output = Project::with_agent(&agent).suite("a", suite).hotseat(&["test", "-v"]);
    let notes: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with("  │    note: ")).collect();
    assert!(notes.len() == 1 && notes[0].contains("NOVELTY"), "{output}");
}

#[test]
fn prints_skipped_cases_on_one_line() {
    let suite = format!("{CHECKS}---{}---{PASSES}", PASSES.replace("greets", "again"));
    let output = console_output(&suite, "80", &["--fail-fast"]);
    let end = output.stdout.find("► 2 cases").unwrap_or_else(|| panic!("{output}"));
    assert_snapshot!(output.stdout[end..], @"
    ► 2 cases SKIPPED not run: `pays once` failed (--fail-fast)

    ───────────────────────────────────────────────────────────────
      Failed Tests
    ───────────────────────────────────────────────────────────────
      ✗ pays once (a.test.yaml:2:7)

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     3
      Passed:    0
      Failed:    1
      Skipped:   2
      Pass Rate: 0.0%
      Duration:  [TIME]

      Total turns:    2
      Avg turns/test: 2.0
      Total time:     [TIME]

      Next: after the fix, run only the failed cases:
            hotseat test --parallel 1 --lf

    ═══════════════════════════════════════════════════════════════
      ❌ TESTS FAILED
    ═══════════════════════════════════════════════════════════════
    ");
    let every = console_output(&suite, "80", &["--fail-fast", "-v"]).stdout;
    assert_eq!(every.matches("SKIPPED not run: `pays once` failed (--fail-fast)").count(), 2, "{every}");
}

#[test]
fn truncates_long_call_lists() {
    let agent = FakeAgent::with_run(|run, _| {
        let calls = (0..40).fold(run, |run, n| {
            run.tool(&format!("c-{n}"), "poll", &json!({ "n": n }), Some(json!("not yet")))
        });
        calls.finished()
    });
    let suite = "name: a\nturns: [{ user: a }]\nassert: { tools: { forbid: [poll] } }\n";
    let output = Project::with_agent(&agent).suite("a", suite).hotseat(&["test"]).redacted();
    let found: Vec<&str> = output.stdout.lines().skip_while(|line| !line.contains("= got:")).collect();
    assert_snapshot!(found.join("\n"), @r#"
           = got: 40 calls:
           |   - turn 1: poll({"n":0}) → not yet
           |   - turn 1: poll({"n":1}) → not yet
           |   - turn 1: poll({"n":2}) → not yet
           |   - turn 1: poll({"n":3}) → not yet
           |   - turn 1: poll({"n":4}) → not yet
           |   - turn 1: poll({"n":5}) → not yet
           |   - turn 1: poll({"n":6}) → not yet
           |   - turn 1: poll({"n":7}) → not yet
           |   - turn 1: poll({"n":8}) → not yet
           |   - turn 1: poll({"n":9}) → not yet
           |   - turn 1: poll({"n":10}) → not yet
           |   … and 29 lines more

    ───────────────────────────────────────────────────────────────
      Summary
    ───────────────────────────────────────────────────────────────
      Agent:     http://127.0.0.1:[PORT]/
      Total:     1
      Passed:    0
      Failed:    1
      Pass Rate: 0.0%
      Duration:  [TIME]

    ═══════════════════════════════════════════════════════════════
      ❌ TESTS FAILED
    ═══════════════════════════════════════════════════════════════
    "#);
}

#[test]
fn colors_do_not_change_text() {
    let agent = agent();
    let project = Project::with_agent(&agent).suite("a", &format!("{PASSES}---{CHECKS}"));
    let plain = project.hotseat(&["test", "--parallel", "1"]).redacted().stdout;
    let coloured = project.hotseat(&["test", "--parallel", "1", "--color", "always"]).redacted().stdout;
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, code)) = rest.split_once("\x1b[") {
        stripped.push_str(before);
        rest = code.split_once('m').expect("a colour ends").1;
    }
    assert_eq!(stripped + rest, plain);
    for (code, words) in [
        ("1", "Agent Test (Multi-Turn)"),
        ("36", "ℹ "),
        ("32", "PASSED"),
        ("31", "FAILED"),
        ("31", "✗"),
        ("31", "❌ TESTS FAILED"),
    ] {
        assert!(coloured.contains(&format!("\x1b[{code}m{words}\x1b[0m")), "{words}: {coloured:?}");
    }
}

#[test]
fn columns_set_the_width_of_narrow_and_unknown_terminals() {
    let agent = FakeAgent::with_text("wide\u{7}r ".repeat(20));
    let suite = "name: a\nturns: [{ user: hello, assert: { text: { must_match: nowhere } } }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    let run = |columns: Option<&str>| {
        let command = project.command(&["test", "--no-store"]);
        let command = columns.into_iter().fold(command, |command, columns| command.env("COLUMNS", columns));
        command.run().redacted().stdout
    };
    let rule = |output: &str| output.lines().next().map_or(0, |line| line.chars().count());
    assert_eq!((rule(&run(Some("34"))), rule(&run(Some("5"))), rule(&run(Some("50")))), (34, 30, 50));
    assert_eq!(run(Some("0")), run(None));
    for columns in 30..50 {
        let output = run(Some(&columns.to_string()));
        let whole = output.matches("\\u{7}").count();
        assert!(whole > 10 && whole == output.matches("\\u").count(), "{columns}: {output}");
    }
}

/// Characters that hide or reorder text are shown; those that join emoji are a part of them.
#[test]
fn joined_emoji_are_shown_whole() {
    let family = "👩\u{200d}👩\u{200d}👧";
    let said = format!("{family} pass\u{200d}word\u{202e}\u{200b}");
    let agent = FakeAgent::with_text(said);
    let suite = "name: a\nturns: [{ user: hello, assert: [{ text: { must_match: nowhere } }, { type: contains, value: nothing }] }]\n";
    let project = Project::with_agent(&agent).suite("a", suite);
    let output = project.hotseat(&["test", "--no-store"]);
    let got = format!(r#"got: "{family} pass\u{{200d}}word\u{{202e}}\u{{200b}}""#);
    assert_eq!(output.stdout.matches(&got).count(), 2, "{output}");
}
