//! YAML produces a tree whose nodes know their locations.

use std::sync::Arc;

use hotseat_document::{Diagnostics, DocumentNode, NodeValue, SourceText, yaml};
use proptest::prelude::*;
use serde_json::json;

fn source(text: &str) -> Arc<SourceText> {
    SourceText::new("suite.yaml", text, 1)
}

#[track_caller]
fn parse(text: &str) -> DocumentNode {
    match yaml::parse(&source(text)) {
        Ok(node) => node,
        Err(mistakes) => panic!("{text:?} is refused:\n{mistakes}"),
    }
}

#[track_caller]
fn expect_errors(text: &str) -> Diagnostics {
    match yaml::parse(&source(text)) {
        Ok(node) => panic!("{text:?} is read as {}", node.to_json()),
        Err(mistakes) => mistakes,
    }
}

/// Errors as `line:column: message`, one per line.
#[track_caller]
fn error_lines(text: &str) -> Vec<String> {
    let name = "suite.yaml:";
    expect_errors(text).to_string().lines().map(|line| line.replacen(name, "", 1)).collect()
}

/// The value of the plain scalar `text`.
#[track_caller]
fn parse_plain(text: &str) -> serde_json::Value {
    parse(&format!("a: {text}\n")).get("a").expect("the key is there").to_json()
}

#[test]
fn plain_scalars_follow_core_schema() {
    for text in ["", "~", "null", "Null", "NULL"] {
        assert_eq!(parse_plain(text), json!(null), "{text:?}");
    }
    for text in ["true", "True", "TRUE"] {
        assert_eq!(parse_plain(text), json!(true), "{text:?}");
    }
    for text in ["false", "False", "FALSE"] {
        assert_eq!(parse_plain(text), json!(false), "{text:?}");
    }
    for (text, number) in
        [("0", 0), ("42", 42), ("-7", -7), ("+7", 7), ("007", 7), ("0x1F", 31), ("0o17", 15)]
    {
        assert_eq!(parse_plain(text), json!(number), "{text:?}");
    }
    assert_eq!(parse_plain("-9223372036854775808"), json!(i64::MIN));
    assert_eq!(parse_plain("18446744073709551615"), json!(u64::MAX));
    for (text, number) in
        [("1e3", 1000.0), (".5", 0.5), ("-.5", -0.5), ("5.", 5.0), ("1.5E-1", 0.15), ("+1.0e+2", 100.0)]
    {
        assert_eq!(parse_plain(text), json!(number), "{text:?}");
    }
}

#[test]
fn lookalike_scalars_stay_text() {
    let words = "yes no on off y N tRUE nULL none 2024-01-31 2024-01-31T10:00:00Z 12:30:45 1_000 0b101 0x 0o8 0xG \
        -0x1F 0x+1 1.2.3 1e e3 . + +. .e3 --5 inf nan 10% 5ms v1 a#b a:b";
    for text in words.split_whitespace().chain(["1 2"]) {
        assert_eq!(parse_plain(text), json!(text), "{text:?}");
    }
}

#[test]
fn quoted_and_block_scalars_are_text() {
    assert_eq!(
        parse("a: \"42\"\nb: 'true'\nc: ''\nd: |\n  1\ne: >-\n  null\nf: \"x\\ty\\u00e9\\x41\"\n").to_json(),
        json!({ "a": "42", "b": "true", "c": "", "d": "1\n", "e": "null", "f": "x\tyéA" })
    );
}

#[test]
fn block_scalars_keep_or_fold_lines() {
    let text = "literal: |\n  one\n    two\n\n  three\n\nstripped: |-\n  one\nkept: |+\n  one\n\nfolded: >\n  one\n  two\n\n  three\n";
    assert_eq!(
        parse(text).to_json(),
        json!({
            "literal": "one\n  two\n\nthree\n",
            "stripped": "one",
            "kept": "one\n\n",
            "folded": "one two\nthree\n",
        })
    );
}

#[test]
fn flow_collections_nest() {
    assert_eq!(
        parse("{a: [1, {b: c}, [], {}], \"d\":e, f: , g, h: [x: y, z],}").to_json(),
        json!({ "a": [1, { "b": "c" }, [], {}], "d": "e", "f": null, "g": null, "h": [{ "x": "y" }, "z"] })
    );
}

#[test]
fn core_schema_tags_set_the_type() {
    assert_eq!(
        parse("a: !!str 42\nb: ! true\nc: !!int \"3\"\nd: !!float 1\ne: !!bool 'true'\nf: !!null ''\ng: !!seq [1]\nh: !!map {x: y}\ni: !!str\nj: !<tag:yaml.org,2002:str> 1\n")
            .to_json(),
        json!({
            "a": "42", "b": "true", "c": 3, "d": 1.0, "e": true, "f": null, "g": [1], "h": { "x": "y" },
            "i": "", "j": "1",
        })
    );
    assert_eq!(parse("%TAG !y! tag:yaml.org,2002:\n---\na: !y!str 1\n").to_json(), json!({ "a": "1" }));
}

#[test]
fn rejects_other_tags_at_their_location() {
    assert_eq!(
        error_lines("a: !!binary aGk=\nb: !mine {x: y}\nc: &z !!map [1]\nd: !!int abc\ne: !!str [1]\n"),
        [
            "1:4: the tag `!!binary` is not supported",
            "2:4: the tag `!mine` is not supported",
            "3:7: this tag does not match the node after it",
            "4:10: this does not fit its tag `!!int`",
            "5:4: this tag does not match the node after it",
        ]
    );
}

#[test]
fn rejects_numbers_outside_json() {
    let found = expect_errors(
        "a: .inf\nb: -.INF\nc: .nan\nd: 123456789012345678901234567890\ne: 1e999\nf: 0x1FFFFFFFFFFFFFFFF\n",
    );
    let messages: Vec<_> = found.iter().map(|mistake| (mistake.line(), mistake.message())).collect();
    assert_eq!(
        messages,
        [
            (Some(1), "`.inf` is not a number that JSON can hold"),
            (Some(2), "`-.INF` is not a number that JSON can hold"),
            (Some(3), "`.nan` is not a number that JSON can hold"),
            (Some(4), "this number is too large to be kept exactly"),
            (Some(5), "this number is too large to be kept exactly"),
            (Some(6), "this number is too large to be kept exactly"),
        ]
    );
    assert_eq!(found[0].help.as_deref(), Some("write \".inf\" to mean text"));
    // Half of these are text anyway; quoted, all of them are.
    assert_eq!(parse("a: '.inf'\nb: \"1e999\"\n").to_json(), json!({ "a": ".inf", "b": "1e999" }));
}

#[test]
fn aliases_repeat_anchor_content() {
    let text =
        "base: &base\n  - x\n  - &inner {a: 1}\nagain: *base\ninner: *inner\nname: &n word\n*n : value\n";
    assert_eq!(
        parse(text).to_json(),
        json!({
            "base": ["x", { "a": 1 }],
            "again": ["x", { "a": 1 }],
            "inner": { "a": 1 },
            "name": "word",
            "word": "value",
        })
    );
}

#[test]
fn alias_has_own_location_and_anchor_content() {
    let source = source("a: &a\n  k: v\nb: *a\n");
    let node = yaml::parse(&source).expect("it is valid");
    let a = node.get("a").expect("a is there");
    assert_eq!(a.place(&source).text(), "k: v");
    let b = node.get("b").expect("b is there");
    assert_eq!((b.place(&source).to_string(), b.place(&source).text()), ("suite.yaml:3:4".to_owned(), "*a"));
    assert_eq!(b.get("k").map(|k| k.place(&source).to_string()), Some("suite.yaml:2:6".to_owned()));
}

#[test]
fn rejects_undefined_or_recursive_aliases() {
    assert_eq!(
        error_lines("a: *missing\n"),
        ["1:4: this alias names an anchor that is not defined above it"]
    );
    assert_eq!(error_lines("a: &a [*a]\n"), ["1:8: this alias is inside the node that it refers to"]);
}

#[test]
fn anchors_can_be_redefined() {
    assert_eq!(parse("- &a 1\n- *a\n- &a 2\n- *a\n").to_json(), json!([1, 1, 2, 2]));
}

#[test]
fn alias_expansion_is_bounded() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let found = expect_errors(&text);
    assert_eq!(found[0].message(), "the aliases of this document expand to too much text");
    assert!(found[0].line().is_some_and(|line| (4..=8).contains(&line)), "{found}");
}

#[test]
fn repeated_long_text_counts_toward_alias_bound() {
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 100].join(", "));
    assert_eq!(expect_errors(&text)[0].message(), "the aliases of this document expand to too much text");
}

#[test]
fn merge_keys_fill_missing_keys() {
    let text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\none:\n  <<: *a\n  y: own\ntwo:\n  y: own\n  <<: [*b, *a]\nthree: {<<: {q: r}}\nfour: {'<<': text}\n";
    let json = parse(text).to_json();
    assert_eq!(json["one"], json!({ "y": "own", "x": 1 }));
    assert_eq!(json["two"], json!({ "y": "own", "z": 4, "x": 1 }));
    assert_eq!(json["three"], json!({ "q": "r" }));
    assert_eq!(json["four"], json!({ "<<": "text" }));
}

#[test]
fn rejects_invalid_merges() {
    assert_eq!(
        error_lines("a: {<<: text}\nb: {<<: [{x: y}, 3]}\nc:\n  <<: {x: y}\n  <<: {z: y}\n"),
        [
            "1:9: `<<` merges a mapping or a list of mappings",
            "2:18: `<<` merges a mapping or a list of mappings",
            "5:3: `<<` is written twice",
        ]
    );
}

#[test]
fn duplicate_key_reports_both_locations() {
    let found = expect_errors("name: x\nturns: []\nname: y\n");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].to_string(), "suite.yaml:3:1: the key `name` is written twice");
    let also: Vec<_> =
        found[0].related.iter().map(|(place, label)| (place.to_string(), label.as_str())).collect();
    assert_eq!(also, [("suite.yaml:1:1".to_owned(), "first")]);
}

#[test]
fn finds_duplicates_in_large_mappings() {
    let mut text: String = (0..100).map(|number| format!("k{number}: x\n")).collect();
    text.push_str("k7: y\n\"k99\": z\nk7: again\n");
    assert_eq!(
        error_lines(&text),
        [
            "101:1: the key `k7` is written twice",
            "102:1: the key `k99` is written twice",
            "103:1: the key `k7` is written twice",
        ]
    );
}

#[test]
fn rejects_non_text_keys() {
    let found = expect_errors("42: a\ntrue: b\n~: c\n? [x]\n: d\n? {y: z}\n: e\n: f\nok: g\n");
    let found: Vec<_> = found.iter().map(|mistake| (mistake.message(), mistake.help.as_deref())).collect();
    assert_eq!(
        found,
        [
            ("a key must be text, found the number 42", Some("write \"42\" to mean text")),
            ("a key must be text, found true", Some("write \"true\" to mean text")),
            ("a key must be text, found nothing", Some("write \"~\" to mean text")),
            ("a key must be text, found a list", None),
            ("a key must be text, found a mapping", None),
            ("a key must be text, found nothing", None),
        ]
    );
    assert_eq!(
        parse("on: a\nyes: b\n'42': c\n? d\n: e\n").to_json(),
        json!({ "on": "a", "yes": "b", "42": "c", "d": "e" })
    );
}

#[test]
fn reports_all_errors_in_text_order() {
    assert_eq!(
        error_lines("a: 1\na: 2\nb: {c: !x 1, c: 2}\n3: 4\n"),
        [
            "2:1: the key `a` is written twice",
            "3:8: the tag `!x` is not supported",
            "3:14: the key `c` is written twice",
            "4:1: a key must be text, found the number 3",
        ]
    );
}

#[test]
fn syntax_errors_report_location_plainly() {
    for (text, expected) in [
        ("a: b: c\n", "1:5: a `:` is not allowed here"),
        ("a:\n\tb: 1\n", "2:2: a tab cannot be used for indentation"),
        ("a: 'x\n", "1:4: this quoted text has no closing quote"),
        ("a: 'x\nb: c\n", "1:4: this quoted text has no closing quote, or its lines are not indented"),
        ("a: [1, 2\nb: c\n", "2:2: a `:` is not allowed here"),
        ("a:\n  - [1,\n2]\n", "3:1: the indentation of this line matches no line above it"),
        ("a: [- 1]\n", "1:5: within brackets, list entries are separated by commas and have no `-`"),
        ("a: | text\n", "1:4: the text of a block starts on the next line"),
        ("a: {x: 'y'# c\n}\n", "1:11: expected a space before `#`"),
        ("a: 1\n\u{FEFF}b: 2\n", "2:1: unexpected byte order mark inside the document"),
        ("a: [1, 2\n", "1:9: expected `,` or `]` here"),
        ("a: {x: 1\n", "1:9: expected `,` or `}` here"),
        ("a: \"x \\d+\"\n", "1:7: unknown escape in double quotes"),
        ("a: \"\\ud83d\"\n", "1:4: this escape is not a valid character"),
        ("a: @x\n", "1:4: unquoted text cannot start with this character"),
        ("a: 'x' y\n", "1:8: unexpected text after the closing quote"),
        ("a: ]\n", "1:4: this bracket was not opened"),
        ("a: 1\n  b: 2\n", "2:4: a `:` is not allowed here"),
        ("a:\n    b: 1\n  c: 2\n", "3:3: expected `key: value` here"),
        ("- a\nb: c\n", "2:1: a list entry is not allowed here, or one is missing"),
        ("a: x # c\n  y\n", "1:6: a comment interrupts this text"),
        ("a: \u{0}\n", "1:4: a control character is not allowed here"),
        ("%YML 1.2\n---\na: 1\n", "1:1: unknown directive"),
        ("a: 1\n---\nb: 2\n", "2:1: expected one document, but a second one starts here"),
    ] {
        assert_eq!(error_lines(text), [expected], "{text:?}");
    }
}

#[test]
fn rejects_deep_nesting_early() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(yaml::parse(&source(&deep(100))).is_ok());
    for text in [deep(101), deep(100_000), "- ".repeat(100_000), "? ".repeat(100_000), "{a: ".repeat(100_000)]
    {
        let found = expect_errors(&text);
        assert_eq!(found[0].message(), "this is nested too deeply");
    }
}

#[test]
fn aliases_cannot_exceed_nesting_limit() {
    let text =
        format!("a: &a {}x{}\nb: {}*a{}\n", "[".repeat(60), "]".repeat(60), "[".repeat(60), "]".repeat(60));
    assert_eq!(error_lines(&text), ["2:64: this is nested too deeply"]);
}

#[test]
fn source_without_document_is_null() {
    for text in ["", "\n", "# only a comment\n", "---\n", "--- # nothing\n...\n"] {
        assert_eq!(parse(text).value, NodeValue::Null, "{text:?}");
    }
}

#[test]
fn text_on_marker_line_belongs_to_document() {
    assert_eq!(parse("--- text\n").to_json(), json!("text"));
    assert_eq!(parse("%YAML 1.2\n--- {a: 1} # c\n...\n").to_json(), json!({ "a": 1 }));
}

/// Text of every scalar and key in tree order.
fn collect_source_texts(node: &DocumentNode, source: &Arc<SourceText>, into: &mut Vec<String>) {
    match &node.value {
        NodeValue::List(nodes) => nodes.iter().for_each(|node| collect_source_texts(node, source, into)),
        NodeValue::Map(entries) => {
            for entry in entries {
                into.push(entry.key.place(source).text().to_owned());
                collect_source_texts(&entry.value, source, into);
            }
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {
            into.push(node.place(source).text().to_owned());
        }
    }
}

#[test]
fn node_span_covers_source_text() {
    let source = source(concat!(
        "a: 'it''s' # 'c'\n",
        "\"b\" : \"x \\\" y\"   \n",
        "c : &anchor !!str  # comment\n",
        "    plain text   # comment\n",
        "d: |  # comment\n",
        "  block\n",
        "  text\n",
        "\n",
        "e: [ 1 , 'two' , {f: g} , ]\n",
        "h: several\n",
        "  lines\n",
        "i: *anchor\n",
    ));
    let node = yaml::parse(&source).expect("it is valid");
    let mut found = Vec::new();
    collect_source_texts(&node, &source, &mut found);
    assert_eq!(
        found,
        [
            "a",
            "'it''s'",
            "\"b\"",
            "\"x \\\" y\"",
            "c",
            "plain text",
            "d",
            "block\n  text",
            "e",
            "1",
            "'two'",
            "f",
            "g",
            "h",
            "several\n  lines",
            "i",
            "*anchor",
        ]
    );
    assert_eq!(
        node.get("e").map(|e| e.place(&source).text().to_owned()),
        Some("[ 1 , 'two' , {f: g} , ]".to_owned())
    );
    assert_eq!(node.place(&source).text(), source.text.trim_end());
}

#[test]
fn list_spans_include_dashes_and_brackets() {
    let source = source("a:\n- x\n- y # c\nb:\n  - x\nc: [x,\n  y # c\n  , ] # d\nd: {x: y,\n} # e\n");
    let node = yaml::parse(&source).expect("it is valid");
    let text =
        |key: &str| node.get(key).map(|node| node.place(&source).text().to_owned()).unwrap_or_default();
    assert_eq!(text("a"), "- x\n- y");
    assert_eq!(text("b"), "- x");
    assert_eq!(text("c"), "[x,\n  y # c\n  , ]");
    assert_eq!(text("d"), "{x: y,\n}");
}

#[test]
fn only_unquoted_scalars_are_plain() {
    let node = parse("a: 42\nb: '42'\nc: !!str 42\nd: [x]\ne: &e x\nf: *e\ng: |\n  x\n");
    let plain: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"]
        .iter()
        .map(|key| node.get(key).is_some_and(|node| node.plain))
        .collect();
    assert_eq!(plain, [true, false, false, false, true, false, false]);
}

#[test]
fn columns_count_characters_with_crlf_and_bom() {
    for text in ["é: 😀\r\n漢字: [a, \"😀\", b]\r\n", "\u{FEFF}é: 😀\n漢字: [a, \"😀\", b]\n"] {
        let source = source(text);
        let node = yaml::parse(&source).expect("it is valid");
        assert_eq!(node.to_json(), json!({ "é": "😀", "漢字": ["a", "😀", "b"] }));
        let Some(NodeValue::List(nodes)) = node.get("漢字").map(|node| &node.value) else {
            panic!("it is a list")
        };
        let places: Vec<_> = nodes.iter().map(|node| node.place(&source).to_string()).collect();
        assert_eq!(places, ["suite.yaml:2:6", "suite.yaml:2:9", "suite.yaml:2:14"], "{text:?}");
    }
}

#[test]
fn lines_count_from_chunk_start() {
    let source = SourceText::new("suite.yaml", "a: 1\nb: @\n", 41);
    let mistakes = yaml::parse(&source).expect_err("it is not valid");
    assert_eq!(mistakes.to_string(), "suite.yaml:42:4: unquoted text cannot start with this character");
}

#[test]
fn tabs_are_allowed_outside_indentation() {
    let source = source("a:\t1\t# c\n-é:\t\ttext\nb: [\t1,\t2\t]\nc: |\n  x:\ty\n\t\nd:\tx\ty\n");
    let node = yaml::parse(&source).expect("it is valid");
    assert_eq!(node.to_json(), json!({ "a": 1, "-é": "text", "b": [1, 2], "c": "x:\ty\n", "d": "x\ty" }));
    assert_eq!(node.get("-é").map(|node| node.place(&source).to_string()), Some("suite.yaml:2:6".to_owned()));
}

#[test]
fn rejects_inline_mapping_after_tab() {
    assert_eq!(error_lines("a:\tb: c\n"), ["1:5: a `:` is not allowed here"]);
    assert_eq!(error_lines("-\t- a\n"), ["1:3: a tab is not allowed here"]);
}

#[test]
fn key_order_is_preserved() {
    let serde_json::Value::Object(map) = parse("z: 1\na: 2\nm: 3\n").to_json() else {
        panic!("it is a mapping")
    };
    assert_eq!(map.keys().collect::<Vec<_>>(), ["z", "a", "m"]);
}

/// Any JSON value, with strings that need escaping and keys that resemble other types.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let text = prop_oneof![
        any::<String>(),
        "[ -~]{0,12}",
        prop::sample::select(vec![
            "", "true", "~", "42", "<<", "- a", "a: b", "# c", "---", "*a", "&a", "'", "é\n  x"
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|truth| json!(truth)),
        any::<i64>().prop_map(|number| json!(number)),
        any::<u64>().prop_map(|number| json!(number)),
        any::<i32>().prop_map(|number| json!(f64::from(number) / 8.0)),
        text.clone().prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|list| json!(list)),
            prop::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|entries| entries.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

/// Writes a value in block style, with quoted text.
fn write_block(value: &serde_json::Value, indent: usize, into: &mut String) {
    match value {
        serde_json::Value::Array(list) if !list.is_empty() => {
            for value in list {
                into.push_str(&format!("\n{:indent$}-", ""));
                write_block(value, indent + 2, into);
            }
        }
        serde_json::Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                into.push_str(&format!("\n{:indent$}{}:", "", json!(key)));
                write_block(value, indent + 2, into);
            }
        }
        other => into.push_str(&format!(" {other}")),
    }
}

/// Asserts that every span is within the text and on character boundaries, and that a plain text equals its
/// span.
fn check_spans(node: &DocumentNode, source: &Arc<SourceText>) {
    let text = source.text.get(node.span.clone()).expect("the span is one of the text");
    match &node.value {
        NodeValue::String(value) if node.plain && !text.contains(['\n', '\r']) => assert_eq!(text, value),
        NodeValue::List(nodes) => nodes.iter().for_each(|node| check_spans(node, source)),
        NodeValue::Map(entries) => {
            for entry in entries {
                assert!(source.text.get(entry.key.span.clone()).is_some());
                check_spans(&entry.value, source);
            }
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {}
    }
}

/// Calls every operation on a text.
fn read_and_show(text: &[u8]) {
    for document in yaml::documents("suite.yaml", text) {
        let shown = match document.map_err(Diagnostics::from).and_then(|source| {
            let node = yaml::parse(&source)?;
            check_spans(&node, &source);
            Ok(node)
        }) {
            Ok(node) => node.to_json().to_string(),
            Err(mistakes) => mistakes.render(false, 80),
        };
        assert!(!shown.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_round_trips(value in any_json()) {
        let compact = value.to_string();
        prop_assert_eq!(parse(&compact).to_json(), value.clone());
        let pretty = serde_json::to_string_pretty(&value).expect("it is JSON");
        prop_assert_eq!(parse(&pretty).to_json(), value);
    }

    #[test]
    fn block_style_round_trips(value in any_json()) {
        let mut text = "---".to_owned();
        write_block(&value, 0, &mut text);
        let source = source(&text);
        let node = yaml::parse(&source).expect("it is valid");
        prop_assert_eq!(node.to_json(), value);
        check_spans(&node, &source);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_and_show(&bytes);
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        read_and_show(text.as_bytes());
    }

    #[test]
    fn yaml_like_text_never_panics(
        pieces in prop::collection::vec(prop::sample::select([TEXT_FRAGMENTS, DIRECTIVES_AND_TAGS].concat()), 0..30),
    ) {
        let text = pieces.concat();
        read_and_show(text.as_bytes());
        // Bypasses the splitter, so that the parser sees markers.
        if let Ok(node) = yaml::parse(&source(&text)) {
            check_spans(&node, &source(&text));
        }
    }
}

const TEXT_FRAGMENTS: &[&str] = &[
    "a", "b: ", ": ", "- ", "\n", "\n  ", "\n    ", "\n- ", " ", "[", "]", "{", "}", ",", "&a ", "*a",
    "!!str ", "!x ", "! ", "<<: ", "? ", "#", "# c\n", "'", "\"", "|\n", ">-\n", "|2\n  ", "\n---\n", "...",
    "\n...\n", "%é\n", "\t", "\r\n", "\r", "é", "😀", "\u{FEFF}", "42", "1e3", ".5", "~", "true", "\\",
    "\\d", "\\u00e9", "\0", "\u{1b}", "\u{85}", "\u{2028}", "k: v", "\nk: v", "- - - ", "@", "%", "`", "''",
    "\"\"", "!!", "!e!str ", "?", "=",
];

const DIRECTIVES_AND_TAGS: &[&str] =
    &["%YAML 1.2\n", "!<tag:yaml.org,2002:int> ", "%TAG !e! tag:yaml.org,2002:\n"];
