//! Report records of the conversation and the verdict of an attempt.

use std::ops::Range;

use hotseat_engine::run::Attempt;
use hotseat_trace::{
    AttemptFailure, ConversationTurn, ResultLabel, Verdict, VerdictStatus, optional_members,
};
use serde::Serialize;

use super::format::{ms, rfc3339};
use super::spent::SpentRecord;
use super::topics::{SimulationRecord, TopicsRecord};
use super::turn::{AssertionRecord, CheckpointRecord, TurnListEntry, TurnRecord, failed_check_messages};

optional_members! {
    /// Verdict of a case or an attempt.
    #[derive(Debug, Serialize)]
    pub struct VerdictRecord<'a> {
        pub status: VerdictStatus,
        /// The word of the result on every output; it says who is at fault.
        pub label: ResultLabel,
        pub failure?: Option<&'a AttemptFailure>,
        pub skip_reason?: Option<&'a str>,
        /// Reason of the failure in one line, in the words of the documentation of case files.
        pub error?: Option<String>,
        pub error_kind?: Option<&'static str>,
    }

    /// Conversation of an attempt.
    #[derive(Debug, Serialize)]
    pub struct ConversationRecord<'a> {
        /// If there is one input: the answer, or null.
        pub output?: Option<Option<&'a str>>,
        pub started_at: String,
        pub duration_ms: f64,
        pub total_turns: usize,
        /// Usage of all turns, as far as it is reported.
        pub spent?: Option<SpentRecord>,
        pub turns: Vec<TurnListEntry<'a>>,
        /// Written turns that were not sent.
        pub turns_not_run?: Option<TurnRange>,
        /// Topics, if they were followed.
        #[serde(flatten)]
        pub topics: Option<TopicsRecord<'a>>,
        pub simulations?: Vec<SimulationRecord<'a>>,
        /// Checks of the whole conversation; checks of a turn are in its record.
        pub assertions: Vec<AssertionRecord<'a>>,
        pub final_assertions?: Vec<AssertionRecord<'a>>,
        pub assertion_errors?: Vec<String>,
        pub checkpoints?: Vec<CheckpointRecord<'a>>,
        /// Problems that do not affect the verdict.
        pub warnings?: &'a [String],
        /// `console` output of script functions of the case.
        pub logs?: &'a [String],
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

impl<'a> VerdictRecord<'a> {
    /// Creates a record; `describe` formats the reason of a failure in one line.
    pub fn new(verdict: &'a Verdict, describe: impl FnOnce(&AttemptFailure) -> String) -> Self {
        let failure = verdict.failure.as_ref();
        VerdictRecord {
            status: verdict.status,
            label: ResultLabel::from_verdict(verdict),
            failure,
            skip_reason: verdict.skip_reason.as_deref(),
            error: failure.map(describe),
            error_kind: failure.map(|failure| failure.kind.name()),
        }
    }
}

impl<'a> ConversationRecord<'a> {
    /// Creates a record, with the answer if there is only one input.
    pub fn new(attempt: &'a Attempt, is_one: bool) -> Self {
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
        ConversationRecord {
            output: is_one.then(answer),
            started_at: rfc3339(attempt.started_at),
            duration_ms: ms(attempt.duration),
            total_turns: held.len(),
            spent: attempt.conversation.usage_totals().map(SpentRecord::new),
            turns: turns.chain(skipped).collect(),
            turns_not_run: TurnRange::new(attempt.turns_not_run()),
            topics: TopicsRecord::from_attempt(attempt),
            simulations: attempt.conversation.simulations.iter().map(SimulationRecord::new).collect(),
            assertions: whole(false).map(AssertionRecord::new).collect(),
            final_assertions: whole(true).map(AssertionRecord::new).collect(),
            assertion_errors: failed_check_messages(attempt.checks.iter()),
            checkpoints: attempt.checkpoints.iter().map(CheckpointRecord::new).collect(),
            warnings: &attempt.warnings,
            logs: &attempt.logs,
        }
    }
}
