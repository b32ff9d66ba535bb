//! Collects what is wrong with a script.

use hotseat_document::{Diagnostic, Diagnostics, Place};

/// What is wrong with a script, so that everything is reported together.
#[derive(Debug, Default)]
pub(super) struct Mistakes {
    /// Each with the rule that it was found in.
    found: Vec<(Option<usize>, Diagnostic)>,
    /// The rule that is being looked at, from 1.
    pub(super) rule: Option<usize>,
}

impl Mistakes {
    pub(super) fn add(&mut self, place: Option<&Place>, message: impl Into<String>) {
        self.push(place, Diagnostic::new(message));
    }

    /// Adds a mistake that has its words but not its place.
    pub(super) fn push(&mut self, place: Option<&Place>, mistake: Diagnostic) {
        let mistake = match (place, self.rule) {
            (Some(place), _) => mistake.at(place.clone()),
            // What was built in code stands in no file.
            (None, Some(rule)) => {
                Diagnostic { message: format!("rule {rule}: {}", mistake.message), ..mistake }
            }
            (None, None) => mistake,
        };
        self.found.push((self.rule, mistake));
    }

    pub(super) fn extend(&mut self, mistakes: Diagnostics) {
        self.found.extend(mistakes.into_iter().map(|mistake| (None, mistake)));
    }

    /// Whether there is one about the rule that is being looked at, or within the place of that rule.
    pub(super) fn concern_rule(&self, place: Option<&Place>) -> bool {
        self.within(place) || self.found.iter().any(|(rule, _)| rule.is_some() && *rule == self.rule)
    }

    /// Whether there is one within a place: what is wrong there already need not be told again.
    pub(super) fn within(&self, place: Option<&Place>) -> bool {
        let Some(place) = place else { return false };
        self.found.iter().filter_map(|(_, mistake)| mistake.place.as_ref()).any(|at| place.contains(at))
    }

    /// The value, or everything that is wrong, in the order in which it is written.
    ///
    /// # Errors
    /// When there are mistakes.
    pub(super) fn or<T>(self, value: T) -> Result<T, Diagnostics> {
        if self.found.is_empty() {
            return Ok(value);
        }
        let mut mistakes = Diagnostics::new();
        mistakes.extend(self.found.into_iter().map(|(_, mistake)| mistake));
        mistakes.sort_by_place();
        Err(mistakes)
    }
}
