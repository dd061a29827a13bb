//! Laws of cells that hold the label of an area, of which the highest wins.

use super::all_of;

/// Chance that a key of no area is given each label, 1 first, from the cells c_j of m that hold label j:
/// `p_i = (sum_(j>=i) c_j / m)^k - sum_(j>i) p_j`. Palmieri, Calderoni and Maio, "Spatial Bloom filters", 2014.
pub fn rates(label_cells: &[u64], num_cells: u64, num_hashes: u32) -> Vec<f64> {
    let mut rates = label_cells.iter().map(|&cells| cells as f64).collect::<Vec<_>>();
    let (mut above, mut total) = (0.0, 0.0);
    for rate in rates.iter_mut().rev() {
        above += *rate;
        let at_least = all_of(above / num_cells as f64, num_hashes);
        *rate = (at_least - total).max(0.0);
        total = at_least;
    }
    rates
}
