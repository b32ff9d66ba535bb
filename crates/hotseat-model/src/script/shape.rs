//! Shapes of script files: the source of validation, JSON Schema and the reference page.

use hotseat_document::{Field, Kind, Shape};

use super::rule::{RULE, USE};

/// Shape of a script file.
pub static SCRIPT: Shape = Shape {
    name: "Script",
    doc: "A language model that answers from a file: a list of rules. The first rule that matches a request \
          answers; a request without a matching rule is an error. Texts of replies and arguments are templates: \
          `{{ user }}`, `{{ system }}`, `{{ notice }}`, `{{ result }}` (of the tool in `tool_result`, else of \
          the last tool that answered), `{{ results.NAME }}`, `{{ messages }}`, `{{ tools }}`, `{{ conversation }}`, \
          `{{ agent }}`, `{{ turn }}`, `{{ call }}`, `{{ attempt }}`, and the named groups of the patterns. An argument \
          that is a single `{{ … }}` keeps the type of its value.",
    fields: &[
        Field::optional("name", Kind::NonEmptyText, "Name of the model. Default: the name of the file."),
        Field::optional(
            "use",
            USE,
            "How often rules without their own `use` may answer in each conversation.",
        )
        .default("once"),
        Field::required("rules", Kind::NonEmptyList(&Kind::Shape(&RULE)), "The rules, in order."),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn shapes_are_valid() {
        assert_eq!(super::SCRIPT.problems(), Vec::<String>::new());
    }
}
