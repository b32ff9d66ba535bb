//! What a sweep of faults says about agents that do something else after a fault than without it.

use hotseat_testkit::FakeAgent;
use serde_json::{Value, json};

use crate::common::http_agents::{asked_text, bank_client, bank_target, http_agent};
use crate::common::{Project, TestRun};

/// Tools of a trip. The hints say which of them may be repeated.
const TRIP: &str = "mcp:
  bank:
    type: mock
    tools:
      - { name: find_order, annotations: { readOnlyHint: true }, answers: [{ content: found }] }
      - { name: book_hotel, answers: [{ content: booked }] }
      - { name: charge_card, answers: [{ content: charged }] }
      - { name: pay_once, annotations: { idempotentHint: true }, answers: [{ content: paid }] }
      - { name: delete_account, answers: [{ content: deleted }] }
";

/// An agent that does what the user says, in one of several wrong or right ways.
fn agent() -> FakeAgent {
    http_agent(|request| {
        let bank = bank_client(request);
        let call = |tool: &str, arguments: Value| bank.call(tool, &arguments).is_ok();
        let order = || json!({"order": "o-1"});
        let all = || call("find_order", order()) & call("book_hotel", order()) & call("charge_card", order());
        let text = asked_text(request);
        match text.as_str() {
            "start again" => match all() || all() {
                true => "Done.",
                false => "It failed.",
            },
            "delete" => match call("charge_card", order()) || !call("delete_account", order()) {
                true => "Done.",
                false => "Something went wrong, so your account is deleted.",
            },
            "new key" => {
                let paid =
                    ["k1", "k2"].iter().any(|key| call("pay_once", json!({"order": "o-1", "key": key})));
                if paid { "Done." } else { "It failed." }
            }
            "same key" => {
                let paid = (0..2).any(|_| call("pay_once", json!({"order": "o-1", "key": "k1"})));
                if paid { "Done." } else { "It failed." }
            }
            "skip" => {
                let _ = call("book_hotel", order()) && call("charge_card", order());
                "Done."
            }
            "pay elsewhere" => {
                let _ = call("charge_card", order()) || call("pay_once", order());
                "Paid."
            }
            "another amount" => {
                let paid = [20, 200].iter().any(|amount| call("charge_card", json!({"amount": amount})));
                if paid { "Done." } else { "It failed." }
            }
            _ => "Hello.",
        }
    })
}

/// Runs a sweep of a case with a user text and assertions.
fn sweep(agent: &FakeAgent, text: &str, kinds: &str, assertions: &str) -> TestRun {
    let suite = format!("name: a\nturns: [{{ user: {text} }}]\nassert: {assertions}\n");
    let project = Project::with_config(&(bank_target(agent) + TRIP)).suite("a", &suite);
    project.test(&["--faults", "sweep", "--fault-kinds", kinds])
}

/// Outcomes of the rows at a tool.
fn outcomes<'r>(run: &'r TestRun, tool: &str) -> Vec<&'r str> {
    let rows = run.report["fault_sweep"]["rows"].as_array().expect("a sweep").iter();
    rows.filter(|row| row["tool"] == tool).map(|row| row["outcome"].as_str().expect("an outcome")).collect()
}

const ANYTHING: &str = "[{ type: max_tool_calls, value: 20 }]";

#[test]
fn effects_of_other_tools_are_not_repeated() {
    let run = sweep(&agent(), "start again", "is_error", ANYTHING);
    assert_eq!(outcomes(&run, "charge_card"), ["acted_twice"], "{}", run.output);
    assert_eq!(outcomes(&run, "book_hotel"), ["acted_twice"], "{}", run.output);
    assert!(
        run.output
            .stdout
            .contains("book_hotel({\"order\":\"o-1\"}) took effect 2 times, without the fault 1")
    );
    assert_eq!(run.output.code, 1);
}

#[test]
fn forbidden_actions_are_no_explanation_to_the_user() {
    let run = sweep(&agent(), "delete", "is_error,lost_answer", "{ tools: { forbid: [delete_account] } }");
    assert_eq!(outcomes(&run, "charge_card"), ["failed", "failed"], "{}", run.output);
    assert!(run.output.stdout.contains("expected delete_account never to be called"), "{}", run.output);
    assert_eq!(run.output.code, 1);
    // What a check requires may be missing: the agent says so.
    let run = sweep(&agent(), "delete", "is_error", "{ text: { must_match: Done } }");
    assert_eq!((outcomes(&run, "charge_card"), run.output.code), (vec!["told_user"], 0), "{}", run.output);
}

#[test]
fn idempotent_tools_take_effect_once_for_the_same_arguments_only() {
    let agent = agent();
    let run = sweep(&agent, "new key", "lost_answer", ANYTHING);
    assert_eq!((outcomes(&run, "pay_once"), run.output.code), (vec!["acted_twice"], 1), "{}", run.output);
    let run = sweep(&agent, "same key", "lost_answer", ANYTHING);
    assert_eq!((outcomes(&run, "pay_once"), run.output.code), (vec!["called_again"], 0), "{}", run.output);
}

#[test]
fn work_that_is_left_out_is_noticed() {
    let run = sweep(&agent(), "skip", "is_error", ANYTHING);
    assert_eq!(outcomes(&run, "book_hotel"), ["did_not_notice"], "{}", run.output);
    // After a lost answer the hotel is booked, and the card is not charged.
    let run = sweep(&agent(), "skip", "lost_answer", ANYTHING);
    assert_eq!(
        (outcomes(&run, "book_hotel"), run.output.code),
        (vec!["did_not_notice"], 1),
        "{}",
        run.output
    );
}

#[test]
fn other_arguments_are_named() {
    let run = sweep(&agent(), "another amount", "is_error", ANYTHING);
    assert_eq!((outcomes(&run, "charge_card"), run.output.code), (vec!["called_again"], 0), "{}", run.output);
    let named = "charge_card took effect with {\"amount\":200}, without the fault with {\"amount\":20}";
    assert!(run.output.stdout.contains(named), "{}", run.output);
}

#[test]
fn an_effect_of_a_tool_that_took_none_without_the_fault_is_named() {
    let agent = agent();
    let run = sweep(&agent, "pay elsewhere", "lost_answer", ANYTHING);
    assert_eq!(
        (outcomes(&run, "charge_card"), run.output.code),
        (vec!["used_another_tool"], 0),
        "{}",
        run.output
    );
    let named = "pay_once({\"order\":\"o-1\"}) took effect only with the fault";
    assert!(run.output.stdout.contains(named), "{}", run.output);
    // A check decides whether that is wrong.
    let run = sweep(&agent, "pay elsewhere", "lost_answer", "{ tools: { forbid: [pay_once] } }");
    assert_eq!((outcomes(&run, "charge_card"), run.output.code), (vec!["failed"], 1), "{}", run.output);
    // Instead of a tool that took no effect, another one is no further effect.
    let run = sweep(&agent, "pay elsewhere", "is_error", ANYTHING);
    assert_eq!(outcomes(&run, "charge_card"), ["did_not_notice"], "{}", run.output);
}

/// An agent that calls a tool only in the conversation without a fault leaves nothing to be seen.
#[test]
fn a_sweep_that_reaches_no_fault_proves_nothing() {
    let agent = http_agent(|request| {
        if request.index == 0 {
            let bank = bank_client(request);
            bank.call("charge_card", &json!({})).expect("a charge");
        }
        "Done."
    });
    let run = sweep(&agent, "pay", "is_error", "{ text: { must_match: Done } }");
    assert_eq!((outcomes(&run, "charge_card"), run.output.code), (vec!["not_reached"], 3), "{}", run.output);
    assert!(run.output.stderr.contains("the sweep injected no fault"), "{}", run.output);
}
