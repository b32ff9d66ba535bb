//! Finds out whose tests a script has, without running it.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::folder::ScriptFolder;
use crate::imports::{code_spans, code_words, specifiers};

/// Whose tests a script has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestFileOwner {
    /// It imports `hotseat`, also through other files, or exports a name that starts with `Test`.
    Hotseat,
    /// It imports packages, as tests of other tools do, or exports other names, as scripts of hooks and judges do.
    Others,
    /// It has neither.
    Unknown,
}

/// Test files below a folder. Files that several tests import are read once.
#[derive(Debug)]
pub struct TestFiles {
    folder: ScriptFolder,
    files: HashMap<String, FileFacts>,
}

/// What a file says about itself.
#[derive(Debug, Clone, Default)]
struct FileFacts {
    imports_hotseat: bool,
    imports_packages: bool,
    exports: FileExports,
    /// Keys of the files that it imports.
    imports: Vec<String>,
}

/// What a file exports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct FileExports {
    /// True if it exports a name that starts with `Test`.
    tests: bool,
    /// True if it exports all that another file exports.
    all_of_another: bool,
    /// True if it exports anything.
    any: bool,
}

/// Maximum number of files that are read to find out whose tests a file has.
const MAX_IMPORTED_FILES: usize = 200;

impl TestFiles {
    /// Opens a folder. No file outside of it is read.
    ///
    /// # Errors
    /// If the folder does not exist.
    pub fn open(folder: &Path) -> io::Result<TestFiles> {
        Ok(TestFiles { folder: ScriptFolder::open(folder, folder)?, files: HashMap::new() })
    }

    /// Finds out whose tests a file has. `path` is relative to the folder. A file that cannot be read counts as one of
    /// Hotseat, so that it is reported.
    pub fn owner(&mut self, path: &Path) -> TestFileOwner {
        let Some(path) = path.to_str() else { return TestFileOwner::Hotseat };
        let mut seen = HashSet::new();
        let mut open = vec![(path.to_owned(), true)];
        let (mut has_packages, mut exports_tests, mut exports_any) = (false, false, false);
        while let Some((key, is_exported)) = open.pop() {
            if seen.len() >= MAX_IMPORTED_FILES || !seen.insert(key.clone()) {
                continue;
            }
            let Some(facts) = self.facts(&key) else {
                // What an import lacks is reported when the file runs.
                if key == path {
                    return TestFileOwner::Hotseat;
                }
                continue;
            };
            if facts.imports_hotseat {
                return TestFileOwner::Hotseat;
            }
            has_packages |= facts.imports_packages;
            if is_exported {
                exports_tests |= facts.exports.tests;
                exports_any |= facts.exports.any;
            }
            let is_exported = is_exported && facts.exports.all_of_another;
            open.extend(facts.imports.iter().map(|key| (key.clone(), is_exported)));
        }
        match (exports_tests, has_packages || exports_any) {
            // Also with packages: that they are not supported is an error when the file runs.
            (true, _) => TestFileOwner::Hotseat,
            (false, true) => TestFileOwner::Others,
            (false, false) => TestFileOwner::Unknown,
        }
    }

    /// Returns what a file says about itself. `None` if it cannot be read.
    fn facts(&mut self, key: &str) -> Option<FileFacts> {
        if let Some(known) = self.files.get(key) {
            return Some(known.clone());
        }
        let text = self.folder.read(key).ok()?;
        let mut facts = FileFacts::default();
        for (name, _) in specifiers(&text) {
            match self.folder.import(key, name) {
                _ if name == "hotseat" => facts.imports_hotseat = true,
                Ok(imported) => facts.imports.push(imported),
                Err(_) => facts.imports_packages |= !name.starts_with(['.', '/']),
            }
        }
        facts.exports = find_exports(&text);
        self.files.insert(key.to_owned(), facts.clone());
        Some(facts)
    }
}

/// Words before a list of names with values.
const DECLARATIONS: [&str; 3] = ["const", "let", "var"];

fn find_exports(text: &str) -> FileExports {
    const BEFORE_NAMES: [&str; 9] =
        ["async", "function", "default", "abstract", "class", "const", "let", "var", "*"];
    let mut exports = FileExports::default();
    let mut words = code_words(text).peekable();
    while let Some(word) = words.next() {
        if word != "export" {
            continue;
        }
        exports.any = true;
        exports.all_of_another |= words.peek() == Some(&"*");
        let mut is_list = false;
        while let Some(word) = words.next_if(|word| BEFORE_NAMES.contains(word)) {
            is_list |= DECLARATIONS.contains(&word);
        }
        if words.next_if_eq(&"{").is_some() {
            let mut names = words.by_ref().take_while(|word| *word != "}");
            exports.tests |= names.any(|name| name.starts_with("Test"));
            continue;
        }
        exports.tests |= words.peek().is_some_and(|name| name.starts_with("Test"));
        // Further names follow commas outside of brackets.
        let (mut depth, mut is_name) = (0_usize, false);
        let is_end = |word: &str| matches!(word, ";" | "export") || DECLARATIONS.contains(&word);
        while is_list && let Some(word) = words.next_if(|word| depth > 0 || !is_end(word)) {
            exports.tests |= is_name && word.starts_with("Test");
            is_name = word == "," && depth == 0;
            match word {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
    exports
}

/// Returns the names of functions that are named as tests, and that nothing in the text names again: without an `export`
/// they never run.
pub(crate) fn unused_tests(text: &str) -> Vec<Range<usize>> {
    // A generator has an asterisk before its name.
    let spans: Vec<Range<usize>> = code_spans(text).filter(|span| &text[span.clone()] != "*").collect();
    let words: Vec<&str> = spans.iter().map(|span| &text[span.clone()]).collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for word in words.iter().filter(|word| word.starts_with("Test")) {
        *uses.entry(word).or_default() += 1;
    }
    let is_unused = |&at: &usize| {
        let is_function = match words[..at] {
            [.., "export" | "default", "function"] | [.., "export" | "default", "async", "function"] => false,
            [.., "function"] => true,
            [.., "export", "const" | "let" | "var"] => false,
            [.., "const" | "let" | "var"] => {
                matches!(words[at + 1..], ["=", "async" | "function" | "(", ..])
            }
            _ => false,
        };
        is_function && uses.get(words[at]) == Some(&1)
    };
    (0..words.len()).filter(is_unused).map(|at| spans[at].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_were_not_exported_are_found() {
        for text in [
            "function TestA(t) {}",
            "async function TestA(t) {}",
            "function* TestA(t) {}",
            "const TestA = async (t) => {};",
            "var TestA = function (t) {};",
            "let TestA = (t) => {} // TestA",
        ] {
            let found = unused_tests(text);
            assert_eq!(found.iter().map(|span| &text[span.clone()]).collect::<Vec<_>>(), ["TestA"], "{text}");
        }
        for text in [
            "export function TestA(t) {}",
            "export default async function TestA(t) {}",
            "export const TestA = (t) => {};",
            "function TestA(t) {}\nexport { TestA };",
            "function TestData() {}\nTestData();",
            "const TestData = { a: 1 };",
            "class TestServer {}",
            "import { TestData } from './data';",
            "// function TestA() {}",
        ] {
            assert_eq!(unused_tests(text), [], "{text}");
        }
    }

    #[test]
    fn exported_tests_are_found_in_any_spelling() {
        for text in [
            "export function TestA(t) {}",
            "export function\n  TestA(t) {}",
            "export\tasync function TestA(t) {}",
            "export /* one */ function TestA(t) {}",
            "/** doc */ export const TestA = (t) => {};",
            "const a = 1; export function* TestA(t) {}",
            "export { TestA };",
            "export { inner as TestA, other };",
            "export { other, TestA } from './lib';",
            "export const { TestA } = tests;",
            "export default function TestA() {}",
            "export class TestA {}",
            "export var a = 1, TestA = (t) => {};",
            "export const a = [1, 2], b = f(1, x => { return 2; }), TestA = 3",
        ] {
            assert!(find_exports(text).tests, "{text}");
        }
        for text in [
            "export function helper() { return TestA; }",
            "// export function TestA() {}",
            "const text = 'export function TestA() {}';",
            "export interface TestA {}",
            "export type TestA = string;",
            "export const a = [1, TestA], b = f(1, TestA), c = 2\nconst d = 1, TestB = 2;",
            "export const a = 1; f(b, TestA), TestB;",
            "export { helper };\nfunction TestA() {}",
        ] {
            assert!(!find_exports(text).tests, "{text}");
        }
        // What follows the list is read as well.
        assert!(find_exports("export const a = 1, b = 2\nexport function TestA() {}").tests);
        assert!(find_exports("export * from './lib'").all_of_another);
        assert!(!find_exports("export const a = 1 * 2").all_of_another);
        assert!(!find_exports("// export\nconst text = 'export';").any);
    }
}
