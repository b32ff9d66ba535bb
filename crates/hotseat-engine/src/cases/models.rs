//! Served models of cases: decoded from three layers (project, suite, case), and opened for a conversation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, MapView, NodeValue, NodeView, SourceSpan, nearest,
};
use hotseat_mcp::FaultTrigger as CallSelection;
use hotseat_model::LiveModel;
use hotseat_model::script::{ModelScript, ScriptedModel};
use hotseat_model::serve::{FaultKind, FaultTrigger, ModelFault, ServedModel};

use super::limits::from_millis;
use super::mcp::read_trigger;
use super::models_shape::{MODEL_FAULT, MODEL_FAULT_ACTION, SERVED_MODEL};

/// Status of the fault `http`.
const DEFAULT_HTTP_STATUS: u16 = 500;

/// Served models by name.
#[derive(Debug, Clone, Default)]
pub struct ModelSettings {
    models: BTreeMap<String, ModelSource>,
}

/// A served model of the test.
#[derive(Debug, Clone)]
struct ModelSource {
    script: ScriptSource,
    faults: Vec<PlacedFault>,
}

/// Source of the replies of a model.
#[derive(Debug, Clone)]
enum ScriptSource {
    Rules(Arc<ModelScript>),
    File(ScriptFile),
}

/// A file with a script, read once.
#[derive(Debug, Clone)]
struct ScriptFile {
    path: String,
    place: SourceSpan,
    script: Arc<OnceLock<Result<Arc<ModelScript>, Diagnostics>>>,
}

/// A fault in calls of a model.
#[derive(Debug, Clone)]
pub struct PlacedFault {
    /// Position in the file.
    pub place: SourceSpan,
    /// The fault.
    pub fault: ModelFault,
}

impl ModelSettings {
    /// Decodes the models of one layer and merges them onto those of the layer above.
    pub(super) fn read(
        view: Option<NodeView<'_>>,
        above: &Arc<ModelSettings>,
        diagnostics: &mut Diagnostics,
    ) -> Arc<ModelSettings> {
        let Some(view) = view else { return above.clone() };
        let mut settings = (**above).clone();
        for (name, place, entry) in view.entries().into_iter().flatten() {
            let Some(map) = entry.map(&SERVED_MODEL) else { continue };
            if !is_model_name(name) {
                let message = format!("`{name}` is not a name of a model: use letters, digits, `-` and `_`");
                diagnostics.push(Diagnostic::new(message).at(place));
                continue;
            }
            let faults = read_faults(&map, diagnostics);
            let source = match read_source(name, entry, &map, diagnostics) {
                Ok(Some(script)) => ModelSource { script, faults },
                Ok(None) => {
                    let Some(inherited) = settings.models.get(name) else {
                        let wrong =
                            Diagnostic::new(format!("the model `{name}` needs a `script` or `rules`"));
                        diagnostics.push(wrong.at(place));
                        continue;
                    };
                    let mut source = inherited.clone();
                    source.faults.extend(faults);
                    source
                }
                Err(()) => continue,
            };
            settings.models.insert(name.to_string(), source);
        }
        Arc::new(settings)
    }

    /// Loads the scripts in files, from the first folder that contains them.
    pub(super) fn load_files(&self, folders: &[PathBuf], diagnostics: &mut Diagnostics) {
        for model in self.models.values() {
            if let ScriptSource::File(file) = &model.script
                && let Err(wrong) = file.load(folders)
            {
                diagnostics.extend(wrong.clone());
            }
        }
    }

    /// True if there are no models.
    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    /// True if there is a model with this name.
    pub fn contains(&self, name: &str) -> bool {
        self.models.contains_key(name)
    }

    /// Diagnostic of a reference to a model that does not exist.
    pub fn unknown_model(&self, name: &str) -> Diagnostic {
        let wrong = Diagnostic::new(format!("unknown served model `{name}`"));
        match nearest(name, self.models.keys().map(String::as_str)) {
            Some(near) => wrong.help(format!("did you mean `{near}`?")),
            None => wrong.help("define it under `models` of the project, the suite or the case"),
        }
    }

    /// Opens the models for a conversation. Each starts with all its rules.
    pub fn open(&self) -> BTreeMap<String, ServedModel> {
        let open = |(name, source): (&String, &ModelSource)| {
            let script = source.script.script()?;
            let model = ServedModel {
                faults: source.faults.iter().map(|fault| fault.fault.clone()).collect(),
                ..ServedModel::new(Arc::new(LiveModel::new(ScriptedModel::new(script))))
            };
            Some((name.clone(), model))
        };
        self.models.iter().filter_map(open).collect()
    }

    /// The faults, each with the name of its model and its index there.
    pub fn faults(&self) -> impl Iterator<Item = (&str, usize, &PlacedFault)> {
        self.models.iter().flat_map(|(name, source)| {
            source.faults.iter().enumerate().map(move |(rule, fault)| (name.as_str(), rule, fault))
        })
    }
}

impl ScriptSource {
    fn script(&self) -> Option<Arc<ModelScript>> {
        match self {
            ScriptSource::Rules(script) => Some(script.clone()),
            ScriptSource::File(file) => file.script.get()?.as_ref().ok().cloned(),
        }
    }
}

impl ScriptFile {
    fn load(&self, folders: &[PathBuf]) -> &Result<Arc<ModelScript>, Diagnostics> {
        self.script.get_or_init(|| {
            let path = folders.iter().map(|folder| folder.join(&self.path)).find(|path| path.is_file());
            let Some(path) = path else {
                let wrong = Diagnostic::new(format!("the script `{}` was not found", self.path));
                return Err(wrong.at(self.place.clone()).into());
            };
            ModelScript::load(&path).map(Arc::new)
        })
    }
}

/// Decodes the script of a model; `None` if the entry has none. An error is already reported.
fn read_source(
    name: &str,
    entry: NodeView<'_>,
    map: &MapView<'_>,
    diagnostics: &mut Diagnostics,
) -> Result<Option<ScriptSource>, ()> {
    match (map.text("script"), map.has("rules")) {
        (Some(_), true) => {
            let wrong = Diagnostic::new(format!("the model `{name}` has a `script` and `rules`; use one"));
            diagnostics.push(wrong.at(map.place()));
            Err(())
        }
        (Some(path), false) => Ok(Some(ScriptSource::File(ScriptFile {
            path: path.to_string(),
            place: map.place_of("script").unwrap_or_else(|| map.place()),
            script: Arc::default(),
        }))),
        (None, true) => match ModelScript::from_node(name, &script_node(entry.node), entry.source) {
            Ok(script) => Ok(Some(ScriptSource::Rules(Arc::new(script)))),
            Err(wrong) => {
                diagnostics.extend(wrong);
                Err(())
            }
        },
        (None, false) => Ok(None),
    }
}

/// Returns the part of an entry that is a script.
fn script_node(entry: &DocumentNode) -> DocumentNode {
    let mut node = entry.clone();
    if let NodeValue::Map(entries) = &mut node.value {
        entries.retain(|entry| matches!(&*entry.key.text, "rules" | "use"));
    }
    node
}

fn read_faults(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Vec<PlacedFault> {
    let entries = map.list("faults").into_iter().flatten().filter_map(|view| view.map(&MODEL_FAULT));
    let read = |entry: MapView<'_>| {
        let trigger = match read_trigger(&entry, diagnostics)? {
            CallSelection::Nth(number) => FaultTrigger::Nth(number),
            CallSelection::Every(number) => FaultTrigger::Every(number),
            CallSelection::Rate { seed, rate } => FaultTrigger::Rate { seed, rate },
        };
        let kind = read_fault_kind(entry.get("do")?, diagnostics)?;
        Some(PlacedFault { place: entry.place(), fault: ModelFault { trigger, kind } })
    };
    entries.filter_map(read).collect()
}

fn read_fault_kind(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Option<FaultKind> {
    if let Some(word) = view.text() {
        return Some(match word {
            "rate_limit" => FaultKind::RateLimit { retry_after: None },
            "overloaded" => FaultKind::Overloaded,
            "http" => FaultKind::Http(DEFAULT_HTTP_STATUS),
            "timeout" => FaultKind::Timeout,
            "disconnect" => FaultKind::Disconnect,
            "lost_answer" => FaultKind::LostAnswer,
            "truncate" => FaultKind::Truncate,
            "empty" => FaultKind::Empty,
            "garbage" => FaultKind::Garbage,
            "malformed_arguments" => FaultKind::MalformedArguments,
            _ => return None,
        });
    }
    let map = view.map(&MODEL_FAULT_ACTION)?;
    let time = |key: &str| map.integer(key).map(from_millis);
    let limited = |delay: Duration| FaultKind::RateLimit { retry_after: Some(delay) };
    let kinds = [
        time("delay_ms").map(FaultKind::Delay),
        time("rate_limit_ms").map(limited),
        map.integer("http").and_then(|status| u16::try_from(status).ok()).map(FaultKind::Http),
    ];
    let mut kinds = kinds.into_iter().flatten();
    match (kinds.next(), kinds.next()) {
        (Some(kind), None) => Some(kind),
        _ => {
            diagnostics.push(Diagnostic::new("`do` needs exactly one fault").at(map.place()));
            None
        }
    }
}

/// True if a model may have this name, which variables contain.
fn is_model_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}
