//! The X.509 extensions this crate writes.

use crate::alt_names::AltNames;
use crate::usage::{KeyUsages, Purpose, purposes_to_der};
use crate::{der, oid};

fn extension(oid: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let flag = if critical { der::element(der::BOOLEAN, &[0xff]) } else { Vec::new() };
    der::sequence(&[&der::element(der::OID, oid), &flag, &der::element(der::OCTET_STRING, value)])
}

pub(crate) fn key_usage(usages: KeyUsages) -> Vec<u8> {
    extension(oid::KEY_USAGE, true, &der::named_bits(usages.0))
}

pub(crate) fn extended_key_usage(purposes: &[Purpose]) -> Vec<u8> {
    extension(oid::EXTENDED_KEY_USAGE, false, &purposes_to_der(purposes))
}

/// BasicConstraints is critical and always present; false is the default and so not written.
pub(crate) fn basic_constraints(is_ca: bool) -> Vec<u8> {
    let flag = if is_ca { der::element(der::BOOLEAN, &[0xff]) } else { Vec::new() };
    extension(oid::BASIC_CONSTRAINTS, true, &der::element(der::SEQUENCE, &flag))
}

pub(crate) fn subject_key_id(id: &[u8]) -> Vec<u8> {
    extension(oid::SUBJECT_KEY_ID, false, &der::element(der::OCTET_STRING, id))
}

pub(crate) fn authority_key_id(id: &[u8]) -> Vec<u8> {
    extension(oid::AUTHORITY_KEY_ID, false, &der::sequence(&[&der::element(der::implicit(0), id)]))
}

/// Critical exactly when there is no subject (RFC 5280 section 4.2.1.6).
pub(crate) fn alt_names(names: &AltNames, critical: bool) -> Vec<u8> {
    extension(oid::SUBJECT_ALT_NAME, critical, &names.to_der())
}
