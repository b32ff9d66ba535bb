//! Suites: files of cases, read one case at a time.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Cursor};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use super::case::{Case, Inherited, Parse};
use super::shared::{Shared, head};
use super::tested::AgentsByName;
use crate::session::Redactor;
use hotseat_document::{Diagnostic, Diagnostics, Source, json, yaml};

/// How many documents of YAML are decoded at a time, by several threads where there are enough of them to pay. Values of
/// JSON are decoded faster than threads are begun, and what each thread leaves with the allocator adds up.
const BATCH: usize = 128;
const WORTH_A_THREAD: usize = 32;

/// How many threads can work at once. Finding that out reads files of the system, so it is done once.
static CORES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// A suite: a file of cases.
#[derive(Debug, Clone)]
pub struct Suite {
    /// Where it is.
    pub path: PathBuf,
    /// The path as it is shown to people.
    pub shown: Arc<str>,
    /// Its folder.
    pub folder: PathBuf,
    content: Content,
}

/// Where the cases of a suite are.
#[derive(Debug, Clone)]
enum Content {
    File,
    /// They are written, but in no file.
    Text(Arc<[u8]>),
    /// They are a part of the program that runs them.
    Program(Arc<[Case]>),
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    Yaml,
    /// A stream of values, or a list of them, or `{"cases": […]}`.
    Json,
}

/// What cases are decoded with.
#[derive(Debug, Clone, Copy)]
pub struct Decoding<'a> {
    /// What every case gets from the target.
    pub inherited: &'a Inherited,
    /// What those get that name their agent.
    pub agents: &'a Arc<AgentsByName>,
    /// What the project declares for all cases.
    pub shared: &'a Arc<Shared>,
    /// The folder of the project.
    pub root: &'a Path,
    /// The environment.
    pub environment: &'a BTreeMap<String, String>,
    /// What takes the secrets of the environment out.
    pub redactor: &'a Redactor,
    /// Whether a simulated user answers in cases that name none.
    pub default_simulator: bool,
}

/// What the cases of one suite are decoded with.
#[derive(Debug, Clone, Copy)]
pub struct With<'a> {
    /// What holds in every suite.
    pub decoding: Decoding<'a>,
    /// What the cases have in common.
    pub shared: &'a Arc<Shared>,
    /// Where files are looked for that cases name.
    pub folders: &'a Arc<[PathBuf]>,
}

type Decoded = Result<Case, Diagnostics>;
type Reader = Box<dyn BufRead + Send>;
type Documents = Box<dyn Iterator<Item = Result<Arc<Source>, Diagnostic>> + Send>;

impl Suite {
    /// A suite at a path, shown as given.
    pub fn new(path: PathBuf, shown: impl Into<Arc<str>>) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Suite { folder: folder.to_path_buf(), shown: shown.into(), path, content: Content::File }
    }

    /// Cases that are in no file, as JSON values. What they attach is looked for in `folder`.
    pub fn written(text: String, shown: impl Into<Arc<str>>, folder: PathBuf) -> Self {
        let path = folder.join("cases.jsonl");
        Suite { folder, shown: shown.into(), path, content: Content::Text(text.into_bytes().into()) }
    }

    /// Cases that are a part of this program, written in the file that is shown. What they refer to is looked for in
    /// `folder`.
    pub fn in_program(cases: Vec<Case>, shown: &str, folder: PathBuf) -> Self {
        let path = folder.join(Path::new(shown).file_name().unwrap_or_default());
        Suite { folder, shown: shown.into(), path, content: Content::Program(cases.into()) }
    }

    /// Whether it is a program that declares tests, and holds no cases that are written: by its name.
    pub fn is_program(&self) -> bool {
        is_program(&self.path)
    }

    /// The file it is, if it is one.
    pub fn file(&self) -> Option<&Path> {
        matches!(self.content, Content::File).then_some(&self.path)
    }

    /// Reads its cases one after the other; the file is never in memory as a whole. Each entry is a case or all
    /// that is wrong with it. A file without any case is one mistake.
    pub fn cases<'a>(&'a self, decoding: Decoding<'a>) -> impl Iterator<Item = Decoded> + Send + 'a {
        let batch = match self.syntax() {
            Syntax::Yaml => BATCH,
            Syntax::Json => 1,
        };
        self.read(decoding, batch)
    }

    /// The same by the thread that asks alone, and no further than it asks: for who has time, and wants little memory.
    pub fn cases_in_turn<'a>(&'a self, decoding: Decoding<'a>) -> impl Iterator<Item = Decoded> + Send + 'a {
        self.read(decoding, 1)
    }

    fn read<'a>(
        &'a self,
        decoding: Decoding<'a>,
        batch: usize,
    ) -> Box<dyn Iterator<Item = Decoded> + Send + 'a> {
        let opened: std::io::Result<Reader> = match &self.content {
            Content::File => open(&self.path).map(|file| -> Reader { Box::new(BufReader::new(file)) }),
            Content::Text(text) => Ok(Box::new(Cursor::new(text.clone()))),
            Content::Program(cases) => return Box::new(cases.iter().cloned().map(Ok)),
        };
        let mut decoded = VecDeque::new();
        let (mut any, mut first) = (false, true);
        let mut shared = decoding.shared.clone();
        let folders: Arc<[PathBuf]> =
            [self.folder.clone(), decoding.root.to_path_buf(), PathBuf::new()].into();
        let syntax = self.syntax();
        let mut documents = match opened {
            Ok(reader) => Some(syntax.documents(self.shown.clone(), reader)),
            Err(error) => {
                any = true;
                let unreadable = Diagnostic::new(format!("cannot read {}: {error}", self.shown));
                decoded.push_back(Err(unreadable.into()));
                None
            }
        };
        let mut names = Names::default();
        Box::new(std::iter::from_fn(move || {
            if decoded.is_empty() {
                let mut batch: Vec<_> = documents.iter_mut().flatten().take(batch).collect();
                if std::mem::take(&mut first)
                    && let Some(found) =
                        batch.first().and_then(|document| head(document, syntax.parser(), decoding))
                {
                    drop(batch.remove(0));
                    match found {
                        Ok(declared) => shared = Arc::new(declared),
                        Err(mistakes) => {
                            any = true;
                            decoded.push_back(Err(mistakes));
                            // What the cases have in common is not known.
                            documents = None;
                        }
                    }
                    if batch.is_empty() && decoded.is_empty() {
                        batch = documents.iter_mut().flatten().take(1).collect();
                    }
                }
                let with = With { decoding, shared: &shared, folders: &folders };
                decoded.extend(decode_all(&batch, syntax, with).into_iter().map(|case| names.check(case?)));
                if decoded.is_empty() && !any {
                    let help = "a case has a `name` and `turns`; `hotseat init` writes a first one";
                    let empty = Diagnostic::new(format!("no test cases found in {}", self.shown)).help(help);
                    decoded.push_back(Err(empty.into()));
                }
                any = true;
            }
            decoded.pop_front()
        }))
    }

    fn syntax(&self) -> Syntax {
        Syntax::of(&self.path)
    }
}

/// How the pieces of a file are read.
pub fn parse_as(path: &Path) -> Parse {
    Syntax::of(path).parser()
}

impl Syntax {
    /// By the ending of its name; what says nothing is YAML.
    fn of(path: &Path) -> Syntax {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        match ending.to_ascii_lowercase().as_str() {
            "json" | "jsonl" | "ndjson" | "jsonc" => Syntax::Json,
            _ => Syntax::Yaml,
        }
    }

    fn documents(self, name: Arc<str>, file: Reader) -> Documents {
        match self {
            Syntax::Yaml => Box::new(yaml::documents(name, file)),
            Syntax::Json => Box::new(json::values(name, file, "cases")),
        }
    }

    fn parser(self) -> Parse {
        match self {
            Syntax::Yaml => yaml::parse,
            Syntax::Json => json::parse,
        }
    }
}

/// The names of a suite so far, as hashes, so that a file of a hundred thousand cases costs a few megabytes at most.
#[derive(Default)]
struct Names {
    hasher: RandomState,
    seen: HashSet<u64>,
}

impl Names {
    fn check(&mut self, case: Case) -> Decoded {
        if self.seen.insert(self.hasher.hash_one(&case.id)) {
            return Ok(case);
        }
        let message = format!("another case in this file is called `{}`", case.id);
        Err(Diagnostic::new(message).at(case.place.clone()).help("give one of them another `id`").into())
    }
}

/// Decodes documents side by side, in their order.
fn decode_all(documents: &[Result<Arc<Source>, Diagnostic>], syntax: Syntax, with: With<'_>) -> Vec<Decoded> {
    let decode = |documents: &[Result<Arc<Source>, Diagnostic>]| {
        documents.iter().flat_map(|d| decode(d, syntax, with)).collect()
    };
    let worth = documents.len() / WORTH_A_THREAD;
    if worth < 2 || *CORES < 2 {
        return decode(documents);
    }
    let threads = worth.min(*CORES);
    std::thread::scope(|scope| {
        let parts = documents.chunks(documents.len().div_ceil(threads));
        let threads: Vec<_> =
            parts.map(|part| scope.spawn(move || -> Vec<Decoded> { decode(part) })).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn decode(document: &Result<Arc<Source>, Diagnostic>, syntax: Syntax, with: With<'_>) -> Vec<Decoded> {
    match document {
        Ok(source) => Case::read_all(source, syntax.parser(), with),
        Err(diagnostic) => vec![Err(diagnostic.clone().into())],
    }
}

/// Extensions of programs that may declare tests.
pub const PROGRAM_EXTENSIONS: [&str; 4] = ["ts", "mts", "js", "mjs"];

/// Whether a file is a program that may declare tests, by its name: `checkout_test.ts`.
pub fn is_program(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.rsplit_once('.')
        .is_some_and(|(stem, ending)| stem.ends_with("_test") && PROGRAM_EXTENSIONS.contains(&ending))
}

/// Opens a file; a folder is refused here and not when it is read.
fn open(path: &Path) -> std::io::Result<File> {
    let file = File::open(path)?;
    match file.metadata()?.is_dir() {
        true => Err(std::io::Error::other("it is a folder")),
        false => Ok(file),
    }
}
