//! Cases that a helper makes up.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::outside::{Keep, Outside};
use super::partners::role;
use crate::adapters::http::Http;
use crate::checks::Reference;
use crate::config::{Agent, Helper, Project, StartedAgent, Whose};
use crate::roles::GeneratorQuestion;
use hotseat_document::{Diagnostic, Diagnostics};

/// Asks a helper to make cases up for an agent: a JSON value each, as it wrote them. `parameters` are what else it is
/// told: `count`, `focus`, `complexity`, … Scripts are looked for as for a suite in `folder`.
///
/// # Errors
/// When the helper is nobody, cannot be asked, or gives no cases.
pub async fn generate(
    project: &Arc<Project>,
    generator: &Reference,
    target: &Arc<Agent>,
    parameters: Map<String, Value>,
    folder: &Path,
    http: &Arc<Http>,
) -> Result<Vec<Value>, Diagnostics> {
    let whose = Whose { folder, agent: Some(target) };
    let helper = project.find_helper(generator, None, whose)?;
    let asked = match &helper {
        Helper::Agent(agent) => Some(agent),
        Helper::Connector(_) | Helper::Script(_) => None,
    };
    if let Some(unset) = asked.and_then(|agent| agent.unset().next()) {
        return Err(unset.clone().into());
    }
    let outside =
        Outside::new(project.clone(), asked.into_iter().chain([target]), http.clone(), None, Keep::Nothing)?;
    let failed = |words: String| Diagnostic::new(format!("{generator} made no cases up: {words}"));
    let started = match asked.and_then(|agent| agent.start.as_ref()) {
        None => None,
        Some(start) => {
            let started = StartedAgent::start(start, project.environment(), project.redactor(), http).await;
            Some(started.map_err(|failure| failed(failure.message))?)
        }
    };
    let outside = Arc::new(outside);
    let powers = outside.powers(&[whose], &BTreeMap::new(), &project.calling().identity());
    let found = (generator.clone(), helper.clone());
    let role = role(&outside, &powers, &found, None, &BTreeMap::new(), &mut Vec::new())?;
    let (description, tools) =
        outside.bound(target).map(|(target, _)| target.described()).unwrap_or_default();
    let question = GeneratorQuestion {
        target: target.name.as_deref().unwrap_or("target"),
        description: target.description.as_deref().or(description.as_deref()),
        tools,
        parameters,
    };
    let generated = role.generate(question).await;
    if let Some(started) = started {
        started.stop().await;
    }
    generated.map_err(|words| failed(outside.project.redactor().text(&words).into_owned()).into())
}
