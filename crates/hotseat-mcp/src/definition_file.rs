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

/// Mistakes in the definition of a mock.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(|mistake| mistake.problem.to_string()).collect::<Vec<_>>().join("; "))]
pub struct MockFileErrors(pub Vec<MockFileMistake>);

/// A mistake in the definition of a mock, with its place.
#[derive(Debug)]
pub struct MockFileMistake {
    /// JSON Pointer to the member or entry; empty for the whole definition.
    pub pointer: String,
    /// What is wrong.
    pub problem: MockFileError,
}

/// Problem of the definition of a mock.
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
/// `prompts` (entries of their lists, each with `contents`, or `messages` and `ask`). Fails with all mistakes if the
/// definition is no JSON, or a member has the wrong type.
pub fn read_mock(text: &str) -> Result<(ServerDefinition, Arc<FixedAnswerer>), MockFileErrors> {
    let mut reader = MockReader::default();
    let Some(file) = reader.check("", read_file(text)) else { return Err(MockFileErrors(reader.mistakes)) };
    for member in file.keys().filter(|member| !MEMBERS.contains(&member.as_str())) {
        reader.report(pointer_to(member), MockFileError::UnknownMember { member: member.clone() });
    }
    let mut content = MockContent {
        instructions: reader.text(&file, "instructions"),
        page_size: reader.page_size(&file),
        ..MockContent::default()
    };
    let answers = reader.tools(&file, &mut content);
    for (key, name, answer) in
        [("resources", "uri", "contents"), ("resourceTemplates", "uriTemplate", "contents")]
    {
        for (entry, id, answer) in reader.entries(&file, key, name, answer) {
            content.resources.push(McpResource { id, is_template: key != "resources", entry, answer });
        }
    }
    for (entry, name, answer) in reader.entries(&file, "prompts", "name", "messages") {
        content.prompts.push(McpPrompt { name, entry, answer });
    }
    let name = reader.text(&file, "name");
    if !reader.mistakes.is_empty() {
        return Err(MockFileErrors(reader.mistakes));
    }
    let definition =
        ServerDefinition::new(name.as_deref().unwrap_or("mock"), ServerKind::Mock(Box::new(content)));
    Ok((definition, Arc::new(FixedAnswerer::new(answers))))
}

fn read_file(text: &str) -> Result<Map<String, Value>, MockFileError> {
    match read_bytes(text.as_bytes())? {
        Value::Object(file) => Ok(file),
        _ => Err(MockFileError::NoObject),
    }
}

/// Reads the members of a definition, and collects its mistakes.
#[derive(Default)]
struct MockReader {
    mistakes: Vec<MockFileMistake>,
}

impl MockReader {
    fn report(&mut self, pointer: impl Into<String>, problem: MockFileError) {
        self.mistakes.push(MockFileMistake { pointer: pointer.into(), problem });
    }

    /// Returns what was read, or reports why it was not.
    fn check<T>(&mut self, pointer: &str, read: Result<T, MockFileError>) -> Option<T> {
        read.map_err(|problem| self.report(pointer, problem)).ok()
    }

    fn text(&mut self, file: &Map<String, Value>, key: &'static str) -> Option<String> {
        let text = file.get(key)?;
        let read = text.as_str().map(str::to_string).ok_or(MockFileError::WrongType(key, "a text"));
        self.check(&pointer_to(key), read)
    }

    fn page_size(&mut self, file: &Map<String, Value>) -> Option<usize> {
        let size = file.get("pageSize")?.as_u64().and_then(|size| usize::try_from(size).ok());
        let size = size.filter(|size| *size > 0);
        self.check("/pageSize", size.ok_or(MockFileError::WrongType("pageSize", "a number of entries")))
    }

    fn list<'f>(&mut self, file: &'f Map<String, Value>, key: &'static str) -> &'f [Value] {
        match file.get(key) {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.report(pointer_to(key), MockFileError::WrongType(key, "a list"));
                &[]
            }
        }
    }

    /// Adds the tools of a definition to its content, and returns their answers.
    fn tools(
        &mut self,
        file: &Map<String, Value>,
        content: &mut MockContent,
    ) -> BTreeMap<String, FixedAnswer> {
        let mut answers = BTreeMap::new();
        let before = self.mistakes.len();
        for (index, entry) in self.list(file, "tools").iter().enumerate() {
            let place = format!("/tools/{index}");
            let Some(mut tool) = self.check(&place, McpTool::from_json(entry).map_err(Into::into)) else {
                continue;
            };
            if content.tools.iter().any(|other| other.name == tool.name) {
                let problem = DefinitionProblem::DuplicateTool(tool.name.clone());
                self.report(place.clone() + "/name", problem.into());
            }
            self.check_members(&place, &tool);
            if let Some(answer) = tool.extra.shift_remove("answer") {
                let wrong = |source| MockFileError::ToolAnswer { tool: tool.name.clone(), source };
                let answer = FixedAnswer::from_json(&answer).map_err(wrong);
                let answer = self.check(&(place.clone() + "/answer"), answer);
                answers.extend(answer.map(|answer| (tool.name.clone(), answer)));
            }
            match tool.extra.shift_remove("offeredAfter") {
                None => {}
                Some(Value::String(after)) => tool.offered_after = Some(after),
                Some(_) => {
                    let problem = MockFileError::OfferedAfter { tool: tool.name.clone() };
                    self.report(place + "/offeredAfter", problem);
                }
            }
            content.tools.push(tool);
        }
        // A tool that could not be read may be one that others follow.
        if self.mistakes.len() == before {
            self.check("/tools", content.check_offers().map_err(Into::into));
        }
        answers
    }

    /// Reports members that are no part of the protocol, but look like one that is. Other members are entries of `tools/list`.
    fn check_members(&mut self, place: &str, tool: &McpTool) {
        for member in tool.extra.keys().filter(|member| !TOOL_MEMBERS.contains(&member.as_str())) {
            if let Some(nearest) = nearest(member, TOOL_MEMBERS) {
                let (tool, member) = (tool.name.clone(), member.clone());
                let pointer = format!("{place}{}", pointer_to(&member));
                self.report(pointer, MockFileError::MisspeltMember { tool, member, nearest });
            }
        }
    }

    /// Reads the entries of a list, each with its identifier and its answer.
    fn entries(
        &mut self,
        file: &Map<String, Value>,
        key: &'static str,
        id: &'static str,
        answer: &str,
    ) -> Vec<(Value, String, FixedAnswer)> {
        let entries = self.list(file, key).iter().enumerate();
        entries
            .filter_map(|(index, entry)| {
                self.check(&format!("/{key}/{index}"), split_entry(entry, id, answer))
            })
            .collect()
    }
}

/// Returns the JSON Pointer to a member of an object.
fn pointer_to(member: &str) -> String {
    format!("/{}", member.replace('~', "~0").replace('/', "~1"))
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
