//! Values that the expressions of a task or workflow see.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use crate::expression::{EvaluateError, Expression, ExpressionScope, path_names, set_at_path};

/// State and output of a run that has just started.
static EMPTY: LazyLock<Arc<Value>> = LazyLock::new(|| Arc::new(json!({})));

/// Values by name: `input`, `state`, `output`, and what a step or a branch adds. Values are shared with events and
/// other scopes, so a copy of a scope copies no JSON.
#[derive(Debug, Clone)]
pub(super) struct WorkScope {
    values: Vec<(Cow<'static, str>, Arc<Value>)>,
}

impl WorkScope {
    /// Creates the scope of a run with this input and neither state nor output.
    pub(super) fn with_input(input: Arc<Value>) -> Self {
        let values =
            vec![("input".into(), input), ("state".into(), EMPTY.clone()), ("output".into(), EMPTY.clone())];
        WorkScope { values }
    }

    /// Creates a scope with an input alone.
    pub(super) fn with_only_input(input: Arc<Value>) -> Self {
        WorkScope { values: vec![("input".into(), input)] }
    }

    /// Returns the value of a name, null if it has none.
    pub(super) fn shared(&self, name: &str) -> Arc<Value> {
        self.values
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
            .unwrap_or_default()
    }

    pub(super) fn set(&mut self, name: &str, value: Arc<Value>) {
        *self.place(name) = value;
    }

    /// Returns the value of a name for changes.
    pub(super) fn value_mut(&mut self, name: &str) -> &mut Value {
        Arc::make_mut(self.place(name))
    }

    fn place(&mut self, name: &str) -> &mut Arc<Value> {
        let place = self.values.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.values.push((name.to_string().into(), Arc::default()));
            self.values.len() - 1
        });
        &mut self.values[place].1
    }

    /// Sets a value at a dotted path, as [`set_at_path`] does. A path without names replaces all values.
    pub(super) fn set_at_path(&mut self, path: &str, value: Arc<Value>) {
        let mut names = path_names(path);
        let (Some(name), rest) = (names.next(), names.collect::<Vec<_>>()) else {
            let members = match Arc::unwrap_or_clone(value) {
                Value::Object(members) => members,
                _ => Map::new(),
            };
            self.values = members.into_iter().map(|(name, value)| (name.into(), Arc::new(value))).collect();
            return;
        };
        match rest.is_empty() {
            true => self.set(name, value),
            false => set_at_path(self.value_mut(name), &rest.join("."), Arc::unwrap_or_clone(value)),
        }
    }

    /// Evaluates an expression. A name alone shares its value. Fails if an operator or a function does not
    /// support its operands.
    pub(super) fn evaluate(&self, expression: &Expression) -> Result<Arc<Value>, EvaluateError> {
        match expression.as_name() {
            Some(name) => Ok(self.shared(name)),
            None => expression.evaluate(self).map(Arc::new),
        }
    }
}

impl ExpressionScope for WorkScope {
    fn value(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}
