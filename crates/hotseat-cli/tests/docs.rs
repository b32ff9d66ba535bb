//! Every command and file in README.md and docs/ is run here.
//!
//! Shell blocks: `cargo run -- …` and `hotseat …` run the binary. A comment behind a command says what is
//! special: `# fails` expects exit 1, `# needs an agent` checks the command without contacting anybody, `# runs until it
//! is stopped` starts it and presses Ctrl-C.
//! Console blocks: a command and what it prints, but for durations; a line of three dots stands for any others.
//! YAML blocks: those that begin with `name:` or `suite:` are suites, those that begin with `target:` or `agents:` are project
//! files. Blocks of JSON lines are suites. A page with a `shell` block that begins with the name of a file is a complete
//! example: what it shows is run. Blocks with the name of a file behind `yaml`, `json` or `jsonl` are the files of one
//! folder for each page: commands of the page run in it, its agents are loaded, and every file of YAML must be needed by
//! one of them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hotseat_testkit::Workspace;

const HOTSEAT: &str = env!("CARGO_BIN_EXE_hotseat");

/// Commands that are not run here, and why.
const NOT_RUN: [(&str, &str); 4] = [
    ("cargo test --workspace", "it is what runs this test"),
    ("cargo install --path crates/hotseat-cli", "it builds the binary once more, optimised"),
    ("hotseat test [PATH…]", "it shows the form of a command"),
    ("hotseat test -n assistant -i - --save first.jsonl", "it waits for somebody who types"),
];

/// The words of a command; what stands between double quotes is one.
fn words(command: &str) -> Vec<&str> {
    let parts = command.split('"').enumerate();
    parts
        .flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().collect::<Vec<_>>(),
            _ => vec![part],
        })
        .collect()
}

struct Block {
    /// The word behind the fence, and what follows it.
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
    let of_pages = pages().into_iter().flat_map(|page| {
        let blocks = blocks(&page);
        // Cases that name helpers stand on a page that says who these are.
        let says = |block: &&Block| {
            let helpers = ["\njudge:", "\nsimulator:"].iter().any(|key| block.text.contains(key));
            block.language == "yaml" && block.text.starts_with("target:") && helpers
        };
        let project = blocks.iter().find(says).map(|block| block.text.clone());
        blocks.into_iter().map(move |block| (block, page.clone(), project.clone()))
    });
    for (block, page, project) in of_pages.filter(|(block, ..)| block.language == "yaml") {
        let workspace = Workspace::new();
        let project = project.unwrap_or_else(|| "target:\n  endpoint: http://127.0.0.1:9/\n".to_string());
        if ["name:", "suite:"].iter().any(|key| block.text.starts_with(key)) {
            suites += 1;
            for (name, data) in named(&page).iter().filter(|(name, _)| name.ends_with(".json")) {
                workspace.file(name, &data.text);
            }
            workspace.file("hotseat.yaml", &project);
            workspace.file("a.test.yaml", &block.text);
        } else {
            let is_project = block.text.starts_with("target:") || block.text.starts_with("agents:");
            assert!(is_project, "{}: neither a suite nor a project file", block.place);
            workspace.file("hotseat.yaml", &block.text);
            // What recordings are served from has to be there.
            workspace.file("tests/recordings/a.json", "{}");
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
    for page in pages() {
        let blocks = blocks(&page);
        // Cases that name helpers stand on a page that says who these are.
        let is_project = |block: &&Block| block.language == "yaml" && block.text.starts_with("target:");
        let project = blocks.iter().find(is_project).map(|block| block.text.as_str());
        for block in blocks.iter().filter(|block| block.language == "jsonl") {
            suites += 1;
            let workspace = Workspace::new();
            workspace.file("hotseat.yaml", project.unwrap_or("target:\n  endpoint: http://127.0.0.1:9/\n"));
            workspace.file("a.test.jsonl", &block.text);
            let run = workspace.command(HOTSEAT, &["test", "--dry-run"]).env("AGENT_TOKEN", "secret").run();
            assert_eq!(run.code, 0, "{}:\n{run}", block.place);
        }
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

/// The languages of blocks that may have the name of a file.
const NAMED: [&str; 4] = ["yaml", "json", "jsonl", "typescript"];

/// The files that a page shows by their names.
fn named(page: &Path) -> Vec<(String, Block)> {
    let named = |block: Block| {
        let (_, name) = block.language.split_once(' ').filter(|(language, _)| NAMED.contains(language))?;
        let name = name.to_string();
        Some((name, block))
    };
    blocks(page).into_iter().filter_map(named).collect()
}

/// A folder with the files of a page. A folder of its own for each agent says that it is tested.
fn folder_of(page: &Path) -> Workspace {
    let workspace = Workspace::new();
    for (name, block) in named(page) {
        workspace.file(&name, &block.text);
    }
    workspace
}

/// What is said of the agents of a page.
fn agents_load(page: &Path, workspace: &Workspace) -> Result<usize, String> {
    let mut agents = 0;
    for (name, block) in named(page).iter().filter(|(name, _)| name.ends_with("agent.yaml")) {
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
fn the_agents_in_the_documentation_are_valid() {
    let mut agents = 0;
    for page in pages() {
        let workspace = folder_of(&page);
        agents += agents_load(&page, &workspace).unwrap_or_else(|said| panic!("{said}"));
        for (name, block) in named(&page) {
            if name.ends_with("hotseat.yaml") || name.ends_with(".test.yaml") || !name.ends_with(".yaml") {
                continue;
            }
            workspace.file(&name, "[");
            assert!(agents_load(&page, &workspace).is_err(), "{}: no agent needs {name}", block.place);
            workspace.file(&name, &block.text);
        }
    }
    assert!(agents > 2, "the documentation has lost its agents");
}

#[test]
fn the_commands_in_the_documentation_run() {
    let workspace = Workspace::new();
    let mut ran = Vec::new();
    // The README comes first: what it makes, later commands use.
    let mut pages = pages();
    pages.sort_by_key(|page| !page.ends_with("README.md"));
    let commands = pages.iter().flat_map(|page| {
        // Commands of a page with files run among them.
        let own = (!named(page).is_empty()).then(|| std::rc::Rc::new(folder_of(page)));
        let commands = blocks(page).into_iter().filter(|block| block.language == "sh");
        commands.map(move |block| (block, own.clone()))
    });
    for (block, own) in commands {
        let workspace = own.as_deref().unwrap_or(&workspace);
        for line in block.text.lines().filter(|line| !line.trim().is_empty()) {
            let (command, comment) = line.split_once(" # ").unwrap_or((line, ""));
            if NOT_RUN.iter().any(|(name, _)| *name == command) {
                continue;
            }
            // What is piped in is said with `echo`.
            let piped = command.strip_prefix("echo '").and_then(|piped| piped.split_once("' | "));
            let (stdin, said) = piped.map_or((None, command), |(stdin, said)| (Some(stdin), said));
            let words: Vec<&str> = words(said);
            let (folder, mut arguments) = match words.as_slice() {
                ["cargo", "run", "--", arguments @ ..] => (repository(), arguments.to_vec()),
                ["hotseat", arguments @ ..] => (workspace.root().to_path_buf(), arguments.to_vec()),
                _ => panic!("{}: nobody knows how to run {command}", block.place),
            };
            if comment == "needs an agent" {
                // There is nothing to report when nobody was spoken to.
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
            // The example starts its agent by cargo, which wants the whole environment.
            let mut run = Command::new(HOTSEAT);
            run.args(&arguments).current_dir(folder).stdin(Stdio::piped());
            let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let mut input = run.stdin.take().unwrap();
            // Who does not read its input closes it.
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
fn what_the_documentation_shows_is_what_is_printed() {
    let mut shown = 0;
    for block in pages().iter().flat_map(|page| blocks(page)).filter(|block| block.language == "console") {
        shown += 1;
        let (command, expected) = block.text.split_once('\n').unwrap();
        let Some(arguments) = command.strip_prefix("$ cargo run -- ") else {
            panic!("{}: nobody knows how to run {command}", block.place)
        };
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let folder = repository().display().to_string();
        let run = Workspace::new().command(HOTSEAT, &arguments).cwd(&folder).env("COLUMNS", "80").run();
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
    assert!(shown >= 2, "the documentation no longer shows what is printed");
}

#[test]
fn the_schemas_and_reference_pages_are_up_to_date() {
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
        let made = Workspace::new().run(HOTSEAT, arguments);
        let committed = fs::read_to_string(repository().join(file)).unwrap_or_default();
        let command = arguments.join(" ");
        assert!(
            made.stdout == committed,
            "{file} is not what `hotseat {command}` prints: run scripts/generate"
        );
    }
}
