//! What the data of a ControllerRevision says. The bytes are upstream's, of whichever release wrote them.

use api_machinery::json::DecodeError;
use api_machinery::value::from_value;
use api_types::apps_v1::ControllerRevision;
use api_types::core_v1::PodTemplateSpec;

/// The pod template that a revision brings back.
///
/// # Errors
/// When the data is no template.
pub(crate) fn template_of(revision: &ControllerRevision) -> Result<PodTemplateSpec, DecodeError> {
    let mut value = revision.data.value();
    let mut template = value["spec"]["template"].take();
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    let mut read = PodTemplateSpec::default();
    from_value(&template, &mut read)?;
    Ok(read)
}
