//! What is kept of a case and of an attempt, as JSON. Places are numbers within sources, which are kept once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::{Place, Source};
use hotseat_trace::{Conversation, Millis, Record, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cases::Suite;
use crate::run::{Attempt, CaseFacts, Finding, Outcome, ReachedFacts, Repetition, Stability, Told, Written};
use crate::session::Redactor;

/// The number of the source that is the piece of the suite in which the case stands.
const OWN: usize = 0;

/// A place: source, begin and end.
type KeptPlace = (usize, usize, usize);

/// Numbers for sources that are no pieces of suites, from 1.
pub(super) trait Numbers {
    /// The number of a source.
    fn number(&mut self, source: &Arc<Source>) -> rusqlite::Result<usize>;
}

/// A case.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptCase {
    case: CaseFacts,
    agent: Option<usize>,
    /// How often it is attempted; none of a case that was never begun.
    pub repetition: Option<Repetition>,
    place: (usize, usize),
    first_line: u32,
    first_column: u32,
    text: String,
}

/// The same, to be written.
#[derive(Serialize)]
struct CaseToKeep<'a> {
    case: &'a CaseFacts,
    agent: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repetition: Option<Repetition>,
    place: (usize, usize),
    first_line: u32,
    first_column: u32,
    text: &'a str,
}

/// What a case came to.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptOutcome {
    verdict: Verdict,
    stability: Option<Stability>,
    telling: usize,
    #[serde(default)]
    never_begun: bool,
    #[serde(default)]
    untried: bool,
}

/// An attempt, but for its events.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptAttempt {
    verdict: Verdict,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<Finding>,
    /// Those of the checks, then those of the checkpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    places: Vec<KeptPlace>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checkpoints: Vec<ReachedFacts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<Duration>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    logs: Vec<String>,
    started_at: Millis,
    duration: Duration,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    given: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "is_false")]
    timeless: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_words: Option<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The same, to be written.
#[derive(Serialize)]
struct AttemptToKeep<'a> {
    verdict: &'a Verdict,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    checks: &'a [Finding],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    places: Vec<KeptPlace>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    checkpoints: &'a [ReachedFacts],
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Duration>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    logs: &'a [String],
    started_at: Millis,
    duration: Duration,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    given: &'a BTreeMap<String, Value>,
    #[serde(skip_serializing_if = "is_false")]
    timeless: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_words: Option<&'a String>,
}

/// A case as it is kept.
pub(super) fn case(
    told: &Told,
    repetition: Option<Repetition>,
    redactor: &Redactor,
) -> serde_json::Result<Vec<u8>> {
    let source = &told.case.written.source;
    serde_json::to_vec(&CaseToKeep {
        case: &told.case,
        agent: told.agent,
        repetition,
        place: (told.case.place.span.start, told.case.place.span.end),
        first_line: source.first_line,
        first_column: source.first_column,
        text: &redactor.masked(&source.text),
    })
}

/// What a case came to, as it is kept.
pub(super) fn outcome(outcome: &Outcome) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&KeptOutcome {
        verdict: outcome.verdict.clone(),
        stability: outcome.stability.clone(),
        telling: outcome.place_of_telling(),
        never_begun: outcome.never_begun,
        untried: outcome.untried,
    })
}

/// An attempt as it is kept, without its events.
pub(super) fn attempt(attempt: &Attempt, numbers: &mut impl Numbers) -> rusqlite::Result<Vec<u8>> {
    let own = &attempt.selected.case.written.source;
    let of_checks = attempt.checks.iter().map(|finding| &finding.check.place);
    let of_checkpoints = attempt.checkpoints.iter().map(|reached| &reached.checkpoint.place);
    let mut places = Vec::with_capacity(attempt.checks.len() + attempt.checkpoints.len());
    for place in of_checks.chain(of_checkpoints) {
        let number = match Arc::ptr_eq(&place.source, own) {
            true => OWN,
            false => numbers.number(&place.source)?,
        };
        places.push((number, place.span.start, place.span.end));
    }
    let kept = AttemptToKeep {
        verdict: &attempt.verdict,
        checks: &attempt.checks,
        places,
        checkpoints: &attempt.checkpoints,
        limit: attempt.limit,
        warnings: &attempt.warnings,
        logs: &attempt.logs,
        started_at: attempt.started_at,
        duration: attempt.duration,
        given: &attempt.given,
        timeless: attempt.timeless,
        last_words: attempt.last_words.as_ref(),
    };
    serde_json::to_vec(&kept).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

impl KeptCase {
    /// What is told of the case.
    pub fn told(self, index: usize, suite: Arc<Suite>) -> Arc<Told> {
        let KeptCase { mut case, agent, place: (start, end), first_line, first_column, text, .. } = self;
        let source = Source::starting_at(suite.shown.clone(), text, first_line, first_column);
        case.place = Place::new(&source, start..end);
        case.written = Written::in_suite(source, &suite);
        Arc::new(Told { index, case, suite, agent })
    }
}

impl KeptOutcome {
    /// What the case came to by these attempts; none where one of them is missing.
    pub fn outcome(self, selected: Arc<Told>, attempts: Vec<Arc<Attempt>>) -> Option<Outcome> {
        let KeptOutcome { verdict, stability, telling, never_begun, untried } = self;
        Outcome::kept(selected, verdict, attempts, stability, never_begun, untried, telling)
    }
}

impl KeptAttempt {
    /// The attempt with its events. None where a place lies in a source that is not there.
    pub fn attempt(
        self,
        selected: Arc<Told>,
        number: usize,
        events: Vec<Record>,
        sources: &[Arc<Source>],
    ) -> Option<Attempt> {
        let KeptAttempt { verdict, mut checks, places, mut checkpoints, .. } = self;
        let own = &selected.case.written.source;
        let of_checks = checks.iter_mut().map(|finding| &mut finding.check.place);
        let of_checkpoints = checkpoints.iter_mut().map(|reached| &mut reached.checkpoint.place);
        for (place, (number, start, end)) in of_checks.chain(of_checkpoints).zip(places) {
            let source = match number {
                OWN => own,
                number => sources.get(number - 1)?,
            };
            *place = Place::new(source, start..end);
        }
        let own = events.iter().filter(|record| record.execution.is_none());
        let conversation = Conversation::of(own.map(|record| &record.event));
        Some(Attempt {
            selected,
            number,
            verdict,
            checks,
            checkpoints,
            limit: self.limit,
            conversation,
            events,
            warnings: self.warnings,
            logs: self.logs,
            started_at: self.started_at,
            duration: self.duration,
            given: self.given,
            timeless: self.timeless,
            last_words: self.last_words,
        })
    }
}
