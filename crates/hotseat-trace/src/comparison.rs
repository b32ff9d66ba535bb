//! Comparison of expected tool calls with the calls that an agent made, for the report of a failed check.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::UNREADABLE_ARGUMENTS;

/// Maximum number of differences that one line of text names.
const MAX_SUMMARY_DIFFERENCES: usize = 2;
/// Maximum length of a value on one line of text, in characters.
const MAX_EXCERPT_CHARS: usize = 160;
/// Number of equal characters shown before the first difference of two long values.
const CONTEXT_CHARS: usize = 30;

optional_members! {
    /// Comparison of the calls that a check expects with those that the agent made.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct CallComparison {
        /// The result in one line: `1 of 2 calls matching`.
        pub summary: String,
        /// Expected calls without a matching call, in the order of the check.
        pub missing: Vec<MissingCall>,
        /// Calls that the agent made, those that the check does not allow first; and other failed checks of a
        /// criterion.
        pub lines: Vec<ComparisonLine>,
        /// Number of calls that are left out of `missing` or `lines`.
        pub omitted?: usize,
    }

    /// Expected call without a matching call.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct MissingCall {
        /// The expected call: its tool, and its arguments if they are compared. `None` if the check expects only
        /// this call.
        pub expected?: Option<String>,
        /// The most similar call. `None` if no call of the tool is left to compare.
        pub nearest?: Option<NearestCall>,
    }

    /// Call that is most similar to an expected one, and its differences.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct NearestCall {
        /// Name of the tool.
        pub tool: Arc<str>,
        /// Number of the turn, from 1.
        pub turn: usize,
        /// Id of the call.
        pub id: Arc<str>,
        /// Differences, in the order of the expected arguments.
        pub differences: Vec<ValueDifference>,
        /// Number of differences that are left out.
        pub omitted?: usize,
    }

    /// Difference between an expected and an actual value.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ValueDifference {
        /// Part of the call that differs.
        pub part: ComparedPart,
        /// Dotted path of the value in this part: `cart.items.0.sku`. Empty for the whole part.
        pub path: String,
        /// Expected value as JSON, pattern or condition. `None` if no value is expected here.
        pub expected: Option<String>,
        /// Actual value as JSON. `None` if it is missing.
        pub got: Option<String>,
        /// Kind of difference.
        pub reason: DifferenceReason,
        /// Explanation, if the two values alone do not show the difference.
        pub note?: Option<String>,
    }
}

/// Part of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedPart {
    /// The arguments.
    Arguments,
    /// The result.
    Result,
}

/// Kind of difference between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceReason {
    /// The expected value is missing.
    Missing,
    /// No value is expected here.
    Unexpected,
    /// The values have the same type and are not equal.
    Value,
    /// The values have different types.
    Type,
    /// The value does not match the pattern.
    Pattern,
    /// The value does not meet the condition.
    Condition,
    /// The type of the value does not allow the comparison.
    Incomparable,
    /// The arguments are unknown or no JSON object.
    InvalidJson,
}

/// Line below the missing calls of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonLine {
    /// A call with its turn, tool, arguments and result; or a failed check.
    pub text: String,
    /// True for a call that the check does not allow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unexpected: bool,
}

impl CallComparison {
    /// Changes every text, for example to redact secrets.
    pub fn map_texts(&mut self, change: impl Fn(&str) -> String) {
        self.summary = change(&self.summary);
        for missing in &mut self.missing {
            missing.expected = missing.expected.take().map(|text| change(&text));
            for difference in missing.nearest.iter_mut().flat_map(|nearest| &mut nearest.differences) {
                difference.path = change(&difference.path);
                for text in [&mut difference.expected, &mut difference.got, &mut difference.note] {
                    *text = text.take().map(|text| change(&text));
                }
            }
        }
        for line in &mut self.lines {
            line.text = change(&line.text);
        }
    }

    /// Describes the comparison on one line: the first missing call that has a nearest call, otherwise the
    /// summary.
    pub fn one_line(&self) -> String {
        let nearest = self.missing.iter().find_map(|missing| missing.nearest.as_ref());
        match (nearest, self.missing.as_slice(), self.lines.first()) {
            (Some(nearest), ..) => nearest.to_string(),
            (None, [], Some(call)) if call.unexpected => format!("{}: {}", self.summary, call.text),
            (None, [MissingCall { expected: Some(expected), .. }, ..], _) => {
                format!("{}: {expected}", self.summary)
            }
            (None, ..) => self.summary.clone(),
        }
    }
}

impl ComparisonLine {
    /// Label before the text.
    pub fn label(&self) -> &'static str {
        if self.unexpected { "unexpected: " } else { "" }
    }
}

impl fmt::Display for CallComparison {
    /// Writes the summary, the missing calls with their differences, and the other calls, on one line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary)?;
        for missing in &self.missing {
            match (&missing.expected, &missing.nearest) {
                (Some(expected), None) => write!(f, "\n- missing: {expected}")?,
                (Some(expected), Some(NearestCall { tool, turn, .. })) => {
                    write!(f, "\n- missing: {expected}; nearest: {tool} in turn {turn}")?;
                }
                (None, Some(NearestCall { tool, turn, .. })) => {
                    write!(f, "\n- nearest: {tool} in turn {turn}")?;
                }
                (None, None) => {}
            }
            let Some(nearest) = &missing.nearest else { continue };
            for difference in &nearest.differences {
                write!(f, "\n  {difference}")?;
            }
            if nearest.omitted > 0 {
                write!(f, "\n  … and {} more differences", nearest.omitted)?;
            }
        }
        for line in &self.lines {
            write!(f, "\n- {}{}", line.label(), line.text)?;
        }
        if self.omitted > 0 {
            write!(f, "\n… and {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl fmt::Display for NearestCall {
    /// Names the call and its first differences: `book in turn 2, where amount is 350`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in turn {}", self.tool, self.turn)?;
        let shown = &self.differences[..self.differences.len().min(MAX_SUMMARY_DIFFERENCES)];
        for (number, difference) in shown.iter().enumerate() {
            let (expected, got) = difference.excerpts();
            let subject = difference.subject();
            f.write_str(if number == 0 { ", where " } else { " and " })?;
            match (expected, got, difference.reason) {
                (_, _, DifferenceReason::InvalidJson) => {
                    write!(f, "the arguments are {UNREADABLE_ARGUMENTS}")?;
                }
                (Some(expected), Some(got), DifferenceReason::Type) => {
                    write!(f, "{subject} is {got}, not {expected}")?;
                }
                (_, Some(_), DifferenceReason::Unexpected) => write!(f, "{subject} is not expected")?,
                (_, Some(got), _) => write!(f, "{subject} is {got}")?,
                (_, None, _) => write!(f, "{subject} is missing")?,
            }
            // The types are said already.
            if let Some(note) =
                difference.note.as_ref().filter(|_| difference.reason != DifferenceReason::Type)
            {
                write!(f, " ({note})")?;
            }
        }
        match self.differences.len() - shown.len() + self.omitted {
            0 => Ok(()),
            1 => f.write_str(", and 1 more difference"),
            more => write!(f, ", and {more} more differences"),
        }
    }
}

impl fmt::Display for ValueDifference {
    /// Writes the path with both values: `amount: expected 3500, got 350`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (expected, got) = self.excerpts();
        let subject = self.subject();
        match (expected, got) {
            (Some(expected), Some(got)) => write!(f, "{subject}: expected {expected}, got {got}")?,
            (Some(expected), None) => write!(f, "{subject}: expected {expected}, but it is missing")?,
            (None, Some(got)) => write!(f, "{subject}: not expected, got {got}")?,
            (None, None) => write!(f, "{subject} differs")?,
        }
        match &self.note {
            Some(note) => write!(f, " ({note})"),
            None => Ok(()),
        }
    }
}

impl ValueDifference {
    /// Names the value: its path in the arguments, or its place in the result.
    pub fn subject(&self) -> String {
        match (self.part, self.path.as_str()) {
            (ComparedPart::Arguments, "") => "the arguments".to_string(),
            (ComparedPart::Result, "") => "the result".to_string(),
            (ComparedPart::Arguments, path) => path.to_string(),
            (ComparedPart::Result, path) => format!("{path} of the result"),
        }
    }

    /// Returns both values on one line. Long ones are cut to the part that differs.
    pub fn excerpts(&self) -> (Option<String>, Option<String>) {
        match (&self.expected, &self.got) {
            (Some(expected), Some(got)) if self.reason == DifferenceReason::Value => {
                let equal = expected.chars().zip(got.chars()).take_while(|(a, b)| a == b).count();
                let is_long = |text: &str| text.chars().nth(MAX_EXCERPT_CHARS).is_some();
                let start = match is_long(expected) || is_long(got) {
                    true => equal.saturating_sub(CONTEXT_CHARS),
                    false => 0,
                };
                (Some(excerpt(expected, start)), Some(excerpt(got, start)))
            }
            (expected, got) => {
                let cut = |text: &Option<String>| text.as_deref().map(|text| excerpt(text, 0));
                (cut(expected), cut(got))
            }
        }
    }
}

/// Cuts a text to a readable part that begins at a character.
fn excerpt(text: &str, start: usize) -> String {
    let mut rest = text.chars().skip(start);
    let mut shown = String::from(if start > 0 { "…" } else { "" });
    shown.extend(rest.by_ref().take(MAX_EXCERPT_CHARS));
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(expected: &str, got: &str, reason: DifferenceReason) -> ValueDifference {
        ValueDifference {
            part: ComparedPart::Arguments,
            path: "amount".to_string(),
            expected: Some(expected.to_string()),
            got: Some(got.to_string()),
            reason,
            note: None,
        }
    }

    #[test]
    fn shows_the_place_where_long_values_differ() {
        let (a, b) = (format!("{}x{}", "a".repeat(500), "c".repeat(500)), "a".repeat(500));
        let (expected, got) = difference(&a, &b, DifferenceReason::Value).excerpts();
        assert_eq!(expected.as_deref(), Some(&*format!("…{}x{}…", "a".repeat(30), "c".repeat(129))));
        assert_eq!(got.as_deref(), Some(&*format!("…{}", "a".repeat(30))));
    }

    #[test]
    fn names_the_first_differences_on_one_line() {
        let nearest = |count: usize, omitted| NearestCall {
            tool: "book".into(),
            turn: 2,
            id: "c".into(),
            differences: vec![difference("3500", "350", DifferenceReason::Value); count],
            omitted,
        };
        for (call, expected) in [
            (nearest(1, 0), "book in turn 2, where amount is 350"),
            (nearest(3, 0), "book in turn 2, where amount is 350 and amount is 350, and 1 more difference"),
            (nearest(2, 4), "book in turn 2, where amount is 350 and amount is 350, and 4 more differences"),
        ] {
            assert_eq!(call.to_string(), expected);
        }
    }
}
