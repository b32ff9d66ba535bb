//! The scenarios of a file, as far as tests are named after them. What is wrong with one of them is told when its test runs.

use std::fs;
use std::path::Path;

use hotseat_document::{Diagnostics, Node, Source, Value, json, yaml};

/// The names of the tests that the scenarios of a file are, each once: their ids, or else their names.
///
/// # Errors
/// When the file cannot be read, in words.
pub fn names(file: &str) -> Result<Vec<String>, String> {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let path = Path::new(&folder).join(file);
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("cannot read the scenarios of {}: {error}", path.display()))?;
    let scenarios = read(file, text).map_err(|mistakes| mistakes.render(false, 100))?;
    if scenarios.is_empty() {
        return Err(format!("{file} has no scenario"));
    }
    let mut names: Vec<String> = Vec::new();
    for scenario in scenarios {
        let name = name(&scenario);
        let is_free = |name: &String| !names.contains(name);
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let name = std::iter::once(name.clone()).chain(numbered).find(is_free);
        names.extend(name);
    }
    Ok(names)
}

/// The entries of a file: JSON lines, YAML or JSON, by its ending.
fn read(file: &str, text: String) -> Result<Vec<Node>, Diagnostics> {
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
    if matches!(ending, "jsonl" | "ndjson") {
        let values = json::values(file, std::io::Cursor::new(text.into_bytes()), "scenarios");
        return values.map(|value| json::parse(&value?)).collect();
    }
    let source = Source::new(file, text, 1);
    let node = match ending {
        "yaml" | "yml" => yaml::parse(&source)?,
        _ => json::parse(&source)?,
    };
    Ok(match node.value {
        Value::List(entries) => entries,
        _ => Vec::new(),
    })
}

/// The id of a scenario, or else its name, as the name of a function.
fn name(scenario: &Node) -> String {
    let said = ["id", "name"].iter().find_map(|key| match &scenario.get(key)?.value {
        Value::String(text) => Some(text.as_str()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => None,
    });
    let mut name = String::new();
    for character in said.unwrap_or_default().chars() {
        match character.is_ascii_alphanumeric() {
            true => name.push(character.to_ascii_lowercase()),
            false if name.is_empty() || name.ends_with('_') => {}
            false => name.push('_'),
        }
    }
    let name = name.trim_end_matches('_');
    match name.starts_with(|first: char| first.is_ascii_alphabetic())
        && syn::parse_str::<syn::Ident>(name).is_ok()
    {
        true => name.to_string(),
        false => format!("scenario_{name}").trim_end_matches('_').to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<String> {
        read("a.json", text.to_string()).unwrap().iter().map(name).collect()
    }

    #[test]
    fn tests_are_named_after_ids_and_else_after_names() {
        let text =
            r#"[{"id": "Blue Room!", "name": "x"}, {"name": "Für 10 Leute"}, {"id": "7"}, {"id": "fn"}, {}]"#;
        assert_eq!(named(text), ["blue_room", "f_r_10_leute", "scenario_7", "scenario_fn", "scenario"]);
    }

    #[test]
    fn all_that_scenarios_are_written_in_is_read() {
        for (file, text) in [
            ("a.json", "[{\"id\": \"a\"}, {\"id\": \"b\"}]"),
            ("a.jsonl", "{\"id\": \"a\"}\n{\"id\": \"b\"}\n"),
            ("a.yaml", "- id: a\n- { id: b }\n"),
        ] {
            let names: Vec<String> = read(file, text.to_string()).unwrap().iter().map(name).collect();
            assert_eq!(names, ["a", "b"], "{file}");
        }
    }
}
