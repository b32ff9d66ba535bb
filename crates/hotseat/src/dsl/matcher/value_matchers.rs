//! Matchers of plain values.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use super::{Assertion, AssertionKind, IntoStrings, Matcher, shown};
use hotseat_checks::{MatchMode, Pattern, ValueRelation};

/// Matches a value that is equal.
///
/// ```
/// use hotseat::dsl::{Matcher, eq};
///
/// assert_eq!(eq(4).assertion(&4).holds(), Some(true));
/// assert_eq!(eq(["a", "b"]).assertion(&vec!["a".to_string()]).holds(), Some(false));
/// ```
pub fn eq<U>(wanted: U) -> EqualMatcher<U> {
    EqualMatcher { expected: wanted, is_equal: true }
}

/// Matches a value that is not equal.
///
/// ```
/// use hotseat::dsl::{Matcher, ne};
///
/// assert_eq!(ne(4).assertion(&5).holds(), Some(true));
/// ```
pub fn ne<U>(other: U) -> EqualMatcher<U> {
    EqualMatcher { expected: other, is_equal: false }
}

/// Equality matcher; see [`eq`] and [`ne`].
#[derive(Debug, Clone)]
pub struct EqualMatcher<U> {
    expected: U,
    is_equal: bool,
}

impl<T: PartialEq<U> + Debug + ?Sized, U: Debug> Matcher<T> for EqualMatcher<U> {
    fn assertion(&self, found: &T) -> Assertion {
        let expected =
            format!("{} {}", if self.is_equal { "to be" } else { "not to be" }, shown(&self.expected));
        match has_number(&self.expected, NAN) || has_number(found, NAN) {
            true => Assertion::undecided_as(expected, NAN_IS_UNEQUAL.to_string()),
            false => {
                Assertion::decided_as(expected, (*found == self.expected) == self.is_equal, shown(found))
            }
        }
    }
}

/// How `Debug` writes NaN.
const NAN: &[&str] = &["NaN"];

/// How `Debug` writes numbers that JSON does not have.
pub(super) const NOT_IN_JSON: &[&str] = &["NaN", "inf"];

const NAN_IS_UNEQUAL: &str = "NaN is not equal to any value, including itself";

/// Returns true if a value is or contains one of these numbers, judging by its `Debug` output without its texts.
pub(super) fn has_number(value: &(impl Debug + ?Sized), written: &[&str]) -> bool {
    // A quotation mark as a character begins no text.
    let shown = format!("{value:?}").replace("'\"'", "");
    let (mut in_text, mut is_escaped) = (false, false);
    let blank_texts = |letter| {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => in_text = !in_text,
            _ if in_text => {}
            _ => return letter,
        }
        ' '
    };
    let outside: String = shown.chars().map(blank_texts).collect();
    let is_separator = |letter: char| !letter.is_alphanumeric() && letter != '_';
    outside.split(is_separator).any(|word| written.contains(&word))
}

/// Comparison matcher; see [`ge`], [`gt`], [`le`] and [`lt`].
#[derive(Debug, Clone)]
pub struct ComparisonMatcher<U> {
    pub(super) relation: ValueRelation,
    pub(super) limit: U,
}

impl<T: PartialOrd<U> + Debug, U: Debug> Matcher<T> for ComparisonMatcher<U> {
    fn assertion(&self, found: &T) -> Assertion {
        let expected = format!("to be {} {}", self.relation.describe(), shown(&self.limit));
        match found.partial_cmp(&self.limit).map(|ordering| self.relation.allows(ordering)) {
            Some(holds) => Assertion::decided_as(expected, holds, shown(found)),
            None => {
                let why = format!("{} and {} cannot be compared", shown(found), shown(&self.limit));
                Assertion::undecided_as(expected, why)
            }
        }
    }
}

/// Matches values greater than or equal to the limit. Also for tool arguments.
///
/// ```
/// use hotseat::dsl::{Matcher, ge};
///
/// assert_eq!(ge(3).assertion(&3).holds(), Some(true));
/// ```
pub fn ge<U>(than: U) -> ComparisonMatcher<U> {
    ComparisonMatcher { relation: ValueRelation::AtLeast, limit: than }
}

/// Matches values greater than the limit. Also for tool arguments.
///
/// ```
/// use hotseat::dsl::{Matcher, gt};
///
/// assert_eq!(gt(3).assertion(&3).holds(), Some(false));
/// ```
pub fn gt<U>(than: U) -> ComparisonMatcher<U> {
    ComparisonMatcher { relation: ValueRelation::MoreThan, limit: than }
}

/// Matches values less than or equal to the limit. Also for tool arguments.
///
/// ```
/// use hotseat::dsl::{Matcher, le};
///
/// assert_eq!(le(500).assertion(&"short".len()).holds(), Some(true));
/// ```
pub fn le<U>(than: U) -> ComparisonMatcher<U> {
    ComparisonMatcher { relation: ValueRelation::AtMost, limit: than }
}

/// Matches values less than the limit. Also for tool arguments.
///
/// ```
/// use hotseat::dsl::{Matcher, lt};
///
/// assert_eq!(lt(0.5).assertion(&0.1).holds(), Some(true));
/// ```
pub fn lt<U>(than: U) -> ComparisonMatcher<U> {
    ComparisonMatcher { relation: ValueRelation::LessThan, limit: than }
}

/// Matches one of several values.
///
/// ```
/// use hotseat::dsl::{Matcher, one_of};
///
/// assert_eq!(one_of(["open", "closed"]).assertion(&"open").holds(), Some(true));
/// ```
pub fn one_of<U>(values: impl IntoIterator<Item = U>) -> OneOfMatcher<U> {
    OneOfMatcher { values: values.into_iter().collect() }
}

/// Membership matcher; see [`one_of`].
#[derive(Debug, Clone)]
pub struct OneOfMatcher<U> {
    values: Vec<U>,
}

impl<U> OneOfMatcher<U> {
    pub(super) fn problem(&self) -> Option<&'static str> {
        self.values.is_empty().then_some("`one_of` has no values: add at least one")
    }

    pub(super) fn into_values(self) -> Vec<U> {
        self.values
    }
}

impl<T: PartialEq<U> + Debug, U: Debug> Matcher<T> for OneOfMatcher<U> {
    fn assertion(&self, found: &T) -> Assertion {
        if let Some(wrong) = self.problem() {
            return Assertion::invalid(wrong);
        }
        let expected = format!("to be one of {}", shown(&self.values));
        if has_number(found, NAN) || has_number(&self.values, NAN) {
            return Assertion::undecided_as(expected, NAN_IS_UNEQUAL.to_string());
        }
        Assertion::decided_as(expected, self.values.iter().any(|value| found == value), shown(found))
    }
}

/// One item or several, to look for in a text or list.
pub trait OneOrMany {
    /// Type of the items.
    type Item;

    /// Returns all items.
    fn into_vec(self) -> Vec<Self::Item>;
}

impl<U> OneOrMany for Vec<U> {
    type Item = U;

    fn into_vec(self) -> Vec<U> {
        self
    }
}

impl<U, const N: usize> OneOrMany for [U; N] {
    type Item = U;

    fn into_vec(self) -> Vec<U> {
        self.into()
    }
}

macro_rules! sought {
    ($($one:ty),*) => {
        $(impl OneOrMany for $one {
            type Item = $one;

            fn into_vec(self) -> Vec<$one> {
                vec![self]
            }
        })*
    };
}

sought!(&'static str, String, bool, i32, i64, u32, u64, usize, f64, serde_json::Value);

/// Error message for an empty search.
pub(super) const EMPTY_CONTAINS: &str =
    "`contains` has nothing to look for: add a text or value that is not empty";

/// Containment matcher; see [`contains`] and [`contains_any`].
#[derive(Debug, Clone)]
pub struct ContainsMatcher<U> {
    pub(super) sought: Vec<U>,
    pub(super) all: bool,
}

/// Matches a text with this substring, or a list with this entry; several items must all be present.
///
/// ```
/// use hotseat::dsl::{Matcher, contains};
///
/// assert_eq!(contains("Room").assertion("Blue Room").holds(), Some(true));
/// assert_eq!(contains(["search", "book"]).assertion(&vec!["search", "pay", "book"]).holds(), Some(true));
/// ```
pub fn contains<W: OneOrMany>(sought: W) -> ContainsMatcher<W::Item> {
    ContainsMatcher { sought: sought.into_vec(), all: true }
}

/// Matches a text or list that contains at least one of several items.
///
/// ```
/// use hotseat::dsl::{Matcher, contains_any};
///
/// assert_eq!(contains_any(["2 pm", "14:00"]).assertion("at 14:00").holds(), Some(true));
/// ```
pub fn contains_any<W: OneOrMany>(sought: W) -> ContainsMatcher<W::Item> {
    ContainsMatcher { sought: sought.into_vec(), all: false }
}

impl<U: Debug> ContainsMatcher<U> {
    pub(super) fn expected(&self) -> String {
        let words: Vec<String> = self.sought.iter().map(|sought| shown(sought)).collect();
        let how = if words.len() > 1 && !self.all { "at least one of " } else { "" };
        format!("{how}{}", words.join(", "))
    }

    /// Evaluates the matcher on a subject, which is shown as `found`; `has` tests it for one item.
    fn decide(&self, has: impl Fn(&U) -> bool, subject: &(impl Debug + ?Sized), found: String) -> Assertion {
        if self.sought.is_empty() {
            return Assertion::invalid(EMPTY_CONTAINS);
        }
        let expected = format!("to contain {}", self.expected());
        if has_number(&self.sought, NAN) || has_number(subject, NAN) {
            return Assertion::undecided_as(expected, NAN_IS_UNEQUAL.to_string());
        }
        let assertion = Assertion::decided_as(expected, self.fits(has), found);
        assertion.of_several(if self.all { self.sought.len() } else { 1 })
    }

    pub(super) fn fits(&self, has: impl Fn(&U) -> bool) -> bool {
        match self.all {
            true => self.sought.iter().all(has),
            false => self.sought.iter().any(has),
        }
    }
}

macro_rules! texts {
    ($($text:ty),*) => {
        $(
            impl<U: AsRef<str> + Debug> Matcher<$text> for ContainsMatcher<U> {
                fn assertion(&self, text: &$text) -> Assertion {
                    let text: &str = text;
                    if self.sought.iter().any(|sought| sought.as_ref().is_empty()) {
                        return Assertion::invalid(EMPTY_CONTAINS);
                    }
                    self.decide(|sought| text.contains(sought.as_ref()), &(), shown(text))
                }
            }

            impl Matcher<$text> for PatternMatcher {
                fn assertion(&self, text: &$text) -> Assertion {
                    self.decide(text)
                }
            }

            impl Matcher<$text> for AffixMatcher {
                fn assertion(&self, text: &$text) -> Assertion {
                    self.decide(text)
                }
            }

            impl Matcher<$text> for EmptyMatcher {
                fn assertion(&self, text: &$text) -> Assertion {
                    let text: &str = text;
                    Assertion::decided_as("to be empty".to_string(), text.is_empty(), shown(text))
                }
            }

            impl<M: Matcher<usize>> Matcher<$text> for LengthMatcher<M> {
                fn assertion(&self, text: &$text) -> Assertion {
                    self.decide(text.chars().count())
                }
            }
        )*
    };
}

texts!(str, &str, String, &String, Cow<'_, str>, Arc<str>);

macro_rules! lists {
    ($([$($generic:tt)*] $list:ty),* $(,)?) => {
        $(
            impl<T: PartialEq<U> + Debug, U: Debug, $($generic)*> Matcher<$list> for ContainsMatcher<U> {
                fn assertion(&self, list: &$list) -> Assertion {
                    self.decide(|sought| list.iter().any(|entry| entry == sought), &list[..], shown(&list[..]))
                }
            }

            impl<T: Debug, $($generic)*> Matcher<$list> for EmptyMatcher {
                fn assertion(&self, list: &$list) -> Assertion {
                    Assertion::decided_as("to be empty".to_string(), list.is_empty(), shown(&list[..]))
                }
            }

            impl<T, M: Matcher<usize>, $($generic)*> Matcher<$list> for LengthMatcher<M> {
                fn assertion(&self, list: &$list) -> Assertion {
                    self.decide(list.len())
                }
            }
        )*
    };
}

lists!([] Vec<T>, [] [T], [] &[T], [] &Vec<T>, [const N: usize] [T; N]);

/// Prefix or suffix matcher; see [`starts_with`] and [`ends_with`].
#[derive(Debug, Clone)]
pub struct AffixMatcher {
    affix: String,
    at_start: bool,
}

/// Matches a text with this prefix.
///
/// ```
/// use hotseat::dsl::{Matcher, starts_with};
///
/// assert_eq!(starts_with("Blue").assertion("Blue Room").holds(), Some(true));
/// ```
pub fn starts_with(part: impl Into<String>) -> AffixMatcher {
    AffixMatcher { affix: part.into(), at_start: true }
}

/// Matches a text with this suffix.
///
/// ```
/// use hotseat::dsl::{Matcher, ends_with};
///
/// assert_eq!(ends_with("?").assertion("Which room?").holds(), Some(true));
/// ```
pub fn ends_with(part: impl Into<String>) -> AffixMatcher {
    AffixMatcher { affix: part.into(), at_start: false }
}

impl AffixMatcher {
    fn decide(&self, text: &str) -> Assertion {
        if self.affix.is_empty() {
            return Assertion::invalid("the prefix or suffix is empty and matches every text: add a text");
        }
        let (word, holds) = match self.at_start {
            true => ("begin", text.starts_with(&self.affix)),
            false => ("end", text.ends_with(&self.affix)),
        };
        Assertion::decided_as(format!("to {word} with {}", shown(&self.affix)), holds, shown(text))
    }
}

/// Matches an empty text or list.
///
/// ```
/// use hotseat::dsl::{Matcher, is_empty, not};
///
/// assert_eq!(not(is_empty()).assertion("Hi").holds(), Some(true));
/// ```
pub fn is_empty() -> EmptyMatcher {
    EmptyMatcher
}

/// Emptiness matcher; see [`is_empty`].
#[derive(Debug, Clone, Copy)]
pub struct EmptyMatcher;

/// Matches the length of a text in characters, or of a list in entries.
///
/// ```
/// use hotseat::dsl::{Matcher, ge, len};
///
/// assert_eq!(len(ge(2)).assertion(&["a", "b", "c"]).holds(), Some(true));
/// ```
pub fn len<M>(number: M) -> LengthMatcher<M> {
    LengthMatcher(number)
}

/// Length matcher; see [`len`].
#[derive(Debug, Clone)]
pub struct LengthMatcher<M>(M);

impl<M: Matcher<usize>> LengthMatcher<M> {
    fn decide(&self, length: usize) -> Assertion {
        let mut assertion = self.0.assertion(&length);
        if let AssertionKind::Decided(known) = &mut assertion.kind {
            let number = known.expected.strip_prefix("to be ").unwrap_or(&known.expected);
            known.expected = format!("to have a length of {number}");
        }
        assertion
    }
}

/// Regular expression matcher; see [`matches()`] and [`matches_any`].
#[derive(Debug, Clone)]
pub struct PatternMatcher {
    pub(super) patterns: Result<Vec<Pattern>, String>,
    pub(super) sources: Vec<String>,
    pub(super) all: bool,
}

/// Matches a text in which the regular expression matches somewhere; several expressions must all match. Also
/// for responses of the agent and for tool arguments.
///
/// The text of a conversation consists of those of all its turns, joined by line breaks: `^` matches at its start, and with
/// `(?m)` at the start of each line.
///
/// ```
/// use hotseat::dsl::{Matcher, matches};
///
/// assert_eq!(matches(r"(?i)3[:\s]?00\s*pm|15[:\s]?00").assertion("at 3:00 PM").holds(), Some(true));
/// assert_eq!(matches(["blue", "room"]).assertion("the blue one").holds(), Some(false));
/// ```
pub fn matches(patterns: impl IntoStrings) -> PatternMatcher {
    PatternMatcher::new(patterns.into_strings(), true)
}

/// Matches a text in which at least one of several regular expressions matches.
///
/// ```
/// use hotseat::dsl::{Matcher, matches_any};
///
/// assert_eq!(matches_any([r"2:00\s*pm", "14:00"]).assertion("at 14:00").holds(), Some(true));
/// ```
pub fn matches_any(patterns: impl IntoStrings) -> PatternMatcher {
    PatternMatcher::new(patterns.into_strings(), false)
}

impl PatternMatcher {
    fn new(written: Vec<String>, all: bool) -> PatternMatcher {
        let compile = |written: &String| {
            Pattern::compile(written)
                .map_err(|words| format!("the pattern {written:?} does not compile: {words}"))
        };
        let patterns = match written.is_empty() {
            true => Err("`matches` has no pattern: add at least one".to_string()),
            false => written.iter().map(compile).collect(),
        };
        PatternMatcher { patterns, sources: written, all }
    }

    pub(super) fn fitting(&self) -> MatchMode {
        if self.all { MatchMode::All } else { MatchMode::Any }
    }

    fn decide(&self, text: &str) -> Assertion {
        match &self.patterns {
            Err(words) => Assertion::invalid(words.clone()),
            Ok(patterns) => {
                let expected = format!("to fit {}", self.fitting().describe(patterns));
                let holds = self.fitting().matches(patterns, text);
                let assertion = Assertion::decided_as(expected, holds, shown(text));
                assertion.of_several(if self.all { patterns.len() } else { 1 })
            }
        }
    }
}
