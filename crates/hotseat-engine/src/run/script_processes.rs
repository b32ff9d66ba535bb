//! Non-script targets of `Process` in scripts: agents of the project, and commands and requests of the
//! project file.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_script::{HostCallError, HostResult};
use hotseat_trace::ErrorInfo;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::context::{RunContext, set_identity_env};
use crate::cases::{CaseTarget, McpAddresses, parse_messages};
use crate::config::{ProcessTarget, ProjectAgent, ScriptScope};
use crate::roles::{RoleError, SingleTurnInput, run_single_turn};
use crate::scripts::{ProcessFuture, ProcessRunner, ScriptCapabilities};
use crate::session::{DirectTurn, DirectTurns, response_json, run_command};
use hotseat_document::Diagnostics;
use hotseat_document::json::read_bytes;
use hotseat_targets::connection::http::{
    HttpPeer, HttpRequest, ReadError, display_body, rest_of_body, without_credentials,
};
use hotseat_targets::message::{
    ConversationMessage, MessageRole, RequestIdentity, ScriptedAnswers, joined_text, media_parts,
};
use hotseat_targets::recorder::{SecretRedactor, TraceRecorder};
use hotseat_targets::{TurnError, TurnLimits};

/// Maximum size of the response to a request.
const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;

/// Handles `Process` calls of scripts on behalf of a user identity.
struct ProcessCaller {
    outside: Arc<RunContext>,
    /// Variables set by hooks.
    hook_variables: BTreeMap<String, Value>,
    identity: RequestIdentity,
    /// Log for turns that belong to the case of a program.
    turn_log: Option<OverheardTurnLog>,
}

/// Log of the turns that a program holds without the session, and the agent tested by its case.
#[derive(Clone)]
pub(super) struct OverheardTurnLog {
    pub(super) turns: DirectTurns,
    pub(super) tested: Option<Arc<ProjectAgent>>,
}

impl RunContext {
    /// Permissions of scripts in these scopes, acting for this user identity.
    pub fn script_permissions(
        self: &Arc<Self>,
        whose: &[ScriptScope<'_>],
        hook_variables: &BTreeMap<String, Value>,
        identity: &RequestIdentity,
    ) -> ScriptCapabilities {
        self.script_permissions_with_log(whose, hook_variables, identity, None)
    }

    /// Like [`RunContext::script_permissions`], for the program of a case: its own turns with agents are logged.
    pub(super) fn script_permissions_with_log(
        self: &Arc<Self>,
        whose: &[ScriptScope<'_>],
        hook_variables: &BTreeMap<String, Value>,
        identity: &RequestIdentity,
        noted: Option<OverheardTurnLog>,
    ) -> ScriptCapabilities {
        let (hook_variables, identity) = (hook_variables.clone(), identity.clone());
        let caller = ProcessCaller { outside: self.clone(), hook_variables, identity, turn_log: noted };
        let places = whose.iter().map(|whose| self.project.script_places(*whose)).collect();
        ScriptCapabilities::new(
            self.project.scripts().clone(),
            places,
            self.target_env.http.clone(),
            Arc::new(caller),
        )
    }
}

impl ProcessRunner for ProcessCaller {
    fn call(&self, name: String, arguments: Vec<Value>) -> ProcessFuture {
        let caller = ProcessCaller {
            outside: self.outside.clone(),
            hook_variables: self.hook_variables.clone(),
            identity: self.identity.clone(),
            turn_log: self.turn_log.clone(),
        };
        Box::pin(async move {
            let answer = match name.split_once('.') {
                Some(("agents" | "agent", rest)) => caller.call_agent(rest, arguments).await,
                _ => caller.call_process(&name, arguments).await,
            };
            answer.map_err(|error| HostCallError::new(format_args!("Process({name})"), error))
        })
    }
}

impl ProcessCaller {
    /// Calls a command or a request of the project file.
    async fn call_process(&self, name: &str, arguments: Vec<Value>) -> HostResult {
        let project = &self.outside.project;
        let process = project.resolve_process(name).map_err(|wrong| wrong.one_line())?;
        let input = json!({"name": name, "args": arguments, "ctx": *self.identity.ctx});
        match process {
            ProcessTarget::Command(mut command) => {
                set_identity_env(&self.identity, &mut command);
                let (environment, servers) = (project.environment(), self.outside.target_env.servers);
                let (root, declared) = (&project.root, &project.secrets);
                let ran =
                    run_command("command", &command, root, environment, servers, Some(&input), declared)
                        .await;
                let (printed, _) = ran.map_err(HostCallError::from_error)?;
                Ok(printed.unwrap_or_default())
            }
            ProcessTarget::Request { url, method, headers, timeout } => {
                let mut headers = headers;
                let json = http::HeaderValue::from_static("application/json");
                headers.entry(http::header::CONTENT_TYPE).or_insert(json);
                let has_body = !matches!(method, http::Method::GET | http::Method::HEAD);
                let body = has_body.then(|| input.to_string().into_bytes());
                let limits = TurnLimits::new(Instant::now() + timeout, timeout + timeout);
                let outgoing = HttpRequest { method, url: &url, headers, body, peer: HttpPeer::Process };
                let late = || {
                    format!("no answer of {} within {} ms", without_credentials(&url), timeout.as_millis())
                };
                let sent = self.outside.target_env.http.send(outgoing, limits).await;
                let mut response = sent.map_err(|error| match error {
                    TurnError::Deadline => late().into(),
                    TurnError::Run(error) => error.message.into(),
                    TurnError::Failed(failure) => HostCallError::from_error(failure),
                })?;
                let body = rest_of_body(&mut response, MAX_RESPONSE_BYTES, limits).await.map_err(
                    |error| match error {
                        ReadError::Broken(error) => HostCallError::from_error(error),
                        ReadError::Deadline | ReadError::Idle => late().into(),
                        ReadError::Limit(failure) => failure.message.into(),
                    },
                )?;
                if body.len() > MAX_RESPONSE_BYTES {
                    return Err(format!(
                        "{} returned more than {MAX_RESPONSE_BYTES} bytes",
                        without_credentials(&url)
                    )
                    .into());
                }
                if body.trim_ascii().is_empty() {
                    return Ok(Value::Null);
                }
                read_bytes(&body).map_err(|error| {
                    let url = without_credentials(&url);
                    format!("{url} returned a response that {error}: {}", display_body(&body)).into()
                })
            }
        }
    }

    /// Calls an agent: `agents.ID`, `agents.ID.Stream`, `agents.ID.Call`, or `agent.Call` with an object that
    /// names it.
    async fn call_agent(&self, rest: &str, arguments: Vec<Value>) -> HostResult {
        let (id, input) = match (rest, arguments.as_slice()) {
            ("Call" | "Stream", [Value::Object(members), ..]) if members.contains_key("assistant_id") => {
                let id = members["assistant_id"].as_str().ok_or("`assistant_id` must be a string")?;
                (id.to_string(), AgentCallInput::from_object(members)?)
            }
            _ => (rest.to_string(), AgentCallInput::from_arguments(arguments)?),
        };
        let outside = &self.outside;
        let agent = outside.project.find_agent_by_name(&id).or_else(|wrong| {
            let bare = id.rsplit_once('.').filter(|(_, last)| matches!(*last, "Stream" | "Call"));
            bare.and_then(|(id, _)| outside.project.find_agent_by_name(id).ok())
                .ok_or_else(|| Diagnostics::from(wrong).one_line())
        })?;
        let bound = outside.bound_target(&agent);
        if agent.start.is_some() && bound.is_none() && agent.is_same_for_all() {
            return Err("this agent is started only in runs that test it or use it as a role".into());
        }
        let target = match bound {
            Some((target, _)) => target.clone(),
            None => {
                outside
                    .bind_agent(&agent, &self.hook_variables, McpAddresses::Example)
                    .map_err(|wrong| wrong.one_line())?
                    .0
            }
        };
        let connector = input.options["connector"].as_str().map(|name| (name, None));
        let target =
            outside.project.with_connectors(&agent, target, connector).map_err(|wrong| wrong.one_line())?;
        let (carried, of_whom) = (input.options.is_object(), &self.identity);
        let target = target.for_case(&CaseTarget { identity: of_whom.clone(), ..CaseTarget::default() });
        let script = ScriptedAnswers::new(target.tools.clone());
        let mut session = target.open(&outside.target_env);
        let mut messages = parse_messages(&input.messages).map_err(|error| error.to_string())?;
        let Some(last) = messages.pop().filter(|last| last.role == MessageRole::User) else {
            return Err("the last message must have the role `user`".into());
        };
        if messages.iter().chain([&last]).any(|message| media_parts(&message.content).next().is_some()) {
            return Err("messages from scripts are text only: attachments are not supported".into());
        }
        if !messages.is_empty() && !session.capabilities().history {
            return Err("this agent does not accept a message history; pass only the last message".into());
        }
        session.seed_history(&messages).map_err(|failure| failure.message)?;
        let text = joined_text(&last.content);
        let noted = self.turn_log.as_ref();
        let turn_id = noted.map_or_else(|| "turn-1".into(), |noted| noted.turns.begin());
        let spoken = SingleTurnInput {
            turn_id: turn_id.clone(),
            text: &text,
            content: &last.content,
            options: carried.then_some(&input.options),
        };
        let limits = TurnLimits::new(Instant::now() + agent.timeouts.turn, agent.timeouts.idle);
        let mut recorder = TraceRecorder::new(SecretRedactor::default(), noted.is_some());
        recorder.set_call_visibility(session.capabilities().calls);
        let outcome = run_single_turn(session, script, spoken, limits, &mut recorder).await;
        let outcome = outcome.map_err(|unanswered| match unanswered {
            RoleError::Deadline => format!("no answer after {} ms", agent.timeouts.turn.as_millis()).into(),
            other => HostCallError::from_error(other),
        });
        let answer = response_json(recorder.conversation().scope());
        if let Some(OverheardTurnLog { turns, tested }) = noted {
            let message = outcome.as_ref().err().map(HostCallError::to_string);
            let is_tested = tested.as_ref().is_none_or(|tested| Arc::ptr_eq(tested, &agent));
            turns.push(DirectTurn {
                turn_id,
                recorder,
                history: messages.iter().map(format_message).collect(),
                error: message.map(|message| ErrorInfo { code: None, message, retriable: None }),
                other_agent: (!is_tested).then(|| agent.name.as_deref().unwrap_or(&id).to_string()),
            });
        }
        outcome.map(|()| answer)
    }
}

/// Formats a message of the history as one line.
fn format_message(message: &ConversationMessage) -> String {
    format!("{}: {}", message.role.name(), joined_text(&message.content))
}

/// Input of a call to an agent by a script.
struct AgentCallInput {
    messages: Value,
    options: Value,
}

impl AgentCallInput {
    /// Parses `{assistant_id, messages, options}`.
    fn from_object(members: &serde_json::Map<String, Value>) -> Result<AgentCallInput, HostCallError> {
        let messages = members.get("messages").or_else(|| members.get("input"));
        let messages = messages.cloned().ok_or("there are no `messages`")?;
        let options = members.get("options").cloned().unwrap_or_else(|| json!({}));
        Ok(AgentCallInput { messages: to_message_list(messages), options })
    }

    /// Parses `(messages, options)`. Leading context arguments of a hook or a test are skipped.
    fn from_arguments(arguments: Vec<Value>) -> Result<AgentCallInput, HostCallError> {
        let is_said = |value: &Value| {
            value.is_string()
                || value.is_array()
                || value.get("role").or_else(|| value.get("content")).is_some()
        };
        let mut rest = arguments.into_iter().skip_while(|value| !is_said(value));
        let messages = rest.next().ok_or("no messages: pass a string or a list of messages")?;
        let options = rest.next().filter(Value::is_object).unwrap_or_else(|| json!({}));
        Ok(AgentCallInput { messages: to_message_list(messages), options })
    }
}

/// Normalises messages to a list.
fn to_message_list(value: Value) -> Value {
    match value {
        Value::String(text) => json!([{"role": "user", "content": text}]),
        Value::Array(messages) => Value::Array(messages),
        one => json!([one]),
    }
}
