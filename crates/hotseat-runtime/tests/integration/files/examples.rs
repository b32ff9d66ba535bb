//! The agents of `examples/` in conversations that show their features and faults.

use std::path::Path;
use std::time::Duration;

use hotseat_model::TimedValue;
use hotseat_runtime::conversation::ApprovalVerdict;
use hotseat_runtime::files::{self, LoadOptions, LoadedAgent};
use hotseat_runtime::sim::{TestConversation, TestOptions, TestStatus, run_test_conversation_with};
use hotseat_trace::{InvariantOptions, WorkOrigin, assert_conversation_invariants};
use serde_json::{Value, json};

fn example(name: &str) -> LoadedAgent {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    files::load(&folder, &LoadOptions::default())
        .unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false, 120)))
}

/// Runs a conversation message by message, with several schedules of simultaneous events and with simulated
/// crashes, and returns the first result.
fn run_conversation(
    agent: &LoadedAgent,
    messages: &[&str],
    options: impl Fn(TestOptions) -> TestOptions,
) -> TestConversation {
    let hold = |seed: u64, crash: bool| {
        let usual = options(TestOptions::new(agent.combined_model().unwrap()).sequential().seed(seed));
        let usual = if crash { usual.restart_every_step() } else { usual };
        let result =
            run_test_conversation_with(&agent.definitions, &agent.id, messages.iter().copied(), usual);
        assert_eq!(result.waiting, [""; 0], "nothing is waited for");
        // The turn of a declining agent fails, but not the turn of its caller.
        let failed = result.status == TestStatus::Failed || !result.trace.agents().failures().is_empty();
        let allowed = InvariantOptions { allow_failed_turns: failed, deny_tool_failures: false };
        assert_conversation_invariants(&result.trace, allowed);
        result
    };
    let first = hold(0, false);
    for seed in 1..5 {
        assert_eq!(hold(seed, false).status, first.status, "seed {seed}");
    }
    assert_eq!(
        hold(0, true).trace.to_jsonl().unwrap(),
        first.trace.to_jsonl().unwrap(),
        "a crash leaves no mark"
    );
    first
}

/// Texts of the agents in order.
fn agent_texts(result: &TestConversation) -> Vec<&str> {
    result.trace.messages().assistant().iter().map(|message| &*message.payload.content).collect()
}

/// Called tools with their results or error messages.
fn calls(result: &TestConversation) -> Vec<(&str, Value)> {
    let outcome = |call: &hotseat_trace::ToolCallRun<'_>| match call.error() {
        Some(error) => json!({"error": error.message}),
        None => call.output().cloned().unwrap_or(Value::Null),
    };
    let calls = result.trace.tools().calls();
    calls.iter().map(|call| (&*call.invocation.payload.tool_name, outcome(call))).collect()
}

fn approving(options: TestOptions) -> TestOptions {
    options.human(|_| {
        Some(TimedValue {
            delay: Duration::from_millis(500),
            value: ApprovalVerdict::Approved { input: None },
        })
    })
}

#[test]
fn expense_is_drafted_confirmed_and_submitted() {
    let agent = example("expense");
    let messages = ["I want to submit an expense", "Business travel to Beijing, $3,500", "Yes, confirm"];
    let result = run_conversation(&agent, &messages, |options| options);
    assert_eq!(
        agent_texts(&result),
        [
            "What type of expense would you like to submit?",
            "I'll create an expense for travel, $3500. Please confirm.",
            "Expense submitted! Reference: EXP-001"
        ]
    );
    let draft = json!({"id": "EXP-001", "status": "draft", "type": "travel", "amount": 3500});
    let submitted = json!({"reference": "EXP-001", "status": "submitted"});
    assert_eq!(calls(&result), [("create_expense", draft), ("submit_expense", submitted)]);
}

#[test]
fn expense_against_policy_is_never_drafted() {
    let agent = example("expense");
    let result =
        run_conversation(&agent, &["A meal for $250", "Yes", "A hotel for $99.50", "Yes"], |options| options);
    assert_eq!(
        agent_texts(&result),
        [
            "$250 is over the limit of $100. Please ask your manager first.",
            "There is nothing to submit yet. What would you like to claim?",
            "I'll create an expense for hotel, $99.5. Please confirm.",
            "Expense submitted! Reference: EXP-001"
        ]
    );
}

#[test]
fn given_history_is_enough_to_confirm() {
    let result = run_conversation(&example("expense"), &["Yes, confirm"], |options| options);
    let called: Vec<&str> = calls(&result).iter().map(|(name, _)| *name).collect();
    assert_eq!(called, ["create_expense", "submit_expense"]);
    assert!(
        agent_texts(&result).last().is_some_and(|text| text.contains("submitted")),
        "{:?}",
        agent_texts(&result)
    );
}

#[test]
fn receipt_is_read_on_second_attempt() {
    let result = run_conversation(&example("expense"), &["Here is my receipt"], |options| options);
    assert_eq!(result.trace.tools().retries().len(), 1);
    assert_eq!(
        agent_texts(&result),
        ["Let me read it.", "I'll create an expense for meal, $38.5. Please confirm."]
    );
}

#[test]
fn deletion_requires_human_approval() {
    let agent = example("expense");
    let result = run_conversation(&agent, &["Delete EXP-001"], approving);
    assert_eq!(agent_texts(&result), ["EXP-001 is gone."]);
    let declining = |options: TestOptions| {
        options.human(|question| {
            assert_eq!(question.message, "Delete EXP-001 for good?");
            Some(TimedValue::now(ApprovalVerdict::Declined { reason: "keep it".into() }))
        })
    };
    assert_eq!(
        agent_texts(&run_conversation(&agent, &["Delete EXP-001"], declining)),
        ["Then I leave it as it is."]
    );
}

#[test]
fn expense_assistant_has_documented_faults() {
    let agent = example("expense");
    let taxi = run_conversation(&agent, &["Submit my taxi, $40"], |options| options);
    assert_eq!((agent_texts(&taxi), calls(&taxi).len()), (vec!["Expense submitted! Reference: EXP-777"], 0));
    let refund = run_conversation(&agent, &["I want a refund"], |options| options);
    assert_eq!(agent_texts(&refund), ["Done."]);
    assert_eq!(refund.trace.tools().failures()[0].payload.error.code.as_deref(), Some("NOT_FOUND"));
    let own =
        run_conversation(&agent, &["Approve expense EXP-000", "Approve expense EXP-002"], |options| options);
    assert_eq!(
        agent_texts(&own),
        ["I could not approve it: nobody approves what they have claimed themselves.", "Approved!"]
    );
    assert_eq!(run_conversation(&agent, &["crash"], |options| options).status, TestStatus::Failed);
}

#[test]
fn checkout_assistant_sells_cart() {
    let agent = example("checkout");
    let messages = ["I want to checkout", "Use the first shipping option", "Confirm and pay"];
    let result = run_conversation(&agent, &messages, |options| options);
    let called: Vec<&str> = calls(&result).iter().map(|(name, _)| *name).collect();
    assert_eq!(called, ["validate_cart", "get_shipping_options", "calculate_total", "charge_card"]);
    assert_eq!(
        agent_texts(&result),
        [
            "Your cart is fine. You can have it shipped standard for 2.5 EUR or express for 12 EUR.",
            "That is 42.5 EUR. Shall I charge your card?",
            "Thank you, your payment is through: ch_1042."
        ]
    );
}

#[test]
fn checkout_assistant_asks_client_and_human() {
    let agent = example("checkout");
    let confirm = hotseat_model::ModelTool {
        name: "confirm_action".into(),
        description: "Ask the user".into(),
        input_schema: json!({"type": "object"}),
    };
    let asking = |options: TestOptions| {
        approving(options)
            .offer(vec![confirm.clone()], Vec::new(), None)
            .client(|call| Some(TimedValue::now(Ok(json!(format!("approved: {}", call.input["action"]))))))
    };
    let result =
        run_conversation(&agent, &["frontend, please", "refund my order", "decline my card and pay"], asking);
    assert_eq!(
        agent_texts(&result),
        [
            "You said: approved: \"pay 42.50 EUR\"",
            "42.5 EUR are on their way to you.",
            "Your card was declined: insufficient funds. The payment failed."
        ]
    );
}

#[test]
fn research_runs_in_background_and_is_reviewed() {
    let agent = example("research");
    let result = run_conversation(&agent, &["Research the history of tea"], |options| options);
    assert_eq!(
        agent_texts(&result),
        [
            "I have started to look into it, and will tell you what I find.",
            "Here is what I found. The reviewer says: The report is complete."
        ]
    );
    let (name, found) = &calls(&result)[0];
    assert_eq!((*name, &found["count"]), ("research", &json!(3)));
    assert_eq!(result.trace.workflows().runs(WorkOrigin::Tool).len(), 1);
    // The reviewer sees only the text and has its own model.
    let horoscope = run_conversation(&agent, &["Find out about my horoscope"], |options| options);
    let last = agent_texts(&horoscope).last().copied();
    assert_eq!(last, Some("Here is what I found. Nobody has reviewed it: I do not review horoscopes"));
}

#[test]
fn editor_joins_and_notes_are_stored() {
    let agent = example("research");
    let result =
        run_conversation(&agent, &["Remember that I like tea", "Let me talk to the editor"], |options| {
            options
        });
    assert!(
        agent_texts(&result).contains(&"Hello, I am the editor. Shall I make it shorter?"),
        "{:?}",
        agent_texts(&result)
    );
    let notes: Vec<&str> =
        result.sim.memory().list(&agent.id).iter().map(|record| record.content.as_str()).collect();
    assert_eq!(notes, ["Remember that I like tea"]);
}

#[test]
fn every_message_in_long_conversation_is_answered() {
    let conversations: [(&str, &[&str]); 3] = [
        (
            "expense",
            &[
                "I want to submit an expense",
                "hotel",
                "A meal for $20",
                "yes",
                "$9000 of travel",
                "confirm",
                "my receipt",
                "Approve expense EXP-002",
                "Approve expense EXP-000",
                "Which expenses do I have?",
                "Delete EXP-001",
                "Delete EXP-002",
                "crash",
                "taxi",
                "just do it",
                "refund",
                "hm",
            ],
        ),
        (
            "checkout",
            &[
                "checkout",
                "shipping",
                "pay",
                "pay twice",
                "decline",
                "refund",
                "refund it",
                "delete",
                "crash",
                "hm",
            ],
        ),
        ("research", &["research tea", "research a horoscope", "the editor, please", "remember me", "hm"]),
    ];
    for (name, messages) in conversations {
        let agent = example(name);
        let mut declines = false;
        let options = TestOptions::new(agent.combined_model().unwrap()).sequential().human(move |_| {
            declines = !declines;
            Some(TimedValue::now(if declines {
                ApprovalVerdict::Declined { reason: String::new() }
            } else {
                ApprovalVerdict::Approved { input: None }
            }))
        });
        let result =
            run_test_conversation_with(&agent.definitions, &agent.id, messages.iter().copied(), options);
        let trace = result.trace.to_jsonl().unwrap();
        let unanswered: Vec<&str> = trace.lines().filter(|line| line.contains("no rule of")).collect();
        assert_eq!(unanswered, [""; 0], "{name}");
        assert_eq!(result.waiting, [""; 0], "{name}");
    }
}
