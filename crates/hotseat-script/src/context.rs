//! A context: an engine of its own, in which modules are run.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
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
use crate::error::{ErrorKind, Frame, ScriptError};
use crate::host::{self, Host, HostFuture, HostResult};
use crate::modules::{Module, Scripts};

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
    settle: Option<Persistent<Function<'static>>>,
    engine: rquickjs::Context,
    runtime: rquickjs::Runtime,
}

/// What the engine's callbacks and the context share.
#[derive(Default)]
struct State {
    deadline: Cell<Option<Instant>>,
    out_of_time: Cell<bool>,
    /// Why a module could not be had; the engine carries only words.
    refused: RefCell<Option<ScriptError>>,
    /// Modules that are being compiled, the innermost last.
    importing: RefCell<Vec<String>>,
    console: RefCell<Console>,
    /// Calls of asynchronous functions that have not come back.
    waiting: RefCell<Vec<(u32, HostFuture)>>,
    calls: Cell<u32>,
    /// Promises that were rejected and that nobody looks after. Empty between calls.
    unhandled: RefCell<Vec<(Persistent<Js<'static>>, Persistent<Js<'static>>)>>,
}

impl State {
    fn is_over(&self) -> bool {
        let over = self.deadline.get().is_some_and(|deadline| Instant::now() >= deadline);
        if over {
            self.out_of_time.set(true);
        }
        over
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
        let settle = engine.with(|ctx| furnish(&ctx, &state, host)).map_err(|_| no_memory(limits))?;
        Ok(Context { scripts: scripts.clone(), limits, state, settle: Some(settle), engine, runtime })
    }

    /// The names that a module exports, and whether each is a function. The module is run for that, if it was not yet.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub fn exports(&mut self, module: &Module) -> Result<Vec<(String, bool)>, ScriptError> {
        self.within_limits(|context, ctx| {
            let namespace = context.load(ctx, module)?;
            Ok(exports(&namespace))
        })
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
            let value = match returned.as_promise() {
                Some(promise) => context.settled(ctx, promise)?,
                None => returned,
            };
            context.run_jobs(ctx)?;
            if let Some(error) = context.state.take_unhandled(ctx).map(|reason| context.describe(ctx, reason))
            {
                let message = format!("a promise that nobody awaits was rejected: {}", error.message);
                return Err(ScriptError { message, ..error });
            }
            context.json(ctx, module, name, value)
        })
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
        self.state.out_of_time.set(false);
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
            if self.state.is_over() || self.state.out_of_time.get() {
                return Err(self.out_of_time());
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
        let mut ready: Vec<(u32, HostResult)> = Vec::new();
        self.state.waiting.borrow_mut().retain_mut(|(id, future)| match future.as_mut().poll(&mut poll) {
            Poll::Ready(result) => {
                ready.push((*id, result));
                false
            }
            Poll::Pending => true,
        });
        if ready.is_empty() {
            match self.state.deadline.get() {
                Some(deadline) => thread::park_timeout(deadline.saturating_duration_since(Instant::now())),
                None => thread::park(),
            }
        }
        for (id, result) in ready {
            let Some(settle) = self.settle.clone() else { return Ok(()) };
            let settle = self.caught(ctx, settle.restore(ctx))?;
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
        if let Some(refused) = self.state.refused.borrow_mut().take() {
            return refused;
        }
        let exception = thrown.clone().into_object().and_then(rquickjs::Exception::from_object);
        let Some(exception) = exception else {
            if thrown.is_null() {
                return no_memory(self.limits).help(
                    "this is what the engine throws when there is no memory left for an error; a script that throws null itself is taken for it",
                );
            }
            let shown = ctx.json_stringify(thrown).ok().flatten().and_then(|text| text.to_string().ok());
            // What was thrown may itself be what does not end.
            if self.state.out_of_time.get() {
                return self.out_of_time();
            }
            let shown = shown.unwrap_or_else(|| "something that is no error".to_string());
            return ScriptError::new(ErrorKind::Thrown, format!("thrown: {shown}"))
                .help("throw an Error, which knows where it was made");
        };
        let class: String = exception.get("name").unwrap_or_default();
        let text = exception.message().unwrap_or_default();
        let stack = self.frames(&exception.stack().unwrap_or_default());
        let place = stack.first().map(|frame| frame.place.clone());
        let error = match class.as_str() {
            _ if self.state.out_of_time.get() => self.out_of_time(),
            "InternalError" | "RangeError" if text == "out of memory" || text == "string too long" => {
                no_memory(self.limits)
            }
            "InternalError" | "RangeError" if text == "Maximum call stack size exceeded" => {
                ScriptError::new(ErrorKind::StackLimit, "the script calls itself too deeply")
            }
            "SyntaxError" if stack.len() <= 1 => self.syntax(&text),
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

    fn out_of_time(&self) -> ScriptError {
        let message = format!("the script did not end within {} ms", self.limits.time.as_millis());
        ScriptError::new(ErrorKind::TimeLimit, message)
    }

    /// The calls of a stack that stand in files.
    fn frames(&self, stack: &str) -> Vec<Frame> {
        stack.lines().filter_map(|line| self.frame(line)).take(MOST_FRAMES).collect()
    }

    /// Reads `    at name (file:line:column)`.
    fn frame(&self, line: &str) -> Option<Frame> {
        let line = line.trim().strip_prefix("at ")?;
        let (function, place) = match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
            Some((function, place)) => (Some(function), place),
            None => (None, line),
        };
        let mut parts = place.rsplitn(3, ':');
        let column = parts.next()?.parse().ok()?;
        let line = parts.next()?.parse().ok()?;
        let place = self.scripts.place(parts.next()?, line, column)?;
        let named = function.filter(|name| !name.is_empty() && !name.starts_with('<'));
        Some(Frame { function: named.map(str::to_string), place })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.settle.take();
    }
}

/// So many frames of a stack are kept.
const MOST_FRAMES: usize = 20;

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

/// Gives a new engine its console and the functions of the host. What is returned settles calls of asynchronous ones.
fn furnish(ctx: &Ctx<'_>, state: &Rc<State>, host: Host) -> rquickjs::Result<Persistent<Function<'static>>> {
    let (names, functions): (Vec<String>, Vec<host::Function>) = host.0.into_iter().unzip();
    let functions: Rc<[host::Function]> = functions.into();
    let later: Vec<bool> =
        functions.iter().map(|function| matches!(function, host::Function::Async(_))).collect();

    let spoken = Rc::clone(state);
    let say = Func::from(move |level: String, text: String| {
        spoken.console.borrow_mut().say(Level::read(&level), text);
    });
    let called = Rc::clone(&functions);
    let call_now = Func::from(move |index: usize, arguments: String| -> String {
        let Some(host::Function::Sync(function)) = called.get(index) else { return answer(Ok(Value::Null)) };
        answer(given(&arguments).and_then(function))
    });
    let waiting = Rc::clone(state);
    let call_later = Func::from(move |index: usize, arguments: String| -> u32 {
        let id = waiting.calls.get();
        waiting.calls.set(id.wrapping_add(1));
        let future: HostFuture = match (functions.get(index), given(&arguments)) {
            (Some(host::Function::Async(function)), Ok(arguments)) => function(arguments),
            (_, Err(error)) => Box::pin(async move { Err(error) }),
            (Some(host::Function::Sync(_)) | None, Ok(_)) => Box::pin(async { Ok(Value::Null) }),
        };
        waiting.waiting.borrow_mut().push((id, future));
        id
    });

    let mut options = EvalOptions::default();
    options.filename = Some("the engine".to_string());
    let prelude: Function<'_> = ctx.eval_with_options(include_str!("prelude.js"), options)?;
    let helpers: Object<'_> = prelude.call((say, call_now, call_later))?;
    let define: Function<'_> = helpers.get("define")?;
    for (index, (name, later)) in names.iter().zip(later).enumerate() {
        define.call::<_, ()>((name.as_str(), index, later))?;
    }
    let settle: Function<'_> = helpers.get("settle")?;
    Ok(Persistent::save(ctx, settle))
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
            self.state.refused.borrow_mut().get_or_insert(error);
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
        rquickjs::Module::declare(ctx.clone(), name, loaded.code.as_str())
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
