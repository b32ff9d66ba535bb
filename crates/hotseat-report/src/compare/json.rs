//! JSON format of a comparison. The format is stable; the internal types are not.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::cases::{ReportAttempt, ReportRun};
use super::comparison::{ComparedCase, PassChange, PassRates, RunComparison};
use super::divergence::{Divergence, DivergentStep};
use super::figures::{ComparedFigure, FigureUnit};
use super::significance::SignificantChange;

/// Version of this format: `major.minor`.
const VERSION: &str = "1.0";

/// Writes a comparison as one JSON object. `exit_code` is the exit code of the command. Fails if it cannot be
/// written.
pub fn write_json(comparison: &RunComparison<'_>, exit_code: u8, out: &mut dyn Write) -> io::Result<()> {
    let RunComparison {
        before,
        after,
        confidence,
        shared,
        significance: claim,
        p_value: p,
        can_reach_significance: can_tell,
        ..
    } = comparison;
    let not_compared = comparison
        .not_compared
        .iter()
        .map(|not| json!({"id": not.after.id, "name": not.after.name, "why": not.reason}));
    let soft = comparison.soft.iter().map(|check| {
        let side = |(holds, attempts): (usize, usize)| json!({"holds": holds, "attempts": attempts});
        json!({"check": check.text, "before": side(check.before), "after": side(check.after), "p": rounded(check.p_value), "claim": pass_claim(check.significance)})
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

fn run(run: &ReportRun) -> Value {
    json!({"run": run.label, "started_at": run.started_at, "agent": run.agent, "connector": run.connector, "cases": run.cases.len(), "cut_short": run.is_incomplete})
}

fn rates(rates: &PassRates) -> Value {
    let mut all = json!({
        "passed": rates.passed,
        "attempts": rates.attempts,
        "low": rounded(rates.interval.low),
        "high": rounded(rates.interval.high),
    });
    if let Some(spread) = rates.by_attempt {
        all["by_run"] = json!({"mean": rounded(spread.mean), "deviation": rounded(spread.standard_deviation), "least": rounded(spread.min), "most": rounded(spread.max)});
    }
    all
}

fn case(case: &ComparedCase<'_>) -> Value {
    let side = |of: &super::cases::ReportCase| json!({"passed": of.passed_attempts(), "attempts": of.attempts.len(), "invalid": of.invalid});
    let mut all = Map::new();
    all.insert("id".into(), json!(case.after.id));
    all.insert("name".into(), json!(case.after.name));
    all.insert("file".into(), json!(case.after.file));
    all.insert("change".into(), json!(change(case.change)));
    all.insert("claim".into(), json!(pass_claim(case.significance)));
    all.insert("p".into(), json!(rounded(case.p_value)));
    all.insert("before".into(), side(case.before));
    all.insert("after".into(), side(case.after));
    if let (Some((one, other)), Some(found)) = (case.attempts, &case.divergence) {
        all.insert("parting".into(), parting(found, one, other));
    }
    Value::Object(all)
}

fn parting(found: &Divergence, one: &ReportAttempt, other: &ReportAttempt) -> Value {
    json!({
        "turn": found.turn,
        "call": found.call,
        "before": {"attempt": one.number, "does": step(&found.before)},
        "after": {"attempt": other.number, "does": step(&found.after)},
    })
}

fn step(step: &DivergentStep) -> Value {
    match step {
        DivergentStep::User(text) => json!({"user": text}),
        DivergentStep::Call(call) => json!({"tool": call.tool, "arguments": call.arguments}),
        DivergentStep::Answer(text) => json!({"answer": text}),
        DivergentStep::Error(words) => json!({"error": words}),
        DivergentStep::End => json!({"over": true}),
    }
}

fn figure(figure: &ComparedFigure) -> Value {
    let unit = match figure.unit {
        FigureUnit::Seconds => "seconds",
        FigureUnit::Count => "count",
        FigureUnit::Money => "cost",
    };
    json!({
        "name": figure.name,
        "unit": unit,
        "before": rounded(figure.before),
        "after": rounded(figure.after),
        "cases": figure.cases,
        "p": rounded(figure.p_value),
        "claim": match figure.significance {
            SignificantChange::NotSignificant => "nothing",
            SignificantChange::Less => "less",
            SignificantChange::More => "more",
        },
    })
}

fn pass_claim(claim: SignificantChange) -> &'static str {
    match claim {
        SignificantChange::NotSignificant => "nothing",
        SignificantChange::Less => "worse",
        SignificantChange::More => "better",
    }
}

fn change(change: PassChange) -> &'static str {
    match change {
        PassChange::NewlyFails => "newly_fails",
        PassChange::NewlyPasses => "newly_passes",
        PassChange::PassesLess => "passes_less",
        PassChange::PassesMore => "passes_more",
        PassChange::Same => "same",
    }
}

/// Rounds a number to six decimal places.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}
