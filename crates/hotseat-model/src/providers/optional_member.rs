//! Members of a reply that say nothing about what the model said: its name and its usage.

use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Deserializer};
use serde_json::Value;

/// Reads such a member. One of another form is absent, so it does not spoil the reply.
pub(super) fn read_or_absent<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}
