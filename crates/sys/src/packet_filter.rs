//! The kernel's packet filter: nftables as scripts in one transaction, and iptables as restore files.

mod fake;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

pub use fake::FakePacketFilter;

use crate::exec::{Command, Exec, ExecError, Output};

/// A listing of a large cluster's rules is some tens of megabytes.
const LISTING_LIMIT_BYTES: usize = 256 * 1024 * 1024;
/// How long iptables may wait for the lock that all its callers share.
const LOCK_WAIT_SECONDS: &str = "5";

/// nftables of one network namespace.
#[async_trait]
pub trait PacketFilter: Send + Sync {
    /// Applies a script: all of it or, if any line fails, nothing.
    async fn apply(&self, script: &str) -> Result<(), FilterError>;

    /// Says whether the kernel would take a script, without applying it.
    async fn check(&self, script: &str) -> Result<(), FilterError>;

    /// What is there, as JSON: `list(&["table", "ip", "kube-proxy"])`, `list(&["ruleset"])`.
    async fn list(&self, what: &[&str]) -> Result<serde_json::Value, FilterError>;

    /// The same without the elements of sets and maps: `list_terse(&["chains", "ip"])`, `list_terse(&["sets", "ip"])`.
    async fn list_terse(&self, what: &[&str]) -> Result<serde_json::Value, FilterError>;

    /// Whether the program is there and the kernel answers it.
    async fn is_supported(&self) -> bool {
        self.list(&["tables"]).await.is_ok()
    }
}

/// Why the packet filter did not take or give rules.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The program could not be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// It refused; its words.
    #[error("rules refused: {0}")]
    Refused(String),
    /// What was to be listed is not there.
    #[error("no such table, chain, set or map")]
    NotFound,
    /// Its answer is not in the form it documents.
    #[error("listing is not as expected")]
    Listing(#[source] serde_json::Error),
}

/// nftables by way of the `nft` program.
pub struct Nft {
    exec: Arc<dyn Exec>,
    netns: Option<PathBuf>,
}

impl Nft {
    /// The rules of the caller's namespace, or of another by path.
    pub fn new(exec: Arc<dyn Exec>, netns: Option<&Path>) -> Self {
        Self { exec, netns: netns.map(Path::to_owned) }
    }

    async fn run(&self, command: Command) -> Result<Output, FilterError> {
        let output = self.exec.run(&command.netns(self.netns.as_ref())).await?;
        judge(output)
    }

    async fn listed(&self, options: &[&str], what: &[&str]) -> Result<serde_json::Value, FilterError> {
        let command = Command::with("nft", options).arg("list").args(what).output_limit_bytes(LISTING_LIMIT_BYTES);
        let output = self.run(command).await?;
        serde_json::from_slice(&output.stdout).map_err(FilterError::Listing)
    }
}

fn judge(output: Output) -> Result<Output, FilterError> {
    if output.success() {
        return Ok(output);
    }
    let text = output.error_text();
    Err(if text.contains("No such file or directory") { FilterError::NotFound } else { FilterError::Refused(text) })
}

#[async_trait]
impl PacketFilter for Nft {
    async fn apply(&self, script: &str) -> Result<(), FilterError> {
        self.run(Command::with("nft", &["-f", "-"]).stdin(script)).await.map(drop)
    }

    async fn check(&self, script: &str) -> Result<(), FilterError> {
        self.run(Command::with("nft", &["--check", "-f", "-"]).stdin(script)).await.map(drop)
    }

    async fn list(&self, what: &[&str]) -> Result<serde_json::Value, FilterError> {
        self.listed(&["-j"], what).await
    }

    async fn list_terse(&self, what: &[&str]) -> Result<serde_json::Value, FilterError> {
        self.listed(&["-j", "-t"], what).await
    }
}

/// The two address families that iptables keeps apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

/// iptables of one network namespace.
pub struct Iptables {
    exec: Arc<dyn Exec>,
    netns: Option<PathBuf>,
    family: Family,
}

impl Iptables {
    /// The rules of the caller's namespace, or of another by path.
    pub fn new(exec: Arc<dyn Exec>, netns: Option<&Path>, family: Family) -> Self {
        Self { exec, netns: netns.map(Path::to_owned), family }
    }

    /// Applies a restore file and leaves chains it does not name alone. Each table in it is one transaction.
    ///
    /// # Errors
    /// The program is missing or refuses a line.
    pub async fn restore(&self, rules: &str) -> Result<(), FilterError> {
        let args = ["-w", LOCK_WAIT_SECONDS, "--noflush", "--counters"];
        let command = Command::with(self.program("iptables-restore", "ip6tables-restore"), &args);
        judge(self.exec.run(&command.stdin(rules).netns(self.netns.as_ref())).await?).map(drop)
    }

    /// The rules of a table (`nat`, `filter`, `mangle`) in the form that [`Self::restore`] takes.
    ///
    /// # Errors
    /// The program is missing or the kernel has no such table.
    pub async fn save(&self, table: &str) -> Result<String, FilterError> {
        let command = Command::with(self.program("iptables-save", "ip6tables-save"), &["-t", table]);
        let command = command.output_limit_bytes(LISTING_LIMIT_BYTES).netns(self.netns.as_ref());
        Ok(judge(self.exec.run(&command).await?)?.text())
    }

    /// Runs `iptables` with these arguments.
    ///
    /// # Errors
    /// The program is missing or refuses.
    pub async fn run(&self, args: &[&str]) -> Result<(), FilterError> {
        let command = Command::with(self.program("iptables", "ip6tables"), &["-w", LOCK_WAIT_SECONDS]).args(args);
        judge(self.exec.run(&command.netns(self.netns.as_ref())).await?).map(drop)
    }

    fn program(&self, v4: &'static str, v6: &'static str) -> &'static str {
        match self.family {
            Family::V4 => v4,
            Family::V6 => v6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::{FakeExec, LinuxExec};
    use crate::netns::{IpNetns, NetNamespaces, path_of};
    use crate::test_support::{has_program, is_root};

    #[tokio::test]
    async fn scripts_go_in_whole() {
        let exec = Arc::new(FakeExec::new());
        Nft::new(exec.clone(), Some(Path::new("/run/netns/x"))).apply("add table ip t\n").await.unwrap();
        let command = exec.commands().remove(0);
        assert_eq!((command.line().as_str(), command.stdin.as_slice()), ("nft -f -", &b"add table ip t\n"[..]));
        assert_eq!(command.netns, Some("/run/netns/x".into()));
    }

    #[tokio::test]
    async fn refusals_are_told_apart() {
        let missing = "Error: No such file or directory\nlist table ip x\n";
        let exec = FakeExec::new()
            .answer("list table", Output::failed(1, missing))
            .answer("list ruleset", Output::ok("not json"))
            .answer("nft", Output::failed(1, "Error: syntax error\n"));
        let nft = Nft::new(Arc::new(exec), None);
        assert!(matches!(nft.list(&["table", "ip", "x"]).await, Err(FilterError::NotFound)));
        assert!(matches!(nft.list(&["ruleset"]).await, Err(FilterError::Listing(_))));
        assert!(matches!(nft.apply("x").await, Err(FilterError::Refused(text)) if text == "Error: syntax error"));
        assert!(!nft.is_supported().await);
    }

    const TABLE: &str =
        "add table ip t\nadd chain ip t a\nadd chain ip t b\nadd map ip t m { type ipv4_addr : verdict ; }\n";

    /// Lines after [`TABLE`], and whether they are taken.
    const SCRIPTS: [(&str, bool); 11] = [
        ("add element ip t m { 10.0.0.1 comment \"x\" : goto a , 10.0.0.2 : drop }", true),
        ("delete element ip t m { 10.0.0.3 }", false),
        ("add element ip t m { 10.0.0.1 : goto a }", true),
        ("add element ip t m { 10.0.0.1 : goto b }", false),
        ("add element ip t m { 10.0.0.4 : goto nowhere }", false),
        ("delete chain ip t a", false),
        ("delete element ip t m { 10.0.0.1 }\nadd element ip t m { 10.0.0.1 : goto b }", true),
        ("delete chain ip t a", true),
        ("add rule ip t b ip saddr vmap @nowhere", false),
        ("add rule ip t b ip saddr vmap @m\ndelete map ip t m", false),
        ("flush chain ip t missing", false),
    ];

    /// What both kinds keep and refuse.
    async fn contract(filter: &dyn PacketFilter) {
        filter.apply(TABLE).await.unwrap();
        for (script, taken) in SCRIPTS {
            let checked = filter.check(script).await;
            assert_eq!(checked.is_ok(), taken, "{script}: {checked:?}");
            assert_eq!(filter.apply(script).await.is_ok(), taken, "{script}");
        }
        let names = |listed: serde_json::Value, kind: &'static str| -> Vec<String> {
            let entries = listed["nftables"].as_array().cloned().unwrap_or_default();
            entries.iter().filter_map(|entry| entry[kind]["name"].as_str().map(str::to_owned)).collect()
        };
        assert_eq!(names(filter.list_terse(&["chains", "ip"]).await.unwrap(), "chain"), ["b"]);
        assert_eq!(names(filter.list_terse(&["maps", "ip"]).await.unwrap(), "map"), ["m"]);
        assert!(names(filter.list_terse(&["sets", "ip"]).await.unwrap(), "set").is_empty());
        assert!(matches!(filter.list(&["table", "ip", "other"]).await, Err(FilterError::NotFound)));
    }

    #[tokio::test]
    async fn the_fake_keeps_the_contract() {
        contract(&FakePacketFilter::default()).await;
    }

    #[tokio::test]
    async fn the_machine_keeps_the_contract() {
        const NAME: &str = "coxswain-test-nft-c";
        if !(is_root() && has_program("nft") && has_program("ip")) {
            return;
        }
        let namespaces = IpNetns::new(Arc::new(LinuxExec));
        namespaces.delete(NAME).await.unwrap();
        namespaces.create(NAME).await.unwrap();
        let nft = Nft::new(Arc::new(LinuxExec), Some(&path_of(NAME)));
        if nft.is_supported().await {
            contract(&nft).await;
        } else {
            test_facts::skipped("nft: not supported by this kernel");
        }
        namespaces.delete(NAME).await.unwrap();
    }

    #[tokio::test]
    async fn a_script_is_all_or_nothing_on_the_machine() {
        const NAME: &str = "coxswain-test-nft";
        if !(is_root() && has_program("nft") && has_program("ip")) {
            return;
        }
        let namespaces = IpNetns::new(Arc::new(LinuxExec));
        namespaces.create(NAME).await.unwrap();
        let nft = Nft::new(Arc::new(LinuxExec), Some(&path_of(NAME)));
        let outcome = async {
            if !nft.is_supported().await {
                return test_facts::skipped("this kernel has no nftables");
            }
            nft.apply("add table ip good\n").await.unwrap();
            assert!(nft.apply("add table ip half\nadd rule ip half nochain accept\n").await.is_err());
            assert!(nft.list(&["table", "ip", "good"]).await.is_ok());
            assert!(matches!(nft.list(&["table", "ip", "half"]).await, Err(FilterError::NotFound)));
            nft.check("add table ip only-checked\n").await.unwrap();
            assert!(nft.list(&["table", "ip", "only-checked"]).await.is_err());
        };
        outcome.await;
        namespaces.delete(NAME).await.unwrap();
    }
}
