//! Plans from tables.

use api_types::core_v1::{EndpointAddress, EndpointPort, EndpointSubset};

use super::*;

fn endpoints(addresses: &[&str], not_ready: &[&str], port: i32) -> Endpoints {
    let address = |ip: &&str| EndpointAddress { ip: (*ip).to_owned(), ..EndpointAddress::default() };
    let subset = EndpointSubset {
        addresses: addresses.iter().map(address).collect(),
        not_ready_addresses: not_ready.iter().map(address).collect(),
        ports: vec![EndpointPort { port, protocol: "TCP".into(), ..EndpointPort::default() }],
    };
    let mut endpoints = Endpoints { subsets: vec![subset], ..Endpoints::default() };
    endpoints.metadata.name = "web".into();
    endpoints.metadata.namespace = "ns".into();
    endpoints.metadata.uid = "u".into();
    endpoints
}

/// The slices as they are after the writes.
fn stored(writes: &Writes) -> Vec<Arc<EndpointSlice>> {
    let named = |(index, slice): (usize, &EndpointSlice)| {
        let mut slice = slice.clone();
        if slice.metadata.name.is_empty() {
            slice.metadata.name = format!("web-{index}");
        }
        Arc::new(slice)
    };
    writes.create.iter().chain(&writes.update).enumerate().map(named).collect()
}

fn shape(plan: &plan::Plan) -> (usize, usize, usize) {
    (plan.writes.create.len(), plan.writes.update.len(), plan.writes.delete.len())
}

#[test]
fn slices_follow_their_endpoints() {
    let made = plan::plan(&endpoints(&["10.0.0.1", "fd00::1", "nonsense"], &["10.0.0.2"], 80), &[], 1000);
    assert_eq!((shape(&made), made.invalid), ((2, 0, 0), 1));
    let v4 = &made.writes.create[0];
    let ready: Vec<_> = v4.endpoints.iter().map(|own| (own.addresses[0].as_str(), own.conditions.ready)).collect();
    assert_eq!(ready, [("10.0.0.1", Some(true)), ("10.0.0.2", Some(false))]);
    assert_eq!(v4.metadata.labels[LABEL_SERVICE_NAME], "web");

    let present = stored(&made.writes);
    let steady = plan::plan(&endpoints(&["fd00::1", "10.0.0.1"], &["10.0.0.2"], 80), &present, 1000);
    assert_eq!(shape(&steady), (0, 0, 0));
    let changed = plan::plan(&endpoints(&["10.0.0.9"], &[], 80), &present, 1000);
    assert_eq!(shape(&changed), (0, 1, 1), "the IPv6 slice goes");
    let moved = plan::plan(&endpoints(&["10.0.0.1"], &[], 81), &present, 1000);
    assert_eq!(shape(&moved), (0, 1, 1), "the slice of the old port takes the new one");
    let meta = &moved.writes.update[0].metadata;
    assert_eq!((meta.name.as_str(), meta.generate_name.as_str()), ("web-0", "web-"));
    let mut replaced = endpoints(&["10.0.0.1", "fd00::1"], &["10.0.0.2"], 80);
    replaced.metadata.uid = "v".into();
    assert_eq!(shape(&plan::plan(&replaced, &present, 1000)), (0, 2, 0), "the owner is another");
}

#[test]
fn a_subset_is_mirrored_up_to_a_bound() {
    let made = plan::plan(&endpoints(&["10.0.0.1", "10.0.0.2", "10.0.0.3"], &[], 80), &[], 2);
    assert_eq!((made.writes.create[0].endpoints.len(), made.skipped), (2, 1));
    assert_eq!(
        made.notices(2),
        [(
            "TooManyAddressesToMirror",
            "A max of 2 addresses can be mirrored to EndpointSlices per Endpoints subset. 1 addresses were skipped"
                .into()
        )]
    );
    // As upstream: those that are none are among those that were skipped.
    let both = plan::plan(&endpoints(&["-", ".", "10.0.0.1", "10.0.0.2"], &[], 80), &[], 1);
    let told: Vec<String> = both.notices(1).into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        told,
        [
            "Skipped 2 invalid IP addresses when mirroring to EndpointSlices",
            "A max of 1 addresses can be mirrored to EndpointSlices per Endpoints subset. 3 addresses were skipped"
        ]
    );
    let fine = plan::plan(&endpoints(&["10.0.0.1"], &[], 80), &[], 1);
    assert_eq!(fine.notices(1), []);
}

#[test]
fn locks_and_what_says_so_are_not_mirrored() {
    let mut plain = endpoints(&[], &[], 80);
    assert!(is_mirrorable(&plain));
    plain.metadata.labels.insert(SKIP_MIRROR.into(), "true".into());
    assert!(!is_mirrorable(&plain));
    plain.metadata.labels.clear();
    plain.metadata.annotations.insert(LEADER.into(), String::new());
    assert!(!is_mirrorable(&plain));
}
