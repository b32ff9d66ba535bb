//! Contexts that run one after the other on the same thread share nothing.

use std::time::Duration;

use hotseat_script::{ScriptContext, ScriptErrorKind, ScriptHost, ScriptLimits, thread};
use serde_json::{Value, json};

use crate::common::{Folder, lock_threads};

/// Calls a function of `main.ts` in a new context on a thread for scripts. Returns the thread too.
fn call_on_thread(
    folder: &Folder,
    name: &'static str,
    limits: ScriptLimits,
) -> (String, Result<Value, ScriptErrorKind>) {
    let scripts = folder.scripts.clone();
    thread::run(limits.time + Duration::from_secs(5), move |_| {
        let module = scripts.find("main").unwrap();
        let mut context = ScriptContext::new(&scripts, limits, ScriptHost::new()).unwrap();
        let result = context.call(&module, name, &[]).map_err(|error| error.kind);
        (format!("{:?}", std::thread::current().id()), result)
    })
    .unwrap()
}

/// Calls two functions, each in a new context, until the second one ran on the thread of the first. Returns the result
/// of the second.
fn call_after(
    folder: &Folder,
    first: &'static str,
    second: &'static str,
    limits: ScriptLimits,
) -> Result<Value, ScriptErrorKind> {
    // The thread of the first call may still be ending its work.
    for _ in 0..1_000 {
        let (of_first, _) = call_on_thread(folder, first, limits);
        let (of_second, result) = call_on_thread(folder, second, ScriptLimits::default());
        if of_first == of_second {
            return result;
        }
    }
    panic!("no thread did the work of a second script");
}

const CHANGES: &str = "
import { kept } from './kept';
let count = 0;
export function change() {
  count += 1;
  kept.push(count);
  const all = globalThis as any;
  all.leaked = 1;
  (Array.prototype as any).leaked = 2;
  (Object.prototype as any).leaked = 3;
  JSON.parse = () => 4;
  JSON.stringify = () => '5';
  Promise.prototype.then = () => 6 as any;
  Date.now = () => 7;
  Error.stackTraceLimit = 0;
  delete all.Map;
  console.log = () => 8;
  Object.freeze(Object.prototype);
}
export function look() {
  count += 1;
  kept.push(count);
  const all = globalThis as any;
  return [
    count, kept.length, all.leaked === undefined, ([] as any).leaked === undefined, JSON.parse('9'), Date.now() > 7,
    typeof Map, Object.isFrozen(Object.prototype), new Error('').stack!.includes('main.ts'),
  ];
}
export const awaited = async () => await Promise.resolve(10);
export function hang() { while (true) {} }
export function fill() { const all: unknown[] = []; while (true) all.push(new Array(1000).fill(all)); }
export function nest(): any { return nest(); }
export function use() { const all: unknown[] = []; for (let i = 0; i < 30; i += 1) all.push(new Uint8Array(1024 * 1024)); return all.length; }
";

#[test]
fn globals_prototypes_and_module_state_are_fresh() {
    let _threads = lock_threads();
    let folder =
        Folder::with_files(&[("main.ts", CHANGES), ("kept.ts", "export const kept: number[] = [];")]);
    let limits = ScriptLimits::default();
    let found = call_after(&folder, "change", "look", limits);
    assert_eq!(found, Ok(json!([1, 1, true, true, 9, true, "function", false, true])));
    assert_eq!(call_after(&folder, "change", "awaited", limits), Ok(json!(10)));
}

#[test]
fn a_script_has_its_whole_limits_after_one_that_exceeded_them() {
    let _threads = lock_threads();
    let folder =
        Folder::with_files(&[("main.ts", CHANGES), ("kept.ts", "export const kept: number[] = [];")]);
    let limits = ScriptLimits { time: Duration::from_millis(100), ..ScriptLimits::default() };
    for exceeding in ["hang", "fill", "nest"] {
        assert_eq!(call_after(&folder, exceeding, "use", limits), Ok(json!(30)), "{exceeding}");
        // A loop of memory may meet the limit of time first.
        let expected: &[ScriptErrorKind] = match exceeding {
            "hang" => &[ScriptErrorKind::TimeLimit],
            "fill" => &[ScriptErrorKind::MemoryLimit, ScriptErrorKind::TimeLimit],
            _ => &[ScriptErrorKind::StackLimit],
        };
        let (_, again) = call_on_thread(&folder, exceeding, limits);
        assert!(again.as_ref().is_err_and(|kind| expected.contains(kind)), "{exceeding}: {again:?}");
    }
}

#[test]
fn a_thread_whose_work_panics_does_no_further_work() {
    let _threads = lock_threads();
    let lost = thread::run(Duration::from_secs(5), |_| -> String { panic!("of the test") }).unwrap_err();
    assert!(lost.message.contains("panicked"), "{lost}");
    assert_eq!(thread::run(Duration::from_secs(5), |_| 1).unwrap(), 1);
}
