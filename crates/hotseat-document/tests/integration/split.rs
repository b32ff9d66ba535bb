//! A stream of YAML documents splits at its markers, independently of the buffer size.

use std::io::{self, BufRead, BufReader, Read};

use hotseat_document::yaml;
use proptest::prelude::*;

/// Documents of a stream: first line and text. An error is its message with its location.
fn split(reader: impl BufRead) -> Vec<Result<(u32, String), String>> {
    yaml::documents("suite.yaml", reader)
        .map(|document| match document {
            Ok(source) => Ok((source.first_line, source.text.clone())),
            Err(mistake) => Err(mistake.to_string()),
        })
        .collect()
}

/// Documents of a stream without errors.
#[track_caller]
fn documents(text: &str) -> Vec<(u32, String)> {
    split(text.as_bytes()).into_iter().map(|document| document.expect("it is UTF-8")).collect()
}

fn owned(documents: &[(u32, &str)]) -> Vec<(u32, String)> {
    documents.iter().map(|&(line, text)| (line, text.to_owned())).collect()
}

#[test]
fn file_without_markers_is_one_document() {
    assert_eq!(documents("a: 1\nb: 2\n"), owned(&[(1, "a: 1\nb: 2\n")]));
    assert_eq!(documents("# first\n\na: 1"), owned(&[(1, "# first\n\na: 1")]));
}

#[test]
fn marker_starts_a_document() {
    assert_eq!(
        documents("---\na: 1\n---\nb: 2\n--- # c\nc: 3\n---\td\n"),
        owned(&[(1, "---\na: 1\n"), (3, "---\nb: 2\n"), (5, "--- # c\nc: 3\n"), (7, "---\td\n")])
    );
    assert_eq!(documents("a: 1\n---\nb: 2\n"), owned(&[(1, "a: 1\n"), (2, "---\nb: 2\n")]));
}

#[test]
fn text_after_marker_is_content() {
    assert_eq!(
        documents("--- text\n--- {a: 1}\n--- |\n  x\n"),
        owned(&[(1, "--- text\n"), (2, "--- {a: 1}\n"), (3, "--- |\n  x\n")])
    );
}

#[test]
fn longer_or_indented_markers_are_content() {
    let text = "a: |\n  ---\n ---\n----\n---x\n....\n";
    assert_eq!(documents(text), owned(&[(1, text)]));
}

#[test]
fn dots_end_a_document() {
    assert_eq!(
        documents("a: 1\n...\n# between\nb: 2\n... # c\n...\n"),
        owned(&[(1, "a: 1\n...\n"), (3, "# between\nb: 2\n... # c\n")])
    );
}

#[test]
fn comment_only_documents_are_skipped() {
    for text in ["", "\n\n", "# a\n", "---\n---\n---\n", "---\n# a\n \n--- # b\n...\n", "\u{FEFF}# a\n---\n"]
    {
        assert_eq!(documents(text), [], "{text:?}");
    }
    assert_eq!(documents("# a\n---\n# b\n---\nc: 1\n---\n"), owned(&[(4, "---\nc: 1\n")]));
}

#[test]
fn explicit_null_is_a_document() {
    assert_eq!(documents("--- ~\n---\nnull\n"), owned(&[(1, "--- ~\n"), (2, "---\nnull\n")]));
}

#[test]
fn directives_belong_to_next_document() {
    assert_eq!(
        documents("# c\n%YAML 1.2\n---\na: 1\n...\n%TAG !x! y:\n---\nb: 2\n"),
        owned(&[(1, "# c\n%YAML 1.2\n---\na: 1\n...\n"), (6, "%TAG !x! y:\n---\nb: 2\n")])
    );
    // A directive without a document is left to the parser, which rejects it.
    assert_eq!(documents("%YAML 1.2\n"), owned(&[(1, "%YAML 1.2\n")]));
    assert!(yaml::parse(&hotseat_document::SourceText::new("x", "%YAML 1.2\n", 1)).is_err());
}

#[test]
fn accepts_crlf_and_byte_order_mark() {
    assert_eq!(
        documents("\u{FEFF}a: 1\r\n---\r\nb: 2\r\n...\r\n\u{FEFF}c: 3\r\n\u{FEFF}---\r\nd: 4\r\n"),
        owned(&[(1, "a: 1\r\n"), (2, "---\r\nb: 2\r\n...\r\n"), (5, "c: 3\r\n"), (6, "---\r\nd: 4\r\n")])
    );
}

#[test]
fn lone_carriage_return_ends_comment() {
    assert_eq!(documents("# c\rname: x\r"), owned(&[(1, "# c\rname: x\r")]));
    assert_eq!(documents("--- # c\rname: x\r"), owned(&[(1, "--- # c\rname: x\r")]));
}

#[test]
fn invalid_utf8_affects_only_its_document() {
    assert_eq!(
        split(&b"a: 1\n---\nb: \xC3\xA9 \xFF\n---\nc: 3\n"[..]),
        [
            Ok((1, "a: 1\n".to_owned())),
            Err("suite.yaml:3:6: this is not UTF-8".to_owned()),
            Ok((4, "---\nc: 3\n".to_owned())),
        ]
    );
}

#[test]
fn utf16_is_reported_by_name() {
    let mistake = yaml::documents("suite.yaml", &b"\xFF\xFEa\0:\0"[..]).next().expect("there is something");
    assert_eq!(
        mistake.expect_err("it is not UTF-8").help.as_deref(),
        Some("the file is UTF-16; save it as UTF-8")
    );
}

/// Returns its bytes in single reads, then fails.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::Error::other("the disk is gone"));
        }
        self.0.read(into)
    }
}

#[test]
fn read_error_ends_stream() {
    let reader = BufReader::new(Failing(b"a: 1\n---\nb: 2\n"));
    assert_eq!(
        split(reader),
        [
            Ok((1, "a: 1\n".to_owned())),
            Err("suite.yaml:4:1: the file cannot be read: the disk is gone".to_owned())
        ]
    );
}

#[test]
fn reads_only_as_far_as_needed() {
    let text = "---\na: 1\n".repeat(10_000);
    let mut reader = BufReader::with_capacity(64, text.as_bytes());
    let first = yaml::documents("suite.yaml", &mut reader).next();
    assert!(matches!(first, Some(Ok(source)) if source.text == "---\na: 1\n"));
    assert!(reader.get_ref().len() > text.len() - 200, "{} bytes are left", reader.get_ref().len());
}

#[test]
fn rejects_endless_document() {
    let endless = BufReader::new(io::repeat(b'x'));
    assert_eq!(split(endless), [Err("suite.yaml:1:1: this document is larger than 64 MiB".to_owned())]);
}

const LINES: &[&str] = &[
    "---\n",
    "---\r\n",
    "--- a\n",
    "--- # c\n",
    "...\n",
    "... # c\n",
    "... x\n",
    "a: 1\n",
    "a: é😀\r\n",
    "# c\n",
    "\n",
    " \t\n",
    "%YAML 1.2\n",
    "----\n",
    "---x\n",
    " ---\n",
    "\u{FEFF}",
    "a: 1",
    "\r",
    "---",
];

/// A one-line document.
fn any_document() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![
        any::<i64>().prop_map(serde_json::Value::from),
        any::<String>().prop_map(serde_json::Value::from),
        prop::collection::vec(any::<String>(), 0..3).prop_map(serde_json::Value::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn buffer_size_does_not_change_result(
        lines in prop::collection::vec(prop::sample::select(LINES), 0..20),
        garbage in prop::option::of((any::<u8>(), any::<prop::sample::Index>())),
        capacity in 1usize..9,
    ) {
        let mut bytes = lines.concat().into_bytes();
        if let Some((byte, index)) = garbage {
            let index = index.index(bytes.len() + 1);
            bytes.insert(index, byte);
        }
        let whole = split(bytes.as_slice());
        prop_assert_eq!(split(BufReader::with_capacity(capacity, bytes.as_slice())), whole);
    }

    #[test]
    fn no_content_line_is_lost(lines in prop::collection::vec(prop::sample::select(LINES), 0..20)) {
        let text = lines.concat();
        let found: String = documents(&text).into_iter().map(|(_, text)| text).collect();
        prop_assert_eq!(found.matches("a: ").count(), text.matches("a: ").count());
    }

    #[test]
    fn documents_start_at_their_line(lines in prop::collection::vec(prop::sample::select(LINES), 0..20)) {
        let text = lines.concat().replace('\u{FEFF}', "");
        for (line, document) in documents(&text) {
            let start: usize = text.split_inclusive('\n').take(line as usize - 1).map(str::len).sum();
            prop_assert!(text[start..].starts_with(&document), "{document:?} does not begin on line {line}");
        }
    }

    #[test]
    fn joined_documents_split_again(values in prop::collection::vec(any_document(), 0..6)) {
        let text: String = values.iter().map(|value| format!("---\n{value}\n")).collect();
        let found: Vec<_> = yaml::documents("suite.yaml", text.as_bytes())
            .map(|source| yaml::parse(&source.expect("it is UTF-8")).expect("it is valid").to_json())
            .collect();
        prop_assert_eq!(found, values);
    }
}
