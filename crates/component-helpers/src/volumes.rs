//! Persistent volumes and claims as the binder, the scheduler and the attach-detach controller see them alike: which
//! volume fits a claim, what class each is of, which claims a pod has. The rules are those of the concept page
//! "Persistent Volumes" of the Kubernetes documentation.

pub mod attaching;
pub mod binding;
pub mod classes;
pub mod matching;
pub mod names;
pub mod of_pods;
