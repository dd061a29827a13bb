//! The registry: one row a variant. Class, stub, documentation page, command-line choice, test and
//! benchmark matrices are derived from it, and tests fail where one is missing.

/// Number of [`crate::bloom::BloomFilter`] in files.
pub const BLOOM: u16 = 1;
/// Number of [`crate::bloom::ScalableBloomFilter`] in files.
pub const SCALABLE: u16 = 2;
/// Number of [`crate::counting::CountingBloomFilter`] in files.
pub const COUNTING: u16 = 3;
/// Number of [`crate::counting::VariableIncrementFilter`] in files.
pub const VARIABLE_INCREMENT: u16 = 4;
/// Number of [`crate::counting::SpectralFilter`] in files.
pub const SPECTRAL: u16 = 5;
/// Number of [`crate::table::DLeftCountingFilter`] in files.
pub const D_LEFT: u16 = 6;
/// Number of [`crate::counting::DeletableBloomFilter`] in files.
pub const DELETABLE: u16 = 7;
/// Number of [`crate::bloom::RetouchedBloomFilter`] in files.
pub const RETOUCHED: u16 = 8;
/// Number of [`crate::window::StableBloomFilter`] in files.
pub const STABLE: u16 = 9;
/// Number of [`crate::window::AgingBloomFilter`] in files.
pub const AGING: u16 = 10;
/// Number of [`crate::window::RollingBloomFilter`] in files.
pub const ROLLING: u16 = 11;
/// Number of [`crate::labelled::LayeredBloomFilter`] in files.
pub const LAYERED: u16 = 12;
/// Number of [`crate::labelled::SpatialBloomFilter`] in files.
pub const SPATIAL: u16 = 13;
/// Number of [`crate::labelled::CompactApproximator`] in files.
pub const COMPACT: u16 = 14;
/// Number of [`crate::table::CuckooFilter`] in files.
pub const CUCKOO: u16 = 15;
/// Number of [`crate::table::QuotientFilter`] in files.
pub const QUOTIENT: u16 = 16;
/// Number of [`crate::table::PrefixFilter`] in files.
pub const PREFIX: u16 = 17;
/// Number of [`crate::table::DynamicCuckooFilter`] in files.
pub const DYNAMIC_CUCKOO: u16 = 18;

/// When a structure may deny a key that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FalseNegatives {
    /// Never.
    Never,
    /// Only after misuse, such as removing what was never added.
    OnMisuse,
    /// By design: the structure forgets.
    ByDesign,
}

impl FalseNegatives {
    /// As shown to people.
    pub fn name(self) -> &'static str {
        match self {
            FalseNegatives::Never => "never",
            FalseNegatives::OnMisuse => "only on misuse",
            FalseNegatives::ByDesign => "by design",
        }
    }
}

/// One variant.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Number in files.
    pub id: u16,
    /// Short name: command line, documentation page, golden files.
    pub name: &'static str,
    /// The Python class.
    pub class: &'static str,
    /// The room of the source.
    pub family: &'static str,
    /// What it can do beyond `in`.
    pub capabilities: &'static [&'static str],
    /// Layouts it comes in; empty when there is nothing to choose.
    pub layouts: &'static [&'static str],
    /// Nanoseconds a key of batch add and batch contains at 10 million keys, measured on one core of
    /// a 2.5 GHz Xeon: for planning, not a promise.
    pub ns: [f64; 2],
    /// Promise about false negatives.
    pub false_negatives: FalseNegatives,
    /// What merging two of them means.
    pub merging: &'static str,
    /// Its law.
    pub formula: &'static str,
    /// Where it was published.
    pub paper: &'static str,
}

const LAYOUT_NAMES: &[&str] = &["classic", "blocked", "split", "partitioned"];

/// Every variant, in order of number.
pub const VARIANTS: &[Variant] = &[
    Variant {
        id: BLOOM,
        name: "bloom",
        class: "BloomFilter",
        family: "bloom",
        capabilities: &["add", "merge", "union", "intersect", "estimate", "map", "write-in-place"],
        layouts: LAYOUT_NAMES,
        ns: [6.0, 5.0],
        false_negatives: FalseNegatives::Never,
        merging: "bitwise or: the filter of the united keys, bit for bit",
        formula: "(1 - (1 - 1/m)^(kn))^k; per layout in sizing",
        paper: "Bloom, Space/time trade-offs in hash coding with allowable errors, CACM 13(7), 1970",
    },
    Variant {
        id: SCALABLE,
        name: "scalable",
        class: "ScalableBloomFilter",
        family: "bloom",
        capabilities: &["add", "grow", "estimate", "map"],
        layouts: LAYOUT_NAMES,
        ns: [7.0, 5.0],
        false_negatives: FalseNegatives::Never,
        merging: "not defined: the stages of two filters hold different numbers of keys",
        formula: "1 - prod(1 - p_i) <= p, p_i = p (1 - r) r^i",
        paper: "Almeida, Baquero, Preguica, Hutchison, Scalable Bloom filters, IPL 101(6), 2007",
    },
    Variant {
        id: COUNTING,
        name: "counting",
        class: "CountingBloomFilter",
        family: "counting",
        capabilities: &["add", "remove", "count", "merge", "estimate", "map"],
        layouts: &["classic", "blocked"],
        ns: [9.5, 7.0],
        false_negatives: FalseNegatives::OnMisuse,
        merging: "counters added, stopping at their maximum: the filter of both multisets",
        formula: "(1 - (1 - 1/m)^(kn))^k; P(Bin(kn, 1/m) >= t)^k for t occurrences; per layout in sizing",
        paper: "Fan, Cao, Almeida, Broder, Summary cache, IEEE/ACM ToN 8(3), 2000",
    },
    Variant {
        id: VARIABLE_INCREMENT,
        name: "variable-increment",
        class: "VariableIncrementFilter",
        family: "counting",
        capabilities: &["add", "remove", "merge", "estimate", "map"],
        layouts: &[],
        ns: [52.0, 47.0],
        false_negatives: FalseNegatives::OnMisuse,
        merging: "counters added, stopping at their maximum: the filter of both multisets",
        formula: "(1 - B(0) - (L-1)/L B(1) - (L^2-1)/(6L^2) B(2))^k, B(i) = P(Bin(kn, 1/m) = i)",
        paper: "Rottenstreich, Kanizo, Keslassy, The variable-increment counting Bloom filter, ToN 22(4), 2014",
    },
    Variant {
        id: SPECTRAL,
        name: "spectral",
        class: "SpectralFilter",
        family: "counting",
        capabilities: &["add", "count", "estimate", "map"],
        layouts: &[],
        ns: [177.0, 93.0],
        false_negatives: FalseNegatives::Never,
        merging: "not defined: the counters of two histories do not add up in every mode",
        formula: "(1 - (1 - 1/m)^(kn))^k bounds the share of wrong counts",
        paper: "Cohen, Matias, Spectral Bloom filters, SIGMOD 2003",
    },
    Variant {
        id: D_LEFT,
        name: "d-left",
        class: "DLeftCountingFilter",
        family: "table",
        capabilities: &["add", "remove", "count", "merge", "map"],
        layouts: &[],
        ns: [98.0, 57.0],
        false_negatives: FalseNegatives::OnMisuse,
        merging: "the multiset of both: fingerprints are inserted anew, counts add; FilterFull changes nothing",
        formula: "1 - (1 - 1/(B R))^n, about d * load * 2^-r",
        paper: "Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, An improved construction for counting Bloom \
                filters, ESA 2006",
    },
    Variant {
        id: DELETABLE,
        name: "deletable",
        class: "DeletableBloomFilter",
        family: "counting",
        capabilities: &["add", "delete", "merge", "estimate", "map"],
        layouts: &[],
        ns: [62.0, 23.0],
        false_negatives: FalseNegatives::OnMisuse,
        merging: "bitwise or of bits and flags; a bit set in both flags its region, so less can be deleted after",
        formula: "(1 - (1 - 1/m)^(kn))^k; deletable 1 - (1 - (1 - 1/m)^(N-1) (p0 + p1)^(m/r-1))^k, N = kn",
        paper: "Rothenberg, Macapuna, Verdi, Magalhaes, The deletable Bloom filter, IEEE Communications Letters \
                14(6), 2010",
    },
    Variant {
        id: RETOUCHED,
        name: "retouched",
        class: "RetouchedBloomFilter",
        family: "bloom",
        capabilities: &["add", "retouch", "map"],
        layouts: &[],
        ns: [114.0, 22.0],
        false_negatives: FalseNegatives::ByDesign,
        merging: "not defined: a bit cleared in one filter may be set in the other",
        formula: "share x of the set bits cleared at random: (fill (1 - x))^k, false negatives 1 - (1 - x)^k",
        paper: "Donnet, Baynat, Friedman, Retouched Bloom filters: allowing networked applications to trade off \
                selected false positives against false negatives, CoNEXT 2006",
    },
    Variant {
        id: STABLE,
        name: "stable",
        class: "StableBloomFilter",
        family: "window",
        capabilities: &["add", "expire", "map"],
        layouts: &[],
        ns: [34.0, 21.0],
        false_negatives: FalseNegatives::ByDesign,
        merging: "not defined: each stream has decayed the other's keys",
        formula: "(1 - (1 / (1 + 1 / (P (1/K - 1/m))))^Max)^K",
        paper: "Deng, Rafiei, Approximately detecting duplicates for streaming data using stable Bloom filters, SIGMOD 2006",
    },
    Variant {
        id: AGING,
        name: "aging",
        class: "AgingBloomFilter",
        family: "window",
        capabilities: &["add", "expire", "map"],
        layouts: &[],
        ns: [11.0, 9.0],
        false_negatives: FalseNegatives::ByDesign,
        merging: "not defined: two streams have no common order",
        formula: "1 - (1 - e)^2 <= p, e the blocked rate of capacity keys in one buffer",
        paper: "Yoon, Aging Bloom filter with two active buffers for dynamic sets, IEEE TKDE 22(1), 2010",
    },
    Variant {
        id: ROLLING,
        name: "rolling",
        class: "RollingBloomFilter",
        family: "window",
        capabilities: &["add", "expire", "map"],
        layouts: &[],
        ns: [15.0, 12.0],
        false_negatives: FalseNegatives::ByDesign,
        merging: "not defined: two streams have no common order",
        formula: "1 - (1 - e)^g <= p, e the blocked rate of ceil(capacity / (g - 1)) keys in one generation",
        paper: "Bitcoin Core, CRollingBloomFilter, 2015",
    },
    Variant {
        id: LAYERED,
        name: "layered",
        class: "LayeredBloomFilter",
        family: "labelled",
        capabilities: &["add", "count", "estimate", "map"],
        layouts: &[],
        ns: [15.0, 13.0],
        false_negatives: FalseNegatives::Never,
        merging: "not defined: the layers of two filters count different occurrences",
        formula: "blocked rate of capacity keys, in each layer",
        paper: "Zhiwang, Jungang, Jian, A multi-layer Bloom filter for duplicated URL detection, ICACTE 2010",
    },
    Variant {
        id: SPATIAL,
        name: "spatial",
        class: "SpatialBloomFilter",
        family: "labelled",
        capabilities: &["add", "label", "merge", "estimate", "map"],
        layouts: &[],
        ns: [180.0, 135.0],
        false_negatives: FalseNegatives::Never,
        merging: "the larger label, cell by cell: the filter of all pairs, bit for bit",
        formula: "reported above its label i: (1 - (1 - 1/m)^(k sum_(j>i) n_j))^k",
        paper: "Palmieri, Calderoni, Maio, Spatial Bloom filters: enabling privacy in location-aware applications, Inscrypt 2014",
    },
    Variant {
        id: COMPACT,
        name: "compact",
        class: "CompactApproximator",
        family: "labelled",
        capabilities: &["add", "value", "merge", "estimate", "map"],
        layouts: &[],
        ns: [180.0, 135.0],
        false_negatives: FalseNegatives::Never,
        merging: "join, cell by cell: the filter of all pairs, bit for bit",
        formula: "above v: (1 - (1 - 1/m)^(k n_(>v)))^k, n_(>v) the keys with a value above v",
        paper: "Boldi, Vigna, Mutable strings in Java, Science of Computer Programming 54(1), 2005",
    },
    Variant {
        id: CUCKOO,
        name: "cuckoo",
        class: "CuckooFilter",
        family: "table",
        capabilities: &["add", "remove", "count", "merge", "map"],
        layouts: &[],
        ns: [44.0, 12.0],
        false_negatives: FalseNegatives::OnMisuse,
        merging: "the fingerprints of both, stored again; FilterFull when they do not fit",
        formula: "1 - (1 - 1/(2^f - 1))^(2 b a), a items a slot",
        paper: "Fan, Andersen, Kaminsky, Mitzenmacher, Cuckoo filter: practically better than Bloom, CoNEXT 2014",
    },
    Variant {
        id: QUOTIENT,
        name: "quotient",
        class: "QuotientFilter",
        family: "table",
        capabilities: &["add", "remove", "count", "merge", "grow", "map"],
        layouts: &[],
        ns: [49.0, 29.0],
        false_negatives: FalseNegatives::OnMisuse,
        merging: "the multiset sum: every copy of every fingerprint of both; raises FilterFull where it does not fit",
        formula: "1 - (1 - 2^-(q+r))^n, about 1 - exp(-load / 2^r)",
        paper: "Bender et al., Don't thrash: how to cache your hash on flash, PVLDB 5(11), 2012",
    },
    Variant {
        id: PREFIX,
        name: "prefix",
        class: "PrefixFilter",
        family: "table",
        capabilities: &["add", "map"],
        layouts: &[],
        ns: [47.0, 39.0],
        false_negatives: FalseNegatives::Never,
        merging: "not defined: bins that overflow pass on what they cannot take back",
        formula: "a 2^-r + share p', a items a slot, share E[(X - k)+] / (a k) passed on to a spare of rate p'",
        paper: "Even, Even, Morrison, Prefix filter: practically and theoretically better than Bloom, PVLDB 15(7), 2022",
    },
    Variant {
        id: DYNAMIC_CUCKOO,
        name: "dynamic-cuckoo",
        class: "DynamicCuckooFilter",
        family: "table",
        capabilities: &["add", "remove", "count", "merge", "grow", "map"],
        layouts: &[],
        ns: [45.0, 12.0],
        false_negatives: FalseNegatives::OnMisuse,
        merging: "the fingerprints of both, stored again; FilterFull when all stages do not hold them",
        formula: "1 - (1 - 1/(2^f - 1))^(2 b a s), a items a slot in s stages",
        paper: "Chen, Liao, Jin, Wu, The dynamic cuckoo filter, ICNP 2017",
    },
];

/// The row with number `id`.
pub fn by_id(id: u16) -> Option<&'static Variant> {
    VARIANTS.iter().find(|variant| variant.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_unique() {
        for (i, a) in VARIANTS.iter().enumerate() {
            assert!(VARIANTS[i + 1..].iter().all(|b| a.id != b.id && a.name != b.name && a.class != b.class));
        }
    }
}
