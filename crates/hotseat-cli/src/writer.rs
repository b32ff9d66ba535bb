//! Reports that a helper writes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat::checks::Reference;
use hotseat::config::Whose;
use hotseat::report::{self, Format, NotWritable, Reporter};
use hotseat::roles::ReporterQuestion;
use hotseat::run::{Outside, Setting, role};
use serde_json::Value;

use crate::world::stdout;

/// A helper that writes reports of a run, once that is over.
pub struct Writer {
    who: Reference,
    /// Where its reports go; standard output where there is none.
    files: Vec<PathBuf>,
    /// What it is told: the `.json` report, as long as the run goes on.
    told: File,
    verbose: bool,
}

impl Writer {
    /// The helper, and the reporter that collects what it is told.
    ///
    /// # Errors
    /// When no temporary file can be made.
    pub fn new(
        who: Reference,
        files: Vec<PathBuf>,
        verbose: bool,
        setting: Arc<Setting>,
    ) -> io::Result<(Writer, Box<dyn Reporter>)> {
        let told = tempfile::tempfile()?;
        let collects = report::open(told.try_clone()?, Format::Json, "the helper's copy", setting)?;
        Ok((Writer { who, files, told, verbose }, collects))
    }

    /// Has the reports written.
    ///
    /// # Errors
    /// Everything that could not be written, in words. What the helper was told is kept beside each report that it does
    /// not write, as `.json`: a run is never without a report.
    pub async fn write(mut self, outside: &Arc<Outside>) -> Result<(), Vec<String>> {
        let mut text = String::new();
        self.told
            .rewind()
            .and_then(|()| self.told.read_to_string(&mut text))
            .map_err(|error| vec![format!("cannot read what {} is told: {error}", self.who)])?;
        let mut wrong = Vec::new();
        let files: Vec<Option<&PathBuf>> = match self.files.is_empty() {
            true => vec![None],
            false => self.files.iter().map(Some).collect(),
        };
        for file in files {
            let ending = file.and_then(|file| file.extension()?.to_str()).unwrap_or("txt");
            match (self.ask(&text, ending, outside).await, file) {
                (Ok(written), Some(file)) => wrong.extend(save(file, &written)),
                (Ok(written), None) => {
                    if let Err(error) = writeln!(stdout(), "{}", harmless(&written)) {
                        wrong.push(format!("cannot write standard output: {error}"));
                    }
                }
                (Err(words), file) => {
                    wrong.push(format!("{} wrote no report: {words}", self.who));
                    let kept = file.map(|file| file.with_extension("json"));
                    wrong.extend(kept.and_then(|kept| save(&kept, &text)));
                }
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    async fn ask(&self, text: &str, format: &str, outside: &Arc<Outside>) -> Result<String, String> {
        let report: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let words = |found: hotseat::document::Diagnostics| {
            found.into_iter().map(|mistake| mistake.message).collect::<Vec<_>>().join("; ")
        };
        let project = &outside.project;
        let whose = Whose { folder: &project.root, agent: None };
        let found = (self.who.clone(), project.find_helper(&self.who, None, whose).map_err(words)?);
        let powers = outside.powers(&[whose], &BTreeMap::new(), &project.calling().identity());
        let role = role(outside, &powers, &found, None, &BTreeMap::new(), &mut Vec::new()).map_err(words)?;
        role.report(ReporterQuestion { report, format, verbose: self.verbose }).await
    }
}

fn save(path: &Path, text: &str) -> Option<String> {
    let written = report::create(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.err().map(|error| NotWritable::new(path, error).to_string())
}

/// What a helper says goes to a terminal line by line, without anything that steers it.
fn harmless(text: &str) -> String {
    report::lines(text).collect::<Vec<_>>().join("\n")
}
