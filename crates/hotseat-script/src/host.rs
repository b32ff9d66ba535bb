//! Functions of the caller that scripts can call.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

/// What a host function comes to. An error becomes an exception that scripts can catch.
pub type HostResult = Result<Value, String>;

pub(crate) type HostFuture = Pin<Box<dyn Future<Output = HostResult>>>;

/// Functions of the caller, by the names under which scripts see them.
///
/// What scripts are given is what stands here: they have no files, no network and no environment of their own.
#[derive(Default)]
pub struct Host(pub(crate) Vec<(String, Function)>);

pub(crate) enum Function {
    Sync(Box<dyn Fn(Vec<Value>) -> HostResult>),
    Async(Box<dyn Fn(Vec<Value>) -> HostFuture>),
}

impl Host {
    /// No functions.
    pub fn new() -> Self {
        Host::default()
    }

    /// The same with a function that answers at once.
    #[must_use]
    pub fn function(
        mut self,
        name: impl Into<String>,
        function: impl Fn(Vec<Value>) -> HostResult + 'static,
    ) -> Self {
        self.0.push((name.into(), Function::Sync(Box::new(function))));
        self
    }

    /// The same with a function that scripts await. Its future is polled on the thread of the context; what it needs
    /// to be woken (a tokio runtime that was entered, say) is the caller's. It is dropped when the script ends.
    #[must_use]
    pub fn async_function<F>(
        mut self,
        name: impl Into<String>,
        function: impl Fn(Vec<Value>) -> F + 'static,
    ) -> Self
    where
        F: Future<Output = HostResult> + 'static,
    {
        let boxed = move |arguments| -> HostFuture { Box::pin(function(arguments)) };
        self.0.push((name.into(), Function::Async(Box::new(boxed))));
        self
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}
