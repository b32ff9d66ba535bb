//! Whatever the script and the order of the requests: the same goes in, the same comes out.

use hotseat_model::script::{Rule, Script, Used};
use hotseat_model::{Message, Position, Request, ToolResult};
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

fn request() -> impl Strategy<Value = Request> {
    let position = (0usize..3, any::<bool>(), 1u32..4, 1u32..3, 1u32..3);
    let messages = proptest::collection::vec((0usize..3, 0usize..4), 0..5);
    (position, messages).prop_map(|((conversation, clerk, turn, call, attempt), messages)| {
        let messages = messages
            .into_iter()
            .map(|(kind, word)| match kind {
                0 => Message::user(WORDS[word]),
                1 => Message::Assistant { text: WORDS[word].into(), tool_calls: Vec::new() },
                _ => Message::Tool(ToolResult {
                    call_id: "1".into(),
                    name: "t".into(),
                    content: json!(WORDS[word]),
                    is_error: false,
                }),
            })
            .collect();
        let agent = if clerk { "clerk" } else { "judge" };
        let position =
            Position { conversation: conversation.to_string(), agent: agent.into(), turn, call, attempt };
        Request { position, messages, ..Request::default() }
    })
}

/// A script of rules of which none answers everything for ever before others.
fn script() -> impl Strategy<Value = Script> {
    proptest::collection::vec(rule(), 1..8).prop_filter_map("a rule that can never answer", |rules| {
        rules.into_iter().fold(Script::builder("s"), |script, rule| script.rule(rule)).build().ok()
    })
}

proptest! {
    #[test]
    fn the_same_requests_get_the_same_answers(script in script(), requests in proptest::collection::vec(request(), 0..30)) {
        let answers = |used: &mut Used| -> Vec<_> {
            requests.iter().map(|request| script.answer(request, used)).collect()
        };
        let (mut one, mut other) = (Used::new(), Used::new());
        prop_assert_eq!(answers(&mut one), answers(&mut other));
        prop_assert_eq!(one, other);
    }

    #[test]
    fn conversations_do_not_disturb_each_other(
        script in script(),
        requests in proptest::collection::vec(request(), 0..30),
    ) {
        let mut together = Used::new();
        let mut apart = [Used::new(), Used::new(), Used::new()];
        for request in &requests {
            let conversation: usize = request.position.conversation.parse().unwrap();
            prop_assert_eq!(script.answer(request, &mut together), script.answer(request, &mut apart[conversation]));
        }
    }

    #[test]
    fn an_answer_can_be_asked_for_again(script in script(), requests in proptest::collection::vec(request(), 1..20)) {
        let mut used = Used::new();
        for request in &requests {
            let answer = script.answer(request, &mut used);
            let after = used.clone();
            prop_assert_eq!(script.answer(request, &mut used), answer);
            prop_assert_eq!(&used, &after);
        }
    }

    #[test]
    fn a_rule_is_used_once_at_different_positions(script in script(), requests in proptest::collection::vec(request(), 1..40)) {
        // What a rule says begins with its number, so an answer tells which rule gave it.
        let mut used = Used::new();
        let mut unused = script.unused(&used).len();
        for request in &requests {
            let answered = script.answer(request, &mut used).value.is_ok();
            let now = script.unused(&used).len();
            prop_assert!(now <= unused && unused - now <= usize::from(answered));
            unused = now;
        }
    }

    #[test]
    fn no_file_makes_the_reader_panic(text in "[a-z0-9:{}\\[\\]\"'|>&*!%#@,.\\-? \n\t\\\\]{0,80}") {
        let _ = Script::parse("s.yaml", &text);
        let _ = Script::parse("s.yaml", &format!("rules:\n  - reply: {text}\n"));
        let _ = Script::parse("s.yaml", &format!("rules:\n  - when: {{ user: '{text}' }}\n    reply: '{{{{ {text} }}}}'\n"));
    }
}
