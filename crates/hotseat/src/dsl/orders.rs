//! What an example asks for is done: on its session, and in the words that the session knows.

use std::sync::{Arc, Mutex, PoisonError};

use hotseat_document::Place;
use hotseat_trace::{Failure, FailureKind};
use serde_json::{Value, json};

use super::line::{Asserted, OptionsOfTurns, Order, Over, Seen};
use super::matcher::Form;
use super::place::At;
use super::said::Said;
use super::simulator::{Brief, Simulated, took};
use super::topics::{Graph, by_code};
use super::tree::Example;
use super::views::Evaluation;
use crate::cases::{assertions_in, turn_in};
use crate::checks::{Check, CheckKind, Compared, Native};
use crate::session::{Ended, Session, Simulation};

const NOT_OF_SEVERAL: &str =
    "`not` of several: it is not plain whether none may hold or not all; negate each of them";

tokio::task_local! {
    /// What the example sees that something is carried out for.
    static SEEN: Arc<Mutex<Seen>>;
}

/// What the agent was told beside what the user said, in the example that something is carried out for.
pub(super) fn options_so_far() -> OptionsOfTurns {
    let of = |seen: &Arc<Mutex<Seen>>| seen.lock().unwrap_or_else(PoisonError::into_inner).options.clone();
    SEEN.try_with(of).unwrap_or_default()
}

/// A session, the example that drives it, and what that can see of it.
pub(super) struct Doing<'h, 's> {
    pub session: &'h mut Session<'s>,
    pub example: Arc<Example>,
    pub seen: Arc<Mutex<Seen>>,
}

impl Doing<'_, '_> {
    /// Does what an example asks for, and lets it see what came of it. An example that has ended does not wait any more.
    pub async fn carry_out(&mut self, order: Order) {
        // Functions of the test that the session asks meanwhile see what the example sees.
        let seen = self.seen.clone();
        SEEN.scope(seen, self.try_to(order)).await;
    }

    async fn try_to(&mut self, order: Order) {
        match order {
            Order::Say { said, reply } => {
                let said = self.say(said).await;
                self.show(true);
                let _ = reply.send(said.map_err(|_| Over));
            }
            Order::Simulate { brief, at, reply } => {
                let simulated = self.simulate(&brief, at).await;
                self.show(true);
                let _ = reply.send(simulated.map_err(|_| Over));
            }
            Order::Graph { graph, at, reply } => {
                let declared = self.declare(&graph, at).await;
                self.show(true);
                let _ = reply.send(declared.map_err(|_| Over));
            }
            Order::Check { asserted, reply } => {
                let decided = self.decide(asserted).await;
                self.show(false);
                let _ = reply.send(decided.map_err(|_| Over));
            }
            Order::Skip(reason) => {
                self.session.skip(reason);
                self.show(false);
            }
            Order::Wrong { words, at } => {
                self.wrong(&words, at);
                self.show(false);
            }
            Order::Log(line) => self.session.log(line),
        }
    }

    /// Decides what topics assert: functions of the test are asked as long as the example is there.
    pub async fn end(&mut self) {
        if self.session.goes_on().is_ok() {
            SEEN.scope(self.seen.clone(), self.session.decide_all_topics()).await;
        }
    }

    /// The test is wrong.
    pub fn wrong(&mut self, words: &str, at: At) -> Ended {
        self.session.fail(test_error(format!("{words} ({at})")))
    }

    /// What the example can see; the conversation only where something was said, for a copy is made of it.
    fn show(&self, said: bool) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.over = self.session.goes_on().is_err();
        if said {
            seen.conversation = Arc::new(self.session.conversation().clone());
        }
        let known = seen.evaluations.len();
        if self.session.checks().len() > known {
            let new = self.session.checks()[known..].iter().map(Evaluation::of);
            Arc::make_mut(&mut seen.evaluations).extend(new);
        }
    }

    async fn say(&mut self, said: Said) -> Result<(), Ended> {
        let Said { turn: written, at } = said;
        let options = written.get("options").cloned();
        let turn = turn_in(&written.into(), &self.session.case().unwritten, at.place());
        let mut turn = turn.map_err(|words| self.wrong(&words, at))?;
        turn.load_attachments(&[&self.example.folder]).map_err(|words| self.wrong(&words, at))?;
        if let Some(options) = options {
            let number = self.session.conversation().turns.len() + 1;
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::make_mut(&mut seen.options).insert(number, options);
        }
        self.session.say(turn).await
    }

    async fn simulate(&mut self, brief: &Brief, at: At) -> Result<Simulated, Ended> {
        let told = brief.told(&self.example.simulators, at);
        let mut told = told.map_err(|words| self.wrong(&words, at))?;
        if let Some(template) = &mut told.template {
            let read = template.load(std::slice::from_ref(&self.example.folder));
            read.map_err(|words| self.wrong(&words, at))?;
        }
        let first = self.session.conversation().turns.len();
        let simulation = Simulation { max_turns: told.max_turns, brief: Some(Arc::new(told)) };
        let stopped = self.session.simulate(simulation).await?;
        let turns = &self.session.conversation().turns[first..];
        Ok(Simulated {
            reason: stopped.reason,
            goal_progress: stopped.goal_progress.as_deref().map(str::to_string),
            detail: stopped.detail,
            turns: turns.len(),
            took: took(turns),
        })
    }

    async fn declare(&mut self, graph: &Graph, at: At) -> Result<(), Ended> {
        match graph.declared(&self.example, self.session.case().following, at) {
            Ok(topics) => self.session.declare_topics(Arc::new(topics)).await,
            Err(wrong) => {
                let mut words = wrong.iter().map(|(words, at)| format!("{words} ({at})"));
                let first = words.next().unwrap_or_default();
                let rest = words.collect::<Vec<_>>().join("\n");
                Err(self.session.fail(test_error(first).with_detail(rest)))
            }
        }
    }

    /// Has something decided; whether it holds.
    async fn decide(&mut self, asserted: Asserted) -> Result<bool, Ended> {
        let Asserted { assertion, strength, message, at } = asserted;
        let place = at.place();
        let found = checks(assertion.form, assertion.negated, &place, &self.example);
        let checks = found.map_err(|words| self.wrong(&words, at))?;
        if assertion.negated && checks.len() > 1 {
            return Err(self.wrong(NOT_OF_SEVERAL, at));
        }
        let own = |check: Check| {
            let message = message.clone().or(check.message.clone());
            Check { place: place.clone(), strength, message, ..check }
        };
        let checks = checks.into_iter().map(own).collect();
        let decided = self.session.decide_all(checks, assertion.subject).await?;
        Ok(decided.iter().all(|checked| checked.verdict.passed))
    }
}

/// The checks that an assertion amounts to, in an example.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn checks(
    form: Form,
    negated: bool,
    place: &Place,
    example: &Example,
) -> Result<Vec<Check>, String> {
    let one = |kind| vec![Check { negated, ..Check::new(kind, place.clone()) }];
    let written = |mut value: Value| {
        if negated && value["negate"] == true {
            value.as_object_mut().map(|members| members.shift_remove("negate"));
        } else if negated {
            if !value.is_object() {
                return Err(NOT_OF_SEVERAL.to_string());
            }
            value["negate"] = true.into();
        }
        assertions_in(&value)
    };
    match form {
        Form::Known(known) => {
            let mut written = json!({"type": "value"});
            if let Some(of) = known.of {
                written["of"] = of.into();
            }
            let expected = known.describe();
            let kind = match known.holds {
                Some(holds) => {
                    CheckKind::Compared(Compared { expected, actual: known.actual, holds: Ok(holds) })
                }
                None => CheckKind::Native(Native::new(expected, move |_| Err(known.actual.clone()))),
            };
            Ok(noted(one(kind), written, negated))
        }
        Form::Judged { name, found } => {
            let found = found.map(|holds| (holds, format!("it returned {holds}")));
            let native = Native::new(format!("satisfies {name}"), move |_| found.clone());
            Ok(satisfies(&name, one(CheckKind::Native(native)), negated))
        }
        Form::Native(native) => Ok(one(CheckKind::Native(native))),
        Form::Wrong(words) => Err(words),
        Form::Written(value) => written(value),
        Form::Satisfy(criteria) => {
            let mut all = Vec::new();
            for name in criteria {
                let by_code = example.criteria.get(&name).and_then(by_code);
                all.extend(match by_code {
                    Some(native) => satisfies(&name, one(CheckKind::Native(native)), negated),
                    None => written(json!({"type": "satisfy", "criteria": name}))?,
                });
            }
            Ok(all)
        }
    }
}

/// Checks that decide a criterion which a case file would name so.
fn satisfies(name: &str, checks: Vec<Check>, negated: bool) -> Vec<Check> {
    let named = |check| Check { criterion: Some(name.into()), ..check };
    let checks = checks.into_iter().map(named).collect();
    noted(checks, json!({"type": "satisfy", "criteria": name}), negated)
}

/// Checks with what a case file would say in their place.
fn noted(checks: Vec<Check>, mut written: Value, negated: bool) -> Vec<Check> {
    if negated {
        written["negate"] = true.into();
    }
    let written = Arc::new(written);
    checks.into_iter().map(|check| Check { written: Some(written.clone()), ..check }).collect()
}

pub(super) fn test_error(message: String) -> Failure {
    Failure::new(FailureKind::TestError, message)
}
