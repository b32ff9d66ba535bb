//! Resolves imports. No file outside the script folder is ever read.

use std::path::{Path, PathBuf};
use std::{fs, io};

use hotseat_document::source_from_bytes;

/// Extensions that an import may omit, in the order in which they are tried.
const IMPLIED_EXTENSIONS: [&str; 4] = [".ts", ".js", ".mjs", ".json"];
const INDEX_FILES: [&str; 2] = ["index.ts", "index.js"];

/// Maximum size of a file.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// Language of a file, by its extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptLanguage {
    TypeScript,
    JavaScript,
    Json,
}

impl ScriptLanguage {
    pub(crate) fn from_key(key: &str) -> Option<ScriptLanguage> {
        let (_, ending) = key.rsplit_once('.')?;
        match ending {
            "ts" | "mts" => Some(ScriptLanguage::TypeScript),
            "js" | "mjs" => Some(ScriptLanguage::JavaScript),
            "json" => Some(ScriptLanguage::Json),
            _ => None,
        }
    }
}

/// Reason why a file cannot be loaded.
#[derive(Debug)]
pub(crate) enum ModuleLoadError {
    Outside,
    Link(PathBuf),
    NotRelative,
    NotFound { tried: Vec<String> },
    UnknownLanguage,
    Unreadable(String),
}

impl ModuleLoadError {
    pub(crate) fn message(&self, name: &str) -> String {
        match self {
            ModuleLoadError::Outside => format!("`{name}` is outside the folder that scripts may read"),
            ModuleLoadError::Link(path) => {
                format!("`{name}` is a link out of the folder that scripts may read, to {}", path.display())
            }
            ModuleLoadError::NotRelative => format!("`{name}` is not a relative path"),
            ModuleLoadError::NotFound { .. } => format!("no file found for `{name}`"),
            ModuleLoadError::UnknownLanguage => {
                format!("`{name}` is neither TypeScript, JavaScript nor JSON")
            }
            ModuleLoadError::Unreadable(why) => format!("`{name}` cannot be read: {why}"),
        }
    }

    pub(crate) fn help(&self) -> Option<String> {
        match self {
            ModuleLoadError::Outside | ModuleLoadError::Link(_) => {
                Some("copy the file into the folder, or import one from there".to_string())
            }
            ModuleLoadError::NotRelative => Some(
                "only files can be imported, with a path that starts with `./` or `../`; packages are not supported"
                    .to_string(),
            ),
            ModuleLoadError::NotFound { tried } => Some(format!("looked for {}", tried.join(", "))),
            ModuleLoadError::UnknownLanguage => Some("files end in .ts, .mts, .js, .mjs or .json".to_string()),
            ModuleLoadError::Unreadable(_) => None,
        }
    }
}

/// The folder that scripts are read from.
#[derive(Debug)]
pub(crate) struct ScriptFolder {
    /// Canonical path.
    root: PathBuf,
    /// Prefix of displayed file names.
    shown: PathBuf,
}

impl ScriptFolder {
    pub(crate) fn open(root: &Path, shown: &Path) -> io::Result<ScriptFolder> {
        Ok(ScriptFolder { root: fs::canonicalize(root)?, shown: shown.to_path_buf() })
    }

    /// The canonical path.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the display path of a key.
    pub(crate) fn shown(&self, key: &str) -> String {
        self.shown.join(key).display().to_string()
    }

    /// Returns the key of an import in a file of this folder: its path from the root, with `/`.
    pub(crate) fn import(&self, from: &str, name: &str) -> Result<String, ModuleLoadError> {
        if !(name.starts_with("./") || name.starts_with("../") || name == "." || name == "..") {
            return Err(ModuleLoadError::NotRelative);
        }
        let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.find(folder, name)
    }

    /// Returns the key of a path from the root.
    pub(crate) fn find(&self, folder: &str, name: &str) -> Result<String, ModuleLoadError> {
        if Path::new(name).is_absolute() || name.contains('\0') {
            return Err(ModuleLoadError::NotRelative);
        }
        let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in name.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop().ok_or(ModuleLoadError::Outside)?),
                part => parts.push(part),
            }
        }
        let path = parts.join("/");
        let names_folder =
            path.is_empty() || name.ends_with('/') || name.ends_with("/..") || name.ends_with("/.");
        let mut tried = Vec::new();
        if !names_folder {
            tried.push(path.clone());
            tried.extend(IMPLIED_EXTENSIONS.iter().map(|ending| format!("{path}{ending}")));
            // TypeScript allows imports to name the JavaScript output of a file.
            if let Some(stem) = path.strip_suffix(".js") {
                tried.push(format!("{stem}.ts"));
            }
        }
        let below = |index: &str| if path.is_empty() { index.to_string() } else { format!("{path}/{index}") };
        tried.extend(INDEX_FILES.iter().map(|index| below(index)));
        let Some(key) = tried.iter().find(|key| self.root.join(key).is_file()) else {
            let tried = tried.iter().filter(|key| ScriptLanguage::from_key(key).is_some());
            return Err(ModuleLoadError::NotFound { tried: tried.map(|key| self.shown(key)).collect() });
        };
        ScriptLanguage::from_key(key).ok_or(ModuleLoadError::UnknownLanguage)?;
        Ok(key.clone())
    }

    /// Reads the file of a key. Links are resolved here, so the checked file is the file that is read.
    pub(crate) fn read(&self, key: &str) -> Result<String, ModuleLoadError> {
        let unreadable = |error: io::Error| ModuleLoadError::Unreadable(error.to_string());
        let path = fs::canonicalize(self.root.join(key)).map_err(unreadable)?;
        if !path.starts_with(&self.root) {
            return Err(ModuleLoadError::Link(path));
        }
        let about = fs::metadata(&path).map_err(unreadable)?;
        if !about.is_file() {
            return Err(ModuleLoadError::Unreadable("it is not a file".to_string()));
        }
        if about.len() > MAX_FILE_BYTES {
            return Err(ModuleLoadError::Unreadable(format!("it has more than {MAX_FILE_BYTES} bytes")));
        }
        let bytes = fs::read(&path).map_err(unreadable)?;
        String::from_utf8(bytes).map_err(|error| {
            let found = source_from_bytes(key, error.into_bytes()).err();
            let place = found.and_then(|found| found.place);
            let place = place.map(|place| format!(" in line {}, column {}", place.line(), place.column()));
            ModuleLoadError::Unreadable(format!("it is not UTF-8{}", place.unwrap_or_default()))
        })
    }
}
