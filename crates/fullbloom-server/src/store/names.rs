//! [`Names`]: the index of filters, by name and by number.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Entry;

#[derive(Default)]
pub(super) struct Names {
    by_name: HashMap<Arc<str>, Arc<Entry>>,
    by_id: BTreeMap<u64, Arc<Entry>>,
    notes: usize,
}

impl Names {
    pub(super) fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.by_name.get(name)
    }

    pub(super) fn by_id(&self, id: u64) -> Option<&Arc<Entry>> {
        self.by_id.get(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn notes(&self) -> usize {
        self.notes
    }

    /// All entries, ordered by number.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.by_id.values()
    }

    /// The entries with numbers above `number`, in order.
    pub(super) fn after(&self, number: u64) -> impl Iterator<Item = &Arc<Entry>> {
        self.by_id.range(number.saturating_add(1)..).map(|(_, entry)| entry)
    }

    /// Inserts an entry under its name, returning the one it replaced.
    pub(super) fn insert(&mut self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        let before = self.by_name.insert(entry.shared_name(), entry.clone());
        if let Some(before) = &before {
            self.forget(before);
        }
        self.notes += usize::from(entry.is_note());
        self.by_id.insert(entry.id, entry);
        before
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Arc<Entry>> {
        let entry = self.by_name.remove(name)?;
        self.forget(&entry);
        Some(entry)
    }

    fn forget(&mut self, entry: &Entry) {
        self.by_id.remove(&entry.id);
        self.notes -= usize::from(entry.is_note());
    }
}

#[cfg(test)]
mod tests {
    use crate::fault::Result;
    use crate::kind::Spec;
    use crate::store::{Options, Settings, Store};

    #[test]
    fn pages_return_each_filter_once_while_others_come_and_go() -> Result<()> {
        let store = Store::open(Options::default())?;
        let spec = Spec { kind: "bloom".into(), ..Spec::default() }.with("capacity", 10);
        let make = |name: String| store.create(name.as_bytes(), Settings::of(spec.clone()));
        (0..100).try_for_each(|i| make(format!("f{i}")).map(drop))?;
        store.rename(b"f50", b"g50")?;
        store.set_expiry(store.get(b"f7")?.as_ref(), Some(1))?;
        let (mut at, mut seen) = (0, Vec::new());
        for step in 0.. {
            // The limit counts the filters visited, not those that exist.
            let (page, next) = store.page(at, 7);
            assert!(page.len() <= 7);
            seen.extend(page.iter().map(|entry| entry.name()));
            if next == 0 {
                break;
            }
            at = next;
            make(format!("late{step}"))?;
            store.drop_filter(format!("f{step}").as_bytes())?;
        }
        let stayed: Vec<String> =
            (20..100).filter(|&i| i != 50).map(|i| format!("f{i}")).chain(["g50".into()]).collect();
        assert!(stayed.iter().all(|name| seen.iter().filter(|known| *known == name).count() == 1));
        assert!(!seen.contains(&"f7".to_string()));
        assert_eq!(store.page(u64::MAX, 7).1, 0);
        Ok(())
    }
}
