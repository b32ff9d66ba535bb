//! Output around the cases: the banner, the settings of the run, and section titles.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::options::{ConsoleOptions, TextStyle};
use crate::reporters::text::{columns, format_count, one_line, wrap};
use hotseat_engine::cases::is_program;
use hotseat_engine::run::RunSettings;

/// Maximum number of suites and agents that are named.
const MAX_NAMES: usize = 3;

/// Formats the first lines of a run.
pub(super) fn run_header(look: &ConsoleOptions, setting: &RunSettings) -> String {
    let mut out = banner(look, &run_title(setting), &format!("Hotseat {}", env!("CARGO_PKG_VERSION")));
    let mut info = |name: &str, value: &str| {
        let sign = "ℹ ";
        let line = format!("{name}: {}", one_line(value, 1000));
        let lines = wrap(&line, look.columns_left(columns(sign)), look.columns_left(columns(sign)));
        let _ = writeln!(out, "{}{}", look.paint(TextStyle::Info, sign), lines.join("\n  "));
    };
    info("Agent", &agent_names(setting));
    if let Some(of) = &setting.rechecked {
        info("Recheck", &format!("conversations of run {of}, re-evaluated"));
    }
    let connectors = setting.connectors();
    if !connectors.is_empty() {
        let chosen = if setting.choices.connector.is_some() { " (override)" } else { "" };
        info("Connector", &format!("{}{chosen}", connectors.join(", ")));
    }
    info("Input", &input_summary(setting));
    let simulators = setting.simulators();
    if !simulators.is_empty() {
        info("Simulator", &simulators.join(", "));
    }
    if let Some(words) = timeout_label(setting) {
        info("Timeout", &words);
    }
    if setting.effective_parallelism() > 1 {
        info("Parallel", &format!("{} concurrent", setting.effective_parallelism()));
    }
    let options = setting.choices.options;
    if options.runs > 1 {
        let least = options.min_pass_rate;
        let enough = match least.required_passes(options.runs) < options.runs {
            true => format!(", at least {} must pass", least.required_passes(options.runs)),
            false => String::new(),
        };
        info("Runs", &format!("{} of each case{enough}", options.runs));
    }
    if setting.declared > 0 {
        info(
            "Reliability",
            &format!("declared by {}, each repeated until decided", format_count(setting.declared, "case")),
        );
    }
    out.push('\n');
    let parallel = setting.effective_parallelism();
    let parallel = if parallel > 1 { format!(" ({parallel} parallel)") } else { String::new() };
    out + &section(look, &format!("Running Tests{parallel}"))
}

/// Returns the kind of the run. The number of parallel cases is included if the user set it.
fn run_title(setting: &RunSettings) -> String {
    let parallel = setting.choices.options.parallel;
    let kinds = [(setting.modes.multi_turn, "Multi-Turn"), (setting.modes.dynamic, "Dynamic Mode")];
    let kinds: Vec<&str> = kinds.into_iter().filter(|(there, _)| *there).map(|(_, kind)| kind).collect();
    let are_scripts =
        !setting.inputs.is_empty() && setting.inputs.iter().all(|input| is_program(Path::new(&**input)));
    let tested = if are_scripts { "Script Test" } else { "Agent Test" };
    match kinds.as_slice() {
        _ if setting.choices.parallel_asked && parallel > 1 => format!("{tested} (Parallel: {parallel})"),
        [] => tested.to_string(),
        kinds => format!("{tested} ({})", kinds.join(", ")),
    }
}

/// Lists the tested agents.
pub(super) fn agent_names(setting: &RunSettings) -> String {
    list_names(setting.agents().map(|agent| agent.shown.as_str()), "agent")
}

fn input_summary(setting: &RunSettings) -> String {
    let cases = match setting.selected == setting.total {
        true => format_count(setting.total, "test case"),
        false => format!("{} of {}", setting.selected, format_count(setting.total, "test case")),
    };
    format!("{} ({cases})", list_names(setting.inputs.iter().map(|input| &**input), "file"))
}

/// Lists the first names and the number of the remaining ones.
fn list_names<'a>(all: impl ExactSizeIterator<Item = &'a str>, what: &str) -> String {
    let more = all.len().saturating_sub(MAX_NAMES);
    // One more name is shorter than a note about it.
    let names: Vec<&str> = all.take(if more == 1 { MAX_NAMES + 1 } else { MAX_NAMES }).collect();
    match more {
        0 | 1 => names.join(", "),
        more => format!("{} and {} more", names.join(", "), format_count(more, what)),
    }
}

fn timeout_label(setting: &RunSettings) -> Option<String> {
    match (setting.case_timeout, setting.turn_timeout) {
        (Some(limit), _) => Some(format_limit(limit)),
        (None, Some(limit)) => Some(format!("{} per turn", format_limit(limit))),
        (None, None) => None,
    }
}

/// Formats a limit: `5m0s`, `1m30s`, `1.5s`, `90ms`.
fn format_limit(limit: Duration) -> String {
    let (minutes, seconds, millis) = (limit.as_secs() / 60, limit.as_secs() % 60, limit.subsec_millis());
    let seconds = match millis {
        0 => seconds.to_string(),
        millis => format!("{seconds}.{millis:03}").trim_end_matches('0').to_string(),
    };
    match (minutes, limit.as_secs()) {
        (0, 0) => format!("{millis}ms"),
        (0, _) => format!("{seconds}s"),
        (minutes, _) => format!("{minutes}m{seconds}s"),
    }
}

/// Formats a title between two heavy rules, with an aside at the right if it fits.
fn banner(look: &ConsoleOptions, title: &str, aside: &str) -> String {
    let rule = "═".repeat(look.rule_columns());
    let title = one_line(title, look.rule_columns().saturating_sub(2));
    let space = look.rule_columns().saturating_sub(2 + columns(&title) + columns(aside));
    let aside = match space {
        0..3 => String::new(),
        space => format!("{}{}", " ".repeat(space), look.paint(TextStyle::Quiet, aside)),
    };
    format!("{rule}\n  {}{aside}\n{rule}\n", look.paint(TextStyle::Strong, &title))
}

/// Formats the last lines of a run.
pub(super) fn closing_banner(look: &ConsoleOptions, tone: TextStyle, words: &str) -> String {
    let rule = "═".repeat(look.rule_columns());
    format!("{rule}\n  {}\n{rule}\n", look.paint(tone, words))
}

/// Formats a title between two light rules.
pub(super) fn section(look: &ConsoleOptions, title: &str) -> String {
    let rule = look.paint(TextStyle::Quiet, &"─".repeat(look.rule_columns()));
    format!("{rule}\n  {}\n{rule}\n", look.paint(TextStyle::Strong, title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_limits() {
        for (millis, words) in
            [(300_000, "5m0s"), (90_000, "1m30s"), (30_000, "30s"), (1_500, "1.5s"), (150, "150ms")]
        {
            assert_eq!(format_limit(Duration::from_millis(millis)), words);
        }
    }
}
