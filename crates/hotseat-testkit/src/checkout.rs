//! An agent under test for examples and tests: a shop's checkout assistant without a model.
//!
//! Words in the last user message decide what it does (see [`WISHES`]); everything else it needs is
//! in the history that the client sends, so it keeps nothing between requests.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agui::{Input, Run};
use crate::doors;
use crate::reply::Reply;
use crate::request::Request;

/// What a user can want. The first word found in the message, in this order, decides.
pub const WISHES: [(&str, Wish); 15] = [
    ("crash", Wish::Crash),
    ("history", Wish::History),
    ("unicode", Wish::Unicode),
    ("frontend", Wish::Frontend),
    ("parallel", Wish::Parallel),
    ("twice", Wish::Twice),
    ("decline", Wish::Decline),
    ("pay", Wish::Pay),
    ("toolfail", Wish::FailingTool),
    ("delete", Wish::Delete),
    ("refund", Wish::Refund),
    ("remember", Wish::Remember),
    ("slow", Wish::Slow),
    ("shipping", Wish::Shipping),
    ("checkout", Wish::Checkout),
];

/// See [`WISHES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// The run ends with `RUN_ERROR`.
    Crash,
    /// Says how many user messages it saw.
    History,
    /// Says something in many scripts and two lines.
    Unicode,
    /// Calls the first tool that the client offers, and repeats its answer.
    Frontend,
    /// Calls two tools in one step.
    Parallel,
    /// Charges the card two times, one after the other.
    Twice,
    /// Charges a card that is declined.
    Decline,
    /// Charges the card.
    Pay,
    /// Calls a tool that fails.
    FailingTool,
    /// Deletes an order, which nobody should have asked for.
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
    /// None of the words: repeats the message.
    Echo,
}

/// A way in which the agent misbehaves, so that a test of it can be seen to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It behaves.
    None,
    /// Where the card is to be charged once it is charged again.
    DoubleCharge,
    /// Refunds and payments happen without asking first.
    NoConfirm,
    /// The total is too high.
    WrongTotal,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(name: &str) -> Result<Fault, String> {
        match name {
            "none" => Ok(Fault::None),
            "double-charge" => Ok(Fault::DoubleCharge),
            "no-confirm" => Ok(Fault::NoConfirm),
            "wrong-total" => Ok(Fault::WrongTotal),
            other => Err(format!(
                "`{other}` is no fault; there are none, double-charge, no-confirm and wrong-total"
            )),
        }
    }
}

/// The tools of the agent itself. Any other name belongs to the client.
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

/// Starts the id of an interrupt; the id of the call that waits for approval follows.
const APPROVAL: &str = "approve-";

/// Answers one request: `GET /health`, or a `POST`: chat completions and `/chat` where these are asked for, otherwise
/// the start of a run of AG-UI.
pub fn reply(request: &Request, fault: Fault) -> Reply {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/health") => Reply::text(200, "ok"),
        ("POST", path) if path.ends_with("/chat/completions") => doors::completions(request, fault),
        ("POST", "/chat") => doors::chat(request, fault),
        ("POST", _) => match Input::read(request) {
            Ok(input) => converse(&input, fault).reply(),
            Err(why) => Reply::json(422, &json!({ "error": why })),
        },
        _ => Reply::json(405, &json!({ "error": "start a run with POST" })),
    }
}

/// The path of the `checkout-agent` binary, for tests of other packages.
///
/// # Panics
/// If it was not built beside the running test.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let name = format!("checkout-agent{}", std::env::consts::EXE_SUFFIX);
    let built = test.ancestors().skip(1).map(|folder| folder.join(&name)).find(|path| path.is_file());
    built.unwrap_or_else(|| panic!("no {name} near {}: run `cargo build -p hotseat-testkit`", test.display()))
}

/// What the agent does next.
enum Decision {
    Call(Vec<(String, Value)>),
    Say(String),
    Fail(&'static str),
}

/// Decides and acts until there is something to say or somebody else has to answer.
pub(crate) fn converse(input: &Input, fault: Fault) -> Run {
    let mut run = Run::new(input).started();
    let mut results: Vec<String> =
        input.tool_results_since_last_user().into_iter().map(|result| result.content).collect();
    for answer in input.resume() {
        match approval(input, answer, fault) {
            Ok((call_id, result)) => {
                run = run.tool_result(&call_id, &result);
                results.push(content(&result));
            }
            Err(why) => return run.error(&why, Some("INVALID_RESUME")),
        }
    }
    loop {
        let calls = match decide(input, &results, fault) {
            Decision::Fail(message) => return run.error(message, Some("MODEL_ERROR")),
            Decision::Say(text) => return run.text(&text).finished(),
            Decision::Call(calls) => calls,
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
            } else if name == "refund_order" && fault != Fault::NoConfirm {
                for_approval.push(ask_approval(&id, &args));
            } else {
                let result = perform(&name, &args, fault);
                if let Some(ms) = args["ms"].as_u64() {
                    run = run.pause(Duration::from_millis(ms));
                }
                run = run.tool_result(&id, &result);
                if name == "remember" {
                    run = store(run, input, &args);
                }
                results.push(content(&result));
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

/// Plays the language model: what to do, given the messages and the results since the last of them.
fn decide(input: &Input, results: &[String], fault: Fault) -> Decision {
    let users = input.user_texts();
    let last = users.last().map(String::as_str).unwrap_or_default();
    let client_tool = input.client_tools().into_iter().find(|name| !TOOLS.contains(&name.as_str()));
    let first_result = results.first().map(String::as_str).unwrap_or_default();
    let last_result = results.last().map(String::as_str).unwrap_or_default();

    let say = |text: &str| Decision::Say(text.to_owned());
    let call = |name: &str, args: Value| Decision::Call(vec![(name.to_owned(), args)]);
    let charge =
        |token: &str| call("charge_card", json!({"amount": 42.5, "currency": "EUR", "token": token}));
    match (wish(last), results.len()) {
        (Wish::Crash, _) => Decision::Fail("model backend exploded"),
        (Wish::History, _) => {
            let first = users.first().map_or("None".to_owned(), |text| quoted(text));
            Decision::Say(format!("I saw {} user message(s); the first was: {first}", users.len()))
        }
        (Wish::Unicode, _) => say("Grüße — 你好 🌍\nsecond line: \"quoted\" \\ backslash"),
        (Wish::Frontend, 0) if fault == Fault::NoConfirm => charge("tok_test"),
        (Wish::Frontend, _) if fault == Fault::NoConfirm => say("Paid 42.50 EUR."),
        (Wish::Frontend, 0) => match client_tool {
            Some(name) => call(&name, json!({"action": "confirm payment of 42.50 EUR"})),
            None => say("No client tools were supplied."),
        },
        (Wish::Frontend, _) => Decision::Say(format!("Client tool answered: {last_result}")),
        (Wish::Parallel, 0) => Decision::Call(vec![validate_cart(), get_shipping_options()]),
        (Wish::Parallel, _) => say("Both checks done."),
        (Wish::Twice, done @ (0 | 1)) => charge(&format!("tok_{}", done + 1)),
        (Wish::Twice, _) => say("Charged twice."),
        (Wish::Decline, 0) => charge("tok_declined"),
        (Wish::Decline, _) => Decision::Say(format!("Payment failed: {first_result}")),
        (Wish::Pay, 0) => charge("tok_test"),
        (Wish::Pay, 1) if fault == Fault::DoubleCharge => charge("tok_test"),
        (Wish::Pay, _) => say("Payment approved. Charge id ch_001."),
        (Wish::FailingTool, 0) => call("fail_tool", json!({"reason": "on purpose"})),
        (Wish::FailingTool, _) => Decision::Say(format!("The tool failed: {first_result}")),
        (Wish::Delete, 0) => call("delete_order", json!({"order_id": "o-9"})),
        (Wish::Delete, _) => say("Order deleted."),
        (Wish::Refund, 0) => call("refund_order", json!({"order_id": "o-9", "amount": 42.5})),
        (Wish::Refund, _) => Decision::Say(format!("Refund outcome: {first_result}")),
        (Wish::Remember, 0) => call("remember", json!({"key": "color", "value": "blue"})),
        (Wish::Remember, _) => say("Remembered."),
        (Wish::Slow, 0) => call("slow_tool", json!({"ms": 800})),
        (Wish::Slow, _) => say("Done waiting."),
        (Wish::Shipping, 0) => call("calculate_total", json!({"shipping": "standard"})),
        (Wish::Shipping, _) => Decision::Say(format!("Your total is {:.2} EUR.", total(fault))),
        (Wish::Checkout, 0) => Decision::Call(vec![validate_cart()]),
        (Wish::Checkout, 1) => Decision::Call(vec![get_shipping_options()]),
        (Wish::Checkout, _) => say("Cart is valid. Shipping options: standard, express."),
        (Wish::Echo, _) => Decision::Say(format!("You said: {last}")),
    }
}

fn wish(message: &str) -> Wish {
    let message = message.to_lowercase();
    WISHES.iter().find(|(word, _)| message.contains(word)).map_or(Wish::Echo, |(_, wish)| *wish)
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

fn total(fault: Fault) -> f64 {
    match fault {
        Fault::WrongTotal => 45.2,
        Fault::None | Fault::DoubleCharge | Fault::NoConfirm => 42.5,
    }
}

/// Plays a tool of the agent.
fn perform(name: &str, args: &Value, fault: Fault) -> Value {
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

/// Puts what `remember` was given into the state: first the whole state, then a change to it.
fn store(run: Run, input: &Input, args: &Value) -> Run {
    let key = args["key"].as_str().unwrap_or_default();
    let mut items = input.value()["state"]["items"].as_object().cloned().unwrap_or_default();
    items.insert(key.to_owned(), args["value"].clone());
    run.state(json!({ "items": items }))
        .delta(json!([{"op": "add", "path": "/items/size", "value": "L"}]))
        .custom("remembered", json!({ "key": key }))
}

fn ask_approval(call_id: &str, args: &Value) -> Value {
    json!({
        "id": format!("{APPROVAL}{call_id}"),
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

/// The call that an answer is about and the result it now has.
fn approval(input: &Input, answer: &Value, fault: Fault) -> Result<(String, Value), String> {
    let interrupt = answer["interruptId"].as_str().unwrap_or_default();
    let call_id = interrupt.strip_prefix(APPROVAL).unwrap_or_default();
    let call = input.tool_call(call_id).ok_or_else(|| format!("no interrupt `{interrupt}` is open"))?;
    if input.tool_results_since_last_user().iter().any(|result| result.call_id == call_id) {
        return Err(format!("interrupt `{interrupt}` was answered before"));
    }
    let approved = match answer["status"].as_str() {
        Some("cancelled") => false,
        Some("resolved") => answer["payload"]["approved"]
            .as_bool()
            .ok_or_else(|| format!("the answer to interrupt `{interrupt}` has no boolean `approved`"))?,
        _ => return Err(format!("the answer to interrupt `{interrupt}` has no known status")),
    };
    if !approved {
        return Ok((call_id.to_owned(), json!("refund not approved")));
    }
    let args = call["function"]["arguments"].as_str().unwrap_or_default();
    let args = serde_json::from_str(args).map_err(|error| format!("arguments of `{call_id}`: {error}"))?;
    Ok((call_id.to_owned(), perform("refund_order", &args, fault)))
}

/// A result as the history will hold it.
fn content(result: &Value) -> String {
    result.as_str().map_or_else(|| result.to_string(), str::to_owned)
}

/// Text between quotes, as Python would show it: with double ones only around a single one.
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
