//! TypeScript in an embedded engine with time and memory limits.
//!
//! [`Scripts`] are the files of a folder; a [`ScriptContext`] is an engine instance that calls their exported
//! functions with JSON arguments and results. Removing types keeps every line and column, so a
//! [`ScriptError`] points at the TypeScript source without a source map.
//!
//! ```
//! use hotseat_script::{ScriptContext, ScriptHost, ScriptLimits, Scripts};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("rates.ts"), "export const rate: number = 3;")?;
//! std::fs::write(
//!     folder.path().join("price.ts"),
//!     r#"import { rate } from "./rates";
//!        declare function discount(who: string): number;
//!        export async function price(order: { who: string; count: number }): Promise<number> {
//!          return order.count * rate - discount(order.who);
//!        }"#,
//! )?;
//! let scripts = Scripts::open(folder.path(), "orders".as_ref())?;
//! let host = ScriptHost::new().function("discount", |_arguments| Ok(json!(2)));
//! let mut context = ScriptContext::new(&scripts, ScriptLimits::default(), host)?;
//! let module = scripts.find("price")?;
//! let price = context.call(&module, "price", &[json!({ "who": "ada", "count": 4 })])?;
//! assert_eq!(price, json!(10));
//! # Ok(())
//! # }
//! ```
//!
//! # Available to scripts
//!
//! The language with its built-in objects (`JSON`, `Map`, `RegExp`, `Promise`, `Date`, `Math` with
//! `Math.random`, …), `console`, imports of files, and the functions of the [`ScriptHost`]. No network, files,
//! environment, processes, timers, or clock except `Date`. Modules are strict. `enum`s, namespaces with
//! values and parameter properties are rejected, because removing types cannot translate them.
//!
//! # Limits
//!
//! [`ScriptLimits`] apply to everything a script does, including regular expressions and awaited promises. The
//! engine does not check the clock within a few built-in functions (`new Array(5e8).join()`). To avoid
//! blocking on them, run contexts with [`thread`](mod@thread), which abandons a thread that does not return
//! and refuses new ones when too many hang. Use a [`StopSignal`](thread::StopSignal) to cancel a running context
//! [early](ScriptContext::with_stop).
//!
//! # Features
//!
//! `engine` compiles the engine. Without it a script is refused when it is loaded, and the rest of the interface stays.

// Without an engine much of the interface is only there to be compiled against.
#![cfg_attr(not(feature = "engine"), allow(dead_code))]

#[cfg(feature = "engine")]
mod bytecode;
mod console;
#[cfg_attr(not(feature = "engine"), path = "no_engine.rs")]
mod context;
mod error;
mod folder;
mod host;
mod imports;
mod json_text;
mod limits;
mod modules;
mod strip;
mod test_files;
pub mod thread;

pub use console::{ConsoleLevel, ConsoleLine};
pub use context::ScriptContext;
pub use error::{ScriptError, ScriptErrorKind, StackFrame};
pub use host::{HostCallError, HostResult, ScriptHost};
pub use limits::ScriptLimits;
pub use modules::{ScriptModule, Scripts};
pub use test_files::{TestFileOwner, TestFiles};
