//! Capabilities of called script functions, the same for all callers.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::Diagnostic;
use hotseat_script::{
    HostCallError, HostResult, ScriptContext, ScriptError, ScriptHost, ScriptLimits, thread,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::fetch::fetch;
use super::library::{FunctionError, ScriptFunction, ScriptLibrary, ScriptSearchPath};
use super::local_functions::{local_functions, with_script_api};
use hotseat_targets::connection::http::HttpClient;

/// Maximum depth of scripts calling each other with `Process`, each in its own engine.
const MAX_PROCESS_DEPTH: usize = 8;

/// Runs the targets of `Process` that are not scripts: agents, commands, requests.
pub trait ProcessRunner: Send + Sync {
    /// Runs one. Fails if the name is unknown, or the target fails.
    fn call(&self, name: String, arguments: Vec<Value>) -> ProcessFuture;
}

/// Future result of a process.
pub type ProcessFuture = Pin<Box<dyn Future<Output = HostResult> + Send>>;

/// Capabilities of script functions, as granted by the project file, for one suite.
#[derive(Clone)]
pub struct ScriptCapabilities {
    library: ScriptLibrary,
    /// Folders in which other scripts are searched.
    search_paths: Vec<ScriptSearchPath>,
    http: Arc<HttpClient>,
    processes: Arc<dyn ProcessRunner>,
    /// Number of nested script calls.
    depth: usize,
    /// True if scripts may not contact anything.
    offline: bool,
}

/// Result of a function call.
#[derive(Debug)]
pub struct ScriptOutput {
    /// Returned JSON value; `undefined` becomes null.
    pub result: Result<Value, ScriptError>,
    /// Console output.
    pub console: Vec<String>,
}

/// A function bound to its capabilities.
#[derive(Debug, Clone)]
pub struct BoundFunction {
    function: ScriptFunction,
    powers: ScriptCapabilities,
}

impl fmt::Debug for ScriptCapabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptCapabilities").field("grants", self.library.grants()).finish_non_exhaustive()
    }
}

impl BoundFunction {
    /// Returns the time limit of the project, or `usual`.
    pub fn time_limit_or(&self, usual: Duration) -> Duration {
        self.powers.library.grants().timeout.unwrap_or(usual)
    }

    /// Calls the function in a new engine on a new thread. The time limit is `asked`, else that of the
    /// project, else `usual`. Dropping the future cancels the script and its pending requests.
    pub async fn call(
        &self,
        arguments: Vec<Value>,
        asked: Option<Duration>,
        usual: Duration,
    ) -> ScriptOutput {
        let within = asked.unwrap_or_else(|| self.time_limit_or(usual));
        self.powers.call(&self.function, arguments, within).await
    }
}

impl ScriptCapabilities {
    /// Creates capabilities from the grants of a project.
    pub fn new(
        library: ScriptLibrary,
        places: Vec<ScriptSearchPath>,
        http: Arc<HttpClient>,
        processes: Arc<dyn ProcessRunner>,
    ) -> ScriptCapabilities {
        ScriptCapabilities { library, search_paths: places, http, processes, depth: 0, offline: false }
    }

    /// Disables `fetch`, and `Process` of anything but scripts.
    #[must_use]
    pub fn offline(self) -> ScriptCapabilities {
        ScriptCapabilities { offline: true, ..self }
    }

    /// Binds a function to these capabilities.
    pub fn bind(&self, function: ScriptFunction) -> BoundFunction {
        BoundFunction { function, powers: self.clone() }
    }

    /// Finds a function by reference in the search paths. Fails if there is no such function, or its file is
    /// invalid.
    pub async fn find(&self, reference: &str) -> Result<BoundFunction, FunctionError> {
        let (library, places, name) =
            (self.library.clone(), self.search_paths.clone(), reference.to_string());
        // Loading a script for the first time runs it, which blocks.
        let found = tokio::task::spawn_blocking(move || find(&library, &name, &places));
        Ok(self.bind(found.await.map_err(Diagnostic::new)??))
    }

    /// Returns the time limit of the project, if it sets one.
    pub fn time_limit(&self) -> Option<Duration> {
        self.library.grants().timeout
    }

    /// Returns the engine limits for calls of this duration.
    pub fn limits(&self, within: Duration) -> ScriptLimits {
        let usual = ScriptLimits::default();
        ScriptLimits { time: within, memory: self.library.grants().memory.unwrap_or(usual.memory), ..usual }
    }

    /// Returns a requester for a script thread, and the queue that performs its requests.
    pub fn channel(&self) -> (HostRequester, HostRequests) {
        let (ask, asked) = mpsc::unbounded_channel();
        (HostRequester { powers: self.clone(), ask, untimed: false }, HostRequests(asked))
    }

    /// Like [`ScriptCapabilities::channel`], but `Process` calls do not count against the script's time limit.
    pub fn channel_untimed(&self) -> (HostRequester, HostRequests) {
        let (hands, doings) = self.channel();
        (HostRequester { untimed: true, ..hands }, doings)
    }

    async fn call(&self, function: &ScriptFunction, arguments: Vec<Value>, within: Duration) -> ScriptOutput {
        let ScriptFunction { scripts, module, name, .. } = function.clone();
        let (hands, doings) = self.channel();
        let limits = self.limits(within);
        let called = pin!(thread::run_async(within, move |stop| {
            let mut context = match ScriptContext::new(&scripts, limits, hands.host()) {
                Ok(context) => context.with_stop(stop),
                Err(error) => return ScriptOutput { result: Err(error), console: Vec::new() },
            };
            let result = context.call(&module, &name, &arguments);
            let said = context.take_console().into_iter().map(|line| match line.level.name() {
                "log" => line.text,
                level => format!("{level}: {}", line.text),
            });
            ScriptOutput { result, console: said.collect() }
        }));
        doings
            .serve_until(called)
            .await
            .unwrap_or_else(|error| ScriptOutput { result: Err(error), console: Vec::new() })
    }

    /// Performs `Process(name, …)`. The console output of another script is returned to its caller.
    async fn process(self, name: String, arguments: Vec<Value>, longest: Duration) -> HostResult {
        if !["scripts.", "scripts:"].iter().any(|prefix| name.starts_with(prefix)) {
            if self.offline {
                return Err(format!("Process({name}): {OFFLINE_ERROR}").into());
            }
            let value = self.processes.call(name, arguments).await?;
            return Ok(json!({"value": value, "said": []}));
        }
        let subject = format!("Process({name})");
        if self.depth + 1 > MAX_PROCESS_DEPTH {
            let words =
                format!("{subject}: scripts call each other more than {MAX_PROCESS_DEPTH} levels deep");
            return Err(words.into());
        }
        let found = self.find(&name).await;
        let BoundFunction { function, powers } =
            found.map_err(|error| HostCallError::new(&subject, error))?;
        let powers = ScriptCapabilities { depth: powers.depth + 1, ..powers };
        // The calling script has its own limit, which also ends this one.
        let within = powers.library.grants().timeout.unwrap_or(longest);
        let ScriptOutput { result, console: said } = powers.call(&function, arguments, within).await;
        let value = result.map_err(|error| HostCallError::new(&subject, error))?;
        Ok(json!({"value": value, "said": said}))
    }
}

/// Error of requests in offline mode.
const OFFLINE_ERROR: &str = "not available during a recheck, which contacts nothing";

/// Longer than any script that could wait for it.
const NESTED_SCRIPT_TIMEOUT: Duration = Duration::from_secs(3600);
/// Time limit of a nested script if the caller's clock is suspended.
const UNTIMED_SCRIPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Finds the script function in the first search path that has it.
fn find(
    library: &ScriptLibrary,
    name: &str,
    places: &[ScriptSearchPath],
) -> Result<ScriptFunction, FunctionError> {
    let mut nowhere = FunctionError::NoSuchFile(Diagnostic::new(format!("no script found for `{name}`")));
    for places in places {
        match library.find(name, places) {
            Err(error @ FunctionError::NoSuchFile(_)) => nowhere = error,
            found => return found,
        }
    }
    Err(nowhere)
}

/// Sends requests of a script thread to the runtime that performs them.
#[derive(Clone)]
pub struct HostRequester {
    powers: ScriptCapabilities,
    ask: mpsc::UnboundedSender<HostRequest>,
    untimed: bool,
}

/// Queue of requests of scripts, performed on the runtime that polls it. Dropping it cancels pending requests
/// at once, independently of the script thread.
pub struct HostRequests(mpsc::UnboundedReceiver<HostRequest>);

/// A request that a script waits for.
pub struct HostRequest {
    work: Pin<Box<dyn Future<Output = HostResult> + Send>>,
    reply: oneshot::Sender<HostResult>,
}

impl HostRequester {
    /// Returns the host functions for an engine.
    pub fn host(&self) -> ScriptHost {
        let hidden = local_functions(&self.powers.library.grants, &self.powers.library.environment);
        let fetching = self.clone();
        let hidden = hidden.blocking_function("fetch", move |arguments| {
            let ScriptCapabilities { http, library, offline, .. } = fetching.powers.clone();
            let request = arguments.into_iter().next().unwrap_or_default();
            await_reply(fetching.ask(async move {
                match offline {
                    true => Err(format!("fetch: {OFFLINE_ERROR}").into()),
                    false => fetch(&request, &library.grants, &http).await,
                }
            }))
        });
        let requester = self.clone();
        let process = move |arguments| {
            let powers = requester.powers.clone();
            let longest = if requester.untimed { UNTIMED_SCRIPT_TIMEOUT } else { NESTED_SCRIPT_TIMEOUT };
            await_reply(requester.ask(async move {
                match <[Value; 2]>::try_from(arguments) {
                    Ok([Value::String(name), Value::Array(arguments)]) => {
                        powers.process(name, arguments, longest).await
                    }
                    _ => Err("the first argument of Process must be a name".into()),
                }
            }))
        };
        with_script_api(match self.untimed {
            true => hidden.untimed_function("process", process),
            false => hidden.blocking_function("process", process),
        })
    }

    fn ask(&self, work: impl Future<Output = HostResult> + Send + 'static) -> oneshot::Receiver<HostResult> {
        let (reply, answer) = oneshot::channel();
        // A dropped queue shows when the reply is awaited.
        let _ = self.ask.send(HostRequest { work: Box::pin(work), reply });
        answer
    }
}

impl HostRequests {
    /// Performs requests until `ended` is ready.
    async fn serve_until<T>(mut self, ended: impl Future<Output = T>) -> T {
        let mut ended = pin!(ended);
        loop {
            // A script has one request at a time.
            let Some(job) = (tokio::select! {
                ended = &mut ended => return ended,
                job = self.next() => job,
            }) else {
                return ended.await;
            };
            tokio::select! {
                ended = &mut ended => return ended,
                () = job.perform() => {}
            }
        }
    }

    /// Returns the next request, or `None` if no requester is left.
    pub async fn next(&mut self) -> Option<HostRequest> {
        self.0.recv().await
    }
}

impl HostRequest {
    /// Performs the request, unless the script no longer waits.
    pub async fn perform(self) {
        let HostRequest { work, mut reply } = self;
        let result = tokio::select! {
            result = work => result,
            // The script has timed out.
            () = reply.closed() => return,
        };
        let _ = reply.send(result);
    }
}

async fn await_reply(answer: oneshot::Receiver<HostResult>) -> HostResult {
    match answer.await {
        Ok(result) => result,
        // The queue was dropped and the script is about to be stopped; it must not continue until then.
        Err(_) => std::future::pending().await,
    }
}
