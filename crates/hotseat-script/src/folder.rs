//! Which file an import means. Nothing outside of one folder is ever read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What may be left out of an import, in the order in which it is tried.
const ENDINGS: [&str; 4] = [".ts", ".js", ".mjs", ".json"];
const INDEXES: [&str; 2] = ["index.ts", "index.js"];

/// A file may have so many bytes.
const LARGEST: u64 = 8 * 1024 * 1024;

/// What a file holds, by its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    TypeScript,
    JavaScript,
    Json,
}

impl Language {
    pub(crate) fn of(key: &str) -> Option<Language> {
        let (_, ending) = key.rsplit_once('.')?;
        match ending {
            "ts" | "mts" => Some(Language::TypeScript),
            "js" | "mjs" => Some(Language::JavaScript),
            "json" => Some(Language::Json),
            _ => None,
        }
    }
}

/// Why a file cannot be had.
#[derive(Debug)]
pub(crate) enum Refused {
    Outside,
    Link(PathBuf),
    NotRelative,
    NotThere { tried: Vec<String> },
    Unknown,
    Unreadable(String),
}

impl Refused {
    pub(crate) fn message(&self, name: &str) -> String {
        match self {
            Refused::Outside => format!("`{name}` leads out of the folder that scripts may read"),
            Refused::Link(path) => format!(
                "`{name}` is a link that leads out of the folder that scripts may read, to {}",
                path.display()
            ),
            Refused::NotRelative => format!("`{name}` is not a relative path"),
            Refused::NotThere { .. } => format!("there is no file for `{name}`"),
            Refused::Unknown => format!("`{name}` is neither TypeScript, JavaScript nor JSON"),
            Refused::Unreadable(why) => format!("`{name}` cannot be read: {why}"),
        }
    }

    pub(crate) fn help(&self) -> Option<String> {
        match self {
            Refused::Outside | Refused::Link(_) => {
                Some("copy the file into the folder, or import one that is in it".to_string())
            }
            Refused::NotRelative => Some(
                "only files can be imported, with a path that begins with `./` or `../`; there are no packages"
                    .to_string(),
            ),
            Refused::NotThere { tried } => Some(format!("looked for {}", tried.join(", "))),
            Refused::Unknown => Some("files end in .ts, .mts, .js, .mjs or .json".to_string()),
            Refused::Unreadable(_) => None,
        }
    }
}

/// The folder that scripts are read from.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Without links.
    root: PathBuf,
    /// What stands before the names of its files where they are shown.
    shown: PathBuf,
}

impl Folder {
    pub(crate) fn open(root: &Path, shown: &Path) -> io::Result<Folder> {
        Ok(Folder { root: fs::canonicalize(root)?, shown: shown.to_path_buf() })
    }

    /// How the file of a key is shown to people.
    pub(crate) fn shown(&self, key: &str) -> String {
        self.shown.join(key).display().to_string()
    }

    /// The key of the file that `name` means in a file of this folder: its path from the root, with `/`.
    pub(crate) fn import(&self, from: &str, name: &str) -> Result<String, Refused> {
        if !(name.starts_with("./") || name.starts_with("../") || name == "." || name == "..") {
            return Err(Refused::NotRelative);
        }
        let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.find(folder, name)
    }

    /// The key of the file that a path from the root means.
    pub(crate) fn find(&self, folder: &str, name: &str) -> Result<String, Refused> {
        if Path::new(name).is_absolute() || name.contains('\0') {
            return Err(Refused::NotRelative);
        }
        let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in name.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop().ok_or(Refused::Outside)?),
                part => parts.push(part),
            }
        }
        let path = parts.join("/");
        let names_folder =
            path.is_empty() || name.ends_with('/') || name.ends_with("/..") || name.ends_with("/.");
        let mut tried = Vec::new();
        if !names_folder {
            tried.push(path.clone());
            tried.extend(ENDINGS.iter().map(|ending| format!("{path}{ending}")));
            // TypeScript lets an import name the JavaScript that a file would become.
            if let Some(stem) = path.strip_suffix(".js") {
                tried.push(format!("{stem}.ts"));
            }
        }
        let below = |index: &str| if path.is_empty() { index.to_string() } else { format!("{path}/{index}") };
        tried.extend(INDEXES.iter().map(|index| below(index)));
        let Some(key) = tried.iter().find(|key| self.root.join(key).is_file()) else {
            let tried = tried.iter().filter(|key| Language::of(key).is_some());
            return Err(Refused::NotThere { tried: tried.map(|key| self.shown(key)).collect() });
        };
        Language::of(key).ok_or(Refused::Unknown)?;
        Ok(key.clone())
    }

    /// What stands in the file of a key. Where links lead is looked at here, so that it is true of what is read.
    pub(crate) fn read(&self, key: &str) -> Result<String, Refused> {
        let unreadable = |error: io::Error| Refused::Unreadable(error.to_string());
        let path = fs::canonicalize(self.root.join(key)).map_err(unreadable)?;
        if !path.starts_with(&self.root) {
            return Err(Refused::Link(path));
        }
        let about = fs::metadata(&path).map_err(unreadable)?;
        if !about.is_file() {
            return Err(Refused::Unreadable("it is not a file".to_string()));
        }
        if about.len() > LARGEST {
            return Err(Refused::Unreadable(format!("it has more than {LARGEST} bytes")));
        }
        let bytes = fs::read(&path).map_err(unreadable)?;
        String::from_utf8(bytes).map_err(|_| Refused::Unreadable("it is not UTF-8".to_string()))
    }
}
