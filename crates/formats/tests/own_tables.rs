//! Tables as people have them: labels that are not known, columns in any unit, dates, texts, other people's separators.

#[path = "common/own.rs"]
mod own;

use own::{described, read, read_with};
use progap_formats::read::columns::{Bound, ColumnKind, DateOrder};
use progap_formats::read::{Described, LoadOptions};
use progap_graph::scale::{Curve, Map};
use progap_graph::{Dataset, InferenceKind, Place, Preparation, Problem, store, transform};

#[test]
fn missing_numbers_are_zero_beside_an_indicator() {
    let data = read("id,label,age,pay\n1,a,30,\n2,b,,2.5\n3,a,50,3.5\n");
    assert_eq!(data.feature_names(), ["age", "age missing", "pay", "pay missing"]);
    let expected = [30.0, 0.0, 0.0, 1.0, 0.0, 1.0, 2.5, 0.0, 50.0, 0.0, 3.5, 0.0];
    assert_eq!(data.features().to_dense(3), expected);
    assert_eq!(
        data.numbers().iter().map(|n| (n.column, n.missing)).collect::<Vec<_>>(),
        [(0, Some(1)), (2, Some(3))]
    );
    // Standardised, a missing value is the mean of the others, which is 0.
    let standard = data.prepared(Preparation::Standardise).unwrap();
    assert_eq!(
        standard.features().to_dense(3),
        [-1.0, 0.0, 0.0, 1.0, 0.0, 1.0, -1.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    );
}

#[test]
fn separators_decimal_commas_and_index_columns_are_recognised() {
    let data = read(";id;label;pay\n0;7;a;1,5\n1;8;b;2,5\n");
    assert_eq!(
        (data.feature_names(), data.features().to_dense(2)),
        (&["pay".to_string()][..], vec![1.5, 2.5])
    );
    let tabs = read("Unnamed: 0\tid\tlabel\tx\n0\t7\ta\t3\n");
    assert_eq!((tabs.feature_names(), tabs.node_ids().name(0)), (&["x".to_string()][..], "7".to_string()));
    // Where no column is called an id, the index is.
    let index = read(",label,x\nann,a,3\nbob,b,4\n");
    assert_eq!(
        (index.node_ids().name(1), index.feature_names()),
        ("bob".to_string(), &["x".to_string()][..])
    );
    let other = read("node_id,class,x\n5,a,3\n");
    assert_eq!((other.node_ids().name(0), other.class_names()), ("5".to_string(), &["a".to_string()][..]));
}

#[test]
fn dates_become_days_and_texts_that_only_look_alike_stay() {
    let data = read("id,label,joined\n1,a,2000-01-02\n2,b,\n3,b,2024-02-29 12:00\n");
    assert_eq!(data.feature_names(), ["joined", "joined missing"]);
    assert_eq!(data.features().to_dense(3), [1.0, 0.0, 0.0, 1.0, 8825.5, 0.0]);
    let mixed = read("id,label,joined\n1,a,2000-01-02\n2,b,soon\n");
    assert_eq!(mixed.feature_names(), ["joined=2000-01-02", "joined=soon"]);
    let mut options = LoadOptions::default();
    options.columns.column("joined").kind = Some(ColumnKind::Date);
    let error = read_with("id,label,joined\n1,a,2000-01-02\n2,b,soon\n", &options).unwrap_err();
    assert_eq!(error.place(), Some(&Place::Cell { row: 3, column: "joined".into() }));
    assert!(error.to_string().contains("\"soon\" is not a date"), "{error}");
}

#[test]
fn dates_are_read_in_the_order_that_the_column_tells() {
    let column = |values: &[&str]| {
        let row = |(at, value): (usize, &&str)| format!("{at},{},{value}\n", at % 2);
        format!("id,label,when\n{}", values.iter().enumerate().map(row).collect::<String>())
    };
    assert_eq!(read(&column(&["02/01/2000", "31/01/2000"])).features().to_dense(2), [1.0, 30.0]);
    assert_eq!(read(&column(&["01/02/2000", "01/31/2000"])).features().to_dense(2), [1.0, 30.0]);
    let either = column(&["01/02/2000", "02/03/2000"]);
    let error = read_with(&either, &LoadOptions::default()).unwrap_err();
    assert!(matches!(error.problem(), Problem::AmbiguousDate(_)), "{error}");
    let mut options = LoadOptions::default();
    options.columns.column("when").order = Some(DateOrder::DayFirst);
    assert_eq!(read_with(&either, &options).unwrap().features().to_dense(2), [31.0, 61.0]);
    // Where most are dates, what is none is an error with its row.
    for bad in ["2000-02-31", "unknown"] {
        let nodes = column(&["2000-01-02", "2000-01-03", bad, "NA"]);
        let error = read_with(&nodes, &LoadOptions::default()).unwrap_err();
        assert!(matches!(error.problem(), Problem::NotADate(_)), "{error}");
        assert_eq!(error.place(), Some(&Place::Cell { row: 4, column: "when".into() }));
    }
    for signs in [["$1.20", "$2"], ["12%", "7"], ["\"1,234.50\"", "\"2,000.00\""]] {
        let error = read_with(&column(&signs), &LoadOptions::default()).unwrap_err();
        assert!(matches!(error.problem(), Problem::DressedNumber(_)), "{error}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    let refused = |say: &dyn Fn(&mut LoadOptions), what: &str| {
        let mut options = LoadOptions::default();
        say(&mut options);
        let error = read_with("id,label,a,b\n1,x,1,2\n2,y,3,4\n", &options).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    refused(
        &|o| (o.columns.drop, o.columns.keep) = (vec!["a".into()], vec!["a".into()]),
        "kept and to be left out",
    );
    refused(&|o| o.columns.max_categories = Some(0), "at least one is needed");
    refused(&|o| o.columns.column("a").max_categories = Some(0), "at least one is needed");
    let bounds = || Some([0.0, 1.0].map(Bound::Number));
    refused(
        &|o| {
            o.columns.column("a").kind = Some(ColumnKind::Drop);
            o.columns.column("a").bounds = bounds();
        },
        "left out, and bounds are declared",
    );
    refused(
        &|o| {
            o.columns.drop = vec!["a".into()];
            o.columns.column("a").kind = Some(ColumnKind::Number);
        },
        "left out, and its kind is declared",
    );
    refused(
        &|o| {
            o.columns.column("a").kind = Some(ColumnKind::Category);
            o.columns.column("a").bounds = bounds();
        },
        "bounds are declared, which a column of the kind category has not",
    );
    refused(
        &|o| {
            o.categorical = vec!["a".into()];
            o.columns.column("a").kind = Some(ColumnKind::Number);
        },
        "declared categorical, and something else",
    );
}

#[test]
fn nearly_unique_texts_are_refused_unless_the_user_says_what_they_are() {
    let mut nodes = String::from("id,label,name\n");
    (0..60).for_each(|node| nodes += &format!("{node},{},Person {node}\n", ["x", "y"][node % 2]));
    let error = read_with(&nodes, &LoadOptions::default()).unwrap_err();
    assert!(matches!(error.problem(), Problem::NearlyUnique { values: 60, nodes: 60, .. }), "{error}");
    assert_eq!(error.place(), Some(&Place::Column("name".into())));
    assert!(error.to_string().contains("leave the column out, hash its words"), "{error}");

    let with = |kind: ColumnKind| {
        let mut options = LoadOptions::default();
        options.columns.column("name").kind = Some(kind);
        read_with(&nodes, &options).unwrap()
    };
    assert_eq!(with(ColumnKind::Drop).features().columns(), 0);
    assert_eq!(with(ColumnKind::Category).features().columns(), 60);
    let words = with(ColumnKind::Text);
    assert_eq!((words.features().columns(), words.numbers().len()), (64, 0));
    // Everybody has the word "person", and all but few one more.
    let sums: Vec<usize> =
        (0..60).map(|node| words.features().row(node).filter(|(_, v)| *v == 1.0).count()).collect();
    assert!(sums.iter().all(|&words| words == 2 || words == 1), "{sums:?}");
}

#[test]
fn categories_are_cut_listed_or_declared() {
    let nodes = "id,label,town\n1,a,Ayr\n2,b,Bath\n3,a,Ayr\n4,a,Crewe\n5,b,Bath\n6,b,\n";
    let names = |options: &LoadOptions| read_with(nodes, options).unwrap().feature_names().to_vec();
    let mut options = LoadOptions::default();
    options.columns.max_categories = Some(2);
    assert_eq!(names(&options), ["town=Ayr", "town=Bath", "town=other"]);
    let mut options = LoadOptions::default();
    options.columns.column("town").categories = Some(["Dover", "other", "Ayr"].map(String::from).to_vec());
    assert_eq!(names(&options), ["town=Dover", "town=other", "town=Ayr"]);
    options.columns.column("town").categories = Some(["Ayr", "Bath"].map(String::from).to_vec());
    let error = read_with(nodes, &options).unwrap_err();
    assert_eq!(error.place(), Some(&Place::Cell { row: 5, column: "town".into() }));
    assert!(error.to_string().contains("\"Crewe\" is none of the declared categories"), "{error}");
    let mut unknown = LoadOptions::default();
    unknown.columns.drop = vec!["twon".into()];
    let error = read_with(nodes, &unknown).unwrap_err().to_string();
    assert!(error.contains("no column \"twon\" (found: id, label, town)"), "{error}");
    unknown.columns.drop = vec!["label".into()];
    assert!(read_with(nodes, &unknown).unwrap_err().to_string().contains("no feature"));
}

#[test]
fn what_nobody_declared_is_listed_with_the_data() {
    let nodes =
        "id,label,town,age,joined\n1,a,Ayr,30,2000-01-11\n2,b,Bath,,2000-01-01\n3,a,Cork,20,2000-01-02\n";
    let list = |data: &Dataset| -> Vec<(String, InferenceKind)> {
        data.undeclared().iter().map(|undeclared| (undeclared.column.clone(), undeclared.what)).collect()
    };
    let named = |what: &[(&str, InferenceKind)]| -> Vec<(String, InferenceKind)> {
        what.iter().map(|(column, what)| (column.to_string(), *what)).collect()
    };
    let mut options = LoadOptions::default();
    let data = read_with(nodes, &options).unwrap();
    use InferenceKind::{Categories, Missing, MostFrequent};
    assert_eq!(list(&data), named(&[("town", Categories), ("age", Missing), ("joined", Missing)]));
    // It goes where the data goes.
    let folder = tempfile::tempdir().unwrap();
    store::write(&data, &folder.path().join("g.progap")).unwrap();
    assert_eq!(store::open(&folder.path().join("g.progap")).unwrap().undeclared(), data.undeclared());
    let part = transform::induced_subgraph(&data, &[2, 0]).unwrap();
    assert_eq!(part.undeclared(), data.undeclared());

    options.columns.max_categories = Some(2);
    let cut = read_with(nodes, &options).unwrap();
    assert_eq!(list(&cut), named(&[("town", MostFrequent), ("age", Missing), ("joined", Missing)]));
    options.columns.max_categories = Some(3);
    assert_eq!(list(&read_with(nodes, &options).unwrap()), list(&data), "nothing was cut");

    let mut options = LoadOptions::default();
    options.columns.column("town").categories = Some(["Ayr", "other"].map(String::from).to_vec());
    options.columns.column("age").missing = Some(true);
    options.columns.column("joined").missing = Some(true);
    let declared = read_with(nodes, &options).unwrap();
    assert_eq!(list(&declared), []);
    let names = ["town=Ayr", "town=other", "age", "age missing", "joined", "joined missing"];
    assert_eq!(declared.feature_names(), names, "an indicator is there though no date is missing");
    options.columns.column("age").missing = Some(false);
    let error = read_with(nodes, &options).unwrap_err();
    assert_eq!(error.place(), Some(&Place::Cell { row: 3, column: "age".into() }), "{error}");
    options.columns.column("age").kind = Some(ColumnKind::Drop);
    options.columns.column("joined").missing = Some(false);
    assert_eq!(read_with(nodes, &options).unwrap().feature_names(), ["town=Ayr", "town=other", "joined"]);
}

#[test]
fn only_columns_that_are_kept_become_features() {
    let mut options = LoadOptions::default();
    options.columns.keep = vec!["b".into()];
    assert_eq!(read_with("id,label,a,b,c\n1,x,1,2,3\n", &options).unwrap().feature_names(), ["b"]);
}

#[test]
fn bounds_are_declared_per_column_and_values_beyond_are_brought_to_them() {
    let nodes = "id,label,age,joined\n1,a,30,2000-01-11\n2,b,150,2000-01-01\n3,a,-2,2000-01-21\n";
    let mut options = LoadOptions::default();
    options.columns.column("age").bounds = Some([Bound::Number(0.0), Bound::Number(120.0)]);
    let dates = ["2000-01-01", "2000-01-21"].map(|date| Bound::Date(date.into()));
    options.columns.column("joined").bounds = Some(dates);
    let data = read_with(nodes, &options).unwrap();
    let by_row = data.clone().prepared(Preparation::RowByRow).unwrap();
    assert_eq!(by_row.features().to_dense(3), [-0.5, 0.0, 1.0, -1.0, -1.0, 1.0]);
    assert_eq!(by_row.numbers()[0].map, Some(Map::Bounds { low: 0.0, high: 120.0 }));
    let standard = data.prepared(Preparation::Standardise).unwrap();
    let ages: Vec<f32> = standard.features().to_dense(3).into_iter().step_by(2).collect();
    assert!((ages[1] - ages[2]).abs() > 2.0 && ages.iter().sum::<f32>().abs() < 1e-5, "{ages:?}");
    for (bad, what) in [([5.0, 5.0], "not below"), ([0.0, f64::NAN], "not finite")] {
        options.columns.column("age").bounds = Some(bad.map(Bound::Number));
        let error = read_with(nodes, &options).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert_eq!(error.place(), Some(&Place::Column("age".into())));
    }
    options.columns.column("age").bounds = Some(["young", "old"].map(|date| Bound::Date(date.into())));
    assert!(read_with(nodes, &options).unwrap_err().to_string().contains("\"young\" is not a date"));
}

/// A log-normal column lies near its lower bound; its logarithm does not. What decides is declared, and no value has a
/// say.
#[test]
fn positive_bounds_that_are_far_apart_are_taken_on_a_scale_of_logarithms() {
    let nodes = "id,label,price\n1,a,1\n2,b,100\n3,a,10000\n4,b,0\n5,a,1e9\n";
    let mapped = |bounds: [f64; 2], log: Option<bool>| {
        let mut options = LoadOptions::default();
        let column = options.columns.column("price");
        (column.bounds, column.log) = (Some(bounds.map(Bound::Number)), log);
        read_with(nodes, &options).map(|data| data.prepared(Preparation::RowByRow).unwrap())
    };
    let values = |bounds, log| mapped(bounds, log).unwrap().features().to_dense(5);
    let near = |found: &[f32], expected: [f32; 5]| {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3), "{found:?}");
    };
    near(&values([1.0, 1e4], None), [-1.0, 0.0, 1.0, -1.0, 1.0]);
    near(&values([1.0, 1e4], Some(false)), [-1.0, -0.980_2, 1.0, -1.0, 1.0]);
    near(&values([1.0, 900.0], None), [-1.0, -0.779_8, 1.0, -1.0, 1.0]);
    near(&values([1.0, 900.0], Some(true)), [-1.0, 0.353_9, 1.0, -1.0, 1.0]);
    near(&values([-1e4, 1e4], None), [0.0001, 0.01, 1.0, 0.0, 1.0]);
    let kept = mapped([1.0, 1e4], None).unwrap();
    assert_eq!(kept.numbers()[0].map, Some(Map::LogBounds { low: 1.0, high: 1e4 }));
    let error = mapped([0.0, 1e4], Some(true)).unwrap_err();
    assert!(error.to_string().contains("above 0"), "{error}");
    assert_eq!(error.place(), Some(&Place::Column("price".into())));
}

#[test]
fn what_became_of_each_column_is_told() {
    let Described { columns, .. } =
        described(",id,label,age,town,on\n0,1,a,30,Ayr,true\n1,2,,,Bath,false\n2,3,b,55,,true\n");
    let kinds: Vec<_> = columns.iter().map(|c| (c.name.as_str(), c.kind, c.missing, c.features)).collect();
    let expected = [
        ("Unnamed: 0", "not used", 0, 0),
        ("id", "id", 0, 0),
        ("label", "label", 1, 0),
        ("age", "number", 1, 2),
        ("town", "category", 1, 2),
        ("on", "switch", 0, 1),
    ];
    assert_eq!(kinds, expected);
    assert_eq!((columns[3].range, columns[4].categories), (Some([30.0, 55.0]), Some(2)));
}

/// Columns in any unit, shifted, and log-normal ones become the same numbers where whole columns may be looked at.
#[test]
fn standardised_columns_do_not_depend_on_their_unit() {
    let z = |node: usize| f64::from((node * 7919 % 1000) as u32) / 500.0 - 1.0;
    let column = |map: &dyn Fn(f64) -> f64| {
        let mut nodes = String::from("id,label,x\n");
        (0..1000).for_each(|node| nodes += &format!("{node},{},{:e}\n", node % 2, map(z(node))));
        let data = read(&nodes).prepared(Preparation::Standardise).unwrap();
        (data.features().to_dense(1000), data.numbers()[0].map)
    };
    let (plain, _) = column(&|z| z);
    for unit in [1e-6, 1e6, -3.0] {
        let (other, _) = column(&|z| z * unit);
        let sign = if unit < 0.0 { -1.0 } else { 1.0 };
        assert!(plain.iter().zip(&other).all(|(a, b)| (a - sign * b).abs() < 1e-4), "{unit}");
    }
    let (shifted, _) = column(&|z| 1000.0 + z);
    assert!(plain.iter().zip(&shifted).all(|(a, b)| (a - b).abs() < 1e-3));
    for unit in [1e-6, 1.0, 1e6] {
        let (log_normal, map) = column(&|z| (5.0 * z).exp() * unit);
        assert!(matches!(map, Some(Map::Standard { curve: Curve::Log { .. }, .. })), "{map:?}");
        assert!(plain.iter().zip(&log_normal).all(|(a, b)| (a - b).abs() < 1e-3), "{unit}");
    }
}

/// 32 bits tell numbers around 1e8 apart by eights; what is standardised was read in 64.
#[test]
fn a_column_far_from_zero_keeps_its_differences() {
    let z = |node: usize| f64::from((node * 7919 % 1000) as u32) / 500.0 - 1.0;
    let table = |shift: f64| {
        let mut nodes = String::from("id,label,x,y\n");
        for node in 0..1000 {
            let y = if node % 7 == 0 { String::new() } else { format!("{}", shift - z(node)) };
            nodes += &format!("{node},{},{},{y}\n", node % 2, shift + z(node));
        }
        read(&nodes)
    };
    let standard = |data: Dataset| data.prepared(Preparation::Standardise).unwrap();
    let plain = standard(table(0.0)).features().to_dense(1000);
    for shift in [1e4, 1e6, 1e7, 1e8, -1e8] {
        let data = table(shift);
        let shifted = standard(data.clone());
        assert!(shifted.numbers().iter().all(|number| number.origin.is_none() && number.map.is_some()));
        let values = shifted.features().to_dense(1000);
        let worst = plain.iter().zip(&values).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-5, "{shift}: {worst}");
        // Kept in our own files, and in other people's as they read it.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("far.progap");
        progap_graph::store::write(&data, &path).unwrap();
        assert_eq!(standard(progap_graph::store::open(&path).unwrap()).features().to_dense(1000), values);
        let path = folder.path().join("far.npz");
        progap_formats::write::npz::write(&data, &path).unwrap();
        let other = progap_formats::read::npz::read(&path).unwrap();
        assert_eq!(other.features().to_dense(1000)[0], (shift + z(0)) as f32);
        // Rows that come later are mapped in the same way, and numbers as they are have no origin.
        let later = table(shift).prepared_as(shifted.numbers()).unwrap();
        assert_eq!(later.features().to_dense(1000), values);
        assert_eq!(
            table(shift).prepared_as(&[]).unwrap().features(),
            data.clone().unscaled().unwrap().features()
        );
    }
}

/// At node level a value is rounded by itself: no number in the midst of all rows has a say in it.
#[test]
fn an_origin_leaves_no_trace_at_node_level() {
    let with = |last: &str| {
        let mut nodes = String::from("id,label,x\n");
        for node in 0..2000 {
            nodes +=
                &format!("{node},{},{}\n", node % 2, 16_777_216.0 + f64::from(node * 7919 % 1013) / 101.3);
        }
        read(&format!("{nodes}2000,0,{last}\n"))
    };
    let plain = with("0");
    assert!(plain.numbers()[0].origin.is_none());
    for last in ["16777219.123", "17000000.7", "16777216"] {
        let data = with(last);
        assert!(data.numbers()[0].origin.is_some(), "{last}");
        for how in [Preparation::RowByRow, Preparation::Declared] {
            let (one, other) = (data.clone().prepared(how).unwrap(), plain.clone().prepared(how).unwrap());
            assert_eq!(one.numbers(), other.numbers());
            assert!((0..2000).all(|node| one.features().row(node).eq(other.features().row(node))));
        }
    }
}

/// At node level nothing is computed over rows: what one row holds changes no other.
#[test]
fn row_by_row_a_node_s_value_changes_no_other_row() {
    let with = |pay: &str| {
        let nodes = format!("id,label,pay,age\n1,a,1200.5,30\n2,b,-7,\n3,a,{pay},50\n");
        read(&nodes).prepared(Preparation::RowByRow).unwrap()
    };
    let (one, other) = (with("3"), with("1e9"));
    for node in 0..2 {
        assert!(one.features().row(node).eq(other.features().row(node)));
    }
    assert_eq!(one.numbers(), other.numbers());
    let pay = one.features().to_dense(3)[0];
    assert!((f64::from(pay) - 1201.5f64.log2()).abs() < 1e-5, "{pay}");
    assert_eq!(one.features().row(2).next(), Some((0, 2.0)), "log2(1 + 3)");
}

/// Maps learnt from columns are kept, and apply to rows that come later in the same way.
#[test]
fn maps_are_kept_in_files_and_apply_to_other_rows() {
    let trained = read("id,label,pay\n1,a,10\n2,,20\n3,b,60\n").prepared(Preparation::Standardise).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trained.progap");
    progap_graph::store::write(&trained, &path).unwrap();
    let kept = progap_graph::store::open(&path).unwrap();
    assert_eq!(kept, trained);
    let path = folder.path().join("trained.npz");
    progap_formats::write::npz::write(&trained, &path).unwrap();
    assert_eq!(progap_formats::read::npz::read(&path).unwrap().named(""), trained);
    let later = read("id,label,pay\n9,a,20\n8,b,70\n").prepared_as(kept.numbers()).unwrap();
    let (old, new) = (kept.features().to_dense(3), later.features().to_dense(2));
    assert_eq!(old[1], new[0]);
    assert!(new[1] > old[2]);
    assert_eq!(later.clone().prepared(Preparation::Standardise).unwrap(), later, "done once");
}

#[test]
fn one_hot_columns_and_words_stay_as_they_are() {
    let nodes = "id,label,town,a,b\n1,x,Ayr,1,0\n2,y,Bath,0,1\n3,x,Ayr,1,1\n";
    let data = read(nodes);
    assert!(data.numbers().is_empty());
    for how in [Preparation::Standardise, Preparation::RowByRow] {
        assert_eq!(data.clone().prepared(how).unwrap(), data);
    }
}
