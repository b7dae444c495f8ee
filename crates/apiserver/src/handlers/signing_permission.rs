//! Who may end a pod's request for a certificate: those who may sign for the signer that it asks.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::object::Object;
use api_machinery::reflect::equal;
use api_types::certificates_v1beta1::PodCertificateRequest;
use authz::{Attributes, Authorizer, Decision};

const SIGNERS: &str = "signers";
const SIGN: &str = "sign";

/// What of a change of a request's status its user may not do. `request` is as authorizers see it.
pub(super) async fn check(
    authorizer: &dyn Authorizer,
    request: &Attributes,
    object: &dyn Object,
    old: &dyn Object,
) -> ErrorList {
    let read = |object: &'_ dyn Object| object.downcast_ref::<PodCertificateRequest>().cloned();
    let (Some(new), Some(stored)) = (read(object), read(old)) else { return ErrorList::new() };
    let signer = new.spec.signer_name.as_str();
    if equal(&new.status, &stored.status) || may_sign(authorizer, request, signer).await {
        return ErrorList::new();
    }
    let text = format!("User {:?} is not permitted to {SIGN:?} for signer {signer:?}", request.user.username);
    Path::new("spec").child("signerName").forbidden(text).into()
}

/// For the signer, or for all of its domain.
async fn may_sign(authorizer: &dyn Authorizer, request: &Attributes, signer: &str) -> bool {
    let domain = signer.split_once('/').map(|(domain, _)| format!("{domain}/*"));
    for name in [signer].into_iter().chain(domain.as_deref()) {
        let attributes = Attributes {
            verb: SIGN.into(),
            resource: SIGNERS.into(),
            subresource: String::new(),
            namespace: String::new(),
            name: name.into(),
            ..request.clone()
        };
        if authorizer.authorize(&attributes).await.decision == Decision::Allow {
            return true;
        }
    }
    false
}
