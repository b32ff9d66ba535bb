//! `hotseat runs`.

use hotseat::report::{count, duration, one_line};
use hotseat::store::{Limits, Origin, RunHead, State, Store};

use crate::args::RunsArgs;
use crate::exit::Exit;
use crate::kept::{self, limits, refuse};
use crate::world::World;

/// Lists the runs that are kept, or gives up those that are too many.
pub fn run(args: &RunsArgs, world: &World) -> Exit {
    let place = match kept::place(&args.at, world) {
        Ok(place) => place,
        Err(exit) => return exit,
    };
    let store = match Store::open(&place.path) {
        Ok(store) => store,
        Err(error) => return refuse(&error, world),
    };
    if args.prune {
        let said = limits(&place.storing);
        let limits = Limits { keep: args.keep.or(said.keep), max_size: args.max_size.or(said.max_size) };
        return match store.prune(limits) {
            Ok(pruned) => {
                let (runs, room) = (count(pruned.runs, "run"), megabytes(pruned.after));
                let freed = megabytes(pruned.before.saturating_sub(pruned.after));
                world.print(|out| writeln!(out, "gave up {runs} ({freed}); what is left takes {room}"))
            }
            Err(error) => refuse(&error, world),
        };
    }
    let most = if args.limit == 0 { usize::MAX } else { args.limit };
    match store.runs(most) {
        Ok(runs) if args.json => {
            let lines = runs.iter().map(|run| serde_json::to_string(&run.record()));
            world.print_json(|out| lines.into_iter().try_for_each(|line| writeln!(out, "{}", line?)))
        }
        Ok(runs) => {
            world.print(|out| runs.iter().try_for_each(|run| writeln!(out, "{}", line(run, world.width()))))
        }
        Err(error) => refuse(&error, world),
    }
}

/// `3f2a9c01  2026-11-22 10:15  3 passed, 1 failed  12.3s  1a2b3c4+  tests/a.test.yaml`
fn line(run: &RunHead, width: usize) -> String {
    let when =
        jiff::Timestamp::from_millisecond(run.began).map(|at| at.to_zoned(jiff::tz::TimeZone::system()));
    let when = when.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default();
    let took = run.summary.as_ref().map_or_else(String::new, |summary| duration(summary.duration));
    let commit = run.commit.as_ref().map_or_else(String::new, |commit| {
        format!("{}{}", commit.id.get(..7).unwrap_or(&commit.id), if commit.dirty { "+" } else { "" })
    });
    let line =
        format!("{}  {when}  {:<28} {took:>7}  {commit:<8}  {}", run.short(), came_to(run), suites(run));
    one_line(line.trim_end(), width)
}

/// What a run came to, in a few words.
fn came_to(run: &RunHead) -> String {
    let counts = run.counts;
    let parts = [(counts.passed, "passed"), (counts.failed, "failed"), (counts.skipped, "skipped")];
    let mut parts: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    match run.state {
        State::Ended => {}
        state => parts.push(format!(
            "{} of {} ({})",
            run.about.total - run.unfinished(),
            run.about.total,
            state.name()
        )),
    }
    parts.join(", ")
}

/// The suites of a run, and what is special about it.
fn suites(run: &RunHead) -> String {
    let inputs = &run.about.setting.inputs;
    let suites = match inputs.as_slice() {
        [] => String::new(),
        [one] => one.to_string(),
        [first, more @ ..] => format!("{first} and {} more", more.len()),
    };
    let shard = run.about.shard.map_or_else(String::new, |shard| format!(" (part {shard})"));
    match &run.about.origin {
        Origin::Held => format!("{suites}{shard}"),
        Origin::Rechecked { of } => format!("{suites} (recheck of {})", of.get(..8).unwrap_or(of)),
        Origin::Merged { of } => format!("{suites} ({} merged)", count(of.len(), "run")),
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1_000_000.0)
}
