//! Typed assertions: `{type: contains, value: …}`.
//!
//! Each type is one declaration with its shape, its decoder and its label, and one line of the list below.

mod block;
mod block_shape;
mod budgets;
mod criteria;
mod criteria_shape;
mod json;
mod judged;
mod script;
mod text;
mod tool_called;
mod tool_effects;
mod tool_result;
mod tool_sequence;
mod topics;
mod value;

use std::sync::Arc;

use serde_json::Value;

use hotseat_checks::{Check, CheckKind};
use hotseat_document::{Diagnostic, Diagnostics, Kind, MapView, NodeView, Shape, TaggedShapes};

pub use self::block::{AssertionBlock, into_soft, refuse_all_turns};
pub(in crate::cases) use self::block_shape::ARGUMENT_PATTERNS;
pub use self::criteria::{CheckVocabulary, criterion_check};
pub use self::criteria_shape::CRITERIA_KIND;
pub(in crate::cases) use self::text::refuse_universal;

/// One type of assertions.
struct AssertionType {
    /// Keys and their descriptions.
    shape: Shape,
    /// Decodes an assertion that matches the shape. Returns nothing after reporting an error.
    read: fn(&MapView<'_>, &mut Diagnostics) -> Option<Vec<Check>>,
    /// Short label of an assertion as written in the test file. `None` if its description is short enough.
    label: fn(&Value) -> Option<String>,
}

/// Declares a type of assertions: its name in schemas, the word of `type`, its description, its own keys, its
/// decoder, and optionally its label. Keys common to all types are added.
macro_rules! assertion_type {
    (
        $(#[doc = $doc:literal])+
        $type:ident $name:literal $word:literal { $($fields:tt)* }
        $read:expr
    ) => {
        assertion_type!($(#[doc = $doc])+ $type $name $word { $($fields)* } $read, |_| None);
    };
    (
        $(#[doc = $doc:literal])+
        $type:ident $name:literal $word:literal { $($fields:tt)* }
        $read:expr, $label:expr
    ) => {
        $(#[doc = $doc])+
        pub(super) static $type: AssertionType = AssertionType {
            shape: Shape {
                name: $name,
                doc: concat!($($doc),+).trim_ascii(),
                fields: &hotseat_document::document_fields!(
                    /// Which assertion this is.
                    required "type" = Kind::Choice(&[$word]),
                    $($fields)*
                    /// Negates the assertion. An assertion that cannot be evaluated fails either way.
                    optional "negate" = Kind::Bool, shown "false",
                    /// Message shown if the assertion fails.
                    optional "message" = Kind::NonEmptyText,
                ),
            },
            read: $read,
            label: $label,
        };
    };
}
use assertion_type;

/// Lists the types in the order of reference pages.
macro_rules! assertion_types {
    ($($type:path,)*) => {
        static ASSERTION_TYPES: &[&AssertionType] = &[$(&$type),*];

        /// A typed assertion or a block. A mapping without `type` is a block.
        pub static ASSERTION: TaggedShapes = TaggedShapes {
            key: "type",
            shapes: &[$(&$type.shape),*],
            untagged: Some(&block_shape::ASSERT),
        };
    };
}

assertion_types! {
    text::CONTAINS,
    text::NOT_CONTAINS,
    text::EQUALS,
    text::REGEX,
    json::JSON_PATH,
    json::TYPE,
    json::SCHEMA,
    tool_called::TOOL_CALLED,
    tool_result::TOOL_RESULT,
    tool_sequence::TOOL_SEQUENCE,
    tool_effects::IDEMPOTENT,
    tool_effects::AFTER_FAULT,
    tool_effects::VALID_ARGUMENTS,
    topics::TOPIC,
    topics::REACHED_TOPIC,
    topics::TOPIC_HISTORY,
    value::VALUE,
    budgets::MAX_TOKENS,
    budgets::MAX_COST,
    budgets::MAX_TOOL_CALLS,
    judged::AGENT,
    judged::SATISFY,
    judged::GROUNDED,
    judged::CLAIMS,
    judged::INTENT,
    judged::GOAL,
    script::SCRIPT,
}

/// Assertions with inheritance: a block, a typed assertion, a list of these, or `false` to discard inherited
/// ones.
pub const ASSERT_KIND: Kind =
    Kind::OneOf(&[Kind::False, Kind::Tagged(&ASSERTION), Kind::NonEmptyList(&Kind::Tagged(&ASSERTION))]);

/// Assertions without inheritance.
pub const OWN_ASSERT_KIND: Kind =
    Kind::OneOf(&[Kind::Tagged(&ASSERTION), Kind::NonEmptyList(&Kind::Tagged(&ASSERTION))]);

/// Names that declarations of types use.
mod prelude {
    pub(super) use super::{AssertionType, assertion_type, check_at, text_list};
    pub(super) use crate::cases::patterns::read_patterns;
    pub(super) use hotseat_checks::{Check, CheckKind};
    pub(super) use hotseat_document::{
        Diagnostic, Diagnostics, Kind, MapView, NodeView, Shape, document_shape,
    };
    pub(super) use serde_json::Value;
}

/// Formats the short label of an assertion as written in a test file, such as `contains "submitted"`. Returns
/// `None` for types whose description is short enough.
pub fn assertion_label(written: &Value) -> Option<String> {
    let word = written.get("type")?.as_str()?;
    let known = ASSERTION_TYPES.iter().find(|known| ASSERTION.words(&known.shape).contains(&word))?;
    (known.label)(written)
}

/// Decodes an assertion that matches its shape: one check, or one for each criterion or text. Returns nothing after
/// reporting an error.
fn read_assertion(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Vec<Check> {
    let reported = diagnostics.len();
    let known = ASSERTION_TYPES.iter().find(|known| std::ptr::eq(&known.shape, map.shape()));
    let checks = known.and_then(|known| (known.read)(map, diagnostics)).unwrap_or_default();
    // An assertion with an invalid part must not leave a check that could pass without it.
    if diagnostics.len() > reported {
        return Vec::new();
    }
    let negated = map.bool("negate").unwrap_or(false);
    if negated && checks.len() > 1 {
        let wrong = Diagnostic::new("`negate` of several is ambiguous: none of them, or not all")
            .at(map.key_place("negate"));
        diagnostics.push(wrong.help("write one assertion for each"));
        return Vec::new();
    }
    let message = map.text("message").map(str::to_string);
    let written = Arc::new(map.to_json());
    let common = |check: Check| Check {
        negated,
        message: message.clone(),
        definition: Some(check.definition.unwrap_or_else(|| written.clone())),
        ..check
    };
    checks.into_iter().map(common).collect()
}

/// Returns one check at the position of its most significant key.
fn check_at(map: &MapView<'_>, key: &str, kind: CheckKind) -> Option<Vec<Check>> {
    Some(vec![Check::new(kind, map.place_near(key))])
}

/// Decodes one text or several.
fn text_list(map: &MapView<'_>, key: &str) -> Vec<String> {
    map.one_or_many(key).filter_map(NodeView::text).map(str::to_string).collect()
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
            assert_eq!(assertion_label(&written).as_deref(), Some(label));
        }
        assert_eq!(assertion_label(&json!({"type": "schema", "schema": {}})), None);
    }
}
