//! Replaces secrets before an event leaves the session, so that later consumers cannot leak them.
//!
//! Secrets are found as plain text and in common encodings: JSON escapes, also of JSON nested in JSON
//! strings; regular expressions; percent-encoding; forms; base64 and hex, also in lines.

mod decoded_text;
mod digest;
mod json_numbers;
mod marks;
mod secret_patterns;
mod shortened;
mod text_pieces;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::iter;
use std::sync::Arc;

use digest::digest;
use hotseat_checks::{AnswerContent, find_json};
use hotseat_trace::{AttemptFailure, Payload};
use marks::{ELLIPSIS, MIN_SECRET_BYTES, redaction_mark};
pub use marks::{REDACTION_MARK, redacted_names};
use secret_patterns::{SecretMatch, SecretPatterns};
use serde_json::{Number, Value};

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

/// Replaces secret values in texts, JSON and events.
#[derive(Debug, Clone, Default)]
pub struct SecretRedactor {
    secrets: Option<Arc<SecretPatterns>>,
    /// Marks of known secrets that stay in texts.
    exempt: HashSet<String>,
    /// Digests of the secrets that were replaced in a recorded conversation, by name.
    recorded: BTreeMap<String, String>,
}

impl SecretRedactor {
    /// Creates a redactor that replaces each value by `[redacted:NAME]`. Very short values and common words are ignored.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let is_common = |value: &str| COMMON_VALUES.contains(&value.to_ascii_lowercase().as_str());
        let long =
            secrets.into_iter().filter(|(_, value)| value.len() >= MIN_SECRET_BYTES && !is_common(value));
        SecretRedactor { secrets: SecretPatterns::new(long).map(Arc::new), ..SecretRedactor::default() }
    }

    /// Returns a redactor of the secrets with the selected marks.
    pub fn restricted_to(&self, is_selected: impl Fn(&str) -> bool) -> SecretRedactor {
        let marks = self.secrets.iter().flat_map(|secrets| secrets.values.keys());
        let exempt = marks.filter(|mark| !is_selected(mark)).cloned().collect();
        SecretRedactor { exempt, ..self.clone() }
    }

    /// Sets the digests of the secrets that were replaced in a recorded conversation. A secret with another digest has
    /// another value now, so its value there is unknown.
    pub fn set_recorded(&mut self, digests: &BTreeMap<String, String>) {
        self.recorded.clone_from(digests);
    }

    /// Returns the digests of the secrets that were replaced in a recorded conversation, by name.
    pub fn recorded(&self) -> &BTreeMap<String, String> {
        &self.recorded
    }

    /// Returns the digests of the secrets that are replaced in a text, by name. Recorded ones stay as they are.
    pub fn digests(&self, redacted: &str) -> BTreeMap<String, String> {
        let digest_of = |name: &str| match self.recorded.get(name) {
            Some(recorded) => Some(recorded.clone()),
            None => self.secrets.as_ref()?.values.get(&redaction_mark(name)).map(|value| digest(value)),
        };
        redacted_names(redacted).filter_map(|name| Some((name.to_string(), digest_of(name)?))).collect()
    }

    /// Returns true if a secret has another value than in the recorded conversation. The saved variables of hooks
    /// contain marks, which are no values.
    pub fn has_changed(&self, name: &str) -> bool {
        let mark = redaction_mark(name);
        let value = self.secrets.as_ref().and_then(|secrets| secrets.values.get(&mark));
        let value = value.filter(|value| **value != mark);
        value.zip(self.recorded.get(name)).is_some_and(|(value, recorded)| digest(value) != *recorded)
    }

    /// Returns true if there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_none()
    }

    /// Returns true if the redactor has a secret of this name.
    pub fn has_secret(&self, name: &str) -> bool {
        let mark = redaction_mark(name);
        self.secrets.as_ref().is_some_and(|secrets| secrets.marks.contains(&mark))
    }

    /// Returns the text with secrets replaced. A secret number within JSON becomes a string, so that the text remains JSON. A
    /// text that is only this number becomes its mark, as a part of any other text does.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some((secrets, found)) = self.find(text) else { return Cow::Borrowed(text) };
        let clean = secrets.replace_in(text, 0..text.len(), &found);
        let is_json =
            |text: &str| matches!(find_json(text), AnswerContent::Json(value, _) if !value.is_number());
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
        let mut found = secrets.find(text);
        found.retain(|found| !self.exempt.contains(secrets.mark(found)));
        Some((secrets, found)).filter(|(_, found)| !found.is_empty())
    }

    /// Returns a redacted text with the secrets in place of the selected marks. An encoded secret is returned as plain text.
    /// A mark stays if its secret has changed since the text was recorded.
    pub fn reveal(&self, text: &str, is_selected: impl Fn(&str) -> bool) -> String {
        let Some(secrets) = &self.secrets else { return text.to_string() };
        let mut original = String::with_capacity(text.len());
        let mut rest = text;
        let longest = secrets.marks.iter().map(String::len).max().unwrap_or_default();
        let changed: HashSet<String> = self
            .recorded
            .keys()
            .filter(|name| self.has_changed(name))
            .map(|name| redaction_mark(name))
            .collect();
        let is_revealed = |mark: &str| is_selected(mark) && !changed.contains(mark);
        while let Some(start) = rest.find(REDACTION_MARK) {
            // A text may contain many marks without an end.
            let end = rest.as_bytes()[start..].iter().take(longest).position(|byte| *byte == b']');
            let mark = end.map_or(REDACTION_MARK, |end| &rest[start..=start + end]);
            original.push_str(&rest[..start]);
            original.push_str(
                secrets.values.get(mark).filter(|_| is_revealed(mark)).map_or(mark, String::as_str),
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

    /// Returns the mark of a number that is a secret.
    pub fn number(&self, number: &Number) -> Option<&str> {
        let mark = self.secrets.as_ref()?.number_mark(&number.to_string())?;
        (!self.exempt.contains(mark)).then_some(mark)
    }

    /// Replaces secrets in an event. Returns the original event if it had any.
    pub fn payload(&self, payload: &mut Payload) -> Option<Payload> {
        let secrets = self.secrets.as_ref()?;
        // A text may be very long, so it is not copied into JSON.
        let text = payload.agent_text_mut().map(std::mem::take);
        let members = self.members(secrets, payload);
        let clean_text = text.as_deref().map(|text| self.text(text));
        let has_secret = members.is_some() || matches!(clean_text, Some(Cow::Owned(_)));
        let mut original = has_secret.then(|| {
            let clean = members.unwrap_or_else(|| payload.clone());
            std::mem::replace(payload, clean)
        });
        if let (Some(known), Some(Cow::Owned(clean))) = (payload.agent_text_mut(), clean_text) {
            *known = clean.into();
        } else if let (Some(known), Some(text)) = (payload.agent_text_mut(), &text) {
            *known = text.clone();
        }
        if let (Some(known), Some(text)) = (original.as_mut().and_then(Payload::agent_text_mut), text) {
            *known = text;
        }
        original
    }

    /// Returns the event with secrets replaced in all members, if it has any.
    fn members(&self, secrets: &SecretPatterns, payload: &Payload) -> Option<Payload> {
        let mut members = payload.to_json().ok()?;
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
            return Some(clean);
        }
        let is_changed = self.redact(&mut members, NumberPolicy::Kept) || has_changed_message;
        is_changed.then(|| Payload::from_json(type_name, members).ok()).flatten()
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

    /// Redacts a value in place. Returns true if anything was replaced.
    fn redact(&self, value: &mut Value, numbers: NumberPolicy) -> bool {
        if self.is_empty() {
            return false;
        }
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
            Value::Number(number) => match (numbers, self.number(number)) {
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

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
    use hotseat_trace::ToolCompleted;
    use proptest::prelude::*;
    use serde_json::json;

    use super::secret_patterns::{MAX_ESCAPE_LEVELS, MIN_WINDOW_BYTES};
    use super::*;

    #[test]
    fn redacts_keys_values_and_escaped_text() {
        let redactor = SecretRedactor::new([("TOKEN".to_string(), "s\"cret".to_string())]);
        let mut payload = Payload::from(ToolCompleted {
            turn_id: "turn-1".into(),
            tool_call_id: "c".into(),
            output: json!({"a s\"cret": ["s\"cret", "{\"t\":\"s\\\"cret\"}"]}),
            origin: Default::default(),
        });
        redactor.payload(&mut payload);
        let Payload::ToolCompleted(clean) = payload else { panic!("another type") };
        assert_eq!(
            clean.output,
            json!({"a [redacted:TOKEN]": ["[redacted:TOKEN]", "{\"t\":\"[redacted:TOKEN]\"}"]})
        );
    }

    #[test]
    fn redacts_secrets_in_forms_and_in_lines_of_base64() {
        let secret = "correct horse battery@staple";
        let redactor = SecretRedactor::new([("KEY".to_string(), secret.to_string())]);
        let clean = redactor.text("a=correct+horse+battery%40staple&b=correct horse+battery");
        assert_eq!(clean, "a=[redacted:KEY]&b=correct horse+battery");
        let long = format!("{}{secret}{}", "-".repeat(40), "-".repeat(70));
        let encoded = STANDARD_NO_PAD.encode(&long);
        for line_break in ["\n", "\r\n", "\n  "] {
            for width in [20, 60, 64, 76] {
                let lines: Vec<_> = encoded.as_bytes().chunks(width).map(String::from_utf8_lossy).collect();
                let wrapped = format!("a\nb\n{}\nend\n", lines.join(line_break));
                for said in [nested(&wrapped, 0), nested(&wrapped, 2)] {
                    let clean = redactor.text(&said);
                    assert_eq!(clean.matches("[redacted:KEY]").count(), 1, "{said}: {clean}");
                    assert!(clean.len() <= said.len() - 20, "{said}: {clean}");
                    assert!(clean.contains("end"), "{said}: {clean}");
                }
            }
        }
        let prose = "a line that ends with internationalization\nwords beginning another line\n";
        let redactor = SecretRedactor::new([("KEY".to_string(), "internationalization".to_string())]);
        assert_eq!(redactor.text(prose), prose.replace("internationalization", "[redacted:KEY]"));
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
            ("48151623", "[redacted:PIN]"),
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
    fn reveals_no_secret_that_has_changed_since() {
        let now = |secrets: &[(&str, &str)]| {
            let mut redactor = SecretRedactor::new(
                secrets.iter().map(|(name, value)| (name.to_string(), value.to_string())),
            );
            redactor.set_recorded(&BTreeMap::from([("KEY".to_string(), "06".to_string())]));
            redactor
        };
        let text = "[redacted:KEY] [redacted:OTHER]";
        for (value, revealed) in
            [("live-12345678", "live-12345678 other"), ("live-87654321", "[redacted:KEY] other")]
        {
            let redactor = now(&[("KEY", value), ("OTHER", "other")]);
            assert_eq!(redactor.reveal(text, |_| true), revealed);
            // A run that replays the recording has the digest of its key, too.
            assert_eq!(redactor.digests(text)["KEY"], "06");
            assert_eq!(redactor.digests("").len(), 0);
        }
        assert_eq!(now(&[]).digests(text).len(), 1);
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
