//! `hotseat serve`: an agent over AG-UI and chat completions, or over standard input and output.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hotseat::config::Project;
use hotseat::document::Diagnostics;
use hotseat::run::Signals;
use hotseat_runtime::files::{self, AgentFile, Connectors};
use hotseat_runtime::live::{Host, HostOptions, Models};
use hotseat_runtime::memory::MemoryLimits;
use hotseat_runtime::serve::{Agent, LONGEST_LINE, Options, Server, converse, read_lines};
use hotseat_runtime::store::{InMemory, MemoryBounds, Sqlite};
use tokio::sync::oneshot;

use crate::args::ServeArgs;
use crate::exit::Exit;
use crate::list::project_file;
use crate::world::World;

pub fn run(args: &ServeArgs, world: &World) -> Exit {
    let agent = match load(args, world) {
        Ok(agent) => agent,
        Err(mistakes) => {
            world.complain(mistakes);
            return Exit::Usage;
        }
    };
    let mut models = Models::default();
    match agent.models() {
        Ok(opened) => opened.into_iter().for_each(|(id, model)| models = models.clone().with(&id, model)),
        Err(error) => {
            world.complain_of(error.to_string());
            return Exit::Usage;
        }
    }
    let mut held = HostOptions { limits: agent.limits, ..HostOptions::default() };
    held.store = Arc::new(InMemory::bounded(MemoryBounds {
        conversations: args.max_conversations,
        bytes: usize::try_from(args.max_size).unwrap_or(usize::MAX),
        memories: MemoryLimits { records: args.max_memories, ..MemoryLimits::default() },
    }));
    if let Some(path) = &args.store {
        match Sqlite::open(&world.folder.join(path)) {
            Ok(store) => held.store = Arc::new(store),
            Err(error) => {
                world.complain_of(format!("--store {}: {error}", path.display()));
                return Exit::Broken;
            }
        }
    }
    if !args.host.is_loopback() {
        world.say(&format!(
            "warning: listening on {}: whoever reaches this address can talk to the agent and has it use its tools",
            args.host
        ));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            world.complain_of(format!("no threads can be started: {error}"));
            return Exit::Broken;
        }
    };
    runtime.block_on(serve(args, world, &agent, models, held))
}

/// The agent, speaking with the connectors of its files and of the project.
fn load(args: &ServeArgs, world: &World) -> Result<AgentFile, Diagnostics> {
    let connectors = match project_file(args.config.as_deref(), Some(&args.agent), world) {
        Some((path, name)) => Project::read_connectors(&path, &name)?,
        None => Connectors::default(),
    };
    let look_up = |name: &str| world.environment.get(name).cloned();
    let options = files::Options { environment: &look_up, connectors: Some(&connectors) };
    let agent = files::load(&args.agent, &options)?;
    Ok(match &args.connector {
        Some(name) => {
            let connector = agent.known.get(name, None, &look_up)?;
            agent.speaking_with(connector)
        }
        None => agent,
    })
}

async fn serve(
    args: &ServeArgs,
    world: &World,
    agent: &AgentFile,
    models: Models,
    held: HostOptions,
) -> Exit {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => {
            world.complain_of(format!("signals cannot be received: {error}"));
            return Exit::Broken;
        }
    };
    let host = Host::new(agent.definitions.clone(), models, held);
    let served = Agent::new(agent.id.as_str(), host, agent.definitions.clone(), agent.id.clone());
    if args.stdio {
        return tokio::select! {
            printed = answer_lines(&served) => match printed {
                Ok(()) => Exit::Passed,
                Err(error) => {
                    world.complain_of(format!("cannot write standard output: {error}"));
                    Exit::Broken
                }
            },
            () = signals.next() => Exit::Interrupted,
        };
    }
    let options = Options {
        host: args.host,
        port: args.port,
        allow_origins: args.allow_origin.clone(),
        connections: args.max_connections,
        head_timeout: args.head_timeout,
        ..Options::default()
    };
    let server = match Server::bind(options, vec![served]).await {
        Ok(server) => server,
        Err(error) => {
            world.complain_of(format!("{error}; --port 0 takes any port that is free"));
            return Exit::Broken;
        }
    };
    let printed = world.print(|out| out.write_all(introduction(agent, server.address()).as_bytes()));
    if printed != Exit::Passed {
        return printed;
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let running = server.run(async move {
        let _ = stopped.await;
    });
    let interrupted = async {
        signals.next().await;
        world.say("stopping: answers that are under way are finished; again to stop at once");
        drop(stop);
        signals.next().await;
    };
    tokio::select! {
        () = running => Exit::Passed,
        () = interrupted => Exit::Interrupted,
    }
}

/// Answers what stands on standard input.
async fn answer_lines(agent: &Agent) -> io::Result<()> {
    let mut lines = read_lines(io::stdin(), LONGEST_LINE);
    converse(agent, &mut lines, &mut io::stdout()).await
}

/// What is served, and how to try it.
fn introduction(agent: &AgentFile, address: SocketAddr) -> String {
    let name = &agent.id;
    // Who listens everywhere is reached on this machine by the address of this machine.
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
