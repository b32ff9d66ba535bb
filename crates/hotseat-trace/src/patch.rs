//! JSON Patch (RFC 6902), applied in place and within bounds: a few bytes of operations must make neither a document
//! that nobody can walk nor one that fills the memory.

use serde_json::Value;

/// The most that values may be nested in what an operation puts into a document.
const MOST_DEPTH: usize = 60;
/// How many bytes operations may copy, move or shift within documents, over all patches of one allowance.
const MOST_COPIED: usize = 64 * 1024 * 1024;
/// What a value takes in memory beside its texts, in bytes.
const VALUE: usize = 72;

/// Bounds what patches may copy within the documents of one conversation.
#[derive(Debug, Clone)]
pub struct PatchAllowance {
    left: usize,
}

impl Default for PatchAllowance {
    fn default() -> Self {
        PatchAllowance { left: MOST_COPIED }
    }
}

impl PatchAllowance {
    fn spend(&mut self, bytes: usize) -> Result<(), String> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                let most = MOST_COPIED / (1024 * 1024);
                Err(format!("patches of this conversation copy or move more than {most} MB"))
            }
        }
    }

    /// Spends what a value takes, and returns how deeply it is nested.
    fn weigh(&mut self, value: &Value) -> Result<usize, String> {
        match value {
            Value::String(text) => self.spend(VALUE + text.len())?,
            Value::Null | Value::Bool(_) | Value::Number(_) => self.spend(VALUE)?,
            Value::Array(values) => {
                self.spend(VALUE)?;
                return values.iter().try_fold(1, |most, value| Ok(most.max(1 + self.weigh(value)?)));
            }
            Value::Object(members) => {
                self.spend(VALUE)?;
                return members.iter().try_fold(1, |most, (key, value)| {
                    self.spend(key.len())?;
                    Ok(most.max(1 + self.weigh(value)?))
                });
            }
        }
        Ok(0)
    }
}

/// Applies a patch to a document: all of it, or nothing.
///
/// # Errors
/// When an operation does not fit the document, or would nest, copy or move too much. The words name the operation.
pub fn apply_patch(
    document: &mut Value,
    patch: &Value,
    allowance: &mut PatchAllowance,
) -> Result<(), String> {
    let Value::Array(operations) = patch else { return Err("a patch is a list of operations".to_string()) };
    let mut patching = Patching { document, allowance, undo: Vec::new() };
    for (place, operation) in operations.iter().enumerate() {
        if let Err(words) = patching.apply(operation) {
            patching.roll_back();
            let name = operation.get("op").and_then(Value::as_str).unwrap_or("without `op`");
            let name: String = name.chars().take(20).collect();
            return Err(format!("operation {} ({name}): {words}", place + 1));
        }
    }
    Ok(())
}

/// A patch that is being applied.
struct Patching<'a> {
    document: &'a mut Value,
    allowance: &'a mut PatchAllowance,
    /// What takes back what was done, in the order in which it was done.
    undo: Vec<Undo>,
}

/// How a change is taken back.
enum Undo {
    /// The whole document was another one.
    Document(Value),
    /// The parent at this pointer had this value at this place, or none.
    Child(Pointer, String, Option<Value>),
    /// The list at this pointer gained an element there.
    Gained(Pointer, usize),
    /// The list at this pointer lost its element there.
    Lost(Pointer, usize, Value),
}

/// The names of the members and elements from the root of a document to a place in it.
type Pointer = Vec<String>;

impl Patching<'_> {
    fn apply(&mut self, operation: &Value) -> Result<(), String> {
        let path = pointer(operation, "path")?;
        let value = || operation.get("value").ok_or_else(|| "`value` is missing".to_string());
        match operation.get("op").and_then(Value::as_str) {
            Some("add") => {
                let value = value()?;
                fits(&path, depth(value))?;
                self.add(path, value.clone())
            }
            Some("remove") => self.remove(path).map(drop),
            Some("replace") => {
                let value = value()?;
                fits(&path, depth(value))?;
                self.replace(path, value.clone())
            }
            Some("copy") => {
                let from = pointer(operation, "from")?;
                let source = find(self.document, &from)?;
                fits(&path, self.allowance.weigh(source)?)?;
                let copied = source.clone();
                self.add(path, copied)
            }
            Some("move") => {
                let from = pointer(operation, "from")?;
                if path.len() > from.len() && path.starts_with(&from) {
                    return Err("a value cannot be moved into itself".to_string());
                }
                fits(&path, self.allowance.weigh(find(self.document, &from)?)?)?;
                if path == from {
                    return Ok(());
                }
                let moved = self.remove(from)?;
                self.add(path, moved)
            }
            Some("test") => match find(self.document, &path)? == value()? {
                true => Ok(()),
                false => Err("the document has another value there".to_string()),
            },
            Some(_) => Err("no such operation".to_string()),
            None => Err("`op` is missing".to_string()),
        }
    }

    fn add(&mut self, mut path: Pointer, value: Value) -> Result<(), String> {
        let Some(last) = path.pop() else {
            let before = std::mem::replace(self.document, value);
            self.undo.push(Undo::Document(before));
            return Ok(());
        };
        match find_mut(self.document, &path)? {
            Value::Object(members) => {
                let before = members.insert(last.clone(), value);
                self.undo.push(Undo::Child(path, last, before));
            }
            Value::Array(values) => {
                let place = if last == "-" { values.len() } else { index(&last)? };
                if place > values.len() {
                    return Err(format!("the list has {} elements", values.len()));
                }
                self.allowance.spend((values.len() - place) / 4)?;
                values.insert(place, value);
                self.undo.push(Undo::Gained(path, place));
            }
            _ => return Err(NOWHERE.to_string()),
        }
        Ok(())
    }

    fn replace(&mut self, mut path: Pointer, value: Value) -> Result<(), String> {
        let before = std::mem::replace(find_mut(self.document, &path)?, value);
        self.undo.push(match path.pop() {
            Some(last) => Undo::Child(path, last, Some(before)),
            None => Undo::Document(before),
        });
        Ok(())
    }

    /// Takes a value out. What takes that back holds another one, so that a value is in one place only.
    fn remove(&mut self, mut path: Pointer) -> Result<Value, String> {
        let Some(last) = path.pop() else { return Err("the whole document cannot be removed".to_string()) };
        match find_mut(self.document, &path)? {
            Value::Object(members) => {
                let value = members.remove(&last).ok_or(NOWHERE)?;
                self.undo.push(Undo::Child(path, last, Some(value.clone())));
                Ok(value)
            }
            Value::Array(values) => {
                let place = index(&last)?;
                if place >= values.len() {
                    return Err(format!("the list has {} elements", values.len()));
                }
                self.allowance.spend((values.len() - place) / 4)?;
                let value = values.remove(place);
                self.undo.push(Undo::Lost(path, place, value.clone()));
                Ok(value)
            }
            _ => Err(NOWHERE.to_string()),
        }
    }

    fn roll_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Document(before) => *self.document = before,
                Undo::Child(parent, last, before) => match (find_mut(self.document, &parent), before) {
                    (Ok(Value::Object(members)), Some(before)) => drop(members.insert(last, before)),
                    (Ok(Value::Object(members)), None) => drop(members.remove(&last)),
                    (Ok(Value::Array(values)), Some(before)) => {
                        if let Some(value) = index(&last).ok().and_then(|place| values.get_mut(place)) {
                            *value = before;
                        }
                    }
                    _ => {}
                },
                Undo::Gained(parent, place) => {
                    if let Ok(Value::Array(values)) = find_mut(self.document, &parent) {
                        values.remove(place);
                    }
                }
                Undo::Lost(parent, place, value) => {
                    if let Ok(Value::Array(values)) = find_mut(self.document, &parent) {
                        values.insert(place, value);
                    }
                }
            }
        }
    }
}

/// The error of a pointer to what is not there.
const NOWHERE: &str = "the document has no such place";

/// Whether a value that is nested so deeply may stand at a place.
fn fits(path: &Pointer, depth: usize) -> Result<(), String> {
    match path.len() + depth {
        deep if deep > MOST_DEPTH => {
            Err(format!("the document would be nested {deep} deep, and {MOST_DEPTH} is the most"))
        }
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

/// A member of an operation that is a JSON Pointer (RFC 6901).
fn pointer(operation: &Value, member: &str) -> Result<Pointer, String> {
    let Some(text) = operation.get(member).and_then(Value::as_str) else {
        return Err(format!("`{member}` is missing or no text"));
    };
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let Some(names) = text.strip_prefix('/') else {
        return Err(format!("`{member}` is no pointer: it does not begin with a slash"));
    };
    // One name more than any place has is enough to know that there is none.
    let names: Pointer = names.split('/').take(MOST_DEPTH + 1).map(unescaped).collect::<Result<_, _>>()?;
    if names.len() > MOST_DEPTH { Err(NOWHERE.to_string()) } else { Ok(names) }
}

fn unescaped(name: &str) -> Result<String, String> {
    let mut rest = name.split('~');
    let first = rest.next().unwrap_or("").to_string();
    rest.try_fold(first, |name, part| match (part.strip_prefix('0'), part.strip_prefix('1')) {
        (Some(part), _) => Ok(name + "~" + part),
        (_, Some(part)) => Ok(name + "/" + part),
        _ => Err("in a pointer `~0` or `~1` stands for `~` or `/`".to_string()),
    })
}

/// A place in a list as it is written in a pointer: without a sign and leading zeros.
fn index(name: &str) -> Result<usize, String> {
    let plain = name == "0" || (!name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit()));
    match name.parse() {
        Ok(place) if plain => Ok(place),
        _ => Err("that is no place in a list".to_string()),
    }
}

fn find<'v>(document: &'v Value, path: &[String]) -> Result<&'v Value, String> {
    let found = path.iter().try_fold(document, |value, name| match value {
        Value::Object(members) => members.get(name),
        Value::Array(values) => values.get(index(name).ok()?),
        _ => None,
    });
    found.ok_or_else(|| NOWHERE.to_string())
}

fn find_mut<'v>(document: &'v mut Value, path: &[String]) -> Result<&'v mut Value, String> {
    let found = path.iter().try_fold(document, |value, name| match value {
        Value::Object(members) => members.get_mut(name),
        Value::Array(values) => values.get_mut(index(name).ok()?),
        _ => None,
    });
    found.ok_or_else(|| NOWHERE.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(mut document: Value, patch: &Value) -> Result<Value, (String, Value)> {
        match apply_patch(&mut document, patch, &mut PatchAllowance::default()) {
            Ok(()) => Ok(document),
            Err(words) => Err((words, document)),
        }
    }

    #[test]
    fn operations_do_what_the_standard_says() {
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
        ] {
            assert_eq!(patched(document, &patch), Ok(expected), "{patch}");
        }
    }

    #[test]
    fn a_patch_that_fails_leaves_everything_as_it_was() {
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
            json!({"op": "remove", "path": ""}),
            json!({"path": ""}),
            json!(7),
        ] {
            for many in 0..=changes.len() {
                let mut patch = changes[..many].to_vec();
                patch.push(broken.clone());
                let (words, after) = patched(document.clone(), &Value::Array(patch)).unwrap_err();
                assert_eq!(after, document, "{broken} behind {many} changes");
                assert!(words.starts_with(&format!("operation {}", many + 1)), "{words}");
            }
        }
    }

    #[test]
    fn nothing_nests_a_document_too_deeply() {
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
            let (words, after) = patched(document.clone(), &patch).unwrap_err();
            assert!(depth(&after) <= MOST_DEPTH + 1 && after == document, "{patch}");
            assert!(words.contains("nested") || words.contains("no such place"), "{words}");
        }
    }

    #[test]
    fn what_patches_copy_and_move_is_bounded_over_all_of_them() {
        let growing =
            json!([{"op": "copy", "from": "", "path": "/b"}, {"op": "replace", "path": "/a", "value": []}]);
        let doubling: Vec<Value> =
            (0..40).map(|n| json!({"op": "copy", "from": "/a", "path": format!("/a/{n}")})).collect();
        let (words, _) = patched(json!({"a": {"x": "y".repeat(1000)}}), &Value::Array(doubling)).unwrap_err();
        assert!(words.contains("copy or move more than 64 MB"), "{words}");

        let mut allowance = PatchAllowance::default();
        let big = json!({"a": "x".repeat(1_000_000), "b": null});
        let applied =
            (0..100).filter(|_| apply_patch(&mut big.clone(), &growing, &mut allowance).is_ok()).count();
        assert!((60..70).contains(&applied), "{applied}");

        // A list that is shifted again and again.
        let mut list = json!(vec![0; 100_000]);
        let shift = json!([{"op": "remove", "path": "/0"}]);
        let mut allowance = PatchAllowance { left: 1_000_000 };
        let shifted = (0..100).filter(|_| apply_patch(&mut list, &shift, &mut allowance).is_ok()).count();
        assert_eq!(shifted, 40);
    }
}
