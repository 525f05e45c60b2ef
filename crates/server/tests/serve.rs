//! A served release answers as the library does, and gives away nothing else.

mod common;

use common::*;
use progap::Release;
use progap::release::{Date, Exported, export};
use progap_formats::read::table::{LaterOptions, LaterTable};
use serde_json::{Value, json};

fn close(found: &Value, expected: &[f32]) {
    let found: Vec<f32> =
        found.as_array().expect("a list").iter().map(|p| p.as_f64().expect("a number") as f32).collect();
    assert_eq!(found, expected);
}

#[test]
fn answers_about_nodes_are_those_of_the_release() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("people");
    edge_release(&folder);
    let release = Release::open(&folder).expect("a release");
    let expected = release.predict().expect("predictions");
    let (ids, names) = (release.nodes().node_ids(), release.nodes().class_names());
    let served = serve(options(&[("people", folder.clone())]));
    for (at, row) in expected.probabilities.chunks_exact(2).enumerate() {
        let found = served.get(&format!("/v1/nodes/{}", ids.name(at))).json();
        assert_eq!(found["class"], names[expected.classes[at] as usize].as_str());
        assert_eq!(found["release"], release.sha256());
        assert_eq!(found["used"], release.used().name());
        assert!(found["at"].as_str().is_some_and(|at| at.ends_with('Z') && at.len() == 20));
        let each: Vec<Value> = names.iter().map(|name| found["probabilities"][name].clone()).collect();
        close(&Value::from(each), row);
    }
    // All of them at once, by both protocols.
    let all: Vec<String> = (0..100).map(|at| ids.name(at)).collect();
    let found = served.post("/v1/nodes", &json!({ "ids": all })).json();
    assert_eq!(found["predictions"].as_array().map(Vec::len), Some(100));
    assert_eq!(found["predictions"][41]["id"], ids.name(41));
    let tensor = json!({ "name": "id", "shape": [100], "datatype": "BYTES", "data": all });
    let found = served.post("/v2/models/people/infer", &json!({ "id": "a\"b", "inputs": [tensor] })).json();
    assert_eq!((&found["id"], &found["model_name"]), (&json!("a\"b"), &json!("people")));
    assert_eq!(found["model_version"], release.sha256()[..16]);
    assert_eq!(found["parameters"]["release"], release.sha256());
    assert_eq!(found["parameters"]["used"], release.used().name());
    assert_eq!(found["outputs"][0]["shape"], json!([100]));
    assert_eq!(found["outputs"][0]["data"][41], names[expected.classes[41] as usize].as_str());
    assert_eq!(found["outputs"][1]["shape"], json!([100, 2]));
    close(&found["outputs"][1]["data"], &expected.probabilities);
    // One output is as good as both.
    let only = served
        .post("/v2/models/people/infer", &json!({ "inputs": [tensor], "outputs": [{ "name": "class" }] }))
        .json();
    assert_eq!(only["outputs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn answers_about_new_rows_are_those_of_the_release_and_say_so() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("people");
    edge_release(&folder);
    let table = "id,pay,town,age\nx,905,Oslo,\ny,110,Rome,33\n";
    let release = Release::open(&folder).expect("a release");
    let expected = release
        .predict_rows(LaterTable::Csv(table.as_bytes()), &LaterOptions::default())
        .expect("rows")
        .predictions;
    let served = serve(options(&[("people", folder.clone())]));
    let csv = ask(
        served.address,
        "POST",
        "/v1/rows",
        &[("content-type", "text/csv; charset=utf-8")],
        table.as_bytes(),
    )
    .json();
    let rows = json!([{ "id": "x", "pay": 905, "town": "Oslo" }, { "age": 33.0, "town": "Rome", "pay": "110", "id": "y" }]);
    let objects = served.post("/v1/rows", &json!({ "rows": rows })).json();
    let tensor = |name: &str, kind: &str, data: Value| json!({ "name": name, "shape": [2], "datatype": kind, "data": data });
    let tensors = json!([
        tensor("town", "BYTES", json!(["Oslo", "Rome"])),
        tensor("age", "FP64", json!([null, 33])),
        tensor("pay", "INT64", json!([905, 110]))
    ]);
    let protocol = served.post("/v2/models/people/infer", &json!({ "inputs": tensors })).json();
    close(&protocol["outputs"][1]["data"], &expected.probabilities);
    assert_eq!(protocol["parameters"]["used"], "features");
    for found in [&csv, &objects] {
        assert_eq!(found["used"], "features");
        assert_eq!(found["predictions"], csv["predictions"]);
        assert_eq!(found["predictions"][1]["id"], "y");
        let names = release.nodes().class_names();
        let each: Vec<Value> =
            names.iter().map(|name| found["predictions"][1]["probabilities"][name].clone()).collect();
        close(&Value::from(each), &expected.probabilities[2..]);
    }
    // A row that does not fit is named with its column, and the others are predicted.
    let rows = json!([{ "pay": 1, "town": "Paris", "age": 3 }, { "pay": 1, "town": "Oslo", "age": 3 }]);
    let found = served.post("/v1/rows", &json!({ "rows": rows })).json();
    assert_eq!(found["rejected"][0]["column"], "town");
    assert_eq!(
        (&found["rejected"][0]["index"], found["predictions"].as_array().map(Vec::len)),
        (&json!(0), Some(1))
    );
    let metrics = served.get("/metrics").text();
    assert!(
        metrics.contains("progap_rows_rejected_total{model=\"people\",column=\"town\"} 1\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("progap_predictions_total{model=\"people\",used=\"features\"} 7\n"),
        "{metrics}"
    );
}

#[test]
fn bad_requests_are_refused_in_one_sentence() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("people");
    edge_release(&folder);
    let served = serve(options(&[("people", folder)]));
    assert!(served.get("/v1/nodes/nobody").refused(404).contains("no node \"nobody\""));
    assert!(served.get("/v1/nodes/%ff").refused(400).contains("UTF-8"));
    assert!(served.get("/v1/nodes/p1?model=other").refused(404).contains("there are: people"));
    assert!(served.get("/v1/nodes/p1?model=people&model=people").refused(400).contains("model"));
    assert!(served.get("/elsewhere").refused(404).contains("openapi.json"));
    assert!(served.get("/v2/models/people/versions/0000000000000000").refused(404).contains("version"));
    let wrong_way = ask(served.address, "DELETE", "/v1/nodes/p1", &[], b"");
    wrong_way.refused(405);
    assert!(wrong_way.head.contains("allow: get"), "{}", wrong_way.head);
    assert!(served.post("/v1/nodes", &json!({ "ids": [] })).refused(400).contains("no ids"));
    assert!(served.post("/v1/nodes", &json!({ "ids": ["p1", "nobody"] })).refused(404).contains("nobody"));
    assert!(served.post("/v1/nodes", &json!({ "names": [] })).refused(400).contains("unknown field"));
    let text = ask(served.address, "POST", "/v1/nodes", &[("content-type", "text/plain")], b"{}");
    assert!(text.refused(415).contains("application/json"));
    let rows = json!({ "rows": [{ "pay": 1, "town": "Oslo" }] });
    assert!(served.post("/v1/rows", &rows).refused(400).contains("age"));
    let input = |value: Value| json!({ "inputs": [value] });
    let other = json!({ "name": "height", "shape": [1], "datatype": "FP32", "data": [1] });
    assert!(served.post("/v2/models/people/infer", &input(other)).refused(400).contains("pay"));
    let id = json!({ "name": "id", "shape": [1], "datatype": "BYTES", "data": ["p1"] });
    let strange = json!({ "inputs": [id], "outputs": [{ "name": "logits" }] });
    assert!(served.post("/v2/models/people/infer", &strange).refused(400).contains("no output \"logits\""));
    let many: Vec<&str> = vec!["p1"; 100_001];
    assert!(served.post("/v1/nodes", &json!({ "ids": many })).refused(413).contains("100000"));
}

#[test]
fn the_protocol_describes_the_server_the_model_and_the_guarantee() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("people");
    edge_release(&folder);
    let release = Release::open(&folder).expect("a release");
    let mut served = serve(options(&[("people", folder.clone())]));
    assert_eq!(served.get("/v2").json()["name"], "progap");
    assert_eq!(served.get("/v2/health/live").json(), json!({ "live": true }));
    assert_eq!(served.get("/v2/health/ready").json(), json!({ "ready": true }));
    assert_eq!(served.get("/v2/models/people/ready").json()["ready"], true);
    let about = served.get("/v2/models/people").json();
    assert_eq!(about["platform"], "progap");
    assert_eq!(about["parameters"]["epsilon"], release.statement.epsilon.expect("an epsilon"));
    let inputs: Vec<&str> = about["inputs"]
        .as_array()
        .expect("inputs")
        .iter()
        .filter_map(|input| input["name"].as_str())
        .collect();
    assert_eq!(inputs, ["id", "pay", "town", "age"]);
    let version = about["versions"][0].as_str().expect("a version");
    assert_eq!(served.get(&format!("/v2/models/people/versions/{version}")).json(), about);
    let guarantee = served.get("/v1/guarantee").json();
    let written: Value =
        serde_json::from_slice(&std::fs::read(folder.join("privacy.json")).expect("read")).expect("JSON");
    assert_eq!(guarantee["statement"], written);
    assert_eq!(guarantee["release"], release.sha256());
    let openapi = served.get("/openapi.json").json();
    for path in
        ["/v2/models/{model}/infer", "/v1/nodes/{id}", "/v1/nodes", "/v1/rows", "/v1/guarantee", "/metrics"]
    {
        assert!(openapi["paths"][path].is_object(), "{path}");
    }
    // The page loads nothing from elsewhere.
    let page = served.get("/");
    assert!(page.head.contains("default-src 'none'") && page.text().contains("page.js"));
    for part in ["/page.js", "/page.css", "/"] {
        assert!(!served.get(part).text().contains("http"), "{part}");
    }
    served.stop();
    assert!(std::net::TcpStream::connect(served.address).is_err());
}

#[test]
fn an_export_without_rows_tells_no_node_and_every_promise() {
    let place = tempfile::tempdir().expect("a folder");
    let (folder, out) = (place.path().join("people"), place.path().join("export"));
    edge_release(&folder);
    let exported = Exported { date: "2026-01-31".parse::<Date>().expect("a day"), rows: false };
    export(&folder, &out, exported, &mut |_| Ok("<p>page</p>".into()), None).expect("an export");
    let served = serve(options(&[("people", out), ("whole", folder)]));
    assert!(served.get("/v1/nodes/p1?model=people").refused(404).contains("rows of the nodes"));
    assert!(served.get("/v1/nodes/p1").refused(400).contains("people, whole"));
    assert_eq!(served.get("/v1/guarantee?model=people").json()["exported"]["date"], "2026-01-31");
    assert_eq!(served.get("/v1/nodes/p1?model=whole").status, 200);
}
