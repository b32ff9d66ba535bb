//! Parses a module with attributes into a group of examples.

use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Ident, Item, ItemFn, ItemMod, LitStr, Path, Result, Token, Type};

use crate::scenarios;

/// Arguments of `#[agent_spec]`.
pub struct AgentSpecArgs {
    pub name: LitStr,
    /// Path of the project file.
    pub config: Option<LitStr>,
}

impl Parse for AgentSpecArgs {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        let mut config = None;
        if input.peek(Token![,]) && !input.peek2(syn::parse::End) {
            input.parse::<Token![,]>()?;
            let key: Ident = input.parse()?;
            if key != "config" {
                return Err(Error::new(
                    key.span(),
                    "unknown argument, expected `config = \"…/hotseat.yaml\"`",
                ));
            }
            input.parse::<Token![=]>()?;
            config = Some(input.parse()?);
        }
        input.parse::<Option<Token![,]>>()?;
        Ok(AgentSpecArgs { name, config })
    }
}

/// A module that is a group.
pub struct GroupModule {
    pub name: LitStr,
    /// The module without its examples and nested groups.
    pub module: ItemMod,
    /// `#[setup]` functions, in order.
    pub setups: Vec<Ident>,
    pub examples: Vec<ExampleFunction>,
    pub groups: Vec<GroupModule>,
}

/// A function that is an example.
pub struct ExampleFunction {
    pub name: LitStr,
    /// The function without its attributes.
    pub function: ItemFn,
    /// Types of its arguments.
    pub arguments: Vec<Type>,
    /// Function that configures the example: `fn(&mut ExampleBuilder)`.
    pub with: Option<Path>,
    /// Scenario file, if any.
    pub scenarios: Option<ScenarioFile>,
    /// Other attributes, which are applied to the test.
    pub test_attributes: Vec<Attribute>,
}

/// Scenario file of an example.
pub struct ScenarioFile {
    /// Path, as written.
    pub file: LitStr,
    /// Names of the tests, in file order.
    pub test_names: Vec<Ident>,
}

/// Arguments of `#[it]`.
struct ItAttribute {
    name: LitStr,
    with: Option<Path>,
}

impl Parse for ItAttribute {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        let mut with = None;
        if input.peek(Token![,]) && !input.peek2(syn::parse::End) {
            input.parse::<Token![,]>()?;
            let key: Ident = input.parse()?;
            if key != "with" {
                let message = "unknown argument, expected `with = function`, where the function is a `fn(&mut ExampleBuilder)`";
                return Err(Error::new(key.span(), message));
            }
            input.parse::<Token![=]>()?;
            with = Some(input.parse()?);
        }
        input.parse::<Option<Token![,]>>()?;
        Ok(ItAttribute { name, with })
    }
}

/// Parses a module.
///
/// # Errors
/// All errors in the module, with their spans.
pub fn parse_group(name: LitStr, mut module: ItemMod) -> Result<GroupModule> {
    let Some((brace, items)) = module.content.take() else {
        return Err(Error::new(module.span(), "the module must be inline: `mod name { … }`"));
    };
    let mut group =
        GroupModule { name, module, setups: Vec::new(), examples: Vec::new(), groups: Vec::new() };
    let (mut kept, mut mistakes) = (Vec::new(), ErrorCollector::default());
    for item in items {
        match item {
            Item::Fn(mut function) => {
                if let Some(name) = mistakes.ok_or_record(take_attribute(&mut function.attrs, "it")) {
                    group.examples.extend(mistakes.ok_or_record(parse_example(name, function).map(Some)));
                    continue;
                }
                if let Some(at) = attribute_index(&function.attrs, "scenarios") {
                    mistakes.push(Error::new_spanned(
                        &function.attrs[at],
                        "`#[scenarios]` requires an example: add `#[it(\"…\")]`",
                    ));
                }
                if let Some(at) = attribute_index(&function.attrs, "setup") {
                    function.attrs.remove(at);
                    group.setups.push(function.sig.ident.clone());
                }
                kept.push(Item::Fn(function));
            }
            Item::Mod(mut inner) => {
                match mistakes.ok_or_record(take_attribute(&mut inner.attrs, "context")) {
                    Some(name) => {
                        group.groups.extend(mistakes.ok_or_record(self::parse_group(name, inner).map(Some)))
                    }
                    None => kept.push(Item::Mod(inner)),
                }
            }
            other => kept.push(other),
        }
    }
    group.module.content = Some((brace, kept));
    mistakes.into_result(group)
}

fn parse_example(named: ItAttribute, mut function: ItemFn) -> Result<ExampleFunction> {
    let ItAttribute { name, with } = named;
    if function.sig.asyncness.is_none() {
        let message = "an example must be an `async fn`";
        return Err(Error::new_spanned(function.sig.fn_token, message));
    }
    let scenarios: Option<LitStr> = take_attribute(&mut function.attrs, "scenarios")?;
    let scenarios = scenarios.map(|file| {
        let tests = scenarios::test_names(&file.value()).map_err(|words| Error::new(file.span(), words))?;
        let tests = tests.iter().map(|name| Ident::new(name, file.span())).collect();
        Ok::<_, Error>(ScenarioFile { file, test_names: tests })
    });
    let scenarios = scenarios.transpose()?;
    let arguments = function.sig.inputs.iter().map(|argument| match argument {
        FnArg::Typed(argument) => Ok((*argument.ty).clone()),
        FnArg::Receiver(receiver) => {
            Err(Error::new_spanned(receiver, "an example cannot have a `self` argument"))
        }
    });
    let arguments = arguments.collect::<Result<_>>()?;
    let others = std::mem::take(&mut function.attrs);
    Ok(ExampleFunction { name, with, function, arguments, scenarios, test_attributes: others })
}

/// Removes the attribute with this name and parses its arguments.
fn take_attribute<T: Parse>(attributes: &mut Vec<Attribute>, name: &str) -> Result<Option<T>> {
    match attribute_index(attributes, name) {
        Some(at) => attributes.remove(at).parse_args().map(Some),
        None => Ok(None),
    }
}

fn attribute_index(attributes: &[Attribute], name: &str) -> Option<usize> {
    attributes.iter().position(|attribute| attribute.path().is_ident(name))
}

/// Collects errors, so that all are reported at once.
#[derive(Default)]
struct ErrorCollector(Option<Error>);

impl ErrorCollector {
    fn push(&mut self, wrong: Error) {
        match &mut self.0 {
            Some(all) => all.combine(wrong),
            None => self.0 = Some(wrong),
        }
    }

    fn ok_or_record<T>(&mut self, read: Result<Option<T>>) -> Option<T> {
        read.unwrap_or_else(|wrong| {
            self.push(wrong);
            None
        })
    }

    fn into_result<T>(self, read: T) -> Result<T> {
        self.0.map_or(Ok(read), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syntax_errors(text: &str) -> Vec<String> {
        let module = syn::parse_str(text).expect("a module");
        let read = parse_group(syn::parse_quote!("Agent"), module);
        read.err().into_iter().flatten().map(|wrong| wrong.to_string()).collect()
    }

    #[test]
    fn rejects_invalid_examples() {
        for (text, words) in [
            ("mod a;", "the module must be inline"),
            ("mod a { #[it(\"b\")] fn b() {} }", "an example must be an `async fn`"),
            ("mod a { #[it] async fn b() {} }", "expected attribute arguments in parentheses"),
            ("mod a { #[it(b)] async fn b() {} }", "expected string literal"),
            ("mod a { #[it(\"b\", tag = \"c\")] async fn b() {} }", "expected `with = function`"),
            ("mod a { #[it(\"b\")] #[scenarios(\"no.json\")] async fn b() {} }", "cannot read the scenarios"),
            ("mod a { #[it(\"b\")] async fn b(&self) {} }", "an example cannot have a `self` argument"),
            ("mod a { #[scenarios(\"b.json\")] async fn b() {} }", "`#[scenarios]` requires an example"),
            (
                "mod a { #[context(\"c\")] mod c { #[it(\"b\")] fn b() {} } }",
                "an example must be an `async fn`",
            ),
        ] {
            let found = syntax_errors(text);
            assert!(found.len() == 1 && found[0].contains(words), "{text}: {found:?}");
        }
    }

    #[test]
    fn reports_all_errors_at_once() {
        assert_eq!(syntax_errors("mod a { #[it(\"b\")] fn b() {} #[it] async fn c() {} }").len(), 2);
    }

    #[test]
    fn parses_spec_arguments() {
        let spec: AgentSpecArgs = syn::parse_str("\"Agent\", config = \"a.yaml\",").expect("a spec");
        assert_eq!(
            (spec.name.value().as_str(), spec.config.map(|config| config.value())),
            ("Agent", Some("a.yaml".into()))
        );
        assert!(
            syn::parse_str::<AgentSpecArgs>("\"Agent\"").is_ok()
                && syn::parse_str::<AgentSpecArgs>("\"Agent\",").is_ok()
        );
        for wrong in ["", "Agent", "\"Agent\", conf = \"a\"", "\"Agent\", config", "\"Agent\" \"b\""] {
            assert!(syn::parse_str::<AgentSpecArgs>(wrong).is_err(), "{wrong}");
        }
    }
}
