//! Diagnostics of a script.

use hotseat_document::{Diagnostic, Diagnostics, SourceSpan};

/// Collects the problems of a script, so that all are reported together.
#[derive(Debug, Default)]
pub(super) struct ScriptDiagnostics {
    /// Problems, each with the number of its rule.
    problems: Vec<(Option<usize>, Diagnostic)>,
    /// Number of the current rule, from 1.
    pub(super) rule: Option<usize>,
}

impl ScriptDiagnostics {
    pub(super) fn add(&mut self, place: Option<&SourceSpan>, message: impl ToString) {
        self.push(place, Diagnostic::new(message));
    }

    /// Adds a problem at a place.
    pub(super) fn push(&mut self, place: Option<&SourceSpan>, mistake: Diagnostic) {
        let mistake = match (place, self.rule) {
            (Some(place), _) => mistake.at(place.clone()),
            // Rules built in code have no place.
            (None, Some(rule)) => {
                Diagnostic { message: format!("rule {rule}: {}", mistake.message), ..mistake }
            }
            (None, None) => mistake,
        };
        self.problems.push((self.rule, mistake));
    }

    pub(super) fn extend(&mut self, mistakes: Diagnostics) {
        self.problems.extend(mistakes.into_iter().map(|mistake| (None, mistake)));
    }

    /// Returns true if there is a problem in the current rule or within its place.
    pub(super) fn affects_rule(&self, place: Option<&SourceSpan>) -> bool {
        self.has_within(place) || self.problems.iter().any(|(rule, _)| rule.is_some() && *rule == self.rule)
    }

    /// Returns true if there is a problem within a place, so that it need not be reported again.
    pub(super) fn has_within(&self, place: Option<&SourceSpan>) -> bool {
        let Some(place) = place else { return false };
        self.problems.iter().filter_map(|(_, mistake)| mistake.place.as_ref()).any(|at| place.contains(at))
    }

    /// Returns the value, or all problems in file order. Fails if there are problems.
    pub(super) fn into_result<T>(self, value: T) -> Result<T, Diagnostics> {
        if self.problems.is_empty() {
            return Ok(value);
        }
        let mut mistakes = Diagnostics::new();
        mistakes.extend(self.problems.into_iter().map(|(_, mistake)| mistake));
        mistakes.sort_by_place();
        Err(mistakes)
    }
}
