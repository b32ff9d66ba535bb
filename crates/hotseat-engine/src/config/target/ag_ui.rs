//! Decodes AG-UI targets.

use serde_json::{Value, json};

use super::common::{read_headers, read_url};
use crate::cases::CaseTarget;
use hotseat_document::{Diagnostic, Diagnostics, MapView};
use hotseat_targets::ag_ui::{AgUiTarget, ProtocolStrictness, RequestEnvelope, TimingSource};
use hotseat_targets::message::merge_json;

/// Member of the forwarded properties that contains the user identity.
const IDENTITY_KEY: &str = "ctx";

pub(super) fn read_target(map: &MapView<'_>, mistakes: &mut Diagnostics) -> Option<AgUiTarget> {
    if let Some(place) = map.place_of("agentId")
        && map.text("envelope") != Some("copilotkit")
    {
        mistakes.push(Diagnostic::new("`agentId` requires `envelope: copilotkit`").at(place));
    }
    let endpoint = read_url(map, "endpoint", mistakes);
    let headers = read_headers(map, mistakes);
    Some(AgUiTarget {
        endpoint: endpoint?,
        headers,
        envelope: match map.text("envelope") {
            Some("copilotkit") => {
                RequestEnvelope::CopilotKit { agent_id: map.text("agentId").map(str::to_string) }
            }
            _ => RequestEnvelope::None,
        },
        thread_id: map.text("threadId").map(str::to_string),
        state: map.json("state").unwrap_or_else(|| json!({})),
        context: map.json("context").unwrap_or_else(|| json!([])),
        forwarded_props: map.json("forwardedProps").unwrap_or_else(|| json!({})),
        strictness: match map.text("protocol") {
            Some("strict") => ProtocolStrictness::Strict,
            _ => ProtocolStrictness::Lenient,
        },
        timing: match map.map("timing").as_ref().and_then(|timing| timing.text("source")) {
            Some("events") => TimingSource::Events,
            Some(_) | None => TimingSource::Arrival,
        },
        keep_raw: false,
    })
}

pub(super) fn apply_case(target: &mut AgUiTarget, case: &CaseTarget) {
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
    if let (Some(ctx), Value::Object(props)) = (case.identity.explicit(), &mut target.forwarded_props) {
        let below = props.get(IDENTITY_KEY).cloned().unwrap_or_else(|| json!({}));
        props.insert(IDENTITY_KEY.to_string(), merge_json(&below, ctx));
    }
}
