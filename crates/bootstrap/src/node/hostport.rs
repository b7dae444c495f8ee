//! What the CNI portmap plugin leaves in the machine's own network: the rules of pods that were never properly removed,
//! and its top chains, which it makes and never takes away. The chains go once no pod of any runtime uses them.

use std::sync::Arc;

use sys::exec::Exec;
use sys::packet_filter::{Family, Iptables};

use super::NodeError;

/// The plugin's top chains in the nat table, and where each is called from.
const CHAINS: &[(&str, &[&str])] = &[
    ("CNI-HOSTPORT-DNAT", &["PREROUTING", "OUTPUT"]),
    ("CNI-HOSTPORT-MASQ", &["POSTROUTING"]),
    ("CNI-HOSTPORT-SETMARK", &[]),
];
/// The chain with a rule per pod that has host ports, and how the chains they lead to are called.
const PER_POD: &str = "CNI-HOSTPORT-DNAT";
const POD_CHAIN: &str = "CNI-DN-";

/// Removes the rules of a pod network, and the top chains of both families if no pod is left in them.
pub(super) async fn sweep(exec: &Arc<dyn Exec>, network: &str) -> Result<(), NodeError> {
    for family in [Family::V4, Family::V6] {
        let iptables = Iptables::new(Arc::clone(exec), None, family);
        // A machine without the program or the table has no such chains.
        let Ok(rules) = iptables.save("nat").await else { continue };
        let commands = removal(&rules, network);
        if !commands.is_empty() {
            iptables.restore(&format!("*nat\n{}COMMIT\n", commands.concat())).await?;
        }
    }
    Ok(())
}

/// The restore lines that do it: calls first, then the chains' rules, then the chains.
fn removal(rules: &str, network: &str) -> Vec<String> {
    // The plugin writes the network's name into the rule's comment.
    let mark = format!("dnat name: \\\"{network}\\\"");
    let per_pod = || rules.lines().filter(|line| appends_to(line) == Some(PER_POD));
    let (ours, others): (Vec<_>, Vec<_>) = per_pod().partition(|line| line.contains(&mark));
    let pod_chains = ours.iter().filter_map(|line| line.split(' ').find(|word| word.starts_with(POD_CHAIN)));
    let mut calls: Vec<_> = ours.clone();
    let mut chains: Vec<_> = pod_chains.collect();
    if others.is_empty() {
        let present: Vec<_> = CHAINS
            .iter()
            .filter(|(chain, _)| rules.lines().any(|line| line.starts_with(&format!(":{chain} "))))
            .collect();
        calls.extend(rules.lines().filter(|line| present.iter().any(|(chain, callers)| is_call(line, chain, callers))));
        chains.extend(present.iter().map(|(chain, _)| *chain));
    }
    let calls = calls.iter().map(|line| format!("{}\n", line.replacen("-A ", "-D ", 1)));
    let flush = chains.iter().map(|chain| format!("-F {chain}\n"));
    let delete = chains.iter().map(|chain| format!("-X {chain}\n"));
    calls.chain(flush).chain(delete).collect()
}

/// The chain that a saved rule is in.
fn appends_to(line: &str) -> Option<&str> {
    line.strip_prefix("-A ")?.split(' ').next()
}

fn is_call(line: &str, chain: &str, callers: &[&str]) -> bool {
    appends_to(line).is_some_and(|from| callers.contains(&from)) && line.split(' ').any(|word| word == chain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "*nat\n:PREROUTING ACCEPT [0:0]\n:CNI-HOSTPORT-DNAT - [0:0]\n:CNI-HOSTPORT-SETMARK - [0:0]\n\
        -A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT\n-A PREROUTING -j KUBE-SERVICES\n\
        -A CNI-HOSTPORT-SETMARK -m comment --comment \"CNI portfwd masquerade mark\" -j MARK --set-xmark 0x2000/0x2000\n";
    const TOP: [&str; 5] = [
        "-D PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT\n",
        "-F CNI-HOSTPORT-DNAT\n",
        "-F CNI-HOSTPORT-SETMARK\n",
        "-X CNI-HOSTPORT-DNAT\n",
        "-X CNI-HOSTPORT-SETMARK\n",
    ];

    fn pod(network: &str, chain: &str) -> String {
        let comment = format!(r#""dnat name: \"{network}\" id: \"5c0f\"""#);
        format!("-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment {comment} -m multiport --dports 80 -j {chain}\n")
    }

    #[test]
    fn empty_chains_go() {
        assert_eq!(removal(EMPTY, "mine"), TOP);
        assert!(removal("*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n", "mine").is_empty());
    }

    #[test]
    fn rules_of_others_stay_and_keep_the_chains() {
        let rules = format!("{EMPTY}{}{}", pod("mine", "CNI-DN-a1"), pod("minefield", "CNI-DN-b2"));
        let call = pod("mine", "CNI-DN-a1").replacen("-A", "-D", 1);
        assert_eq!(removal(&rules, "mine"), [call.as_str(), "-F CNI-DN-a1\n", "-X CNI-DN-a1\n"]);
        assert!(removal(&rules, "absent").is_empty());
    }

    #[test]
    fn the_last_pod_takes_the_chains_along() {
        let lines = removal(&format!("{EMPTY}{}", pod("mine", "CNI-DN-a1")), "mine");
        assert_eq!(lines.len(), TOP.len() + 3);
        assert_eq!(lines[1], TOP[0]);
    }
}
