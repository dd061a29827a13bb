//! Polynomials over the integers modulo the prime 2^61 - 1, the constant term first, and their roots.

/// The prime.
pub(super) const P: u64 = (1 << 61) - 1;

/// A product.
pub(super) fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let sum = (product as u64 & P) + (product >> 61) as u64;
    if sum >= P { sum - P } else { sum }
}

/// A sum.
pub(super) fn plus(a: u64, b: u64) -> u64 {
    let sum = a + b;
    if sum >= P { sum - P } else { sum }
}

fn minus(a: u64, b: u64) -> u64 {
    plus(a, if b == 0 { 0 } else { P - b })
}

fn inverse(a: u64) -> u64 {
    let (mut power, mut square, mut exponent) = (1, a, P - 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = times(power, square);
        }
        square = times(square, square);
        exponent >>= 1;
    }
    power
}

/// A polynomial without leading zeros; that of nothing is 0.
pub(super) type Polynomial = Vec<u64>;

fn trimmed(mut f: Polynomial) -> Polynomial {
    while f.last() == Some(&0) {
        f.pop();
    }
    f
}

fn monic(f: Polynomial) -> Polynomial {
    let Some(&lead) = f.last() else { return f };
    let by = inverse(lead);
    f.into_iter().map(|c| times(c, by)).collect()
}

/// Quotient and rest of a division by a monic polynomial.
fn divided(mut f: Polynomial, by: &[u64]) -> (Polynomial, Polynomial) {
    let Some(degree) = f.len().checked_sub(by.len()) else { return (Vec::new(), f) };
    let mut quotient = vec![0; degree + 1];
    for at in (0..=degree).rev() {
        let lead = f[at + by.len() - 1];
        quotient[at] = lead;
        for (i, &c) in by.iter().enumerate() {
            f[at + i] = minus(f[at + i], times(lead, c));
        }
    }
    f.truncate(by.len() - 1);
    (quotient, trimmed(f))
}

fn common(mut f: Polynomial, mut g: Polynomial) -> Polynomial {
    while !g.is_empty() {
        g = monic(g);
        (f, g) = (g.clone(), divided(f, &g).1);
    }
    monic(f)
}

fn product_modulo(f: &[u64], g: &[u64], by: &[u64]) -> Polynomial {
    if f.is_empty() || g.is_empty() {
        return Vec::new();
    }
    let mut product = vec![0; f.len() + g.len() - 1];
    for (i, &a) in f.iter().enumerate() {
        for (j, &b) in g.iter().enumerate() {
            product[i + j] = plus(product[i + j], times(a, b));
        }
    }
    divided(product, by).1
}

/// The roots of a monic polynomial that has all of them, each once: Cantor and Zassenhaus, 1981. Half of the roots plus
/// a random number are squares; what a factor has in common with those falls apart.
fn split(f: Polynomial, shift: &mut u64, roots: &mut Vec<u64>) {
    match f.len() {
        0 | 1 => return,
        2 => return roots.push(minus(0, f[0])),
        _ => {}
    }
    // A hundred shifts that all leave it whole: it is no product of different linear factors.
    for _ in 0..100 {
        *shift = crate::hash::splitmix::mix(shift.wrapping_add(1));
        let base = divided(vec![*shift & (P >> 1), 1], &f).1;
        // (P - 1) / 2 has 60 ones.
        let mut power = base.clone();
        for _ in 0..59 {
            power = product_modulo(&power, &power, &f);
            power = product_modulo(&power, &base, &f);
        }
        match power.first_mut() {
            Some(constant) => *constant = minus(*constant, 1),
            None => power.push(P - 1),
        }
        let part = common(f.clone(), trimmed(power));
        if (2..f.len()).contains(&part.len()) {
            let (rest, _) = divided(f, &part);
            split(part, shift, roots);
            return split(rest, shift, roots);
        }
    }
}

/// The roots of a monic polynomial, each as often as it is one; fewer where it does not have them all.
pub(super) fn roots(f: &[u64]) -> Vec<u64> {
    let derived = trimmed(f.iter().enumerate().skip(1).map(|(i, &c)| times(i as u64, c)).collect());
    let (single, _) = divided(f.to_vec(), &common(f.to_vec(), derived));
    let (mut different, mut all, mut rest) = (Vec::new(), Vec::new(), f.to_vec());
    split(single, &mut 0, &mut different);
    for root in different {
        let factor = [minus(0, root), 1];
        loop {
            let (quotient, left) = divided(rest.clone(), &factor);
            if !left.is_empty() || rest.len() < 2 {
                break;
            }
            rest = quotient;
            all.push(root);
        }
    }
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The product of `X - root`.
    fn of_roots(roots: &[u64]) -> Polynomial {
        roots.iter().fold(vec![1], |f, &root| {
            let mut product = vec![0; f.len() + 1];
            for (i, &c) in f.iter().enumerate() {
                product[i + 1] = plus(product[i + 1], c);
                product[i] = minus(product[i], times(root, c));
            }
            product
        })
    }

    #[test]
    fn roots_come_back_as_often_as_they_are_there() {
        let mut many: Vec<u64> = (0..60).map(|i| crate::hash::splitmix::at(3, i) % P).collect();
        many.sort_unstable();
        for wanted in [vec![], vec![0], vec![5], vec![0, 0], vec![1, 2, 3], vec![7, 7, 7, 9], vec![0, P - 1], many] {
            assert_eq!(roots(&of_roots(&wanted)), wanted);
        }
        // X^2 - 37 has none, if 37 is no square; X^2 - 4 has two.
        assert_eq!(roots(&[P - 4, 0, 1]), [2, P - 2]);
        let none = (2..50).find(|&c| roots(&[P - c, 0, 1]).is_empty());
        assert!(none.is_some());
    }

    #[test]
    fn arithmetic_is_that_of_a_field() {
        for i in 0..500 {
            let [a, b] = [2 * i, 2 * i + 1].map(|i| crate::hash::splitmix::at(0, i) % P);
            assert_eq!(u128::from(times(a, b)), u128::from(a) * u128::from(b) % u128::from(P));
            assert_eq!((plus(minus(a, b), b), times(a, inverse(a))), (a, 1));
        }
        assert_eq!((times(P - 1, P - 1), plus(P - 1, 1), minus(0, 0)), (1, 0, 0));
    }
}
