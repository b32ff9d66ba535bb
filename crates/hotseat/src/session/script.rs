//! What the client answers when an agent asks it for something: calls of client-side tools, and interrupts.

use serde_json::{Value, json};

use crate::checks::{ArgumentPatterns, Pattern};
use hotseat_document::Place;

/// How many mistakes of an answer are told.
const MOST_MISTAKES: usize = 10;

/// A tool that is offered to the agent and answered by the test.
#[derive(Debug, Clone)]
pub struct ClientTool {
    /// Its name.
    pub name: String,
    /// What the agent is told it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
    /// What it returns: the first answer that fits.
    pub answers: Vec<ToolAnswer>,
    /// Who is asked when none fits.
    pub url: Option<reqwest::Url>,
}

/// One answer of a client-side tool.
#[derive(Debug, Clone)]
pub struct ToolAnswer {
    /// Only for calls whose arguments fit.
    pub arguments: ArgumentPatterns,
    /// What it returns.
    pub reply: ToolReply,
    /// Used for one call only.
    pub once: bool,
}

/// What a client-side tool returns.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolReply {
    /// A result.
    Content(Value),
    /// It fails with this message.
    Error(String),
}

/// One answer to an interrupt.
#[derive(Debug, Clone)]
pub struct InterruptAnswer {
    /// Only for interrupts whose reason fits.
    pub reason: Option<Pattern>,
    /// Only for interrupts whose message fits.
    pub message: Option<Pattern>,
    /// Only for interrupts that hold up a call of this tool.
    pub tool: Option<String>,
    /// What is answered.
    pub reply: InterruptReply,
    /// Used for one interrupt only.
    pub once: bool,
    /// Where it was written.
    pub place: Place,
}

/// What is answered to an interrupt.
#[derive(Debug, Clone, PartialEq)]
pub enum InterruptReply {
    /// It is resolved with this payload.
    Resolved(Value),
    /// It is refused.
    Cancelled,
}

/// What an interrupt says of itself, as far as answers can ask for it.
#[derive(Debug, Clone, Copy)]
pub struct AskedInterrupt<'a> {
    /// Why, as a short name.
    pub reason: Option<&'a str>,
    /// What a person is asked.
    pub message: Option<&'a str>,
    /// The tool whose call it holds up.
    pub tool: Option<&'a str>,
}

/// What is wrong with an answer to an interrupt that says which JSON Schema its answers have; empty where nothing is.
///
/// # Errors
/// When that is no JSON Schema, in words.
pub(crate) fn response_mistakes(schema: &Value, payload: &Value) -> Result<Vec<String>, String> {
    // Patterns are matched in linear time, for the agent writes them.
    let options = jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
    let validator = options.build(schema).map_err(|error| error.to_string())?;
    let mistakes = validator.iter_errors(payload).map(|error| {
        let at = error.instance_path().to_string();
        if at.is_empty() { error.to_string() } else { format!("{at}: {error}") }
    });
    Ok(mistakes.take(MOST_MISTAKES).collect())
}

/// The answers for a conversation, and which of them are used up.
#[derive(Debug, Default)]
pub struct TurnScript {
    tools: Vec<ClientTool>,
    /// For each tool and answer, how often it was used in this conversation.
    used_tools: Vec<Vec<usize>>,
    /// Tools by which the agent asks the user for something: the next turn answers their calls.
    asking: Vec<String>,
    interrupts: Vec<InterruptAnswer>,
    /// For each answer, how often it was used in this turn.
    used_interrupts: Vec<usize>,
}

impl TurnScript {
    /// A script with these tools.
    pub fn new(tools: Vec<ClientTool>) -> Self {
        let used_tools = tools.iter().map(|tool| vec![0; tool.answers.len()]).collect();
        TurnScript { tools, used_tools, ..TurnScript::default() }
    }

    /// The same where an agent asks the user for something by these tools.
    #[must_use]
    pub fn with_asking(self, asking: Vec<String>) -> Self {
        TurnScript { asking, ..self }
    }

    /// Whether a tool asks the user for something: who calls it waits for what the user says next.
    pub fn asks_user(&self, tool: &str) -> bool {
        self.asking.iter().any(|asking| asking == tool)
    }

    /// Begins a turn with these answers to interrupts.
    pub fn begin_turn(&mut self, interrupts: &[InterruptAnswer]) {
        self.interrupts = interrupts.to_vec();
        self.used_interrupts = vec![0; interrupts.len()];
    }

    /// The tools that the client offers.
    pub fn tools(&self) -> &[ClientTool] {
        &self.tools
    }

    /// The tools as agents are told of them.
    pub fn tools_as_json(&self) -> Value {
        let tools = self.tools.iter().map(
            |tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters}),
        );
        Value::Array(tools.collect())
    }

    /// Whether the client offers a tool.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// What the client answers a call; none when nothing fits.
    pub fn tool_reply(&mut self, name: &str, arguments: &Value) -> Option<ToolReply> {
        let (tool, used) = self.tools.iter().zip(&mut self.used_tools).find(|(tool, _)| tool.name == name)?;
        let fits = |answer: &ToolAnswer, used: usize| {
            !(answer.once && used > 0) && answer.arguments.all_fit(arguments)
        };
        let place = tool.answers.iter().zip(used.iter()).position(|(answer, used)| fits(answer, *used))?;
        used[place] += 1;
        Some(tool.answers[place].reply.clone())
    }

    /// Who is asked what a tool returns, where no scripted answer fits.
    pub fn tool_url(&self, name: &str) -> Option<&reqwest::Url> {
        self.tools.iter().find(|tool| tool.name == name)?.url.as_ref()
    }

    /// What the client answers an interrupt; none when nothing fits.
    pub fn interrupt_reply(&mut self, asked: &AskedInterrupt<'_>) -> Option<InterruptReply> {
        let fits = |pattern: &Option<Pattern>, said: Option<&str>| {
            pattern.as_ref().is_none_or(|pattern| said.is_some_and(|said| pattern.fits(said)))
        };
        let place = self.interrupts.iter().zip(&self.used_interrupts).position(|(answer, used)| {
            !(answer.once && *used > 0)
                && fits(&answer.reason, asked.reason)
                && fits(&answer.message, asked.message)
                && answer.tool.as_deref().is_none_or(|tool| asked.tool == Some(tool))
        })?;
        self.used_interrupts[place] += 1;
        Some(self.interrupts[place].reply.clone())
    }

    /// The answers to interrupts of this turn that were never asked for.
    pub fn unused(&self) -> impl Iterator<Item = &InterruptAnswer> {
        self.interrupts
            .iter()
            .zip(&self.used_interrupts)
            .filter(|(_, used)| **used == 0)
            .map(|(answer, _)| answer)
    }
}
