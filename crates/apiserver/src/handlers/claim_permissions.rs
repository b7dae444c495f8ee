//! Who may say which devices a claim has, and what becomes of them: the scheduler binds claims, and drivers tell the state
//! of their own devices, on any node or on the one that they run on.

use std::collections::BTreeSet;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::object::Object;
use api_machinery::reflect::equal;
use api_types::authentication_v1::UserInfo;
use api_types::resource_v1::{self, AllocatedDeviceStatus, AllocationResult, ResourceClaimStatus};
use api_types::resource_v1beta1;
use authz::{Attributes, Authorizer, Decision};

use crate::authorization::forbidden::forbidden;

const BINDING: &str = "binding";
const DRIVER: &str = "driver";
/// What a token that is bound to a node says of its user.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The status of a claim of any version.
fn status_of(object: &dyn Object) -> Option<&ResourceClaimStatus> {
    let first = || object.downcast_ref::<resource_v1beta1::ResourceClaim>().map(|claim| &claim.status);
    object.downcast_ref::<resource_v1::ResourceClaim>().map(|claim| &claim.status).or_else(first)
}

/// What of a change of a claim's status its user may not do. `request` is as authorizers see it.
pub(super) async fn check(
    authorizer: &dyn Authorizer,
    request: &Attributes,
    object: &dyn Object,
    old: &dyn Object,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let (Some(new), Some(stored)) = (status_of(object), status_of(old)) else { return errors };
    let path = Path::new("status");
    if !equal(&new.allocation, &stored.allocation) || !equal(&new.reserved_for, &stored.reserved_for) {
        let name = String::new();
        let attributes = Attributes { subresource: BINDING.into(), namespace: String::new(), name, ..request.clone() };
        if let Err(why) = ask(authorizer, &attributes).await {
            errors.push(path.child("allocation").forbidden(format!(
                "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
                 verb=\"{}\" permission: {why}",
                request.verb
            )));
        }
    }
    let Some(allocation) = &new.allocation else { return errors };
    let verbs = verbs(request, allocation);
    for driver in changed_drivers(&new.devices, &stored.devices) {
        let attributes = Attributes { subresource: DRIVER.into(), name: driver.to_owned(), ..request.clone() };
        if let Err(why) = ask_any(authorizer, &attributes, &verbs).await {
            errors.push(path.child("devices").forbidden(format!(
                "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" permission: {why}",
                verbs.join(" ")
            )));
        }
    }
    errors
}

/// The drivers with an entry that was added, changed or removed.
fn changed_drivers<'a>(new: &'a [AllocatedDeviceStatus], old: &'a [AllocatedDeviceStatus]) -> BTreeSet<&'a str> {
    let among =
        |own: &AllocatedDeviceStatus, others: &[AllocatedDeviceStatus]| others.iter().any(|other| equal(other, own));
    let added = new.iter().filter(|own| !among(own, old));
    let removed = old.iter().filter(|own| !among(own, new));
    added.chain(removed).map(|own| own.driver.as_str()).collect()
}

/// The verbs of which one is enough: on the user's own node, and on any.
fn verbs(request: &Attributes, allocation: &AllocationResult) -> Vec<String> {
    let own = node_of(&request.user).is_some_and(|node| selected_node(allocation) == Some(node));
    let prefixes = own.then_some("associated-node").into_iter().chain(["arbitrary-node"]);
    prefixes.map(|prefix| format!("{prefix}:{}", request.verb)).collect()
}

/// The node that a service account's token is bound to.
fn node_of(user: &UserInfo) -> Option<&str> {
    let bound = user.username.starts_with(SERVICE_ACCOUNT).then(|| user.extra.get(NODE_NAME)).flatten()?;
    match bound.0.as_slice() {
        [node] => Some(node),
        _ => None,
    }
}

/// The only node that can reach what is allocated, where it is named.
fn selected_node(allocation: &AllocationResult) -> Option<&str> {
    let [term] = allocation.node_selector.as_ref()?.node_selector_terms.as_slice() else { return None };
    let ([field], []) = (term.match_fields.as_slice(), term.match_expressions.as_slice()) else { return None };
    match field.values.as_slice() {
        [node] if field.key == "metadata.name" && field.operator == "In" => Some(node),
        _ => None,
    }
}

async fn ask(authorizer: &dyn Authorizer, attributes: &Attributes) -> Result<(), String> {
    let outcome = authorizer.authorize(attributes).await;
    match outcome.decision {
        Decision::Allow => Ok(()),
        _ => Err(forbidden(attributes, &outcome).message),
    }
}

/// Whether one of the verbs may be done; what is told of the last.
async fn ask_any(authorizer: &dyn Authorizer, attributes: &Attributes, verbs: &[String]) -> Result<(), String> {
    let mut last = Ok(());
    for verb in verbs {
        last = ask(authorizer, &Attributes { verb: verb.clone(), ..attributes.clone() }).await;
        if last.is_ok() {
            break;
        }
    }
    last
}
