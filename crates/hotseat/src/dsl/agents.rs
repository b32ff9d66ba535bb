//! Agents of a test: one that the project names, or one in the program itself.

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

use hotseat_trace::ErrorInfo;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::fixture::Fixture;
use super::panics;
use super::scenario::Scenario;
use super::test::Test;
use super::views::{Message, Role, ToolCall};
use crate::adapters::Pending;
use crate::adapters::in_code::{Answer, Answers, Call, Heard, InCode};
use crate::session;

/// The agent that a group tests; see [`Group::agent`](super::Group::agent).
#[derive(Clone)]
pub enum AgentChoice {
    /// The agent of this name in `hotseat.yaml`.
    Named(String),
    /// An agent in the program itself.
    InProgram(Arc<Program>),
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

/// An agent that an async function is: it gets what was said so far, and returns the answer.
///
/// It runs on the thread of its example, so it need not be `Send`, and it may use the example's own runtime. A panic, and
/// an `Err`, are errors of the agent.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.agent(replies(async |messages: Vec<Message>| match messages.len() {
///     1 => Answer::text("Which room?"),
///     _ => Answer::text("Booked.").calling(
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
    let function = Function { function, answer: PhantomData };
    factory(async move |_| function.clone())
}

/// An agent that is made anew for each example, when it is first spoken to. The context says which example that is, and
/// has its fixtures.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # use std::error::Error;
/// struct Booking { shop: u32 }
///
/// impl Responder for Booking {
///     async fn respond(&mut self, messages: &[Message]) -> Result<Answer, Box<dyn Error>> {
///         Ok(Answer::text(format!("Shop {} has heard you {} times", self.shop, messages.len())))
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
    AgentChoice::InProgram(Arc::new(Program {
        makes: Box::new(Factory { make, made: PhantomData }),
        at: Location::caller(),
        waiting: Arc::default(),
    }))
}

/// An agent in the program of its test.
///
/// ```
/// use hotseat::dsl::prelude::*;
/// use std::error::Error;
///
/// struct Parrot;
///
/// impl Responder for Parrot {
///     async fn respond(&mut self, messages: &[Message]) -> Result<Answer, Box<dyn Error>> {
///         let said = messages.last().ok_or("nothing was said")?;
///         Ok(Answer::text(&said.content))
///     }
/// }
/// ```
pub trait Responder {
    /// The answer to the last of these messages. The others were said before, by both; calls of tools are with the
    /// messages of the agent.
    ///
    /// # Errors
    /// What the agent fails with. Its turn then ends as one of an agent that failed.
    fn respond(&mut self, messages: &[Message]) -> impl Future<Output = Result<Answer, Box<dyn Error>>>;
}

impl Answer {
    /// An answer in words.
    ///
    /// ```
    /// use hotseat::dsl::Answer;
    ///
    /// assert_eq!(Answer::text("Hello!").text, "Hello!");
    /// ```
    pub fn text(text: impl Into<String>) -> Answer {
        Answer { text: text.into(), ..Answer::default() }
    }

    /// The same after a call of a tool, with its arguments and what it returned.
    #[must_use]
    pub fn calling(mut self, tool: impl Into<String>, arguments: Value, result: Value) -> Answer {
        self.calls.push(Call { name: tool.into(), arguments, result: Some(Ok(result)) });
        self
    }

    /// The same after a call of a tool that failed, with its error.
    #[must_use]
    pub fn failing(mut self, tool: impl Into<String>, arguments: Value, error: impl Into<String>) -> Answer {
        self.calls.push(Call { name: tool.into(), arguments, result: Some(Err(error.into())) });
        self
    }

    /// The same, saying whether an input of the user is waited for.
    #[must_use]
    pub fn awaiting(self, awaiting: bool) -> Answer {
        Answer { awaiting: Some(awaiting), ..self }
    }
}

/// What an agent that is a function may return: an [`Answer`], a text, or a `Result` of one of them.
pub trait IntoAnswer {
    /// The answer.
    ///
    /// # Errors
    /// What the agent failed with, in words.
    fn into_answer(self) -> Result<Answer, String>;
}

impl IntoAnswer for Answer {
    fn into_answer(self) -> Result<Answer, String> {
        Ok(self)
    }
}

impl IntoAnswer for String {
    fn into_answer(self) -> Result<Answer, String> {
        Ok(Answer::text(self))
    }
}

impl IntoAnswer for &str {
    fn into_answer(self) -> Result<Answer, String> {
        Ok(Answer::text(self))
    }
}

impl<A: IntoAnswer, E: Display> IntoAnswer for Result<A, E> {
    fn into_answer(self) -> Result<Answer, String> {
        self.map_err(|error| error.to_string())?.into_answer()
    }
}

/// What an agent that is made for an example is told of it.
#[derive(Clone)]
pub struct AgentContext {
    test: Test,
}

impl AgentContext {
    /// The name of the example with those of its groups, joined by `::`.
    pub fn name(&self) -> &str {
        self.test.name()
    }

    /// The file in which it is written.
    pub fn file(&self) -> &'static str {
        self.test.file()
    }

    /// The line in which it is written, from 1.
    pub fn line(&self) -> u32 {
        self.test.line()
    }

    /// Its tags and those of its groups.
    pub fn tags(&self) -> &[String] {
        self.test.tags()
    }

    /// Its scenario, where it belongs to one.
    pub fn scenario(&self) -> Option<&Scenario> {
        self.test.scenario()
    }

    /// A value of the example; see [`Test::get`].
    pub async fn get<V: 'static>(&self, fixture: Fixture<V>) -> Rc<V> {
        self.test.get(fixture).await
    }
}

/// An agent that is a function.
struct Function<F, A> {
    function: F,
    answer: PhantomData<fn() -> A>,
}

impl<F: Clone, A> Clone for Function<F, A> {
    fn clone(&self) -> Self {
        Function { function: self.function.clone(), answer: PhantomData }
    }
}

impl<F: AsyncFn(Vec<Message>) -> A, A: IntoAnswer> Responder for Function<F, A> {
    async fn respond(&mut self, messages: &[Message]) -> Result<Answer, Box<dyn Error>> {
        Ok((self.function)(messages.to_vec()).await.into_answer()?)
    }
}

type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A [`Responder`], whatever its type is.
trait Responds {
    fn respond<'a>(&'a mut self, messages: &'a [Message]) -> Local<'a, Result<Answer, String>>;
}

impl<R: Responder> Responds for R {
    fn respond<'a>(&'a mut self, messages: &'a [Message]) -> Local<'a, Result<Answer, String>> {
        Box::pin(async move { Responder::respond(self, messages).await.map_err(|error| error.to_string()) })
    }
}

/// Makes an agent, whatever its type is.
trait Makes: Send + Sync {
    fn make(&self, context: AgentContext) -> Local<'_, Box<dyn Responds>>;
}

struct Factory<F, R> {
    make: F,
    made: PhantomData<fn() -> R>,
}

impl<F, R> Makes for Factory<F, R>
where
    F: AsyncFn(AgentContext) -> R + Send + Sync,
    R: Responder + 'static,
{
    fn make(&self, context: AgentContext) -> Local<'_, Box<dyn Responds>> {
        Box::pin(async move { Box::new((self.make)(context).await) as Box<dyn Responds> })
    }
}

/// An agent in the program of the test, and the conversations with it that no example has taken yet.
pub struct Program {
    makes: Box<dyn Makes>,
    at: &'static Location<'static>,
    waiting: Arc<Waiting>,
}

type Waiting = Mutex<HashMap<Arc<str>, mpsc::UnboundedReceiver<Asked>>>;

/// What the agent is asked.
pub(super) struct Asked {
    messages: Vec<Message>,
    reply: oneshot::Sender<Result<Answer, String>>,
}

impl Program {
    /// The questions of a conversation, to be answered on the thread of its example.
    pub(super) fn take(&self, conversation_id: &str) -> Option<mpsc::UnboundedReceiver<Asked>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(conversation_id)
    }

    /// Answers until nobody asks any more.
    pub(super) async fn answer(&self, mut questions: mpsc::UnboundedReceiver<Asked>, test: Test) {
        let context = AgentContext { test };
        let mut agent: Option<Box<dyn Responds>> = None;
        while let Some(Asked { messages, reply }) = questions.recv().await {
            let respond = async {
                if agent.is_none() {
                    agent = Some(self.makes.make(context.clone()).await);
                }
                match &mut agent {
                    Some(agent) => agent.respond(&messages).await,
                    None => Err("the agent could not be made".to_string()),
                }
            };
            let answer = Caught(Box::pin(respond)).await;
            // Who does not wait any more has given the turn up.
            let _ = reply.send(answer.unwrap_or_else(Err));
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an agent in the program ({})", self.at)
    }
}

impl InCode for Program {
    fn open(&self, conversation_id: Arc<str>) -> Box<dyn Answers> {
        let (asks, questions) = mpsc::unbounded_channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(conversation_id.clone(), questions);
        Box::new(Asking { asks, conversation_id, waiting: self.waiting.clone() })
    }

    fn place(&self) -> &'static Location<'static> {
        self.at
    }
}

/// The end of a conversation that asks.
struct Asking {
    asks: mpsc::UnboundedSender<Asked>,
    conversation_id: Arc<str>,
    waiting: Arc<Waiting>,
}

impl Answers for Asking {
    fn answer<'a>(&'a mut self, messages: Vec<Heard>) -> Pending<'a, Result<Answer, ErrorInfo>> {
        Box::pin(async move {
            let failed = |message: String| ErrorInfo { code: None, message, retriable: None };
            let (reply, answer) = oneshot::channel();
            let asked = Asked { messages: messages.iter().map(message).collect(), reply };
            let gone = || failed("the example that the agent belongs to has ended".to_string());
            self.asks.send(asked).map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?.map_err(failed)
        })
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.conversation_id);
    }
}

fn message(heard: &Heard) -> Message {
    let said = &heard.message;
    let arguments =
        |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_string()));
    Message {
        role: match said.role {
            session::Role::Assistant => Role::Agent,
            session::Role::User => Role::User,
            session::Role::Tool => Role::Tool,
            session::Role::System | session::Role::Developer => Role::System,
        },
        content: session::words(&said.content),
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
            })
            .collect(),
        metadata: heard.options.clone().unwrap_or(Value::Null),
    }
}

/// A future whose panics are errors in words.
struct Caught<'a, T>(Local<'a, Result<T, String>>);

impl<T> Future for Caught<'_, T> {
    type Output = Result<Result<T, String>, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(format!("the agent {}", panics::seen(&*panic).words()))),
        }
    }
}
