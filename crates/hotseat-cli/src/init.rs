//! `hotseat init`: creates a project file and a first suite.

use std::fs;
use std::path::Path;

use hotseat_engine::typescript::TYPE_DEFINITIONS;

use crate::args::{InitArgs, SchemaKind};
use crate::context::CliContext;
use crate::exit::ExitStatus;
use crate::schema;

const PROJECT_TEMPLATE: &str = include_str!("../templates/hotseat.yaml");
const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:8000/";
const SUITE_TEMPLATE: &str = include_str!("../templates/first.test.yaml");
const TYPESCRIPT_TEMPLATE: &str = include_str!("../templates/first_test.ts");
const TSCONFIG_TEMPLATE: &str = include_str!("../templates/tsconfig.json");

/// Creates the files that do not exist yet.
pub fn run(args: &InitArgs, context: &CliContext) -> ExitStatus {
    let endpoint = args.endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT).trim();
    if !(endpoint.starts_with("http://") || endpoint.starts_with("https://"))
        || endpoint.contains(['"', '\n'])
    {
        context.report_error(format!("--endpoint {endpoint}: expected an HTTP URL"));
        return ExitStatus::Usage;
    }
    let folder = context.folder.join(&args.folder);
    let mut files = vec![("hotseat.yaml", PROJECT_TEMPLATE.replace("{{endpoint}}", endpoint))];
    match args.typescript {
        true => files.extend([
            ("tests/first_test.ts", TYPESCRIPT_TEMPLATE.to_string()),
            ("tsconfig.json", TSCONFIG_TEMPLATE.to_string()),
            (".hotseat/hotseat.d.ts", TYPE_DEFINITIONS.to_string()),
        ]),
        false => files.push(("tests/first.test.yaml", SUITE_TEMPLATE.to_string())),
    }
    files.extend([
        (".hotseat/suite.schema.json", schema::schema_text(SchemaKind::Suite) + "\n"),
        (".hotseat/project.schema.json", schema::schema_text(SchemaKind::Project) + "\n"),
    ]);
    let mut done = Vec::new();
    for (name, text) in &files {
        // Schemas and types are generated and always updated; files that users edit are never overwritten.
        let ours = name.starts_with(".hotseat/");
        match write_file(&folder.join(name), text, ours) {
            Ok(true) => done.push(format!("wrote  {name}")),
            Ok(false) => done.push(format!("kept   {name} (already exists)")),
            Err(error) => {
                context.report_error(format!("cannot write {}: {error}", folder.join(name).display()));
                return ExitStatus::RunError;
            }
        }
    }
    let run = if args.folder == Path::new(".") {
        String::new()
    } else {
        format!("cd {} && ", args.folder.display())
    };
    let done = done.join("\n");
    context.print(|out| {
        let first =
            if args.endpoint.is_none() { " set the address of your agent in hotseat.yaml, then" } else { "" };
        writeln!(out, "{done}\n\nNext:{first}\n  {run}hotseat test")
    })
}

/// Writes a file unless it exists and `replace` is false. Returns true if it was written.
fn write_file(path: &Path, text: &str, replace: bool) -> std::io::Result<bool> {
    if path.exists() && !replace {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    Ok(true)
}
