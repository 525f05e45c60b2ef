//! The embedded default data set.

use super::{Class, Column, SocialNetwork};
use crate::{Dataset, Result};

/// The data set `demo`: a synthetic social network like a school of Facebook100, generated in a moment.
///
/// About 20,000 people and 1.3 million directed edges; the class is the year of entry. Shares, degrees, mixing of
/// years, attribute frequencies and missing values are round numbers near those of four schools (Berkeley13,
/// Cornell5, UNC28, Tennessee95, prepared as `fb:<School>`); no record of a real person went into it.
///
/// It is the same on every machine and never changes within a major version: its checksum is pinned by a test.
pub fn demo() -> Result<Dataset> {
    // name, share of the people, relative degree, relative share of friends from other years: the youngest
    // are new to the network and stick together; those who left have fewer friends and more from other years.
    let years = [
        ("2004", 0.08, 0.60, 1.45),
        ("2005", 0.16, 0.95, 1.20),
        ("2006", 0.18, 1.10, 1.15),
        ("2007", 0.20, 1.20, 0.95),
        ("2008", 0.21, 1.15, 0.75),
        ("2009", 0.17, 0.60, 0.40),
    ];
    let classes = years.map(|(name, share, sociability, openness)| Class {
        name: name.into(),
        share,
        sociability,
        openness,
    });
    SocialNetwork::new(20_000)
        .name("demo")
        .edges(1_300_000)
        .class_profiles(classes.into())
        .homophily(0.53)
        .drift(0.10)
        .columns(columns())
        .seed(2023)
        .generate()
}

/// The chances are those of the years 2004 to 2009.
fn columns() -> Vec<Column> {
    vec![
        // Students, those who left, and four rare kinds.
        Column::new("status")
            .pool(1, 0.0, [0.08, 0.32, 0.975, 0.98, 0.985, 0.99])
            .pool(1, 0.0, [0.89, 0.65, 0.0, 0.0, 0.0, 0.0])
            .pool(4, 3.0, [0.03, 0.03, 0.025, 0.02, 0.015, 0.01]),
        Column::new("gender").pool(2, 0.3, [0.97, 0.96, 0.96, 0.97, 0.98, 0.99]),
        // What one studies is fixed late, and fashions change a little.
        Column::new("major")
            .pool(35, 0.9, [0.25, 0.26, 0.28, 0.31, 0.34, 0.38])
            .pool(35, 0.9, [0.40, 0.39, 0.37, 0.33, 0.26, 0.23])
            .pool(35, 0.9, [0.31, 0.32, 0.33, 0.30, 0.26, 0.21])
            .tie(0.07),
        Column::new("minor").pool(105, 0.9, [0.42, 0.43, 0.45, 0.45, 0.43, 0.42]),
        // The youngest live in a few halls, the next in others, the rest in many small houses or say nothing.
        Column::new("dorm")
            .pool(20, 0.6, [0.01, 0.01, 0.01, 0.02, 0.08, 0.75])
            .pool(25, 0.8, [0.04, 0.04, 0.08, 0.13, 0.25, 0.03])
            .pool(145, 0.9, [0.15, 0.12, 0.16, 0.16, 0.13, 0.04])
            .tie(0.20),
    ]
}
