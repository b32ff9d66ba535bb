//! Rule selection and the resulting answers.

use std::time::Duration;

use hotseat_model::script::{ModelScript, Rule, ScriptMemory, ScriptedModel};
use hotseat_model::{
    CallPosition, ModelError, ModelErrorKind, ModelMessage, ModelReply, ModelRequest, ModelTool,
    ModelToolCall, ModelToolResult, PureModel, StopReason, TimedValue, TokenUsage,
};
use serde_json::{Value, json};

fn at(turn: u32, call: u32) -> CallPosition {
    CallPosition { conversation: "c1".into(), agent: "clerk".into(), turn, call, attempt: 1 }
}

fn request(turn: u32, call: u32, messages: Vec<ModelMessage>) -> ModelRequest {
    ModelRequest { position: at(turn, call), messages, ..ModelRequest::default() }
}

fn user(turn: u32, text: &str) -> ModelRequest {
    request(turn, 1, vec![ModelMessage::user(text)])
}

fn called(id: &str, name: &str) -> ModelMessage {
    let call =
        ModelToolCall { id: id.into(), name: name.into(), arguments: json!({}), ..ModelToolCall::default() };
    ModelMessage::Assistant { text: String::new(), tool_calls: vec![call], provider_parts: None }
}

fn result(id: &str, name: &str, content: Value) -> ModelMessage {
    ModelMessage::Tool(ModelToolResult { call_id: id.into(), name: name.into(), content, is_error: false })
}

fn tool(name: &str) -> ModelTool {
    ModelTool { name: name.into(), description: String::new(), input_schema: json!({"type": "object"}) }
}

fn script(source: &str) -> ModelScript {
    ModelScript::parse("s.yaml", source).unwrap()
}

fn reply(script: &ModelScript, request: &ModelRequest) -> ModelReply {
    script.answer(request, &mut ScriptMemory::new()).value.unwrap()
}

fn text(script: &ModelScript, request: &ModelRequest) -> String {
    reply(script, request).text
}

#[test]
fn first_matching_rule_answers() {
    let script = script(
        "rules:
  - { when: { agent: judge }, reply: judge }
  - { when: { turn: 2, call: 1 }, reply: second }
  - { when: { turn: 1 }, reply: first }
  - { reply: rest }",
    );
    assert_eq!(text(&script, &user(1, "x")), "first");
    assert_eq!(text(&script, &user(2, "x")), "second");
    assert_eq!(text(&script, &user(3, "x")), "rest");
}

#[test]
fn rules_are_used_once_per_conversation() {
    let mut model = ScriptedModel::new(script("rules: [{ reply: one }, { reply: two }]"));
    let mut say = |conversation: &str, call| {
        let mut request = user(1, "x");
        request.position.conversation = conversation.into();
        request.position.call = call;
        model.answer(&request).value.map(|reply| reply.text)
    };
    assert_eq!(say("a", 1).unwrap(), "one");
    assert_eq!(say("b", 1).unwrap(), "one");
    assert_eq!(say("a", 2).unwrap(), "two");
    assert_eq!(say("a", 3).unwrap_err().kind, ModelErrorKind::Unanswered);
    assert_eq!(say("b", 2).unwrap(), "two");
}

#[test]
fn rules_can_repeat() {
    let script = script("use: always\nrules: [{ when: { turn: 1 }, reply: one, use: once }, { reply: two }]");
    let mut used = ScriptMemory::new();
    let mut say =
        |call| script.answer(&request(1, call, vec![ModelMessage::user("x")]), &mut used).value.unwrap().text;
    assert_eq!([say(1), say(2), say(3)], ["one", "two", "two"]);
}

#[test]
fn repeated_call_gets_same_answer() {
    let script = script("rules: [{ reply: one }, { reply: two }]");
    let mut used = ScriptMemory::new();
    let first = user(1, "x");
    assert_eq!(script.answer(&first, &mut used).value.unwrap().text, "one");

    // The state survives a restart.
    let mut used: ScriptMemory = serde_json::from_str(&serde_json::to_string(&used).unwrap()).unwrap();
    assert_eq!(script.answer(&first, &mut used).value.unwrap().text, "one");
    let second_attempt = ModelRequest { position: CallPosition { attempt: 2, ..at(1, 1) }, ..first };
    assert_eq!(script.answer(&second_attempt, &mut used).value.unwrap().text, "two");
}

/// Before all rules whose conditions do not hold.
#[test]
fn a_used_rule_that_would_match_is_named_first() {
    let mut rules = "rules: [".to_string();
    (2..6).for_each(|turn| rules.push_str(&format!("{{ when: {{ turn: {turn} }}, reply: no }}, ")));
    let script = script(&format!("{rules}{{ when: {{ turn: 1 }}, reply: one }}]"));
    let mut used = ScriptMemory::new();
    let mut ask = |call| script.answer(&request(1, call, vec![ModelMessage::user("x")]), &mut used).value;
    assert_eq!(ask(1).unwrap().text, "one");
    let error = ask(2).unwrap_err().to_string();
    let named: Vec<&str> = error.lines().filter(|line| line.trim_start().starts_with("not ")).collect();
    assert!(
        named[0].contains("not rule 5 ") && named[0].ends_with("it was already used (use: once)"),
        "{error}"
    );
}

#[test]
fn calls_without_position_use_rules_in_order() {
    let script = script("rules: [{ reply: one }, { reply: two }]");
    let (mut used, request) = (ScriptMemory::new(), ModelRequest::default());
    assert_eq!(script.answer(&request, &mut used).value.unwrap().text, "one");
    assert_eq!(script.answer(&request, &mut used).value.unwrap().text, "two");
}

#[test]
fn user_pattern_answers_only_that_message() {
    let script = script(
        "use: always
rules:
  - { when: { user: refund }, reply: { tool_calls: [refund] } }
  - { when: { tool_result: { tool: refund } }, reply: done }
  - { when: { user: refund, call: 3 }, reply: third }",
    );
    let mut messages = vec![ModelMessage::user("a refund please")];
    assert_eq!(reply(&script, &request(1, 1, messages.clone())).tool_calls[0].name, "refund");
    messages.extend([called("1", "refund"), result("1", "refund", json!("ok"))]);
    assert_eq!(text(&script, &request(1, 2, messages.clone())), "done");
    messages.push(ModelMessage::Assistant {
        text: "done".into(),
        tool_calls: Vec::new(),
        provider_parts: None,
    });
    assert_eq!(text(&script, &request(1, 3, messages)), "third");
}

#[test]
fn only_new_results_are_matched() {
    let script = script("rules: [{ when: { tool_result: ok }, reply: done }, { reply: nothing new }]");
    let old = vec![
        ModelMessage::user("x"),
        called("1", "a"),
        result("1", "a", json!("ok")),
        ModelMessage::Assistant { text: "fine".into(), tool_calls: Vec::new(), provider_parts: None },
        ModelMessage::user("y"),
    ];
    assert_eq!(text(&script, &request(2, 1, old)), "nothing new");
}

#[test]
fn results_match_by_tool_text_and_success() {
    let script = script(
        r"rules:
  - { when: { tool_result: { tool: b, matches: 'price\D+(?<price>\d+)' } }, reply: 'b {{ price }} {{ result.price }}' }
  - { when: { tool_result: { failed: true } }, reply: 'failed: {{ result }}' }
  - { when: { tool_result: { failed: false } }, reply: 'ok: {{ result }}' }",
    );
    let two = vec![called("1", "a"), result("2", "b", json!({"price": 7})), result("1", "a", json!("late"))];
    assert_eq!(text(&script, &request(1, 2, two)), "b 7 7");
    let failure =
        ModelToolResult { call_id: "1".into(), name: "a".into(), content: json!("broken"), is_error: true };
    assert_eq!(
        text(&script, &request(1, 2, vec![called("1", "a"), ModelMessage::Tool(failure)])),
        "failed: broken"
    );
    assert_eq!(
        text(&script, &request(1, 2, vec![called("1", "a"), result("1", "a", json!("fine"))])),
        "ok: fine"
    );
}

#[test]
fn rules_match_notices_prompts_tools_and_conversations() {
    let script = script(
        r"rules:
  - { when: { notice: 'op (?<op>\w+) is done' }, reply: 'Operation {{ op }}: {{ notice }}' }
  - { when: { system: '^You are a (?<job>\w+)', offered: [a, b] }, reply: '{{ job }} with {{ tools | join(`+`) }}' }
  - { when: { conversation: c1 }, reply: 'in {{ conversation }} as {{ agent }}, {{ turn }}.{{ call }}.{{ attempt }}' }"
            .replace('`', "\"")
            .as_str(),
    );
    let noticed =
        request(1, 2, vec![ModelMessage::user("x"), called("1", "a"), ModelMessage::notice("op 7 is done")]);
    assert_eq!(text(&script, &noticed), "Operation 7: op 7 is done");
    let mut offered = user(1, "x");
    offered.system = Some("You are a clerk.".into());
    offered.tools = vec![tool("b"), tool("c"), tool("a")];
    assert_eq!(text(&script, &offered), "clerk with b+c+a");
    assert_eq!(text(&script, &user(4, "x")), "in c1 as clerk, 4.1.1");
}

#[test]
fn reply_may_contain_text_reasoning_and_calls() {
    let script = script(
        r"rules:
  - reply:
      reasoning: 'The user wants {{ user }}.'
      text: 'Looking for {{ user }}.'
      tool_calls:
        - { name: search, arguments: { query: '{{ user }}', limit: 3, exact: true, tags: ['{{ agent }}'] } }
        - name: ping
        - clock
        - { name: broken, arguments: '{oops', id: mine }
        - { name: written, arguments: '[1.0, null]' }
        - { name: empty, arguments: '' }
      stop: max_tokens
      usage: { input_tokens: 10, output_tokens: 5, cached_tokens: 2 }",
    );
    let reply = reply(&script, &user(2, "shoes"));
    let call = |id: &str, name: &str, arguments| ModelToolCall {
        id: id.into(),
        name: name.into(),
        arguments,
        ..ModelToolCall::default()
    };
    let expected = ModelReply {
        text: "Looking for shoes.".into(),
        reasoning: "The user wants shoes.".into(),
        tool_calls: vec![
            call(
                "call_2_1_1",
                "search",
                json!({"query": "shoes", "limit": 3, "exact": true, "tags": ["clerk"]}),
            ),
            call("call_2_1_2", "ping", json!({})),
            call("call_2_1_3", "clock", json!({})),
            call("mine", "broken", json!("{oops")),
            call("call_2_1_5", "written", json!([1.0, null])),
            call("call_2_1_6", "empty", json!({})),
        ],
        stop: StopReason::MaxTokens,
        usage: TokenUsage { input_tokens: 10, output_tokens: 5, cached_tokens: 2, ..TokenUsage::default() },
        ..ModelReply::default()
    };
    assert_eq!(reply, expected);
}

#[test]
fn single_expression_keeps_its_type() {
    let script = script(
        r"rules:
  - reply:
      tool_calls:
        - name: pay
          arguments:
            all: '{{ result }}'
            price: '{{ result.items[0].price }}'
            sum: '{{ result.items[0].price + 1 }}'
            text: 'costs {{ result.items[0].price }}'
            list: '{{ result.items }}'
            missing: '{{ result.nothing }}'
            shown: 'all: {{ result }}'
            none: '{{ result.note }}'",
    );
    let items = json!({"items": [{"price": 7}], "nothing": false, "note": null});
    for content in [items.clone(), json!(items.to_string())] {
        let request = request(1, 2, vec![called("1", "a"), result("1", "a", content)]);
        let arguments = reply(&script, &request).tool_calls.remove(0).arguments;
        let expected = json!({
            "all": items,
            "price": 7,
            "sum": 8,
            "text": "costs 7",
            "list": [{"price": 7}],
            "missing": false,
            "shown": "all: {\"items\":[{\"price\":7}],\"note\":null,\"nothing\":false}",
            "none": null,
        });
        assert_eq!(arguments, expected);
    }
}

#[test]
fn templates_write_values_as_json() {
    let script = script("rules: [{ reply: 'got {{ result }}' }]");
    for (content, written) in [
        (json!(true), "true"),
        (json!(null), "null"),
        (json!(1.5), "1.5"),
        (json!("True"), "True"),
        (json!([true, null, "a"]), r#"[true,null,"a"]"#),
        (json!({"ok": false}), r#"{"ok":false}"#),
    ] {
        let request = request(1, 2, vec![called("1", "a"), result("1", "a", content)]);
        assert_eq!(text(&script, &request), format!("got {written}"));
    }
}

#[test]
fn filters_that_make_texts_write_values_as_json() {
    for (expression, written) in [
        ("[true, none, 1, 'a', [false], {'x': none}] | join(',')", r#"true,null,1,a,[false],{"x":null}"#),
        ("[true, none] | map('string') | join", "truenull"),
        ("messages | join(',', attribute='role')", "user"),
        ("true | string", "true"),
        ("none | string", "null"),
        ("{'a': true} | string", r#"{"a":true}"#),
        ("1.0 | string", "1.0"),
        ("true | string ~ none | string", "truenull"),
        ("true | upper", "TRUE"),
        ("none | lower", "null"),
        ("false | capitalize", "False"),
        ("none | title", "Null"),
        ("true | trim", "true"),
        ("true | trim('te')", "ru"),
        ("true | replace('t', 'T')", "True"),
        ("none | indent(2, true)", "  null"),
        ("'ab' | join('-')", "a-b"),
        ("'True' | string", "True"),
        ("none | default('x') | string", "null"),
        // The engine itself writes these, as the documentation says.
        ("true ~ none", "TrueNone"),
        ("'%s' | format(none)", "None"),
        ("[{'x': true}] | join(',', attribute='x')", "True"),
    ] {
        let template = format!("got {{{{ {expression} }}}}");
        let script = script(&json!({"rules": [{"reply": template}]}).to_string());
        assert_eq!(text(&script, &user(1, "hi")), format!("got {written}"), "{expression}");
    }
}

#[test]
fn json_becomes_text_and_newlines_are_kept() {
    let script = script(
        "rules: [{ when: { turn: 1 }, reply: { json: { ok: true, why: '{{ user }}' } } }, { reply: \"a {{ user }}\\n\" }]",
    );
    assert_eq!(text(&script, &user(1, "x \"y\"")), r#"{"ok":true,"why":"x \"y\""}"#);
    assert_eq!(text(&script, &user(2, "b")), "a b\n");
}

#[test]
fn templates_use_earlier_results_and_messages() {
    let script = script(
        "rules: [{ reply: '{{ results.search.hits }} {{ messages[0].text }} {{ messages | length }}' }]",
    );
    let messages = vec![
        ModelMessage::user("a"),
        called("1", "search"),
        result("1", "search", json!({"hits": 3})),
        ModelMessage::user("b"),
    ];
    assert_eq!(text(&script, &request(2, 1, messages)), "3 a 4");
}

#[test]
fn missing_template_value_names_rule() {
    let script = script(
        r"rules:
  - { name: priced, when: { turn: 1 }, reply: 'costs {{ result.price }}' }
  - { when: { turn: 2 }, reply: { tool_calls: [{ name: a, arguments: { x: '{{ result.price }}' } }] } }
  - { when: { turn: 3, user: 'a|(?<b>b)' }, reply: '{{ b }}' }
  - { reply: '{{ user.shout() }}' }",
    );
    let error = |request: &ModelRequest| script.answer(request, &mut ScriptMemory::new()).value.unwrap_err();
    let errors: Vec<ModelError> = [
        user(1, "x"),
        request(2, 2, vec![called("1", "a"), result("1", "a", json!({"cost": 1}))]),
        user(3, "a"),
        user(4, "x"),
    ]
    .iter()
    .map(error)
    .collect();
    assert!(errors.iter().all(|error| error.kind == ModelErrorKind::Unanswered));
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn templates_end() {
    let endless = "{% for i in range(50000) %}{% for j in range(50000) %}x{% endfor %}{% endfor %}";
    let script = script(&format!("rules: [{{ reply: '{endless}' }}]"));
    let error = script.answer(&user(1, "x"), &mut ScriptMemory::new()).value.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unanswered);
    assert!(error.to_string().contains("takes more than 1000000 steps"), "{error}");
}

#[test]
fn failures_and_delays_are_simulated() {
    let script = script(
        r"rules:
  - { error: { kind: rate_limit, retry_after_ms: 1500 }, delay_ms: 20 }
  - { error: { kind: server, status: 529, message: 'no {{ user }} today', body: overloaded, after: 'Let me ' } }
  - { error: timeout, delay_ms: 120000 }
  - { error: bad_request }
  - { error: context_too_long }
  - { error: network }
  - { error: auth }
  - { error: decode }",
    );
    let mut used = ScriptMemory::new();
    let mut answers = Vec::new();
    for attempt in 1..=8 {
        let position = CallPosition { attempt, ..at(1, 1) };
        let request =
            ModelRequest { position, messages: vec![ModelMessage::user("tea")], ..ModelRequest::default() };
        answers.push(script.answer(&request, &mut used));
    }
    let kinds: Vec<ModelErrorKind> =
        answers.iter().map(|answer| answer.value.as_ref().unwrap_err().kind).collect();
    let expected = [
        ModelErrorKind::RateLimit,
        ModelErrorKind::Server,
        ModelErrorKind::Timeout,
        ModelErrorKind::BadRequest,
        ModelErrorKind::ContextTooLong,
        ModelErrorKind::Network,
        ModelErrorKind::Auth,
        ModelErrorKind::Decode,
    ];
    assert_eq!(kinds, expected);

    let TimedValue { delay, value } = &answers[0];
    let limited = value.as_ref().unwrap_err();
    assert_eq!(*delay, Duration::from_millis(20));
    assert_eq!((limited.status, limited.retry_after), (Some(429), Some(Duration::from_millis(1500))));

    let broken = answers[1].value.as_ref().unwrap_err();
    assert_eq!(broken.status, Some(529));
    assert_eq!(broken.to_string(), "no tea today: overloaded");
    assert_eq!(broken.partial.as_ref().unwrap().text, "Let me ");
    assert_eq!(answers[2].delay, Duration::from_secs(120));
}

#[test]
fn rules_can_assert_on_request() {
    let script = script(
        "rules: [{ name: finish, when: { call: 2 }, expect: { tool_result: { tool: a, matches: '^ok$' } }, reply: done }]",
    );
    let good = request(1, 2, vec![called("1", "a"), result("1", "a", json!("ok"))]);
    assert_eq!(text(&script, &good), "done");
    let bad = request(1, 2, vec![called("1", "a"), result("1", "a", json!("not ok"))]);
    let error = script.answer(&bad, &mut ScriptMemory::new()).value.unwrap_err();
    assert_eq!(
        error.to_string(),
        "rule 1 `finish` (s.yaml:1:9) answers conversation c1, agent clerk, turn 1, call 2, but its `expect` does not match: \
         no new tool result of `a` matches /^ok$/; `a` gave \"not ok\""
    );
}

#[test]
fn unmatched_request_names_nearest_rules() {
    let script = script(
        r"name: checkout
rules:
  - { name: greet, when: { turn: 1, call: 1, user: hello }, reply: hi }
  - { name: refund, when: { turn: 2, agent: clerk, user: 'refund (?<order>\d+)', offered: refund }, reply: ok }
  - { name: other, when: { agent: judge, system: strict, conversation: c9 }, reply: ok }
  - { name: notice, when: { notice: done, turn: 9, call: 9, attempt: 9 }, reply: ok }
  - { name: after, when: { user: 'refund \d' }, reply: ok }
  - { name: result, when: { tool_result: { tool: refund, matches: ok, failed: false } }, reply: ok }",
    );
    let mut used = ScriptMemory::new();
    script.answer(&user(1, "hello"), &mut used).value.unwrap();

    let mut cases = vec![user(2, "I want a refund")];
    let mut again = request(1, 1, vec![ModelMessage::user("hello")]);
    again.position.attempt = 2;
    again.tools = vec![tool("search"), tool("refund")];
    cases.push(again);
    let mut failed = request(2, 2, vec![ModelMessage::user("refund 7"), called("1", "refund")]);
    failed.messages.push(ModelMessage::Tool(ModelToolResult {
        call_id: "1".into(),
        name: "refund".into(),
        content: json!({"error": "closed"}),
        is_error: true,
    }));
    cases.push(failed);
    cases.push(request(3, 1, vec![ModelMessage::notice("it rains")]));
    cases.push(request(3, 1, vec![called("1", "a")]));
    cases.push(ModelRequest::default());
    let shown: Vec<String> = cases
        .iter()
        .map(|request| script.answer(request, &mut used).value.unwrap_err().to_string())
        .collect();
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[test]
fn lists_unused_rules() {
    let mut model = ScriptedModel::new(script(
        "rules: [{ reply: a }, { name: never, when: { turn: 9 }, reply: b }, { reply: c }]",
    ));
    model.answer(&user(1, "x")).value.unwrap();
    assert_eq!(model.unused(), ["rule 2 `never` (s.yaml:1:23)", "rule 3 (s.yaml:1:69)"]);
}

#[test]
fn code_and_file_build_the_same_script() {
    let file = script(
        r"name: s
use: always
rules:
  - name: r
    when:
      conversation: c1
      agent: clerk
      turn: 1
      call: 2
      attempt: 1
      system: sys
      user: 'u(?<n>\d)'
      notice: news
      tool_result: { tool: t, matches: ok, failed: false }
      offered: t
    expect: { turn: 1 }
    use: once
    delay_ms: 5
    reply: { text: 'n={{ n }}', reasoning: hm, tool_calls: [{ name: t, arguments: { n: '{{ n }}' } }], stop: end_turn }
  - { when: { turn: 1 }, error: { kind: rate_limit, retry_after_ms: 7 } }
  - { when: { turn: 2 }, error: { kind: server, after: part } }
  - { when: { turn: 3 }, error: auth }
  - { reply: { json: { a: [1] }, usage: { input_tokens: 1, output_tokens: 2 } } }",
    );
    let usage = TokenUsage { input_tokens: 1, output_tokens: 2, ..TokenUsage::default() };
    let code = ModelScript::builder("s")
        .always()
        .rule(
            Rule::new()
                .name("r")
                .conversation("c1")
                .agent("clerk")
                .turn(1)
                .call(2)
                .attempt(1)
                .system("sys")
                .user(r"u(?<n>\d)")
                .notice("news")
                .tool_result("t")
                .result_matches("ok")
                .result_failed(false)
                .offered("t")
                .expect(Rule::new().turn(1))
                .once()
                .delay(Duration::from_millis(5))
                .reasoning("hm")
                .say("n={{ n }}")
                .call_tool("t", json!({"n": "{{ n }}"}))
                .stop(StopReason::EndTurn),
        )
        .rule(Rule::new().turn(1).fail_rate_limit(Duration::from_millis(7)))
        .rule(Rule::new().turn(2).fail_after(ModelErrorKind::Server, "part"))
        .rule(Rule::new().turn(3).fail(ModelErrorKind::Auth))
        .rule(Rule::new().say_json(json!({"a": [1]})).usage(usage))
        .build()
        .unwrap();
    let mut full = request(
        1,
        2,
        vec![
            ModelMessage::user("u7"),
            called("1", "t"),
            result("1", "t", json!("ok")),
            ModelMessage::notice("news"),
        ],
    );
    full.system = Some("sys".into());
    full.tools = vec![tool("t")];
    let (mut of_file, mut of_code) = (ScriptMemory::new(), ScriptMemory::new());
    let requests = [full.clone(), user(1, "x"), user(2, "x"), user(3, "x"), user(4, "x")];
    for request in &requests {
        let one = without_locations(file.answer(request, &mut of_file));
        let other = without_locations(code.answer(request, &mut of_code));
        assert_eq!(one, other);
    }
    assert_eq!(of_file, of_code);
    assert!(file.unused(&of_file).is_empty());
}

/// An answer without file locations.
fn without_locations(
    answer: TimedValue<Result<ModelReply, ModelError>>,
) -> TimedValue<Result<ModelReply, ModelError>> {
    let value = answer.value.map_err(|error| ModelError { message: String::new(), ..error });
    TimedValue { value, ..answer }
}

#[test]
fn reads_json_scripts() {
    let script = script(
        r#"{ "rules": [ { "when": {"user": "\u0068i"}, "reply": "\ud83d\ude00 \\ud83d \u00e9\/" } ] }"#,
    );
    assert_eq!(text(&script, &user(1, "hi")), "😀 \\ud83d é/");
}

#[test]
fn reads_tabs_line_endings_and_block_texts() {
    let json = script(
        "{\r\n\t\"rules\": [\r\n\t\t{ \"when\": { \"turn\": 1 },\t\"reply\":\t\"a\tb\" }\r\n\t]\r\n}\r\n",
    );
    assert_eq!(text(&json, &user(1, "x")), "a\tb");
    let yaml = script("\u{feff}rules:\r\n  - reply: |\r\n      Dear {{ user }},\r\n      bye.\r\n");
    assert_eq!(text(&yaml, &user(1, "x")), "Dear x,\nbye.\n");
    let folded = script("rules:\n  - reply: >-\n      one\n      two\n\n      three # four\n");
    assert_eq!(text(&folded, &user(1, "x")), "one two\nthree # four");
}

#[test]
fn yes_and_no_are_text_and_anchors_work() {
    let script = script(
        "rules:
  - { when: { turn: 1 }, reply: { json: [yes, no, on, off, 0x10, 0o17, 1e3, 1.5, -3, +4, .5, 08, 1_000, '7', ~, 12345678901234567890] } }
  - { when: { turn: 2 }, reply: { json: &a { b: c } } }
  - { reply: { json: *a } }",
    );
    let expected =
        r#"["yes","no","on","off",16,15,1000.0,1.5,-3,4,0.5,8,"1_000","7",null,12345678901234567890]"#;
    assert_eq!(text(&script, &user(1, "x")), expected);
    assert_eq!(text(&script, &user(3, "x")), r#"{"b":"c"}"#);
}
