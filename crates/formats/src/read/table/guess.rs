//! Which columns may be meant, where those that a table needs are not there or do not fit: looked for only where
//! reading fails.

use std::path::Path;

use super::nodes::check_roles;
use super::{TableInput, edges};
use crate::read::LoadOptions;
use crate::read::columns::ColumnChoices;
use crate::{Error, NoColumns, Problem, Result};

/// A table of nodes and a table of edges, with their files where they have some.
pub(super) struct Pair<'a> {
    pub(super) nodes: (Option<&'a Path>, &'a TableInput<'a>),
    pub(super) edges: (Option<&'a Path>, &'a TableInput<'a>),
    pub(super) options: &'a LoadOptions,
    /// What is said of the edges.
    pub(super) of_edges: &'a LoadOptions,
}

/// More columns than this are not tried.
const TRIED: usize = 64;
/// More values than this are no classes, as a guess.
const MAX_CLASSES: usize = 50;
/// So many columns are proposed.
const PROPOSED: usize = 3;

impl Pair<'_> {
    /// Refuses tables that have not all the columns they need, with all that is missing in one sentence.
    pub(super) fn check_columns(&self) -> Result<()> {
        let names = self.nodes.1.names(None, self.options).map_err(|e| in_file(e, self.nodes.0))?;
        let edge_names = self.edges.1.names(Some(self.of_edges), self.of_edges);
        let edge_names = edge_names.map_err(|e| in_file(e, self.edges.0))?;
        let mut missing = Vec::new();
        for (file, outcome) in [
            (self.nodes.0, check_roles(names.clone(), self.options).map(|_| ())),
            (self.edges.0, edges::ends(&edge_names, self.of_edges).map(|_| ())),
        ] {
            match outcome {
                Ok(()) => {}
                Err(error) => match error.problem() {
                    Problem::NoColumns(of_table) => missing.extend(
                        of_table
                            .iter()
                            .map(|of| NoColumns { file: file.map(Path::to_path_buf), ..of.clone() }),
                    ),
                    // Said where the table is read.
                    _ => return Ok(()),
                },
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        self.propose(&names, &edge_names, &mut missing);
        let first = missing[0].file.take();
        let error = Error::from(Problem::NoColumns(missing));
        Err(in_file(error, first.as_deref()))
    }

    /// Adds the columns that may be meant.
    fn propose(&self, names: &[String], edge_names: &[String], missing: &mut [NoColumns]) {
        let ends: Vec<String> =
            edge_names.iter().filter(|name| !name.is_empty() && *name != "Unnamed: 0").cloned().collect();
        let guessed = LoadOptions {
            source_column: self.of_edges.source_column.clone().or_else(|| ends.first().cloned()),
            target_column: self.of_edges.target_column.clone().or_else(|| ends.get(1).cloned()),
            ..self.of_edges.clone()
        };
        let no_ends = missing.iter().flat_map(|table| &table.missing).any(|column| column.role == "source");
        let pair = Pair { of_edges: if no_ends { &guessed } else { self.of_edges }, ..*self };
        for column in missing.iter_mut().flat_map(|table| &mut table.missing) {
            column.likely = match column.role {
                "id" => pair.matching(names, None).into_iter().collect(),
                "label" => self.classes(names),
                "source" => ends.first().cloned().into_iter().collect(),
                "target" => ends.get(1).cloned().into_iter().collect(),
                _ => vec![],
            };
        }
    }

    /// The same error; where another column of the node table has all the nodes that the edges name, with that column.
    pub(super) fn with_matching_column(&self, error: Error) -> Error {
        let Problem::UnknownNode(id) = error.problem() else { return error };
        let names = self.nodes.1.names(None, self.options).and_then(|names| check_roles(names, self.options));
        let Ok((ids, names)) = names else { return error };
        let Some(column) = self.matching(&names, Some(ids)) else { return error };
        let problem = Problem::OtherIds { id: id.clone(), ids: names[ids].clone(), column };
        let error = match error.place() {
            Some(place) => problem.at(place.clone()),
            None => problem.into(),
        };
        in_file(error, self.edges.0)
    }

    /// A column that has all the nodes that the edges name, each once.
    fn matching(&self, names: &[String], but: Option<usize>) -> Option<String> {
        let fits = |(at, name): &(usize, &String)| {
            let others =
                names.iter().enumerate().filter(|(other, _)| other != at).map(|(_, name)| name.clone());
            let options = LoadOptions {
                id_column: Some((*name).clone()),
                columns: ColumnChoices { drop: others.collect(), ..ColumnChoices::default() },
                without_labels: true,
                ..self.needed()
            };
            let Ok(nodes) = self.nodes.1.read_nodes(&options) else { return false };
            let Ok(index) = nodes.ids.index() else { return false };
            self.edges.1.read_edges(&options, &index, nodes.ids.len()).is_ok()
        };
        let others = names.iter().enumerate().filter(|(at, _)| Some(*at) != but).take(TRIED);
        others.into_iter().find(fits).map(|(_, name)| name.clone())
    }

    /// Columns that may be the classes: of few values, each of which several nodes have.
    fn classes(&self, names: &[String]) -> Vec<String> {
        let unlabelled = LoadOptions { without_labels: true, ..self.options.clone() };
        // Where no column is the id, any will do: nothing is looked up here.
        let (id, names) = check_roles(names.to_vec(), &unlabelled).unwrap_or((0, names.to_vec()));
        let others =
            names.iter().enumerate().filter(|(at, _)| *at != id).map(|(_, name)| name.clone()).collect();
        let id_column = names.get(id).cloned();
        let options = LoadOptions { id_column, categorical: others, without_labels: true, ..self.needed() };
        let Ok(nodes) = self.nodes.1.read_nodes(&options) else { return vec![] };
        let rows = nodes.ids.len();
        let few = |values: usize| (2..=MAX_CLASSES).contains(&values) && 4 * values <= rows;
        let likely = nodes.columns.iter().filter(|column| column.categories.is_some_and(few));
        likely.map(|column| column.name.clone()).take(PROPOSED).collect()
    }

    /// What is said of the edges and of the text, and nothing else.
    fn needed(&self) -> LoadOptions {
        LoadOptions {
            source_column: self.of_edges.source_column.clone(),
            target_column: self.of_edges.target_column.clone(),
            encoding: self.of_edges.encoding,
            header: self.of_edges.header,
            ..LoadOptions::default()
        }
    }
}

/// The error, with the file where there is one.
fn in_file(error: Error, file: Option<&Path>) -> Error {
    match file {
        Some(file) => error.in_file(file),
        None => error,
    }
}
