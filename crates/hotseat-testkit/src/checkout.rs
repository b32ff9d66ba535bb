//! Example agent for documentation and tests: a checkout assistant of a shop, without a model.
//!
//! Words in the last user message decide its behavior (see [`INTENT_WORDS`]). Everything else comes from the
//! history that the client sends, so the agent is stateless between requests.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agui::{FakeRun, RunAgentInput};
use crate::error::TestkitError;

/// Words that select the intent. The first word found in the message, in this order, wins.
pub const INTENT_WORDS: [(&str, UserIntent); 15] = [
    ("crash", UserIntent::Crash),
    ("history", UserIntent::History),
    ("unicode", UserIntent::Unicode),
    ("frontend", UserIntent::Frontend),
    ("parallel", UserIntent::Parallel),
    ("twice", UserIntent::Twice),
    ("decline", UserIntent::Decline),
    ("pay", UserIntent::Pay),
    ("toolfail", UserIntent::FailingTool),
    ("delete", UserIntent::Delete),
    ("refund", UserIntent::Refund),
    ("remember", UserIntent::Remember),
    ("slow", UserIntent::Slow),
    ("shipping", UserIntent::Shipping),
    ("checkout", UserIntent::Checkout),
];

/// Intent of a user message, see [`INTENT_WORDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserIntent {
    /// The run ends with `RUN_ERROR`.
    Crash,
    /// States the number of user messages.
    History,
    /// Replies in several scripts and two lines.
    Unicode,
    /// Calls the first tool that the client offers and repeats its answer.
    Frontend,
    /// Calls two tools in one step.
    Parallel,
    /// Charges the card twice.
    Twice,
    /// Charges a card that is declined.
    Decline,
    /// Charges the card.
    Pay,
    /// Calls a tool that fails.
    FailingTool,
    /// Deletes an order without being asked to.
    Delete,
    /// Refunds an order after an interrupt was answered with `{"approved": true}`.
    Refund,
    /// Stores a value in the shared state.
    Remember,
    /// Calls a tool that takes 800 ms.
    Slow,
    /// Calculates the total.
    Shipping,
    /// Validates the cart, then asks for shipping options.
    Checkout,
    /// No known word: repeats the message.
    Echo,
}

/// Deliberate misbehavior, to see tests fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentFault {
    /// No fault.
    None,
    /// Charges the card one extra time.
    DoubleCharge,
    /// Refunds and payments without asking first.
    NoConfirm,
    /// Reports a total that is too high.
    WrongTotal,
}

impl FromStr for AgentFault {
    type Err = TestkitError;

    fn from_str(name: &str) -> Result<AgentFault, TestkitError> {
        match name {
            "none" => Ok(AgentFault::None),
            "double-charge" => Ok(AgentFault::DoubleCharge),
            "no-confirm" => Ok(AgentFault::NoConfirm),
            "wrong-total" => Ok(AgentFault::WrongTotal),
            other => Err(TestkitError::UnknownFault(other.to_string())),
        }
    }
}

/// Tools of the agent. All other names are tools of the client.
const TOOLS: [&str; 9] = [
    "validate_cart",
    "get_shipping_options",
    "calculate_total",
    "charge_card",
    "delete_order",
    "slow_tool",
    "fail_tool",
    "refund_order",
    "remember",
];

/// Prefix of interrupt ids; the id of the call that waits for approval follows.
const APPROVAL_PREFIX: &str = "approve-";

/// Returns the path of the `checkout-agent` binary, for tests of other packages. Panics if it was not built
/// beside the running test.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("the running program has a path");
    let name = format!("checkout-agent{}", std::env::consts::EXE_SUFFIX);
    let built = test.ancestors().skip(1).map(|folder| folder.join(&name)).find(|path| path.is_file());
    built.unwrap_or_else(|| panic!("no {name} near {}: run `cargo build -p hotseat-testkit`", test.display()))
}

/// Next action of the agent.
enum AgentDecision {
    Call(Vec<(String, Value)>),
    Say(String),
    Fail(&'static str),
}

/// Decides and acts until the agent replies or must wait for an answer.
pub(crate) fn converse(input: &RunAgentInput, fault: AgentFault) -> FakeRun {
    let mut run = FakeRun::new(input).started();
    let mut results: Vec<String> =
        input.tool_results_since_last_user().into_iter().map(|result| result.content).collect();
    for answer in input.resume() {
        match apply_approval(input, answer, fault) {
            Ok((call_id, result)) => {
                run = run.tool_result(&call_id, &result);
                results.push(result_text(&result));
            }
            Err(why) => return run.error(&why.to_string(), Some("INVALID_RESUME")),
        }
    }
    loop {
        let calls = match decide(input, &results, fault) {
            AgentDecision::Fail(message) => return run.error(message, Some("MODEL_ERROR")),
            AgentDecision::Say(text) => return run.text(&text).finished(),
            AgentDecision::Call(calls) => calls,
        };
        let mut identified = Vec::new();
        for (name, args) in calls {
            let id = run.fresh_id("call");
            run = run.tool_call(&id, &name, &args);
            identified.push((id, name, args));
        }
        let (mut for_client, mut for_approval) = (Vec::new(), Vec::new());
        for (id, name, args) in identified {
            if !TOOLS.contains(&name.as_str()) {
                for_client.push(id);
            } else if name == "refund_order" && fault != AgentFault::NoConfirm {
                for_approval.push(approval_request(&id, &args));
            } else {
                let result = run_tool(&name, &args, fault);
                if let Some(ms) = args["ms"].as_u64() {
                    run = run.pause(Duration::from_millis(ms));
                }
                run = run.tool_result(&id, &result);
                if name == "remember" {
                    run = store_value(run, input, &args);
                }
                results.push(result_text(&result));
            }
        }
        if !for_approval.is_empty() {
            return run.interrupted(for_approval);
        }
        if !for_client.is_empty() {
            return run.pending(&for_client);
        }
    }
}

/// Plays the language model: chooses an action from the messages and the latest tool results.
fn decide(input: &RunAgentInput, results: &[String], fault: AgentFault) -> AgentDecision {
    let users = input.user_texts();
    let last = users.last().map(String::as_str).unwrap_or_default();
    let client_tool = input.client_tools().into_iter().find(|name| !TOOLS.contains(&name.as_str()));
    let first_result = results.first().map(String::as_str).unwrap_or_default();
    let last_result = results.last().map(String::as_str).unwrap_or_default();

    let say = |text: &str| AgentDecision::Say(text.to_owned());
    let call = |name: &str, args: Value| AgentDecision::Call(vec![(name.to_owned(), args)]);
    let charge =
        |token: &str| call("charge_card", json!({"amount": 42.5, "currency": "EUR", "token": token}));
    match (intent_of_message(last), results.len()) {
        (UserIntent::Crash, _) => AgentDecision::Fail("model backend exploded"),
        (UserIntent::History, _) => {
            let first = users.first().map_or("None".to_owned(), |text| quoted(text));
            AgentDecision::Say(format!("I saw {} user message(s); the first was: {first}", users.len()))
        }
        (UserIntent::Unicode, _) => say("Grüße — 你好 🌍\nsecond line: \"quoted\" \\ backslash"),
        (UserIntent::Frontend, 0) if fault == AgentFault::NoConfirm => charge("tok_test"),
        (UserIntent::Frontend, _) if fault == AgentFault::NoConfirm => say("Paid 42.50 EUR."),
        (UserIntent::Frontend, 0) => match client_tool {
            Some(name) => call(&name, json!({"action": "confirm payment of 42.50 EUR"})),
            None => say("No client tools were supplied."),
        },
        (UserIntent::Frontend, _) => AgentDecision::Say(format!("Client tool answered: {last_result}")),
        (UserIntent::Parallel, 0) => AgentDecision::Call(vec![validate_cart(), get_shipping_options()]),
        (UserIntent::Parallel, _) => say("Both checks done."),
        (UserIntent::Twice, done @ (0 | 1)) => charge(&format!("tok_{}", done + 1)),
        (UserIntent::Twice, _) => say("Charged twice."),
        (UserIntent::Decline, 0) => charge("tok_declined"),
        (UserIntent::Decline, _) => AgentDecision::Say(format!("Payment failed: {first_result}")),
        (UserIntent::Pay, 0) => charge("tok_test"),
        (UserIntent::Pay, 1) if fault == AgentFault::DoubleCharge => charge("tok_test"),
        (UserIntent::Pay, _) => say("Payment approved. Charge id ch_001."),
        (UserIntent::FailingTool, 0) => call("fail_tool", json!({"reason": "on purpose"})),
        (UserIntent::FailingTool, _) => AgentDecision::Say(format!("The tool failed: {first_result}")),
        (UserIntent::Delete, 0) => call("delete_order", json!({"order_id": "o-9"})),
        (UserIntent::Delete, _) => say("Order deleted."),
        (UserIntent::Refund, 0) => call("refund_order", json!({"order_id": "o-9", "amount": 42.5})),
        (UserIntent::Refund, _) => AgentDecision::Say(format!("Refund outcome: {first_result}")),
        (UserIntent::Remember, 0) => call("remember", json!({"key": "color", "value": "blue"})),
        (UserIntent::Remember, _) => say("Remembered."),
        (UserIntent::Slow, 0) => call("slow_tool", json!({"ms": 800})),
        (UserIntent::Slow, _) => say("Done waiting."),
        (UserIntent::Shipping, 0) => call("calculate_total", json!({"shipping": "standard"})),
        (UserIntent::Shipping, _) => AgentDecision::Say(format!("Your total is {:.2} EUR.", total(fault))),
        (UserIntent::Checkout, 0) => AgentDecision::Call(vec![validate_cart()]),
        (UserIntent::Checkout, 1) => AgentDecision::Call(vec![get_shipping_options()]),
        (UserIntent::Checkout, _) => say("Cart is valid. Shipping options: standard, express."),
        (UserIntent::Echo, _) => AgentDecision::Say(format!("You said: {last}")),
    }
}

fn intent_of_message(message: &str) -> UserIntent {
    let message = message.to_lowercase();
    INTENT_WORDS.iter().find(|(word, _)| message.contains(word)).map_or(UserIntent::Echo, |(_, wish)| *wish)
}

fn validate_cart() -> (String, Value) {
    ("validate_cart".to_owned(), json!({"cart_id": "c-1"}))
}

fn get_shipping_options() -> (String, Value) {
    let cart = json!({
        "id": "c-1",
        "items": [{"sku": "A", "qty": 1}, {"sku": "B", "qty": 2}],
        "address": {"city": "Paris"},
    });
    ("get_shipping_options".to_owned(), json!({"country": "FR", "cart": cart}))
}

fn total(fault: AgentFault) -> f64 {
    match fault {
        AgentFault::WrongTotal => 45.2,
        AgentFault::None | AgentFault::DoubleCharge | AgentFault::NoConfirm => 42.5,
    }
}

/// Plays a tool of the agent.
fn run_tool(name: &str, args: &Value, fault: AgentFault) -> Value {
    let text = |name: &str| args[name].as_str().unwrap_or_default();
    match name {
        "validate_cart" => json!({"ok": true, "cart_id": args["cart_id"], "items": 2}),
        "get_shipping_options" => json!({
            "options": [{"id": "standard", "price": 4.5}, {"id": "express", "price": 12.0}],
            "country": args["country"],
        }),
        "calculate_total" => json!({"total": total(fault), "currency": "EUR", "shipping": args["shipping"]}),
        "charge_card" if args["token"] == "tok_declined" => {
            json!({"status": "declined", "reason": "insufficient funds"})
        }
        "charge_card" => json!({
            "status": "approved",
            "charge_id": "ch_001",
            "amount": args["amount"],
            "currency": args["currency"],
        }),
        "delete_order" => json!(format!("order {} deleted", text("order_id"))),
        "slow_tool" => json!("slept"),
        "fail_tool" => json!(format!("tool exploded: {}", text("reason"))),
        "refund_order" => json!({"refunded": args["amount"], "order_id": args["order_id"]}),
        "remember" => json!(format!("stored {}", text("key"))),
        other => json!(format!("there is no tool {other}")),
    }
}

/// Stores the value of `remember` in the state: a full snapshot, then a change.
fn store_value(run: FakeRun, input: &RunAgentInput, args: &Value) -> FakeRun {
    let key = args["key"].as_str().unwrap_or_default();
    let mut items = input.value()["state"]["items"].as_object().cloned().unwrap_or_default();
    items.insert(key.to_owned(), args["value"].clone());
    run.state(json!({ "items": items }))
        .delta(json!([{"op": "add", "path": "/items/size", "value": "L"}]))
        .custom("remembered", json!({ "key": key }))
}

fn approval_request(call_id: &str, args: &Value) -> Value {
    json!({
        "id": format!("{APPROVAL_PREFIX}{call_id}"),
        "reason": "tool_call",
        "message": format!("Refund {} EUR of order {}?", args["amount"], args["order_id"].as_str().unwrap_or_default()),
        "toolCallId": call_id,
        "responseSchema": {
            "type": "object",
            "properties": {"approved": {"type": "boolean"}},
            "required": ["approved"],
        },
    })
}

/// Returns the call that an answer refers to, and its result.
fn apply_approval(
    input: &RunAgentInput,
    answer: &Value,
    fault: AgentFault,
) -> Result<(String, Value), TestkitError> {
    let interrupt = answer["interruptId"].as_str().unwrap_or_default();
    let call_id = interrupt.strip_prefix(APPROVAL_PREFIX).unwrap_or_default();
    let call = input.tool_call(call_id).ok_or_else(|| TestkitError::NotOpen(interrupt.to_owned()))?;
    if input.tool_results_since_last_user().iter().any(|result| result.call_id == call_id) {
        return Err(TestkitError::AnsweredBefore(interrupt.to_owned()));
    }
    let approved = match answer["status"].as_str() {
        Some("cancelled") => false,
        Some("resolved") => answer["payload"]["approved"]
            .as_bool()
            .ok_or_else(|| TestkitError::NotDecided(interrupt.to_owned()))?,
        _ => return Err(TestkitError::UnknownStatus(interrupt.to_owned())),
    };
    if !approved {
        return Ok((call_id.to_owned(), json!("refund not approved")));
    }
    let args = call["function"]["arguments"].as_str().unwrap_or_default();
    let args = serde_json::from_str(args)
        .map_err(|source| TestkitError::Arguments { call: call_id.to_owned(), source })?;
    Ok((call_id.to_owned(), run_tool("refund_order", &args, fault)))
}

/// Returns a tool result as it appears in the history.
fn result_text(result: &Value) -> String {
    result.as_str().map_or_else(|| result.to_string(), str::to_owned)
}

/// Quotes a text like Python: with double quotes only around a single quote.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut shown = String::from(quote);
    for character in text.chars() {
        match character {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            same if same == quote => shown.extend(['\\', same]),
            other => shown.push(other),
        }
    }
    shown.push(quote);
    shown
}
