//! Notes survive any end of the process, beside filters that take over their names and lose names to them.

use std::path::Path;

use super::tests::{Draws, copy_folder, open_store, temporary, visible_state};
use super::*;
use crate::fault::{Code, Result};
use crate::kind::{Note, Spec};
use crate::log::Durability;

fn text_of(store: &Store, name: &str) -> Option<Vec<u8>> {
    store.get(name.as_bytes()).ok().and_then(|entry| Note::text_of(entry.read().as_ref()).map(<[u8]>::to_vec))
}

fn bloom() -> Settings {
    Settings::of(Spec { kind: "bloom".into(), ..Spec::default() }.with("capacity", 100))
}

fn set(store: &Store, name: &str, text: &[u8], present: Option<bool>, until: NoteExpiry) -> Result<Option<Lsn>> {
    store.set_note(name.as_bytes(), text, present, until).map(|noted| noted.lsn)
}

#[test]
fn any_history_of_notes_and_filters_recovers_from_a_crash_at_any_time() -> Result<()> {
    let folder = temporary();
    let store = open_store(folder.path())?;
    let mut draws = Draws(3);
    for step in 0..500 {
        let name = format!("n{}", draws.below(5));
        let other = format!("n{}", draws.below(5));
        let last = match (draws.below(12), store.get(name.as_bytes())) {
            (0, Ok(_)) => store.drop_filter(name.as_bytes())?,
            (1, Ok(_)) => store.rename(name.as_bytes(), other.as_bytes()).map(Some)?,
            (2, Ok(entry)) => Some(store.set_expiry(&entry, Some(now() + 1_000_000 + draws.below(9)))?),
            (3, Ok(entry)) => Some(store.set_expiry(&entry, None)?),
            (4, _) => {
                store.checkpoint()?;
                None
            }
            (5, Err(_)) => Some(store.create(name.as_bytes(), bloom())?.1),
            (6, Ok(entry)) if !entry.is_note() => Some(store.add(&entry, &[draws.next()], &mut [0])?),
            (kind, _) => {
                // Long notes go to files of their own, short ones to bundles.
                let length = [0, 7, 300, 20_000, 1 << 16][draws.below(5) as usize];
                let text: Vec<u8> = (0..length).map(|_| draws.next() as u8).collect();
                let until = [NoteExpiry::Never, NoteExpiry::Keep, NoteExpiry::At(now() + 1_000_000)][kind as usize % 3];
                set(&store, &name, &text, [None, Some(true), Some(false)][draws.below(3) as usize], until)?
            }
        };
        last.map_or(Ok(()), |Lsn(number)| store.log().wait_blocking(number))?;
        let bytes: u64 = store.entries().iter().map(|entry| entry.nbytes()).sum();
        assert_eq!(store.nbytes(), bytes, "step {step}");
        assert_eq!(store.num_filters(), store.filters().len(), "step {step}");
        if step % 17 == 0 {
            let crashed = copy_folder(folder.path());
            let ours = visible_state(&store);
            assert!(ours == visible_state(&open_store(crashed.path())?), "step {step}");
            let again = open_store(crashed.path())?;
            assert!(ours == visible_state(&again), "step {step}, again");
            assert_eq!(again.nbytes(), bytes, "step {step}, again");
        }
    }
    let target = temporary();
    store.backup(target.path())?;
    assert!(visible_state(&store) == visible_state(&open_store(target.path())?));
    Ok(())
}

#[test]
fn a_note_is_set_under_conditions_and_never_over_a_filter() -> Result<()> {
    let store = Store::open(Options::default())?;
    assert!(set(&store, "a", b"1", Some(true), NoteExpiry::Never)?.is_none());
    assert!(set(&store, "a", b"1", Some(false), NoteExpiry::At(now() + 1_000_000))?.is_some());
    assert!(set(&store, "a", b"2", Some(false), NoteExpiry::Never)?.is_none());
    let until = store.get(b"a")?.expires();
    assert!(until.is_some() && set(&store, "a", b"3", Some(true), NoteExpiry::Keep)?.is_some());
    assert_eq!((text_of(&store, "a"), store.get(b"a")?.expires()), (Some(b"3".to_vec()), until));
    set(&store, "a", b"4", None, NoteExpiry::Never)?;
    assert_eq!(store.get(b"a")?.expires(), None);
    store.create(b"f", bloom())?;
    let noted = store.set_note(b"f", b"x", None, NoteExpiry::Never)?;
    assert!(noted.lsn.is_none() && noted.before.is_some_and(|before| !before.is_note()));
    assert!(store.create(b"a", bloom()).is_err_and(|fault| fault.code == Code::Exists));
    // A filter that took over a name is found as a filter.
    assert!(store.filter(b"f").is_ok() && store.filter(b"a").is_err_and(|fault| fault.code == Code::Missing));
    assert_eq!((store.len(), store.num_filters(), store.filters().len()), (2, 1, 1));
    // An expired note does not exist.
    set(&store, "late", b"x", None, NoteExpiry::At(1))?;
    assert!(set(&store, "late", b"y", Some(true), NoteExpiry::Never)?.is_none());
    assert!(set(&store, "late", b"y", Some(false), NoteExpiry::Never)?.is_some());
    Ok(())
}

#[test]
fn notes_have_limits_and_existing_ones_can_be_set_in_a_full_store() -> Result<()> {
    let limits = Limits { filters: 2, total_bytes: 1000, ..Limits::default() };
    let store = Store::open(Options { limits, ..Options::default() })?;
    set(&store, "a", &[0; 600], None, NoteExpiry::Never)?;
    let refused = |done: Result<Option<Lsn>>| done.is_err_and(|fault| fault.code == Code::Limit);
    assert!(refused(set(&store, "b", &[0; 600], None, NoteExpiry::Never)));
    set(&store, "b", &[0; 400], None, NoteExpiry::Never)?;
    assert!(refused(set(&store, "c", b"", None, NoteExpiry::Never)));
    assert!(refused(set(&store, "b", &[0; 401], None, NoteExpiry::Never)));
    set(&store, "b", &[1; 400], Some(true), NoteExpiry::Never)?;
    assert!(refused(set(&store, "b", &[0; (1 << 16) + 1], None, NoteExpiry::Never)));
    assert_eq!((store.len(), store.nbytes()), (2, 1000));
    Ok(())
}

/// A name always finds its filter or note while it is renamed over and set.
#[test]
fn a_name_that_is_taken_over_is_never_unused() -> Result<()> {
    let store = Store::open(Options::default())?;
    store.create(b"f", bloom())?;
    set(&store, "n", b"0", None, NoteExpiry::Never)?;
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut gone = 0;
            while !done.load(Ordering::Acquire) {
                gone += usize::from(store.get(b"f").is_err()) + usize::from(store.get(b"n").is_err());
            }
            gone
        });
        for round in 0..2000u32 {
            store.create(b"new", bloom())?;
            store.rename(b"new", b"f")?;
            set(&store, "n", &round.to_le_bytes(), Some(true), NoteExpiry::Never)?;
        }
        done.store(true, Ordering::Release);
        assert_eq!(looking.join().unwrap_or(usize::MAX), 0);
        Ok(())
    })
}

#[test]
fn a_damaged_note_is_refused_by_name_or_skipped_by_salvage() -> Result<()> {
    let folder = temporary();
    {
        let store = open_store(folder.path())?;
        set(&store, "whole", b"a", None, NoteExpiry::Never)?;
        set(&store, "damaged", &[7; 1 << 16], None, NoteExpiry::Never)?;
        store.checkpoint()?;
    }
    let files = std::fs::read_dir(folder.path().join("filters")).into_iter().flatten().flatten();
    let path = files.map(|file| file.path()).find(|path| path.extension().is_some_and(|end| end == "bloom"));
    let path = path.unwrap_or_else(|| unreachable!("a long note has a file of its own"));
    let mut bytes = std::fs::read(&path).unwrap_or_default();
    bytes[5000] ^= 1;
    std::fs::write(&path, bytes).unwrap_or_default();
    assert!(open_store(folder.path()).is_err_and(|fault| fault.text.contains("--salvage")));
    let skipped = |folder: &Path| {
        let (folder, durability) = (Some(folder.to_owned()), Durability::Always);
        Store::open(Options { folder, durability, salvage: true, ..Options::default() })
    };
    let store = skipped(folder.path())?;
    assert_eq!((store.len(), store.skipped.len(), text_of(&store, "whole")), (1, 1, Some(b"a".to_vec())));
    Ok(())
}
