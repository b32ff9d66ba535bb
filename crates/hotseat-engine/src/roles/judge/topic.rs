//! Classification of turns into topics.

use hotseat_trace::named;
use serde_json::Value;

use super::{JudgeEvidence, reasoning};

/// A topic that a turn may belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicCandidate<'a> {
    /// Name.
    pub name: &'a str,
    /// Description.
    pub characteristic: Option<&'a str>,
    /// Intended outcome of the agent in the topic.
    pub intent: Option<&'a str>,
}

/// A question about the topic of the last turn.
#[derive(Debug, Clone, Copy)]
pub struct TopicQuestion<'a> {
    /// Topics to choose from, including the current one.
    pub candidates: &'a [TopicCandidate<'a>],
    /// Topic of the previous turn.
    pub current: &'a str,
    /// The evidence; the last turn is classified.
    pub evidence: JudgeEvidence<'a>,
}

/// Topic of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicClassification {
    /// Name. Always one of the candidates.
    pub topic: String,
    /// Confidence.
    pub confidence: TopicConfidence,
    /// Reasoning.
    pub reasoning: String,
    /// True if the judge named an unknown topic, so that the current one is kept.
    pub is_fallback: bool,
}

named! {
    /// Confidence of a judge in a topic.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum TopicConfidence {
        /// No topic fits well.
        Low = "low",
        /// Another topic may fit.
        Medium = "medium",
        /// No other topic fits.
        High = "high",
    }
}

impl TopicQuestion<'_> {
    /// The topic, if there is only one candidate.
    pub(super) fn only_candidate(&self) -> Option<TopicClassification> {
        let topic = match self.candidates {
            [] => self.current,
            [only] => only.name,
            _ => return None,
        };
        Some(TopicClassification {
            topic: topic.to_string(),
            confidence: TopicConfidence::High,
            reasoning: "there is no other topic to choose".to_string(),
            is_fallback: false,
        })
    }
}

pub(super) fn instructions(question: TopicQuestion<'_>) -> String {
    let mut told = "# The topics\n".to_string();
    for TopicCandidate { name, characteristic, intent } in question.candidates {
        told.push_str(&format!("## {name}\n"));
        for (title, words) in [("Characteristic", characteristic), ("Agent intent", intent)] {
            if let Some(words) = words.map(str::trim).filter(|words| !words.is_empty()) {
                told.push_str(&format!("{title}: {words}\n"));
            }
        }
    }
    format!("{told}\nThe conversation was in: {}", question.current)
}

pub(super) fn parse_classification(question: TopicQuestion<'_>, answer: &Value) -> TopicClassification {
    let named = answer["topic"].as_str().unwrap_or_default().trim();
    let reasoning = reasoning(answer);
    if !question.candidates.iter().any(|candidate| candidate.name == named) {
        return TopicClassification {
            topic: question.current.to_string(),
            confidence: TopicConfidence::Low,
            reasoning: format!("the judge named {named:?}, which is not one of the topics: {reasoning}"),
            is_fallback: true,
        };
    }
    let confidence = answer["confidence"].as_str().and_then(TopicConfidence::from_name);
    let confidence = confidence.unwrap_or(TopicConfidence::Low);
    TopicClassification { topic: named.to_string(), confidence, reasoning, is_fallback: false }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question<'a>(candidates: &'a [TopicCandidate<'a>]) -> TopicQuestion<'a> {
        let seen = JudgeEvidence { test_id: "t", session_id: "s", opening: &[], turns: &[], first_judged: 1 };
        TopicQuestion { candidates, current: "greeting", evidence: seen }
    }

    const TWO: &[TopicCandidate<'_>] = &[
        TopicCandidate { name: "greeting", characteristic: Some(" First contact "), intent: None },
        TopicCandidate { name: "booking", characteristic: None, intent: Some("Book a room") },
    ];

    #[test]
    fn unknown_topic_keeps_current_topic() {
        let answer = |topic: &str| json!({"reasoning": "r", "topic": topic, "confidence": "high"});
        let found = parse_classification(question(TWO), &answer("booking"));
        assert_eq!(
            (found.topic.as_str(), found.confidence, found.is_fallback),
            ("booking", TopicConfidence::High, false)
        );
        let found = parse_classification(question(TWO), &answer("Booking"));
        assert_eq!(
            (found.topic.as_str(), found.confidence, found.is_fallback),
            ("greeting", TopicConfidence::Low, true)
        );
    }

    #[test]
    fn instructions_list_candidates() {
        assert_eq!(
            instructions(question(TWO)),
            "# The topics\n## greeting\nCharacteristic: First contact\n## booking\nAgent intent: Book a room\n\nThe conversation was in: greeting"
        );
        assert!(question(TWO).only_candidate().is_none());
        assert_eq!(question(&TWO[..1]).only_candidate().unwrap().topic, "greeting");
    }
}
