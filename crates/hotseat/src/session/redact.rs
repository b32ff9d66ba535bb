//! Secrets are replaced before an event leaves the session, so nothing behind it can leak them.
//!
//! A secret is found as it is, and in the forms that tools give it: escaped as in JSON, to any depth of JSON inside
//! JSON; percent-encoded as in URLs; base64 and hex.

use std::borrow::Cow;
use std::collections::HashMap;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hotseat_trace::{Failure, Payload, Record};
use serde_json::Value;

/// Values shorter than this are not secrets worth the name, and redacting them would mangle every text.
const MIN_SECRET_BYTES: usize = 4;

/// Base64 and hex of values shorter than this are too short to be told from other text.
const MIN_ENCODED_SECRET_BYTES: usize = 8;

/// How many levels of escaping are undone in search of secrets: JSON that is quoted within JSON, and so on.
const MAX_ESCAPE_LEVELS: usize = 8;

/// Replaces secret values wherever they stand.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    secrets: Option<Arc<SecretPatterns>>,
}

/// The secrets of a redactor, compiled to be searched for together.
#[derive(Debug)]
struct SecretPatterns {
    automaton: AhoCorasick,
    /// What replaces each pattern of the automaton.
    marks: Vec<String>,
}

impl Redactor {
    /// Redacts the given values; each is replaced by `[redacted:NAME]`. Very short values are let through.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut patterns: Vec<Vec<u8>> = Vec::new();
        let mut marks = Vec::new();
        for (name, value) in secrets {
            if value.len() < MIN_SECRET_BYTES {
                continue;
            }
            let mark = format!("[redacted:{name}]");
            for form in iter::once(value.clone().into_bytes()).chain(encoded_forms(value.as_bytes())) {
                patterns.push(form);
                marks.push(mark.clone());
            }
        }
        if patterns.is_empty() {
            return Redactor::default();
        }
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns);
        Redactor { secrets: automaton.ok().map(|automaton| Arc::new(SecretPatterns { automaton, marks })) }
    }

    /// Whether it takes out a secret of this name.
    pub fn knows(&self, name: &str) -> bool {
        let mark = format!("[redacted:{name}]");
        self.secrets.as_ref().is_some_and(|secrets| secrets.marks.contains(&mark))
    }

    /// A text without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.replaced(text, |mark, _, clean| clean.push_str(mark))
    }

    /// A text in which an `x` stands for each byte of a secret, so that everything stays in its place.
    pub fn masked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.replaced(text, |_, bytes, masked| masked.extend(iter::repeat_n('x', bytes)))
    }

    /// Replaces each secret by what `replace` writes, which is given the mark and the length in bytes.
    fn replaced<'a>(&self, text: &'a str, replace: impl Fn(&str, usize, &mut String)) -> Cow<'a, str> {
        let Some(secrets) = &self.secrets else { return Cow::Borrowed(text) };
        let found = secrets.find(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut clean = String::with_capacity(text.len());
        let mut end = 0;
        for SecretMatch { span, pattern } in found {
            clean.push_str(&text[end..span.start]);
            replace(&secrets.marks[pattern], span.len(), &mut clean);
            end = span.end;
        }
        clean.push_str(&text[end..]);
        Cow::Owned(clean)
    }

    /// An event without secrets.
    pub fn payload(&self, payload: Payload) -> Payload {
        let Some(secrets) = &self.secrets else { return payload };
        let Ok(mut members) = payload.to_json() else { return payload };
        let with_numbers = secrets.numbers_in(&members).then(|| {
            let mut members = members.clone();
            self.redact(&mut members, Numbers::Redacted);
            members
        });
        // A number that is part of the event's own form cannot become text: then only texts are redacted. These still
        // fit their type; ids that were secrets change too.
        let type_name = payload.type_name();
        if let Some(clean) = with_numbers.and_then(|members| Payload::from_json(type_name, members).ok()) {
            return clean;
        }
        match self.redact(&mut members, Numbers::Kept) {
            true => Payload::from_json(type_name, members).unwrap_or(payload),
            false => payload,
        }
    }

    /// A value without secrets.
    pub fn json(&self, mut value: Value) -> Value {
        self.redact(&mut value, Numbers::Redacted);
        value
    }

    /// A failure without secrets.
    pub fn failure(&self, mut failure: Failure) -> Failure {
        failure.message = self.text(&failure.message).into_owned();
        failure.detail = failure.detail.map(|detail| self.text(&detail).into_owned());
        failure
    }

    /// Takes out secrets that were received in pieces: the deltas of one message or call, which whoever reads the
    /// raw events would put together again. The first piece then holds the whole text without them.
    pub fn pieces(&self, events: &mut [Record]) {
        if self.secrets.is_none() {
            return;
        }
        let mut texts: Vec<Pieced> = Vec::new();
        // The last text of each thing that texts are of.
        let mut last: HashMap<Option<String>, usize> = HashMap::new();
        for (place, event) in events.iter().enumerate() {
            let Payload::Raw(raw) = &event.payload else { continue };
            for Piece { of, pointer } in pieces(&raw.event) {
                // A piece that does not say what it belongs to goes on with what the last one belongs to.
                let known = if of.is_none() { texts.len().checked_sub(1) } else { last.get(&of).copied() };
                match known {
                    Some(known) => texts[known].places.push((place, pointer)),
                    None => {
                        last.insert(of, texts.len());
                        texts.push(Pieced { places: vec![(place, pointer)] });
                    }
                }
            }
        }
        for Pieced { places } in texts {
            let text = |place: &(usize, String)| match &events[place.0].payload {
                Payload::Raw(raw) => raw.event.pointer(&place.1)?.as_str().map(str::to_string),
                _ => None,
            };
            let whole: String = places.iter().filter_map(text).collect();
            let Cow::Owned(clean) = self.text(&whole) else { continue };
            let mut clean = std::iter::once(clean).chain(std::iter::repeat_with(String::new));
            for (place, pointer) in places {
                if let Payload::Raw(raw) = &mut events[place].event.payload
                    && let Some(piece) = raw.event.pointer_mut(&pointer)
                {
                    *piece = Value::String(clean.next().unwrap_or_default());
                }
            }
        }
    }

    /// Redacts a value in place. Returns whether anything was replaced.
    fn redact(&self, value: &mut Value, numbers: Numbers) -> bool {
        let Some(secrets) = &self.secrets else { return false };
        match value {
            Value::String(text) => match self.text(text) {
                Cow::Owned(clean) => {
                    *text = clean;
                    true
                }
                Cow::Borrowed(_) => false,
            },
            Value::Array(values) => {
                values.iter_mut().fold(false, |changed, value| self.redact(value, numbers) | changed)
            }
            Value::Object(members) => {
                let mut changed = false;
                let entries = std::mem::take(members);
                members.extend(entries.into_iter().map(|(key, mut value)| {
                    changed |= self.redact(&mut value, numbers);
                    match self.text(&key) {
                        Cow::Owned(clean) => {
                            changed = true;
                            (clean, value)
                        }
                        Cow::Borrowed(_) => (key, value),
                    }
                }));
                changed
            }
            Value::Number(number) => match (numbers, secrets.number(&number.to_string())) {
                (Numbers::Redacted, Some(mark)) => {
                    *value = Value::String(mark.to_string());
                    true
                }
                (Numbers::Redacted | Numbers::Kept, _) => false,
            },
            Value::Null | Value::Bool(_) => false,
        }
    }
}

/// Whether numbers that are secrets become text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Redacted,
    Kept,
}

/// A secret in a text.
struct SecretMatch {
    /// Where it stands, in bytes of the text.
    span: Range<usize>,
    /// Which pattern of the automaton it is.
    pattern: usize,
}

impl SecretPatterns {
    /// All secrets in a text, in order and without overlaps, whatever they are escaped as.
    fn find(&self, text: &str) -> Vec<SecretMatch> {
        let mut found: Vec<SecretMatch> = self
            .automaton
            .find_iter(text)
            .map(|found| SecretMatch { span: found.range(), pattern: found.pattern().as_usize() })
            .collect();
        let has_escapes = text.contains('\\');
        if !has_escapes && !text.contains('%') {
            return found;
        }
        let mut level = DecodedText::new(text);
        for _ in 0..MAX_ESCAPE_LEVELS {
            self.find_decoded(level.decode(percent_escape).as_ref(), &mut found);
            let Some(next) = level.decode(json_escape) else { break };
            self.find_decoded(Some(&next), &mut found);
            level = next;
        }
        without_overlaps(found)
    }

    fn find_decoded(&self, decoded: Option<&DecodedText>, found: &mut Vec<SecretMatch>) {
        let Some(decoded) = decoded else { return };
        found.extend(self.automaton.find_iter(&decoded.bytes).map(|hit| SecretMatch {
            span: decoded.starts[hit.start()]..decoded.starts[hit.end()],
            pattern: hit.pattern().as_usize(),
        }));
    }

    /// What replaces a number that is a secret as a whole.
    fn number(&self, digits: &str) -> Option<&str> {
        let found = self.automaton.find(digits)?;
        (found.len() == digits.len()).then(|| self.marks[found.pattern().as_usize()].as_str())
    }

    fn numbers_in(&self, value: &Value) -> bool {
        match value {
            Value::Number(number) => self.number(&number.to_string()).is_some(),
            Value::Array(values) => values.iter().any(|value| self.numbers_in(value)),
            Value::Object(members) => members.values().any(|value| self.numbers_in(value)),
            Value::Null | Value::Bool(_) | Value::String(_) => false,
        }
    }
}

/// Joins matches that overlap: the first one's mark stands for all of them.
fn without_overlaps(mut found: Vec<SecretMatch>) -> Vec<SecretMatch> {
    found.sort_by_key(|found| (found.span.start, std::cmp::Reverse(found.span.end)));
    let mut apart: Vec<SecretMatch> = Vec::with_capacity(found.len());
    for next in found {
        match apart.last_mut() {
            Some(last) if next.span.start < last.span.end => last.span.end = last.span.end.max(next.span.end),
            _ => apart.push(next),
        }
    }
    apart
}

/// A text whose escapes were undone, and where each of its bytes stands in the original text.
struct DecodedText {
    bytes: Vec<u8>,
    /// The offset in the original text of each byte, and at the end the length of the original text. All bytes that one
    /// escape stands for have the offset of that escape.
    starts: Vec<usize>,
}

/// An escape sequence and the bytes that it stands for.
struct EscapeSequence {
    /// How many bytes the sequence itself has.
    length: usize,
    /// What it stands for: the first `count` of these bytes.
    bytes: [u8; 4],
    count: usize,
}

impl DecodedText {
    fn new(text: &str) -> Self {
        DecodedText { bytes: text.as_bytes().to_vec(), starts: (0..=text.len()).collect() }
    }

    /// The text with one level of escapes undone; nothing if it has none. `escape` reads a sequence at the beginning of
    /// some bytes.
    fn decode(&self, escape: impl Fn(&[u8]) -> Option<EscapeSequence>) -> Option<DecodedText> {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        let mut starts = Vec::with_capacity(self.starts.len());
        let mut offset = 0;
        while let Some(&byte) = self.bytes.get(offset) {
            let sequence = escape(&self.bytes[offset..]);
            let literal = EscapeSequence { length: 1, bytes: [byte, 0, 0, 0], count: 1 };
            let sequence = sequence.unwrap_or(literal);
            bytes.extend_from_slice(&sequence.bytes[..sequence.count]);
            starts.extend(iter::repeat_n(self.starts[offset], sequence.count));
            offset += sequence.length;
        }
        starts.push(*self.starts.last()?);
        (bytes.len() < self.bytes.len()).then_some(DecodedText { bytes, starts })
    }
}

/// Reads an escape sequence of JSON strings (RFC 8259, section 7).
fn json_escape(bytes: &[u8]) -> Option<EscapeSequence> {
    let [b'\\', kind, ..] = *bytes else { return None };
    let short = |character| Some((character, 2));
    let (character, length) = match kind {
        b'"' | b'\\' | b'/' => short(char::from(kind)),
        b'b' => short('\u{8}'),
        b'f' => short('\u{c}'),
        b'n' => short('\n'),
        b'r' => short('\r'),
        b't' => short('\t'),
        b'u' => {
            let unit =
                |bytes: &[u8]| u32::from_str_radix(std::str::from_utf8(bytes.get(2..6)?).ok()?, 16).ok();
            let first = unit(bytes)?;
            let low = || match bytes.get(6..)? {
                rest @ [b'\\', b'u', ..] => unit(rest).filter(|low| (0xDC00..0xE000).contains(low)),
                _ => None,
            };
            match first {
                0xD800..0xDC00 => {
                    let scalar = 0x10000 + ((first - 0xD800) << 10) + (low()? - 0xDC00);
                    char::from_u32(scalar).map(|character| (character, 12))
                }
                _ => char::from_u32(first).map(|character| (character, 6)),
            }
        }
        _ => None,
    }?;
    let mut bytes = [0; 4];
    let count = character.encode_utf8(&mut bytes).len();
    Some(EscapeSequence { length, bytes, count })
}

/// Reads a percent-encoded byte (RFC 3986, section 2.1).
fn percent_escape(bytes: &[u8]) -> Option<EscapeSequence> {
    let [b'%', high, low, ..] = *bytes else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(EscapeSequence { length: 3, bytes: [digit(high)? << 4 | digit(low)?, 0, 0, 0], count: 1 })
}

/// A value as base64 and hex, in all variants in which it can stand within encoded text.
fn encoded_forms(value: &[u8]) -> Vec<Vec<u8>> {
    if value.len() < MIN_ENCODED_SECRET_BYTES {
        return Vec::new();
    }
    let hex = |digits: &[u8; 16]| -> Vec<u8> {
        value
            .iter()
            .flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]])
            .collect()
    };
    let mut forms = vec![hex(b"0123456789abcdef"), hex(b"0123456789ABCDEF")];
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        // Alone, with the characters that belong to it only in part.
        forms.push(engine.encode(value).into_bytes());
        // Within other bytes: three bytes are four characters, so there are three ways to begin.
        for before in 0..3 {
            let bytes = [&[0; 2][..before], value].concat();
            let characters = engine.encode(&bytes).into_bytes();
            let (first, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
            forms.push(characters[first..end].to_vec());
        }
    }
    forms
}

/// A text that was received in pieces.
struct Pieced {
    /// The events of its pieces, and where in each the piece stands.
    places: Vec<(usize, String)>,
}

/// A piece of a text in a received event.
struct Piece {
    /// Which text it belongs to, where the event says.
    of: Option<String>,
    /// Where in the event it stands.
    pointer: String,
}

/// The pieces of texts in a received event: deltas of AG-UI and of programs, and those of chat completions.
fn pieces(event: &Value) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if event.get("delta").is_some_and(Value::is_string) {
        let of =
            ["messageId", "toolCallId"].iter().find_map(|key| event.get(key)?.as_str()).map(str::to_string);
        pieces.push(Piece { of, pointer: "/delta".to_string() });
    }
    let id = event.get("id").and_then(Value::as_str).unwrap_or_default();
    for (number, choice) in event.get("choices").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let Some(delta) = choice.get("delta") else { continue };
        for key in ["content", "refusal", "reasoning_content", "reasoning"] {
            if delta.get(key).is_some_and(Value::is_string) {
                let pointer = format!("/choices/{number}/delta/{key}");
                pieces.push(Piece { of: Some(format!("{id} {number} {key}")), pointer });
            }
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        for (place, call) in calls.enumerate() {
            let pointer = format!("/choices/{number}/delta/tool_calls/{place}/function/arguments");
            // Without an index the pieces of all calls are taken for those of one: too much is redacted then.
            let index = call.get("index").cloned().unwrap_or_default();
            pieces.push(Piece { of: Some(format!("{id} {number} call {index}")), pointer });
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use hotseat_trace::ToolCompleted;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_found_in_keys_values_and_escaped_text() {
        let redactor = Redactor::new([("TOKEN".to_string(), "s\"cret".to_string())]);
        let payload = ToolCompleted {
            turn_id: "turn-1".into(),
            tool_call_id: "c".into(),
            output: json!({"a s\"cret": ["s\"cret", "{\"t\":\"s\\\"cret\"}"]}),
            origin: Default::default(),
        };
        let Payload::ToolCompleted(clean) = redactor.payload(payload.into()) else { panic!("another type") };
        assert_eq!(
            clean.output,
            json!({"a [redacted:TOKEN]": ["[redacted:TOKEN]", "{\"t\":\"[redacted:TOKEN]\"}"]})
        );
    }

    /// A text within JSON within JSON, as often as said.
    fn nested(text: &str, levels: usize) -> String {
        (0..levels).fold(text.to_string(), |inner, _| Value::String(inner).to_string())
    }

    fn percent_encoded(text: &str) -> String {
        text.bytes().map(|byte| format!("%{byte:02x}")).collect()
    }

    fn escaped_by_code_units(text: &str) -> String {
        text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect()
    }

    proptest! {
        /// Whatever a secret consists of, and whatever surrounds it: no form of it is left.
        #[test]
        fn no_form_of_a_secret_is_left(
            secret in "[ -~\n\u{e9}\u{1f600}]{8,24}",
            before in "[a-z\\\\%\"]{0,4}",
            after in "[g-z%]{0,4}",
            levels in 0..=MAX_ESCAPE_LEVELS,
        ) {
            // What ends in an open escape sequence would make another secret of it.
            prop_assume!(!before.ends_with(['\\', '%']) && !secret.contains("[redacted"));
            let redactor = Redactor::new([("KEY".to_string(), secret.clone())]);
            let mark = "[redacted:KEY]";
            let slashes = Value::String(secret.clone()).to_string().replace('/', "\\/");
            for form in [nested(&secret, levels), slashes, escaped_by_code_units(&secret), percent_encoded(&secret)] {
                let said = format!("{before} {form}{after}");
                let clean = redactor.text(&said);
                prop_assert!(clean.contains(mark), "{said} -> {clean}");
                prop_assert!(!clean.contains(form.trim_matches(['"', '\\'])), "{said} -> {clean}");
            }
            for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                let around = [before.as_bytes(), secret.as_bytes(), after.as_bytes()].concat();
                let clean = redactor.text(&engine.encode(around)).into_owned();
                prop_assert!(clean.contains(mark), "{clean}");
            }
            let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
            let said = format!("zz{hex}zz");
            prop_assert_eq!(redactor.text(&said), format!("zz{mark}zz"));
        }

        /// Texts without a secret are not changed, whatever escapes they have.
        #[test]
        fn other_texts_stay_as_they_are(text in "[a-f0-9%u\\\\\"n\u{e9}]{0,40}") {
            let redactor = Redactor::new([("KEY".to_string(), "not among these".to_string())]);
            prop_assert_eq!(redactor.text(&text), text.as_str());
        }
    }

    #[test]
    fn a_number_that_is_a_secret_becomes_text_where_it_may() {
        let redactor = Redactor::new([("PIN".to_string(), "48151623".to_string())]);
        assert_eq!(
            redactor.json(json!({"pin": 48151623, "n": 481516230})),
            json!({"pin": "[redacted:PIN]", "n": 481516230})
        );
    }

    #[test]
    fn values_that_would_mangle_every_text_are_let_through() {
        let redactor =
            Redactor::new([("PORT".to_string(), "1".to_string()), ("EMPTY".to_string(), String::new())]);
        assert_eq!(redactor.text("order 1 of 11"), "order 1 of 11");
    }
}
