//! Reports written by the `--reporter` role.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_checks::RoleReference;
use hotseat_engine::config::ScriptScope;
use hotseat_engine::roles::ReporterQuestion;
use hotseat_engine::run::{RunContext, RunSettings, open_role};
use hotseat_report::reporters::{self, ReportFormat, ReportWriteError, Reporter};
use hotseat_report::runner::ReportWriting;
use serde_json::Value;

use crate::context::stdout;

/// A role that writes reports after the run.
pub struct ReportWriter {
    writer: RoleReference,
    /// Output files; empty for standard output.
    files: Vec<PathBuf>,
    /// Input of the role: the `.json` report, collected during the run.
    input: File,
    verbose: bool,
}

impl ReportWriter {
    /// Creates the writer, and the reporter that collects its input. Fails if no temporary file can be
    /// created.
    pub fn new(
        who: RoleReference,
        files: Vec<PathBuf>,
        verbose: bool,
        setting: Arc<RunSettings>,
    ) -> io::Result<(ReportWriter, Box<dyn Reporter>)> {
        let copy = tempfile::tempfile()?;
        let collects = reporters::open_report(
            copy.try_clone()?.into(),
            ReportFormat::Json,
            "the report writer's copy",
            setting,
        )?;
        Ok((ReportWriter { writer: who, files, input: copy, verbose }, collects))
    }

    /// Returns the work that writes the reports after the run.
    pub fn into_writing(self) -> ReportWriting {
        Box::new(|context| Box::pin(async move { self.write(&context).await }))
    }

    /// Writes the reports.
    ///
    /// # Errors
    /// Lists everything that could not be written. For each report that the role fails to write, its input is
    /// saved as `.json`, so a run always has a report.
    async fn write(mut self, outside: &Arc<RunContext>) -> Result<(), Vec<String>> {
        let mut text = String::new();
        self.input
            .rewind()
            .and_then(|()| self.input.read_to_string(&mut text))
            .map_err(|error| vec![format!("cannot read the input of {}: {error}", self.writer)])?;
        let mut wrong = Vec::new();
        let files: Vec<Option<&PathBuf>> = match self.files.is_empty() {
            true => vec![None],
            false => self.files.iter().map(Some).collect(),
        };
        for file in files {
            let ending = file.and_then(|file| file.extension()?.to_str()).unwrap_or("txt");
            match (self.ask(&text, ending, outside).await, file) {
                (Ok(written), Some(file)) => wrong.extend(write_report(file, &written)),
                (Ok(written), None) => {
                    let lines = reporters::safe_lines(&written).collect::<Vec<_>>().join("\n");
                    if let Err(error) = writeln!(stdout(), "{lines}") {
                        wrong.push(format!("cannot write standard output: {error}"));
                    }
                }
                (Err(error), file) => {
                    wrong.push(format!("{} wrote no report: {error}", self.writer));
                    let kept = file.map(|file| file.with_extension("json"));
                    wrong.extend(kept.and_then(|kept| write_report(&kept, &text)));
                }
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    async fn ask(
        &self,
        text: &str,
        format: &str,
        outside: &Arc<RunContext>,
    ) -> Result<String, Box<dyn Error + Send + Sync>> {
        let report: Value = serde_json::from_str(text)?;
        let words = |found: hotseat_document::Diagnostics| {
            found.into_iter().map(|mistake| mistake.to_string()).collect::<Vec<_>>().join("\n")
        };
        let project = &outside.project;
        let whose = ScriptScope { folder: &project.root, agent: None };
        let found = (self.writer.clone(), project.find_role(&self.writer, None, whose).map_err(words)?);
        let powers =
            outside.script_permissions(&[whose], &BTreeMap::new(), &project.call_settings().identity());
        let role =
            open_role(outside, &powers, &found, None, &BTreeMap::new(), &mut Vec::new()).map_err(words)?;
        Ok(role.write_report(ReporterQuestion { report, format, verbose: self.verbose }).await?)
    }
}

fn write_report(path: &Path, text: &str) -> Option<String> {
    let written = reporters::write_output_file(path, text);
    written.err().map(|error| ReportWriteError::new(path, error).to_string())
}
