//! `hotseat schema`: what may be written, for editors and for the documentation.

use hotseat::cases::shape::CASE;
use hotseat::config::CONTEXT_FILE;
use hotseat::config::shape::PROJECT;
use hotseat::document::{Shape, json_schema, reference_markdown};
use hotseat::model::script::SCRIPT;
use hotseat::recording::RECORDING;
use hotseat::runtime::files::{AGENT, TASK, WORKFLOW};

use crate::args::{SchemaArgs, SchemaOf};
use crate::exit::Exit;
use crate::world::World;

/// Prints a schema or a reference page.
pub fn run(args: SchemaArgs, world: &World) -> Exit {
    match args.markdown {
        true => world.print(|out| out.write_all(page(args.of).as_bytes())),
        false => world.print_json(|out| writeln!(out, "{}", text(args.of))),
    }
}

/// A kind of file.
struct File {
    shape: &'static Shape,
    /// The title of its schema.
    title: &'static str,
    id: &'static str,
    /// The title of its reference page.
    page: &'static str,
}

fn file(of: SchemaOf) -> File {
    match of {
        SchemaOf::Suite => {
            File { shape: &CASE, title: "Hotseat test case", id: "urn:hotseat:suite", page: "case files" }
        }
        SchemaOf::Project => File {
            shape: &PROJECT,
            title: "Hotseat project file",
            id: "urn:hotseat:project",
            page: "the project file",
        },
        SchemaOf::Agent => {
            File { shape: &AGENT, title: "Hotseat agent", id: "urn:hotseat:agent", page: "agent files" }
        }
        SchemaOf::Task => {
            File { shape: &TASK, title: "Hotseat task", id: "urn:hotseat:task", page: "task files" }
        }
        SchemaOf::Workflow => File {
            shape: &WORKFLOW,
            title: "Hotseat workflow",
            id: "urn:hotseat:workflow",
            page: "workflow files",
        },
        SchemaOf::Recording => File {
            shape: &RECORDING,
            title: "Hotseat recording",
            id: "urn:hotseat:recording",
            page: "recordings",
        },
        SchemaOf::Script => File {
            shape: &SCRIPT,
            title: "Hotseat model script",
            id: "urn:hotseat:script",
            page: "model scripts",
        },
        SchemaOf::Ctx => File {
            shape: &CONTEXT_FILE,
            title: "Hotseat context file",
            id: "urn:hotseat:ctx",
            page: "context files",
        },
    }
}

/// The JSON Schema of a kind of file.
pub fn text(of: SchemaOf) -> String {
    let File { shape, title, id, .. } = file(of);
    serde_json::to_string_pretty(&json_schema(shape, title, id)).unwrap_or_default()
}

fn page(of: SchemaOf) -> String {
    let File { shape, page, .. } = file(of);
    format!(
        "# Reference: {page}\n\nMade by `hotseat schema --markdown`; the same source validates files.\n\n{}",
        reference_markdown(shape)
    )
}
