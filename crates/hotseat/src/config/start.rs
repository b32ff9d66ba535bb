//! Starting and stopping the agent under test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hotseat_trace::{Failure, FailureKind};
use reqwest::Url;
use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::adapters::http::{Http, without_credentials};
use crate::cases::{Environment, millis};
use crate::process::{GRACE, Group, GroupCommand, LastOutput, OrphanProcess, ProjectServers};
use crate::session::Redactor;
use hotseat_document::{Diagnostic, Diagnostics, Map, View};

use super::project::Project;

/// How long its last output is waited for once it has ended.
const DRAIN: Duration = Duration::from_secs(1);

/// How the agent under test is started.
#[derive(Debug, Clone)]
pub struct Start {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The address that answers when it is ready.
    pub ready: Url,
    /// How long it may take until then.
    pub timeout: Duration,
    /// Its working folder.
    pub folder: PathBuf,
    /// Environment variables added for it.
    pub env: BTreeMap<String, String>,
    /// The folder of the project that starts it.
    pub project: PathBuf,
}

impl Start {
    pub(super) fn read(target: &Map<'_>, root: &Path, mistakes: &mut Diagnostics) -> Option<Self> {
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
                let diagnostic = Diagnostic::new(format!(
                    "`{text}` is not an address that can be asked whether the agent is ready"
                ));
                mistakes.push(
                    diagnostic
                        .at(place)
                        .help("it is asked before any hook runs, so it can use `${ENV.NAME}` only"),
                );
                return None;
            }
        };
        let texts = map.list("command").into_iter().flatten().filter_map(View::text);
        let env = map.get("env").and_then(View::entries).into_iter().flatten();
        Some(Start {
            command: texts.map(str::to_string).collect(),
            ready,
            timeout: map.integer("timeout_ms").map_or(Duration::from_secs(60), millis),
            folder: root.join(map.text("cwd").unwrap_or(".")),
            project: root.to_path_buf(),
            env: env
                .filter_map(|(key, _, value)| Some((key.to_string(), value.text()?.to_string())))
                .collect(),
        })
    }
}

/// What helps where an address is taken. What a killed run has left is ended before that, where it can be recognised.
const ADDRESS_IN_USE: &str = "end that process (`lsof -i :PORT` shows it), give the agent another address, or leave `start` out to test the one that runs";

/// How many processes are told by name that a killed run has left.
const MAX_SHOWN_ORPHANS: usize = 10;

/// Ends the processes that runs of a project have left which were killed, and says which, each in one line.
pub async fn end_orphans(project: &Project) -> Vec<String> {
    let orphans = ProjectServers::of(&project.root).end_orphans().await;
    let words = orphans.iter().take(MAX_SHOWN_ORPHANS).map(|OrphanProcess { pid, command }| {
        let command = project.redactor().text(command);
        format!("process {pid} (`{command}`) was ended: a run that was killed had started it and left it")
    });
    let more = orphans.len().saturating_sub(MAX_SHOWN_ORPHANS);
    words.chain((more > 0).then(|| format!("{more} more such processes were ended"))).collect()
}

/// An agent that was started. It is killed, with all that it has started, when this value is dropped.
#[derive(Debug)]
pub struct StartedAgent {
    shown: String,
    child: Child,
    group: Group,
    output: LastOutput,
    readers: Vec<JoinHandle<()>>,
    redactor: Redactor,
}

impl StartedAgent {
    /// Starts an agent and waits until it answers. `redactor` takes secrets out of what it prints.
    ///
    /// # Errors
    /// When something answers there already, or the agent cannot be started, ends, or does not answer in time.
    pub async fn start(
        start: &Start,
        environment: &Environment,
        redactor: &Redactor,
        http: &Http,
    ) -> Result<StartedAgent, Failure> {
        let failed = |message: String| redactor.failure(Failure::new(FailureKind::Unreachable, message));
        let (shown, address) = (start.command.join(" "), without_credentials(&start.ready));
        if http.answers(&start.ready).await {
            let message =
                format!("{address} answers before the agent was started: another process has its address");
            return Err(failed(message).with_detail(ADDRESS_IN_USE));
        }
        let project = ProjectServers::of(&start.project);
        let mut group_command = GroupCommand::new(&start.command, environment, project);
        let command = &mut group_command.command;
        command.envs(&start.env).current_dir(&start.folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, group) = group_command
            .spawn()
            .map_err(|error| failed(format!("the agent `{shown}` cannot be started: {error}")))?;
        let output = LastOutput::default();
        let mut readers = Vec::new();
        readers.extend(child.stdout.take().map(|stdout| tokio::spawn(output.clone().keep(stdout))));
        readers.extend(child.stderr.take().map(|stderr| tokio::spawn(output.clone().keep(stderr))));
        let mut agent = StartedAgent { shown, child, group, output, readers, redactor: redactor.clone() };

        let until = Instant::now() + start.timeout;
        let mut pause = Duration::from_millis(5);
        loop {
            if http.answers(&start.ready).await {
                return Ok(agent);
            }
            if let Ok(Some(status)) = agent.child.try_wait() {
                let message =
                    format!("the agent `{}` ended before it answered at {address} ({status})", agent.shown);
                return Err(failed(message).with_detail(agent.last_words().await));
            }
            if Instant::now() + pause > until {
                let waited = start.timeout.as_millis();
                let message =
                    format!("the agent `{}` did not answer at {address} within {waited} ms", agent.shown);
                return Err(failed(message).with_detail(agent.last_words().await));
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }

    /// Its last output. Of a process that has ended all of it is waited for, but not for what it has left behind.
    async fn last_words(&mut self) -> String {
        if self.child.try_wait().is_ok_and(|status| status.is_some()) {
            let _ = timeout(DRAIN, async {
                for reader in self.readers.drain(..) {
                    let _ = reader.await;
                }
            })
            .await;
        }
        match self.output.text().trim_end() {
            "" => "it printed nothing".to_string(),
            text => format!("its last output:\n{}", self.redactor.text(text)),
        }
    }

    /// What there is to say of it if it has ended by itself.
    pub async fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let words = self.last_words().await;
        let shown = self.redactor.text(&self.shown);
        Some(format!("the agent `{shown}` has ended ({status}); {words}"))
    }

    /// Asks it to end, waits a while, and ends it with everything that it has started.
    pub async fn stop(mut self) {
        self.group.terminate();
        let _ = timeout(GRACE, self.child.wait()).await;
        self.group.kill();
        let _ = self.child.wait().await;
    }
}
