//! The Admin API is as `crates/admin/openapi.json` describes it: every route and method is asked with
//! what is right and with what is wrong, and every answer is held to the schema of its status.

use crate::support::{Admin, Answer, Endpoint, Setup};
use serde_json::{Value, json};

const DESCRIPTION: &str = include_str!("../../../admin/openapi.json");

/// Method, path, body, and the status that is due.
type Case = (&'static str, String, &'static str, u16);

/// Asks, and holds the answer to the description.
fn ask(admin: &Admin, description: &Value, template: &str, case: &Case) -> Answer {
    let (method, path, body, status) = case;
    let answer = admin.ask(method, path, body);
    let said = format!("{method} {path} {body}: {} {}", answer.status, answer.text());
    assert_eq!(answer.status, *status, "{said}");
    let operation = &description["paths"][template][method.to_ascii_lowercase()];
    let response = &operation["responses"][status.to_string()];
    assert!(response.is_object(), "the description does not know this status: {said}");
    let kind = answer.field("content-type").expect("a type");
    let kind = kind.split(';').next().expect("a type");
    let schema = &response["content"][kind]["schema"];
    assert!(schema.is_object(), "the description does not know this type: {said}");
    if kind == "application/json" {
        let instance: Value = serde_json::from_str(&answer.text()).expect("JSON");
        let schema = json!({ "allOf": [schema], "components": description["components"] });
        let validator =
            jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");
        let errors: Vec<String> = validator
            .iter_errors(&instance)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{said}\n{errors:#?}");
    }
    answer
}

#[test]
fn every_route_answers_as_it_is_described() {
    let description: Value = serde_json::from_str(DESCRIPTION).expect("JSON");
    let (one, two) = (Endpoint::named("one"), Endpoint::named("two"));
    let subak = Setup::before(&[&one, &two])
        .pool("stick = { table = \"source\" }\ncircuit = true")
        .listener("rate = { rate = \"5/d\", burst = 1000 }")
        .start();
    let admin = Admin::of(&subak);
    for _ in 0..4 {
        subak.get("/");
    }
    let endpoint = |name: &str| format!("/v1/pools/app/endpoints/{name}");
    let first = endpoint(&one.address());
    let pool = "/v1/pools/app".to_owned();
    let plain = |path: &str| path.to_owned();
    let cases: Vec<(&str, Case)> = vec![
        ("/v1/status", ("GET", plain("/v1/status"), "", 200)),
        ("/v1/status", ("GET", plain("/v1/status?endpoints=false"), "", 200)),
        ("/v1/status", ("GET", plain("/v1/status?endpoints=no"), "", 400)),
        ("/v1/pools", ("GET", plain("/v1/pools"), "", 200)),
        ("/v1/limits", ("GET", plain("/v1/limits"), "", 200)),
        (
            "/v1/limits/{limit}/keys/{key}",
            ("DELETE", plain("/v1/limits/web.rate.1/keys/127.0.0.1"), "", 200),
        ),
        (
            "/v1/limits/{limit}/keys/{key}",
            ("DELETE", plain("/v1/limits/web.rate.1/keys/127.0.0.1"), "", 404),
        ),
        ("/v1/limits/{limit}/keys/{key}", ("DELETE", plain("/v1/limits/x/keys/y"), "", 404)),
        ("/v1/limits/{limit}/keys/{key}", ("DELETE", plain("/v1/limits/x/keys/%z"), "", 400)),
        ("/v1/pools/{pool}", ("GET", pool.clone(), "", 200)),
        ("/v1/pools/{pool}", ("GET", plain("/v1/pools/nobody"), "", 404)),
        ("/v1/pools/{pool}", ("GET", plain("/v1/pools/%zz"), "", 400)),
        ("/v1/pools/{pool}", ("PATCH", pool.clone(), r#"{"pick_log": 100}"#, 200)),
        ("/v1/pools/{pool}", ("PATCH", pool.clone(), r#"{"pick_log": null}"#, 200)),
        ("/v1/pools/{pool}", ("PATCH", pool.clone(), r#"{"pick_log": "x"}"#, 400)),
        ("/v1/pools/{pool}", ("PATCH", plain("/v1/pools/no"), r#"{"pick_log": 1}"#, 404)),
        (
            "/v1/pools/{pool}/endpoints",
            ("POST", format!("{pool}/endpoints"), r#"{"endpoint": "127.0.0.1:9 weight=0"}"#, 201),
        ),
        (
            "/v1/pools/{pool}/endpoints",
            ("POST", format!("{pool}/endpoints"), r#"{"endpoint": "127.0.0.1:9"}"#, 409),
        ),
        (
            "/v1/pools/{pool}/endpoints",
            ("POST", format!("{pool}/endpoints"), r#"{"endpoint": "127.0.0.1:9 x=1"}"#, 422),
        ),
        ("/v1/pools/{pool}/endpoints", ("POST", format!("{pool}/endpoints"), "[]", 400)),
        (
            "/v1/pools/{pool}/endpoints",
            ("POST", plain("/v1/pools/no/endpoints"), r#"{"endpoint": "127.0.0.1:9"}"#, 404),
        ),
        ("/v1/pools/{pool}/endpoints/{endpoint}", ("GET", first.clone(), "", 200)),
        ("/v1/pools/{pool}/endpoints/{endpoint}", ("GET", endpoint("no"), "", 404)),
        (
            "/v1/pools/{pool}/endpoints/{endpoint}",
            ("PATCH", first.clone(), r#"{"state": "drain", "deadline": "10m"}"#, 200),
        ),
        (
            "/v1/pools/{pool}/endpoints/{endpoint}",
            ("PATCH", first.clone(), r#"{"deadline": "10m"}"#, 400),
        ),
        (
            "/v1/pools/{pool}/endpoints/{endpoint}",
            ("PATCH", endpoint("no"), r#"{"weight": 1}"#, 404),
        ),
        ("/v1/pools/{pool}/endpoints/{endpoint}", ("PUT", first.clone(), r#"{"weight": 7}"#, 200)),
        ("/v1/pools/{pool}/endpoints/{endpoint}", ("PUT", first.clone(), r#"{"weight": -7}"#, 400)),
        ("/v1/config", ("GET", plain("/v1/config"), "", 200)),
        ("/v1/config/text", ("GET", plain("/v1/config/text"), "", 200)),
        ("/v1/config/diff", ("GET", plain("/v1/config/diff"), "", 200)),
        ("/v1/pools/{pool}/endpoints/{endpoint}", ("DELETE", endpoint("127.0.0.1:9"), "", 200)),
        ("/v1/pools/{pool}/endpoints/{endpoint}", ("DELETE", endpoint("127.0.0.1:9"), "", 404)),
        ("/v1/config/save", ("POST", plain("/v1/config/save"), "", 200)),
        ("/v1/config/save", ("POST", plain("/v1/config/save"), "[]", 400)),
        ("/v1/config/changes", ("DELETE", plain("/v1/config/changes"), "", 200)),
        ("/v1/config/reload", ("POST", plain("/v1/config/reload"), "{}", 200)),
        ("/v1/config/reload", ("POST", plain("/v1/config/reload"), "{\"x\":1}", 400)),
        ("/v1/config/history", ("GET", plain("/v1/config/history"), "", 200)),
        ("/v1/config/history/{generation}", ("GET", plain("/v1/config/history/1"), "", 200)),
        ("/v1/config/history/{generation}", ("GET", plain("/v1/config/history/99"), "", 404)),
        ("/v1/config/rollback", ("POST", plain("/v1/config/rollback"), "{}", 200)),
        ("/v1/config/rollback", ("POST", plain("/v1/config/rollback"), r#"{"to": 1}"#, 200)),
        ("/v1/config/rollback", ("POST", plain("/v1/config/rollback"), r#"{"to": 999}"#, 409)),
        ("/v1/config/rollback", ("POST", plain("/v1/config/rollback"), r#"{"to": "x"}"#, 400)),
        ("/v1/events", ("GET", plain("/v1/events?after=1"), "", 200)),
        ("/v1/events", ("GET", plain("/v1/events?after=x"), "", 400)),
        ("/v1/explain", ("POST", plain("/v1/explain"), r#"{"url": "http://example.com/"}"#, 200)),
        ("/v1/explain", ("POST", plain("/v1/explain"), "[]", 400)),
        ("/v1/picks", ("GET", plain("/v1/picks"), "", 200)),
        ("/v1/picks", ("GET", plain("/v1/picks?pool=nobody"), "", 404)),
        ("/v1/picks", ("GET", plain("/v1/picks?n=x"), "", 400)),
        ("/v1/openapi.json", ("GET", plain("/v1/openapi.json"), "", 200)),
        ("/metrics", ("GET", plain("/metrics"), "", 200)),
    ];
    for (template, case) in &cases {
        ask(&admin, &description, template, case);
    }
    for (template, item) in description["paths"].as_object().expect("paths") {
        let of_path = item.as_object().expect("an object").keys();
        let mut methods: Vec<String> = of_path
            .filter(|key| *key != "parameters")
            .map(|method| method.to_ascii_uppercase())
            .collect();
        for method in &methods {
            let is_asked = |(path, case): &(&str, Case)| path == template && case.0 == method;
            assert!(cases.iter().any(is_asked), "{method} {template} is not asked");
        }
        // The server takes what is described, and no other method.
        let path = template.replace("{pool}", "app").replace("{endpoint}", "x");
        let refused = admin.ask("BREW", &path.replace("{generation}", "1"), "");
        assert_eq!(refused.status, 405, "{template}");
        if methods.iter().any(|method| method == "GET") {
            methods.push("HEAD".to_owned());
        }
        methods.sort();
        let mut allowed: Vec<&str> = refused.field("allow").expect("Allow").split(", ").collect();
        allowed.sort_unstable();
        assert_eq!(allowed, methods, "{template}");
    }
    subak.write_config("workers = \"many\"\n");
    ask(&admin, &description, "/v1/config/reload", &("POST", plain("/v1/config/reload"), "", 422));
    ask(&admin, &description, "/v1/config/save", &("POST", plain("/v1/config/save"), "", 409));
}
