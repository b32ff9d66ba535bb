//! Checks: assertions as data. A check is read once, describes itself, and decides over a scope of a trace.
//!
//! Checks are pure: they read what was recorded and contact nobody, so a stored conversation can be
//! checked again and gets the same verdict.

mod after;
mod arguments_never;
mod call_forbidden;
mod calls;
mod count;
mod duration;
mod idle;
mod pattern;
mod result_never;
mod text;

use hotseat_trace::{CheckVerdict, Scope};

pub use after::After;
pub use arguments_never::ArgumentsNever;
pub use call_forbidden::CallForbidden;
pub use calls::{ArgumentPatterns, CallFilter};
pub use count::{Count, ToolCount};
pub use duration::MaxDuration;
pub use idle::{Idle, MaxIdle};
pub use pattern::{Pattern, escape};
pub use result_never::ResultNever;
pub use text::{Text, TextMatch};

use hotseat_document::Place;

/// One assertion and where it was written.
#[derive(Debug, Clone)]
pub struct Check {
    /// What is asserted.
    pub kind: CheckKind,
    /// Where it was written.
    pub place: Place,
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
    /// The agent's text fits a pattern, or does not.
    Text(Text),
}

impl Check {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        match &self.kind {
            CheckKind::ToolCount(check) => check.describe(),
            CheckKind::ResultNever(check) => check.describe(),
            CheckKind::ArgumentsNever(check) => check.describe(),
            CheckKind::After(check) => check.describe(),
            CheckKind::CallForbidden(check) => check.describe(),
            CheckKind::MaxDuration(check) => check.describe(),
            CheckKind::MaxIdle(check) => check.describe(),
            CheckKind::Text(check) => check.describe(),
        }
    }

    /// Whether it holds for a turn or a whole conversation.
    pub fn decide(&self, scope: Scope<'_>) -> CheckVerdict {
        let decided = match &self.kind {
            CheckKind::ToolCount(check) => check.decide(scope),
            CheckKind::ResultNever(check) => check.decide(scope),
            CheckKind::ArgumentsNever(check) => check.decide(scope),
            CheckKind::After(check) => check.decide(scope),
            CheckKind::CallForbidden(check) => check.decide(scope),
            CheckKind::MaxDuration(check) => check.decide(scope),
            CheckKind::MaxIdle(check) => check.decide(scope),
            CheckKind::Text(check) => check.decide(scope),
        };
        CheckVerdict { passed: decided.passed, expected: self.describe(), actual: decided.actual }
    }

    /// The limit on the time that a turn or case may take, if this check sets one.
    pub fn time_limit(&self) -> Option<std::time::Duration> {
        match &self.kind {
            CheckKind::MaxDuration(check) => Some(check.limit),
            _ => None,
        }
    }
}

/// What a check found.
struct Decided {
    passed: bool,
    actual: String,
}

/// A list in words, each entry on a line of its own where there are several.
fn listed(entries: &[String]) -> String {
    match entries {
        [] => "none".to_string(),
        [one] => one.clone(),
        several => several.iter().map(|entry| format!("\n- {entry}")).collect(),
    }
}
