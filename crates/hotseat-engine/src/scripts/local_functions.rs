//! Host functions of scripts that wait for nobody: files and variables of the environment.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_script::{HostCallError, ScriptHost};
use serde_json::{Value, json};

use super::files::{FileOperation, run_operation};
use super::grants::ScriptGrants;

/// The environment variables of the process.
pub(super) type Environment = Arc<BTreeMap<String, String>>;

/// Adds the API of scripts to the host functions that it calls.
pub(super) fn with_script_api(hidden: ScriptHost) -> ScriptHost {
    let hidden = hidden.code("powers", include_str!("powers.js"));
    ScriptHost::new().with_wrapper(include_str!("globals.js"), hidden)
}

/// Returns the host functions for loading a file only to list its exports: it may read permitted files, and
/// other requests fail.
pub(super) fn inspection_host(grants: &Arc<ScriptGrants>, environment: &Environment) -> ScriptHost {
    let hidden = file_functions(grants, FileOperation::is_write);
    let hidden = with_environment(hidden, grants, environment)
        .function("fetch", |_| Err(only_inspected("`fetch`")))
        .function("process", |_| Err(only_inspected("`Process`")));
    with_script_api(hidden)
}

/// Returns the functions that every running script has.
pub(super) fn local_functions(grants: &Arc<ScriptGrants>, environment: &Environment) -> ScriptHost {
    with_environment(file_functions(grants, |_| false), grants, environment)
}

fn only_inspected(what: &str) -> HostCallError {
    format!("{what} cannot be called at the top level of a script: call it within a function").into()
}

/// Functions for permitted files. Those that `is_refused` selects fail.
fn file_functions(grants: &Arc<ScriptGrants>, is_refused: fn(FileOperation) -> bool) -> ScriptHost {
    let mut functions = ScriptHost::new();
    for operation in FileOperation::ALL.iter().copied() {
        let grants = grants.clone();
        functions = functions.function(operation.name(), move |arguments| match is_refused(operation) {
            true => Err(only_inspected(&format!("`files.{operation}`"))),
            false => run_operation(operation, &arguments, &grants),
        });
    }
    functions
}

/// Adds functions for permitted variables of the environment.
fn with_environment(
    functions: ScriptHost,
    grants: &Arc<ScriptGrants>,
    environment: &Environment,
) -> ScriptHost {
    let (listed, set) = (grants.clone(), environment.clone());
    let names = move |_| {
        let names = listed.env.iter().filter(|name| set.contains_key(*name));
        Ok(json!(names.collect::<Vec<_>>()))
    };
    let (listed, set) = (grants.clone(), environment.clone());
    let variable = move |arguments: Vec<Value>| match arguments.first().and_then(Value::as_str) {
        Some(name) if listed.env.iter().any(|own| own == name) => Ok(json!(set.get(name))),
        name => Err(format!(
            "the environment variable `{}` may not be read: add it to the project file under `scripts: env:`",
            name.unwrap_or_default()
        )
        .into()),
    };
    functions.function("names", names).function("env", variable)
}
