//! Labels as people have them: some are not known, and what says so differs.

#[path = "common/own.rs"]
mod own;

use own::{described, read, read_with};
use progap_formats::read::{Described, LoadOptions};
use progap_graph::{Part, Place, Problem, Ratios, UNLABELLED};

#[test]
fn labels_may_be_unknown_and_such_nodes_are_in_no_part() {
    for empty in ["", "NaN", "null", "nan", "NA", "n/a", "None", "<NA>", "?"] {
        let data = read(&format!("id,label,split\n1,b,train\n2,{empty},test\n3,a,val\n4,{empty},train\n"));
        assert_eq!(data.labels(), [1, UNLABELLED, 0, UNLABELLED], "{empty:?}");
        assert_eq!((data.labelled(), data.class_names()), (2, &["a".to_string(), "b".into()][..]));
        let split = data.split().unwrap();
        let parts = [0, 1, 2, 3].map(|node| split.part(node));
        assert_eq!(parts, [Part::Train, Part::Unused, Part::Val, Part::Unused]);
        assert_eq!((data.label(0), data.label(1)), (Some(1), None));
    }
}

#[test]
fn minus_one_is_no_class_among_whole_numbers() {
    assert_eq!(read("id,label\n1,0\n2,-1\n3,2\n").labels(), [0, UNLABELLED, 1]);
    // Among other labels it is one like any other.
    assert_eq!(read("id,label\n1,x\n2,-1\n3,y\n").class_names(), ["-1", "x", "y"]);
    assert_eq!(read("id,label\n1,-2\n2,-1\n3,1\n").class_names(), ["-2", "-1", "1"]);
}

#[test]
fn minus_one_beside_one_number_is_asked_about() {
    let nodes = "id,label\n1,1\n2,-1\n3,1\n";
    let error = read_with(nodes, &LoadOptions::default()).unwrap_err();
    assert!(matches!(error.problem(), Problem::AmbiguousLabel(_)), "{error}");
    assert_eq!(error.place(), Some(&Place::Column("label".into())));
    let with = |unknown: &str| {
        let mut options = LoadOptions::default();
        options.columns.unknown = Some(vec![unknown.into()]);
        read_with(nodes, &options).unwrap()
    };
    assert_eq!(with("-1").labels(), [0, UNLABELLED, 0]);
    assert_eq!(with("NA").class_names(), ["-1", "1"]);
}

/// pandas writes whole numbers with a point once one of them is missing.
#[test]
fn whole_floats_are_the_numbers_they_are() {
    let data = read("id,label\n1,0.0\n2,-1.0\n3,2.0\n4,\n5,2\n");
    assert_eq!(data.labels(), [0, UNLABELLED, 1, UNLABELLED, 1]);
    assert_eq!(data.class_names(), ["0", "2"]);
}

#[test]
fn a_label_that_is_measured_is_no_class() {
    let table = |label: &dyn Fn(usize) -> String| {
        let mut nodes = String::from("id,label\n");
        (0..300).for_each(|node| nodes += &format!("{node},{}\n", label(node)));
        read_with(&nodes, &LoadOptions::default())
    };
    let error = table(&|node| format!("{node}.5")).unwrap_err();
    assert!(matches!(error.problem(), Problem::NoClasses { values: 300, nodes: 300 }), "{error}");
    assert_eq!(error.place(), Some(&Place::Column("label".into())));
    assert!(table(&|node| format!("person {node}")).is_err());
    assert_eq!(table(&|node| format!("{}", (node % 9) as f64 / 2.0)).unwrap().classes(), 9);
    assert_eq!(table(&|node| format!("{}", node % 100)).unwrap().classes(), 100);
}

#[test]
fn words_for_no_value_are_told() {
    let Described { columns, .. } =
        described("id,label,town,age\n1,a,NA,3\n2,?,Ayr,NA\n3,NA,Bath,5\n4,NA,None,\n5,b,NA,6\n");
    assert_eq!(columns[1].note.as_deref(), Some("\"?\" (1 times), \"NA\" (2 times) taken as not known"));
    assert_eq!((columns[1].missing, columns[1].categories), (3, Some(2)));
    assert_eq!(columns[2].note.as_deref(), Some("\"NA\" (2 times), \"None\" (1 times) taken as not known"));
    assert_eq!((columns[2].missing, columns[2].features, columns[3].missing), (3, 2, 2));
    // A category that is declared is one, whatever it is called.
    let mut options = LoadOptions::default();
    options.columns.column("town").categories = Some(["NA", "Ayr"].map(String::from).to_vec());
    let data = read_with("id,label,town\n1,a,NA\n2,b,Ayr\n", &options).unwrap();
    assert_eq!(data.features().to_dense(2), [1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn a_column_may_say_which_labels_are_known() {
    for spelling in ["labelled", "Labeled"] {
        let data = read(&format!("id,label,{spelling},x\n1,a,true,1\n2,b,False,2\n3,c,1,3\n4,a,,4\n"));
        assert_eq!(data.labels(), [0, UNLABELLED, 1, UNLABELLED]);
        assert_eq!(data.class_names(), ["a", "c"], "a class that nobody is known to have is none");
        assert_eq!(data.feature_names(), ["x"]);
    }
    let wrong = read_with("id,label,labelled\n1,a,perhaps\n", &LoadOptions::default()).unwrap_err();
    assert_eq!(wrong.place(), Some(&Place::Cell { row: 2, column: "labelled".into() }));
}

#[test]
fn random_splits_are_drawn_over_labelled_nodes() {
    let mut nodes = String::from("id,label\n");
    (0..400).for_each(|node| nodes += &format!("{node},{}\n", ["x", "", "y", ""][node % 4]));
    let data = read(&nodes).with_random_split(Ratios::default(), 3).unwrap();
    let split = data.split().unwrap();
    assert_eq!(
        [Part::Train, Part::Val, Part::Test, Part::Unused].map(|p| split.count(p)),
        [150, 20, 30, 200]
    );
    assert!((0..400).all(|node| (split.part(node) == Part::Unused) == data.label(node).is_none()));
    assert_eq!(data.homophily(), None, "no edges");
}
