//! `files`: access of scripts to project files.

use std::fs;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use hotseat_script::{HostCallError, HostResult};
use hotseat_trace::named;
use serde_json::{Value, json};

use super::grants::ScriptGrants;

/// Maximum number of bytes read or written at once.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum FileOperation {
        Read = "read",
        Write = "write",
        Append = "append",
        Exists = "exists",
        List = "list",
        Remove = "remove",
    }
}

impl FileOperation {
    pub(super) fn is_write(self) -> bool {
        match self {
            FileOperation::Write | FileOperation::Append | FileOperation::Remove => true,
            FileOperation::Read | FileOperation::Exists | FileOperation::List => false,
        }
    }
}

/// Performs an operation if it is permitted. The arguments are a path relative to the project folder and the
/// text to write.
pub(super) fn run_operation(deed: FileOperation, arguments: &[Value], grants: &ScriptGrants) -> HostResult {
    let [Value::String(written), rest @ ..] = arguments else {
        return Err("the file name must be a string".into());
    };
    let path = permitted_path(deed, written, grants)?;
    let failed = |error: std::io::Error| HostCallError::new(written, error);
    match deed {
        FileOperation::Exists => Ok(json!(path.exists())),
        FileOperation::List => {
            let mut names = Vec::new();
            for entry in fs::read_dir(&path).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let name = entry.file_name().to_string_lossy().into_owned();
                names.push(if entry.path().is_dir() { name + "/" } else { name });
            }
            names.sort();
            Ok(json!(names))
        }
        FileOperation::Read => {
            let about = fs::metadata(&path).map_err(failed)?;
            // Pipes and devices may never end.
            if !about.is_file() {
                return Err(format!("{written} is not a file").into());
            }
            if about.len() > MAX_FILE_BYTES {
                return Err(format!("{written} has more than {MAX_FILE_BYTES} bytes").into());
            }
            let bytes = fs::read(&path).map_err(failed)?;
            String::from_utf8(bytes).map(Value::String).map_err(|_| format!("{written} is not UTF-8").into())
        }
        FileOperation::Write | FileOperation::Append => {
            let [Value::String(text)] = rest else {
                return Err(format!(
                    "the content of {written} must be a string; create one with `JSON.stringify`"
                )
                .into());
            };
            if path.exists() && !path.is_file() {
                return Err(format!("{written} is not a file").into());
            }
            let before = match deed {
                FileOperation::Append => fs::metadata(&path).map_or(0, |about| about.len()),
                _ => 0,
            };
            if before + text.len() as u64 > MAX_FILE_BYTES {
                return Err(format!("{written} would have more than {MAX_FILE_BYTES} bytes").into());
            }
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(failed)?;
            }
            let mut options = fs::OpenOptions::new();
            match deed {
                FileOperation::Append => options.append(true).create(true),
                _ => options.write(true).create(true).truncate(true),
            };
            options.open(&path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
            Ok(Value::Null)
        }
        FileOperation::Remove => match path.is_file() {
            true => fs::remove_file(&path).map(|()| json!(true)).map_err(failed),
            false if path.exists() => Err(format!("{written} is not a file").into()),
            false => Ok(json!(false)),
        },
    }
}

/// Returns the canonical path of a file if access is permitted.
fn permitted_path(
    deed: FileOperation,
    written: &str,
    grants: &ScriptGrants,
) -> Result<PathBuf, HostCallError> {
    let outside = || HostCallError::from(format!("{written} is outside the project folder"));
    let unreadable = |error| HostCallError::new("the project folder", error);
    let root = fs::canonicalize(&grants.root).map_err(unreadable)?;
    let path = resolve_path(&root, written).ok_or_else(outside)?;
    if !path.starts_with(&root) {
        return Err(outside());
    }
    let within = |all: &[String]| {
        all.iter().any(|own| {
            resolve_path(&root, own).is_some_and(|own| own.starts_with(&root) && path.starts_with(own))
        })
    };
    let writes = within(&grants.write);
    if !(writes || !deed.is_write() && within(&grants.read)) {
        let (what, key) = if deed.is_write() { ("written", "write") } else { ("read", "read") };
        return Err(format!(
            "{written} may not be {what}: add it or its folder to the project file under `scripts: {key}:`"
        )
        .into());
    }
    // Scripts must not change their own permissions.
    let project_file = grants.file.as_ref().and_then(|file| fs::canonicalize(file).ok());
    if deed.is_write() && project_file.is_some_and(|file| file == path) {
        return Err(format!(
            "{written} may not be changed by scripts, because it contains their permissions"
        )
        .into());
    }
    let is_protected = |part: Component<'_>| grants.protected.iter().any(|name| part.as_os_str() == *name);
    if deed.is_write() && path.strip_prefix(&root).is_ok_and(|within| within.components().any(is_protected)) {
        return Err(format!(
            "{written} may not be changed by scripts, because later runs read settings or saved runs from it"
        )
        .into());
    }
    Ok(path)
}

/// Resolves links of the existing part of the path. Returns `None` if the path leaves the folder.
fn resolve_path(root: &Path, written: &str) -> Option<PathBuf> {
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
            // Writing to a dangling link would create a file at its target.
            Err(_) if there.is_symlink() => return None,
            Err(_) => {
                missing.push(there.file_name()?.to_os_string());
                there = there.parent()?;
            }
        }
    }
}
