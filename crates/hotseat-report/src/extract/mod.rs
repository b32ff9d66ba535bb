//! Writes single results of a report as files, for people (Markdown) and for programs (JSON).

mod markdown;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use self::markdown::result_page;
use crate::report_file::{ReportPart, ReportReadError, ReportResult, read_parts};
use crate::reporters::{ReportWriteError, write_output_file};

/// Maximum length of a file name without its extension.
const MAX_NAME_BYTES: usize = 100;

/// Format of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractFormat {
    /// `.md`, for people.
    Markdown,
    /// `.json`: the result as in the report.
    Json,
}

/// Results that cannot be extracted.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// The file is not a run report.
    #[error(transparent)]
    Read(#[from] ReportReadError),
    /// The report has no result of a case with this id.
    #[error("the report has no case `{0}`")]
    NoCase(String),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] ReportWriteError),
}

/// Writes one file for each result of a report, or only for those of the cases with these ids. Returns the paths in
/// the order of the cases. An existing file is replaced. Fails if the text is not a report, an id is unknown, or a file
/// cannot be written.
pub fn extract_results(
    report: &[u8],
    cases: &[String],
    folder: &Path,
    format: ExtractFormat,
) -> Result<Vec<PathBuf>, ExtractError> {
    let mut results: Vec<(CaseId, ReportResult<'_>)> = Vec::new();
    read_parts(report, |part| {
        if let ReportPart::Result(result) = part {
            results.push((result.read()?, result));
        }
        Ok(())
    })?;
    // Lines are in the order in which the cases ended.
    results.sort_by_key(|(case, _)| case.index);
    let known: HashSet<&str> = results.iter().map(|(case, _)| &*case.id).collect();
    if let Some(unknown) = cases.iter().find(|case| !known.contains(case.as_str())) {
        return Err(ExtractError::NoCase(unknown.clone()));
    }
    let wanted: HashSet<&str> = cases.iter().map(String::as_str).collect();
    let mut names = FileNames::default();
    let mut written = Vec::new();
    for (case, result) in &results {
        // Names do not depend on the selection.
        let name = names.assign(&case.id);
        if !wanted.is_empty() && !wanted.contains(case.id.as_str()) {
            continue;
        }
        let (text, extension) = match format {
            ExtractFormat::Markdown => {
                let content = result.read().map_err(|error| error.in_result(report, *result))?;
                (result_page(&content), "md")
            }
            ExtractFormat::Json => (format!("{}\n", result.0), "json"),
        };
        let path = folder.join(format!("{name}.{extension}"));
        write_output_file(&path, &text).map_err(|error| ReportWriteError::new(&path, error))?;
        written.push(path);
    }
    Ok(written)
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct CaseId {
    id: String,
    /// Index in the run.
    #[serde(default)]
    index: usize,
}

/// File names that are in use, in lower case: some systems do not distinguish the case of letters.
#[derive(Default)]
struct FileNames {
    used: HashSet<String>,
    /// Next number for a name that several ids have.
    numbers: HashMap<String, usize>,
}

impl FileNames {
    /// Returns an unused file name for an id: the id itself, if its characters are safe and no earlier result has it.
    fn assign(&mut self, id: &str) -> String {
        let name = safe_name(id);
        let key = name.to_lowercase();
        if self.used.insert(key.clone()) {
            return name;
        }
        let number = self.numbers.entry(key.clone()).or_insert(1);
        loop {
            *number += 1;
            if self.used.insert(format!("{key}-{number}")) {
                return format!("{name}-{number}");
            }
        }
    }
}

/// Replaces characters that are not safe in a file name. The name stays within its folder.
fn safe_name(id: &str) -> String {
    let mut name = String::new();
    for character in id.chars() {
        let is_safe = character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
        let next = if is_safe { character } else { '-' };
        // Neither hidden files nor `..`, and one hyphen for several characters.
        if (next == '.' || !is_safe) && (name.is_empty() || name.ends_with(['-', '.'])) {
            continue;
        }
        if name.len() + next.len_utf8() > MAX_NAME_BYTES {
            break;
        }
        name.push(next);
    }
    let name = name.trim_end_matches(['-', '.']);
    if name.is_empty() { "case".to_string() } else { name.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_distinct() {
        let long = "x".repeat(5000);
        let mut names = FileNames::default();
        for (id, name) in [
            ("a", "a"),
            ("A", "A-2"),
            ("a/../b", "a-b"),
            ("../../etc/passwd", "etc-passwd"),
            ("a-2", "a-2-2"),
            ("A/b", "A-b-2"),
            ("", "case"),
            ("..", "case-2"),
            (".hidden", "hidden"),
            ("a b/c\0", "a-b-c"),
            ("größe.1", "größe.1"),
            (&long, &long[..MAX_NAME_BYTES]),
        ] {
            assert_eq!(names.assign(id), name, "{id}");
        }
    }
}
