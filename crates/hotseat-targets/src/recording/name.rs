//! File names of recordings. Ids and paths may contain any character, so a name consists of their safe
//! characters and a digest of all of them.

use std::path::{Component, Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// Number of characters taken from a name, for readability.
const MAX_NAME_CHARS: usize = 40;
/// Number of digest bytes in a file name.
const DIGEST_BYTES: usize = 10;

/// Returns the file name of the recording of a case. It is the same on all systems, including
/// case-insensitive ones.
pub fn file_name(suite: Option<&str>, case: &str) -> String {
    let mut told = Vec::new();
    // Length prefixes keep different pairs distinct.
    for part in [suite, Some(case)] {
        match part {
            None => told.extend(u64::MAX.to_be_bytes()),
            Some(text) => {
                told.extend((text.len() as u64).to_be_bytes());
                told.extend(text.as_bytes());
            }
        }
    }
    let hash: String = Sha256::digest(&told)[..DIGEST_BYTES].iter().map(|b| format!("{b:02x}")).collect();
    let stem = suite.map(|suite| {
        let file = suite.rsplit('/').next().unwrap_or(suite);
        sanitize(file.split('.').next().unwrap_or(file))
    });
    let parts = [stem.unwrap_or_default(), sanitize(case), hash];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("--") + ".json"
}

/// Keeps letters, digits and single hyphens.
fn sanitize(text: &str) -> String {
    let mut name = String::new();
    for character in text.chars().take(4 * MAX_NAME_CHARS) {
        match character.to_ascii_lowercase() {
            character @ ('a'..='z' | '0'..='9' | '_') => name.push(character),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
        if name.len() >= MAX_NAME_CHARS {
            break;
        }
    }
    name.trim_end_matches('-').to_string()
}

/// Returns the name of a suite in recordings: its path from the project folder, with `/` on every system,
/// independent of the working folder.
pub fn suite_name(project: &Path, suite: &Path) -> String {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let (project, suite) = (real(project), real(suite));
    let common = project.components().zip(suite.components()).take_while(|(a, b)| a == b).count();
    let up = project.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(suite.components().skip(common)).collect();
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn hostile_names_get_safe_distinct_files() {
        let long = "x".repeat(5000);
        let names = [
            "a",
            "A",
            "a/b",
            "a b",
            "../../etc/passwd",
            "",
            ".",
            "..",
            "con",
            "a\0b",
            "\n",
            "é",
            "e\u{301}",
            "日本語",
            &long,
            "%2e%2e",
            "a\\b",
        ];
        let mut seen = HashSet::new();
        for suite in names.iter().map(|name| Some(*name)).chain([None]) {
            for case in names {
                let name = file_name(suite, case);
                assert!(
                    name.len() < 130 && name.ends_with(".json") && !name.ends_with(".test.json"),
                    "{name}"
                );
                assert!(
                    name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c)),
                    "{name}"
                );
                assert!(!name.starts_with(['.', '-']), "{name}");
                assert!(seen.insert(name), "{suite:?} {case:?}");
            }
        }
        assert_ne!(file_name(Some("a"), "bc"), file_name(Some("ab"), "c"));
    }

    #[test]
    fn names_are_recognizable() {
        let name = file_name(Some("tests/checkout.test.yaml"), "Pays once!");
        assert!(name.starts_with("checkout--pays-once--"), "{name}");
    }

    #[test]
    fn suites_are_named_by_project_path() {
        let name = |project: &str, suite: &str| suite_name(Path::new(project), Path::new(suite));
        assert_eq!(name("/none/p", "/none/p/tests/a.yaml"), "tests/a.yaml");
        assert_eq!(name("/none/p/q", "/none/a.yaml"), "../../a.yaml");
    }
}
