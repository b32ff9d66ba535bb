//! Saved conversations that a run evaluates again.

use std::error::Error;
use std::sync::Arc;

use super::attempt_result::Attempt;

/// Access to the saved conversations of a run.
pub trait SavedConversations: Send + Sync {
    /// Short id of the original run.
    fn run_id(&self) -> &str;

    /// Returns the number of saved attempts of a case and the index of the agent it tested, by suite name and
    /// case id.
    fn find_case(&self, suite: &str, id: &str) -> Option<(usize, Option<usize>)>;

    /// Loads one saved attempt, from 1. Fails if it cannot be loaded.
    fn load_attempt(
        &self,
        suite: &str,
        id: &str,
        number: usize,
    ) -> Result<Attempt, Box<dyn Error + Send + Sync>>;
}

/// Saved conversations to re-evaluate.
#[derive(Clone)]
pub struct RecheckSource {
    /// The conversations.
    pub conversations: Arc<dyn SavedConversations>,
    /// If true, judges are asked questions without a stored answer.
    pub asks_judges: bool,
}
