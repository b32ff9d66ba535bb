//! Every command and file in README.md and docs/ is run here.
//!
//! Shell blocks: `cargo run -- …` and `hotseat …` run the binary. A comment behind a command says what is
//! special: `# fails` expects exit 1, `# needs an agent` checks the command without contacting anybody.
//! YAML blocks: those that begin with `name:` are suites, those that begin with `target:` or `agents:` are project
//! files. Blocks of JSON lines are suites. A page with a `shell` block that begins with the name of a file is a complete
//! example: what it shows is run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hotseat_testkit::Workspace;

const HOTSEAT: &str = env!("CARGO_BIN_EXE_hotseat");

/// Commands that are not run here, and why.
const NOT_RUN: [(&str, &str); 3] = [
    ("cargo test --workspace", "it is what runs this test"),
    ("cargo install --path crates/hotseat-cli", "it builds the binary once more, optimised"),
    ("hotseat test [PATH…]", "it shows the form of a command"),
];

struct Block {
    language: String,
    text: String,
    place: String,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn blocks(file: &Path) -> Vec<Block> {
    let name = file.strip_prefix(repository()).unwrap().display().to_string();
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in fs::read_to_string(file).unwrap().lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(language), false) => {
                let place = format!("{name}:{}", number + 1);
                blocks.push(Block { language: language.to_string(), text: String::new(), place });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    blocks
}

fn pages() -> Vec<PathBuf> {
    let folders = ["docs", "docs/adapters"].map(|folder| fs::read_dir(repository().join(folder)).unwrap());
    let docs = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    pages.push(repository().join("README.md"));
    pages.sort();
    pages
}

#[test]
fn the_yaml_in_the_documentation_is_valid() {
    let mut suites = 0;
    for block in pages().iter().flat_map(|page| blocks(page)).filter(|block| block.language == "yaml") {
        let workspace = Workspace::new();
        let project = "target:\n  endpoint: http://127.0.0.1:9/\n";
        if block.text.starts_with("name:") {
            suites += 1;
            workspace.file("hotseat.yaml", project);
            workspace.file("a.test.yaml", &block.text);
        } else {
            let is_project = block.text.starts_with("target:") || block.text.starts_with("agents:");
            assert!(is_project, "{}: neither a suite nor a project file", block.place);
            workspace.file("hotseat.yaml", &block.text);
            workspace.file("a.test.yaml", "name: a\nturns: [{ user: hello }]\n");
        }
        let run = workspace.command(HOTSEAT, &["test", "--dry-run"]).env("AGENT_TOKEN", "secret").run();
        assert_eq!(run.code, 0, "{}:\n{run}", block.place);
    }
    assert!(suites > 5, "the documentation has lost its suites");
}

#[test]
fn the_json_in_the_documentation_is_valid() {
    let mut suites = 0;
    for block in pages().iter().flat_map(|page| blocks(page)).filter(|block| block.language == "jsonl") {
        suites += 1;
        let workspace = Workspace::new();
        workspace.file("hotseat.yaml", "target:\n  endpoint: http://127.0.0.1:9/\n");
        workspace.file("a.test.jsonl", &block.text);
        let run = workspace.command(HOTSEAT, &["test", "--dry-run"]).run();
        assert_eq!(run.code, 0, "{}:\n{run}", block.place);
    }
    assert!(suites >= 3, "the documentation has lost its case files");
}

#[test]
fn the_complete_examples_in_the_documentation_pass() {
    let mut examples = 0;
    for page in pages() {
        let blocks = blocks(&page);
        let Some(script) = blocks.iter().find(|block| block.language == "shell") else { continue };
        let first = |beginning: &str| {
            let block =
                blocks.iter().find(|block| block.language == "yaml" && block.text.starts_with(beginning));
            &block.unwrap_or_else(|| panic!("{}: nothing begins with {beginning}", script.place)).text
        };
        let workspace = Workspace::new();
        let name = script.text.lines().next().and_then(|line| line.strip_prefix("# "));
        workspace.file(name.expect("the block names its file"), &script.text);
        workspace.file("hotseat.yaml", first("target:"));
        workspace.file("a.test.yaml", first("name:"));
        let run = workspace.run(HOTSEAT, &["test"]);
        assert_eq!(run.code, 0, "{}:\n{run}", script.place);
        examples += 1;
    }
    assert!(examples > 0, "the documentation has lost its complete examples");
}

#[test]
fn the_commands_in_the_documentation_run() {
    let workspace = Workspace::new();
    let mut ran = Vec::new();
    // The README comes first: what it makes, later commands use.
    let mut pages = pages();
    pages.sort_by_key(|page| !page.ends_with("README.md"));
    for block in pages.iter().flat_map(|page| blocks(page)).filter(|block| block.language == "sh") {
        for line in block.text.lines().filter(|line| !line.trim().is_empty()) {
            let (command, comment) = line.split_once(" # ").unwrap_or((line, ""));
            if NOT_RUN.iter().any(|(name, _)| *name == command) {
                continue;
            }
            let words: Vec<&str> = command.split_whitespace().collect();
            let (folder, mut arguments) = match words.as_slice() {
                ["cargo", "run", "--", arguments @ ..] => (repository(), arguments.to_vec()),
                ["hotseat", arguments @ ..] => (workspace.root().to_path_buf(), arguments.to_vec()),
                _ => panic!("{}: nobody knows how to run {command}", block.place),
            };
            if comment == "needs an agent" {
                arguments.push("--dry-run");
            }
            // The example starts its agent by cargo, which wants the whole environment.
            let run = Command::new(HOTSEAT).args(&arguments).current_dir(folder).output().unwrap();
            let expected = if comment == "fails" { 1 } else { 0 };
            let shown =
                String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
            assert_eq!(run.status.code(), Some(expected), "{}: {command}\n{shown}", block.place);
            ran.push(command.to_string());
        }
    }
    assert!(ran.iter().any(|command| command.contains("examples/checkout")), "{ran:?}");
}

#[test]
fn the_schemas_and_reference_pages_are_up_to_date() {
    for (arguments, file) in [
        (&["schema", "suite"][..], "schema/suite.schema.json"),
        (&["schema", "project"][..], "schema/project.schema.json"),
        (&["schema", "suite", "--markdown"][..], "docs/reference/suite.md"),
        (&["schema", "project", "--markdown"][..], "docs/reference/project.md"),
    ] {
        let made = Workspace::new().run(HOTSEAT, arguments);
        let committed = fs::read_to_string(repository().join(file)).unwrap_or_default();
        let command = arguments.join(" ");
        assert!(
            made.stdout == committed,
            "{file} is not what `hotseat {command}` prints: run scripts/generate"
        );
    }
}
