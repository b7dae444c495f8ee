//! The named formats of strings. Dashes in names do not count; unknown names allow everything.

use std::net::{Ipv4Addr, Ipv6Addr};

use api_machinery::{names, time};

type Check = fn(&str) -> bool;

const FORMATS: [(&str, Check); 26] = [
    ("bsonobjectid", |text| text.len() == 24 && is_hex(text)),
    ("byte", is_base64),
    ("cidr", |text| names::parse_cidr_lenient(text).is_some()),
    ("creditcard", is_credit_card),
    ("date", is_date),
    ("datetime", |text| time::Time::parse(text).is_ok()),
    ("duration", |text| time::GoDuration::parse(text).is_ok() || is_word_duration(text)),
    ("email", is_email),
    ("hexcolor", |text| {
        let digits = text.strip_prefix('#').unwrap_or(text);
        matches!(digits.len(), 3 | 6) && is_hex(digits)
    }),
    ("hostname", is_hostname),
    ("ipv4", |text| text.parse::<Ipv4Addr>().is_ok()),
    ("ipv6", |text| text.parse::<Ipv6Addr>().is_ok()),
    ("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("k8slongname", |text| names::dns1123_subdomain(text).is_empty()),
    ("k8sshortname", |text| names::dns1123_label(text).is_empty()),
    ("mac", is_mac),
    ("password", |_| true),
    ("rgbcolor", is_rgb_color),
    ("ssn", is_ssn),
    ("uri", is_uri),
    ("uuid", |text| is_uuid(text, None)),
    ("uuid3", |text| is_uuid(text, Some('3'))),
    ("uuid4", |text| is_uuid(text, Some('4'))),
    ("uuid5", |text| is_uuid(text, Some('5'))),
];

fn find(format: &str) -> Option<Check> {
    let plain = format.replace('-', "");
    FORMATS.iter().find(|(name, _)| *name == plain).map(|(_, check)| *check)
}

/// Whether a string's format is one that is enforced.
pub fn is_known(format: &str) -> bool {
    find(format).is_some()
}

/// Whether a text has the format.
pub(super) fn matches(format: &str, text: &str) -> bool {
    format.is_empty() || find(format).is_none_or(|check| check(text))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4) && text.len() - body.len() <= 2 && body.bytes().all(allowed)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && time::Time::parse(&format!("{text}T00:00:00Z")).is_ok()
}

/// Durations in words, such as `3 days`.
fn is_word_duration(text: &str) -> bool {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim();
    let units = ["s", "sec", "second", "m", "min", "minute", "h", "hr", "hour", "d", "day", "w", "wk", "week"];
    is_digits(number) && (units.contains(&unit) || unit.strip_suffix('s').is_some_and(|unit| units.contains(&unit)))
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let allowed = |c: char| !c.is_whitespace() && !c.is_control() && !"()<>[]:;,\\\"".contains(c);
    !local.is_empty() && local.chars().all(allowed) && !domain.is_empty() && domain.chars().all(allowed)
}

fn is_hostname(text: &str) -> bool {
    let is_part = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !part.is_empty()
            && part.len() <= 63
            && part.bytes().all(inner)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    // What stands behind the last dot is a word of at least two letters.
    let is_domain = |last: &str| (2..=63).contains(&last.len()) && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    let name = text.strip_suffix('.').unwrap_or(text);
    text.len() <= 255 && name.split('.').all(is_part) && name.rsplit_once('.').is_none_or(|(_, last)| is_domain(last))
}

fn is_uri(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    };
    let clean = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    clean && (text.starts_with('/') || text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)))
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let digits = text.replace('-', "");
    let dashed = text.len() == 32 || names::uuid(&text.to_ascii_lowercase()).is_empty();
    let fits = |wanted: char| {
        let variant = digits.chars().nth(16).map(|c| c.to_ascii_lowercase());
        digits.chars().nth(12) == Some(wanted) && (wanted == '3' || matches!(variant, Some('8' | '9' | 'a' | 'b')))
    };
    dashed && digits.len() == 32 && is_hex(&digits) && version.is_none_or(fits)
}

fn is_mac(text: &str) -> bool {
    let groups: Vec<&str> = text.split([':', '-']).collect();
    let octets = matches!(groups.len(), 6 | 8 | 20) && groups.iter().all(|group| group.len() == 2 && is_hex(group));
    let words: Vec<&str> = text.split('.').collect();
    octets || (matches!(words.len(), 3 | 4 | 10) && words.iter().all(|word| word.len() == 4 && is_hex(word)))
}

fn is_ssn(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['-', ' ']).collect();
    matches!(parts.as_slice(), [area, group, serial]
        if area.len() == 3 && group.len() == 2 && serial.len() == 4 && parts.iter().all(|part| is_digits(part)))
}

fn is_rgb_color(text: &str) -> bool {
    let inside = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    let parts: Vec<&str> = inside.map(|inside| inside.split(',').map(str::trim).collect()).unwrap_or_default();
    parts.len() == 3 && parts.iter().all(|part| part.parse::<u8>().is_ok())
}

fn plain_digits(text: &str) -> String {
    text.replace([' ', '-'], "")
}

fn is_credit_card(text: &str) -> bool {
    let digits = plain_digits(text);
    let doubled = |(index, digit): (usize, u32)| if index % 2 == 1 { digit * 2 / 10 + digit * 2 % 10 } else { digit };
    let sum: u32 = digits.chars().rev().filter_map(|c| c.to_digit(10)).enumerate().map(doubled).sum();
    is_digits(&digits) && (12..=19).contains(&digits.len()) && sum.is_multiple_of(10)
}

fn is_isbn10(text: &str) -> bool {
    let digits = plain_digits(text);
    let value = |(index, c): (u32, char)| match c {
        'X' | 'x' if index == 9 => Some(10),
        _ => c.to_digit(10),
    };
    let weighted: Option<u32> =
        (0..).zip(digits.chars()).map(|(index, c)| Some(value((index, c))? * (10 - index.min(9)))).sum();
    digits.len() == 10 && weighted.is_some_and(|sum| sum.is_multiple_of(11))
}

fn is_isbn13(text: &str) -> bool {
    let digits = plain_digits(text);
    let weighted: u32 = digits
        .chars()
        .filter_map(|c| c.to_digit(10))
        .enumerate()
        .map(|(index, d)| if index % 2 == 1 { d * 3 } else { d })
        .sum();
    digits.len() == 13 && is_digits(&digits) && weighted.is_multiple_of(10)
}
