//! `hotseat schema`: what may be written, for editors and for the documentation.

use hotseat::cases::shape::CASE;
use hotseat::config::shape::PROJECT;
use hotseat::document::{json_schema, reference_markdown};

use crate::args::{SchemaArgs, SchemaOf};
use crate::exit::Exit;
use crate::world::World;

/// Prints a schema or a reference page.
pub fn run(args: SchemaArgs, world: &World) -> Exit {
    let text = if args.markdown { page(args.of) } else { text(args.of) + "\n" };
    world.print(|out| out.write_all(text.as_bytes()))
}

/// The JSON Schema of a kind of file.
pub fn text(of: SchemaOf) -> String {
    let (shape, title, id) = match of {
        SchemaOf::Suite => (&CASE, "Hotseat test case", "urn:hotseat:suite"),
        SchemaOf::Project => (&PROJECT, "Hotseat project file", "urn:hotseat:project"),
    };
    serde_json::to_string_pretty(&json_schema(shape, title, id)).unwrap_or_default()
}

fn page(of: SchemaOf) -> String {
    let (title, shape) = match of {
        SchemaOf::Suite => ("Reference: case files", &CASE),
        SchemaOf::Project => ("Reference: the project file", &PROJECT),
    };
    format!(
        "# {title}\n\nMade by `hotseat schema --markdown`; the same source validates files.\n\n{}",
        reference_markdown(shape)
    )
}
