//! The value of `-i`: a file, a message, a case generator, or `-` for standard input.

use std::path::Path;
use std::sync::Arc;

use hotseat_checks::RoleReference;
use hotseat_document::{Diagnostic, Diagnostics, nearest};
use hotseat_engine::cases::{Suite, is_test_script};
use hotseat_engine::config::{Project, ResolvedRole, ScriptScope, split_part};
use hotseat_engine::run::generate_cases;
use hotseat_report::reporters::shell_word;
use hotseat_targets::connection::http::HttpClient;
use serde_json::{Map, Value, json};

use crate::args::SelectionArgs;
use crate::context::CliContext;

/// Source of cases that are not in a suite of the project.
#[derive(Debug, Clone, PartialEq)]
pub enum TestInput {
    SuiteFile(String),
    /// Tests in a script of an agent: `scripts.AGENT.MODULE`, here without the prefix.
    ScriptTests(String),
    /// A message to the agent.
    Message(String),
    /// A case generator and its parameters.
    Generated(RoleReference, Map<String, Value>),
    /// User messages typed or piped to standard input.
    StandardInput,
}

/// Extensions of suite files. An input with such an extension, or with the name of tests in code, is never a message.
const SUITE_EXTENSIONS: [&str; 6] = [".jsonl", ".json", ".yaml", ".yml", ".ndjson", ".jsonc"];

impl TestInput {
    /// Parses the value of `-i`. Fails if a reference is malformed or its prefix is misspelt.
    pub fn parse(written: &str, folder: &Path) -> Result<TestInput, Diagnostic> {
        if written == "-" {
            return Ok(TestInput::StandardInput);
        }
        if let Some(file) = written.strip_prefix('@') {
            return Ok(TestInput::SuiteFile(file.to_string()));
        }
        let looks_like_a_file = || {
            SUITE_EXTENSIONS.iter().any(|ending| written.ends_with(ending))
                || is_test_script(Path::new(written))
        };
        if folder.join(written).exists() || (looks_like_a_file() && !written.contains(char::is_whitespace)) {
            return Ok(TestInput::SuiteFile(written.to_string()));
        }
        if let Some((file, _)) = split_part(written).filter(|(file, _)| folder.join(file).is_file()) {
            let message = format!("-i {written}: `-i` runs whole suites, such as {file}");
            let help = format!("leave `-i` out: `hotseat test {}`", shell_word(written));
            return Err(Diagnostic::new(message).help(help));
        }
        let dotted = written.strip_prefix("scripts.").filter(|rest| !rest.contains([' ', '\t', '\n', ':']));
        if let Some(rest) = dotted {
            return Ok(TestInput::ScriptTests(rest.to_string()));
        }
        let Some((prefix, rest)) = written.split_once(':') else {
            return Ok(TestInput::Message(written.to_string()));
        };
        if REFERENCE_PREFIXES.contains(&prefix) {
            let (id, query) = rest.split_once('?').unwrap_or((rest, ""));
            let reference = RoleReference::parse(&format!("{prefix}:{id}")).map_err(Diagnostic::new)?;
            return Ok(TestInput::Generated(reference, parse_parameters(query)));
        }
        // `Note: buy milk` is a message; `agnets:generator` is a misspelt reference.
        let is_word = !rest.is_empty() && !rest.contains(char::is_whitespace);
        match nearest(prefix, REFERENCE_PREFIXES).filter(|_| is_word) {
            Some(near) => {
                let help = format!(
                    "did you mean `{near}:{rest}`? a message to the agent has a space after its colon"
                );
                Err(Diagnostic::new(format!("-i {written}: unknown reference prefix `{prefix}:`")).help(help))
            }
            None => Ok(TestInput::Message(written.to_string())),
        }
    }

    /// True if the cases come into being during the run and are in no suite.
    pub fn makes_cases(&self) -> bool {
        match self {
            TestInput::Generated(..) | TestInput::StandardInput => true,
            TestInput::SuiteFile(_) | TestInput::ScriptTests(_) | TestInput::Message(_) => false,
        }
    }

    /// True if this is one conversation without assertions.
    pub fn is_conversation(&self) -> bool {
        matches!(self, TestInput::Message(_) | TestInput::StandardInput)
    }

    /// Validates the case generator before it is called. Fails if the generator does not exist, or no agent
    /// is selected.
    pub fn check_generator(
        &self,
        select: &SelectionArgs,
        project: &Project,
        context: &CliContext,
    ) -> Result<(), Diagnostics> {
        let TestInput::Generated(reference, _) = self else { return Ok(()) };
        let target = select.agent.as_ref().and_then(|_| project.agent_of(&context.folder));
        let whose = ScriptScope { folder: &context.folder, agent: target.as_deref() };
        let helper = project.find_role(reference, None, whose)?;
        if let ResolvedRole::Agent(agent) = &helper
            && let Some(unset) = agent.usage_errors().next()
        {
            return Err(unset.clone().into());
        }
        match target {
            Some(_) => Ok(()),
            None => {
                let message = format!("-i {reference}: no agent is selected for the generated cases");
                Err(Diagnostic::new(message).help("select an agent of the project with `-n NAME`").into())
            }
        }
    }

    /// Returns the suites of this input, or `None` if it names files. Call [`TestInput::check_generator`]
    /// first. Fails if cases cannot be generated.
    pub fn build_suites(
        &self,
        select: &SelectionArgs,
        project: &Arc<Project>,
        http: &Arc<HttpClient>,
        context: &CliContext,
    ) -> Result<Option<Vec<Suite>>, Diagnostics> {
        let folder = context.folder.clone();
        Ok(match self {
            TestInput::SuiteFile(_) | TestInput::ScriptTests(_) => None,
            TestInput::Message(text) => {
                let case = json!({"id": "message", "input": text});
                Some(vec![Suite::from_text(case.to_string(), "-i", folder)])
            }
            TestInput::StandardInput => {
                let case = json!({"id": "typed", "name": "typed conversation"});
                Some(vec![Suite::from_text(case.to_string(), "-i -", folder)])
            }
            TestInput::Generated(reference, parameters) => {
                let Some(target) = select.agent.as_ref().and_then(|_| project.agent_of(&folder)) else {
                    return Err(project.missing_target().into());
                };
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| Diagnostic::new(format!("cannot start: {error}")))?;
                let cases = runtime.block_on(generate_cases(
                    project,
                    reference,
                    &target,
                    parameters.clone(),
                    &folder,
                    http,
                ))?;
                let asked = parameters.get("count").and_then(Value::as_u64).unwrap_or(0);
                if (cases.len() as u64) < asked {
                    let written = cases.len();
                    let note = format!("{reference} wrote {written} of {asked} cases");
                    context.print_notes(&[Diagnostic::new(note)]);
                }
                let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
                Some(vec![Suite::from_text(lines.join("\n"), reference.to_string(), folder)])
            }
        })
    }
}

const REFERENCE_PREFIXES: [&str; 6] = ["agents", "agent", "connectors", "connector", "scripts", "script"];

/// Parses the parameters of a query. Numbers and booleans keep their type; all other values are strings.
fn parse_parameters(query: &str) -> Map<String, Value> {
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

    fn read(text: &str) -> Result<TestInput, Diagnostic> {
        TestInput::parse(text, Path::new("/nowhere"))
    }

    #[test]
    fn tells_messages_from_references() {
        for text in
            ["Hello, how are you?", "a/b?", "Note: buy milk", "at 10:30", "http://example.org/", "why:not"]
        {
            assert_eq!(read(text).unwrap(), TestInput::Message(text.to_string()));
        }
        for (text, rest) in [("scripts.expense.setup", "expense.setup"), ("scripts.a.b.c", "a.b.c")] {
            assert_eq!(read(text).unwrap(), TestInput::ScriptTests(rest.to_string()));
        }
        for text in
            ["./tests/x.jsonl", "tests/a.yaml", "nope_test.ts", "tests/a_test.mjs", "a.test.tsx", "@any"]
        {
            let file = text.strip_prefix('@').unwrap_or(text);
            assert_eq!(read(text).unwrap(), TestInput::SuiteFile(file.to_string()));
        }
        assert_eq!(read("-").unwrap(), TestInput::StandardInput);
        for text in ["agnets:x", "agents:", "connector:"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn generator_parameters_are_typed() {
        let TestInput::Generated(reference, parameters) = read(
            "agents:workers.test.generator?count=10&focus=edge-cases&share=0.5&deep=true&said=a%20b+c&n=007",
        )
        .unwrap() else {
            panic!("expected a generator")
        };
        assert_eq!(reference.to_string(), "agents:workers.test.generator");
        let expected = json!({"count": 10, "focus": "edge-cases", "share": 0.5, "deep": true, "said": "a b c", "n": "007"});
        assert_eq!(Value::Object(parameters), expected);
        assert!(matches!(read("agent:x").unwrap(), TestInput::Generated(..)));
    }
}
