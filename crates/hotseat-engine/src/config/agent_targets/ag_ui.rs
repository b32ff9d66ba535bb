//! Agents that speak AG-UI.

use serde_json::{Value, json};

use super::common::{
    ASSERTED, AWAITED, DESCRIPTION, FOLDER, HEADERS, IDLE_TIMEOUT, STARTED, TIMEOUT, TOOLS, TURN_ASSERTED,
    read_headers, read_url, url_password,
};
use super::{AgentTarget, TargetCapabilities, TargetEnv, TargetInput, TargetSummary};
use crate::cases::CaseTarget;
use crate::cases::shape::CONTEXT;
use hotseat_document::{DocumentNode, Kind, document_shape};
use hotseat_targets::AgentSession;
use hotseat_targets::ag_ui::{AgUiSession, AgUiTarget, ProtocolStrictness, RequestEnvelope, TimingSource};
use hotseat_targets::connection::http::without_credentials;
use hotseat_targets::message::merge_json;

/// Member of the forwarded properties that contains the user identity.
const IDENTITY_KEY: &str = "ctx";

document_shape! {
    /// An agent that speaks AG-UI.
    pub(super) static SHAPE "AgUiTarget" {
        /// Type of the target.
        optional "type" = Kind::Choice(&["ag_ui", "ag-ui"]), shown "ag_ui",
        /// URL to which runs are posted.
        required "endpoint" = Kind::Url, other_names &["url", "uri", "base_url", "address"],
        ..HEADERS,
        /// Envelope of the run input: `copilotkit` for the single route of CopilotKit's runtime.
        optional "envelope" = Kind::Choice(&["none", "copilotkit"]), shown "none",
        /// With `copilotkit`: name of the agent in the runtime.
        optional "agentId" = Kind::NonEmptyText,
        /// Id of every conversation. Default: a new id for each case.
        optional "threadId" = Kind::NonEmptyText,
        /// The shared state before the first turn.
        optional "state" = Kind::Json, shown "{}",
        /// Context entries.
        optional "context" = Kind::List(&Kind::Shape(&CONTEXT)), shown "[]",
        /// Properties forwarded to the agent.
        optional "forwardedProps" = Kind::JsonMap, shown "{}",
        ..TOOLS,
        /// `strict`: events that violate the order required by the protocol are errors. `lenient`: they are
        /// notes.
        optional "protocol" = Kind::Choice(&["lenient", "strict"]), shown "lenient",
        /// Source of event times.
        optional "timing" = Kind::Shape(&TIMING),
        ..TIMEOUT,
        ..IDLE_TIMEOUT,
        ..DESCRIPTION,
        ..FOLDER,
        ..STARTED,
        ..ASSERTED,
        ..TURN_ASSERTED,
        ..AWAITED,
    }

    /// Source of event times.
    static TIMING "EventTiming" {
        /// `arrival`: the arrival time. `events`: the `timestamp` of an event, in Unix milliseconds; from the
        /// first timestamp that is not between the request and the arrival, arrival times are used.
        optional "source" = Kind::Choice(&["arrival", "events"]), shown "arrival",
    }
}

impl AgentTarget for AgUiTarget {
    fn capabilities(_: &DocumentNode) -> TargetCapabilities {
        TargetCapabilities::all()
    }

    fn read(input: &mut TargetInput<'_>) -> Option<Self> {
        let (map, mistakes) = (input.map, &mut *input.mistakes);
        if let Some(place) = map.place_of("agentId")
            && map.text("envelope") != Some("copilotkit")
        {
            mistakes.report(place, "`agentId` requires `envelope: copilotkit`");
        }
        let endpoint = read_url(map, "endpoint", mistakes);
        let headers = read_headers(map, mistakes);
        input.secrets.extend(endpoint.as_ref().and_then(url_password));
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

    fn open(&self, env: &TargetEnv) -> Box<dyn AgentSession> {
        let target = AgUiTarget { keep_raw: env.keep_raw, ..self.clone() };
        Box::new(AgUiSession::open(env.http.clone(), target))
    }

    fn summary(&self) -> TargetSummary {
        TargetSummary::at(without_credentials(&self.endpoint))
    }

    fn apply_case(&mut self, case: &CaseTarget) {
        if let Some(thread_id) = &case.thread_id {
            self.thread_id = Some(thread_id.clone());
        }
        let values = [
            (&mut self.state, &case.state),
            (&mut self.context, &case.context),
            (&mut self.forwarded_props, &case.forwarded_props),
        ];
        for (value, replacement) in values {
            if let Some(replacement) = replacement {
                value.clone_from(replacement);
            }
        }
        if let (Some(ctx), Value::Object(props)) = (case.identity.explicit(), &mut self.forwarded_props) {
            let below = props.get(IDENTITY_KEY).cloned().unwrap_or_else(|| json!({}));
            props.insert(IDENTITY_KEY.to_string(), merge_json(&below, ctx));
        }
    }

    fn fixed_conversation_id(&mut self) -> Option<&mut String> {
        self.thread_id.as_mut()
    }
}
