//! Reads report files: `.json`, `.jsonl`, or JSON with any file name.

use hotseat_document::json::JsonReadError;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// The file is not a run report, or is truncated.
#[derive(Debug, thiserror::Error)]
pub enum ReportReadError {
    /// The file is not JSON.
    #[error("this {0}")]
    NotJson(JsonReadError),
    /// The file is JSON but not a run report.
    #[error("this is not a run report: {words}")]
    NoReport {
        /// Description of the error.
        words: String,
    },
    /// The file has more results than one run.
    #[error("line {line} column {column}: {words}")]
    MoreThanOneRun {
        /// Description of what is there twice.
        words: String,
        /// Line of the second one, counted from 1.
        line: u32,
        /// Column of the second one, counted in characters from 1.
        column: u32,
        /// Start of the second one.
        excerpt: String,
    },
}

/// Maximum length of an excerpt in bytes.
const MAX_EXCERPT_BYTES: usize = 400;

impl ReportReadError {
    /// Error at `part` of a report: it is there a second time.
    pub(crate) fn more_than_one_run(report: &[u8], part: &str, words: String) -> Self {
        let start = (part.as_ptr() as usize).saturating_sub(report.as_ptr() as usize).min(report.len());
        let before = String::from_utf8_lossy(without_byte_order_mark(&report[..start]));
        let last_line = before.rsplit('\n').next().unwrap_or_default();
        let count = |n: usize| u32::try_from(n + 1).unwrap_or(u32::MAX);
        let first_line = part.lines().next().unwrap_or_default();
        ReportReadError::MoreThanOneRun {
            words,
            line: count(before.matches('\n').count()),
            column: count(last_line.chars().count()),
            excerpt: first_line[..first_line.floor_char_boundary(MAX_EXCERPT_BYTES)].to_string(),
        }
    }
}

/// Some shells write a byte order mark.
fn without_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(text)
}

impl From<serde_json::Error> for ReportReadError {
    fn from(error: serde_json::Error) -> Self {
        match error.is_data() {
            true => ReportReadError::NoReport { words: error.to_string() },
            false => ReportReadError::NotJson(error.into()),
        }
    }
}

/// Part of a report, in the order of the file.
pub(crate) enum ReportPart<'t> {
    /// Data of the run.
    Start(ReportStart),
    /// Result of a case.
    Result(ReportResult<'t>),
    /// The end of the run.
    End {
        /// True if the run was interrupted.
        is_interrupted: bool,
    },
}

/// Data of a run.
#[derive(Default)]
pub(crate) struct ReportStart {
    pub started_at: Option<String>,
    pub agent_id: Option<String>,
    pub connector: Option<String>,
}

/// JSON text of the result of a case.
#[derive(Clone, Copy)]
pub(crate) struct ReportResult<'t>(pub &'t str);

impl ReportResult<'_> {
    /// Reads some members of the result. Fails if one is missing or has another type.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, ReportReadError> {
        Ok(serde_json::from_str(self.0)?)
    }
}

/// The parts of a run that have been read.
#[derive(Clone, Copy, PartialEq)]
enum ReadProgress {
    Nothing,
    Results,
    Whole,
}

impl ReadProgress {
    /// Returns the progress with another part. `None` if it belongs to another run.
    fn after(self, part: &ReportPart<'_>) -> Option<ReadProgress> {
        match (self, part) {
            (ReadProgress::Whole, _) | (ReadProgress::Results, ReportPart::Start(_)) => None,
            (_, ReportPart::Start(_) | ReportPart::Result(_)) => Some(ReadProgress::Results),
            (_, ReportPart::End { .. }) => Some(ReadProgress::Whole),
        }
    }
}

/// Calls `each` with the parts of a report. Fails if the text is not the report of one run, or `each` fails.
pub(crate) fn read_parts<'t>(
    text: &'t [u8],
    mut each: impl FnMut(ReportPart<'t>) -> Result<(), ReportReadError>,
) -> Result<(), ReportReadError> {
    let mut is_report = false;
    let mut progress = ReadProgress::Nothing;
    for value in serde_json::Deserializer::from_slice(without_byte_order_mark(text)).into_iter::<&RawValue>()
    {
        let value = match value {
            Ok(value) => value.get(),
            // A killed run leaves a truncated last line.
            Err(error) if error.is_eof() && is_report => break,
            Err(error) => return Err(ReportReadError::NotJson(error.into())),
        };
        is_report |= read_value(value, &mut |part| {
            progress = progress.after(&part).ok_or_else(|| {
                let words = "another run starts here, and a report has one run".to_string();
                ReportReadError::more_than_one_run(text, value, words)
            })?;
            each(part)
        })?;
    }
    match is_report {
        true => Ok(()),
        false => Err(ReportReadError::NoReport { words: "it has no results".to_string() }),
    }
}

/// Reads one value of the file: a whole report or one line of a report. Returns true if it is either.
fn read_value<'t>(
    text: &'t str,
    each: &mut impl FnMut(ReportPart<'t>) -> Result<(), ReportReadError>,
) -> Result<bool, ReportReadError> {
    if !text.starts_with('{') {
        return Err(ReportReadError::NoReport { words: "it is not a JSON object".to_string() });
    }
    let head: ReportContent<'t> = serde_json::from_str(text)?;
    match head.r#type.as_deref() {
        Some("result") => each(ReportPart::Result(ReportResult(text)))?,
        Some("start") => {
            let ReportContent { started_at, agent_id, connector, .. } = head;
            each(ReportPart::Start(ReportStart { started_at, agent_id, connector }))?;
        }
        Some("summary") => each(ReportPart::End { is_interrupted: head.interrupted })?,
        Some(_) => {}
        None => {
            let Some(results) = head.results else { return Ok(false) };
            let SummaryContent { interrupted, agent_id, connector } = head.summary.unwrap_or_default();
            let started_at = head.metadata.and_then(|metadata| metadata.started_at);
            each(ReportPart::Start(ReportStart { started_at, agent_id, connector }))?;
            results
                .into_iter()
                .try_for_each(|result| each(ReportPart::Result(ReportResult(result.get()))))?;
            each(ReportPart::End { is_interrupted: interrupted })?;
        }
    }
    Ok(true)
}

/// A whole report, or a line with data of the run.
#[derive(serde::Deserialize)]
struct ReportContent<'t> {
    r#type: Option<String>,
    #[serde(borrow)]
    results: Option<Vec<&'t RawValue>>,
    summary: Option<SummaryContent>,
    metadata: Option<MetadataContent>,
    started_at: Option<String>,
    agent_id: Option<String>,
    connector: Option<String>,
    #[serde(default)]
    interrupted: bool,
}

#[derive(Default, serde::Deserialize)]
struct SummaryContent {
    #[serde(default)]
    interrupted: bool,
    agent_id: Option<String>,
    connector: Option<String>,
}

#[derive(serde::Deserialize)]
struct MetadataContent {
    started_at: Option<String>,
}
