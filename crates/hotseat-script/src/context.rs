//! A context: an engine of its own, in which modules are run.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashSet;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{self, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use hotseat_document::{Place, nearest};
use rquickjs::context::EvalOptions;
use rquickjs::function::Func;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::promise::PromiseState;
use rquickjs::{CatchResultExt, CaughtError, Ctx, Function, Object, Persistent, Promise, Value as Js};
use serde_json::{Value, json};

use crate::console::{Console, Level, Line};
use crate::error::{ErrorKind, ScriptError};
use crate::host::{self, Furniture, Host, HostFuture, HostResult};
use crate::modules::{Module, Scripts};
use crate::thread::Stop;

/// What a script may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long one call may take, with the loading of its modules and all that it awaits.
    pub time: Duration,
    /// How many bytes a context may hold.
    pub memory: usize,
    /// How many bytes of stack calls may take. The thread that a context runs on needs twice as many.
    pub stack: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { time: Duration::from_secs(10), memory: 64 * 1024 * 1024, stack: 512 * 1024 }
    }
}

/// An engine of its own in which modules of [`Scripts`] are run, on the thread that made it.
///
/// Nothing is shared between contexts but the text of the modules. Within one, modules keep what they hold from call to
/// call.
pub struct Context {
    scripts: Scripts,
    limits: Limits,
    state: Rc<State>,
    // What is held of an engine has to go before the engine.
    furnished: Option<Furnished>,
    engine: rquickjs::Context,
    runtime: rquickjs::Runtime,
}

/// What is held of an engine that was furnished.
struct Furnished {
    /// Settles calls of asynchronous functions.
    settle: Persistent<Function<'static>>,
    /// The entries of modules of the host, by the names of these.
    entries: Vec<(&'static str, Persistent<Object<'static>>)>,
}

/// What the engine's callbacks and the context share.
#[derive(Default)]
struct State {
    deadline: Cell<Option<Instant>>,
    /// Whether what runs has to end, and why.
    over: Cell<Option<ErrorKind>>,
    stop: OnceCell<Stop>,
    /// Why a module could not be had; the engine carries only words.
    refused: RefCell<Option<ScriptError>>,
    /// Modules that are being compiled, the innermost last.
    importing: RefCell<Vec<String>>,
    /// Modules that are there without a file.
    host_modules: RefCell<Vec<&'static str>>,
    /// All modules that were compiled.
    loaded: RefCell<Vec<String>>,
    console: RefCell<Console>,
    /// Calls of asynchronous functions that have not come back.
    waiting: RefCell<Vec<(u32, HostFuture)>>,
    calls: Cell<u32>,
    /// Promises that were rejected and that nobody looks after. Empty between calls.
    unhandled: RefCell<Vec<(Persistent<Js<'static>>, Persistent<Js<'static>>)>>,
}

impl State {
    fn is_over(&self) -> bool {
        if self.over.get().is_none() {
            self.over.set(match self.deadline.get() {
                _ if self.stop.get().is_some_and(Stop::is_stopped) => Some(ErrorKind::GivenUp),
                Some(deadline) if Instant::now() >= deadline => Some(ErrorKind::TimeLimit),
                _ => None,
            });
        }
        self.over.get().is_some()
    }

    fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            match self.stop.get() {
                Some(stop) => stop.stopped().await,
                None => std::future::pending().await,
            }
        })
    }

    /// The same for something whose time is not the script's.
    fn wait_paused(&self, future: HostFuture) -> HostResult {
        let (since, deadline) = (Instant::now(), self.deadline.take());
        let result = self.wait_for(future);
        self.deadline.set(deadline.and_then(|deadline| deadline.checked_add(since.elapsed())));
        result
    }

    /// What a future of the host comes to; this thread waits for it, but no longer than the script may run.
    fn wait_for(&self, mut future: HostFuture) -> HostResult {
        let waker = task::Waker::from(Arc::new(Unpark(thread::current())));
        let mut poll = task::Context::from_waker(&waker);
        let mut stopped = self.stopped();
        loop {
            if let Poll::Ready(result) = future.as_mut().poll(&mut poll) {
                return result;
            }
            let _ = stopped.as_mut().poll(&mut poll);
            if self.is_over() {
                return Err(OVER.to_string());
            }
            park_until(self.deadline.get());
        }
    }
}

impl Context {
    /// A new context. Functions of `host` can be called by its scripts.
    ///
    /// # Errors
    /// When the engine cannot be started, for lack of memory.
    pub fn new(scripts: &Scripts, limits: Limits, host: Host) -> Result<Context, ScriptError> {
        let state = Rc::new(State::default());
        let runtime = rquickjs::Runtime::new().map_err(|_| no_memory(limits))?;
        runtime.set_memory_limit(limits.memory);
        runtime.set_max_stack_size(limits.stack);
        let watched = Rc::clone(&state);
        runtime.set_interrupt_handler(Some(Box::new(move || watched.is_over())));
        let watched = Rc::clone(&state);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, handled| {
            watched.rejected(&ctx, promise, reason, handled);
        })));
        let files = Files { scripts: scripts.clone(), state: Rc::clone(&state) };
        runtime.set_loader(files.clone(), files);
        let engine = rquickjs::Context::full(&runtime).map_err(|_| no_memory(limits))?;
        let furnished = engine.with(|ctx| furnish(&ctx, &state, host)).map_err(|_| no_memory(limits))?;
        Ok(Context { scripts: scripts.clone(), limits, state, furnished: Some(furnished), engine, runtime })
    }

    /// The same, until nobody waits for it any more: what it runs is given up then, wherever it is.
    #[must_use]
    pub fn until(self, stop: Stop) -> Context {
        // Nobody else has it yet, so this is the first one.
        let _ = self.state.stop.set(stop);
        self
    }

    /// Looks whether a module exports a function under a name. The module is run for that, if it was not yet.
    ///
    /// # Errors
    /// When it cannot be loaded, or exports no such function.
    pub fn check(&mut self, module: &Module, name: &str) -> Result<(), ScriptError> {
        self.within_limits(|context, ctx| {
            let namespace = context.load(ctx, module)?;
            context.function(&namespace, module, name).map(drop)
        })
    }

    /// Calls what a module exports under a name (`default` among them) and awaits what it returns. Nothing returned is
    /// null.
    ///
    /// # Errors
    /// When the module cannot be loaded, exports no such function, or the function does not return in time something
    /// that can be written as JSON.
    pub fn call(&mut self, module: &Module, name: &str, arguments: &[Value]) -> Result<Value, ScriptError> {
        self.within_limits(|context, ctx| {
            let namespace = context.load(ctx, module)?;
            let function = context.function(&namespace, module, name)?;
            let arguments = arguments.iter().map(|argument| ctx.json_parse(argument.to_string()));
            let arguments = context.caught(ctx, arguments.collect::<Result<Vec<_>, _>>())?;
            let returned: Js<'_> =
                context.caught(ctx, function.call((rquickjs::function::Rest(arguments),)))?;
            let value = context.awaited(ctx, returned)?;
            context.json(ctx, module, name, value)
        })
    }

    /// Runs a module, and then an entry of a module of the [host](Host::module) with all that the module exports, and
    /// with these arguments. What that returns is awaited.
    ///
    /// # Errors
    /// As [`Context::call`].
    pub fn enter(
        &mut self,
        host: &str,
        entry: &str,
        module: &Module,
        arguments: &[Value],
    ) -> Result<Value, ScriptError> {
        self.within_limits(|context, ctx| {
            let namespace = context.load(ctx, module)?;
            let made = context.furnished.iter().flat_map(|furnished| &furnished.entries);
            let Some((_, entries)) = made.into_iter().find(|(name, _)| *name == host) else {
                return Err(ScriptError::new(ErrorKind::Import, format!("there is no module `{host}`")));
            };
            let entries = context.caught(ctx, entries.clone().restore(ctx))?;
            let entry_function: Function<'_> = context.caught(ctx, entries.get(entry))?;
            let mut given = vec![namespace.into_value()];
            for argument in arguments {
                given.push(context.caught(ctx, ctx.json_parse(argument.to_string()))?);
            }
            let returned: Js<'_> =
                context.caught(ctx, entry_function.call((rquickjs::function::Rest(given),)))?;
            let value = context.awaited(ctx, returned)?;
            context.json(ctx, module, entry, value)
        })
    }

    /// What was returned, once all has come to something that was begun.
    fn awaited<'js>(&self, ctx: &Ctx<'js>, returned: Js<'js>) -> Result<Js<'js>, ScriptError> {
        let value = match returned.as_promise() {
            Some(promise) => self.settled(ctx, promise)?,
            None => returned,
        };
        self.run_jobs(ctx)?;
        if let Some(error) = self.state.take_unhandled(ctx).map(|reason| self.describe(ctx, reason)) {
            let message = format!("a promise that nobody awaits was rejected: {}", error.message);
            return Err(ScriptError { message, ..error });
        }
        Ok(value)
    }

    /// What scripts have said to `console` since this was last asked.
    pub fn said(&mut self) -> Vec<Line> {
        self.state.console.borrow_mut().take()
    }

    /// How many bytes the engine holds.
    pub fn memory(&self) -> usize {
        usize::try_from(self.runtime.memory_usage().malloc_size).unwrap_or(0)
    }

    fn within_limits<T>(
        &mut self,
        work: impl FnOnce(&Context, &Ctx<'_>) -> Result<T, ScriptError>,
    ) -> Result<T, ScriptError> {
        self.state.over.set(None);
        self.state.deadline.set(Instant::now().checked_add(self.limits.time));
        let result = self.engine.with(|ctx| {
            let result = work(self, &ctx);
            while self.state.take_unhandled(&ctx).is_some() {}
            result
        });
        self.state.deadline.set(None);
        self.state.waiting.borrow_mut().clear();
        self.state.importing.borrow_mut().clear();
        self.state.refused.borrow_mut().take();
        result
    }

    fn load<'js>(&self, ctx: &Ctx<'js>, module: &Module) -> Result<Object<'js>, ScriptError> {
        // What is wrong with the file itself is told without the detour through the engine.
        self.scripts.load(module.path())?;
        let promise = self.caught(ctx, rquickjs::Module::import(ctx, format!("{ENTRY}{}", module.path())))?;
        let namespace = self.settled(ctx, &promise)?;
        namespace.into_object().ok_or_else(|| ScriptError::new(ErrorKind::Import, "a module is no object"))
    }

    fn function<'js>(
        &self,
        namespace: &Object<'js>,
        module: &Module,
        name: &str,
    ) -> Result<Function<'js>, ScriptError> {
        let place = self.scripts.place(module.path(), 1, 1);
        let file = place.as_ref().map_or(module.path(), Place::file).to_string();
        let all = exports(namespace);
        let value: Option<Js<'js>> = namespace.get(name).ok().filter(|value: &Js<'_>| !value.is_undefined());
        match value.map(|value| value.into_function()) {
            Some(Some(function)) => Ok(function),
            Some(None) => Err(ScriptError::new(
                ErrorKind::NotAFunction,
                format!("`{name}` in {file} is not a function"),
            )),
            None => {
                let functions: Vec<&str> =
                    all.iter().filter(|(_, callable)| *callable).map(|(name, _)| name.as_str()).collect();
                let help = match (nearest(name, functions.iter().copied()), functions.as_slice()) {
                    (Some(near), _) => format!("did you mean `{near}`?"),
                    (None, []) => format!("the file exports no function; write `export function {name}`"),
                    (None, all) => format!("it exports {}", all.join(", ")),
                };
                let message = format!("{file} exports no function `{name}`");
                Err(ScriptError::new(ErrorKind::MissingExport, message).help(help))
            }
        }
    }

    /// What a promise comes to, once all that it waits for has happened.
    fn settled<'js>(&self, ctx: &Ctx<'js>, promise: &Promise<'js>) -> Result<Js<'js>, ScriptError> {
        loop {
            self.run_jobs(ctx)?;
            match promise.state() {
                PromiseState::Resolved | PromiseState::Rejected => {
                    let result =
                        promise.result::<Js<'js>>().unwrap_or_else(|| Ok(Js::new_undefined(ctx.clone())));
                    return self.caught(ctx, result);
                }
                PromiseState::Pending if self.state.waiting.borrow().is_empty() => {
                    return Err(ScriptError::new(
                        ErrorKind::NeverSettles,
                        "the script awaits a promise that nothing can settle any more",
                    )
                    .help("a promise is settled by its `resolve` or `reject`; there are no timers"));
                }
                PromiseState::Pending => self.wait(ctx)?,
            }
        }
    }

    fn run_jobs(&self, ctx: &Ctx<'_>) -> Result<(), ScriptError> {
        loop {
            if self.state.is_over() {
                return Err(self.over());
            }
            if !ctx.execute_pending_job() {
                return Ok(());
            }
        }
    }

    /// Waits until a function of the host has come back, and tells the script what it came to.
    fn wait(&self, ctx: &Ctx<'_>) -> Result<(), ScriptError> {
        let waker = task::Waker::from(Arc::new(Unpark(thread::current())));
        let mut poll = task::Context::from_waker(&waker);
        let mut stopped = self.state.stopped();
        let mut ready: Vec<(u32, HostResult)> = Vec::new();
        self.state.waiting.borrow_mut().retain_mut(|(id, future)| match future.as_mut().poll(&mut poll) {
            Poll::Ready(result) => {
                ready.push((*id, result));
                false
            }
            Poll::Pending => true,
        });
        if ready.is_empty() && stopped.as_mut().poll(&mut poll).is_pending() {
            park_until(self.state.deadline.get());
        }
        for (id, result) in ready {
            let Some(Furnished { settle, .. }) = &self.furnished else { return Ok(()) };
            let settle = self.caught(ctx, settle.clone().restore(ctx))?;
            self.caught(ctx, settle.call::<_, ()>((id, answer(result))))?;
        }
        Ok(())
    }

    fn json<'js>(
        &self,
        ctx: &Ctx<'js>,
        module: &Module,
        name: &str,
        value: Js<'js>,
    ) -> Result<Value, ScriptError> {
        let refused = |what: &str| {
            let message = format!("what `{name}` returned cannot be written as JSON: {what}");
            let place = self.scripts.place(module.path(), 1, 1);
            let file = place.as_ref().map_or(module.path(), Place::file);
            ScriptError::new(ErrorKind::NotSerialisable, message)
                .help(format!("return plain data from `{name}` in {file}"))
        };
        if value.is_undefined() {
            return Ok(Value::Null);
        }
        if value.as_float().is_some_and(|number| !number.is_finite()) {
            return Err(refused("it is not a finite number"));
        }
        let text = match self.caught(ctx, ctx.json_stringify(value)) {
            Ok(Some(text)) => self.caught(ctx, text.to_string())?,
            Ok(None) => return Err(refused("it is a function or a symbol")),
            Err(error) if error.kind == ErrorKind::Thrown => return Err(refused(&error.message)),
            Err(error) => return Err(error),
        };
        serde_json::from_str(&text).map_err(|error| refused(&error.to_string()))
    }

    /// A result of the engine, with what it threw as data.
    fn caught<T>(&self, ctx: &Ctx<'_>, result: rquickjs::Result<T>) -> Result<T, ScriptError> {
        result.catch(ctx).map_err(|caught| match caught {
            CaughtError::Exception(exception) => self.describe(ctx, exception.into_value()),
            CaughtError::Value(value) => self.describe(ctx, value),
            CaughtError::Error(rquickjs::Error::Allocation) => no_memory(self.limits),
            CaughtError::Error(error) => ScriptError::new(ErrorKind::Thrown, error.to_string()),
        })
    }

    /// What was thrown, as data.
    fn describe<'js>(&self, ctx: &Ctx<'js>, thrown: Js<'js>) -> ScriptError {
        let exception = thrown.clone().into_object().and_then(rquickjs::Exception::from_object);
        let Some(exception) = exception else {
            // The engine throws null when there is no memory left for an error.
            if thrown.is_null() && !self.state.loaded.borrow().iter().any(|key| self.scripts.throws_null(key))
            {
                return no_memory(self.limits);
            }
            let shown = ctx.json_stringify(thrown).ok().flatten().and_then(|text| text.to_string().ok());
            // What was thrown may itself be what does not end.
            if self.state.over.get().is_some() {
                return self.over();
            }
            let shown = shown.unwrap_or_else(|| "something that is no error".to_string());
            return ScriptError::new(ErrorKind::Thrown, format!("thrown: {shown}"))
                .help("throw an Error, which knows where it was made");
        };
        let class: String = exception.get("name").unwrap_or_default();
        let text = exception.message().unwrap_or_default();
        // One that was caught is not what was thrown now.
        if let Some(refused) =
            self.state.refused.borrow_mut().take_if(|refused| text.contains(&refused.message))
        {
            return refused;
        }
        let calls = exception.stack().unwrap_or_default();
        let stack = self.scripts.frames(&calls);
        let place = stack.first().map(|frame| frame.place.clone());
        let error = match class.as_str() {
            _ if self.state.over.get().is_some() => self.over(),
            "InternalError" | "RangeError" if text == "out of memory" || text == "string too long" => {
                no_memory(self.limits)
            }
            "InternalError" | "RangeError" if text == "Maximum call stack size exceeded" => {
                ScriptError::new(ErrorKind::StackLimit, "the script calls itself too deeply")
            }
            "SyntaxError" if stack.len() <= 1 && !calls.contains("(native)") => self.syntax(&text),
            "" => ScriptError::new(ErrorKind::Thrown, text),
            class if text.is_empty() => ScriptError::new(ErrorKind::Thrown, class),
            class => ScriptError::new(ErrorKind::Thrown, format!("{class}: {text}")),
        };
        let place = error.place.clone().or(place);
        // A recursion is the same place over and over.
        let stack = if error.kind == ErrorKind::StackLimit { Vec::new() } else { stack };
        ScriptError { place, stack, ..error }
    }

    /// A mistake that the engine finds while it compiles or links.
    fn syntax(&self, text: &str) -> ScriptError {
        let error = ScriptError::new(ErrorKind::Syntax, text);
        let Some((name, module)) = missing_import(text) else { return error };
        let importing = self.state.importing.borrow();
        let place = importing.iter().find_map(|from| self.scripts.import_place(from, module));
        ScriptError::new(ErrorKind::Import, format!("{module} exports no `{name}`"))
            .at(place)
            .help(format!("if `{name}` is a type, write `import type`"))
    }

    /// Why what ran had to end.
    fn over(&self) -> ScriptError {
        match self.state.over.get() {
            Some(ErrorKind::GivenUp) => {
                ScriptError::new(ErrorKind::GivenUp, "nobody waits for the script any more")
            }
            _ => {
                let message = format!("the script did not end within {} ms", self.limits.time.as_millis());
                ScriptError::new(ErrorKind::TimeLimit, message)
            }
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.furnished.take();
    }
}

/// What functions of the host say to a script that should have ended.
const OVER: &str = "the time of the script is over";

/// Stands before the key of a module that the caller asks for, so that it is not taken for an import.
const ENTRY: &str = "entry:";

fn no_memory(limits: Limits) -> ScriptError {
    let message = format!("the script needs more than {} MiB of memory", limits.memory / (1024 * 1024));
    ScriptError::new(ErrorKind::MemoryLimit, message)
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

/// The name and the module of the engine's `Could not find export 'name' in module 'module'`.
fn missing_import(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("Could not find export '")?;
    let (name, rest) = rest.split_once("' in module '")?;
    Some((name, rest.strip_suffix('\'')?))
}

fn answer(result: HostResult) -> String {
    match result {
        Ok(value) => json!({ "value": value }).to_string(),
        Err(error) => json!({ "error": error }).to_string(),
    }
}

/// Gives a new engine its console, and the functions and modules of the host.
fn furnish(ctx: &Ctx<'_>, state: &Rc<State>, host: Host) -> rquickjs::Result<Furnished> {
    let Host { functions, furniture } = host;
    let (mut names, mut all): (Vec<String>, Vec<host::Function>) = functions.into_iter().unzip();
    let seen = names.len();
    // Those that are hidden follow, one piece of furniture after the other.
    let mut pieces = Vec::with_capacity(furniture.len());
    for Furniture { module, code, functions } in furniture {
        let first = names.len();
        let (hidden_names, hidden): (Vec<String>, Vec<host::Function>) = functions.into_iter().unzip();
        names.extend(hidden_names);
        all.extend(hidden);
        pieces.push((module, code, first..names.len()));
    }
    let later: Vec<bool> = all.iter().map(|function| matches!(function, host::Function::Async(_))).collect();
    let functions: Rc<[host::Function]> = all.into();

    let spoken = Rc::clone(state);
    let say = Func::from(move |level: String, text: String| {
        spoken.console.borrow_mut().say(Level::read(&level), text);
    });
    let (called, waiting) = (Rc::clone(&functions), Rc::clone(state));
    let call_now = Func::from(move |index: usize, arguments: String| -> String {
        // A script that should have ended does nothing more, even before the engine has noticed.
        if waiting.is_over() {
            return answer(Err(OVER.to_string()));
        }
        answer(given(&arguments).and_then(|arguments| match called.get(index) {
            Some(host::Function::Sync(function)) => function(arguments),
            Some(host::Function::Waiting(function)) => waiting.wait_for(function(arguments)),
            Some(host::Function::Pausing(function)) => waiting.wait_paused(function(arguments)),
            Some(host::Function::Async(_)) | None => Ok(Value::Null),
        }))
    });
    let waiting = Rc::clone(state);
    let call_later = Func::from(move |index: usize, arguments: String| -> u32 {
        let id = waiting.calls.get();
        waiting.calls.set(id.wrapping_add(1));
        let future: HostFuture = match (functions.get(index), given(&arguments)) {
            (Some(host::Function::Async(function)), Ok(arguments)) => function(arguments),
            (_, Err(error)) => Box::pin(async move { Err(error) }),
            (Some(_) | None, Ok(_)) => Box::pin(async { Ok(Value::Null) }),
        };
        waiting.waiting.borrow_mut().push((id, future));
        id
    });

    let prelude: Function<'_> = engines_own(ctx, include_str!("prelude.js"))?;
    let helpers: Object<'_> = prelude.call((say, call_now, call_later))?;
    let define: Function<'_> = helpers.get("define")?;
    for index in 0..seen {
        define.call::<_, ()>((ctx.globals(), names[index].as_str(), index, later[index]))?;
    }
    let mut entries = Vec::new();
    for (module, code, indexes) in pieces {
        let hidden = Object::new(ctx.clone())?;
        for index in indexes {
            define.call::<_, ()>((hidden.clone(), names[index].as_str(), index, later[index]))?;
        }
        let made: Js<'_> = engines_own(ctx, code)?.call((hidden,))?;
        if let (Some(name), Some(made)) = (module, made.as_object()) {
            entries.push((name, Persistent::save(ctx, host_module(ctx, name, made)?)));
            state.host_modules.borrow_mut().push(name);
        }
    }
    let settle: Function<'_> = helpers.get("settle")?;
    Ok(Furnished { settle: Persistent::save(ctx, settle), entries })
}

/// Makes a module of what code of the host has made; returned are its entries.
fn host_module<'js>(ctx: &Ctx<'js>, name: &str, made: &Object<'js>) -> rquickjs::Result<Object<'js>> {
    let exports: Object<'_> = made.get("exports")?;
    let mut code = "const { exports } = import.meta;".to_string();
    for key in exports.keys::<String>() {
        let key = key?;
        code.push_str(&format!("export const {key} = exports.{key};"));
    }
    let module = rquickjs::Module::declare(ctx.clone(), name, code)?;
    module.meta()?.set("exports", exports)?;
    let (_, evaluated) = module.eval()?;
    evaluated.finish::<()>()?;
    made.get("entries")
}

/// A function of ours, which stands in no file of anybody's.
fn engines_own<'js>(ctx: &Ctx<'js>, code: &'static str) -> rquickjs::Result<Function<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some("the engine".to_string());
    ctx.eval_with_options(code, options)
}

/// Arguments of a call as scripts give them.
fn given(arguments: &str) -> Result<Vec<Value>, String> {
    serde_json::from_str(arguments).map_err(|error| format!("arguments cannot be read: {error}"))
}

impl State {
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

/// The files of the folder, as the engine asks for them.
#[derive(Clone)]
struct Files {
    scripts: Scripts,
    state: Rc<State>,
}

impl Files {
    /// The engine is told only that there is an error; what it is is told by us.
    fn refuse<T>(&self, name: &str, result: Result<T, ScriptError>) -> rquickjs::Result<T> {
        result.map_err(|error| {
            let thrown = rquickjs::Error::new_resolving_message("", name, error.message.clone());
            self.state.refused.borrow_mut().replace(error);
            thrown
        })
    }
}

impl Resolver for Files {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        if let Some(key) = name.strip_prefix(ENTRY)
            && base.is_empty()
        {
            return Ok(key.to_string());
        }
        if self.state.host_modules.borrow().contains(&name) {
            return Ok(name.to_string());
        }
        self.refuse(name, self.scripts.import(base, name))
    }
}

impl Loader for Files {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<rquickjs::Module<'js, Declared>> {
        let loaded = self.refuse(name, self.scripts.load(name))?;
        self.state.importing.borrow_mut().push(name.to_string());
        self.state.loaded.borrow_mut().push(name.to_string());
        rquickjs::Module::declare(ctx.clone(), name, loaded.code.as_str())
    }
}

/// Sleeps until somebody wakes this thread, or that time has come.
fn park_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => thread::park_timeout(deadline.saturating_duration_since(Instant::now())),
        None => thread::park(),
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
