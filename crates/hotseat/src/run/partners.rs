//! The helpers of a case, made ready to be asked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::outside::Outside;
use super::powers::NotedTurns;
use crate::cases::{Case, Suite};
use crate::checks::{Reference, Scripted, Whom};
use crate::config::{Agent, Helper, Part, Project, Wanted, Whose};
use crate::roles::{Answers, Role};
use crate::scripts::{Function, Powers};
use crate::session::{Finds, Partners, TurnScript};
use hotseat_document::{Diagnostics, Place};

/// How long a model, or a function, may take for an answer: as long as an agent for a turn.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// A helper that a case asks.
struct Asked<'c> {
    wanted: Wanted<'c>,
    /// How checks refer to it, where it is a judge.
    whom: Option<Whom>,
}

/// The helpers that a case asks, each once.
fn asked<'c>(project: &'c Project, named: Naming<'c>) -> Vec<Asked<'c>> {
    let (case, whose) = (named.case, named.whose());
    let mut all = Vec::new();
    if let Some(simulator) = &case.simulator {
        let wanted = Wanted {
            part: Part::Simulator,
            reference: simulator.reference.as_ref(),
            connector: simulator.options.get("connector").and_then(Value::as_str),
            place: &simulator.place,
            whose,
        };
        all.push(Asked { wanted, whom: None });
    }
    if case.body.is_some() && case.simulator.is_none() && project.simulator.is_some() {
        // Whether a program has a user simulated shows only when it runs.
        let (reference, connector, place) = (None, None, &case.place);
        let wanted = Wanted { part: Part::Simulator, reference, connector, place, whose };
        all.push(Asked { wanted, whom: None });
    }
    let usual = case.vocabulary.judging();
    let of_case = Wanted {
        part: Part::Judge,
        reference: usual.judge.as_ref(),
        connector: usual.connector.as_deref(),
        place: &case.place,
        whose,
    };
    let is_known = usual.judge.is_some() || usual.connector.is_some() || project.judge.judge.is_some();
    if case.body.is_some() && is_known {
        // What a program will assert shows only when it runs.
        all.push(Asked { wanted: of_case, whom: Some(usual.whom()) });
    }
    if let Some(topics) = case.topics.as_ref().filter(|topics| topics.may_ask_judge()) {
        let wanted = Wanted { place: &topics.place, ..of_case };
        all.push(Asked { wanted, whom: Some(usual.whom()) });
    }
    for check in case.every_check() {
        let Some(judged) = check.judged() else { continue };
        let judging = &judged.judging;
        let whom = Some(judging.whom());
        if all.iter().any(|known: &Asked<'_>| known.whom == whom) {
            continue;
        }
        let wanted = Wanted {
            part: Part::Judge,
            reference: judging.judge.as_ref(),
            connector: judging.connector.as_deref(),
            place: &check.place,
            whose,
        };
        all.push(Asked { wanted, whom });
    }
    all
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

impl<'a> Naming<'a> {
    /// For whose sake its scripts are looked for.
    pub fn whose(self) -> Whose<'a> {
        Whose { folder: &self.suite.folder, agent: self.agent.map(|agent| &**agent) }
    }
}

/// The functions of scripts that the checks of a case call, each once.
///
/// # Errors
/// Those that are not there.
pub fn functions(project: &Project, named: Naming<'_>) -> Result<Vec<(String, Function)>, Diagnostics> {
    let (case, whose) = (named.case, named.whose());
    let mut mistakes = Diagnostics::new();
    let mut found: Vec<(String, Function)> = Vec::new();
    for check in case.every_check() {
        let Some(Scripted { function: reference, .. }) = check.scripted() else { continue };
        if found.iter().any(|(known, _)| known == reference) {
            continue;
        }
        match project.function(reference, whose) {
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
pub fn helpers(project: &Project, named: Naming<'_>) -> Result<Vec<(Reference, Helper)>, Diagnostics> {
    let mut mistakes = Diagnostics::new();
    let mut found = Vec::new();
    for asked in asked(project, named) {
        match project.helper(asked.wanted) {
            Ok(helper) => found.push(helper),
            Err(wrong) => mistakes.extend(wrong),
        }
    }
    if mistakes.is_empty() { Ok(found) } else { Err(mistakes) }
}

/// The helpers of a case, and the secrets of those that are agents. Where a conversation is decided again, nobody is asked
/// but judges who did not answer before, and those only where that is wanted.
///
/// # Errors
/// What is wrong with one of them.
pub fn partners(
    outside: &Arc<Outside>,
    named: Naming<'_>,
    given: &BTreeMap<String, Value>,
    answers: Option<Arc<Answers>>,
) -> Result<(Partners, Vec<(String, String)>), Diagnostics> {
    let case = named.case;
    let identity = outside.project.calling().identity_before_hooks(case);
    let powers = outside.powers(&[named.whose()], given, &identity);
    let functions = functions(&outside.project, named)?;
    let own = if answers.is_some() { powers.clone().alone() } else { powers.clone() };
    let functions = functions.into_iter().map(|(name, function)| (name, own.over(function))).collect();
    let mut partners = Partners {
        person: outside.person.clone(),
        functions,
        judging: outside.project.judge.clone(),
        answers: answers.clone(),
        ..Partners::default()
    };
    if case.body.is_some() {
        let (outside, powers) = (outside.clone(), powers.clone());
        let noted = NotedTurns { turns: partners.overheard.clone(), tested: named.agent.cloned() };
        let own = outside.powers_noting(&[named.whose()], given, &identity, Some(noted));
        partners.powers = Some(if answers.is_some() { own.alone() } else { own });
        let (folder, agent) = (named.suite.folder.clone(), named.agent.cloned());
        partners.finds = Some(Arc::new(Finder {
            outside,
            powers,
            folder,
            agent,
            given: given.clone(),
            answers: answers.clone(),
        }));
    }
    let mut secrets = Vec::new();
    for Asked { wanted, whom } in asked(&outside.project, named) {
        let found = outside.project.helper(wanted)?;
        let role = match &answers {
            Some(answers) if whom.is_none() || !answers.asks() => Role::nobody(&found.0),
            _ => role(outside, &powers, &found, Some(wanted), given, &mut secrets)?,
        };
        match whom {
            None => partners.simulators.push((wanted.reference.cloned(), role)),
            Some(whom) => partners.judges.push((whom, Ok(role))),
        }
    }
    Ok((partners, secrets))
}

/// Finds whom programs ask, which name them while they run.
struct Finder {
    outside: Arc<Outside>,
    powers: Powers,
    /// Where scripts are looked for: the folder of the suite, and the agent that is tested.
    folder: PathBuf,
    agent: Option<Arc<Agent>>,
    /// What hooks have given.
    given: BTreeMap<String, Value>,
    /// What judges answered before, where a conversation is decided again.
    answers: Option<Arc<Answers>>,
}

impl Finds for Finder {
    fn judge(&self, whom: &Whom, place: &Place) -> Result<Role, String> {
        self.role(Wanted {
            part: Part::Judge,
            reference: whom.judge.as_ref(),
            connector: whom.connector.as_deref(),
            place,
            whose: self.whose(),
        })
    }

    fn simulator(&self, reference: Option<&Reference>, place: &Place) -> Result<Role, String> {
        self.role(Wanted { part: Part::Simulator, reference, connector: None, place, whose: self.whose() })
    }
}

impl Finder {
    fn whose(&self) -> Whose<'_> {
        Whose { folder: &self.folder, agent: self.agent.as_deref() }
    }

    fn role(&self, wanted: Wanted<'_>) -> Result<Role, String> {
        let is_silent = self.answers.as_ref().is_some_and(|answers| !answers.asks());
        let found = self.outside.project.helper(wanted).and_then(|helper| match is_silent {
            true => Ok(Role::nobody(&helper.0)),
            false => role(&self.outside, &self.powers, &helper, Some(wanted), &self.given, &mut Vec::new()),
        });
        found.map_err(|wrong| {
            let words = wrong.into_iter().map(|wrong| match wrong.help {
                Some(help) => format!("{} ({help})", wrong.message),
                None => wrong.message,
            });
            words.collect::<Vec<_>>().join("; ")
        })
    }
}

/// A helper that can be asked. What a script may do is given by `powers`.
///
/// # Errors
/// What is wrong with it.
pub fn role(
    outside: &Outside,
    powers: &Powers,
    (reference, helper): &(Reference, Helper),
    wanted: Option<Wanted<'_>>,
    given: &BTreeMap<String, Value>,
    secrets: &mut Vec<(String, String)>,
) -> Result<Role, Diagnostics> {
    match helper {
        Helper::Script(function) => Ok(Role::script(reference, powers.over(function.clone()), PATIENCE)),
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
