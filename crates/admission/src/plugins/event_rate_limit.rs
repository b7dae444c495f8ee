//! EventRateLimit: so many events at most, of all, or of each namespace, user, or thing that events are about.

mod buckets;
mod config;

use std::sync::Arc;

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::core_v1::Event;
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};
use buckets::Buckets;
use config::{Configuration, Limit};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "EventRateLimit",
    enabled_by_default: false,
    passes: Passes::Validating,
    reads: &[],
    configuration: Some(|stated| Ok(Arc::new(Configuration::read(stated.value)?))),
    build: |settings| {
        let configuration: Arc<Configuration> = settings.configured.get().unwrap_or_default();
        Box::new(EventRateLimit { limits: configuration.limits.iter().map(Enforced::new).collect() })
    },
};

/// Prefix of the names of the configuration's types.
const PACKAGE: &str = "io.k8s.kubernetes.plugin.pkg.admission.eventratelimit.apis.eventratelimit.v1alpha1";

struct EventRateLimit {
    limits: Vec<Enforced>,
}

struct Enforced {
    type_: String,
    buckets: Buckets,
}

impl Enforced {
    fn new(limit: &Limit) -> Self {
        let buckets = Buckets::new(f64::from(limit.qps), limit.burst.unsigned_abs(), limit.kept());
        Self { type_: limit.type_.clone(), buckets }
    }

    /// What shares a bucket with an event.
    fn key(&self, attributes: &Attributes, event: &Event) -> String {
        match self.type_.as_str() {
            config::NAMESPACE => attributes.namespace.clone(),
            config::USER => attributes.user.username.clone(),
            config::SOURCE_AND_OBJECT => {
                let (source, object) = (&event.source, &event.involved_object);
                let of_object = [&object.kind, &object.namespace, &object.name, &object.uid, &object.api_version];
                [&source.component, &source.host].into_iter().chain(of_object).map(String::as_str).collect()
            }
            _ => String::new(),
        }
    }
}

#[async_trait]
impl Plugin for EventRateLimit {
    fn handles(&self, attributes: &Attributes) -> bool {
        let written = matches!(attributes.operation, Operation::Create | Operation::Update);
        let of_event = attributes.kind.group.is_empty() && attributes.kind.kind == "Event";
        written && of_event && !attributes.dry_run
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(event) = object.and_then(|object| object.downcast_ref::<Event>()) else { return Ok(()) };
        let now = cx.clock.monotonic();
        let mut refusals: Vec<String> = Vec::new();
        // Every limit is charged, whatever the others say.
        for limit in &self.limits {
            let key = limit.key(attributes, event);
            let text = format!("limit reached on type {} for key {key}", limit.type_);
            if !limit.buckets.try_take(key, now) && !refusals.contains(&text) {
                refusals.push(text);
            }
        }
        let text = match refusals.as_slice() {
            [] => return Ok(()),
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        // As upstream's, the answer does not say when to come again: whoever sends events too fast is to drop some.
        Err(ApiError { details: None, ..ApiError::too_many_requests(format!("Too many requests: {text}"), 0) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::plugins::testing::{Fixture, create};
    use crate::{Settings, Stated};

    fn plugin(limits: serde_json::Value) -> Box<dyn Plugin> {
        let value = json!({
            "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration", "limits": limits,
        });
        let mut settings = Settings::default();
        settings.configured.put((ENTRY.configuration.unwrap())(Stated::by_default(&value)).unwrap());
        (ENTRY.build)(&settings)
    }

    fn of(namespace: &str, user: &str) -> Attributes {
        let mut attributes = Attributes { namespace: namespace.into(), ..create("", "events") };
        attributes.kind.kind = "Event".into();
        Arc::make_mut(&mut attributes.user).username = user.into();
        attributes
    }

    fn event(component: &str, name: &str) -> Event {
        let mut event = Event::default();
        event.source.component = component.into();
        event.source.host = "h".into();
        event.involved_object.kind = "Pod".into();
        event.involved_object.name = name.into();
        event.involved_object.api_version = "v1".into();
        event
    }

    #[tokio::test(start_paused = true)]
    async fn each_type_has_its_buckets() {
        let (a, b) = ((of("a", "u"), event("c", "p")), (of("b", "v"), event("c", "q")));
        for (limit, first_refusal, other_passes) in [
            ("Server", "Server for key ", false),
            ("Namespace", "Namespace for key a", true),
            ("User", "User for key u", true),
            ("SourceAndObject", "SourceAndObject for key chPodpv1", true),
        ] {
            let plugin = plugin(json!([{"type": limit, "qps": 1, "burst": 2}]));
            let cx = Fixture::default().context();
            for _ in 0..2 {
                plugin.validate(&cx, &a.0, Some(&a.1), None).await.unwrap();
            }
            let error = plugin.validate(&cx, &a.0, Some(&a.1), None).await.unwrap_err();
            assert_eq!((error.code, &*error.reason, &error.details), (429, "TooManyRequests", &None));
            assert_eq!(error.message, format!("Too many requests: limit reached on type {first_refusal}"));
            assert_eq!(plugin.validate(&cx, &b.0, Some(&b.1), None).await.is_ok(), other_passes, "{limit}");
            tokio::time::advance(Duration::from_secs(1)).await;
            plugin.validate(&cx, &a.0, Some(&a.1), None).await.unwrap();
            plugin.validate(&cx, &a.0, Some(&a.1), None).await.unwrap_err();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_limits_are_charged_and_all_that_refuse_are_told() {
        let limits = json!([{"type": "Server", "qps": 1, "burst": 1}, {"type": "User", "qps": 1, "burst": 1}]);
        let (plugin, cx, event) = (plugin(limits), Fixture::default().context(), event("c", "p"));
        plugin.validate(&cx, &of("n", "u"), Some(&event), None).await.unwrap();
        // The server's bucket refuses, and the other user's is charged all the same.
        plugin.validate(&cx, &of("n", "v"), Some(&event), None).await.unwrap_err();
        let error = plugin.validate(&cx, &of("n", "v"), Some(&event), None).await.unwrap_err();
        assert_eq!(
            error.message,
            "Too many requests: [limit reached on type Server for key , limit reached on type User for key v]"
        );
    }

    #[test]
    fn only_events_that_are_kept_count() {
        let plugin = plugin(json!([{"type": "Server", "qps": 1, "burst": 1}]));
        assert!(plugin.handles(&of("n", "u")));
        let mut of_other_group = of("n", "u");
        of_other_group.kind.group = "events.k8s.io".into();
        for other in [
            of_other_group,
            Attributes { dry_run: true, ..of("n", "u") },
            Attributes { operation: Operation::Delete, ..of("n", "u") },
            create("", "pods"),
        ] {
            assert!(!plugin.handles(&other), "{other:?}");
        }
    }
}
