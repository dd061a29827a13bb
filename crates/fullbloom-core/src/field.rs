//! The integers modulo p = 2^64 - 59, the largest prime of 64 bits, and polynomials over them.
//!
//! A polynomial is its coefficients from the constant one on, without zeros at the end; none for zero.

/// The prime.
pub(crate) const P: u64 = u64::MAX - 58;
/// 2^64 modulo p.
const FOLD: u128 = 59;

/// The sum of products, whose parts above 2^64 are folded once: 2^58 of them fit.
#[derive(Clone, Copy, Default)]
struct Sum(u128);

impl Sum {
    #[inline(always)]
    fn add(&mut self, a: u64, b: u64) {
        let product = u128::from(a) * u128::from(b);
        self.0 += (product as u64 as u128) + (product >> 64) * FOLD;
    }

    #[inline(always)]
    fn value(self) -> u64 {
        let once = (self.0 as u64 as u128) + (self.0 >> 64) * FOLD;
        let twice = (once as u64 as u128) + (once >> 64) * FOLD;
        if twice >= u128::from(P) { (twice - u128::from(P)) as u64 } else { twice as u64 }
    }
}

/// a * b.
#[inline(always)]
pub(crate) fn mul(a: u64, b: u64) -> u64 {
    let mut sum = Sum::default();
    sum.add(a, b);
    sum.value()
}

/// a - b, of numbers below p.
#[inline(always)]
pub(crate) fn sub(a: u64, b: u64) -> u64 {
    if a >= b { a - b } else { a.wrapping_sub(b).wrapping_add(P) }
}

/// a + b, of numbers below p.
#[inline(always)]
pub(crate) fn add(a: u64, b: u64) -> u64 {
    sub(a, sub(0, b))
}

/// a to the power of e.
fn pow(mut a: u64, mut e: u64) -> u64 {
    let mut out = 1;
    while e > 0 {
        if e & 1 == 1 {
            out = mul(out, a);
        }
        a = mul(a, a);
        e >>= 1;
    }
    out
}

/// 1 / a; 0 for 0.
pub(crate) fn inverse(a: u64) -> u64 {
    pow(a, P - 2)
}

/// Drops zeros at the end.
fn trim(mut a: Vec<u64>) -> Vec<u64> {
    a.truncate(a.iter().rposition(|&c| c != 0).map_or(0, |last| last + 1));
    a
}

/// The value at x.
pub(crate) fn evaluate(a: &[u64], x: u64) -> u64 {
    a.iter().rev().fold(0, |value, &c| add(mul(value, x), c))
}

/// a with a leading coefficient of 1, and that coefficient; zero stays.
pub(crate) fn monic(mut a: Vec<u64>) -> (Vec<u64>, u64) {
    let Some(&last) = a.last() else { return (a, 0) };
    scale(&mut a, inverse(last));
    (a, last)
}

/// a times a number.
pub(crate) fn scale(a: &mut [u64], by: u64) {
    a.iter_mut().for_each(|c| *c = mul(*c, by));
}

fn product(a: &[u64], b: &[u64]) -> Vec<u64> {
    if a.is_empty() || b.is_empty() {
        return Vec::new();
    }
    let at = |i: usize| {
        let mut sum = Sum::default();
        for j in i.saturating_sub(b.len() - 1)..=i.min(a.len() - 1) {
            sum.add(a[j], b[i - j]);
        }
        sum.value()
    };
    trim((0..a.len() + b.len() - 1).map(at).collect())
}

/// a - b.
fn difference(a: &[u64], b: &[u64]) -> Vec<u64> {
    let at = |of: &[u64], i: usize| of.get(i).copied().unwrap_or(0);
    trim((0..a.len().max(b.len())).map(|i| sub(at(a, i), at(b, i))).collect())
}

/// The quotient of a and b, which is not zero; a becomes the remainder.
fn divide(a: &mut Vec<u64>, b: &[u64]) -> Vec<u64> {
    let Some((&last, rest)) = b.split_last() else { return Vec::new() };
    let by = if last == 1 { 1 } else { inverse(last) };
    let mut quotient = vec![0; (a.len() + 1).saturating_sub(b.len())];
    for at in (0..quotient.len()).rev() {
        let Some(top) = a.pop() else { break };
        let factor = mul(top, by);
        quotient[at] = factor;
        if factor != 0 {
            let minus = sub(0, factor);
            for (c, &r) in a[at..].iter_mut().zip(rest) {
                let mut sum = Sum(u128::from(*c));
                sum.add(minus, r);
                *c = sum.value();
            }
        }
    }
    *a = trim(std::mem::take(a));
    quotient
}

/// The greatest common divisor, monic.
fn gcd(mut a: Vec<u64>, mut b: Vec<u64>) -> Vec<u64> {
    while !b.is_empty() {
        divide(&mut a, &b);
        std::mem::swap(&mut a, &mut b);
    }
    monic(a).0
}

/// The polynomial of least degree with these values at these distinct points (Newton).
fn interpolate(points: &[u64], values: &[u64]) -> Vec<u64> {
    let mut slopes = values.to_vec();
    for step in 1..points.len() {
        for i in (step..points.len()).rev() {
            let width = inverse(sub(points[i], points[i - step]));
            slopes[i] = mul(sub(slopes[i], slopes[i - 1]), width);
        }
    }
    let mut out: Vec<u64> = Vec::with_capacity(points.len());
    for (&slope, &point) in slopes.iter().zip(points).rev() {
        // out = out * (x - point) + slope
        out.push(0);
        for i in (0..out.len()).rev() {
            let below = if i > 0 { out[i - 1] } else { slope };
            out[i] = sub(below, mul(out[i], point));
        }
    }
    trim(out)
}

/// The quotient of two monic polynomials without a common root that has these values at these points, the upper one of
/// degree `most` at most, the lower one of no more than what the number of points leaves (Cauchy interpolation, by
/// Euclid's algorithm).
pub(crate) fn rational(points: &[u64], values: &[u64], most: usize) -> Option<[Vec<u64>; 2]> {
    let mut whole = vec![1];
    for &point in points {
        whole = product(&whole, &[sub(0, point), 1]);
    }
    let (mut before, mut upper) = (whole, interpolate(points, values));
    let (mut lower_before, mut lower) = (Vec::new(), vec![1]);
    while upper.len() > most + 1 {
        let quotient = divide(&mut before, &upper);
        std::mem::swap(&mut before, &mut upper);
        let next = difference(&lower_before, &product(&quotient, &lower));
        lower_before = std::mem::replace(&mut lower, next);
    }
    let (lower, last) = monic(lower);
    scale(&mut upper, inverse(last));
    let coprime = gcd(upper.clone(), lower.clone()).len() == 1;
    (coprime && upper.last() == Some(&1)).then_some([upper, lower])
}

/// (x + shift)^e modulo a monic polynomial.
fn power(shift: u64, e: u64, modulus: &[u64]) -> Vec<u64> {
    let mut out = vec![1];
    for bit in (0..u64::BITS - e.leading_zeros()).rev() {
        out = product(&out, &out);
        divide(&mut out, modulus);
        if e >> bit & 1 == 1 {
            out = product(&out, &[shift, 1]);
            divide(&mut out, modulus);
        }
    }
    trim(out)
}

/// The roots of a monic polynomial, ascending, each as often as it is one; `None` if it is not a product of factors
/// x - root.
pub(crate) fn repeated_roots(of: &[u64]) -> Option<Vec<u64>> {
    let derived = trim((0..).zip(of).skip(1).map(|(i, &c)| mul(i, c)).collect());
    let distinct = roots(&divide(&mut of.to_vec(), &gcd(of.to_vec(), derived)))?;
    let (mut out, mut rest) = (Vec::new(), of.to_vec());
    for root in distinct {
        while evaluate(&rest, root) == 0 && rest.len() > 1 {
            rest = divide(&mut rest, &[sub(0, root), 1]);
            out.push(root);
        }
    }
    (rest.len() == 1).then_some(out)
}

/// The roots of a monic polynomial, ascending; `None` unless it is the product of distinct x - root (Cantor and
/// Zassenhaus).
pub(crate) fn roots(of: &[u64]) -> Option<Vec<u64>> {
    if of.len() > 2 && power(0, P, of) != [0, 1] {
        return None;
    }
    let (mut out, mut parts, mut shift) = (Vec::new(), vec![of.to_vec()], 1);
    while let Some(part) = parts.pop() {
        match part.as_slice() {
            [] => return None,
            [_] => {}
            &[constant, _] => out.push(sub(0, constant)),
            _ => {
                // Half of the roots, those whose sum with the shift is a square.
                let half = gcd(part.clone(), difference(&power(shift, (P - 1) / 2, &part), &[1]));
                shift += 1;
                if half.len() > 1 && half.len() < part.len() {
                    let mut rest = part;
                    parts.push(divide(&mut rest, &half));
                    parts.push(half);
                } else {
                    parts.push(part);
                }
            }
        }
    }
    out.sort_unstable();
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::testing::fixed_cases;
    use proptest::prelude::*;

    fn slow(a: u64, b: u64) -> u64 {
        (u128::from(a) * u128::from(b) % u128::from(P)) as u64
    }

    fn of_roots(roots: &[u64]) -> Vec<u64> {
        roots.iter().fold(vec![1], |all, &root| product(&all, &[sub(0, root), 1]))
    }

    proptest! {
        #![proptest_config(fixed_cases())]
        #[test]
        fn arithmetic_is_that_of_the_field(a in 0..P, b in 0..P) {
            prop_assert_eq!(mul(a, b), slow(a, b));
            prop_assert_eq!(add(a, b), ((u128::from(a) + u128::from(b)) % u128::from(P)) as u64);
            prop_assert_eq!(add(sub(a, b), b), a);
            prop_assert!(a == 0 || mul(a, inverse(a)) == 1);
        }

        #[test]
        fn a_polynomial_has_the_roots_that_it_was_made_of(roots in prop::collection::btree_set(0..P, 0..40)) {
            let roots: Vec<u64> = roots.into_iter().collect();
            prop_assert_eq!(super::roots(&of_roots(&roots)), Some(roots));
        }

        #[test]
        fn values_at_points_give_a_polynomial_back(a in prop::collection::vec(0..P, 0..20)) {
            let a = trim(a);
            let points: Vec<u64> = (0..a.len() as u64 + 3).map(|i| i * i + 7).collect();
            let values: Vec<u64> = points.iter().map(|&x| evaluate(&a, x)).collect();
            prop_assert_eq!(interpolate(&points, &values), a);
        }
    }

    #[test]
    fn repeated_roots_are_found_as_often_as_they_are_there() {
        let mut many: Vec<u64> = (0..60).map(|i| crate::hash::splitmix::at(3, i) % P).collect();
        many.sort_unstable();
        for wanted in [vec![], vec![0], vec![5], vec![0, 0], vec![1, 2, 3], vec![7, 7, 7, 9], vec![0, P - 1], many] {
            assert_eq!(repeated_roots(&of_roots(&wanted)), Some(wanted));
        }
        let g = (2..).find(|&g| pow(g, (P - 1) / 2) == P - 1).unwrap_or(2);
        assert_eq!(repeated_roots(&[sub(0, g), 0, 1]), None);
    }

    #[test]
    fn the_borders_of_the_field_are_right() {
        for a in [0, 1, 2, 58, 59, 60, 1 << 32, P - 2, P - 1] {
            for b in [0, 1, 2, 58, 59, 60, 1 << 32, P - 2, P - 1] {
                assert_eq!(mul(a, b), slow(a, b), "{a} {b}");
            }
        }
    }

    #[test]
    fn a_polynomial_without_all_its_roots_has_none() {
        // A root twice, and x^2 - g for a g that is no square.
        assert_eq!(roots(&of_roots(&[5, 5])), None);
        assert_eq!(roots(&of_roots(&[5, 7, 7, 9])), None);
        let g = (2..).find(|&g| pow(g, (P - 1) / 2) == P - 1).unwrap_or(2);
        assert_eq!(roots(&[sub(0, g), 0, 1]), None);
        assert_eq!(roots(&[]), None);
        assert_eq!(roots(&[1]), Some(vec![]));
    }
}
