//! Facebook100: the edges and attributes of a hundred American colleges in September 2005, one `.mat`
//! file per school, prepared as in the published experiments.
//!
//! A file holds the sparse matrix `A` (used as a pattern: entries may be other than 1) and the table
//! `local_info` with one row per person: status, gender, major, minor, dorm, year and high school, as codes.
//! High school is never used. Code 0 means missing.
//!
//! One attribute is the target; the others are one-hot features, with a column for each code that occurs in
//! any row of the files. People whose target is missing go; then the data are split, rare classes filtered,
//! self-loops and isolated nodes removed ([`crate::prepare::prepare_as_published`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::LoadOptions;
use super::mat::{self, Array, Pattern, Table};
use crate::{
    Dataset, DatasetParts, Features, Graph, InFile, NodeIds, Place, Problem, Ratios, Result, Split, file,
    prepare, transform,
};

/// An attribute of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// Student, faculty, alumni and the like.
    Status = 0,
    /// Gender.
    Gender = 1,
    /// Major.
    Major = 2,
    /// Second major or minor.
    Minor = 3,
    /// Dormitory or house.
    Dorm = 4,
    /// The year of graduation.
    Year = 5,
}

impl Attribute {
    /// All attributes, in the order of the files' columns.
    pub const ALL: [Attribute; 6] = [
        Attribute::Status,
        Attribute::Gender,
        Attribute::Major,
        Attribute::Minor,
        Attribute::Dorm,
        Attribute::Year,
    ];

    /// The name in column names and on the command line.
    pub fn name(self) -> &'static str {
        ["status", "gender", "major", "minor", "dorm", "year"][self as usize]
    }

    /// The attribute of that name.
    pub fn from_name(name: &str) -> Option<Attribute> {
        Attribute::ALL.into_iter().find(|attribute| attribute.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which people have no class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Those whose target is 0 or negative.
    NotPositive,
    /// As the published experiments did it: if 0 occurs, those with the *smallest* value. That is 0, unless a
    /// negative value occurs: then 0 becomes a class, called "missing".
    ///
    /// In the real files just one record has one: a year of -80085 at UChicago30.
    LowestIfZeroOccurs,
}

/// How to make a data set from schools.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The attribute to be predicted.
    pub target: Attribute,
    /// The attributes that become features, except the target.
    pub attributes: Vec<Attribute>,
    /// Classes with fewer people are left out; if not given, [`Recipe::CLASS_COUNT_PER_SCHOOL`] for each school
    /// that is read.
    pub min_class_count: Option<usize>,
    /// Which people have no class.
    pub missing: Missing,
    /// The seed of the random split.
    pub seed: u64,
}

impl Recipe {
    /// The published thresholds are 1,000 people for one school and 100,000 for the hundred. Fewer schools
    /// than a hundred get the same threshold for each of them, so that the same years pass.
    pub const CLASS_COUNT_PER_SCHOOL: usize = 1000;

    /// The recipe for one school: all attributes, the year as target.
    pub fn one_school() -> Recipe {
        Recipe {
            target: Attribute::Year,
            attributes: Attribute::ALL.to_vec(),
            min_class_count: None,
            missing: Missing::NotPositive,
            seed: 0,
        }
    }

    /// The published recipe for all schools: without minor and dorm, whose codes differ between schools.
    pub fn all_schools() -> Recipe {
        use Attribute::{Gender, Major, Status, Year};
        Recipe {
            attributes: vec![Status, Gender, Major, Year],
            missing: Missing::LowestIfZeroOccurs,
            ..Recipe::one_school()
        }
    }

    /// The recipe with what the user wants otherwise: the target, the threshold, the seed.
    pub fn with_options(mut self, options: &LoadOptions) -> Result<Recipe> {
        options.expect_no_columns(true)?;
        options.expect_own_labels()?;
        if let Some(name) = &options.label_column {
            self.target = Attribute::from_name(name).ok_or_else(|| Problem::Missing {
                what: format!("attribute {name:?}"),
                found: Attribute::ALL.map(Attribute::name).join(", "),
            })?;
        }
        self.min_class_count = options.min_class_count.or(self.min_class_count);
        self.seed = options.seed;
        Ok(self)
    }

    fn features(&self) -> BTreeSet<Attribute> {
        self.attributes.iter().copied().filter(|&attribute| attribute != self.target).collect()
    }
}

/// A school as it stands in its file.
#[derive(Debug, Clone, PartialEq)]
pub struct School {
    graph: Graph,
    codes: [Vec<i32>; 6],
}

impl School {
    /// Reads a school's `.mat` file.
    pub fn read(path: &Path) -> Result<School> {
        let file = file::open(path)?;
        School::parse(BufReader::with_capacity(1 << 16, file)).in_file(path)
    }

    /// Reads a school from the content of its `.mat` file.
    pub fn parse(mut content: impl Read) -> Result<School> {
        let mut seen = Vec::new();
        let mut arrays = mat::read_arrays(&mut content, &["A", "local_info"], &mut seen)?;
        let mut take = |name: &str| {
            arrays.remove(name).ok_or_else(|| Problem::Missing {
                what: format!("array {name:?}, which every Facebook100 school has"),
                found: if seen.is_empty() { "no array".into() } else { seen.join(", ") },
            })
        };
        let (pattern, table) = (take("A")?, take("local_info")?);
        let graph = to_graph(pattern).map_err(|e| e.at(Place::Key("A".into())))?;
        let codes = to_codes(table, graph.nodes()).map_err(|e| e.at(Place::Key("local_info".into())))?;
        Ok(School { graph, codes })
    }

    /// Undirected edges, in both directions.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The code of an attribute for every person; 0 means missing.
    pub fn codes(&self, attribute: Attribute) -> &[i32] {
        &self.codes[attribute as usize]
    }
}

/// An edge `i -> j` for each entry in row `i` and column `j`: the columns are the rows of a [`Graph`].
fn to_graph(array: Array) -> Result<Graph> {
    let Pattern { rows, columns, offsets, row_indices } = match array {
        Array::Sparse(pattern) => pattern,
        Array::Full(_) => return Err(wrong_kind("a full matrix", "a sparse matrix")),
        Array::Other(found) => return Err(wrong_kind(found, "a sparse matrix")),
    };
    if rows != columns {
        let message = format!("the adjacency matrix is {rows} x {columns}, not square");
        return Err(Problem::Invalid(message).into());
    }
    let graph = Graph::from_rows(offsets, row_indices)?;
    match graph.repeated_edges() {
        0 => Ok(graph),
        repeated => Err(Problem::Corrupt(format!("{repeated} entries stand twice in their column")).into()),
    }
}

fn to_codes(array: Array, people: usize) -> Result<[Vec<i32>; 6]> {
    const COLUMNS: usize = 7;
    let table = match array {
        Array::Full(table) => table,
        Array::Sparse(_) => return Err(wrong_kind("a sparse matrix", "a full table of numbers")),
        Array::Other(found) => return Err(wrong_kind(found, "a full table of numbers")),
    };
    let Table { rows, columns, .. } = table;
    if columns != COLUMNS {
        let what = "row (status, gender, major, minor, dorm, year, high school)".into();
        return Err(Problem::Length { what, found: columns as u64, expected: COLUMNS as u64 }.into());
    }
    if rows != people {
        let what = "table of people".into();
        return Err(Problem::Length { what, found: rows as u64, expected: people as u64 }.into());
    }
    let mut codes: [Vec<i32>; 6] = Default::default();
    for attribute in Attribute::ALL {
        let column = table.column(attribute as usize);
        let code = |&value: &f64| (f64::from(value as i32) == value).then_some(value as i32);
        codes[attribute as usize] = column.iter().map(code).collect::<Option<_>>().ok_or_else(|| {
            let row = column.iter().position(|value| code(value).is_none()).unwrap_or(0);
            let problem = Problem::Invalid(format!("{attribute} is {}, which is no code", column[row]));
            problem.at(Place::Element { key: "local_info".into(), index: row as u64 })
        })?;
    }
    Ok(codes)
}

fn wrong_kind(found: &str, expected: &str) -> crate::Error {
    Problem::Invalid(format!("it is {found}, not {expected}")).into()
}

/// The `.mat` files of schools in a folder, in the alphabetical order of their names.
///
/// The index of the original archive, `schools.mat`, is not a school; neither are hidden files.
pub fn schools_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).in_file(folder)? {
        let path = entry.in_file(folder)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_mat = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mat"));
        if is_mat && !name.starts_with('.') && !name.eq_ignore_ascii_case("schools.mat") {
            paths.push(path);
        }
    }
    paths.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    Ok(paths)
}

/// Loads a school from a `.mat` file, or all schools from a folder that holds some; `None` for other paths.
pub(crate) fn recognise(path: &Path, options: &LoadOptions) -> Result<Option<Dataset>> {
    if path.is_dir() {
        let paths = schools_in(path)?;
        paths.iter().try_for_each(|school| file::within(path, school).map(drop))?;
        return match paths.is_empty() {
            true => Ok(None),
            false => load(&paths, &Recipe::all_schools().with_options(options)?).map(Some),
        };
    }
    if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mat")) {
        return Ok(None);
    }
    load(&[path.to_path_buf()], &Recipe::one_school().with_options(options)?).map(Some)
}

/// Makes a data set from the files of schools, side by side in the order of the list.
///
/// The nodes of one school are called by their position in its file, from 0; those of several
/// `School:position`. A few files are read at a time, and what is not needed any more is let go at once.
pub fn load(paths: &[PathBuf], recipe: &Recipe) -> Result<Dataset> {
    let mut people = People::default();
    for paths in paths.chunks(rayon::current_num_threads().clamp(1, 8)) {
        let schools: Vec<School> = paths.par_iter().map(|path| School::read(path)).collect::<Result<_>>()?;
        for (path, school) in paths.iter().zip(schools) {
            people.add(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()), school)?;
        }
    }
    people.into_dataset(recipe).map_err(|e| match paths {
        [path] => e.in_file(path),
        _ => e,
    })
}

/// Makes a data set from a school that is already read.
pub fn prepare_school(name: &str, school: School, recipe: &Recipe) -> Result<Dataset> {
    let mut people = People::default();
    people.add(Some(name.into()), school)?;
    people.into_dataset(recipe)
}

/// The people of one school or of many.
#[derive(Default)]
struct People {
    schools: Vec<String>,
    first_nodes: Vec<u32>,
    /// The ends of the rows of all graphs.
    ends: Vec<u64>,
    senders: Vec<u32>,
    codes: [Vec<i32>; 6],
}

impl People {
    fn add(&mut self, name: Option<String>, school: School) -> Result<()> {
        let School { graph, codes } = school;
        let (first_node, first_edge) = (self.ends.len(), self.senders.len() as u64);
        if first_node + graph.nodes() > Graph::MAX_NODES {
            return Err(Problem::TooLarge("the schools have too many people together".into()).into());
        }
        self.schools.push(name.unwrap_or_default());
        self.first_nodes.push(first_node as u32);
        let (offsets, senders) = graph.into_rows();
        self.ends.extend(offsets[1..].iter().map(|end| end + first_edge));
        match first_node {
            0 => self.senders = senders,
            _ => self.senders.extend(senders.iter().map(|sender| sender + first_node as u32)),
        }
        for (all, codes) in self.codes.iter_mut().zip(codes) {
            all.extend(codes);
        }
        Ok(())
    }

    fn into_dataset(self, recipe: &Recipe) -> Result<Dataset> {
        if self.ends.is_empty() {
            return Err(Problem::Empty("nodes").into());
        }
        let codes = &self.codes[recipe.target as usize];
        let Classes { names, label_of } = Classes::new(codes, recipe.missing);
        let (nodes, labels): (Vec<u32>, Vec<u32>) =
            (0..).zip(codes).filter_map(|(node, code)| Some((node, *label_of.get(code)?))).unzip();
        let min_count = recipe.min_class_count.unwrap_or(Recipe::CLASS_COUNT_PER_SCHOOL * self.schools.len());
        check_counts(recipe.target, &names, &labels, min_count)?;
        // Drawn over everyone with a class, as the preparation would; the graph of all of them need not be made.
        let split = Split::random(nodes.len(), Ratios::default(), recipe.seed)?;
        let Frequent { kept, nodes, labels, names } = Frequent::of(&nodes, &labels, names, min_count);
        let split = split.select(&kept);

        let (features, feature_names) = one_hot(&self.codes, &recipe.features(), &nodes)?;
        let node_ids = self.node_ids(&nodes);
        let name = match &self.schools[..] {
            [school] => school.clone(),
            schools => format!("{} schools", schools.len()),
        };
        let People { mut ends, senders, codes, .. } = self;
        drop(codes);
        ends.insert(0, 0);
        let graph = Graph::from_rows(ends, senders)?;
        let graph =
            if nodes.len() == graph.nodes() { graph } else { transform::induced_graph(&graph, &nodes)? };
        let frequent = Dataset::new(DatasetParts {
            name,
            graph,
            features,
            labels: labels.into(),
            class_names: names,
            feature_names,
            numbers: vec![],
            undeclared: vec![],
            relation: None,
            split: Some(split),
            node_ids,
        })?;
        prepare::without_loops_and_isolated_nodes(frequent)
    }

    fn node_ids(&self, nodes: &[u32]) -> NodeIds {
        if self.schools.len() == 1 {
            return NodeIds::from_integers(nodes.iter().map(|&node| node.into()).collect());
        }
        NodeIds::from_texts(nodes.iter().map(|&node| {
            let school = self.first_nodes.partition_point(|&first| first <= node) - 1;
            format!("{}:{}", self.schools[school], node - self.first_nodes[school])
        }))
    }
}

struct Classes {
    names: Vec<String>,
    label_of: BTreeMap<i32, u32>,
}

impl Classes {
    fn new(codes: &[i32], missing: Missing) -> Classes {
        let mut values: BTreeSet<i32> = codes.iter().copied().collect();
        match missing {
            Missing::NotPositive => values.retain(|&value| value > 0),
            Missing::LowestIfZeroOccurs => {
                if values.contains(&0) {
                    values.pop_first();
                }
            }
        }
        let name = |&value: &i32| if value == 0 { "missing".to_string() } else { value.to_string() };
        Classes {
            names: values.iter().map(name).collect(),
            label_of: (values.into_iter().zip(0..)).collect(),
        }
    }
}

/// The people of classes that are frequent enough.
struct Frequent {
    /// Their places in the list of all people with a class.
    kept: Vec<u32>,
    nodes: Vec<u32>,
    labels: Vec<u32>,
    /// The classes that stay, in their old order.
    names: Vec<String>,
}

impl Frequent {
    fn of(nodes: &[u32], labels: &[u32], names: Vec<String>, min_count: usize) -> Frequent {
        let mut counts = vec![0usize; names.len()];
        labels.iter().for_each(|&label| counts[label as usize] += 1);
        let stays: Vec<bool> = counts.iter().map(|&count| count >= min_count && count > 0).collect();
        let new_label: Vec<u32> = stays
            .iter()
            .scan(0, |next, &stays| Some(std::mem::replace(next, *next + u32::from(stays))))
            .collect();
        let is_kept = |&place: &u32| stays[labels[place as usize] as usize];
        let kept: Vec<u32> = (0..labels.len() as u32).filter(is_kept).collect();
        Frequent {
            nodes: kept.iter().map(|&place| nodes[place as usize]).collect(),
            labels: kept.iter().map(|&place| new_label[labels[place as usize] as usize]).collect(),
            names: names.into_iter().zip(&stays).filter(|(_, stays)| **stays).map(|(name, _)| name).collect(),
            kept,
        }
    }
}

/// An error that lists the counts, if no class is frequent enough.
fn check_counts(target: Attribute, names: &[String], labels: &[u32], min_count: usize) -> Result<()> {
    let mut counts = vec![0usize; names.len()];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    if counts.iter().any(|&count| count >= min_count) {
        return Ok(());
    }
    let mut largest: Vec<_> = counts.into_iter().zip(names).collect();
    largest.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
    let listed: Vec<String> =
        largest.iter().take(8).map(|(count, name)| format!("{name}: {count}")).collect();
    let listed = if listed.is_empty() { "nobody has one".to_string() } else { listed.join(", ") };
    let message = format!(
        "no {target} has at least {min_count} people ({listed}); a smaller number can be chosen with \
         `min_class_count`"
    );
    Err(Problem::Invalid(message).into())
}

/// One-hot columns for the codes that occur in any row, by attribute and then by code, for the listed nodes.
///
/// Codes that are not positive get no column: 0 means missing, and negative codes mean nothing.
fn one_hot(
    codes: &[Vec<i32>; 6],
    attributes: &BTreeSet<Attribute>,
    nodes: &[u32],
) -> Result<(Features, Vec<String>)> {
    let mut names = Vec::new();
    let mut column_of: Vec<(&[i32], BTreeMap<i32, u32>)> = Vec::new();
    for &attribute in attributes {
        let codes = &codes[attribute as usize];
        let values: BTreeSet<i32> = codes.iter().copied().filter(|&code| code > 0).collect();
        let columns = values.iter().copied().zip(names.len() as u32..).collect();
        names.extend(values.iter().map(|value| format!("{attribute}={value}")));
        column_of.push((codes, columns));
    }
    let mut offsets = Vec::with_capacity(nodes.len() + 1);
    offsets.push(0);
    let mut indices = Vec::with_capacity(nodes.len() * attributes.len());
    for &node in nodes {
        indices.extend(column_of.iter().filter_map(|(codes, columns)| columns.get(&codes[node as usize])));
        offsets.push(indices.len() as u64);
    }
    Ok((Features::sparse(nodes.len(), names.len(), offsets, indices, None)?, names))
}
