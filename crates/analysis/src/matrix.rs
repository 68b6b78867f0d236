//! Accesses by node of the thread and node of the page.

use crate::estimator::Design;
use crate::evidence::Hit;
use crate::homes::Home;

/// `[node of thread][node of page]`: shares of the accesses with a known home, sum 1; all 0 without such accesses.
#[must_use]
pub fn matrix<'h>(design: &Design, nodes: usize, hits: impl Iterator<Item = &'h Hit>) -> Vec<Vec<f64>> {
    let nodes = nodes.max(1);
    let mut matrix = vec![vec![0.0; nodes]; nodes];
    let mut sum = 0.0;
    for hit in hits {
        let Home::Known { node: page, .. } = hit.home else { continue };
        let page = (page as usize).min(nodes - 1);
        for by in &hit.by_thread {
            let from = (by.node as usize).min(nodes - 1);
            let accesses = design.weight(hit.draw) * by.rate;
            matrix[from][page] += accesses;
            sum += accesses;
        }
    }
    if sum > 0.0 && sum.is_finite() {
        matrix.iter_mut().flatten().for_each(|cell| *cell /= sum);
    } else {
        matrix.iter_mut().flatten().for_each(|cell| *cell = 0.0);
    }
    matrix
}
