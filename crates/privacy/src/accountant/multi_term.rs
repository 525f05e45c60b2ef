//! How many terms of a batch one record touches (DP-GNN's multi-term accounting).

/// The hypergeometric law of the number of touched terms: pairs of a number and the log of its probability.
///
/// # Proof definition
/// A batch of `batch` terms is drawn without replacement from `population`, of which `terms` are touched. A record
/// that touches fewer has a stochastically smaller number, and every divergence used here grows with the number, so
/// the law for exactly `terms` bounds them all. See [proof](crate::proofs::renyi#multi-term).
pub(super) fn touched_terms(population: u64, batch: u64, terms: u64) -> Vec<(u64, f64)> {
    let first = (batch + terms).saturating_sub(population);
    let last = terms.min(batch);
    let mut law = Vec::with_capacity((last - first + 1) as usize);
    let mut log_weight = 0.0;
    for k in first..=last {
        law.push((k, log_weight));
        if k < last {
            // Ratios of neighbours are exact to rounding, whereas factorials of large numbers are not.
            let up = (terms - k) as f64 * (batch - k) as f64;
            let down = (k + 1) as f64 * (population + k + 1 - terms - batch) as f64;
            log_weight += (up / down).ln();
        }
    }
    let top = law.iter().fold(f64::NEG_INFINITY, |top: f64, &(_, w)| top.max(w));
    let log_total = top + law.iter().map(|&(_, w)| (w - top).exp()).sum::<f64>().ln();
    law.iter_mut().for_each(|(_, w)| *w -= log_total);
    law
}

#[cfg(test)]
mod tests {
    use super::touched_terms;

    #[test]
    fn matches_a_count_by_hand() {
        // 5 terms, 2 touched, batch of 3: C(2,k) C(3,3-k) / C(5,3).
        let law = touched_terms(5, 3, 2);
        for (&(k, log_p), expected) in law.iter().zip([0.1, 0.6, 0.3]) {
            assert!((log_p.exp() - expected).abs() < 1e-14, "{k}");
        }
        // A batch so large that some touched terms must be in it.
        assert_eq!(touched_terms(5, 4, 3).iter().map(|&(k, _)| k).collect::<Vec<_>>(), [2, 3]);
    }
}
