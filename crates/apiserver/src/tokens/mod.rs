//! Tokens of service accounts on request, bound to an object or not.

mod bound;
mod check;
mod stored;

use std::sync::Arc;

use api_machinery::meta::ObjectMeta;
use api_machinery::object::Object as _;
use api_machinery::status::ApiError;
use api_types::authentication_v1::{TokenRequest, TokenRequestStatus};
use api_types::core_v1::ServiceAccount;
use async_trait::async_trait;
use authn::service_account::{IssuedToken, ObjectRef, TokenIssuer, TokenWish};
use component_base::serving::Response;
use http::StatusCode;

use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::gates;
use crate::respond;
use crate::reviews::{Passing, expect_post};
use crate::routes::{Endpoint, Routes};
use stored::read;

/// Adds the subresource.
pub(crate) fn install(routes: &mut Routes) {
    routes.subresource("", "v1", "serviceaccounts", "token", Arc::new(Tokens));
}

struct Tokens;

#[async_trait]
impl Endpoint for Tokens {
    async fn serve(&self, cx: &Arc<ApiCx>, mut request: Request<Authorized>) -> Result<Response, ApiError> {
        let accounts = cx.authentication().service_accounts.as_ref();
        let Some(issuer) = accounts.and_then(|accounts| accounts.issuer.as_ref()) else {
            return Err(ApiError::unknown_resource());
        };
        let options = expect_post(&request)?;
        let info = Arc::clone(request.info());
        let mut token: TokenRequest = request.decode().await?;
        api_machinery::defaults::fill(token.as_reflect_mut());
        check::namespace(&token.metadata, &info.namespace)?;
        // A node may leave the audiences to the server, and only then get the server's: it is judged before they are filled in.
        let passing = Passing::begin(cx, &request, &options, &mut token).await?;
        check::name(&token.metadata, &info.name)?;
        let account: ServiceAccount = read(cx.registry(), "serviceaccounts", &info.namespace, &info.name).await?;
        if let Some(differs) = check::other_uid(&token.metadata.uid, &account.metadata) {
            judge_uid(cx, &request, &account.metadata, &differs)?;
        }
        fill(cx, &mut token, &account.metadata);
        let seconds = token.spec.expiration_seconds.unwrap_or_default();
        check::expiration(seconds)?;
        passing.end(&token).await?;
        let issued = issue(cx, issuer, &token, &account.metadata).await?;
        let audit = request.audited().context();
        audit.annotate("authentication.kubernetes.io/issued-credential-id", &format!("JTI={}", issued.id));
        request.warnings().extend(issued.warnings.iter().cloned());
        token.spec.expiration_seconds = Some(issued.expiration_seconds);
        token.status = TokenRequestStatus { token: issued.token, expiration_timestamp: issued.expiration.into() };
        respond::object(request.preferences(), StatusCode::CREATED, &token)
    }
}

/// What the answer says beside the token.
fn fill(cx: &ApiCx, token: &mut TokenRequest, account: &ObjectMeta) {
    if token.spec.audiences.is_empty() {
        token.spec.audiences.clone_from(&cx.authentication().api_audiences);
    }
    token.metadata.name.clone_from(&account.name);
    token.metadata.namespace.clone_from(&account.namespace);
    if token.metadata.uid.is_empty() {
        token.metadata.uid.clone_from(&account.uid);
    }
    token.metadata.creation_timestamp = cx.clock().wall().into();
    token.status = TokenRequestStatus::default();
}

/// A request with the uid of another account is refused, or noted and told of.
fn judge_uid(cx: &ApiCx, request: &Request<Authorized>, account: &ObjectMeta, differs: &str) -> Result<(), ApiError> {
    if cx.lifecycle.gates().enabled(gates::TOKEN_REQUEST_UID) {
        return Err(check::refuse_uid(account, differs));
    }
    request.audited().context().annotate("authentication.k8s.io/token-request-uid-mismatch", differs);
    let name = gates::TOKEN_REQUEST_UID.name();
    let later = "In the future, this will return a conflict error";
    request.warnings().extend([format!("{differs} but {name} is not enabled. {later}")]);
    Ok(())
}

async fn issue(
    cx: &ApiCx,
    issuer: &TokenIssuer,
    token: &TokenRequest,
    account: &ObjectMeta,
) -> Result<IssuedToken, ApiError> {
    let bound = match &token.spec.bound_object_ref {
        Some(reference) => Some(bound::find(cx.registry(), reference, account).await?),
        None => None,
    };
    let preferences = TokenWish {
        namespace: account.namespace.clone(),
        service_account: ObjectRef { name: account.name.clone(), uid: account.uid.clone() },
        audiences: token.spec.audiences.clone(),
        expiration_seconds: token.spec.expiration_seconds.unwrap_or_default(),
        bound,
    };
    let issued = issuer.issue(&preferences, cx.clock().wall(), cx.rng()).await;
    issued.map_err(|error| ApiError::internal(format_args!("failed to generate token: {error}")))
}
