//! Servers on the loopback interface, each with a thread of its own.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use tokio::sync::{oneshot, watch};

use crate::AcceptLimits;
use crate::accept::accept;

/// A server on the loopback interface. Dropping it closes all connections.
pub struct LoopbackServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LoopbackServer {
    /// Starts the listener and its thread. Port 0 selects a free one. Fails if the listener or its thread
    /// cannot be started.
    pub fn start<S>(thread: &str, port: u16, service: S, limits: AcceptLimits) -> io::Result<LoopbackServer>
    where
        S: Service<Request<Incoming>, Response = Response<Body>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            tokio::select! {
                () = accept(listener, service, limits, watch::Sender::new(false), std::future::pending()) => {}
                _ = stopped => {}
            }
            io::Result::Ok(())
        };
        let thread = std::thread::Builder::new()
            .name(thread.to_owned())
            // Fails only if the listener cannot be registered; then the system refuses requests.
            .spawn(move || drop(runtime.block_on(serve)))?;
        Ok(LoopbackServer { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for LoopbackServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A request may hold the last reference; its thread cannot wait for itself.
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != std::thread::current().id())
        {
            let _ = thread.join();
        }
    }
}
