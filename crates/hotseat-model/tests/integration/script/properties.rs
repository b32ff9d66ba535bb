//! Determinism: the same requests give the same answers, for any script and order.

use hotseat_model::script::{ModelScript, Rule, ScriptMemory};
use hotseat_model::{CallPosition, ModelMessage, ModelRequest, ModelToolResult};
use proptest::prelude::*;
use serde_json::json;

const WORDS: [&str; 4] = ["refund", "order 7", "hello", "thanks"];

fn rule() -> impl Strategy<Value = Rule> {
    let conditions = (
        proptest::option::of(1u32..4),
        proptest::option::of(1u32..3),
        proptest::option::of(0usize..4),
        proptest::option::of(0usize..4),
        proptest::option::of(any::<bool>()),
    );
    (conditions, any::<bool>(), 0u32..1000).prop_map(|((turn, call, user, result, clerk), always, number)| {
        let mut rule = Rule::new().say(format!("{number} {{{{ turn }}}}"));
        rule = turn.map(|turn| rule.clone().turn(turn)).unwrap_or(rule);
        rule = call.map(|call| rule.clone().call(call)).unwrap_or(rule);
        rule = user.map(|word| rule.clone().user(WORDS[word])).unwrap_or(rule);
        rule = result.map(|word| rule.clone().result_matches(WORDS[word])).unwrap_or(rule);
        rule = clerk.map(|clerk| rule.clone().agent(if clerk { "clerk" } else { "judge" })).unwrap_or(rule);
        if always { rule.always() } else { rule.once() }
    })
}

fn request() -> impl Strategy<Value = ModelRequest> {
    let position = (0usize..3, any::<bool>(), 1u32..4, 1u32..3, 1u32..3);
    let messages = proptest::collection::vec((0usize..3, 0usize..4), 0..5);
    (position, messages).prop_map(|((conversation, clerk, turn, call, attempt), messages)| {
        let messages = messages
            .into_iter()
            .map(|(kind, word)| match kind {
                0 => ModelMessage::user(WORDS[word]),
                1 => ModelMessage::Assistant {
                    text: WORDS[word].into(),
                    tool_calls: Vec::new(),
                    provider_parts: None,
                },
                _ => ModelMessage::Tool(ModelToolResult {
                    call_id: "1".into(),
                    name: "t".into(),
                    content: json!(WORDS[word]),
                    is_error: false,
                }),
            })
            .collect();
        let agent = if clerk { "clerk" } else { "judge" };
        let position =
            CallPosition { conversation: conversation.to_string(), agent: agent.into(), turn, call, attempt };
        ModelRequest { position, messages, ..ModelRequest::default() }
    })
}

/// A script without a catch-all rule before other rules.
fn script() -> impl Strategy<Value = ModelScript> {
    proptest::collection::vec(rule(), 1..8).prop_filter_map("a rule that can never answer", |rules| {
        rules.into_iter().fold(ModelScript::builder("s"), |script, rule| script.rule(rule)).build().ok()
    })
}

proptest! {
    #[test]
    fn same_requests_get_same_answers(script in script(), requests in proptest::collection::vec(request(), 0..30)) {
        let answers = |used: &mut ScriptMemory| -> Vec<_> {
            requests.iter().map(|request| script.answer(request, used)).collect()
        };
        let (mut one, mut other) = (ScriptMemory::new(), ScriptMemory::new());
        prop_assert_eq!(answers(&mut one), answers(&mut other));
        prop_assert_eq!(one, other);
    }

    #[test]
    fn conversations_are_independent(
        script in script(),
        requests in proptest::collection::vec(request(), 0..30),
    ) {
        let mut together = ScriptMemory::new();
        let mut apart = [ScriptMemory::new(), ScriptMemory::new(), ScriptMemory::new()];
        for request in &requests {
            let conversation: usize = request.position.conversation.parse().unwrap();
            prop_assert_eq!(script.answer(request, &mut together), script.answer(request, &mut apart[conversation]));
        }
    }

    #[test]
    fn answer_can_be_requested_again(script in script(), requests in proptest::collection::vec(request(), 1..20)) {
        let mut used = ScriptMemory::new();
        for request in &requests {
            let answer = script.answer(request, &mut used);
            let after = used.clone();
            prop_assert_eq!(script.answer(request, &mut used), answer);
            prop_assert_eq!(&used, &after);
        }
    }

    #[test]
    fn rule_is_used_once_across_positions(script in script(), requests in proptest::collection::vec(request(), 1..40)) {
        // Each rule's text starts with its number, so an answer identifies its rule.
        let mut used = ScriptMemory::new();
        let mut unused = script.unused(&used).len();
        for request in &requests {
            let answered = script.answer(request, &mut used).value.is_ok();
            let now = script.unused(&used).len();
            prop_assert!(now <= unused && unused - now <= usize::from(answered));
            unused = now;
        }
    }

    #[test]
    fn arbitrary_files_never_panic(text in "[a-z0-9:{}\\[\\]\"'|>&*!%#@,.\\-? \n\t\\\\]{0,80}") {
        let _ = ModelScript::parse("s.yaml", &text);
        let _ = ModelScript::parse("s.yaml", &format!("rules:\n  - reply: {text}\n"));
        let _ = ModelScript::parse("s.yaml", &format!("rules:\n  - when: {{ user: '{text}' }}\n    reply: '{{{{ {text} }}}}'\n"));
    }
}
