//! The names that upstream's internal types give their fields, and their order where it is not that of the wire.

use std::sync::LazyLock;

use api_machinery::reflect::{Field, Presence, Reflect, View, is_zero};
use api_types::core_v1::PodSecurityContext;

/// Initialisms and words that upstream's names write in their own way where the wire begins with them.
const CAPITALS: [(&str, &str); 31] = [
    ("seLinux", "SELinux"),
    ("uid", "UID"),
    ("ip", "IP"),
    ("tcpSocket", "TCPSocket"),
    ("httpGet", "HTTPGet"),
    ("httpHeaders", "HTTPHeaders"),
    ("grpc", "GRPC"),
    ("dns", "DNS"),
    ("os", "OS"),
    ("nfs", "NFS"),
    ("gce", "GCE"),
    ("aws", "AWS"),
    ("api", "API"),
    ("json", "JSON"),
    ("id", "ID"),
    ("url", "URL"),
    ("ca", "CA"),
    ("tty", "TTY"),
    ("rbd", "RBD"),
    ("fs", "FS"),
    ("fc", "FC"),
    ("csi", "CSI"),
    ("cel", "CEL"),
    ("iscsi", "ISCSI"),
    ("iqn", "IQN"),
    ("gmsa", "GMSA"),
    ("cephfs", "CephFS"),
    ("storageos", "StorageOS"),
    ("wwids", "WWIDs"),
    ("pdName", "PDName"),
    ("cidrs", "CIDRs"),
];
/// The fields of a pod's spec, by their names on the wire.
const POD_SPEC: [&str; 36] = [
    "volumes",
    "initContainers",
    "containers",
    "ephemeralContainers",
    "restartPolicy",
    "terminationGracePeriodSeconds",
    "activeDeadlineSeconds",
    "dnsPolicy",
    "nodeSelector",
    "serviceAccountName",
    "automountServiceAccountToken",
    "nodeName",
    "securityContext",
    "imagePullSecrets",
    "hostname",
    "subdomain",
    "setHostnameAsFQDN",
    "affinity",
    "schedulerName",
    "tolerations",
    "hostAliases",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
    "dnsConfig",
    "readinessGates",
    "runtimeClassName",
    "overhead",
    "enableServiceLinks",
    "topologySpreadConstraints",
    "os",
    "schedulingGates",
    "resourceClaims",
    "resources",
    "hostnameOverride",
    "schedulingGroup",
];
/// Those of them that stand within the security context.
const HOST_FLAGS: [&str; 5] = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];
/// The other fields of the security context.
const POD_CONTEXT: [&str; 13] = [
    "seLinuxOptions",
    "windowsOptions",
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "seccompProfile",
    "appArmorProfile",
    "seLinuxChangePolicy",
];
/// The sources of a persistent volume, by their names on the wire.
const PERSISTENT_VOLUME_SOURCE: [&str; 22] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "hostPath",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "flexVolume",
    "cinder",
    "cephfs",
    "fc",
    "flocker",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];
/// The sources of a volume, by their names on the wire.
const VOLUME_SOURCE: [&str; 30] = [
    "hostPath",
    "emptyDir",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "persistentVolumeClaim",
    "rbd",
    "quobyte",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "downwardAPI",
    "fc",
    "azureFile",
    "configMap",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
    "projected",
    "portworxVolume",
    "scaleIO",
    "storageos",
    "csi",
    "ephemeral",
    "image",
];
/// Packages whose types are the same inside and on the wire, and print as on the wire.
const SHARED: &str = "io.k8s.apimachinery.";
static NO_CONTEXT: LazyLock<PodSecurityContext> = LazyLock::new(PodSecurityContext::default);

/// A member of a struct as it is printed: a field, or a group of fields that is no struct on the wire.
pub(crate) enum Member<'a> {
    /// A field.
    Field(&'a dyn Field),
    /// Fields under one name.
    Group(Vec<(String, Member<'a>)>),
}

/// The members of a struct, each with its internal name; those of an inline struct stand among them.
pub(crate) fn members(value: &dyn Reflect) -> Vec<(String, Member<'_>)> {
    if value.struct_type().name == "PodSpec" {
        return POD_SPEC.iter().filter_map(|name| Some((go_name(name), pod_member(value, name)?))).collect();
    }
    if value.struct_type().package.starts_with(SHARED) {
        return wire_members(value);
    }
    let mut all = Vec::new();
    collect(value, &mut all);
    all
}

/// The members as the wire has them, without those that it leaves out.
fn wire_members(value: &dyn Reflect) -> Vec<(String, Member<'_>)> {
    let fields = value.struct_type().fields.iter().enumerate().filter(|(index, field)| match field.presence {
        Presence::Always => true,
        Presence::OmitEmpty => !value.field(*index).is_unset(),
        Presence::OmitZero => !is_zero(value.field(*index)),
    });
    fields.map(|(index, field)| (field.name.to_owned(), Member::Field(value.field(index)))).collect()
}

fn collect<'a>(value: &'a dyn Reflect, into: &mut Vec<(String, Member<'a>)>) {
    let order: &[&str] = match value.struct_type().name {
        "PersistentVolumeSource" => &PERSISTENT_VOLUME_SOURCE,
        "VolumeSource" => &VOLUME_SOURCE,
        _ => &[],
    };
    if !order.is_empty() {
        return into.extend(order.iter().filter_map(|name| Some((go_name(name), named(value, name)?))));
    }
    for (index, field) in value.struct_type().fields.iter().enumerate() {
        match value.field(index).view() {
            View::Struct(inner) if field.inline => collect(inner, into),
            // Metadata is embedded in upstream's structs.
            View::Struct(inner) if inner.struct_type().name == "ObjectMeta" => into.extend(wire_members(inner)),
            _ => into.push((go_name(field.name), Member::Field(value.field(index)))),
        }
    }
}

fn pod_member<'a>(spec: &'a dyn Reflect, name: &str) -> Option<Member<'a>> {
    if name != "securityContext" {
        return named(spec, name);
    }
    let context: &dyn Reflect = match spec.field(spec.struct_type().index_of(name)?).view() {
        View::Optional(Some(context)) => match context.view() {
            View::Struct(context) => context,
            _ => &*NO_CONTEXT,
        },
        _ => &*NO_CONTEXT,
    };
    let flags = HOST_FLAGS.iter().filter_map(|name| Some((go_name(name), named(spec, name)?)));
    let others = POD_CONTEXT.iter().filter_map(|name| Some((go_name(name), named(context, name)?)));
    Some(Member::Group(flags.chain(others).collect()))
}

fn named<'a>(value: &'a dyn Reflect, name: &str) -> Option<Member<'a>> {
    value.struct_type().index_of(name).map(|index| Member::Field(value.field(index)))
}

/// The internal name of a field by that of the wire.
fn go_name(name: &str) -> String {
    if let Some(words) = name.strip_prefix("x-kubernetes-") {
        return std::iter::once("X".to_owned()).chain(words.split('-').map(go_name)).collect();
    }
    let name = name.trim_start_matches('$');
    for (from, to) in CAPITALS {
        let Some(rest) = name.strip_prefix(from) else { continue };
        if rest.is_empty() || rest.starts_with(|next: char| next.is_ascii_uppercase()) {
            return format!("{to}{rest}");
        }
    }
    let mut letters = name.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (wire, internal) in [
            ("name", "Name"),
            ("fsGroup", "FSGroup"),
            ("apiVersion", "APIVersion"),
            ("identity", "Identity"),
            ("$ref", "Ref"),
            ("x-kubernetes-int-or-string", "XIntOrString"),
            ("hostIP", "HostIP"),
        ] {
            assert_eq!(go_name(wire), internal);
        }
    }

    /// Nothing of a pod is left out but the account's older name.
    #[test]
    fn the_order_has_every_field_of_a_pod() {
        let named = |name: &str| POD_SPEC.contains(&name) || HOST_FLAGS.contains(&name);
        let fields = api_types::core_v1::PodSpec::STRUCT_TYPE.fields.iter().map(|field| field.name);
        assert_eq!(fields.filter(|name| !named(name)).collect::<Vec<_>>(), ["serviceAccount"]);
        let fields = PodSecurityContext::STRUCT_TYPE.fields.iter().map(|field| field.name);
        assert_eq!(fields.filter(|name| !POD_CONTEXT.contains(name)).count(), 0);
        let fields = api_types::core_v1::PersistentVolumeSource::STRUCT_TYPE.fields.iter().map(|field| field.name);
        assert_eq!(fields.filter(|name| !PERSISTENT_VOLUME_SOURCE.contains(name)).count(), 0);
        let fields = api_types::core_v1::VolumeSource::STRUCT_TYPE.fields.iter().map(|field| field.name);
        assert_eq!(fields.filter(|name| !VOLUME_SOURCE.contains(name)).count(), 0);
    }

    /// A volume's sources stand in another order inside than on the wire.
    #[test]
    fn sources_of_volumes_have_an_order_of_their_own() {
        let names: Vec<String> =
            members(&api_types::core_v1::Volume::default()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names[..3], ["Name", "HostPath", "EmptyDir"]);
        let at = |name: &str| names.iter().position(|own| own == name);
        assert!(at("RBD") < at("Quobyte") && at("Quobyte") < at("FlexVolume"), "{names:?}");
    }
}
