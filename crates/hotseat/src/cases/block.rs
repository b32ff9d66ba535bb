//! What is asserted on one level: from what people write, a block or a list of typed assertions, to checks, with what
//! is inherited.

use crate::checks::{
    After, ArgumentPatterns, ArgumentsNever, Budget, CallFilter, CallForbidden, Check, CheckKind, Count,
    Idle, MaxDuration, MaxIdle, NoTextBesideCalls, Pattern, ResultNever, Strength, Text, TextMatch,
    ToolCount,
};
use hotseat_document::{Diagnostic, Diagnostics, Map, Place, View};

use super::assertion;
use super::assertion_shape::ASSERTION;
use super::limits::millis;
use super::shape::ASSERT;
use super::variables::mistake;

/// The checks of one level: target, case or turn.
#[derive(Debug, Clone, Default)]
pub struct Block {
    tools: Part<Vec<Check>>,
    timing: Part<Timing>,
    budget: Part<Budgets>,
    text: Part<Vec<Check>>,
    typed: Part<Vec<Check>>,
}

/// One part of a block.
#[derive(Debug, Clone, Default)]
enum Part<T> {
    /// Nothing is said: what the level above says holds.
    #[default]
    Inherited,
    /// `false`: what the level above says does not hold.
    Cleared,
    /// This holds, together with what the level above says.
    Added(T),
}

/// Limits on time: each replaces the one of the level above.
#[derive(Debug, Clone, Default)]
struct Timing {
    duration: Option<Check>,
    gap: Option<Check>,
    idle: Option<Check>,
}

/// Limits on what is spent: each replaces the one of the level above.
#[derive(Debug, Clone, Default)]
struct Budgets {
    tokens: Option<Check>,
    cost: Option<Check>,
    calls: Option<Check>,
}

impl Block {
    /// Reads what has the right shape: `false`, a block, a typed assertion, or a list of these. `None` says nothing.
    pub fn read(view: Option<View<'_>>, mistakes: &mut Diagnostics) -> Block {
        let Some(view) = view else { return Block::default() };
        if view.bool() == Some(false) {
            return Block {
                tools: Part::Cleared,
                timing: Part::Cleared,
                budget: Part::Cleared,
                text: Part::Cleared,
                typed: Part::Cleared,
            };
        }
        for entry in view.list().into_iter().flatten() {
            if entry.entries().is_some_and(|entries| entries.len() == 0) {
                mistakes.push(mistake(Some(entry.place()), "this asserts nothing"));
            }
        }
        let entries = view.one_or_many().filter_map(|entry| entry.tagged(&ASSERTION));
        entries.fold(Block::default(), |block, entry| Block::entry(&entry, mistakes).over(&block))
    }

    /// A block in the narrow sense, or one typed assertion.
    fn entry(map: &Map<'_>, mistakes: &mut Diagnostics) -> Block {
        if std::ptr::eq(map.shape(), &ASSERT) {
            return Block::parts(map, mistakes);
        }
        let typed = assertion::read(map, mistakes).into_iter().collect();
        Block { typed: Part::Added(typed), ..Block::default() }
    }

    fn parts(map: &Map<'_>, mistakes: &mut Diagnostics) -> Block {
        let block = Block {
            tools: Part::read(map, "tools", |map| tools(map, mistakes)),
            timing: Part::read(map, "timing", timing),
            budget: Part::read(map, "budget", |map| budgets(map, mistakes)),
            text: Part::read(map, "text", |map| text(map, mistakes)),
            typed: Part::Inherited,
        };
        // An empty mapping asserts nothing and says so; `tools: {}` looks as if it did.
        for key in ["tools", "timing", "budget", "text"] {
            if map.map(key).is_some_and(|part| part.is_empty()) {
                mistakes.push(mistake(map.place_of(key), format!("`{key}` asserts nothing")));
            }
        }
        block
    }

    /// This block on top of what it inherits.
    #[must_use]
    pub fn over(&self, inherited: &Block) -> Block {
        let joined = |own: &Vec<Check>, above: &Vec<Check>| [above.as_slice(), own.as_slice()].concat();
        Block {
            tools: self.tools.over(&inherited.tools, joined),
            timing: self.timing.over(&inherited.timing, Timing::over),
            budget: self.budget.over(&inherited.budget, Budgets::over),
            text: self.text.over(&inherited.text, joined),
            typed: self.typed.over(&inherited.typed, joined),
        }
    }

    /// The checks, in the order in which they are reported.
    pub fn checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        if let Part::Added(tools) = &self.tools {
            checks.extend(tools.iter().cloned());
        }
        if let Part::Added(Timing { duration, gap, idle }) = &self.timing {
            checks.extend([duration, gap, idle].into_iter().flatten().cloned());
        }
        if let Part::Added(Budgets { tokens, cost, calls }) = &self.budget {
            checks.extend([tokens, cost, calls].into_iter().flatten().cloned());
        }
        for part in [&self.text, &self.typed] {
            if let Part::Added(part) = part {
                checks.extend(part.iter().cloned());
            }
        }
        checks
    }

    /// The checks as ones that are only measured.
    pub fn soft_checks(&self) -> Vec<Check> {
        let soft = |check| Check { strength: Strength::Soft, ..check };
        self.checks().into_iter().map(soft).collect()
    }
}

impl<T: Clone> Part<T> {
    fn read(map: &Map<'_>, key: &str, read: impl FnOnce(&Map<'_>) -> T) -> Part<T> {
        match (map.has(key), map.map(key)) {
            (false, _) => Part::Inherited,
            (true, None) => Part::Cleared,
            (true, Some(part)) => Part::Added(read(&part)),
        }
    }

    fn over(&self, inherited: &Part<T>, join: impl FnOnce(&T, &T) -> T) -> Part<T> {
        match (self, inherited) {
            (Part::Inherited, above) => above.clone(),
            (Part::Cleared, _) => Part::Cleared,
            (Part::Added(own), Part::Added(above)) => Part::Added(join(own, above)),
            (Part::Added(own), Part::Inherited | Part::Cleared) => Part::Added(own.clone()),
        }
    }
}

impl Timing {
    fn over(&self, inherited: &Timing) -> Timing {
        Timing {
            duration: self.duration.clone().or_else(|| inherited.duration.clone()),
            gap: self.gap.clone().or_else(|| inherited.gap.clone()),
            idle: self.idle.clone().or_else(|| inherited.idle.clone()),
        }
    }
}

impl Budgets {
    fn over(&self, inherited: &Budgets) -> Budgets {
        Budgets {
            tokens: self.tokens.clone().or_else(|| inherited.tokens.clone()),
            cost: self.cost.clone().or_else(|| inherited.cost.clone()),
            calls: self.calls.clone().or_else(|| inherited.calls.clone()),
        }
    }
}

fn budgets(map: &Map<'_>, mistakes: &mut Diagnostics) -> Budgets {
    let mut limit = |key: &str| {
        let value = map.get(key)?;
        Some(Check::new(CheckKind::Budget(budget(key, value, mistakes)?), value.place()))
    };
    Budgets { tokens: limit("max_tokens"), cost: limit("max_cost"), calls: limit("max_tool_calls") }
}

/// One limit on what is spent, by its name.
pub(super) fn budget(name: &str, value: View<'_>, mistakes: &mut Diagnostics) -> Option<Budget> {
    let whole = || value.integer().and_then(|number| u64::try_from(number).ok());
    Some(match name {
        "max_tokens" => Budget::Tokens(whole()?),
        "max_tool_calls" => Budget::ToolCalls(whole()?),
        _ => {
            let limit = value.number()?.as_f64()?;
            if limit < 0.0 {
                mistakes.push(mistake(Some(value.place()), "nothing costs less than 0"));
            }
            Budget::Cost(limit)
        }
    })
}

fn timing(map: &Map<'_>) -> Timing {
    let limit = |key: &str, kind: &dyn Fn(std::time::Duration) -> CheckKind| {
        let value = map.get(key)?;
        Some(Check::new(kind(millis(value.integer()?)), value.place()))
    };
    Timing {
        duration: limit("max_duration_ms", &|limit| CheckKind::MaxDuration(MaxDuration { limit })),
        gap: limit("max_gap_ms", &|limit| CheckKind::MaxIdle(MaxIdle { idle: Idle::BetweenCalls, limit })),
        idle: limit("max_idle_ms", &|limit| CheckKind::MaxIdle(MaxIdle { idle: Idle::Anywhere, limit })),
    }
}

fn text(map: &Map<'_>, mistakes: &mut Diagnostics) -> Vec<Check> {
    let mut checks = Vec::new();
    for (key, must) in [("must_match", TextMatch::Fit), ("must_not_match", TextMatch::NotFit)] {
        for (pattern, place) in patterns(map, key, mistakes) {
            checks.push(Check::new(CheckKind::Text(Text { pattern, must }), place));
        }
    }
    if let Some(place) = map.place_of("beside_calls") {
        checks.push(Check::new(CheckKind::NoTextBesideCalls(NoTextBesideCalls), place));
    }
    checks
}

fn tools(map: &Map<'_>, mistakes: &mut Diagnostics) -> Vec<Check> {
    let mut checks = Vec::new();
    for name in map.list("forbid").into_iter().flatten() {
        let calls = CallFilter::named(name.text().unwrap_or_default());
        let kind = CheckKind::ToolCount(ToolCount { calls, count: Count::NONE });
        checks.push(Check::new(kind, name.place()));
    }
    for entry in map.list("require").into_iter().flatten() {
        if let Some(entry) = entry.map(&super::shape::REQUIRE) {
            required(&entry, &mut checks, mistakes);
        }
    }
    for entry in map.list("forbid_calls").into_iter().flatten() {
        if let Some(entry) = entry.map(&super::shape::FORBID_CALL) {
            let calls = call_filter(&entry, mistakes);
            let kind = CheckKind::CallForbidden(CallForbidden { calls });
            checks.push(Check::new(kind, name_place(&entry)));
        }
    }
    checks
}

/// One entry of `require` is up to four checks, each with a place of its own.
fn required(entry: &Map<'_>, checks: &mut Vec<Check>, mistakes: &mut Diagnostics) {
    let calls = call_filter(entry, mistakes);
    let by_arguments = CallFilter { result: Vec::new(), ..calls.clone() };

    let count = count(entry.map("count"), mistakes);
    let place = entry.place_of("count").unwrap_or_else(|| name_place(entry));
    // A negative condition alone does not ask for a call; neither does an order: that is what the count says.
    checks.push(Check::new(CheckKind::ToolCount(ToolCount { calls: calls.clone(), count }), place));

    if let Some(place) = entry.place_of("args_not_match") {
        let arguments = argument_patterns(entry, "args_not_match", mistakes);
        let kind = CheckKind::ArgumentsNever(ArgumentsNever { calls: by_arguments.clone(), arguments });
        checks.push(Check::new(kind, place));
    }
    for (pattern, place) in patterns(entry, "result_not_match", mistakes) {
        let kind = CheckKind::ResultNever(ResultNever { calls: by_arguments.clone(), pattern });
        checks.push(Check::new(kind, place));
    }
    if let (Some(after), Some(place)) = (entry.text("after"), entry.place_of("after")) {
        checks.push(Check::new(CheckKind::After(After { calls, after: after.to_string() }), place));
    }
}

fn name_place(entry: &Map<'_>) -> Place {
    entry.place_of("name").unwrap_or_else(|| entry.place())
}

fn call_filter(entry: &Map<'_>, mistakes: &mut Diagnostics) -> CallFilter {
    CallFilter {
        name: entry.text("name").unwrap_or_default().to_string(),
        arguments: argument_patterns(entry, "args_match", mistakes),
        result: patterns(entry, "result_match", mistakes).into_iter().map(|(pattern, _)| pattern).collect(),
    }
}

pub(super) fn count(map: Option<Map<'_>>, mistakes: &mut Diagnostics) -> Count {
    let Some(map) = map else { return Count::AT_LEAST_ONE };
    let number = |key: &str| map.integer(key).and_then(|n| u64::try_from(n).ok());
    match (number("exact"), number("min"), number("max")) {
        (Some(exact), None, None) => Count { min: exact, max: Some(exact) },
        (Some(_), _, _) => {
            mistakes.push(mistake(map.place_of("exact"), "`exact` goes without `min` and `max`"));
            Count::AT_LEAST_ONE
        }
        (None, Some(min), Some(max)) if min > max => {
            mistakes.push(mistake(map.place_of("min"), format!("`min` {min} is more than `max` {max}")));
            Count::AT_LEAST_ONE
        }
        (None, None, None) => {
            mistakes.push(mistake(Some(map.place()), "`count` needs `exact`, `min` or `max`"));
            Count::AT_LEAST_ONE
        }
        (None, min, max) => Count { min: min.unwrap_or(0), max },
    }
}

/// The patterns of a key that may hold one or several, with their places.
pub(super) fn patterns(map: &Map<'_>, key: &str, mistakes: &mut Diagnostics) -> Vec<(Pattern, Place)> {
    let Some(view) = map.get(key) else { return Vec::new() };
    view.one_or_many().filter_map(|view| Some((pattern(view, mistakes)?, view.place()))).collect()
}

/// Patterns by the path of the argument.
pub(super) fn argument_patterns(map: &Map<'_>, key: &str, mistakes: &mut Diagnostics) -> ArgumentPatterns {
    let Some(entries) = map.get(key).and_then(View::entries) else { return ArgumentPatterns::default() };
    if entries.len() == 0 {
        mistakes.push(mistake(map.place_of(key), format!("`{key}` names no argument")));
    }
    let patterns = entries.filter_map(|(path, _, view)| Some((path.to_string(), pattern(view, mistakes)?)));
    ArgumentPatterns(patterns.collect())
}

/// One pattern.
pub(super) fn pattern(view: View<'_>, mistakes: &mut Diagnostics) -> Option<Pattern> {
    match Pattern::compile(view.text()?) {
        Ok(pattern) => Some(pattern),
        Err(words) => {
            mistakes
                .push(Diagnostic::new(format!("this pattern does not compile: {words}")).at(view.place()));
            None
        }
    }
}
