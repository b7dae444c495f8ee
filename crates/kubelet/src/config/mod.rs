//! The kubelet's configuration: flags, the file, drop-ins, and the checks on all of it together.

#[cfg(test)]
mod decisions;
mod fields;
pub(crate) mod flags;
mod load;
mod refuse;
mod settings;
mod validate;

use std::time::Duration;

use base::{Gate, Stage};
use component_base::Component;
use component_base::flags::{self as base_flags, Options};

pub(crate) use load::load;
pub(crate) use settings::{Plan, plan};
pub(crate) use validate::content_type;

const fn gate(name: &'static str, stage: Stage, default: bool) -> Gate {
    Gate { name, stage, default, locked: false }
}

/// The gates that change something here; others are known to the upstream kubelet only and warn.
const GATES: &[Gate] = &[
    gate("ExtendWebSocketsToKubelet", Stage::Beta, true),
    gate("InPlacePodVerticalScalingInitContainers", Stage::Beta, true),
    gate("NodeDeclaredFeatures", Stage::Beta, true),
    gate("PreventStaticPodAPIReferences", Stage::Beta, true),
    gate("RotateKubeletServerCertificate", Stage::Beta, true),
];

/// The kubelet's binary.
pub const COMPONENT: Component = Component {
    name: "kubelet",
    about: "The kubelet is the node agent of a cluster: it registers its node and sees to it that the containers of the \
            pods that are bound to it run and are healthy.",
    flags: &[base_flags::GLOBAL, base_flags::LOGS, flags::OWN, flags::FIELDS, flags::OLD],
    gates: GATES,
    prepare,
    drain: Duration::from_secs(5),
};

/// Reads the file once for what concerns the log and the gates.
fn prepare(options: &mut Options) -> Result<(), base_flags::Invalid> {
    if options.bool("help") {
        return Ok(());
    }
    let config = load(options)?;
    let pairs = config.feature_gates.iter().map(|(name, on)| (name.clone(), on.to_string())).collect();
    let log = &config.logging;
    let verbosity = log.verbosity.to_string();
    let modules: Vec<String> =
        log.vmodule.iter().map(|item| format!("{}={}", item.file_pattern, item.verbosity)).collect();
    let (text, json) = (&log.options.text, &log.options.json);
    let settings = [
        ("logging-format", log.format.clone()),
        ("v", verbosity),
        ("vmodule", modules.join(",")),
        ("log-flush-frequency", load::duration_text(&log.flush_frequency)),
        ("log-text-split-stream", text.split_stream.to_string()),
        ("log-text-info-buffer-size", text.info_buffer_size.clone()),
        ("log-json-split-stream", json.split_stream.to_string()),
        ("log-json-info-buffer-size", json.info_buffer_size.clone()),
    ];
    let set = |options: &mut Options| -> Result<(), String> {
        options.merge_from_file("feature-gates", pairs)?;
        settings.iter().try_for_each(|(flag, value)| options.set_from_file(flag, value))
    };
    set(options).map_err(base_flags::Invalid::one)
}

#[cfg(test)]
mod tests;
