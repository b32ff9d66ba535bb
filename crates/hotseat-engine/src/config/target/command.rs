//! Decodes targets that are programs.

use std::path::Path;

use super::common::check_placeholders;
use hotseat_document::{Diagnostic, Diagnostics, MapView, NodeView};
use hotseat_targets::command::{CommandProtocol, CommandTarget};
use hotseat_targets::message::ClientTool;
use hotseat_targets::target::template::{CaseInputs, Placeholder, references};
use hotseat_targets::{HistoryMode, ProtocolCapabilities};

pub(super) fn read_target(
    map: &MapView<'_>,
    root: &Path,
    tools: &[ClientTool],
    carries: ProtocolCapabilities,
    mistakes: &mut Diagnostics,
) -> Option<CommandTarget> {
    let protocol = match map.text("protocol") {
        Some("text") => CommandProtocol::Text,
        _ => CommandProtocol::JsonLines,
    };
    let command = map.get("command")?;
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
            if let (false, Some(view)) = (tools.is_empty(), map.get("tools")) {
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
    let env = map.get("env").and_then(NodeView::entries).into_iter().flatten();
    Some(CommandTarget {
        command: command
            .list()
            .into_iter()
            .flatten()
            .filter_map(NodeView::text)
            .map(str::to_string)
            .collect(),
        protocol,
        folder: root.join(map.text("cwd").unwrap_or(".")),
        env: env.filter_map(|(key, _, value)| Some((key.to_string(), value.text()?.to_string()))).collect(),
        history: match map.text("history") {
            Some("full") => HistoryMode::Full,
            _ => HistoryMode::Delta,
        },
        capabilities: carries,
        given: CaseInputs::default(),
        keep_raw: false,
    })
}
