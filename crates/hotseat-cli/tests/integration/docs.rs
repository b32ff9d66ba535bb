//! Runs every command and file of README.md and docs/.
//!
//! Shell blocks: `cargo run -- …` and `hotseat …` run the binary. A comment after a command marks exceptions:
//! `# fails` expects exit code 1, `# needs an agent` only validates the command, `# runs until it is stopped`
//! starts it and sends Ctrl-C. Console blocks: a command and its output, ignoring durations; a line of three
//! dots matches any lines. YAML blocks: those starting with `name:` or `suite:` are suites, those starting
//! with `target:` or `agents:` are project files. Blocks of JSON lines are suites. A page with a `shell`
//! block that starts with a file name is a complete example and is run. Blocks with a file name after `yaml`,
//! `json` or `jsonl` form one folder per page: the commands of the page run in it, its agents are loaded, and
//! each YAML file must be used by one of them. The commands of the tutorial run without the files that it shows later.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use hotseat_testkit::TestWorkspace;

const HOTSEAT: &str = env!("CARGO_BIN_EXE_hotseat");

/// Commands that are not run, with the reason.
const SKIPPED_COMMANDS: [(&str, &str); 4] = [
    ("cargo test --workspace", "it is what runs this test"),
    ("cargo install --path crates/hotseat-cli", "it builds the binary once more, optimised"),
    ("hotseat test [PATH…]", "it shows the form of a command"),
    ("hotseat test -n assistant -i - --save first.jsonl", "it waits for somebody who types"),
];

/// Words of a command; double quotes group words.
fn split_words(command: &str) -> Vec<&str> {
    let parts = command.split('"').enumerate();
    parts
        .flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().collect::<Vec<_>>(),
            _ => vec![part],
        })
        .collect()
}

struct Block {
    /// Language after the fence, and the rest of that line.
    language: String,
    text: String,
    place: String,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn code_blocks(file: &Path) -> Vec<Block> {
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

fn documentation_pages() -> Vec<PathBuf> {
    let folders = ["docs", "docs/adapters"].map(|folder| fs::read_dir(repository().join(folder)).unwrap());
    let docs = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    pages.push(repository().join("README.md"));
    pages.sort();
    pages
}

#[test]
fn documented_yaml_is_valid() {
    let mut suites = 0;
    let of_pages = documentation_pages().into_iter().flat_map(|page| {
        let blocks = code_blocks(&page);
        // Cases that name roles are shown on a page that defines these.
        let says = |block: &&Block| {
            let helpers = ["\njudge:", "\nsimulator:"].iter().any(|key| block.text.contains(key));
            block.language == "yaml" && block.text.starts_with("target:") && helpers
        };
        let project = blocks.iter().find(says).map(|block| block.text.clone());
        blocks.into_iter().map(move |block| (block, page.clone(), project.clone()))
    });
    for (block, page, project) in of_pages.filter(|(block, ..)| block.language == "yaml") {
        let workspace = TestWorkspace::new();
        let project = project.unwrap_or_else(|| "target:\n  endpoint: http://127.0.0.1:9/\n".to_string());
        if ["name:", "suite:"].iter().any(|key| block.text.starts_with(key)) {
            suites += 1;
            for (name, data) in named_files(&page).iter().filter(|(name, _)| name.ends_with(".json")) {
                workspace.file(name, &data.text);
            }
            workspace.file("hotseat.yaml", &project);
            workspace.file("a.test.yaml", &block.text);
        } else {
            let is_project = block.text.starts_with("target:") || block.text.starts_with("agents:");
            assert!(is_project, "{}: neither a suite nor a project file", block.place);
            workspace.file("hotseat.yaml", &block.text);
            // Recordings must exist before they are replayed.
            workspace.file("tests/recordings/a.json", "{}");
            workspace.file("a.test.yaml", "name: a\nturns: [{ user: hello }]\n");
        }
        let run = workspace.command(HOTSEAT, &["test", "--dry-run"]).env("AGENT_TOKEN", "secret").run();
        assert_eq!(run.code, 0, "{}:\n{run}", block.place);
    }
    assert!(suites > 5, "the documentation has lost its suites");
}

#[test]
fn documented_json_is_valid() {
    let mut suites = 0;
    for page in documentation_pages() {
        let blocks = code_blocks(&page);
        // Cases that name roles are shown on a page that defines these.
        let is_project = |block: &&Block| block.language == "yaml" && block.text.starts_with("target:");
        let project = blocks.iter().find(is_project).map(|block| block.text.as_str());
        for block in blocks.iter().filter(|block| block.language == "jsonl") {
            suites += 1;
            let workspace = TestWorkspace::new();
            workspace.file("hotseat.yaml", project.unwrap_or("target:\n  endpoint: http://127.0.0.1:9/\n"));
            workspace.file("a.test.jsonl", &block.text);
            let run = workspace.command(HOTSEAT, &["test", "--dry-run"]).env("AGENT_TOKEN", "secret").run();
            assert_eq!(run.code, 0, "{}:\n{run}", block.place);
        }
    }
    assert!(suites >= 3, "the documentation has lost its case files");
}

#[test]
fn complete_documented_examples_pass() {
    let mut examples = 0;
    for page in documentation_pages() {
        let blocks = code_blocks(&page);
        let Some(script) = blocks.iter().find(|block| block.language == "shell") else { continue };
        let first = |beginning: &str| {
            let block =
                blocks.iter().find(|block| block.language == "yaml" && block.text.starts_with(beginning));
            &block.unwrap_or_else(|| panic!("{}: nothing begins with {beginning}", script.place)).text
        };
        let workspace = TestWorkspace::new();
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

/// Languages of blocks that may have a file name.
const NAMED_FILE_LANGUAGES: [&str; 5] = ["yaml", "json", "jsonl", "python", "typescript"];

impl Block {
    fn file_name(&self) -> Option<&str> {
        let (language, name) = self.language.split_once(' ')?;
        NAMED_FILE_LANGUAGES.contains(&language).then_some(name)
    }
}

/// Named files of a page.
fn named_files(page: &Path) -> Vec<(String, Block)> {
    let named = |block: Block| Some((block.file_name()?.to_string(), block));
    code_blocks(page).into_iter().filter_map(named).collect()
}

/// A folder with the files of a page. A separate folder per agent marks it as the target.
fn page_workspace(page: &Path) -> TestWorkspace {
    let workspace = TestWorkspace::new();
    for (name, block) in named_files(page) {
        workspace.file(&name, &block.text);
    }
    workspace
}

/// Loads the agents of a page; returns their number, or the error.
fn load_page_agents(page: &Path, workspace: &TestWorkspace) -> Result<usize, String> {
    let mut agents = 0;
    for (name, block) in named_files(page).iter().filter(|(name, _)| name.ends_with("agent.yaml")) {
        agents += 1;
        let folder = format!("check-{agents}");
        let project = format!("target: {{ type: embedded, agent: ../{name} }}\n");
        workspace.file(&format!("{folder}/hotseat.yaml"), &project);
        workspace.file(&format!("{folder}/a.test.yaml"), "name: a\nturns: [{ user: hello }]\n");
        let config = format!("{folder}/hotseat.yaml");
        let run = workspace.command(HOTSEAT, &["test", "--dry-run", "--config", &config, &folder]).run();
        if run.code != 0 {
            return Err(format!("{}:\n{run}", block.place));
        }
    }
    Ok(agents)
}

#[test]
fn documented_agents_are_valid() {
    let mut agents = 0;
    for page in documentation_pages() {
        let workspace = page_workspace(&page);
        agents += load_page_agents(&page, &workspace).unwrap_or_else(|said| panic!("{said}"));
        for (name, block) in named_files(&page) {
            if name.ends_with("hotseat.yaml") || name.ends_with(".test.yaml") || !name.ends_with(".yaml") {
                continue;
            }
            workspace.file(&name, "[");
            assert!(load_page_agents(&page, &workspace).is_err(), "{}: no agent needs {name}", block.place);
            workspace.file(&name, &block.text);
        }
    }
    assert!(agents > 2, "the documentation has lost its agents");
}

/// Held while a test runs commands in this repository: they save runs there, and `last` means the last one of all.
static SAVED_RUNS: Mutex<()> = Mutex::new(());

#[test]
fn documented_commands_run() {
    let _lock = SAVED_RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    // The pages start this agent with `cargo run`; building it takes longer than an agent has to answer.
    let build = ["build", "--quiet", "--locked", "-p", "hotseat-testkit", "--bin", "checkout-agent"];
    let built = Command::new(env!("CARGO")).args(build).current_dir(repository()).status().unwrap();
    assert!(built.success(), "the example agent compiles");
    let workspace = TestWorkspace::new();
    let mut ran = Vec::new();
    // README.md comes first: later commands use its files.
    let mut pages = documentation_pages();
    pages.sort_by_key(|page| !page.ends_with("README.md"));
    let blocks = pages.iter().flat_map(|page| {
        // Commands of a page with named files run in the folder of these files. The tutorial is followed step by step: its
        // files are written where it shows them.
        let own = (!named_files(page).is_empty()).then(|| {
            let is_stepwise = page.ends_with("tutorial.md");
            std::rc::Rc::new(if is_stepwise { TestWorkspace::new() } else { page_workspace(page) })
        });
        let blocks = code_blocks(page).into_iter();
        blocks.map(move |block| (block, own.clone()))
    });
    for (block, own) in blocks {
        let workspace = own.as_deref().unwrap_or(&workspace);
        if let Some(name) = block.file_name() {
            workspace.file(name, &block.text);
        }
        if block.language != "sh" {
            continue;
        }
        for line in block.text.lines().filter(|line| !line.trim().is_empty()) {
            let (command, comment) = line.split_once(" # ").unwrap_or((line, ""));
            if SKIPPED_COMMANDS.iter().any(|(name, _)| *name == command) {
                continue;
            }
            // Piped input is written as `echo`.
            let piped = command.strip_prefix("echo '").and_then(|piped| piped.split_once("' | "));
            let (stdin, said) = piped.map_or((None, command), |(stdin, said)| (Some(stdin), said));
            let words: Vec<&str> = split_words(said);
            let (folder, mut arguments) = match words.as_slice() {
                ["cargo", "run", "--", arguments @ ..] => (repository(), arguments.to_vec()),
                ["hotseat", arguments @ ..] => (workspace.root().to_path_buf(), arguments.to_vec()),
                _ => panic!("{}: unknown command {command}", block.place),
            };
            if comment == "needs an agent" {
                // Without a conversation there is no report.
                while let Some(at) = arguments.iter().position(|argument| *argument == "-o") {
                    arguments.drain(at..at + 2);
                }
                arguments.push("--dry-run");
            }
            if comment == "runs until it is stopped" {
                let mut running =
                    workspace.command(HOTSEAT, &arguments).cwd(&folder.display().to_string()).spawn();
                running.wait_for_stdout("Ctrl-C");
                running.interrupt();
                let run = running.wait();
                assert_eq!(run.code, 0, "{}: {command}\n{run}", block.place);
                ran.push(command.to_string());
                continue;
            }
            // The example starts its agent with cargo, which needs the complete environment.
            let mut run = Command::new(HOTSEAT);
            run.args(&arguments).current_dir(folder).stdin(Stdio::piped());
            let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let mut input = run.stdin.take().unwrap();
            // A program that does not read its input may close it.
            let _ = input.write_all(stdin.unwrap_or_default().as_bytes());
            drop(input);
            let run = run.wait_with_output().unwrap();
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
fn documented_output_matches() {
    let _lock = SAVED_RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut shown = 0;
    for block in documentation_pages()
        .iter()
        .flat_map(|page| code_blocks(page))
        .filter(|block| block.language == "console")
    {
        shown += 1;
        let (command, expected) = block.text.split_once('\n').unwrap();
        let Some(arguments) = command.strip_prefix("$ cargo run -- ") else {
            panic!("{}: unknown command {command}", block.place)
        };
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let folder = repository().display().to_string();
        let run = TestWorkspace::new().command(HOTSEAT, &arguments).cwd(&folder).env("COLUMNS", "80").run();
        let redacted = |text: &str| hotseat_testkit::redact(text, Path::new("/nowhere"));
        let printed = redacted(&run.stdout);
        let mut rest = printed.as_str();
        for part in redacted(expected).split("...\n").filter(|part| !part.is_empty()) {
            let at =
                rest.find(part).unwrap_or_else(|| panic!("{}: {part}\nis not printed\n{run}", block.place));
            rest = &rest[at + part.len()..];
        }
        let is_whole = expected.ends_with("...\n") || rest.is_empty();
        assert!(is_whole, "{}: more is printed\n{run}", block.place);
    }
    assert!(shown >= 2, "the documentation contains no output examples");
}

#[test]
fn schemas_and_reference_pages_are_current() {
    for (arguments, file) in [
        (&["schema", "suite"][..], "schema/suite.schema.json"),
        (&["schema", "project"][..], "schema/project.schema.json"),
        (&["schema", "agent"][..], "schema/agent.schema.json"),
        (&["schema", "task"][..], "schema/task.schema.json"),
        (&["schema", "workflow"][..], "schema/workflow.schema.json"),
        (&["schema", "script"][..], "schema/script.schema.json"),
        (&["schema", "recording"][..], "schema/recording.schema.json"),
        (&["schema", "recording", "--markdown"][..], "docs/reference/recording.md"),
        (&["schema", "suite", "--markdown"][..], "docs/reference/suite.md"),
        (&["schema", "project", "--markdown"][..], "docs/reference/project.md"),
        (&["schema", "agent", "--markdown"][..], "docs/reference/agent.md"),
        (&["schema", "script", "--markdown"][..], "docs/reference/script.md"),
    ] {
        let made = TestWorkspace::new().run(HOTSEAT, arguments);
        let committed = fs::read_to_string(repository().join(file)).unwrap_or_default();
        let command = arguments.join(" ");
        assert!(
            made.stdout == committed,
            "{file} is not what `hotseat {command}` prints: run scripts/generate"
        );
    }
}
