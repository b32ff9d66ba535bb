//! Measures calls of an MCP tool: directly, and through the proxies of Hotseat.

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clap::Parser;
use hotseat_bench::bare_client::BenchError;
use hotseat_http::HttpClients;
use hotseat_mcp::{
    McpConversation, McpOptions, McpServers, ServerDefinition, ServerKind, Upstream, read_mock,
};
use http::Method;
use url::Url;

/// Measures calls of an MCP tool: directly, and through a proxy.
#[derive(Debug, Parser)]
struct McpBenchArgs {
    /// Number of calls of each kind.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    calls: usize,
}

const MOCK: &str = r#"{"name": "bank", "tools": [{"name": "charge", "answer": "charged"}]}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"charge","arguments":{"amount":5},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// A conversation whose events are discarded.
struct BenchServer {
    _servers: McpServers,
    url: String,
}

fn start(definition: ServerDefinition, options: McpOptions) -> Result<BenchServer, BenchError> {
    let name = definition.name.clone();
    let (_, answerer) = read_mock(MOCK)?;
    let servers = McpServers::start(vec![definition], options)?;
    let conversation = servers.open_conversation("bench", answerer, Vec::new())?;
    let url = conversation.url(&name).ok_or("the server has no address")?;
    tokio::spawn(discard_events(conversation));
    Ok(BenchServer { _servers: servers, url })
}

async fn discard_events(mut conversation: McpConversation) {
    while conversation.next_event().await.is_some() {}
}

/// Returns the sorted durations of calls, one after the other.
async fn measure(clients: &HttpClients, url: &str, calls: usize) -> Result<Vec<Duration>, BenchError> {
    let url = Url::parse(url)?;
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let request = clients
            .request(Method::POST, &url)?
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "charge");
        let start = Instant::now();
        let mut response = request.body(CALL).send().await?;
        let mut body = Vec::new();
        while let Some(bytes) = response.next_bytes().await? {
            body.extend_from_slice(&bytes);
        }
        times.push(start.elapsed());
        if !body.windows(7).any(|part| part == b"charged") {
            return Err("the answer is wrong".into());
        }
    }
    times.sort_unstable();
    Ok(times)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BenchError> {
    let args = McpBenchArgs::parse();
    let calls = args.calls.clamp(20, 100_000);
    let limits = hotseat_mcp::McpLimits { max_calls: u64::MAX, ..hotseat_mcp::McpLimits::default() };
    let options = McpOptions { limits, ..McpOptions::default() };
    let mock = start(read_mock(MOCK)?.0, options.clone())?;
    let upstream = Upstream::Url { url: mock.url.clone(), headers: BTreeMap::new() };
    let definition = ServerDefinition::new("proxy", ServerKind::Proxy(upstream));
    let proxy = start(definition.clone(), options.clone())?;
    let recording = start(definition, McpOptions { record: true, ..options })?;
    let clients = HttpClients::default();
    measure(&clients, &mock.url, 100).await?;
    measure(&clients, &proxy.url, 100).await?;
    println!("{:<24} {:>10} {:>10} {:>10}", "milliseconds per call", "median", "p95", "p99");
    let mut medians = Vec::new();
    for (name, url) in [("direct", &mock.url), ("proxy", &proxy.url), ("proxy, recording", &recording.url)] {
        let times = measure(&clients, url, calls).await?;
        let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1000.0;
        println!("{name:<24} {:>10.3} {:>10.3} {:>10.3}", at(50), at(95), at(99));
        medians.push(at(50));
    }
    let cost = medians[1] - medians[0];
    println!("cost of the proxy at the median: {cost:.3} ms (goal: under 1 ms)");
    match cost < 1.0 {
        true => Ok(()),
        false => Err("the proxy costs 1 ms or more".into()),
    }
}
