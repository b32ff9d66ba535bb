//! Scenarios: data for parameterised examples.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use hotseat_engine::cases::{self, read_scenario_set};

/// One scenario of a set; see [`Group::scenario_set`](super::Group::scenario_set). Immutable and cheap to
/// clone.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # use serde_json::json;
/// # fn a(g: &mut Group) {
/// let set = json!([{
///     "id": "catering",
///     "name": "Add catering",
///     "goal": "Add lunch for 15 people",
///     "verification": {"expected_services": ["catering"]}
/// }]);
/// g.scenario_set("services", set, |g, scenario| {
///     g.it(format!("handles {}", scenario.str("name")), async move |t| {
///         t.user.says(scenario.str("goal")).await;
///         for service in scenario.list("verification.expected_services") {
///             expect!(t.conversation, have_tool_call("add_service").with("service_type", service));
///         }
///     });
/// });
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Scenario {
    pub(super) inner: Arc<cases::CaseScenario>,
}

impl Scenario {
    /// Returns a stable identifier: the `id` of the scenario, or a digest of its data.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// Returns all data of the scenario.
    pub fn data(&self) -> &Value {
        &self.inner.data
    }

    /// Returns the value at a path of member names separated by dots. Fails the example if the value is
    /// missing or null.
    #[track_caller]
    pub fn get(&self, name: &str) -> Value {
        self.required(name, self.get_opt(name))
    }

    /// Returns the value at a path, or none if it is missing or null.
    pub fn get_opt(&self, name: &str) -> Option<Value> {
        let found = name.split('.').try_fold(&self.inner.data, |value, part| match value {
            Value::Array(entries) => entries.get(part.parse::<usize>().ok()?),
            value => value.get(part),
        });
        found.filter(|value| !value.is_null()).cloned()
    }

    /// Returns the text at a path; numbers and booleans are formatted. Fails the example if the value is
    /// missing, null or of another type.
    #[track_caller]
    pub fn str(&self, name: &str) -> String {
        self.required(name, self.str_opt(name))
    }

    /// Returns the text at a path, or none if it is missing or null.
    #[track_caller]
    pub fn str_opt(&self, name: &str) -> Option<String> {
        self.get_opt(name).map(|value| self.text(name, value))
    }

    /// Returns the list of texts at a path. Fails the example if it is missing.
    #[track_caller]
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.required(name, self.texts_opt(name))
    }

    /// Returns the list of texts at a path, or none if it is missing or null.
    #[track_caller]
    pub fn texts_opt(&self, name: &str) -> Option<Vec<String>> {
        let list = self.list_opt(name)?;
        let mut texts = Vec::with_capacity(list.len());
        for entry in list {
            texts.push(self.text(name, entry));
        }
        Some(texts)
    }

    /// Returns the list at a path. Fails the example if it is missing.
    #[track_caller]
    pub fn list(&self, name: &str) -> Vec<Value> {
        self.required(name, self.list_opt(name))
    }

    /// Returns the list at a path, or none if it is missing or null.
    #[track_caller]
    pub fn list_opt(&self, name: &str) -> Option<Vec<Value>> {
        match self.get_opt(name)? {
            Value::Array(entries) => Some(entries),
            other => panic!("`{name}` of scenario `{}` is {other}, not a list", self.inner.id),
        }
    }

    #[track_caller]
    fn required<T>(&self, name: &str, found: Option<T>) -> T {
        let Some(found) = found else { panic!("scenario `{}` has no `{name}`", self.inner.id) };
        found
    }

    #[track_caller]
    fn text(&self, name: &str, value: Value) -> String {
        match value {
            Value::String(text) => text,
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            other => panic!("`{name}` of scenario `{}` is {other}, not a string", self.inner.id),
        }
    }
}

/// Source of scenarios: a file, see [`load`], or a JSON array.
#[derive(Debug, Clone)]
pub struct ScenarioSource {
    input: ScenarioInput,
    only: Option<ScenarioIndex>,
}

/// Selects one scenario of a set.
#[derive(Debug, Clone, Copy)]
struct ScenarioIndex {
    /// Index of the scenario, from 0.
    index: usize,
    /// Number of scenarios that the set must have.
    expected_count: usize,
}

#[derive(Debug, Clone)]
enum ScenarioInput {
    File(String),
    Inline(Value),
}

/// Loads scenarios from a JSON, JSON lines or YAML file. The path is relative to the working directory, which
/// `cargo test` sets to the package directory.
///
/// ```
/// use hotseat::dsl::load;
///
/// let venues = load("scenarios/venues.json");
/// ```
pub fn load(path: impl Into<String>) -> ScenarioSource {
    ScenarioSource { input: ScenarioInput::File(path.into()), only: None }
}

impl From<Value> for ScenarioSource {
    fn from(list: Value) -> Self {
        ScenarioSource { input: ScenarioInput::Inline(list), only: None }
    }
}

impl From<Vec<Value>> for ScenarioSource {
    fn from(list: Vec<Value>) -> Self {
        ScenarioSource::from(Value::from(list))
    }
}

impl ScenarioSource {
    /// Selects the scenario at index `place` of `of` scenarios.
    pub(super) fn select(self, place: usize, of: usize) -> ScenarioSource {
        ScenarioSource { only: Some(ScenarioIndex { index: place, expected_count: of }), ..self }
    }

    /// Reads the scenarios. Fails if they are invalid: all messages.
    pub(super) fn read(self, set: &str, folder: &Path) -> Result<Vec<Scenario>, Vec<String>> {
        let written = match self.input {
            ScenarioInput::File(path) => json!({"name": set, "from": path}),
            ScenarioInput::Inline(list) => json!({"name": set, "scenarios": list}),
        };
        let found = read_scenario_set(written, &[folder.to_path_buf()]);
        let found = found
            .map_err(|wrong| -> Vec<String> { wrong.into_iter().map(|mistake| mistake.message).collect() })?;
        let mut all: Vec<Scenario> = found.into_iter().map(|inner| Scenario { inner }).collect();
        match self.only {
            None => Ok(all),
            Some(ScenarioIndex { index: place, expected_count: of }) if all.len() == of && place < of => {
                Ok(vec![all.swap_remove(place)])
            }
            Some(ScenarioIndex { expected_count: of, .. }) => Err(vec![format!(
                "`{set}` has {} scenarios, but had {of} when this test was compiled: recompile the test",
                all.len()
            )]),
        }
    }
}
