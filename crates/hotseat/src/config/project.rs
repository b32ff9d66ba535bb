//! The project file: found by walking up, read with every mistake at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::shape::{PROJECT, TARGET};
use super::start::Start;
use super::target::{BoundTarget, TargetSettings, is_secret};
use crate::cases::{Block, Decoding, Environment, Inherited, Variables, interpolate, references};
use crate::session::Redactor;
use hotseat_document::{Diagnostic, Diagnostics, Kind, Map, Node, Source, View, check, yaml};

/// The names under which a project file is looked for, in this order.
pub const FILE_NAMES: [&str; 3] = ["hotseat.yaml", "hotseat.yml", "aguitest.config.yaml"];

/// A project: where it is and what its file says.
#[derive(Debug, Clone)]
pub struct Project {
    /// Folder of the project file; without one, the folder it was looked for in.
    pub root: PathBuf,
    /// The project file as it is shown to people, if there is one.
    pub file: Option<Arc<str>>,
    /// Globs of its suites, relative to `root`.
    pub suites: Vec<String>,
    /// How many conversations are held at once, if it says so.
    pub parallel: Option<usize>,
    /// Variables that it names as secrets.
    pub secrets: Vec<String>,
    /// What its target asserts of every case and turn.
    pub inherited: Inherited,
    /// How its agent is started, if Hotseat is to start it.
    pub start: Option<Start>,
    /// Settings of the target that no variable can change.
    pub target: Option<TargetSettings>,
    environment: Environment,
    redactor: Redactor,
    header_secrets: Vec<(String, String)>,
    document: Option<Arc<(Arc<Source>, Node)>>,
}

impl Project {
    /// The project file of a folder: the nearest one, walking up.
    pub fn find(folder: &Path) -> Option<PathBuf> {
        folder
            .ancestors()
            .find_map(|folder| FILE_NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file()))
    }

    /// A folder without a project file.
    pub fn without_file(root: PathBuf, environment: Environment) -> Project {
        Project {
            root,
            file: None,
            suites: default_suites(),
            parallel: None,
            secrets: Vec::new(),
            inherited: Inherited::default(),
            start: None,
            target: None,
            redactor: Redactor::new(named_secrets(&environment, &[])),
            header_secrets: Vec::new(),
            environment,
            document: None,
        }
    }

    /// Reads a project file that is shown as `shown`.
    ///
    /// # Errors
    /// Every mistake of the file.
    pub fn read(path: &Path, shown: &str, environment: Environment) -> Result<Project, Diagnostics> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Diagnostics::from(Diagnostic::new(format!("cannot read project file {shown}: {error}")))
        })?;
        let source = Source::new(shown, text, 1);
        let mut node = yaml::parse(&source)?;
        let mut mistakes = Diagnostics::new();
        check(&node, &Kind::Shape(&PROJECT), &source, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        // Variables of the environment are filled in now; those of hooks when a case has them.
        let given = BTreeMap::new();
        let none = Redactor::default();
        let variables =
            Variables { environment: &environment, given: &given, more_to_come: true, redactor: &none };
        let written = node.clone();
        interpolate(&mut node, &Kind::Shape(&PROJECT), variables, &source, &mut mistakes);

        let map = Map::of(&node, &source, &PROJECT).expect("the shape was checked");
        let target = map.map("target");
        let asserted = |key: &str| target.as_ref().and_then(|target| target.get(key));
        let inherited = Inherited {
            case: Block::read(asserted("assert"), &mut mistakes),
            turn: Block::read(asserted("turn_assert"), &mut mistakes),
        };
        let root = path.parent().filter(|root| !root.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let texts = |key: &str| -> Vec<String> {
            map.list(key).into_iter().flatten().filter_map(View::text).map(str::to_string).collect()
        };
        let suites = texts("suites");
        let project = Project {
            root: root.to_path_buf(),
            file: Some(shown.into()),
            suites: if suites.is_empty() { default_suites() } else { suites },
            parallel: map.integer("parallel").and_then(|n| usize::try_from(n).ok()),
            redactor: Redactor::new(
                named_secrets(&environment, &texts("secrets"))
                    .chain(header_variables(&written, &environment)),
            ),
            header_secrets: header_variables(&written, &environment),
            secrets: texts("secrets"),
            inherited,
            start: target.as_ref().and_then(|target| Start::read(target, root, &mut mistakes)),
            target: target.as_ref().map(|target| TargetSettings::read(target)),
            environment,
            document: Some(Arc::new((source.clone(), written))),
        };
        if let Some(target) = &target {
            super::target::find_mistakes(target, &mut mistakes);
        }
        if mistakes.is_empty() { Ok(project) } else { Err(mistakes) }
    }

    /// Whether the target uses variables that hooks give, so that it differs from case to case.
    pub fn target_varies(&self) -> bool {
        self.target.as_ref().is_some_and(|target| target.varies)
    }

    /// The target with its variables filled in.
    ///
    /// # Errors
    /// Variables that are not defined, and whatever is wrong with what they were filled in to. A project without
    /// a target is one mistake.
    pub fn bind_target(&self, variables: Variables<'_>) -> Result<BoundTarget, Diagnostics> {
        let Some((source, node)) = self.document.as_deref() else { return Err(self.no_target().into()) };
        let Some(target) = node.get("target") else { return Err(self.no_target().into()) };
        let mut target = target.clone();
        let mut mistakes = Diagnostics::new();
        interpolate(&mut target, &Kind::Shape(&TARGET), variables, source, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let map = Map::of(&target, source, &TARGET).expect("the shape was checked");
        let bound = BoundTarget::read(&map, &mut mistakes);
        match (bound, mistakes.is_empty()) {
            (Some(target), true) => Ok(target),
            _ => Err(mistakes),
        }
    }

    /// The mistake of a project that says nothing about its agent.
    pub fn no_target(&self) -> Diagnostic {
        let message = match &self.file {
            Some(file) => format!("{file} names no `target`"),
            None => format!("no project file ({}) in this folder or above it", FILE_NAMES[0]),
        };
        Diagnostic::new(message)
            .help("write the address of the agent under `target: endpoint:`, or run `hotseat init`")
    }

    /// What is wrong with the target for a case that has no hooks.
    ///
    /// # Errors
    /// Variables that only hooks could give.
    pub fn bind_without_hooks(&self) -> Result<(), Diagnostics> {
        let given = BTreeMap::new();
        let (environment, redactor) = (&*self.environment, &self.redactor);
        self.bind_target(Variables { environment, given: &given, more_to_come: false, redactor }).map(drop)
    }

    /// The environment variables that headers use, with their values.
    pub fn header_secrets(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.header_secrets.iter().cloned()
    }

    /// What the cases of its suites are decoded with.
    pub fn decoding(&self) -> Decoding<'_> {
        Decoding { inherited: &self.inherited, environment: &self.environment, redactor: &self.redactor }
    }

    /// What takes the secrets of the environment out.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The environment it was read with.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }
}

/// The secrets of the environment: those that the project names, and those that are named like secrets.
pub fn named_secrets<'a>(
    environment: &'a BTreeMap<String, String>,
    named: &'a [String],
) -> impl Iterator<Item = (String, String)> + 'a {
    let listed = named.iter().filter_map(|name| {
        let variable = name.strip_prefix("ENV.")?;
        Some((name.clone(), environment.get(variable)?.clone()))
    });
    let telling = environment.iter().filter(|(name, value)| is_secret(name, value));
    listed.chain(telling.map(|(name, value)| (format!("ENV.{name}"), value.clone())))
}

/// The environment variables that headers use: that is how secrets come into headers.
fn header_variables(project: &Node, environment: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let headers = project.get("target").and_then(|target| target.get("headers"));
    let Some(hotseat_document::Value::Map(entries)) = headers.map(|headers| &headers.value) else {
        return Vec::new();
    };
    let texts = entries.iter().filter_map(|entry| match &entry.value.value {
        hotseat_document::Value::String(text) => Some(text.as_str()),
        _ => None,
    });
    let names = texts.flat_map(references).filter(|(_, of_environment)| *of_environment);
    names.filter_map(|(name, _)| Some((format!("ENV.{name}"), environment.get(name)?.clone()))).collect()
}

fn default_suites() -> Vec<String> {
    vec!["**/*.test.{yaml,yml,json,jsonl}".to_string()]
}
