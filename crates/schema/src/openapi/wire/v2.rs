//! The messages of `openapi.v2` that the server's documents use: which field has which number.
//!
//! Left out are parameters in headers and forms, files, examples and OAuth: no document of this server has them.
//! Source concept: <https://github.com/google/gnostic/tree/main/openapiv2>

use serde_json::Value;

use super::Form::{Any, Count, Each, Flag, Message as One, Number, OneOf, Text, Within};
use super::{Alternative, Form, Message, is_reference};

const TEXTS: Form = Each(&Text);

pub(super) static DOCUMENT: Message = Message {
    fields: &[
        ("swagger", 1, Text),
        ("info", 2, One(&INFO)),
        ("host", 3, Text),
        ("basePath", 4, Text),
        ("schemes", 5, TEXTS),
        ("consumes", 6, TEXTS),
        ("produces", 7, TEXTS),
        ("paths", 8, One(&PATHS)),
        ("definitions", 9, One(&SCHEMAS)),
        ("parameters", 10, One(&PARAMETERS)),
        ("responses", 11, One(&RESPONSE_MODELS)),
        ("security", 12, Each(&One(&SECURITY_REQUIREMENT))),
        ("securityDefinitions", 13, One(&SECURITY_DEFINITIONS)),
    ],
    extensions: 16,
    others: None,
};

static INFO: Message = Message {
    fields: &[("title", 1, Text), ("version", 2, Text), ("description", 3, Text), ("termsOfService", 4, Text)],
    extensions: 7,
    others: None,
};

/// A map from names to values, which are under field 1.
const fn map(of: Form) -> Message {
    Message { fields: &[], extensions: 0, others: Some((1, of)) }
}

static PATHS: Message = Message { fields: &[], extensions: 1, others: Some((2, One(&PATH_ITEM))) };
static SCHEMAS: Message = map(One(&SCHEMA));
static PARAMETERS: Message = map(OneOf(&PARAMETER));
static RESPONSE_MODELS: Message = map(One(&RESPONSE));
/// Of each scheme, the scopes that are needed.
static SECURITY_REQUIREMENT: Message = map(Within(1, &TEXTS));
/// Only keys in headers are known.
static SECURITY_DEFINITIONS: Message = map(Within(2, &One(&API_KEY)));

static API_KEY: Message = Message {
    fields: &[("type", 1, Text), ("name", 2, Text), ("in", 3, Text), ("description", 4, Text)],
    extensions: 5,
    others: None,
};

static PATH_ITEM: Message = Message {
    fields: &[
        ("$ref", 1, Text),
        ("get", 2, One(&OPERATION)),
        ("put", 3, One(&OPERATION)),
        ("post", 4, One(&OPERATION)),
        ("delete", 5, One(&OPERATION)),
        ("options", 6, One(&OPERATION)),
        ("head", 7, One(&OPERATION)),
        ("patch", 8, One(&OPERATION)),
        ("parameters", 9, Each(&OneOf(&PARAMETERS_ITEM))),
    ],
    extensions: 10,
    others: None,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, TEXTS),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("externalDocs", 4, One(&EXTERNAL_DOCS)),
        ("operationId", 5, Text),
        ("produces", 6, TEXTS),
        ("consumes", 7, TEXTS),
        ("parameters", 8, Each(&OneOf(&PARAMETERS_ITEM))),
        ("responses", 9, One(&RESPONSES)),
        ("schemes", 10, TEXTS),
        ("deprecated", 11, Flag),
        ("security", 12, Each(&One(&SECURITY_REQUIREMENT))),
    ],
    extensions: 13,
    others: None,
};

static RESPONSES: Message = Message { fields: &[], extensions: 2, others: Some((1, OneOf(&RESPONSE_VALUE))) };

static RESPONSE: Message = Message {
    fields: &[("description", 1, Text), ("schema", 2, Within(1, &One(&SCHEMA)))],
    extensions: 5,
    others: None,
};

static REFERENCE: Message =
    Message { fields: &[("$ref", 1, Text), ("description", 2, Text)], extensions: 0, others: None };

static BODY_PARAMETER: Message = Message {
    fields: &[
        ("description", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("required", 4, Flag),
        ("schema", 5, One(&SCHEMA)),
    ],
    extensions: 6,
    others: None,
};

static QUERY_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("allowEmptyValue", 5, Flag),
        ("type", 6, Text),
        ("format", 7, Text),
        ("default", 10, Any),
        ("uniqueItems", 20, Flag),
    ],
    extensions: 23,
    others: None,
};

static PATH_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 5, Text),
        ("format", 6, Text),
        ("default", 9, Any),
        ("uniqueItems", 19, Flag),
    ],
    extensions: 22,
    others: None,
};

static EXTERNAL_DOCS: Message =
    Message { fields: &[("description", 1, Text), ("url", 2, Text)], extensions: 3, others: None };

static SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, Any),
        ("multipleOf", 6, Number),
        ("maximum", 7, Number),
        ("exclusiveMaximum", 8, Flag),
        ("minimum", 9, Number),
        ("exclusiveMinimum", 10, Flag),
        ("maxLength", 11, Count),
        ("minLength", 12, Count),
        ("pattern", 13, Text),
        ("maxItems", 14, Count),
        ("minItems", 15, Count),
        ("uniqueItems", 16, Flag),
        ("maxProperties", 17, Count),
        ("minProperties", 18, Count),
        ("required", 19, TEXTS),
        ("enum", 20, Each(&Any)),
        ("additionalProperties", 21, OneOf(&SCHEMA_OR_FLAG)),
        ("type", 22, Within(1, &TEXTS)),
        ("items", 23, Within(1, &Each(&One(&SCHEMA)))),
        ("allOf", 24, Each(&One(&SCHEMA))),
        ("properties", 25, One(&SCHEMAS)),
        ("discriminator", 26, Text),
        ("readOnly", 27, Flag),
        ("externalDocs", 29, One(&EXTERNAL_DOCS)),
        ("example", 30, Any),
    ],
    extensions: 31,
    others: None,
};

static SCHEMA_OR_FLAG: [Alternative; 2] = [
    Alternative { is: Value::is_boolean, path: &[2], form: Flag },
    Alternative { is: Value::is_object, path: &[1], form: One(&SCHEMA) },
];

static RESPONSE_VALUE: [Alternative; 2] = [
    Alternative { is: is_reference, path: &[2], form: One(&REFERENCE) },
    Alternative { is: Value::is_object, path: &[1], form: One(&RESPONSE) },
];

static PARAMETERS_ITEM: [Alternative; 2] = [
    Alternative { is: is_reference, path: &[2], form: One(&REFERENCE) },
    Alternative { is: Value::is_object, path: &[1], form: OneOf(&PARAMETER) },
];

static PARAMETER: [Alternative; 3] = [
    Alternative { is: |value| value["in"] == "body", path: &[1], form: One(&BODY_PARAMETER) },
    Alternative { is: |value| value["in"] == "query", path: &[2, 3], form: One(&QUERY_PARAMETER) },
    Alternative { is: |value| value["in"] == "path", path: &[2, 4], form: One(&PATH_PARAMETER) },
];
