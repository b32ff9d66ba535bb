//! Who helps in a run: simulated users, judges, generators. What cases refer to is looked up here.

use std::sync::Arc;

use super::agent::Agent;
use super::hooks::Whose;
use super::project::{Project, find_agent};
use crate::checks::Reference;
use crate::scripts::{Function, NotFound};
use hotseat_document::{Diagnostic, Diagnostics, Place};

/// What a helper is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// To say what the user says.
    Simulator,
    /// To judge.
    Judge,
}

/// Somebody who helps.
#[derive(Debug, Clone)]
pub enum Helper {
    /// An agent.
    Agent(Arc<Agent>),
    /// A model of this name, with a prompt of ours.
    Connector(String),
    /// A function of a script.
    Script(Function),
}

/// What cases say of a helper.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// What for.
    pub part: Part,
    /// Who, if the case says it.
    pub reference: Option<&'a Reference>,
    /// With which model, if the case says it.
    pub connector: Option<&'a str>,
    /// Where it says so.
    pub place: &'a Place,
    /// For whose sake scripts are looked for.
    pub whose: Whose<'a>,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Simulator => "simulated user",
            Part::Judge => "judge",
        }
    }
}

impl Project {
    /// Who is meant, and how that is called.
    ///
    /// # Errors
    /// When it is nobody, and everything that is wrong with who it is.
    pub fn helper(&self, wanted: Wanted<'_>) -> Result<(Reference, Helper), Diagnostics> {
        let Wanted { part, place, whose, .. } = wanted;
        let (usual, with) = match part {
            Part::Simulator => (&self.simulator, None),
            Part::Judge => (&self.judge.judge, self.judge.connector.as_deref()),
        };
        let connector = wanted.connector.or(with.filter(|_| wanted.reference.is_none()));
        let reference = match (wanted.reference.or(usual.as_ref()), connector) {
            (Some(reference), _) => reference.clone(),
            (None, Some(name)) => Reference::Connector(name.to_string()),
            (None, None) => {
                let message = format!("nobody says who the {} is", part.name());
                let help = match part {
                    Part::Simulator => "write `use: agents:ID`, `use: connectors:NAME` or `use: scripts:path.function` here, or `simulator:` into the project file".to_string(),
                    Part::Judge => format!(
                        "write `judge: connectors:NAME` (a model of `connectors:`), `judge: agents:ID` or `judge: scripts:path.function` into {}",
                        self.file.as_deref().unwrap_or("hotseat.yaml")
                    ),
                };
                return Err(Diagnostic::new(message).at(place.clone()).help(help).into());
            }
        };
        let helper = self.find_helper(&reference, Some(place), whose)?;
        if let (Helper::Script(_), Some(_)) = (&helper, wanted.connector) {
            let message = format!("`{reference}` is a function of a script, and `connector` names a model");
            return Err(Diagnostic::new(message).at(place.clone()).help("leave one of them out").into());
        }
        if let (Helper::Connector(_), Some(other), Some(_)) = (&helper, connector, wanted.reference)
            && reference != Reference::Connector(other.to_string())
        {
            let message = format!("`{reference}` is a model, and `connector` names another one");
            return Err(Diagnostic::new(message).at(place.clone()).help("leave one of them out").into());
        }
        if let (Helper::Agent(agent), Some(name)) = (&helper, connector.filter(|name| !name.contains("${"))) {
            let mut mistakes = Diagnostics::new();
            mistakes.extend(self.unusable(agent, name, Some(place.clone())));
            if !mistakes.is_empty() {
                return Err(mistakes);
            }
        }
        Ok((reference, helper))
    }

    /// Who a reference means.
    ///
    /// # Errors
    /// When it is nobody, and everything that is wrong with who it is.
    pub fn find_helper(
        &self,
        reference: &Reference,
        place: Option<&Place>,
        whose: Whose<'_>,
    ) -> Result<Helper, Diagnostics> {
        let placed = |diagnostic: Diagnostic| match place {
            Some(place) if diagnostic.place.is_none() => diagnostic.at(place.clone()),
            _ => diagnostic,
        };
        match reference {
            Reference::Agent(id) => match find_agent(&self.agents, id) {
                Ok(agent) => Ok(Helper::Agent(agent)),
                Err(mistake) => Err(placed(mistake).into()),
            },
            Reference::Connector(name) => {
                let known = self.connector(name).map(drop);
                known.map_err(|found| {
                    let mut all = Diagnostics::new();
                    all.extend(found.into_iter().map(placed));
                    all
                })?;
                Ok(Helper::Connector(name.clone()))
            }
            Reference::Script(path) => match (self.function(path, whose), place) {
                (Ok(function), _) => Ok(Helper::Script(function)),
                (Err(wrong), Some(place)) => Err(wrong.named_at(place).into()),
                (Err(NotFound::Nowhere(mistake) | NotFound::Wrong(mistake)), None) => Err(mistake.into()),
            },
        }
    }
}
