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
pub struct Host {
    pub(crate) functions: Vec<(String, Function)>,
    pub(crate) furniture: Vec<Furniture>,
}

pub(crate) enum Function {
    Sync(Box<dyn Fn(Vec<Value>) -> HostResult>),
    Async(AsyncFunction),
    Waiting(AsyncFunction),
    Pausing(AsyncFunction),
}

type AsyncFunction = Box<dyn Fn(Vec<Value>) -> HostFuture>;

/// What JavaScript of the caller makes of functions that scripts do not see themselves.
pub(crate) struct Furniture {
    /// The module that it is for scripts, if it is one.
    pub module: Option<&'static str>,
    pub code: &'static str,
    pub functions: Vec<(String, Function)>,
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
        self.functions.push((name.into(), Function::Sync(Box::new(function))));
        self
    }

    /// The same with a function that scripts await. Its future is polled on the thread of the context; what it needs
    /// to be woken (a tokio runtime that was entered, say) is the caller's. It is dropped when the script ends.
    #[must_use]
    pub fn async_function<F>(
        self,
        name: impl Into<String>,
        function: impl Fn(Vec<Value>) -> F + 'static,
    ) -> Self
    where
        F: Future<Output = HostResult> + 'static,
    {
        self.with_future(name, function, Function::Async)
    }

    /// The same with a function that is a future here and an ordinary call there: the script stands still until the
    /// future has come to something, its time is over, or nobody waits for it any more. It is polled as that of an
    /// [asynchronous function](Host::async_function) is.
    #[must_use]
    pub fn waiting_function<F>(
        self,
        name: impl Into<String>,
        function: impl Fn(Vec<Value>) -> F + 'static,
    ) -> Self
    where
        F: Future<Output = HostResult> + 'static,
    {
        self.with_future(name, function, Function::Waiting)
    }

    fn with_future<F>(
        mut self,
        name: impl Into<String>,
        function: impl Fn(Vec<Value>) -> F + 'static,
        called: fn(AsyncFunction) -> Function,
    ) -> Self
    where
        F: Future<Output = HostResult> + 'static,
    {
        let boxed: AsyncFunction = Box::new(move |arguments| Box::pin(function(arguments)));
        self.functions.push((name.into(), called(boxed)));
        self
    }

    /// The same with what `code` makes of the functions of another host, which scripts do not see themselves. It is an
    /// expression in JavaScript, a function that is called with an object of them before any module runs.
    #[must_use]
    pub fn furnished(mut self, code: &'static str, with: Host) -> Self {
        let Host { functions, furniture } = with;
        self.furniture.extend(furniture);
        self.furniture.push(Furniture { module: None, code, functions });
        self
    }

    /// The same with a function that [waits](Host::waiting_function) for something that is none of the script's business:
    /// while it waits, the clock of the script stands still. It ends when nobody waits for the script any more.
    #[must_use]
    pub fn pausing_function<F>(
        self,
        name: impl Into<String>,
        function: impl Fn(Vec<Value>) -> F + 'static,
    ) -> Self
    where
        F: Future<Output = HostResult> + 'static,
    {
        self.with_future(name, function, Function::Pausing)
    }

    /// The same with a module that scripts import by its name. `code` is an expression in JavaScript: a function that is
    /// called with an object of the functions of `with` and returns `{ exports, entries }`. `exports` is what scripts
    /// import; `entries` is what the caller can [enter](crate::Context::enter).
    #[must_use]
    pub fn module(mut self, name: &'static str, code: &'static str, with: Host) -> Self {
        let Host { functions, furniture } = with;
        self.furniture.extend(furniture);
        self.furniture.push(Furniture { module: Some(name), code, functions });
        self
    }

    /// The same with everything of another host.
    #[must_use]
    pub fn and(mut self, other: Host) -> Self {
        self.functions.extend(other.functions);
        self.furniture.extend(other.furniture);
        self
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.furniture.iter().flat_map(|furniture| &furniture.functions);
        f.debug_list().entries(self.functions.iter().chain(hidden).map(|(name, _)| name)).finish()
    }
}
