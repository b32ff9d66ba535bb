//! Reads JSON from answers of agents, judges, simulators, generators and scripts. No other code parses such
//! text.
//!
//! An answer is read completely or not at all: a truncated value, a second value, a repeated key and text
//! around the value are errors. Nothing is guessed from fragments.

use std::fmt;

use hotseat_document::json::{self, JsonReadError};
use serde_json::Value;

/// The white space of JSON.
const WHITE_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
/// The mark that opens and closes a code block.
const FENCE: &str = "```";

/// Maximum length of a text that is compared with a number.
const MAX_NUMBER_BYTES: usize = 100;

/// Position of the JSON value in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonPlace {
    /// The value is the whole answer.
    Whole,
    /// The value is the content of the only code block.
    CodeBlock,
    /// The value is the only object or list in prose.
    Prose,
}

/// Content of an answer, for assertions that accept JSON inside prose.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerContent {
    /// The answer is or contains exactly one JSON value.
    Json(Value, JsonPlace),
    /// The answer is text without JSON.
    Text,
    /// The answer contains JSON, but not exactly one complete value. Holds the reason, phrased to follow
    /// "it".
    Malformed(String),
}

/// The reason why a text is not one JSON value, phrased to follow "it".
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum JsonAnswerError {
    #[error("is empty")]
    Empty,
    #[error("is cut off: {0}")]
    CutOff(#[source] serde_json::Error),
    #[error("has {0}")]
    Data(#[source] serde_json::Error),
    #[error("{0}")]
    Unreadable(#[source] JsonReadError),
    #[error("is not exactly one JSON value: {0}")]
    Syntax(#[source] serde_json::Error),
}

impl fmt::Display for JsonPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JsonPlace::Whole => "the answer",
            JsonPlace::CodeBlock => "the code block of the answer",
            JsonPlace::Prose => "the only JSON in the prose of the answer",
        })
    }
}

/// Reads a text that is exactly one JSON value, bare or in one code block.
///
/// # Errors
/// If the text is not one JSON value.
pub fn read_json(text: &str) -> Result<Value, JsonAnswerError> {
    let text = text.trim_matches(WHITE_SPACE);
    match block_content(text) {
        Some(content) => one_value(content),
        None => one_value(text),
    }
}

/// Reads a text that is a number in JSON.
pub(super) fn read_number(text: &str) -> Option<Value> {
    if text.len() > MAX_NUMBER_BYTES {
        return None;
    }
    read_json(text).ok().filter(Value::is_number)
}

/// Reads an answer that may have prose around its JSON: a code block, or the only object or list in the text.
///
/// No other JSON may appear around a code block. Around an unfenced value no other brace, bracket or double
/// quotation mark may appear, so a part of a larger or broken value is never mistaken for the value.
pub fn find_json(text: &str) -> AnswerContent {
    let text = text.trim_matches(WHITE_SPACE);
    let whole = match read_json(text) {
        Ok(value) if block_content(text).is_some() => {
            return AnswerContent::Json(value, JsonPlace::CodeBlock);
        }
        Ok(value) => return AnswerContent::Json(value, JsonPlace::Whole),
        Err(why) => why.to_string(),
    };
    if !text.contains(FENCE) {
        return find_in_prose(text, whole);
    }
    match split_block(text) {
        Some((before, content, after)) => match one_value(content) {
            Ok(_) if [before, after].iter().any(|prose| prose.contains(['{', '}']) || begins_json(prose)) => {
                AnswerContent::Malformed("has JSON beside its code block".to_string())
            }
            Ok(value) => AnswerContent::Json(value, JsonPlace::CodeBlock),
            Err(why) if begins_json(text) => {
                AnswerContent::Malformed(format!("has a code block that is not one JSON value: it {why}"))
            }
            Err(_) => AnswerContent::Text,
        },
        None if begins_json(text) || text.matches(FENCE).count() == 1 => {
            AnswerContent::Malformed("does not have one whole code block of JSON".to_string())
        }
        None => AnswerContent::Text,
    }
}

/// Returns true if all braces of a text are those of placeholders, such as `{name}` and `{{user.name}}`: others may be a broken
/// object.
pub fn has_no_object(text: &str) -> bool {
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|char| char.is_alphanumeric() || "_.-".contains(char))
    };
    let mut parts = text.split('{');
    let begins_without = parts.next().is_none_or(|first| !first.contains('}'));
    begins_without
        && parts.filter(|part| !part.is_empty()).all(|part| {
            let name = part.split_once('}').filter(|(name, _)| is_name(name));
            name.is_some_and(|(_, after)| !after.trim_start_matches('}').contains('}'))
        })
}

/// Finds the only object or list in a text without code blocks. `whole` is the reason why the whole text is
/// not a value.
fn find_in_prose(text: &str, whole: String) -> AnswerContent {
    if !begins_json(text) && !has_empty_value(text) {
        return AnswerContent::Text;
    }
    let (Some(start), Some(end)) = (text.find(['{', '[']), text.rfind(['}', ']'])) else {
        return AnswerContent::Malformed(whole);
    };
    if end < start {
        return AnswerContent::Malformed(whole);
    }
    let (before, value, after) = (&text[..start], &text[start..=end], &text[end + 1..]);
    match one_value(value) {
        Ok(_) if before.contains('"') || after.contains('"') => {
            AnswerContent::Malformed("has quotation marks beside its JSON".to_string())
        }
        Ok(value) => AnswerContent::Json(value, JsonPlace::Prose),
        Err(JsonAnswerError::Unreadable(why)) => AnswerContent::Malformed(format!("has JSON that {why}")),
        Err(why) => {
            AnswerContent::Malformed(format!("has JSON in its prose that is not one value: it {why}"))
        }
    }
}

/// Returns the content if the text is one code block without a language or in the language JSON.
fn block_content(text: &str) -> Option<&str> {
    let inner = text.strip_prefix(FENCE)?.strip_suffix(FENCE)?;
    json_content(inner)
}

/// Splits a text into the text before its only code block, the content of the block, and the text after it.
fn split_block(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once(FENCE)?;
    let (inner, after) = rest.rsplit_once(FENCE)?;
    Some((before, json_content(inner)?, after))
}

/// Returns the content of a code block without its language, which is `json` or missing.
fn json_content(inner: &str) -> Option<&str> {
    let content = match inner.get(..4) {
        Some(language) if language.eq_ignore_ascii_case("json") => &inner[4..],
        _ => inner,
    };
    content
        .starts_with(|first: char| WHITE_SPACE.contains(&first) || "{[\"".contains(first))
        .then_some(content)
}

/// Returns true if JSON starts anywhere in the text, complete or broken. Footnotes (`[1]`), indices (`ids[0]`), intervals
/// (`[0, 1)`), links (`[a](b)`), placeholders (`{name}`) and quoted words do not count as JSON.
fn begins_json(text: &str) -> bool {
    let starts_as_value = match text.chars().next() {
        Some('{') => true,
        Some('[') => {
            let next = text[1..].trim_start_matches(WHITE_SPACE).chars().next();
            next.is_none_or(|next| next.is_ascii_digit() || "\"{[]-".contains(next))
        }
        // A truncated text.
        Some('"') => text.matches('"').count() == 1,
        Some('`') => text.trim_start_matches('`').trim_matches(WHITE_SPACE).is_empty(),
        _ => false,
    };
    let is_json_block = |at: usize| {
        let inner = &text[at + FENCE.len()..];
        inner.get(..4).is_some_and(|language| language.eq_ignore_ascii_case("json"))
    };
    starts_as_value
        || text.match_indices(FENCE).any(|(at, _)| is_json_block(at))
        || text.match_indices(['{', '[']).any(|(at, bracket)| {
            let rest = &text[at + 1..];
            match rest.trim_start_matches(WHITE_SPACE).chars().next() {
                None | Some('"' | '\'') => true,
                Some('{') => bracket == "[",
                Some(_) => bracket == "[" && stands_alone(text, at) && begins_list(rest),
            }
        })
}

/// Returns true if the text after an opening bracket begins like the entries of a list: other than in a footnote, there are
/// several, or one that is no number.
fn begins_list(text: &str) -> bool {
    let (first, end, rest) = leading_literals(text);
    let Some(first) = first else { return false };
    match end {
        // The text is cut off.
        None => true,
        Some(']') => {
            let is_several = first.contains(',') || first.parse::<f64>().is_err();
            !first.is_empty() && is_several && !is_link(rest)
        }
        // Only one level is read, so that many brackets are read in linear time.
        Some('[') if first.is_empty() => match leading_literals(rest) {
            (Some(inner), Some(']'), rest) => !inner.is_empty() && !is_link(rest.trim_start_matches(']')),
            (Some(_), Some('[' | '"' | '\'' | '{') | None, _) => true,
            _ => false,
        },
        Some('[' | '"' | '\'' | '{') => true,
        Some(_) => false,
    }
}

/// Splits a text at the first bracket, brace, parenthesis or quotation mark. Returns the part before it if it is empty or
/// consists of numbers and other literals of JSON or Python, the mark, and the text behind it. The last literal of a text
/// without a mark may be cut off.
fn leading_literals(text: &str) -> (Option<&str>, Option<char>, &str) {
    let end = text.find(['[', ']', '{', '}', '(', ')', '"', '\'']);
    let inner = text[..end.unwrap_or(text.len())].trim_matches(WHITE_SPACE);
    let mark = end.and_then(|end| text[end..].chars().next());
    let rest = end.map_or("", |end| &text[end + 1..]);
    let (complete, _) =
        if end.is_none() { inner.rsplit_once(',').unwrap_or((inner, "")) } else { (inner, "") };
    let literals = ["true", "false", "null", "True", "False", "None"];
    let is_literal = |word: &str| {
        literals.contains(&word)
            || (word.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
                && word.parse::<f64>().is_ok())
    };
    let mut words = complete.split([',', ' ', '\t', '\r', '\n']).filter(|word| !word.is_empty());
    (words.all(is_literal).then_some(inner), mark, rest)
}

/// Returns true if the text contains an empty object or list, other than in code (`a[]`) or in a template (`{}:`).
fn has_empty_value(text: &str) -> bool {
    ["{}", "[]"].iter().flat_map(|empty| text.match_indices(empty)).any(|(at, empty)| {
        let after = &text[at + empty.len()..];
        let ends = after.is_empty()
            || after.starts_with(WHITE_SPACE)
            || after.starts_with(['.', ',', ';', '!', '?']);
        stands_alone(text, at) && ends
    })
}

/// Returns true if nothing precedes the bracket at `at` of which it could be an index or a parameter.
fn stands_alone(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    before.is_none_or(|before| {
        !before.is_alphanumeric() && !matches!(before, '_' | ')' | ']' | '}' | '$' | '\\')
    })
}

/// Returns true if a text follows the closing bracket of a link.
fn is_link(after: &str) -> bool {
    after.starts_with(['(', '['])
}

/// Reads exactly one JSON value without repeated keys.
fn one_value(text: &str) -> Result<Value, JsonAnswerError> {
    if text.trim_matches(WHITE_SPACE).is_empty() {
        return Err(JsonAnswerError::Empty);
    }
    json::read_value(text).map_err(|error| match JsonReadError::from(error) {
        JsonReadError::Syntax(error) if error.is_eof() => JsonAnswerError::CutOff(error),
        JsonReadError::Syntax(error) => JsonAnswerError::Syntax(error),
        JsonReadError::DuplicateKey(error) => JsonAnswerError::Data(error),
        error @ (JsonReadError::TooDeep(_) | JsonReadError::TooLarge(_) | JsonReadError::NotUtf8(_)) => {
            JsonAnswerError::Unreadable(error)
        }
    })
}

#[cfg(test)]
mod tests {
    use hotseat_testkit::malformed::{MalformedAnswer, MalformedKind, malformed_answers};
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_one_value_bare_or_in_a_code_block() {
        for text in [
            "{\"a\": 1}",
            " \r\n{\"a\": 1}\n",
            "```json\n{\"a\": 1}\n```",
            "```\n{\"a\": 1}```\n",
            "```JSON {\"a\": 1} ```",
            "```{\"a\": 1}```",
        ] {
            assert_eq!(read_json(text).unwrap(), json!({"a": 1}), "{text}");
        }
        let backticks = json!({"markdown": "```json\n{\"b\": 2}\n```"});
        assert_eq!(read_json(&format!("```json\n{backticks}\n```")).unwrap(), backticks);
        for (text, words) in [
            ("", "is empty"),
            ("```json\n```", "is empty"),
            ("{\"a\": ", "is cut off"),
            ("{\"a\": 1} {\"a\": 2}", "trailing characters"),
            ("{\"a\": 1, \"b\": {\"c\": 1, \"\\u0063\": 2}}", "has duplicate key \"c\""),
            ("Here: {\"a\": 1}", "is not exactly one JSON value"),
            ("{\"a\": 1} as asked", "trailing characters"),
            ("```yaml\n{\"a\": 1}\n```", "is not exactly one JSON value"),
            ("```{\"a\": 0}\n{\"a\": 1}\n```", "trailing characters"),
            ("```json\n{\"a\": 1}\n```\n```json\n{\"a\": 2}\n```", "trailing characters"),
            ("{\"a\": \"two\nlines\"}", "control character"),
            ("\u{a0}{\"a\": 1}", "is not exactly one JSON value"),
        ] {
            let why = read_json(text).unwrap_err().to_string();
            assert!(why.contains(words), "{text}: {why}");
        }
    }

    #[test]
    fn finds_one_value_in_prose() {
        let json = |value: Value, place| AnswerContent::Json(value, place);
        for (text, expected) in [
            ("{\"a\": 1}", json(json!({"a": 1}), JsonPlace::Whole)),
            (" 42\n", json(json!(42), JsonPlace::Whole)),
            ("```json\n[1]\n```", json(json!([1]), JsonPlace::CodeBlock)),
            (
                "Result (see [1]):\n```json\n{\"a\": 1}\n```\nDone.",
                json(json!({"a": 1}), JsonPlace::CodeBlock),
            ),
            ("Result:\n```json {\"a\": 1}```", json(json!({"a": 1}), JsonPlace::CodeBlock)),
            ("Here: {\"a\": {\"b\": 2}} as asked", json(json!({"a": {"b": 2}}), JsonPlace::Prose)),
            ("{\"a\": 1} is what you asked for.", json(json!({"a": 1}), JsonPlace::Prose)),
            ("They are [\"x\", \"y\"].", json(json!(["x", "y"]), JsonPlace::Prose)),
            ("The ids are: [1, 2, 3]", json(json!([1, 2, 3]), JsonPlace::Prose)),
            ("Flags: [true, false]", json(json!([true, false]), JsonPlace::Prose)),
            ("One: [null].", json(json!([null]), JsonPlace::Prose)),
            ("Rows: [[1], [2]]", json(json!([[1], [2]]), JsonPlace::Prose)),
            ("Rows: [[[1]]]", json(json!([[[1]]]), JsonPlace::Prose)),
            ("None are left: []", json(json!([]), JsonPlace::Prose)),
            ("Here: {}", json(json!({}), JsonPlace::Prose)),
        ] {
            assert_eq!(find_json(text), expected, "{text}");
        }
        for text in [
            "",
            "Note: x",
            "As shown [1] and {}: nothing",
            "Hello {name}",
            "\"so\" he said",
            "```sh\nls\n```",
            "```c\nint main() {}\n```",
            "See [1] and [2].",
            "The first is ids[0], the block ids[0, 1].",
            "It lies in [0, 1).",
            "Choose [1, 2 or 3].",
            "See [1](https://example.com), [[1]](x) and [1, 2](y).",
            "See [[Home]].",
            "- [ ] open\n- [x] done",
            "An int[] of f(){}",
            "\\frac{1}{2}",
        ] {
            assert_eq!(find_json(text), AnswerContent::Text, "{text}");
        }
        for text in [
            "{\"a\": ",
            "{oops} {\"a\": 1}",
            "{\"status\":\"failed\",\"previous\":{\"status\":\"ok\"},\"x\":",
            "\"status\":\"failed\",\"previous\":{\"status\":\"ok\"}",
            "[{\"a\": 1}",
            "Here: [{\"a\": 1}, {\"a\":",
            "{\"a\": 1} or {\"a\": 2}",
            "Here: {\"a\": 1, \"a\": 2}",
            "```\nnot json\n```\n```json\n[1]\n```",
            "```json\n{\"a\": 1}\n```\nNo: {\"a\": 2}",
            "```json\n{\"a\": 1}\n```\nNo: [\"b\"]",
            "```json\n{\"a\": 1}",
            "Sure:\n```json\n{\"a\": 1,",
            "<think>{\"a\": 1}</think>{\"a\": 2}",
            "{'a': 1}",
            "Here: {'a': 1}",
            "Here: ['a']",
            "Here: [1, 2,",
            "Here: [1, 2",
            "Here: [1, tr",
            "Here: [True, False]",
            "Here: [1, 2] or [3, 4]",
            "{",
            "``",
            "\"cut",
        ] {
            assert!(matches!(find_json(text), AnswerContent::Malformed(_)), "{text}: {:?}", find_json(text));
        }
    }

    #[test]
    fn rejects_malformed_answers() {
        let (glad, sorry) = (json!({"status": "ok", "n": 1}), json!({"status": "failed", "n": 2}));
        for MalformedAnswer { kind, text } in malformed_answers(&glad, &sorry) {
            assert!(read_json(&text).is_err(), "{text}");
            match (kind, find_json(&text)) {
                (MalformedKind::Prose, AnswerContent::Json(value, place)) => {
                    assert!((value == glad || value == sorry) && place != JsonPlace::Whole, "{text}");
                }
                (MalformedKind::Unescaped, AnswerContent::Malformed(_)) => {}
                (MalformedKind::Broken, AnswerContent::Malformed(_) | AnswerContent::Text) => {}
                (_, found) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn reads_many_brackets_in_linear_time() {
        for unit in ["[{", "{ ", "```json\n", "{\"", "[ ", "\"{", "a [1, [", "a [[1, "] {
            assert!(matches!(find_json(&unit.repeat(1_000_000)), AnswerContent::Malformed(_)), "{unit}");
        }
    }
}
