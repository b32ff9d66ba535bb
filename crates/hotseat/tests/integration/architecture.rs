//! Checks the dependencies between the folders of this crate against ARCHITECTURE.md.

use std::fs;
use std::path::Path;

/// Allowed dependencies of each folder.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("checks", &[]),
    ("scripts", &["targets"]),
    ("session", &["cases", "checks", "process", "roles", "scripts", "targets"]),
    ("roles", &["checks", "scripts", "session", "targets"]),
    ("targets", &["process", "recording", "session"]),
    ("cases", &["checks", "session", "statistics"]),
    ("config", &["cases", "checks", "process", "recording", "scripts", "session", "targets"]),
    ("import", &["cases", "recording", "session"]),
    ("process", &[]),
    ("recording", &["session"]),
    (
        "run",
        &["cases", "checks", "config", "roles", "scripts", "session", "statistics", "targets", "typescript"],
    ),
    ("statistics", &[]),
    ("compare", &["checks", "report", "statistics", "store"]),
    ("typescript", &["cases", "checks", "roles", "scripts", "session", "targets"]),
    ("report", &["checks", "recording", "run", "session"]),
    (
        "dsl",
        &[
            "cases", "checks", "config", "evaluate", "expect", "graph", "report", "run", "session", "store",
            "targets",
        ],
    ),
    ("store", &["cases", "recording", "run", "session"]),
    ("view", &["report", "store"]),
];

/// File in which a Rust test program reads arguments and environment.
const ENVIRONMENT_MODULE: &str = "src/dsl/harness/context.rs";

fn collect_dependencies(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_dependencies(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("crate::") {
            let name: String =
                text[at + 7..].chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            found.push(name);
        }
    }
}

#[test]
fn module_dependencies_match_architecture() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders: Vec<String> = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    for folder in &folders {
        assert!(
            ALLOWED_DEPENDENCIES.iter().any(|(name, _)| name == folder),
            "the map does not name the folder {folder}"
        );
    }
    for (folder, allowed) in ALLOWED_DEPENDENCIES {
        let mut found = Vec::new();
        collect_dependencies(&root.join(folder), &mut found);
        for name in found {
            let own = name == *folder;
            assert!(
                own || allowed.contains(&name.as_str()),
                "{folder} uses {name}, which the map does not allow"
            );
        }
    }
}

#[test]
fn only_main_functions_print_read_environment_and_exit() {
    let others =
        ["document", "model", "runtime", "script", "trace"].map(|name| format!("../hotseat-{name}/src"));
    for root in others.iter().map(String::as_str).chain(["src"]) {
        let mut stack = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(root)];
        while let Some(path) = stack.pop() {
            if path.is_dir() {
                stack.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
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
