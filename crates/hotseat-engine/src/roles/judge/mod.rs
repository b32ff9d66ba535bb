//! Judges: their questions, the parsing of their answers, and voting. Documents of the agent protocol call a
//! judge a validator.
//!
//! A failed judgement is an error and never a verdict: malformed answers are requested again, and after
//! several attempts the judge has failed.

mod answer;
mod claims;
mod criterion;
mod evidence;
mod free_form;
mod goal;
mod grounding;
mod intent;
mod prompt;
mod topic;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hotseat_trace::ConversationTurn;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

pub use topic::{TopicCandidate, TopicClassification, TopicConfidence, TopicQuestion};

pub(super) use self::evidence::escape_unsafe;
use self::evidence::{EvidenceBudget, EvidenceScope, EvidenceText, EvidenceTooLong};
use self::prompt::JudgePrompt;
use super::dialogue::with_tools;
use super::recorded_answers::{NOT_ASKED, RecordedAnswers, RecordedQuestion};
use super::{
    MAX_RETRY_PAUSE, RetryAdvice, RoleClient, RoleError, RoleExchange, RoleQuestion, RoleReply, role_options,
};
use hotseat_checks::{JudgeCriterion, JudgeSettings};
use hotseat_targets::message::ConversationMessage;
use hotseat_targets::recorder::reported_tokens;

/// Default number of retries.
const DEFAULT_JUDGE_RETRIES: usize = 2;
/// Default size limit of evidence, in characters.
const DEFAULT_EVIDENCE_CHARS: usize = 1_000_000;

/// A judge with its settings.
#[derive(Debug, Clone)]
pub struct JudgeRole {
    role: RoleClient,
    retries: usize,
    votes: usize,
    evidence: EvidenceBudget,
    /// Recorded answers, during a recheck.
    answers: Option<Arc<RecordedAnswers>>,
}

/// The part of a conversation shown to a judge, with the judged turns.
#[derive(Debug, Clone, Copy)]
pub struct JudgeEvidence<'a> {
    /// Id of the case.
    pub test_id: &'a str,
    /// Id of the conversation with the agent.
    pub session_id: &'a str,
    /// Messages before the first turn.
    pub opening: &'a [ConversationMessage],
    /// Turns up to the last judged one; not empty.
    pub turns: &'a [ConversationTurn],
    /// First judged turn, from 1.
    pub first_judged: usize,
}

/// A question to a judge.
#[derive(Debug, Clone, Copy)]
pub struct JudgeQuestion<'a> {
    /// The criterion.
    pub criterion: &'a JudgeCriterion,
    /// The evidence.
    pub evidence: JudgeEvidence<'a>,
}

/// Result of a judgement.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// True if the criterion is satisfied.
    pub passed: bool,
    /// Score, if the judge gives one.
    pub score: Option<f64>,
    /// Reasoning of the judge.
    pub reasoning: Option<String>,
    /// Description of the result.
    pub words: String,
}

/// Response of a judge.
#[derive(Debug)]
pub struct JudgeResponse<T> {
    /// The result, or the error of the judge.
    pub outcome: Result<T, RoleError>,
    /// The judge and its usage.
    pub usage: JudgeUsage,
    /// All exchanges with the judge, for the trace.
    pub exchanges: Vec<RoleExchange>,
}

/// The judge that was asked, and its usage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JudgeUsage {
    /// The judge as the case refers to it.
    pub judge: Arc<str>,
    /// The model that answered, if known.
    pub model: Option<String>,
    /// Name and version of the prompt. `None` for free-form judges.
    pub prompt: Option<String>,
    /// Number of votes for, against, and invalid, if there are several votes.
    pub votes: Option<[usize; 3]>,
    /// Number of calls.
    pub calls: usize,
    /// Input tokens of all calls. `None` if a call does not report them.
    pub input_tokens: Option<u64>,
    /// Output tokens of all calls. `None` if a call does not report them.
    pub output_tokens: Option<u64>,
    /// Duration.
    pub took: Duration,
    /// Descriptions of the parts of the conversation omitted from the evidence.
    pub left_out: Vec<String>,
}

/// Parses the judgement of a criterion. For fuzzing only; not part of the public API. Fails if the answer is
/// invalid.
#[doc(hidden)]
pub fn read_judgement(text: &str) -> Result<Value, RoleError> {
    answer::parse_answer(text, &prompt::CRITERION.schema)
}

/// A question prepared for a judge.
struct PreparedQuestion {
    /// Prompt and answer schema. `None` for free-form judges.
    prompt: Option<(&'static JudgePrompt, Value)>,
    /// System prompt.
    system: &'static str,
    message: Value,
    options: Map<String, Value>,
    turn: usize,
    omissions: Vec<String>,
}

/// Result of one vote.
struct JudgeVote<T> {
    result: Result<T, RoleError>,
    exchanges: Vec<RoleExchange>,
}

impl<T> JudgeVote<T> {
    fn duration(&self) -> Duration {
        self.exchanges.iter().map(|exchange| exchange.said.duration).sum()
    }
}

/// Result of looking up a recorded answer.
enum AnswerLookup {
    Answered(RecordedQuestion),
    /// No recorded answer, and the judge must not be asked.
    Missing,
    /// No applicable answer: ask the judge.
    Ask,
}

/// Parses the recorded answers of a vote again.
fn replay_vote<T>(
    asking: &RecordedQuestion,
    vote: usize,
    read: impl Fn(&str) -> Result<(T, Value), RoleError>,
) -> JudgeVote<T> {
    let mut found = Err(not_asked());
    let mut exchanges = Vec::new();
    for (number, answered) in asking.attempts_of_vote(vote).enumerate() {
        let of_use = match &answered.error {
            Some(words) => Err(RoleError::Failed(words.clone())),
            None => read(&answered.answer),
        };
        let finding = of_use.as_ref().ok().map(|(_, finding)| finding.clone());
        let error = of_use.as_ref().err().map(ToString::to_string);
        exchanges.push(RoleExchange { finding, error, ..RoleExchange::from_record("judge", answered) });
        found = of_use.map(|(found, _)| found).map_err(|error| with_attempt_count(error, number + 1));
    }
    JudgeVote { result: found, exchanges }
}

/// Error of a judge that must not be asked.
fn not_asked() -> RoleError {
    RoleError::Failed(NOT_ASKED.to_string())
}

/// Adds the number of attempts to an error.
fn with_attempt_count(error: RoleError, attempts: usize) -> RoleError {
    match attempts {
        1 => error,
        attempts => RoleError::Repeated { attempts, last: Box::new(error) },
    }
}

impl JudgeRole {
    /// Creates a judge from a role.
    pub fn new(role: RoleClient, judging: &JudgeSettings) -> JudgeRole {
        let role = match judging.timeout {
            Some(patience) => role.with_timeout(patience),
            None => role,
        };
        JudgeRole {
            role,
            retries: judging.retries.unwrap_or(DEFAULT_JUDGE_RETRIES),
            votes: judging.votes.unwrap_or(1).max(1),
            evidence: EvidenceBudget {
                max_characters: judging.evidence.max_characters.unwrap_or(DEFAULT_EVIDENCE_CHARS),
                on_overflow: judging.evidence.on_overflow.unwrap_or_default(),
            },
            answers: None,
        }
    }

    /// Sets recorded answers to reuse.
    #[must_use]
    pub fn with_recorded_answers(self, answers: Option<Arc<RecordedAnswers>>) -> JudgeRole {
        JudgeRole { answers, ..self }
    }

    /// Asks for a judgement.
    pub async fn judge(&self, question: JudgeQuestion<'_>) -> JudgeResponse<Judgement> {
        let JudgeQuestion { criterion: matter, evidence: seen } = question;
        let prepare = |prompt, instructions: String| self.prepare_question(prompt, &instructions, &[], seen);
        let put = match matter {
            JudgeCriterion::FreeForm(open) => free_form::prepare_question(open, seen, self.evidence),
            JudgeCriterion::Criterion(criterion) => {
                prepare(&prompt::CRITERION, criterion::instructions(criterion))
            }
            JudgeCriterion::Grounded(grounded) => {
                let (instructions, tools) = (grounding::instructions(grounded), &grounded.from_tools);
                let put = self.prepare_question(&prompt::GROUNDING, &instructions, tools, seen);
                put.map(|put| put.with_claim_kinds(&grounded.types))
            }
            JudgeCriterion::Claims(claims) => prepare(&prompt::CLAIMS, claims::instructions(claims))
                .map(|put| put.with_claim_kinds(&claims.forbid)),
            JudgeCriterion::Intent(intent) => prepare(&prompt::INTENT, intent::instructions(intent)),
            JudgeCriterion::Goal(goal) => prepare(&prompt::GOAL, goal::instructions(goal)),
        };
        let put = match put {
            Ok(put) => self.with_connector(put),
            Err(words) => return self.error_response(&words),
        };
        let read = |text: &str| {
            let Some((_, schema)) = &put.prompt else {
                return free_form::parse_judgement(self.role.label(), text);
            };
            let answer = answer::parse_answer(text, schema)?;
            let judgement = match matter {
                JudgeCriterion::FreeForm(_) => return free_form::parse_judgement(self.role.label(), text),
                JudgeCriterion::Criterion(_) => criterion::parse_judgement(&answer),
                JudgeCriterion::Grounded(grounded) => grounding::parse_judgement(grounded, seen, &answer)?,
                JudgeCriterion::Claims(claims) => claims::parse_judgement(claims, &answer)?,
                JudgeCriterion::Intent(_) => intent::parse_judgement(&answer)?,
                JudgeCriterion::Goal(_) => goal::parse_judgement(&answer),
            };
            Ok((judgement, answer))
        };
        let begun = Instant::now();
        let votes = match self.recorded_answer(&put, self.votes) {
            AnswerLookup::Answered(asking) => {
                (1..=self.votes).map(|vote| replay_vote(&asking, vote, read)).collect()
            }
            AnswerLookup::Missing => {
                return JudgeResponse {
                    outcome: Err(not_asked()),
                    usage: self.usage(&put, &[]),
                    exchanges: Vec::new(),
                };
            }
            AnswerLookup::Ask => {
                join_all((1..=self.votes).map(|vote| self.cast_vote(&put, vote, read))).await
            }
        };
        let longest = votes.iter().map(JudgeVote::duration).max().unwrap_or_default();
        let (found, exchanges): (Vec<_>, Vec<_>) =
            votes.into_iter().map(|vote| (vote.result, vote.exchanges)).unzip();
        let count = (self.votes > 1).then(|| count_votes(&found));
        let exchanges: Vec<RoleExchange> = exchanges.into_iter().flatten().collect();
        // The other votes are those of the recording: they say nothing about this question.
        let missing =
            found.iter().filter_map(|vote| vote.as_ref().err()).find(|error| error.is_not_recorded());
        let missing = missing.cloned();
        let took = if self.answers.is_some() { longest } else { begun.elapsed() };
        let by = JudgeUsage { votes: count, took, ..self.usage(&put, &exchanges) };
        JudgeResponse { outcome: missing.map_or_else(|| majority(found), Err), usage: by, exchanges }
    }

    /// Asks for the topic of a turn. The judge is not asked if there is only one candidate. An unknown topic
    /// keeps the current one; an invalid answer is an error of the judge.
    pub async fn classify(&self, question: TopicQuestion<'_>) -> JudgeResponse<TopicClassification> {
        if let Some(only) = question.only_candidate() {
            let by = JudgeUsage { judge: self.role.label().clone(), ..JudgeUsage::default() };
            return JudgeResponse { outcome: Ok(only), usage: by, exchanges: Vec::new() };
        }
        let put = match self.prepare_question(
            &prompt::TOPIC,
            &topic::instructions(question),
            &[],
            question.evidence,
        ) {
            Ok(put) => self.with_connector(put),
            Err(words) => return self.error_response(&words),
        };
        let read = |text: &str| {
            let answer = answer::parse_answer(text, &prompt::TOPIC.schema)?;
            let mut found = topic::parse_classification(question, &answer);
            if !put.omissions.is_empty() {
                found.reasoning = format!("{} (not shown: {})", found.reasoning, put.omissions.join("; "));
            }
            Ok((found, answer))
        };
        let begun = Instant::now();
        let JudgeVote { result: found, exchanges } = match self.recorded_answer(&put, 1) {
            AnswerLookup::Answered(asking) => replay_vote(&asking, 1, read),
            AnswerLookup::Missing => JudgeVote { result: Err(not_asked()), exchanges: Vec::new() },
            AnswerLookup::Ask => self.cast_vote(&put, 1, read).await,
        };
        let by = JudgeUsage { took: begun.elapsed(), ..self.usage(&put, &exchanges) };
        JudgeResponse { outcome: found, usage: by, exchanges }
    }

    /// Response for a judge that could not be asked.
    fn error_response<T>(&self, error: &EvidenceTooLong) -> JudgeResponse<T> {
        let none = Some(0);
        let by = JudgeUsage {
            judge: self.role.label().clone(),
            input_tokens: none,
            output_tokens: none,
            ..JudgeUsage::default()
        };
        let outcome = Err(RoleError::Failed(error.to_string()));
        JudgeResponse { outcome, usage: by, exchanges: Vec::new() }
    }

    /// Prepares a question with a built-in prompt. The evidence is placed between the instructions and the
    /// answer format. Fails if the conversation exceeds the evidence limit.
    fn prepare_question(
        &self,
        prompt: &'static JudgePrompt,
        told: &str,
        tools: &[String],
        seen: JudgeEvidence<'_>,
    ) -> Result<PreparedQuestion, EvidenceTooLong> {
        let JudgeEvidence { opening, turns, first_judged, .. } = seen;
        let evidence =
            EvidenceText::new(EvidenceScope { opening, turns, first_judged, tools }, self.evidence)?;
        let last = turns.last().map_or(0, |turn| turn.number);
        let judged = match first_judged {
            first if first >= last => format!("turn {last}"),
            first => format!("turns {first} to {last}"),
        };
        let message = format!(
            "Judged: {judged}\n\n{told}\n\n{}\n\nThe evidence ends here. Answer with one JSON object and nothing else:\n{}",
            evidence.text, prompt.shape
        );
        let mut metadata = Map::new();
        for (key, value) in [
            ("test_mode", "validator"),
            ("judgement", prompt.judgement),
            ("test_id", seen.test_id),
            ("session_id", seen.session_id),
        ] {
            metadata.insert(key.to_string(), json!(value));
        }
        // An agent has its own prompt, so the instructions go into the message.
        let message = match self.role.is_model() {
            true => message,
            false => format!("{}\n{message}", prompt.system),
        };
        Ok(PreparedQuestion {
            prompt: Some((prompt, prompt.schema.clone())),
            system: prompt.system,
            message: json!(message),
            options: role_options(&Map::new(), metadata),
            turn: last,
            omissions: evidence.omissions,
        })
    }

    /// Adds the connector of the settings, unless the options of the question have one.
    fn with_connector(&self, mut put: PreparedQuestion) -> PreparedQuestion {
        if let Some(connector) = &self.role.connector {
            put.options.entry("connector").or_insert_with(|| json!(connector));
        }
        put
    }

    /// Looks up a recorded answer to the same question.
    fn recorded_answer(&self, put: &PreparedQuestion, votes: usize) -> AnswerLookup {
        let Some(answers) = &self.answers else { return AnswerLookup::Ask };
        match answers.take_answer(self.role.label(), &put.to_trace_json(&put.to_role_question(1)), votes) {
            Some(asking) => AnswerLookup::Answered(asking),
            None if answers.may_ask() => AnswerLookup::Ask,
            None => AnswerLookup::Missing,
        }
    }

    /// Asks until the answer is valid, or the retries are used up.
    async fn cast_vote<T>(
        &self,
        put: &PreparedQuestion,
        vote: usize,
        read: impl Fn(&str) -> Result<(T, Value), RoleError>,
    ) -> JudgeVote<T> {
        let mut exchanges = Vec::new();
        let mut attempt = 1;
        loop {
            let question = put.to_role_question(attempt);
            let shown = put.to_trace_json(&question);
            let (said, found, again) = match self.role.try_ask(question, 0).await {
                Err((error, again)) => (RoleReply::default(), Err(error), again),
                Ok(said) => {
                    let found = said.ensure_complete().and_then(&read);
                    (said, found, RetryAdvice::Now)
                }
            };
            let (found, finding) = match found {
                Ok((found, finding)) => (Ok(found), Some(finding)),
                Err(error) => (Err(error), None),
            };
            exchanges.push(RoleExchange {
                role: "judge",
                agent: self.role.label().clone(),
                question: shown,
                said,
                finding,
                error: found.as_ref().err().map(ToString::to_string),
                vote_and_attempt: Some((vote, attempt)),
            });
            if found.is_ok() || again == RetryAdvice::Never || attempt > self.retries {
                return JudgeVote {
                    result: found.map_err(|error| with_attempt_count(error, attempt)),
                    exchanges,
                };
            }
            if let RetryAdvice::After(pause) = again {
                tokio::time::sleep(pause.min(MAX_RETRY_PAUSE)).await;
            }
            attempt += 1;
        }
    }

    fn usage(&self, put: &PreparedQuestion, exchanges: &[RoleExchange]) -> JudgeUsage {
        // If one call does not report its usage, the sum is unknown.
        let tokens = exchanges.iter().try_fold((0_u64, 0_u64), |(input, output), exchange| {
            let (asked, answered) = reported_tokens(exchange.said.usage.as_ref()?)?;
            Some((input.saturating_add(asked), output.saturating_add(answered)))
        });
        JudgeUsage {
            judge: self.role.label().clone(),
            model: exchanges.iter().rev().find_map(|exchange| exchange.said.model.clone()),
            prompt: put.prompt.as_ref().map(|(prompt, _)| prompt.name.to_string()),
            votes: None,
            calls: exchanges.len(),
            input_tokens: tokens.map(|(input, _)| input),
            output_tokens: tokens.map(|(_, output)| output),
            took: Duration::ZERO,
            left_out: put.omissions.clone(),
        }
    }
}

impl PreparedQuestion {
    /// Limits the kinds of claims in the answer to those in question.
    fn with_claim_kinds(mut self, kinds: &[String]) -> Self {
        if let Some((_, schema)) = &mut self.prompt {
            schema["properties"]["claims_found"]["items"]["properties"]["type"]["enum"] = json!(kinds);
        }
        self
    }

    /// The question for a given attempt. The error of an earlier answer is not repeated, since it may contain
    /// text of the agent.
    fn to_role_question(&self, attempt: usize) -> RoleQuestion {
        let again = "\n\nAn earlier answer could not be used: it was not one JSON object of just this form.";
        let message = match &self.message {
            Value::String(text) if attempt > 1 => json!(format!("{text}{again}")),
            message => message.clone(),
        };
        RoleQuestion {
            message,
            options: self.options.clone(),
            turn: self.turn,
            prompt: self.system.into(),
            format: self.prompt.as_ref().map(|(prompt, schema)| prompt.response_format(schema)),
            ..RoleQuestion::default()
        }
    }

    /// The question as recorded in the trace.
    fn to_trace_json(&self, question: &RoleQuestion) -> Value {
        let mut shown = match &self.prompt {
            None => question.message.clone(),
            Some((prompt, schema)) => json!({
                "judgement": prompt.judgement,
                "prompt": prompt.name,
                "system": prompt.system,
                "message": question.message,
                "schema": schema,
            }),
        };
        // A recorded answer holds for the same options only. The message has the metadata.
        let usual = role_options(&Map::new(), Map::new());
        let given = question
            .options
            .iter()
            .filter(|(key, value)| *key != "metadata" && usual.get(*key) != Some(*value));
        let given: Map<String, Value> = given.map(|(key, value)| (key.clone(), value.clone())).collect();
        if let (Value::Object(members), false) = (&mut shown, given.is_empty()) {
            members.insert("options".to_string(), Value::Object(given));
        }
        shown
    }
}

fn count_votes(votes: &[Result<Judgement, RoleError>]) -> [usize; 3] {
    let mut count = [0; 3];
    for vote in votes {
        count[match vote {
            Ok(Judgement { passed: true, .. }) => 0,
            Ok(Judgement { passed: false, .. }) => 1,
            Err(_) => 2,
        }] += 1;
    }
    count
}

/// Judgement of the majority. Invalid votes count towards the total.
fn majority(votes: Vec<Result<Judgement, RoleError>>) -> Result<Judgement, RoleError> {
    let no_votes = || RoleError::NoMajority("no judge was asked".to_string());
    let all = votes.len();
    if all == 1 {
        return votes.into_iter().next().unwrap_or_else(|| Err(no_votes()));
    }
    let [for_it, against, useless] = count_votes(&votes);
    let first_error = votes.iter().find_map(|vote| vote.as_ref().err());
    let words_of = |passed: bool| {
        let found = votes.iter().flatten().find(|judgement| judgement.passed == passed);
        found.map(|judgement| judgement.words.as_str()).unwrap_or_default()
    };
    let useless_words = || match first_error {
        Some(words) => format!("; {useless} invalid: {words}"),
        None => String::new(),
    };
    let passed = match () {
        () if 2 * for_it > all => true,
        () if 2 * against > all => false,
        () if useless == all => return Err(first_error.cloned().unwrap_or_else(no_votes)),
        () => {
            let what = if for_it == against { "the votes are tied" } else { "no majority of the votes" };
            let sides = [(for_it, true, "for"), (against, false, "against")];
            let sides = sides.iter().filter(|(count, ..)| *count > 0);
            let sides: Vec<String> = sides
                .map(|(count, passed, side)| format!("{count} {side} ({})", words_of(*passed)))
                .collect();
            let words = format!("{what}: {}{}", sides.join("; "), useless_words());
            return Err(RoleError::NoMajority(words));
        }
    };
    let (agree, disagree) = if passed { (for_it, against) } else { (against, for_it) };
    let telling = votes.iter().flatten().find(|judgement| judgement.passed == passed).cloned();
    let Some(telling) = telling else { return Err(no_votes()) };
    let dissent = match disagree {
        0 => String::new(),
        n => format!("; {n} of {all} otherwise: {}", words_of(!passed)),
    };
    let words = format!("{agree} of {all} votes: {}{dissent}{}", telling.words, useless_words());
    Ok(Judgement { words, ..telling })
}

/// The `reasoning` of an answer that matches its schema.
fn reasoning(answer: &Value) -> String {
    answer["reasoning"].as_str().unwrap_or_default().trim().to_string()
}

/// Creates a judgement from a boolean with reasoning.
fn boolean_judgement(passed: bool, [so, not_so]: [&str; 2], answer: &Value) -> Judgement {
    let reasoning = reasoning(answer);
    let words = format!("{}: {reasoning}", if passed { so } else { not_so });
    Judgement { passed, score: None, reasoning: Some(reasoning), words }
}

#[cfg(test)]
use self::prompt::CRITERION;

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(passed: bool) -> Result<Judgement, RoleError> {
        let words = if passed { "satisfied: kind" } else { "not satisfied: rude" };
        Ok(Judgement { passed, score: None, reasoning: Some("…".to_string()), words: words.to_string() })
    }

    #[test]
    fn majority_of_all_votes_decides() {
        let useless = || Err(RoleError::InvalidAnswer("the answer is empty".to_string()));
        for (votes, expected) in [
            (vec![vote(true)], Ok("satisfied: kind")),
            (vec![vote(true), vote(true), vote(true)], Ok("3 of 3 votes: satisfied: kind")),
            (
                vec![vote(false), vote(true), vote(true)],
                Ok("2 of 3 votes: satisfied: kind; 1 of 3 otherwise: not satisfied: rude"),
            ),
            (
                vec![vote(false), vote(true), vote(false)],
                Ok("2 of 3 votes: not satisfied: rude; 1 of 3 otherwise: satisfied: kind"),
            ),
            (
                vec![vote(true), useless(), vote(true)],
                Ok("2 of 3 votes: satisfied: kind; 1 invalid: the answer is empty"),
            ),
            (
                vec![vote(true), vote(false)],
                Err("the votes are tied: 1 for (satisfied: kind); 1 against (not satisfied: rude)"),
            ),
            (
                vec![vote(true), useless(), useless()],
                Err("no majority of the votes: 1 for (satisfied: kind); 2 invalid: the answer is empty"),
            ),
            (vec![useless(), useless(), useless()], Err("the answer is empty")),
        ] {
            let found = majority(votes);
            let found = found.map(|judgement| judgement.words).map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
    }
}
