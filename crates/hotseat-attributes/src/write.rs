//! What becomes of it: the module as it was, its examples as tests, and a function that declares the group.
//!
//! A test declares the groups around its example, and of all examples this one alone. So whatever it inherits it has, and
//! nothing has to be selected.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Ident, ItemMod, LitStr};

use crate::read::{Example, Group, Scenarios};

/// A module that is a group by itself, and the file of its project.
pub fn spec(group: &Group, config: Option<&LitStr>) -> TokenStream {
    let name = &group.name;
    let config = config.map_or_else(|| quote!(None), |config| quote!(Some(#config)));
    // Called by the tests, however deep in the module they stand.
    let hold = quote! {
        #[cfg(test)]
        fn __hold(chosen: &str) {
            ::hotseat::dsl::plain::hold(file!(), #config, |s| {
                s.describe(#name, |g| __declare(g, chosen));
            });
        }
    };
    module(group, "", &quote!(__hold), hold)
}

/// A group as a module. `path` is that of the groups around it, and `hold` what its tests call.
fn module(group: &Group, path: &str, hold: &TokenStream, more: TokenStream) -> TokenStream {
    let ItemMod { attrs, vis, mod_token, ident, content, .. } = &group.module;
    let items = content.iter().flat_map(|(_, items)| items);
    let declare = declare(group);
    let tests = group.examples.iter().map(|example| test(example, path, hold));
    let groups = group.groups.iter().map(|inner| {
        let path = format!("{path}{}::", inner.module.ident);
        module(inner, &path, &quote!(super::#hold), TokenStream::new())
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

/// A function that declares a group with one of its examples.
fn declare(group: &Group) -> TokenStream {
    let setups = &group.setups;
    let examples = group.examples.iter().map(|example| {
        let cfg = cfg(&example.others);
        let chosen = text(&example.function.sig.ident);
        let it = it(example);
        match example.scenarios {
            None => quote!(#(#cfg)* if chosen == #chosen { #it }),
            // Which of them, stands behind the name.
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
        let cfg = cfg(&inner.module.attrs);
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

/// The declaration of an example, at the place where it is written.
fn it(example: &Example) -> TokenStream {
    let (name, ident) = (&example.name, renamed(&example.function.sig.ident));
    let place = example.function.sig.ident.span();
    let arguments =
        example.arguments.iter().map(|of| quote!(<#of as ::hotseat::dsl::plain::Argument>::of(&t).await));
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
        Some(Scenarios { file, tests }) => {
            let of = tests.len();
            let it = more(quote_spanned!(place=> g.it(::hotseat::dsl::plain::name(#name, &scenario), #body)));
            quote_spanned! {place=>
                g.scenario_set(#file, ::hotseat::dsl::plain::one_scenario(#file, number, #of), |g, scenario| {
                    #it
                });
            }
        }
    }
}

/// The test of an example, and its function under another name.
fn test(example: &Example, path: &str, hold: &TokenStream) -> TokenStream {
    let (others, ident) = (&example.others, &example.function.sig.ident);
    let cfg = cfg(others);
    let chosen = format!("{path}{ident}");
    let mut function = example.function.clone();
    function.sig.ident = renamed(ident);
    let tests = match &example.scenarios {
        None => quote! {
            #(#others)*
            #[test]
            fn #ident() {
                #hold(#chosen);
            }
        },
        Some(Scenarios { file, tests }) => {
            let tests = tests.iter().enumerate().map(|(number, ident)| {
                let chosen = format!("{chosen}#{number}");
                quote! {
                    #(#others)*
                    #[test]
                    fn #ident() {
                        super::#hold(#chosen);
                    }
                }
            });
            quote! {
                #(#cfg)*
                #[cfg(test)]
                mod #ident {
                    // Where the file changes, so do the tests.
                    const _: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", #file));
                    #(#tests)*
                }
            }
        }
    };
    let cfg = self::cfg(others);
    quote! {
        #tests

        #(#cfg)*
        #[cfg(test)]
        #function
    }
}

fn cfg(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"))
}

fn renamed(ident: &Ident) -> Ident {
    format_ident!("__{ident}", span = ident.span())
}

fn text(ident: &Ident) -> LitStr {
    LitStr::new(&ident.to_string(), ident.span())
}
