//! What an example holds in its hands: the user, the agent, the conversation.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hotseat_trace::{self as trace, Scope};
use serde_json::Value;

use super::line::{Asserted, Line, OptionsOfTurns, Order};
use super::matcher::{Assertion, Matcher};
use super::orders::options_so_far;
use super::place::At;
use super::said::{Attachment, Said};
use super::simulator::{Brief, Simulated};
use super::views::{Evaluation, Message, Response, ToolCall, TopicVisit, Turn};
use crate::checks::Strength;
use crate::session::Subject;

/// Something that has to be awaited. One that never is fails its example, with the place where it was made.
struct Awaited<T> {
    line: Line,
    what: &'static str,
    at: At,
    begun: Option<Pin<Box<dyn Future<Output = T>>>>,
}

impl<T> Awaited<T> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        begin: impl FnOnce(Line, At) -> Pin<Box<dyn Future<Output = T>>>,
    ) -> Poll<T> {
        let (line, at) = (&self.line, self.at);
        self.begun.get_or_insert_with(|| begin(line.clone(), at)).as_mut().poll(cx)
    }
}

impl<T> Drop for Awaited<T> {
    fn drop(&mut self) {
        if self.begun.is_none() && !std::thread::panicking() {
            let words = format!("{} was never awaited, so nothing was said", self.what);
            self.line.tell(Order::Wrong { words, at: self.at });
        }
    }
}

/// The user, who speaks to the agent.
#[derive(Clone)]
pub struct User {
    pub(super) line: Line,
}

impl User {
    /// The user says this, and the agent answers. What is asserted of the agent after it is about this turn, until the
    /// user says something again.
    ///
    /// The case ends here when the agent does not answer in time or in order.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.it("answers", async |t| {
    ///     let response = t.user.says("Which rooms are there?").await;
    ///     expect!(response.text(), contains("Blue Room"));
    /// });
    /// # }
    /// ```
    #[track_caller]
    pub fn says(&self, text: impl Into<String>) -> Says {
        let at = At::here();
        Says {
            said: Some(Said::new(text.into(), at)),
            awaited: Awaited { line: self.line.clone(), what: "`user.says`", at, begun: None },
        }
    }

    /// A simulated user speaks, until its goal is achieved, `stop_when` holds, or it has taken all its turns. What the
    /// groups around say with [`Group::simulator`](super::Group::simulator) holds; what is said here is added.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.it("finds a venue", async |t| {
    ///     let simulated = t.user.simulate(|s| {
    ///         s.goal("Find a venue for 50 people in Stuttgart").should_not("engage in small talk");
    ///     }).await;
    ///     expect!(simulated.turns(), le(10));
    /// });
    /// # }
    /// ```
    #[track_caller]
    pub fn simulate(&self, brief: impl FnOnce(&mut Brief)) -> Simulate {
        let at = At::here();
        let mut own = Brief::default();
        brief(&mut own);
        Simulate {
            brief: Some(own),
            awaited: Awaited { line: self.line.clone(), what: "`user.simulate`", at, begun: None },
        }
    }
}

/// Something that the user says; see [`User::says`].
#[must_use = "nothing is said until this is awaited"]
pub struct Says {
    said: Option<Said>,
    awaited: Awaited<Response>,
}

impl Says {
    /// What the agent is told beside it: `options` of a turn, as case files have them. They come on top of those of the
    /// example. [`Message::metadata`] tells them again.
    pub fn with_options(self, options: Value) -> Says {
        self.saying(|said| said.with("options", options))
    }

    /// How long the agent may take for its answer.
    pub fn within(self, limit: Duration) -> Says {
        self.saying(|said| said.within(limit))
    }

    /// Attaches something to it.
    pub fn attach(self, attachment: Attachment) -> Says {
        self.saying(|said| said.add("attachments", attachment.written()))
    }

    /// The agent has to end the turn with an error whose message fits this pattern. The case goes on then, and fails where
    /// there is no such error.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.it("refuses dates in the past", async |t| {
    ///     t.user.says("A room for yesterday").expect_error("(?i)in the past").await;
    ///     t.user.says("For tomorrow, then").await;
    /// });
    /// # }
    /// ```
    pub fn expect_error(self, message: impl Into<String>) -> Says {
        self.saying(|said| said.expect_error("message", message.into()))
    }

    /// The same for the code of the error.
    pub fn expect_error_code(self, code: impl Into<String>) -> Says {
        self.saying(|said| said.expect_error("code", code.into()))
    }

    /// Answers an agent that pauses for somebody to decide: an entry of `resume`, as case files have it. The first one that
    /// fits is used; one that is never used fails the case.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # use serde_json::json;
    /// # fn a(g: &mut Group) {
    /// g.it("asks before it pays", async |t| {
    ///     t.user.says("Pay it").resume(json!({"tool": "pay", "payload": {"approved": true}})).await;
    /// });
    /// # }
    /// ```
    pub fn resume(self, answer: Value) -> Says {
        self.saying(|said| said.add("resume", answer))
    }

    fn saying(mut self, say: impl FnOnce(&mut Said)) -> Says {
        if let Some(said) = &mut self.said {
            say(said);
        }
        self
    }
}

impl Future for Says {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let said = self.said.take();
        self.awaited.poll(cx, |line, at| {
            Box::pin(async move {
                if let Some(said) = said {
                    line.ask(|reply| Order::Say { said, reply }).await;
                }
                Agent { line }.respond(at)
            })
        })
    }
}

/// A simulated user that speaks; see [`User::simulate`].
#[must_use = "nothing is said until this is awaited"]
pub struct Simulate {
    brief: Option<Brief>,
    awaited: Awaited<Simulated>,
}

impl Future for Simulate {
    type Output = Simulated;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Simulated> {
        let brief = self.brief.take();
        self.awaited.poll(cx, |line, at| {
            Box::pin(async move {
                let brief = Box::new(brief.unwrap_or_default());
                line.ask(|reply| Order::Simulate { brief, at, reply }).await
            })
        })
    }
}

/// The agent, as it was in its last turn.
#[derive(Clone)]
pub struct Agent {
    pub(super) line: Line,
}

impl Agent {
    /// What is looked at when something is asserted of the agent.
    /// What is asserted of the last turn.
    pub(super) fn asserted(&self, assertion: Assertion) -> Assertion {
        Assertion { subject: Subject::LastTurn, line: Some(self.line.clone()), ..assertion }
    }

    /// Its last turn; none as long as nothing was said.
    pub fn last_turn(&self) -> Option<Turn> {
        let seen = self.line.seen();
        seen.conversation.turns.last().map(|turn| Turn::new(Arc::new(turn.clone()), &seen.options))
    }

    /// What it answered last. As long as nothing was said there is no answer, and asking for one fails the example.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// g.it("is brief", async |t| {
    ///     t.user.says("Hi").await;
    ///     expect!(t.agent.response().len(), le(500));
    /// });
    /// # }
    /// ```
    #[track_caller]
    pub fn response(&self) -> Response {
        self.respond(At::here())
    }

    /// What it said last, as a text.
    #[track_caller]
    pub fn text(&self) -> String {
        self.respond(At::here()).text()
    }

    /// The tools that it called in its last turn.
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        self.last_turn().map(|turn| turn.tool_calls()).unwrap_or_default()
    }

    /// How often it called this tool in its last turn.
    pub fn called_tool(&self, name: &str) -> usize {
        self.last_turn().map_or(0, |turn| turn.tool_calls_for(name).len())
    }

    /// The topic that the conversation is in; none where topics are not followed.
    pub fn current_topic(&self) -> Option<String> {
        self.line.seen().conversation.current_topic.as_deref().map(str::to_string)
    }

    /// Whether the conversation is in this topic.
    pub fn in_topic(&self, name: &str) -> bool {
        self.line.seen().conversation.current_topic.as_deref() == Some(name)
    }

    fn respond(&self, at: At) -> Response {
        match self.last_turn() {
            Some(turn) => turn.agent_response(),
            None => self.line.wrong("the agent has answered nothing yet: nothing was said to it", at),
        }
    }
}

/// The conversation, as far as it has come.
#[derive(Clone)]
pub struct Conversation {
    pub(super) of: Source,
}

/// Where a conversation is read from.
#[derive(Clone)]
pub(super) enum Source {
    /// The session that goes on.
    Line(Line),
    /// What had been recorded up to some turn.
    Recorded(Arc<trace::Conversation>, OptionsOfTurns),
}

impl Conversation {
    /// What is looked at when something is asserted of the conversation.
    /// What is asserted of all turns.
    pub(super) fn asserted(&self, assertion: Assertion) -> Assertion {
        let line = match &self.of {
            Source::Line(line) => Some(line.clone()),
            Source::Recorded(..) => None,
        };
        Assertion { subject: Subject::Conversation, line, ..assertion }
    }

    /// The conversation up to the last of these turns.
    pub(super) fn up_to(scope: Scope<'_>) -> Conversation {
        let mut conversation = trace::Conversation::default();
        conversation.turns = scope.so_far().to_vec();
        conversation.current_topic = conversation.turns.last().and_then(|turn| turn.topic.clone());
        Conversation { of: Source::Recorded(Arc::new(conversation), options_so_far()) }
    }

    /// What was said, in order, by both.
    pub fn messages(&self) -> Vec<Message> {
        self.turns().iter().flat_map(Turn::messages).collect()
    }

    /// Its turns, in order.
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
        let (conversation, options) = (self.recorded(), self.options());
        conversation.turns.iter().map(|turn| Turn::new(Arc::new(turn.clone()), &options)).collect()
    }

    /// How many turns there are.
    pub fn turn_count(&self) -> usize {
        self.recorded().turns.len()
    }

    /// The last turn; none as long as nothing was said.
    pub fn last_turn(&self) -> Option<Turn> {
        self.recorded().turns.last().map(|turn| Turn::new(Arc::new(turn.clone()), &self.options()))
    }

    /// What the user said last.
    pub fn last_user_message(&self) -> Option<Message> {
        self.last_turn().map(|turn| turn.user_message())
    }

    /// What the agent answered last.
    pub fn last_agent_response(&self) -> Option<Response> {
        self.last_turn().map(|turn| turn.agent_response())
    }

    /// Whether nothing was said yet.
    pub fn is_empty(&self) -> bool {
        self.turn_count() == 0
    }

    /// All tools that the agent called, in the order in which the calls began.
    pub fn all_tool_calls(&self) -> Vec<ToolCall> {
        self.turns().iter().flat_map(Turn::tool_calls).collect()
    }

    /// The names of the tools that were called, in that order, as often as they were called.
    pub fn tool_names(&self) -> Vec<String> {
        self.all_tool_calls().into_iter().map(|call| call.name).collect()
    }

    /// All calls of a tool.
    pub fn tool_calls_for(&self, name: &str) -> Vec<ToolCall> {
        self.turns().iter().flat_map(|turn| turn.tool_calls_for(name)).collect()
    }

    /// Whether a tool was called.
    pub fn has_tool_call(&self, name: &str) -> bool {
        self.recorded().turns.iter().any(|turn| turn.tool_calls.iter().any(|call| *call.name == *name))
    }

    /// How often a tool was called.
    pub fn called_tool(&self, name: &str) -> usize {
        self.tool_calls_for(name).len()
    }

    /// The topic that it is in; none where topics are not followed.
    pub fn current_topic(&self) -> Option<String> {
        self.recorded().current_topic.as_deref().map(str::to_string)
    }

    /// Whether it is in this topic.
    pub fn in_topic(&self, name: &str) -> bool {
        self.recorded().current_topic.as_deref() == Some(name)
    }

    /// The topics that it has been in, in order; one that it came back to stands there again.
    pub fn topic_history(&self) -> Vec<String> {
        self.recorded().topic_history().iter().map(ToString::to_string).collect()
    }

    /// Its visits of topics, in order, with the turns of each.
    pub fn topic_visits(&self) -> Vec<TopicVisit> {
        let turns = self.turns();
        let visit = |visit: trace::Visit| TopicVisit {
            topic: visit.topic.to_string(),
            number: visit.number,
            turns: turns[visit.turns].to_vec(),
        };
        self.recorded().topic_visits().into_iter().map(visit).collect()
    }

    /// How many turns belong to a topic, all visits together.
    pub fn turns_in_topic(&self, name: &str) -> usize {
        self.recorded().turns_in_topic(name)
    }

    /// Everything that was asserted so far, and what it came to, in order.
    pub fn evaluation_results(&self) -> Vec<Evaluation> {
        match &self.of {
            Source::Line(line) => line.seen().evaluations.to_vec(),
            Source::Recorded(..) => Vec::new(),
        }
    }

    /// What `evaluate!` has measured so far.
    pub fn soft_evaluations(&self) -> Vec<Evaluation> {
        self.evaluation_results().into_iter().filter(|evaluation| !evaluation.hard).collect()
    }

    /// What `expect!` has found so far.
    pub fn hard_evaluations(&self) -> Vec<Evaluation> {
        self.evaluation_results().into_iter().filter(|evaluation| evaluation.hard).collect()
    }

    fn options(&self) -> OptionsOfTurns {
        match &self.of {
            Source::Line(line) => line.seen().options.clone(),
            Source::Recorded(_, options) => options.clone(),
        }
    }

    /// The conversation as it was recorded, with everything that is known of it.
    pub fn recorded(&self) -> Arc<trace::Conversation> {
        match &self.of {
            Source::Line(line) => line.seen().conversation.clone(),
            Source::Recorded(conversation, _) => conversation.clone(),
        }
    }
}

/// Has something asserted; what `expect!` and `evaluate!` are made of.
#[doc(hidden)]
#[track_caller]
#[must_use = "nothing is asserted until this is awaited"]
pub fn assert_that<S: ?Sized, M: Matcher<S>>(
    hard: bool,
    written: &'static str,
    subject: &S,
    matcher: M,
    message: Option<String>,
) -> impl Future<Output = bool> {
    let at = At::here();
    let assertion = matcher.assertion(subject).of_value(written);
    let line = assertion.line.clone().unwrap_or_else(|| Line::current(at));
    let asserted =
        Asserted { assertion, strength: if hard { Strength::Hard } else { Strength::Soft }, message, at };
    async move { line.ask(|reply| Order::Check { asserted, reply }).await }
}
