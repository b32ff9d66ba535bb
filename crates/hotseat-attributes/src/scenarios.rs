//! Names tests after the scenarios of a file. Invalid scenarios are reported when their test runs.

use std::fs;
use std::path::Path;

use hotseat_document::{Diagnostics, DocumentNode, NodeValue, SourceText, json, yaml};

/// Returns unique test names for the scenarios of a file, from their ids or names.
///
/// # Errors
/// If the file cannot be read: the message.
pub fn test_names(file: &str) -> Result<Vec<String>, String> {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let path = Path::new(&folder).join(file);
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("cannot read the scenarios of {}: {error}", path.display()))?;
    let scenarios = read_entries(file, text).map_err(|mistakes| mistakes.render(false, 100))?;
    if scenarios.is_empty() {
        return Err(format!("{file} has no scenario"));
    }
    let mut names: Vec<String> = Vec::new();
    for scenario in scenarios {
        let name = test_name(&scenario);
        let is_free = |name: &String| !names.contains(name);
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let name = std::iter::once(name.clone()).chain(numbered).find(is_free);
        names.extend(name);
    }
    Ok(names)
}

/// Reads the entries of a JSON lines, YAML or JSON file, selected by its extension.
fn read_entries(file: &str, text: String) -> Result<Vec<DocumentNode>, Diagnostics> {
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
    if matches!(ending, "jsonl" | "ndjson") {
        let values = json::values(file, std::io::Cursor::new(text.into_bytes()), "scenarios");
        return values.map(|value| json::parse(&value?)).collect();
    }
    let source = SourceText::new(file, text, 1);
    let node = match ending {
        "yaml" | "yml" => yaml::parse(&source)?,
        _ => json::parse(&source)?,
    };
    Ok(match node.value {
        NodeValue::List(entries) => entries,
        _ => Vec::new(),
    })
}

/// Converts the id of a scenario, or its name, to a function name.
fn test_name(scenario: &DocumentNode) -> String {
    let said = ["id", "name"].iter().find_map(|key| match &scenario.get(key)?.value {
        NodeValue::String(text) => Some(text.as_str()),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::List(_)
        | NodeValue::Map(_) => None,
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

    fn test_names_of(text: &str) -> Vec<String> {
        read_entries("a.json", text.to_string()).unwrap().iter().map(test_name).collect()
    }

    #[test]
    fn names_tests_after_ids_or_names() {
        let text =
            r#"[{"id": "Blue Room!", "name": "x"}, {"name": "Für 10 Leute"}, {"id": "7"}, {"id": "fn"}, {}]"#;
        assert_eq!(
            test_names_of(text),
            ["blue_room", "f_r_10_leute", "scenario_7", "scenario_fn", "scenario"]
        );
    }

    #[test]
    fn reads_all_file_formats() {
        for (file, text) in [
            ("a.json", "[{\"id\": \"a\"}, {\"id\": \"b\"}]"),
            ("a.jsonl", "{\"id\": \"a\"}\n{\"id\": \"b\"}\n"),
            ("a.yaml", "- id: a\n- { id: b }\n"),
        ] {
            let names: Vec<String> =
                read_entries(file, text.to_string()).unwrap().iter().map(test_name).collect();
            assert_eq!(names, ["a", "b"], "{file}");
        }
    }
}
