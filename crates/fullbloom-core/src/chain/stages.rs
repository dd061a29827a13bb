//! [`Chain`]: stages of one kind and their totals.
//!
//! In a file, parameters and sections of stage i have index i, and parameters of the whole have index 0xffff.

pub(super) use crate::container::header::WHOLE;
use crate::container::{Container, Header, Section, tag};
use crate::error::{Error, Result};
use crate::growth::Bound;
use crate::key::KeyHasher;
use crate::structure::batch::CHUNK;
use crate::structure::{Addable, Filter, Loadable, Sections, Value};

/// More stages than doubling can ever reach, and an absent key is looked up in each.
pub const MAX_STAGES: u32 = 1024;

/// The result of [`Declared::info`](crate::structure::Declared::info).
pub type Info = Vec<(&'static str, Value)>;

/// Stages, oldest first; never empty.
pub struct Chain<S> {
    /// How keys become hashes: the same for every stage. The domains of keys are recorded here and in no stage.
    pub(super) hasher: KeyHasher,
    pub(super) stages: Vec<S>,
    /// The stage dropped last, empty: otherwise keys added and removed at the border of a stage would create one each
    /// time, 0.9 ms at ten million keys.
    pub(super) spare: Option<Box<S>>,
    /// Bytes of cells that all stages may have.
    pub(super) bound: Bound,
}

/// The methods of [`Filter`] that follow from a field `chain`.
macro_rules! chain_answers {
    () => {
        fn hasher(&self) -> &KeyHasher {
            &self.chain.hasher
        }

        fn hasher_mut(&mut self) -> &mut KeyHasher {
            &mut self.chain.hasher
        }

        /// Keys the present stages hold before the next is opened.
        fn capacity(&self) -> u64 {
            self.chain.stages.iter().map(Filter::capacity).fold(0, u64::saturating_add)
        }

        fn target_fpr(&self) -> f64 {
            self.plan.fpr
        }

        fn num_added(&self) -> u64 {
            self.chain.stages.iter().map(Filter::num_added).fold(0, u64::saturating_add)
        }

        /// Share of used cells in the present stages, weighed by their bytes.
        fn fill(&self) -> f64 {
            let stages = self.chain.stages.iter().map(|stage| (stage.fill(), stage.nbytes() as f64));
            let (used, all) = stages.fold((0.0, 0.0), |(used, all), (fill, bytes)| (used + fill * bytes, all + bytes));
            used / all
        }

        /// Including those of a stage set aside.
        fn nbytes(&self) -> u64 {
            self.chain.stages.iter().chain(self.chain.spare.as_deref()).map(Filter::nbytes).sum()
        }

        fn same_as(&self, other: &Self) -> bool {
            let (ours, theirs) = (&self.chain.stages, &other.chain.stages);
            self.plan == other.plan && ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| a.same_as(b))
        }
    };
}
pub(super) use chain_answers;

/// The refusal of bytes that all filters share.
fn shared_limit_error(bytes: u64) -> Error {
    Error::Memory(format!(
        "another stage has {bytes} bytes, which are more than all filters have left; drop some, or raise the cap"
    ))
}

impl<S: Filter> Chain<S> {
    pub(super) fn new(first: S) -> Self {
        Chain { hasher: *first.hasher(), stages: vec![first], spare: None, bound: Bound::default() }
    }

    /// An owned copy, without the stage set aside.
    pub(super) fn try_clone(&self) -> Result<Self> {
        let mut stages = self.stages.iter().map(Filter::try_clone).collect::<Result<Vec<_>>>()?;
        stages.shrink_to_fit();
        Ok(Chain { hasher: self.hasher, stages, spare: None, bound: self.bound.copy_alone() })
    }

    /// Opens a stage. A filter has few, and space for three more is most of a small one's memory besides its cells.
    pub(super) fn open(&mut self, stage: S) {
        self.stages.reserve_exact(1);
        self.stages.push(stage);
    }

    /// Refuses another stage of `bytes` if the whole may not grow that large.
    pub(super) fn check_room(&self, bytes: u64) -> Result<()> {
        let held = self.stages.iter().map(Filter::nbytes).fold(bytes, u64::saturating_add);
        let most = self.bound.most;
        if held <= most {
            return if self.bound.take(bytes) { Ok(()) } else { Err(shared_limit_error(bytes)) };
        }
        Err(Error::Memory(format!(
            "another stage would make the filter {held} bytes large, max_bytes is {most}; open its file with more if you \
             trust it"
        )))
    }

    /// The whole container; `whole` has the variant and the parameters of the whole, at index 0.
    pub(super) fn container(&self, whole: &Header) -> Container<'_> {
        let mut header = Header { params: Vec::new(), ..*whole };
        header.params.extend(whole.params.iter().map(|&(tag, _, value)| (tag, WHOLE, value)));
        let mut sections = Vec::new();
        for (i, stage) in self.stages.iter().enumerate() {
            let part = stage.container();
            header.nest(i as u16, &part.header);
            sections.extend(part.sections.into_iter().map(|section| Section { index: i as u32, ..section }));
            // Stages of one kind have one scheme; a Bloom filter's has one in its own parameters.
            header.scheme = if header.get(tag::SCHEME, i as u16).is_ok() { 0 } else { part.header.scheme };
        }
        Container { header, sections }
    }
}

impl<S: Loadable> Chain<S> {
    pub(super) fn check_cells(&self) -> Result<()> {
        self.stages.iter().try_for_each(S::check_cells)
    }

    /// Reads the stages that [`Chain::container`] wrote, which are of variant `kind`; `check` refuses one that does not
    /// follow the plan. `whole` is the number of parameters of the whole, `most` that of stages.
    pub(super) fn load(
        header: &Header,
        hasher: KeyHasher,
        memory: Sections<'_>,
        (kind, whole, most): (u16, usize, u32),
        mut check: impl FnMut(&[S], &S) -> bool,
    ) -> Result<Self> {
        if header.params.iter().any(|(tag, ..)| *tag == tag::HASH) {
            return Err(Error::format("the file names a hash for stages, which have none of their own; it is damaged"));
        }
        let (mut num_params, mut stages) = (whole + usize::from(header.records_domains()), Vec::new());
        for index in 0..most as u16 {
            let mut part = header.part(index);
            if part.params.is_empty() {
                break;
            }
            num_params += part.params.len();
            part.variant = kind;
            if let Ok(scheme) = part.get(tag::SCHEME, 0) {
                part.scheme = u16::try_from(scheme).unwrap_or(u16::MAX);
            }
            let mut section = |kind, _, words| memory(kind, u32::from(index), words);
            let stage = S::load(&part, hasher, &mut section)?;
            if !check(&stages, &stage) {
                return Err(Error::format(format!("stage {index} of the file is not as planned; it is damaged")));
            }
            stages.push(stage);
        }
        if header.params.len() != num_params {
            return Err(Error::format("the file holds parameters that belong to no stage; it is damaged"));
        }
        if stages.is_empty() {
            return Err(Error::format("the file holds no stage; it is damaged"));
        }
        stages.shrink_to_fit();
        Ok(Chain { hasher, stages, spare: None, bound: Bound::default() })
    }
}

impl<S: Addable> Chain<S> {
    #[inline(always)]
    pub(super) fn is_read_only(&self) -> bool {
        self.stages.last().is_some_and(S::is_read_only)
    }

    #[inline(always)]
    pub(super) fn check_writable(&self) -> Result<()> {
        if self.is_read_only() { Err(Error::read_only()) } else { Ok(()) }
    }

    /// Back to the first stage, empty.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.check_writable()?;
        self.stages.truncate(1);
        self.spare = None;
        self.stages.iter_mut().try_for_each(S::clear)
    }
}

/// Calls `ask` on one stage after the other for those of `hashes` (at most [`CHUNK`]) that have no answer of 1 yet;
/// `found` gets the answers.
pub(super) fn ask_in_turn<S>(
    stages: impl Iterator<Item = S>,
    hashes: &[u64],
    found: &mut [u8],
    mut ask: impl FnMut(S, &[u64], &mut [u8]) -> Result<()>,
) -> Result<()> {
    let (mut left, mut places, mut said) = ([0u64; CHUNK], [0u16; CHUNK], [0u8; CHUNK]);
    let mut count = hashes.len();
    left[..count].copy_from_slice(hashes);
    places.iter_mut().zip(0..).for_each(|(place, i)| *place = i);
    found.fill(0);
    for stage in stages {
        if count == 0 {
            break;
        }
        ask(stage, &left[..count], &mut said[..count])?;
        let mut kept = 0;
        for i in 0..count {
            found[usize::from(places[i])] = said[i];
            (left[kept], places[kept]) = (left[i], places[i]);
            kept += usize::from(said[i] == 0);
        }
        count = kept;
    }
    Ok(())
}

/// A batch lookup in one stage.
pub(super) fn look(stage: &impl Filter, hashes: &[u64], found: &mut [u8]) -> Result<()> {
    stage.contains_hashes(hashes, found);
    Ok(())
}
