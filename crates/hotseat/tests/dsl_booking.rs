//! The examples of `examples/booking` as tests of `cargo test`, with a scripted agent, user and judge.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use hotseat::dsl::{Harness, HarnessContext, HarnessOutput};

#[path = "../../../examples/booking/booking_test.rs"]
mod booking;

fn main() -> ExitCode {
    // A package with its own `hotseat.yaml` would just call `hotseat::dsl::run(booking::declare)`.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/booking");
    let world = HarnessContext {
        environment: Arc::default(),
        folder,
        color: false,
        width: 100,
        output: HarnessOutput::Standard,
    };
    Harness { arguments: std::env::args().skip(1).collect(), context: world, file: file!() }
        .run(booking::declare)
        .into()
}
