//! Tables of nodes that come later, read as the table of training was.

#[path = "common/own.rs"]
#[allow(dead_code, reason = "not every test needs all of it")]
mod own;

use own::read;
use progap_formats::read::LoadOptions;
use progap_formats::read::columns::{ColumnChoice, ColumnKind, DateOrder};
use progap_formats::read::table::{Cell, LaterOptions, LaterRows, LaterTable, Schema, read_new_nodes};
use progap_formats::write::table::{ColumnValues, write_columns};
use progap_graph::{Dataset, Preparation};

fn later(table: &str, like: &Dataset) -> LaterRows {
    let schema = written(Schema::of(like).expect("a schema"));
    read_new_nodes(LaterTable::Csv(table.as_bytes()), &schema, &LaterOptions::default()).expect("a table")
}

/// A schema as it is after it was written and read.
fn written(schema: Schema) -> Schema {
    let text = serde_json::to_string(&schema).expect("JSON");
    let again: Schema = serde_json::from_str(&text).expect("a schema");
    assert_eq!(again, schema);
    again
}

fn values(read: &LaterRows) -> Vec<f32> {
    let rows = read.rows.as_ref().expect("a row that fits");
    rows.features().to_dense(rows.nodes())
}

#[test]
fn the_order_of_dates_is_kept_with_every_preparation() {
    let table = "id,label,when\n1,a,03/04/2020\n2,b,25/04/2020\n3,a,01/01/2000\n";
    let data = read(table);
    assert_eq!(data.numbers()[0].date, Some(DateOrder::DayFirst));
    let prepared = |how| data.clone().prepared(how).expect("columns at scale");
    let all = [
        prepared(Preparation::Standardise),
        prepared(Preparation::RowByRow),
        data.clone().unscaled().expect("as it is"),
    ];
    for like in all {
        assert_eq!(like.numbers()[0].date, Some(DateOrder::DayFirst));
        let own = like.features().to_dense(3);
        // Alone it would be taken for a month.
        assert_eq!(values(&later("id,when\nx,03/04/2020\n", &like)), own[..1]);
        let both = later("id,when\nx,2020-04-25\ny,04/25/2020\n", &like);
        assert_eq!(values(&both), own[1..2]);
        assert!(both.rejects[0].reason.contains("day first"), "{:?}", both.rejects);
    }
}

#[test]
fn a_row_is_read_by_itself_however_far_from_zero_its_numbers_are() {
    let rows: String = (0..50).map(|k| format!("{k},{},{}\n", k % 2, 1_600_000_000_000u64 + 7 * k)).collect();
    let mut options = LoadOptions::default();
    let number = ColumnChoice { kind: Some(ColumnKind::Number), ..ColumnChoice::default() };
    options.columns.columns.insert("time".into(), number);
    let like = own::read_with(&format!("id,label,time\n{rows}"), &options).expect("a table");
    let like = like.prepared(Preparation::Standardise).expect("a scale");
    let own = like.features().to_dense(50);
    for k in [0u64, 17, 49] {
        let alone = later(&format!("id,time\nx,{}\n", 1_600_000_000_000u64 + 7 * k), &like);
        assert!((values(&alone)[0] - own[k as usize]).abs() < 1e-5, "{k}");
    }
}

#[test]
fn columns_are_told_by_what_they_were_in_training() {
    let table = "id,label,code,smokes,age,group\n1,a,3,true,30,x\n2,b,4,false,,y\n3,a,3,true,50,x\n";
    let mut options = LoadOptions::default();
    options.categorical.push("code".into());
    let like = own::read_with(table, &options).expect("a table").prepared(Preparation::Standardise);
    let like = like.expect("a scale");
    let own = like.features().to_dense(3);
    let width = like.feature_names().len();
    // The same people in Parquet, which has types, and with other columns first.
    let folder = tempfile::tempdir().expect("a folder");
    let texts = |texts: [&str; 2]| ColumnValues::Text(texts.map(String::from).to_vec());
    let columns = [
        ("other".to_string(), ColumnValues::Numbers(vec![7.0, 8.0])),
        ("group".into(), texts(["x", "x"])),
        ("age".into(), ColumnValues::Numbers(vec![30.0, 50.0])),
        ("smokes".into(), texts(["true", "true"])),
        ("code".into(), ColumnValues::Numbers(vec![3.0, 3.0])),
        ("id".into(), texts(["one", "three"])),
    ];
    let file = folder.path().join("later.parquet");
    write_columns(&columns, &file).expect("written");
    let found = read_new_nodes(&*file, &Schema::of(&like).expect("a schema"), &LaterOptions::default())
        .expect("a table");
    assert!(found.rejects.is_empty(), "{:?}", found.rejects);
    assert_eq!(values(&found), [&own[..width], &own[2 * width..]].concat());
    // A number is no truth value, nor the other way round where numbers had a scale.
    let odd =
        later("id,code,smokes,age,group\nx,5,true,30,x\ny,4,0,true,x\nz,4,no,30,x\nw,4,false,NA,?\n", &like);
    let columns: Vec<(&str, &str)> =
        odd.rejects.iter().map(|reject| (&*reject.id, &*reject.column)).collect();
    assert_eq!(columns, [("x", "code"), ("y", "age"), ("z", "smokes")]);
    assert_eq!(
        odd.rejects.iter().map(|reject| (reject.position, reject.row)).collect::<Vec<_>>(),
        [(0, 2), (1, 3), (2, 4)]
    );
}

#[test]
fn columns_in_memory_are_read_as_a_table_of_text_is() {
    let like = read(
        "id,label,age,town,joined\n1,a,30,Oslo,2020-01-02\n2,b,,Rome,2021-03-04\n3,a,50,Oslo,2020-05-06\n4,b,60,Rome,2020-01-02\n",
    );
    let like = like.prepared(Preparation::Standardise).expect("a scale");
    let schema = Schema::of(&like).expect("a schema");
    let columns = [
        ("joined", vec![Cell::Untyped("2020-01-02"), Cell::Untyped("2021-03-04"), Cell::Untyped("soon")]),
        ("id", vec![Cell::Integer(7), Cell::Untyped("x"), Cell::Integer(9)]),
        ("age", vec![Cell::Number(41.5), Cell::Empty, Cell::Unsigned(3)]),
        ("other", vec![Cell::Bool(true); 3]),
        ("town", vec![Cell::Untyped("Rome"), Cell::Empty, Cell::Text("Oslo")]),
    ];
    let found =
        read_new_nodes(LaterTable::Columns(&columns), &schema, &LaterOptions::default()).expect("columns");
    let text = later("id,age,town,joined\n7,41.5,Rome,2020-01-02\nx,,,2021-03-04\n9,3,Oslo,soon\n", &like);
    assert_eq!(values(&found), values(&text));
    assert_eq!((found.rejects[0].row, text.rejects[0].row), (3, 4));
    assert_eq!(found.rejects[0].reason, text.rejects[0].reason);
    let uneven = [("id", vec![Cell::Integer(1)]), ("age", vec![])];
    assert!(read_new_nodes(LaterTable::Columns(&uneven), &schema, &LaterOptions::default()).is_err());
}

#[test]
fn a_schema_that_does_not_fit_together_is_refused() {
    let like = read("id,label,age\n1,a,30\n2,b,40\n").prepared(Preparation::Standardise).expect("a scale");
    let good = serde_json::to_value(Schema::of(&like).expect("a schema")).expect("JSON");
    let mut cases = vec![];
    for (key, value) in [
        ("version", serde_json::json!(2)),
        ("classes", serde_json::json!([])),
        ("width", serde_json::json!(3)),
        ("more", serde_json::json!(1)),
    ] {
        let mut other = good.clone();
        other[key] = value;
        cases.push(other);
    }
    let mut other = good.clone();
    other["numbers"][0]["column"] = 7.into();
    cases.push(other);
    for case in cases {
        assert!(serde_json::from_value::<Schema>(case.clone()).is_err(), "{case}");
    }
}
