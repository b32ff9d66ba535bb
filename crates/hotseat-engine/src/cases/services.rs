//! What MCP servers and served models of cases share: their layers, their files, and the calls that a fault selects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hotseat_document::{Diagnostic, Diagnostics, MapView, NodeView, SourceSpan, TaggedShapes, nearest_or};
use hotseat_mcp::FaultTrigger;

/// Services of one kind by name.
#[derive(Debug, Clone)]
pub struct Services<S> {
    pub(super) by_name: BTreeMap<String, S>,
}

/// A service of the test.
pub trait Service: Clone {
    /// Key of the services in files.
    const KEY: &'static str;
    /// What one is called under this key.
    const LABEL: &'static str;
    /// What one is called elsewhere.
    const NOUN: &'static str;
    /// Shapes of an entry.
    const SHAPES: &'static TaggedShapes;
    /// True if this build can serve them. Otherwise the feature of the crate `hotseat` with the name of the key is missing.
    const IS_AVAILABLE: bool;

    /// Decodes an entry, which may change the service of that name in the layers above.
    fn read(entry: ServiceEntry<'_>, above: &Services<Self>, diagnostics: &mut Diagnostics) -> Option<Self>;

    /// Loads its file, from the first folder that has it.
    fn load_file(&self, folders: &[PathBuf], diagnostics: &mut Diagnostics);

    /// Returns its file, if one was loaded: the path as written, and the file.
    fn file(&self) -> Option<(&str, &Path)>;
}

/// An entry of a layer.
pub struct ServiceEntry<'n> {
    pub(super) name: &'n str,
    pub(super) place: SourceSpan,
    pub(super) view: NodeView<'n>,
    pub(super) map: MapView<'n>,
}

impl<S> Default for Services<S> {
    fn default() -> Self {
        Services { by_name: BTreeMap::new() }
    }
}

impl<S: Service> Services<S> {
    /// Decodes the services of one layer (project, suite or case) and merges them onto those of the layer above.
    pub(super) fn read(
        view: Option<NodeView<'_>>,
        above: &Arc<Services<S>>,
        diagnostics: &mut Diagnostics,
    ) -> Arc<Services<S>> {
        let Some(view) = view else { return above.clone() };
        if !S::IS_AVAILABLE {
            let key = S::KEY;
            let missing = format!("`{key}` needs the feature `{key}` of the crate `hotseat`");
            let help = format!("add the feature `{key}` to the dependency `hotseat` in Cargo.toml");
            diagnostics.push(Diagnostic::new(missing).at(view.place()).help(help));
            return above.clone();
        }
        let mut services = (**above).clone();
        for (name, place, view) in view.entries().into_iter().flatten() {
            let Some(map) = view.tagged(S::SHAPES) else { continue };
            if !is_service_name(name) {
                let message =
                    format!("`{name}` is not a name of a {}: use letters, digits, `-` and `_`", S::LABEL);
                diagnostics.report(place, message);
                continue;
            }
            let entry = ServiceEntry { name, place, view, map };
            if let Some(service) = S::read(entry, above, diagnostics) {
                services.by_name.insert(name.to_string(), service);
            }
        }
        Arc::new(services)
    }

    /// Loads the files of services, from the first folder that has them.
    pub fn load_files(&self, folders: &[PathBuf], diagnostics: &mut Diagnostics) {
        self.by_name.values().for_each(|service| service.load_file(folders, diagnostics));
    }

    /// The loaded files, each with the path as written.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.by_name.values().filter_map(Service::file)
    }

    /// True if there are no services.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// True if there is a service with this name.
    pub fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The services with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &S)> {
        self.by_name.iter().map(|(name, service)| (name.as_str(), service))
    }

    /// Diagnostic of a reference to a service that does not exist.
    pub fn unknown(&self, name: &str) -> Diagnostic {
        let names = || self.by_name.keys().map(String::as_str);
        let help = nearest_or(name, names(), || match self.is_empty() {
            true => format!("define it under `{}` of the project, the suite or the case", S::KEY),
            false => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
        });
        Diagnostic::new(format!("unknown {} `{name}`", S::NOUN)).help(help)
    }
}

/// True if a service may have this name, which variables contain.
fn is_service_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// A file that a service needs, read once.
#[derive(Debug)]
pub(super) struct ServiceFile<T> {
    pub path: String,
    place: SourceSpan,
    found: OnceLock<PathBuf>,
    content: OnceLock<Result<Arc<T>, Diagnostics>>,
}

impl<T> ServiceFile<T> {
    /// The file under a key; `None` if the key is absent.
    pub fn read(map: &MapView<'_>, key: &str) -> Option<Arc<ServiceFile<T>>> {
        let path = map.text(key)?.to_string();
        let place = map.place_near(key);
        Some(Arc::new(ServiceFile { path, place, found: OnceLock::new(), content: OnceLock::new() }))
    }

    /// The path as written and the file, if it was loaded.
    pub fn found(&self) -> Option<(&str, &Path)> {
        Some((&self.path, self.found.get()?))
    }

    /// The content, if it could be loaded.
    pub fn content(&self) -> Option<&Arc<T>> {
        self.content.get()?.as_ref().ok()
    }

    /// Loads the content from the first folder that has the file.
    pub fn load(
        &self,
        folders: &[PathBuf],
        diagnostics: &mut Diagnostics,
        load: impl FnOnce(&Self, &Path) -> Result<T, Diagnostics>,
    ) {
        let content = self.content.get_or_init(|| {
            let found = folders.iter().map(|folder| folder.join(&self.path)).find(|path| path.is_file());
            let path = found.ok_or_else(|| self.wrong("was not found"))?;
            load(self, self.found.get_or_init(|| path)).map(Arc::new)
        });
        if let Err(wrong) = content {
            diagnostics.extend(wrong.clone());
        }
    }

    /// Reads a text of limited size. Fails if the file cannot be read, or is larger.
    pub fn text(&self, path: &Path, max_bytes: u64) -> Result<String, Diagnostics> {
        let unreadable = |error: std::io::Error| self.wrong(&format!("cannot be read: {error}"));
        if std::fs::metadata(path).map_err(unreadable)?.len() > max_bytes {
            return Err(self.wrong(&format!("is larger than {max_bytes} bytes")));
        }
        hotseat_document::read_text_file(path).map_err(unreadable)
    }

    /// Diagnostic of the file: its name, and what is wrong.
    pub fn wrong(&self, what: &str) -> Diagnostics {
        Diagnostic::new(format!("`{}` {what}", self.path)).at(self.place.clone()).into()
    }
}

/// Decodes the calls that a fault selects: `nth`, `every`, or `rate` with `seed`. The first one without any of them.
pub(super) fn read_trigger(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<FaultTrigger> {
    let whole = |key: &str| map.integer(key).and_then(|number| u64::try_from(number).ok());
    let trigger = match (whole("nth"), whole("every"), map.number("rate").and_then(|rate| rate.as_f64())) {
        (None, None, None) => FaultTrigger::Nth(1),
        (Some(nth), None, None) => FaultTrigger::Nth(nth),
        (None, Some(every), None) => FaultTrigger::Every(every),
        (None, None, Some(rate)) if rate > 0.0 && rate <= 1.0 => {
            FaultTrigger::Rate { seed: whole("seed").unwrap_or(0), rate }
        }
        (None, None, Some(_)) => {
            diagnostics.report(map.place_of("rate"), "`rate` must be more than 0 and at most 1");
            return None;
        }
        _ => {
            diagnostics.report(map.place(), "a fault has one of `nth`, `every` and `rate`");
            return None;
        }
    };
    if map.has("seed") && !map.has("rate") {
        diagnostics.report(map.key_place("seed"), "`seed` is used only with `rate`");
    }
    Some(trigger)
}

/// Returns the only fault of `do`, given those that its keys stand for.
pub(super) fn only_fault<F, const N: usize>(
    kinds: [Option<F>; N],
    map: &MapView<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<F> {
    let mut kinds = kinds.into_iter().flatten();
    let first = kinds.next().filter(|_| kinds.next().is_none());
    if first.is_none() {
        diagnostics.report(map.place(), "`do` needs exactly one fault");
    }
    first
}
