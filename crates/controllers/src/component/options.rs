//! From flags to what the process and its controllers need, with all mistakes at once.

use std::path::PathBuf;
use std::time::Duration;

use base::SharedRng;
use client::{ClientConfig, Trust};
use component_base::Gates;
use component_base::flags::{Errors, Options};
use component_base::serving::BoxError;
use component_helpers::time_zone::TimeZone;
use controller::Selection;
use controller::process::ProcessOptions;

use super::{NAME, flags};
use crate::settings::{
    AttachDetachSettings, AutoscalerSettings, BinderSettings, IpamSettings, NodeHealthSettings, SignerFiles,
    SigningSettings,
};
use crate::{ALL, Settings};

/// The controllers that only a cloud needs, by name and alias. Naming one is no mistake, but they run in the
/// cloud-controller-manager.
const OF_CLOUDS: &[&str] = &[
    "cloud-node-lifecycle",
    "cloud-node-lifecycle-controller",
    "node-route-controller",
    "route",
    "service",
    "service-lb-controller",
];

/// Everything that the flags say.
pub(super) struct Config {
    pub(super) process: ProcessOptions,
    pub(super) selection: Selection,
    pub(super) settings: Settings,
    pub(super) service_accounts: bool,
    pub(super) min_resync: Duration,
    pub(super) start_interval: Duration,
    pub(super) shutdown_timeout: Duration,
}

impl Config {
    /// Reads and checks the flags.
    ///
    /// # Errors
    /// All mistakes together.
    pub(super) fn from_options(options: &Options, rng: &SharedRng, gates: &Gates) -> Result<Self, BoxError> {
        let mut errors = Errors::new();
        flags::refuse_unsupported(options, &mut errors);
        let process = ProcessOptions::from_options(NAME, options, rng, gates, &mut errors)?;
        let selection = errors.ok(selection(options.strings("controllers")));
        let settings = settings(options, &process.client, &mut errors);
        errors.into_result()?;
        Ok(Self {
            process,
            selection: selection.unwrap_or_else(Selection::all),
            settings,
            service_accounts: options.bool("use-service-account-credentials"),
            min_resync: options.duration("min-resync-period"),
            start_interval: options.duration("controller-start-interval"),
            shutdown_timeout: options.duration("controller-shutdown-timeout"),
        })
    }
}

fn selection(list: &[String]) -> Result<Selection, controller::UnknownControllers> {
    let mut present = Vec::with_capacity(list.len());
    for entry in list {
        let name = entry.strip_prefix('-').unwrap_or(entry);
        let is_here = ALL.iter().any(|own| own.name == name || own.aliases.contains(&name));
        // An entry without a sign asks for the controller, and must not be taken for granted.
        if !is_here && OF_CLOUDS.contains(&name) {
            if name == entry {
                tracing::warn!(controller = name, "This controller runs in the cloud-controller-manager");
            }
            continue;
        }
        present.push(entry.clone());
    }
    Selection::parse(&present, ALL)
}

fn settings(options: &Options, client: &ClientConfig, errors: &mut Errors) -> Settings {
    let workers = |name: &str| usize::try_from(options.int(name)).unwrap_or(0).max(1);
    let slices = options.int("concurrent-service-endpoint-syncs");
    errors.check((1..=50).contains(&slices), "concurrent-service-endpoint-syncs must be between 1 and 50");
    let per_slice = options.int("max-endpoints-per-slice");
    errors.check((1..=1000).contains(&per_slice), "max-endpoints-per-slice must be between 1 and 1000");
    let clean_up = options.duration("legacy-service-account-token-clean-up-period");
    errors.check(!clean_up.is_zero(), "the legacy service account token cleanup period must be greater than zero");
    let syncs = options.int("concurrent-horizontal-pod-autoscaler-syncs");
    errors.check(
        syncs >= 1,
        format!("concurrent-horizontal-pod-autoscaler-syncs must be greater than 0, but got {syncs}"),
    );
    let threshold = options.int("terminated-pod-gc-threshold");
    Settings {
        deployment_syncs: workers("concurrent-deployment-syncs"),
        replica_set_syncs: workers("concurrent-replicaset-syncs"),
        daemon_set_syncs: workers("concurrent-daemonset-syncs"),
        job_syncs: workers("concurrent-job-syncs"),
        replication_controller_syncs: workers("concurrent-rc-syncs"),
        service_account_token_syncs: workers("concurrent-serviceaccount-token-syncs"),
        legacy_token_clean_up_period: options.duration("legacy-service-account-token-clean-up-period"),
        token_key_file: PathBuf::from(options.string("service-account-private-key-file")),
        local_zone: TimeZone::local(),
        cron_job_syncs: workers("concurrent-cron-job-syncs"),
        resource_quota_syncs: workers("concurrent-resource-quota-syncs"),
        resource_quota_sync_period: options.duration("resource-quota-sync-period"),
        mirroring_syncs: workers("mirroring-concurrent-service-endpoint-syncs"),
        mirroring_batch_period: options.duration("mirroring-endpointslice-updates-batch-period"),
        mirroring_max_per_subset: workers("mirroring-max-endpoints-per-subset"),
        stateful_set_syncs: workers("concurrent-statefulset-syncs"),
        policy_status_syncs: workers("concurrent-validating-admission-policy-status-syncs"),
        ttl_after_finished_syncs: workers("concurrent-ttl-after-finished-syncs"),
        terminated_pod_gc_threshold: i32::try_from(threshold).unwrap_or(i32::MAX),
        namespace_syncs: workers("concurrent-namespace-syncs"),
        namespace_sync_period: options.duration("namespace-sync-period"),
        garbage_collector: options.bool("enable-garbage-collector"),
        garbage_collector_syncs: workers("concurrent-gc-syncs"),
        endpoint_syncs: workers("concurrent-endpoint-syncs"),
        endpoint_batch_period: options.duration("endpoint-updates-batch-period"),
        endpoint_slice_syncs: workers("concurrent-service-endpoint-syncs"),
        endpoint_slice_batch_period: options.duration("endpointslice-updates-batch-period"),
        max_endpoints_per_slice: usize::try_from(per_slice).unwrap_or(1),
        root_ca: root_ca(options.string("root-ca-file"), client, errors),
        node_health: node_health(options),
        ipam: ipam(options),
        signing: signing(options),
        binder: BinderSettings {
            sync_period: options.duration("pvclaimbinder-sync-period"),
            dynamic_provisioning: options.bool("enable-dynamic-provisioning"),
        },
        ephemeral_volume_syncs: workers("concurrent-ephemeralvolume-syncs"),
        attach_detach: attach_detach(options, errors),
        autoscaler: autoscaler(options),
        resource_claim_syncs: workers("concurrent-resourceclaim-syncs"),
        device_taint_eviction_syncs: workers("concurrent-device-taint-eviction-syncs"),
    }
}

fn attach_detach(options: &Options, errors: &mut Errors) -> AttachDetachSettings {
    let period = options.duration("attach-detach-reconcile-sync-period");
    let is_long = period >= Duration::from_secs(1);
    let text = "duration time must be greater than one second as set via command line option reconcile-sync-period";
    errors.check(is_long, text);
    AttachDetachSettings {
        verify_period: (!options.bool("disable-attach-detach-reconcile-sync")).then_some(period),
        forces_on_timeout: !options.bool("disable-force-detach-on-timeout"),
    }
}

fn autoscaler(options: &Options) -> AutoscalerSettings {
    let duration = |name: &str| options.duration(&format!("horizontal-pod-autoscaler-{name}"));
    AutoscalerSettings {
        syncs: usize::try_from(options.int("concurrent-horizontal-pod-autoscaler-syncs")).unwrap_or(0).max(1),
        sync_period: duration("sync-period"),
        downscale_stabilization: duration("downscale-stabilization"),
        tolerance: options.float("horizontal-pod-autoscaler-tolerance"),
        cpu_initialization_period: duration("cpu-initialization-period"),
        initial_readiness_delay: duration("initial-readiness-delay"),
    }
}

/// The bundle for `kube-root-ca.crt`: the file, else what the client itself trusts; empty for none.
fn root_ca(path: &str, client: &ClientConfig, errors: &mut Errors) -> String {
    let content = match (path, &client.trust) {
        ("", Trust::Pem(pem)) => pem.clone(),
        ("", Trust::File(file)) => errors
            .ok(std::fs::read(file).map_err(|error| format!("open {}: {error}", file.display())))
            .unwrap_or_default(),
        ("", Trust::System | Trust::Insecure) => return String::new(),
        (path, _) => {
            let read = std::fs::read(path);
            let read = read.map_err(|error| format!("error reading root-ca-file at {path}: open {path}: {error}"));
            errors.ok(read).unwrap_or_default()
        }
    };
    let parsed = pki::CaBundle::from_pem(&content);
    errors.ok(parsed.map_err(|error| format!("error parsing root-ca-file at {path}: {error}")));
    String::from_utf8_lossy(&content).into_owned()
}

fn node_health(options: &Options) -> NodeHealthSettings {
    NodeHealthSettings {
        monitor_period: options.duration("node-monitor-period"),
        monitor_grace_period: options.duration("node-monitor-grace-period"),
        startup_grace_period: options.duration("node-startup-grace-period"),
        eviction_rate: options.float("node-eviction-rate"),
        secondary_eviction_rate: options.float("secondary-node-eviction-rate"),
        large_zone: usize::try_from(options.int("large-cluster-size-threshold")).unwrap_or(0),
        unhealthy_zone_threshold: options.float("unhealthy-zone-threshold"),
    }
}

fn ipam(options: &Options) -> IpamSettings {
    let mask = |name: &str| u8::try_from(options.int(name)).unwrap_or(u8::MAX);
    IpamSettings {
        allocate: options.bool("allocate-node-cidrs"),
        allocator: options.string("cidr-allocator-type").to_owned(),
        cluster_cidr: options.string("cluster-cidr").to_owned(),
        service_cidr: options.string("service-cluster-ip-range").to_owned(),
        mask: mask("node-cidr-mask-size"),
        mask_v4: mask("node-cidr-mask-size-ipv4"),
        mask_v6: mask("node-cidr-mask-size-ipv6"),
    }
}

fn signing(options: &Options) -> SigningSettings {
    let files = |signer: &str| SignerFiles {
        cert: PathBuf::from(options.string(&format!("cluster-signing{signer}-cert-file"))),
        key: PathBuf::from(options.string(&format!("cluster-signing{signer}-key-file"))),
    };
    SigningSettings {
        all: files(""),
        kubelet_serving: files("-kubelet-serving"),
        kubelet_client: files("-kubelet-client"),
        api_client: files("-kube-apiserver-client"),
        legacy_unknown: files("-legacy-unknown"),
        duration: options.duration("cluster-signing-duration"),
    }
}

#[cfg(test)]
mod tests {

    use component_base::flags::check_table;

    use super::*;

    #[test]
    fn controllers_of_clouds_are_known_names() {
        let wants = |list: &[&str]| {
            let list: Vec<String> = list.iter().map(|entry| (*entry).to_owned()).collect();
            selection(&list).map(|selection| ALL.iter().filter(|one| selection.wants(one)).count())
        };
        assert_eq!(wants(&["*", "-service-lb-controller"]), wants(&["*"]));
        assert_eq!(wants(&["service-lb-controller"]), Ok(0));
        assert_eq!(wants(&["*", "bootstrapsigner", "tokencleaner"]), wants(&["*"]).map(|all| all + 2));
        assert!(wants(&["no-such-controller"]).is_err());
    }

    #[test]
    fn every_controller_of_upstream_is_known() {
        let table = test_facts::facts("kcm-controllers.json");
        for entry in table["controllers"].as_array().unwrap() {
            let aliases = entry["aliases"].as_array().into_iter().flatten();
            for name in std::iter::once(&entry["name"]).chain(aliases) {
                let entry = format!("-{}", name.as_str().unwrap());
                assert!(selection(&[entry]).is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn flags_are_upstreams() {
        // Hidden flags need no help.
        let problems = check_table(flags::FLAGS).into_iter().filter(|problem| !problem.ends_with("has no help"));
        assert_eq!(problems.collect::<Vec<_>>(), [] as [String; 0]);
        let table = test_facts::facts("flags/kube-controller-manager.json");
        let own: Vec<_> = flags::FLAGS.iter().flat_map(|set| set.flags).collect();
        for facts in table["flags"].as_array().unwrap() {
            // Both ways to write a name are the same.
            let name = facts["flag"].as_str().unwrap().replace('_', "-");
            let flag = own.iter().find(|flag| flag.name == name).unwrap_or_else(|| panic!("--{name} is missing"));
            let expected = match &facts["default"] {
                serde_json::Value::String(text) if text == "[]" => String::new(),
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Array(items) => {
                    items.iter().filter_map(serde_json::Value::as_str).collect::<Vec<_>>().join(",")
                }
                serde_json::Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
                other => other.to_string(),
            };
            assert_eq!(flag.default, expected, "--{name}");
        }
    }
}
