//! Each kind of mistake, as it is shown.

mod common;

use common::{Folder, call, main_of, mistake, short, shown};
use hotseat_script::{ErrorKind, Host, Limits};
use insta::assert_snapshot;

#[test]
fn a_syntax_error_of_typescript() {
    assert_snapshot!(mistake("const a: number = 1;\nexport function main( { return a }\n"), @"
    syntax
    error: Object literal shorthand property must be an identifier reference
     --> main.ts:2:25
      |
    2 | export function main( { return a }
      |                         ^
    ");
}

#[test]
fn a_syntax_error_that_only_the_engine_sees() {
    assert_snapshot!(mistake("export function main() {\n  let x: number = 1;\n  let x = 2;\n}\n"), @"
    syntax
    error: invalid redefinition of lexical identifier
     --> main.ts:3:9
      |
    3 |   let x = 2;
      |         ^
    ");
}

#[test]
fn a_syntax_error_of_javascript() {
    let files = [
        ("main.ts", "import './b.js';\nexport function main() {}"),
        ("b.js", "let a = 1;\nlet b: number = 2;\n"),
    ];
    assert_snapshot!(shown(&call(&files, &[]).unwrap_err()), @"
    syntax
    error: expecting ';'
     --> b.js:2:6
      |
    2 | let b: number = 2;
      |      ^
    ");
}

#[test]
fn a_syntax_error_of_json() {
    let files = [
        ("main.ts", "import a from './a.json';\nexport function main() {}"),
        ("a.json", "{\n  \"a\": 1,\n  b\n}\n"),
    ];
    assert_snapshot!(shown(&call(&files, &[]).unwrap_err()), @"
    syntax
    error: this is not JSON: key must be a string
     --> a.json:3:3
      |
    3 |   b
      |   ^
    ");
}

#[test]
fn an_enum() {
    assert_snapshot!(mistake("export enum Color { Red }\nexport function main() {}\n"), @r#"
    syntax
    error: cannot strip an enum
     --> main.ts:1:1
      |
    1 | export enum Color { Red }
      | ^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: types are removed, and an enum is more than a type: write `const Color = { Red: "red" } as const`
    "#);
}

#[test]
fn an_import_of_nothing() {
    assert_snapshot!(mistake("// import \"./gone\"\nimport { a } from \"./gone\";\nexport function main() { return a }\n"), @r#"
    import
    error: there is no file for `./gone`
     --> main.ts:2:19
      |
    2 | import { a } from "./gone";
      |                   ^^^^^^^^
      |
      = help: looked for gone.ts, gone.js, gone.mjs, gone.json, gone/index.ts, gone/index.js
    "#);
}

#[test]
fn an_import_of_a_package() {
    assert_snapshot!(mistake("import fs from 'fs';\nexport function main() {}\n"), @"
    import
    error: `fs` is not a relative path
     --> main.ts:1:16
      |
    1 | import fs from 'fs';
      |                ^^^^
      |
      = help: only files can be imported, with a path that begins with `./` or `../`; there are no packages
    ");
}

#[test]
fn an_import_of_a_type_as_a_value() {
    let files = [
        ("main.ts", "import { Order } from './types';\nexport function main(o: Order) {}\n"),
        ("types.ts", "export interface Order { id: string }\n"),
    ];
    assert_snapshot!(shown(&call(&files, &[]).unwrap_err()), @"
    import
    error: types.ts exports no `Order`
     --> main.ts:1:23
      |
    1 | import { Order } from './types';
      |                       ^^^^^^^^^
      |
      = help: if `Order` is a type, write `import type`
    ");
}

#[test]
fn a_missing_export() {
    assert_snapshot!(mistake("export function mian() {}\nexport const other = 1;\n"), @"
    missing_export
    error: main.ts exports no function `main`
     |
     = help: did you mean `mian`?
    ");
    assert_snapshot!(mistake("export const main = 1;\n"), @"
    not_a_function
    error: `main` in main.ts is not a function
    ");
}

#[test]
fn something_thrown() {
    let text = "\
interface Order { id: string }
function check(order: Order | null): string {
  return order!.id;
}
export async function main(): Promise<string> {
  await null;
  return check(null as Order | null);
}
";
    assert_snapshot!(mistake(text), @"
    thrown
    error: TypeError: cannot read property 'id' of null
     --> main.ts:3:10
      |
    3 |   return order!.id;
      |          ^^^^^
    ...
    7 |   return check(null as Order | null);
      |                ---- called in `main`
    ");
}

#[test]
fn something_thrown_in_another_file() {
    let files = [
        ("main.ts", "import { a } from './lib/a';\nexport const main = () => a({ b: 1 } as any);\n"),
        (
            "lib/a.ts",
            "export const a = (x: { b: number }): never => { throw new TypeError(`no ${x.b}`); };\n",
        ),
    ];
    assert_snapshot!(shown(&call(&files, &[]).unwrap_err()), @"
    thrown
    error: TypeError: no 1
     --> lib/a.ts:1:75
      |
    1 | export const a = (x: { b: number }): never => { throw new TypeError(`no ${x.b}`); };
      |                                                                           ^
      |
     ::: main.ts:2:27
      |
    2 | export const main = () => a({ b: 1 } as any);
      |                           - called in `main`
    ");
}

#[test]
fn something_thrown_that_is_no_error() {
    assert_snapshot!(mistake("export function main() { throw { code: 7 }; }\n"), @r#"
    thrown
    error: thrown: {"code":7}
     |
     = help: throw an Error, which knows where it was made
    "#);
    assert_snapshot!(mistake("export function main() { throw null; }\n"), @"
    thrown
    error: thrown: null
     |
     = help: throw an Error, which knows where it was made
    ");
}

#[test]
fn a_rejection_that_nobody_looks_after() {
    let text = "export async function main() {\n  Promise.reject(new Error(\"lost\"));\n  return 1;\n}\n";
    assert_snapshot!(mistake(text), @r#"
    thrown
    error: a promise that nobody awaits was rejected: Error: lost
     --> main.ts:2:22
      |
    2 |   Promise.reject(new Error("lost"));
      |                      ^^^^^
    "#);
    assert_eq!(
        main_of("export async function main() {\n  const p = Promise.reject(1); await null; await null; try { await p } catch { return 2 } }").unwrap(),
        2
    );
}

#[test]
fn a_promise_that_nothing_settles() {
    assert_snapshot!(mistake("export const main = () => new Promise(() => {});\n"), @"
    never_settles
    error: the script awaits a promise that nothing can settle any more
     |
     = help: a promise is settled by its `resolve` or `reject`; there are no timers
    ");
}

#[test]
fn what_is_no_json() {
    assert_snapshot!(mistake("export const main = () => () => 1;\n"), @"
    not_serialisable
    error: what `main` returned cannot be written as JSON: it is a function or a symbol
     |
     = help: return plain data from `main` in main.ts
    ");
    assert_snapshot!(mistake("export function main() { const a: any = {}; a.a = a; return a; }\n"), @"
    not_serialisable
    error: what `main` returned cannot be written as JSON: TypeError: circular reference
     |
     = help: return plain data from `main` in main.ts
    ");
    assert_snapshot!(mistake("export const main = () => 10n;\n"), @"
    not_serialisable
    error: what `main` returned cannot be written as JSON: TypeError: BigInt are forbidden in JSON.stringify
     |
     = help: return plain data from `main` in main.ts
    ");
    assert_snapshot!(mistake("export const main = () => 0 / 0;\n"), @"
    not_serialisable
    error: what `main` returned cannot be written as JSON: it is not a finite number
     |
     = help: return plain data from `main` in main.ts
    ");
    assert_eq!(main_of("export const main = () => {};").unwrap(), serde_json::Value::Null);
}

#[test]
fn the_time_limit() {
    let folder = Folder::of(&[("main.ts", "export function main(): void {\n  while (true) {}\n}\n")]);
    let module = folder.scripts.find("main").unwrap();
    let error = folder.with(short(), Host::new()).call(&module, "main", &[]).unwrap_err();
    assert_snapshot!(shown(&error), @"
    time_limit
    error: the script did not end within 200 ms
     --> main.ts:1:1
      |
    1 | export function main(): void {
      | ^^^^^^
    ");
}

#[test]
fn the_memory_limit() {
    let text = "export function main() {\n  const all: string[][] = [];\n  for (;;) all.push(new Array(1000).fill('x'));\n}\n";
    let folder = Folder::of(&[("main.ts", text)]);
    let module = folder.scripts.find("main").unwrap();
    let limits = Limits { memory: 8 * 1024 * 1024, ..Limits::default() };
    let error = folder.with(limits, Host::new()).call(&module, "main", &[]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::MemoryLimit);
    assert_snapshot!(shown(&error).lines().take(2).collect::<Vec<_>>().join("\n"), @"
    memory_limit
    error: the script needs more than 8 MiB of memory
    ");
}

#[test]
fn the_stack_limit() {
    assert_snapshot!(mistake("export function main(n: number): number {\n  return 1 + main(n);\n}\n"), @"
    stack_limit
    error: the script calls itself too deeply
     --> main.ts:2:19
      |
    2 |   return 1 + main(n);
      |                   ^
    ");
}

#[test]
fn a_module_that_throws_while_it_is_loaded() {
    assert_snapshot!(mistake("const a = undefined as any;\na.b.c;\nexport function main() {}\n"), @"
    thrown
    error: TypeError: cannot read property 'b' of undefined
     --> main.ts:2:1
      |
    2 | a.b.c;
      | ^
    ");
}
