//! Accepts connections and enforces their number and time limits.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::AcceptLimits;
use crate::connections::{ConnectionRoom, OpenConnection};

/// Maximum size of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Delay after a failed accept, for example if too many files are open.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves all connections until `stop` resolves. Then answers in progress are completed, and `stopping`
/// notifies streams that would not end on their own. A service that fails closes its connection without an answer.
pub async fn accept<S>(
    listener: TcpListener,
    service: S,
    limits: AcceptLimits,
    stopping: watch::Sender<bool>,
    stop: impl Future<Output = ()>,
) where
    S: Service<Request<Incoming>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).max_buf_size(MAX_HEAD_BYTES);
    let room = ConnectionRoom::new(limits.max_connections);
    let (open, ended) = watch::channel(());
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = accept_next(&listener, &room) => accepted,
            () = &mut stop => break,
        };
        let Ok((stream, place)) = accepted else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let (builder, service) = (builder.clone(), service.clone());
        let (stopping, is_open) = (stopping.subscribe(), ended.clone());
        tokio::spawn(async move {
            serve_connection(builder, stream, service, place, stopping).await;
            drop(is_open);
        });
    }
    drop((listener, ended));
    stopping.send_replace(true);
    // Clients that read too slowly are disconnected.
    let _ = tokio::time::timeout(limits.shutdown_timeout, open.closed()).await;
}

/// Accepts the next connection and waits until there is room for it.
async fn accept_next(
    listener: &TcpListener,
    room: &ConnectionRoom,
) -> io::Result<(TcpStream, Arc<OpenConnection>)> {
    let (stream, _) = listener.accept().await?;
    // Small answers must not wait for acknowledgements of earlier ones.
    let _ = stream.set_nodelay(true);
    Ok((stream, room.enter().await.map_err(io::Error::other)?))
}

/// Answers the requests of one connection.
async fn serve_connection<S>(
    builder: http1::Builder,
    stream: TcpStream,
    service: S,
    place: Arc<OpenConnection>,
    mut stopping: watch::Receiver<bool>,
) where
    S: Service<Request<Incoming>, Response = Response<Body>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let used = place.clone();
    let service = service_fn(move |request| {
        let busy = used.clone().begin_request();
        let answer = service.call(request);
        async move { Ok::<_, S::Error>(answer.await?.map(|body| busy.until_sent(body))) }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // Protocol errors and disconnects of the client are ignored.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = place.wait_closed() => return,
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
