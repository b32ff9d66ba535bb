//! The examples of `examples/booking` as tests of `cargo test`. The agent, the user and the judge are scripts.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use hotseat::dsl::{Harness, Output, World};

#[path = "../../../examples/booking/booking_test.rs"]
mod booking;

fn main() -> ExitCode {
    // A package with a `hotseat.yaml` of its own would just say `hotseat::dsl::run(booking::declare)`.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/booking");
    let world =
        World { environment: Arc::default(), folder, color: false, width: 100, output: Output::Standard };
    Harness { arguments: std::env::args().skip(1).collect(), world, file: file!() }
        .run(booking::declare)
        .into()
}
