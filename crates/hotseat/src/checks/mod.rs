//! Checks: assertions as data. A check is read once, describes itself, and decides over a scope of a trace.
//!
//! Checks are pure: they read what was recorded and contact nobody, so a stored conversation can be
//! checked again and gets the same verdict.

mod after;
mod all_of;
mod answer;
mod arguments_never;
mod beside_calls;
mod budget;
mod call_forbidden;
mod calls;
mod compared;
mod condition;
mod contains;
mod count;
mod duration;
mod equality;
mod equals;
mod idle;
mod javascript;
mod json_answer;
mod json_path;
mod json_schema;
mod judged;
mod named;
mod native;
mod pattern;
mod reference;
mod regex;
mod result_never;
mod said;
mod scripted;
mod text;
mod tool_called;
mod tool_result;
mod tool_sequence;
mod topic;
mod value;
mod value_type;

use std::sync::Arc;

use hotseat_trace::{CheckVerdict, Scope};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use after::After;
pub use all_of::AllOf;
pub use answer::{answer, shown};
pub use arguments_never::ArgumentsNever;
pub use beside_calls::NoTextBesideCalls;
pub use budget::Budget;
pub use call_forbidden::CallForbidden;
pub use calls::{ArgumentPatterns, CallFilter};
pub use compared::Compared;
pub use condition::{Condition, Relation};
pub use contains::Contains;
pub use count::{Count, ToolCount};
pub use duration::MaxDuration;
pub use equality::equal;
pub use equals::Equals;
pub use idle::{Idle, MaxIdle};
pub use javascript::from_javascript;
pub use json_answer::{AnswerContent, JsonPlace, find_json, read_json};
pub use json_path::{JsonPath, Path};
pub use json_schema::{JsonSchema, Schema};
pub use judged::{
    Claims, Criterion, EvidenceLimit, EvidenceOverflow, Example, Goal, Grounded, Intent, Judged, Judging,
    Matter, Open, Quality, Whom,
};
pub use named::Named;
pub use native::Native;
pub use pattern::{Pattern, escape};
pub use reference::Reference;
pub use regex::{Fitting, Regex};
pub use result_never::ResultNever;
pub use said::TurnsRead;
pub use scripted::{Given, Scripted};
pub use text::{Text, TextMatch};
pub use tool_called::{ArgumentMatch, ToolCalled};
pub use tool_result::{Expected, ToolResult};
pub use tool_sequence::{ExpectedCall, SequenceMatch, ToolSequence};
pub use topic::{HistoryOrder, InTopic, ReachedTopic, TopicHistory};
pub use value::{ListIs, NumberIs, ValueOf};
pub use value_type::{Type, ValueType};

use hotseat_document::Place;

/// One assertion and where it was written.
#[derive(Debug, Clone)]
pub struct Check {
    /// What is asserted.
    pub kind: CheckKind,
    /// Where it was written.
    pub place: Place,
    /// Where a test calls what has asserted it, if that is somewhere else.
    pub called_at: Option<Place>,
    /// Whether it must not hold. What cannot be judged holds neither way.
    pub negated: bool,
    /// Whether it decides, or is only measured.
    pub strength: Strength,
    /// What people want to read when it does not hold.
    pub message: Option<String>,
    /// The assertion as it was written, where it is one of its own.
    pub written: Option<Arc<Value>>,
    /// The criterion that it decides, where it decides one: its name, or what it says.
    pub criterion: Option<Arc<str>>,
}

/// Whether a check decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// It decides.
    Hard,
    /// It is only measured.
    Soft,
}

/// What can be asserted.
#[derive(Debug, Clone)]
pub enum CheckKind {
    /// How often a tool is called.
    ToolCount(ToolCount),
    /// No result of a tool fits a pattern.
    ResultNever(ResultNever),
    /// No arguments of a tool fit a pattern.
    ArgumentsNever(ArgumentsNever),
    /// A tool is called only after another.
    After(After),
    /// A call like this is never made.
    CallForbidden(CallForbidden),
    /// It does not take longer than this.
    MaxDuration(MaxDuration),
    /// Between, before or after tool calls nothing is idle for longer than this.
    MaxIdle(MaxIdle),
    /// It does not spend more than this.
    Budget(Budget),
    /// The agent's text fits a pattern, or does not.
    Text(Text),
    /// The agent says nothing in messages that call tools.
    NoTextBesideCalls(NoTextBesideCalls),
    /// The agent says a text, or does not.
    Contains(Contains),
    /// The agent's answer is this.
    Equals(Equals),
    /// What the agent says fits a pattern.
    Regex(Regex),
    /// A value inside the answer is this.
    JsonPath(JsonPath),
    /// The answer is of a type.
    ValueType(ValueType),
    /// The answer fits a JSON Schema.
    JsonSchema(JsonSchema),
    /// A tool is called.
    ToolCalled(ToolCalled),
    /// A tool returns something.
    ToolResult(ToolResult),
    /// The tool calls as a whole.
    ToolSequence(ToolSequence),
    /// The conversation is in a topic.
    InTopic(InTopic),
    /// The conversation has been in a topic.
    ReachedTopic(ReachedTopic),
    /// The topics that the conversation has been in.
    TopicHistory(TopicHistory),
    /// A number or a list of the conversation is this.
    ValueOf(ValueOf),
    /// Another agent judges.
    Judged(Judged),
    /// A function of the program that the test is decides.
    Native(Native),
    /// The test itself has compared two values.
    Compared(Compared),
    /// A function of a script judges.
    Scripted(Scripted),
    /// Several assertions are one criterion.
    AllOf(AllOf),
    /// A criterion, by its name.
    Named(Named),
}

impl CheckKind {
    fn describe(&self) -> String {
        match self {
            CheckKind::ToolCount(check) => check.describe(),
            CheckKind::ResultNever(check) => check.describe(),
            CheckKind::ArgumentsNever(check) => check.describe(),
            CheckKind::After(check) => check.describe(),
            CheckKind::CallForbidden(check) => check.describe(),
            CheckKind::MaxDuration(check) => check.describe(),
            CheckKind::MaxIdle(check) => check.describe(),
            CheckKind::Budget(check) => check.describe(),
            CheckKind::Text(check) => check.describe(),
            CheckKind::NoTextBesideCalls(check) => check.describe(),
            CheckKind::Contains(check) => check.describe(),
            CheckKind::Equals(check) => check.describe(),
            CheckKind::Regex(check) => check.describe(),
            CheckKind::JsonPath(check) => check.describe(),
            CheckKind::ValueType(check) => check.describe(),
            CheckKind::JsonSchema(check) => check.describe(),
            CheckKind::ToolCalled(check) => check.describe(),
            CheckKind::ToolResult(check) => check.describe(),
            CheckKind::ToolSequence(check) => check.describe(),
            CheckKind::InTopic(check) => check.describe(),
            CheckKind::ReachedTopic(check) => check.describe(),
            CheckKind::TopicHistory(check) => check.describe(),
            CheckKind::ValueOf(check) => check.describe(),
            CheckKind::Judged(check) => check.describe(),
            CheckKind::Native(check) => check.describe(),
            CheckKind::Compared(check) => check.describe(),
            CheckKind::Scripted(check) => check.describe(),
            CheckKind::AllOf(check) => check.describe(),
            CheckKind::Named(check) => check.describe(),
        }
    }

    fn decide(&self, scope: Scope<'_>) -> Decided {
        match self {
            CheckKind::ToolCount(check) => check.decide(scope),
            CheckKind::ResultNever(check) => check.decide(scope),
            CheckKind::ArgumentsNever(check) => check.decide(scope),
            CheckKind::After(check) => check.decide(scope),
            CheckKind::CallForbidden(check) => check.decide(scope),
            CheckKind::MaxDuration(check) => check.decide(scope),
            CheckKind::MaxIdle(check) => check.decide(scope),
            CheckKind::Budget(check) => check.decide(scope),
            CheckKind::Text(check) => check.decide(scope),
            CheckKind::NoTextBesideCalls(check) => check.decide(scope),
            CheckKind::Contains(check) => check.decide(scope),
            CheckKind::Equals(check) => check.decide(scope),
            CheckKind::Regex(check) => check.decide(scope),
            CheckKind::JsonPath(check) => check.decide(scope),
            CheckKind::ValueType(check) => check.decide(scope),
            CheckKind::JsonSchema(check) => check.decide(scope),
            CheckKind::ToolCalled(check) => check.decide(scope),
            CheckKind::ToolResult(check) => check.decide(scope),
            CheckKind::ToolSequence(check) => check.decide(scope),
            CheckKind::InTopic(check) => check.decide(scope),
            CheckKind::ReachedTopic(check) => check.decide(scope),
            CheckKind::TopicHistory(check) => check.decide(scope),
            CheckKind::ValueOf(check) => check.decide(scope),
            CheckKind::Judged(_) => Judged::decide(),
            CheckKind::Native(check) => check.decide(scope),
            CheckKind::Compared(check) => check.decide(),
            CheckKind::Scripted(_) => Scripted::decide(),
            CheckKind::AllOf(check) => check.decide(scope),
            CheckKind::Named(check) => check.decide(),
        }
    }
}

impl Check {
    /// A check that decides and must hold.
    pub fn new(kind: CheckKind, place: Place) -> Self {
        Check {
            kind,
            place,
            called_at: None,
            negated: false,
            strength: Strength::Hard,
            message: None,
            written: None,
            criterion: None,
        }
    }

    /// Whether it decides.
    pub fn is_hard(&self) -> bool {
        self.strength == Strength::Hard
    }

    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        let words = self.kind.describe();
        if self.negated { format!("not: {words}") } else { words }
    }

    /// What a judge is asked, where one is.
    pub fn judged(&self) -> Option<&Judged> {
        match &self.kind {
            CheckKind::Judged(judged) => Some(judged),
            _ => None,
        }
    }

    /// What a function of a script is asked, where one is.
    pub fn scripted(&self) -> Option<&Scripted> {
        match &self.kind {
            CheckKind::Scripted(scripted) => Some(scripted),
            _ => None,
        }
    }

    /// Why the test itself could not compare what it was to compare, if so.
    pub fn not_compared(&self) -> Option<&str> {
        match &self.kind {
            CheckKind::Compared(Compared { holds: Err(words), .. }) => Some(words),
            _ => None,
        }
    }

    /// Whether it holds for a turn or a whole conversation. Of a check that a judge or a script decides nothing is known here.
    pub fn decide(&self, scope: Scope<'_>) -> CheckVerdict {
        self.verdict(self.kind.decide(scope))
    }

    /// What a function of the program has decided, where one does; and why it has decided nothing, if so.
    pub fn by_program(&self, scope: Scope<'_>) -> Option<(CheckVerdict, Option<String>)> {
        let CheckKind::Native(native) = &self.kind else { return None };
        let found = native.ask(scope);
        let error = found.as_ref().err().cloned();
        Some((self.verdict(Decided::by(found)), error))
    }

    fn verdict(&self, Decided { outcome, actual }: Decided) -> CheckVerdict {
        let passed = match outcome {
            Outcome::Holds => !self.negated,
            Outcome::Fails => self.negated,
            Outcome::NothingToJudge => false,
        };
        CheckVerdict { passed, expected: self.describe(), actual }
    }

    /// The same of a visit of a topic, all of whose turns are read unless it says otherwise.
    #[must_use]
    pub fn of_visit(&self) -> Check {
        let mut check = self.clone();
        match &mut check.kind {
            CheckKind::Regex(Regex { turns, .. }) | CheckKind::Contains(Contains { turns, .. }) => {
                turns.get_or_insert(TurnsRead::All);
            }
            CheckKind::AllOf(all) => all.checks.iter_mut().for_each(|inner| *inner = inner.of_visit()),
            _ => {}
        }
        check
    }

    /// The topics that it names.
    pub fn topics(&self) -> Option<&[String]> {
        match &self.kind {
            CheckKind::InTopic(check) => Some(&check.names),
            CheckKind::ReachedTopic(check) => Some(std::slice::from_ref(&check.name)),
            CheckKind::TopicHistory(check) => Some(&check.names),
            CheckKind::ValueOf(check) => check.topics(),
            _ => None,
        }
    }

    /// Whether somebody has to be asked about it: a judge, or a function of a script.
    pub fn asks(&self) -> bool {
        matches!(self.kind, CheckKind::Judged(_) | CheckKind::Scripted(_) | CheckKind::Named(_))
    }

    /// Why it cannot be known whether it holds, although nobody has to be asked; none where it can.
    pub fn undecided(&self, scope: Scope<'_>) -> Option<String> {
        match &self.kind {
            CheckKind::Budget(budget) => budget.undecided(scope),
            CheckKind::ToolCalled(called) => called.undecided(scope),
            CheckKind::AllOf(all) => all.undecided(scope),
            _ => None,
        }
    }

    /// Whether it judges how long things take.
    pub fn is_about_time(&self) -> bool {
        match &self.kind {
            CheckKind::MaxDuration(_) | CheckKind::MaxIdle(_) => true,
            CheckKind::AllOf(all) => all.checks.iter().any(Check::is_about_time),
            _ => false,
        }
    }

    /// The limit on the time that a turn or case may take, if this check sets one.
    pub fn time_limit(&self) -> Option<std::time::Duration> {
        match &self.kind {
            CheckKind::MaxDuration(check) if self.is_hard() && !self.negated => Some(check.limit),
            _ => None,
        }
    }
}

/// What a check found.
struct Decided {
    outcome: Outcome,
    actual: String,
}

/// Whether what is asserted is so.
enum Outcome {
    Holds,
    Fails,
    /// What the check is about is not there, so that it could be said neither of it nor of its contrary.
    NothingToJudge,
}

impl Decided {
    fn of(holds: bool, actual: String) -> Self {
        Decided { outcome: if holds { Outcome::Holds } else { Outcome::Fails }, actual }
    }

    fn nothing(actual: String) -> Self {
        Decided { outcome: Outcome::NothingToJudge, actual }
    }

    /// Calls whose result decides and never came: nothing can be said, neither for what is asserted nor against it.
    fn unanswered(calls: &[String]) -> Self {
        Decided::nothing(format!("not known, for the agent gave no result: {}", listed(calls)))
    }

    /// What a function has found, or why it has decided nothing.
    fn by(found: Result<(bool, String), String>) -> Self {
        match found {
            Ok((holds, actual)) => Decided::of(holds, actual),
            Err(why) => Decided::nothing(why),
        }
    }
}

/// A list in words, each entry on a line of its own where there are several.
fn listed(entries: &[String]) -> String {
    match entries {
        [] => "none".to_string(),
        [one] => one.clone(),
        several => several.iter().map(|entry| format!("\n- {entry}")).collect(),
    }
}
