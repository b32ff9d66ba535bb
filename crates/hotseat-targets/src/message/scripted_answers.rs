//! Scripted answers of the client: results of client-side tools, and answers to interrupts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::tool_reply::{PendingReply, ToolFunction, ToolFunctionCall, ToolFunctionCaller, ToolReplySource};
use hotseat_checks::{ArgumentPattern, ArgumentPatterns, Pattern};
use hotseat_document::SourceSpan;
use hotseat_schema::{JsonSchema, JsonSchemaError};
use hotseat_trace::{AttemptFailure, FailureKind};

/// Maximum number of reported schema errors of an answer.
const MAX_REPORTED_ERRORS: usize = 10;

/// A tool that the test offers to the agent and answers itself.
#[derive(Debug, Clone)]
pub struct ClientTool {
    /// Its name.
    pub name: String,
    /// Description sent to the agent.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
    /// Scripted answers; the first that matches is used.
    pub answers: Vec<ToolAnswer>,
    /// Server that is asked if no answer matches.
    pub url: Option<url::Url>,
    /// Position of its name, if a file of the test defines it.
    pub place: Option<SourceSpan>,
}

/// A scripted answer of a client-side tool.
#[derive(Debug, Clone)]
pub struct ToolAnswer {
    /// Arguments that a call must match.
    pub arguments: ArgumentPatterns,
    /// The answer.
    pub reply: ToolReplySource,
    /// True if the answer is used for one call only.
    pub once: bool,
}

impl ToolAnswer {
    /// The function that computes the answer, if there is one.
    pub fn function(&self) -> Option<&ToolFunction> {
        match &self.reply {
            ToolReplySource::Written(_) => None,
            ToolReplySource::Function(function) => Some(function),
        }
    }
}

/// The answer of a tool that matches a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectedAnswer {
    /// Index of the answer.
    pub index: usize,
    /// Number of the call among those of the tool that an answer matched, from 1.
    pub number: usize,
}

/// A scripted answer to an interrupt.
#[derive(Debug, Clone)]
pub struct InterruptAnswer {
    /// Pattern for the reason of the interrupt.
    pub reason: Option<Pattern>,
    /// Pattern for the message of the interrupt.
    pub message: Option<Pattern>,
    /// Tool whose call the interrupt must pause.
    pub tool: Option<String>,
    /// The answer.
    pub reply: InterruptReply,
    /// True if the answer is used for one interrupt only.
    pub once: bool,
    /// Position in the source file.
    pub place: SourceSpan,
}

impl InterruptAnswer {
    /// Describes the interrupt that it answers, after a blank; nothing if it answers any.
    pub fn describe(&self) -> String {
        let tool = self.tool.as_ref().map(|tool| format!(" for {tool}"));
        let reason = self.reason.as_ref().map(|reason| format!(" with a reason that matches {reason}"));
        let message = self.message.as_ref().map(|message| format!(" with a message that matches {message}"));
        let parts: Vec<String> = [tool, reason, message].into_iter().flatten().collect();
        parts.join(" and")
    }
}

/// Answer to an interrupt.
#[derive(Debug, Clone, PartialEq)]
pub enum InterruptReply {
    /// Resolve it with this payload.
    Resolved(Value),
    /// Cancel it.
    Cancelled,
}

/// The reasons of an interrupt before a tool call, in a trace and over AG-UI. An answer to either of them fits both, so that
/// the same suite tests an agent over any protocol.
const APPROVAL_REASONS: [&str; 2] = ["tool_approval", "tool_call"];

/// The parts of an interrupt that scripted answers can match.
#[derive(Debug, Clone, Copy)]
pub struct InterruptRequest<'a> {
    /// Short name of the reason.
    pub reason: Option<&'a str>,
    /// Question to the human.
    pub message: Option<&'a str>,
    /// The tool whose call it pauses.
    pub tool: Option<&'a str>,
}

/// Returns the errors of an interrupt answer against the JSON Schema of the interrupt; empty if it is valid.
/// Fails if the schema is invalid or takes too long, or this build has no validator.
pub fn response_schema_errors(schema: &Value, payload: &Value) -> Result<Vec<String>, JsonSchemaError> {
    JsonSchema::compile_foreign(schema)?.violations(payload, MAX_REPORTED_ERRORS)
}

/// Scripted answers of a conversation, with counts of their use.
#[derive(Debug, Default)]
#[must_use]
pub struct ScriptedAnswers {
    tools: Vec<ClientTool>,
    /// Uses in this conversation of each answer of each tool.
    used_tools: Vec<Vec<usize>>,
    /// Calls the functions that answer tools.
    functions: Option<Arc<dyn ToolFunctionCaller>>,
    /// Tools that ask the user: their calls are answered by the next turn.
    asking_tools: Vec<String>,
    interrupts: Vec<InterruptAnswer>,
    /// Uses in this turn of each answer.
    used_interrupts: Vec<usize>,
    /// A call in this turn whose answer did not arrive in time.
    late_answer: Option<LateAnswer>,
}

/// A call that a function or a server of the test did not answer in time.
#[derive(Debug, Clone)]
pub struct LateAnswer {
    /// Name of the tool.
    pub tool: String,
    /// Time from the call to the end of the turn.
    pub waited: Duration,
}

impl ScriptedAnswers {
    /// Creates scripted answers for these tools.
    pub fn new(tools: Vec<ClientTool>) -> Self {
        let used_tools = tools.iter().map(|tool| vec![0; tool.answers.len()]).collect();
        ScriptedAnswers { tools, used_tools, ..ScriptedAnswers::default() }
    }

    /// Lets functions answer tools.
    pub fn with_functions(self, functions: Option<Arc<dyn ToolFunctionCaller>>) -> Self {
        ScriptedAnswers { functions, ..self }
    }

    /// Sets the tools that ask the user for input.
    pub fn with_asking_tools(self, asking: Vec<String>) -> Self {
        ScriptedAnswers { asking_tools: asking, ..self }
    }

    /// Returns true if a tool asks the user; its call is answered by the next turn.
    pub fn asks_user(&self, tool: &str) -> bool {
        self.asking_tools.iter().any(|asking| asking == tool)
    }

    /// Starts a turn with these answers to interrupts.
    pub fn begin_turn(&mut self, interrupts: &[InterruptAnswer]) {
        self.interrupts = interrupts.to_vec();
        self.used_interrupts = vec![0; interrupts.len()];
        self.late_answer = None;
    }

    /// Remembers a call whose answer did not arrive before the end of the turn.
    pub(crate) fn set_late_answer(&mut self, tool: &str, waited: Duration) {
        self.late_answer = Some(LateAnswer { tool: tool.to_string(), waited });
    }

    /// Returns the call in this turn whose answer did not arrive in time.
    pub fn late_answer(&self) -> Option<&LateAnswer> {
        self.late_answer.as_ref()
    }

    /// Returns the tools that the client offers.
    pub fn tools(&self) -> &[ClientTool] {
        &self.tools
    }

    /// Returns the tool definitions as sent to agents.
    pub fn tools_as_json(&self) -> Value {
        let tools = self.tools.iter().map(
            |tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters}),
        );
        Value::Array(tools.collect())
    }

    /// Returns true if the client offers a tool.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// Returns the answer to a call; `None` if no scripted answer matches.
    pub fn tool_reply(&mut self, name: &str, arguments: &Value) -> Option<PendingReply> {
        let selected = self.select_answer(name, arguments)?;
        self.selected_reply(name, arguments, selected, Map::new())
    }

    /// Selects the first answer that matches a call, and counts its use.
    pub fn select_answer(&mut self, name: &str, arguments: &Value) -> Option<SelectedAnswer> {
        let (tool, used) = self.tools.iter().zip(&mut self.used_tools).find(|(tool, _)| tool.name == name)?;
        let fits = |answer: &ToolAnswer, used: usize| {
            !(answer.once && used > 0) && answer.arguments.all_match(arguments)
        };
        let index = tool.answers.iter().zip(used.iter()).position(|(answer, used)| fits(answer, *used))?;
        used[index] += 1;
        Some(SelectedAnswer { index, number: used.iter().sum() })
    }

    /// Returns a selected answer. Functions get the responses of the user to questions, by the names of these.
    pub fn selected_reply(
        &self,
        name: &str,
        arguments: &Value,
        selected: SelectedAnswer,
        inputs: Map<String, Value>,
    ) -> Option<PendingReply> {
        let tool = self.tools.iter().find(|tool| tool.name == name)?;
        let function = match &tool.answers.get(selected.index)?.reply {
            ToolReplySource::Written(reply) => return Some(PendingReply::Ready(reply.clone())),
            ToolReplySource::Function(function) => function.clone(),
        };
        let call = ToolFunctionCall {
            tool: name.to_string(),
            arguments: arguments.clone(),
            number: selected.number,
            inputs,
        };
        Some(PendingReply::Computed(match &self.functions {
            Some(functions) => functions.call(function, call),
            None => Box::pin(std::future::ready(Err(AttemptFailure::new(
                FailureKind::TestError,
                format!("{} ({}) cannot answer tools of this agent", function.reference, function.place),
            )))),
        }))
    }

    /// Describes the scripted answer that comes nearest to a call, and why it does not match.
    pub fn nearest_answer(&self, name: &str, arguments: &Value) -> Option<String> {
        let (tool, used) = self.tools.iter().zip(&self.used_tools).find(|(tool, _)| tool.name == name)?;
        let all = tool.answers.len();
        let missed = tool.answers.iter().zip(used).enumerate().map(|(index, (answer, used))| {
            let is_missed = |pattern: &&(String, ArgumentPattern)| {
                !ArgumentPatterns(vec![(*pattern).clone()]).all_match(arguments)
            };
            let missing: Vec<_> = answer.arguments.0.iter().filter(is_missed).collect();
            let why = match missing.as_slice() {
                [] if *used > 0 => "it is used for one call only".to_string(),
                missing => {
                    let missing = missing.iter().map(|(path, pattern)| format!("{path} {pattern}"));
                    format!("it needs {}", missing.collect::<Vec<_>>().join(", "))
                }
            };
            (missing.len(), format!("answer {} of {all} for {name}: {why}", index + 1))
        });
        missed.min_by_key(|(missing, _)| *missing).map(|(_, words)| words)
    }

    /// Returns the server that answers calls of a tool without a matching scripted answer.
    pub fn tool_url(&self, name: &str) -> Option<&url::Url> {
        self.tools.iter().find(|tool| tool.name == name)?.url.as_ref()
    }

    /// Returns the answer to an interrupt; `None` if no scripted answer matches.
    pub fn interrupt_reply(&mut self, request: &InterruptRequest<'_>) -> Option<InterruptReply> {
        let fits = |pattern: &Option<Pattern>, text: Option<&str>| {
            pattern.as_ref().is_none_or(|pattern| text.is_some_and(|text| pattern.is_match(text)))
        };
        let is_approval = request.reason.is_some_and(|reason| APPROVAL_REASONS.contains(&reason));
        let other_names = APPROVAL_REASONS.iter().filter(|_| is_approval);
        let fits_reason = |pattern: &Option<Pattern>| {
            fits(pattern, request.reason) || other_names.clone().any(|reason| fits(pattern, Some(reason)))
        };
        let place = self.interrupts.iter().zip(&self.used_interrupts).position(|(answer, used)| {
            !(answer.once && *used > 0)
                && fits_reason(&answer.reason)
                && fits(&answer.message, request.message)
                && answer.tool.as_deref().is_none_or(|tool| request.tool == Some(tool))
        })?;
        self.used_interrupts[place] += 1;
        Some(self.interrupts[place].reply.clone())
    }

    /// Returns the interrupt answers of this turn that were not used.
    pub fn unused_answers(&self) -> impl Iterator<Item = &InterruptAnswer> {
        self.interrupts
            .iter()
            .zip(&self.used_interrupts)
            .filter(|(_, used)| **used == 0)
            .map(|(answer, _)| answer)
    }
}
