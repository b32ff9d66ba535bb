//! Checks the layers of ARCHITECTURE.md: imports point down, between crates and between the folders of a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates from the bottom up. A crate may use crates of earlier levels only.
const CRATE_LEVELS: &[&[&str]] = &[
    &["hotseat-trace", "hotseat-document", "hotseat-statistics"],
    &["hotseat-script", "hotseat-checks", "hotseat-mcp", "hotseat-model", "hotseat-attributes"],
    &["hotseat-runtime"],
    &["hotseat-targets"],
    &["hotseat-engine"],
    &["hotseat-report"],
    &["hotseat"],
    &["hotseat-cli"],
];

/// Helps the tests of all other crates, and contains nothing of the product.
const TEST_CRATE: &str = "hotseat-testkit";

/// File in which a Rust test program reads arguments and environment.
const ENVIRONMENT_MODULE: &str = "src/dsl/harness/context.rs";

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(source_files(&path)),
            false if path.extension().is_some_and(|extension| extension == "rs") => files.push(path),
            false => {}
        }
    }
    files
}

/// Returns the section of a manifest with this header.
fn manifest_section<'a>(manifest: &'a str, header: &str) -> &'a str {
    let rest = manifest.split_once(&format!("\n[{header}]\n")).map_or("", |(_, rest)| rest);
    rest.split("\n[").next().unwrap_or(rest)
}

#[test]
fn crates_use_crates_below_only() {
    let mut below: BTreeSet<String> = BTreeSet::new();
    let mut known: BTreeSet<String> = BTreeSet::from([TEST_CRATE.to_string()]);
    for level in CRATE_LEVELS {
        for name in *level {
            let manifest = fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
            for line in manifest_section(&manifest, "dependencies").lines() {
                let used = line.split([' ', '=']).next().unwrap_or_default();
                if used.starts_with("hotseat") {
                    assert!(below.contains(used), "{name} uses {used}, which is not below it");
                }
            }
            known.insert((*name).to_string());
        }
        below.extend(level.iter().map(|name| (*name).to_string()));
    }
    for entry in fs::read_dir(crates()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(known.contains(&name), "the levels do not name the crate {name}");
    }
}

/// Returns the modules at the root of a crate that a source text names.
fn root_modules(text: &str) -> BTreeSet<String> {
    let is_name = |c: &char| c.is_ascii_lowercase() || *c == '_';
    let mut found = BTreeSet::new();
    for (at, marker) in text.match_indices("crate::") {
        let rest = &text[at + marker.len()..];
        match rest.strip_prefix('{') {
            None => found.extend(Some(rest.chars().take_while(is_name).collect::<String>())),
            Some(group) => {
                let group = &group[..group.find(';').unwrap_or(group.len())];
                let mut depth = 0;
                for part in group.split_inclusive([',', '{', '}']) {
                    let name: String = part.trim_start().chars().take_while(is_name).collect();
                    if depth == 0 && !name.is_empty() {
                        found.insert(name);
                    }
                    depth += i32::from(part.ends_with('{')) - i32::from(part.ends_with('}'));
                }
            }
        }
    }
    found
}

/// Returns the imports between the modules at the root of a crate, each with a file that contains it.
fn imports_between_modules(source: &Path) -> BTreeMap<String, BTreeMap<String, PathBuf>> {
    let mut imports: BTreeMap<String, BTreeMap<String, PathBuf>> = BTreeMap::new();
    for file in source_files(source) {
        let relative = file.strip_prefix(source).unwrap();
        let first = relative.components().next().unwrap().as_os_str().to_string_lossy();
        let own = first.trim_end_matches(".rs").to_string();
        if own == "lib" || own == "main" {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for used in root_modules(&text) {
            let is_module = source.join(&used).is_dir() || source.join(&used).with_extension("rs").is_file();
            if is_module && used != own {
                imports.entry(own.clone()).or_default().entry(used).or_insert(relative.to_path_buf());
            }
        }
    }
    imports
}

/// Returns a cycle of imports through `module`, if there is one.
fn find_cycle(imports: &BTreeMap<String, BTreeMap<String, PathBuf>>, module: &str) -> Option<Vec<String>> {
    let mut paths = vec![vec![module.to_string()]];
    let mut visited = BTreeSet::new();
    while let Some(path) = paths.pop() {
        for used in imports.get(path.last()?).into_iter().flat_map(BTreeMap::keys) {
            let longer: Vec<String> = path.iter().chain([used]).cloned().collect();
            if used == module {
                return Some(longer);
            }
            if visited.insert(used.clone()) {
                paths.push(longer);
            }
        }
    }
    None
}

#[test]
fn imports_between_folders_have_no_cycle() {
    for name in CRATE_LEVELS.iter().copied().flatten() {
        let imports = imports_between_modules(&crates().join(name).join("src"));
        for module in imports.keys() {
            if let Some(cycle) = find_cycle(&imports, module) {
                let steps = cycle.windows(2).map(|step| {
                    format!("{} uses {} in {}", step[0], step[1], imports[&step[0]][&step[1]].display())
                });
                panic!("{name}: {}", steps.collect::<Vec<_>>().join("; "));
            }
        }
    }
}

#[test]
fn a_cycle_is_found() {
    let edge = |to: &str| BTreeMap::from([(to.to_string(), PathBuf::from("file.rs"))]);
    let mut imports = BTreeMap::from([("a".to_string(), edge("b")), ("b".to_string(), edge("c"))]);
    assert_eq!(find_cycle(&imports, "a"), None);
    imports.insert("c".to_string(), edge("a"));
    assert_eq!(find_cycle(&imports, "a").unwrap(), ["a", "b", "c", "a"]);
    let text = "use crate::{first::{self, Inner}, second};\nlet x = crate::third::X;";
    assert_eq!(root_modules(text), ["first", "second", "third"].map(str::to_string).into());
}

#[test]
fn only_main_functions_print_read_environment_and_exit() {
    // Attributes run in the compiler, whose environment says which package it compiles.
    let exempt = ["hotseat-cli", "hotseat-attributes"];
    for name in CRATE_LEVELS.iter().copied().flatten().filter(|name| !exempt.contains(name)) {
        for path in source_files(&crates().join(name).join("src")) {
            if path.ends_with(ENVIRONMENT_MODULE) {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for word in ["println!", "eprintln!", "process::exit", "env::var", "env::args", "clap::"] {
                assert!(!text.contains(word), "{} contains {word}", path.display());
            }
        }
    }
}
