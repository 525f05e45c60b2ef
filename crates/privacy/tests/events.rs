//! Event trees: JSON in and out, and refusals that name the place.

use progap_privacy::accountant::{
    Accountant, Best, GdpAccountant, PldAccountant, RdpAccountant, TheoremAccountant,
};
use progap_privacy::{Error, Event, Unit, UnitEvent};

fn one_of_each() -> Event {
    let gaussian = Event::gaussian(2.0, 1.0).unwrap();
    Event::composed(vec![
        gaussian.clone(),
        Event::laplace(3.0, 1.0).unwrap(),
        Event::randomized_response(0.75, 0.25).unwrap(),
        gaussian.clone().poisson_sampled(0.1).unwrap().repeated(10).unwrap(),
        Event::parallel(vec![gaussian.clone(), Event::laplace(1.0, 1.0).unwrap()]).unwrap(),
        Event::sampled_without_replacement(1000, 10, 5, 4.0, 2.0).unwrap(),
        gaussian.selected(1.0, 0.1).unwrap(),
        Event::NonPrivate,
    ])
    .unwrap()
}

#[test]
fn json_round_trip() {
    let tree = one_of_each();
    assert_eq!(Event::from_json(&tree.to_json()).unwrap(), tree);
    let with_unit = UnitEvent { unit: Unit::EdgeUndirected, event: tree };
    assert!(with_unit.to_json().contains("\"edge-undirected\""));
    assert_eq!(UnitEvent::from_json(&with_unit.to_json()).unwrap(), with_unit);
    for unit in Unit::ALL {
        assert_eq!(unit.name().parse::<Unit>().unwrap(), unit);
    }
    assert!("nodes".parse::<Unit>().is_err());
}

#[test]
fn errors_name_the_node() {
    let text = r#"{"type": "composed", "events": [
        {"type": "gaussian", "sigma": 1.0, "sensitivity": 1.0},
        {"type": "non-private"},
        {"type": "self-composed", "count": 3, "event":
            {"type": "poisson-sampled", "rate": 1.5, "event": {"type": "gaussian", "sigma": 1.0, "sensitivity": 1.0}}}]}"#;
    let Err(Error::InvalidEvent { path, name, .. }) = Event::from_json(text) else { panic!("not refused") };
    assert_eq!((path.as_str(), name), ("event.events[2].event", "rate"));
}

#[test]
fn forged_json_is_refused() {
    let deep = format!(
        "{}{}{}",
        r#"{"type":"self-composed","count":1,"event":"#.repeat(60),
        r#"{"type":"non-private"}"#,
        "}".repeat(60)
    );
    let deeper = "[".repeat(1_000_000);
    let wide = format!(
        r#"{{"type":"composed","events":[{}]}}"#,
        vec![r#"{"type":"non-private"}"#; 20_000].join(",")
    );
    let cases = [
        "",
        "null",
        "{}",
        r#"{"type":"gaussian"}"#,
        r#"{"type":"gauss","sigma":1,"sensitivity":1}"#,
        r#"{"type":"gaussian","sigma":1,"sensitivity":1,"note":"x"}"#,
        r#"{"type":"gaussian","sigma":NaN,"sensitivity":1}"#,
        r#"{"type":"gaussian","sigma":1e999,"sensitivity":1}"#,
        r#"{"type":"gaussian","sigma":0,"sensitivity":1}"#,
        r#"{"type":"gaussian","sigma":-1,"sensitivity":1}"#,
        r#"{"type":"gaussian","sigma":1e300,"sensitivity":1e-300}"#,
        r#"{"type":"laplace","scale":0,"sensitivity":1}"#,
        r#"{"type":"randomized-response","true_positive":1.1,"false_positive":0}"#,
        r#"{"type":"poisson-sampled","rate":-0.1,"event":{"type":"non-private"}}"#,
        r#"{"type":"self-composed","count":0,"event":{"type":"non-private"}}"#,
        r#"{"type":"self-composed","count":-5,"event":{"type":"non-private"}}"#,
        r#"{"type":"self-composed","count":18446744073709551615,"event":{"type":"non-private"}}"#,
        r#"{"type":"self-composed","count":100000,"event":{"type":"self-composed","count":100000,"event":{"type":"non-private"}}}"#,
        r#"{"type":"parallel","events":[]}"#,
        r#"{"type":"sampled-without-replacement","population":10,"batch_size":11,"max_terms":1,"sigma":1,"term_sensitivity":1}"#,
        r#"{"type":"sampled-without-replacement","population":10,"batch_size":1,"max_terms":11,"sigma":1,"term_sensitivity":1}"#,
        r#"{"type":"private-selection","eta":-1,"gamma":0.5,"event":{"type":"non-private"}}"#,
        r#"{"type":"private-selection","eta":1,"gamma":0,"event":{"type":"non-private"}}"#,
        &deep,
        &deeper,
        &wide,
    ];
    for text in cases {
        let error = Event::from_json(text).expect_err(&text[..text.len().min(80)]);
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn constructors_refuse_what_makes_no_sense() {
    for sigma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(
            matches!(Event::gaussian(sigma, 1.0), Err(Error::InvalidEvent { name: "sigma", .. })),
            "{sigma}"
        );
    }
    let gaussian = Event::gaussian(1.0, 1.0).unwrap();
    for rate in [-0.1, 1.1, f64::NAN] {
        assert!(matches!(
            gaussian.clone().poisson_sampled(rate),
            Err(Error::InvalidEvent { name: "rate", .. })
        ));
    }
    assert!(matches!(gaussian.clone().repeated(0), Err(Error::InvalidEvent { name: "count", .. })));
    for accountant in [&GdpAccountant as &dyn Accountant, &PldAccountant::new(), &RdpAccountant::new(), &Best]
    {
        for delta in [0.0, 1.0, -1e-5, f64::NAN] {
            let refused = accountant.epsilon(&gaussian, delta);
            assert!(matches!(refused, Err(Error::InvalidParameter { name: "delta", .. })), "{delta}");
        }
        for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let refused = accountant.delta(&gaussian, epsilon);
            assert!(matches!(refused, Err(Error::InvalidParameter { name: "epsilon", .. })), "{epsilon}");
        }
        // A tree built by hand is checked as well.
        let forged = Event::Gaussian { sigma: 0.0, sensitivity: 1.0 };
        assert!(matches!(accountant.epsilon(&forged, 1e-5), Err(Error::InvalidEvent { .. })));
    }
}

#[test]
fn unsupported_nodes_are_named_with_a_way_out() {
    let gaussian = Event::gaussian(2.0, 1.0).unwrap();
    let sampled = gaussian.clone().poisson_sampled(0.1).unwrap();
    let tree = Event::composed(vec![gaussian.clone(), sampled]).unwrap();
    let refusal = GdpAccountant.supports(&tree).unwrap_err();
    assert_eq!((refusal.path.as_str(), refusal.node), ("event.events[1]", "poisson-sampled"));
    assert_eq!(refusal.supported_by, ["pld", "rdp", "theorem"]);
    let Err(Error::Unsupported(again)) = GdpAccountant.epsilon(&tree, 1e-5) else { panic!("not refused") };
    assert_eq!(again, refusal);

    let selected = gaussian.selected(1.0, 0.1).unwrap();
    assert_eq!(PldAccountant::new().supports(&selected).unwrap_err().supported_by, ["rdp"]);
    assert_eq!(TheoremAccountant.supports(&selected).unwrap_err().node, "private-selection");

    let laplace = Event::laplace(1.0, 1.0).unwrap().poisson_sampled(0.1).unwrap();
    let refusal = RdpAccountant::new().supports(&laplace).unwrap_err();
    assert_eq!((refusal.path.as_str(), refusal.supported_by), ("event.event", vec!["pld", "zcdp"]));

    // Nobody knows both: selection over a sampled Laplace.
    let refusal = Best.supports(&laplace.selected(1.0, 0.5).unwrap()).unwrap_err();
    assert!(refusal.supported_by.is_empty() && refusal.to_string().contains("no accountant"), "{refusal}");
}
