//! A context: one engine instance that runs modules.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashSet;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{self, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use hotseat_document::{SourceSpan, nearest_or};
use rquickjs::function::Func;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{
    CatchResultExt, CaughtError, Ctx, FromJs, Function, Module, Object, Persistent, Promise, Value as Js,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::bytecode::{CompiledModule, declare_host_code};
use crate::console::{ConsoleBuffer, ConsoleLevel, ConsoleLine};
use crate::error::{ScriptError, ScriptErrorKind};
use crate::host::{self, HostCallError, HostFuture, HostModule, HostResult, ScriptHost};
use crate::json_text::script_json;
use crate::limits::ScriptLimits;
use crate::modules::{ScriptModule, Scripts};
use crate::thread::StopSignal;

/// One engine instance that runs modules of [`Scripts`] on the current thread.
///
/// Contexts share only the source text of modules. Within a context, modules keep their state between calls.
#[must_use]
pub struct ScriptContext {
    scripts: Scripts,
    limits: ScriptLimits,
    state: Rc<EngineState>,
    // Engine handles must be dropped before the engine.
    environment: Option<ModuleEnv>,
    engine: rquickjs::Context,
    runtime: rquickjs::Runtime,
}

/// Handles into an initialised engine.
struct ModuleEnv {
    /// Refuses values that JSON does not represent.
    plain: Persistent<Function<'static>>,
    /// Entry functions of host modules, by module name.
    entries: Vec<(&'static str, Persistent<Object<'static>>)>,
}

/// State shared by the context and the engine's callbacks.
#[derive(Default)]
struct EngineState {
    deadline: Cell<Option<Instant>>,
    /// Postpones the deadline of a script whose computing time is limited.
    computing: RefCell<Option<ComputingTime>>,
    /// Reason why the running script must end.
    stop_reason: Cell<Option<ScriptErrorKind>>,
    stop: OnceCell<StopSignal>,
    /// Error of a module that cannot be loaded; the engine only carries a message.
    refused: RefCell<Option<ScriptError>>,
    /// Modules being compiled, the innermost last.
    importing: RefCell<Vec<String>>,
    /// Modules provided by the host, without a file, with the names that they export.
    host_modules: RefCell<Vec<(&'static str, Vec<String>)>>,
    /// All compiled modules.
    loaded: RefCell<Vec<String>>,
    /// A module and the code that runs in place of its file's code.
    replaced: RefCell<Option<(ScriptModule, String)>>,
    console: RefCell<ConsoleBuffer>,
    /// Rejected promises without a handler. Empty between calls.
    unhandled: RefCell<Vec<(Persistent<Js<'static>>, Persistent<Js<'static>>)>>,
}

impl EngineState {
    fn must_stop(&self) -> bool {
        if self.stop_reason.get().is_none() {
            self.stop_reason.set(match self.deadline.get() {
                _ if self.stop.get().is_some_and(StopSignal::is_stopped) => Some(ScriptErrorKind::Cancelled),
                Some(deadline) if Instant::now() >= deadline && !self.postpone_deadline() => {
                    Some(ScriptErrorKind::TimeLimit)
                }
                _ => None,
            });
        }
        self.stop_reason.get().is_some()
    }

    /// Postpones the deadline by the time that the script has not used. Returns false if there is none left.
    fn postpone_deadline(&self) -> bool {
        let left = self.computing.borrow().as_ref().map_or(Duration::ZERO, ComputingTime::left);
        self.deadline.set(Instant::now().checked_add(left));
        !left.is_zero()
    }

    fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            match self.stop.get() {
                Some(stop) => stop.wait_until_stopped().await,
                None => std::future::pending().await,
            }
        })
    }

    /// Like [`EngineState::wait_for`], with the script's time limit suspended.
    fn wait_untimed(&self, future: HostFuture) -> HostResult {
        let (since, deadline) = (Instant::now(), self.deadline.take());
        let result = self.block_on(future);
        self.deadline.set(deadline.and_then(|deadline| deadline.checked_add(since.elapsed())));
        result
    }

    /// Blocks until a host future is ready, but no longer than the script may run.
    fn wait_for(&self, future: HostFuture) -> HostResult {
        let since = Instant::now();
        let set_waiting =
            |since| self.computing.borrow_mut().iter_mut().for_each(|time| time.set_waiting(since));
        set_waiting(Some(since));
        let result = self.block_on(future);
        set_waiting(None);
        result
    }

    fn block_on(&self, mut future: HostFuture) -> HostResult {
        let waker = task::Waker::from(Arc::new(ThreadWaker(thread::current())));
        let mut poll = task::Context::from_waker(&waker);
        let mut stopped = self.stopped();
        loop {
            if let Poll::Ready(result) = future.as_mut().poll(&mut poll) {
                return result;
            }
            let _ = stopped.as_mut().poll(&mut poll);
            if self.must_stop() {
                return Err(STOPPED_MESSAGE.into());
            }
            park_until(self.deadline.get());
        }
    }
}

/// The time of a call that counts against its limit: that of the processor, and that of waits.
struct ComputingTime {
    limit: Duration,
    /// Processor time of the thread when the call started.
    started: Duration,
    /// Duration of the waits that have ended.
    waited: Duration,
    waiting_since: Option<Instant>,
}

impl ComputingTime {
    fn start(limit: Duration) -> ComputingTime {
        ComputingTime { limit, started: thread_time(), waited: Duration::ZERO, waiting_since: None }
    }

    /// Starts or ends a wait.
    fn set_waiting(&mut self, since: Option<Instant>) {
        let ended = std::mem::replace(&mut self.waiting_since, since);
        self.waited += ended.map_or(Duration::ZERO, |since| since.elapsed());
    }

    fn left(&self) -> Duration {
        let waits = self.waited + self.waiting_since.map_or(Duration::ZERO, |since| since.elapsed());
        self.limit.saturating_sub(thread_time().saturating_sub(self.started)).saturating_sub(waits)
    }
}

/// Returns the processor time that the current thread has used.
fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

impl ScriptContext {
    /// Creates a context whose scripts can call the functions of `host`.
    ///
    /// # Errors
    /// If there is not enough memory to start the engine.
    pub fn new(
        scripts: &Scripts,
        limits: ScriptLimits,
        host: ScriptHost,
    ) -> Result<ScriptContext, ScriptError> {
        let state = Rc::new(EngineState::default());
        let runtime = rquickjs::Runtime::new().map_err(|_| no_memory(limits))?;
        runtime.set_memory_limit(limits.memory);
        runtime.set_max_stack_size(limits.stack);
        runtime.set_gc_threshold(FIRST_COLLECTION_BYTES.min(limits.memory / 4));
        let watched = Rc::clone(&state);
        runtime.set_interrupt_handler(Some(Box::new(move || watched.must_stop())));
        let watched = Rc::clone(&state);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, handled| {
            watched.rejected(&ctx, promise, reason, handled);
        })));
        let files = ModuleLoader { scripts: scripts.clone(), state: Rc::clone(&state) };
        runtime.set_loader(files.clone(), files);
        let engine = rquickjs::Context::full(&runtime).map_err(|_| no_memory(limits))?;
        let furnished = engine.with(|ctx| install_host(&ctx, &state, host)).map_err(|_| no_memory(limits))?;
        Ok(ScriptContext {
            scripts: scripts.clone(),
            limits,
            state,
            environment: Some(furnished),
            engine,
            runtime,
        })
    }

    /// Cancels running scripts when `stop` is signalled.
    pub fn with_stop(self, stop: StopSignal) -> ScriptContext {
        // The context is not shared yet, so the cell is empty.
        let _ = self.state.stop.set(stop);
        self
    }

    /// Runs `code` in place of the [code](Scripts::code) of a module. Every statement must keep its line and column, so
    /// that errors point at the file.
    pub fn with_code(self, module: &ScriptModule, code: String) -> ScriptContext {
        self.state.replaced.replace(Some((module.clone(), code)));
        self
    }

    /// Checks that a module exports a function of this name. Runs the module if necessary.
    ///
    /// # Errors
    /// If the module cannot be loaded or exports no such function.
    pub fn check_export(&mut self, module: &ScriptModule, name: &str) -> Result<(), ScriptError> {
        self.within_limits(|context, ctx| {
            let namespace = context.load(ctx, module)?;
            context.function(&namespace, module, name).map(drop)
        })
    }

    /// Calls an exported function (`default` included) and awaits its result. `undefined` becomes null.
    ///
    /// # Errors
    /// If the module cannot be loaded, exports no such function, or the call does not return a JSON value in
    /// time.
    pub fn call(
        &mut self,
        module: &ScriptModule,
        name: &str,
        arguments: &[Value],
    ) -> Result<Value, ScriptError> {
        self.within_limits(|context, ctx| {
            let namespace = context.load(ctx, module)?;
            let function = context.function(&namespace, module, name)?;
            let arguments = arguments.iter().map(|argument| ctx.json_parse(script_json(argument)));
            let arguments = context.catch_exception(ctx, arguments.collect::<Result<Vec<_>, _>>())?;
            let returned: Js<'_> =
                context.catch_exception(ctx, function.call((rquickjs::function::Rest(arguments),)))?;
            let value = context.await_value(ctx, returned)?;
            context.json(ctx, module, name, value)
        })
    }

    /// Runs a module, and then an entry function of a [host module](ScriptHost::with_module) with the exports of the
    /// module and these arguments. The result is awaited.
    ///
    /// # Errors
    /// As [`ScriptContext::call`].
    pub fn run_entry(
        &mut self,
        host: &str,
        entry: &str,
        module: &ScriptModule,
        arguments: &[Value],
    ) -> Result<Value, ScriptError> {
        self.within_limits(|context, ctx| {
            let namespace = context.load(ctx, module)?;
            let made = context.environment.iter().flat_map(|furnished| &furnished.entries);
            let Some((_, entries)) = made.into_iter().find(|(name, _)| *name == host) else {
                return Err(ScriptError::new(
                    ScriptErrorKind::Import,
                    format!("there is no module `{host}`"),
                ));
            };
            let entries = context.catch_exception(ctx, entries.clone().restore(ctx))?;
            let entry_function: Function<'_> = context.catch_exception(ctx, entries.get(entry))?;
            let mut given = vec![namespace.into_value()];
            for argument in arguments {
                given.push(context.catch_exception(ctx, ctx.json_parse(script_json(argument)))?);
            }
            let returned: Js<'_> =
                context.catch_exception(ctx, entry_function.call((rquickjs::function::Rest(given),)))?;
            let value = context.await_value(ctx, returned)?;
            context.json(ctx, module, entry, value)
        })
    }

    /// Awaits a returned value and all promises that were started.
    fn await_value<'js>(&self, ctx: &Ctx<'js>, returned: Js<'js>) -> Result<Js<'js>, ScriptError> {
        let value = match returned.as_promise() {
            Some(promise) => self.await_promise(ctx, promise)?,
            None => returned,
        };
        self.run_jobs(ctx)?;
        if let Some(error) = self.state.take_unhandled(ctx).map(|reason| self.describe_exception(ctx, reason))
        {
            let message = format!("a promise that is not awaited was rejected: {}", error.message);
            return Err(ScriptError { message, ..error });
        }
        Ok(value)
    }

    /// Returns the console output since the last call.
    pub fn take_console(&mut self) -> Vec<ConsoleLine> {
        self.state.console.borrow_mut().take()
    }

    /// Returns the memory used by the engine, in bytes.
    pub fn memory_usage(&self) -> usize {
        usize::try_from(self.runtime.memory_usage().malloc_size).unwrap_or(0)
    }

    fn within_limits<T>(
        &mut self,
        work: impl FnOnce(&ScriptContext, &Ctx<'_>) -> Result<T, ScriptError>,
    ) -> Result<T, ScriptError> {
        self.state.stop_reason.set(None);
        let ScriptLimits { time, is_computing_time, .. } = self.limits;
        self.state.deadline.set(Instant::now().checked_add(time));
        self.state.computing.replace(is_computing_time.then(|| ComputingTime::start(time)));
        let result = self.engine.with(|ctx| {
            let result = work(self, &ctx);
            while self.state.take_unhandled(&ctx).is_some() {}
            result
        });
        self.state.deadline.set(None);
        self.state.importing.borrow_mut().clear();
        self.state.refused.borrow_mut().take();
        result
    }

    fn load<'js>(&self, ctx: &Ctx<'js>, module: &ScriptModule) -> Result<Object<'js>, ScriptError> {
        // Reports an invalid file directly, without the engine.
        self.scripts.load(module.path())?;
        let promise =
            self.catch_exception(ctx, Module::import(ctx, format!("{ENTRY_PREFIX}{}", module.path())))?;
        let namespace = self.await_promise(ctx, &promise).map_err(|error| match error.kind {
            ScriptErrorKind::NeverSettles => self.module_never_settles(error),
            _ => error,
        })?;
        namespace
            .into_object()
            .ok_or_else(|| ScriptError::new(ScriptErrorKind::Import, "a module is not an object"))
    }

    fn function<'js>(
        &self,
        namespace: &Object<'js>,
        module: &ScriptModule,
        name: &str,
    ) -> Result<Function<'js>, ScriptError> {
        let place = self.scripts.place(module.path(), 1, 1);
        let file = place.as_ref().map_or(module.path(), SourceSpan::file).to_string();
        let all = exports(namespace);
        let value: Option<Js<'js>> = namespace.get(name).ok().filter(|value: &Js<'_>| !value.is_undefined());
        match value.map(|value| value.into_function()) {
            Some(Some(function)) => Ok(function),
            Some(None) => Err(ScriptError::new(
                ScriptErrorKind::NotAFunction,
                format!("`{name}` in {file} is not a function"),
            )),
            None => {
                let functions: Vec<&str> =
                    all.iter().filter(|(_, callable)| *callable).map(|(name, _)| name.as_str()).collect();
                let help = nearest_or(name, functions.iter().copied(), || match functions.is_empty() {
                    true => format!("the file exports no function; write `export function {name}`"),
                    false => format!("it exports {}", functions.join(", ")),
                });
                let message = format!("{file} exports no function `{name}`");
                Err(ScriptError::new(ScriptErrorKind::MissingExport, message).help(help))
            }
        }
    }

    /// Returns the value of a promise when it is settled.
    fn await_promise<'js>(&self, ctx: &Ctx<'js>, promise: &Promise<'js>) -> Result<Js<'js>, ScriptError> {
        let ran = self.run_jobs(ctx);
        if ran.is_err() {
            // The promise of an interrupted module is rejected with the place, by jobs of the engine.
            for _ in 0..JOBS_AFTER_STOP {
                ctx.execute_pending_job();
            }
        }
        match (promise.result::<Js<'js>>(), ran) {
            (Some(Err(error)), _) => self.catch_exception(ctx, Err(error)),
            (_, Err(stopped)) => Err(stopped),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => {
                let message = "the script awaits a promise that can no longer settle";
                Err(ScriptError::new(ScriptErrorKind::NeverSettles, message)
                    .help("a promise is settled by its `resolve` or `reject`; there are no timers"))
            }
        }
    }

    /// Names the `await`s outside of functions: one of them waits. The engine does not tell which.
    fn module_never_settles(&self, error: ScriptError) -> ScriptError {
        let keys = self.state.loaded.borrow();
        let mut awaits = keys.iter().flat_map(|key| self.scripts.top_level_awaits(key));
        let first = awaits.next();
        let help = match awaits.count() {
            0 => return error.at(first),
            _ => "it is this `await`, or another one outside of functions",
        };
        error.at(first).help(help)
    }

    fn run_jobs(&self, ctx: &Ctx<'_>) -> Result<(), ScriptError> {
        loop {
            if self.state.must_stop() {
                return Err(self.stop_error());
            }
            if !ctx.execute_pending_job() {
                return Ok(());
            }
        }
    }

    fn json<'js>(
        &self,
        ctx: &Ctx<'js>,
        module: &ScriptModule,
        name: &str,
        value: Js<'js>,
    ) -> Result<Value, ScriptError> {
        let refused = |what: &str| {
            let message = format!("the result of `{name}` cannot be converted to JSON: {what}");
            let place = self.scripts.place(module.path(), 1, 1);
            let file = place.as_ref().map_or(module.path(), SourceSpan::file);
            ScriptError::new(ScriptErrorKind::NotSerialisable, message)
                .help(format!("return plain data from `{name}` in {file}"))
        };
        if value.is_undefined() {
            return Ok(Value::Null);
        }
        if value.as_float().is_some_and(|number| !number.is_finite()) {
            return Err(refused("it is not a finite number"));
        }
        if is_generator(ctx, &value) {
            return Err(refused("a generator function runs nothing when it is called"));
        }
        let Some(ModuleEnv { plain, .. }) = &self.environment else { return Ok(Value::Null) };
        let plain = self.catch_exception(ctx, plain.clone().restore(ctx))?;
        let text = match self.catch_exception(ctx, ctx.json_stringify_replacer(value, plain)) {
            Ok(Some(text)) => self.catch_exception(ctx, text.to_string())?,
            Ok(None) => return Err(refused("it is a function or a symbol")),
            Err(error) if error.kind == ScriptErrorKind::Thrown => return Err(refused(&error.message)),
            Err(error) => return Err(error),
        };
        serde_json::from_str(&text).map_err(|error| refused(&error.to_string()))
    }

    /// Converts an exception of the engine to an error.
    fn catch_exception<T>(&self, ctx: &Ctx<'_>, result: rquickjs::Result<T>) -> Result<T, ScriptError> {
        result.catch(ctx).map_err(|caught| match caught {
            CaughtError::Exception(exception) => self.describe_exception(ctx, exception.into_value()),
            CaughtError::Value(value) => self.describe_exception(ctx, value),
            CaughtError::Error(rquickjs::Error::Allocation) => no_memory(self.limits),
            CaughtError::Error(error) => ScriptError::new(ScriptErrorKind::Thrown, error.to_string()),
        })
    }

    /// Converts a thrown value to an error.
    fn describe_exception<'js>(&self, ctx: &Ctx<'js>, thrown: Js<'js>) -> ScriptError {
        let exception = thrown.clone().into_object().and_then(rquickjs::Exception::from_object);
        let Some(exception) = exception else {
            // The engine throws null if there is no memory left for an error.
            if thrown.is_null() && !self.state.loaded.borrow().iter().any(|key| self.scripts.throws_null(key))
            {
                return no_memory(self.limits);
            }
            let shown = ctx.json_stringify(thrown).ok().flatten().and_then(|text| text.to_string().ok());
            // Serialising the thrown value may itself run forever.
            if self.state.stop_reason.get().is_some() {
                return self.stop_error();
            }
            let shown = shown.unwrap_or_else(|| "a value that is not an error".to_string());
            return ScriptError::new(ScriptErrorKind::Thrown, format!("thrown: {shown}"))
                .help("throw an `Error`, which records its location");
        };
        let class: String = exception.get("name").unwrap_or_default();
        let text = exception.message().unwrap_or_default();
        // An import error that was caught earlier is not the current one.
        if let Some(refused) =
            self.state.refused.borrow_mut().take_if(|refused| text.contains(&refused.message))
        {
            return refused;
        }
        let calls = exception.stack().unwrap_or_default();
        let stack = self.scripts.frames(&calls);
        let place = stack.first().map(|frame| frame.place.clone());
        let error = match class.as_str() {
            _ if self.state.stop_reason.get().is_some() => self.stop_error(),
            "InternalError" | "RangeError" if text == "out of memory" || text == "string too long" => {
                no_memory(self.limits)
            }
            "InternalError" | "RangeError" if text == "Maximum call stack size exceeded" => {
                ScriptError::new(ScriptErrorKind::StackLimit, "the script exceeds the maximum call depth")
            }
            "SyntaxError" if stack.len() <= 1 && !calls.contains("(native)") => self.syntax_error(&text),
            "ReferenceError" if let Some(help) = self.missing_name_help(&text) => {
                ScriptError::new(ScriptErrorKind::Thrown, format!("{class}: {text}")).help(help)
            }
            "TypeError"
                if text == "not a function"
                    && let Some(callee) = place.as_ref().and_then(callee) =>
            {
                ScriptError::new(ScriptErrorKind::Thrown, format!("{class}: `{callee}` is not a function"))
            }
            "" => ScriptError::new(ScriptErrorKind::Thrown, text),
            class if text.is_empty() => ScriptError::new(ScriptErrorKind::Thrown, class),
            class => ScriptError::new(ScriptErrorKind::Thrown, format!("{class}: {text}")),
        };
        let error = match (error.kind, &place) {
            // The engine names no line of an invalid regular expression.
            (ScriptErrorKind::Syntax, None) => {
                let module = self.state.importing.borrow().last().cloned();
                let place = module.as_ref().and_then(|key| self.pattern_place(ctx, key, &error.message));
                match (place, module) {
                    (None, Some(key)) => error
                        .at(self.scripts.place(&key, 1, 1))
                        .help("look for an invalid regular expression in this file"),
                    (place, _) => error.at(place).help("this regular expression is invalid"),
                }
            }
            _ => error,
        };
        let place = error.place.clone().or(place);
        // A recursion repeats the same location.
        let stack = if error.kind == ScriptErrorKind::StackLimit { Vec::new() } else { stack };
        ScriptError { place, stack, ..error }
    }

    /// Returns the location of the regular expression of a module that the engine refuses with this message. The shortest
    /// part of the code that is refused with the message ends where the expression ends. It begins at the last slash
    /// in whose place another invalid expression is one, too, on a line of its own: there no other literal goes on.
    fn pattern_place(&self, ctx: &Ctx<'_>, key: &str, message: &str) -> Option<SourceSpan> {
        const INVALID_PATTERN: &str = "\n/(/";
        let loaded = self.scripts.load(key).ok()?;
        let code = &*loaded.code.text;
        // Errors of regular expressions have no place.
        let refusal = |code: &str| match Module::declare(ctx.clone(), "pattern", code).catch(ctx) {
            Err(CaughtError::Exception(error)) => {
                let calls = error.stack().unwrap_or_default();
                error.message().filter(|_| !calls.contains("pattern:"))
            }
            _ => None,
        };
        let is_refused = |code: &str| refusal(code).as_deref() == Some(message);
        if !is_refused(code) {
            return None;
        }
        let (mut start, mut end) = (0_usize, code.len());
        loop {
            let middle = code.floor_char_boundary(start.midpoint(end));
            match middle > start {
                true if is_refused(&code[..middle]) => end = middle,
                true => start = middle,
                false => break,
            }
        }
        let invalid = refusal(INVALID_PATTERN);
        let mut slashes = code[..end].rmatch_indices('/').map(|(at, _)| at).take(MAX_PATTERN_SLASHES);
        let start = slashes.find(|at| refusal(&format!("{}{INVALID_PATTERN}", &code[..*at])) == invalid)?;
        let (line, bytes) = loaded.code.line_and_bytes(start);
        self.scripts.place(key, line, bytes + 1)
    }

    /// Error found by the engine while compiling or linking.
    fn syntax_error(&self, text: &str) -> ScriptError {
        let error = ScriptError::new(ScriptErrorKind::Syntax, text);
        let Some((name, module)) = missing_import(text) else { return error };
        let importing = self.state.importing.borrow();
        let place = importing.iter().find_map(|from| self.scripts.import_place(from, module, name));
        let host_modules = self.state.host_modules.borrow();
        let exports = host_modules.iter().find(|(host, _)| *host == module).map(|(_, names)| names);
        let help = match exports {
            Some(exports) => nearest_or(name, exports.iter().map(String::as_str), || {
                format!("{module} exports {}; if `{name}` is a type, write `import type`", exports.join(", "))
            }),
            None => format!("if `{name}` is a type, write `import type`"),
        };
        ScriptError::new(ScriptErrorKind::Import, format!("{module} exports no `{name}`"))
            .at(place)
            .help(help)
    }

    /// Advice for a name that does not exist: one of other systems, or one that is only not imported.
    fn missing_name_help(&self, text: &str) -> Option<String> {
        let name = text.strip_suffix(" is not defined")?;
        if NODE_MODULE_WORDS.contains(&name) {
            return Some("modules are imported and exported: `import { name } from \"./file\"`, `export const name = …`".into());
        }
        if TIMER_WORDS.contains(&name) {
            return Some("scripts have no timers: what takes time, such as a message to the agent, returns when it is done".into());
        }
        let host_modules = self.state.host_modules.borrow();
        let (module, _) = host_modules.iter().find(|(_, names)| names.iter().any(|export| export == name))?;
        Some(format!("import it: `import {{ {name} }} from \"{module}\"`"))
    }

    /// Returns the error of a script that had to stop.
    fn stop_error(&self) -> ScriptError {
        match self.state.stop_reason.get() {
            Some(ScriptErrorKind::Cancelled) => {
                ScriptError::new(ScriptErrorKind::Cancelled, "the script was cancelled")
            }
            _ => {
                let message = format!("the script did not finish within {} ms", self.limits.time.as_millis());
                ScriptError::new(ScriptErrorKind::TimeLimit, message)
            }
        }
    }
}

impl Drop for ScriptContext {
    fn drop(&mut self) {
        self.environment.take();
    }
}

/// Memory at which the engine first looks for cycles of garbage. A new context with its host code has less, so that
/// most scripts end before.
const FIRST_COLLECTION_BYTES: usize = 1024 * 1024;

/// Error of host functions called by a script that should have ended.
const STOPPED_MESSAGE: &str = "the script has exceeded its time limit";

/// Variables of modules that are loaded by `require`. They do not exist here.
const NODE_MODULE_WORDS: [&str; 3] = ["require", "module", "exports"];
/// Timers of browsers and Node. They do not exist here.
const TIMER_WORDS: [&str; 4] = ["setTimeout", "setInterval", "setImmediate", "requestAnimationFrame"];

/// Maximum number of slashes before its end at which an invalid regular expression may begin.
const MAX_PATTERN_SLASHES: usize = 100;

/// Maximum number of jobs that run after a script had to stop. Code of the script is interrupted in them, too.
const JOBS_AFTER_STOP: usize = 4;

/// Prefix of module keys requested by the caller, to distinguish them from imports.
const ENTRY_PREFIX: &str = "entry:";

/// True for what a generator function returns. Its JSON would be `{}`, as if the function had run.
fn is_generator<'js>(ctx: &Ctx<'js>, value: &Js<'js>) -> bool {
    let has = |object: &Object<'js>, method: &str| object.get::<_, Function>(method).catch(ctx).is_ok();
    value.as_object().is_some_and(|object| has(object, "next") && has(object, "throw"))
}

fn no_memory(limits: ScriptLimits) -> ScriptError {
    let message = format!("the script needs more than {} MiB of memory", limits.memory / (1024 * 1024));
    ScriptError::new(ScriptErrorKind::MemoryLimit, message)
}

fn exports(namespace: &Object<'_>) -> Vec<(String, bool)> {
    let names: Vec<String> = namespace.keys::<String>().filter_map(Result::ok).collect();
    let mut seen = HashSet::new();
    let callable = |name: &str| namespace.get::<_, Js<'_>>(name).is_ok_and(|value| value.is_function());
    names
        .into_iter()
        .filter(|name| seen.insert(name.clone()))
        .map(|name| {
            let callable = callable(&name);
            (name, callable)
        })
        .collect()
}

/// Parses the engine's `Could not find export 'name' in module 'module'`.
fn missing_import(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("Could not find export '")?;
    let (name, rest) = rest.split_once("' in module '")?;
    Some((name, rest.strip_suffix('\'')?))
}

fn answer(result: HostResult) -> String {
    match result {
        Ok(value) => script_json(&json!({ "value": value })),
        Err(error) => json!({ "error": error.to_string() }).to_string(),
    }
}

/// Installs the console and the functions and modules of the host in a new engine.
fn install_host<'js>(
    ctx: &Ctx<'js>,
    state: &Rc<EngineState>,
    host: ScriptHost,
) -> rquickjs::Result<ModuleEnv> {
    let ScriptHost { functions, modules: furniture } = host;
    let (mut names, mut all): (Vec<String>, Vec<host::HostFunction>) = functions.into_iter().unzip();
    let seen = names.len();
    // Hidden functions follow, grouped by host module.
    let mut pieces = Vec::with_capacity(furniture.len());
    for HostModule { module, code, functions } in furniture {
        let first = names.len();
        let (hidden_names, hidden): (Vec<String>, Vec<host::HostFunction>) = functions.into_iter().unzip();
        names.extend(hidden_names);
        all.extend(hidden);
        pieces.push((module, code, first..names.len()));
    }
    let kinds: Vec<&'static str> = all.iter().map(host::HostFunction::kind).collect();
    let functions: Rc<[host::HostFunction]> = all.into();

    let spoken = Rc::clone(state);
    let say = Func::from(move |level: String, text: String| {
        spoken.console.borrow_mut().push(ConsoleLevel::from_name(&level), text);
    });
    let (called, waiting) = (Rc::clone(&functions), Rc::clone(state));
    let call_now = Func::from(move |index: usize, arguments: String| -> String {
        // A script that should have ended performs no further actions, even before the engine notices.
        if waiting.must_stop() {
            return answer(Err(STOPPED_MESSAGE.into()));
        }
        answer(parse_arguments(&arguments).and_then(|arguments| match called.get(index) {
            Some(host::HostFunction::Sync(function)) => function(arguments),
            Some(host::HostFunction::Blocking(function)) => waiting.wait_for(function(arguments)),
            Some(host::HostFunction::Untimed(function)) => waiting.wait_untimed(function(arguments)),
            Some(host::HostFunction::Code(_)) | None => Ok(Value::Null),
        }))
    });
    let load = Func::from(move |ctx: Ctx<'js>, index: usize| match functions.get(index) {
        Some(host::HostFunction::Code(code)) => eval_host_code::<Js<'js>>(&ctx, code),
        Some(_) | None => Ok(Js::new_undefined(ctx)),
    });
    let prelude: Function<'_> = eval_host_code(ctx, include_str!("prelude.js"))?;
    let helpers: Object<'_> = prelude.call((say, call_now, load))?;
    let define: Function<'_> = helpers.get("define")?;
    let conceal: Function<'_> = helpers.get("conceal")?;
    for index in 0..seen {
        define.call::<_, ()>((names[index].as_str(), index, kinds[index]))?;
    }
    let mut entries = Vec::new();
    for (module, code, indexes) in pieces {
        let first = indexes.start;
        let hidden: Object<'_> = conceal.call((&names[indexes.clone()], kinds[indexes].to_vec(), first))?;
        let made: Js<'_> = eval_host_code::<Function<'_>>(ctx, code)?.call((hidden,))?;
        if let (Some(name), Some(made)) = (module, made.as_object()) {
            entries.push((name, Persistent::save(ctx, declare_host_module(ctx, name, code, made)?)));
            let exports: Object<'_> = made.get("exports")?;
            let names = exports.keys::<String>().collect::<rquickjs::Result<_>>()?;
            state.host_modules.borrow_mut().push((name, names));
        }
    }
    let plain: Function<'_> = helpers.get("plain")?;
    Ok(ModuleEnv { plain: Persistent::save(ctx, plain), entries })
}

/// Declares a module from the exports of host code and returns its entry functions.
fn declare_host_module<'js>(
    ctx: &Ctx<'js>,
    name: &'static str,
    code: &'static str,
    made: &Object<'js>,
) -> rquickjs::Result<Object<'js>> {
    let exports: Object<'_> = made.get("exports")?;
    let module = declare_host_code(ctx, name, code, || {
        let mut text = "const { exports } = import.meta;".to_string();
        for key in exports.keys::<String>() {
            let key = key?;
            text.push_str(&format!("export const {key} = exports.{key};"));
        }
        Ok(text)
    })?;
    module.meta()?.set("exports", exports)?;
    let (_, evaluated) = module.eval()?;
    evaluated.finish::<()>()?;
    made.get("entries")
}

/// Evaluates code of the host, which has no file.
fn eval_host_code<'js, T: FromJs<'js>>(ctx: &Ctx<'js>, code: &'static str) -> rquickjs::Result<T> {
    let module = declare_host_code(ctx, "the engine", code, || Ok(format!("export default {code}")))?;
    let (module, evaluated) = module.eval()?;
    evaluated.finish::<()>()?;
    module.get("default")
}

fn parse_arguments(arguments: &str) -> Result<Vec<Value>, HostCallError> {
    serde_json::from_str(&replace_surrogates(arguments))
        .map_err(|error| HostCallError::new("invalid arguments", error))
}

/// Replaces unpaired surrogates, which are not valid text. In JSON of the engine nothing else is escaped as `\\ud…`.
fn replace_surrogates(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") {
        return Cow::Borrowed(json);
    }
    let (mut replaced, mut rest) = (String::with_capacity(json.len()), json);
    while let Some((before, escape)) = rest.split_once('\\') {
        replaced.push_str(before);
        rest = match escape.strip_prefix("ud").and_then(|digits| digits.get(3..)) {
            Some(after) => {
                replaced.push(char::REPLACEMENT_CHARACTER);
                after
            }
            // What is escaped may be a backslash.
            None => {
                let mut after = escape.chars();
                replaced.push('\\');
                replaced.extend(after.next());
                after.as_str()
            }
        };
    }
    replaced.push_str(rest);
    Cow::Owned(replaced)
}

impl EngineState {
    fn rejected<'js>(&self, ctx: &Ctx<'js>, promise: Js<'js>, reason: Js<'js>, handled: bool) {
        let mut unhandled = self.unhandled.borrow_mut();
        if handled {
            unhandled.retain(|(known, _)| known.clone().restore(ctx).is_ok_and(|known| known != promise));
        } else {
            unhandled.push((Persistent::save(ctx, promise), Persistent::save(ctx, reason)));
        }
    }

    fn take_unhandled<'js>(&self, ctx: &Ctx<'js>) -> Option<Js<'js>> {
        let (_, reason) = self.unhandled.borrow_mut().pop()?;
        reason.restore(ctx).ok()
    }
}

/// Resolves and loads modules for the engine.
#[derive(Clone)]
struct ModuleLoader {
    scripts: Scripts,
    state: Rc<EngineState>,
}

impl ModuleLoader {
    /// Stores the error and returns a placeholder, since the engine can carry only a message.
    fn store_error<T>(&self, name: &str, result: Result<T, ScriptError>) -> rquickjs::Result<T> {
        result.map_err(|error| {
            let thrown = rquickjs::Error::new_resolving_message("", name, error.message.clone());
            self.state.refused.borrow_mut().replace(error);
            thrown
        })
    }
}

impl Resolver for ModuleLoader {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        if let Some(key) = name.strip_prefix(ENTRY_PREFIX)
            && base.is_empty()
        {
            return Ok(key.to_string());
        }
        if self.state.host_modules.borrow().iter().any(|(module, _)| *module == name) {
            return Ok(name.to_string());
        }
        self.store_error(name, self.scripts.import(base, name))
    }
}

impl Loader for ModuleLoader {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let loaded = self.store_error(name, self.scripts.load(name))?;
        self.state.importing.borrow_mut().push(name.to_string());
        self.state.loaded.borrow_mut().push(name.to_string());
        let replaced = self.state.replaced.borrow();
        if let Some((_, code)) = replaced.as_ref().filter(|(key, _)| key.path() == name) {
            return Module::declare(ctx.clone(), name, code.as_str());
        }
        if let Some(compiled) = loaded.compiled.get() {
            return compiled.declare(ctx);
        }
        let module = Module::declare(ctx.clone(), name, loaded.code.text.as_str())?;
        // The first context, which lists the exports, may be the only one.
        if loaded.is_reused()
            && let Some(compiled) = CompiledModule::from_module(name, &module)
        {
            let _ = loaded.compiled.set(compiled);
        }
        Ok(module)
    }
}

/// Sleeps until the thread is unparked or the deadline passes.
fn park_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => thread::park_timeout(deadline.saturating_duration_since(Instant::now())),
        None => thread::park(),
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Returns the called expression if the location is its last name and its call follows, such as `user.say`.
fn callee(place: &SourceSpan) -> Option<&str> {
    let text = &place.source.text;
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
    let is_call = text[place.span.end..].starts_with('(');
    let start = text[..place.span.end].rfind(|c| !is_part(c)).map_or(0, |at| text.ceil_char_boundary(at + 1));
    let callee = &text[start..place.span.end];
    (is_call && callee.len() >= place.span.len() && !callee.starts_with('.')).then_some(callee)
}
