//! Every form of path.

use super::*;

fn read(line: &str) -> RequestInfo {
    let (method, url) = line.split_once(' ').unwrap();
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    RequestInfo::new(&method.parse().unwrap(), path, &Query::parse(query)).unwrap()
}

#[test]
fn resource_paths() {
    // line, verb, group, version, namespace, resource, subresource, name
    let cases = [
        ("GET /api/v1/pods", "list", "", "", "pods", "", ""),
        ("GET /api/v1/pods?watch=1", "watch", "", "", "pods", "", ""),
        ("GET /api/v1/pods?watch=false", "list", "", "", "pods", "", ""),
        ("GET /api/v1/pods?watch=1&limit=x", "watch", "", "", "pods", "", ""),
        ("GET /api/v1/namespaces/n/pods/p", "get", "", "n", "pods", "", "p"),
        ("HEAD /api/v1/namespaces/n/pods/p", "get", "", "n", "pods", "", "p"),
        ("OPTIONS /api/v1/namespaces/n/pods/p", "", "", "n", "pods", "", "p"),
        ("GET /api/v1/namespaces/n/pods/p/proxy/a/b", "get", "", "n", "pods", "proxy", "p"),
        ("POST /api/v1/namespaces/n/pods", "create", "", "n", "pods", "", ""),
        ("DELETE /apis/apps/v1/namespaces/n/deployments", "deletecollection", "apps", "n", "deployments", "", ""),
        ("DELETE /apis/apps/v1/namespaces/n/deployments/d", "delete", "apps", "n", "deployments", "", "d"),
        ("GET /api/v1/namespaces", "list", "", "", "namespaces", "", ""),
        ("GET /api/v1/namespaces/n", "get", "", "n", "namespaces", "", "n"),
        ("PUT /api/v1/namespaces/n/finalize", "update", "", "n", "namespaces", "finalize", "n"),
        ("PATCH /api/v1/namespaces/n/status", "patch", "", "n", "namespaces", "status", "n"),
        ("GET /api/v1/watch/pods", "watch", "", "", "pods", "", ""),
        ("POST /api/v1/watch/namespaces/n/pods/p", "watch", "", "n", "pods", "", "p"),
        ("GET /api/v1/proxy/namespaces/n/pods/p/x", "proxy", "", "n", "pods", "", "p"),
        ("GET /api/v1/pods?fieldSelector=metadata.name%3Dp", "list", "", "", "pods", "", "p"),
        ("GET /api/v1/pods?fieldSelector=metadata.name%3D..", "list", "", "", "pods", "", ""),
        ("GET /api/v1/namespaces/n%2Fpods%2Fp", "get", "", "n", "pods", "", "p"),
        ("GET /api/v1/namespaces//pods", "list", "", "", "pods", "", ""),
        ("GET /api/v1/namespaces/n/pods/p/", "get", "", "n", "pods", "", "p"),
    ];
    for (line, verb, group, namespace, resource, subresource, name) in cases {
        let info = read(line);
        assert!(info.is_resource, "{line}");
        let got = (
            info.verb.as_str(),
            info.group.as_str(),
            info.namespace.as_str(),
            info.resource.as_str(),
            info.subresource.as_str(),
            info.name.as_str(),
        );
        assert_eq!(got, (verb, group, namespace, resource, subresource, name), "{line}");
    }
}

#[test]
fn other_paths() {
    for line in
        ["GET /api", "GET /api/v1", "GET /apis/apps", "GET /apis/apps/v1", "GET /healthz", "GET /", "PUT /x/y/z/a"]
    {
        let info = read(line);
        assert!(!info.is_resource, "{line}");
        assert_eq!(info.verb, line.split(' ').next().unwrap().to_ascii_lowercase());
    }
    let error = RequestInfo::new(&Method::GET, "/api/v1/watch", &Query::default()).unwrap_err();
    assert_eq!(error.to_string(), "unable to determine kind and namespace from url, /api/v1/watch");
}

#[test]
fn some_requests_may_last() {
    let cases = [
        ("GET /api/v1/pods?watch=true", true),
        ("GET /api/v1/pods", false),
        ("GET /api/v1/namespaces/n/pods/p/log", true),
        ("POST /api/v1/namespaces/n/pods/p/exec", true),
        ("GET /healthz", false),
        ("GET /debug/pprof/profile", true),
    ];
    for (line, long) in cases {
        assert_eq!(read(line).is_long_running(), long, "{line}");
    }
}
