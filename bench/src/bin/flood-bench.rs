//! Measures what agents that send without end cost: the time of a turn and of a run beyond a time limit, the peak memory of
//! endless text, and the processor time of very many calls. `bench/README.md` explains the numbers.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use hotseat_bench::bare_client::BenchError;
use hotseat_bench::flood::{FloodAgent, FloodKind, FloodProject, FloodProtocol, UNLIMITED_MS, call_stream};
use serde_json::Value;

/// Time limit of the turn that is cut.
const LIMIT: Duration = Duration::from_secs(1);
/// Time limit that no other measurement reaches.
const NO_LIMIT: Duration = Duration::from_millis(UNLIMITED_MS);

const PROTOCOLS: [(&str, FloodProtocol); 3] = [
    ("AG-UI", FloodProtocol::AgUi),
    ("chat completions", FloodProtocol::Chat),
    ("command", FloodProtocol::Command),
];

fn main() -> Result<(), BenchError> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let own = std::env::current_exe()?;
    let programs = own.parent().ok_or("the program has no folder")?;
    let project = |protocol, kind, limit: Duration| -> Result<(FloodAgent, FloodProject), BenchError> {
        let agent = FloodAgent::start(protocol, kind)?;
        let millis = u64::try_from(limit.as_millis())?;
        let project = FloodProject::new(programs, protocol, kind, &agent, millis)?;
        Ok((agent, project))
    };
    let seconds = |time: Duration| time.as_secs_f64();

    println!("time limit of {} ms, beside an agent that sends nothing", LIMIT.as_millis());
    for (name, protocol) in PROTOCOLS {
        let beyond = |kind| -> Result<(f64, f64), BenchError> {
            let (_agent, project) = project(protocol, kind, LIMIT)?;
            let wall = project.run(&[])?.wall.saturating_sub(LIMIT);
            Ok((project.turn_duration()?, seconds(wall) * 1000.0))
        };
        let ((turn, wall), (quiet_turn, quiet_wall)) =
            (beyond(FloodKind::Text)?, beyond(FloodKind::Silence)?);
        println!(
            "  {name}: the turn takes {turn:.0} ms (silent: {quiet_turn:.0}), the run ends {wall:.0} ms after the limit (silent: {quiet_wall:.0})"
        );
    }

    println!("endless text up to the default limit of bytes");
    for (name, protocol) in if quick { &PROTOCOLS[..1] } else { &PROTOCOLS[..] } {
        let (agent, project) = project(*protocol, FloodKind::Text, NO_LIMIT)?;
        let cost = project.run(&[])?;
        let received = match protocol {
            // The program is not counted.
            FloodProtocol::Command => 100_000_000,
            FloodProtocol::AgUi | FloodProtocol::Chat => agent.sent_bytes(),
        };
        let (peak, received) = (cost.peak as f64 / 1e6, received as f64 / 1e6);
        println!(
            "  {name}: peak memory {peak:.0} MB for {received:.0} MB, {:.2} times; processor time {:.2} s",
            peak / received,
            seconds(cost.cpu)
        );
    }

    let count = if quick { 4_000 } else { 100_000 };
    println!("{count} calls in a turn, beside parsing the same events");
    for (name, protocol, kind) in [
        ("AG-UI, streamed", FloodProtocol::AgUi, FloodKind::Calls(count)),
        ("AG-UI, all begun at once", FloodProtocol::AgUi, FloodKind::CallsAtOnce(count)),
        ("AG-UI, in a snapshot", FloodProtocol::AgUi, FloodKind::CallsInSnapshot(count)),
        ("chat completions", FloodProtocol::Chat, FloodKind::Calls(count)),
    ] {
        let (_agent, project) = project(protocol, kind, NO_LIMIT)?;
        let cost = project.run(&[])?;
        println!(
            "  {name}: processor time {:.2} s, wall time {:.2} s, peak memory {:.0} MB; parsing {:.2} s",
            seconds(cost.cpu),
            seconds(cost.wall),
            cost.peak as f64 / 1e6,
            seconds(time_of_parsing(&call_stream(protocol, kind)))
        );
    }
    Ok(())
}

/// Returns the time to parse all events of a stream as JSON.
fn time_of_parsing(stream: &[u8]) -> Duration {
    let started = Instant::now();
    let events = stream.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
    let parsed = events.filter(|data| serde_json::from_slice::<Value>(data).is_ok()).count();
    assert!(parsed > 0, "there are events");
    started.elapsed()
}
