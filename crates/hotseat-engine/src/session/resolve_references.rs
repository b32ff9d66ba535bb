//! Resolves names (criteria, judges, topics) in assertions made at run time. An unresolved name is a test
//! error, even for soft checks.

use hotseat_document::{Diagnostic, Diagnostics, SourceSpan};
use hotseat_trace::{AttemptFailure, CallVisibility, FailureKind, UnseenCalls};

use super::recorded_conversation::SessionCounterpart;
use crate::cases::{CaseTopics, CaseTurn, ListedTools, SHOW_CALLS, hidden_calls};
use crate::session::{EndedCaseError, Session};
use hotseat_checks::{Check, CheckFunction, JudgeSettings};
use hotseat_targets::message::media_parts;

const UNSEEN_CALLS: &str = "the agent's tool calls are not visible";
const UNUSED_SERVICES: &str = "the agent used no MCP server and no model of the test";

/// Says why the tool calls of the agent are not visible, with advice.
pub fn unseen_calls_reason(unseen: UnseenCalls<'_>) -> String {
    let advice = unseen_calls_advice(unseen);
    match unseen {
        UnseenCalls::Hidden => format!("{UNSEEN_CALLS}: {advice}"),
        UnseenCalls::UnusedServices => format!("{UNSEEN_CALLS}: {UNUSED_SERVICES}; {advice}"),
        UnseenCalls::UnreadableReply(problem) => format!("{UNSEEN_CALLS}: {problem}; {advice}"),
    }
}

fn unseen_calls_advice(unseen: UnseenCalls<'_>) -> &'static str {
    match unseen {
        UnseenCalls::Hidden => SHOW_CALLS,
        UnseenCalls::UnusedServices => "pass `${MCP.NAME.url}` or `${MODELS.NAME.url}` to the agent",
        UnseenCalls::UnreadableReply(_) => {
            "let the agent wait for all replies, and use a provider that follows its protocol"
        }
    }
}

impl Session<'_> {
    /// Tools that the MCP servers of the test have listed so far.
    pub(super) fn listed_tools(&self) -> ListedTools {
        match &self.counterpart {
            SessionCounterpart::Agent(agent) => agent.listed_tools(),
            SessionCounterpart::Recorded(_) => ListedTools::new(),
        }
    }

    /// Resolves the references of checks and their judges. Returns the problems found, except unknown topics.
    pub(super) fn resolve_references<'c>(
        &mut self,
        checks: impl Iterator<Item = &'c mut Check>,
    ) -> Diagnostics {
        let vocabulary = self.vocabulary.clone();
        let mut diagnostics = Diagnostics::new();
        for check in checks {
            match vocabulary.resolve(check) {
                Err(wrong) => diagnostics.push(wrong),
                Ok(()) if check.is_timing() && !self.counterpart.has_timestamps() => {
                    diagnostics.push(missing_times(&check.place));
                }
                Ok(()) if check.reads_calls() && self.capabilities().calls == CallVisibility::Hidden => {
                    diagnostics.push(hidden_calls(&check.place));
                }
                Ok(()) => {
                    diagnostics.extend(self.case.unknown_names(std::iter::once(&*check)));
                    if self.capabilities().calls == CallVisibility::Services {
                        diagnostics.extend(self.case.unseen_tools(check, &self.listed_tools()));
                    }
                    diagnostics.extend(self.require_judge(check).err());
                    diagnostics.extend(self.require_function(check).err());
                }
            }
        }
        diagnostics
    }

    /// Returns the problem of a check about tool calls if nothing has shown the agent's calls so far.
    pub(super) fn unseen_calls(&self, check: &Check) -> Option<Diagnostic> {
        if !check.reads_calls() {
            return None;
        }
        let unseen = self.recorder.conversation().unseen_calls()?;
        let why = match unseen {
            UnseenCalls::Hidden => return Some(hidden_calls(&check.place)),
            UnseenCalls::UnusedServices => UNUSED_SERVICES,
            UnseenCalls::UnreadableReply(problem) => problem,
        };
        let problem = Diagnostic::new(format!("{UNSEEN_CALLS}: {why}"));
        Some(problem.help(unseen_calls_advice(unseen)).at(check.place.clone()))
    }

    /// Returns the problem of a check that cannot be decided now, because nothing has shown the agent's calls so far. A check that
    /// holds without calls can be: if the agent uses a service later, it had called nothing before.
    pub(super) fn undecidable_calls(&mut self, check: &Check) -> Option<Diagnostic> {
        let problem = self.unseen_calls(check)?;
        if self.conversation().unseen_calls() == Some(UnseenCalls::UnusedServices)
            && check.passes_without_calls()
        {
            self.assumed_no_calls.get_or_insert(problem);
            return None;
        }
        Some(problem)
    }

    /// Returns the problem of the first check that was decided as if there were no calls, if nothing has shown calls since.
    pub(super) fn wrongly_assumed_no_calls(&mut self) -> Option<AttemptFailure> {
        self.conversation().unseen_calls()?;
        Some(test_error(self.assumed_no_calls.take()?.into()))
    }

    /// Returns the parts of a turn that the target does not support.
    pub(super) fn unsupported_parts(&self, turn: &CaseTurn) -> Diagnostics {
        let carries = self.capabilities();
        let mut diagnostics = Diagnostics::new();
        let mut cannot = |what: &str, place: &SourceSpan| {
            let message = format!("{what} cannot be sent: this kind of target does not support it");
            diagnostics.report(place.clone(), message);
        };
        if let Some(options) = turn.options.as_ref().filter(|_| !carries.options) {
            cannot("`options`", &options.place);
        }
        if let Some(media) = media_parts(&turn.content).next().filter(|_| !carries.attachments) {
            cannot("attachments", &media.place);
        }
        diagnostics
    }

    /// Returns the problems of checks that name undeclared topics.
    pub(super) fn unknown_topics<'c>(&self, checks: impl Iterator<Item = &'c Check>) -> Diagnostics {
        CaseTopics::unknown_topics(self.topics(), checks)
    }

    /// Ends the case as a test error if there are problems. Fails if there are problems.
    pub(super) fn fail_on(&mut self, diagnostics: Diagnostics) -> Result<(), EndedCaseError> {
        if diagnostics.is_empty() { Ok(()) } else { Err(self.fail(test_error(diagnostics))) }
    }

    /// Resolves the judge of a check. Fails if there is no such judge.
    fn require_judge(&mut self, check: &Check) -> Result<(), Diagnostic> {
        let Some(judged) = check.as_judged() else { return Ok(()) };
        self.add_judge(&judged.settings, &check.place);
        let found = self.evaluator.roles.judge(&judged.settings, &check.place);
        found.map(drop).map_err(|words| Diagnostic::new(words).at(check.place.clone()))
    }

    /// Makes sure that the script function of a check exists; the program has its own functions. Fails if there is no such
    /// function.
    fn require_function(&self, check: &Check) -> Result<(), Diagnostic> {
        match check.as_script().map(|scripted| &scripted.function) {
            Some(CheckFunction::Script(reference)) if reference.starts_with("scripts:") => {
                let found = self.evaluator.roles.function(reference, &check.place);
                found.map(drop).map_err(|words| Diagnostic::new(words.to_string()).at(check.place.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Adds the judge for these settings; `place` is their position in the source. An unknown judge is
    /// reported when it is asked.
    pub(super) fn add_judge(&mut self, judging: &JudgeSettings, place: &SourceSpan) {
        let partners = &mut self.evaluator.roles;
        let whom = judging.selector();
        let Some(finds) = partners.role_lookup.clone() else { return };
        if partners.judges.iter().all(|(known, _)| *known != whom) {
            let judge = finds.judge(&whom, place);
            partners.judges.push((whom, judge));
        }
    }
}

/// Returns the failure of an invalid test.
pub fn test_error(diagnostics: Diagnostics) -> AttemptFailure {
    let mut words = diagnostics.into_iter().map(describe_problem);
    let first = words.next().unwrap_or_default();
    AttemptFailure::new(FailureKind::TestError, first).with_detail(words.collect::<Vec<_>>().join("\n"))
}

/// Returns the problem of a time assertion in a conversation without times.
pub(super) fn missing_times(place: &SourceSpan) -> Diagnostic {
    let message = "the times of this conversation are unknown, so assertions about time cannot be evaluated";
    let help = "remove `timing`, or record the agent itself with `hotseat test --record`";
    Diagnostic::new(message).at(place.clone()).help(help)
}

fn describe_problem(wrong: Diagnostic) -> String {
    let Diagnostic { message, help, place, .. } = wrong;
    let words = match help {
        Some(help) => format!("{message}: {help}"),
        None => message,
    };
    match place {
        Some(place) => format!("{words} ({place})"),
        None => words,
    }
}
