//! Assertions of one level (target, suite, case or turn): decodes blocks and lists of typed assertions into
//! checks, and merges them with inherited ones.

use hotseat_checks::{
    CallCount, CallFilter, CalledAfter, Check, CheckKind, CheckStrength, ForbiddenArguments, ForbiddenCall,
    ForbiddenResult, IdleScope, MaxDuration, MaxIdle, NoTextWithToolCalls, TextMatch, TextPattern, ToolCount,
    UsageBudget,
};
use hotseat_document::{Diagnostic, Diagnostics, MapView, NodeView, SourceSpan};

use super::block_shape::{ASSERT, COUNT, FORBID_CALL, REQUIRE};
use super::text::refuse_universal;
use super::{ASSERTION, read_assertion};
use crate::cases::limits::from_millis;
use crate::cases::patterns::{read_argument_patterns, read_patterns};

/// The checks of one level: target, case or turn. Limits are boxed because few levels have some, and each has room
/// for several checks.
#[derive(Debug, Clone, Default)]
pub struct AssertionBlock {
    tools: BlockPart<Vec<Check>>,
    timing: BlockPart<Box<LimitChecks>>,
    budget: BlockPart<Box<LimitChecks>>,
    text: BlockPart<Vec<Check>>,
    typed: BlockPart<Vec<Check>>,
}

/// One part of a block.
#[derive(Debug, Clone, Default)]
enum BlockPart<T> {
    /// Not set: inherits from the level above.
    #[default]
    Inherited,
    /// `false`: discards the inherited checks.
    Cleared(SourceSpan),
    /// Adds to the inherited checks.
    Added(T),
}

/// The time limits or the usage limits, in report order. Each one replaces the inherited one.
type LimitChecks = [Option<Check>; 3];

/// Returns the error of a check that is evaluated on one turn, and selects all turns.
pub fn refuse_all_turns(check: &Check) -> Option<Diagnostic> {
    let message = "assertions of a turn evaluate that turn only, so `turns: all` has no effect here";
    check.selects_all_turns().then(|| Diagnostic::new(message).at(check.place.clone()))
}

impl AssertionBlock {
    /// Decodes a value that matches its shape: `false`, a block, a typed assertion, or a list of these.
    /// `None` inherits everything.
    pub fn read(view: Option<NodeView<'_>>, diagnostics: &mut Diagnostics) -> AssertionBlock {
        let Some(view) = view else { return AssertionBlock::default() };
        if view.bool() == Some(false) {
            return AssertionBlock {
                tools: BlockPart::Cleared(view.place()),
                timing: BlockPart::Cleared(view.place()),
                budget: BlockPart::Cleared(view.place()),
                text: BlockPart::Cleared(view.place()),
                typed: BlockPart::Cleared(view.place()),
            };
        }
        for entry in view.one_or_many() {
            if entry.entries().is_some_and(|entries| entries.len() == 0) {
                diagnostics.report(entry.place(), "this asserts nothing");
            }
        }
        let entries = view.one_or_many().filter_map(|entry| entry.tagged(&ASSERTION));
        entries.fold(AssertionBlock::default(), |block, entry| {
            AssertionBlock::read_entry(&entry, diagnostics).joined(block, diagnostics)
        })
    }

    /// Like [`AssertionBlock::read`], for assertions that are evaluated on one turn.
    pub fn read_of_turn(view: Option<NodeView<'_>>, diagnostics: &mut Diagnostics) -> AssertionBlock {
        let block = AssertionBlock::read(view, diagnostics);
        let typed = if let BlockPart::Added(typed) = &block.typed { typed.as_slice() } else { &[] };
        // The entries and their checks are in the same order.
        let entries = view.into_iter().flat_map(NodeView::one_or_many);
        let maps = entries.filter_map(|entry| entry.tagged(&ASSERTION));
        let selecting = maps.filter(|map| map.shape().field("turns").is_some());
        let all = selecting.filter(|map| map.text("turns") == Some("all"));
        let mut places = all.filter_map(|map| map.place_of("turns"));
        diagnostics.extend(typed.iter().filter_map(|check| {
            let wrong = refuse_all_turns(check)?;
            let place = places.next().or_else(|| wrong.place.clone());
            Some(wrong.at(place).help("move it to `assert` of the case, or leave `turns` out"))
        }));
        block
    }

    /// Decodes the checks of a place that inherits none.
    pub fn read_checks(view: Option<NodeView<'_>>, diagnostics: &mut Diagnostics) -> Vec<Check> {
        AssertionBlock::read(view, diagnostics).into_own_checks(diagnostics)
    }

    /// Like [`AssertionBlock::read_checks`], for assertions that are evaluated on one turn.
    pub fn read_turn_checks(view: Option<NodeView<'_>>, diagnostics: &mut Diagnostics) -> Vec<Check> {
        AssertionBlock::read_of_turn(view, diagnostics).into_own_checks(diagnostics)
    }

    /// Decodes a block mapping or a typed assertion.
    fn read_entry(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> AssertionBlock {
        if std::ptr::eq(map.shape(), &ASSERT) {
            return AssertionBlock::read_parts(map, diagnostics);
        }
        let typed = read_assertion(map, diagnostics).into_iter().collect();
        AssertionBlock { typed: BlockPart::Added(typed), ..AssertionBlock::default() }
    }

    fn read_parts(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> AssertionBlock {
        let block = AssertionBlock {
            tools: BlockPart::read(map, "tools", |map| tool_checks(map, diagnostics)),
            timing: BlockPart::read(map, "timing", |map| Box::new(timing_checks(map))),
            budget: BlockPart::read(map, "budget", |map| Box::new(budget_checks(map, diagnostics))),
            text: BlockPart::read(map, "text", |map| text_checks(map, diagnostics)),
            typed: BlockPart::Inherited,
        };
        // An empty mapping is caught elsewhere; an empty `tools: {}` would silently assert nothing.
        for key in ["tools", "timing", "budget", "text"] {
            if map.map(key).is_some_and(|part| part.is_empty()) {
                diagnostics.report(map.place_of(key), format!("`{key}` asserts nothing"));
            }
        }
        block
    }

    /// Merges this block onto the inherited one.
    #[must_use]
    pub fn merged_onto(self, inherited: AssertionBlock) -> AssertionBlock {
        AssertionBlock {
            tools: self.tools.merged_onto(inherited.tools, append_checks),
            timing: self.timing.merged_onto(inherited.timing, replace_limits),
            budget: self.budget.merged_onto(inherited.budget, replace_limits),
            text: self.text.merged_onto(inherited.text, append_checks),
            typed: self.typed.merged_onto(inherited.typed, append_checks),
        }
    }

    /// Joins this entry of a list with the earlier ones. All of them apply, so contradictions are errors.
    fn joined(self, earlier: AssertionBlock, diagnostics: &mut Diagnostics) -> AssertionBlock {
        let mut refused = Diagnostics::new();
        let mut limits = |own: Box<LimitChecks>, earlier: Box<LimitChecks>| {
            for (own, earlier) in own.iter().zip(&*earlier) {
                if let (Some(own), Some(earlier)) = (own, earlier) {
                    let wrong = Diagnostic::new("this list sets the same limit twice").at(own.place.clone());
                    refused.push(wrong.with_related(earlier.place.clone(), "here, too"));
                }
            }
            replace_limits(own, earlier)
        };
        let block = AssertionBlock {
            timing: self.timing.joined(earlier.timing, &mut limits, diagnostics),
            budget: self.budget.joined(earlier.budget, &mut limits, diagnostics),
            tools: self.tools.joined(earlier.tools, append_checks, diagnostics),
            text: self.text.joined(earlier.text, append_checks, diagnostics),
            typed: self.typed.joined(earlier.typed, append_checks, diagnostics),
        };
        diagnostics.extend(refused);
        block
    }

    /// The checks in report order.
    pub fn into_checks(self) -> Vec<Check> {
        let AssertionBlock { tools, timing, budget, text, typed } = self;
        let mut checks = tools.into_added().unwrap_or_default();
        let limits = [timing, budget].into_iter().filter_map(BlockPart::into_added);
        checks.extend(limits.flat_map(|limits| *limits).flatten());
        checks.extend(text.into_added().into_iter().flatten());
        checks.extend(typed.into_added().into_iter().flatten());
        checks
    }

    /// The checks of a place that inherits none, in report order.
    fn into_own_checks(self, diagnostics: &mut Diagnostics) -> Vec<Check> {
        let cleared =
            [self.tools.cleared(), self.timing.cleared(), self.budget.cleared(), self.text.cleared()];
        diagnostics.extend(cleared.into_iter().flatten().map(|place| {
            let wrong = Diagnostic::new("no assertions are inherited here, so `false` has no effect");
            wrong.at(place.clone()).help("inherited assertions are discarded in `assert` and `turn_assert`")
        }));
        self.into_checks()
    }
}

/// Makes checks informational (soft).
pub fn into_soft(checks: Vec<Check>) -> impl Iterator<Item = Check> {
    checks.into_iter().map(|check| Check { strength: CheckStrength::Soft, ..check })
}

impl<T> BlockPart<T> {
    fn read(map: &MapView<'_>, key: &str, read: impl FnOnce(&MapView<'_>) -> T) -> BlockPart<T> {
        match (map.has(key), map.map(key)) {
            (false, _) => BlockPart::Inherited,
            (true, None) => BlockPart::Cleared(map.place_near(key)),
            (true, Some(part)) => BlockPart::Added(read(&part)),
        }
    }

    fn merged_onto(self, inherited: BlockPart<T>, join: impl FnOnce(T, T) -> T) -> BlockPart<T> {
        match (self, inherited) {
            (BlockPart::Inherited, above) => above,
            (BlockPart::Added(own), BlockPart::Added(above)) => BlockPart::Added(join(own, above)),
            (own, _) => own,
        }
    }

    /// Joins the same part of two entries of a list.
    fn joined(
        self,
        earlier: BlockPart<T>,
        join: impl FnOnce(T, T) -> T,
        diagnostics: &mut Diagnostics,
    ) -> BlockPart<T> {
        match (self, earlier) {
            (BlockPart::Inherited, part) | (part, BlockPart::Inherited) => part,
            (BlockPart::Added(own), BlockPart::Added(earlier)) => BlockPart::Added(join(own, earlier)),
            (BlockPart::Cleared(place), BlockPart::Cleared(_)) => BlockPart::Cleared(place),
            (BlockPart::Cleared(place), part @ BlockPart::Added(_))
            | (part @ BlockPart::Added(_), BlockPart::Cleared(place)) => {
                diagnostics
                    .report(place, "`false` contradicts the assertions of the same block in this list");
                part
            }
        }
    }

    /// Returns the place of `false`.
    fn cleared(&self) -> Option<&SourceSpan> {
        if let BlockPart::Cleared(place) = self { Some(place) } else { None }
    }

    /// Returns the added checks; `None` if the part is not set or cleared.
    fn into_added(self) -> Option<T> {
        match self {
            BlockPart::Added(checks) => Some(checks),
            BlockPart::Inherited | BlockPart::Cleared(_) => None,
        }
    }
}

fn append_checks(own: Vec<Check>, mut above: Vec<Check>) -> Vec<Check> {
    above.extend(own);
    above
}

fn replace_limits(own: Box<LimitChecks>, mut inherited: Box<LimitChecks>) -> Box<LimitChecks> {
    for (limit, own) in inherited.iter_mut().zip(*own) {
        *limit = own.or(limit.take());
    }
    inherited
}

fn budget_checks(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> LimitChecks {
    ["max_tokens", "max_cost", "max_tool_calls"].map(|key| {
        let value = map.get(key)?;
        Some(Check::new(CheckKind::UsageBudget(read_budget(key, value, diagnostics)?), value.place()))
    })
}

/// Decodes one usage limit by its name.
pub(super) fn read_budget(
    name: &str,
    value: NodeView<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<UsageBudget> {
    let whole = || value.integer().and_then(|number| u64::try_from(number).ok());
    Some(match name {
        "max_tokens" => UsageBudget::Tokens(whole()?),
        "max_tool_calls" => UsageBudget::ToolCalls(whole()?),
        _ => {
            let limit = value.number()?.as_f64()?;
            if limit < 0.0 {
                diagnostics.report(value.place(), "the cost limit must not be negative");
            }
            UsageBudget::Cost(limit)
        }
    })
}

fn timing_checks(map: &MapView<'_>) -> LimitChecks {
    let limit = |key: &str, kind: &dyn Fn(std::time::Duration) -> CheckKind| {
        let value = map.get(key)?;
        Some(Check::new(kind(from_millis(value.integer()?)), value.place()))
    };
    [
        limit("max_duration_ms", &|limit| CheckKind::MaxDuration(MaxDuration { limit })),
        limit("max_gap_ms", &|limit| CheckKind::MaxIdle(MaxIdle { idle: IdleScope::BetweenCalls, limit })),
        limit("max_idle_ms", &|limit| CheckKind::MaxIdle(MaxIdle { idle: IdleScope::Anywhere, limit })),
    ]
}

fn text_checks(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Vec<Check> {
    let mut checks = Vec::new();
    for (key, must) in [("must_match", TextMatch::Match), ("must_not_match", TextMatch::NoMatch)] {
        for (pattern, place) in read_patterns(map, key, diagnostics) {
            if must == TextMatch::Match {
                refuse_universal(&pattern, &place, diagnostics);
            }
            checks.push(Check::new(CheckKind::TextPattern(TextPattern { pattern, expected: must }), place));
        }
    }
    if let Some(place) = map.place_of("with_tool_calls") {
        checks.push(Check::new(CheckKind::NoTextWithToolCalls(NoTextWithToolCalls), place));
    }
    checks
}

fn tool_checks(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Vec<Check> {
    let mut checks = Vec::new();
    for name in map.items("forbid") {
        let calls = CallFilter::for_tool(name.text().unwrap_or_default());
        let kind = CheckKind::ToolCount(ToolCount { calls, count: CallCount::NONE });
        checks.push(Check::new(kind, name.place()));
    }
    for entry in map.items("require") {
        if let Some(name) = entry.text() {
            let count = read_count(None, diagnostics);
            let kind = CheckKind::ToolCount(ToolCount { calls: CallFilter::for_tool(name), count });
            checks.push(Check::new(kind, entry.place()));
        } else if let Some(entry) = entry.map(&REQUIRE) {
            required_call_checks(&entry, &mut checks, diagnostics);
        }
    }
    for entry in map.items("forbid_calls") {
        if let Some(entry) = entry.map(&FORBID_CALL) {
            let calls = call_filter(&entry, diagnostics);
            let kind = CheckKind::ForbiddenCall(ForbiddenCall { calls });
            checks.push(Check::new(kind, name_place(&entry)));
        }
    }
    checks
}

/// Decodes an entry of `require` into up to four checks, each with its own position.
fn required_call_checks(entry: &MapView<'_>, checks: &mut Vec<Check>, diagnostics: &mut Diagnostics) {
    let calls = call_filter(entry, diagnostics);
    let by_arguments = || CallFilter { result: Vec::new(), ..calls.clone() };
    let count = read_count(entry.get("count"), diagnostics);
    let mut conditions = Vec::new();
    if let Some(place) = entry.place_of("args_not_match") {
        let arguments = read_argument_patterns(entry, "args_not_match", diagnostics);
        let kind = CheckKind::ForbiddenArguments(ForbiddenArguments { calls: by_arguments(), arguments });
        conditions.push(Check::new(kind, place));
    }
    for (pattern, place) in read_patterns(entry, "result_not_match", diagnostics) {
        let kind = CheckKind::ForbiddenResult(ForbiddenResult { calls: by_arguments(), pattern });
        conditions.push(Check::new(kind, place));
    }
    if let (Some(after), Some(place)) = (entry.text("after"), entry.place_of("after")) {
        let called = CalledAfter { calls: calls.clone(), after: after.to_string() };
        conditions.push(Check::new(CheckKind::CalledAfter(called), place));
    }
    if conditions.is_empty() {
        refuse_any_count(count, entry, diagnostics);
    }
    // A negative condition or an order alone does not require a call; the count does.
    let place = entry.place_of("count").unwrap_or_else(|| name_place(entry));
    checks.push(Check::new(CheckKind::ToolCount(ToolCount { calls, count }), place));
    checks.extend(conditions);
}

fn name_place(entry: &MapView<'_>) -> SourceSpan {
    entry.place_near("name")
}

fn call_filter(entry: &MapView<'_>, diagnostics: &mut Diagnostics) -> CallFilter {
    CallFilter {
        name: entry.text("name").unwrap_or_default().to_string(),
        server: entry.text("server").map(str::to_string),
        arguments: read_argument_patterns(entry, "args_match", diagnostics),
        result: read_patterns(entry, "result_match", diagnostics)
            .into_iter()
            .map(|(pattern, _)| pattern)
            .collect(),
    }
}

/// Refuses a count that any number of calls satisfies.
pub(super) fn refuse_any_count(count: CallCount, around: &MapView<'_>, diagnostics: &mut Diagnostics) {
    if count.min == 0 && count.max.is_none() {
        let message = "`min: 0` allows any number of calls, so nothing is asserted";
        diagnostics.report(around.place_of("count"), message);
    }
}

pub(super) fn read_count(view: Option<NodeView<'_>>, diagnostics: &mut Diagnostics) -> CallCount {
    let exactly = |exact| CallCount { min: exact, max: Some(exact) };
    if let Some(exact) = view.and_then(NodeView::integer) {
        return u64::try_from(exact).map_or(CallCount::AT_LEAST_ONE, exactly);
    }
    let Some(map) = view.and_then(|view| view.map(&COUNT)) else { return CallCount::AT_LEAST_ONE };
    let number = |key: &str| map.integer(key).and_then(|n| u64::try_from(n).ok());
    match (number("exact"), number("min"), number("max")) {
        (Some(exact), None, None) => exactly(exact),
        (Some(_), _, _) => {
            diagnostics.report(map.place_of("exact"), "`exact` cannot be combined with `min` or `max`");
            CallCount::AT_LEAST_ONE
        }
        (None, Some(min), Some(max)) if min > max => {
            diagnostics.report(map.place_of("min"), format!("`min` {min} is more than `max` {max}"));
            CallCount::AT_LEAST_ONE
        }
        (None, None, None) => {
            diagnostics.report(map.place(), "`count` needs `exact`, `min` or `max`");
            CallCount::AT_LEAST_ONE
        }
        (None, min, max) => CallCount { min: min.unwrap_or(0), max },
    }
}
