//! `CF.*`, as `RedisBloom` has it. What a filter is made of is chosen by what it must do: remove, count, and grow by
//! stages.

use std::sync::Arc;

use fullbloom_core::registry::{VARIANTS, Variant};

use super::super::command::{Command, ONE, command, flag};
use super::super::gate::Scope;
use super::super::halt::{Done, Halt, wrong_arity};
use super::super::parse::Args;
use super::super::session::Session;
use super::arguments::{integer, is};
use super::looking;
use super::making::number_of;
use crate::fault::{Code, Fault};
use crate::kind::{Flavour, Settings, Spec, foreign};
use crate::store::Entry;

const WRITE: u16 = flag::WRITE | flag::FAST;
const READ: u16 = flag::FAST;

pub(super) const COMMANDS: &[Command<Session>] = &[
    command("cf.reserve", -3, WRITE, ONE, Scope::Write, reserve, "Makes a filter of a capacity"),
    command("cf.add", 3, WRITE, ONE, Scope::Write, add, "Adds a key, also one that is there"),
    command("cf.addnx", 3, WRITE, ONE, Scope::Write, add_absent, "Adds a key unless it is there"),
    command("cf.insert", -4, WRITE, ONE, Scope::Write, insert, "Adds keys to a filter, which is made as it is told"),
    command("cf.insertnx", -4, WRITE, ONE, Scope::Write, insert_absent, "Adds the keys that are not there"),
    command("cf.exists", 3, READ, ONE, Scope::Read, exists, "Tells whether a key may be there"),
    command("cf.mexists", -3, READ, ONE, Scope::Read, exist, "Tells of each key whether it may be there"),
    command("cf.del", 3, WRITE, ONE, Scope::Write, remove, "Removes a key once"),
    command("cf.count", 3, READ, ONE, Scope::Read, count, "How often a key was added"),
    command("cf.info", 2, flag::SLOW, ONE, Scope::Read, info, "What is known of a filter"),
    command("cf.debug", 2, flag::SLOW, ONE, Scope::Read, debug, "What is known of a filter, in a line"),
    command(
        "cf.compact",
        2,
        flag::WRITE | flag::SLOW,
        ONE,
        Scope::Write,
        compact,
        "Lets go of what removing keys has emptied",
    ),
];

/// What is refused everywhere else, too: larger filters are made by kind.
const MOST: i64 = 1 << 30;
/// Rate of a filter whose every stage is full.
const RATE: f64 = 0.01;
/// Stages beside the first.
const MOST_EXPANSIONS: u64 = 32;

/// What a filter is made with.
struct Made {
    capacity: i64,
    bucket: i64,
    iterations: i64,
    expansion: i64,
}

impl Default for Made {
    fn default() -> Self {
        Made { capacity: 1024, bucket: 2, iterations: 20, expansion: 1 }
    }
}

/// The row of what removes, counts, and grows by stages.
fn row() -> Option<&'static Variant> {
    let does = |row: &Variant| ["add", "remove", "count", "grow"].iter().all(|what| row.capabilities.contains(what));
    let staged = |row: &Variant| row.fixed.iter().any(|(name, _)| *name == "max_stages");
    VARIANTS.iter().find(|row| does(row) && staged(row))
}

fn make(session: &mut Session, name: &[u8], made: &Made) -> Done<Arc<Entry>> {
    let numbers = [("bucket", made.bucket), ("iterations", made.iterations), ("expansion", made.expansion)];
    let notes = numbers.iter().map(|(name, number)| (name.to_string(), *number as u64)).collect();
    let settings = |spec| Settings { flavour: Flavour::Cuckoo, notes: Arc::new(notes), ..Settings::of(spec) };
    if session.server.store.options.plain {
        let spec = Spec { kind: foreign::for_flavour(Flavour::Cuckoo).into(), ..Spec::default() };
        let spec = spec.with("capacity", made.capacity).with("bucket_size", made.bucket);
        let spec = spec.with("iterations", made.iterations).with("expansion", made.expansion);
        return session.create(name, settings(spec), None);
    }
    let row = row().ok_or_else(|| Halt::text("Couldn't create filter!"))?;
    // Buckets have 1, 2, 4 or 8 slots: as many as asked for, or the next of these.
    let bucket = (made.bucket.clamp(1, 8) as u64).next_power_of_two();
    let spec = session
        .spec(row.name)?
        .with("capacity", made.capacity)
        .with("fpr", RATE)
        .with("max_stages", MOST_EXPANSIONS)
        .with("bucket_size", bucket);
    session.create(name, settings(spec), None)
}

fn get_or_make(session: &mut Session, name: &[u8], made: &Made) -> Done<Arc<Entry>> {
    match session.find_as(name, Flavour::Cuckoo)? {
        Some(entry) => Ok(entry),
        // Another client may have made it since.
        None => make(session, name, made).or_else(|halt| session.find_as(name, Flavour::Cuckoo)?.ok_or(halt)),
    }
}

fn reserve(session: &mut Session, args: Args<'_>) -> Done {
    if args.len().is_multiple_of(2) {
        return Err(wrong_arity("cf.reserve"));
    }
    let capacity = integer(args.at(2)).ok_or_else(|| Halt::text("Bad capacity"))?;
    let number = |name: &str, default: i64, least: i64, most: i64| {
        let Some(at) = args.iter().skip(3).position(|word| is(word, name)) else { return Ok(default) };
        let number = integer(args.at(at + 4)).ok_or_else(|| Halt::text(format!("Couldn't parse {name}")))?;
        let range = || Halt::text(format!("{name}: value must be in the range [{least}, {most}]"));
        Some(number).filter(|number| (least..=most).contains(number)).ok_or_else(range)
    };
    let default = Made::default();
    let made = Made {
        capacity,
        iterations: number("MAXITERATIONS", default.iterations, 1, 65_535)?,
        bucket: number("BUCKETSIZE", default.bucket, 1, 255)?,
        expansion: number("EXPANSION", default.expansion, 0, 32_768)?,
    };
    if !(made.bucket * 2..=MOST).contains(&capacity) {
        return Err(Halt::text(format!("Capacity must be in the range [2 * BUCKETSIZE, {MOST}]")));
    }
    if session.find_as(args.at(1), Flavour::Cuckoo)?.is_some() {
        return Err(Halt::text("ERR item exists"));
    }
    make(session, args.at(1), &made)?;
    session.reply.ok();
    Ok(())
}

/// Refuses to add to a filter of so many tables that asking them all takes its time.
fn check_tables(entry: &Entry) -> Done {
    let foreign = entry.settings.spec.kind == foreign::for_flavour(Flavour::Cuckoo);
    // Not by what it shows: that counts the slots in use, all of them for each key.
    if foreign && entry.look().exchange().is_some_and(|filter| filter.tables() >= MOST_EXPANSIONS) {
        return Err(Halt::text("Maximum expansions reached"));
    }
    Ok(())
}

/// What became of a key.
enum Became {
    Added,
    Present,
    Refused,
}

/// Adds one of the keys whose hashes are at hand.
fn store_key(session: &mut Session, entry: &Arc<Entry>, at: usize, absent: bool) -> Done<Became> {
    let store = session.server.store.clone();
    let words = &session.hashes[entry.text.words(at)];
    let done = if absent {
        store.add_absent(entry, words)
    } else {
        store.add(entry, words, &mut session.flags[at..=at]).map(Some)
    };
    let became = match done {
        Ok(Some(lsn)) => {
            session.note(lsn);
            return Ok(Became::Added);
        }
        Ok(None) => Became::Present,
        Err(fault) if matches!(fault.code, Code::Full | Code::Limit) => Became::Refused,
        Err(fault) => return Err(fault.into()),
    };
    session.note_state(entry);
    Ok(became)
}

fn add_one(session: &mut Session, args: Args<'_>, absent: bool) -> Done {
    let entry = get_or_make(session, args.at(1), &Made::default())?;
    check_tables(&entry)?;
    session.ready(&entry)?;
    session.hash(&entry, args.from(2))?;
    match store_key(session, &entry, 0, absent)? {
        Became::Refused => return Err(Halt::text("Filter is full")),
        became => session.reply.boolean(matches!(became, Became::Added)),
    }
    Ok(())
}

fn add(session: &mut Session, args: Args<'_>) -> Done {
    add_one(session, args, false)
}

fn add_absent(session: &mut Session, args: Args<'_>) -> Done {
    add_one(session, args, true)
}

fn insert(session: &mut Session, args: Args<'_>) -> Done {
    insert_all(session, args, false)
}

fn insert_absent(session: &mut Session, args: Args<'_>) -> Done {
    insert_all(session, args, true)
}

fn insert_all(session: &mut Session, args: Args<'_>, absent: bool) -> Done {
    let arity = || wrong_arity(if absent { "cf.insertnx" } else { "cf.insert" });
    let (mut made, mut create, mut at) = (Made::default(), true, 2);
    loop {
        let first = args.at(at).first().map(u8::to_ascii_lowercase);
        at += 1;
        match first {
            _ if at > args.len() => return Err(arity()),
            Some(b'i') => break,
            Some(b'n') => create = false,
            Some(b'c') if at >= args.len() => return Err(arity()),
            Some(b'c') => {
                made.capacity = integer(args.at(at)).ok_or_else(|| Halt::text("Bad capacity"))?;
                if !(2 * made.bucket..=MOST).contains(&made.capacity) {
                    return Err(Halt::text(format!("Capacity must be in the range [cf-bucket-size * 2, {MOST}]")));
                }
                at += 1;
            }
            _ => return Err(Halt::text("Unknown argument received")),
        }
    }
    if at >= args.len() {
        return Err(arity());
    }
    let entry = match session.find_as(args.at(1), Flavour::Cuckoo)? {
        Some(entry) => entry,
        None if create => get_or_make(session, args.at(1), &made)?,
        None => return Err(Fault::missing().into()),
    };
    check_tables(&entry)?;
    session.ready(&entry)?;
    session.hash(&entry, args.from(at))?;
    session.reply.array(session.flags.len());
    for at in 0..session.flags.len() {
        let became = store_key(session, &entry, at, absent)?;
        let reply = &mut session.reply;
        match (became, absent) {
            (Became::Added, false) => reply.boolean(true),
            (Became::Refused, false) if reply.three => reply.boolean(false),
            (Became::Added, true) => reply.integer(1),
            (Became::Present, _) => reply.integer(0),
            (Became::Refused, _) => reply.integer(-1),
        }
    }
    Ok(())
}

fn exists(session: &mut Session, args: Args<'_>) -> Done {
    looking::one(session, args, Flavour::Bloom)
}

fn exist(session: &mut Session, args: Args<'_>) -> Done {
    looking::each(session, args, Flavour::Bloom)
}

/// The filter of this name, if there is one and it is none of `BF.*`.
fn only(session: &mut Session, name: &[u8]) -> Done<Option<Arc<Entry>>> {
    Ok(session.find(name)?.filter(|entry| entry.settings.flavour != Flavour::Bloom && !entry.is_note()))
}

fn remove(session: &mut Session, args: Args<'_>) -> Done {
    let entry = only(session, args.at(1))?.ok_or_else(|| Halt::text("Not found"))?;
    session.ready(&entry)?;
    session.hash(&entry, args.from(2))?;
    let lsn = session.server.store.remove(&entry, &session.hashes, &mut session.flags)?;
    session.note(lsn);
    session.reply.boolean(session.flags[0] != 0);
    Ok(())
}

fn count(session: &mut Session, args: Args<'_>) -> Done {
    let mut counts = [0];
    // As for looking, one of the other sort has none.
    if let Some(entry) = only(session, args.at(1))? {
        session.hash(&entry, args.from(2))?;
        entry.look().count(&session.hashes, &mut counts)?;
    }
    session.reply.count(counts[0]);
    Ok(())
}

/// What `CF.INFO` tells, and `CF.DEBUG` in its own words.
fn facts(session: &mut Session, name: &[u8]) -> Done<[(&'static str, u64); 8]> {
    use std::sync::atomic::Ordering;
    let entry = session.find_as(name, Flavour::Cuckoo)?.ok_or_else(Fault::missing)?;
    let note = |name: &str, otherwise: u64| entry.settings.note(name).unwrap_or(otherwise);
    Ok(entry.over(|filter| {
        let number = |name: &str| number_of(filter, name);
        let stages = number("stages").unwrap_or(1);
        [
            ("Size", number("counted_bytes").unwrap_or_else(|| filter.nbytes())),
            ("Number of buckets", number("num_buckets").unwrap_or(0)),
            ("Number of filters", stages),
            ("Number of items inserted", filter.num_added()),
            (
                "Number of items deleted",
                number("deletes").unwrap_or_else(|| entry.traffic.removed.load(Ordering::Relaxed)),
            ),
            ("Bucket size", number("bucket_size").unwrap_or_else(|| note("bucket", 0))),
            ("Expansion rate", number("expansion").unwrap_or_else(|| note("expansion", 1))),
            ("Max iterations", note("iterations", 20)),
        ]
    }))
}

fn info(session: &mut Session, args: Args<'_>) -> Done {
    let facts = facts(session, args.at(1))?;
    session.reply.map(facts.len());
    for (name, number) in facts {
        session.reply.simple(name);
        session.reply.count(number);
    }
    Ok(())
}

fn debug(session: &mut Session, args: Args<'_>) -> Done {
    let [_, buckets, filters, items, deletes, bucket, expansion, iterations] =
        facts(session, args.at(1))?.map(|(_, number)| number);
    let line = format!(
        "bktsize:{bucket} buckets:{buckets} items:{items} deletes:{deletes} filters:{filters} \
         max_iterations:{iterations} expansion:{expansion}"
    );
    session.reply.text(&line);
    Ok(())
}

fn compact(session: &mut Session, args: Args<'_>) -> Done {
    let entry = only(session, args.at(1))?.ok_or_else(|| Halt::text("Cuckoo filter was not found"))?;
    // Other kinds make room at once where a key is removed.
    entry.look().check_removes()?;
    if entry.settings.spec.kind == foreign::for_flavour(Flavour::Cuckoo) {
        session.ready(&entry)?;
        let lsn = session.server.store.compact(&entry)?;
        session.note(lsn);
    }
    session.reply.ok();
    Ok(())
}
