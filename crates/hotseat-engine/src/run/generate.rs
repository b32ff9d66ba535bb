//! Generation of cases by a generator role.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::case_roles::open_role;
use super::context::{EventRetention, RunContext};
use crate::cases::escape_variables;
use crate::config::{Project, ProjectAgent, ResolvedRole, ScriptScope, StartedAgent};
use crate::roles::GeneratorQuestion;
use hotseat_checks::RoleReference;
use hotseat_document::{Diagnostic, Diagnostics, shorten};
use hotseat_targets::connection::http::HttpClient;

/// Keys of cases and turns that run programs, read files, contact other servers than the agent, or choose the agent or the
/// number of attempts. A head of a suite (`suite`) has the same keys.
const TRUSTED_KEYS: [&str; 12] = [
    "hooks",
    "before",
    "after",
    "mcp",
    "models",
    "scenarios",
    "attachments",
    "tools",
    "suite",
    "agent",
    "retries",
    "reliability",
];
/// Keys whose text names an agent, a model or a function of the project, at any place in a case. An agent may be a program.
const REFERENCE_KEYS: [&str; 7] =
    ["use", "judge", "connector", "function", "match_messages", "on_condition", "stop_when"];
/// The only option of a generated case. Any other may choose or set the model of an agent: a member of a request of chat
/// completions, or what the agent's protocol reads from it.
const DATA_OPTION: &str = "metadata";
/// Beginning of a reference to a function where other texts are possible.
const FUNCTION_REFERENCE: &str = "scripts:";
/// Beginning of the address of a file.
const FILE_ADDRESS: &str = "file://";

/// Asks a generator to write cases for an agent and returns them as JSON values. `parameters` are passed on
/// to the generator (`count`, `focus`, `complexity`, …). Scripts are resolved as for a suite in `folder`.
/// Fails if the generator is unknown, cannot be reached, or returns no cases.
pub async fn generate_cases(
    project: &Arc<Project>,
    generator: &RoleReference,
    target: &Arc<ProjectAgent>,
    parameters: Map<String, Value>,
    folder: &Path,
    http: &Arc<HttpClient>,
) -> Result<Vec<Value>, Diagnostics> {
    let whose = ScriptScope { folder, agent: Some(target) };
    let helper = project.find_role(generator, None, whose)?;
    let agent_generator = match &helper {
        ResolvedRole::Agent(agent) => Some(agent),
        ResolvedRole::Connector(_) | ResolvedRole::Script(_) => None,
    };
    if let Some(unset) = agent_generator.and_then(|agent| agent.usage_errors().next()) {
        return Err(unset.clone().into());
    }
    let outside = RunContext::new(
        project.clone(),
        agent_generator.into_iter().chain([target]),
        http.clone(),
        None,
        EventRetention::Nothing,
    )?;
    // The error of a function continues with its line.
    let failed = |words: String| {
        let (reason, detail) = words.split_once('\n').unwrap_or((&words, ""));
        let failed = Diagnostic::new(format!("{generator} generated no cases: {reason}"));
        if detail.is_empty() { failed } else { failed.help(detail) }
    };
    let started = match agent_generator.and_then(|agent| agent.start.as_ref()) {
        None => None,
        Some(start) => {
            let started = StartedAgent::start(start, project.environment(), project.redactor(), http).await;
            Some(started.map_err(|failure| failed(failure.message))?)
        }
    };
    let outside = Arc::new(outside);
    let powers = outside.script_permissions(&[whose], &BTreeMap::new(), &project.call_settings().identity());
    let found = (generator.clone(), helper.clone());
    let role = open_role(&outside, &powers, &found, None, &BTreeMap::new(), &mut Vec::new())?;
    let (description, tools) =
        outside.bound_target(target).map(|(target, _)| target.describe()).unwrap_or_default();
    let question = GeneratorQuestion {
        target: target.name.as_deref().unwrap_or("target"),
        description: target.description.as_deref().or(description.as_deref()),
        tools,
        parameters,
    };
    let generated = role.generate_cases(question).await;
    if let Some(started) = started {
        started.stop().await;
    }
    let cases = generated
        .map_err(|error| failed(outside.project.redactor().text(&error.to_string()).into_owned()))?;
    match helper {
        ResolvedRole::Script(_) => Ok(cases),
        // What an agent or a model writes is data: it runs nothing, reads no file, and learns no variable.
        ResolvedRole::Agent(_) | ResolvedRole::Connector(_) if cases.iter().any(is_skipped) => {
            let message = format!("{generator} wrote a case with `skip`, which tests nothing");
            let help = "such cases come from files, or from functions of scripts (`scripts:…`)";
            Err(Diagnostic::new(message).help(help).into())
        }
        ResolvedRole::Agent(_) | ResolvedRole::Connector(_) => match cases.iter().find_map(trusted_part) {
            None => Ok(cases.into_iter().map(escape_variables).collect()),
            Some(part) => {
                let message = format!(
                    "{generator} wrote a case with `{part}`, which may run programs, read files, or choose agents, models and attempts"
                );
                let help = "such cases come from files, or from functions of scripts (`scripts:…`); generated cases use the `judge` and the `simulator` of the project";
                Err(Diagnostic::new(message).help(help).into())
            }
        },
    }
}

/// True if a case is not run.
fn is_skipped(case: &Value) -> bool {
    case.get("skip").is_some_and(|skip| *skip != Value::Bool(false))
}

/// Returns a part of a case that only people and their scripts may write.
fn trusted_part(case: &Value) -> Option<String> {
    let turns = || case["turns"].as_array().into_iter().flatten();
    let mut keys = turns().chain([case]).filter_map(Value::as_object).flat_map(Map::keys).map(String::as_str);
    let template = case["simulate"].get("template").map(|_| "template");
    let key = keys.find(|key| TRUSTED_KEYS.contains(key)).or(template);
    let key = key.or_else(|| has_file_address(case).then_some(FILE_ADDRESS));
    let key = key.or_else(|| project_reference(case)).map(str::to_string);
    key.or_else(|| turns().chain([case, &case["simulator"], &case["simulate"]]).find_map(trusted_option))
        .or_else(|| judge_option(case))
}

/// Returns an option of a part of a case that only people and their scripts may set.
fn trusted_option(part: &Value) -> Option<String> {
    let name = part["options"].as_object()?.keys().find(|name| *name != DATA_OPTION)?;
    Some(format!("options.{}", shorten(name)))
}

/// Returns an option for the judge of an assertion that only people and their scripts may set.
fn judge_option(value: &Value) -> Option<String> {
    match value {
        Value::Array(entries) => entries.iter().find_map(judge_option),
        Value::Object(members) => {
            let of_judge = (value["type"] == "agent").then(|| trusted_option(value)).flatten();
            of_judge.or_else(|| members.values().find_map(judge_option))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Returns what a value refers to in the project: the key, the type of an assertion, or the beginning of a text.
fn project_reference(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => {
            text.trim_start().starts_with(FUNCTION_REFERENCE).then_some(FUNCTION_REFERENCE)
        }
        Value::Array(entries) => entries.iter().find_map(project_reference),
        Value::Object(members) if members.get("type").is_some_and(|kind| kind == "script") => {
            Some("type: script")
        }
        Value::Object(members) => members.iter().find_map(|(key, member)| {
            let refers = member.is_string() && REFERENCE_KEYS.contains(&&**key);
            if refers { Some(&**key) } else { project_reference(member) }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// True if a text within a value is the address of a file. The depth of the value is limited where it was parsed.
fn has_file_address(value: &Value) -> bool {
    match value {
        Value::String(text) => text.starts_with(FILE_ADDRESS),
        Value::Array(entries) => entries.iter().any(has_file_address),
        Value::Object(members) => members.values().any(has_file_address),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
