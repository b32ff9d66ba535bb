//! The history that a request resends: every message once, in order, unchanged.

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeRequest};
use hotseat_trace::FailureKind;
use serde_json::{Value, json};

use super::fixture::{RunScript, TestConversation, messages, roles, scripted_agent};

/// Messages of the last request of a conversation whose turns are answered by these runs, with one more turn
/// to capture the history.
fn resent_messages(runs: Vec<RunScript>) -> Vec<Value> {
    let turns = runs.len();
    let mut runs = runs;
    runs.push(|run| run.started().finished());
    let agent = scripted_agent(runs);
    let mut talk = TestConversation::new(&agent);
    for turn in 0..=turns {
        talk = talk.user_says(&format!("turn {turn}"));
    }
    talk.run().passed();
    messages(agent.requests().last().expect("there were requests"))
}

/// A240, A244, A245, A249
#[test]
fn whole_history_is_resent_in_order() {
    let sent = resent_messages(vec![
        |run| {
            run.started()
                .tool("c1", "search", &json!({"q": "mug"}), Some(json!({"hits": 2})))
                .text("Two mugs.")
                .finished()
        },
        |run| run.started().text("Done.").finished(),
    ]);
    assert_eq!(roles(&sent), ["user", "assistant(c1)", "tool:c1", "assistant", "user", "assistant", "user"]);
    assert_eq!(sent[1]["toolCalls"][0]["type"], "function");
    assert_eq!(sent[1]["toolCalls"][0]["function"], json!({"name": "search", "arguments": r#"{"q":"mug"}"#}));
    assert_eq!(sent[2]["content"], r#"{"hits":2}"#);
    assert_eq!((&sent[3]["content"], &sent[5]["content"]), (&json!("Two mugs."), &json!("Done.")));
    assert_eq!(sent[4]["content"], "turn 1");
    let ids: std::collections::HashSet<&str> =
        sent.iter().filter_map(|message| message["id"].as_str()).collect();
    assert_eq!(ids.len(), sent.len(), "every message has an id of its own");
}

/// A241
#[test]
fn messages_keep_agent_ids() {
    let sent = resent_messages(vec![|run| {
        run.started()
            .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m-1", "role": "assistant"}))
            .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c-1", "toolCallName": "look", "parentMessageId": "m-1"}))
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c-1"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m-1", "delta": "Looking."}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "m-1"}))
            .raw_event(json!({"type": "TOOL_CALL_RESULT", "messageId": "r-1", "toolCallId": "c-1", "content": "seen"}))
            .finished()
    }]);
    assert_eq!(roles(&sent), ["user", "assistant(c-1)", "tool:c-1", "user"]);
    assert_eq!((&sent[1]["id"], &sent[1]["content"]), (&json!("m-1"), &json!("Looking.")));
    assert_eq!(sent[2]["id"], "r-1");
}

/// Arguments are resent verbatim, since `42.50` and `42.5` differ for signatures.
#[test]
fn arguments_are_resent_verbatim() {
    let sent = resent_messages(vec![|run| {
        run.started()
            .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay"}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{ \"amount\": 42"}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": ".50 }"}))
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}))
            .tool_result("c1", &json!("paid"))
            .finished()
    }]);
    assert_eq!(sent[1]["toolCalls"][0]["function"]["arguments"], "{ \"amount\": 42.50 }");
}

/// A249: results follow the message with their calls, regardless of events in between.
#[test]
fn results_follow_their_calls() {
    let sent = resent_messages(vec![|run| {
        run.started()
            .tool_call("c1", "a", &json!({}))
            .tool_call("c2", "b", &json!({}))
            .text("Both run.")
            .tool_result("c2", &json!("two"))
            .tool_result("c1", &json!("one"))
            .text("Both done.")
            .finished()
    }]);
    let expected =
        ["user", "assistant(c1)", "tool:c1", "assistant(c2)", "tool:c2", "assistant", "assistant", "user"];
    assert_eq!(roles(&sent), expected);
}

/// A242: the content and order of a snapshot become the history.
#[test]
fn snapshot_replaces_history() {
    let agent = FakeAgent::with_run(|run, request| {
        let run = run.text("Streamed.");
        let user = messages(request)[0].clone();
        let system = json!({"id": "s", "role": "system", "content": "Be kind."});
        let answer = json!({"id": "other", "role": "assistant", "content": "Streamed.", "extra": [1]});
        match request.index {
            0 => run.messages_snapshot(vec![system, user, answer]).finished(),
            _ => run.finished(),
        }
    });
    TestConversation::new(&agent).user_says("one").user_says("two").run().passed();
    let sent = messages(&agent.requests()[1]);
    assert_eq!(roles(&sent), ["system", "user", "assistant", "user"]);
    assert_eq!(sent[2], json!({"id": "other", "role": "assistant", "content": "Streamed.", "extra": [1]}));
}

/// A243: new ids in every snapshot do not grow the history.
#[test]
fn snapshots_with_new_ids_do_not_duplicate_history() {
    let agent = FakeAgent::with_run(|run, request| {
        let mut all = messages(request);
        for (place, message) in all.iter_mut().enumerate() {
            message["id"] = json!(format!("fresh-{}-{place}", request.index));
        }
        all.push(json!({"id": format!("answer-{}", request.index), "role": "assistant", "content": "Yes."}));
        run.text("Yes.").messages_snapshot(all).finished()
    });
    let told =
        TestConversation::new(&agent).user_says("one").user_says("two").user_says("three").run().passed();
    assert_eq!(roles(&messages(&agent.requests()[2])), ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(told.texts(), ["1 Yes.", "2 Yes.", "3 Yes."]);
}

/// A246
#[test]
fn activities_are_not_resent() {
    let sent = resent_messages(vec![|run| {
        let user = json!({"id": "u", "role": "user", "content": "turn 0"});
        let activity =
            json!({"id": "a", "role": "activity", "activityType": "PLAN", "content": {"steps": 1}});
        let answer = json!({"id": "m", "role": "assistant", "content": "Planned."});
        run.started()
            .raw_event(json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "PLAN", "content": {"steps": 1}}))
            .messages_snapshot(vec![user, activity, answer])
            .finished()
    }]);
    assert_eq!(roles(&sent), ["user", "assistant", "user"]);
}

/// A247, A248: reasoning and encrypted values are resent unchanged with their message or call.
#[test]
fn reasoning_and_encrypted_values_are_resent() {
    let sent = resent_messages(vec![|run| {
        let encrypted = |subtype: &str, entity: &str, value: &str| json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": subtype, "entityId": entity, "encryptedValue": value});
        run.started()
            .raw_event(json!({"type": "REASONING_START", "messageId": "t1"}))
            .raw_event(json!({"type": "REASONING_MESSAGE_START", "messageId": "t1", "role": "reasoning"}))
            .raw_event(json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "t1", "delta": "Let me "}))
            .raw_event(json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "t1", "delta": "think."}))
            .raw_event(json!({"type": "REASONING_MESSAGE_END", "messageId": "t1"}))
            .raw_event(encrypted("message", "t1", "{\"sig\": \"a+/=\"}"))
            .raw_event(json!({"type": "REASONING_END", "messageId": "t1"}))
            // Reasoning without any visible text.
            .raw_event(encrypted("message", "t2", "opaque"))
            .tool_call("c1", "look", &json!({}))
            .raw_event(encrypted("tool-call", "c1", "of the call"))
            .raw_event(
                json!({"type": "TOOL_CALL_RESULT", "messageId": "r1", "toolCallId": "c1", "content": "seen"}),
            )
            .raw_event(encrypted("message", "r1", "of the result"))
            .finished()
    }]);
    assert_eq!(roles(&sent), ["user", "reasoning", "reasoning", "assistant(c1)", "tool:c1", "user"]);
    assert_eq!(sent[1]["content"], "Let me think.");
    assert_eq!(sent[1]["encryptedValue"], "{\"sig\": \"a+/=\"}");
    assert_eq!((&sent[2]["content"], &sent[2]["encryptedValue"]), (&json!(""), &json!("opaque")));
    assert_eq!(sent[3]["toolCalls"][0]["encryptedValue"], "of the call");
    assert_eq!(sent[4]["encryptedValue"], "of the result");
}

/// A369: messages that the server has added to the input of the run are resent once; they are not the agent's output.
#[test]
fn messages_that_the_server_adds_to_the_input_are_resent() {
    let sent = resent_messages(vec![
        |run| {
            let policy = json!({"id": "policy", "role": "system", "content": "Be polite."});
            let note = json!({"id": "note", "role": "assistant", "content": "Added."});
            let unusable =
                [json!("text"), json!({"role": "user", "content": "no id"}), json!({"id": "no role"})];
            let input: Vec<Value> = [policy, note].into_iter().chain(unusable).collect();
            // The input of an inner run is none of the conversation.
            let inner = json!({"messages": [{"id": "inner", "role": "user", "content": "Sum up."}]});
            run.raw_event(json!({"type": "RUN_STARTED", "input": {"messages": input}}))
                .raw_event(json!({"type": "RUN_STARTED", "runId": "inner", "input": inner}))
                .raw_event(json!({"type": "RUN_FINISHED", "runId": "inner"}))
                .text("Yes.")
                .finished()
        },
        |run| {
            let known = json!([{"id": "policy", "role": "system", "content": "Be polite."}]);
            run.raw_event(json!({"type": "RUN_STARTED", "input": {"messages": known}})).text("No.").finished()
        },
    ]);
    assert_eq!(roles(&sent), ["user", "system", "assistant", "assistant", "user", "assistant", "user"]);
    assert_eq!((&sent[1]["content"], &sent[2]["content"]), (&json!("Be polite."), &json!("Added.")));
}

/// A247, A384: reasoning that other messages interrupt stands where it began, with its metadata. Without a text it is not sent.
#[test]
fn interrupted_reasoning_is_resent_where_it_began() {
    let sent = resent_messages(vec![|run| {
        let reasoning = |kind: &str, more: Value| {
            let mut event = json!({"type": format!("REASONING_MESSAGE_{kind}"), "messageId": "t1"});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        run.started()
            .raw_event(json!({"type": "REASONING_MESSAGE_START", "messageId": "t0", "role": "reasoning"}))
            .raw_event(json!({"type": "REASONING_MESSAGE_END", "messageId": "t0"}))
            .raw_event(reasoning("START", json!({"metadata": {"a": 1, "b": 1}})))
            .raw_event(reasoning("CONTENT", json!({"delta": "Hm.", "metadata": {"b": 2}})))
            .tool_call("c1", "look", &json!({}))
            .raw_event(reasoning("END", json!({"metadata": {"c": 3}})))
            .text("Yes.")
            .finished()
    }]);
    assert_eq!(roles(&sent), ["user", "reasoning", "assistant(c1)", "assistant", "user"]);
    assert_eq!(
        (&sent[1]["content"], &sent[1]["metadata"]),
        (&json!("Hm."), &json!({"a": 1, "b": 2, "c": 3}))
    );
}

/// A435: messages of a sub-agent are resent as its own, with calls and results.
#[test]
fn messages_of_sub_agents_are_resent_with_their_owner() {
    let sent = resent_messages(vec![|run| {
        let events = [
            json!({"type": "SUBAGENT_STARTED", "name": "clerk"}),
            json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "t", "encryptedValue": "x"}),
            json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "look"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}),
            json!({"type": "TOOL_CALL_RESULT", "messageId": "r1", "toolCallId": "c1", "content": "seen"}),
            // The same id again is a second call.
            json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "look", "parentMessageId": "m"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}),
            json!({"type": "SUBAGENT_FINISHED"}),
        ];
        let own = |mut event: Value| {
            event["subagentRunId"] = json!("s");
            event
        };
        events.into_iter().map(own).fold(run.started(), FakeRun::raw_event).text("Done.").finished()
    }]);
    let owners: Vec<(String, Option<&str>)> =
        roles(&sent).into_iter().zip(sent.iter().map(|message| message["subagentRunId"].as_str())).collect();
    let expected = [
        ("user", None),
        ("reasoning", Some("s")),
        ("assistant(c1)", Some("s")),
        ("tool:c1", Some("s")),
        ("assistant(c1)", Some("s")),
        ("assistant", None),
        ("user", None),
    ];
    assert_eq!(owners, expected.map(|(role, owner)| (role.to_string(), owner)));
}

/// Some servers share an id between reasoning and answer; these are two messages.
#[test]
fn reasoning_and_text_may_share_an_id() {
    let sent = resent_messages(vec![|run| {
        run.started()
            .raw_event(json!({"type": "REASONING_MESSAGE_START", "messageId": "x"}))
            .raw_event(json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "x", "delta": "Hm."}))
            .raw_event(json!({"type": "REASONING_MESSAGE_END", "messageId": "x"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "x"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "x", "delta": "Yes."}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "x"}))
            .finished()
    }]);
    assert_eq!(roles(&sent), ["user", "reasoning", "assistant", "user"]);
    assert_eq!((&sent[1]["content"], &sent[2]["content"]), (&json!("Hm."), &json!("Yes.")));
}

/// A362: reasoning is kept if the producer's snapshots never contain any.
#[test]
fn reasoning_survives_snapshot_without_it() {
    let agent = FakeAgent::with_run(|run, request| {
        let mut all = messages(request);
        all.retain(|message| message["role"] != "reasoning");
        all.push(json!({"id": format!("server-{}", request.index), "role": "assistant", "content": "Yes."}));
        run.reasoning(&format!("Thought {}.", request.index)).text("Yes.").messages_snapshot(all).finished()
    });
    TestConversation::new(&agent).user_says("one").user_says("two").user_says("three").run().passed();
    let sent = messages(&agent.requests()[2]);
    assert_eq!(roles(&sent), ["user", "reasoning", "assistant", "user", "reasoning", "assistant", "user"]);
    assert_eq!((&sent[1]["content"], &sent[4]["content"]), (&json!("Thought 0."), &json!("Thought 1.")));
}

/// A362: a snapshot with messages of a role contains all of them.
#[test]
fn snapshot_reasoning_replaces_streamed_one() {
    let sent = resent_messages(vec![|run| {
        run.started()
            .reasoning("Streamed.")
            .text("Yes.")
            .messages_snapshot(vec![
                json!({"id": "u", "role": "user", "content": "turn 0"}),
                json!({"id": "t", "role": "reasoning", "content": "Kept."}),
                json!({"id": "m", "role": "assistant", "content": "Yes."}),
            ])
            .finished()
    }]);
    assert_eq!(roles(&sent), ["user", "reasoning", "assistant", "user"]);
    assert_eq!(sent[1]["content"], "Kept.");
}

/// A snapshot may arrive while a message is open; its text is not duplicated.
#[test]
fn message_repeated_in_snapshot_is_not_duplicated() {
    for known in ["Hel", "Hello"] {
        let agent = FakeAgent::with_run(move |run, request| {
            let user = messages(request)[0].clone();
            let m = json!({"id": "m", "role": "assistant", "content": known});
            match request.index {
                0 => run
                    .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}))
                    .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hel"}))
                    .messages_snapshot(vec![user, m])
                    .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "lo"}))
                    .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}))
                    .finished(),
                _ => run.finished(),
            }
        });
        let told = TestConversation::new(&agent).user_says("one").user_says("two").run().passed();
        assert_eq!(told.texts(), ["1 Hello"], "{known}");
        assert_eq!(messages(&agent.requests()[1])[1]["content"], "Hello", "{known}");
    }
}

/// Clients append to the message with the id, so each delta counts once.
#[test]
fn reopened_message_is_continued() {
    let say = |run: FakeRun, text: &str| {
        run.raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": text}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}))
    };
    let agent = FakeAgent::with_run(move |run, request| match request.index {
        0 => say(say(say(run, "Let me see. "), "Found "), "it.").finished(),
        // A server that resumes a stream sends a text again.
        1 => say(say(run, "Done."), "Done.").finished(),
        _ => {
            let user = messages(request).last().cloned().expect("a message");
            let known = json!({"id": "m", "role": "assistant", "content": "Hel"});
            say(run.messages_snapshot(vec![user, known]), "lo").finished()
        }
    });
    let told =
        TestConversation::new(&agent).user_says("one").user_says("two").user_says("three").run().passed();
    assert_eq!(told.texts(), ["1 Let me see. ", "1 Found ", "1 it.", "2 Done.", "3 Hello"]);
    let sent = messages(&agent.requests()[1]);
    assert_eq!((sent.len(), &sent[1]["content"]), (3, &json!("Let me see. Found it.")));
}

/// Each reopening reads the whole text, though the trace has only what is new.
#[test]
fn endlessly_reopened_message_hits_limit() {
    let agent = FakeAgent::with_run(|mut run, _| {
        for index in 0..1_200 {
            let delta = format!("{index:>1000}");
            run = run
                .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}))
                .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": delta}))
                .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}));
        }
        run.finished()
    });
    TestConversation::new(&agent).user_says("one").run().failed(FailureKind::Limit, "`limits.turn.bytes`");
}

/// Simple agents use one id for all answers and restart call ids in each turn.
#[test]
fn ids_reused_in_later_turn_are_other_messages() {
    fn run(run: FakeRun) -> FakeRun {
        run.started()
            .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "call-1", "toolCallName": "count", "parentMessageId": "message"}))
            .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "call-1", "delta": "{}"}))
            .raw_event(json!({"type": "TOOL_CALL_END", "toolCallId": "call-1"}))
            .raw_event(json!({"type": "TOOL_CALL_RESULT", "messageId": "result", "toolCallId": "call-1", "content": "done"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "answer"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "answer", "delta": "Yes."}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "answer"}))
            .finished()
    }
    let sent = resent_messages(vec![run, run]);
    let turn = ["user", "assistant(call-1)", "tool:call-1", "assistant"];
    assert_eq!(roles(&sent), [&turn[..], &turn[..], &["user"]].concat());
    assert_eq!((&sent[3]["content"], &sent[7]["content"]), (&json!("Yes."), &json!("Yes.")));
}

/// On some servers an empty message introduces calls; alone it is not resent.
#[test]
fn empty_message_is_sent_only_with_calls() {
    let empty = |run: FakeRun, id: &str| {
        run.raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": id}))
    };
    let agent = FakeAgent::start(move |request: &FakeRequest| {
        let run = empty(empty(FakeRun::for_request(request).started(), "m1"), "m2");
        run.raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": format!("c{}", request.index), "toolCallName": "look", "parentMessageId": "m2"})).finished()
    });
    let told = TestConversation::new(&agent).user_says("one").user_says("two").run().passed();
    assert_eq!(roles(&messages(&agent.requests()[1])), ["user", "assistant(c0)", "user"]);
    assert!(told.texts().is_empty());
}

/// A384, A358: metadata is resent with its message or call; members are merged, the last one wins.
#[test]
fn metadata_is_merged_and_resent() {
    let sent = resent_messages(vec![|run| {
        run.started()
            .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "metadata": {"a": 1, "deep": {"x": 1}}}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hi.", "metadata": {"b": 2}}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "m", "metadata": {"a": 3, "deep": {"y": 2}}}))
            .raw_event(json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "look", "delta": "{}", "metadata": {"sig": "s"}}))
            .raw_event(json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "delta": "", "metadata": {"more": true}}))
            .raw_event(json!({"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c", "content": "ok", "metadata": {"ms": 5}}))
            .raw_event(json!({"type": "RUN_FINISHED", "metadata": {"run": 1}}))
    }]);
    assert_eq!(sent[1]["metadata"], json!({"a": 3, "deep": {"y": 2}, "b": 2}));
    assert_eq!(sent[2]["toolCalls"][0]["metadata"], json!({"sig": "s", "more": true}));
    assert_eq!(sent[3]["metadata"], json!({"ms": 5}));
}

/// After an error inside a call the conversation continues with the received data.
#[test]
fn broken_call_stays_in_history() {
    let agent = scripted_agent(vec![
        |run| {
            run.started()
                .raw_event(json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pay"}))
                .raw_event(json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "on purpose\"}"}))
                .error("boom", None)
        },
        |run| run.started().text("Still here.").finished(),
    ]);
    let talk =
        TestConversation::new(&agent).turn(json!({"user": "one", "expect_error": "boom"})).user_says("two");
    let told = talk.run().passed();
    assert_eq!(told.calls(), [r#"1 pay "on purpose\"}" → nothing"#]);
    let sent = messages(&agent.requests()[1]);
    assert_eq!(roles(&sent), ["user", "assistant(c1)", "user"]);
    assert_eq!(sent[1]["toolCalls"][0]["function"]["arguments"], "on purpose\"}");
}

/// Clients keep messages of other roles than the agent's, empty ones too, and what sub-agents said.
#[test]
fn other_roles_and_subagents_are_resent_as_received() {
    let sent = resent_messages(vec![|run| {
        run.started()
            .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "d", "role": "developer"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "d"}))
            .raw_event(json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "helper"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant", "subagentRunId": "s"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hi", "subagentRunId": "s"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "m", "subagentRunId": "s"}))
            .raw_event(json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}))
            .finished()
    }]);
    assert_eq!(sent[1], json!({"id": "d", "role": "developer", "content": ""}));
    assert_eq!(sent[2], json!({"id": "m", "role": "assistant", "content": "Hi", "subagentRunId": "s"}));
}

/// A server may give the user message an id of its own, so that no message before the reasoning is known.
#[test]
fn reasoning_stays_before_the_answer_of_a_snapshot() {
    let sent = resent_messages(vec![|run| {
        run.started()
            .raw_event(json!({"type": "REASONING_START", "messageId": "t"}))
            .raw_event(json!({"type": "REASONING_MESSAGE_START", "messageId": "t", "role": "reasoning"}))
            .raw_event(json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "t", "delta": "Hm"}))
            .raw_event(json!({"type": "REASONING_MESSAGE_END", "messageId": "t"}))
            .raw_event(json!({"type": "REASONING_END", "messageId": "t"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hi"}))
            .raw_event(json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}))
            .raw_event(json!({"type": "MESSAGES_SNAPSHOT", "messages": [
                {"id": "own", "role": "user", "content": "turn 0"},
                {"id": "m", "role": "assistant", "content": "Hi"},
            ]}))
            .finished()
    }]);
    assert_eq!(roles(&sent), ["user", "reasoning", "assistant", "user"]);
}
