//! The conversation of an example, read from its running session or from recorded turns.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotseat_trace::{self as trace, TurnScope};

use hotseat_engine::session::unseen_calls_reason;

use super::lost_assertions::LostAssertions;
use super::views::{
    AgentResponse, Evaluation, Message, SharedTurnNotes, ToolCall, TopicVisit, Turn, UnseenReason,
};

/// Snapshot of the session that the example can read.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionView {
    /// Name of the example.
    pub example: String,
    /// Assertions of its run that were made too late.
    pub lost: Arc<LostAssertions>,
    pub conversation: Arc<trace::TracedConversation>,
    pub evaluations: Arc<Vec<Evaluation>>,
    pub turn_notes: SharedTurnNotes,
    /// Addresses of MCP servers and served models by name.
    pub services: Arc<BTreeMap<String, String>>,
    /// True if the case has ended.
    pub ended: bool,
    /// True while a turn is in progress.
    pub turn_in_progress: bool,
    /// Number of requests of the example whose replies it awaits.
    pub open_requests: usize,
}

/// The snapshot of a session, shared with its example.
pub(super) type SharedView = Arc<Mutex<SessionView>>;

tokio::task_local! {
    /// Snapshot of the example whose command is being executed.
    pub(super) static CURRENT_VIEW: SharedView;
}

/// Returns the notes about the turns so far, in the example whose command is being executed.
fn current_notes() -> SharedTurnNotes {
    CURRENT_VIEW.try_with(|view| lock(view).turn_notes.clone()).unwrap_or_default()
}

/// Returns the turns of a scope.
pub(super) fn turns_of(scope: TurnScope<'_>) -> Vec<Turn> {
    let (notes, unseen) = (current_notes(), unseen_reason(scope.unseen_calls()));
    let turns = scope.turns().iter();
    turns.map(|turn| Turn::new(Arc::new(turn.clone()), &notes, unseen.clone())).collect()
}

fn unseen_reason(unseen: Option<trace::UnseenCalls<'_>>) -> UnseenReason {
    unseen.map(|unseen| unseen_calls_reason(unseen).into())
}

/// Locks a mutex, also if a thread panicked while it held the lock.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Message if something is asserted about the agent before the first message.
pub(super) const NO_TURN_TO_CHECK: &str = "there is no turn to check yet; send one first";

/// The conversation so far.
///
/// Reading the tool calls of a running conversation panics before the first message: that there are none says nothing
/// about the agent.
#[derive(Clone)]
pub struct Conversation {
    pub(super) source: ConversationSource,
}

/// Source of the data of a conversation.
#[derive(Clone)]
pub(super) enum ConversationSource {
    /// The running session.
    Live(SharedView),
    /// The turns recorded up to some turn.
    Recorded(Arc<trace::TracedConversation>, SharedTurnNotes, UnseenReason),
}

impl Conversation {
    /// Returns the view of the session that evaluates assertions; none for recorded turns.
    pub(super) fn session(&self) -> Option<SharedView> {
        match &self.source {
            ConversationSource::Live(view) => Some(view.clone()),
            ConversationSource::Recorded(..) => None,
        }
    }

    /// Creates the conversation of a running session.
    pub(super) fn of_session(view: SharedView) -> Conversation {
        Conversation { source: ConversationSource::Live(view) }
    }

    /// Creates the conversation up to the last of these turns.
    pub(super) fn up_to(scope: TurnScope<'_>) -> Conversation {
        let mut conversation = trace::TracedConversation::default();
        conversation.turns = scope.turns_up_to_end().to_vec();
        conversation.current_topic = conversation.turns.last().and_then(|turn| turn.topic.clone());
        let unseen = unseen_reason(scope.unseen_calls());
        Conversation { source: ConversationSource::Recorded(Arc::new(conversation), current_notes(), unseen) }
    }

    /// Returns the messages of user and agent, in order.
    pub fn messages(&self) -> Vec<Message> {
        self.turns().iter().flat_map(Turn::messages).collect()
    }

    /// Returns the turns, in order.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.it("needs two turns", async |t| {
    ///     t.user.says("A room for tomorrow").await;
    ///     t.user.says("The blue one").await;
    ///     expect!(t.conversation.turns().len(), eq(2));
    ///     expect!(t.conversation.tool_names(), contains(["check_availability", "book_room"]));
    /// });
    /// # }
    /// ```
    pub fn turns(&self) -> Vec<Turn> {
        let (conversation, notes, unseen) = self.turn_sources();
        let turns = conversation.turns.iter();
        turns.map(|turn| Turn::new(Arc::new(turn.clone()), &notes, unseen.clone())).collect()
    }

    /// Returns the number of turns.
    pub fn turn_count(&self) -> usize {
        self.recorded().turns.len()
    }

    /// Returns the last turn, or none before the first message.
    pub fn last_turn(&self) -> Option<Turn> {
        let (conversation, notes, unseen) = self.turn_sources();
        conversation.turns.last().map(|turn| Turn::new(Arc::new(turn.clone()), &notes, unseen))
    }

    /// Returns the last user message.
    pub fn last_user_message(&self) -> Option<Message> {
        self.last_turn().map(|turn| turn.user_message())
    }

    /// Returns the last response of the agent.
    pub fn last_agent_response(&self) -> Option<AgentResponse> {
        self.last_turn().map(|turn| turn.agent_response())
    }

    /// Returns true before the first message.
    pub fn is_empty(&self) -> bool {
        self.turn_count() == 0
    }

    /// Returns the turns whose tool calls are read. Panics if there is none, but not for the functions that the session calls.
    #[track_caller]
    fn turns_with_calls(&self) -> Vec<Turn> {
        let turns = self.turns();
        let is_live = matches!(self.source, ConversationSource::Live(_));
        assert!(!(is_live && turns.is_empty()), "{NO_TURN_TO_CHECK}");
        turns
    }

    /// Returns all tool calls, in the order in which they started.
    #[track_caller]
    pub fn all_tool_calls(&self) -> Vec<ToolCall> {
        self.turns_with_calls().iter().flat_map(Turn::tool_calls).collect()
    }

    /// Returns the names of all called tools in call order, with repetitions.
    #[track_caller]
    pub fn tool_names(&self) -> Vec<String> {
        self.all_tool_calls().into_iter().map(|call| call.name).collect()
    }

    /// Returns all calls of a tool.
    #[track_caller]
    pub fn tool_calls_for(&self, name: &str) -> Vec<ToolCall> {
        self.turns_with_calls().iter().flat_map(|turn| turn.tool_calls_for(name)).collect()
    }

    /// Returns true if a tool was called.
    #[track_caller]
    pub fn has_tool_call(&self, name: &str) -> bool {
        self.turns_with_calls().iter().any(|turn| turn.has_tool_call(name))
    }

    /// Returns how many times a tool was called.
    #[track_caller]
    pub fn called_tool(&self, name: &str) -> usize {
        self.tool_calls_for(name).len()
    }

    /// Returns the current topic, or none if topics are not tracked.
    pub fn current_topic(&self) -> Option<String> {
        self.recorded().current_topic.as_deref().map(str::to_string)
    }

    /// Returns true if the conversation is in this topic.
    pub fn in_topic(&self, name: &str) -> bool {
        self.recorded().current_topic.as_deref() == Some(name)
    }

    /// Returns the visited topics, in order, with repetitions.
    pub fn topic_history(&self) -> Vec<String> {
        self.recorded().topic_history().iter().map(ToString::to_string).collect()
    }

    /// Returns the topic visits, in order, each with its turns.
    pub fn topic_visits(&self) -> Vec<TopicVisit> {
        let turns = self.turns();
        let visit = |visit: trace::Visit| TopicVisit {
            topic: visit.topic.to_string(),
            number: visit.number,
            turns: turns[visit.turns].to_vec(),
        };
        self.recorded().topic_visits().into_iter().map(visit).collect()
    }

    /// Returns the number of turns in a topic, over all visits.
    pub fn turns_in_topic(&self, name: &str) -> usize {
        self.recorded().turns_in_topic(name)
    }

    /// Returns the results of all assertions so far, in order.
    pub fn evaluation_results(&self) -> Vec<Evaluation> {
        match &self.source {
            ConversationSource::Live(view) => lock(view).evaluations.to_vec(),
            ConversationSource::Recorded(..) => Vec::new(),
        }
    }

    /// Returns the results of `evaluate!` so far.
    pub fn soft_evaluations(&self) -> Vec<Evaluation> {
        self.evaluation_results().into_iter().filter(|evaluation| !evaluation.hard).collect()
    }

    /// Returns the results of `expect!` so far.
    pub fn hard_evaluations(&self) -> Vec<Evaluation> {
        self.evaluation_results().into_iter().filter(|evaluation| evaluation.hard).collect()
    }

    /// Returns the conversation, the notes about its turns, and why its tool calls cannot be read, if they cannot.
    fn turn_sources(&self) -> (Arc<trace::TracedConversation>, SharedTurnNotes, UnseenReason) {
        match &self.source {
            ConversationSource::Live(view) => {
                let seen = lock(view);
                let unseen = unseen_reason(seen.conversation.unseen_calls());
                (seen.conversation.clone(), seen.turn_notes.clone(), unseen)
            }
            ConversationSource::Recorded(conversation, notes, unseen) => {
                (conversation.clone(), notes.clone(), unseen.clone())
            }
        }
    }

    /// Returns the recorded conversation with all its data.
    pub fn recorded(&self) -> Arc<trace::TracedConversation> {
        match &self.source {
            ConversationSource::Live(view) => lock(view).conversation.clone(),
            ConversationSource::Recorded(conversation, ..) => conversation.clone(),
        }
    }
}
