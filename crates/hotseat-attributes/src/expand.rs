//! Expands a group to its module, with a test for each example and a function that declares the group.
//!
//! A test declares the groups around its example and only that example, so it inherits all settings and needs
//! no filter.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Ident, ItemMod, LitStr};

use crate::parse::{ExampleFunction, GroupModule, ScenarioFile};

/// Expands the outermost group. `config` is the path of the project file.
pub fn expand_spec(group: &GroupModule, config: Option<&LitStr>) -> TokenStream {
    let name = &group.name;
    let config = config.map_or_else(|| quote!(None), |config| quote!(Some(#config)));
    // The tests call this function, at any nesting depth.
    let run_example = quote! {
        #[cfg(test)]
        fn __run_example(chosen: &str) {
            ::hotseat::dsl::plain::run(file!(), #config, |s| {
                s.describe(#name, |g| __declare(g, chosen));
            });
        }
    };
    expand_module(group, "", &quote!(__run_example), run_example)
}

/// Expands a group to a module. `path` is the path of the enclosing groups; `run_example` is the function that its
/// tests call.
fn expand_module(
    group: &GroupModule,
    path: &str,
    run_example: &TokenStream,
    more: TokenStream,
) -> TokenStream {
    let ItemMod { attrs, vis, mod_token, ident, content, .. } = &group.module;
    let items = content.iter().flat_map(|(_, items)| items);
    let declare = expand_declaration(group);
    let tests = group.examples.iter().map(|example| expand_test(example, path, run_example));
    let groups = group.groups.iter().map(|inner| {
        let path = format!("{path}{}::", inner.module.ident);
        expand_module(inner, &path, &quote!(super::#run_example), TokenStream::new())
    });
    quote! {
        #(#attrs)* #vis #mod_token #ident {
            #(#items)*
            #(#tests)*
            #(#groups)*
            #declare
            #more
        }
    }
}

/// Expands to a function that declares a group with one of its examples.
fn expand_declaration(group: &GroupModule) -> TokenStream {
    let setups = &group.setups;
    let examples = group.examples.iter().map(|example| {
        let cfg = cfg_attributes(&example.test_attributes);
        let ident = &example.function.sig.ident;
        let chosen = LitStr::new(&ident.to_string(), ident.span());
        let it = expand_example(example);
        match example.scenarios {
            None => quote!(#(#cfg)* if chosen == #chosen { #it }),
            // The index of the scenario follows the name.
            Some(_) => quote! {
                #(#cfg)*
                if let Some(("", number)) = chosen.strip_prefix(#chosen).and_then(|rest| rest.split_once('#')) {
                    #it
                }
            },
        }
    });
    let groups = group.groups.iter().map(|inner| {
        let (name, ident) = (&inner.name, &inner.module.ident);
        let cfg = cfg_attributes(&inner.module.attrs);
        let path = format!("{ident}::");
        quote! {
            #(#cfg)*
            if let Some(chosen) = chosen.strip_prefix(#path) {
                g.describe(#name, |g| #ident::__declare(g, chosen));
            }
        }
    });
    quote! {
        #[cfg(test)]
        pub(super) fn __declare(g: &mut ::hotseat::dsl::Group, chosen: &str) {
            #(#setups(g);)*
            let _ = chosen;
            #(#examples)*
            #(#groups)*
        }
    }
}

/// Expands to the declaration of an example, with the span of its function.
fn expand_example(example: &ExampleFunction) -> TokenStream {
    let (name, ident) = (&example.name, hidden_ident(&example.function.sig.ident));
    let place = example.function.sig.ident.span();
    let arguments = example
        .arguments
        .iter()
        .map(|of| quote!(<#of as ::hotseat::dsl::plain::ExampleArgument>::from_test(&t).await));
    let test = if example.arguments.is_empty() { quote!(_) } else { quote!(t) };
    let body = quote!(async |#test: ::hotseat::dsl::Test| #ident(#(#arguments),*).await);
    let more = |it: TokenStream| match &example.with {
        None => quote!(#it;),
        Some(with) => quote!(#with(#it);),
    };
    match &example.scenarios {
        None => {
            let it = more(quote_spanned!(place=> g.it(#name, #body)));
            quote_spanned!(place=> #it)
        }
        Some(ScenarioFile { file, test_names: tests }) => {
            let of = tests.len();
            let it = more(
                quote_spanned!(place=> g.it(::hotseat::dsl::plain::scenario_name(#name, &scenario), #body)),
            );
            quote_spanned! {place=>
                g.scenario_set(#file, ::hotseat::dsl::plain::one_scenario(#file, number, #of), |g, scenario| {
                    #it
                });
            }
        }
    }
}

/// Expands to the test of an example, and its renamed function.
fn expand_test(example: &ExampleFunction, path: &str, run_example: &TokenStream) -> TokenStream {
    let (others, ident) = (&example.test_attributes, &example.function.sig.ident);
    let cfg = cfg_attributes(others);
    let chosen = format!("{path}{ident}");
    let mut function = example.function.clone();
    function.sig.ident = hidden_ident(ident);
    let tests = match &example.scenarios {
        None => quote! {
            #(#others)*
            #[test]
            fn #ident() {
                #run_example(#chosen);
            }
        },
        Some(ScenarioFile { file, test_names: tests }) => {
            let tests = tests.iter().enumerate().map(|(number, ident)| {
                let chosen = format!("{chosen}#{number}");
                quote! {
                    #(#others)*
                    #[test]
                    fn #ident() {
                        super::#run_example(#chosen);
                    }
                }
            });
            quote! {
                #(#cfg)*
                #[cfg(test)]
                mod #ident {
                    // Rebuilds the tests if the file changes.
                    const _: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", #file));
                    #(#tests)*
                }
            }
        }
    };
    let cfg = self::cfg_attributes(others);
    quote! {
        #tests

        #(#cfg)*
        #[cfg(test)]
        #function
    }
}

fn cfg_attributes(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"))
}

fn hidden_ident(ident: &Ident) -> Ident {
    // As an argument, a raw identifier loses its `r#`.
    format_ident!("__{}", ident, span = ident.span())
}
