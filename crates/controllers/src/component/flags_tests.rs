//! Every flag is obeyed or refused: given with another value than its default, it changes what the process and its
//! controllers are told, or is a mistake.

use base::Rng;
use component_base::Gates;
use component_base::flags::{FlagSet, GLOBAL, LOGS, parse};

use super::flags::{FLAGS, WITHOUT_EFFECT};
use super::options::Config;

/// What is read elsewhere: by whoever starts any component.
const OF_ALL_COMPONENTS: &[FlagSet] = &[GLOBAL, LOGS];
/// Obeyed by the set of gates, before the configuration is made.
const GATES: [&str; 3] = ["emulated-version", "feature-gates", "min-compatibility-version"];
/// Addresses are shared whatever is said, as upstream.
const OF_NO_EFFECT: &[&str] = &["permit-address-sharing"];

const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {cluster: c, \
                          user: u}\nclusters:\n- name: c\n  cluster: {server: 'https://server:6443'}\nusers:\n- name: u\n";

/// All that becomes of a command line.
fn complaint(arguments: &[String]) -> Result<String, String> {
    let options = parse(FLAGS, arguments.iter().cloned()).map_err(|error| error.to_string())?;
    let config = Config::from_options(&options, &Rng::seeded(1), &Gates::default());
    let config = config.map_err(|error| error.to_string())?;
    Ok(format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        config.process,
        config.selection,
        config.settings,
        config.service_accounts,
        config.min_resync,
        config.start_interval,
        config.shutdown_timeout
    ))
}

#[test]
fn every_flag_is_obeyed_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kubeconfig");
    std::fs::write(&path, KUBECONFIG).unwrap();
    let base = vec![format!("--kubeconfig={}", path.display())];
    let usual = complaint(&base);
    assert!(usual.is_ok(), "{usual:?}");
    let mut ignored = Vec::new();
    for flag in FLAGS.iter().flat_map(|set| set.flags) {
        let elsewhere = OF_ALL_COMPONENTS.iter().any(|set| set.flags.iter().any(|other| other.name == flag.name));
        if elsewhere || GATES.contains(&flag.name) {
            continue;
        }
        let mut arguments = base.clone();
        arguments.push(format!("--{}={}", flag.name, flag.other_value()));
        if complaint(&arguments) == usual {
            ignored.push(flag.name);
        }
    }
    let mut expected: Vec<_> =
        WITHOUT_EFFECT.flags.iter().map(|flag| flag.name).chain(OF_NO_EFFECT.iter().copied()).collect();
    // It may be empty or "external", which is the same.
    expected.retain(|name| *name != "cloud-provider");
    ignored.sort_unstable();
    expected.sort_unstable();
    assert_eq!(ignored, expected);
}

#[test]
fn each_gate_can_be_switched_on() {
    assert_eq!((super::COMPONENT.gates.out_of_reach(), super::COMPONENT.gates.untold()), (vec![], vec![]));
}

#[test]
fn no_gate_has_one_side_only() {
    assert_eq!(super::COMPONENT.gates.one_sided(), [""; 0]);
}
