//! Agents under test: one that the project file names, or one implemented in the test program.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::{self, Display};
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use hotseat_trace::{AttemptFailure, ErrorInfo, FailureKind};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::fixture::Fixture;
use super::panics::{self, PanicReport};
use super::scenario::Scenario;
use super::test::Test;
use super::views::{Message, Role, ToolCall};
use hotseat_targets::code_agent::{CodeAgent, CodeAgentAnswer, CodeAgentConversation, CodeAgentMessage};
use hotseat_targets::{BoxFuture, TurnError, message};

/// The agent that a group tests; see [`Group::agent`](super::Group::agent).
#[derive(Clone)]
pub enum AgentChoice {
    /// The agent with this name in `hotseat.yaml`.
    Named(String),
    /// An agent implemented in the test program.
    InProgram(Arc<InProgramAgent>),
}

impl From<&str> for AgentChoice {
    fn from(name: &str) -> Self {
        AgentChoice::Named(name.to_string())
    }
}

impl From<String> for AgentChoice {
    fn from(name: String) -> Self {
        AgentChoice::Named(name)
    }
}

/// Creates an agent from an async function that takes the messages so far and returns the answer.
///
/// It runs on the thread of its example, so it need not be `Send`, and may use the runtime of the example. An
/// `Err` is an error of the agent. A panic fails the case, also if the turn expects an error.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.agent(replies(async |messages: Vec<Message>| match messages.len() {
///     1 => CodeAgentAnswer::text("Which room?"),
///     _ => CodeAgentAnswer::text("Booked.").calling(
///         "book_room",
///         serde_json::json!({"room": "Blue Room"}),
///         serde_json::json!({"status": "confirmed"}),
///     ),
/// }));
/// # }
/// ```
#[track_caller]
pub fn replies<F, A>(function: F) -> AgentChoice
where
    F: AsyncFn(Vec<Message>) -> A + Clone + Send + Sync + 'static,
    A: IntoAnswer + 'static,
{
    let function = FunctionAgent { function, answer: PhantomData };
    factory(async move |_| function.clone())
}

/// Creates a new agent for each example, when it gets its first message. The context provides the name, tags
/// and fixtures of the example.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # use std::error::Error;
/// struct Booking { shop: u32 }
///
/// impl Responder for Booking {
///     async fn respond(&mut self, messages: &[Message]) -> Result<CodeAgentAnswer, Box<dyn Error>> {
///         Ok(CodeAgentAnswer::text(format!("Shop {} has heard you {} times", self.shop, messages.len())))
///     }
/// }
///
/// # fn a(g: &mut Group) {
/// let shop = g.fixture(async |_| 7);
/// g.agent(factory(async move |context| Booking { shop: *context.get(shop).await }));
/// # }
/// ```
#[track_caller]
pub fn factory<F, R>(make: F) -> AgentChoice
where
    F: AsyncFn(AgentContext) -> R + Send + Sync + 'static,
    R: Responder + 'static,
{
    AgentChoice::InProgram(Arc::new(InProgramAgent {
        factory: Box::new(ClosureFactory { make, responder: PhantomData }),
        location: Location::caller(),
        pending: Arc::default(),
    }))
}

/// An agent implemented in the test program.
///
/// ```
/// use hotseat::dsl::prelude::*;
/// use std::error::Error;
///
/// struct Parrot;
///
/// impl Responder for Parrot {
///     async fn respond(&mut self, messages: &[Message]) -> Result<CodeAgentAnswer, Box<dyn Error>> {
///         let said = messages.last().ok_or("nothing was said")?;
///         Ok(CodeAgentAnswer::text(&said.content))
///     }
/// }
/// ```
pub trait Responder {
    /// Answers the last message. The earlier messages are the history of the conversation; tool calls are
    /// part of the agent's messages. Fails if the agent fails. The turn then ends with that error, and its tool calls
    /// are unknown; [`CodeAgentAnswer::ending_with_error`] ends a turn with an error and the tool calls before it.
    fn respond(
        &mut self,
        messages: &[Message],
    ) -> impl Future<Output = Result<CodeAgentAnswer, Box<dyn Error>>>;
}

/// Return type of an agent function: a [`CodeAgentAnswer`], a text, or a `Result` of one of them.
pub trait IntoAnswer {
    /// Converts to an answer. Fails if the agent failed.
    fn into_answer(self) -> Result<CodeAgentAnswer, Box<dyn Error>>;
}

impl IntoAnswer for CodeAgentAnswer {
    fn into_answer(self) -> Result<CodeAgentAnswer, Box<dyn Error>> {
        Ok(self)
    }
}

impl IntoAnswer for String {
    fn into_answer(self) -> Result<CodeAgentAnswer, Box<dyn Error>> {
        Ok(CodeAgentAnswer::text(self))
    }
}

impl IntoAnswer for &str {
    fn into_answer(self) -> Result<CodeAgentAnswer, Box<dyn Error>> {
        Ok(CodeAgentAnswer::text(self))
    }
}

impl<A: IntoAnswer, E: Display> IntoAnswer for Result<A, E> {
    fn into_answer(self) -> Result<CodeAgentAnswer, Box<dyn Error>> {
        self.map_err(|error| error.to_string())?.into_answer()
    }
}

/// The example that an agent is created for.
#[derive(Clone)]
pub struct AgentContext {
    test: Test,
}

impl AgentContext {
    /// Returns the name of the example with those of its groups, joined by `::`.
    pub fn name(&self) -> &str {
        self.test.name()
    }

    /// Returns the source file of the example.
    pub fn file(&self) -> &'static str {
        self.test.file()
    }

    /// Returns the source line of the example, from 1.
    pub fn line(&self) -> u32 {
        self.test.line()
    }

    /// Returns the tags of the example and its groups.
    pub fn tags(&self) -> &[String] {
        self.test.tags()
    }

    /// Returns the scenario of the example, if any.
    pub fn scenario(&self) -> Option<&Scenario> {
        self.test.scenario()
    }

    /// Returns the address of a served model in this conversation; see [`Agent::model_url`](super::Agent::model_url).
    #[track_caller]
    pub fn model_url(&self, model: &str) -> String {
        self.test.agent.model_url(model)
    }

    /// Returns the address of an MCP server in this conversation.
    #[track_caller]
    pub fn mcp_url(&self, server: &str) -> String {
        self.test.agent.mcp_url(server)
    }

    /// Returns the value of a fixture; see [`Test::get`].
    pub async fn get<V: 'static>(&self, fixture: Fixture<V>) -> Rc<V> {
        self.test.get(fixture).await
    }
}

/// An agent implemented by an async function.
struct FunctionAgent<F, A> {
    function: F,
    answer: PhantomData<fn() -> A>,
}

impl<F: Clone, A> Clone for FunctionAgent<F, A> {
    fn clone(&self) -> Self {
        FunctionAgent { function: self.function.clone(), answer: PhantomData }
    }
}

impl<F: AsyncFn(Vec<Message>) -> A, A: IntoAnswer> Responder for FunctionAgent<F, A> {
    async fn respond(&mut self, messages: &[Message]) -> Result<CodeAgentAnswer, Box<dyn Error>> {
        (self.function)(messages.to_vec()).await.into_answer()
    }
}

type LocalBoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Type-erased [`Responder`].
trait DynResponder {
    fn respond<'a>(
        &'a mut self,
        messages: &'a [Message],
    ) -> LocalBoxFuture<'a, Result<CodeAgentAnswer, Box<dyn Error>>>;
}

impl<R: Responder> DynResponder for R {
    fn respond<'a>(
        &'a mut self,
        messages: &'a [Message],
    ) -> LocalBoxFuture<'a, Result<CodeAgentAnswer, Box<dyn Error>>> {
        Box::pin(Responder::respond(self, messages))
    }
}

/// Type-erased agent factory.
trait AgentFactory: Send + Sync {
    fn make(&self, context: AgentContext) -> LocalBoxFuture<'_, Box<dyn DynResponder>>;
}

struct ClosureFactory<F, R> {
    make: F,
    responder: PhantomData<fn() -> R>,
}

impl<F, R> AgentFactory for ClosureFactory<F, R>
where
    F: AsyncFn(AgentContext) -> R + Send + Sync,
    R: Responder + 'static,
{
    fn make(&self, context: AgentContext) -> LocalBoxFuture<'_, Box<dyn DynResponder>> {
        Box::pin(async move { Box::new((self.make)(context).await) as Box<dyn DynResponder> })
    }
}

/// An agent in the test program, with the conversations that no example has claimed yet.
pub struct InProgramAgent {
    factory: Box<dyn AgentFactory>,
    location: &'static Location<'static>,
    pending: Arc<PendingRequests>,
}

type PendingRequests = Mutex<HashMap<Arc<str>, mpsc::UnboundedReceiver<ResponderRequest>>>;

/// A request to answer the last of the messages.
pub(super) struct ResponderRequest {
    messages: Vec<Message>,
    reply: oneshot::Sender<Result<CodeAgentAnswer, TurnError>>,
}

impl InProgramAgent {
    /// Takes the requests of a conversation, to be answered on the thread of its example.
    pub(super) fn take_requests(
        &self,
        conversation_id: &str,
    ) -> Option<mpsc::UnboundedReceiver<ResponderRequest>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(conversation_id)
    }

    /// Answers requests until the sender is dropped.
    pub(super) async fn answer(&self, mut questions: mpsc::UnboundedReceiver<ResponderRequest>, test: Test) {
        let context = AgentContext { test };
        let mut agent: Option<Box<dyn DynResponder>> = None;
        let mut turn = 0;
        while let Some(ResponderRequest { messages, reply }) = questions.recv().await {
            turn += 1;
            let respond = async {
                let agent = match &mut agent {
                    Some(agent) => agent,
                    None => agent.insert(self.factory.make(context.clone()).await),
                };
                agent.respond(&messages).await
            };
            let answer = match CatchPanicFuture(Box::pin(respond)).await {
                Ok(answer) => answer.map_err(|error| {
                    Arc::make_mut(&mut context.test.channel.view().turn_notes).without_calls.insert(turn);
                    let message = error.to_string();
                    TurnError::Run(ErrorInfo { code: None, message, retriable: None })
                }),
                Err(panic) => {
                    let failure = AttemptFailure::new(FailureKind::AgentError, format!("the agent {panic}"));
                    Err(failure.with_detail(panic.backtrace.unwrap_or_default()).into())
                }
            };
            // The receiver is gone if the turn was aborted.
            let _ = reply.send(answer);
        }
    }
}

impl fmt::Debug for InProgramAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an agent in the test program ({})", self.location)
    }
}

impl CodeAgent for InProgramAgent {
    fn open(&self, conversation_id: Arc<str>) -> Box<dyn CodeAgentConversation> {
        let (asks, questions) = mpsc::unbounded_channel();
        let mut waiting = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(conversation_id.clone(), questions);
        Box::new(ResponderChannel { requests: asks, conversation_id, pending: self.pending.clone() })
    }

    fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

/// The session's end of a conversation with an agent in the program.
struct ResponderChannel {
    requests: mpsc::UnboundedSender<ResponderRequest>,
    conversation_id: Arc<str>,
    pending: Arc<PendingRequests>,
}

impl CodeAgentConversation for ResponderChannel {
    fn answer<'a>(
        &'a mut self,
        messages: Vec<CodeAgentMessage>,
    ) -> BoxFuture<'a, Result<CodeAgentAnswer, TurnError>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let asked = ResponderRequest { messages: messages.iter().map(to_message).collect(), reply };
            let gone = || AttemptFailure::new(FailureKind::TestError, "the example of this agent has ended");
            self.requests.send(asked).map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }
}

impl Drop for ResponderChannel {
    fn drop(&mut self) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.conversation_id);
    }
}

fn to_message(heard: &CodeAgentMessage) -> Message {
    let said = &heard.message;
    let arguments =
        |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_string()));
    Message {
        role: match said.role {
            message::MessageRole::Assistant => Role::Agent,
            message::MessageRole::User => Role::User,
            message::MessageRole::Tool => Role::Tool,
            message::MessageRole::System | message::MessageRole::Developer => Role::System,
        },
        content: message::joined_text(&said.content),
        timestamp: None,
        tool_calls: said
            .tool_calls
            .iter()
            .map(|call| ToolCall {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: arguments(&call.arguments),
                result: None,
                error: None,
                server_tool: None,
                other_names: Vec::new(),
            })
            .collect(),
        unseen_calls: None,
        metadata: heard.options.clone().unwrap_or(Value::Null),
    }
}

/// A future that converts panics to errors.
struct CatchPanicFuture<'a, T>(LocalBoxFuture<'a, T>);

impl<T> Future for CatchPanicFuture<'_, T> {
    type Output = Result<T, PanicReport>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panics::report_for(&*panic))),
        }
    }
}
