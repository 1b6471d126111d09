//! `#[derive(VisitAtoms)]` for structs and enums: visits every field in declaration order.
//!
//! The derived code names `crate::atoms::VisitAtoms`, so it is of use inside `restante-core` only.

use proc_macro::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Fields, parse_macro_input};

/// Implements `VisitAtoms` by visiting every field in declaration order.
#[proc_macro_derive(VisitAtoms)]
pub fn derive_visit_atoms(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let name = &input.ident;
    let arms = match &input.data {
        Data::Struct(data) => arm(quote!(Self), &data.fields),
        Data::Enum(data) => {
            let arms = data.variants.iter().map(|variant| {
                let ident = &variant.ident;
                arm(quote!(Self::#ident), &variant.fields)
            });
            quote!(#(#arms)*)
        }
        Data::Union(_) => return syn::Error::new_spanned(name, "a union has no visitable fields").to_compile_error().into(),
    };
    let (generics, type_generics, clause) = input.generics.split_for_impl();
    quote! {
        impl #generics crate::atoms::VisitAtoms for #name #type_generics #clause {
            fn visit_atoms(&mut self, visitor: &mut dyn crate::atoms::AtomVisitor) {
                let _ = &visitor;
                match self { #arms }
            }
        }
    }
    .into()
}

fn arm(path: proc_macro2::TokenStream, fields: &Fields) -> proc_macro2::TokenStream {
    match fields {
        Fields::Named(fields) => {
            let names: Vec<_> = fields.named.iter().map(|field| &field.ident).collect();
            quote!(#path { #(#names),* } => { #(crate::atoms::VisitAtoms::visit_atoms(#names, visitor);)* })
        }
        Fields::Unnamed(fields) => {
            let names: Vec<_> = (0..fields.unnamed.len()).map(|index| format_ident!("field_{index}")).collect();
            quote!(#path ( #(#names),* ) => { #(crate::atoms::VisitAtoms::visit_atoms(#names, visitor);)* })
        }
        Fields::Unit => quote!(#path => {}),
    }
}
