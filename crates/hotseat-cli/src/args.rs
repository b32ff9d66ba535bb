//! The command line.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use hotseat::checks::Reference;
use hotseat::run::PassRate;

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
}

/// Which cases are meant.
#[derive(Debug, ClapArgs)]
pub struct SelectArgs {
    /// Suites: files, folders (their *.test.yaml, *.test.jsonl, …) or globs. Default: `suites` of the project file.
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
    /// What to run: a suite, a message to the agent, whoever makes cases up (agents:ID?count=10&focus=errors or
    /// connectors:NAME), or - to type the conversation or pipe it in line by line.
    #[arg(short, long, value_name = "WHAT", conflicts_with = "paths", allow_hyphen_values = true)]
    pub input: Option<String>,
    /// Write a report; the ending names its format: .json, .jsonl, .xml (JUnit). In a folder: output-TIME.jsonl. Can
    /// be given several times.
    #[arg(short, long, value_name = "FILE", help_heading = "Reports")]
    pub output: Vec<PathBuf>,
    /// Write every event of every conversation, with what the agent sent, as JSON lines.
    #[arg(long, value_name = "FILE", help_heading = "Reports")]
    pub trace: Option<PathBuf>,
    /// Let a helper write the reports whose endings name no format: agents:ID or connectors:NAME. Without such a report
    /// it goes to standard output.
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
    /// Who simulates the user of cases that have a simulated user and do not say who it is: agents:ID or
    /// connectors:NAME.
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
    /// How many times each case is run, to see how steady it is. Default: `runs` of the project file, or 1.
    #[arg(long, value_name = "N", value_parser = up_to_10000, help_heading = "Run")]
    pub runs: Option<usize>,
    /// Where cases are run several times: how much of the runs of a case has to pass, as 0.8 or 80%. Default:
    /// `min_pass_rate` of the project file, or all of them.
    #[arg(long, value_name = "RATE", value_parser = pass_rate, help_heading = "Run")]
    pub min_pass_rate: Option<PassRate>,
    /// Where cases are run once: how often one that fails is tried again, whatever it says itself.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=100), help_heading = "Run")]
    pub retries: Option<u8>,
    /// Run this hook of the project file before the first case; if it fails, nothing runs.
    #[arg(long, visible_alias = "before-all", value_name = "HOOK", help_heading = "Run")]
    pub before: Option<String>,
    /// Run this hook of the project file after the last case, whatever came of it.
    #[arg(long, visible_alias = "after-all", value_name = "HOOK", help_heading = "Run")]
    pub after: Option<String>,
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
    #[arg(long, conflicts_with_all = ["port", "host", "allow_origin"])]
    pub stdio: bool,
    /// The port to listen at; 0 is any that is free.
    #[arg(long, value_name = "N", default_value_t = 8000)]
    pub port: u16,
    /// The address to listen on. Others than those of this machine let others use the agent.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = host)]
    pub host: IpAddr,
    /// Keep conversations and memories in this SQLite file. Default: they end with the server.
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
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

fn pass_rate(text: &str) -> Result<PassRate, String> {
    let part = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    let rate = part.ok().and_then(PassRate::new);
    rate.ok_or_else(|| "a part of all runs is needed: more than 0 and at most 1, or up to 100%".to_string())
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
