//! What is written: a module with attributes, as a group with examples.

use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Ident, Item, ItemFn, ItemMod, LitStr, Path, Result, Token, Type};

use crate::scenarios;

/// What is said of a module that is a group by itself.
pub struct Spec {
    pub name: LitStr,
    /// The project file.
    pub config: Option<LitStr>,
}

impl Parse for Spec {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        let mut config = None;
        if input.peek(Token![,]) && !input.peek2(syn::parse::End) {
            input.parse::<Token![,]>()?;
            let key: Ident = input.parse()?;
            if key != "config" {
                return Err(Error::new(
                    key.span(),
                    "only `config = \"…/hotseat.yaml\"` can be said beside the name",
                ));
            }
            input.parse::<Token![=]>()?;
            config = Some(input.parse()?);
        }
        input.parse::<Option<Token![,]>>()?;
        Ok(Spec { name, config })
    }
}

/// A module that is a group.
pub struct Group {
    pub name: LitStr,
    /// The module, without what is an example or a group within it.
    pub module: ItemMod,
    /// Functions that declare what holds in it, in their order.
    pub setups: Vec<Ident>,
    pub examples: Vec<Example>,
    pub groups: Vec<Group>,
}

/// A function that is an example.
pub struct Example {
    pub name: LitStr,
    /// The function, without its attributes.
    pub function: ItemFn,
    /// The types of its arguments.
    pub arguments: Vec<Type>,
    /// A function that says more of it: `fn(&mut It)`.
    pub with: Option<Path>,
    /// The file of its scenarios.
    pub scenarios: Option<Scenarios>,
    /// Attributes that are not ours: those of its test.
    pub others: Vec<Attribute>,
}

/// The scenarios of an example.
pub struct Scenarios {
    /// Their file, as it is written.
    pub file: LitStr,
    /// The names of their tests, in the order of the file.
    pub tests: Vec<Ident>,
}

/// The name of an example, and a function that says more of it.
struct Named {
    name: LitStr,
    with: Option<Path>,
}

impl Parse for Named {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        let mut with = None;
        if input.peek(Token![,]) && !input.peek2(syn::parse::End) {
            input.parse::<Token![,]>()?;
            let key: Ident = input.parse()?;
            if key != "with" {
                let message = "only `with = function` can be said beside the name, a `fn(&mut It)`";
                return Err(Error::new(key.span(), message));
            }
            input.parse::<Token![=]>()?;
            with = Some(input.parse()?);
        }
        input.parse::<Option<Token![,]>>()?;
        Ok(Named { name, with })
    }
}

/// Reads a module.
///
/// # Errors
/// All mistakes in it, each with its place.
pub fn group(name: LitStr, mut module: ItemMod) -> Result<Group> {
    let Some((brace, items)) = module.content.take() else {
        return Err(Error::new(module.span(), "the examples stand in the module itself: `mod name { … }`"));
    };
    let mut group = Group { name, module, setups: Vec::new(), examples: Vec::new(), groups: Vec::new() };
    let (mut kept, mut mistakes) = (Vec::new(), Mistakes::default());
    for item in items {
        match item {
            Item::Fn(mut function) => {
                if let Some(name) = mistakes.of(take(&mut function.attrs, "it")) {
                    group.examples.extend(mistakes.of(example(name, function).map(Some)));
                    continue;
                }
                if let Some(at) = place_of(&function.attrs, "scenarios") {
                    mistakes.add(Error::new_spanned(
                        &function.attrs[at],
                        "scenarios belong to an example: `#[it(\"…\")]`",
                    ));
                }
                if let Some(at) = place_of(&function.attrs, "setup") {
                    function.attrs.remove(at);
                    group.setups.push(function.sig.ident.clone());
                }
                kept.push(Item::Fn(function));
            }
            Item::Mod(mut inner) => match mistakes.of(take(&mut inner.attrs, "context")) {
                Some(name) => group.groups.extend(mistakes.of(self::group(name, inner).map(Some))),
                None => kept.push(Item::Mod(inner)),
            },
            other => kept.push(other),
        }
    }
    group.module.content = Some((brace, kept));
    mistakes.none_or(group)
}

fn example(named: Named, mut function: ItemFn) -> Result<Example> {
    let Named { name, with } = named;
    if function.sig.asyncness.is_none() {
        let message = "an example is an `async fn`: it waits for what the agent says";
        return Err(Error::new_spanned(function.sig.fn_token, message));
    }
    let scenarios: Option<LitStr> = take(&mut function.attrs, "scenarios")?;
    let scenarios = scenarios.map(|file| {
        let tests = scenarios::names(&file.value()).map_err(|words| Error::new(file.span(), words))?;
        let tests = tests.iter().map(|name| Ident::new(name, file.span())).collect();
        Ok::<_, Error>(Scenarios { file, tests })
    });
    let scenarios = scenarios.transpose()?;
    let arguments = function.sig.inputs.iter().map(|argument| match argument {
        FnArg::Typed(argument) => Ok((*argument.ty).clone()),
        FnArg::Receiver(receiver) => Err(Error::new_spanned(receiver, "an example belongs to no type")),
    });
    let arguments = arguments.collect::<Result<_>>()?;
    let others = std::mem::take(&mut function.attrs);
    Ok(Example { name, with, function, arguments, scenarios, others })
}

/// What an attribute of this name says, which is taken away.
fn take<T: Parse>(attributes: &mut Vec<Attribute>, name: &str) -> Result<Option<T>> {
    match place_of(attributes, name) {
        Some(at) => attributes.remove(at).parse_args().map(Some),
        None => Ok(None),
    }
}

fn place_of(attributes: &[Attribute], name: &str) -> Option<usize> {
    attributes.iter().position(|attribute| attribute.path().is_ident(name))
}

/// Everything that is wrong, so that it is told at once.
#[derive(Default)]
struct Mistakes(Option<Error>);

impl Mistakes {
    fn add(&mut self, wrong: Error) {
        match &mut self.0 {
            Some(all) => all.combine(wrong),
            None => self.0 = Some(wrong),
        }
    }

    fn of<T>(&mut self, read: Result<Option<T>>) -> Option<T> {
        read.unwrap_or_else(|wrong| {
            self.add(wrong);
            None
        })
    }

    fn none_or<T>(self, read: T) -> Result<T> {
        self.0.map_or(Ok(read), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> Vec<String> {
        let module = syn::parse_str(text).expect("a module");
        let read = group(syn::parse_quote!("Agent"), module);
        read.err().into_iter().flatten().map(|wrong| wrong.to_string()).collect()
    }

    #[test]
    fn what_makes_no_example_is_said() {
        for (text, words) in [
            ("mod a;", "the examples stand in the module itself"),
            ("mod a { #[it(\"b\")] fn b() {} }", "an example is an `async fn`"),
            ("mod a { #[it] async fn b() {} }", "expected attribute arguments in parentheses"),
            ("mod a { #[it(b)] async fn b() {} }", "expected string literal"),
            ("mod a { #[it(\"b\", tag = \"c\")] async fn b() {} }", "only `with = function` can be said"),
            ("mod a { #[it(\"b\")] #[scenarios(\"no.json\")] async fn b() {} }", "cannot read the scenarios"),
            ("mod a { #[it(\"b\")] async fn b(&self) {} }", "an example belongs to no type"),
            ("mod a { #[scenarios(\"b.json\")] async fn b() {} }", "scenarios belong to an example"),
            ("mod a { #[context(\"c\")] mod c { #[it(\"b\")] fn b() {} } }", "an example is an `async fn`"),
        ] {
            let found = mistakes(text);
            assert!(found.len() == 1 && found[0].contains(words), "{text}: {found:?}");
        }
    }

    #[test]
    fn all_mistakes_are_said_at_once() {
        assert_eq!(mistakes("mod a { #[it(\"b\")] fn b() {} #[it] async fn c() {} }").len(), 2);
    }

    #[test]
    fn what_is_said_of_a_module_is_its_name_and_at_most_its_project() {
        let spec: Spec = syn::parse_str("\"Agent\", config = \"a.yaml\",").expect("a spec");
        assert_eq!(
            (spec.name.value().as_str(), spec.config.map(|config| config.value())),
            ("Agent", Some("a.yaml".into()))
        );
        assert!(syn::parse_str::<Spec>("\"Agent\"").is_ok() && syn::parse_str::<Spec>("\"Agent\",").is_ok());
        for wrong in ["", "Agent", "\"Agent\", conf = \"a\"", "\"Agent\", config", "\"Agent\" \"b\""] {
            assert!(syn::parse_str::<Spec>(wrong).is_err(), "{wrong}");
        }
    }
}
