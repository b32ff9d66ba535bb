//! Asks a judge about an answer that is not part of the conversation, for example a stored one that a program
//! has.

use std::sync::Arc;

use hotseat_trace::{AssistantMessage, TurnCompletion, TurnStart, UserMessage};
use tokio::time::Instant;

use crate::roles::{
    JudgeEvidence, JudgeQuestion, JudgeResponse, JudgeUsage, Judgement, RoleError, suggestions,
};
use crate::session::{CheckResult, EndedCaseError, JudgeOpinion, Session};
use hotseat_checks::Check;
use hotseat_targets::message::{ConversationMessage, MessageRole, joined_text};
use hotseat_targets::recorder::TraceRecorder;

/// An answer from outside the conversation.
#[derive(Debug, Clone)]
pub struct ExternalAnswer {
    /// The preceding messages, as far as known.
    pub history: Vec<ConversationMessage>,
    /// The answer to judge.
    pub answer: String,
}

impl Session<'_> {
    /// Asks a judge about an external answer and records the check. Returns the judgement, or the error of
    /// the judge. Fails if the case has ended, or ends by this check.
    pub async fn judge_external_answer(
        &mut self,
        check: Check,
        external: ExternalAnswer,
    ) -> Result<Result<Judgement, RoleError>, EndedCaseError> {
        self.ensure_open()?;
        self.ensure_check_capacity(1)?;
        let begun = Instant::now();
        if let Some(judged) = check.as_judged() {
            self.add_judge(&judged.settings, &check.place);
        }
        let (outcome, by, suggestions) = self.ask_judge(&check, external).await;
        self.paused += begun.elapsed();
        let checked = match &outcome {
            Err(error) => CheckResult::errored(&check, error.to_string()),
            Ok(judgement) => {
                let Judgement { passed, score, reasoning, words } = judgement.clone();
                let opinion = by.map(|by| JudgeOpinion { reasoning, score, suggestions, by });
                CheckResult { opinion, ..CheckResult::from_decision(&check, passed, words) }
            }
        };
        let first = self.checks.len();
        self.checks.push(checked);
        self.check_hard_failures(first)?;
        Ok(outcome)
    }

    async fn ask_judge(
        &mut self,
        check: &Check,
        mut external: ExternalAnswer,
    ) -> (Result<Judgement, RoleError>, Option<JudgeUsage>, Vec<String>) {
        let Some(judged) = check.as_judged() else {
            let error = RoleError::Failed("this check has no judge".to_string());
            return (Err(error), None, Vec::new());
        };
        let judge = match self.evaluator.roles.judge(&judged.settings, &check.place) {
            Ok(judge) => judge,
            Err(error) => return (Err(error), None, Vec::new()),
        };
        // The judged answer responds to the last user message.
        let question = external.history.pop_if(|last| last.role == MessageRole::User);
        let mut other = TraceRecorder::new(self.recorder.redactor().clone(), false);
        let turn_id: Arc<str> = "turn-1".into();
        other.emit(TurnStart::by_user(turn_id.clone(), "elsewhere".into(), "hotseat"));
        other.emit(UserMessage {
            turn_id: turn_id.clone(),
            message_id: "said-1".into(),
            content: question.map(|message| joined_text(&message.content)).unwrap_or_default(),
            ..UserMessage::default()
        });
        other.emit(AssistantMessage {
            turn_id: turn_id.clone(),
            message_id: "said-2".into(),
            content: external.answer.into(),
            ..AssistantMessage::default()
        });
        other.emit(TurnCompletion { turn_id, issues: None });
        let seen = JudgeEvidence {
            test_id: &self.case.id,
            session_id: &self.evaluator.session_id,
            opening: &external.history,
            turns: &other.conversation().turns,
            first_judged: 1,
        };
        let JudgeResponse { outcome, exchanges, usage: by } =
            judge.judge(JudgeQuestion { criterion: &judged.criterion, evidence: seen }).await;
        let suggestions = suggestions(&exchanges);
        for exchange in exchanges {
            self.record_exchange(exchange);
        }
        (outcome, Some(by), suggestions)
    }
}
