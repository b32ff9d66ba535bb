//! Secrets in all their forms, compiled for one combined search.

use std::collections::HashMap;
use std::fmt;
use std::iter;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;

use super::decoded_text::{DecodedText, has_wrapped_lines, json_escape, percent_escape};
use super::json_numbers::JsonNumbers;
use super::marks::{ELLIPSIS, MIN_SECRET_BYTES, redaction_mark};
use super::shortened::shortened_parts;

/// Minimum length of a secret that is also searched as base64 and hex; shorter ones match ordinary text.
const MIN_ENCODED_SECRET_BYTES: usize = 8;

/// Maximum number of escape levels that are decoded, for JSON quoted within JSON.
pub(super) const MAX_ESCAPE_LEVELS: usize = 8;

/// Minimum number of bytes decoded at a time.
pub(super) const MIN_WINDOW_BYTES: usize = 256 * 1024;

/// Number of bytes up to which a byte of a secret may be escaped, to be found across two windows.
const MAX_ESCAPED_BYTES: usize = 64;

/// Secrets of a redactor, compiled for one combined search. `Debug` does not show them.
pub(super) struct SecretPatterns {
    automaton: AhoCorasick,
    /// The patterns of the automaton.
    patterns: Vec<Vec<u8>>,
    /// Replacement text of each pattern.
    pub marks: Vec<String>,
    /// The secrets, by replacement text.
    pub values: HashMap<String, String>,
    /// Length of the longest pattern in bytes.
    longest: usize,
}

impl fmt::Debug for SecretPatterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretPatterns").finish_non_exhaustive()
    }
}

/// A match of a secret in a text.
pub(super) struct SecretMatch {
    /// Byte range in the text.
    pub span: Range<usize>,
    /// Index of the pattern in the automaton.
    pattern: usize,
}

impl SecretPatterns {
    /// Compiles secrets by their names; `None` if there are none.
    pub fn new(secrets: impl Iterator<Item = (String, String)>) -> Option<Self> {
        let mut patterns: Vec<Vec<u8>> = Vec::new();
        let mut marks = Vec::new();
        let mut values = HashMap::new();
        for (name, value) in secrets {
            let mark = redaction_mark(&name);
            for form in plain_forms(&value).chain(encoded_forms(value.as_bytes())) {
                patterns.push(form);
                marks.push(mark.clone());
            }
            values.insert(mark, value);
        }
        let longest = patterns.iter().map(Vec::len).max()?;
        // The time to build a deterministic automaton grows with the square of a secret that repeats itself.
        let automaton = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)
            .ok()?;
        Some(SecretPatterns { automaton, patterns, marks, values, longest })
    }

    /// Returns all secrets in a text, in order and without overlaps, in plain or escaped form.
    pub fn find(&self, text: &str) -> Vec<SecretMatch> {
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

    /// Returns the replacement of a match.
    pub fn mark(&self, found: &SecretMatch) -> &str {
        &self.marks[found.pattern]
    }

    /// Returns the parts of secrets that end or begin where a text was shortened. The ellipsis may stand behind a quotation
    /// mark.
    pub fn find_shortened(&self, text: &str) -> Vec<SecretMatch> {
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
    pub fn replace_in(&self, text: &str, range: Range<usize>, found: &[SecretMatch]) -> String {
        self.replace_by(text, range, found, |mark, _, clean| clean.push_str(mark))
    }

    /// Like [`SecretPatterns::replace_in`]; `replace` receives the mark of a secret and its length in bytes.
    pub fn replace_by(
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
    pub fn replace_with_quotes(&self, text: &str, found: &[SecretMatch]) -> String {
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
        if memchr::memchr2(b'\\', b'%', part).is_none() && !has_wrapped_lines(part) {
            return;
        }
        let mut level = DecodedText::new(part, offset);
        self.find_unwrapped(&level, found);
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
        self.find_unwrapped(decoded, found);
    }

    /// Adds the secrets in base64 and hex that are divided among lines.
    fn find_unwrapped(&self, text: &DecodedText, found: &mut Vec<SecretMatch>) {
        let Some(joined) = text.unwrapped() else { return };
        let hits = self.automaton.find_iter(&joined.bytes).map(|hit| SecretMatch {
            span: joined.starts[hit.start()]..joined.starts[hit.end() - 1] + 1,
            pattern: hit.pattern().as_usize(),
        });
        // The others are found in the text itself.
        found.extend(hits.filter(|hit| hit.span.len() > self.patterns[hit.pattern].len()));
    }

    /// Returns the replacement of a number that is a secret as a whole, except for its sign.
    pub fn number_mark(&self, number: &str) -> Option<&str> {
        let digits = number.trim_start_matches('-');
        let found = self.automaton.find(digits)?;
        (found.len() == digits.len()).then(|| self.marks[found.pattern().as_usize()].as_str())
    }

    pub fn has_secret_number(&self, value: &Value) -> bool {
        match value {
            Value::Number(number) => self.number_mark(&number.to_string()).is_some(),
            Value::Array(values) => values.iter().any(|value| self.has_secret_number(value)),
            Value::Object(members) => members.values().any(|value| self.has_secret_number(value)),
            Value::Null | Value::Bool(_) | Value::String(_) => false,
        }
    }
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

/// Returns a value as it is and as it may stand in texts of JSON, regular expressions, JSON Pointers and forms.
fn plain_forms(value: &str) -> impl Iterator<Item = Vec<u8>> {
    let in_pattern = hotseat_checks::escape(value);
    // A state delta names its member by a JSON Pointer.
    let in_pointer = value.replace('~', "~0").replace('/', "~1");
    // Escaped text is decoded, but a part of it may be cut off.
    let quoted = Value::String(value.to_string()).to_string();
    let in_json = quoted[1..quoted.len() - 1].to_string();
    let trimmed = Some(value.trim().to_string()).filter(|trimmed| trimmed.len() >= MIN_SECRET_BYTES);
    // The other bytes of a form (`application/x-www-form-urlencoded`) are percent-encoded.
    let in_form = value.replace(' ', "+");
    let others = trimmed
        .into_iter()
        .chain([in_pattern, in_pointer, in_json, in_form])
        .filter(move |form| form != value);
    iter::once(value.to_string()).chain(others).map(String::into_bytes)
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
