//! An agent that speaks AG-UI.

use serde_json::{Value, json};

use super::parts::{address, headers};
use crate::adapters::ag_ui::{Envelope, Strictness, Target, TimingSource};
use crate::cases::CaseTarget;
use crate::session::merged;
use hotseat_document::{Diagnostic, Diagnostics, Map};

/// The member of what is forwarded that says on whose behalf the agent is spoken to.
const CTX: &str = "ctx";

pub(super) fn read(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<Target> {
    if let Some(place) = map.place_of("agentId")
        && map.text("envelope") != Some("copilotkit")
    {
        mistakes.push(Diagnostic::new("`agentId` goes with `envelope: copilotkit`").at(place));
    }
    let endpoint = address(map, "endpoint", mistakes);
    let headers = headers(map, mistakes);
    Some(Target {
        endpoint: endpoint?,
        headers,
        envelope: match map.text("envelope") {
            Some("copilotkit") => Envelope::CopilotKit { agent_id: map.text("agentId").map(str::to_string) },
            _ => Envelope::None,
        },
        thread_id: map.text("threadId").map(str::to_string),
        state: map.json("state").unwrap_or_else(|| json!({})),
        context: map.json("context").unwrap_or_else(|| json!([])),
        forwarded_props: map.json("forwardedProps").unwrap_or_else(|| json!({})),
        strictness: match map.text("protocol") {
            Some("strict") => Strictness::Strict,
            _ => Strictness::Lenient,
        },
        timing: match map.map("timing").as_ref().and_then(|timing| timing.text("source")) {
            Some("events") => TimingSource::Events,
            Some(_) | None => TimingSource::Arrival,
        },
        keep_raw: false,
    })
}

pub(super) fn for_case(target: &mut Target, case: &CaseTarget) {
    if let Some(thread_id) = &case.thread_id {
        target.thread_id = Some(thread_id.clone());
    }
    let values = [
        (&mut target.state, &case.state),
        (&mut target.context, &case.context),
        (&mut target.forwarded_props, &case.forwarded_props),
    ];
    for (value, replacement) in values {
        if let Some(replacement) = replacement {
            value.clone_from(replacement);
        }
    }
    if let (Some(ctx), Value::Object(props)) = (case.identity.given(), &mut target.forwarded_props) {
        let below = props.get(CTX).cloned().unwrap_or_else(|| json!({}));
        props.insert(CTX.to_string(), merged(&below, ctx));
    }
}
