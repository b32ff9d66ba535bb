//! `hotseat view`: shows runs in the browser, live or afterwards.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use hotseat_document::{Diagnostic, Diagnostics};
use hotseat_engine::run::ShutdownSignals;
use hotseat_report::store::RunStore;
use hotseat_report::view::{OnStoreError, RunSelector, ViewOptions, ViewServer};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::args::ViewArgs;
use crate::context::{CliContext, stderr};
use crate::exit::{CommandResult, ExitStatus};
use crate::store_location::{self, report_store_error};

/// Serves the page until Ctrl-C.
pub fn run(args: &ViewArgs, context: &CliContext) -> CommandResult {
    let path = store_location::locate_store(&args.location, context)?.path;
    let store = RunStore::open(&path).map_err(|error| report_store_error(&error, context))?;
    let head = match &args.run {
        Some(run) => store.find(run),
        None => store.current_run(),
    };
    let head = head.map_err(|error| report_store_error(&error, context))?;
    drop(store);
    let meant = match &args.run {
        Some(_) => RunSelector::Run(head.id.clone()),
        None => RunSelector::Current,
    };
    let broken = |words: String| context.fail(ExitStatus::RunError, words);
    let runtime = build_runtime().map_err(|error| broken(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let mut signals = ShutdownSignals::new().map_err(|error| broken(format!("cannot start: {error}")))?;
        let options =
            ViewOptions { store: path, selector: meant, port: args.port, editor: args.editor.clone() };
        let server = ViewServer::bind(options).await.map_err(|error| {
            let words = format!("cannot listen on 127.0.0.1:{}: {error}", args.port);
            broken(format!("{words}; omit --port to pick a free port"))
        })?;
        let address = server.address();
        let (id, state) = (head.short_id(), head.state.name());
        let printed =
            context.print(|out| writeln!(out, "run {id} ({state}) on http://{address}/\nCtrl-C stops it."));
        if printed != ExitStatus::Passed {
            return Err(printed);
        }
        server.run(signals.next(), error_printer(context.errors_use_color(), context.width())).await;
        Ok(ExitStatus::Passed)
    })
}

/// Builds a small runtime: requests are few, and a run may be using the CPU.
fn build_runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Returns a callback that prints why runs cannot be read, while the server keeps running.
fn error_printer(color: bool, width: usize) -> OnStoreError {
    Box::new(move |error| {
        let mut all = Diagnostics::new();
        all.extend([Diagnostic::new(error.to_string())]);
        let _ = io::Write::write_all(&mut stderr(), format!("{}\n", all.render(color, width)).as_bytes());
    })
}

/// Serves the page of a run of this process, on a separate thread.
pub struct ViewServerThread {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl ViewServerThread {
    /// Serves the page of the run that will be saved under this id. Fails if no port is available.
    pub fn start(store: PathBuf, id: &str, context: &CliContext) -> io::Result<ViewServerThread> {
        let runtime = build_runtime()?;
        let selector = RunSelector::Awaited(id.to_string());
        let options = ViewOptions { store, selector, port: 0, editor: None };
        let server = runtime.block_on(ViewServer::bind(options))?;
        let address = server.address();
        let trouble = error_printer(context.errors_use_color(), context.width());
        let (stop, stopped) = oneshot::channel::<()>();
        let serves = move || {
            let stop = async {
                let _ = stopped.await;
            };
            runtime.block_on(server.run(stop, trouble))
        };
        let thread = thread::Builder::new().name("view".to_string()).spawn(serves)?;
        Ok(ViewServerThread { address, stop, thread })
    }

    /// Returns the address of the page.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Keeps the page available until Ctrl-C.
    pub fn wait_for_interrupt(self, context: &CliContext) {
        context.print_message(&format!("view: http://{}/ stays available until Ctrl-C", self.address));
        let waited = build_runtime().and_then(|runtime| {
            runtime.block_on(async {
                ShutdownSignals::new()?.next().await;
                Ok(())
            })
        });
        if let Err(error) = waited {
            context.report_error(format!("--view: cannot keep the page available: {error}"));
        }
        self.stop();
    }

    /// Stops the server with its run, whose id is given if it was saved. Waiting pages receive the final
    /// state.
    pub fn end(self, kept: Option<&str>, context: &CliContext) {
        if let Some(id) = kept {
            let id = id.get(..8).unwrap_or(id);
            context.print_message(&format!("view: ended with the run; `hotseat view {id}` shows it"));
        }
        self.stop();
    }

    fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}
