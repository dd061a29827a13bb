//! [`Alike`]: what filters have in common, held once. Ten thousand filters are mostly made alike, and a few words of
//! each, every one an allocation, take more than the cells of a small filter.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::kind::{self, Settings};

/// Lists that are remembered, those seen last.
const MOST: usize = 64;

/// See the head of this file.
#[derive(Default)]
pub(super) struct Alike {
    options: VecDeque<Arc<Vec<(String, String)>>>,
    notes: VecDeque<Arc<Vec<(String, u64)>>>,
}

impl Alike {
    /// The same settings, in memory that equal ones share.
    pub(super) fn shared(&mut self, mut settings: Settings) -> Settings {
        if let Ok(row) = kind::by_name(&settings.spec.kind) {
            settings.spec.kind = Cow::Borrowed(row.name);
        }
        one(&mut self.options, &mut settings.spec.options);
        one(&mut self.notes, &mut settings.notes);
        settings
    }
}

/// Puts the list that was there first in place of an equal one.
fn one<T: PartialEq + Clone>(known: &mut VecDeque<Arc<Vec<T>>>, list: &mut Arc<Vec<T>>) {
    if let Some(first) = known.iter().find(|first| *first == list) {
        *list = first.clone();
        return;
    }
    if known.len() == MOST {
        known.pop_front();
    }
    known.push_back(list.clone());
}
