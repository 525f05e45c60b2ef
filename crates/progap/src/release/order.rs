//! The order in which a release lists nodes: that of their ids, that of the data where it is public, or a random one.
//!
//! Where nodes have ids their order follows from them, and tells nothing else. Where the position is the id, the order
//! is the data owner's: it is tested, and a release needs a word of the owner where it tells edges.

use std::num::NonZeroU64;
use std::path::Path;

use progap_graph::order::{self, Telling};
use progap_graph::{Dataset, DatasetParts, NodeIds, transform};
use progap_privacy::noise::{AnySource, Randomness};

use crate::error::InFile;
use crate::release::Predictions;
use crate::settings::{Level, Order, Settings};
use crate::{Error, Remedy, Result, files, memory};

/// Where nodes were renumbered: the id of each in the data, and its number in the release.
pub(crate) const NUMBERS: &str = "private/numbers.csv";

/// A data set in the order of a release.
pub(crate) struct Arranged {
    pub dataset: Dataset,
    /// Where that is another order than the data's: the node of the data at each place of the release.
    pub order: Option<Vec<u32>>,
    /// The content of [`NUMBERS`], where nodes were renumbered.
    pub numbers: Option<String>,
}

impl Arranged {
    /// The data in the order that the settings ask for.
    pub fn new(dataset: &Dataset, settings: &Settings) -> Result<Arranged> {
        match settings.shuffle {
            true => Arranged::renumbered(dataset, shuffled(dataset.nodes(), settings.seed)?),
            false => Arranged::by_ids(dataset, settings),
        }
    }

    /// As [`Arranged::new`], for a run that began in this folder.
    pub fn again(dataset: &Dataset, settings: &Settings, folder: &Path) -> Result<Arranged> {
        match settings.shuffle {
            true => Arranged::renumbered(dataset, read(folder, dataset.nodes())?),
            false => Arranged::by_ids(dataset, settings),
        }
    }

    fn by_ids(dataset: &Dataset, settings: &Settings) -> Result<Arranged> {
        let order = match settings.order {
            Order::Public => None,
            Order::Tested => order::of_ids(dataset.node_ids(), dataset.nodes()),
        };
        let dataset = match &order {
            None => dataset.clone(),
            Some(order) => transform::induced_subgraph(dataset, order)?,
        };
        Ok(Arranged { dataset, order, numbers: None })
    }

    fn renumbered(dataset: &Dataset, order: Vec<u32>) -> Result<Arranged> {
        if let NodeIds::Text { .. } = dataset.node_ids() {
            let why = "the nodes have names as ids, and a release lists them in the order of their ids";
            return Err(Error::no_effect("shuffle", why));
        }
        if memory::bound().is_some() {
            return Err(Error::contradiction("a random order takes all data into memory, which is bounded")
                .remedy(Remedy::Drop("shuffle"))
                .remedy(Remedy::Drop("memory")));
        }
        let mut numbers = String::from("id,number\n");
        for (node, number) in inverse(&order).iter().enumerate() {
            numbers += &format!("{},{number}\n", dataset.node_ids().name(node));
        }
        let parts = transform::induced_subgraph(dataset, &order)?.into_parts();
        let dataset = Dataset::new(DatasetParts { node_ids: NodeIds::Position, ..parts })?;
        Ok(Arranged { dataset, order: Some(order), numbers: Some(numbers) })
    }
}

/// The nodes of a release in the order of the data that it was trained on.
#[derive(Debug)]
pub struct OwnersOrder {
    nodes: Dataset,
    /// Where each stands in the release.
    places: Vec<u32>,
}

impl OwnersOrder {
    /// `order` is the node of the data at each place of the release.
    pub(crate) fn new(released: &Dataset, order: &[u32], node_ids: NodeIds) -> Result<OwnersOrder> {
        let places = inverse(order);
        let parts = transform::induced_subgraph(released, &places)?.into_parts();
        Ok(OwnersOrder { nodes: Dataset::new(DatasetParts { node_ids, ..parts })?, places })
    }

    /// What a release holds of the nodes.
    pub fn nodes(&self) -> &Dataset {
        &self.nodes
    }

    /// Predictions for nodes by their position in the data, made by a function of places in the release.
    ///
    /// # Errors
    /// Those of the function.
    pub fn predict(
        &self,
        nodes: &[u32],
        predict: impl FnOnce(&[u32]) -> Result<Predictions>,
    ) -> Result<Predictions> {
        let places: Vec<u32> = nodes.iter().map(|&node| self.places[node as usize]).collect();
        Ok(Predictions { nodes: nodes.to_vec(), ..predict(&places)? })
    }
}

/// Where each node of an order stands in it.
pub(crate) fn inverse(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &node)| places[node as usize] = place as u32);
    places
}

/// A random order by the system's secure numbers; for experiments, by a seed.
fn shuffled(nodes: usize, seed: Option<u64>) -> Result<Vec<u32>> {
    let mut randomness: Randomness<AnySource> = match seed {
        Some(seed) => Randomness::from_seed(seed).erase(),
        None => Randomness::from_os().erase(),
    };
    let mut stream = randomness.purpose("order of nodes")?.stream();
    let mut order: Vec<u32> = (0..nodes as u32).collect();
    for last in (1..nodes).rev() {
        if let Some(bound) = NonZeroU64::new(last as u64 + 1) {
            order.swap(last, stream.below(bound) as usize);
        }
    }
    Ok(order)
}

/// The order that a run or a release keeps of nodes that were renumbered.
pub(crate) fn read(folder: &Path, nodes: usize) -> Result<Vec<u32>> {
    let file = folder.join(NUMBERS);
    let text = std::fs::read_to_string(&file).in_file(&file)?;
    parse(&text, nodes).ok_or_else(|| {
        Error::file(&file, "it does not give every node of the data a number of its own: restore it")
    })
}

fn parse(text: &str, nodes: usize) -> Option<Vec<u32>> {
    let number = |line: &str| line.rsplit_once(',')?.1.parse::<u32>().ok();
    let numbers: Vec<u32> = text.lines().skip(1).map(number).collect::<Option<_>>()?;
    let mut is_there = vec![false; nodes];
    for &number in &numbers {
        *is_there.get_mut(number as usize)? = true;
    }
    (numbers.len() == nodes && is_there.into_iter().all(|there| there)).then(|| inverse(&numbers))
}

/// Keeps the numbers of nodes that were renumbered, where they were.
pub(crate) fn write(folder: &Path, numbers: Option<&String>) -> Result<()> {
    let Some(numbers) = numbers else { return Ok(()) };
    files::make_folder(&folder.join("private"))?;
    files::write(&folder.join(NUMBERS), numbers.as_bytes())
}

/// How the order in which a release would list nodes tells edges; `None` where it does not, where the owner says that
/// it is public, and where nothing is private. It is computed from the edges as they are, for the data owner alone.
pub fn telling(dataset: &Dataset, settings: &Settings) -> Option<Telling> {
    if settings.level == Level::None || settings.shuffle || settings.order == Order::Public {
        return None;
    }
    order::telling(dataset.graph(), order::of_ids(dataset.node_ids(), dataset.nodes()).as_deref())
}

/// Refuses an order that tells edges. Ids that are texts are the owner's statement of what is public; numbers are often
/// places in a list.
pub(crate) fn check(dataset: &Dataset, settings: &Settings) -> Result<()> {
    if let NodeIds::Text { .. } = dataset.node_ids() {
        return Ok(());
    }
    telling(dataset, settings).map_or(Ok(()), |found| Err(refusal(&found)))
}

/// What to do about an order that tells edges.
pub fn refusal(found: &Telling) -> Error {
    Error::unsuitable(format!(
        "the order of nodes, which a release shows, tells edges ({found}): it has to be random, unless anyone may \
         know it"
    ))
    .remedy(Remedy::Give("shuffle"))
    .remedy(Remedy::set("order", "public"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_were_kept_give_the_order_again() {
        let builder = Dataset::builder().edges([(0, 1), (1, 2), (2, 3)]).labels(&[0, 1, 0, 1]);
        let data = builder.features(1, &[5.0, 6.0, 7.0, 8.0]).build().expect("data");
        let order = shuffled(4, Some(7)).expect("an order");
        let arranged = Arranged::renumbered(&data, order.clone()).expect("renumbered");
        let numbers = arranged.numbers.expect("numbers");
        assert_eq!(parse(&numbers, 4), Some(order.clone()));
        let first = order[0] as usize;
        assert_eq!(arranged.dataset.labels()[0], data.labels()[first]);
        assert_eq!(arranged.dataset.node_ids(), &NodeIds::Position);
        for damaged in
            ["", "id,number\n0,0\n1,1\n", "id,number\n0,0\n1,0\n2,1\n3,2\n", &numbers.replace('3', "9")]
        {
            assert_eq!(parse(damaged, 4), None, "{damaged}");
        }
    }

    #[test]
    fn a_random_order_without_a_seed_is_another_one_each_time() {
        let orders: Vec<Vec<u32>> = (0..2).map(|_| shuffled(1000, None).expect("an order")).collect();
        assert_ne!(orders[0], orders[1]);
        assert_eq!(shuffled(1000, Some(1)).expect("an order"), shuffled(1000, Some(1)).expect("an order"));
    }
}
