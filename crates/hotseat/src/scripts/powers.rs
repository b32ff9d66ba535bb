//! What functions of scripts can do when they are called: one set of functions, wherever they are called from.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::Diagnostic;
use hotseat_script::{Context, Host, HostResult, Limits, ScriptError, thread};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::fetch::fetch;
use super::files::{Deed, file};
use super::library::{Function, Library, NotFound, Places};
use crate::adapters::http::Http;

/// So deeply scripts may call each other with `Process`, each in an engine of its own.
const DEEPEST: usize = 8;

/// What scripts call with `Process` that is no script: agents, commands, requests.
pub trait Processes: Send + Sync {
    /// Carries one out.
    ///
    /// # Errors
    /// What the script is told: that there is none of this name, or why it has failed.
    fn call(&self, name: String, arguments: Vec<Value>) -> Answer;
}

/// What a process comes to.
pub type Answer = Pin<Box<dyn Future<Output = Result<Value, String>> + Send>>;

/// What functions of scripts can do, as the project file grants it, for the sake of a suite.
#[derive(Clone)]
pub struct Powers {
    library: Library,
    /// Where other scripts are looked for.
    places: Vec<Places>,
    http: Arc<Http>,
    processes: Arc<dyn Processes>,
    /// How many scripts have called each other to get here.
    depth: usize,
    /// Whether nobody may be contacted.
    alone: bool,
}

/// What a call of a function came to.
#[derive(Debug)]
pub struct Called {
    /// What it returned, as JSON; nothing returned is null.
    pub result: Result<Value, ScriptError>,
    /// What it said to `console`.
    pub said: Vec<String>,
}

/// A function with all that it needs to be called.
#[derive(Debug, Clone)]
pub struct Callable {
    function: Function,
    powers: Powers,
}

impl fmt::Debug for Powers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Powers").field("grants", self.library.grants()).finish_non_exhaustive()
    }
}

impl Callable {
    /// How long it may take where nobody asks for something else: as the project says, else the `usual` time.
    pub fn patience(&self, usual: Duration) -> Duration {
        self.powers.library.grants().timeout.unwrap_or(usual)
    }

    /// Calls it, in an engine of its own on a thread of its own. It may take as long as is `asked`, else as long as the
    /// project says, else the `usual` time. Whoever drops the future ends the script, and whatever it waits for.
    pub async fn call(&self, arguments: Vec<Value>, asked: Option<Duration>, usual: Duration) -> Called {
        let within = asked.unwrap_or_else(|| self.patience(usual));
        self.powers.call(&self.function, arguments, within).await
    }
}

impl Powers {
    /// Powers over what a project grants.
    pub fn new(
        library: Library,
        places: Vec<Places>,
        http: Arc<Http>,
        processes: Arc<dyn Processes>,
    ) -> Powers {
        Powers { library, places, http, processes, depth: 0, alone: false }
    }

    /// The same powers, but for those that contact somebody: `fetch`, and `Process` of what is no script.
    #[must_use]
    pub fn alone(self) -> Powers {
        Powers { alone: true, ..self }
    }

    /// A function with these powers.
    pub fn over(&self, function: Function) -> Callable {
        Callable { function, powers: self.clone() }
    }

    /// How long a script may take, where the project says so.
    pub fn time_limit(&self) -> Option<Duration> {
        self.library.grants().timeout
    }

    /// The limits of an engine whose calls may take so long.
    pub fn limits(&self, within: Duration) -> Limits {
        let usual = Limits::default();
        Limits { time: within, memory: self.library.grants().memory.unwrap_or(usual.memory), ..usual }
    }

    /// Hands for a script on a thread of its own, and what does there what it asks for.
    pub fn lend(&self) -> (Hands, Doings) {
        let (ask, asked) = mpsc::unbounded_channel();
        (Hands { powers: self.clone(), ask, is_patient: false }, Doings(asked))
    }

    /// The same for a script to which what others take for it does not count as time of its own.
    pub fn lend_patiently(&self) -> (Hands, Doings) {
        let (hands, doings) = self.lend();
        (Hands { is_patient: true, ..hands }, doings)
    }

    async fn call(&self, function: &Function, arguments: Vec<Value>, within: Duration) -> Called {
        let Function { scripts, module, name } = function.clone();
        let (hands, doings) = self.lend();
        let limits = self.limits(within);
        let called = pin!(thread::run_async(within, move |stop| {
            let mut context = match Context::new(&scripts, limits, hands.host()) {
                Ok(context) => context.until(stop),
                Err(error) => return Called { result: Err(error), said: Vec::new() },
            };
            let result = context.call(&module, &name, &arguments);
            let said = context.said().into_iter().map(|line| match line.level.name() {
                "log" => line.text,
                level => format!("{level}: {}", line.text),
            });
            Called { result, said: said.collect() }
        }));
        doings.until(called).await.unwrap_or_else(|error| Called { result: Err(error), said: Vec::new() })
    }

    /// `Process(name, …)`. What another script says is given back to whoever has called it.
    async fn process(self, name: String, arguments: Vec<Value>, longest: Duration) -> HostResult {
        if !["scripts.", "scripts:"].iter().any(|prefix| name.starts_with(prefix)) {
            if self.alone {
                return Err(format!("Process({name}): {NOBODY}"));
            }
            let value = self.processes.call(name, arguments).await?;
            return Ok(json!({"value": value, "said": []}));
        }
        if self.depth + 1 > DEEPEST {
            return Err(format!("Process({name}): scripts call each other more than {DEEPEST} deep"));
        }
        let (library, places) = (self.library.clone(), self.places.clone());
        let (looked_for, powers) = (name.clone(), Powers { depth: self.depth + 1, ..self });
        // A file that nobody has named yet is run to see what it exports, and that blocks.
        let found = tokio::task::spawn_blocking(move || find(&library, &looked_for, &places));
        let function = found.await.map_err(|error| error.to_string())??;
        // The script that waits for it has a limit of its own, and ends this one with itself.
        let within = powers.library.grants().timeout.unwrap_or(longest);
        let Called { result, said } = powers.call(&function, arguments, within).await;
        let value = result.map_err(|error| format!("Process({name}): {error}"))?;
        Ok(json!({"value": value, "said": said}))
    }
}

/// Why nobody is contacted.
const NOBODY: &str = "a conversation that is decided again contacts nobody";

/// Longer than any script that could wait for it.
const LONGEST: Duration = Duration::from_secs(3600);
/// How long another script may take for one whose own time stands still meanwhile.
const PATIENT: Duration = Duration::from_secs(30);

/// The function that a script means. The first place where there is one decides.
fn find(library: &Library, name: &str, places: &[Places]) -> Result<Function, String> {
    let mut nowhere = format!("there is no script for `{name}`");
    for places in places {
        match library.find(name, places) {
            Ok(function) => return Ok(function),
            Err(NotFound::Nowhere(mistake)) => nowhere = with_help(&mistake),
            Err(NotFound::Wrong(mistake)) => return Err(format!("Process({name}): {}", with_help(&mistake))),
        }
    }
    Err(format!("Process({name}): {nowhere}"))
}

fn with_help(mistake: &Diagnostic) -> String {
    match &mistake.help {
        Some(help) => format!("{mistake} ({help})"),
        None => mistake.to_string(),
    }
}

/// What a script on a thread of its own reaches the outside with: it asks, and others do it.
#[derive(Clone)]
pub struct Hands {
    powers: Powers,
    ask: mpsc::UnboundedSender<Job>,
    is_patient: bool,
}

/// What scripts have asked for, and is done on the runtime on which this is polled. What is dropped here is given up at
/// once, whatever becomes of the thread that waits for it: that is why nothing is done there.
pub struct Doings(mpsc::UnboundedReceiver<Job>);

/// Something that a script waits for.
pub struct Job {
    work: Pin<Box<dyn Future<Output = HostResult> + Send>>,
    reply: oneshot::Sender<HostResult>,
}

impl Hands {
    /// The functions for an engine.
    pub fn host(&self) -> Host {
        host(&self.powers.library, Some(self))
    }

    fn ask(&self, work: impl Future<Output = HostResult> + Send + 'static) -> oneshot::Receiver<HostResult> {
        let (reply, answer) = oneshot::channel();
        // Where nobody does anything any more, the answer says so.
        let _ = self.ask.send(Job { work: Box::pin(work), reply });
        answer
    }
}

impl Doings {
    /// Does what is asked for until this has come to its end.
    pub async fn until<T>(mut self, ended: impl Future<Output = T>) -> T {
        let mut ended = pin!(ended);
        loop {
            // A script waits for one thing at a time.
            let Some(job) = (tokio::select! {
                ended = &mut ended => return ended,
                job = self.next() => job,
            }) else {
                return ended.await;
            };
            tokio::select! {
                ended = &mut ended => return ended,
                () = job.carry_out() => {}
            }
        }
    }

    /// What a script asks for next; none when nobody can ask any more.
    pub async fn next(&mut self) -> Option<Job> {
        self.0.recv().await
    }
}

impl Job {
    /// Does it, unless nobody waits for it any more.
    pub async fn carry_out(self) {
        let Job { work, mut reply } = self;
        let result = tokio::select! {
            result = work => result,
            // Its time is over.
            () = reply.closed() => return,
        };
        let _ = reply.send(result);
    }
}

async fn answered(answer: oneshot::Receiver<HostResult>) -> HostResult {
    match answer.await {
        Ok(result) => result,
        // Whoever did it is gone, and says so to the engine in the next moment: until then the script must not go on.
        Err(_) => std::future::pending().await,
    }
}

/// The functions for an engine. Without somebody who carries them out, a file is only looked at: it may read what it is
/// granted, and nothing is done for it.
pub(super) fn host(library: &Library, running: Option<&Hands>) -> Host {
    let looks = running.is_none();
    let only_looked_at =
        |what: &str| format!("{what} cannot be called while a file is loaded: call it within a function");
    let mut hidden = Host::new();
    for (name, deed) in Deed::ALL {
        let grants = library.grants.clone();
        hidden = hidden.function(name, move |arguments| match looks && deed.changes() {
            true => Err(only_looked_at(&format!("`files.{name}`"))),
            false => file(deed, &arguments, &grants),
        });
    }
    let (listed, environment) = (library.grants.clone(), library.environment.clone());
    let names = move |_| {
        let set = listed.env.iter().filter(|name| environment.contains_key(*name));
        Ok(json!(set.collect::<Vec<_>>()))
    };
    let (listed, environment) = (library.grants.clone(), library.environment.clone());
    let variable = move |arguments: Vec<Value>| match arguments.first().and_then(Value::as_str) {
        Some(name) if listed.env.iter().any(|own| own == name) => Ok(json!(environment.get(name))),
        name => Err(format!(
            "the environment variable `{}` may not be read: the project file does not list it under `scripts: env:`",
            name.unwrap_or_default()
        )),
    };
    let hidden = hidden.function("names", names).function("env", variable);
    let hidden = match running {
        None => hidden
            .function("fetch", move |_| Err(only_looked_at("`fetch`")))
            .function("process", move |_| Err(only_looked_at("`Process`"))),
        Some(hands) => {
            let (fetching, processing) = (hands.clone(), hands.clone());
            let hidden = hidden.waiting_function("fetch", move |arguments| {
                let Powers { http, library, alone, .. } = fetching.powers.clone();
                let request = arguments.into_iter().next().unwrap_or_default();
                answered(fetching.ask(async move {
                    match alone {
                        true => Err(format!("fetch: {NOBODY}")),
                        false => fetch(&request, &library.grants, &http).await,
                    }
                }))
            });
            let is_patient = hands.is_patient;
            let process = move |arguments| {
                let powers = processing.powers.clone();
                let longest = if is_patient { PATIENT } else { LONGEST };
                answered(processing.ask(async move {
                    match <[Value; 2]>::try_from(arguments) {
                        Ok([Value::String(name), Value::Array(arguments)]) => {
                            powers.process(name, arguments, longest).await
                        }
                        _ => Err("Process is called with a name first".to_string()),
                    }
                }))
            };
            match is_patient {
                true => hidden.pausing_function("process", process),
                false => hidden.waiting_function("process", process),
            }
        }
    };
    Host::new().furnished(include_str!("powers.js"), hidden)
}
