//! AppArmor profiles need a kernel that knows them.

use api_types::core_v1::AppArmorProfile;

use super::{Attempt, Reason, Refusal};
use crate::pod::containers::members;

/// Pods that run already are not asked again.
pub(super) fn check(attempt: &Attempt<'_>) -> Result<(), Refusal> {
    let pod = attempt.pod;
    let of_pod = pod.spec.security_context.iter().filter_map(|context| context.app_armor_profile.as_ref());
    let contexts = members(pod).filter_map(|member| member.container.security_context.clone());
    let of_containers = contexts.filter_map(|context| context.app_armor_profile.clone());
    let mut profiles: Vec<AppArmorProfile> = of_pod.cloned().chain(of_containers).collect();
    profiles.retain(|profile| profile.type_ != "Unconfined");
    let pending = matches!(pod.status.phase.as_str(), "" | "Pending");
    if profiles.is_empty() || !pending {
        return Ok(());
    }
    let failed = |why: &str| Err(Refusal::new(Reason::AppArmor, format!("Cannot enforce AppArmor: {why}")));
    if !attempt.situation.enforces_app_armor {
        return failed("AppArmor is not enabled on the host");
    }
    let nameless = |profile: &AppArmorProfile| {
        profile.type_ == "Localhost" && profile.localhost_profile.as_deref().is_none_or(|name| name.trim().is_empty())
    };
    if profiles.iter().any(nameless) { failed("invalid empty AppArmor profile name: \"\"") } else { Ok(()) }
}
