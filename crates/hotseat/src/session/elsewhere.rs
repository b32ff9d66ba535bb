//! A judge is asked about something that was not said in the conversation: a program has it from somewhere else.

use std::sync::Arc;

use hotseat_trace::{AssistantMessage, CheckVerdict, Origin, TurnCompleted, TurnStarted, UserMessage};
use tokio::time::Instant;

use super::{Checked, Ended, Message, Opinion, Recorder, Role, Session, words};
use crate::checks::Check;
use crate::roles::{Asked, By, JudgeQuestion, Judgement, Seen, suggestions};

/// Something that was said elsewhere.
#[derive(Debug, Clone)]
pub struct SaidElsewhere {
    /// What went before it, as far as that is known.
    pub before: Vec<Message>,
    /// What is judged.
    pub answer: String,
}

impl Session<'_> {
    /// Has a judge decide about something that was said elsewhere, and records it. Returned is what the judge has found,
    /// or why nothing was found.
    ///
    /// # Errors
    /// When the case has ended, or ends by it.
    pub async fn judge_elsewhere(
        &mut self,
        check: Check,
        said: SaidElsewhere,
    ) -> Result<Result<Judgement, String>, Ended> {
        self.goes_on()?;
        self.has_room_for(1)?;
        let begun = Instant::now();
        if let Some(judged) = check.judged() {
            self.find_judge_as(&judged.judging, &check.place);
        }
        let (outcome, by, suggestions) = self.ask_about(&check, said).await;
        self.paused += begun.elapsed();
        let checked = match &outcome {
            Err(words) => Checked::undecided(check, words),
            Ok(judgement) => {
                let Judgement { reasoning, score, .. } = judgement.clone();
                let verdict = CheckVerdict {
                    passed: judgement.passed != check.negated,
                    expected: check.describe(),
                    actual: judgement.words.clone(),
                };
                Checked {
                    check,
                    turn: None,
                    topic: None,
                    is_final: false,
                    verdict,
                    error: None,
                    said: Vec::new(),
                    opinion: by.map(|by| Opinion { reasoning, score, suggestions, by }),
                }
            }
        };
        let first = self.checks.len();
        self.checks.push(checked);
        self.unless_failed(first)?;
        Ok(outcome)
    }

    async fn ask_about(
        &mut self,
        check: &Check,
        mut said: SaidElsewhere,
    ) -> (Result<Judgement, String>, Option<By>, Vec<String>) {
        let Some(judged) = check.judged() else {
            return (Err("nobody is asked about this".to_string()), None, Vec::new());
        };
        let judge = match self.deciding.partners.judge(&judged.judging) {
            Ok(judge) => judge,
            Err(words) => return (Err(words), None, Vec::new()),
        };
        // What the user said last is answered by what is judged.
        let asked = said.before.pop_if(|last| last.role == Role::User);
        let mut other = Recorder::new(self.recorder.redactor().clone(), false);
        let turn_id: Arc<str> = "turn-1".into();
        other.emit(TurnStarted {
            turn_id: turn_id.clone(),
            conversation_id: "elsewhere".into(),
            caller_id: "hotseat".into(),
            caller_type: "user".into(),
        });
        other.emit(UserMessage {
            turn_id: turn_id.clone(),
            message_id: "said-1".into(),
            content: asked.map(|message| words(&message.content)).unwrap_or_default(),
            attachments: Vec::new(),
            options: None,
        });
        other.emit(AssistantMessage {
            turn_id: turn_id.clone(),
            message_id: "said-2".into(),
            content: said.answer,
            has_tool_use: None,
            started_us: None,
            origin: Origin::Stream,
            subagent: None,
        });
        other.emit(TurnCompleted { turn_id });
        let seen = Seen {
            test_id: &self.case.id,
            session_id: &self.deciding.session_id,
            opening: &said.before,
            turns: &other.conversation().turns,
            first_judged: 1,
        };
        let Asked { outcome, exchanges, by } =
            judge.judge(JudgeQuestion { matter: &judged.matter, seen }).await;
        let suggestions = suggestions(&exchanges);
        for exchange in exchanges {
            self.keep(exchange);
        }
        (outcome, Some(by), suggestions)
    }
}
