//! The code that `#[api]` writes.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Attribute, Error, Expr, Fields, GenericArgument, Ident, ItemStruct, Lit, Meta, PathArguments, Result, Type};

use crate::args::{FieldArgs, StructArgs};

/// One field of the struct.
struct Row {
    ident: Ident,
    ty: Type,
    doc: String,
    args: FieldArgs,
}

pub(crate) fn emit(args: &StructArgs, mut item: ItemStruct) -> Result<TokenStream> {
    let rows = take_rows(&mut item)?;
    let ident = &item.ident;
    let table = table(args, ident, &doc_of(&item.attrs), &rows)?;
    let reflect = reflect(ident, &rows);
    let kind = kind(args, ident, &rows);
    Ok(quote! {
        #[derive(Clone, Default)]
        #item
        #reflect
        #kind
        const _: () = {
            #table
            impl #ident {
                /// The table of the struct.
                pub const STRUCT_TYPE: &'static ::api_machinery::reflect::StructType = &TABLE;
            }
        };
    })
}

/// Takes the `#[field]` attributes off the fields.
fn take_rows(item: &mut ItemStruct) -> Result<Vec<Row>> {
    let Fields::Named(fields) = &mut item.fields else {
        return Err(Error::new_spanned(&item.ident, "#[api] needs named fields"));
    };
    let mut rows = Vec::new();
    for field in &mut fields.named {
        let at = field.attrs.iter().position(|attr| attr.path().is_ident("field"));
        let (Some(at), Some(ident)) = (at, field.ident.clone()) else {
            return Err(Error::new_spanned(field, "every field needs #[field(NUMBER)]"));
        };
        let args = field.attrs.remove(at).parse_args::<FieldArgs>()?;
        rows.push(Row { ident, ty: field.ty.clone(), doc: doc_of(&field.attrs), args });
    }
    if rows.len() > 128 || rows.iter().filter(|row| row.args.has("inline")).count() > 1 {
        return Err(Error::new_spanned(&item.ident, "at most 128 fields, of which one inline"));
    }
    Ok(rows)
}

fn table(args: &StructArgs, ident: &Ident, doc: &str, rows: &[Row]) -> Result<TokenStream> {
    let name = ident.to_string();
    let fields = rows.iter().map(field_type);
    let mut order: Vec<usize> = (0..rows.len()).filter(|index| rows[*index].args.number > 0).collect();
    order.sort_by_key(|index| rows[*index].args.number);
    for pair in order.windows(2) {
        if rows[pair[0]].args.number == rows[pair[1]].args.number {
            return Err(Error::new_spanned(&rows[pair[1]].ident, "this protobuf number is taken"));
        }
    }
    let by_number = by_number(rows);
    let order = order.into_iter().map(|index| {
        let (number, index) = (rows[index].args.number, u16::try_from(index).unwrap_or(u16::MAX));
        quote!((#number, #index))
    });
    let (atomic, type_meta, union) = (args.atomic, args.kind.is_some(), union(args, rows)?);
    let json_always = bits(rows, |row| row.args.has("always"));
    let fills = bits(rows, |row| !row.args.fill.is_empty());
    let wire_always = bits(rows, |row| !is_container(&row.ty));
    Ok(quote! {
        use ::api_machinery::reflect::{Field, FieldType, ListType, PatchStrategy, Presence};
        static TABLE: ::api_machinery::reflect::StructType = ::api_machinery::reflect::StructType {
            name: #name,
            package: super::PACKAGE,
            doc: #doc,
            atomic: #atomic,
            type_meta: #type_meta,
            union: #union,
            fields: &[#(#fields),*],
            wire_order: &[#(#order),*],
            by_number: &[#(#by_number),*],
            json_always: #json_always,
            wire_always: #wire_always,
            fills: #fills,
        };
    })
}

/// By number, from 0 on, the index of the row; 255 for none.
fn by_number(rows: &[Row]) -> Vec<u8> {
    let highest = rows.iter().map(|row| row.args.number).max().unwrap_or(0);
    let index = |number| rows.iter().position(|row| number > 0 && row.args.number == number);
    (0..=highest).map(|number| index(number).and_then(|index| u8::try_from(index).ok()).unwrap_or(u8::MAX)).collect()
}

/// One bit per row that holds.
fn bits(rows: &[Row], holds: impl Fn(&Row) -> bool) -> u128 {
    (0..).zip(rows).filter(|(_, row)| holds(row)).fold(0, |set, (index, _)| set | 1_u128 << index)
}

/// Whether the type is plainly a list, a map or a pointer, of which nothing is written when it is empty, rare or not.
fn is_container(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let Some(last) = path.path.segments.last() else { return false };
    match &last.arguments {
        PathArguments::AngleBracketed(of) if last.ident == "Rare" => {
            of.args.iter().any(|of| matches!(of, GenericArgument::Type(of) if is_container(of)))
        }
        _ => ["Vec", "BTreeMap", "Option"].iter().any(|name| last.ident == name),
    }
}

fn field_type(row: &Row) -> TokenStream {
    let args = &row.args;
    let name = json_name(row);
    let presence = match (args.has("always"), args.has("omitzero")) {
        (true, _) => quote!(Presence::Always),
        (_, true) => quote!(Presence::OmitZero),
        _ => quote!(Presence::OmitEmpty),
    };
    let keys: Vec<&str> = match (&args.merge_key, args.keys.is_empty()) {
        _ if args.has("atomic") => Vec::new(),
        (Some(key), true) => vec![key.as_str()],
        _ => args.keys.iter().map(String::as_str).collect(),
    };
    let list = match (args.has("set"), keys.is_empty()) {
        (true, _) => quote!(ListType::Set),
        (_, false) => quote!(ListType::Map(&[#(#keys),*])),
        _ => quote!(ListType::Atomic),
    };
    let merge_key = args.merge_key.as_deref().unwrap_or_default();
    let merge = args.has("merge") || args.merge_key.is_some();
    let (inline, rest, required) = (args.has("inline"), args.has("rest"), args.has("required"));
    let secret = args.has("secret");
    let (atomic, replace, retain_keys) = (args.has("atomic"), args.has("replace"), args.has("retain_keys"));
    let granular = args.has("granular");
    let (number, default, fill, doc, ty) = (args.number, &args.default, &args.fill, &row.doc, &row.ty);
    let named = named_type(args);
    let key = format!("\"{name}\":");
    quote! {
        FieldType {
            name: #name, key: #key, number: #number, doc: #doc, presence: #presence, inline: #inline, rest: #rest,
            required: #required, secret: #secret, atomic: #atomic, granular: #granular, list: #list,
            patch: PatchStrategy { merge: #merge, replace: #replace, retain_keys: #retain_keys, merge_key: #merge_key },
            default: #default, fill: #fill, named: #named, shape: <#ty as Field>::shape,
        }
    }
}

fn json_name(row: &Row) -> String {
    match &row.args.name {
        Some(name) => name.clone(),
        None if row.args.has("inline") || row.args.has("rest") => String::new(),
        None => camel_case(&row.ident.to_string()),
    }
}

/// What is said of the type beside its shape, for the few fields of which something is.
fn named_type(args: &FieldArgs) -> TokenStream {
    if args.go_type.is_empty() && args.values.is_none() {
        return quote!(None);
    }
    let go_name = &args.go_type;
    let values = args.values.as_ref().map_or_else(|| quote!(&[]), |values| quote!(#values));
    quote!(Some(&::api_machinery::reflect::NamedType { go_name: #go_name, values: #values }))
}

/// Which fields exclude each other; names of fields that are none are refused.
fn union(args: &StructArgs, rows: &[Row]) -> Result<TokenStream> {
    let Some(union) = &args.union else { return Ok(quote!(None)) };
    let (discriminator, fields) = (&union.discriminator, &union.fields);
    let named = fields.iter().map(|(field, _)| field).chain((!discriminator.is_empty()).then_some(discriminator));
    for name in named {
        if !rows.iter().any(|row| json_name(row) == *name) {
            return Err(Error::new(Span::call_site(), format!("union: there is no field {name}")));
        }
    }
    let fields = fields.iter().map(|(field, name)| quote!((#field, #name)));
    Ok(quote! {
        Some(&::api_machinery::reflect::Union { discriminator: #discriminator, fields: &[#(#fields),*] })
    })
}

fn reflect(ident: &Ident, rows: &[Row]) -> TokenStream {
    let names: Vec<&Ident> = rows.iter().map(|row| &row.ident).collect();
    let indexes: Vec<usize> = (0..rows.len()).collect();
    quote! {
        impl ::api_machinery::reflect::Reflect for #ident {
            fn struct_type(&self) -> &'static ::api_machinery::reflect::StructType {
                Self::STRUCT_TYPE
            }
            fn field(&self, index: usize) -> &dyn ::api_machinery::reflect::Field {
                match index {
                    #(#indexes => &self.#names,)*
                    _ => ::api_machinery::reflect::no_such_field(index),
                }
            }
            fn field_mut(&mut self, index: usize) -> &mut dyn ::api_machinery::reflect::Field {
                match index {
                    #(#indexes => &mut self.#names,)*
                    _ => ::api_machinery::reflect::no_such_field(index),
                }
            }
            fn present(&self) -> u128 {
                #((u128::from(!::api_machinery::reflect::Field::is_unset(&self.#names)) << #indexes) |)* 0
            }
        }
        impl ::api_machinery::reflect::Field for #ident {
            fn view(&self) -> ::api_machinery::reflect::View<'_> {
                ::api_machinery::reflect::View::Struct(self)
            }
            fn view_mut(&mut self) -> ::api_machinery::reflect::ViewMut<'_> {
                ::api_machinery::reflect::ViewMut::Struct(self)
            }
            fn shape() -> ::api_machinery::reflect::Shape {
                ::api_machinery::reflect::Shape::Struct(Self::STRUCT_TYPE)
            }
        }
        impl ::core::cmp::PartialEq for #ident {
            fn eq(&self, other: &Self) -> bool {
                ::api_machinery::reflect::equal_structs(self, other)
            }
        }
        impl ::core::fmt::Debug for #ident {
            fn fmt(&self, out: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                out.write_str(&::api_machinery::json::encode_redacted(self))
            }
        }
    }
}

fn kind(args: &StructArgs, ident: &Ident, rows: &[Row]) -> TokenStream {
    let Some(kind) = &args.kind else { return TokenStream::new() };
    let (resource, namespaced) = (&args.resource, args.namespaced);
    let of_module = |stated: &Option<String>, constant| stated.as_ref().map_or(constant, |text| quote!(#text));
    let group = of_module(&args.group, quote!(super::GROUP));
    let version = of_module(&args.version, quote!(super::VERSION));
    let watched = args.watched.as_ref().map_or(version.clone(), |text| quote!(#text));
    let singular = kind.to_lowercase();
    let named = quote! {
        impl ::api_machinery::object::Kind for #ident {
            const TYPE: ::api_machinery::object::KindType = ::api_machinery::object::KindType {
                group: #group, version: #version, watched: #watched, kind: #kind, resource: #resource, singular: #singular,
                namespaced: #namespaced,
                table: Self::STRUCT_TYPE,
            };
        }
    };
    if !rows.iter().any(|row| row.ident == "metadata" && is_object_meta(&row.ty)) {
        return named;
    }
    quote! {
        #named
        impl ::api_machinery::object::Object for #ident {
            fn api_version(&self) -> String {
                <Self as ::api_machinery::object::Kind>::TYPE.api_version()
            }
            fn kind(&self) -> &str {
                #kind
            }
            fn meta(&self) -> &::api_machinery::meta::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ::api_machinery::meta::ObjectMeta {
                &mut self.metadata
            }
            fn clone_object(&self) -> Box<dyn ::api_machinery::object::Object> {
                Box::new(self.clone())
            }
            fn as_reflect(&self) -> &dyn ::api_machinery::reflect::Reflect {
                self
            }
            fn as_reflect_mut(&mut self) -> &mut dyn ::api_machinery::reflect::Reflect {
                self
            }
        }
    }
}

fn is_object_meta(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "ObjectMeta"))
}

/// The text of the doc comments, lines joined by spaces.
fn doc_of(attrs: &[Attribute]) -> String {
    let lines = attrs.iter().filter_map(|attr| match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// `pod_ip` as `podIp`; names that differ from that say so with `name = "..."`.
fn camel_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut upper = false;
    for symbol in name.trim_start_matches("r#").chars() {
        match symbol {
            '_' => upper = true,
            symbol if upper => {
                out.extend(symbol.to_uppercase());
                upper = false;
            }
            symbol => out.push(symbol),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(attribute: &str, field: &str) -> std::result::Result<String, String> {
        let args: StructArgs = syn::parse_str(attribute).map_err(|error| error.to_string())?;
        let text =
            format!("struct Profile {{ #[field({field})] pub type_: String, #[field(2)] pub file_name: String }}");
        let item: ItemStruct = syn::parse_str(&text).map_err(|error| error.to_string())?;
        emit(&args, item).map(|code| code.to_string().replace(' ', "")).map_err(|error| error.to_string())
    }

    #[test]
    fn facts_of_few_fields_stand_aside() {
        let code = emitted(r#"union(discriminator = "type", fileName = "File")"#, r#"1, values = kinds::ALL"#).unwrap();
        assert!(code.contains(r#"named:Some(&::api_machinery::reflect::NamedType{go_name:"",values:kinds::ALL})"#));
        assert!(code.contains(r#"Union{discriminator:"type",fields:&[("fileName","File")]}"#));
        assert_eq!(code.matches("named:None").count(), 1, "a plain field has no more than its shape");
        let code = emitted("", r#"1, go = "v1.Kind""#).unwrap();
        assert!(code.contains(r#"NamedType{go_name:"v1.Kind",values:&[]}"#));
        assert!(code.contains("union:None"));
    }

    #[test]
    fn unions_name_fields_that_there_are() {
        let refused = |attribute: &str| emitted(attribute, "1").unwrap_err();
        assert_eq!(refused(r#"union(discriminator = "kind")"#), "union: there is no field kind");
        assert_eq!(refused(r#"union(file_name = "File")"#), "union: there is no field file_name");
    }
}
