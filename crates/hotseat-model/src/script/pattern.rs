//! Regular expressions that are checked when a script is read and made when they are first needed.
//!
//! To check one takes a small part of the time of making it, and most rules of a script are decided by an agent's
//! name, a turn or a call before their patterns are looked at.

use std::fmt;
use std::sync::OnceLock;

use hotseat_document::{Place, shorten};
use regex::Regex;
use regex_syntax::hir::{Hir, HirKind};

use super::mistakes::Mistakes;
use super::rule::Written;

/// Longer patterns, and those that count repetitions, are made at once: only they can be too large to be made.
const SHORT: usize = 200;

/// A regular expression of a rule.
pub(super) struct Pattern {
    source: String,
    /// The names of its groups.
    pub(super) names: Vec<String>,
    regex: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Reads a pattern, or says what is wrong with it. An empty one is refused, because it matches everything.
    pub(super) fn read(written: &Written<String>, key: &str, mistakes: &mut Mistakes) -> Option<Pattern> {
        let (source, place) = (&written.value, written.place.as_ref());
        if source.is_empty() {
            if mistakes.within(place) {
                return None;
            }
            mistakes.add(place, format!("the pattern of `{key}` is empty and would match everything"));
            return None;
        }
        let mut wrong = |place: Option<&Place>, error: &dyn fmt::Display| {
            // The crate draws the pattern with a mark below; the last line says what is wrong.
            let said = error.to_string();
            let reason = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let pattern = shorten(source);
            mistakes.add(place, format!("`{key}` is not a regular expression: /{pattern}/: {reason}"));
        };
        let hir = match regex_syntax::parse(source) {
            Ok(hir) => hir,
            Err(error) => {
                let part = place.map(|place| place.within(source, span(&error).unwrap_or(0..source.len())));
                wrong(part.as_ref(), &error);
                return None;
            }
        };
        let pattern = Pattern { source: source.clone(), names: names(&hir), regex: OnceLock::new() };
        if source.len() > SHORT || source.contains('{') {
            let regex = Regex::new(source).map_err(|error| wrong(place, &error)).ok()?;
            pattern.regex.get_or_init(|| Some(regex));
        }
        Some(pattern)
    }

    /// The expression itself. A pattern that was read can be made; if it could not, it would match nothing.
    pub(super) fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| Regex::new(&self.source).ok()).as_ref()
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }
}

/// The part of a pattern that an error is about, in bytes.
fn span(error: &regex_syntax::Error) -> Option<std::ops::Range<usize>> {
    let span = match error {
        regex_syntax::Error::Parse(error) => error.span(),
        regex_syntax::Error::Translate(error) => error.span(),
        _ => return None,
    };
    Some(span.start.offset..span.end.offset)
}

/// The names of the groups of an expression, in order.
fn names(hir: &Hir) -> Vec<String> {
    let mut names = Vec::new();
    let mut open = vec![hir];
    while let Some(hir) = open.pop() {
        match hir.kind() {
            HirKind::Capture(group) => {
                names.extend(group.name.as_deref().map(str::to_owned));
                open.push(&group.sub);
            }
            HirKind::Repetition(repetition) => open.push(&repetition.sub),
            // The last one is taken first.
            HirKind::Concat(parts) | HirKind::Alternation(parts) => open.extend(parts.iter().rev()),
            HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {}
        }
    }
    names
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.source)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_made_late_can_be_made() {
        // The widest classes as often as a short pattern can hold them.
        for class in [r"\w", r"\W", r"(?i)\PL"] {
            let source = class.repeat(SHORT / class.len());
            let mut mistakes = Mistakes::default();
            let pattern = Pattern::read(&source.into(), "user", &mut mistakes).unwrap();
            assert!(pattern.regex.get().is_none());
            assert!(pattern.regex().is_some(), "{class}");
        }
    }

    #[test]
    fn groups_are_named_in_their_order() {
        let source = "(?<a>x(?<b>y)|z)+(?<c>.)".to_owned();
        let pattern = Pattern::read(&source.into(), "user", &mut Mistakes::default()).unwrap();
        assert_eq!(pattern.names, ["a", "b", "c"]);
    }
}
