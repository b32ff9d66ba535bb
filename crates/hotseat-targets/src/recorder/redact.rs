//! Replaces secrets before an event leaves the session, so that later consumers cannot leak them.
//!
//! Secrets are found as plain text and in common encodings: JSON escapes, also of JSON nested in JSON
//! strings; regular expressions; percent-encoding; base64 and hex.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hotseat_checks::{AnswerContent, find_json};
use hotseat_trace::{AttemptFailure, EventRecord, Payload};
use serde_json::Value;

/// Beginning of the text that replaces a secret.
pub const REDACTION_MARK: &str = "[redacted:";

/// Minimum length of a secret. Redacting shorter values would mangle ordinary text.
const MIN_SECRET_BYTES: usize = 4;

/// Values that are no secrets: words of every text, and what variables for secrets contain where none is needed, as on a
/// database for tests or a model on this machine. Redacted, they would change what an agent says and the names of its tools.
const COMMON_VALUES: [&str; 32] = [
    "admin",
    "api-key",
    "apikey",
    "bearer",
    "changeme",
    "default",
    "development",
    "dummy",
    "example",
    "fake",
    "false",
    "guest",
    "local",
    "localhost",
    "mysql",
    "none",
    "null",
    "ollama",
    "password",
    "placeholder",
    "postgres",
    "production",
    "redis",
    "root",
    "secret",
    "staging",
    "test",
    "testing",
    "token",
    "true",
    "user",
    "username",
];

/// Minimum length of a secret that is also searched as base64 and hex; shorter ones match ordinary text.
const MIN_ENCODED_SECRET_BYTES: usize = 8;

/// Mark of omitted text.
const ELLIPSIS: &str = "…";

/// Maximum number of escape levels that are decoded, for JSON quoted within JSON.
const MAX_ESCAPE_LEVELS: usize = 8;

/// Minimum number of bytes decoded at a time.
const MIN_WINDOW_BYTES: usize = 256 * 1024;

/// Number of bytes up to which a byte of a secret may be escaped, to be found across two windows.
const MAX_ESCAPED_BYTES: usize = 64;

/// Replaces secret values in texts, JSON and events.
#[derive(Debug, Clone, Default)]
pub struct SecretRedactor {
    secrets: Option<Arc<SecretPatterns>>,
}

/// Secrets of a redactor, compiled for one combined search. `Debug` does not show them.
struct SecretPatterns {
    automaton: AhoCorasick,
    /// The patterns of the automaton.
    patterns: Vec<Vec<u8>>,
    /// Replacement text of each pattern.
    marks: Vec<String>,
    /// The secrets, by replacement text.
    values: HashMap<String, String>,
    /// Length of the longest pattern in bytes.
    longest: usize,
}

impl fmt::Debug for SecretPatterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretPatterns").finish_non_exhaustive()
    }
}

impl SecretRedactor {
    /// Creates a redactor that replaces each value by `[redacted:NAME]`. Very short values and common words are ignored.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut patterns: Vec<Vec<u8>> = Vec::new();
        let mut marks = Vec::new();
        let mut values = HashMap::new();
        for (name, value) in secrets {
            let is_common = || COMMON_VALUES.contains(&value.to_ascii_lowercase().as_str());
            if value.len() < MIN_SECRET_BYTES || is_common() {
                continue;
            }
            let mark = format!("{REDACTION_MARK}{name}]");
            let in_pattern = Some(hotseat_checks::escape(&value)).filter(|escaped| *escaped != value);
            // A state delta names its member by a JSON Pointer.
            let in_pointer =
                Some(value.replace('~', "~0").replace('/', "~1")).filter(|escaped| *escaped != value);
            // Escaped text is decoded, but a part of it may be cut off.
            let quoted = Value::String(value.clone()).to_string();
            let in_json = Some(quoted[1..quoted.len() - 1].to_string()).filter(|escaped| *escaped != value);
            let trimmed = Some(value.trim().to_string())
                .filter(|trimmed| *trimmed != value && trimmed.len() >= MIN_SECRET_BYTES);
            let plain =
                iter::once(value.clone()).chain(trimmed).chain(in_pattern).chain(in_pointer).chain(in_json);
            let plain = plain.map(String::into_bytes);
            for form in plain.chain(encoded_forms(value.as_bytes())) {
                patterns.push(form);
                marks.push(mark.clone());
            }
            values.insert(mark, value);
        }
        if patterns.is_empty() {
            return SecretRedactor::default();
        }
        let longest = patterns.iter().map(Vec::len).max().unwrap_or_default();
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns);
        SecretRedactor {
            secrets: automaton
                .ok()
                .map(|automaton| Arc::new(SecretPatterns { automaton, patterns, marks, values, longest })),
        }
    }

    /// Returns true if there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_none()
    }

    /// Returns true if the redactor has a secret of this name.
    pub fn has_secret(&self, name: &str) -> bool {
        let mark = format!("{REDACTION_MARK}{name}]");
        self.secrets.as_ref().is_some_and(|secrets| secrets.marks.contains(&mark))
    }

    /// Returns the text with secrets replaced. A secret number in JSON becomes a string, so that the text remains JSON.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some((secrets, found)) = self.find(text) else { return Cow::Borrowed(text) };
        let clean = secrets.replace_in(text, 0..text.len(), &found);
        let is_json = |text: &str| matches!(find_json(text), AnswerContent::Json(..));
        match is_json(text) && !is_json(&clean) {
            true => Cow::Owned(secrets.replace_with_quotes(text, &found)),
            false => Cow::Owned(clean),
        }
    }

    /// Like [`SecretRedactor::text`] for a message that may contain shortened texts: parts of secrets beside an ellipsis
    /// are replaced too.
    pub fn message<'a>(&self, message: &'a str) -> Cow<'a, str> {
        let clean = self.text(message);
        let Some(secrets) = &self.secrets else { return clean };
        match secrets.find_shortened(&clean) {
            found if found.is_empty() => clean,
            found => Cow::Owned(secrets.replace_in(&clean, 0..clean.len(), &found)),
        }
    }

    /// Returns the secrets in a text, if it has any.
    fn find(&self, text: &str) -> Option<(&SecretPatterns, Vec<SecretMatch>)> {
        let secrets = self.secrets.as_deref()?;
        Some((secrets, secrets.find(text))).filter(|(_, found)| !found.is_empty())
    }

    /// Returns a redacted text with the secrets in place of the selected marks. An encoded secret is returned as plain text.
    pub fn reveal(&self, text: &str, is_selected: impl Fn(&str) -> bool) -> String {
        let Some(secrets) = &self.secrets else { return text.to_string() };
        let mut original = String::with_capacity(text.len());
        let mut rest = text;
        let longest = secrets.marks.iter().map(String::len).max().unwrap_or_default();
        while let Some(start) = rest.find(REDACTION_MARK) {
            // A text may contain many marks without an end.
            let end = rest.as_bytes()[start..].iter().take(longest).position(|byte| *byte == b']');
            let mark = end.map_or(REDACTION_MARK, |end| &rest[start..=start + end]);
            original.push_str(&rest[..start]);
            original.push_str(
                secrets.values.get(mark).filter(|_| is_selected(mark)).map_or(mark, String::as_str),
            );
            rest = &rest[start + mark.len()..];
        }
        original + rest
    }

    /// Returns the text with each byte of a secret replaced by `x`, so that offsets stay the same.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.replace_secrets(text, |_, bytes, masked| masked.extend(iter::repeat_n('x', bytes)))
    }

    /// Replaces each secret by the output of `replace`, which receives the replacement mark and the length in
    /// bytes.
    pub fn replace_secrets<'a>(
        &self,
        text: &'a str,
        replace: impl Fn(&str, usize, &mut String),
    ) -> Cow<'a, str> {
        let Some((secrets, found)) = self.find(text) else { return Cow::Borrowed(text) };
        Cow::Owned(secrets.replace_by(text, 0..text.len(), &found, replace))
    }

    /// Returns the event with secrets replaced.
    pub fn payload(&self, mut payload: Payload) -> Payload {
        let Some(secrets) = &self.secrets else { return payload };
        // A text may be very long, so it is not copied into JSON.
        let text = payload.agent_text_mut().map(std::mem::take);
        let mut payload = self.members(secrets, payload);
        if let (Some(known), Some(text)) = (payload.agent_text_mut(), text) {
            *known = match self.text(&text) {
                Cow::Owned(clean) => clean.into(),
                Cow::Borrowed(_) => text,
            };
        }
        payload
    }

    /// Returns the event with secrets replaced in all members.
    fn members(&self, secrets: &SecretPatterns, payload: Payload) -> Payload {
        let Ok(mut members) = payload.to_json() else { return payload };
        // Messages of Hotseat contain shortened texts.
        let mut has_changed_message = self.redact_messages(&mut members);
        has_changed_message |= members.get_mut("error").is_some_and(|error| self.redact_messages(error));
        let with_numbers = secrets.has_secret_number(&members).then(|| {
            let mut members = members.clone();
            self.redact(&mut members, NumberPolicy::Redacted);
            members
        });
        // A number in a fixed field of the event cannot become text; then only strings are redacted. Ids that
        // were secrets change too.
        let type_name = payload.type_name();
        if let Some(clean) = with_numbers.and_then(|members| Payload::from_json(type_name, members).ok()) {
            return clean;
        }
        match self.redact(&mut members, NumberPolicy::Kept) || has_changed_message {
            true => Payload::from_json(type_name, members).unwrap_or(payload),
            false => payload,
        }
    }

    /// Replaces secrets in the shortened texts of an object as in a [message](SecretRedactor::message). Returns true if
    /// anything was replaced.
    fn redact_messages(&self, value: &mut Value) -> bool {
        let mut is_changed = false;
        for member in value.as_object_mut().into_iter().flat_map(|members| members.values_mut()) {
            if let Value::String(text) = member
                && text.contains(ELLIPSIS)
                && let Cow::Owned(clean) = self.message(text)
            {
                *text = clean;
                is_changed = true;
            }
        }
        is_changed
    }

    /// Returns the value with secrets replaced.
    pub fn json(&self, mut value: Value) -> Value {
        self.redact(&mut value, NumberPolicy::Redacted);
        value
    }

    /// Returns the failure with secrets replaced.
    pub fn failure(&self, mut failure: AttemptFailure) -> AttemptFailure {
        failure.message = self.message(&failure.message).into_owned();
        failure.detail = failure.detail.map(|detail| self.message(&detail).into_owned());
        failure.stack_trace.iter_mut().for_each(|call| *call = self.text(call).into_owned());
        failure
    }

    /// Replaces secrets that were received in pieces: deltas of one message or call, which a reader of the
    /// raw events could join again. The first piece then holds the whole redacted text.
    pub fn redact_pieces(&self, events: &mut [EventRecord]) {
        if self.secrets.is_none() {
            return;
        }
        let mut texts: Vec<SplitText> = Vec::new();
        // Index of the last text of each owner.
        let mut last: HashMap<Option<String>, usize> = HashMap::new();
        for (place, event) in events.iter().enumerate() {
            let raw = match &event.payload {
                Payload::Raw(raw) => raw,
                Payload::TurnStarted(_) => {
                    last.clear();
                    continue;
                }
                _ => continue,
            };
            for TextPiece { owner: of, pointer } in text_pieces(&raw.event) {
                // A piece without an owner continues the text of the previous piece.
                let known = if of.is_none() { texts.len().checked_sub(1) } else { last.get(&of).copied() };
                match known {
                    Some(known) => texts[known].places.push((place, pointer)),
                    None => {
                        last.insert(of, texts.len());
                        texts.push(SplitText { places: vec![(place, pointer)] });
                    }
                }
            }
        }
        for SplitText { places } in texts {
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

    /// Redacts a value in place. Returns true if anything was replaced.
    fn redact(&self, value: &mut Value, numbers: NumberPolicy) -> bool {
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
            Value::Number(number) => match (numbers, secrets.number_mark(&number.to_string())) {
                (NumberPolicy::Redacted, Some(mark)) => {
                    *value = Value::String(mark.to_string());
                    true
                }
                (NumberPolicy::Redacted | NumberPolicy::Kept, _) => false,
            },
            Value::Null | Value::Bool(_) => false,
        }
    }
}

/// Policy for numbers that are secrets: replace them by text or keep them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberPolicy {
    Redacted,
    Kept,
}

/// A match of a secret in a text.
struct SecretMatch {
    /// Byte range in the text.
    span: Range<usize>,
    /// Index of the pattern in the automaton.
    pattern: usize,
}

impl SecretPatterns {
    /// Returns all secrets in a text, in order and without overlaps, in plain or escaped form.
    fn find(&self, text: &str) -> Vec<SecretMatch> {
        let mut found: Vec<SecretMatch> = self
            .automaton
            .find_iter(text)
            .map(|found| SecretMatch { span: found.range(), pattern: found.pattern().as_usize() })
            .collect();
        // Decoding takes several times the memory of a text, so long texts are decoded in overlapping windows.
        let (bytes, overlap) = (text.as_bytes(), self.longest * MAX_ESCAPED_BYTES);
        let window = MIN_WINDOW_BYTES.max(4 * overlap);
        let mut start = 0;
        while start < bytes.len() {
            let end = bytes.len().min(start + window);
            self.find_escaped(&bytes[start..end], start, &mut found);
            if end == bytes.len() {
                break;
            }
            // A window does not begin between a backslash and what it escapes.
            let latest = end - overlap;
            let run = bytes[start..latest].iter().rev().take(overlap).take_while(|byte| **byte == b'\\');
            start = latest - run.count();
        }
        merge_overlaps(found)
    }

    /// Returns the parts of secrets that end or begin where a text was shortened. The ellipsis may stand behind a quotation
    /// mark.
    fn find_shortened(&self, text: &str) -> Vec<SecretMatch> {
        let mut found = Vec::new();
        if !text.contains(ELLIPSIS) {
            return found;
        }
        for (pattern, secret) in self.patterns.iter().enumerate() {
            let has = |part: &[u8]| memchr::memmem::find(text.as_bytes(), part).is_some();
            if has(&secret[..MIN_SECRET_BYTES.min(secret.len())]) {
                for (end, length) in shortened_parts(text.bytes(), secret, ELLIPSIS.as_bytes()) {
                    found.push(SecretMatch { span: end - length..end, pattern });
                }
            }
            if has(&secret[secret.len().saturating_sub(MIN_SECRET_BYTES)..]) {
                let mirrored: Vec<u8> = secret.iter().rev().copied().collect();
                let ellipsis: Vec<u8> = ELLIPSIS.bytes().rev().collect();
                for (end, length) in shortened_parts(text.bytes().rev(), &mirrored, &ellipsis) {
                    let start = text.len() - end;
                    found.push(SecretMatch { span: start..start + length, pattern });
                }
            }
        }
        merge_overlaps(found)
    }

    /// Returns a range of a text with these secrets replaced by their marks.
    fn replace_in(&self, text: &str, range: Range<usize>, found: &[SecretMatch]) -> String {
        self.replace_by(text, range, found, |mark, _, clean| clean.push_str(mark))
    }

    /// Like [`SecretPatterns::replace_in`]; `replace` receives the mark of a secret and its length in bytes.
    fn replace_by(
        &self,
        text: &str,
        range: Range<usize>,
        found: &[SecretMatch],
        replace: impl Fn(&str, usize, &mut String),
    ) -> String {
        let mut clean = String::with_capacity(range.len());
        let mut end = range.start;
        for SecretMatch { span, pattern } in found {
            clean.push_str(&text[end..span.start]);
            replace(&self.marks[*pattern], span.len(), &mut clean);
            end = span.end;
        }
        clean.push_str(&text[end..range.end]);
        clean
    }

    /// Like [`SecretPatterns::replace_in`] for JSON: replaces a whole number that contains secrets by a string.
    fn replace_with_quotes(&self, text: &str, found: &[SecretMatch]) -> String {
        let (mut clean, mut end, mut rest) = (String::with_capacity(text.len()), 0, found);
        for number in JsonNumbers::new(text) {
            let (before, others) =
                rest.split_at(rest.partition_point(|found| found.span.start < number.start));
            let (within, after) =
                others.split_at(others.partition_point(|found| found.span.start < number.end));
            let is_apart = before.last().is_none_or(|found| found.span.end <= number.start)
                && within.last().is_some_and(|found| found.span.end <= number.end);
            if is_apart {
                clean.push_str(&self.replace_in(text, end..number.start, before));
                let redacted = self.replace_in(text, number.clone(), within);
                clean.push_str(&Value::String(redacted).to_string());
                (end, rest) = (number.end, after);
            }
        }
        clean + &self.replace_in(text, end..text.len(), rest)
    }

    /// Adds the secrets in escaped form in a part of a text that begins at `offset`.
    fn find_escaped(&self, part: &[u8], offset: usize, found: &mut Vec<SecretMatch>) {
        if memchr::memchr2(b'\\', b'%', part).is_none() {
            return;
        }
        let mut level = DecodedText::new(part, offset);
        for _ in 0..MAX_ESCAPE_LEVELS {
            self.find_decoded(level.decode(percent_escape).as_ref(), found);
            let Some(next) = level.decode(json_escape) else { break };
            self.find_decoded(Some(&next), found);
            level = next;
        }
    }

    fn find_decoded(&self, decoded: Option<&DecodedText>, found: &mut Vec<SecretMatch>) {
        let Some(decoded) = decoded else { return };
        found.extend(self.automaton.find_iter(&decoded.bytes).map(|hit| SecretMatch {
            span: decoded.starts[hit.start()]..decoded.starts[hit.end()],
            pattern: hit.pattern().as_usize(),
        }));
    }

    /// Returns the replacement of a number that is a secret as a whole, except for its sign.
    fn number_mark(&self, number: &str) -> Option<&str> {
        let digits = number.trim_start_matches('-');
        let found = self.automaton.find(digits)?;
        (found.len() == digits.len()).then(|| self.marks[found.pattern().as_usize()].as_str())
    }

    fn has_secret_number(&self, value: &Value) -> bool {
        match value {
            Value::Number(number) => self.number_mark(&number.to_string()).is_some(),
            Value::Array(values) => values.iter().any(|value| self.has_secret_number(value)),
            Value::Object(members) => members.values().any(|value| self.has_secret_number(value)),
            Value::Null | Value::Bool(_) | Value::String(_) => false,
        }
    }
}

/// Ranges of a text that look like JSON numbers outside JSON strings.
struct JsonNumbers<'t> {
    text: &'t str,
    /// Start of the part that was not read.
    start: usize,
}

impl<'t> JsonNumbers<'t> {
    fn new(text: &'t str) -> Self {
        JsonNumbers { text, start: 0 }
    }
}

impl Iterator for JsonNumbers<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let rest = &self.text[self.start..];
            let found = rest.find(|c: char| c == '"' || c.is_ascii_digit() || c == '-')?;
            let start = self.start + found;
            let found = &self.text[start..];
            if found.starts_with('"') {
                self.start = start + json_string_end(found);
                continue;
            }
            let length = found.bytes().position(|byte| !is_number_byte(byte)).unwrap_or(found.len());
            self.start = start + length;
            return Some(start..self.start);
        }
    }
}

/// True for bytes of JSON numbers.
fn is_number_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns the end of the JSON string at the beginning of a text.
fn json_string_end(text: &str) -> usize {
    let mut is_escaped = false;
    let is_end = |byte: u8| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    };
    text.bytes().skip(1).position(is_end).map_or(text.len(), |place| place + 2)
}

/// Returns the end and the length of each beginning of `pattern` that ends at an ellipsis, or at a quotation mark before it.
/// The cost is linear.
fn shortened_parts(text: impl Iterator<Item = u8>, pattern: &[u8], ellipsis: &[u8]) -> Vec<(usize, usize)> {
    // Length of the longest shorter beginning that ends where a beginning ends.
    let mut shorter = vec![0; pattern.len()];
    let continued = |shorter: &[usize], mut length: usize, byte: u8| {
        while length > 0 && pattern.get(length) != Some(&byte) {
            length = shorter[length - 1];
        }
        length + usize::from(pattern.get(length) == Some(&byte))
    };
    for place in 1..pattern.len() {
        shorter[place] = continued(&shorter, shorter[place - 1], pattern[place]);
    }
    let mut parts = Vec::new();
    // The last bytes with the lengths before them: a quotation mark and an ellipsis.
    let mut recent: VecDeque<(u8, usize)> = VecDeque::new();
    let mut length = 0;
    for (place, byte) in text.enumerate() {
        if recent.len() > ellipsis.len() {
            recent.pop_front();
        }
        recent.push_back((byte, length));
        length = continued(&shorter, length, byte);
        let start = recent.len().saturating_sub(ellipsis.len());
        if byte != ellipsis[ellipsis.len() - 1]
            || !recent.iter().skip(start).map(|(byte, _)| byte).eq(ellipsis)
        {
            continue;
        }
        let end = place + 1 - ellipsis.len();
        let before_quote = recent.front().filter(|(byte, _)| start > 0 && is_quote(*byte));
        let ends =
            [(end, recent[start].1)].into_iter().chain(before_quote.map(|(_, length)| (end - 1, *length)));
        parts.extend(ends.filter(|(_, length)| *length >= MIN_SECRET_BYTES));
    }
    parts
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// Merges overlapping matches; the mark of the first one replaces all of them.
fn merge_overlaps(mut found: Vec<SecretMatch>) -> Vec<SecretMatch> {
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

/// A text with decoded escapes, and the original offset of each byte.
struct DecodedText {
    bytes: Vec<u8>,
    /// Original offset of each byte, followed by that of the end. All bytes of one escape
    /// have its offset.
    starts: Vec<usize>,
}

/// A decoded escape sequence.
struct EscapeSequence {
    /// Length of the sequence in bytes.
    length: usize,
    /// Decoded bytes, of which the first `count` are used.
    bytes: [u8; 4],
    count: usize,
}

impl DecodedText {
    /// Creates a text that is not decoded yet, and begins at `offset` of the original text.
    fn new(part: &[u8], offset: usize) -> Self {
        DecodedText { bytes: part.to_vec(), starts: (offset..=offset + part.len()).collect() }
    }

    /// Decodes one level of escapes; `None` if there are none. `escape` parses a sequence at the start of a
    /// byte slice.
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

/// Parses a JSON string escape (RFC 8259, section 7).
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

/// Parses a percent-encoded byte (RFC 3986, section 2.1).
fn percent_escape(bytes: &[u8]) -> Option<EscapeSequence> {
    let [b'%', high, low, ..] = *bytes else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(EscapeSequence { length: 3, bytes: [digit(high)? << 4 | digit(low)?, 0, 0, 0], count: 1 })
}

/// Returns base64 and hex encodings of a value, in all alignments in which they can occur inside encoded
/// text.
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
        // Standalone, including the last characters that only partly belong to it.
        forms.push(engine.encode(value).into_bytes());
        // Inside other bytes: three bytes make four characters, so there are three alignments.
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
struct SplitText {
    /// Event index and JSON pointer of each piece.
    places: Vec<(usize, String)>,
}

/// A piece of a text in a raw event.
struct TextPiece {
    /// Id of the text it belongs to, if the event has one.
    owner: Option<String>,
    /// JSON pointer to the piece.
    pointer: String,
}

/// Returns the text pieces of a raw event: deltas of AG-UI, of command targets and of chat completions.
fn text_pieces(event: &Value) -> Vec<TextPiece> {
    let mut pieces = Vec::new();
    if event.get("delta").is_some_and(Value::is_string) {
        let of =
            ["toolCallId", "messageId"].iter().find_map(|key| event.get(key)?.as_str()).map(str::to_string);
        pieces.push(TextPiece { owner: of, pointer: "/delta".to_string() });
    }
    for (number, choice) in event.get("choices").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let Some(delta) = choice.get("delta") else { continue };
        for key in ["content", "refusal", "reasoning_content", "reasoning"] {
            if delta.get(key).is_some_and(Value::is_string) {
                let pointer = format!("/choices/{number}/delta/{key}");
                pieces.push(TextPiece { owner: Some(format!("{number} {key}")), pointer });
            }
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        for (place, call) in calls.enumerate() {
            let pointer = format!("/choices/{number}/delta/tool_calls/{place}/function/arguments");
            // Without an index the pieces of all calls are joined as one, which may redact too much.
            let index = call.get("index").cloned().unwrap_or_default();
            pieces.push(TextPiece { owner: Some(format!("{number} call {index}")), pointer });
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
    fn redacts_keys_values_and_escaped_text() {
        let redactor = SecretRedactor::new([("TOKEN".to_string(), "s\"cret".to_string())]);
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

    /// Quotes a text as a JSON string `levels` times.
    fn nested(text: &str, levels: usize) -> String {
        (0..levels).fold(text.to_string(), |inner, _| Value::String(inner).to_string())
    }

    proptest! {
        /// No encoding of a secret remains, for any content and surroundings.
        #[test]
        fn redacts_every_encoding_of_a_secret(
            secret in "[ -~\n\u{e9}\u{1f600}]{8,24}",
            before in "[a-z\\\\%\"]{0,4}",
            after in "[g-z%]{0,4}",
            levels in 0..=MAX_ESCAPE_LEVELS,
        ) {
            // An unfinished escape sequence before the secret would change it.
            prop_assume!(!before.ends_with(['\\', '%']) && !secret.contains("[redacted"));
            let redactor = SecretRedactor::new([("KEY".to_string(), secret.clone())]);
            let mark = "[redacted:KEY]";
            let slashes = Value::String(secret.clone()).to_string().replace('/', "\\/");
            let pointer = secret.replace('~', "~0").replace('/', "~1");
            let units = secret.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
            let percent = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
            for form in [nested(&secret, levels), slashes, units, percent, pointer] {
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

        /// No part of a secret remains beside JSON, whose numbers are found by cutting the text.
        #[test]
        fn redacts_secrets_beside_json(
            secret in "[-a-f0-9.+_]{8,24}",
            before in "(|x|key=|\"|`|\\[1\\] |\\{\"n\": -1\\} |\\{\"s\": \")",
            after in "(|\"|`|, 1|\"\\}| sent \\{\"ok\": true\\}|\n```json\n\\[1\\]\n```| \\[1, 2\\])",
        ) {
            let redactor = SecretRedactor::new([("KEY".to_string(), secret.clone())]);
            let said = format!("{before}{secret}{after}");
            let clean = redactor.text(&said);
            prop_assert!(clean.contains("[redacted:KEY]"), "{said} -> {clean}");
            prop_assert!(!clean.contains(&secret[..secret.len() - 1]), "{said} -> {clean}");
            prop_assert!(!clean.contains(&secret[1..]), "{said} -> {clean}");
        }

        /// Texts without a secret are unchanged, even with escapes.
        #[test]
        fn keeps_texts_without_secrets(text in "[a-f0-9%u\\\\\"n\u{e9}]{0,40}") {
            let redactor = SecretRedactor::new([("KEY".to_string(), "not among these".to_string())]);
            prop_assert_eq!(redactor.text(&text), text.as_str());
        }
    }

    #[test]
    fn redacts_escaped_secrets_anywhere_in_a_long_text() {
        let secret = "first line\nsecond \"line\"";
        let redactor = SecretRedactor::new([("KEY".to_string(), secret.to_string())]);
        let form = nested(secret, 3);
        for before in (0..40).map(|n| MIN_WINDOW_BYTES * 2 - 8 * form.len() + n * form.len() / 4) {
            for filler in ["\\\\", "ab", "%2"] {
                let text = filler.repeat(before / 2) + &form + &filler.repeat(MIN_WINDOW_BYTES / 8);
                let clean = redactor.text(&text);
                assert!(clean.contains("[redacted:KEY]") && !clean.contains("second"), "{filler} {before}");
            }
        }
    }

    #[test]
    fn redacts_secret_numbers_in_json() {
        let redactor = SecretRedactor::new([("PIN".to_string(), "48151623".to_string())]);
        assert_eq!(
            redactor.json(json!({"pin": 48151623, "n": 481516230})),
            json!({"pin": "[redacted:PIN]", "n": 481516230})
        );
        assert_eq!(redactor.json(json!([-48151623])), json!(["[redacted:PIN]"]));
    }

    #[test]
    fn json_with_secret_numbers_remains_json() {
        let redactor = SecretRedactor::new([("PIN".to_string(), "48151623".to_string())]);
        for (text, clean) in [
            (
                r#"{"pin": 48151623, "s": "\"48151623"}"#,
                r#"{"pin": "[redacted:PIN]", "s": "\"[redacted:PIN]"}"#,
            ),
            ("```json\n[-48151623, 1, true]\n```", "```json\n[\"-[redacted:PIN]\", 1, true]\n```"),
            ("48151623", r#""[redacted:PIN]""#),
            (r#"{"pin": 48151623"#, r#"{"pin": [redacted:PIN]"#),
            ("PIN: 48151623, yes", "PIN: [redacted:PIN], yes"),
        ] {
            assert_eq!(redactor.text(text), clean);
        }
    }

    #[test]
    fn messages_show_no_part_of_a_secret_where_a_text_was_shortened() {
        let secret = "abcdefghijklmnopqrstuvwxyz";
        let redactor = SecretRedactor::new([("KEY".to_string(), secret.to_string())]);
        for length in 4..secret.len() {
            let (head, tail) = (&secret[..length], &secret[secret.len() - length..]);
            let message = format!("not JSON: xx{head}…; standard error:\n…{tail}\nend");
            let clean = "not JSON: xx[redacted:KEY]…; standard error:\n…[redacted:KEY]\nend";
            assert_eq!(redactor.message(&message), clean);
        }
        assert_eq!(redactor.message("the abc… of wxy"), "the abc… of wxy");
        assert_eq!(redactor.message(r#"got "xxabcdef"…"#), r#"got "xx[redacted:KEY]"…"#);
        // The cost is linear.
        let many = "…x".repeat(200_000);
        assert_eq!(redactor.message(&many), many);
        let redactor = SecretRedactor::new([("KEY".to_string(), r#"Wx"9\yTz4"Qr8"#.to_string())]);
        assert_eq!(redactor.message(r#"xx"Wx\"9\\yT…"#), r#"xx"[redacted:KEY]…"#);
        assert_eq!(redactor.text("abcdefgh…"), "abcdefgh…");
    }

    #[test]
    fn reveals_known_secrets_only() {
        let redactor = SecretRedactor::new([("KEY".to_string(), "sk-abc".to_string())]);
        let text = "a [redacted:KEY], [redacted:OTHER] [redacted:KEY";
        assert_eq!(redactor.reveal(text, |_| true), "a sk-abc, [redacted:OTHER] [redacted:KEY");
        assert_eq!(redactor.reveal(text, |mark| mark != "[redacted:KEY]"), text);
        // The cost is linear.
        let many = REDACTION_MARK.repeat(200_000);
        assert_eq!(redactor.reveal(&many, |_| true), many);
    }

    #[test]
    fn ignores_very_short_secrets() {
        let redactor = SecretRedactor::new([
            ("PORT".to_string(), "1".to_string()),
            ("EMPTY".to_string(), String::new()),
        ]);
        assert_eq!(redactor.text("order 1 of 11"), "order 1 of 11");
    }
}
