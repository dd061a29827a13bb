//! `CF.*`, as in `RedisBloom`. The kind is the one that can remove, count, and grow by stages.

use std::sync::Arc;

use fullbloom_core::registry::{VARIANTS, Variant};

use super::arguments::{integer, is};
use crate::fault::{Code, Fault};
use crate::kind::{Flavour, Settings, Spec, foreign};
use crate::resp::error::{CommandError, CommandResult, wrong_arity};
use crate::resp::parser::Args;
use crate::resp::session::Session;
use crate::store::Entry;

/// RedisBloom's limit; `BLOOM.CREATE` creates larger filters.
const MOST: i64 = 1 << 30;
/// The rate of a filter whose stages are all full.
const RATE: f64 = 0.01;
/// The number of stages besides the first.
const MOST_EXPANSIONS: u64 = 32;

struct ReserveOptions {
    capacity: i64,
    bucket: i64,
    iterations: i64,
    expansion: i64,
}

impl Default for ReserveOptions {
    fn default() -> Self {
        ReserveOptions { capacity: 1024, bucket: 2, iterations: 20, expansion: 1 }
    }
}

/// The registry row that can remove, count, and grow by stages.
fn row() -> Option<&'static Variant> {
    let does = |row: &Variant| ["add", "remove", "count", "grow"].iter().all(|what| row.capabilities.contains(what));
    let staged = |row: &Variant| row.fixed.iter().any(|(name, _)| *name == "max_stages");
    VARIANTS.iter().find(|row| does(row) && staged(row))
}

fn create(session: &mut Session, name: &[u8], options: &ReserveOptions) -> CommandResult<Arc<Entry>> {
    let numbers = [("bucket", options.bucket), ("iterations", options.iterations), ("expansion", options.expansion)];
    let notes = numbers.iter().map(|(name, number)| (name.to_string(), *number as u64)).collect();
    let settings = |spec| Settings { flavour: Flavour::Cuckoo, notes: Arc::new(notes), ..Settings::of(spec) };
    if session.server.store.options.plain {
        let spec = Spec { kind: foreign::kind_of_flavour(Flavour::Cuckoo).into(), ..Spec::default() };
        let spec = spec.with("capacity", options.capacity).with("bucket_size", options.bucket);
        let spec = spec.with("iterations", options.iterations).with("expansion", options.expansion);
        return session.create(name, settings(spec), None);
    }
    let row = row().ok_or_else(|| CommandError::new("Couldn't create filter!"))?;
    // Buckets have 1, 2, 4 or 8 slots: the requested number, or the next larger one of these.
    let bucket = (options.bucket.clamp(1, 8) as u64).next_power_of_two();
    let spec = session
        .spec(row.name)?
        .with("capacity", options.capacity)
        .with("fpr", RATE)
        .with("max_stages", MOST_EXPANSIONS)
        .with("bucket_size", bucket);
    session.create(name, settings(spec), None)
}

#[inline]
fn get_or_create(session: &mut Session, name: &[u8], options: &ReserveOptions) -> CommandResult<Arc<Entry>> {
    session.get_or_create(name, Flavour::Cuckoo, |session| create(session, name, options))
}

pub(super) fn reserve(session: &mut Session, args: Args<'_>) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(wrong_arity("cf.reserve"));
    }
    let capacity = integer(args.at(2)).ok_or_else(|| CommandError::new("Bad capacity"))?;
    let number = |name: &str, default: i64, least: i64, most: i64| {
        let Some(at) = args.iter().skip(3).position(|word| is(word, name)) else { return Ok(default) };
        let number = integer(args.at(at + 4)).ok_or_else(|| CommandError::new(format!("Couldn't parse {name}")))?;
        let range = || CommandError::new(format!("{name}: value must be in the range [{least}, {most}]"));
        Some(number).filter(|number| (least..=most).contains(number)).ok_or_else(range)
    };
    let default = ReserveOptions::default();
    let options = ReserveOptions {
        capacity,
        iterations: number("MAXITERATIONS", default.iterations, 1, 65_535)?,
        bucket: number("BUCKETSIZE", default.bucket, 1, 255)?,
        expansion: number("EXPANSION", default.expansion, 0, 32_768)?,
    };
    if !(options.bucket * 2..=MOST).contains(&capacity) {
        return Err(CommandError::new(format!("Capacity must be in the range [2 * BUCKETSIZE, {MOST}]")));
    }
    if session.find_as(args.at(1), Flavour::Cuckoo)?.is_some() {
        return Err(CommandError::new("ERR item exists"));
    }
    create(session, args.at(1), &options)?;
    session.ok()
}

/// Refuses to add to a filter with so many tables that a lookup would take long.
fn check_tables(entry: &Entry) -> CommandResult {
    let foreign = entry.settings.spec.kind == foreign::kind_of_flavour(Flavour::Cuckoo);
    // `info()` would count the slots in use, all of them for each key.
    if foreign && entry.read().dump_format().is_some_and(|filter| filter.tables() >= MOST_EXPANSIONS) {
        return Err(CommandError::new("Maximum expansions reached"));
    }
    Ok(())
}

enum AddResult {
    Added,
    Present,
    Refused,
}

fn add_key(session: &mut Session, entry: &Arc<Entry>, at: usize, absent: bool) -> CommandResult<AddResult> {
    let store = session.server.store.clone();
    let words = &session.hashes[entry.keying.words(at)];
    let done = if absent {
        store.add_absent(entry, words)
    } else {
        store.add(entry, words, &mut session.flags[at..=at]).map(Some)
    };
    let result = match done {
        Ok(Some(lsn)) => {
            session.record(lsn);
            return Ok(AddResult::Added);
        }
        Ok(None) => AddResult::Present,
        Err(fault) if matches!(fault.code, Code::Full | Code::Limit) => AddResult::Refused,
        Err(fault) => return Err(fault.into()),
    };
    session.record_state(entry);
    Ok(result)
}

fn add_one(session: &mut Session, args: Args<'_>, absent: bool) -> CommandResult {
    let entry = get_or_create(session, args.at(1), &ReserveOptions::default())?;
    check_tables(&entry)?;
    session.check_not_busy(&entry)?;
    session.hash(&entry, args.from(2))?;
    match add_key(session, &entry, 0, absent)? {
        AddResult::Refused => return Err(CommandError::new("Filter is full")),
        result => session.reply.boolean(matches!(result, AddResult::Added)),
    }
    Ok(())
}

pub(super) fn add(session: &mut Session, args: Args<'_>) -> CommandResult {
    add_one(session, args, false)
}

pub(super) fn add_absent(session: &mut Session, args: Args<'_>) -> CommandResult {
    add_one(session, args, true)
}

pub(super) fn insert(session: &mut Session, args: Args<'_>) -> CommandResult {
    insert_all(session, args, false)
}

pub(super) fn insert_absent(session: &mut Session, args: Args<'_>) -> CommandResult {
    insert_all(session, args, true)
}

fn insert_all(session: &mut Session, args: Args<'_>, absent: bool) -> CommandResult {
    let arity = || wrong_arity(if absent { "cf.insertnx" } else { "cf.insert" });
    let (mut options, mut create, mut at) = (ReserveOptions::default(), true, 2);
    loop {
        let first = args.at(at).first().map(u8::to_ascii_lowercase);
        at += 1;
        match first {
            _ if at > args.len() => return Err(arity()),
            Some(b'i') => break,
            Some(b'n') => create = false,
            Some(b'c') if at >= args.len() => return Err(arity()),
            Some(b'c') => {
                options.capacity = integer(args.at(at)).ok_or_else(|| CommandError::new("Bad capacity"))?;
                if !(2 * options.bucket..=MOST).contains(&options.capacity) {
                    return Err(CommandError::new(format!(
                        "Capacity must be in the range [cf-bucket-size * 2, {MOST}]"
                    )));
                }
                at += 1;
            }
            _ => return Err(CommandError::new("Unknown argument received")),
        }
    }
    if at >= args.len() {
        return Err(arity());
    }
    let entry = match session.find_as(args.at(1), Flavour::Cuckoo)? {
        Some(entry) => entry,
        None if create => get_or_create(session, args.at(1), &options)?,
        None => return Err(Fault::missing().into()),
    };
    check_tables(&entry)?;
    session.check_not_busy(&entry)?;
    session.hash(&entry, args.from(at))?;
    session.reply.array(session.flags.len());
    for at in 0..session.flags.len() {
        let result = add_key(session, &entry, at, absent)?;
        let reply = &mut session.reply;
        match (result, absent) {
            (AddResult::Added, false) => reply.boolean(true),
            (AddResult::Refused, false) if reply.is_resp3 => reply.boolean(false),
            (AddResult::Added, true) => reply.integer(1),
            (AddResult::Present, _) => reply.integer(0),
            (AddResult::Refused, _) => reply.integer(-1),
        }
    }
    Ok(())
}

pub(super) fn exists(session: &mut Session, args: Args<'_>) -> CommandResult {
    session.look_up(args, Flavour::Bloom)?;
    session.reply.boolean(session.flags[0] != 0);
    Ok(())
}

pub(super) fn exists_many(session: &mut Session, args: Args<'_>) -> CommandResult {
    session.look_up(args, Flavour::Bloom)?;
    session.reply.booleans(&session.flags);
    Ok(())
}

/// The filter of this name, unless `BF.*` created it.
fn find_not_bloom(session: &mut Session, name: &[u8]) -> CommandResult<Option<Arc<Entry>>> {
    Ok(session.find(name)?.filter(|entry| entry.settings.flavour != Flavour::Bloom && !entry.is_note()))
}

pub(super) fn remove(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = find_not_bloom(session, args.at(1))?.ok_or_else(|| CommandError::new("Not found"))?;
    session.check_not_busy(&entry)?;
    session.hash(&entry, args.from(2))?;
    let lsn = session.server.store.remove(&entry, &session.hashes, &mut session.flags)?;
    session.record(lsn);
    session.reply.boolean(session.flags[0] != 0);
    Ok(())
}

pub(super) fn count(session: &mut Session, args: Args<'_>) -> CommandResult {
    let mut counts = [0];
    // As for lookups, a filter of the other family has no keys.
    if let Some(entry) = find_not_bloom(session, args.at(1))? {
        session.hash(&entry, args.from(2))?;
        entry.read().count(&session.hashes, &mut counts)?;
    }
    session.reply.count(counts[0]);
    Ok(())
}

/// The fields of `CF.INFO` and `CF.DEBUG`.
fn fields(session: &mut Session, name: &[u8]) -> CommandResult<[(&'static str, u64); 8]> {
    use std::sync::atomic::Ordering;
    let entry = session.find_as(name, Flavour::Cuckoo)?.ok_or_else(Fault::missing)?;
    let note = |name: &str, otherwise: u64| entry.settings.note(name).unwrap_or(otherwise);
    let filter = entry.read();
    let number = |name: &str| filter.number(name);
    Ok([
        ("Size", number("counted_bytes").unwrap_or_else(|| filter.nbytes())),
        ("Number of buckets", number("num_buckets").unwrap_or(0)),
        ("Number of filters", number("stages").unwrap_or(1)),
        ("Number of items inserted", filter.num_added()),
        (
            "Number of items deleted",
            number("deletes").unwrap_or_else(|| entry.counters.removed.load(Ordering::Relaxed)),
        ),
        ("Bucket size", number("bucket_size").unwrap_or_else(|| note("bucket", 0))),
        ("Expansion rate", number("expansion").unwrap_or_else(|| note("expansion", 1))),
        ("Max iterations", note("iterations", 20)),
    ])
}

pub(super) fn info(session: &mut Session, args: Args<'_>) -> CommandResult {
    let fields = fields(session, args.at(1))?;
    session.reply.map(fields.len());
    for (name, number) in fields {
        session.reply.simple(name);
        session.reply.count(number);
    }
    Ok(())
}

pub(super) fn debug(session: &mut Session, args: Args<'_>) -> CommandResult {
    let [_, buckets, filters, items, deletes, bucket, expansion, iterations] =
        fields(session, args.at(1))?.map(|(_, number)| number);
    let line = format!(
        "bktsize:{bucket} buckets:{buckets} items:{items} deletes:{deletes} filters:{filters} \
         max_iterations:{iterations} expansion:{expansion}"
    );
    session.reply.text(&line);
    Ok(())
}

pub(super) fn compact(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = find_not_bloom(session, args.at(1))?.ok_or_else(|| CommandError::new("Cuckoo filter was not found"))?;
    // Other kinds free the space of a key when they remove it.
    entry.read().check_removes()?;
    if entry.settings.spec.kind == foreign::kind_of_flavour(Flavour::Cuckoo) {
        session.check_not_busy(&entry)?;
        let lsn = session.server.store.compact(&entry)?;
        session.record(lsn);
    }
    session.ok()
}
