//! Embedded agents of a build without them: they are refused.

use std::convert::Infallible;

use super::{AgentTarget, TargetCapabilities, TargetEnv, TargetInput, TargetSummary};
use hotseat_document::{Diagnostic, DocumentNode};
use hotseat_targets::AgentSession;

/// An agent that cannot be read, because this build has no embedded agents.
#[derive(Debug, Clone)]
pub(super) struct EmbeddedTarget(Infallible);

impl AgentTarget for EmbeddedTarget {
    fn capabilities(_: &DocumentNode) -> TargetCapabilities {
        TargetCapabilities::all()
    }

    fn read(input: &mut TargetInput<'_>) -> Option<Self> {
        let missing = Diagnostic::new("embedded agents need the feature `agents` of the crate `hotseat`");
        let help = "add the feature `agents` to the dependency `hotseat` in Cargo.toml";
        input.mistakes.push(missing.at(input.map.place_of("type")?).help(help));
        None
    }

    fn open(&self, _: &TargetEnv) -> Box<dyn AgentSession> {
        match self.0 {}
    }

    fn summary(&self) -> TargetSummary {
        match self.0 {}
    }
}
