//! Users and profiles that mean more than they say. `docs/vulnerabilities.md` says which reports these are.

use api_types::core_v1::PodSecurityContext;

use super::*;

fn defaults() -> Defaults<'static> {
    Defaults { seccomp_default: false, seccomp_root: Path::new("/root/seccomp"), volume_groups: Vec::new() }
}

fn pod(context: PodSecurityContext) -> Pod {
    let mut pod = Pod::default();
    pod.spec.security_context = Some(context);
    pod
}

/// Kernel user ids have 32 bits: one more wraps around to root, and -1 means "leave as it is".
#[test]
fn an_image_does_not_become_root_by_a_number() {
    let pod = pod(PodSecurityContext { run_as_non_root: Some(true), ..PodSecurityContext::default() });
    for (uid, name, allowed) in [
        (Some(1000), "", true),
        (Some(0), "", false),
        (Some(-1), "", false),
        (Some(1 << 32), "", false),
        (Some(i64::from(u32::MAX)), "", false),
        (Some(i64::MAX), "", false),
        (None, "00", false),
        (None, "0x0", false),
        (None, "root", false),
        (None, "nobody-knows", false),
        (None, "", false),
    ] {
        let image = Ready { reference: String::new(), uid, username: name.into() };
        // The same every time: nothing is remembered from one start to the next.
        for _ in 0..3 {
            let outcome = of_container(&pod, &Container::default(), &image, None, &defaults());
            assert_eq!(outcome.is_ok(), allowed, "{uid:?} {name}");
            assert_eq!(outcome.ok().and_then(|made| made.run_as_user), uid.filter(|_| allowed).map(int));
        }
    }
}

#[test]
fn a_profile_without_a_name_is_refused_and_none_leads_out() {
    let profile = |name: Option<&str>| {
        let profile = SeccompProfile { type_: "Localhost".into(), localhost_profile: name.map(Into::into) };
        pod(PodSecurityContext { seccomp_profile: Some(profile), ..PodSecurityContext::default() })
    };
    for name in [None, Some(""), Some("/etc/passwd"), Some("../x"), Some("a/../../x"), Some("..")] {
        let made = of_container(&profile(name), &Container::default(), &Ready::default(), None, &defaults());
        assert!(made.is_err(), "{name:?}: {:?}", made.map(|made| made.seccomp));
    }
    let good =
        of_container(&profile(Some("a/b.json")), &Container::default(), &Ready::default(), None, &defaults()).unwrap();
    assert_eq!(good.seccomp.unwrap().localhost_ref, "/root/seccomp/a/b.json");
}
