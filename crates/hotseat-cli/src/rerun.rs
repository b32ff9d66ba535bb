//! Commands that run cases of a run again: its command line without selection and output.

use std::path::Path;

use clap::{Args, Command};
use hotseat_engine::config::is_case_word;
use hotseat_engine::run::RerunCommands;
use hotseat_report::reporters::shell_word;

use crate::args::{CliArgs, TestArgs};
use crate::input::TestInput;

/// Flags that select cases.
const SELECTION: [&str; 8] =
    ["run", "keywords", "grep", "tag", "exclude_tag", "last_failed", "cases", "shard"];
/// Flags that a rerun does not repeat.
const DROPPED: [&str; 13] = [
    "output",
    "reporter",
    "json",
    "verbose",
    "trace",
    "record",
    "record_cassettes",
    "save",
    "view",
    "color",
    "fail_fast",
    "forbid_only",
    "watch",
];

/// Role of a command-line argument in a rerun.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArgumentRole {
    /// Selects suites.
    Suites,
    /// Selects cases of the suites.
    Cases,
    /// Changes how cases run.
    Behavior,
    /// Not repeated.
    Dropped,
}

/// Returns the commands for a run of `hotseat test` in a folder, or `None` if its input cannot be repeated.
pub fn rerun_commands(
    args: &TestArgs,
    input: Option<&TestInput>,
    arguments: &[String],
    is_saved: bool,
    folder: &Path,
) -> Option<RerunCommands> {
    if !matches!(input, None | Some(TestInput::SuiteFile(_))) {
        return None;
    }
    let words = classify(arguments, folder)?;
    let join = |roles: &[ArgumentRole]| {
        let words = words.iter().filter(|(role, _)| roles.contains(role));
        let words = words.flat_map(|(_, words)| words.iter().map(|word| shell_word(word).into_owned()));
        ["hotseat".to_string(), "test".to_string()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
    };
    let all = join(&[ArgumentRole::Suites, ArgumentRole::Cases, ArgumentRole::Behavior]);
    Some(RerunCommands {
        any: join(&[ArgumentRole::Behavior]),
        suites: join(&[ArgumentRole::Suites, ArgumentRole::Behavior]),
        failed: can_select_failed(args, is_saved).then(|| format!("{all} --lf")),
        trace: None,
    })
}

/// True if `--last-failed` can be added to the arguments: the failed cases are known from saved runs, and some flags exclude it.
pub fn can_select_failed(args: &TestArgs, is_saved: bool) -> bool {
    is_saved && args.input.is_none() && args.select.cases.is_none() && args.select.shard.is_none()
}

/// A part of the tests, selected during `--watch`.
#[derive(Debug, Clone)]
pub enum RunSelection {
    /// As the command line says.
    All,
    /// Those that failed.
    Failed,
    /// Those of these suites.
    Suites(Vec<String>),
    /// Those with these words, as `-k`.
    Keywords(String),
}

/// Returns the arguments of a run without `--watch` and with another selection. `None` if they are not understood.
pub fn selected_arguments(
    arguments: &[String],
    selection: &RunSelection,
    folder: &Path,
) -> Option<Vec<String>> {
    let words = classify(arguments, folder)?;
    let keeps = |(role, words): &&(ArgumentRole, Vec<String>)| match (role, selection) {
        (ArgumentRole::Dropped, _) => words[0] != "--watch",
        (ArgumentRole::Suites, RunSelection::Suites(_)) => false,
        (ArgumentRole::Cases, RunSelection::Keywords(_)) => false,
        _ => true,
    };
    let kept = words.iter().filter(keeps).flat_map(|(_, words)| words.iter().cloned());
    let more = match selection {
        RunSelection::All => Vec::new(),
        RunSelection::Failed => vec!["--last-failed".to_string()],
        RunSelection::Suites(paths) => paths.clone(),
        RunSelection::Keywords(words) => vec!["-k".to_string(), words.clone()],
    };
    let mut all: Vec<String> = ["test".to_string()].into_iter().chain(kept).chain(more).collect();
    let is_last_failed = |word: &String| word == "--last-failed" || word == "--lf";
    if all.iter().filter(|word| is_last_failed(word)).count() > 1 {
        all.pop();
    }
    Some(all)
}

/// Groups the arguments after `test`, each flag with its value. `None` if one of them is not understood.
fn classify(arguments: &[String], folder: &Path) -> Option<Vec<(ArgumentRole, Vec<String>)>> {
    // Only the flags of the program itself and of this command: the others take longer to build.
    let command = CliArgs::augment_args(Command::new("hotseat"));
    let test = TestArgs::augment_args(Command::new("test"));
    let mut words = arguments.iter().skip_while(|word| *word != "test").skip(1).peekable();
    let mut classified = Vec::new();
    let mut only_paths = false;
    while let Some(word) = words.next() {
        if word == "--" {
            only_paths = true;
            continue;
        }
        if only_paths || !word.starts_with('-') || word == "-" {
            let role = if is_case_word(word, folder) { ArgumentRole::Cases } else { ArgumentRole::Suites };
            classified.push((role, vec![word.clone()]));
            continue;
        }
        let (id, has_value, is_whole) = find_flag(&command, &test, word)?;
        let mut group = vec![word.clone()];
        if has_value && is_whole {
            group.push(words.next()?.clone());
        }
        let role = match id.as_str() {
            "input" => ArgumentRole::Suites,
            // `--lf` is added where it is needed.
            "last_failed" => ArgumentRole::Dropped,
            id if SELECTION.contains(&id) => ArgumentRole::Cases,
            id if DROPPED.contains(&id) => ArgumentRole::Dropped,
            _ => ArgumentRole::Behavior,
        };
        classified.push((role, group));
    }
    Some(classified)
}

/// Finds a flag: its id, whether it takes a value, and whether the value is a separate word.
fn find_flag(command: &Command, test: &Command, word: &str) -> Option<(String, bool, bool)> {
    let (name, is_whole) = match word.split_once('=') {
        Some((name, _)) => (name, false),
        None => (word, true),
    };
    let mut flags = test.get_arguments().chain(command.get_arguments());
    let flag = match name.strip_prefix("--") {
        Some(long) => flags.find(|flag| {
            flag.get_long() == Some(long) || flag.get_all_aliases().is_some_and(|all| all.contains(&long))
        })?,
        None => {
            let mut letters = name.strip_prefix('-')?.chars();
            let letter = letters.next()?;
            let flag = flags.find(|flag| flag.get_short() == Some(letter))?;
            return match (flag.get_action().takes_values(), letters.next()) {
                (has_value, None) => Some((flag.get_id().to_string(), has_value, is_whole)),
                // `-kWORD`; several flags in one word are not taken apart.
                (true, Some(_)) => Some((flag.get_id().to_string(), true, false)),
                (false, Some(_)) => None,
            };
        }
    };
    Some((flag.get_id().to_string(), flag.get_action().takes_values(), is_whole))
}
