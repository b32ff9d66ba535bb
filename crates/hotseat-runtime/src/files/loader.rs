//! Finds and reads the files of an agent, each once, and collects what is wrong with them.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_document::{
    Diagnostic, Diagnostics, Kind, Map, Node, Place, Shape, Source, View, check, nearest, yaml,
};

use super::shape::{AGENT, TASK, WORKFLOW};
use super::{task, workflow};
use crate::definition::{Task, Workflow};
use crate::ids::{AgentId, slug};

/// What a name can stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    Task,
    Workflow,
    Agent,
}

impl Sort {
    pub(super) fn word(self) -> &'static str {
        match self {
            Sort::Task => "task",
            Sort::Workflow => "workflow",
            Sort::Agent => "agent",
        }
    }

    /// The folder in which files of this sort are looked for by name.
    fn folder(self) -> &'static str {
        match self {
            Sort::Task => "tasks",
            Sort::Workflow => "workflows",
            Sort::Agent => "agents",
        }
    }
}

/// The file in which an agent is looked for when a folder is named.
const IN_FOLDER: &str = "agent.yaml";
const ENDINGS: [&str; 2] = ["yaml", "yml"];

/// Where a file stands, and so where its references lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) file: PathBuf,
    /// Paths begin here: the folder of the file.
    pub(super) folder: PathBuf,
    /// Names are looked for below this: the folder of the file, or the one above `agents`, `tasks` and `workflows`.
    pub(super) base: PathBuf,
    /// The agent whose file it is.
    pub(super) owner: Option<AgentId>,
}

impl Site {
    fn of(file: &Path) -> Site {
        let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
        let is_sorted = [Sort::Task, Sort::Workflow, Sort::Agent]
            .iter()
            .any(|sort| folder.file_name().is_some_and(|name| name == sort.folder()));
        let base = match folder.parent() {
            Some(above) if is_sorted => above.to_path_buf(),
            _ => folder.clone(),
        };
        Site { file: file.to_path_buf(), folder, base, owner: None }
    }

    /// The name of the file, without its ending.
    pub(super) fn stem(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The script that stands beside the file of an agent.
    pub(super) fn script(&self) -> Option<PathBuf> {
        let names = match self.file.file_name().is_some_and(|name| name == IN_FOLDER) {
            true => vec!["script.yaml".to_owned(), "script.yml".to_owned()],
            false => ENDINGS.iter().map(|ending| format!("{}.script.{ending}", self.stem())).collect(),
        };
        names.into_iter().map(|name| self.folder.join(name)).find(|path| path.is_file())
    }
}

/// A mapping that was read, with the file it stands in.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) source: Arc<Source>,
    pub(super) node: Node,
    pub(super) site: Site,
}

/// An agent that is still to be decoded.
pub(super) struct Found {
    pub(super) document: Document,
    pub(super) id: AgentId,
    /// The agent within whose file it is written, if it has no file of its own.
    pub(super) within: Option<AgentId>,
}

/// Reads files, each once.
#[derive(Default)]
pub(super) struct Loader {
    pub(super) mistakes: Diagnostics,
    /// The agents that were referred to and not decoded yet.
    pub(super) queue: VecDeque<Found>,
    agents: BTreeMap<PathBuf, Option<AgentId>>,
    tasks: BTreeMap<PathBuf, Option<Arc<Task>>>,
    workflows: BTreeMap<PathBuf, Option<Arc<Workflow>>>,
    /// The workflows that are being read, outermost first.
    open: Vec<PathBuf>,
    named_tasks: BTreeMap<String, (Arc<Task>, Option<Place>)>,
    named_workflows: BTreeMap<String, (Arc<Workflow>, Option<Place>)>,
    named_agents: BTreeMap<String, Option<Place>>,
    /// The names of the files, in the order in which they were read.
    read: Vec<Arc<str>>,
}

impl Loader {
    /// The agent at a path that a person gave: a file, or a folder with one.
    pub(super) fn root(&mut self, path: &Path) -> Option<AgentId> {
        let Some(file) = existing(path, Sort::Agent) else {
            let shown = path.display();
            let help = format!("an agent is a file, or a folder that holds `{IN_FOLDER}`");
            self.mistakes.push(Diagnostic::new(format!("there is no agent at {shown}")).help(help));
            return None;
        };
        self.agent_file(&shortest(file))
    }

    /// What is wrong, file by file in the order in which they were read, and each in the order of its text.
    pub(super) fn mistakes(self) -> Diagnostics {
        let mut all: Vec<Diagnostic> = self.mistakes.into_iter().collect();
        all.sort_by_key(|mistake| {
            let place = mistake.place.as_ref();
            let file = place.and_then(|place| self.read.iter().position(|name| **name == *place.source.name));
            // Scripts and the like come behind the files that name them.
            (place.is_some(), file.unwrap_or(usize::MAX), place.map(|place| place.span.start))
        });
        let mut sorted = Diagnostics::new();
        sorted.extend(all);
        sorted
    }

    /// Adds a mistake, unless something within the place is wrong already.
    pub(super) fn mistake(&mut self, place: Place, message: impl Into<String>) {
        self.wrong(Diagnostic::new(message).at(place));
    }

    /// The same for a mistake with more than words.
    pub(super) fn wrong(&mut self, mistake: Diagnostic) {
        let known = mistake.place.as_ref().is_some_and(|place| self.mistakes.any_within(place));
        if !known {
            self.mistakes.push(mistake);
        }
    }

    /// The task that a view names or is.
    pub(super) fn task(&mut self, view: View<'_>, name: &str, site: &Site) -> Option<Arc<Task>> {
        let Some(reference) = view.text() else {
            return Some(task::read(self, &view.map(&TASK)?, name, site));
        };
        let path = self.find(Sort::Task, reference, view.place(), site)?;
        let key = canonical(&path);
        if let Some(known) = self.tasks.get(&key) {
            return known.clone();
        }
        let document = self.document(&path, &TASK);
        let task = document.as_ref().and_then(|document| {
            let map = Map::of(&document.node, &document.source, &TASK)?;
            Some(task::read(self, &map, &document.site.stem(), &document.site))
        });
        self.tasks.insert(key, task.clone());
        task
    }

    /// The workflow that a view names or is.
    pub(super) fn workflow(&mut self, view: View<'_>, name: &str, site: &Site) -> Option<Arc<Workflow>> {
        let Some(reference) = view.text() else {
            return Some(workflow::read(self, &view.map(&WORKFLOW)?, name, site));
        };
        let path = self.find(Sort::Workflow, reference, view.place(), site)?;
        let key = canonical(&path);
        if let Some(known) = self.workflows.get(&key) {
            return known.clone();
        }
        if self.open.contains(&key) {
            self.mistake(
                view.place(),
                format!("the workflow `{reference}` runs within itself, and would never end"),
            );
            return None;
        }
        self.open.push(key.clone());
        let document = self.document(&path, &WORKFLOW);
        let workflow = document.as_ref().and_then(|document| {
            let map = Map::of(&document.node, &document.source, &WORKFLOW)?;
            Some(workflow::read(self, &map, &document.site.stem(), &document.site))
        });
        self.open.pop();
        self.workflows.insert(key, workflow.clone());
        workflow
    }

    /// The agent that a view names or is. It is decoded later.
    pub(super) fn agent(&mut self, view: View<'_>, site: &Site) -> Option<AgentId> {
        let Some(reference) = view.text() else {
            let map = view.map(&AGENT)?;
            let id = self.agent_id(&map, site)?;
            let document =
                Document { source: view.source.clone(), node: view.node.clone(), site: site.clone() };
            self.queue.push_back(Found { document, id: id.clone(), within: site.owner.clone() });
            return Some(id);
        };
        let path = self.find(Sort::Agent, reference, view.place(), site)?;
        self.agent_file(&path)
    }

    fn agent_file(&mut self, path: &Path) -> Option<AgentId> {
        let key = canonical(path);
        if let Some(known) = self.agents.get(&key) {
            return known.clone();
        }
        let found = self.document(path, &AGENT).and_then(|document| {
            let map = Map::of(&document.node, &document.source, &AGENT)?;
            let id = self.agent_id(&map, &document.site)?;
            Some(Found { document, id, within: None })
        });
        let id = found.as_ref().map(|found| found.id.clone());
        self.agents.insert(key, id.clone());
        self.queue.extend(found);
        id
    }

    /// The id of an agent, which no other may have.
    fn agent_id(&mut self, map: &Map<'_>, site: &Site) -> Option<AgentId> {
        let name = map.text("name").map_or_else(|| site.stem(), str::to_owned);
        let place = map.place_of("name").unwrap_or_else(|| map.place());
        let id = self.id(Sort::Agent, &name, &place);
        if let Some(first) = self.named_agents.get(&id).cloned() {
            self.doubled(Sort::Agent, &name, Some(place), first);
            return None;
        }
        self.named_agents.insert(id.clone(), Some(place));
        Some(id.into())
    }

    /// Takes a task that was decoded; no other may have its id.
    pub(super) fn add_task(&mut self, task: Task, place: Place) -> Arc<Task> {
        let (id, task) = (self.id(Sort::Task, &task.name, &place), Arc::new(task));
        match self.named_tasks.get(&id).cloned() {
            Some((known, _)) if known == task => {}
            Some((_, first)) => self.doubled(Sort::Task, &task.name, Some(place), first),
            None => drop(self.named_tasks.insert(id, (task.clone(), Some(place)))),
        }
        task
    }

    /// Takes a workflow that was decoded; no other may have its id.
    pub(super) fn add_workflow(&mut self, workflow: Workflow, place: Place) -> Arc<Workflow> {
        let (id, workflow) = (self.id(Sort::Workflow, &workflow.name, &place), Arc::new(workflow));
        match self.named_workflows.get(&id).cloned() {
            Some((known, _)) if known == workflow => {}
            Some((_, first)) => self.doubled(Sort::Workflow, &workflow.name, Some(place), first),
            None => drop(self.named_workflows.insert(id, (workflow.clone(), Some(place)))),
        }
        workflow
    }

    fn id(&mut self, sort: Sort, name: &str, place: &Place) -> String {
        let id = slug(name);
        if id.is_empty() {
            self.mistake(place.clone(), format!("the name of the {} has no letter or digit", sort.word()));
        }
        id
    }

    fn doubled(&mut self, sort: Sort, name: &str, place: Option<Place>, first: Option<Place>) {
        let message = format!("two different {}s are called `{}`", sort.word(), slug(name));
        let mut mistake = Diagnostic::new(message).help("give one of them another `name`");
        mistake.place = place;
        mistake.also.extend(first.map(|first| (first, "the first".to_owned())));
        self.wrong(mistake);
    }

    /// Reads a file and checks it against a shape. None if there is nothing to go on with.
    pub(super) fn document(&mut self, path: &Path, shape: &'static Shape) -> Option<Document> {
        let source = self.source(path, None)?;
        let node = match yaml::parse(&source) {
            Ok(node) => node,
            Err(mistakes) => {
                self.mistakes.extend(mistakes);
                return None;
            }
        };
        check(&node, &Kind::Shape(shape), &source, &mut self.mistakes);
        Some(Document { source, node, site: Site::of(path) })
    }

    /// The text of a file. `named` is where it is named.
    pub(super) fn source(&mut self, path: &Path, named: Option<Place>) -> Option<Arc<Source>> {
        let shown: Arc<str> = path.display().to_string().into();
        match std::fs::read_to_string(path) {
            Ok(text) => {
                self.read.push(shown.clone());
                Some(Source::new(shown, text, 1))
            }
            Err(error) => {
                let mistake = Diagnostic::new(format!("{shown} cannot be read: {error}"));
                self.mistakes.push(Diagnostic { place: named, ..mistake });
                None
            }
        }
    }

    /// The file that a reference leads to.
    fn find(&mut self, sort: Sort, reference: &str, place: Place, site: &Site) -> Option<PathBuf> {
        let is_path = reference.contains(['/', '\\'])
            || reference.starts_with('.')
            || ENDINGS.iter().any(|ending| reference.ends_with(&format!(".{ending}")));
        let named = site.base.join(sort.folder());
        let wanted = if is_path { site.folder.join(reference) } else { named.join(reference) };
        if let Some(file) = existing(&wanted, sort) {
            return Some(shortest(file));
        }
        let message = format!("there is no {} `{reference}`", sort.word());
        let has_ending =
            ENDINGS.iter().any(|ending| wanted.extension().is_some_and(|found| found == *ending));
        let file = if has_ending { wanted } else { wanted.with_added_extension(ENDINGS[0]) };
        let mut help = format!("it is looked for at {}", tidy(&file).display());
        let known = if is_path { Vec::new() } else { names_in(&named) };
        if let Some(near) = nearest(reference, known.iter().map(String::as_str)) {
            help = format!("did you mean `{near}`?");
        } else if !known.is_empty() {
            help.push_str(&format!("; there are `{}`", known.join("`, `")));
        }
        self.wrong(Diagnostic::new(message).at(place).help(help));
        None
    }
}

/// The file that a path means: itself, with an ending, or in the folder that it is.
fn existing(path: &Path, sort: Sort) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_path_buf());
    }
    let in_folder = (sort == Sort::Agent).then(|| path.join(IN_FOLDER));
    let with_ending = ENDINGS.iter().map(|ending| path.with_added_extension(ending));
    in_folder.into_iter().chain(with_ending).find(|path| path.is_file())
}

/// A path that is the same for the same file.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// The names by which the files of a folder can be referred to.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.path();
            let is_named =
                path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
                    && !path.file_stem()?.to_string_lossy().ends_with(".script");
            let is_folder = path.join(IN_FOLDER).is_file();
            let name = if is_folder { path.file_name()? } else { path.file_stem()? };
            (is_named || is_folder).then(|| name.to_string_lossy().into_owned())
        })
        .collect();
    names.sort();
    names
}

/// The tidy form of the path of a file, unless it leads elsewhere, as it may behind a link.
fn shortest(file: PathBuf) -> PathBuf {
    let tidied = tidy(&file);
    if canonical(&tidied) == canonical(&file) { tidied } else { file }
}

/// A path without `a/..` and `./`, as far as that can be seen from its text.
fn tidy(path: &Path) -> PathBuf {
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
