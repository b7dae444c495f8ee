//! Certificate signing requests (PKCS#10): writing them, reading them, checking their signature.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer as _;

use crate::alt_names::AltNames;
use crate::der::{self, Reader};
use crate::extension;
use crate::key::{KeyError, PrivateKey};
use crate::name::Name;
use crate::public_key::PublicKey;
use crate::usage::{KeyUsages, Purpose};
use crate::{certificate, pem};

const LABEL: &str = "CERTIFICATE REQUEST";

/// Why bytes are not an acceptable request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The first PEM block is missing or something else.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    WrongBlock,
    /// Not PKCS#10 DER.
    #[error("x509: malformed certificate request: {0}")]
    Malformed(String),
    /// The key's algorithm is outside the supported set.
    #[error("x509: unsupported public key")]
    UnsupportedKey,
    /// The requester does not hold the private key, or used a refused algorithm.
    #[error("x509: certificate request signature is invalid")]
    Signature,
}

/// A parsed request. Its signature is not checked by parsing: see [`Self::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRequest {
    der: Vec<u8>,
    subject: Name,
    public_key: PublicKey,
    alt_names: AltNames,
    key_usages: KeyUsages,
    purposes: Vec<Purpose>,
    wants_ca: bool,
}

impl CertificateRequest {
    /// Writes and signs a request for `subject` and `alt_names`; what the key is for is said elsewhere in Kubernetes.
    ///
    /// # Errors
    /// [`KeyError`] when signing fails.
    pub fn create(key: &PrivateKey, subject: &Name, alt_names: &AltNames) -> Result<Self, KeyError> {
        let attributes = if alt_names.is_empty() {
            Vec::new()
        } else {
            let extensions = der::sequence(&[&extension::alt_names(alt_names, subject.is_empty())]);
            let oid = der::element(der::OID, crate::oid::EXTENSION_REQUEST);
            der::sequence(&[&oid, &der::element(der::SET, &extensions)])
        };
        let attributes = der::element(der::explicit(0), &attributes);
        let version = der::unsigned_integer(&[0]);
        let info = der::sequence(&[&version, subject.raw(), key.public_key().spki(), &attributes]);
        let signature = der::bit_string(&key.sign(&info)?);
        Ok(Self {
            der: der::sequence(&[&info, &key.signature_algorithm(), &signature]),
            subject: subject.clone(),
            public_key: key.public_key().clone(),
            alt_names: alt_names.clone(),
            key_usages: KeyUsages::default(),
            purposes: Vec::new(),
            wants_ca: false,
        })
    }

    /// Parses the first PEM block of `text`, which must be a request; what follows is ignored, as upstream does.
    ///
    /// # Errors
    /// [`RequestError::WrongBlock`] or what [`Self::from_der`] says.
    pub fn from_pem(text: &[u8]) -> Result<Self, RequestError> {
        let first = pem::parse_blocks(text).into_iter().next().filter(|block| block.label == LABEL);
        Self::from_der(&first.ok_or(RequestError::WrongBlock)?.der)
    }

    /// Parses DER; nothing may follow it.
    ///
    /// # Errors
    /// [`RequestError::Malformed`] or [`RequestError::UnsupportedKey`].
    pub fn from_der(der: &[u8]) -> Result<Self, RequestError> {
        let (rest, parsed) =
            X509CertificationRequest::from_der(der).map_err(|e| RequestError::Malformed(e.to_string()))?;
        if !rest.is_empty() {
            return Err(RequestError::Malformed("trailing data".to_owned()));
        }
        let info = &parsed.certification_request_info;
        let mut out = Self {
            der: der.to_vec(),
            subject: Name::from_parsed(&info.subject),
            public_key: PublicKey::from_spki(info.subject_pki.raw).map_err(|_| RequestError::UnsupportedKey)?,
            alt_names: AltNames::default(),
            key_usages: KeyUsages::default(),
            purposes: Vec::new(),
            wants_ca: false,
        };
        for extension in parsed.requested_extensions().into_iter().flatten() {
            match extension {
                ParsedExtension::SubjectAlternativeName(names) => out.alt_names = AltNames::from_parsed(names),
                ParsedExtension::KeyUsage(usage) => out.key_usages = KeyUsages(usage.flags),
                ParsedExtension::ExtendedKeyUsage(usage) => out.purposes = certificate::purposes(usage),
                ParsedExtension::BasicConstraints(constraints) => out.wants_ca = constraints.ca,
                _ => {}
            }
        }
        Ok(out)
    }

    /// Checks that the request was signed with the key it asks a certificate for.
    ///
    /// # Errors
    /// [`RequestError::Signature`].
    pub fn verify(&self) -> Result<(), RequestError> {
        self.check().filter(|valid| *valid).map(|_| ()).ok_or(RequestError::Signature)
    }

    fn check(&self) -> Option<bool> {
        let mut parts = Reader::new(&self.der).enter(der::SEQUENCE)?;
        let info = der::element(der::SEQUENCE, parts.expect(der::SEQUENCE)?);
        let algorithm = parts.enter(der::SEQUENCE)?.expect(der::OID)?;
        let (0, signature) = parts.expect(der::BIT_STRING)?.split_first()? else { return None };
        // Re-encoding the info is exact: DER has one encoding of a length, and anything else fails the check below.
        Some(self.public_key.verify_x509(algorithm, &info, signature))
    }

    /// The DER bytes.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// A `CERTIFICATE REQUEST` block.
    #[must_use]
    pub fn to_pem(&self) -> String {
        pem::encode_block(LABEL, &self.der)
    }

    /// Whom the certificate shall name, with the raw bytes.
    #[must_use]
    pub fn subject(&self) -> &Name {
        &self.subject
    }

    /// The key to certify.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// Requested alternative names.
    #[must_use]
    pub fn alt_names(&self) -> &AltNames {
        &self.alt_names
    }

    /// KeyUsage bits the request itself carries (signers follow the API object's usages instead).
    #[must_use]
    pub fn key_usages(&self) -> KeyUsages {
        self.key_usages
    }

    /// Purposes the request itself carries.
    #[must_use]
    pub fn purposes(&self) -> &[Purpose] {
        &self.purposes
    }

    /// Whether the request asks to become a CA; no signer here grants that.
    #[must_use]
    pub fn wants_ca(&self) -> bool {
        self.wants_ca
    }
}
