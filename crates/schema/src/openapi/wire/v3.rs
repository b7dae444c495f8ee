//! The messages of `openapi.v3` that the server's documents use: which field has which number.
//!
//! Left out are headers, examples, links, callbacks, servers and OAuth: no document of this server has them.
//! Source concept: <https://github.com/google/gnostic/tree/main/openapiv3>

use serde_json::Value;

use super::Form::{Any, Count, Each, Flag, Message as One, Number, OneOf, Text, Within};
use super::{Alternative, Form, Message, is_reference};

const TEXTS: Form = Each(&Text);

pub(super) static DOCUMENT: Message = Message {
    fields: &[
        ("openapi", 1, Text),
        ("info", 2, One(&INFO)),
        ("paths", 4, One(&PATHS)),
        ("components", 5, One(&COMPONENTS)),
    ],
    extensions: 9,
    others: None,
};

static INFO: Message = Message {
    fields: &[("title", 1, Text), ("description", 2, Text), ("version", 6, Text)],
    extensions: 7,
    others: None,
};

/// A map from names to values, which are under field 1.
const fn map(of: Form) -> Message {
    Message { fields: &[], extensions: 0, others: Some((1, of)) }
}

static PATHS: Message = Message { fields: &[], extensions: 2, others: Some((1, One(&PATH_ITEM))) };
static SCHEMAS: Message = map(OneOf(&SCHEMA_OR_REFERENCE));
static MEDIA_TYPES: Message = map(One(&MEDIA_TYPE));
static SECURITY_SCHEMES: Message = map(OneOf(&SECURITY_SCHEME_OR_REFERENCE));

static COMPONENTS: Message = Message {
    fields: &[("schemas", 1, One(&SCHEMAS)), ("securitySchemes", 7, One(&SECURITY_SCHEMES))],
    extensions: 10,
    others: None,
};

static SECURITY_SCHEME: Message = Message {
    fields: &[("type", 1, Text), ("description", 2, Text), ("name", 3, Text), ("in", 4, Text)],
    extensions: 9,
    others: None,
};

static PATH_ITEM: Message = Message {
    fields: &[
        ("$ref", 1, Text),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("get", 4, One(&OPERATION)),
        ("put", 5, One(&OPERATION)),
        ("post", 6, One(&OPERATION)),
        ("delete", 7, One(&OPERATION)),
        ("options", 8, One(&OPERATION)),
        ("head", 9, One(&OPERATION)),
        ("patch", 10, One(&OPERATION)),
        ("parameters", 13, Each(&OneOf(&PARAMETER_OR_REFERENCE))),
    ],
    extensions: 14,
    others: None,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, TEXTS),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("externalDocs", 4, One(&EXTERNAL_DOCS)),
        ("operationId", 5, Text),
        ("parameters", 6, Each(&OneOf(&PARAMETER_OR_REFERENCE))),
        ("requestBody", 7, OneOf(&BODY_OR_REFERENCE)),
        ("responses", 8, One(&RESPONSES)),
        ("deprecated", 10, Flag),
    ],
    extensions: 13,
    others: None,
};

static PARAMETER: Message = Message {
    fields: &[
        ("name", 1, Text),
        ("in", 2, Text),
        ("description", 3, Text),
        ("required", 4, Flag),
        ("schema", 10, OneOf(&SCHEMA_OR_REFERENCE)),
    ],
    extensions: 14,
    others: None,
};

static BODY: Message = Message {
    fields: &[("description", 1, Text), ("content", 2, One(&MEDIA_TYPES)), ("required", 3, Flag)],
    extensions: 4,
    others: None,
};

static MEDIA_TYPE: Message =
    Message { fields: &[("schema", 1, OneOf(&SCHEMA_OR_REFERENCE))], extensions: 5, others: None };

static RESPONSES: Message = Message { fields: &[], extensions: 3, others: Some((2, OneOf(&RESPONSE_OR_REFERENCE))) };

static RESPONSE: Message =
    Message { fields: &[("description", 1, Text), ("content", 3, One(&MEDIA_TYPES))], extensions: 5, others: None };

static REFERENCE: Message = Message {
    fields: &[("$ref", 1, Text), ("summary", 2, Text), ("description", 3, Text)],
    extensions: 0,
    others: None,
};

static EXTERNAL_DOCS: Message =
    Message { fields: &[("description", 1, Text), ("url", 2, Text)], extensions: 3, others: None };

static SCHEMA: Message = Message {
    fields: &[
        ("nullable", 1, Flag),
        ("readOnly", 3, Flag),
        ("writeOnly", 4, Flag),
        ("externalDocs", 6, One(&EXTERNAL_DOCS)),
        ("example", 7, Any),
        ("deprecated", 8, Flag),
        ("title", 9, Text),
        ("multipleOf", 10, Number),
        ("maximum", 11, Number),
        ("exclusiveMaximum", 12, Flag),
        ("minimum", 13, Number),
        ("exclusiveMinimum", 14, Flag),
        ("maxLength", 15, Count),
        ("minLength", 16, Count),
        ("pattern", 17, Text),
        ("maxItems", 18, Count),
        ("minItems", 19, Count),
        ("uniqueItems", 20, Flag),
        ("maxProperties", 21, Count),
        ("minProperties", 22, Count),
        ("required", 23, TEXTS),
        ("enum", 24, Each(&Any)),
        ("type", 25, Text),
        ("allOf", 26, Each(&OneOf(&SCHEMA_OR_REFERENCE))),
        ("oneOf", 27, Each(&OneOf(&SCHEMA_OR_REFERENCE))),
        ("anyOf", 28, Each(&OneOf(&SCHEMA_OR_REFERENCE))),
        ("not", 29, One(&SCHEMA)),
        ("items", 30, Within(1, &Each(&OneOf(&SCHEMA_OR_REFERENCE)))),
        ("properties", 31, One(&SCHEMAS)),
        ("additionalProperties", 32, OneOf(&SCHEMA_OR_FLAG)),
        ("default", 33, OneOf(&DEFAULT)),
        ("description", 34, Text),
        ("format", 35, Text),
    ],
    extensions: 36,
    others: None,
};

/// What has no member of its own for the value, such as an empty object, is there and empty.
static EMPTY: Message = Message { fields: &[], extensions: 0, others: None };

static DEFAULT: [Alternative; 4] = [
    Alternative { is: Value::is_number, path: &[1], form: Number },
    Alternative { is: Value::is_boolean, path: &[2], form: Flag },
    Alternative { is: Value::is_string, path: &[3], form: Text },
    Alternative { is: |_| true, path: &[], form: One(&EMPTY) },
];

static SCHEMA_OR_FLAG: [Alternative; 2] = [
    Alternative { is: Value::is_boolean, path: &[2], form: Flag },
    Alternative { is: Value::is_object, path: &[1], form: OneOf(&SCHEMA_OR_REFERENCE) },
];

/// A thing itself under field 1, or where it is under field 2.
const fn or_reference(message: &'static Message) -> [Alternative; 2] {
    [
        Alternative { is: is_reference, path: &[2], form: One(&REFERENCE) },
        Alternative { is: Value::is_object, path: &[1], form: One(message) },
    ]
}

static SCHEMA_OR_REFERENCE: [Alternative; 2] = or_reference(&SCHEMA);
static PARAMETER_OR_REFERENCE: [Alternative; 2] = or_reference(&PARAMETER);
static BODY_OR_REFERENCE: [Alternative; 2] = or_reference(&BODY);
static RESPONSE_OR_REFERENCE: [Alternative; 2] = or_reference(&RESPONSE);
static SECURITY_SCHEME_OR_REFERENCE: [Alternative; 2] = or_reference(&SECURITY_SCHEME);
