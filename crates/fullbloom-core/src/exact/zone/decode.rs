//! Listing the members of a counting zone.
//!
//! The cells of a prime p count the members with each remainder, so the polynomial with the members as roots is known
//! modulo p. Its coefficients, the elementary symmetric sums, are below u^n for n members: enough primes determine them
//! (Garner, 1959), here modulo another prime above the universe, where the roots are the members themselves.

use crate::field;

/// Coefficients modulo `p` of the product of `X + rest`, each rest as often as `counts` says: the symmetric sums, the
/// last one first.
fn sums_modulo(p: u64, counts: impl Iterator<Item = u64>, members: usize) -> Vec<u64> {
    let mut sums = Vec::with_capacity(members + 1);
    sums.push(1);
    for (rest, count) in (0..).zip(counts) {
        for _ in 0..count {
            sums.insert(0, 0);
            for i in 0..sums.len() - 1 {
                sums[i] = (sums[i] + rest * sums[i + 1]) % p;
            }
        }
    }
    sums
}

/// The inverse of `a` modulo the prime `p`.
fn inverse(a: u64, p: u64) -> u64 {
    let (mut power, mut square, mut exponent) = (1, a % p, p - 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power * square % p;
        }
        square = square * square % p;
        exponent >>= 1;
    }
    power % p
}

/// The number below the product of `primes` with these remainders, modulo [`field::P`]; `inverses[i]` is that of the
/// product of the primes before number i, modulo that one.
fn join_remainders(primes: &[u64], inverses: &[u64], rests: impl Iterator<Item = u64>) -> u64 {
    let mut digits: Vec<u64> = Vec::with_capacity(primes.len());
    for ((&p, &inverse), rest) in primes.iter().zip(inverses).zip(rests) {
        let before = digits.iter().zip(primes).rev().fold(0, |sum, (&digit, &q)| (sum * (q % p) + digit) % p);
        digits.push((rest + p - before) % p * inverse % p);
    }
    digits.iter().zip(primes).rev().fold(0, |sum, (&digit, &q)| field::add(field::mul(sum, q), digit))
}

/// The elementary symmetric sums of the members modulo [`field::P`], the last one first; `cells(i)` are the counts of
/// prime number i, which add up to `members`. The product of the primes reaches that power of the universe.
pub(super) fn sums<C: Iterator<Item = u64>>(primes: &[u64], members: usize, cells: impl Fn(usize) -> C) -> Vec<u64> {
    let modulo: Vec<Vec<u64>> = primes.iter().enumerate().map(|(i, &p)| sums_modulo(p, cells(i), members)).collect();
    let inverses: Vec<u64> = primes
        .iter()
        .enumerate()
        .map(|(i, &p)| inverse(primes[..i].iter().fold(1, |product, &q| product * (q % p) % p), p))
        .collect();
    (0..=members).map(|at| join_remainders(primes, &inverses, modulo.iter().map(|sums| sums[at]))).collect()
}

/// The members, in order, with repetitions; empty if these are not the sums of any.
pub(super) fn members(sums: &[u64]) -> Vec<u64> {
    // Of X + member the roots are negative.
    let members = sums.len() - 1;
    let signed = sums.iter().enumerate().map(|(i, &sum)| if (members - i) % 2 == 1 { field::sub(0, sum) } else { sum });
    field::repeated_roots(&signed.collect::<Vec<_>>()).unwrap_or_default()
}
