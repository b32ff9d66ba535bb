//! Reads report files: `.json`, `.jsonl`, or JSON with any file name.

use hotseat_document::json::JsonReadError;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::reporters::record::VERSION;

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
    /// A part of the report is not the result of a case.
    #[error("line {} column {}: this is not the result of a case: {words}", .place.line, .place.column)]
    InvalidResult {
        /// Description of the error.
        words: String,
        /// The part.
        place: ReportPlace,
    },
    /// The file has more results than one run.
    #[error("line {} column {}: {words}", .place.line, .place.column)]
    MoreThanOneRun {
        /// Description of what is there twice.
        words: String,
        /// The second one.
        place: ReportPlace,
    },
    /// A later version of Hotseat wrote the file in another format.
    #[error("this report has the format {0}, and this version of Hotseat reads {known}", known = VERSION)]
    LaterFormat(String),
}

/// Place of a part of a report.
#[derive(Debug)]
pub struct ReportPlace {
    /// Its line, counted from 1.
    pub line: u32,
    /// Its column, counted in characters from 1.
    pub column: u32,
    /// Its start.
    pub excerpt: String,
}

/// Maximum length of an excerpt in bytes.
const MAX_EXCERPT_BYTES: usize = 400;

impl ReportReadError {
    /// Error at `part` of a report: it is there a second time.
    pub(crate) fn more_than_one_run(report: &[u8], part: &str, words: String) -> Self {
        ReportReadError::MoreThanOneRun { words, place: ReportPlace::new(report, part) }
    }

    /// Adds the place of a result that cannot be read.
    pub(crate) fn in_result(self, report: &[u8], result: ReportResult<'_>) -> Self {
        match self {
            ReportReadError::NoReport { words } => {
                ReportReadError::InvalidResult { words, place: ReportPlace::new(report, result.0) }
            }
            other => other,
        }
    }
}

impl ReportPlace {
    /// Creates the place of a part of a report.
    fn new(report: &[u8], part: &str) -> Self {
        let start = (part.as_ptr() as usize).saturating_sub(report.as_ptr() as usize).min(report.len());
        let before = String::from_utf8_lossy(without_byte_order_mark(&report[..start]));
        let last_line = before.rsplit('\n').next().unwrap_or_default();
        let count = |n: usize| u32::try_from(n + 1).unwrap_or(u32::MAX);
        let first_line = part.lines().next().unwrap_or_default();
        ReportPlace {
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
            true => {
                let (words, place) =
                    (error.to_string(), format!(" at line {} column {}", error.line(), error.column()));
                ReportReadError::NoReport { words: words.strip_suffix(&place).unwrap_or(&words).to_string() }
            }
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
            let result = if let ReportPart::Result(result) = &part { Some(*result) } else { None };
            each(part).map_err(|error| match result {
                Some(result) => error.in_result(text, result),
                None => error,
            })
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
    let version =
        head.version.as_ref().or(head.metadata.as_ref().and_then(|metadata| metadata.version.as_ref()));
    check_format(version)?;
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

/// Fails if a report has a format that a later version of Hotseat writes.
fn check_format(version: Option<&String>) -> Result<(), ReportReadError> {
    let major = |version: &str| version.split('.').next().and_then(|major| major.parse::<u64>().ok());
    match version {
        Some(version) if major(version) > major(VERSION) => {
            Err(ReportReadError::LaterFormat(version.clone()))
        }
        Some(_) | None => Ok(()),
    }
}

/// A whole report, or a line with data of the run.
#[derive(serde::Deserialize)]
#[serde(expecting = "an object")]
struct ReportContent<'t> {
    r#type: Option<String>,
    version: Option<String>,
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
#[serde(expecting = "an object")]
struct SummaryContent {
    #[serde(default)]
    interrupted: bool,
    agent_id: Option<String>,
    connector: Option<String>,
}

#[derive(serde::Deserialize)]
#[serde(expecting = "an object")]
struct MetadataContent {
    version: Option<String>,
    started_at: Option<String>,
}
