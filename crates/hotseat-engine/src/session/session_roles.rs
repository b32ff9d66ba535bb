//! What a session uses besides the agent: time limits, roles and script functions.

use std::sync::Arc;
use std::time::Duration;

use hotseat_checks::{JudgeSelector, JudgeSettings, RoleReference};
use hotseat_document::{Diagnostic, Diagnostics, SourceSpan};
use hotseat_targets::BoxFuture;
use hotseat_trace::TurnScope;

use super::direct_turns::DirectTurns;
use super::human::HumanPrompter;
use crate::cases::ProgramInputError;
use crate::roles;
use crate::scripts::{BoundFunction, ScriptCapabilities};

/// Default time limits, used if neither the case nor the turn sets one.
#[derive(Debug, Clone, Copy)]
pub struct SessionTimeouts {
    /// Limit of one turn.
    pub turn: Duration,
    /// Limit of the time without received data.
    pub idle: Duration,
    /// Limit of all turns of a case together, if the run sets one.
    pub case: Option<Duration>,
}

/// Roles, script functions and other resources that a session uses besides the agent.
#[derive(Default)]
pub struct SessionRoles {
    /// The simulated users, by the reference that the case uses.
    pub simulators: Vec<(Option<RoleReference>, roles::RoleClient)>,
    /// The judges of the checks, by reference; or the reason why a judge cannot be used.
    pub judges: Vec<(JudgeSelector, Result<roles::RoleClient, ProgramInputError>)>,
    /// Default judge settings, for checks without their own.
    pub judging: JudgeSettings,
    /// The script functions that checks call, by reference.
    pub functions: Vec<(String, BoundFunction)>,
    /// The human who can be prompted, if one is present.
    pub human: Option<Arc<dyn HumanPrompter>>,
    /// Permissions of the program that drives the conversation.
    pub permissions: Option<ScriptCapabilities>,
    /// Turns that the program runs by calling an agent directly.
    pub direct_turns: DirectTurns,
    /// Resolves roles and functions that only the conversation names.
    pub role_lookup: Option<Arc<dyn RoleLookup>>,
    /// Check functions that the program itself defines.
    pub program_checks: Option<Arc<dyn ProgramChecks>>,
    /// Recorded judge answers, when a saved run is re-evaluated.
    pub answers: Option<Arc<roles::RecordedAnswers>>,
}

/// Resolves roles and functions that only the conversation names: in a program, or in variables that hooks set.
pub trait RoleLookup: Send + Sync {
    /// Resolves a reference to a script function; `place` is its position in the source. Fails if there is no such function.
    fn function(&self, reference: &str, place: &SourceSpan) -> Result<BoundFunction, ProgramInputError>;

    /// Resolves a reference to a judge; `place` is its position in the source. Fails if there is no such
    /// judge.
    fn judge(&self, whom: &JudgeSelector, place: &SourceSpan)
    -> Result<roles::RoleClient, ProgramInputError>;

    /// Resolves a reference to a simulated user; `place` is its position in the source. Fails if there is no
    /// such simulated user.
    fn simulator(
        &self,
        reference: Option<&RoleReference>,
        place: &SourceSpan,
    ) -> Result<roles::RoleClient, ProgramInputError>;
}

/// Check functions of the program that drives the conversation.
pub trait ProgramChecks: Send + Sync {
    /// Evaluates a function, by its number, on the turns of a scope.
    fn evaluate<'a>(
        &'a self,
        function: usize,
        scope: TurnScope<'a>,
    ) -> BoxFuture<'a, Result<bool, ProgramCheckError>>;
}

/// Why a check function of a program has no result.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum ProgramCheckError {
    #[error("it did not finish within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("the script was stopped while it ran: it exceeded its time limit")]
    Ended,
    #[error("{message}")]
    Thrown { message: String, place: Option<SourceSpan> },
    #[error("it did not return a boolean")]
    NoBoolean,
}

impl ProgramCheckError {
    /// Describes the error of a function, with its source line: that of the error, or of the check at `check_place`.
    pub(super) fn describe(&self, function: &str, check_place: &SourceSpan) -> String {
        let place = match self {
            ProgramCheckError::Thrown { place: Some(place), .. } => place,
            _ => check_place,
        };
        let shown = Diagnostic::new(self.to_string()).at(place.clone()).to_detail();
        format!("{function}: {place}: {self}\n{shown}")
    }
}

impl SessionRoles {
    /// Returns the script function with this reference; `place` is its position in the source. Fails if there is no such function.
    pub(super) fn function(
        &self,
        reference: &str,
        place: &SourceSpan,
    ) -> Result<BoundFunction, ProgramInputError> {
        match (self.functions.iter().find(|(known, _)| known == reference), &self.role_lookup) {
            (Some((_, function)), _) => Ok(function.clone()),
            (None, Some(finds)) => finds.function(reference, place),
            (None, None) => {
                let message = format!("there is no function `{reference}` here");
                Err(Diagnostics::from(Diagnostic::new(message).at(place.clone())).into())
            }
        }
    }

    /// Returns the simulated user with this reference.
    pub(super) fn simulator(&self, reference: Option<&RoleReference>) -> Option<&roles::RoleClient> {
        self.simulators.iter().find(|(known, _)| known.as_ref() == reference).map(|(_, role)| role)
    }

    /// Returns the judge for these settings; `place` is their position in the source. Fails if there is no such judge.
    pub fn judge(
        &self,
        judging: &JudgeSettings,
        place: &SourceSpan,
    ) -> Result<roles::JudgeRole, roles::RoleError> {
        let whom = judging.selector();
        let role = match (self.judges.iter().find(|(known, _)| *known == whom), &self.role_lookup) {
            (Some((_, known)), _) => known.clone(),
            (None, Some(finds)) => finds.judge(&whom, place),
            (None, None) => return Err(roles::RoleError::Failed("no judge is configured".to_string())),
        };
        let role = role.map_err(|error| roles::RoleError::Failed(error.to_string()))?;
        let judge = roles::JudgeRole::new(role, &judging.or_inherit(&self.judging));
        Ok(judge.with_recorded_answers(self.answers.clone()))
    }
}
