//! What components have written: nothing where all is as declared, and in foul weather not many times what they write in
//! fair weather.

use testing::Exchange;

/// What is written although nothing changes, and what is no write of an object.
const EXEMPT: [&str; 3] = ["/leases", "reviews", "/events"];

/// In foul weather each write may be made so often: one is lost after it took effect, one is made again on a newer object.
const TIMES: usize = 3;
/// And troubles ask for more: a pod that is made again is some ten writes of its own (it is created, bound, told of by its
/// node and by what owns it, and deleted), and a lost node has up to ten of them.
const FOR_TROUBLES: usize = 100;

/// What is wrong with so many writes in foul weather.
pub(crate) fn too_many(foul: usize, fair: usize) -> Option<String> {
    let most = TIMES * fair + FOR_TROUBLES;
    (foul > most)
        .then(|| format!("components wrote {foul} times, {fair} in fair weather: more than {most} are too many"))
}

/// The acknowledged writes of components among these requests.
pub(crate) fn of_components(exchanges: &[Exchange]) -> impl Iterator<Item = &Exchange> {
    exchanges.iter().filter(|own| {
        let is_exempt = EXEMPT.iter().any(|part| own.path.contains(part));
        let is_acknowledged = own.status.is_some_and(|status| (200..300).contains(&status));
        &*own.who != "admin" && own.method != "GET" && is_acknowledged && !is_exempt && !deletes_a_collection(own)
    })
}

/// Whether this deletes all objects of a resource of a namespace, which writes nothing where there are none: a namespace
/// that goes asks for it with each round, and has some thirty resources.
fn deletes_a_collection(exchange: &Exchange) -> bool {
    let below = exchange.path.split_once("/namespaces/").map(|(_, below)| below);
    exchange.method == "DELETE" && below.is_some_and(|below| below.split('/').count() == 2)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn many_times_as_many_are_too_many() {
        assert_eq!(too_many(400, 100), None);
        assert_eq!(
            too_many(401, 100).unwrap(),
            "components wrote 401 times, 100 in fair weather: more than 400 are too many"
        );
    }

    #[test]
    fn what_components_have_written_counts() {
        let exchange = |who: &str, method: &str, path: &str, status: Option<u16>| Exchange {
            who: who.into(),
            asked: Duration::ZERO,
            answered: Duration::ZERO,
            method: method.to_owned(),
            path: path.to_owned(),
            size: 0,
            status,
        };
        let pods = "/api/v1/namespaces/default/pods";
        for (who, method, path, status, counts) in [
            ("node-0", "POST", pods, Some(201), true),
            ("node-0", "DELETE", "/api/v1/namespaces/default/pods/a", Some(200), true),
            ("node-0", "DELETE", "/api/v1/namespaces/default", Some(200), true),
            ("node-0", "DELETE", pods, Some(200), false),
            ("node-0", "GET", pods, Some(200), false),
            ("node-0", "PUT", pods, Some(409), false),
            ("node-0", "PUT", pods, None, false),
            ("admin", "PUT", pods, Some(200), false),
            ("node-0", "PUT", "/apis/coordination.k8s.io/v1/namespaces/x/leases/a", Some(200), false),
        ] {
            let found = of_components(&[exchange(who, method, path, status)]).count();
            assert_eq!(found == 1, counts, "{who} {method} {path} {status:?}");
        }
    }
}
