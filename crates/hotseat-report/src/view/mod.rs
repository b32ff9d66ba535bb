//! Shows runs in a browser while they run or later: the page of the HTML report, served to this machine only.
//!
//! The page is the same for all runs. It queries the [`store`](crate::store): the cases of a run that changed
//! after a position, the details of one case, and the list of runs. The server serves no files, and writes only the mark that makes
//! a running run show its conversations.

mod answers;
mod http;

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hotseat_serve::{AcceptLimits, TowerToHyperService, accept};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::store::RunStoreError;

/// Maximum time for pending responses after the shutdown has started.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Editors that the page knows by name.
pub const EDITORS: [&str; 5] = ["vscode", "cursor", "zed", "idea", "none"];

/// Selects the run that the root page shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunSelector {
    /// The running run, otherwise the last run.
    Current,
    /// The run with this id.
    Run(String),
    /// The run that will have this id once it starts.
    Awaited(String),
}

/// Options of the server.
#[derive(Debug, Clone)]
pub struct ViewOptions {
    /// Path of the run store.
    pub store: PathBuf,
    /// The run that is shown first.
    pub selector: RunSelector,
    /// The port, or 0 for any free port.
    pub port: u16,
    /// One of [`EDITORS`], or a link that opens a file in an editor, with `{file}`, `{line}` and `{column}`.
    /// Without it the page decides.
    pub editor: Option<String>,
}

/// Callback for errors that prevent reading the store.
pub type OnStoreError = Box<dyn Fn(&RunStoreError) + Send + Sync>;

/// Server that listens on a port.
pub struct ViewServer {
    listener: TcpListener,
    address: SocketAddr,
    options: ViewOptions,
}

impl ViewServer {
    /// Listens on 127.0.0.1 only. Requests are answered once [`run`](ViewServer::run) is called. Fails if the
    /// port is not available.
    pub async fn bind(options: ViewOptions) -> io::Result<ViewServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        let address = listener.local_addr()?;
        Ok(ViewServer { listener, address, options })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` completes. Pages that wait for changes then receive the current state.
    pub async fn run(self, stop: impl Future<Output = ()>, on_trouble: OnStoreError) {
        let end = watch::Sender::new(false);
        let shared = http::ViewState::new(self.options, self.address, end.subscribe(), on_trouble);
        let routes = TowerToHyperService::new(http::routes(Arc::new(shared)));
        let limits = AcceptLimits { shutdown_timeout: SHUTDOWN_TIMEOUT, ..AcceptLimits::default() };
        accept(self.listener, routes, limits, end, stop).await;
    }
}
