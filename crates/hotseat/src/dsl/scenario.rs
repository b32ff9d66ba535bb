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

    /// What it says under a name, with dots between the names of members; null where that is nothing.
    pub fn get(&self, name: &str) -> Value {
        let found = name.split('.').try_fold(&self.inner.data, |value, part| match value {
            Value::Array(entries) => entries.get(part.parse::<usize>().ok()?),
            value => value.get(part),
        });
        found.cloned().unwrap_or(Value::Null)
    }

    /// The text under a name. An example that asks for one that is not there fails.
    #[track_caller]
    pub fn str(&self, name: &str) -> String {
        match self.get(name) {
            Value::String(text) => text,
            Value::Null => panic!("scenario `{}` has no `{name}`", self.inner.id),
            other => other.to_string(),
        }
    }

    /// The texts of a list under a name; nothing where there is no list.
    pub fn texts(&self, name: &str) -> Vec<String> {
        let text = |entry: Value| match entry {
            Value::String(text) => text,
            other => other.to_string(),
        };
        self.list(name).into_iter().map(text).collect()
    }

    /// The entries of a list under a name; nothing where there is no list.
    pub fn list(&self, name: &str) -> Vec<Value> {
        match self.get(name) {
            Value::Array(entries) => entries,
            _ => Vec::new(),
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
