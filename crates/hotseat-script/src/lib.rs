//! TypeScript in an embedded engine with time and memory limits.
//!
//! [`Scripts`] are the files of a folder; a [`Context`] is an engine of its own that runs their exported functions, with
//! JSON going in and coming out. Types are removed such that everything keeps its line and its column, so a
//! [`ScriptError`] points at the TypeScript without a map.
//!
//! ```
//! use hotseat_script::{Context, Host, Limits, Scripts};
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
//! let scripts = Scripts::of(folder.path(), "orders".as_ref())?;
//! let host = Host::new().function("discount", |_arguments| Ok(json!(2)));
//! let mut context = Context::new(&scripts, Limits::default(), host)?;
//! let module = scripts.find("price")?;
//! let price = context.call(&module, "price", &[json!({ "who": "ada", "count": 4 })])?;
//! assert_eq!(price, json!(10));
//! # Ok(())
//! # }
//! ```
//!
//! # What scripts find
//!
//! The language with its own objects (`JSON`, `Map`, `RegExp`, `Promise`, `Date`, `Math` with `Math.random`, …),
//! `console`, imports of files, and the functions of the [`Host`]. There is no network, no file, no environment, no
//! process, no timer and no clock but `Date`. Modules are strict; `enum`s, namespaces with values and parameter properties
//! are refused, because they are more than types.
//!
//! # Limits
//!
//! [`Limits`] hold for all that a script does, regular expressions and awaited promises included. The engine does not
//! look at the clock within a few functions of its own (`new Array(5e8).join()`): whoever must not hang with it runs
//! contexts with [`thread`](mod@thread), which gives a thread up that does not come back, and starts no more when many hang.
//! Whoever waits no longer says so with a [`Stop`](thread::Stop): what runs [until](Context::until) then is given up.

mod console;
mod context;
mod error;
mod folder;
mod host;
mod imports;
mod modules;
mod strip;
pub mod thread;

pub use console::{Level, Line};
pub use context::{Context, Limits};
pub use error::{ErrorKind, Frame, ScriptError};
pub use host::{Host, HostResult};
pub use modules::{Module, Scripts};
