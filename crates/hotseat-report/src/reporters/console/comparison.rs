//! Table of the differences between expected and actual tool calls.

use hotseat_trace::{CallComparison, MissingCall, ValueDifference};

use super::options::{ConsoleOptions, TextStyle};
use crate::reporters::text::{columns, one_line, wrap};

/// Minimum width of a table; below it the values of a difference are written on lines of their own.
const MIN_TABLE_COLUMNS: usize = 48;
/// Space between two columns.
const GAP: &str = "  ";
/// Maximum number of lines of a value, except in verbose mode.
const MAX_CELL_LINES: usize = 4;
/// Maximum length of a value before it is wrapped.
const MAX_VALUE_COLUMNS: usize = 4_000;

/// Texts of a difference, safe to print.
struct DifferenceRow {
    subject: String,
    expected: String,
    got: String,
    note: Option<String>,
}

impl DifferenceRow {
    fn new(difference: &ValueDifference, is_verbose: bool) -> Self {
        let (expected, got) = match is_verbose {
            true => (difference.expected.clone(), difference.got.clone()),
            false => difference.excerpts(),
        };
        let safe = |text: &str| one_line(text, MAX_VALUE_COLUMNS);
        DifferenceRow {
            subject: safe(&difference.subject()),
            expected: expected.map_or_else(|| "nothing".to_string(), |text| safe(&text)),
            got: got.map_or_else(|| "missing".to_string(), |text| safe(&text)),
            note: difference.note.as_deref().map(safe),
        }
    }
}

/// Formats each missing call with its differences from the nearest call, in lines of at most `room` columns.
pub(super) fn comparison_lines(
    look: &ConsoleOptions,
    comparison: &CallComparison,
    room: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    for MissingCall { expected, nearest } in &comparison.missing {
        let mut head = |label: &str, text: &str| {
            let text = one_line(text, MAX_VALUE_COLUMNS);
            let wrapped = wrap(&text, room.saturating_sub(columns(label) + 1), room.saturating_sub(2));
            for (number, line) in wrapped.into_iter().enumerate() {
                lines.push(match number {
                    0 => format!("{} {line}", look.paint(TextStyle::Strong, label)),
                    _ => format!("  {line}"),
                });
            }
        };
        if let Some(expected) = expected {
            head("missing:", expected);
        }
        let Some(nearest) = nearest else { continue };
        head("nearest:", &format!("{} in turn {}", nearest.tool, nearest.turn));
        let rows: Vec<DifferenceRow> = nearest
            .differences
            .iter()
            .map(|difference| DifferenceRow::new(difference, look.verbose))
            .collect();
        let indented = room.saturating_sub(2);
        let table = match indented >= MIN_TABLE_COLUMNS {
            true => table(look, &rows, indented),
            false => stacked(look, &rows, indented),
        };
        lines.extend(table.into_iter().map(|line| format!("  {line}").trim_end().to_string()));
        if nearest.omitted > 0 {
            lines.push(format!("  … and {} more differences", nearest.omitted));
        }
    }
    lines
}

/// Formats an aligned table with a header.
fn table(look: &ConsoleOptions, rows: &[DifferenceRow], room: usize) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let widest = |header: &str, of: fn(&DifferenceRow) -> &str| {
        rows.iter().map(|row| columns(of(row))).max().unwrap_or(0).max(columns(header))
    };
    let subject = widest("argument", |row| &row.subject).min(room / 3);
    let values = room - subject - 2 * GAP.len();
    let (expected, got) = (widest("expected", |row| &row.expected), widest("got", |row| &row.got));
    // Each value gets the space that the other one does not need.
    let expected = expected.min((values / 2).max(values.saturating_sub(got)));
    let got = values - expected;
    let mut lines = Vec::new();
    let header = format!("{}{GAP}{}{GAP}got", padded("argument", subject), padded("expected", expected));
    lines.push(look.paint(TextStyle::Quiet, &header));
    for row in rows {
        let cells = [
            (wrap(&row.subject, subject, subject), subject, TextStyle::Strong),
            (cell_lines(look, &row.expected, expected), expected, TextStyle::Good),
            (cell_lines(look, &row.got, got), 0, TextStyle::Bad),
        ];
        let height = cells.iter().map(|(lines, ..)| lines.len()).max().unwrap_or(0);
        for number in 0..height {
            let parts = cells.iter().map(|(lines, width, style)| {
                let text = lines.get(number).map_or("", String::as_str);
                let space = " ".repeat(width.saturating_sub(columns(text)));
                format!("{}{space}", look.paint(*style, text))
            });
            lines.push(parts.collect::<Vec<_>>().join(GAP).trim_end().to_string());
        }
        lines.extend(note_lines(look, row, subject + GAP.len(), room));
    }
    lines
}

/// Formats each difference in several lines.
fn stacked(look: &ConsoleOptions, rows: &[DifferenceRow], room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for row in rows {
        lines.extend(wrap(&row.subject, room, room).iter().map(|line| look.paint(TextStyle::Strong, line)));
        for (label, text, style) in
            [("expected", &row.expected, TextStyle::Good), ("got     ", &row.got, TextStyle::Bad)]
        {
            let left = columns(label) + 3;
            for (number, line) in cell_lines(look, text, room.saturating_sub(left)).iter().enumerate() {
                let label = if number == 0 { format!("  {label} ") } else { " ".repeat(left) };
                lines.push(format!("{label}{}", look.paint(style, line)));
            }
        }
        lines.extend(note_lines(look, row, 2, room));
    }
    lines
}

fn note_lines(look: &ConsoleOptions, row: &DifferenceRow, left: usize, room: usize) -> Vec<String> {
    let Some(note) = &row.note else { return Vec::new() };
    let width = room.saturating_sub(left);
    let lines = wrap(note, width, width);
    lines.iter().map(|line| format!("{}{}", " ".repeat(left), look.paint(TextStyle::Quiet, line))).collect()
}

/// Wraps a value; a long one is cut, except in verbose mode.
fn cell_lines(look: &ConsoleOptions, text: &str, width: usize) -> Vec<String> {
    let mut lines = wrap(text, width, width);
    if !look.verbose && lines.len() > MAX_CELL_LINES {
        lines.truncate(MAX_CELL_LINES);
        let last = lines.pop().unwrap_or_default();
        lines.push(one_line(&format!("{last} …"), width.max(2)));
    }
    lines
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

#[cfg(test)]
mod tests {
    use hotseat_trace::{ComparedPart, DifferenceReason, NearestCall};

    use super::*;

    fn comparison() -> CallComparison {
        let difference =
            |path: &str, expected: Option<&str>, got: Option<&str>, note: Option<&str>| ValueDifference {
                part: ComparedPart::Arguments,
                path: path.to_string(),
                expected: expected.map(str::to_string),
                got: got.map(str::to_string),
                reason: DifferenceReason::Value,
                note: note.map(str::to_string),
            };
        let differences = vec![
            difference(
                "amount",
                Some("3500"),
                Some("\"3500\""),
                Some("expected the number 3500, got the text \"3500\""),
            ),
            difference("flights.0.date", Some("\"2024-05-20\""), None, None),
            difference(
                "到着",
                None,
                Some("\"\x1b[31m東京東京東京東京東京東京東京東京東京東京東京東京\""),
                None,
            ),
        ];
        let nearest = NearestCall { tool: "book".into(), turn: 2, id: "c".into(), differences, omitted: 0 };
        CallComparison {
            summary: String::new(),
            missing: vec![MissingCall { expected: Some("book({…})".to_string()), nearest: Some(nearest) }],
            lines: Vec::new(),
            omitted: 0,
        }
    }

    #[test]
    fn lines_fit_every_width_and_columns_are_aligned() {
        for room in 10..120 {
            let look =
                ConsoleOptions { color: false, width: room, progress: false, verbose: false, wraps: true };
            for line in comparison_lines(&look, &comparison(), room) {
                assert!(columns(&line) <= room.max(22), "{room}: {line}");
                assert!(!line.contains('\x1b'), "{line}");
            }
        }
        let look = ConsoleOptions { color: false, width: 100, progress: false, verbose: false, wraps: true };
        let lines = comparison_lines(&look, &comparison(), 80);
        assert_eq!(
            lines[..6],
            [
                "missing: book({…})",
                "nearest: book in turn 2",
                "  argument        expected      got",
                "  amount          3500          \"3500\"",
                "                  expected the number 3500, got the text \"3500\"",
                "  flights.0.date  \"2024-05-20\"  missing",
            ]
        );
    }
}
