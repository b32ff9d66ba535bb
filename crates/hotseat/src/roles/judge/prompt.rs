//! The prompts of the judgements: files with a version, each with the form of its answer.

use std::sync::LazyLock;

use hotseat_model::ResponseFormat;
use serde_json::Value;

use crate::checks::Schema;

/// What a judge is told of its part, and in which form it answers.
pub(super) struct Prompt {
    /// What is judged.
    pub judgement: &'static str,
    /// The file and its version.
    pub name: &'static str,
    /// What it is told of its part.
    pub system: &'static str,
    /// The form of the answer, as people write it.
    pub shape: &'static str,
    /// The form of the answer.
    pub schema: Schema,
    /// The same, as it is sent.
    pub schema_json: Value,
}

impl Prompt {
    /// The form that providers are asked to enforce.
    pub fn format(&self) -> ResponseFormat {
        ResponseFormat { name: self.name.replace('.', "_"), schema: self.schema_json.clone(), strict: true }
    }
}

/// A prompt: its file, what is said of evidence and answers in all of them, and the schema beside it.
macro_rules! prompt {
    ($name:ident, $judgement:literal, $file:literal, $shape:literal) => {
        #[doc = concat!("The judgement: ", $judgement, ".")]
        pub(super) static $name: LazyLock<Prompt> = LazyLock::new(|| {
            let schema = include_str!(concat!("../prompts/", $file, ".schema.json"));
            let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
            Prompt {
                judgement: $judgement,
                name: $file,
                system: concat!(
                    include_str!(concat!("../prompts/", $file, ".md")),
                    include_str!("../prompts/evidence.v1.md")
                ),
                shape: $shape,
                schema: Schema::compile(&schema).expect("the schema is one"),
                schema_json: schema,
            }
        });
    };
}

prompt!(CRITERION, "criterion", "criterion.v1", r#"{"reasoning": "…", "satisfied": true or false}"#);
prompt!(
    GROUNDING,
    "grounding",
    "grounding.v1",
    r#"{"reasoning": "…", "claims_found": [{"type": "…", "claim": "…", "grounded": true or false, "source": "…"}], "violations": ["…"], "grounded": true or false}"#
);
prompt!(
    CLAIMS,
    "claims",
    "claims.v1",
    r#"{"reasoning": "…", "claims_found": [{"type": "…", "claim": "…", "grounded": true or false}], "violated": true or false}"#
);
prompt!(
    INTENT,
    "intent",
    "intent.v1",
    r#"{"reasoning": "…", "observed_intent": "…", "matches": true or false}"#
);
prompt!(
    TOPIC,
    "topic",
    "topic.v1",
    r#"{"reasoning": "…", "topic": "…", "confidence": "high" or "medium" or "low"}"#
);
prompt!(GOAL, "goal", "goal.v1", r#"{"reasoning": "…", "achieved": true or false}"#);

#[cfg(test)]
mod tests {
    use super::*;

    /// Providers enforce a schema only if it requires every member and allows no others, all the way down.
    fn is_strict(schema: &Value) -> bool {
        match schema["type"].as_str() {
            Some("object") => {
                let members = schema["properties"].as_object().unwrap();
                let required: Vec<&str> =
                    schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
                schema["additionalProperties"] == false
                    && members.keys().map(String::as_str).eq(required)
                    && members.values().all(is_strict)
            }
            Some("array") => is_strict(&schema["items"]),
            Some(_) => true,
            None => false,
        }
    }

    #[test]
    fn every_schema_is_strict_and_has_the_reasoning_before_the_verdict() {
        for prompt in [&*CRITERION, &GROUNDING, &CLAIMS, &INTENT, &TOPIC, &GOAL] {
            assert!(is_strict(&prompt.schema_json), "{}", prompt.name);
            let members: Vec<&String> =
                prompt.schema_json["properties"].as_object().unwrap().keys().collect();
            assert_eq!(members[0], "reasoning", "{}", prompt.name);
            // What is said of the form names the same members in the same order.
            let places: Vec<usize> =
                members.iter().map(|member| prompt.shape.rfind(&format!("{member:?}: ")).unwrap()).collect();
            assert!(places.is_sorted(), "{}", prompt.name);
            assert!(prompt.system.contains("<evidence-…>"), "{}", prompt.name);
        }
    }
}
