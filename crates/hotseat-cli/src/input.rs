//! What `-i` names: a file, a message, whoever makes cases up, or lines of standard input.

use std::path::Path;
use std::sync::Arc;

use hotseat::adapters::http::Http;
use hotseat::cases::Suite;
use hotseat::checks::Reference;
use hotseat::config::{Helper, Project, Whose};
use hotseat::document::{Diagnostic, Diagnostics, nearest};
use hotseat::run::generate;
use serde_json::{Map, Value, json};

use crate::args::SelectArgs;
use crate::world::World;

/// Where cases come from that are in no suite of the project.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A suite.
    File(String),
    /// The tests in a script of an agent: `scripts.AGENT.MODULE`, here without its first part.
    ScriptTests(String),
    /// One message to the agent.
    Message(String),
    /// A helper makes cases up, and is told this.
    Generated(Reference, Map<String, Value>),
    /// Somebody types, or lines are piped in.
    Lines,
}

/// Endings of files that hold cases. What ends so is never a message.
const SUITES: [&str; 5] = [".jsonl", ".json", ".yaml", ".yml", ".ndjson"];

impl Input {
    /// Reads what was written behind `-i`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(written: &str, folder: &Path) -> Result<Input, Diagnostic> {
        if written == "-" {
            return Ok(Input::Lines);
        }
        if let Some(file) = written.strip_prefix('@') {
            return Ok(Input::File(file.to_string()));
        }
        let looks_like_a_file = || SUITES.iter().any(|ending| written.ends_with(ending));
        if folder.join(written).exists() || (looks_like_a_file() && !written.contains(char::is_whitespace)) {
            return Ok(Input::File(written.to_string()));
        }
        let dotted = written.strip_prefix("scripts.").filter(|rest| !rest.contains([' ', '\t', '\n', ':']));
        if let Some(rest) = dotted {
            return Ok(Input::ScriptTests(rest.to_string()));
        }
        let Some((prefix, rest)) = written.split_once(':') else {
            return Ok(Input::Message(written.to_string()));
        };
        if KNOWN.contains(&prefix) {
            let (id, query) = rest.split_once('?').unwrap_or((rest, ""));
            let reference = Reference::parse(&format!("{prefix}:{id}")).map_err(Diagnostic::new)?;
            return Ok(Input::Generated(reference, parameters(query)));
        }
        // `Note: buy milk` is said to an agent; `agnets:generator` is not.
        let is_word = !rest.is_empty() && !rest.contains(char::is_whitespace);
        match nearest(prefix, KNOWN).filter(|_| is_word) {
            Some(near) => {
                let help = format!(
                    "did you mean `{near}:{rest}`? A message to the agent has a space behind its colon"
                );
                Err(Diagnostic::new(format!("-i {written}: `{prefix}:` refers to nothing")).help(help))
            }
            None => Ok(Input::Message(written.to_string())),
        }
    }

    /// Looks at who is to make cases up, before anybody is asked.
    ///
    /// # Errors
    /// When that is nobody, or nobody says for which agent.
    pub fn check(&self, select: &SelectArgs, project: &Project, world: &World) -> Result<(), Diagnostics> {
        let Input::Generated(reference, _) = self else { return Ok(()) };
        let target = select.agent.as_ref().and_then(|_| project.agent_of(&world.folder));
        let whose = Whose { folder: &world.folder, agent: target.as_deref() };
        let helper = project.find_helper(reference, None, whose)?;
        if let Helper::Agent(agent) = &helper
            && let Some(unset) = agent.unset().next()
        {
            return Err(unset.clone().into());
        }
        match target {
            Some(_) => Ok(()),
            None => {
                let message = format!("-i {reference}: nobody says which agent the cases are for");
                Err(Diagnostic::new(message).help("name one of the project's agents with `-n`").into())
            }
        }
    }

    /// The suites that it stands for; none where these are files. What it names was looked at.
    ///
    /// # Errors
    /// What keeps cases from being made up.
    pub fn suites(
        &self,
        select: &SelectArgs,
        project: &Arc<Project>,
        http: &Arc<Http>,
        world: &World,
    ) -> Result<Option<Vec<Suite>>, Diagnostics> {
        let folder = world.folder.clone();
        Ok(match self {
            Input::File(_) | Input::ScriptTests(_) => None,
            Input::Message(text) => {
                let case = json!({"id": "message", "input": text});
                Some(vec![Suite::written(case.to_string(), "-i", folder)])
            }
            Input::Lines => {
                let case = json!({"id": "typed", "name": "typed conversation"});
                Some(vec![Suite::written(case.to_string(), "-i -", folder)])
            }
            Input::Generated(reference, parameters) => {
                let Some(target) = select.agent.as_ref().and_then(|_| project.agent_of(&folder)) else {
                    return Err(project.no_target().into());
                };
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| Diagnostic::new(format!("cannot start: {error}")))?;
                let cases = runtime.block_on(generate(
                    project,
                    reference,
                    &target,
                    parameters.clone(),
                    &folder,
                    http,
                ))?;
                let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
                Some(vec![Suite::written(lines.join("\n"), reference.to_string(), folder)])
            }
        })
    }
}

/// What a reference can begin with.
const KNOWN: [&str; 6] = ["agents", "agent", "connectors", "connector", "scripts", "script"];

/// The parameters of a query. Numbers and truth values are such; everything else is text.
fn parameters(query: &str) -> Map<String, Value> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    pairs
        .map(|(key, value)| {
            let typed = match serde_json::from_str::<Value>(&value) {
                Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
                _ => Value::String(value.into_owned()),
            };
            (key.into_owned(), typed)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Input, Diagnostic> {
        Input::read(text, Path::new("/nowhere"))
    }

    #[test]
    fn what_is_a_message_and_what_is_not() {
        for text in
            ["Hello, how are you?", "a/b?", "Note: buy milk", "at 10:30", "http://example.org/", "why:not"]
        {
            assert_eq!(read(text).unwrap(), Input::Message(text.to_string()));
        }
        for (text, rest) in [("scripts.expense.setup", "expense.setup"), ("scripts.a.b.c", "a.b.c")] {
            assert_eq!(read(text).unwrap(), Input::ScriptTests(rest.to_string()));
        }
        for text in ["./tests/x.jsonl", "tests/a.yaml", "@any"] {
            let file = text.strip_prefix('@').unwrap_or(text);
            assert_eq!(read(text).unwrap(), Input::File(file.to_string()));
        }
        assert_eq!(read("-").unwrap(), Input::Lines);
        for text in ["agnets:x", "agents:", "connector:"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn generators_are_told_typed_parameters() {
        let Input::Generated(reference, parameters) = read(
            "agents:workers.test.generator?count=10&focus=edge-cases&share=0.5&deep=true&said=a%20b+c&n=007",
        )
        .unwrap() else {
            panic!("it is a generator")
        };
        assert_eq!(reference.to_string(), "agents:workers.test.generator");
        let expected = json!({"count": 10, "focus": "edge-cases", "share": 0.5, "deep": true, "said": "a b c", "n": "007"});
        assert_eq!(Value::Object(parameters), expected);
        assert!(matches!(read("agent:x").unwrap(), Input::Generated(..)));
    }
}
