//! Taking away what a proxy left behind: the rules of the modes there are, and the chains of one that ran in iptables mode.
//!
//! `KUBE-FIREWALL` stays, it belongs to the kubelet as well. Tables of IPVS are not looked for.

use std::fmt::Write as _;

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
        ],
    ),
    ("mangle", &["KUBE-PROXY-CANARY"]),
];

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
}
