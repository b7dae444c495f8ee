//! The key that a pod asks a certificate for, and the proof that it has it.

use api_machinery::field_path::{ErrorList, Path};
use api_types::certificates_v1beta1::PodCertificateRequestSpec;
use pki::{CertificateRequest, Curve, PublicKey, PublicKeyKind, RequestError};

const MAX_BYTES: usize = 10 * 1024;
const RSA_BITS: [usize; 2] = [3072, 4096];
const UNKNOWN_KEY: &str = "unknown public key type; supported types are Ed25519, ECDSA, and RSA";
const ONE_FORM: &str = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";

/// Checks that there is a key in one form, and that it is a good one.
pub(super) fn validate(path: &Path, spec: &PodCertificateRequestSpec, errors: &mut ErrorList) {
    let (stub, key, proof) = (&spec.stub_pkcs10_request.0, &spec.pkix_public_key.0, &spec.proof_of_possession.0);
    match (stub.is_empty(), key.is_empty(), proof.is_empty()) {
        (false, true, true) => validate_stub(&path.child("stubPKCS10Request"), stub, errors),
        (true, false, false) => validate_pair(path, spec, errors),
        _ => errors.push(path.invalid_unshown(ONE_FORM)),
    }
}

/// The key that a certificate must be for.
pub(super) fn of(spec: &PodCertificateRequestSpec) -> Option<PublicKey> {
    if spec.stub_pkcs10_request.0.is_empty() {
        return PublicKey::from_spki(&spec.pkix_public_key.0).ok();
    }
    CertificateRequest::from_der(&spec.stub_pkcs10_request.0).ok().map(|request| request.public_key().clone())
}

fn validate_stub(path: &Path, stub: &[u8], errors: &mut ErrorList) {
    if stub.len() > MAX_BYTES {
        return errors.push(path.too_long(MAX_BYTES));
    }
    let request = match CertificateRequest::from_der(stub) {
        Ok(request) => request,
        Err(RequestError::UnsupportedKey) => return errors.push(path.invalid_unshown(UNKNOWN_KEY)),
        Err(_) => return errors.push(path.invalid_unshown("must be a valid PKCS#10 CSR")),
    };
    if let Some(bits) = weak_bits(request.public_key()) {
        return errors.push(weak(path, bits));
    }
    if request.verify().is_err() {
        errors.push(path.invalid_unshown("invalid signature"));
    }
}

fn validate_pair(path: &Path, spec: &PodCertificateRequestSpec, errors: &mut ErrorList) {
    let at = path.child("pkixPublicKey");
    let proof = path.child("proofOfPossession");
    let before = errors.len();
    for (at, bytes) in [(&at, &spec.pkix_public_key.0), (&proof, &spec.proof_of_possession.0)] {
        if bytes.len() > MAX_BYTES {
            errors.push(at.too_long(MAX_BYTES));
        }
    }
    if errors.len() > before {
        return;
    }
    let Ok(key) = PublicKey::from_spki(&spec.pkix_public_key.0) else {
        return errors.push(at.invalid_unshown("must be a valid PKIX-serialized public key"));
    };
    if let Some(bits) = weak_bits(&key) {
        return errors.push(weak(&at, bits));
    }
    if !key.verify_possession(spec.pod_uid.as_bytes(), &spec.proof_of_possession.0) {
        errors.push(proof.invalid_unshown("could not verify proof-of-possession signature"));
    }
}

/// The bits of an RSA key that has not one of the good lengths. Only good curves are read.
fn weak_bits(key: &PublicKey) -> Option<usize> {
    match key.kind() {
        PublicKeyKind::Rsa { modulus, .. } => {
            let unused = modulus.first().map_or(0, |byte| byte.leading_zeros() as usize);
            Some((modulus.len() * 8).saturating_sub(unused)).filter(|bits| !RSA_BITS.contains(bits))
        }
        PublicKeyKind::Ec { curve: Curve::P256 | Curve::P384 | Curve::P521, .. } | PublicKeyKind::Ed25519(_) => None,
    }
}

fn weak(path: &Path, bits: usize) -> api_machinery::field_path::FieldError {
    path.invalid(format!("{bits}-bit modulus"), "RSA keys must have modulus size 3072 or 4096")
}
