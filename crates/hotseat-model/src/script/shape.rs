//! Shapes of script files: the source of validation, JSON Schema and the reference page.

use hotseat_document::{Kind, document_shape};

use super::rule::{RULE, USE};

document_shape! {
    /// A language model that answers from a file: a list of rules. The first rule that matches a request
    /// answers; a request without a matching rule is an error. Texts of replies and arguments are templates:
    /// `{{ user }}`, `{{ system }}`, `{{ notice }}`, `{{ result }}` (of the tool in `tool_result`, else of
    /// the last tool that answered), `{{ results.NAME }}`, `{{ messages }}`, `{{ tools }}`,
    /// `{{ conversation }}`, `{{ agent }}`, `{{ turn }}`, `{{ call }}`, `{{ attempt }}`, and the named groups
    /// of the patterns. An argument that is a single `{{ … }}` keeps the type of its value.
    pub static SCRIPT "Script" {
        /// Name of the model. Default: the name of the file.
        optional "name" = Kind::NonEmptyText,
        /// How often rules without their own `use` may answer in each conversation.
        optional "use" = USE, shown "once",
        /// The rules, in order.
        required "rules" = Kind::NonEmptyList(&Kind::Shape(&RULE)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn shapes_are_valid() {
        assert_eq!(super::SCRIPT.problems(), Vec::<String>::new());
    }
}
