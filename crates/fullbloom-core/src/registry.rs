//! The registry: the one list of structures. Classes, module exports, stub, documentation pages, command-line
//! choices, kinds of stages, test and benchmark matrices come from it.

/// Hands every row to the macro `$do`, after `$with`.
///
/// A row has these fields:
///
/// * the constant and the number in files, the module and the name, and the type of the structure;
/// * `adds`: when it takes entries (`open`: at any time; `built`: all at once, when it is created) and what an entry is
///   made of; consumers match these two, so that a new way of adding needs no arm for its name;
/// * `can`: its capabilities beside `add` and `in`;
/// * `stage`: whether it can be a stage of a growing filter, by what its rate depends on (`bits`, `fingerprints`, `pairs`
///   of buckets, or `no`);
/// * `false_negatives`: when it may miss a key that was added;
/// * `layouts`, if there is a choice;
/// * `ns`: nanoseconds a key of batch add and batch contains at 10 million keys on one core of a 2.5 GHz Xeon (for
///   planning, not a promise);
/// * `merging`: what the merge of two is; `formula`: its law; `paper`;
/// * `role`, `once`, `fixed`, if they are not the default of [`Variant`](crate::registry::Variant).
#[macro_export]
macro_rules! variants {
    ($($do:ident)::+ ! $with:tt) => {
        $($do)::+ ! { $with
            {
                BLOOM = 1, bloom "bloom", bloom::BloomFilter;
                adds: open [key], can: [merge union intersect estimate positions bits write_in_place], stage: bits, false_negatives: Never,
                layouts: ["classic", "blocked", "split", "partitioned", "two-block"], ns: [6.0, 5.0],
                merging: "bitwise or: the filter of the united keys, bit for bit",
                formula: "(1 - (1 - 1/m)^(kn))^k; per layout in sizing",
                paper: "Bloom, Space/time trade-offs in hash coding with allowable errors, CACM 13(7), 1970",
                role: "plain",
            }
            {
                SCALABLE = 2, scalable "scalable", chain::ScalableBloomFilter;
                adds: open [key], can: [grow estimate map], stage: no, false_negatives: Never,
                layouts: ["classic", "blocked", "split", "partitioned", "two-block"], ns: [7.0, 5.0],
                merging: "not defined: a stage that took in the keys of another would hold more than it was made for, and break the rate of the whole",
                formula: "1 - prod(1 - p_i) <= rate <= sum p_i <= p, p_i = p (1 - r) r^i",
                paper: "Almeida, Baquero, Preguica, Hutchison, Scalable Bloom filters, IPL 101(6), 2007",
                role: "growing",
            }
            {
                COUNTING = 3, counting "counting", counting::CountingBloomFilter;
                adds: open [key], can: [remove count merge intersect estimate positions bits map], stage: bits, false_negatives: OnMisuse,
                layouts: ["classic", "blocked"], ns: [9.5, 7.0],
                merging: "counters added, stopping at their maximum: the filter of both multisets",
                formula: "(1 - (1 - 1/m)^(kn))^k; P(Bin(kn, 1/m) >= t)^k for t occurrences; per layout in sizing",
                paper: "Fan, Cao, Almeida, Broder, Summary cache, IEEE/ACM ToN 8(3), 2000",
            }
            {
                VARIABLE_INCREMENT = 4, variable_increment "variable-increment", counting::VariableIncrementFilter;
                adds: open [key], can: [remove merge estimate positions bits map], stage: no, false_negatives: OnMisuse,
                layouts: [], ns: [52.0, 47.0],
                merging: "counters added, stopping at their maximum: the filter of both multisets",
                formula: "(1 - B(0) - (L-1)/L B(1) - (L^2-1)/(6L^2) B(2))^k, B(i) = P(Bin(kn, 1/m) = i)",
                paper: "Rottenstreich, Kanizo, Keslassy, The variable-increment counting Bloom filter, ToN 22(4), 2014",
            }
            {
                SPECTRAL = 5, spectral "spectral", counting::SpectralBloomFilter;
                adds: open [key], can: [count estimate positions bits map], stage: no, false_negatives: Never,
                layouts: [], ns: [177.0, 93.0],
                merging: "not defined: the counters of two histories do not add up in every mode",
                formula: "(1 - (1 - 1/m)^(kn))^k bounds the share of wrong counts",
                paper: "Cohen, Matias, Spectral Bloom filters, SIGMOD 2003",
            }
            {
                D_LEFT = 6, d_left "d-left", table::DLeftCountingFilter;
                adds: open [key], can: [remove count merge bits map], stage: fingerprints, false_negatives: OnMisuse,
                layouts: [], ns: [98.0, 57.0],
                merging: "the multiset of both: fingerprints are inserted again, counts add; FilterFull changes nothing",
                formula: "1 - (1 - 1/(B R))^n, about d * load * 2^-r",
                paper: "Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, An improved construction for counting Bloom filters, ESA 2006",
            }
            {
                DELETABLE = 7, deletable "deletable", counting::DeletableBloomFilter;
                adds: open [key], can: [delete merge estimate positions bits map], stage: no, false_negatives: OnMisuse,
                layouts: [], ns: [62.0, 23.0],
                merging: "bitwise or of bits and flags; a bit set in both flags its region, so fewer keys can be removed afterwards",
                formula: "(1 - (1 - 1/m)^(kn))^k; deletable 1 - (1 - (1 - 1/m)^(N-1) (p0 + p1)^(m/r-1))^k, N = kn",
                paper: "Rothenberg, Macapuna, Verdi, Magalhaes, The deletable Bloom filter, IEEE Communications Letters 14(6), 2010",
            }
            {
                RETOUCHED = 8, retouched "retouched", bloom::RetouchedBloomFilter;
                adds: open [key], can: [retouch positions bits map], stage: no, false_negatives: ByDesign,
                layouts: [], ns: [114.0, 22.0],
                merging: "not defined: a bit cleared in one filter may be set in the other",
                formula: "share x of the set bits cleared at random: (fill (1 - x))^k, false negatives 1 - (1 - x)^k",
                paper: "Donnet, Baynat, Friedman, Retouched Bloom filters: allowing networked applications to trade off selected false positives against false negatives, CoNEXT 2006",
            }
            {
                STABLE = 9, stable "stable", window::StableBloomFilter;
                adds: open [key], can: [expire positions bits map], stage: no, false_negatives: ByDesign,
                layouts: [], ns: [34.0, 21.0],
                merging: "not defined: each stream would have decayed the keys of the other",
                formula: "(1 - (1 / (1 + 1 / (P (1/K - 1/m))))^Max)^K",
                paper: "Deng, Rafiei, Approximately detecting duplicates for streaming data using stable Bloom filters, SIGMOD 2006",
            }
            {
                AGING = 10, aging "aging", window::AgingBloomFilter;
                adds: open [key], can: [expire bits map], stage: no, false_negatives: ByDesign,
                layouts: [], ns: [11.0, 9.0],
                merging: "not defined: two streams have no common order",
                formula: "1 - (1 - e)^2 <= p, e the blocked rate of capacity keys in one buffer",
                paper: "Yoon, Aging Bloom filter with two active buffers for dynamic sets, IEEE TKDE 22(1), 2010",
            }
            {
                ROLLING = 11, rolling "rolling", window::RollingBloomFilter;
                adds: open [key], can: [expire bits map], stage: no, false_negatives: ByDesign,
                layouts: [], ns: [15.0, 12.0],
                merging: "not defined: two streams have no common order",
                formula: "1 - (1 - e)^g <= p, e the blocked rate of ceil(capacity / (g - 1)) keys in one generation",
                paper: "Bitcoin Core, CRollingBloomFilter, 2015",
            }
            {
                LAYERED = 12, layered "layered", labelled::LayeredBloomFilter;
                adds: open [key], can: [count estimate bits map], stage: bits, false_negatives: Never,
                layouts: [], ns: [15.0, 13.0],
                merging: "not defined: the layers of two filters count different occurrences",
                formula: "blocked rate of capacity keys, in each layer",
                paper: "Zhiwang, Jungang, Jian, A multi-layer Bloom filter for duplicated URL detection, ICACTE 2010",
            }
            {
                SPATIAL = 13, spatial "spatial", labelled::SpatialBloomFilter;
                adds: open [key value], can: [label merge estimate bits map], stage: no, false_negatives: Never,
                layouts: [], ns: [180.0, 135.0],
                merging: "the larger label, cell by cell: the filter of all pairs, bit for bit",
                formula: "reported above its label i: (1 - (1 - 1/m)^(k sum_(j>i) n_j))^k",
                paper: "Palmieri, Calderoni, Maio, Spatial Bloom filters: enabling privacy in location-aware applications, Inscrypt 2014",
            }
            {
                COMPACT = 14, compact "compact", labelled::CompactApproximator;
                adds: open [key value], can: [value merge estimate bits map], stage: no, false_negatives: Never,
                layouts: [], ns: [180.0, 135.0],
                merging: "join, cell by cell: the filter of all pairs, bit for bit",
                formula: "above v: (1 - (1 - 1/m)^(k n_(>v)))^k, n_(>v) the keys with a value above v",
                paper: "Boldi, Vigna, Mutable strings in Java, Science of Computer Programming 54(1), 2005",
            }
            {
                CUCKOO = 15, cuckoo "cuckoo", table::CuckooFilter;
                adds: open [key], can: [remove count merge bits map], stage: pairs, false_negatives: OnMisuse,
                layouts: [], ns: [44.0, 12.0],
                merging: "the fingerprints of both, stored again; FilterFull when they do not fit",
                formula: "1 - (1 - 1/(2^f - 1))^(2 b a), a items per slot",
                paper: "Fan, Andersen, Kaminsky, Mitzenmacher, Cuckoo filter: practically better than Bloom, CoNEXT 2014",
                once: true,
            }
            {
                QUOTIENT = 16, quotient "quotient", table::QuotientFilter;
                adds: open [key], can: [remove count merge grow map], stage: fingerprints, false_negatives: OnMisuse,
                layouts: [], ns: [49.0, 29.0],
                merging: "the multiset sum: every copy of every fingerprint of both, in tables of any size; raises FilterFull if it does not fit",
                formula: "1 - (1 - 2^-(q+r))^n, about 1 - exp(-load / 2^r)",
                paper: "Bender et al., Don't thrash: how to cache your hash on flash, PVLDB 5(11), 2012",
                once: true,
            }
            {
                PREFIX = 17, prefix "prefix", table::PrefixFilter;
                adds: open [key], can: [map], stage: fingerprints, false_negatives: Never,
                layouts: [], ns: [47.0, 39.0],
                merging: "not defined: keys that overflowed into the spare cannot be moved back to bins",
                formula: "a 2^-r + share p', a items per slot, share E[(X - k)+] / (a k) passed on to a spare of rate p'",
                paper: "Even, Even, Morrison, Prefix filter: practically and theoretically better than Bloom, PVLDB 15(7), 2022",
                once: true,
            }
            {
                DYNAMIC_CUCKOO = 18, dynamic_cuckoo "dynamic-cuckoo", chain::DynamicCuckooFilter;
                adds: open [key], can: [remove count merge grow map], stage: no, false_negatives: OnMisuse,
                layouts: [], ns: [45.0, 12.0],
                merging: "the fingerprints of both, stored again, with any numbers of stages; FilterFull when they do not fit",
                formula: "1 - (1 - 1/(2^f - 1))^(2 b a s), a items per slot in s stages",
                paper: "Chen, Liao, Jin, Wu, The dynamic cuckoo filter, ICNP 2017",
                once: true, fixed: [("max_stages", 1)],
            }
            {
                BIT_SET = 19, bit_set "bit-set", exact::BitSet;
                adds: open [number], can: [remove merge union intersect estimate positions bits map], stage: no, false_negatives: Never,
                layouts: [], ns: [6.3, 5.2],
                merging: "the union: bitwise or",
                formula: "0 for whole numbers; N / 2^64 for keys of another type, N the size of the universe",
                paper: "Carter, Floyd, Gill, Markowsky, Wegman, Exact and approximate membership testers, STOC 1978",
            }
            {
                BINARY_FUSE = 20, binary_fuse "binary-fuse", static_filters::BinaryFuseFilter;
                adds: built [key], can: [map], stage: no, false_negatives: Never,
                layouts: [], ns: [54.0, 6.9],
                merging: "not defined: cells solve for the keys of one set",
                formula: "2^-bits; 1.125 (arity 3) or 1.075 (arity 4) cells per key, more below a million keys",
                paper: "Graf, Lemire, Binary fuse filters: fast and smaller than xor filters, ACM JEA 27, 2022",
            }
            {
                XOR = 21, xor "xor", static_filters::XorFilter;
                adds: built [key], can: [map], stage: no, false_negatives: Never,
                layouts: [], ns: [79.0, 6.7],
                merging: "not defined: cells solve for the keys of one set",
                formula: "2^-bits; 1.23 cells per key",
                paper: "Graf, Lemire, Xor filters: faster and smaller than Bloom and cuckoo filters, ACM JEA 25, 2020",
            }
            {
                RIBBON = 22, ribbon "ribbon", static_filters::RibbonFilter;
                adds: built [key], can: [map], stage: no, false_negatives: Never,
                layouts: [], ns: [66.0, 16.0],
                merging: "not defined: slots solve for the keys of one set",
                formula: "a 2^-r + (1 - a) 2^-(r + 1), a the share of starts with r result bits; 1.006 bits a result bit",
                paper: "Dillinger, Huebschle-Schneider, Sanders, Walzer, Fast succinct retrieval and approximate membership using ribbon, SEA 2022",
            }
            {
                GOLOMB = 23, golomb "golomb", static_filters::GolombSet;
                adds: built [key], can: [merge overlap map], stage: no, false_negatives: Never,
                layouts: [], ns: [20.0, 93.0],
                merging: "the union of the sorted values: the set of all keys, byte for byte; FilterFull if they exceed the capacity",
                formula: "n / F, F = capacity / fpr; P + 1 + 1/((1 - fpr)^(-2^P) - 1) bits per key, P = floor(log2(ln 2 / fpr))",
                paper: "Golomb, Run-length encodings, IEEE Trans. Information Theory 12(3), 1966; Putze, Sanders, Singler, Cache-, hash- and space-efficient Bloom filters, WEA 2007",
            }
            {
                BLOOMIER = 24, bloomier "bloomier", static_filters::BloomierMap;
                adds: built [key value], can: [value map], stage: no, false_negatives: Never,
                layouts: [], ns: [92.0, 11.0],
                merging: "not defined: cells solve for the pairs of one map",
                formula: "2^-c of absent keys have a value; 1.125 (arity 3) or 1.075 (arity 4) cells of v + c bits per key, more below a million keys",
                paper: "Chazelle, Kilian, Rubinfeld, Tal, The Bloomier filter: an efficient data structure for static support lookup tables, SODA 2004",
            }
            {
                ZONE = 25, zone "zone", exact::ZoneFilter;
                adds: open [number], can: [delete map], stage: no, false_negatives: OnMisuse,
                layouts: [], ns: [235.0, 25.0],
                merging: "not defined: the cells do not show how many members two zones share",
                formula: "0 up to d members; m = sum of the first k primes, whose product reaches u^d",
                paper: "Eppstein, Goodrich, Hirschberg, Improved combinatorial group testing algorithms for real-world problem sizes, SIAM Journal on Computing 36(5), 2007",
            }
            {
                CASCADE = 26, cascade "cascade", chain::FilterCascade;
                adds: built [included excluded], can: [map], stage: no, false_negatives: Never,
                layouts: [], ns: [32.0, 19.0],
                merging: "not defined: each level stores the errors of the one before it, in one world",
                formula: "0 within its world; r (log2(s/r) + 2.914) / ln 2 bits, r keys against s more",
                paper: "Larisch, Choffnes, Levin, Maggs, Mislove, Wilson, CRLite: a scalable system for pushing all TLS revocations to all browsers, IEEE S&P 2017",
            }
            {
                INVERTIBLE = 27, invertible "invertible", reconcile::InvertibleBloomFilter;
                adds: open [key], can: [remove merge decode positions map], stage: no, false_negatives: OnMisuse,
                layouts: [], ns: [60.0, 40.0],
                merging: "sums added, cell by cell: the table of both sets, in which shared keys count twice",
                formula: "(1 - P(0) - P(1))^4, P(i) = P(Bin(n, 4/m) = i); decodes up to m / 1.3 - O(sqrt(m)) keys",
                paper: "Eppstein, Goodrich, Uyeda, Varghese, What's the difference? Efficient set reconciliation without prior context, SIGCOMM 2011",
            }
        }
    };
}

/// When a structure may miss a key that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FalseNegatives {
    /// Never.
    Never,
    /// Only after misuse, such as removing a key that was never added.
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

/// One structure.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Number in files.
    pub id: u16,
    /// Short name: command line, documentation page, golden files.
    pub name: &'static str,
    /// The Python class.
    pub class: &'static str,
    /// The name of its way of adding: `key`, `pair`, `number`, `build`, `build_pairs` or `world`.
    pub adds: &'static str,
    /// The parts of an entry: a `key`, a `key` and a `value`, or a `number` of a universe; for a closed world, keys that are
    /// `included` and keys that are `excluded`.
    pub entry: &'static [&'static str],
    /// The module of the source.
    pub family: &'static str,
    /// Its operations besides `in`.
    pub capabilities: &'static [&'static str],
    /// True if it can be a stage of a growing filter.
    pub stage: bool,
    /// Its layouts; empty if there is no choice.
    pub layouts: &'static [&'static str],
    /// Nanoseconds a key of batch add and batch contains at 10 million keys, measured on one core of
    /// a 2.5 GHz Xeon: for planning, not a promise.
    pub ns: [f64; 2],
    /// When it has false negatives.
    pub false_negatives: FalseNegatives,
    /// The result of merging two of them.
    pub merging: &'static str,
    /// Its law.
    pub formula: &'static str,
    /// Where it was published.
    pub paper: &'static str,
    /// The role in which tools use it by default: "plain" if the number of keys is known, "growing" if not.
    pub role: &'static str,
    /// True if copies of a key take slots, so that tools add each key once.
    pub once: bool,
    /// Parameters that keep it within the bytes of `nbytes_for`.
    pub fixed: &'static [(&'static str, u64)],
}

/// The public names of the ways of adding.
macro_rules! way {
    (open [key]) => {
        "key"
    };
    (open [key value]) => {
        "pair"
    };
    (open [number]) => {
        "number"
    };
    (built [key]) => {
        "build"
    };
    (built [key value]) => {
        "build_pairs"
    };
    (built [included excluded]) => {
        "world"
    };
}

/// The names of capabilities; a file that can be written in place can be mapped, too.
macro_rules! capabilities {
    (open $($can:ident)*) => { capabilities!(["add",] $($can)*) };
    (built $($can:ident)*) => { capabilities!(["static",] $($can)*) };
    ([$($name:expr,)*]) => { &[$($name,)*] };
    ([$($name:expr,)*] write_in_place $($more:ident)*) => {
        capabilities!([$($name,)* "map", "write-in-place",] $($more)*)
    };
    ([$($name:expr,)*] $next:ident $($more:ident)*) => { capabilities!([$($name,)* stringify!($next),] $($more)*) };
}

/// Numbers and rows.
macro_rules! rows {
    ({} $({
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: $when:ident [$($part:ident)*], can: [$($can:ident)*], stage: $stage:ident, false_negatives: $promise:ident,
        layouts: $layouts:expr, ns: $ns:expr,
        merging: $merging:literal,
        formula: $formula:literal,
        paper: $paper:literal,
        $(role: $role:literal,)? $(once: $once:literal,)? $(fixed: [$($fixed:expr),*],)?
    })*) => {
        $(#[doc = concat!("Number of [`crate::", stringify!($family), "::", stringify!($Class), "`] in files.")]
        pub const $ID: u16 = $number;)*

        /// Every variant, in order of number.
        pub const VARIANTS: &[Variant] = &[$(Variant {
            id: $ID,
            name: $name,
            class: stringify!($Class),
            adds: way!($when [$($part)*]),
            entry: &[$(stringify!($part)),*],
            family: stringify!($family),
            capabilities: capabilities!($when $($can)*),
            stage: !matches!(stringify!($stage).as_bytes(), b"no"),
            layouts: &$layouts,
            ns: $ns,
            false_negatives: FalseNegatives::$promise,
            merging: $merging,
            formula: $formula,
            paper: $paper,
            role: concat!($($role)?),
            once: false $(|| $once)?,
            fixed: &[$($($fixed),*)?],
        }),*];

        /// Two structures with one number or one name do not compile.
        const _: () = {
            #[allow(dead_code, non_camel_case_types)]
            enum Modules { $($module = $number),* }
        };
    };
}
variants!(rows! {});

impl Variant {
    /// True if it takes entries of `parts` at any time.
    pub fn is_open(&self, parts: &[&str]) -> bool {
        self.entry == parts && !self.capabilities.contains(&"static")
    }

    /// True if it is created of all its entries, of `parts`.
    pub fn is_built(&self, parts: &[&str]) -> bool {
        self.entry == parts && self.capabilities.contains(&"static")
    }
}

/// The row with number `id`.
pub fn by_id(id: u16) -> Option<&'static Variant> {
    VARIANTS.iter().find(|variant| variant.id == id)
}
