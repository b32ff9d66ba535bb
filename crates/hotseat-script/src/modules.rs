//! Modules: each file is read and stripped once, and run by any number of contexts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
#[cfg(feature = "engine")]
use std::sync::OnceLock;
#[cfg(feature = "engine")]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hotseat_document::{SourceSpan, SourceText, json};

#[cfg(feature = "engine")]
use crate::bytecode::CompiledModule;
use crate::error::{ScriptError, ScriptErrorKind, StackFrame};
use crate::folder::{ScriptFolder, ScriptLanguage};
use crate::imports::{find_specifier, specifiers};
use crate::strip::strip_types;
use crate::test_files::unused_tests;

/// The scripts of a folder. No file outside of it is read: absolute paths, `..` and links out of the folder
/// are rejected.
///
/// Each file is read once, on first use, so the checked code is the code that runs. Clones share the loaded
/// files and can be used on several threads.
#[derive(Debug, Clone)]
pub struct Scripts(Arc<ModuleCache>);

#[derive(Debug)]
struct ModuleCache {
    folder: ScriptFolder,
    modules: Mutex<HashMap<Arc<str>, LoadResult>>,
    /// Other files that scripts have read.
    data: Mutex<BTreeSet<PathBuf>>,
}

/// Maximum number of frames kept of a stack trace.
const MAX_FRAMES: usize = 20;

/// Result of loading a file.
type LoadResult = Result<Arc<LoadedModule>, ScriptError>;

/// A file of the folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptModule(pub(crate) Arc<str>);

impl ScriptModule {
    /// Returns its path from the script folder, with `/`.
    pub fn path(&self) -> &str {
        &self.0
    }
}

/// A loaded file.
#[derive(Debug)]
pub(crate) struct LoadedModule {
    /// Original source.
    pub source: Arc<SourceText>,
    /// JavaScript code. For TypeScript, every character keeps its line and column.
    pub code: Arc<SourceText>,
    /// Number of contexts that asked for the code.
    #[cfg(feature = "engine")]
    uses: AtomicUsize,
    /// The code as the engine has compiled it, once a second context needs it.
    #[cfg(feature = "engine")]
    pub compiled: OnceLock<CompiledModule>,
}

#[cfg(feature = "engine")]
impl LoadedModule {
    /// Counts a context that loads the code. Returns true if it is not the first.
    pub fn is_reused(&self) -> bool {
        self.uses.fetch_add(1, Ordering::Relaxed) > 0
    }
}

impl Scripts {
    /// Opens the scripts of a folder. `shown` is the prefix of displayed file names.
    ///
    /// # Errors
    /// If the folder does not exist.
    pub fn open(folder: &Path, shown: &Path) -> io::Result<Scripts> {
        let folder = ScriptFolder::open(folder, shown)?;
        Ok(Scripts(Arc::new(ModuleCache { folder, modules: Mutex::default(), data: Mutex::default() })))
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        self.0.folder.root()
    }

    /// Adds a file that a script has read.
    pub fn add_data(&self, file: PathBuf) {
        self.0.data.lock().unwrap_or_else(PoisonError::into_inner).insert(file);
    }

    /// Returns the files that were loaded as modules or read.
    pub fn loaded_files(&self) -> Vec<PathBuf> {
        let modules = self.0.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let data = self.0.data.lock().unwrap_or_else(PoisonError::into_inner);
        modules.keys().map(|key| self.root().join(&**key)).chain(data.iter().cloned()).collect()
    }

    /// Finds the module of a path from the folder. The extension and `index` may be omitted.
    ///
    /// # Errors
    /// If there is no such file, or it lies outside the folder.
    pub fn find(&self, path: &str) -> Result<ScriptModule, ScriptError> {
        let refused = |refused: crate::folder::ModuleLoadError| {
            let error = ScriptError::new(ScriptErrorKind::Import, refused.message(path));
            ScriptError { help: refused.help(), ..error }
        };
        let key: Arc<str> = self.0.folder.find("", path).map_err(refused)?.into();
        Ok(ScriptModule(key))
    }

    /// Returns the texts of a module and all its imports, by path. Unreadable files are omitted; running the
    /// module reports them.
    pub fn sources(&self, module: &ScriptModule) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        let mut open = vec![module.path().to_string()];
        while let Some(path) = open.pop() {
            let Ok(loaded) = self.load(&path) else { continue };
            let text = &loaded.source.text;
            if all.insert(path.clone(), text.to_string()).is_none() {
                open.extend(specifiers(text).filter_map(|(name, _)| self.import(&path, name).ok()));
            }
        }
        all
    }

    /// Resolves an import of a module.
    pub(crate) fn import(&self, from: &str, name: &str) -> Result<String, ScriptError> {
        let key = self.0.folder.import(from, name);
        key.map_err(|refused| self.import_error(from, name, &refused))
    }

    /// Returns a module, loading it on first use.
    pub(crate) fn load(&self, key: &str) -> Result<Arc<LoadedModule>, ScriptError> {
        let known = |modules: &HashMap<Arc<str>, LoadResult>| modules.get(key).cloned();
        let lock = || self.0.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = known(&lock()) {
            return loaded;
        }
        // The first result wins, so that all contexts see the same code.
        let loaded = self.read(key);
        lock().entry(Arc::from(key)).or_insert(loaded).clone()
    }

    fn read(&self, key: &str) -> Result<Arc<LoadedModule>, ScriptError> {
        let text = self.0.folder.read(key).map_err(|refused| {
            let error = ScriptError::new(ScriptErrorKind::Import, refused.message(&self.0.folder.shown(key)));
            ScriptError { help: refused.help(), ..error }
        })?;
        let source = SourceText::new(self.0.folder.shown(key), text, 1);
        let syntax = |message: String, span| {
            ScriptError::new(ScriptErrorKind::Syntax, message).at(Some(SourceSpan::new(&source, span)))
        };
        let code = match ScriptLanguage::from_key(key) {
            Some(ScriptLanguage::TypeScript) => strip_types(&source.text).map_err(|mistake| ScriptError {
                help: mistake.help.map(str::to_string),
                ..syntax(mistake.message, mistake.span)
            })?,
            Some(ScriptLanguage::Json) => {
                let checked: Result<serde::de::IgnoredAny, _> = serde_json::from_str(&source.text);
                checked.map_err(|error| {
                    let at = offset(&source, error.line(), error.column());
                    let message = error.to_string();
                    let message = message.split(" at line ").next().unwrap_or_default().to_string();
                    syntax(format!("invalid JSON: {message}"), at..at)
                })?;
                if let Some(mistake) = json::parse(&source).err().and_then(|found| found.into_iter().next()) {
                    let error = ScriptError::new(ScriptErrorKind::Syntax, mistake.message).at(mistake.place);
                    return Err(ScriptError { help: mistake.help, ..error });
                }
                format!("export default JSON.parse({});", serde_json::Value::from(source.text.as_str()))
            }
            Some(ScriptLanguage::JavaScript) | None => source.text.clone(),
        };
        Ok(Arc::new(LoadedModule {
            code: SourceText::new(source.name.clone(), code, 1),
            source,
            #[cfg(feature = "engine")]
            uses: AtomicUsize::new(0),
            #[cfg(feature = "engine")]
            compiled: OnceLock::new(),
        }))
    }

    fn import_error(&self, from: &str, name: &str, refused: &crate::folder::ModuleLoadError) -> ScriptError {
        let place = self.load(from).ok().and_then(|loaded| {
            let span = find_specifier(&loaded.source.text, name)?;
            Some(SourceSpan::new(&loaded.source, span))
        });
        let error = ScriptError::new(ScriptErrorKind::Import, refused.message(name)).at(place);
        ScriptError { help: refused.help(), ..error }
    }

    /// Returns true if the code of a module literally throws or rejects with null.
    pub(crate) fn throws_null(&self, key: &str) -> bool {
        let Ok(loaded) = self.load(key) else { return false };
        loaded.code.text.match_indices("null").any(|(at, _)| {
            let before = loaded.code.text[..at].trim_end().trim_end_matches('(').trim_end();
            before.ends_with("throw") || before.ends_with("reject")
        })
    }

    /// Returns the location of an import of this name.
    pub(crate) fn import_place(&self, from: &str, means: &str, imported: &str) -> Option<SourceSpan> {
        let loaded = self.load(from).ok()?;
        let text = &loaded.source.text;
        let is_meant =
            |name: &str| name == means || self.0.folder.import(from, name).is_ok_and(|key| key == means);
        let mut spans =
            crate::imports::specifiers(text).filter(|(name, _)| is_meant(name)).map(|(_, span)| span);
        // The clause of an import stands before its specifier.
        let names_it = |span: &std::ops::Range<usize>| {
            let clause = text[..span.start].rsplit_once("import").map_or("", |(_, clause)| clause);
            crate::imports::code_words(clause).any(|word| word == imported)
        };
        let first = spans.next()?;
        let span = if names_it(&first) { first } else { spans.find(names_it).unwrap_or(first) };
        Some(SourceSpan::new(&loaded.source, span))
    }

    /// Returns the locations of the `await`s of a module that are not in braces, such as those of a function.
    pub(crate) fn top_level_awaits(&self, key: &str) -> Vec<SourceSpan> {
        let Ok(loaded) = self.load(key) else { return Vec::new() };
        let mut depth = 0_usize;
        let outside = crate::imports::code_spans(&loaded.code.text).filter(|span| {
            match &loaded.code.text[span.clone()] {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                word => return word == "await" && depth == 0,
            }
            false
        });
        let places = outside.filter_map(|span| {
            let (line, bytes) = loaded.code.line_and_bytes(span.start);
            self.place(key, line, bytes + 1)
        });
        places.collect()
    }

    /// Returns the location of a piece of JavaScript code of a module, such as the text of a function.
    pub fn place_of(&self, module: &ScriptModule, code: &str) -> Option<SourceSpan> {
        let loaded = self.load(module.path()).ok()?;
        let (line, bytes) = loaded.code.line_and_bytes(loaded.code.text.find(code)?);
        self.place(module.path(), line, bytes + 1)
    }

    /// Returns the names of the functions in a module that are named as tests, but neither exported nor used.
    pub fn unused_tests(&self, module: &ScriptModule) -> Vec<SourceSpan> {
        let Ok(loaded) = self.load(module.path()) else { return Vec::new() };
        let names = unused_tests(&loaded.source.text).into_iter();
        names.map(|name| SourceSpan::new(&loaded.source, name)).collect()
    }

    /// Returns the JavaScript code of a module that was loaded. Types are blanks in it.
    pub fn code(&self, module: &ScriptModule) -> Option<String> {
        self.load(module.path()).ok().map(|loaded| loaded.code.text.clone())
    }

    /// Returns the offset in the [code](Scripts::code) of a module of the innermost call of a stack trace in a file.
    /// Returns `None` if that file is another one, or the trace has another number of calls in files.
    pub fn code_offset(&self, module: &ScriptModule, stack: &str, calls: usize) -> Option<usize> {
        let loaded = self.load(module.path()).ok()?;
        let mut all = stack.lines().filter_map(trace_line).filter(|call| self.is_loaded(call.key));
        let TraceLine { key, line, column, .. } = all.next()?;
        (key == module.path() && all.count() + 1 == calls).then(|| offset(&loaded.code, line, column))
    }

    fn is_loaded(&self, key: &str) -> bool {
        self.0.modules.lock().unwrap_or_else(PoisonError::into_inner).contains_key(key)
    }

    /// Parses a stack trace of the engine; calls outside of files are omitted. The innermost call is first.
    pub fn frames(&self, stack: &str) -> Vec<StackFrame> {
        stack.lines().filter_map(|line| self.frame(line)).take(MAX_FRAMES).collect()
    }

    fn frame(&self, line: &str) -> Option<StackFrame> {
        let TraceLine { function, key, line, column } = trace_line(line)?;
        let place = self.place(key, line, column)?;
        let named = function.filter(|name| !name.is_empty() && !name.starts_with('<'));
        Some(StackFrame { function: named.map(str::to_string), place })
    }

    /// Converts a line and column of the engine to a location in the original source. Returns `None` for code
    /// without a file.
    pub(crate) fn place(&self, key: &str, line: usize, column: usize) -> Option<SourceSpan> {
        let known = self.0.modules.lock().unwrap_or_else(PoisonError::into_inner).get(key)?.clone();
        let loaded = known.ok()?;
        let text = &loaded.source.text;
        // The engine counts bytes of the code; stripping preserves UTF-16 units.
        let start = offset(&loaded.code, line, 1);
        let before = &loaded.code.text[start..offset(&loaded.code, line, column)];
        let mut left: usize = before.chars().map(char::len_utf16).sum();
        let line = loaded.source.line(line).unwrap_or(text.len()..text.len());
        let (start, written) = (line.start, &text[line]);
        let within =
            written.char_indices().find(|(_, character)| match left.checked_sub(character.len_utf16()) {
                Some(rest) => {
                    left = rest;
                    false
                }
                None => true,
            });
        let at = start + within.map_or(written.len(), |(at, _)| at);
        Some(SourceSpan::new(&loaded.source, at..at + word_length(&text[at..])))
    }
}

/// A line of a stack trace of the engine.
struct TraceLine<'a> {
    function: Option<&'a str>,
    key: &'a str,
    line: usize,
    column: usize,
}

/// Parses `    at name (file:line:column)`.
fn trace_line(line: &str) -> Option<TraceLine<'_>> {
    let line = line.trim().strip_prefix("at ")?;
    let (function, place) = match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
        Some((function, place)) => (Some(function), place),
        None => (None, line),
    };
    let mut parts = place.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    Some(TraceLine { function, key: parts.next()?, line, column })
}

/// Returns the length of the leading word, or of one character if there is none.
fn word_length(text: &str) -> usize {
    let is_word = |character: char| character.is_alphanumeric() || character == '_' || character == '$';
    let length = text.find(|character| !is_word(character)).unwrap_or(text.len());
    match length {
        0 => text.chars().next().filter(|character| *character != '\n').map_or(0, char::len_utf8),
        length => length,
    }
}

/// Returns the byte offset of a line and a column in bytes, both counted from 1. It is the end of the line, or of the text,
/// if the line is shorter or does not exist.
fn offset(source: &SourceText, line: usize, column: usize) -> usize {
    let text = &source.text;
    let line = source.line(line).unwrap_or(text.len()..text.len());
    text.floor_char_boundary(line.end.min(line.start + column.saturating_sub(1)))
}
