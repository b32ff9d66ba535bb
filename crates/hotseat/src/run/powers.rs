//! What scripts call with `Process` that is no script: agents of the project, commands and requests that its file names.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_trace::ErrorInfo;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::outside::{Outside, on_behalf_of};
use crate::adapters::http::{Outgoing, ReadError, rest_of_body, shown_body, without_credentials};
use crate::adapters::{Limits, TurnError};
use crate::cases::{CaseTarget, messages_in};
use crate::config::{Agent, Process, Whose};
use crate::roles::{Spoken, Unanswered, one_turn};
use crate::scripts::{Answer, Powers, Processes};
use crate::session::{
    Identity, Message, OverheardTurn, OverheardTurns, Recorder, Redactor, Role, TurnScript, media, response,
    run_command, words,
};
use hotseat_document::Diagnostics;

/// So many bytes of the answer to a request are read.
const LARGEST: usize = 8 * 1024 * 1024;

/// On whose behalf scripts call.
struct Caller {
    outside: Arc<Outside>,
    /// What hooks have given.
    given: BTreeMap<String, Value>,
    identity: Identity,
    /// Where turns are noted that belong to the case of a program.
    noted: Option<NotedTurns>,
}

/// Where the turns are noted that a program holds by itself, and which agent its case tests.
#[derive(Clone)]
pub(super) struct NotedTurns {
    pub(super) turns: OverheardTurns,
    pub(super) tested: Option<Arc<Agent>>,
}

impl Outside {
    /// What scripts can do that run for the sake of these suites, on behalf of somebody.
    pub fn powers(
        self: &Arc<Self>,
        whose: &[Whose<'_>],
        given: &BTreeMap<String, Value>,
        identity: &Identity,
    ) -> Powers {
        self.powers_noting(whose, given, identity, None)
    }

    /// The same for the program of a case: what it says to agents by itself is noted.
    pub(super) fn powers_noting(
        self: &Arc<Self>,
        whose: &[Whose<'_>],
        given: &BTreeMap<String, Value>,
        identity: &Identity,
        noted: Option<NotedTurns>,
    ) -> Powers {
        let (given, identity) = (given.clone(), identity.clone());
        let caller = Caller { outside: self.clone(), given, identity, noted };
        let places = whose.iter().map(|whose| self.project.places(*whose)).collect();
        Powers::new(self.project.scripts().clone(), places, self.means.http.clone(), Arc::new(caller))
    }
}

impl Processes for Caller {
    fn call(&self, name: String, arguments: Vec<Value>) -> Answer {
        let caller = Caller {
            outside: self.outside.clone(),
            given: self.given.clone(),
            identity: self.identity.clone(),
            noted: self.noted.clone(),
        };
        Box::pin(async move {
            let answer = match name.split_once('.') {
                Some(("agents" | "agent", rest)) => caller.agent(rest, arguments).await,
                _ => caller.named(&name, arguments).await,
            };
            answer.map_err(|words| format!("Process({name}): {words}"))
        })
    }
}

impl Caller {
    /// A command or a request of the project file.
    async fn named(&self, name: &str, arguments: Vec<Value>) -> Result<Value, String> {
        let project = &self.outside.project;
        let process = project.process(name).map_err(in_words)?;
        let told = json!({"name": name, "args": arguments, "ctx": *self.identity.ctx});
        match process {
            Process::Command(mut command) => {
                on_behalf_of(&self.identity, &mut command);
                let (environment, servers) = (project.environment(), self.outside.means.servers);
                let ran =
                    run_command("command", &command, &project.root, environment, servers, Some(&told)).await;
                let (printed, _) = ran.map_err(|failure| match failure.detail {
                    Some(detail) => format!("{}\n{detail}", failure.message),
                    None => failure.message,
                })?;
                Ok(printed.unwrap_or_default())
            }
            Process::Request { url, method, headers, timeout } => {
                let mut headers = headers;
                let json = reqwest::header::HeaderValue::from_static("application/json");
                headers.entry(reqwest::header::CONTENT_TYPE).or_insert(json);
                let has_body = !matches!(method, reqwest::Method::GET | reqwest::Method::HEAD);
                let body = has_body.then(|| told.to_string().into_bytes());
                let limits = Limits::within(Instant::now() + timeout, timeout + timeout);
                let outgoing =
                    Outgoing { method, url: &url, headers, body, address_key: "`url` of the process" };
                let late = || {
                    format!("no answer of {} within {} ms", without_credentials(&url), timeout.as_millis())
                };
                let sent = self.outside.means.http.send(outgoing, limits).await;
                let mut response = sent.map_err(|error| match error {
                    TurnError::Deadline => late(),
                    TurnError::Run(error) => error.message,
                    TurnError::Failed(failure) => match failure.detail {
                        Some(detail) if !detail.is_empty() => format!("{}\n{detail}", failure.message),
                        Some(_) | None => failure.message,
                    },
                })?;
                let body =
                    rest_of_body(&mut response, LARGEST, limits).await.map_err(|error| match error {
                        ReadError::Broken(words) => words,
                        ReadError::Deadline | ReadError::Silent => late(),
                        ReadError::Limit(failure) => failure.message,
                    })?;
                if body.len() > LARGEST {
                    return Err(format!("{} answers more than {LARGEST} bytes", without_credentials(&url)));
                }
                if body.trim_ascii().is_empty() {
                    return Ok(Value::Null);
                }
                serde_json::from_slice(&body).map_err(|error| {
                    let url = without_credentials(&url);
                    format!("{url} answers something that is not JSON ({error}): {}", shown_body(&body))
                })
            }
        }
    }

    /// `agents.ID`, `agents.ID.Stream`, `agents.ID.Call`, or `agent.Call` with an object that names it.
    async fn agent(&self, rest: &str, arguments: Vec<Value>) -> Result<Value, String> {
        let (id, said) = match (rest, arguments.as_slice()) {
            ("Call" | "Stream", [Value::Object(members), ..]) if members.contains_key("assistant_id") => {
                let id = members["assistant_id"].as_str().ok_or("`assistant_id` is a text")?;
                (id.to_string(), Said::of_members(members)?)
            }
            _ => (rest.to_string(), Said::of_arguments(arguments)?),
        };
        let outside = &self.outside;
        let agent = outside.project.named_agent(&id).or_else(|wrong| {
            let bare = id.rsplit_once('.').filter(|(_, last)| matches!(*last, "Stream" | "Call"));
            bare.and_then(|(id, _)| outside.project.named_agent(id).ok())
                .ok_or_else(|| in_words(wrong.into()))
        })?;
        let bound = outside.bound(&agent);
        if agent.start.is_some() && bound.is_none() && !agent.varies {
            return Err("this agent is started only for runs that test it or have it help".to_string());
        }
        let target = match bound {
            Some((target, _)) => target.clone(),
            None => outside.bind(&agent, &self.given).map_err(in_words)?.0,
        };
        let connector = said.options["connector"].as_str().map(|name| (name, None));
        let target = outside.project.with_connectors(&agent, target, connector).map_err(in_words)?;
        let (carried, of_whom) = (said.options.is_object(), &self.identity);
        let target = target.for_case(&CaseTarget { identity: of_whom.clone(), ..CaseTarget::default() });
        let script = TurnScript::new(target.tools.clone());
        let mut session = target.target.open(&outside.means);
        let mut messages = messages_in(&said.messages)?;
        let Some(last) = messages.pop().filter(|last| last.role == Role::User) else {
            return Err("the last message is what the user says".to_string());
        };
        if messages.iter().chain([&last]).any(|message| media(&message.content).next().is_some()) {
            return Err("messages of scripts are text: nothing can be attached to them".to_string());
        }
        if !messages.is_empty() && !session.carries().history {
            return Err(
                "this agent cannot be told what was said before; give it the last message only".to_string()
            );
        }
        session.remember(&messages).map_err(|failure| failure.message)?;
        let text = words(&last.content);
        let noted = self.noted.as_ref();
        let turn_id = noted.map_or_else(|| "turn-1".into(), |noted| noted.turns.begin());
        let spoken = Spoken {
            turn_id: turn_id.clone(),
            text: &text,
            content: &last.content,
            options: carried.then_some(&said.options),
        };
        let limits = Limits::within(Instant::now() + agent.timeouts.turn, agent.timeouts.idle);
        let mut recorder = Recorder::new(Redactor::default(), noted.is_some());
        let held = one_turn(session, script, spoken, limits, &mut recorder).await;
        let held = held.map_err(|unanswered| match unanswered {
            Unanswered::Deadline => format!("no answer after {} ms", agent.timeouts.turn.as_millis()),
            Unanswered::Failed(words) => words,
        });
        let answer = response(&recorder.conversation().turns);
        if let Some(NotedTurns { turns, tested }) = noted {
            let message = held.as_ref().err().cloned();
            let is_tested = tested.as_ref().is_none_or(|tested| Arc::ptr_eq(tested, &agent));
            turns.push(OverheardTurn {
                turn_id,
                recorder,
                history: messages.iter().map(shown_message).collect(),
                error: message.map(|message| ErrorInfo { code: None, message, retriable: None }),
                other_agent: (!is_tested).then(|| agent.name.as_deref().unwrap_or(&id).to_string()),
            });
        }
        held.map(|()| answer)
    }
}

/// A message that was said before, in a line.
fn shown_message(message: &Message) -> String {
    let role = match message.role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    format!("{role}: {}", words(&message.content))
}

/// What a script says to an agent.
struct Said {
    messages: Value,
    options: Value,
}

impl Said {
    /// `{assistant_id, messages, options}`
    fn of_members(members: &serde_json::Map<String, Value>) -> Result<Said, String> {
        let messages = members.get("messages").or_else(|| members.get("input"));
        let messages = messages.cloned().ok_or("there are no `messages`")?;
        let options = members.get("options").cloned().unwrap_or_else(|| json!({}));
        Ok(Said { messages: as_messages(messages), options })
    }

    /// `(messages, options)`, with the context of a hook or a test before them, or not.
    fn of_arguments(arguments: Vec<Value>) -> Result<Said, String> {
        let is_said = |value: &Value| {
            value.is_string()
                || value.is_array()
                || value.get("role").or_else(|| value.get("content")).is_some()
        };
        let mut rest = arguments.into_iter().skip_while(|value| !is_said(value));
        let messages = rest.next().ok_or("there are no messages: give a text, or a list of messages")?;
        let options = rest.next().filter(Value::is_object).unwrap_or_else(|| json!({}));
        Ok(Said { messages: as_messages(messages), options })
    }
}

fn in_words(wrong: Diagnostics) -> String {
    let words = wrong.into_iter().map(|wrong| match wrong.help {
        Some(help) => format!("{} ({help})", wrong.message),
        None => wrong.message,
    });
    words.collect::<Vec<_>>().join("; ")
}

/// A list of messages, however they are given.
fn as_messages(said: Value) -> Value {
    match said {
        Value::String(text) => json!([{"role": "user", "content": text}]),
        Value::Array(messages) => Value::Array(messages),
        one => json!([one]),
    }
}
