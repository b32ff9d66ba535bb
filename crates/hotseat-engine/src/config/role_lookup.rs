//! Resolves the roles that cases refer to: simulators, judges and generators.

use std::sync::Arc;

use super::agent::ProjectAgent;
use super::hooks::ScriptScope;
use super::project::{Project, find_agent};
use crate::scripts::{FunctionError, ScriptFunction};
use hotseat_checks::RoleReference;
use hotseat_document::{Diagnostic, Diagnostics, SourceSpan};

/// Kind of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleKind {
    /// Simulator.
    Simulator,
    /// Judge.
    Judge,
}

/// A resolved role.
#[derive(Debug, Clone)]
pub enum ResolvedRole {
    /// An agent.
    Agent(Arc<ProjectAgent>),
    /// A connector with a built-in prompt.
    Connector(String),
    /// A script function.
    Script(ScriptFunction),
}

/// Reference of a case to a role.
#[derive(Debug, Clone, Copy)]
pub struct RoleQuery<'a> {
    /// Kind of role.
    pub kind: RoleKind,
    /// The role, if the case names it.
    pub reference: Option<&'a RoleReference>,
    /// The connector, if the case names one.
    pub connector: Option<&'a str>,
    /// True if the connector is an option of the question. As in the options of a turn, a name that is not defined may be
    /// one that the agent knows.
    pub is_option: bool,
    /// Position of the reference.
    pub place: &'a SourceSpan,
    /// Scope for resolving scripts.
    pub scope: ScriptScope<'a>,
}

impl RoleKind {
    fn name(self) -> &'static str {
        match self {
            RoleKind::Simulator => "simulated user",
            RoleKind::Judge => "judge",
        }
    }
}

impl Project {
    /// Returns the role that is meant, with the default of the project, and the connector, if one is set.
    fn meant_role<'a>(&'a self, wanted: RoleQuery<'a>) -> (Option<RoleReference>, Option<&'a str>) {
        let (usual, with) = match wanted.kind {
            RoleKind::Simulator => (&self.simulator, None),
            RoleKind::Judge => (&self.judge.judge, self.judge.connector.as_deref()),
        };
        let connector = wanted.connector.or(with.filter(|_| wanted.reference.is_none()));
        let reference = wanted.reference.or(usual.as_ref()).cloned();
        let reference = reference.or_else(|| Some(RoleReference::Connector(connector?.to_string())));
        (reference, connector)
    }

    /// Returns the settings of a role as written, as far as they may change its answers. Empty if it is unknown.
    pub(crate) fn role_settings(&self, wanted: RoleQuery<'_>) -> String {
        let (reference, connector) = self.meant_role(wanted);
        let own = match &reference {
            Some(RoleReference::Agent(id)) => {
                find_agent(&self.agents, id).ok().map(|agent| agent.written_settings())
            }
            Some(RoleReference::Connector(name)) => self.connectors().written_settings(name),
            Some(RoleReference::Script(path)) => {
                let function = self.find_function(path, wanted.scope).ok();
                function.map(|function| function.source_digest().to_string())
            }
            None => None,
        };
        let settings = connector.and_then(|name| self.connectors().written_settings(name));
        let named = reference.map(|reference| reference.to_string());
        [named, own, connector.map(str::to_string), settings]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Returns the connector that a role uses instead of its own, if one is set.
    pub(crate) fn role_connector<'a>(&'a self, wanted: RoleQuery<'a>) -> Option<&'a str> {
        self.meant_role(wanted).1
    }

    /// Resolves a role, and returns the reference used. Fails if it is unknown or misconfigured.
    pub fn resolve_role(&self, wanted: RoleQuery<'_>) -> Result<(RoleReference, ResolvedRole), Diagnostics> {
        let RoleQuery { kind: part, place, scope: whose, .. } = wanted;
        let (reference, connector) = self.meant_role(wanted);
        let reference = match reference {
            Some(reference) => reference,
            None => {
                let message = format!("no {} is configured", part.name());
                let help = match part {
                    RoleKind::Simulator => "set `use: agents:ID`, `use: connectors:NAME` or `use: scripts:path.function` here, or `simulator:` in the project file".to_string(),
                    RoleKind::Judge => format!(
                        "set `judge: connectors:NAME` (a model of `connectors:`), `judge: agents:ID` or `judge: scripts:path.function` in {}",
                        self.file.as_deref().unwrap_or("hotseat.yaml")
                    ),
                };
                return Err(Diagnostic::new(message).at(place.clone()).help(help).into());
            }
        };
        // A default is reported where the project file sets it, once for all cases.
        let default_place = match part {
            RoleKind::Simulator => self.simulator_place.as_ref(),
            RoleKind::Judge if wanted.connector.is_some() && self.judge.judge.is_none() => None,
            RoleKind::Judge => self.judge.place.as_ref(),
        };
        let place_of = |is_own: bool| default_place.filter(|_| !is_own).unwrap_or(place);
        let helper = self.find_role(&reference, Some(place_of(wanted.reference.is_some())), whose)?;
        if let Some(name) = connector {
            let place = place_of(wanted.connector.is_some());
            self.ensure_selectable(RoleQuery { place, ..wanted }, (&reference, &helper), name)?;
        }
        Ok((reference, helper))
    }

    /// Rejects a connector that would have no effect on a role, or that is not defined.
    fn ensure_selectable(
        &self,
        wanted: RoleQuery<'_>,
        (reference, helper): (&RoleReference, &ResolvedRole),
        name: &str,
    ) -> Result<(), Diagnostics> {
        let refuse = |message: String, help: &str| {
            Err(Diagnostic::new(message).at(wanted.place.clone()).help(help).into())
        };
        match helper {
            ResolvedRole::Script(_) => refuse(
                format!("`{reference}` is a script function and cannot be combined with `connector`"),
                "remove one of them",
            ),
            ResolvedRole::Connector(used) if used != name => refuse(
                format!("`{reference}` is a connector, but `connector` selects another one, `{name}`"),
                &format!("write `connectors:{name}` instead of both, or remove `connector`"),
            ),
            ResolvedRole::Connector(_) => Ok(()),
            ResolvedRole::Agent(agent) if !agent.capabilities().supports_option("connector") => refuse(
                format!("`connector` selects `{name}`, but the agent of `{reference}` does not support this"),
                &agent.capabilities().help_for_option("connector"),
            ),
            // Variables are known at the start of a run.
            ResolvedRole::Agent(_) if name.contains("${") => Ok(()),
            ResolvedRole::Agent(agent) => {
                let mut mistakes = Diagnostics::new();
                mistakes.extend(self.check_connector(agent, name, Some(wanted.place.clone())));
                if !mistakes.is_empty() {
                    return Err(mistakes);
                }
                match agent.connectors().filter(|_| agent.capabilities().uses_connectors && !wanted.is_option)
                {
                    Some(known) if !known.contains(name) => {
                        let look_up = |name: &str| self.environment().get(name).cloned();
                        known.get(name, Some(wanted.place.clone()), &look_up).map(drop)
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// Resolves a role reference. Fails if it is unknown or misconfigured.
    pub fn find_role(
        &self,
        reference: &RoleReference,
        place: Option<&SourceSpan>,
        whose: ScriptScope<'_>,
    ) -> Result<ResolvedRole, Diagnostics> {
        let placed = |diagnostic: Diagnostic| match place {
            Some(place) if diagnostic.place.is_none() => diagnostic.at(place.clone()),
            _ => diagnostic,
        };
        match reference {
            RoleReference::Agent(id) => match find_agent(&self.agents, id) {
                Ok(agent) => Ok(ResolvedRole::Agent(agent)),
                Err(mistake) => Err(placed(mistake).into()),
            },
            RoleReference::Connector(name) => {
                let known = self.open_connector(name).map(drop);
                known.map_err(|found| {
                    let mut all = Diagnostics::new();
                    all.extend(found.into_iter().map(placed));
                    all
                })?;
                Ok(ResolvedRole::Connector(name.clone()))
            }
            RoleReference::Script(path) => match (self.find_function(path, whose), place) {
                (Ok(function), _) => Ok(ResolvedRole::Script(function)),
                (Err(wrong), Some(place)) => Err(wrong.at_reference(place).into()),
                (Err(FunctionError::NoSuchFile(mistake) | FunctionError::Invalid(mistake)), None) => {
                    Err(mistake.into())
                }
            },
        }
    }
}
