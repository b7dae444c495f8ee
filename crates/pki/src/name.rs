//! Distinguished names. A client certificate's subject is a Kubernetes identity: the common name is the user, each
//! organization a group, so order and repeats are kept.

use x509_parser::x509::X509Name;

use crate::der;
use crate::usage::oid_content;

/// One attribute of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameAttribute {
    /// The attribute type as dotted decimal, for example `2.5.4.10`.
    pub oid: String,
    /// The value, if it is a text type.
    pub value: Option<String>,
}

/// A distinguished name with the exact bytes it came from or will be written as.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Name {
    raw: Vec<u8>,
    attributes: Vec<NameAttribute>,
}

const COMMON_NAME_DOTTED: &str = "2.5.4.3";
const ORGANIZATION_DOTTED: &str = "2.5.4.10";
/// Kubernetes' own attribute of subjects: the uid of a user.
pub const USER_UID_DOTTED: &str = "1.3.6.1.4.1.57683.2";

/// Why the uid of a subject cannot be told. The texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserUidError {
    /// It is not a text.
    #[error("unable to parse UID into a string")]
    NotText,
    /// It is there, and empty.
    #[error("UID cannot be an empty string")]
    Empty,
    /// There are several, with a blank between them here.
    #[error("expected 1 UID, but found multiple: [{0}]")]
    Several(String),
}

impl Name {
    /// A name of organizations and a common name, each organization an RDN of its own; an empty common name is left out.
    #[must_use]
    pub fn new(common_name: &str, organizations: &[String]) -> Self {
        let attribute = |oid: &str, value: &str| NameAttribute { oid: oid.to_owned(), value: Some(value.to_owned()) };
        let mut attributes: Vec<NameAttribute> =
            organizations.iter().map(|organization| attribute(ORGANIZATION_DOTTED, organization)).collect();
        if !common_name.is_empty() {
            attributes.push(attribute(COMMON_NAME_DOTTED, common_name));
        }
        Self::from_attributes(attributes)
    }

    /// A name of any attributes, each an RDN of its own. Those without a value or with an impossible type are left out.
    #[must_use]
    pub fn from_attributes(attributes: Vec<NameAttribute>) -> Self {
        let encoded = attributes
            .iter()
            .filter_map(|attribute| Some(relative_name(&oid_content(&attribute.oid)?, attribute.value.as_deref()?)));
        let names: Vec<u8> = encoded.flatten().collect();
        Self { raw: der::element(der::SEQUENCE, &names), attributes }
    }

    pub(crate) fn from_parsed(name: &X509Name<'_>) -> Self {
        let attributes = name.iter_attributes().map(|attribute| NameAttribute {
            oid: attribute.attr_type().to_id_string(),
            value: attribute.as_str().ok().map(str::to_owned),
        });
        Self { raw: name.as_raw().to_vec(), attributes: attributes.collect() }
    }

    /// The DER encoding; for a parsed name the original bytes.
    #[must_use]
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// All attributes in order.
    #[must_use]
    pub fn attributes(&self) -> &[NameAttribute] {
        &self.attributes
    }

    /// The attributes of one dotted type.
    pub fn values_of(&self, oid: &str) -> impl Iterator<Item = Option<&str>> {
        self.attributes.iter().filter(move |a| a.oid == oid).map(|a| a.value.as_deref())
    }

    /// The common name; the last one if there are several, as in Go. Empty when absent.
    #[must_use]
    pub fn common_name(&self) -> &str {
        self.values_of(COMMON_NAME_DOTTED).flatten().last().unwrap_or_default()
    }

    /// Every organization, in order, repeats included.
    #[must_use]
    pub fn organizations(&self) -> Vec<String> {
        self.values_of(ORGANIZATION_DOTTED).flatten().map(str::to_owned).collect()
    }

    /// The uid of the user; empty when absent.
    ///
    /// # Errors
    /// When there is one that says nothing, or are several.
    pub fn user_uid(&self) -> Result<&str, UserUidError> {
        let values: Option<Vec<&str>> = self.values_of(USER_UID_DOTTED).collect();
        match values.ok_or(UserUidError::NotText)?.as_slice() {
            [] => Ok(""),
            [""] => Err(UserUidError::Empty),
            [uid] => Ok(uid),
            several => Err(UserUidError::Several(several.join(" "))),
        }
    }

    /// Whether the name has no attributes; its certificate's alternative names are then critical.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }
}

fn relative_name(attribute: &[u8], value: &str) -> Vec<u8> {
    let printable = value.bytes().all(|b| b.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&b));
    let tag = if printable { der::PRINTABLE_STRING } else { der::UTF8_STRING };
    let pair = der::sequence(&[&der::element(der::OID, attribute), &der::element(tag, value.as_bytes())]);
    der::element(der::SET, &pair)
}
