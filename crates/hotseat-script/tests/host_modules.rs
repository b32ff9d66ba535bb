//! Modules that the host gives to scripts, and functions that stop the clock of a script.

mod common;

use std::time::{Duration, Instant};

use common::{Folder, shown};
use hotseat_script::{Context, ErrorKind, Host, Limits};
use serde_json::{Value, json};

/// A module that keeps what is declared, and runs it when it is entered.
const KEEPER: &str = "(hidden) => {
  const kept = [];
  return {
    exports: { keep: (name, work) => void kept.push({ name, work, at: new Error('').stack }) },
    entries: {
      kept: (namespace) => [Object.keys(namespace), kept.map(({ name, at }) => [name, hidden.places(at)])],
      run: async (namespace, name, argument) => hidden.twice(await kept.find((one) => one.name === name).work(argument)),
    },
  };
}";

fn keeper(folder: &Folder) -> Context {
    let scripts = folder.scripts.clone();
    let places = move |arguments: Vec<Value>| {
        let frames = scripts.frames(arguments[0].as_str().unwrap());
        Ok(json!(frames[0].place.to_string()))
    };
    let twice = |arguments: Vec<Value>| Ok(json!([arguments[0], arguments[0]]));
    let with = Host::new().function("places", places).function("twice", twice);
    folder.with(Limits::default(), Host::new().module("keeper", KEEPER, with))
}

#[test]
fn a_module_of_the_host_is_imported_and_entered() {
    let folder = Folder::of(&[
        (
            "a.ts",
            "import { keep } from 'keeper';\nimport './b';\nexport const x: number = 1;\n  keep('a', async (n: number) => n + x);",
        ),
        ("b.ts", "import * as all from 'keeper';\nall.keep('b', () => { throw new Error('of b'); });"),
    ]);
    let mut context = keeper(&folder);
    let module = folder.scripts.find("a").unwrap();
    let kept = context.enter("keeper", "kept", &module, &[]).unwrap();
    assert_eq!(kept, json!([["x"], [["b", "b.ts:2:5"], ["a", "a.ts:4:3"]]]));
    assert_eq!(context.enter("keeper", "run", &module, &[json!("a"), json!(2)]).unwrap(), json!([3, 3]));
    let error = context.enter("keeper", "run", &module, &[json!("b")]).unwrap_err();
    assert_eq!(error.place.unwrap().to_string(), "b.ts:2:33");
}

#[test]
fn only_what_it_exports_can_be_imported() {
    let folder = Folder::of(&[
        ("a.ts", "import { places } from 'keeper'; export const main = () => 1;"),
        ("b.ts", "import './keeper'; export const main = () => 1;"),
    ]);
    let mut context = keeper(&folder);
    for name in ["a", "b"] {
        let module = folder.scripts.find(name).unwrap();
        assert_eq!(context.check(&module, "main").unwrap_err().kind, ErrorKind::Import, "{name}");
    }
    // Without the module of the host its name means nothing.
    let module = folder.scripts.find("b").unwrap();
    assert!(shown(&folder.context().check(&module, "main").unwrap_err()).contains("keeper"));
}

#[test]
fn the_clock_stands_still_while_a_function_pauses() {
    let text = "declare const pause: () => void; declare const wait: () => void;
        export const paused = () => { for (let i = 0; i < 3; i++) pause(); return 1; };
        export const waited = () => { for (let i = 0; i < 3; i++) wait(); return 1; };
        export const spins = () => { pause(); while (true) {} };";
    let folder = Folder::of(&[("a.ts", text)]);
    let within = Duration::from_millis(150);
    let sleeps = || async {
        std::thread::sleep(Duration::from_millis(100));
        Ok(Value::Null)
    };
    let host =
        Host::new().pausing_function("pause", move |_| sleeps()).waiting_function("wait", move |_| sleeps());
    let mut context = folder.with(Limits { time: within, ..Limits::default() }, host);
    let module = folder.scripts.find("a").unwrap();
    assert_eq!(context.call(&module, "paused", &[]).unwrap(), 1);
    assert_eq!(context.call(&module, "waited", &[]).unwrap_err().kind, ErrorKind::TimeLimit);
    let begun = Instant::now();
    assert_eq!(context.call(&module, "spins", &[]).unwrap_err().kind, ErrorKind::TimeLimit);
    assert!(begun.elapsed() >= within + Duration::from_millis(100));
}

#[test]
fn the_text_of_a_function_tells_where_it_stands() {
    let text = "const a = 1;\r\n  export function two(x: number) { return x; }\nexport const three = (y: string) => y;";
    let folder = Folder::of(&[("a.ts", text)]);
    let module = folder.scripts.find("a").unwrap();
    let place = |code: &str| folder.scripts.place_of(&module, code).map(|place| place.to_string());
    assert_eq!(place("function two"), Some("a.ts:2:10".to_string()));
    assert_eq!(place("(y"), Some("a.ts:3:22".to_string()));
    assert_eq!(place("nowhere"), None);
}
