/**
 * Laws of false-positive rates. n keys, m bits, k hash functions. Tests compare each with `fullbloom.theory` in Python.
 */

/** Expected share of set bits: `1 - (1 - 1/m)^(kn)`. */
export function fill(items: number, numBits: number, numHashes: number): number {
  if (numBits <= 1) return items > 0 ? 1 : 0;
  return -Math.expm1(items * numHashes * Math.log1p(-1 / numBits));
}

/** Rate of the classic filter: `(1 - (1 - 1/m)^(kn))^k`. */
export function classicFpr(items: number, numBits: number, numHashes: number): number {
  return fill(items, numBits, numHashes) ** numHashes;
}

/** The k, a whole number, with the least rate for so many bits a key; at least 1. */
export function bestNumHashes(numBits: number, items: number): number {
  const middle = (numBits / items) * Math.LN2;
  const low = Math.max(1, Math.floor(middle));
  const rate = (k: number): number => k * Math.log(-Math.expm1((-k * items) / numBits));
  return rate(low) <= rate(low + 1) ? low : low + 1;
}

/** Rate of the classic filter with the best k that need not be whole: `2^(-(m/n) ln 2)`, as the textbooks plot it. */
export function bestFpr(items: number, numBits: number): number {
  return 2 ** (-(numBits / items) * Math.LN2);
}

/** Chance that T given cells of a lane of `width` are all set after `keys` keys that set T distinct cells each. */
function allSet(keys: number, width: number, perLane: number): number {
  let [sum, choose] = [1, 1];
  // q(s) = C(width - s, T) / C(width, T), as a product over T.
  for (let s = 1; s <= perLane; s++) {
    choose = (choose * (perLane - s + 1)) / s;
    let log = 0;
    for (let j = 0; j < perLane; j++) log += Math.log1p(-s / (width - j));
    sum += (s % 2 ? -1 : 1) * choose * Math.exp(keys * log);
  }
  return Math.max(0, sum);
}

/**
 * Rate of the blocked filter, lines of 512 bits in four columns with k/4 distinct positions each:
 * `E[Q(I)^4]`, I ~ Binomial(n, 512/m) keys in the line.
 */
export function blockedFpr(items: number, numBits: number, numHashes: number): number {
  const lines = numBits / 512;
  const found = (keys: number): number => allSet(keys, 128, numHashes / 4) ** 4;
  if (lines <= 1) return found(items);
  return binomialMean(items, 1 / lines, found);
}

/** The mean of `of(I)`, I ~ Binomial(n, p); terms are summed from the mode outwards. */
export function binomialMean(n: number, p: number, of: (i: number) => number): number {
  const mode = Math.min(n, Math.floor((n + 1) * p));
  const odds = p / (1 - p);
  let [mass, sum] = [1, of(mode)];
  const step = (from: number, by: 1 | -1): void => {
    let weight = 1;
    for (let i = from; by > 0 ? i < n : i > 0; i += by) {
      weight *= by > 0 ? ((n - i) / (i + 1)) * odds : i / ((n - i + 1) * odds);
      if (weight < 1e-18) break;
      mass += weight;
      sum += weight * of(i + by);
    }
  };
  step(mode, 1);
  step(mode, -1);
  return sum / mass;
}

/** Rate of several filters of which one is enough: `1 - (1 - p1)(1 - p2)...` */
export function compoundFpr(rates: readonly number[]): number {
  return -Math.expm1(rates.reduce((log, rate) => log + Math.log1p(-rate), 0));
}

/** The standard deviation of a rate that was measured with `trials` absent keys. */
export function measurementError(rate: number, trials: number): number {
  return Math.sqrt((rate * (1 - rate)) / trials);
}

/** Bits of the smallest cascade of r against s keys, by its law: `r (log2(s / r) + 1/2 + sqrt(1/2) / (1 - sqrt(1/2))) / ln 2`, r the smaller set. */
export function cascadeBits(included: number, excluded: number): number {
  const [r, s] = [Math.min(included, excluded), Math.max(included, excluded)];
  return (r * (Math.log2(s / r) + 0.5 + Math.SQRT1_2 / (1 - Math.SQRT1_2))) / Math.LN2;
}
