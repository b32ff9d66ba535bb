//! JSON produces the same tree as YAML, a file splits into its values, and errors have locations.

use std::io::{BufRead, BufReader};
use std::sync::Arc;

use hotseat_document::{SourceText, json, yaml};
use proptest::prelude::*;
use serde_json::Value;

/// Values of a file with line and column, or their errors, one per line.
fn read(reader: impl BufRead) -> Vec<Result<(u32, u32, Value), String>> {
    let values = json::values("a.jsonl", reader, "cases");
    let read = values.map(|source| {
        let source = source.map_err(|mistake| mistake.to_string())?;
        let node = json::parse(&source).map_err(|mistakes| mistakes.to_string())?;
        let place = node.place(&source);
        Ok((place.line(), place.column(), node.to_json()))
    });
    read.map(|value| value.map_err(|words: String| words.replace("a.jsonl:", ""))).collect()
}

#[track_caller]
fn values(text: &str) -> Vec<Value> {
    let read = read(text.as_bytes());
    read.into_iter().map(|value| value.unwrap_or_else(|words| panic!("{text:?}: {words}")).2).collect()
}

/// Start locations of the values.
#[track_caller]
fn start_locations(text: &str) -> Vec<(u32, u32)> {
    read(text.as_bytes())
        .into_iter()
        .map(|value| value.map(|(line, column, _)| (line, column)).unwrap())
        .collect()
}

/// All errors of a file as `line:column: message`.
fn error_lines(text: &str) -> Vec<String> {
    let wrong = read(text.as_bytes()).into_iter().filter_map(Result::err);
    wrong.flat_map(|words| words.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn values_may_span_lines_and_have_comments() {
    let text = "// first\n{\"id\": 1}\n\n/* second\n */ {\n  // inside\n  \"id\": /* here */ 2\n}\r\n{\"id\":3}{\"id\":4} // behind\n";
    let ids: Vec<_> = values(text).into_iter().map(|value| value["id"].clone()).collect();
    assert_eq!(ids, [1, 2, 3, 4]);
    assert_eq!(start_locations(text), [(2, 1), (5, 5), (9, 1), (9, 9)]);
}

#[test]
fn single_list_or_wrapped_list_yields_entries() {
    for text in [
        "[{\"id\": 1}, {\"id\": 2}]",
        "// c\n[\n  {\"id\": 1}, // d\n  {\"id\": 2}\n]\n",
        "{\"cases\": [{\"id\": 1}, {\"id\": 2}]}",
        "/**/ { /* x */ \"cases\" // y\n : [ {\"id\": 1}\n, {\"id\": 2} ] } // z",
    ] {
        assert_eq!(values(text), [serde_json::json!({"id": 1}), serde_json::json!({"id": 2})], "{text}");
    }
    assert_eq!(start_locations("[{},\n  {}]"), [(1, 2), (2, 3)]);
    assert_eq!(values("[]"), Vec::<Value>::new());
    assert_eq!(values("{\"case\": []}"), [serde_json::json!({"case": []})]);
    // Only at the start of a file.
    assert_eq!(values("{}\n{\"cases\": []}").len(), 2);
    assert_eq!(values("{}\n[1, 2]"), [serde_json::json!({}), serde_json::json!([1, 2])]);
}

#[test]
fn accepts_empty_file_bom_and_very_long_lines() {
    assert_eq!(values(""), Vec::<Value>::new());
    assert_eq!(values("  // nothing\n"), Vec::<Value>::new());
    assert_eq!(start_locations("\u{FEFF}{}"), [(1, 1)]);
    let long = "x".repeat(3 << 20);
    assert_eq!(values(&format!("{{\"a\": \"{long}\"}}\n{{}}"))[0]["a"], long);
}

#[test]
fn errors_report_location() {
    for (text, expected) in [
        ("{\"a\": 1,}", "1:8: after this comma a key is missing"),
        ("{\"a\": [1,]}", "1:9: after this comma a value is missing"),
        ("{\"a\": 1 \"b\": 2}", "1:9: `,` or `}` is missing"),
        ("{\"a\": 1\n \"b\": 2}", "1:8: `,` or `}` is missing"),
        ("{\"a\" 1}", "1:6: `:` is missing after the key `a`"),
        ("{\"a\": }", "1:7: the key `a` has no value"),
        ("{a: 1}", "1:2: expected a key, found `a`"),
        ("{'a': 1}", "1:2: expected a key, found `'a'`"),
        ("{\"a\": 'x'}", "1:7: expected a value, found `'x'`"),
        ("{\"a\": True}", "1:7: expected a value, found `True`"),
        ("{\"a\": yes}", "1:7: expected a value, found `yes`"),
        ("{\"a\": # no\n 1}", "1:7: expected a value, found `#`"),
        ("{\"a\": 01}", "1:7: `01` is not a number"),
        ("{\"a\": +1}", "1:7: `+1` is not a number"),
        ("{\"a\": .5}", "1:7: `.5` is not a number"),
        ("{\"a\": 1.}", "1:7: `1.` is not a number"),
        ("{\"a\": 0x10}", "1:7: `0x10` is not a number"),
        ("{\"a\": 123456789012345678901}", "1:7: this number is too large to be kept exactly"),
        ("{\"a\": 1e999}", "1:7: this number is too large to be kept exactly"),
        ("{\"a\": \"x\\q\"}", "1:9: unknown escape"),
        ("{\"a\": \"\\u12\"}", "1:8: expected 4 hexadecimal digits after `\\u`"),
        ("{\"a\": \"\\uD800\"}", "1:8: this escape is half of a surrogate pair"),
        ("{\"a\": \"x\ty\"}", "1:9: this string contains a control character"),
        ("{\"ä\": \"é\tx\"}", "1:9: this string contains a control character"),
        ("{\"a\": \"x\n}", "1:7: this string has no closing quote"),
        ("{\"a\": 1", "1:8: `,` or `}` is missing"),
        ("{\"a\": [1}", "1:9: `,` or `]` is missing"),
        ("{\"a\": 1, \"a\": 2}", "1:10: the key `a` is written twice"),
        ("{} }", "1:4: expected a value, found `}`"),
        ("id: x", "1:1: expected a value, found `id`"),
        ("{},\n{}", "1:3: unexpected comma between values"),
        ("[{} {}]", "1:5: `,` or `]` is missing"),
        ("[,{}]", "1:2: a value is missing before this comma"),
        (", {}", "1:1: unexpected comma between values"),
        ("[{},]", "1:5: a value is missing after the previous comma"),
        ("[{}", "1:1: `]` is missing at the end of the list that begins here"),
        ("[{}] {}", "1:6: unexpected text after the list of cases"),
        ("{\"cases\": [{}], \"x\": 1}", "1:15: `}` is missing after the list"),
        ("{} /* x", "1:4: this comment has no end"),
        ("{} / {}", "1:4: expected a value or a comment, found `/`"),
        ("{\"a\": 1 /* x", "1:9: this comment has no end"),
    ] {
        assert_eq!(error_lines(text), [expected], "{text}");
    }
}

#[test]
fn broken_value_does_not_hide_next_value() {
    for (text, expected) in [
        (
            "{\"a\": 1\n{\"b\": tru}\n{\"c\": 3}",
            ["1:8: `,` or `}` is missing", "2:7: expected a value, found `tru`"],
        ),
        (
            "{\"a\": \"x}\n{\"b\": tru}\n{}",
            ["1:7: this string has no closing quote", "2:7: expected a value, found `tru`"],
        ),
        (
            "[\n {\"a\": [1}},\n {\"b\": tru},\n {}\n]",
            ["2:10: `,` or `]` is missing", "3:8: expected a value, found `tru`"],
        ),
        ("word\n{\"b\": tru}", ["1:1: expected a value, found `word`", "2:7: expected a value, found `tru`"]),
    ] {
        assert_eq!(error_lines(text), expected, "{text}");
        let fine = read(text.as_bytes()).into_iter().filter(Result::is_ok).count();
        assert_eq!(fine, usize::from(!text.starts_with("word")), "{text}");
    }
}

#[test]
fn rejects_invalid_utf8_at_its_location() {
    let read = read(&b"{\"a\": 1}\n  {\"a\": \"x\xFF\"}\n{}"[..]);
    assert_eq!(read[1], Err("2:11: this is not UTF-8".to_owned()));
    assert!(read[0].is_ok() && read[2].is_ok());
}

#[test]
fn error_far_right_on_line_is_shown() {
    let sources: Vec<Arc<SourceText>> =
        json::values("a.json", "[{\"a\": 1}, {\"b\": tru}]".as_bytes(), "cases")
            .map(Result::unwrap)
            .collect();
    let shown = json::parse(&sources[1]).unwrap_err().render(false, 80);
    let line = shown.lines().find(|line| line.contains("tru}")).unwrap();
    let marks = shown.lines().find(|line| line.contains("^^^")).unwrap();
    assert!(shown.contains("a.json:1:18"), "{shown}");
    assert_eq!(line.find("tru"), marks.find('^'), "{shown}");
}

#[test]
fn nesting_depth_is_limited() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let inner = |levels| format!("{{\"a\": {}}}", deep(levels));
    assert!(error_lines(&inner(99)).is_empty());
    assert!(error_lines(&inner(100))[0].contains("nested more than 100 levels"));
    assert!(error_lines(&inner(1_000_000))[0].contains("nested more than 100 levels"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        prop::num::f64::ZERO.prop_map(Value::from),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number,
        ".{0,12}".prop_map(Value::String),
        "(\\PC|[\\\\\"/\n\t\u{0}\u{1F600}\u{2028}]){0,8}".prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::hash_map("\\PC{0,6}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

const BLANKS: [&str; 7] = ["", " ", "\n", "\r\n\t", "// a } \" {\n", "/* ] * \" // \n */", "  "];

/// Writes a value with random blanks wherever JSON allows them.
fn write(value: &Value, blanks: &mut impl Iterator<Item = usize>, out: &mut String) {
    let mut blank = |out: &mut String| out.push_str(BLANKS[blanks.next().unwrap_or(0) % BLANKS.len()]);
    match value {
        Value::Array(items) => {
            out.push('[');
            blank(out);
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    out.push(',');
                }
                write(item, blanks, out);
                out.push_str(BLANKS[blanks.next().unwrap_or(0) % BLANKS.len()]);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            blank(out);
            for (number, (key, value)) in members.iter().enumerate() {
                if number > 0 {
                    out.push(',');
                }
                out.push_str(BLANKS[blanks.next().unwrap_or(0) % BLANKS.len()]);
                out.push_str(&Value::String(key.clone()).to_string());
                out.push_str(BLANKS[blanks.next().unwrap_or(0) % BLANKS.len()]);
                out.push(':');
                out.push_str(BLANKS[blanks.next().unwrap_or(0) % BLANKS.len()]);
                write(value, blanks, out);
                out.push_str(BLANKS[blanks.next().unwrap_or(0) % BLANKS.len()]);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_layout_round_trips(
        trees in prop::collection::vec(any_json(), 0..6),
        blanks in prop::collection::vec(0usize..7, 0..200),
        capacity in 1usize..40,
    ) {
        let mut blanks = blanks.into_iter();
        let mut text = String::new();
        // A leading list would be read as the list of all values.
        text.push_str("{}");
        for tree in &trees {
            text.push('\n');
            write(tree, &mut blanks, &mut text);
            text.push_str(BLANKS[blanks.next().unwrap_or(1)]);
        }
        let all = [&[serde_json::json!({})][..], &trees].concat();
        prop_assert_eq!(&values(&text), &all);
        // With any buffer size.
        let pieces = read(BufReader::with_capacity(capacity, text.as_bytes()));
        prop_assert_eq!(pieces, read(text.as_bytes()));
        // Also as the entries of one list, and as serde reads each value.
        let list = Value::Array(all.clone()).to_string();
        prop_assert_eq!(&values(&list), &all);
        for tree in &trees {
            let source = SourceText::new("a", tree.to_string(), 1);
            let known: Value = serde_json::from_str(&source.text).unwrap();
            prop_assert_eq!(json::parse(&source).unwrap().to_json(), known);
        }
    }

    #[test]
    fn rejects_what_serde_rejects_without_panic(
        tree in any_json(),
        change in (any::<prop::sample::Index>(), "[\\[\\]{}\",:x0 \n\\\\/*-]{0,2}", 0usize..3),
    ) {
        let mut text = format!("{{\"a\":{tree}}}");
        let (index, put, drop) = change;
        let at = text.floor_char_boundary(index.index(text.len()));
        let end = text.ceil_char_boundary((at + drop).min(text.len()));
        text.replace_range(at..end, &put);
        let source = SourceText::new("a", text.as_str(), 1);
        let ours = json::parse(&source);
        match serde_json::from_str::<Value>(&text) {
            // Duplicate keys are rejected only here.
            Ok(known) => if let Ok(node) = &ours { prop_assert_eq!(node.to_json(), known) },
            // Comments and byte order marks are accepted only here.
            Err(_) if text.contains("//") || text.contains("/*") => {}
            Err(error) => prop_assert!(ours.is_err(), "{} is read although {}", text, error),
        }
        for mistake in ours.err().into_iter().flatten() {
            let place = mistake.place.clone().expect("every mistake has a place");
            prop_assert!(place.span.end <= text.len());
            prop_assert!(!mistake.render(false, 80).is_empty());
        }
        // Splitting never drops text that the parser would reject.
        let split = read(text.as_bytes());
        // A text of comments has no values; read as a whole it is empty.
        let is_empty = split.is_empty() && text.starts_with('/');
        let fine = is_empty || split.len() == 1 && split[0].is_ok();
        prop_assert_eq!(fine, json::parse(&source).is_ok() && !text.starts_with('['), "{}: {:?}", text, split);
    }

    #[test]
    fn tree_is_independent_of_syntax(tree in any_json()) {
        // Syntax common to both formats.
        let text = serde_json::json!({"a": tree}).to_string();
        let source = SourceText::new("a", text.as_str(), 1);
        if let Ok(node) = yaml::parse(&source) {
            prop_assert_eq!(json::parse(&source).unwrap().to_json(), node.to_json());
        }
    }
}
