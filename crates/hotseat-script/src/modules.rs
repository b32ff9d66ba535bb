//! Modules: read once, stripped once, and run by as many contexts as need them.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use hotseat_document::{Place, Source};

use crate::error::{ErrorKind, Frame, ScriptError};
use crate::folder::{Folder, Language};
use crate::imports::{specifier, specifiers};
use crate::strip::strip;

/// The scripts of a folder. Nothing outside of it is read: no absolute path, no `..` and no link leads out.
///
/// Each file is read when it is first needed and never again, so that what was looked at is what runs. Clones share
/// what was read; they can be used on many threads at once.
#[derive(Debug, Clone)]
pub struct Scripts(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    folder: Folder,
    modules: Mutex<HashMap<Arc<str>, Known>>,
}

/// So many frames of a stack are kept.
const MOST_FRAMES: usize = 20;

/// What reading a file came to.
type Known = Result<Arc<Loaded>, ScriptError>;

/// A file of the folder that was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Module(pub(crate) Arc<str>);

impl Module {
    /// Its path from the folder of the scripts, with `/`.
    pub fn path(&self) -> &str {
        &self.0
    }
}

/// What a file became.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The file as it is written.
    pub source: Arc<Source>,
    /// The JavaScript of it. Where it is TypeScript, each character has kept its line and its column.
    pub code: String,
}

impl Scripts {
    /// The scripts of a folder. `shown` stands before the names of its files where people see them.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn of(folder: &Path, shown: &Path) -> io::Result<Scripts> {
        let folder = Folder::open(folder, shown)?;
        Ok(Scripts(Arc::new(Shared { folder, modules: Mutex::default() })))
    }

    /// The module that a path from the folder means. Its ending may be left out, and so may `index`.
    ///
    /// # Errors
    /// When there is none, or it lies outside.
    pub fn find(&self, path: &str) -> Result<Module, ScriptError> {
        let refused = |refused: crate::folder::Refused| {
            let error = ScriptError::new(ErrorKind::Import, refused.message(path));
            ScriptError { help: refused.help(), ..error }
        };
        let key: Arc<str> = self.0.folder.find("", path).map_err(refused)?.into();
        Ok(Module(key))
    }

    /// The text of a file of the folder.
    ///
    /// # Errors
    /// When there is none, it lies outside, or it is not what its ending says.
    pub fn text(&self, path: &str) -> Result<String, ScriptError> {
        let module = self.find(path)?;
        Ok(self.load(module.path())?.source.text.to_string())
    }

    /// The texts of a module and of all that it imports, by their paths. What cannot be read is left out: whoever runs the
    /// module is told of it.
    pub fn sources(&self, module: &Module) -> BTreeMap<String, String> {
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

    /// What an import in a module means.
    pub(crate) fn import(&self, from: &str, name: &str) -> Result<String, ScriptError> {
        let key = self.0.folder.import(from, name);
        key.map_err(|refused| self.refused(from, name, &refused))
    }

    /// A module, read now if nobody has read it before; `from` and `name` say who asks and with which words.
    pub(crate) fn load(&self, key: &str) -> Result<Arc<Loaded>, ScriptError> {
        let known = |modules: &HashMap<Arc<str>, Known>| modules.get(key).cloned();
        let lock = || self.0.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = known(&lock()) {
            return loaded;
        }
        // Whoever is first has the say, so that all contexts see the same.
        let loaded = self.read(key);
        lock().entry(Arc::from(key)).or_insert(loaded).clone()
    }

    fn read(&self, key: &str) -> Result<Arc<Loaded>, ScriptError> {
        let text = self.0.folder.read(key).map_err(|refused| {
            let error = ScriptError::new(ErrorKind::Import, refused.message(&self.0.folder.shown(key)));
            ScriptError { help: refused.help(), ..error }
        })?;
        let source = Source::new(self.0.folder.shown(key), text, 1);
        let syntax = |message: String, span| {
            ScriptError::new(ErrorKind::Syntax, message).at(Some(Place::new(&source, span)))
        };
        let code = match Language::of(key) {
            Some(Language::TypeScript) => strip(&source.text).map_err(|mistake| ScriptError {
                help: mistake.help.map(str::to_string),
                ..syntax(mistake.message, mistake.span)
            })?,
            Some(Language::Json) => {
                let checked: Result<serde::de::IgnoredAny, _> = serde_json::from_str(&source.text);
                checked.map_err(|error| {
                    let at = offset(&source.text, error.line(), error.column());
                    let message = error.to_string();
                    let message = message.split(" at line ").next().unwrap_or_default().to_string();
                    syntax(format!("this is not JSON: {message}"), at..at)
                })?;
                format!("export default JSON.parse({});", serde_json::Value::from(source.text.as_str()))
            }
            Some(Language::JavaScript) | None => source.text.clone(),
        };
        Ok(Arc::new(Loaded { source, code }))
    }

    fn refused(&self, from: &str, name: &str, refused: &crate::folder::Refused) -> ScriptError {
        let place = self.load(from).ok().and_then(|loaded| {
            let span = specifier(&loaded.source.text, name)?;
            Some(Place::new(&loaded.source, span))
        });
        let error = ScriptError::new(ErrorKind::Import, refused.message(name)).at(place);
        ScriptError { help: refused.help(), ..error }
    }

    /// Whether a module throws null, or rejects with it, in so many words.
    pub(crate) fn throws_null(&self, key: &str) -> bool {
        let Ok(loaded) = self.load(key) else { return false };
        loaded.code.match_indices("null").any(|(at, _)| {
            let before = loaded.code[..at].trim_end().trim_end_matches('(').trim_end();
            before.ends_with("throw") || before.ends_with("reject")
        })
    }

    /// Where an import of a module is written.
    pub(crate) fn import_place(&self, from: &str, means: &str) -> Option<Place> {
        let loaded = self.load(from).ok()?;
        let span = crate::imports::specifiers(&loaded.source.text)
            .find(|(name, _)| {
                *name == means || self.0.folder.import(from, name).is_ok_and(|key| key == means)
            })?
            .1;
        Some(Place::new(&loaded.source, span))
    }

    /// Where in a module this piece of its JavaScript stands, as the engine gives it out: the text of a function.
    pub fn place_of(&self, module: &Module, code: &str) -> Option<Place> {
        let loaded = self.load(module.path()).ok()?;
        let before = &loaded.code[..loaded.code.find(code)?];
        let line = nth_line_of(before);
        let column = before.len() - before.rfind(['\n', '\r']).map_or(0, |at| at + 1) + 1;
        self.place(module.path(), line, column)
    }

    /// The calls of a stack of the engine that stand in files, the innermost first.
    pub fn frames(&self, stack: &str) -> Vec<Frame> {
        stack.lines().filter_map(|line| self.frame(line)).take(MOST_FRAMES).collect()
    }

    /// Reads `    at name (file:line:column)`.
    fn frame(&self, line: &str) -> Option<Frame> {
        let line = line.trim().strip_prefix("at ")?;
        let (function, place) = match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
            Some((function, place)) => (Some(function), place),
            None => (None, line),
        };
        let mut parts = place.rsplitn(3, ':');
        let column = parts.next()?.parse().ok()?;
        let line = parts.next()?.parse().ok()?;
        let place = self.place(parts.next()?, line, column)?;
        let named = function.filter(|name| !name.is_empty() && !name.starts_with('<'));
        Some(Frame { function: named.map(str::to_string), place })
    }

    /// Where in a file as it is written the engine's line and column are; none for code that stands in no file.
    pub(crate) fn place(&self, key: &str, line: usize, column: usize) -> Option<Place> {
        let known = self.0.modules.lock().unwrap_or_else(PoisonError::into_inner).get(key)?.clone();
        let loaded = known.ok()?;
        let text = &loaded.source.text;
        // The engine counts bytes of what it reads; what stays where it was are UTF-16 units.
        let run = nth_line(&loaded.code, line);
        let before = run.get(..run.floor_char_boundary(column.saturating_sub(1)))?;
        let units: usize = before.chars().map(char::len_utf16).sum();
        let written = nth_line(text, line);
        let start = written.as_ptr() as usize - text.as_ptr() as usize;
        let mut left = units;
        let within =
            written.char_indices().find(|(_, character)| match left.checked_sub(character.len_utf16()) {
                Some(rest) => {
                    left = rest;
                    false
                }
                None => true,
            });
        let at = start + within.map_or(written.len(), |(at, _)| at);
        Some(Place::new(&loaded.source, at..at + word(&text[at..])))
    }
}

/// A line of a text as the engine counts them from 1, without its end: a carriage return alone ends one too.
fn nth_line(text: &str, line: usize) -> &str {
    let mut rest = text;
    for _ in 1..line {
        let Some(end) = rest.find(['\n', '\r']) else { return &text[text.len()..] };
        let length = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
        rest = &rest[end + length..];
    }
    &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())]
}

/// Which line a text ends in, as the engine counts them from 1.
fn nth_line_of(text: &str) -> usize {
    let returns = text.matches('\r').count() - text.matches("\r\n").count();
    1 + text.matches('\n').count() + returns
}

/// How long the word is that a text begins with; what is no word is one character long.
fn word(text: &str) -> usize {
    let is_word = |character: char| character.is_alphanumeric() || character == '_' || character == '$';
    let length = text.find(|character| !is_word(character)).unwrap_or(text.len());
    match length {
        0 => text.chars().next().filter(|character| *character != '\n').map_or(0, char::len_utf8),
        length => length,
    }
}

/// The offset of a line and a column (in bytes), both counted from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let line = nth_line(text, line);
    let start = line.as_ptr() as usize - text.as_ptr() as usize;
    start + line.floor_char_boundary(column.saturating_sub(1))
}
