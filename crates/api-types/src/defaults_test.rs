//! Every default that a table states fits its field.

use api_machinery::json::Reader;
use api_machinery::reflect::{Reflect, Shape, StructType};

use crate::*;

/// Calls `visit` with every struct below `table` once.
fn walk(table: &'static StructType, seen: &mut Vec<&'static str>, visit: &mut dyn FnMut(&'static StructType)) {
    if seen.contains(&table.name) {
        return;
    }
    seen.push(table.name);
    visit(table);
    for field in table.fields {
        let mut shape = (field.shape)();
        while let Shape::List(inner) | Shape::Map(inner) | Shape::Optional(inner) = shape {
            shape = inner();
        }
        if let Shape::Struct(inner) = shape {
            walk(inner, seen, visit);
        }
    }
}

#[test]
fn defaults_are_json() {
    let roots = [
        core_v1::Pod::STRUCT_TYPE,
        core_v1::Service::STRUCT_TYPE,
        apps_v1::StatefulSet::STRUCT_TYPE,
        batch_v1::CronJob::STRUCT_TYPE,
    ];
    let mut count = 0;
    for root in roots {
        walk(root, &mut Vec::new(), &mut |table| {
            for field in table.fields.iter().filter(|field| !field.fill.is_empty()) {
                count += 1;
                assert!(Reader::new(field.fill).read_value().is_ok(), "{}.{}", table.name, field.name);
            }
        });
    }
    assert!(count > 30, "{count} defaults");
}

#[test]
fn a_deployment_is_filled_in() {
    let mut deployment = apps_v1::Deployment::default();
    deployment.spec.template.spec.containers.push(core_v1::Container { name: "c".into(), ..Default::default() });
    deployment.spec.template.spec.volumes.push(core_v1::Volume { name: "v".into(), ..Default::default() });
    api_machinery::defaults::fill(&mut deployment as &mut dyn Reflect);
    let spec = &deployment.spec;
    assert_eq!(
        (spec.replicas, spec.revision_history_limit, spec.progress_deadline_seconds),
        (Some(1), Some(10), Some(600))
    );
    assert_eq!(spec.strategy.type_, "RollingUpdate");
    let pod = &spec.template.spec;
    assert_eq!((pod.dns_policy.as_str(), pod.restart_policy.as_str()), ("ClusterFirst", "Always"));
    assert_eq!(pod.termination_grace_period_seconds, Some(30));
    assert!(pod.security_context.is_some());
    assert_eq!(pod.containers[0].termination_message_path, "/dev/termination-log");
}
