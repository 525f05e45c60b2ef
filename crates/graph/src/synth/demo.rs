//! The embedded default data set.

use super::{Class, Column, SocialNetwork};
use crate::{Dataset, Result};

/// The data set `demo`: a synthetic social network like a school of Facebook100, generated in a moment.
///
/// About 20,000 people and 1.3 million directed edges; the class is the year of entry. Shares, degrees, mixing of
/// years, attribute frequencies and missing values are round numbers near those of four schools (Berkeley13,
/// Cornell5, UNC28, Tennessee95, prepared as `fb:<School>`); no record of a real person went into it.
///
/// | | `demo` | Berkeley13 |
/// |---|---|---|
/// | nodes, directed edges, one-hot features | 20,000, 1.30 M, 428 | 18,939, 1.35 M, 437 |
/// | degree quantiles 5, 25, 50, 75, 95, 99 % | 5, 25, 50, 85, 181, 285 | 5, 26, 54, 97, 192, 305 |
/// | edges within a year | 0.55 | 0.52 |
/// | accuracy: largest class | 0.22 | 0.20 |
/// | accuracy: logistic regression on the features | 0.50 | 0.51 |
/// | accuracy: the same with shares of training labels among neighbours | 0.87 | 0.85 |
///
/// Unlike at a school, neighbours of neighbours are seldom neighbours beyond what years, majors and dormitories
/// explain: the clustering coefficient is 0.02, not 0.2.
///
/// It is the same on every machine and never changes within a major version: its checksum is pinned by a test.
pub fn demo() -> Result<Dataset> {
    // name, share of the people, relative degree, relative share of neighbours from other years: the youngest
    // are new to the network and stick together; those who left have fewer neighbours and more from other years.
    let years = [
        ("2004", 0.08, 0.60, 1.50),
        ("2005", 0.16, 0.95, 1.20),
        ("2006", 0.18, 1.10, 1.20),
        ("2007", 0.20, 1.20, 1.00),
        ("2008", 0.21, 1.15, 0.75),
        ("2009", 0.17, 0.55, 0.05),
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
        .homophily(0.55)
        .drift(0.12)
        .spread(0.72)
        .columns(columns())
        .seed(2023)
        .generate()
}

/// The chances are those of the years 2004 to 2009.
fn columns() -> Vec<Column> {
    vec![
        // Students, those who left, and four rare kinds.
        Column::new("status")
            .pool(1, 0.0, [0.08, 0.34, 0.975, 0.98, 0.985, 0.99])
            .pool(1, 0.0, [0.89, 0.63, 0.0, 0.0, 0.0, 0.0])
            .pool(4, 3.0, [0.03, 0.03, 0.025, 0.02, 0.015, 0.01]),
        Column::new("gender").pool(2, 0.3, [0.97, 0.96, 0.96, 0.97, 0.98, 0.99]),
        // A major is fixed late, and fashions change a little.
        Column::new("major")
            .pool(35, 1.1, [0.25, 0.25, 0.26, 0.31, 0.36, 0.38])
            .pool(35, 1.1, [0.40, 0.40, 0.40, 0.32, 0.24, 0.23])
            .pool(35, 1.1, [0.31, 0.32, 0.33, 0.30, 0.26, 0.21])
            .tie(0.05),
        Column::new("minor").pool(105, 0.7, [0.42, 0.43, 0.45, 0.45, 0.43, 0.42]),
        // The youngest live in a few halls, the next in others, the rest in many small houses or say nothing.
        Column::new("dorm")
            .pool(20, 0.6, [0.01, 0.01, 0.01, 0.01, 0.04, 0.82])
            .pool(25, 0.8, [0.03, 0.03, 0.05, 0.14, 0.36, 0.02])
            .pool(165, 0.9, [0.16, 0.12, 0.18, 0.17, 0.12, 0.03])
            .tie(0.12),
    ]
}
