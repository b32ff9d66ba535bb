//! `hotseat init`: creates a project file and a first suite.

use std::fs;
use std::path::Path;

use hotseat_document::{Diagnostic, is_http_url};
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
    let mut files = vec![("hotseat.yaml", PROJECT_TEMPLATE.replace("{{endpoint}}", endpoint))];
    match args.typescript {
        true => files.extend([
            ("tests/first_test.ts", TYPESCRIPT_TEMPLATE.to_string()),
            ("tsconfig.json", TSCONFIG_TEMPLATE.to_string()),
        ]),
        false => files.push(("tests/first.test.yaml", SUITE_TEMPLATE.to_string())),
    }
    let has_typescript = args.typescript || folder.join(TYPES_FILE).is_file();
    files.extend(editor_files(has_typescript));
    let mut done = Vec::new();
    for (name, text) in &files {
        // Schemas and types are generated and always updated; files that users edit are never overwritten.
        let ours = name.starts_with(EDITOR_FOLDER);
        match write_file(&folder.join(name), text, ours) {
            Ok(WriteOutcome::Written) => done.push(format!("wrote  {name}")),
            Ok(WriteOutcome::Same) => done.push(format!("kept   {name} (up to date)")),
            Ok(WriteOutcome::Kept) => {
                done.push(format!("kept   {name} ({})", reason_kept(name, args, &folder)))
            }
            Err(error) => {
                let message = format!("cannot write {}: {error}", folder.join(name).display());
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
        let is_new = !done.contains("kept   hotseat.yaml");
        let first = if args.endpoint.is_none() && is_new {
            " set the address of your agent in hotseat.yaml, then"
        } else {
            ""
        };
        writeln!(out, "{done}\n\nNext:{first}\n  {run}hotseat test")
    }))
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
fn reason_kept(name: &str, args: &InitArgs, folder: &Path) -> String {
    let text = hotseat_document::read_text_file(&folder.join(name)).unwrap_or_default();
    match (name, &args.endpoint) {
        ("hotseat.yaml", Some(endpoint)) if !text.contains(endpoint.trim()) => {
            format!("already exists; set the address to {} yourself", endpoint.trim())
        }
        ("tsconfig.json", _) if !text.contains(TYPES_FILE) => {
            format!("already exists; add \"{TYPES_FILE}\" to its `include` yourself")
        }
        _ if text.contains(FORMER_EDITOR_FOLDER) => {
            format!("already exists; replace {FORMER_EDITOR_FOLDER} by {EDITOR_FOLDER} yourself")
        }
        _ => "already exists".to_string(),
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
