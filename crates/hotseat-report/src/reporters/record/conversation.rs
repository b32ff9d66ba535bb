//! Report records of the conversation and the verdict of an attempt.

use std::ops::Range;

use hotseat_engine::run::Attempt;
use hotseat_trace::{AttemptFailure, ConversationTurn, ResultLabel, Verdict, VerdictStatus};
use serde::Serialize;

use super::declare::records;
use super::format::{ms, rfc3339};
use super::spent::SpentRecord;
use super::topics::{SimulationRecord, TopicsRecord};
use super::turn::{AssertionRecord, CheckpointRecord, TurnListEntry, TurnRecord, failed_check_messages};

records! {
    /// Verdict of a case or an attempt.
    /// Creates a record; `describe` formats the reason of a failure in one line.
    pub struct VerdictRecord<'a>(verdict: &'a Verdict, describe: impl FnOnce(&AttemptFailure) -> String) {
        let failure = verdict.failure.as_ref();
    } => {
        status: VerdictStatus = verdict.status,
        /// The word of the result on every output; it says who is at fault.
        label: ResultLabel = ResultLabel::from_verdict(verdict),
        failure?: Option<&'a AttemptFailure> = failure,
        skip_reason?: Option<&'a str> = verdict.skip_reason.as_deref(),
        /// Reason of the failure in one line, in the words of the documentation of case files.
        error?: Option<String> = failure.map(describe),
        error_kind?: Option<&'static str> = failure.map(|failure| failure.kind.name()),
    }

    /// Conversation of an attempt.
    /// Creates a record, with the answer if there is only one input.
    pub struct ConversationRecord<'a>(attempt: &'a Attempt, is_one: bool) {
        let answer = || attempt.conversation.turns.last().and_then(ConversationTurn::answer);
        let whole = |is_final: bool| {
            let checks = attempt.checks.iter();
            checks.filter(move |checked| {
                checked.turn.is_none() && checked.topic.is_none() && checked.is_final == is_final
            })
        };
        let held = &attempt.conversation.turns;
        let turns = held.iter().map(|turn| TurnListEntry::Executed(Box::new(TurnRecord::new(turn, attempt))));
        let skipped =
            attempt.verdict.skip_reason.as_deref().filter(|_| !held.is_empty()).map(|skip_reason| {
                TurnListEntry::Skipped { turn: held.len() + 1, status: "skipped", skip_reason }
            });
    } => {
        /// If there is one input: the answer, or null.
        output?: Option<Option<&'a str>> = is_one.then(answer),
        started_at: String = rfc3339(attempt.started_at),
        duration_ms: f64 = ms(attempt.duration),
        total_turns: usize = held.len(),
        /// Usage of all turns, as far as it is reported.
        spent?: Option<SpentRecord> = attempt.conversation.usage_totals().map(SpentRecord::new),
        turns: Vec<TurnListEntry<'a>> = turns.chain(skipped).collect(),
        /// Written turns that were not sent.
        turns_not_run?: Option<TurnRange> = TurnRange::new(attempt.turns_not_run()),
        /// Topics, if they were followed.
        #[serde(flatten)]
        topics: Option<TopicsRecord<'a>> =
            attempt.conversation.topics.as_ref().map(|graph| TopicsRecord::new(graph, attempt)),
        simulations?: Vec<SimulationRecord<'a>> =
            attempt.conversation.simulations.iter().map(SimulationRecord::new).collect(),
        /// Checks of the whole conversation; checks of a turn are in its record.
        assertions: Vec<AssertionRecord<'a>> = whole(false).map(AssertionRecord::new).collect(),
        final_assertions?: Vec<AssertionRecord<'a>> = whole(true).map(AssertionRecord::new).collect(),
        assertion_errors?: Vec<String> = failed_check_messages(attempt.checks.iter()),
        checkpoints?: Vec<CheckpointRecord<'a>> =
            attempt.checkpoints.iter().map(CheckpointRecord::new).collect(),
        /// Problems that do not affect the verdict.
        warnings?: &'a [String] = &attempt.warnings,
        /// `console` output of script functions of the case.
        logs?: &'a [String] = &attempt.logs,
    }
}

/// Consecutive turns, by number.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TurnRange {
    pub first: usize,
    pub last: usize,
}

impl TurnRange {
    fn new(numbers: Range<usize>) -> Option<Self> {
        (!numbers.is_empty()).then(|| TurnRange { first: numbers.start, last: numbers.end - 1 })
    }
}
