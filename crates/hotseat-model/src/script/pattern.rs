//! Regular expressions that are checked when a script is read and compiled on first use.
//!
//! Checking takes a fraction of the time of compiling, and most rules are decided by agent, turn or call
//! before their patterns are needed.

use std::fmt;
use std::sync::OnceLock;

use hotseat_document::{SourceSpan, shorten};
use regex::Regex;
use regex_syntax::hir::{Hir, HirKind};

use super::diagnostics::ScriptDiagnostics;
use super::rule::SourceValue;

/// Patterns longer than this, and those with counted repetitions, are compiled at once: only they can exceed
/// the size limit.
const MAX_LAZY_PATTERN_BYTES: usize = 200;

/// A regular expression of a rule.
pub(super) struct RulePattern {
    source: String,
    /// Names of its capture groups.
    pub(super) names: Vec<String>,
    regex: OnceLock<Option<Regex>>,
}

impl RulePattern {
    /// Parses a pattern, or reports its problems. An empty pattern is rejected because it matches everything.
    pub(super) fn parse(
        written: &SourceValue<String>,
        key: &str,
        mistakes: &mut ScriptDiagnostics,
    ) -> Option<RulePattern> {
        let (source, place) = (&written.value, written.place.as_ref());
        if source.is_empty() {
            if mistakes.has_within(place) {
                return None;
            }
            mistakes.add(place, format!("the pattern of `{key}` is empty and would match every text"));
            return None;
        }
        let mut wrong = |place: Option<&SourceSpan>, error: &dyn fmt::Display| {
            // The last line of the error holds the reason; the others show the pattern.
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
        let pattern = RulePattern { source: source.clone(), names: names(&hir), regex: OnceLock::new() };
        if source.len() > MAX_LAZY_PATTERN_BYTES || source.contains('{') {
            let regex = Regex::new(source).map_err(|error| wrong(place, &error)).ok()?;
            pattern.regex.get_or_init(|| Some(regex));
        }
        Some(pattern)
    }

    /// Returns the compiled expression. None, which matches nothing, cannot occur for a pattern that was
    /// checked.
    pub(super) fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| Regex::new(&self.source).ok()).as_ref()
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }
}

/// Returns the byte range of a pattern that an error refers to.
fn span(error: &regex_syntax::Error) -> Option<std::ops::Range<usize>> {
    let span = match error {
        regex_syntax::Error::Parse(error) => error.span(),
        regex_syntax::Error::Translate(error) => error.span(),
        _ => return None,
    };
    Some(span.start.offset..span.end.offset)
}

/// Returns the names of the capture groups, in order.
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
            // The stack is popped from the end, so parts are pushed in reverse.
            HirKind::Concat(parts) | HirKind::Alternation(parts) => open.extend(parts.iter().rev()),
            HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {}
        }
    }
    names
}

impl fmt::Display for RulePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.source)
    }
}

impl fmt::Debug for RulePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lazily_compiled_patterns_always_compile() {
        // The largest classes, as often as a short pattern can contain them.
        for class in [r"\w", r"\W", r"(?i)\PL"] {
            let source = class.repeat(MAX_LAZY_PATTERN_BYTES / class.len());
            let mut mistakes = ScriptDiagnostics::default();
            let pattern = RulePattern::parse(&source.into(), "user", &mut mistakes).unwrap();
            assert!(pattern.regex.get().is_none());
            assert!(pattern.regex().is_some(), "{class}");
        }
    }

    #[test]
    fn group_names_are_in_order() {
        let source = "(?<a>x(?<b>y)|z)+(?<c>.)".to_owned();
        let pattern = RulePattern::parse(&source.into(), "user", &mut ScriptDiagnostics::default()).unwrap();
        assert_eq!(pattern.names, ["a", "b", "c"]);
    }
}
