//! Scenario sets: one case, held once with each scenario.

use std::fs;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value as Json;

use super::shape::CASE;
use super::variables::{Filled, fill_texts, literal, may_be, mistake, of_text};
use crate::checks;
use crate::session::Redactor;
use hotseat_document::{
    Diagnostic, Diagnostics, Field, Kind, Node, Place, Shape, Source, Value, View, check, json, yaml,
};

/// A set of scenarios.
pub static SCENARIO_SET: Shape = Shape {
    name: "ScenarioSet",
    doc: "A set of scenarios: `from` a file, or `scenarios` that stand here.",
    fields: &[
        Field::optional(
            "name",
            Kind::NonEmptyText,
            "What the set is called. Default: the name of its file, or of the case.",
        ),
        Field::optional(
            "from",
            Kind::NonEmptyText,
            "A file with a list of scenarios: JSON, JSON lines or YAML. Looked for beside the suite, beside the project file, and in the working folder.",
        ),
        Field::optional("scenarios", Kind::NonEmptyList(&Kind::JsonMap), "The scenarios."),
    ],
};

/// What a case is held with.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Scenario {
    /// The set it is one of.
    pub set: Arc<str>,
    /// What it is known by from run to run: its `id`, or its fingerprint where it has none.
    pub id: String,
    /// A digest of all that it says.
    pub fingerprint: String,
    /// What it is called.
    pub name: String,
    /// All that it says.
    pub data: Json,
}

/// Reads the scenarios of a case that has some.
///
/// # Errors
/// Everything that is wrong with any of them.
pub(super) fn scenarios(
    whole: &Node,
    source: &Arc<Source>,
    folders: &[PathBuf],
) -> Option<Result<Vec<Arc<Scenario>>, Diagnostics>> {
    let view = View::new(whole.get("scenarios")?, source);
    let called = ["name", "id"].iter().find_map(|key| whole.get(key));
    let called = called.and_then(|node| View::new(node, source).text()).unwrap_or("scenarios");
    let mut mistakes = Diagnostics::new();
    let found = match view.map(&SCENARIO_SET) {
        _ if view.text().is_some() => from_file(view, None, folders, &mut mistakes),
        None => of_list(view, called, "", &mut mistakes),
        Some(map) => match (map.get("from"), map.get("scenarios")) {
            (Some(file), None) => from_file(file, map.text("name"), folders, &mut mistakes),
            (None, Some(list)) => of_list(list, map.text("name").unwrap_or(called), "", &mut mistakes),
            (Some(_), Some(list)) => {
                let message = "`from` and `scenarios` both say which scenarios there are";
                mistakes.push(mistake(Some(list.place()), message).help("leave one of them out"));
                Vec::new()
            }
            (None, None) => {
                let message = "this set has no scenarios: neither `from` nor `scenarios` is there";
                mistakes.push(mistake(Some(map.place()), message));
                Vec::new()
            }
        },
    };
    Some(if mistakes.is_empty() { Ok(found) } else { Err(mistakes) })
}

/// A set of scenarios that a program declares, as `scenarios` of a case has it.
///
/// # Errors
/// Everything that is wrong with any of them.
pub fn scenario_set(written: Json, folders: &[PathBuf]) -> Result<Vec<Arc<Scenario>>, Diagnostics> {
    let source = Source::new("the test", "", 1);
    let whole = Node::from(serde_json::json!({"scenarios": written}));
    let mut mistakes = Diagnostics::new();
    if let Some(set) = whole.get("scenarios") {
        check(set, &Kind::Shape(&SCENARIO_SET), &source, &mut mistakes);
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    scenarios(&whole, &source, folders).unwrap_or_else(|| Ok(Vec::new()))
}

fn from_file(
    named: View<'_>,
    set: Option<&str>,
    folders: &[PathBuf],
    mistakes: &mut Diagnostics,
) -> Vec<Arc<Scenario>> {
    let path = named.text().unwrap_or_default();
    let mut wrong = |words: String| mistakes.push(mistake(Some(named.place()), words));
    let Some(file) = folders.iter().map(|folder| folder.join(path)).find(|file| file.exists()) else {
        wrong(format!("there is no file `{path}` with scenarios"));
        return Vec::new();
    };
    let bytes = match fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) => {
            wrong(format!("the scenarios of `{path}` cannot be read: {error}"));
            return Vec::new();
        }
    };
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or(path);
    let set = set.unwrap_or(stem);
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let lines = matches!(ending, "jsonl" | "ndjson");
    let used = |diagnostic: Diagnostic| diagnostic.also(named.place(), format!("set `{set}` is used here"));
    if lines {
        let values = json::values(path, Cursor::new(bytes), "scenarios");
        let mut nodes = Vec::new();
        for value in values {
            match value.map_err(Diagnostics::from).and_then(|source| Ok((json::parse(&source)?, source))) {
                Ok(value) => nodes.push(value),
                Err(found) => mistakes.extend(found.into_iter().map(used)),
            }
        }
        let views = nodes.iter().map(|(node, source)| View::new(node, source));
        return of_entries(views, set, path, mistakes);
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => {
            wrong(format!("the scenarios of `{path}` cannot be read: they are no UTF-8"));
            return Vec::new();
        }
    };
    let source = Source::new(path, text, 1);
    let parsed = match ending {
        "yaml" | "yml" => yaml::parse(&source),
        _ => json::parse(&source),
    };
    let node = match parsed {
        Ok(node) => node,
        Err(found) => {
            mistakes.extend(found.into_iter().map(used));
            return Vec::new();
        }
    };
    let view = View::new(&node, &source);
    let mut found = Diagnostics::new();
    let scenarios = of_list(view, set, path, &mut found);
    mistakes.extend(found.into_iter().map(used));
    scenarios
}

fn of_list(view: View<'_>, set: &str, file: &str, mistakes: &mut Diagnostics) -> Vec<Arc<Scenario>> {
    match view.list() {
        Some(entries) if entries.len() > 0 => of_entries(entries, set, file, mistakes),
        Some(_) => {
            mistakes.push(mistake(Some(view.place()), format!("set `{set}` has no scenario")));
            Vec::new()
        }
        None => {
            let message = format!("the scenarios of set `{set}` are no list");
            mistakes
                .push(mistake(Some(view.place()), message).help("a list of mappings with `name` and `goal`"));
            Vec::new()
        }
    }
}

fn of_entries<'v>(
    entries: impl Iterator<Item = View<'v>>,
    set: &str,
    file: &str,
    mistakes: &mut Diagnostics,
) -> Vec<Arc<Scenario>> {
    let mut all: Vec<(Arc<Scenario>, Place)> = Vec::new();
    for (index, view) in entries.enumerate() {
        let at = match file {
            "" => format!("scenario at index {index} of set `{set}`"),
            file => format!("scenario at index {index} of set `{set}` in {file}"),
        };
        let Some(scenario) = scenario(view, set, &at, mistakes) else { continue };
        if let Some((_, first)) = all.iter().find(|(known, _)| known.id == scenario.id) {
            let message = format!("{at}: another scenario of the set has the id `{}`", scenario.id);
            let wrong = mistake(Some(view.place()), message).also(first.clone(), "first");
            mistakes.push(wrong.help("give each scenario an `id` of its own"));
        }
        all.push((Arc::new(scenario), view.place()));
    }
    all.into_iter().map(|(scenario, _)| scenario).collect()
}

/// One scenario, if nothing is wrong with it.
fn scenario(view: View<'_>, set: &str, at: &str, mistakes: &mut Diagnostics) -> Option<Scenario> {
    let known = mistakes.len();
    if view.entries().is_none() {
        mistakes.push(mistake(Some(view.place()), format!("{at} is no mapping")));
        return None;
    }
    let member = |key: &str| view.entries()?.find(|(name, ..)| *name == key).map(|(_, _, view)| view);
    let text = |key: &str| member(key).and_then(View::text).filter(|text| !text.trim().is_empty());
    let missing: Vec<&str> = ["name", "goal"].into_iter().filter(|key| member(key).is_none()).collect();
    if !missing.is_empty() {
        let message = format!("{at} is missing required fields: {}", missing.join(", "));
        mistakes.push(mistake(Some(view.place()), message));
    }
    let is_text = |view: View<'_>| view.text().is_some_and(|text| !text.trim().is_empty());
    type Fits = fn(View<'_>) -> bool;
    let kinds: [(&str, Fits, &str); 6] = [
        ("id", is_text, "a text"),
        ("name", is_text, "a text"),
        ("goal", is_text, "a text"),
        (
            "personality",
            |view| view.is_null() || view.text().is_some_and(|text| !text.trim().is_empty()),
            "a text",
        ),
        ("context", |view| view.list().is_some(), "a list"),
        ("verification", |view| view.entries().is_some(), "a mapping"),
    ];
    for (key, fits, wanted) in kinds {
        if let Some(view) = member(key).filter(|view| !fits(*view)) {
            let message = format!("{at}: `{key}` has to be {wanted}");
            mistakes.push(mistake(Some(view.place()), message));
        }
    }
    if mistakes.len() > known {
        return None;
    }
    let data = view.json();
    let fingerprint = fingerprint(&data);
    Some(Scenario {
        set: set.into(),
        id: text("id").map_or_else(|| fingerprint.clone(), str::to_string),
        fingerprint,
        name: text("name")?.to_string(),
        data,
    })
}

/// A digest that does not depend on the order of keys.
fn fingerprint(data: &Json) -> String {
    format!("scenario_{}", digest(&sorted(data), 4))
}

/// The name under which a case is found again in other runs, whatever file and line it stands in: a digest of what it
/// is called.
pub fn stable_id(path: &str) -> String {
    format!("example:{}", digest(&path.split_whitespace().collect::<Vec<_>>().join(" "), 6))
}

fn digest(text: &str, bytes: usize) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}

fn sorted(value: &Json) -> String {
    match value {
        Json::Object(members) => {
            let mut members: Vec<(&String, &Json)> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let members =
                members.iter().map(|(key, value)| format!("{}:{}", Json::from(key.as_str()), sorted(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Json::Array(items) => format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

impl Scenario {
    /// The document of a case with what this scenario says in place of `${scenario.…}`.
    pub(super) fn fill(
        &self,
        whole: &mut Node,
        source: &Arc<Source>,
        redactor: &Redactor,
        mistakes: &mut Diagnostics,
    ) {
        let fill = |text: &str, kind: &Kind| self.filled(text, kind, redactor);
        if let Value::Map(entries) = &mut whole.value {
            entries.retain(|entry| entry.key.text != "scenarios");
        }
        fill_texts(whole, &Kind::Shape(&CASE), &fill, source, mistakes);
    }

    /// The same, of a document that was found to be right before.
    pub fn fill_in(&self, whole: &mut Node, source: &Arc<Source>) {
        self.fill(whole, source, &Redactor::default(), &mut Diagnostics::new());
    }

    /// The same as it may be shown.
    pub(super) fn shown(self: &Arc<Self>, redactor: &Redactor) -> Arc<Scenario> {
        let data = redactor.json(self.data.clone());
        match data == self.data {
            true => self.clone(),
            false => Arc::new(Scenario { data, ..(**self).clone() }),
        }
    }

    fn filled(&self, text: &str, kind: &Kind, redactor: &Redactor) -> Result<Filled, Vec<String>> {
        let mut out = String::new();
        let mut wrong = Vec::new();
        let mut rest = text;
        while let Some((before, name, behind)) = next_variable(rest) {
            out.push_str(before);
            match self.field(name) {
                None => wrong.push(format!("scenario `{}` has no `{name}`", self.id)),
                Some(Json::String(value)) => out.push_str(&match of_text(kind) {
                    Kind::Pattern => literal(&checks::escape(&redactor.text(value))),
                    _ => literal(value),
                }),
                // A value that is no text stands for itself where it may.
                Some(value) => {
                    let alone = before.is_empty() && behind.is_empty() && out.is_empty();
                    let as_node = Node::from(value.clone());
                    if alone && may_be(&as_node.value, kind) {
                        return Ok(Filled::Json(means_itself(value.clone())));
                    }
                    out.push_str(&literal(&value.to_string()));
                }
            }
            rest = behind;
        }
        out.push_str(rest);
        if wrong.is_empty() { Ok(Filled::Text(out)) } else { Err(wrong) }
    }

    /// What it says under a name, with dots between the names of members.
    fn field(&self, name: &str) -> Option<&Json> {
        let mut value = &self.data;
        for part in name.strip_prefix("scenario")?.split('.').skip(1) {
            value = match value {
                Json::Object(members) => members.get(part)?,
                Json::Array(items) => items.get(part.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(value)
    }
}

/// A value in which nothing is taken for a variable.
fn means_itself(value: Json) -> Json {
    match value {
        Json::String(text) => Json::String(literal(&text)),
        Json::Array(items) => Json::Array(items.into_iter().map(means_itself).collect()),
        Json::Object(members) => {
            Json::Object(members.into_iter().map(|(key, value)| (key, means_itself(value))).collect())
        }
        other => other,
    }
}

/// The next variable of a scenario in a text: what stands before it, its name, what stands behind it.
fn next_variable(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find("${scenario")?;
        let name = &text[at + 2..];
        let end = name.find('}')?;
        let behind = name["scenario".len()..].chars().next();
        if !text[..at].ends_with('$') && matches!(behind, Some('.' | '}')) {
            return Some((&text[..at], &name[..end], &name[end + 1..]));
        }
        from = at + 2;
    }
}

/// The name of a case that is held with a scenario, and the name by which it is known.
pub(super) fn names(name: &str, id: Option<&str>, written: &str, scenario: &Scenario) -> (String, String) {
    let id = format!("{}@{}", id.unwrap_or(name), scenario.id);
    // Names that say nothing of the scenario could not be told apart.
    let name = match next_variable(written) {
        Some(_) => name.to_string(),
        None => format!("{name}: {}", scenario.name),
    };
    (name, id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fingerprint_is_that_of_the_content_and_not_of_its_order() {
        let one = json!({"id": "1", "name": "One", "goal": "g1", "verification": {"x": 1}});
        assert_eq!(fingerprint(&one), "scenario_a6af6080");
        let turned = json!({"verification": {"x": 1}, "goal": "g1", "name": "One", "id": "1"});
        assert_eq!(fingerprint(&turned), fingerprint(&one));
        assert_ne!(
            fingerprint(&json!({"id": "1", "name": "One", "goal": "g2", "verification": {"x": 1}})),
            fingerprint(&one)
        );
    }

    #[test]
    fn a_stable_id_is_that_of_the_name() {
        assert_eq!(stable_id("Agent::venue search::returns results"), "example:924d5a71dde0");
        assert_eq!(stable_id(" probe::handles  One@scenario_a6af6080"), "example:2ad9db758d96");
    }
}
