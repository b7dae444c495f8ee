//! Addresses and networks in fields that took other spellings, too, before gate `StrictIPCIDRValidation` (KEP-4858).

use api_machinery::names;
use feature_gates::Gates;
use feature_gates::shared::STRICT_ADDRESSES;

/// What is wrong with an address.
#[must_use]
pub fn ip(gates: &Gates, value: &str) -> Vec<String> {
    checked(gates, value, names::ip, names::parse_ip_lenient(value).is_some())
}

/// What is wrong with a network.
#[must_use]
pub fn cidr(gates: &Gates, value: &str) -> Vec<String> {
    checked(gates, value, names::cidr, names::parse_cidr_lenient(value).is_some())
}

fn checked(gates: &Gates, value: &str, strict: fn(&str) -> Vec<String>, is_understood: bool) -> Vec<String> {
    if is_understood && !gates.enabled(STRICT_ADDRESSES) { Vec::new() } else { strict(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_are_looked_at_where_that_is_on() {
        let (on, off) = (Gates::default().with(STRICT_ADDRESSES, true), Gates::default().with(STRICT_ADDRESSES, false));
        for (value, strictly, at_all) in [
            ("192.0.2.1", true, true),
            ("192.0.02.1", false, true),
            ("::ffff:192.0.2.1", false, true),
            ("192.0.2", false, false),
        ] {
            assert_eq!([ip(&on, value).is_empty(), ip(&off, value).is_empty()], [strictly, at_all], "{value}");
        }
        for (value, strictly, at_all) in [
            ("192.0.2.0/24", true, true),
            ("192.0.2.1/24", false, true),
            ("192.0.02.0/24", false, true),
            ("192.0.2.0/33", false, false),
        ] {
            assert_eq!([cidr(&on, value).is_empty(), cidr(&off, value).is_empty()], [strictly, at_all], "{value}");
        }
    }
}
