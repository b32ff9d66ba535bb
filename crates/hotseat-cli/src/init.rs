//! `hotseat init`: a project file and a first suite that a newcomer understands.

use std::fs;
use std::path::Path;

use hotseat::typescript::TYPES;

use crate::args::{InitArgs, SchemaOf};
use crate::exit::Exit;
use crate::schema;
use crate::world::World;

const PROJECT: &str = include_str!("../templates/hotseat.yaml");
const ENDPOINT: &str = "http://127.0.0.1:8000/";
const SUITE: &str = include_str!("../templates/first.test.yaml");
const TESTS: &str = include_str!("../templates/first_test.ts");
const TSCONFIG: &str = include_str!("../templates/tsconfig.json");

/// Writes the files that are not there yet.
pub fn run(args: &InitArgs, world: &World) -> Exit {
    let endpoint = args.endpoint.as_deref().unwrap_or(ENDPOINT).trim();
    if !(endpoint.starts_with("http://") || endpoint.starts_with("https://"))
        || endpoint.contains(['"', '\n'])
    {
        world.complain_of(format!("--endpoint {endpoint}: an address of HTTP is needed"));
        return Exit::Usage;
    }
    let folder = world.folder.join(&args.folder);
    let mut files = vec![("hotseat.yaml", PROJECT.replace("{{endpoint}}", endpoint))];
    match args.typescript {
        true => files.extend([
            ("tests/first_test.ts", TESTS.to_string()),
            ("tsconfig.json", TSCONFIG.to_string()),
            (".hotseat/hotseat.d.ts", TYPES.to_string()),
        ]),
        false => files.push(("tests/first.test.yaml", SUITE.to_string())),
    }
    files.extend([
        (".hotseat/suite.schema.json", schema::text(SchemaOf::Suite) + "\n"),
        (".hotseat/project.schema.json", schema::text(SchemaOf::Project) + "\n"),
    ]);
    let mut done = Vec::new();
    for (name, text) in &files {
        // Schemas and types are ours to bring up to date; what a person may have changed is left alone.
        let ours = name.starts_with(".hotseat/");
        match write(&folder.join(name), text, ours) {
            Ok(true) => done.push(format!("wrote  {name}")),
            Ok(false) => done.push(format!("kept   {name} (it is there already)")),
            Err(error) => {
                world.complain_of(format!("cannot write {}: {error}", folder.join(name).display()));
                return Exit::Broken;
            }
        }
    }
    let run = if args.folder == Path::new(".") {
        String::new()
    } else {
        format!("cd {} && ", args.folder.display())
    };
    let done = done.join("\n");
    world.print(|out| {
        let first =
            if args.endpoint.is_none() { " put your agent's address into hotseat.yaml, then" } else { "" };
        writeln!(out, "{done}\n\nNext:{first}\n  {run}hotseat test")
    })
}

/// Writes a file; one that is there is left alone unless `replace`. Says whether it was written.
fn write(path: &Path, text: &str, replace: bool) -> std::io::Result<bool> {
    if path.exists() && !replace {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    Ok(true)
}
