//! Converts assertions of Rust tests to checks.

use std::sync::Arc;

use hotseat_document::SourceSpan;
use serde_json::{Value, json};

use super::criterion::{Criteria, Criterion};
use super::matcher::{AMBIGUOUS_NOT, AssertionKind};
use hotseat_checks::{Check, CheckKind, PrecomputedCheck, RustCheck, Undecidable};
use hotseat_engine::cases::{negate_assertion, parse_assertions};
use hotseat_targets::recorder::SecretRedactor;

/// Converts an assertion of an example to checks. Fails if the assertion is invalid: the message.
pub(super) fn build_checks(
    form: AssertionKind,
    negated: bool,
    place: &SourceSpan,
    criteria: &Criteria,
    redactor: &SecretRedactor,
) -> Result<Vec<Check>, String> {
    let one = |kind| vec![Check { negated, ..Check::new(kind, place.clone()) }];
    let written = |mut value: Value| {
        if negated {
            if !value.is_object() {
                return Err(AMBIGUOUS_NOT.to_string());
            }
            negate_assertion(&mut value);
        }
        match parse_assertions(&value, redactor) {
            Ok(checks) if checks.is_empty() => Err(format!("{value} asserts nothing")),
            parsed => parsed.map_err(|error| error.to_string()),
        }
    };
    let checks = match form {
        AssertionKind::Decided(known) => {
            let mut written = json!({"type": "value"});
            if let Some(of) = known.expression {
                written["of"] = of.into();
            }
            let expected = known.describe();
            let kind = match known.holds {
                Some(holds) => CheckKind::Precomputed(PrecomputedCheck {
                    expected,
                    actual: known.actual,
                    result: Ok(holds),
                }),
                None => CheckKind::RustFunction(RustCheck::new(expected, move |_| {
                    Err(Undecidable::new(known.actual.as_str()))
                })),
            };
            Ok(with_source(one(kind), written, negated))
        }
        AssertionKind::Predicate { name, found } => {
            let found = found.map(|holds| (holds, format!("the function returned {holds}")));
            let native = RustCheck::new(format!("the agent to satisfy {name}"), move |_| found.clone());
            Ok(as_criterion(&name, one(CheckKind::RustFunction(native)), negated))
        }
        AssertionKind::Invalid(words) => Err(words),
        AssertionKind::CaseFile(value) => written(value),
        AssertionKind::ToolCall { written: value, functions } => {
            let mut checks = written(value)?;
            for check in &mut checks {
                // Without the functions it would be another assertion.
                check.definition = None;
                if let CheckKind::ToolCalled(called) = &mut check.kind {
                    called.conditions.extend(functions.iter().cloned());
                }
            }
            Ok(checks)
        }
        AssertionKind::EachTurn { name, function } => {
            let words = if negated { format!("no turn to satisfy {name}") } else { name };
            let check = RustCheck::new(words, move |scope| function.holds_of_each(scope, negated));
            Ok(vec![Check::new(CheckKind::RustFunction(check), place.clone())])
        }
        AssertionKind::Criteria(names) => {
            let mut all = Vec::new();
            for name in names {
                let by_code = criteria.get(&name).and_then(Criterion::function_check);
                all.extend(match by_code {
                    Some(native) => as_criterion(&name, one(CheckKind::RustFunction(native)), negated),
                    None => written(json!({"type": "satisfy", "criteria": name}))?,
                });
            }
            Ok(all)
        }
    }?;
    match negated && checks.len() > 1 {
        true => Err(AMBIGUOUS_NOT.to_string()),
        false => Ok(checks),
    }
}

/// Marks checks as deciding the criterion `name`, as in a case file.
fn as_criterion(name: &str, checks: Vec<Check>, negated: bool) -> Vec<Check> {
    let named = |check| Check { criterion: Some(name.into()), ..check };
    let checks = checks.into_iter().map(named).collect();
    with_source(checks, json!({"type": "satisfy", "criteria": name}), negated)
}

/// Attaches the equivalent assertion of a case file to the checks.
fn with_source(checks: Vec<Check>, mut written: Value, negated: bool) -> Vec<Check> {
    if negated {
        written["negate"] = true.into();
    }
    let written = Arc::new(written);
    checks.into_iter().map(|check| Check { definition: Some(written.clone()), ..check }).collect()
}
