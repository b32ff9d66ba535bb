//! Connections: how many there may be, and how long they may take.

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

use super::http::Options;

/// The longest head of a request, in bytes.
const LONGEST_HEAD: usize = 64 * 1024;
/// How long the listener waits after a connection could not be accepted, for instance because too many files are open.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Answers the requests of all connections until `stop` is over. Then answers that are under way are finished, and
/// `stopping` says so to those that would not end by themselves.
pub async fn accept(
    listener: TcpListener,
    routes: Router,
    options: &Options,
    stopping: watch::Sender<bool>,
    stop: impl Future<Output = ()>,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(options.head_timeout).max_buf_size(LONGEST_HEAD);
    let room = Arc::new(Semaphore::new(options.connections.clamp(1, Semaphore::MAX_PERMITS)));
    let (open, ended) = watch::channel(());
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = next(&listener, &room) => accepted,
            () = &mut stop => break,
        };
        let Ok((stream, permit)) = accepted else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let connection = hold(builder.clone(), stream, routes.clone(), stopping.subscribe());
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

/// The next connection, as soon as there is room for it.
async fn next(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = room.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, permit))
}

/// Answers the requests of one connection.
async fn hold(
    builder: http1::Builder,
    stream: TcpStream,
    routes: Router,
    mut stopping: watch::Receiver<bool>,
) {
    let service = TowerToHyperService::new(routes);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // That a client breaks the protocol or goes away is its own business.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
