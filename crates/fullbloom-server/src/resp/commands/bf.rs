//! `BF.*`, as in `RedisBloom`.

use std::sync::Arc;

use super::arguments::{integer, is, real};
use crate::fault::{Code, Fault};
use crate::kind::{self, Flavour, Kind, Settings, Spec, foreign};
use crate::resp::error::{CommandError, CommandResult, wrong_arity};
use crate::resp::parser::Args;
use crate::resp::session::Session;
use crate::store::Entry;

/// RedisBloom's limit; `BLOOM.CREATE` creates larger filters.
const MOST: i64 = 1 << 30;
const MOST_EXPANSION: i64 = 32_768;
/// Higher rates are lowered to this one.
const HIGHEST_RATE: f64 = 0.25;

struct ReserveOptions {
    error: f64,
    capacity: i64,
    expansion: i64,
    scaling: bool,
}

impl Default for ReserveOptions {
    fn default() -> Self {
        ReserveOptions { error: 0.01, capacity: 100, expansion: 2, scaling: true }
    }
}

fn allowed_error(error: f64) -> Option<f64> {
    (error > 0.0 && error < 1.0).then_some(error.min(HIGHEST_RATE))
}

fn is_allowed(capacity: &i64) -> bool {
    (1..=MOST).contains(capacity)
}

/// Creates a filter: with `--plain` one of RedisBloom, which can be exchanged with it.
fn create(session: &mut Session, name: &[u8], options: &ReserveOptions) -> CommandResult<Arc<Entry>> {
    let scaling = options.scaling && options.expansion > 0;
    let fpr = format!("{:e}", options.error);
    let spec = if session.server.store.options.plain {
        let spec = Spec { kind: foreign::kind_of_flavour(Flavour::Bloom).into(), ..Spec::default() };
        let spec = spec.with("capacity", options.capacity).with("fpr", fpr);
        spec.with("expansion", options.expansion).with("scaling", u8::from(scaling))
    } else if scaling {
        // No stage can be 1024 times as large as the stage before it.
        let spec = session.spec(kind::by_role("growing").name)?.with("initial_capacity", options.capacity);
        spec.with("growth", options.expansion.min(1024)).with("fpr", fpr)
    } else {
        session.spec(kind::by_role("plain").name)?.with("capacity", options.capacity).with("fpr", fpr)
    };
    let notes = scaling.then_some(("expansion".to_string(), options.expansion as u64)).into_iter().collect();
    let settings = Settings { flavour: Flavour::Bloom, strict: !scaling, notes: Arc::new(notes), ..Settings::of(spec) };
    session.create(name, settings, None)
}

#[inline]
fn get_or_create(session: &mut Session, name: &[u8], options: &ReserveOptions) -> CommandResult<Arc<Entry>> {
    session.get_or_create(name, Flavour::Bloom, |session| create(session, name, options))
}

pub(super) fn reserve(session: &mut Session, args: Args<'_>) -> CommandResult {
    if args.len() > 7 {
        return Err(wrong_arity("bf.reserve"));
    }
    let error = real(args.at(2)).ok_or_else(|| CommandError::new("ERR bad error rate"))?;
    let range = || CommandError::new("ERR error rate must be in the range (0.000000, 1.000000)");
    let error = allowed_error(error).ok_or_else(range)?;
    let capacity = integer(args.at(3)).ok_or_else(|| CommandError::new("ERR bad capacity"))?;
    if !is_allowed(&capacity) {
        return Err(CommandError::new(format!("ERR capacity must be in the range [1, {MOST}]")));
    }
    let place = |word: &str| args.iter().skip(4).position(|arg| is(arg, word)).map(|at| at + 4);
    if place("BACKEND").is_some() {
        return Err(CommandError::new(
            "ERR this port creates filters in memory; use the HTTP port for another backend",
        ));
    }
    let mut options =
        ReserveOptions { error, capacity, scaling: place("NONSCALING").is_none(), ..ReserveOptions::default() };
    if let Some(at) = place("EXPANSION") {
        if at + 1 == args.len() {
            return Err(CommandError::new("ERR no expansion"));
        }
        options.expansion = integer(args.at(at + 1)).ok_or_else(|| CommandError::new("ERR bad expansion"))?;
        if !options.scaling && options.expansion != 0 {
            return Err(CommandError::new("Nonscaling filters cannot expand"));
        }
        if !(0..=MOST_EXPANSION).contains(&options.expansion) {
            return Err(CommandError::new(format!("ERR expansion must be in the range [0, {MOST_EXPANSION}]")));
        }
    }
    if session.find_as(args.at(1), Flavour::Bloom)?.is_some() {
        return Err(CommandError::new("ERR item exists"));
    }
    create(session, args.at(1), &options)?;
    session.ok()
}

pub(super) fn add(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = get_or_create(session, args.at(1), &ReserveOptions::default())?;
    session.check_not_busy(&entry)?;
    session.hash(&entry, args.from(2))?;
    match add_keys(session, &entry) {
        (_, Some(fault)) => Err(insert_error(fault)),
        _ => {
            session.reply.boolean(session.flags[0] != 0);
            Ok(())
        }
    }
}

pub(super) fn add_many(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = get_or_create(session, args.at(1), &ReserveOptions::default())?;
    add_all(session, &entry, args.from(2))
}

/// Adds keys and returns one result per key; after an error it stops.
fn add_all(session: &mut Session, entry: &Arc<Entry>, keys: Args<'_>) -> CommandResult {
    session.check_not_busy(entry)?;
    session.hash(entry, keys)?;
    let (done, fault) = add_keys(session, entry);
    let Some(fault) = fault else {
        session.reply.booleans(&session.flags);
        return Ok(());
    };
    let CommandError::Refused(text) = insert_error(fault) else { return Ok(()) };
    session.reply.array(done + 1);
    session.flags[..done].iter().for_each(|&flag| session.reply.boolean(flag != 0));
    session.reply.error(&text);
    Ok(())
}

fn insert_error(fault: Fault) -> CommandError {
    match fault.code {
        Code::Full => CommandError::new("ERR non scaling filter is full"),
        Code::Limit => CommandError::new(format!("ERR problem inserting into filter: {}", fault.text)),
        _ => fault.into(),
    }
}

/// Adds the hashed keys. Returns how many it processed, and why it stopped early.
fn add_keys(session: &mut Session, entry: &Arc<Entry>) -> (usize, Option<Fault>) {
    let store = session.server.store.clone();
    let full = |keys: usize| {
        let filter = entry.read();
        filter.num_added() + keys as u64 > filter.capacity()
    };
    let keys = session.flags.len();
    let strict = entry.settings.strict;
    if !strict || !full(keys) {
        match store.add(entry, &session.hashes, &mut session.flags) {
            Ok(lsn) => {
                session.record(lsn);
                return (keys, None);
            }
            // Other clients filled it in the meantime.
            Err(fault) if strict && fault.code == Code::Full => {}
            Err(fault) => return (0, Some(fault)),
        }
    }
    // A key that is already present takes no space.
    let mut done = (keys, None);
    for at in 0..keys {
        let (mut found, words) = ([0], &session.hashes[entry.keying.words(at)]);
        entry.read().contains(words, &mut found);
        if found == [0]
            && let Err(fault) = store.add(entry, words, &mut session.flags[at..=at])
        {
            done = (at, Some(fault));
            break;
        }
    }
    session.record_state(entry);
    done
}

pub(super) fn insert(session: &mut Session, args: Args<'_>) -> CommandResult {
    let (mut options, mut create, mut at) = (ReserveOptions::default(), true, 2);
    let arity = || wrong_arity("bf.insert");
    loop {
        let word = args.at(at);
        let letter = |place: usize| word.get(place).map(u8::to_ascii_lowercase);
        let value = args.at(at + 1);
        at += 1;
        match letter(0) {
            Some(b'i') => break,
            Some(b'n') => match letter(2) {
                Some(b'c') => create = false,
                _ => options.scaling = false,
            },
            Some(b'e' | b'c') if at >= args.len() => return Err(arity()),
            Some(b'e') if letter(1) == Some(b'r') => {
                options.error =
                    real(value).and_then(allowed_error).ok_or_else(|| CommandError::new("Bad error rate"))?;
                at += 1;
            }
            Some(b'e') => {
                let expansion = integer(value).filter(|expansion| (0..=MOST_EXPANSION).contains(expansion));
                options.expansion = expansion.ok_or_else(|| CommandError::new("Bad expansion"))?;
                at += 1;
            }
            Some(b'c') => {
                options.capacity =
                    integer(value).filter(is_allowed).ok_or_else(|| CommandError::new("Bad capacity"))?;
                at += 1;
            }
            _ if at > args.len() => return Err(arity()),
            _ => return Err(CommandError::new("Unknown argument received")),
        }
    }
    if at >= args.len() {
        return Err(arity());
    }
    let entry = match session.find_as(args.at(1), Flavour::Bloom)? {
        Some(entry) => entry,
        None if create => get_or_create(session, args.at(1), &options)?,
        None => return Err(Fault::missing().into()),
    };
    add_all(session, &entry, args.from(at))
}

pub(super) fn exists(session: &mut Session, args: Args<'_>) -> CommandResult {
    session.look_up(args, Flavour::Cuckoo)?;
    session.reply.boolean(session.flags[0] != 0);
    Ok(())
}

pub(super) fn exists_many(session: &mut Session, args: Args<'_>) -> CommandResult {
    session.look_up(args, Flavour::Cuckoo)?;
    session.reply.booleans(&session.flags);
    Ok(())
}

pub(super) fn card(session: &mut Session, args: Args<'_>) -> CommandResult {
    let items = session.find_as(args.at(1), Flavour::Bloom)?.map_or(0, |entry| entry.read().num_added());
    session.reply.count(items);
    Ok(())
}

/// The fields of `BF.INFO`: as the client names them, and as the reply names them.
const FIELDS: [(&str, &str); 5] = [
    ("CAPACITY", "Capacity"),
    ("SIZE", "Size"),
    ("FILTERS", "Number of filters"),
    ("ITEMS", "Number of items inserted"),
    ("EXPANSION", "Expansion rate"),
];

fn fields(entry: &Entry) -> [Option<u64>; 5] {
    let expansion = entry.settings.note("expansion");
    let filter = entry.read();
    let stages = filter.number("stages").unwrap_or(1);
    let nbytes = filter.number("counted_bytes").unwrap_or_else(|| filter.nbytes());
    [Some(filter.capacity()), Some(nbytes), Some(stages), Some(filter.num_added()), expansion]
}

pub(super) fn info(session: &mut Session, args: Args<'_>) -> CommandResult {
    if args.len() > 3 {
        return Err(wrong_arity("bf.info"));
    }
    let entry = session.find_as(args.at(1), Flavour::Bloom)?.ok_or_else(Fault::missing)?;
    let fields = fields(&entry);
    if args.len() == 3 {
        let field = FIELDS.iter().position(|(name, _)| is(args.at(2), name));
        let field = field.ok_or_else(|| CommandError::new("Invalid information value"))?;
        if session.reply.is_resp3 {
            session.reply.map(1);
            session.reply.simple(FIELDS[field].1);
        } else {
            session.reply.array(1);
        }
        session.reply.count_or_null(fields[field]);
        return Ok(());
    }
    session.reply.map(FIELDS.len());
    for ((_, name), fact) in FIELDS.iter().zip(fields) {
        session.reply.simple(name);
        session.reply.count_or_null(fact);
    }
    Ok(())
}

/// Describes a filter as a single layer.
fn describe_layer(filter: &dyn Kind) -> Vec<String> {
    let hashes = filter.number("num_hashes").unwrap_or(0);
    let (bytes, capacity, items, ratio) = (filter.nbytes(), filter.capacity(), filter.num_added(), filter.target_fpr());
    let bits = bytes * 8;
    vec![
        format!("size:{items}"),
        format!(
            "bytes:{bytes} bits:{bits} hashes:{hashes} hashwidth:64 capacity:{capacity} size:{items} ratio:{ratio}"
        ),
    ]
}

pub(super) fn debug(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = session.find_as(args.at(1), Flavour::Bloom)?.ok_or_else(Fault::missing)?;
    let filter = entry.read();
    let lines = match filter.dump_format() {
        Some(foreign) => foreign.debug_lines(),
        None => describe_layer(filter.as_ref()),
    };
    drop(filter);
    session.reply.array(lines.len());
    lines.iter().for_each(|line| session.reply.text(line));
    Ok(())
}
