//! Capabilities and limits of scripts.

use std::cell::Cell;
use std::fs;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::common::{Folder, call, lock_threads, main_of, short};
use hotseat_script::{
    ConsoleLevel, ScriptContext, ScriptErrorKind, ScriptHost, ScriptLimits, Scripts, thread,
};
use serde_json::{Value, json};

#[test]
fn arguments_and_results_are_json() {
    let arguments = [json!({ "a": [1, 2.5, null, "ü😀", true], "__proto__": 3 }), json!("\u{2028}")];
    let echo = "export function main(...all: unknown[]) { return all; }";
    assert_eq!(call(&[("main.ts", echo)], &arguments).unwrap(), Value::from(arguments.to_vec()));
}

#[test]
fn imports_resolve_with_and_without_extension() {
    let files = [
        (
            "main.ts",
            "import a from './lib/a'; import b from './lib/b.js'; import c from './lib'; import d from './lib/d.json';
             import { type T, e } from './lib/e.js'; import type { X } from './nowhere';
             export const main = async () => [a, b, c, d.d, e, (await import('./lib/a.ts')).default];",
        ),
        ("lib/a.ts", "import b from './b'; export default 'a' + b;"),
        ("lib/b.js", "export default 'b';"),
        ("lib/index.ts", "export { default } from '../c';"),
        ("c.ts", "export default 'c' as string;"),
        ("lib/d.json", "{\"d\": \"d\u{2028}\"}"),
        ("lib/e.ts", "export type T = 1; export const e: string = 'e';"),
    ];
    assert_eq!(call(&files, &[]).unwrap(), json!(["ab", "b", "c", "d\u{2028}", "e", "ab"]));
}

#[test]
fn circular_imports_work() {
    let files = [
        ("main.ts", "import { b } from './b'; export const a = 1; export const main = () => b();"),
        ("b.ts", "import { a } from './main'; export const b = () => a + 1;"),
    ];
    assert_eq!(call(&files, &[]).unwrap(), 2);
}

#[test]
fn rejects_imports_outside_folder() {
    let folder = Folder::with_files(&[
        ("up.ts", "import '../secret.ts'; export const main = 1;"),
        ("sub/up.ts", "import '../../secret'; export const main = 1;"),
        ("linked.ts", "import './link'; export const main = 1;"),
        ("below.ts", "import './folder/secret'; export const main = 1;"),
        ("later.ts", "export const main = async () => import('../secret.ts');"),
    ]);
    let secret = folder.dir.path().join("secret.ts");
    fs::write(&secret, "export default 1;").unwrap();
    let root = folder.dir.path().join("root");
    std::os::unix::fs::symlink(&secret, root.join("link.ts")).unwrap();
    std::os::unix::fs::symlink(folder.dir.path(), root.join("folder")).unwrap();
    let absolute = format!("import '{}'; export const main = 1;", secret.display());
    fs::write(root.join("absolute.ts"), absolute).unwrap();

    for (name, words) in [
        ("up", "is outside the folder that scripts may read"),
        ("sub/up", "is outside the folder that scripts may read"),
        ("linked", "is a link out of the folder that scripts may read"),
        ("below", "is a link out of the folder that scripts may read"),
        ("absolute", "not a relative path"),
        ("later", "is outside the folder that scripts may read"),
    ] {
        let module = folder.scripts.find(name).unwrap();
        let error = folder.context().call(&module, "main", &[]).unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::Import, "{name}: {error}");
        assert!(error.message.contains(words), "{name}: {error}");
        assert!(error.place.is_some() || name == "linked" || name == "below", "{name}: {error}");
    }
    for name in ["../secret", "../secret.ts", "sub/../../secret"] {
        assert_eq!(folder.scripts.find(name).unwrap_err().kind, ScriptErrorKind::Import, "{name}");
    }
}

#[test]
fn follows_links_within_folder() {
    let folder = Folder::with_files(&[("a.ts", "export const main = () => 1;")]);
    let root = folder.dir.path().join("root");
    std::os::unix::fs::symlink(root.join("a.ts"), root.join("b.ts")).unwrap();
    let module = folder.scripts.find("b").unwrap();
    assert_eq!(folder.context().call(&module, "main", &[]).unwrap(), 1);
}

#[test]
fn file_is_read_once() {
    let folder = Folder::with_files(&[("a.ts", "export const main = () => 1;")]);
    let module = folder.scripts.find("a").unwrap();
    assert_eq!(folder.context().call(&module, "main", &[]).unwrap(), 1);
    fs::write(folder.dir.path().join("root/a.ts"), "export const main = () => 2;").unwrap();
    assert_eq!(folder.context().call(&module, "main", &[]).unwrap(), 1);
    let again = Scripts::open(&folder.dir.path().join("root"), "".as_ref()).unwrap();
    let module = again.find("a").unwrap();
    assert_eq!(
        ScriptContext::new(&again, ScriptLimits::default(), ScriptHost::new())
            .unwrap()
            .call(&module, "main", &[])
            .unwrap(),
        2
    );
}

#[test]
fn contexts_are_isolated_and_keep_state() {
    let text = "let n = 0; export function main() { (globalThis as any).seen = ++n; (Array.prototype as any).x = 1; return n; }
                export const clean = () => [(globalThis as any).seen ?? null, ([] as any).x ?? null];";
    let folder = Folder::with_files(&[("a.ts", text)]);
    let module = folder.scripts.find("a").unwrap();
    let (mut one, mut other) = (folder.context(), folder.context());
    assert_eq!(one.call(&module, "main", &[]).unwrap(), 1);
    assert_eq!(one.call(&module, "main", &[]).unwrap(), 2);
    assert_eq!(other.call(&module, "clean", &[]).unwrap(), json!([null, null]));
    assert_eq!(other.call(&module, "main", &[]).unwrap(), 1);
}

#[test]
fn scripts_have_no_access_to_the_system() {
    let names = "['fetch','require','process','setTimeout','Deno','XMLHttpRequest','WebSocket','performance','std','os']";
    let text = format!("export const main = () => {names}.filter((name) => name in globalThis);");
    assert_eq!(main_of(&text).unwrap(), json!([]));
    assert_eq!(
        main_of("export const main = () => typeof Date.now() + typeof Math.random();").unwrap(),
        "numbernumber"
    );
}

#[test]
fn host_functions_are_callable() {
    let text = "declare function add(a: number, b: number): number;
                declare function refuse(): never;
                export async function main() {
                  let caught = [];
                  try { refuse() } catch (error) { caught.push((error as Error).message, error instanceof Error) }
                  return [add(1, 2), caught];
                }";
    let folder = Folder::with_files(&[("a.ts", text)]);
    let host = ScriptHost::new()
        .function("add", |arguments| Ok(json!(arguments.iter().filter_map(Value::as_i64).sum::<i64>())))
        .function("refuse", |_| Err("not today".into()));
    let module = folder.scripts.find("a").unwrap();
    let result = folder.with(ScriptLimits::default(), host).call(&module, "main", &[]).unwrap();
    assert_eq!(result, json!([3, ["not today", true]]));
}

#[test]
fn host_function_error_is_shown_at_call() {
    let text = "declare const now: any, waiting: any;\nexport function one() {\n  now();\n}\nexport async function two() {\n  await null;\n  waiting();\n}\n";
    let folder = Folder::with_files(&[("a.ts", text)]);
    let host = || {
        ScriptHost::new()
            .function("now", |_| Err("no".into()))
            .blocking_function("waiting", |_| async { Err("no".into()) })
    };
    let module = folder.scripts.find("a").unwrap();
    for (name, place) in [("one", "a.ts:3:"), ("two", "a.ts:7:")] {
        let error = folder.with(ScriptLimits::default(), host()).call(&module, name, &[]).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ScriptErrorKind::Thrown, "Error: no"));
        assert!(error.to_string().starts_with(place), "{error}");
    }
}

#[test]
fn hanging_host_function_is_dropped() {
    struct Dropped(Rc<Cell<bool>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let dropped = Rc::new(Cell::new(false));
    let told = Rc::clone(&dropped);
    let host = ScriptHost::new().blocking_function("never", move |_| {
        let guard = Dropped(Rc::clone(&told));
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let folder =
        Folder::with_files(&[("a.ts", "declare const never: any; export const main = () => never();")]);
    let module = folder.scripts.find("a").unwrap();
    let mut context = folder.with(short(), host);
    assert_eq!(context.call(&module, "main", &[]).unwrap_err().kind, ScriptErrorKind::TimeLimit);
    assert!(dropped.get());
}

/// A future that signals when it is dropped.
struct Dropped(std::sync::mpsc::Sender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// A host with `twice`, which returns from another thread, and `never`, which does not return.
fn waiting_host(dropped: std::sync::mpsc::Sender<()>) -> ScriptHost {
    ScriptHost::new()
        .blocking_function("twice", |arguments| async move {
            let (done, result) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || done.send(arguments[0].as_i64().map(|number| 2 * number)));
            result.await.ok().flatten().map(Value::from).ok_or_else(|| "no number".into())
        })
        .blocking_function("never", move |_| {
            let dropped = Dropped(dropped.clone());
            async move {
                let _dropped = dropped;
                std::future::pending().await
            }
        })
}

#[test]
fn script_blocks_on_waiting_host_function() {
    let text = "declare const twice: any, never: any;
        export const main = () => { try { twice('x') } catch (error) { return [twice(twice(4)), (error as Error).message] } };
        export const stuck = () => { for (;;) try { never() } catch {} };";
    let folder = Folder::with_files(&[("a.ts", text)]);
    let module = folder.scripts.find("a").unwrap();
    let (told, dropped) = std::sync::mpsc::channel();
    let mut context = folder.with(short(), waiting_host(told));
    assert_eq!(context.call(&module, "main", &[]).unwrap(), json!([16, "no number"]));
    assert_eq!(context.call(&module, "stuck", &[]).unwrap_err().kind, ScriptErrorKind::TimeLimit);
    dropped.recv_timeout(Duration::from_secs(5)).expect("what is waited for is dropped");
    assert_eq!(context.call(&module, "main", &[]).unwrap(), json!([16, "no number"]));
}

#[test]
fn abandoned_script_is_stopped() {
    let _threads = lock_threads();
    for body in ["for (;;) {}", "for (;;) try { never() } catch {}", "for (;;) await null;"] {
        let text = format!("declare const never: any; export const main = async () => {{ {body} }}");
        let folder = Folder::with_files(&[("a.ts", &text)]);
        let scripts = folder.scripts.clone();
        let (told, _dropped) = std::sync::mpsc::channel();
        let (ended, seen) = std::sync::mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let long = Duration::from_secs(600);
            let work = thread::run_async(long, move |stop| {
                let limits = ScriptLimits { time: long, ..ScriptLimits::default() };
                let host = waiting_host(told);
                let mut context = ScriptContext::new(&scripts, limits, host).unwrap().with_stop(stop);
                let module = scripts.find("a").unwrap();
                let _ = ended.send(context.call(&module, "main", &[]).unwrap_err().kind);
            });
            assert!(tokio::time::timeout(Duration::from_millis(50), work).await.is_err(), "{body}");
        });
        let kind = seen.recv_timeout(Duration::from_secs(5));
        assert_eq!(kind, Ok(ScriptErrorKind::Cancelled), "{body}");
    }
}

#[test]
fn hidden_functions_are_visible_only_to_prelude() {
    let code = "(function (host) { globalThis.sum = (...all) => all.reduce((a, b) => host.add(a, b), 0); })";
    let hidden = ScriptHost::new()
        .function("add", |arguments| Ok(json!(arguments.iter().filter_map(Value::as_i64).sum::<i64>())));
    let host = || ScriptHost::new().function("one", |_| Ok(json!(1)));
    let text = "declare const sum: any, one: any; export const main = () => [sum(1, 2, 3), one(), 'add' in globalThis, typeof sum];";
    let folder = Folder::with_files(&[("a.ts", text)]);
    let module = folder.scripts.find("a").unwrap();
    let host = host().with_wrapper(code, hidden);
    let result = folder.with(ScriptLimits::default(), host).call(&module, "main", &[]).unwrap();
    assert_eq!(result, json!([6, 1, false, "function"]));
}

#[test]
fn every_script_ends_within_time_limit() {
    for (what, body) in [
        ("a loop", "while (true) {}"),
        (
            "a loop that catches",
            "while (true) { try { while (true) {} } catch {} finally { while (true) {} } }",
        ),
        ("a loop that awaits", "while (true) await null;"),
        ("a loop behind an await", "await null; while (true) {}"),
        ("a regular expression", "/^(a+)+$/.test('a'.repeat(60) + 'b')"),
        ("a chain of promises", "const next = (): any => Promise.resolve().then(next); await next();"),
        ("a getter", "return { get a() { while (true) {} } }"),
        ("a message", "throw { get message() { while (true) {} }, toJSON() { while (true) {} } }"),
        ("a generator", "function* all() { while (true) yield 1; } for (const _ of all()) {}"),
        ("a sort", "[3, 1, 2].sort(() => { while (true) {} })"),
    ] {
        let text = format!("export async function main(): Promise<any> {{ {body} }}");
        let folder = Folder::with_files(&[("a.ts", &text)]);
        let module = folder.scripts.find("a").unwrap();
        let began = Instant::now();
        let error = folder.with(short(), ScriptHost::new()).call(&module, "main", &[]).unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::TimeLimit, "{what}: {error}");
        assert!(began.elapsed() < Duration::from_secs(3), "{what}: {:?}", began.elapsed());
    }
}

#[test]
fn context_is_usable_after_limit() {
    let text = "export const endless = () => { for (;;) {} }; export const deep = (): any => deep(); export const main = () => 1;";
    let folder = Folder::with_files(&[("a.ts", text)]);
    let module = folder.scripts.find("a").unwrap();
    let mut context = folder.with(short(), ScriptHost::new());
    assert_eq!(context.call(&module, "endless", &[]).unwrap_err().kind, ScriptErrorKind::TimeLimit);
    assert_eq!(context.call(&module, "deep", &[]).unwrap_err().kind, ScriptErrorKind::StackLimit);
    assert_eq!(context.call(&module, "main", &[]).unwrap(), 1);
}

#[test]
fn memory_limit_covers_every_allocation() {
    for body in [
        "let s = 'x'; for (;;) s += s;",
        "'x'.repeat(2 ** 29)",
        "new ArrayBuffer(2 ** 30)",
        "const a: any[] = []; for (;;) a.push({});",
        "await null; const a: any[] = []; for (;;) a.push([1, 2, 3]);",
    ] {
        let text = format!("export async function main(): Promise<any> {{ {body} }}");
        let folder = Folder::with_files(&[("a.ts", &text)]);
        let module = folder.scripts.find("a").unwrap();
        let limits = ScriptLimits { memory: 8 * 1024 * 1024, ..ScriptLimits::default() };
        let error = folder.with(limits, ScriptHost::new()).call(&module, "main", &[]).unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::MemoryLimit, "{body}: {error}");
    }
}

#[test]
fn log_messages_keep_their_level() {
    let text = "export function main() {
      console.log('a', 1, { b: [null] }, undefined, () => 1); console.warn(new TypeError('x')); console.error('e');
      console.info('i'); console.debug('d'); console.assert(1 > 2, 'never'); console.assert(true, 'always');
      const circle: any = {}; circle.circle = circle; console.log(circle);
    }";
    let folder = Folder::with_files(&[("a.ts", text)]);
    let module = folder.scripts.find("a").unwrap();
    let mut context = folder.context();
    context.call(&module, "main", &[]).unwrap();
    let said: Vec<(ConsoleLevel, String)> =
        context.take_console().into_iter().map(|line| (line.level, line.text)).collect();
    let expected = [
        (ConsoleLevel::Log, "a 1 {\"b\":[null]} undefined [function without a name]"),
        (ConsoleLevel::Warn, "TypeError: x"),
        (ConsoleLevel::Error, "e"),
        (ConsoleLevel::Info, "i"),
        (ConsoleLevel::Debug, "d"),
        (ConsoleLevel::Error, "Assertion failed: never"),
        (ConsoleLevel::Log, "[object Object]"),
    ];
    assert_eq!(said, expected.map(|(level, text)| (level, text.to_string())));
    assert!(context.take_console().is_empty());
}

#[test]
fn excessive_log_output_is_truncated() {
    let folder = Folder::with_files(&[(
        "a.ts",
        "export const main = () => { for (let i = 0; i < 1e5; i++) console.log('x'.repeat(100)); }",
    )]);
    let module = folder.scripts.find("a").unwrap();
    let mut context = folder.context();
    context.call(&module, "main", &[]).unwrap();
    let said = context.take_console();
    assert!(said.iter().map(|line| line.text.len()).sum::<usize>() < 1_100_000);
    assert!(said.last().unwrap().text.contains("the rest is omitted"), "{:?}", said.last());
}

#[test]
fn threads_run_contexts_in_parallel() {
    let _threads = lock_threads();
    let folder = Folder::with_files(&[
        ("a.ts", "import { b } from './b'; let n = 0; export const main = (x: number) => [x, ++n, b];"),
        ("b.ts", "export const b: number = 5;"),
    ]);
    let threads: Vec<_> = (0..16)
        .map(|number| {
            let scripts = folder.scripts.clone();
            std::thread::spawn(move || {
                thread::run(Duration::from_secs(5), move |_| {
                    let mut context =
                        ScriptContext::new(&scripts, ScriptLimits::default(), ScriptHost::new())?;
                    let module = scripts.find("a")?;
                    context.call(&module, "main", &[json!(number)])
                })
            })
        })
        .collect();
    for (number, thread) in threads.into_iter().enumerate() {
        assert_eq!(thread.join().unwrap().unwrap().unwrap(), json!([number, 1, 5]));
    }
}

#[test]
fn module_exports_are_listed() {
    let text = "export * from './b'; export default function () {} export const a: number = 1; export class C {} export type T = 1;";
    let folder = Folder::with_files(&[("a.ts", text), ("b.ts", "export function b() {}")]);
    let module = folder.scripts.find("a").unwrap();
    let mut context = folder.context();
    for name in ["b", "default"] {
        assert_eq!(context.check_export(&module, name), Ok(()), "{name}");
    }
    for (name, kind) in [
        ("a", ScriptErrorKind::NotAFunction),
        ("T", ScriptErrorKind::MissingExport),
        ("c", ScriptErrorKind::MissingExport),
    ] {
        assert_eq!(context.check_export(&module, name).unwrap_err().kind, kind, "{name}");
    }
}

#[test]
fn panicking_host_function_ends_only_its_context() {
    let _threads = lock_threads();
    let folder = Folder::with_files(&[(
        "a.ts",
        "declare const bad: any; export const main = (x?: number) => x ?? bad();",
    )]);
    let scripts = folder.scripts.clone();
    let error = thread::run(Duration::from_secs(5), move |_| {
        let host = ScriptHost::new().function("bad", |_| panic!("of the host"));
        let mut context = ScriptContext::new(&scripts, ScriptLimits::default(), host).unwrap();
        context.call(&scripts.find("a").unwrap(), "main", &[])
    })
    .unwrap_err();
    assert!(error.message.contains("panicked"), "{error}");
    let module = folder.scripts.find("a").unwrap();
    assert_eq!(folder.context().call(&module, "main", &[json!(1)]).unwrap(), 1);
}
