//! Removing types keeps all source positions.

use crate::common::main_of;
use proptest::prelude::*;

/// TypeScript fragments, with and without generated code, on one or several lines.
const PIECES: &[&str] = &[
    "const a@: Map<string, 'é😀' | \"ü\"> = new Map();",
    "interface I@ { a: string;\n  b?: 'ß' }",
    "type T@<K extends string = '人工'> = { [k in K]: number };",
    "function f@<T>(this: any, x: T, y?: 'é'): x is NonNullable<T> { return !!x; }",
    "const s@ = `é ${1 as number} \n ${'ü' as string}`;",
    "/* é 😀 */ const g@ = <T,>(x: T): T => x; // ü",
    "abstract class C@<T> { private x: 'é' = 'é'; declare y: string;\n constructor(readonly_: T) {} abstract z(): void; }",
    "declare function h@(a: 'é'): void;",
    "let u@!: string; const o@ = { a: 1 } satisfies object as unknown;",
    "import type { Z@ } from './nowhere';",
    "\tconst t@ = /é+/u.test('é')\r",
    "export type { T as TT@ } from './nowhere';",
    "function over@(a: string): void;\nfunction over@(a: any) {}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn errors_report_original_position(
        lines in prop::collection::vec(prop::sample::select(PIECES), 0..8),
        before in prop::sample::select(&["", "  ", "const q = 'é😀' as 'é😀'; ", "type Q = 'é😀'; ", "let w: 'é' | '😀' = 'é'; ", "/* 😀 */ "][..]),
        newline in prop::sample::select(&["\n", "\r\n", "\r"][..]),
    ) {
        let mut text = String::new();
        for (number, line) in lines.iter().enumerate() {
            text.push_str(&line.replace('@', &number.to_string()).replace('\n', newline));
            text.push_str(newline);
        }
        text.push_str("export function main(x: any): 'é' {");
        text.push_str(newline);
        text.push_str(before);
        let line = text.replace("\r\n", "\n").matches(['\n', '\r']).count() + 1;
        let column = before.chars().count() + 1;
        text.push_str("missing;");
        text.push_str(newline);
        text.push('}');
        let error = main_of(&text).unwrap_err();
        let place = error.place.clone();
        prop_assert!(place.is_some(), "{} in\n{}", error, text);
        let place = place.unwrap();
        prop_assert_eq!((place.line() as usize, place.column() as usize), (line, column), "{} in\n{}", error, text);
        prop_assert_eq!(place.text(), "missing");
    }

    #[test]
    fn arbitrary_text_never_crashes(text in "[a-z<>(){}=:;,.'\"`$é😀\\n /*|&?!\\[\\]0-9]{0,80}") {
        let _ = main_of(&text);
    }
}

#[test]
fn first_line_has_correct_columns() {
    for text in [
        "export const main = () => missing;",
        "export const é = '😀'; export const main = () => missing;",
        "\u{FEFF}export const main = (x: 'é') => missing;",
    ] {
        let error = main_of(text).unwrap_err();
        assert_eq!(error.place.as_ref().map(|place| place.text()), Some("missing"), "{error}: {text}");
    }
}

#[test]
fn deep_nesting_is_an_error_not_a_crash() {
    for (open, close) in [("(", ")"), ("[", "]"), ("{a:", "}"), ("-", ""), ("f(", ")")] {
        let text = format!("export const main = () => {}1{};", open.repeat(20_000), close.repeat(20_000));
        let _ = main_of(&text).unwrap_err();
    }
}
