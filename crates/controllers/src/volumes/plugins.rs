//! The plugins of volumes by their upstream names, as events and metrics show them.

use api_types::core_v1::PersistentVolumeSource;

/// The plugin of volumes of CSI drivers.
pub(super) const CSI: &str = "kubernetes.io/csi";
/// Shown where no plugin is responsible.
pub(super) const NOT_AVAILABLE: &str = "N/A";

/// Whether a source is of a plugin.
type IsOf = fn(&PersistentVolumeSource) -> bool;

/// The plugins that upstream's kube-controller-manager has, but FlexVolume's, whose names the machine tells.
const PLUGINS: &[(&str, IsOf)] = &[
    (CSI, |source| source.csi.is_some()),
    ("kubernetes.io/host-path", |source| source.host_path.is_some()),
    ("kubernetes.io/nfs", |source| source.nfs.is_some()),
    ("kubernetes.io/fc", |source| source.fc.is_some()),
    ("kubernetes.io/iscsi", |source| source.iscsi.is_some()),
    ("kubernetes.io/local-volume", |source| source.local.is_some()),
];

/// The plugin of a source.
pub(super) fn plugin_of(source: &PersistentVolumeSource) -> Option<&'static str> {
    PLUGINS.iter().find(|(_, is_of)| is_of(source)).map(|(name, _)| *name)
}

/// Whether a plugin of this name is there at all.
pub(super) fn is_plugin(name: &str) -> bool {
    PLUGINS.iter().any(|(own, _)| *own == name)
}

/// The plugin of a source as metrics show it: that of CSI drivers with the driver.
pub(super) fn shown(source: &PersistentVolumeSource) -> String {
    match &source.csi {
        Some(csi) => format!("{CSI}:{}", csi.driver),
        None => plugin_of(source).unwrap_or(NOT_AVAILABLE).to_owned(),
    }
}

/// A plugin that was in the tree, from before CSI drivers took over, by the source that it has.
const MIGRATED: &[(&str, IsOf)] = &[
    ("kubernetes.io/aws-ebs", |source| source.aws_elastic_block_store.is_some()),
    ("kubernetes.io/gce-pd", |source| source.gce_persistent_disk.is_some()),
    ("kubernetes.io/cinder", |source| source.cinder.is_some()),
    ("kubernetes.io/azure-disk", |source| source.azure_disk.is_some()),
    ("kubernetes.io/azure-file", |source| source.azure_file.is_some()),
    ("kubernetes.io/vsphere-volume", |source| source.vsphere_volume.is_some()),
    ("kubernetes.io/portworx-volume", |source| source.portworx_volume.is_some()),
];

/// The plugin that was in the tree and had this source.
pub(super) fn migrated_plugin_of(source: &PersistentVolumeSource) -> Option<&'static str> {
    MIGRATED.iter().find(|(_, is_of)| is_of(source)).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use component_helpers::volumes::names;

    use super::*;

    #[test]
    fn sources_have_plugins() {
        let source = |text: &str| {
            let mut source = PersistentVolumeSource::default();
            api_machinery::json::decode(text.as_bytes(), &mut source).unwrap();
            source
        };
        for (text, plugin, told, migrated) in [
            (r#"{"csi": {"driver": "d", "volumeHandle": "h"}}"#, Some(CSI), "kubernetes.io/csi:d", None),
            (r#"{"nfs": {}}"#, Some("kubernetes.io/nfs"), "kubernetes.io/nfs", None),
            (r#"{"rbd": {}}"#, None, "N/A", None),
            (r#"{"awsElasticBlockStore": {}}"#, None, "N/A", Some("kubernetes.io/aws-ebs")),
        ] {
            let source = source(text);
            let found = (plugin_of(&source), shown(&source), migrated_plugin_of(&source));
            assert_eq!(found, (plugin, told.to_owned(), migrated), "{text}");
        }
    }

    #[test]
    fn what_was_in_the_tree_has_a_driver() {
        let own: Vec<_> = MIGRATED.iter().map(|(name, _)| *name).collect();
        assert_eq!(own, names::MIGRATED.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
