//! The document by which an issuer says where its keys are.
//! <https://openid.net/specs/openid-connect-discovery-1_0.html>

use api_machinery::quote::go_quote;
use api_machinery::value::Value as Json;

use super::fetch::Fetcher;

const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// Where the keys of an issuer are. The document is below its address, unless `elsewhere` says where.
///
/// # Errors
/// There is no document, or it is another issuer's.
pub(super) async fn keys_url(fetcher: &Fetcher, issuer: &str, elsewhere: Option<&str>) -> Result<String, String> {
    let below = || format!("{}{WELL_KNOWN}", issuer.strip_suffix('/').unwrap_or(issuer));
    let url = elsewhere.map_or_else(below, str::to_owned);
    let document = fetcher.get(&url, None).await.map_err(|error| error.to_string())?;
    let document: Json = serde_json::from_slice(&document)
        .map_err(|error| format!("oidc: failed to decode provider discovery object: {error}"))?;
    let text = |name: &str| document.get(name).and_then(Json::as_str).unwrap_or_default();
    if text("issuer") != issuer {
        return Err(format!(
            "oidc: issuer did not match the issuer returned by provider, expected {} got {}",
            go_quote(issuer),
            go_quote(text("issuer"))
        ));
    }
    Ok(text("jwks_uri").to_owned())
}
