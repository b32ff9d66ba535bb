//! A comparison as JSON. The inner types are free to change; this is a promise.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::cases::{Attempt, Run};
use super::comparison::{Change, Claim, ComparedCase, Comparison, Rates};
use super::figures::{ComparedFigure, Unit};
use super::parting::{Parting, Step};

/// Version of this format: `major.minor`.
const VERSION: &str = "1.0";

/// Writes a comparison as one JSON object. `exit_code` is what the program ends with.
///
/// # Errors
/// When it cannot be written.
pub fn write_json(comparison: &Comparison<'_>, exit_code: u8, out: &mut dyn Write) -> io::Result<()> {
    let Comparison { before, after, confidence, shared, claim, p, can_tell, .. } = comparison;
    let not_compared = comparison
        .not_compared
        .iter()
        .map(|not| json!({"id": not.case.id, "name": not.case.name, "why": not.why}));
    let soft = comparison.soft.iter().map(|check| {
        let side = |(holds, attempts): (usize, usize)| json!({"holds": holds, "attempts": attempts});
        json!({"check": check.words, "before": side(check.before), "after": side(check.after), "p": rounded(check.p), "claim": pass_claim(check.claim)})
    });
    let whole = json!({
        "version": VERSION,
        "exit_code": exit_code,
        "confidence": confidence,
        "worse": comparison.is_worse(),
        "before": run(before),
        "after": run(after),
        "cases_compared": shared,
        "cases_removed": comparison.removed,
        "cases_added": comparison.added,
        "not_compared": not_compared.collect::<Vec<_>>(),
        "notes": comparison.notes,
        "pass_rate": {
            "before": rates(&comparison.passed_before),
            "after": rates(&comparison.passed_after),
            "p": rounded(*p),
            "claim": pass_claim(*claim),
            "can_tell": can_tell,
        },
        "newly_failing": comparison.newly_failing(),
        "no_longer_passing": comparison.lost,
        "cases": comparison.cases.iter().map(case).collect::<Vec<_>>(),
        "evaluations": soft.collect::<Vec<_>>(),
        "figures": comparison.figures.iter().filter(|figure| !figure.is_tool).map(figure).collect::<Vec<_>>(),
        "tools": comparison.figures.iter().filter(|figure| figure.is_tool).map(figure).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)
}

fn run(run: &Run) -> Value {
    json!({"run": run.shown, "started_at": run.started_at, "agent": run.agent, "connector": run.connector, "cases": run.cases.len(), "cut_short": run.cut_short})
}

fn rates(rates: &Rates) -> Value {
    let mut all = json!({
        "passed": rates.passed,
        "attempts": rates.tries,
        "low": rounded(rates.interval.low),
        "high": rounded(rates.interval.high),
    });
    if let Some(spread) = rates.by_attempt {
        all["by_run"] = json!({"mean": rounded(spread.mean), "deviation": rounded(spread.deviation), "least": rounded(spread.least), "most": rounded(spread.most)});
    }
    all
}

fn case(case: &ComparedCase<'_>) -> Value {
    let side = |of: &super::cases::Case| json!({"passed": of.passed(), "attempts": of.attempts.len(), "invalid": of.invalid});
    let mut all = Map::new();
    all.insert("id".into(), json!(case.after.id));
    all.insert("name".into(), json!(case.after.name));
    all.insert("file".into(), json!(case.after.file));
    all.insert("change".into(), json!(change(case.change)));
    all.insert("claim".into(), json!(pass_claim(case.claim)));
    all.insert("p".into(), json!(rounded(case.p)));
    all.insert("before".into(), side(case.before));
    all.insert("after".into(), side(case.after));
    if let (Some((one, other)), Some(found)) = (case.told, &case.parting) {
        all.insert("parting".into(), parting(found, one, other));
    }
    Value::Object(all)
}

fn parting(found: &Parting, one: &Attempt, other: &Attempt) -> Value {
    json!({
        "turn": found.turn,
        "call": found.call,
        "before": {"attempt": one.number, "does": step(&found.before)},
        "after": {"attempt": other.number, "does": step(&found.after)},
    })
}

fn step(step: &Step) -> Value {
    match step {
        Step::User(text) => json!({"user": text}),
        Step::Call(call) => json!({"tool": call.tool, "arguments": call.arguments}),
        Step::Answer(text) => json!({"answer": text}),
        Step::Error(words) => json!({"error": words}),
        Step::Over => json!({"over": true}),
    }
}

fn figure(figure: &ComparedFigure) -> Value {
    let unit = match figure.unit {
        Unit::Seconds => "seconds",
        Unit::Count => "count",
        Unit::Money => "cost",
    };
    json!({
        "name": figure.name,
        "unit": unit,
        "before": rounded(figure.before),
        "after": rounded(figure.after),
        "cases": figure.cases,
        "p": rounded(figure.p),
        "claim": match figure.claim {
            Claim::Nothing => "nothing",
            Claim::Less => "less",
            Claim::More => "more",
        },
    })
}

fn pass_claim(claim: Claim) -> &'static str {
    match claim {
        Claim::Nothing => "nothing",
        Claim::Less => "worse",
        Claim::More => "better",
    }
}

fn change(change: Change) -> &'static str {
    match change {
        Change::NewlyFails => "newly_fails",
        Change::NewlyPasses => "newly_passes",
        Change::PassesLess => "passes_less",
        Change::PassesMore => "passes_more",
        Change::Same => "same",
    }
}

/// A number with six digits behind the point: more would only be noise.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}
