//! The packet filter rules that belong to the kubelet (`makeIPTablesUtilChains`).
//!
//! An empty chain tells others whether iptables is the legacy one or that of nftables, and one rule keeps traffic that
//! pretends to come from the machine itself away. When somebody flushes the tables, a missing canary shows it.

use std::sync::Arc;
use std::time::Duration;

use sys::exec::Exec;
use sys::packet_filter::{Family, FilterError, Iptables};

const PERIOD: Duration = Duration::from_secs(60);
const CANARY: &str = "KUBE-KUBELET-CANARY";
const TABLES: [&str; 3] = ["mangle", "nat", "filter"];
const LOCALNET: &str = "-A KUBE-FIREWALL -m comment --comment \"block incoming localnet connections\" -d 127.0.0.0/8 \
                        ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP";

/// Keeps the rules of one family.
struct HostRules {
    iptables: Iptables,
    family: Family,
}

/// Keeps the rules until the caller drops the future. A machine without iptables has none.
pub async fn keep(exec: Arc<dyn Exec>) {
    let all = [Family::V4, Family::V6].map(|family| HostRules::new(&exec, family));
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for rules in &all {
            if let Err(error) = rules.ensure().await {
                tracing::warn!(%error, family = ?rules.family, "Failed to keep the kubelet's iptables rules");
            }
        }
    }
}

impl HostRules {
    fn new(exec: &Arc<dyn Exec>, family: Family) -> Self {
        Self { iptables: Iptables::new(Arc::clone(exec), None, family), family }
    }

    /// Makes what is missing.
    async fn ensure(&self) -> Result<(), FilterError> {
        for table in TABLES {
            let saved = self.iptables.save(table).await?;
            if !saved.lines().any(|line| line.starts_with(&format!(":{CANARY} "))) {
                self.iptables.restore(&self.script(table)).await?;
            }
        }
        if self.family == Family::V4 {
            for chain in ["INPUT", "OUTPUT"] {
                // Checking fails where the rule is not there.
                if self.iptables.run(&["-C", chain, "-j", "KUBE-FIREWALL"]).await.is_err() {
                    self.iptables.run(&["-I", chain, "-j", "KUBE-FIREWALL"]).await?;
                }
            }
        }
        Ok(())
    }

    fn script(&self, table: &str) -> String {
        let mut lines = vec![format!("*{table}"), format!(":{CANARY} - [0:0]")];
        match table {
            "mangle" => lines.push(":KUBE-IPTABLES-HINT - [0:0]".to_owned()),
            "filter" if self.family == Family::V4 => {
                lines.push(":KUBE-FIREWALL - [0:0]".to_owned());
                lines.push(LOCALNET.to_owned());
            }
            _ => {}
        }
        lines.push("COMMIT\n".to_owned());
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use sys::exec::{FakeExec, Output};

    use super::*;

    #[tokio::test]
    async fn missing_rules_are_made_and_others_left_alone() {
        let exec = Arc::new(FakeExec::new().answer("-C INPUT", Output::failed(1, "Bad rule")));
        let shared: Arc<dyn Exec> = exec.clone();
        HostRules::new(&shared, Family::V4).ensure().await.unwrap();
        let commands = exec.commands();
        let scripts: Vec<String> = commands
            .iter()
            .filter(|command| command.line().starts_with("iptables-restore"))
            .map(|command| String::from_utf8_lossy(&command.stdin).into_owned())
            .collect();
        assert_eq!(scripts.len(), 3);
        assert_eq!(scripts[0], "*mangle\n:KUBE-KUBELET-CANARY - [0:0]\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n");
        assert!(scripts[2].contains(":KUBE-FIREWALL - [0:0]\n-A KUBE-FIREWALL -m comment"));
        let lines: Vec<String> = commands.iter().map(|command| command.line()).collect();
        assert!(lines.iter().any(|line| line.ends_with("-I INPUT -j KUBE-FIREWALL")), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("-I OUTPUT")), "it is there already");

        let present = "*x\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n";
        let exec = Arc::new(FakeExec::new().answer("tables-save", Output::ok(present)));
        let shared: Arc<dyn Exec> = exec.clone();
        HostRules::new(&shared, Family::V6).ensure().await.unwrap();
        assert!(exec.commands().iter().all(|command| !command.line().contains("restore")), "nothing to do");
    }
}
