//! Graphs whose neighbours seldom share a class, with ten splits of their own (Platonov et al. 2023).

use super::{Counts, Entry, Origin, RemoteFile, Sha256Sum};

/// Name, what it is, counts (every edge in both directions), size and checksum of its file.
type Line = (&'static str, &'static str, [usize; 4], Option<(u64, &'static str)>);

const GRAPHS: [Line; 7] = [
    (
        "roman-empire",
        "words of an encyclopaedia article, connected where one follows another or depends on it, to predict their \
         role",
        [22_662, 65_854, 300, 18],
        None,
    ),
    (
        "amazon-ratings",
        "products, connected when bought together, to predict their mean rating",
        [24_492, 186_100, 300, 5],
        None,
    ),
    (
        "minesweeper",
        "cells of a grid, to predict which are mines",
        [10_000, 78_804, 7, 2],
        Some((135_045, "e664c8dacf1e8ac466c2c09ed4b237bd2c5541f47a6eae9c6092cb87f16412b3")),
    ),
    (
        "tolokers",
        "workers, connected where they did the same task, to predict who was banned",
        [11_758, 1_038_000, 10, 2],
        Some((1_329_769, "dacf3ac94cec53d03cd2adb5255c08b33dee1656c33ca8164a464bd9450a1667")),
    ),
    (
        "questions",
        "users, connected where one answered the other, to predict who stays",
        [48_921, 307_080, 301, 2],
        None,
    ),
    (
        "chameleon-filtered",
        "pages of an encyclopaedia, without copies, to predict their traffic",
        [890, 17_708, 2_325, 5],
        Some((58_924, "bf46f07e1fb5249280447e5fe3100f3e82fc4b93ad1e13ffcfdec924b6ac0bb5")),
    ),
    (
        "squirrel-filtered",
        "pages of an encyclopaedia, without copies, to predict their traffic",
        [2_223, 93_996, 2_089, 5],
        Some((208_215, "f06370ffb3116c5de8b7a600005400b2293c025e0ce2f6916d8201a825505ac7")),
    ),
];

/// All of them.
pub(super) fn entries() -> impl Iterator<Item = Entry> {
    GRAPHS.iter().map(|&(name, summary, [nodes, edges, features, classes], file)| {
        let file_name = format!("{}.npz", name.replace('-', "_"));
        Entry {
            name: name.into(),
            summary: summary.into(),
            source: Origin::Heterophilous,
            origin: "Platonov et al.: A critical look at the evaluation of GNNs under heterophily, ICLR 2023",
            licence: "MIT",
            files: vec![RemoteFile {
                url: format!(
                    "https://github.com/yandex-research/heterophilous-graphs/raw/main/data/{file_name}"
                ),
                path: file_name.into(),
                size: file.map(|(size, _)| size),
                about: None,
                sha256: file.and_then(|(_, digits)| Sha256Sum::from_hex(digits)),
                members: vec![],
            }],
            expected: Some(Counts { nodes, edges, features, classes }),
        }
    })
}
