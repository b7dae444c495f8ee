//! The default roles and bindings, brought up to date once at start.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::meta::{DeleteOptions, ListOptions, ObjectMeta, Preconditions};
use api_machinery::object::Kind;
use api_types::rbac_v1::{ClusterRoleBinding, RoleBinding, RoleRef, Subject};
use async_trait::async_trait;
use authz::bootstrap::{self, BindingPlan};
use client::{Api, ApiObject, Client, ClientError};
use component_base::Gates;

use super::namespaces;
use super::retry::until_done;
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};

/// The hook `rbac/bootstrap-roles`.
pub(super) struct BootstrapRoles;

#[async_trait]
impl PostStartHook for BootstrapRoles {
    fn name(&self) -> &'static str {
        "rbac/bootstrap-roles"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let (client, gates) = (cx.loopback(), cx.lifecycle.gates());
        until_done("unable to initialize roles", || reconcile_all(client, gates)).await
    }
}

async fn reconcile_all(client: &Client, gates: &Gates) -> Result<(), ClientError> {
    let cluster_roles = [bootstrap::cluster_roles_with(gates), bootstrap::gated_cluster_roles(gates)].concat();
    let bindings = [bootstrap::cluster_role_bindings(), bootstrap::gated_cluster_role_bindings(gates)].concat();
    let update = |next: Option<_>| next.map_or(Plan::Keep, Plan::Update);
    reconcile(client, cluster_roles, |stored, wanted| update(bootstrap::reconcile_cluster_role(stored, wanted)))
        .await?;
    reconcile(client, bindings, |stored: &ClusterRoleBinding, wanted| {
        let plan = bootstrap::reconcile_binding(
            (&stored.metadata, &stored.role_ref, &stored.subjects),
            (&wanted.metadata, &wanted.role_ref, &wanted.subjects),
        );
        binding_plan(plan, &stored.role_ref, |metadata, role_ref, subjects| ClusterRoleBinding {
            metadata,
            role_ref,
            subjects,
        })
    })
    .await?;
    let roles = bootstrap::roles();
    for role in &roles {
        namespaces::ensure(client, &role.metadata.namespace).await?;
    }
    let update = |next: Option<_>| next.map_or(Plan::Keep, Plan::Update);
    reconcile(client, roles, |stored, wanted| update(bootstrap::reconcile_role(stored, wanted))).await?;
    reconcile(client, bootstrap::role_bindings(), |stored: &RoleBinding, wanted| {
        let plan = bootstrap::reconcile_binding(
            (&stored.metadata, &stored.role_ref, &stored.subjects),
            (&wanted.metadata, &wanted.role_ref, &wanted.subjects),
        );
        binding_plan(plan, &stored.role_ref, |metadata, role_ref, subjects| RoleBinding {
            metadata,
            role_ref,
            subjects,
        })
    })
    .await
}

/// What to do with a stored object.
enum Plan<T> {
    Keep,
    Update(T),
    Replace,
}

fn binding_plan<T>(
    plan: BindingPlan,
    role_ref: &RoleRef,
    make: impl Fn(ObjectMeta, RoleRef, Vec<Subject>) -> T,
) -> Plan<T> {
    match plan {
        BindingPlan::Keep => Plan::Keep,
        BindingPlan::Update(metadata, subjects) => Plan::Update(make(*metadata, role_ref.clone(), subjects)),
        BindingPlan::Replace => Plan::Replace,
    }
}

/// Brings all objects of a kind up to their defaults, reading what is stored once.
async fn reconcile<T: ApiObject + Kind>(
    client: &Client,
    wanted: Vec<T>,
    plan: impl Fn(&T, &T) -> Plan<T>,
) -> Result<(), ClientError> {
    let stored = client.all::<T>().list_all(&ListOptions::default()).await?;
    let place = |object: &T| (object.meta().namespace.clone(), object.meta().name.clone());
    let stored: BTreeMap<(String, String), T> =
        stored.items.into_iter().map(|object| (place(&object), object)).collect();
    for object in &wanted {
        let api = match object.meta().namespace.as_str() {
            "" => client.all::<T>(),
            namespace => client.namespaced::<T>(namespace),
        };
        let Some(former) = stored.get(&place(object)) else {
            create(&api, object).await?;
            continue;
        };
        match plan(former, object) {
            Plan::Keep => {}
            Plan::Update(next) => {
                api.update(&next).await?;
            }
            Plan::Replace => {
                let uid = Some(former.meta().uid.clone());
                let preconditions = Some(Preconditions { uid, ..Preconditions::default() });
                let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
                api.delete(&former.meta().name, &options).await?;
                create(&api, object).await?;
            }
        }
    }
    Ok(())
}

/// Another server may have been faster.
async fn create<T: ApiObject + Kind>(api: &Api<T>, object: &T) -> Result<(), ClientError> {
    match api.create(object).await {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(()),
    }
}
