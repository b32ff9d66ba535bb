//! Functions of the caller that scripts can call.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

/// Result of a host function.
pub type HostResult = Result<Value, HostCallError>;

/// Why a host function refused a call, or failed. The script gets an exception with its text, which it can catch.
#[derive(Debug)]
pub struct HostCallError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl HostCallError {
    /// Creates an error with its cause, whose text follows `subject` and a colon.
    pub fn new(subject: impl fmt::Display, cause: impl Into<Box<dyn Error + Send + Sync>>) -> HostCallError {
        let source = cause.into();
        HostCallError { message: format!("{subject}: {source}"), source: Some(source) }
    }

    /// Creates an error with the text of its cause.
    pub fn from_error(cause: impl Error + Send + Sync + 'static) -> HostCallError {
        HostCallError { message: cause.to_string(), source: Some(Box::new(cause)) }
    }
}

impl fmt::Display for HostCallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for HostCallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

impl<T: Into<String>> From<T> for HostCallError {
    fn from(message: T) -> HostCallError {
        HostCallError { message: message.into(), source: None }
    }
}

pub(crate) type HostFuture = Pin<Box<dyn Future<Output = HostResult>>>;

/// Functions that scripts can call, by name.
///
/// Scripts have no other access: no files, no network and no environment.
#[derive(Default)]
#[must_use]
pub struct ScriptHost {
    pub(crate) functions: Vec<(String, HostFunction)>,
    pub(crate) modules: Vec<HostModule>,
}

pub(crate) enum HostFunction {
    Sync(Box<dyn Fn(Vec<Value>) -> HostResult>),
    Blocking(WaitingFunction),
    Untimed(WaitingFunction),
    /// Returns the value of JavaScript code.
    Code(&'static str),
}

impl HostFunction {
    /// Returns how scripts call it.
    pub fn kind(&self) -> &'static str {
        match self {
            HostFunction::Sync(_) | HostFunction::Blocking(_) | HostFunction::Untimed(_) => "now",
            HostFunction::Code(_) => "code",
        }
    }
}

type WaitingFunction = Box<dyn Fn(Vec<Value>) -> HostFuture>;

/// JavaScript of the caller that wraps functions which scripts do not see directly.
pub(crate) struct HostModule {
    /// Module name for imports, if it is a module.
    pub module: Option<&'static str>,
    pub code: &'static str,
    pub functions: Vec<(String, HostFunction)>,
}

impl ScriptHost {
    /// Creates a host without functions.
    pub fn new() -> Self {
        ScriptHost::default()
    }

    /// Adds a synchronous function.
    pub fn function(
        mut self,
        name: impl Into<String>,
        function: impl Fn(Vec<Value>) -> HostResult + 'static,
    ) -> Self {
        self.functions.push((name.into(), HostFunction::Sync(Box::new(function))));
        self
    }

    /// Adds a function whose future blocks the script: an ordinary call for the script, until the future is
    /// ready, the time limit passes or the script is cancelled. Its future is polled on the thread of the context,
    /// and the caller provides what is needed to wake it, such as an entered tokio runtime.
    pub fn blocking_function<F: Future<Output = HostResult> + 'static>(
        self,
        name: impl Into<String>,
        function: impl Fn(Vec<Value>) -> F + 'static,
    ) -> Self {
        self.with_future(name, function, HostFunction::Blocking)
    }

    fn with_future<F: Future<Output = HostResult> + 'static>(
        mut self,
        name: impl Into<String>,
        function: impl Fn(Vec<Value>) -> F + 'static,
        called: fn(WaitingFunction) -> HostFunction,
    ) -> Self {
        let boxed: WaitingFunction = Box::new(move |arguments| Box::pin(function(arguments)));
        self.functions.push((name.into(), called(boxed)));
        self
    }

    /// Adds `code` that wraps the functions of another host, which scripts do not see directly. `code` is a
    /// JavaScript expression: a function that is called with an object of these functions before any module
    /// runs.
    pub fn with_wrapper(mut self, code: &'static str, with: ScriptHost) -> Self {
        let ScriptHost { functions, modules: furniture } = with;
        self.modules.extend(furniture);
        self.modules.push(HostModule { module: None, code, functions });
        self
    }

    /// Adds a [blocking](ScriptHost::blocking_function) function whose duration does not count against the time
    /// limit of the script. It ends when the script is cancelled.
    pub fn untimed_function<F: Future<Output = HostResult> + 'static>(
        self,
        name: impl Into<String>,
        function: impl Fn(Vec<Value>) -> F + 'static,
    ) -> Self {
        self.with_future(name, function, HostFunction::Untimed)
    }

    /// Adds a function that evaluates a JavaScript expression, each time it is called. With it, code of the host keeps
    /// apart what few scripts need: contexts load only what they use.
    pub fn code(mut self, name: impl Into<String>, code: &'static str) -> Self {
        self.functions.push((name.into(), HostFunction::Code(code)));
        self
    }

    /// Adds a module that scripts import by name. `code` is a JavaScript expression: a function that is
    /// called with an object of the functions of `with` and returns `{ exports, entries }`. Scripts import
    /// `exports`; the caller can [run](crate::ScriptContext::run_entry) `entries`.
    pub fn with_module(mut self, name: &'static str, code: &'static str, with: ScriptHost) -> Self {
        let ScriptHost { functions, modules: furniture } = with;
        self.modules.extend(furniture);
        self.modules.push(HostModule { module: Some(name), code, functions });
        self
    }
}

impl fmt::Debug for ScriptHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.modules.iter().flat_map(|furniture| &furniture.functions);
        f.debug_list().entries(self.functions.iter().chain(hidden).map(|(name, _)| name)).finish()
    }
}
