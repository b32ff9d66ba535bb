//! What an example declares about its case, without its code.

use std::path::PathBuf;
use std::sync::Arc;

use super::caller_location::CallerLocation;
use super::criterion::Criteria;
use super::fixture::DeclaredFixture;
use super::lost_assertions::LostAssertions;
use super::scenario::Scenario;
use super::simulator::SimulatorSettings;
use super::topics::Topic;

/// Declarations of an example, including inherited ones.
pub(super) struct ExampleFacts {
    /// Names of the groups and the example, joined by `::`.
    pub name: String,
    pub at: CallerLocation,
    pub tags: Vec<String>,
    pub criteria: Criteria,
    pub topics: Vec<Topic>,
    /// From the outermost group to the innermost.
    pub simulators: Vec<SimulatorSettings>,
    pub scenario: Option<Scenario>,
    pub fixtures: Vec<DeclaredFixture>,
    /// Assertions of the run that were made too late.
    pub lost: Arc<LostAssertions>,
    /// Base directory of relative paths.
    pub folder: PathBuf,
}
