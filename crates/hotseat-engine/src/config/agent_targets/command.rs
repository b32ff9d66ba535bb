//! Agents that are programs.

use std::path::PathBuf;

use super::common::{
    ASSERTED, AWAITED, DESCRIPTION, FOLDER, IDLE_TIMEOUT, TIMEOUT, TOOLS, TURN_ASSERTED, case_inputs,
    check_placeholders, key_references, option_help, placeholder_help,
};
use super::{AgentTarget, TargetCapabilities, TargetEnv, TargetInput, TargetSummary};
use crate::cases::{CaseTarget, Environment};
use crate::config::start::refuse_empty_program;
use hotseat_document::{Diagnostic, DocumentNode, Kind, NodeValue, NodeView, document_shape};
use hotseat_targets::command::{CommandProtocol, CommandSession, CommandTarget};
use hotseat_targets::process::find_missing_program;
use hotseat_targets::target::template::{CaseInputs, Placeholder, references};
use hotseat_targets::{AgentSession, HistoryMode};

document_shape! {
    /// An agent that is a program: it receives user input and replies on standard output.
    pub(super) static SHAPE "CommandTarget" {
        /// Type of the target.
        required "type" = Kind::Choice(&["command"]),
        /// The program and its arguments. Runs without a shell, so nothing is expanded.
        required "command" = Kind::NonEmptyList(&Kind::Text),
        /// `json_lines`: one process per conversation, one JSON object per line. `text`: one process per
        /// turn, which reads the message and prints the reply.
        optional "protocol" = Kind::Choice(&["json_lines", "text"]),
            other_names &["speaks"], shown "json_lines",
        /// Working directory, relative to the project file.
        optional "cwd" = Kind::NonEmptyText, shown ".",
        /// Additional environment variables.
        optional "env" = Kind::Map(&Kind::Text),
        /// `full`: every message contains the history. `delta`: only the first message contains it. `auto` is
        /// `delta`.
        optional "history" = Kind::Choice(&["full", "delta", "auto"]), shown "auto",
        ..TOOLS,
        ..TIMEOUT,
        ..IDLE_TIMEOUT,
        ..DESCRIPTION,
        ..FOLDER,
        ..ASSERTED,
        ..TURN_ASSERTED,
        ..AWAITED,
    }
}

impl AgentTarget for CommandTarget {
    fn capabilities(node: &DocumentNode) -> TargetCapabilities {
        let protocol = node.get("protocol").map(|protocol| &protocol.value);
        let capabilities = match protocol {
            Some(NodeValue::String(protocol)) if protocol == "text" => {
                let mut capabilities = TargetCapabilities::from_template(&key_references(node, &["command"]));
                // Files cannot be passed as arguments.
                capabilities.keys.retain(|key| *key != "attachments");
                capabilities.shows_calls = false;
                capabilities
            }
            _ => TargetCapabilities::all(),
        };
        TargetCapabilities { key_help, option_help: |name| option_help(name, "command"), ..capabilities }
    }

    fn read(input: &mut TargetInput<'_>) -> Option<Self> {
        let (map, mistakes) = (input.map, &mut *input.mistakes);
        let protocol = match map.text("protocol") {
            Some("text") => CommandProtocol::Text,
            _ => CommandProtocol::JsonLines,
        };
        let command = map.get("command")?;
        refuse_empty_program(map, mistakes);
        let mut wrong = |view: NodeView<'_>, message: &str, help: &str| {
            mistakes.push(Diagnostic::new(message).at(view.place()).help(help));
        };
        match protocol {
            CommandProtocol::JsonLines => {
                let words = command.list().into_iter().flatten();
                let filled = |view: &NodeView<'_>| {
                    view.text().and_then(|text| references(text).ok()).is_some_and(|found| !found.is_empty())
                };
                if let Some(view) = words.into_iter().find(filled) {
                    wrong(
                        view,
                        "placeholders in the arguments require `protocol: text`",
                        "with `protocol: json_lines` the program receives everything on standard input",
                    );
                }
            }
            CommandProtocol::Text => {
                if let (false, Some(view)) = (input.tools.is_empty(), map.get("tools")) {
                    wrong(
                        view,
                        "`tools` require `protocol: json_lines`",
                        "plain text does not support tool calls",
                    );
                }
                if let (Some("full"), Some(view)) = (map.text("history"), map.get("history")) {
                    wrong(
                        view,
                        "`history: full` requires `protocol: json_lines`",
                        "use `{{messages}}` in the arguments of the command",
                    );
                }
                check_placeholders(command, &[Placeholder::Attachments], mistakes);
            }
        }
        Some(CommandTarget {
            command: map.texts("command").map(str::to_string).collect(),
            protocol,
            folder: input.root.join(map.text("cwd").unwrap_or(".")),
            env: map.text_entries("env").collect(),
            history: map.text("history").and_then(HistoryMode::from_name).unwrap_or(HistoryMode::Delta),
            capabilities: input.capabilities,
            given: CaseInputs::default(),
            keep_raw: false,
        })
    }

    fn open(&self, env: &TargetEnv) -> Box<dyn AgentSession> {
        let target = CommandTarget { keep_raw: env.keep_raw, ..self.clone() };
        let TargetEnv { http, environment, servers, .. } = env.clone();
        Box::new(CommandSession::open(environment, servers, http, target))
    }

    fn summary(&self) -> TargetSummary {
        TargetSummary::at(format!("`{}`", self.command.join(" ")))
    }

    fn named_paths(&self) -> Vec<PathBuf> {
        self.command.iter().map(|word| self.folder.join(word)).collect()
    }

    fn missing_program(&self, environment: &Environment) -> Option<String> {
        let path = self.env.get("PATH").or_else(|| environment.get("PATH"));
        find_missing_program(&self.command, path, &self.folder)
    }

    fn apply_case(&mut self, case: &CaseTarget) {
        self.given = case_inputs(case);
    }

    fn fixed_conversation_id(&mut self) -> Option<&mut String> {
        self.given.conversation_id.as_mut()
    }
}

fn key_help(key: &str) -> Option<String> {
    if key == "attachments" {
        let help = "files cannot be passed as arguments; use a program with `protocol: json_lines`";
        return Some(help.to_string());
    }
    placeholder_help(key, "command")
}
