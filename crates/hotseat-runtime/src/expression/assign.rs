//! Assigns a value at a path.

use serde_json::{Map, Value};

/// Sets `value` at a dotted path of `root`. Values on the path that are not objects are replaced by objects.
pub fn set_at_path(root: &mut Value, path: &str, value: Value) {
    let mut place = root;
    for name in path.split('.').filter(|name| !name.is_empty() && *name != "$") {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(members) = place else { return };
        place = members.entry(name.to_string()).or_insert(Value::Null);
    }
    *place = value;
}
