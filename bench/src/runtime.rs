//! Measures the reference agent: the simulated driver on one thread, the tokio driver against direct model
//! calls, and the memory of idle conversations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hotseat_model::script::{ModelScript, Rule, ScriptedModel};
use hotseat_model::{
    DiscardSink, FunctionModel, Model, ModelMessage, ModelReply, ModelRequest, PureModel, ReplyDelta,
    ReplyFuture, ReplySink, TimedValue,
};
use hotseat_runtime::conversation::ConversationInput;
use hotseat_runtime::definition::{Definitions, Persona, mock, persona, task, tool};
use hotseat_runtime::live::{
    ConversationHandle, ConversationHost, HostOptions, ModelRegistry, Signal, Watcher,
};
use hotseat_runtime::sim::{TestOptions, run_test_conversation};
use hotseat_runtime::store::{ConversationStore, InMemoryStore, SqliteStore};
use hotseat_trace::Payload;
use serde_json::json;

use crate::bare_client::BenchError;

/// Delay of the model of the tokio driver.
const MODEL_DELAY: Duration = Duration::from_millis(20);

/// Turns per second of the simulated driver on one thread, with and without a tool. The baseline is the
/// scripted model alone.
pub struct SimulatedResult {
    /// Kind of the turns.
    pub what: &'static str,
    /// Turns per second.
    pub turns: f64,
    /// Turns per second of the model alone.
    pub model: f64,
}

/// Measures the simulated driver for about this duration. Fails if a conversation fails.
pub fn measure_simulated(time: Duration) -> Result<Vec<SimulatedResult>, BenchError> {
    let look = tool("look").task(&task("Look").step(mock().returns(json!({"found": 3}))));
    let plain = persona("Greeter").system("Be brief.");
    let tooled = persona("Greeter").system("Be brief.").tool(look);
    let replies = ModelScript::builder("s").always().rule(Rule::new().say("Hello to you."));
    let calls = ModelScript::builder("s")
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
            let turns = per_second(time, || run_simulated_turn(&persona, &script))?;
            let model = per_second(time, || ask_model(&script, requests))?;
            Ok(SimulatedResult { what, turns, model })
        })
        .collect()
}

fn run_simulated_turn(persona: &Persona, script: &Arc<ModelScript>) -> Result<(), BenchError> {
    let result =
        run_test_conversation(persona, ["Hello"], TestOptions::new(ScriptedModel::new(script.clone())))?;
    match result.trace.turns().completions().len() {
        1 => Ok(()),
        other => Err(format!("{other} turns were completed, not 1").into()),
    }
}

fn ask_model(script: &Arc<ModelScript>, requests: usize) -> Result<(), BenchError> {
    let mut model = ScriptedModel::new(script.clone());
    let request = ModelRequest { messages: vec![ModelMessage::user("Hello")], ..ModelRequest::default() };
    for _ in 0..requests {
        drop(std::hint::black_box(model.answer(&request)));
    }
    Ok(())
}

fn per_second(time: Duration, mut once: impl FnMut() -> Result<(), BenchError>) -> Result<f64, BenchError> {
    let (started, mut count) = (Instant::now(), 0_u32);
    while started.elapsed() < time {
        for _ in 0..50 {
            once()?;
        }
        count += 50;
    }
    Ok(f64::from(count) / started.elapsed().as_secs_f64())
}

/// Duration of a turn on the tokio driver, and of the model alone.
pub struct LiveResult {
    /// Number of parallel conversations.
    pub at_once: usize,
    /// Median duration of the turns.
    pub turn: Duration,
    /// Median duration of as many model calls.
    pub model: Duration,
}

/// Store of the measured conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StoreKind {
    /// In memory.
    InMemory,
    /// In an SQLite file.
    InFile,
}

pub(crate) fn open_store(
    kept: StoreKind,
    folder: &tempfile::TempDir,
) -> Result<Arc<dyn ConversationStore>, BenchError> {
    Ok(match kept {
        StoreKind::InMemory => Arc::new(InMemoryStore::default()),
        StoreKind::InFile => Arc::new(SqliteStore::open(&folder.path().join("agent.db"))?),
    })
}

/// A model that replies after a delay.
struct DelayedModel(Duration);

impl Model for DelayedModel {
    fn name(&self) -> &str {
        "thinking"
    }

    fn call<'a>(&'a self, _: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
        Box::pin(async move {
            tokio::time::sleep(self.0).await;
            sink.delta(ReplyDelta::Text { text: "Hello to you.".to_string() });
            Ok(ModelReply::text("Hello to you."))
        })
    }
}

/// Measures the tokio driver with parallel conversations of `turns` turns. Fails if a conversation fails.
pub fn measure_live(at_once: usize, turns: usize, kept: StoreKind) -> Result<LiveResult, BenchError> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let model = median_of_tasks(at_once, move |_| async move {
            let mut times = Vec::new();
            for _ in 0..turns {
                let began = Instant::now();
                DelayedModel(MODEL_DELAY).call(&ModelRequest::default(), &mut DiscardSink).await?;
                times.push(began.elapsed());
            }
            Ok(times)
        })
        .await?;
        let folder = tempfile::tempdir()?;
        let (definitions, agent) = Definitions::from_persona(&persona("Greeter").recent_turns(2))?;
        let options = HostOptions {
            store: open_store(kept, &folder)?,
            max_model_calls: at_once,
            ..HostOptions::default()
        };
        let host = ConversationHost::new(
            Arc::new(definitions),
            ModelRegistry::single(DelayedModel(MODEL_DELAY)),
            options,
        );
        let turn = median_of_tasks(at_once, move |number| {
            let (host, agent) = (host.clone(), agent.clone());
            async move {
                let handle = host.conversation(&format!("c{number}").into(), &agent).await?;
                let mut watcher = handle.watch();
                let mut times = Vec::new();
                for _ in 0..turns {
                    let began = Instant::now();
                    run_turn(&handle, &mut watcher).await?;
                    times.push(began.elapsed());
                }
                Ok(times)
            }
        })
        .await?;
        Ok(LiveResult { at_once, turn, model })
    })
}

/// Returns the median duration measured by parallel tasks.
async fn median_of_tasks<F: Future<Output = Result<Vec<Duration>, BenchError>> + Send + 'static>(
    at_once: usize,
    task: impl Fn(usize) -> F,
) -> Result<Duration, BenchError> {
    let tasks: Vec<_> = (0..at_once).map(|number| tokio::spawn(task(number))).collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    times.sort();
    Ok(times[times.len() / 2])
}

/// Runs one turn.
async fn run_turn(handle: &ConversationHandle, watcher: &mut Watcher) -> Result<(), BenchError> {
    let content = "Hello".to_string();
    handle
        .send(ConversationInput::UserMessage {
            user: "user".into(),
            content,
            reply_to: None,
            client_id: None,
        })
        .await?;
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

/// Memory of an idle conversation after one turn, in bytes.
pub struct IdleMemory {
    /// While a handle is held.
    pub held: f64,
    /// After all handles are dropped.
    pub left: f64,
}

/// Measures memory over many conversations. Fails if a conversation fails.
pub fn measure_idle(conversations: usize, kept: StoreKind) -> Result<IdleMemory, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let (definitions, agent) = Definitions::from_persona(&persona("Greeter"))?;
        let model = FunctionModel::new("greeter", |_: &ModelRequest| {
            TimedValue::now(Ok(ModelReply::text("Hello to you.")))
        });
        let options = HostOptions {
            store: open_store(kept, &folder)?,
            max_loaded: conversations + 100,
            ..HostOptions::default()
        };
        let host = ConversationHost::new(
            Arc::new(definitions),
            ModelRegistry::single(hotseat_model::LiveModel::new(model)),
            options,
        );
        let mut handles = Vec::with_capacity(conversations);
        // The first conversations allocate shared memory.
        for number in 0..100 {
            let handle = host.conversation(&format!("w{number}").into(), &agent).await?;
            run_turn(&handle, &mut handle.watch()).await?;
        }
        let before = resident_bytes()?;
        for number in 0..conversations {
            let handle = host.conversation(&format!("c{number}").into(), &agent).await?;
            run_turn(&handle, &mut handle.watch()).await?;
            handles.push(handle);
        }
        let held = resident_bytes()?;
        drop(handles);
        while host.loaded() > 0 {
            tokio::task::yield_now().await;
        }
        let left = resident_bytes()?;
        let each = |now: f64| (now - before) / conversations as f64;
        Ok(IdleMemory { held: each(held), left: each(left) })
    })
}

/// Returns the resident memory of this process, in bytes.
fn resident_bytes() -> Result<f64, BenchError> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = statm.split_whitespace().nth(1).unwrap_or_default().parse()?;
    Ok(pages * 4096.0)
}
