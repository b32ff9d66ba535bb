//! AG-UI server: events and accepted requests.

use std::sync::Arc;

use hotseat_model::ModelErrorKind;
use hotseat_model::script::Rule;
use hotseat_runtime::definition::{WorkflowNode, mock, persona, task, tool, workflow};
use hotseat_runtime::store::InMemoryStore;
use serde_json::{Value, json};

use super::kit::{
    AgUiClient, EVENT_TIMEOUT, OutputPiece, abbreviate, clerk_persona, controlled_model, events, rejection,
    scripted, send, serve, serve_with, store_options, text,
};

#[tokio::test]
async fn two_turn_conversation() {
    let model = scripted([
        Rule::new().turn(1).reasoning("A greeting.").say("Hello Ada."),
        Rule::new().turn(2).say("Your name is Ada."),
    ]);
    let served = serve(&persona("Greeter"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    let first = client.say("I am Ada").await;
    assert_eq!(
        abbreviate(&first),
        [
            "RUN_STARTED t run-1",
            "STEP_STARTED turn 1, model call 1",
            "REASONING_START t-t1-r1-reasoning",
            "REASONING_MESSAGE_START t-t1-r1-reasoning",
            "REASONING_MESSAGE_CONTENT t-t1-r1-reasoning A greeting.",
            "REASONING_MESSAGE_END t-t1-r1-reasoning",
            "REASONING_END t-t1-r1-reasoning",
            "TEXT_MESSAGE_START t-t1-r1",
            "TEXT_MESSAGE_CONTENT t-t1-r1 Hello Ada.",
            "TEXT_MESSAGE_END t-t1-r1",
            "STEP_FINISHED turn 1, model call 1",
            r#"RUN_FINISHED {"type":"success"}"#,
        ]
    );
    assert_eq!(first[0]["protocolVersion"], "1.0");
    let usage = &first.last().unwrap()["usage"][0];
    assert!(usage["outputTokens"].as_u64().unwrap() > 0, "{usage}");
    client.say("Who am I?").await;
    assert_eq!(client.last_text(), "Your name is Ada.");
}

#[tokio::test]
async fn agent_tools_and_state() {
    let model = scripted([
        Rule::new().user("order").say("Let me look.").call_tool("look_up", json!({"order": "o-9"})),
        Rule::new().tool_result("look_up").say("It costs {{ result.total }}."),
    ]);
    let served = serve(&clerk_persona(), model).await;
    let mut client = AgUiClient::new(&served, "t");
    let events = client.say("my order?").await;
    assert_eq!(
        abbreviate(&events),
        [
            "RUN_STARTED t run-1",
            "STEP_STARTED turn 1, model call 1",
            "TEXT_MESSAGE_START t-t1-r1",
            "TEXT_MESSAGE_CONTENT t-t1-r1 Let me look.",
            "TEXT_MESSAGE_END t-t1-r1",
            "STEP_FINISHED turn 1, model call 1",
            "TOOL_CALL_START t-t1-k1 look_up t-t1-r1",
            r#"TOOL_CALL_ARGS t-t1-k1 {"order":"o-9"}"#,
            "TOOL_CALL_END t-t1-k1",
            r#"TOOL_CALL_RESULT t-t1-k1 {"order":"o-9","total":42.5}"#,
            r#"STATE_SNAPSHOT {"order":{"order":"o-9","total":42.5}}"#,
            "STEP_STARTED turn 1, model call 2",
            "TEXT_MESSAGE_START t-t1-r2",
            "TEXT_MESSAGE_CONTENT t-t1-r2 It costs 42.5.",
            "TEXT_MESSAGE_END t-t1-r2",
            "STEP_FINISHED turn 1, model call 2",
            r#"RUN_FINISHED {"type":"success"}"#,
        ]
    );
    assert_eq!(client.state["order"]["total"], 42.5);
}

#[tokio::test]
async fn rejected_call_is_reported_with_result() {
    let model = scripted([
        Rule::new().user("order").call_tool("look_up", json!({"order": 9})),
        Rule::new().result_failed(true).say("That went wrong."),
    ]);
    let served = serve(&clerk_persona(), model).await;
    let events = AgUiClient::new(&served, "t").say("my order?").await;
    let told = abbreviate(&events);
    assert!(told.contains(&"TOOL_CALL_START t-t1-k1 look_up t-t1-r1".to_string()), "{told:#?}");
    let result = events.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").unwrap();
    assert_eq!(result["toolCallId"], "t-t1-k1");
    // The event and the stored thread show the same failure.
    let error = &result["metadata"]["error"];
    assert!(error.is_string() && *error == result["content"], "{result}");
    let thread: Value = serde_json::from_str(&text(served.get("/threads/t").await).await).unwrap();
    let stored =
        thread["messages"].as_array().unwrap().iter().find(|message| message["role"] == "tool").unwrap();
    assert_eq!([&stored["content"], &stored["error"]], [&result["content"], error]);
}

fn refunds() -> hotseat_model::LiveModel<hotseat_model::script::ScriptedModel> {
    scripted([
        Rule::new().user("refund").call_tool("refund", json!({"amount": 10})),
        Rule::new().tool_result("refund").result_failed(true).say("No refund: {{ result }}"),
        Rule::new().tool_result("refund").say("Refunded {{ result.refunded }}."),
    ])
}

#[tokio::test]
async fn human_approves_call() {
    let served = serve(&clerk_persona(), refunds()).await;
    let mut client = AgUiClient::new(&served, "t");
    let asked = client.say("refund please").await;
    let outcome = &asked.last().unwrap()["outcome"];
    assert_eq!(outcome["type"], "interrupt");
    let interrupt = &client.interrupts[0];
    assert_eq!(interrupt["id"], "t-t1-k1");
    assert_eq!(interrupt["reason"], "tool_call");
    assert_eq!(interrupt["message"], "Refund 10 euros?");
    assert_eq!(interrupt["toolCallId"], "t-t1-k1");
    assert_eq!(interrupt["responseSchema"]["required"], json!(["approved"]));
    let resume = json!([{"interruptId": "t-t1-k1", "status": "resolved", "payload": {"approved": true}}]);
    let told = abbreviate(&client.run(Some(resume)).await);
    assert_eq!(told[1], r#"TOOL_CALL_RESULT t-t1-k1 {"refunded":10}"#, "{told:#?}");
    assert!(!told.iter().any(|line| line.starts_with("TOOL_CALL_START")), "{told:#?}");
    assert_eq!(client.last_text(), "Refunded 10.");
    assert!(client.interrupts.is_empty());
}

#[tokio::test]
async fn human_changes_call_arguments() {
    let served = serve(&clerk_persona(), refunds()).await;
    let mut client = AgUiClient::new(&served, "t");
    client.say("refund please").await;
    let payload = json!({"approved": true, "editedArgs": {"amount": 3}});
    client.run(Some(json!([{"interruptId": "t-t1-k1", "status": "resolved", "payload": payload}]))).await;
    assert_eq!(client.last_text(), "Refunded 3.");
    let stored: Value =
        serde_json::from_str(&text(served.get("/threads/t").await).await).expect("the thread");
    let arguments = &stored["messages"][1]["toolCalls"][0]["function"]["arguments"];
    assert_eq!(arguments, r#"{"amount":3}"#, "{stored}");
}

/// A client that sends only new messages, and the last one again with its answer.
#[tokio::test]
async fn snapshot_has_a_repeated_message_once() {
    let rules = [
        Rule::new().user("hi").say("Hello."),
        Rule::new().user("refund").call_tool("refund", json!({"amount": 10})),
        Rule::new().tool_result("refund").say("Refunded {{ result.refunded }}."),
    ];
    let served = serve(&clerk_persona(), scripted(rules)).await;
    AgUiClient::new(&served, "t").say("hi").await;
    let mut client = AgUiClient::new(&served, "t");
    client.messages.push(json!({"id": "second", "role": "user", "content": "refund please"}));
    let asked = client.messages.clone();
    client.run(None).await;
    client.messages = asked;
    let payload = json!({"approved": true, "editedArgs": {"amount": 3}});
    client.run(Some(json!([{"interruptId": "t-t2-k1", "status": "resolved", "payload": payload}]))).await;
    let ids: Vec<&Value> = client.messages.iter().map(|message| &message["id"]).collect();
    let said = client.messages.iter().filter(|message| message["role"] == "user");
    let said: Vec<&Value> = said.map(|message| &message["content"]).collect();
    assert_eq!(said, ["hi", "refund please"], "{ids:?}");
    assert_eq!(ids[..3], ["u1", "t-t1-r1", "second"], "{ids:?}");
    assert_eq!(client.last_text(), "Refunded 3.");
}

#[tokio::test]
async fn human_declines_call() {
    for (entry, words) in [
        (json!({"status": "resolved", "payload": {"approved": false, "reason": "too much"}}), "too much"),
        (json!({"status": "cancelled"}), "did not answer"),
    ] {
        let served = serve(&clerk_persona(), refunds()).await;
        let mut client = AgUiClient::new(&served, "t");
        client.say("refund please").await;
        let mut entry = entry;
        entry["interruptId"] = json!("t-t1-k1");
        client.run(Some(json!([entry]))).await;
        assert!(client.last_text().contains(words), "{}", client.last_text());
        let is_human = words == "too much";
        assert_eq!(client.last_text().contains("a human declined"), is_human, "{}", client.last_text());
    }
}

#[tokio::test]
async fn interrupt_answer_must_match_schema() {
    let served = serve(&clerk_persona(), refunds()).await;
    let mut client = AgUiClient::new(&served, "t");
    client.say("refund please").await;
    client.user("never mind");
    let (status, words) = client.send_rejected(None).await;
    assert_eq!(status, 409);
    assert!(words.contains("waiting for approval of call t-t1-k1") && words.contains("resume"), "{words}");
    for (entry, status, says) in [
        (
            json!({"interruptId": "x", "status": "resolved", "payload": {"approved": true}}),
            409,
            "open interrupts: t-t1-k1",
        ),
        (json!({"interruptId": "t-t1-k1", "status": "resolved"}), 400, "resume[0].payload"),
        (
            json!({"interruptId": "t-t1-k1", "status": "resolved", "payload": {"approved": "yes"}}),
            400,
            "boolean",
        ),
        (json!({"interruptId": "t-t1-k1", "status": "done"}), 400, "`resolved` or `cancelled`"),
        (
            json!({"interruptId": "t-t1-k1", "status": "resolved", "payload": {"approved": true, "editedArgs": {"amount": "much"}}}),
            400,
            "resume[0].payload.editedArgs: ",
        ),
    ] {
        let (found, words) = client.send_rejected(Some(json!([entry]))).await;
        assert_eq!(found, status, "{words}");
        assert!(words.contains(says), "{words}");
    }
    let entry = json!({"interruptId": "t-t1-k1", "status": "cancelled"});
    let (found, words) = client.send_rejected(Some(json!([entry, entry]))).await;
    assert!(
        found == 400 && words.contains("resume[1].interruptId: interrupt \"t-t1-k1\" is answered twice"),
        "{words}"
    );
    // It is still open.
    let stored = stored_thread(&served).await;
    assert_eq!(stored["running"], false, "{stored}");
    let resume = json!([{"interruptId": "t-t1-k1", "status": "cancelled"}]);
    client.messages.pop();
    client.run(Some(resume)).await;
    assert!(client.last_text().starts_with("No refund"), "{}", client.last_text());
}

fn client_tool_model() -> hotseat_model::LiveModel<hotseat_model::script::ScriptedModel> {
    scripted([
        Rule::new().user("color").offered("pick").call_tool("pick", json!({"of": "colors"})).always(),
        Rule::new().user("two").call_tool("pick", json!({"of": "a"})).call_tool("pick", json!({"of": "b"})),
        Rule::new().result_failed(true).say("You did not pick: {{ result.message }}"),
        Rule::new().tool_result("pick").say("You picked {{ result }}.").always(),
        Rule::new().user("never mind").say("All right.").always(),
    ])
}

fn with_pick<'s>(served: &'s super::kit::TestServer, thread: &str) -> AgUiClient<'s> {
    let mut client = AgUiClient::new(served, thread);
    let parameters = json!({"type": "object", "properties": {"of": {"type": "string"}}});
    client.tools = json!([{"name": "pick", "description": "Lets the user pick", "parameters": parameters}]);
    client
}

#[tokio::test]
async fn client_runs_its_own_tools() {
    let served = serve(&persona("Helper"), client_tool_model()).await;
    let mut client = with_pick(&served, "t");
    let asked = client.say("which color?").await;
    let outcome = &asked.last().unwrap()["outcome"];
    assert_eq!(*outcome, json!({"type": "success", "pendingToolCallIds": ["t-t1-k1"]}));
    client.tool_result("t-t1-k1", "red");
    let told = abbreviate(&client.run(None).await);
    // The client's own messages are not sent back.
    assert!(!told.iter().any(|line| line.starts_with("TOOL_CALL")), "{told:#?}");
    assert_eq!(client.last_text(), "You picked red.");
    client.say("which color now?").await;
    client.tool_result("t-t2-k1", "blue");
    client.run(None).await;
    assert_eq!(client.last_text(), "You picked blue.");
}

#[tokio::test]
async fn client_schemas_may_use_unchecked_keywords() {
    let model = scripted([
        Rule::new().user("note").offered("note").call_tool("note", json!({"text": 7, "tags": null})),
        Rule::new().result_failed(true).call_tool("note", json!({"text": "a", "tags": null})),
        Rule::new().tool_result("note").say("Noted."),
    ]);
    let served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    let tags = json!({"anyOf": [{"$ref": "#/$defs/Tags"}, {"type": "null"}], "default": null});
    let parameters = json!({
        "type": "object",
        "properties": {"text": {"type": "string", "pattern": "^a"}, "tags": tags},
        "required": ["text"],
        "$defs": {"Tags": {"type": "array", "items": {"type": "string"}}},
    });
    client.tools = json!([{"name": "note", "description": "", "parameters": parameters}]);
    let told = client.say("note it").await;
    // Only the text of the second call reaches the client.
    assert_eq!(told.last().unwrap()["outcome"]["pendingToolCallIds"], json!(["t-t1-k2"]));
    client.tool_result("t-t1-k2", "done");
    client.run(None).await;
    assert_eq!(client.last_text(), "Noted.");
}

#[tokio::test]
async fn client_tool_fails() {
    let served = serve(&persona("Helper"), client_tool_model()).await;
    let mut client = with_pick(&served, "t");
    client.say("which color?").await;
    client.messages.push(
        json!({"id": "x", "role": "tool", "toolCallId": "t-t1-k1", "content": "", "error": "no colors here"}),
    );
    client.run(None).await;
    assert_eq!(client.last_text(), "You did not pick: no colors here");
}

#[tokio::test]
async fn calls_may_be_answered_individually() {
    let served = serve(&persona("Helper"), client_tool_model()).await;
    let mut client = with_pick(&served, "t");
    client.say("two of them").await;
    client.tool_result("t-t1-k1", "a");
    let told = client.run(None).await;
    assert_eq!(told.last().unwrap()["outcome"]["pendingToolCallIds"], json!(["t-t1-k2"]));
    client.tool_result("t-t1-k2", "b");
    let told = client.run(None).await;
    assert_eq!(told.last().unwrap()["outcome"], json!({"type": "success"}));
}

/// A second result of a call is refused before the agent has received any.
#[tokio::test]
async fn a_call_has_one_result() {
    let served = serve(&persona("Helper"), client_tool_model()).await;
    for whole in [true, false] {
        let thread = format!("t-{whole}");
        let mut client = with_pick(&served, &thread);
        client.say("two of them").await;
        let (first, second) = (format!("{thread}-t1-k1"), format!("{thread}-t1-k2"));
        if !whole {
            client.messages.clear();
        }
        let asked = client.messages.clone();
        client.tool_result(&first, "approved");
        client.tool_result(&first, "DENIED");
        client.tool_result(&second, "b");
        let body = client.body(None);
        let response = served.post("/", &body).await;
        assert_eq!(response.status(), 400);
        let error: Value = serde_json::from_str(&text(response).await).expect("an error");
        assert_eq!(error["error"]["param"], format!("messages[{}].toolCallId", asked.len() + 1), "{error}");
        assert!(
            error["error"]["message"].as_str().expect("a message").contains("is answered twice"),
            "{error}"
        );
        // The same result again is the same result.
        client.messages = asked;
        client.tool_result(&first, "approved");
        client.tool_result(&first, "approved");
        client.tool_result(&second, "b");
        let told = client.run(None).await;
        assert_eq!(told.last().expect("an event")["outcome"], json!({"type": "success"}));
    }
}

#[tokio::test]
async fn new_user_message_abandons_open_call() {
    let served = serve(&persona("Helper"), client_tool_model()).await;
    let mut client = with_pick(&served, "t");
    client.say("which color?").await;
    client.say("never mind").await;
    assert_eq!(client.last_text(), "All right.");
    client.say("never mind, again").await;
}

#[tokio::test]
async fn run_lasts_until_background_work_ends() {
    let slow = workflow("Slow").node(task("Slow").step(mock().delay_ms(50).returns(json!({"found": 7}))));
    let agent = persona("Researcher").tool(tool("research").workflow(&slow).asynchronous());
    let model = scripted([
        Rule::new().user("find").say("I have started.").call_tool("research", json!({})),
        Rule::new().notice("found").say("It is 7."),
    ]);
    let served = serve(&agent, model).await;
    let mut client = AgUiClient::new(&served, "t");
    let told = abbreviate(&client.say("find it").await);
    let place = |start: &str| {
        told.iter().position(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {told:#?}"))
    };
    assert!(place("TEXT_MESSAGE_CONTENT t-t1-r1 I have started.") < place("TOOL_CALL_RESULT t-t1-k1"));
    assert!(place("TOOL_CALL_RESULT t-t1-k1") < place("TEXT_MESSAGE_CONTENT t-t1-r2 It is 7."));
    // The stored thread has the same result.
    let stored: Value =
        serde_json::from_str(&text(served.get("/threads/t").await).await).expect("the thread");
    let result = stored["messages"].as_array().unwrap().iter().find(|message| message["role"] == "tool");
    assert_eq!(result.unwrap()["content"], r#"{"found":7}"#, "{stored}");
    assert_eq!(told.last().unwrap(), r#"RUN_FINISHED {"type":"success"}"#);
}

#[tokio::test]
async fn called_agents_emit_no_text() {
    let architect = persona("Architect").system("ARCH");
    let reviewer = persona("Reviewer").system("REVIEW");
    let manager = persona("Manager")
        .system("MANAGE")
        .tool(tool("join").agent(&architect).loop_in())
        .tool(tool("review").agent(&reviewer));
    let model = scripted([
        Rule::new().agent("manager").call(1).call_tool("join", json!({})).call_tool("review", json!({})),
        Rule::new().agent("architect").say("I am the architect."),
        Rule::new().agent("reviewer").say("I am the reviewer."),
        Rule::new().agent("manager").call(2).say("They have answered."),
    ]);
    let served = serve(&manager, model).await;
    let mut client = AgUiClient::new(&served, "t");
    let told = abbreviate(&client.say("ask them").await);
    let has = |line: &str| assert!(told.contains(&line.to_string()), "{line} in {told:#?}");
    has("SUBAGENT_STARTED t-t1-k1 architect");
    has("SUBAGENT_STARTED t-t1-k2 reviewer");
    has("SUBAGENT_FINISHED t-t1-k1");
    has("SUBAGENT_FINISHED t-t1-k2");
    has("TEXT_MESSAGE_CONTENT t-t2-r1 t-t1-k1 I am the architect.");
    assert!(!told.iter().any(|line| line.contains("CONTENT") && line.contains("reviewer")), "{told:#?}");
    assert_eq!(client.last_text(), "They have answered.");
    let served_again = client.say("and again").await;
    assert_eq!(served_again[0]["type"], "RUN_STARTED");
}

/// They take effect for the agent that the client talks to. The client sends them back with its history.
#[tokio::test]
async fn calls_of_called_agents_are_sent() {
    let refund = || tool("refund").task(&task("Refund").step(mock().returns(json!({"paid": 1}))));
    let cashier = persona("Cashier").system("CASH").tool(refund());
    let manager = persona("Manager")
        .system("MANAGE")
        .tool(tool("ask").agent(&cashier))
        .tool(tool("run").workflow(&workflow("Desk").node(WorkflowNode::agent("desk", &cashier))));
    let model = scripted([
        Rule::new().agent("manager").call(1).call_tool("ask", json!({})).call_tool("run", json!({})),
        Rule::new().agent("cashier").call(1).call_tool("refund", json!({"n": 7})).always(),
        Rule::new().agent("cashier").call(2).say("Paid.").always(),
        Rule::new().agent("manager").call(2).say("They have answered."),
        Rule::new().agent("manager").turn(2).say("You are welcome."),
    ]);
    let served = serve(&manager, model).await;
    let mut client = AgUiClient::new(&served, "t");
    let events = client.say("ask them").await;
    let called: Vec<&Value> = events.iter().filter(|event| event["toolCallName"] == "refund").collect();
    let agents: Vec<&Value> = called.iter().map(|call| &call["subagentRunId"]).collect();
    // An agent in a workflow is no sub-agent of the protocol.
    assert!(agents.contains(&&json!("t-t1-k1")) && agents.contains(&&Value::Null), "{called:#?}");
    for call in &called {
        let is_result =
            |event: &&Value| event["type"] == "TOOL_CALL_RESULT" && event["toolCallId"] == call["toolCallId"];
        assert!(events.iter().any(|event| is_result(&event)), "{call}");
    }
    client.say("thanks").await;
    assert_eq!(client.last_text(), "You are welcome.");
}

#[tokio::test]
async fn failed_turn_is_run_error_and_thread_continues() {
    let model = scripted([
        Rule::new().turn(1).fail_after(ModelErrorKind::Auth, "I would like"),
        Rule::new().turn(2).say("Now it works."),
        Rule::new().turn(3).say("Still."),
    ]);
    let served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    let failed = client.say("hello").await;
    let last = failed.last().unwrap();
    assert_eq!(
        (last["type"].as_str(), last["code"].as_str()),
        (Some("RUN_ERROR"), Some("LLM_FAILED")),
        "{last}"
    );
    // The client retries with its history, including an incomplete message.
    client.run(None).await;
    assert_eq!(client.last_text(), "Now it works.");
    client.say("and now?").await;
    assert_eq!(client.last_text(), "Still.");
}

#[tokio::test]
async fn restarted_reply_is_not_emitted_twice() {
    let (teller, model) = controlled_model();
    let served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    teller.emit([
        OutputPiece::Text("Hello "),
        OutputPiece::Restart,
        OutputPiece::Text("Hel"),
        OutputPiece::Text("lo wor"),
        OutputPiece::Text("ld"),
        OutputPiece::Done,
    ]);
    let events = client.say("hi").await;
    assert_eq!(client.last_text(), "Hello world");
    assert!(!abbreviate(&events).iter().any(|line| line.starts_with("MESSAGES_SNAPSHOT")));
}

#[tokio::test]
async fn different_reply_replaces_interrupted_one() {
    let (teller, model) = controlled_model();
    let served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    teller.emit([
        OutputPiece::Text("Hello "),
        OutputPiece::Restart,
        OutputPiece::Text("Good "),
        OutputPiece::Text("day"),
        OutputPiece::Done,
    ]);
    let told = abbreviate(&client.say("hi").await);
    assert_eq!(
        told[2..],
        [
            "TEXT_MESSAGE_START t-t1-r1",
            "TEXT_MESSAGE_CONTENT t-t1-r1 Hello ",
            "STEP_FINISHED turn 1, model call 1",
            "STEP_STARTED turn 1, model call 1, attempt 2",
            "TEXT_MESSAGE_END t-t1-r1",
            "MESSAGES_SNAPSHOT u1",
            "TEXT_MESSAGE_START t-t1-r1",
            "TEXT_MESSAGE_CONTENT t-t1-r1 Good day",
            "TEXT_MESSAGE_END t-t1-r1",
            "STEP_FINISHED turn 1, model call 1, attempt 2",
            r#"RUN_FINISHED {"type":"success"}"#,
        ]
    );
    assert_eq!(client.last_text(), "Good day");
    // A restarted reply with less text.
    teller.emit([]);
    client.say("again").await;
    assert_eq!(client.last_text(), "Good day");
}

#[tokio::test]
async fn rejects_contradictory_history() {
    let model = scripted([Rule::new().say("Yes.").always()]);
    let served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    client.say("one").await;
    client.say("two").await;
    let whole = client.messages.clone();

    client.messages = whole[..2].to_vec();
    let (status, words) = client.send_rejected(None).await;
    assert_eq!(status, 409);
    assert!(words.contains("2 messages of the user and the request 1"), "{words}");

    client.messages = whole.clone();
    let (status, words) = client.send_rejected(None).await;
    assert_eq!(status, 409);
    assert!(words.contains("no new message"), "{words}");

    client.messages = whole.clone();
    client.messages[2]["content"] = json!("zwei");
    client.user("three");
    let (status, words) = client.send_rejected(None).await;
    assert_eq!(status, 409);
    assert!(words.contains("messages[2]") && words.contains("turn 2"), "{words}");

    client.messages = whole.clone();
    client.messages[1] = json!({"id": "other", "role": "assistant", "content": "No."});
    client.user("three");
    let (status, words) = client.send_rejected(None).await;
    assert_eq!(status, 409);
    assert!(words.contains("messages[1]"), "{words}");

    client.messages = whole.clone();
    client.tool_result("unknown", "x");
    let (status, words) = client.send_rejected(None).await;
    assert_eq!(status, 409);
    assert!(words.contains("no tool call"), "{words}");

    // A changed answer under its own id.
    client.messages = whole.clone();
    client.messages[1]["content"] = json!("No.");
    client.user("three");
    let (status, words) = client.send_rejected(None).await;
    assert!(status == 409 && words.contains("messages[1] is not an answer of the agent"), "{words}");

    // The same answer under another id.
    client.messages = whole;
    client.messages[1]["id"] = json!("other");
    client.say("three").await;
    assert_eq!(client.last_text(), "Yes.");
}

/// The calls of a returned history have the arguments and results of the thread, in any spelling of their JSON.
#[tokio::test]
async fn rejects_changed_calls() {
    let model = scripted([
        Rule::new().user("order").call_tool("look_up", json!({"order": "o-9"})),
        Rule::new().tool_result("look_up").say("It costs {{ result.total }}."),
        Rule::new().user("thanks").say("You are welcome."),
    ]);
    let served = serve(&clerk_persona(), model).await;
    let mut client = AgUiClient::new(&served, "t");
    client.say("my order?").await;
    let whole = client.messages.clone();
    let place = |role: &str| whole.iter().position(|message| message["role"] == role).expect("a message");
    let (calling, answered) = (place("assistant"), place("tool"));
    let with = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut messages = whole.clone();
        change(&mut messages);
        messages.push(json!({"id": "new", "role": "user", "content": "thanks"}));
        messages
    };
    let arguments = |messages: &mut Vec<Value>, text: &str| {
        messages[calling]["toolCalls"][0]["function"]["arguments"] = json!(text);
    };
    for (messages, says) in [
        (
            with(&|messages| arguments(messages, r#"{"order":"o-1"}"#)),
            format!("messages[{calling}].toolCalls[0] has other arguments"),
        ),
        (
            with(&|messages| messages[answered]["content"] = json!(r#"{"order":"o-9","total":1}"#)),
            format!("messages[{answered}] is not the result of its call"),
        ),
    ] {
        client.messages = messages;
        let (status, words) = client.send_rejected(None).await;
        assert!(status == 409 && words.contains(&says), "{words}");
    }
    client.messages = with(&|messages| {
        arguments(messages, r#"{ "order": "o-9" }"#);
        messages[answered]["content"] = json!(r#"{"total": 42.50, "order": "o-9"}"#);
    });
    client.run(None).await;
    assert_eq!(client.last_text(), "You are welcome.");
}

/// A client that shows the parts of a failed reply sends them back, before the repeated message.
#[tokio::test]
async fn parts_of_failed_replies_may_stand_before_the_repeated_message() {
    let model = scripted([
        Rule::new().turn(1).fail_after(ModelErrorKind::Auth, "I would like"),
        Rule::new().turn(2).say("Now it works."),
        Rule::new().turn(3).say("Again."),
        Rule::new().turn(4).say("Still."),
    ]);
    let served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    client.say("hello").await;
    assert!(client.messages.len() > 1, "{:#?}", client.messages);
    client.say("hello").await;
    assert_eq!(client.last_text(), "Now it works.");
    // After an answer the same words are a new message.
    client.say("hello").await;
    assert_eq!(client.last_text(), "Again.");
    client.say("and now?").await;
    assert_eq!(client.last_text(), "Still.");
}

#[tokio::test]
async fn requests_without_new_input_say_what_is_missing() {
    let served = serve(&persona("Helper"), client_tool_model()).await;
    let mut client = with_pick(&served, "t");
    client.say("which color?").await;
    client.tool_result("t-t1-k1", "red");
    client.run(None).await;
    let result = json!({"id": "r", "role": "tool", "toolCallId": "t-t1-k1", "content": "red"});
    for (messages, status, says) in [
        (client.messages.clone(), 409, "the agent has answered all of its messages; fetch the thread"),
        (vec![result], 409, "no call waits for one of its results any more"),
        (vec![], 409, "no message of the user and no result of a call"),
        (
            vec![json!({"id": "s", "role": "system", "content": "Be brief."})],
            409,
            "no message of the user and no result of a call",
        ),
        (vec![json!({"id": "u", "role": "user", "content": null})], 400, "messages[0].content"),
        (vec![json!({"id": "u", "role": "user", "content": " \n"})], 400, "has no text"),
        (
            vec![
                json!({"id": "u", "role": "user", "content": "which color?"}),
                json!({"id": "v", "role": "user", "content": ""}),
            ],
            400,
            "messages[1].content",
        ),
    ] {
        client.messages = messages;
        let (found, words) = client.send_rejected(None).await;
        assert!(found == status && words.contains(says), "{says} in {found} {words}");
    }
}

#[tokio::test]
async fn client_may_send_only_new_messages() {
    let model = scripted([Rule::new().turn(1).say("One."), Rule::new().turn(2).say("Two.")]);
    let served = serve(&persona("Helper"), model).await;
    AgUiClient::new(&served, "t").say("first").await;
    let mut other = AgUiClient::new(&served, "t");
    other.messages.push(json!({"id": "second", "role": "user", "content": "second"}));
    other.run(None).await;
    assert_eq!(other.last_text(), "Two.");
}

/// A client that sends only new messages and repeats a request whose answer it lost.
#[tokio::test]
async fn known_messages_are_not_new_in_any_turn() {
    let model = scripted([
        Rule::new().user("order").call_tool("look_up", json!({"order": "o-9"})).always(),
        Rule::new().tool_result("look_up").say("It costs 42.5.").always(),
        Rule::new().user("color").call_tool("pick", json!({"of": "a"})),
        Rule::new().turn(6).fail_after(ModelErrorKind::Auth, "I would like"),
        Rule::new().say("Hello.").always(),
    ]);
    let served = serve(&clerk_persona(), model).await;
    let ask = async |id: &str, said: &str| {
        let mut client = with_pick(&served, "t");
        client.messages.push(json!({"id": id, "role": "user", "content": said}));
        let body = client.body(None);
        let response = served.post("/", &body).await;
        match response.status().as_u16() {
            200 => (200, events(&text(response).await).last().expect("an event")["type"].to_string()),
            _ => rejection(response).await,
        }
    };
    for (id, said, status, words) in [
        ("a", "hi", 200, "RUN_FINISHED"),
        ("a", "hi", 409, "contains no new message"),
        ("b", "order 5", 200, "RUN_FINISHED"),
        ("b", "order 5", 409, "contains no new message"),
        ("b", "order 6", 409, "messages[0] has the id \"b\" of the message of the user in turn 2"),
        ("a", "order 5", 409, "messages[0] has the id \"a\" of the message of the user in turn 1"),
        ("a", "hi", 409, "contains no new message"),
        ("c", "order 5", 200, "RUN_FINISHED"),
        // Messages without an id are always new.
        ("", "hi", 200, "RUN_FINISHED"),
        ("", "hello", 200, "RUN_FINISHED"),
        // A failed turn is repeated.
        ("d", "please", 200, "RUN_ERROR"),
        ("d", "another", 409, "in turn 6"),
        ("d", "please", 200, "RUN_FINISHED"),
        ("d", "please", 409, "contains no new message"),
        ("e", "which color?", 200, "RUN_FINISHED"),
        ("e", "which color?", 409, "answers none of the calls that are waiting"),
    ] {
        let (found, says) = ask(id, said).await;
        assert!(found == status && says.contains(words), "{id} {said}: {words} in {found} {says}");
    }
    let thread = stored_thread(&served).await;
    let messages = thread["messages"].as_array().expect("messages");
    let said: Vec<&Value> = messages
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| &message["content"])
        .collect();
    assert_eq!(said, ["hi", "order 5", "order 5", "hi", "hello", "please", "which color?"]);
}

#[tokio::test]
async fn external_history_reaches_model() {
    let model = scripted([
        Rule::new().turn(1).system("Earlier messages of this conversation.*My name is Ada").say("Hello Ada."),
        Rule::new().turn(2).system("Earlier messages of this conversation.*My name is Ada").say("Still Ada."),
    ]);
    let served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    client.user("My name is Ada");
    client.messages.push(json!({"id": "a", "role": "assistant", "content": "Noted."}));
    client.say("Who am I?").await;
    assert_eq!(client.last_text(), "Hello Ada.");
    client.say("And now?").await;
    assert_eq!(client.last_text(), "Still Ada.");
}

#[tokio::test]
async fn calls_of_an_external_history_reach_the_model() {
    let words = "(?s)Earlier messages of this conversation.*find.*o-7.*tool_call_id.*c1.*lost";
    let model =
        scripted([Rule::new().turn(1).system(words).say("It is lost."), Rule::new().turn(2).say("Yes.")]);
    let served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    client.user("Where is o-7?");
    let call = json!({"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"order\":\"o-7\"}"}});
    client.messages.push(json!({"id": "a", "role": "assistant", "content": "", "toolCalls": [call.clone()]}));
    client.messages.push(json!({"id": "b", "role": "tool", "toolCallId": "c1", "content": "lost"}));
    client.say("And now?").await;
    assert_eq!(client.last_text(), "It is lost.");
    client.messages[1]["toolCalls"][0]["function"]["arguments"] = json!("{}");
    client.user("Really?");
    let (status, words) = client.send_rejected(None).await;
    assert!(status == 409 && words.contains("messages[1]"), "{words}");
    client.messages[1]["toolCalls"][0] = call;
    client.run(None).await;
    assert_eq!(client.last_text(), "Yes.");
}

#[tokio::test]
async fn client_greeting_is_not_history() {
    let served = serve(&persona("Helper"), scripted([Rule::new().say("Yes.").always()])).await;
    let mut client = AgUiClient::new(&served, "t");
    client.messages.push(json!({"id": "a", "role": "assistant", "content": "How can I help?"}));
    client.say("one").await;
    client.say("two").await;
    assert_eq!(client.last_text(), "Yes.");
}

#[tokio::test]
async fn client_context_reaches_model() {
    let model = scripted([Rule::new().system("(?s)city: Berlin.*Be brief.*blue").say("Short.")]);
    let served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "t");
    client.messages.push(json!({"id": "s", "role": "system", "content": "Be brief"}));
    client.user("hello");
    client.state = json!({"theme": "blue"});
    let mut body = client.body(None);
    body["context"] = json!([{"description": "city", "value": "Berlin"}]);
    let response = served.post("/", &body).await;
    client.process_events(&events(&text(response).await));
    assert_eq!(client.last_text(), "Short.");
}

#[tokio::test]
async fn client_without_state_receives_it_again() {
    let model = scripted([
        Rule::new().user("order").call_tool("look_up", json!({"order": "o-9"})),
        Rule::new().tool_result("look_up").say("Found."),
        Rule::new().user("again").say("Here."),
        Rule::new().user("other").system("o-8").say("Other."),
    ]);
    let served = serve(&clerk_persona(), model).await;
    let mut client = AgUiClient::new(&served, "t");
    client.say("my order").await;
    let kept = std::mem::replace(&mut client.state, json!({}));
    client.say("again").await;
    assert_eq!(client.state, kept);
    client.state = json!({"order": "o-8"});
    client.say("other").await;
    assert_eq!(client.last_text(), "Other.");
}

/// A user who says the same twice, and a client that sends only the new message.
#[tokio::test]
async fn equal_message_with_another_id_is_new() {
    let model = scripted([Rule::new().say("Yes.").always()]);
    let served = serve(&persona("Helper"), model).await;
    let body = |id: &str| {
        let message = json!({"id": id, "role": "user", "content": "yes"});
        json!({"threadId": "t", "runId": id, "messages": [message]})
    };
    let first = body("u1");
    for request in [&first, &body("u2"), &body("u3")] {
        let stream = text(served.post("/", request).await).await;
        assert_eq!(events(&stream).last().unwrap()["type"], "RUN_FINISHED", "{stream}");
        if *request == first {
            // The same message again has its answer.
            let (status, words) = rejection(served.post("/", request).await).await;
            assert!(status == 409 && words.contains("no new message"), "{words}");
        }
    }
}

#[tokio::test]
async fn malformed_requests_report_location() {
    let served = serve(&clerk_persona(), scripted([Rule::new().say("Yes.").always()])).await;
    let good =
        || json!({"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "hi"}]});
    let with = |member: &str, value: serde_json::Value| {
        let mut body = good();
        body[member] = value;
        body
    };
    for (body, says) in [
        (json!({}), "missing field `threadId`"),
        (json!([]), "body"),
        (with("threadId", json!("")), "`threadId` must be"),
        (with("threadId", json!("a\u{1b}[2J")), "control characters"),
        (with("threadId", json!("x".repeat(300))), "1 to 256 bytes"),
        (with("messages", json!("hi")), "messages: invalid type: string \"hi\", expected a list"),
        (with("messages", json!([{"role": "user", "content": "hi"}])), "messages[0]: missing field `id`"),
        (with("messages", json!([{"id": "1", "role": "robot", "content": "hi"}])), "unknown role \"robot\""),
        (with("messages", json!([{"id": "1", "role": "tool", "content": "hi"}])), "needs `toolCallId`"),
        (
            with(
                "messages",
                json!([{"id": "1", "role": "user", "content": [{"type": "image", "source": {}}]}]),
            ),
            "only parts of type `text`, got image",
        ),
        (with("messages", json!([{"id": "1", "role": "user", "content": 7}])), "a string or a list of parts"),
        (with("tools", json!([{"description": "x"}])), "tools[0]: missing field `name`"),
        (
            with("tools", json!([{"name": "look_up", "description": "x"}])),
            "the agent already has a tool named \"look_up\"",
        ),
        (
            with("tools", json!([{"name": "a", "description": ""}, {"name": "a", "description": ""}])),
            "the tool name \"a\" is used twice",
        ),
        (
            with("tools", json!([{"name": "a", "description": "", "parameters": {"type": "thing"}}])),
            "parameters",
        ),
        (with("context", json!([{"value": "x"}])), "context[0]: missing field `description`"),
        (with("resume", json!([{"status": "resolved"}])), "resume[0]: missing field `interruptId`"),
    ] {
        let (status, words) = rejection(served.post("/", &body).await).await;
        assert_eq!(status, 400, "{words}");
        assert!(words.contains(says), "{says} in {words}");
    }
    let (status, words) = rejection(send(served.request("/", "{".to_string())).await).await;
    assert_eq!(status, 400);
    assert!(words.contains("not JSON"), "{words}");
    let empty = with("messages", json!([]));
    let (status, words) = rejection(served.post("/", &empty).await).await;
    assert_eq!(status, 409);
    assert!(words.contains("no new message"), "{words}");
    // None of these requests was stored.
    let response = served.post("/", &good()).await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn text_of_any_kind_is_preserved() {
    let hostile = "\u{1b}[31mred\u{0}\r\n\r\ndata: {\"type\":\"RUN_FINISHED\"}\n\n</script>\u{2028}{{ user }} \u{1F980}";
    let (teller, model) = controlled_model();
    teller.emit([OutputPiece::Text(Box::leak(hostile.to_string().into_boxed_str())), OutputPiece::Done]);
    let served = serve(&persona("Helper"), model).await;
    let mut client = AgUiClient::new(&served, "../../etc/passwd");
    client.say(hostile).await;
    assert_eq!(client.last_text(), hostile);
    client.say(hostile).await;
}

#[tokio::test]
async fn thread_continues_after_restart() {
    let store = Arc::new(InMemoryStore::default());
    let rules = || {
        scripted([
            Rule::new().user("color").call_tool("pick", json!({"of": "colors"})),
            Rule::new().tool_result("pick").say("You picked {{ result }}."),
        ])
    };
    let first =
        serve_with(&persona("Helper"), rules(), Default::default(), store_options(store.clone())).await;
    let mut client = with_pick(&first, "t");
    client.say("which color?").await;
    let messages = client.messages.clone();
    first.stop().await;
    let second = serve_with(&persona("Helper"), rules(), Default::default(), store_options(store)).await;
    let mut client = with_pick(&second, "t");
    client.messages = messages;
    client.tool_result("t-t1-k1", "red");
    client.run(None).await;
    assert_eq!(client.last_text(), "You picked red.");
}

/// Returns the stored thread `t`.
async fn stored_thread(served: &super::kit::TestServer) -> Value {
    serde_json::from_str(&text(served.get("/threads/t").await).await).expect("the thread")
}

/// A thread of two turns with tool calls, and a client that knows it.
fn two_orders() -> hotseat_model::LiveModel<hotseat_model::script::ScriptedModel> {
    scripted([
        Rule::new().turn(1).call(1).say("Let me look.").call_tool("look_up", json!({"order": "o-9"})),
        Rule::new().turn(1).call(2).say("It costs 42.5."),
        Rule::new().turn(2).call(1).call_tool("look_up", json!({"order": "o-8"})),
        Rule::new().turn(2).call(2).say("That one, too."),
        Rule::new().turn(3).say("You are welcome."),
    ])
}

/// Changes that no client makes to the messages that it received.
#[tokio::test]
async fn rejects_every_change_of_the_history() {
    let served = serve(&clerk_persona(), two_orders()).await;
    let mut client = AgUiClient::new(&served, "t");
    client.say("order o-9?").await;
    client.say("order o-8?").await;
    let whole = client.messages.clone();
    let place = |id: &str| whole.iter().position(|message| message["id"] == id).expect("a message");
    let (calling, answer) = (place("t-t1-r1"), place("t-t1-r2"));
    let (result, other) = (place("t-t1-k1-result"), place("t-t2-r2"));
    let call = |id: &str, tool: &str| json!({"id": id, "type": "function", "function": {"name": tool, "arguments": "{}"}});
    type Change<'c> = &'c dyn Fn(&mut Vec<Value>);
    let changes: [(&str, Change<'_>, String); 8] = [
        (
            "an answer of another model call",
            &|messages| messages[answer]["content"] = json!("Let me look."),
            format!("messages[{answer}] is not an answer of the agent"),
        ),
        (
            "two answers in the place of each other",
            &|messages| messages.swap(answer, other),
            format!("messages[{answer}] is not an answer of the agent"),
        ),
        (
            "an invented call",
            &|messages| messages[answer]["toolCalls"] = json!([call("t-t1-k7", "look_up")]),
            format!("messages[{answer}].toolCalls[0] is not a call of the agent"),
        ),
        (
            "another tool",
            &|messages| messages[calling]["toolCalls"][0]["function"]["name"] = json!("refund"),
            format!("messages[{calling}].toolCalls[0] names another tool"),
        ),
        (
            "a result as an error",
            &|messages| messages[result]["error"] = json!("broken"),
            format!("messages[{result}] is not the result of its call"),
        ),
        ("no answer", &|messages| drop(messages.remove(answer)), "lacks message t-t1-r2".to_string()),
        ("no call", &|messages| drop(messages.remove(calling)), "lacks message t-t1-r1".to_string()),
        (
            "no result",
            &|messages| drop(messages.remove(result)),
            "lacks the result of call t-t1-k1".to_string(),
        ),
    ];
    let mut accepted = Vec::new();
    for (change, apply, says) in changes {
        client.messages.clone_from(&whole);
        apply(&mut client.messages);
        client.user("thanks");
        let body = client.body(None);
        let response = served.post("/", &body).await;
        if response.status() == 200 {
            accepted.push(change);
            continue;
        }
        let (status, words) = rejection(response).await;
        assert!(status == 409 && words.contains(&says), "{change}: {says} in {words}");
    }
    assert!(accepted.is_empty(), "accepted: {accepted:?}");
    client.messages = whole;
    client.say("thanks").await;
    assert_eq!(client.last_text(), "You are welcome.");
}

/// Forms in which clients send the same history.
#[tokio::test]
async fn accepts_every_form_of_the_history() {
    type Form = fn(&mut Vec<Value>);
    let forms: [(&str, Form); 6] = [
        ("as received", |_| {}),
        ("other ids", |messages| {
            for (place, message) in messages.iter_mut().enumerate() {
                message["id"] = json!(format!("own-{place}"));
            }
        }),
        ("text and calls apart", |messages| {
            let place = messages.iter().position(|message| message["id"] == "t-t1-r1").expect("a message");
            let mut calls = messages[place].clone();
            calls["id"] = json!("t-t1-k1");
            calls["content"] = json!("");
            messages[place].as_object_mut().expect("a message").shift_remove("toolCalls");
            messages.insert(place + 1, calls);
        }),
        ("null without text, and text in parts", |messages| {
            for message in messages {
                match message.get("content").cloned() {
                    None => message["content"] = Value::Null,
                    Some(text) if message["role"] == "assistant" => {
                        message["content"] = json!([{"type": "text", "text": text}]);
                    }
                    Some(_) => {}
                }
            }
        }),
        ("with activities, reasoning and an empty message", |messages| {
            messages.insert(1, json!({"id": "x", "role": "activity", "activityType": "PLAN", "content": {}}));
            messages.insert(1, json!({"id": "y", "role": "reasoning", "content": "Hm."}));
            messages.insert(1, json!({"id": "z", "role": "assistant", "content": ""}));
        }),
        ("as the server returns it", |messages| messages.clear()),
    ];
    for (form, apply) in forms {
        let served = serve(&clerk_persona(), two_orders()).await;
        let mut client = AgUiClient::new(&served, "t");
        client.say("order o-9?").await;
        client.say("order o-8?").await;
        apply(&mut client.messages);
        if client.messages.is_empty() {
            client.messages = stored_thread(&served).await["messages"].as_array().expect("messages").clone();
        }
        client.user("thanks");
        let body = client.body(None);
        let response = served.post("/", &body).await;
        let (status, stream) = (response.status(), text(response).await);
        assert_eq!(status, 200, "{form}: {stream}");
        client.process_events(&events(&stream));
        assert_eq!(client.last_text(), "You are welcome.", "{form}");
    }
}

/// Messages from before the thread existed on the server are compared, too.
#[tokio::test]
async fn rejects_changed_external_history() {
    let served = serve(&persona("Helper"), scripted([Rule::new().say("Yes.").always()])).await;
    let mut client = AgUiClient::new(&served, "t");
    client.user("My name is Ada");
    client.messages.push(json!({"id": "a", "role": "assistant", "content": "Noted."}));
    client.say("Who am I?").await;
    client.messages[0]["content"] = json!("My name is Bob");
    client.user("And now?");
    let (status, words) = client.send_rejected(None).await;
    assert!(status == 409 && words.contains("messages[0]"), "{words}");
    client.messages[0]["content"] = json!("My name is Ada");
    client.run(None).await;
    assert_eq!(client.last_text(), "Yes.");
}

/// The id of a call is text of the client, of any length.
#[tokio::test]
async fn long_call_ids_are_compared_in_linear_time() {
    let served = serve(&clerk_persona(), two_orders()).await;
    let mut client = AgUiClient::new(&served, "t");
    client.say("order o-9?").await;
    let id = "-".repeat(2_000_000);
    let call = json!({"id": id, "type": "function", "function": {"name": "x", "arguments": "{}"}});
    client.messages.push(json!({"id": "m", "role": "assistant", "toolCalls": [call]}));
    client.user("order o-8?");
    let (status, _) =
        tokio::time::timeout(EVENT_TIMEOUT, client.send_rejected(None)).await.expect("an answer");
    assert_eq!(status, 409);
}

/// A client that loads the thread while a call of its own is open sees the results that it would have received.
#[tokio::test]
async fn stored_thread_has_results_beside_an_open_call() {
    let model = scripted([
        Rule::new()
            .user("color")
            .call_tool("look_up", json!({"order": "o-9"}))
            .call_tool("pick", json!({"of": "a"})),
        Rule::new().tool_result("pick").say("You picked {{ result }}."),
        Rule::new().user("thanks").say("You are welcome."),
    ]);
    let served = serve(&clerk_persona(), model).await;
    let mut client = with_pick(&served, "t");
    client.say("which color?").await;
    let stored = stored_thread(&served).await;
    let ids = |messages: &[Value]| {
        messages
            .iter()
            .filter(|message| message["role"] != "user")
            .map(|message| message["id"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(stored["messages"].as_array().unwrap()), ids(&client.messages), "{stored}");
    client.messages = stored["messages"].as_array().unwrap().clone();
    client.tool_result("t-t1-k2", "red");
    client.run(None).await;
    client.say("thanks").await;
    assert_eq!(client.last_text(), "You are welcome.");
}

/// Returns the messages of agents and tools, by id.
fn agent_messages(messages: &[Value]) -> std::collections::BTreeMap<String, Value> {
    let members = ["role", "content", "toolCalls", "toolCallId", "subagentRunId"];
    let of_agents = messages.iter().filter(|message| message["role"] != "user");
    of_agents
        .map(|message| {
            let shown = members.iter().map(|member| (member.to_string(), message[*member].clone()));
            (message["id"].to_string(), Value::Object(shown.collect()))
        })
        .collect()
}

/// Joined agents, asynchronous tools, and calls that are refused at the last move of a turn.
#[tokio::test]
async fn stored_thread_has_what_the_client_received() {
    let slow = workflow("Slow").node(task("Slow").step(mock().delay_ms(50).returns(json!({"found": 7}))));
    let architect = persona("Architect").system("ARCH");
    let manager = persona("Manager")
        .system("MANAGE")
        .tool(tool("join").agent(&architect).loop_in())
        .tool(tool("research").workflow(&slow).asynchronous());
    let model = scripted([
        Rule::new()
            .agent("manager")
            .turn(1)
            .call(1)
            .call_tool("join", json!({}))
            .call_tool("research", json!({})),
        Rule::new().agent("architect").say("I am the architect."),
        Rule::new().agent("manager").turn(1).notice("found").say("It is 7."),
        Rule::new().agent("manager").turn(1).say("They have answered."),
    ]);
    let hasty = clerk_persona().max_moves(2);
    let calling = Rule::new().user("order").say("Let me look.").call_tool("look_up", json!({"order": "o-9"}));
    for (agent, model) in [(manager, model), (hasty, scripted([calling.always()]))] {
        let served = serve(&agent, model).await;
        let mut client = AgUiClient::new(&served, "t");
        client.say("my order?").await;
        let stored = stored_thread(&served).await;
        assert_eq!(agent_messages(stored["messages"].as_array().unwrap()), agent_messages(&client.messages));
        client.user("my order, again");
        let body = client.body(None);
        assert_eq!(served.post("/", &body).await.status(), 200);
    }
}

/// A client that lost the connection has a part of a turn; the thread remains usable.
#[tokio::test]
async fn client_may_have_a_part_of_a_cancelled_turn() {
    let model = scripted([
        Rule::new().turn(1).call(1).say("Let me look.").call_tool("look_up", json!({"order": "o-9"})),
        Rule::new().turn(1).call(2).call_tool("pick", json!({"of": "a"})),
        Rule::new().user("thanks").say("You are welcome.").always(),
    ]);
    let served = serve(&clerk_persona(), model).await;
    let mut client = with_pick(&served, "t");
    client.say("order o-9?").await;
    // The next message cancels the turn, of which the client has the first message in part.
    client.messages.truncate(2);
    client.messages[1]["content"] = json!("Let me");
    client.messages[1].as_object_mut().expect("a message").shift_remove("toolCalls");
    let part = client.messages.clone();
    client.user("thanks");
    let (status, words) = client.send_rejected(None).await;
    assert!(status == 409 && words.contains("messages[1] is not an answer"), "{words}");
    let mut other = AgUiClient::new(&served, "t");
    other.messages.push(json!({"id": "other", "role": "user", "content": "thanks for now"}));
    other.run(None).await;
    client.messages = part;
    client.user("thanks for now");
    client.messages.push(json!({"id": "t-t2-r1", "role": "assistant", "content": "You are welcome."}));
    client.say("thanks").await;
    assert_eq!(client.last_text(), "You are welcome.");
}

/// The protocol names either interrupts or calls of the client at the end of a run, and interrupts are answered first.
#[tokio::test]
async fn call_of_the_client_beside_an_approval() {
    for is_answered_at_once in [true, false] {
        let model = scripted([
            Rule::new()
                .user("refund")
                .call_tool("refund", json!({"amount": 10}))
                .call_tool("pick", json!({"of": "a"})),
            Rule::new().tool_result("pick").say("Done: {{ result }}."),
        ]);
        let served = serve(&clerk_persona(), model).await;
        let mut client = with_pick(&served, "t");
        let asked = client.say("refund please").await;
        let outcome = &asked.last().unwrap()["outcome"];
        assert!(outcome["type"] == "interrupt" && outcome.get("pendingToolCallIds").is_none(), "{outcome}");
        // The stored thread names both.
        let stored = stored_thread(&served).await;
        assert_eq!(stored["running"], false, "{stored}");
        assert_eq!(stored["interrupts"], outcome["interrupts"]);
        assert_eq!(stored["pendingToolCallIds"], json!(["t-t1-k2"]));
        let resume = json!([{"interruptId": "t-t1-k1", "status": "resolved", "payload": {"approved": true}}]);
        if is_answered_at_once {
            client.tool_result("t-t1-k2", "red");
            let (status, words) = client.send_rejected(None).await;
            assert_eq!(status, 409, "{words}");
            for says in ["approval of call t-t1-k1", "result of call t-t1-k2", "same request or after it"] {
                assert!(words.contains(says), "{says} in {words}");
            }
            client.run(Some(resume)).await;
        } else {
            let resumed = client.run(Some(resume)).await;
            assert_eq!(resumed.last().unwrap()["outcome"]["pendingToolCallIds"], json!(["t-t1-k2"]));
            client.tool_result("t-t1-k2", "red");
            client.run(None).await;
        }
        assert_eq!(client.last_text(), "Done: red.");
        let stored = stored_thread(&served).await;
        assert_eq!([&stored["interrupts"], &stored["pendingToolCallIds"]], [&json!([]), &json!([])]);
    }
}
