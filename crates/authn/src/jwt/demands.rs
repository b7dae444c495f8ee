//! What a token has to say before anybody looks for the key that it is signed with: from whom it is, for whom, when and how.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api_machinery::quote::go_quote;
use api_machinery::time::Time;
use api_machinery::value::Value as Json;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pki::jws::{Algorithm, JwsError, MAX_TOKEN_BYTES, UnverifiedToken};

use super::expressions::Claims;

/// How far the clock of an issuer may be ahead, as upstream's library has it.
const LEEWAY: Duration = Duration::from_secs(60);
/// An issuer that leaves the scheme away in its tokens.
const GOOGLE: (&str, &str) = ("https://accounts.google.com", "accounts.google.com");

/// For whom tokens are, and how they may be signed.
#[derive(Debug, Clone)]
pub(super) struct Demands {
    pub(super) audiences: Vec<String>,
    pub(super) algorithms: Vec<Algorithm>,
}

/// Who has made a token, as it says itself: good for choosing whom to ask, nothing else.
pub(super) fn unverified_issuer(token: &str) -> Option<String> {
    if token.len() > MAX_TOKEN_BYTES {
        return None;
    }
    let mut parts = token.split('.');
    let (_, payload, _, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else { return None };
    let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
    Some(issuer_of(claims.get("iss")?.as_str()?).to_owned())
}

fn issuer_of(named: &str) -> &str {
    if named == GOOGLE.1 { GOOGLE.0 } else { named }
}

impl Demands {
    /// A token, taken apart, that says what it has to; nobody has looked at its signature.
    ///
    /// # Errors
    /// What it says instead, as upstream's library words it.
    pub(super) fn check(&self, token: &str, issuer: &str, now: SystemTime) -> Result<UnverifiedToken, String> {
        let parsed = UnverifiedToken::parse(token).map_err(|error| match error {
            JwsError::Algorithm(algorithm) => self.unsupported(&algorithm),
            other => format!("oidc: malformed jwt: {other}"),
        })?;
        let text = |name| parsed.unverified_claim(name).and_then(Json::as_str).unwrap_or_default();
        if issuer_of(text("iss")) != issuer {
            return Err(format!(
                "oidc: id token issued by a different provider, expected {} got {}",
                go_quote(issuer),
                go_quote(text("iss"))
            ));
        }
        self.check_audiences(parsed.unverified_claim("aud"))?;
        check_times(&parsed, now)?;
        if !self.algorithms.contains(&parsed.algorithm()) {
            return Err(self.unsupported(parsed.algorithm().name()));
        }
        Ok(parsed)
    }

    fn unsupported(&self, algorithm: &str) -> String {
        let supported = self.algorithms.iter().map(|own| own.name());
        let got = go_quote(algorithm);
        format!("oidc: id token signed with unsupported algorithm, expected {} got {got}", quoted(supported))
    }

    fn check_audiences(&self, claim: Option<&Json>) -> Result<(), String> {
        let named = match claim {
            None | Some(Json::Null) => Some(Vec::new()),
            Some(Json::String(one)) => Some(vec![one.as_str()]),
            Some(Json::Array(list)) => list.iter().map(Json::as_str).collect(),
            Some(_) => None,
        };
        let named = named.ok_or("oidc: failed to unmarshal claims: aud is neither a text nor a list of texts")?;
        if self.audiences.iter().any(|own| named.contains(&own.as_str())) {
            return Ok(());
        }
        let got = quoted(named.iter().copied());
        Err(if let [one] = self.audiences.as_slice() {
            format!("oidc: expected audience {} got {got}", go_quote(one))
        } else {
            let sorted: BTreeSet<&str> = self.audiences.iter().map(String::as_str).collect();
            format!("oidc: expected audience in {} got {got}", quoted(sorted.into_iter()))
        })
    }
}

fn quoted<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.map(go_quote).collect();
    format!("[{}]", items.join(" "))
}

fn check_times(token: &UnverifiedToken, now: SystemTime) -> Result<(), String> {
    let expiry = time(token, "exp")?;
    if expiry.is_none_or(|end| end < now) {
        // A time that nobody told is the first that Go knows.
        let end = expiry.map_or_else(|| "0001-01-01 00:00:00 +0000 UTC".to_owned(), shown);
        return Err(format!("oidc: token is expired (Token Expiry: {end})"));
    }
    if let Some(start) = time(token, "nbf")?.filter(|start| now + LEEWAY < *start) {
        let (now, start) = (shown(now), shown(start));
        return Err(format!("oidc: current time {now} before the nbf (not before) time: {start}"));
    }
    Ok(())
}

/// A time as a claim has it: in seconds, of which fractions do not count.
fn time(token: &UnverifiedToken, name: &str) -> Result<Option<SystemTime>, String> {
    let Some(claim) = token.unverified_claim(name).filter(|claim| !claim.is_null()) else { return Ok(None) };
    let wrong = || format!("oidc: failed to unmarshal claims: {name} is not a time");
    #[expect(clippy::cast_possible_truncation, reason = "float to integer casts saturate, which is fine for times")]
    let seconds = claim.as_i64().or_else(|| claim.as_f64().map(|seconds| seconds as i64)).ok_or_else(wrong)?;
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    time.map(Some).ok_or_else(wrong)
}

/// As Go prints times in UTC, without fractions of seconds.
fn shown(time: SystemTime) -> String {
    Time::from(time).to_string().replace('T', " ").replace('Z', " +0000 UTC")
}

#[cfg(test)]
#[path = "demands_tests.rs"]
mod tests;
