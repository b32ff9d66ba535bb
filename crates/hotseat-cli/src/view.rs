//! `hotseat view`: runs in a browser, while they go on and later.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use hotseat::document::{Diagnostic, Diagnostics};
use hotseat::run::Signals;
use hotseat::store::Store;
use hotseat::view::{Meant, OnTrouble, Options, Server};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::args::ViewArgs;
use crate::exit::Exit;
use crate::kept::{self, refuse};
use crate::world::{World, stderr};

/// Serves the page until Ctrl-C.
pub fn run(args: &ViewArgs, world: &World) -> Exit {
    match try_to(args, world) {
        Ok(exit) | Err(exit) => exit,
    }
}

fn try_to(args: &ViewArgs, world: &World) -> Result<Exit, Exit> {
    let path = kept::place(&args.at, world)?.path;
    let store = Store::open(&path).map_err(|error| refuse(&error, world))?;
    let head = match &args.run {
        Some(run) => store.find(run),
        None => store.current(),
    };
    let head = head.map_err(|error| refuse(&error, world))?;
    drop(store);
    let meant = match &args.run {
        Some(_) => Meant::Run(head.id.clone()),
        None => Meant::Current,
    };
    let broken = |words: String| {
        world.complain_of(words);
        Exit::Broken
    };
    let runtime = runtime().map_err(|error| broken(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let mut signals = Signals::new().map_err(|error| broken(format!("cannot start: {error}")))?;
        let options = Options { store: path, meant, port: args.port };
        let server = Server::bind(options).await.map_err(|error| {
            let words = format!("cannot listen on 127.0.0.1:{}: {error}", args.port);
            broken(format!("{words}; without --port any port is taken that is free"))
        })?;
        let address = server.address();
        let (id, state) = (head.short(), head.state.name());
        let printed =
            world.print(|out| writeln!(out, "run {id} ({state}) on http://{address}/\nCtrl-C stops it."));
        if printed != Exit::Passed {
            return Err(printed);
        }
        let served = server.run(signals.next(), say_trouble(world.color_of_errors(), world.width())).await;
        served.map_err(|error| broken(format!("the server broke: {error}")))?;
        Ok(Exit::Passed)
    })
}

/// Requests are few, and answered beside a run that may go on in this process.
fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Says why runs cannot be read, while the server goes on.
fn say_trouble(color: bool, width: usize) -> OnTrouble {
    Box::new(move |error| {
        let mut all = Diagnostics::new();
        all.extend([Diagnostic::new(error.to_string())]);
        let _ = io::Write::write_all(&mut stderr(), format!("{}\n", all.render(color, width)).as_bytes());
    })
}

/// The page of a run that this process makes, served by a thread of its own.
pub struct Viewing {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl Viewing {
    /// Serves the page of the run that will be kept there under this id.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn begin(store: PathBuf, id: &str, world: &World) -> io::Result<Viewing> {
        let runtime = runtime()?;
        let options = Options { store, meant: Meant::Awaited(id.to_string()), port: 0 };
        let server = runtime.block_on(Server::bind(options))?;
        let address = server.address();
        let trouble = say_trouble(world.color_of_errors(), world.width());
        let (stop, stopped) = oneshot::channel::<()>();
        let serves = move || {
            let stop = async {
                let _ = stopped.await;
            };
            runtime.block_on(server.run(stop, trouble))
        };
        let thread = thread::Builder::new().name("view".to_string()).spawn(serves)?;
        Ok(Viewing { address, stop, thread })
    }

    /// Where the page is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Leaves the page where it is until Ctrl-C.
    pub fn stay(self, world: &World) {
        world.say(&format!("view: http://{}/ stays until Ctrl-C", self.address));
        let waited = runtime().and_then(|runtime| {
            runtime.block_on(async {
                Signals::new()?.next().await;
                Ok(())
            })
        });
        if let Err(error) = waited {
            world.complain_of(format!("--view: the page does not stay: {error}"));
        }
        self.stop();
    }

    /// Ends the server with its run, which was kept under this id if it was. Pages that wait for news get the end of it.
    pub fn end(self, kept: Option<&str>, world: &World) {
        if let Some(id) = kept {
            let id = id.get(..8).unwrap_or(id);
            world.say(&format!("view: ended with the run; `hotseat view {id}` shows it"));
        }
        self.stop();
    }

    fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}
