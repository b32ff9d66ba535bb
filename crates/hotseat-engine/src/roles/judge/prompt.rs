//! Built-in judge prompts: versioned files with their answer schemas.

use std::sync::LazyLock;

use hotseat_model::ResponseFormat;
use serde_json::Value;

/// A prompt with the schema of its answer.
pub(super) struct JudgePrompt {
    /// Kind of judgement.
    pub judgement: &'static str,
    /// File name with version.
    pub name: &'static str,
    /// System prompt.
    pub system: &'static str,
    /// Answer format as text.
    pub shape: &'static str,
    /// Answer schema, in the strict form that providers enforce.
    pub schema: Value,
}

impl JudgePrompt {
    /// The response format that providers enforce.
    pub fn response_format(&self, schema: &Value) -> ResponseFormat {
        ResponseFormat { name: self.name.replace('.', "_"), schema: schema.clone(), strict: true }
    }
}

/// Defines a prompt from its file, the common notes on evidence and answers, and its schema.
macro_rules! prompt {
    ($name:ident, $judgement:literal, $file:literal, $shape:literal) => {
        #[doc = concat!("The judgement: ", $judgement, ".")]
        pub(super) static $name: LazyLock<JudgePrompt> = LazyLock::new(|| {
            let schema = include_str!(concat!("../prompts/", $file, ".schema.json"));
            JudgePrompt {
                judgement: $judgement,
                name: $file,
                system: concat!(
                    include_str!(concat!("../prompts/", $file, ".md")),
                    include_str!("../prompts/evidence.v1.md")
                ),
                shape: $shape,
                schema: serde_json::from_str(schema).expect("the schema is JSON"),
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

    /// Providers enforce a schema only if all members are required and no others are allowed, on every level.
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
    fn schemas_are_strict_and_reason_before_verdict() {
        for prompt in [&*CRITERION, &GROUNDING, &CLAIMS, &INTENT, &TOPIC, &GOAL] {
            assert!(is_strict(&prompt.schema), "{}", prompt.name);
            let members: Vec<&String> = prompt.schema["properties"].as_object().unwrap().keys().collect();
            assert_eq!(members[0], "reasoning", "{}", prompt.name);
            // The textual format lists the same members in the same order.
            let places: Vec<usize> =
                members.iter().map(|member| prompt.shape.rfind(&format!("{member:?}: ")).unwrap()).collect();
            assert!(places.is_sorted(), "{}", prompt.name);
            assert!(prompt.system.contains("<evidence-…>"), "{}", prompt.name);
        }
    }
}
