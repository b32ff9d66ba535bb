//! Holds the arrows between the folders of this crate, as ARCHITECTURE.md draws them.

use std::fs;
use std::path::Path;

/// What each folder may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("checks", &[]),
    ("scripts", &["adapters"]),
    ("session", &["adapters", "cases", "checks", "process", "roles", "scripts"]),
    ("roles", &["adapters", "checks", "scripts", "session"]),
    ("adapters", &["process", "recording", "session"]),
    ("cases", &["checks", "session", "statistics"]),
    ("config", &["adapters", "cases", "checks", "process", "recording", "scripts", "session"]),
    ("import", &["cases", "recording", "session"]),
    ("process", &[]),
    ("recording", &["session"]),
    (
        "run",
        &["adapters", "cases", "checks", "config", "roles", "scripts", "session", "statistics", "typescript"],
    ),
    ("statistics", &[]),
    ("compare", &["checks", "report", "statistics", "store"]),
    ("typescript", &["adapters", "cases", "checks", "roles", "scripts", "session"]),
    ("report", &["checks", "recording", "run", "session"]),
    (
        "dsl",
        &[
            "adapters", "cases", "checks", "config", "evaluate", "expect", "graph", "report", "run",
            "session", "store",
        ],
    ),
    ("store", &["cases", "recording", "run", "session"]),
    ("view", &["report", "store"]),
];

/// Where a test file in Rust, which is a program of its own, reads arguments and environment.
const DOORWAY: &str = "src/dsl/harness/world.rs";

fn uses(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            uses(&path, found);
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
fn the_arrows_between_the_folders_are_those_of_the_map() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders: Vec<String> = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    for folder in &folders {
        assert!(ARROWS.iter().any(|(name, _)| name == folder), "the map does not name the folder {folder}");
    }
    for (folder, allowed) in ARROWS {
        let mut found = Vec::new();
        uses(&root.join(folder), &mut found);
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
fn only_main_functions_print_read_the_environment_and_exit() {
    let others =
        ["document", "model", "runtime", "script", "trace"].map(|name| format!("../hotseat-{name}/src"));
    for root in others.iter().map(String::as_str).chain(["src"]) {
        let mut stack = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(root)];
        while let Some(path) = stack.pop() {
            if path.is_dir() {
                stack.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            if path.ends_with(DOORWAY) {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for word in ["println!", "eprintln!", "process::exit", "env::var", "env::args", "clap::"] {
                assert!(!text.contains(word), "{} contains {word}", path.display());
            }
        }
    }
}
