//! `hotseat serve`: serves an agent over AG-UI and chat completions, or over standard input and output.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hotseat_document::Diagnostics;
use hotseat_engine::config::Project;
use hotseat_http::check_proxies;
use hotseat_runtime::files::{self, ConnectorSet, LoadedAgent};
use hotseat_runtime::live::{ConversationHost, HostOptions, ModelRegistry};
use hotseat_runtime::memory::MemoryLimits;
use hotseat_runtime::serve::{
    AgentServer, MAX_LINE_BYTES, ServeOptions, ServedAgent, read_lines, serve_lines,
};
use hotseat_runtime::store::{InMemoryStore, SqliteStore, StoreBounds};
use tokio::sync::oneshot;

use crate::args::ServeArgs;
use crate::context::CliContext;
use crate::exit::{CommandResult, ExitStatus};
use crate::mcp::receive_signals;
use crate::project_file::find_project_file;

pub fn run(args: &ServeArgs, context: &CliContext) -> CommandResult {
    check_proxies(&context.environment).map_err(|error| context.fail(ExitStatus::Usage, error))?;
    let agent = load_agent(args, context).map_err(|diagnostics| context.reject(diagnostics))?;
    let mut models = ModelRegistry::default();
    for (id, model) in agent.models().map_err(|error| context.fail(ExitStatus::Usage, error))? {
        models = models.with_model(&id, model);
    }
    let mut host_options = HostOptions { limits: agent.limits, ..HostOptions::default() };
    host_options.store = Arc::new(InMemoryStore::with_bounds(StoreBounds {
        conversations: args.max_conversations,
        bytes: usize::try_from(args.max_size).unwrap_or(usize::MAX),
        memories: MemoryLimits { records: args.max_memories, ..MemoryLimits::default() },
    }));
    if let Some(path) = &args.store {
        let store = SqliteStore::open(&context.folder.join(path)).map_err(|error| {
            context.fail(ExitStatus::RunError, format!("--store {}: {error}", path.display()))
        })?;
        host_options.store = Arc::new(store);
    }
    if !args.host.is_loopback() {
        context.print_message(&format!(
            "warning: listening on {}: every machine that reaches this address can talk to the agent and make it use its tools",
            args.host
        ));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| context.fail(ExitStatus::RunError, format!("cannot start threads: {error}")))?;
    runtime.block_on(serve(args, context, &agent, models, host_options))
}

/// Loads the agent with the connectors of its own files and of the project.
fn load_agent(args: &ServeArgs, context: &CliContext) -> Result<LoadedAgent, Diagnostics> {
    let (connectors, environment) =
        match find_project_file(args.config.as_deref(), Some(&args.agent), context) {
            Some((path, name)) => {
                let folder = path.parent().unwrap_or(&context.folder);
                (Project::read_connectors(&path, &name)?, context.project_environment(folder)?)
            }
            None => (ConnectorSet::default(), context.environment.clone()),
        };
    let look_up = |name: &str| environment.get(name).cloned();
    let options = files::LoadOptions { environment: &look_up, connectors: Some(&connectors) };
    let agent = files::load(&args.agent, &options)?;
    Ok(match &args.connector {
        Some(name) => {
            let connector = agent.available_connectors.get(name, None, &look_up)?;
            agent.with_connector(connector)
        }
        None => agent,
    })
}

async fn serve(
    args: &ServeArgs,
    context: &CliContext,
    agent: &LoadedAgent,
    models: ModelRegistry,
    host_options: HostOptions,
) -> CommandResult {
    let mut signals = receive_signals(context)?;
    let host = ConversationHost::new(agent.definitions.clone(), models, host_options);
    let served = ServedAgent::new(agent.id.as_str(), host, agent.definitions.clone(), agent.id.clone());
    if args.stdio {
        return tokio::select! {
            printed = answer_lines(&served) => printed.map(|()| ExitStatus::Passed).map_err(|error| {
                context.fail(ExitStatus::RunError, format!("cannot write standard output: {error}"))
            }),
            () = signals.next() => Ok(ExitStatus::Interrupted),
        };
    }
    let options = ServeOptions {
        host: args.host,
        port: args.port,
        allow_origins: args.allow_origin.clone(),
        max_connections: args.max_connections,
        head_timeout: args.head_timeout,
        ..ServeOptions::default()
    };
    let server = AgentServer::bind(options, vec![served]).await.map_err(|error| {
        context.fail(ExitStatus::RunError, format!("{error}; use --port 0 to pick a free port"))
    })?;
    let printed = context.print(|out| out.write_all(introduction(agent, server.address()).as_bytes()));
    if printed != ExitStatus::Passed {
        return Err(printed);
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let running = server.run(async move {
        let _ = stopped.await;
    });
    let interrupted = async {
        signals.next().await;
        context.print_message("stopping after the current replies; press Ctrl-C again to stop at once");
        drop(stop);
        signals.next().await;
    };
    tokio::select! {
        () = running => Ok(ExitStatus::Passed),
        () = interrupted => Ok(ExitStatus::Interrupted),
    }
}

/// Answers requests from standard input.
async fn answer_lines(agent: &ServedAgent) -> io::Result<()> {
    let mut lines = read_lines(io::stdin(), MAX_LINE_BYTES);
    serve_lines(agent, &mut lines, &mut io::stdout()).await
}

/// Describes the served addresses and how to try them.
fn introduction(agent: &LoadedAgent, address: SocketAddr) -> String {
    let name = &agent.id;
    // A wildcard address is reached through the loopback address.
    let reached = match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => format!("127.0.0.1:{}", v4.port()),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => format!("[::1]:{}", v6.port()),
        other => other.to_string(),
    };
    let body = format!(
        r#"{{"model": "{name}", "stream": true, "messages": [{{"role": "user", "content": "Hello"}}]}}"#
    );
    format!(
        "{name} on http://{address}\n  AG-UI             http://{reached}/\n  chat completions  \
         http://{reached}/v1 (model {name})\nTry it:\n  curl -N http://{reached}/v1/chat/completions -H \
         'content-type: application/json' -d '{body}'\nCtrl-C stops it.\n"
    )
}
