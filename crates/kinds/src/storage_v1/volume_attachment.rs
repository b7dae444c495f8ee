//! VolumeAttachment of storage.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_machinery::reflect::equal_structs;
use api_types::storage_v1::{VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentStatus, VolumeError};

use crate::core_v1;
use crate::field_rules::IMMUTABLE;
use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::internal_json;
use crate::lifecycle::Lifecycle;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::Cell;
use crate::versions::Former;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<VolumeAttachment>("volumeattachments", "tJx/ezt6UDU=")),
    subresources: &[SubresourceInfo::status("VolumeAttachment")],
    ..ResourceInfo::of::<VolumeAttachment>()
};

/// The rules of the kind.
pub(crate) struct VolumeAttachmentRules;

impl TypedRules for VolumeAttachmentRules {
    type Object = VolumeAttachment;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<VolumeAttachment>] = &[
        Cell::NAME,
        Cell {
            column: Column { name: "Attacher", ..Column::NAME },
            show: |attachment, _| attachment.spec.attacher.clone().into(),
        },
        Cell::text("PV", |attachment, _| {
            attachment.spec.source.persistent_volume_name.clone().unwrap_or_default().into()
        }),
        Cell::text("Node", |attachment, _| attachment.spec.node_name.clone().into()),
        Cell::boolean("Attached", |attachment, _| attachment.status.attached.into()),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] =
        &[Former::same("storage.k8s.io/v1alpha1"), Former::same("storage.k8s.io/v1beta1")];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const STRATEGY: Strategy = Strategy::Status;
    const STATUS_KEEPS_METADATA: bool = true;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create];
    const STATUS_METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &VolumeAttachment) -> ErrorList {
        let (mut errors, path, spec) = (ErrorList::new(), Path::new("spec"), &object.spec);
        errors.extend(names::csi_driver_name(&path.child("attacher"), &spec.attacher));
        validate_source(&path.child("source"), &spec.source, &mut errors);
        errors.push_invalid(&path.child("nodeName"), &spec.node_name, names::dns1123_subdomain(&spec.node_name));
        validate_status(&Path::new("status"), &object.status, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, _: Endpoint, object: &VolumeAttachment, old: &VolumeAttachment) -> ErrorList {
        let mut errors = Self::validate(cx, object);
        if !equal_structs(&object.spec, &old.spec) {
            errors.push(Path::new("spec").invalid(internal_json::bad_value(&object.spec), IMMUTABLE));
        }
        errors
    }
}

const MAX_METADATA_BYTES: usize = 256 * 1024;
const MAX_MESSAGE_BYTES: usize = 1024;

fn validate_source(path: &Path, source: &VolumeAttachmentSource, errors: &mut ErrorList) {
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (&source.inline_volume_spec, &source.persistent_volume_name) {
        (None, None) => errors.push(path.required(ONE)),
        (Some(_), Some(_)) => errors.push(path.forbidden(ONE)),
        (None, Some(name)) if name.is_empty() => {
            errors.push(path.child("persistentVolumeName").required("must specify non empty persistentVolumeName"));
        }
        (None, Some(name)) => {
            errors.push_invalid(&path.child("persistentVolumeName"), name, names::dns1123_subdomain(name));
        }
        (Some(spec), None) => core_v1::inline_volume(&path.child("inlineVolumeSpec"), spec, errors),
    }
}

fn validate_status(path: &Path, status: &VolumeAttachmentStatus, errors: &mut ErrorList) {
    let bytes: usize = status.attachment_metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MAX_METADATA_BYTES {
        errors.push(path.child("attachmentMetadata").too_long(MAX_METADATA_BYTES));
    }
    validate_error(&path.child("attachError"), status.attach_error.as_ref(), errors);
    validate_error(&path.child("detachError"), status.detach_error.as_ref(), errors);
}

fn validate_error(path: &Path, error: Option<&VolumeError>, errors: &mut ErrorList) {
    let Some(error) = error else { return };
    if error.message.len() > MAX_MESSAGE_BYTES {
        // Upstream tells the limit of another field.
        errors.push(path.child("message").too_long(MAX_METADATA_BYTES));
    }
    if let Some(code) = error.error_code.filter(|code| *code < 0) {
        errors.push(path.child("errorCode").invalid(code, names::range_detail(0, i32::MAX)));
    }
}
