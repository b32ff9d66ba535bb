//! Shapes define the accepted documents: checks, getters, JSON Schema and reference page are derived from
//! them.

use std::sync::Arc;

use hotseat_document::{
    Diagnostics, Field, Kind, MapView, NodeView, Shape, SourceText, TaggedShapes, check, json_schema,
    reference_markdown, yaml,
};
use proptest::prelude::*;
use serde_json::json;

static SUITE: Shape = Shape {
    name: "suite",
    doc: "What one document holds.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "How it is called."),
        Field::optional(
            "timeout_ms",
            Kind::Integer { min: 1, max: 600_000 },
            "Time limits of the turn or conversation.",
        )
        .default("60000"),
        Field::optional("endpoint", Kind::Url, "Where the agent listens.").aliases(&["url"]),
        Field::optional("skip", Kind::OneOf(&[Kind::Bool, Kind::NonEmptyText]), "Whether to leave it out.")
            .default("false"),
        Field::required("turns", Kind::NonEmptyList(&Kind::Shape(&TURN)), "What is said."),
        Field::optional("env", Kind::Map(&Kind::Text), "Variables by name."),
        Field::optional("state", Kind::Json, "Any value."),
        Field::optional("props", Kind::JsonMap, "Any mapping."),
        Field::optional("protocol", Kind::Choice(&["lenient", "strict"]), "How broken rules are taken.")
            .default("lenient"),
        Field::optional("ratio", Kind::Number, "A share."),
    ],
};

static TURN: Shape = Shape {
    name: "turn",
    doc: "One message | and its checks.",
    fields: &[
        Field::required("user", Kind::Text, "The message.").aliases(&["input", "message"]),
        Field::optional("assert", Kind::OneOf(&[Kind::False, Kind::Shape(&CHECKS)]), "What must hold."),
        Field::optional("verbose", Kind::Bool, "Whether to tell more.").other_names(&["loud"]),
        Field::optional("sub", Kind::List(&Kind::Shape(&TURN)), "Turns within."),
    ],
};

static CHECKS: Shape = Shape {
    name: "checks",
    doc: "What must hold.",
    fields: &[
        Field::optional(
            "must_match",
            Kind::OneOf(&[Kind::Pattern, Kind::NonEmptyList(&Kind::Pattern)]),
            "Patterns that must fit.",
        ),
        Field::optional("forbid", Kind::List(&Kind::Text), "Tools that may not be called."),
    ],
};

fn source(text: &str) -> Arc<SourceText> {
    SourceText::new("suite.yaml", text, 1)
}

#[track_caller]
fn check_text(text: &str, kind: &Kind) -> Diagnostics {
    let source = source(text);
    let node = yaml::parse(&source).unwrap_or_else(|mistakes| panic!("{text:?} is not valid:\n{mistakes}"));
    let mut mistakes = Diagnostics::new();
    check(&node, kind, &source, &mut mistakes);
    mistakes
}

/// Errors of a suite, one per line, with their help in brackets.
#[track_caller]
fn error_lines(text: &str) -> Vec<String> {
    let describe = |mistake: &hotseat_document::Diagnostic| {
        let text = mistake.to_string().replacen("suite.yaml:", "", 1);
        mistake.help.as_ref().map_or(text.clone(), |help| format!("{text} [{help}]"))
    };
    check_text(text, &Kind::Shape(&SUITE)).iter().map(describe).collect()
}

#[test]
fn accepts_matching_documents() {
    let text = "
name: x
timeout_ms: 1e3
url: https://example.org/run
skip: not today
turns:
  - user: ''
    assert: false
    sub: []
  - message: hello
    assert: { must_match: [a, b], forbid: [] }
env: { A: '1' }
state: [1, ~, { a: b }]
props: { 'a': ~ }
protocol: strict
ratio: 0.5
";
    assert_eq!(error_lines(text), [""; 0]);
}

#[test]
fn reports_every_error_at_once() {
    let text = "
name: 42
timeout_ms: 0
endpoint: localhost:80
skip: []
turns:
  - tpye: user
    user: hi
  - 3
  - assert: true
env: { A: 1, B: true }
props: []
protocol: strickt
ratio: '1'
color: red
";
    assert_eq!(
        error_lines(text),
        [
            "2:7: `name` must be a text that is not empty, found the number 42 [write \"42\" to mean text]",
            "3:13: `timeout_ms` must be a whole number from 1 to 600000, found the number 0",
            "4:11: `endpoint` must be a URL, found the text \"localhost:80\" [a URL starts with `http://` or `https://`]",
            "5:7: `skip` must be true or false or a text that is not empty, found an empty list",
            "7:5: unknown key `tpye` in an entry of `turns` [known keys are `user`, `assert`, `verbose`, `sub`]",
            "9:5: an entry of `turns` must be a mapping, found the number 3",
            "10:13: `assert` must be false or a mapping, found true",
            "10:5: an entry of `turns` has no `user` or `input` or `message` [`user` or `input` or `message`: The message.]",
            "11:11: `A` must be text, found the number 1 [write \"1\" to mean text]",
            "11:17: `B` must be text, found true [write \"true\" to mean text]",
            "12:8: `props` must be a mapping, found an empty list",
            "13:11: `protocol` must be `lenient` or `strict`, found the text \"strickt\" [did you mean `strict`?]",
            "14:8: `ratio` must be a number, found the text \"1\" [leave out the quotes to mean a number]",
            "15:1: unknown key `color` [known keys are `name`, `timeout_ms`, `endpoint`, `skip`, `turns`, `env`, `state`, `props`, `protocol`, `ratio`]",
        ]
    );
}

#[test]
fn misspelled_key_is_reported_once_with_suggestion() {
    for (written, meant) in [("nmae", "name"), ("Name", "name"), ("names", "name")] {
        assert_eq!(
            error_lines(&format!("{written}: x\nturns: [{{user: hi}}]\n")),
            [format!("1:1: unknown key `{written}` [did you mean `{meant}`?]")]
        );
    }
    for (written, meant) in [
        ("timeoutMs", "timeout_ms"),
        ("timeout-ms", "timeout_ms"),
        ("timout_ms", "timeout_ms"),
        ("ulr", "url"),
    ] {
        assert_eq!(
            error_lines(&format!("name: x\nturns: [{{user: hi}}]\n{written}: 5\n")),
            [format!("3:1: unknown key `{written}` [did you mean `{meant}`?]")]
        );
    }
    // Existing keys are not suggested.
    let found = error_lines("name: x\nnmae: y\nturns: [{user: hi}]\n");
    assert!(found.len() == 1 && found[0].starts_with("2:1: unknown key `nmae` [known keys are"), "{found:?}");
}

#[test]
fn other_names_are_rejected_with_the_key() {
    for more in ["", ", verbose: true"] {
        assert_eq!(
            error_lines(&format!("name: x\nturns: [{{user: hi, loud: true{more}}}]\n")),
            ["2:20: unknown key `loud` in an entry of `turns` [it is called `verbose`]"]
        );
    }
    assert!(
        !json_schema(&SUITE, "A suite", "https://example.org/suite.json", None).to_string().contains("loud")
    );
}

#[test]
fn keys_without_value_are_not_missing() {
    assert_eq!(
        error_lines("name:\nturns:\n"),
        [
            "1:5: `name` must be a text that is not empty, found nothing [give it a value, or leave the key out]",
            "2:6: `turns` must be a list that is not empty, found nothing [give it a value, or leave the key out]",
        ]
    );
}

#[test]
fn missing_keys_are_reported_at_mapping() {
    assert_eq!(
        error_lines("{}"),
        [
            "1:1: this document has no `name` [`name`: How it is called.]",
            "1:1: this document has no `turns` [`turns`: What is said.]",
        ]
    );
    assert_eq!(error_lines("- a\n"), ["1:1: this document must be a mapping, found a list"]);
    assert_eq!(
        error_lines("name: '  '\nturns: []\n"),
        [
            "1:7: `name` must be a text that is not empty, found the text \"  \"",
            "2:8: `turns` must be a list that is not empty, found an empty list",
        ]
    );
}

#[test]
fn rejects_two_spellings_of_one_key() {
    let found = check_text(
        "name: x\nurl: http://a\nendpoint: http://b\nturns: [{user: a, input: b, message: c}]\n",
        &Kind::Shape(&SUITE),
    );
    let found: Vec<_> = found
        .iter()
        .map(|mistake| {
            (mistake.to_string(), mistake.related.iter().map(|(place, _)| place.to_string()).collect())
        })
        .collect();
    let expected = |text: &str, also: &str| (text.to_owned(), vec![also.to_owned()]);
    assert_eq!(
        found,
        [
            expected("suite.yaml:3:1: `url` and `endpoint` are two spellings of one key", "suite.yaml:2:1"),
            expected("suite.yaml:4:19: `user` and `input` are two spellings of one key", "suite.yaml:4:10"),
            expected("suite.yaml:4:29: `user` and `message` are two spellings of one key", "suite.yaml:4:10"),
        ]
    );
}

/// Error message for a value of the given kind, without its location.
#[track_caller]
fn kind_error(text: &str, kind: &Kind) -> Option<String> {
    let found = check_text(&format!("- {text}\n"), &Kind::List(&Kind::Json));
    assert!(found.is_empty());
    let source = source(&format!("key: {text}\n"));
    let node = yaml::parse(&source).expect("it is valid");
    let mut mistakes = Diagnostics::new();
    check(node.get("key").expect("the key is there"), kind, &source, &mut mistakes);
    mistakes.first().map(|mistake| mistake.message().replacen("this document must be ", "", 1))
}

#[test]
fn kinds_accept_only_their_values() {
    let any = Kind::Integer { min: i64::MIN, max: i64::MAX };
    let positive = Kind::Integer { min: 1, max: i64::MAX };
    for (text, kind, error) in [
        ("yes", &Kind::Text, None),
        ("2024-01-31", &Kind::Text, None),
        ("''", &Kind::Text, None),
        ("1.50", &Kind::Text, Some("text, found the number 1.5")),
        ("false", &Kind::Text, Some("text, found false")),
        ("~", &Kind::Text, Some("text, found nothing")),
        ("[a]", &Kind::Text, Some("text, found a list")),
        ("{a: b}", &Kind::Text, Some("text, found a mapping")),
        ("True", &Kind::Bool, None),
        ("yes", &Kind::Bool, Some("true or false, found the text \"yes\"")),
        ("1", &Kind::Bool, Some("true or false, found the number 1")),
        ("-3", &any, None),
        ("0x1F", &any, None),
        ("2.0", &any, None),
        ("2.5", &any, Some("a whole number, found the number 2.5")),
        ("1e300", &any, Some("a whole number, found the number 1e+300")),
        ("18446744073709551615", &any, Some("a whole number, found the number 18446744073709551615")),
        ("0", &positive, Some("a whole number, 1 or more, found the number 0")),
        ("9223372036854775807", &positive, None),
        ("''", &Kind::Pattern, Some("a regular expression, found an empty text")),
        ("42", &Kind::Pattern, Some("a regular expression, found the number 42")),
        ("'['", &Kind::Pattern, None),
        ("x", &Kind::List(&Kind::Text), Some("a list, found the text \"x\"")),
        ("x", &Kind::Choice(&["a", "b", "c"]), Some("`a`, `b` or `c`, found the text \"x\"")),
    ] {
        assert_eq!(kind_error(text, kind).as_deref(), error, "{text}");
    }
}

#[test]
fn urls_may_contain_variables() {
    for url in [
        "http://127.0.0.1:8801/",
        "https://example.org",
        "${BASE}/run",
        "${ENV.SCHEME}://x",
        "http://${HOST}:80",
    ] {
        assert_eq!(kind_error(&format!("'{url}'"), &Kind::Url), None, "{url}");
    }
    for url in [
        "",
        "localhost:80",
        "http://",
        "http:///x",
        "https://?x",
        "http://a b",
        "ftp://example.org",
        "/run",
        "$BASE/run",
    ] {
        assert!(kind_error(&format!("'{url}'"), &Kind::Url).is_some(), "{url}");
    }
}

#[test]
fn mismatched_alias_is_reported_at_its_use() {
    assert_eq!(
        error_lines("name: &n x\nturns: [{user: hi, verbose: *n}]\n"),
        ["2:29: `verbose` must be true or false, found the text \"x\""]
    );
}

#[test]
fn getters_return_written_values() {
    let source = source(
        "name: x\ntimeout_ms: 1e3\nurl: http://a\nturns:\n  - input: hi\n    assert: {must_match: a}\n  - user: bye\nstate: {a: [1]}\nenv: {A: b}\nratio: 0.5\nskip: true\n",
    );
    let node = yaml::parse(&source).expect("it is valid");
    let mut mistakes = Diagnostics::new();
    check(&node, &Kind::Shape(&SUITE), &source, &mut mistakes);
    assert!(mistakes.is_empty(), "{mistakes}");

    let suite = MapView::from_node(&node, &source, &SUITE).expect("it is a mapping");
    assert_eq!(suite.place().to_string(), "suite.yaml:1:1");
    assert_eq!(suite.text("name"), Some("x"));
    assert_eq!(suite.integer("timeout_ms"), Some(1000));
    assert_eq!(suite.text("endpoint"), Some("http://a"));
    assert_eq!(suite.key_place("endpoint").map(|place| place.to_string()).as_deref(), Some("suite.yaml:3:1"));
    assert_eq!(suite.place_of("endpoint").map(|place| place.to_string()).as_deref(), Some("suite.yaml:3:6"));
    assert_eq!(suite.json("state"), Some(json!({ "a": [1] })));
    assert_eq!(suite.number("ratio").and_then(serde_json::Number::as_f64), Some(0.5));
    assert_eq!(suite.bool("skip"), Some(true));
    assert!(suite.has("env") && !suite.has("protocol"));
    let env = suite.get("env").and_then(NodeView::entries).expect("it is a mapping");
    let env: Vec<_> = env.map(|(key, place, value)| (key, place.to_string(), value.text())).collect();
    assert_eq!(env, [("A", "suite.yaml:9:7".to_owned(), Some("b"))]);

    let turns: Vec<_> =
        suite.list("turns").expect("it is a list").filter_map(|turn| turn.map(&TURN)).collect();
    assert_eq!(turns.iter().map(|turn| turn.text("user")).collect::<Vec<_>>(), [Some("hi"), Some("bye")]);
    let checks = turns[0].map("assert").expect("it is a mapping");
    let patterns: Vec<_> =
        checks.get("must_match").expect("it is there").one_or_many().map(NodeView::text).collect();
    assert_eq!(patterns, [Some("a")]);
    assert!(turns[1].map("assert").is_none());
}

#[test]
fn getters_of_other_types_return_none() {
    let source = source("name: 42\nturns: x\nratio: []\n");
    let node = yaml::parse(&source).expect("it is valid");
    let suite = MapView::from_node(&node, &source, &SUITE).expect("it is a mapping");
    assert_eq!(suite.text("name"), None);
    assert!(suite.list("turns").is_none());
    assert_eq!(suite.bool("ratio"), None);
    assert_eq!(suite.integer("ratio"), None);
    assert!(suite.map("turns").is_none());
    assert!(NodeView::new(&node, &source).text().is_none());
    assert!(MapView::from_node(node.get("name").expect("it is there"), &source, &SUITE).is_none());
}

#[test]
fn json_schema_agrees_with_validation() {
    assert_eq!(
        json_schema(&SUITE, "A suite", "https://example.org/suite.json", None),
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "https://example.org/suite.json",
            "title": "A suite",
            "description": "What one document holds.",
            "type": "object",
            "properties": {
                "name": { "type": "string", "pattern": "\\S", "description": "How it is called." },
                "timeout_ms": {
                    "type": "integer", "minimum": 1, "maximum": 600_000,
                    "description": "Time limits of the turn or conversation.", "default": 60_000,
                },
                "endpoint": {
                    "type": "string", "pattern": "^([Hh][Tt][Tt][Pp][Ss]?://[^\\s/?#:]\\S*|\\S*\\$\\{\\S*)$",
                    "description": "Where the agent listens.",
                },
                "url": {
                    "type": "string", "pattern": "^([Hh][Tt][Tt][Pp][Ss]?://[^\\s/?#:]\\S*|\\S*\\$\\{\\S*)$",
                    "description": "Another spelling of `endpoint`.",
                },
                "skip": {
                    "anyOf": [{ "type": "boolean" }, { "type": "string", "pattern": "\\S" }],
                    "description": "Whether to leave it out.", "default": false,
                },
                "turns": {
                    "type": "array", "items": { "$ref": "#/$defs/turn" }, "minItems": 1,
                    "description": "What is said.",
                },
                "env": {
                    "type": "object", "additionalProperties": { "type": "string" },
                    "description": "Variables by name.",
                },
                "state": { "description": "Any value." },
                "props": { "type": "object", "description": "Any mapping." },
                "protocol": {
                    "enum": ["lenient", "strict"], "description": "How broken rules are taken.",
                    "default": "lenient",
                },
                "ratio": { "type": "number", "description": "A share." },
            },
            "additionalProperties": false,
            "required": ["name", "turns"],
            "allOf": [
                { "not": { "required": ["endpoint", "url"] } },
            ],
            "$defs": {
                "turn": {
                    "description": "One message | and its checks.",
                    "type": "object",
                    "properties": {
                        "user": { "type": "string", "description": "The message." },
                        "input": { "type": "string", "description": "Another spelling of `user`." },
                        "message": { "type": "string", "description": "Another spelling of `user`." },
                        "assert": {
                            "anyOf": [{ "const": false }, { "$ref": "#/$defs/checks" }],
                            "description": "What must hold.",
                        },
                        "verbose": { "type": "boolean", "description": "Whether to tell more." },
                        "sub": {
                            "type": "array", "items": { "$ref": "#/$defs/turn" },
                            "description": "Turns within.",
                        },
                    },
                    "additionalProperties": false,
                    "allOf": [
                        { "oneOf": [
                            { "required": ["user"] }, { "required": ["input"] }, { "required": ["message"] },
                        ] },
                    ],
                },
                "checks": {
                    "description": "What must hold.",
                    "type": "object",
                    "properties": {
                        "must_match": {
                            "anyOf": [
                                { "type": "string", "minLength": 1 },
                                {
                                    "type": "array", "items": { "type": "string", "minLength": 1 },
                                    "minItems": 1,
                                },
                            ],
                            "description": "Patterns that must fit.",
                        },
                        "forbid": {
                            "type": "array", "items": { "type": "string" },
                            "description": "Tools that may not be called.",
                        },
                    },
                    "additionalProperties": false,
                },
            },
        })
    );
}

#[test]
fn recursive_shape_refers_to_root() {
    let schema = json_schema(&TURN, "A turn", "https://example.org/turn.json", None);
    assert_eq!(schema["properties"]["sub"]["items"], json!({ "$ref": "#" }));
    assert!(schema["$defs"].get("turn").is_none() && schema["$defs"].get("checks").is_some());
}

#[test]
fn reference_page_lists_each_shape_once() {
    assert_eq!(
        reference_markdown(&TURN),
        "## turn

One message | and its checks.

| key | type | default | meaning |
|---|---|---|---|
| `user`, `input`, `message` | text | required | The message. |
| `assert` | `false` or [checks](#checks) |  | What must hold. |
| `verbose` | true or false |  | Whether to tell more. |
| `sub` | list of [turn](#turn) |  | Turns within. |

## checks

What must hold.

| key | type | default | meaning |
|---|---|---|---|
| `must_match` | regular expression or list of regular expression |  | Patterns that must fit. |
| `forbid` | list of text |  | Tools that may not be called. |
"
    );
}

#[test]
fn valid_shapes_have_no_problems() {
    assert_eq!(SUITE.problems(), [""; 0]);
}

#[test]
fn invalid_shapes_are_reported() {
    static INNER: Shape = Shape { name: "unsound", doc: "", fields: &[] };
    static UNSOUND: Shape = Shape {
        name: "unsound",
        doc: "",
        fields: &[
            Field::optional("a", Kind::OneOf(&[Kind::Text, Kind::Pattern]), ""),
            Field::optional("b", Kind::List(&Kind::OneOf(&[Kind::Shape(&INNER), Kind::JsonMap])), ""),
            Field::optional("c", Kind::Integer { min: 1, max: 5 }, "").default("6"),
            Field::optional("d", Kind::Text, "").aliases(&["a"]),
            Field::optional("e", Kind::Integer { min: 2, max: 1 }, ""),
            Field::optional("f", Kind::Choice(&[]), ""),
        ],
    };
    assert_eq!(
        UNSOUND.problems(),
        [
            "`unsound` has the key `a` twice",
            "the alternatives of `unsound.a` cannot be distinguished",
            "the alternatives of `unsound.b` cannot be distinguished",
            "the default of `unsound.c` would not pass",
            "no number fits `unsound.e`",
            "no word fits `unsound.f`",
            "two shapes are named `unsound`",
        ]
    );
}

/// Parts of documents: keys, one of them misspelt, and other text.
fn text_fragments() -> Vec<String> {
    let keys = "name nmae turns user input assert must_match timeout_ms url env sub skip".split(' ');
    let others = [
        "- ", "x", "42", "true", "~", "[]", "{}", "{", "}", "[", "]", ", ", "\n", "\n  ", "\n    ", "é",
        "''", "&a ", "*a", "<<: ",
    ];
    keys.map(|key| format!("{key}: ")).chain(others.map(str::to_owned)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn validation_never_panics(
        pieces in prop::collection::vec(prop::sample::select(text_fragments()), 0..20),
    ) {
        let source = source(&pieces.concat());
        if let Ok(node) = yaml::parse(&source) {
            let mut mistakes = Diagnostics::new();
            check(&node, &Kind::Shape(&SUITE), &source, &mut mistakes);
            let shown = mistakes.render(false, 80);
            prop_assert_eq!(shown.is_empty(), mistakes.is_empty());
            // A valid value can be read by its keys.
            if mistakes.is_empty() {
                let suite = MapView::from_node(&node, &source, &SUITE).expect("it passed");
                prop_assert!(suite.text("name").is_some());
                prop_assert!(suite.list("turns").is_some_and(|turns| turns.len() > 0));
            }
        }
    }
}

// Shapes selected by a key.

static CIRCLE: Shape = Shape {
    name: "circle",
    doc: "A circle.",
    fields: &[
        Field::optional("type", Kind::Choice(&["circle", "round"]), "What it is."),
        Field::required("radius", Kind::Number, "How far it reaches."),
    ],
};

static SQUARE: Shape = Shape {
    name: "square",
    doc: "A square.",
    fields: &[
        Field::required("type", Kind::Choice(&["square"]), "What it is."),
        Field::required("side", Kind::Number, "How long it is."),
    ],
};

static FIGURE: TaggedShapes = TaggedShapes { key: "type", shapes: &[&CIRCLE, &SQUARE], untagged: None };

static DRAWING: Shape = Shape {
    name: "drawing",
    doc: "Figures.",
    fields: &[Field::required("figure", Kind::Tagged(&FIGURE), "What is drawn.")],
};

#[test]
fn discriminating_key_selects_shape() {
    let kind = Kind::Shape(&DRAWING);
    for fits in [
        "figure: { type: circle, radius: 1 }",
        "figure: { type: round, radius: 1 }",
        "figure: { radius: 1 }",
        "figure: { type: square, side: 1 }",
    ] {
        assert!(check_text(fits, &kind).is_empty(), "{fits}");
    }
    for (misfit, words) in [
        ("figure: { type: square, radius: 1 }", "unknown key `radius` in `figure`"),
        (
            "figure: { type: squares, side: 1 }",
            "`type` must be one of `circle`, `square`, found the text \"squares\"",
        ),
        ("figure: { type: 4, side: 1 }", "found the number 4"),
        ("figure: { side: 1 }", "`figure` has no `type`"),
        ("figure: { side: 1, radius: 1 }", "unknown key `side`"),
        ("figure: 4", "`figure` must be a mapping, found the number 4"),
    ] {
        let mistakes = check_text(misfit, &kind);
        let all: Vec<_> = mistakes.into_iter().map(|mistake| mistake.message).collect();
        assert!(all.iter().any(|message| message.contains(words)), "{misfit}: {all:?}");
    }
}

#[test]
fn selected_shape_is_used_for_decoding() {
    let source = source("figure: { type: square, side: 2 }");
    let node = yaml::parse(&source).unwrap();
    let figure = MapView::from_node(&node, &source, &DRAWING).unwrap().map("figure").unwrap();
    assert_eq!((figure.shape().name, figure.integer("side")), ("square", Some(2)));
    assert_eq!(DRAWING.problems(), Vec::<String>::new());
    let schema = json_schema(&DRAWING, "drawing", "urn:drawing", None);
    assert_eq!(schema["properties"]["figure"]["anyOf"][1], json!({"$ref": "#/$defs/square"}));
    assert!(schema["$defs"]["circle"].is_object());
    assert!(reference_markdown(&DRAWING).contains("[circle](#circle) or [square](#square)"));
}

#[test]
fn ambiguous_shapes_are_a_problem() {
    static ALIKE: TaggedShapes = TaggedShapes { key: "type", shapes: &[&CIRCLE, &CIRCLE], untagged: None };
    static WRONG: Shape =
        Shape { name: "wrong", doc: "", fields: &[Field::required("a", Kind::Tagged(&ALIKE), "")] };
    assert_eq!(WRONG.problems(), ["the shapes of `wrong.a` cannot be distinguished"]);
}

#[test]
fn nested_value_in_place_of_a_pattern_is_answered_with_its_path() {
    static PATTERNS: Kind = Kind::Map(&Kind::OneOf(&[Kind::Pattern, Kind::Number, Kind::Bool]));
    let help = |text: &str| {
        let mistakes = check_text(text, &PATTERNS);
        mistakes.iter().next().unwrap_or_else(|| panic!("{text} is accepted")).help.clone()
    };
    assert_eq!(help("order: { id: o-1 }").unwrap(), "select a nested value by its path: `order.id: …`");
    assert_eq!(help("lines: [1, 2]").unwrap(), "select a nested value by its path: `lines.0: …`");
    assert_eq!(help("order: {}"), None);
}
