//! Modules provided by the host, and host functions that pause the clock of a script.

use std::time::{Duration, Instant};

use crate::common::{Folder, render};
use hotseat_script::{ScriptContext, ScriptErrorKind, ScriptHost, ScriptLimits};
use serde_json::{Value, json};

/// A module that stores declared functions and runs them on request.
const FUNCTION_STORE: &str = "(hidden) => {
  const kept = [];
  return {
    exports: { keep: (name, work) => void kept.push({ name, work, at: new Error('').stack }) },
    entries: {
      kept: (namespace) => [Object.keys(namespace), kept.map(({ name, at }) => [name, hidden.places(at)])],
      run: async (namespace, name, argument) => hidden.twice(await kept.find((one) => one.name === name).work(argument)),
    },
  };
}";

fn context_with_store(folder: &Folder) -> ScriptContext {
    let scripts = folder.scripts.clone();
    let places = move |arguments: Vec<Value>| {
        let frames = scripts.frames(arguments[0].as_str().unwrap());
        Ok(json!(frames[0].place.to_string()))
    };
    let twice = |arguments: Vec<Value>| Ok(json!([arguments[0], arguments[0]]));
    let with = ScriptHost::new().function("places", places).function("twice", twice);
    folder.with(ScriptLimits::default(), ScriptHost::new().with_module("keeper", FUNCTION_STORE, with))
}

#[test]
fn host_module_can_be_imported() {
    let folder = Folder::with_files(&[
        (
            "a.ts",
            "import { keep } from 'keeper';\nimport './b';\nexport const x: number = 1;\n  keep('a', async (n: number) => n + x);",
        ),
        ("b.ts", "import * as all from 'keeper';\nall.keep('b', () => { throw new Error('of b'); });"),
    ]);
    let mut context = context_with_store(&folder);
    let module = folder.scripts.find("a").unwrap();
    let kept = context.run_entry("keeper", "kept", &module, &[]).unwrap();
    assert_eq!(kept, json!([["x"], [["b", "b.ts:2:5"], ["a", "a.ts:4:3"]]]));
    assert_eq!(context.run_entry("keeper", "run", &module, &[json!("a"), json!(2)]).unwrap(), json!([3, 3]));
    let error = context.run_entry("keeper", "run", &module, &[json!("b")]).unwrap_err();
    assert_eq!(error.place.unwrap().to_string(), "b.ts:2:33");
}

#[test]
fn only_declared_exports_can_be_imported() {
    let folder = Folder::with_files(&[
        ("a.ts", "import { places } from 'keeper'; export const main = () => 1;"),
        ("b.ts", "import './keeper'; export const main = () => 1;"),
    ]);
    let mut context = context_with_store(&folder);
    for name in ["a", "b"] {
        let module = folder.scripts.find(name).unwrap();
        assert_eq!(
            context.check_export(&module, "main").unwrap_err().kind,
            ScriptErrorKind::Import,
            "{name}"
        );
    }
    // Without the host module the import is unknown.
    let module = folder.scripts.find("b").unwrap();
    assert!(render(&folder.context().check_export(&module, "main").unwrap_err()).contains("keeper"));
}

#[test]
fn clock_stops_while_function_pauses() {
    let text = "declare const pause: () => void; declare const wait: () => void;
        export const paused = () => { for (let i = 0; i < 3; i++) pause(); return 1; };
        export const waited = () => { for (let i = 0; i < 3; i++) wait(); return 1; };
        export const spins = () => { pause(); while (true) {} };";
    let folder = Folder::with_files(&[("a.ts", text)]);
    let within = Duration::from_millis(150);
    let sleeps = || async {
        std::thread::sleep(Duration::from_millis(100));
        Ok(Value::Null)
    };
    let host = ScriptHost::new()
        .untimed_function("pause", move |_| sleeps())
        .blocking_function("wait", move |_| sleeps());
    let mut context = folder.with(ScriptLimits { time: within, ..ScriptLimits::default() }, host);
    let module = folder.scripts.find("a").unwrap();
    assert_eq!(context.call(&module, "paused", &[]).unwrap(), 1);
    assert_eq!(context.call(&module, "waited", &[]).unwrap_err().kind, ScriptErrorKind::TimeLimit);
    let begun = Instant::now();
    assert_eq!(context.call(&module, "spins", &[]).unwrap_err().kind, ScriptErrorKind::TimeLimit);
    assert!(begun.elapsed() >= within + Duration::from_millis(100));
}

#[test]
fn computing_time_does_not_pass_while_others_have_the_processor() {
    let text = "declare const idle: () => void; declare const wait: () => void;
        export const idles = () => { for (let i = 0; i < 3; i++) idle(); return 1; };
        export const waits = () => { for (let i = 0; i < 3; i++) wait(); return 1; };
        export const spins = () => { while (true) {} };";
    let folder = Folder::with_files(&[("a.ts", text)]);
    let time = Duration::from_millis(1500);
    // The function does not compute, as a thread that waits for a processor.
    let sleeps = || std::thread::sleep(Duration::from_millis(600));
    let host = || {
        let idle = ScriptHost::new().function("idle", move |_| {
            sleeps();
            Ok(Value::Null)
        });
        idle.blocking_function("wait", move |_| async move {
            sleeps();
            Ok(Value::Null)
        })
    };
    let module = folder.scripts.find("a").unwrap();
    for (is_computing_time, idle_result) in [(true, Ok(1.into())), (false, Err(ScriptErrorKind::TimeLimit))] {
        let limits = ScriptLimits { time, is_computing_time, ..ScriptLimits::default() };
        let mut context = folder.with(limits, host());
        let result = context.call(&module, "idles", &[]).map_err(|error| error.kind);
        assert_eq!(result, idle_result, "{is_computing_time}");
        for name in ["waits", "spins"] {
            let error = context.call(&module, name, &[]).unwrap_err();
            assert_eq!(error.kind, ScriptErrorKind::TimeLimit, "{name}");
        }
    }
}

#[test]
fn function_source_locates_declaration() {
    let text = "const a = 1;\r\n  export function two(x: number) { return x; }\nexport const three = (y: string) => y;";
    let folder = Folder::with_files(&[("a.ts", text)]);
    let module = folder.scripts.find("a").unwrap();
    let place = |code: &str| folder.scripts.place_of(&module, code).map(|place| place.to_string());
    assert_eq!(place("function two"), Some("a.ts:2:10".to_string()));
    assert_eq!(place("(y"), Some("a.ts:3:22".to_string()));
    assert_eq!(place("nowhere"), None);
}

#[test]
fn code_of_a_module_is_loaded_when_it_is_used() {
    const MODULE: &str = "(hidden) => ({ exports: { loaded: () => { const part = hidden.part(); return [part(1), part === hidden.part()]; } }, entries: {} })";
    let with = ScriptHost::new().code("part", "(one) => { \"use strict\"; return [one, typeof Map]; }");
    let host = ScriptHost::new().with_module("keeper", MODULE, with);
    // Not the functions of the script: those of the engine load it.
    let text = "import { loaded } from 'keeper';
let jobs = 0;
export const main = () => {
  JSON.parse = () => { throw new Error('changed'); };
  Promise.resolve().then(() => { jobs += 1; });
  return [loaded(), jobs];
};";
    let folder = Folder::with_files(&[("a.ts", text)]);
    let module = folder.scripts.find("a").unwrap();
    let result = folder.with(ScriptLimits::default(), host).call(&module, "main", &[]).unwrap();
    assert_eq!(result, json!([[[1, "function"], false], 0]));
}

#[test]
fn unpaired_surrogates_of_arguments_are_replaced() {
    let host = || {
        ScriptHost::new().function("same", |arguments| Ok(arguments.into_iter().next().unwrap_or_default()))
    };
    let text = r#"declare const same: any;
export const main = () => [same("a\ud800b"), same("\\ud800 \\\ud800"), same({ "\udfff": ["\ud83d\ude00", "\ud83d"] })];"#;
    let folder = Folder::with_files(&[("a.ts", text)]);
    let module = folder.scripts.find("a").unwrap();
    let result = folder.with(ScriptLimits::default(), host()).call(&module, "main", &[]).unwrap();
    let expected = json!(["a\u{fffd}b", "\\ud800 \\\u{fffd}", { "\u{fffd}": ["\u{1f600}", "\u{fffd}"] }]);
    assert_eq!(result, expected);
}
