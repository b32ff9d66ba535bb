//! Matchers of plain values: ordinary comparisons that are recorded.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use super::{Assertion, Form, Matcher, shown};
use crate::checks::{Fitting, Pattern, Relation};

/// Equal to a value.
///
/// ```
/// use hotseat::dsl::{Matcher, eq};
///
/// assert_eq!(eq(4).assertion(&4).holds(), Some(true));
/// assert_eq!(eq(["a", "b"]).assertion(&vec!["a".to_string()]).holds(), Some(false));
/// ```
pub fn eq<U>(wanted: U) -> Equal<U> {
    Equal { wanted, same: true }
}

/// Not equal to a value.
///
/// ```
/// use hotseat::dsl::{Matcher, ne};
///
/// assert_eq!(ne(4).assertion(&5).holds(), Some(true));
/// ```
pub fn ne<U>(other: U) -> Equal<U> {
    Equal { wanted: other, same: false }
}

/// See [`eq`] and [`ne`].
#[derive(Debug, Clone)]
pub struct Equal<U> {
    wanted: U,
    same: bool,
}

impl<T: PartialEq<U> + Debug + ?Sized, U: Debug> Matcher<T> for Equal<U> {
    fn assertion(&self, found: &T) -> Assertion {
        let expected = format!("{} {}", if self.same { "to be" } else { "not to be" }, shown(&self.wanted));
        match is_nan(&self.wanted) || is_nan(found) {
            true => Assertion::unknown(expected, "NaN equals nothing, itself included".to_string()),
            false => Assertion::known(expected, (*found == self.wanted) == self.same, shown(found)),
        }
    }
}

/// Whether a value is a number that is none. Only how it is shown tells, for values are of any type.
fn is_nan(value: &(impl Debug + ?Sized)) -> bool {
    format!("{value:?}") == "NaN"
}

/// How a value compares with another one; see [`ge`], [`gt`], [`le`] and [`lt`].
#[derive(Debug, Clone)]
pub struct Compare<U> {
    pub(super) relation: Relation,
    pub(super) than: U,
}

impl<T: PartialOrd<U> + Debug, U: Debug> Matcher<T> for Compare<U> {
    fn assertion(&self, found: &T) -> Assertion {
        let expected = format!("to be {} {}", self.relation.words(), shown(&self.than));
        match found.partial_cmp(&self.than).map(|ordering| self.relation.allows(ordering)) {
            Some(holds) => Assertion::known(expected, holds, shown(found)),
            None => {
                let why = format!("{} and {} cannot be compared", shown(found), shown(&self.than));
                Assertion::unknown(expected, why)
            }
        }
    }
}

/// At least so much. Also for arguments of tools.
///
/// ```
/// use hotseat::dsl::{Matcher, ge};
///
/// assert_eq!(ge(3).assertion(&3).holds(), Some(true));
/// ```
pub fn ge<U>(than: U) -> Compare<U> {
    Compare { relation: Relation::AtLeast, than }
}

/// More than that. Also for arguments of tools.
///
/// ```
/// use hotseat::dsl::{Matcher, gt};
///
/// assert_eq!(gt(3).assertion(&3).holds(), Some(false));
/// ```
pub fn gt<U>(than: U) -> Compare<U> {
    Compare { relation: Relation::MoreThan, than }
}

/// At most so much. Also for arguments of tools.
///
/// ```
/// use hotseat::dsl::{Matcher, le};
///
/// assert_eq!(le(500).assertion(&"short".len()).holds(), Some(true));
/// ```
pub fn le<U>(than: U) -> Compare<U> {
    Compare { relation: Relation::AtMost, than }
}

/// Less than that. Also for arguments of tools.
///
/// ```
/// use hotseat::dsl::{Matcher, lt};
///
/// assert_eq!(lt(0.5).assertion(&0.1).holds(), Some(true));
/// ```
pub fn lt<U>(than: U) -> Compare<U> {
    Compare { relation: Relation::LessThan, than }
}

/// One of several values.
///
/// ```
/// use hotseat::dsl::{Matcher, one_of};
///
/// assert_eq!(one_of(["open", "closed"]).assertion(&"open").holds(), Some(true));
/// ```
pub fn one_of<U>(values: impl IntoIterator<Item = U>) -> OneOf<U> {
    OneOf { values: values.into_iter().collect() }
}

/// See [`one_of`].
#[derive(Debug, Clone)]
pub struct OneOf<U> {
    values: Vec<U>,
}

impl<U> OneOf<U> {
    pub(super) fn mistake(&self) -> Option<&'static str> {
        self.values.is_empty().then_some("`one_of` has no values, and nothing is one of them")
    }

    pub(super) fn into_values(self) -> Vec<U> {
        self.values
    }
}

impl<T: PartialEq<U> + Debug, U: Debug> Matcher<T> for OneOf<U> {
    fn assertion(&self, found: &T) -> Assertion {
        if let Some(wrong) = self.mistake() {
            return Assertion::wrong(wrong);
        }
        let expected = format!("to be one of {}", shown(&self.values));
        if is_nan(found) || self.values.iter().any(is_nan) {
            return Assertion::unknown(expected, "NaN equals nothing, itself included".to_string());
        }
        Assertion::known(expected, self.values.iter().any(|value| found == value), shown(found))
    }
}

/// What is looked for in a text or a list: one thing, or several.
pub trait Sought {
    /// What one of them is.
    type Item;

    /// All of them.
    fn all(self) -> Vec<Self::Item>;
}

impl<U> Sought for Vec<U> {
    type Item = U;

    fn all(self) -> Vec<U> {
        self
    }
}

impl<U, const N: usize> Sought for [U; N] {
    type Item = U;

    fn all(self) -> Vec<U> {
        self.into()
    }
}

macro_rules! sought {
    ($($one:ty),*) => {
        $(impl Sought for $one {
            type Item = $one;

            fn all(self) -> Vec<$one> {
                vec![self]
            }
        })*
    };
}

sought!(&'static str, String, bool, i32, i64, u32, u64, usize, f64, serde_json::Value);

/// What is said of a text or list that is to contain nothing.
pub(super) const LOOKS_FOR_NOTHING: &str = "`contains` looks for nothing: name what is to be there";

/// See [`contains`] and [`contains_any`].
#[derive(Debug, Clone)]
pub struct Contains<U> {
    pub(super) sought: Vec<U>,
    pub(super) all: bool,
}

/// A text that contains another one, or a list that has an entry; of several all are there.
///
/// ```
/// use hotseat::dsl::{Matcher, contains};
///
/// assert_eq!(contains("Room").assertion("Blue Room").holds(), Some(true));
/// assert_eq!(contains(["search", "book"]).assertion(&vec!["search", "pay", "book"]).holds(), Some(true));
/// ```
pub fn contains<W: Sought>(sought: W) -> Contains<W::Item> {
    Contains { sought: sought.all(), all: true }
}

/// A text or list that contains one of several.
///
/// ```
/// use hotseat::dsl::{Matcher, contains_any};
///
/// assert_eq!(contains_any(["2 pm", "14:00"]).assertion("at 14:00").holds(), Some(true));
/// ```
pub fn contains_any<W: Sought>(sought: W) -> Contains<W::Item> {
    Contains { sought: sought.all(), all: false }
}

impl<U: Debug> Contains<U> {
    pub(super) fn expected(&self) -> String {
        let words: Vec<String> = self.sought.iter().map(|sought| shown(sought)).collect();
        let how = if words.len() > 1 && !self.all { "something of " } else { "" };
        format!("{how}{}", words.join(", "))
    }

    /// What is decided where `has` says what is there.
    fn decide(&self, has: impl Fn(&U) -> bool, found: String) -> Assertion {
        if self.sought.is_empty() {
            return Assertion::wrong(LOOKS_FOR_NOTHING);
        }
        let expected = format!("to contain {}", self.expected());
        Assertion::known(expected, self.fits(has), found)
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
            impl<U: AsRef<str> + Debug> Matcher<$text> for Contains<U> {
                fn assertion(&self, text: &$text) -> Assertion {
                    let text: &str = text;
                    if self.sought.iter().any(|sought| sought.as_ref().is_empty()) {
                        return Assertion::wrong(LOOKS_FOR_NOTHING);
                    }
                    self.decide(|sought| text.contains(sought.as_ref()), shown(text))
                }
            }

            impl Matcher<$text> for Matches {
                fn assertion(&self, text: &$text) -> Assertion {
                    self.decide(text)
                }
            }

            impl Matcher<$text> for StartsOrEnds {
                fn assertion(&self, text: &$text) -> Assertion {
                    self.decide(text)
                }
            }

            impl Matcher<$text> for Empty {
                fn assertion(&self, text: &$text) -> Assertion {
                    let text: &str = text;
                    Assertion::known("to be empty".to_string(), text.is_empty(), shown(text))
                }
            }

            impl<M: Matcher<usize>> Matcher<$text> for Len<M> {
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
            impl<T: PartialEq<U> + Debug, U: Debug, $($generic)*> Matcher<$list> for Contains<U> {
                fn assertion(&self, list: &$list) -> Assertion {
                    self.decide(|sought| list.iter().any(|entry| entry == sought), shown(&list[..]))
                }
            }

            impl<T: Debug, $($generic)*> Matcher<$list> for Empty {
                fn assertion(&self, list: &$list) -> Assertion {
                    Assertion::known("to be empty".to_string(), list.is_empty(), shown(&list[..]))
                }
            }

            impl<T, M: Matcher<usize>, $($generic)*> Matcher<$list> for Len<M> {
                fn assertion(&self, list: &$list) -> Assertion {
                    self.decide(list.len())
                }
            }
        )*
    };
}

lists!([] Vec<T>, [] [T], [] &[T], [] &Vec<T>, [const N: usize] [T; N]);

/// See [`starts_with`] and [`ends_with`].
#[derive(Debug, Clone)]
pub struct StartsOrEnds {
    part: String,
    at_start: bool,
}

/// A text that begins with another one.
///
/// ```
/// use hotseat::dsl::{Matcher, starts_with};
///
/// assert_eq!(starts_with("Blue").assertion("Blue Room").holds(), Some(true));
/// ```
pub fn starts_with(part: impl Into<String>) -> StartsOrEnds {
    StartsOrEnds { part: part.into(), at_start: true }
}

/// A text that ends with another one.
///
/// ```
/// use hotseat::dsl::{Matcher, ends_with};
///
/// assert_eq!(ends_with("?").assertion("Which room?").holds(), Some(true));
/// ```
pub fn ends_with(part: impl Into<String>) -> StartsOrEnds {
    StartsOrEnds { part: part.into(), at_start: false }
}

impl StartsOrEnds {
    fn decide(&self, text: &str) -> Assertion {
        if self.part.is_empty() {
            return Assertion::wrong(
                "every text begins and ends with an empty one: name what is to be there",
            );
        }
        let (word, holds) = match self.at_start {
            true => ("begin", text.starts_with(&self.part)),
            false => ("end", text.ends_with(&self.part)),
        };
        Assertion::known(format!("to {word} with {}", shown(&self.part)), holds, shown(text))
    }
}

/// A text or list in which there is nothing.
///
/// ```
/// use hotseat::dsl::{Matcher, is_empty, not};
///
/// assert_eq!(not(is_empty()).assertion("Hi").holds(), Some(true));
/// ```
pub fn is_empty() -> Empty {
    Empty
}

/// See [`is_empty`].
#[derive(Debug, Clone, Copy)]
pub struct Empty;

/// A text of so many characters, or a list of so many entries.
///
/// ```
/// use hotseat::dsl::{Matcher, ge, len};
///
/// assert_eq!(len(ge(2)).assertion(&["a", "b", "c"]).holds(), Some(true));
/// ```
pub fn len<M>(number: M) -> Len<M> {
    Len(number)
}

/// See [`len`].
#[derive(Debug, Clone)]
pub struct Len<M>(M);

impl<M: Matcher<usize>> Len<M> {
    fn decide(&self, length: usize) -> Assertion {
        let mut assertion = self.0.assertion(&length);
        if let Form::Known(known) = &mut assertion.form {
            let number = known.expected.strip_prefix("to be ").unwrap_or(&known.expected);
            known.expected = format!("to have a length of {number}");
        }
        assertion
    }
}

/// Regular expressions: one, or several.
pub trait Patterns {
    /// As they are written.
    fn written(self) -> Vec<String>;
}

impl Patterns for &str {
    fn written(self) -> Vec<String> {
        vec![self.to_string()]
    }
}

impl Patterns for String {
    fn written(self) -> Vec<String> {
        vec![self]
    }
}

impl<P: Into<String>> Patterns for Vec<P> {
    fn written(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<P: Into<String>, const N: usize> Patterns for [P; N] {
    fn written(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

/// See [`matches()`] and [`matches_any`].
#[derive(Debug, Clone)]
pub struct Matches {
    pub(super) patterns: Result<Vec<Pattern>, String>,
    pub(super) written: Vec<String>,
    pub(super) all: bool,
}

/// A text that a regular expression fits somewhere; of several all fit. Also for the answer of the agent and for
/// arguments of tools.
///
/// ```
/// use hotseat::dsl::{Matcher, matches};
///
/// assert_eq!(matches(r"(?i)3[:\s]?00\s*pm|15[:\s]?00").assertion("at 3:00 PM").holds(), Some(true));
/// assert_eq!(matches(["blue", "room"]).assertion("the blue one").holds(), Some(false));
/// ```
pub fn matches(patterns: impl Patterns) -> Matches {
    Matches::new(patterns.written(), true)
}

/// A text that one of several regular expressions fits.
///
/// ```
/// use hotseat::dsl::{Matcher, matches_any};
///
/// assert_eq!(matches_any([r"2:00\s*pm", "14:00"]).assertion("at 14:00").holds(), Some(true));
/// ```
pub fn matches_any(patterns: impl Patterns) -> Matches {
    Matches::new(patterns.written(), false)
}

impl Matches {
    fn new(written: Vec<String>, all: bool) -> Matches {
        let compile = |written: &String| {
            Pattern::compile(written)
                .map_err(|words| format!("the pattern {written:?} does not compile: {words}"))
        };
        let patterns = match written.is_empty() {
            true => Err("`matches` has no pattern, and asserts nothing".to_string()),
            false => written.iter().map(compile).collect(),
        };
        Matches { patterns, written, all }
    }

    pub(super) fn fitting(&self) -> Fitting {
        if self.all { Fitting::All } else { Fitting::Any }
    }

    fn decide(&self, text: &str) -> Assertion {
        match &self.patterns {
            Err(words) => Assertion::wrong(words.clone()),
            Ok(patterns) => {
                let expected = format!("to fit {}", self.fitting().describe(patterns));
                Assertion::known(expected, self.fitting().fits(patterns, text), shown(text))
            }
        }
    }
}
