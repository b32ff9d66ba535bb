//! A folder of scripts for tests.

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hotseat_script::{ScriptContext, ScriptError, ScriptHost, ScriptLimits, Scripts};
use serde_json::Value;

pub struct Folder {
    pub dir: tempfile::TempDir,
    pub scripts: Scripts,
}

impl Folder {
    /// Files by path.
    pub fn with_files(files: &[(&str, &str)]) -> Folder {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let scripts = Scripts::open(&root, "".as_ref()).unwrap();
        Folder { dir, scripts }
    }

    pub fn context(&self) -> ScriptContext {
        self.with(ScriptLimits::default(), ScriptHost::new())
    }

    pub fn with(&self, limits: ScriptLimits, host: ScriptHost) -> ScriptContext {
        // The threads of tests have less stack than those of scripts.
        let limits = ScriptLimits { stack: 512 * 1024, ..limits };
        ScriptContext::new(&self.scripts, limits, host).unwrap()
    }
}

/// Calls `main` of a TypeScript file.
pub fn main_of(text: &str) -> Result<Value, ScriptError> {
    call(&[("main.ts", text)], &[])
}

/// Calls `main` of `main.ts` with these files.
pub fn call(files: &[(&str, &str)], arguments: &[Value]) -> Result<Value, ScriptError> {
    let folder = Folder::with_files(files);
    let module = folder.scripts.find("main")?;
    folder.context().call(&module, "main", arguments)
}

/// Error message of `main` of a TypeScript file.
pub fn error_text(text: &str) -> String {
    render(&main_of(text).unwrap_err())
}

pub fn render(error: &ScriptError) -> String {
    let mut kind = String::new();
    for letter in format!("{:?}", error.kind).chars() {
        if letter.is_uppercase() && !kind.is_empty() {
            kind.push('_');
        }
        kind.push(letter.to_ascii_lowercase());
    }
    format!("{kind}\n{}", error.diagnostic().render(false, 100))
}

pub fn short() -> ScriptLimits {
    ScriptLimits { time: Duration::from_millis(200), ..ScriptLimits::default() }
}

/// Held by tests that start threads of scripts: all of a process share one limit of abandoned threads.
pub fn lock_threads() -> MutexGuard<'static, ()> {
    static THREADS: Mutex<()> = Mutex::new(());
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}
