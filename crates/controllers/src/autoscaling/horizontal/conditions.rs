//! What an autoscaler says of itself.

use api_machinery::time::Time;
use api_types::autoscaling_v2::HorizontalPodAutoscalerCondition;
use component_helpers::conditions;

pub(super) const ABLE: &str = "AbleToScale";
pub(super) const ACTIVE: &str = "ScalingActive";
pub(super) const LIMITED: &str = "ScalingLimited";
pub(super) const AT_ZERO: &str = "ScaledToZero";

/// A reason with its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) reason: &'static str,
    pub(super) message: &'static str,
}

pub(super) const fn said(reason: &'static str, message: &'static str) -> Said {
    Said { reason, message }
}

/// The target's scale is known.
pub(super) const FOUND: Said =
    said("SucceededGetScale", "the HPA controller was able to get the target's current scale");

/// The conditions in the making.
#[derive(Debug)]
pub(super) struct Conditions {
    pub(super) all: Vec<HorizontalPodAutoscalerCondition>,
    pub(super) now: Time,
}

impl Conditions {
    pub(super) fn say(&mut self, type_: &str, holds: bool, reason: &str, message: impl Into<String>) {
        let condition = HorizontalPodAutoscalerCondition {
            type_: type_.to_owned(),
            status: if holds { "True" } else { "False" }.to_owned(),
            reason: reason.to_owned(),
            message: message.into(),
            ..HorizontalPodAutoscalerCondition::default()
        };
        conditions::set(&mut self.all, condition, self.now);
    }

    pub(super) fn holds(&self, type_: &str) -> bool {
        conditions::is_true(&self.all, type_)
    }
}
