//! The helpers of a case, made ready to be asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::outside::Outside;
use crate::cases::{Case, Suite};
use crate::checks::{Check, Reference, Scripted};
use crate::config::{Agent, Helper, Part, Project, Wanted};
use crate::roles::Role;
use crate::scripts::Function;
use crate::session::{Asking, Partners, TurnScript};
use hotseat_document::Diagnostics;

/// How long a model may take for an answer: as long as an agent for a turn.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// A helper that a case asks.
struct Asked<'c> {
    wanted: Wanted<'c>,
    asking: Option<Asking>,
}

/// The helpers that a case asks, each once.
fn asked(case: &Case) -> Vec<Asked<'_>> {
    let mut all = Vec::new();
    if let Some(simulator) = &case.simulator {
        let wanted = Wanted {
            part: Part::Simulator,
            reference: simulator.reference.as_ref(),
            connector: simulator.options.get("connector").and_then(Value::as_str),
            place: &simulator.place,
        };
        all.push(Asked { wanted, asking: None });
    }
    for check in checks(case) {
        let Some(judged) = check.judged() else { continue };
        let asking = Asking::of(judged);
        if all.iter().any(|known: &Asked<'_>| known.asking.as_ref() == Some(&asking)) {
            continue;
        }
        let wanted = Wanted {
            part: Part::Judge,
            reference: judged.judge.as_ref(),
            connector: judged.options.get("connector").and_then(Value::as_str),
            place: &check.place,
        };
        all.push(Asked { wanted, asking: Some(asking) });
    }
    all
}

/// Every check of a case, wherever it stands.
fn checks(case: &Case) -> impl Iterator<Item = &Check> {
    let of_turns = case.turns.iter().chain([&case.unwritten]).flat_map(|turn| &turn.checks);
    let of_checkpoints = case.checkpoints.iter().flat_map(|checkpoint| &checkpoint.checks);
    case.checks.iter().chain(&case.final_checks).chain(of_turns).chain(of_checkpoints)
}

/// A case, and what says where the scripts are that it names.
#[derive(Clone, Copy)]
pub struct Naming<'a> {
    /// The case.
    pub case: &'a Case,
    /// Its suite.
    pub suite: &'a Suite,
    /// The agent that it tests.
    pub agent: Option<&'a Arc<Agent>>,
}

/// The functions of scripts that the checks of a case call, each once.
///
/// # Errors
/// Those that are not there.
pub fn functions(project: &Project, named: Naming<'_>) -> Result<Vec<(String, Function)>, Diagnostics> {
    let Naming { case, suite, agent } = named;
    let mut mistakes = Diagnostics::new();
    let mut found: Vec<(String, Function)> = Vec::new();
    for check in checks(case) {
        let Some(Scripted { function: reference, .. }) = check.scripted() else { continue };
        if found.iter().any(|(known, _)| known == reference) {
            continue;
        }
        match project.function(reference, suite, agent.map(|agent| &**agent)) {
            Ok(function) => found.push((reference.clone(), function)),
            Err(wrong) => mistakes.push(wrong.named_at(&check.place)),
        }
    }
    if mistakes.is_empty() { Ok(found) } else { Err(mistakes) }
}

/// Who helps in a case, as the project knows them.
///
/// # Errors
/// Everybody who is nobody.
pub fn helpers(project: &Project, case: &Case) -> Result<Vec<(Reference, Helper)>, Diagnostics> {
    let mut mistakes = Diagnostics::new();
    let mut found = Vec::new();
    for asked in asked(case) {
        match project.helper(asked.wanted) {
            Ok(helper) => found.push(helper),
            Err(wrong) => mistakes.extend(wrong),
        }
    }
    if mistakes.is_empty() { Ok(found) } else { Err(mistakes) }
}

/// The helpers of a case, and the secrets of those that are agents.
///
/// # Errors
/// What is wrong with one of them.
pub fn partners(
    outside: &Outside,
    named: Naming<'_>,
    given: &BTreeMap<String, Value>,
) -> Result<(Partners, Vec<(String, String)>), Diagnostics> {
    let case = named.case;
    let functions = functions(&outside.project, named)?;
    let mut partners = Partners { person: outside.person.clone(), functions, ..Partners::default() };
    let mut secrets = Vec::new();
    for Asked { wanted, asking } in asked(case) {
        let (reference, helper) = outside.project.helper(wanted)?;
        let role = role(outside, &reference, &helper, Some(wanted), given, &mut secrets)?;
        match asking {
            None => partners.simulator = Some(role),
            Some(asking) => partners.judges.push((asking, role)),
        }
    }
    Ok((partners, secrets))
}

/// A helper that can be asked.
///
/// # Errors
/// What is wrong with it.
pub fn role(
    outside: &Outside,
    reference: &Reference,
    helper: &Helper,
    wanted: Option<Wanted<'_>>,
    given: &BTreeMap<String, Value>,
    secrets: &mut Vec<(String, String)>,
) -> Result<Role, Diagnostics> {
    match helper {
        Helper::Connector(name) => Ok(Role::model(reference, outside.project.connector(name)?, PATIENCE)),
        Helper::Agent(agent) => {
            let target = match outside.bound(agent) {
                Some((target, _)) => target.clone(),
                None => outside.bind(agent, given)?.0,
            };
            let named = wanted.and_then(|wanted| Some((wanted.connector?, Some(wanted.place.clone()))));
            let target = outside.project.with_connectors(agent, target, named)?;
            secrets.extend(target.secrets.iter().cloned());
            let means = outside.means.clone();
            let open =
                Arc::new(move || (target.target.clone().open(&means), TurnScript::new(target.tools.clone())));
            Ok(Role::agent(reference, open, agent.timeouts.turn, agent.timeouts.idle))
        }
    }
}
