//! A judge: what it is asked, what of its answers is read, what comes of several of them. The documents call it a
//! validator.
//!
//! What nobody can judge is an error and never a judgement: an answer that is not of just the form that was asked for is
//! asked for again, and after some times the judge has failed.

mod answer;
mod claims;
mod criterion;
mod evidence;
mod goal;
mod grounding;
mod intent;
mod open;
mod prompt;
mod topic;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hotseat_trace::Turn;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

pub use topic::{Candidate, Classified, Confidence, TopicQuestion};

pub(super) use self::evidence::escaped;
use self::evidence::{Budget, Evidence, Shown};
use self::prompt::Prompt;
use super::answers::{Answers, Asking, NOT_ASKED};
use super::{Again, Exchange, Question, Role, Said, Unanswered, options};
use crate::checks::{Judging, Matter};
use crate::session::{Message, reported_tokens};

/// How often a judge is asked again where nobody says.
pub const RETRIES: usize = 2;
/// How many characters of a conversation a judge is shown where nobody says.
pub const EVIDENCE: usize = 1_000_000;

/// A judge, and how it is asked.
#[derive(Debug, Clone)]
pub struct Judge {
    role: Role,
    retries: usize,
    votes: usize,
    evidence: Budget,
    /// What it answered before, where that counts.
    answers: Option<Arc<Answers>>,
}

/// What of a conversation a judge is shown, and what of it is judged.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The case.
    pub test_id: &'a str,
    /// The conversation with the agent.
    pub session_id: &'a str,
    /// What was said before the first turn.
    pub opening: &'a [Message],
    /// The turns up to the last one that is judged; there is at least one.
    pub turns: &'a [Turn],
    /// The first turn that is judged, from 1.
    pub first_judged: usize,
}

/// What a judge is asked.
#[derive(Debug, Clone, Copy)]
pub struct JudgeQuestion<'a> {
    /// What is to be judged.
    pub matter: &'a Matter,
    /// What is shown.
    pub seen: Seen<'a>,
}

/// What a judge has found.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Whether what was asked is so.
    pub passed: bool,
    /// How far it is so, where the judge says that.
    pub score: Option<f64>,
    /// Why, in the judge's words.
    pub reasoning: Option<String>,
    /// What was found, in words.
    pub words: String,
}

/// What asking a judge came to.
#[derive(Debug)]
pub struct Asked<T> {
    /// What was found, or why nothing was.
    pub outcome: Result<T, String>,
    /// Who was asked, and what that cost.
    pub by: By,
    /// Every asking, as it is kept in the trace.
    pub exchanges: Vec<Exchange>,
}

/// Who judged, and what that cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct By {
    /// The judge, as the case refers to it.
    pub judge: Arc<str>,
    /// The model that answered, where that is known.
    pub model: Option<String>,
    /// The prompt and its version; none where the judge was told the words of the test as they are.
    pub prompt: Option<String>,
    /// The votes, where there are several: for, against, of no use.
    pub votes: Option<[usize; 3]>,
    /// How often it was asked.
    pub calls: usize,
    /// Tokens of all questions; none where that is not known of one of them.
    pub input_tokens: Option<u64>,
    /// Tokens of all answers; none where that is not known of one of them.
    pub output_tokens: Option<u64>,
    /// How long it took.
    pub took: Duration,
    /// What of the conversation it was not shown, in words.
    pub left_out: Vec<String>,
}

/// Reads the judgement of a criterion as a judge would write it. For the project's own fuzzing; not part of the interface.
///
/// # Errors
/// What is wrong with it.
#[doc(hidden)]
pub fn read_judgement(text: &str) -> Result<Value, String> {
    answer::read(text, &prompt::CRITERION.schema)
}

/// A question as it is put to a judge.
struct Put {
    /// What the judge is asked for, and how; none for words of the test.
    prompt: Option<&'static Prompt>,
    /// The system prompt.
    system: &'static str,
    message: Value,
    options: Map<String, Value>,
    turn: usize,
    left_out: Vec<String>,
}

/// What one vote came to.
struct Vote<T> {
    found: Result<T, String>,
    exchanges: Vec<Exchange>,
}

impl<T> Vote<T> {
    fn took(&self) -> Duration {
        self.exchanges.iter().map(|exchange| exchange.said.took).sum()
    }
}

/// What a judge answered before to a question.
enum Before {
    /// This.
    Answered(Asking),
    /// Nothing, and it is not asked.
    Silent,
    /// Nothing that counts: it is asked.
    Asks,
}

/// What a vote came to before, read once more.
fn again<T>(asking: &Asking, vote: usize, read: impl Fn(&str) -> Result<(T, Value), String>) -> Vote<T> {
    let mut found = Err(NOT_ASKED.to_string());
    let mut exchanges = Vec::new();
    for (number, answered) in asking.vote(vote).enumerate() {
        let of_use = match &answered.error {
            Some(words) => Err(words.clone()),
            None => read(&answered.answer),
        };
        let finding = of_use.as_ref().ok().map(|(_, finding)| finding.clone());
        let error = of_use.as_ref().err().cloned();
        exchanges.push(Exchange { finding, error, ..Exchange::before("judge", answered) });
        found = of_use.map(|(found, _)| found).map_err(|words| often(words, number + 1));
    }
    Vote { found, exchanges }
}

/// Why a judge is given up, and how often it was asked.
fn often(words: String, attempts: usize) -> String {
    match attempts {
        1 => words,
        n => format!("{words} (asked {n} times)"),
    }
}

impl Judge {
    /// A helper as a judge.
    pub fn new(role: Role, judging: &Judging) -> Judge {
        let role = match judging.timeout {
            Some(patience) => role.with_patience(patience),
            None => role,
        };
        Judge {
            role,
            retries: judging.retries.unwrap_or(RETRIES),
            votes: judging.votes.unwrap_or(1).max(1),
            evidence: Budget {
                characters: judging.evidence.max_characters.unwrap_or(EVIDENCE),
                on_overflow: judging.evidence.on_overflow.unwrap_or_default(),
            },
            answers: None,
        }
    }

    /// The same judge, of whom is known what it answered before.
    #[must_use]
    pub fn remembering(self, answers: Option<Arc<Answers>>) -> Judge {
        Judge { answers, ..self }
    }

    /// Has something judged.
    pub async fn judge(&self, question: JudgeQuestion<'_>) -> Asked<Judgement> {
        let JudgeQuestion { matter, seen } = question;
        let put = match matter {
            Matter::Open(open) => open::put(open, seen, self.evidence),
            Matter::Criterion(criterion) => {
                self.put(&prompt::CRITERION, &criterion::told(criterion), &[], seen)
            }
            Matter::Grounded(grounded) => {
                self.put(&prompt::GROUNDING, &grounding::told(grounded), &grounded.from_tools, seen)
            }
            Matter::Claims(claims) => self.put(&prompt::CLAIMS, &claims::told(claims), &[], seen),
            Matter::Intent(intent) => self.put(&prompt::INTENT, &intent::told(intent), &[], seen),
            Matter::Goal(goal) => self.put(&prompt::GOAL, &goal::told(goal), &[], seen),
        };
        let put = match put {
            Ok(put) => put,
            Err(words) => return self.unasked(words),
        };
        let read = |text: &str| {
            let Some(prompt) = put.prompt else { return open::read(text) };
            let answer = answer::read(text, &prompt.schema)?;
            let judgement = match matter {
                Matter::Open(_) => return open::read(text),
                Matter::Criterion(_) => criterion::read(&answer),
                Matter::Grounded(_) => grounding::read(&answer)?,
                Matter::Claims(claims) => claims::read(claims, &answer)?,
                Matter::Intent(_) => intent::read(&answer)?,
                Matter::Goal(_) => goal::read(&answer),
            };
            Ok((judgement, answer))
        };
        let begun = Instant::now();
        let votes = match self.before(&put, self.votes) {
            Before::Answered(asking) => (1..=self.votes).map(|vote| again(&asking, vote, read)).collect(),
            Before::Silent => {
                return Asked {
                    outcome: Err(NOT_ASKED.to_string()),
                    by: self.by(&put, &[]),
                    exchanges: Vec::new(),
                };
            }
            Before::Asks => join_all((1..=self.votes).map(|vote| self.vote(&put, vote, read))).await,
        };
        let longest = votes.iter().map(Vote::took).max().unwrap_or_default();
        let (found, exchanges): (Vec<_>, Vec<_>) =
            votes.into_iter().map(|vote| (vote.found, vote.exchanges)).unzip();
        let count = (self.votes > 1).then(|| tally(&found));
        let exchanges: Vec<Exchange> = exchanges.into_iter().flatten().collect();
        let took = if self.answers.is_some() { longest } else { begun.elapsed() };
        let by = By { votes: count, took, ..self.by(&put, &exchanges) };
        Asked { outcome: majority(found), by, exchanges }
    }

    /// Has the topic of a turn found among some. Where there is nothing to choose nobody is asked. A topic that is not
    /// among them, or an answer of no use, is no topic: the conversation stays where it was, or the judge has failed.
    pub async fn classify(&self, question: TopicQuestion<'_>) -> Asked<Classified> {
        if let Some(only) = question.only() {
            let by = By { judge: self.role.shown().clone(), ..By::default() };
            return Asked { outcome: Ok(only), by, exchanges: Vec::new() };
        }
        let put = match self.put(&prompt::TOPIC, &topic::told(question), &[], question.seen) {
            Ok(put) => put,
            Err(words) => return self.unasked(words),
        };
        let read = |text: &str| {
            let answer = answer::read(text, &prompt::TOPIC.schema)?;
            let mut found = topic::read(question, &answer);
            if !put.left_out.is_empty() {
                found.reasoning = format!("{} (not shown: {})", found.reasoning, put.left_out.join("; "));
            }
            Ok((found, answer))
        };
        let begun = Instant::now();
        let Vote { found, exchanges } = match self.before(&put, 1) {
            Before::Answered(asking) => again(&asking, 1, read),
            Before::Silent => Vote { found: Err(NOT_ASKED.to_string()), exchanges: Vec::new() },
            Before::Asks => self.vote(&put, 1, read).await,
        };
        let by = By { took: begun.elapsed(), ..self.by(&put, &exchanges) };
        Asked { outcome: found, by, exchanges }
    }

    /// The result where the judge cannot be asked.
    fn unasked<T>(&self, words: String) -> Asked<T> {
        let none = Some(0);
        let by =
            By { judge: self.role.shown().clone(), input_tokens: none, output_tokens: none, ..By::default() };
        Asked { outcome: Err(words), by, exchanges: Vec::new() }
    }

    /// A question of ours. Evidence stands between what is asked and in which form it is to be answered.
    ///
    /// # Errors
    /// When the conversation is longer than the judge may be shown.
    fn put(
        &self,
        prompt: &'static Prompt,
        told: &str,
        tools: &[String],
        seen: Seen<'_>,
    ) -> Result<Put, String> {
        let Seen { opening, turns, first_judged, .. } = seen;
        let evidence = Evidence::new(Shown { opening, turns, first_judged, tools }, self.evidence)?;
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
        // An agent has a prompt of its own; what this is about has to be in the message.
        let message = match self.role.is_model() {
            true => message,
            false => format!("{}\n{message}", prompt.system),
        };
        Ok(Put {
            prompt: Some(prompt),
            system: prompt.system,
            message: json!(message),
            options: options(&Map::new(), metadata),
            turn: last,
            left_out: evidence.left_out,
        })
    }

    /// What it answered before to just this question.
    fn before(&self, put: &Put, votes: usize) -> Before {
        let Some(answers) = &self.answers else { return Before::Asks };
        match answers.take(self.role.shown(), &put.shown(&put.question(1)), votes) {
            Some(asking) => Before::Answered(asking),
            None if answers.asks() => Before::Asks,
            None => Before::Silent,
        }
    }

    /// Asks until there is an answer of use, or often enough.
    async fn vote<T>(
        &self,
        put: &Put,
        vote: usize,
        read: impl Fn(&str) -> Result<(T, Value), String>,
    ) -> Vote<T> {
        let mut exchanges = Vec::new();
        let mut attempt = 1;
        loop {
            let question = put.question(attempt);
            let shown = put.shown(&question);
            let (said, found, again) = match self.role.try_ask(question).await {
                Err((Unanswered::Deadline, _)) => {
                    (Said::default(), Err("no answer in time".to_string()), Again::Never)
                }
                Err((Unanswered::Failed(words), again)) => (Said::default(), Err(words), again),
                Ok(said) if said.is_cut => {
                    let words = said.cut_off();
                    (said, Err(words), Again::Now)
                }
                Ok(said) => {
                    let found = read(&said.text);
                    (said, found, Again::Now)
                }
            };
            let (found, finding) = match found {
                Ok((found, finding)) => (Ok(found), Some(finding)),
                Err(words) => (Err(words), None),
            };
            exchanges.push(Exchange {
                role: "judge",
                agent: self.role.shown().clone(),
                question: shown,
                said,
                finding,
                error: found.as_ref().err().cloned(),
                asked: Some((vote, attempt)),
            });
            if found.is_ok() || again == Again::Never || attempt > self.retries {
                return Vote { found: found.map_err(|words| often(words, attempt)), exchanges };
            }
            if let Again::After(pause) = again {
                tokio::time::sleep(pause).await;
            }
            attempt += 1;
        }
    }

    fn by(&self, put: &Put, exchanges: &[Exchange]) -> By {
        // Where one asking does not say what it cost, the sum is not known.
        let tokens = exchanges.iter().try_fold((0_u64, 0_u64), |(input, output), exchange| {
            let (asked, answered) = reported_tokens(exchange.said.usage.as_ref()?)?;
            Some((input.saturating_add(asked), output.saturating_add(answered)))
        });
        By {
            judge: self.role.shown().clone(),
            model: exchanges.iter().rev().find_map(|exchange| exchange.said.model.clone()),
            prompt: put.prompt.map(|prompt| prompt.name.to_string()),
            votes: None,
            calls: exchanges.len(),
            input_tokens: tokens.map(|(input, _)| input),
            output_tokens: tokens.map(|(_, output)| output),
            took: Duration::ZERO,
            left_out: put.left_out.clone(),
        }
    }
}

impl Put {
    /// The question, for the first time or again. What was wrong with an earlier answer is not repeated: it may hold
    /// words of the agent.
    fn question(&self, attempt: usize) -> Question {
        let again = "\n\nAn earlier answer could not be used: it was not one JSON object of just this form.";
        let message = match &self.message {
            Value::String(text) if attempt > 1 => json!(format!("{text}{again}")),
            message => message.clone(),
        };
        Question {
            message,
            options: self.options.clone(),
            history: Vec::new(),
            turn: self.turn,
            prompt: self.system.into(),
            format: self.prompt.map(Prompt::format),
            until: None,
        }
    }

    /// The question as it is kept in the trace.
    fn shown(&self, question: &Question) -> Value {
        let Some(prompt) = self.prompt else { return question.message.clone() };
        json!({
            "judgement": prompt.judgement,
            "prompt": prompt.name,
            "system": prompt.system,
            "message": question.message,
            "schema": prompt.schema_json,
        })
    }
}

fn tally(votes: &[Result<Judgement, String>]) -> [usize; 3] {
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

/// What more than half of all votes say. Votes of no use are votes all the same.
fn majority(votes: Vec<Result<Judgement, String>>) -> Result<Judgement, String> {
    let all = votes.len();
    if all == 1 {
        return votes.into_iter().next().unwrap_or_else(|| Err("nobody was asked".to_string()));
    }
    let [for_it, against, useless] = tally(&votes);
    let first_error = votes.iter().find_map(|vote| vote.as_ref().err());
    let words_of = |passed: bool| {
        let found = votes.iter().flatten().find(|judgement| judgement.passed == passed);
        found.map(|judgement| judgement.words.as_str()).unwrap_or_default()
    };
    let useless_words = || match first_error {
        Some(words) => format!("; {useless} of no use: {words}"),
        None => String::new(),
    };
    let passed = match () {
        () if 2 * for_it > all => true,
        () if 2 * against > all => false,
        () if useless == all => return Err(first_error.cloned().unwrap_or_default()),
        () => {
            let what = if for_it == against { "the votes are tied" } else { "no majority of the votes" };
            let sides = [(for_it, true, "for"), (against, false, "against")];
            let sides = sides.iter().filter(|(count, ..)| *count > 0);
            let sides: Vec<String> = sides
                .map(|(count, passed, side)| format!("{count} {side} ({})", words_of(*passed)))
                .collect();
            return Err(format!("{what}: {}{}", sides.join("; "), useless_words()));
        }
    };
    let (agree, disagree) = if passed { (for_it, against) } else { (against, for_it) };
    let telling = votes.iter().flatten().find(|judgement| judgement.passed == passed).cloned();
    let Some(telling) = telling else { return Err("nobody was asked".to_string()) };
    let dissent = match disagree {
        0 => String::new(),
        n => format!("; {n} of {all} otherwise: {}", words_of(!passed)),
    };
    let words = format!("{agree} of {all} votes: {}{dissent}{}", telling.words, useless_words());
    Ok(Judgement { words, ..telling })
}

/// `reasoning` of an answer that fits its schema.
fn reasoning(answer: &Value) -> String {
    answer["reasoning"].as_str().unwrap_or_default().trim().to_string()
}

/// A judgement that is one truth value with its reasoning.
fn plain(passed: bool, [so, not_so]: [&str; 2], answer: &Value) -> Judgement {
    let reasoning = reasoning(answer);
    let words = format!("{}: {reasoning}", if passed { so } else { not_so });
    Judgement { passed, score: None, reasoning: Some(reasoning), words }
}

#[cfg(test)]
use self::prompt::CRITERION;

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(passed: bool) -> Result<Judgement, String> {
        let words = if passed { "satisfied: kind" } else { "not satisfied: rude" };
        Ok(Judgement { passed, score: None, reasoning: Some("…".to_string()), words: words.to_string() })
    }

    #[test]
    fn more_than_half_of_all_votes_decide() {
        let useless = || Err("it said nothing".to_string());
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
                Ok("2 of 3 votes: satisfied: kind; 1 of no use: it said nothing"),
            ),
            (
                vec![vote(true), vote(false)],
                Err("the votes are tied: 1 for (satisfied: kind); 1 against (not satisfied: rude)"),
            ),
            (
                vec![vote(true), useless(), useless()],
                Err("no majority of the votes: 1 for (satisfied: kind); 2 of no use: it said nothing"),
            ),
            (vec![useless(), useless(), useless()], Err("it said nothing")),
        ] {
            let found = majority(votes);
            let found = found.as_ref().map(|judgement| judgement.words.as_str()).map_err(String::as_str);
            assert_eq!(found, expected);
        }
    }
}
