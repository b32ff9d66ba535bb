//! A folder of scripts.

#![allow(dead_code)]

use std::fs;
use std::time::Duration;

use hotseat_script::{Context, Host, Limits, ScriptError, Scripts};
use serde_json::Value;

pub struct Folder {
    pub dir: tempfile::TempDir,
    pub scripts: Scripts,
}

impl Folder {
    /// Files by their paths.
    pub fn of(files: &[(&str, &str)]) -> Folder {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let scripts = Scripts::of(&root, "".as_ref()).unwrap();
        Folder { dir, scripts }
    }

    pub fn context(&self) -> Context {
        self.with(Limits::default(), Host::new())
    }

    pub fn with(&self, limits: Limits, host: Host) -> Context {
        Context::new(&self.scripts, limits, host).unwrap()
    }
}

/// Calls `main` of a TypeScript file.
pub fn main_of(text: &str) -> Result<Value, ScriptError> {
    call(&[("main.ts", text)], &[])
}

/// Calls `main` of `main.ts` among files.
pub fn call(files: &[(&str, &str)], arguments: &[Value]) -> Result<Value, ScriptError> {
    let folder = Folder::of(files);
    let module = folder.scripts.find("main")?;
    folder.context().call(&module, "main", arguments)
}

/// What is shown of the mistake that `main` of a TypeScript file makes.
pub fn mistake(text: &str) -> String {
    shown(&main_of(text).unwrap_err())
}

pub fn shown(error: &ScriptError) -> String {
    format!("{}\n{}", error.kind.name(), error.diagnostic().render(false, 100))
}

pub fn short() -> Limits {
    Limits { time: Duration::from_millis(200), ..Limits::default() }
}
