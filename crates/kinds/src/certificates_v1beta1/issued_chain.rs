//! The certificate that a signer issued to a pod, and the times that it tells of it.

use std::time::{Duration, SystemTime};

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::time::Time;
use api_types::certificates_v1beta1::{PodCertificateRequestSpec, PodCertificateRequestStatus};
use pki::{AltNames, Certificate};

use super::requested_key;

const CHAIN_MAX_BYTES: usize = 100 * 1024;
const CERTIFICATE: &str = "CERTIFICATE";
/// How far the start of a certificate may be from now.
const START_WITHIN: Duration = Duration::from_secs(5 * 60);
const LEAST_LIFETIME: i64 = 3_600;
/// How long after its start, and before its end, the next certificate may be asked for.
const REFRESH_MARGIN: i64 = 600;

/// Checks what is told of an issued certificate.
pub(super) fn validate(
    path: &Path,
    status: &PodCertificateRequestStatus,
    spec: &PodCertificateRequestSpec,
    now: Time,
    errors: &mut ErrorList,
) {
    let at = path.child("certificateChain");
    if status.certificate_chain.len() > CHAIN_MAX_BYTES {
        return errors.push(at.too_long(CHAIN_MAX_BYTES));
    }
    let refuse = |detail: &str| at.invalid_unshown(detail);
    let blocks = pki::parse_blocks(status.certificate_chain.as_bytes());
    let Some((first, rest)) = blocks.split_first() else {
        return errors.push(refuse("issued certificate chain must contain at least one certificate"));
    };
    if first.label != CERTIFICATE {
        return errors.push(refuse("issued certificate chain must consist entirely of CERTIFICATE PEM blocks"));
    }
    let Ok(leaf) = Certificate::from_der(&first.der) else {
        return errors.push(refuse("leaf certificate does not parse as valid X.509"));
    };
    errors.extend(name_problems(leaf.alt_names()).map(refuse));
    if requested_key::of(spec).is_none_or(|key| key != *leaf.public_key()) {
        return errors.push(refuse("leaf certificate was not issued to the requested public key"));
    }
    if !validate_times(path, status, spec, &leaf, now, errors) {
        return;
    }
    for block in rest {
        if block.label != CERTIFICATE {
            return errors.push(refuse("issued certificate chain must consist entirely of CERTFICATE PEM blocks"));
        }
        if Certificate::from_der(&block.der).is_err() {
            return errors.push(refuse("intermediate certificate does not parse as valid X.509"));
        }
    }
}

fn name_problems(names: &AltNames) -> impl Iterator<Item = &'static str> {
    let hosts = names.dns.iter().filter_map(|name| {
        if name.is_empty() {
            Some("leaf certificate should not contain empty DNSName")
        } else if name.contains("..") {
            Some("leaf certificate's DNSName should not contain '..'")
        } else if name.starts_with('.') || name.ends_with('.') {
            Some("leaf certificate's DNSName should not start or end with '.'")
        } else {
            None
        }
    });
    let is_address =
        |text: &String| text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
    let mails = names.emails.iter().filter(move |mail| !is_address(mail));
    hosts.chain(mails.map(|_| "leaf certificate should not contain invalid EmailAddress"))
}

fn seconds(of: SystemTime) -> Time {
    Time::from(of)
}

/// Checks the times one after the other, up to the first that is wrong. Tells whether all are right.
fn validate_times(
    path: &Path,
    status: &PodCertificateRequestStatus,
    spec: &PodCertificateRequestSpec,
    leaf: &Certificate,
    now: Time,
    errors: &mut ErrorList,
) -> bool {
    let (start, end, refresh) = (path.child("notBefore"), path.child("notAfter"), path.child("beginRefreshAt"));
    let before = errors.len();
    for (at, time) in [(&start, status.not_before), (&end, status.not_after)] {
        if time.is_none() {
            errors.push(at.required("must be present and consistent with the issued certificate"));
        }
    }
    if status.begin_refresh_at.is_none() {
        errors.push(refresh.required("must be present and in the range [notbefore+10min, notafter-10min]"));
    }
    let (Some(not_before), Some(not_after), Some(begin_refresh)) =
        (status.not_before, status.not_after, status.begin_refresh_at)
    else {
        return errors.len() == before;
    };
    let away = now.seconds_since(not_before).unsigned_abs();
    let lifetime = not_after.seconds_since(not_before);
    let longest = i64::from(spec.max_expiration_seconds.unwrap_or_default());
    let longest_detail = format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({longest})");
    let checks: [(&Path, Time, bool, &str); 7] = [
        (
            &start,
            not_before,
            not_before == seconds(leaf.not_before()),
            "must be set to the NotBefore time encoded in the leaf certificate",
        ),
        (
            &start,
            not_before,
            away < START_WITHIN.as_secs(),
            "must be set to within 5 minutes of kube-apiserver's current time",
        ),
        (
            &end,
            not_after,
            not_after == seconds(leaf.not_after()),
            "must be set to the NotAfter time encoded in the leaf certificate",
        ),
        (&end, not_after, lifetime >= LEAST_LIFETIME, "leaf certificate lifetime must be >= 1 hour"),
        (&end, not_after, lifetime <= longest, &longest_detail),
        (
            &refresh,
            begin_refresh,
            begin_refresh.seconds_since(not_before) >= REFRESH_MARGIN,
            "must be at least 10 minutes after status.notBefore",
        ),
        (
            &refresh,
            begin_refresh,
            not_after.seconds_since(begin_refresh) >= REFRESH_MARGIN,
            "must be at least 10 minutes before status.notAfter",
        ),
    ];
    let wrong = checks.into_iter().find(|(_, _, is_right, _)| !is_right);
    errors.extend(wrong.iter().map(|(at, time, _, detail)| at.invalid(*time, *detail)));
    wrong.is_none()
}
