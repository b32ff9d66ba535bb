//! Compiled modules: the engine parses a text once per process, and other contexts load the result.

use std::ptr;
use std::sync::{Mutex, PoisonError};

use rquickjs::loader::{Bundle, Loader};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Module, WriteOptions};

/// A module as the engine has compiled it. It stays in memory until the process ends, as loaders of the engine
/// require, so only texts that many contexts run are compiled.
#[derive(Clone, Copy)]
pub(crate) struct CompiledModule(Bundle);

impl CompiledModule {
    /// Returns the compiled form of a module. Returns `None` if the limits of its context do not allow to write it.
    pub(crate) fn from_module(name: &str, module: &Module<'_, Declared>) -> Option<CompiledModule> {
        CompiledModule::write(name, module, WriteOptions::default())
    }

    fn write(name: &str, module: &Module<'_, Declared>, options: WriteOptions) -> Option<CompiledModule> {
        let Ok(bytes) = module.write(options) else {
            // Clears the exception.
            module.ctx().catch();
            return None;
        };
        let entry: (&'static str, &'static [u8]) = (Box::leak(name.into()), Box::leak(bytes.into()));
        Some(CompiledModule(Bundle { 0: Box::leak(Box::new([entry])) }))
    }

    /// Declares the module in a context.
    pub(crate) fn declare<'js>(self, ctx: &Ctx<'js>) -> rquickjs::Result<Module<'js, Declared>> {
        let CompiledModule(mut bundle) = self;
        let name = bundle.first().map_or("", |(name, _)| name);
        bundle.load(ctx, name, None)
    }
}

impl std::fmt::Debug for CompiledModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CompiledModule")
    }
}

/// Modules made from code of the program, each with the code and the name of the module. Programs have few.
static HOST_MODULES: Mutex<Vec<(&'static str, &'static str, CompiledModule)>> = Mutex::new(Vec::new());

/// Declares a module that is made from code of the program. `text` writes its source; equal code and name must give
/// the same source.
pub(crate) fn declare_host_code<'js>(
    ctx: &Ctx<'js>,
    name: &'static str,
    code: &'static str,
    text: impl FnOnce() -> rquickjs::Result<String>,
) -> rquickjs::Result<Module<'js, Declared>> {
    let lock = || HOST_MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = |known: &str, of: &str| of == name && ptr::eq(known, code);
    let known = lock().iter().find(|(known, of, _)| is_known(known, of)).map(|(_, _, compiled)| *compiled);
    if let Some(compiled) = known {
        return compiled.declare(ctx);
    }
    let module = Module::declare(ctx.clone(), name, text()?)?;
    // Scripts do not see the text of the functions, which every context would copy. `import.meta` needs the rest.
    let options = WriteOptions { strip_source: true, ..WriteOptions::default() };
    if let Some(compiled) = CompiledModule::write(name, &module, options) {
        lock().push((code, name, compiled));
    }
    Ok(module)
}
