//! Decodes the sources of input after the written turns: simulator and human.

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::named;
use serde::{Deserialize, Serialize};
use serde_json::{Map as Members, Value};

use super::brief::SimulatorBrief;
use super::judging::role_reference;
use super::limits::read_duration;
use super::shape::{INTERACTIVE, SIMULATOR};
use hotseat_checks::RoleReference;
use hotseat_document::{Diagnostic, Diagnostics, MapView, SourceSpan};

named! {
    /// Policy if the agent awaits input and no source can give it.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum OnMissingInput {
        /// The case is skipped.
        Skip = "skip",
        /// The case fails.
        Fail = "fail",
        /// The conversation ends.
        #[default]
        End = "end",
    }
}

/// When a simulated user or human is prompted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptPolicy {
    /// Only if the agent awaits input.
    WhenAwaited,
    /// After every turn; the prompted side decides when the conversation ends.
    Always,
}

/// Default time limit for an answer of a human.
const DEFAULT_INPUT_TIMEOUT: Duration = Duration::from_secs(300);

/// The simulator of a case.
#[derive(Debug, Clone)]
pub struct CaseSimulator {
    /// The simulator. `None` for the default of the project or the command line.
    pub reference: Option<RoleReference>,
    /// Options: `metadata` with `persona` and `goal`, `connector`, and any others that its protocol supports.
    pub options: Members<String, Value>,
    /// Presentation of the conversation to the simulator.
    pub style: TranscriptStyle,
    /// Position in the file.
    pub place: SourceSpan,
    /// Brief of a simulated user declared with `simulate`.
    pub brief: Option<Arc<SimulatorBrief>>,
}

impl CaseSimulator {
    /// Creates the simulator that plays a brief.
    pub fn from_brief(brief: SimulatorBrief, place: SourceSpan) -> CaseSimulator {
        CaseSimulator {
            reference: brief.reference.clone(),
            options: brief.options.clone(),
            brief: Some(Arc::new(brief)),
            ..CaseSimulator::unnamed(place)
        }
    }

    /// Creates the default simulator, for a case without its own.
    pub fn unnamed(place: SourceSpan) -> CaseSimulator {
        CaseSimulator {
            reference: None,
            options: Members::new(),
            style: TranscriptStyle::Message,
            place,
            brief: None,
        }
    }
}

/// Presentation of the conversation to a simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptStyle {
    /// As a member of a single message.
    Message,
    /// As preceding messages.
    Transcript,
}

/// Settings for input by a human.
#[derive(Debug, Clone)]
pub struct HumanInput {
    /// Policy for asking.
    pub policy: PromptPolicy,
    /// Time limit for an answer.
    pub timeout: Duration,
    /// Position in the file.
    pub place: SourceSpan,
}

impl HumanInput {
    /// Creates the settings for human input enabled on the command line.
    pub fn new(policy: PromptPolicy, place: SourceSpan) -> HumanInput {
        HumanInput { policy, timeout: DEFAULT_INPUT_TIMEOUT, place }
    }
}

/// Decodes the simulator of a case, and the maximum number of turns in its metadata.
pub(super) fn read_simulator(
    case: &MapView<'_>,
    diagnostics: &mut Diagnostics,
) -> (Option<CaseSimulator>, Option<usize>) {
    let Some(map) = case.get("simulator").and_then(|view| view.map(&SIMULATOR)) else { return (None, None) };
    let place = case.key_place("simulator").unwrap_or_else(|| map.place());
    let reference = map.get("use").and_then(|view| role_reference(view, diagnostics));
    let mut options = map.members("options");
    if let Some(metadata) = map.json("metadata") {
        if options.contains_key("metadata") {
            let message = "`metadata` is set here and under `options`";
            diagnostics
                .push(Diagnostic::new(message).at(map.key_place("metadata")).help("remove one of them"));
        }
        options.insert("metadata".to_string(), metadata);
    }
    let declared = options.get("metadata").and_then(|metadata| metadata.get("max_turns"));
    let max_turns = declared.and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    if let (Some(declared), None | Some(0)) = (declared, max_turns) {
        let message = format!("`max_turns` is {declared}, but must be a number of at least 1");
        diagnostics.report(map.place_of("metadata").or_else(|| map.place_of("options")), message);
    }
    let style = match map.text("style") {
        Some("transcript") => TranscriptStyle::Transcript,
        _ => TranscriptStyle::Message,
    };
    (Some(CaseSimulator { reference, options, style, place, brief: None }), max_turns)
}

/// Decodes the settings for human input.
pub(super) fn read_human_input(case: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<HumanInput> {
    let map = case.get("interactive").and_then(|view| view.map(&INTERACTIVE))?;
    let patience = map.get("timeout").and_then(|view| read_duration(view, diagnostics));
    let enabled = map.bool("enabled") == Some(true);
    enabled.then(|| HumanInput {
        timeout: patience.unwrap_or(DEFAULT_INPUT_TIMEOUT),
        ..HumanInput::new(PromptPolicy::WhenAwaited, map.place())
    })
}
