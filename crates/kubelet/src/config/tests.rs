//! Flags and files together.

use component_base::flags::{check_table, parse};
use component_base::{Feature, Gates};
use component_helpers::taints::Comparing;

use super::*;
use crate::interfaces::ExclusiveResizes;
use crate::resources::MemoryReservation;

fn options(line: &str) -> Options {
    parse(COMPONENT.flags, line.split_whitespace().map(ToOwned::to_owned)).unwrap()
}

fn loaded(line: &str) -> Result<api_types::kubelet_config_v1beta1::KubeletConfiguration, String> {
    load(&options(line)).map_err(|error| error.to_string())
}

const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

#[test]
fn the_table_is_sound() {
    assert_eq!(check_table(COMPONENT.flags), Vec::<String>::new());
}

#[test]
fn every_flag_of_upstream_is_there() {
    let list = test_facts::facts("flags/kubelet.json");
    let options = options("");
    for flag in list["flags"].as_array().unwrap() {
        let name = flag["flag"].as_str().unwrap();
        assert!(options.declares(name), "--{name}");
    }
}

#[test]
fn without_a_file_older_defaults_hold() {
    let config = loaded("").unwrap();
    assert_eq!(config.authentication.anonymous.enabled, Some(true));
    assert_eq!((config.authorization.mode.as_str(), config.read_only_port), ("AlwaysAllow", 10255));
    assert_eq!(config.eviction_hard["memory.available"], "100Mi");
    assert_eq!(config.sync_frequency.to_string(), "1m0s");
    assert_eq!(config.make_ip_tables_util_chains, Some(false), "only on request");
    assert_eq!(loaded("--make-iptables-util-chains=true").unwrap().make_ip_tables_util_chains, Some(true));
}

#[test]
fn soft_eviction_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    let text = "evictionSoft: {memory.available: 300Mi}\nevictionSoftGracePeriod: {memory.available: 1m}\n\
                evictionMinimumReclaim: {nodefs.available: 1Gi}\nevictionMaxPodGracePeriod: 30\n";
    std::fs::write(&file, format!("{HEAD}{text}")).unwrap();
    let line = format!("--config={}", file.display());
    let options = options(&line);
    let plan = plan(&options, loaded(&line).unwrap(), "host").unwrap();
    let soft = plan.eviction.thresholds.iter().find(|threshold| !threshold.grace.is_zero()).unwrap();
    assert_eq!((soft.signal.name(), soft.grace.as_secs(), plan.eviction.max_pod_grace), ("memory.available", 60, 30));
    assert!(plan.eviction.thresholds.iter().any(|threshold| threshold.reclaim.is_some()));
    assert!(plan.eviction.pods_are_limited && plan.eviction.hold.as_secs() == 300);
}

#[test]
fn files_drop_ins_and_flags_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let (file, drop_in) = (dir.path().join("config.yaml"), dir.path().join("conf.d"));
    std::fs::write(
        &file,
        format!("{HEAD}maxPods: 10\nport: 1000\nstaticPodPath: manifests\nclusterDNS: [10.0.0.10]\n"),
    )
    .unwrap();
    std::fs::create_dir(&drop_in).unwrap();
    std::fs::write(drop_in.join("10-a.conf"), format!("{HEAD}maxPods: 20\nport: 2000\n")).unwrap();
    std::fs::write(drop_in.join("20-b.conf"), format!("{HEAD}maxPods: 30\nclusterDNS: null\n")).unwrap();
    std::fs::write(drop_in.join("README"), "not read").unwrap();
    let line = format!(
        "--config={} --config-dir={} --port=3000 --register-with-taints=a=b:NoSchedule",
        file.display(),
        drop_in.display()
    );
    let config = loaded(&line).unwrap();
    assert_eq!((config.max_pods, config.port, config.cluster_dns.len()), (30, 3000, 0));
    assert_eq!(config.static_pod_path, dir.path().join("manifests").display().to_string());
    assert_eq!(config.register_with_taints[0].effect, "NoSchedule");
    let kept = loaded("--reserved-memory=0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=2Gi").unwrap().reserved_memory;
    let amount = |index: usize, kind: &str| kept[index].limits[kind].to_string();
    assert_eq!((kept.len(), kept[1].numa_node, amount(0, "hugepages-2Mi")), (2, 1, "4Mi".to_owned()));
    assert!(loaded("--reserved-memory=0=1Gi").unwrap_err().contains("the format is incorrect"));
    assert_eq!(config.authentication.anonymous.enabled, Some(false), "a file brings its own defaults");
    assert_eq!(config.read_only_port, 0);
}

#[test]
fn mistakes_and_missing_features_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    let cases = [
        ("nope: 1\n", "unknown field \"nope\""),
        ("port: 70000\n", "invalid configuration: port (--port) 70000 must be between 1 and 65535, inclusive"),
        ("authorization: {mode: RBAC}\n", "unknown authorization mode RBAC"),
        ("reservedSystemCPUs: 0-\n", "unable to parse reservedSystemCPUs (--reserved-cpus) \"0-\""),
        ("evictionHard: {disk: 1Gi}\n", "unsupported eviction signal disk"),
        ("kubeReserved: {gpu: \"1\"}\n", "cannot reserve \"gpu\" resource"),
        (
            "shutdownGracePeriod: 5s\nshutdownGracePeriodCriticalPods: 6s\n",
            "shutdownGracePeriod 5s must be >= shutdownGracePeriodCriticalPods 6s",
        ),
        ("shutdownGracePeriod: 10ms\n", "shutdownGracePeriod 10ms must be either zero or otherwise >= 1 sec"),
        (
            "shutdownGracePeriod: 5s\nshutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 2}]\n",
            "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time",
        ),
        (
            "enableSystemLogHandler: false\nenableSystemLogQuery: true\n",
            "invalid configuration: enableSystemLogHandler is required for enableSystemLogQuery",
        ),
        (
            "tracing: {samplingRatePerMillion: -1}\n",
            "invalid configuration: tracing.samplingRatePerMillion: Invalid value: -1: sampling rate must be positive",
        ),
        ("enforceNodeAllocatable: [none, pods]\n", "may not contain additional enforcements"),
    ];
    for (text, expected) in cases {
        std::fs::write(&file, format!("{HEAD}{text}")).unwrap();
        let error = loaded(&format!("--config={}", file.display())).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
    std::fs::write(&file, "kind: Other\napiVersion: v1\n").unwrap();
    assert!(loaded(&format!("--config={}", file.display())).unwrap_err().contains("unknown apiVersion/kind"));
    assert!(loaded("--cloud-provider=aws").unwrap_err().contains("--cloud-provider"));
    assert!(loaded("--lock-file=/x").unwrap_err().contains("--lock-file is not supported"));
}

#[test]
fn the_plan_checks_what_is_no_field() {
    let planned = |line: &str| {
        let options = options(line);
        plan(&options, load(&options).unwrap(), "Host-1 ").map_err(|error| error.to_string())
    };
    let own = planned("--node-labels=disk=ssd,node.kubernetes.io/role=x --node-ip=10.0.0.1,fd00::1").unwrap();
    assert_eq!((own.node.name.as_str(), own.node.node_ips.len()), ("host-1", 2));
    assert_eq!(planned("--hostname-override=N1").unwrap().node.name, "n1");
    assert!(planned("--node-labels=kubernetes.io/role=x").unwrap_err().contains("[kubernetes.io/role]"));
    assert!(planned("--node-ip=10.0.0.1,10.0.0.2").unwrap_err().contains("dual-stack pair"));
}

#[test]
fn the_file_sets_the_log_and_gates() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    std::fs::write(
        &file,
        format!("{HEAD}logging: {{verbosity: 4, format: json}}\nfeatureGates: {{ExtendWebSocketsToKubelet: false}}\n"),
    )
    .unwrap();
    let mut options = options(&format!("--config={} --logging-format=text", file.display()));
    prepare(&mut options).unwrap();
    assert_eq!((options.int("v"), options.string("logging-format")), (4, "text"));
    assert_eq!(options.map("feature-gates")["ExtendWebSocketsToKubelet"], "false");
}

#[test]
fn gates_take_effect() {
    let planned_with = |gates: &Gates| {
        let options = options("");
        plan(&options, load(&options).unwrap(), "host").unwrap().with_gates(gates)
    };
    let planned = |off: &[Feature]| {
        planned_with(&off.iter().fold(Gates::default(), |gates, feature| gates.with(*feature, false)))
    };
    let all = planned(&[]);
    let declared = [
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits",
    ];
    assert_eq!(all.node.declared_features.own, declared);
    assert!(!all.node.declared_features.host_network_users);
    assert!(all.pods.prevent_static_pod_api_references);
    assert_eq!(all.pods.declared_features.as_ref(), Some(&all.node.declared_features));
    let some = planned(&[gates::EXTEND_WEBSOCKETS, gates::PREVENT_STATIC_POD_REFERENCES]);
    assert_eq!((some.node.declared_features.own.len(), some.pods.prevent_static_pod_api_references), (3, false));
    assert!(!all.pods.stop_signals && !all.pods.image_volume_digests);
    let on = |gate: Feature| planned_with(&Gates::default().with(gate, true));
    assert!(on(gates::HOST_NETWORK_USERS).pods.declared_features.is_some_and(|all| all.host_network_users));
    let resizes = |gate: Feature| on(gate).pods.resizes;
    assert_eq!(all.pods.resizes, ExclusiveResizes::default());
    assert_eq!(resizes(gates::RESIZE_EXCLUSIVE_CPUS), ExclusiveResizes { cpus: true, memory: false });
    assert_eq!(resizes(gates::RESIZE_EXCLUSIVE_MEMORY), ExclusiveResizes { cpus: false, memory: true });
    assert!(on(gates::STOP_SIGNALS).pods.stop_signals && on(gates::IMAGE_VOLUME_DIGESTS).pods.image_volume_digests);
    assert!(!all.in_user_namespace && on(gates::IN_USER_NAMESPACE).in_user_namespace);
    let others = |plan: &Plan| [plan.pods.keeps_readiness, plan.pods.images_by_handler];
    assert_eq!((others(&all), others(&on(gates::IMAGES_BY_HANDLER))), ([true, false], [true, true]));
    assert_eq!(others(&on(gates::STATUS_CHANGES_ON_RESTART)), [false, false]);
    assert!(all.pods.on_demand_relists && !planned(&[gates::ON_DEMAND_RELISTS]).pods.on_demand_relists);
    let flags = |plan: &Plan| [plan.pods.sandbox_condition, plan.pods.evented_pleg];
    assert_eq!((flags(&all), flags(&on(gates::EVENTED_PLEG))), ([true, false], [true, true]));
    assert_eq!(flags(&planned(&[gates::SANDBOX_CONDITION])), [false, false]);
    let whole = |plan: &Plan| [plan.pods.pod_level_resources, plan.pods.pod_level_resizes];
    assert_eq!((whole(&all), whole(&planned(&[gates::POD_LEVEL_RESOURCES]))), ([true, true], [false, true]));
    assert_eq!(whole(&planned(&[gates::POD_LEVEL_RESIZE])), [true, false]);
    assert!(!all.pods.node_allocatable_claims && on(gates::NODE_ALLOCATABLE).pods.node_allocatable_claims);
    assert_eq!((all.throttling_factor, on(gates::MEMORY_QOS).throttling_factor), (None, Some(0.9)));
    assert_eq!(all.pods.ignored, []);
    assert_eq!(
        planned(&[gates::ENV_FILES, gates::HOSTNAME_OVERRIDE]).pods.ignored,
        [gates::ENV_FILES, gates::HOSTNAME_OVERRIDE]
    );
    let compared = [all.pods.comparing, on(gates::COMPARING_TOLERATIONS).pods.comparing];
    assert_eq!(compared, [Comparing::Texts, Comparing::Numbers]);
    assert!(!all.node.gives_up_where_forbidden && !all.dns_only_certificates);
    assert!(on(gates::REGISTRATION_GET_ON_EXISTS_ONLY).node.gives_up_where_forbidden);
    assert!(on(gates::DNS_ONLY_CERTIFICATES).dns_only_certificates);
    let back_off = |plan: &Plan| [plan.pods.crash_loop_initial, plan.pods.crash_loop_max].map(|delay| delay.as_secs());
    assert_eq!((back_off(&all), back_off(&on(gates::SHORTER_CRASH_BACK_OFF))), ([10, 300], [1, 300]));
    let shorter = Gates::default().with(gates::SHORTER_CRASH_BACK_OFF, true).with(gates::CRASH_BACK_OFF_MAX, false);
    assert_eq!(back_off(&planned_with(&shorter)), [1, 60]);
    assert_eq!(back_off(&planned(&[gates::CRASH_BACK_OFF_MAX])), [10, 300]);
    assert!(all.pods.resource_health && !planned(&[gates::RESOURCE_HEALTH]).pods.resource_health);
    assert!(all.pods.pull_verification.is_some());
    assert_eq!(planned(&[gates::ENSURE_PULLED]).pods.pull_verification, None);
    let none = planned(&[gates::DECLARED_FEATURES]);
    assert_eq!((none.node.declared_features.own.len(), none.pods.declared_features), (0, None));
}

#[test]
fn images_that_need_no_credentials_are_whole_names_or_prefixes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    let load = |policy: &str, list: &str| {
        let text = format!(
            "{HEAD}imagePullCredentialsVerificationPolicy: {policy}\npreloadedImagesVerificationAllowlist: [{list}]\n"
        );
        std::fs::write(&file, text).unwrap();
        loaded(&format!("--config={}", file.display())).map(drop)
    };
    let listed = "NeverVerifyAllowlistedImages";
    for (policy, list, expected) in [
        (listed, "reg.io/team/app, reg.io/*, 'localhost:5000/a/*', docker.io/library/alpine", ""),
        ("AlwaysVerify", "", ""),
        ("Sometimes", "", "unknown imagePullCredentialsVerificationPolicy: \"Sometimes\""),
        ("AlwaysVerify", "reg.io/app", "can't set preloadedImagesVerificationAllowlist"),
        (listed, "''", "the supplied pattern is too short"),
        (listed, "' reg.io/app'", "leading/trailing spaces are not allowed"),
        (listed, "'*'", "only patterns ending with '/*' are allowed"),
        (listed, "'reg.io/*/app'", "only patterns ending with '/*' are allowed"),
        (listed, "'/*'", "at least registry hostname is required"),
        (listed, "reg.io/APP", "failed to parse as an image name"),
        (listed, "'reg.io/app:1'", "neither tag nor digest is accepted"),
        (listed, "alpine", "neither tag nor digest is accepted"),
    ] {
        let error = load(policy, list).err().unwrap_or_default();
        assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{list}: {error}");
    }
}

#[test]
fn pods_may_set_what_is_their_own() {
    let set = |patterns: &str| loaded(&format!("--allowed-unsafe-sysctls={patterns}")).map(drop);
    assert_eq!(set("net.core.*,kernel.msgmax"), Ok(()));
    let error = set("net.core.*,vm.swappiness").unwrap_err();
    assert!(error.contains("the sysctls \"vm.swappiness\" are not known to be namespaced"), "{error}");
}

#[test]
fn the_flags_of_credential_providers_come_together() {
    let plan = |line: &str| plan(&options(line), loaded(line).unwrap(), "host").map_err(|error| error.to_string());
    assert_eq!(plan("").unwrap().credential_providers, None);
    let (config, programs) = ("--image-credential-provider-config=/c", "--image-credential-provider-bin-dir=/b");
    let both = plan(&format!("{config} {programs}")).unwrap().credential_providers;
    assert_eq!(both, Some(("/c".into(), "/b".into())));
    for one in [config, programs] {
        assert!(plan(one).unwrap_err().contains("must both be set"), "{one}");
    }
}

#[test]
fn each_gate_can_be_switched_on() {
    assert_eq!((super::gates::KNOWN.out_of_reach(), super::gates::KNOWN.untold()), (vec![], vec![]));
}

#[test]
fn no_gate_has_one_side_only() {
    assert_eq!(super::gates::KNOWN.one_sided(), Vec::<&str>::new());
}

#[test]
fn lower_classes_leave_what_they_are_told_to_where_the_gate_says_so() {
    let line = "--qos-reserved=memory=40%";
    let plan = plan(&options(line), loaded(line).unwrap(), "host").unwrap();
    let on = Gates::default().with(gates::QOS_RESERVED, true);
    assert_eq!(plan.clone().with_gates(&on).reserved_percent, Some(40));
    assert_eq!(plan.with_gates(&Gates::default()).reserved_percent, None);
}

#[test]
fn memory_is_kept_for_pods_where_the_gate_says_so() {
    let mut plan = plan(&options(""), loaded("").unwrap(), "host").unwrap();
    let on = Gates::default().with(gates::MEMORY_QOS, true);
    let kept = |plan: &Plan, set: &Gates| plan.clone().with_gates(set).memory_reservation;
    assert_eq!(kept(&plan, &on), MemoryReservation::None);
    plan.config.memory_reservation_policy = "TieredReservation".into();
    assert_eq!(kept(&plan, &on), MemoryReservation::Tiered);
    assert_eq!(kept(&plan, &Gates::default()), MemoryReservation::None);
}
