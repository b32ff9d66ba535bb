//! JSON columns of cases and attempts. Source locations are numbers that refer to rows of sources, which are
//! stored once.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_document::{SourceSpan, SourceText};
use hotseat_trace::{EventRecord, TimeOffset, TimelessRecord, TracedConversation, Verdict, optional_members};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use hotseat_engine::cases::Suite;
use hotseat_engine::run::{
    Attempt, AttemptPolicy, AttemptResult, CaseInfo, CaseOutcome, CaseRef, CaseSource, CaseStability,
};
use hotseat_targets::recorder::SecretRedactor;

/// Estimated size of an event without long texts, in bytes.
const EVENT_BYTES: usize = 256;

/// Number of the source that contains the case itself.
const OWN_SOURCE: usize = 0;

/// Source location: source number, start and end.
type PlaceColumns = (usize, usize, usize);

/// Assigns numbers, starting at 1, to sources that are not pieces of suites.
pub(super) trait SourceNumbers {
    fn number(&mut self, source: &Arc<SourceText>) -> rusqlite::Result<usize>;
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredCase<C = CaseInfo, T = String> {
    case: C,
    agent: Option<usize>,
    /// Repetition of the case; `None` if it is not repeated, or never started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition: Option<AttemptPolicy>,
    place: (usize, usize),
    first_line: u32,
    first_column: u32,
    text: T,
}

optional_members! {
    /// Stored outcome of a case.
    #[derive(Serialize, Deserialize)]
    pub(super) struct StoredOutcome {
        verdict: Verdict,
        stability?: Option<CaseStability>,
        telling?: usize,
        never_begun?: bool,
        untried?: bool,
    }
}

/// Stored events. Cases repeat each other's events except for their times, so these are stored apart from them:
/// that compresses better. Each number is stored less that of the event before.
#[derive(Serialize, Deserialize)]
struct StoredEvents<T> {
    numbers: Vec<i64>,
    offsets: Vec<i64>,
    timestamps: Vec<i64>,
    events: Vec<T>,
}

/// Stored attempt without its events.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredAttempt<R = AttemptResult> {
    #[serde(flatten)]
    result: R,
    /// Locations of the checks, followed by those of the checkpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    places: Vec<PlaceColumns>,
    /// Numbers of the checks that helper functions made, counted from 0, with the locations of their calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    call_sites: Vec<(usize, PlaceColumns)>,
    /// Digests of the secrets that were replaced in the events, by name. Runs of early versions do not contain them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    secrets: BTreeMap<String, String>,
}

/// Encodes a case. `text` is that of its source, without secrets.
pub(super) fn encode_case(
    told: &CaseRef,
    repetition: Option<AttemptPolicy>,
    text: &str,
) -> serde_json::Result<Vec<u8>> {
    let source = &told.case.source_text.source;
    serde_json::to_vec(&StoredCase {
        case: &told.case,
        agent: told.agent,
        // The usual policy is not stored.
        repetition: repetition.filter(|policy| *policy != AttemptPolicy::Retried { retries: 0 }),
        place: (told.case.place.span.start, told.case.place.span.end),
        first_line: source.first_line,
        first_column: source.first_column,
        text,
    })
}

pub(super) fn encode_outcome(outcome: &CaseOutcome) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&StoredOutcome {
        verdict: outcome.verdict.clone(),
        stability: outcome.stability.clone(),
        telling: outcome.representative_index(),
        never_begun: outcome.never_started,
        untried: outcome.retry_pending,
    })
}

/// Encodes an attempt without its events, which are already encoded.
pub(super) fn encode_attempt(
    attempt: &Attempt,
    events: &[u8],
    numbers: &mut impl SourceNumbers,
) -> rusqlite::Result<Vec<u8>> {
    let own = &attempt.case_ref.case.source_text.source;
    let of_checks = attempt.checks.iter().map(|finding| &finding.check.place);
    let of_checkpoints = attempt.checkpoints.iter().map(|reached| &reached.checkpoint.place);
    let mut encode_place = |place: &SourceSpan| -> rusqlite::Result<PlaceColumns> {
        let number = match Arc::ptr_eq(&place.source, own) {
            true => OWN_SOURCE,
            false => numbers.number(&place.source)?,
        };
        Ok((number, place.span.start, place.span.end))
    };
    let places = of_checks.chain(of_checkpoints).map(&mut encode_place).collect::<Result<_, _>>()?;
    let call_sites = attempt.checks.iter().enumerate();
    let call_sites =
        call_sites.filter_map(|(check, finding)| Some((check, finding.check.call_site.as_ref()?)));
    let call_sites = call_sites.map(|(check, place)| Ok((check, encode_place(place)?)));
    let call_sites = call_sites.collect::<rusqlite::Result<_>>()?;
    let secrets =
        std::str::from_utf8(events).map(|events| attempt.redactor.digests(events)).unwrap_or_default();
    let kept = StoredAttempt { result: &attempt.result, places, call_sites, secrets };
    serde_json::to_vec(&kept).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Encodes events. Their texts may be very long, so the memory is reserved at once.
pub(super) fn encode_events(events: &[EventRecord]) -> serde_json::Result<Vec<u8>> {
    let texts = events.iter().filter_map(|event| event.payload.agent_text()).map(|text| text.len());
    let mut json = Vec::with_capacity(texts.sum::<usize>() + EVENT_BYTES * events.len());
    let stored = StoredEvents {
        numbers: differences(events.iter().map(|event| event.sequence.cast_signed())),
        offsets: differences(events.iter().map(|event| event.offset.0.cast_signed())),
        timestamps: differences(events.iter().map(|event| event.timestamp)),
        events: events.iter().map(TimelessRecord).collect(),
    };
    serde_json::to_writer(&mut json, &stored)?;
    Ok(json)
}

/// Decodes events. Earlier versions stored them as a list of records with their times.
pub(super) fn decode_events(json: &[u8]) -> serde_json::Result<Vec<EventRecord>> {
    if json.starts_with(b"[") {
        return serde_json::from_slice(json);
    }
    let StoredEvents::<TimelessRecord<EventRecord>> { numbers, offsets, timestamps, events } =
        serde_json::from_slice(json)?;
    if [&numbers, &offsets, &timestamps].iter().any(|column| column.len() != events.len()) {
        return Err(serde_json::Error::custom("events lack their times"));
    }
    let (numbers, offsets, timestamps) = (sums(numbers), sums(offsets), sums(timestamps));
    let times = numbers.zip(offsets).zip(timestamps);
    let events =
        events.into_iter().zip(times).map(|(TimelessRecord(mut record), ((number, offset), timestamp))| {
            record.event.sequence = number.cast_unsigned();
            record.event.offset = TimeOffset(offset.cast_unsigned());
            record.event.timestamp = timestamp;
            record
        });
    Ok(events.collect())
}

/// Returns each number less the one before.
fn differences(numbers: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut before = 0;
    numbers.map(|number| number.wrapping_sub(std::mem::replace(&mut before, number))).collect()
}

/// Returns the numbers with these [`differences`].
fn sums(differences: Vec<i64>) -> impl Iterator<Item = i64> {
    let mut sum = 0_i64;
    differences.into_iter().map(move |difference| {
        sum = sum.wrapping_add(difference);
        sum
    })
}

impl StoredCase {
    /// Restores the case.
    pub fn into_case_ref(self, index: usize, suite: Arc<Suite>) -> Arc<CaseRef> {
        let StoredCase { mut case, agent, place: (start, end), first_line, first_column, text, .. } = self;
        let source = SourceText::starting_at(suite.shown.clone(), text, first_line, first_column);
        case.place = SourceSpan::new(&source, start..end);
        case.source_text = CaseSource::in_suite(source, &suite);
        Arc::new(CaseRef { index, case, suite, agent })
    }
}

impl StoredOutcome {
    /// Restores the outcome with its attempts, or returns `None` if an attempt is missing.
    pub fn into_outcome(self, selected: Arc<CaseRef>, attempts: Vec<Arc<Attempt>>) -> Option<CaseOutcome> {
        let StoredOutcome { verdict, stability, telling, never_begun, untried } = self;
        CaseOutcome::restore(selected, verdict, attempts, stability, never_begun, untried, telling)
    }
}

impl StoredAttempt {
    /// Restores the attempt with its events, or returns `None` if a source is missing.
    pub fn into_attempt(
        self,
        selected: Arc<CaseRef>,
        number: usize,
        events: Vec<EventRecord>,
        sources: &[Arc<SourceText>],
    ) -> Option<Attempt> {
        let StoredAttempt { mut result, places, call_sites, secrets } = self;
        let own = &selected.case.source_text.source;
        let decode_place = |(number, start, end): PlaceColumns| {
            let source = match number {
                OWN_SOURCE => own,
                number => sources.get(number - 1)?,
            };
            Some(SourceSpan::new(source, start..end))
        };
        let of_checks = result.checks.iter_mut().map(|finding| &mut finding.check.place);
        let of_checkpoints = result.checkpoints.iter_mut().map(|reached| &mut reached.checkpoint.place);
        for (place, columns) in of_checks.chain(of_checkpoints).zip(places) {
            *place = decode_place(columns)?;
        }
        for (check, columns) in call_sites {
            result.checks.get_mut(check)?.check.call_site = Some(decode_place(columns)?);
        }
        let own = events.iter().filter(|record| record.execution.is_none());
        let conversation = TracedConversation::from_events(own.map(|record| &record.event));
        let mut redactor = SecretRedactor::default();
        redactor.set_recorded(&secrets);
        Some(Attempt { case_ref: selected, number, result, conversation, events, redactor })
    }
}

#[cfg(test)]
mod tests {
    use hotseat_trace::{Event, ExecutionInfo, ExecutionKind, TurnCompletion};

    use super::*;

    fn records() -> Vec<EventRecord> {
        let execution =
            ExecutionInfo { id: "e".into(), kind: ExecutionKind::Workflow, parent: Some("c".into()) };
        let times = [
            (1, 0, 1_700_000_000_000),
            (2, 900, 1_700_000_000_000),
            (5, 899, 1_699_999_999_999),
            (u64::MAX, u64::MAX, -1),
        ];
        let event = |(sequence, offset, timestamp)| Event {
            sequence,
            offset: TimeOffset(offset),
            timestamp,
            payload: TurnCompletion { turn_id: "t".into(), issues: None }.into(),
        };
        let mut records: Vec<EventRecord> = times.map(|time| event(time).into()).into();
        records[1].execution = Some(execution);
        records
    }

    #[test]
    fn stored_events_keep_their_times() {
        assert_eq!(decode_events(&encode_events(&records()).unwrap()).unwrap(), records());
        assert!(decode_events(&encode_events(&[]).unwrap()).unwrap().is_empty());
    }

    #[test]
    fn events_of_earlier_versions_are_read() {
        let list = serde_json::to_vec(&records()).unwrap();
        assert_eq!(decode_events(&list).unwrap(), records());
    }

    #[test]
    fn events_without_their_times_are_refused() {
        let error =
            decode_events(br#"{"numbers":[1],"offsets":[],"timestamps":[1],"events":[]}"#).unwrap_err();
        assert!(error.to_string().contains("events lack their times"), "{error}");
    }
}
