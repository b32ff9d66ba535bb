//! What stands around the cases: the banner, what is told of a run, and the titles of sections.

use std::fmt::Write as _;
use std::time::Duration;

use super::look::{Look, Tone};
use crate::report::words::{columns, count, one_line, wrap};
use crate::run::Setting;

/// How many suites and agents are named.
const NAMED: usize = 3;

/// The first lines of a run.
pub(super) fn opening(look: &Look, setting: &Setting) -> String {
    let mut out = banner(look, &title(setting), &format!("Hotseat {}", env!("CARGO_PKG_VERSION")));
    let mut info = |name: &str, value: &str| {
        let sign = "ℹ ";
        let line = format!("{name}: {}", one_line(value, 1000));
        let lines = wrap(&line, look.left(columns(sign)), look.left(columns(sign)));
        let _ = writeln!(out, "{}{}", look.paint(Tone::Info, sign), lines.join("\n  "));
    };
    info("Agent", &agents(setting));
    if let Some(of) = &setting.rechecked {
        info("Recheck", &format!("conversations of run {of}, decided again"));
    }
    let connectors = setting.connectors();
    if !connectors.is_empty() {
        let chosen = if setting.choices.connector.is_some() { " (override)" } else { "" };
        info("Connector", &format!("{}{chosen}", connectors.join(", ")));
    }
    info("Input", &input(setting));
    let simulators = setting.simulators();
    if !simulators.is_empty() {
        info("Simulator", &simulators.join(", "));
    }
    if let Some(words) = timeout(setting) {
        info("Timeout", &words);
    }
    if setting.at_once() > 1 {
        info("Parallel", &format!("{} concurrent", setting.at_once()));
    }
    let options = setting.choices.options;
    if options.runs > 1 {
        let least = options.min_pass_rate;
        let enough = match least.of(options.runs) < options.runs {
            true => format!(", {} of them have to pass", least.of(options.runs)),
            false => String::new(),
        };
        info("Runs", &format!("{} of each case{enough}", options.runs));
    }
    if setting.declared > 0 {
        info(
            "Reliability",
            &format!("declared by {}, each run until it is known", count(setting.declared, "case")),
        );
    }
    out.push('\n');
    let parallel = setting.at_once();
    let parallel = if parallel > 1 { format!(" ({parallel} parallel)") } else { String::new() };
    out + &section(look, &format!("Running Tests{parallel}"))
}

/// What kind of run it is. How many cases run at once is part of it where somebody asked for that.
fn title(setting: &Setting) -> String {
    let parallel = setting.choices.options.parallel;
    let kinds = [(setting.modes.multi_turn, "Multi-Turn"), (setting.modes.dynamic, "Dynamic Mode")];
    let kinds: Vec<&str> = kinds.into_iter().filter(|(there, _)| *there).map(|(_, kind)| kind).collect();
    match kinds.as_slice() {
        _ if setting.choices.parallel_asked && parallel > 1 => format!("Agent Test (Parallel: {parallel})"),
        [] => "Agent Test".to_string(),
        kinds => format!("Agent Test ({})", kinds.join(", ")),
    }
}

/// The agents that are tested, in a few words.
pub(super) fn agents(setting: &Setting) -> String {
    named(setting.agents().map(|agent| agent.shown.as_str()), "agent")
}

fn input(setting: &Setting) -> String {
    let cases = match setting.selected == setting.total {
        true => count(setting.total, "test case"),
        false => format!("{} of {}", setting.selected, count(setting.total, "test case")),
    };
    format!("{} ({cases})", named(setting.inputs.iter().map(|input| &**input), "file"))
}

/// The first of some things by their names, and how many more there are.
fn named<'a>(all: impl ExactSizeIterator<Item = &'a str>, what: &str) -> String {
    let more = all.len().saturating_sub(NAMED);
    // One more is shorter than saying so.
    let names: Vec<&str> = all.take(if more == 1 { NAMED + 1 } else { NAMED }).collect();
    match more {
        0 | 1 => names.join(", "),
        more => format!("{} and {} more", names.join(", "), count(more, what)),
    }
}

fn timeout(setting: &Setting) -> Option<String> {
    match (setting.case_timeout, setting.turn_timeout) {
        (Some(limit), _) => Some(limit_in_words(limit)),
        (None, Some(limit)) => Some(format!("{} per turn", limit_in_words(limit))),
        (None, None) => None,
    }
}

/// A limit in full: `5m0s`, `1m30s`, `1.5s`, `90ms`.
fn limit_in_words(limit: Duration) -> String {
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

/// A title between two heavy rules, with a few words at its right where there is room for them.
fn banner(look: &Look, title: &str, aside: &str) -> String {
    let rule = "═".repeat(look.rule());
    let title = one_line(title, look.rule().saturating_sub(2));
    let space = look.rule().saturating_sub(2 + columns(&title) + columns(aside));
    let aside = match space {
        0..3 => String::new(),
        space => format!("{}{}", " ".repeat(space), look.paint(Tone::Quiet, aside)),
    };
    format!("{rule}\n  {}{aside}\n{rule}\n", look.paint(Tone::Strong, &title))
}

/// The last lines of a run.
pub(super) fn closing(look: &Look, tone: Tone, words: &str) -> String {
    let rule = "═".repeat(look.rule());
    format!("{rule}\n  {}\n{rule}\n", look.paint(tone, words))
}

/// A title between two light rules.
pub(super) fn section(look: &Look, title: &str) -> String {
    let rule = look.paint(Tone::Quiet, &"─".repeat(look.rule()));
    format!("{rule}\n  {}\n{rule}\n", look.paint(Tone::Strong, title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_in_full() {
        for (millis, words) in
            [(300_000, "5m0s"), (90_000, "1m30s"), (30_000, "30s"), (1_500, "1.5s"), (150, "150ms")]
        {
            assert_eq!(limit_in_words(Duration::from_millis(millis)), words);
        }
    }
}
