//! Runs in a browser, while they go on and later: the page of the HTML report, served to this machine alone.
//!
//! The page is the same for all runs. It asks for what is [`kept`](crate::store): for the cases of a run that are new
//! after a place of it, for one case whole, for the runs there are. Nothing is written, and no file is served.

mod answers;
mod http;

use std::future::{Future, IntoFuture as _};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::store::StoreError;

/// How long answers that are under way may take once the server is to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The run that is shown at the address of the server itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meant {
    /// The one that goes on, or else the last.
    Current,
    /// The one with this id.
    Run(String),
    /// The one that will have this id once it begins.
    Awaited(String),
}

/// Which runs are shown, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file in which runs are kept.
    pub store: PathBuf,
    /// The run that is shown first.
    pub meant: Meant,
    /// The port; any that is free if it is 0.
    pub port: u16,
}

/// Somebody who is told why runs cannot be read any more.
pub type OnTrouble = Box<dyn Fn(&StoreError) + Send + Sync>;

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    options: Options,
}

impl Server {
    /// Listens on 127.0.0.1, and nowhere else. Requests are answered from [`run`](Server::run) on.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub async fn bind(options: Options) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        let address = listener.local_addr()?;
        Ok(Server { listener, address, options })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` is over. Pages that wait for news then get what there is.
    ///
    /// # Errors
    /// When the listener breaks.
    pub async fn run(self, stop: impl Future<Output = ()>, on_trouble: OnTrouble) -> io::Result<()> {
        let (end, ending) = watch::channel(false);
        let mut graceful = ending.clone();
        let shared = http::Shared::new(self.options, self.address, ending, on_trouble);
        let served = axum::serve(self.listener, http::routes(Arc::new(shared)));
        let served = served.with_graceful_shutdown(async move {
            let _ = graceful.wait_for(|ends| *ends).await;
        });
        let mut served = pin!(served.into_future());
        tokio::select! {
            broken = &mut served => return broken,
            () = stop => {}
        }
        let _ = end.send(true);
        // Whoever reads too slowly is left behind.
        tokio::time::timeout(PATIENCE, served).await.unwrap_or(Ok(()))
    }
}
