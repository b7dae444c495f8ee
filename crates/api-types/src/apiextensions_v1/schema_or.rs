//! The three unions of a JSON schema: a schema or a truth value, a list of schemas, or a list of names.

use std::sync::Arc;

use api_machinery::json::{DecodeError, Reader, Token, Writer};
use api_machinery::leaf::{Leaf, LeafType, same};
use api_machinery::leaf_field;
use api_machinery::protobuf::{Decoder, Encoder, WireError};

use super::JSONSchemaProps;

/// A schema, or whether anything is allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct JSONSchemaPropsOrBool {
    /// Whether values are allowed; true when there is a schema.
    pub allows: bool,
    /// What values must look like.
    pub schema: Option<Arc<JSONSchemaProps>>,
}

impl Default for JSONSchemaPropsOrBool {
    fn default() -> Self {
        Self { allows: true, schema: None }
    }
}

/// A schema, or a list of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JSONSchemaPropsOrArray {
    /// The one schema.
    pub schema: Option<Arc<JSONSchemaProps>>,
    /// The list of schemas.
    pub schemas: Vec<JSONSchemaProps>,
}

/// A schema, or a list of names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JSONSchemaPropsOrStringArray {
    /// The schema.
    pub schema: Option<Arc<JSONSchemaProps>>,
    /// The names.
    pub property: Vec<String>,
}

const fn leaf_type(name: &'static str, model: &'static str, doc: &'static str) -> LeafType {
    LeafType { name, model, openapi_type: "", openapi_format: "", doc }
}

static OR_BOOL: LeafType = leaf_type(
    "v1.JSONSchemaPropsOrBool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
    "A schema, or whether anything is allowed.",
);
static OR_ARRAY: LeafType = leaf_type(
    "v1.JSONSchemaPropsOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
    "A schema, or a list of them.",
);
static OR_STRINGS: LeafType = leaf_type(
    "v1.JSONSchemaPropsOrStringArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
    "A schema, or a list of names.",
);

leaf_field!(JSONSchemaPropsOrBool, &OR_BOOL);
leaf_field!(JSONSchemaPropsOrArray, &OR_ARRAY);
leaf_field!(JSONSchemaPropsOrStringArray, &OR_STRINGS);

/// The schema that comes next. Upstream decodes these unions by themselves, where nothing is strict.
fn schema_of(input: &mut Reader<'_>) -> Result<Arc<JSONSchemaProps>, DecodeError> {
    let mut schema = JSONSchemaProps::default();
    input.leniently(|input| input.read_struct(&mut schema))?;
    Ok(Arc::new(schema))
}

fn write_schema(number: u32, schema: Option<&JSONSchemaProps>, out: &mut Encoder) {
    if let Some(schema) = schema {
        out.message(number, |out| out.members(schema));
    }
}

fn read_schema(bytes: &[u8]) -> Result<Arc<JSONSchemaProps>, WireError> {
    let mut schema = JSONSchemaProps::default();
    api_machinery::protobuf::decode(bytes, &mut schema)?;
    Ok(Arc::new(schema))
}

impl Leaf for JSONSchemaPropsOrBool {
    fn leaf_type(&self) -> &'static LeafType {
        &OR_BOOL
    }
    fn is_zero(&self) -> bool {
        !self.allows && self.schema.is_none()
    }
    fn equal(&self, other: &dyn Leaf) -> bool {
        same(self, other)
    }
    fn write_json(&self, out: &mut Writer) {
        match &self.schema {
            Some(schema) => out.structure(schema.as_ref()),
            None => out.bool(self.allows),
        }
    }
    fn read_json(&mut self, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        if input.is_object() {
            *self = Self { allows: true, schema: Some(schema_of(input)?) };
            return Ok(());
        }
        *self = match input.token()? {
            Token::Null => return Ok(()),
            Token::Bool(allows) => Self { allows, schema: None },
            _ => return Err(DecodeError("boolean or JSON schema expected".into())),
        };
        Ok(())
    }
    fn write_wire(&self, out: &mut Encoder) {
        write_schema(2, self.schema.as_deref(), out);
        out.bool(1, self.allows);
    }
    fn read_wire(&mut self, input: &mut Decoder<'_>) -> Result<(), WireError> {
        while let Some((number, value)) = input.next()? {
            match number {
                1 => self.allows = value.int()? != 0,
                2 => self.schema = Some(read_schema(value.bytes()?)?),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Leaf for JSONSchemaPropsOrArray {
    fn leaf_type(&self) -> &'static LeafType {
        &OR_ARRAY
    }
    fn is_zero(&self) -> bool {
        self.schema.is_none() && self.schemas.is_empty()
    }
    fn equal(&self, other: &dyn Leaf) -> bool {
        same(self, other)
    }
    fn write_json(&self, out: &mut Writer) {
        match &self.schema {
            _ if !self.schemas.is_empty() => out.field(&self.schemas),
            Some(schema) => out.structure(schema.as_ref()),
            None => out.null(),
        }
    }
    fn read_json(&mut self, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        *self = Self::default();
        if input.is_array() {
            return input.leniently(|input| input.read_field(&mut self.schemas));
        }
        if input.is_object() {
            self.schema = Some(schema_of(input)?);
            return Ok(());
        }
        input.skip_value()
    }
    fn write_wire(&self, out: &mut Encoder) {
        for schema in self.schemas.iter().rev() {
            write_schema(2, Some(schema), out);
        }
        write_schema(1, self.schema.as_deref(), out);
    }
    fn read_wire(&mut self, input: &mut Decoder<'_>) -> Result<(), WireError> {
        while let Some((number, value)) = input.next()? {
            match number {
                1 => self.schema = Some(read_schema(value.bytes()?)?),
                2 => self.schemas.push(Arc::unwrap_or_clone(read_schema(value.bytes()?)?)),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Leaf for JSONSchemaPropsOrStringArray {
    fn leaf_type(&self) -> &'static LeafType {
        &OR_STRINGS
    }
    fn is_zero(&self) -> bool {
        self.schema.is_none() && self.property.is_empty()
    }
    fn equal(&self, other: &dyn Leaf) -> bool {
        same(self, other)
    }
    fn write_json(&self, out: &mut Writer) {
        match &self.schema {
            _ if !self.property.is_empty() => out.field(&self.property),
            Some(schema) => out.structure(schema.as_ref()),
            None => out.null(),
        }
    }
    fn read_json(&mut self, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        *self = Self::default();
        if input.is_array() {
            return input.leniently(|input| input.read_field(&mut self.property));
        }
        if input.is_object() {
            self.schema = Some(schema_of(input)?);
            return Ok(());
        }
        input.skip_value()
    }
    fn write_wire(&self, out: &mut Encoder) {
        for name in self.property.iter().rev() {
            out.bytes(2, name.as_bytes());
        }
        write_schema(1, self.schema.as_deref(), out);
    }
    fn read_wire(&mut self, input: &mut Decoder<'_>) -> Result<(), WireError> {
        while let Some((number, value)) = input.next()? {
            match number {
                1 => self.schema = Some(read_schema(value.bytes()?)?),
                2 => self.property.push(value.text()?),
                _ => {}
            }
        }
        Ok(())
    }
}
