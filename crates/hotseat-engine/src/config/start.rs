//! Starts and stops the agent under test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hotseat_http::check_encryption;
use hotseat_trace::{AttemptFailure, FailureKind};
use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use url::Url;

use crate::cases::{Environment, MILLISECONDS, from_millis};
use hotseat_document::{Diagnostic, Diagnostics, Kind, LastOutput, MapView, SourceSpan, document_shape};
use hotseat_targets::connection::http::{HttpClient, without_credentials};
use hotseat_targets::process::{
    GroupCommand, ProcessGroup, ProjectServers, SHUTDOWN_GRACE, collect_output, find_missing_program,
};
use hotseat_targets::recorder::SecretRedactor;

/// Time limit for reading the remaining output after the agent has exited.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

document_shape! {
    /// Starts the agent under test. It is stopped together with its child processes.
    pub static START "Start" {
        /// The program and its arguments. Runs without a shell.
        required "command" = Kind::NonEmptyList(&Kind::Text),
        /// The agent is ready when this URL responds with any status. Default: `endpoint` or `base_url`.
        optional "ready" = Kind::Url,
        /// Time limit for becoming ready.
        optional "timeout_ms" = MILLISECONDS, shown "60000",
        /// Working directory, relative to the project file.
        optional "cwd" = Kind::NonEmptyText, shown ".",
        /// Additional environment variables.
        optional "env" = Kind::Map(&Kind::Text),
    }
}

/// Start command of the agent under test.
#[derive(Debug, Clone)]
pub struct StartCommand {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// URL that responds when the agent is ready.
    pub ready: Url,
    /// Time limit for becoming ready.
    pub timeout: Duration,
    /// Working directory.
    pub folder: PathBuf,
    /// Additional environment variables.
    pub env: BTreeMap<String, String>,
    /// Folder of the project that starts it.
    pub project: PathBuf,
    /// Position in the project file.
    pub place: SourceSpan,
}

/// Reports a command whose program is an empty text.
pub(super) fn refuse_empty_program(map: &MapView<'_>, mistakes: &mut Diagnostics) {
    if map.texts("command").next().is_some_and(|program| program.trim().is_empty()) {
        let help = "write the program first, then its arguments: `command: [python3, agent.py]`";
        let wrong = Diagnostic::new("the program of this command is empty").at(map.place_of("command"));
        mistakes.push(wrong.help(help));
    }
}

impl StartCommand {
    /// Returns the reason why the agent cannot be started, if its program is missing.
    pub fn missing_program(&self, environment: &Environment) -> Option<String> {
        let path = self.env.get("PATH").or_else(|| environment.get("PATH"));
        find_missing_program(&self.command, path, &self.folder)
    }

    pub(super) fn read(target: &MapView<'_>, root: &Path, mistakes: &mut Diagnostics) -> Option<Self> {
        let map = target.map("start")?;
        let address = ["endpoint", "base_url"].into_iter().find(|key| target.shape().field(key).is_some())?;
        let (text, place) = match map.text("ready") {
            Some(ready) => (ready, map.place_of("ready")?),
            None => (target.text(address)?, target.place_of(address)?),
        };
        let ready = match Url::parse(text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() && !text.contains("{{") => {
                url
            }
            _ => {
                let diagnostic =
                    Diagnostic::new(format!("`{text}` is not a valid URL for the readiness check"));
                mistakes.push(
                    diagnostic
                        .at(place)
                        .help("it is requested before any hook runs, so only `${ENV.NAME}` is supported"),
                );
                return None;
            }
        };
        if let Err(error) = check_encryption(&ready) {
            mistakes.report(place, error.to_string());
            return None;
        }
        refuse_empty_program(&map, mistakes);
        Some(StartCommand {
            command: map.texts("command").map(str::to_string).collect(),
            ready,
            timeout: map.integer("timeout_ms").map_or(Duration::from_secs(60), from_millis),
            folder: root.join(map.text("cwd").unwrap_or(".")),
            project: root.to_path_buf(),
            place: target.key_place("start")?,
            env: map.text_entries("env").collect(),
        })
    }
}

/// Help for an address in use. Processes left by a killed run are ended first, if they can be recognised.
const ADDRESS_IN_USE_HELP: &str = "end that process (find it with `lsof -i :PORT`), change the address of the agent, or remove `start` to test the running agent";

/// Help for a `start` command without a program or folder.
const MISSING_PROGRAM_HELP: &str = "install the program, or correct `command` and `cwd` of `start`";

/// A started agent. Dropping this value kills it with all its child processes.
#[derive(Debug)]
pub struct StartedAgent {
    shown: String,
    child: Child,
    group: ProcessGroup,
    output: LastOutput,
    readers: Vec<JoinHandle<()>>,
    redactor: SecretRedactor,
}

impl StartedAgent {
    /// Starts an agent and waits until it responds. `redactor` removes secrets from its output. Fails if the
    /// address is in use, or the agent cannot be started, exits, or does not respond in time.
    pub async fn start(
        start: &StartCommand,
        environment: &Environment,
        redactor: &SecretRedactor,
        http: &HttpClient,
    ) -> Result<StartedAgent, AttemptFailure> {
        let failed =
            |message: String| redactor.failure(AttemptFailure::new(FailureKind::Unreachable, message));
        let (shown, address) = (start.command.join(" "), without_credentials(&start.ready));
        if http.probe(&start.ready).await.is_ok() {
            let message = format!("{address} is already in use by another process");
            return Err(failed(message).with_detail(ADDRESS_IN_USE_HELP));
        }
        let project = ProjectServers::new(&start.project);
        let mut group_command = GroupCommand::new(&start.command, environment, project);
        let command = &mut group_command.command;
        command.envs(&start.env).current_dir(&start.folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawned = group_command.spawn();
        let (mut child, group) = spawned.map_err(|error| match start.missing_program(environment) {
            Some(missing) => failed(missing).with_detail(MISSING_PROGRAM_HELP),
            None => failed(format!("`{shown}` cannot be started: {error}")),
        })?;
        let output = LastOutput::default();
        let mut readers = Vec::new();
        readers
            .extend(child.stdout.take().map(|stdout| tokio::spawn(collect_output(stdout, output.clone()))));
        readers
            .extend(child.stderr.take().map(|stderr| tokio::spawn(collect_output(stderr, output.clone()))));
        let mut agent = StartedAgent { shown, child, group, output, readers, redactor: redactor.clone() };

        let until = Instant::now() + start.timeout;
        let mut pause = Duration::from_millis(5);
        loop {
            let Err(unready) = http.probe(&start.ready).await else { return Ok(agent) };
            if let Ok(Some(status)) = agent.child.try_wait() {
                let message = format!("`{}` exited before it responded at {address} ({status})", agent.shown);
                return Err(failed(message).with_detail(agent.last_output().await));
            }
            if Instant::now() + pause > until {
                let waited = start.timeout.as_millis();
                let message = format!("`{}` did not respond within {waited} ms: {unready}", agent.shown);
                return Err(failed(message).with_detail(agent.last_output().await));
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }

    /// Last output of the agent. If it has exited, remaining output is read, without waiting for orphaned
    /// children.
    async fn last_output(&mut self) -> String {
        if self.child.try_wait().is_ok_and(|status| status.is_some()) {
            let _ = timeout(OUTPUT_DRAIN_TIMEOUT, async {
                for reader in self.readers.drain(..) {
                    let _ = reader.await;
                }
            })
            .await;
        }
        match self.output.text().as_str() {
            "" => "it printed nothing".to_string(),
            text => format!("its last output:\n{}", self.redactor.message(text)),
        }
    }

    /// Description of the exit, if the agent has exited by itself.
    pub async fn describe_exit(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let words = self.last_output().await;
        let shown = self.redactor.text(&self.shown);
        Some(format!("the agent `{shown}` has exited ({status}); {words}"))
    }

    /// Requests termination, waits for the grace period, and kills the agent with its child processes.
    pub async fn stop(mut self) {
        self.group.terminate();
        let _ = timeout(SHUTDOWN_GRACE, self.child.wait()).await;
        self.group.kill();
        let _ = self.child.wait().await;
    }
}
