//! Taking away what a proxy left behind: the rules of the modes there are, and what one left that ran in iptables or ipvs mode.
//!
//! `KUBE-FIREWALL` stays, it belongs to the kubelet as well.

use std::fmt::Write as _;

use sys::exec::Command;
use sys::packet_filter::{Family as IptablesFamily, Iptables};

use crate::backend::{MODES, Machine, Mode};

/// Chains by table; those that end in a dash stand for all that begin so.
const CHAINS: [(&str, &[&str]); 3] = [
    (
        "nat",
        &[
            "KUBE-SERVICES",
            "KUBE-NODEPORTS",
            "KUBE-POSTROUTING",
            "KUBE-MARK-MASQ",
            "KUBE-PROXY-CANARY",
            "KUBE-SVC-",
            "KUBE-SVL-",
            "KUBE-SEP-",
            "KUBE-FW-",
            "KUBE-EXT-",
            "KUBE-NODE-PORT",
            "KUBE-LOAD-BALANCER",
        ],
    ),
    (
        "filter",
        &[
            "KUBE-SERVICES",
            "KUBE-EXTERNAL-SERVICES",
            "KUBE-NODEPORTS",
            "KUBE-FORWARD",
            "KUBE-PROXY-FIREWALL",
            "KUBE-PROXY-CANARY",
            "KUBE-NODE-PORT",
            "KUBE-SOURCE-RANGES-FIREWALL",
            "KUBE-IPVS-FILTER",
            "KUBE-IPVS-OUT-FILTER",
        ],
    ),
    ("mangle", &["KUBE-PROXY-CANARY"]),
];

/// The link that has the addresses of Services in ipvs mode.
const IPVS_LINK: &str = "kube-ipvs0";
/// The ipsets of ipvs mode, without the beginning that tells the family.
const IPSETS: [&str; 17] = [
    "LOOP-BACK",
    "CLUSTER-IP",
    "EXTERNAL-IP",
    "EXTERNAL-IP-LOCAL",
    "LOAD-BALANCER",
    "LOAD-BALANCER-LOCAL",
    "LOAD-BALANCER-FW",
    "LOAD-BALANCER-SOURCE-IP",
    "LOAD-BALANCER-SOURCE-CIDR",
    "NODE-PORT-TCP",
    "NODE-PORT-UDP",
    "NODE-PORT-LOCAL-TCP",
    "NODE-PORT-LOCAL-UDP",
    "NODE-PORT-SCTP-HASH",
    "NODE-PORT-LOCAL-SCTP-HASH",
    "HEALTH-CHECK-NODE-PORT",
    "IPVS-IPS",
];
/// The longest name of an ipset.
const IPSET_NAME: usize = 31;

/// What could not be taken away: each problem in its own words.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join(", "))]
pub struct CleanupError(Vec<String>);

/// Everything of all modes. All problems are told together.
///
/// # Errors
/// Something is there and cannot be taken away.
pub async fn everything(machine: &Machine) -> Result<(), CleanupError> {
    let problems = all_but(None, machine).await;
    if problems.is_empty() { Ok(()) } else { Err(CleanupError(problems)) }
}

/// Everything of all modes but one: rules of another would catch traffic before its own see it.
pub async fn all_but(kept: Option<&dyn Mode>, machine: &Machine) -> Vec<String> {
    let mut problems = Vec::new();
    for mode in MODES.iter().filter(|mode| kept.is_none_or(|kept| kept.name() != mode.name())) {
        problems.extend(mode.cleanup(machine).await.iter().map(ToString::to_string));
    }
    problems.extend(iptables_mode(&both(&machine.exec)).await);
    problems.extend(ipvs_mode(machine).await);
    problems
}

/// What ipvs mode has beside its chains, which are gone by now. Only where its link is there, which nobody else makes: virtual
/// servers may also be somebody else's.
async fn ipvs_mode(machine: &Machine) -> Vec<String> {
    let links = machine.network.interfaces().await.unwrap_or_default();
    if !links.iter().any(|link| link.name == IPVS_LINK) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    if let Err(error) = machine.network.delete_link(IPVS_LINK).await {
        problems.push(format!("{IPVS_LINK}: {error}"));
    }
    // Without the program, or the servers, traffic is the same: the addresses are not the machine's any more.
    let _ = machine.exec.run(&Command::with("ipvsadm", &["--clear"])).await;
    for set in IPSETS.iter().flat_map(|set| ["KUBE-", "KUBE-6-"].map(|family| format!("{family}{set}"))) {
        let set: String = set.chars().take(IPSET_NAME).collect();
        // A machine without ipset has no sets.
        let Ok(output) = machine.exec.run(&Command::with("ipset", &["destroy", &set])).await else { break };
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.success() && !said.contains("does not exist") {
            problems.push(format!("ipset {set}: {}", said.trim()));
        }
    }
    problems
}

/// The chains of iptables mode. A machine without iptables has none.
async fn iptables_mode(families: &[Iptables]) -> Vec<String> {
    let mut problems = Vec::new();
    for iptables in families {
        for (table, chains) in CHAINS {
            let Ok(saved) = iptables.save(table).await else { continue };
            let Some(script) = removal(table, chains, &saved) else { continue };
            if let Err(error) = iptables.restore(&script).await {
                problems.push(format!("{table}: {error}"));
            }
        }
    }
    problems
}

/// iptables of both families.
fn both(exec: &std::sync::Arc<dyn sys::exec::Exec>) -> [Iptables; 2] {
    [IptablesFamily::V4, IptablesFamily::V6].map(|family| Iptables::new(std::sync::Arc::clone(exec), None, family))
}

/// The restore file that takes our chains and the jumps to them out of a table; nothing where there are none.
fn removal(table: &str, chains: &[&str], saved: &str) -> Option<String> {
    let is_ours =
        |name: &str| chains.iter().any(|own| if own.ends_with('-') { name.starts_with(own) } else { name == *own });
    let declared = saved.lines().filter_map(|line| line.strip_prefix(':')?.split_whitespace().next());
    let ours: Vec<&str> = declared.filter(|name| is_ours(name)).collect();
    if ours.is_empty() {
        return None;
    }
    let mut script = format!("*{table}\n");
    for name in &ours {
        // Naming a chain empties it.
        let _ = writeln!(script, ":{name} - [0:0]");
    }
    let jumps = saved.lines().filter_map(|line| {
        // A line may begin with counters.
        let rule = line.split_once("-A ").map(|(_, rule)| rule)?;
        let (from, to) = (rule.split_whitespace().next()?, target(rule)?);
        (!is_ours(from) && is_ours(to)).then_some(rule)
    });
    for rule in jumps {
        let _ = writeln!(script, "-D {rule}");
    }
    for name in &ours {
        let _ = writeln!(script, "-X {name}");
    }
    script.push_str("COMMIT\n");
    Some(script)
}

fn target(rule: &str) -> Option<&str> {
    let mut words = rule.split_whitespace();
    words.find(|word| matches!(*word, "-j" | "-g"))?;
    words.next()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sys::exec::{FakeExec, Output};
    use sys::net::Network as _;

    use super::*;

    const NAT: &str = "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [1:60]\n:KUBE-SERVICES - [0:0]\n\
                       :KUBE-SVC-ABC - [0:0]\n:DOCKER - [0:0]\n\
                       -A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n\
                       -A POSTROUTING -j DOCKER\n-A KUBE-SERVICES -d 10.0.0.1/32 -j KUBE-SVC-ABC\nCOMMIT\n";

    #[test]
    fn chains_and_the_jumps_to_them_go() {
        let (table, chains) = CHAINS[0];
        let script = removal(table, chains, NAT).unwrap();
        let expected = "*nat\n:KUBE-SERVICES - [0:0]\n:KUBE-SVC-ABC - [0:0]\n\
                        -D PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n\
                        -X KUBE-SERVICES\n-X KUBE-SVC-ABC\nCOMMIT\n";
        assert_eq!(script, expected);
        assert_eq!(removal("nat", chains, "*nat\n:PREROUTING ACCEPT [0:0]\n:DOCKER - [0:0]\nCOMMIT\n"), None);
        let filter = "*filter\n:INPUT ACCEPT [0:0]\n:KUBE-FIREWALL - [0:0]\n-A INPUT -j KUBE-FIREWALL\nCOMMIT\n";
        assert_eq!(removal("filter", CHAINS[1].1, filter), None, "the kubelet's chain stays");
    }

    #[tokio::test]
    async fn everything_is_taken_away_and_problems_are_told() {
        for (answer, problem) in [
            (Output::ok(""), None),
            // One that has no table: there is nothing to take away.
            (Output::failed(1, "Error: No such file or directory"), None),
            (Output::failed(1, "no"), Some("rules refused: no, rules refused: no")),
        ] {
            let exec = FakeExec::new().answer("iptables-save -t nat", Output::ok(NAT)).answer("nft", answer);
            let exec = Arc::new(exec);
            let network = Arc::new(sys::net::FakeNetwork::default());
            let machine = Machine { exec: exec.clone(), network, kernel: None };
            assert_eq!(everything(&machine).await.err().map(|error| error.to_string()).as_deref(), problem);
            let commands = exec.commands();
            let given = commands.iter().map(|command| command.stdin.as_slice());
            let tables: Vec<_> = given.filter(|text| text.starts_with(b"delete table")).collect();
            assert_eq!(tables, [b"delete table ip kube-proxy\n".as_slice(), b"delete table ip6 kube-proxy\n"]);
            let restored = commands.iter().filter(|command| command.line().starts_with("iptables-restore")).count();
            assert_eq!(restored, 1);
        }
    }

    #[tokio::test]
    async fn what_ipvs_mode_left_goes_too() {
        let nat = "*nat\n:POSTROUTING ACCEPT [0:0]\n:KUBE-LOAD-BALANCER - [0:0]\n:KUBE-NODE-PORT - [0:0]\nCOMMIT\n";
        let filter = "*filter\n:INPUT ACCEPT [0:0]\n:KUBE-IPVS-FILTER - [0:0]\n:KUBE-IPVS-OUT-FILTER - [0:0]\n\
                      :KUBE-NODE-PORT - [0:0]\n:KUBE-SOURCE-RANGES-FIREWALL - [0:0]\n-A INPUT -j KUBE-IPVS-FILTER\nCOMMIT\n";
        for was_there in [true, false] {
            let exec = FakeExec::new().answer("iptables-save -t nat", Output::ok(nat));
            let exec = exec.answer("iptables-save -t filter", Output::ok(filter));
            // A set that is in use stays, and is told.
            let exec = Arc::new(exec.answer("ipset destroy KUBE-CLUSTER-IP", Output::failed(1, "in use")));
            let links = [Some("eth0"), was_there.then_some("kube-ipvs0")].into_iter().flatten();
            let link = |name: &str| sys::net::Interface { name: name.to_owned(), ..Default::default() };
            let network = Arc::new(sys::net::FakeNetwork::with(links.map(link).collect(), Vec::new()));
            let machine = Machine { exec: exec.clone(), network: network.clone(), kernel: None };
            let told = everything(&machine).await.err().map(|error| error.to_string());
            assert_eq!(told, was_there.then(|| "ipset KUBE-CLUSTER-IP: in use".to_owned()));
            let left: Vec<_> = network.interfaces().await.unwrap().into_iter().map(|link| link.name).collect();
            assert_eq!(left, ["eth0"]);
            let lines = exec.lines();
            let ran = |line: &str| lines.iter().any(|own| own == line);
            let swept = ["ipset destroy KUBE-IPVS-IPS", "ipset destroy KUBE-6-IPVS-IPS", "ipvsadm --clear"].map(ran);
            assert_eq!(swept, [was_there; 3], "{lines:#?}");
            let restored = exec.commands().into_iter().filter(|command| command.line().starts_with("iptables-restore"));
            let texts: Vec<_> = restored.map(|command| String::from_utf8(command.stdin).unwrap()).collect();
            for chain in ["KUBE-LOAD-BALANCER", "KUBE-NODE-PORT", "KUBE-IPVS-FILTER", "KUBE-SOURCE-RANGES-FIREWALL"] {
                assert!(texts.iter().any(|text| text.contains(&format!("-X {chain}\n"))), "{chain}: {texts:?}");
            }
            assert!(texts.iter().any(|text| text.contains("-D INPUT -j KUBE-IPVS-FILTER\n")), "{texts:?}");
        }
    }
}
