//! Served models of cases: decoded, and opened for a conversation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, MapView, NodeValue, NodeView, SourceSpan, TaggedShapes,
};
use hotseat_model::script::{ModelScript, ScriptedModel};
use hotseat_model::serve::{
    CassetteFile, FaultKind, ModelCassette, ModelFault, ModelRelay, RecordTarget, ReplaySource, ServedModel,
    ServedSource, TextCleaner,
};
use hotseat_model::{LiveModel, Secret};

use super::headers::read_header_texts;
use super::limits::from_millis;
use super::models_shape::{MODEL_FAULT, MODEL_FAULT_ACTION, MODEL_RELAY, MODEL_REPLAY, MODEL_SOURCE};
use super::services::{Service, ServiceEntry, ServiceFile, Services, only_fault, read_trigger};

/// Status of the fault `http`.
const DEFAULT_HTTP_STATUS: u16 = 500;

/// Maximum size of a recording.
const MAX_RECORDING_BYTES: u64 = 256 * 1024 * 1024;
/// Served models by name.
pub type ModelSettings = Services<ModelSource>;

/// A served model of the test.
#[derive(Debug, Clone)]
pub struct ModelSource {
    replies: ReplySource,
    faults: Vec<PlacedFault>,
}

/// Source of the replies of a model.
#[derive(Debug, Clone)]
enum ReplySource {
    Rules(Arc<ModelScript>),
    Script(Arc<ServiceFile<ModelScript>>),
    Relay { relay: Arc<ModelRelay>, record: Option<String>, ignored: Vec<String> },
    Replay { recording: Arc<ServiceFile<ModelCassette>>, ignored: Vec<String> },
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
    /// True if a model is relayed to a provider.
    pub fn has_relays(&self) -> bool {
        self.by_name.values().any(|source| matches!(source.replies, ReplySource::Relay { .. }))
    }

    /// Opens the models for a conversation. Each starts with all its rules, or with its whole recording.
    pub fn open(&self, opening: &ModelOpening<'_>) -> BTreeMap<String, ServedModel> {
        let open = |(name, source): (&String, &ModelSource)| {
            let faults = source.faults.iter().map(|fault| fault.fault.clone()).collect();
            Some((name.clone(), ServedModel { source: source.replies.open(opening)?, faults }))
        };
        self.by_name.iter().filter_map(open).collect()
    }

    /// The faults, each with the name of its model and its index there.
    pub fn faults(&self) -> impl Iterator<Item = (&str, usize, &PlacedFault)> {
        self.by_name.iter().flat_map(|(name, source)| {
            source.faults.iter().enumerate().map(move |(rule, fault)| (name.as_str(), rule, fault))
        })
    }
}

impl Service for ModelSource {
    const KEY: &'static str = "models";
    const LABEL: &'static str = "model";
    const NOUN: &'static str = "served model";
    const SHAPES: &'static TaggedShapes = &MODEL_SOURCE;
    const IS_AVAILABLE: bool = cfg!(feature = "models");

    fn read(entry: ServiceEntry<'_>, above: &ModelSettings, diagnostics: &mut Diagnostics) -> Option<Self> {
        let faults = read_faults(&entry.map, diagnostics);
        let source = match (read_source(&entry, diagnostics).ok()?, above.by_name.get(entry.name)) {
            (Some(replies), _) => ModelSource { replies, faults },
            (None, Some(inherited)) => {
                let faults = inherited.faults.iter().cloned().chain(faults).collect();
                ModelSource { replies: inherited.replies.clone(), faults }
            }
            (None, None) => {
                let message = format!("the model `{}` needs a `script`, `rules` or a `type`", entry.name);
                diagnostics.report(entry.place, message);
                return None;
            }
        };
        source.check_faults(diagnostics);
        Some(source)
    }

    fn load_file(&self, folders: &[PathBuf], diagnostics: &mut Diagnostics) {
        match &self.replies {
            ReplySource::Script(file) => file.load(folders, diagnostics, |_, path| ModelScript::load(path)),
            ReplySource::Replay { recording, .. } => recording.load(folders, diagnostics, load_cassette),
            ReplySource::Rules(_) | ReplySource::Relay { .. } => {}
        }
    }

    fn file(&self) -> Option<(&str, &Path)> {
        match &self.replies {
            ReplySource::Script(file) => file.found(),
            ReplySource::Replay { recording, .. } => recording.found(),
            ReplySource::Rules(_) | ReplySource::Relay { .. } => None,
        }
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
            diagnostics.report(fault.place.clone(), message);
        }
    }
}

impl ReplySource {
    fn open(&self, opening: &ModelOpening<'_>) -> Option<ServedSource> {
        let script = match self {
            ReplySource::Rules(script) => script.clone(),
            ReplySource::Script(file) => file.content()?.clone(),
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
                return Some(ServedSource::Replay(opening.replay(recording.content()?.clone(), ignored)));
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

fn load_cassette(file: &ServiceFile<ModelCassette>, path: &Path) -> Result<ModelCassette, Diagnostics> {
    let cassette = ModelCassette::parse(&file.text(path, MAX_RECORDING_BYTES)?);
    cassette.map_err(|error| file.wrong(&format!("is invalid: {error}")))
}

/// Decodes the source of the replies of a model; `None` if the entry has none. An error is already reported.
fn read_source(entry: &ServiceEntry<'_>, diagnostics: &mut Diagnostics) -> Result<Option<ReplySource>, ()> {
    let (name, map) = (entry.name, &entry.map);
    if std::ptr::eq(map.shape(), &MODEL_RELAY) {
        return read_relay(map, diagnostics).map(Some);
    }
    if std::ptr::eq(map.shape(), &MODEL_REPLAY) {
        let recording = ServiceFile::read(map, "file").ok_or(())?;
        let ignored = ignored_members(map, diagnostics)?;
        return Ok(Some(ReplySource::Replay { recording, ignored }));
    }
    if map.has("use") && !map.has("rules") {
        diagnostics.report(map.key_place("use"), "`use` belongs to `rules`; a script in a file has its own");
        return Err(());
    }
    match (ServiceFile::read(map, "script"), map.has("rules")) {
        (Some(_), true) => {
            let wrong = Diagnostic::new(format!("the model `{name}` has a `script` and `rules`; use one"));
            diagnostics.push(wrong.at(map.place()));
            Err(())
        }
        (Some(file), false) => Ok(Some(ReplySource::Script(file))),
        (None, true) => {
            match ModelScript::from_node(name, &script_node(entry.view.node), entry.view.source) {
                Ok(script) => Ok(Some(ReplySource::Rules(Arc::new(script)))),
                Err(wrong) => {
                    diagnostics.extend(wrong);
                    Err(())
                }
            }
        }
        (None, false) => Ok(None),
    }
}

/// JSON Pointers to members of requests that may differ from the recording. An error is already reported.
fn ignored_members(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Result<Vec<String>, ()> {
    let mut ignored = Vec::new();
    for entry in map.items("ignore") {
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
    let headers: Vec<(String, Secret)> = read_header_texts(map, diagnostics)
        .into_iter()
        .map(|(name, value)| (name.to_string(), Secret::new(value)))
        .collect();
    let record = map.text("record").map(str::to_string);
    let ignored = ignored_members(map, diagnostics)?;
    match ModelRelay::new(map.text("url").unwrap_or_default(), &headers) {
        Ok(relay) => Ok(ReplySource::Relay { relay: Arc::new(relay), record, ignored }),
        Err(error) => {
            diagnostics.report(map.place(), error.message);
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
    let entries = map.maps("faults", &MODEL_FAULT);
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
    only_fault(kinds, &map, diagnostics)
}
