//! The arguments of a test file: those that `cargo test` and nextest give to any test, and some of `hotseat test`.

use std::path::PathBuf;
use std::time::Duration;

use hotseat_document::{Diagnostic, nearest};

/// What the program says of itself.
pub(super) const HELP: &str = "\
Conversations with an agent as tests.

Usage: [FILTER]... [OPTIONS]          (after `--`: cargo test --test agents -- FILTER --tag slow)

Arguments:
  [FILTER]...             Only examples whose names contain one of these

As any test has them:
      --exact             The filters are whole names
      --skip FILTER       Leave out examples whose names contain this; can be given several times
      --list              List the examples instead of running them
      --format FORMAT     How they are listed: pretty or terse
      --ignored           Run only examples that are skipped
      --include-ignored   Run skipped examples, too
      --test-threads N    How many conversations are held at once
      --color WHEN        auto, always or never
  -q, --quiet             Say nothing of examples that passed
      --nocapture, --show-output, --no-capture
                          Nothing that examples print is ever captured

As `hotseat test` has them:
      --tag TAG           Only examples with this tag; can be given several times, and one is enough
  -o, --output FILE       Write a report: .json, .jsonl, .xml (JUnit); can be given several times
      --trace FILE        Write every event of every conversation as JSON lines
  -n, --agent NAME        Test this agent of hotseat.yaml, whichever examples name; replay:PATH serves recordings.
                          Agents in the program are still tested
      --simulator WHO     Who simulates users: agents:ID or connectors:NAME
      --config FILE       Project file; default: hotseat.yaml of this folder or the nearest one above it
      --runs N            How many times each example is run
      --min-pass-rate R   How much of these has to pass, as 0.8
      --retries N         How often an example that fails is tried again
      --timeout DURATION  How long an example may take that does not say so itself: 30s, 2m
      --fail-fast         Start no new example after one has failed
      --last-failed       Only examples that failed in the last run of this test file that was kept
      --no-store          Do not keep the run beside the project file
      --forbid-only       Fail when examples are focused (`fit`, `only`): for CI
  -v, --verbose           Show every conversation whole
  -h, --help              This text

Exit codes: 0 nothing failed, 1 some example failed, 2 usage or configuration, 3 the run could not be carried out,
4 nothing was selected by a tag, 130 interrupted
";

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub filters: Vec<String>,
    pub exact: bool,
    pub skip: Vec<String>,
    pub list: bool,
    pub format: Format,
    pub ignored: Ignored,
    pub parallel: Option<usize>,
    pub color: Color,
    pub quiet: bool,
    pub tags: Vec<String>,
    pub outputs: Vec<PathBuf>,
    pub trace: Option<PathBuf>,
    pub agent: Option<String>,
    pub config: Option<String>,
    pub simulator: Option<String>,
    pub runs: Option<usize>,
    pub min_pass_rate: Option<f64>,
    pub retries: Option<usize>,
    pub timeout: Option<Duration>,
    pub fail_fast: bool,
    pub forbid_only: bool,
    pub last_failed: bool,
    pub no_store: bool,
    pub verbose: bool,
    pub help: bool,
}

/// How examples are listed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    #[default]
    Pretty,
    /// For programs: their names and nothing else.
    Terse,
}

/// What becomes of examples that are skipped.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ignored {
    #[default]
    Skipped,
    /// They run, and no others.
    Only,
    /// They run like all others.
    Included,
}

/// When output has colours.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

const FLAGS: [&str; 33] = [
    "--last-failed",
    "--no-store",
    "--simulator",
    "--exact",
    "--skip",
    "--list",
    "--format",
    "--ignored",
    "--include-ignored",
    "--test-threads",
    "--color",
    "--quiet",
    "--nocapture",
    "--no-capture",
    "--show-output",
    "--tag",
    "--output",
    "--trace",
    "--agent",
    "--config",
    "--runs",
    "--min-pass-rate",
    "--retries",
    "--timeout",
    "--fail-fast",
    "--forbid-only",
    "--verbose",
    "--help",
    "--test",
    "--bench",
    "--logfile",
    "--report-time",
    "--ensure-time",
];

impl Arguments {
    /// Reads them.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub fn read(written: &[String]) -> Result<Arguments, Diagnostic> {
        let mut all = Arguments::default();
        let mut rest = written.iter();
        while let Some(argument) = rest.next() {
            let (flag, joined) = match argument.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_string())),
                _ => (argument.as_str(), None),
            };
            let mut value = || {
                let next = joined.clone().or_else(|| rest.next().cloned());
                next.ok_or_else(|| Diagnostic::new(format!("{flag} needs a value")))
            };
            match flag {
                "--exact" => all.exact = true,
                "--skip" => all.skip.push(value()?),
                "--list" => all.list = true,
                "--format" => {
                    all.format = match value()?.as_str() {
                        "pretty" => Format::Pretty,
                        "terse" => Format::Terse,
                        other => {
                            return Err(unknown(
                                "--format",
                                other,
                                "pretty or terse; reports are `--output`",
                            ));
                        }
                    }
                }
                "--ignored" => all.ignored = Ignored::Only,
                "--include-ignored" => all.ignored = Ignored::Included,
                "--test-threads" => all.parallel = Some(number("--test-threads", &value()?)?),
                "--color" => {
                    all.color = match value()?.as_str() {
                        "auto" => Color::Auto,
                        "always" => Color::Always,
                        "never" => Color::Never,
                        other => return Err(unknown("--color", other, "auto, always or never")),
                    }
                }
                "-q" | "--quiet" => all.quiet = true,
                // What examples print is not captured, and there are no benchmarks.
                "--nocapture" | "--no-capture" | "--show-output" | "--test" => {}
                "--tag" => all.tags.push(value()?),
                "-o" | "--output" => all.outputs.push(value()?.into()),
                "--trace" => all.trace = Some(value()?.into()),
                "-n" | "--agent" => all.agent = Some(value()?),
                "--simulator" => all.simulator = Some(value()?),
                "--config" => all.config = Some(value()?),
                "--runs" => all.runs = Some(number("--runs", &value()?)?),
                "--min-pass-rate" => {
                    let written = value()?;
                    let rate = written.parse().ok().filter(|rate| *rate > 0.0 && *rate <= 1.0);
                    all.min_pass_rate = Some(rate.ok_or_else(|| {
                        unknown("--min-pass-rate", &written, "a part of all runs: more than 0, and at most 1")
                    })?);
                }
                "--retries" => {
                    let written = value()?;
                    let wrong = |_| unknown("--retries", &written, "a whole number");
                    all.retries = Some(written.parse().map_err(wrong)?);
                }
                "--timeout" => all.timeout = Some(duration(&value()?)?),
                "--fail-fast" => all.fail_fast = true,
                "--forbid-only" => all.forbid_only = true,
                "--last-failed" => all.last_failed = true,
                "--no-store" => all.no_store = true,
                "-v" | "--verbose" => all.verbose = true,
                "-h" | "--help" => all.help = true,
                "-Z" => drop(value()?),
                flag if flag.starts_with('-') && flag.len() > 1 => {
                    let wrong = Diagnostic::new(format!("unknown argument `{flag}`"));
                    return Err(match nearest(flag, FLAGS) {
                        Some(near) => wrong.help(format!("did you mean `{near}`?")),
                        None => wrong.help("`--help` tells which there are"),
                    });
                }
                filter => all.filters.push(filter.to_string()),
            }
        }
        Ok(all)
    }
}

fn unknown(flag: &str, written: &str, known: &str) -> Diagnostic {
    Diagnostic::new(format!("{flag} {written}: {known}"))
}

fn number(flag: &str, written: &str) -> Result<usize, Diagnostic> {
    match written.parse() {
        Ok(number @ 1..=10_000) => Ok(number),
        _ => Err(unknown(flag, written, "a whole number from 1 to 10000")),
    }
}

fn duration(written: &str) -> Result<Duration, Diagnostic> {
    let duration = written.parse::<jiff::SignedDuration>().ok().and_then(|duration| duration.try_into().ok());
    duration
        .filter(|duration: &Duration| !duration.is_zero())
        .ok_or_else(|| unknown("--timeout", written, "a duration, for instance 500ms, 30s or 1m30s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Arguments, Diagnostic> {
        Arguments::read(&line.split(' ').map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_those_of_any_test() {
        let all =
            read("--nocapture booking --exact --test-threads=3 --format terse --skip slow --list").unwrap();
        assert_eq!(all.filters, ["booking"]);
        assert!(all.exact && all.list);
        assert_eq!((all.parallel, all.format, all.skip), (Some(3), Format::Terse, vec!["slow".to_string()]));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (line, words) in [
            ("--exakt", "unknown argument `--exakt`"),
            ("--test-threads 0", "--test-threads 0: a whole number from 1 to 10000"),
            ("--skip", "--skip needs a value"),
            ("--format json", "--format json: pretty or terse; reports are `--output`"),
            ("--timeout 30", "--timeout 30: a duration, for instance 500ms, 30s or 1m30s"),
            ("--min-pass-rate 2", "--min-pass-rate 2: a part of all runs: more than 0, and at most 1"),
        ] {
            assert_eq!(read(line).unwrap_err().message, words);
        }
        assert_eq!(read("--exakt").unwrap_err().help.as_deref(), Some("did you mean `--exact`?"));
    }
}
