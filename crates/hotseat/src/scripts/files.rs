//! Files of the project, as scripts reach them.

use std::fs;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::grants::Grants;

/// So many bytes may be read or written at once.
const LARGEST: u64 = 8 * 1024 * 1024;

/// What is to be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Read,
    Write,
    Append,
    Exists,
    List,
    Remove,
}

impl Deed {
    pub(super) const ALL: [(&'static str, Deed); 6] = [
        ("read", Deed::Read),
        ("write", Deed::Write),
        ("append", Deed::Append),
        ("exists", Deed::Exists),
        ("list", Deed::List),
        ("remove", Deed::Remove),
    ];

    pub(super) fn changes(self) -> bool {
        match self {
            Deed::Write | Deed::Append | Deed::Remove => true,
            Deed::Read | Deed::Exists | Deed::List => false,
        }
    }
}

/// Does it, where that is granted. Arguments are a path from the folder of the project, and what is written.
pub(super) fn file(deed: Deed, arguments: &[Value], grants: &Grants) -> Result<Value, String> {
    let [Value::String(written), rest @ ..] = arguments else {
        return Err("the name of a file is a text".to_string());
    };
    let path = granted(deed, written, grants)?;
    let failed = |error: std::io::Error| format!("{written}: {error}");
    match deed {
        Deed::Exists => Ok(json!(path.exists())),
        Deed::List => {
            let mut names = Vec::new();
            for entry in fs::read_dir(&path).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let name = entry.file_name().to_string_lossy().into_owned();
                names.push(if entry.path().is_dir() { name + "/" } else { name });
            }
            names.sort();
            Ok(json!(names))
        }
        Deed::Read => {
            let about = fs::metadata(&path).map_err(failed)?;
            // Pipes and devices are files that may never end.
            if !about.is_file() {
                return Err(format!("{written} is not a file"));
            }
            if about.len() > LARGEST {
                return Err(format!("{written} has more than {LARGEST} bytes"));
            }
            let bytes = fs::read(&path).map_err(failed)?;
            String::from_utf8(bytes).map(Value::String).map_err(|_| format!("{written} is not UTF-8"))
        }
        Deed::Write | Deed::Append => {
            let [Value::String(text)] = rest else {
                return Err(format!(
                    "what is written to {written} is a text; make one with `JSON.stringify`"
                ));
            };
            if path.exists() && !path.is_file() {
                return Err(format!("{written} is not a file"));
            }
            let before = match deed {
                Deed::Append => fs::metadata(&path).map_or(0, |about| about.len()),
                _ => 0,
            };
            if before + text.len() as u64 > LARGEST {
                return Err(format!("{written} would have more than {LARGEST} bytes"));
            }
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(failed)?;
            }
            let mut options = fs::OpenOptions::new();
            match deed {
                Deed::Append => options.append(true).create(true),
                _ => options.write(true).create(true).truncate(true),
            };
            options.open(&path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
            Ok(Value::Null)
        }
        Deed::Remove => match path.is_file() {
            true => fs::remove_file(&path).map(|()| json!(true)).map_err(failed),
            false if path.exists() => Err(format!("{written} is not a file")),
            false => Ok(json!(false)),
        },
    }
}

/// Where a file really is, if that is below what is granted.
fn granted(deed: Deed, written: &str, grants: &Grants) -> Result<PathBuf, String> {
    let outside = || format!("{written} leads out of the folder of the project");
    let root =
        fs::canonicalize(&grants.root).map_err(|error| format!("the folder of the project: {error}"))?;
    let path = real(&root, written).ok_or_else(outside)?;
    if !path.starts_with(&root) {
        return Err(outside());
    }
    let within = |all: &[String]| {
        all.iter()
            .any(|own| real(&root, own).is_some_and(|own| own.starts_with(&root) && path.starts_with(own)))
    };
    let writes = within(&grants.write);
    if !(writes || !deed.changes() && within(&grants.read)) {
        let (what, key) = if deed.changes() { ("written", "write") } else { ("read", "read") };
        return Err(format!(
            "{written} may not be {what}: the project file does not list it, or a folder that holds it, under `scripts: {key}:`"
        ));
    }
    // What says what scripts may do is not theirs to change.
    let project_file = grants.file.as_ref().and_then(|file| fs::canonicalize(file).ok());
    if deed.changes() && project_file.is_some_and(|file| file == path) {
        return Err(format!("{written} may not be changed by scripts: it says what they may do"));
    }
    Ok(path)
}

/// The path without links, as far as it is there; none if it leaves the folder by what is written.
fn real(root: &Path, written: &str) -> Option<PathBuf> {
    let mut path = root.to_path_buf();
    for part in Path::new(written).components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) => path.push(part),
            Component::ParentDir if path != root => drop(path.pop()),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let mut missing = Vec::new();
    let mut there = path.as_path();
    loop {
        match fs::canonicalize(there) {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Some(real);
            }
            // A link that leads nowhere would be made a file of wherever it leads.
            Err(_) if there.is_symlink() => return None,
            Err(_) => {
                missing.push(there.file_name()?.to_os_string());
                there = there.parent()?;
            }
        }
    }
}
