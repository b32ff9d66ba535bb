//! Finds and reads the files of an agent, each once, and collects their diagnostics.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, Kind, MapView, NodeView, Shape, SourceSpan, SourceText, check,
    nearest, nearest_or, source_from_bytes, yaml,
};
use hotseat_trace::named;

use super::shape::AGENT;
use crate::definition::{TaskDefinition, WorkflowDefinition};
use crate::ids::{AgentId, slug};

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) enum DefinitionKind {
        Task = "task",
        Workflow = "workflow",
        Agent = "agent",
    }
}

impl DefinitionKind {
    /// Folder that is searched for files of this kind.
    fn folder(self) -> &'static str {
        match self {
            DefinitionKind::Task => "tasks",
            DefinitionKind::Workflow => "workflows",
            DefinitionKind::Agent => "agents",
        }
    }
}

/// Name of the agent file in a folder.
const AGENT_FILE_NAME: &str = "agent.yaml";
const EXTENSIONS: [&str; 2] = ["yaml", "yml"];

/// Location of a file, which determines how its references are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileLocation {
    pub(super) file: PathBuf,
    /// Base folder for paths: the folder of the file.
    pub(super) folder: PathBuf,
    /// Base folder for names: the folder of the file, or the one above `agents`, `tasks` and `workflows`.
    pub(super) base: PathBuf,
    /// The agent that owns the file.
    pub(super) owner: Option<AgentId>,
}

impl FileLocation {
    fn from_path(file: &Path) -> FileLocation {
        let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
        let in_kind_folder = [DefinitionKind::Task, DefinitionKind::Workflow, DefinitionKind::Agent]
            .iter()
            .any(|sort| folder.file_name().is_some_and(|name| name == sort.folder()));
        let base = match folder.parent() {
            Some(above) if in_kind_folder => above.to_path_buf(),
            _ => folder.clone(),
        };
        FileLocation { file: file.to_path_buf(), folder, base, owner: None }
    }

    /// Returns the file name without its extension.
    pub(super) fn stem(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the script beside an agent file.
    pub(super) fn script_path(&self) -> Option<PathBuf> {
        let names = match self.file.file_name().is_some_and(|name| name == AGENT_FILE_NAME) {
            true => vec!["script.yaml".to_owned(), "script.yml".to_owned()],
            false => EXTENSIONS.iter().map(|ending| format!("{}.script.{ending}", self.stem())).collect(),
        };
        names.into_iter().map(|name| self.folder.join(name)).find(|path| path.is_file())
    }
}

/// Mapping with its source file.
#[derive(Debug, Clone)]
pub(super) struct LoadedDocument {
    pub(super) source: Arc<SourceText>,
    pub(super) node: DocumentNode,
    pub(super) site: FileLocation,
}

/// Definitions by id, with their places.
type NamedDefinitions<T> = BTreeMap<String, (Arc<T>, SourceSpan)>;

/// Agent that has not been decoded yet.
pub(super) struct PendingAgent {
    pub(super) document: LoadedDocument,
    pub(super) id: AgentId,
    /// The agent in whose file this one is embedded.
    pub(super) parent: Option<AgentId>,
}

/// Reads files, each once.
#[derive(Default)]
pub(super) struct AgentLoader {
    pub(super) diagnostics: Diagnostics,
    /// Agents that are referenced and not decoded yet.
    pub(super) queue: VecDeque<PendingAgent>,
    agents: BTreeMap<PathBuf, Option<AgentId>>,
    pub(super) tasks: BTreeMap<PathBuf, Option<Arc<TaskDefinition>>>,
    pub(super) workflows: BTreeMap<PathBuf, Option<Arc<WorkflowDefinition>>>,
    /// Workflows that are being decoded, outermost first.
    pub(super) open_workflows: Vec<PathBuf>,
    named_tasks: NamedDefinitions<TaskDefinition>,
    named_workflows: NamedDefinitions<WorkflowDefinition>,
    named_agents: BTreeMap<String, SourceSpan>,
    /// Names of the files, in reading order.
    pub(super) read_files: Vec<Arc<str>>,
    /// Their texts.
    pub(super) written: String,
}

impl AgentLoader {
    /// Loads the agent at a path given by the user: a file, or a folder that contains one.
    pub(super) fn load_root(&mut self, path: &Path) -> Option<AgentId> {
        let Some(file) = existing_file(path, DefinitionKind::Agent) else {
            let names = path.parent().map(reference_names).unwrap_or_default();
            let written = path.file_name().unwrap_or_default().to_string_lossy();
            let help = nearest_or(&written, names.iter().map(String::as_str), || {
                format!("an agent is a file, or a folder that contains `{AGENT_FILE_NAME}`")
            });
            let message = format!("no agent found at {}", path.display());
            self.diagnostics.push(Diagnostic::new(message).help(help));
            return None;
        };
        self.queue_agent_file(&simplify(file))
    }

    /// Returns the diagnostics, ordered by file (in reading order) and by position.
    pub(super) fn into_diagnostics(self) -> Diagnostics {
        let mut all: Vec<Diagnostic> = self.diagnostics.into_iter().collect();
        all.sort_by_key(|mistake| {
            let place = mistake.place.as_ref();
            let file =
                place.and_then(|place| self.read_files.iter().position(|name| **name == *place.source.name));
            // Scripts and other files come after the files that name them.
            (place.is_some(), file.unwrap_or(usize::MAX), place.map(|place| place.span.start))
        });
        let mut sorted = Diagnostics::new();
        sorted.extend(all);
        sorted
    }

    /// Reports a problem, unless one was already reported within its range.
    pub(super) fn report(&mut self, place: SourceSpan, message: impl ToString) {
        self.report_diagnostic(Diagnostic::new(message).at(place));
    }

    /// Reports a diagnostic, unless one was already reported within its range.
    pub(super) fn report_diagnostic(&mut self, mistake: Diagnostic) {
        let known = mistake.place.as_ref().is_some_and(|place| self.diagnostics.any_within(place));
        if !known {
            self.diagnostics.push(mistake);
        }
    }

    /// Queues the agent that a view names or contains for decoding.
    pub(super) fn queue_agent(&mut self, view: NodeView<'_>, site: &FileLocation) -> Option<AgentId> {
        let Some(reference) = view.text() else {
            let map = view.map(&AGENT)?;
            let id = self.claim_agent_id(&map, site)?;
            let document =
                LoadedDocument { source: view.source.clone(), node: view.node.clone(), site: site.clone() };
            self.queue.push_back(PendingAgent { document, id: id.clone(), parent: site.owner.clone() });
            return Some(id);
        };
        let path = self.resolve_reference(DefinitionKind::Agent, reference, view.place(), site)?;
        self.queue_agent_file(&path)
    }

    fn queue_agent_file(&mut self, path: &Path) -> Option<AgentId> {
        let key = canonical(path);
        if let Some(known) = self.agents.get(&key) {
            return known.clone();
        }
        let found = self.load_document(path, &AGENT).and_then(|document| {
            let map = MapView::from_node(&document.node, &document.source, &AGENT)?;
            let id = self.claim_agent_id(&map, &document.site)?;
            Some(PendingAgent { document, id, parent: None })
        });
        let id = found.as_ref().map(|found| found.id.clone());
        self.agents.insert(key, id.clone());
        self.queue.extend(found);
        id
    }

    /// Returns the id of an agent and reports duplicates.
    fn claim_agent_id(&mut self, map: &MapView<'_>, site: &FileLocation) -> Option<AgentId> {
        let name = map.text("name").map_or_else(|| site.stem(), str::to_owned);
        let place = map.place_near("name");
        let id = self.id_from_name(DefinitionKind::Agent, &name, &place);
        if let Some(first) = self.named_agents.get(&id).cloned() {
            self.report_duplicate(DefinitionKind::Agent, &name, place, first);
            return None;
        }
        self.named_agents.insert(id.clone(), place);
        Some(id.into())
    }

    /// Registers a decoded task and reports duplicate ids.
    pub(super) fn add_task(&mut self, task: TaskDefinition, place: SourceSpan) -> Arc<TaskDefinition> {
        let task = Arc::new(task);
        self.add_named(DefinitionKind::Task, &task.name, &task, place, |loader| &mut loader.named_tasks);
        task
    }

    /// Registers a decoded workflow and reports duplicate ids.
    pub(super) fn add_workflow(
        &mut self,
        workflow: WorkflowDefinition,
        place: SourceSpan,
    ) -> Arc<WorkflowDefinition> {
        let workflow = Arc::new(workflow);
        let (sort, name) = (DefinitionKind::Workflow, &workflow.name);
        self.add_named(sort, name, &workflow, place, |loader| &mut loader.named_workflows);
        workflow
    }

    fn add_named<T: PartialEq>(
        &mut self,
        sort: DefinitionKind,
        name: &str,
        definition: &Arc<T>,
        place: SourceSpan,
        named: fn(&mut AgentLoader) -> &mut NamedDefinitions<T>,
    ) {
        let id = self.id_from_name(sort, name, &place);
        match named(self).get(&id).cloned() {
            Some((known, _)) if known == *definition => {}
            Some((_, first)) => self.report_duplicate(sort, name, place, first),
            None => drop(named(self).insert(id, (definition.clone(), place))),
        }
    }

    fn id_from_name(&mut self, sort: DefinitionKind, name: &str, place: &SourceSpan) -> String {
        let id = slug(name);
        if id.is_empty() {
            self.report(
                place.clone(),
                format!("the name of the {} contains no letter or digit", sort.name()),
            );
        }
        id
    }

    fn report_duplicate(&mut self, sort: DefinitionKind, name: &str, place: SourceSpan, first: SourceSpan) {
        let message = format!("two different {}s have the name `{}`", sort.name(), slug(name));
        let mistake = Diagnostic::new(message).help("give one of them another `name`");
        self.report_diagnostic(mistake.at(place).with_related(first, "the first"));
    }

    /// Returns the only key of a mapping among these. Reports a mapping that has none or several of them.
    pub(super) fn only_key(
        &mut self,
        map: &MapView<'_>,
        keys: &[&'static str],
        rule: &str,
        missing: impl FnOnce() -> String,
    ) -> Option<&'static str> {
        let given: Vec<&'static str> = keys.iter().copied().filter(|key| map.has(key)).collect();
        match given.as_slice() {
            [key] => return Some(key),
            [] => self.report(map.place(), missing()),
            [first, second, ..] => {
                let place = map.key_place(second).unwrap_or_else(|| map.place());
                self.report(place, format!("{rule}, but this one has `{first}` and `{second}`"));
            }
        }
        None
    }

    /// Reads a file and checks it against a shape. Returns `None` if decoding cannot continue.
    pub(super) fn load_document(&mut self, path: &Path, shape: &'static Shape) -> Option<LoadedDocument> {
        let source = self.read_source(path, None)?;
        let node = match yaml::parse(&source) {
            Ok(node) => node,
            Err(mistakes) => {
                self.diagnostics.extend(mistakes);
                return None;
            }
        };
        check(&node, &Kind::Shape(shape), &source, &mut self.diagnostics);
        Some(LoadedDocument { source, node, site: FileLocation::from_path(path) })
    }

    /// Reads the text of a file. `named` is the position that refers to it.
    pub(super) fn read_source(&mut self, path: &Path, named: Option<SourceSpan>) -> Option<Arc<SourceText>> {
        let shown: Arc<str> = path.display().to_string().into();
        match hotseat_document::read_file(path) {
            Ok(text) => {
                self.read_files.push(shown.clone());
                self.written += &String::from_utf8_lossy(&text);
                source_from_bytes(shown, text).map_err(|mistake| self.diagnostics.push(*mistake)).ok()
            }
            Err(error) => {
                let mistake = Diagnostic::new(format!("cannot read {shown}: {error}"));
                self.diagnostics.push(Diagnostic { place: named, ..mistake });
                None
            }
        }
    }

    /// Returns the file that a reference names.
    pub(super) fn resolve_reference(
        &mut self,
        sort: DefinitionKind,
        reference: &str,
        place: SourceSpan,
        site: &FileLocation,
    ) -> Option<PathBuf> {
        let is_path = reference.contains(['/', '\\'])
            || reference.starts_with('.')
            || EXTENSIONS.iter().any(|ending| reference.ends_with(&format!(".{ending}")));
        let named = site.base.join(sort.folder());
        let wanted = if is_path { site.folder.join(reference) } else { named.join(reference) };
        if let Some(file) = existing_file(&wanted, sort) {
            return Some(simplify(file));
        }
        let message = format!("unknown {} `{reference}`", sort.name());
        let has_extension =
            EXTENSIONS.iter().any(|ending| wanted.extension().is_some_and(|found| found == *ending));
        let file = if has_extension { wanted } else { wanted.with_added_extension(EXTENSIONS[0]) };
        let mut help = format!("expected at {}", normalise(&file).display());
        let known = if is_path { Vec::new() } else { reference_names(&named) };
        if let Some(near) = nearest(reference, known.iter().map(String::as_str)) {
            help = format!("did you mean `{near}`?");
        } else if !known.is_empty() {
            help.push_str(&format!("; available are `{}`", known.join("`, `")));
        }
        self.report_diagnostic(Diagnostic::new(message).at(place).help(help));
        None
    }
}

/// Returns the file for a path: itself, with an extension added, or the agent file in the folder.
fn existing_file(path: &Path, sort: DefinitionKind) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_path_buf());
    }
    let in_folder = (sort == DefinitionKind::Agent).then(|| path.join(AGENT_FILE_NAME));
    let with_extension = EXTENSIONS.iter().map(|ending| path.with_added_extension(ending));
    in_folder.into_iter().chain(with_extension).find(|path| path.is_file())
}

/// Returns a path that is identical for the same file.
pub(super) fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// Returns the names by which the files of a folder can be referenced.
fn reference_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.path();
            let is_named =
                path.extension().is_some_and(|ending| EXTENSIONS.iter().any(|known| ending == *known))
                    && !path.file_stem()?.to_string_lossy().ends_with(".script");
            let is_folder = path.join(AGENT_FILE_NAME).is_file();
            let name = if is_folder { path.file_name()? } else { path.file_stem()? };
            (is_named || is_folder).then(|| name.to_string_lossy().into_owned())
        })
        .collect();
    names.sort();
    names
}

/// Returns the normalised path of a file, unless symbolic links make it lead elsewhere.
fn simplify(file: PathBuf) -> PathBuf {
    let tidied = normalise(&file);
    if canonical(&tidied) == canonical(&file) { tidied } else { file }
}

/// Removes `a/..` and `./` from a path without accessing the file system.
fn normalise(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut tidied = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(tidied.components().next_back(), Some(Component::Normal(_))) => {
                tidied.pop();
            }
            other => tidied.push(other),
        }
    }
    if tidied.as_os_str().is_empty() { PathBuf::from(".") } else { tidied }
}
