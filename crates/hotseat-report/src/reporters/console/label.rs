//! Short labels of checks in a conversation tree. Failures are described in more detail below the tree.

use serde_json::Value;

use hotseat_engine::run::{CheckResult, CheckpointResult};

/// Returns the label of a check: its form in the test file if it has an entry of its own, otherwise what it
/// expects.
pub(super) fn check_label(checked: &CheckResult) -> String {
    let criterion = checked.check.criterion.as_deref().map(|criterion| format!("satisfies {criterion}"));
    let typed = criterion.or_else(|| checked.check.written.as_deref().and_then(typed_label));
    match typed {
        Some(label) if checked.check.negated => format!("not: {label}"),
        Some(label) => label,
        None => format!("expected {}", checked.verdict.expected),
    }
}

/// Formats `contains "submitted"`, `$.expense.status = "submitted"`, `tool_called "create_expense"`.
fn typed_label(written: &Value) -> Option<String> {
    let kind = written.get("type")?.as_str()?;
    let path = written.get("path").and_then(Value::as_str);
    let text = |key: &str| written.get(key).map(Value::to_string);
    match kind {
        "contains" | "not_contains" | "equals" => Some(format!("{kind} {}", text("value")?)),
        "regex" => Some(format!("regex /{}/", written.get("pattern")?.as_str()?)),
        "json_path" => Some(match text("value") {
            Some(value) => format!("{} = {value}", path?),
            None => path?.to_string(),
        }),
        "type" => Some(match path {
            Some(path) => format!("type {path} = {}", text("value")?),
            None => format!("type {}", text("value")?),
        }),
        "tool_called" => {
            // The value is a name, a list of names, or an object with a name and arguments.
            let value = written.get("value");
            let name = written.get("name").or_else(|| value?.get("name")).or(value)?;
            let arguments = written.get("arguments").or_else(|| value?.get("arguments"));
            let arguments =
                arguments.map_or_else(String::new, |arguments| format!(" with arguments {arguments}"));
            Some(format!("tool_called {name}{arguments}"))
        }
        "tool_result" => {
            let value = written.get("value");
            let part = |key: &str| written.get(key).or_else(|| value?.get(key));
            let result = part("result").map_or_else(String::new, |result| format!(" = {result}"));
            Some(format!("tool_result {}{result}", part("tool")?))
        }
        // Longer assertions use their description.
        _ => None,
    }
}

/// Formats a checkpoint with the tool that it expects.
pub(super) fn checkpoint_label(reached: &CheckpointResult) -> String {
    let checkpoint = &reached.checkpoint;
    match &checkpoint.tool {
        Some(tool) => format!("checkpoint: {} (tool: {tool})", checkpoint.id),
        None => format!("checkpoint: {}", checkpoint.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_follow_the_test_file() {
        for (written, label) in [
            (json!({"type": "contains", "value": "type of expense"}), r#"contains "type of expense""#),
            (json!({"type": "equals", "value": {"a": 1}}), r#"equals {"a":1}"#),
            (json!({"type": "regex", "pattern": "^a"}), "regex /^a/"),
            (
                json!({"type": "json_path", "path": "$.expense.status", "value": "submitted"}),
                r#"$.expense.status = "submitted""#,
            ),
            (json!({"type": "json_path", "path": "$.expense"}), "$.expense"),
            (json!({"type": "type", "value": "object"}), r#"type "object""#),
            (json!({"type": "type", "path": "$.n", "value": "number"}), r#"type $.n = "number""#),
            (json!({"type": "tool_called", "name": "a"}), r#"tool_called "a""#),
            (json!({"type": "tool_called", "value": ["a", "b"]}), r#"tool_called ["a","b"]"#),
            (
                json!({"type": "tool_called", "value": {"name": "a", "arguments": {"n": 1}}}),
                r#"tool_called "a" with arguments {"n":1}"#,
            ),
            (json!({"type": "tool_result", "tool": "a", "result": "ok"}), r#"tool_result "a" = "ok""#),
            (json!({"type": "tool_result", "value": {"tool": "a"}}), r#"tool_result "a""#),
        ] {
            assert_eq!(typed_label(&written).as_deref(), Some(label));
        }
        assert_eq!(typed_label(&json!({"type": "schema", "schema": {}})), None);
    }
}
