//! Chances of independent events, without cancellation for rare ones.

/// At least one of n events of chance p: `1 - (1 - p)^n`; n may be an estimate, and so a fraction.
pub fn any_of(p: f64, n: f64) -> f64 {
    -(n * (-p).ln_1p()).exp_m1()
}

/// The chance of each of n events of which at least one has chance `any`: the inverse of [`any_of`].
pub fn each_of(any: f64, n: f64) -> f64 {
    -((-any).ln_1p() / n).exp_m1()
}

/// At least one of events of these chances: `1 - prod (1 - p_i)`; 0 of none.
pub fn any_among(chances: impl IntoIterator<Item = f64>) -> f64 {
    -chances.into_iter().map(|p| (-p).ln_1p()).sum::<f64>().exp_m1()
}

/// All of k events of chance p, such as k probes that find set cells: `p^k`.
pub fn all_of(p: f64, k: u32) -> f64 {
    p.powi(k as i32)
}
