//! Rendered message of each kind of script error.

use crate::common::{Folder, call, error_text, main_of, render, short};
use hotseat_script::{ScriptErrorKind, ScriptHost, ScriptLimits};
use insta::assert_snapshot;

#[test]
fn typescript_syntax_error() {
    assert_snapshot!(error_text("const a: number = 1;\nexport function main( { return a }\n"), @"
    syntax
    error: Object literal shorthand property must be an identifier reference
     --> main.ts:2:25
      |
    2 | export function main( { return a }
      |                         ^
    ");
}

#[test]
fn syntax_error_found_by_engine() {
    assert_snapshot!(error_text("export function main() {\n  let x: number = 1;\n  let x = 2;\n}\n"), @"
    syntax
    error: invalid redefinition of lexical identifier
     --> main.ts:3:9
      |
    3 |   let x = 2;
      |         ^
    ");
}

#[test]
fn javascript_syntax_error() {
    let files = [
        ("main.ts", "import './b.js';\nexport function main() {}"),
        ("b.js", "let a = 1;\nlet b: number = 2;\n"),
    ];
    assert_snapshot!(render(&call(&files, &[]).unwrap_err()), @"
    syntax
    error: expecting ';'
     --> b.js:2:6
      |
    2 | let b: number = 2;
      |      ^
    ");
}

#[test]
fn json_syntax_error() {
    let files = [
        ("main.ts", "import a from './a.json';\nexport function main() {}"),
        ("a.json", "{\n  \"a\": 1,\n  b\n}\n"),
    ];
    assert_snapshot!(render(&call(&files, &[]).unwrap_err()), @"
    syntax
    error: invalid JSON: key must be a string
     --> a.json:3:3
      |
    3 |   b
      |   ^
    ");
}

#[test]
fn json_with_a_repeated_key() {
    let files = [
        ("main.ts", "import a from './a.json';\nexport function main() {}"),
        ("a.json", "{\n  \"a\": 1,\n  \"b\": [{ \"c\": 1, \"c\": 2 }]\n}\n"),
    ];
    assert_snapshot!(render(&call(&files, &[]).unwrap_err()), @r#"
    syntax
    error: the key `c` is written twice
     --> a.json:3:19
      |
    3 |   "b": [{ "c": 1, "c": 2 }]
      |                   ^^^
    "#);
}

#[test]
fn an_invalid_regular_expression_is_found_among_others() {
    for literal in ["/a(b/", "/a[x--y]b/u", "/a/ii", r"/a\_b/u", r"/[/]\/é(/"] {
        let before = "export function main(a: number) { /* é /(/ */ const b = `/(`, c = a / 2 / 1, d = 'é/(', e = /x/, f = ";
        let text = format!(
            "// a /(/ b\n{before}{literal}; return [b, c, d, e, f, a / 2]; }}\nexport const g = /y/;\n"
        );
        let shown = error_text(&text);
        let place = format!(" --> main.ts:2:{}\n", before.chars().count() + 1);
        assert!(shown.contains(&place), "{literal}: {place}{shown}");
    }
}

#[test]
fn unsupported_enum() {
    assert_snapshot!(error_text("export enum Color { Red }\nexport function main() {}\n"), @r#"
    syntax
    error: cannot strip an enum
     --> main.ts:1:1
      |
    1 | export enum Color { Red }
      | ^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: an enum is not only a type, so it cannot be removed: write `const Color = { Red: "red" } as const`
    "#);
}

#[test]
fn missing_import() {
    assert_snapshot!(error_text("// import \"./gone\"\nimport { a } from \"./gone\";\nexport function main() { return a }\n"), @r#"
    import
    error: no file found for `./gone`
     --> main.ts:2:19
      |
    2 | import { a } from "./gone";
      |                   ^^^^^^^^
      |
      = help: looked for gone.ts, gone.js, gone.mjs, gone.json, gone/index.ts, gone/index.js
    "#);
}

#[test]
fn package_import() {
    assert_snapshot!(error_text("import fs from 'fs';\nexport function main() {}\n"), @"
    import
    error: `fs` is not a relative path
     --> main.ts:1:16
      |
    1 | import fs from 'fs';
      |                ^^^^
      |
      = help: only files can be imported, with a path that starts with `./` or `../`; packages are not supported
    ");
}

#[test]
fn type_imported_as_value() {
    let files = [
        ("main.ts", "import { Order } from './types';\nexport function main(o: Order) {}\n"),
        ("types.ts", "export interface Order { id: string }\n"),
    ];
    assert_snapshot!(render(&call(&files, &[]).unwrap_err()), @"
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
fn missing_export() {
    assert_snapshot!(error_text("export function mian() {}\nexport const other = 1;\n"), @"
    missing_export
    error: main.ts exports no function `main`
     |
     = help: did you mean `mian`?
    ");
    assert_snapshot!(error_text("export const main = 1;\n"), @"
    not_a_function
    error: `main` in main.ts is not a function
    ");
}

#[test]
fn thrown_error() {
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
    assert_snapshot!(error_text(text), @"
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
fn error_thrown_in_another_file() {
    let files = [
        ("main.ts", "import { a } from './lib/a';\nexport const main = () => a({ b: 1 } as any);\n"),
        (
            "lib/a.ts",
            "export const a = (x: { b: number }): never => { throw new TypeError(`no ${x.b}`); };\n",
        ),
    ];
    assert_snapshot!(render(&call(&files, &[]).unwrap_err()), @"
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
fn thrown_non_error_value() {
    assert_snapshot!(error_text("export function main() { throw { code: 7 }; }\n"), @r#"
    thrown
    error: thrown: {"code":7}
     |
     = help: throw an `Error`, which records its location
    "#);
    assert_snapshot!(error_text("export function main() { throw null; }\n"), @"
    thrown
    error: thrown: null
     |
     = help: throw an `Error`, which records its location
    ");
}

#[test]
fn unhandled_rejection() {
    let text = "export async function main() {\n  Promise.reject(new Error(\"lost\"));\n  return 1;\n}\n";
    assert_snapshot!(error_text(text), @r#"
    thrown
    error: a promise that is not awaited was rejected: Error: lost
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
fn promise_that_never_settles() {
    assert_snapshot!(error_text("export const main = () => new Promise(() => {});\n"), @"
    never_settles
    error: the script awaits a promise that can no longer settle
     |
     = help: a promise is settled by its `resolve` or `reject`; there are no timers
    ");
}

#[test]
fn module_that_never_settles() {
    let main = "export const main = async () => { await 1; };\n";
    assert_snapshot!(error_text(&format!("const a: number = 1;\nawait new Promise(() => {{}});\n{main}")), @"
    never_settles
    error: the script awaits a promise that can no longer settle
     --> main.ts:2:1
      |
    2 | await new Promise(() => {});
      | ^^^^^
      |
      = help: a promise is settled by its `resolve` or `reject`; there are no timers
    ");
    assert_snapshot!(error_text(&format!("await 1;\nawait new Promise(() => {{}});\n{main}")), @"
    never_settles
    error: the script awaits a promise that can no longer settle
     --> main.ts:1:1
      |
    1 | await 1;
      | ^^^^^
      |
      = help: it is this `await`, or another one outside of functions
    ");
}

#[test]
fn module_that_loops_forever() {
    // The engine knows the lines of calls, and where a function or a file begins.
    for (before, within, place) in
        [("let i = 0;", "i = Math.max(i, 1);", "main.ts:3:"), ("let i = 0;", "i += 1;", "main.ts:1:1")]
    {
        let text = format!("{before}\nfor (;;) {{\n  {within}\n}}\nexport const main = () => 1;\n");
        let folder = Folder::with_files(&[("main.ts", &text)]);
        let module = folder.scripts.find("main").unwrap();
        let error = folder.with(short(), ScriptHost::new()).call(&module, "main", &[]).unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::TimeLimit);
        let found = error.place.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(found.starts_with(place), "{text}: {found}");
    }
}

#[test]
fn modules_of_node() {
    assert_snapshot!(error_text("const fs = require('fs');\nexport const main = () => 1;\n"), @r#"
    thrown
    error: ReferenceError: require is not defined
     --> main.ts:1:12
      |
    1 | const fs = require('fs');
      |            ^^^^^^^
      |
      = help: modules are imported and exported: `import { name } from "./file"`, `export const name = …`
    "#);
}

#[test]
fn value_not_representable_as_json() {
    assert_snapshot!(error_text("export const main = () => () => 1;\n"), @"
    not_serialisable
    error: the result of `main` cannot be converted to JSON: it is a function or a symbol
     |
     = help: return plain data from `main` in main.ts
    ");
    assert_snapshot!(error_text("export function main() { const a: any = {}; a.a = a; return a; }\n"), @"
    not_serialisable
    error: the result of `main` cannot be converted to JSON: TypeError: circular reference
     |
     = help: return plain data from `main` in main.ts
    ");
    assert_snapshot!(error_text("export const main = () => 10n;\n"), @"
    not_serialisable
    error: the result of `main` cannot be converted to JSON: TypeError: BigInt are forbidden in JSON.stringify
     |
     = help: return plain data from `main` in main.ts
    ");
    assert_snapshot!(error_text("export const main = () => 0 / 0;\n"), @"
    not_serialisable
    error: the result of `main` cannot be converted to JSON: it is not a finite number
     |
     = help: return plain data from `main` in main.ts
    ");
    for function in ["function* main() {}", "async function* main() {}"] {
        let error = error_text(&format!("export {function}\n"));
        assert!(error.contains("a generator function runs nothing when it is called"), "{error}");
    }
    assert_eq!(main_of("export const main = () => {};").unwrap(), serde_json::Value::Null);
}

#[test]
fn time_limit() {
    let folder = Folder::with_files(&[("main.ts", "export function main(): void {\n  while (true) {}\n}\n")]);
    let module = folder.scripts.find("main").unwrap();
    let error = folder.with(short(), ScriptHost::new()).call(&module, "main", &[]).unwrap_err();
    assert_snapshot!(render(&error), @"
    time_limit
    error: the script did not finish within 200 ms
     --> main.ts:1:1
      |
    1 | export function main(): void {
      | ^^^^^^
    ");
}

#[test]
fn memory_limit() {
    let text = "export function main() {\n  const all: string[][] = [];\n  for (;;) all.push(new Array(1000).fill('x'));\n}\n";
    let folder = Folder::with_files(&[("main.ts", text)]);
    let module = folder.scripts.find("main").unwrap();
    let limits = ScriptLimits { memory: 8 * 1024 * 1024, ..ScriptLimits::default() };
    let error = folder.with(limits, ScriptHost::new()).call(&module, "main", &[]).unwrap_err();
    assert_eq!(error.kind, ScriptErrorKind::MemoryLimit);
    assert_snapshot!(render(&error).lines().take(2).collect::<Vec<_>>().join("\n"), @"
    memory_limit
    error: the script needs more than 8 MiB of memory
    ");
}

#[test]
fn stack_limit() {
    assert_snapshot!(error_text("export function main(n: number): number {\n  return 1 + main(n);\n}\n"), @"
    stack_limit
    error: the script exceeds the maximum call depth
     --> main.ts:2:19
      |
    2 |   return 1 + main(n);
      |                   ^
    ");
}

#[test]
fn module_throws_while_loading() {
    assert_snapshot!(error_text("const a = undefined as any;\na.b.c;\nexport function main() {}\n"), @"
    thrown
    error: TypeError: cannot read property 'b' of undefined
     --> main.ts:2:1
      |
    2 | a.b.c;
      | ^
    ");
}

#[test]
fn call_of_what_is_no_function_is_named() {
    let message = |body: &str| {
        let shown =
            error_text(&format!("const user: any = {{}};\nexport function main() {{\n  {body}\n}}\n"));
        shown.lines().nth(1).unwrap_or_default().to_string()
    };
    assert_eq!(message("user.say(1);"), "error: TypeError: `user.say` is not a function");
    assert_eq!(message("return user.says(2);"), "error: TypeError: `user.says` is not a function");
    // The location is not that of a name.
    assert_eq!(message("[1].map(user.says);"), "error: TypeError: not a function");
    assert_eq!(message("user[0]();"), "error: TypeError: not a function");
    assert_eq!(message("[].other();"), "error: TypeError: not a function");
}
