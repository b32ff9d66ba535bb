//! Assertions that a judge decides: `agent`, `satisfy`, `grounded`, `claims`, `intent`, `goal`.

use std::collections::HashSet;
use std::sync::Arc;

use super::criteria::read_criterion_use;
use super::criteria_shape::CRITERION_OF_ITS_OWN;
use super::prelude::*;
use crate::cases::judging::{JUDGE_KIND, read_judging, role_reference};
use hotseat_checks::{
    AgentIntent, ForbiddenClaims, FreeFormCriterion, GoalAchieved, GroundedClaims, JudgeCriterion,
    JudgeSettings, JudgedCheck,
};
use hotseat_trace::canonical_text;

document_shape! {
    /// Options passed on to the judge: `metadata`, `connector`.
    const OPTIONS: optional "options" = Kind::JsonMap,
    /// The judge, optionally with settings. Default: the judge of the case.
    const JUDGED_BY: optional "judge" = JUDGE_KIND,
}

const ONE_OR_MANY_TEXTS: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::NonEmptyText)]);

/// Entries of `satisfy`: a criterion name, a sentence, a function, or an inline criterion.
static CRITERIA_ENTRY: Kind = Kind::OneOf(&[
    Kind::NonEmptyText,
    Kind::Shape(&CRITERION_OF_ITS_OWN),
    Kind::NonEmptyList(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&CRITERION_OF_ITS_OWN)])),
]);

assertion_type! {
    /// Another agent judges this one. If the judge cannot be asked or gives no valid judgement, the check
    /// errors and has no verdict.
    AGENT "Agent" "agent" {
        /// The judge: `agents:ID`, `scripts:path.function`, or `connectors:NAME` for a model with the
        /// built-in prompt. Default: `judge` of the project file.
        optional "use" = Kind::NonEmptyText,
        /// The criteria, usually a sentence. Also read from `options.metadata.criteria`.
        optional "criteria" = Kind::Json, aliases &["value"],
        ..OPTIONS,
    }
    read_agent
}

assertion_type! {
    /// The agent's messages satisfy criteria, in the turn or across all turns of the conversation. Each
    /// criterion is judged separately and has its own result.
    SATISFY "Satisfy" "satisfy" {
        /// The criteria. A text that looks like a name (letters, digits and `_`, optionally with a final `?`
        /// or `!`) refers to `criteria`; text that starts with `scripts:` is a function that receives the
        /// turn; any other text is judged literally.
        required "criteria" = Kind::OneOf(&[
            Kind::NonEmptyText, Kind::Shape(&CRITERION_OF_ITS_OWN), Kind::NonEmptyList(&CRITERIA_ENTRY)
        ]), aliases &["criterion", "value"],
        ..JUDGED_BY,
    }
    read_satisfy
}

assertion_type! {
    /// The agent's claims are grounded in tool results of the same or an earlier turn. Decided by a judge.
    GROUNDED "Grounded" "grounded" {
        /// The kinds of claims: `prices`, `opening_hours`.
        required "types" = ONE_OR_MANY_TEXTS, aliases &["value"],
        /// Only results of these tools count; other calls are not shown to the judge. Default: all.
        optional "from_tools" = ONE_OR_MANY_TEXTS,
        ..JUDGED_BY,
    }
    |map, diagnostics| {
        let claims =
            GroundedClaims { types: text_list(map, "types"), from_tools: text_list(map, "from_tools") };
        judged_check(JudgeCriterion::Grounded(claims), map, "types", diagnostics)
    }
}

assertion_type! {
    /// The agent makes no claims of these kinds unless they are grounded in a tool result. Decided by a
    /// judge.
    CLAIMS "Claims" "claims" {
        /// The forbidden kinds of claims.
        required "forbid" = ONE_OR_MANY_TEXTS, aliases &["value"],
        /// Whether they are forbidden even if they are grounded.
        optional "absolute" = Kind::Bool, shown "false",
        ..JUDGED_BY,
    }
    |map, diagnostics| {
        let absolute = map.bool("absolute") == Some(true);
        let claims = ForbiddenClaims { forbid: text_list(map, "forbid"), absolute };
        judged_check(JudgeCriterion::Claims(claims), map, "forbid", diagnostics)
    }
}

assertion_type! {
    /// The intent of the agent's messages and actions. Decided by a judge.
    INTENT "Intent" "intent" {
        /// The intent: a description, or a descriptive name such as `gather_requirements`.
        optional "intent" = Kind::NonEmptyText, aliases &["name", "value"],
        /// Description of the intent, if the name is not descriptive.
        optional "described_as" = Kind::NonEmptyText, aliases &["description"],
        ..JUDGED_BY,
    }
    read_intent
}

assertion_type! {
    /// The user has achieved a goal by the end of the evaluated turns. Decided by a judge.
    GOAL "Goal" "goal" {
        /// The goal. Default: the goal of the simulated user of the case.
        optional "goal" = Kind::NonEmptyText, aliases &["value"],
        ..JUDGED_BY,
    }
    |map, diagnostics| {
        let goal = GoalAchieved { text: map.text("goal").map(str::to_string) };
        let key = if map.has("goal") { "goal" } else { "type" };
        judged_check(JudgeCriterion::Goal(goal), map, key, diagnostics)
    }
}

fn read_agent(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    let judge = match map.get("use") {
        Some(view) => Some(role_reference(view, diagnostics)?),
        None => None,
    };
    let options = map.members("options");
    let metadata = options.get("metadata");
    let from_metadata = metadata.and_then(|metadata| metadata.get("criteria")).cloned();
    if from_metadata.is_some() && map.has("criteria") {
        let words = "`criteria` is set here and under `options.metadata`";
        diagnostics.push(Diagnostic::new(words).at(map.place_of("criteria")).help("remove one of them"));
        return None;
    }
    let criteria = map.json("criteria").or(from_metadata);
    if criteria.is_none() && judge.is_none() {
        let words = "`agent` needs `criteria`, or a judge of its own under `use`";
        diagnostics.report(map.place_of("type"), words);
        return None;
    }
    let connector = options.get("connector").and_then(Value::as_str).map(str::to_string);
    let settings = JudgeSettings { judge, connector, ..JudgeSettings::default() };
    let criterion = JudgeCriterion::FreeForm(FreeFormCriterion { criteria, options });
    let key = if map.has("criteria") { "criteria" } else { "use" };
    check_at(map, key, CheckKind::Judged(JudgedCheck { criterion, settings }))
}

/// Decodes `satisfy`: one check per criterion.
fn read_satisfy(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    let own = read_judging(map.get("judge"), diagnostics);
    let several: Vec<NodeView<'_>> =
        map.get("criteria")?.one_or_many().flat_map(NodeView::one_or_many).collect();
    let as_written = |view: NodeView<'_>| {
        // Reports list a criterion under the main spelling of the key.
        let mut written = map.to_json();
        if let Value::Object(members) = &mut written {
            ["criterion", "value"].iter().for_each(|alias| drop(members.shift_remove(*alias)));
            members.insert("criteria".to_string(), view.json());
        }
        Arc::new(written)
    };
    let mut checks = Vec::new();
    let mut listed = HashSet::new();
    for view in several {
        let written = view.text().map_or_else(|| view.json(), |text| text.trim().into());
        if !listed.insert(canonical_text(&written)) {
            let wrong = Diagnostic::new("this criterion is listed twice").at(view.place());
            diagnostics.push(
                wrong.help("remove one of them; `judge: { votes: … }` has a criterion judged several times"),
            );
            continue;
        }
        if let Some(mut check) = read_criterion_use(view, &own, diagnostics) {
            check.definition = Some(as_written(view));
            checks.push(check);
        }
    }
    Some(checks)
}

fn read_intent(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    let intent = match (map.text("intent"), map.text("described_as")) {
        (name, Some(text)) => AgentIntent { name: name.map(str::to_string), text: text.to_string() },
        (Some(name), None) => AgentIntent::from_name(name),
        (None, None) => {
            let wrong =
                Diagnostic::new("`intent` needs the `intent`, or `described_as`").at(map.place_of("type"));
            diagnostics.push(
                wrong.help("`intent: gather_requirements`, or `described_as: asks what the user needs`"),
            );
            return None;
        }
    };
    let key = if map.has("intent") { "intent" } else { "described_as" };
    judged_check(JudgeCriterion::Intent(intent), map, key, diagnostics)
}

/// Creates a judged check at a key.
fn judged_check(
    criterion: JudgeCriterion,
    map: &MapView<'_>,
    key: &str,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Check>> {
    let settings = read_judging(map.get("judge"), diagnostics);
    check_at(map, key, CheckKind::Judged(JudgedCheck { criterion, settings }))
}
