//! Removes secrets from what is recorded.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// Removes secrets from texts.
#[derive(Clone)]
pub struct TextCleaner(Arc<dyn Fn(&str) -> String + Send + Sync>);

impl TextCleaner {
    /// Creates a cleaner from a function that returns a text without its secrets.
    pub fn new(clean: impl Fn(&str) -> String + Send + Sync + 'static) -> TextCleaner {
        TextCleaner(Arc::new(clean))
    }

    /// Removes these keys as well.
    #[must_use]
    pub fn without_keys(&self, keys: Vec<String>) -> TextCleaner {
        let cleaner = self.clone();
        TextCleaner::new(move |text| {
            keys.iter().fold(cleaner.text(text), |text, key| text.replace(key.as_str(), "[key]"))
        })
    }

    /// Cleans a text.
    pub fn text(&self, text: &str) -> String {
        (self.0)(text)
    }

    /// Cleans all texts of a value, its keys included.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                members.iter().map(|(key, value)| (self.text(key), self.value(value))).collect()
            }
            value => value.clone(),
        }
    }
}

impl Default for TextCleaner {
    /// A cleaner for texts without secrets.
    fn default() -> Self {
        TextCleaner::new(str::to_owned)
    }
}

impl fmt::Debug for TextCleaner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TextCleaner")
    }
}
