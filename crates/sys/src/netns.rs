//! Named network namespaces, as `ip netns` keeps them: `/run/netns/NAME`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::exec::{Command, Exec, ExecError};

/// Where the names are.
const DIRECTORY: &str = "/run/netns";

/// The path that stands for a named namespace, for [`crate::exec::Command::netns`] and others.
#[must_use]
pub fn path_of(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// Makes and removes namespaces.
#[async_trait]
pub trait NetNamespaces: Send + Sync {
    /// Makes a namespace with its loopback up; fine if it exists.
    async fn create(&self, name: &str) -> Result<(), ExecError>;

    /// Removes the name, and with the last process in it the namespace and its links; fine if it is gone.
    async fn delete(&self, name: &str) -> Result<(), ExecError>;

    /// The names there are.
    async fn list(&self) -> Result<Vec<String>, ExecError>;
}

/// Namespaces of this machine, by way of iproute2, whose names other tools understand.
pub struct IpNetns {
    exec: Arc<dyn Exec>,
}

impl IpNetns {
    pub fn new(exec: Arc<dyn Exec>) -> Self {
        Self { exec }
    }
}

#[async_trait]
impl NetNamespaces for IpNetns {
    async fn create(&self, name: &str) -> Result<(), ExecError> {
        if !self.list().await?.iter().any(|have| have == name) {
            self.exec.run_ok(&Command::with("ip", &["netns", "add", name])).await?;
        }
        let up = Command::with("ip", &["link", "set", "lo", "up"]).netns(Some(path_of(name)));
        self.exec.run_ok(&up).await.map(drop)
    }

    async fn delete(&self, name: &str) -> Result<(), ExecError> {
        if !self.list().await?.iter().any(|have| have == name) {
            return Ok(());
        }
        self.exec.run_ok(&Command::with("ip", &["netns", "delete", name])).await.map(drop)
    }

    async fn list(&self) -> Result<Vec<String>, ExecError> {
        let output = self.exec.run_ok(&Command::with("ip", &["netns", "list"])).await?;
        // A line is the name, sometimes followed by `(id: N)`.
        Ok(output.text().lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
    }
}

/// Namespaces that are only names.
#[derive(Default)]
pub struct FakeNetNamespaces {
    names: Mutex<Vec<String>>,
}

#[async_trait]
impl NetNamespaces for FakeNetNamespaces {
    async fn create(&self, name: &str) -> Result<(), ExecError> {
        let mut names = self.names.lock();
        if !names.iter().any(|have| have == name) {
            names.push(name.to_owned());
        }
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<(), ExecError> {
        self.names.lock().retain(|have| have != name);
        Ok(())
    }

    async fn list(&self) -> Result<Vec<String>, ExecError> {
        Ok(self.names.lock().clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::LinuxExec;
    use crate::test_support::{has_program, is_root};

    async fn contract(namespaces: &dyn NetNamespaces) {
        const NAME: &str = "coxswain-test-ns";
        namespaces.delete(NAME).await.unwrap();
        namespaces.create(NAME).await.unwrap();
        namespaces.create(NAME).await.unwrap();
        assert_eq!(namespaces.list().await.unwrap().iter().filter(|name| *name == NAME).count(), 1);
        namespaces.delete(NAME).await.unwrap();
        assert!(!namespaces.list().await.unwrap().iter().any(|name| name == NAME));
    }

    #[tokio::test]
    async fn the_fake_keeps_the_contract() {
        contract(&FakeNetNamespaces::default()).await;
    }

    #[tokio::test]
    async fn the_machine_keeps_the_contract() {
        if is_root() && has_program("ip") {
            contract(&IpNetns::new(Arc::new(LinuxExec))).await;
        }
    }
}
