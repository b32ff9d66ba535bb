//! Command-line arguments. The doc comments are the help texts.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args as ClapArgs, Command, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use hotseat_checks::RoleReference;
use hotseat_engine::cases::{PassRate, parse_duration, parse_rate};
use hotseat_engine::config::{parse_bytes, parse_seconds};
use hotseat_engine::run::Shard;
use hotseat_report::compare::DEFAULT_CONFIDENCE;
use hotseat_report::view::EDITORS;
use hotseat_runtime::serve::parse_origin;

/// Headings of the flags of `hotseat test`, as in docs/command-line.md.
const CASES: &str = "Select the cases";
const CONVERSATIONS: &str = "Control the conversations";
const RUN: &str = "Control the run";
const OUTPUT: &str = "Write output";

/// End of `hotseat --help`.
const NOTES: &str = "\
Examples:
  hotseat init --endpoint http://127.0.0.1:8000/  # create a project for this agent
  hotseat test                                    # run all test cases
  hotseat test --runs 10                          # run each case 10 times
  hotseat show last                               # show the last run again
  hotseat compare last~1 last                     # find regressions between two runs

Documentation: docs/index.md in the repository of Hotseat";

/// End of `hotseat test --help`.
const TEST_NOTES: &str = "\
Examples:
  hotseat test                                    # all suites of the project
  hotseat test tests/first.test.yaml:4 -k greets  # the case at a line, or with a word in its name
  hotseat test -i \"Where is my order?\" -v         # a single message, without a suite
  hotseat test --runs 10 --min-pass-rate 0.9      # require 9 of 10 runs of each case to pass
  hotseat test -o report.html -o junit.xml        # reports for people and for CI
  hotseat test --last-failed                      # only the cases that failed last

Exit codes:
  0 all passed · 1 a case failed · 2 invalid arguments, configuration or case file
  3 the run could not be completed · 4 no case was selected · 130 interrupted

Documentation: docs/command-line.md in the repository of Hotseat";

/// End of `hotseat mcp --help`.
const MCP_NOTES: &str = "\
Examples:
  hotseat mcp bank                                     # in the agent's configuration: the server `bank` of the test
  hotseat mcp serve bank.json --port 9000              # a mock for trying out
  hotseat mcp record bank.mcp.jsonl -- npx bank-server # record a real server, to replay it";

/// End of `hotseat completions --help`.
const COMPLETIONS_NOTES: &str = "\
Examples:
  hotseat completions bash > ~/.local/share/bash-completion/completions/hotseat
  hotseat completions zsh > ~/.zfunc/_hotseat
  hotseat completions fish > ~/.config/fish/completions/hotseat.fish";

/// A test runner for conversational AI agents: talks to an agent and checks its replies and tool calls.
#[derive(Debug, Parser)]
#[command(name = "hotseat", version, max_term_width = 100, after_help = NOTES)]
pub struct CliArgs {
    #[command(subcommand)]
    pub command: CliCommand,
    /// Color the output. `auto` follows NO_COLOR, FORCE_COLOR and CLICOLOR_FORCE, else colors on a terminal.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    /// Do not read the file .env beside the project file.
    #[arg(long, global = true)]
    pub no_env_file: bool,
}

/// Declares the commands. Only the flags of the command that is run, or whose help is printed, are built: building
/// those of all commands takes longer than a conversation.
macro_rules! cli_commands {
    ($(#[doc = $about:literal] $command:ident($arguments:ty) = $name:literal,)*) => {
        #[derive(Debug)]
        pub enum CliCommand {
            $(#[doc = $about] $command($arguments),)*
        }

        impl Subcommand for CliCommand {
            fn augment_subcommands(program: Command) -> Command {
                program$(.subcommand(Command::new($name).about(summary($about)).defer(|command| {
                    // The description of the arguments is not that of the command.
                    <$arguments>::augment_args(command).about(summary($about)).long_about(None)
                })))*
            }

            fn augment_subcommands_for_update(program: Command) -> Command {
                CliCommand::augment_subcommands(program)
            }

            fn has_subcommand(name: &str) -> bool {
                [$($name),*].contains(&name)
            }
        }

        impl FromArgMatches for CliCommand {
            fn from_arg_matches(matches: &ArgMatches) -> Result<CliCommand, clap::Error> {
                CliCommand::from_arg_matches_mut(&mut matches.clone())
            }

            fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<CliCommand, clap::Error> {
                let (name, mut matches) =
                    matches.remove_subcommand().ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
                match name.as_str() {
                    $($name => <$arguments>::from_arg_matches_mut(&mut matches).map(CliCommand::$command),)*
                    _ => Err(clap::Error::new(ErrorKind::InvalidSubcommand)),
                }
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = CliCommand::from_arg_matches(matches)?;
                Ok(())
            }
        }
    };
}

cli_commands! {
    /// Run test cases against an agent.
    Test(Box<TestArgs>) = "test",
    /// List the test cases that `hotseat test` would run.
    List(ListArgs) = "list",
    /// Create a project file and a first suite.
    Init(InitArgs) = "init",
    /// Check what a run would find: project file, agents, models, suites, store, editor files.
    Doctor(DoctorArgs) = "doctor",
    /// Print the JSON Schema of a file format, for editors.
    Schema(SchemaArgs) = "schema",
    /// Serve an agent over AG-UI and the OpenAI chat completions API.
    Serve(ServeArgs) = "serve",
    /// Connect an agent to an MCP server of the running tests, serve a mock, or record a server.
    Mcp(McpArgs) = "mcp",
    /// Convert recorded conversations into test cases and recordings.
    Import(ImportArgs) = "import",
    /// Compare two runs: regressions, improvements, their significance, and where conversations diverge.
    Compare(CompareArgs) = "compare",
    /// List or prune saved runs.
    Runs(RunsArgs) = "runs",
    /// Show a saved run, or one case of it.
    Show(ShowArgs) = "show",
    /// Write each result of a report or a saved run as a file.
    Extract(ExtractArgs) = "extract",
    /// Show a run in the browser, live or afterwards.
    View(ViewArgs) = "view",
    /// Resume an interrupted run.
    Resume(ResumeArgs) = "resume",
    /// Re-evaluate a saved run with the current assertions, without contacting the agent.
    Recheck(RecheckArgs) = "recheck",
    /// Merge sharded runs (--shard) into one run.
    Merge(MergeArgs) = "merge",
    /// Print a completion script for a shell.
    Completions(CompletionsArgs) = "completions",
    /// Write the manual pages.
    Man(ManArgs) = "man",
}

/// Summary of a command: its description without blank and full stop.
fn summary(description: &'static str) -> &'static str {
    description.trim().trim_end_matches('.')
}

/// Selects the cases.
#[derive(Debug, ClapArgs)]
pub struct SelectionArgs {
    /// Suites to run: files, folders (*.test.yaml, *.test.jsonl, *_test.ts, …) or globs. FILE:LINE and FILE::NAME
    /// select cases of a file; any other word selects the cases with this word in their name, suite or tags.
    /// Default: `suites` of the project file.
    #[arg(value_name = "PATH|NAME", value_parser = non_empty)]
    pub paths: Vec<String>,
    /// Project file. Default: the nearest hotseat.yaml in this folder or above it.
    #[arg(long, value_name = "FILE", help_heading = CASES)]
    pub config: Option<PathBuf>,
    /// Test this agent of the project, overriding `target`. `replay:PATH` serves recordings in place of every
    /// agent.
    #[arg(short = 'n', long = "agent", visible_alias = "name", value_name = "NAME", help_heading = CASES)]
    pub agent: Option<String>,
    /// Contact the tested agent at this URL instead of its own. Without a project file: an AG-UI agent.
    #[arg(long, value_name = "URL", help_heading = CASES)]
    pub endpoint: Option<String>,
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Run only the cases that failed when they last ran, and have not passed since.
    #[arg(long, visible_alias = "lf", help_heading = CASES)]
    pub last_failed: bool,
    /// Run only the cases in this file: lines as `hotseat list --json` prints them.
    #[arg(long, value_name = "FILE", help_heading = CASES)]
    pub cases: Option<PathBuf>,
    /// Run one shard of the cases: 2/5 is the second of five. The suite and id of a case determine its shard;
    /// `hotseat merge` joins the runs.
    #[arg(long, value_name = "K/N", value_parser = Shard::parse, help_heading = CASES)]
    pub shard: Option<Shard>,
    /// Reject files that mark tests with `only`. Use it in CI, where `only` would hide the other tests.
    #[arg(long, help_heading = CASES)]
    pub forbid_only: bool,
}

/// Filters the cases by name, text and tag.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct FilterArgs {
    /// Run only cases whose id or name matches this regular expression. Can be repeated: any of them.
    #[arg(long, value_name = "REGEX", help_heading = CASES)]
    pub run: Vec<String>,
    /// Run only cases for which this expression holds: words with `and`, `or`, `not` and brackets. A word
    /// matches a part of the id, the name, the suite or a tag.
    #[arg(short = 'k', value_name = "EXPR", allow_hyphen_values = true, help_heading = CASES)]
    pub keywords: Option<String>,
    /// Run only cases whose id, name, suite or tag matches this regular expression. Can be repeated: any of
    /// them.
    #[arg(long, aliases = ["filter", "filter-pattern"], value_name = "REGEX", help_heading = CASES)]
    pub grep: Vec<String>,
    /// Run only cases with this tag. Can be repeated: any of them.
    #[arg(long, value_name = "TAG", value_parser = non_empty, help_heading = CASES)]
    pub tag: Vec<String>,
    /// Run no cases with this tag. Can be repeated.
    #[arg(long, value_name = "TAG", value_parser = non_empty, help_heading = CASES)]
    pub exclude_tag: Vec<String>,
}

/// Arguments of `hotseat test`.
#[derive(Debug, ClapArgs)]
#[command(after_help = TEST_NOTES)]
pub struct TestArgs {
    #[command(flatten)]
    pub select: SelectionArgs,
    #[command(flatten)]
    pub call: CallArgs,
    /// Run this instead of suites: a suite file, a message to the agent, a case generator
    /// (agents:ID?count=10&focus=errors, connectors:NAME or scripts:path.function), or `-` to read user
    /// messages from standard input.
    #[arg(short, long, value_name = "INPUT", value_parser = non_empty, conflicts_with_all = ["paths", "last_failed", "cases"], allow_hyphen_values = true, help_heading = CASES)]
    pub input: Option<String>,
    /// Validate suites and project file without contacting any agent.
    #[arg(long, help_heading = CASES)]
    pub dry_run: bool,
    /// Simulate the user with this agent, model or script in cases that name no simulator: agents:ID,
    /// connectors:NAME or scripts:path.function.
    #[arg(long, value_name = "ROLE", value_parser = RoleReference::parse, help_heading = CONVERSATIONS)]
    pub simulator: Option<RoleReference>,
    /// Ask the human at the keyboard (or read lines of standard input) whenever the agent waits for input
    /// that nothing else provides.
    #[arg(long, help_heading = CONVERSATIONS)]
    pub interactive: bool,
    /// Never ask a human, overriding cases and other flags.
    #[arg(long, help_heading = CONVERSATIONS)]
    pub skip_interactive: bool,
    /// Choose the result when the agent waits for input and none is provided, overriding cases.
    #[arg(long, value_enum, value_name = "ACTION", help_heading = CONVERSATIONS)]
    pub on_missing_input: Option<MissingInputArg>,
    /// Run up to N conversations at once. Default: `parallel` of the project file, or 8.
    #[arg(long, value_name = "N", value_parser = up_to_10000, help_heading = RUN)]
    pub parallel: Option<usize>,
    /// Limit the total duration of each case that sets no limit itself: 30s, 2m, 1m30s.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = RUN)]
    pub timeout: Option<Duration>,
    /// Run each case N times to measure its reliability; `reliability` targets are ignored. Default: `runs`
    /// of the project file, or 1.
    #[arg(long, alias = "repeat", value_name = "N", value_parser = up_to_10000, help_heading = RUN)]
    pub runs: Option<usize>,
    /// With repeated cases: require this share of the runs to pass, such as 0.8 or 80%. Default:
    /// `min_pass_rate` of the project file, or all.
    #[arg(long, value_name = "RATE", help_heading = RUN)]
    pub min_pass_rate: Option<PassRate>,
    /// With repeated cases: replace up to N invalid runs of a case (failures of a role or the machine, not
    /// the agent). Default: `max_invalid` of the project file, or one for every ten runs and at least 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=10_000), help_heading = RUN)]
    pub max_invalid: Option<u16>,
    /// With unrepeated cases: retry a failed case up to N times, overriding the cases.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=100), help_heading = RUN)]
    pub retries: Option<u8>,
    /// Start no new case after the first failure.
    #[arg(long, help_heading = RUN)]
    pub fail_fast: bool,
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// Run again whenever suites, scripts, agent files or the project file change, until `q` or Ctrl-C.
    #[arg(long, help_heading = RUN, conflicts_with_all = ["input", "json", "view", "dry_run", "interactive", "save", "record", "record_cassettes"])]
    pub watch: bool,
    /// Fail if a case, or an attempt of a repeated case, is skipped that is not marked `skip`, for example because the
    /// agent waits for missing input.
    #[arg(long, help_heading = RUN)]
    pub fail_on_skip: bool,
    /// Run this hook of the project file before the first case. If it fails, no case runs.
    #[arg(long, visible_alias = "before-all", value_name = "HOOK", help_heading = RUN)]
    pub before: Option<String>,
    /// Run this hook of the project file after the last case, even if cases failed.
    #[arg(long, visible_alias = "after-all", value_name = "HOOK", help_heading = RUN)]
    pub after: Option<String>,
    /// Write a report. The extension selects the format: .html, .md, .json, .jsonl, .xml (JUnit). A folder
    /// gets output-TIME.jsonl. Can be repeated.
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub output: Vec<PathBuf>,
    /// Let an agent, model or script write the human-readable reports, such as report.md: agents:ID,
    /// connectors:NAME or scripts:path.function. Without such an `--output` the report goes to standard
    /// output.
    #[arg(short, long, value_name = "ROLE", value_parser = reporter, help_heading = OUTPUT)]
    pub reporter: Option<RoleReference>,
    /// Print only JSON lines, for programs: events, errors and, as the last line, a summary.
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Show every conversation in full, including passed cases.
    #[arg(short, long, help_heading = OUTPUT)]
    pub verbose: bool,
    /// Write every event of every conversation as JSON lines, including the raw agent output.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub trace: Option<PathBuf>,
    /// Record the agent's behavior in each case. Serve the recordings with `-n replay:DIR`.
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub record: Option<PathBuf>,
    /// Record what others answer in each case: relayed models, proxied MCP servers, simulators and judges.
    #[arg(long, value_name = "DIR", help_heading = OUTPUT, conflicts_with = "cassettes")]
    pub record_cassettes: Option<PathBuf>,
    /// Answer from recorded cassettes in place of relayed models, proxied MCP servers, simulators and judges.
    #[arg(long, value_name = "DIR", help_heading = RUN)]
    pub cassettes: Option<PathBuf>,
    /// Save conversations continued by a human or a simulated user as test cases with fixed turns.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub save: Option<PathBuf>,
    /// Serve the page of this run while it is running, as `hotseat view` does. On a terminal the page stays
    /// available until Ctrl-C; otherwise it closes with the run.
    #[arg(long, help_heading = OUTPUT, conflicts_with = "dry_run")]
    pub view: bool,
    /// Do not save this run, overriding `store` of the project file.
    #[arg(long, help_heading = OUTPUT)]
    pub no_store: bool,
}

/// Breaks the tool calls of cases that pass.
#[derive(Debug, Default, ClapArgs)]
pub struct SweepArgs {
    /// After the run, repeat each case that passed once for each of its calls at MCP servers of the test and
    /// each kind of fault, and show what the agent did.
    #[arg(long, value_enum, value_name = "MODE", help_heading = RUN, conflicts_with_all = ["watch", "input"])]
    pub faults: Option<FaultsArg>,
    /// With --faults: only these faults, separated by commas. Default: all.
    #[arg(long, value_name = "FAULTS", value_delimiter = ',', requires = "faults", help_heading = RUN, value_parser = clap::builder::PossibleValuesParser::new(hotseat_mcp::FaultKind::NAMES))]
    pub fault_kinds: Vec<String>,
    /// With --faults: run at most N conversations with a fault. Default: 500.
    #[arg(long, value_name = "N", requires = "faults", help_heading = RUN, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub fault_limit: Option<u32>,
    /// With --faults: select other conversations if there are more than the limit. Default: 0.
    #[arg(long, value_name = "N", requires = "faults", help_heading = RUN)]
    pub fault_seed: Option<u64>,
}

/// How a run breaks tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FaultsArg {
    /// Every call with every kind of fault.
    Sweep,
}

/// Sets identity and connector of the calls to agents.
#[derive(Debug, ClapArgs)]
pub struct CallArgs {
    /// Use this connector for every turn, overriding `options.connector` of cases and turns.
    #[arg(short, long, value_name = "NAME", value_parser = non_empty, help_heading = CONVERSATIONS)]
    pub connector: Option<String>,
    /// Call agents on behalf of this user. Default: test-user.
    #[arg(short, long, value_name = "ID", value_parser = non_empty, help_heading = CONVERSATIONS)]
    pub user: Option<String>,
    /// Team of the user. Default: test-team.
    #[arg(short, long, value_name = "ID", value_parser = non_empty, help_heading = CONVERSATIONS)]
    pub team: Option<String>,
    /// Language and region of the user. Default: en-us.
    #[arg(long, value_name = "LOCALE", value_parser = non_empty, help_heading = CONVERSATIONS)]
    pub locale: Option<String>,
    /// Read user identity and metadata from this JSON file. Flags and cases take precedence.
    #[arg(long, value_name = "FILE", help_heading = CONVERSATIONS)]
    pub ctx: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct ListArgs {
    #[command(flatten)]
    pub select: SelectionArgs,
    /// Print one JSON object per case.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct InitArgs {
    /// Folder to create the files in.
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
    /// URL of the agent. Default: http://127.0.0.1:8000/
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Create a TypeScript suite, with type definitions for editors.
    #[arg(long)]
    pub typescript: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit codes: 0 a run can start · 2 the files or the environment prevent it · 3 an agent does not answer"
)]
pub struct DoctorArgs {
    /// Project file. Default: the nearest hotseat.yaml in this folder or above it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check a run with this agent, as `hotseat test -n`.
    #[arg(short = 'n', long = "agent", value_name = "NAME")]
    pub agent: Option<String>,
    /// Check a run with the agent at this URL.
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct SchemaArgs {
    /// File format.
    #[arg(value_name = "KIND", value_enum, default_value_t = SchemaKind::Suite)]
    pub kind: SchemaKind,
    /// Print a reference page in Markdown instead.
    #[arg(long)]
    pub markdown: bool,
}

/// Locates the saved runs.
#[derive(Debug, ClapArgs)]
pub struct StoreArgs {
    /// Project file that the runs belong to. Default: the nearest hotseat.yaml in this folder or above it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// File of saved runs. Default: .hotseat/runs.db beside the project file.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub store: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct RunsArgs {
    #[command(flatten)]
    pub location: StoreArgs,
    /// List the last N runs; 0 lists all.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Print one JSON object per run.
    #[arg(long)]
    pub json: bool,
    /// Delete the runs that exceed the age or size limits of `store` in the project file.
    #[arg(long)]
    pub prune: bool,
    /// With --prune: delete runs older than this instead: 90d, 12h, 4w.
    #[arg(long, value_name = "TIME", value_parser = max_age, requires = "prune")]
    pub max_age: Option<Duration>,
    /// With --prune: delete the oldest runs until the rest fits this size instead: 1GB, 500MB.
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "prune")]
    pub max_size: Option<u64>,
}

#[derive(Debug, ClapArgs)]
pub struct ShowArgs {
    /// Run: its id, a prefix of the id, or `last` (`last~1` is the run before).
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    /// Show this case in full: its id, or its place as `FILE:LINE`.
    #[arg(value_name = "CASE")]
    pub case: Option<String>,
    #[command(flatten)]
    pub location: StoreArgs,
    /// Write the report that the run itself would have written. The extension selects the format. Can be
    /// repeated.
    #[arg(short, long, value_name = "FILE", conflicts_with = "case")]
    pub output: Vec<PathBuf>,
    /// Write every event of every conversation as JSON lines.
    #[arg(long, value_name = "FILE", conflicts_with = "case")]
    pub trace: Option<PathBuf>,
    /// Export the run to a file, for example to merge it with runs of other machines.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["case", "output", "trace", "json", "verbose"])]
    pub export: Option<PathBuf>,
    /// Show every conversation in full, including passed cases.
    #[arg(short, long)]
    pub verbose: bool,
    /// Print the events of the run or of the case as JSON lines. They are the same with `--verbose`.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct ExtractArgs {
    /// Run: a report (.json or .jsonl), or a saved run by `last`, its id or a prefix of its id.
    #[arg(value_name = "REPORT")]
    pub run: String,
    /// Write only the results of the cases with these ids.
    #[arg(value_name = "CASE")]
    pub cases: Vec<String>,
    #[command(flatten)]
    pub location: StoreArgs,
    /// Folder to write to. Default: the name of the report without its extension, or `run-ID`.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Format of the files: `markdown` for people, `json` for the result as in the report.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "markdown")]
    pub format: ExtractFileFormat,
}

/// Format of extracted results.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ExtractFileFormat {
    #[value(alias = "md")]
    Markdown,
    Json,
}

#[derive(Debug, ClapArgs)]
pub struct ViewArgs {
    /// Run: its id, a prefix of the id, or `last` (`last~1` is the run before). Default: the run that is
    /// running, else the last one.
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    #[command(flatten)]
    pub location: StoreArgs,
    /// Listen on this port of this machine; 0 picks a free port.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,
    /// Editor that links to files open: `vscode`, `cursor`, `zed`, `idea` or `none`, or a link with `{file}`,
    /// `{line}` and `{column}`, such as `vscode://file{file}:{line}`. Default: the setting of the page.
    #[arg(long, value_name = "EDITOR", value_parser = editor_link)]
    pub editor: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub struct MergeArgs {
    /// Runs to merge: ids, or files, either written by `hotseat show --export` or whole stores (their last
    /// run is used).
    #[arg(value_name = "RUN_OR_FILE", required = true, num_args = 1..)]
    pub runs: Vec<String>,
    #[command(flatten)]
    pub location: StoreArgs,
    /// Write a report of the merged run. The extension selects the format. Can be repeated.
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct ResumeArgs {
    /// Run: its id, a prefix of the id, or `last`.
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    #[command(flatten)]
    pub location: StoreArgs,
    /// Run up to N conversations at once. Default: as the run was started.
    #[arg(long, value_name = "N", value_parser = up_to_10000)]
    pub parallel: Option<usize>,
    /// Write a report of the whole run, in addition to those the run was started with. Can be repeated.
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<PathBuf>,
    /// Show every conversation in full, including passed cases.
    #[arg(short, long)]
    pub verbose: bool,
    /// Print only JSON lines, for programs.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Exit codes: as for `hotseat test`. A case without a saved conversation fails.")]
pub struct RecheckArgs {
    /// Run: its id, a prefix of the id, or `last`.
    #[arg(id = "saved_run", value_name = "RUN", default_value = "last")]
    pub run: String,
    /// Suites whose assertions are evaluated, FILE:LINE, FILE::NAME, or words in names of cases. Default: the
    /// suites of the run, in their current state.
    #[arg(value_name = "SUITE|NAME", value_parser = non_empty)]
    pub suites: Vec<String>,
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub location: StoreArgs,
    /// Ask judges the questions that the run has no answer for. Without it, such checks end in an error.
    #[arg(long)]
    pub judge: bool,
    /// Write a report. The extension selects the format. Can be repeated.
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<PathBuf>,
    /// Show every conversation in full, including passed cases.
    #[arg(short, long)]
    pub verbose: bool,
    /// Print only JSON lines, for programs.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit codes: 0 no significant regression · 1 significant regression · 2 a run cannot be read · \
4 the runs share no comparable case"
)]
pub struct CompareArgs {
    /// First run: a report (.json or .jsonl), or a saved run by `last`, its id or a prefix of its id.
    #[arg(value_name = "BEFORE")]
    pub before: String,
    /// Second run.
    #[arg(value_name = "AFTER")]
    pub after: String,
    #[command(flatten)]
    pub location: StoreArgs,
    /// Print the whole comparison as JSON.
    #[arg(long)]
    pub json: bool,
    /// Also fail if a case that passed now fails, is skipped or is missing, even if that is not significant.
    #[arg(long)]
    pub strict: bool,
    /// Also compare cases whose user messages differ, such as imported conversations or those of a simulated
    /// user.
    #[arg(long)]
    pub other_inputs: bool,
    /// Confidence level: with 0.95, at most one in twenty comparisons of unchanged agents reports a change.
    #[arg(long, value_name = "LEVEL", value_parser = confidence, default_value_t = DEFAULT_CONFIDENCE)]
    pub confidence: f64,
}

#[derive(Debug, ClapArgs)]
pub struct ImportArgs {
    #[command(subcommand)]
    pub source: ImportSource,
}

#[derive(Debug, Subcommand)]
pub enum ImportSource {
    /// Import conversations in OpenAI's message format: one list of messages, a list of such lists, or one
    /// per line.
    OpenaiTranscripts(TranscriptArgs),
}

#[derive(Debug, ClapArgs)]
pub struct TranscriptArgs {
    /// File to import: JSON or JSON lines.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Folder for the suite and its `recordings/`.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Choose the assertions for conversations whose data lists the expected calls.
    #[arg(long, value_enum, value_name = "ASSERTION", default_value_t = ExpectedCallsArg::Calls)]
    pub expect: ExpectedCallsArg,
    /// Tools that change something. Calls of these tools that the data does not expect are asserted to be
    /// absent.
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    pub writes: Vec<String>,
    /// Write only the suite, without recordings, to test a live agent.
    #[arg(long)]
    pub cases_only: bool,
    /// Skip invalid conversations instead of failing.
    #[arg(long)]
    pub skip_invalid: bool,
    /// Replace an existing suite, and recordings of other conversations with the same ids.
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExpectedCallsArg {
    /// Each expected call is made, in any order; other calls are allowed.
    Calls,
    /// The expected calls are made in order; other calls are allowed.
    Order,
    /// No assertions.
    None,
}

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true, after_help = MCP_NOTES)]
pub struct McpArgs {
    /// Server of the running tests to connect to, over standard input and output. Tests set HOTSEAT_MCP, which
    /// contains the address.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    #[command(subcommand)]
    pub command: Option<McpCommand>,
}

#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Serve a mock, a proxy or a recording over HTTP until Ctrl-C.
    Serve(McpServeArgs),
    /// List the tools of a server and write them, with all other lists, as a recording.
    Record(McpRecordArgs),
}

#[derive(Debug, ClapArgs)]
pub struct McpServeArgs {
    /// A definition of a mock (.json), or a recording (.jsonl).
    #[arg(value_name = "FILE", required_unless_present_any = ["url", "program"], conflicts_with_all = ["url", "program"])]
    pub file: Option<PathBuf>,
    /// Pass requests on to the server at this URL.
    #[arg(long, value_name = "URL", conflicts_with = "program")]
    pub url: Option<String>,
    /// Listen on this port; 0 picks a free port.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,
    /// Record the exchanges of the proxied server in this file (.mcp.jsonl), written at the end.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Pass requests on to this program, which is an MCP server on standard input and output.
    #[arg(last = true, value_name = "COMMAND")]
    pub program: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub struct McpRecordArgs {
    /// File to write (.mcp.jsonl).
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The server at this URL.
    #[arg(long, value_name = "URL", required_unless_present = "program", conflicts_with = "program")]
    pub url: Option<String>,
    /// This program, which is an MCP server on standard input and output.
    #[arg(last = true, value_name = "COMMAND")]
    pub program: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub struct ServeArgs {
    /// Agent to serve: a file, or a folder that contains agent.yaml.
    #[arg(value_name = "AGENT")]
    pub agent: PathBuf,
    /// Project file whose connectors the agent can use. Default: the nearest hotseat.yaml in this folder or
    /// above it, else above the agent.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Use this connector instead of the agent's own.
    #[arg(short, long, value_name = "NAME", value_parser = non_empty)]
    pub connector: Option<String>,
    /// Read requests from standard input and write replies to standard output as JSON lines, the protocol of
    /// `type: command` agents. Opens no port.
    #[arg(long, conflicts_with_all = ["port", "host", "allow_origin", "max_connections", "head_timeout"])]
    pub stdio: bool,
    /// Listen on this port; 0 picks a free port.
    #[arg(long, value_name = "N", default_value_t = 8000)]
    pub port: u16,
    /// Listen on this address. Any address but a local one gives other machines access to the agent.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = host)]
    pub host: IpAddr,
    /// Save conversations and memories in this SQLite file. Default: discard them when the server stops.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["max_conversations", "max_size", "max_memories"])]
    pub store: Option<PathBuf>,
    /// How many connections are open at once; further ones wait.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = positive, help_heading = "Limits")]
    pub max_connections: usize,
    /// How long a client may take for the head of a request.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, help_heading = "Limits")]
    pub head_timeout: Duration,
    /// How many conversations are kept without --store; the ones that were used longest ago are forgotten.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = positive, help_heading = "Limits")]
    pub max_conversations: usize,
    /// How large they may be together.
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = size, help_heading = "Limits")]
    pub max_size: u64,
    /// How many records agents remember without --store, over all agents; the oldest are forgotten.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = positive, help_heading = "Limits")]
    pub max_memories: usize,
    /// Allow web pages of this origin to use the agent, such as http://localhost:3000. Can be repeated.
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
    pub allow_origin: Vec<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = COMPLETIONS_NOTES)]
pub struct CompletionsArgs {
    /// Shell to complete commands in.
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

#[derive(Debug, ClapArgs)]
pub struct ManArgs {
    /// Folder to write the pages to: hotseat.1, and a page for each command.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaKind {
    /// Test case files.
    Suite,
    /// The project file, hotseat.yaml.
    Project,
    /// Agent files, agent.yaml.
    Agent,
    /// Task files of agents.
    Task,
    /// Workflow files of agents.
    Workflow,
    /// Scripts of language models.
    Script,
    /// Agent recordings.
    Recording,
    /// Context files for --ctx.
    Ctx,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MissingInputArg {
    /// Skip the case.
    Skip,
    /// Fail the case.
    Fail,
    /// End the conversation and evaluate it as it is.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

impl ColorChoice {
    /// Returns the choice of arguments that could not be parsed, or that ask for help.
    pub fn from_arguments(arguments: impl Iterator<Item = OsString>) -> ColorChoice {
        let words: Vec<String> = arguments.filter_map(|argument| argument.into_string().ok()).collect();
        let value =
            words.iter().enumerate().rev().find_map(|(place, word)| match word.strip_prefix("--color")? {
                "" => words.get(place + 1).map(String::as_str),
                value => value.strip_prefix('='),
            });
        value.and_then(|value| ColorChoice::from_str(value, false).ok()).unwrap_or(ColorChoice::Auto)
    }
}

/// Renamed flags: command, former name, current name.
const RENAMED_FLAGS: [(&str, &str, &str); 2] =
    [("test", "--redraws", "--max-invalid"), ("runs", "--keep", "--max-age")];

/// Flags of other test tools, with what to write here.
const PEER_FLAGS: [(&[&str], &str); 16] = [
    (&["-m", "--marker", "--tags", "--include-tag"], "'--tag TAG' selects cases by tag"),
    (
        &["--grep-invert", "--exclude", "--deselect"],
        "'-k \"not WORD\"' or '--exclude-tag TAG' leaves cases out",
    ),
    (&["--test-name-pattern", "--testNamePattern"], "'--run REGEX' selects cases by name"),
    (&["-f", "-g"], "'--grep REGEX' selects cases; so does a word of their names, without a flag"),
    (&["--ui", "--open", "--show-report"], "'--view' shows the run in the browser"),
    (
        &["--filter-failing", "--only-failures", "--failed", "--rerun-failed"],
        "'--last-failed' runs what failed",
    ),
    (&["--count", "--iterations", "--trials", "--repeat-each", "--epochs"], "'--runs N' repeats each case"),
    (&["-x", "--bail", "--exitfirst", "--maxfail", "--max-failures"], "'--fail-fast' stops after a failure"),
    (&["-j", "--workers", "--concurrency", "--max-concurrency", "--jobs"], "'--parallel N' sets the number"),
    (&["--junitxml", "--junit", "--junit-xml"], "'-o report.xml' writes a JUnit report"),
    (
        &["--html", "--report", "--export", "--out"],
        "'-o FILE' writes a report: .html, .md, .json, .jsonl, .xml",
    ),
    (&["--model", "--provider", "--providers", "-p"], "'-n NAME' selects an agent, '-c NAME' its connector"),
    (&["--env-file", "--env-path"], "the file .env beside the project file is read"),
    (&["--collect-only", "--co", "--list-tests"], "'hotseat list' prints the cases"),
    (&["--base-url", "--url", "--target"], "'--endpoint URL' sets the address of the agent"),
    (&["--update-snapshots", "--snapshot-update"], "there are no snapshots; '--record DIR' records an agent"),
];

/// Commands of other test tools, with the command here.
const PEER_COMMANDS: [(&[&str], &str); 3] = [
    (&["run", "exec", "execute", "eval", "evaluate", "check"], "'hotseat test' runs the cases"),
    (&["ls", "collect"], "'hotseat list' prints the cases"),
    (&["diff"], "'hotseat compare' compares two runs"),
];

/// Formats of reports that other tools name after `--reporter`, with the file for `-o`.
const PEER_REPORTERS: [(&[&str], &str); 5] = [
    (&["junit", "xunit", "xml"], "-o report.xml"),
    (&["json"], "-o report.json"),
    (&["jsonl", "ndjson", "events"], "--json"),
    (&["html"], "-o report.html"),
    (&["markdown", "md"], "-o report.md"),
];

/// Adds to the error about an unknown flag or command its current name, or what stands here for one of another tool.
pub fn with_known_name(mut error: clap::Error, arguments: impl Iterator<Item = OsString>) -> clap::Error {
    if let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) {
        let peer = PEER_COMMANDS.iter().find(|(commands, _)| commands.contains(&unknown.as_str()));
        if let Some((_, tip)) = peer {
            error.remove(ContextKind::SuggestedSubcommand);
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*tip).into()]));
        }
        return error;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return error };
    let arguments: Vec<OsString> = arguments.collect();
    let has = |command: &str| arguments.iter().any(|argument| argument == command);
    let renamed = RENAMED_FLAGS.iter().find(|(command, former, _)| former == unknown && has(command));
    let peer = PEER_FLAGS.iter().find(|(flags, _)| flags.contains(&unknown.as_str()));
    let tip = match (renamed, peer) {
        (Some((_, _, current)), _) => format!("it is called '{current}'"),
        (None, Some((_, tip))) if has("test") || has("list") => (*tip).to_string(),
        (None, _) => return error,
    };
    error.remove(ContextKind::SuggestedArg);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// Parses `--reporter`, the role that writes a report.
fn reporter(text: &str) -> Result<RoleReference, String> {
    let format = PEER_REPORTERS.iter().find(|(names, _)| names.contains(&text));
    match format {
        Some((_, flag)) => Err(format!("formats of reports are chosen by file: write `{flag}`")),
        None => RoleReference::parse(text).map_err(|error| error.to_string()),
    }
}

fn non_empty(text: &str) -> Result<String, String> {
    match text {
        "" => Err("it is empty, perhaps because a variable of the shell is not set".to_string()),
        text => Ok(text.to_string()),
    }
}

fn up_to_10000(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=10_000) => Ok(n),
        _ => Err("expected a whole number from 1 to 10000".to_string()),
    }
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("expected a whole number greater than 0".to_string()),
    }
}

fn confidence(text: &str) -> Result<f64, String> {
    match parse_rate(text) {
        Some(part) if part > 0.0 && part < 1.0 => Ok(part),
        _ => Err("expected a number between 0 and 1, such as 0.95 or 95%".to_string()),
    }
}

fn editor_link(text: &str) -> Result<String, String> {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let is_scheme = scheme.is_some_and(|scheme| {
        !scheme.is_empty()
            && !["javascript", "data", "vbscript"].contains(&scheme.as_str())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
    });
    match EDITORS.contains(&text) || (is_scheme && text.contains("{file}")) {
        true => Ok(text.to_string()),
        false => {
            Err(format!("expected {}, or a link such as vscode://file{{file}}:{{line}}", EDITORS.join(", ")))
        }
    }
}

fn max_age(text: &str) -> Result<Duration, String> {
    let seconds = parse_seconds(text).ok_or_else(|| "expected a duration such as 90d, 12h or 4w".to_string());
    seconds.map(Duration::from_secs)
}

fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "expected a size such as 1GB or 500MB".to_string())
}

fn host(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        other => other.parse().map_err(|_| "expected an IP address such as 127.0.0.1".to_string()),
    }
}
