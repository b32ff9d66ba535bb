//! Paths of providers: which protocol they have, and which ones never answer with tool calls.

use super::Dialect;

/// Parts of paths whose answers contain no tool calls.
const PATHS_WITHOUT_CALLS: [&str; 18] = [
    "audio",
    "classify",
    "compact",
    "count_tokens",
    "detokenize",
    "embed",
    "embeddings",
    "evals",
    "files",
    "fine_tuning",
    "images",
    "input_tokens",
    "moderations",
    "rerank",
    "tokenize",
    "uploads",
    "vector_stores",
    "videos",
];
/// Such actions of a model: `models/NAME:ACTION`.
const ACTIONS_WITHOUT_CALLS: [&str; 4] =
    ["batchEmbedContents", "countTokens", "embedContent", "generateImages"];

impl Dialect {
    /// Returns the protocol of a path below the base address, for instance `v1/chat/completions`. Providers differ in what is before
    /// its last segments.
    pub fn from_path(path: &str) -> Option<Dialect> {
        let segments: Vec<&str> = path.split('/').collect();
        match segments.as_slice() {
            [.., "chat", "completions"] => Some(Dialect::ChatCompletions),
            [.., "responses"] => Some(Dialect::Responses),
            ["messages"] | [.., "v1" | "anthropic", "messages"] => Some(Dialect::Messages),
            _ => None,
        }
    }
}

/// True if the answer of a request in a protocol that is not read may contain tool calls.
pub fn may_answer_with_calls(is_post: bool, path: &str) -> bool {
    let mut segments = path.split('/');
    match is_post {
        true => !segments.any(|segment| {
            let action = segment.split_once(':').map(|(_, action)| action);
            PATHS_WITHOUT_CALLS.contains(&segment)
                || action.is_some_and(|action| ACTIONS_WITHOUT_CALLS.contains(&action))
        }),
        // A response that was made in the background.
        false => segments.rev().nth(1) == Some("responses"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_known_by_the_end_of_their_paths() {
        for (path, dialect) in [
            ("chat/completions", Some(Dialect::ChatCompletions)),
            ("openai/deployments/gpt/chat/completions", Some(Dialect::ChatCompletions)),
            ("v1/engines/m/chat/completions", Some(Dialect::ChatCompletions)),
            ("openai/v1/responses", Some(Dialect::Responses)),
            ("responses/resp_1/cancel", None),
            ("messages", Some(Dialect::Messages)),
            ("anthropic/v1/messages", Some(Dialect::Messages)),
            ("threads/thread_1/messages", None),
            ("completions", None),
            ("api/chat", None),
        ] {
            assert_eq!(Dialect::from_path(path), dialect, "{path}");
        }
    }

    #[test]
    fn only_answers_with_text_may_have_calls() {
        for (is_post, path, may) in [
            (true, "v1beta/models/m:generateContent", true),
            (true, "v1beta/models/m:embedContent", false),
            (true, "api/chat", true),
            (true, "model/m/converse", true),
            (true, "threads/t/runs", true),
            (true, "embeddings", false),
            (true, "openai/deployments/e/embeddings", false),
            (true, "messages/count_tokens", false),
            (false, "models", false),
            (false, "responses/resp_1", true),
            (false, "responses/resp_1/input_items", false),
        ] {
            assert_eq!(may_answer_with_calls(is_post, path), may, "{path}");
        }
    }
}
