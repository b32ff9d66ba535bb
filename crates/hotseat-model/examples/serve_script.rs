//! Serves a script as a model: `serve_script SCRIPT`. Prints the address, and runs until it is ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_model::LiveModel;
use hotseat_model::script::{ModelScript, ScriptedModel};
use hotseat_model::serve::{ModelServers, ServeLimits, ServedModel};

#[allow(clippy::print_stdout, reason = "the address is the output of the example")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: serve_script SCRIPT")?;
    let script =
        ModelScript::parse(&file, &std::fs::read_to_string(&file)?).map_err(|wrong| wrong.to_string())?;
    let model = ServedModel::new(Arc::new(LiveModel::new(ScriptedModel::new(script))));
    let servers = ModelServers::start(ServeLimits::default())?;
    let mut conversation = servers.open_conversation("example", BTreeMap::from([("main".to_owned(), model)]));
    println!("{}", conversation.url("main").unwrap_or_default());
    // Requests wait if nothing reads their events.
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async { while conversation.next_event().await.is_some() {} });
    Ok(())
}
