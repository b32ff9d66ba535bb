//! Checks the layers of ARCHITECTURE.md: imports point down, between crates, and between the folders and files of a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates from the bottom up. A crate may use crates of earlier levels only.
const CRATE_LEVELS: &[&[&str]] = &[
    &[
        "hotseat-trace",
        "hotseat-document",
        "hotseat-statistics",
        "hotseat-http",
        "hotseat-serve",
        "hotseat-schema",
    ],
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

/// Imports of the modules of a crate: the modules that each one names. A module is its path from `src`.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Returns the module of a source file. The module of a folder is its `mod.rs`, that of the crate is empty.
fn module_of(relative: &Path) -> String {
    let path = relative.with_extension("").to_string_lossy().replace('\\', "/");
    match path.rsplit_once('/') {
        Some((folder, "mod")) => folder.to_string(),
        None if path == "lib" || path == "main" => String::new(),
        _ => path,
    }
}

/// Returns the imports between the files of a crate. Re-exports and tests do not count.
fn imports_between_files(source: &Path) -> Imports {
    let files = source_files(source).into_iter().map(|file| {
        let text = fs::read_to_string(&file).unwrap();
        (module_of(file.strip_prefix(source).unwrap()), text)
    });
    let files: BTreeMap<String, String> = files.collect();
    let mut imports = Imports::new();
    for (module, text) in &files {
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let paths = named_paths(code).into_iter();
        let used = paths.filter_map(|path| resolve(module, &path, |name| files.contains_key(name)));
        imports.insert(module.clone(), used.filter(|used| used != module).collect());
    }
    imports
}

/// Returns the paths in source code that may name modules of its crate.
fn named_paths(code: &str) -> Vec<Vec<String>> {
    let code: String = code
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .fold(String::from("\n"), |code, line| code + line + "\n");
    let mut paths = Vec::new();
    for statement in code.split_inclusive(';') {
        let start = statement.trim_start();
        let is_reexport =
            start.starts_with("pub use ") || start.starts_with("pub(") && start.contains(") use ");
        match start.strip_prefix("use ") {
            _ if is_reexport => {}
            Some(tree) => drop(read_tree(tree, &[], &mut paths)),
            None => {
                let mut rest = statement;
                while let Some(at) = ["crate::", "super::"].iter().filter_map(|root| rest.find(root)).min() {
                    let is_root =
                        !rest[..at].ends_with(|c: char| c == '$' || c == '_' || c.is_alphanumeric());
                    rest = &rest[at..];
                    rest = if is_root { read_tree(rest, &[], &mut paths) } else { &rest["crate::".len()..] };
                }
            }
        }
    }
    paths
}

/// Reads a path, or a tree of paths as in `use`, and returns the rest of the text.
fn read_tree<'a>(text: &'a str, prefix: &[String], paths: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = read_tree(rest, prefix, paths).trim_start();
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => return rest.strip_prefix('}').unwrap_or(rest),
            }
        }
    }
    let end = text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let path = [prefix, &[name.to_string()]].concat();
    match rest.strip_prefix("::") {
        Some(rest) if !name.is_empty() => read_tree(rest, &path, paths),
        _ => {
            paths.push(path);
            let rest = rest.trim_start_matches('*');
            rest.strip_prefix(" as ")
                .map_or(rest, |rest| rest.trim_start_matches(|c: char| c == '_' || c.is_alphanumeric()))
        }
    }
}

/// Returns the module of the crate that a path in `module` names.
fn resolve(module: &str, path: &[String], exists: impl Fn(&str) -> bool) -> Option<String> {
    let own: Vec<&str> = module.split('/').filter(|part| !part.is_empty()).collect();
    let supers = path.iter().take_while(|part| *part == "super").count();
    let (base, rest) = match path.first().map(String::as_str) {
        Some("crate") => (0, &path[1..]),
        Some("self") => (own.len(), &path[1..]),
        _ => (own.len().checked_sub(supers)?, &path[supers..]),
    };
    let full: Vec<&str> = own[..base].iter().copied().chain(rest.iter().map(String::as_str)).collect();
    let is_external = base == own.len() && path.first().is_none_or(|first| first != "self");
    let shortest = base + usize::from(is_external);
    (shortest..=full.len()).rev().map(|parts| full[..parts].join("/")).find(|name| exists(name))
}

/// Returns the imports between the folders at the root of a crate.
fn imports_between_folders(files: &Imports) -> Imports {
    let folder = |module: &String| module.split('/').next().unwrap_or_default().to_string();
    let mut imports = Imports::new();
    for (module, used) in files.iter().filter(|(module, _)| !module.is_empty()) {
        let used = used.iter().map(folder).filter(|used| !used.is_empty() && *used != folder(module));
        imports.entry(folder(module)).or_default().extend(used);
    }
    imports
}

/// Returns a cycle of imports through `module`, if there is one.
fn find_cycle(imports: &Imports, module: &str) -> Option<Vec<String>> {
    let mut paths = vec![vec![module.to_string()]];
    let mut visited = BTreeSet::new();
    while let Some(path) = paths.pop() {
        for used in imports.get(path.last()?).into_iter().flatten() {
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
fn imports_between_files_and_folders_have_no_cycle() {
    for name in CRATE_LEVELS.iter().copied().flatten().chain([&TEST_CRATE]) {
        let files = imports_between_files(&crates().join(name).join("src"));
        for imports in [imports_between_folders(&files), files] {
            for module in imports.keys() {
                if let Some(cycle) = find_cycle(&imports, module) {
                    panic!("{name}: these modules use each other: {}", cycle.join(" -> "));
                }
            }
        }
    }
}

#[test]
fn a_cycle_is_found() {
    let edge = |from: &str, to: &str| (from.to_string(), BTreeSet::from([to.to_string()]));
    let mut imports = Imports::from([edge("a", "b"), edge("b", "c")]);
    assert_eq!(find_cycle(&imports, "a"), None);
    imports.extend([edge("c", "a")]);
    assert_eq!(find_cycle(&imports, "a").unwrap(), ["a", "b", "c", "a"]);
}

#[test]
fn imports_are_read_from_source_code() {
    let code = "use crate::{first::{self, Inner as I}, second};\nuse child::Item; use std::fmt;\n\
                pub use own::Public; // super::comment\nlet x = super::super::third::X + $crate::none;";
    let known = ["", "first", "second", "third", "a", "a/b", "a/b/child", "a/b/own", "comment", "none"];
    let exists = |name: &str| known.contains(&name);
    let used = named_paths(code).into_iter().filter_map(|path| resolve("a/b", &path, exists));
    let used: BTreeSet<String> = used.collect();
    assert_eq!(used, ["first", "second", "third", "a/b/child"].map(str::to_string).into());
    assert_eq!(module_of(Path::new("a/mod.rs")), "a");
    assert_eq!(module_of(Path::new("lib.rs")), "");
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

/// File whose keys need no decoder: agents receive the mapping as a whole.
const FORWARDED_SHAPES: &str = "hotseat-engine/src/config/context.rs";

/// Returns the keys that shapes declare for decoders of their own, and all texts that occur elsewhere in the code. A key
/// that is declared with its type is decoded by its declaration.
fn declared_and_named(code: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut declared, mut named) = (Vec::new(), Vec::new());
    for line in code.lines().map(str::trim_start).filter(|line| !line.starts_with("//")) {
        let texts = line.split('"').skip(1).step_by(2);
        match ["required \"", "optional \""].iter().any(|start| line.contains(start)) {
            true => declared.extend(texts.take(1)),
            false => named.extend(texts),
        }
    }
    (declared, named)
}

#[test]
fn each_declared_key_is_read() {
    let read = |path: PathBuf| (fs::read_to_string(&path).unwrap(), path);
    let sources = source_files(&crates())
        .into_iter()
        .filter(|path| path.components().any(|part| part.as_os_str() == "src"));
    let sources: Vec<(String, PathBuf)> = sources.map(read).collect();
    let (mut keys, mut named) = (Vec::new(), BTreeSet::new());
    for (text, path) in &sources {
        let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
        let (declared, others) = declared_and_named(code);
        named.extend(others);
        keys.extend(declared.into_iter().filter(|_| !path.ends_with(FORWARDED_SHAPES)));
    }
    assert!(keys.len() > 300, "the declarations are found");
    keys.retain(|key| !named.contains(key));
    assert!(keys.is_empty(), "no decoder reads these keys, so documents may contain them in vain: {keys:?}");
}

#[test]
fn keys_are_found_in_declarations() {
    let code = "/// optional \"doc\"\noptional \"cwd\" = Kind::NonEmptyText, shown \".\",\nconst C: required \"type\" = KIND,\n    map.text(\"cwd\")";
    assert_eq!(declared_and_named(code), (vec!["cwd", "type"], vec!["cwd"]));
}
