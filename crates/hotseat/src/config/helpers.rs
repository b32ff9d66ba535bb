//! Who helps in a run: simulated users, judges, generators. What cases refer to is looked up here.

use std::sync::Arc;

use super::agent::Agent;
use super::project::{Project, find_agent};
use crate::checks::Reference;
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
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Simulator => "simulated user",
            Part::Judge => "judge",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Part::Simulator => "simulator",
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
        let Wanted { part, connector, place, .. } = wanted;
        let usual = match part {
            Part::Simulator => &self.simulator,
            Part::Judge => &self.judge,
        };
        let reference = match (wanted.reference.or(usual.as_ref()), connector) {
            (Some(reference), _) => reference.clone(),
            (None, Some(name)) => Reference::Connector(name.to_string()),
            (None, None) => {
                let message = format!("nobody says who the {} is", part.name());
                let help = format!(
                    "write `use: agents:ID` or `use: connectors:NAME` here, or `{}:` into the project file",
                    part.key()
                );
                return Err(Diagnostic::new(message).at(place.clone()).help(help).into());
            }
        };
        let helper = self.find_helper(&reference, Some(place))?;
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
    pub fn find_helper(&self, reference: &Reference, place: Option<&Place>) -> Result<Helper, Diagnostics> {
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
            Reference::Script(_) => {
                let mistake = Diagnostic::new(format!(
                    "`{reference}` is a script, and a helper is an agent or a model"
                ));
                Err(placed(mistake)
                    .help("refer to an agent, `agents:ID`, or to a model, `connectors:NAME`")
                    .into())
            }
        }
    }
}
