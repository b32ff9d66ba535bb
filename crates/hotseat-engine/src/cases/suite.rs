//! Suites: files of cases, read one case at a time.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Cursor};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::case::TestCase;
use super::decoding::{DecodeContext, DecodeSettings, ParseSource};
use super::peer_words::{explain_peer_words, is_json_name};
use super::shape::CASE;
use super::shared_settings::SharedSettings;
use crate::threads::CORE_COUNT;

use super::variables::{VariableScope, interpolate};
use hotseat_document::{
    Diagnostic, Diagnostics, DocumentNode, Kind, MapView, NodeView, SourceText, check, json, open_file, yaml,
};

/// A small case, as YAML and JSON, for messages.
pub const EXAMPLE_CASE: &str = "`{\"name\": \"greets\", \"turns\": [{\"user\": \"Hello\"}]}`";

/// Maximum number of documents decoded at a time, and minimum number for which it pays off to start a thread. A
/// JSON value is decoded several times faster than a YAML document.
const YAML_BATCH: BatchSize = BatchSize { max: 128, min_per_thread: 32 };
const JSON_BATCH: BatchSize = BatchSize { max: 256, min_per_thread: 64 };

/// Size of the buffer through which a suite is read: small beside the memory of a run, and hundreds of cases.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// A suite: a file of cases.
#[derive(Debug, Clone)]
pub struct Suite {
    /// Path.
    pub path: PathBuf,
    /// Displayable path.
    pub shown: Arc<str>,
    /// Folder that contains the suite.
    pub folder: PathBuf,
    content: SuiteContent,
}

/// Source of the cases of a suite.
#[derive(Debug, Clone)]
enum SuiteContent {
    File,
    /// Cases in memory, as text.
    Text(Arc<[u8]>),
    /// The running program declares the cases.
    Program,
}

/// Number of documents that are decoded together.
#[derive(Debug, Clone, Copy)]
struct BatchSize {
    max: usize,
    min_per_thread: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SuiteSyntax {
    Yaml,
    /// A stream of values, a list of values, or `{"cases": […]}`.
    Json,
}

type DecodedCase = Result<Arc<TestCase>, Diagnostics>;
type Reader = Box<dyn BufRead + Send>;
type Documents = Box<dyn Iterator<Item = Result<Arc<SourceText>, Diagnostic>> + Send>;

impl Suite {
    /// Creates a suite for a file, displayed as `shown`.
    pub fn new(path: PathBuf, shown: impl Into<Arc<str>>) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Suite { folder: folder.to_path_buf(), shown: shown.into(), path, content: SuiteContent::File }
    }

    /// Creates a suite from JSON values in memory. Attachments are searched in `folder`.
    pub fn from_text(text: String, shown: impl Into<Arc<str>>, folder: PathBuf) -> Self {
        let path = folder.join("cases.jsonl");
        Suite { folder, shown: shown.into(), path, content: SuiteContent::Text(text.into_bytes().into()) }
    }

    /// Creates the suite of the cases that the running program declares, displayed as the file that declares
    /// them. Referenced files are searched in `folder`.
    pub fn from_program(shown: &str, folder: PathBuf) -> Self {
        let path = folder.join(Path::new(shown).file_name().unwrap_or_default());
        Suite { folder, shown: shown.into(), path, content: SuiteContent::Program }
    }

    /// True if the file is a program that declares tests, judging by its name.
    pub fn is_program(&self) -> bool {
        is_program(&self.path)
    }

    /// Path of the suite, if it is a file.
    pub fn file(&self) -> Option<&Path> {
        matches!(self.content, SuiteContent::File).then_some(&self.path)
    }

    /// Decodes its cases one after the other without loading the whole file. Each item is a case or its
    /// diagnostics. A file without cases yields one diagnostic.
    pub fn cases<'a>(
        &'a self,
        decoding: DecodeSettings<'a>,
    ) -> impl Iterator<Item = DecodedCase> + Send + 'a {
        self.read_cases(decoding, self.syntax().batch_size(), Some(SeenCaseIds::default()))
    }

    /// Decodes its cases again, on the calling thread only and without reading ahead, which needs less memory. Does
    /// not look for duplicate ids, which [`Suite::cases`] has found.
    pub fn cases_sequential<'a>(
        &'a self,
        decoding: DecodeSettings<'a>,
    ) -> impl Iterator<Item = DecodedCase> + Send + 'a {
        self.read_cases(decoding, BatchSize { max: 1, min_per_thread: 1 }, None)
    }

    fn read_cases<'a>(
        &'a self,
        decoding: DecodeSettings<'a>,
        size: BatchSize,
        mut seen: Option<SeenCaseIds>,
    ) -> Box<dyn Iterator<Item = DecodedCase> + Send + 'a> {
        let Some(opened) = self.open() else { return Box::new(std::iter::empty()) };
        if let Some(misnamed) = self.file().and_then(|file| misnamed_program(file, &self.shown)) {
            return Box::new(std::iter::once(Err(misnamed.into())));
        }
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
        Box::new(std::iter::from_fn(move || {
            if decoded.is_empty() {
                let mut batch: Vec<_> = documents.iter_mut().flatten().take(size.max).collect();
                if std::mem::take(&mut first)
                    && let Some(found) =
                        batch.first().and_then(|document| read_head(document, syntax.parser(), decoding))
                {
                    drop(batch.remove(0));
                    match found {
                        Ok(declared) => shared = Arc::new(declared),
                        Err(diagnostics) => {
                            any = true;
                            decoded.push_back(Err(diagnostics));
                            // Without valid shared settings the cases cannot be decoded.
                            documents = None;
                        }
                    }
                    if batch.is_empty() && decoded.is_empty() {
                        batch = documents.iter_mut().flatten().take(1).collect();
                    }
                }
                let with = DecodeContext { decoding, shared: &shared, folders: &folders };
                decoded.extend(decode_all(&batch, syntax, size, with).into_iter().map(
                    |case| match &mut seen {
                        Some(seen) => seen.check(case?),
                        None => case,
                    },
                ));
                if decoded.is_empty() && !any {
                    let help = format!("write a case, such as {EXAMPLE_CASE}");
                    let empty = Diagnostic::new(format!("no test cases found in {}", self.shown)).help(help);
                    decoded.push_back(Err(empty.into()));
                }
                any = true;
            }
            decoded.pop_front()
        }))
    }

    fn syntax(&self) -> SuiteSyntax {
        SuiteSyntax::from_path(&self.path)
    }
}

/// Returns the parser for the documents of a file.
pub fn parser_for(path: &Path) -> ParseSource {
    SuiteSyntax::from_path(path).parser()
}

impl Suite {
    /// Opens the source of the cases. `None` if a program declares them.
    fn open(&self) -> Option<std::io::Result<Reader>> {
        match &self.content {
            SuiteContent::File => Some(
                open_file(&self.path)
                    .map(|file| -> Reader { Box::new(BufReader::with_capacity(READ_BUFFER_BYTES, file)) }),
            ),
            SuiteContent::Text(text) => Some(Ok(Box::new(Cursor::new(text.clone())))),
            SuiteContent::Program => None,
        }
    }

    /// Returns true if the source of the cases can be opened.
    pub fn is_readable(&self) -> bool {
        self.open().is_none_or(|opened| opened.is_ok())
    }

    /// Returns the document with the shared settings of the suite (`suite`) as written, as JSON, if it has one.
    pub fn written_head(&self) -> Option<Value> {
        let syntax = self.syntax();
        let first = syntax.documents(self.shown.clone(), self.open()?.ok()?).next()?.ok()?;
        let node = first.text.contains("suite").then(|| syntax.parser()(&first).ok()).flatten()?;
        node.get("suite")?;
        Some(node.to_json())
    }
}

impl SuiteSyntax {
    /// Determines the syntax by the file extension; the default is YAML.
    fn from_path(path: &Path) -> SuiteSyntax {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        match ending.to_ascii_lowercase().as_str() {
            "json" | "jsonl" | "ndjson" | "jsonc" => SuiteSyntax::Json,
            _ => SuiteSyntax::Yaml,
        }
    }

    fn documents(self, name: Arc<str>, file: Reader) -> Documents {
        match self {
            SuiteSyntax::Yaml => Box::new(yaml::documents(name, file)),
            SuiteSyntax::Json => Box::new(json::values(name, file, "cases")),
        }
    }

    fn batch_size(self) -> BatchSize {
        match self {
            SuiteSyntax::Yaml => YAML_BATCH,
            SuiteSyntax::Json => JSON_BATCH,
        }
    }

    fn parser(self) -> ParseSource {
        match self {
            SuiteSyntax::Yaml => yaml::parse,
            SuiteSyntax::Json => json::parse,
        }
    }
}

/// Case ids of a suite so far, stored as hashes so that a file with a hundred thousand cases needs only a few
/// megabytes.
#[derive(Default)]
struct SeenCaseIds {
    hasher: RandomState,
    seen: HashSet<u64>,
}

impl SeenCaseIds {
    fn check(&mut self, case: Arc<TestCase>) -> DecodedCase {
        if self.seen.insert(self.hasher.hash_one(&case.id)) {
            return Ok(case);
        }
        let message = format!("duplicate case id `{}` in this file", case.id);
        let help = "change the `id` or, without one, the name of one of them";
        Err(Diagnostic::new(message).at(case.place.clone()).help(help).into())
    }
}

/// Decodes documents in parallel, keeping their order. The calling thread decodes a part itself.
fn decode_all(
    documents: &[Result<Arc<SourceText>, Diagnostic>],
    syntax: SuiteSyntax,
    size: BatchSize,
    with: DecodeContext<'_>,
) -> Vec<DecodedCase> {
    let decode = |documents: &[Result<Arc<SourceText>, Diagnostic>]| -> Vec<DecodedCase> {
        documents.iter().flat_map(|d| decode_document(d, syntax, with)).collect()
    };
    let worth = documents.len() / size.min_per_thread;
    if worth < 2 || *CORE_COUNT < 2 {
        return decode(documents);
    }
    let (own, others) = documents.split_at(documents.len().div_ceil(worth.min(*CORE_COUNT)));
    std::thread::scope(|scope| {
        let others = others.chunks(own.len());
        let others: Vec<_> = others.map(|part| scope.spawn(move || decode(part))).collect();
        let mut decoded = decode(own);
        for thread in others {
            decoded.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        decoded
    })
}

fn decode_document(
    document: &Result<Arc<SourceText>, Diagnostic>,
    syntax: SuiteSyntax,
    with: DecodeContext<'_>,
) -> Vec<DecodedCase> {
    match document {
        Ok(source) => TestCase::read_all(source, syntax.parser(), with),
        Err(diagnostic) => vec![Err(diagnostic.clone().into())],
    }
}

/// File extensions of programs that may declare tests.
pub const PROGRAM_EXTENSIONS: [&str; 4] = ["ts", "mts", "js", "mjs"];

/// True if a folder that is passed contains the file as a suite.
pub fn is_suite_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    is_program(path) || WRITTEN_SUITES.iter().any(|ending| name.ends_with(ending))
}

/// Endings of suites that are not programs.
pub const WRITTEN_SUITES: [&str; 4] = [".test.yaml", ".test.yml", ".test.json", ".test.jsonl"];

/// True if a file name is that of a program that may declare tests, such as `checkout_test.ts`.
pub fn is_program(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.rsplit_once('.')
        .is_some_and(|(stem, ending)| stem.ends_with("_test") && PROGRAM_EXTENSIONS.contains(&ending))
}

/// True if a file has the name of a test script of any tool, such as `checkout.test.ts`.
pub fn is_test_script(path: &Path) -> bool {
    let stem = split_script_name(path).map(|(stem, _)| stem.to_ascii_lowercase());
    stem.is_some_and(|stem| TEST_SUFFIXES.iter().any(|end| stem.ends_with(end)))
}

/// Ends of the names of test scripts of any tool, without their extensions.
const TEST_SUFFIXES: [&str; 3] = ["_test", ".test", ".spec"];

/// Splits the name of a script before its extension. `None` for other files.
fn split_script_name(path: &Path) -> Option<(&str, &str)> {
    const EXTENSIONS: [&str; 8] = ["ts", "mts", "cts", "tsx", "js", "mjs", "cjs", "jsx"];
    let (stem, extension) = path.file_name()?.to_str()?.rsplit_once('.')?;
    EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)).then_some((stem, extension))
}

/// Returns the error of a script whose name is not that of a program that may declare tests. Its text is no YAML.
fn misnamed_program(path: &Path, shown: &str) -> Option<Diagnostic> {
    let (stem, extension) = split_script_name(path).filter(|_| !is_program(path))?;
    let name = TEST_SUFFIXES.iter().find_map(|end| stem.strip_suffix(end)).unwrap_or(stem);
    let extension = if PROGRAM_EXTENSIONS.contains(&extension) { extension } else { "ts" };
    let endings = PROGRAM_EXTENSIONS.map(|extension| format!("`_test.{extension}`")).join(", ");
    let message =
        format!("{shown} is not run: the names of tests in TypeScript and JavaScript end in {endings}");
    Some(Diagnostic::new(message).help(format!("rename it to `{name}_test.{extension}`")))
}

/// Decodes the head of a suite and merges it onto the project's settings. Returns `None` if the first
/// document is not a mapping with `suite`.
fn read_head(
    document: &Result<Arc<SourceText>, Diagnostic>,
    parse: ParseSource,
    decoding: DecodeSettings<'_>,
) -> Option<Result<SharedSettings, Diagnostics>> {
    let source = document.as_ref().ok()?;
    // Most files have no head; this avoids parsing them.
    if !source.text.contains("suite") {
        return None;
    }
    let mut node = parse(source).ok()?;
    node.get("suite")?;
    let mut diagnostics = Diagnostics::new();
    check(&node, &Kind::Shape(&CASE), source, &mut diagnostics);
    diagnostics.extend(keys_next_to_suite(&node, source));
    if !diagnostics.is_empty() {
        return Some(Err(explain_peer_words(diagnostics)));
    }
    let variables = VariableScope::new(decoding.environment, decoding.redactor);
    interpolate(&mut node, &Kind::Shape(&CASE), variables, source, &mut diagnostics);
    let declared = MapView::from_node(&node, source, &CASE).and_then(|head| head.map("suite"))?;
    let shared = SharedSettings::read(|key| declared.get(key), decoding.shared, &mut diagnostics);
    Some(if diagnostics.is_empty() { Ok(shared) } else { Err(diagnostics) })
}

/// Diagnostics for keys next to `suite`.
fn keys_next_to_suite(node: &DocumentNode, source: &Arc<SourceText>) -> Vec<Diagnostic> {
    let entries = NodeView::new(node, source).entries().into_iter().flatten();
    let help = match is_json_name(&source.name) {
        true => {
            "the head of a suite is a value of its own, such as the first of a list: `[{\"suite\": {…}}, {…}]`; put shared settings under `suite`"
        }
        false => "the head of a suite is a separate document; put shared settings under `suite`",
    };
    let others = entries.filter(|(key, ..)| *key != "suite").map(|(key, place, _)| {
        Diagnostic::new(format!("`{key}` is not allowed next to `suite`")).at(place).help(help)
    });
    others.collect()
}
