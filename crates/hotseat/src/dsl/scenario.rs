//! Scenarios: data that examples are held with.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cases::{self, scenario_set};

/// One scenario of a set; see [`Group::scenario_set`](super::Group::scenario_set). Cheap to clone, and cannot be changed.
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
    pub(super) inner: Arc<cases::Scenario>,
}

impl Scenario {
    /// What it is known by from run to run: its `id`, or a digest of all that it says.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// All that it says.
    pub fn data(&self) -> &Value {
        &self.inner.data
    }

    /// What it says under a name, with dots between the names of members. An example that asks for what is not there, or is
    /// null, fails; so does one that asks for a type that it is not.
    #[track_caller]
    pub fn get(&self, name: &str) -> Value {
        self.required(name, self.get_opt(name))
    }

    /// What it says under a name; none where that is nothing, or null.
    pub fn get_opt(&self, name: &str) -> Option<Value> {
        let found = name.split('.').try_fold(&self.inner.data, |value, part| match value {
            Value::Array(entries) => entries.get(part.parse::<usize>().ok()?),
            value => value.get(part),
        });
        found.filter(|value| !value.is_null()).cloned()
    }

    /// The text under a name; a number or a boolean as it is written.
    #[track_caller]
    pub fn str(&self, name: &str) -> String {
        self.required(name, self.str_opt(name))
    }

    /// The text under a name; none where that is nothing, or null.
    #[track_caller]
    pub fn str_opt(&self, name: &str) -> Option<String> {
        self.get_opt(name).map(|value| self.text(name, value))
    }

    /// The texts of a list under a name.
    #[track_caller]
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.required(name, self.texts_opt(name))
    }

    /// The texts of a list under a name; none where that is nothing, or null.
    #[track_caller]
    pub fn texts_opt(&self, name: &str) -> Option<Vec<String>> {
        let list = self.list_opt(name)?;
        let mut texts = Vec::with_capacity(list.len());
        for entry in list {
            texts.push(self.text(name, entry));
        }
        Some(texts)
    }

    /// The entries of a list under a name.
    #[track_caller]
    pub fn list(&self, name: &str) -> Vec<Value> {
        self.required(name, self.list_opt(name))
    }

    /// The entries of a list under a name; none where that is nothing, or null.
    #[track_caller]
    pub fn list_opt(&self, name: &str) -> Option<Vec<Value>> {
        match self.get_opt(name)? {
            Value::Array(entries) => Some(entries),
            other => panic!("`{name}` of scenario `{}` is {other}, and no list", self.inner.id),
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
            other => panic!("`{name}` of scenario `{}` is {other}, and no text", self.inner.id),
        }
    }
}

/// Where scenarios come from: a file, see [`load`], or a JSON value that is a list of them.
#[derive(Debug, Clone)]
pub struct Scenarios {
    source: Source,
    only: Option<Only>,
}

/// One scenario of several.
#[derive(Debug, Clone, Copy)]
struct Only {
    /// Its place, from 0.
    place: usize,
    /// How many there have to be.
    of: usize,
}

#[derive(Debug, Clone)]
enum Source {
    File(String),
    Inline(Value),
}

/// Scenarios of a file: JSON, JSON lines or YAML; from the working folder, which is that of the package under `cargo test`.
///
/// ```
/// use hotseat::dsl::load;
///
/// let venues = load("scenarios/venues.json");
/// ```
pub fn load(path: impl Into<String>) -> Scenarios {
    Scenarios { source: Source::File(path.into()), only: None }
}

impl From<Value> for Scenarios {
    fn from(list: Value) -> Self {
        Scenarios { source: Source::Inline(list), only: None }
    }
}

impl From<Vec<Value>> for Scenarios {
    fn from(list: Vec<Value>) -> Self {
        Scenarios::from(Value::from(list))
    }
}

impl Scenarios {
    /// Only the one at a place, of so many.
    pub(super) fn only(self, place: usize, of: usize) -> Scenarios {
        Scenarios { only: Some(Only { place, of }), ..self }
    }

    /// Reads them.
    ///
    /// # Errors
    /// Everything that is wrong with them, in words.
    pub(super) fn read(self, set: &str, folder: &Path) -> Result<Vec<Scenario>, Vec<String>> {
        let written = match self.source {
            Source::File(path) => json!({"name": set, "from": path}),
            Source::Inline(list) => json!({"name": set, "scenarios": list}),
        };
        let found = scenario_set(written, &[folder.to_path_buf()]);
        let found = found
            .map_err(|wrong| -> Vec<String> { wrong.into_iter().map(|mistake| mistake.message).collect() })?;
        let mut all: Vec<Scenario> = found.into_iter().map(|inner| Scenario { inner }).collect();
        match self.only {
            None => Ok(all),
            Some(Only { place, of }) if all.len() == of && place < of => Ok(vec![all.swap_remove(place)]),
            Some(Only { of, .. }) => Err(vec![format!(
                "`{set}` has {} scenarios, and had {of} when this test was compiled: compile it again",
                all.len()
            )]),
        }
    }
}
