//! Language models defined in the project file and the agents that use them.
use crate::common::{Project, TEST_TIMEOUT, TestRun, echo_agent};
use crate::openai::{FAILURE_REASONS, PROVIDER_ERRORS, failing_streams, harmless_stream, usage_elsewhere};
use hotseat_testkit::completions::{ChatCompletion, chunk, text_reply};
use hotseat_testkit::{FakeAgent, FakeReply};
use serde_json::{Value, json};

const HELLO: &str = "name: a\nturns: [{ user: hello }]\n";

/// An agent that names a connector of the project.
const AGENT: &str = "name: Clerk\nconnector: loud\n";

/// A scripted model with a constant answer.
fn constant_script(words: &str) -> String {
    format!("use: always\nrules: [{{ reply: '{words}' }}]\n")
}

/// A project whose agent uses the connector `loud`, with a second connector.
fn project() -> Project {
    Project::with_config(
        "target: { type: embedded, agent: agent.yaml }
connectors:
  loud: { type: scripted, script: models/loud.yaml }
  quiet: { type: scripted, script: models/quiet.yaml }
  remote: { type: openai, base_url: 'http://127.0.0.1:9/v1', model: m, api_key: '${ENV.NOT_SET}' }
",
    )
    .file("agent.yaml", AGENT)
    .file("models/loud.yaml", &constant_script("GOOD DAY!"))
    .file("models/quiet.yaml", &constant_script("good day"))
}

/// First answer of the agent in a case.
#[track_caller]
fn first_answer(tested: &TestRun, case: &str) -> String {
    outputs(tested, case)[0].as_str().unwrap_or_default().to_string()
}

/// Answers of the agent by turn.
#[track_caller]
fn outputs(tested: &TestRun, case: &str) -> Vec<Value> {
    let turns = tested.case(case)["turns"].as_array().expect("a list of turns");
    turns.iter().map(|turn| turn["output"].clone()).collect()
}

#[test]
fn agent_uses_project_connector() {
    let tested = project().suite("a", HELLO).test(&[]);
    tested.assert_all_passed();
    assert_eq!(first_answer(&tested, "a"), "GOOD DAY!");
}

#[test]
fn agent_connector_overrides_project_connector() {
    let own = format!("{AGENT}connectors: {{ loud: {{ type: scripted, script: own.yaml }} }}\n");
    let tested = project()
        .file("agent.yaml", &own)
        .file("own.yaml", &constant_script("mine"))
        .suite("a", HELLO)
        .test(&[]);
    tested.assert_all_passed();
    assert_eq!(first_answer(&tested, "a"), "mine");
}

#[test]
fn rejects_invalid_connectors_with_location() {
    for (connectors, words) in [
        ("loud: { type: scripted, scrpt: a }", "did you mean `script`?"),
        ("loud: { type: sripted, script: a }", "hotseat.yaml:3:"),
        ("lout: { type: scripted, script: models/loud.yaml }", "did you mean `lout`?"),
        (
            "loud: { type: scripted, script: models/nothing.yaml }",
            "/models/nothing.yaml: No such file or directory",
        ),
        (
            "loud: { type: openai, model: m, api_key: '${ENV.NOT_SET}' }",
            "environment variable `NOT_SET` is not set",
        ),
        ("loud: { type: openai, model: m, base_url: 'http://x.example/v1#part' }", "has a fragment (`#…`)"),
        ("loud: { type: openai, model: m, extra: { messages: [] } }", "hotseat.yaml:3:44"),
        (
            "loud: { type: openai, model: m, extra: { tools: null } }",
            "`extra.tools` would overwrite a member",
        ),
        ("loud: { type: openai, model: m, extra: { model: n } }", "set `model` of the connector"),
        ("loud: { type: openai, model: m, extra: { stream: false } }", "set `stream` of the connector"),
        ("loud: { type: openai, model: m, extra: { stream_options: {} } }", "`extra.stream_options` would"),
        ("loud: { type: anthropic, model: m, extra: { system: x } }", "`extra.system` would overwrite"),
    ] {
        let text = format!("target: {{ type: embedded, agent: agent.yaml }}\nconnectors:\n  {connectors}\n");
        let project = Project::with_config(&text).file("agent.yaml", AGENT).suite("a", HELLO);
        let output = project.hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{words}: {output}");
    }
}

#[test]
fn model_flag_overrides_case_and_turn_options() {
    let case = json!({
        "id": "a", "options": {"connector": "quiet"},
        "turns": [{"input": "1"}, {"input": "2", "options": {"connector": "own"}}, {"input": "3"}],
    });
    // The last named connector is a file of the agent.
    let own = format!("{AGENT}connectors: {{ own: {{ type: scripted, script: own.yaml }} }}\n");
    let project = project()
        .file("agent.yaml", &own)
        .file("own.yaml", &constant_script("mine"))
        .file("a.test.json", &case.to_string())
        .suite("b", "name: b\nturns: [{ user: hello }]\n");
    let tested = project.test(&[]);
    tested.assert_all_passed();
    assert_eq!(outputs(&tested, "a"), ["good day", "mine", "good day"]);
    assert_eq!(outputs(&tested, "b"), ["GOOD DAY!"]);
    for flag in ["-c", "--connector"] {
        let tested = project.test(&[flag, "quiet"]);
        tested.assert_all_passed();
        assert_eq!(outputs(&tested, "a"), ["good day", "good day", "good day"]);
        assert_eq!(outputs(&tested, "b"), ["good day"]);
    }
}

#[test]
fn chosen_model_persists_for_conversation() {
    let counting = "rules: [{ reply: one }, { reply: two }]\n";
    let case = json!({"id": "a", "turns": [
        {"input": "1", "options": {"connector": "quiet"}}, {"input": "2"},
        {"input": "3", "options": {"connector": "quiet"}},
    ]});
    let tested =
        project().file("models/quiet.yaml", counting).file("a.test.json", &case.to_string()).test(&[]);
    tested.assert_all_passed();
    assert_eq!(outputs(&tested, "a"), ["one", "GOOD DAY!", "two"]);
}

#[test]
fn rejects_unknown_connector_before_run() {
    let case =
        json!({"id": "a", "turns": [{"input": "1"}, {"input": "2", "options": {"connector": "quite"}}]});
    project()
        .file("a.test.json", &case.to_string())
        .hotseat(&["test"])
        .assert_stderr(2, &["unknown connector `quite`", "did you mean `quiet`?", "a.test.json:1:"]);
    project().suite("a", HELLO).hotseat(&["test", "-c", "lout"]).assert_stderr(2, &["did you mean `loud`?"]);
    // The command line overrides the case, so the connector of the case is not validated.
    project().file("a.test.json", &case.to_string()).test(&["-c", "quiet"]).assert_all_passed();
    // A named connector is validated.
    project()
        .suite("a", HELLO)
        .hotseat(&["test", "-c", "remote"])
        .assert_stderr(2, &["`NOT_SET` is not set"]);
    for (connector, words) in
        [(json!(7), "`connector` must be a name"), (json!(""), "`connector` must be a name")]
    {
        let case = json!({"id": "a", "input": "x", "options": {"connector": connector}});
        let output = project().file("a.test.json", &case.to_string()).hotseat(&["test"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{words}: {output}");
    }
}

#[test]
fn hook_can_choose_model() {
    let suite = |name: &str| {
        format!(
            "name: a\nhooks: [{{ cmd: [echo, '{{\"model\": \"{name}\"}}'] }}]\noptions: {{ connector: '${{model}}' }}\nturns: [{{ user: hello }}]\n"
        )
    };
    let tested = project().suite("a", &suite("quiet")).test(&[]);
    tested.assert_all_passed();
    assert_eq!(first_answer(&tested, "a"), "good day");
    let tested = project().suite("a", &suite("quite")).test(&[]);
    let failure = tested.failure("a");
    assert_eq!(failure["kind"], "test_error");
    assert!(
        failure["message"].as_str().is_some_and(|words| words.contains("unknown connector `quite`")),
        "{failure}"
    );
}

#[test]
fn embedded_agent_rejects_other_options() {
    let held = |options: serde_json::Value| {
        let case = json!({"id": "a", "input": "x", "options": options});
        project().file("a.test.json", &case.to_string()).hotseat(&["test"])
    };
    for (options, words) in [
        (
            json!({"mode": "chat", "metadata": {"a": 1}}),
            "this case sets `options.mode`, which its agent does not support",
        ),
        (json!({"mode": "chat"}), "embedded agents support `connector` and `metadata`"),
        (json!({"skip": "all"}), "this case sets `options.skip`, which its agent does not support"),
        (
            json!({"skip": {"history": false}}),
            "this case sets `options.skip.history: false`, which embedded agents do not support",
        ),
        (json!({"skip": {"history": true, "trace": true}}), "this case sets `options.skip.trace: true`"),
        (json!({"skip": {"output": true}}), "this case sets `options.skip.output: true`"),
    ] {
        let output = held(options);
        assert!(output.code == 2 && output.stderr.contains(words), "{words}\n{output}");
    }
    // Properties common to all embedded agents are not repeated.
    held(json!({"skip": {"history": true, "trace": false}})).assert_code(0);
}

#[test]
fn connector_replaces_chat_completions_server() {
    let [server, other] =
        [0, 1].map(|_| FakeAgent::start(|_| ChatCompletion::new().text("Fine.").finish("stop")));
    let file = format!(
        "target: {{ type: openai, base_url: '{server}v1', model: m, api_key: target-key-1, headers: {{ X-Team: blue }}, body: {{ max_tokens: 5 }} }}
connectors:
  other: {{ type: openai, base_url: '{other}v2', model: large, api_key: '${{ENV.OTHER}}', temperature: 0.5, max_tokens: 9, headers: {{ X-Org: red }}, extra: {{ seed: 3 }} }}
  claude: {{ type: anthropic, model: c }}
"
    );
    let case = json!({"id": "a", "turns": [
        {"input": "1"}, {"input": "2", "options": {"connector": "other"}}, {"input": "3", "options": {"connector": "small"}},
    ]});
    let project = Project::with_config(&file).file("a.test.json", &case.to_string());
    project.test_in(&[("OTHER", "other-key-12345")], &["--trace", "out/t.jsonl"]).assert_all_passed();
    let here = server.requests();
    let models: Vec<Value> = here.iter().map(|request| request.json()["model"].clone()).collect();
    assert_eq!(models, ["m", "small"]);
    let [there] = other.requests().try_into().expect("one request");
    let body = there.json();
    assert_eq!(there.path, "/v2/chat/completions");
    assert_eq!(
        (&body["model"], &body["temperature"], &body["seed"]),
        (&json!("large"), &json!(0.5), &json!(3))
    );
    assert_eq!(body["max_tokens"], 5, "what the target says of all requests stays");
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(3), "the conversation continues");
    assert_eq!(there.header("authorization"), Some("Bearer other-key-12345"));
    assert_eq!((there.header("x-org"), there.header("x-team")), (Some("red"), None));

    project
        .command(&["test", "-c", "claude"])
        .env("OTHER", "other-key-12345")
        .run()
        .assert_stderr(2, &["the connector `claude` must have `type: openai`"]);
    assert_eq!((server.requests().len(), other.requests().len()), (2, 1));
}

#[test]
fn other_adapters_receive_connector_name() {
    let agent = echo_agent();
    Project::with_agent(&agent).suite("a", HELLO).test(&["-c", "large"]).assert_all_passed();
    assert_eq!(agent.requests()[0].json()["forwardedProps"]["options"], json!({"connector": "large"}));
    // A template without a placeholder for the model is rejected.
    let target = format!("target: {{ type: http, endpoint: '{agent}', body: '{{{{message}}}}' }}\n");
    let output = Project::with_config(&target).suite("a", HELLO).hotseat(&["test", "-c", "large"]);
    assert!(
        output.code == 2
            && output.stderr.contains("`-c` selects a connector, but the agent does not support this"),
        "{output}"
    );
    assert!(output.stderr.contains("`{{options.connector}}` to the template"), "{output}");
}

#[test]
fn served_agent_uses_project_connector() {
    for (args, words) in [(&[][..], "GOOD DAY!"), (&["-c", "quiet"], "good day")] {
        let project = project();
        let command = [&["serve", "agent.yaml", "--port", "0"], args].concat();
        let mut running = project.command(&command).timeout(TEST_TIMEOUT).spawn();
        let printed = running.wait_for_stdout("Ctrl-C stops it.");
        let address = printed.split_whitespace().nth(2).expect("an address");
        let target = format!("target: {{ type: openai, base_url: '{address}/v1', model: clerk }}\n");
        let tested = Project::with_config(&target).suite("a", HELLO).test(&[]);
        tested.assert_all_passed();
        assert_eq!(first_answer(&tested, "a"), words);
        running.interrupt();
        assert_eq!(running.wait().code, 0);
    }
    project().hotseat(&["serve", "agent.yaml", "-c", "quite"]).assert_stderr(2, &["did you mean `quiet`?"]);
}

/// An embedded agent with a tool and this connector.
fn agent_with_tool(connector: &str) -> Project {
    let agent = "name: Shop
connector: remote
tools:
  - name: lookup_order
    input: { type: object, properties: { order_id: { type: string } }, required: [order_id] }
    task: { steps: [{ mock: { computes: \"{id: input.order_id, status: 'shipped'}\" } }] }
";
    let config =
        format!("target: {{ type: embedded, agent: agent.yaml }}\nconnectors: {{ remote: {connector} }}\n");
    Project::with_config(&config).file("agent.yaml", agent).suite("a", HELLO)
}

/// Providers reject the results of tools unless the calls come back with the members and ids that they gave them.
#[test]
fn chat_completions_get_their_own_members_and_ids_back() {
    let call = json!({
        "index": 0, "id": "D681PevKs", "type": "function", "extra_content": {"google": {"thought_signature": "SIG"}},
        "function": {"name": "lookup_order", "arguments": "{\"order_id\":\"A-17\"}"},
    });
    let first = json!({"role": "assistant", "reasoning_content": "Let me think.", "tool_calls": [call]});
    let server = FakeAgent::start(move |request| match request.index {
        0 => ChatCompletion::new().chunk(chunk(first.clone(), None)).finish("tool_calls"),
        _ => ChatCompletion::new().text("Shipped.").finish("stop"),
    });
    let connector = format!("{{ type: openai, base_url: '{server}v1', model: m }}");
    agent_with_tool(&connector).test(&[]).assert_all_passed();
    let messages = server.requests()[1].json()["messages"].clone();
    let messages = messages.as_array().expect("a list");
    let [.., asked, result] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(asked["reasoning_content"], "Let me think.");
    let call = &asked["tool_calls"][0];
    assert_eq!(call["extra_content"]["google"]["thought_signature"], "SIG");
    assert_eq!((&call["id"], &result["tool_call_id"]), (&json!("D681PevKs"), &json!("D681PevKs")));
}

/// The same for Anthropic's messages: the signed reasoning precedes the call.
#[test]
fn anthropic_gets_its_own_reasoning_and_ids_back() {
    let reply = |content: Value, reason: &str| {
        FakeReply::json(200, &json!({"type": "message", "content": content, "stop_reason": reason}))
    };
    let thinking = json!({"type": "thinking", "thinking": "Let me think.", "signature": "SIG"});
    let content = json!([
        thinking, {"type": "tool_use", "id": "toolu_1", "name": "lookup_order", "input": {"order_id": "A-17"}}
    ]);
    let server = FakeAgent::start(move |request| match request.index {
        0 => reply(content.clone(), "tool_use"),
        _ => reply(json!([{"type": "text", "text": "Shipped."}]), "end_turn"),
    });
    let connector = format!("{{ type: anthropic, base_url: '{server}', model: m, api_key: k }}");
    agent_with_tool(&connector).test(&[]).assert_all_passed();
    let messages = server.requests()[1].json()["messages"].clone();
    assert_eq!(messages[1]["content"][0], thinking);
    assert_eq!(messages[1]["content"][1]["id"], "toolu_1");
    assert_eq!(messages[2]["content"][0]["tool_use_id"], "toolu_1");
}

/// The model and the tester learn what is wrong, not only that the text is no object.
#[test]
fn arguments_that_are_not_json_are_named_as_such() {
    let call = json!({"index": 0, "id": "c1", "function": {"name": "lookup_order", "arguments": "{\"order_id\": 'A-17'}"}});
    let server = FakeAgent::start(move |request| match request.index {
        0 => ChatCompletion::new().chunk(chunk(json!({"tool_calls": [call]}), None)).finish("tool_calls"),
        _ => ChatCompletion::new().text("Which one?").finish("stop"),
    });
    let connector = format!("{{ type: openai, base_url: '{server}v1', model: m }}");
    let tested = agent_with_tool(&connector).test(&[]);
    tested.assert_all_passed();
    let words = "the text of the arguments is not JSON (expected value at line 1 column 14)";
    let error = tested.case("a")["turns"][0]["tool_calls"][0]["error"].to_string();
    assert!(error.contains(words), "{error}");
    let result = server.requests()[1].json()["messages"].to_string();
    assert!(result.contains(words), "{result}");
}

/// A provider that fails within a stream has not replied, however complete the text looks.
#[test]
fn provider_errors_in_a_stream_fail_the_turn() {
    let run = |reply: FakeReply| {
        let server = FakeAgent::start(move |_| reply.clone());
        let connector = format!("{{ type: openai, base_url: '{server}v1', model: m }}");
        agent_with_tool(&connector).test(&[])
    };
    let events = PROVIDER_ERRORS.map(|(event, _)| event);
    for event in events.into_iter().chain(["event: error\ndata: {}", "event: error"]) {
        for reply in failing_streams(event) {
            let text = run(reply).failure("a").to_string();
            assert!(text.contains("ended its reply with an error"), "{event}: {text}");
        }
    }
    for reason in FAILURE_REASONS {
        let tested = run(ChatCompletion::new().text("Paid.").finish(reason).into());
        let failure = tested.failure("a");
        assert!(failure.to_string().contains("ended its reply with an error"), "{reason}: {failure}");
    }
    run(harmless_stream()).assert_all_passed();
    for (reason, note) in [
        ("tired", "the reply ends with an unknown finish_reason, tired"),
        ("length", "the reply was truncated at its token limit"),
        ("content_filter", "the reply was stopped by a content filter"),
    ] {
        let tested = run(ChatCompletion::new().text("Paid.").finish(reason).into());
        tested.assert_all_passed();
        let notes = tested.case("a")["turns"][0]["notes"].to_string();
        assert!(notes.contains(note), "{reason}: {notes}");
    }
}

/// What is missing may be a call.
#[test]
fn a_stream_that_ends_within_an_event_fails_the_turn() {
    let said = chunk(json!({"content": "Paid."}), Some("stop"));
    let call = chunk(json!({"content": "More."}), None).to_string();
    for end in [format!("data: {}", &call[..40]), format!("data: {call}\ndata: [DONE]\n")] {
        let server = FakeAgent::start({
            let (said, end) = (said.clone(), end.clone());
            move |_| FakeReply::sse().event(said.clone()).bytes(end.clone())
        });
        let connector = format!("{{ type: openai, base_url: '{server}v1', model: m }}");
        let failure = agent_with_tool(&connector).test(&[]).failure("a").to_string();
        assert!(failure.contains("closed the stream after an incomplete event"), "{end}: {failure}");
    }
}

/// Budgets need the tokens, wherever a provider reports them.
/// Paths of servers often end with slashes, and a member that a server rejects can be left out.
#[test]
fn address_and_body_of_a_connector_fit_the_server() {
    let server = FakeAgent::start(|_| text_reply("Hello."));
    let connector =
        format!("{{ type: openai, base_url: '{server}v1//', model: m, extra: {{ stream_options: null }} }}");
    agent_with_tool(&connector).test(&[]).assert_all_passed();
    let request = &server.requests()[0];
    assert_eq!(request.path, "/v1/chat/completions");
    assert!(request.json().get("stream_options").is_none(), "{}", request.json());
}

#[test]
fn a_document_of_another_type_in_place_of_a_stream_is_named() {
    let server = FakeAgent::start(|_| FakeReply::text(200, r#"{"choices": []}"#));
    let connector = format!("{{ type: openai, base_url: '{server}v1', model: m }}");
    let tested = agent_with_tool(&connector).test(&[]);
    let words = [
        "closed the stream without an end marker",
        "its content type is \"text/plain\", expected \"text/event-stream\" or \"application/json\"",
    ];
    let failure = tested.failure("a").to_string().replace("\\\"", "\"");
    assert!(words.iter().all(|words| failure.contains(words)), "{failure}");
}

#[test]
fn usage_is_read_where_providers_send_it() {
    for reply in usage_elsewhere() {
        let server = FakeAgent::start(move |_| reply.clone());
        let connector = format!("{{ type: openai, base_url: '{server}v1', model: m }}");
        let tested = agent_with_tool(&connector).test(&[]);
        tested.assert_all_passed();
        let spent = &tested.case("a")["spent"];
        assert_eq!((&spent["input_tokens"], &spent["output_tokens"]), (&json!(9), &json!(12)), "{spent}");
        assert!(spent.get("estimated").is_none() && spent.get("partial").is_none(), "{spent}");
    }
}
