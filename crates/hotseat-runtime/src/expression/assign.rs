//! Assigns a value at a path.

use serde_json::{Map, Value};

/// Sets `value` at a dotted path of `root`. Values on the path that are not objects are replaced by objects.
pub fn set_at_path(root: &mut Value, path: &str, value: Value) {
    let mut place = root;
    for name in path_names(path) {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(members) = place else { return };
        place = members.entry(name.to_string()).or_insert(Value::Null);
    }
    *place = value;
}

/// Returns the names of a dotted path.
pub(crate) fn path_names(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|name| !name.is_empty() && *name != "$")
}
