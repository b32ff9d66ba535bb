//! `hotseat init`: creates a project file and a first suite, or updates the editor files of a project.

use std::fs;
use std::path::{Path, PathBuf};

use hotseat_document::{Diagnostic, is_http_url};
use hotseat_engine::config::{Project, display_path};
use hotseat_engine::typescript::TYPE_DEFINITIONS;
use hotseat_report::reporters::shell_word;

use crate::args::{InitArgs, SchemaKind};
use crate::context::CliContext;
use crate::exit::{CommandResult, ExitStatus};
use crate::schema;

const PROJECT_TEMPLATE: &str = include_str!("../templates/hotseat.yaml");
const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:8000/";
const SUITE_TEMPLATE: &str = include_str!("../templates/first.test.yaml");
const TYPESCRIPT_TEMPLATE: &str = include_str!("../templates/first_test.ts");
/// Folder of the files for editors.
const EDITOR_FOLDER: &str = "hotseat-editor/";
/// Folder that earlier versions used for them.
const FORMER_EDITOR_FOLDER: &str = ".hotseat/";
const TYPES_FILE: &str = "hotseat-editor/hotseat.d.ts";
const TSCONFIG_TEMPLATE: &str = include_str!("../templates/tsconfig.json");

/// Creates the files that do not exist yet.
pub fn run(args: &InitArgs, context: &CliContext) -> CommandResult {
    let endpoint = args.endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT).trim();
    if !is_http_url(endpoint) || endpoint.contains(['"', '\\']) {
        let message = format!("--endpoint {endpoint}: expected an HTTP URL");
        return Err(context.reject([Diagnostic::new(message).help("for example `http://127.0.0.1:8000/`")]));
    }
    let folder = context.folder.join(&args.folder);
    if folder.symlink_metadata().is_ok() && !folder.is_dir() {
        let message = format!("{} is not a folder", args.folder.display());
        let help = "name a folder, or a path at which there is nothing";
        return Err(context.reject([Diagnostic::new(message).help(help)]));
    }
    // A new folder that is named gets a project of its own; others may be part of a project.
    let is_empty = folder.read_dir().map_or(true, |mut entries| entries.next().is_none());
    let is_new = is_empty && args.folder != Path::new(".");
    let governing = if is_new { None } else { Project::find(&folder) };
    let root = governing.as_deref().and_then(Path::parent).unwrap_or(&folder);
    let mut files = Vec::new();
    if governing.is_none() {
        files.push(("hotseat.yaml", PROJECT_TEMPLATE.replace("{{endpoint}}", endpoint)));
        files.push(match args.typescript {
            true => ("tests/first_test.ts", TYPESCRIPT_TEMPLATE.to_string()),
            false => ("tests/first.test.yaml", SUITE_TEMPLATE.to_string()),
        });
    }
    if args.typescript {
        files.push(("tsconfig.json", TSCONFIG_TEMPLATE.to_string()));
    }
    files.extend(editor_files(args.typescript || has_type_definitions(root)));
    let mut done: Vec<String> =
        governing.iter().map(|file| kept_project_file(file, &folder, args, context)).collect();
    for (name, text) in &files {
        // Schemas and types are generated and always updated; files that users edit are never overwritten.
        let ours = name.starts_with(EDITOR_FOLDER);
        let path = root.join(name);
        let shown = if root == folder { name.to_string() } else { display_path(&path, &context.folder) };
        match write_file(&path, text, ours) {
            Ok(WriteOutcome::Written) => done.push(format!("wrote  {shown}")),
            Ok(WriteOutcome::Same) => done.push(format!("kept   {shown} (up to date)")),
            Ok(WriteOutcome::Kept) => done.push(format!("kept   {shown} ({})", reason_kept(&path))),
            Err(error) => {
                let message = format!("cannot write {}: {error}", path.display());
                return Err(context.fail(ExitStatus::RunError, message));
            }
        }
    }
    let run = if args.folder == Path::new(".") {
        String::new()
    } else {
        format!("cd {} && ", shell_word(&args.folder.to_string_lossy()))
    };
    let done = done.join("\n");
    Ok(context.print(|out| {
        let first = if args.endpoint.is_none() && governing.is_none() {
            " set the address of your agent in hotseat.yaml, then"
        } else {
            ""
        };
        writeln!(out, "{done}\n\nNext:{first}\n  {run}hotseat test")
    }))
}

/// Says which project file governs the folder already, and what the user can change in it.
fn kept_project_file(file: &Path, folder: &Path, args: &InitArgs, context: &CliContext) -> String {
    let text = hotseat_document::read_text_file(file).unwrap_or_default();
    let is_above = file.parent() != Some(folder);
    let (shown, mut reason) = match is_above {
        false => (file.file_name().map(PathBuf::from).unwrap_or_default(), "already exists".to_string()),
        true => (
            PathBuf::from(display_path(file, &context.folder)),
            "the project file of this folder; name a new folder to create a project in it".to_string(),
        ),
    };
    if let Some(endpoint) =
        args.endpoint.as_deref().map(str::trim).filter(|endpoint| !text.contains(endpoint))
    {
        reason += &format!("; set the address to {endpoint} yourself");
    }
    if text.contains(FORMER_EDITOR_FOLDER) {
        reason += &format!("; replace {FORMER_EDITOR_FOLDER} by {EDITOR_FOLDER} yourself");
    }
    format!("kept   {} ({reason})", shown.display())
}

/// True if the editor files of a project include type definitions: they are there, or its `tsconfig.json` names them.
pub fn has_type_definitions(root: &Path) -> bool {
    let names_them = |text: String| text.contains(TYPES_FILE);
    root.join(TYPES_FILE).is_file()
        || hotseat_document::read_text_file(&root.join("tsconfig.json")).is_ok_and(names_them)
}

/// Files for editors. They are committed with the suites, so that a clone has them.
pub fn editor_files(has_typescript: bool) -> Vec<(&'static str, String)> {
    let mut files = vec![
        ("hotseat-editor/suite.schema.json", schema::schema_text(SchemaKind::Suite) + "\n"),
        ("hotseat-editor/project.schema.json", schema::schema_text(SchemaKind::Project) + "\n"),
    ];
    if has_typescript {
        files.push((TYPES_FILE, TYPE_DEFINITIONS.to_string()));
    }
    files
}

/// Reason why an existing file was not changed, and what the user can add to it.
fn reason_kept(path: &Path) -> String {
    let text = hotseat_document::read_text_file(path).unwrap_or_default();
    if path.ends_with("tsconfig.json") && !text.contains(TYPES_FILE) {
        format!("already exists; add \"{TYPES_FILE}\" to its `include` yourself")
    } else {
        "already exists".to_string()
    }
}

/// Outcome of writing a file.
enum WriteOutcome {
    Written,
    /// It had this text already.
    Same,
    /// It exists and was left as it is.
    Kept,
}

/// Writes a file unless it exists and `replace` is false.
fn write_file(path: &Path, text: &str, replace: bool) -> std::io::Result<WriteOutcome> {
    if path.exists() {
        match replace {
            false => return Ok(WriteOutcome::Kept),
            true if hotseat_document::read_file(path).is_ok_and(|found| found == text.as_bytes()) => {
                return Ok(WriteOutcome::Same);
            }
            true => {}
        }
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    Ok(WriteOutcome::Written)
}
