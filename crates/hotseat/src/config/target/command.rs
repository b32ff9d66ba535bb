//! An agent that is a program.

use std::path::Path;

use super::parts::check_placeholders;
use crate::adapters::command::{Speaks, Target};
use crate::adapters::template::{Given, Placeholder, references};
use crate::adapters::{Carries, History};
use crate::session::ClientTool;
use hotseat_document::{Diagnostic, Diagnostics, Map, View};

pub(super) fn read(
    map: &Map<'_>,
    root: &Path,
    tools: &[ClientTool],
    carries: Carries,
    mistakes: &mut Diagnostics,
) -> Option<Target> {
    let speaks = match map.text("speaks") {
        Some("text") => Speaks::Text,
        _ => Speaks::JsonLines,
    };
    let command = map.get("command")?;
    let mut wrong = |view: View<'_>, message: &str, help: &str| {
        mistakes.push(Diagnostic::new(message).at(view.place()).help(help));
    };
    match speaks {
        Speaks::JsonLines => {
            let words = command.list().into_iter().flatten();
            let filled = |view: &View<'_>| {
                view.text().and_then(|text| references(text).ok()).is_some_and(|found| !found.is_empty())
            };
            if let Some(view) = words.into_iter().find(filled) {
                wrong(
                    view,
                    "placeholders in the arguments go with `speaks: text`",
                    "a speaker of JSON lines is told everything on its standard input",
                );
            }
        }
        Speaks::Text => {
            if let (false, Some(view)) = (tools.is_empty(), map.get("tools")) {
                wrong(view, "`tools` go with `speaks: json_lines`", "plain text has no way to call them");
            }
            if let (Some("full"), Some(view)) = (map.text("history"), map.get("history")) {
                wrong(
                    view,
                    "`history: full` goes with `speaks: json_lines`",
                    "write `{{messages}}` into the arguments of the command",
                );
            }
            check_placeholders(command, &[Placeholder::Attachments], mistakes);
        }
    }
    let env = map.get("env").and_then(View::entries).into_iter().flatten();
    Some(Target {
        command: command.list().into_iter().flatten().filter_map(View::text).map(str::to_string).collect(),
        speaks,
        folder: root.join(map.text("cwd").unwrap_or(".")),
        env: env.filter_map(|(key, _, value)| Some((key.to_string(), value.text()?.to_string()))).collect(),
        history: match map.text("history") {
            Some("full") => History::Full,
            _ => History::Delta,
        },
        carries,
        given: Given::default(),
        keep_raw: false,
    })
}
