//! Making the parts of a server and putting them together.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use admission::webhook::{Caller, Callers};
use admission::{ImagePolicyConfig, ImageReviewer};
use client::{Client, ClientConfig, ClientCx, Credentials, InProcess, Peer};
use component_base::Gates;
use component_base::lifecycle::Lifecycle;
use component_base::metrics::{Desc, Metrics, Stability, Value};
use egress::EgressSelector;
use encryption::{EncryptionMetrics, Live};
use kinds::gates::STORAGE_VERSION_API;
use kinds::info::ResourceInfo;
use parking_lot::Mutex;
use registry::{Registry, RegistryOptions, Track};
use tracing_otlp::{Resource, Tracer};

use super::handler::Itself;
use super::store::Store;
use super::{auditing, health};
use crate::admission_lookup::RegistryLookup;
use crate::admission_manifests::Followed;
use crate::admission_versions::RegistryVersions;
use crate::authentication::{Authentication, Dependencies, External};
use crate::authorization::{self, Impersonations, MirroredRoles, RbacAuthorizer};
use crate::build_error::BuildError;
use crate::config::{BuiltInResource, EncryptionFile, ServerConfig};
use crate::coordination::Coordination;
use crate::custom_kinds::CustomKinds;
use crate::cx::ApiCx;
use crate::flow_control::{self, FlowControl};
use crate::handlers::ownership::Ownership;
use crate::hooks::{Hooks, PostStartHook, Ready};
use crate::limits::{InFlight, Running, Seats, Watches};
use crate::metrics::resources;
use crate::metrics::services::{AllocationMetrics, show_networks};
use crate::metrics::storage::StorageMetrics;
use crate::metrics::writes::WriteMetrics;
use crate::metrics::{AdmissionMetrics, ApiMetrics};
use crate::peers;
use crate::routes::Routes;
use crate::server_id::{COMPONENT, server_id_hash, shown_id};
use crate::storage_versions::{StorageVersions, Updater};
use crate::webhooks::{
    ADMISSION_ANSWER_BYTES, CONVERSION_ANSWER_BYTES, WebhookClients, WebhookCredentials, WebhookSurroundings,
};
use crate::{admission_lookup, encryption_reload, extensions, gates, handlers, object_counts, storage_ready};

const DROPPED_SPANS: Desc = Desc::new(
    "coxswain_apiserver_dropped_spans_total",
    "Spans of traces that never reached their collector.",
    Stability::Alpha,
);

/// What is there before the store is.
pub(super) struct Surroundings {
    pub(super) metrics: Arc<Metrics>,
    pub(super) egress: EgressSelector,
    /// Who signs tokens of accounts, where that is somebody else.
    pub(super) signer: Option<External>,
}

impl Surroundings {
    /// As the configuration says.
    ///
    /// # Errors
    /// When connections cannot be made so.
    pub(super) fn new(config: &ServerConfig, lifecycle: &Lifecycle) -> Result<Self, BuildError> {
        let metrics = Metrics::of_process(config.metrics.clone().obeying(lifecycle.gates()));
        metrics.show_gates(lifecycle.gates());
        metrics.show_versions(lifecycle.versions());
        let around = egress::Surroundings { tasks: lifecycle.tasks(), rng: lifecycle.rng(), metrics: &metrics };
        let egress = config.egress.as_ref().map(|own| EgressSelector::new(own, &around)).transpose()?;
        Ok(Self { egress: egress.unwrap_or_default(), metrics, signer: None })
    }
}

/// Makes the context of a server, the places that it serves, and the work that follows its start.
pub(super) fn assemble(
    config: ServerConfig,
    lifecycle: Lifecycle,
    store: &Store,
    surroundings: Surroundings,
) -> Result<(Arc<ApiCx>, Routes, Hooks), BuildError> {
    let Surroundings { metrics, egress, signer } = surroundings;
    let mut options = registry_options(&config, &lifecycle, store);
    let encryption = encrypt(&config, &lifecycle, &metrics, &mut options)?;
    let (registry, disabled) = built_in(&config, &lifecycle, &metrics, options);
    let slis = Metrics::new(config.metrics.clone().obeying(lifecycle.gates()));
    let roles = MirroredRoles::default();
    let health = health::of(&config, &lifecycle, &slis, store, &roles, encryption.as_ref())?;

    let parts = Dependencies {
        config: &config,
        registry: &registry,
        egress: &egress,
        lifecycle: &lifecycle,
        metrics: &metrics,
    };
    let authentication = Authentication::build(&parts, signer)?;
    roles.follow(&registry, lifecycle.tasks());
    let rbac = Arc::new(RbacAuthorizer::new(roles));
    let authorizer = authorizer(&config, &lifecycle, &egress, &registry, &rbac, &metrics)?;
    let custom_kinds = Arc::<CustomKinds>::default();
    let lookup: Arc<dyn admission::Lookup> = Arc::new(RegistryLookup::new(&registry, Arc::clone(&authorizer)));
    let webhooks = WebhookSurroundings::new(&lookup, &egress, &metrics);
    let conversion_webhooks = conversion_webhooks(&lifecycle, &webhooks);
    let versions = Arc::new(RegistryVersions::new(&registry, &custom_kinds));
    let admission = admission(&config, &lifecycle, &webhooks, versions, &metrics)?;

    let (mut routes, mut hooks) = (first_routes(), first_hooks());
    hooks.extend(lifecycle.gates().enabled(gates::STORAGE_READINESS).then(storage_ready::hook));
    hooks.extend(encryption.and_then(encryption_reload::hook));
    let tracer = tracer(&config, &lifecycle, &egress, &metrics)?;
    let audit = auditing::auditor(config.audit.as_ref(), &lifecycle, &egress, &metrics)?;
    let (served, others) = extensions::served(&config, &disabled, &lifecycle, &metrics, &health)?;
    let metrics = ApiMetrics::new(metrics, slis);
    let seats = seats(&config, &lifecycle, &registry, &metrics, &mut routes, &mut hooks);
    hooks.push(object_counts::hook());
    hooks.extend(lifecycle.gates().enabled(gates::COORDINATED).then(|| Arc::new(Coordination) as _));
    extensions::install(&mut routes, &mut hooks, &served, &others, lifecycle.gates());
    let storage_versions = storage_versions(&lifecycle, &registry, &mut hooks);
    let peers = peers::install(&mut hooks, &config, &lifecycle, &metrics.registry)?;
    hooks.extend(config.requests.fairness.then(|| Arc::new(flow_control::Producer) as _));
    handlers::debugging(&mut routes, &config.debugging, &lifecycle);
    handlers::index(&mut routes, &others);
    let hooks = Hooks::new(hooks, &health)?;
    let cx = ApiCx {
        impersonations: Impersonations::new(&lifecycle),
        registry,
        authentication,
        authorizer,
        rbac,
        admission: Arc::new(admission),
        custom_kinds,
        conversion_webhooks,
        seats,
        metrics,
        health,
        running: Running::default(),
        watches: Watches::default(),
        loopback: OnceLock::new(),
        failure: Mutex::default(),
        pre_shutdown: Mutex::default(),
        backend: Arc::clone(&store.backend),
        overrides: store.overrides.all.clone(),
        audit,
        aggregation: others,
        peers,
        storage_versions,
        tracer,
        egress,
        config,
        lifecycle,
    };
    Ok((Arc::new(cx), routes, hooks))
}

/// The work of upstream's generic server.
fn first_hooks() -> Vec<Arc<dyn PostStartHook>> {
    let names = ["start-apiserver-admission-initializer", "generic-apiserver-start-informers"];
    names.map(|name| Arc::new(Ready(name)) as _).into()
}

/// The places that every server has.
fn first_routes() -> Routes {
    let mut routes = Routes::default();
    handlers::install(&mut routes);
    #[cfg(test)]
    crate::tests::install(&mut routes);
    routes
}

/// What the server stores, where servers tell of that. Where they would, but nothing is served to tell it by, no write waits for
/// what never comes.
fn storage_versions(
    lifecycle: &Lifecycle,
    registry: &Registry,
    hooks: &mut Vec<Arc<dyn PostStartHook>>,
) -> Option<Arc<StorageVersions>> {
    if !lifecycle.gates().enabled(STORAGE_VERSION_API) {
        return None;
    }
    let (group, version) = ("internal.apiserver.k8s.io", "v1alpha1");
    if registry.resource(group, version, "storageversions").is_none() {
        tracing::warn!(group, version, "Nobody is told what is stored: storageversions are not served");
        return None;
    }
    let versions = StorageVersions::of(registry);
    hooks.push(Arc::new(Updater(Arc::clone(&versions))));
    Some(versions)
}

/// Who decides what requests may do.
fn authorizer(
    config: &ServerConfig,
    lifecycle: &Lifecycle,
    egress: &EgressSelector,
    registry: &Registry,
    rbac: &Arc<RbacAuthorizer>,
    metrics: &Metrics,
) -> Result<Arc<dyn authz::Authorizer>, BuildError> {
    let config = &config.authorization;
    authorization::build(&authorization::Dependencies { config, rbac, registry, egress, lifecycle }, metrics)
}

/// The resources of the built-in kinds that are served, and the kinds that are not.
fn built_in(
    config: &ServerConfig,
    lifecycle: &Lifecycle,
    metrics: &Arc<Metrics>,
    mut options: RegistryOptions,
) -> (Arc<Registry>, BTreeSet<BuiltInResource>) {
    options.allocation = Arc::new(AllocationMetrics::new(metrics));
    options.writes = Arc::new(WriteMetrics::new(metrics));
    let calls = Arc::new(StorageMetrics::new(metrics));
    options.observers = Arc::new(move |resource| Some(calls.observer(resource)));
    let registry = Registry::new(options);
    show_networks(metrics, &registry);
    resources::show(metrics, &registry);
    registry.install_built_in();
    let disabled = not_served(config, lifecycle.gates());
    for (group, version, resource) in &disabled {
        registry.remove(group, version, resource);
    }
    (registry, disabled)
}

/// The admission plugins with what they are given.
fn admission(
    config: &ServerConfig,
    lifecycle: &Lifecycle,
    webhooks: &WebhookSurroundings,
    versions: Arc<RegistryVersions>,
    metrics: &Metrics,
) -> Result<admission::Chain, BuildError> {
    let manifests = Followed::load(&config.admission.manifests, lifecycle, metrics)?;
    let cx = admission::Context {
        versions,
        callers: webhook_callers(config, lifecycle, webhooks)?,
        lookup: Arc::clone(&webhooks.lookup),
        manifests: Arc::new(manifests),
        clock: Arc::clone(lifecycle.clock()),
        rng: Arc::clone(lifecycle.rng()),
        recorder: Arc::new(AdmissionMetrics::new(metrics)),
    };
    let settings = admission::Settings {
        node_declared_features: lifecycle.gates().enabled(gates::NODE_DECLARED_FEATURES),
        mutating_policies: lifecycle.gates().enabled(gates::MUTATING_POLICIES),
        group_priorities: lifecycle.gates().enabled(kinds::gates::GROUP_PREEMPTION),
        topology_labels: lifecycle.gates().enabled(gates::TOPOLOGY_LABELS),
        node_audiences: lifecycle.gates().enabled(gates::NODE_AUDIENCES),
        insecure_kubelet_requests: lifecycle.gates().enabled(gates::INSECURE_KUBELET_REQUESTS),
        extended_resources: lifecycle.gates().enabled(kinds::gates::EXTENDED_RESOURCE),
        pod_level_resources: lifecycle.gates().enabled(kinds::gates::POD_LEVEL_RESOURCES),
        ..config.admission.settings.clone()
    };
    Ok(admission::Chain::new(&config.admission.selection, &settings, cx))
}

/// Who brings questions to the webhooks of admission.
fn webhook_callers(
    config: &ServerConfig,
    lifecycle: &Lifecycle,
    webhooks: &WebhookSurroundings,
) -> Result<Callers, BuildError> {
    let cx = webhook_cx(lifecycle, "admission-webhooks");
    let caller = |file: &Option<PathBuf>| -> Result<Arc<dyn Caller>, BuildError> {
        let credentials = WebhookCredentials::read(file.as_deref()).map_err(BuildError::AdmissionWebhooks)?;
        Ok(Arc::new(WebhookClients::new(webhooks, credentials, cx.clone(), ADMISSION_ANSWER_BYTES)))
    };
    let files = &config.admission.webhook_kubeconfigs;
    let (mutating, validating) = (caller(&files.mutating)?, caller(&files.validating)?);
    let policy = config.admission.settings.configured.get::<ImagePolicyConfig>().unwrap_or_default();
    let images = policy
        .webhook(cx.through(Arc::clone(webhooks.egress.control_plane())))
        .map_err(|error| BuildError::AdmissionWebhooks(error.to_string()))?;
    Ok(Callers { mutating, validating, images: images.map(|webhook| Arc::new(webhook) as Arc<dyn ImageReviewer>) })
}

/// Who brings questions to the webhooks of definitions, which the server shows no credentials.
fn conversion_webhooks(lifecycle: &Lifecycle, webhooks: &WebhookSurroundings) -> Arc<dyn Caller> {
    let cx = webhook_cx(lifecycle, "conversion-webhooks");
    Arc::new(WebhookClients::new(webhooks, WebhookCredentials::default(), cx, CONVERSION_ANSWER_BYTES))
}

fn webhook_cx(lifecycle: &Lifecycle, tasks: &'static str) -> ClientCx {
    ClientCx::of(lifecycle, lifecycle.tasks().child(tasks))
}

/// Who records traces, where the configuration says where they go.
fn tracer(
    config: &ServerConfig,
    lifecycle: &Lifecycle,
    egress: &EgressSelector,
    metrics: &Metrics,
) -> Result<Option<Tracer>, BuildError> {
    let Some(settings) = &config.tracing else { return Ok(None) };
    let instance = shown_id(&config.host_name(), lifecycle.gates());
    let resource = Resource { service: "apiserver".to_owned(), instance, host: String::new() };
    let (clock, rng, tasks) = (lifecycle.clock(), lifecycle.rng(), lifecycle.tasks());
    let tracer = Tracer::start(settings, resource, clock, rng, tasks, egress.control_plane())?;
    let counted = tracer.clone();
    #[expect(clippy::cast_precision_loss, reason = "a count for a metric")]
    let samples = move || vec![(Vec::new(), Value::Counter(counted.dropped() as f64))];
    metrics.computed_counters(&DROPPED_SPANS, Box::new(samples));
    Ok(Some(tracer))
}

/// Who gives seats to requests: priority levels, or two plain bounds.
fn seats(
    config: &ServerConfig,
    lifecycle: &Lifecycle,
    registry: &Arc<Registry>,
    metrics: &ApiMetrics,
    routes: &mut Routes,
    hooks: &mut Vec<Arc<dyn PostStartHook>>,
) -> Arc<dyn Seats> {
    if !config.requests.fairness {
        return Arc::new(InFlight::new(&config.requests, &metrics.registry, lifecycle.clock()));
    }
    let control = FlowControl::new(&config.requests, registry, lifecycle.clock(), &metrics.registry);
    flow_control::install(routes, &control);
    hooks.push(Arc::new(flow_control::Consumer(Arc::clone(&control))));
    hooks.push(Arc::new(flow_control::Filter(Arc::clone(&control))));
    control
}

/// The built-in kinds that are not served: those that the configuration says so of, and those whose features are off.
fn not_served(config: &ServerConfig, gates: &Gates) -> BTreeSet<BuiltInResource> {
    let off = |info: &&ResourceInfo<'_>| info.gates.iter().any(|feature| !gates.enabled(*feature));
    let gated = kinds::all().map(|rules| rules.info()).filter(off);
    gated.map(|info| (info.group, info.version, info.resource)).chain(config.disabled.iter().copied()).collect()
}

fn registry_options(config: &ServerConfig, lifecycle: &Lifecycle, store: &Store) -> RegistryOptions {
    let (clock, rng) = (Arc::clone(lifecycle.clock()), Arc::clone(lifecycle.rng()));
    let storage = &config.storage;
    let uncached = storage.uncached.iter().filter(|resource| !admission_lookup::looks_at(resource));
    RegistryOptions {
        etcd_prefix: storage.prefix.clone(),
        media: storage.media,
        event_ttl: storage.event_ttl,
        lease_reuse: storage.lease_reuse,
        garbage_collector: storage.garbage_collector,
        delete_collection_workers: storage.delete_collection_workers,
        uncached: uncached.cloned().collect(),
        services: config.services.registry_options(),
        compacted: Arc::clone(&store.compacted),
        elsewhere: store.overrides.of.clone(),
        gates: lifecycle.gates().clone(),
        own_fields: Some(own_fields(lifecycle)),
        ..RegistryOptions::new(Arc::clone(&store.backend), clock, rng, lifecycle.tasks().clone())
    }
}

/// What the registry writes by itself is the server's, as if the server had asked for it.
fn own_fields(lifecycle: &Lifecycle) -> Arc<Track<'static>> {
    let clock = Arc::clone(lifecycle.clock());
    Arc::new(move |live, new| {
        Ownership::of_virtual(new, "", clock.wall().into()).track(live, new, COMPONENT);
        Ok(())
    })
}

/// Sees to it that values lie in the store as `--encryption-provider-config` says.
fn encrypt(
    config: &ServerConfig,
    lifecycle: &Lifecycle,
    metrics: &Metrics,
    options: &mut RegistryOptions,
) -> Result<Option<Arc<Live>>, BuildError> {
    let Some(EncryptionFile { path, follows }) = &config.storage.encryption else { return Ok(None) };
    let around = encryption::Surroundings {
        clock: Arc::clone(lifecycle.clock()),
        rng: Arc::clone(lifecycle.rng()),
        tasks: lifecycle.tasks().clone(),
        metrics: EncryptionMetrics::new(metrics, server_id_hash(lifecycle.gates())),
        kms_v1: lifecycle.gates().enabled(gates::KMS_V1),
    };
    let live = Live::load(path, *follows, around)?;
    let transforms = Arc::clone(&live);
    options.transformers = Arc::new(move |resource| Some(transforms.transformer(resource)));
    Ok(Some(live))
}

/// Gives the server a client of itself: in process, by a token that only it knows, without a rate limit.
pub(super) fn connect_loopback(cx: &Arc<ApiCx>, itself: Itself) -> Result<(), BuildError> {
    let transport = Arc::new(InProcess::new(Arc::new(itself), Peer::default()));
    let mut config = ClientConfig::for_server("https://in-process").with_component(COMPONENT).with_rate(-1.0, 0);
    config.credentials = Credentials::Token(cx.authentication.loopback_token.clone());
    let process = ClientCx::new(Arc::clone(cx.clock()), Arc::clone(cx.rng()), cx.tasks().clone());
    let process = process.obeying(cx.lifecycle.gates());
    let client = Client::with_transport(transport, config, process)?;
    if cx.loopback.set(client).is_err() {
        tracing::error!("The server's own client was set twice");
    }
    Ok(())
}
