//! Served models of cases: decoded from three layers (project, suite, case), and opened for a conversation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, MapView, NodeValue, NodeView, SourceSpan, nearest,
};
use hotseat_model::script::{ModelScript, ScriptedModel};
use hotseat_model::serve::{
    CassetteFile, FaultKind, ModelCassette, ModelFault, ModelRelay, RecordTarget, ReplaySource, ServedModel,
    ServedSource, TextCleaner,
};
use hotseat_model::{LiveModel, Secret};

use super::limits::from_millis;
use super::mcp::{is_service_name, read_trigger};
use super::models_shape::{MODEL_FAULT, MODEL_FAULT_ACTION, MODEL_RELAY, MODEL_REPLAY, MODEL_SOURCE};
use super::variables::diagnostic_at;

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
    replies: ReplySource,
    faults: Vec<PlacedFault>,
}

/// Source of the replies of a model.
#[derive(Debug, Clone)]
enum ReplySource {
    Rules(Arc<ModelScript>),
    Script(Arc<ModelFile<ModelScript>>),
    Relay { relay: Arc<ModelRelay>, record: Option<String>, ignored: Vec<String> },
    Replay { recording: Arc<ModelFile<ModelCassette>>, ignored: Vec<String> },
}

/// A file with a script or a recording, read once.
#[derive(Debug)]
struct ModelFile<T> {
    path: String,
    place: SourceSpan,
    content: OnceLock<Result<Arc<T>, Diagnostics>>,
}

/// What models need to be opened for a conversation.
pub struct ModelOpening<'a> {
    /// Name of the conversation in recordings.
    pub lane: String,
    /// Folder of the project file.
    pub root: &'a Path,
    /// Files that are recorded to.
    pub cassettes: &'a CassetteFiles,
    /// Removes secrets from recordings.
    pub cleaner: TextCleaner,
    /// What relays do, regardless of their settings.
    pub relays: Option<RelayMode>,
}

/// What the relays of a case do if the run has cassettes.
#[derive(Debug, Clone)]
pub enum RelayMode {
    /// Record to this file.
    Record(Arc<CassetteFile>),
    /// Answer from this recording.
    Replay(Arc<ModelCassette>),
}

/// The files that conversations of a run record to.
#[derive(Debug, Clone, Default)]
pub struct CassetteFiles(Arc<Mutex<BTreeMap<PathBuf, Arc<CassetteFile>>>>);

impl CassetteFiles {
    fn at(&self, path: PathBuf) -> Arc<CassetteFile> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.entry(path.clone()).or_insert_with(|| Arc::new(CassetteFile::new(path))).clone()
    }
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
            let Some(map) = entry.tagged(&MODEL_SOURCE) else { continue };
            if !is_service_name(name) {
                let message = format!("`{name}` is not a name of a model: use letters, digits, `-` and `_`");
                diagnostics.push(Diagnostic::new(message).at(place));
                continue;
            }
            let faults = read_faults(&map, diagnostics);
            let source = match read_source(name, entry, &map, diagnostics) {
                Ok(Some(replies)) => ModelSource { replies, faults },
                Ok(None) => {
                    let Some(inherited) = settings.models.get(name) else {
                        let wrong = Diagnostic::new(format!(
                            "the model `{name}` needs a `script`, `rules` or a `type`"
                        ));
                        diagnostics.push(wrong.at(place));
                        continue;
                    };
                    let mut source = inherited.clone();
                    source.faults.extend(faults);
                    source
                }
                Err(()) => continue,
            };
            source.check_faults(diagnostics);
            settings.models.insert(name.to_string(), source);
        }
        Arc::new(settings)
    }

    /// Loads scripts and recordings in files, from the first folder that contains them.
    pub(super) fn load_files(&self, folders: &[PathBuf], diagnostics: &mut Diagnostics) {
        for model in self.models.values() {
            let wrong = match &model.replies {
                ReplySource::Script(file) => file.load("script", folders, ModelScript::load).err(),
                ReplySource::Replay { recording, .. } => {
                    recording.load("recording", folders, read_cassette).err()
                }
                ReplySource::Rules(_) | ReplySource::Relay { .. } => None,
            };
            diagnostics.extend(wrong.unwrap_or_default());
        }
    }

    /// True if there are no models.
    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    /// True if a model is relayed to a provider.
    pub fn has_relays(&self) -> bool {
        self.models.values().any(|source| matches!(source.replies, ReplySource::Relay { .. }))
    }

    /// The names of the models.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
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

    /// Opens the models for a conversation. Each starts with all its rules, or with its whole recording.
    pub fn open(&self, opening: &ModelOpening<'_>) -> BTreeMap<String, ServedModel> {
        let open = |(name, source): (&String, &ModelSource)| {
            let faults = source.faults.iter().map(|fault| fault.fault.clone()).collect();
            Some((name.clone(), ServedModel { source: source.replies.open(opening)?, faults }))
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

impl ModelSource {
    /// Rejects faults that only scripted models can have.
    fn check_faults(&self, diagnostics: &mut Diagnostics) {
        if let ReplySource::Rules(_) | ReplySource::Script(_) = &self.replies {
            return;
        }
        for fault in self.faults.iter().filter(|fault| fault.fault.kind.changes_content()) {
            let kind = &fault.fault.kind;
            let message =
                format!("the fault `{kind}` changes a reply, which only models with a script can do");
            diagnostics.push(Diagnostic::new(message).at(fault.place.clone()));
        }
    }
}

impl ReplySource {
    fn open(&self, opening: &ModelOpening<'_>) -> Option<ServedSource> {
        let script = match self {
            ReplySource::Rules(script) => script.clone(),
            ReplySource::Script(file) => file.content()?,
            ReplySource::Relay { relay, record, ignored } => {
                let file = match &opening.relays {
                    Some(RelayMode::Replay(cassette)) => {
                        return Some(ServedSource::Replay(opening.replay(cassette.clone(), ignored)));
                    }
                    Some(RelayMode::Record(file)) => Some(file.clone()),
                    None => record.as_ref().map(|path| opening.cassettes.at(opening.root.join(path))),
                };
                let target = file.map(|file| RecordTarget {
                    file,
                    lane: opening.lane.clone(),
                    cleaner: opening.cleaner.clone(),
                });
                return Some(ServedSource::Relay(relay.clone(), target));
            }
            ReplySource::Replay { recording, ignored } => {
                return Some(ServedSource::Replay(opening.replay(recording.content()?, ignored)));
            }
        };
        Some(ServedSource::Model(Arc::new(LiveModel::new(ScriptedModel::new(script)))))
    }
}

impl ModelOpening<'_> {
    fn replay(&self, cassette: Arc<ModelCassette>, ignored: &[String]) -> ReplaySource {
        let (lane, cleaner) = (self.lane.clone(), self.cleaner.clone());
        ReplaySource { cassette, lane, ignored: ignored.to_vec(), cleaner }
    }
}

impl<T> ModelFile<T> {
    fn new(map: &MapView<'_>, key: &str, path: &str) -> Arc<ModelFile<T>> {
        let place = map.place_of(key).unwrap_or_else(|| map.place());
        Arc::new(ModelFile { path: path.to_string(), place, content: OnceLock::new() })
    }

    fn content(&self) -> Option<Arc<T>> {
        self.content.get()?.as_ref().ok().cloned()
    }

    fn load(
        &self,
        what: &str,
        folders: &[PathBuf],
        read: impl FnOnce(&Path) -> Result<T, Diagnostics>,
    ) -> Result<(), Diagnostics> {
        let content = self.content.get_or_init(|| {
            let path = folders.iter().map(|folder| folder.join(&self.path)).find(|path| path.is_file());
            let Some(path) = path else {
                let wrong = Diagnostic::new(format!("the {what} `{}` was not found", self.path));
                return Err(wrong.at(self.place.clone()).into());
            };
            read(&path).map(Arc::new)
        });
        content.as_ref().map(drop).map_err(Clone::clone)
    }
}

/// Reads the recording of a relay.
fn read_cassette(path: &Path) -> Result<ModelCassette, Diagnostics> {
    let wrong = |message: String| Diagnostic::new(format!("{}: {message}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let cassette = ModelCassette::parse(&text);
    cassette.map_err(|(line, message)| wrong(format!("line {line}: {message}")).into())
}

/// Decodes the source of the replies of a model; `None` if the entry has none. An error is already reported.
fn read_source(
    name: &str,
    entry: NodeView<'_>,
    map: &MapView<'_>,
    diagnostics: &mut Diagnostics,
) -> Result<Option<ReplySource>, ()> {
    if std::ptr::eq(map.shape(), &MODEL_RELAY) {
        return read_relay(map, diagnostics).map(Some);
    }
    if std::ptr::eq(map.shape(), &MODEL_REPLAY) {
        let recording = ModelFile::new(map, "file", map.text("file").unwrap_or_default());
        let ignored = ignored_members(map, diagnostics)?;
        return Ok(Some(ReplySource::Replay { recording, ignored }));
    }
    if map.has("use") && !map.has("rules") {
        let message = "`use` belongs to `rules`; a script in a file has its own";
        diagnostics.push(diagnostic_at(map.key_place("use"), message));
        return Err(());
    }
    match (map.text("script"), map.has("rules")) {
        (Some(_), true) => {
            let wrong = Diagnostic::new(format!("the model `{name}` has a `script` and `rules`; use one"));
            diagnostics.push(wrong.at(map.place()));
            Err(())
        }
        (Some(path), false) => Ok(Some(ReplySource::Script(ModelFile::new(map, "script", path)))),
        (None, true) => match ModelScript::from_node(name, &script_node(entry.node), entry.source) {
            Ok(script) => Ok(Some(ReplySource::Rules(Arc::new(script)))),
            Err(wrong) => {
                diagnostics.extend(wrong);
                Err(())
            }
        },
        (None, false) => Ok(None),
    }
}

/// JSON Pointers to members of requests that may differ from the recording. An error is already reported.
fn ignored_members(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Result<Vec<String>, ()> {
    let mut ignored = Vec::new();
    for entry in map.list("ignore").into_iter().flatten() {
        let pointer = entry.text().unwrap_or_default();
        if !pointer.starts_with('/') {
            let wrong = Diagnostic::new(format!("`{pointer}` is no JSON Pointer")).at(entry.place());
            diagnostics.push(wrong.help(format!("did you mean `/{pointer}`?")));
            return Err(());
        }
        ignored.push(pointer.to_string());
    }
    Ok(ignored)
}

fn read_relay(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Result<ReplySource, ()> {
    let headers = map.get("headers").and_then(NodeView::entries).into_iter().flatten();
    let headers: Vec<(String, Secret)> =
        headers.filter_map(|(name, _, value)| Some((name.to_string(), Secret::new(value.text()?)))).collect();
    let record = map.text("record").map(str::to_string);
    let ignored = ignored_members(map, diagnostics)?;
    match ModelRelay::new(map.text("url").unwrap_or_default(), &headers) {
        Ok(relay) => Ok(ReplySource::Relay { relay: Arc::new(relay), record, ignored }),
        Err(error) => {
            diagnostics.push(Diagnostic::new(error.message).at(map.place()));
            Err(())
        }
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
        let trigger = read_trigger(&entry, diagnostics)?;
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
