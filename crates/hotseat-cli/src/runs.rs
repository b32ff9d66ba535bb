//! `hotseat runs`.

use hotseat_engine::config::display_path;
use hotseat_report::reporters::{format_count, format_duration, one_line};
use hotseat_report::store::{RunOrigin, RunState, RunStore, StoreLimits, StoredRun, StoredRunRecord};
use serde_json::json;

use crate::args::RunsArgs;
use crate::context::CliContext;
use crate::exit::CommandResult;
use crate::store_location::{self, prune_limits, report_store_error};

/// Lists the saved runs, or prunes them.
pub fn run(args: &RunsArgs, context: &CliContext) -> CommandResult {
    let place = store_location::locate_store(&args.location, context)?;
    let store = RunStore::open(&place.path).map_err(|error| report_store_error(&error, context))?;
    if args.prune {
        let configured = prune_limits(&place.storing);
        let limits = StoreLimits {
            max_age: args.max_age.or(configured.max_age),
            max_size: args.max_size.or(configured.max_size),
        };
        let pruned = store.prune(limits).map_err(|error| report_store_error(&error, context))?;
        let (runs, room) = (format_count(pruned.runs, "run"), format_megabytes(pruned.after));
        let freed = pruned.before.saturating_sub(pruned.after);
        if args.json {
            let record =
                json!({"deleted_runs": pruned.runs, "freed_bytes": freed, "remaining_bytes": pruned.after});
            return Ok(context.print_json(|out| writeln!(out, "{record}")));
        }
        let freed = format_megabytes(freed);
        let words = format!("deleted {runs} ({freed}); the remaining runs take {room}");
        return Ok(context.print(|out| writeln!(out, "{words}")));
    }
    let most = if args.limit == 0 { usize::MAX } else { args.limit };
    let mut runs = store.runs(most.saturating_add(1)).map_err(|error| report_store_error(&error, context))?;
    if runs.len() > most {
        runs.truncate(most);
        context
            .print_message(&format!("note: the latest {}; `--limit 0` lists all", format_count(most, "run")));
    }
    if runs.is_empty() {
        let shown = display_path(&place.path, &context.folder);
        context.print_message(&format!("note: there are no saved runs in {shown}; `hotseat test` saves one"));
    }
    if args.json {
        let mut lines = runs.iter().map(|run| serde_json::to_string(&StoredRunRecord::new(run)));
        return Ok(context.print_json(|out| lines.try_for_each(|line| writeln!(out, "{}", line?))));
    }
    let mut lines = runs.iter().map(|run| format_run(run, context.width()));
    Ok(context.print(|out| lines.try_for_each(|line| writeln!(out, "{line}"))))
}

/// `3f2a9c01  2026-11-22 10:15  3 passed, 1 failed  12.3s  1a2b3c4+  tests/a.test.yaml`
fn format_run(run: &StoredRun, width: usize) -> String {
    let when =
        jiff::Timestamp::from_millisecond(run.started_at).map(|at| at.to_zoned(jiff::tz::TimeZone::system()));
    let when = when.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default();
    let took = run.summary.as_ref().map_or_else(String::new, |summary| format_duration(summary.duration));
    let commit = run.commit.as_ref().map_or_else(String::new, |commit| {
        format!("{}{}", commit.id.get(..7).unwrap_or(&commit.id), if commit.dirty { "+" } else { "" })
    });
    let line = format!(
        "{}  {when}  {:<28} {took:>7}  {commit:<8}  {}",
        run.short_id(),
        describe_status(run),
        describe_suites(run)
    );
    one_line(line.trim_end(), width)
}

/// Summarises the results of a run in a few words.
fn describe_status(run: &StoredRun) -> String {
    let mut parts = run.results();
    let sweep_failures = run.summary.as_ref().map_or(0, |summary| summary.sweep_failures);
    parts.extend((sweep_failures > 0).then(|| format!("{sweep_failures} failed with a fault")));
    match run.state {
        RunState::Ended => {}
        state => parts.push(format!(
            "{} of {} ({})",
            run.metadata.total - run.unfinished(),
            run.metadata.total,
            run.summary.as_ref().and_then(|summary| summary.broken.as_deref()).unwrap_or(state.name())
        )),
    }
    parts.join(", ")
}

/// Names the suites of a run, its shard and its origin.
fn describe_suites(run: &StoredRun) -> String {
    let inputs = &run.metadata.setting.inputs;
    let suites = match inputs.as_slice() {
        [] => String::new(),
        [one] => one.to_string(),
        [first, more @ ..] => format!("{first} and {} more", more.len()),
    };
    let shard = run.metadata.shard.map_or_else(String::new, |shard| format!(" (shard {shard})"));
    match &run.metadata.origin {
        RunOrigin::Held => format!("{suites}{shard}"),
        RunOrigin::Rechecked { of } => format!("{suites} (recheck of {})", of.get(..8).unwrap_or(of)),
        RunOrigin::Merged { of } => format!("{suites} ({} merged)", format_count(of.len(), "run")),
    }
}

fn format_megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1_000_000.0)
}
