//! Flags and configuration file together. Leader election flags win over the file, the file over deprecated flags.

use std::time::Duration;

use api_machinery::time::GoDuration;
use api_types::scheduler_config_v1::{KubeSchedulerConfiguration, LeaderElectionConfiguration};
use base::SharedRng;
use client::{ClientConfig, ContentType};
use component_base::Gates;
use component_base::flags::{Errors, Invalid, Options};
use component_base::serving::BoxError;
use controller::process::ProcessOptions;

use super::{NAME, load};
use crate::config;

/// What the process was told.
pub(super) struct Settings {
    pub(super) process: ProcessOptions,
    pub(super) configuration: KubeSchedulerConfiguration,
    pub(super) max_in_unschedulable: Duration,
}

/// Takes from the file what flags can say too.
pub(super) fn prepare(options: &mut Options) -> Result<(), Invalid> {
    let path = options.string("config").to_owned();
    if path.is_empty() {
        return Ok(());
    }
    let configuration = load(&path).map_err(Invalid::one)?;
    let election = &configuration.leader_election;
    let connection = &configuration.client_connection;
    let yes = |value: Option<bool>| value.unwrap_or(true).to_string();
    let values = [
        ("leader-elect", yes(election.leader_elect)),
        ("leader-elect-lease-duration", election.lease_duration.to_string()),
        ("leader-elect-renew-deadline", election.renew_deadline.to_string()),
        ("leader-elect-retry-period", election.retry_period.to_string()),
        ("leader-elect-resource-lock", election.resource_lock.clone()),
        ("leader-elect-resource-name", election.resource_name.clone()),
        ("leader-elect-resource-namespace", election.resource_namespace.clone()),
        ("profiling", yes(configuration.enable_profiling)),
        ("kubeconfig", connection.kubeconfig.clone()),
        ("kube-api-content-type", connection.content_type.clone()),
        ("kube-api-qps", connection.qps.to_string()),
        ("kube-api-burst", connection.burst.to_string()),
    ];
    for (flag, value) in values {
        options.set_from_file(flag, &value).map_err(Invalid::one)?;
    }
    Ok(())
}

/// The configuration that flags and file come to, checked.
pub(super) fn configuration(options: &Options, gates: &Gates) -> Result<KubeSchedulerConfiguration, BoxError> {
    let mut errors = Errors::new();
    let mut configuration = load(options.string("config"))?;
    config::add_gated(&mut configuration, gates);
    take_election(&mut configuration.leader_election, options);
    if options.string("config").is_empty() {
        take_deprecated(&mut configuration, options);
    }
    errors.ok(config::validate(&configuration, gates));
    errors.into_result()?;
    Ok(configuration)
}

impl Settings {
    pub(super) fn new(
        configuration: KubeSchedulerConfiguration,
        options: &Options,
        rng: &SharedRng,
        gates: &Gates,
    ) -> Result<Self, BoxError> {
        let mut errors = Errors::new();
        let mut process = ProcessOptions::from_options(NAME, options, rng, gates, &mut errors)?.releasing();
        errors.into_result()?;
        let connection = &configuration.client_connection;
        let mut client = ClientConfig::load(&connection.kubeconfig, options.string("master"))?.with_component(NAME);
        client.qps = connection.qps;
        client.burst = u32::try_from(connection.burst).unwrap_or(0);
        client.content = match connection.content_type.as_str() {
            "application/json" => ContentType::Json,
            _ => ContentType::Protobuf,
        };
        process.client = client;
        let max_in_unschedulable = options.duration("pod-max-in-unschedulable-pods-duration");
        Ok(Self { process, configuration, max_in_unschedulable })
    }
}

/// The flags already have the file's values where they were not given.
fn take_election(election: &mut LeaderElectionConfiguration, options: &Options) {
    election.leader_elect = Some(options.bool("leader-elect"));
    let duration = |name: &str| GoDuration::from_nanos(options.duration_ns(name));
    election.lease_duration = duration("leader-elect-lease-duration");
    election.renew_deadline = duration("leader-elect-renew-deadline");
    election.retry_period = duration("leader-elect-retry-period");
    election.resource_lock = options.string("leader-elect-resource-lock").to_owned();
    election.resource_name = options.string("leader-elect-resource-name").to_owned();
    election.resource_namespace = options.string("leader-elect-resource-namespace").to_owned();
}

fn take_deprecated(configuration: &mut KubeSchedulerConfiguration, options: &Options) {
    configuration.enable_profiling = Some(options.bool("profiling"));
    configuration.enable_contention_profiling = Some(options.bool("contention-profiling"));
    let connection = &mut configuration.client_connection;
    connection.kubeconfig = options.string("kubeconfig").to_owned();
    connection.content_type = options.string("kube-api-content-type").to_owned();
    connection.qps = options.float("kube-api-qps");
    connection.burst = i32::try_from(options.int("kube-api-burst")).unwrap_or(i32::MAX);
}
