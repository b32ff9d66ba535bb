//! The command line.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use hotseat::checks::Reference;
use hotseat::config::{bytes, seconds};
use hotseat::run::{PassRate, Shard};

/// Puts an AI agent in the hot seat: holds conversations with it and checks what it did.
#[derive(Debug, Parser)]
#[command(name = "hotseat", version, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
    /// When to use colours; `auto` is on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run test cases against an agent.
    Test(Box<TestArgs>),
    /// List the test cases that `hotseat test` would run.
    List(ListArgs),
    /// Write a project file and a first suite.
    Init(InitArgs),
    /// Print the JSON Schema of suites or of the project file, for editors.
    Schema(SchemaArgs),
    /// Serve an agent over AG-UI and chat completions.
    Serve(ServeArgs),
    /// Make cases and recordings of conversations that others held.
    Import(ImportArgs),
    /// Compare two runs: what got worse or better, whether that is more than chance, and where conversations part.
    Compare(CompareArgs),
    /// List the runs that are kept.
    Runs(RunsArgs),
    /// Show a run that is kept, or one conversation of it.
    Show(ShowArgs),
    /// Show a run in the browser, while it goes on and later.
    View(ViewArgs),
    /// Go on with a run that was broken off.
    Resume(ResumeArgs),
    /// Decide the conversations of a run again by what its suites assert now; nobody is contacted.
    Recheck(RecheckArgs),
    /// Join runs of parts of the same cases (--shard) into one.
    Merge(MergeArgs),
}

/// Which cases are meant.
#[derive(Debug, ClapArgs)]
pub struct SelectArgs {
    /// Suites: files, folders (their *.test.yaml, *.test.jsonl, *_test.ts, …) or globs. Default: `suites` of the project file.
    #[arg(value_name = "PATH")]
    pub paths: Vec<String>,
    /// Project file. Default: hotseat.yaml of this folder or the nearest one above it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Test this one of the project's `agents`, whatever `target` and the places of suites say; `replay:PATH` serves
    /// recordings in place of all agents.
    #[arg(short = 'n', long = "agent", visible_alias = "name", value_name = "NAME")]
    pub agent: Option<String>,
    /// Only cases whose id or name fits this regular expression.
    #[arg(long, value_name = "REGEX")]
    pub run: Option<String>,
    /// Refuse files in which tests are marked `only`: for CI, where the others would be missed.
    #[arg(long)]
    pub forbid_only: bool,
}

/// Exit codes: 0 nothing failed, 1 some case failed, 2 usage, configuration or case file, 3 the run could not be
/// carried out, 4 nothing was selected, 130 interrupted.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit codes: 0 nothing failed · 1 some case failed · 2 usage, configuration or case file · \
3 the run could not be carried out · 4 nothing was selected · 130 interrupted"
)]
pub struct TestArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub call: CallArgs,
    /// What to run: a suite, a message to the agent, whoever makes cases up (agents:ID?count=10&focus=errors,
    /// connectors:NAME or scripts:path.function), or - to type the conversation or pipe it in line by line.
    #[arg(short, long, value_name = "WHAT", conflicts_with = "paths", allow_hyphen_values = true)]
    pub input: Option<String>,
    /// Write a report; the ending names its format: .html, .md, .json, .jsonl, .xml (JUnit). In a folder:
    /// output-TIME.jsonl. Can be given several times.
    #[arg(short, long, value_name = "FILE", help_heading = "Reports")]
    pub output: Vec<PathBuf>,
    /// Write every event of every conversation, with what the agent sent, as JSON lines.
    #[arg(long, value_name = "FILE", help_heading = "Reports")]
    pub trace: Option<PathBuf>,
    /// Let a helper write the reports that are not made for programs, such as report.md and report.html: agents:ID,
    /// connectors:NAME or scripts:path.function. Without such a report it goes to standard output.
    #[arg(short, long, value_name = "WHO", value_parser = reference, help_heading = "Reports")]
    pub reporter: Option<Reference>,
    /// Save conversations that a person or a simulated user went on with as cases, with all that was said as turns.
    #[arg(long, value_name = "FILE", help_heading = "Reports")]
    pub save: Option<PathBuf>,
    /// Record what the agent does in each case into this folder, to be served again by `-n replay:DIR`.
    #[arg(long, value_name = "DIR", help_heading = "Reports")]
    pub record: Option<PathBuf>,
    /// Show every conversation whole, also where nothing failed.
    #[arg(short, long, help_heading = "Reports")]
    pub verbose: bool,
    /// Print events as JSON lines and nothing else, for programs: errors are events, too, and the last line is a summary.
    #[arg(long, help_heading = "Reports", conflicts_with = "verbose")]
    pub json: bool,
    /// How many conversations are held at once. Default: `parallel` of the project file, or 8.
    #[arg(long, value_name = "N", value_parser = up_to_10000, help_heading = "Run")]
    pub parallel: Option<usize>,
    /// How long all turns of a case together may take, where the case does not say: 30s, 2m, 1m30s.
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Run")]
    pub timeout: Option<Duration>,
    /// Who simulates the user of cases that have a simulated user and do not say who it is: agents:ID,
    /// connectors:NAME or scripts:path.function.
    #[arg(long, value_name = "WHO", value_parser = reference, help_heading = "Conversations")]
    pub simulator: Option<Reference>,
    /// Ask the person at the keyboard (or read lines of standard input) whenever the agent waits and nobody else
    /// answers it.
    #[arg(long, help_heading = "Conversations")]
    pub interactive: bool,
    /// Never ask a person, whatever cases and other flags say.
    #[arg(long, help_heading = "Conversations")]
    pub skip_interactive: bool,
    /// What happens when the agent waits and nobody answers it, whatever cases say.
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Conversations")]
    pub on_missing_input: Option<MissingInput>,
    /// How many times each case is run, to see how steady it is; declared `reliability` is put aside. Default: `runs` of the project file, or 1.
    #[arg(long, value_name = "N", value_parser = up_to_10000, help_heading = "Run")]
    pub runs: Option<usize>,
    /// Where cases are run several times: how much of the runs of a case has to pass, as 0.8 or 80%. Default:
    /// `min_pass_rate` of the project file, or all of them.
    #[arg(long, value_name = "RATE", value_parser = pass_rate, help_heading = "Run")]
    pub min_pass_rate: Option<PassRate>,
    /// Where cases are run several times: how many runs of a case are made again because a helper or the machine has
    /// spoiled them. Default: `redraws` of the project file, or one for each ten runs, and at least 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=10_000), help_heading = "Run")]
    pub redraws: Option<u16>,
    /// Where cases are run once: how often one that fails is tried again, whatever it says itself.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=100), help_heading = "Run")]
    pub retries: Option<u8>,
    /// Run this hook of the project file before the first case; if it fails, nothing runs.
    #[arg(long, visible_alias = "before-all", value_name = "HOOK", help_heading = "Run")]
    pub before: Option<String>,
    /// Run this hook of the project file after the last case, whatever came of it.
    #[arg(long, visible_alias = "after-all", value_name = "HOOK", help_heading = "Run")]
    pub after: Option<String>,
    /// Run only what failed in the last run that is kept.
    #[arg(long, conflicts_with_all = ["input", "shard"], help_heading = "Run")]
    pub last_failed: bool,
    /// Run one of several parts of the cases: 2/5 is the second of five. Which part a case belongs to follows from its
    /// suite and its id; `hotseat merge` joins the runs.
    #[arg(long, value_name = "K/N", value_parser = shard, help_heading = "Run")]
    pub shard: Option<Shard>,
    /// Do not keep this run, whatever `store` of the project file says.
    #[arg(long, help_heading = "Reports")]
    pub no_store: bool,
    /// Serve the page of this run while it goes on, as `hotseat view` does, and say where on standard error. On a terminal
    /// the page stays until Ctrl-C, elsewhere it ends with the run.
    #[arg(long, help_heading = "Reports", conflicts_with = "dry_run")]
    pub view: bool,
    /// Start no new case after one has failed.
    #[arg(long, help_heading = "Run")]
    pub fail_fast: bool,
    /// Fail when a case is skipped that does not say so itself, for instance because nobody answers the agent.
    #[arg(long, help_heading = "Run")]
    pub fail_on_skip: bool,
    /// Check suites and project file, and contact nobody.
    #[arg(long, help_heading = "Run")]
    pub dry_run: bool,
}

/// How agents are spoken to.
#[derive(Debug, ClapArgs)]
pub struct CallArgs {
    /// The connector of every turn, whatever `options.connector` of cases and turns says.
    #[arg(short, long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), help_heading = "Calls")]
    pub connector: Option<String>,
    /// The user on whose behalf agents are spoken to. Default: test-user.
    #[arg(short, long, value_name = "ID", value_parser = NonEmptyStringValueParser::new(), help_heading = "Calls")]
    pub user: Option<String>,
    /// The team of the user. Default: test-team.
    #[arg(short, long, value_name = "ID", value_parser = NonEmptyStringValueParser::new(), help_heading = "Calls")]
    pub team: Option<String>,
    /// The language and region of the user. Default: en-us.
    #[arg(long, value_name = "LOCALE", value_parser = NonEmptyStringValueParser::new(), help_heading = "Calls")]
    pub locale: Option<String>,
    /// A JSON file with who speaks and what else is known of the calls; flags and cases go before it.
    #[arg(long, value_name = "FILE", help_heading = "Calls")]
    pub ctx: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct ListArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct InitArgs {
    /// Where to write.
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
    /// Address of the agent. Default: http://127.0.0.1:8000/
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Write a first suite in TypeScript, and what editors need to know of such suites.
    #[arg(long)]
    pub typescript: bool,
}

#[derive(Debug, ClapArgs)]
pub struct SchemaArgs {
    /// Which files the schema is for.
    #[arg(value_enum, default_value_t = SchemaOf::Suite)]
    pub of: SchemaOf,
    /// Print a reference page in Markdown instead.
    #[arg(long)]
    pub markdown: bool,
}

/// Where runs are kept.
#[derive(Debug, ClapArgs)]
pub struct StoreArgs {
    /// Project file, beside which runs are kept. Default: hotseat.yaml of this folder or the nearest one above it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The file in which runs are kept. Default: .hotseat/runs.db beside the project file.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub store: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct RunsArgs {
    #[command(flatten)]
    pub at: StoreArgs,
    /// How many of the last runs are listed; 0 lists all.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,
    /// Give up runs that are older, or take more room, than `store` of the project file says.
    #[arg(long)]
    pub prune: bool,
    /// With --prune: give up runs that are older than this, whatever the project file says: 90d, 12h, 4w.
    #[arg(long, value_name = "TIME", value_parser = keep, requires = "prune")]
    pub keep: Option<Duration>,
    /// With --prune: give up the oldest runs until the others take no more room than this: 1GB, 500MB.
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "prune")]
    pub max_size: Option<u64>,
}

#[derive(Debug, ClapArgs)]
pub struct ShowArgs {
    /// The run: its id, the beginning of it, or `last` (`last~1` is the one before).
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    /// The id of one of its cases, of which everything is shown.
    #[arg(value_name = "CASE")]
    pub case: Option<String>,
    #[command(flatten)]
    pub at: StoreArgs,
    /// Write a report as the run itself would have; the ending names its format. Can be given several times.
    #[arg(short, long, value_name = "FILE", conflicts_with = "case")]
    pub output: Vec<PathBuf>,
    /// Write every event of every conversation, as JSON lines.
    #[arg(long, value_name = "FILE", conflicts_with = "case")]
    pub trace: Option<PathBuf>,
    /// Write the run into a file of its own, for instance to join it with others on another machine.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["case", "output", "trace", "json", "verbose"])]
    pub export: Option<PathBuf>,
    /// Show every conversation whole, also where nothing failed.
    #[arg(short, long)]
    pub verbose: bool,
    /// Print what happened as JSON lines: the events of the run, or those of the conversation.
    #[arg(long, conflicts_with = "verbose")]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
pub struct ViewArgs {
    /// The run: its id, the beginning of it, or `last` (`last~1` is the one before). Default: the run that goes on, or
    /// else the last.
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    #[command(flatten)]
    pub at: StoreArgs,
    /// The port to listen at, on this machine only; 0 is any that is free.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,
}

#[derive(Debug, ClapArgs)]
pub struct MergeArgs {
    /// The runs: ids, or files: runs that `hotseat show --export` wrote, or whole stores, of which the last run is meant.
    #[arg(value_name = "RUN_OR_FILE", required = true, num_args = 1..)]
    pub runs: Vec<String>,
    #[command(flatten)]
    pub at: StoreArgs,
    /// Write a report of all of them; the ending names its format. Can be given several times.
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct ResumeArgs {
    /// The run: its id, the beginning of it, or `last`.
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    #[command(flatten)]
    pub at: StoreArgs,
    /// How many conversations are held at once. Default: as the run was begun.
    #[arg(long, value_name = "N", value_parser = up_to_10000)]
    pub parallel: Option<usize>,
    /// Write a report of the whole run, beside those that it was begun with. Can be given several times.
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<PathBuf>,
    /// Show every conversation whole, also where nothing failed.
    #[arg(short, long)]
    pub verbose: bool,
    /// Print events as JSON lines and nothing else.
    #[arg(long, conflicts_with = "verbose")]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Exit codes: as `hotseat test`; a case of which no conversation is kept has failed")]
pub struct RecheckArgs {
    /// The run: its id, the beginning of it, or `last`.
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    /// The suites by which it is decided. Default: those of the run, as they stand now.
    #[arg(value_name = "SUITE")]
    pub suites: Vec<String>,
    #[command(flatten)]
    pub at: StoreArgs,
    /// Ask judges what they were not asked in the run. Without it such a check is not decided.
    #[arg(long)]
    pub judge: bool,
    /// Write a report; the ending names its format. Can be given several times.
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<PathBuf>,
    /// Show every conversation whole, also where nothing failed.
    #[arg(short, long)]
    pub verbose: bool,
    /// Print events as JSON lines and nothing else.
    #[arg(long, conflicts_with = "verbose")]
    pub json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit codes: 0 nothing got worse by more than chance · 1 something did · 2 a run cannot be read · \
4 no case can be compared"
)]
pub struct CompareArgs {
    /// The first run: its report (.json or .jsonl), or a run that is kept, by `last` or how its id begins.
    #[arg(value_name = "BEFORE")]
    pub before: String,
    /// The second run.
    #[arg(value_name = "AFTER")]
    pub after: String,
    #[command(flatten)]
    pub at: StoreArgs,
    /// Print all of it as JSON, for programs.
    #[arg(long)]
    pub json: bool,
    /// Fail also when a case that passed does not pass any more, though that may be chance: it fails, is skipped, or is missing.
    #[arg(long)]
    pub strict: bool,
    /// Compare cases also where the user says something else: conversations that were held with users who are no script,
    /// and imported.
    #[arg(long)]
    pub other_inputs: bool,
    /// How sure claims are: 0.95 claims something in one of twenty comparisons at most where nothing has changed.
    #[arg(long, value_name = "PART", value_parser = confidence, default_value = "0.95")]
    pub confidence: f64,
}

#[derive(Debug, ClapArgs)]
pub struct ImportArgs {
    #[command(subcommand)]
    pub from: ImportFrom,
}

#[derive(Debug, Subcommand)]
pub enum ImportFrom {
    /// Conversations as lists of OpenAI's messages: one, a list of them, or one a line.
    OpenaiTranscripts(TranscriptArgs),
}

#[derive(Debug, ClapArgs)]
pub struct TranscriptArgs {
    /// The file: JSON or JSON lines.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The folder for the suite, and for `recordings/` beside it.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// What is asserted of conversations whose data says which calls are expected.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = ExpectArg::Calls)]
    pub expect: ExpectArg,
    /// Tools that change something: besides the calls that are expected, none of theirs is made.
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    pub writes: Vec<String>,
    /// Write the suite alone, to hold the conversations with an agent.
    #[arg(long)]
    pub cases_only: bool,
    /// Leave conversations out in which something is wrong.
    #[arg(long)]
    pub skip_invalid: bool,
    /// Replace a suite that is there already.
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExpectArg {
    /// Each expected call is made, in whatever order, among whatever others.
    Calls,
    /// The expected calls are made in their order, among whatever others.
    Order,
    /// Nothing.
    None,
}

#[derive(Debug, ClapArgs)]
pub struct ServeArgs {
    /// The agent: a file, or a folder that holds agent.yaml.
    #[arg(value_name = "AGENT")]
    pub agent: PathBuf,
    /// The project file whose connectors the agent can name. Default: hotseat.yaml of this folder or the nearest one
    /// above it, or else above the agent.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The connector that speaks for the agent, in place of its own.
    #[arg(short, long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub connector: Option<String>,
    /// Listen at no port: messages come on standard input and answers go to standard output, a JSON object a line, as
    /// agents of `type: command` speak.
    #[arg(long, conflicts_with_all = ["port", "host", "allow_origin", "max_connections", "head_timeout"])]
    pub stdio: bool,
    /// The port to listen at; 0 is any that is free.
    #[arg(long, value_name = "N", default_value_t = 8000)]
    pub port: u16,
    /// The address to listen on. Others than those of this machine let others use the agent.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = host)]
    pub host: IpAddr,
    /// Keep conversations and memories in this SQLite file. Default: they end with the server.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["max_conversations", "max_size", "max_memories"])]
    pub store: Option<PathBuf>,
    /// How many connections are open at once; further ones wait.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = positive, help_heading = "Limits")]
    pub max_connections: usize,
    /// How long a client may take for the head of a request.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration, help_heading = "Limits")]
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
    /// Let pages of this origin use the agent, for instance http://localhost:3000. Can be given several times.
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// Files of test cases.
    Suite,
    /// The project file, hotseat.yaml.
    Project,
    /// Agents of Hotseat's own, agent.yaml.
    Agent,
    /// Tasks of such agents.
    Task,
    /// Workflows of such agents.
    Workflow,
    /// Scripts for language models.
    Script,
    /// Recordings of agents.
    Recording,
    /// Context files, for --ctx.
    Ctx,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MissingInput {
    /// The case is skipped.
    Skip,
    /// The case fails.
    Fail,
    /// The conversation is over and is judged as it is.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

fn up_to_10000(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=10_000) => Ok(n),
        _ => Err("a whole number from 1 to 10000 is needed".to_string()),
    }
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("a whole number above 0 is needed".to_string()),
    }
}

fn pass_rate(text: &str) -> Result<PassRate, String> {
    let part = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    let rate = part.ok().and_then(PassRate::new);
    rate.ok_or_else(|| "a part of all runs is needed: more than 0 and at most 1, or up to 100%".to_string())
}

fn confidence(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(part) if part > 0.0 && part < 1.0 => Ok(part),
        _ => Err("a number between 0 and 1 is needed, for instance 0.95".to_string()),
    }
}

fn shard(text: &str) -> Result<Shard, String> {
    Shard::parse(text)
}

fn keep(text: &str) -> Result<Duration, String> {
    let seconds = seconds(text).ok_or_else(|| "a time is needed, for instance 90d, 12h or 4w".to_string());
    seconds.map(Duration::from_secs)
}

fn size(text: &str) -> Result<u64, String> {
    bytes(text).ok_or_else(|| "a size is needed, for instance 1GB or 500MB".to_string())
}

fn reference(text: &str) -> Result<Reference, String> {
    Reference::parse(text)
}

fn host(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        other => other.parse().map_err(|_| "an IP address is needed, for instance 127.0.0.1".to_string()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a duration is needed, for instance 500ms, 30s or 1m30s".to_string();
    let duration: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    match Duration::try_from(duration) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(wrong()),
    }
}
