//! Writes the workload as a project with suites.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::workload::{TOOL, marker, question};

/// Maximum number of cases per file: large, to show if files are read as a whole.
const CASES_PER_FILE: usize = 25_000;

/// Writes a project with a target at `url`. Fails if the folder cannot be written.
pub fn write_project(folder: &Path, url: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("hotseat.yaml"), format!("target:\n  endpoint: \"{url}\"\n"))
}

/// Writes suites into a new folder. Fails if they cannot be written.
pub fn write_suites(folder: &Path, cases: usize, turns: usize) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for first in (0..cases).step_by(CASES_PER_FILE) {
        let mut file = BufWriter::new(File::create(folder.join(format!("from-{first:06}.test.yaml")))?);
        for case in first..cases.min(first + CASES_PER_FILE) {
            write_case(&mut file, case, turns)?;
        }
        file.flush()?;
    }
    Ok(())
}

/// Writes a suite of one-turn cases as JSON lines into a new folder. Fails if it cannot be written.
pub fn write_lines(folder: &Path, cases: usize) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = BufWriter::new(File::create(folder.join("lines.test.jsonl"))?);
    for case in 0..cases {
        let (question, marker) = (question(case, 1), marker(case, 1));
        writeln!(
            file,
            r#"{{"id": "order {case}", "input": "{question}", "assertions": [{{"type": "tool_called", "name": "{TOOL}"}}, {{"type": "contains", "value": "{marker}?"}}]}}"#
        )?;
    }
    file.flush()
}

fn write_case(file: &mut impl Write, case: usize, turns: usize) -> io::Result<()> {
    writeln!(file, "---\nname: order {case}\nturns:")?;
    for turn in 1..=turns {
        let (question, marker) = (question(case, turn), marker(case, turn));
        write!(
            file,
            "  - user: \"{question}\"
    assert:
      tools:
        require:
          - name: {TOOL}
            args_match: {{ id: ^A-17$, quantity: \"2\" }}
      text:
        must_match: '{marker}\\?'
"
        )?;
    }
    Ok(())
}
