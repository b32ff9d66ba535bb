//! What a program asserts takes from around it what it refers to, as what is written in a case has done before its run.
//! What it refers to in vain is a mistake of the test, whether it decides or is only measured.

use hotseat_document::{Diagnostic, Diagnostics, Place};
use hotseat_trace::{Failure, FailureKind};

use super::{Ended, Session, media};
use crate::cases::{Topics, Turn};
use crate::checks::{Check, Judging};

impl Session<'_> {
    /// Has checks take from around them what they refer to, and finds their judges. Returned is what is wrong with them,
    /// but for the topics that they name.
    pub(super) fn fill_in<'c>(&mut self, checks: impl Iterator<Item = &'c mut Check>) -> Diagnostics {
        let vocabulary = self.vocabulary.clone();
        let mut mistakes = Diagnostics::new();
        for check in checks {
            match vocabulary.fill_in(check) {
                Err(wrong) => mistakes.push(wrong),
                Ok(()) if check.is_about_time() && !self.counterpart.keeps_time() => {
                    mistakes.push(without_times(&check.place));
                }
                Ok(()) => mistakes.extend(self.find_judge(check).err()),
            }
        }
        mistakes
    }

    /// What of a turn the agent cannot be told.
    pub(super) fn unheard(&self, turn: &Turn) -> Diagnostics {
        let carries = self.carries();
        let mut mistakes = Diagnostics::new();
        let mut cannot = |what: &str, place: &Place| {
            let message = format!("{what} cannot be sent to an agent of this kind");
            mistakes.push(Diagnostic::new(message).at(place.clone()));
        };
        if let Some(options) = turn.options.as_ref().filter(|_| !carries.options) {
            cannot("`options`", &options.place);
        }
        if let Some(media) = media(&turn.content).next().filter(|_| !carries.attachments) {
            cannot("attachments", &media.place);
        }
        mistakes
    }

    /// What is wrong with checks that name topics that are not followed.
    pub(super) fn unknown_topics<'c>(&self, checks: impl Iterator<Item = &'c Check>) -> Diagnostics {
        Topics::unknown(self.topics(), checks)
    }

    /// Goes on where there are no mistakes; a test that has some ends by them.
    ///
    /// # Errors
    /// When there are mistakes.
    pub(super) fn without(&mut self, mistakes: Diagnostics) -> Result<(), Ended> {
        if mistakes.is_empty() { Ok(()) } else { Err(self.fail(mistaken(mistakes))) }
    }

    /// Finds the judge of a check.
    ///
    /// # Errors
    /// When there is none.
    fn find_judge(&mut self, check: &Check) -> Result<(), Diagnostic> {
        let Some(judged) = check.judged() else { return Ok(()) };
        self.find_judge_as(&judged.judging, &check.place);
        let found = self.deciding.partners.judge(&judged.judging);
        found.map(drop).map_err(|words| Diagnostic::new(words).at(check.place.clone()))
    }

    /// Finds a judge that is referred to in this way, at this place. Whoever is not there is missed when it is to be asked.
    pub(super) fn find_judge_as(&mut self, judging: &Judging, place: &Place) {
        let partners = &mut self.deciding.partners;
        let whom = judging.whom();
        let Some(finds) = partners.finds.clone() else { return };
        if partners.judges.iter().all(|(known, _)| *known != whom) {
            let judge = finds.judge(&whom, place);
            partners.judges.push((whom, judge));
        }
    }
}

/// The failure of a test that is wrong.
pub(super) fn mistaken(mistakes: Diagnostics) -> Failure {
    let mut words = mistakes.into_iter().map(in_words);
    let first = words.next().unwrap_or_default();
    Failure::new(FailureKind::TestError, first).with_detail(words.collect::<Vec<_>>().join("\n"))
}

/// That nothing can be asserted of times, for nobody knows them.
pub(super) fn without_times(place: &Place) -> Diagnostic {
    let message = "the times of this conversation are not known, so nothing that asserts time can be judged";
    let help = "leave `timing` out, or record the agent itself with `hotseat test --record`";
    Diagnostic::new(message).at(place.clone()).help(help)
}

fn in_words(wrong: Diagnostic) -> String {
    let Diagnostic { message, help, place, .. } = wrong;
    let words = match help {
        Some(help) => format!("{message}: {help}"),
        None => message,
    };
    match place {
        Some(place) => format!("{words} ({place})"),
        None => words,
    }
}
