//! The table of a sweep of faults.

use hotseat_engine::run::{MAX_CALLS_OF_CASE, SweepReport, SweepRow};

use super::options::{ConsoleOptions, TextStyle};
use crate::reporters::text::{columns, format_count, one_line};

/// Maximum width of a column with names.
const MAX_NAME_COLUMNS: usize = 40;
/// Maximum width of a message.
const MAX_MESSAGE_COLUMNS: usize = 100;

/// Formats the announcement of a sweep.
pub(super) fn announcement(runs: usize, combinations: usize) -> String {
    let of_all = match combinations > runs {
        true => format!(" of {combinations} combinations of calls and faults"),
        false => String::new(),
    };
    format!("faults: {}{of_all}\n", format_count(runs, "conversation"))
}

/// Formats the table.
pub(super) fn table(look: &ConsoleOptions, report: &SweepReport) -> String {
    let mut lines = vec![["CASE", "CALL", "FAULT", "OUTCOME"].map(str::to_string)];
    let mut above: Option<&SweepRow> = None;
    for (row, tool) in report.rows.iter().zip(report.tool_labels()) {
        lines.push(cells(row, &tool, above.replace(row)));
    }
    let mut widths = [0; 4];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(columns(cell));
        }
    }
    let mut text = String::new();
    for (place, line) in lines.iter().enumerate().skip(usize::from(report.rows.is_empty())) {
        let padded = line.iter().zip(widths).take(3);
        let names: String =
            padded.map(|(cell, width)| format!("{cell}{}", " ".repeat(width + 2 - columns(cell)))).collect();
        let row = place.checked_sub(1).and_then(|place| report.rows.get(place));
        let style = match row.map(|row| row.outcome.is_bad()) {
            None => TextStyle::Strong,
            Some(true) => TextStyle::Bad,
            Some(false) => TextStyle::Good,
        };
        text.push_str(&format!("{names}{}\n", look.paint(style, &line[3])));
        if let Some(message) = row.and_then(SweepRow::failure_text) {
            let message = one_line(&message, MAX_MESSAGE_COLUMNS);
            text.push_str(&format!("  {}\n", look.paint(TextStyle::Quiet, &message)));
        }
    }
    for skip in &report.skipped {
        let words = format!("{}: no faults, {}", one_line(&skip.case, MAX_NAME_COLUMNS), skip.reason);
        text.push_str(&format!("{}\n", look.paint(TextStyle::Skipped, &words)));
    }
    if !report.rows.is_empty() {
        text.push_str(&format!("\n{}\n", report.totals()));
    }
    let bad = report.rows.iter().filter(|row| row.outcome.is_bad()).count();
    if bad > 0 {
        let (all, show) =
            (format_count(report.runs, "conversation"), if bad == 1 { "shows" } else { "show" });
        let words = format!("{bad} of {all} with a fault {show} a defect of the agent or the test");
        text.push_str(&format!("{}\n", look.paint(TextStyle::Bad, &words)));
    }
    if report.calls_left_out > 0 {
        let left_out = format_count(report.calls_left_out, "call");
        text.push_str(&format!("{left_out} after the first {MAX_CALLS_OF_CASE} of a case got no fault\n"));
    }
    if report.missing > 0 {
        text.push_str(&format!("{} did not run\n", format_count(report.missing, "conversation")));
    }
    text
}

/// The cells of a row. A case and a call are named once.
fn cells(row: &SweepRow, tool: &str, above: Option<&SweepRow>) -> [String; 4] {
    let again = match row.calls_again {
        0 => String::new(),
        times => format!(" ({} more)", format_count(times, "call")),
    };
    let same_case = above.is_some_and(|above| (&above.suite, &above.case) == (&row.suite, &row.case));
    let same_call = same_case
        && above.is_some_and(|above| {
            (&above.server, &above.tool, above.nth) == (&row.server, &row.tool, row.nth)
        });
    let named = |is_same: bool, name: String| if is_same { String::new() } else { name };
    [
        named(same_case, one_line(&row.case, MAX_NAME_COLUMNS)),
        named(same_call, format!("{} #{}", one_line(tool, MAX_NAME_COLUMNS), row.nth)),
        row.fault.to_string(),
        format!("{}{again}", row.outcome),
    ]
}
