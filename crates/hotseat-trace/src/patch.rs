//! JSON Patch (RFC 6902), applied in place and within limits: a small patch must not create a document that
//! is too deep to traverse or that exhausts memory.

use serde_json::Value;

use crate::json_equal;

/// Maximum number of characters shown of the name of an operation.
const MAX_NAME_CHARS: usize = 20;

/// Maximum nesting depth of a document after an operation.
const MAX_DEPTH: usize = 60;
/// Maximum number of bytes that operations may copy, move or shift, over all patches of one budget.
const MAX_COPIED_BYTES: usize = 64 * 1024 * 1024;
/// Memory of a JSON value in bytes, excluding its text.
const VALUE_BYTES: usize = 72;

/// Error of a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum PatchError {
    #[error("a patch must be a list of operations")]
    NoList,
    #[error("operation {number} ({name}): {source}")]
    Operation { number: usize, name: String, source: PatchProblem },
}

/// Problem of one operation of a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum PatchProblem {
    #[error("the patches of this conversation copied or moved more than {} MB", MAX_COPIED_BYTES / (1024 * 1024))]
    CopyLimit,
    #[error("the document would be nested {0} levels deep, but at most {MAX_DEPTH} is allowed")]
    TooDeep(usize),
    #[error("`op` is missing")]
    NoOperation,
    #[error("unknown operation")]
    UnknownOperation,
    #[error("`value` is missing")]
    NoValue,
    #[error("`{0}` is missing or not a string")]
    NoPointer(&'static str),
    #[error("`{0}` is not a JSON Pointer: it must begin with a slash")]
    NoSlash(&'static str),
    #[error("invalid escape in a JSON Pointer: write `~0` for `~` and `~1` for `/`")]
    InvalidEscape,
    #[error("not a valid list index")]
    InvalidIndex,
    #[error("the list has {0} elements")]
    ListEnd(usize),
    #[error("the path does not exist in the document")]
    NoSuchPlace,
    #[error("the document has a different value there")]
    Different,
    #[error("a value cannot be moved into itself")]
    MoveIntoItself,
}

/// Limits the bytes that patches copy within the documents of one conversation.
#[derive(Debug, Clone)]
pub struct PatchBudget {
    remaining: usize,
    exceeded: Option<PatchProblem>,
}

impl Default for PatchBudget {
    fn default() -> Self {
        PatchBudget { remaining: MAX_COPIED_BYTES, exceeded: None }
    }
}

impl PatchBudget {
    /// Returns the first limit that a patch exceeded. The documents since then are not those of the agent.
    pub fn exceeded(&self) -> Option<&PatchProblem> {
        self.exceeded.as_ref()
    }

    fn charge(&mut self, bytes: usize) -> Result<(), PatchProblem> {
        match self.remaining.checked_sub(bytes) {
            Some(left) => {
                self.remaining = left;
                Ok(())
            }
            None => Err(PatchProblem::CopyLimit),
        }
    }

    /// Charges the size of a value and returns its nesting depth.
    fn charge_value(&mut self, value: &Value) -> Result<usize, PatchProblem> {
        match value {
            Value::String(text) => self.charge(VALUE_BYTES + text.len())?,
            Value::Null | Value::Bool(_) | Value::Number(_) => self.charge(VALUE_BYTES)?,
            Value::Array(values) => {
                self.charge(VALUE_BYTES)?;
                return values.iter().try_fold(1, |most, value| Ok(most.max(1 + self.charge_value(value)?)));
            }
            Value::Object(members) => {
                self.charge(VALUE_BYTES)?;
                return members.iter().try_fold(1, |most, (key, value)| {
                    self.charge(key.len())?;
                    Ok(most.max(1 + self.charge_value(value)?))
                });
            }
        }
        Ok(0)
    }
}

/// Applies a patch to a document, completely or not at all.
///
/// # Errors
/// If an operation does not apply, or would nest, copy or move too much. The message names the operation.
pub fn apply_patch(
    document: &mut Value,
    patch: &Value,
    allowance: &mut PatchBudget,
) -> Result<(), PatchError> {
    let Value::Array(operations) = patch else {
        return Err(PatchError::NoList);
    };
    let mut patching = PatchApplication { document, allowance, undo: Vec::new() };
    for (place, operation) in operations.iter().enumerate() {
        if let Err(source) = patching.apply(operation) {
            patching.roll_back();
            if matches!(source, PatchProblem::CopyLimit | PatchProblem::TooDeep(_)) {
                patching.allowance.exceeded.get_or_insert_with(|| source.clone());
            }
            let name = operation.get("op").and_then(Value::as_str).unwrap_or("without `op`");
            let name = match name.char_indices().nth(MAX_NAME_CHARS) {
                Some((end, _)) => format!("{}…", &name[..end]),
                None => name.to_string(),
            };
            return Err(PatchError::Operation { number: place + 1, name, source });
        }
    }
    Ok(())
}

/// True if a patch applies to no document: it is not a list of the operations of RFC 6902 with their members.
pub fn is_malformed_patch(patch: &Value) -> bool {
    let is_malformed = |operation: &Value| {
        // A pointer that is too long is a pointer.
        let is_pointer =
            |member| matches!(parse_pointer(operation, member), Ok(_) | Err(PatchProblem::NoSuchPlace));
        let has_members = match operation.get("op").and_then(Value::as_str) {
            Some("add" | "replace" | "test") => operation.get("value").is_some(),
            Some("copy" | "move") => is_pointer("from"),
            Some("remove") => true,
            Some(_) | None => false,
        };
        !has_members || !is_pointer("path")
    };
    patch.as_array().is_none_or(|operations| operations.iter().any(is_malformed))
}

/// A patch in progress.
struct PatchApplication<'a> {
    document: &'a mut Value,
    allowance: &'a mut PatchBudget,
    /// Steps that revert the changes so far, in order of the changes.
    undo: Vec<UndoStep>,
}

/// A step that reverts one change.
enum UndoStep {
    /// Restores the whole document.
    Document(Value),
    /// Restores the old value of a child, or removes the child if there was none.
    Child(Pointer, String, Option<Value>),
    /// Removes an element that was inserted into an array.
    Inserted(Pointer, usize),
    /// Inserts an element that was removed from an array.
    Removed(Pointer, usize, Value),
}

/// Keys and indices from the root of a document to a value.
type Pointer = Vec<String>;

impl PatchApplication<'_> {
    fn apply(&mut self, operation: &Value) -> Result<(), PatchProblem> {
        let path = parse_pointer(operation, "path")?;
        let value = || operation.get("value").ok_or(PatchProblem::NoValue);
        match operation.get("op").and_then(Value::as_str) {
            Some("add") => {
                let value = value()?;
                check_depth(&path, depth(value))?;
                self.add(path, value.clone())
            }
            Some("remove") => self.remove(path).map(drop),
            Some("replace") => {
                let value = value()?;
                check_depth(&path, depth(value))?;
                self.replace(path, value.clone())
            }
            Some("copy") => {
                let from = parse_pointer(operation, "from")?;
                let source = find(self.document, &from)?;
                check_depth(&path, self.allowance.charge_value(source)?)?;
                let copied = source.clone();
                self.add(path, copied)
            }
            Some("move") => {
                let from = parse_pointer(operation, "from")?;
                if path.len() > from.len() && path.starts_with(&from) {
                    return Err(PatchProblem::MoveIntoItself);
                }
                check_depth(&path, self.allowance.charge_value(find(self.document, &from)?)?)?;
                if path == from {
                    return Ok(());
                }
                let moved = self.remove(from)?;
                self.add(path, moved)
            }
            Some("test") => match json_equal(find(self.document, &path)?, value()?) {
                true => Ok(()),
                false => Err(PatchProblem::Different),
            },
            Some(_) => Err(PatchProblem::UnknownOperation),
            None => Err(PatchProblem::NoOperation),
        }
    }

    fn add(&mut self, mut path: Pointer, value: Value) -> Result<(), PatchProblem> {
        let Some(last) = path.pop() else {
            let before = std::mem::replace(self.document, value);
            self.undo.push(UndoStep::Document(before));
            return Ok(());
        };
        match find_mut(self.document, &path)? {
            Value::Object(members) => {
                let before = members.insert(last.clone(), value);
                self.undo.push(UndoStep::Child(path, last, before));
            }
            Value::Array(values) => {
                let place = if last == "-" { values.len() } else { parse_index(&last)? };
                if place > values.len() {
                    return Err(PatchProblem::ListEnd(values.len()));
                }
                self.allowance.charge((values.len() - place) / 4)?;
                values.insert(place, value);
                self.undo.push(UndoStep::Inserted(path, place));
            }
            _ => return Err(PatchProblem::NoSuchPlace),
        }
        Ok(())
    }

    fn replace(&mut self, mut path: Pointer, value: Value) -> Result<(), PatchProblem> {
        let before = std::mem::replace(find_mut(self.document, &path)?, value);
        self.undo.push(match path.pop() {
            Some(last) => UndoStep::Child(path, last, Some(before)),
            None => UndoStep::Document(before),
        });
        Ok(())
    }

    /// Removes and returns a value; null remains of a whole document. The undo step holds a copy, so no value is shared.
    fn remove(&mut self, mut path: Pointer) -> Result<Value, PatchProblem> {
        let Some(last) = path.pop() else {
            let value = self.document.take();
            self.undo.push(UndoStep::Document(value.clone()));
            return Ok(value);
        };
        match find_mut(self.document, &path)? {
            Value::Object(members) => {
                let value = members.remove(&last).ok_or(PatchProblem::NoSuchPlace)?;
                self.undo.push(UndoStep::Child(path, last, Some(value.clone())));
                Ok(value)
            }
            Value::Array(values) => {
                let place = parse_index(&last)?;
                if place >= values.len() {
                    return Err(PatchProblem::ListEnd(values.len()));
                }
                self.allowance.charge((values.len() - place) / 4)?;
                let value = values.remove(place);
                self.undo.push(UndoStep::Removed(path, place, value.clone()));
                Ok(value)
            }
            _ => Err(PatchProblem::NoSuchPlace),
        }
    }

    fn roll_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            match undo {
                UndoStep::Document(before) => *self.document = before,
                UndoStep::Child(parent, last, before) => match (find_mut(self.document, &parent), before) {
                    (Ok(Value::Object(members)), Some(before)) => drop(members.insert(last, before)),
                    (Ok(Value::Object(members)), None) => drop(members.remove(&last)),
                    (Ok(Value::Array(values)), Some(before)) => {
                        if let Some(value) = parse_index(&last).ok().and_then(|place| values.get_mut(place)) {
                            *value = before;
                        }
                    }
                    _ => {}
                },
                UndoStep::Inserted(parent, place) => {
                    if let Ok(Value::Array(values)) = find_mut(self.document, &parent) {
                        values.remove(place);
                    }
                }
                UndoStep::Removed(parent, place, value) => {
                    if let Ok(Value::Array(values)) = find_mut(self.document, &parent) {
                        values.insert(place, value);
                    }
                }
            }
        }
    }
}

/// Checks that a value of the given depth may be placed at a path.
fn check_depth(path: &Pointer, depth: usize) -> Result<(), PatchProblem> {
    match path.len() + depth {
        deep if deep > MAX_DEPTH => Err(PatchProblem::TooDeep(deep)),
        _ => Ok(()),
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Parses a JSON Pointer (RFC 6901) from a member of an operation.
fn parse_pointer(operation: &Value, member: &'static str) -> Result<Pointer, PatchProblem> {
    let Some(text) = operation.get(member).and_then(Value::as_str) else {
        return Err(PatchProblem::NoPointer(member));
    };
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let Some(names) = text.strip_prefix('/') else {
        return Err(PatchProblem::NoSlash(member));
    };
    // A pointer longer than the maximum depth cannot match; the rest need not be parsed.
    let names: Pointer =
        names.split('/').take(MAX_DEPTH + 1).map(unescape_token).collect::<Result<_, _>>()?;
    if names.len() > MAX_DEPTH { Err(PatchProblem::NoSuchPlace) } else { Ok(names) }
}

fn unescape_token(name: &str) -> Result<String, PatchProblem> {
    let mut rest = name.split('~');
    let first = rest.next().unwrap_or("").to_string();
    rest.try_fold(first, |name, part| match (part.strip_prefix('0'), part.strip_prefix('1')) {
        (Some(part), _) => Ok(name + "~" + part),
        (_, Some(part)) => Ok(name + "/" + part),
        _ => Err(PatchProblem::InvalidEscape),
    })
}

/// Parses an array index of a pointer: digits without sign or leading zeros.
fn parse_index(name: &str) -> Result<usize, PatchProblem> {
    let plain = name == "0" || (!name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit()));
    match name.parse() {
        Ok(place) if plain => Ok(place),
        _ => Err(PatchProblem::InvalidIndex),
    }
}

fn find<'v>(document: &'v Value, path: &[String]) -> Result<&'v Value, PatchProblem> {
    let found = path.iter().try_fold(document, |value, name| match value {
        Value::Object(members) => members.get(name),
        Value::Array(values) => values.get(parse_index(name).ok()?),
        _ => None,
    });
    found.ok_or(PatchProblem::NoSuchPlace)
}

fn find_mut<'v>(document: &'v mut Value, path: &[String]) -> Result<&'v mut Value, PatchProblem> {
    let found = path.iter().try_fold(document, |value, name| match value {
        Value::Object(members) => members.get_mut(name),
        Value::Array(values) => values.get_mut(parse_index(name).ok()?),
        _ => None,
    });
    found.ok_or(PatchProblem::NoSuchPlace)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn apply_to(mut document: Value, patch: &Value) -> Result<Value, (String, Value)> {
        match apply_patch(&mut document, patch, &mut PatchBudget::default()) {
            Ok(()) => Ok(document),
            Err(error) => Err((error.to_string(), document)),
        }
    }

    #[test]
    fn operations_follow_rfc_6902() {
        for (document, patch, expected) in [
            (json!({"a": 1}), json!([{"op": "add", "path": "/b", "value": [1]}]), json!({"a": 1, "b": [1]})),
            (json!([1, 2]), json!([{"op": "add", "path": "/1", "value": 9}]), json!([1, 9, 2])),
            (json!([1]), json!([{"op": "add", "path": "/-", "value": 2}]), json!([1, 2])),
            (json!([1, 2]), json!([{"op": "remove", "path": "/0"}]), json!([2])),
            (json!({"a": [1]}), json!([{"op": "replace", "path": "/a/0", "value": 2}]), json!({"a": [2]})),
            (json!({"a": 1}), json!([{"op": "replace", "path": "", "value": 2}]), json!(2)),
            (json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/b"}]), json!({"b": 1})),
            (json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/a"}]), json!({"a": 1})),
            (json!({"a": {"b": 1}}), json!([{"op": "move", "from": "/a/b", "path": "/a"}]), json!({"a": 1})),
            (
                json!({"a": 1}),
                json!([{"op": "copy", "from": "", "path": "/b"}]),
                json!({"a": 1, "b": {"a": 1}}),
            ),
            (json!({"a/b~": 1}), json!([{"op": "test", "path": "/a~1b~0", "value": 1}]), json!({"a/b~": 1})),
            (json!({"": 1}), json!([{"op": "remove", "path": "/"}]), json!({})),
            (json!({"a": 1}), json!([{"op": "remove", "path": ""}]), Value::Null),
            (
                json!({"a": 1}),
                json!([{"op": "remove", "path": ""}, {"op": "add", "path": "", "value": {"b": 2}}]),
                json!({"b": 2}),
            ),
            (
                json!({"a": [1]}),
                json!([{"op": "test", "path": "", "value": {"a": [1.0]}}]),
                json!({"a": [1]}),
            ),
        ] {
            assert_eq!(apply_to(document, &patch), Ok(expected), "{patch}");
        }
    }

    #[test]
    fn failed_patch_is_rolled_back() {
        let changes = [
            json!({"op": "add", "path": "/l/0", "value": 7}),
            json!({"op": "replace", "path": "/l/1", "value": {"n": 1}}),
            json!({"op": "remove", "path": "/l/0"}),
            json!({"op": "move", "from": "/l/0", "path": "/o/m"}),
            json!({"op": "copy", "from": "/o", "path": "/o/c"}),
            json!({"op": "add", "path": "/o", "value": 3}),
            json!({"op": "remove", "path": "/o"}),
            json!({"op": "replace", "path": "", "value": []}),
            json!({"op": "add", "path": "/-", "value": 1}),
            json!({"op": "remove", "path": ""}),
        ];
        let document = json!({"l": [1, 2, 3], "o": {"x": "y"}});
        for broken in [
            json!({"op": "test", "path": "", "value": 0}),
            json!({"op": "remove", "path": "/nowhere"}),
            json!({"op": "shake", "path": ""}),
            json!({"op": "add", "path": ""}),
            json!({"op": "add", "path": "x", "value": 1}),
            json!({"op": "add", "path": "/~2", "value": 1}),
            json!({"op": "add", "path": "/l/01", "value": 1}),
            json!({"path": ""}),
            json!(7),
        ] {
            for many in 0..=changes.len() {
                let mut patch = changes[..many].to_vec();
                patch.push(broken.clone());
                let (words, after) = apply_to(document.clone(), &Value::Array(patch)).unwrap_err();
                assert_eq!(after, document, "{broken} behind {many} changes");
                assert!(words.starts_with(&format!("operation {}", many + 1)), "{words}");
            }
        }
    }

    #[test]
    fn nesting_depth_is_limited() {
        let mut deeper = vec![json!({"op": "add", "path": "/a", "value": {}})];
        let mut path = "/a".to_string();
        for _ in 0..13 {
            path.push_str("/a");
            deeper.push(json!({"op": "copy", "from": "", "path": path}));
        }
        let wrapped = |how: &str| {
            json!([
                {"op": how, "from": "/deep", "path": "/x/y"}, {"op": "test", "path": "/x", "value": 0}
            ])
        };
        let mut deep = json!({});
        (0..59).for_each(|_| deep = json!({"d": deep}));
        for (document, patch) in [
            (json!({"a": {}}), Value::Array(deeper)),
            (json!({"deep": deep, "x": {}}), wrapped("copy")),
            (json!({"deep": deep, "x": {}}), wrapped("move")),
            (json!({"x": {}}), json!([{"op": "add", "path": "/x/y", "value": deep}])),
            (json!({"x": {"y": 0}}), json!([{"op": "replace", "path": "/x/y", "value": deep}])),
        ] {
            let (words, after) = apply_to(document.clone(), &patch).unwrap_err();
            assert!(depth(&after) <= MAX_DEPTH + 1 && after == document, "{patch}");
            assert!(words.contains("nested") || words.contains("does not exist"), "{words}");
        }
    }

    #[test]
    fn copied_bytes_are_limited_across_patches() {
        let growing =
            json!([{"op": "copy", "from": "", "path": "/b"}, {"op": "replace", "path": "/a", "value": []}]);
        let doubling: Vec<Value> =
            (0..40).map(|n| json!({"op": "copy", "from": "/a", "path": format!("/a/{n}")})).collect();
        let (words, _) =
            apply_to(json!({"a": {"x": "y".repeat(1000)}}), &Value::Array(doubling)).unwrap_err();
        assert!(words.contains("copied or moved more than 64 MB"), "{words}");

        let mut allowance = PatchBudget::default();
        let big = json!({"a": "x".repeat(1_000_000), "b": null});
        let applied =
            (0..100).filter(|_| apply_patch(&mut big.clone(), &growing, &mut allowance).is_ok()).count();
        assert!((60..70).contains(&applied), "{applied}");

        // An array that is shifted repeatedly.
        let mut list = json!(vec![0; 100_000]);
        let shift = json!([{"op": "remove", "path": "/0"}]);
        let mut allowance = PatchBudget { remaining: 1_000_000, ..PatchBudget::default() };
        let shifted = (0..100).filter(|_| apply_patch(&mut list, &shift, &mut allowance).is_ok()).count();
        assert_eq!(shifted, 40);
        assert_eq!(allowance.exceeded(), Some(&PatchProblem::CopyLimit));
    }
}
