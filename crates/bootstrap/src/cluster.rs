//! A whole cluster on one machine: its certificates, kubeconfigs, processes and nodes, laid out below one root as
//! kubeadm lays them out below `/`.

mod addons;
mod components;
mod down;
mod kubeconfig;
mod nodes;
mod processes;
mod progress;
mod renewal;
mod serving;
mod settings;
mod static_pods;
mod units;
mod up;

pub use components::{COMPONENTS, Component};
pub use down::{Data, down};
pub use kubeconfig::{Kubeconfig, write_kubeconfigs};
pub use progress::Progress;
pub use renewal::{RENEWED, renew};
pub use settings::{ClusterError, ControlPlane, Layout, Settings};
pub use static_pods::{image, static_pods};
pub use units::{apply_addons, prepare, units};
pub use up::{certificates, tell, up, usage};
