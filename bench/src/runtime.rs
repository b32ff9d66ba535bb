//! What the reference agent costs: the simulated driver on one thread, the tokio driver beside a model that is asked
//! directly, and memory for conversations in which nothing happens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hotseat_model::script::{Rule, Script, Scripted};
use hotseat_model::{
    Answering, Delta, Discard, Function, Message, Model, PureModel, Reply, Request, Sink, Timed,
};
use hotseat_runtime::conversation::Input;
use hotseat_runtime::definition::{Definitions, Persona, mock, persona, task, tool};
use hotseat_runtime::live::{Handle, Host, HostOptions, Models, Signal, Watcher};
use hotseat_runtime::sim::{TestOptions, run_test_conversation};
use hotseat_runtime::store::{InMemory, Sqlite, Store};
use hotseat_trace::Payload;
use serde_json::json;

use crate::bare_client::Failure;

/// How long the model of the tokio driver thinks.
const THINKING: Duration = Duration::from_millis(20);

/// Turns in a second that the simulated driver holds on this thread, without and with a tool; the yardstick is the
/// scripted model alone, asked as often.
pub struct Simulated {
    /// What the turns are.
    pub what: &'static str,
    /// Turns in a second.
    pub turns: f64,
    /// Turns in a second if there were nothing but the model.
    pub model: f64,
}

/// Measures the simulated driver for about this long.
///
/// # Errors
/// When a conversation does not end as it should.
pub fn simulated(time: Duration) -> Result<Vec<Simulated>, Failure> {
    let look = tool("look").task(&task("Look").step(mock().returns(json!({"found": 3}))));
    let plain = persona("Greeter").system("Be brief.");
    let tooled = persona("Greeter").system("Be brief.").tool(look);
    let replies = Script::builder("s").always().rule(Rule::new().say("Hello to you."));
    let calls = Script::builder("s")
        .always()
        .rule(Rule::new().tool_result("look").say("Three."))
        .rule(Rule::new().call_tool("look", json!({})));
    let kinds = [
        ("one turn, no tool", plain, Arc::new(replies.build()?), 1),
        ("one turn, one tool", tooled, Arc::new(calls.build()?), 2),
    ];
    kinds
        .into_iter()
        .map(|(what, persona, script, requests)| {
            let turns = rate(time, || turn(&persona, &script))?;
            let model = rate(time, || alone(&script, requests))?;
            Ok(Simulated { what, turns, model })
        })
        .collect()
}

fn turn(persona: &Persona, script: &Arc<Script>) -> Result<(), Failure> {
    let result = run_test_conversation(persona, ["Hello"], TestOptions::new(Scripted::new(script.clone())))?;
    match result.trace.turns().completions().len() {
        1 => Ok(()),
        other => Err(format!("{other} turns were completed, not 1").into()),
    }
}

fn alone(script: &Arc<Script>, requests: usize) -> Result<(), Failure> {
    let mut model = Scripted::new(script.clone());
    let request = Request { messages: vec![Message::user("Hello")], ..Request::default() };
    for _ in 0..requests {
        drop(std::hint::black_box(model.answer(&request)));
    }
    Ok(())
}

fn rate(time: Duration, mut once: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let (started, mut count) = (Instant::now(), 0_u32);
    while started.elapsed() < time {
        for _ in 0..50 {
            once()?;
        }
        count += 50;
    }
    Ok(f64::from(count) / started.elapsed().as_secs_f64())
}

/// What a turn takes on the tokio driver, and what the model alone takes.
pub struct Live {
    /// How many conversations were held at once.
    pub at_once: usize,
    /// The median of the turns.
    pub turn: Duration,
    /// The median of as many calls of the model alone.
    pub model: Duration,
}

/// Where conversations are kept while they are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kept {
    /// In this process.
    InMemory,
    /// In a file of SQLite.
    InFile,
}

fn store(kept: Kept, folder: &tempfile::TempDir) -> Result<Arc<dyn Store>, Failure> {
    Ok(match kept {
        Kept::InMemory => Arc::new(InMemory::default()),
        Kept::InFile => Arc::new(Sqlite::open(&folder.path().join("agent.db"))?),
    })
}

/// Says something after it has thought.
struct Thinking(Duration);

impl Model for Thinking {
    fn name(&self) -> &str {
        "thinking"
    }

    fn call<'a>(&'a self, _: &'a Request, sink: &'a mut dyn Sink) -> Answering<'a> {
        Box::pin(async move {
            tokio::time::sleep(self.0).await;
            sink.delta(Delta::Text { text: "Hello to you.".to_string() });
            Ok(Reply::text("Hello to you."))
        })
    }
}

/// Measures the tokio driver with so many conversations at once, `turns` of them one after the other in each.
///
/// # Errors
/// When a conversation does not end as it should.
pub fn live(at_once: usize, turns: usize, kept: Kept) -> Result<Live, Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let model = all(at_once, move |_| async move {
            let mut times = Vec::new();
            for _ in 0..turns {
                let began = Instant::now();
                Thinking(THINKING).call(&Request::default(), &mut Discard).await?;
                times.push(began.elapsed());
            }
            Ok(times)
        })
        .await?;
        let folder = tempfile::tempdir()?;
        let (definitions, agent) = Definitions::of(&persona("Greeter").recent_turns(2))?;
        let options =
            HostOptions { store: store(kept, &folder)?, calls_at_once: at_once, ..HostOptions::default() };
        let host = Host::new(Arc::new(definitions), Models::one(Thinking(THINKING)), options);
        let turn = all(at_once, move |number| {
            let (host, agent) = (host.clone(), agent.clone());
            async move {
                let handle = host.conversation(&format!("c{number}").into(), &agent).await?;
                let mut watcher = handle.watch();
                let mut times = Vec::new();
                for _ in 0..turns {
                    let began = Instant::now();
                    hold(&handle, &mut watcher).await?;
                    times.push(began.elapsed());
                }
                Ok(times)
            }
        })
        .await?;
        Ok(Live { at_once, turn, model })
    })
}

/// The median of what so many tasks take.
async fn all<F: Future<Output = Result<Vec<Duration>, Failure>> + Send + 'static>(
    at_once: usize,
    task: impl Fn(usize) -> F,
) -> Result<Duration, Failure> {
    let tasks: Vec<_> = (0..at_once).map(|number| tokio::spawn(task(number))).collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    times.sort();
    Ok(times[times.len() / 2])
}

/// One turn, from what the user says to its end.
async fn hold(handle: &Handle, watcher: &mut Watcher) -> Result<(), Failure> {
    let content = "Hello".to_string();
    handle.send(Input::UserMessage { user: "user".into(), content, reply_to: None }).await?;
    loop {
        match watcher.next().await {
            Some(Signal::Event(record)) => match &record.payload {
                Payload::TurnCompleted(_) => return Ok(()),
                Payload::TurnFailed(failed) => return Err(failed.error.message.clone().into()),
                _ => {}
            },
            Some(Signal::Delta { .. }) => {}
            None => return Err("the conversation was given up".into()),
        }
    }
}

/// Bytes that a conversation takes in which nothing happens, after one turn.
pub struct Idle {
    /// While somebody holds it.
    pub held: f64,
    /// When nobody does.
    pub left: f64,
}

/// Measures memory over so many conversations.
///
/// # Errors
/// When a conversation does not end as it should.
pub fn idle(conversations: usize, kept: Kept) -> Result<Idle, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let (definitions, agent) = Definitions::of(&persona("Greeter"))?;
        let model = Function::new("greeter", |_: &Request| Timed::now(Ok(Reply::text("Hello to you."))));
        let options = HostOptions { store: store(kept, &folder)?, ..HostOptions::default() };
        let host = Host::new(Arc::new(definitions), Models::one(hotseat_model::Live::new(model)), options);
        let mut handles = Vec::with_capacity(conversations);
        // The first ones fill what all of them share.
        for number in 0..100 {
            let handle = host.conversation(&format!("w{number}").into(), &agent).await?;
            hold(&handle, &mut handle.watch()).await?;
        }
        let before = resident()?;
        for number in 0..conversations {
            let handle = host.conversation(&format!("c{number}").into(), &agent).await?;
            hold(&handle, &mut handle.watch()).await?;
            handles.push(handle);
        }
        let held = resident()?;
        drop(handles);
        while host.loaded() > 0 {
            tokio::task::yield_now().await;
        }
        let left = resident()?;
        let each = |now: f64| (now - before) / conversations as f64;
        Ok(Idle { held: each(held), left: each(left) })
    })
}

/// Bytes of this process that are resident now.
fn resident() -> Result<f64, Failure> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = statm.split_whitespace().nth(1).unwrap_or_default().parse()?;
    Ok(pages * 4096.0)
}
