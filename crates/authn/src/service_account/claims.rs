//! The payload of a bound service account token.

use serde_json::{Map, Value, json};

/// A reference to an object by name and uid. The uid is empty where it is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectRef {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
}

/// What a token lives and dies with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoundObject {
    /// A pod, and the node it runs on if it is bound to one.
    Pod {
        /// The pod.
        pod: ObjectRef,
        /// The pod's node; without uid when the Node object was not found.
        node: Option<ObjectRef>,
    },
    /// A Secret.
    Secret(ObjectRef),
    /// A Node.
    Node(ObjectRef),
}

/// Every claim, times in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// `iss`.
    pub issuer: String,
    /// `sub`.
    pub subject: String,
    /// `aud`.
    pub audiences: Vec<String>,
    /// `exp`.
    pub expires: Option<i64>,
    /// `nbf`.
    pub not_before: Option<i64>,
    /// `iat`.
    pub issued: Option<i64>,
    /// `jti`.
    pub id: String,
    /// Namespace of the service account.
    pub namespace: String,
    /// The service account.
    pub service_account: ObjectRef,
    /// Bound pod.
    pub pod: Option<ObjectRef>,
    /// Bound Secret.
    pub secret: Option<ObjectRef>,
    /// Bound node, or the bound pod's node.
    pub node: Option<ObjectRef>,
    /// From when on use of the token is reported as stale.
    pub warn_after: Option<i64>,
}

impl Claims {
    /// Reads the claims of a verified payload; `None` when the `kubernetes.io` part is missing or a claim has the wrong type.
    #[must_use]
    pub fn from_payload(payload: &Map<String, Value>) -> Option<Self> {
        let private = payload.get("kubernetes.io")?.as_object()?;
        Some(Self {
            issuer: text(payload, "iss")?,
            subject: text(payload, "sub")?,
            audiences: audiences(payload.get("aud"))?,
            expires: time(payload, "exp")?,
            not_before: time(payload, "nbf")?,
            issued: time(payload, "iat")?,
            id: text(payload, "jti")?,
            namespace: text(private, "namespace")?,
            service_account: reference(private, "serviceaccount")?.unwrap_or_default(),
            pod: reference(private, "pod")?,
            secret: reference(private, "secret")?,
            node: reference(private, "node")?,
            warn_after: time(private, "warnafter")?,
        })
    }

    /// The payload to sign.
    #[must_use]
    pub fn to_payload(&self) -> Value {
        let mut private = Map::new();
        private.insert("namespace".to_owned(), self.namespace.clone().into());
        let references = [
            ("serviceaccount", Some(&self.service_account)),
            ("pod", self.pod.as_ref()),
            ("secret", self.secret.as_ref()),
            ("node", self.node.as_ref()),
        ];
        for (name, reference) in references {
            if let Some(reference) = reference {
                private.insert(name.to_owned(), reference_value(reference));
            }
        }
        if let Some(warn_after) = self.warn_after {
            private.insert("warnafter".to_owned(), warn_after.into());
        }
        json!({
            "aud": self.audiences,
            "exp": self.expires,
            "iat": self.issued,
            "nbf": self.not_before,
            "iss": self.issuer,
            "jti": self.id,
            "sub": self.subject,
            "kubernetes.io": private,
        })
    }
}

fn reference_value(reference: &ObjectRef) -> Value {
    let mut out = Map::new();
    out.insert("name".to_owned(), reference.name.clone().into());
    if !reference.uid.is_empty() {
        out.insert("uid".to_owned(), reference.uid.clone().into());
    }
    Value::Object(out)
}

/// Empty when absent; `None` when it is not text.
fn text(object: &Map<String, Value>, name: &str) -> Option<String> {
    match object.get(name) {
        None | Some(Value::Null) => Some(String::new()),
        Some(value) => value.as_str().map(str::to_owned),
    }
}

/// The outer `None` means the wrong type. Fractions of seconds are dropped.
#[expect(clippy::option_option, reason = "absent and malformed are different answers")]
#[expect(clippy::cast_possible_truncation, reason = "float to integer casts saturate, which is fine for times")]
fn time(object: &Map<String, Value>, name: &str) -> Option<Option<i64>> {
    match object.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(value) => value.as_i64().or_else(|| value.as_f64().map(|seconds| seconds as i64)).map(Some),
    }
}

#[expect(clippy::option_option, reason = "absent and malformed are different answers")]
fn reference(object: &Map<String, Value>, name: &str) -> Option<Option<ObjectRef>> {
    match object.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(value) => {
            let fields = value.as_object()?;
            Some(Some(ObjectRef { name: text(fields, "name")?, uid: text(fields, "uid")? }))
        }
    }
}

/// One audience may be written without the list around it.
fn audiences(value: Option<&Value>) -> Option<Vec<String>> {
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::String(single)) => Some(vec![single.clone()]),
        Some(Value::Array(list)) => list.iter().map(|one| one.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    }
}
