//! The `#[api]` attribute: writes the field table of an API struct and its `Reflect` implementation.
//!
//! What it emits is a static table and two `match` statements, not a codec: codecs, patches, schemas and the rest are
//! written once over the table (see `api_machinery::reflect`).
//!
//! On the struct: `#[api]`, or `#[api(kind = "Deployment", resource = "deployments", namespaced)]` for a kind, of the
//! group and version that the module above has as `GROUP` and `VERSION`, or of a `group = "apps"` and `version = "v1"` of
//! its own, and with `watched = "v1"` where clients ask for another version; `atomic` where server-side apply owns it as
//! a whole; `union(discriminator = "type", localhostProfile = "LocalhostProfile")` where one field chooses which of others
//! is set (each with the name that it has for the discriminator, which may be left out). The module above must have a
//! constant `PACKAGE`, the prefix of `OpenAPI` names.
//!
//! On each field: `#[field(NUMBER, ...)]` with the protobuf number (0 for none) and any of `name = "clusterIP"` (JSON
//! name, where it is not the field's name in camel case), `always` and `omitzero` (when JSON leaves it out), `inline`,
//! `rest`, `required`, `secret` (shown to clients only), `atomic`, `granular`, `set`, `keys("a", "b")` (list types of
//! server-side apply), `merge_key = "name"`, `merge`, `replace`, `retain_keys` (strategic merge), `go = "types.UID"` (what
//! Go calls the type, where decode errors name it and it is not the plain one), `values = protocol::ALL` (a constant
//! `&[&str]`: the values that documents tell of the field, its items or its entries), `default = "JSON text"` (declared in
//! `OpenAPI`) and `fill = "JSON text"` (set by defaulting where the field is empty).

mod args;
mod emit;

use proc_macro::TokenStream;
use syn::{ItemStruct, parse_macro_input};

/// Writes the table and the `Reflect`, `Field`, `Kind` and `Object` implementations of an API struct.
#[proc_macro_attribute]
pub fn api(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as args::StructArgs);
    let item = parse_macro_input!(item as ItemStruct);
    emit::emit(&args, item).unwrap_or_else(syn::Error::into_compile_error).into()
}
