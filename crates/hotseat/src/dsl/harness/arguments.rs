//! Command line arguments of a test file: those of `cargo test` and nextest, and some of `hotseat test`.

use std::path::PathBuf;
use std::time::Duration;

use hotseat_document::{Diagnostic, nearest_or};
use hotseat_engine::cases::{PassRate, PassRateError, parse_duration};

/// Text of `--help`.
pub(super) const HELP: &str = "\
Tests of an AI agent.

Usage: [FILTER]... [OPTIONS]          (after `--`: cargo test --test agents -- FILTER --tag slow)

Arguments:
  [FILTER]...             Run only examples whose names contain one of these; FILE:LINE runs the example at
                          this line

Arguments of any test:
      --exact             Match filters against whole names
      --skip FILTER       Skip examples whose names contain this; repeatable
      --list              List the examples instead of running them
      --format FORMAT     Format of --list: pretty or terse
      --ignored           Run only skipped examples
      --include-ignored   Also run skipped examples
      --test-threads N    Number of concurrent conversations
      --color WHEN        auto, always or never
  -q, --quiet             Hide examples that passed
      --nocapture, --show-output, --no-capture
                          Accepted and ignored: output is never captured

Arguments of `hotseat test`:
      --run REGEX         Run only examples whose names match; repeatable, any of them matches
  -k EXPR                 Run only examples for which this expression holds: words of names, files and tags
                          with `and`, `or`, `not` and brackets
      --grep REGEX        Run only examples whose name, file or tag matches; repeatable
      --tag TAG           Run only examples with this tag; repeatable, any of the tags matches
      --exclude-tag TAG   Run no examples with this tag; repeatable
  -o, --output FILE       Write a report: .json, .jsonl, .xml (JUnit), .html, .md; repeatable
      --trace FILE        Write all events of all conversations as JSON lines
  -n, --agent NAME        Test this agent of hotseat.yaml instead of the ones that examples name;
                          replay:PATH replays a recording of `hotseat test --record`, or a folder of
                          imported ones. Does not replace agents in the test program
      --endpoint URL      Contact the tested agent at this URL instead of its own
      --simulator WHO     Simulator: agents:ID or connectors:NAME
      --config FILE       Project file; default: the nearest hotseat.yaml, searched upwards
      --no-env-file       Do not read the file .env beside the project file
      --runs N            Number of runs of each example
      --min-pass-rate R   Minimum pass rate of these runs, for instance 0.8
      --retries N         Number of retries of a failed example
      --timeout DURATION  Default time limit of an example: 30s, 2m
      --fail-fast         Start no new example after a failure
      --last-failed       Run only examples that failed when they last ran, and have not passed since
      --no-store          Do not save the run
      --forbid-only       Fail if examples are focused (`fit`, `only`), for CI
  -v, --verbose           Show all conversations in full
  -h, --help              Print this help

Exit codes: 0 no example failed, 1 an example failed, 2 usage or configuration error, 3 run error,
4 no example was selected, 130 interrupted
";

/// Parsed command line arguments.
#[derive(Debug, Default)]
pub(super) struct HarnessArguments {
    pub filters: Vec<String>,
    pub exact: bool,
    pub skip: Vec<String>,
    pub list: bool,
    pub format: ListFormat,
    pub ignored: IgnoredMode,
    pub parallel: Option<usize>,
    pub color: ColorMode,
    pub quiet: bool,
    pub names: Vec<String>,
    pub keywords: Option<String>,
    pub texts: Vec<String>,
    pub tags: Vec<String>,
    pub excluded_tags: Vec<String>,
    pub outputs: Vec<PathBuf>,
    pub trace: Option<PathBuf>,
    pub agent: Option<String>,
    pub config: Option<String>,
    pub endpoint: Option<String>,
    pub no_env_file: bool,
    pub simulator: Option<String>,
    pub runs: Option<usize>,
    pub min_pass_rate: Option<PassRate>,
    pub retries: Option<usize>,
    pub timeout: Option<Duration>,
    pub fail_fast: bool,
    pub forbid_only: bool,
    pub last_failed: bool,
    pub no_store: bool,
    pub verbose: bool,
    pub help: bool,
}

/// Format of `--list`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListFormat {
    #[default]
    Pretty,
    /// Names only, for programs.
    Terse,
}

/// Handling of skipped examples.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnoredMode {
    #[default]
    Skipped,
    /// Runs only skipped examples.
    Only,
    /// Runs skipped examples, too.
    Included,
}

/// Selects coloured output.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColorMode {
    #[default]
    Auto,
    Always,
    Never,
}

const KNOWN_FLAGS: [&str; 38] = [
    "--last-failed",
    "--endpoint",
    "--no-env-file",
    "--run",
    "--grep",
    "--exclude-tag",
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

impl HarnessArguments {
    /// Parses the arguments.
    ///
    /// # Errors
    /// The first invalid argument.
    pub fn parse(written: &[String]) -> Result<HarnessArguments, Diagnostic> {
        let mut all = HarnessArguments::default();
        let mut rest = written.iter();
        while let Some(argument) = rest.next() {
            let (flag, mut joined) = match argument.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_string())),
                _ => (argument.as_str(), None),
            };
            let mut value = || {
                let next = joined.take().or_else(|| rest.next().cloned());
                next.ok_or_else(|| Diagnostic::new(format!("{flag} needs a value")))
            };
            match flag {
                "--exact" => all.exact = true,
                "--skip" => all.skip.push(value()?),
                "--list" => all.list = true,
                "--format" => {
                    all.format = match value()?.as_str() {
                        "pretty" => ListFormat::Pretty,
                        "terse" => ListFormat::Terse,
                        other => {
                            return Err(invalid_value(
                                "--format",
                                other,
                                "expected pretty or terse (write reports with `--output`)",
                            ));
                        }
                    }
                }
                "--ignored" => all.ignored = IgnoredMode::Only,
                "--include-ignored" => all.ignored = IgnoredMode::Included,
                "--test-threads" => all.parallel = Some(parse_count("--test-threads", &value()?)?),
                "--color" => {
                    all.color = match value()?.as_str() {
                        "auto" => ColorMode::Auto,
                        "always" => ColorMode::Always,
                        "never" => ColorMode::Never,
                        other => {
                            return Err(invalid_value("--color", other, "expected auto, always or never"));
                        }
                    }
                }
                "-q" | "--quiet" => all.quiet = true,
                // Output of examples is never captured, and there are no benchmarks.
                "--nocapture" | "--no-capture" | "--show-output" | "--test" => {}
                "--run" => all.names.push(value()?),
                "-k" => all.keywords = Some(value()?),
                "--grep" | "--filter" => all.texts.push(value()?),
                "--tag" => all.tags.push(value()?),
                "--exclude-tag" => all.excluded_tags.push(value()?),
                "-o" | "--output" => all.outputs.push(value()?.into()),
                "--trace" => all.trace = Some(value()?.into()),
                "-n" | "--agent" => all.agent = Some(value()?),
                "--simulator" => all.simulator = Some(value()?),
                "--endpoint" => all.endpoint = Some(value()?),
                "--no-env-file" => all.no_env_file = true,
                "--config" => all.config = Some(value()?),
                "--runs" | "--repeat" => all.runs = Some(parse_count("--runs", &value()?)?),
                "--min-pass-rate" => {
                    let written = value()?;
                    let wrong =
                        |error: PassRateError| invalid_value("--min-pass-rate", &written, &error.to_string());
                    all.min_pass_rate = Some(written.parse().map_err(wrong)?);
                }
                "--retries" => {
                    let written = value()?;
                    let wrong = |_| invalid_value("--retries", &written, "expected a whole number");
                    all.retries = Some(written.parse().map_err(wrong)?);
                }
                "--timeout" => {
                    let written = value()?;
                    let read = parse_duration(&written);
                    all.timeout = Some(read.map_err(|words| invalid_value("--timeout", &written, &words))?);
                }
                "--fail-fast" => all.fail_fast = true,
                "--forbid-only" => all.forbid_only = true,
                "--last-failed" | "--lf" => all.last_failed = true,
                "--no-store" => all.no_store = true,
                "-v" | "--verbose" => all.verbose = true,
                "-h" | "--help" => all.help = true,
                "-Z" => drop(value()?),
                flag if flag.starts_with('-') && flag.len() > 1 => {
                    let wrong = Diagnostic::new(format!("unknown argument `{flag}`"));
                    let list = || "`--help` lists all arguments".to_string();
                    return Err(wrong.help(nearest_or(flag, KNOWN_FLAGS, list)));
                }
                filter => all.filters.push(filter.to_string()),
            }
            if joined.is_some() {
                return Err(Diagnostic::new(format!("{flag} takes no value")));
            }
        }
        Ok(all)
    }
}

fn invalid_value(flag: &str, written: &str, known: &str) -> Diagnostic {
    Diagnostic::new(format!("{flag} {written}: {known}"))
}

fn parse_count(flag: &str, written: &str) -> Result<usize, Diagnostic> {
    match written.parse() {
        Ok(number @ 1..=10_000) => Ok(number),
        _ => Err(invalid_value(flag, written, "expected a whole number from 1 to 10000")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<HarnessArguments, Diagnostic> {
        HarnessArguments::parse(&line.split(' ').map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn parses_test_harness_arguments() {
        let all =
            read("--nocapture booking --exact --test-threads=3 --format terse --skip slow --list").unwrap();
        assert_eq!(all.filters, ["booking"]);
        assert!(all.exact && all.list);
        assert_eq!(
            (all.parallel, all.format, all.skip),
            (Some(3), ListFormat::Terse, vec!["slow".to_string()])
        );
    }

    #[test]
    fn rejects_invalid_arguments() {
        for (line, words) in [
            ("--exakt", "unknown argument `--exakt`"),
            ("--test-threads 0", "--test-threads 0: expected a whole number from 1 to 10000"),
            ("--skip", "--skip needs a value"),
            ("--forbid-only=false", "--forbid-only takes no value"),
            ("--help=1", "--help takes no value"),
            ("--format json", "--format json: expected pretty or terse (write reports with `--output`)"),
            (
                "--timeout 30",
                "--timeout 30: a number needs a unit: write 30s for seconds, or 30ms for milliseconds",
            ),
            ("--retries 1.5", "--retries 1.5: expected a whole number"),
            (
                "--min-pass-rate 2",
                "--min-pass-rate 2: expected a pass rate: more than 0 and at most 1, or up to 100%",
            ),
        ] {
            assert_eq!(read(line).unwrap_err().message, words);
        }
        assert_eq!(read("--exakt").unwrap_err().help.as_deref(), Some("did you mean `--exact`?"));
    }
}
