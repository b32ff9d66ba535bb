//! Accepts connections and enforces their number and time limits.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Maximum size of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Limits of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptLimits {
    /// Maximum number of open connections; further ones wait until one closes.
    pub max_connections: usize,
    /// Time limit for the head of a request, including the next one on a kept-alive connection.
    pub head_timeout: Duration,
}

impl Default for AcceptLimits {
    fn default() -> Self {
        AcceptLimits { max_connections: 1024, head_timeout: Duration::from_secs(60) }
    }
}

/// Delay after a failed accept, for example if too many files are open.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves all connections until `stop` resolves. Then answers in progress are completed, and `stopping`
/// notifies streams that would not end on their own.
pub async fn accept(
    listener: TcpListener,
    routes: Router,
    limits: AcceptLimits,
    stopping: watch::Sender<bool>,
    stop: impl Future<Output = ()>,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).max_buf_size(MAX_HEAD_BYTES);
    let room = Arc::new(Semaphore::new(limits.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
    let (open, ended) = watch::channel(());
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = accept_next(&listener, &room) => accepted,
            () = &mut stop => break,
        };
        let Ok((stream, permit)) = accepted else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let connection = serve_connection(builder.clone(), stream, routes.clone(), stopping.subscribe());
        let is_open = ended.clone();
        tokio::spawn(async move {
            connection.await;
            drop((permit, is_open));
        });
    }
    drop((listener, ended));
    stopping.send_replace(true);
    open.closed().await;
}

/// Accepts the next connection once there is capacity for it.
async fn accept_next(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = room.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Small answers must not wait for acknowledgements of earlier ones.
    let _ = stream.set_nodelay(true);
    Ok((stream, permit))
}

/// Answers the requests of one connection.
async fn serve_connection(
    builder: http1::Builder,
    stream: TcpStream,
    routes: Router,
    mut stopping: watch::Receiver<bool>,
) {
    let service = TowerToHyperService::new(routes);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // Protocol errors and disconnects of the client are ignored.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
