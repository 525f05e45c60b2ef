//! Picking a node from a group, in proportion to the nodes' weights.

use rayon::prelude::*;

use super::random::Stream;

/// Disjoint groups of nodes with Walker's alias tables: one look-up a pick, twelve bytes a node.
pub(super) struct Groups {
    starts: Vec<u32>,
    volumes: Vec<f64>,
    slots: Vec<Slot>,
}

/// A slot stands for `own` with chance `keep / 2^32` and for `other` else.
#[derive(Clone, Copy, Default)]
struct Slot {
    keep: u32,
    own: u32,
    other: u32,
}

impl Groups {
    /// The groups of the nodes `0..weights.len()`; a node for which `group_of` is `None` is in none.
    pub(super) fn new(
        groups: usize,
        weights: &[f32],
        group_of: impl Fn(usize) -> Option<usize> + Sync,
    ) -> Groups {
        let mut starts = vec![0u32; groups + 1];
        for group in (0..weights.len()).filter_map(&group_of) {
            starts[group + 1] += 1;
        }
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }
        let mut slots = vec![Slot::default(); starts[groups] as usize];
        let mut next = starts.clone();
        for node in 0..weights.len() {
            if let Some(group) = group_of(node) {
                slots[next[group] as usize].own = node as u32;
                next[group] += 1;
            }
        }
        drop(next);
        let mut tables = Vec::with_capacity(groups);
        let mut rest = &mut slots[..];
        for w in starts.windows(2) {
            let (table, after) = rest.split_at_mut((w[1] - w[0]) as usize);
            tables.push(table);
            rest = after;
        }
        let volumes = tables.into_par_iter().map(|table| balance(table, weights)).collect();
        Groups { starts, volumes, slots }
    }

    /// The summed weight of a group.
    pub(super) fn volume(&self, group: usize) -> f64 {
        self.volumes[group]
    }

    /// A node of the group; `None` if it is empty.
    pub(super) fn pick(&self, group: usize, stream: &mut Stream) -> Option<u32> {
        let slots = &self.slots[self.starts[group] as usize..self.starts[group + 1] as usize];
        let bits = stream.bits();
        let slot = slots.get((((bits >> 32) * slots.len() as u64) >> 32) as usize)?;
        Some(if (bits as u32) < slot.keep { slot.own } else { slot.other })
    }
}

/// Turns a list of nodes into an alias table and returns the nodes' volume (Vose's algorithm).
fn balance(slots: &mut [Slot], weights: &[f32]) -> f64 {
    let weight = |slot: &Slot| f64::from(weights[slot.own as usize]);
    let volume: f64 = slots.iter().map(weight).sum();
    if volume <= 0.0 {
        slots.iter_mut().for_each(|slot| (slot.keep, slot.other) = (u32::MAX, slot.own));
        return 0.0;
    }
    let scale = slots.len() as f64 / volume;
    let mut share: Vec<f64> = slots.iter().map(|slot| weight(slot) * scale).collect();
    let (mut poor, mut rich): (Vec<u32>, Vec<u32>) =
        (0..slots.len() as u32).partition(|&at| share[at as usize] < 1.0);
    while let (Some(&low), Some(&high)) = (poor.last(), rich.last()) {
        poor.pop();
        let own_share = share[low as usize];
        slots[low as usize].keep = (own_share * 4_294_967_296.0) as u32;
        slots[low as usize].other = slots[high as usize].own;
        share[high as usize] -= 1.0 - own_share;
        if share[high as usize] < 1.0 {
            rich.pop();
            poor.push(high);
        }
    }
    for at in poor.into_iter().chain(rich) {
        let slot = &mut slots[at as usize];
        (slot.keep, slot.other) = (u32::MAX, slot.own);
    }
    volume
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::random::Purpose;

    #[test]
    fn nodes_are_picked_in_proportion_to_their_weights() {
        let weights = [1.0, 9.0, 3.0, 0.5, 6.5, 100.0];
        // Node 5 is in no group, node 1 alone in group 1, group 2 is empty.
        let group_of = |node| [Some(0), Some(1), Some(0), Some(0), Some(0), None][node];
        let groups = Groups::new(3, &weights, group_of);
        assert_eq!([0, 1, 2].map(|g| groups.volume(g)), [11.0, 9.0, 0.0]);
        let mut stream = Stream::new(3, Purpose::Pilot, 0);
        let draws = 110_000;
        let mut counts = [0u32; 6];
        for _ in 0..draws {
            counts[groups.pick(0, &mut stream).unwrap() as usize] += 1;
        }
        for node in [0, 2, 3, 4] {
            let expected = f64::from(draws) * f64::from(weights[node]) / 11.0;
            // Six standard deviations: a false alarm in 10^9.
            assert!((f64::from(counts[node]) - expected).abs() < 6.0 * expected.sqrt(), "{counts:?}");
        }
        assert_eq!((counts[1], counts[5]), (0, 0));
        assert_eq!(groups.pick(1, &mut stream), Some(1));
        assert_eq!(groups.pick(2, &mut stream), None);
    }
}
