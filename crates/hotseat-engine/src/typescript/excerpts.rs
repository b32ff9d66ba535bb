//! The code that one test of a file needs: the file without its other tests.
//!
//! Every test runs in an engine of its own, which first runs its file. Without the other tests this costs the same
//! however many tests the file has. A declaration is left out only if that changes nothing else: a call such as
//! `it("name", () => { … })`, whose arguments have no effects and which ran exactly once, a group of such calls and of
//! hooks, or an exported test function that nothing names. The called name must be an import of `hotseat` that no other
//! declaration of the file hides. All others stay.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Where a file declares a test or a group.
#[derive(Debug, Clone)]
pub struct Declaration<'a> {
    pub kind: DeclarationKind,
    /// The offset of a call that the engine reports, if it is in this file.
    pub offset: Option<usize>,
    /// The name of an exported function.
    pub name: &'a str,
    /// The source text of the function.
    pub source: &'a str,
}

/// Kind of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclarationKind {
    /// A call with a function.
    Test,
    /// The same of a group.
    Group,
    /// The same of a function that runs before or after tests. It is left out with its group only.
    Hook,
    /// An exported test function.
    Function,
}

/// The code of a file, divided at the declarations that can be left out.
#[derive(Debug)]
pub struct TestExcerpts {
    code: String,
    root: Section,
    /// For each declaration its place in the code, if it can be left out.
    places: Vec<Option<usize>>,
    /// For each declaration the number of earlier tests that every excerpt contains.
    before: Vec<usize>,
}

/// A part of the code with declarations that can be left out.
#[derive(Debug)]
struct Section {
    range: Range<usize>,
    /// The part without these declarations. All other code keeps its line and column.
    rest: String,
    pieces: Vec<Piece>,
}

/// A declaration that can be left out, with the blanks and semicolons before it if the declaration there is left out too.
#[derive(Debug)]
struct Piece {
    range: Range<usize>,
    /// What replaces it in the rest of its section.
    replaced: Range<usize>,
    /// The part with the declarations of a group.
    inner: Option<Section>,
}

/// A declaration that was found in the code.
#[derive(Debug)]
struct FoundDeclaration {
    range: Range<usize>,
    kind: DeclarationKind,
    inner: Vec<FoundDeclaration>,
}

impl TestExcerpts {
    /// Divides the code of a file. `declarations` are in the order in which the file made them; `others` is the code of
    /// its imports. Returns `None` if no test can be left out.
    pub fn new(code: String, declarations: &[Declaration<'_>], others: &[&str]) -> Option<TestExcerpts> {
        let words =
            WordCounts::new(std::iter::once(code.as_str()).chain(others.iter().copied()), declarations);
        let mut calls: HashMap<usize, usize> = HashMap::new();
        for offset in declarations.iter().filter_map(|declaration| declaration.offset) {
            *calls.entry(offset).or_default() += 1;
        }
        let names = ImportedNames::new(&code);
        let mut found: Vec<(usize, Range<usize>)> = Vec::new();
        for (number, Declaration { kind, offset, name, source }) in declarations.iter().enumerate() {
            let ran_once = offset.filter(|offset| calls.get(offset) == Some(&1));
            let range = match kind {
                DeclarationKind::Test | DeclarationKind::Group => {
                    ran_once.and_then(|offset| removable_call(&code, offset, source, &names))
                }
                DeclarationKind::Hook => ran_once.and_then(|offset| hook_call(&code, offset, source, &names)),
                DeclarationKind::Function => {
                    words.is_named_once(name).then(|| exported_function(&code, source)).flatten()
                }
            };
            found.extend(range.map(|range| (number, range)));
        }
        found.sort_by_key(|(_, range)| (range.start, usize::MAX - range.end));
        let mut places = vec![None; declarations.len()];
        let nested = nest(&code, &mut found.into_iter().peekable(), code.len(), declarations, &mut places);
        if nested.iter().all(|found| found.kind == DeclarationKind::Hook) {
            return None;
        }
        let mut stays = 0;
        let before = declarations.iter().zip(&places).map(|(declaration, place)| {
            let before = stays;
            stays += usize::from(place.is_none() && declaration.kind == DeclarationKind::Test);
            before
        });
        let before = before.collect();
        let root = Section::new(&code, 0..code.len(), nested);
        Some(TestExcerpts { code, root, places, before })
    }

    /// Returns the code with one of the declarations, and without all others that can be left out.
    pub fn code_with(&self, declaration: usize) -> String {
        let mut text = String::with_capacity(self.root.rest.len() + 512);
        self.root.write(&self.code, self.places.get(declaration).copied().flatten(), &mut text);
        text
    }

    /// Returns the number of tests that [the code](TestExcerpts::code_with) of a declaration declares before it.
    pub fn tests_before(&self, declaration: usize) -> usize {
        self.before.get(declaration).copied().unwrap_or(0)
    }
}

impl Section {
    fn new(code: &str, range: Range<usize>, found: Vec<FoundDeclaration>) -> Section {
        let (mut rest, mut pieces) = (String::new(), Vec::<Piece>::with_capacity(found.len()));
        // End of the code that was copied or replaced, and the start of the group of neighbours that is being replaced.
        let (mut end, mut group) = (range.start, range.start);
        let mut before: Option<&str> = None;
        for FoundDeclaration { range: own, kind, inner } in found {
            // A hook stays as long as its group does.
            if kind == DeclarationKind::Hook {
                continue;
            }
            let filler = filler(kind);
            let gap = &code[end..own.start];
            let joins = before == Some(filler) && is_empty_code(gap) && gap.contains(['\n', '\r']);
            let from = if joins { end } else { own.start };
            if !joins {
                pad(&mut rest, code, group..end, &mut pieces, before);
                rest.push_str(gap);
                group = own.start;
            }
            let start = rest.len();
            if !joins {
                rest.push_str(filler);
            }
            rest.extend(code[from..own.end].chars().filter(|character| matches!(character, '\n' | '\r')));
            (end, before) = (own.end, Some(filler));
            let inner = (!inner.is_empty()).then(|| Section::new(code, own.clone(), inner));
            pieces.push(Piece { range: from..own.end, replaced: start..rest.len(), inner });
        }
        pad(&mut rest, code, group..end, &mut pieces, before);
        rest.push_str(&code[end..range.end]);
        Section { range, rest, pieces }
    }

    /// Writes the section with the declaration at `place`.
    fn write(&self, code: &str, place: Option<usize>, text: &mut String) {
        let piece = place.and_then(|place| {
            let number = self.pieces.partition_point(|piece| piece.range.end <= place);
            self.pieces.get(number).filter(|piece| piece.range.contains(&place))
        });
        let Some(piece) = piece else { return text.push_str(&self.rest) };
        text.push_str(&self.rest[..piece.replaced.start]);
        match &piece.inner {
            Some(inner) => {
                text.push_str(&code[piece.range.start..inner.range.start]);
                inner.write(code, place, text);
            }
            None => text.push_str(&code[piece.range.clone()]),
        }
        text.push_str(&self.rest[piece.replaced.end..]);
    }
}

/// Expression or statement in place of a declaration that is left out. A call is an expression without a value.
fn filler(kind: DeclarationKind) -> &'static str {
    if kind == DeclarationKind::Function { ";" } else { "void 0" }
}

/// Adds blanks after declarations that were replaced, so the code behind them keeps its column. They belong to the last
/// piece.
fn pad(rest: &mut String, code: &str, replaced: Range<usize>, pieces: &mut [Piece], filler: Option<&str>) {
    let (Some(filler), Some(last)) = (filler, pieces.last_mut()) else { return };
    let text = &code[replaced];
    let blanks = match text.rfind(['\n', '\r']) {
        Some(end) => text.len() - end - 1,
        None => text.len().saturating_sub(filler.len()),
    };
    rest.extend(std::iter::repeat_n(' ', blanks));
    last.replaced.end = rest.len();
}

/// Puts declarations into the groups that contain them. A group that contains anything else stays; what it contains
/// can still be left out.
fn nest(
    code: &str,
    found: &mut std::iter::Peekable<std::vec::IntoIter<(usize, Range<usize>)>>,
    end: usize,
    declarations: &[Declaration<'_>],
    places: &mut [Option<usize>],
) -> Vec<FoundDeclaration> {
    let mut all: Vec<FoundDeclaration> = Vec::new();
    while let Some((number, range)) = found.next_if(|(_, range)| range.start < end) {
        if range.end > end || all.last().is_some_and(|before| before.range.end > range.start) {
            continue;
        }
        let Declaration { kind, source, .. } = declarations[number];
        if kind == DeclarationKind::Group {
            let inner = nest(code, found, range.end, declarations, places);
            match contains_only(code, &range, source, &inner) {
                true => all.push(FoundDeclaration { range, kind, inner }),
                false => all.extend(inner),
            }
            continue;
        }
        if kind != DeclarationKind::Hook {
            places[number] = Some(range.start);
        }
        all.push(FoundDeclaration { range, kind, inner: Vec::new() });
    }
    all
}

/// Returns true if the function of a group consists of these declarations.
fn contains_only(code: &str, group: &Range<usize>, source: &str, inner: &[FoundDeclaration]) -> bool {
    let Some(start) = code[group.clone()].rfind(source).map(|at| group.start + at) else { return false };
    let Some(open) = source.find('{') else { return false };
    let is_plain =
        matches!(source[..open].split_whitespace().collect::<String>().as_str(), "()=>" | "function()");
    let mut at = start + open + 1;
    let end = start + source.len() - 1;
    let empty = |range: Range<usize>| code.get(range).is_some_and(is_empty_code);
    let gaps = inner.iter().all(|one| {
        let gap = empty(at..one.range.start);
        at = one.range.end;
        gap
    });
    is_plain && source.ends_with('}') && gaps && empty(at..end)
}

/// Returns the range of a call with a name, plain options and a function, such as `it("name", { tags: ["a"] }, () => { … })`.
fn removable_call(
    code: &str,
    offset: usize,
    source: &str,
    names: &ImportedNames<'_>,
) -> Option<Range<usize>> {
    let bytes = code.as_bytes();
    let (start, open) = called_import(code, offset, names)?;
    let name = skip_blank(code, open + 1)?;
    let mut at = skip_blank(code, text_end(code, name)?)?;
    at = skip_blank(code, at + usize::from(*bytes.get(at)? == b','))?;
    if bytes.get(at) == Some(&b'{') {
        at = skip_blank(code, plain_object_end(code, at)?)?;
        at = skip_blank(code, at + usize::from(*bytes.get(at)? == b','))?;
    }
    Some(start..call_end(code, at, source)?)
}

/// Returns the range of a call with a function, such as `before(() => { … })`.
fn hook_call(code: &str, offset: usize, source: &str, names: &ImportedNames<'_>) -> Option<Range<usize>> {
    let (start, open) = called_import(code, offset, names)?;
    Some(start..call_end(code, skip_blank(code, open + 1)?, source)?)
}

/// Returns the start and the parenthesis of a call of an import of `hotseat`, also with `.only` and `.skip`.
fn called_import(code: &str, offset: usize, names: &ImportedNames<'_>) -> Option<(usize, usize)> {
    // The engine reports the parenthesis.
    let is_open = code.as_bytes().get(offset) == Some(&b'(');
    let open = if is_open { offset } else { offset + code.get(offset..)?.find('(')? };
    let before = code[..open].trim_end();
    let marks = [".only", ".skip"].iter().find_map(|mark| before.strip_suffix(mark));
    let callee = marks.unwrap_or(before);
    let start = callee.trim_end_matches(is_word).len();
    let is_member = callee[..start].trim_end().ends_with(['.', '#', '@']);
    (!is_member && names.0.contains(&callee[start..])).then_some((start, open))
}

/// Returns the end of a call whose last argument is a function, and with which a statement ends.
fn call_end(code: &str, at: usize, source: &str) -> Option<usize> {
    if source.is_empty() || !code[at..].starts_with(source) {
        return None;
    }
    let bytes = code.as_bytes();
    let mut at = skip_blank(code, at + source.len())?;
    at = skip_blank(code, at + usize::from(*bytes.get(at)? == b','))?;
    (*bytes.get(at)? == b')' && ends_statement(code, at + 1)).then_some(at + 1)
}

/// The names by which a file calls functions of `hotseat`, without those that another declaration may hide.
struct ImportedNames<'a>(HashSet<&'a str>);

impl<'a> ImportedNames<'a> {
    fn new(code: &'a str) -> ImportedNames<'a> {
        let mut names = HashSet::new();
        let modules = ["\"hotseat\"", "'hotseat'"].into_iter().flat_map(|module| code.match_indices(module));
        for (at, _) in modules {
            let Some(clause) = import_clause(code, at) else { continue };
            for imported in code[clause.clone()].split(',') {
                let local = imported.rsplit_once(" as ").map_or(imported, |(_, local)| local).trim();
                if !local.is_empty() && local.chars().all(is_word) && !may_be_hidden(code, local, &clause) {
                    names.insert(local);
                }
            }
        }
        ImportedNames(names)
    }
}

/// Returns the part between the braces of `import { … } from` before a module name.
fn import_clause(code: &str, module: usize) -> Option<Range<usize>> {
    let before = code[..module].trim_end().strip_suffix("from")?.trim_end().strip_suffix('}')?;
    let open = before.rfind('{')?;
    before[..open].trim_end().ends_with("import").then_some(open + 1..before.len())
}

/// Returns true if the code may declare a name again, such as a parameter, or passes its value on. Texts and comments
/// count too.
fn may_be_hidden(code: &str, name: &str, clause: &Range<usize>) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + name.len()..]);
        if clause.contains(&at) || before.ends_with(is_word) || after.starts_with(is_word) {
            return false;
        }
        let (before, after) = (before.trim_end(), after.trim_start());
        let word = &before[before.trim_end_matches(is_word).len()..];
        let is_declared =
            matches!(word, "function" | "class" | "const" | "let" | "var") || before.ends_with('*');
        let is_element = before.ends_with(['(', ',', '{', '[', ':', '.', '/', '='])
            && (after.is_empty()
                || after.starts_with([')', ',', '=', '}', ']', ':', ';', '/', '|', '&', '?']));
        is_declared || is_element || after.starts_with("=>")
    })
}

fn exported_function(code: &str, source: &str) -> Option<Range<usize>> {
    let start = code.find(source).filter(|_| source.ends_with('}'))?;
    let before = code[..start].trim_end();
    let export = before.strip_suffix("export")?;
    (!export.ends_with(|last| is_word(last) || last == '.')).then_some(export.len()..start + source.len())
}

/// Returns true if a statement ends here, or the next one starts on another line.
fn ends_statement(code: &str, at: usize) -> bool {
    let Some(next) = skip_blank(code, at) else { return false };
    let new_line = code[at..next].contains(['\n', '\r']);
    let word: &str = code[next..].split(|character| !is_word(character)).next().unwrap_or_default();
    match code[next..].chars().next() {
        None | Some(';' | '}') => true,
        Some(_) => new_line && !matches!(word, "" | "in" | "instanceof"),
    }
}

/// Returns true if code contains only blanks, comments and semicolons.
fn is_empty_code(code: &str) -> bool {
    let mut at = 0;
    while let Some(next) = skip_blank(code, at) {
        match code[next..].chars().next() {
            None => return true,
            Some(';') => at = next + 1,
            Some(_) => return false,
        }
    }
    false
}

/// Skips blanks and comments. Returns `None` for a comment without an end.
fn skip_blank(code: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = code.get(at..)?;
        let text = rest.trim_start();
        at += rest.len() - text.len();
        match text.as_bytes() {
            [b'/', b'/', ..] => at += text.find(['\n', '\r']).unwrap_or(text.len()),
            [b'/', b'*', ..] => at += 2 + text[2..].find("*/")? + 2,
            _ => return Some(at),
        }
    }
}

/// Returns the end of a text literal without expressions.
fn text_end(code: &str, start: usize) -> Option<usize> {
    let bytes = code.as_bytes();
    let quote = *bytes.get(start).filter(|quote| matches!(quote, b'"' | b'\'' | b'`'))?;
    let mut at = start + 1;
    loop {
        match *bytes.get(at)? {
            b'\\' => at += 2,
            b'$' if quote == b'`' => return None,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Returns the end of an object of names and constants: evaluating it has no effect.
fn plain_object_end(code: &str, start: usize) -> Option<usize> {
    let (mut at, mut depth, mut after_word) = (start, 0_usize, false);
    loop {
        at = skip_blank(code, at)?;
        let next = code[at..].chars().next()?;
        // Words side by side are an operator, such as `await`.
        after_word = match next {
            '"' | '\'' if !after_word => {
                at = text_end(code, at)?;
                true
            }
            '{' | '[' | '}' | ']' | ',' | ':' => {
                depth = if matches!(next, '{' | '[') { depth + 1 } else { depth };
                depth -= usize::from(matches!(next, '}' | ']'));
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
                false
            }
            next if is_word(next) && !after_word => {
                at += code[at..].find(|character| !is_word(character))?;
                true
            }
            _ => return None,
        };
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

/// How often the code names the test functions. Texts and comments count too.
struct WordCounts<'a>(HashMap<&'a str, usize>);

impl<'a> WordCounts<'a> {
    fn new(codes: impl Iterator<Item = &'a str>, declarations: &[Declaration<'a>]) -> WordCounts<'a> {
        let functions = declarations.iter().filter(|one| one.kind == DeclarationKind::Function);
        let mut counts: HashMap<&str, usize> = functions.map(|function| (function.name, 0)).collect();
        if !counts.is_empty() {
            for word in codes.flat_map(|code| code.split(|character| !is_word(character))) {
                if let Some(count) = counts.get_mut(word) {
                    *count += 1;
                }
            }
        }
        WordCounts(counts)
    }

    fn is_named_once(&self, name: &str) -> bool {
        self.0.get(name) == Some(&1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'a>(kind: DeclarationKind, offset: Option<usize>, source: &'a str) -> Declaration<'a> {
        Declaration { kind, offset, name: "", source }
    }

    /// Divides a file with tests, and with functions by their name, each by its source text.
    fn excerpts<'a>(code: &'a str, sources: &[(&'static str, &'a str)]) -> Option<TestExcerpts> {
        let declarations: Vec<Declaration<'_>> = sources
            .iter()
            .map(|(kind, source)| match *kind {
                "test" => {
                    let start = code.find(source).expect("in the code");
                    call(DeclarationKind::Test, code[..start].rfind('('), source)
                }
                name => Declaration { kind: DeclarationKind::Function, offset: None, name, source },
            })
            .collect();
        TestExcerpts::new(code.to_string(), &declarations, &[])
    }

    const TESTS: &str = "import { it } from \"hotseat\";\nlet x = 1;\nit(\"a\", () => { x; });\nit(\"b\", { tags: [\"é\"], retries: 2 }, () => {\n  y;\n}); z(); it('c', () => 3)\nfoo();\n";

    #[test]
    fn other_tests_are_left_out_and_the_rest_keeps_its_place() {
        let all =
            excerpts(TESTS, &[("test", "() => { x; }"), ("test", "() => {\n  y;\n}"), ("test", "() => 3")])
                .expect("tests can be left out");
        let a = "import { it } from \"hotseat\";\nlet x = 1;\nit(\"a\", () => { x; })\n\n\n  ; z(); void 0          \nfoo();\n";
        assert_eq!(all.code_with(0), a);
        let b = "import { it } from \"hotseat\";\nlet x = 1;\nvoid 0;\nit(\"b\", { tags: [\"é\"], retries: 2 }, () => {\n  y;\n}); z(); void 0          \nfoo();\n";
        assert_eq!(all.code_with(1), b);
        assert_eq!((0..3).map(|test| all.tests_before(test)).collect::<Vec<_>>(), [0, 0, 0]);
        for test in 0..3 {
            let code = all.code_with(test);
            assert_eq!(code.lines().count(), TESTS.lines().count());
            let column = |code: &str| code.lines().find_map(|line| line.find("z();")).expect("kept");
            assert_eq!(column(&code), column(TESTS), "{code}");
        }
    }

    #[test]
    fn groups_of_tests_alone_are_left_out() {
        let code = "import { describe, it } from \"hotseat\";\ndescribe(\"g\", () => {\n  it(\"a\", () => {});\n  // last\n});\ndescribe(\"h\", () => {\n  before(f);\n  it(\"b\", () => {});\n  it(\"c\", () => {});\n});\n";
        let (g, h) = (
            &code[code.find("() => {\n  it").expect("there")..code.find(");\ndescribe").expect("there")],
            &code[code.find("() => {\n  before").expect("there")..code.len() - 3],
        );
        let sources =
            [("test", "() => {}"), ("test", "() => {}"), ("test", "() => {}"), ("group", g), ("group", h)];
        let mut from = 0;
        let declarations: Vec<Declaration<'_>> = sources
            .iter()
            .map(|(kind, source)| match *kind {
                "test" => {
                    let start = from + code[from..].find("it(").expect("there");
                    from = start + 1;
                    call(DeclarationKind::Test, Some(start + 2), source)
                }
                _ => {
                    let start = code.find(source).expect("there");
                    call(DeclarationKind::Group, code[..start].rfind('('), source)
                }
            })
            .collect();
        let all = TestExcerpts::new(code.to_string(), &declarations, &[]).expect("tests can be left out");
        let b = "import { describe, it } from \"hotseat\";\nvoid 0\n\n\n  ;\ndescribe(\"h\", () => {\n  before(f);\n  it(\"b\", () => {})\n                   ;\n});\n";
        assert_eq!(all.code_with(1), b);
        assert!(
            all.code_with(0).contains(";\ndescribe(\"g\", () => {\n  it(\"a\", () => {});\n  // last\n});")
        );
        assert!(!all.code_with(0).contains("\"b\"") && all.code_with(0).contains("before(f)"));
    }

    #[test]
    fn what_could_have_an_effect_stays() {
        let stays = |code: &str, source: &'static str| {
            let code = format!("import {{ it }} from 'hotseat';\n{code}");
            let start = code.find(source).expect("there");
            let open =
                ["it(", "it.only("].iter().find_map(|call| Some(code[..start].rfind(call)? + call.len() - 1));
            let test = call(DeclarationKind::Test, open, source);
            TestExcerpts::new(code.to_string(), &[test], &[]).is_none()
        };
        assert!(!stays("it(\"a\", () => {});", "() => {}"));
        for code in [
            "it(name(), () => {});",
            "it(`a ${b++}`, () => {});",
            "hotseat.it(\"a\", () => {});",
            "it(\"a\", { tags: tags() }, () => {});",
            "it(\"a\", { user: await x }, () => {});",
            "it(\"a\", { ...all }, () => {});",
            "it(\"a\", () => {}).b;",
            "it(\"a\", () => {})\n[1]",
            "f(it(\"a\", () => {}));",
            "it(\"a\", () => {}, b());",
            "test(\"a\", () => {});",
            "for (const it of both) it(\"a\", () => {});",
            "function both(it) { it(\"a\", () => {}); }",
            "const both = it => it(\"a\", () => {});",
            "function both(n, { it }) { it(\"a\", () => {}); }",
            "function both(...it) { it(\"a\", () => {}); }",
            "{ const it = f; it(\"a\", () => {}); }",
            "{ it(\"a\", () => {}); function it(name) { names.push(name); } }",
            "try { f(); } catch (it) { it(\"a\", () => {}); }",
            "declareWith(/* twice */ it); it(\"a\", () => {});",
        ] {
            assert!(stays(code, "() => {}"), "{code}");
        }
        for code in [
            "// When it, in turn, fails: (it says)\nit('if asked, it answers', () => {});",
            "it.only(`a`, () => {});",
            "const x = 1; /* of it */\nit(\"a\", () => {});",
        ] {
            assert!(!stays(code, "() => {}"), "{code}");
        }
        let code = "import { it } from \"hotseat\";\nit(\"a\", () => {});";
        let once = call(DeclarationKind::Test, code.rfind("(\"a\""), "() => {}");
        assert!(TestExcerpts::new(code.into(), std::slice::from_ref(&once), &[]).is_some());
        assert!(TestExcerpts::new(code.into(), &[once.clone(), once], &[]).is_none());
    }

    #[test]
    fn groups_with_hooks_are_left_out_with_them() {
        let code = "import { after, before, describe as group, it } from 'hotseat';\ngroup(\"g\", () => {\n  before(() => { set(); });\n  it(\"a\", () => 1);\n  after(async () => {});\n});\nbefore(() => { all(); });\ngroup(\"h\", () => {\n  it(\"b\", () => 2);\n});\n";
        let open = |call: &str| code.find(call).map(|at| at + call.len() - 1);
        let source = |from: &str, to: &str| {
            let start = code.find(from).expect("there");
            &code[start..start + code[start..].find(to).expect("there") + to.len()]
        };
        let declarations = [
            call(DeclarationKind::Test, open("  it("), "() => 1"),
            call(DeclarationKind::Test, open("\n  it(\"b\"").map(|at| at - 3), "() => 2"),
            call(DeclarationKind::Group, open("group("), source("() => {\n  before", "\n}")),
            call(
                DeclarationKind::Group,
                open("\ngroup(\"h").map(|at| at - 2),
                source("() => {\n  it(\"b", "\n}"),
            ),
            call(DeclarationKind::Hook, open("  before("), "() => { set(); }"),
            call(DeclarationKind::Hook, open("  after("), "async () => {}"),
            call(DeclarationKind::Hook, open("\nbefore("), "() => { all(); }"),
        ];
        let all = TestExcerpts::new(code.to_string(), &declarations, &[]).expect("tests can be left out");
        let (a, b) = (all.code_with(0), all.code_with(1));
        assert!(a.contains("set()") && a.contains("after(") && a.contains("all()"), "{a}");
        assert!(!a.contains("\"h\""), "{a}");
        assert!(!b.contains("set()") && !b.contains("\"g\"") && b.contains("all()"), "{b}");
        assert!(b.contains("group(\"h\", () => {\n  it(\"b\", () => 2)"), "{b}");
        assert_eq!((a.lines().count(), b.lines().count()), (code.lines().count(), code.lines().count()));
    }

    #[test]
    fn functions_that_are_named_elsewhere_stay() {
        let code = "export function TestA(t) {}\nexport function TestB(t) { TestA(t); }\n";
        let all = excerpts(
            code,
            &[("TestA", "function TestA(t) {}"), ("TestB", "function TestB(t) { TestA(t); }")],
        )
        .expect("one can be left out");
        assert_eq!(all.code_with(0).trim_end(), "export function TestA(t) {}\n;");
        assert_eq!(all.code_with(1), code);
    }

    #[test]
    fn the_code_of_a_test_does_not_grow_with_the_number_of_tests() {
        let size = |tests: usize| {
            let one = |test| format!("  it(\"{test:05}\", () => {{\n    says({test:05});\n  }});\n");
            let group = |from: usize| {
                let inner: String = (from..from + 5).map(one).collect();
                format!("() => {{\n{inner}}}")
            };
            let groups: Vec<String> = (0..tests).step_by(5).map(group).collect();
            let calls: String = groups.iter().map(|group| format!("describe(\"g\", {group});\n")).collect();
            let code = format!("import {{ describe, it }} from \"hotseat\";\n{calls}");
            let sources: Vec<String> =
                (0..tests).map(|test| format!("() => {{\n    says({test:05});\n  }}")).collect();
            let mut at = 0;
            let mut offset = |call: &str| {
                at += code[at..].find(call).expect("there") + call.len();
                Some(at - 1)
            };
            let mut declarations: Vec<Declaration<'_>> =
                sources.iter().map(|source| call(DeclarationKind::Test, offset("it("), source)).collect();
            at = 0;
            let mut offset = |call: &str| {
                at += code[at..].find(call).expect("there") + call.len();
                Some(at - 1)
            };
            declarations.extend(
                groups.iter().map(|source| call(DeclarationKind::Group, offset("describe("), source)),
            );
            let all = TestExcerpts::new(code.clone(), &declarations, &[]).expect("tests can be left out");
            let text = all.code_with(tests / 2);
            assert_eq!(text.lines().count(), code.lines().count());
            text.split_whitespace().map(str::len).sum::<usize>()
        };
        assert_eq!(size(50), size(5_000));
    }
}
