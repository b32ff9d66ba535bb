//! Handles of a running session: the user and the agent, and assertions about them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::Value;

use super::caller_location::CallerLocation;
use super::conversation::{Conversation, NO_TURN_TO_CHECK};
use super::matcher::Matcher;
use super::session_channel::{AssertionRequest, SessionChannel, SessionCommand};
use super::simulator::{SimulationResult, SimulatorSettings};
use super::user_turn::{Attachment, UserTurnBuilder};
use super::views::{AgentResponse, ToolCall, Turn};
use hotseat_checks::CheckStrength;
use hotseat_engine::cases::MODEL_PREFIX;

/// Tracks that a future is awaited. If it is dropped before that, the example fails with its location.
struct AwaitGuard<T> {
    channel: SessionChannel,
    operation: &'static str,
    at: CallerLocation,
    future: Option<Pin<Box<dyn Future<Output = T>>>>,
}

impl<T> AwaitGuard<T> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        begin: impl FnOnce(SessionChannel, CallerLocation) -> Pin<Box<dyn Future<Output = T>>>,
    ) -> Poll<T> {
        let (line, at) = (&self.channel, self.at);
        self.future.get_or_insert_with(|| begin(line.clone(), at)).as_mut().poll(cx)
    }
}

impl<T> Drop for AwaitGuard<T> {
    fn drop(&mut self) {
        if self.future.is_none() && !std::thread::panicking() {
            let words = format!("{} was never awaited, so no message was sent", self.operation);
            self.channel.send(SessionCommand::TestError { words, at: self.at });
        }
    }
}

/// The user who talks to the agent.
#[derive(Clone)]
pub struct User {
    pub(super) channel: SessionChannel,
}

impl User {
    /// Sends a message to the agent and waits for its answer. Later assertions on the agent refer to this
    /// turn, until the next message.
    ///
    /// The case ends here if the agent times out or fails.
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
    pub fn says(&self, text: impl Into<String>) -> SayFuture {
        let at = CallerLocation::here();
        SayFuture {
            turn: Some(UserTurnBuilder::new(text.into(), at)),
            guard: AwaitGuard { channel: self.channel.clone(), operation: "`user.says`", at, future: None },
        }
    }

    /// Runs a simulated user until its goal is reached, `stop_when` is true, or the maximum number of turns
    /// is reached. Settings of [`Group::simulator`](super::Group::simulator) apply; the settings here are
    /// added.
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
    pub fn simulate(&self, brief: impl FnOnce(&mut SimulatorSettings)) -> SimulateFuture {
        let at = CallerLocation::here();
        let mut own = SimulatorSettings::default();
        brief(&mut own);
        SimulateFuture {
            brief: Some(own),
            guard: AwaitGuard {
                channel: self.channel.clone(),
                operation: "`user.simulate`",
                at,
                future: None,
            },
        }
    }
}

/// A user message to be sent; see [`User::says`].
#[must_use = "no message is sent until this is awaited"]
pub struct SayFuture {
    turn: Option<UserTurnBuilder>,
    guard: AwaitGuard<AgentResponse>,
}

impl SayFuture {
    /// Sets `options` of the turn, as in case files. They are merged over those of the example.
    /// [`Message::metadata`](super::views::Message::metadata) returns them.
    pub fn with_options(self, options: Value) -> SayFuture {
        self.edit_turn(|said| said.set("options", options))
    }

    /// Sets the time limit of the turn.
    pub fn within(self, limit: Duration) -> SayFuture {
        self.edit_turn(|said| said.set_timeout(limit))
    }

    /// Attaches a file.
    pub fn attach(self, attachment: Attachment) -> SayFuture {
        self.edit_turn(|said| said.push("attachments", attachment.into_json()))
    }

    /// Expects that the turn ends with an error whose message matches this pattern. The case then continues;
    /// it fails if there is no such error.
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
    pub fn expect_error(self, message: impl Into<String>) -> SayFuture {
        self.edit_turn(|said| said.expect_error("message", message.into()))
    }

    /// Expects an error whose code matches this pattern; see [`expect_error`](SayFuture::expect_error).
    pub fn expect_error_code(self, code: impl Into<String>) -> SayFuture {
        self.edit_turn(|said| said.expect_error("code", code.into()))
    }

    /// Answers an interrupt of the agent: one entry of `resume`, as in case files. The first matching entry
    /// is used; an entry that is never used fails the case.
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
    pub fn resume(self, answer: Value) -> SayFuture {
        self.edit_turn(|said| said.push("resume", answer))
    }

    fn edit_turn(mut self, say: impl FnOnce(&mut UserTurnBuilder)) -> SayFuture {
        if let Some(said) = &mut self.turn {
            say(said);
        }
        self
    }
}

impl Future for SayFuture {
    type Output = AgentResponse;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<AgentResponse> {
        let said = self.turn.take();
        self.guard.poll(cx, |line, at| {
            Box::pin(async move {
                if let Some(said) = said {
                    line.request(|reply| SessionCommand::Say { turn: said, reply }).await;
                }
                Agent { channel: line }.response_at(at)
            })
        })
    }
}

/// A simulated user to be run; see [`User::simulate`].
#[must_use = "no message is sent until this is awaited"]
pub struct SimulateFuture {
    brief: Option<SimulatorSettings>,
    guard: AwaitGuard<SimulationResult>,
}

impl Future for SimulateFuture {
    type Output = SimulationResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<SimulationResult> {
        let brief = self.brief.take();
        self.guard.poll(cx, |line, at| {
            Box::pin(async move {
                let brief = Box::new(brief.unwrap_or_default());
                line.request(|reply| SessionCommand::Simulate { brief, at, reply }).await
            })
        })
    }
}

/// The agent, as of its last turn.
#[derive(Clone)]
pub struct Agent {
    pub(super) channel: SessionChannel,
}

impl Agent {
    /// Returns the last turn, or none before the first message.
    pub fn last_turn(&self) -> Option<Turn> {
        Conversation::of_session(self.channel.session()).last_turn()
    }

    /// Returns the last response. Fails the example before the first message.
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
    pub fn response(&self) -> AgentResponse {
        self.response_at(CallerLocation::here())
    }

    /// Returns the text of the last response. Fails the example before the first message.
    #[track_caller]
    pub fn text(&self) -> String {
        self.response_at(CallerLocation::here()).text()
    }

    /// Returns the address of a served model in this conversation: the base URL for clients of its provider. Fails the example if
    /// the case has no such model under `models`.
    #[track_caller]
    pub fn model_url(&self, model: &str) -> String {
        let name = format!("{MODEL_PREFIX}{model}");
        self.service_url(&name, || format!("this case has no served model `{model}`"), CallerLocation::here())
    }

    /// Returns the address of an MCP server in this conversation. Fails the example if the case has no such server under `mcp`.
    #[track_caller]
    pub fn mcp_url(&self, server: &str) -> String {
        self.service_url(server, || format!("this case has no MCP server `{server}`"), CallerLocation::here())
    }

    fn service_url(&self, name: &str, missing: impl FnOnce() -> String, at: CallerLocation) -> String {
        let known = self.channel.view().services.get(name).cloned();
        known.unwrap_or_else(|| self.channel.fail_test(missing(), at))
    }

    /// Returns the tool calls of the last turn. Fails the example before the first message.
    #[track_caller]
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        self.turn_at(CallerLocation::here()).tool_calls()
    }

    /// Returns how many times the last turn called this tool. Fails the example before the first message.
    #[track_caller]
    pub fn called_tool(&self, name: &str) -> usize {
        self.turn_at(CallerLocation::here()).tool_calls_for(name).len()
    }

    /// Returns the current topic, or none if topics are not tracked.
    pub fn current_topic(&self) -> Option<String> {
        self.channel.view().conversation.current_topic.as_deref().map(str::to_string)
    }

    /// Returns true if the conversation is in this topic.
    pub fn in_topic(&self, name: &str) -> bool {
        self.channel.view().conversation.current_topic.as_deref() == Some(name)
    }

    fn turn_at(&self, at: CallerLocation) -> Turn {
        self.last_turn().unwrap_or_else(|| self.channel.fail_test(NO_TURN_TO_CHECK, at))
    }

    fn response_at(&self, at: CallerLocation) -> AgentResponse {
        match self.last_turn() {
            Some(turn) => turn.agent_response(),
            None => {
                self.channel.fail_test("there is no response yet: send a message with `user.says` first", at)
            }
        }
    }
}

/// Evaluates an assertion; implements `expect!` and `evaluate!`.
#[doc(hidden)]
#[track_caller]
#[must_use = "the assertion is not evaluated until this is awaited"]
pub fn assert_that<S: ?Sized, M: Matcher<S>>(
    hard: bool,
    expression: &'static str,
    subject: &S,
    matcher: M,
    message: Option<String>,
) -> impl Future<Output = bool> {
    let at = CallerLocation::here();
    let assertion = matcher.assertion(subject).with_expression(expression);
    let line = match &assertion.session {
        Some(view) => SessionChannel::of_session(view, at),
        None => SessionChannel::current(at),
    };
    let asserted = AssertionRequest {
        assertion,
        strength: if hard { CheckStrength::Hard } else { CheckStrength::Soft },
        message,
        at,
    };
    async move { line.request(|reply| SessionCommand::Check { asserted, reply }).await }
}
