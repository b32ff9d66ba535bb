//! Definitions of mocks in JSON files, with their answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_document::json::{JsonReadError, read_bytes};
use hotseat_document::nearest;
use serde_json::{Map, Value, json};

use crate::answer::{AnswerFuture, McpAnswer, McpCall, McpToolResult, ToolAnswerer};
use crate::definition::{
    DefinitionProblem, McpPrompt, McpResource, McpTool, MockContent, ServerDefinition, ServerKind,
};
use crate::fixed::{FixedAnswer, FixedAnswerError};

/// Members of a definition.
const MEMBERS: [&str; 7] =
    ["name", "instructions", "pageSize", "tools", "resources", "resourceTemplates", "prompts"];
/// Members of a tool: those of the protocol, and those of mocks.
const TOOL_MEMBERS: [&str; 11] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "icons",
    "execution",
    "_meta",
    "answer",
    "offeredAfter",
];

/// Answers calls with fixed answers, by the name of the tool.
#[derive(Debug, Default)]
pub struct FixedAnswerer {
    answers: BTreeMap<String, FixedAnswer>,
}

impl FixedAnswerer {
    /// Creates an answerer from answers by the names of their tools.
    pub fn new(answers: BTreeMap<String, FixedAnswer>) -> FixedAnswerer {
        FixedAnswerer { answers }
    }
}

impl ToolAnswerer for FixedAnswerer {
    fn answer<'a>(&'a self, call: &'a McpCall) -> AnswerFuture<'a> {
        Box::pin(async move {
            let Some(answer) = self.answers.get(&call.tool) else {
                return McpAnswer::Unmatched { nearest: None };
            };
            for percent in &answer.progress {
                call.notifier.progress(*percent, Some(100.0), None).await;
            }
            for (level, data) in &answer.logs {
                call.notifier.log(level, data.clone()).await;
            }
            for list in &answer.changes {
                call.notifier.report_change(list);
            }
            let none = Map::new();
            let arguments = call.arguments.as_object().unwrap_or(&none);
            let values = BTreeMap::from([("arguments", arguments)]);
            let (state, responses) = (call.input_state.as_ref(), &call.input_responses);
            match answer.complete(&values, state, responses, &call.capabilities) {
                Ok(result) => match McpToolResult::from_json(&result) {
                    Ok(result) => McpAnswer::Result(result),
                    Err(problem) => McpAnswer::Failed {
                        message: format!("the answer of the tool `{}` is invalid: {problem}", call.tool),
                        detail: None,
                    },
                },
                Err(input) => (*input).into(),
            }
        })
    }
}

/// An invalid definition of a mock.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum MockFileError {
    #[error("the definition {0}")]
    NoJson(#[from] JsonReadError),
    #[error("the definition must be an object with the `tools` of the mock")]
    NoObject,
    #[error("`{member}` is unknown: a definition has {}", MEMBERS.map(|member| format!("`{member}`")).join(", "))]
    UnknownMember { member: String },
    #[error("`{0}` must be {1}")]
    WrongType(&'static str, &'static str),
    #[error("tool `{tool}`: `{member}` is unknown; did you mean `{nearest}`?")]
    MisspeltMember { tool: String, member: String, nearest: &'static str },
    #[error("an entry must be an object")]
    NoEntry,
    #[error("an entry needs `{0}`")]
    NoId(&'static str),
    #[error(transparent)]
    Tool(#[from] DefinitionProblem),
    #[error("tool `{tool}`: {source}")]
    ToolAnswer { tool: String, source: FixedAnswerError },
    #[error("tool `{tool}`: `offeredAfter` must be the name of a tool")]
    OfferedAfter { tool: String },
    #[error(transparent)]
    Answer(#[from] FixedAnswerError),
}

/// Reads the definition of a mock with its answers: the members `name`, `instructions`, `pageSize`, `tools`
/// (entries of `tools/list`, each with `answer` and `offeredAfter`), `resources`, `resourceTemplates` and
/// `prompts` (entries of their lists, each with `contents`, or `messages` and `ask`). Fails if the definition
/// is no JSON, or a member has the wrong type.
pub fn read_mock(text: &str) -> Result<(ServerDefinition, Arc<FixedAnswerer>), MockFileError> {
    let Value::Object(file) = read_bytes(text.as_bytes())? else { return Err(MockFileError::NoObject) };
    if let Some(member) = file.keys().find(|member| !MEMBERS.contains(&member.as_str())) {
        return Err(MockFileError::UnknownMember { member: member.clone() });
    }
    let text = |key: &'static str| match file.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(MockFileError::WrongType(key, "a text")),
    };
    let list = |key: &'static str| match file.get(key) {
        None => Ok(&[][..]),
        Some(Value::Array(items)) => Ok(items.as_slice()),
        Some(_) => Err(MockFileError::WrongType(key, "a list")),
    };
    let page_size = match file.get("pageSize") {
        None => None,
        Some(size) => {
            match size.as_u64().and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0) {
                Some(size) => Some(size),
                None => return Err(MockFileError::WrongType("pageSize", "a number of entries")),
            }
        }
    };
    let mut answers = BTreeMap::new();
    let mut content = MockContent {
        instructions: text("instructions")?.map(str::to_string),
        page_size,
        ..MockContent::default()
    };
    for entry in list("tools")? {
        let mut tool = McpTool::from_json(entry)?;
        check_members(&tool)?;
        if let Some(answer) = tool.extra.shift_remove("answer") {
            let answer = FixedAnswer::from_json(&answer)
                .map_err(|source| MockFileError::ToolAnswer { tool: tool.name.clone(), source })?;
            answers.insert(tool.name.clone(), answer);
        }
        match tool.extra.shift_remove("offeredAfter") {
            None => {}
            Some(Value::String(after)) => tool.offered_after = Some(after),
            Some(_) => return Err(MockFileError::OfferedAfter { tool: tool.name }),
        }
        content.tools.push(tool);
    }
    content.check_offers()?;
    for (key, name, answer) in
        [("resources", "uri", "contents"), ("resourceTemplates", "uriTemplate", "contents")]
    {
        for entry in list(key)? {
            let (entry, id, answer) = split_entry(entry, name, answer)?;
            content.resources.push(McpResource { id, is_template: key != "resources", entry, answer });
        }
    }
    for entry in list("prompts")? {
        let (entry, name, answer) = split_entry(entry, "name", "messages")?;
        content.prompts.push(McpPrompt { name, entry, answer });
    }
    let name = text("name")?.unwrap_or("mock");
    let definition = ServerDefinition::new(name, ServerKind::Mock(Box::new(content)));
    Ok((definition, Arc::new(FixedAnswerer::new(answers))))
}

/// Fails if a member that is no part of the protocol looks like one that is. Other members are entries of `tools/list`.
fn check_members(tool: &McpTool) -> Result<(), MockFileError> {
    let misspelt = tool.extra.keys().filter(|member| !TOOL_MEMBERS.contains(&member.as_str()));
    for member in misspelt {
        if let Some(nearest) = nearest(member, TOOL_MEMBERS) {
            return Err(MockFileError::MisspeltMember {
                tool: tool.name.clone(),
                member: member.clone(),
                nearest,
            });
        }
    }
    Ok(())
}

/// Splits an entry of a definition into the entry of the list, its identifier and its answer.
fn split_entry(
    entry: &Value,
    id: &'static str,
    result: &str,
) -> Result<(Value, String, FixedAnswer), MockFileError> {
    let mut entry = entry.as_object().cloned().ok_or(MockFileError::NoEntry)?;
    let Some(Value::String(name)) = entry.get(id).cloned() else {
        return Err(MockFileError::NoId(id));
    };
    let value = entry.shift_remove(result).unwrap_or_else(|| json!([]));
    let ask = entry.shift_remove("ask").unwrap_or_else(|| json!([]));
    let answer = FixedAnswer::from_json(&json!({"result": {result: value}, "ask": ask}))?;
    Ok((Value::Object(entry), name, answer))
}
