//! Measures an agent that is served over AG-UI: runs per second with each store, beside a server that answers
//! every request with the same bytes and does nothing else.
//!
//! Server and client are two processes on one machine, as in every use; both processors are shared by them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hotseat_model::LiveModel;
use hotseat_model::script::{ModelScript, Rule, ScriptedModel};
use hotseat_runtime::definition::{Definitions, persona};
use hotseat_runtime::live::{ConversationHost, HostOptions, ModelRegistry};
use hotseat_runtime::serve::{AgentServer, ServeOptions, ServedAgent};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::bare_client::BenchError;
use crate::runtime::{StoreKind, open_store};

/// Number of connections of the client.
const CONNECTIONS: usize = 32;

/// End of a body in chunks.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// What answers the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ServerKind {
    /// The agent, with conversations in memory.
    InMemory,
    /// The agent, with conversations in an SQLite file.
    InFile,
    /// A loop that reads a request and writes a recorded answer.
    Bare,
}

/// Runs of one turn per second.
pub struct ServingResult {
    /// Runs per second of wall time.
    pub turns: f64,
    /// Processor time of the server for each run.
    pub cpu: Duration,
}

/// Measures a server for about this duration. `program` is this program, which runs the server when it is
/// called with `--serve KIND`. Fails if the server does not start, or an answer is not a complete run.
pub fn measure_serving(program: &mut Command, time: Duration) -> Result<ServingResult, BenchError> {
    let mut server = ServerProcess::start(program)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let address = server.address;
    runtime.block_on(run_clients(address, time / 4))?;
    let (before, began) = (server.cpu()?, Instant::now());
    let count = runtime.block_on(run_clients(address, time))?;
    let (elapsed, after) = (began.elapsed(), server.cpu()?);
    server.child.kill()?;
    Ok(ServingResult {
        turns: count as f64 / elapsed.as_secs_f64(),
        cpu: after.saturating_sub(before) / u32::try_from(count.max(1))?,
    })
}

/// A server in a process of its own, killed when dropped.
struct ServerProcess {
    child: Child,
    address: SocketAddr,
}

impl ServerProcess {
    fn start(program: &mut Command) -> Result<ServerProcess, BenchError> {
        let mut child = program.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let address = line.trim().parse().map_err(|_| format!("the server printed {line:?}"))?;
        Ok(ServerProcess { child, address })
    }

    /// Returns the processor time of the process so far.
    fn cpu(&self) -> Result<Duration, BenchError> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name may contain spaces; user and system time are the 12th and 13th field after it.
        let fields = stat.rsplit(") ").next().unwrap_or_default().split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends requests on all connections for a time and returns the number of answers.
async fn run_clients(address: SocketAddr, time: Duration) -> Result<u64, BenchError> {
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CONNECTIONS).map(|_| tokio::spawn(run_client(address, stop.clone()))).collect();
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    let mut count = 0;
    for client in clients {
        count += client.await??;
    }
    Ok(count)
}

/// Sends one request after the other on one connection. Each is the first turn of a thread of its own.
async fn run_client(address: SocketAddr, stop: Arc<AtomicBool>) -> Result<u64, BenchError> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut count, mut answer) = (0, Vec::with_capacity(8192));
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(request().as_bytes()).await?;
        answer.clear();
        while !answer.ends_with(LAST_CHUNK) {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err("the server closed a connection".into());
            }
        }
        let text = String::from_utf8_lossy(&answer);
        if !text.starts_with("HTTP/1.1 200") || !text.contains("RUN_FINISHED") {
            return Err(format!("not a complete run: {text}").into());
        }
        count += 1;
    }
    Ok(count)
}

/// Returns a request that starts a thread with one message.
fn request() -> String {
    let thread = uuid::Uuid::new_v4();
    let body = format!(
        r#"{{"threadId":"{thread}","runId":"run-{thread}","state":{{}},"messages":[{{"id":"message-1","role":"user","content":"Hello, who are you?"}}],"tools":[],"context":[],"forwardedProps":{{}}}}"#
    );
    format!(
        "POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\naccept: text/event-stream\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Serves until the process is killed, and prints the address first. Fails if the server cannot start.
pub fn serve(kind: ServerKind) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        match kind {
            ServerKind::InMemory => serve_agent(StoreKind::InMemory).await,
            ServerKind::InFile => serve_agent(StoreKind::InFile).await,
            ServerKind::Bare => serve_recorded().await,
        }
    })
}

async fn serve_agent(kept: StoreKind) -> Result<(), BenchError> {
    let folder = tempfile::tempdir()?;
    let server = bind_agent(kept, &folder).await?;
    print_address(server.address())?;
    server.run(std::future::pending()).await;
    Ok(())
}

async fn bind_agent(kept: StoreKind, folder: &tempfile::TempDir) -> Result<AgentServer, BenchError> {
    let (definitions, agent) = Definitions::from_persona(&persona("Greeter").system("Be brief."))?;
    let definitions = Arc::new(definitions);
    let rule = Rule::new().say("Hello, I am the agent of this benchmark.");
    let model = LiveModel::new(ScriptedModel::new(ModelScript::builder("s").always().rule(rule).build()?));
    let options = HostOptions { store: open_store(kept, folder)?, ..HostOptions::default() };
    let host = ConversationHost::new(definitions.clone(), ModelRegistry::single(model), options);
    let served = ServedAgent::new(agent.as_str(), host, definitions, agent.clone());
    Ok(AgentServer::bind(ServeOptions::default(), vec![served]).await?)
}

fn print_address(address: SocketAddr) -> Result<(), BenchError> {
    let mut out = std::io::stdout();
    writeln!(out, "{address}")?;
    Ok(out.flush()?)
}

/// Records one answer of the agent, and then answers every request with it.
async fn serve_recorded() -> Result<(), BenchError> {
    let folder = tempfile::tempdir()?;
    let agent = bind_agent(StoreKind::InMemory, &folder).await?;
    let address = agent.address();
    tokio::spawn(agent.run(std::future::pending()));
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request().as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(LAST_CHUNK) {
        stream.read_buf(&mut answer).await?;
    }
    let answer: Arc<[u8]> = answer.into();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    print_address(listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(answer_requests(stream, answer.clone()));
    }
}

/// Answers the requests of a connection. A request ends with the only `}}` of its body.
async fn answer_requests(mut stream: TcpStream, answer: Arc<[u8]>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = Vec::with_capacity(4096);
    loop {
        request.clear();
        while !request.ends_with(b"}}") {
            if stream.read_buf(&mut request).await? == 0 {
                return Ok(());
            }
        }
        stream.write_all(&answer).await?;
    }
}
