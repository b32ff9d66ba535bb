//! A run, as far as it is compared with another one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// A run.
#[derive(Debug, Default)]
pub struct Run {
    /// What it is called for people: a file, or the id of a run.
    pub shown: String,
    /// When it began, as its report says.
    pub started_at: Option<String>,
    /// The agents that were tested.
    pub agent: Option<String>,
    /// The language models that these are said to speak with.
    pub connector: Option<String>,
    /// Whether it was ended from outside, or its report breaks off.
    pub cut_short: bool,
    /// Its cases, in their order.
    pub cases: Vec<Case>,
}

/// A case of a run.
#[derive(Debug, Default)]
pub struct Case {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The suite.
    pub file: String,
    /// What it came to in the run.
    pub came_to: CameTo,
    /// Stands for what the user says and what is told the agent; none in reports of older versions.
    pub asked: Option<String>,
    /// Stands for what is asserted.
    pub checked: Option<String>,
    /// Who judged something in it.
    pub judges: BTreeSet<String>,
    /// Attempts that say something about the agent, in their order. Of a case that was tried again only the first one: the
    /// others were made because that failed.
    pub attempts: Vec<Attempt>,
    /// How many attempts say nothing about the agent.
    pub invalid: usize,
    /// By which rule the results decided how many attempts were made; none where their number was fixed.
    pub stopping: Option<StoppingRule>,
}

/// A declared reliability: attempts are made until it is known whether it is kept.
#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize)]
pub struct StoppingRule {
    /// The rate that is declared.
    pub rate: f64,
    /// How sure the decision is.
    pub confidence: f64,
    /// How many attempts are made at most.
    pub max_runs: usize,
}

/// What a case or an attempt came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CameTo {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It was not run, or nobody answered the agent.
    #[default]
    Skipped,
}

/// An attempt at a case.
#[derive(Debug, Default)]
pub struct Attempt {
    /// Which one, from 1.
    pub number: usize,
    /// Whether it passed.
    pub passed: bool,
    /// Why it failed, in one line.
    pub error: Option<String>,
    /// What can be counted in it.
    pub figures: Figures,
    /// Checks that are only measured, by their words: how many were decided, and how many of these hold.
    pub soft: BTreeMap<String, (usize, usize)>,
    /// What was said and done. Only of attempts that may be shown.
    pub turns: Vec<Turn>,
}

/// What can be counted in an attempt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// How long the agent took in all turns together.
    pub seconds: f64,
    /// How many turns there were.
    pub turns: usize,
    /// How often each tool was called.
    pub tools: BTreeMap<String, usize>,
    /// How many tokens it took, where that is known.
    pub tokens: Option<f64>,
    /// What it cost, where that is known.
    pub cost: Option<f64>,
}

/// A turn.
#[derive(Debug, Default, PartialEq)]
pub struct Turn {
    /// What the user said.
    pub user: Option<String>,
    /// The tools that were called, in the order in which the calls began.
    pub calls: Vec<Call>,
    /// What the agent said in the end.
    pub answer: Option<String>,
    /// Why the turn was not held to its end.
    pub error: Option<String>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
}

impl Case {
    /// How many of its attempts passed.
    pub fn passed(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.passed).count()
    }

    /// What it is called for people.
    pub fn shown(&self) -> &str {
        if self.name.is_empty() { &self.id } else { &self.name }
    }
}
