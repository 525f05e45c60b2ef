//! Which columns may be meant, where those that a table needs are not there or do not fit: looked for only where reading fails.

use std::path::Path;

use super::nodes::check_roles;
use super::{TableInput, edges};
use crate::read::LoadOptions;
use crate::read::columns::ColumnChoices;
use crate::{Error, NoColumns, Problem, Result};

/// A table of nodes and a table of edges with their files.
pub(super) struct Pair<'a> {
    pub(super) nodes: (&'a Path, &'a TableInput<'a>),
    pub(super) edges: (&'a Path, &'a TableInput<'a>),
    pub(super) options: &'a LoadOptions,
}

/// More columns than this are not tried.
const TRIED: usize = 64;
/// More values than this are no classes, as a guess.
const MOST_CLASSES: usize = 50;
/// So many columns are proposed.
const PROPOSED: usize = 3;

impl Pair<'_> {
    /// Refuses tables that have not all the columns they need, with all that is missing in one sentence.
    pub(super) fn check_columns(&self) -> Result<()> {
        let names = self.nodes.1.names(None, self.options).map_err(|e| e.in_file(self.nodes.0))?;
        let edge_names =
            self.edges.1.names(Some(self.options), self.options).map_err(|e| e.in_file(self.edges.0))?;
        let mut missing = Vec::new();
        for (file, outcome) in [
            (self.nodes.0, check_roles(names.clone(), self.options).map(|_| ())),
            (self.edges.0, edges::ends(&edge_names, self.options).map(|_| ())),
        ] {
            match outcome {
                Ok(()) => {}
                Err(error) => match error.problem() {
                    Problem::NoColumns(of_table) => missing.extend(
                        of_table.iter().map(|of| NoColumns { file: Some(file.to_path_buf()), ..of.clone() }),
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
        let first = missing[0].file.clone();
        let one = missing.len() == 1;
        missing.iter_mut().filter(|table| one || table.file == first).for_each(|table| table.file = None);
        let error = Error::from(Problem::NoColumns(missing));
        Err(first.map_or_else(|| Problem::NoColumns(vec![]).into(), |file| error.in_file(&file)))
    }

    /// Adds the columns that may be meant.
    fn propose(&self, names: &[String], edge_names: &[String], missing: &mut [NoColumns]) {
        let ends: Vec<String> =
            edge_names.iter().filter(|name| !name.is_empty() && *name != "Unnamed: 0").cloned().collect();
        let guessed = LoadOptions {
            source_column: self.options.source_column.clone().or_else(|| ends.first().cloned()),
            target_column: self.options.target_column.clone().or_else(|| ends.get(1).cloned()),
            ..self.options.clone()
        };
        let no_ends = missing.iter().flat_map(|table| &table.missing).any(|column| column.role == "source");
        let pair = Pair { options: if no_ends { &guessed } else { self.options }, ..*self };
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
        match error.place() {
            Some(place) => problem.at(place.clone()).in_file(self.edges.0),
            None => problem.in_file(self.edges.0),
        }
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
                ..self.of_edges()
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
        let options = LoadOptions { id_column, categorical: others, without_labels: true, ..self.of_edges() };
        let Ok(nodes) = self.nodes.1.read_nodes(&options) else { return vec![] };
        let rows = nodes.ids.len();
        let few = |values: usize| (2..=MOST_CLASSES).contains(&values) && 4 * values <= rows;
        let likely = nodes.columns.iter().filter(|column| column.categories.is_some_and(few));
        likely.map(|column| column.name.clone()).take(PROPOSED).collect()
    }

    /// What is said of the edges and of the text, and nothing else.
    fn of_edges(&self) -> LoadOptions {
        LoadOptions {
            source_column: self.options.source_column.clone(),
            target_column: self.options.target_column.clone(),
            encoding: self.options.encoding,
            header: self.options.header,
            ..LoadOptions::default()
        }
    }
}
