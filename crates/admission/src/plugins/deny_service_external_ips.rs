//! DenyServiceExternalIPs: no Service gets an external address that it did not have.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::core_v1::Service;
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "DenyServiceExternalIPs",
    enabled_by_default: false,
    passes: Passes::Validating,
    reads: &[],
    configuration: None,
    build: |_| Box::new(DenyServiceExternalIps),
};

struct DenyServiceExternalIps;

#[async_trait]
impl Plugin for DenyServiceExternalIps {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.is("", "services") && matches!(attributes.operation, Operation::Create | Operation::Update)
    }

    async fn validate(
        &self,
        _: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(service) = object.and_then(|object| object.downcast_ref::<Service>()) else { return Ok(()) };
        let before = old.and_then(|old| old.downcast_ref::<Service>()).map(|old| old.spec.external_ips.as_slice());
        let before = before.unwrap_or_default();
        if service.spec.external_ips.iter().all(|address| before.contains(address)) {
            return Ok(());
        }
        Err(attributes.forbidden("Use of external IPs is denied by admission control"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::{Fixture, create};

    #[tokio::test]
    async fn addresses_may_only_go() {
        let fixture = Fixture::default();
        let service = |addresses: &[&str]| {
            let mut service = Service::default();
            service.spec.external_ips = addresses.iter().map(|&address| address.into()).collect();
            service
        };
        let update = Attributes { operation: Operation::Update, ..create("", "services") };
        let old = service(&["192.0.2.1", "192.0.2.2"]);
        for (addresses, passes) in [(&["192.0.2.2"][..], true), (&["192.0.2.2", "192.0.2.3"], false), (&[], true)] {
            let outcome = fixture.validate_update(&ENTRY, &update, &service(addresses), &old).await;
            assert_eq!(outcome.is_ok(), passes, "{addresses:?}");
        }
        let error = fixture.validate(&ENTRY, &create("", "services"), &old).await.unwrap_err();
        let text = "services \"x\" is forbidden: Use of external IPs is denied by admission control";
        assert_eq!(error.message, text);
    }
}
