//! The arguments of `#[api(...)]` and `#[field(...)]`.

use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, LitInt, LitStr, Path, Result, Token};

/// What stands in `#[api(...)]`.
#[derive(Default)]
pub(crate) struct StructArgs {
    /// Nothing where they are those of the module above.
    pub(crate) group: Option<String>,
    pub(crate) version: Option<String>,
    /// Nothing where it is the version.
    pub(crate) watched: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) resource: String,
    pub(crate) namespaced: bool,
    pub(crate) atomic: bool,
    pub(crate) union: Option<UnionArgs>,
}

impl Parse for StructArgs {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut args = Self::default();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            match name.to_string().as_str() {
                "group" => args.group = Some(text(input)?),
                "version" => args.version = Some(text(input)?),
                "watched" => args.watched = Some(text(input)?),
                "kind" => args.kind = Some(text(input)?),
                "resource" => args.resource = text(input)?,
                "namespaced" => args.namespaced = true,
                "atomic" => args.atomic = true,
                "union" => args.union = Some(union(input)?),
                _ => return Err(Error::new(name.span(), "unknown argument of #[api]")),
            }
            comma(input)?;
        }
        Ok(args)
    }
}

/// What stands in `union(...)`.
#[derive(Default)]
pub(crate) struct UnionArgs {
    pub(crate) discriminator: String,
    /// JSON names of fields and the names that they have for the discriminator.
    pub(crate) fields: Vec<(String, String)>,
}

fn union(input: ParseStream<'_>) -> Result<UnionArgs> {
    let inside;
    syn::parenthesized!(inside in input);
    let mut args = UnionArgs::default();
    while !inside.is_empty() {
        let name: Ident = inside.parse()?;
        match name.to_string().as_str() {
            "discriminator" => args.discriminator = text(&inside)?,
            field => args.fields.push((field.to_owned(), text(&inside)?)),
        }
        comma(&inside)?;
    }
    Ok(args)
}

/// What stands in `#[field(...)]`.
#[derive(Default)]
pub(crate) struct FieldArgs {
    pub(crate) number: u32,
    pub(crate) name: Option<String>,
    pub(crate) default: String,
    pub(crate) fill: String,
    pub(crate) go_type: String,
    /// Where the list of values is.
    pub(crate) values: Option<Path>,
    pub(crate) merge_key: Option<String>,
    pub(crate) keys: Vec<String>,
    pub(crate) flags: Vec<String>,
}

impl FieldArgs {
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|set| set == flag)
    }
}

const FLAGS: &[&str] = &[
    "always",
    "omitzero",
    "inline",
    "rest",
    "required",
    "secret",
    "atomic",
    "granular",
    "set",
    "merge",
    "replace",
    "retain_keys",
];

impl Parse for FieldArgs {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut args = Self { number: input.parse::<LitInt>()?.base10_parse()?, ..Self::default() };
        comma(input)?;
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            match name.to_string().as_str() {
                "name" => args.name = Some(text(input)?),
                "default" => args.default = text(input)?,
                "fill" => args.fill = text(input)?,
                "go" => args.go_type = text(input)?,
                "values" => {
                    input.parse::<Token![=]>()?;
                    args.values = Some(input.parse()?);
                }
                "merge_key" => args.merge_key = Some(text(input)?),
                "keys" => {
                    let inside;
                    syn::parenthesized!(inside in input);
                    let keys = inside.parse_terminated(<LitStr as Parse>::parse, Token![,])?;
                    args.keys = keys.iter().map(LitStr::value).collect();
                }
                flag if FLAGS.contains(&flag) => args.flags.push(flag.to_owned()),
                _ => return Err(Error::new(name.span(), "unknown argument of #[field]")),
            }
            comma(input)?;
        }
        Ok(args)
    }
}

fn text(input: ParseStream<'_>) -> Result<String> {
    input.parse::<Token![=]>()?;
    Ok(input.parse::<LitStr>()?.value())
}

fn comma(input: ParseStream<'_>) -> Result<()> {
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok(())
}
