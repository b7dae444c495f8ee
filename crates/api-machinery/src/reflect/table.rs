//! The static types: what is known of structs and fields without any value.

use crate::leaf::encoding::LeafType;

/// Stands in [`StructType::by_number`] for a number that no field has.
pub const NO_FIELD: u8 = u8::MAX;

/// The static type of a struct.
pub struct StructType {
    /// Name as in the API documentation, such as `PodSpec`.
    pub name: &'static str,
    /// Prefix of its `OpenAPI` name, such as `io.k8s.api.core.v1`.
    pub package: &'static str,
    /// What it is, for `kubectl explain`.
    pub doc: &'static str,
    /// Server-side apply owns it as a whole.
    pub atomic: bool,
    /// It may carry `kind` and `apiVersion`, which are not fields of it.
    pub type_meta: bool,
    /// Which of its fields exclude each other, where documents tell.
    pub union: Option<&'static Union>,
    /// Fields in declared order, which is the order of JSON output.
    pub fields: &'static [FieldType],
    /// Numbers and indexes of the fields that are on the protobuf wire, by ascending number.
    pub wire_order: &'static [(u32, u16)],
    /// By protobuf number, from 0 on: the field's index, or [`NO_FIELD`].
    pub by_number: &'static [u8],
    /// One bit per field that JSON has even when it is unset.
    pub json_always: u128,
    /// One bit per field that may be on the wire even when it is unset: all but lists, maps and pointers.
    pub wire_always: u128,
    /// One bit per field that defaulting sets when it is empty.
    pub fills: u128,
}

impl StructType {
    /// The index of the field with this JSON name; members of the inline field are not looked at.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| !field.inline && field.name == name)
    }

    /// The index of the field whose members appear among this struct's own.
    #[must_use]
    pub fn inline(&self) -> Option<usize> {
        self.fields.iter().position(|field| field.inline)
    }

    /// The kind of an object of the core group, which also stands within others, such as a claim template; everything else
    /// that stands within objects is no kind.
    #[must_use]
    pub fn core_kind(&self) -> Option<&'static str> {
        let is_kind = self.type_meta && self.package == "io.k8s.api.core.v1" && self.index_of("metadata").is_some();
        is_kind.then_some(self.name)
    }

    /// The struct's version, such as `v1`, as it shows in type names of decode errors.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.package.rsplit('.').next().unwrap_or(self.package)
    }
}

/// Fields of a struct of which one chosen one is set.
pub struct Union {
    /// JSON name of the field whose value chooses; empty where whichever is set is the chosen one.
    pub discriminator: &'static str,
    /// JSON names of the fields that are chosen from, each with the name that it has for the discriminator.
    pub fields: &'static [(&'static str, &'static str)],
}

/// When a field is left out of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Left out when empty; structs never are (Go's `omitempty`).
    OmitEmpty,
    /// Left out when it and all below is zero (Go's `omitzero`).
    OmitZero,
    /// Always written.
    Always,
}

/// How server-side apply sees a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// Owned as a whole.
    Atomic,
    /// A set of scalars, each owned by itself.
    Set,
    /// Entries told apart by these members.
    Map(&'static [&'static str]),
}

/// How a strategic merge patch treats a list or struct.
#[derive(Debug, Clone, Copy, Default)]
pub struct PatchStrategy {
    /// Lists are merged rather than replaced.
    pub merge: bool,
    /// Members that the patch does not name are dropped.
    pub retain_keys: bool,
    /// A struct is replaced as a whole rather than merged.
    pub replace: bool,
    /// The member that tells entries apart; empty for lists of scalars.
    pub merge_key: &'static str,
}

/// One row of a struct's table.
pub struct FieldType {
    /// JSON name; empty for the inline field and the rest.
    pub name: &'static str,
    /// The name as JSON has it: in quotes, with the colon behind.
    pub key: &'static str,
    /// Protobuf number; 0 where the field is not on the wire.
    pub number: u32,
    /// What it is, for `kubectl explain`.
    pub doc: &'static str,
    /// When it is left out of JSON.
    pub presence: Presence,
    /// Its members appear among those of the parent in JSON (they are a nested message in protobuf).
    pub inline: bool,
    /// A map that takes every member that no other field names.
    pub rest: bool,
    /// `OpenAPI` lists it as required.
    pub required: bool,
    /// Its value is told to none but clients: logs, panics and texts of errors show that it is set, and no more.
    pub secret: bool,
    /// Server-side apply owns the map or struct as a whole.
    pub atomic: bool,
    /// Server-side apply looks into the struct here, although it owns others of the type as a whole.
    pub granular: bool,
    /// How server-side apply sees it when it is a list.
    pub list: ListType,
    /// How strategic merge treats it.
    pub patch: PatchStrategy,
    /// The declared default as JSON text; empty for none.
    pub default: &'static str,
    /// What defaulting sets where the field is empty, as JSON text; empty for none.
    pub fill: &'static str,
    /// Its type by name, where that is more than the shape tells.
    pub named: Option<&'static NamedType>,
    /// Its static type.
    pub shape: fn() -> Shape,
}

impl FieldType {
    /// A row with nothing set, for tables that are written by hand.
    pub const PLAIN: Self = Self {
        name: "",
        key: "",
        number: 0,
        doc: "",
        presence: Presence::OmitEmpty,
        inline: false,
        rest: false,
        required: false,
        secret: false,
        atomic: false,
        granular: false,
        list: ListType::Atomic,
        patch: PatchStrategy { merge: false, replace: false, retain_keys: false, merge_key: "" },
        default: "",
        fill: "",
        named: None,
        shape: || Shape::Str,
    };

    /// Its Go type as decode errors name it; empty where that is what the shape tells.
    #[must_use]
    pub fn go_type(&self) -> &'static str {
        self.named.map_or("", |named| named.go_name)
    }

    /// The values that documents tell it may have, or its items where it is a list, or its entries where it is a map;
    /// empty where they tell none. Validation may accept fewer, as features can be off.
    #[must_use]
    pub fn values(&self) -> &'static [&'static str] {
        self.named.map_or(&[], |named| named.values)
    }
}

/// What few fields have, kept aside of [`FieldType`] so that the rows of all others stay small: a type with a name.
pub struct NamedType {
    /// As Go calls it, such as `v1.Protocol` or `[]v1.KeyUsage`; empty where that is what the shape tells.
    pub go_name: &'static str,
    /// The values that it may have, in any order; empty where documents tell none.
    pub values: &'static [&'static str],
}

/// A static type.
#[derive(Clone, Copy)]
pub enum Shape {
    /// `true` or `false`.
    Bool,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A double.
    Float,
    /// A string.
    Str,
    /// Bytes; base64 in JSON.
    Bytes,
    /// A struct with this table.
    Struct(&'static StructType),
    /// A list of this.
    List(fn() -> Shape),
    /// A map from strings to this.
    Map(fn() -> Shape),
    /// This or nothing.
    Optional(fn() -> Shape),
    /// A type with an encoding of its own.
    Leaf(&'static LeafType),
    /// Any JSON value.
    Dynamic,
}

impl Shape {
    /// The type without the layer of optionality.
    #[must_use]
    pub fn required(self) -> Shape {
        match self {
            Shape::Optional(inner) => inner().required(),
            other => other,
        }
    }

    /// The type's name in decode errors, such as `[]v1.Container`.
    #[must_use]
    pub fn go_name(self) -> String {
        match self {
            Shape::Bool => "bool".into(),
            Shape::Int32 => "int32".into(),
            Shape::Int64 => "int64".into(),
            Shape::Float => "float64".into(),
            Shape::Str => "string".into(),
            Shape::Bytes => "[]uint8".into(),
            Shape::Struct(of) => format!("{}.{}", of.version(), of.name),
            Shape::List(of) => format!("[]{}", of().go_name()),
            Shape::Map(of) => format!("map[string]{}", of().go_name()),
            Shape::Optional(of) => of().go_name(),
            Shape::Leaf(leaf) => leaf.name.into(),
            Shape::Dynamic => "map[string]interface {}".into(),
        }
    }
}
