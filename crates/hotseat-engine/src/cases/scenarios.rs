//! Scenario sets: one case, executed once per scenario.

use std::collections::HashMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;

use super::shape::{CASE, SCENARIO_SET};
use super::variables::{FilledValue, TextFiller, TextUse, escape, fill_texts};
use crate::digest::short_digest;
use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, Kind, NodeValue, NodeView, SourceSpan, SourceText, check, json,
    source_from_bytes, yaml,
};
use hotseat_targets::recorder::SecretRedactor;
use hotseat_trace::canonical_text;

/// Maximum number of scenarios in the document of a case, which is read once for each of them.
pub(super) const MAX_INLINE_SCENARIOS: usize = 500;

/// A scenario of a case.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CaseScenario {
    /// Name of its set.
    pub set: Arc<str>,
    /// Stable id across runs: its `id`, or its fingerprint if it has none.
    pub id: String,
    /// Digest of its content.
    pub fingerprint: String,
    /// Display name.
    pub name: String,
    /// Its content.
    pub data: Json,
    /// The file that contains its set.
    #[serde(skip)]
    pub file: Option<Arc<Path>>,
}

/// A scenario with its position in its set.
pub(super) struct PlacedScenario {
    pub scenario: Arc<CaseScenario>,
    /// Names the set, the file and the index.
    position: String,
    place: SourceSpan,
}

impl PlacedScenario {
    /// Adds the position to the errors of a case that the values of the scenario cause. `written` is the case with its
    /// variables.
    pub fn explain(&self, diagnostics: Diagnostics, written: &DocumentNode) -> Diagnostics {
        let mut explained = Diagnostics::new();
        explained.extend(diagnostics.into_iter().map(|wrong| {
            match &wrong.place {
                Some(place) if has_variable_at(written, place) => {
                    Diagnostic { message: format!("{}: {}", self.position, wrong.message), ..wrong }
                        .with_related(self.place.clone(), format!("scenario `{}`", self.scenario.id))
                }
                Some(_) | None => wrong,
            }
        }));
        explained
    }
}

/// True if a text or key with a scenario variable stands at a place.
fn has_variable_at(node: &DocumentNode, place: &SourceSpan) -> bool {
    match &node.value {
        NodeValue::String(text) => node.span == place.span && next_variable(text).is_some(),
        NodeValue::List(nodes) => nodes.iter().any(|node| has_variable_at(node, place)),
        NodeValue::Map(entries) => entries.iter().any(|entry| {
            let is_key = entry.key.span == place.span && next_variable(&entry.key.text).is_some();
            is_key || has_variable_at(&entry.value, place)
        }),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => false,
    }
}

/// Decodes the scenarios of a case, if it has any.
///
/// # Errors
/// All diagnostics of the scenarios.
pub(super) fn read_scenarios(
    whole: &DocumentNode,
    source: &Arc<SourceText>,
    folders: &[PathBuf],
) -> Option<Result<Vec<PlacedScenario>, Diagnostics>> {
    let view = NodeView::new(whole.get("scenarios")?, source);
    let called = ["name", "id"].iter().find_map(|key| whole.get(key));
    let called = called.and_then(|node| NodeView::new(node, source).text()).unwrap_or("scenarios");
    let mut diagnostics = Diagnostics::new();
    let found = match view.map(&SCENARIO_SET) {
        _ if view.text().is_some() => from_file(view, None, folders, &mut diagnostics),
        None => from_list(view, called, "", &mut diagnostics),
        Some(map) => match (map.get("from"), map.get("scenarios")) {
            (Some(file), None) => from_file(file, map.text("name"), folders, &mut diagnostics),
            (None, Some(list)) => from_list(list, map.text("name").unwrap_or(called), "", &mut diagnostics),
            (Some(_), Some(list)) => {
                let message = "`from` and `scenarios` cannot be combined";
                diagnostics.push(Diagnostic::new(message).at(list.place()).help("remove one of them"));
                Vec::new()
            }
            (None, None) => {
                diagnostics.report(map.place(), "this set needs `from` or `scenarios`");
                Vec::new()
            }
        },
    };
    Some(if diagnostics.is_empty() { Ok(found) } else { Err(diagnostics) })
}

/// True if the scenarios stand in the document itself.
pub(super) fn has_inline_scenarios(whole: &DocumentNode) -> bool {
    let written = whole.get("scenarios");
    written.is_some_and(|set| matches!(set.value, NodeValue::List(_)) || set.get("scenarios").is_some())
}

/// Removes the scenarios of a case from its document.
pub(super) fn remove_scenarios(whole: &mut DocumentNode) {
    if let NodeValue::Map(entries) = &mut whole.value {
        entries.retain(|entry| entry.key.text != "scenarios");
    }
}

/// Decodes a set of scenarios declared by a program, in the form of `scenarios` of a case.
///
/// # Errors
/// All diagnostics of the scenarios. The messages of those in a file begin with their places.
pub fn read_scenario_set(written: Json, folders: &[PathBuf]) -> Result<Vec<Arc<CaseScenario>>, Diagnostics> {
    let source = SourceText::new("the test", "", 1);
    let whole = DocumentNode::from(serde_json::json!({"scenarios": written}));
    let mut diagnostics = Diagnostics::new();
    if let Some(set) = whole.get("scenarios") {
        check(set, &Kind::Shape(&SCENARIO_SET), &source, &mut diagnostics);
    }
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let placed = read_scenarios(&whole, &source, folders).unwrap_or_else(|| Ok(Vec::new()));
    let placed = placed.map_err(|wrong| {
        diagnostics.extend(wrong.into_iter().map(|mistake| match &mistake.place {
            Some(place) if place.source != source => {
                Diagnostic { message: format!("{place}: {}", mistake.message), ..mistake }
            }
            _ => mistake,
        }));
        diagnostics
    })?;
    Ok(placed.into_iter().map(|placed| placed.scenario).collect())
}

fn from_file(
    named: NodeView<'_>,
    set: Option<&str>,
    folders: &[PathBuf],
    diagnostics: &mut Diagnostics,
) -> Vec<PlacedScenario> {
    let path = named.text().unwrap_or_default();
    let Some(file) = folders.iter().map(|folder| folder.join(path)).find(|file| file.exists()) else {
        diagnostics.report(named.place(), format!("scenario file `{path}` not found"));
        return Vec::new();
    };
    let mut scenarios = read_file(&file, path, named, set, diagnostics);
    let file: Arc<Path> = file.into();
    for placed in &mut scenarios {
        Arc::make_mut(&mut placed.scenario).file = Some(file.clone());
    }
    scenarios
}

fn read_file(
    file: &Path,
    path: &str,
    named: NodeView<'_>,
    set: Option<&str>,
    diagnostics: &mut Diagnostics,
) -> Vec<PlacedScenario> {
    let bytes = match hotseat_document::read_file(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            diagnostics.report(named.place(), format!("the scenarios of `{path}` cannot be read: {error}"));
            return Vec::new();
        }
    };
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or(path);
    let set = set.unwrap_or(stem);
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let lines = matches!(ending, "jsonl" | "ndjson");
    let used =
        |diagnostic: Diagnostic| diagnostic.with_related(named.place(), format!("set `{set}` is used here"));
    if lines {
        let values = json::values(path, Cursor::new(bytes), "scenarios");
        let mut nodes = Vec::new();
        for value in values {
            match value.map_err(Diagnostics::from).and_then(|source| Ok((json::parse(&source)?, source))) {
                Ok(value) => nodes.push(value),
                Err(found) => diagnostics.extend(found.into_iter().map(used)),
            }
        }
        let views = nodes.iter().map(|(node, source)| NodeView::new(node, source));
        return from_entries(views, set, path, diagnostics);
    }
    let source = match source_from_bytes(path, bytes) {
        Ok(source) => source,
        Err(found) => {
            diagnostics.push(used(*found));
            return Vec::new();
        }
    };
    let parsed = match ending {
        "yaml" | "yml" => yaml::parse(&source),
        _ => json::parse(&source),
    };
    let node = match parsed {
        Ok(node) => node,
        Err(found) => {
            diagnostics.extend(found.into_iter().map(used));
            return Vec::new();
        }
    };
    let view = NodeView::new(&node, &source);
    let mut found = Diagnostics::new();
    let scenarios = from_list(view, set, path, &mut found);
    diagnostics.extend(found.into_iter().map(used));
    scenarios
}

fn from_list(
    view: NodeView<'_>,
    set: &str,
    file: &str,
    diagnostics: &mut Diagnostics,
) -> Vec<PlacedScenario> {
    match view.list() {
        Some(entries) if entries.len() > 0 => from_entries(entries, set, file, diagnostics),
        Some(_) => {
            diagnostics.report(view.place(), format!("set `{set}` has no scenario"));
            Vec::new()
        }
        None => {
            let message = format!("the scenarios of set `{set}` are not a list");
            diagnostics.push(
                Diagnostic::new(message)
                    .at(view.place())
                    .help("use a list of mappings with `name` and `goal`"),
            );
            Vec::new()
        }
    }
}

fn from_entries<'v>(
    entries: impl Iterator<Item = NodeView<'v>>,
    set: &str,
    file: &str,
    diagnostics: &mut Diagnostics,
) -> Vec<PlacedScenario> {
    let mut all = Vec::new();
    let mut first_places: HashMap<String, SourceSpan> = HashMap::new();
    for (index, view) in entries.enumerate() {
        let at = match file {
            "" => format!("scenario at index {index} of set `{set}`"),
            file => format!("scenario at index {index} of set `{set}` in {file}"),
        };
        let Some(scenario) = read_scenario(view, set, &at, diagnostics) else { continue };
        if let Some(first) = first_places.get(&scenario.id) {
            let message = format!("{at}: another scenario of the set has the id `{}`", scenario.id);
            let wrong =
                Diagnostic::new(message).at(view.place()).with_related(SourceSpan::clone(first), "first");
            diagnostics.push(wrong.help("give each scenario a unique `id`"));
        }
        first_places.entry(scenario.id.clone()).or_insert_with(|| view.place());
        all.push(PlacedScenario { scenario: Arc::new(scenario), position: at, place: view.place() });
    }
    all
}

/// Decodes one scenario. Returns `None` after reporting an error.
fn read_scenario(
    view: NodeView<'_>,
    set: &str,
    at: &str,
    diagnostics: &mut Diagnostics,
) -> Option<CaseScenario> {
    let known = diagnostics.len();
    if view.entries().is_none() {
        diagnostics.report(view.place(), format!("{at} is not a mapping"));
        return None;
    }
    let member = |key: &str| view.entries()?.find(|(name, ..)| *name == key).map(|(_, _, view)| view);
    let text = |key: &str| member(key).and_then(NodeView::text).filter(|text| !text.trim().is_empty());
    let missing: Vec<&str> = ["name", "goal"].into_iter().filter(|key| member(key).is_none()).collect();
    if !missing.is_empty() {
        diagnostics.report(view.place(), format!("{at} is missing required fields: {}", missing.join(", ")));
    }
    let is_text = |view: NodeView<'_>| view.text().is_some_and(|text| !text.trim().is_empty());
    type Fits = fn(NodeView<'_>) -> bool;
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
            diagnostics.report(view.place(), format!("{at}: `{key}` must be {wanted}"));
        }
    }
    if diagnostics.len() > known {
        return None;
    }
    let data = view.json();
    let fingerprint = fingerprint(&data);
    Some(CaseScenario {
        set: set.into(),
        id: text("id").map_or_else(|| fingerprint.clone(), str::to_string),
        fingerprint,
        name: text("name")?.to_string(),
        data,
        file: None,
    })
}

/// Digest that does not depend on the order of keys.
fn fingerprint(data: &Json) -> String {
    format!("scenario_{}", short_digest(&canonical_text(data), 4))
}

/// Id of a case across runs, regardless of file and line: a digest of its name.
pub fn stable_id(path: &str) -> String {
    format!("example:{}", short_digest(&path.split_whitespace().collect::<Vec<_>>().join(" "), 6))
}

impl CaseScenario {
    /// Replaces `${scenario.…}` in the document of a case by the values of this scenario.
    pub(super) fn fill_checked(
        &self,
        whole: &mut DocumentNode,
        source: &Arc<SourceText>,
        redactor: &SecretRedactor,
        diagnostics: &mut Diagnostics,
    ) {
        let fill =
            |text: &str, kind: &Kind, text_use: TextUse| self.fill_text(text, kind, text_use, redactor);
        remove_scenarios(whole);
        if let NodeValue::Map(entries) = &mut whole.value {
            let simulated = entries.iter_mut().filter(|entry| entry.key.text == "simulate");
            simulated.for_each(|entry| self.drop_null_members(&mut entry.value));
        }
        fill_texts(whole, &Kind::Shape(&CASE), &fill, source, diagnostics);
    }

    /// Removes the members of a simulated user whose whole value is a variable that is null, such as `personality`.
    fn drop_null_members(&self, node: &mut DocumentNode) {
        let NodeValue::Map(entries) = &mut node.value else { return };
        entries.retain(|entry| match &entry.value.value {
            NodeValue::String(text) => match next_variable(text) {
                Some(("", name, "")) => self.field_value(name) != Some(&Json::Null),
                _ => true,
            },
            _ => true,
        });
        entries.iter_mut().for_each(|entry| self.drop_null_members(&mut entry.value));
    }

    /// Like `CaseScenario::fill_checked`, for a document that is known to be valid.
    pub fn fill_variables(&self, whole: &mut DocumentNode, source: &Arc<SourceText>) {
        self.fill_checked(whole, source, &SecretRedactor::default(), &mut Diagnostics::new());
    }

    pub(super) fn redacted(self: &Arc<Self>, redactor: &SecretRedactor) -> Arc<CaseScenario> {
        let data = redactor.json(self.data.clone());
        match data == self.data {
            true => self.clone(),
            false => Arc::new(CaseScenario { data, ..(**self).clone() }),
        }
    }

    fn fill_text(
        &self,
        text: &str,
        kind: &Kind,
        text_use: TextUse,
        redactor: &SecretRedactor,
    ) -> Result<FilledValue, Vec<String>> {
        let mut filler = TextFiller::new(text, kind, text_use, redactor);
        let mut rest = text;
        while let Some((before, name, behind)) = next_variable(rest) {
            filler.push(before);
            match self.field_value(name) {
                None => filler.report(format!("it has no `{name}`")),
                // A value that is not text replaces the whole text if its kind allows it.
                Some(value)
                    if !value.is_string()
                        && text.len() == name.len() + "${}".len()
                        && kind.accepts_type_of(&DocumentNode::from(value.clone()).value) =>
                {
                    return Ok(FilledValue::Json(escape_variables(value.clone())));
                }
                Some(value) => {
                    if let Some(text) = filler.text_of(name, value, behind) {
                        filler.push(&escape(&text));
                    }
                }
            }
            rest = behind;
        }
        filler.push(rest);
        filler.finish()
    }

    /// Returns the value at a dotted path.
    fn field_value(&self, name: &str) -> Option<&Json> {
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

/// Escapes variables in a value, so they are not resolved again.
pub fn escape_variables(value: Json) -> Json {
    match value {
        Json::String(text) => Json::String(escape(&text)),
        Json::Array(items) => Json::Array(items.into_iter().map(escape_variables).collect()),
        Json::Object(members) => {
            Json::Object(members.into_iter().map(|(key, value)| (key, escape_variables(value))).collect())
        }
        other => other,
    }
}

/// Finds the next scenario variable in a text: the text before it, its name, and the text after it.
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

/// Display name and id of a case with a scenario.
pub(super) fn scenario_names(
    name: &str,
    id: Option<&str>,
    written: &str,
    scenario: &CaseScenario,
) -> (String, String) {
    let id = format!("{}@{}", id.unwrap_or(name), scenario.id);
    // Without a scenario variable the names could not be distinguished.
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
    fn fingerprint_ignores_key_order() {
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
    fn stable_id_depends_on_name() {
        assert_eq!(stable_id("Agent::venue search::returns results"), "example:924d5a71dde0");
        assert_eq!(stable_id(" probe::handles  One@scenario_a6af6080"), "example:2ad9db758d96");
    }
}
