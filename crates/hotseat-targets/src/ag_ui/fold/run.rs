//! State of a run while its events are folded.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use hotseat_model::ArgumentsProgress;
use hotseat_trace::{ErrorInfo, Origin, Payload, TimeOffset};
use serde_json::Value;

use super::super::chunks::ChunkExpander;
use super::super::id_map::IdMap;
use super::super::reply_order::ReplyOrder;
use super::super::sequence::SequenceRules;
use super::super::thread::ConversationThread;
use super::super::wire::{self, Event, MessageObject};

/// Strictness of the protocol rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProtocolStrictness {
    /// Violations are notes.
    #[default]
    Lenient,
    /// Violations are errors.
    Strict,
}

/// Target settings of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct FoldOptions {
    /// Strictness of the protocol rules.
    pub strictness: ProtocolStrictness,
    /// True if every event is kept in the trace as received.
    pub keep_raw: bool,
}

/// The request that a run answers.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Number in the session.
    pub number: usize,
    /// Run id in the request.
    pub run_id: String,
}

/// End of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEnd {
    /// Regular end.
    Finished(FinishedRun),
    /// The agent reported an error.
    Failed(ErrorInfo),
    /// The stream ended before the run.
    Truncated,
}

/// Pending items at the end of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedRun {
    /// Interrupts that must be answered before the agent continues.
    pub interrupts: Vec<OpenInterrupt>,
    /// Calls of this run without a result, in order; those of client-side tools must be answered.
    pub unanswered: Vec<UnansweredCall>,
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq)]
pub struct UnansweredCall {
    /// Id by which it is known.
    pub id: Arc<str>,
    /// Its id in the trace.
    pub trace_id: Arc<str>,
    /// Its tool.
    pub name: Arc<str>,
    /// Its arguments.
    pub arguments: Value,
    /// True if the agent declares that it awaits this result.
    pub is_awaited: bool,
}

/// One run, from the request to the end of its response. A response may contain several protocol runs in a
/// row; they are treated as one.
pub struct RunFold<'t> {
    pub(super) thread: &'t mut ConversationThread,
    pub(super) request: RunRequest,
    pub(super) options: FoldOptions,
    pub(super) expander: ChunkExpander,
    /// Expanded events of the current event; reused to avoid allocations.
    pub(super) expanded: Vec<Event>,
    /// Trace payloads that the caller has not taken yet.
    pub(super) payloads: Vec<Payload>,
    pub(super) rules: SequenceRules,
    pub(super) received: u64,
    /// Arrival of the current event.
    pub(super) now: TimeOffset,
    /// Number of starts and ends of protocol runs.
    pub(super) boundaries: usize,
    pub(super) started: bool,
    pub(super) progress: RunProgress,
    /// Ids of the runs that have not ended: the run itself, then those of other agents within it.
    pub(super) open_runs: Vec<Arc<str>>,
    /// True if the rest of the answer is not read, so no request follows.
    pub(super) is_abandoned: bool,
    /// First error reported by the agent. Later runs do not clear it.
    pub(super) failed: Option<ErrorInfo>,
    pub(super) open_texts: IdMap<OpenText>,
    /// Ids of the open texts of the assistant: each call looks for its message among them.
    pub(super) open_answers: BTreeSet<Arc<str>>,
    /// Reasoning in order of its start; `None` once complete.
    pub(super) reasonings: Vec<Option<OpenReasoning>>,
    /// Indexes of the open reasoning, by id.
    pub(super) open_reasonings: HashMap<Option<Arc<str>>, Vec<usize>>,
    pub(super) open_calls: IdMap<OpenCall>,
    /// Calls started or continued in this run, in order.
    pub(super) calls_in_order: Vec<Arc<str>>,
    /// The same calls as a set.
    pub(super) calls_in_run: IdMap<()>,
    /// Texts and calls of the current reply.
    pub(super) reply: ReplyOrder,
    /// Calls announced after the last text and the last result.
    pub(super) last_calls: Vec<Arc<str>>,
    /// Results of unknown calls; a later event or snapshot may still announce the call.
    pub(super) orphan_results: Vec<wire::ToolResult>,
    /// Calls without a result whose id a later call of the run has: their ids in the trace, by that id.
    pub(super) waiting_calls: HashMap<Arc<str>, VecDeque<Arc<str>>>,
    /// The first call to which events brought two different results.
    pub(super) contradicted_call: Option<Arc<str>>,
    /// The first call that only a result in a snapshot mentions.
    pub(super) unannounced_result: Option<Arc<str>>,
    /// Message snapshots not yet compared with the events: the last one, and the messages of earlier ones
    /// that later ones omit.
    pub(super) snapshots: Vec<TurnSnapshot>,
    /// Number of snapshot bytes searched for repeated texts.
    pub(super) searched_bytes: usize,
    /// Interrupts of producers before 1.0 whose run has not ended.
    pub(super) legacy_interrupts: Vec<OpenInterrupt>,
    pub(super) interrupts: Vec<OpenInterrupt>,
    /// Calls whose results the agent declares that it awaits.
    pub(super) awaited_calls: Vec<Arc<str>>,
    /// Notes already recorded, so that none is repeated.
    pub(super) recorded_notes: HashSet<String>,
}

/// How far the agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunProgress {
    Running,
    /// A run ended that did not start here: perhaps one within the run, which goes on. The end of the stream decides.
    OtherEnded,
    /// The agent has ended its run and has not started another.
    Ended,
}

/// A call whose arguments are being streamed, or that may turn out to be two calls.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenCall {
    /// The arguments so far.
    pub(super) arguments: ArgumentsProgress,
    /// Arrival of the last part, unless the agent marked the end of the call.
    pub(super) last_part: Option<TimeOffset>,
    /// True if the arguments are complete. Only calls with `reannounced` are kept then.
    pub(super) is_complete: bool,
    /// True if the run ended before any text of the arguments and the end of the call.
    pub(super) is_cut: bool,
    /// True if the arguments arrived after the call had complete ones.
    pub(super) is_late: bool,
    /// Set if the call had ended in this run, or had a result, when it was announced again.
    pub(super) reannounced: Option<CallSighting>,
}

/// Details of a newly seen call, or of one that may turn out to be another call.
#[derive(Debug, Clone, Default)]
pub(super) struct CallSighting {
    pub(super) origin: Origin,
    /// Start time, if it was before now.
    pub(super) started_us: Option<TimeOffset>,
    pub(super) subagent: Option<Arc<str>>,
    /// The message of the call.
    pub(super) message_id: Option<Arc<str>>,
}

impl CallSighting {
    /// Returns true if this message does not make the call.
    pub(super) fn is_of_other_message(&self, message_id: Option<&Arc<str>>) -> bool {
        message_id.zip(self.message_id.as_ref()).is_some_and(|(one, other)| one != other)
    }
}

/// A message that is being streamed.
#[derive(Debug)]
pub(super) struct OpenText {
    pub(super) role: String,
    /// Earlier text of the message, if a producer opens it again.
    pub(super) earlier_text: String,
    pub(super) text: String,
    pub(super) started: TimeOffset,
    pub(super) subagent: Option<Arc<str>>,
}

/// Reasoning that is being streamed. Producers before 1.0 give it no id.
#[derive(Debug)]
pub(super) struct OpenReasoning {
    pub(super) id: Option<Arc<str>>,
    pub(super) text: String,
    pub(super) subagent: Option<Arc<str>>,
}

/// A snapshot, or the messages that a later one omits.
#[derive(Debug)]
pub(super) struct TurnSnapshot {
    pub(super) messages: Vec<Arc<MessageObject>>,
    /// Index of the first message of the current turn.
    pub(super) turn_start: usize,
    pub(super) received_at: TimeOffset,
}

/// An interrupt of a paused run.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenInterrupt {
    /// Id on the wire; `None` on the channel of producers before 1.0.
    pub id: Option<Arc<str>>,
    /// Id in the trace.
    pub trace_id: Arc<str>,
    /// Short name of the reason.
    pub reason: Option<String>,
    /// Question to the human.
    pub message: Option<String>,
    /// Known id of the call it pauses.
    pub call: Option<Arc<str>>,
    /// The tool of that call.
    pub tool: Option<Arc<str>>,
    /// Expiry time, as the agent sent it.
    pub expires_at: Option<String>,
    /// The whole interrupt.
    pub value: Value,
}

impl<'t> RunFold<'t> {
    /// Creates a new run.
    pub fn new(thread: &'t mut ConversationThread, asked: RunRequest, options: FoldOptions) -> Self {
        RunFold {
            thread,
            request: asked,
            options,
            expander: ChunkExpander::default(),
            expanded: Vec::new(),
            payloads: Vec::new(),
            rules: SequenceRules::default(),
            received: 0,
            now: TimeOffset::default(),
            boundaries: 0,
            started: false,
            progress: RunProgress::Running,
            open_runs: Vec::new(),
            is_abandoned: false,
            failed: None,
            open_texts: IdMap::default(),
            open_answers: BTreeSet::new(),
            reasonings: Vec::new(),
            open_reasonings: HashMap::new(),
            open_calls: IdMap::default(),
            calls_in_order: Vec::new(),
            calls_in_run: IdMap::default(),
            reply: ReplyOrder::default(),
            last_calls: Vec::new(),
            orphan_results: Vec::new(),
            waiting_calls: HashMap::new(),
            contradicted_call: None,
            unannounced_result: None,
            snapshots: Vec::new(),
            searched_bytes: 0,
            legacy_interrupts: Vec::new(),
            interrupts: Vec::new(),
            awaited_calls: Vec::new(),
            recorded_notes: HashSet::new(),
        }
    }
}
