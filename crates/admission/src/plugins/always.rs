//! AlwaysAdmit and AlwaysDeny: relics, which do what their names say.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use async_trait::async_trait;

use crate::{Attributes, Context, Passes, Plugin, PluginEntry};

pub(super) const ADMIT: PluginEntry = PluginEntry {
    name: "AlwaysAdmit",
    enabled_by_default: false,
    passes: Passes::Both,
    reads: &[],
    configuration: None,
    build: |_| {
        tracing::warn!("AlwaysAdmit is deprecated; it does nothing");
        Box::new(AlwaysAdmit)
    },
};

pub(super) const DENY: PluginEntry = PluginEntry {
    name: "AlwaysDeny",
    enabled_by_default: false,
    passes: Passes::Both,
    reads: &[],
    configuration: None,
    build: |_| {
        tracing::warn!("AlwaysDeny is deprecated; nothing can be written");
        Box::new(AlwaysDeny)
    },
};

struct AlwaysAdmit;

impl Plugin for AlwaysAdmit {
    fn handles(&self, _: &Attributes) -> bool {
        true
    }
}

struct AlwaysDeny;

#[async_trait]
impl Plugin for AlwaysDeny {
    fn handles(&self, _: &Attributes) -> bool {
        true
    }

    async fn mutate(
        &self,
        _: &Context,
        attributes: &Attributes,
        _: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        Err(denied(attributes))
    }

    async fn validate(
        &self,
        _: &Context,
        attributes: &Attributes,
        _: Option<&dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        Err(denied(attributes))
    }
}

fn denied(attributes: &Attributes) -> ApiError {
    attributes.forbidden("admission control is denying all modifications")
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::ConfigMap;

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    #[tokio::test]
    async fn they_do_what_they_are_called() {
        let (fixture, attributes) = (Fixture::default(), create("", "configmaps"));
        fixture.mutate(&ADMIT, &attributes, &mut ConfigMap::default()).await.unwrap();
        let text = "configmaps \"x\" is forbidden: admission control is denying all modifications";
        let refused = fixture.mutate(&DENY, &attributes, &mut ConfigMap::default()).await.unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (403, text));
        assert!(fixture.validate(&DENY, &attributes, &ConfigMap::default()).await.is_err());
    }
}
