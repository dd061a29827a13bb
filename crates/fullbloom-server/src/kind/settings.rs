//! [`Settings`]: the parameters of a filter and how the service treats it, as a line of a log or a manifest.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use super::rows::by_name;
use super::spec::Spec;
use crate::fault::{Code, Fault, Result};

/// Which family of commands created a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// `BF.*`.
    Bloom,
    /// `CF.*`.
    Cuckoo,
    /// A command that names the kind.
    Any,
    /// None: this is a note.
    Note,
}

impl Flavour {
    /// Its name in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Bloom => "bf",
            Flavour::Cuckoo => "cf",
            Flavour::Any => "any",
            Flavour::Note => "note",
        }
    }

    /// Parses [`Flavour::name`].
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Flavour::Bloom, Flavour::Cuckoo, Flavour::Any, Flavour::Note];
        all.into_iter().find(|flavour| flavour.name() == name)
    }
}

/// The parameters of a filter and how the service treats it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Kind and parameters.
    pub spec: Spec,
    /// The commands that created it.
    pub flavour: Flavour,
    /// True refuses keys beyond its capacity.
    pub strict: bool,
    /// Numbers that the commands return later (`EXPANSION`, `MAXITERATIONS` ...), by name. Filters with equal lists
    /// share one.
    pub notes: Arc<Vec<(String, u64)>>,
}

impl Settings {
    /// The settings of a filter of any kind.
    pub fn of(spec: Spec) -> Self {
        Settings { spec, flavour: Flavour::Any, strict: false, notes: Arc::default() }
    }

    /// The note `name`.
    pub fn note(&self, name: &str) -> Option<u64> {
        self.notes.iter().find(|(known, _)| known == name).map(|(_, number)| *number)
    }
}

/// The settings as a line: `name created flavour strict notes spec`.
pub fn line(name: &str, created: u64, settings: &Settings) -> String {
    let notes: Vec<String> = settings.notes.iter().map(|(name, number)| format!("{name}:{number}")).collect();
    let notes = if notes.is_empty() { "-".to_string() } else { notes.join(",") };
    format!(
        "{name} {created} {} {} {notes} {}",
        settings.flavour.name(),
        u8::from(settings.strict),
        settings.spec.line()
    )
}

/// Parses [`line`]: name, time of creation, settings.
pub fn parse(line: &str) -> Result<(String, u64, Settings)> {
    let wrong = || Fault::new(Code::Format, "a filter's settings cannot be read");
    let mut words = line.splitn(6, ' ');
    let mut next = || words.next().ok_or_else(wrong);
    let (name, created) = (next()?.to_string(), next()?.parse().map_err(|_| wrong())?);
    let flavour = Flavour::parse(next()?).ok_or_else(wrong)?;
    let strict = next()? == "1";
    let notes: Vec<_> = match next()? {
        "-" => Vec::new(),
        notes => notes
            .split(',')
            .map(|note| {
                let (name, number) = note.split_once(':').ok_or_else(wrong)?;
                Ok((name.to_string(), number.parse().map_err(|_| wrong())?))
            })
            .collect::<Result<_>>()?,
    };
    Ok((name, created, Settings { spec: Spec::parse(next()?)?, flavour, strict, notes: Arc::new(notes) }))
}

/// The most lists to remember, the latest ones.
const MOST: usize = 64;

/// Shares equal lists among settings. Ten thousand filters mostly have equal parameters, and a few texts for each
/// filter, every one an allocation, take more memory than the cells of a small filter.
#[derive(Default)]
pub struct Interner {
    options: VecDeque<Arc<Vec<(String, String)>>>,
    notes: VecDeque<Arc<Vec<(String, u64)>>>,
}

impl Interner {
    /// The same settings, in memory shared with equal ones.
    pub fn intern(&mut self, mut settings: Settings) -> Settings {
        if let Ok(row) = by_name(&settings.spec.kind) {
            settings.spec.kind = Cow::Borrowed(row.name);
        }
        intern_list(&mut self.options, &mut settings.spec.options);
        intern_list(&mut self.notes, &mut settings.notes);
        settings
    }
}

/// Replaces a list by an equal one that is already known.
fn intern_list<T: PartialEq + Clone>(known: &mut VecDeque<Arc<Vec<T>>>, list: &mut Arc<Vec<T>>) {
    if let Some(first) = known.iter().find(|first| *first == list) {
        *list = first.clone();
        return;
    }
    if known.len() == MOST {
        known.pop_front();
    }
    known.push_back(list.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_round_trip_as_lines() -> Result<()> {
        let spec = Spec { kind: "bloom".into(), seed: 3, ..Spec::default() }.with("capacity", 10);
        let settings =
            Settings { strict: true, notes: Arc::new(vec![("expansion".into(), 2)]), ..Settings::of(spec.clone()) };
        let (name, created, read) = parse(&line("a:b", 5, &settings))?;
        assert_eq!(
            (name.as_str(), created, read.note("expansion"), read.strict, read.spec),
            ("a:b", 5, Some(2), true, spec)
        );
        Ok(())
    }
}
