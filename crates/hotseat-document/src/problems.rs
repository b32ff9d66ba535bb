//! Mistakes in the definition of shapes: duplicate names and keys, ambiguous alternatives, invalid defaults.

use super::check::check;
use super::diagnostic::Diagnostics;
use super::place::SourceText;
use super::shape::{Field, JsonType, Kind, Shape, TaggedShapes};
use super::yaml;

impl Field {
    /// Returns the default as JSON, or `None` if there is none or it does not validate.
    pub fn default_json(&self) -> Option<serde_json::Value> {
        let source = SourceText::new(self.key, self.default?, 1);
        let node = yaml::parse(&source).ok()?;
        let mut mistakes = Diagnostics::new();
        check(&node, &self.kind, &source, &mut mistakes);
        mistakes.is_empty().then(|| node.to_json())
    }
}

impl Shape {
    /// Returns the errors of this shape and those it refers to: duplicate names and keys, ambiguous
    /// alternatives, invalid defaults. Call it in a unit test.
    pub fn problems(&'static self) -> Vec<String> {
        let shapes = self.all();
        let mut problems = Vec::new();
        for (number, shape) in shapes.iter().enumerate() {
            if shapes[..number].iter().any(|other| other.name == shape.name) {
                problems.push(format!("two shapes are named `{}`", shape.name));
            }
            let keys = |field: &'static Field| field.spellings().chain(field.other_names.iter().copied());
            let spellings: Vec<_> = shape.fields.iter().flat_map(keys).collect();
            for (number, spelling) in spellings.iter().enumerate() {
                if spellings[..number].contains(spelling) {
                    problems.push(format!("`{}` has the key `{spelling}` twice", shape.name));
                }
            }
            for field in shape.fields {
                let path = format!("{}.{}", shape.name, field.key);
                field.kind.problems(&path, &mut problems);
                if field.default.is_some() && field.default_json().is_none() {
                    problems.push(format!("the default of `{path}` would not pass"));
                }
            }
        }
        problems
    }
}

impl Kind {
    fn problems(&self, path: &str, problems: &mut Vec<String>) {
        match self {
            Kind::OneOf(kinds) => {
                let fitting = |given: JsonType| kinds.iter().filter(|kind| kind.accepts(given)).count();
                if JsonType::ALL.into_iter().any(|given| fitting(given) > 1) {
                    problems.push(format!("the alternatives of `{path}` cannot be distinguished"));
                }
            }
            Kind::Tagged(tagged) => tagged.problems(path, problems),
            Kind::Integer { min, max } if min > max => problems.push(format!("no number fits `{path}`")),
            Kind::Choice([]) => problems.push(format!("no word fits `{path}`")),
            _ => {}
        }
        self.parts().iter().for_each(|kind| kind.problems(path, problems));
    }
}

impl TaggedShapes {
    fn problems(&self, path: &str, problems: &mut Vec<String>) {
        let words: Vec<_> = self.all_words().collect();
        let twice = |(number, word): (usize, &&str)| words[..number].contains(word);
        let wordless = self.shapes.iter().any(|shape| self.words(shape).is_empty());
        let optional =
            self.shapes.iter().filter(|shape| shape.field(self.key).is_some_and(|field| !field.required));
        if wordless || words.iter().enumerate().any(twice) || optional.count() > 1 {
            problems.push(format!("the shapes of `{path}` cannot be distinguished"));
        }
    }
}
